//! JSON patch (RFC 6902) and merge patch (RFC 7396), with the error texts of the server.
//! Knows nothing of schemas; `strategic` does.

use crate::depth::{MAX_LEVELS, levels};
use serde_json::{Map, Value};
use std::fmt;

/// Most operations a JSON patch may have.
pub const MAX_OPERATIONS: usize = 10_000;
/// How many bytes its copies may add, as text; as upstream. A few copies of copies would fill any memory.
pub const MAX_COPIED: usize = 3 * 1024 * 1024;

/// Why a patch cannot be applied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PatchError {
    /// The patch itself is malformed.
    Malformed(String),
    /// The patch is well formed but does not fit the object, or a test failed.
    Unprocessable(String),
    /// It has more operations than are allowed.
    TooLarge(String),
}

impl fmt::Display for PatchError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PatchError::Malformed(text) | PatchError::Unprocessable(text) | PatchError::TooLarge(text) => {
                f.write_str(text)
            }
        }
    }
}

impl std::error::Error for PatchError {}

impl PatchError {
    /// Whether nothing is wrong but that a `test` of the patch is not met.
    pub fn is_failed_test(&self) -> bool {
        matches!(self, PatchError::Unprocessable(text) if text.ends_with("test failed"))
    }
}

fn missing(what: &str) -> PatchError {
    PatchError::Unprocessable(format!("{what}: missing value"))
}

/// Applies the operations one after another. On an error the document is left as it was.
pub fn json_patch(document: &mut Value, operations: &Value) -> Result<(), PatchError> {
    let Some(list) = operations.as_array() else {
        let text = "json: cannot unmarshal object into Go value of type jsonpatch.Patch";
        return Err(PatchError::Malformed(text.to_owned()));
    };
    if list.len() > MAX_OPERATIONS {
        return Err(PatchError::TooLarge(format!(
            "The allowed maximum operations in a JSON patch is {MAX_OPERATIONS}, got {}",
            list.len()
        )));
    }
    let mut result = document.clone();
    let mut copied = 0;
    for operation in list {
        step(&mut result, operation, &mut copied)?;
    }
    *document = result;
    Ok(())
}

/// About how long a value is as JSON text.
pub fn size(value: &Value) -> usize {
    match value {
        Value::Array(list) => 2 + list.iter().map(|item| 1 + size(item)).sum::<usize>(),
        Value::Object(map) => 2 + map.iter().map(|(key, item)| 4 + key.len() + size(item)).sum::<usize>(),
        Value::String(text) => 2 + text.len(),
        Value::Null | Value::Bool(_) | Value::Number(_) => 4,
    }
}

/// Refuses to put a value where it would be too deep.
fn check_depth(path: &str, value: &Value) -> Result<(), PatchError> {
    if path.matches('/').count() + levels(value) <= MAX_LEVELS {
        return Ok(());
    }
    Err(PatchError::Unprocessable(format!("the patched object has more than {MAX_LEVELS} levels")))
}

fn step(document: &mut Value, operation: &Value, copied: &mut usize) -> Result<(), PatchError> {
    let kind = operation.get("op").and_then(Value::as_str).unwrap_or("unknown");
    let text = |key: &str| operation.get(key).and_then(Value::as_str);
    match kind {
        "add" | "replace" | "remove" | "test" => {
            let path =
                text("path").ok_or_else(|| missing(&format!("{kind} operation failed to decode path")))?;
            let value = operation.get("value");
            if matches!(kind, "add" | "replace") {
                check_depth(path, value.unwrap_or(&Value::Null))?;
            }
            match kind {
                "add" => add(document, path, value.cloned().unwrap_or(Value::Null)),
                "replace" => replace(document, path, value.cloned().unwrap_or(Value::Null)),
                "remove" => remove(document, path, "remove").map(|_| ()),
                _ => test(document, path, value.unwrap_or(&Value::Null)),
            }
        }
        "move" | "copy" => {
            let from =
                text("from").ok_or_else(|| missing(&format!("{kind} operation failed to decode from")))?;
            let path =
                text("path").ok_or_else(|| missing(&format!("{kind} operation failed to decode path")))?;
            let value = if kind == "move" {
                remove(document, from, "move")?
            } else {
                let value = get(document, from, "copy")?;
                *copied += size(value);
                if *copied > MAX_COPIED {
                    return Err(PatchError::TooLarge(format!(
                        "Unable to complete the copy, the accumulated size increase of copy is {copied}, exceeding the limit {MAX_COPIED}"
                    )));
                }
                value.clone()
            };
            check_depth(path, &value)?;
            add_named(document, path, value, kind)
        }
        other => Err(PatchError::Malformed(format!("Unexpected kind: {other}"))),
    }
}

