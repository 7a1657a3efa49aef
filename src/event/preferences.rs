//! What the settings say about the terminal: keys, colours, mouse. Words only, with their places; what they mean
//! is known where keys and colours are.

use super::{Diagnostic, Place};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// What the user's `config.yaml` and the project's `opdev.yaml` say about the terminal.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Preferences {
    /// When they were read.
    pub at: Timestamp,
    /// Keys bound anew; of two bindings of one action the later one counts.
    pub keys: Vec<Binding>,
    /// The theme.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub theme: Option<ThemeChoice>,
    /// Whether the mouse selects and scrolls.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mouse: Option<bool>,
    /// Why a file, or a part of it, has no effect.
    pub problems: Vec<Diagnostic>,
}

/// The keys of one action.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Binding {
    /// The action's id.
    pub action: String,
    /// Names of keys, such as `ctrl-p` or `g g`; none means that no key does it.
    pub keys: Vec<String>,
    /// Where it says so.
    pub place: Place,
}

/// A theme by name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ThemeChoice {
    /// Its name.
    pub name: String,
    /// Where it says so.
    pub place: Place,
    /// Whether the user's own file says so, rather than the project's.
    pub own: bool,
    /// The user's theme file of that name, where there is one: its path and what it holds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<(String, String)>,
}
