//! Requests to the reloader.

use std::fmt;
use tokio::sync::oneshot;

/// Requests to the reloader.
pub enum Ask {
    /// Take every file as saved.
    Reload,
    /// Let saved charts wait for the user's word from now on, or go live at once again.
    Hold { on: bool },
    /// Let a held change through, or drop it; the answer is what was done, or why nothing was.
    Answer { id: String, apply: bool, reply: oneshot::Sender<Result<String, HeldError>> },
}

/// Why the user's word about a held change did nothing.
#[derive(Debug)]
pub enum HeldError {
    /// The change of this name waits no more.
    Gone(String),
    /// It could not be carried out.
    Failed(anyhow::Error),
}

impl fmt::Display for HeldError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            HeldError::Gone(id) => write!(f, "{id} is not held any more"),
            // With its causes: `source` leads to none of them.
            HeldError::Failed(error) => write!(f, "{error:#}"),
        }
    }
}

impl std::error::Error for HeldError {}
