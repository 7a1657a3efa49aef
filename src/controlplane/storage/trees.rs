//! How long the trees of stored objects are kept: those that were written or asked for last, up to so many
//! bytes of text, and none of a version that was replaced. The text of an object whose tree is gone stays
//! whole a while longer, then it is packed. One for each table, on one list of all tables. Never keeps an
//! object for long that nobody else has.

use super::{Key, Stored};
use opdev_apimachinery::attributes::{Attributes, Indexing, Shared};
use opdev_object::pack::{Dictionaries, Packed};
use serde_json::Value;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};

/// Bytes of text of the objects whose trees are kept, unless told otherwise. A tree takes about five times
/// its text.
const KEPT: usize = 6 * 1024 * 1024;
/// Bytes of the texts that stay whole without a tree.
const WHOLE: usize = 3 * 1024 * 1024;

/// The trees of one table.
#[derive(Debug)]
pub(super) struct Trees {
    indexing: &'static Indexing,
    all: Arc<All>,
    dictionaries: Dictionaries,
}

/// The trees of all tables of a store.
#[derive(Debug)]
pub(super) struct All {
    /// Bytes of text of the objects whose trees are kept.
    limit: AtomicUsize,
    kept: Mutex<Kept>,
    shared: Shared,
}

impl Default for All {
    fn default() -> Self {
        All { limit: AtomicUsize::new(KEPT), kept: Mutex::default(), shared: Shared::default() }
    }
}

impl All {
    /// How many bytes of text the objects have whose trees are kept from now on.
    pub(super) fn set_limit(&self, bytes: usize) {
        self.limit.store(bytes, Ordering::Relaxed);
    }
}

/// Oldest first, each with the bytes of its text.
#[derive(Debug, Default)]
struct Kept {
    objects: VecDeque<(Arc<Stored>, usize)>,
    /// Bytes of the objects whose trees are kept.
    bytes: usize,
    /// How many of the objects are there although they were replaced.
    replaced: usize,
    /// The objects whose tree is gone and whose text is whole.
    whole: VecDeque<(Weak<Stored>, usize)>,
    whole_bytes: usize,
}

impl Trees {
    pub(crate) fn new(indexing: &'static Indexing, all: Arc<All>) -> Arc<Self> {
        Arc::new(Trees { indexing, all, dictionaries: Dictionaries::default() })
    }

    /// The attributes of an object; `before` are those before it changed.
    pub(crate) fn attributes(&self, object: &Value, before: Option<&Attributes>) -> Attributes {
        Attributes::after(self.indexing, object, &self.all.shared, before)
    }

    /// Attributes read off the text of an object; `None` where that is no JSON.
    pub(super) fn attributes_of_text(&self, text: &[u8]) -> Option<Attributes> {
        Attributes::of_text(self.indexing, text, &self.all.shared)
    }

    /// A key whose namespace is kept once for all objects in it.
    pub(crate) fn key(&self, key: &Key) -> Key {
        Key { namespace: self.all.shared.text(&key.namespace), name: key.name.clone() }
    }

    /// A text in less space; `None` where that is not worth it.
    pub(super) fn pack(&self, text: &[u8]) -> Option<Packed> {
        self.dictionaries.pack(text)
    }

    /// Keeps the tree of an object, unless it is a record, and lets go of that of the version before, if
    /// there is one, and of the oldest that nobody asked for since.
    pub(crate) fn keep(&self, object: Arc<Stored>, before: Option<&Arc<Stored>>) {
        let size = object.size();
        let record = self.indexing.is_record.then(|| object.clone());
        let before = before.map(|before| (before, before.size()));
        let (resting, packing) = {
            let mut kept = self.all.kept.lock().unwrap_or_else(PoisonError::into_inner);
            if record.is_some() {
                kept.rest(&object, size);
            } else {
                object.set_kept(true);
                kept.objects.push_back((object, size));
                kept.bytes += size;
            }
            if let Some((before, size)) = before {
                kept.replace(before, size);
            }
            (kept.without_tree(self.all.limit.load(Ordering::Relaxed)), kept.take_unpacked())
        };
        // It was read a moment ago, and memory that is freed now is used again before it leaves the
        // processor's cache.
        before.iter().for_each(|(before, _)| before.forget_tree());
        record.iter().for_each(|record| record.forget_tree());
        resting.iter().for_each(|object| object.forget_tree());
        packing.iter().for_each(|object| object.pack());
    }
}

