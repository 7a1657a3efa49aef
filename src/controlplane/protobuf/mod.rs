//! `application/vnd.kubernetes.protobuf`: bodies are read into the JSON the same client would have sent, answers are
//! written as the real server's types write them. Numbers, names and zero values follow a table of facts.
//! `wire` reads bytes, `special` the messages whose JSON is no plain object; `encode` goes the other way.

pub(crate) mod encode;
mod special;
mod special_encode;
mod wire;

pub(crate) use encode::{encode, encode_list, frame, knows};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use flate2::read::GzDecoder;
use opdev_object::facts::facts;
use opdev_object::meta::Gvk;
use serde_json::{Map, Value};
use std::collections::HashMap;
use std::io::Read;
use std::sync::OnceLock;
use wire::{Fields, Raw};

/// What every such body begins with.
pub(crate) const MAGIC: &[u8] = b"k8s\0";

const DELETE_OPTIONS: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions";
/// Schemas may nest; nothing sane does so deeper than this.
const DEPTH: usize = 128;

static MESSAGES: &[u8] = include_bytes!("../../../assets/kubernetes-1.36/protobuf.json.gz");

/// Field number, JSON name (empty: its fields belong to the message around it), what it holds, flags.
type Field = (u64, String, String, u8);
/// Zero is written in JSON too: it is a value of its own, or the field is always there.
const KEPT: u8 = 1;
const REPEATED: u8 = 2;
const MAP: u8 = 4;

fn messages() -> &'static HashMap<String, Vec<Field>> {
    static DECODED: OnceLock<HashMap<String, Vec<Field>>> = OnceLock::new();
    DECODED.get_or_init(|| {
        let mut text = Vec::new();
        GzDecoder::new(MESSAGES).read_to_end(&mut text).expect("the embedded table is valid gzip");
        let mut table: HashMap<String, Vec<Field>> =
            serde_json::from_slice(&text).expect("the embedded table is valid JSON");
        table.extend(answers());
        // Fields go out in the order of their numbers.
        table.values_mut().for_each(|fields| fields.sort_by_key(|field| field.0));
        table
    })
}

/// Messages that only answers have. The table's own come off the schemas of what can be sent.
fn answers() -> impl Iterator<Item = (String, Vec<Field>)> {
    let meta = |name: &str| format!("{}{name}", special::META);
    let plain = |number, name: &str, kind: &str| (number, name.to_owned(), kind.to_owned(), 0);
    let flagged = |number, name: &str, kind: &str, flags| (number, name.to_owned(), kind.to_owned(), flags);
    let list = vec![
        plain(1, "selfLink", "s"),
        plain(2, "resourceVersion", "s"),
        plain(3, "continue", "s"),
        flagged(4, "remainingItemCount", "i", KEPT),
        flagged(5, "shardInfo", &meta("ShardInfo"), KEPT),
    ];
    let status = vec![
        plain(1, "metadata", &meta("ListMeta")),
        plain(2, "status", "s"),
        plain(3, "message", "s"),
        plain(4, "reason", "s"),
        flagged(5, "details", &meta("StatusDetails"), KEPT),
        plain(6, "code", "i"),
    ];
    let details = vec![
        plain(1, "name", "s"),
        plain(2, "group", "s"),
        plain(3, "kind", "s"),
        flagged(4, "causes", &meta("StatusCause"), REPEATED),
        plain(5, "retryAfterSeconds", "i"),
        plain(6, "uid", "s"),
    ];
    let cause = vec![plain(1, "reason", "s"), plain(2, "message", "s"), plain(3, "field", "s")];
    let partial = vec![plain(1, "metadata", &meta("ObjectMeta"))];
    let all = [
        ("ListMeta", list),
        ("ShardInfo", vec![plain(1, "selector", "s")]),
        ("Status", status),
        ("StatusDetails", details),
        ("StatusCause", cause),
        ("PartialObjectMetadata", partial),
    ];
    all.into_iter().map(move |(name, fields)| (meta(name), fields))
}

