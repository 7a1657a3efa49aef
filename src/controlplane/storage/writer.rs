//! The problem: a client may see a write only when the disk has it, or a crash takes back what was
//! acknowledged. A flush for each write is too slow, and readers may not overtake the writer.
//!
//! Writes behind the store's back: a thread that takes everything that has come since it last looked and
//! commits it at once (group commit), so that the cost of a disk's flush is shared by whoever waits for it.
//! What nobody waits for, as most writes of controllers, is gathered for a moment. What is acknowledged waits
//! in `settled`; the order of batches is the order of revisions.

use super::disk::{Batch, Disk};
use super::history::Readers;
use super::{Key, Stored};
use std::collections::HashMap;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use tokio::sync::watch;

/// How long to wait before a disk that failed is tried again.
const RETRY: Duration = Duration::from_secs(1);

/// How long changes are gathered that nobody waits for: watchers see them so much later.
const GATHER: Duration = Duration::from_millis(5);

/// The progress of the thread.
#[derive(Clone, Debug)]
pub(super) struct Progress {
    /// All changes up to this revision are on the disk.
    pub revision: u64,
    /// All entries up to this one are.
    entry: u64,
    /// Why nothing is written at the moment.
    failure: Option<Arc<str>>,
}

#[derive(Debug, Default)]
struct Waiting {
    batch: Batch,
    /// By table, who waits for what is in it.
    readers: HashMap<Arc<str>, Readers>,
    /// Counts what was pushed.
    entry: u64,
    /// True if somebody waits for what is in the batch.
    awaited: bool,
    closing: bool,
}

#[derive(Debug, Default)]
struct Shared {
    waiting: Mutex<Waiting>,
    wake: Condvar,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The thread and what it has to do. Dropping it lets the thread finish and go.
#[derive(Debug)]
pub(super) struct Writer {
    shared: Arc<Shared>,
    progress: watch::Receiver<Progress>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl Writer {
    /// Starts the thread; everything up to `revision` is on the disk already.
    pub(crate) fn start(disk: Box<dyn Disk>, revision: u64) -> std::io::Result<Self> {
        Writer::gathering(disk, revision, GATHER)
    }

    /// Starts the thread; writes that nobody waits for are gathered for `gather`.
    fn gathering(disk: Box<dyn Disk>, revision: u64, gather: Duration) -> std::io::Result<Self> {
        let shared = Arc::new(Shared::default());
        let (told, progress) = watch::channel(Progress { revision, entry: 0, failure: None });
        let own = shared.clone();
        let thread = std::thread::Builder::new()
            .name("store".to_owned())
            .spawn(move || run(disk, &own, &told, gather))?;
        Ok(Writer { shared, progress, thread: Mutex::new(Some(thread)) })
    }

    fn push(&self, change: impl FnOnce(&mut Waiting)) {
        let mut waiting = self.shared.lock();
        let first = waiting.batch.is_empty();
        change(&mut waiting);
        waiting.entry += 1;
        drop(waiting);
        if first {
            self.shared.wake.notify_one();
        }
    }

    /// An object as of a revision; the caller holds the store's lock, which makes the order that of
    /// revisions. The table's readers are woken once it is on the disk.
    pub(crate) fn object(
        &self,
        table: (&Arc<str>, impl FnOnce() -> Readers),
        key: &Key,
        revision: u64,
        object: Option<Arc<Stored>>,
    ) {
        let (table, readers) = table;
        self.push(|waiting| {
            waiting.batch.revision = revision;
            waiting.batch.objects.insert((table.clone(), key.clone()), object);
            waiting.readers.entry(table.clone()).or_insert_with(readers);
        });
    }

    /// Something beside the objects, as of the store's revision.
    pub(crate) fn kept(&self, name: &str, bytes: &[u8], revision: u64) {
        self.push(|Waiting { batch, .. }| {
            batch.revision = revision;
            batch.kept.insert(name.to_owned(), bytes.to_owned());
        });
    }

    /// Waits until everything that was pushed before is on the disk; says why where it cannot be written.
    pub(crate) async fn settled(&self) -> Result<(), Arc<str>> {
        let entry = {
            let mut waiting = self.shared.lock();
            if !waiting.batch.is_empty() && !waiting.awaited {
                waiting.awaited = true;
                self.shared.wake.notify_one();
            }
            waiting.entry
        };
        let mut progress = self.progress.clone();
        let found = progress.wait_for(|now| now.entry >= entry || now.failure.is_some()).await;
        match found {
            Ok(now) if now.entry >= entry => Ok(()),
            Ok(now) => Err(now.failure.clone().unwrap_or_else(|| GONE.into())),
            Err(_) => Err(GONE.into()),
        }
    }

    /// Why nothing is written at the moment.
    pub(crate) fn failure(&self) -> Option<Arc<str>> {
        let gone = || self.progress.has_changed().is_err().then(|| GONE.into());
        self.progress.borrow().failure.clone().or_else(gone)
    }

    /// For a reader who may only see what is on the disk.
    pub(super) fn progress(&self) -> watch::Receiver<Progress> {
        self.progress.clone()
    }

    /// Writes what is left and lets go of the disk. Waits for it.
    #[expect(clippy::disallowed_methods, reason = "only called where the plane stops, by `blocking::run`")]
    pub(crate) fn close(&self) {
        self.ask_to_close();
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(thread) = thread
            && thread.join().is_err()
        {
            tracing::error!("the store's thread panicked");
        }
    }

    fn ask_to_close(&self) {
        self.shared.lock().closing = true;
        self.shared.wake.notify_one();
    }
}

const GONE: &str = "the store is closed";

impl Drop for Writer {
    fn drop(&mut self) {
        self.ask_to_close();
    }
}

/// Commits until asked to close.
#[expect(clippy::disallowed_methods, reason = "the store's own thread waits for work")]
fn run(mut disk: Box<dyn Disk>, shared: &Shared, told: &watch::Sender<Progress>, gather: Duration) {
    loop {
        let mut waiting = shared.lock();
        while waiting.batch.is_empty() && !waiting.closing {
            waiting = shared.wake.wait(waiting).unwrap_or_else(PoisonError::into_inner);
        }
        if waiting.batch.is_empty() {
            return;
        }
        let until = Instant::now() + gather;
        while !waiting.awaited
            && !waiting.closing
            && let Some(left) = until.checked_duration_since(Instant::now())
        {
            (waiting, _) = shared.wake.wait_timeout(waiting, left).unwrap_or_else(PoisonError::into_inner);
        }
        waiting.awaited = false;
        let (batch, entry) = (std::mem::take(&mut waiting.batch), waiting.entry);
        let readers = std::mem::take(&mut waiting.readers);
        drop(waiting);
        while let Err(why) = disk.commit(&batch) {
            tracing::error!("the store cannot be written: {why}");
            told.send_modify(|progress| progress.failure = Some(why.to_string().into()));
            let waiting = shared.lock();
            let waited = shared.wake.wait_timeout_while(waiting, RETRY, |waiting| !waiting.closing);
            let (waiting, _) = waited.unwrap_or_else(PoisonError::into_inner);
            if waiting.closing {
                return;
            }
        }
        told.send_replace(Progress { revision: batch.revision, entry, failure: None });
        readers.values().for_each(Readers::wake);
    }
}

#[cfg(test)]
mod tests {
    use super::super::disk::CommitError;
    use super::*;
    use serde_json::json;
    use std::sync::mpsc;

