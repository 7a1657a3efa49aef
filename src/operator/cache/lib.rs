//! From API objects to reasons for a reconcile: `stream` follows one kind, `merged` makes one stream of those of several namespaces,
//! `watched_object` is an object as it was sent. `cache` turns the events of a stream into what has `happened`; `interest` says
//! which objects it keeps whole, and `hub` shares the caches with the reconciles. `mapping` finds the object to reconcile; `pauses`
//! says when a watch that failed is tried again.

pub mod caches;
pub mod change;
pub mod interest;
pub mod mapping;
mod merged;
pub mod stream;
pub mod stream_cache;
pub(crate) mod watched_object;
