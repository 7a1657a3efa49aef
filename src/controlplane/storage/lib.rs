//! The untyped, versioned store: tables of objects, one revision counter, a bounded history per table.
//! In memory, and where it is told a folder, on disk as well: everything is read at the start, and what
//! changes is written by a thread beside it. Never knows what an object means; it only stamps
//! `metadata.resourceVersion`. Read `watch` next; `writer` and `database` for what survives a restart.

#![cfg_attr(test, allow(clippy::disallowed_methods, reason = "tests may wait"))]

mod caught;
mod database;
mod disk;
mod history;
mod index;
mod read_in;
mod record;
mod salvage;
mod stored;
mod trees;
mod watch;
mod writer;

pub use caught::panics_are_caught;
pub use database::{discard, forget_keys};
pub use disk::{Batch, CommitError, Disk, MovedAside, OpenError};
pub use history::{Change, ChangeKind, Expired};
use stored::Head;
pub use stored::text;
pub use stored::{Key, Stored};
pub use watch::Watch;

use history::{History, Readers};
use index::Index;
use opdev_apimachinery::attributes::{Attributes, IndexingOf, Lookup};
#[cfg(test)]
use opdev_apimachinery::attributes::{END, Indexed, Indexing};
use read_in::ReadIn;
use serde_json::Value;
use std::collections::{BTreeMap, HashMap};
use std::ops::Bound;
use std::path::Path;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use trees::{All, Trees};
use writer::Writer;

/// How many changes each table remembers for watches and for lists at an older revision.
const TABLE_HISTORY: usize = 1024;
/// How many changes of all tables together are remembered, for subscribers to everything.
const GLOBAL_HISTORY: usize = 4096;

/// The state that a write expects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expected {
    /// No object of that name.
    Absent,
    /// The object as written by this revision.
    Revision(u64),
}

/// Why a write was not done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// There is an object already.
    Exists,
    /// There is no object.
    Missing,
    /// The object is at another revision.
    Changed,
}

/// The state of one table, or of one namespace of it, at one revision.
#[derive(Debug)]
pub struct Listing {
    /// The revision this is the state of.
    pub revision: u64,
    /// The objects by namespace and name.
    pub items: Vec<Arc<Stored>>,
}

#[derive(Debug)]
struct Table {
    objects: BTreeMap<Key, Arc<Stored>>,
    index: Index,
    history: History,
    trees: Arc<Trees>,
}

#[derive(Debug)]
struct Inner {
    revision: u64,
    /// Changes up to this revision are not known: they were made in another process.
    base: u64,
    tables: HashMap<Arc<str>, Table>,
    all: History,
    trees: Arc<All>,
    kept: BTreeMap<String, Vec<u8>>,
    /// How the objects of a table are found: asked when the table is made.
    indexing: IndexingOf,
}

/// The store. Shared as `Arc<Store>`; every method takes one short lock.
#[derive(Debug)]
pub struct Store {
    inner: RwLock<Inner>,
    /// Where it is on disk as well.
    writer: Option<Writer>,
}

impl Store {
    /// An empty store that lives in memory.
    pub fn new(indexing: IndexingOf) -> Self {
        // Revision 0 means "any" and 1 is what an empty etcd starts at.
        Store { inner: RwLock::new(Inner::at(1, indexing)), writer: None }
    }

    /// An empty store that this disk keeps.
    ///
    /// # Errors
    /// Where no thread can be started.
    pub fn on_disk(disk: Box<dyn Disk>, indexing: IndexingOf) -> std::io::Result<Self> {
        let writer = Writer::start(disk, 1)?;
        Ok(Store { inner: RwLock::new(Inner::at(1, indexing)), writer: Some(writer) })
    }

    /// The store of a folder, as it was when it was last written; made where there is none. Where what is
    /// there is damaged, every object that verifies comes back, and the damaged file is kept. Reads all of
    /// it: blocks.
    pub fn open(folder: &Path, indexing: IndexingOf) -> Result<(Self, Option<MovedAside>), OpenError> {
        // The objects come before the revision they are of.
        let mut inner = Inner::at(0, indexing);
        let opened = std::thread::scope(|scope| database::open(folder, &mut ReadIn::new(scope, &mut inner)));
        let database::Opened { mut disk, saved, mended } = opened?;
        inner.begin_at(saved.revision);
        inner.kept = saved.kept;
        let unusable = |why: &dyn std::fmt::Display| OpenError::Unusable(folder.to_owned(), why.to_string());
        let mut moved = None;
        if let Some(mended) = mended {
            disk.commit(&inner.everything()).map_err(|error| unusable(&error))?;
            moved = disk.replace(mended).map_err(|error| unusable(&error))?;
        }
        let writer = Writer::start(Box::new(disk), saved.revision).map_err(|error| unusable(&error))?;
        Ok((Store { inner: RwLock::new(inner), writer: Some(writer) }, moved))
    }

