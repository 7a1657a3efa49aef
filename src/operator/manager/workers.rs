//! Workers: each runs one reconcile of one object. The manager begins them and hears of their ends.

use crate::queue::Taken;
use jiff::Timestamp;
use opdev_client::recorder::Recorder;
use opdev_event::sink::ReconcileNumbers;
use opdev_object::meta::{ObjectKey, ObjectRef};
use opdev_release::verdict::Report;
use std::collections::HashMap;
use std::sync::Arc;
use tokio::task::{Id, JoinSet};
use tokio_util::sync::CancellationToken;

/// The workers, and the reconciles that they run.
pub(super) struct Workers {
    pub(super) tasks: JoinSet<Report>,
    running: HashMap<Id, Running>,
    /// Stops all of them.
    pub(super) cancel: CancellationToken,
    numbers: ReconcileNumbers,
    /// The number of the reconcile that was begun last.
    newest: u64,
}

/// A reconcile under way.
pub(super) struct Running {
    pub(super) id: u64,
    pub(super) at: Timestamp,
    pub(super) object: ObjectRef,
    pub(super) taken: Taken,
    pub(super) sources: u64,
    /// Where the changes begin that it may not have seen.
    pub(super) began: u64,
    pub(super) recorder: Arc<Recorder>,
    /// The secrets that were known when it began; a reconcile that panics tells none.
    pub(super) secrets: Vec<String>,
    /// Ends its waits.
    pub(super) cancel: CancellationToken,
}

impl Workers {
    pub(super) fn new(numbers: ReconcileNumbers) -> Workers {
        Workers {
            tasks: JoinSet::new(),
            running: HashMap::new(),
            cancel: CancellationToken::new(),
            numbers,
            newest: 0,
        }
    }

    /// The number of the reconcile that was begun last, 0 before the first one.
    pub(super) fn newest(&self) -> u64 {
        self.newest
    }

    pub(super) fn next_number(&mut self) -> u64 {
        self.newest = self.numbers.next();
        self.newest
    }

    pub(super) fn begin(&mut self, work: impl Future<Output = Report> + Send + 'static, running: Running) {
        let handle = self.tasks.spawn(work);
        self.running.insert(handle.id(), running);
    }

    /// Takes out the reconcile of a worker that has ended.
    pub(super) fn ended(&mut self, id: Id) -> Option<Running> {
        self.running.remove(&id)
    }

    /// Ends the waits for hooks of an object's reconcile.
    pub(super) fn stop_waiting(&self, key: &ObjectKey) {
        for running in self.running.values().filter(|running| running.taken.key == *key) {
            running.cancel.cancel();
        }
    }
}
