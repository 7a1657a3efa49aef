//! An object as text that becomes a value when somebody looks. Values in memory take ten times the room of their text,
//! and of ten thousand objects few are looked at.

use serde_json::Value;
use std::fmt;
use std::ops::Deref;
use std::sync::{Arc, OnceLock};

/// An object; clones share it.
#[derive(Clone)]
pub struct Body(Arc<Inner>);

struct Inner {
    text: Box<[u8]>,
    /// Stays for as long as this version of the object does.
    value: OnceLock<Value>,
}

impl Body {
    /// Keeps a value.
    pub fn new(value: &Value) -> Self {
        let text = serde_json::to_vec(value).unwrap_or_default().into_boxed_slice();
        Body(Arc::new(Inner { text, value: OnceLock::new() }))
    }

    /// The value, read on the first look.
    pub fn value(&self) -> &Value {
        self.0.value.get_or_init(|| serde_json::from_slice(&self.0.text).unwrap_or_default())
    }

    /// Whether two hold the same text; told without reading either.
    pub fn same(&self, other: &Body) -> bool {
        Arc::ptr_eq(&self.0, &other.0) || self.0.text == other.0.text
    }
}

impl Deref for Body {
    type Target = Value;

    fn deref(&self) -> &Value {
        self.value()
    }
}

impl AsRef<Value> for Body {
    fn as_ref(&self) -> &Value {
        self.value()
    }
}

impl fmt::Debug for Body {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&String::from_utf8_lossy(&self.0.text))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_is_kept_comes_back() {
        let value = json!({"b": [1, 2.5, null, {"ü": "\u{1b}"}], "a": {}});
        let body = Body::new(&value);
        assert!(body.0.value.get().is_none());
        assert_eq!(*body, value);
        assert!(body.same(&Body::new(&value)) && !body.same(&Body::new(&json!({}))));
    }
}
