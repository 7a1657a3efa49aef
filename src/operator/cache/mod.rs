//! From API objects to reasons for a pass: `stream` follows one kind, `merged` makes one stream of those of several namespaces,
//! `watched_object` is an object as it was sent. `cache` turns the events of a stream into what has `happened`; `interest` says
//! which objects it keeps whole, and `hub` shares the caches with the passes. `mapping` finds the object to reconcile; `pauses`
//! says when a watch that failed is tried again.

pub(crate) mod caches;
pub(crate) mod change;
pub(crate) mod interest;
pub(crate) mod mapping;
mod merged;
pub(crate) mod stream;
pub(crate) mod stream_cache;
pub(crate) mod watched_object;
