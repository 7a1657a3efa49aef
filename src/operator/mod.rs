//! The operator: watches kinds, queues their objects and reconciles each against one set of sources.
//! Knows a client, never what is behind it; reads no files. Read `manager`, then `queue`, `watch` and `reconcile`.

mod cache;
pub mod manager;
mod queue;
pub mod reconcile;
pub mod release;
pub use reconcile::plan_all::foresee;
pub use release::script::outside::end_programs;
