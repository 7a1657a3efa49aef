//! Layers over the panes: dialogs, lists to choose from, lines to type into. Each keeps its own state, takes
//! its keys and draws itself; this is the one trait that all of them have. A new one is a file in
//! `dialog`, and the action that opens it.

use super::dialog::Answer;
use super::view::ViewState;
use jiff::Timestamp;
use opdev_panes::keys::chord::Key;
use opdev_panes::text::Row;
use opdev_state::State;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use std::any::Any;
use std::fmt::Debug;

/// Where a layer draws, and when.
pub(super) struct Canvas<'a> {
    pub(super) buffer: &'a mut Buffer,
    /// The place of all panes.
    pub(super) body: Rect,
    pub(super) now: Timestamp,
}

/// The request of a layer for as long as it is open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Need {
    /// The kinds that the API server lists.
    Kinds,
    /// The files of the project.
    Files,
    /// The selected object, with more than its metadata.
    WholeObject,
}

/// Something that lies over the panes. The topmost takes the keys.
pub(super) trait Layer: Any + Debug {
    /// A key while it is the topmost.
    fn key(&mut self, key: Key, view: &mut ViewState, state: &State) -> Answer;

    /// Draws it over the panes; nothing where it draws elsewhere.
    fn draw(&self, state: &State, view: &mut ViewState, canvas: &mut Canvas<'_>);

    /// Pasted text, without control characters. Where it means nothing it is dropped.
    fn paste(&mut self, _text: &str, _view: &mut ViewState) {}

    /// The text in the place of the footer meanwhile.
    fn footer(&self, _view: &ViewState, _state: &State) -> Option<Row> {
        None
    }

    /// Returns true if the wheel of the mouse moves in it; in a question it could press something.
    fn scrolls(&self) -> bool {
        false
    }

    /// Returns true if a click chooses one of its rows, each a line high.
    fn picks_rows(&self) -> bool {
        false
    }

    /// Returns true if what it asks about is still open; one that is not closes by itself.
    fn is_open(&self, _state: &State) -> bool {
        true
    }

    /// The request to the cluster.
    fn need(&self) -> Option<Need> {
        None
    }

    /// Takes in what is new.
    fn catch_up(&mut self, _view: &mut ViewState, _state: &State) {}
}

impl dyn Layer {
    /// This layer, where it is one of that type.
    pub(super) fn downcast<T: Layer>(&self) -> Option<&T> {
        (self as &dyn Any).downcast_ref()
    }
}

impl ViewState {
    /// Puts a layer over all others.
    pub(super) fn open(&mut self, layer: impl Layer) {
        self.layers.push(Box::new(layer));
    }

    /// The topmost layer, where it is one of that type.
    pub(super) fn top<T: Layer>(&self) -> Option<&T> {
        self.layers.last()?.downcast()
    }

    /// Returns true if a layer is open that needs this.
    pub(super) fn needs(&self, need: Need) -> bool {
        self.layers.iter().any(|layer| layer.need() == Some(need))
    }

    /// Lets each layer take in what is new.
    pub(super) fn catch_up_layers(&mut self, state: &State) {
        for mut layer in std::mem::take(&mut self.layers) {
            layer.catch_up(self, state);
            self.layers.push(layer);
        }
    }
}
