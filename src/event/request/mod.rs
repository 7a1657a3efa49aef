//! Requests to the inner loop, split by the part that carries them out. `task` has what is announced and
//! answered by `RequestStarted` and `RequestFinished`, `words` what a task is called and whether it writes to
//! the cluster.

mod task;
mod words;

pub use task::{ClusterTask, DraftTask, ObjectTask, OperatorTask, ProjectTask, SourcesTask, Task};

use super::{Asker, Borders, Destination, LogSource, OnExit, TableQuery};
use opdev_object::meta::{Gvk, ObjectRef};
use serde::{Deserialize, Serialize};

/// Numbers requests in the order they were made.
pub type RequestId = u64;

/// How a pod that runs can be made to fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum PodFailure {
    /// Its containers end with 1 and are started again, later and later.
    Crash,
    /// It runs and is not ready.
    Unready,
    /// Its node needs the memory.
    Evict,
}

impl PodFailure {
    /// In the order of the list to choose from.
    pub const ALL: [PodFailure; 3] = [PodFailure::Crash, PodFailure::Unready, PodFailure::Evict];

    /// The word for it, as the annotation has it.
    pub fn word(self) -> &'static str {
        match self {
            PodFailure::Crash => "crash",
            PodFailure::Unready => "unready",
            PodFailure::Evict => "evict",
        }
    }

    /// The pod's behaviour in words.
    pub fn told(self) -> &'static str {
        match self {
            PodFailure::Crash => "crashes, and is started again with growing delays",
            PodFailure::Unready => "runs and is not ready",
            PodFailure::Evict => "is evicted",
        }
    }
}

/// An imperative, from a key or from the command line. Each variant belongs to one part of the inner loop.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Request {
    /// Work with a begin and an end: `RequestStarted` announces it, `RequestFinished` answers it.
    /// `inner_loop/requests` carries it out, and `program/requests` what concerns the operator's own
    /// programs.
    Task(Task),
    /// Something to read for the screen, or to keep for it. It is not announced. Its answer is an event of
    /// its own. The inner loop hands it to whoever reads.
    View(ViewRequest),
    /// Where opdev works, and when it stops. The inner loop does it.
    Session(SessionRequest),
    /// One reconcile of an object by one controller of the operator's program, which shows whether it has
    /// missed a change. Findings ask for it, on the embedded control plane only.
    LookAgain {
        /// The controller's name.
        controller: String,
        /// The object.
        object: ObjectRef,
    },
}

/// The answer of a program whose reconciles cannot be ordered: one in another language, or built without a
/// trace.
pub const CANNOT_BE_ASKED: &str = "the program cannot be asked for one reconcile";

/// Requests for what the screen reads. A level replaces the one before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ViewRequest {
    /// Follow the logs of these containers and of no others. A level, answered by log lines.
    PodLogs {
        /// The sources; none leaves all.
        sources: Vec<LogSource>,
    },
    /// Read this object whole, where only its metadata is watched, and keep it current, and no other one. A
    /// level, answered by `ObjectSeen`.
    Look {
        /// The object; none lets go.
        object: Option<ObjectRef>,
    },
    /// Read the objects of a kind as the API server's table of them, and keep it current, and no other table.
    /// A level, answered by `TableChanged`.
    ShowTable {
        /// The table; none lets go.
        table: Option<TableQuery>,
    },
    /// Read the object of the table's selected row whole, and keep it current. A level, answered by
    /// `RowRead`.
    ReadRow {
        /// The object; none lets go.
        object: Option<ObjectRef>,
    },
    /// Tell which kinds the API server serves. Answered by `KindsServed`.
    ListKinds,
    /// Tell which files and folders a typed path may lead to.
    ListPaths {
        /// The typed text.
        typed: String,
    },
    /// Tell which files the project has. Answered by `FilesListed`.
    ListFiles,
    /// Tell the effective values of a custom resource that a chart feeds, and where each comes from.
    ExplainValues {
        /// The object.
        object: ObjectRef,
    },
    /// Keep where the borders between the panes stand, for the next start. A level without an answer.
    Remember {
        /// Where.
        borders: Borders,
    },
}

/// Requests that concern opdev itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SessionRequest {
    /// Go on working on another cluster. Nothing changes here until that one answers; then something is done
    /// about the custom resources, and everything begins anew there.
    Switch {
        /// Where to.
        to: Destination,
        /// The outcome for the custom resources here.
        how: OnExit,
    },
    /// Stop opdev, after something was done about the custom resources.
    Leave {
        /// The way out.
        how: OnExit,
    },
    /// Stop opdev.
    Quit {
        /// The one who asks.
        by: Asker,
    },
}

impl From<ViewRequest> for Request {
    fn from(request: ViewRequest) -> Self {
        Request::View(request)
    }
}

impl From<SessionRequest> for Request {
    fn from(request: SessionRequest) -> Self {
        Request::Session(request)
    }
}

impl<T: Into<Task>> From<T> for Request {
    fn from(task: T) -> Self {
        Request::Task(task.into())
    }
}

/// The text that a new object begins with.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "from", rename_all = "camelCase")]
pub enum NewFrom {
    /// The text of a sample.
    Sample {
        /// Path relative to the project's root.
        path: String,
    },
    /// The fields in the schema of a kind, with comments.
    Kind {
        /// The kind.
        gvk: Gvk,
    },
}

/// The outcome for the dependents of a deleted object.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Propagation {
    /// Dependents are collected afterwards.
    #[default]
    Background,
    /// Dependents go first.
    Foreground,
    /// Dependents stay, without the owner.
    Orphan,
}

/// How a request ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "result", rename_all = "camelCase")]
pub enum RequestOutcome {
    /// Done; the text says what was done, warnings are the API server's own.
    Done {
        /// In words.
        summary: String,
        /// Warning headers, one each.
        warnings: Vec<String>,
    },
    /// Refused or failed.
    Failed {
        /// The error, and why.
        message: String,
        /// The fix.
        hint: Option<String>,
    },
    /// The user dropped it.
    Cancelled {
        /// The known facts about what it did.
        message: String,
    },
}
