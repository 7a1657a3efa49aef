//! All that was seen of a variant, and what is counted of it.

use super::election::Elections;
use super::rights::RightsSeen;
use crate::calls::Write;
use crate::conversion::{Lossy, Way};
use crate::running::Rest;
use crate::snapshot::Snapshot;
use crate::swap::Variant;
use opdev_object::meta::ObjectKey;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// A definition that was brought to the control plane.
#[derive(Clone, Debug)]
pub(crate) struct Defined {
    pub(crate) name: String,
    /// The definition that was there.
    pub(crate) old: Option<Value>,
    pub(crate) new: Arc<Value>,
    /// Why the API server took it not.
    pub(crate) refusal: Option<String>,
}

/// A manifest that was tried.
#[derive(Clone, Debug)]
pub(crate) struct Tried {
    /// `file:line`.
    pub(crate) place: String,
    pub(crate) object: Value,
    /// Why the API server refuses it.
    pub(crate) refusal: String,
    /// The fields that the refusal names.
    pub(crate) fields: Vec<String>,
}

/// All that was seen of a variant.
#[derive(Clone, Debug)]
pub(crate) struct Observed {
    pub(crate) variant: Variant,
    /// How the user calls the two versions.
    pub(crate) from: String,
    pub(crate) to: String,
    /// Objects before the swap and settled after it.
    pub(crate) before: Snapshot,
    pub(crate) after: Snapshot,
    /// The writes of the new version.
    pub(crate) writes: Vec<Write>,
    pub(crate) rest_before: Rest,
    pub(crate) rest: Rest,
    pub(crate) defined: Vec<Defined>,
    /// Manifests of the old version: as they are, and under names that are not there yet.
    pub(crate) old_again: Vec<Tried>,
    pub(crate) old_anew: Vec<Tried>,
    /// Manifests of the new version.
    pub(crate) new: Vec<Tried>,
    /// What versions of its definitions lose to each other.
    pub(crate) lossy: BTreeMap<Way, Lossy>,
    /// Objects that are left once all custom resources are deleted.
    pub(crate) left: BTreeSet<ObjectKey>,
    /// The rights that both versions used, and their roles.
    pub(crate) rights: RightsSeen,
    /// The elections that keep both versions apart during a rollout.
    pub(crate) elections: Elections,
}

impl Observed {
    /// Takes out what the converter of the old version loses, too.
    pub(crate) fn forget_lossy(&mut self, known: &BTreeMap<Way, Lossy>) {
        for (way, lossy) in &mut self.lossy {
            let Some(before) = known.get(way) else { continue };
            lossy.fields.retain(|field| !before.fields.contains(field));
            if before.failed.is_some() {
                lossy.failed = None;
            }
        }
    }

    /// Takes out new objects that the old version makes, too, once it has time.
    pub(crate) fn forget_new(&mut self, of_old: &Snapshot) {
        let before = &self.before.0;
        self.after.0.retain(|key, _| before.contains_key(key) || of_old.get(key).is_none());
    }

    /// Returns true if a kind is one of the project's.
    pub(super) fn is_custom(&self, key: &ObjectKey) -> bool {
        let of = |defined: &Defined| {
            let text = |pointer: &str| defined.new.pointer(pointer).and_then(Value::as_str);
            text("/spec/group") == Some(key.group.as_str())
                && text("/spec/names/kind") == Some(key.kind.as_str())
        };
        self.defined.iter().any(of)
    }
}

/// Objects that are none of the findings, counted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Objects that were there before.
    pub before: usize,
    /// Those that are as they were.
    pub same: usize,
    /// Those whose labels tell of another version, and nothing else.
    pub labels: usize,
    /// Those that differ otherwise, each with its fields.
    pub changed: Vec<String>,
    /// New ones.
    pub created: Vec<String>,
}
