//! Programs that the user starts from the screen: commands of the user's own settings, and those that opdev
//! brings.

use super::Place;
use serde::{Deserialize, Serialize};

/// A command of the user's own `config.yaml`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct UserCommand {
    /// Its name in the palette.
    pub name: String,
    /// The name of its key, such as `g e`; none means that the palette alone starts it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// The program and its arguments; one text alone is a line for `sh`. `{name}`, `{ns}` and the like stand
    /// for what is selected.
    pub run: Vec<String>,
    /// True if `run` is a line for `sh`, in which what is put in is quoted.
    pub shell: bool,
    /// The kinds it is for; none means all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub kinds: Vec<String>,
    /// True if it asks before it starts.
    pub confirm: bool,
    /// True if it runs beside the screen, its lines in the log, rather than in its place.
    pub background: bool,
    /// True if it may change something in the cluster: then it does not start where writes are held back.
    pub writes: bool,
    /// Where it stands.
    pub place: Place,
}

/// A program to start.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ProgramRun {
    /// Its effect, in words.
    pub title: String,
    /// The program and its arguments.
    pub command: Vec<String>,
    /// Variables beside those of opdev itself.
    pub env: Vec<(String, String)>,
    /// True if it gets the terminal until it ends.
    pub in_front: bool,
    /// True if opdev waits for a key at its end, so that what it printed can be read. After a failure it
    /// always does.
    pub pause: bool,
    /// True if it may change something in the cluster.
    pub writes: bool,
}
