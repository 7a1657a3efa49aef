//! A reader's place in the history. Readers share the log: nothing is copied per reader, and a slow reader
//! costs nothing until the log has moved past it, at which point its watch ends.

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
}

impl Watch {
    pub(super) fn new(
        store: Arc<Store>,
        table: Option<Arc<str>>,
        position: u64,
        newest: watch::Receiver<u64>,
    ) -> Self {
        Watch { store, table, position, newest }
    }

    /// Up to which revision everything has been read.
    pub fn position(&self) -> u64 {
        self.position
    }

    /// What has happened since the last call, without waiting; may be empty.
    pub fn ready(&mut self) -> Result<Vec<Arc<Change>>, Expired> {
        self.newest.borrow_and_update();
        let (changes, newest) = self.store.changes(self.table.as_deref(), self.position)?;
        self.position = self.position.max(newest);
        Ok(changes)
    }

    /// Waits for the next changes; never empty. `Expired` when this reader was too slow.
    pub async fn next(&mut self) -> Result<Vec<Arc<Change>>, Expired> {
        loop {
            let changes = self.ready()?;
            if !changes.is_empty() {
                return Ok(changes);
            }
            if self.newest.changed().await.is_err() {
                // The store is gone: nothing will ever come.
                std::future::pending::<()>().await;
            }
        }
    }
}
