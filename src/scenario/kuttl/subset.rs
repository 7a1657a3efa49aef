//! Compares an object with an assert: maps are partial, lists have the same length, all else is equal.

use serde_json::Value;

/// Where `actual` has something else than `expected`, as `path: wanted, is` lines; empty where it has all of
/// it. Values are left out where `secret`.
pub(super) fn differences(expected: &Value, actual: &Value, secret: bool) -> Vec<String> {
    let mut found = Vec::new();
    compare(expected, actual, "", secret, &mut found);
    found
}

fn compare(expected: &Value, actual: &Value, path: &str, secret: bool, found: &mut Vec<String>) {
    match (expected, actual) {
        (Value::Object(wanted), Value::Object(there)) => {
            for (key, value) in wanted {
                let below = format!("{path}.{key}");
                match there.get(key) {
                    Some(actual) => compare(value, actual, &below, secret, found),
                    None => found.push(format!("{below}: wanted {}, is not there", shown(value, secret))),
                }
            }
        }
        (Value::Array(wanted), Value::Array(there)) if wanted.len() == there.len() => {
            for (at, (value, actual)) in wanted.iter().zip(there).enumerate() {
                compare(value, actual, &format!("{path}[{at}]"), secret, found);
            }
        }
        (Value::Array(wanted), Value::Array(there)) => {
            found.push(format!("{path}: wanted {} items, has {}", wanted.len(), there.len()));
        }
        (Value::Number(wanted), Value::Number(there)) if wanted.as_f64() == there.as_f64() => {}
        (wanted, there) if wanted == there => {}
        (wanted, there) => {
            found.push(format!("{path}: wanted {}, is {}", shown(wanted, secret), shown(there, secret)));
        }
    }
}

/// A value in short.
fn shown(value: &Value, secret: bool) -> String {
    const MOST: usize = 120;
    if secret {
        return "(not shown)".to_owned();
    }
    let text = value.to_string();
    match text.char_indices().nth(MOST) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn maps_are_partial_and_lists_are_not() {
        let there = json!({"a": 1, "b": {"c": "x", "d": 2}, "l": [{"n": 1, "m": 2}, {"n": 2}]});
        let same = |wanted: Value| differences(&wanted, &there, false);
        assert!(same(json!({"b": {"c": "x"}, "l": [{"n": 1}, {}], "a": 1.0})).is_empty());
        assert_eq!(same(json!({"l": [{"n": 1}]})), [".l: wanted 1 items, has 2"]);
        assert_eq!(
            same(json!({"b": {"c": "y", "e": true}, "a": "1"})),
            [".a: wanted \"1\", is 1", ".b.c: wanted \"y\", is \"x\"", ".b.e: wanted true, is not there"]
        );
        assert_eq!(differences(&json!({"a": 2}), &there, true), [".a: wanted (not shown), is (not shown)"]);
    }
}
