//! Values checked against a schema, with the texts and field paths of apiextensions.
//! Never changes the value; run `default` and `prune` first, as the server does.

use super::error::{FieldError, Reason};
use super::formats;
use super::model::{Additional, Checks, Kind, ListType, Schema, SchemaRef};
use super::step::{Step, below};
use crate::go::number::float as go_float;
use crate::go::quote::quote;
use serde_json::{Map, Value};

/// Everything that is wrong with `value`, an object at its root.
pub fn validate(value: &Value, schema: &SchemaRef) -> Vec<FieldError> {
    validate_at("", value, schema)
}

/// Everything that is wrong with `value`, which stands at `path`.
pub fn validate_at(path: &str, value: &Value, schema: &SchemaRef) -> Vec<FieldError> {
    let mut path = path.to_owned();
    let mut errors = check(&mut path, value, None, schema).errors;
    list_types(&mut path, value, schema, &mut errors);
    errors
}

/// The errors of `value`, which is to replace `old`. A field that has not changed is no error, where it can
/// be found in both.
pub fn validate_update(value: &Value, old: &Value, schema: &SchemaRef) -> Vec<FieldError> {
    let mut path = String::new();
    let mut errors = check(&mut path, value, Some(old), schema).errors;
    let mut before = Vec::new();
    list_types(&mut path, old, schema, &mut before);
    if before.is_empty() {
        list_types(&mut path, value, schema, &mut errors);
    }
    errors
}

/// Everything a server says of `value`, which may replace `old`: the schema and, unless that leaves too
/// little to look at, the rules in CEL.
pub fn admit(value: &Value, old: Option<&Value>, schema: &SchemaRef) -> Vec<FieldError> {
    admit_unless(value, old, schema, false)
}

/// All errors of an object of which some are known already; `blocked` says that those leave too little to
/// look at.
pub fn admit_unless(
    value: &Value,
    old: Option<&Value>,
    schema: &SchemaRef,
    blocked: bool,
) -> Vec<FieldError> {
    let mut errors = match old {
        None => validate(value, schema),
        Some(old) => validate_update(value, old, schema),
    };
    let Some(rules) = &schema.rules else { return errors };
    let blocking = |error: &FieldError| {
        matches!(
            error.reason,
            Reason::NotSupported | Reason::Required | Reason::TooLong | Reason::TooMany | Reason::TypeInvalid
        )
    };
    if blocked || errors.iter().any(blocking) {
        let text = "some validation rules were not checked because the object was invalid; correct the existing errors to complete validation";
        errors.push(FieldError::invalid("<nil>", &Value::Null, text));
    } else {
        errors.extend(rules.validate(value, old, schema));
    }
    errors
}

/// The errors, and a measure of how far the value matched: the best of several failures is the one
/// that matched most.
#[derive(Default)]
struct Outcome {
    errors: Vec<FieldError>,
    matches: usize,
}

impl Outcome {
    fn add(&mut self, error: FieldError) {
        if !self.errors.contains(&error) {
            self.errors.push(error);
        }
    }

    fn merge(&mut self, other: Outcome) {
        self.matches += other.matches;
        for error in other.errors {
            self.add(error);
        }
    }
}

/// A rule that spans several fields is reported without one.
fn spanning(text: &str) -> FieldError {
    FieldError::invalid("<nil>", &Value::from(""), text)
}

fn field_path(path: &str) -> &str {
    if path.is_empty() { "<nil>" } else { path }
}

fn child(path: &str, name: &str) -> String {
    if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") }
}

fn invalid(path: &str, value: &Value, rule: &str) -> FieldError {
    FieldError::invalid(field_path(path), value, &format!("{path} in body {rule}"))
}

fn check(path: &mut String, value: &Value, old: Option<&Value>, schema: &SchemaRef) -> Outcome {
    let mut out = judge(path, value, old, schema);
    if !out.errors.is_empty() && old.is_some_and(|old| unchanged(value, old, schema)) {
        out.errors.clear();
    }
    out
}

fn judge(path: &mut String, value: &Value, old: Option<&Value>, schema: &SchemaRef) -> Outcome {
    let mut out = Outcome::default();
    check_type(path, value, schema, &mut out);
    if value.is_null() {
        check_enum(path, value, schema).into_iter().for_each(|error| out.add(error));
        return out;
    }
    if let Some(checks) = &schema.checks {
        out.merge(combined(path, value, checks));
    }
    out.matches += 1;
    match value {
        Value::String(text) => check_string(path, text, schema, &mut out),
        Value::Number(_) => check_number(path, value, schema, &mut out),
        Value::Array(items) => check_items(path, items, old, schema, &mut out),
        Value::Object(map) => check_object(path, map, old, schema, &mut out),
        Value::Null | Value::Bool(_) => {}
    }
    check_enum(path, value, schema).into_iter().for_each(|error| out.add(error));
    out.matches += 1;
    out
}

