//! The screen as it was last drawn: where what stands, what can be clicked, when it changes by itself; and
//! where the user has put the borders.

use super::click_targets::Spots;
use super::layout::{Edge, Shape};
use super::pane::Pane;
use opdev_event::Borders;
use ratatui::layout::Rect;
use std::time::Duration;

/// The screen.
pub struct Screen {
    /// Where each pane was last drawn; empty where it was not.
    pub places: [Rect; Pane::COUNT],
    /// Visible rows of each pane as last drawn.
    pub heights: [usize; Pane::COUNT],
    /// How the panes stand, and where all of them are.
    pub shape: Shape,
    pub body: Rect,
    /// Where the user has moved the borders, and the one that the mouse holds.
    pub borders: Borders,
    pub dragged: Option<Edge>,
    /// The places that can be clicked.
    pub spots: Spots,
    /// When something on it changes by itself.
    pub wake: Option<Duration>,
    /// True if the list of custom resources has told the worst finding in sentences.
    pub found_told: bool,
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
            found_told: false,
        }
    }
}

impl Screen {
    /// Returns true if a pane is in sight, as last drawn.
    pub fn shows(&self, pane: Pane) -> bool {
        self.places[pane.index()].area() > 0
    }

    /// This screen on another cluster.
    pub fn elsewhere(self) -> Self {
        Screen { dragged: None, spots: Spots::default(), wake: None, ..self }
    }
}
