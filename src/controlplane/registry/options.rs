//! Options of a delete, and its outcome.

use opdev_apimachinery::contract::Propagation;
use opdev_storage::Stored;
use std::sync::Arc;

/// `DeleteOptions`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeleteOptions {
    /// Only the object with this uid.
    pub uid: Option<String>,
    /// Only the object at this revision.
    pub resource_version: Option<String>,
    /// Seconds; `None` is the object's own.
    pub grace: Option<i64>,
    /// The outcome for dependents.
    pub propagation: Option<Propagation>,
    /// The old way to say it.
    pub orphan_dependents: Option<bool>,
    /// It goes even where it cannot be converted to the version that is asked for.
    pub as_kept: bool,
    /// The object was selected together with others: nobody has named it.
    pub selected: bool,
}

/// The outcome for a delete.
#[derive(Clone, Debug)]
pub struct Deleted {
    /// The object: its last state, or as it is now that it is marked.
    pub object: Arc<Stored>,
    /// True if it is gone.
    pub gone: bool,
}
