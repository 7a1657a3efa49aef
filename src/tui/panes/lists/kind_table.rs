//! The table of one kind while it is open: its rows, their order, what is selected, and what was asked for so
//! that it is there. `tui/kind_table` opens, moves and refreshes it.

use super::pane_rows::PanePart;
use super::selection::Selection;
use crate::pane::Tab;
use opdev_event::{KindTable, TableRow};
use opdev_object::meta::ObjectKey;
use opdev_state::{Seen, State};
use std::sync::Arc;

/// A column to sort by, and whether the largest comes first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableSort {
    /// Its heading.
    pub column: String,
    pub down: bool,
}

/// An open table.
#[derive(Clone, Debug)]
pub struct Browse {
    /// The kind, in the user's word.
    pub word: String,
    pub selection: Selection<(Option<String>, String)>,
    /// The row to go to, until it is there: it may be on a page that is still to come.
    pub awaited: Option<(Option<String>, String)>,
    /// The rows that are shown, as places in the table.
    pub shown: Vec<u32>,
    pub sort: Option<TableSort>,
    pub made_of: Option<(Arc<KindTable>, String, Option<TableSort>)>,
    /// The selected row, before its object is read.
    pub row: Option<(Arc<TableRow>, Arc<Seen>)>,
    pub filter: String,
    /// The tab that was open before.
    pub before: Tab,
}

/// The row of an object. Rows stand in the API server's order, by namespace and name.
pub fn row_of<'a>(table: &'a KindTable, key: &ObjectKey) -> Option<&'a Arc<TableRow>> {
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
    pub fn table<'a>(&self, namespace: Option<&str>, state: &'a State) -> Option<&'a Arc<KindTable>> {
        let is_asked = |table: &&Arc<KindTable>| {
            table.query.kind == self.word && table.query.namespace.as_deref() == namespace
        };
        state.table.as_ref().filter(is_asked)
    }

    /// The row that stands at a place of the list.
    pub fn row_at<'a>(&self, table: &'a KindTable, place: usize) -> Option<&'a Arc<TableRow>> {
        table.rows.get(*self.shown.get(place)? as usize)
    }

    /// The object of the selected row: as whole as it is known.
    pub fn selected<'a>(&'a self, state: &'a State) -> Option<&'a Arc<Seen>> {
        let (_, seen) = self.row.as_ref()?;
        let known = state.objects.get(&seen.key);
        let read = state.row.as_ref().filter(|row| row.key == seen.key);
        known.filter(|known| !known.metadata_only).or(read).or(known).or(Some(seen))
    }

    /// The table that the rows were made of, where it was not read again since.
    pub fn made_of_rows(&self) -> Option<&Arc<KindTable>> {
        self.made_of.as_ref().map(|(table, ..)| table)
    }
}

/// The identity of a row.
pub fn key_of(row: &TableRow) -> (Option<String>, String) {
    (row.object_ref.namespace.clone(), row.object_ref.name.clone())
}

impl PanePart for Browse {
    fn count(&self) -> usize {
        self.shown.len()
    }

    fn at(&self) -> usize {
        self.selection.index
    }

    fn offset(&self) -> usize {
        self.selection.offset
    }

    fn go(&mut self, row: usize, _height: usize) {
        let Some((table, ..)) = &self.made_of else { return };
        self.selection.go(row, self.shown.len(), |at| key_of(&table.rows[self.shown[at] as usize]));
    }

    fn filter(&self) -> &str {
        &self.filter
    }

    fn filter_mut(&mut self) -> &mut String {
        &mut self.filter
    }

    fn object(&self, row: usize) -> Option<ObjectKey> {
        self.row_at(self.made_of_rows()?, row).map(|row| row.object_ref.key())
    }
}