    /// Waits until everything that was written before is safe from a crash; at once where it lives in memory.
    ///
    /// # Errors
    /// Why it cannot be written at the moment. It is in memory nevertheless, and is tried again.
    pub async fn settled(&self) -> Result<(), Arc<str>> {
        match &self.writer {
            Some(writer) => writer.settled().await,
            None => Ok(()),
        }
    }

    /// Why nothing can be saved at the moment.
    pub fn failure(&self) -> Option<Arc<str>> {
        self.writer.as_ref()?.failure()
    }

    /// Writes what is left and lets go of the folder; what is changed afterwards is not saved. Blocks.
    pub fn close(&self) {
        if let Some(writer) = &self.writer {
            writer.close();
        }
    }

    /// The text that is kept beside the objects under a name.
    pub fn kept(&self, name: &str) -> Option<Vec<u8>> {
        self.read().kept.get(name).cloned()
    }

    /// Keeps something beside the objects, as long as the store lives: keys, mostly. Never shown to a client.
    pub fn keep(&self, name: &str, bytes: Vec<u8>) {
        let mut inner = self.write();
        if let Some(writer) = &self.writer {
            writer.kept(name, &bytes, inner.revision);
        }
        inner.kept.insert(name.to_owned(), bytes);
    }

    fn read(&self) -> RwLockReadGuard<'_, Inner> {
        self.inner.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, Inner> {
        self.inner.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// Objects that were written or asked for last are kept as trees, too, up to so many bytes of their text:
    /// a tree takes about five times as much, and a write needs that of the version before.
    pub fn keep_trees(&self, bytes: usize) {
        self.read().trees.set_limit(bytes);
    }

    /// The newest revision.
    pub fn revision(&self) -> u64 {
        self.read().revision
    }

    /// One object.
    pub fn get(&self, table: &str, key: &Key) -> Option<Arc<Stored>> {
        self.read().tables.get(table)?.objects.get(key).cloned()
    }

    /// All objects of a table, or of one namespace of it.
    pub fn list(&self, table: &str, namespace: Option<&str>) -> Listing {
        let inner = self.read();
        let items = inner.tables.get(table).map(|t| items(&t.objects, namespace)).unwrap_or_default();
        Listing { revision: inner.revision, items }
    }

    /// The objects of a table, or of one namespace of it, among which those are that are looked for: as few
    /// as can be found without looking at each. By namespace and name.
    pub fn find(&self, table: &str, namespace: Option<&str>, wanted: &Lookup<'_>) -> Vec<Arc<Stored>> {
        self.list_among(table, namespace, wanted).items
    }

    /// The objects that `find` gives, with the revision of the state that they are from.
    pub fn list_among(&self, table: &str, namespace: Option<&str>, wanted: &Lookup<'_>) -> Listing {
        let inner = self.read();
        let items = inner.tables.get(table).map(|found| {
            let indexed = namespace.and_then(|namespace| found.index.find(namespace, wanted));
            indexed.unwrap_or_else(|| items(&found.objects, namespace))
        });
        Listing { revision: inner.revision, items: items.unwrap_or_default() }
    }

    /// The state as it was at `revision`, as long as the history reaches back to it.
    pub fn list_at(&self, table: &str, namespace: Option<&str>, revision: u64) -> Result<Listing, Expired> {
        let inner = self.read();
        let Some(found) = inner.tables.get(table) else {
            return Ok(Listing { revision, items: Vec::new() });
        };
        if found.history.is_current(revision) {
            return Ok(Listing { revision, items: items(&found.objects, namespace) });
        }
        let objects = found.history.rolled_back(&found.objects, revision)?;
        Ok(Listing { revision, items: items(&objects, namespace) })
    }

    /// How many objects a table holds.
    pub fn count(&self, table: &str) -> usize {
        self.read().tables.get(table).map_or(0, |t| t.objects.len())
    }

    /// Creates or replaces an object, at a new revision.
    pub fn put(
        &self,
        table: &str,
        key: &Key,
        expected: Expected,
        value: Value,
    ) -> Result<Arc<Stored>, Refused> {
        // The attributes are computed without the lock.
        let known = self.attributes(table, key, &value);
        let mut guard = self.write();
        let inner = &mut *guard;
        let next = inner.revision + 1;
        let (table, found) = inner.table(table);
        let previous = found.check(key, expected)?;
        let known = known.unwrap_or_else(|| found.trees.attributes(&value, None));
        // All versions of an object have one key.
        let key = &previous.as_ref().map_or_else(|| found.trees.key(key), |previous| previous.key().clone());
        let head = Head { key: key.clone(), revision: next, attributes: known };
        let object = Stored::new(head, value, &found.trees);
        found.index.replace(previous.as_ref(), Some(&object));
        found.objects.insert(key.clone(), object.clone());
        if let Some(writer) = &self.writer {
            writer.object((&table, || found.history.readers()), key, next, Some(object.clone()));
        }
        let kind = if previous.is_some() { ChangeKind::Modified } else { ChangeKind::Added };
        self.record(guard, Change::new(kind, table, key, next, object.clone(), previous.clone()));
        object.keep_tree_after(previous.as_ref());
        Ok(object)
    }

    /// The attributes of a new version of an object; `None` for the first object of a table.
    fn attributes(&self, table: &str, key: &Key, value: &Value) -> Option<Attributes> {
        let (trees, previous) = {
            let inner = self.read();
            let found = inner.tables.get(table)?;
            (found.trees.clone(), found.objects.get(key).cloned())
        };
        Some(trees.attributes(value, previous.as_ref().map(|previous| previous.attributes())))
    }

    /// Removes an object; what is returned is its last state (`last`, or as it was), stamped with the
    /// revision of the removal.
    pub fn remove(
        &self,
        table: &str,
        key: &Key,
        expected: u64,
        last: Option<Value>,
    ) -> Result<Arc<Stored>, Refused> {
        let mut guard = self.write();
        let inner = &mut *guard;
        let next = inner.revision + 1;
        let (table, found) = inner.table(table);
        let previous = found.check(key, Expected::Revision(expected))?;
        found.index.replace(previous.as_ref(), None);
        found.objects.remove(key);
        if let Some(writer) = &self.writer {
            writer.object((&table, || found.history.readers()), key, next, None);
        }
        let stated = last.is_some();
        let object = match (last, &previous) {
            (None, Some(previous)) => Stored::restamped(previous, next),
            (last, _) => {
                let last = last.unwrap_or_default();
                let known =
                    found.trees.attributes(&last, previous.as_ref().map(|previous| previous.attributes()));
                let head = Head { key: key.clone(), revision: next, attributes: known };
                Stored::new(head, last, &found.trees)
            }
        };
        let change = Change::new(ChangeKind::Deleted, table, key, next, object.clone(), previous);
        self.record(guard, change);
        if stated {
            object.keep_tree();
        }
        Ok(object)
    }

    /// Takes a change in, and wakes its readers when they can read it: where there is a disk, those from
    /// outside are woken when it is there. What it makes way for is freed without the lock: that takes longer
    /// than a write.
    fn record(&self, mut inner: RwLockWriteGuard<'_, Inner>, change: Change) {
        inner.revision = change.revision;
        let change = Arc::new(change);
        let history = &mut inner.table(&change.table).1.history;
        let _old = history.push(change.clone());
        let readers = self.writer.is_none().then(|| history.readers());
        let counter = history.counter();
        let _old_of_all = inner.all.push(change.clone());
        let (all, counter_of_all) = (inner.all.readers(), inner.all.counter());
        drop(inner);
        // The text is written here, without the lock.
        let size = change.object.size();
        [counter, counter_of_all].iter().for_each(|counter| counter.add(size));
        readers.iter().chain([&all]).for_each(Readers::wake);
    }

    /// Changes of one table after `from`, as soon as they are safe from a crash; `Expired` when the history
    /// no longer reaches back to it.
    pub fn watch(self: &Arc<Self>, table: &str, from: u64) -> Result<Watch, Expired> {
        let mut inner = self.write();
        let (name, found) = inner.table(table);
        found.history.check(from)?;
        let saved = self.writer.as_ref().map(Writer::progress);
        Ok(Watch::new(self.clone(), Some(name), from, found.history.subscribe(), saved))
    }

    /// Changes of all tables after `from`, at once: for readers inside this process, who go with it.
    pub fn watch_all(self: &Arc<Self>, from: u64) -> Result<Watch, Expired> {
        let inner = self.read();
        inner.all.check(from)?;
        Ok(Watch::new(self.clone(), None, from, inner.all.subscribe(), None))
    }

    /// The changes after `from` that are known now and not newer than `until` says, and up to which revision
    /// all are among them.
    fn changes(
        &self,
        table: Option<&str>,
        from: u64,
        until: impl FnOnce() -> u64,
    ) -> Result<(Vec<Arc<Change>>, u64), Expired> {
        let inner = self.read();
        let until = until().min(inner.revision);
        let history = match table {
            None => Some(&inner.all),
            Some(table) => inner.tables.get(table).map(|found| &found.history),
        };
        let changes = history.map_or_else(|| Ok(Vec::new()), |history| history.between(from, until))?;
        Ok((changes, until))
    }
}

impl Inner {
    fn at(base: u64, indexing: IndexingOf) -> Self {
        Inner {
            revision: base,
            base,
            tables: HashMap::new(),
            all: History::new(GLOBAL_HISTORY, base),
            trees: Arc::default(),
            kept: BTreeMap::new(),
            indexing,
        }
    }

