//! Fields that the server itself sets on an object before it is written: which part of it the request may
//! change, the status it starts with, its generation. What is special about a kind is in its `Strategy`. Read
//! `validate` for what is refused.

use super::strategy::strategy_of;
use opdev_apimachinery::part::Part;
use opdev_apimachinery::resource::{Resource, metadata};
use opdev_apis::defaults;
use opdev_object::schema;
use serde_json::Value;

/// Before a create, with metadata stamped.
pub(crate) fn prepare_create(resource: &Resource, object: &mut Value) {
    reset_status(resource, object);
    default_status(resource, object);
    if resource.rules.generation || resource.custom.is_some() {
        metadata::map_mut(object).insert("generation".to_owned(), Value::from(1));
    }
    (strategy_of(resource).prepare_create)(object);
}

fn reset_status(resource: &Resource, object: &mut Value) {
    if !resource.has_status() {
        return;
    }
    if resource.custom.is_some() {
        if let Some(map) = object.as_object_mut() {
            map.remove("status");
        }
        return;
    }
    if let Some(status) = (strategy_of(resource).initial_status)(resource) {
        object["status"] = status;
    }
}

/// A custom resource without a status gets the default of its schema, as when it is read back.
fn default_status(resource: &Resource, object: &mut Value) {
    let Some(_) = resource.custom.as_ref().filter(|_| object.get("status").is_none()) else { return };
    let schema = resource.schema();
    if schema.properties.get("status").is_some_and(|status| status.default_value().is_some()) {
        schema::default(object, schema);
    }
}

/// Before an update: `object` becomes what the request may make of `current`.
pub(crate) fn prepare_update(resource: &Resource, part: Part, object: &mut Value, current: &Value) {
    let strategy = strategy_of(resource);
    match part {
        Part::Main | Part::Scale => {
            if resource.has_status() {
                take(object, current, "status");
            }
        }
        Part::Binding => {}
        Part::Status => only(object, current, resource, strategy.status_fields),
        Part::Finalize => only(object, current, resource, &["/spec/finalizers"]),
        Part::EphemeralContainers => only(object, current, resource, &["/spec/ephemeralContainers"]),
        Part::Resize => only(object, current, resource, &["/spec/containers", "/spec/initContainers"]),
        Part::Approval => only(object, current, resource, &["/status/conditions"]),
    }
    (strategy.prepare_update)(resource, part, object, current);
    default_status(resource, object);
    let counts = (resource.rules.generation || resource.custom.is_some())
        && !matches!(part, Part::Status | Part::Binding | Part::Approval);
    if counts && desired_state_differs(resource, object, current) {
        let next = opdev_object::meta::generation(current) + 1;
        metadata::map_mut(object).insert("generation".to_owned(), Value::from(next));
    }
}

pub(super) fn take(object: &mut Value, current: &Value, field: &str) {
    let Some(map) = object.as_object_mut() else { return };
    match current.get(field) {
        Some(value) => map.insert(field.to_owned(), value.clone()),
        None => map.remove(field),
    };
}

/// Everything but these fields is as it was. Metadata that people set stays writable for built-in kinds.
fn only(object: &mut Value, current: &Value, resource: &Resource, fields: &[&str]) {
    let wanted: Vec<Option<Value>> = fields.iter().map(|field| object.pointer(field).cloned()).collect();
    let new_meta = object["metadata"].clone();
    *object = current.clone();
    let meta = metadata::map_mut(object);
    let mut kept = vec!["managedFields", "resourceVersion"];
    if resource.custom.is_none() {
        kept.extend(["annotations", "finalizers", "generateName"]);
        kept.extend(strategy_of(resource).status_metadata);
    }
    for field in kept {
        match new_meta.get(field) {
            Some(value) => meta.insert(field.to_owned(), value.clone()),
            None => meta.remove(field),
        };
    }
    for (field, value) in fields.iter().zip(wanted) {
        set(object, field, value);
    }
}

fn set(object: &mut Value, pointer: &str, value: Option<Value>) {
    let mut names: Vec<&str> = pointer.trim_start_matches('/').split('/').collect();
    let Some(last) = names.pop() else { return };
    let parent = names.into_iter().fold(object, |at, name| defaults::sub(at, name));
    match (parent.as_object_mut(), value) {
        (Some(map), Some(value)) => {
            map.insert(last.to_owned(), value);
        }
        (Some(map), None) => {
            map.remove(last);
        }
        (None, _) => {}
    }
}

/// Returns true if anything but metadata (and a status with a path of its own) differs.
fn desired_state_differs(resource: &Resource, object: &Value, current: &Value) -> bool {
    let (Some(new), Some(old)) = (object.as_object(), current.as_object()) else { return true };
    let ignored = |key: &str| {
        matches!(key, "metadata" | "apiVersion" | "kind") || (key == "status" && resource.has_status())
    };
    let one_way = |a: &serde_json::Map<String, Value>, b: &serde_json::Map<String, Value>| {
        a.iter().any(|(key, value)| !ignored(key) && b.get(key) != Some(value))
    };
    if one_way(new, old) || one_way(old, new) {
        return true;
    }
    strategy_of(resource).annotations_are_desired
        && object["metadata"]["annotations"] != current["metadata"]["annotations"]
}
