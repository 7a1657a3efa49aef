//! Parts that the writes of programs and of scripts beside charts share: their owner, and the notes about
//! them. Pure.

use super::compare::changes;
use opdev_event::reconcile::object_change::managers_of;
use opdev_event::{Action, ObjectChange, mask};
use opdev_object::meta;
use serde_json::{Map, Value};

/// The field manager of a kind's children and status.
pub fn manager_of(kind: &str) -> String {
    format!("opdev/{}", kind.to_lowercase())
}

/// An object without what the API server and others write.
pub fn bare(object: &Value) -> Value {
    let mut copy = object.clone();
    let Some(fields) = copy.as_object_mut() else { return copy };
    fields.remove("status");
    let metadata = fields.entry("metadata").or_insert_with(|| Value::Object(Map::new()));
    if let Some(metadata) = metadata.as_object_mut() {
        for name in [
            "uid",
            "resourceVersion",
            "generation",
            "creationTimestamp",
            "deletionTimestamp",
            "deletionGracePeriodSeconds",
            "managedFields",
            "selfLink",
        ] {
            metadata.remove(name);
        }
    }
    copy
}

/// The fields that a write changed, masked; nothing where it changed nothing that people look at.
pub fn updated(
    object: meta::ObjectRef,
    before: &Value,
    after: &Value,
    manager: &str,
) -> Option<ObjectChange> {
    let changed = changes(before, after, manager);
    let mut taken_from: Vec<String> = changed
        .iter()
        .filter(|change| change.old.is_some())
        .flat_map(|change| managers_of(before, &change.path, manager))
        .collect();
    taken_from.sort();
    taken_from.dedup();
    let wrote = meta::resource_version(before) != meta::resource_version(after);
    let kind = object.gvk.kind.clone();
    (wrote && !changed.is_empty()).then(|| ObjectChange {
        object,
        action: Action::Updated,
        changes: mask::changes(&kind, changed),
        taken_from,
    })
}
