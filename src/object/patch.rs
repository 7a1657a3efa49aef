//! JSON patch (RFC 6902) and merge patch (RFC 7396), with the error texts of the server.
//! Knows nothing of schemas; `strategic` does.

use crate::depth::{MAX_LEVELS, levels};
use serde_json::{Map, Value};
use std::fmt;

/// Most operations a JSON patch may have.
pub const MAX_OPERATIONS: usize = 10_000;
/// How many bytes its copies may add, as text; as upstream. A few copies of copies would fill any memory.
pub const MAX_COPIED: usize = 3 * 1024 * 1024;

/// An operation of a JSON patch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// Puts a value in.
    Add,
    /// Puts a value in the place of another.
    Replace,
    /// Takes a value out.
    Remove,
    /// Takes a value out and puts it in elsewhere.
    Move,
    /// Puts a value in elsewhere too.
    Copy,
    /// Compares a value.
    Test,
}

impl Operation {
    const ALL: [Operation; 6] = [
        Operation::Add,
        Operation::Replace,
        Operation::Remove,
        Operation::Move,
        Operation::Copy,
        Operation::Test,
    ];

    /// The word in a patch.
    pub fn word(self) -> &'static str {
        match self {
            Operation::Add => "add",
            Operation::Replace => "replace",
            Operation::Remove => "remove",
            Operation::Move => "move",
            Operation::Copy => "copy",
            Operation::Test => "test",
        }
    }
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

/// Why a JSON patch cannot be applied; `Display` is what the server answers. A `path` is a JSON pointer.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PatchError {
    /// The patch is not a list.
    NotAList,
    /// The patch has more operations than [`MAX_OPERATIONS`].
    TooManyOperations {
        /// The number that it has.
        count: usize,
    },
    /// The copies of the patch add more bytes than [`MAX_COPIED`].
    TooMuchCopied {
        /// How many bytes were added up to the copy that is too much.
        bytes: usize,
    },
    /// The patched object would have more levels than [`MAX_LEVELS`].
    TooDeep,
    /// The word of an operation does not exist.
    UnknownOperation {
        /// The word.
        operation: String,
    },
    /// An operation lacks `path` or `from`.
    NoMember {
        /// The operation.
        operation: Operation,
        /// The member that is missing.
        member: &'static str,
    },
    /// There is no map or list at the place above a path.
    NoContainer {
        /// The operation.
        operation: Operation,
        /// The path.
        path: String,
    },
    /// There is no map or list that could take what is moved or copied.
    NoDestination {
        /// The operation.
        operation: Operation,
        /// The path.
        path: String,
    },
    /// A map does not have a field that is to be taken out.
    NoKey {
        /// The operation.
        operation: Operation,
        /// The path.
        path: String,
        /// The name of the field.
        key: String,
    },
    /// A list does not have an item that is to be replaced.
    NoItem {
        /// The path.
        path: String,
    },
    /// The last part of a path into a list is not a number.
    NotAnIndex {
        /// The operation.
        operation: Operation,
        /// The path.
        path: String,
        /// The last part.
        index: String,
    },
    /// A list does not have so many items.
    IndexOutOfRange {
        /// The operation.
        operation: Operation,
        /// The path.
        path: String,
        /// The index.
        index: String,
    },
    /// The value of a `test` is another one.
    TestFailed {
        /// The path.
        path: String,
    },
}

