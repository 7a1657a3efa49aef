//! `application/vnd.kubernetes.protobuf`: bodies are read into the JSON the same client would have sent,
//! answers are written as the real server's types write them. Numbers, names and zero values follow a table
//! of facts. `wire` reads bytes, `special` the messages whose JSON is no plain object; `encode` goes the
//! other way.

pub mod encode;
mod error;
mod messages;
mod special;
mod special_encode;
mod wire;

pub use encode::{encode, encode_list, frame};
pub use error::Error;
pub(crate) use error::Fault;
pub use messages::{knows, serves};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use messages::{Field, KEPT, MAP, REPEATED};
use serde_json::{Map, Value};
pub use wire::MAGIC;
use wire::{DEPTH, Fields, Raw};

/// Returns true if a field of a definition is not written where it is zero, false or empty. No schema tells.
pub fn leaves_zero_out(definition: &str, field: &str) -> bool {
    let fields = messages::served().get(definition).map(Vec::as_slice).unwrap_or_default();
    let found = fields.iter().find(|known| known.1 == field);
    found.is_some_and(|(_, _, kind, flags)| {
        kind.len() == 1 && *kind != "y" && flags & (KEPT | REPEATED | MAP) == 0
    })
}

/// Reads a whole body.
pub fn decode(body: &[u8]) -> Result<Value, Error> {
    if !body.starts_with(MAGIC) {
        return Err(if body.is_empty() { Fault::Empty } else { Fault::NotProtobuf }.into());
    }
    if body.len() == MAGIC.len() {
        return Err(Fault::OnlyPrefix.into());
    }
    envelope(body, 0)
}

/// Reads the events of a watch, each with its type: frames as `frame` writes them.
pub fn events(mut frames: &[u8]) -> Result<Vec<(String, Value)>, Error> {
    let mut events = Vec::new();
    while let Some((head, rest)) = frames.split_first_chunk::<4>() {
        let length = u32::from_be_bytes(*head) as usize;
        let event = rest.get(..length).ok_or(Fault::CutEvent)?;
        frames = &rest[length..];
        let (mut kind, mut object) = (String::new(), Value::Null);
        for field in Fields(event) {
            match field? {
                (1, text) => text.text()?.clone_into(&mut kind),
                (2, raw) => {
                    for field in Fields(raw.bytes()?) {
                        if let (1, bytes) = field? {
                            object = decode(bytes.bytes()?)?;
                        }
                    }
                }
                _ => {}
            }
        }
        events.push((kind, object));
    }
    Ok(events)
}

/// Reads the envelope: what kind it is, then the object in it.
fn envelope(body: &[u8], depth: usize) -> Result<Value, Error> {
    let (mut api_version, mut kind, mut raw, mut content_type) = ("", "", &[][..], "");
    for field in Fields(&body[MAGIC.len()..]) {
        match field? {
            (1, type_meta) => {
                for field in Fields(type_meta.bytes()?) {
                    match field? {
                        (1, text) => api_version = text.text()?,
                        (2, text) => kind = text.text()?,
                        _ => {}
                    }
                }
            }
            (2, bytes) => raw = bytes.bytes()?,
            (4, text) => content_type = text.text()?,
            _ => {}
        }
    }
    if content_type == "application/json" {
        return serde_json::from_slice(raw).map_err(|error| Fault::Json(error).into());
    }
    let definition = messages::definition(api_version, kind)?;
    let mut object = message(definition, raw, depth)?;
    object["apiVersion"] = api_version.into();
    object["kind"] = kind.into();
    Ok(object)
}