/// The old item that an item stands for: the one with the same keys. Items of other lists, and without all
/// keys, have none.
fn old_item<'a>(item: &Value, old: Option<&'a Value>, schema: &Schema) -> Option<&'a Value> {
    let Some(ListType::Map(keys)) = &schema.list_type else { return None };
    let same_keys =
        |other: &&Value| keys.iter().all(|key| item.get(key).is_some() && other.get(key) == item.get(key));
    old?.as_array()?.iter().find(same_keys)
}

/// Says whether a value is what it was. Fields without a schema cannot be told to be the same.
pub fn unchanged(value: &Value, old: &Value, schema: &Schema) -> bool {
    match (value, old) {
        (Value::Object(new), Value::Object(before)) => {
            new.len() == before.len()
                && new.iter().all(|(key, value)| {
                    let place = schema.properties.get(key).or(match &schema.additional {
                        Some(Additional::Schema(other)) => Some(other),
                        Some(Additional::Any) | None => None,
                    });
                    let old = before.get(key);
                    place.zip(old).is_some_and(|(schema, old)| unchanged(value, old, schema))
                })
        }
        (Value::Array(new), Value::Array(before)) => {
            new.len() == before.len()
                && match (&schema.list_type, &schema.items) {
                    (Some(ListType::Map(_)), Some(items)) => new.iter().all(|item| {
                        old_item(item, Some(old), schema).is_some_and(|old| unchanged(item, old, items))
                    }),
                    _ => new == before,
                }
        }
        _ => same(value, old),
    }
}

fn type_name(kind: Kind) -> &'static str {
    match kind {
        Kind::Any => "",
        Kind::Object => "object",
        Kind::Array => "array",
        Kind::String => "string",
        Kind::Integer => "integer",
        Kind::Number => "number",
        Kind::Boolean => "boolean",
        Kind::IntOrString => "integer,string",
    }
}

/// Type and format as Go sees the value.
fn seen(value: &Value) -> (&'static str, &'static str) {
    match value {
        Value::Null => ("null", ""),
        Value::Bool(_) => ("boolean", ""),
        Value::Number(number) if number.is_f64() => ("number", "float64"),
        Value::Number(_) => ("integer", "int64"),
        Value::String(_) => ("string", ""),
        Value::Array(_) => ("array", ""),
        Value::Object(_) => ("object", ""),
    }
}

fn check_type(path: &str, value: &Value, schema: &SchemaRef, out: &mut Outcome) {
    let wrong = |wanted: &str, got: &str| {
        let text = format!("{path} in body must be of type {wanted}: {}", quote(got));
        FieldError::type_invalid(field_path(path), &Value::from(got), &text)
    };
    if schema.kind == Kind::Any && (schema.format.is_none() || value.is_null()) {
        return;
    }
    if value.is_null() {
        if !schema.nullable_here() {
            out.add(wrong(type_name(schema.kind), "null"));
        }
        return;
    }
    let (name, format) = seen(value);
    let whole = value.as_f64().is_some_and(|f| f.fract() == 0.0 && f.abs() <= 9_007_199_254_740_991.0);
    let fits = match schema.kind {
        Kind::Integer => name == "integer" || (name == "number" && whole),
        Kind::IntOrString => matches!(name, "integer" | "string") || (name == "number" && whole),
        Kind::Number => matches!(name, "integer" | "number"),
        Kind::Any => false,
        other => type_name(other) == name,
    };
    if let Some(wanted) = &schema.format {
        let text_like = matches!(name, "string" | "array");
        if !text_like && !fits && format != wanted {
            return out.add(wrong(wanted, format));
        }
        if text_like && !matches!(schema.kind, Kind::Integer | Kind::Number | Kind::IntOrString) {
            out.matches += 1;
            return;
        }
    }
    if fits || schema.kind == Kind::Any {
        out.matches += 1;
    } else {
        out.add(wrong(type_name(schema.kind), name));
    }
}

