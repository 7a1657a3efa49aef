//! From one cluster to another: what was asked for is answered once the other one is open, or why opdev
//! stays.

use super::Running;
use super::opening::{Opened, Opening};
use anyhow::Result;
use jiff::Timestamp;
use opdev_event::{Destination, Event, RequestFinished, RequestOutcome, RequestStarted};

impl Running {
    /// Begins to open another cluster, unless it is this one, or another one is being opened.
    pub(super) async fn begin(&self, opening: &mut Option<Opening>, next: Opening) {
        let what = next.what.clone();
        self.events
            .emit(Event::RequestStarted(RequestStarted {
                id: next.id,
                at: Timestamp::now(),
                what,
                lasting: false,
            }))
            .await;
        let why_not = match (&*opening, &next.to) {
            (Some(other), _) => Some(format!("opdev is about to {}", other.what)),
            (None, Destination::Embedded) if self.embedded => Some("opdev runs there already".to_owned()),
            (None, _) => None,
        };
        match why_not {
            Some(message) => self.answer(next, RequestOutcome::Failed { message, hint: None }).await,
            None => *opening = Some(next),
        }
    }

    /// Drops the wish to go elsewhere.
    pub(super) async fn stay(&self, opening: &mut Option<Opening>) {
        if let Some(opening) = opening {
            opening.cancelled = true;
        }
        if let Some(dropped) = opening.take_if(|opening| opening.can_be_dropped()) {
            self.answer(dropped, stays()).await;
        }
    }

    /// The outcome of the wish to go elsewhere: the cluster to go to, unless this one stays.
    pub(super) async fn opened(&self, opening: Opening, end: Result<Opened>) -> Option<(Opening, Opened)> {
        let outcome = match end {
            Err(error) => {
                let hint =
                    Some(format!("opdev stays where it is ({})", self.handler.cluster().guard.context));
                RequestOutcome::Failed { message: format!("{error:#}"), hint }
            }
            Ok(opened) if opening.cancelled => {
                opened.connection.close().await;
                stays()
            }
            // It would end with the one that is left.
            Ok(opened) if self.embedded && opened.connection.cluster.server == self.server => {
                opened.connection.close().await;
                let message = "it is the embedded control plane that opdev runs on now".to_owned();
                RequestOutcome::Failed { message, hint: None }
            }
            Ok(opened) => return Some((opening, opened)),
        };
        self.answer(opening, outcome).await;
        None
    }

    pub(super) async fn answer(&self, opening: Opening, outcome: RequestOutcome) {
        let Opening { id, what, since, .. } = opening;
        let finished = RequestFinished { id, at: Timestamp::now(), what, outcome, took: since.elapsed() };
        self.events.emit(Event::RequestFinished(finished)).await;
    }
}

/// Why nobody goes elsewhere.
fn stays() -> RequestOutcome {
    RequestOutcome::Cancelled { message: "nothing has changed here".to_owned() }
}
