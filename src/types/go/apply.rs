//! What each schema marker does to a schema, and what it demands of it, in the words of controller-gen.
//! Never looks at a Go type.

use super::markers::Marker;
use super::profile::{Level, Profile};
use super::schema::{Rule, Schema, Text, rule};
use serde_json::{Map, Value, json};
use std::sync::Arc;

const VALIDATION: &str = "kubebuilder:validation:";

/// When a marker is applied: lower ones first.
fn priority(name: &str, profile: &Profile) -> u8 {
    let exactly = if profile.at_least(Level::V0_20) { 12 } else { 11 };
    match name {
        "Type" | "XIntOrString" | "listType" | "k8s:listType" | "default" => 9,
        "AtMostOneOf" => 11,
        "ExactlyOneOf" => exactly,
        "AtLeastOneOf" => 13,
        _ => 10,
    }
}

/// Applies markers to a schema; what does not fit is given to `fail`, with the marker's byte.
pub(crate) fn apply(
    markers: &[Marker],
    schema: &mut Schema,
    profile: &Profile,
    fail: &mut dyn FnMut(usize, String),
) {
    let mut own: Vec<(u8, &str, &Marker)> = Vec::new();
    let mut items: Vec<(u8, &str, &Marker)> = Vec::new();
    for marker in markers {
        let name = marker.name.strip_prefix(VALIDATION).unwrap_or(marker.name);
        match name.strip_prefix("items:") {
            Some(name) => items.push((priority(name, profile), name, marker)),
            None => own.push((priority(name, profile), name, marker)),
        }
    }
    own.sort_by_key(|(priority, _, _)| *priority);
    items.sort_by_key(|(priority, _, _)| *priority);
    for (_, name, marker) in own {
        if let Err(message) = one(name, marker, schema, profile) {
            fail(marker.at, message);
        }
    }
    for (_, name, marker) in items {
        let kind = schema.kind().to_owned();
        match &mut schema.items {
            Some(items) if kind == "array" => {
                if let Err(message) = one(name, marker, Arc::make_mut(items), profile) {
                    fail(marker.at, message);
                }
            }
            _ => fail(marker.at, format!("must apply {} to an array value, found {kind}", marker.name)),
        }
    }
}

fn text(value: &Value) -> Text {
    value.as_str().map(Into::into)
}

fn one(name: &str, marker: &Marker, schema: &mut Schema, profile: &Profile) -> Result<(), String> {
    let value = &marker.value;
    match name {
        "Maximum" => schema.maximum = Some(numeric(schema, value, "maximum")?),
        "Minimum" => schema.minimum = Some(numeric(schema, value, "minimum")?),
        "MultipleOf" => schema.multiple_of = Some(numeric(schema, value, "multipleof")?),
        "ExclusiveMaximum" => {
            is_numeric(schema, "exclusivemaximum")?;
            schema.exclusive_maximum = *value == Value::Bool(true);
        }
        "ExclusiveMinimum" => {
            is_numeric(schema, "exclusiveminimum")?;
            schema.exclusive_minimum = *value == Value::Bool(true);
        }
        "MaxLength" | "MinLength" | "Pattern" => textual(name, value, schema, profile)?,
        "MaxItems" => {
            is_kind(schema, "array", "must apply maxitem to an array")?;
            schema.max_items = Some(value.clone());
        }
        "MinItems" => {
            is_kind(schema, "array", "must apply minitems to an array")?;
            schema.min_items = Some(value.clone());
        }
        "UniqueItems" => {
            is_kind(schema, "array", "must apply uniqueitems to an array")?;
            schema.unique_items = *value == Value::Bool(true);
        }
        "MaxProperties" => {
            is_kind(schema, "object", "must apply maxproperties to an object")?;
            schema.max_properties = Some(value.clone());
        }
        "MinProperties" => {
            is_kind(schema, "object", "must apply minproperties to an object")?;
            schema.min_properties = Some(value.clone());
        }
        "Enum" => schema.choices = value.as_array().cloned().unwrap_or_default(),
        "Format" => schema.format = text(value),
        "Type" => schema.kind = text(value),
        "XPreserveUnknownFields" | "kubebuilder:pruning:PreserveUnknownFields" => {
            schema.preserve_unknown = Some(true);
        }
        "XEmbeddedResource" | "EmbeddedResource" => schema.embedded_resource = true,
        "XIntOrString" => schema.int_or_string = true,
        "XValidation" => schema.rules.push(validation(marker)?),
        "AtMostOneOf" | "ExactlyOneOf" | "AtLeastOneOf" => {
            schema.rules.extend(one_of(name, &marker.list(), profile));
        }
        "k8s:immutable" => schema.rules.push(rule("self == oldSelf", "field is immutable")),
        "nullable" => schema.nullable = true,
        "kubebuilder:default" | "default" => default(name, value, schema),
        "kubebuilder:example" => schema.example = Some(Arc::new(value.clone())),
        "kubebuilder:title" => match value {
            Value::Null => {}
            Value::String(title) => schema.title = Some(title.as_str().into()),
            other => return Err(format!("expected string, got {}", go_type(other))),
        },
        "kubebuilder:externalDocs" => schema.external_docs = Some(Arc::new(external_docs(marker)?)),
        _ => return topology(name, value, schema),
    }
    Ok(())
}

