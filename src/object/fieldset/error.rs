//! Why `fieldsV1` cannot be read, and why an item of a list cannot be told apart from the others.

use serde_json::Value;
use std::fmt;

/// Why `fieldsV1` cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FieldsV1Error {
    /// The set is not a map.
    NotAMap {
        /// The value that it is.
        found: Value,
    },
    /// The value below an element is not a map.
    BelowNotAMap {
        /// The element, such as `f:spec`.
        key: String,
    },
    /// An element has no colon.
    NoColon {
        /// The element.
        key: String,
    },
    /// The part of an element after the colon is not JSON.
    NotJson {
        /// The element.
        key: String,
        /// The error.
        message: String,
    },
    /// The part of an element `i:` is not a number.
    NotAnIndex {
        /// The element.
        key: String,
    },
    /// The part of an element `k:` is not a map of keys.
    KeysNotAMap {
        /// The element.
        key: String,
    },
}

impl fmt::Display for FieldsV1Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FieldsV1Error::NotAMap { found } => write!(f, "expected a JSON object of fields, got {found}"),
            FieldsV1Error::BelowNotAMap { key } => write!(f, "{key}: expected a JSON object of fields"),
            FieldsV1Error::NoColon { key } => write!(f, "missing colon: {key}"),
            FieldsV1Error::NotJson { key, message } => write!(f, "{key}: {message}"),
            FieldsV1Error::NotAnIndex { key } => write!(f, "{key}: not a position"),
            FieldsV1Error::KeysNotAMap { key } => write!(f, "{key}: expected an object of keys"),
        }
    }
}

impl std::error::Error for FieldsV1Error {}

/// Why an item of a list of type set or map cannot be told apart from the others, in the server's words.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ItemError {
    /// A map in a set.
    MapInSet,
    /// A list in a set.
    ListInSet,
    /// `null` in a set.
    NullInSet,
    /// `null` in a list of maps.
    Null,
    /// Something else than a map in a list of maps.
    NotAMap,
    /// An item has none of the keys.
    NoKeys {
        /// The keys.
        keys: Vec<String>,
    },
}

impl fmt::Display for ItemError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ItemError::MapInSet => {
                f.write_str("associative list without keys has an element that's a map type")
            }
            ItemError::ListInSet => f.write_str("not supported: associative list with lists as elements"),
            ItemError::NullInSet => {
                f.write_str("associative list without keys has an element that's an explicit null")
            }
            ItemError::Null => f.write_str("associative list with keys may not have a null element"),
            ItemError::NotAMap => f.write_str("associative list with keys may not have non-map elements"),
            ItemError::NoKeys { keys } => {
                let listed: Vec<String> = keys.iter().map(|key| format!("\"{key}\"")).collect();
                write!(
                    f,
                    "associative list with keys has an element that omits all key fields [{}] (and doesn't have default values for any key fields)",
                    listed.join(" ")
                )
            }
        }
    }
}

impl std::error::Error for ItemError {}
