//! The table of one kind, which takes the place of the lists while it is open: which rows it shows, in which
//! order, which one is selected. Rows and columns are the API server's; `:pods`, or any other kind, opens it,
//! `esc` leaves it.

use super::layer::Need;
use super::view::ViewState;
use opdev_event::{KindTable, TableQuery, TableRow, ViewRequest};
use opdev_object::meta::ObjectKey;
use opdev_panes::lists::filter::{Filter, Subject};
use opdev_panes::lists::kind_table::{Browse, TableSort, key_of, row_of};
use opdev_panes::lists::selection::Selection;
use opdev_panes::pane::{Pane, Tab};
use opdev_state::{Seen, State};
use std::cmp::Ordering;
use std::sync::Arc;

/// The rows that reconcile, in their order.
fn shown(table: &KindTable, filter: &str, sort: Option<&TableSort>) -> Vec<u32> {
    let filter = Filter::new(filter);
    let mut text = String::new();
    let mut passes = |row: &TableRow| {
        if filter.is_empty() {
            return true;
        }
        text.clear();
        let about = &row.object_ref;
        for part in
            [about.gvk.kind.as_str(), " ", about.namespace.as_deref().unwrap_or_default(), "/", &about.name]
        {
            text.push_str(part);
        }
        row.cells.iter().for_each(|cell| {
            text.push(' ');
            text.push_str(cell);
        });
        let lower = text.to_lowercase();
        filter.passes(Subject { text: &lower, object: None, about: Some(about), labels: Some(&row.labels) })
    };
    let mut shown: Vec<u32> =
        (0u32..).zip(&table.rows).filter(|(_, row)| passes(row)).map(|(at, _)| at).collect();
    if let Some(sort) = sort {
        let column = table.columns.iter().position(|column| column.name == sort.column);
        shown.sort_by(|a, b| {
            let (a, b) = (&table.rows[*a as usize], &table.rows[*b as usize]);
            let order = order(a, b, column, &sort.column);
            if sort.down { order.reverse() } else { order }
        });
    }
    shown
}

/// By creation where ages are told, by number where both begin with one, else by text.
fn order(a: &TableRow, b: &TableRow, column: Option<usize>, name: &str) -> Ordering {
    let Some(column) = column else { return a.object_ref.namespace.cmp(&b.object_ref.namespace) };
    if name == "Age" {
        return b.created.cmp(&a.created);
    }
    let cell = |row: &TableRow| row.cells.get(column).cloned().unwrap_or_default();
    let number = |text: &str| {
        let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
        text[..end].parse::<f64>().ok()
    };
    let (a, b) = (cell(a), cell(b));
    match (number(&a), number(&b)) {
        (Some(x), Some(y)) => x.total_cmp(&y).then_with(|| a.cmp(&b)),
        _ => a.cmp(&b),
    }
}

/// What to ask for so that the table, its selected object, the kinds of the palette and the files of the jump
/// are there, where that has changed.
pub(super) fn follow(view: &mut ViewState, state: &State) -> Vec<ViewRequest> {
    if state.started.is_none() || view.leaving {
        return Vec::new();
    }
    let mut requests = Vec::new();
    let table = view
        .browse
        .as_ref()
        .map(|browse| TableQuery { kind: browse.word.clone(), namespace: view.namespace.clone() });
    if table != view.asked.table {
        view.asked.table.clone_from(&table);
        view.asked.row = None;
        requests.push(ViewRequest::ShowTable { table });
    }
    let row = view.browse.as_ref().and_then(|browse| {
        let (_, seen) = browse.row.as_ref()?;
        let whole = state.objects.get(&seen.key).is_some_and(|known| !known.metadata_only);
        (!whole).then(|| seen.object_ref.clone())
    });
    if row != view.asked.row {
        view.asked.row.clone_from(&row);
        requests.push(ViewRequest::ReadRow { object: row });
    }
    let palette = view.needs(Need::Kinds);
    if palette && !view.asked.kinds {
        requests.push(ViewRequest::ListKinds);
    }
    view.asked.kinds = palette;
    let jump = view.needs(Need::Files);
    if jump && !view.asked.files {
        requests.push(ViewRequest::ListFiles);
    }
    view.asked.files = jump;
    requests
}

impl ViewState {
    /// Opens a table by what was typed: a kind, and a filter. A namespace alone is one.
    pub(super) fn open_typed_table(&mut self, word: &str, filter: &str, state: &State) {
        let started = state.started.as_ref().map(|started| started.namespace.as_str());
        let is_namespace = state.objects.census().has_namespace(filter)
            || started.is_some_and(|own| !filter.is_empty() && own == filter);
        let filter = if is_namespace { format!("n:{filter}") } else { filter.to_owned() };
        self.open_table(word, &filter);
    }

