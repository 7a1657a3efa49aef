//! The operator: watches kinds, queues their objects and reconciles each against one set of sources.
//! Knows a client, never what is behind it; reads no files. Read `manager`, then `queue`, `cache` and
//! `reconcile`.

mod connection;
pub mod manager;
mod queue;

pub use connection::follow_connection;
pub use opdev_reconcile::plan_all::foresee;
pub use opdev_release::script::outside::end_programs;
