//! `opdev torture`: the operator is killed between two writes, is not there while something changes, hears
//! late of it, or starts on a view of the past, and is judged by how that ends. Each run has a control plane
//! of its own; never a cluster. `campaign` is the whole, `run` one run. `point`, `plan` and `judge`
//! are pure; `record` looks over the operator's shoulder, `operator` starts and ends it,
//! `subject` says what it is, `replay` is the file of a finding.

mod acts;
mod campaign;
mod fields;
mod input;
mod judge;
mod lead;
mod operator;
mod plan;
mod point;
mod query;
mod record;
mod replay;
mod report;
mod restless;
mod ruled;
mod run;
mod shrink;
mod subject;
mod writes_beside;

pub use campaign::{replay, torture};
pub use input::{NoEnvironment, TortureInput};
pub use judge::{Difference, Ignored, IgnoredError, Rule};
pub use opdev_steps::scenario::SCENARIOS;
pub use plan::{Class, ClassError, Level};
pub use replay::Replayed;
pub use report::{Finding, Learnt, Progress, Report, junit, many, text};
pub use writes_beside::WritesBeside;
