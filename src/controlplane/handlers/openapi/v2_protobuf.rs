//! The Swagger document as message `openapi.v2.Document`, which client-go asks for. Numbers are those of
//! gnostic's `OpenAPIv2.proto`; what has no field of its own there, such as `x-kubernetes-…`, is written as
//! YAML.

use opdev_apimachinery::protobuf;
use opdev_apimachinery::protobuf::encode::{bytes, double_field, message_field, text, varint_field};
use serde_json::Value;

type Done = Result<(), protobuf::Error>;

/// Writes a whole document.
pub(super) fn encode(document: &Value) -> Result<Vec<u8>, protobuf::Error> {
    let out = &mut Vec::new();
    texts(out, document, &[("swagger", 1)]);
    message_field(out, 2, |out| {
        texts(out, &document["info"], &[("title", 1), ("version", 2)]);
        Ok(())
    })?;
    message_field(out, 8, |out| named(out, 2, &document["paths"], path_item))?;
    message_field(out, 9, |out| named(out, 1, &document["definitions"], schema))?;
    Ok(std::mem::take(out))
}

/// A map as a list of names and values.
fn named(out: &mut Vec<u8>, number: u64, map: &Value, one: fn(&mut Vec<u8>, &Value) -> Done) -> Done {
    for (name, value) in map.as_object().into_iter().flatten() {
        message_field(out, number, |out| {
            text(out, 1, name);
            message_field(out, 2, |out| one(out, value))
        })?;
    }
    Ok(())
}

fn texts(out: &mut Vec<u8>, of: &Value, fields: &[(&str, u64)]) {
    for (name, number) in fields {
        if let Some(value) = of[*name].as_str() {
            text(out, *number, value);
        }
    }
}

fn list(out: &mut Vec<u8>, number: u64, of: &Value) {
    of.as_array().into_iter().flatten().filter_map(Value::as_str).for_each(|one| text(out, number, one));
}

fn flags(out: &mut Vec<u8>, of: &Value, fields: &[(&str, u64)]) {
    for (name, number) in fields {
        if of[*name] == true {
            varint_field(out, *number, 1);
        }
    }
}

/// Message `Any`, by its text.
fn any(out: &mut Vec<u8>, number: u64, value: &Value) -> Done {
    message_field(out, number, |out| {
        // JSON is YAML.
        text(out, 2, &value.to_string());
        Ok(())
    })
}

fn extensions(out: &mut Vec<u8>, number: u64, of: &Value) -> Done {
    let marks = of.as_object().into_iter().flatten().filter(|(name, _)| name.starts_with("x-"));
    for (name, value) in marks {
        message_field(out, number, |out| {
            text(out, 1, name);
            any(out, 2, value)
        })?;
    }
    Ok(())
}

fn schema(out: &mut Vec<u8>, of: &Value) -> Done {
    texts(out, of, &[("$ref", 1), ("format", 2), ("title", 3), ("description", 4), ("pattern", 13)]);
    for (name, number) in [("multipleOf", 6), ("maximum", 7), ("minimum", 9)] {
        if let Some(value) = of[name].as_f64().filter(|value| *value != 0.0) {
            double_field(out, number, value);
        }
    }
    flags(out, of, &[("exclusiveMaximum", 8), ("exclusiveMinimum", 10), ("uniqueItems", 16)]);
    for (name, number) in [
        ("maxLength", 11),
        ("minLength", 12),
        ("maxItems", 14),
        ("minItems", 15),
        ("maxProperties", 17),
        ("minProperties", 18),
    ] {
        if let Some(value) = of[name].as_u64().filter(|value| *value != 0) {
            varint_field(out, number, value);
        }
    }
    list(out, 19, &of["required"]);
    for value in of["enum"].as_array().into_iter().flatten() {
        any(out, 20, value)?;
    }
    match &of["additionalProperties"] {
        Value::Bool(open) => message_field(out, 21, |out| {
            varint_field(out, 2, u64::from(*open));
            Ok(())
        })?,
        Value::Null => {}
        inner => message_field(out, 21, |out| message_field(out, 1, |out| schema(out, inner)))?,
    }
    if let Some(kind) = of["type"].as_str() {
        message_field(out, 22, |out| {
            text(out, 1, kind);
            Ok(())
        })?;
    }
    if !of["items"].is_null() {
        message_field(out, 23, |out| message_field(out, 1, |out| schema(out, &of["items"])))?;
    }
    if of["properties"].is_object() {
        message_field(out, 25, |out| named(out, 1, &of["properties"], schema))?;
    }
    if of["externalDocs"].is_object() {
        message_field(out, 29, |out| {
            texts(out, &of["externalDocs"], &[("description", 1), ("url", 2)]);
            Ok(())
        })?;
    }
    if !of["example"].is_null() {
        any(out, 30, &of["example"])?;
    }
    extensions(out, 31, of)
}

