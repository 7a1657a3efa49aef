//! Carries out what the user asks for. Every request is a task of its own: announced and answered by an event, and
//! dropped where it is cancelled. Never reconciles; what it writes, it writes as field manager `opdev`.
//! One file per group of requests: `apply`, `scale`, `delete`, `pause`; `send` is the way to the API server.

mod apply;
mod delete;
mod pause;
mod scale;
mod send;
mod tasks;
mod words;

pub(super) use apply::yaml_files;
pub(super) use send::{MANAGER, is_not_found, resource_of, send};
pub(super) use tasks::Tasks;

use super::project::Project;
use crate::event::{Event, Request, RequestFinished, RequestId, RequestOutcome, RequestStarted};
use crate::operator::manager::ManagerRequest;
use crate::tap::EventSink;
use anyhow::{Context as _, Result, anyhow};
use futures::future::BoxFuture;
use futures::{FutureExt as _, StreamExt as _};
use jiff::Timestamp;
use kube::Client;
use std::time::Instant;
use tokio::sync::{mpsc, oneshot};

/// What one can ask of the reloader.
pub(super) enum Ask {
    /// Take every file as saved.
    Reload,
    /// Let a held change through, or drop it; the answer is what was done, or why nothing was.
    Answer { id: String, apply: bool, reply: oneshot::Sender<Result<String, String>> },
}

/// What requests are carried out with.
#[derive(Clone)]
pub(super) struct Requests {
    /// Where files are loaded.
    pub(super) reloader: mpsc::Sender<Ask>,
    /// Who reconciles.
    pub(super) operator: mpsc::Sender<ManagerRequest>,
    pub(super) client: Client,
    pub(super) project: Project,
    pub(super) namespace: String,
    pub(super) events: EventSink,
    /// Why nothing may be written, where that is so.
    pub(super) read_only: Option<String>,
    /// What is under way, to be cancelled.
    pub(super) tasks: Tasks,
}

/// What was done, in words, and the API server's warnings.
#[derive(Debug, Default)]
struct Done {
    summary: String,
    warnings: Vec<String>,
}

impl Done {
    fn said(summary: impl Into<String>) -> Done {
        Done { summary: summary.into(), warnings: Vec::new() }
    }
}

/// How many requests of a bundle run at once.
const AT_ONCE: usize = 8;

impl Requests {
    /// Carries one request out and answers it.
    pub(super) async fn carry_out(&self, id: RequestId, request: Request) {
        let begun = Instant::now();
        let what = words::of(&request);
        let started = RequestStarted { id, at: Timestamp::now(), what: what.clone() };
        self.events.emit(Event::RequestStarted(started)).await;
        let outcome = self.tasks.run(id, self.outcome(&request)).await;
        let outcome = outcome
            .unwrap_or_else(|| RequestOutcome::Cancelled { message: words::cancelled(&request).to_owned() });
        let finished = RequestFinished { id, at: Timestamp::now(), what, outcome, took: begun.elapsed() };
        self.events.emit(Event::RequestFinished(finished)).await;
    }

    async fn outcome(&self, request: &Request) -> RequestOutcome {
        let result = match &self.read_only {
            Some(why) if words::writes(request) => Err(anyhow!("{why}")),
            Some(_) | None => self.run(request).await,
        };
        match result {
            Ok(done) => RequestOutcome::Done { summary: done.summary, warnings: done.warnings },
            Err(error) => {
                RequestOutcome::Failed { message: format!("{error:#}"), hint: words::hint(request, &error) }
            }
        }
    }

    /// Boxed, because a bundle holds requests.
    fn run<'a>(&'a self, request: &'a Request) -> BoxFuture<'a, Result<Done>> {
        async move {
            match request {
                Request::Apply { path } => self.apply(path).await,
                Request::Scale { object, replicas } => self.scale(object, *replicas).await,
                Request::Delete { object, propagation, grace } => {
                    self.delete(object, *propagation, *grace).await
                }
                Request::DropFinalizers { object, finalizers } => {
                    self.drop_finalizers(object, finalizers).await
                }
                Request::Reconcile { object } => self.reconcile(object).await,
                Request::Pause { scope } => self.pause(scope.clone()).await,
                Request::Resume { scope } => self.resume(scope.clone()).await,
                Request::Step { object } => self.step(object.clone()).await,
                Request::ApplyHeld { id } => self.answer(id, true).await,
                Request::DiscardHeld { id } => self.answer(id, false).await,
                Request::Reload => {
                    self.reloader.send(Ask::Reload).await.ok().context(GONE)?;
                    Ok(Done::default())
                }
                Request::Each { requests } => self.each(requests).await,
                Request::Cancel { id } => {
                    let cancelled = self.tasks.cancel(*id);
                    cancelled.then(Done::default).context("it has ended already")
                }
                // Logs are a level, not a task: `inner_loop` follows them.
                Request::PodLogs { .. } | Request::Quit => Ok(Done::default()),
            }
        }
        .boxed()
    }

    /// Carries out a bundle, some at once; one that fails does not stop the others.
    async fn each(&self, requests: &[Request]) -> Result<Done> {
        let runs: Vec<BoxFuture<'_, _>> = requests.iter().map(|request| self.run(request)).collect();
        let results: Vec<Result<Done>> = futures::stream::iter(runs).buffered(AT_ONCE).collect().await;
        let mut done = Done::default();
        let mut failed = Vec::new();
        let mut well = 0;
        for (request, result) in requests.iter().zip(results) {
            match result {
                Ok(one) => {
                    well += 1;
                    done.warnings.extend(one.warnings);
                }
                Err(error) => failed.push(format!("{}: {error:#}", words::of(request))),
            }
        }
        let all = requests.len();
        if failed.is_empty() {
            done.summary = words::of(&Request::Each { requests: requests.to_vec() });
            return Ok(done);
        }
        Err(anyhow!("{} of {all} failed, {well} done; {}", failed.len(), failed.join("; ")))
    }

    /// Passes the user's word about a held change on.
    async fn answer(&self, id: &str, apply: bool) -> Result<Done> {
        let (reply, answer) = oneshot::channel();
        self.reloader.send(Ask::Answer { id: id.to_owned(), apply, reply }).await.ok().context(GONE)?;
        let summary = answer.await.context(GONE)?.map_err(|why| anyhow!("{why}"))?;
        Ok(Done::said(summary))
    }
}

const GONE: &str = "file watching has stopped; restart opdev";
