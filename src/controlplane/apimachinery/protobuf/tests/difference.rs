//! Where two values differ, for the tests of several packages.

use serde_json::Value;

/// The first place at which two values differ.
pub(crate) fn difference(a: &Value, b: &Value, path: &str) -> String {
    match (a, b) {
        (Value::Object(one), Value::Object(two)) => {
            let keys = one.keys().chain(two.keys());
            keys.map(|key| difference(&a[key], &b[key], &format!("{path}.{key}")))
                .find(|found| !found.is_empty())
                .unwrap_or_default()
        }
        (Value::Array(one), Value::Array(two)) if one.len() == two.len() => (0..one.len())
            .map(|at| difference(&a[at], &b[at], &format!("{path}[{at}]")))
            .find(|found| !found.is_empty())
            .unwrap_or_default(),
        _ if a == b => String::new(),
        _ => format!("{path} is {a}, not {b}"),
    }
}