    /// A disk that tells how many objects each batch had.
    struct Counting(mpsc::Sender<usize>);

    impl Disk for Counting {
        fn commit(&mut self, batch: &Batch) -> Result<(), CommitError> {
            self.0
                .send(batch.objects.len())
                .map_err(|gone| CommitError { file: "a".into(), cause: gone.into() })
        }
    }

    #[tokio::test]
    async fn what_nobody_waits_for_is_gathered_until_somebody_does() {
        let (disk, batches) = mpsc::channel();
        let hour = Duration::from_secs(3600);
        let writer = Writer::gathering(Box::new(Counting(disk)), 1, hour).unwrap();
        let history = super::super::history::History::new(8, 1);
        let push = |name: &str, revision: u64| {
            let object = Stored::unsaved(json!({"kind": "A", "metadata": {"name": name}}));
            let key = object.key().clone();
            writer.object((&"as".into(), || history.readers()), &key, revision, Some(object));
        };
        writer.settled().await.unwrap();
        for (n, name) in ["a", "b", "c"].iter().enumerate() {
            push(name, n as u64 + 2);
        }
        assert!(batches.try_recv().is_err());
        writer.settled().await.unwrap();
        assert_eq!(batches.try_recv(), Ok(3));
        // It is there: who asks again does not hasten what comes later.
        writer.settled().await.unwrap();
        push("d", 5);
        assert!(batches.try_recv().is_err());
        writer.close();
        assert_eq!((batches.try_recv(), batches.try_recv()), (Ok(1), Err(mpsc::TryRecvError::Disconnected)));
    }
}
