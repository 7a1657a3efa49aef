//! Makes objects of the records of a file, on all cores once there are many: a start waits for it. Few texts
//! wait at a time, so that a start does not hold the whole file beside its objects. Never reads the file, and
//! never decides what of it counts; read `salvage`.
#![expect(
    clippy::disallowed_methods,
    reason = "these threads are only for this; `Store::open` blocks, and says so"
)]

use super::record::encode_key;
use super::salvage::TakeIn;
use super::trees::Trees;
use super::{Inner, Key, Stored};
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{Scope, available_parallelism};

/// How many bytes of text go to another thread at once.
const BATCH: usize = 512 * 1024;
/// More threads than these wait for the one that reads the file.
const MOST_THREADS: usize = 6;

/// Records on their way to objects. Their texts lie one behind the other.
#[derive(Default)]
struct Batch {
    texts: Vec<u8>,
    records: Vec<Record>,
}

struct Record {
    table: Arc<str>,
    trees: Arc<Trees>,
    key: Key,
    revision: u64,
    text: Range<usize>,
}

/// The outcome for a record; without an object where its text is none.
struct Made {
    table: Arc<str>,
    key: Key,
    object: Option<Arc<Stored>>,
}

impl Batch {
    fn make(&self) -> Vec<Made> {
        let made = self.records.iter().map(|Record { table, trees, key, revision, text }| {
            let key = trees.key(key);
            let text = self.texts.get(text.clone()).unwrap_or_default();
            // A bug in this must cost one object, not the start.
            let made =
                catch_unwind(AssertUnwindSafe(|| Stored::read_back(key.clone(), text, *revision, trees)));
            let object = made.ok().flatten();
            Made { table: table.clone(), key, object }
        });
        made.collect()
    }
}

/// The other threads. They end when this is dropped.
struct Threads {
    batches: SyncSender<Batch>,
    made: Receiver<Vec<Made>>,
    /// The number of batches that are not back yet.
    out: usize,
}

impl Threads {
    fn start<'scope>(scope: &'scope Scope<'scope, '_>) -> Threads {
        let count = available_parallelism().map_or(1, usize::from).clamp(1, MOST_THREADS);
        let (batches, waiting) = sync_channel(count);
        let (done, made) = channel();
        let waiting = Arc::new(Mutex::new(waiting));
        for _ in 0..count {
            let (waiting, done) = (waiting.clone(), done.clone());
            scope.spawn(move || work(&waiting, &done));
        }
        Threads { batches, made, out: 0 }
    }
}

fn work(waiting: &Mutex<Receiver<Batch>>, done: &Sender<Vec<Made>>) {
    loop {
        let next = waiting.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let Ok(batch) = next else { return };
        if done.send(batch.make()).is_err() {
            return;
        }
    }
}

/// Takes the records of a file into an empty store.
pub(super) struct ReadIn<'scope, 'env, 'a> {
    scope: &'scope Scope<'scope, 'env>,
    inner: &'a mut Inner,
    batch: Batch,
    /// `None` until there is enough for them.
    threads: Option<Threads>,
    refused: Vec<Vec<u8>>,
}

impl<'scope, 'env, 'a> ReadIn<'scope, 'env, 'a> {
    pub(crate) fn new(scope: &'scope Scope<'scope, 'env>, inner: &'a mut Inner) -> Self {
        ReadIn { scope, inner, batch: Batch::default(), threads: None, refused: Vec::new() }
    }

    /// Gives the batch to the other threads, and takes what they have made.
    fn hand_over(&mut self) {
        let threads = self.threads.get_or_insert_with(|| Threads::start(self.scope));
        match threads.batches.send(std::mem::take(&mut self.batch)) {
            Ok(()) => threads.out += 1,
            // Nobody is there: all of them panicked.
            Err(back) => self.batch = back.0,
        }
        while let Some(Ok(made)) = self.threads.as_mut().map(|threads| threads.made.try_recv()) {
            self.put(made);
        }
    }

    fn put(&mut self, made: Vec<Made>) {
        if let Some(threads) = &mut self.threads {
            threads.out = threads.out.saturating_sub(1);
        }
        for Made { table, key, object } in made {
            let Some(object) = object else {
                self.refused.push(encode_key(&table, &key));
                continue;
            };
            let found = self.inner.table(&table).1;
            found.index.replace(None, Some(&object));
            found.objects.insert(key, object);
        }
    }
}

impl TakeIn for ReadIn<'_, '_, '_> {
    fn take(&mut self, table: &str, key: Key, revision: u64, text: &[u8]) {
        let (table, found) = self.inner.table(table);
        let trees = found.trees.clone();
        let Batch { texts, records } = &mut self.batch;
        let begin = texts.len();
        texts.extend_from_slice(text);
        records.push(Record { table, trees, key, revision, text: begin..texts.len() });
        if texts.len() >= BATCH {
            self.hand_over();
        }
    }

    fn refused(&mut self) -> Vec<Vec<u8>> {
        let rest = std::mem::take(&mut self.batch).make();
        if let Some(threads) = &mut self.threads {
            threads.out += 1;
        }
        self.put(rest);
        while let Some(threads) = self.threads.as_ref().filter(|threads| threads.out > 0) {
            let Ok(made) = threads.made.recv() else { break };
            self.put(made);
        }
        std::mem::take(&mut self.refused)
    }
}
