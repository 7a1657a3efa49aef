//! The wishes of whoever tortures an operator. Plain data.

use super::judge::Ignored;
use super::plan::{Class, Level};
use opdev_ci::Pick;
use opdev_controlplane::ExecAnswer;
use opdev_os::private_folder::PrivateFolder;
use opdev_project::Project;
use opdev_project::trust::Trust;
use opdev_release::settings::Settings;
use std::collections::BTreeSet;
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
    /// Answers of an `exec` in a simulated pod.
    pub exec: Vec<ExecAnswer>,
    /// What is not compared.
    pub ignored: Vec<Ignored>,
    /// Random functions of charts draw by it.
    pub seed: u64,
    /// How many runs at once. `None`: as many as fit the cores, where nothing of a program is in the way.
    pub parallel: Option<usize>,
    /// How long each step may take.
    pub limit: Duration,
    /// Where files of findings go; nothing for none.
    pub folder: Option<PrivateFolder>,
    /// Fires when all is to end.
    pub shutdown: CancellationToken,
}

/// Nothing can be tortured here.
#[derive(Debug)]
pub struct NoEnvironment(pub(super) String);

impl fmt::Display for NoEnvironment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for NoEnvironment {}

/// Why no scenario was learned though none failed: the time was over before `left_out` of them, or no
/// sample has one that is `wanted`.
pub(super) fn unlearned(wanted: &[String], all: BTreeSet<String>, left_out: usize) -> String {
    if left_out > 0 || wanted.is_empty() {
        return "the time was over before a scenario was learned".to_owned();
    }
    let all: Vec<String> = all.into_iter().collect();
    format!("no sample has the scenario {}: the samples have {}", wanted.join(", "), all.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;

    #[test]
    fn a_scenario_that_no_sample_has_is_no_lack_of_time() {
        let all = || BTreeSet::from(["child".to_owned(), "recreate".to_owned()]);
        let wanted = ["grow".to_owned()];
        let words = unlearned(&wanted, all(), 0);
        assert_eq!(words, "no sample has the scenario grow: the samples have child, recreate");
        expect!["the time was over before a scenario was learned"].assert_eq(&unlearned(&wanted, all(), 1));
    }
}
