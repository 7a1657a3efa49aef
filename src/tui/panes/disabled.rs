//! Why an action is not possible right now.

use std::borrow::Cow;
use std::fmt;

/// Why an action is not possible right now; `Display` is what the user reads behind the action's name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NotNow {
    /// opdev is about to end.
    Stopping,
    /// No API server is connected yet.
    NotConnected,
    /// Nothing is written to the cluster of this context.
    ReadOnly { context: String },
    /// Nothing is selected that this could be done with.
    NoTarget { could: &'static str },
    /// Nothing of these kinds is selected.
    NotSelected { what: &'static str },
    /// The selected object is not there any more.
    Deleted { kind: String, name: String },
    /// A command of the user's own does not start.
    Command { name: String, why: Box<NotNow> },
    /// The reason of one action alone.
    Said(Cow<'static, str>),
}

impl fmt::Display for NotNow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NotNow::Stopping => f.write_str("opdev is stopping"),
            NotNow::NotConnected => f.write_str("opdev is not connected yet"),
            NotNow::ReadOnly { context } => {
                write!(f, "writes are held back on context {context}; U unlocks it")
            }
            NotNow::NoTarget { could } => write!(f, "nothing is selected that could {could}"),
            NotNow::NotSelected { what } => write!(f, "no {what} is selected"),
            NotNow::Deleted { kind, name } => {
                write!(f, "{kind} {name} is deleted; what shows is how it was last")
            }
            NotNow::Command { name, why } => write!(f, "{name}: {why}"),
            NotNow::Said(sentence) => f.write_str(sentence),
        }
    }
}

impl std::error::Error for NotNow {}

impl From<&'static str> for NotNow {
    fn from(sentence: &'static str) -> Self {
        NotNow::Said(sentence.into())
    }
}

impl From<String> for NotNow {
    fn from(sentence: String) -> Self {
        NotNow::Said(sentence.into())
    }
}
