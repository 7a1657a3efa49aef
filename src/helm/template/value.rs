//! Values as Go templates see them: kinds of numbers kept apart, strings of bytes, maps that are shared and
//! mutable. A clone of a map or list is the same map or list, as in Go. JSON comes in and out through
//! `convert`. Read `host` for objects with fields and methods, `print` for their text.

use std::cell::{OnceCell, Ref, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;

use super::host::Host;
pub use super::kind::{Kind, UintKind};
use super::reads::{IN_LIST, NodeId, Reads, Watch};
use super::release::release;
use super::text::Str;

/// One Go value. `Nil` is both Go's invalid value and a nil interface.
#[derive(Clone, Default)]
pub enum Value {
    /// nothing
    #[default]
    Nil,
    /// `bool`
    Bool(bool),
    /// Go's `int`: literals in templates, `len`, `int`
    Int(i64),
    /// Go's `int64`: arithmetic, integers of a custom resource
    Int64(i64),
    /// `uint8`, `uint64`
    Uint(UintKind, u64),
    /// `float64`: every number of values.yaml
    Float(f64),
    /// `string`
    Str(Str),
    /// a slice
    List(List),
    /// a map
    Map(Map),
    /// a struct, pointer or named type with methods
    Host(Rc<dyn Host>),
}

/// Element type of a slice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Elem {
    /// `interface {}`
    Any,
    /// `string`
    Str,
    /// `int`
    Int,
    /// `uint8`
    Byte,
    /// `[]interface {}`
    Lists,
    /// a named element type such as `*chart.File`
    Named(&'static str),
}

/// A slice; nothing in the template language changes one in place.
#[derive(Clone)]
pub struct List(Rc<ListData>);

struct ListData {
    elem: Elem,
    nil: bool,
    /// The bytes of a `[]uint8`; its items are made when somebody asks for them.
    bytes: Option<Str>,
    items: OnceCell<Vec<Value>>,
}

impl Drop for ListData {
    fn drop(&mut self) {
        if let Some(items) = self.items.take().filter(|items| !items.is_empty()) {
            release(items);
        }
    }
}

impl List {
    /// A `[]interface {}`.
    #[must_use]
    pub fn new(items: Vec<Value>) -> List {
        List::typed(Elem::Any, items)
    }

    /// A slice with the given element type.
    #[must_use]
    pub fn typed(elem: Elem, items: Vec<Value>) -> List {
        List(Rc::new(ListData { elem, nil: false, bytes: None, items: OnceCell::from(items) }))
    }

    /// The nil slice.
    #[must_use]
    pub fn nil(elem: Elem) -> List {
        List(Rc::new(ListData { elem, nil: true, bytes: None, items: OnceCell::from(Vec::new()) }))
    }

    /// A `[]string`.
    pub fn strings<S: Into<Str>>(items: impl IntoIterator<Item = S>) -> List {
        List::typed(Elem::Str, items.into_iter().map(|s| Value::Str(s.into())).collect())
    }

    /// A `[]uint8`.
    #[must_use]
    pub fn bytes(bytes: impl Into<Str>) -> List {
        let bytes = Some(bytes.into());
        List(Rc::new(ListData { elem: Elem::Byte, nil: false, bytes, items: OnceCell::new() }))
    }

    /// The element type.
    #[must_use]
    pub fn elem(&self) -> Elem {
        self.0.elem
    }

    /// Returns true if this is Go's nil slice (prints as an empty one, is `null` in JSON).
    #[must_use]
    pub fn is_nil(&self) -> bool {
        self.0.nil
    }

    /// The items.
    #[must_use]
    pub fn items(&self) -> &[Value] {
        self.0.items.get_or_init(|| {
            let bytes = self.0.bytes.as_deref().unwrap_or_default();
            bytes.iter().map(|byte| Value::Uint(UintKind::U8, u64::from(*byte))).collect()
        })
    }

    /// How many items there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.bytes.as_ref().map_or_else(|| self.items().len(), |bytes| bytes.len())
    }

    /// Returns true if there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// An item.
    #[must_use]
    pub fn get(&self, at: usize) -> Option<Value> {
        match &self.0.bytes {
            Some(bytes) => bytes.get(at).map(|byte| Value::Uint(UintKind::U8, u64::from(*byte))),
            None => self.items().get(at).cloned(),
        }
    }

    /// Returns true if somebody else has it, too.
    pub(super) fn is_shared(&self) -> bool {
        Rc::strong_count(&self.0) > 1
    }

    /// The bytes of a `[]uint8`.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        if let Some(bytes) = &self.0.bytes {
            return bytes.to_vec();
        }
        let byte = |v: &Value| if let Value::Uint(_, n) = v { u8::try_from(*n).unwrap_or(0) } else { 0 };
        self.items().iter().map(byte).collect()
    }

    /// Go's name of the type.
    #[must_use]
    pub fn type_name(&self) -> String {
        let elem = match self.0.elem {
            Elem::Any => "interface {}",
            Elem::Str => "string",
            Elem::Int => "int",
            Elem::Byte => "uint8",
            Elem::Lists => "[]interface {}",
            Elem::Named(name) => name,
        };
        format!("[]{elem}")
    }

    /// Returns true if both are one slice.
    #[must_use]
    pub fn same(&self, other: &List) -> bool {
        Rc::ptr_eq(&self.0, &other.0)
    }
}

