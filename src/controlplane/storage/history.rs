//! A bounded log of changes: what watches read from and what lists at an older revision are rebuilt from.
//! Read `watch` next.

use super::{Key, Stored};
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use tokio::sync::watch;

/// The kind of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChangeKind {
    /// It came.
    Added,
    /// It changed.
    Modified,
    /// It went.
    Deleted,
}

/// One change of one object.
#[derive(Clone, Debug)]
pub struct Change {
    /// The kind of the change.
    pub kind: ChangeKind,
    /// In which table.
    pub table: Arc<str>,
    /// To which object.
    pub key: Key,
    /// At which revision.
    pub revision: u64,
    /// The object afterwards; for a removal its last state.
    pub object: Arc<Stored>,
    /// The object before, if there was one.
    pub previous: Option<Arc<Stored>>,
}

impl Change {
    pub fn new(
        kind: ChangeKind,
        table: Arc<str>,
        key: &Key,
        revision: u64,
        object: Arc<Stored>,
        previous: Option<Arc<Stored>>,
    ) -> Self {
        Change { kind, table, key: key.clone(), revision, object, previous }
    }
}

/// The history no longer reaches back to the revision asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Expired {
    /// The request.
    pub wanted: u64,
    /// The oldest revision from which all changes are known.
    pub oldest: u64,
}

/// Bytes of text, before they are packed, that a history remembers.
const BYTES: i64 = 64 * 1024 * 1024;
/// So many changes are remembered however large they are: a watch that reads them has to come that far.
const FEWEST: usize = 64;

#[derive(Debug)]
pub(super) struct History {
    limit: usize,
    /// Bytes of text of all objects in the log whose text was counted; whoever pushes a change does that
    /// later, for it takes longer than all the rest.
    bytes: Arc<AtomicI64>,
    /// Changes at or before this revision are forgotten.
    floor: u64,
    log: VecDeque<Arc<Change>>,
    readers: watch::Sender<()>,
}

/// Wakes whoever reads a history, once what was pushed may be read.
#[derive(Clone, Debug)]
pub(super) struct Readers(watch::Sender<()>);

impl Readers {
    pub(super) fn wake(&self) {
        self.0.send_replace(());
    }
}

/// Counts the bytes of what was pushed.
#[derive(Clone, Debug)]
pub(super) struct Counter(Arc<AtomicI64>);

impl Counter {
    pub(crate) fn add(&self, size: usize) {
        self.0.fetch_add(size as i64, Ordering::Relaxed);
    }
}

impl History {
    pub(crate) fn new(limit: usize, floor: u64) -> Self {
        History { limit, bytes: Arc::default(), floor, log: VecDeque::new(), readers: watch::Sender::new(()) }
    }

    pub(crate) fn subscribe(&self) -> watch::Receiver<()> {
        self.readers.subscribe()
    }

    pub(super) fn readers(&self) -> Readers {
        Readers(self.readers.clone())
    }

    pub(super) fn counter(&self) -> Counter {
        Counter(self.bytes.clone())
    }

    /// Takes a change in. What is forgotten for it is given back: freeing it takes longer than all the rest.
    /// Readers are woken by the caller, when they may see it.
    pub(crate) fn push(&mut self, change: Arc<Change>) -> Vec<Arc<Change>> {
        self.log.push_back(change);
        let mut forgotten = Vec::new();
        let full =
            |history: &Self| history.bytes.load(Ordering::Relaxed) > BYTES && history.log.len() > FEWEST;
        while (self.log.len() > self.limit || full(self))
            && let Some(old) = self.log.pop_front()
        {
            self.floor = old.revision;
            // A change whose text is not counted yet makes the sum too small until then.
            self.bytes.fetch_sub(old.object.size() as i64, Ordering::Relaxed);
            forgotten.push(old);
        }
        forgotten
    }

    /// Returns true if nothing changed after `revision`.
    pub(super) fn is_current(&self, revision: u64) -> bool {
        self.log.back().map_or(self.floor, |change| change.revision) <= revision
    }

    pub(crate) fn check(&self, from: u64) -> Result<(), Expired> {
        if from < self.floor { Err(Expired { wanted: from, oldest: self.floor }) } else { Ok(()) }
    }

    /// The changes after `from` and up to `until`, oldest first.
    pub(crate) fn between(&self, from: u64, until: u64) -> Result<Vec<Arc<Change>>, Expired> {
        self.check(from)?;
        let start = self.log.partition_point(|change| change.revision <= from);
        let end = self.log.partition_point(|change| change.revision <= until);
        Ok(self.log.range(start.min(end)..end).cloned().collect())
    }

    /// `now` with every change after `revision` undone.
    pub(super) fn rolled_back(
        &self,
        now: &BTreeMap<Key, Arc<Stored>>,
        revision: u64,
    ) -> Result<BTreeMap<Key, Arc<Stored>>, Expired> {
        let mut then = now.clone();
        for change in self.between(revision, u64::MAX)?.iter().rev() {
            match &change.previous {
                Some(previous) => then.insert(change.key.clone(), previous.clone()),
                None => then.remove(&change.key),
            };
        }
        Ok(then)
    }
}
