//! One version of one object: its compact JSON text, packed while nobody asks for it, and what is known of it
//! without reading it. The tree of its fields is made when a rule asks for it, and let go when other objects
//! are asked for; its `managedFields` are compact (`opdev_object::apply::compact`). Never knows what an
//! object means. Read `trees` next.

use super::trees::Trees;
use bytes::Bytes;
use opdev_apimachinery::attributes::{Attributes, Indexing};
use opdev_apimachinery::contract::Readable;
use opdev_object::apply::compact;
use opdev_object::meta;
use opdev_object::pack::Packed;
use serde_json::Value;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

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

/// See the module.
#[derive(Debug)]
pub struct Stored {
    /// The revision that wrote it.
    pub revision: u64,
    key: Key,
    attributes: Attributes,
    content: Mutex<Content>,
    /// True if its tree was asked for since `trees` looked last.
    asked: AtomicBool,
    /// True if `trees` keeps its tree.
    kept: AtomicBool,
    /// The owner of the tree, which decides how long it is kept; nobody for an object outside the store,
    /// which keeps it.
    trees: Weak<Trees>,
}

impl Readable for Stored {
    fn place(&self) -> (&str, &str) {
        (&self.key().namespace, &self.key().name)
    }

    fn attributes(&self) -> &Attributes {
        self.attributes()
    }

    // A change is looked at once. A controller that works on the object asks the view for it.
    fn tree(&self) -> Arc<Value> {
        self.glance()
    }
}

/// The parts of an object's version that are known before its content.
pub(super) struct Head {
    pub key: Key,
    /// The revision that writes it.
    pub revision: u64,
    pub attributes: Attributes,
}

#[derive(Debug)]
struct Content {
    text: Text,
    tree: Option<Arc<Value>>,
    /// The object in other forms, by names that whoever made them gave.
    forms: Vec<(Box<str>, Arc<Stored>)>,
}

/// The text in the shape in which it takes the least, for how often it is asked for.
#[derive(Debug)]
enum Text {
    /// There is only the tree yet.
    Unwritten,
    /// That of another version of the object, but for the revision. It is made for whoever asks: few do.
    Restamped(Arc<Stored>, u64),
    Whole(Bytes),
    Packed(Packed),
}

impl Stored {
    /// An object that the store takes in, stamped with its revision.
    pub(super) fn new(head: Head, mut value: Value, trees: &Arc<Trees>) -> Arc<Self> {
        stamped(&mut value, head.revision);
        Stored::of(head, value, Arc::downgrade(trees))
    }

    /// The object as it was, of another revision: what its removal leaves. It has no tree.
    pub(super) fn restamped(of: &Arc<Stored>, revision: u64) -> Arc<Self> {
        let content = Mutex::new(Content {
            text: Text::Restamped(of.clone(), revision),
            tree: None,
            forms: Vec::new(),
        });
        let (key, attributes) = (of.key.clone(), of.attributes.clone());
        let (asked, kept, trees) = (AtomicBool::new(false), AtomicBool::new(false), of.trees.clone());
        Arc::new(Stored { revision, key, attributes, content, asked, kept, trees })
    }

    /// An object that is not in the store: what a dry run answers.
    pub fn unsaved(value: Value) -> Arc<Self> {
        let attributes = Attributes::alone(&Indexing::COMMON, &value);
        let (namespace, name) = (meta::namespace(&value), meta::name(&value));
        let key = Key::new(namespace.unwrap_or_default(), name.unwrap_or_default());
        Stored::of(Head { key, revision: 0, attributes }, value, Weak::new())
    }

    /// An object as it was read back. It has no tree yet.
    pub(super) fn read_back(key: Key, text: &[u8], revision: u64, trees: &Arc<Trees>) -> Option<Arc<Self>> {
        let attributes = trees.attributes_of_text(text)?;
        let text = trees.pack(text).map_or_else(|| Text::Whole(Bytes::copy_from_slice(text)), Text::Packed);
        let content = Mutex::new(Content { text, tree: None, forms: Vec::new() });
        let (asked, kept, trees) = (AtomicBool::new(false), AtomicBool::new(false), Arc::downgrade(trees));
        Some(Arc::new(Stored { revision, key, attributes, content, asked, kept, trees }))
    }

