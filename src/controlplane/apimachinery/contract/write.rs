//! Requests of a controller: writes as data, and notes that become Kubernetes Events. Never carries them out;
//! the runner does, through the same rules as requests over HTTP.

use serde_json::Value;
use std::time::Duration;

/// The propagation policy: how a deletion treats dependents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Propagation {
    /// The object goes now, its dependents after it.
    Background,
    /// The dependents go first.
    Foreground,
    /// The dependents stay.
    Orphan,
}

/// One write.
#[derive(Clone, Debug, PartialEq)]
pub enum Write {
    /// Create; a name may come from `metadata.generateName`.
    Create {
        /// Resource, such as `apps/replicasets`.
        resource: String,
        /// The object, namespace included.
        object: Value,
    },
    /// Replace; the object carries the resourceVersion it was read at.
    Update {
        /// Resource.
        resource: String,
        /// The whole object.
        object: Value,
    },
    /// Replace the status; the object carries the resourceVersion it was read at.
    UpdateStatus {
        /// Resource.
        resource: String,
        /// The whole object.
        object: Value,
    },
    /// JSON merge patch of the object.
    Patch {
        /// Resource.
        resource: String,
        /// Namespace, if any.
        namespace: Option<String>,
        /// Name.
        name: String,
        /// The merge patch; may carry `metadata.uid` and `metadata.resourceVersion` as preconditions.
        patch: Value,
    },
    /// Delete.
    Delete {
        /// Resource.
        resource: String,
        /// Namespace, if any.
        namespace: Option<String>,
        /// Name.
        name: String,
        /// Only the object with this uid.
        uid: Option<String>,
        /// The outcome for dependents; `None` is the resource's default.
        propagation: Option<Propagation>,
        /// Grace period in seconds; 0 removes a pod at once.
        grace: Option<i64>,
    },
    /// `POST pods/NAME/binding`: puts a pod on a node.
    Bind {
        /// Namespace of the pod.
        namespace: String,
        /// Name of the pod.
        name: String,
        /// Uid of the pod.
        uid: String,
        /// Name of the node.
        node: String,
    },
    /// `PUT NAME/scale`: how many replicas there are to be.
    Scale {
        /// Resource.
        resource: String,
        /// Namespace, if any.
        namespace: Option<String>,
        /// Name.
        name: String,
        /// The wanted number.
        replicas: i64,
    },
    /// `PUT namespaces/NAME/finalize` with an empty list of `spec.finalizers`.
    Finalize {
        /// Name of the namespace.
        name: String,
    },
    /// Delete the custom resources of a definition that is going.
    ClearDefinition {
        /// Name of the definition.
        name: String,
    },
    /// Record an Event. Skipped when the write before it in the same list failed.
    Record(Note),
}

/// The type of an Event: good news or not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoteKind {
    /// `Normal`
    Normal,
    /// `Warning`
    Warning,
}

impl NoteKind {
    /// As in `type` of an Event.
    pub fn text(self) -> &'static str {
        match self {
            NoteKind::Normal => "Normal",
            NoteKind::Warning => "Warning",
        }
    }
}

/// An Event to record; equal ones are counted instead of repeated.
#[derive(Clone, Debug, PartialEq)]
pub struct Note {
    /// `involvedObject`: kind, apiVersion, namespace, name, uid, perhaps fieldPath.
    pub regarding: Value,
    /// Normal or Warning.
    pub kind: NoteKind,
    /// CamelCase reason.
    pub reason: String,
    /// Message; `{name}` stands for the name of the object written just before.
    pub message: String,
    /// Source component where it is not the controller's own name.
    pub component: Option<&'static str>,
    /// `source.host`, for notes of the kubelet.
    pub host: Option<String>,
}

/// Why a write was not carried out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// HTTP status code.
    pub code: u16,
    /// `reason` of the Status, such as `Conflict`.
    pub reason: String,
    /// Message of the Status.
    pub message: String,
    /// True if the namespace is going away, so that trying again is useless.
    pub namespace_terminating: bool,
}

/// Writes that wait: carried out only once the same sync has asked for them this long.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hold {
    /// The reason to wait; a different one starts the clock anew.
    pub what: String,
    /// The time to wait.
    pub delay: Duration,
}

/// The result of one sync.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Sync {
    /// Writes, carried out in order; a failure ends the list, unless it is of a delete or says "already so".
    pub writes: Vec<Write>,
    /// When to look again without any change.
    pub requeue_after: Option<Duration>,
    /// The reason for which the writes have to wait.
    pub hold: Option<Hold>,
}

impl Sync {
    /// Nothing to do.
    pub fn done() -> Self {
        Sync::default()
    }

    /// Asks to look again after a while, keeping the earlier of two wishes.
    pub fn again(&mut self, after: Duration) {
        self.requeue_after = Some(self.requeue_after.map_or(after, |earlier| earlier.min(after)));
    }
}
