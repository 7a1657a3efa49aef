//! Passes that have ended: a ring per object and one over all, both bounded.

use super::shards::Shards;
use crate::event::Reconcile;
use opdev_object::meta::ObjectKey;
use std::collections::VecDeque;
use std::sync::Arc;

/// Passes that have ended, oldest first.
#[derive(Clone, Debug, Default)]
pub struct History {
    all: Arc<VecDeque<Arc<Reconcile>>>,
    by_object: Shards<ObjectKey, Arc<VecDeque<Arc<Reconcile>>>>,
    /// How many have been seen, those included that are no longer kept.
    pub total: u64,
}

impl History {
    /// Passes of all objects, oldest first.
    pub fn all(&self) -> &VecDeque<Arc<Reconcile>> {
        &self.all
    }

    /// Passes of one object, oldest first.
    pub fn of(&self, key: &ObjectKey) -> Option<&VecDeque<Arc<Reconcile>>> {
        self.by_object.get(key).map(Arc::as_ref)
    }

    /// The newest pass of an object.
    pub fn last(&self, key: &ObjectKey) -> Option<&Arc<Reconcile>> {
        self.of(key).and_then(VecDeque::back)
    }

    /// Whether two histories are the very same.
    pub fn same(&self, other: &History) -> bool {
        Arc::ptr_eq(&self.all, &other.all)
    }

    pub(super) fn push(&mut self, pass: &Arc<Reconcile>, per_object: usize, limit: usize) {
        self.total += 1;
        let key = pass.object.key();
        let ring = self.by_object.piece_mut(&key).entry(key).or_default();
        let ring = Arc::make_mut(ring);
        ring.push_back(Arc::clone(pass));
        let crowded = (ring.len() > per_object).then(|| ring.pop_front()).flatten();
        let all = Arc::make_mut(&mut self.all);
        all.push_back(Arc::clone(pass));
        if let Some(old) = crowded
            && let Some(at) = all.iter().position(|known| known.id == old.id)
        {
            all.remove(at);
        } else if let Some(old) = crowded_out(all, limit) {
            self.forget(&old);
        }
    }

    /// Takes the oldest pass of all out of its object's ring, too.
    fn forget(&mut self, old: &Reconcile) {
        let key = old.object.key();
        let piece = self.by_object.piece_mut(&key);
        if let Some(ring) = piece.get_mut(&key) {
            Arc::make_mut(ring).retain(|known| known.id != old.id);
            if ring.is_empty() {
                piece.remove(&key);
            }
        }
    }
}

fn crowded_out(all: &mut VecDeque<Arc<Reconcile>>, limit: usize) -> Option<Arc<Reconcile>> {
    if all.len() > limit { all.pop_front() } else { None }
}
