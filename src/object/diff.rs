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

/// All differences from `old` to `new`, in path order. Whole subtrees that were added or removed are one
/// change.
pub fn diff(old: &Value, new: &Value) -> Vec<Change> {
    let mut changes = Vec::new();
    walk(&Path::root(), old, new, &mut changes);
    changes
}

/// Lists whose items are the same and stand in another order, each as one change with both lists whole.
/// `diff` tells items apart by their keys, and says nothing of these.
pub fn reorderings(old: &Value, new: &Value) -> Vec<Change> {
    let mut changes = Vec::new();
    seek_order(&Path::root(), old, new, &mut changes);
    changes
}

impl Change {
    /// How many items a list has, where all that differs is their order.
    pub fn reordered(&self) -> Option<usize> {
        let (Value::Array(old), Value::Array(new)) = (self.old.as_ref()?, self.new.as_ref()?) else {
            return None;
        };
        (old != new && same_items(old, new)).then_some(new.len())
    }
}

/// Returns true if two lists have the same items, in whatever order.
fn same_items(a: &[Value], b: &[Value]) -> bool {
    let sorted = |list: &[Value]| {
        let mut texts: Vec<String> = list.iter().map(Value::to_string).collect();
        texts.sort_unstable();
        texts
    };
    a.len() == b.len() && sorted(a) == sorted(b)
}

fn seek_order(path: &Path, old: &Value, new: &Value, out: &mut Vec<Change>) {
    match (old, new) {
        _ if old == new => {}
        (Value::Object(a), Value::Object(b)) => {
            for (key, old) in a {
                if let Some(new) = b.get(key).filter(|new| *new != old) {
                    seek_order(&path.field(key), old, new, out);
                }
            }
        }
        (Value::Array(a), Value::Array(b)) if same_items(a, b) => {
            out.push(Change { path: path.clone(), old: Some(old.clone()), new: Some(new.clone()) });
        }
        (Value::Array(a), Value::Array(b)) => {
            let Some(keys) = shared_keys(a, b) else { return };
            for old in a {
                let same = |item: &&Value| identity(item, keys) == identity(old, keys);
                if let Some(new) = b.iter().find(same) {
                    let values = keys.iter().map(|key| ((*key).to_owned(), old[*key].clone()));
                    seek_order(&path.with(Segment::Key(values.collect())), old, new, out);
                }
            }
        }
        _ => {}
    }
}

fn walk(path: &Path, old: &Value, new: &Value, out: &mut Vec<Change>) {
    match (old, new) {
        (Value::Object(a), Value::Object(b)) => walk_objects(path, a, b, out),
        (Value::Array(a), Value::Array(b)) => match shared_keys(a, b) {
            Some(keys) => walk_keyed(path, keys, a, b, out),
            None => walk_positions(path, a, b, out),
        },
        _ if old == new => {}
        _ => out.push(Change { path: path.clone(), old: Some(old.clone()), new: Some(new.clone()) }),
    }
}

fn walk_objects(path: &Path, a: &Map<String, Value>, b: &Map<String, Value>, out: &mut Vec<Change>) {
    for (key, old) in a {
        match b.get(key) {
            // Most of two versions is the same: to see that copies nothing, while a path does.
            Some(new) if old == new => {}
            Some(new) => walk(&path.field(key), old, new, out),
            None => out.push(Change { path: path.field(key), old: Some(old.clone()), new: None }),
        }
    }
    for (key, new) in b.iter().filter(|(key, _)| !a.contains_key(*key)) {
        out.push(Change { path: path.field(key), old: None, new: Some(new.clone()) });
    }
}

/// The fields by which the items of both lists can be told apart, if there are such.
fn shared_keys(a: &[Value], b: &[Value]) -> Option<&'static [&'static str]> {
    const KEYS: [&[&str]; 14] = [
        &["uid"],
        &["name"],
        &["type"],
        &["key"],
        &["containerPort"],
        &["containerPort", "protocol"],
        &["port"],
        &["port", "protocol"],
        &["mountPath"],
        &["devicePath"],
        &["ip"],
        &["topologyKey", "whenUnsatisfiable"],
        &["kind", "name"],
        &["path"],
    ];
    let unique = |list: &[Value], keys: &[&str]| {
        let mut seen = Vec::with_capacity(list.len());
        list.iter().all(|item| {
            let known = keys.iter().all(|key| item.get(key).is_some());
            let identity = identity(item, keys);
            let fresh = known && !seen.contains(&identity);
            seen.push(identity);
            fresh
        })
    };
    if a.is_empty() && b.is_empty() {
        return None;
    }
    KEYS.into_iter().find(|keys| unique(a, keys) && unique(b, keys))
}

fn identity<'a>(item: &'a Value, keys: &[&str]) -> Vec<&'a Value> {
    keys.iter().map(|key| &item[*key]).collect()
}

fn walk_keyed(path: &Path, keys: &[&str], a: &[Value], b: &[Value], out: &mut Vec<Change>) {
    let place = |item: &Value| {
        let values = keys.iter().map(|key| ((*key).to_owned(), item[*key].clone()));
        path.with(Segment::Key(values.collect()))
    };
    for old in a {
        match b.iter().find(|item| identity(item, keys) == identity(old, keys)) {
            Some(new) if old == new => {}
            Some(new) => walk(&place(old), old, new, out),
            None => out.push(Change { path: place(old), old: Some(old.clone()), new: None }),
        }
    }
    for new in b.iter().filter(|item| !a.iter().any(|old| identity(old, keys) == identity(item, keys))) {
        out.push(Change { path: place(new), old: None, new: Some(new.clone()) });
    }
}

fn walk_positions(path: &Path, a: &[Value], b: &[Value], out: &mut Vec<Change>) {
    for (i, old) in a.iter().enumerate() {
        match b.get(i) {
            Some(new) if old == new => {}
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
    fn a_list_with_the_same_items_in_another_order_is_one_reordering() {
        let env = |names: &[&str]| {
            let items: Vec<Value> = names.iter().map(|name| json!({"name": name, "value": 1})).collect();
            json!({"spec": {"containers": [{"name": "c", "env": items}], "args": names}})
        };
        let (old, new) = (env(&["A", "B", "C"]), env(&["C", "A", "B"]));
        let mut found: Vec<(String, Option<usize>)> = reorderings(&old, &new)
            .iter()
            .map(|change| (change.path.to_string(), change.reordered()))
            .collect();
        found.sort();
        let list = ".spec.containers[name=c].env".to_owned();
        assert_eq!(found, [(".spec.args".to_owned(), Some(3)), (list, Some(3))]);
        assert!(reorderings(&old, &old).is_empty());
        assert!(reorderings(&old, &env(&["A", "B"])).is_empty());
        assert_eq!(diff(&json!([1]), &json!([2]))[0].reordered(), None);
    }

    #[test]
    fn ports_that_differ_in_protocol_only_are_two() {
        let port =
            |protocol: &str, target: u32| json!({"port": 53, "protocol": protocol, "targetPort": target});
        let old = json!({"ports": [port("TCP", 1), port("UDP", 1)]});
        let new = json!({"ports": [port("UDP", 2), port("TCP", 1)]});
        assert_eq!(paths(&old, &new), [".ports[port=53,protocol=UDP].targetPort"]);
    }

    #[test]
    fn scalars_fields_and_positions() {
        assert_eq!(paths(&json!({"a": 1, "b": [1, 2]}), &json!({"a": 2, "b": [1]})), [".a", ".b[1]"]);
        assert!(paths(&json!({"a": [1]}), &json!({"a": [1]})).is_empty());
    }
}
