//! How long opdev waits for renders: longer than any chart of good will takes, and no longer than somebody
//! waits.

use crate::time_limit::{TOO_LONG, TimeLimit};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// For the check of the charts that were saved, all together: until it ends, no other save is read.
pub const LOAD: Duration = Duration::from_secs(15);
/// For a render of a release; what templates look up in the cluster counts.
pub const RENDER: Duration = Duration::from_secs(30);

/// Lives as long as somebody waits.
#[derive(Debug)]
#[must_use = "what is waited for breaks off once this is dropped"]
pub struct Waiting(Arc<AtomicBool>);

impl Drop for Waiting {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// A limit that is reached once so much time has gone by, or nobody waits any more.
pub fn within(time: Duration) -> (TimeLimit, Waiting) {
    let (ends, is_left) = (Instant::now() + time, Arc::new(AtomicBool::new(false)));
    let waiting = Waiting(Arc::clone(&is_left));
    let limit = TimeLimit::new(move || {
        if is_left.load(Ordering::Relaxed) {
            return Some("nobody waits for this any more");
        }
        (Instant::now() >= ends).then_some(TOO_LONG)
    });
    (limit, waiting)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_is_reached_when_its_time_is_up_or_nobody_waits() {
        let (limit, waiting) = within(Duration::ZERO);
        assert_eq!(limit.reached(), Some(TOO_LONG));
        drop(waiting);
        assert_eq!(limit.reached(), Some("nobody waits for this any more"));
        let (limit, waiting) = within(Duration::from_secs(3600));
        assert_eq!(limit.clone().reached(), None);
        drop(waiting);
        assert_eq!(limit.reached(), Some("nobody waits for this any more"));
        assert_eq!(TimeLimit::default().reached(), None);
    }
}
