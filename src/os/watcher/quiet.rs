//! When a burst of file events is over: an event in, a deadline out. Pure; the clock is handed in.

use super::Batch;
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// Events since the last batch.
#[derive(Debug, Default)]
pub(super) struct Quiet {
    paths: BTreeSet<PathBuf>,
    first_event: Option<Instant>,
    last_event: Option<Instant>,
    last_done: Option<Instant>,
    /// When the burst before ended, where what it brought is broken.
    broken: Option<Instant>,
    before: Option<Instant>,
}

/// Saves that are no further apart are those of one text that is being typed.
const TYPING: Duration = Duration::from_secs(1);
/// The pause that such saves are waited for, once what they say is broken.
const PAUSE: Duration = Duration::from_millis(700);
/// The longest that they are waited for.
const LONGEST: Duration = Duration::from_secs(10);

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
            self.first_event.get_or_insert(now);
            self.last_event = Some(now);
            if done {
                self.last_done = Some(now);
            }
        }
        any || self.paths.len() != before
    }

    /// Events were lost: everything may have changed.
    pub(super) fn saw_all(&mut self, now: Instant) {
        self.first_event.get_or_insert(now);
        self.last_event = Some(now);
        self.last_done = Some(now);
    }

    /// Notes that the last burst has brought something that is broken, or not.
    pub(super) fn is_broken(&mut self, broken: bool) {
        self.broken = self.before.filter(|_| broken);
    }

    /// When the burst will be over if nothing else happens; `None` while there is no burst.
    pub(super) fn due(&self, quiet: Duration) -> Option<Instant> {
        let last = self.last_event?;
        // A write that is not closed yet gets more time, so that a file written in chunks is read once,
        // whole.
        let unfinished = self.last_done.is_none_or(|done| done < last);
        let short = last + if unfinished { quiet.max(UNFINISHED) } else { quiet };
        let first = self.first_event.unwrap_or(last);
        let typed = self.broken.is_some_and(|broken| first.saturating_duration_since(broken) < TYPING);
        if !typed {
            return Some(short);
        }
        Some(short.max((last + PAUSE).min(first + LONGEST)))
    }

    /// Ends the burst.
    pub(super) fn take(&mut self) -> Option<Batch> {
        let last = self.last_event.take()?;
        let saved_at = self.last_done.take().unwrap_or(last);
        (self.first_event, self.broken, self.before) = (None, None, Some(last));
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
    fn saves_of_a_text_that_is_typed_wait_for_a_pause_once_it_is_broken() {
        let start = Instant::now();
        let at = |ms| start + Duration::from_millis(ms);
        let mut quiet = Quiet::default();
        // A complete change is live at once, however fast it comes.
        quiet.saw(path("a"), true, at(0));
        quiet.take().unwrap();
        quiet.is_broken(false);
        quiet.saw(path("a"), true, at(200));
        assert_eq!(quiet.due(QUIET), Some(at(200) + QUIET));
        quiet.take().unwrap();
        quiet.is_broken(true);
        // Broken: one batch for all that follows, and the last save begins it.
        for ms in (400..4_000).step_by(200) {
            quiet.saw(path("a"), true, at(ms));
            assert_eq!(quiet.due(QUIET), Some(at(ms) + PAUSE));
        }
        assert_eq!(quiet.take().unwrap().saved_at, at(3_800));
        // Later than that, somebody has looked at the error and saves what is right.
        quiet.is_broken(true);
        quiet.saw(path("a"), true, at(5_000));
        assert_eq!(quiet.due(QUIET), Some(at(5_000) + QUIET));
        // Something that never pauses is read all the same.
        quiet.take().unwrap();
        quiet.is_broken(true);
        for ms in (5_200..20_000).step_by(200) {
            quiet.saw(path("a"), true, at(ms));
        }
        assert_eq!(quiet.due(QUIET), Some(at(19_800) + QUIET));
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
