//! The client of an API server, for whoever calls one: operator, inner loop, scenarios. One call with its
//! answer, its warnings and its error (`call`, `error`), and objects with their resources over it (`objects`,
//! `discovery`). Never retries and never decides. Streams and watches go through kube's own client.

mod all_kinds;
pub mod backoff;
mod call;
mod discovery;
mod error;
pub mod error_words;
pub mod forbidden;
mod objects;
mod own_writes;
pub mod read_only;
pub mod recorder;
pub mod watch;

pub use all_kinds::all_kinds;
pub use call::{
    ApiClient, MERGE, OWN_MANAGER, STRATEGIC, escape, object_path, plural_path, resource_of, send,
};
pub use discovery::{Discovery, Resource};
pub use error::{ApiError, is_conflict, is_forbidden, is_not_found, without_secrets};
pub use objects::{Api, AsManager, At, Deletion, HELM_MANAGER};
pub use own_writes::mark;
