//! OpenAPI schema objects read into `Schema`: built-in definitions with `$ref`s, and CRD schemas.
//! Reads what it understands and never fails; `structural` says what is wrong with a CRD's schema.

use super::formats;
use super::model::{
    Additional, Checks, Find, Kind, ListType, MapType, OBJECT_META, PatchRule, Schema, SchemaRef, Site,
    Target,
};
use super::pattern::Pattern;
use serde_json::Value;
use std::sync::Arc;

/// The parameters of reading a schema.
#[derive(Clone, Copy)]
struct Reading {
    /// Finds the built-in definitions.
    find: Find,
    /// It is a built-in one itself, so that `$ref`s are followed.
    built_in: bool,
}

/// The schema of a built-in definition.
pub(super) fn definition(raw: &Value, find: Find) -> Schema {
    let mut schema = read(raw, Reading { find, built_in: true });
    // An object without properties is free-form.
    let open = matches!(schema.kind, Kind::Any | Kind::Object);
    if open && schema.properties.is_empty() && schema.additional.is_none() {
        schema.preserve_unknown = true;
    }
    schema
}

/// A CRD's schema; `find` gives the definition of `metadata`.
pub(crate) fn custom(raw: &Value, find: Find) -> Schema {
    read(raw, Reading { find, built_in: false })
}

fn text(raw: &Value, key: &str) -> Option<String> {
    raw.get(key).and_then(Value::as_str).filter(|s| !s.is_empty()).map(str::to_owned)
}

fn flag(raw: &Value, key: &str) -> bool {
    raw.get(key).and_then(Value::as_bool).unwrap_or(false)
}

fn list<'a>(raw: &'a Value, key: &str) -> impl Iterator<Item = &'a Value> {
    raw.get(key).and_then(Value::as_array).into_iter().flatten()
}

fn strings(raw: &Value, key: &str) -> Vec<String> {
    list(raw, key).filter_map(Value::as_str).map(str::to_owned).collect()
}

/// The schema at one place: a reference with what stands beside it, or an inline schema.
fn place(raw: &Value, reading: Reading) -> SchemaRef {
    if !reading.built_in {
        return read(raw, reading).into();
    }
    let only = raw.get("allOf").and_then(Value::as_array).filter(|all| all.len() == 1).map(|all| &all[0]);
    let name = raw.get("$ref").or_else(|| only?.get("$ref")).and_then(Value::as_str);
    match name.and_then(|name| (reading.find)(name.trim_start_matches("#/components/schemas/"))) {
        Some(definition) => SchemaRef { target: Target::Named(definition), site: site(raw) },
        None => read(raw, reading).into(),
    }
}

fn site(raw: &Value) -> Option<Arc<Site>> {
    let patch = patch_rule(raw);
    let site = Site {
        default: raw.get("default").cloned(),
        map_type: map_type(raw),
        patch: (patch != PatchRule::default()).then_some(patch),
        nullable: flag(raw, "nullable"),
    };
    let plain = site.default.is_none() && site.map_type.is_none() && site.patch.is_none() && !site.nullable;
    (!plain).then(|| Arc::new(site))
}

fn read(raw: &Value, reading: Reading) -> Schema {
    let kind = kind(raw);
    let mut schema = Schema {
        kind,
        format: text(raw, "format").filter(|format| formats::is_checked(kind, format)),
        nullable: flag(raw, "nullable"),
        additional: additional(raw, reading),
        items: raw.get("items").filter(|items| items.is_object()).map(|items| place(items, reading)),
        preserve_unknown: flag(raw, "x-kubernetes-preserve-unknown-fields"),
        list_type: list_type(raw, kind),
        map_type: map_type(raw),
        checks: checks(raw, reading),
        own_default: raw.get("default").cloned(),
        own_patch: patch_rule(raw),
        ..Schema::default()
    };
    for (name, property) in raw.get("properties").and_then(Value::as_object).into_iter().flatten() {
        schema.properties.insert(name.clone(), place(property, reading));
    }
    if flag(raw, "x-kubernetes-embedded-resource") {
        embed(&mut schema, reading.find);
    }
    schema
}

/// Makes an object schema one of a whole resource: apiVersion, kind and metadata are known.
pub(crate) fn embed(schema: &mut Schema, find: Find) {
    schema.embedded_resource = true;
    for name in ["apiVersion", "kind"] {
        let text = || Schema { kind: Kind::String, ..Schema::default() }.into();
        schema.properties.entry(name.to_owned()).or_insert_with(text);
    }
    let Some(known) = find(OBJECT_META).map(SchemaRef::of_definition) else { return };
    let given = schema.properties.remove("metadata");
    let named: Vec<(String, SchemaRef)> = given
        .iter()
        .flat_map(|given| &given.properties)
        .filter(|(name, _)| matches!(name.as_str(), "name" | "generateName"))
        .map(|(name, property)| (name.clone(), property.clone()))
        .collect();
    let metadata = if named.is_empty() {
        known
    } else {
        let mut own = Schema::clone(&known);
        own.properties.extend(named);
        own.into()
    };
    schema.properties.insert("metadata".to_owned(), metadata);
}

