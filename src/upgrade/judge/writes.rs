//! Writes that are refused, with the fields that may not change; and fields that were written and not stored.

use super::objects::{owners, plain};
use super::observed::Observed;
use super::words::{self, causes, named};
use crate::calls::Write;
use crate::finding::{Class, Finding, Level};
use crate::swap::Variant;
use http::Method;
use opdev_client::{MERGE, STRATEGIC};
use opdev_event::words::one_line;
use opdev_object::diff::{Change, diff};
use opdev_object::facts::facts;
use opdev_object::meta::{self, Gvk, ObjectKey, ObjectRef};
use opdev_object::{patch, strategic};
use serde_json::Value;
use std::collections::BTreeMap;

/// What may change of a StatefulSet; its refusal names all of them and not the one that may not.
const OF_STATEFUL_SETS: [&str; 7] = [
    ".spec.replicas",
    ".spec.ordinals",
    ".spec.template",
    ".spec.updateStrategy",
    ".spec.revisionHistoryLimit",
    ".spec.persistentVolumeClaimRetentionPolicy",
    ".spec.minReadySeconds",
];

/// The writes that were refused, and that no later one made up for, by their object.
fn standing(observed: &Observed) -> BTreeMap<String, &Write> {
    let mut last: BTreeMap<String, &Write> = BTreeMap::new();
    let mut newest: BTreeMap<String, &Write> = BTreeMap::new();
    for write in &observed.writes {
        let place = place(write);
        let before = newest.insert(place.clone(), write);
        if write.is_refused() {
            last.insert(place, write);
        } else if write.status < 300
            && last.get(&place).is_some_and(|refused| {
                makes_up_for(refused, write) || before.is_some_and(|before| is_other_way(before, write))
            })
        {
            last.remove(&place);
        }
    }
    last
}

/// Returns true if a patch went through right after the refused apply of an object: the same change as Helm 3
/// makes it.
fn is_other_way(refused: &Write, done: &Write) -> bool {
    let is_patch = done.content == STRATEGIC || done.content == MERGE;
    refused.is_refused()
        && refused.content.contains("apply-patch")
        && is_patch
        && refused.is_dry_run() == done.is_dry_run()
}

/// The findings of refused writes.
pub(super) fn refused(observed: &Observed) -> Vec<Finding> {
    let counts = observed.writes.iter().fold(BTreeMap::new(), |mut counts: BTreeMap<_, usize>, write| {
        *counts.entry((place(write), &write.content)).or_default() += usize::from(write.is_refused());
        counts
    });
    let mut found: Vec<Finding> = Vec::new();
    for (place, write) in standing(observed) {
        // An apply that is tried again as a patch is one write.
        let times = counts.get(&(place, &write.content)).copied().unwrap_or(1);
        let finding = refusal(observed, write, times);
        // A dry run and the write are one thing.
        if !found.iter().any(|known| known.is_same(&finding)) {
            found.push(finding);
        }
    }
    found
}

/// Returns true if a write that went through stored what was refused before. A rollback to what was there
/// does not.
fn makes_up_for(refused: &Write, done: &Write) -> bool {
    if refused.is_dry_run() != done.is_dry_run() {
        return false;
    }
    let stored = plain(&done.answer);
    let is_stored = |change: &Change| change.path.get(&stored) == change.new.as_ref();
    wanted_changes(refused).iter().all(is_stored)
}

/// The path of the object, also where it was to be created.
fn place(write: &Write) -> String {
    match write.method {
        Method::POST => format!("{}/{}", write.path, meta::name(&write.body).unwrap_or_default()),
        _ => write.path.clone(),
    }
}

fn key(write: &Write) -> ObjectKey {
    let of = |object: &Value| ObjectRef::of(object).map(|object| object.key());
    let key = write.stored.as_ref().and_then(of).or_else(|| of(&write.body));
    let parts: Vec<&str> = write.path.split('/').collect();
    let namespace = parts.iter().position(|part| *part == "namespaces").and_then(|at| parts.get(at + 1));
    let mut key = key.unwrap_or_else(|| {
        let at = if namespace.is_some() { 2 } else { 0 };
        let own = parts.iter().rev().take(2 + at).copied().collect::<Vec<_>>();
        ObjectKey {
            kind: own.get(1).copied().unwrap_or_default().to_owned(),
            name: own.first().copied().unwrap_or_default().to_owned(),
            ..ObjectKey::default()
        }
    });
    if key.namespace.is_none() {
        key.namespace = namespace.map(|name| (*name).to_owned());
    }
    key
}

