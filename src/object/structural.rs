//! Says whether a CRD's schema is structural, with the errors the server gives where it is not.
//! Rules in CEL (`x-kubernetes-validations`) are compiled by whom it is told.
//! Read `schema_of`; `untyped_resource` is the schema of custom resources that have none.

use crate::facts;
use crate::schema::{
    self, FieldError, Kind, Pattern, Schema, SchemaRef, ValueRules, embed, prune, validate_at,
};
use serde_json::{Map, Value, json};
use std::sync::{Arc, OnceLock};

/// Makes the rules that span the fields of a value from the schema at a path; none where the schema has none.
pub type CompileRules = fn(&str, &Value) -> Result<Option<Arc<dyn ValueRules>>, Vec<FieldError>>;

/// The schema of a custom resource from its `openAPIV3Schema`, which stands at `path`, or what is wrong with
/// it.
pub fn schema_of(path: &str, schema: &Value, compile: CompileRules) -> Result<SchemaRef, Vec<FieldError>> {
    let mut errors = Vec::new();
    whole(schema, Level::Root, path, &mut errors);
    if !errors.is_empty() {
        errors.sort_by_key(ToString::to_string);
        errors.dedup();
        return Err(errors);
    }
    let mut root = schema::custom(schema, facts::find);
    embed(&mut root, facts::find);
    match compile(path, schema) {
        Ok(rules) => root.rules = rules,
        Err(faults) => errors.extend(faults),
    }
    let root = SchemaRef::from(root);
    defaults(schema, path, compile, &mut errors);
    if errors.is_empty() { Ok(root) } else { Err(errors) }
}

/// The schema of custom resources that have none: only `metadata` is known.
pub fn untyped_resource() -> SchemaRef {
    static UNTYPED: OnceLock<SchemaRef> = OnceLock::new();
    UNTYPED
        .get_or_init(|| {
            let mut schema = Schema { kind: Kind::Object, preserve_unknown: true, ..Schema::default() };
            embed(&mut schema, facts::find);
            schema.into()
        })
        .clone()
}

#[derive(Clone, Copy, PartialEq)]
enum Level {
    Root,
    Item,
    Field,
}

fn at(path: &str, name: &str) -> String {
    if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") }
}

fn property(path: &str, name: &str) -> String {
    format!("{}[{name}]", at(path, "properties"))
}

fn flag(schema: &Value, key: &str) -> bool {
    schema.get(key).and_then(Value::as_bool).unwrap_or(false)
}

fn fields<'a>(schema: &'a Value, key: &str) -> impl Iterator<Item = (&'a String, &'a Value)> {
    schema.get(key).and_then(Value::as_object).into_iter().flatten()
}

fn parts<'a>(schema: &'a Value, key: &str) -> impl Iterator<Item = (usize, &'a Value)> {
    schema.get(key).and_then(Value::as_array).into_iter().flatten().enumerate()
}

/// A schema that says where values go: root, field, item or additional field.
fn whole(schema: &Value, level: Level, path: &str, errors: &mut Vec<FieldError>) {
    let kind = schema.get("type").and_then(Value::as_str).unwrap_or_default();
    unsupported(schema, path, errors);
    lists_and_maps(schema, kind, path, errors);
    types(schema, kind, level, path, errors);
    match schema.get("items") {
        Some(items) if items.is_object() => whole(items, Level::Item, &at(path, "items"), errors),
        Some(Value::Array(_)) => errors
            .push(FieldError::forbidden(at(path, "items"), "items must be a schema object and not an array")),
        _ if kind == "array" => errors.push(FieldError::required(at(path, "items"), "must be specified")),
        _ => {}
    }
    for (name, schema) in fields(schema, "properties") {
        let implicit = name == "metadata" && level == Level::Root;
        if !implicit {
            whole(schema, Level::Field, &property(path, name), errors);
        }
    }
    if let Some(more) = schema.get("additionalProperties") {
        let place = at(path, "additionalProperties");
        if level == Level::Root {
            errors.push(FieldError::forbidden(place.clone(), "must not be used at the root"));
        }
        if more.is_object() {
            whole(more, Level::Field, &place, errors);
        }
    }
    metadata(schema, level, path, errors);
    value_validation(schema, level, path, errors);
}

