//! Field sets as `fieldsV1`: `{"f:spec":{".":{},"f:replicas":{}}}`.

use super::{Atom, Element, FieldSet, FieldsV1Error};
use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::{Map, Value};
use std::borrow::Cow;
use std::fmt;

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

/// An element as the name of a field of `fieldsV1`.
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

/// `fieldsV1` as JSON text, in the order of the map.
pub(super) fn to_fields_v1_text(set: &FieldSet) -> String {
    let mut out = String::with_capacity(256);
    write(set, false, &mut out);
    out
}

fn write(set: &FieldSet, own: bool, out: &mut String) {
    out.push('{');
    if own {
        put_name(".", out);
        out.push_str("{}");
    }
    let only_below = set.children.elements().filter(|element| !set.members.contains(element));
    let mut all: Vec<(String, &Element)> =
        set.members.elements().chain(only_below).map(|element| (key(element), element)).collect();
    // Mostly they are in order already.
    all.sort_by(|a, b| a.0.cmp(&b.0));
    for (name, element) in all {
        put_name(&name, out);
        match set.children.get(element) {
            Some(child) => write(child, set.members.contains(element) && has_any(child), out),
            None => out.push_str("{}"),
        }
    }
    out.push('}');
}

/// Returns true if something is written of the set.
fn has_any(set: &FieldSet) -> bool {
    !set.members.is_empty() || !set.children.is_empty()
}

/// A name and its colon, after a comma unless it is the first of its object.
fn put_name(name: &str, out: &mut String) {
    if !out.ends_with('{') {
        out.push(',');
    }
    if name.bytes().all(|byte| byte >= b' ' && byte != b'"' && byte != b'\\') {
        out.push('"');
        out.push_str(name);
        out.push('"');
    } else {
        out.push_str(&Value::from(name).to_string());
    }
    out.push(':');
}

/// Reads what `to_fields_v1_text` wrote, or any other text of such a map; `None` for what is none.
pub(super) fn from_fields_v1_text(text: &str) -> Option<FieldSet> {
    let mut reader = serde_json::Deserializer::from_str(text);
    let level = Level.deserialize(&mut reader).ok()?;
    reader.end().ok()?;
    Some(level.set)
}

/// Reads the fields of one place.
struct Level;

/// The set below one element, as it was read.
#[derive(Default)]
struct Below {
    set: FieldSet,
    /// True if it has a `.`.
    own: bool,
    /// True if nothing stands in it, not even what is of an unknown kind.
    empty: bool,
}

impl<'de> DeserializeSeed<'de> for Level {
    type Value = Below;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Below, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Level {
    type Value = Below;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object of fields")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Below, A::Error> {
        let mut below = Below { empty: true, ..Below::default() };
        while let Some(Name(name)) = map.next_key()? {
            below.empty = false;
            if name == "." {
                map.next_value::<IgnoredAny>()?;
                below.own = true;
                continue;
            }
            let element = element(&name).map_err(serde::de::Error::custom)?;
            let inner = map.next_value_seed(Level)?;
            if let Some(element) = element {
                below.set.put(element, inner.own || inner.empty, Some(inner.set));
            }
        }
        Ok(below)
    }
}

/// A name as it stands in the text, where it has no escapes.
#[derive(serde::Deserialize)]
struct Name<'a>(#[serde(borrow)] Cow<'a, str>);

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
