//! A value of a spec that somebody has changed, and the children that still have the old one.

use super::waits::Wait;
use super::{Table, is_never};
use jiff::{SignedDuration, Timestamp};
use opdev_event::Body;
use opdev_event::evidence::Evidence;
use opdev_object::meta::{self, ObjectKey, ObjectRef};
use serde_json::Value;
use std::collections::{BTreeSet, HashMap};

/// More fields at once are another version of the whole, not a change that somebody looks after.
const FEW: usize = 8;
/// Names under which numbers of pods go; a workload says `replicas`.
const COUNTS: [&str; 6] = ["replicas", "size", "count", "instances", "nodes", "nodecount"];
/// A text of this length stands in a child for no other reason.
const TELLING: usize = 8;
/// Names that stand in many places with the same value, and those for which the API server has a value of its
/// own.
const EVERYWHERE: [&str; 14] = [
    "name",
    "namespace",
    "type",
    "key",
    "value",
    "mode",
    "kind",
    "protocol",
    "scheme",
    "periodSeconds",
    "timeoutSeconds",
    "failureThreshold",
    "successThreshold",
    "initialDelaySeconds",
];
/// Parts of a spec in which a size is none of pods.
const NO_PODS: [&str; 5] = ["storage", "disk", "volume", "persistence", "memory"];
/// Children that an operator changes in place. Jobs and claims stay as they were made.
pub(super) const CHANGED_IN_PLACE: [&str; 6] =
    ["Deployment", "StatefulSet", "DaemonSet", "Service", "ConfigMap", "CronJob"];
/// The API server may have shown a change before opdev has told of it.
const LATE: SignedDuration = SignedDuration::from_secs(3);
/// Fields of pods and containers. A spec that has one of these names means the one of its pods.
const OF_PODS: [&str; 21] = [
    "tolerations",
    "nodeSelector",
    "affinity",
    "topologySpreadConstraints",
    "priorityClassName",
    "serviceAccountName",
    "imagePullSecrets",
    "securityContext",
    "hostNetwork",
    "hostAliases",
    "dnsConfig",
    "runtimeClassName",
    "env",
    "envFrom",
    "args",
    "command",
    "resources",
    "volumeMounts",
    "livenessProbe",
    "readinessProbe",
    "startupProbe",
];
/// Kinds with a template for pods.
const WORKLOADS: [&str; 3] = ["Deployment", "StatefulSet", "DaemonSet"];
/// Switches of a spec that tell the operator to leave its children alone.
const PAUSES: [&str; 4] = ["suspend", "pause", "stop", "unmanaged"];

/// A part of a spec that somebody has changed: a text, a number, or a field that pods have, too.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ChangedValue {
    /// Its path, such as `.spec.server.image`.
    pub(crate) path: String,
    /// The last part of the path.
    name: String,
    /// The value before; null where there was none.
    pub(crate) old: Value,
    /// The value now; null where there is none.
    pub(crate) new: Value,
}

impl ChangedValue {
    /// True if it is a text or a number before and after: a child that has the old one is sure to be meant.
    pub(crate) fn is_scalar(&self) -> bool {
        let is = |value: &Value| value.is_string() || value.is_number();
        is(&self.old) && is(&self.new)
    }
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
        if !field.is_scalar() {
            let template =
                body.pointer("/spec/template/spec").filter(|_| WORKLOADS.contains(&child.kind.as_str()))?;
            let there = named(template, ".spec.template.spec", &field.name);
            return match there {
                // The pods have it already, with what the API server has added to it.
                Some((_, value)) if !field.new.is_null() && holds(value, &field.new) => None,
                Some((path, value)) => (!field.old.is_null() && holds(value, &field.old)).then_some(path),
                None => field.old.is_null().then(|| ".spec.template.spec".to_owned()),
            };
        }
        ["spec", "data"].iter().find_map(|part| still(&body[*part], &format!(".{part}"), field))
    }
}

impl Table {
    /// A judgement for later, after a reconcile that saw a changed spec and wrote no child: the first child
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
        if evidence.writes.iter().any(child_written) || self.is_written_since(&primary, change.at - LATE) {
            self.values.changes.remove(&primary);
            return None;
        }
        let change = self.values.changes.get(&primary).filter(|change| !change.waits)?;
        let scales =
            |key: &ObjectKey| matches!(key.kind.as_str(), "HorizontalPodAutoscaler" | "ScaledObject");
        let scales = self.makers.keys().chain(self.shown.keys()).any(scales);
        let own = |maker: &&super::Maker| {
            maker.primary.key() == primary
                && maker.controller == evidence.controller
                && CHANGED_IN_PLACE.contains(&maker.object.gvk.kind.as_str())
                && maker.seen
                && !maker.gone
                && maker.deleted.is_none()
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
        same && !self.is_written_since(primary, changed_at - LATE)
            && self.values.old_in(child, field).is_some()
    }

    /// True if a child of a custom resource was written since then, by whichever controller.
    fn is_written_since(&self, primary: &ObjectKey, since: Timestamp) -> bool {
        self.makers.iter().any(|(key, maker)| {
            maker.primary.key() == *primary && self.written_at.get(key).is_some_and(|at| *at > since)
        })
    }
}

fn is_count(name: &str) -> bool {
    COUNTS.contains(&name.to_ascii_lowercase().as_str())
}

