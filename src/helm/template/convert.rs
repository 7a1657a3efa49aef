//! Values from and to JSON trees, the form objects have outside the template engine, and from Rust's own
//! types.

use serde_json::Value as Json;

use super::value::{Elem, List, Map, UintKind, Value};

impl Value {
    /// The value of a JSON tree: integers become `int64`, other numbers `float64`.
    #[must_use]
    pub fn from_json(json: &Json) -> Value {
        match json {
            Json::Null => Value::Nil,
            Json::Bool(b) => Value::Bool(*b),
            Json::Number(n) => match (n.as_i64(), n.as_u64()) {
                (Some(n), _) => Value::Int64(n),
                (None, Some(n)) => Value::Uint(UintKind::U64, n),
                _ => Value::Float(n.as_f64().unwrap_or(0.0)),
            },
            Json::String(text) => Value::str(text.as_str()),
            Json::Array(items) => Value::list(items.iter().map(Value::from_json).collect()),
            Json::Object(entries) => {
                Value::Map(Map::from_entries(entries.iter().map(|(k, v)| (k.as_str(), Value::from_json(v)))))
            }
        }
    }

    /// As `from_json`, with every number a `float64`, as Go's encoding/json reads them.
    #[must_use]
    pub fn from_json_floats(json: &Json) -> Value {
        match json {
            Json::Number(n) => Value::Float(n.as_f64().unwrap_or(0.0)),
            Json::Array(items) => Value::list(items.iter().map(Value::from_json_floats).collect()),
            Json::Object(entries) => Value::Map(Map::from_entries(
                entries.iter().map(|(k, v)| (k.as_str(), Value::from_json_floats(v))),
            )),
            _ => Value::from_json(json),
        }
    }

    /// The JSON tree. Numbers that have no JSON form, and bytes that are not UTF-8, are replaced as Go
    /// replaces them.
    #[must_use]
    pub fn to_json(&self) -> Json {
        match self {
            Value::Nil => Json::Null,
            Value::Bool(b) => Json::Bool(*b),
            Value::Int(n) | Value::Int64(n) => Json::from(*n),
            Value::Uint(_, n) => Json::from(*n),
            Value::Float(f) => serde_json::Number::from_f64(*f).map_or(Json::Null, Json::Number),
            Value::Str(text) => Json::String(text.text().into_owned()),
            Value::List(list) => list_to_json(list),
            Value::Map(map) if map.is_nil() => Json::Null,
            Value::Map(map) => {
                let entries = map.snapshot();
                Json::Object(entries.iter().map(|(k, v)| (k.text().into_owned(), v.to_json())).collect())
            }
            Value::Host(host) => host.to_json(),
        }
    }
}

fn list_to_json(list: &List) -> Json {
    use base64::Engine as _;
    if list.is_nil() {
        return Json::Null;
    }
    if list.elem() == Elem::Byte {
        return Json::String(base64::engine::general_purpose::STANDARD.encode(list.to_bytes()));
    }
    Json::Array(list.items().iter().map(Value::to_json).collect())
}

impl From<bool> for Value {
    fn from(b: bool) -> Value {
        Value::Bool(b)
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Value {
        Value::str(text)
    }
}

impl From<String> for Value {
    fn from(text: String) -> Value {
        Value::str(text)
    }
}

impl From<Vec<u8>> for Value {
    fn from(bytes: Vec<u8>) -> Value {
        Value::str(bytes)
    }
}

impl From<Map> for Value {
    fn from(map: Map) -> Value {
        Value::Map(map)
    }
}

impl From<List> for Value {
    fn from(list: List) -> Value {
        Value::List(list)
    }
}
