//! An object as text that becomes a value when somebody looks. Values in memory take ten times the room of
//! their text, and of ten thousand objects few are looked at. The texts are packed: objects of a kind say
//! much the same.

use opdev_object::pack::{ByKind, Kept};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;
use std::borrow::Cow;
use std::fmt;
use std::hash::{BuildHasher as _, RandomState};
use std::ops::Deref;
use std::sync::{Arc, LazyLock, Mutex, OnceLock, PoisonError};

/// Shorter texts stay as they are.
const SHORTEST: usize = 256;

/// The dictionaries that the texts of each kind are compared with, and how texts are told apart without
/// reading them.
static PACKING: LazyLock<(ByKind, RandomState)> =
    LazyLock::new(|| (ByKind::new(SHORTEST), RandomState::new()));

/// An object with the value that its text says.
#[derive(Clone, Copy, Debug)]
pub struct Parsed<'a> {
    /// The object.
    pub body: &'a Body,
    /// Its value.
    pub value: &'a Value,
}

/// An object; clones share it.
#[derive(Clone)]
pub struct Body(Arc<Inner>);

struct Inner {
    text: Kept,
    hash: u64,
    /// Stays for as long as this version of the object does.
    value: OnceLock<Value>,
    /// The tree that the text was made of, for the first look.
    first: Mutex<Option<Box<Value>>>,
}

impl Body {
    /// Keeps a value.
    pub fn new(value: &Value) -> Self {
        let text = serde_json::to_vec(value).unwrap_or_default();
        let (kinds, hasher) = &*PACKING;
        let kind = value.get("kind").and_then(Value::as_str).unwrap_or_default();
        let hash = hasher.hash_one(&text);
        let text = kinds.of(kind).keep(&text);
        Body(Arc::new(Inner { text, hash, value: OnceLock::new(), first: Mutex::default() }))
    }

    /// Keeps a value of which somebody will make use in a moment, with [`Body::first`].
    pub fn with_first(value: Value) -> Self {
        let body = Body::new(&value);
        *body.0.first.lock().unwrap_or_else(PoisonError::into_inner) = Some(Box::new(value));
        body
    }

    /// The value for one look; what it was made of, where nobody has asked before.
    pub fn first(&self) -> Cow<'_, Value> {
        let first = self.0.first.lock().unwrap_or_else(PoisonError::into_inner).take();
        first.map_or_else(|| self.read(), |value| Cow::Owned(*value))
    }

    /// The text: JSON in one line.
    pub fn text(&self) -> String {
        String::from_utf8(self.bytes().into_owned()).unwrap_or_else(|_| "null".to_owned())
    }

    /// The bytes of the text.
    pub fn bytes(&self) -> Cow<'_, [u8]> {
        self.0.text.text()
    }

    /// How many bytes it takes while nobody has looked.
    pub fn held(&self) -> usize {
        self.0.text.held()
    }

    fn parsed(&self) -> Value {
        serde_json::from_slice(&self.bytes()).unwrap_or_default()
    }

    /// The value, for one look: what is read here is not kept.
    pub fn read(&self) -> Cow<'_, Value> {
        match self.0.value.get() {
            Some(value) => Cow::Borrowed(value),
            None => Cow::Owned(self.parsed()),
        }
    }

    /// The value, read on the first look and kept.
    pub fn value(&self) -> &Value {
        self.0.value.get_or_init(|| self.parsed())
    }

    /// Returns true if two hold the same text; that two differ is told without reading either.
    pub fn same(&self, other: &Body) -> bool {
        Arc::ptr_eq(&self.0, &other.0) || (self.0.hash == other.0.hash && self.bytes() == other.bytes())
    }
}

impl Serialize for Body {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.read().serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Body {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Body::new(&Value::deserialize(deserializer)?))
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
        f.write_str(&self.text())
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
        assert_eq!(serde_json::from_str::<Body>(&body.text()).unwrap().read().as_ref(), &value);
    }

    #[test]
    fn the_first_look_takes_what_the_text_was_made_of() {
        let value = json!({"kind": "A", "size": 1});
        let body = Body::with_first(value.clone());
        for _ in 0..2 {
            assert_eq!(body.first().as_ref(), &value);
            assert!(body.0.value.get().is_none() && body.0.first.lock().unwrap().is_none());
        }
    }

    #[test]
    fn one_look_keeps_nothing() {
        let body = Body::new(&json!({"a": 1}));
        assert_eq!(body.read()["a"], 1);
        assert!(body.0.value.get().is_none());
    }
}
