//! Reconciles that have ended: a ring per object and one over all, bounded in number and in bytes.

use super::budget::json_bytes;
use super::shards::Shards;
use opdev_event::Reconcile;
use opdev_object::meta::ObjectKey;
use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

/// Bytes of a reconcile beside its texts: texts and trees of values take about twice their JSON.
const OVERHEAD: usize = 512;

/// Reconciles that have ended, oldest first.
#[derive(Clone, Debug, Default)]
pub struct History {
    all: Arc<VecDeque<Arc<Reconcile>>>,
    /// The bytes of each of them.
    sizes: Arc<VecDeque<usize>>,
    by_object: Shards<ObjectKey, Arc<VecDeque<Arc<Reconcile>>>>,
    bytes: usize,
    forgotten: u64,
    /// Objects whose newest reconcile has failed.
    failing: Arc<BTreeSet<ObjectKey>>,
    /// How many have been seen, those included that are no longer kept.
    pub total: u64,
}

impl History {
    /// Reconciles of all objects, oldest first.
    pub fn all(&self) -> &VecDeque<Arc<Reconcile>> {
        &self.all
    }

    /// Reconciles of one object, oldest first.
    pub fn of(&self, key: &ObjectKey) -> Option<&VecDeque<Arc<Reconcile>>> {
        self.by_object.get(key).map(Arc::as_ref)
    }

    /// The newest reconcile of an object.
    pub fn last(&self, key: &ObjectKey) -> Option<&Arc<Reconcile>> {
        self.of(key).and_then(VecDeque::back)
    }

    /// Returns true if two histories are the very same.
    pub fn same(&self, other: &History) -> bool {
        Arc::ptr_eq(&self.all, &other.all)
    }

    /// How many reconciles of all objects are no longer kept.
    pub fn forgotten(&self) -> u64 {
        self.forgotten
    }

    /// The bytes of all of them, estimated.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Objects whose newest reconcile has failed.
    pub fn failing(&self) -> &BTreeSet<ObjectKey> {
        &self.failing
    }

    /// Shares them as they are now.
    pub(super) fn failing_now(&self) -> Arc<BTreeSet<ObjectKey>> {
        Arc::clone(&self.failing)
    }

    /// An object that is gone fails no more, though its last reconcile did.
    pub(super) fn object_gone(&mut self, key: &ObjectKey) {
        self.note_failure(key, false);
    }

    fn note_failure(&mut self, key: &ObjectKey, failed: bool) {
        if self.failing.contains(key) != failed {
            let failing = Arc::make_mut(&mut self.failing);
            if failed {
                failing.insert(key.clone());
            } else {
                failing.remove(key);
            }
        }
    }

    /// Adds a reconcile. One that is told again, because more is known of it now, takes its own place.
    pub(super) fn push(&mut self, reconcile: &Arc<Reconcile>, per_object: usize, limit: usize) {
        if reconcile.process.as_ref().is_some_and(|process| process.told_again) {
            self.replace(reconcile);
            return;
        }
        self.total += 1;
        let key = reconcile.object.key();
        self.note_failure(&key, reconcile.failure.is_some());
        let ring = self.by_object.piece_mut(&key).entry(key).or_default();
        let ring = Arc::make_mut(ring);
        ring.push_back(Arc::clone(reconcile));
        let crowded = (ring.len() > per_object).then(|| ring.pop_front()).flatten();
        let size = OVERHEAD + 2 * json_bytes(reconcile.as_ref());
        self.bytes += size;
        Arc::make_mut(&mut self.all).push_back(Arc::clone(reconcile));
        Arc::make_mut(&mut self.sizes).push_back(size);
        let at = crowded.and_then(|old| self.all.iter().position(|known| known.id == old.id));
        if let Some(at) = at {
            self.remove(at);
        } else if self.all.len() > limit
            && let Some(old) = self.remove(0)
        {
            self.leave_ring(&old);
        }
    }

