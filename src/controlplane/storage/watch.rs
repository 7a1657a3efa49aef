//! A reader's place in the history. Readers share the log: nothing is copied per reader, and a slow reader
//! costs nothing until the log has moved past it, at which point its watch ends.
//! Where the store is on disk, a reader from outside sees nothing that a crash could still take back.

use super::writer::Progress;
use super::{Change, Expired, Store};
use std::sync::Arc;
use tokio::sync::watch;

/// The changes of a table (or of all tables) from a revision on.
#[derive(Debug)]
pub struct Watch {
    store: Arc<Store>,
    table: Option<Arc<str>>,
    position: u64,
    newest: watch::Receiver<u64>,
    /// What is on disk, where only that may be told.
    saved: Option<watch::Receiver<Progress>>,
}

impl Watch {
    pub(super) fn new(
        store: Arc<Store>,
        table: Option<Arc<str>>,
        position: u64,
        newest: watch::Receiver<u64>,
        saved: Option<watch::Receiver<Progress>>,
    ) -> Self {
        Watch { store, table, position, newest, saved }
    }

    /// Up to which revision everything has been read.
    pub fn position(&self) -> u64 {
        self.position
    }

    /// What has happened since the last call, without waiting; may be empty.
    pub fn ready(&mut self) -> Result<Vec<Arc<Change>>, Expired> {
        self.read().map(|(changes, _)| changes)
    }

    /// The same, and whether there are changes that wait for the disk.
    fn read(&mut self) -> Result<(Vec<Arc<Change>>, bool), Expired> {
        self.newest.borrow_and_update();
        let saved = &mut self.saved;
        let until = || saved.as_mut().map_or(u64::MAX, |saved| saved.borrow_and_update().revision);
        let (changes, reach) = self.store.changes(self.table.as_deref(), self.position, until)?;
        self.position = self.position.max(reach.revision);
        Ok((changes, reach.more))
    }

    /// Waits for the next changes; never empty. `Expired` when this reader was too slow.
    pub async fn next(&mut self) -> Result<Vec<Arc<Change>>, Expired> {
        loop {
            let (changes, more) = self.read()?;
            if !changes.is_empty() {
                return Ok(changes);
            }
            let changed = match &mut self.saved {
                Some(saved) if more => saved.changed().await,
                _ => self.newest.changed().await,
            };
            if changed.is_err() {
                // The store is gone, or closed: nothing will ever come.
                std::future::pending::<()>().await;
            }
        }
    }
}
