//! The operator's own program: how its newest build went, whether it runs, and how much of it opdev sees.

use super::{Place, TraceLevel, millis};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// The newest build of a program of the operator's own.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct BuildChanged {
    /// When.
    pub at: Timestamp,
    /// The program in words, such as `go ./cmd`.
    #[serde(default)]
    pub program: String,
    /// The build in words, such as `go build ./cmd`.
    pub build: String,
    /// The saved files that led to it, relative to the project's root; empty for the first one.
    pub files: Vec<String>,
    /// How far it is.
    pub state: BuildState,
}

/// How far a build is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "camelCase")]
pub enum BuildState {
    /// It runs.
    Building,
    /// It succeeded.
    #[serde(rename_all = "camelCase")]
    Built {
        /// From its start to its end.
        #[serde(with = "millis", rename = "tookMs")]
        took: Duration,
    },
    /// It failed; `Event::ReloadFailed` has the diagnostics. The last working program goes on.
    #[serde(rename_all = "camelCase")]
    Broken {
        /// From its start to its end.
        #[serde(with = "millis", rename = "tookMs")]
        took: Duration,
    },
}

/// A program of the operator's own as it is now. The newest event of each program counts; those before it say
/// nothing any more.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ProcessChanged {
    /// When.
    pub at: Timestamp,
    /// The program in words, such as `go ./cmd` or `kopf run operator.py`.
    pub program: String,
    /// How often it was started, this start included.
    pub starts: u64,
    /// The state of the program.
    pub state: ProcessState,
    /// How much opdev sees of its reconciles; nothing but log lines where it is missing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub traced: Option<TraceLevel>,
    /// The breakpoint at which a debugger holds the running program. Nothing is reconciled until it goes on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub breakpoint: Option<Place>,
}

/// The state of a program.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "camelCase")]
pub enum ProcessState {
    /// It is not started yet.
    Waiting {
        /// For what, such as `its first build`.
        why: String,
    },
    /// It runs.
    #[serde(rename_all = "camelCase")]
    Running {
        /// Its process id.
        pid: u32,
        /// The saved files that led to this start; empty for the first start and after a crash.
        files: Vec<String>,
        /// From the save to this start; zero where no save led to it.
        #[serde(with = "millis", rename = "sinceSaveMs")]
        since_save: Duration,
    },
    /// It has stopped by itself and is started again after a while.
    #[serde(rename_all = "camelCase")]
    Restarting {
        /// How it ended.
        exit: ProcessExit,
        /// After how long it is started again.
        #[serde(with = "millis", rename = "afterMs")]
        after: Duration,
    },
    /// It stops again and again, or cannot be started at all: the next save, or the key `R`, starts it again.
    Failed {
        /// How it ended.
        exit: ProcessExit,
    },
    /// It has ended with exit code 0, and is not started again by itself.
    Ended {
        /// How it ended.
        exit: ProcessExit,
    },
}

/// How a program ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ProcessExit {
    /// In words, such as `exit code 2` or `signal 9`.
    pub status: String,
    /// How long it ran.
    #[serde(with = "millis", rename = "ranMs")]
    pub ran: Duration,
    /// Its last line that sounds like a reason, such as that of a panic.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// The place in the project that a panic names.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub place: Option<Place>,
    /// The hint on it, where opdev knows one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
}
