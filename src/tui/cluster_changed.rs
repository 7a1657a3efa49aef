//! The change to another cluster: some of the view is kept, the rest is forgotten.

use super::asked::Requests;
use super::shown_notices::Told;
use super::view::ViewState;
use opdev_panes::lists::candidates::Finder;
use opdev_panes::pane::Pane;
use opdev_state::State;

impl ViewState {
    /// What was chosen, filtered and opened on another cluster means nothing on this one; how it is looked at
    /// stays.
    pub(super) fn arrive(&mut self, state: &State) {
        if self.left == state.left {
            return;
        }
        let old = std::mem::take(self);
        *self = ViewState {
            left: state.left,
            focus: if old.focus == Pane::Detail { Pane::Detail } else { Pane::Resources },
            zoom: old.zoom,
            all: old.all,
            resources: old.resources.elsewhere(),
            detail: old.detail.elsewhere(),
            finder: Finder { commands: old.finder.commands, ..Finder::default() },
            told: Told { panicked: old.told.panicked, ..Told::default() },
            requests: Requests { last: None, next: old.requests.next },
            keys: old.keys.elsewhere(),
            look: old.look,
            screen: old.screen.elsewhere(),
            leaving: old.leaving,
            ..ViewState::default()
        };
    }
}
