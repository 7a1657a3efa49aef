//! Keys: which does what, which start commands of the user's own, and which were typed that begin something
//! longer.

use jiff::Timestamp;
use opdev_panes::keys::chord::Key;
use opdev_panes::keys::keymap::Keymap;
use opdev_panes::keys::user_command::OwnCommand;

/// Keys.
#[derive(Default)]
pub(super) struct Typing {
    /// Keys and their actions.
    pub(super) map: Keymap,
    /// The commands of the user's own settings.
    pub(super) own: Vec<OwnCommand>,
    /// Keys typed that begin something longer.
    pub(super) typed: Vec<Key>,
    /// When they were first drawn.
    pub(super) typed_at: Option<Timestamp>,
}

impl Typing {
    /// These keys on another cluster.
    pub(super) fn elsewhere(self) -> Self {
        Typing { map: self.map, own: self.own, ..Typing::default() }
    }
}
