//! Objects, lists, statuses and watch events as client-go's own types write them: fields in the order of
//! their numbers, those that are no pointer always there. `special_encode` has the messages whose JSON is no
//! plain object.

use super::error::{Error, Fault};
use super::messages::{self, Field, MAP, POINTER, REPEATED, definition};
use super::special_encode;
use crate::protobuf::messages::META;
use crate::protobuf::wire::{DEPTH, MAGIC};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value};

/// A whole answer: the magic word and the envelope around the object, which names its own kind.
pub fn encode(object: &Value) -> Result<Vec<u8>, Error> {
    let (api_version, kind) = type_of(object);
    if let Some(items) = object["items"].as_array().filter(|_| kind.ends_with("List")) {
        return encode_list(api_version, kind, &object["metadata"], items.iter());
    }
    let mut inside = Vec::new();
    put_message(&mut inside, definition(api_version, kind)?, object, 0)?;
    Ok(envelope(api_version, kind, &inside))
}

/// A list as a whole answer; what its items are, its own kind says.
pub fn encode_list<'a>(
    api_version: &str,
    kind: &str,
    metadata: &Value,
    items: impl Iterator<Item = &'a Value>,
) -> Result<Vec<u8>, Error> {
    let definition = definition(api_version, kind.strip_suffix("List").unwrap_or(kind))?;
    let mut inside = Vec::new();
    message_field(&mut inside, 1, |out| put_message(out, &format!("{META}ListMeta"), metadata, 0))?;
    for item in items {
        message_field(&mut inside, 2, |out| put_message(out, definition, item, 0))?;
    }
    Ok(envelope(api_version, kind, &inside))
}

/// One event of a watch: four bytes that say its length, then its type and the object in its envelope.
pub fn frame(kind: &str, object: &Value) -> Result<Vec<u8>, Error> {
    let object = encode(object)?;
    let mut event = Vec::with_capacity(object.len() + 32);
    text(&mut event, 1, kind);
    message_field(&mut event, 2, |out| {
        bytes(out, 1, &object);
        Ok(())
    })?;
    let length = u32::try_from(event.len()).map_err(|_| Fault::LargeEvent)?;
    Ok([&length.to_be_bytes()[..], &event].concat())
}

fn type_of(object: &Value) -> (&str, &str) {
    let text = |field: &str| object[field].as_str().unwrap_or_default();
    (text("apiVersion"), text("kind"))
}

/// The magic word and the envelope around the message of an object.
pub(super) fn envelope(api_version: &str, kind: &str, object: &[u8]) -> Vec<u8> {
    let mut type_meta = Vec::new();
    text(&mut type_meta, 1, api_version);
    text(&mut type_meta, 2, kind);
    let mut out = Vec::with_capacity(object.len() + type_meta.len() + 24);
    out.extend_from_slice(MAGIC);
    bytes(&mut out, 1, &type_meta);
    bytes(&mut out, 2, object);
    // Neither compressed nor of another content type.
    text(&mut out, 3, "");
    text(&mut out, 4, "");
    out
}

/// Writes the fields of a message of a definition.
pub(super) fn put_message(
    out: &mut Vec<u8>,
    definition: &str,
    value: &Value,
    depth: usize,
) -> Result<(), Error> {
    if depth > DEPTH {
        return Err(Fault::TooDeep.into());
    }
    if let Some(writer) = special_encode::writer(definition) {
        return writer(out, value, depth + 1);
    }
    let fields = messages::known(definition)?;
    if let [(1, name, ..)] = fields
        && *name == "*"
    {
        return value.as_array().into_iter().flatten().try_for_each(|item| scalar(out, 1, "s", item));
    }
    let nothing = Map::new();
    let object = value.as_object().unwrap_or(&nothing);
    for field in fields {
        put(out, field, value, object, depth).map_err(|error| error.in_field(field.1))?;
    }
    Ok(())
}

