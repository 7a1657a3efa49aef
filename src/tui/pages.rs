//! Pages: one pane that has the whole body until esc goes back; and the two panes that share the body before.

use super::view::ViewState;
use opdev_panes::layout::{Pair, Shape};
use opdev_panes::pane::Pane;

impl ViewState {
    /// The panes that are in sight where two share the body.
    pub(super) fn pair(&self) -> Pair {
        Pair { upper: self.chosen_in, lower: self.below.pane() }
    }

    /// Returns true if the operator log stands in the place of the detail pane.
    pub(super) fn log_covers_detail(&self) -> bool {
        self.below.is_log() && self.screen.shape == Shape::Two
    }

    /// Gives a pane the whole body where a page has it; elsewhere the pane is in sight already.
    pub(super) fn open_page(&mut self, pane: Pane) {
        let from = self.page_from.unwrap_or(self.focus);
        self.look_at(pane);
        if self.screen.shape.has_pages() && from != pane {
            (self.zoom, self.page_from) = (true, Some(from));
        }
    }

    /// Back to where the page was opened; false where none is open.
    pub(super) fn close_page(&mut self) -> bool {
        match self.page_from {
            Some(from) => {
                self.look_at(from);
                true
            }
            None => false,
        }
    }
}
