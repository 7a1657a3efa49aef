//! The impact of a saved type file or reconciler on the objects in the cluster: facts before and after, and
//! changes that need the user's answer. Plain data; `inner_loop` decides, the screen shows.

use super::{Place, ShadowObject, millis};
use jiff::Timestamp;
use opdev_object::meta::{Gvk, ObjectRef};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// How much a change of a type weighs, from light to heavy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Weight {
    /// Nobody can be hurt.
    Info,
    /// Behaviour changes.
    Warn,
    /// Objects or clients fail.
    Break,
    /// Stored data disappears.
    Loss,
    /// The API server refuses it.
    Block,
}

/// One change of a type.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finding {
    /// How much it weighs.
    pub weight: Weight,
    /// The field, such as `.spec.size`; empty for the type as a whole.
    pub field: String,
    /// The change and its meaning.
    pub message: String,
    /// The line that says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub place: Option<Place>,
}

/// An object that a change would hurt.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hurt {
    /// The object.
    pub object: ObjectRef,
    /// Its field; empty for the object as a whole.
    pub field: String,
    /// The outcome for it.
    pub message: String,
}

/// A CRD was changed on the API server and is established.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TypeChanged {
    /// When.
    pub at: Timestamp,
    /// The set of sources it came with.
    pub sources: u64,
    /// The CRD's name.
    pub name: String,
    /// The kind it defines.
    pub kind: Gvk,
    /// True if the API server did not have it before.
    pub created: bool,
    /// The files that led to it; empty at start.
    pub files: Vec<String>,
    /// The changes, the heaviest first.
    pub findings: Vec<Finding>,
    /// Objects that it breaks or takes data from.
    pub objects: Vec<Hurt>,
    /// From the writer's close to the established CRD; from the load where no file led to it.
    #[serde(with = "millis", rename = "tookMs")]
    pub took: Duration,
}

/// The part of a project whose change is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum HeldChange {
    /// A type waits: its CRD is not applied yet.
    Type,
    /// A reconciler waits: the older one keeps running.
    Reconciler,
    /// A chart waits, where saved charts are held: the older one keeps running.
    Chart,
}

/// A change waits for the user's word; until then all goes on as before.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Held {
    /// When.
    pub at: Timestamp,
    /// Names it in requests and in `Released`: a newer change has another one.
    pub id: String,
    /// The part of the project that changes.
    pub change: HeldChange,
    /// The kind it belongs to.
    pub kind: Gvk,
    /// The files that led to it.
    pub files: Vec<String>,
    /// Why it waits, in one sentence.
    pub why: String,
    /// The changes, the heaviest first.
    pub findings: Vec<Finding>,
    /// The objects it would hurt, as many as are worth naming.
    pub objects: Vec<Hurt>,
    /// How many more there are.
    pub more: u32,
}

/// How a held change came to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Verdict {
    /// The user let it through.
    Applied,
    /// The user does not want it.
    Discarded,
    /// The files do not ask for it any more.
    Undone,
}

/// A held change waits no longer.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Released {
    /// When.
    pub at: Timestamp,
    /// Its id.
    pub id: String,
    /// How.
    pub verdict: Verdict,
}

/// A saved reconciler, or a saved chart that is held, ran on every known object without side effects, before
/// it took over.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ShadowRun {
    /// When.
    pub at: Timestamp,
    /// The kind it reconciles.
    pub kind: Gvk,
    /// The files that led to it.
    pub files: Vec<String>,
    /// The effect on each object that it would treat in another way than now.
    pub objects: Vec<ShadowObject>,
    /// On how many objects it ran.
    pub ran: u32,
    /// The outcome.
    pub decision: ShadowDecision,
    /// How long it took.
    #[serde(with = "millis", rename = "tookMs")]
    pub took: Duration,
}

/// The outcome of a shadow run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum ShadowDecision {
    /// The new reconciler runs.
    Switched,
    /// It waits for the user's word: it would delete something, or saved charts are held.
    Held,
    /// It threw, or the API server would refuse what it writes; the older one keeps running.
    Refused,
}
