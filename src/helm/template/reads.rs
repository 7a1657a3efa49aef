//! Reads of a render's input, so that an output can be kept while all of that stays the same. Maps of the
//! input note it themselves (`Watch`); what is made on the way is not watched. Compared in
//! `engine`.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::hash::{BuildHasherDefault, Hasher};
use std::rc::Rc;
use std::sync::Arc;

use super::node::Tree;
use super::text::Str;
use super::value::{List, Map, MapType, Value};

/// A map of the input, by number; the same path has the same number as long as its `Paths` live.
pub type NodeId = u32;

/// The root of all paths.
pub const ROOT: NodeId = 0;

/// A map inside a list: who reads the list depends on all of it, so only writes matter.
pub(super) const IN_LIST: NodeId = NodeId::MAX;

/// The keys of `.Release` that are not the same for every revision of a release.
const RELEASE_FACTS: [&str; 3] = ["IsInstall", "IsUpgrade", "Revision"];

/// One thing that was read.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Read {
    /// the value under a key; where that is a map, only that it is one
    Key(NodeId, Str),
    /// which keys there are
    Keys(NodeId),
    /// every key with its value; where that is a map, only that it is one
    All(NodeId),
}

/// A quick hash for keys that nobody can choose against us at a cost: a render is bounded by its own
/// templates.
#[derive(Default)]
pub struct Quick(u64);

impl Hasher for Quick {
    fn write(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            self.write_u64(u64::from_le_bytes(word));
        }
    }

    fn write_u64(&mut self, word: u64) {
        self.0 = (self.0.rotate_left(5) ^ word).wrapping_mul(0x517c_c1b7_2722_0a95);
    }

    fn write_u32(&mut self, word: u32) {
        self.write_u64(u64::from(word));
    }

    fn write_usize(&mut self, word: usize) {
        self.write_u64(word as u64);
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

/// Hashes quickly.
pub(super) type Quickly = BuildHasherDefault<Quick>;

/// A set of reads.
pub type ReadSet = HashSet<Read, Quickly>;

/// A line of a template that reads something.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReadPlace {
    /// The path of the file, from the root chart's name on.
    pub file: Arc<str>,
    /// The line, counted from 1.
    pub line: usize,
    /// The column, counted from 1.
    pub column: usize,
}

/// The reads of one template.
#[derive(Default)]
pub struct Seen {
    /// Reads of the input.
    pub reads: ReadSet,
    /// The keys of `.Release` among them that are not the same for every revision, each with the first place
    /// that names it, where one does.
    pub release: BTreeMap<&'static str, Option<ReadPlace>>,
    /// The templates it executed, itself first among them, as they were.
    pub(super) trees: HashMap<Str, Arc<Tree>, Quickly>,
    /// True if it executed a template that hides another one in a way `trees` does not tell.
    pub(super) hidden: bool,
}

impl Seen {
    /// Returns true if every template it executed says the same in this set.
    #[must_use]
    pub fn same_templates(&self, set: &super::TemplateSet, known: &mut Compared) -> bool {
        let same = |name: &Str, old: &Arc<Tree>| {
            let Some(new) = set.get(name) else { return false };
            if Arc::ptr_eq(old, new) {
                return true;
            }
            let pair = (Arc::as_ptr(old) as usize, Arc::as_ptr(new) as usize);
            *known.0.entry(pair).or_insert_with(|| old.same(new))
        };
        let mut same = same;
        !self.hidden && self.trees.iter().all(|(name, tree)| same(name, tree))
    }
}

/// Templates compared before, by address; of use only while both sides live.
#[derive(Default)]
pub struct Compared(HashMap<(usize, usize), bool>);

