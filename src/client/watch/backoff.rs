//! How long a watch that ended waits before it is tried again. Pure.

use std::time::Duration;

/// Pauses that double with each try in a row that comes to nothing.
#[derive(Clone, Copy, Debug)]
pub struct Pauses {
    first: Duration,
    longest: Duration,
    next: Duration,
}

impl Pauses {
    /// From the first pause up to the longest one.
    pub fn new((first, longest): (Duration, Duration)) -> Pauses {
        Pauses { first, longest, next: first }
    }

    /// The next failure is the first one again.
    pub fn reset(&mut self) {
        self.next = self.first;
    }

    /// The pause after a try that has `stood` for so long: from the end of its list to its failure, nothing
    /// where it was never listed. Only a try that stood longer than the pause that is due has worked. A list
    /// alone says little: a user may have the right to list and not the one to watch, and one namespace may
    /// be listed while another one is refused.
    pub fn after(&mut self, stood: Duration) -> Duration {
        if stood > self.next {
            self.reset();
        }
        let now = self.next;
        self.next = (now * 2).min(self.longest);
        now
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_until_a_try_has_stood_longer_than_they_last() {
        let seconds = Duration::from_secs;
        let mut pauses = Pauses::new((seconds(5), seconds(300)));
        let tries = [0, 0, 1, 6, 0, 0, 0, 10_000, 0];
        let waited = tries.map(|stood| pauses.after(seconds(stood)).as_secs());
        assert_eq!(waited, [5, 10, 20, 40, 80, 160, 300, 5, 10]);
        pauses.reset();
        assert_eq!(pauses.after(Duration::ZERO), seconds(5));
    }
}
