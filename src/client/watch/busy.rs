//! A watch on which unrelated objects change all the time is read in batches: to wake up for each change
//! costs more than to read it. A change of an object that somebody is interested in ends that.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// A watch is busy while this many changes of unrelated objects in a row ...
const CHANGES: usize = 16;
/// ... came within this time: 64 a second and more.
const WITHIN: Duration = Duration::from_millis(250);
/// How long a busy watch is not read once all that has come is read. What comes next is seen later by this at
/// most.
const PAUSE: Duration = Duration::from_millis(30);

/// When the last changes of unrelated objects came on a watch, one after the other.
#[derive(Debug, Default)]
pub struct Busy {
    came: VecDeque<Instant>,
}

impl Busy {
    /// An event has come; `unrelated`: it was the change of an object in which nobody is interested.
    pub fn came(&mut self, unrelated: bool, now: Instant) {
        if !unrelated {
            return self.came.clear();
        }
        if self.came.len() == CHANGES {
            self.came.pop_front();
        }
        self.came.push_back(now);
    }

    /// Until when the watch is not read, now that all that has come is read. `None` where it is not busy.
    pub fn pause(&self, now: Instant) -> Option<Instant> {
        let first = self.came.front().filter(|_| self.came.len() == CHANGES)?;
        (now.duration_since(*first) <= WITHIN).then(|| now + PAUSE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_watch_pauses_while_many_unrelated_changes_come_and_not_after_them() {
        let mut busy = Busy::default();
        let start = Instant::now();
        let at = |millis: u64| start + Duration::from_millis(millis);
        for event in 0..15 {
            busy.came(true, at(event * 6));
            assert_eq!(busy.pause(at(event * 6)), None, "few changes may be a burst");
        }
        busy.came(true, at(90));
        assert_eq!(busy.pause(at(91)), Some(at(121)));
        // Changes that had gathered are read at once; the watch is as busy as before.
        for _ in 0..5 {
            busy.came(true, at(121));
        }
        assert_eq!(busy.pause(at(122)), Some(at(152)));
        assert_eq!(busy.pause(at(400)), None, "nothing has come since");
        let mut slow = Busy::default();
        for event in 0..100 {
            slow.came(true, at(event * 20));
            assert_eq!(slow.pause(at(event * 20)), None, "50 a second");
        }
    }

    #[test]
    fn a_change_that_matters_ends_the_pauses() {
        let mut busy = Busy::default();
        let now = Instant::now();
        for _ in 0..16 {
            busy.came(true, now);
        }
        assert!(busy.pause(now).is_some());
        busy.came(false, now);
        for _ in 0..15 {
            assert_eq!(busy.pause(now), None);
            busy.came(true, now);
        }
    }
}
