//! An applied configuration merged into an object of which nobody keeps track: what mutating policies do.

use super::error::OverlayError;
use super::{merge, typed};
use crate::fieldset::{Shape, shape};
use crate::schema::SchemaRef;
use serde_json::Value;

/// `live` with `patch` merged into it, with a real server's words where that cannot be.
///
/// # Errors
/// The patch does not fit the schema, replaces what is atomic, or has items that cannot be told apart.
pub fn overlay(live: &Value, patch: &Value, schema: &SchemaRef) -> Result<Value, OverlayError> {
    typed::check(patch, schema).map_err(OverlayError::Patch)?;
    let mut found = Vec::new();
    atomics(patch, schema, "", &mut found);
    if !found.is_empty() {
        return Err(OverlayError::Atomic { paths: found });
    }
    merge::merge(live, patch, schema).map_err(OverlayError::Merge)
}

/// Finds the values that would be replaced as a whole. Only fields that are declared are looked into.
fn atomics(value: &Value, schema: &SchemaRef, path: &str, found: &mut Vec<String>) {
    if matches!(value, Value::Object(_) | Value::Array(_)) && shape(schema, value) == Shape::Leaf {
        found.push(path.to_owned());
    }
    match value {
        Value::Object(map) => {
            for (name, inner) in map {
                if let Some(field) = schema.properties.get(name) {
                    atomics(inner, field, &format!("{path}.{name}"), found);
                }
            }
        }
        Value::Array(items) => {
            if let Some(schema) = &schema.items {
                for (index, item) in items.iter().enumerate() {
                    atomics(item, schema, &format!("{path}[{index}]"), found);
                }
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}
