//! From API objects to reasons for a pass: `stream` follows one kind, `merged` makes one stream of those of several namespaces,
//! `cache` turns its events into changes, `hub` shares the caches with the passes, `mapping` finds the object to reconcile,
//! `change` says which fields changed and who wrote them, `pauses` when a watch that failed is tried again, `whole` is an
//! object as it was sent.

pub(crate) mod cache;
pub(crate) mod hub;
pub(crate) mod mapping;
mod merged;
pub(crate) mod pauses;
pub(crate) mod stream;
mod whole;
