//! The switch that says whether anything may be written. Shared by everything that writes, so that the user's
//! word reaches all of them at once. Asks nobody; who lifts it has asked.

use std::sync::Arc;
use tokio::sync::watch;

/// The answer of opdev in the place of an API server that it only reads from.
pub const REFUSAL: &str = "opdev is read-only on this context; nothing was sent";

/// A switch that forbids all writes until it is lifted. Clones share it.
#[derive(Clone, Debug, Default)]
pub struct ReadOnly(Arc<watch::Sender<bool>>);

impl ReadOnly {
    /// A switch that forbids writes, or does not.
    pub fn new(holds: bool) -> ReadOnly {
        ReadOnly(Arc::new(watch::Sender::new(holds)))
    }

    /// Returns true if nothing may be written.
    pub fn holds(&self) -> bool {
        *self.0.borrow()
    }

    /// Allows writing from now on.
    pub fn lift(&self) {
        self.0.send_replace(false);
    }

    /// Waits until writing is allowed.
    pub async fn lifted(&self) {
        // The sender lives as long as this clone of it.
        let _ = self.0.subscribe().wait_for(|holds| !holds).await;
    }
}
