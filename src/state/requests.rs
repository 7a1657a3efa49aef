//! The user's requests: what is under way, and how the last ones ended.

use opdev_event::{RequestFinished, RequestId, RequestStarted};
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

/// Requests.
#[derive(Clone, Debug, Default)]
pub struct Requests {
    /// Under way, by number.
    pub in_flight: Arc<BTreeMap<RequestId, Arc<RequestStarted>>>,
    /// Ended, oldest first.
    pub finished: Arc<VecDeque<Arc<RequestFinished>>>,
}

impl Requests {
    pub(super) fn start(&mut self, request: RequestStarted) {
        Arc::make_mut(&mut self.in_flight).insert(request.id, Arc::new(request));
    }

    pub(super) fn finish(&mut self, request: RequestFinished, limit: usize) {
        Arc::make_mut(&mut self.in_flight).remove(&request.id);
        let finished = Arc::make_mut(&mut self.finished);
        finished.push_back(Arc::new(request));
        while finished.len() > limit {
            finished.pop_front();
        }
    }
}
