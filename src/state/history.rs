//! Reconciles that have ended: a ring per object and one over all, bounded in number and in bytes.

use super::budget::json_bytes;
use super::shards::Shards;
use opdev_event::Reconcile;
use opdev_object::meta::ObjectKey;
use std::collections::VecDeque;
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

    /// Adds a reconcile. One that is told again, because more is known of it now, takes its own place.
    pub(super) fn push(&mut self, reconcile: &Arc<Reconcile>, per_object: usize, limit: usize) {
        if reconcile.process.as_ref().is_some_and(|process| process.late_calls > 0) {
            self.replace(reconcile);
            return;
        }
        self.total += 1;
        let key = reconcile.object.key();
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
            }
        }
    }
}
