//! When a burst of file events is over: an event in, a deadline out. Pure; the clock is handed in.

use super::Batch;
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// Events since the last batch.
#[derive(Debug, Default)]
pub(super) struct Quiet {
    paths: BTreeSet<PathBuf>,
    last_event: Option<Instant>,
    last_done: Option<Instant>,
}

/// How long an unfinished write is waited for before the file is read all the same.
const UNFINISHED: Duration = Duration::from_millis(150);

impl Quiet {
    /// Takes an event; `done` says that the writer closed or renamed. False where no path matters.
    pub(super) fn saw(&mut self, paths: impl Iterator<Item = PathBuf>, done: bool, now: Instant) -> bool {
        let before = self.paths.len();
        let mut any = false;
        for path in paths {
            any = true;
            self.paths.insert(path);
        }
        if any {
            self.last_event = Some(now);
            if done {
                self.last_done = Some(now);
            }
        }
        any || self.paths.len() != before
    }

    /// Events were lost: everything may have changed.
    pub(super) fn saw_all(&mut self, now: Instant) {
        self.last_event = Some(now);
        self.last_done = Some(now);
    }

    /// When the burst will be over if nothing else happens; `None` while there is no burst.
    pub(super) fn due(&self, quiet: Duration) -> Option<Instant> {
        let last = self.last_event?;
        // A write that is not closed yet gets more time, so that a file written in chunks is read once, whole.
        let unfinished = self.last_done.is_none_or(|done| done < last);
        Some(last + if unfinished { quiet.max(UNFINISHED) } else { quiet })
    }

    /// Ends the burst.
    pub(super) fn take(&mut self) -> Option<Batch> {
        let last = self.last_event.take()?;
        let saved_at = self.last_done.take().unwrap_or(last);
        Some(Batch { saved_at, paths: std::mem::take(&mut self.paths) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const QUIET: Duration = Duration::from_millis(20);

    fn path(name: &str) -> std::iter::Once<PathBuf> {
        std::iter::once(PathBuf::from(name))
    }

    #[test]
    fn a_burst_is_one_batch_that_begins_at_the_last_close() {
        let start = Instant::now();
        let at = |ms| start + Duration::from_millis(ms);
        let mut quiet = Quiet::default();
        assert!(quiet.due(QUIET).is_none());
        for i in 0..500 {
            quiet.saw(path(&format!("f{i}")), true, at(i));
        }
        assert_eq!(quiet.due(QUIET), Some(at(499) + QUIET));
        let batch = quiet.take().unwrap();
        assert_eq!(batch.paths.len(), 500);
        assert_eq!(batch.saved_at, at(499));
        assert!(quiet.take().is_none());
    }

    #[test]
    fn a_file_that_is_still_open_is_waited_for() {
        let start = Instant::now();
        let mut quiet = Quiet::default();
        quiet.saw(path("a"), false, start);
        assert_eq!(quiet.due(QUIET), Some(start + UNFINISHED));
        quiet.saw(path("a"), true, start + Duration::from_millis(60));
        assert_eq!(quiet.due(QUIET), Some(start + Duration::from_millis(80)));
    }
}
