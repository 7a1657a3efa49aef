//! Evidence of one reconcile: what it was woken by, read, wrote and was refused, by object and path. Findings
//! are judged by it. Bodies are left out: a value is a hash, and a short text that is masked. It is handed
//! over once and never kept.

use super::{Cause, Place, TraceLevel};
use jiff::Timestamp;
use opdev_object::meta::{ObjectKey, ObjectRef};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Evidence from one reconcile.
#[derive(Clone, Debug, Default)]
pub struct Evidence {
    /// Its number.
    pub reconcile: u64,
    /// The controller whose reconcile it is; of a chart or a script the kind.
    pub controller: String,
    /// For which object.
    pub object: ObjectRef,
    /// The level of its trace; none for reconciles of opdev itself, of which all is known.
    pub level: Option<TraceLevel>,
    /// When it began.
    pub at: Timestamp,
    /// When it ended.
    pub ended: Timestamp,
    /// The time that it had waited.
    pub queued: Duration,
    /// Why it ran.
    pub causes: Vec<Cause>,
    /// True if more causes led to it than are told.
    pub more_causes: bool,
    /// Answers of its cache.
    pub reads: Vec<ReadFact>,
    /// Its writes, in order.
    pub writes: Vec<WriteFact>,
    /// Refusals of its calls, in order.
    pub refusals: Vec<RefusalFact>,
    /// Warnings in answers to its calls, each text once.
    pub warnings: Vec<WarningFact>,
    /// Writes of the program that belong to no reconcile, mostly Events.
    pub beside: Vec<WriteFact>,
    /// Objects that its cache had in an older version than the program had written.
    pub stale: Vec<StaleFact>,
    /// Kinds of which the caches of its process hold many objects of all namespaces.
    pub cached: Vec<CachedFact>,
    /// The error it ended with, masked.
    pub error: String,
    /// The words of a panic, masked; empty where it did not panic.
    pub panic: String,
    /// The place of its panic.
    pub place: Option<Place>,
    /// When it wants to run again, as it said: zero is at once, with the queue's own delay.
    pub requeue: Option<Duration>,
    /// When it wanted to run again though it failed, which controller-runtime ignores.
    pub ignored: Option<Duration>,
    /// A hash of its calls and their answers.
    pub calls: u64,
    /// Number of calls that went to the API server.
    pub live: u32,
    /// True if it looked at pods or at their addresses.
    pub pods: bool,
    /// Goroutines of its process at its end; 0 where that is not known.
    pub goroutines: u32,
    /// The increase of that number since its beginning.
    pub more_goroutines: i32,
    /// Objects that it read from the API server three times or more, such as `secrets/web`, and how often.
    pub read_live: Vec<(String, u32)>,
    /// Objects that it read by name from the API server, not from its cache.
    pub live_reads: Vec<ReadFact>,
    /// ConfigMaps and Secrets that it read by name, with what was in them.
    pub configs: Vec<ConfigFact>,
    /// Workloads as it had read or written them, in order.
    pub workloads: Vec<WorkloadFact>,
    /// True if its spec says with how little it is content, such as `minReady` or `maxUnavailable`.
    pub tolerates: bool,
    /// Finalizers that its object has, as far as known.
    pub finalizers: Vec<String>,
    /// The generation of its object, where it is known.
    pub generation: Option<i64>,
    /// True if its object is being deleted.
    pub deleting: bool,
    /// True if its spec says that something is to stay, such as `deletionPolicy: Retain`.
    pub keeps: bool,
    /// The largest whole number in the spec of its object, or the number of items in its lists: so many
    /// children may be wanted.
    pub wanted: u64,
}

impl Evidence {
    /// True if its borders are guessed from calls and lines: it may hold the work of several reconciles, for
    /// another object too, and does not say what was read.
    pub fn is_guessed(&self) -> bool {
        matches!(self.level, Some(TraceLevel::Log | TraceLevel::Wire))
    }
}

/// A read of a cache.
#[derive(Clone, Debug, Default)]
pub struct ReadFact {
    /// The object; of a list each object that it had.
    pub objects: Vec<ObjectKey>,
    /// True if the object was not there.
    pub missing: bool,
    /// The version of a single object.
    pub version: String,
}

/// A ConfigMap or Secret as a reconcile had read it.
#[derive(Clone, Debug, Default)]
pub struct ConfigFact {
    /// The object.
    pub object: ObjectRef,
    /// The path of each key of its data, and a hash of its value.
    pub values: Vec<(String, u64)>,
}

/// A workload as a reconcile had it in hand: read, or answered to its own write.
#[derive(Clone, Debug, Default)]
pub struct WorkloadFact {
    /// When.
    pub at: Timestamp,
    /// The workload.
    pub object: ObjectKey,
    /// Pods that it asks for.
    pub wanted: i64,
    /// Pods of them that are ready.
    pub ready: i64,
    /// Pods of them that have its newest template.
    pub updated: i64,
    /// True if its controller has seen its newest generation.
    pub observed: bool,
}

/// A sign of readiness that a status shows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReadySign {
    /// The condition or field with its value, such as `status.phase Running`.
    pub text: String,
    /// The part of the object that it is about, in small letters; empty where it is about all of it.
    pub part: String,
    /// True if it says that all of it is up to date, and not only that it serves or runs.
    pub whole: bool,
}

/// The objects of a kind in a cache.
#[derive(Clone, Debug, Default)]
pub struct CachedFact {
    /// The group of the kind.
    pub group: String,
    /// The kind.
    pub kind: String,
    /// Number of objects.
    pub objects: usize,
}

/// A cache that was behind.
#[derive(Clone, Debug)]
pub struct StaleFact {
    /// The object.
    pub object: ObjectKey,
    /// True if the cache did not have the object at all, and the program had made it.
    pub missing: bool,
    /// The finding, in words.
    pub message: String,
}

