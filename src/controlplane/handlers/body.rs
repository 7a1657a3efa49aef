//! Reads the bodies of requests: JSON, YAML or protobuf; anything else is refused with what would do.

use super::strict::Noticing;
use http::HeaderMap;
use http::header::CONTENT_TYPE;
use opdev_apimachinery::error::Status;
use opdev_apimachinery::protobuf;
use opdev_apimachinery::version::since;
use opdev_object::depth::{MAX_LEVELS, levels};
use serde::de::DeserializeSeed as _;
use serde_json::Value;

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

/// Reads an object.
pub(crate) fn object(headers: &HeaderMap, bytes: &[u8]) -> Result<Value, Status> {
    read(headers, bytes).map(|read| read.value)
}

/// Reads an object, and notices whether it names anything twice.
pub(crate) fn read(headers: &HeaderMap, bytes: &[u8]) -> Result<Read, Status> {
    let once = |value| Read { value, twice: false };
    match media_type(headers) {
        "" | "application/json" | "text/json" | "*/*" => read_json(bytes),
        _ if is_yaml(headers) => yaml(bytes).map(once),
        "application/vnd.kubernetes.protobuf" => protobuf::decode(bytes)
            .map_err(|error| Status::bad_request(error.to_string()))
            .and_then(not_too_deep)
            .map(once),
        _ => Err(Status::unsupported_media_type(&[
            "application/json",
            "application/yaml",
            "application/vnd.kubernetes.protobuf",
        ])),
    }
}

/// Reads JSON.
pub(crate) fn json(bytes: &[u8]) -> Result<Value, Status> {
    read_json(bytes).map(|read| read.value)
}

/// Reads JSON, and notices whether it names anything twice.
pub(crate) fn read_json(bytes: &[u8]) -> Result<Read, Status> {
    let mut twice = false;
    let mut reader = serde_json::Deserializer::from_slice(bytes);
    let value = Noticing(&mut twice).deserialize(&mut reader).and_then(|value| reader.end().map(|()| value));
    let value = value.map_err(|error| {
        Status::bad_request(format!("couldn't get version/kind; json parse error: {error}"))
    })?;
    Ok(Read { value: not_too_deep(value)?, twice })
}

/// Reads an applied configuration, and notices whether it may name anything twice: YAML may. Most are JSON.
pub(crate) fn applied(bytes: &[u8]) -> Result<Read, Status> {
    if std::str::from_utf8(bytes).is_ok_and(opdev_object::yaml::is_plain_json)
        && let Ok(read) = read_json(bytes)
    {
        return Ok(read);
    }
    // YAML may read JSON in another way, but finds the same duplicates. The caller finds those of YAML.
    let is_once = bytes.first() == Some(&b'{') && read_json(bytes).is_ok_and(|read| !read.twice);
    Ok(Read { value: yaml(bytes)?, twice: !is_once })
}

/// A configuration that cannot be read. Since 1.37 the real server does not say YAML: it may be CBOR.
pub(crate) fn undecoded(how: &str, why: &str) -> Status {
    let what = if since(37) { "patch" } else { "YAML" };
    Status::bad_request(format!("error {how}decoding {what}: {why}"))
}

/// Reads YAML, of which JSON is a part.
pub(crate) fn yaml(bytes: &[u8]) -> Result<Value, Status> {
    let text = std::str::from_utf8(bytes).map_err(|error| undecoded("", &error.to_string()))?;
    opdev_object::yaml::from_str(text)
        .map_err(|error| Status::bad_request(format!("error converting YAML to JSON: yaml: {error}")))
        .and_then(not_too_deep)
}

/// Refuses what could be stored but not be read again.
fn not_too_deep(value: Value) -> Result<Value, Status> {
    if levels(&value) <= MAX_LEVELS {
        return Ok(value);
    }
    Err(Status::bad_request(format!("lists and maps in the body are more than {MAX_LEVELS} levels deep")))
}