/// True if the custom resource says that its children are to be left alone.
fn is_paused(object: &Value) -> bool {
    let annotations = object["metadata"]["annotations"].as_object().into_iter().flatten();
    let mut annotations = annotations.map(|(name, _)| name.to_ascii_lowercase());
    says_pause(&object["spec"], 2)
        || annotations.any(|name| ["pause", "reconcil", "unmanaged"].iter().any(|word| name.contains(word)))
}

/// True if a switch says so, or a state such as `managementState: Unmanaged`.
fn says_pause(part: &Value, depth: usize) -> bool {
    let mut fields = part.as_object().into_iter().flatten();
    fields.any(|(name, value)| {
        let name = name.to_ascii_lowercase();
        let pauses = PAUSES.iter().any(|word| name.contains(word));
        match value {
            Value::Bool(on) => *on && pauses,
            Value::String(state) => {
                matches!(state.to_ascii_lowercase().as_str(), "unmanaged" | "paused" | "disabled")
            }
            Value::Object(inner) => {
                let on = inner.get("enabled") == Some(&Value::Bool(true));
                pauses && on || depth > 0 && says_pause(value, depth - 1)
            }
            _ => false,
        }
    })
}

/// The texts, numbers and fields of pods that have another value now; one more than a few at most.
fn changed(old: &Value, new: &Value, path: &str, out: &mut Vec<ChangedValue>) {
    let nothing = |value: &Value| match value {
        Value::Object(fields) => fields.is_empty(),
        Value::Array(items) => items.is_empty(),
        value => value.is_null(),
    };
    if out.len() > FEW || old == new || nothing(old) && nothing(new) {
        return;
    }
    let name = path.rsplit('.').next().unwrap_or(path).split('[').next().unwrap_or_default();
    let filled = |value: &Value| if nothing(value) { Value::Null } else { value.clone() };
    let whole =
        || ChangedValue { path: path.to_owned(), name: name.to_owned(), old: filled(old), new: filled(new) };
    if OF_PODS.contains(&name) && !path.ends_with(']') {
        out.push(whole());
        return;
    }
    match (old, new) {
        (Value::Object(old), Value::Object(new)) => {
            let names: BTreeSet<&String> = old.keys().chain(new.keys()).collect();
            for name in names {
                let (before, now) = (old.get(name), new.get(name));
                let both = before.is_some() && now.is_some() || OF_PODS.contains(&name.as_str());
                if both {
                    let (before, now) = (before.unwrap_or(&Value::Null), now.unwrap_or(&Value::Null));
                    changed(before, now, &format!("{path}.{name}"), out);
                }
            }
        }
        (Value::Array(old), Value::Array(new)) if old.len() == new.len() => {
            for (at, (before, value)) in old.iter().zip(new).enumerate() {
                changed(before, value, &format!("{path}[{at}]"), out);
            }
        }
        (Value::String(_), Value::String(_)) | (Value::Number(_), Value::Number(_)) => {
            out.push(whole());
        }
        _ => {}
    }
}

/// The first place below a part of a child where the old value of a field stands: under the same name, or as
/// a text that nothing else would say. Claims of a StatefulSet cannot be changed.
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
    let pods = name == "replicas" && is_count(&field.name) && !is_no_pods(&field.path);
    let named = name.eq_ignore_ascii_case(&field.name) && !EVERYWHERE.contains(&name);
    match (value, &field.old) {
        (Value::String(there), Value::String(old)) => {
            // The version of an image stands behind its colon.
            let tag =
                name == "image" && there.strip_suffix(old.as_str()).is_some_and(|rest| rest.ends_with(':'));
            there == old && (named || is_telling(old)) || tag && !old.is_empty()
        }
        (Value::Number(there), Value::Number(old)) => (named || pods) && there == old,
        _ => false,
    }
}

/// True for a path such as `.spec.storage.size`.
fn is_no_pods(path: &str) -> bool {
    let path = path.to_ascii_lowercase();
    NO_PODS.iter().any(|part| path.contains(part))
}

/// True for a text that is no word of Kubernetes, such as `OnDelete`.
fn is_telling(text: &str) -> bool {
    text.len() >= TELLING && text.contains(|c: char| !c.is_ascii_alphabetic())
}

/// The first field with this name, and where it stands.
fn named<'a>(part: &'a Value, path: &str, wanted: &str) -> Option<(String, &'a Value)> {
    match part {
        Value::Object(fields) => fields.iter().find_map(|(name, value)| {
            let path = format!("{path}.{name}");
            if name == wanted { Some((path, value)) } else { named(value, &path, wanted) }
        }),
        Value::Array(items) => {
            items.iter().enumerate().find_map(|(at, item)| named(item, &format!("{path}[{at}]"), wanted))
        }
        _ => None,
    }
}

/// True if a value has all that another one says: the API server and the operator may add to it.
fn holds(there: &Value, wanted: &Value) -> bool {
    match (there, wanted) {
        (_, Value::Null) => true,
        (Value::Object(there), Value::Object(wanted)) => {
            wanted.iter().all(|(name, value)| there.get(name).is_some_and(|there| holds(there, value)))
        }
        (Value::Array(there), Value::Array(wanted)) => {
            wanted.iter().all(|value| there.iter().any(|there| holds(there, value)))
        }
        (there, wanted) => there == wanted,
    }
}
