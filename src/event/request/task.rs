//! Tasks: requests with a begin and an end, which can be cancelled. One type for each part that carries tasks
//! out. `inner_loop/requests` hands each type on to its part, and no part ever sees the tasks of another one.

use super::{NewFrom, PodFailure, Propagation, RequestId};
use crate::{BackgroundCommand, DraftId, FaultRule, PauseScope, Permission, ProgramRun, TrustAnswer};
use opdev_object::meta::ObjectRef;
use serde_json::Value;
use std::sync::Arc;

/// Work that is announced and answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Task {
    /// Writes objects of the cluster.
    Object(ObjectTask),
    /// Is for the operator's manager, or for the operator's own program.
    Operator(OperatorTask),
    /// Opens a draft, or goes on with one.
    Draft(DraftTask),
    /// Is for the reloader, which publishes sources.
    Sources(SourcesTask),
    /// Concerns the cluster as a whole.
    Cluster(ClusterTask),
    /// Concerns the project on this machine.
    Project(ProjectTask),
    /// Several tasks as one. A task that fails does not stop the others.
    Each {
        /// The tasks.
        tasks: Vec<Task>,
    },
    /// Drop a request that is under way.
    Cancel {
        /// The request.
        id: RequestId,
    },
}

/// Writes objects of the cluster, at once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ObjectTask {
    /// Apply every object of a file or folder (server-side, field manager `opdev`).
    Apply {
        /// Path, relative to the project's root or absolute.
        path: String,
    },
    /// Set the replicas of an object through its scale subresource, else through the field that holds them.
    Scale {
        /// The object.
        object: ObjectRef,
        /// How many.
        replicas: i32,
    },
    /// Delete an object.
    Delete {
        /// The object.
        object: ObjectRef,
        /// The outcome for its dependents.
        propagation: Propagation,
        /// Seconds that its containers get to end; `None` leaves it to the object.
        grace: Option<u32>,
    },
    /// Remove finalizers of an object that is to go, whatever they wait for.
    DropFinalizers {
        /// The object.
        object: ObjectRef,
        /// The finalizers.
        finalizers: Vec<String>,
    },
    /// Make a pod of the embedded control plane fail, or let it recover.
    FailPod {
        /// The pod.
        pod: ObjectRef,
        /// How; `None` lets it recover.
        how: Option<PodFailure>,
    },
}

/// Is for the operator, whether its manager or a program of its own reconciles.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OperatorTask {
    /// Reconcile one object now.
    Reconcile {
        /// The object.
        object: ObjectRef,
    },
    /// Hold an object or a kind back: its causes collect, no reconcile begins.
    Pause {
        /// The part to pause.
        scope: PauseScope,
    },
    /// Let an object or a kind go on.
    Resume {
        /// The part to resume.
        scope: PauseScope,
    },
    /// Run exactly one reconcile for an object, paused or not.
    Step {
        /// The object.
        object: ObjectRef,
    },
    /// Run two reconciles for an object; fails where the second one writes anything.
    Check {
        /// The object.
        object: ObjectRef,
    },
    /// Wait until the operator has seen these objects as they are here, or newer, and all that it wrote.
    CatchUp {
        /// Each with its metadata.
        objects: Vec<Arc<Value>>,
    },
    /// Disturb the calls of the operator's own program: these rules replace those before; none ends it.
    Disturb {
        /// The faults, each with the calls that it hits.
        rules: Vec<FaultRule>,
    },
    /// Stop the operator's own programs until they are started again.
    StopPrograms,
    /// Start what was built last of the operator's own programs.
    StartPrograms,
}

/// Opens a text or a change before it is written, or goes on with an open one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DraftTask {
    /// Open an object in the editor; the answer is a draft.
    Edit {
        /// The object.
        object: ObjectRef,
    },
    /// Open a text for a new object in the editor.
    New {
        /// The text to begin with.
        from: NewFrom,
    },
    /// Add the rules that the operator's role lacks to its file; the answer is a draft that shows the change.
    AddRules,
    /// Undo something; the answer is a draft that shows what would change.
    Undo {
        /// The `id` in the list of what can be undone.
        entry: u64,
    },
    /// The editor has ended; its file is to be read.
    Edited {
        /// The draft.
        draft: DraftId,
        /// Why the text is not to be used: the editor did not start, or said so.
        problem: Option<String>,
    },
    /// Write what a draft holds.
    Write {
        /// The draft.
        draft: DraftId,
    },
    /// Open a draft's text in the editor once more, on top of what is there now.
    Reopen {
        /// The draft.
        draft: DraftId,
    },
    /// Drop a draft.
    Discard {
        /// The draft.
        draft: DraftId,
    },
}

/// Is for the reloader: what serves, and what is held.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SourcesTask {
    /// Read all files again, as if each had been saved.
    Reload,
    /// Let a held change through.
    ApplyHeld {
        /// The `id` of the held change.
        id: String,
    },
    /// Drop a held change: what serves goes on serving.
    DiscardHeld {
        /// The `id` of the held change.
        id: String,
    },
    /// Let saved charts wait for the user's word from now on, or go live at once again.
    HoldCharts {
        /// True if they wait.
        on: bool,
    },
}

/// Concerns the cluster as a whole: its protection, and copies of the operator that run there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClusterTask {
    /// Allow writes to a cluster that is not clearly local.
    Unlock {
        /// The context's name, as the user typed it.
        context: String,
    },
    /// Scale a copy of the operator on the cluster to 0 until opdev ends.
    Freeze {
        /// Its Deployment.
        object: ObjectRef,
    },
    /// Give a frozen copy its replicas back.
    Unfreeze {
        /// Its Deployment.
        object: ObjectRef,
    },
}

/// Concerns the project on this machine: its files, its programs, and what it may do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProjectTask {
    /// Run a program: in the place of the screen, which the screen itself does, or beside it.
    Run {
        /// The program.
        program: ProgramRun,
    },
    /// Rehearse an upgrade or torture the operator beside the screen, on control planes of their own.
    Background {
        /// The command.
        command: BackgroundCommand,
    },
    /// Save a text that the screen shows.
    SaveText {
        /// The file; none is one in `.opdev/saved`.
        path: Option<String>,
        /// The end of the name of a file in `.opdev/saved`.
        name: String,
        /// The text.
        text: String,
    },
    /// Download what charts of `watches.yaml` depend on and lack.
    FetchDependencies,
    /// Answer what the project wants beyond rendering and applying.
    Trust {
        /// The answer.
        answer: TrustAnswer,
        /// The permissions that the user saw: the answer is about nothing else.
        permissions: Vec<Permission>,
    },
}

/// A task of one part is a task.
macro_rules! tasks_of {
    ($($part:ident($task:ident)),+) => {$(
        impl From<$task> for Task {
            fn from(task: $task) -> Self {
                Task::$part(task)
            }
        }
    )+};
}

tasks_of!(
    Object(ObjectTask),
    Operator(OperatorTask),
    Draft(DraftTask),
    Sources(SourcesTask),
    Cluster(ClusterTask),
    Project(ProjectTask)
);
