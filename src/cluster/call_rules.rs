//! Rules for writes to an API server: who may write, and when.

use http::{Method, StatusCode};
use std::sync::Arc;

/// Rules that are asked before a write, and told after each call.
pub trait CallRules: Send + Sync {
    /// Why no write may be sent now; `None` where it may.
    fn forbids_writes(&self) -> Option<&'static str>;

    /// A call has ended; without a status where there was no answer.
    fn called(&self, method: &Method, status: Option<StatusCode>);
}

/// Marks a write: the rules are asked each time before it is sent, retries included.
#[derive(Clone)]
pub(super) struct Guard(pub(super) Arc<dyn CallRules>);
