//! Calls and answers of a traced process, on their way from the connections to the task that makes reconciles
//! of it.
//!
//! To wake the task takes about as long as a tenth of a call, and the call would wait for it. So the task is
//! woken for the first observation only. While more come, it looks by itself every few milliseconds.

use opdev_controlplane::Observation;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};

/// How many observations wait at most.
const ROOM: usize = 4096;

/// How often the task looks while observations come.
const PACE: Duration = Duration::from_millis(3);

/// See the module. Connections put observations in, in the order of their answers; one task takes them out.
#[derive(Debug, Default)]
pub(crate) struct ObservationQueue {
    waiting: Mutex<Vec<Observation>>,
    /// True if the task waits to be woken.
    sleeps: AtomicBool,
    woken: Notify,
}

impl ObservationQueue {
    /// Puts one in. Says whether there was room.
    pub(crate) fn push(&self, observation: Observation) -> bool {
        {
            let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
            if waiting.len() >= ROOM {
                return false;
            }
            waiting.push(observation);
        }
        if self.sleeps.load(Ordering::Acquire) {
            self.woken.notify_one();
        }
        true
    }

    /// All that have come up to now.
    pub(crate) fn take(&self) -> Vec<Observation> {
        std::mem::take(&mut *self.waiting.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Waits for the next ones. `looked` is when the task has last found some; the caller keeps it, for a
    /// wait may be given up for something else and begun again.
    pub(crate) async fn next(&self, looked: &mut Option<Instant>) -> Vec<Observation> {
        loop {
            self.sleeps.store(false, Ordering::Release);
            if let Some(last) = *looked {
                sleep_until(last + PACE).await;
            }
            let found = self.take();
            if !found.is_empty() {
                *looked = Some(Instant::now());
                return found;
            }
            self.sleeps.store(true, Ordering::Release);
            // An observation may have come before its sender knew that.
            if self.waiting.lock().unwrap_or_else(PoisonError::into_inner).is_empty() {
                self.woken.notified().await;
            }
            *looked = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use opdev_controlplane::Asked;
    use std::sync::Arc;

    fn observation(number: u64) -> Observation {
        Observation::WatchEnded(Arc::new(Asked {
            number,
            at: jiff::Timestamp::UNIX_EPOCH,
            method: http::Method::GET,
            path: String::new(),
            query: String::new(),
            mark: None,
            user_agent: String::new(),
            user: String::new(),
        }))
    }

    fn numbers(observations: &[Observation]) -> Vec<u64> {
        let number = |observation: &Observation| match observation {
            Observation::WatchEnded(asked) => asked.number,
            other => panic!("{other:?}"),
        };
        observations.iter().map(number).collect()
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 4)]
    async fn none_is_lost_and_the_order_stays() {
        let queue = Arc::new(ObservationQueue::default());
        let bringing = Arc::clone(&queue);
        let bring = std::thread::spawn(move || {
            for number in 0..20_000 {
                while !bringing.push(observation(number)) {
                    std::thread::yield_now();
                }
                // Now and then the task falls asleep.
                while number % 2_000 == 0 && !bringing.sleeps.load(Ordering::Acquire) {
                    std::thread::yield_now();
                }
            }
        });
        let (mut seen, mut looked) = (Vec::new(), None);
        while seen.len() < 20_000 {
            // Something else is heard first, again and again.
            tokio::select! {
                found = queue.next(&mut looked) => seen.extend(numbers(&found)),
                () = tokio::time::sleep(PACE / 3) => {}
            }
        }
        assert_eq!(seen, (0..20_000).collect::<Vec<_>>());
        bring.join().unwrap();
    }

    #[tokio::test]
    async fn the_first_one_wakes_the_task_and_a_full_queue_says_so() {
        let queue = Arc::new(ObservationQueue::default());
        let waiting = Arc::clone(&queue);
        let task = tokio::spawn(async move { waiting.next(&mut None).await });
        tokio::task::yield_now().await;
        assert!(queue.push(observation(7)));
        assert_eq!(numbers(&task.await.unwrap()), [7]);
        for number in 0..ROOM as u64 {
            assert!(queue.push(observation(number)));
        }
        assert!(!queue.push(observation(0)));
        assert_eq!(queue.take().len(), ROOM);
    }
}