impl fmt::Display for PatchError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PatchError::NotAList => {
                f.write_str("json: cannot unmarshal object into Go value of type jsonpatch.Patch")
            }
            PatchError::TooManyOperations { count } => {
                write!(f, "The allowed maximum operations in a JSON patch is {MAX_OPERATIONS}, got {count}")
            }
            PatchError::TooMuchCopied { bytes } => write!(
                f,
                "Unable to complete the copy, the accumulated size increase of copy is {bytes}, exceeding the limit {MAX_COPIED}"
            ),
            PatchError::TooDeep => write!(f, "the patched object has more than {MAX_LEVELS} levels"),
            PatchError::UnknownOperation { operation } => write!(f, "Unexpected kind: {operation}"),
            PatchError::NoMember { operation, member } => {
                write!(f, "{operation} operation failed to decode {member}: missing value")
            }
            PatchError::NoContainer { operation, path } => {
                // The texts differ from operation to operation.
                let place = match operation {
                    Operation::Add | Operation::Remove => format!("doc is missing path: \"{path}\""),
                    Operation::Replace => format!("doc is missing path: {path}"),
                    Operation::Test => format!("is missing path: {path}"),
                    Operation::Move | Operation::Copy => format!("doc is missing from path: {path}"),
                };
                write!(f, "{operation} operation does not apply: {place}: missing value")
            }
            PatchError::NoDestination { operation, path } => write!(
                f,
                "{operation} operation does not apply: doc is missing destination path: {path}: missing value"
            ),
            PatchError::NoKey { operation, path, key } => {
                let place = if *operation == Operation::Move { key } else { path };
                write!(
                    f,
                    "error in {operation} for path: '{place}': Unable to remove nonexistent key: {key}: missing value"
                )
            }
            PatchError::NoItem { path } => {
                write!(f, "replace operation does not apply: doc is missing key: {path}: missing value")
            }
            PatchError::NotAnIndex { operation, path, index } => {
                write!(f, "error in {operation} for path: '{path}': ")?;
                if *operation == Operation::Add {
                    write!(f, "value was not a proper array index: '{index}': ")?;
                }
                write!(f, "strconv.Atoi: parsing \"{index}\": invalid syntax")
            }
            PatchError::IndexOutOfRange { operation, path, index } => write!(
                f,
                "error in {operation} for path: '{path}': Unable to access invalid index: {index}: invalid index referenced"
            ),
            PatchError::TestFailed { path } => write!(f, "testing value {path} failed: test failed"),
        }
    }
}

impl std::error::Error for PatchError {}

/// Applies the operations one after another. On an error the document is left as it was.
///
/// # Errors
/// The first operation that cannot be applied, or a patch that is no list of operations.
pub fn json_patch(document: &mut Value, operations: &Value) -> Result<(), PatchError> {
    let Some(list) = operations.as_array() else {
        return Err(PatchError::NotAList);
    };
    if list.len() > MAX_OPERATIONS {
        return Err(PatchError::TooManyOperations { count: list.len() });
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
    Err(PatchError::TooDeep)
}

fn step(document: &mut Value, operation: &Value, copied: &mut usize) -> Result<(), PatchError> {
    let word = operation.get("op").and_then(Value::as_str).unwrap_or("unknown");
    let Some(kind) = Operation::ALL.into_iter().find(|known| known.word() == word) else {
        return Err(PatchError::UnknownOperation { operation: word.to_owned() });
    };
    let member = |member: &'static str| {
        let text = operation.get(member).and_then(Value::as_str);
        text.ok_or(PatchError::NoMember { operation: kind, member })
    };
    let value = operation.get("value");
    let given = || value.cloned().unwrap_or(Value::Null);
    match kind {
        Operation::Add | Operation::Replace => {
            let path = member("path")?;
            check_depth(path, value.unwrap_or(&Value::Null))?;
            if kind == Operation::Add {
                add(document, path, given(), kind)
            } else {
                replace(document, path, given())
            }
        }
        Operation::Remove => remove(document, member("path")?, kind).map(drop),
        Operation::Test => test(document, member("path")?, value.unwrap_or(&Value::Null)),
        Operation::Move | Operation::Copy => {
            let (from, path) = (member("from")?, member("path")?);
            let value = if kind == Operation::Move {
                remove(document, from, kind)?
            } else {
                let value = get(document, from, kind)?;
                *copied += size(value);
                if *copied > MAX_COPIED {
                    return Err(PatchError::TooMuchCopied { bytes: *copied });
                }
                value.clone()
            };
            check_depth(path, &value)?;
            add(document, path, value, kind)
        }
    }
}