/// Notes what differs between the pairs of a map and those it had. `alike` says of two values of a key that
/// they are the same to who reads the map, and may note what differs further down.
pub fn differences<'m, V>(
    node: NodeId,
    old: impl Iterator<Item = (&'m [u8], V)>,
    new: impl Iterator<Item = (&'m [u8], V)>,
    found: &mut ReadSet,
    mut alike: impl FnMut(&[u8], &V, &V, &mut ReadSet) -> bool,
) {
    let mut old: BTreeMap<&[u8], V> = old.collect();
    let mut came_or_went = false;
    let differs = |key: &[u8], found: &mut ReadSet| {
        found.insert(Read::Key(node, key.into()));
        found.insert(Read::All(node));
    };
    for (key, value) in new {
        match old.remove(key) {
            Some(before) if alike(key, &before, &value, found) => {}
            before => {
                differs(key, found);
                came_or_went |= before.is_none();
            }
        }
    }
    for key in old.into_keys() {
        differs(key, found);
        came_or_went = true;
    }
    if came_or_went {
        found.insert(Read::Keys(node));
    }
}

/// Notes of the render that is running.
#[derive(Default)]
pub struct Reads {
    seen: RefCell<Seen>,
    wrote: Cell<bool>,
}

impl Reads {
    /// The content that was read since the last time this was asked.
    #[must_use]
    pub fn take(&self) -> Seen {
        self.seen.take()
    }

    /// Returns true if the input that the others see was changed since the last time this was asked.
    #[must_use]
    pub fn take_wrote(&self) -> bool {
        self.wrote.take()
    }

    pub(super) fn tree(&self, name: &Str, tree: &Arc<Tree>) {
        let mut seen = self.seen.borrow_mut();
        if !seen.trees.contains_key(name) {
            seen.trees.insert(name.clone(), Arc::clone(tree));
        }
    }

    pub(super) fn hidden(&self) {
        self.seen.borrow_mut().hidden = true;
    }

    fn note(&self, read: Read) {
        self.seen.borrow_mut().reads.insert(read);
    }

    fn note_release(&self, key: &[u8]) {
        if let Some(fact) = release_fact(key) {
            self.seen.borrow_mut().release.entry(fact).or_default();
        }
    }

    /// A key of `.Release` is read at this place.
    pub(super) fn release_at(&self, key: &[u8], place: impl FnOnce() -> ReadPlace) {
        if let Some(fact) = release_fact(key) {
            self.seen.borrow_mut().release.entry(fact).or_default().get_or_insert_with(place);
        }
    }
}

fn release_fact(key: &[u8]) -> Option<&'static str> {
    RELEASE_FACTS.into_iter().find(|fact| fact.as_bytes() == key)
}

/// The mark of a map of the input.
pub(super) struct Watch {
    reads: Rc<Reads>,
    pub(super) node: Cell<NodeId>,
    /// True if the map is `.Release`.
    pub(super) is_release: bool,
}

impl Watch {
    pub(super) fn new(reads: &Rc<Reads>, node: NodeId) -> Watch {
        Watch { reads: Rc::clone(reads), node: Cell::new(node), is_release: false }
    }

    fn note(&self, read: impl FnOnce(NodeId) -> Read) {
        let node = self.node.get();
        if node != IN_LIST {
            self.reads.note(read(node));
        }
    }

    pub(super) fn key(&self, key: &[u8]) {
        if self.is_release {
            self.reads.note_release(key);
        }
        self.note(|node| Read::Key(node, Str::from(key)));
    }

    pub(super) fn keys(&self) {
        self.note(Read::Keys);
    }

    pub(super) fn all(&self) {
        if self.is_release {
            RELEASE_FACTS.iter().for_each(|key| self.reads.note_release(key.as_bytes()));
        }
        self.note(Read::All);
    }

    pub(super) fn wrote(&self) {
        self.reads.wrote.set(true);
    }
}

/// Numbers of the maps of an input, by path.
#[derive(Default)]
pub struct Paths {
    below: Vec<BTreeMap<Str, NodeId>>,
}

