//! Connections whose client is not known yet: nothing that was sent over them has shown a credential. There is room for
//! a fixed number of them; where one more comes, the one that has been silent for longest goes. So clients that say
//! nothing never keep out those that do, and those that are known are not counted at all.

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
pub(super) struct Guests(Mutex<Waiting>);

#[derive(Debug, Default)]
struct Waiting {
    /// Grows whenever one comes or is heard.
    turn: u64,
    /// Those that have been silent for longest first.
    by_turn: BTreeMap<u64, CancellationToken>,
}

impl Waiting {
    fn append(&mut self, leave: CancellationToken) -> u64 {
        self.turn += 1;
        self.by_turn.insert(self.turn, leave);
        self.turn
    }
}

impl Guests {
    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes in a new connection; another one goes where there is no room.
    pub(super) fn enter(self: &Arc<Self>) -> Guest {
        let leave = CancellationToken::new();
        let mut waiting = self.lock();
        let turn = waiting.append(leave.clone());
        while waiting.by_turn.len() > ROOM
            && let Some((_, silent)) = waiting.by_turn.pop_first()
        {
            silent.cancel();
        }
        drop(waiting);
        let place = Mutex::new(Place { turn: Some(turn), since: Instant::now() });
        Guest { guests: self.clone(), leave, place, under_way: AtomicUsize::new(0) }
    }

    /// Has the connection go that has been silent for longest, where the system has no room for more.
    pub(super) fn make_room(&self) {
        if let Some((_, silent)) = self.lock().by_turn.pop_first() {
            silent.cancel();
        }
    }
}

#[derive(Debug)]
struct Place {
    /// `None` once the client is known.
    turn: Option<u64>,
    /// The last time that it was heard.
    since: Instant,
}

/// One connection. Dropping it makes room.
#[derive(Debug)]
pub(super) struct Guest {
    guests: Arc<Guests>,
    leave: CancellationToken,
    place: Mutex<Place>,
    /// Requests that are being answered.
    under_way: AtomicUsize,
}

/// A request that is being answered.
pub(super) struct UnderWay<'a>(&'a Guest);

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        self.0.under_way.fetch_sub(1, Ordering::AcqRel);
        self.0.heard();
    }
}

impl Guest {
    fn place(&self) -> MutexGuard<'_, Place> {
        self.place.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A request has come.
    pub(super) fn begins(&self) -> UnderWay<'_> {
        self.under_way.fetch_add(1, Ordering::AcqRel);
        self.heard();
        UnderWay(self)
    }

    fn heard(&self) {
        let mut place = self.place();
        place.since = Instant::now();
        if let Some(turn) = place.turn {
            let mut waiting = self.guests.lock();
            // One that is told to go stays told.
            if let Some(leave) = waiting.by_turn.remove(&turn) {
                place.turn = Some(waiting.append(leave));
            }
        }
    }

    /// The client has shown who it is. Nothing ends the connection any more for being silent.
    pub(super) fn is_known(&self) {
        if let Some(turn) = self.place().turn.take() {
            self.guests.lock().by_turn.remove(&turn);
        }
    }

    /// Until when the client may be silent; `None` once it is known.
    fn deadline(&self) -> Option<Instant> {
        let place = self.place();
        place.turn?;
        let busy = self.under_way.load(Ordering::Acquire) > 0;
        Some(if busy { Instant::now() + SILENCE } else { place.since + SILENCE })
    }

    /// Resolves when the connection has to go: others need its room, or its client has been silent for too long.
    pub(super) async fn has_to_go(&self) {
        while let Some(at) = self.deadline() {
            tokio::select! {
                () = self.leave.cancelled() => return,
                () = sleep_until(at) => {}
            }
            if self.deadline().is_some_and(|at| at <= Instant::now()) {
                return;
            }
        }
        std::future::pending::<()>().await;
    }
}

impl Drop for Guest {
    fn drop(&mut self) {
        self.is_known();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::FutureExt as _;

    #[tokio::test]
    async fn the_one_that_was_silent_for_longest_goes() {
        let guests = Arc::new(Guests::default());
        let first = guests.enter();
        let known = guests.enter();
        known.is_known();
        let mut others: Vec<Guest> = (1..ROOM).map(|_| guests.enter()).collect();
        let goes = |guest: &Guest| guest.has_to_go().now_or_never().is_some();
        assert!(!goes(&first) && !others.iter().any(goes), "all of them fit");
        drop(first.begins());
        others.push(guests.enter());
        let gone: Vec<usize> =
            others.iter().enumerate().filter(|(_, guest)| goes(guest)).map(|(at, _)| at).collect();
        assert_eq!(gone, [0], "the first has been heard since");
        assert!(!goes(&first) && !goes(&known));
        others.clear();
        assert_eq!(guests.lock().by_turn.len(), 1);
    }

    #[tokio::test]
    async fn only_unknown_clients_that_ask_nothing_have_a_deadline() {
        let guests = Arc::new(Guests::default());
        let (silent, busy, known) = (guests.enter(), guests.enter(), guests.enter());
        let under_way = busy.begins();
        known.is_known();
        let began = silent.place().since;
        assert_eq!(silent.deadline(), Some(began + SILENCE));
        assert!(busy.deadline() > Some(began + SILENCE));
        assert_eq!(known.deadline(), None);
        drop(under_way);
        assert_eq!(busy.deadline(), Some(busy.place().since + SILENCE));
        silent.place().since -= SILENCE;
        silent.has_to_go().await;
    }
}
