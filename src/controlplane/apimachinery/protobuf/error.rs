//! Errors of a protobuf message: the fault and its field.

use super::wire::Raw;
use std::fmt;

/// A message that cannot be read or written.
#[derive(Debug)]
pub struct Error(Box<Located>);

#[derive(Debug)]
struct Located {
    fault: Fault,
    /// The fields on the way to it, the innermost first.
    fields: Vec<String>,
}

/// The error.
#[derive(Debug)]
pub(crate) enum Fault {
    /// There is no body.
    Empty,
    /// There is nothing behind the magic word.
    OnlyPrefix,
    /// The body does not begin with the magic word.
    NotProtobuf,
    /// The bytes end inside of a message.
    Eof,
    /// The bytes end inside of an event of a watch.
    CutEvent,
    /// An event of a watch has more bytes than its length can say.
    LargeEvent,
    /// Messages are nested too deeply.
    TooDeep,
    /// There is no such wire type.
    IllegalWireType(u64),
    /// A field has another wire type than its definition says: what was found, as text, and what was
    /// expected.
    WrongWireType(String, &'static str),
    /// A varint has more than 64 bits.
    Overflow,
    /// A string is not UTF-8.
    Utf8(std::str::Utf8Error),
    /// The body of an envelope is not the JSON that it says it is.
    Json(serde_json::Error),
    /// A message holds JSON that cannot be read.
    EmbeddedJson(serde_json::Error),
    /// There is no message for a kind: apiVersion and kind.
    UnknownKind(String, String),
    /// The definition of a message is not known.
    UnknownDefinition(String),
    /// The facts name a kind of value that there is not.
    UnknownValueKind(String),
    /// A value has another type than its field: the value, and what was expected.
    WrongValue(String, &'static str),
    /// A value is neither an integer nor a string.
    NeitherIntegerNorString,
    /// Bytes are not base64.
    Base64(base64::DecodeError),
    /// A time is out of range or cannot be read.
    Time(jiff::Error),
    /// The nanoseconds of a time are out of range.
    Nanoseconds,
}

impl Fault {
    pub(super) fn wrong_wire_type(found: Raw<'_>, expected: &'static str) -> Self {
        Fault::WrongWireType(format!("{found:?}"), expected)
    }
}

impl Error {
    /// This error, seen from the message around it. A field without a name belongs to that message itself.
    pub(super) fn in_field(mut self, name: &str) -> Self {
        if !name.is_empty() {
            self.0.fields.push(name.to_owned());
        }
        self
    }
}

impl From<Fault> for Error {
    fn from(fault: Fault) -> Self {
        Error(Box::new(Located { fault, fields: Vec::new() }))
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match &self.0.fault {
            Fault::Utf8(source) => Some(source),
            Fault::Json(source) | Fault::EmbeddedJson(source) => Some(source),
            Fault::Base64(source) => Some(source),
            Fault::Time(source) => Some(source),
            _ => None,
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for field in self.0.fields.iter().rev() {
            write!(f, "{field}: ")?;
        }
        self.0.fault.fmt(f)
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fault::Empty => f.write_str("empty data"),
            Fault::OnlyPrefix => f.write_str("empty body"),
            Fault::NotProtobuf => f.write_str(
                "provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]",
            ),
            Fault::Eof => f.write_str("unexpected EOF"),
            Fault::CutEvent => f.write_str("proto: an event is cut"),
            Fault::LargeEvent => f.write_str("proto: the event is too large"),
            Fault::TooDeep => f.write_str("proto: nested too deeply"),
            Fault::IllegalWireType(number) => write!(f, "proto: illegal wireType {number}"),
            Fault::WrongWireType(found, expected) => {
                write!(f, "proto: wrong wire type, {found} where {expected} expected")
            }
            Fault::Overflow => f.write_str("proto: integer overflow"),
            Fault::Utf8(_) => f.write_str("proto: a string is no UTF-8"),
            Fault::Json(source) => source.fmt(f),
            Fault::EmbeddedJson(source) => write!(f, "proto: embedded JSON: {source}"),
            Fault::UnknownKind(version, kind) => {
                write!(f, "no kind {kind:?} is registered for version {version:?} in protobuf")
            }
            Fault::UnknownDefinition(name) => write!(f, "proto: {name} is not known to this server"),
            Fault::UnknownValueKind(kind) => write!(f, "proto: {kind} is no kind of value"),
            Fault::WrongValue(value, expected) => {
                write!(f, "proto: {value} where {expected} was expected")
            }
            Fault::NeitherIntegerNorString => f.write_str("proto: neither an integer nor a string"),
            Fault::Base64(_) => f.write_str("proto: bytes are no base64"),
            Fault::Time(source) => write!(f, "proto: {source}"),
            Fault::Nanoseconds => f.write_str("proto: nanoseconds out of range"),
        }
    }
}
