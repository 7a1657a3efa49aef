//! The outcome of a request.

use super::objects::undo_list::Undo;

/// What was done, in words, and the API server's warnings.
#[derive(Debug, Default)]
pub(crate) struct Done {
    pub(super) summary: String,
    pub(super) warnings: Vec<String>,
    /// What was refused, where the rest was done.
    pub(super) failed: Vec<String>,
    /// What undoes it, one for each write.
    pub(super) undo: Vec<Undo>,
    /// What it is called in the list of what can be undone, where it is not the request's own words.
    pub(super) what: Option<String>,
}

impl Done {
    pub(super) fn said(summary: impl Into<String>) -> Done {
        Done { summary: summary.into(), ..Done::default() }
    }
}
