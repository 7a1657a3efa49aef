//! Reads the bodies of requests: JSON, YAML or protobuf; anything else is refused with what would do.

use super::strict::Noticing;
use http::HeaderMap;
use http::header::CONTENT_TYPE;
use opdev_apimachinery::error::Status;
use opdev_apimachinery::json_syntax::syntax_error;
use opdev_apimachinery::protobuf;
use opdev_apimachinery::version::since;
use opdev_object::depth::{MAX_LEVELS, levels};
use opdev_object::go::kind::kind as go_kind;
use serde::de::DeserializeSeed as _;
use serde_json::{Map, Value};

/// The media type of the body, without parameters; `""` where none is named.
pub(crate) fn media_type(headers: &HeaderMap) -> &str {
    let text = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    text.split(';').next().unwrap_or_default().trim()
}

/// A body that was read.
#[derive(Debug)]
pub(crate) struct Read {
    pub value: Value,
    /// A field of the body stands there more than once, or may do so.
    pub(crate) twice: bool,
}

/// Returns true if the body is YAML.
pub(crate) fn is_yaml(headers: &HeaderMap) -> bool {
    ["application/yaml", "text/yaml", "application/x-yaml"].contains(&media_type(headers))
}

/// Why a body could not be read.
#[derive(Debug)]
pub(crate) enum Unread {
    /// Its type or its depth is refused, whatever it says.
    Refused(Status),
    /// The error of the real server's decoder, which does not say what was expected.
    Undecoded(String),
}

impl From<Unread> for Status {
    fn from(unread: Unread) -> Self {
        match unread {
            Unread::Refused(status) => status,
            Unread::Undecoded(why) => Status::bad_request(why),
        }
    }
}

/// Reads an object, and notices whether it names anything twice. `null` is an object without fields.
pub(crate) fn read(headers: &HeaderMap, bytes: &[u8]) -> Result<Read, Unread> {
    let once = |value| Read { value, twice: false };
    let mut read = match media_type(headers) {
        "" | "application/json" | "text/json" | "*/*" => read_json(bytes).map_err(|why| {
            Unread::Undecoded(format!("couldn't get version/kind; json parse error: {why}"))
        })?,
        _ if is_yaml(headers) => read_yaml(bytes).map(once).map_err(Unread::Undecoded)?,
        "application/vnd.kubernetes.protobuf" => {
            protobuf::decode(bytes).map(once).map_err(|error| Unread::Undecoded(error.to_string()))?
        }
        _ => {
            return Err(Unread::Refused(Status::unsupported_media_type(&[
                "application/json",
                "application/yaml",
                "application/vnd.kubernetes.protobuf",
            ])));
        }
    };
    read.value = some_fields(not_too_deep(read.value).map_err(Unread::Refused)?);
    Ok(read)
}

/// Reads the body of a patch, and notices whether it names anything twice.
pub(crate) fn patch(bytes: &[u8]) -> Result<Read, Status> {
    let read = read_json(bytes).map_err(|why| {
        // Since 1.37 the real server looks at the patch before it looks for the object.
        Status::bad_request(match since(37) {
            true => "invalid JSON patch".to_owned(),
            false => format!("error decoding patch: {why}"),
        })
    })?;
    Ok(Read { value: not_too_deep(read.value)?, ..read })
}

/// Reads JSON, and notices whether it names anything twice. The error has Go's words.
fn read_json(bytes: &[u8]) -> Result<Read, String> {
    let mut twice = false;
    let mut reader = serde_json::Deserializer::from_slice(bytes);
    let value = Noticing(&mut twice).deserialize(&mut reader).and_then(|value| reader.end().map(|()| value));
    // Some texts are JSON to Go and not to us, such as those with a number beyond all limits.
    let value = value.map_err(|error| syntax_error(bytes).unwrap_or_else(|| error.to_string()))?;
    Ok(Read { value, twice })
}

fn some_fields(value: Value) -> Value {
    if value.is_null() { Value::Object(Map::new()) } else { value }
}

/// Reads an applied configuration, and notices whether it may name anything twice: YAML may. Most are JSON.
pub(crate) fn applied(bytes: &[u8]) -> Result<Read, Status> {
    if std::str::from_utf8(bytes).is_ok_and(opdev_object::yaml::is_plain_json)
        && let Ok(read) = read_json(bytes)
    {
        return Ok(Read { value: configuration(read.value)?, ..read });
    }
    // YAML may read JSON in another way, but finds the same duplicates. The caller finds those of YAML.
    let is_once = bytes.first() == Some(&b'{') && read_json(bytes).is_ok_and(|read| !read.twice);
    let value = read_yaml(bytes).map_err(|why| {
        // Since 1.37 what does not look like JSON is made JSON first.
        let is_json = bytes.trim_ascii_start().first() == Some(&b'{');
        match since(37) && !is_json {
            true => Status::bad_request(format!("error encoding patch: {why}")),
            false => undecoded("", &format!("error converting YAML to JSON: {why}")),
        }
    })?;
    Ok(Read { value: configuration(value)?, twice: !is_once })
}

fn configuration(value: Value) -> Result<Value, Status> {
    let value = some_fields(not_too_deep(value)?);
    if value.is_object() {
        return Ok(value);
    }
    let found = go_kind(&value);
    let why = format!("cannot unmarshal {found} into Go value of type map[string]interface {{}}");
    Err(undecoded("", &format!("error unmarshaling JSON: while decoding JSON: json: {why}")))
}

/// A configuration that cannot be read. Since 1.37 the real server does not say YAML: it may be CBOR.
pub(crate) fn undecoded(how: &str, why: &str) -> Status {
    let what = if since(37) { "patch" } else { "YAML" };
    Status::bad_request(format!("error {how}decoding {what}: {why}"))
}

/// Reads YAML, of which JSON is a part. The error is that of Go's YAML.
fn read_yaml(bytes: &[u8]) -> Result<Value, String> {
    let text = std::str::from_utf8(bytes).map_err(|error| format!("yaml: {error}"))?;
    opdev_object::yaml::from_str(text).map_err(|error| error.message)
}

/// Refuses what could be stored but not be read again.
fn not_too_deep(value: Value) -> Result<Value, Status> {
    if levels(&value) <= MAX_LEVELS {
        return Ok(value);
    }
    Err(Status::bad_request(format!("lists and maps in the body are more than {MAX_LEVELS} levels deep")))
}
