//! What one can ask of the reloader.

use tokio::sync::oneshot;

/// What one can ask of the reloader.
pub(in crate::dev) enum Ask {
    /// Take every file as saved.
    Reload,
    /// Let a held change through, or drop it; the answer is what was done, or why nothing was.
    Answer { id: String, apply: bool, reply: oneshot::Sender<Result<String, String>> },
}
