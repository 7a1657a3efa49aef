//! The time of a campaign, shared among its scenarios: a late one gets as much as an early one.

use std::time::{Duration, Instant};

/// The time that is left, and for how many scenarios.
#[derive(Clone, Copy, Debug)]
pub struct Shares {
    until: Option<Instant>,
    left: usize,
}

impl Shares {
    /// So many scenarios; `None` for all the time that they want.
    pub fn new(until: Option<Instant>, scenarios: usize) -> Shares {
        Shares { until, left: scenarios }
    }

    /// When the next scenario has had its share, if it begins now. What one leaves over is for those that
    /// follow.
    pub fn next(&mut self, now: Instant) -> Option<Instant> {
        let parts = u32::try_from(self.left.max(1)).unwrap_or(u32::MAX);
        self.left = self.left.saturating_sub(1);
        let time = self.until?.saturating_duration_since(now);
        Some(now + time.checked_div(parts).unwrap_or(Duration::ZERO))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_scenario_gets_as_much_of_what_is_left() {
        let (now, second) = (Instant::now(), Duration::from_secs(1));
        let mut shares = Shares::new(Some(now + second * 90), 3);
        assert_eq!(shares.next(now), Some(now + second * 30));
        // The first one was done early.
        assert_eq!(shares.next(now + second * 10), Some(now + second * 50));
        assert_eq!(shares.next(now + second * 50), Some(now + second * 90));
        assert_eq!(shares.next(now + second * 95), Some(now + second * 95), "one more than was known");
        assert_eq!(Shares::new(None, 3).next(now), None);
    }
}
