//! Field sets as `fieldsV1`: `{"f:spec":{".":{},"f:replicas":{}}}`.

use super::{Atom, Element, FieldSet, FieldsV1Error};
use serde_json::{Map, Value};

pub(super) fn to_fields_v1(set: &FieldSet) -> Value {
    let mut fields = Map::new();
    // The map sorts by text, whichever came first.
    let only_below = set.children.elements().filter(|element| !set.members.contains(element));
    for element in set.members.elements().chain(only_below) {
        let mut inner = match set.children.get(element) {
            Some(child) => to_fields_v1(child),
            None => Value::Object(Map::new()),
        };
        let has_children = inner.as_object().is_some_and(|map| !map.is_empty());
        if has_children && set.members.contains(element) {
            inner["."] = Value::Object(Map::new());
        }
        fields.insert(key(element), inner);
    }
    Value::Object(fields)
}

fn key(element: &Element) -> String {
    match element {
        Element::Field(name) => ["f:", name].concat(),
        Element::Key(keys) => {
            let map: Map<String, Value> =
                keys.iter().map(|(name, Atom(value))| (name.clone(), value.clone())).collect();
            format!("k:{}", Value::Object(map))
        }
        Element::Value(Atom(value)) => format!("v:{value}"),
        Element::Index(index) => format!("i:{index}"),
    }
}

pub(super) fn from_fields_v1(fields: &Value) -> Result<FieldSet, FieldsV1Error> {
    let Value::Object(map) = fields else {
        return Err(FieldsV1Error::NotAMap { found: fields.clone() });
    };
    let mut set = FieldSet::new();
    for (key, inner) in map.iter().filter(|(key, _)| *key != ".") {
        let Some(element) = element(key)? else { continue };
        let inner_map = inner.as_object().ok_or_else(|| FieldsV1Error::BelowNotAMap { key: key.clone() })?;
        // Without anything below it, it is itself a member.
        let own = inner_map.contains_key(".") || inner_map.is_empty();
        set.put(element, own, Some(from_fields_v1(inner)?));
    }
    Ok(set)
}

/// `None` for a kind of element that a later server may know.
fn element(key: &str) -> Result<Option<Element>, FieldsV1Error> {
    let Some((kind, rest)) = key.split_once(':') else {
        return Err(FieldsV1Error::NoColon { key: key.to_owned() });
    };
    let json = || {
        serde_json::from_str::<Value>(rest)
            .map_err(|error| FieldsV1Error::NotJson { key: key.to_owned(), message: error.to_string() })
    };
    let index = || rest.parse().map_err(|_| FieldsV1Error::NotAnIndex { key: key.to_owned() });
    Ok(match kind {
        "f" => Some(Element::Field(rest.to_owned())),
        "v" => Some(Element::Value(Atom(json()?))),
        "i" => Some(Element::Index(index()?)),
        "k" => match json()? {
            Value::Object(map) => {
                Some(Element::Key(map.into_iter().map(|(name, v)| (name, Atom(v))).collect()))
            }
            _ => return Err(FieldsV1Error::KeysNotAMap { key: key.to_owned() }),
        },
        _ => None,
    })
}
