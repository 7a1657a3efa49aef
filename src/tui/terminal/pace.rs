//! The distance between frames. A single change is drawn at once. What changes all the time, as in a storm of
//! reconciles, is drawn ten times a second: nobody reads a number that changes more often, and each frame
//! costs bytes on a slow line.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// Frames are at least this far apart.
pub const GAP: Duration = Duration::from_millis(16);
/// Frames that take long are no further apart than this.
const LONGEST_GAP: Duration = Duration::from_millis(200);
/// The distance of frames where many come one after the other.
const CALM_GAP: Duration = Duration::from_millis(100);
/// The number of frames within a second that is many.
const MANY: usize = 8;
const SECOND: Duration = Duration::from_secs(1);

/// The frames of the last second.
#[derive(Debug, Default)]
pub struct Pace(VecDeque<Instant>);

impl Pace {
    /// The wait of the next frame after one that was drawn from `begun` to `drawn`. A key that waits for a
    /// frame takes [`GAP`] instead.
    pub fn after(&mut self, begun: Instant, drawn: Instant) -> Duration {
        self.0.push_back(drawn);
        while self.0.front().is_some_and(|old| drawn.duration_since(*old) >= SECOND) {
            self.0.pop_front();
        }
        let least = if self.0.len() > MANY { CALM_GAP } else { GAP };
        // Whatever comes in is not to be kept waiting by a screen that shows each step of it.
        least.max((drawn - begun).saturating_mul(2)).min(LONGEST_GAP)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_storm_is_drawn_ten_times_a_second_and_a_change_after_it_at_once() {
        let (mut pace, mut now) = (Pace::default(), Instant::now());
        let begun = now;
        let gaps: Vec<Duration> = (0..60)
            .map(|_| {
                let gap = pace.after(now, now);
                now += gap;
                gap
            })
            .collect();
        assert!(gaps[..8].iter().all(|gap| *gap == GAP), "the first changes are shown at once");
        let seconds = (now - begun).as_secs_f64();
        assert!((9.0..13.0).contains(&(60.0 / seconds)), "{seconds}");
        now += SECOND;
        assert_eq!(pace.after(now, now), GAP);
        assert_eq!(pace.after(now, now + SECOND), LONGEST_GAP, "a slow terminal");
    }
}
