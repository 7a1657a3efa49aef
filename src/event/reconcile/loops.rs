//! Loops: reconciles that never come to rest, and who writes which field back and forth.

use crate::millis;
use jiff::Timestamp;
use opdev_object::meta::ObjectRef;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// A loop of one custom resource.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LoopFound {
    /// When it was certain.
    pub at: Timestamp,
    /// The custom resource whose reconciles are in it.
    pub object: ObjectRef,
    /// The sort.
    pub kind: LoopKind,
    /// How many reconciles were in it so far.
    pub reconciles: u32,
    /// From the first of them to the last.
    #[serde(with = "millis", rename = "withinMs")]
    pub within: Duration,
    /// The fields that are written again and again, at most five.
    pub fields: Vec<LoopField>,
    /// The place that is to blame, where it is known: such as `.Release.Revision in templates/all.yaml:7`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blame: Option<String>,
    /// True if the object is paused because of it.
    pub paused: bool,
}

/// The sorts of loops.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum LoopKind {
    /// Somebody else writes what opdev's reconciler writes, back and forth.
    Fight,
    /// The reconciler asks for its own next reconcile, and writes in each.
    Hot,
    /// Reconcile after reconcile puts the same back, and nobody else is seen to write it.
    Repair,
    /// The chart renders something else in each reconcile, so that each of them upgrades the release.
    Upgrade,
}

/// One field of a loop, masked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LoopField {
    /// The object it is a field of.
    pub object: ObjectRef,
    /// Its path, such as `.spec.replicas`; empty where the whole object comes and goes.
    pub path: String,
    /// The value that the reconciler writes, in short.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ours: Option<String>,
    /// The value that the others write, in short.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub theirs: Option<String>,
    /// The field managers of the others.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub writers: Vec<String>,
}

impl std::fmt::Display for LoopField {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {}", self.object.gvk.kind, self.object.name)?;
        if !self.path.is_empty() {
            write!(f, " {}", self.path)?;
        }
        let said = |value: &Option<String>| value.clone().unwrap_or_else(|| "nothing".to_owned());
        if self.writers.is_empty() && self.theirs.is_none() {
            return write!(f, " is {}", said(&self.ours));
        }
        let who = if self.writers.is_empty() { "somebody".to_owned() } else { self.writers.join(" and ") };
        write!(f, " is {} by {who}, then {} by the reconciler", said(&self.theirs), said(&self.ours))
    }
}

impl std::fmt::Display for LoopFound {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let what = match self.kind {
            LoopKind::Fight => "a fight over fields",
            LoopKind::Hot => "a loop of its own making",
            LoopKind::Repair => "the same repair again and again, though nobody else was seen to write",
            LoopKind::Upgrade => "an upgrade in every reconcile",
        };
        let within = self.within.as_secs_f64();
        write!(f, "{what}, {} reconciles in {within:.1} s", self.reconciles)?;
        if let Some(blame) = &self.blame {
            write!(f, " ({blame})")?;
        }
        for field in &self.fields {
            write!(f, "; {field}")?;
        }
        Ok(())
    }
}