fn combined(path: &mut String, value: &Value, checks: &Checks) -> Outcome {
    let mut out = Outcome::default();
    if !checks.any_of.is_empty() {
        let mut best: Option<Outcome> = None;
        let mut success = None;
        for schema in &checks.any_of {
            let result = check(path, value, None, schema);
            if result.errors.is_empty() {
                success = Some(result);
                break;
            }
            if best.as_ref().is_none_or(|b| result.matches > b.matches) {
                best = Some(result);
            }
        }
        match success {
            Some(result) => out.merge(result),
            None => {
                out.add(spanning(&format!("{} must validate at least one schema (anyOf)", quote(path))));
                out.merge(best.unwrap_or_default());
            }
        }
    }
    one_of(path, value, checks, &mut out);
    if !checks.all_of.is_empty() {
        let results: Vec<Outcome> =
            checks.all_of.iter().map(|schema| check(path, value, None, schema)).collect();
        let valid = results.iter().filter(|result| result.errors.is_empty()).count();
        results.into_iter().for_each(|result| out.merge(result));
        if valid != checks.all_of.len() {
            let more = if valid == 0 { ". None validated" } else { "" };
            out.add(spanning(&format!("{} must validate all the schemas (allOf){more}", quote(path))));
        }
    }
    if let Some(not) = &checks.not
        && check(path, value, None, not).errors.is_empty()
    {
        out.add(spanning(&format!("{} must not validate the schema (not)", quote(path))));
    }
    out.matches += 1;
    out
}

fn one_of(path: &mut String, value: &Value, checks: &Checks, out: &mut Outcome) {
    if checks.one_of.is_empty() {
        return;
    }
    let (mut valid, mut best, mut first) = (0, None::<Outcome>, None);
    for schema in &checks.one_of {
        let result = check(path, value, None, schema);
        if result.errors.is_empty() {
            valid += 1;
            best = None;
            first.get_or_insert(result);
        } else if valid == 0 && best.as_ref().is_none_or(|b| result.matches > b.matches) {
            best = Some(result);
        }
    }
    if valid == 1 {
        return out.merge(first.unwrap_or_default());
    }
    let found =
        if valid == 0 { "Found none valid".to_owned() } else { format!("Found {valid} valid alternatives") };
    out.add(spanning(&format!("{} must validate one and only one schema (oneOf). {found}", quote(path))));
    out.merge(best.unwrap_or_default());
}

/// Returns true if a value is none of those that are allowed.
pub(super) fn check_enum(path: &str, value: &Value, schema: &Schema) -> Option<FieldError> {
    let checks = schema.checks.as_ref().filter(|checks| !checks.enumeration.is_empty())?;
    if checks.enumeration.iter().any(|allowed| same(allowed, value)) {
        return None;
    }
    let supported: Vec<String> = checks
        .enumeration
        .iter()
        .map(|allowed| allowed.as_str().map_or_else(|| allowed.to_string(), str::to_owned))
        .collect();
    Some(FieldError::not_supported(field_path(path), value, &supported))
}

/// Equality of JSON values where `1` and `1.0` are the same number.
pub(crate) fn same(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(x), Value::Number(y)) => {
            x == y || (x.is_f64() != y.is_f64() && x.as_f64() == y.as_f64())
        }
        (Value::Array(x), Value::Array(y)) => x.len() == y.len() && x.iter().zip(y).all(|(x, y)| same(x, y)),
        (Value::Object(x), Value::Object(y)) => {
            x.len() == y.len() && x.iter().all(|(key, x)| y.get(key).is_some_and(|y| same(x, y)))
        }
        _ => a == b,
    }
}

fn check_string(path: &str, text: &str, schema: &Schema, out: &mut Outcome) {
    let value = || Value::from(text);
    if let Some(checks) = &schema.checks {
        let counts = checks.max_length.is_some() || checks.min_length.is_some();
        let length = if counts { i64::try_from(text.chars().count()).unwrap_or(i64::MAX) } else { 0 };
        if let Some(most) = checks.max_length.filter(|most| length > *most) {
            out.add(FieldError::too_long(field_path(path), most));
        } else if let Some(least) = checks.min_length.filter(|least| length < *least) {
            out.add(invalid(path, &value(), &format!("should be at least {least} chars long")));
        } else if let Some(pattern) = &checks.pattern {
            match pattern.is_match(text) {
                Ok(true) => {}
                Ok(false) => out.add(invalid(path, &value(), &format!("should match '{}'", pattern.text))),
                Err(error) => {
                    let rule = format!("should match '{}, but pattern is invalid: {error}'", pattern.text);
                    out.add(invalid(path, &value(), &rule));
                }
            }
        }
    }
    out.matches += 1;
    if let Some(format) = &schema.format
        && formats::is_checked(Kind::String, format)
        && !formats::matches(format, text)
    {
        let detail = format!("{path} in body must be of type {format}: {}", quote(text));
        out.add(FieldError::type_invalid(field_path(path), &value(), &detail));
    }
}

