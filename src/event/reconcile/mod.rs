//! One reconcile for one object: why it ran, what it read and wrote, what it changed.

pub(crate) mod changes;
pub(crate) mod loops;
pub mod object_change;
pub(crate) mod pause;
pub(crate) mod trace;

use super::{Diagnostic, Place, ProgramTrace, millis};
use jiff::Timestamp;
use opdev_object::diff::Change;
use opdev_object::meta::ObjectRef;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// One reconcile for one object, from queue to requeue.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Reconcile {
    /// Counted from 1 in this process.
    pub id: u64,
    /// For which object.
    pub object: ObjectRef,
    /// Everything that asked for it since the reconcile before.
    pub causes: Vec<Cause>,
    /// The set of sources it used.
    pub sources: u64,
    /// When a worker took it.
    pub at: Timestamp,
    /// How long it had waited in the queue.
    #[serde(with = "millis", rename = "queuedMs")]
    pub queued: Duration,
    /// How long it took.
    #[serde(with = "millis", rename = "tookMs")]
    pub took: Duration,
    /// Its steps in order, such as `render`, `plan`, `apply`, `status`.
    pub steps: Vec<Step>,
    /// Every API call it made, in order.
    pub calls: Vec<Call>,
    /// The outcome.
    pub outcome: Outcome,
    /// The changes in the object's own `status`, masked.
    #[serde(with = "changes")]
    pub status: Vec<Change>,
    /// Writes to other objects.
    pub objects: Vec<ObjectChange>,
    /// When it runs again by itself.
    pub requeue: Option<Requeue>,
    /// The reason for which it waits, in the words of the program.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waiting: Option<String>,
    /// Steps of releases, in the order in which they were done.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub releases: Vec<ReleaseChange>,
    /// Why it failed.
    pub failure: Option<Failure>,
    /// More facts, where the operator is a process of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub process: Option<Box<ProgramTrace>>,
}

/// The effect of a reconcile on the revisions of a release.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReleaseChange {
    /// The release.
    pub name: String,
    /// The step.
    pub step: ReleaseStep,
    /// The revision that is deployed now.
    pub revision: i64,
    /// Why it was done, and done so, in words.
    pub why: String,
    /// True if nobody asked for it: the same chart and values rendered something else.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub surplus: bool,
}

/// A step of a release.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum ReleaseStep {
    /// Its first revision, with install hooks.
    Installed,
    /// A new revision, with upgrade hooks.
    Upgraded,
    /// The deployed revision took a new rendering in, without hooks.
    Rewritten,
    /// A new revision that says again what an older one said, with rollback hooks.
    RolledBack,
}

impl Reconcile {
    /// The event that announced this reconcile.
    pub fn started(&self) -> ReconcileStarted {
        ReconcileStarted {
            id: self.id,
            at: self.at,
            object: self.object.clone(),
            causes: self.causes.clone(),
        }
    }

    /// Returns true if its bounds and causes are a guess, for the program tells nothing of its reconciles.
    pub fn is_guessed(&self) -> bool {
        self.process.as_ref().is_some_and(|process| !process.traced.tells_reconciles())
    }
}

/// How much is known of the reconciles of an operator that is a process of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum TraceLevel {
    /// The process itself tells of its reconciles, their causes, reads and calls.
    Full,
    /// The process itself tells of its reconciles, reads and calls, but not of their causes.
    Reconciles,
    /// Reconciles are guessed from its calls to the API server and from the lines of its log that name the
    /// object.
    Log,
    /// Reconciles are guessed from its calls to the API server.
    Wire,
}

impl TraceLevel {
    /// The word that the header shows.
    pub fn name(self) -> &'static str {
        match self {
            TraceLevel::Full => "full",
            TraceLevel::Reconciles => "no causes",
            TraceLevel::Log => "log",
            TraceLevel::Wire => "wire",
        }
    }

    /// Returns true if the process itself says when a reconcile begins and ends, so that no part of it is a
    /// guess.
    pub fn tells_reconciles(self) -> bool {
        match self {
            TraceLevel::Full | TraceLevel::Reconciles => true,
            TraceLevel::Log | TraceLevel::Wire => false,
        }
    }
}

/// A timed part of a reconcile.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Step {
    /// Its name.
    pub name: String,
    /// Since the reconcile began.
    #[serde(with = "millis", rename = "startMs")]
    pub start: Duration,
    /// How long.
    #[serde(with = "millis", rename = "tookMs")]
    pub took: Duration,
}

/// One API call, as seen by the client.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Call {
    /// Kubernetes verb: get, list, create, update, patch, delete, deletecollection, watch; of what a program
    /// reaches beside the API server `fetch` or `exec`.
    pub verb: String,
    /// The path without host, for the curious; `cache:` before it where a watch answered and nothing was
    /// sent.
    pub path: String,
    /// Kind or plural with the name, such as `deployments/web`, and the subresource.
    pub target: String,
    /// Since the reconcile began.
    #[serde(with = "millis", rename = "startMs")]
    pub start: Duration,
    /// How long until the answer's head.
    #[serde(with = "millis", rename = "tookMs")]
    pub took: Duration,
    /// HTTP status; 0 where no answer came. Of `exec` 200 where the program ended with 0, else 500.
    pub status: u16,
    /// The reason of a refusal, such as `NotFound`, or the transport's error.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The place in the operator's code that made it, of the writes of a Go program.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub place: Option<Place>,
}

