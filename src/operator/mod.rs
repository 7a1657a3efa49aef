//! The operator: watches kinds, queues their objects and reconciles each against one set of sources.
//! Knows a client, never what is behind it; reads no files. Read `manager`, then `queue`, `watch` and `reconcile`.

pub(crate) mod busy;
pub mod deadline;
mod foresight;
mod loops;
pub mod manager;
pub(crate) mod missing_right;
mod queue;
mod reconcile;
mod settings;
mod shadowed;
mod unfit;
pub use foresight::foresee;
pub use reconcile::end_programs;
mod watch;
pub mod watching;
