//! Checks that an applied configuration fits its schema, with the texts the server gives where it does not.

use super::error::{Mismatch, MismatchKind, Mismatches};
use crate::facts::QUANTITY;
use crate::fieldset::{item_element, item_schema};
use crate::go::number::float as go_float;
use crate::schema::{Additional, Kind, ListType, SchemaRef, Step, below};
use crate::strategic::go_value as printed;
use serde_json::Value;
use std::collections::BTreeSet;

/// Checks a value against its schema. The error is one text for one mismatch, and a list for several.
pub(super) fn check(value: &Value, schema: &SchemaRef) -> Result<(), Mismatches> {
    let mut errors = Vec::new();
    walk(value, schema, schema.preserve_unknown, &mut String::new(), &mut errors);
    together(errors)
}

/// Checks a whole object; items that it has twice stay.
pub(super) fn check_kept(value: &Value, schema: &SchemaRef) -> Result<(), Mismatches> {
    let mut errors = Vec::new();
    walk(value, schema, schema.preserve_unknown, &mut String::new(), &mut errors);
    errors.retain(|error| !matches!(error.kind, MismatchKind::Duplicate(_)));
    together(errors)
}

fn together(errors: Vec<Mismatch>) -> Result<(), Mismatches> {
    if errors.is_empty() { Ok(()) } else { Err(Mismatches(errors)) }
}

fn shown(value: &Value) -> String {
    match value {
        Value::Number(number) if number.is_f64() => go_float(number.as_f64().unwrap_or_default()),
        other => other.to_string(),
    }
}

fn say(path: &str, kind: MismatchKind, errors: &mut Vec<Mismatch>) {
    errors.push(Mismatch { path: path.to_owned(), kind });
}

fn expected(expected: &'static str, found: impl Into<String>) -> MismatchKind {
    MismatchKind::Type { expected, found: found.into() }
}

fn walk(value: &Value, schema: &SchemaRef, preserve: bool, path: &mut String, errors: &mut Vec<Mismatch>) {
    let preserve = preserve || schema.preserve_unknown;
    match (schema.kind, value) {
        (_, Value::Null) => {}
        (_, Value::Object(_) | Value::Array(_)) if schema.definition_name() == Some(QUANTITY) => {
            say(path, expected("any scalar", got(value)), errors);
        }
        (Kind::Any | Kind::IntOrString | Kind::Object, Value::Object(map)) => {
            let open = preserve
                || matches!(schema.additional, Some(Additional::Any))
                || (schema.properties.is_empty() && schema.additional.is_none());
            for (name, inner) in map {
                let field = schema.field(name);
                if field.is_none() && !open {
                    return say(&format!("{path}.{name}"), MismatchKind::NotDeclared, errors);
                }
                let Some(field) = field else { continue };
                below(path, Step::Entry(name), |path| walk(inner, field, preserve, path, errors));
            }
        }
        (Kind::Object, other) => say(path, expected("map", got(other)), errors),
        (Kind::Any | Kind::IntOrString | Kind::Array, Value::Array(items)) => {
            list(items, schema, preserve, path, errors);
        }
        (Kind::Array, other) => say(path, expected("list", got(other)), errors),
        (Kind::Integer | Kind::Number, other) if !other.is_number() => {
            say(path, expected("numeric (int or float)", type_of(other)), errors);
        }
        (Kind::String, other)
            if !other.is_string() && (is_text(schema.format.as_deref()) || is_container(other)) =>
        {
            let found = format!("&value.valueUnstructured{{Value:{}}}", go_value(other));
            say(path, expected("string", found), errors);
        }
        (Kind::Boolean, other) if !other.is_boolean() => {
            say(path, expected("boolean", got(other)), errors);
        }
        _ => {}
    }
}

/// Returns true if a text of this format is always a text, where others may be numbers too.
fn is_text(format: Option<&str>) -> bool {
    matches!(format, None | Some("byte" | "date-time"))
}

/// A value as Go prints it with its types.
fn go_value(value: &Value) -> String {
    match value {
        Value::Object(map) => {
            let entries: Vec<String> =
                map.iter().map(|(key, value)| format!("{key:?}:{}", go_value(value))).collect();
            format!("map[string]interface {{}}{{{}}}", entries.join(", "))
        }
        Value::Array(list) => {
            let items: Vec<String> = list.iter().map(go_value).collect();
            format!("[]interface {{}}{{{}}}", items.join(", "))
        }
        other => shown(other),
    }
}

fn is_container(value: &Value) -> bool {
    value.is_object() || value.is_array()
}

fn got(value: &Value) -> String {
    format!("&{{{}}}", printed(value))
}

fn type_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "<nil>",
        Value::Bool(_) => "bool",
        Value::Number(number) if number.is_f64() => "float64",
        Value::Number(_) => "int64",
        Value::String(_) => "string",
        Value::Array(_) => "[]interface {}",
        Value::Object(_) => "map[string]interface {}",
    }
}

fn list(items: &[Value], schema: &SchemaRef, preserve: bool, path: &mut String, errors: &mut Vec<Mismatch>) {
    let inner = item_schema(schema);
    let associative = matches!(schema.list_type, Some(ListType::Set | ListType::Map(_)));
    let mut seen = BTreeSet::new();
    for (i, item) in items.iter().enumerate() {
        if !associative {
            below(path, Step::Index(i), |path| walk(item, inner, preserve, path, errors));
            continue;
        }
        let element = match item_element(schema, item) {
            Ok(element) => element,
            Err(source) => return say(path, MismatchKind::Item { index: i, source }, errors),
        };
        if seen.contains(&element) {
            say(path, MismatchKind::Duplicate(element.clone()), errors);
        }
        walk(item, inner, preserve, &mut format!("{path}{element}"), errors);
        seen.insert(element);
    }
}