fn kind(raw: &Value) -> Kind {
    if flag(raw, "x-kubernetes-int-or-string") || raw["format"] == "int-or-string" {
        return Kind::IntOrString;
    }
    match raw.get("type").and_then(Value::as_str) {
        Some("object") => Kind::Object,
        Some("array") => Kind::Array,
        Some("string") => Kind::String,
        Some("integer") => Kind::Integer,
        Some("number") => Kind::Number,
        Some("boolean") => Kind::Boolean,
        _ => Kind::Any,
    }
}

fn additional(raw: &Value, reading: Reading) -> Option<Additional> {
    match raw.get("additionalProperties")? {
        Value::Bool(true) => Some(Additional::Any),
        Value::Object(_) => {
            let schema = place(&raw["additionalProperties"], reading);
            // A null in a built-in map of strings is read as the empty string. (A definition is not looked
            // into here: it may be the one that is being read.)
            if reading.built_in
                && let Target::Own(own) = &schema.target
                && own.kind == Kind::String
                && own.own_default.is_none()
            {
                let mut own = Schema::clone(own);
                own.own_default = Some(Value::String(String::new()));
                return Some(Additional::Schema(own.into()));
            }
            Some(Additional::Schema(schema))
        }
        _ => None,
    }
}

fn list_type(raw: &Value, kind: Kind) -> Option<ListType> {
    match raw.get("x-kubernetes-list-type").and_then(Value::as_str) {
        Some("set") => Some(ListType::Set),
        Some("map") => Some(ListType::Map(strings(raw, "x-kubernetes-list-map-keys"))),
        Some(_) => Some(ListType::Atomic),
        None if kind == Kind::Array => {
            let rule = patch_rule(raw);
            match rule.merge_key {
                Some(key) if rule.merge => Some(ListType::Map(vec![key])),
                None if rule.merge => Some(ListType::Set),
                _ => None,
            }
        }
        None => None,
    }
}

fn map_type(raw: &Value) -> Option<MapType> {
    match raw.get("x-kubernetes-map-type").and_then(Value::as_str)? {
        "atomic" => Some(MapType::Atomic),
        _ => Some(MapType::Granular),
    }
}

fn patch_rule(raw: &Value) -> PatchRule {
    let strategy = text(raw, "x-kubernetes-patch-strategy").unwrap_or_default();
    let has = |word: &str| strategy.split(',').any(|part| part == word);
    PatchRule {
        merge_key: text(raw, "x-kubernetes-patch-merge-key"),
        merge: has("merge"),
        retain_keys: has("retainKeys"),
        replace: has("replace"),
    }
}

fn checks(raw: &Value, reading: Reading) -> Option<Box<Checks>> {
    const KEYS: [&str; 18] = [
        "required",
        "enum",
        "maximum",
        "minimum",
        "multipleOf",
        "maxLength",
        "minLength",
        "pattern",
        "maxItems",
        "minItems",
        "uniqueItems",
        "maxProperties",
        "minProperties",
        "allOf",
        "anyOf",
        "oneOf",
        "not",
        "exclusiveMinimum",
    ];
    if !KEYS.iter().any(|key| raw.get(*key).is_some()) {
        return None;
    }
    let number = |key: &str| raw.get(key).and_then(Value::as_f64);
    let count =
        |key: &str| raw.get(key).and_then(|v| v.as_i64().or_else(|| v.as_f64().map(|float| float as i64)));
    let schemas = |key: &str| list(raw, key).map(|part| place(part, reading)).collect();
    Some(Box::new(Checks {
        required: strings(raw, "required"),
        enumeration: list(raw, "enum").cloned().collect(),
        maximum: number("maximum"),
        exclusive_maximum: flag(raw, "exclusiveMaximum"),
        minimum: number("minimum"),
        exclusive_minimum: flag(raw, "exclusiveMinimum"),
        multiple_of: number("multipleOf"),
        max_length: count("maxLength"),
        min_length: count("minLength"),
        pattern: text(raw, "pattern").map(|pattern| Pattern::new(&pattern)),
        max_items: count("maxItems"),
        min_items: count("minItems"),
        unique_items: flag(raw, "uniqueItems"),
        max_properties: count("maxProperties"),
        min_properties: count("minProperties"),
        all_of: schemas("allOf"),
        any_of: schemas("anyOf"),
        one_of: schemas("oneOf"),
        not: raw.get("not").filter(|not| not.is_object()).map(|not| place(not, reading)),
    }))
}