fn verb(write: &Write) -> &'static str {
    match write.method {
        Method::POST => "create",
        Method::DELETE => "delete",
        Method::PUT => "update",
        _ if write.stored.is_none() && write.content.contains("apply-patch") => "create",
        _ => "update",
    }
}

fn refusal(observed: &Observed, write: &Write, times: usize) -> Finding {
    let key = key(write);
    let object = named(&key);
    let changes = wanted_changes(write);
    let changes = below_causes(write, &key, changes);
    let mut named_fields = causes(&write.answer);
    named_fields.retain(|field| !matches!(field.as_str(), ".spec" | ".metadata"));
    let fields = match named_fields.is_empty() {
        true => words::fields("", &changes),
        false => named_fields,
    };
    let who = if observed.variant == Variant::Back { &observed.from } else { &observed.to };
    let undeclared = write.message().contains("not declared in schema");
    let title = match (write.status, fields.is_empty()) {
        _ if undeclared => format!(
            "{object}: {} is not in the CRD, so that the write is refused",
            words::some_of(&fields, 3)
        ),
        (403, _) => format!("{who} is not allowed to {} {object}", verb(write)),
        (_, false) => format!("{object}: {} may not change", words::some_of(&fields, 3)),
        (_, true) => format!("{who} cannot {} {object}", verb(write)),
    };
    let message = match key.kind.as_str() {
        "Secret" => "the API server's message is not shown: it may quote the Secret".to_owned(),
        _ => one_line(write.message()),
    };
    let times = if times > 1 { format!(", {times} times") } else { String::new() };
    let lines = words::changes(&key.kind, "", changes);
    Finding::new(Level::Error, Class::WriteRefused, object, title)
        .fields(fields)
        .line(format!("{} answered {}{times}: {message}", verb(write), write.status))
        .lines(lines.into_iter().take(8))
        .fix(match undeclared {
            true if observed.variant == Variant::CrdLeftOld => APPLY_FIRST.to_owned(),
            true => "add the field to the type".to_owned(),
            false => fix(write, &key),
        })
}

const APPLY_FIRST: &str = "apply the CRDs before the operator: `helm upgrade` leaves them as they are";

fn fix(write: &Write, key: &ObjectKey) -> String {
    match (write.status, key.kind.as_str()) {
        (403, _) => {
            "add the rule to the operator's role, and say in the release notes that the roles come first"
                .to_owned()
        }
        (422, "Deployment" | "StatefulSet" | "DaemonSet" | "ReplicaSet") => format!(
            "keep the old value for objects that exist, or delete the {} with its pods kept (propagationPolicy: Orphan) and \
             make it again",
            key.kind
        ),
        (422, "Job") => "give the Job another name in each version, or delete the old one first".to_owned(),
        (422, _) => {
            "keep the old value for objects that exist, or delete the object and make it again".to_owned()
        }
        _ => "look at the API server's message".to_owned(),
    }
}

/// What the refused write would have changed.
fn wanted_changes(write: &Write) -> Vec<Change> {
    let Some(stored) = &write.stored else { return Vec::new() };
    let mut wanted = stored.clone();
    let is = |content: &str| write.content == content;
    if write.method == Method::PUT {
        wanted = write.body.clone();
    } else if is("application/merge-patch+json") {
        patch::merge_patch(&mut wanted, &write.body);
    } else if is("application/json-patch+json") {
        if patch::json_patch(&mut wanted, &write.body).is_err() {
            return Vec::new();
        }
    } else if is("application/strategic-merge-patch+json") {
        let schema = Gvk::of(stored).and_then(|gvk| facts().schema(&gvk));
        match schema {
            Some(schema) if strategic::apply(&mut wanted, &write.body, &schema).is_ok() => {}
            _ => patch::merge_patch(&mut wanted, &write.body),
        }
    } else {
        // A server-side apply says what it wants; what it does not name stays, or goes, which is never
        // refused.
        return overlaid(&plain(stored), &plain(&write.body));
    }
    diff(&plain(stored), &plain(&wanted))
}