/// Splits a pointer at its last part and undoes the escapes. `None` for the whole document.
fn split(path: &str) -> Option<(Vec<String>, String)> {
    let mut parts: Vec<String> =
        path.split('/').skip(1).map(|part| part.replace("~1", "/").replace("~0", "~")).collect();
    let last = parts.pop()?;
    Some((parts, last))
}

/// The container of a path is missing. (The texts differ from operation to operation.)
fn no_path(kind: &str, path: &str) -> PatchError {
    let place = match kind {
        "add" | "remove" => format!("{kind} operation does not apply: doc is missing path: \"{path}\""),
        "replace" => format!("replace operation does not apply: doc is missing path: {path}"),
        "test" => format!("test operation does not apply: is missing path: {path}"),
        _ => format!("{kind} operation does not apply: doc is missing from path: {path}"),
    };
    PatchError::Unprocessable(format!("{place}: missing value"))
}

fn no_destination(kind: &str, path: &str) -> PatchError {
    let place = format!("{kind} operation does not apply: doc is missing destination path: {path}");
    PatchError::Unprocessable(format!("{place}: missing value"))
}

fn no_key(kind: &str, path: &str, key: &str) -> PatchError {
    let place = if kind == "move" { key } else { path };
    let cause = format!("Unable to remove nonexistent key: {key}: missing value");
    PatchError::Unprocessable(format!("error in {kind} for path: '{place}': {cause}"))
}

fn bad_index(kind: &str, path: &str, index: &str) -> PatchError {
    if index.parse::<i64>().is_err() {
        let mut cause = format!("strconv.Atoi: parsing \"{index}\": invalid syntax");
        if kind == "add" {
            cause = format!("value was not a proper array index: '{index}': {cause}");
        }
        return PatchError::Unprocessable(format!("error in {kind} for path: '{path}': {cause}"));
    }
    PatchError::Unprocessable(format!(
        "error in {kind} for path: '{path}': Unable to access invalid index: {index}: invalid index referenced"
    ))
}

fn container<'a>(document: &'a mut Value, parents: &[String]) -> Option<&'a mut Value> {
    let found = parents.iter().try_fold(document, |at, part| match at {
        Value::Object(map) => map.get_mut(part),
        Value::Array(list) => position(part, list.len()).and_then(|i| list.get_mut(i)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => None,
    });
    found.filter(|found| found.is_object() || found.is_array())
}

/// A list position; negative ones count from the end, as the server's library allows.
fn position(part: &str, length: usize) -> Option<usize> {
    match part.strip_prefix('-') {
        Some(back) => length.checked_sub(back.parse().ok().filter(|n| *n > 0)?),
        None => part.parse().ok(),
    }
}

fn add(document: &mut Value, path: &str, value: Value) -> Result<(), PatchError> {
    add_named(document, path, value, "add")
}