fn topology(name: &str, value: &Value, schema: &mut Schema) -> Result<(), String> {
    let value = value.as_str().unwrap_or_default();
    match name {
        "listType" | "k8s:listType" => {
            is_kind(schema, "array", &format!("must apply listType to an array, found {}", schema.kind()))?;
            if !matches!(value, "map" | "set" | "atomic") {
                return Err(r#"ListType must be either "map", "set" or "atomic""#.to_owned());
            }
            schema.list_type = Some(value.into());
        }
        "listMapKey" | "k8s:listMapKey" => {
            is_kind(schema, "array", &format!("must apply listMapKey to an array, found {}", schema.kind()))?;
            if schema.list_type.as_deref() != Some("map") {
                return Err("must apply listMapKey to an associative-list".to_owned());
            }
            schema.list_map_keys.push(value.into());
        }
        "mapType" => {
            is_kind(schema, "object", "must apply mapType to an object")?;
            if !matches!(value, "granular" | "atomic") {
                return Err(r#"MapType must be either "granular" or "atomic""#.to_owned());
            }
            schema.map_type = Some(value.into());
        }
        "structType" => {
            if !matches!(schema.kind(), "object" | "") {
                return Err("must apply structType to an object; either explicitly set or defaulted through an empty schema type".to_owned());
            }
            if !matches!(value, "granular" | "atomic") {
                return Err(r#"StructType must be either "granular" or "atomic""#.to_owned());
            }
            schema.map_type = Some(value.into());
        }
        _ => {}
    }
    Ok(())
}

fn default(name: &str, value: &Value, schema: &mut Schema) {
    let empty_map = value.as_object().is_some_and(Map::is_empty);
    if name == "default" && value.is_null() {
        return;
    }
    let list = name == "kubebuilder:default" && schema.kind() == "array" && empty_map;
    schema.default = Some(Arc::new(if list { json!([]) } else { value.clone() }));
}

fn is_kind(schema: &Schema, kind: &str, message: &str) -> Result<(), String> {
    if schema.kind() == kind { Ok(()) } else { Err(message.to_owned()) }
}

fn is_numeric(schema: &Schema, what: &str) -> Result<(), String> {
    if matches!(schema.kind(), "integer" | "number") {
        return Ok(());
    }
    Err(format!("must apply {what} to a numeric value, found {}", schema.kind()))
}

fn numeric(schema: &Schema, value: &Value, what: &str) -> Result<Value, String> {
    is_numeric(schema, what)?;
    if schema.kind() == "integer" && value.as_f64().is_none_or(|number| number.fract() != 0.0) {
        return Err(format!("cannot apply non-integral {what} validation ({value}) to integer value"));
    }
    Ok(value.clone())
}

fn textual(name: &str, value: &Value, schema: &mut Schema, profile: &Profile) -> Result<(), String> {
    let lower = name.to_lowercase();
    let is_text = schema.kind() == "string";
    if profile.at_least(Level::V0_17) {
        if !is_text && !schema.int_or_string {
            return Err(format!("must apply {lower} to a textual value, found type {:?}", schema.kind()));
        }
    } else if name == "Pattern" {
        if !is_text && !schema.int_or_string {
            return Err("must apply pattern to a `string` or `IntOrString`".to_owned());
        }
    } else if !is_text {
        return Err(format!("must apply {lower} to a string"));
    }
    match name {
        "MaxLength" => schema.max_length = Some(value.clone()),
        "MinLength" => schema.min_length = Some(value.clone()),
        _ => schema.pattern = text(value),
    }
    Ok(())
}

fn validation(marker: &Marker) -> Result<Rule, String> {
    const REASONS: [&str; 4] =
        ["FieldValueRequired", "FieldValueInvalid", "FieldValueForbidden", "FieldValueDuplicate"];
    let reason = marker.text("reason");
    if !reason.is_empty() && !REASONS.contains(&reason) {
        let [a, b, c, d] = REASONS;
        return Err(format!("invalid reason {reason}, valid values are {a}, {b}, {c} and {d}"));
    }
    let mut map = Map::new();
    map.insert("rule".to_owned(), Value::from(marker.text("rule")));
    for name in ["message", "messageExpression", "reason", "fieldPath"] {
        let text = marker.text(name);
        if !text.is_empty() {
            map.insert(name.to_owned(), Value::from(text));
        }
    }
    if let Some(optional) = marker.value.get("optionalOldSelf") {
        map.insert("optionalOldSelf".to_owned(), optional.clone());
    }
    Ok(Rule(Value::Object(map)))
}

/// The CEL rule of a one-of marker; its text is cheaper to evaluate in later releases.
fn one_of(name: &str, fields: &[String], profile: &Profile) -> Option<Rule> {
    if fields.is_empty() {
        return None;
    }
    let has: Vec<String> = fields.iter().map(|field| format!("has(self.{field})")).collect();
    let (bound, must) = match name {
        "AtMostOneOf" => ("<= 1", "at most one of the fields in {} may be set"),
        "ExactlyOneOf" => ("== 1", "exactly one of the fields in {} must be set"),
        _ => (">= 1", "at least one of the fields in {} must be set"),
    };
    let message = must.replace("{}", &format!("[{}]", fields.join(" ")));
    let expression = if !profile.at_least(Level::Main) {
        format!("[{}].filter(x,x==true).size() {bound}", has.join(","))
    } else if name == "AtLeastOneOf" {
        has.join("||")
    } else {
        let terms: Vec<String> = has.iter().map(|has| format!("({has}?1:0)")).collect();
        format!("{} {bound}", terms.join("+"))
    };
    Some(rule(&expression, &message))
}

fn external_docs(marker: &Marker) -> Result<Value, String> {
    let url = marker.text("url");
    let scheme = url.split_once(':').is_some_and(|(scheme, _)| {
        scheme.starts_with(|c: char| c.is_ascii_alphabetic())
            && scheme.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.'))
    });
    let why = if url.is_empty() {
        Some("empty url")
    } else if (!scheme && !url.starts_with('/')) || url.contains(|c: char| c.is_control() || c == ' ') {
        Some("invalid URI for request")
    } else {
        None
    };
    if let Some(why) = why {
        return Err(format!("invalid url {url:?} in kubebuilder:externalDocs marker: parse {url:?}: {why}"));
    }
    let mut docs = json!({"url": url});
    let description = marker.text("description");
    if !description.is_empty() {
        docs["description"] = Value::from(description);
    }
    Ok(docs)
}

/// A value's type in Go's words.
fn go_type(value: &Value) -> &'static str {
    match value {
        Value::Null => "<nil>",
        Value::Bool(_) => "bool",
        Value::Number(number) if number.is_f64() => "float64",
        Value::Number(_) => "int",
        Value::String(_) => "string",
        Value::Array(_) => "[]string",
        Value::Object(_) => "map[string]interface {}",
    }
}
