//! Strategic merge as kustomize does it, which is not the API server's: what a patch adds to a list comes
//! first, `null` removes, `$patch` says `delete` or `replace`, and what has no schema is replaced as a whole.
//! Lists whose items have keys are in `lists`.

mod lists;

use crate::error::{MergeError, MergeErrorKind};
use crate::resource::gvk;
use crate::scopes;
use opdev_object::schema::SchemaRef;
use serde_json::{Map, Value};

const DIRECTIVE: &str = "$patch";

/// The outcome for the value that is patched.
enum Outcome {
    /// It has been changed in place.
    Kept,
    /// Another value takes its place.
    Replaced(Value),
    /// It goes away.
    Gone,
}

/// The directive of a patch for a map or list as a whole.
#[derive(Clone, Copy, PartialEq, Eq)]
enum MergeDirective {
    Merge,
    Replace,
    Delete,
}

/// Merges a patch into an object, by the schema of the object's kind. `None`: the object is deleted.
pub(crate) fn merge(object: &mut Value, patch: &mut Value) -> Result<Option<()>, MergeError> {
    match walk(Some(object), Some(patch), None)? {
        Outcome::Kept => Ok(Some(())),
        Outcome::Replaced(value) => {
            *object = value;
            Ok(Some(()))
        }
        Outcome::Gone => Ok(None),
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    Nothing,
    Map,
    List,
    Plain,
}

fn form(value: Option<&Value>) -> Form {
    match value {
        None | Some(Value::Null) => Form::Nothing,
        Some(Value::Object(_)) => Form::Map,
        Some(Value::Array(_)) => Form::List,
        Some(Value::Bool(_) | Value::Number(_) | Value::String(_)) => Form::Plain,
    }
}

/// Merges one value, which may be missing, with its patch, which may be missing too.
fn walk(
    target: Option<&mut Value>,
    patch: Option<&mut Value>,
    schema: Option<&SchemaRef>,
) -> Result<Outcome, MergeError> {
    let (mine, theirs) = (form(target.as_deref()), form(patch.as_deref()));
    let form = if mine == Form::Nothing { theirs } else { mine };
    if mine != Form::Nothing && theirs != Form::Nothing && mine != theirs {
        return Err(MergeError::new(MergeErrorKind::Form));
    }
    let own;
    let schema = match schema {
        Some(schema) => Some(schema),
        None => {
            own = schema_of(target.as_deref()).or_else(|| schema_of(patch.as_deref()));
            own.as_ref()
        }
    };
    match form {
        Form::Map | Form::Nothing => maps(target, patch, schema),
        Form::List if schema.is_some_and(|schema| schema.patch().merge) => {
            lists::merge(target, patch, schema)
        }
        Form::List | Form::Plain => Ok(match patch {
            Some(patch) => Outcome::Replaced(patch.clone()),
            None => Outcome::Kept,
        }),
    }
}

fn schema_of(value: Option<&Value>) -> Option<SchemaRef> {
    let value = value?;
    if !value["kind"].is_string() || !value["apiVersion"].is_string() {
        return None;
    }
    scopes::schema(&gvk(value))
}

/// Takes the directive out of the map of a patch.
fn take_map_directive(patch: &mut Value) -> Result<MergeDirective, MergeError> {
    let Some(map) = patch.as_object_mut() else { return Ok(MergeDirective::Merge) };
    let found = match map.get(DIRECTIVE) {
        None | Some(Value::Null) => return Ok(MergeDirective::Merge),
        Some(directive) => read_directive(directive)?,
    };
    map.remove(DIRECTIVE);
    Ok(found)
}

/// Reads a directive.
fn read_directive(directive: &Value) -> Result<MergeDirective, MergeError> {
    match directive.as_str() {
        Some("delete") => Ok(MergeDirective::Delete),
        Some("replace") => Ok(MergeDirective::Replace),
        Some("merge") => Ok(MergeDirective::Merge),
        Some(_) | None => Err(MergeError::new(MergeErrorKind::Directive(directive.clone()))),
    }
}

fn maps(
    target: Option<&mut Value>,
    patch: Option<&mut Value>,
    schema: Option<&SchemaRef>,
) -> Result<Outcome, MergeError> {
    match (target, patch) {
        (None, None) => Ok(Outcome::Gone),
        // `null` that is written in the object stays.
        (Some(Value::Null), None) => Ok(Outcome::Kept),
        (None | Some(Value::Null), Some(patch)) => {
            if take_map_directive(patch) == Ok(MergeDirective::Delete) {
                return Ok(Outcome::Gone);
            }
            let mut added = patch.clone();
            fields(&mut added, patch, schema)?;
            Ok(Outcome::Replaced(added))
        }
        (Some(_), Some(Value::Null)) => Ok(Outcome::Gone),
        (Some(target), Some(patch)) => match take_map_directive(patch)? {
            MergeDirective::Delete => Ok(Outcome::Gone),
            MergeDirective::Replace => {
                let mut added = patch.clone();
                fields(&mut added, patch, schema)?;
                Ok(Outcome::Replaced(added))
            }
            MergeDirective::Merge => {
                fields(target, patch, schema)?;
                Ok(Outcome::Kept)
            }
        },
        (Some(target), None) => {
            fields(target, &mut Value::Null, schema)?;
            Ok(Outcome::Kept)
        }
    }
}

fn fields(target: &mut Value, patch: &mut Value, schema: Option<&SchemaRef>) -> Result<(), MergeError> {
    let Some(target) = target.as_object_mut() else { return Ok(()) };
    let mut none = Map::new();
    let patch = patch.as_object_mut().unwrap_or(&mut none);
    let mut names: Vec<String> = target.keys().chain(patch.keys()).cloned().collect();
    names.sort();
    names.dedup();
    for name in names {
        let schema = schema.and_then(|schema| schema.field(&name));
        let outcome = walk(target.get_mut(&name), patch.get_mut(&name), schema);
        let outcome = outcome.map_err(|error| error.below(&name))?;
        match outcome {
            Outcome::Kept => {}
            Outcome::Replaced(Value::Null) | Outcome::Gone => _ = target.remove(&name),
            Outcome::Replaced(value) => _ = target.insert(name, value),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn merged(mut object: Value, mut patch: Value) -> Value {
        for value in [&mut object, &mut patch] {
            value["apiVersion"] = json!("apps/v1");
            value["kind"] = json!("Deployment");
        }
        merge(&mut object, &mut patch).unwrap().unwrap();
        object["spec"].take()
    }

    fn pod(containers: &Value) -> Value {
        json!({ "spec": { "template": { "spec": { "containers": containers } } } })
    }

    #[test]
    fn what_a_patch_adds_comes_first_and_what_it_deletes_goes() {
        let object = pod(&json!([
            { "name": "m", "image": "old", "ports": [{ "containerPort": 80, "protocol": "TCP" }, { "containerPort": 81 }],
              "env": [{ "name": "A", "value": "1" }, { "name": "A", "value": "2" }] },
            { "name": "n" }
        ]));
        let patch = pod(&json!([
            { "name": "m", "ports": [{ "containerPort": 82, "protocol": "UDP" }, { "containerPort": 80, "name": "x" }],
              "env": [{ "name": "B", "value": "x" }, { "name": "A", "$patch": "delete" }] },
            { "name": "k" },
            { "name": "n", "$patch": "delete" }
        ]));
        assert_eq!(
            merged(object, patch),
            pod(&json!([
                { "name": "m", "image": "old", "env": [{ "name": "B", "value": "x" }],
                  "ports": [{ "containerPort": 82, "protocol": "UDP" }, { "containerPort": 80, "protocol": "TCP" },
                            { "containerPort": 81 }] },
                { "name": "k" }
            ]))["spec"]
        );
    }

    #[test]
    fn nulls_and_directives() {
        let object = json!({ "spec": { "a": { "b": 1, "c": 2 }, "d": { "e": 1 }, "f": null, "l": [1], "m": { "n": 1 } } });
        let patch = json!({ "spec": { "a": { "b": null }, "d": { "$patch": "replace", "x": 1 }, "l": [2], "z": { "y": null },
                                      "m": { "$patch": "delete" } } });
        assert_eq!(
            merged(object, patch),
            json!({ "a": { "c": 2 }, "d": { "x": 1 }, "f": null, "l": [2], "z": {} })
        );
    }
}
