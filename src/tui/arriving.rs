//! What the terminal keeps when opdev goes on working on another cluster, and what it forgets.

use super::pane::Pane;
use super::view::ViewState;
use crate::state::State;

impl ViewState {
    /// What was chosen, filtered and opened on another cluster means nothing on this one; how it is looked at stays.
    pub(super) fn arrive(&mut self, state: &State) {
        if self.left == state.left {
            return;
        }
        let old = std::mem::take(self);
        *self = ViewState {
            left: state.left,
            focus: if old.focus == Pane::Detail { Pane::Detail } else { Pane::Resources },
            zoom: old.zoom,
            tab: old.tab,
            wrap: old.wrap,
            all: old.all,
            wide: old.wide,
            sort: old.sort,
            log_level: old.log_level,
            next_request: old.next_request,
            leaving: old.leaving,
            panicked: old.panicked,
            keymap: old.keymap,
            own_commands: old.own_commands,
            following: old.following,
            theme: old.theme,
            mouse: old.mouse,
            zone: old.zone,
            places: old.places,
            heights: old.heights,
            compact: old.compact,
            shape: old.shape,
            body: old.body,
            borders: old.borders,
            commands: old.commands,
            ..ViewState::default()
        };
    }
}
