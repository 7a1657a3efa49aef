//! `opdev torture`: the operator is killed between two writes, is not there while something changes, hears
//! late of it, or starts on a view of the past, and is judged by how that ends. Each run has a control plane
//! of its own; never a cluster. `campaign` is the whole, `run` one run. `scenario`, `point`, `plan`, `normal`
//! and `judge` are pure; `record` looks over the operator's shoulder, `operator` starts and ends it,
//! `subject` says what it is, `replay` is the file of a finding.

mod acts;
mod attempt;
mod campaign;
mod field_run;
mod fields;
mod judge;
mod lead;
mod normal;
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
mod scenario;
mod shrink;
mod subject;
mod told;

pub use campaign::{Replayed, replay, torture};
pub use judge::{Difference, Ignored, IgnoredError, Rule};
pub use plan::{Class, ClassError, Level};
pub use report::{Finding, Learnt, Progress, Report, junit, text};

use opdev_ci::Pick;
use opdev_os::private_folder::PrivateFolder;
use opdev_project::Project;
use opdev_project::trust::Trust;
use opdev_release::settings::Settings;
use std::fmt;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// What to torture, and how much.
#[derive(Clone)]
pub struct TortureInput {
    /// The project.
    pub project: Project,
    /// The permissions that the user gives the project.
    pub trust: Trust,
    /// How charts and scripts run.
    pub settings: Settings,
    /// The samples.
    pub pick: Pick,
    /// The scenarios; empty means all.
    pub scenarios: Vec<String>,
    /// True if one field at a time is changed, in place of all scenarios.
    pub fields: bool,
    /// The fields, by the start of their paths; empty means all.
    pub field: Vec<String>,
    /// How much is tried.
    pub level: Level,
    /// No plan begins after so long.
    pub time: Option<Duration>,
    /// The disturbances; empty means all.
    pub only: Vec<Class>,
    /// What is not compared.
    pub ignored: Vec<Ignored>,
    /// Random functions of charts draw by it.
    pub seed: u64,
    /// How many runs at once.
    pub parallel: usize,
    /// How long each step may take.
    pub limit: Duration,
    /// Where files of findings go; nothing for none.
    pub folder: Option<PrivateFolder>,
    /// Fires when all is to end.
    pub shutdown: CancellationToken,
}

/// Nothing can be tortured here.
#[derive(Debug)]
pub struct NoEnvironment(String);

impl fmt::Display for NoEnvironment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for NoEnvironment {}
