//! The one clock of this package: a thread that sets a flag when the time of a call is over. Nothing here
//! tells the time to anybody.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread;
use std::time::Duration;

/// Stops the clock when it is dropped.
pub(crate) struct Clock(#[allow(dead_code, reason = "its end is what is heard")] Sender<()>);

/// Sets the flag after the time, and then calls `late`, unless the clock is dropped before.
pub(crate) fn stop_after(
    time: Duration,
    stop: Arc<AtomicBool>,
    late: impl FnOnce() + Send + 'static,
) -> std::io::Result<Clock> {
    let (over, finished) = mpsc::channel::<()>();
    let wait = move || {
        if finished.recv_timeout(time) == Err(RecvTimeoutError::Timeout) {
            stop.store(true, Ordering::Relaxed);
            late();
        }
    };
    thread::Builder::new().name("call-time".to_owned()).stack_size(64 << 10).spawn(wait)?;
    Ok(Clock(over))
}

/// `5 s`, `250 ms`.
pub(crate) fn in_words(time: Duration) -> String {
    if time.subsec_millis() == 0 {
        format!("{} s", time.as_secs())
    } else {
        format!("{} ms", time.as_millis())
    }
}