fn unsupported(schema: &Value, path: &str, errors: &mut Vec<FieldError>) {
    if flag(schema, "uniqueItems") {
        let text = "uniqueItems cannot be set to true since the runtime complexity becomes quadratic";
        errors.push(FieldError::forbidden(at(path, "uniqueItems"), text));
    }
    match schema.get("additionalProperties") {
        // Whoever allows anything beside the properties says nothing that they do not.
        Some(more) if *more != true && fields(schema, "properties").next().is_some() => {
            errors.push(FieldError::forbidden(
                at(path, "additionalProperties"),
                "additionalProperties and properties are mutual exclusive",
            ));
        }
        _ => {}
    }
    for (key, text) in [
        ("definitions", "definitions is not supported"),
        ("dependencies", "dependencies is not supported"),
        ("patternProperties", "patternProperties is not supported"),
        ("additionalItems", "additionalItems is not supported"),
        ("id", "id is not supported"),
        ("$ref", "$ref is not supported"),
    ] {
        let filled = match schema.get(key) {
            None | Some(Value::Null) => false,
            Some(Value::Object(map)) => !map.is_empty(),
            Some(Value::String(text)) => !text.is_empty(),
            Some(_) => true,
        };
        if filled {
            errors.push(FieldError::forbidden(at(path, key), text));
        }
    }
    if schema.get("x-kubernetes-preserve-unknown-fields") == Some(&Value::Bool(false)) {
        let text = "must be true or undefined";
        errors.push(FieldError::invalid(
            at(path, "x-kubernetes-preserve-unknown-fields"),
            &json!(false),
            text,
        ));
    }
}

fn lists_and_maps(schema: &Value, kind: &str, path: &str, errors: &mut Vec<FieldError>) {
    let list_type = schema.get("x-kubernetes-list-type").and_then(Value::as_str);
    let keys: Vec<&str> =
        parts(schema, "x-kubernetes-list-map-keys").filter_map(|(_, key)| key.as_str()).collect();
    if list_type.is_some() && kind != "array" {
        let text = "must be array if x-kubernetes-list-type is specified";
        errors.push(match kind {
            "" => FieldError::required(at(path, "type"), text),
            kind => FieldError::invalid(at(path, "type"), &json!(kind), text),
        });
    }
    match list_type {
        None | Some("atomic" | "set" | "map") => {}
        Some(other) => errors.push(FieldError::not_supported(
            at(path, "x-kubernetes-list-type"),
            &json!(other),
            &["atomic", "set", "map"],
        )),
    }
    let items = &schema["items"];
    if matches!(list_type, Some("map" | "set")) && flag(items, "nullable") {
        let kind = list_type.unwrap_or_default();
        let text = format!("cannot be nullable when x-kubernetes-list-type is {kind}");
        errors.push(FieldError::forbidden(at(path, "items.nullable"), &text));
    }
    if list_type == Some("set") {
        set_items(items, path, errors);
    }
    if list_type == Some("map") {
        map_keys(items, &keys, path, errors);
    } else if !keys.is_empty() {
        let place = at(path, "x-kubernetes-list-type");
        let text = "must be map if x-kubernetes-list-map-keys is non-empty";
        errors.push(match list_type {
            None => FieldError::required(place, text),
            Some(other) => FieldError::invalid(place, &json!(other), text),
        });
    }
    if let Some(map_type) = schema.get("x-kubernetes-map-type").and_then(Value::as_str) {
        if kind != "object" {
            let text = "must be object if x-kubernetes-map-type is specified";
            errors.push(match kind {
                "" => FieldError::required(at(path, "type"), text),
                kind => FieldError::invalid(at(path, "type"), &json!(kind), text),
            });
        }
        if !matches!(map_type, "atomic" | "granular") {
            let place = at(path, "x-kubernetes-map-type");
            errors.push(FieldError::not_supported(place, &json!(map_type), &["atomic", "granular"]));
        }
    }
}

