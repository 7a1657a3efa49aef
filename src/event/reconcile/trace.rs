//! The known facts about a reconcile beyond what every reconcile has, where the operator is a process of its
//! own.

use crate::TraceLevel;
use crate::evidence::Handover;
use crate::millis;
use opdev_object::meta::ObjectRef;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// A reconcile of an operator that is a process of its own.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ProgramTrace {
    /// The name of the controller whose reconcile it is.
    pub controller: String,
    /// The id that controller-runtime gave it, as it stands in the operator's own log (`reconcileID`).
    pub reconcile_id: String,
    /// How it is known.
    pub traced: TraceLevel,
    /// Reads that its cache answered.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reads: Vec<CachedRead>,
    /// Causes that are the echo of an earlier reconcile's write.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub own_writes: Vec<OwnWrite>,
    /// Calls that are guessed to be its own, by their place in `calls`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub guessed_calls: Vec<u32>,
    /// Calls that were disturbed on purpose, by their place in `calls`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub disturbed_calls: Vec<u32>,
    /// How many of its last calls came after its end, from goroutines that went on. The reconcile is told
    /// again with each.
    #[serde(default, skip_serializing_if = "is_none")]
    pub late_calls: u32,
    /// True if it was told before, and more is known of it now: a late call, or whose a guessed call is.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub told_again: bool,
    /// Its errors.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub findings: Vec<ReadFinding>,
    /// Evidence by which findings about the operator are judged, for the first one that asks.
    #[serde(skip)]
    pub evidence: Handover,
}

fn is_none(count: &u32) -> bool {
    *count == 0
}

/// A read that a cache answered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CachedRead {
    /// `get` or `list`.
    pub verb: String,
    /// The object that was read; of a list without name.
    pub object: ObjectRef,
    /// The resourceVersion that a `get` found.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub resource_version: String,
    /// How many objects a `list` found.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub count: Option<u32>,
    /// The selectors of a `list`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub selector: String,
    /// Since the reconcile began.
    #[serde(with = "millis", rename = "startMs")]
    pub start: Duration,
    /// How long.
    #[serde(with = "millis", rename = "tookMs")]
    pub took: Duration,
    /// How long it had waited before, until the cache had what the program wrote itself.
    #[serde(default, with = "millis", rename = "waitedMs", skip_serializing_if = "Duration::is_zero")]
    pub waited: Duration,
    /// Why nothing was found, such as `NotFound`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub problem: String,
}

/// A cause that goes back to a reconcile.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OwnWrite {
    /// Its place in `causes`.
    pub cause: u32,
    /// The reconcile whose write it is.
    pub reconcile: u64,
}

/// Something that only one who sees both the cache's reads and the writes can find.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ReadFinding {
    /// The sort.
    pub kind: FindingKind,
    /// The message, with names and numbers.
    pub message: String,
    /// The fix.
    pub hint: String,
    /// The object it is about.
    pub object: ObjectRef,
    /// The other reconcile that has to do with it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reconcile: Option<u64>,
}

/// The sorts of findings.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum FindingKind {
    /// The cache answered with less than the operator itself had written.
    StaleRead,
    /// A list in the status was written again in another order.
    UnorderedStatus,
    /// A write that changed nothing.
    WriteWithoutChange,
    /// A write was refused because somebody wrote in between.
    Conflict,
    /// A list without a selector found objects of others.
    UnrelatedInList,
    /// More children were there than the spec asks for, and all of them were left.
    SurplusLeft,
    /// Reconciles that are caused by nothing but the operator's own writes.
    HotLoop,
    /// Two controllers write the same field back and forth.
    Fight,
}
