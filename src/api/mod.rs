//! The client of an API server, for whoever calls one: operator, inner loop, scenarios. One call with its answer, its
//! warnings and its error (`client`, `error`), and objects with their resources over it (`objects`, `discovery`).
//! Never retries and never decides. Streams and watches go through kube's own client.

mod all_kinds;
mod client;
mod discovery;
mod echo;
mod error;
mod objects;
pub mod read_only;

pub(crate) use all_kinds::all_kinds;
#[cfg(test)]
pub(crate) use client::ApiClient;
pub(crate) use client::{MERGE, OWN_MANAGER, STRATEGIC, escape, object_path, plural_path, resource_of, send};
pub(crate) use discovery::{Discovery, Resource};
pub(crate) use echo::mark;
pub(crate) use error::{ApiError, is_conflict, is_forbidden, is_not_found, without_secrets};
pub(crate) use objects::{Api, AsManager, At, Deletion, HELM_MANAGER};
