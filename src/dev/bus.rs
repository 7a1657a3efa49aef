//! The one owner of `State`: drains the event channel, reduces, hands out snapshots, and passes every event on
//! to the journal and to whoever prints. Nothing else may change the state.

use super::journal::Journal;
use crate::event::Event;
use crate::state::State;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

/// Events that may wait before senders wait, too.
pub const CAPACITY: usize = 4_096;

/// While more events wait, snapshots are this far apart: what changes after one has to be copied first.
const GAP: Duration = Duration::from_millis(25);

/// Takes every event in order, beside the state.
pub type Listener = Box<dyn FnMut(&Event) + Send>;

/// A running bus.
#[derive(Debug)]
pub struct Bus {
    /// The newest state.
    pub snapshots: watch::Receiver<Arc<State>>,
    /// Ends once every sender is gone and everything is reduced and written.
    pub task: JoinHandle<()>,
}

/// Starts the task that owns the state, which is empty but for its limits. Its end, also by a panic, fires `shutdown`: without it nobody would hear
/// of anything any more.
pub fn start(
    mut state: State,
    mut events: mpsc::Receiver<Event>,
    mut journal: Option<Journal>,
    mut listener: Option<Listener>,
    shutdown: CancellationToken,
) -> Bus {
    let (publish, snapshots) = watch::channel(Arc::new(state.clone()));
    let task = tokio::spawn(async move {
        let _stop = shutdown.drop_guard();
        let mut batch = Vec::with_capacity(256);
        let mut published: Option<Instant> = None;
        while events.recv_many(&mut batch, 256).await > 0 {
            for event in batch.drain(..) {
                if let Some(journal) = &mut journal {
                    journal.record(&event);
                }
                if let Some(listener) = &mut listener {
                    listener(&event);
                }
                state.reduce(event);
            }
            if events.is_empty() || published.is_none_or(|at| at.elapsed() >= GAP) {
                publish.send_replace(Arc::new(state.clone()));
                published = Some(Instant::now());
            }
        }
        // Flushing the journal waits for its thread.
        let _ = tokio::task::spawn_blocking(move || drop(journal)).await;
    });
    Bus { snapshots, task }
}
