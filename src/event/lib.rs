//! Everything that can happen (`Event`, facts in the past tense) and everything one can ask for (`Request`).
//! Plain data: no IO, no async, no behaviour beyond names. Secrets are masked before they get in here
//! (`mask`). Read `state/reduce.rs` for who consumes the events, `inner_loop` for who carries the requests
//! out.

mod background;
mod body;
mod connection;
mod diagnostic;
mod draft;
pub mod evidence;
mod fault;
mod impact;
mod kind_table;
mod leaving;
pub mod mask;
mod millis;
mod missing_rules;
mod permission;
mod plan;
mod pod_log;
mod preferences;
mod process;
pub mod reconcile;
mod request;
mod rule_finding;
pub mod shell;
pub mod sink;
mod user_command;
mod values;
pub mod words;

pub use background::{BackgroundCommand, BackgroundEnd, BackgroundFinding, BackgroundRow, BackgroundRun};
pub use body::{Body, Parsed};
pub use connection::{
    ConnectionChanged, CopiesChanged, DeployedCopy, Protection, ProtectionChanged, Trouble, TroubleKind,
};
pub use diagnostic::{Diagnostic, Place, Severity};
pub use draft::{Draft, DraftId, DraftStage, Review, Undoable};
pub use fault::{Fault, FaultRule, RuleError};
pub use impact::{
    Finding, Held, HeldChange, Hurt, Released, ShadowDecision, ShadowRun, TypeChanged, Verdict, Weight,
};
pub use kind_table::{KindTable, ServedKind, TableColumn, TableQuery, TableRow};
pub use leaving::{Asker, Destination, Leaving, OnExit};
pub use missing_rules::MissingRule;
pub use permission::{Permission, TrustAnswer, TrustAnswered, TrustAsked};
pub use plan::{HookAhead, Plan, ReleaseAhead, ShadowObject, Skipped, StepAhead, TypeAhead};
pub use pod_log::{LogSource, PodLine, PodLog};
pub use preferences::{Binding, Borders, Preferences, ThemeChoice};
pub use process::{BuildChanged, BuildState, ProcessChanged, ProcessExit, ProcessState};
pub use reconcile::loops::{LoopField, LoopFound, LoopKind};
pub use reconcile::pause::{PauseScope, Paused};
pub use reconcile::trace::{CachedRead, FindingKind, OwnWrite, ProgramTrace, ReadFinding};
pub use reconcile::{
    Action, Call, Cause, CauseKind, Failure, FieldChange, ObjectChange, Outcome, Reconcile, ReconcileStarted,
    Relation, ReleaseChange, ReleaseStep, Requeue, RequeueReason, Step, TraceLevel, WatchEvent,
};
pub use request::{
    CANNOT_BE_ASKED, ClusterTask, DraftTask, NewFrom, ObjectTask, OperatorTask, PodFailure, ProjectTask,
    Propagation, Request, RequestId, RequestOutcome, SessionRequest, SourcesTask, Task, ViewRequest,
};
pub use rule_finding::{FindingEnd, FindingSeverity, RuleFinding};
pub use user_command::{ProgramRun, UserCommand};
pub use values::{EffectiveValue, ValueFrom, ValuesExplained};

use jiff::Timestamp;
use opdev_object::meta::{Gvk, ObjectRef};
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use std::time::Duration;