fn path_item(out: &mut Vec<u8>, of: &Value) -> Done {
    for (name, number) in [("get", 2), ("put", 3), ("post", 4), ("delete", 5), ("patch", 8)] {
        if of[name].is_object() {
            message_field(out, number, |out| operation(out, &of[name]))?;
        }
    }
    parameters(out, 9, &of["parameters"])
}

fn operation(out: &mut Vec<u8>, of: &Value) -> Done {
    list(out, 1, &of["tags"]);
    list(out, 6, &of["produces"]);
    list(out, 7, &of["consumes"]);
    parameters(out, 8, &of["parameters"])?;
    message_field(out, 9, |out| {
        named(out, 1, &of["responses"], |out, response| {
            message_field(out, 1, |out| {
                texts(out, response, &[("description", 1)]);
                message_field(out, 2, |out| message_field(out, 1, |out| schema(out, &response["schema"])))
            })
        })
    })?;
    list(out, 10, &of["schemes"]);
    extensions(out, 13, of)
}

fn parameters(out: &mut Vec<u8>, number: u64, all: &Value) -> Done {
    for one in all.as_array().into_iter().flatten() {
        let inside = &mut Vec::new();
        let kind = match one["in"].as_str() {
            Some("body") => {
                texts(inside, one, &[("name", 2), ("in", 3)]);
                flags(inside, one, &[("required", 4)]);
                message_field(inside, 5, |out| schema(out, &one["schema"]))?;
                1
            }
            place => {
                let path = place == Some("path");
                // The messages for a path and for a query count differently from here on.
                let (kind, unique, which) = if path { (5, 19, 4) } else { (6, 20, 3) };
                let fields = &mut Vec::new();
                flags(fields, one, &[("required", 1)]);
                texts(fields, one, &[("in", 2), ("name", 4), ("type", kind)]);
                flags(fields, one, &[("uniqueItems", unique)]);
                bytes(inside, which, fields);
                2
            }
        };
        message_field(out, number, |out| {
            message_field(out, 1, |out| {
                bytes(out, kind, inside);
                Ok(())
            })
        })?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_definition_stands_where_client_go_looks_for_it() {
        let document = json!({"swagger": "2.0", "info": {"title": "t"}, "paths": {},
            "definitions": {"a": {"type": "string", "minLength": 1, "x-y": [1]}}});
        let extension = [&b"\x0a\x03x-y\x12\x05\x12\x03[1]"[..]].concat();
        let schema = [&b"\x60\x01\xb2\x01\x08\x0a\x06string\xfa\x01\x0c"[..], &extension].concat();
        let named = [&b"\x0a\x01a\x12"[..], &[u8::try_from(schema.len()).unwrap()], &schema].concat();
        let definitions = [&[0x0a, u8::try_from(named.len()).unwrap()], &named[..]].concat();
        let start = b"\x0a\x032.0\x12\x03\x0a\x01t\x42\x00\x4a";
        let expected = [&start[..], &[u8::try_from(definitions.len()).unwrap()], &definitions].concat();
        assert_eq!(encode(&document).unwrap(), expected);
    }
}
