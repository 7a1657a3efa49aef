//! Writes the messages whose JSON is not an object of their fields: times, quantities, raw JSON, either-or
//! types. The other direction of `special`.

use super::encode::{bytes, integer, message_field, put_message, text, varint_field};
use super::error::{Error, Fault};
use super::special::Special;
use crate::protobuf::messages::EXTENSIONS;
use jiff::Timestamp;
use opdev_object::apply::compact;
use serde_json::Value;

/// The writer of one such message.
type Writer = fn(&mut Vec<u8>, &Value, usize) -> Result<(), Error>;

/// The writer of a definition that has its own JSON form.
pub(super) fn writer(definition: &str) -> Option<Writer> {
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

fn quantity(out: &mut Vec<u8>, given: &Value, _: usize) -> Result<(), Error> {
    match given {
        Value::Null => text(out, 1, "0"),
        Value::String(given) => text(out, 1, given),
        other => text(out, 1, &other.to_string()),
    }
    Ok(())
}

fn int_or_string(out: &mut Vec<u8>, given: &Value, _: usize) -> Result<(), Error> {
    let (kind, number, string) = match given {
        Value::String(given) => (1, 0, given.as_str()),
        other => (0, integer(other).ok_or(Fault::NeitherIntegerNorString)?, ""),
    };
    varint_field(out, 1, kind);
    varint_field(out, 2, number);
    text(out, 3, string);
    Ok(())
}

fn raw_json(out: &mut Vec<u8>, given: &Value, _: usize) -> Result<(), Error> {
    match compact::text_of(given) {
        Some(fields) => bytes(out, 1, fields.as_bytes()),
        None if given.is_null() => {}
        None => bytes(out, 1, given.to_string().as_bytes()),
    }
    Ok(())
}

/// Seconds and nanoseconds of a time; the zero time has neither.
fn instant(out: &mut Vec<u8>, given: &Value, nanos: fn(Timestamp) -> i32) -> Result<(), Error> {
    let Some(given) = given.as_str() else { return Ok(()) };
    let at: Timestamp = given.parse().map_err(Fault::Time)?;
    varint_field(out, 1, at.as_second().cast_unsigned());
    varint_field(out, 2, i64::from(nanos(at)).cast_unsigned());
    Ok(())
}

fn time(out: &mut Vec<u8>, given: &Value, _: usize) -> Result<(), Error> {
    instant(out, given, |_| 0)
}

fn micro_time(out: &mut Vec<u8>, given: &Value, _: usize) -> Result<(), Error> {
    instant(out, given, |at| at.subsec_nanosecond() / 1000 * 1000)
}

fn schema(out: &mut Vec<u8>, number: u64, given: &Value, depth: usize) -> Result<(), Error> {
    message_field(out, number, |out| put_message(out, &format!("{EXTENSIONS}JSONSchemaProps"), given, depth))
}

fn schema_or_array(out: &mut Vec<u8>, given: &Value, depth: usize) -> Result<(), Error> {
    match given {
        Value::Array(all) => all.iter().try_for_each(|one| schema(out, 2, one, depth)),
        one => schema(out, 1, one, depth),
    }
}

fn schema_or_bool(out: &mut Vec<u8>, given: &Value, depth: usize) -> Result<(), Error> {
    varint_field(out, 1, u64::from(given != &Value::Bool(false)));
    if given.is_object() {
        schema(out, 2, given, depth)?;
    }
    Ok(())
}

fn schema_or_strings(out: &mut Vec<u8>, given: &Value, depth: usize) -> Result<(), Error> {
    match given {
        Value::Array(all) => {
            all.iter().filter_map(Value::as_str).for_each(|one| text(out, 2, one));
            Ok(())
        }
        one => schema(out, 1, one, depth),
    }
}