/// A fact. Object events are levels (they merge by object while they wait), log lines are edges.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "camelCase")]
pub enum Event {
    /// opdev is connected and about to serve its first sources. Another one says that it works on another
    /// cluster from now on, and that all told before was about the one it left.
    Started(Arc<Started>),
    /// A new numbered set of sources serves from now on.
    SourcesChanged(Arc<SourcesChanged>),
    /// Files changed, but what they hold cannot be used; the last working version keeps running.
    ReloadFailed(ReloadFailed),
    /// Every reconcile that a reload led to has ended.
    ReloadSettled(ReloadSettled),
    /// A CRD was changed on the API server and is established.
    TypeChanged(Arc<TypeChanged>),
    /// A saved reconciler ran on every known object without side effects.
    ShadowRun(Arc<ShadowRun>),
    /// A saved change waits for the user's word; until then all goes on as before.
    Held(Arc<Held>),
    /// A held change waits no longer.
    Released(Released),
    /// Saved charts wait for the user's word from now on, or go live at once again.
    HoldChanged {
        /// True if they wait.
        on: bool,
    },
    /// The faults that the calls of the operator's own program get on request, all of them; empty where none.
    Disturbed {
        /// Those that still can hit something.
        rules: Vec<FaultRule>,
    },
    /// The project wants something that the user has to allow; nothing of its files is used before the
    /// answer.
    TrustAsked(Arc<TrustAsked>),
    /// The user has answered what the project wants, or its files do not want it any more.
    TrustAnswered(Arc<TrustAnswered>),
    /// An object as it is now.
    ObjectSeen(ObjectSeen),
    /// Objects that belong to no custom resource of the project; of these nothing is known but their keys.
    /// One that was seen before, as `ObjectSeen`, belongs to none any more.
    UnrelatedSeen(UnrelatedSeen),
    /// An object is gone.
    ObjectGone(ObjectGone),
    /// A worker took an object from the queue.
    ReconcileStarted(ReconcileStarted),
    /// One reconcile for one object has ended.
    Reconciled(Arc<Reconcile>),
    /// How full the work queue is.
    QueueChanged(QueueChanged),
    /// Passes go round in a loop; see `noticed` and `paused` for what is done about it.
    LoopFound(Arc<LoopFound>),
    /// Something is wrong with the operator.
    FindingOpened(Arc<RuleFinding>),
    /// A finding was seen again, or more is known of it: all of it, at most once a second.
    FindingCounted(Arc<RuleFinding>),
    /// A finding is fixed.
    FindingClosed(Arc<RuleFinding>),
    /// The paused objects and kinds, all of them; empty where there are none.
    PausesChanged {
        /// Kinds first, then objects.
        paused: Vec<Paused>,
    },
    /// A line for the log pane.
    Log(LogLine),
    /// Log lines were dropped under load.
    LogDropped {
        /// How many since the last such event.
        lines: u64,
    },
    /// Lines of a container's log came, or no more will.
    PodLog(PodLog),
    /// A request was accepted and is under way.
    RequestStarted(RequestStarted),
    /// A request has ended.
    RequestFinished(RequestFinished),
    /// A run beside the screen has got further: a rehearsed upgrade, or a tortured operator.
    BackgroundChanged(Arc<BackgroundRun>),
    /// A text in the editor, or a change that waits for the user's word, has got further.
    DraftChanged(Arc<Draft>),
    /// opdev leaves a cluster that lives on, and has got further with it.
    Leaving(Leaving),
    /// The files and folders that a typed path may lead to.
    PathsListed(Paths),
    /// The files of the project that an editor may open: charts, types, scripts, samples and whatever else
    /// there is.
    FilesListed {
        /// Relative to the project's root, by name.
        files: Arc<[String]>,
    },
    /// The effective values of the custom resource whose values are looked at.
    ValuesExplained(Arc<ValuesExplained>),
    /// The kinds that the API server serves and whose objects can be listed, all of them.
    KindsServed {
        /// By group and plural name, those without a group first.
        kinds: Vec<ServedKind>,
    },
    /// The table of a kind that is looked at has changed, or is looked at no more.
    TableChanged {
        /// All of it.
        table: Option<Arc<KindTable>>,
    },
    /// The object of the table's selected row, whole.
    RowRead(ObjectSeen),
    /// Everything that can be undone, newest first.
    UndoChanged {
        /// One for each deed.
        entries: Vec<Undoable>,
    },
    /// Something the user should know: a warning of the API server, a watch that broke, a limit reached.
    Noticed(Notice),
    /// The settings of keys, colours and mouse were read, at the start or after a save.
    PreferencesChanged(Arc<Preferences>),
    /// The user has confirmed a cluster that is not clearly local.
    ProtectionChanged(ProtectionChanged),
    /// The API server does not answer as it should, or does again.
    ConnectionChanged(ConnectionChanged),
    /// Copies of the operator that run on the cluster came, went, or were frozen.
    CopiesChanged(Arc<CopiesChanged>),
    /// Rules that the roles of the operator's ServiceAccount lack, as far as they are known; empty where it
    /// lacks none.
    RulesMissing {
        /// One for each resource, in the order they were met.
        missing: Vec<MissingRule>,
    },
    /// The newest build of the operator's own program has got further.
    BuildChanged(Arc<BuildChanged>),
    /// The operator's own program was started, has stopped, or waits.
    ProcessChanged(Arc<ProcessChanged>),
    /// opdev is on its way out.
    Stopping {
        /// Why, in words for the user.
        reason: String,
    },
}

