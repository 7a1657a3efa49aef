//! Evidence of one reconcile: what it was woken by, read, wrote and was refused, by object and path. Findings are judged
//! by it. Bodies are left out: a value is a hash, and a short text that is masked. It is handed over once and never kept.

use super::{Cause, Place, TraceLevel};
use jiff::Timestamp;
use opdev_object::meta::{ObjectKey, ObjectRef};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// What one reconcile proves.
#[derive(Clone, Debug, Default)]
pub struct Evidence {
    /// Its number.
    pub reconcile: u64,
    /// The controller whose reconcile it is; of a chart or a script the kind.
    pub controller: String,
    /// For which object.
    pub object: ObjectRef,
    /// How it is known; none for reconciles of opdev itself, of which all is known.
    pub level: Option<TraceLevel>,
    /// When it began.
    pub at: Timestamp,
    /// When it ended.
    pub ended: Timestamp,
    /// How long it had waited.
    pub queued: Duration,
    /// Why it ran.
    pub causes: Vec<Cause>,
    /// Whether more causes led to it than are told.
    pub more_causes: bool,
    /// What its cache answered.
    pub reads: Vec<ReadFact>,
    /// What it wrote, in order.
    pub writes: Vec<WriteFact>,
    /// What it was refused, in order.
    pub refusals: Vec<RefusalFact>,
    /// Writes of the program that belong to no reconcile, mostly Events.
    pub beside: Vec<WriteFact>,
    /// Objects that its cache had in an older version than the program had written.
    pub stale: Vec<StaleFact>,
    /// The error it ended with, masked.
    pub error: String,
    /// The words of a panic, masked; empty where it did not panic.
    pub panic: String,
    /// Where it panicked.
    pub place: Option<Place>,
    /// When it wants to run again, as it said: zero is at once, with the queue's own delay.
    pub requeue: Option<Duration>,
    /// What its calls and their answers were, as a hash.
    pub calls: u64,
    /// How many calls were made live.
    pub live: u32,
    /// Finalizers that its object has, as far as known.
    pub finalizers: Vec<String>,
    /// The generation of its object, where it is known.
    pub generation: Option<i64>,
    /// Whether its object is being deleted.
    pub deleting: bool,
    /// Whether its spec says that something is to stay, such as `deletionPolicy: Retain`.
    pub keeps: bool,
    /// The largest whole number in the spec of its object: so many children may be wanted.
    pub wanted: u64,
}

/// A read of a cache.
#[derive(Clone, Debug, Default)]
pub struct ReadFact {
    /// The object; of a list each object that it had.
    pub objects: Vec<ObjectKey>,
    /// Whether the object was not there.
    pub missing: bool,
}

/// A cache that was behind.
#[derive(Clone, Debug)]
pub struct StaleFact {
    /// Of which object.
    pub object: ObjectKey,
    /// What was seen, in words.
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
    /// How it was written.
    pub verb: WriteVerb,
    /// Whether the object was not there before.
    pub created: bool,
    /// Whether nothing was stored, for nothing differed.
    pub unchanged: bool,
    /// Whether the patch that was sent said nothing at all.
    pub empty: bool,
    /// What differs, by path.
    pub fields: Vec<FieldFact>,
    /// Finalizers that it took off.
    pub released: Vec<String>,
    /// Whether the object is being deleted.
    pub deleting: bool,
    /// Whether the object has a finalizer afterwards.
    pub held: bool,
    /// The owners afterwards.
    pub owners: Vec<OwnerFact>,
    /// Whether a label, an annotation or the spec of the reconciled object ties the two together.
    pub tied: bool,
    /// The generation afterwards.
    pub generation: i64,
    /// The field manager that wrote, where it is known.
    pub manager: String,
    /// The managers that had a part in the object before, the first one first.
    pub before: Vec<String>,
    /// A value of the status that was sent and is not on the server.
    pub lost: String,
    /// A field that was sent and that the server does not know.
    pub pruned: String,
    /// What was sent to `/status` and is no status.
    pub beside_status: String,
    /// Of an Event: about whom, its reason and its message.
    pub event: Option<EventFact>,
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
    /// How many items there are, where only their order differs.
    pub reordered: Option<u32>,
    /// Whether both values are times, or one of them and nothing.
    pub time: bool,
    /// Whether the value is a list, a map or a text that grew.
    pub grew: bool,
    /// Whether the value is one string, number or switch.
    pub scalar: bool,
    /// Whether the call itself sent it.
    pub sent: bool,
    /// Who had written the value before, where that was another manager.
    pub other: String,
    /// Whether the value written is the one that this reconcile had read, and another client has changed it since.
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
    /// Whether it is the controller.
    pub controller: bool,
}

/// What an Event says.
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
    /// What it was about, such as `services/web`.
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
    /// Whether a call of the same sort went well later in the reconcile.
    pub repeated: bool,
    /// Whether it was a dry run.
    pub dry_run: bool,
    /// Whether opdev itself disturbed it.
    pub disturbed: bool,
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
