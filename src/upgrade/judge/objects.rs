//! Two versions of an object, and who owns whom.

use super::words;
use crate::snapshot::Snapshot;
use opdev_object::diff::{Change, diff};
use opdev_object::meta::{self, ObjectKey};
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;

/// What differs between two versions of an object, bookkeeping and status left out.
pub(super) fn differences(before: &Value, after: &Value) -> Vec<Change> {
    diff(&plain(before), &plain(after))
}

/// The object without what the API server and controllers keep in it.
pub(super) fn plain(object: &Value) -> Value {
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
pub(super) fn owners(snapshot: &Snapshot) -> BTreeMap<String, ObjectKey> {
    let with_uid =
        |(key, object): (&ObjectKey, &Arc<Value>)| Some((meta::uid(object)?.to_owned(), key.clone()));
    snapshot.0.iter().filter_map(with_uid).collect()
}
