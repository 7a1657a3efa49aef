//! Objects that are gone, have another name, or were deleted and made again; and what is left at the end.

use super::objects::differences;
use super::observed::Observed;
use super::words::named;
use crate::finding::{Class, Finding, Level};
use crate::snapshot::Snapshot;
use opdev_object::meta::{self, ObjectKey};
use serde_json::Value;
use std::collections::BTreeSet;
use std::sync::Arc;

pub(super) fn findings(observed: &Observed) -> Vec<Finding> {
    let mut found = Vec::new();
    let mut taken: BTreeSet<ObjectKey> = BTreeSet::new();
    for (key, before) in &observed.before.0 {
        match observed.after.get(key) {
            Some(after) if meta::uid(before) == meta::uid(after) => {}
            Some(after) => found.push(made_again(observed, key, before, after)),
            None => match successor(observed, key, before, &taken) {
                Some(new) => {
                    found.push(renamed(observed, key, &new));
                    taken.insert(new);
                }
                None => found.push(deleted(observed, key)),
            },
        }
    }
    found.extend(observed.left.iter().map(|key| {
        let object = named(key);
        if observed.is_custom(key) {
            let title = format!("{object} is deleted and does not go");
            return Finding::new(Level::Warning, Class::LeftBehind, object, title)
                .line("nobody takes its finalizer off, and what it owns stays with it")
                .fix("take off the finalizers that the version before has set");
        }
        let title = format!("{object} is left once all custom resources are deleted");
        Finding::new(Level::Warning, Class::LeftBehind, object, title)
            .fix("give it an owner, or delete it in the finalizer")
    }));
    found
}

/// Objects of the new version that are there, and objects that are not as they were, after the old version
/// came back.
pub(super) fn stays(observed: &Observed) -> Vec<Finding> {
    let new = observed.after.0.keys().filter(|key| observed.before.get(key).is_none());
    let stays = new.map(|key| {
        let object = named(key);
        let title = format!("{object} of {} stays after {} has come back", observed.to, observed.from);
        Finding::new(level(observed, key), Class::StaysAfterBack, object, title)
            .fix("say in the release notes what to delete after a downgrade")
    });
    let differs = observed.before.0.iter().filter_map(|(key, before)| {
        let after = observed.after.get(key).filter(|after| meta::uid(before) == meta::uid(after))?;
        let changes: Vec<_> = differences(before, after)
            .into_iter()
            .filter(|change| !super::words::is_version_label(&change.path.to_string()))
            .collect();
        if changes.is_empty() || observed.is_custom(key) {
            return None;
        }
        let object = named(key);
        let fields = super::words::fields("", &changes);
        let title = format!("{object} is not as it was after {} has come back", observed.from);
        let lines = super::words::changes(&key.kind, "", changes);
        Some(
            Finding::new(Level::Hint, Class::StaysAfterBack, object, title)
                .fields(fields)
                .lines(lines.into_iter().take(6)),
        )
    });
    stays.chain(differs).collect()
}

/// Objects that hold data, or that others know by name.
fn level(observed: &Observed, key: &ObjectKey) -> Level {
    let holds =
        key.group.is_empty() && matches!(key.kind.as_str(), "PersistentVolumeClaim" | "Service" | "Secret");
    if holds || observed.is_custom(key) { Level::Error } else { Level::Warning }
}

fn what_goes(key: &ObjectKey) -> &'static str {
    match key.kind.as_str() {
        "PersistentVolumeClaim" => "the data on its volume goes with it",
        "Service" => "clients that know its name or address do not reach it",
        "Secret" => "keys and passwords in it are others now",
        "Pod" | "Deployment" | "StatefulSet" | "DaemonSet" => "its pods go with it",
        _ => "clients that know it by name do not find it",
    }
}

fn deleted(observed: &Observed, key: &ObjectKey) -> Finding {
    let object = named(key);
    let title = format!("{object} is deleted");
    Finding::new(level(observed, key), Class::Deleted, object, title)
        .line(what_goes(key))
        .fix("keep it for custom resources that exist, or say in the release notes that it goes")
}

fn renamed(observed: &Observed, key: &ObjectKey, new: &ObjectKey) -> Finding {
    let object = named(key);
    let title = format!("{object} is deleted, and {} is made in its place", named(new));
    Finding::new(level(observed, key), Class::Renamed, object, title)
        .fields(vec![".metadata.name".to_owned()])
        .line(format!("- .metadata.name: {}", key.name))
        .line(format!("+ .metadata.name: {}", new.name))
        .line(what_goes(key))
        .fix("keep the old name for custom resources that exist")
}

fn made_again(observed: &Observed, key: &ObjectKey, before: &Value, after: &Value) -> Finding {
    let object = named(key);
    let title = format!("{object} is deleted and made again");
    let changes = differences(before, after);
    let fields = super::words::fields("", &changes);
    let lines = super::words::changes(&key.kind, "", changes);
    Finding::new(level(observed, key), Class::MadeAgain, object, title)
        .fields(fields)
        .line(what_goes(key))
        .lines(lines.into_iter().take(6))
        .fix("update it in place")
}

/// The new object that stands for one that is gone: of its kind and namespace, and the one that differs
/// least.
fn successor(
    observed: &Observed,
    key: &ObjectKey,
    before: &Value,
    taken: &BTreeSet<ObjectKey>,
) -> Option<ObjectKey> {
    let is_new = |snapshot: &Snapshot, other: &ObjectKey| snapshot.get(other).is_none();
    let fits = |(other, _): &(&ObjectKey, &Arc<Value>)| {
        (&other.group, &other.kind, &other.namespace) == (&key.group, &key.kind, &key.namespace)
            && is_new(&observed.before, other)
            && !taken.contains(*other)
    };
    let fitting = observed.after.0.iter().filter(fits);
    let nearest = fitting.min_by_key(|(_, after)| differences(before, after).len());
    nearest.map(|(other, _)| other.clone())
}
