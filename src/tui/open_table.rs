//! The table of one kind while it is open: its rows, their order, what is selected, and what was asked for so that it is there.
//! `browse` opens, moves and refreshes it.

use super::pane::Tab;
use super::selection::Selection;
use crate::event::{KindTable, TableQuery, TableRow};
use crate::state::{Seen, State};
use opdev_object::meta::{ObjectKey, ObjectRef};
use std::sync::Arc;

/// A column to sort by, and whether the largest comes first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct TableSort {
    /// Its heading.
    pub(super) column: String,
    pub(super) down: bool,
}

/// An open table.
#[derive(Clone, Debug)]
pub(super) struct Browse {
    /// The kind, in the user's word.
    pub(super) word: String,
    pub(super) selection: Selection<(Option<String>, String)>,
    /// The rows that are shown, as places in the table.
    pub(super) shown: Vec<u32>,
    pub(super) sort: Option<TableSort>,
    pub(super) made_of: Option<(Arc<KindTable>, String, Option<TableSort>)>,
    /// What the selected row tells, before its object is read.
    pub(super) row: Option<(Arc<TableRow>, Arc<Seen>)>,
    /// What the list of custom resources was filtered by, and which tab was open.
    pub(super) before: (String, Tab),
}

/// What was asked for so that a table is there.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Asked {
    pub(super) table: Option<TableQuery>,
    pub(super) row: Option<ObjectRef>,
    pub(super) kinds: bool,
}

/// The row of an object. Rows stand in the API server's order, by namespace and name.
pub(super) fn row_of<'a>(table: &'a KindTable, key: &ObjectKey) -> Option<&'a Arc<TableRow>> {
    let kind = table.kind.as_ref()?;
    if kind.gvk.kind != key.kind || kind.gvk.group != key.group {
        return None;
    }
    let found = table.rows.binary_search_by(|row| {
        let of = &row.object_ref;
        (&of.namespace, &of.name).cmp(&(&key.namespace, &key.name))
    });
    found.ok().map(|at| &table.rows[at])
}

impl Browse {
    /// The table, where what is known of it is what is asked for; `namespace` is the one that is looked at.
    pub(super) fn table<'a>(&self, namespace: Option<&str>, state: &'a State) -> Option<&'a Arc<KindTable>> {
        let is_asked = |table: &&Arc<KindTable>| {
            table.query.kind == self.word && table.query.namespace.as_deref() == namespace
        };
        state.table.as_ref().filter(is_asked)
    }

    /// The row that stands at a place of the list.
    pub(super) fn at<'a>(&self, table: &'a KindTable, place: usize) -> Option<&'a Arc<TableRow>> {
        table.rows.get(*self.shown.get(place)? as usize)
    }

    /// The object of the selected row: as whole as it is known.
    pub(super) fn selected<'a>(&'a self, state: &'a State) -> Option<&'a Arc<Seen>> {
        let (_, seen) = self.row.as_ref()?;
        let known = state.objects.get(&seen.key);
        let read = state.row.as_ref().filter(|row| row.key == seen.key);
        known.filter(|known| !known.metadata_only).or(read).or(known).or(Some(seen))
    }

    /// What is shown where the table was not read again since.
    pub(super) fn made_of_rows(&self) -> Option<&Arc<KindTable>> {
        self.made_of.as_ref().map(|(table, ..)| table)
    }
}
