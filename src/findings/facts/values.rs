//! A value of a spec that somebody has changed, and the children that still have the old one.

use super::waits::Wait;
use super::{Table, is_never};
use jiff::{SignedDuration, Timestamp};
use opdev_event::Body;
use opdev_event::evidence::Evidence;
use opdev_object::meta::{self, ObjectKey, ObjectRef};
use serde_json::Value;
use std::collections::HashMap;

/// More fields at once are another version of the whole, not a change that somebody looks after.
const FEW: usize = 8;
/// Names under which numbers of pods go; a workload says `replicas`.
const COUNTS: [&str; 6] = ["replicas", "size", "count", "instances", "nodes", "nodecount"];
/// A text of this length stands in a child for no other reason.
const TELLING: usize = 8;
/// Switches of a spec that tell the operator to leave its children alone.
const PAUSES: [&str; 7] = ["suspend", "suspended", "pause", "paused", "stop", "stopped", "unmanaged"];

/// A scalar of a spec that somebody has changed.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ChangedValue {
    /// Its path, such as `.spec.server.image`.
    pub(crate) path: String,
    /// The last part of the path.
    name: String,
    pub(crate) old: Value,
    pub(crate) new: Value,
}

/// The newest change of a spec by somebody else.
#[derive(Clone, Debug)]
struct SpecChange {
    at: Timestamp,
    generation: i64,
    fields: Vec<ChangedValue>,
    /// True if a reconcile has seen it and a judgement waits.
    waits: bool,
}

/// Objects as they are, and changes that have not reached the children yet.
#[derive(Clone, Debug, Default)]
pub(super) struct Values {
    bodies: HashMap<ObjectKey, Body>,
    changes: HashMap<ObjectKey, SpecChange>,
}

impl Values {
    /// Keeps an object; of a custom resource that somebody `else` has changed the fields that differ.
    pub(super) fn take(&mut self, key: &ObjectKey, body: &Body, is_else: bool, at: Timestamp) {
        let old = self.bodies.insert(key.clone(), body.clone());
        let Some(old) = old.filter(|_| is_else) else { return };
        let (old, new) = (old.read(), body.read());
        let mut fields = Vec::new();
        changed(&old["spec"], &new["spec"], ".spec", &mut fields);
        fields.truncate(FEW + 1);
        if fields.is_empty() || fields.len() > FEW || is_paused(&new) {
            self.changes.remove(key);
            return;
        }
        let generation = meta::generation(&new);
        self.changes.insert(key.clone(), SpecChange { at, generation, fields, waits: false });
    }

    /// Another process runs: what the one before had seen is judged by its own reconciles.
    pub(super) fn restarted(&mut self) {
        self.changes.values_mut().for_each(|change| change.waits = false);
    }

    pub(super) fn gone(&mut self, key: &ObjectKey) {
        self.bodies.remove(key);
        self.changes.remove(key);
    }

    pub(super) fn bound(&mut self) {
        super::bounded(&mut self.bodies);
        super::bounded(&mut self.changes);
    }

    /// The place in a child where the old value still stands.
    fn old_in(&self, child: &ObjectKey, field: &ChangedValue) -> Option<String> {
        let body = self.bodies.get(child)?.read();
        ["spec", "data"].iter().find_map(|part| still(&body[*part], &format!(".{part}"), field))
    }
}

impl Table {
    /// What has to be judged later because a reconcile saw a changed spec and wrote no child: the first child
    /// that still has an old value.
    pub(super) fn unapplied(&mut self, evidence: &Evidence) -> Option<(Wait, ObjectRef)> {
        let primary = evidence.object.key();
        let change = self.values.changes.get(&primary)?;
        let began_before = evidence.at.duration_since(change.at) < SignedDuration::from_secs(-1);
        let older = evidence.generation.is_some_and(|read| read < change.generation);
        let failed = !evidence.error.is_empty() || !evidence.panic.is_empty();
        if began_before || older || failed || evidence.deleting {
            return None;
        }
        let child_written = |write: &opdev_event::evidence::WriteFact| {
            !write.unchanged && write.object.key() != primary && !is_never(&write.object)
        };
        if evidence.writes.iter().any(child_written) {
            self.values.changes.remove(&primary);
            return None;
        }
        let change = self.values.changes.get(&primary).filter(|change| !change.waits)?;
        let scales = self.makers.keys().any(|key| key.kind == "HorizontalPodAutoscaler");
        let own = |maker: &&super::Maker| {
            maker.primary.key() == primary && maker.seen && !maker.gone && maker.deleted.is_none()
        };
        let mut children: Vec<&ObjectRef> =
            self.makers.values().filter(own).map(|maker| &maker.object).collect();
        children.sort_by_key(|child| child.key());
        let found =
            change.fields.iter().filter(|field| !(scales && is_count(&field.name))).find_map(|field| {
                let child = children
                    .iter()
                    .find_map(|child| Some((*child, self.values.old_in(&child.key(), field)?)));
                child.map(|(child, at)| (field.clone(), child.clone(), at))
            });
        let (field, child, place) = found?;
        let (changed_at, generation) = (change.at, change.generation);
        if let Some(change) = self.values.changes.get_mut(&primary) {
            change.waits = true;
        }
        Some((Wait::Applied { field: Box::new(field), place, changed_at, generation }, child))
    }

