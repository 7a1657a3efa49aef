//! One version of one object as the store keeps it, and the key at which it stands.

use bytes::Bytes;
use serde_json::Value;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Where an object stands within its table; the namespace is empty for cluster-scoped objects.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key {
    /// Namespace or `""`.
    pub namespace: Arc<str>,
    /// Name.
    pub name: Arc<str>,
}

impl Key {
    /// Builds one; `""` is the namespace of cluster-scoped objects.
    pub fn new(namespace: &str, name: &str) -> Self {
        Key { namespace: namespace.into(), name: name.into() }
    }
}

/// One version of one object, with its JSON text for as long as many may ask for it.
#[derive(Debug)]
pub struct Stored {
    /// The object.
    pub value: Arc<Value>,
    /// The revision that wrote it.
    pub revision: u64,
    json: Mutex<Option<Bytes>>,
    /// The object in other forms, by names that whoever made them gave.
    forms: Mutex<Vec<(Box<str>, Arc<Stored>)>>,
}

impl Stored {
    pub(super) fn new(mut value: Value, revision: u64) -> Arc<Self> {
        if let Some(meta) = value.get_mut("metadata").and_then(Value::as_object_mut) {
            meta.insert("resourceVersion".to_owned(), Value::from(revision.to_string()));
        }
        Stored::saved(value, revision)
    }

    /// An object that is not in the store: what a dry run answers.
    pub fn unsaved(value: Value) -> Arc<Self> {
        Stored::saved(value, 0)
    }

    /// An object as it was read back.
    pub(super) fn saved(value: Value, revision: u64) -> Arc<Self> {
        Arc::new(Stored { value: Arc::new(value), revision, json: Mutex::default(), forms: Mutex::default() })
    }

    /// The object with another content, of the same revision.
    pub fn with_value(&self, value: Value) -> Arc<Self> {
        Stored::saved(value, self.revision)
    }

    /// A form of the object that was kept under this name.
    pub fn form(&self, name: &str) -> Option<Arc<Stored>> {
        let forms = self.forms.lock().unwrap_or_else(PoisonError::into_inner);
        forms.iter().find(|(known, _)| &**known == name).map(|(_, form)| form.clone())
    }

    /// Keeps a form of the object for as long as the object itself; the oldest of many makes way.
    pub fn keep_form(&self, name: &str, form: Arc<Stored>) {
        const MOST: usize = 4;
        let mut forms = self.forms.lock().unwrap_or_else(PoisonError::into_inner);
        if forms.len() >= MOST {
            forms.remove(0);
        }
        forms.push((name.into(), form));
    }

    /// Appends the object's JSON text, without keeping it where it was not asked for yet.
    pub(super) fn write_json(&self, into: &mut Vec<u8>) -> serde_json::Result<()> {
        match &*self.text() {
            Some(text) => into.extend_from_slice(text),
            None => serde_json::to_writer(into, &*self.value)?,
        }
        Ok(())
    }

    pub(super) fn text(&self) -> MutexGuard<'_, Option<Bytes>> {
        self.json.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The object as JSON text.
    pub fn json(&self) -> Bytes {
        self.text().get_or_insert_with(|| text(&self.value)).clone()
    }

    /// Lets go of the text: whoever asks once more has it made again.
    pub(super) fn forget_text(&self) {
        *self.text() = None;
    }
}

/// An object as JSON text, with kind and version in front as the real server's own types have them.
pub(crate) fn text(object: &Value) -> Bytes {
    const FRONT: [&str; 2] = ["kind", "apiVersion"];
    let Some(map) = object.as_object() else { return object.to_string().into() };
    let rest = map.iter().filter(|(key, _)| !FRONT.contains(&key.as_str()));
    let front = FRONT.iter().filter_map(|key| map.get_key_value(*key));
    let mut out = Vec::with_capacity(2048);
    for (key, value) in front.chain(rest) {
        out.push(if out.is_empty() { b'{' } else { b',' });
        // Writing into memory does not fail.
        let _ = serde_json::to_writer(&mut out, key);
        out.push(b':');
        let _ = serde_json::to_writer(&mut out, value);
    }
    out.extend_from_slice(if out.is_empty() { b"{}" } else { b"}" });
    // It is kept as long as it is.
    out.into_boxed_slice().into()
}