fn check_number(path: &str, value: &Value, schema: &Schema, out: &mut Outcome) {
    let float = value.as_f64().unwrap_or_default();
    let format = schema.format.as_deref();
    let (type_name, fits) = match (schema.kind, format) {
        (Kind::Integer, Some("int32")) => (
            "integer",
            value.as_i64().is_some_and(|i| i32::try_from(i).is_ok())
                || (value.is_f64() && float.fract() == 0.0 && float.abs() <= f64::from(i32::MAX)),
        ),
        (Kind::Integer, _) => {
            ("integer", value.is_i64() || (value.is_f64() && float.fract() == 0.0 && float.abs() < 9.3e18))
        }
        (Kind::Number, Some("float")) => ("number", float.abs() <= f64::from(f32::MAX)),
        _ => ("", true),
    };
    if !fits {
        let kind = format.map_or_else(|| "(default format)".to_owned(), |f| format!("with format {f}"));
        out.add(spanning(&format!("Checked value must be of type {type_name} {kind} in {path}")));
    }
    let Some(checks) = &schema.checks else {
        out.matches += 1;
        return;
    };
    // Go compares an integer with the integer part of the bound, unless the bound is no integer at all.
    let whole = value.is_i64() || value.is_u64();
    let bound = |bound: f64| {
        if whole && (schema.kind != Kind::Integer || bound.fract() == 0.0) { bound.trunc() } else { bound }
    };
    if let Some(factor) = checks.multiple_of {
        // Go divides an integer by the integer part of the factor, and does not divide by zero.
        let quotient = float / factor;
        if whole && factor.trunc() == 0.0 {
            let text = format!("factor MultipleOf declared for {path} must be positive: 0");
            out.add(FieldError::invalid(field_path(path), &Value::from(0), &text));
        } else if factor > 0.0 && (quotient - quotient.round()).abs() > 1e-9 {
            out.add(invalid(path, value, &format!("should be a multiple of {}", go_float(factor))));
        }
    }
    if let Some(most) = checks.maximum.map(bound) {
        let (wrong, words) = if checks.exclusive_maximum {
            (float >= most, "less than")
        } else {
            (float > most, "less than or equal to")
        };
        if wrong {
            out.add(invalid(path, value, &format!("should be {words} {}", go_float(most))));
        }
    }
    if let Some(least) = checks.minimum.map(bound) {
        let (wrong, words) = if checks.exclusive_minimum {
            (float <= least, "greater than")
        } else {
            (float < least, "greater than or equal to")
        };
        if wrong {
            out.add(invalid(path, value, &format!("should be {words} {}", go_float(least))));
        }
    }
    out.matches += 1;
}

fn check_items(path: &mut String, items: &[Value], old: Option<&Value>, schema: &Schema, out: &mut Outcome) {
    if let Some(item_schema) = &schema.items {
        for (index, item) in items.iter().enumerate() {
            let before = old_item(item, old, schema);
            out.merge(below(path, Step::Index(index), |path| check(path, item, before, item_schema)));
        }
    }
    if let Some(checks) = &schema.checks {
        let size = i64::try_from(items.len()).unwrap_or(i64::MAX);
        if let Some(least) = checks.min_items.filter(|least| size < *least) {
            out.add(invalid(path, &Value::from(size), &format!("should have at least {least} items")));
        }
        if let Some(most) = checks.max_items.filter(|most| size > *most) {
            out.add(FieldError::too_many(field_path(path), items.len(), most));
        }
        let repeated = |(i, item): (usize, &Value)| items[..i].iter().any(|earlier| same(earlier, item));
        if checks.unique_items && items.iter().enumerate().any(repeated) {
            out.add(invalid(path, &Value::from(""), "shouldn't contain duplicates"));
        }
    }
    out.matches += 2;
}

