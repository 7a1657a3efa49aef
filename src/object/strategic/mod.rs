//! Strategic merge patches: applied, and made from two or three states of an object.
//! Lists merge by the keys that the schema of a built-in kind gives; custom resources have no such patches.
//! Read `merge` for applying, `diff` for making, `conflict` for what `overwrite: false` refuses.

mod conflict;
mod diff;
mod merge;
mod order;

use crate::schema::{PatchRule, SchemaRef};
use diff::DiffOptions;
use merge::MergeOptions;
use serde_json::{Map, Value};
use std::fmt;

const DIRECTIVE: &str = "$patch";
const RETAIN_KEYS: &str = "$retainKeys";
const DELETE_FROM: &str = "$deleteFromPrimitiveList";
const SET_ORDER: &str = "$setElementOrder";

type Object = Map<String, Value>;

/// A patch that cannot be applied or made; the text is what the server answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StrategicError(pub String);

impl fmt::Display for StrategicError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for StrategicError {}

fn fail<T>(text: impl Into<String>) -> Result<T, StrategicError> {
    Err(StrategicError(text.into()))
}

/// Applies `patch` to `target`, whose kind has `schema`.
pub fn apply(target: &mut Value, patch: &Value, schema: &SchemaRef) -> Result<(), StrategicError> {
    let (Value::Object(original), Value::Object(changes)) = (&*target, patch) else {
        return fail("invalid JSON document");
    };
    let options = MergeOptions { resolve_directives: true, drop_nulls: true };
    let merged = merge::merge_object(original.clone(), changes.clone(), schema, options)?;
    *target = Value::Object(merged);
    Ok(())
}

/// The patch that turns `original` into `modified`.
pub fn two_way(original: &Value, modified: &Value, schema: &SchemaRef) -> Result<Value, StrategicError> {
    let options = DiffOptions { order: true, ..DiffOptions::default() };
    Ok(Value::Object(diff::diff_objects(as_object(original), as_object(modified), schema, options)?))
}

/// The patch that brings `current` to `modified`, and removes what `original` had and `modified` has not.
/// What only `current` has stays. Without `overwrite`, a change that somebody else made to the same
/// place is an error.
pub fn three_way(
    original: &Value,
    modified: &Value,
    current: &Value,
    schema: &SchemaRef,
    overwrite: bool,
) -> Result<Value, StrategicError> {
    let (original, modified, current) = (as_object(original), as_object(modified), as_object(current));
    let changes = DiffOptions { ignore_deletions: true, order: true, ..DiffOptions::default() };
    let changes = diff::diff_objects(current, modified, schema, changes)?;
    let deletions = DiffOptions { ignore_changes: true, order: true, ..DiffOptions::default() };
    let deletions = diff::diff_objects(original, modified, schema, deletions)?;
    let options = MergeOptions { resolve_directives: false, drop_nulls: false };
    let patch = merge::merge_object(deletions, changes, schema, options)?;
    if !overwrite {
        let theirs = diff::diff_objects(original, current, schema, DiffOptions::default())?;
        if conflict::objects(&patch, &theirs, schema) {
            let (ours, theirs) = (Value::Object(patch), Value::Object(theirs));
            return fail(format!(
                "patch:\n{}\nconflicts with changes made from original to current:\n{}\n",
                crate::yaml::to_string(&ours),
                crate::yaml::to_string(&theirs),
            ));
        }
    }
    Ok(Value::Object(patch))
}

static EMPTY: std::sync::LazyLock<Object> = std::sync::LazyLock::new(Object::new);

fn as_object(value: &Value) -> &Object {
    value.as_object().unwrap_or(&EMPTY)
}

/// How the field `key` merges: its rule and the schema of its value, or of its items.
fn field(schema: &SchemaRef, key: &str) -> (PatchRule, SchemaRef) {
    match schema.field(key) {
        Some(field) => (field.patch().clone(), field.clone()),
        None => (PatchRule::default(), SchemaRef::untyped().clone()),
    }
}

fn items(schema: &SchemaRef) -> SchemaRef {
    schema.items.as_ref().unwrap_or_else(|| SchemaRef::untyped()).clone()
}

fn directive(item: &Value) -> Option<&Value> {
    item.get(DIRECTIVE)
}

/// Go's `%v` of a JSON value.
pub(crate) fn go_value(value: &Value) -> String {
    match value {
        Value::Null => "<nil>".to_owned(),
        Value::String(text) => text.clone(),
        Value::Number(number) if number.is_f64() => {
            crate::schema::go_float(number.as_f64().unwrap_or_default())
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

fn bad_type<T>(expected: &str, value: &Value) -> Result<T, StrategicError> {
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
fn key_of<'a>(item: &'a Value, key: &str) -> Result<&'a Value, StrategicError> {
    if !item.is_object() {
        return bad_type("map[string]interface {}", item);
    }
    match item.get(key) {
        Some(value) => Ok(value),
        None => no_merge_key(item, key),
    }
}

#[cfg(test)]
#[allow(clippy::needless_pass_by_value)]
mod tests;
