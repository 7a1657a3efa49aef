//! Requests under way, each with a way to drop it.

use opdev_event::RequestId;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use tokio_util::sync::CancellationToken;

/// Requests under way.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tasks {
    running: Arc<Mutex<HashMap<RequestId, CancellationToken>>>,
}

impl Tasks {
    /// Runs `work`; `None` where it was cancelled. Cancelling drops it at once, calls under way with it.
    pub(super) async fn run<T>(&self, id: RequestId, work: impl Future<Output = T>) -> Option<T> {
        let token = CancellationToken::new();
        self.lock().insert(id, token.clone());
        // Also where this very future is dropped.
        let _gone = Gone { tasks: self, id };
        token.run_until_cancelled(work).await
    }

    /// Drops a request; false where it has ended.
    pub(super) fn cancel(&self, id: RequestId) -> bool {
        let token = self.lock().get(&id).cloned();
        token.inspect(CancellationToken::cancel).is_some()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<RequestId, CancellationToken>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

struct Gone<'a> {
    tasks: &'a Tasks,
    id: RequestId,
}

impl Drop for Gone<'_> {
    fn drop(&mut self) {
        self.tasks.lock().remove(&self.id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_cancelled_task_is_dropped_and_forgotten() {
        struct Noticed(Arc<Mutex<bool>>);
        impl Drop for Noticed {
            fn drop(&mut self) {
                *self.0.lock().unwrap() = true;
            }
        }
        let (tasks, dropped) = (Tasks::default(), Arc::new(Mutex::new(false)));
        let noticed = Noticed(Arc::clone(&dropped));
        let work = tasks.run(7, async move {
            let _noticed = noticed;
            std::future::pending::<()>().await;
        });
        let (result, cancelled) = tokio::join!(work, async { tasks.cancel(7) });
        assert_eq!((result, cancelled), (None, true));
        assert!(*dropped.lock().unwrap(), "what hangs on the call goes with it");
        assert!(!tasks.cancel(7), "it has ended");
        assert_eq!(tasks.run(8, async { 1 }).await, Some(1));
    }
}