    /// All there is, as one batch.
    fn everything(&self) -> disk::Batch {
        let objects = self.tables.iter().flat_map(|(name, table)| {
            table.objects.iter().map(|(key, object)| ((name.clone(), key.clone()), Some(object.clone())))
        });
        disk::Batch { revision: self.revision, objects: objects.collect(), kept: self.kept.clone() }
    }

    /// Goes on where another process left off.
    fn begin_at(&mut self, base: u64) {
        (self.revision, self.base, self.all) = (base, base, History::new(GLOBAL_HISTORY, base));
        self.tables.values_mut().for_each(|table| table.history = History::new(TABLE_HISTORY, base));
    }

    fn table(&mut self, name: &str) -> (Arc<str>, &mut Table) {
        let name = match self.tables.get_key_value(name) {
            Some((name, _)) => name.clone(),
            None => {
                let name: Arc<str> = name.into();
                let history = History::new(TABLE_HISTORY, self.base);
                let indexing = (self.indexing)(&name);
                let (index, trees) = (Index::new(indexing.by), Trees::new(indexing, self.trees.clone()));
                self.tables.insert(name.clone(), Table { objects: BTreeMap::new(), index, history, trees });
                name
            }
        };
        let table = self.tables.get_mut(&name).expect("inserted above");
        (name, table)
    }
}

impl Table {
    fn check(&self, key: &Key, expected: Expected) -> Result<Option<Arc<Stored>>, Refused> {
        match (self.objects.get(key), expected) {
            (None, Expected::Absent) => Ok(None),
            (Some(_), Expected::Absent) => Err(Refused::Exists),
            (None, Expected::Revision(_)) => Err(Refused::Missing),
            (Some(found), Expected::Revision(revision)) if found.revision == revision => {
                Ok(Some(found.clone()))
            }
            (Some(_), Expected::Revision(_)) => Err(Refused::Changed),
        }
    }
}

fn items(objects: &BTreeMap<Key, Arc<Stored>>, namespace: Option<&str>) -> Vec<Arc<Stored>> {
    match namespace {
        None => objects.values().cloned().collect(),
        Some(namespace) => objects
            .range((Bound::Included(Key::new(namespace, "")), Bound::Unbounded))
            .take_while(|(key, _)| &*key.namespace == namespace)
            .map(|(_, object)| object.clone())
            .collect(),
    }
}

/// How the objects of the tables of tests are found.
#[cfg(test)]
fn indexing(table: &str) -> &'static Indexing {
    static SERVICES: Indexing =
        Indexing { by: Indexed::Selectors, fields: Some(selector), ..Indexing::COMMON };
    static EVENTS: Indexing = Indexing { is_record: true, ..Indexing::COMMON };
    match table {
        "pods" => &Indexing::OWNERS_AND_LABELS,
        "secrets" => &Indexing::LABELS,
        "services" => &SERVICES,
        "events" => &EVENTS,
        _ => &Indexing::COMMON,
    }
}