    /// Opens the table of a kind, with a filter, in the place of the lists.
    pub(super) fn open_table(&mut self, word: &str, filter: &str) {
        let before = self.browse.take().map_or(self.detail.tab, |open| open.before);
        self.marks.clear();
        self.zoom = false;
        self.browse = Some(Browse {
            word: word.to_owned(),
            selection: Selection::default(),
            awaited: None,
            shown: Vec::new(),
            sort: None,
            made_of: None,
            row: None,
            filter: filter.to_owned(),
            before,
        });
        // No reconcile is known of the object in a row.
        if !self.detail.tab.part().is_of_object() {
            self.detail.open(Tab::YAML);
        }
        self.look_at(Pane::Resources);
        self.detail.scroll = 0;
    }

    /// Back to the lists.
    pub(super) fn close_table(&mut self) {
        let Some(open) = self.browse.take() else { return };
        self.marks.clear();
        self.detail.open(open.before);
        self.zoom = false;
        self.look_at(Pane::Resources);
    }

    /// Selects the row of an object, once it is there.
    pub(super) fn select_row(&mut self, key: &ObjectKey) {
        if let Some(browse) = &mut self.browse {
            browse.selection.key = Some((key.namespace.clone(), key.name.clone()));
            browse.awaited.clone_from(&browse.selection.key);
        }
    }

    /// The object of the table's selected row; none where no table is open.
    pub(super) fn table_subject<'a>(&'a self, state: &'a State) -> Option<&'a Arc<Seen>> {
        self.browse.as_ref()?.selected(state)
    }

    /// The columns of the open table for an object.
    pub(super) fn of_table_row(&self, key: &ObjectKey) -> Option<Arc<Seen>> {
        let table = self.browse.as_ref()?.made_of_rows()?;
        row_of(table, key).map(|row| Arc::new(Seen::of_row(row)))
    }

    /// The next column to sort by, as they stand.
    pub(super) fn sort_table(&mut self, state: &State) {
        let Some(mut browse) = self.browse.take() else { return };
        if let Some(table) = browse.table(self.namespace.as_deref(), state) {
            let names: Vec<&String> = table.columns.iter().map(|column| &column.name).collect();
            let at =
                browse.sort.as_ref().and_then(|sort| names.iter().position(|name| **name == sort.column));
            let next = match (&browse.sort, at) {
                (None, _) => names.first(),
                (Some(_), Some(at)) => names.get(at + 1),
                (Some(_), None) => None,
            };
            browse.sort = next.map(|name| TableSort { column: (*name).clone(), down: false });
        }
        self.browse = Some(browse);
    }

    /// Brings the open table up to a state.
    pub(super) fn refresh_table(&mut self, state: &State) {
        self.catch_up_layers(state);
        let Some(mut browse) = self.browse.take() else { return };
        let filter = browse.filter.clone();
        match browse.table(self.namespace.as_deref(), state) {
            Some(table) => {
                let same = browse.made_of.as_ref().is_some_and(|(known, by, sort)| {
                    Arc::ptr_eq(known, table) && *by == filter && *sort == browse.sort
                });
                if !same {
                    browse.shown = shown(table, &filter, browse.sort.as_ref());
                    browse.made_of = Some((Arc::clone(table), filter, browse.sort.clone()));
                }
                let rows = std::mem::take(&mut browse.shown);
                let key_at = |at: usize| key_of(&table.rows[rows[at] as usize]);
                // A user who moved meanwhile has chosen another one.
                let waits =
                    !table.complete && browse.awaited.is_some() && browse.awaited == browse.selection.key;
                if !waits || (0..rows.len()).any(|at| Some(key_at(at)) == browse.awaited) {
                    browse.selection.settle(rows.len(), key_at);
                    browse.awaited = None;
                }
                browse.shown = rows;
            }
            None => {
                (browse.shown, browse.made_of) = (Vec::new(), None);
            }
        }
        let table = browse.made_of_rows().cloned();
        let selected = table.as_ref().filter(|_| browse.awaited.is_none());
        let selected = selected.and_then(|table| browse.row_at(table, browse.selection.index));
        let same = match (&browse.row, selected) {
            (Some((known, _)), Some(row)) => Arc::ptr_eq(known, row),
            (None, None) => true,
            (Some(_), None) | (None, Some(_)) => false,
        };
        if !same {
            let row = selected.map(|row| (Arc::clone(row), Arc::new(Seen::of_row(row))));
            browse.row = row;
        }
        self.browse = Some(browse);
    }
}
