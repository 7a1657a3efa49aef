//! How many scenarios are learned before their plans can be tried. To learn one is to wait, most of the time:
//! several at once take hardly longer. But their runs come before all plans, so that too many would keep the
//! plans of the first one waiting.

use crate::turns::Turns;
use std::sync::Arc;
use tokio::sync::watch;

/// The scenarios of a campaign, by their numbers from 0 on.
#[derive(Debug)]
pub struct Learning {
    /// So many are learned and taken, to try their plans.
    taken: watch::Sender<usize>,
    turns: Arc<Turns>,
    /// Undisturbed runs of each scenario.
    runs: usize,
}

impl Learning {
    /// Scenarios that each take so many runs to be learned.
    pub fn new(turns: &Arc<Turns>, runs: usize) -> Learning {
        Learning { taken: watch::Sender::new(0), turns: Arc::clone(turns), runs: runs.max(1) }
    }

    /// Waits until a scenario is to be learned: as many at once as there are turns for their runs, at least
    /// one.
    pub async fn may_begin(&self, number: usize) {
        let (mut taken, mut count) = (self.taken.subscribe(), self.turns.count());
        loop {
            let at_once = count.borrow_and_update().div_ceil(self.runs);
            let begun = *taken.borrow_and_update() + at_once;
            if number < begun {
                return;
            }
            tokio::select! {
                Ok(()) = taken.changed() => {}
                Ok(()) = count.changed() => {}
                // Nobody is left who could change anything.
                else => return,
            }
        }
    }

    /// One more is taken.
    pub fn take(&self) {
        self.taken.send_modify(|taken| *taken += 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::FutureExt as _;

    #[tokio::test]
    async fn as_many_are_learned_as_have_turns() {
        let turns = Turns::new(1);
        let learning = Learning::new(&turns, 3);
        let begins = |number: usize| learning.may_begin(number).now_or_never().is_some();
        assert_eq!([0, 1, 2].map(begins), [true, false, false], "one after the other");
        let mut second = Box::pin(learning.may_begin(1));
        assert!((&mut second).now_or_never().is_none());
        turns.widen(7);
        assert!((&mut second).now_or_never().is_some(), "it hears of further turns");
        assert_eq!([1, 2, 3].map(begins), [true, true, false]);
        let mut fourth = Box::pin(learning.may_begin(3));
        assert!((&mut fourth).now_or_never().is_none());
        learning.take();
        assert!((&mut fourth).now_or_never().is_some(), "one was taken");
    }
}
