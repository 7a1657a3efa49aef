//! How long opdev waits for renders: longer than any chart of good will takes, and no longer than somebody
//! waits. The limit counts processor time, for a busy machine makes a sound chart slow by the clock.

use crate::time_limit::{TOO_LONG, TimeLimit};
use rustix::time::{ClockId, clock_gettime};
use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Processor time for the check of the charts that were saved, all together: until it ends, no other save is
/// read.
pub const LOAD: Duration = Duration::from_secs(15);
/// Processor time for a render of a release.
pub const RENDER: Duration = Duration::from_secs(30);
/// By the clock a render may take so many times its processor time: on a busy machine, or while templates
/// look things up in the cluster.
const BY_THE_CLOCK: u32 = 4;

/// Lives as long as somebody waits.
#[derive(Debug)]
#[must_use = "what is waited for breaks off once this is dropped"]
pub struct Waiting(Arc<AtomicBool>);

impl Drop for Waiting {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// A limit that is reached once a thread has worked for so long, the clock says four times as much, or nobody
/// waits any more.
pub fn within(time: Duration) -> (TimeLimit, Waiting) {
    let is_left = Arc::new(AtomicBool::new(false));
    let waiting = Waiting(Arc::clone(&is_left));
    let work = WorkLimit::new(time);
    let limit = TimeLimit::new(move || {
        if is_left.load(Ordering::Relaxed) {
            return Some("nobody waits for this any more");
        }
        work.is_reached().then_some(TOO_LONG)
    });
    (limit, waiting)
}

/// A limit as [`within`] makes it, for who waits to the end in any case.
pub fn of(time: Duration) -> TimeLimit {
    let work = WorkLimit::new(time);
    TimeLimit::new(move || work.is_reached().then_some(TOO_LONG))
}

/// Processor time that each thread of one piece of work may use.
struct WorkLimit {
    id: u64,
    time: Duration,
    start: Instant,
}

thread_local! {
    /// The limit that this thread was asked about last, and its processor time when it was asked first.
    static BEGUN: Cell<(u64, Duration)> = const { Cell::new((0, Duration::ZERO)) };
}

impl WorkLimit {
    fn new(time: Duration) -> WorkLimit {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        let limit = WorkLimit { id: NEXT.fetch_add(1, Ordering::Relaxed), time, start: Instant::now() };
        limit.begun();
        limit
    }

    fn is_reached(&self) -> bool {
        let begun = self.begun();
        let gone = self.start.elapsed();
        // Processor time is never more than the clock's, which is cheap to read.
        let worked = || processor_time().saturating_sub(begun);
        gone >= self.time && (worked() >= self.time || gone >= self.time * BY_THE_CLOCK)
    }

    /// This thread's processor time when it was asked about this limit first.
    fn begun(&self) -> Duration {
        let (id, begun) = BEGUN.get();
        if id == self.id {
            return begun;
        }
        let begun = processor_time();
        BEGUN.set((self.id, begun));
        begun
    }
}

/// How long this thread has had a processor.
fn processor_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    let whole = u64::try_from(time.tv_sec).unwrap_or_default();
    Duration::new(whole, u32::try_from(time.tv_nsec).unwrap_or_default())
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

    #[test]
    fn a_thread_that_waits_for_a_processor_has_not_worked() {
        let limit = WorkLimit::new(Duration::from_millis(20));
        let long_ago = |by| WorkLimit { start: Instant::now().checked_sub(by).unwrap(), ..limit };
        assert!(!long_ago(Duration::from_millis(60)).is_reached(), "the clock alone says little");
        assert!(long_ago(Duration::from_millis(80)).is_reached(), "but it is not without meaning");
        let begun = Instant::now();
        let worker = std::thread::spawn(move || while !limit.is_reached() {});
        worker.join().unwrap();
        assert!(begun.elapsed() >= Duration::from_millis(20), "another thread has its own time");
    }
}
