//! Objects that have changed lately, so that whoever shows them need not look at all of them again. Bounded:
//! who was away for too long starts from the beginning.

use opdev_object::meta::ObjectKey;
use std::collections::VecDeque;
use std::sync::Arc;

/// More than this is not remembered.
const MOST: usize = 2_048;

/// The newest changes, in order.
#[derive(Clone, Debug, Default)]
pub struct Changes {
    /// States that come from one another share this.
    lineage: Arc<()>,
    /// How many there have been.
    total: u64,
    /// Up to this one nothing is known one by one.
    forgotten: u64,
    recent: Arc<VecDeque<Arc<ObjectKey>>>,
    /// How often an unrelated object came or went, which concerns nobody who shows objects.
    unrelated: u64,
}

impl Changes {
    /// The objects that have changed since an earlier state, some more than once;
    /// `None` where that is not known.
    pub fn since(&self, earlier: &Changes) -> Option<impl Iterator<Item = &Arc<ObjectKey>>> {
        let known = Arc::ptr_eq(&self.lineage, &earlier.lineage)
            && earlier.total >= self.forgotten
            && earlier.total <= self.total;
        let new = usize::try_from(self.total.checked_sub(earlier.total)?).ok()?;
        known.then(|| self.recent.range(self.recent.len().saturating_sub(new)..))
    }

    /// Returns true if nothing has changed since.
    pub fn same(&self, earlier: &Changes) -> bool {
        Arc::ptr_eq(&self.lineage, &earlier.lineage)
            && self.total == earlier.total
            && self.unrelated == earlier.unrelated
    }

    pub(super) fn push(&mut self, key: Arc<ObjectKey>) {
        self.total += 1;
        let recent = Arc::make_mut(&mut self.recent);
        recent.push_back(key);
        if recent.len() > MOST {
            recent.pop_front();
            self.forgotten = self.total - MOST as u64;
        }
    }

    /// An unrelated object has come or gone.
    pub(super) fn unrelated(&mut self) {
        self.unrelated += 1;
    }

    /// Everything may have changed.
    pub(super) fn all(&mut self) {
        self.total += 1;
        self.forgotten = self.total;
        self.recent = Arc::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(name: &str) -> Arc<ObjectKey> {
        Arc::new(ObjectKey { name: name.to_owned(), ..ObjectKey::default() })
    }

    fn names(now: &Changes, earlier: &Changes) -> Option<Vec<String>> {
        Some(now.since(earlier)?.map(|key| key.name.clone()).collect())
    }

    #[test]
    fn what_changed_since_is_known_until_it_is_too_much() {
        let mut changes = Changes::default();
        changes.push(key("a"));
        let earlier = changes.clone();
        assert_eq!(names(&changes, &earlier).unwrap(), Vec::<String>::new());
        changes.push(key("b"));
        changes.push(key("c"));
        assert_eq!(names(&changes, &earlier).unwrap(), ["b", "c"]);
        assert_eq!(names(&earlier, &changes), None, "an older state knows nothing of a newer one");
        assert_eq!(names(&Changes::default(), &earlier), None, "nor does an unrelated object");
        for _ in 0..MOST {
            changes.push(key("d"));
        }
        assert_eq!(names(&changes, &earlier), None);
        let earlier = changes.clone();
        changes.all();
        assert_eq!(names(&changes, &earlier), None);
        let earlier = changes.clone();
        changes.push(key("e"));
        assert_eq!(names(&changes, &earlier).unwrap(), ["e"]);
    }
}