/// Whether a field of a definition is not written where it is zero, false or empty. No schema tells.
pub(crate) fn leaves_zero_out(definition: &str, field: &str) -> bool {
    let fields = messages().get(definition).map(Vec::as_slice).unwrap_or_default();
    let found = fields.iter().find(|known| known.1 == field);
    found.is_some_and(|(_, _, kind, flags)| {
        kind.len() == 1 && kind != "y" && flags & (KEPT | REPEATED | MAP) == 0
    })
}

/// Reads a whole body.
pub(crate) fn decode(body: &[u8]) -> Result<Value, String> {
    if !body.starts_with(MAGIC) {
        return Err("provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]"
            .to_owned());
    }
    envelope(body, 0)
}

/// Reads the envelope: what kind it is, then the object in it.
fn envelope(body: &[u8], depth: usize) -> Result<Value, String> {
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
        return serde_json::from_slice(raw).map_err(|error| error.to_string());
    }
    let definition = match kind {
        "DeleteOptions" => Some(DELETE_OPTIONS),
        _ => facts().definition_name(&Gvk::from_api_version(api_version, kind)),
    };
    let definition = definition
        .ok_or_else(|| format!("no kind {kind:?} is registered for version {api_version:?} in protobuf"))?;
    let mut object = message(definition, raw, depth)?;
    object["apiVersion"] = api_version.into();
    object["kind"] = kind.into();
    Ok(object)
}

/// Reads one message of a definition.
fn message(definition: &str, bytes: &[u8], depth: usize) -> Result<Value, String> {
    if depth > DEPTH {
        return Err("proto: nested too deeply".to_owned());
    }
    if let Some(reader) = special::reader(definition) {
        return reader(bytes, depth + 1);
    }
    let fields = messages()
        .get(definition)
        .ok_or_else(|| format!("proto: {definition} is not known to this server"))?;
    if let [(1, name, ..)] = fields.as_slice()
        && name == "*"
    {
        let texts: Result<Vec<Value>, String> =
            Fields(bytes).map(|field| Ok(field?.1.text()?.into())).collect();
        return texts.map(Value::Array);
    }
    let mut object = Map::new();
    for field in Fields(bytes) {
        let (number, raw) = field?;
        // A field that this version does not know is left out, as the real server does.
        if let Some(field) = fields.iter().find(|field| field.0 == number) {
            put(&mut object, field, raw, depth).map_err(|error| match field.1.as_str() {
                "" => error,
                name => format!("{name}: {error}"),
            })?;
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
) -> Result<(), String> {
    if flags & MAP != 0 {
        let (key, value) = entry(kind, raw.bytes()?, depth)?;
        let map = object.entry(name.as_str()).or_insert_with(|| Value::Object(Map::new()));
        map[key] = value;
        return Ok(());
    }
    if flags & REPEATED != 0 {
        let list = object.entry(name.as_str()).or_insert_with(|| Value::Array(Vec::new()));
        if let Value::Array(list) = list {
            match (kind.as_str(), raw) {
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
        object.remove(name);
    } else {
        object.insert(name.clone(), value);
    }
    Ok(())
}

/// Key and value of a map's entry.
fn entry(kind: &str, bytes: &[u8], depth: usize) -> Result<(String, Value), String> {
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

fn value(kind: &str, raw: Raw<'_>, depth: usize) -> Result<Value, String> {
    match kind {
        "s" => raw.text().map(Value::from),
        "b" => Ok((raw.varint()? != 0).into()),
        "i" => Ok(raw.varint()?.cast_signed().into()),
        "y" => Ok(STANDARD.encode(raw.bytes()?).into()),
        "d" => match raw {
            Raw::Fixed64(bits) => Ok(f64::from_bits(bits).into()),
            other => Err(format!("proto: wrong wire type, {other:?} where a double was expected")),
        },
        definition => message(definition, raw.bytes()?, depth + 1),
    }
}

#[cfg(test)]
mod tests;
