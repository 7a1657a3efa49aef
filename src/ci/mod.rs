//! `opdev ci`: scenarios, each on a control plane of its own with the operator of the project, and what came of them; or each
//! in a namespace of its own on a cluster (`shared`).
//! Draws nothing and prints nothing but through the reports that it returns. `run` runs all of them, `world` is one
//! plane with its operator, `sample` is what is done with one sample, `kuttl` with a folder of
//! steps, `program` runs somebody else's tests.

mod found;
mod html;
mod inventory;
mod junit;
mod kuttl;
mod manifest;
mod program;
mod report;
mod rest;
mod run;
mod sample;
mod shared;
mod world;

pub use found::Gate;
pub use html::{EMBEDDED, html};
pub(crate) use junit::content;
pub use junit::junit;
pub use kuttl::KuttlTest;
pub use program::{Ended, program};
pub use report::{Case, Outcome, Report, Suite, annotations, text};
pub use run::{CiInput, KeptPlane, NoScenario, Pick, Scenario, Shard, ShardError, run, scenarios};
pub use sample::SampleFile;
pub use shared::Namespaces;
