//! One write to the API server that is tried before it is done: what it would change, and what undoes it.

use super::send::{is_conflict, without_secrets};
use super::undo::Undo;
use super::{MANAGER, Requests};
use crate::event::{Action, ObjectChange, mask};
use anyhow::Result;
use opdev_object::diff::{Change, diff};
use opdev_object::meta::{self, ObjectRef};
use opdev_object::path::Path;
use serde_json::{Value, json};

/// How often a write is tried again because only the status has changed.
const MOST_TRIES: usize = 5;

/// What is written, and over what.
#[derive(Clone, Debug)]
pub(super) struct Write {
    pub(super) object: ObjectRef,
    /// Of the object, or of its collection where it is to be created.
    pub(super) path: String,
    pub(super) body: Value,
    /// The object as it is; `None` where there is none.
    pub(super) before: Option<Value>,
    pub(super) how: How,
}

/// How something is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum How {
    /// As a new object.
    Create,
    /// As a merge patch of the object at one revision.
    Patch,
    /// Deleted.
    Delete,
}

impl Write {
    /// A merge patch over an object as it is now, and only as it is now.
    pub(super) fn patch(object: &ObjectRef, path: String, mut patch: Value, live: Value) -> Write {
        if !patch.get("metadata").is_some_and(Value::is_object) {
            patch["metadata"] = json!({});
        }
        patch["metadata"]["resourceVersion"] = live["metadata"]["resourceVersion"].clone();
        Write { object: object.clone(), path, body: patch, before: Some(live), how: How::Patch }
    }

    /// What it changes, masked.
    pub(super) fn change(&self, after: Option<&Value>) -> ObjectChange {
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

    /// What undoes it, once it is done.
    pub(super) fn undo(&self, after: &Value) -> Undo {
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
pub(super) fn shown(object: &Value) -> Value {
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

impl Requests {
    /// What a write would lead to, with the API server's warnings. `None` where nothing would be left.
    pub(super) async fn trial(&self, write: &Write) -> Result<(Option<Value>, Vec<String>)> {
        self.perform(write, true).await
    }

    /// Writes.
    pub(super) async fn commit(&self, write: &Write) -> Result<(Option<Value>, Vec<String>)> {
        self.perform(write, false).await
    }

    /// A controller that writes the status is in nobody's way: what the user has seen is still true.
    async fn perform(&self, write: &Write, dry: bool) -> Result<(Option<Value>, Vec<String>)> {
        let mut write = write.clone();
        for _ in 0..MOST_TRIES {
            let error = match self.perform_once(&write, dry).await {
                Err(error) if write.how == How::Patch && is_conflict(&error) => error,
                done => return done,
            };
            let Some(before) = &write.before else { return Err(error) };
            let Ok((_, live)) = self.live(&write.object).await else { return Err(error) };
            if meta::uid(&live) != meta::uid(before) || shown(&live) != shown(before) {
                return Err(error);
            }
            write.body["metadata"]["resourceVersion"] = live["metadata"]["resourceVersion"].clone();
            write.before = Some(live);
        }
        self.perform_once(&write, dry).await
    }

    async fn perform_once(&self, write: &Write, dry: bool) -> Result<(Option<Value>, Vec<String>)> {
        let (verb, content_type) = match write.how {
            How::Create => ("POST", "application/json"),
            How::Patch => ("PATCH", "application/merge-patch+json"),
            How::Delete => ("DELETE", "application/json"),
        };
        let mut body = write.body.clone();
        let mut uri = format!("{}?fieldManager={MANAGER}&fieldValidation=Strict", write.path);
        match (dry, write.how) {
            (true, How::Delete) => body["dryRun"] = json!(["All"]),
            (true, How::Create | How::Patch) => uri.push_str("&dryRun=All"),
            (false, _) => {}
        }
        if write.how == How::Delete {
            uri.clone_from(&write.path);
        }
        let sent = self.send(verb, &uri, content_type, Some(&body)).await;
        let (answer, warnings) = sent.map_err(|error| match &write.before {
            Some(before) => without_secrets(without_secrets(error, before), &merged(before, &body)),
            None => without_secrets(error, &body),
        })?;
        let gone = write.how == How::Delete && meta::deletion_timestamp(&answer).is_none();
        Ok(((!gone).then_some(answer), warnings))
    }
}

/// The object that a patch asks for.
fn merged(before: &Value, patch: &Value) -> Value {
    let mut object = before.clone();
    opdev_object::patch::merge_patch(&mut object, patch);
    object
}
