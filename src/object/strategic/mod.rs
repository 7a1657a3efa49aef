//! Strategic merge patches: applied, and made from two or three states of an object.
//! Lists merge by the keys that the schema of a built-in kind gives; custom resources have no such patches.
//! Read `merge` for applying, `diff` for making, `conflict` for what `overwrite: false` refuses.

mod conflict;
mod diff;
mod merge;
mod order;
mod terms;

pub use terms::StrategicError;
pub(crate) use terms::go_value;

use crate::schema::SchemaRef;
use diff::DiffOptions;
use merge::MergeOptions;
use serde_json::Value;
use terms::{Object, fail};

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

#[cfg(test)]
#[allow(clippy::needless_pass_by_value)]
mod tests;