    /// True if a child still has the old value of a field, and no child of its custom resource was written
    /// since that was changed.
    pub(crate) fn is_unapplied(
        &self,
        primary: &ObjectKey,
        child: &ObjectKey,
        field: &ChangedValue,
        (changed_at, generation): (Timestamp, i64),
    ) -> bool {
        let same = self.live.get(primary).is_some_and(|live| {
            live.generation == generation && live.deleting.is_none() && live.gone.is_none()
        });
        let written = self.makers.iter().any(|(key, maker)| {
            maker.primary.key() == *primary && self.written_at.get(key).is_some_and(|at| *at > changed_at)
        });
        same && !written && self.values.old_in(child, field).is_some()
    }
}

fn is_count(name: &str) -> bool {
    COUNTS.contains(&name.to_ascii_lowercase().as_str())
}

/// True if the custom resource says that its children are to be left alone.
fn is_paused(object: &Value) -> bool {
    let spec = object["spec"].as_object().into_iter().flatten();
    let switched = spec.into_iter().any(|(name, value)| {
        value == &Value::Bool(true) && PAUSES.contains(&name.to_ascii_lowercase().as_str())
    });
    let annotations = object["metadata"]["annotations"].as_object().into_iter().flatten();
    switched || annotations.into_iter().any(|(name, _)| name.to_ascii_lowercase().contains("pause"))
}

/// The texts and numbers that have another value now; one more than a few at most.
fn changed(old: &Value, new: &Value, path: &str, out: &mut Vec<ChangedValue>) {
    if out.len() > FEW || old == new {
        return;
    }
    match (old, new) {
        (Value::Object(old), Value::Object(new)) => {
            for (name, value) in new {
                if let Some(before) = old.get(name) {
                    changed(before, value, &format!("{path}.{name}"), out);
                }
            }
        }
        (Value::Array(old), Value::Array(new)) if old.len() == new.len() => {
            for (at, (before, value)) in old.iter().zip(new).enumerate() {
                changed(before, value, &format!("{path}[{at}]"), out);
            }
        }
        (Value::String(_), Value::String(_)) | (Value::Number(_), Value::Number(_)) => {
            let name = path.rsplit('.').next().unwrap_or(path).split('[').next().unwrap_or_default();
            out.push(ChangedValue {
                path: path.to_owned(),
                name: name.to_owned(),
                old: old.clone(),
                new: new.clone(),
            });
        }
        _ => {}
    }
}

/// The first place below a part of a child where the old value of a field stands: under the same name, or as a
/// text that nothing else would say. Claims of a StatefulSet cannot be changed.
fn still(part: &Value, path: &str, field: &ChangedValue) -> Option<String> {
    match part {
        Value::Object(fields) => {
            fields.iter().filter(|(name, _)| *name != "volumeClaimTemplates").find_map(|(name, value)| {
                let path = format!("{path}.{name}");
                if is_same(name, value, field) { Some(path) } else { still(value, &path, field) }
            })
        }
        Value::Array(items) => {
            items.iter().enumerate().find_map(|(at, item)| still(item, &format!("{path}[{at}]"), field))
        }
        _ => None,
    }
}

fn is_same(name: &str, value: &Value, field: &ChangedValue) -> bool {
    let named = name.eq_ignore_ascii_case(&field.name) || name == "replicas" && is_count(&field.name);
    match (value, &field.old) {
        (Value::String(there), Value::String(old)) => {
            // The version of an image stands behind its colon.
            let tag =
                name == "image" && there.strip_suffix(old.as_str()).is_some_and(|rest| rest.ends_with(':'));
            there == old && (named || old.len() >= TELLING) || tag && !old.is_empty()
        }
        (Value::Number(there), Value::Number(old)) => named && there == old,
        _ => false,
    }
}