/// The Go type of a map.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MapType {
    /// `map[string]interface {}`
    Any,
    /// `map[string]string`
    Strings,
    /// `chartutil.Values`, Helm 3's name for a `map[string]interface {}`
    ChartutilValues,
    /// `common.Values`, Helm 4's name
    CommonValues,
    /// `engine.files`: bytes by name
    Files,
}

impl MapType {
    /// Go's name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            MapType::Any => "map[string]interface {}",
            MapType::Strings => "map[string]string",
            MapType::ChartutilValues => "chartutil.Values",
            MapType::CommonValues => "common.Values",
            MapType::Files => "engine.files",
        }
    }
}

/// A map, shared and mutable: a clone is the same map.
#[derive(Clone)]
pub struct Map {
    ty: MapType,
    nil: bool,
    shared: Rc<Shared>,
}

#[derive(Default)]
struct Shared {
    entries: RefCell<BTreeMap<Str, Value>>,
    /// Set on maps of the input of a render that notes what is read.
    watch: OnceCell<Watch>,
}

impl Drop for Shared {
    fn drop(&mut self) {
        let entries = self.entries.get_mut();
        if !entries.is_empty() {
            release(std::mem::take(entries));
        }
    }
}

impl Default for Map {
    fn default() -> Map {
        Map::new()
    }
}

impl Map {
    /// An empty `map[string]interface {}`.
    #[must_use]
    pub fn new() -> Map {
        Map::typed(MapType::Any, BTreeMap::new())
    }

    /// A map of the given type.
    #[must_use]
    pub fn typed(ty: MapType, entries: BTreeMap<Str, Value>) -> Map {
        let shared = Shared { entries: RefCell::new(entries), watch: OnceCell::new() };
        Map { ty, nil: false, shared: Rc::new(shared) }
    }

    /// A map of a render's input.
    pub(super) fn watched(ty: MapType, entries: BTreeMap<Str, Value>, watch: Watch) -> Map {
        let shared = Shared { entries: RefCell::new(entries), watch: OnceCell::from(watch) };
        Map { ty, nil: false, shared: Rc::new(shared) }
    }

    /// The nil `map[string]interface {}`.
    #[must_use]
    pub fn nil() -> Map {
        Map { ty: MapType::Any, nil: true, shared: Rc::default() }
    }

    /// A `map[string]interface {}` with these entries.
    pub fn from_entries<K: Into<Str>>(entries: impl IntoIterator<Item = (K, Value)>) -> Map {
        Map::typed(MapType::Any, entries.into_iter().map(|(k, v)| (k.into(), v)).collect())
    }

    /// This map under another type, as a Go conversion.
    #[must_use]
    pub fn with_type(&self, ty: MapType) -> Map {
        Map { ty, ..self.clone() }
    }

    /// The type.
    #[must_use]
    pub fn ty(&self) -> MapType {
        self.ty
    }

    /// Returns true if this is Go's nil map.
    #[must_use]
    pub fn is_nil(&self) -> bool {
        self.nil
    }

    /// The value under a key.
    #[must_use]
    pub fn get(&self, key: &[u8]) -> Option<Value> {
        if let Some(watch) = self.shared.watch.get() {
            watch.key(key);
        }
        self.shared.entries.borrow().get(key).cloned()
    }

    /// The value under a key, without a note that it was read: for code that makes the input.
    #[must_use]
    pub fn peek(&self, key: &[u8]) -> Option<Value> {
        self.shared.entries.borrow().get(key).cloned()
    }