/// The differences at what `wanted` names: what it leaves out is left as it is.
fn overlaid(stored: &Value, wanted: &Value) -> Vec<Change> {
    let asked = diff(stored, wanted);
    asked.into_iter().filter(|change| change.new.is_some()).collect()
}

/// Those below the fields that the refusal names; all, where it names none of them.
fn below_causes(write: &Write, key: &ObjectKey, changes: Vec<Change>) -> Vec<Change> {
    let is_below = |change: &Change, field: &str| {
        let path = change.path.to_string();
        path == field || path.strip_prefix(field).is_some_and(|rest| rest.starts_with(['.', '[']))
    };
    let of_spec = |change: &Change| is_below(change, ".spec");
    if key.kind == "StatefulSet" && write.message().contains("updates to statefulset spec") {
        let may_change = |change: &Change| OF_STATEFUL_SETS.iter().any(|field| is_below(change, field));
        return changes.into_iter().filter(|change| of_spec(change) && !may_change(change)).collect();
    }
    if write.status != 422 {
        return Vec::new();
    }
    let causes = causes(&write.answer);
    let named: Vec<Change> =
        changes.iter().filter(|change| causes.iter().any(|field| is_below(change, field))).cloned().collect();
    if named.is_empty() { changes } else { named }
}

/// Fields of custom resources that the operator wrote and that were not stored, for the definition does not
/// have them.
pub(super) fn pruned(observed: &Observed) -> Vec<Finding> {
    let mut found: BTreeMap<ObjectKey, Vec<Change>> = BTreeMap::new();
    for write in observed.writes.iter().filter(|write| write.status < 300 && !write.is_dry_run()) {
        let Some(object) = ObjectRef::of(&write.answer) else { continue };
        let key = object.key();
        if !observed.is_custom(&key) || !matches!(write.method, Method::PUT | Method::POST | Method::PATCH) {
            continue;
        }
        if write.content == "application/json-patch+json" || write.content.contains("strategic") {
            continue;
        }
        let known = found.entry(key).or_default();
        let status_only = write.path.ends_with("/status");
        for change in missing(&write.body, &write.answer, status_only) {
            if !known.iter().any(|one| one.path == change.path) {
                known.push(change);
            }
        }
    }
    let old = matches!(observed.variant, Variant::CrdLeftOld);
    let level = if old { Level::Hint } else { Level::Error };
    let found = found.into_iter().filter(|(_, changes)| !changes.is_empty());
    found
        .map(|(key, changes)| {
            let fields = words::fields("", &changes);
            let object = named(&key);
            let title = format!("{object}: {} is written and not stored", words::some_of(&fields, 3));
            let why =
                "the definition does not have the field, so that the API server leaves it out without a word";
            Finding::new(level, Class::FieldPruned, object, title).fields(fields).line(why).fix(match old {
                true => APPLY_FIRST,
                false => "add the field to the type",
            })
        })
        .collect()
}

/// What was sent and is not in the answer.
fn missing(sent: &Value, stored: &Value, status: bool) -> Vec<Change> {
    let part = |object: &Value, name: &str| object.get(name).cloned().unwrap_or(Value::Null);
    let names: &[&str] = if status { &["status"] } else { &["spec"] };
    let mut found = Vec::new();
    for name in names {
        let (sent, stored) = (part(sent, name), part(stored, name));
        if sent.is_null() {
            continue;
        }
        for mut change in diff(&sent, &stored) {
            let empty = |value: &Value| match value {
                Value::Null => true,
                Value::Object(map) => map.is_empty(),
                Value::Array(list) => list.is_empty(),
                _ => false,
            };
            if change.new.is_none() && change.old.as_ref().is_some_and(|old| !empty(old)) {
                let mut path = opdev_object::path::Path::root().field(name);
                path.0.append(&mut change.path.0);
                found.push(Change { path, ..change });
            }
        }
    }
    found
}

/// The custom resources that objects of refused writes belong to.
pub(super) fn blocked(observed: &Observed) -> Vec<ObjectKey> {
    let owners = owners(&observed.before);
    let mut found = Vec::new();
    for write in standing(observed).into_values() {
        found.push(key(write));
        let object = write.stored.as_ref().unwrap_or(&write.body);
        found.extend(
            meta::owner_references(object).iter().filter_map(|owner| owners.get(&owner.uid).cloned()),
        );
    }
    found
}
