//! Settings of the terminal: keys, colours, mouse. Words only, with their places; what they mean is known
//! where keys and colours are.

use super::{Diagnostic, Place, UserCommand};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// Settings of the terminal in the user's `config.yaml` and the project's `opdev.yaml`.
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
    /// True if signs and lines are ASCII letters; where nobody says so, the locale decides.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ascii: Option<bool>,
    /// True if the mouse selects and scrolls.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mouse: Option<bool>,
    /// True if places in files are links of the terminal; where nobody says so, they are on terminals that
    /// are known to understand links.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub links: Option<bool>,
    /// Where the borders between the panes stood last, as far as the user has moved them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub borders: Option<Borders>,
    /// Commands of the user's own.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub commands: Vec<UserCommand>,
    /// Why a file, or a part of it, has no effect.
    pub problems: Vec<Diagnostic>,
}

/// Where the user moved the borders between the panes: thousandths of the width, or of the height, of all
/// panes. Nothing leaves a border where what it shows asks for it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Borders {
    /// Right of the lists.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lists: Option<u16>,
    /// Right of the reconciles, with three columns.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reconciles: Option<u16>,
    /// Below the custom resources.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resources: Option<u16>,
    /// Below the reconciles, where the detail pane or the operator log stands there.
    #[serde(skip_serializing_if = "Option::is_none", alias = "passes")]
    pub below_reconciles: Option<u16>,
    /// Above the operator log, where that stands below the lists.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub log: Option<u16>,
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
    /// True if the user's own file says so, rather than the project's.
    pub own: bool,
    /// The user's theme file of that name, where there is one: its path and what it holds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<(String, String)>,
}