/// The outcome of a reconcile.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Outcome {
    /// First revision installed.
    Installed,
    /// A new or rewritten revision.
    Upgraded,
    /// The objects are now as a program wants them.
    Applied,
    /// Same revision or same wish, live objects put back.
    Repaired,
    /// Nothing to do.
    Unchanged,
    /// Uninstalled.
    Uninstalled,
    /// Waits for something outside, such as finalizers of others.
    Waiting,
    /// The object was gone already.
    Gone,
    /// Failed; see `failure`.
    Failed,
}

/// The effect of a reconcile on one object.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ObjectChange {
    /// The object.
    pub object: ObjectRef,
    /// Created, updated, deleted.
    pub action: Action,
    /// The differences, masked.
    #[serde(with = "changes")]
    pub changes: Vec<Change>,
    /// Field managers whose fields were taken back.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub taken_from: Vec<String>,
}

/// The action on an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Action {
    /// It did not exist.
    Created,
    /// It changed.
    Updated,
    /// It was removed.
    Deleted,
}

/// When and why a reconcile runs again by itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Requeue {
    /// After how long.
    #[serde(with = "millis", rename = "afterMs")]
    pub after: Duration,
    /// Why, as `why` in JSON.
    #[serde(flatten)]
    pub reason: RequeueReason,
}

/// Why a reconcile runs again by itself. A script's own words are never taken for one of opdev's reasons.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "why", rename_all = "camelCase")]
pub enum RequeueReason {
    /// The period of the kind is over: a resync.
    Period,
    /// It failed.
    Retry,
    /// The reconciler asked for it (`RequeueAfter`).
    Asked,
    /// It waits for something.
    Wait {
        /// For what, in the reconciler's words.
        words: String,
    },
}

impl RequeueReason {
    /// For people, of one line or more.
    pub fn words(&self) -> &str {
        match self {
            RequeueReason::Period => "resync",
            RequeueReason::Retry => "retry",
            RequeueReason::Asked => "the reconciler asked for it",
            RequeueReason::Wait { words } => words,
        }
    }
}

/// Why a reconcile failed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Failure {
    /// The whole chain of causes, outermost first, masked.
    pub chain: Vec<String>,
    /// The file and line, where a chart is to blame.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub diagnostic: Option<Diagnostic>,
    /// How many reconciles of this object have failed in a row, this one included.
    pub attempt: u32,
}

/// One reason for a reconcile.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Cause {
    /// When it arose.
    pub at: Timestamp,
    /// The value before.
    #[serde(flatten)]
    pub kind: CauseKind,
}

/// The reasons there are.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "cause", rename_all = "camelCase")]
pub enum CauseKind {
    /// The object was there when the operator started.
    Start,
    /// A watched object changed.
    #[serde(rename_all = "camelCase")]
    Watch {
        /// The object.
        object: ObjectRef,
        /// Added, modified, deleted.
        event: WatchEvent,
        /// The changed fields, masked; bookkeeping fields left out.
        fields: Vec<FieldChange>,
        /// The field manager that wrote last, where it can be told.
        by: Option<String>,
        /// True if this is the echo of our own write.
        own_write: bool,
        /// How the object leads to the reconciled one.
        relation: Relation,
    },
    /// A saved file.
    Reload {
        /// The new set of sources.
        sources: u64,
        /// The files, relative to the project's root.
        files: Vec<String>,
    },
    /// The reconcile period passed.
    Period,
    /// The reconcile before failed.
    Retry {
        /// The number of the attempt that failed.
        attempt: u32,
        /// Its error in short.
        error: String,
    },
    /// The reconcile before asked to wait.
    Wait {
        /// For what.
        why: String,
    },
    /// A key.
    User,
    /// opdev asked for it, to find out whether the operator had missed a change.
    Check,
}

impl CauseKind {
    /// Its name in events and metrics.
    pub fn name(&self) -> &'static str {
        match self {
            CauseKind::Start => "start",
            CauseKind::Watch { .. } => "watch",
            CauseKind::Reload { .. } => "reload",
            CauseKind::Period => "period",
            CauseKind::Retry { .. } => "retry",
            CauseKind::Wait { .. } => "wait",
            CauseKind::User => "user",
            CauseKind::Check => "check",
        }
    }
}

/// The change of a watched object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum WatchEvent {
    /// It is new.
    Added,
    /// It changed.
    Modified,
    /// It is gone.
    Deleted,
}

/// How a watched object leads to the reconciled one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Relation {
    /// It is the same object.
    Primary,
    /// By its controller owner reference.
    Owner,
    /// By the `operator-sdk/primary-resource` annotations.
    Annotation,
    /// The program that reconciles it has read the watched object.
    Related,
}

/// One changed field in short form.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FieldChange {
    /// Its path, such as `.spec.replicas`.
    pub path: String,
    /// The value before in short; `None` where the field is new.
    pub old: Option<String>,
    /// The value after in short; `None` where it is gone.
    pub new: Option<String>,
}

/// A worker began a reconcile.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ReconcileStarted {
    /// The reconcile, counted from 1 since `started`.
    pub id: u64,
    /// When.
    pub at: Timestamp,
    /// For which object.
    pub object: ObjectRef,
    /// Why.
    pub causes: Vec<Cause>,
}
