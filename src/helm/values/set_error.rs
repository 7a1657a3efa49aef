//! Why the text of `--set` and its like cannot be read, in the words of Helm's `strvals`.

use super::set::{MAX_INDEX, MAX_NESTED};
use opdev_object::go::quote::quote;
use std::fmt;

/// Why the text of `--set` and its like cannot be read. `Display` already holds the text of a source.
#[derive(Debug)]
#[non_exhaustive]
pub enum SetError {
    /// The values that are to be changed are not a map.
    ValuesNotAMap,
    /// The text ends, or has a comma, before the value of a key.
    NoValue {
        /// The key.
        key: String,
        /// True if a comma ends the key.
        comma: bool,
    },
    /// A map has no value below it.
    EmptyMap {
        /// The key of the map.
        key: String,
    },
    /// A key leads into a value that is neither absent nor of the type that the key needs.
    WrongType {
        /// Go's name of the type that is there.
        found: &'static str,
        /// Go's name of the type that the key needs.
        wanted: &'static str,
    },
    /// The key has too many levels of maps.
    TooDeep,
    /// The text ends before the `]` of an index.
    IndexWithoutEnd,
    /// An index is not a number.
    IndexNotANumber {
        /// The text between the brackets.
        text: String,
    },
    /// An index is below zero.
    NegativeIndex {
        /// The index.
        index: i64,
    },
    /// An index is larger than Helm allows.
    IndexTooLarge {
        /// The index.
        index: usize,
    },
    /// Something else than `=`, `.` or `[` follows an index.
    AfterIndex {
        /// The rest.
        text: String,
    },
    /// The text ends before the `}` of a list.
    ListWithoutEnd,
    /// A value of `--set-json` is not JSON.
    Json(serde_json::Error),
    /// Something else than a comma follows a value of `--set-json`.
    AfterJson {
        /// The key of the value.
        key: String,
        /// The rest.
        text: String,
    },
    /// The value cannot be read, such as a file of `--set-file` that does not exist.
    Value(Box<dyn std::error::Error + Send + Sync>),
}

impl fmt::Display for SetError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SetError::ValuesNotAMap => f.write_str("values are not a table"),
            SetError::NoValue { key, comma: false } => write!(f, "key {key:?} has no value"),
            SetError::NoValue { key, comma: true } => {
                write!(f, "key {key:?} has no value (cannot end with ,)")
            }
            SetError::EmptyMap { key } => write!(f, "key map {key:?} has no value"),
            SetError::WrongType { found, wanted } => write!(
                f,
                "unable to parse key: interface conversion: interface {{}} is {found}, not {wanted}"
            ),
            SetError::TooDeep => write!(
                f,
                "value name nested level is greater than maximum supported nested level of {MAX_NESTED}"
            ),
            SetError::IndexWithoutEnd => f.write_str("error parsing index: EOF"),
            SetError::IndexNotANumber { text } => {
                write!(f, "error parsing index: strconv.Atoi: parsing {}: invalid syntax", quote(text))
            }
            SetError::NegativeIndex { index } => write!(f, "negative {index} index not allowed"),
            SetError::IndexTooLarge { index } => {
                write!(f, "index of {index} is greater than maximum supported index of {MAX_INDEX}")
            }
            SetError::AfterIndex { text } => write!(f, "unexpected data at end of array index: {text:?}"),
            SetError::ListWithoutEnd => f.write_str("list must terminate with '}'"),
            SetError::Json(error) => error.fmt(f),
            SetError::AfterJson { key, text } => {
                write!(f, "unexpected data after the value of {key:?}: {text:?}")
            }
            SetError::Value(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for SetError {}

impl From<serde_json::Error> for SetError {
    fn from(error: serde_json::Error) -> SetError {
        SetError::Json(error)
    }
}