/// Splits a pointer at its last part and undoes the escapes. `None` for the whole document.
fn split(path: &str) -> Option<(Vec<String>, String)> {
    let mut parts: Vec<String> =
        path.split('/').skip(1).map(|part| part.replace("~1", "/").replace("~0", "~")).collect();
    let last = parts.pop()?;
    Some((parts, last))
}

fn no_container(operation: Operation, path: &str) -> PatchError {
    PatchError::NoContainer { operation, path: path.to_owned() }
}

fn bad_index(operation: Operation, path: &str, index: &str) -> PatchError {
    let (path, index) = (path.to_owned(), index.to_owned());
    if index.parse::<i64>().is_err() {
        return PatchError::NotAnIndex { operation, path, index };
    }
    PatchError::IndexOutOfRange { operation, path, index }
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

fn add(document: &mut Value, path: &str, value: Value, kind: Operation) -> Result<(), PatchError> {
    let Some((parents, last)) = split(path) else {
        *document = value;
        return Ok(());
    };
    let absent = || match kind {
        Operation::Add => no_container(kind, path),
        Operation::Replace | Operation::Remove | Operation::Move | Operation::Copy | Operation::Test => {
            PatchError::NoDestination { operation: kind, path: path.to_owned() }
        }
    };
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
            return Err(no_container(kind, path));
        }
    }
    Ok(())
}

fn replace(document: &mut Value, path: &str, value: Value) -> Result<(), PatchError> {
    let Some((parents, last)) = split(path) else {
        *document = value;
        return Ok(());
    };
    match container(document, &parents).ok_or_else(|| no_container(Operation::Replace, path))? {
        // The server's library adds a field that is not there.
        Value::Object(map) => _ = map.insert(last, value),
        Value::Array(list) => match position(&last, list.len()).and_then(|i| list.get_mut(i)) {
            Some(place) => *place = value,
            None => return Err(PatchError::NoItem { path: path.to_owned() }),
        },
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {
            return Err(no_container(Operation::Replace, path));
        }
    }
    Ok(())
}

fn remove(document: &mut Value, path: &str, kind: Operation) -> Result<Value, PatchError> {
    let Some((parents, last)) = split(path) else { return Ok(std::mem::take(document)) };
    match container(document, &parents).ok_or_else(|| no_container(kind, path))? {
        Value::Object(map) => map.remove(&last).ok_or_else(|| PatchError::NoKey {
            operation: kind,
            path: path.to_owned(),
            key: last,
        }),
        Value::Array(list) => match position(&last, list.len()).filter(|index| *index < list.len()) {
            Some(index) => Ok(list.remove(index)),
            None => Err(bad_index(kind, path, &last)),
        },
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Err(no_container(kind, path)),
    }
}

/// The value at a path; `null` where a field is not there, as the server's library reads it.
fn get<'a>(document: &'a Value, path: &str, kind: Operation) -> Result<&'a Value, PatchError> {
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
        _ => Err(no_container(kind, path)),
    }
}

fn test(document: &Value, path: &str, expected: &Value) -> Result<(), PatchError> {
    if crate::schema::same(get(document, path, Operation::Test)?, expected) {
        return Ok(());
    }
    Err(PatchError::TestFailed { path: path.to_owned() })
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
    use expect_test::expect;
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
        assert!(matches!(json_patch(&mut json!({"a": 1}), &many), Err(PatchError::TooManyOperations { .. })));
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
        assert!(matches!(told, Err(PatchError::TooMuchCopied { .. })), "{told:?}");
        assert_eq!(document, json!({"a": {"b": "text"}}), "it is left as it was");
        // Into its own deepest place, twice as deep each time.
        let deeper: Vec<Value> = (0..14).map(|n| copy("/a".repeat((1 << n) + 1))).collect();
        let mut document = json!({"a": {}});
        let told = json_patch(&mut document, &Value::Array(deeper)).unwrap_err().to_string();
        expect!["the patched object has more than 100 levels"].assert_eq(&told);
    }
}