/// Writes one field, as often as its value asks for.
fn put(
    out: &mut Vec<u8>,
    (number, name, kind, flags): &Field,
    whole: &Value,
    object: &Map<String, Value>,
    depth: usize,
) -> Result<(), Error> {
    if name.is_empty() {
        return message_field(out, *number, |out| put_message(out, kind, whole, depth + 1));
    }
    let given = object.get(*name).filter(|value| !value.is_null());
    if flags & MAP != 0 {
        // Keys come sorted, in JSON as in protobuf.
        for (key, item) in given.and_then(Value::as_object).into_iter().flatten() {
            message_field(out, *number, |out| {
                text(out, 1, key);
                value(out, 2, kind, item, depth)
            })?;
        }
        return Ok(());
    }
    if flags & REPEATED != 0 {
        let mut items = given.and_then(Value::as_array).into_iter().flatten();
        return items.try_for_each(|item| value(out, *number, kind, item, depth));
    }
    match given {
        Some(given) => value(out, *number, kind, given, depth),
        // A pointer may be absent, and so may bytes.
        None if flags & POINTER != 0 || *kind == "y" => Ok(()),
        None => value(out, *number, kind, &Value::Null, depth),
    }
}

fn value(out: &mut Vec<u8>, number: u64, kind: &str, given: &Value, depth: usize) -> Result<(), Error> {
    if kind.len() == 1 {
        return scalar(out, number, kind, given);
    }
    message_field(out, number, |out| put_message(out, kind, given, depth + 1))
}

/// Writes one value that is no message; null is its zero.
fn scalar(out: &mut Vec<u8>, number: u64, kind: &str, given: &Value) -> Result<(), Error> {
    let wrong = |expected| Fault::WrongValue(given.to_string(), expected);
    match (kind, given) {
        ("s", Value::Null) => text(out, number, ""),
        ("s", Value::String(given)) => text(out, number, given),
        ("s", _) => return Err(wrong("a string").into()),
        ("b", _) => varint_field(out, number, u64::from(given.as_bool().unwrap_or_default())),
        ("i", _) => varint_field(out, number, integer(given).ok_or_else(|| wrong("an integer"))?),
        ("d", _) => {
            tag(out, number, 1);
            let given = if given.is_null() { Some(0.0) } else { given.as_f64() };
            out.extend_from_slice(&given.ok_or_else(|| wrong("a number"))?.to_le_bytes());
        }
        ("y", _) => {
            let decoded = STANDARD.decode(given.as_str().unwrap_or_default());
            bytes(out, number, &decoded.map_err(Fault::Base64)?);
        }
        (other, _) => return Err(Fault::UnknownValueKind(other.to_owned()).into()),
    }
    Ok(())
}

/// An integer as the bits that stand for it; null is zero.
pub(super) fn integer(given: &Value) -> Option<u64> {
    match given {
        Value::Null => Some(0),
        Value::Number(number) => number.as_i64().map(i64::cast_unsigned).or_else(|| number.as_u64()),
        _ => None,
    }
}

/// Writes a message inside another one.
pub fn message_field(
    out: &mut Vec<u8>,
    number: u64,
    inside: impl FnOnce(&mut Vec<u8>) -> Result<(), Error>,
) -> Result<(), Error> {
    let mut message = Vec::new();
    inside(&mut message)?;
    bytes(out, number, &message);
    Ok(())
}

pub fn varint_field(out: &mut Vec<u8>, number: u64, value: u64) {
    tag(out, number, 0);
    varint(out, value);
}

pub fn text(out: &mut Vec<u8>, number: u64, text: &str) {
    bytes(out, number, text.as_bytes());
}

pub fn bytes(out: &mut Vec<u8>, number: u64, inside: &[u8]) {
    tag(out, number, 2);
    varint(out, inside.len() as u64);
    out.extend_from_slice(inside);
}

pub fn double_field(out: &mut Vec<u8>, number: u64, value: f64) {
    tag(out, number, 1);
    out.extend_from_slice(&value.to_le_bytes());
}

fn tag(out: &mut Vec<u8>, number: u64, wire_type: u64) {
    varint(out, number << 3 | wire_type);
}

fn varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value.to_le_bytes()[0] | 0x80);
        value >>= 7;
    }
    out.push(value.to_le_bytes()[0]);
}
