//! One write to the API server: what it would change, and what undoes it.

use super::undo_list::Undo;
use opdev_event::{Action, ObjectChange, mask};
use opdev_object::diff::{Change, diff};
use opdev_object::meta::{self, ObjectRef};
use opdev_object::path::Path;
use serde_json::{Value, json};

/// One write: the new object, and the one it replaces.
#[derive(Clone, Debug)]
pub(crate) struct Write {
    pub(crate) object: ObjectRef,
    /// The path of the object, or of its collection where it is to be created.
    pub(crate) path: String,
    pub(crate) body: Value,
    /// The object as it is; `None` where there is none.
    pub(crate) before: Option<Value>,
    pub(crate) how: How,
}

/// How something is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum How {
    /// As a new object.
    Create,
    /// As a merge patch of the object at one revision.
    Patch,
    /// Deleted.
    Delete,
}

impl Write {
    /// A merge patch over an object as it is now, and only as it is now.
    pub(crate) fn patch(object: &ObjectRef, path: String, mut patch: Value, live: Value) -> Write {
        if !patch.get("metadata").is_some_and(Value::is_object) {
            meta::put(&mut patch, &["metadata"], json!({}));
        }
        meta::put(&mut patch, &["metadata", "resourceVersion"], live["metadata"]["resourceVersion"].clone());
        Write { object: object.clone(), path, body: patch, before: Some(live), how: How::Patch }
    }

    /// The changed fields, masked.
    pub(crate) fn change(&self, after: Option<&Value>) -> ObjectChange {
        let before = self.before.as_ref().map(shown);
        let after = after.map(shown);
        let action = match (&before, &after) {
            (None, _) => Action::Created,
            (Some(_), None) => Action::Deleted,
            (Some(_), Some(_)) => Action::Updated,
        };
        let changes = match action {
            Action::Deleted => Vec::new(),
            Action::Created => vec![Change { path: Path::default(), old: None, new: after }],
            Action::Updated => diff(&before.unwrap_or(Value::Null), &after.unwrap_or(Value::Null)),
        };
        let changes = mask::changes(&self.object.gvk.kind, changes);
        ObjectChange { object: self.object.clone(), action, changes, taken_from: Vec::new() }
    }

    /// The undo of the write, once it is done.
    pub(crate) fn undo(&self, after: &Value) -> Undo {
        let mut object = self.object.clone();
        match (self.how, &self.before) {
            (How::Create, _) | (How::Patch, None) => {
                if let Some(created) = ObjectRef::of(after) {
                    object = created;
                }
                Undo::Remove { object }
            }
            (How::Patch, Some(before)) => {
                Undo::Restore { object, before: before.clone(), after: after.clone() }
            }
            (How::Delete, before) => Undo::Recreate { object, before: before.clone().unwrap_or_default() },
        }
    }
}

/// An object without what only the API server writes.
pub(crate) fn shown(object: &Value) -> Value {
    let mut object = object.clone();
    if let Some(fields) = object.as_object_mut() {
        fields.remove("status");
    }
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        for field in [
            "managedFields",
            "resourceVersion",
            "uid",
            "generation",
            "creationTimestamp",
            "selfLink",
            "deletionTimestamp",
            "deletionGracePeriodSeconds",
        ] {
            metadata.remove(field);
        }
    }
    object
}