    fn of(Head { key, revision, attributes }: Head, value: Value, trees: Weak<Trees>) -> Arc<Self> {
        let tree = Some(Arc::new(value));
        let content = Mutex::new(Content { text: Text::Unwritten, tree, forms: Vec::new() });
        let (asked, kept) = (AtomicBool::new(false), AtomicBool::new(false));
        Arc::new(Stored { revision, key, attributes, content, asked, kept, trees })
    }

    /// The object with another content, of the same revision.
    pub fn with_value(&self, value: Value) -> Arc<Self> {
        let attributes = match self.trees.upgrade() {
            Some(trees) => trees.attributes(&value, Some(&self.attributes)),
            None => Attributes::alone(&Indexing::COMMON, &value),
        };
        let head = Head { key: self.key.clone(), revision: self.revision, attributes };
        let form = Stored::of(head, value, self.trees.clone());
        form.keep_tree();
        form
    }

    /// Where it stands in its table.
    pub fn key(&self) -> &Key {
        &self.key
    }

    /// The attributes of the object, without reading it.
    pub fn attributes(&self) -> &Attributes {
        &self.attributes
    }

    fn content(&self) -> MutexGuard<'_, Content> {
        self.content.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The object as a tree with compact `managedFields`, for a rule that is likely to ask for it again soon.
    pub fn value(self: &Arc<Self>) -> Arc<Value> {
        let mut content = self.content();
        if let Some(tree) = &content.tree {
            self.asked.store(true, Ordering::Relaxed);
            return tree.clone();
        }
        let tree = content.parse();
        content.tree = Some(tree.clone());
        drop(content);
        self.keep_tree();
        tree
    }

    /// The object as a tree with compact `managedFields`, for one look: of many objects, or for an answer.
    pub fn glance(&self) -> Arc<Value> {
        let content = self.content();
        content.tree.clone().unwrap_or_else(|| content.parse())
    }

    /// Returns true if it is null instead of an object, without reading it: null is never in the store, so it
    /// keeps its tree.
    pub fn is_null(&self) -> bool {
        self.content().tree.as_ref().is_some_and(|tree| tree.is_null())
    }

    /// Keeps the tree until others have been asked for.
    pub(super) fn keep_tree(self: &Arc<Self>) {
        self.keep_tree_after(None);
    }

    /// Keeps the tree in the place of the tree of the version before.
    pub(super) fn keep_tree_after(self: &Arc<Self>, before: Option<&Arc<Stored>>) {
        if let Some(trees) = self.trees.upgrade() {
            trees.keep(self.clone(), before);
        }
    }

    /// Returns true if `trees` keeps the tree.
    pub(super) fn is_kept(&self) -> bool {
        self.kept.load(Ordering::Relaxed)
    }

    /// Notes whether `trees` keeps the tree; what was noted before.
    pub(super) fn set_kept(&self, kept: bool) -> bool {
        self.kept.swap(kept, Ordering::Relaxed)
    }

    /// Returns true if the tree is there, without making it.
    #[cfg(test)]
    pub(super) fn has_tree(&self) -> bool {
        self.content().tree.is_some()
    }

    /// How many bytes its text takes.
    #[cfg(test)]
    pub fn held(&self) -> usize {
        match &self.content().text {
            Text::Packed(packed) => packed.held(),
            Text::Whole(text) => text.len(),
            Text::Restamped(..) | Text::Unwritten => 0,
        }
    }

    /// Returns true if the tree was asked for since this was called last.
    pub(super) fn was_asked(&self) -> bool {
        self.asked.swap(false, Ordering::Relaxed)
    }

