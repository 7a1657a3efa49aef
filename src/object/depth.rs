//! How deep lists and maps may be in each other. Whatever walks an object does so on the stack, and JSON
//! readers stop at 128 levels: what gets in must be readable when it comes back, with the fields' owners
//! beside it.

use serde_json::Value;

/// Most levels of an object that a client sends or makes by a patch.
pub const MAX_LEVELS: usize = 100;

/// How many levels a value has; a text or a number has none.
pub fn levels(value: &Value) -> usize {
    match value {
        Value::Array(list) => 1 + list.iter().map(levels).max().unwrap_or(0),
        Value::Object(map) => 1 + map.values().map(levels).max().unwrap_or(0),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_deepest_part_counts() {
        assert_eq!(levels(&json!("text")), 0);
        assert_eq!(levels(&json!({"a": [], "b": [{"c": 1}]})), 3);
    }
}
