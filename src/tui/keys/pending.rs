//! Keys: which does what, which start commands of the user's own, and which were typed that begin something longer.

use super::keymap::Keymap;
use jiff::Timestamp;
use opdev_panes::keys::chord::Key;
use opdev_panes::keys::user_command::OwnCommand;

/// Keys.
#[derive(Default)]
pub(crate) struct Typing {
    /// Which key does what.
    pub(crate) map: Keymap,
    /// The commands of the user's own settings.
    pub(crate) own: Vec<OwnCommand>,
    /// Keys typed that begin something longer.
    pub(crate) typed: Vec<Key>,
    /// When they were first drawn.
    pub(crate) typed_at: Option<Timestamp>,
}

impl Typing {
    /// The same keys on another cluster.
    pub(crate) fn elsewhere(self) -> Self {
        Typing { map: self.map, own: self.own, ..Typing::default() }
    }
}
