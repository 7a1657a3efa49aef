//! Turns of runs: no more at once than the user has asked for. What tries an alarm again comes before new
//! plans, so that findings do not wait for the end, and plans that have ended do not wait for the one before.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::{oneshot, watch};

/// All turns of a campaign.
#[derive(Debug)]
pub struct Turns {
    queue: Mutex<Queue>,
    /// All turns, taken or not.
    count: watch::Sender<usize>,
}

#[derive(Debug)]
struct Queue {
    free: usize,
    /// Runs that try an alarm again, or that others wait for.
    urgent: VecDeque<oneshot::Sender<Turn>>,
    /// First runs of plans.
    plans: VecDeque<oneshot::Sender<Turn>>,
}

/// The right to run. Ends where it is dropped.
#[derive(Debug)]
pub struct Turn(Option<Arc<Turns>>);

impl Turns {
    /// So many at once, at least one.
    pub fn new(count: usize) -> Arc<Turns> {
        let count = count.max(1);
        let queue = Queue { free: count, urgent: VecDeque::new(), plans: VecDeque::new() };
        Arc::new(Turns { queue: Mutex::new(queue), count: watch::Sender::new(count) })
    }

    /// From now on there are so many, unless there are more already.
    pub fn widen(self: &Arc<Self>, count: usize) {
        let mut more = 0;
        self.count.send_if_modified(|known| {
            more = count.saturating_sub(*known);
            *known += more;
            more > 0
        });
        for _ in 0..more {
            // A turn that ends is handed on, or free.
            drop(Turn(Some(Arc::clone(self))));
        }
    }

    /// How many there are, and news of more.
    pub fn count(&self) -> watch::Receiver<usize> {
        self.count.subscribe()
    }

    /// Waits for a turn, before all new plans.
    pub async fn urgent(self: &Arc<Self>) -> Turn {
        self.take(|queue| &mut queue.urgent).await
    }

    /// Waits for the turn of a new plan: they get theirs in their order.
    pub async fn plan(self: &Arc<Self>) -> Turn {
        self.take(|queue| &mut queue.plans).await
    }

    async fn take(self: &Arc<Self>, of: fn(&mut Queue) -> &mut VecDeque<oneshot::Sender<Turn>>) -> Turn {
        loop {
            let waiting = {
                let mut queue = self.lock();
                if queue.free > 0 {
                    queue.free -= 1;
                    return Turn(Some(Arc::clone(self)));
                }
                let (sender, waiting) = oneshot::channel();
                of(&mut queue).push_back(sender);
                waiting
            };
            if let Ok(turn) = waiting.await {
                return turn;
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes out whoever is next; without anybody a turn is free.
    fn next(&self) -> Option<oneshot::Sender<Turn>> {
        let mut queue = self.lock();
        let next = queue.urgent.pop_front().or_else(|| queue.plans.pop_front());
        queue.free += usize::from(next.is_none());
        next
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        let Some(turns) = self.0.take() else { return };
        while let Some(next) = turns.next() {
            match next.send(Turn(Some(Arc::clone(&turns)))) {
                Ok(()) => return,
                // Nobody waits there any more: it is somebody else's.
                Err(mut turn) => turn.0 = None,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::FutureExt as _;

    #[tokio::test]
    async fn what_is_urgent_comes_before_plans_and_these_in_their_order() {
        let turns = Turns::new(1);
        let first = turns.plan().await;
        let (second, third, again) =
            (Box::pin(turns.plan()), Box::pin(turns.plan()), Box::pin(turns.urgent()));
        let (mut second, mut third, mut again) = (second, third, again);
        assert!((&mut second).now_or_never().is_none() && (&mut third).now_or_never().is_none());
        assert!((&mut again).now_or_never().is_none());
        drop(first);
        assert!((&mut second).now_or_never().is_none(), "what is urgent is first");
        drop((&mut again).now_or_never().unwrap());
        assert!((&mut third).now_or_never().is_none());
        let turn = (&mut second).now_or_never().unwrap();
        drop(turn);
        assert!((&mut third).now_or_never().is_some());
    }

    #[tokio::test]
    async fn further_turns_are_for_those_who_wait() {
        let turns = Turns::new(1);
        let _first = turns.plan().await;
        let mut second = Box::pin(turns.plan());
        assert!((&mut second).now_or_never().is_none());
        turns.widen(3);
        let _second = (&mut second).now_or_never().unwrap();
        let _third = turns.urgent().now_or_never().unwrap();
        turns.widen(2);
        assert!(turns.urgent().now_or_never().is_none(), "there are more already");
    }

    #[tokio::test]
    async fn a_turn_of_somebody_who_has_gone_is_not_lost() {
        let turns = Turns::new(1);
        let turn = turns.plan().await;
        let mut gone = Box::pin(turns.plan());
        assert!((&mut gone).now_or_never().is_none());
        let mut given = Box::pin(turns.plan());
        assert!((&mut given).now_or_never().is_none());
        drop(gone);
        drop(turn);
        // It was handed to one that goes before it looks.
        drop(given);
        assert!(turns.urgent().now_or_never().is_some());
    }
}
