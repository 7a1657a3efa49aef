//! How definitions, values and schemas are called in a sentence. Never shows more of a value than a schema
//! says.

use serde_json::Value;

/// The definition's name, such as `widgets.ex.io`.
pub(super) fn name(crd: &Value) -> &str {
    crd.pointer("/metadata/name").and_then(Value::as_str).unwrap_or("the definition")
}

/// The kind it defines.
pub(super) fn kind(crd: &Value) -> &str {
    crd.pointer("/spec/names/kind").and_then(Value::as_str).unwrap_or("object")
}

/// A schema's type in words.
pub(super) fn shape(schema: &Value) -> &'static str {
    if schema["x-kubernetes-int-or-string"] == true {
        return "integer or string";
    }
    match schema["type"].as_str() {
        Some("object") if schema.get("additionalProperties").is_some() => "map",
        Some("object") => "object",
        Some("array") => "list",
        Some("string") => "string",
        Some("integer") => "integer",
        Some("number") => "number",
        Some("boolean") => "boolean",
        _ => "any value",
    }
}

/// A short text of a value that stands in a schema.
pub(super) fn shown(value: &Value) -> String {
    const MOST: usize = 60;
    let text = value.to_string();
    if text.chars().count() <= MOST {
        return text;
    }
    let cut: String = text.chars().take(MOST - 1).collect();
    format!("{cut}…")
}

/// The kind of value, without the value.
pub(super) fn sort_of(value: &Value) -> String {
    match value {
        Value::Null => "null".to_owned(),
        Value::Bool(_) => "boolean".to_owned(),
        Value::Number(number) if number.is_f64() => "number".to_owned(),
        Value::Number(_) => "integer".to_owned(),
        Value::String(_) => "string".to_owned(),
        Value::Array(items) => format!("list of {}", items.len()),
        Value::Object(map) => match map.len() {
            1 => "object with 1 field".to_owned(),
            count => format!("object with {count} fields"),
        },
    }
}
