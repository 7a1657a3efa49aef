//! From API objects to reasons for a reconcile: `stream` follows one kind, `merged` makes one stream of those
//! of several namespaces, `watched_object` is an object as it was sent. `stream_cache` turns the events of a
//! stream into a `change`; `interest` says which objects it keeps whole, and `caches` shares them with the
//! reconciles. `mapping` finds the object to reconcile; `client/watch/backoff` says when a watch that failed
//! is tried again.

pub mod caches;
pub mod change;
pub mod interest;
pub mod mapping;
mod merged;
pub mod stream;
pub mod stream_cache;
pub(crate) mod watched_object;