    /// One that is forgotten already stays so.
    fn replace(&mut self, reconcile: &Arc<Reconcile>) {
        let Some(at) = self.all.iter().rposition(|known| known.id == reconcile.id) else { return };
        let size = OVERHEAD + 2 * json_bytes(reconcile.as_ref());
        let (all, sizes) = (Arc::make_mut(&mut self.all), Arc::make_mut(&mut self.sizes));
        let (Some(known), Some(before)) = (all.get_mut(at), sizes.get_mut(at)) else { return };
        self.bytes = self.bytes - *before + size;
        *before = size;
        let key = known.object.key();
        *known = Arc::clone(reconcile);
        let ring = self.by_object.piece_mut(&key).get_mut(&key).map(Arc::make_mut);
        if let Some(known) = ring.into_iter().flatten().find(|known| known.id == reconcile.id) {
            *known = Arc::clone(reconcile);
        }
    }

    fn remove(&mut self, at: usize) -> Option<Arc<Reconcile>> {
        self.bytes -= Arc::make_mut(&mut self.sizes).remove(at).unwrap_or_default();
        self.forgotten += 1;
        Arc::make_mut(&mut self.all).remove(at)
    }

    /// Forgets the oldest reconciles until no more than this many bytes are left; the newest of each object
    /// go last.
    pub(super) fn shed(&mut self, goal: usize) {
        for last_ones_too in [false, true] {
            if self.bytes <= goal {
                return;
            }
            let (mut kept, mut sizes) = (VecDeque::new(), VecDeque::new());
            let all: Vec<_> = self.all.iter().cloned().zip(self.sizes.iter().copied()).collect();
            for (reconcile, size) in all {
                let is_last =
                    self.last(&reconcile.object.key()).is_some_and(|last| Arc::ptr_eq(last, &reconcile));
                if self.bytes > goal && (last_ones_too || !is_last) {
                    self.bytes -= size;
                    self.forgotten += 1;
                    self.leave_ring(&reconcile);
                } else {
                    kept.push_back(reconcile);
                    sizes.push_back(size);
                }
            }
            (self.all, self.sizes) = (Arc::new(kept), Arc::new(sizes));
        }
    }

    /// Takes a reconcile out of its object's ring.
    fn leave_ring(&mut self, old: &Arc<Reconcile>) {
        let key = old.object.key();
        let piece = self.by_object.piece_mut(&key);
        if let Some(ring) = piece.get_mut(&key) {
            Arc::make_mut(ring).retain(|known| !Arc::ptr_eq(known, old));
            if ring.is_empty() {
                piece.remove(&key);
                self.note_failure(&key, false);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::State;
    use crate::tests::reconcile;
    use opdev_event::{Event, Outcome};
    use std::sync::Arc;

    #[test]
    fn a_guess_that_was_taken_back_makes_no_second_reconcile() {
        let mut state = State::default();
        let mut reconcile = reconcile(1, "a", Outcome::Unchanged);
        reconcile.process = Some(Box::new(opdev_event::ProgramTrace {
            controller: "a".to_owned(),
            reconcile_id: "1".to_owned(),
            traced: opdev_event::TraceLevel::Full,
            reads: Vec::new(),
            own_writes: Vec::new(),
            guessed_calls: vec![0],
            disturbed_calls: Vec::new(),
            late_calls: 0,
            told_again: false,
            findings: Vec::new(),
            evidence: opdev_event::evidence::Handover::default(),
        }));
        state.reduce(Event::Reconciled(Arc::new(reconcile.clone())));
        let process = reconcile.process.as_mut().unwrap();
        process.guessed_calls.clear();
        process.told_again = true;
        state.reduce(Event::Reconciled(Arc::new(reconcile)));
        assert_eq!((state.history.all().len(), state.history.total), (1, 1));
        assert!(state.history.all()[0].process.as_ref().unwrap().guessed_calls.is_empty());
    }

    #[test]
    fn an_object_fails_until_a_reconcile_of_it_does_not() {
        let mut state = State::default();
        let key = reconcile(0, "a", Outcome::Unchanged).object.key();
        for (id, outcome, fails) in
            [(1, Outcome::Failed, true), (2, Outcome::Failed, true), (3, Outcome::Unchanged, false)]
        {
            state.reduce(Event::Reconciled(Arc::new(reconcile(id, "a", outcome))));
            assert_eq!(state.history.failing().contains(&key), fails);
        }
    }
}
