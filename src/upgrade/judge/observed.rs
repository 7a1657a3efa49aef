//! All that was seen of a variant, and what is counted of it.

use crate::upgrade::calls::Write;
use crate::upgrade::conversion::{Lossy, Way};
use crate::upgrade::running::Rest;
use crate::upgrade::snapshot::Snapshot;
use crate::upgrade::swap::Variant;
use opdev_object::meta::ObjectKey;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// A definition that was brought to the control plane.
#[derive(Clone, Debug)]
pub(in crate::upgrade) struct Defined {
    pub(in crate::upgrade) name: String,
    /// The definition that was there.
    pub(in crate::upgrade) old: Option<Value>,
    pub(in crate::upgrade) new: Arc<Value>,
    /// Why the API server took it not.
    pub(in crate::upgrade) refusal: Option<String>,
}

/// A manifest that was tried.
#[derive(Clone, Debug)]
pub(in crate::upgrade) struct Tried {
    /// `file:line`.
    pub(in crate::upgrade) place: String,
    pub(in crate::upgrade) object: Value,
    /// Why the API server refuses it.
    pub(in crate::upgrade) refusal: String,
    /// The fields that the refusal names.
    pub(in crate::upgrade) fields: Vec<String>,
}

/// All that was seen of a variant.
#[derive(Clone, Debug)]
pub(in crate::upgrade) struct Observed {
    pub(in crate::upgrade) variant: Variant,
    /// How the user calls the two versions.
    pub(in crate::upgrade) from: String,
    pub(in crate::upgrade) to: String,
    /// Objects before the swap and settled after it.
    pub(in crate::upgrade) before: Snapshot,
    pub(in crate::upgrade) after: Snapshot,
    /// The writes of the new version.
    pub(in crate::upgrade) writes: Vec<Write>,
    pub(in crate::upgrade) rest_before: Rest,
    pub(in crate::upgrade) rest: Rest,
    pub(in crate::upgrade) defined: Vec<Defined>,
    /// Manifests of the old version: as they are, and under names that are not there yet.
    pub(in crate::upgrade) old_again: Vec<Tried>,
    pub(in crate::upgrade) old_anew: Vec<Tried>,
    /// Manifests of the new version.
    pub(in crate::upgrade) new: Vec<Tried>,
    /// What versions of its definitions lose to each other.
    pub(in crate::upgrade) lossy: BTreeMap<Way, Lossy>,
    /// Objects that are left once all custom resources are deleted.
    pub(in crate::upgrade) left: BTreeSet<ObjectKey>,
}

impl Observed {
    /// Takes out what the converter of the old version loses, too.
    pub(in crate::upgrade) fn forget_lossy(&mut self, known: &BTreeMap<Way, Lossy>) {
        for (way, lossy) in &mut self.lossy {
            let Some(before) = known.get(way) else { continue };
            lossy.fields.retain(|field| !before.fields.contains(field));
            if before.failed.is_some() {
                lossy.failed = None;
            }
        }
    }

    /// Whether a kind is one of the project's.
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
