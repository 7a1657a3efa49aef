//! The panes of a view by their names: what each shows, and how the focused one moves.

use super::view::ViewState;
use opdev_panes::lists::pane_rows::PanePart;
use opdev_panes::pane::Pane;

impl ViewState {
    /// The content of a pane. A table stands in the place of the custom resources.
    pub(super) fn part(&self, pane: Pane) -> &dyn PanePart {
        match (pane, &self.browse) {
            (Pane::Resources, Some(table)) => table,
            (Pane::Resources, None) => &self.resources,
            (Pane::Owned, _) => &self.owned,
            (Pane::Reconciles, _) => &self.reconciles,
            (Pane::Detail, _) => &self.detail,
            (Pane::Log, _) => &self.log,
        }
    }

    /// The part that a pane shows, to be changed.
    pub(super) fn part_mut(&mut self, pane: Pane) -> &mut dyn PanePart {
        match (pane, &mut self.browse) {
            (Pane::Resources, Some(table)) => table,
            (Pane::Resources, None) => &mut self.resources,
            (Pane::Owned, _) => &mut self.owned,
            (Pane::Reconciles, _) => &mut self.reconciles,
            (Pane::Detail, _) => &mut self.detail,
            (Pane::Log, _) => &mut self.log,
        }
    }

    /// The filter of a pane.
    pub fn filter(&self, pane: Pane) -> &str {
        self.part(pane).filter()
    }

    /// The row the focused pane is at.
    pub(super) fn at(&self) -> usize {
        self.part(self.focus).at()
    }

    /// The first visible row of a pane.
    pub(super) fn offset(&self, pane: Pane) -> usize {
        self.part(pane).offset()
    }

    /// How many rows the focused pane has.
    pub(super) fn rows(&self) -> usize {
        self.part(self.focus).count()
    }

    /// Moves the selection of a list, or the lines of the detail pane, to a row.
    pub(super) fn go(&mut self, to: usize) {
        let height = self.screen.heights[self.focus.index()];
        self.part_mut(self.focus).go(to, height);
        if !matches!(self.focus, Pane::Detail | Pane::Log) {
            self.detail.selection_moved();
        }
    }
}