impl Paths {
    /// The number of the map under a key of another one.
    pub fn child(&mut self, node: NodeId, key: &str) -> NodeId {
        if let Some(found) = self.known(node, key) {
            return found;
        }
        let at = node as usize;
        if self.below.len() <= at {
            self.below.resize_with(at + 1, BTreeMap::new);
        }
        self.below.push(BTreeMap::new());
        let made = NodeId::try_from(self.below.len() - 1).unwrap_or(IN_LIST);
        self.below[at].insert(key.into(), made);
        made
    }

    /// The number of the map under a key, if it ever had one.
    #[must_use]
    pub fn known(&self, node: NodeId, key: impl AsRef<[u8]>) -> Option<NodeId> {
        self.below.get(node as usize)?.get(key.as_ref()).copied()
    }

    /// The number of numbers that were given.
    #[must_use]
    pub fn count(&self) -> usize {
        self.below.len()
    }
}

/// Makes the values of a render's input; where somebody wants to know, every map notes what is read of it and
/// written.
pub struct Inputs<'a> {
    /// Where the notes go, and the numbers of maps; without numbers only writes are noted.
    pub watch: Option<(Rc<Reads>, Option<&'a mut Paths>)>,
}

impl Inputs<'_> {
    /// The number of the map under a key of another one.
    pub fn child(&mut self, node: NodeId, key: &str) -> NodeId {
        match &mut self.watch {
            Some((_, Some(paths))) if node != IN_LIST => paths.child(node, key),
            _ => IN_LIST,
        }
    }

    /// A map with these entries at a place of the input.
    #[must_use]
    pub fn map(&self, node: NodeId, ty: MapType, entries: BTreeMap<Str, Value>) -> Map {
        match &self.watch {
            Some((reads, _)) => Map::watched(ty, entries, Watch::new(reads, node)),
            None => Map::typed(ty, entries),
        }
    }

    /// The map `.Release` with these entries: the places that read it are noted, too.
    #[must_use]
    pub fn release(&self, node: NodeId, entries: BTreeMap<Str, Value>) -> Map {
        match &self.watch {
            Some((reads, _)) => {
                let watch = Watch { is_release: true, ..Watch::new(reads, node) };
                Map::watched(MapType::Any, entries, watch)
            }
            None => Map::typed(MapType::Any, entries),
        }
    }

    /// An empty map that has no place in the input.
    #[must_use]
    pub fn detached(&self, ty: MapType) -> Map {
        self.map(IN_LIST, ty, BTreeMap::new())
    }

    /// The value of a JSON tree at a place of the input, the outermost map of the type.
    pub fn json(&mut self, node: NodeId, json: &serde_json::Value, ty: MapType) -> Value {
        match json {
            serde_json::Value::Object(entries) => {
                let entries = entries.iter().map(|(key, value)| {
                    let below = if value.is_object() { self.child(node, key) } else { IN_LIST };
                    (Str::from(key.as_str()), self.json(below, value, MapType::Any))
                });
                let entries = entries.collect();
                Value::Map(self.map(node, ty, entries))
            }
            serde_json::Value::Array(items) => {
                Value::list(items.iter().map(|item| self.json(IN_LIST, item, MapType::Any)).collect())
            }
            scalar => Value::from_json(scalar),
        }
    }

    /// A value whose maps are marked, so that a write to one of them is seen.
    #[must_use]
    pub fn guarded(&self, value: &Value) -> Value {
        match value {
            Value::Map(map) if !map.is_nil() && self.watch.is_some() => {
                let entries = map.snapshot().into_iter().map(|(key, value)| (key, self.guarded(&value)));
                Value::Map(self.map(IN_LIST, map.ty(), entries.collect()))
            }
            Value::List(list) if !list.is_nil() && self.watch.is_some() => Value::List(List::typed(
                list.elem(),
                list.items().iter().map(|item| self.guarded(item)).collect(),
            )),
            other => other.clone(),
        }
    }
}
