//! Operators that are processes of their own: found in a project (`detect`), built (`build`), started, stopped and
//! swapped (`supervise`), their log lines read (`logs`), their passes told by `trace`. Never draws, never names a
//! cluster, and never decides what a pass means: `tap::attribute` does. Starts nothing by itself: `dev` asks for it.

mod build;
mod child;
mod connections;
mod crash;
mod debugger;
mod detect;
mod gobuild;
pub mod kustomization;
mod lines;
mod logs;
pub mod manager_manifest;
mod missing_kinds;
mod plan;
mod several;
mod small_file;
mod supervise;
pub mod trace;
mod tree;
mod vet;
pub mod webhooks;

pub use build::WRITTEN as WRITTEN_BY_BUILDS;
pub use child::{GroupEnd, Launch, Printed, ProcessGroup, printed};
pub use detect::detect;
pub use missing_kinds::MissingKind;
pub use plan::{Build, Generate, Plan, Programs, Settings, TraceWish};
pub use several::detect_all;
pub use small_file::{small_file, small_text, unreadable};
pub use supervise::{
    Ask, Awaited, BeforeBuild, BeforeStart, Environment, Limits, Prepared, Start, Supervisor,
};
