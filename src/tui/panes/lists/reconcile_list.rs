//! The list of the reconciles: those of the selected object or of all, which of them are open, and which row
//! is selected.

use super::filter::{Filter, Subject};
use super::pane_rows::PanePart;
use super::selection::Selection;
use crate::folds::{ReconcileRow, reconcile_rows};
use crate::waterfall::Line;
use opdev_event::{Reconcile, words};
use opdev_object::meta::ObjectKey;
use opdev_state::{Findings, History, State};
use std::collections::BTreeSet;
use std::sync::Arc;

/// The list.
#[derive(Default)]
pub struct ReconcileList {
    /// A reconcile and the line below it, 0 for the reconcile itself. No key means: the newest.
    pub selection: Selection<(u64, usize)>,
    pub filter: String,
    pub list: Vec<Arc<Reconcile>>,
    /// The rows: the reconciles, and below open ones what is in them.
    pub rows: Vec<ReconcileRow>,
    /// Reconciles that are open.
    pub open: BTreeSet<u64>,
    made_of: Option<RowsMadeOf>,
}

/// The input of the rows.
struct RowsMadeOf {
    history: History,
    /// The object whose reconciles they are; those of all where it is none.
    pub object: Option<ObjectKey>,
    pub filter: String,
    open: BTreeSet<u64>,
    findings: Findings,
}

impl ReconcileList {
    /// Brings the rows up to a state: the reconciles of one object, or of all.
    pub fn refresh(&mut self, state: &State, object: Option<&ObjectKey>) {
        let before = self.made_of.as_ref();
        let same = before.is_some_and(|before| {
            before.history.same(&state.history)
                && before.object.as_ref() == object
                && before.filter == self.filter
        });
        let same_rows = same
            && before.is_some_and(|before| before.open == self.open && before.findings.same(&state.findings));
        if !same {
            self.list = listed(state, object, &Filter::new(&self.filter));
        }
        if !same_rows {
            self.rows = reconcile_rows(&self.list, &self.open, &state.findings);
            self.made_of = Some(RowsMadeOf {
                history: state.history.clone(),
                object: object.cloned(),
                filter: self.filter.clone(),
                open: self.open.clone(),
                findings: state.findings.clone(),
            });
        }
        if self.selection.key.is_none() {
            (self.selection.index, self.selection.offset) = (0, 0);
        } else {
            let before = self.selection.index;
            self.selection.settle(self.rows.len(), |i| key_at(&self.rows, i));
            // The row one reads stays on its line while newer ones come in above it.
            self.selection.offset += self.selection.index.saturating_sub(before);
        }
    }

    /// The selected reconcile; the newest where none is.
    pub fn selected(&self) -> Option<&Arc<Reconcile>> {
        self.list.get(self.rows.get(self.selection.index)?.reconcile)
    }

    /// The selected reconcile, and the line below it that is selected.
    pub fn selected_line(&self) -> Option<(&Arc<Reconcile>, Option<Line>)> {
        let row = self.rows.get(self.selection.index)?;
        Some((self.list.get(row.reconcile)?, row.line))
    }

    /// Returns true if the selected row is that of several reconciles, which enter unfolds, or one of theirs.
    pub fn stands_for_many(&self) -> bool {
        self.rows.get(self.selection.index).is_some_and(|row| row.times > 1)
    }

    /// How many rows are newer than the selected one, where that one is held.
    pub fn newer(&self) -> usize {
        let held = self.selection.key.is_some();
        let newer = self.rows.iter().take(self.selection.index).filter(|row| row.line.is_none()).count();
        // A line stands below its own reconcile.
        let own = usize::from(self.rows.get(self.selection.index).is_some_and(|row| row.line.is_some()));
        if held { newer.saturating_sub(own) } else { 0 }
    }

    /// Opens a reconcile in place.
    pub fn unfold(&mut self, id: u64) {
        self.open.insert(id);
        self.selection.key = Some((id, 0));
    }

    /// Closes it again.
    pub fn fold(&mut self, id: u64) {
        self.open.remove(&id);
        self.selection.key = Some((id, 0));
        // Closed, it may stand behind a newer retry again.
        if let Some(row) = self.rows.iter().position(|row| self.list[row.reconcile].id == id) {
            self.selection.index = row;
        }
    }

    /// Closes the selected reconcile; false where it is not open.
    pub fn fold_selected(&mut self) -> bool {
        let open =
            self.selected_line().map(|(reconcile, _)| reconcile.id).filter(|id| self.open.contains(id));
        open.is_some_and(|id| {
            self.fold(id);
            true
        })
    }
}

/// The reconciles that reconcile, the newest first.
fn listed(state: &State, object: Option<&ObjectKey>, filter: &Filter) -> Vec<Arc<Reconcile>> {
    let shown = |reconcile: &&Arc<Reconcile>| {
        let (causes, outcome) = (words::causes(&reconcile.causes), words::outcome(reconcile.outcome));
        let text = format!("{} {causes} {outcome}", reconcile.object).to_lowercase();
        let object = state.present_or_gone(&reconcile.object.key()).map(AsRef::as_ref);
        filter.is_empty()
            || filter.passes(Subject { text: &text, object, about: Some(&reconcile.object), labels: None })
    };
    match object {
        Some(object) => state.history.of(object).into_iter().flatten().rev().filter(shown).cloned().collect(),
        None => state.history.all().iter().rev().filter(shown).cloned().collect(),
    }
}

/// The identity by which a selection holds on to a row.
fn key_at(rows: &[ReconcileRow], row: usize) -> (u64, usize) {
    (rows[row].oldest, rows[row].number)
}

impl PanePart for ReconcileList {
    fn count(&self) -> usize {
        self.rows.len()
    }

    fn at(&self) -> usize {
        self.selection.index
    }

    fn offset(&self) -> usize {
        self.selection.offset
    }

    /// On the newest one, the selection goes on to whatever is newest.
    fn go(&mut self, row: usize, _height: usize) {
        self.selection.go(row, self.rows.len(), |i| key_at(&self.rows, i));
        let newest = self.list.first().map(|reconcile| reconcile.id);
        if self.selection.index == 0 && newest.is_none_or(|id| !self.open.contains(&id)) {
            self.selection.key = None;
        }
    }

    fn filter(&self) -> &str {
        &self.filter
    }

    fn filter_mut(&mut self) -> &mut String {
        &mut self.filter
    }
}
