//! The screen as it was last drawn: where what stands, what can be clicked, when it changes by itself; and where the user
//! has put the borders.

use super::layout::{Edge, Shape};
use super::pane::Pane;
use super::spots::Spots;
use crate::event::Borders;
use ratatui::layout::Rect;
use std::time::Duration;

/// The screen.
pub(super) struct Screen {
    /// Where each pane was last drawn; empty where it was not.
    pub(super) places: [Rect; Pane::COUNT],
    /// Visible rows of each pane as last drawn.
    pub(super) heights: [usize; Pane::COUNT],
    /// How the panes stand, and where all of them are.
    pub(super) shape: Shape,
    pub(super) body: Rect,
    /// Where the user has moved the borders, and the one that the mouse holds.
    pub(super) borders: Borders,
    pub(super) dragged: Option<Edge>,
    /// What can be clicked.
    pub(super) spots: Spots,
    /// When something on it changes by itself.
    pub(super) wake: Option<Duration>,
}

impl Default for Screen {
    fn default() -> Self {
        Screen {
            places: [Rect::default(); Pane::COUNT],
            heights: [1; Pane::COUNT],
            shape: Shape::default(),
            body: Rect::default(),
            borders: Borders::default(),
            dragged: None,
            spots: Spots::default(),
            wake: None,
        }
    }
}

impl Screen {
    /// Whether a pane is in sight, as last drawn.
    pub(super) fn shows(&self, pane: Pane) -> bool {
        self.places[pane.index()].area() > 0
    }

    /// The same screen on another cluster.
    pub(super) fn elsewhere(self) -> Self {
        Screen { dragged: None, spots: Spots::default(), wake: None, ..self }
    }
}
