//! When two definitions mean the same: key order, the generator's version, what the server fills in and what
//! it drops make no difference. Applying such a change would only cut every watch of the kind.

use serde_json::{Map, Value};

/// Annotations that say who wrote a definition, not what it is.
const NOISE: [&str; 2] =
    ["controller-gen.kubebuilder.io/version", "kubectl.kubernetes.io/last-applied-configuration"];

/// Returns true if there is nothing worth applying: `old` is what the server has, `new` what is wanted.
pub fn same(old: &Value, new: &Value) -> bool {
    let (old, new) = (normal(old), normal(new));
    let covered = ["labels", "annotations"].iter().all(|field| {
        let wanted = new["metadata"][*field].as_object();
        let there = old["metadata"][*field].as_object();
        wanted.into_iter().flatten().all(|(key, value)| there.is_some_and(|map| map.get(key) == Some(value)))
    });
    covered && old["spec"] == new["spec"]
}

/// The definition without what makes no difference.
pub(super) fn normal(crd: &Value) -> Value {
    let mut crd = crd.clone();
    opdev_cel::definition::complete(&mut crd);
    let Some(map) = crd.as_object_mut() else { return crd };
    if let Some(metadata) = map.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.retain(|key, _| matches!(key.as_str(), "name" | "labels" | "annotations"));
        if let Some(notes) = metadata.get_mut("annotations").and_then(Value::as_object_mut) {
            notes.retain(|key, _| !NOISE.contains(&key.as_str()));
        }
    }
    // Only the stored versions count for what may be removed.
    if let Some(status) = map.get_mut("status").and_then(Value::as_object_mut) {
        status.retain(|key, _| key == "storedVersions");
    }
    if let Some(spec) = map.get_mut("spec").and_then(Value::as_object_mut) {
        drop_zero(spec, &["preserveUnknownFields"]);
        if let Some(names) = spec.get_mut("names").and_then(Value::as_object_mut) {
            drop_zero(names, &["shortNames", "categories"]);
        }
        for version in spec.get_mut("versions").and_then(Value::as_array_mut).into_iter().flatten() {
            normal_version(version);
        }
    }
    crd
}

fn normal_version(version: &mut Value) {
    let Some(map) = version.as_object_mut() else { return };
    drop_zero(map, &["deprecated", "additionalPrinterColumns", "selectableFields"]);
    for column in map.get_mut("additionalPrinterColumns").and_then(Value::as_array_mut).into_iter().flatten()
    {
        if let Some(column) = column.as_object_mut() {
            drop_zero(column, &["priority", "format", "description"]);
        }
    }
    if let Some(schema) = map.get_mut("schema").and_then(|schema| schema.get_mut("openAPIV3Schema")) {
        normal_schema(schema, 0);
    }
}

fn is_zero(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) => true,
        Value::Bool(true) => false,
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::String(text) => text.is_empty(),
        Value::Array(list) => list.is_empty(),
        Value::Object(map) => map.is_empty(),
    }
}

fn drop_zero(map: &mut Map<String, Value>, keys: &[&str]) {
    for key in keys {
        if map.get(*key).is_some_and(is_zero) {
            map.remove(*key);
        }
    }
}

/// Keywords that the server does not keep when they are empty, or that mean nothing then.
const DROPPED: [&str; 22] = [
    "title",
    "description",
    "format",
    "pattern",
    "nullable",
    "required",
    "enum",
    "properties",
    "allOf",
    "anyOf",
    "oneOf",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "uniqueItems",
    "minLength",
    "minItems",
    "minProperties",
    "x-kubernetes-embedded-resource",
    "x-kubernetes-int-or-string",
    "x-kubernetes-list-map-keys",
    "x-kubernetes-validations",
    "x-kubernetes-preserve-unknown-fields",
];

/// Deeper than any schema the server takes.
const DEEPEST: usize = 128;

fn normal_schema(schema: &mut Value, depth: usize) {
    let Some(map) = schema.as_object_mut().filter(|_| depth < DEEPEST) else { return };
    drop_zero(map, &DROPPED);
    whole_numbers(map);
    if let Some(required) = map.get_mut("required").and_then(Value::as_array_mut) {
        required.sort_by(|a, b| a.as_str().cmp(&b.as_str()));
        required.dedup();
    }
    if map.get("x-kubernetes-list-type").is_some_and(|kind| kind == "atomic") {
        map.remove("x-kubernetes-list-type");
    }
    if map.get("x-kubernetes-map-type").is_some_and(|kind| kind == "granular") {
        map.remove("x-kubernetes-map-type");
    }
    for property in map.get_mut("properties").and_then(Value::as_object_mut).into_iter().flatten() {
        normal_schema(property.1, depth + 1);
    }
    for key in ["items", "additionalProperties", "not"] {
        if let Some(part) = map.get_mut(key) {
            normal_schema(part, depth + 1);
        }
    }
    for key in ["allOf", "anyOf", "oneOf"] {
        for part in map.get_mut(key).and_then(Value::as_array_mut).into_iter().flatten() {
            normal_schema(part, depth + 1);
        }
    }
}

/// 1.0 and 1 are the same bound.
fn whole_numbers(map: &mut Map<String, Value>) {
    for key in [
        "minimum",
        "maximum",
        "multipleOf",
        "maxLength",
        "maxItems",
        "maxProperties",
        "minLength",
        "minItems",
    ] {
        if let Some(value) = map.get_mut(key)
            && let Some(float) = value.as_f64().filter(|_| value.is_f64())
            && float.fract() == 0.0
            && float.abs() < 9.0e15
        {
            *value = Value::from(float as i64);
        }
    }
}
