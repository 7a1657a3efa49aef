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
    woken: watch::Receiver<()>,
    /// The progress on disk, for a reader that may only see saved changes: it wakes once a change is there.
    saved: Option<watch::Receiver<Progress>>,
}

impl Watch {
    pub(super) fn new(
        store: Arc<Store>,
        table: Option<Arc<str>>,
        position: u64,
        woken: watch::Receiver<()>,
        saved: Option<watch::Receiver<Progress>>,
    ) -> Self {
        Watch { store, table, position, woken, saved }
    }

    /// Up to which revision everything has been read.
    pub fn position(&self) -> u64 {
        self.position
    }

    /// The changes since the last call, without waiting; may be empty.
    pub fn ready(&mut self) -> Result<Vec<Arc<Change>>, Expired> {
        self.woken.borrow_and_update();
        let saved = &self.saved;
        let until = || saved.as_ref().map_or(u64::MAX, |saved| saved.borrow().revision);
        let (changes, reach) = self.store.changes(self.table.as_deref(), self.position, until)?;
        self.position = self.position.max(reach);
        Ok(changes)
    }

    /// Waits for the next changes; never empty. `Expired` when this reader was too slow.
    pub async fn next(&mut self) -> Result<Vec<Arc<Change>>, Expired> {
        loop {
            let changes = self.ready()?;
            if !changes.is_empty() {
                return Ok(changes);
            }
            if self.woken.changed().await.is_err() {
                // The store is gone, or closed: nothing will ever come.
                std::future::pending::<()>().await;
            }
        }
    }
}
