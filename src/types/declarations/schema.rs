//! One OpenAPI schema as a TypeScript type: enums as unions, maps as index signatures, int-or-string as both,
//! unknown fields as `unknown`, with what the schema says of a field as its comment.

use serde_json::Value;
use std::fmt::Write;

/// How deep types are written out; what lies deeper is `unknown`.
const DEEPEST: usize = 40;
/// Names that the module declares for itself.
pub(super) const RESERVED: [&str; 5] = ["ObjectMeta", "OwnerReference", "Condition", "AnyObject", "Kinds"];

/// A text as a literal.
pub(super) fn text(value: &str) -> String {
    Value::from(value).to_string()
}

pub(super) fn is_identifier(text: &str) -> bool {
    let mut letters = text.chars();
    letters.next().is_some_and(|c| c.is_ascii_alphabetic() || c == '_' || c == '$')
        && letters.all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '$')
}

/// A key as a property name.
pub(super) fn key(name: &str) -> String {
    if is_identifier(name) { name.to_owned() } else { text(name) }
}

/// Returns true if a field is always there: required, or filled in by its default.
pub(super) fn is_there(parent: &Value, name: &str, field: &Value) -> bool {
    let required = parent.get("required").and_then(Value::as_array);
    required.is_some_and(|list| list.iter().any(|item| item == name)) || field.get("default").is_some()
}

/// The description and what else the schema asks of a value.
pub(super) fn about(field: &Value) -> String {
    let mut lines: Vec<String> = Vec::new();
    if let Some(text) = field.get("description").and_then(Value::as_str) {
        lines.push(text.trim().to_owned());
    }
    let mut rules = Vec::new();
    let words = [
        ("minimum", "at least"),
        ("maximum", "at most"),
        ("minLength", "characters at least"),
        ("maxLength", "characters at most"),
        ("minItems", "items at least"),
        ("maxItems", "items at most"),
        ("pattern", "pattern"),
        ("format", "format"),
    ];
    for (name, words) in words {
        if let Some(value) = field.get(name) {
            rules
                .push(format!("{words} {}", value.as_str().map_or_else(|| value.to_string(), str::to_owned)));
        }
    }
    if !rules.is_empty() {
        lines.push(rules.join(", "));
    }
    if let Some(value) = field.get("default") {
        lines.push(format!("@default {value}"));
    }
    lines.join("\n\n")
}

/// A JSDoc comment, or nothing for no text.
pub(super) fn comment(about: &str, indent: &str) -> String {
    let safe = about.replace("*/", "*\u{200b}/");
    let lines: Vec<&str> = safe.lines().map(str::trim_end).collect();
    match lines.as_slice() {
        [] => String::new(),
        [one] => format!("{indent}/** {one} */\n"),
        many => {
            let mut out = format!("{indent}/**\n");
            for line in many {
                let _ = writeln!(out, "{indent} *{}{line}", if line.is_empty() { "" } else { " " });
            }
            let _ = writeln!(out, "{indent} */");
            out
        }
    }
}

/// The type of a value.
pub(super) fn type_of(schema: &Value, indent: &str, depth: usize) -> String {
    let plain = plain_type(schema, indent, depth);
    if schema.get("nullable") == Some(&Value::Bool(true)) { format!("{plain} | null") } else { plain }
}

fn plain_type(schema: &Value, indent: &str, depth: usize) -> String {
    if depth > DEEPEST {
        return "unknown".to_owned();
    }
    let says = |name: &str| schema.get(name) == Some(&Value::Bool(true));
    if says("x-kubernetes-int-or-string") {
        return "number | string".to_owned();
    }
    if let Some(values) = schema.get("enum").and_then(Value::as_array) {
        // Objects and lists in an enum are rare enough to be left to their type.
        if !values.is_empty() && values.iter().all(|value| !value.is_object() && !value.is_array()) {
            let all: Vec<String> = values.iter().map(ToString::to_string).collect();
            return all.join(" | ");
        }
    }
    match schema.get("type").and_then(Value::as_str).unwrap_or_default() {
        "string" => "string".to_owned(),
        "integer" | "number" => "number".to_owned(),
        "boolean" => "boolean".to_owned(),
        "array" => {
            let item = schema
                .get("items")
                .map_or_else(|| "unknown".to_owned(), |item| type_of(item, indent, depth + 1));
            if item.contains([' ', '|']) && !item.ends_with('}') {
                format!("({item})[]")
            } else {
                format!("{item}[]")
            }
        }
        "object" if says("x-kubernetes-embedded-resource") => "AnyObject".to_owned(),
        "object" => fields(schema, indent, depth),
        _ => "unknown".to_owned(),
    }
}

/// The fields of an object between braces.
pub(super) fn fields(schema: &Value, indent: &str, depth: usize) -> String {
    let properties = schema.get("properties").and_then(Value::as_object);
    let inner = format!("{indent}  ");
    let mut out = String::new();
    for (name, field) in properties.into_iter().flatten() {
        out.push_str(&comment(&about(field), &inner));
        let mark = if is_there(schema, name, field) { "" } else { "?" };
        let _ = writeln!(out, "{inner}{}{mark}: {};", key(name), type_of(field, &inner, depth + 1));
    }
    let open = schema.get("x-kubernetes-preserve-unknown-fields") == Some(&Value::Bool(true));
    let more = match schema.get("additionalProperties") {
        Some(Value::Object(_)) if properties.is_none() => {
            schema.get("additionalProperties").map(|item| type_of(item, &inner, depth + 1))
        }
        Some(Value::Bool(true) | Value::Object(_)) => Some("unknown".to_owned()),
        _ if open => Some("unknown".to_owned()),
        _ => None,
    };
    if let Some(more) = more {
        let _ = writeln!(out, "{inner}[key: string]: {more};");
    }
    if out.is_empty() { "{}".to_owned() } else { format!("{{\n{out}{indent}}}") }
}
