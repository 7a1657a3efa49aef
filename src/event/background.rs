//! A run beside the screen: an upgrade that is rehearsed, or an operator that is tortured. Both are commands of
//! opdev with control planes of their own: the objects of the user are not touched. The screen shows how far the
//! run is and what it has found.

use super::{FindingSeverity, Place, RequestId};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// The command that runs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "command", rename_all = "camelCase")]
pub enum BackgroundCommand {
    /// `opdev torture`.
    Torture {
        /// The file of a sample, relative to the project's root; all samples where it is none.
        sample: Option<String>,
    },
    /// `opdev upgrade`.
    Upgrade {
        /// The version that users have: a tag, a commit or a folder; the newest tag where it is none.
        from: Option<String>,
    },
}

impl BackgroundCommand {
    /// The name of the command.
    pub fn name(&self) -> &'static str {
        match self {
            BackgroundCommand::Torture { .. } => "torture",
            BackgroundCommand::Upgrade { .. } => "upgrade",
        }
    }

    /// Its arguments behind the name and the options. A file of a project may be named like an option.
    pub fn arguments(&self) -> Vec<String> {
        match self {
            BackgroundCommand::Torture { sample: Some(sample) } if sample.starts_with('-') => {
                vec!["--".to_owned(), sample.clone()]
            }
            BackgroundCommand::Torture { sample } => sample.iter().cloned().collect(),
            BackgroundCommand::Upgrade { from } => from.iter().map(|from| format!("--from={from}")).collect(),
        }
    }

    /// The command line that does the same in a shell.
    pub fn line(&self) -> String {
        let words = ["opdev", self.name()].map(str::to_owned);
        let all: Vec<String> = words.into_iter().chain(self.arguments()).collect();
        super::shell::line(&all)
    }

    /// The run in a few words.
    pub fn words(&self) -> String {
        match self {
            BackgroundCommand::Torture { sample: Some(sample) } => format!("torture {sample}"),
            BackgroundCommand::Torture { sample: None } => "torture all samples".to_owned(),
            BackgroundCommand::Upgrade { from: Some(from) } => format!("rehearse the upgrade from {from}"),
            BackgroundCommand::Upgrade { from: None } => "rehearse the upgrade".to_owned(),
        }
    }

    /// Returns true if both are the same command, whatever its arguments.
    pub fn is_like(&self, other: &BackgroundCommand) -> bool {
        std::mem::discriminant(self) == std::mem::discriminant(other)
    }
}

/// A run with all that is known of it. A newer one of the same number takes its place.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct BackgroundRun {
    /// The command.
    pub command: BackgroundCommand,
    /// The request that runs it, to be cancelled.
    pub request: RequestId,
    /// When it began.
    pub began: Timestamp,
    /// Its subject, such as `v1.3.0 → your working tree`.
    pub about: String,
    /// The part that is done, in thousandths.
    pub done: u16,
    /// The step that is under way, in words; once it is over, the result of all.
    pub now: String,
    /// The headings of `rows`.
    pub columns: Vec<String>,
    /// The variants of an upgrade, or the scenarios of torture.
    pub rows: Vec<BackgroundRow>,
    /// The worst first, as they came.
    pub findings: Vec<BackgroundFinding>,
    /// Parts that were left out, and why.
    pub notes: Vec<String>,
    /// Its end; none while it runs.
    pub end: Option<BackgroundEnd>,
}

/// The end of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct BackgroundEnd {
    /// The time from its start to its end.
    #[serde(with = "super::millis", rename = "tookMs")]
    pub took: Duration,
    /// Why it came to no end of its own; none where it did.
    pub problem: Option<String>,
}

/// A row of a run: a variant, or a scenario.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct BackgroundRow {
    /// True once it is over.
    pub over: bool,
    /// The worst finding in it.
    pub worst: Option<FindingSeverity>,
    /// A text for each column.
    pub cells: Vec<String>,
}

/// A finding of a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct BackgroundFinding {
    /// Its severity.
    pub severity: FindingSeverity,
    /// The difference or the fault, in one sentence.
    pub title: String,
    /// The number of runs that showed it, such as `3 of 3`; empty where it is seen once.
    pub times: String,
    /// More about it, each text behind its name.
    pub about: Vec<(String, String)>,
    /// The place in the operator's code, where it is known.
    pub place: Option<Place>,
    /// Writes of the operator undisturbed, and here; both empty where nothing is compared.
    pub writes: (Vec<String>, Vec<String>),
    /// The command that shows it again.
    pub replay: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_the_one_of_the_shell() {
        let all = [
            (BackgroundCommand::Torture { sample: None }, "opdev torture"),
            (
                BackgroundCommand::Torture { sample: Some("config/my sample.yaml".to_owned()) },
                "opdev torture 'config/my sample.yaml'",
            ),
            (
                BackgroundCommand::Torture { sample: Some("--exec=ok/a.yaml".to_owned()) },
                "opdev torture -- --exec=ok/a.yaml",
            ),
            (BackgroundCommand::Upgrade { from: None }, "opdev upgrade"),
            (BackgroundCommand::Upgrade { from: Some("v1.3.0".to_owned()) }, "opdev upgrade --from=v1.3.0"),
        ];
        for (command, line) in &all {
            assert_eq!(command.line(), *line);
        }
        assert!(all[0].0.is_like(&all[1].0) && !all[0].0.is_like(&all[3].0));
    }
}