/// Items of a set are compared as a whole.
fn set_items(items: &Value, path: &str, errors: &mut Vec<FieldError>) {
    let (key, open) = match items["type"].as_str() {
        Some("object") => ("x-kubernetes-map-type", items["x-kubernetes-map-type"] != "atomic"),
        Some("array") => {
            let kind = &items["x-kubernetes-list-type"];
            ("x-kubernetes-list-type", !kind.is_null() && kind != "atomic")
        }
        _ => return,
    };
    if open {
        let text = "must be atomic as item of a list with x-kubernetes-list-type=set";
        errors.push(FieldError::invalid(at(path, &format!("items.{key}")), &items[key], text));
    }
}

fn map_keys(items: &Value, keys: &[&str], path: &str, errors: &mut Vec<FieldError>) {
    let place = at(path, "x-kubernetes-list-map-keys");
    if keys.is_empty() {
        errors
            .push(FieldError::required(place.clone(), "must not be empty if x-kubernetes-list-type is map"));
    }
    if items.is_object() && items["type"] != "object" {
        let text = "must be object if parent array's x-kubernetes-list-type is map";
        errors.push(FieldError::invalid(at(path, "items.type"), &items["type"], text));
    }
    for (index, key) in keys.iter().enumerate() {
        let known = &items["properties"][*key];
        if items["type"] == "object" && known.is_null() {
            let text = "entries must all be names of item properties";
            errors.push(FieldError::invalid(place.clone(), &json!(keys), text));
        } else if matches!(known["type"].as_str(), Some("array" | "object")) {
            let text = "must be a scalar type if parent array's x-kubernetes-list-type is map";
            let place = at(path, &format!("items.properties[{key}].type"));
            errors.push(FieldError::invalid(place, &items["type"], text));
        }
        if keys[..index].contains(key) {
            errors.push(FieldError::invalid(
                place.clone(),
                &json!(keys),
                "must not contain duplicate entries",
            ));
        }
        if flag(known, "nullable") {
            let text = "this property is in x-kubernetes-list-map-keys, so it cannot be nullable";
            errors.push(FieldError::forbidden(at(path, &format!("items.properties[{key}].nullable")), text));
        }
        let required = parts(items, "required").any(|(_, name)| name == *key);
        if !known.is_null() && !required && known.get("default").is_none() {
            let text = "this property is in x-kubernetes-list-map-keys, so it must have a default or be a required property";
            errors.push(FieldError::required(at(path, &format!("items.properties[{key}].default")), text));
        }
    }
}

