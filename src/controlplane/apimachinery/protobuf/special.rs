//! Messages whose JSON is not an object of their fields: times, quantities, raw JSON, either-or types.

use super::error::{Error, Fault};
use super::message;
use super::messages::{EXTENSIONS, META};
use super::wire::{Fields, Raw};
use jiff::Timestamp;
use serde_json::Value;

/// The reader of one such message.
type Reader = fn(&[u8], usize) -> Result<Value, Error>;

/// A message with a JSON form of its own.
#[derive(Clone, Copy)]
pub(super) enum Special {
    Quantity,
    IntOrString,
    RawJson,
    Time,
    MicroTime,
    SchemaOrArray,
    SchemaOrBool,
    SchemaOrStrings,
}

impl Special {
    /// The special form that a definition has, if any.
    pub(super) fn find(definition: &str) -> Option<Special> {
        Some(match definition {
            "io.k8s.apimachinery.pkg.api.resource.Quantity" => Special::Quantity,
            "io.k8s.apimachinery.pkg.util.intstr.IntOrString" => Special::IntOrString,
            "io.k8s.apimachinery.pkg.runtime.RawExtension" => Special::RawJson,
            _ => match definition.strip_prefix(META) {
                Some("Time") => Special::Time,
                Some("MicroTime") => Special::MicroTime,
                Some("FieldsV1") => Special::RawJson,
                Some(_) => return None,
                None => match definition.strip_prefix(EXTENSIONS)? {
                    "JSON" => Special::RawJson,
                    "JSONSchemaPropsOrArray" => Special::SchemaOrArray,
                    "JSONSchemaPropsOrBool" => Special::SchemaOrBool,
                    "JSONSchemaPropsOrStringArray" => Special::SchemaOrStrings,
                    _ => return None,
                },
            },
        })
    }
}

/// The reader of a definition that has its own JSON form.
pub(super) fn reader(definition: &str) -> Option<Reader> {
    Some(match Special::find(definition)? {
        Special::Quantity => quantity,
        Special::IntOrString => int_or_string,
        Special::RawJson => raw_json,
        Special::Time => time,
        Special::MicroTime => micro_time,
        Special::SchemaOrArray => schema_or_array,
        Special::SchemaOrBool => schema_or_bool,
        Special::SchemaOrStrings => schema_or_strings,
    })
}

/// The last value of a field.
fn last(bytes: &[u8], number: u64) -> Result<Option<Raw<'_>>, Error> {
    let mut found = None;
    for field in Fields(bytes) {
        let (at, raw) = field?;
        if at == number {
            found = Some(raw);
        }
    }
    Ok(found)
}

fn number(bytes: &[u8], field: u64) -> Result<i64, Error> {
    Ok(last(bytes, field)?.map(Raw::varint).transpose()?.unwrap_or(0).cast_signed())
}

fn quantity(bytes: &[u8], _: usize) -> Result<Value, Error> {
    let text = last(bytes, 1)?.map(Raw::text).transpose()?.unwrap_or_default();
    Ok(if text.is_empty() { "0" } else { text }.into())
}

fn int_or_string(bytes: &[u8], _: usize) -> Result<Value, Error> {
    if number(bytes, 1)? == 0 {
        return Ok(number(bytes, 2)?.into());
    }
    Ok(last(bytes, 3)?.map(Raw::text).transpose()?.unwrap_or_default().into())
}

/// The instant of a time message; nothing stands for the zero time.
fn instant(bytes: &[u8]) -> Result<Option<Timestamp>, Error> {
    if bytes.is_empty() {
        return Ok(None);
    }
    let (seconds, nanos) = (number(bytes, 1)?, number(bytes, 2)?);
    let nanos = i32::try_from(nanos).map_err(|_| Fault::Nanoseconds)?;
    Timestamp::new(seconds, nanos).map(Some).map_err(|error| Fault::Time(error).into())
}

fn time(bytes: &[u8], _: usize) -> Result<Value, Error> {
    let at = instant(bytes)?;
    Ok(at.map_or(Value::Null, |at| at.strftime("%Y-%m-%dT%H:%M:%SZ").to_string().into()))
}

fn micro_time(bytes: &[u8], _: usize) -> Result<Value, Error> {
    let at = instant(bytes)?;
    Ok(at.map_or(Value::Null, |at| at.strftime("%Y-%m-%dT%H:%M:%S%.6fZ").to_string().into()))
}

fn raw_json(bytes: &[u8], depth: usize) -> Result<Value, Error> {
    match last(bytes, 1)?.map(Raw::bytes).transpose()? {
        None | Some([]) => Ok(Value::Null),
        Some(raw) if raw.starts_with(crate::protobuf::wire::MAGIC) => super::envelope(raw, depth),
        Some(raw) => serde_json::from_slice(raw).map_err(|error| Fault::EmbeddedJson(error).into()),
    }
}

fn schema(raw: Raw<'_>, depth: usize) -> Result<Value, Error> {
    message(&format!("{EXTENSIONS}JSONSchemaProps"), raw.bytes()?, depth)
}

fn schema_or_array(bytes: &[u8], depth: usize) -> Result<Value, Error> {
    if let Some(one) = last(bytes, 1)? {
        return schema(one, depth);
    }
    let mut all = Vec::new();
    for field in Fields(bytes) {
        if let (2, raw) = field? {
            all.push(schema(raw, depth)?);
        }
    }
    Ok(all.into())
}

fn schema_or_bool(bytes: &[u8], depth: usize) -> Result<Value, Error> {
    match last(bytes, 2)? {
        Some(raw) => schema(raw, depth),
        None => Ok((number(bytes, 1)? != 0).into()),
    }
}

fn schema_or_strings(bytes: &[u8], depth: usize) -> Result<Value, Error> {
    if let Some(one) = last(bytes, 1)? {
        return schema(one, depth);
    }
    let mut all: Vec<Value> = Vec::new();
    for field in Fields(bytes) {
        if let (2, raw) = field? {
            all.push(raw.text()?.into());
        }
    }
    Ok(all.into())
}
