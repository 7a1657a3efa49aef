//! Label and field selectors, with the error texts of apimachinery.
//! Which fields can be selected is the caller's to say.

mod error;
mod field;
mod label;

pub use error::SelectorError;
pub use field::FieldSelector;
pub use label::LabelSelector;

use serde_json::{Map, Value};
use std::collections::{BTreeMap, HashMap};

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