fn add_named(document: &mut Value, path: &str, value: Value, kind: &str) -> Result<(), PatchError> {
    let Some((parents, last)) = split(path) else {
        *document = value;
        return Ok(());
    };
    let absent = || if kind == "add" { no_path(kind, path) } else { no_destination(kind, path) };
    match container(document, &parents).ok_or_else(absent)? {
        Value::Object(map) => _ = map.insert(last, value),
        Value::Array(list) if last == "-" => list.push(value),
        Value::Array(list) => {
            // One past the end is a position too.
            let index = match last.strip_prefix('-') {
                Some(_) => position(&last, list.len() + 1),
                None => position(&last, list.len()),
            };
            match index.filter(|index| *index <= list.len()) {
                Some(index) => list.insert(index, value),
                None => return Err(bad_index(kind, path, &last)),
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {
            return Err(no_path(kind, path));
        }
    }
    Ok(())
}

fn replace(document: &mut Value, path: &str, value: Value) -> Result<(), PatchError> {
    let Some((parents, last)) = split(path) else {
        *document = value;
        return Ok(());
    };
    match container(document, &parents).ok_or_else(|| no_path("replace", path))? {
        // The server's library adds a field that is not there.
        Value::Object(map) => _ = map.insert(last, value),
        Value::Array(list) => match position(&last, list.len()).and_then(|i| list.get_mut(i)) {
            Some(place) => *place = value,
            None => {
                let text =
                    format!("replace operation does not apply: doc is missing key: {path}: missing value");
                return Err(PatchError::Unprocessable(text));
            }
        },
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {
            return Err(no_path("replace", path));
        }
    }
    Ok(())
}

fn remove(document: &mut Value, path: &str, kind: &str) -> Result<Value, PatchError> {
    let Some((parents, last)) = split(path) else { return Ok(std::mem::take(document)) };
    match container(document, &parents).ok_or_else(|| no_path(kind, path))? {
        Value::Object(map) => map.remove(&last).ok_or_else(|| no_key(kind, path, &last)),
        Value::Array(list) => match position(&last, list.len()).filter(|index| *index < list.len()) {
            Some(index) => Ok(list.remove(index)),
            None => Err(bad_index(kind, path, &last)),
        },
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Err(no_path(kind, path)),
    }
}

/// What stands at a path; `null` where a field is not there, as the server's library reads it.
fn get<'a>(document: &'a Value, path: &str, kind: &str) -> Result<&'a Value, PatchError> {
    let Some((parents, last)) = split(path) else { return Ok(document) };
    let step = |at: &'a Value, part: &String| match at {
        Value::Object(map) => map.get(part),
        Value::Array(list) => position(part, list.len()).and_then(|i| list.get(i)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => None,
    };
    let parent = parents.iter().try_fold(document, step);
    match parent {
        Some(Value::Object(map)) => Ok(map.get(&last).unwrap_or(&Value::Null)),
        Some(list @ Value::Array(_)) => step(list, &last).ok_or_else(|| bad_index(kind, path, &last)),
        _ => Err(no_path(kind, path)),
    }
}

fn test(document: &Value, path: &str, expected: &Value) -> Result<(), PatchError> {
    if crate::schema::same(get(document, path, "test")?, expected) {
        return Ok(());
    }
    Err(PatchError::Unprocessable(format!("testing value {path} failed: test failed")))
}

/// Merges `patch` into `target`: objects field by field, `null` removes, everything else replaces.
pub fn merge_patch(target: &mut Value, patch: &Value) {
    let Value::Object(fields) = patch else {
        *target = patch.clone();
        return;
    };
    if !target.is_object() {
        *target = Value::Object(Map::new());
    }
    let Value::Object(map) = target else { return };
    for (key, value) in fields {
        if value.is_null() {
            map.remove(key);
        } else {
            merge_patch(map.entry(key.clone()).or_insert(Value::Null), value);
        }
    }
}