/// The project that opdev runs, and where.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Started {
    /// When the process began.
    pub at: Timestamp,
    /// The project's name.
    pub project: String,
    /// The project's root folder.
    pub root: String,
    /// The cluster behind the client.
    pub cluster: Cluster,
    /// The namespace that objects without one go to.
    pub namespace: String,
    /// True if objects of all namespaces are shown and reconciled.
    pub all_namespaces: bool,
    /// The ServiceAccount that the operator's calls go out as; `None` where they go out as the user's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub identity: Option<String>,
    /// The contexts of the kubeconfig.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub contexts: Vec<String>,
    /// A kubeconfig that reaches the same API server, for kubectl beside opdev.
    pub kubeconfig: Option<String>,
    /// Variables for programs that the user starts from the screen: kubectl and the like use the cluster that
    /// opdev uses.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub environment: Vec<(String, String)>,
    /// The log file.
    pub log_file: Option<String>,
    /// The outcome for custom resources at the end, where the user has said so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_exit: Option<OnExit>,
    /// From process start, or from the wish to go there, to a ready API.
    #[serde(with = "millis", rename = "apiReadyMs")]
    pub api_ready: Duration,
}

/// The API server behind the client.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Cluster {
    /// The context's name, or `embedded`.
    pub name: String,
    /// True if it is the embedded control plane.
    pub embedded: bool,
    /// The version it reports, such as `v1.36.0`.
    pub version: String,
    /// Its address.
    pub server: String,
    /// True if writes are held back until the user confirms the context.
    pub read_only: bool,
    /// How far it is protected from opdev.
    pub protection: Protection,
    /// The marks that make it clearly local, or make opdev careful; empty for the embedded control plane.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub marks: String,
    /// True if the server's certificate goes unchecked, as the kubeconfig says.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub insecure: bool,
}

/// A custom resource file the user can apply with one key.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Sample {
    /// Path relative to the project's root.
    pub path: String,
    /// The first object in it.
    pub object: ObjectRef,
}

impl Sample {
    /// Its kind, with the version where another sample has the same kind.
    pub fn kind_among(&self, all: &[Sample]) -> String {
        let gvk = &self.object.gvk;
        let other = |sample: &Sample| sample.object.gvk.kind == gvk.kind && sample.object.gvk != *gvk;
        let alike = |sample: &Sample| other(sample) && sample.object.gvk.version != gvk.version;
        match (all.iter().any(other), all.iter().any(alike)) {
            (false, _) => gvk.kind.clone(),
            (true, true) => format!("{} {}", gvk.kind, gvk.version),
            // One kind and version may be in two groups.
            (true, false) => format!("{} {}", gvk.kind, gvk.api_version()),
        }
    }
}

/// One kind the operator serves.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct KindStatus {
    /// The kind.
    pub gvk: Gvk,
    /// Plural resource name; empty while the API server does not serve the kind.
    pub plural: String,
    /// The chart or reconciler that feeds it, relative to the project's root; the file with its type where
    /// none does.
    pub source: String,
    /// Where an object says how many replicas it wants, such as `.spec.size`; empty where nobody has said.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub scale: String,
    /// The columns that its CRD asks to be printed, beside name and age.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub columns: Vec<PrinterColumn>,
    /// Its health: served, served from an older good version, or not at all.
    pub health: KindHealth,
}

/// A column that a CRD asks to be printed (`additionalPrinterColumns`).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PrinterColumn {
    /// Its heading.
    pub name: String,
    /// The JSON path of what stands in it.
    pub path: String,
    /// True if it is a time, to be printed as an age.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub date: bool,
}

/// The health of one kind's sources.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "camelCase")]
pub enum KindHealth {
    /// The newest files serve.
    Serving,
    /// The newest files are broken; the last working ones serve.
    Stale {
        /// The error.
        problem: Diagnostic,
    },
    /// There has been no good version yet.
    Disabled {
        /// The error.
        problem: Diagnostic,
    },
    /// The operator's own program reconciles its objects.
    Process {
        /// The program in words, such as `go ./cmd`.
        program: String,
    },
    /// Its objects are shown, but nothing reconciles them.
    Shown {
        /// Why not.
        why: String,
    },
}

/// A set of sources went live.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SourcesChanged {
    /// When.
    pub at: Timestamp,
    /// The number of the set, counted from 1.
    pub sources: u64,
    /// The files that led to it, relative to the project's root; empty at start.
    pub files: Vec<String>,
    /// True if these files were removed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub removed: bool,
    /// Every kind with its health.
    pub kinds: Vec<KindStatus>,
    /// Warnings of the whole set.
    pub diagnostics: Vec<Diagnostic>,
    /// Samples one can apply.
    pub samples: Vec<Sample>,
    /// Kinds that reconcile again because of it.
    pub affected: Vec<Gvk>,
}

/// Files changed and cannot be used.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ReloadFailed {
    /// When.
    pub at: Timestamp,
    /// The files that changed.
    pub files: Vec<String>,
    /// Their errors.
    pub diagnostics: Vec<Diagnostic>,
    /// True if it was the build of the operator's own program that failed: the last working program goes on.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub build: bool,
    /// The program whose build failed, in words; empty where it was no build.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub program: String,
}