fn types(schema: &Value, kind: &str, level: Level, path: &str, errors: &mut Vec<FieldError>) {
    let int_or_string = flag(schema, "x-kubernetes-int-or-string");
    let preserve = flag(schema, "x-kubernetes-preserve-unknown-fields");
    let embedded = flag(schema, "x-kubernetes-embedded-resource");
    let place = at(path, "type");
    let known = ["", "string", "number", "integer", "boolean", "array", "object"];
    if !known.contains(&kind) {
        let supported = ["array", "boolean", "integer", "number", "object", "string"];
        errors.push(FieldError::not_supported(place.clone(), &json!(kind), &supported));
    }
    for (key, set) in
        [("x-kubernetes-preserve-unknown-fields", preserve), ("x-kubernetes-embedded-resource", embedded)]
    {
        if int_or_string && set {
            let text = "must be false if x-kubernetes-int-or-string is true";
            errors.push(FieldError::invalid(at(path, key), &json!(true), text));
        }
    }
    if embedded && kind != "object" {
        let text = "must be object if x-kubernetes-embedded-resource is true";
        errors.push(match kind {
            "" => FieldError::required(place.clone(), text),
            kind => FieldError::invalid(place.clone(), &json!(kind), text),
        });
    } else if kind.is_empty() && !int_or_string && !preserve && schema.get("$ref").is_none() {
        let text = match level {
            Level::Root => "must not be empty at the root",
            Level::Item => "must not be empty for specified array items",
            Level::Field => "must not be empty for specified object fields",
        };
        errors.push(FieldError::required(place.clone(), text));
    }
    if level == Level::Root && !kind.is_empty() && kind != "object" {
        errors.push(FieldError::invalid(place, &json!(kind), "must be object at the root"));
    }
    let bare = fields(schema, "properties").next().is_none();
    if embedded && !preserve && bare {
        let text = "must not be empty if x-kubernetes-embedded-resource is true without x-kubernetes-preserve-unknown-fields";
        errors.push(FieldError::required(at(path, "properties"), text));
    }
    if embedded && schema.get("additionalProperties").is_some() {
        let text = "must not be used if x-kubernetes-embedded-resource is set";
        errors.push(FieldError::forbidden(at(path, "additionalProperties"), text));
    }
}

fn metadata(schema: &Value, level: Level, path: &str, errors: &mut Vec<FieldError>) {
    if level != Level::Root && !flag(schema, "x-kubernetes-embedded-resource") {
        return;
    }
    let properties = &schema["properties"];
    for name in ["kind", "apiVersion"] {
        if let Some(found) = properties.get(name)
            && found["type"] != "string"
        {
            let value = found.get("type").cloned().unwrap_or_else(|| json!(""));
            errors.push(FieldError::invalid(
                format!("{}.type", property(path, name)),
                &value,
                "must be string",
            ));
        }
    }
    let Some(found) = properties.get("metadata") else { return };
    let place = property(path, "metadata");
    if found["type"] != "object" {
        let value = found.get("type").cloned().unwrap_or_else(|| json!(""));
        errors.push(FieldError::invalid(format!("{place}.type"), &value, "must be object"));
    }
    let plain = |(key, value): (&String, &Value)| match key.as_str() {
        "type" | "description" | "title" => true,
        "properties" => {
            fields(&json!({"p": value}), "p").all(|(name, _)| name == "name" || name == "generateName")
        }
        _ => false,
    };
    if level == Level::Root && !found.as_object().is_none_or(|map| map.iter().all(plain)) {
        let text = "must not specify anything other than name and generateName, but metadata is implicitly specified";
        errors.push(FieldError::forbidden(place, text));
    }
}

fn int_or_string_choice(choice: Option<&Value>) -> bool {
    choice == Some(&json!([{"type": "integer"}, {"type": "string"}]))
}

fn value_validation(schema: &Value, level: Level, path: &str, errors: &mut Vec<FieldError>) {
    let free = flag(schema, "x-kubernetes-int-or-string");
    if !(free && int_or_string_choice(schema.get("anyOf"))) {
        for (i, part) in parts(schema, "anyOf") {
            nested(part, level, &format!("{}[{i}]", at(path, "anyOf")), errors);
        }
    }
    for (i, part) in parts(schema, "allOf") {
        if i == 0
            && free
            && part.as_object().is_some_and(|map| map.len() == 1)
            && int_or_string_choice(part.get("anyOf"))
        {
            continue;
        }
        nested(part, level, &format!("{}[{i}]", at(path, "allOf")), errors);
    }
    for (i, part) in parts(schema, "oneOf") {
        nested(part, level, &format!("{}[{i}]", at(path, "oneOf")), errors);
    }
    if let Some(part) = schema.get("not").filter(|part| part.is_object()) {
        nested(part, level, &at(path, "not"), errors);
    }
    if let Some(pattern) = schema.get("pattern").and_then(Value::as_str)
        && let Err(error) = Pattern::new(pattern).is_match("")
    {
        let text = format!("must be a valid regular expression, but isn't: error parsing regexp: {error}");
        errors.push(FieldError::invalid(at(path, "pattern"), &json!(pattern), &text));
    }
}

