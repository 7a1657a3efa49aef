//! Operators that are processes of their own: found in a project (`project/program/detect`), built (`build`),
//! started, stopped and swapped (`supervise`), their log lines read (`logs`), their reconciles told by
//! `trace`. Never draws, never names a cluster, and never decides what a reconcile means: `program/trace`
//! does. Starts nothing by itself: `inner_loop` asks for it.

pub mod audit;
mod build;
mod crash;
mod debugger;
pub(crate) mod deepcopy;
pub mod faults;
pub(crate) mod foreign_kinds;
mod gobuild;
pub mod heard;
mod lines;
pub mod logs;
pub(crate) mod notices;
pub(crate) mod observation_queue;
pub mod rehearsal;
pub(crate) mod requests;
pub mod start;
mod supervise;
pub mod tracing;
mod vet;
pub(crate) mod webhooks;

pub use build::traced_build;
pub use build::{BUILT, WRITTEN as WRITTEN_BY_BUILDS};

pub use supervise::{
    Ask, Awaited, BeforeBuild, BeforeStart, Environment, Limits, Prepared, Start, Supervisor,
};
