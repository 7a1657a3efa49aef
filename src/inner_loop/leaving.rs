//! The problem: leaving takes time: finalizers need the operator that is about to stop, and a cluster may
//! have stopped answering. A second wish to leave must be heard meanwhile.
//!
//! The way out of a cluster, for good or to another one: what was chosen for the custom resources is done,
//! everything stops, frozen copies of the operator get their replicas back.

use super::{Opened, Opening, PATIENCE, Running};
use anyhow::{Context as _, Result};
use opdev_event::{Asker, Event, OnExit, Request, RequestId, SessionRequest, Task};
use std::time::Duration;
use tokio::sync::mpsc;

/// Why a cluster is left.
pub(super) enum Why {
    /// Nothing can go on.
    Broken(anyhow::Error),
    /// opdev ends.
    Stop { by: Asker, how: OnExit },
    /// Another one was chosen, and answers.
    Switch(Box<(Opening, Opened)>),
}

/// How long uninstalling may take once a signal has asked opdev to stop.
const LEAVING: Duration = Duration::from_secs(60);

impl Running {
    /// Ends everything here; the answer is where to go on.
    pub(super) async fn end(
        mut self,
        why: Why,
        requests: &mut mpsc::Receiver<(RequestId, Request)>,
    ) -> Result<Option<(Opening, Opened)>> {
        let (mut next, mut result) = (None, Ok(()));
        match why {
            Why::Broken(error) => result = Err(error),
            Why::Stop { by, how } => result = self.leave(how, by, None, requests).await.map(|_| ()),
            Why::Switch(there) => {
                let (opening, opened) = *there;
                match self.leave(opening.how, Asker::User, Some(opening.id), requests).await {
                    Ok(true) => next = Some((opening, opened)),
                    Ok(false) => opened.connection.close().await,
                    Err(error) => {
                        opened.connection.close().await;
                        result = Err(error);
                    }
                }
            }
        }
        if next.is_none() {
            let reason = result
                .as_ref()
                .err()
                .map_or_else(|| "asked to stop".to_owned(), |error| format!("{error:#}"));
            let stopping = self.events.emit(Event::Stopping { reason });
            // Neither a full channel nor a call that hangs may hold the user's shell.
            let _ = tokio::time::timeout(PATIENCE, stopping).await;
        }
        self.shutdown.cancel();
        self.operator_stop.cancel();
        std::mem::take(&mut self.programs).end().await;
        self.tasks.close();
        if tokio::time::timeout(PATIENCE, self.tasks.wait()).await.is_err() {
            tracing::warn!("not every task has ended {} s after it was asked to", PATIENCE.as_secs());
        }
        let giving_back = self.handler.cluster().copies.give_all_back();
        if tokio::time::timeout(PATIENCE, giving_back).await.is_err() {
            tracing::warn!("frozen copies were not given back in time; the next opdev does it");
        }
        result.map(|()| next)
    }

    /// Does what was chosen for the custom resources. Whoever asks once more leaves the rest as it is; where
    /// a signal was the first to ask, nobody may be there to do so, and it takes a minute at most. False
    /// where opdev is to stop, whatever was asked for first.
    async fn leave(
        &mut self,
        how: OnExit,
        by: Asker,
        switch: Option<RequestId>,
        requests: &mut mpsc::Receiver<(RequestId, Request)>,
    ) -> Result<bool> {
        // A cluster that may not be written to is left as it is.
        let how = if self.handler.cluster().guard.read_only.holds() { OnExit::Leave } else { how };
        let (handler, scope) = (self.handler.clone(), self.scope.clone());
        let (operator, stop) = (&mut self.operator, self.operator_stop.clone());
        let programs = (how == OnExit::Release).then(|| std::mem::take(&mut self.programs));
        let work = async move {
            match how {
                OnExit::Leave => Ok(()),
                OnExit::Uninstall => handler.uninstall(scope.as_deref()).await,
                OnExit::Release => {
                    // They would put the finalizers back.
                    stop.cancel();
                    if let Some(programs) = programs {
                        programs.end().await;
                    }
                    let _ = operator.await;
                    handler.release(scope.as_deref()).await
                }
            }
        };
        let shutdown = self.shutdown.clone();
        let enough = async {
            match by {
                // The signal has fired this one, too.
                Asker::Signal => tokio::time::sleep(LEAVING).await,
                Asker::User => shutdown.cancelled().await,
            }
        };
        let asked_again = async {
            loop {
                let (_, request) = match requests.recv().await {
                    Some(request) => request,
                    None => std::future::pending().await,
                };
                match request {
                    Request::Task(Task::Cancel { id }) if Some(id) == switch => return true,
                    // A signal reaches the process and the screen, which passes it on.
                    Request::Session(SessionRequest::Quit { by: Asker::Signal }) if by == Asker::Signal => {}
                    Request::Session(SessionRequest::Quit { .. } | SessionRequest::Leave { .. }) => {
                        return false;
                    }
                    // Whoever leaves begins nothing new.
                    Request::Task(_)
                    | Request::View(_)
                    | Request::LookAgain { .. }
                    | Request::Session(SessionRequest::Switch { .. }) => {}
                }
            }
        };
        tokio::select! {
            biased;
            result = work => {
                result.context("leaving has stopped half-way, and the rest stays as it is")?;
                Ok(switch.is_some())
            }
            goes_on = asked_again => Ok(goes_on),
            () = enough => Ok(false),
        }
    }
}
