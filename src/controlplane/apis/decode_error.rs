//! Why an object is not of its Go type, in the words of Go's decoder.

use super::time::TimeError;
use std::fmt;

/// A value that the Go type cannot hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DecodeError {
    /// A value has another JSON type than its field.
    WrongType {
        /// The value that was found, such as `string` or `number 1.5`.
        found: String,
        /// The Go struct and the path of the field in it; `None` for the object itself.
        field: Option<GoField>,
        /// The Go type of the field.
        go_type: String,
    },
    /// A quantity cannot be parsed.
    Quantity,
    /// Bytes are not base64; the position of the first wrong one.
    Base64(usize),
    /// A time cannot be parsed.
    Time(TimeError),
}

/// A field of a Go struct.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GoField {
    /// The name of the struct.
    pub owner: String,
    /// The path, without keys and positions.
    pub path: String,
}

impl From<TimeError> for DecodeError {
    fn from(error: TimeError) -> Self {
        DecodeError::Time(error)
    }
}

impl std::error::Error for DecodeError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            DecodeError::Time(error) => Some(error),
            DecodeError::WrongType { .. } | DecodeError::Quantity | DecodeError::Base64(_) => None,
        }
    }
}

impl fmt::Display for DecodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DecodeError::WrongType { found, field: None, go_type } => {
                write!(f, "json: cannot unmarshal {found} into Go value of type {go_type}")
            }
            DecodeError::WrongType { found, field: Some(GoField { owner, path }), go_type } => {
                write!(
                    f,
                    "json: cannot unmarshal {found} into Go struct field {owner}.{path} of type {go_type}"
                )
            }
            DecodeError::Quantity => f.write_str(
                "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'",
            ),
            DecodeError::Base64(at) => write!(f, "illegal base64 data at input byte {at}"),
            DecodeError::Time(error) => error.fmt(f),
        }
    }
}
