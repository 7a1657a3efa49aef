//! Writers of fields, read off `metadata.managedFields`: the owners of every place in an object, and who
//! wrote a version last. Pure; what it cannot tell it leaves out.

use super::{Seen, State};
use jiff::Timestamp;
use opdev_object::fieldset::{Element, FieldPath, FieldSet};
use serde_json::Value;
use std::collections::BTreeMap;

/// One entry of `managedFields`.
#[derive(Clone, Debug, PartialEq)]
pub struct Manager {
    /// The field manager.
    pub name: String,
    /// `Apply` or `Update`.
    pub operation: String,
    /// The subresource it wrote through, such as `status`; empty for the object itself.
    pub subresource: String,
    /// When it wrote last, to the second.
    pub at: Option<Timestamp>,
}

impl Manager {
    fn of(entry: &Value) -> Self {
        let text = |field: &str| entry.get(field).and_then(Value::as_str).unwrap_or("").to_owned();
        Manager {
            name: text("manager"),
            operation: text("operation"),
            subresource: text("subresource"),
            at: text("time").parse().ok(),
        }
    }

    /// The name, with the subresource where it is one.
    pub fn label(&self) -> String {
        match self.subresource.as_str() {
            "" => self.name.clone(),
            subresource => format!("{} ({subresource})", self.name),
        }
    }
}

fn entries(object: &Value) -> &[Value] {
    object.pointer("/metadata/managedFields").and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// Everybody who owns a field of an object.
pub fn all(object: &Value) -> Vec<Manager> {
    entries(object).iter().map(Manager::of).collect()
}

/// The writer of a version: the newest entry that the version before did not have.
pub fn writer(before: Option<&Value>, object: &Value) -> Option<Manager> {
    let known = before.map_or(&[][..], entries);
    let fresh = entries(object).iter().filter(|entry| !known.contains(entry)).map(Manager::of);
    fresh.max_by_key(|manager| manager.at)
}

/// Programs that people use: what they write says nothing of who reconciles.
const PEOPLES: [&str; 7] = ["kubectl", "opdev", "helm", "k9s", "before-first-apply", "Mozilla", "unknown"];

/// The program that seems to reconcile an object, and how it shows: it wrote the status, or it records Events
/// about it.
pub fn operator_of(state: &State, seen: &Seen) -> Option<(String, &'static str)> {
    let is_program = |name: &str| !name.is_empty() && !PEOPLES.iter().any(|known| name.starts_with(known));
    let writers = all(&seen.object).into_iter().filter(|manager| manager.subresource == "status");
    let writer = writers.filter(|manager| is_program(&manager.name)).max_by_key(|manager| manager.at);
    if let Some(writer) = writer {
        return Some((writer.name, "wrote its status (managedFields)"));
    }
    let key = &seen.key;
    let about = state.objects.recorded().rev().find(|event| {
        event.kind == key.kind
            && event.name == key.name
            && event.namespace == key.namespace
            && is_program(&event.from)
    });
    about.map(|event| (event.from.clone(), "records Events about it"))
}

/// One step into an object as it is: lists by position.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Step {
    /// A field.
    Field(String),
    /// An item.
    Item(usize),
}

/// The owners of every place in one object.
#[derive(Clone, Debug, Default)]
pub struct Owners {
    managers: Vec<Manager>,
    places: BTreeMap<Vec<Step>, Vec<Place>>,
}

#[derive(Clone, Copy, Debug)]
struct Place {
    manager: usize,
    /// Nothing below is listed on its own, so all that is below belongs to it.
    whole: bool,
}

impl Owners {
    /// Reads the owners off an object. Entries that cannot be read are left out.
    pub fn of(object: &Value) -> Self {
        let mut owners = Owners { managers: all(object), ..Owners::default() };
        for (manager, entry) in entries(object).iter().enumerate() {
            let Some(set) = entry.get("fieldsV1").and_then(|fields| FieldSet::from_fields_v1(fields).ok())
            else {
                continue;
            };
            let paths = set.paths();
            for (i, path) in paths.iter().enumerate() {
                let inside = paths.get(i + 1).is_some_and(|next| next.0.starts_with(&path.0));
                if let Some(steps) = steps(path, object) {
                    let place = Place { manager, whole: !inside };
                    owners.places.entry(steps).or_default().push(place);
                }
            }
        }
        owners
    }

