//! The list of the custom resources: its rows, which of them are shown in which order, and which one is
//! selected. How rows follow the state is in `table`.

use super::pane_rows::PanePart;
use super::selection::Selection;
use super::table::{Sort, Table, Touched, Wanted};
use crate::text::width;
use opdev_object::meta::ObjectKey;
use opdev_state::{Seen, State};
use std::sync::Arc;

/// The list.
#[derive(Default)]
pub struct ResourceList {
    pub selection: Selection<ObjectKey>,
    pub filter: String,
    pub rows: Vec<Arc<Seen>>,
    pub table: Table,
    /// True if only what has a fault is shown.
    pub faults: bool,
    pub sort: Sort,
    /// True if the columns of the CRD are shown. Of the namespace it says the same, as last drawn.
    pub wide: bool,
    pub namespace_shown: bool,
    /// True if the rows are of more than one namespace.
    pub namespaces_differ: bool,
    pub longest: Longest,
}

/// What the longest kind, namespace and name of the custom resources need; a sample of rows is enough to
/// tell.
#[derive(Clone, Copy, Default)]
pub struct Longest {
    pub kind: usize,
    pub(crate) namespace: usize,
    pub(crate) name: usize,
}

impl Longest {
    fn of(resources: &[Arc<Seen>]) -> Longest {
        const SAMPLE: usize = 500;
        resources.iter().take(SAMPLE).fold(Longest::default(), |longest, seen| Longest {
            kind: longest.kind.max(width(&seen.key.kind)),
            namespace: longest.namespace.max(seen.key.namespace.as_deref().map_or(0, width)),
            name: longest.name.max(width(&seen.key.name)),
        })
    }
}

impl ResourceList {
    /// This list on another cluster: its order and its filter stay.
    pub fn elsewhere(self) -> Self {
        ResourceList { wide: self.wide, sort: self.sort, ..ResourceList::default() }
    }

    /// The rows that it shows.
    pub fn wanted(&self, namespace: Option<&String>, gone: bool) -> Wanted {
        Wanted {
            filter: self.filter.clone(),
            namespace: namespace.cloned(),
            faults: self.faults,
            gone,
            sort: self.sort.clone(),
        }
    }

    /// Brings the rows up to a state; tells which of them have changed.
    pub fn refresh(&mut self, state: &State, namespace: Option<&String>, gone: bool) -> Touched {
        let wanted = self.wanted(namespace, gone);
        let touched = self.table.refresh(&mut self.rows, state, &wanted);
        if self.table.fresh {
            let first = self.rows.first().map(|seen| &seen.key.namespace);
            self.namespaces_differ = self.rows.iter().any(|seen| Some(&seen.key.namespace) != first);
            self.longest = Longest::of(&self.rows);
        }
        self.selection.settle(self.rows.len(), |i| self.rows[i].key.as_ref().clone());
        touched
    }
}

impl PanePart for ResourceList {
    fn count(&self) -> usize {
        self.rows.len()
    }

    fn at(&self) -> usize {
        self.selection.index
    }

    fn offset(&self) -> usize {
        self.selection.offset
    }

    fn go(&mut self, row: usize, _height: usize) {
        self.selection.go(row, self.rows.len(), |i| self.rows[i].key.as_ref().clone());
    }

    fn filter(&self) -> &str {
        &self.filter
    }

    fn filter_mut(&mut self) -> &mut String {
        &mut self.filter
    }

    fn object(&self, row: usize) -> Option<ObjectKey> {
        self.rows.get(row).map(|seen| seen.key.as_ref().clone())
    }
}
