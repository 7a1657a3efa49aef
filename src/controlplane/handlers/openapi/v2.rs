//! `/openapi/v2`: one Swagger document for all groups and versions, made of the v3 documents. kubectl asks
//! for it where v3 does not know a kind; older clients, and those that look definitions up by kind, read
//! nothing else. Swagger cannot say everything: what may be null, is open or is one of several schemas loses
//! its type, as on the real server.

use super::{JSON, v2_protobuf};
use crate::discovery::{Document, Group};
use crate::negotiation;
use bytes::Bytes;
use http::HeaderMap;
use opdev_apimachinery::protobuf;
use opdev_apimachinery::version::git_version;
use opdev_object::descriptions::Descriptions;
use serde_json::{Map, Value, json};

/// How a client asks for protobuf, without `application/`.
const PROTOBUF_ASKED: [&str; 2] =
    ["com.github.proto-openapi.spec.v2@v1.0+protobuf", "com.github.proto-openapi.spec.v2.v1.0+protobuf"];
/// The media type of the answer. Upstream gave up the `@` here, which no media type may have.
const PROTOBUF: &str = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf";

/// The encoding of the document.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Form {
    Json,
    Protobuf,
}

impl Form {
    pub(super) const ALL: [&str; 2] = [JSON, PROTOBUF];

    /// The first form that the client takes.
    pub(super) fn asked(headers: &HeaderMap) -> Option<Form> {
        negotiation::clauses(headers).iter().find_map(|clause| {
            if clause.takes("json") {
                Some(Form::Json)
            } else {
                PROTOBUF_ASKED.iter().any(|name| clause.takes(name)).then_some(Form::Protobuf)
            }
        })
    }

    pub(super) fn media_type(self) -> &'static str {
        match self {
            Form::Json => JSON,
            Form::Protobuf => PROTOBUF,
        }
    }

    /// Writes the document of everything that is served.
    pub(super) fn write(self, groups: &[Group]) -> Result<Document, protobuf::Error> {
        let document = document(groups);
        Ok(match self {
            Form::Json => Document::new(&document),
            Form::Protobuf => Document::of_bytes(Bytes::from(v2_protobuf::encode(&document)?)),
        })
    }
}

fn document(groups: &[Group]) -> Value {
    let (mut paths, mut definitions) = (Map::new(), Map::new());
    let descriptions = Descriptions::read();
    for group in groups {
        for (version, resources) in &group.versions {
            let mut whole = super::build(&group.name, version, resources, &descriptions);
            if let Value::Object(found) = whole["paths"].take() {
                paths.extend(found.into_iter().map(|(path, item)| (path, path_item(item))));
            }
            let Value::Object(found) = whole["components"]["schemas"].take() else { continue };
            for (name, found) in found {
                add(&mut definitions, name, whole_kind(found));
            }
        }
    }
    json!({
        "swagger": "2.0",
        "info": {"title": "Kubernetes", "version": git_version()},
        "paths": paths,
        "definitions": definitions,
    })
}

const MARKS: &str = "x-kubernetes-group-version-kind";

/// A definition. Of a kind whose objects may have any field nothing else is said: clients would take what is
/// said for all that there may be.
fn whole_kind(found: Value) -> Value {
    if found["x-kubernetes-preserve-unknown-fields"] == true && found[MARKS].is_array() {
        return json!({"type": "object", MARKS: found[MARKS]});
    }
    schema(found)
}

/// Kinds that many groups share are marked in each document for its own group and version.
fn add(definitions: &mut Map<String, Value>, name: String, mut new: Value) {
    let Some(known) = definitions.get_mut(&name) else {
        definitions.insert(name, new);
        return;
    };
    if let (Some(known), Some(Value::Array(new))) =
        (known.get_mut(MARKS).and_then(Value::as_array_mut), new.get_mut(MARKS).map(Value::take))
    {
        let new: Vec<Value> = new.into_iter().filter(|mark| !known.contains(mark)).collect();
        known.extend(new);
    }
}

fn schema(value: Value) -> Value {
    let Value::Object(mut fields) = value else { return value };
    if let Some(whole) = fields.remove("allOf")
        && let Some(reference) = whole.get(0).and_then(|only| only.get("$ref"))
    {
        fields.insert("$ref".to_owned(), reference.clone());
    }
    if let Some(Value::String(reference)) = fields.get_mut("$ref") {
        *reference = reference.replace("#/components/schemas/", "#/definitions/");
    }
    let is = |fields: &Map<String, Value>, mark: &str| fields.get(mark) == Some(&Value::Bool(true));
    // Quantities and such: several types, of which Swagger names the first. A definition's rules name its own
    // mark.
    let several = fields.contains_key("oneOf") && !fields.contains_key("type");
    if several && !is(&fields, "x-kubernetes-int-or-string") {
        fields.insert("type".to_owned(), json!("string"));
    }
    for unknown in ["default", "oneOf", "anyOf", "not"] {
        fields.remove(unknown);
    }
    let open = is(&fields, "x-kubernetes-preserve-unknown-fields");
    let mut optional: Vec<String> = Vec::new();
    if fields.remove("nullable") == Some(Value::Bool(true)) || open {
        for part in ["type", "items", "properties", "additionalProperties"] {
            fields.remove(part);
        }
        if open && is(&fields, "x-kubernetes-embedded-resource") {
            optional = vec!["apiVersion".to_owned(), "kind".to_owned()];
        }
    }
    if let Some(Value::Object(properties)) = fields.get_mut("properties") {
        let nullable = properties.iter().filter(|(_, property)| property["nullable"] == true);
        optional = nullable.map(|(name, _)| name.clone()).collect();
        properties.values_mut().for_each(|property| *property = schema(property.take()));
    }
    for part in ["items", "additionalProperties"] {
        if let Some(inner) = fields.get_mut(part) {
            *inner = schema(inner.take());
        }
    }
    if let Some(Value::Array(required)) = fields.get_mut("required") {
        required.retain(|name| !optional.iter().any(|optional| name == optional));
        if required.is_empty() {
            fields.remove("required");
        }
    }
    Value::Object(fields)
}

