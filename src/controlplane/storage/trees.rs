//! How long the trees of stored objects are kept: those that were written or asked for last, up to so many bytes of
//! text. The text of an object whose tree is gone stays whole a while longer, then it is packed. One for each table,
//! on one list of all tables.
//! Never keeps an object for long that nobody else has.

use super::Stored;
use crate::attributes::{Attributes, Shared};
use opdev_object::pack::{Dictionaries, Packed};
use serde_json::Value;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError, Weak};

/// Bytes of text of the objects whose trees are kept. A tree takes about eight times its text.
const KEPT: usize = 1024 * 1024;
/// Bytes of the texts that stay whole without a tree.
const WHOLE: usize = 3 * 1024 * 1024;

/// Of one table.
#[derive(Debug)]
pub(super) struct Trees {
    table: Arc<str>,
    all: Arc<All>,
    dictionaries: Dictionaries,
}

/// Of all tables of a store.
#[derive(Debug, Default)]
pub(super) struct All {
    kept: Mutex<Kept>,
    shared: Shared,
}

/// Oldest first, each with the bytes of its text.
#[derive(Debug, Default)]
struct Kept {
    objects: VecDeque<(Arc<Stored>, usize)>,
    bytes: usize,
    /// Those whose tree is gone and whose text is whole.
    whole: VecDeque<(Weak<Stored>, usize)>,
    whole_bytes: usize,
}

impl Trees {
    pub(super) fn new(table: Arc<str>, all: Arc<All>) -> Arc<Self> {
        Arc::new(Trees { table, all, dictionaries: Dictionaries::default() })
    }

    /// What is known of an object without reading it.
    pub(super) fn attributes(&self, object: &Value) -> Attributes {
        Attributes::shared(&self.table, object, &self.all.shared)
    }

    /// The same, read off its text; `None` where that is no JSON.
    pub(super) fn attributes_of_text(&self, text: &[u8]) -> Option<Attributes> {
        Attributes::of_text(&self.table, text, &self.all.shared)
    }

    /// A text in less space; `None` where that is not worth it.
    pub(super) fn pack(&self, text: &[u8]) -> Option<Packed> {
        self.dictionaries.pack(text)
    }

    /// Keeps the tree of an object, and lets go of the oldest that nobody asked for since.
    pub(super) fn keep(&self, object: Arc<Stored>) {
        let size = object.size();
        let (resting, packing) = {
            let mut kept = self.all.kept.lock().unwrap_or_else(PoisonError::into_inner);
            kept.objects.push_back((object, size));
            kept.bytes += size;
            (kept.without_tree(), kept.take_unpacked())
        };
        resting.iter().for_each(|object| object.forget_tree());
        packing.iter().for_each(|object| object.pack());
    }
}

impl Kept {
    /// Those that lose their tree now.
    fn without_tree(&mut self) -> Vec<Arc<Stored>> {
        let mut resting = Vec::new();
        // All of them may have been asked for: then the oldest goes nevertheless.
        let mut chances = self.objects.len();
        while self.bytes > KEPT
            && let Some((oldest, size)) = self.objects.pop_front()
        {
            let alone = Arc::strong_count(&oldest) == 1;
            if chances > 0 && !alone && oldest.was_asked() {
                chances -= 1;
                self.objects.push_back((oldest, size));
                continue;
            }
            self.bytes -= size;
            // One that nobody else has is freed.
            if !alone {
                self.whole.push_back((Arc::downgrade(&oldest), size));
                self.whole_bytes += size;
            }
            resting.push(oldest);
        }
        resting
    }

    /// Those whose text is packed now.
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
