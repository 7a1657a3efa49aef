//! When objects are reconciled again by themselves: after a period, after a wait, after a failure. Pure: the
//! time is handed in.

use opdev_event::CauseKind;
use opdev_object::meta::ObjectKey;
use std::collections::{BTreeSet, HashMap, HashSet};
use tokio::time::Instant;

/// The timer of one object. An object that is ready or runs has none.
#[derive(Debug)]
pub(super) struct Timer {
    at: Instant,
    sequence: u64,
    /// The cause of the reconcile that it leads to.
    pub(super) why: CauseKind,
    /// True if it is the pause after a failure.
    pub(super) backoff: bool,
}

/// The timers of all objects.
#[derive(Debug, Default)]
pub(super) struct Timers {
    by_time: BTreeSet<(Instant, u64)>,
    owners: HashMap<u64, ObjectKey>,
    backing_off: HashSet<u64>,
    sequence: u64,
}

impl Timers {
    /// Sets the timer of an object that has none. `backoff` is whether it is the pause after a failure.
    pub(super) fn set(&mut self, key: &ObjectKey, at: Instant, why: CauseKind, backoff: bool) -> Timer {
        let sequence = self.sequence;
        self.sequence += 1;
        self.by_time.insert((at, sequence));
        self.owners.insert(sequence, key.clone());
        if backoff {
            self.backing_off.insert(sequence);
        }
        Timer { at, sequence, why, backoff }
    }

    /// Takes a timer back.
    pub(super) fn stop(&mut self, timer: &Timer) {
        self.by_time.remove(&(timer.at, timer.sequence));
        self.owners.remove(&timer.sequence);
        self.backing_off.remove(&timer.sequence);
    }

    /// Lets a timer end now.
    pub(super) fn hurry(&mut self, timer: &mut Timer, now: Instant) {
        self.by_time.remove(&(timer.at, timer.sequence));
        timer.at = now;
        self.by_time.insert((now, timer.sequence));
    }

    /// The next object whose timer has ended.
    pub(super) fn take(&mut self, now: Instant) -> Option<ObjectKey> {
        let (_, sequence) = *self.by_time.first().filter(|(at, _)| *at <= now)?;
        self.by_time.pop_first();
        self.backing_off.remove(&sequence);
        self.owners.remove(&sequence)
    }

    /// When the next timer ends.
    pub(super) fn next(&self) -> Option<Instant> {
        self.by_time.first().map(|(at, _)| *at)
    }

    /// How many objects wait after a failure.
    pub(super) fn backing_off(&self) -> usize {
        self.backing_off.len()
    }
}
