//! Pruning of fields a schema does not know and filling in of its defaults.
//! Never judges values; that is `validate`.

use super::model::{Additional, Kind, SchemaRef};
use serde_json::{Map, Value};

/// Removes the fields that the schema does not know and returns their paths, sorted:
/// `spec.foo`, `spec.containers[0].bar`.
pub fn prune(value: &mut Value, schema: &SchemaRef) -> Vec<String> {
    let mut dropped = Vec::new();
    walk(value, Some(schema), false, &mut String::new(), &mut dropped);
    dropped.sort();
    dropped
}

fn within<R>(path: &mut String, key: &str, f: impl FnOnce(&mut String) -> R) -> R {
    let length = path.len();
    if length > 0 {
        path.push('.');
    }
    path.push_str(key);
    let result = f(path);
    path.truncate(length);
    result
}

fn at_index<R>(path: &mut String, index: usize, f: impl FnOnce(&mut String) -> R) -> R {
    let length = path.len();
    path.push_str(&format!("[{index}]"));
    let result = f(path);
    path.truncate(length);
    result
}

/// `schema: None` is a place where nothing is known, so every field goes; `keep` is set inside lists of
/// a place that preserves unknown fields.
fn walk(
    value: &mut Value,
    schema: Option<&SchemaRef>,
    keep: bool,
    path: &mut String,
    dropped: &mut Vec<String>,
) {
    let keep = keep || schema.is_some_and(|s| s.preserve_unknown);
    match value {
        Value::Object(map) => walk_object(map, schema, keep, path, dropped),
        Value::Array(items) => {
            let item_schema = schema.and_then(|s| s.items.as_ref());
            if keep && item_schema.is_none() {
                return;
            }
            for (index, item) in items.iter_mut().enumerate() {
                at_index(path, index, |path| walk(item, item_schema, keep, path, dropped));
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn walk_object(
    map: &mut Map<String, Value>,
    schema: Option<&SchemaRef>,
    keep: bool,
    path: &mut String,
    dropped: &mut Vec<String>,
) {
    map.retain(|key, value| {
        let known = schema.and_then(|s| s.properties.get(key));
        let additional = schema.and_then(|s| s.additional.as_ref());
        match (known, additional) {
            (Some(property), _) => {
                within(path, key, |path| walk(value, Some(property), false, path, dropped));
            }
            (None, Some(Additional::Schema(other))) => {
                within(path, key, |path| walk(value, Some(other), false, path, dropped));
            }
            (None, Some(Additional::Any)) => {
                within(path, key, |path| walk(value, None, false, path, dropped));
            }
            (None, None) if keep => {}
            (None, None) => {
                within(path, key, |path| dropped.push(path.clone()));
                return false;
            }
        }
        true
    });
}

/// Fills in defaults. A `null` where the schema allows none takes the default, or goes.
pub fn default(value: &mut Value, schema: &SchemaRef) {
    fill(value, schema, Nulls::Go);
}

/// Fills in defaults of what an apply has made. A `null` without a default stays, for the schema to refuse:
/// only a body that is read loses it.
pub fn default_of_applied(value: &mut Value, schema: &SchemaRef) {
    fill(value, schema, Nulls::Stay);
}

/// The end of a `null` that the schema does not allow, and that has no default.
#[derive(Clone, Copy, PartialEq)]
enum Nulls {
    Go,
    Stay,
}

fn fill(value: &mut Value, schema: &SchemaRef, nulls: Nulls) {
    match value {
        Value::Object(map) => default_object(map, schema, nulls),
        Value::Array(items) => {
            let Some(item_schema) = &schema.items else { return };
            for item in items {
                if item.is_null() && !item_schema.nullable_here() {
                    *item = item_schema.default_value().cloned().unwrap_or(Value::Null);
                }
                fill(item, item_schema, nulls);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn default_object(map: &mut Map<String, Value>, schema: &SchemaRef, nulls: Nulls) {
    for (name, property) in &schema.properties {
        let missing = match map.get(name) {
            None => true,
            Some(Value::Null) => !property.nullable_here(),
            Some(_) => false,
        };
        if missing {
            match property.default_value() {
                Some(value) => _ = map.insert(name.clone(), value.clone()),
                None if is_free_form(property) || nulls == Nulls::Stay => {}
                None => _ = map.remove(name),
            }
        }
    }
    map.retain(|name, value| {
        if let Some(property) = schema.properties.get(name) {
            fill(value, property, nulls);
        } else if let Some(Additional::Schema(other)) = &schema.additional {
            if value.is_null() && !other.nullable_here() {
                match other.default_value() {
                    Some(default) => value.clone_from(default),
                    None if nulls == Nulls::Stay || is_free_form(other) => {}
                    None => return false,
                }
            }
            fill(value, other, nulls);
        }
        true
    });
}

/// Where a null may mean something although the schema does not say so.
fn is_free_form(schema: &SchemaRef) -> bool {
    schema.kind == Kind::Any && schema.preserve_unknown
}
