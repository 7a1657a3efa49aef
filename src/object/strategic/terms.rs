//! The words of a strategic merge patch: its directives, its errors, and how a field merges.

use crate::schema::{PatchRule, SchemaRef};
use serde_json::{Map, Value};
use std::fmt;

pub(super) const DIRECTIVE: &str = "$patch";
pub(super) const RETAIN_KEYS: &str = "$retainKeys";
pub(super) const DELETE_FROM: &str = "$deleteFromPrimitiveList";
pub(super) const SET_ORDER: &str = "$setElementOrder";

pub(super) type Object = Map<String, Value>;

/// A patch that cannot be applied or made; the text is what the server answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StrategicError(pub String);

impl fmt::Display for StrategicError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for StrategicError {}

pub(super) fn fail<T>(text: impl Into<String>) -> Result<T, StrategicError> {
    Err(StrategicError(text.into()))
}

/// How the field `key` merges: its rule and the schema of its value, or of its items.
pub(super) fn field(schema: &SchemaRef, key: &str) -> (PatchRule, SchemaRef) {
    match schema.field(key) {
        Some(field) => (field.patch().clone(), field.clone()),
        None => (PatchRule::default(), SchemaRef::untyped().clone()),
    }
}

pub(super) fn items(schema: &SchemaRef) -> SchemaRef {
    schema.items.as_ref().unwrap_or_else(|| SchemaRef::untyped()).clone()
}

pub(super) fn directive(item: &Value) -> Option<&Value> {
    item.get(DIRECTIVE)
}

/// Go's `%v` of a JSON value.
pub(crate) fn go_value(value: &Value) -> String {
    match value {
        Value::Null => "<nil>".to_owned(),
        Value::String(text) => text.clone(),
        Value::Number(number) if number.is_f64() => {
            crate::go::number::float(number.as_f64().unwrap_or_default())
        }
        Value::Number(_) | Value::Bool(_) => value.to_string(),
        Value::Array(list) => format!("[{}]", list.iter().map(go_value).collect::<Vec<_>>().join(" ")),
        Value::Object(map) => {
            let parts: Vec<String> =
                map.iter().map(|(key, value)| format!("{key}:{}", go_value(value))).collect();
            format!("map[{}]", parts.join(" "))
        }
    }
}

fn no_merge_key<T>(item: &Value, key: &str) -> Result<T, StrategicError> {
    fail(format!("map: {} does not contain declared merge key: {key}", go_value(item)))
}

pub(super) fn bad_type<T>(expected: &str, value: &Value) -> Result<T, StrategicError> {
    let got = match value {
        Value::Null => "nil",
        Value::Bool(_) => "bool",
        Value::Number(number) if number.is_f64() => "float64",
        Value::Number(_) => "int64",
        Value::String(_) => "string",
        Value::Array(_) => "[]interface {}",
        Value::Object(_) => "map[string]interface {}",
    };
    fail(format!("expected a {expected}, but received a {got}"))
}

/// The merge key of an item.
pub(super) fn key_of<'a>(item: &'a Value, key: &str) -> Result<&'a Value, StrategicError> {
    if !item.is_object() {
        return bad_type("map[string]interface {}", item);
    }
    match item.get(key) {
        Some(value) => Ok(value),
        None => no_merge_key(item, key),
    }
}
