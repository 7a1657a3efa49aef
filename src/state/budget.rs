//! One budget in bytes for all that only grows: reconciles, versions, deleted objects, log lines, lines of
//! pods. Who holds most forgets first, its oldest; so each may have what the others leave, and none less than
//! its part. What was forgotten is counted. The bytes are estimates: what a thing says, and what keeping it
//! costs.

use super::State;
use serde::Serialize;
use std::io;

/// One of those that share the budget.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Holding {
    /// The history.
    pub what: History,
    /// How many things it keeps.
    pub kept: usize,
    /// How many bytes they are, estimated.
    pub bytes: usize,
    /// How many it kept before, and does not any more.
    pub forgotten: u64,
}

/// The histories that share the budget.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum History {
    /// Reconciles that have ended, with their calls and changes.
    Reconciles,
    /// Older versions of objects that are there.
    Versions,
    /// Objects that are gone, with their versions.
    Deleted,
    /// opdev's and the operator's log.
    Log,
    /// Logs of pods.
    PodLogs,
}

impl State {
    /// The parts that hold the budget, with how much each holds.
    pub fn holdings(&self) -> [Holding; 5] {
        let of = |what, kept, bytes, forgotten| Holding { what, kept, bytes, forgotten };
        let archive = &self.archive;
        [
            of(History::Reconciles, self.history.all().len(), self.history.bytes(), self.history.forgotten()),
            of(History::Versions, archive.older_count(), archive.bytes(), archive.forgotten_versions()),
            of(History::Deleted, archive.gone().len(), archive.gone_bytes(), archive.forgotten_objects()),
            of(History::Log, self.log.lines().len(), self.log.bytes(), self.log.forgotten()),
            of(History::PodLogs, self.pod_logs.lines(), self.pod_logs.bytes(), self.pod_logs.forgotten()),
        ]
    }

    /// The budget, in bytes.
    pub fn history_budget(&self) -> usize {
        self.limits.bytes
    }

    /// Forgets what is over the budget.
    pub(super) fn keep_to_budget(&mut self) {
        loop {
            let all = self.holdings();
            if all.iter().map(|holding| holding.bytes).sum::<usize>() <= self.limits.bytes {
                return;
            }
            let most = all.into_iter().max_by_key(|holding| holding.bytes);
            let Some(Holding { what, bytes, .. }) = most.filter(|most| most.bytes > 0) else { return };
            // An eighth at once, so that this is rare.
            let goal = bytes - bytes.div_ceil(8);
            match what {
                History::Reconciles => self.history.shed(goal),
                History::Versions => self.archive.shrink(goal),
                History::Deleted => self.archive.shed_gone(goal),
                History::Log => self.log.shed(goal),
                History::PodLogs => self.pod_logs.shed(goal),
            }
        }
    }
}

/// How long a thing is as JSON; nothing is written.
pub(super) fn json_bytes(value: &impl Serialize) -> usize {
    struct Count(usize);

    impl io::Write for Count {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0 += bytes.len();
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    let mut count = Count(0);
    // A reconcile that cannot be written counts as far as it could.
    let _ = serde_json::to_writer(&mut count, value);
    count.0
}
