//! What one can ask of the reloader.

use tokio::sync::oneshot;

/// What one can ask of the reloader.
pub(in crate::dev) enum Ask {
    /// Take every file as saved.
    Reload,
    /// Let saved charts wait for the user's word from now on, or go live at once again.
    Hold { on: bool },
    /// Let a held change through, or drop it; the answer is what was done, or why nothing was.
    Answer { id: String, apply: bool, reply: oneshot::Sender<Result<String, String>> },
}
