//! The user's requests: what is under way, and how the last ones ended.

use jiff::Timestamp;
use opdev_event::{
    BackgroundCommand, BackgroundEnd, BackgroundRun, RequestFinished, RequestId, RequestStarted,
};
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

/// Requests.
#[derive(Clone, Debug, Default)]
pub struct Requests {
    /// Under way, by number.
    pub in_flight: Arc<BTreeMap<RequestId, Arc<RequestStarted>>>,
    /// Runs beside the screen, the newest of each command.
    pub background: Arc<[Arc<BackgroundRun>]>,
    /// Ended, oldest first.
    pub finished: Arc<VecDeque<Arc<RequestFinished>>>,
}

impl Requests {
    pub(super) fn start(&mut self, request: RequestStarted) {
        Arc::make_mut(&mut self.in_flight).insert(request.id, Arc::new(request));
    }

    /// The newest run of a command, whatever its arguments.
    pub fn run_like(&self, command: &BackgroundCommand) -> Option<&Arc<BackgroundRun>> {
        self.background.iter().find(|run| run.command.is_like(command))
    }

    pub(super) fn background(&mut self, run: &Arc<BackgroundRun>) {
        let others = self.background.iter().filter(|other| !other.command.is_like(&run.command)).cloned();
        self.background = others.chain([Arc::clone(run)]).collect();
    }

    /// Keeps runs beside the screen where opdev goes to another cluster. Those under way end with the one it leaves.
    pub(super) fn keep_runs(&mut self, before: &Requests, now: Timestamp) {
        let ended = before.background.iter().map(|run| {
            let mut run = BackgroundRun::clone(run);
            run.end.get_or_insert_with(|| BackgroundEnd {
                took: Duration::try_from(now.duration_since(run.began)).unwrap_or_default(),
                problem: Some("stopped, for opdev went to another cluster".to_owned()),
            });
            Arc::new(run)
        });
        self.background = ended.collect();
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
