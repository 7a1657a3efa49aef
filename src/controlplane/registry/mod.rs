//! Per-resource rules over the store: what a create, an update or a delete means for each kind.
//! Never sees a request; `handlers` does. Read `resource` and `catalog` first, then `write`.

mod accept;
mod admit;
mod allocate;
mod boot;
mod builtin;
mod catalog;
mod context;
mod convert;
mod create;
mod decode;
mod defaults;
mod definitions;
mod delete;
pub(crate) mod fields;
mod gotype;
mod options;
mod plugins;
mod pod_security;
mod pods;
mod policy;
pub(crate) mod scale;
mod state;
mod strategy;
mod time;
mod update;
mod validate;
mod versions;
mod warnings;
mod write;

pub use accept::Unfit;
pub(crate) use accept::accept;
pub(crate) use admit::Subject;
#[cfg(test)]
pub(crate) use builtin::resources as builtin_resources;
pub use catalog::{Catalog, Served};
pub use context::{Context, FieldValidation};
pub use options::{DeleteOptions, Deleted};
pub(crate) use policy::forbidden;
pub use state::{Clock, Registry};
pub use strategy::Part;
pub use update::{Change, Make, Way};
