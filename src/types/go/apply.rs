//! The effect of each schema marker on a schema, and its demands, in the words of controller-gen. Never looks
//! at a Go type.

use super::marker_error::MarkerError;
use super::markers::Marker;
use super::profile::{Level, Profile};
use super::schema::{Rule, Schema, Text, rule};
use serde_json::{Map, Value, json};
use std::sync::Arc;

const VALIDATION: &str = "kubebuilder:validation:";
const GRANULAR_OR_ATOMIC: &str = r#""granular" or "atomic""#;

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
    fail: &mut dyn FnMut(usize, MarkerError),
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
        if let Err(error) = one(name, marker, schema, profile) {
            fail(marker.at, error);
        }
    }
    for (_, name, marker) in items {
        let kind = schema.kind().to_owned();
        match &mut schema.items {
            Some(items) if kind == "array" => {
                if let Err(error) = one(name, marker, Arc::make_mut(items), profile) {
                    fail(marker.at, error);
                }
            }
            _ => fail(marker.at, MarkerError::misplaced_on(marker.name, "an array value", kind)),
        }
    }
}

fn text(value: &Value) -> Text {
    value.as_str().map(Into::into)
}

fn one(name: &str, marker: &Marker, schema: &mut Schema, profile: &Profile) -> Result<(), MarkerError> {
    let value = &marker.value;
    match name {
        "Maximum" | "k8s:maximum" => schema.maximum = Some(numeric(schema, value, "maximum")?),
        "Minimum" | "k8s:minimum" => schema.minimum = Some(numeric(schema, value, "minimum")?),
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
        "MaxItems" | "k8s:maxItems" => {
            is_kind(schema, "array", "maxitem", "an array")?;
            schema.max_items = Some(value.clone());
        }
        "MinItems" => {
            is_kind(schema, "array", "minitems", "an array")?;
            schema.min_items = Some(value.clone());
        }
        "UniqueItems" => {
            is_kind(schema, "array", "uniqueitems", "an array")?;
            schema.unique_items = *value == Value::Bool(true);
        }
        "MaxProperties" => {
            is_kind(schema, "object", "maxproperties", "an object")?;
            schema.max_properties = Some(value.clone());
        }
        "MinProperties" => {
            is_kind(schema, "object", "minproperties", "an object")?;
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
        "k8s:required" if profile.at_least(Level::V0_23) => not_empty(schema),
        "kubebuilder:default" | "default" => default(name, value, schema),
        "kubebuilder:example" => schema.example = Some(Arc::new(value.clone())),
        "kubebuilder:title" => match value {
            Value::Null => {}
            Value::String(title) => schema.title = Some(title.as_str().into()),
            other => return Err(MarkerError::NotAText { found: go_type(other) }),
        },
        "kubebuilder:externalDocs" => schema.external_docs = Some(Arc::new(external_docs(marker)?)),
        _ => return topology(name, value, schema, profile),
    }
    Ok(())
}

fn topology(name: &str, value: &Value, schema: &mut Schema, profile: &Profile) -> Result<(), MarkerError> {
    let value = value.as_str().unwrap_or_default();
    match name {
        "listType" | "k8s:listType" => {
            is_array(schema, "listType")?;
            if !matches!(value, "map" | "set" | "atomic") {
                let choices = r#""map", "set" or "atomic""#;
                return Err(MarkerError::Choice { what: "ListType", choices });
            }
            schema.list_type = Some(value.into());
        }
        "listMapKey" | "k8s:listMapKey" => {
            is_array(schema, "listMapKey")?;
            if schema.list_type.as_deref() != Some("map") {
                return Err(MarkerError::misplaced("listMapKey", "an associative-list"));
            }
            // Kubernetes 0.37 says one key with both markers, and API servers refuse a key that is there
            // twice.
            let again = schema.list_map_keys.iter().any(|key| **key == *value);
            if !(again && profile.at_least(Level::V0_22)) {
                schema.list_map_keys.push(value.into());
            }
        }
        "mapType" => {
            is_kind(schema, "object", "mapType", "an object")?;
            if !matches!(value, "granular" | "atomic") {
                return Err(MarkerError::Choice { what: "MapType", choices: GRANULAR_OR_ATOMIC });
            }
            schema.map_type = Some(value.into());
        }
        "structType" => {
            if !matches!(schema.kind(), "object" | "") {
                let wanted = "an object; either explicitly set or defaulted through an empty schema type";
                return Err(MarkerError::misplaced("structType", wanted));
            }
            if !matches!(value, "granular" | "atomic") {
                return Err(MarkerError::Choice { what: "StructType", choices: GRANULAR_OR_ATOMIC });
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

/// A field with `k8s:required` has something in it. Where its type is known by reference only, controller-gen
/// takes it for a struct, and so do the CRDs that are made with it.
fn not_empty(schema: &mut Schema) {
    let least = match schema.kind() {
        "string" => &mut schema.min_length,
        "array" => &mut schema.min_items,
        "object" => &mut schema.min_properties,
        _ if schema.reference.is_some() => &mut schema.min_properties,
        _ => return,
    };
    least.get_or_insert_with(|| json!(1));
}

fn is_kind(schema: &Schema, kind: &str, what: &str, wanted: &'static str) -> Result<(), MarkerError> {
    if schema.kind() == kind { Ok(()) } else { Err(MarkerError::misplaced(what, wanted)) }
}

fn is_array(schema: &Schema, what: &str) -> Result<(), MarkerError> {
    match schema.kind() {
        "array" => Ok(()),
        found => Err(MarkerError::misplaced_on(what, "an array", found)),
    }
}

fn is_numeric(schema: &Schema, what: &str) -> Result<(), MarkerError> {
    if matches!(schema.kind(), "integer" | "number") {
        return Ok(());
    }
    Err(MarkerError::misplaced_on(what, "a numeric value", schema.kind()))
}

fn numeric(schema: &Schema, value: &Value, what: &'static str) -> Result<Value, MarkerError> {
    is_numeric(schema, what)?;
    if schema.kind() == "integer" && value.as_f64().is_none_or(|number| number.fract() != 0.0) {
        return Err(MarkerError::NotIntegral { what, value: value.clone() });
    }
    Ok(value.clone())
}

fn textual(name: &str, value: &Value, schema: &mut Schema, profile: &Profile) -> Result<(), MarkerError> {
    let lower = name.to_lowercase();
    let is_text = schema.kind() == "string";
    if profile.at_least(Level::V0_17) {
        if !is_text && !schema.int_or_string {
            let found = format!("type {:?}", schema.kind());
            return Err(MarkerError::misplaced_on(lower, "a textual value", found));
        }
    } else if name == "Pattern" {
        if !is_text && !schema.int_or_string {
            return Err(MarkerError::misplaced("pattern", "a `string` or `IntOrString`"));
        }
    } else if !is_text {
        return Err(MarkerError::misplaced(lower, "a string"));
    }
    match name {
        "MaxLength" => schema.max_length = Some(value.clone()),
        "MinLength" => schema.min_length = Some(value.clone()),
        _ => schema.pattern = text(value),
    }
    Ok(())
}

fn validation(marker: &Marker) -> Result<Rule, MarkerError> {
    const REASONS: [&str; 4] =
        ["FieldValueRequired", "FieldValueInvalid", "FieldValueForbidden", "FieldValueDuplicate"];
    let reason = marker.text("reason");
    if !reason.is_empty() && !REASONS.contains(&reason) {
        return Err(MarkerError::Reason { reason: reason.to_owned(), known: REASONS });
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
    let expression = if !profile.at_least(Level::V0_22) {
        format!("[{}].filter(x,x==true).size() {bound}", has.join(","))
    } else if name == "AtLeastOneOf" {
        has.join("||")
    } else {
        let terms: Vec<String> = has.iter().map(|has| format!("({has}?1:0)")).collect();
        format!("{} {bound}", terms.join("+"))
    };
    Some(rule(&expression, &message))
}

fn external_docs(marker: &Marker) -> Result<Value, MarkerError> {
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
        return Err(MarkerError::Url { url: url.to_owned(), why });
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