/// A reload has reached the cluster.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ReloadSettled {
    /// When.
    pub at: Timestamp,
    /// The set of sources.
    pub sources: u64,
    /// The files that led to it.
    pub files: Vec<String>,
    /// Objects that were reconciled because of it.
    pub objects: u32,
    /// How many of those failed.
    pub failed: u32,
    /// From the writer's close (or rename) to the last acknowledged write.
    #[serde(with = "millis", rename = "tookMs")]
    pub took: Duration,
}

/// An object as it is now. Secret values are masked.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ObjectSeen {
    /// When.
    #[serde(default)]
    pub at: Timestamp,
    /// The reference, with uid.
    #[serde(rename = "ref")]
    pub object_ref: ObjectRef,
    /// True if only its metadata was read, and `object` has nothing else.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub metadata_only: bool,
    /// The object itself.
    pub object: Body,
}

impl Event {
    /// One JSON object, without a line break; what an object says is put in as the text that it is kept as.
    ///
    /// # Errors
    /// Where a field is none that JSON has, which no event has.
    pub fn line(&self) -> serde_json::Result<String> {
        let Event::ObjectSeen(ObjectSeen { at, object_ref, metadata_only, object }) = self else {
            return serde_json::to_string(self).map(words::escaped_json);
        };
        let (at, object_ref) = (serde_json::to_string(at)?, serde_json::to_string(object_ref)?);
        let only = if *metadata_only { ",\"metadataOnly\":true" } else { "" };
        let object = object.text();
        Ok(words::escaped_json(format!(
            "{{\"event\":\"objectSeen\",\"at\":{at},\"ref\":{object_ref}{only},\"object\":{object}}}"
        )))
    }
}

/// Objects of one kind that belong to no custom resource of the project.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct UnrelatedSeen {
    /// When.
    pub at: Timestamp,
    /// Their kind.
    #[serde(flatten)]
    pub gvk: Gvk,
    /// The objects.
    pub objects: Vec<UnrelatedObject>,
}

/// An object of which nothing is known but what tells it from others of its kind.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnrelatedObject {
    /// Its namespace, where it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// Its name.
    pub name: String,
    /// `metadata.uid`
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uid: Option<String>,
    /// Its last field manager, where it is known already and was changed; empty where that is not known. Only
    /// the embedded control plane tells of changes.
    #[serde(default, skip_serializing_if = "Option::is_none", rename = "changedBy")]
    pub changed_by: Option<String>,
}

/// An object is gone.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ObjectGone {
    /// When that was noticed.
    #[serde(default)]
    pub at: Timestamp,
    /// The reference, with uid.
    #[serde(rename = "ref")]
    pub object_ref: ObjectRef,
}

/// The work queue.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct QueueChanged {
    /// Objects that are ready and wait for a worker.
    pub waiting: u32,
    /// Objects being reconciled.
    pub running: u32,
    /// Objects that wait out a back-off after a failure.
    pub backing_off: u32,
}

/// A log line of opdev or of the operator, already masked.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LogLine {
    /// When.
    pub at: Timestamp,
    /// How bad.
    pub level: Level,
    /// The module that wrote it.
    pub target: String,
    /// The message with its fields.
    pub message: String,
    /// The reconcile it belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reconcile: Option<u64>,
}

/// Log levels, from bad to chatty.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum Level {
    /// Something failed.
    Error,
    /// Something is odd.
    Warn,
    /// Something happened.
    Info,
    /// For the curious.
    Debug,
    /// For those who debug opdev.
    Trace,
}

/// Something to tell the user.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Notice {
    /// When.
    pub at: Timestamp,
    /// How bad.
    pub level: Level,
    /// The error, and why.
    pub message: String,
    /// The fix.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    /// The object it is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub object: Option<ObjectRef>,
}

/// Files and folders for a typed path.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Paths {
    /// The typed text.
    pub typed: String,
    /// The paths that it may lead to; folders end with a slash.
    pub found: Vec<String>,
}

/// A request is under way.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RequestStarted {
    /// The request.
    pub id: RequestId,
    /// When.
    pub at: Timestamp,
    /// In words, such as `apply samples/memcached.yaml`.
    pub what: String,
    /// True if it goes on until it is cancelled, as a program that runs beside the screen does.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub lasting: bool,
}

/// A request has ended.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RequestFinished {
    /// The request.
    pub id: RequestId,
    /// When.
    pub at: Timestamp,
    /// In words, such as `apply samples/memcached.yaml`.
    pub what: String,
    /// How it ended.
    pub outcome: RequestOutcome,
    /// How long it took.
    #[serde(with = "millis", rename = "tookMs")]
    pub took: Duration,
}
