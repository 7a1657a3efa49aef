//! Marked rows. Marks follow their objects, and go with them.

use opdev_object::meta::ObjectKey;
use std::collections::BTreeSet;

/// Marked objects, and where a range begins.
#[derive(Clone, Debug, Default)]
pub struct Marks {
    pub keys: BTreeSet<ObjectKey>,
    pub last: Option<ObjectKey>,
}

impl Marks {
    /// Returns true if a row is marked.
    pub fn has(&self, key: &ObjectKey) -> bool {
        self.keys.contains(key)
    }

    /// How many rows are.
    pub fn count(&self) -> usize {
        self.keys.len()
    }

    /// Unmarks all; false where nothing was marked.
    pub fn clear(&mut self) -> bool {
        self.last = None;
        !std::mem::take(&mut self.keys).is_empty()
    }

    /// Objects that are gone are not marked any more.
    pub fn settle(&mut self, is_there: impl Fn(&ObjectKey) -> bool) {
        self.keys.retain(is_there);
    }
}
