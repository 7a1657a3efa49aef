//! Per-resource rules over the store: what a create, an update or a delete means for each kind.
//! `create`, `update` and `delete` are the same for all kinds; what differs is in the `strategy` of a kind,
//! and all strategies stand in `kinds`. Never sees a request; `handlers` does. Read `resource` and `catalog`
//! first, then `write`.

#![cfg_attr(test, allow(clippy::disallowed_methods, reason = "tests may wait"))]

mod accept;
mod admit;
mod allocate;
mod api_services;
mod boot;
mod builtin;
mod catalog;
mod context;
mod convert;
mod create;
mod definitions;
mod delete;
mod evict;
pub mod fields;
mod kinds;
mod options;
mod plugins;
mod pod_security;
mod pods;
mod policy;
mod prepare;
mod printers;
pub mod scale;
mod state;
mod strategy;
#[cfg(test)]
mod tests;
mod update;
mod validate;
pub mod versions;
mod warnings;
mod write;

pub use accept::AcceptError;
pub use accept::{accept, accept_applied};
pub use admit::AdmissionSubject;
pub use builtin::resources as builtin_resources;
pub use catalog::{Catalog, Served};
pub use context::{Context, FieldValidation};
pub use kinds::{consumers, indexing};
pub use options::{DeleteOptions, Deleted};
pub use policy::forbidden;
pub use printers::Printers;
pub use state::{Clock, Registry};
pub use strategy::{Post, strategy_of};
pub use update::{Change, Make, UpdateMethod, unversioned};
