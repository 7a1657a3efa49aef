//! Threads that may wait. A worker of the async runtime that waits for an answer which another task has to
//! bring stops every task that is queued behind it, and once all workers wait nobody is left to bring any
//! answer: the server stands still for good. So code that blocks needs a `MayWait`, and only threads that
//! `run` has started have one. Clippy refuses the waiting calls of the standard library and of tokio
//! elsewhere (`.clippy.toml` of this package).

use std::cell::Cell;
use std::marker::PhantomData;
use tokio::task::JoinError;

/// The work of the current thread.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Here {
    /// Something that must not wait.
    Worker,
    /// An attempt that must not wait, but may be made again where waiting is allowed.
    Attempt { refused: bool },
    /// Work that may wait.
    Waiter,
}

thread_local! {
    static HERE: Cell<Here> = const { Cell::new(Here::Worker) };
}

/// Proof that the current thread may wait. It cannot be sent to another thread.
#[derive(Debug)]
pub struct MayWait(PhantomData<*const ()>);

impl MayWait {
    /// The proof, where the current thread was started by `run`. An attempt that asks in vain is made again.
    pub fn here() -> Option<Self> {
        HERE.with(|here| match here.get() {
            Here::Waiter => Some(MayWait(PhantomData)),
            Here::Attempt { .. } => {
                here.set(Here::Attempt { refused: true });
                None
            }
            Here::Worker => None,
        })
    }
}

/// Puts back what the thread was doing before, also after a panic.
struct Restored(Here);

impl Drop for Restored {
    fn drop(&mut self) {
        HERE.set(self.0);
    }
}

fn enter(here: Here) -> Restored {
    Restored(HERE.replace(here))
}

/// Does work on a thread that may wait. Goes on to the end where nobody waits for the result any more.
///
/// # Errors
/// Where the work panics, or the runtime ends before it has begun.
pub async fn run<T, F>(work: F) -> Result<T, JoinError>
where
    T: Send + 'static,
    F: FnOnce() -> T + Send + 'static,
{
    #[expect(clippy::disallowed_methods, reason = "this is the one place")]
    let work = tokio::task::spawn_blocking(waiter(work));
    work.await
}

/// Work that may wait, for `spawn_blocking` and its like.
pub fn waiter<T>(work: impl FnOnce() -> T) -> impl FnOnce() -> T {
    move || {
        let _restored = enter(Here::Waiter);
        work()
    }
}

/// Does work here and now, unless it has to wait for something: then the result is `None`, and the work has
/// to be done by `run`. Work that is refused to wait must leave nothing behind that may not be done twice.
pub fn attempt<T>(work: impl FnOnce() -> T) -> Option<T> {
    let _restored = enter(Here::Attempt { refused: false });
    let result = work();
    let refused = HERE.with(|here| here.get() == Here::Attempt { refused: true });
    (!refused).then_some(result)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn only_a_thread_of_its_own_may_wait() {
        assert!(MayWait::here().is_none());
        assert!(run(|| MayWait::here().is_some()).await.unwrap());
        assert!(!tokio::task::spawn_blocking(|| MayWait::here().is_some()).await.unwrap());
        // A pool thread that is used again has forgotten what it was.
        assert!(run(|| panic!("on purpose")).await.is_err());
        assert!(!tokio::task::spawn_blocking(|| MayWait::here().is_some()).await.unwrap());
    }

    #[test]
    fn an_attempt_that_would_have_to_wait_gives_nothing() {
        assert_eq!(attempt(|| 1), Some(1));
        assert_eq!(attempt(|| MayWait::here().map_or(1, |_| 2)), None);
        assert_eq!(attempt(|| 3), Some(3));
    }
}
