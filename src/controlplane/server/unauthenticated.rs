//! Connections whose client has not authenticated yet: no request on them has carried a valid credential.
//! Their number is limited: where one more comes, the one that has been silent for longest is closed. So
//! clients that send nothing never keep others out. Authenticated connections are not counted.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

/// Connections of unknown clients at once.
pub(super) const ROOM: usize = 256;
/// How long one may be without a request.
const SILENCE: Duration = Duration::from_secs(30);

/// All connections of unknown clients of one listener.
#[derive(Debug, Default)]
pub(super) struct UnauthenticatedConnections(Mutex<Waiting>);

#[derive(Debug, Default)]
struct Waiting {
    /// Grows whenever one comes or is heard.
    turn: u64,
    /// The connections, the longest silent first.
    by_turn: BTreeMap<u64, CancellationToken>,
}

impl Waiting {
    fn append(&mut self, close: CancellationToken) -> u64 {
        self.turn += 1;
        self.by_turn.insert(self.turn, close);
        self.turn
    }
}

impl UnauthenticatedConnections {
    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes in a new connection; another one goes where there is no room.
    pub(super) fn add(self: &Arc<Self>) -> UnauthenticatedConnection {
        let close = CancellationToken::new();
        let mut waiting = self.lock();
        let turn = waiting.append(close.clone());
        while waiting.by_turn.len() > ROOM
            && let Some((_, silent)) = waiting.by_turn.pop_first()
        {
            silent.cancel();
        }
        drop(waiting);
        let activity = Mutex::new(Activity { turn: Some(turn), since: Instant::now() });
        UnauthenticatedConnection {
            connections: self.clone(),
            close,
            activity,
            in_progress: AtomicUsize::new(0),
        }
    }

    /// Has the connection go that has been silent for longest, where the system has no room for more.
    pub(super) fn close_most_silent(&self) {
        if let Some((_, silent)) = self.lock().by_turn.pop_first() {
            silent.cancel();
        }
    }
}

#[derive(Debug)]
struct Activity {
    /// `None` once the client is known.
    turn: Option<u64>,
    /// The last time that it was heard.
    since: Instant,
}

/// One connection. Dropping it makes room.
#[derive(Debug)]
pub(super) struct UnauthenticatedConnection {
    connections: Arc<UnauthenticatedConnections>,
    close: CancellationToken,
    activity: Mutex<Activity>,
    /// Requests that are being answered.
    in_progress: AtomicUsize,
}

/// A request that is being answered.
pub(super) struct RequestInProgress<'a>(&'a UnauthenticatedConnection);

impl Drop for RequestInProgress<'_> {
    fn drop(&mut self) {
        self.0.in_progress.fetch_sub(1, Ordering::AcqRel);
        self.0.touch();
    }
}

impl UnauthenticatedConnection {
    fn activity(&self) -> MutexGuard<'_, Activity> {
        self.activity.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A request has come.
    pub(super) fn request_started(&self) -> RequestInProgress<'_> {
        self.in_progress.fetch_add(1, Ordering::AcqRel);
        self.touch();
        RequestInProgress(self)
    }

    fn touch(&self) {
        let mut activity = self.activity();
        activity.since = Instant::now();
        if let Some(turn) = activity.turn {
            let mut waiting = self.connections.lock();
            // A connection that is being closed stays so.
            if let Some(close) = waiting.by_turn.remove(&turn) {
                activity.turn = Some(waiting.append(close));
            }
        }
    }

    /// The client has shown who it is. Nothing ends the connection any more for being silent.
    pub(super) fn mark_authenticated(&self) {
        if let Some(turn) = self.activity().turn.take() {
            self.connections.lock().by_turn.remove(&turn);
        }
    }

    /// Until when the client may be silent; `None` once it is known.
    fn deadline(&self) -> Option<Instant> {
        let activity = self.activity();
        activity.turn?;
        let busy = self.in_progress.load(Ordering::Acquire) > 0;
        Some(if busy { Instant::now() + SILENCE } else { activity.since + SILENCE })
    }

    /// Resolves when the connection has to go: others need its room, or its client has been silent for too
    /// long.
    pub(super) async fn closed(&self) {
        while let Some(at) = self.deadline() {
            tokio::select! {
                () = self.close.cancelled() => return,
                () = sleep_until(at) => {}
            }
            if self.deadline().is_some_and(|at| at <= Instant::now()) {
                return;
            }
        }
        std::future::pending::<()>().await;
    }
}

impl Drop for UnauthenticatedConnection {
    fn drop(&mut self) {
        self.mark_authenticated();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::FutureExt as _;

    #[tokio::test]
    async fn the_one_that_was_silent_for_longest_goes() {
        let connections = Arc::new(UnauthenticatedConnections::default());
        let first = connections.add();
        let known = connections.add();
        known.mark_authenticated();
        let mut others: Vec<UnauthenticatedConnection> = (1..ROOM).map(|_| connections.add()).collect();
        let goes = |connection: &UnauthenticatedConnection| connection.closed().now_or_never().is_some();
        assert!(!goes(&first) && !others.iter().any(goes), "all of them fit");
        drop(first.request_started());
        others.push(connections.add());
        let gone: Vec<usize> =
            others.iter().enumerate().filter(|(_, connection)| goes(connection)).map(|(at, _)| at).collect();
        assert_eq!(gone, [0], "the first has been heard since");
        assert!(!goes(&first) && !goes(&known));
        others.clear();
        assert_eq!(connections.lock().by_turn.len(), 1);
    }

    #[tokio::test]
    async fn only_unknown_clients_that_ask_nothing_have_a_deadline() {
        let connections = Arc::new(UnauthenticatedConnections::default());
        let (silent, busy, known) = (connections.add(), connections.add(), connections.add());
        let in_progress = busy.request_started();
        known.mark_authenticated();
        let began = silent.activity().since;
        assert_eq!(silent.deadline(), Some(began + SILENCE));
        assert!(busy.deadline() > Some(began + SILENCE));
        assert_eq!(known.deadline(), None);
        drop(in_progress);
        assert_eq!(busy.deadline(), Some(busy.activity().since + SILENCE));
        silent.activity().since -= SILENCE;
        silent.closed().await;
    }
}
