//! From API objects to reasons for a pass: `stream` follows one kind, `merged` makes one stream of those of several namespaces,
//! `cache` turns its events into what has `happened`, `interest` says which of them are
//! kept whole, `hub` shares the caches with the passes, `mapping` finds the object to reconcile,
//! `change` says which fields changed and who wrote them, `pauses` when a watch that failed is tried again, `watched_object`
//! is an object as it was sent.

pub(crate) mod cache;
pub(crate) mod happened;
pub(crate) mod hub;
pub(crate) mod interest;
pub(crate) mod mapping;
mod merged;
pub(crate) mod pauses;
pub(crate) mod stream;
pub(crate) mod watched_object;