/// The facts about a service: no address, no ports, and its selector.
#[cfg(test)]
fn selector(service: &Value) -> String {
    let pairs = service["spec"]["selector"].as_object().into_iter().flatten();
    let pairs: String = pairs.map(|(key, value)| format!("{key}={},", value.as_str().unwrap())).collect();
    format!("{END}{END}{pairs}{END}")
}

#[cfg(test)]
impl Default for Store {
    fn default() -> Self {
        Store::new(indexing)
    }
}

/// A disk that writes a batch for each word it is given.
#[cfg(test)]
struct Gate(std::sync::mpsc::Receiver<()>);

#[cfg(test)]
impl Disk for Gate {
    fn commit(&mut self, _: &Batch) -> Result<(), CommitError> {
        self.0.recv().map_err(|gone| CommitError { file: "gate".into(), cause: gone.into() })
    }
}

#[cfg(test)]
impl Store {
    /// A store that is saved when a word is sent.
    pub fn gated() -> (Store, std::sync::mpsc::Sender<()>) {
        let (open, gate) = std::sync::mpsc::channel();
        (Store::on_disk(Box::new(Gate(gate)), indexing).unwrap(), open)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn object(name: &str, n: i64) -> Value {
        json!({"metadata": {"name": name}, "n": n})
    }

    #[test]
    fn one_counter_over_all_tables() {
        let store = Store::default();
        let a = store.put("a", &Key::new("x", "1"), Expected::Absent, object("1", 1)).unwrap();
        let b = store.put("b", &Key::new("x", "1"), Expected::Absent, object("1", 1)).unwrap();
        assert_eq!(b.revision, a.revision + 1);
        assert_eq!(a.value()["metadata"]["resourceVersion"], a.revision.to_string());
        assert_eq!(
            store.put("a", &Key::new("x", "1"), Expected::Absent, object("1", 1)).unwrap_err(),
            Refused::Exists
        );
        assert_eq!(
            store.put("a", &Key::new("x", "1"), Expected::Revision(1), object("1", 1)).unwrap_err(),
            Refused::Changed
        );
    }

    #[test]
    fn a_list_at_an_older_revision_is_the_old_state() {
        let store = Store::default();
        let (one, two) = (Key::new("x", "1"), Key::new("x", "2"));
        let first = store.put("a", &one, Expected::Absent, object("1", 1)).unwrap();
        let at = first.revision;
        let second = store.put("a", &one, Expected::Revision(at), object("1", 2)).unwrap();
        store.put("a", &two, Expected::Absent, object("2", 1)).unwrap();
        store.remove("a", &one, second.revision, None).unwrap();
        let then = store.list_at("a", Some("x"), at).unwrap();
        assert_eq!(then.items.len(), 1);
        assert_eq!(then.items[0].value()["n"], 1);
        assert_eq!(store.list("a", None).items.len(), 1);
        assert_eq!(store.list("a", Some("other")).items.len(), 0);
    }

    #[tokio::test]
    async fn a_watch_sees_every_change_once_and_in_order() {
        let store = Arc::new(Store::default());
        let key = Key::new("x", "1");
        let first = store.put("a", &key, Expected::Absent, object("1", 1)).unwrap();
        let mut watch = store.watch("a", 1).unwrap();
        let mut late = store.watch("a", first.revision).unwrap();
        store.put("b", &key, Expected::Absent, object("1", 1)).unwrap();
        let last = store.remove("a", &key, first.revision, None).unwrap();
        let seen: Vec<_> = watch.next().await.unwrap().iter().map(|c| c.kind).collect();
        assert_eq!(seen, [ChangeKind::Added, ChangeKind::Deleted]);
        let seen = late.next().await.unwrap();
        assert_eq!(seen.len(), 1);
        assert_eq!(seen[0].revision, last.revision);
        assert_eq!(watch.position(), store.revision());
    }

    #[tokio::test]
    async fn readers_from_outside_are_woken_when_a_change_is_on_disk_and_not_before() {
        let (store, open) = Store::gated();
        let store = Arc::new(store);
        let mut outside = store.watch("a", 1).unwrap();
        let mut inside = store.watch_all(1).unwrap();
        store.put("a", &Key::new("x", "1"), Expected::Absent, object("1", 1)).unwrap();
        assert_eq!(inside.next().await.unwrap().len(), 1);
        assert!(outside.ready().unwrap().is_empty());
        let waiting = tokio::spawn(async move { outside.next().await.unwrap().len() });
        open.send(()).unwrap();
        assert_eq!(waiting.await.unwrap(), 1);
    }

    #[test]
    fn large_objects_are_remembered_for_a_shorter_time() {
        let store = Arc::new(Store::default());
        let large = |n: usize| json!({"metadata": {"name": n.to_string()}, "data": "x".repeat(1024 * 1024)});
        for n in 0..200 {
            store.put("a", &Key::new("x", &n.to_string()), Expected::Absent, large(n)).unwrap();
        }
        let newest = store.revision();
        assert!(store.watch("a", newest - 64).is_ok());
        assert!(store.watch("a", newest - 100).is_err());
    }

    #[test]
    fn an_object_reads_the_same_when_its_tree_is_gone_and_its_text_packed() {
        let store = Store::default();
        let made = |n: i64| json!({"kind": "A", "metadata": {"name": n.to_string(), "labels": {"n": n.to_string()}}, "n": n, "s": "x".repeat(2000)});
        let put = |n: i64| store.put("a", &Key::new("", &n.to_string()), Expected::Absent, made(n)).unwrap();
        let first = put(0);
        let (text, tree) = (first.json(), first.value());
        (1..6000).for_each(|n| drop(put(n)));
        assert!(!first.has_tree());
        assert_eq!((first.json(), first.glance()), (text, tree.clone()));
        assert!(!first.has_tree());
        assert_eq!(first.value(), tree);
        assert!(first.has_tree());
        assert_eq!(first.attributes().labels(), &json!({"n": "0"}));
    }

    #[test]
    fn a_removed_object_reads_as_it_was_at_the_revision_of_its_removal() {
        let store = Arc::new(Store::default());
        for inner in ["2", "9"] {
            // A field of its own may say the same as its revision.
            let spec = json!({"resourceVersion": inner, "text": "\"resourceVersion\":\"2\""});
            let made = json!({"kind": "A", "metadata": {"name": "a", "uid": "u"}, "spec": spec});
            let key = Key::new("x", inner);
            let put = store.put("a", &key, Expected::Absent, made.clone()).unwrap();
            let removed = store.remove("a", &key, put.revision, None).unwrap();
            let mut wanted = made;
            wanted["metadata"]["resourceVersion"] = removed.revision.to_string().into();
            assert!(!removed.has_tree());
            assert_eq!(*removed.glance(), wanted);
            assert_eq!(removed.json(), text(&wanted));
            assert_eq!(*removed.value(), wanted);
            assert_eq!(removed.attributes().uid(), "u");
        }
    }

    #[test]
    fn the_tree_of_a_version_that_was_replaced_is_not_kept() {
        let store = Store::default();
        let key = Key::new("", "a");
        let mut versions = vec![store.put("a", &key, Expected::Absent, object("a", 0)).unwrap()];
        for n in 1..500 {
            let last = versions.last().unwrap().revision;
            versions.push(store.put("a", &key, Expected::Revision(last), object("a", n)).unwrap());
        }
        assert_eq!(versions.iter().filter(|version| version.has_tree()).count(), 1);
        assert!(versions.last().unwrap().has_tree());
        assert_eq!(versions[7].glance()["n"], 7);
    }

    #[test]
    fn no_more_trees_are_kept_than_was_said() {
        let store = Store::default();
        store.keep_trees(1000);
        let large = |n: i64| json!({"metadata": {"name": n.to_string()}, "s": "x".repeat(300)});
        let put = |n: i64| store.put("a", &Key::new("", &n.to_string()), Expected::Absent, large(n)).unwrap();
        let made: Vec<_> = (0..20).map(put).collect();
        assert_eq!(made.iter().filter(|object| object.has_tree()).count(), 2);
    }

    #[test]
    fn an_old_revision_expires() {
        let store = Arc::new(Store::default());
        let key = Key::new("x", "1");
        let mut at = store.put("a", &key, Expected::Absent, object("1", 0)).unwrap().revision;
        for n in 0..=TABLE_HISTORY as i64 {
            at = store.put("a", &key, Expected::Revision(at), object("1", n)).unwrap().revision;
        }
        assert!(store.watch("a", 2).is_err());
        assert!(store.list_at("a", None, 2).is_err());
        assert!(store.watch("a", at).is_ok());
    }
}
