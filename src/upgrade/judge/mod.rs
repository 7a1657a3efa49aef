//! Judges one variant: the objects before and after the swap, and the writes between. Pure. What the old version does by
//! itself, too, is left out later, by what the variant `same` has given.

mod gone;
mod rest;
mod stored;
mod template;
mod words;
mod writes;

use super::calls::Write;
use super::finding::Finding;
use super::running::Rest;
use super::snapshot::Snapshot;
use super::variant::Variant;
use opdev_object::diff::{Change, diff};
use opdev_object::meta::ObjectKey;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
pub(super) use words::named;

/// A definition that was brought to the control plane.
#[derive(Clone, Debug)]
pub(super) struct Defined {
    pub(super) name: String,
    /// The definition that was there.
    pub(super) old: Option<Value>,
    pub(super) new: Arc<Value>,
    /// Why the API server took it not.
    pub(super) refusal: Option<String>,
}

/// A manifest that was tried.
#[derive(Clone, Debug)]
pub(super) struct Tried {
    /// `file:line`.
    pub(super) place: String,
    pub(super) object: Value,
    /// Why the API server refuses it.
    pub(super) refusal: String,
    /// The fields that the refusal names.
    pub(super) fields: Vec<String>,
}

/// All that was seen of a variant.
#[derive(Clone, Debug)]
pub(super) struct Observed {
    pub(super) variant: Variant,
    /// How the user calls the two versions.
    pub(super) from: String,
    pub(super) to: String,
    /// Objects before the swap and at rest after it.
    pub(super) before: Snapshot,
    pub(super) after: Snapshot,
    /// The writes of the new version.
    pub(super) writes: Vec<Write>,
    pub(super) rest_before: Rest,
    pub(super) rest: Rest,
    pub(super) defined: Vec<Defined>,
    /// Manifests of the old version: as they are, and under names that are not there yet.
    pub(super) old_again: Vec<Tried>,
    pub(super) old_anew: Vec<Tried>,
    /// Manifests of the new version.
    pub(super) new: Vec<Tried>,
    /// Objects that are left once all custom resources are deleted.
    pub(super) left: BTreeSet<ObjectKey>,
}

impl Observed {
    /// Whether a kind is one of the project's.
    fn is_custom(&self, key: &ObjectKey) -> bool {
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

/// The findings of a variant.
pub(super) fn findings(observed: &Observed) -> Vec<Finding> {
    let mut found = stored::definitions(observed);
    let refused = writes::refused(observed);
    found.extend(rest::findings(observed, &refused));
    found.extend(refused);
    found.extend(writes::pruned(observed));
    found.extend(stored::findings(observed));
    match observed.variant {
        // Until it was put back, all else followed from the new version.
        Variant::Back => found.extend(gone::stays(observed)),
        Variant::Plain | Variant::CrdLeftOld | Variant::Same => {
            found.extend(gone::findings(observed));
            found.extend(template::findings(observed));
        }
    }
    found
}

/// Counts what differs.
pub(super) fn tally(observed: &Observed) -> Tally {
    let mut tally = Tally { before: observed.before.0.len(), ..Tally::default() };
    for (key, before) in &observed.before.0 {
        let Some(after) = observed.after.get(key) else { continue };
        let changes = differences(before, after);
        let of_version = |change: &Change| words::is_version_label(&change.path.to_string());
        match changes.as_slice() {
            [] => tally.same += 1,
            some if some.iter().all(of_version) => tally.labels += 1,
            some => {
                let fields: BTreeSet<String> = some.iter().map(|change| change.path.to_string()).collect();
                let fields: Vec<String> = fields.into_iter().collect();
                tally.changed.push(format!("{}: {}", named(key), words::some_of(&fields, 4)));
            }
        }
    }
    let new = observed.after.0.keys().filter(|key| observed.before.get(key).is_none());
    tally.created = new.map(named).collect();
    tally
}

/// What differs between two versions of an object, bookkeeping and status left out.
pub(super) fn differences(before: &Value, after: &Value) -> Vec<Change> {
    diff(&plain(before), &plain(after))
}

/// The object without what the API server and controllers keep in it.
fn plain(object: &Value) -> Value {
    const KEPT: [&str; 6] =
        ["resourceVersion", "managedFields", "generation", "creationTimestamp", "uid", "selfLink"];
    let mut object = object.clone();
    if let Some(fields) = object.as_object_mut() {
        fields.remove("status");
        fields.remove("apiVersion");
    }
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        KEPT.iter().for_each(|field| drop(metadata.remove(*field)));
        if let Some(annotations) = metadata.get_mut("annotations").and_then(Value::as_object_mut) {
            annotations.retain(|key, _| !words::is_bookkeeping(key));
        }
        if metadata.get("annotations").and_then(Value::as_object).is_some_and(serde_json::Map::is_empty) {
            metadata.remove("annotations");
        }
    }
    object
}

/// The objects that own others, by uid.
fn owners(snapshot: &Snapshot) -> BTreeMap<String, ObjectKey> {
    let with_uid = |(key, object): (&ObjectKey, &Arc<Value>)| {
        Some((opdev_object::meta::uid(object)?.to_owned(), key.clone()))
    };
    snapshot.0.iter().filter_map(with_uid).collect()
}

#[cfg(test)]
mod tests;