    /// How many bytes the text has; it is written where it was not yet.
    pub fn size(&self) -> usize {
        match &self.content().written().text {
            Text::Packed(packed) => packed.size(),
            Text::Whole(text) => text.len(),
            // But for the digits of the revision.
            Text::Restamped(of, _) => of.size(),
            Text::Unwritten => 0,
        }
    }

    /// Lets go of the tree.
    pub(super) fn forget_tree(&self) {
        let mut content = self.content();
        content.written();
        content.tree = None;
    }

    /// Packs the text, unless the object was asked for again meanwhile.
    pub(super) fn pack(&self) {
        let text = match &*self.content() {
            Content { text: Text::Whole(text), tree: None, .. } => text.clone(),
            Content { .. } => return,
        };
        // Without the lock: somebody may ask for the object meanwhile.
        if let Some(packed) = self.trees.upgrade().and_then(|trees| trees.pack(&text)) {
            self.content().text = Text::Packed(packed);
        }
    }

    /// A form of the object that was kept under this name.
    pub fn form(&self, name: &str) -> Option<Arc<Stored>> {
        self.content().forms.iter().find(|(known, _)| &**known == name).map(|(_, form)| form.clone())
    }

    /// Keeps a form of the object for as long as the object itself; the oldest of many makes way.
    pub fn keep_form(&self, name: &str, form: Arc<Stored>) {
        const MOST: usize = 4;
        let forms = &mut self.content().forms;
        if forms.len() >= MOST {
            forms.remove(0);
        }
        forms.push((name.into(), form));
    }

    /// The object as JSON text.
    pub fn json(&self) -> Bytes {
        match &self.content().written().text {
            Text::Whole(text) => text.clone(),
            Text::Packed(packed) => packed.whole().into(),
            Text::Restamped(of, revision) => restamped(of, *revision),
            Text::Unwritten => Bytes::new(),
        }
    }
}

impl Content {
    /// With the text written where it was not yet.
    fn written(&mut self) -> &Self {
        if let (Text::Unwritten, Some(tree)) = (&self.text, &self.tree) {
            self.text = Text::Whole(text(tree));
        }
        self
    }

    /// The tree of the text.
    fn parse(&self) -> Arc<Value> {
        let parsed = match &self.text {
            Text::Whole(text) => compact::read(text),
            Text::Packed(packed) => compact::read(&packed.whole()),
            Text::Restamped(of, revision) => compact::read(&restamped(of, *revision)),
            Text::Unwritten => Ok(Value::Null),
        };
        // It was made by `text`, of a tree.
        parsed
            .unwrap_or_else(|error| {
                tracing::error!(%error, "a stored object cannot be read");
                Value::Null
            })
            .into()
    }
}

/// The text of an object as that of another revision of it.
fn restamped(of: &Stored, revision: u64) -> Bytes {
    let before = of.json();
    let stamp = |revision: u64| format!("\"resourceVersion\":\"{revision}\"");
    let old = stamp(of.revision);
    let mut found = memchr::memmem::find_iter(&before, &old);
    if let (Some(at), None) = (found.next(), found.next()) {
        let rest = &before[at + old.len()..];
        return [&before[..at], stamp(revision).as_bytes(), rest].concat().into();
    }
    // Another field of it says the same.
    let mut tree = Value::clone(&of.glance());
    stamped(&mut tree, revision);
    text(&tree)
}

/// Writes the revision into an object.
fn stamped(object: &mut Value, revision: u64) {
    if let Some(meta) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        meta.insert("resourceVersion".to_owned(), Value::from(revision.to_string()));
    }
}

/// An object as JSON text as clients know it, with kind and version in front as the real server's own types
/// have them.
pub fn text(object: &Value) -> Bytes {
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
        let _ = match key.as_str() {
            "metadata" => compact::write_metadata(value, &mut out),
            _ => serde_json::to_writer(&mut out, value),
        };
    }
    out.extend_from_slice(if out.is_empty() { b"{}" } else { b"}" });
    // It is kept as long as it is.
    out.into_boxed_slice().into()
}
