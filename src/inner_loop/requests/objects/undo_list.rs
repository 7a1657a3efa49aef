//! The list of the last actions, newest first, with the writes that undo each. It is kept in memory, and
//! nowhere else.

use jiff::Timestamp;
use opdev_event::Undoable;
use opdev_object::meta::ObjectRef;
use serde_json::Value;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

/// How many deeds are kept.
const MOST: usize = 50;

/// How one write is undone.
#[derive(Clone, Debug)]
pub(crate) enum Undo {
    /// The fields that it changed get back what they had.
    Restore { object: ObjectRef, before: Value, after: Value },
    /// The object is created again.
    Recreate { object: ObjectRef, before: Value },
    /// The object is deleted.
    Remove { object: ObjectRef },
    /// Not at all.
    Never { why: String },
}

#[derive(Debug)]
pub(crate) struct Entry {
    pub(crate) told: Undoable,
    pub(crate) steps: Vec<Undo>,
}

/// Recent changes, each with its undo.
#[derive(Clone, Debug, Default)]
pub(crate) struct UndoList {
    entries: Arc<Mutex<VecDeque<Entry>>>,
}

impl UndoList {
    pub(crate) fn lock(&self) -> std::sync::MutexGuard<'_, VecDeque<Entry>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn add(&self, what: String, steps: Vec<Undo>) {
        let why_not = match steps.iter().find(|step| matches!(step, Undo::Never { .. })) {
            Some(Undo::Never { why }) => Some(why.clone()),
            _ => None,
        };
        let mut entries = self.lock();
        let id = entries.front().map_or(1, |entry| entry.told.id + 1);
        entries.push_front(Entry { told: Undoable { id, at: Timestamp::now(), what, why_not }, steps });
        entries.truncate(MOST);
    }

    pub(crate) fn steps(&self, id: u64) -> Option<(Undoable, Vec<Undo>)> {
        let entries = self.lock();
        let entry = entries.iter().find(|entry| entry.told.id == id)?;
        Some((entry.told.clone(), entry.steps.clone()))
    }

    /// It has been undone.
    pub(crate) fn remove(&self, id: u64) {
        self.lock().retain(|entry| entry.told.id != id);
    }
}
