//! Label and field selectors, with the error texts of apimachinery.
//! Which fields can be selected is the caller's to say.

mod field;
mod label;

pub use field::FieldSelector;
pub use label::LabelSelector;

use serde_json::{Map, Value};
use std::collections::{BTreeMap, HashMap};
use std::fmt;

/// A selector that cannot be read; the text is what the server answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SelectorError(pub String);

impl fmt::Display for SelectorError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for SelectorError {}

/// Something labels can be looked up in.
pub trait Labels {
    /// The value of one label.
    fn label(&self, key: &str) -> Option<&str>;
}

impl Labels for Map<String, Value> {
    fn label(&self, key: &str) -> Option<&str> {
        self.get(key).and_then(Value::as_str)
    }
}

/// A JSON object of labels; `null` and anything else has none.
impl Labels for Value {
    fn label(&self, key: &str) -> Option<&str> {
        self.get(key).and_then(Value::as_str)
    }
}

impl Labels for BTreeMap<String, String> {
    fn label(&self, key: &str) -> Option<&str> {
        self.get(key).map(String::as_str)
    }
}

impl Labels for HashMap<String, String> {
    fn label(&self, key: &str) -> Option<&str> {
        self.get(key).map(String::as_str)
    }
}
