//! The terminal: draws snapshots of the state, turns keys into requests. Never touches a cluster or a file.
//! `run` blocks; give it a thread of its own and join that thread before the process ends.

use crate::event::{Request, RequestId};
use crate::state::State;
use std::sync::Arc;
use std::time::Instant;
use tokio::sync::{mpsc, watch};
use tokio_util::sync::CancellationToken;

/// What the terminal needs.
pub struct TuiInput {
    /// The state, whenever it has changed. The screen closes when the sender is gone.
    pub snapshots: watch::Receiver<Arc<State>>,
    /// Where keys ask for things.
    pub requests: mpsc::Sender<(RequestId, Request)>,
    /// Closes the screen.
    pub shutdown: CancellationToken,
    /// Told once, when the first frame is on the screen.
    pub first_frame: Option<Box<dyn FnOnce(Instant) + Send>>,
}

/// Shows the screen until `shutdown` fires, the user quits, or the terminal goes away.
pub fn run(input: TuiInput) -> anyhow::Result<()> {
    drop(input);
    Ok(())
}
