//! Actions that a project wants of opdev beyond rendering charts and applying them to a local cluster. Each
//! wish is asked about once. Plain data: `project/trust` collects what is wanted, asks and remembers.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// One thing that a project's files want and that the user has to allow first. Its fields are exactly what
/// the files say: a change of any of them is another permission, and is asked about anew.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(tag = "permission", rename_all = "camelCase")]
pub enum Permission {
    /// Reconcilers may run a program (`exec`).
    RunProgram {
        /// Its name or path, as `allow.programs` has it.
        program: String,
    },
    /// Reconcilers may reach a host (`fetch`).
    ReachHost {
        /// The host, as `allow.hosts` has it.
        host: String,
    },
    /// The embedded control plane sends objects to a host, as a webhook of a chart, of a script or of a file
    /// wants.
    CallHost {
        /// The host, without a port.
        host: String,
    },
    /// A chart gets the value of a variable of the user's environment.
    ReadVariable {
        /// The variable's name.
        variable: String,
        /// The kind whose chart gets it.
        kind: String,
        /// The value that it becomes a part of.
        key: String,
    },
    /// A file is applied at every start, without a key being pressed, while reconcilers may run programs or
    /// reach hosts.
    ApplyOnStart {
        /// The file, as `applyOnStart` has it.
        file: String,
    },
    /// The operator's own program is built and started.
    StartOperator {
        /// Its words, with the variables that are set for it before them.
        program: String,
        /// The command that builds it; empty where there is none.
        build: String,
        /// The folder in which both run.
        folder: String,
    },
}

impl Permission {
    /// The setting that asks for it.
    pub fn setting(&self) -> &'static str {
        match self {
            Permission::RunProgram { .. } => "allow.programs in opdev.yaml",
            Permission::ReachHost { .. } => "allow.hosts in opdev.yaml",
            Permission::CallHost { .. } => {
                "webhooks, conversions and services that its charts and files make"
            }
            Permission::ReadVariable { .. } => "overrideValues in watches.yaml",
            Permission::ApplyOnStart { .. } => "applyOnStart in opdev.yaml",
            Permission::StartOperator { .. } => "operator in opdev.yaml, or the Go files and the Makefile",
        }
    }
}

/// The allowed action, in words that follow "the project wants to".
impl std::fmt::Display for Permission {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Permission::RunProgram { program } => {
                write!(f, "run the program {program}, called by reconcilers")
            }
            Permission::ReachHost { host } => write!(f, "reach the host {host}, called by reconcilers"),
            Permission::CallHost { host } => {
                write!(
                    f,
                    "send objects of the embedded control plane to the host {host}, called as a webhook"
                )
            }
            Permission::ReadVariable { variable, kind, key } => {
                write!(f, "read the environment variable {variable} into the value {key} of {kind}")
            }
            Permission::ApplyOnStart { file } => {
                write!(f, "apply {file} at every start, so that reconcilers run without a key")
            }
            Permission::StartOperator { program, build, folder } if build.is_empty() => {
                write!(f, "start the operator's own program, `{program}`, in {folder}")
            }
            Permission::StartOperator { program, build, folder } => {
                write!(
                    f,
                    "build the operator's own program, `{build}`, and start it, `{program}`, in {folder}"
                )
            }
        }
    }
}

/// The project wants something that the user was not asked about yet. What its files hold is not used before
/// the answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TrustAsked {
    /// When.
    pub at: Timestamp,
    /// The project's root folder.
    pub root: String,
    /// All that the project wants and the user has not refused, in the order of the kinds of permission.
    pub wanted: Vec<Permission>,
    /// Those of `wanted` that were not answered yet.
    pub unanswered: Vec<Permission>,
}

/// The user's answer to what a project wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum TrustAnswer {
    /// Allowed until opdev ends.
    Once,
    /// Allowed, and remembered for this project until what it wants changes.
    Trust,
    /// Not allowed until opdev ends, or until the user is asked again.
    Refuse,
}

/// The user has answered what the project wants.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TrustAnswered {
    /// When.
    pub at: Timestamp,
    /// The answer.
    pub answer: TrustAnswer,
    /// The permissions it was about.
    pub permissions: Vec<Permission>,
}