    /// The managers that own a place, by their labels: named there, or owners of something whole that it is
    /// in.
    pub fn at(&self, place: &[Step]) -> Vec<String> {
        let named = |manager: &Place| self.managers.get(manager.manager).map(Manager::label);
        let mut labels: Vec<String> =
            self.places.get(place).into_iter().flatten().filter_map(named).collect();
        for above in (1..place.len()).rev().map(|end| &place[..end]) {
            let whole = self.places.get(above).into_iter().flatten().filter(|place| place.whole);
            labels.extend(whole.filter_map(named));
        }
        labels.dedup();
        labels
    }
}

/// A path of a field set as steps into the object; `None` where the object has no such place any more.
fn steps(path: &FieldPath, object: &Value) -> Option<Vec<Step>> {
    let mut at = object;
    let mut steps = Vec::with_capacity(path.0.len());
    for element in &path.0 {
        let step = match element {
            Element::Field(name) => Step::Field(name.clone()),
            Element::Index(index) => Step::Item(usize::try_from(*index).ok()?),
            Element::Value(value) => Step::Item(at.as_array()?.iter().position(|item| *item == value.0)?),
            Element::Key(keys) => {
                let is = |item: &Value| keys.iter().all(|(key, value)| item.get(key) == Some(&value.0));
                // A key that the item leaves out stands for its default, as the protocol of a port does.
                let may_be = |item: &Value| {
                    keys.iter().all(|(key, value)| item.get(key).is_none_or(|own| *own == value.0))
                };
                let items = at.as_array()?;
                Step::Item(items.iter().position(is).or_else(|| items.iter().position(may_be))?)
            }
        };
        at = match &step {
            Step::Field(name) => at.get(name)?,
            Step::Item(index) => at.get(*index)?,
        };
        steps.push(step);
    }
    Some(steps)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn object() -> Value {
        json!({"metadata": {"labels": {"app": "web", "team": "x"}, "finalizers": ["a/b", "c/d"], "managedFields": [
                {"manager": "helm", "operation": "Apply", "time": "2026-03-01T17:00:00Z", "fieldsV1": {
                    "f:metadata": {"f:labels": {"f:app": {}}, "f:finalizers": {"v:\"c/d\"": {}}},
                    "f:spec": {"f:replicas": {}, "f:selector": {},
                        "f:ports": {"k:{\"port\":80,\"protocol\":\"TCP\"}": {".": {}, "f:name": {}}}}}},
                {"manager": "kubectl", "operation": "Update", "time": "2026-03-01T17:02:00Z", "fieldsV1": {
                    "f:metadata": {"f:labels": {".": {}, "f:team": {}}}, "f:spec": {"f:replicas": {}, "f:gone": {}}}},
                {"manager": "web", "operation": "Update", "subresource": "status", "fieldsV1": {"f:status": {"f:phase": {}}}}]},
            "spec": {"replicas": 3, "selector": {"matchLabels": {"app": "web"}},
                "ports": [{"port": 80, "name": "http", "nodePort": 30000}]},
            "status": {"phase": "Good"}})
    }

    fn at(place: &str) -> String {
        let steps: Vec<Step> = place
            .split('.')
            .map(|part| part.parse().map_or_else(|_| Step::Field(part.to_owned()), Step::Item))
            .collect();
        Owners::of(&object()).at(&steps).join(" + ")
    }

    #[test]
    fn every_place_has_its_owners() {
        for (place, owners) in [
            ("spec.replicas", "helm + kubectl"),
            ("spec.selector.matchLabels.app", "helm"),
            ("spec.ports.0.name", "helm"),
            ("spec.ports.0.nodePort", ""),
            ("spec.ports.0", "helm"),
            ("spec", ""),
            ("metadata.labels.app", "helm"),
            ("metadata.labels.team", "kubectl"),
            ("metadata.labels", "kubectl"),
            ("metadata.finalizers.1", "helm"),
            ("metadata.finalizers.0", ""),
            ("status.phase", "web (status)"),
        ] {
            assert_eq!(at(place), owners, "{place}");
        }
    }

    #[test]
    fn the_writer_of_a_version_is_who_the_one_before_did_not_have() {
        let before = object();
        let mut after = object();
        after["metadata"]["managedFields"][0]["time"] = json!("2026-03-01T17:05:00Z");
        assert_eq!(writer(Some(&before), &after).unwrap().label(), "helm");
        assert_eq!(writer(None, &before).unwrap().label(), "kubectl");
        assert_eq!(writer(Some(&before), &before), None);
    }
}
