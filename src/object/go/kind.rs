//! Kinds of JSON values in the words of Go's decoder.

use serde_json::Value;

/// Go's word for the kind of a JSON value, as its decoder says it in errors.
pub fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}