    /// Returns true if there is such a key.
    #[must_use]
    pub fn contains(&self, key: &[u8]) -> bool {
        if let Some(watch) = self.shared.watch.get() {
            watch.key(key);
        }
        self.shared.entries.borrow().contains_key(key)
    }

    /// Puts a value under a key; every holder of the map sees it.
    pub fn insert(&self, key: Str, value: Value) {
        self.note_write();
        self.shared.entries.borrow_mut().insert(key, value);
    }

    /// Puts a value under a key without a note that the input was changed: for what belongs to the input.
    pub fn put(&self, key: Str, value: Value) {
        self.shared.entries.borrow_mut().insert(key, value);
    }

    /// Takes a key out.
    pub fn remove(&self, key: &[u8]) {
        self.note_write();
        self.shared.entries.borrow_mut().remove(key);
    }

    /// The number of entries.
    #[must_use]
    pub fn len(&self) -> usize {
        if let Some(watch) = self.shared.watch.get() {
            watch.keys();
        }
        self.shared.entries.borrow().len()
    }

    /// Returns true if there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The entries at this moment, sorted by key.
    #[must_use]
    pub fn snapshot(&self) -> Vec<(Str, Value)> {
        self.read().iter().map(|(k, v)| (k.clone(), v.clone())).collect()
    }

    /// The keys at this moment, sorted.
    #[must_use]
    pub fn keys(&self) -> Vec<Str> {
        if let Some(watch) = self.shared.watch.get() {
            watch.keys();
        }
        self.shared.entries.borrow().keys().cloned().collect()
    }

    /// Read access; hold it only while nothing else runs.
    #[must_use]
    pub fn read(&self) -> Ref<'_, BTreeMap<Str, Value>> {
        if let Some(watch) = self.shared.watch.get() {
            watch.all();
        }
        self.shared.entries.borrow()
    }

    /// Read access without a note: for checks that tell nothing of what they see.
    pub(super) fn peek_all(&self) -> Ref<'_, BTreeMap<Str, Value>> {
        self.shared.entries.borrow()
    }

    /// Makes the map note what is read of it, under this number from now on.
    pub(super) fn watch(&self, reads: &Rc<Reads>, node: NodeId) {
        self.shared.watch.get_or_init(|| Watch::new(reads, node)).node.set(node);
    }

    /// The number it notes reads under.
    pub(super) fn node(&self) -> NodeId {
        self.shared.watch.get().map_or(IN_LIST, |watch| watch.node.get())
    }

    /// Where it is: the same for every clone, and for nothing else while one of them lives.
    pub(super) fn address(&self) -> *const () {
        Rc::as_ptr(&self.shared).cast()
    }

    /// Returns true if this is `.Release` of a render that notes what is read.
    pub(super) fn is_release(&self) -> bool {
        self.shared.watch.get().is_some_and(|watch| watch.is_release)
    }

    /// Returns true if somebody else has it, too.
    pub(super) fn is_shared(&self) -> bool {
        Rc::strong_count(&self.shared) > 1
    }

    fn note_write(&self) {
        if let Some(watch) = self.shared.watch.get() {
            watch.wrote();
        }
    }

    /// Returns true if both are one map.
    #[must_use]
    pub fn same(&self, other: &Map) -> bool {
        Rc::ptr_eq(&self.shared, &other.shared)
    }

    /// The value of a missing key: the zero of the element type.
    #[must_use]
    pub fn zero(&self) -> Value {
        match self.ty {
            MapType::Any | MapType::ChartutilValues | MapType::CommonValues => Value::Nil,
            MapType::Strings => Value::Str(Str::default()),
            MapType::Files => Value::List(List::nil(Elem::Byte)),
        }
    }

    /// Returns true if elements are `interface {}`.
    #[must_use]
    pub fn holds_any(&self) -> bool {
        !matches!(self.ty, MapType::Strings | MapType::Files)
    }

    /// Go's name of the type.
    #[must_use]
    pub fn type_name(&self) -> &'static str {
        self.ty.name()
    }
}

impl Value {
    /// A string.
    pub fn str(text: impl Into<Str>) -> Value {
        Value::Str(text.into())
    }

    /// A `[]interface {}`.
    #[must_use]
    pub fn list(items: Vec<Value>) -> Value {
        Value::List(List::new(items))
    }

    /// A `[]string`.
    pub fn strings<S: Into<Str>>(items: impl IntoIterator<Item = S>) -> Value {
        Value::List(List::strings(items))
    }

    /// A host object.
    #[must_use]
    pub fn host(object: impl Host + 'static) -> Value {
        Value::Host(Rc::new(object))
    }

