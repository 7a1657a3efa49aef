//! A stream on which much happens is read in batches: to wake up for each change takes longer than to read it.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// A stream is busy while this many events in a row ...
const EVENTS: usize = 16;
/// ... came within this time: 64 a second and more.
const WITHIN: Duration = Duration::from_millis(250);
/// How long a busy stream is left alone once all that has come is read. What it brings is later by this at most.
const REST: Duration = Duration::from_millis(30);

/// When the last events of a stream came.
#[derive(Debug, Default)]
pub(crate) struct Busy {
    came: VecDeque<Instant>,
}

impl Busy {
    /// An event has come.
    pub(crate) fn came(&mut self, now: Instant) {
        if self.came.len() == EVENTS {
            self.came.pop_front();
        }
        self.came.push_back(now);
    }

    /// All that has come is read: until when the stream is left alone. `None` where it is not busy.
    pub(crate) fn rest(&self, now: Instant) -> Option<Instant> {
        let first = self.came.front().filter(|_| self.came.len() == EVENTS)?;
        (now.duration_since(*first) <= WITHIN).then(|| now + REST)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_rests_while_many_events_come_and_not_after_them() {
        let mut busy = Busy::default();
        let start = Instant::now();
        let at = |millis: u64| start + Duration::from_millis(millis);
        for event in 0..15 {
            busy.came(at(event * 6));
            assert_eq!(busy.rest(at(event * 6)), None, "few events may be a burst of somebody's own");
        }
        busy.came(at(90));
        assert_eq!(busy.rest(at(91)), Some(at(121)));
        // What had gathered is read at once; the stream is as busy as before.
        for _ in 0..5 {
            busy.came(at(121));
        }
        assert_eq!(busy.rest(at(122)), Some(at(152)));
        assert_eq!(busy.rest(at(400)), None, "nothing has come since");
        let mut slow = Busy::default();
        for event in 0..100 {
            slow.came(at(event * 20));
            assert_eq!(slow.rest(at(event * 20)), None, "50 a second");
        }
    }
}
