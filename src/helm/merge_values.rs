//! Merging without a chart, and reading by dotted path.

use serde_json::{Map, Value};

/// Puts `over` on top of `base`: maps merge, anything else replaces (`-f a -f b`).
pub fn merge(base: &mut Value, over: Value) {
    match (base, over) {
        (Value::Object(base), Value::Object(over)) => {
            for (key, value) in over {
                match base.get_mut(&key) {
                    Some(below) if below.is_object() && value.is_object() => merge(below, value),
                    _ => {
                        base.insert(key, value);
                    }
                }
            }
        }
        (base, over) => *base = over,
    }
}

/// Fills what `dst` lacks from `src`; with `keep_nulls`, a null in `dst` hides the source's value and stays.
pub fn merge_tables(dst: &mut Map<String, Value>, src: Map<String, Value>, keep_nulls: bool) {
    for (key, value) in src {
        match dst.get_mut(&key) {
            None => {
                dst.insert(key, value);
            }
            Some(Value::Null) if !keep_nulls => {
                dst.remove(&key);
            }
            Some(Value::Object(below)) => {
                if let Value::Object(value) = value {
                    merge_tables(below, value, keep_nulls);
                }
            }
            Some(_) => {}
        }
    }
}

/// The table at a dotted path.
pub fn table<'v>(values: &'v Value, path: &str) -> Option<&'v Map<String, Value>> {
    path.split('.').try_fold(values.as_object()?, |at, key| at.get(key)?.as_object())
}

/// The value at a dotted path, if it is there and no table.
pub fn path_value<'v>(values: &'v Value, path: &str) -> Option<&'v Value> {
    let found = match path.rsplit_once('.') {
        None => values.get(path)?,
        Some((head, key)) => table(values, head)?.get(key)?,
    };
    (!found.is_object()).then_some(found)
}
