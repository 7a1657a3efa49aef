//! Structural differences between two JSON values, as a flat list of changed paths.
//! Lists of objects are matched by the key their items share (`type`, `name`, ...), else by position.

use crate::path::{Path, Segment};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// One changed place. `old` is `None` where something was added, `new` where it was removed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Change {
    /// Where.
    pub path: Path,
    /// The value before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub old: Option<Value>,
    /// The value after.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub new: Option<Value>,
}

/// All differences from `old` to `new`, in path order. Whole subtrees that were added or removed are one change.
pub fn diff(old: &Value, new: &Value) -> Vec<Change> {
    let mut changes = Vec::new();
    walk(&Path::root(), old, new, &mut changes);
    changes
}

fn walk(path: &Path, old: &Value, new: &Value, out: &mut Vec<Change>) {
    match (old, new) {
        (Value::Object(a), Value::Object(b)) => walk_objects(path, a, b, out),
        (Value::Array(a), Value::Array(b)) => match shared_key(a, b) {
            Some(key) => walk_keyed(path, key, a, b, out),
            None => walk_positions(path, a, b, out),
        },
        _ if old == new => {}
        _ => out.push(Change { path: path.clone(), old: Some(old.clone()), new: Some(new.clone()) }),
    }
}

fn walk_objects(path: &Path, a: &Map<String, Value>, b: &Map<String, Value>, out: &mut Vec<Change>) {
    for (key, old) in a {
        match b.get(key) {
            Some(new) => walk(&path.field(key), old, new, out),
            None => out.push(Change { path: path.field(key), old: Some(old.clone()), new: None }),
        }
    }
    for (key, new) in b.iter().filter(|(key, _)| !a.contains_key(*key)) {
        out.push(Change { path: path.field(key), old: None, new: Some(new.clone()) });
    }
}

/// The field by which the items of both lists can be told apart, if there is one.
fn shared_key(a: &[Value], b: &[Value]) -> Option<&'static str> {
    const KEYS: [&str; 7] = ["uid", "name", "type", "key", "containerPort", "port", "ip"];
    KEYS.into_iter().find(|key| {
        let unique = |list: &[Value]| {
            let mut seen = Vec::with_capacity(list.len());
            list.iter().all(|item| match item.get(key) {
                Some(value) if !seen.contains(&value) => {
                    seen.push(value);
                    true
                }
                _ => false,
            })
        };
        !(a.is_empty() && b.is_empty()) && unique(a) && unique(b)
    })
}

fn walk_keyed(path: &Path, key: &str, a: &[Value], b: &[Value], out: &mut Vec<Change>) {
    let place = |item: &Value| path.with(Segment::Key(vec![(key.to_owned(), item[key].clone())]));
    for old in a {
        match b.iter().find(|item| item[key] == old[key]) {
            Some(new) => walk(&place(old), old, new, out),
            None => out.push(Change { path: place(old), old: Some(old.clone()), new: None }),
        }
    }
    for new in b.iter().filter(|item| !a.iter().any(|old| old[key] == item[key])) {
        out.push(Change { path: place(new), old: None, new: Some(new.clone()) });
    }
}

fn walk_positions(path: &Path, a: &[Value], b: &[Value], out: &mut Vec<Change>) {
    for (i, old) in a.iter().enumerate() {
        match b.get(i) {
            Some(new) => walk(&path.index(i), old, new, out),
            None => out.push(Change { path: path.index(i), old: Some(old.clone()), new: None }),
        }
    }
    for (i, new) in b.iter().enumerate().skip(a.len()) {
        out.push(Change { path: path.index(i), old: None, new: Some(new.clone()) });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn paths(old: &Value, new: &Value) -> Vec<String> {
        diff(old, new).iter().map(|change| change.path.to_string()).collect()
    }

    #[test]
    fn conditions_are_matched_by_type() {
        let old = json!({"status": {"conditions": [{"type": "Initialized", "status": "True"}]}});
        let new = json!({"status": {"conditions": [
            {"type": "Deployed", "status": "True"}, {"type": "Initialized", "status": "True"}]}});
        assert_eq!(paths(&old, &new), [".status.conditions[type=Deployed]"]);
    }

    #[test]
    fn scalars_fields_and_positions() {
        assert_eq!(paths(&json!({"a": 1, "b": [1, 2]}), &json!({"a": 2, "b": [1]})), [".a", ".b[1]"]);
        assert!(paths(&json!({"a": [1]}), &json!({"a": [1]})).is_empty());
    }
}