fn path_item(item: Value) -> Value {
    let Value::Object(item) = item else { return item };
    let part = |(name, value): (String, Value)| {
        let value = if name == "parameters" { parameters(value) } else { operation(value) };
        (name, value)
    };
    Value::Object(item.into_iter().map(part).collect())
}

fn parameters(all: Value) -> Value {
    let Value::Array(mut all) = all else { return json!([]) };
    for parameter in &mut all {
        let Value::Object(schema) = parameter["schema"].take() else { continue };
        if let Some(fields) = parameter.as_object_mut() {
            fields.remove("schema");
            fields.extend(schema);
        }
    }
    Value::Array(all)
}

fn operation(mut operation: Value) -> Value {
    let said = operation.as_object_mut().and_then(|fields| fields.remove("parameters"));
    let Value::Array(mut all) = parameters(said.unwrap_or_default()) else { return operation };
    let mut consumes = vec!["*/*".to_owned()];
    if let Some(mut body) = operation.get_mut("requestBody").map(Value::take) {
        if let Some(content) = body["content"].as_object_mut() {
            consumes = content.keys().cloned().collect();
            let of = content.values_mut().next().map(|media| schema(media["schema"].take()));
            let mut parameter = json!({"name": "body", "in": "body", "schema": of});
            if body["required"] == true {
                parameter["required"] = json!(true);
            }
            all.insert(0, parameter);
        }
        operation.as_object_mut().map(|fields| fields.remove("requestBody"));
    }
    if let Some(responses) = operation["responses"].as_object_mut() {
        for response in responses.values_mut() {
            let of = schema(response["content"][JSON]["schema"].take());
            *response = json!({"description": response["description"], "schema": of});
        }
    }
    if !all.is_empty() {
        operation["parameters"] = Value::Array(all);
    }
    operation["consumes"] = json!(consumes);
    operation["produces"] = json!([JSON, "application/yaml"]);
    operation["schemes"] = json!(["https"]);
    operation
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::header::ACCEPT;

    #[test]
    fn forms_are_asked_for_by_media_type() {
        for (accept, form) in [
            ("application/json", Some(Form::Json)),
            ("text/html, application/json;q=0.1", Some(Form::Json)),
            ("*/*", Some(Form::Json)),
            ("application/com.github.proto-openapi.spec.v2@v1.0+protobuf", Some(Form::Protobuf)),
            ("text/html", None),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(ACCEPT, accept.parse().unwrap());
            assert_eq!(Form::asked(&headers), form, "{accept}");
        }
    }

    #[test]
    fn a_kind_that_may_have_any_field_is_an_object_and_no_more() {
        let marks = json!([{"group": "g", "version": "v1", "kind": "K"}]);
        let open = json!({"type": "object", "description": "d", "x-kubernetes-preserve-unknown-fields": true,
            "properties": {"spec": {"type": "object"}}, MARKS: marks});
        assert_eq!(whole_kind(open), json!({"type": "object", MARKS: marks}));
        let bare = json!({"responses": {}});
        assert!(operation(bare).get("parameters").is_none(), "nothing is said of no parameters");
    }

    #[test]
    fn what_swagger_cannot_say_is_left_out_as_by_the_real_server() {
        for (v3, v2) in [
            (
                json!({"allOf": [{"$ref": "#/components/schemas/x.A"}], "default": {}, "description": "d"}),
                json!({"$ref": "#/definitions/x.A", "description": "d"}),
            ),
            (
                json!({"oneOf": [{"type": "integer"}, {"type": "string"}], "format": "int-or-string"}),
                json!({"type": "string", "format": "int-or-string"}),
            ),
            (
                json!({"type": "object", "required": ["a", "b"], "properties": {
                    "a": {"type": "string", "default": "x"},
                    "b": {"type": "array", "nullable": true, "items": {"type": "string"}, "description": "b"}}}),
                json!({"type": "object", "required": ["a"], "properties": {
                    "a": {"type": "string"}, "b": {"description": "b"}}}),
            ),
            (
                json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true, "required": ["c"],
                    "properties": {"c": {"type": "string"}}}),
                json!({"x-kubernetes-preserve-unknown-fields": true, "required": ["c"]}),
            ),
            (
                json!({"type": "object", "x-kubernetes-embedded-resource": true, "required": ["kind", "apiVersion"],
                    "x-kubernetes-preserve-unknown-fields": true, "properties": {"kind": {"type": "string"}}}),
                json!({"x-kubernetes-embedded-resource": true, "x-kubernetes-preserve-unknown-fields": true}),
            ),
            (
                json!({"type": "object", "additionalProperties": {"type": "string", "nullable": true}}),
                json!({"type": "object", "additionalProperties": {}}),
            ),
        ] {
            assert_eq!(schema(v3), v2);
        }
    }
}