    /// Returns true if there is nothing here.
    #[must_use]
    pub fn is_nil(&self) -> bool {
        matches!(self, Value::Nil)
    }

    /// Go's kind.
    #[must_use]
    pub fn kind(&self) -> Kind {
        match self {
            Value::Nil => Kind::Invalid,
            Value::Bool(_) => Kind::Bool,
            Value::Int(_) => Kind::Int,
            Value::Int64(_) => Kind::Int64,
            Value::Uint(UintKind::U8, _) => Kind::Uint8,
            Value::Uint(UintKind::U64, _) => Kind::Uint64,
            Value::Float(_) => Kind::Float64,
            Value::Str(_) => Kind::String,
            Value::List(_) => Kind::Slice,
            Value::Map(_) => Kind::Map,
            Value::Host(host) => host.kind(),
        }
    }

    /// Go's `%T`.
    #[must_use]
    pub fn type_name(&self) -> String {
        match self {
            Value::Nil => "<nil>".to_owned(),
            Value::Str(_) => "string".to_owned(),
            Value::List(list) => list.type_name(),
            Value::Map(map) => map.type_name().to_owned(),
            Value::Host(host) => host.type_name().into_owned(),
            Value::Bool(_) | Value::Int(_) | Value::Int64(_) | Value::Uint(..) | Value::Float(_) => {
                self.kind().name().to_owned()
            }
        }
    }

    /// The map or slice behind a named type, or the value itself.
    #[must_use]
    pub fn underlying(&self) -> Value {
        match self {
            Value::Host(host) => host.underlying().unwrap_or_else(|| self.clone()),
            other => other.clone(),
        }
    }

    /// The items of a slice, also of a named one.
    #[must_use]
    pub fn as_list(&self) -> Option<List> {
        match self {
            Value::List(list) => Some(list.clone()),
            Value::Host(host) => match host.underlying() {
                Some(Value::List(list)) => Some(list),
                _ => None,
            },
            _ => None,
        }
    }

    /// A map that is one.
    pub fn as_map(&self) -> Option<Map> {
        if let Value::Map(map) = self { Some(map.clone()) } else { None }
    }

    /// The bytes of a string.
    #[must_use]
    pub fn as_str(&self) -> Option<&Str> {
        if let Value::Str(text) = self { Some(text) } else { None }
    }

    /// Go's truth of a value in `if`, `and`, `not`.
    #[must_use]
    pub fn truth(&self) -> bool {
        match self {
            Value::Nil => false,
            Value::Bool(b) => *b,
            Value::Int(n) | Value::Int64(n) => *n != 0,
            Value::Uint(_, n) => *n != 0,
            Value::Float(f) => *f != 0.0,
            Value::Str(s) => !s.is_empty(),
            Value::List(list) => !list.is_empty(),
            Value::Map(map) => !map.is_empty(),
            Value::Host(host) => host.underlying().is_none_or(|v| v.truth()),
        }
    }

    /// Go's reflect.DeepEqual.
    #[must_use]
    pub fn deep_equal(&self, other: &Value) -> bool {
        match (self, other) {
            (Value::Nil, Value::Nil) => true,
            (Value::Bool(a), Value::Bool(b)) => a == b,
            (Value::Int(a), Value::Int(b)) | (Value::Int64(a), Value::Int64(b)) => a == b,
            (Value::Uint(ka, a), Value::Uint(kb, b)) => ka == kb && a == b,
            (Value::Float(a), Value::Float(b)) => a == b,
            (Value::Str(a), Value::Str(b)) => a == b,
            (Value::List(a), Value::List(b)) => {
                a.elem() == b.elem()
                    && a.is_nil() == b.is_nil()
                    && a.len() == b.len()
                    && (a.same(b) || a.items().iter().zip(b.items()).all(|(x, y)| x.deep_equal(y)))
            }
            (Value::Map(a), Value::Map(b)) => {
                if a.ty() != b.ty() || a.is_nil() != b.is_nil() || a.len() != b.len() {
                    return false;
                }
                let (left, right) = (a.snapshot(), b.snapshot());
                a.same(b) || left.iter().zip(&right).all(|((ka, va), (kb, vb))| ka == kb && va.deep_equal(vb))
            }
            (Value::Host(a), Value::Host(b)) => {
                Rc::ptr_eq(a, b) || (a.type_name() == b.type_name() && a.equals(b.as_ref()))
            }
            _ => false,
        }
    }
}