/// The merge patch that turns `from` into `to`. (A `null` inside `to` cannot be expressed.)
pub fn create_merge_patch(from: &Value, to: &Value) -> Value {
    let (Value::Object(old), Value::Object(new)) = (from, to) else { return to.clone() };
    let mut patch = Map::new();
    for key in old.keys().filter(|key| !new.contains_key(*key)) {
        patch.insert(key.clone(), Value::Null);
    }
    for (key, value) in new {
        match old.get(key) {
            Some(before) if before == value => {}
            Some(before) if before.is_object() && value.is_object() => {
                patch.insert(key.clone(), create_merge_patch(before, value));
            }
            _ => _ = patch.insert(key.clone(), value.clone()),
        }
    }
    Value::Object(patch)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn operations() {
        let cases = [
            (json!({"a": 1}), json!([{"op": "add", "path": "/b", "value": 2}]), json!({"a": 1, "b": 2})),
            (
                json!({"a": [1, 3]}),
                json!([{"op": "add", "path": "/a/1", "value": 2}]),
                json!({"a": [1, 2, 3]}),
            ),
            (json!({"a": [1]}), json!([{"op": "add", "path": "/a/-", "value": 2}]), json!({"a": [1, 2]})),
            (json!({"a": [1]}), json!([{"op": "add", "path": "/a/1", "value": 2}]), json!({"a": [1, 2]})),
            (json!({"a": {"b/c": 1}}), json!([{"op": "remove", "path": "/a/b~1c"}]), json!({"a": {}})),
            (json!({"a~b": 1}), json!([{"op": "replace", "path": "/a~0b", "value": 2}]), json!({"a~b": 2})),
            (json!({"a": 1}), json!([{"op": "move", "from": "/a", "path": "/b"}]), json!({"b": 1})),
            (
                json!({"a": [1]}),
                json!([{"op": "copy", "from": "/a/0", "path": "/b"}]),
                json!({"a": [1], "b": 1}),
            ),
            (json!({"a": 1}), json!([{"op": "test", "path": "/a", "value": 1.0}]), json!({"a": 1})),
            (json!({"a": 1}), json!([{"op": "test", "path": "/b", "value": null}]), json!({"a": 1})),
            (json!({"a": [1, 2]}), json!([{"op": "remove", "path": "/a/-1"}]), json!({"a": [1]})),
            (json!({"a": 1}), json!([{"op": "replace", "path": "/b", "value": 2}]), json!({"a": 1, "b": 2})),
            (
                json!({"a": 1}),
                json!([{"op": "copy", "from": "/x", "path": "/b"}]),
                json!({"a": 1, "b": null}),
            ),
            (json!({"a": 1}), json!([{"op": "replace", "path": "", "value": {"z": 1}}]), json!({"z": 1})),
        ];
        for (mut document, patch, expected) in cases {
            json_patch(&mut document, &patch).unwrap();
            assert_eq!(document, expected, "{patch}");
        }
    }

    #[test]
    fn refusals_leave_the_document_alone() {
        let cases = [
            (json!([{"op": "test", "path": "/a", "value": 2}]), "testing value /a failed: test failed"),
            (
                json!([{"op": "remove", "path": "/x"}]),
                "error in remove for path: '/x': Unable to remove nonexistent key: x: missing value",
            ),
            (
                json!([{"op": "add", "path": "/x/y", "value": 1}]),
                "add operation does not apply: doc is missing path: \"/x/y\": missing value",
            ),
            (json!([{"op": "jump", "path": "/x"}]), "Unexpected kind: jump"),
            (
                json!([{"op": "replace", "path": "/x/y", "value": 1}]),
                "replace operation does not apply: doc is missing path: /x/y: missing value",
            ),
            (
                json!([{"op": "move", "from": "/x", "path": "/z"}]),
                "error in move for path: 'x': Unable to remove nonexistent key: x: missing value",
            ),
            (json!([{"op": "add", "value": 1}]), "add operation failed to decode path: missing value"),
            (
                json!([{"op": "add", "path": "/l", "value": [1]}, {"op": "replace", "path": "/l/9", "value": 1}]),
                "replace operation does not apply: doc is missing key: /l/9: missing value",
            ),
            (
                json!([{"op": "add", "path": "/l", "value": [1]}, {"op": "add", "path": "/l/x", "value": 1}]),
                "error in add for path: '/l/x': value was not a proper array index: 'x': strconv.Atoi: parsing \"x\": invalid syntax",
            ),
            (
                json!([{"op": "test", "path": "/x/y", "value": 1}]),
                "test operation does not apply: is missing path: /x/y: missing value",
            ),
            (
                json!([{"op": "move", "from": "/x/y", "path": "/z"}]),
                "move operation does not apply: doc is missing from path: /x/y: missing value",
            ),
            (
                json!([{"op": "copy", "from": "/a", "path": "/x/y"}]),
                "copy operation does not apply: doc is missing destination path: /x/y: missing value",
            ),
            (
                json!([{"op": "add", "path": "/l", "value": [1]}, {"op": "add", "path": "/l/5", "value": 1}]),
                "error in add for path: '/l/5': Unable to access invalid index: 5: invalid index referenced",
            ),
            (
                json!([{"op": "add", "path": "/l", "value": [1]}, {"op": "remove", "path": "/l/x"}]),
                "error in remove for path: '/l/x': strconv.Atoi: parsing \"x\": invalid syntax",
            ),
        ];
        for (patch, text) in cases {
            let mut document = json!({"a": 1});
            let with_change = {
                let mut all = vec![json!({"op": "add", "path": "/new", "value": 1})];
                all.extend(patch.as_array().unwrap().clone());
                Value::Array(all)
            };
            assert_eq!(json_patch(&mut document, &with_change).unwrap_err().to_string(), text);
            assert_eq!(document, json!({"a": 1}));
        }
        let many = Value::Array(vec![json!({"op": "test", "path": "/a", "value": 1}); MAX_OPERATIONS + 1]);
        assert!(matches!(json_patch(&mut json!({"a": 1}), &many), Err(PatchError::TooLarge(_))));
    }

    #[test]
    fn merging() {
        let cases = [
            (json!({"a": "b"}), json!({"a": "c"}), json!({"a": "c"})),
            (json!({"a": "b"}), json!({"a": null}), json!({})),
            (json!({"a": ["b"]}), json!({"a": "c"}), json!({"a": "c"})),
            (json!({"a": {"b": "c"}}), json!({"a": {"b": "d", "c": null}}), json!({"a": {"b": "d"}})),
            (json!({}), json!({"a": {"bb": {"ccc": null}}}), json!({"a": {"bb": {}}})),
            (json!({"a": "foo"}), json!(["c"]), json!(["c"])),
            (json!({"e": null}), json!({"a": 1}), json!({"e": null, "a": 1})),
        ];
        for (mut target, patch, expected) in cases {
            merge_patch(&mut target, &patch);
            assert_eq!(target, expected, "{patch}");
        }
    }

    #[test]
    fn a_created_patch_leads_from_one_to_the_other() {
        let cases = [
            (json!({"a": 1, "b": {"c": 1, "d": [1]}}), json!({"b": {"c": 2, "e": {}}})),
            (json!({}), json!({"a": {"b": {}}})),
            (json!({"a": [1, 2]}), json!({"a": [2]})),
            (json!({"a": {"x": 1}}), json!({"a": 5})),
        ];
        for (from, to) in cases {
            let mut value = from.clone();
            merge_patch(&mut value, &create_merge_patch(&from, &to));
            assert_eq!(value, to);
        }
        assert_eq!(create_merge_patch(&json!({"a": {"b": 1}}), &json!({"a": {"b": 1}})), json!({}));
    }

    #[test]
    fn copies_of_copies_are_bounded_in_size_and_in_depth() {
        let copy = |path: String| json!({"op": "copy", "from": "/a", "path": path});
        let wider: Vec<Value> = (0..40).map(|n| copy(format!("/a/x{n}"))).collect();
        let mut document = json!({"a": {"b": "text"}});
        let told = json_patch(&mut document, &Value::Array(wider));
        assert!(matches!(told, Err(PatchError::TooLarge(_))), "{told:?}");
        assert_eq!(document, json!({"a": {"b": "text"}}), "it is left as it was");
        // Into its own deepest place, twice as deep each time.
        let deeper: Vec<Value> = (0..14).map(|n| copy("/a".repeat((1 << n) + 1))).collect();
        let mut document = json!({"a": {}});
        let told = json_patch(&mut document, &Value::Array(deeper)).unwrap_err().to_string();
        assert!(told.contains("more than 100 levels"), "{told}");
    }
}
