//! Marked rows: one, a range, all but those, none. What acts on objects acts on the marked ones, else on the
//! selected one.

use crate::view::ViewState;
use opdev_object::meta::ObjectKey;
use opdev_panes::lists::kind_table::row_of;
use opdev_state::{Seen, State};
use std::sync::Arc;

impl ViewState {
    /// The objects that actions are about: the marked ones, else the selected one.
    pub(crate) fn targets(&self, state: &State) -> Vec<Arc<Seen>> {
        let marked: Vec<_> = self.marks.keys.iter().filter_map(|key| self.marked(key, state)).collect();
        if marked.is_empty() { self.subject(state).cloned().into_iter().collect() } else { marked }
    }

    /// Objects that are gone are not marked any more. In a table that is still read, they may be on a page to
    /// come.
    pub(crate) fn settle_marks(&mut self, state: &State) {
        if self.marks.count() == 0 {
            return;
        }
        let mut marks = std::mem::take(&mut self.marks);
        let table = self.browse.as_ref().and_then(|browse| browse.made_of_rows());
        match (self.browse.is_some(), table) {
            (true, Some(table)) if table.complete => {
                marks.settle(|key| row_of(table, key).is_some() || state.objects.get(key).is_some());
            }
            (true, _) => {}
            (false, _) => marks.settle(|key| state.objects.get(key).is_some()),
        }
        self.marks = marks;
    }

    /// An object that is marked: where a table is open, it may be known by its row alone.
    fn marked(&self, key: &ObjectKey, state: &State) -> Option<Arc<Seen>> {
        state.objects.get(key).cloned().or_else(|| self.of_table_row(key))
    }

    /// The custom resources that actions are about: the marked ones, else the selected one.
    pub(crate) fn custom_targets(&self, state: &State) -> Vec<Arc<Seen>> {
        let custom = |seen: &Arc<Seen>| state.is_custom(&seen.key.group, &seen.key.kind);
        if self.marks.count() > 0 {
            return self.targets(state).into_iter().filter(custom).collect();
        }
        self.root(state).cloned().into_iter().filter(|seen| self.browse.is_none() || custom(seen)).collect()
    }

    fn row_key(&self, row: usize) -> Option<ObjectKey> {
        self.part(self.focus).object(row)
    }

    /// Marks or unmarks the selected row and goes to the next one.
    pub(crate) fn mark(&mut self) {
        let Some(key) = self.row_key(self.at()) else { return };
        if !self.marks.keys.remove(&key) {
            self.marks.keys.insert(key.clone());
        }
        self.marks.last = Some(key);
        self.go(self.at() + 1);
    }

    /// Marks everything between the row that was marked last and the selected one.
    pub(crate) fn mark_range(&mut self) {
        let here = self.at();
        let from = (0..self.rows()).find(|row| self.row_key(*row) == self.marks.last).unwrap_or(here);
        let range = from.min(here)..=from.max(here);
        let keys: Vec<ObjectKey> = range.filter_map(|row| self.row_key(row)).collect();
        self.marks.last = self.row_key(here);
        self.marks.keys.extend(keys);
    }

    /// Marks the rows of the focused list that are not marked, and unmarks the others.
    pub(crate) fn mark_others(&mut self) {
        for key in (0..self.rows()).filter_map(|row| self.row_key(row)).collect::<Vec<_>>() {
            if !self.marks.keys.remove(&key) {
                self.marks.keys.insert(key);
            }
        }
    }
}
