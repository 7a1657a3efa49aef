//! The problem: the screen, the journal, the printer and the findings must agree on what happened, although
//! events come from many tasks and the screen may be slow. So there is one order, one owner, and snapshots
//! for everybody else.
//!
//! The one owner of `State`: drains the event channel, reduces, hands out snapshots, and passes every event
//! on to the journal and to whoever prints. Nothing else may change the state. What is wrong with the
//! operator follows from the same events (`findings`), and is passed on like any other.

use jiff::Timestamp;
use opdev_event::{Event, Request, RequestId};
use opdev_findings::Findings;
use opdev_project::journal::Journal;
use opdev_state::State;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

/// Events that may wait before senders wait, too.
pub const CAPACITY: usize = 4_096;

/// While more events wait, snapshots are this far apart: what changes after one has to be copied first.
const GAP: Duration = Duration::from_millis(25);

/// How often findings that wait for their time are looked at.
const LOOK: Duration = Duration::from_millis(500);

/// Takes every event in order, beside the state.
pub type Listener = Box<dyn FnMut(&Event) + Send>;

/// Whoever carries out what findings ask for, as long as anybody else may ask.
pub type Asks = mpsc::WeakSender<(RequestId, Request)>;

/// Requests of findings are not answered.
const UNANSWERED: RequestId = RequestId::MAX;

/// A running bus.
#[derive(Debug)]
pub struct Bus {
    /// The newest state.
    pub snapshots: watch::Receiver<Arc<State>>,
    /// True while findings have something to judge that only the time decides.
    pub undecided: watch::Receiver<bool>,
    /// Ends once every sender is gone and everything is reduced and written.
    pub task: JoinHandle<()>,
}

/// Whoever gets every event.
struct Takers {
    state: State,
    journal: Option<Journal>,
    listener: Option<Listener>,
    findings: Findings,
    asks: Option<Asks>,
}

impl Takers {
    fn take(&mut self, event: Event) {
        let follows = self.findings.see(&event);
        self.reconcile_on(event);
        follows.into_iter().for_each(|event| self.reconcile_on(event));
    }

    /// Sends on the events that follow from the time alone.
    fn elapsed(&mut self) -> bool {
        let follows = self.findings.elapsed(Timestamp::now());
        let any = !follows.is_empty();
        follows.into_iter().for_each(|event| self.reconcile_on(event));
        if let Some(asks) = self.asks.as_ref().and_then(mpsc::WeakSender::upgrade) {
            for (controller, object) in self.findings.asks() {
                // One that finds no room is asked for no more: the finding is told a little later, or never.
                let _ = asks.try_send((UNANSWERED, Request::LookAgain { controller, object }));
            }
        }
        any
    }

    fn reconcile_on(&mut self, event: Event) {
        if let Some(journal) = &mut self.journal {
            journal.record(&event);
        }
        if let Some(listener) = &mut self.listener {
            listener(&event);
        }
        self.state.reduce(event);
    }
}

/// Waits for events, or until something may follow though none comes. Says whether there may be more.
async fn wait(events: &mut mpsc::Receiver<Event>, batch: &mut Vec<Event>, due: Option<Timestamp>) -> bool {
    let Some(due) = due else { return events.recv_many(batch, 256).await > 0 };
    let left = Duration::try_from(due.duration_since(Timestamp::now())).unwrap_or_default();
    // Not at once, though the time that was told last lies behind.
    match tokio::time::timeout(left.max(GAP), events.recv_many(batch, 256)).await {
        Ok(count) => count > 0,
        Err(_) => true,
    }
}

/// Starts the task that owns the state, which is empty but for its limits. Its end, also by a panic, fires
/// `shutdown`: without it nobody would hear of anything any more.
pub fn start(
    state: State,
    mut events: mpsc::Receiver<Event>,
    (journal, listener): (Option<Journal>, Option<Listener>),
    (findings, asks): (Findings, Option<Asks>),
    shutdown: CancellationToken,
) -> Bus {
    let (publish, snapshots) = watch::channel(Arc::new(state.clone()));
    let (decide, undecided) = watch::channel(false);
    let task = tokio::spawn(async move {
        let _stop = shutdown.drop_guard();
        let mut takers = Takers { state, journal, listener, findings, asks };
        let mut batch = Vec::with_capacity(256);
        let mut published: Option<Instant> = None;
        let mut looked = Instant::now();
        while wait(&mut events, &mut batch, takers.findings.due()).await {
            let mut changed = !batch.is_empty();
            // A listener may look before all of the batch was judged.
            decide.send_if_modified(|known| changed && !std::mem::replace(known, true));
            batch.drain(..).for_each(|event| takers.take(event));
            if takers.findings.due().is_some() && looked.elapsed() >= LOOK {
                changed |= takers.elapsed();
                looked = Instant::now();
            }
            let open = takers.findings.is_undecided();
            decide.send_if_modified(|known| std::mem::replace(known, open) != open);
            if changed && (events.is_empty() || published.is_none_or(|at| at.elapsed() >= GAP)) {
                publish.send_replace(Arc::new(takers.state.clone()));
                published = Some(Instant::now());
            }
        }
        // Flushing the journal waits for its thread.
        let journal = takers.journal.take();
        let _ = tokio::task::spawn_blocking(move || drop(journal)).await;
    });
    Bus { snapshots, undecided, task }
}
