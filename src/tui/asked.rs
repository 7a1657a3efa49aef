//! Requests that the terminal has made, and questions that it was asked, so that each comes once.

use jiff::Timestamp;
use opdev_event::{DraftId, LogSource, Request, RequestId, TableQuery, TrustAsked};
use opdev_object::meta::ObjectRef;
use opdev_state::Seen;
use std::sync::Arc;

/// Requests that were sent because something is in sight.
#[derive(Debug, Default)]
pub(super) struct Asked {
    /// Containers whose logs are followed.
    pub(super) logs: Vec<LogSource>,
    /// The object that is read whole.
    pub(super) whole: Option<ObjectRef>,
    /// The object whose effective values are shown.
    pub(super) values: Option<ValuesOf>,
    /// The table of one kind, and the object of its selected row.
    pub(super) table: Option<TableQuery>,
    pub(super) row: Option<ObjectRef>,
    /// True if the kinds that the API server lists were asked for.
    pub(super) kinds: bool,
    /// True if the files of the project were asked for, while something needs them.
    pub(super) files: bool,
}

/// The object and the set of sources that values were asked for.
#[derive(Clone, Debug)]
pub(super) struct ValuesOf {
    pub(super) seen: Arc<Seen>,
    pub(super) sources: u64,
}

impl PartialEq for ValuesOf {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.seen, &other.seen) && self.sources == other.sources
    }
}

/// Questions that the user was asked already.
#[derive(Debug, Default)]
pub(super) struct Questions {
    /// The permissions that the project wants.
    pub(super) trust: Option<Arc<TrustAsked>>,
    /// Held changes.
    pub(super) held: Vec<String>,
    /// Rounds of drafts that the editor was opened for.
    pub(super) edited: Vec<(DraftId, u32)>,
    /// Stages of drafts.
    pub(super) reviewed: Vec<(DraftId, Timestamp)>,
}

/// Requests of keys.
#[derive(Debug)]
pub(super) struct Requests {
    pub(super) last: Option<Request>,
    pub(super) next: RequestId,
}

impl Default for Requests {
    fn default() -> Self {
        Requests { last: None, next: 1 }
    }
}

impl Requests {
    /// The number of a request that is made now.
    pub(super) fn number(&mut self) -> RequestId {
        let id = self.next;
        self.next += 1;
        id
    }
}