/// Inside allOf, anyOf, oneOf and not, only values are judged; types stand outside.
fn nested(schema: &Value, level: Level, path: &str, errors: &mut Vec<FieldError>) {
    value_validation(schema, level, path, errors);
    if let Some(items) = schema.get("items").filter(|items| items.is_object()) {
        nested(items, level, &at(path, "items"), errors);
    }
    for (name, part) in fields(schema, "properties") {
        nested(part, Level::Field, &property(path, name), errors);
    }
    let empty = Map::new();
    let map = schema.as_object().unwrap_or(&empty);
    for (key, text) in [
        ("type", "must be empty to be structural"),
        ("additionalProperties", "must be undefined to be structural"),
        ("default", "must be undefined to be structural"),
        ("title", "must be empty to be structural"),
        ("description", "must be empty to be structural"),
        ("nullable", "must be false to be structural"),
        ("x-kubernetes-preserve-unknown-fields", "must be false to be structural"),
        ("x-kubernetes-embedded-resource", "must be false to be structural"),
        ("x-kubernetes-int-or-string", "must be false to be structural"),
        ("x-kubernetes-list-map-keys", "must be empty to be structural"),
        ("x-kubernetes-list-type", "must be undefined to be structural"),
        ("x-kubernetes-map-type", "must be undefined to be structural"),
        ("x-kubernetes-validations", "must be empty to be structural"),
    ] {
        let set = map.get(key).is_some_and(|value| match value {
            Value::Bool(on) => *on,
            Value::String(text) => !text.is_empty(),
            Value::Array(list) => !list.is_empty(),
            Value::Null => key == "default",
            Value::Object(_) | Value::Number(_) => true,
        });
        if set {
            errors.push(FieldError::forbidden(at(path, key), text));
        }
    }
    if schema["properties"].get("metadata").is_some() {
        let text = "must not be specified in a nested context";
        errors.push(FieldError::forbidden(property(path, "metadata"), text));
    }
}

/// Defaults obey the schema they stand in.
fn defaults(schema: &Value, path: &str, compile: CompileRules, errors: &mut Vec<FieldError>) {
    if let Some(default) = schema.get("default").filter(|default| !default.is_null()) {
        let place = at(path, "default");
        let own = SchemaRef::from(schema::custom(schema, facts::find));
        let mut pruned = default.clone();
        if !prune(&mut pruned, &own).is_empty() {
            errors.push(FieldError::invalid(place.clone(), default, "must not have unknown fields"));
        }
        schema::default(&mut pruned, &own);
        let mut wrong = validate_at("", &pruned, &own);
        if let Ok(Some(rules)) = compile("", schema) {
            wrong.extend(rules.validate(&pruned, None, &own));
        }
        // A server names the place, and in its words the place within the default.
        errors.extend(wrong.into_iter().map(|error| {
            let inside = match error.path.as_str() {
                "<nil>" | "" => place.clone(),
                path if path.starts_with('[') => format!("{place}{path}"),
                path => format!("{place}.{path}"),
            };
            FieldError { path: inside, ..error }
        }));
    }
    for (name, schema) in fields(schema, "properties") {
        defaults(schema, &property(path, name), compile, errors);
    }
    for key in ["items", "additionalProperties"] {
        if let Some(part) = schema.get(key).filter(|part| part.is_object()) {
            defaults(part, &at(path, key), compile, errors);
        }
    }
}

/// The schema without rules in CEL, for tests of this package.
#[cfg(test)]
pub(crate) fn structural(schema: &Value) -> Result<SchemaRef, Vec<FieldError>> {
    schema_of("", schema, |_, _| Ok(None))
}
