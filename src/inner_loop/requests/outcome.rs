//! The outcome of a request.

use super::objects::undo_list::Undo;

/// The result of a request in words, and the API server's warnings.
#[derive(Debug, Default)]
pub(crate) struct Done {
    pub(super) summary: String,
    pub(super) warnings: Vec<String>,
    /// The refused part, where the rest was done.
    pub(super) failed: Vec<String>,
    /// The undo, one for each write.
    pub(super) undo: Vec<Undo>,
    /// The name in the list of what can be undone, where it is not the request's own words.
    pub(super) what: Option<String>,
}

impl Done {
    pub(super) fn said(summary: impl Into<String>) -> Done {
        Done { summary: summary.into(), ..Done::default() }
    }
}