impl Kept {
    /// Takes a version off that is no longer the newest.
    fn replace(&mut self, before: &Arc<Stored>, size: usize) {
        if !before.set_kept(false) {
            return;
        }
        self.bytes = self.bytes.saturating_sub(size);
        self.rest(before, size);
        self.replaced += 1;
        if self.replaced > 64 && self.replaced * 2 > self.objects.len() {
            self.objects.retain(|(object, _)| object.is_kept());
            self.replaced = 0;
        }
    }

    fn rest(&mut self, object: &Arc<Stored>, size: usize) {
        self.whole.push_back((Arc::downgrade(object), size));
        self.whole_bytes += size;
    }

    /// The objects that lose their tree now.
    fn without_tree(&mut self, limit: usize) -> Vec<Arc<Stored>> {
        let mut resting = Vec::new();
        // All of them may have been asked for: then the oldest goes nevertheless.
        let mut chances = self.objects.len();
        while self.bytes > limit
            && let Some((oldest, size)) = self.objects.pop_front()
        {
            if !oldest.is_kept() {
                self.replaced = self.replaced.saturating_sub(1);
                continue;
            }
            let alone = Arc::strong_count(&oldest) == 1;
            if chances > 0 && !alone && oldest.was_asked() {
                chances -= 1;
                self.objects.push_back((oldest, size));
                continue;
            }
            self.bytes = self.bytes.saturating_sub(size);
            oldest.set_kept(false);
            // A tree that nobody else has is freed.
            if !alone {
                self.rest(&oldest, size);
            }
            resting.push(oldest);
        }
        resting
    }

    /// The objects whose text is packed now.
    fn take_unpacked(&mut self) -> Vec<Arc<Stored>> {
        let mut packing = Vec::new();
        while self.whole_bytes > WHOLE
            && let Some((oldest, size)) = self.whole.pop_front()
        {
            self.whole_bytes -= size;
            packing.extend(oldest.upgrade());
        }
        packing
    }
}

#[cfg(test)]
mod tests {
    use crate::{Expected, Key, Store};
    use serde_json::{Value, json};

    #[test]
    fn of_records_no_trees_are_kept_and_they_read_the_same() {
        let store = Store::default();
        let put = |table: &str, n: usize, expected: Expected, text: &str| {
            let object = json!({"kind": "A", "metadata": {"name": n.to_string()}, "text": text.repeat(300)});
            store.put(table, &Key::new("", &n.to_string()), expected, object).unwrap()
        };
        for (table, kept) in [("events", false), ("pods", true)] {
            let made = put(table, 0, Expected::Absent, "said");
            let changed = put(table, 0, Expected::Revision(made.revision), "more");
            for (stored, text) in [(&made, "said"), (&changed, "more")] {
                assert_eq!(stored.value()["text"], text.repeat(300));
                let read: Value = serde_json::from_slice(&stored.json()).unwrap();
                assert_eq!(read, *stored.glance());
            }
            assert_eq!((changed.has_tree(), table), (kept, table));
        }
        // Their texts are packed as those of all others.
        let events: Vec<_> = (1..6_000).map(|n| put("events", n, Expected::Absent, "said")).collect();
        let held: usize = events.iter().map(|event| event.held()).sum();
        assert!(
            held < 5 * 1024 * 1024,
            "{held} of {}",
            events.iter().map(|event| event.size()).sum::<usize>()
        );
    }
}