fn check_object(
    path: &mut String,
    map: &Map<String, Value>,
    old: Option<&Value>,
    schema: &Schema,
    out: &mut Outcome,
) {
    let checks = schema.checks.as_deref();
    let size = i64::try_from(map.len()).unwrap_or(i64::MAX);
    if let Some(least) = checks.and_then(|c| c.min_properties).filter(|least| size < *least) {
        out.add(invalid(path, &Value::from(size), &format!("should have at least {least} properties")));
    }
    if let Some(most) = checks.and_then(|c| c.max_properties).filter(|most| size > *most) {
        out.add(FieldError::too_many(field_path(path), map.len(), most));
    }
    if schema.embedded_resource {
        embedded(path, map, out);
    }
    for (key, value) in map {
        match (schema.properties.get(key), &schema.additional) {
            (Some(property), _) if schema.embedded_resource && key == "metadata" => {
                check_metadata(&child(path, key), value, property, out);
            }
            (Some(property), _) => {
                // Versions are converted before they are compared, so these two never differ.
                let type_field = path.is_empty() && matches!(key.as_str(), "apiVersion" | "kind");
                let before = old.filter(|_| !type_field).and_then(|old| old.get(key));
                out.merge(below(path, Step::Child(key), |path| check(path, value, before, property)));
            }
            (None, Some(Additional::Schema(other))) => {
                let before = old.and_then(|old| old.get(key));
                out.merge(below(path, Step::Entry(key), |path| check(path, value, before, other)));
            }
            (None, Some(Additional::Any) | None) => {}
        }
    }
    for key in checks.into_iter().flat_map(|c| &c.required).filter(|key| !map.contains_key(*key)) {
        out.add(FieldError::required(child(path, key), ""));
    }
    out.matches += 1;
}

/// Metadata has its own rules; a schema adds some for the names only.
fn check_metadata(path: &str, value: &Value, schema: &SchemaRef, out: &mut Outcome) {
    let Some(map) = value.as_object() else {
        let text = format!("{path} in body must be of type object: {}", quote(seen(value).0));
        return out.add(FieldError::type_invalid(path, &Value::from(seen(value).0), &text));
    };
    for name in ["name", "generateName"] {
        if let (Some(value), Some(property)) = (map.get(name), schema.properties.get(name)) {
            out.merge(check(&mut child(path, name), value, None, property));
        }
    }
}

/// An object inside an object says what it is. (The root's names are checked by the server.)
fn embedded(path: &str, map: &Map<String, Value>, out: &mut Outcome) {
    if path.is_empty() {
        return;
    }
    for name in ["apiVersion", "kind"] {
        match map.get(name).and_then(Value::as_str) {
            None => out.add(FieldError::required(child(path, name), "")),
            Some("") => out.add(FieldError::required(child(path, name), "must not be empty")),
            Some(_) => {}
        }
    }
}

/// Duplicates in lists of type set and map.
fn list_types(path: &mut String, value: &Value, schema: &SchemaRef, errors: &mut Vec<FieldError>) {
    match value {
        Value::Object(map) => {
            for (key, value) in map {
                match (schema.properties.get(key), &schema.additional) {
                    (Some(property), _) => {
                        below(path, Step::Child(key), |path| list_types(path, value, property, errors));
                    }
                    (None, Some(Additional::Schema(other))) => {
                        below(path, Step::Key(key), |path| list_types(path, value, other, errors));
                    }
                    (None, Some(Additional::Any) | None) => {}
                }
            }
        }
        Value::Array(items) => {
            match &schema.list_type {
                Some(ListType::Set) => duplicates(path, items, errors),
                Some(ListType::Map(keys)) => list_map(path, items, keys, errors),
                Some(ListType::Atomic) | None => {}
            }
            if let Some(item_schema) = &schema.items {
                for (index, item) in items.iter().enumerate() {
                    below(path, Step::Index(index), |path| list_types(path, item, item_schema, errors));
                }
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// Each value that is there more than once is reported at its second place.
fn duplicates(path: &str, items: &[Value], errors: &mut Vec<FieldError>) {
    for (index, item) in items.iter().enumerate() {
        if items[..index].iter().filter(|earlier| *earlier == item).count() == 1 {
            errors.push(FieldError::duplicate(format!("{path}[{index}]"), item));
        }
    }
}

fn list_map(path: &str, items: &[Value], keys: &[String], errors: &mut Vec<FieldError>) {
    let odd = items.iter().enumerate().find(|(_, item)| !item.is_object() && !item.is_null());
    if let Some((index, item)) = odd {
        let path = format!("{path}[{index}]");
        return errors.push(FieldError::invalid(
            path,
            item,
            "must be an object for an array of list-type map",
        ));
    }
    let identities: Vec<Value> = items
        .iter()
        .map(|item| {
            let given = keys.iter().filter_map(|key| Some((key.clone(), item.get(key)?.clone())));
            Value::Object(given.collect())
        })
        .collect();
    duplicates(path, &identities, errors);
}