/// The sorts of writes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WriteVerb {
    /// POST
    Create,
    /// PUT
    #[default]
    Update,
    /// PATCH, but for apply.
    Patch,
    /// Server-side apply.
    Apply,
    /// DELETE, also of a collection.
    Delete,
}

/// One stored write.
#[derive(Clone, Debug, Default)]
pub struct WriteFact {
    /// When it was answered.
    pub at: Timestamp,
    /// The object, with its uid.
    pub object: ObjectRef,
    /// The subresource; empty where there is none.
    pub subresource: String,
    /// The verb of the write.
    pub verb: WriteVerb,
    /// True if the object was not there before.
    pub created: bool,
    /// A hash of what was sent to create it, but for its name and owners; else 0.
    pub content: u64,
    /// True if its name was generated.
    pub generated: bool,
    /// True if nothing was stored, for nothing differed.
    pub unchanged: bool,
    /// True if the patch that was sent said nothing at all.
    pub empty: bool,
    /// Differences, by path.
    pub fields: Vec<FieldFact>,
    /// Finalizers that it took off.
    pub released: Vec<String>,
    /// True if the object is being deleted.
    pub deleting: bool,
    /// True if the object has a finalizer afterwards.
    pub held: bool,
    /// The owners afterwards.
    pub owners: Vec<OwnerFact>,
    /// True if a label, an annotation or the spec of the reconciled object ties the two together.
    pub tied: bool,
    /// The generation afterwards.
    pub generation: i64,
    /// True if its condition Ready or Available is true afterwards, for the newest generation, and was not
    /// before.
    pub became_ready: bool,
    /// The signs of readiness that it brought: conditions that became true for the newest generation, and
    /// fields.
    pub signs: Vec<ReadySign>,
    /// The field manager that wrote, where it is known.
    pub manager: String,
    /// The managers that had a part in the object before, the first one first.
    pub before: Vec<String>,
    /// A value of the status that was sent and is not on the server.
    pub lost: String,
    /// A field that was sent and that the server does not know.
    pub pruned: String,
    /// Fields that were sent to `/status` and are no status.
    pub beside_status: String,
    /// For an Event: its object, its reason and its message.
    pub event: Option<EventFact>,
    /// The place in the operator's code that made it.
    pub place: Option<Place>,
}

/// One path that a write changed.
#[derive(Clone, Debug, Default)]
pub struct FieldFact {
    /// The path, with the keys of list items, never their places.
    pub path: String,
    /// A hash of the value before; 0 where there was none.
    pub old: u64,
    /// A hash of the value after; 0 where there is none.
    pub new: u64,
    /// The values in short, masked.
    pub shown: (String, String),
    /// Number of items, where only their order differs.
    pub reordered: Option<u32>,
    /// True if both values are times, or one of them and nothing.
    pub time: bool,
    /// True if the value is a list, a map or a text that grew.
    pub grew: bool,
    /// True if the value is one string, number or switch.
    pub scalar: bool,
    /// True if the call itself sent it.
    pub sent: bool,
    /// The manager that had written the value before, where that was another one.
    pub other: String,
    /// True if the value written is the one that this reconcile had read, and another client has changed it
    /// since.
    pub carried: bool,
}

/// An owner reference.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OwnerFact {
    /// Its kind.
    pub kind: String,
    /// Its name.
    pub name: String,
    /// Its uid.
    pub uid: String,
    /// True if it is the controller.
    pub controller: bool,
}

/// The content of an Event.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EventFact {
    /// About whom.
    pub about: ObjectKey,
    /// Its reason.
    pub reason: String,
    /// A hash of its message.
    pub message: u64,
}

/// A call that was refused.
#[derive(Clone, Debug, Default)]
pub struct RefusalFact {
    /// When.
    pub at: Timestamp,
    /// The Kubernetes verb.
    pub verb: String,
    /// The resource and the name in it, such as `services/web`.
    pub target: String,
    /// The object, where it is known.
    pub object: Option<ObjectKey>,
    /// HTTP status.
    pub status: u16,
    /// The reason that the server gave.
    pub reason: String,
    /// The field that the server named.
    pub field: String,
    /// The server's words, masked.
    pub message: String,
    /// The resourceVersion that was sent.
    pub sent: String,
    /// True if a call of the same sort went well later in the reconcile.
    pub repeated: bool,
    /// The place in the operator's code that made it.
    pub place: Option<Place>,
    /// True if it was a dry run.
    pub dry_run: bool,
    /// True if opdev itself injected it as a fault.
    pub disturbed: bool,
}

/// A `Warning` header of an answer.
#[derive(Clone, Debug, Default)]
pub struct WarningFact {
    /// The Kubernetes verb of the call.
    pub verb: String,
    /// The resource and the name in it, such as `services/web`.
    pub target: String,
    /// Its text, masked.
    pub text: String,
    /// The place in the operator's code that made the call.
    pub place: Option<Place>,
}

/// Evidence on its way to whoever judges it. Clones share it; the first one to ask gets it.
#[derive(Clone, Default)]
pub struct Handover(Arc<Mutex<Option<Box<Evidence>>>>);

impl Handover {
    /// Evidence that nobody has taken yet.
    pub fn new(evidence: Evidence) -> Self {
        Handover(Arc::new(Mutex::new(Some(Box::new(evidence)))))
    }

    /// The evidence, where nobody has taken it before: a reconcile that is told again counts once.
    pub fn take(&self) -> Option<Box<Evidence>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

impl std::fmt::Debug for Handover {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Handover")
    }
}

/// It says nothing that the reconcile does not.
impl PartialEq for Handover {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}
