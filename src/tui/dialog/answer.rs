//! The answer of a dialog to a key.

use crate::layer::Layer;
use opdev_event::{Place, Request};
use opdev_panes::keys::action::Do;

/// The result of a key in a dialog.
pub(crate) enum Answer {
    /// The dialog closes, and the key is for what is below.
    Pass,
    /// The dialog stays.
    Stay,
    /// The dialog closes.
    Close,
    /// The dialog closes and something is asked for.
    Ask(Request),
    /// Something is asked for, and the dialog stays.
    AskOn(Request),
    /// The dialog closes and the lines of the detail pane are saved as this file.
    Save(String),
    /// The dialog closes and a text goes to the clipboard: what it is, and itself.
    Copy(&'static str, String),
    /// The dialog closes and a place in a file of the project opens in the editor.
    OpenFile(Place),
    /// The dialog closes and an action is done.
    Act(Do),
    /// Another dialog takes its place.
    Open(Box<dyn Layer>),
}
