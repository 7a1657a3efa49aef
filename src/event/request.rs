//! What one can ask of the inner loop. Each request is answered by `RequestStarted` and `RequestFinished`.

use super::{
    Asker, Borders, Destination, DraftId, FaultRule, LogSource, OnExit, PauseScope, Permission, ProgramRun,
    TableQuery, TrustAnswer,
};
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

    /// What the pod does.
    pub fn told(self) -> &'static str {
        match self {
            PodFailure::Crash => "crashes, and is started again with growing delays",
            PodFailure::Unready => "runs and is not ready",
            PodFailure::Evict => "is evicted",
        }
    }
}

/// An imperative, from a key or from the command line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "request", rename_all = "camelCase")]
pub enum Request {
    /// Apply every object of a file or folder (server-side, field manager `opdev`).
    Apply {
        /// Path, relative to the project's root or absolute.
        path: String,
    },
    /// Set the replicas of an object through its scale subresource, else through the field that holds them.
    Scale {
        /// Which object.
        object: ObjectRef,
        /// How many.
        replicas: i32,
    },
    /// Delete an object.
    Delete {
        /// Which object.
        object: ObjectRef,
        /// What happens to its dependents.
        propagation: Propagation,
        /// Seconds that its containers get to end; `None` leaves it to the object.
        grace: Option<u32>,
    },
    /// Remove finalizers of an object that is to go, whatever they wait for.
    DropFinalizers {
        /// Which object.
        object: ObjectRef,
        /// Which ones.
        finalizers: Vec<String>,
    },
    /// Reconcile one object now.
    Reconcile {
        /// Which object.
        object: ObjectRef,
    },
    /// Hold an object or a kind back: its causes collect, no pass begins.
    Pause {
        /// What.
        scope: PauseScope,
    },
    /// Let an object or a kind go on.
    Resume {
        /// What.
        scope: PauseScope,
    },
    /// Run exactly one pass for an object, paused or not.
    Step {
        /// Which object.
        object: ObjectRef,
    },
    /// Follow the logs of these containers and of no others. A level: it is not announced, and answered by log lines.
    PodLogs {
        /// Which; none leaves all.
        sources: Vec<LogSource>,
    },
    /// Read this object whole, where only its metadata is watched, and keep it current, and no other one. A level: it is not
    /// announced, and answered by `ObjectSeen`.
    Look {
        /// Which; none lets go.
        object: Option<ObjectRef>,
    },
    /// Read the objects of a kind as the API server's table of them, and keep it current, and no other table. A level: it is not
    /// announced, and answered by `TableChanged`.
    ShowTable {
        /// Which; none lets go.
        table: Option<TableQuery>,
    },
    /// Read the object of the table's selected row whole, and keep it current. A level: it is not announced, and answered by
    /// `RowRead`.
    ReadRow {
        /// Which; none lets go.
        object: Option<ObjectRef>,
    },
    /// Run a program: in the place of the screen, which the screen itself does, or beside it.
    Run {
        /// Which.
        program: ProgramRun,
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
    /// Tell which kinds the API server serves. It is not announced, and answered by `KindsServed`.
    ListKinds,
    /// Keep where the borders between the panes stand, for the next start. A level: it is neither announced nor answered.
    Remember {
        /// Where.
        borders: Borders,
    },
    /// Make a pod of the embedded control plane fail, or let it recover.
    FailPod {
        /// Which pod.
        pod: ObjectRef,
        /// How; `None` lets it recover.
        how: Option<PodFailure>,
    },
    /// Run two passes for an object; fails where the second one writes anything.
    Check {
        /// Which object.
        object: ObjectRef,
    },
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
        /// Whether they wait.
        on: bool,
    },
    /// Disturb the calls of the operator's own program: these rules replace those before; none ends it.
    Disturb {
        /// Which faults, for which calls.
        rules: Vec<FaultRule>,
    },
    /// Answer what the project wants beyond rendering and applying.
    Trust {
        /// The answer.
        answer: TrustAnswer,
        /// What the user saw: the answer is about nothing else.
        permissions: Vec<Permission>,
    },
    /// Open an object in the editor; the answer is a draft.
    Edit {
        /// Which object.
        object: ObjectRef,
    },
    /// Open a text for a new object in the editor.
    New {
        /// What the text begins with.
        from: NewFrom,
    },
    /// The editor has ended; its file is to be read.
    Edited {
        /// Which draft.
        draft: DraftId,
        /// Why the text is not to be used: the editor did not start, or said so.
        problem: Option<String>,
    },
    /// Write what a draft holds.
    Write {
        /// Which draft.
        draft: DraftId,
    },
    /// Open a draft's text in the editor once more, on top of what is there now.
    Reopen {
        /// Which draft.
        draft: DraftId,
    },
    /// Drop a draft.
    Discard {
        /// Which draft.
        draft: DraftId,
    },
    /// Undo something; the answer is a draft that shows what would change.
    Undo {
        /// The `id` in the list of what can be undone.
        entry: u64,
    },
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
    /// Add the rules that the operator's role lacks to its file; the answer is a draft that shows the change.
    AddRules,
    /// Download what charts of `watches.yaml` depend on and lack.
    FetchDependencies,
    /// Read all files again, as if each had been saved.
    Reload,
    /// Several requests as one; one that fails does not stop the others.
    Each {
        /// Which.
        requests: Vec<Request>,
    },
    /// Drop a request that is under way.
    Cancel {
        /// Which.
        id: RequestId,
    },
    /// Tell which files and folders a typed path may lead to.
    ListPaths {
        /// What was typed.
        typed: String,
    },
    /// Tell which files the project has. It is not announced, and answered by `FilesListed`.
    ListFiles,
    /// Tell the effective values of a custom resource that a chart feeds, and where each comes from.
    ExplainValues {
        /// Which object.
        object: ObjectRef,
    },
    /// Stop opdev, after something was done about the custom resources.
    Leave {
        /// What.
        how: OnExit,
    },
    /// Go on working on another cluster. Nothing changes here until that one answers; then something is done about the
    /// custom resources, and everything begins anew there.
    Switch {
        /// Where to.
        to: Destination,
        /// What becomes of the custom resources here.
        how: OnExit,
    },
    /// Stop opdev.
    Quit {
        /// Who asks.
        by: Asker,
    },
}

/// What the text of a new object begins with.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "from", rename_all = "camelCase")]
pub enum NewFrom {
    /// The text of a sample.
    Sample {
        /// Path relative to the project's root.
        path: String,
    },
    /// What the schema of a kind says, with comments.
    Kind {
        /// Which kind.
        gvk: Gvk,
    },
}

/// What happens to the dependents of a deleted object.
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
        /// What and why.
        message: String,
        /// What to do.
        hint: Option<String>,
    },
    /// The user dropped it.
    Cancelled {
        /// What is known of what it did.
        message: String,
    },
}