/// Reads one message of a definition.
fn message(definition: &str, bytes: &[u8], depth: usize) -> Result<Value, Error> {
    if depth > DEPTH {
        return Err(Fault::TooDeep.into());
    }
    if let Some(reader) = special::reader(definition) {
        return reader(bytes, depth + 1);
    }
    let fields = messages::known(definition)?;
    if let [(1, name, ..)] = fields
        && *name == "*"
    {
        let texts: Result<Vec<Value>, Error> =
            Fields(bytes).map(|field| Ok(field?.1.text()?.into())).collect();
        return texts.map(Value::Array);
    }
    let mut object = Map::new();
    for field in Fields(bytes) {
        let (number, raw) = field?;
        // A field that this version does not know is left out, as the real server does.
        if let Some(field) = fields.iter().find(|field| field.0 == number) {
            put(&mut object, field, raw, depth).map_err(|error| error.in_field(field.1))?;
        }
    }
    Ok(Value::Object(object))
}

/// Puts the value of a field where it belongs.
fn put(
    object: &mut Map<String, Value>,
    (_, name, kind, flags): &Field,
    raw: Raw<'_>,
    depth: usize,
) -> Result<(), Error> {
    if flags & MAP != 0 {
        let (key, value) = entry(kind, raw.bytes()?, depth)?;
        let map = object.entry(*name).or_insert_with(|| Value::Object(Map::new()));
        map[key] = value;
        return Ok(());
    }
    if flags & REPEATED != 0 {
        let list = object.entry(*name).or_insert_with(|| Value::Array(Vec::new()));
        if let Value::Array(list) = list {
            match (*kind, raw) {
                // Numbers may come packed, all in one.
                ("i" | "b", Raw::Bytes(packed)) => {
                    let mut packed = Fields(packed);
                    while !packed.0.is_empty() {
                        list.push(value(kind, Raw::Varint(packed.varint()?), depth)?);
                    }
                }
                _ => list.push(value(kind, raw, depth)?),
            }
        }
        return Ok(());
    }
    let value = value(kind, raw, depth)?;
    if name.is_empty() {
        if let Value::Object(inner) = value {
            object.extend(inner);
        }
        return Ok(());
    }
    let zero = match &value {
        Value::Null => true,
        Value::Bool(yes) => !yes,
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::String(text) => text.is_empty(),
        Value::Array(list) => list.is_empty(),
        Value::Object(_) => false,
    };
    let is_scalar = kind.len() == 1;
    if value.is_null() || (is_scalar && zero && flags & KEPT == 0) {
        object.remove(*name);
    } else {
        object.insert((*name).to_owned(), value);
    }
    Ok(())
}

/// Key and value of a map's entry.
fn entry(kind: &str, bytes: &[u8], depth: usize) -> Result<(String, Value), Error> {
    let mut key = "";
    let mut held = None;
    for field in Fields(bytes) {
        match field? {
            (1, text) => key = text.text()?,
            (2, raw) => held = Some(raw),
            _ => {}
        }
    }
    let absent = if matches!(kind, "i" | "b") { Raw::Varint(0) } else { Raw::Bytes(&[]) };
    Ok((key.to_owned(), value(kind, held.unwrap_or(absent), depth)?))
}

fn value(kind: &str, raw: Raw<'_>, depth: usize) -> Result<Value, Error> {
    match kind {
        "s" => raw.text().map(Value::from),
        "b" => Ok((raw.varint()? != 0).into()),
        "i" => Ok(raw.varint()?.cast_signed().into()),
        "y" => Ok(STANDARD.encode(raw.bytes()?).into()),
        "d" => match raw {
            Raw::Fixed64(bits) => {
                let float = f64::from_bits(bits);
                Ok(whole(float).map_or_else(|| float.into(), Value::from))
            }
            other => Err(Fault::wrong_wire_type(other, "a double was").into()),
        },
        definition => message(definition, raw.bytes()?, depth + 1),
    }
}

/// A float that Go's JSON has as an integer.
pub fn whole(float: f64) -> Option<i64> {
    // From 2^63 on there is no such integer.
    (float.fract() == 0.0 && float.abs() < 9.2e18).then_some(float as i64)
}

#[cfg(test)]
mod tests;
