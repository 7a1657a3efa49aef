//! Carries out what the user asks for. Every request is a task of its own: announced and answered by an event, and
//! dropped where it is cancelled. Never reconciles; what it writes, it writes as field manager `opdev`.
//! One file per group of requests: `apply`, `scale`, `delete`, `pause`, `edit` and `new` over `drafts`, `undo`.
//! `send` is the way to the API server.

mod apply;
mod delete;
mod dependencies;
mod done;
mod draft;
mod draft_file;
mod drafts;
mod edit;
mod fail;
mod file_change;
mod leave;
mod new;
mod paths;
mod pause;
mod places;
mod rules;
mod run_program;
mod save_text;
mod scale;
mod send;
mod skeleton;
mod tasks;
mod undo;
mod undo_list;
mod values;
mod words;
mod write;
mod writing;

pub(super) use draft::Drafts;
pub(super) use tasks::Tasks;
pub(super) use undo_list::UndoList;
pub(super) use words::{of as in_words, told};

use super::ask::Ask;
use super::copies::Copies;
use super::guard::Guard;
use super::project::Project;
use super::service_account::Rules;
use super::trust::Trust;
use crate::event::{Event, Request, RequestFinished, RequestId, RequestOutcome, RequestStarted};
use crate::operator::manager::ManagerRequest;
use crate::sources::Sources;
use crate::tap::EventSink;
use anyhow::{Context as _, Result, anyhow};
use done::Done;
use futures::future::BoxFuture;
use futures::{FutureExt as _, StreamExt as _};
use jiff::Timestamp;
use kube::Client;
use std::sync::Arc;
use std::time::Instant;
use tokio::sync::{mpsc, oneshot, watch};

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
    /// Whether the cluster is the embedded control plane.
    pub(super) embedded: bool,
    pub(super) events: EventSink,
    /// What is reconciled.
    pub(super) sources: watch::Receiver<Arc<Sources>>,
    /// Whether anything may be written.
    pub(super) guard: Guard,
    /// Copies of the operator on the cluster.
    pub(super) copies: Copies,
    /// What is under way, to be cancelled.
    pub(super) tasks: Tasks,
    /// What the user allows the project.
    pub(super) trust: Trust,
    /// What is written or looked at before it is written.
    pub(super) drafts: Drafts,
    /// What can be undone.
    pub(super) undo: UndoList,
    /// What the operator's role lacks, where it runs as its ServiceAccount.
    pub(super) rules: Option<Rules>,
    /// Whether nobody waits for the answer: what fails for a moment is tried again.
    pub(super) at_start: bool,
}

/// How many requests of a bundle run at once.
const AT_ONCE: usize = 8;

impl Requests {
    /// Carries one request out and answers it.
    pub(super) async fn carry_out(&self, id: RequestId, request: Request) {
        let begun = Instant::now();
        let what = words::of(&request);
        let started = RequestStarted {
            id,
            at: Timestamp::now(),
            what: what.clone(),
            lasting: matches!(request, Request::Run { .. }),
        };
        self.events.emit(Event::RequestStarted(started)).await;
        let outcome = match self.tasks.run(id, self.outcome(id, &request)).await {
            Some(outcome) => outcome,
            None => {
                if let Some(draft) = words::draft(&request) {
                    self.draft_cancelled(draft).await;
                }
                RequestOutcome::Cancelled { message: words::cancelled(&request).to_owned() }
            }
        };
        let finished = RequestFinished { id, at: Timestamp::now(), what, outcome, took: begun.elapsed() };
        self.events.emit(Event::RequestFinished(finished)).await;
    }

    async fn outcome(&self, id: RequestId, request: &Request) -> RequestOutcome {
        let result = match self.guard.refusal().filter(|_| words::writes(request)) {
            Some(why) => Err(anyhow!("{why}")),
            None => self.run(id, request).await,
        };
        match result {
            Ok(done) => {
                let what = done.what.unwrap_or_else(|| words::of(request));
                self.remember(what, done.undo).await;
                if done.failed.is_empty() {
                    return RequestOutcome::Done { summary: done.summary, warnings: done.warnings };
                }
                let well =
                    if done.summary.is_empty() { String::new() } else { format!("\ndone: {}", done.summary) };
                let lacks = |why: &String| why.contains("Required value");
                let hint = match request {
                    Request::Apply { .. } if done.failed.iter().any(lacks) => {
                        "write what is required into the file and apply it again; `n` begins an object with all that its \
                         schema asks for"
                    }
                    _ => "correct what is refused and try again",
                };
                let message = format!("{}{well}", done.failed.join("\n"));
                RequestOutcome::Failed { message, hint: Some(hint.to_owned()) }
            }
            Err(error) => {
                RequestOutcome::Failed { message: words::told(&error), hint: words::hint(request, &error) }
            }
        }
    }

    /// Boxed, because a bundle holds requests.
    fn run<'a>(&'a self, id: RequestId, request: &'a Request) -> BoxFuture<'a, Result<Done>> {
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
                Request::FailPod { pod, how } => self.fail_pod(pod, *how).await,
                Request::Check { object } => self.check(object.clone()).await,
                Request::ApplyHeld { id } => self.answer(id, true).await,
                Request::DiscardHeld { id } => self.answer(id, false).await,
                // `program` takes these where there is one.
                Request::Disturb { .. } => Err(anyhow!(
                    "the project has no program of its own; faults concern the calls of such a program"
                )),
                Request::HoldCharts { on } => {
                    self.reloader.send(Ask::Hold { on: *on }).await.ok().context(GONE)?;
                    Ok(Done::default())
                }
                Request::Trust { answer, permissions } => {
                    Ok(Done::said(self.trust.answer(*answer, permissions, &self.events).await?))
                }
                Request::Reload => {
                    self.trust.ask_again();
                    self.reloader.send(Ask::Reload).await.ok().context(GONE)?;
                    Ok(Done::default())
                }
                Request::Run { program } => self.run_program(program).await,
                Request::SaveText { path, name, text } => self.save_text(path.as_deref(), name, text).await,
                Request::Edit { object } => self.edit(id, object).await,
                Request::New { from } => self.new_from(id, from).await,
                Request::Edited { draft, problem } => self.edited(*draft, problem.as_deref()).await,
                Request::Write { draft } => self.write_draft(*draft).await,
                Request::Reopen { draft } => self.reopen(*draft).await,
                Request::Discard { draft } => self.discard(*draft).await,
                Request::AddRules => self.add_rules(id).await,
                Request::FetchDependencies => self.fetch_dependencies().await,
                Request::Undo { entry } => self.undo(id, *entry).await,
                Request::Each { requests } => self.each(id, requests).await,
                Request::Cancel { id } => {
                    let cancelled = self.tasks.cancel(*id);
                    cancelled.then(Done::default).context("it has ended already")
                }
                // Logs are a level, not a task, and leaving ends all tasks: `inner_loop` does these.
                Request::PodLogs { .. }
                | Request::Look { .. }
                | Request::ShowTable { .. }
                | Request::ReadRow { .. }
                | Request::ListKinds
                | Request::ListPaths { .. }
                | Request::ListFiles
                | Request::Remember { .. }
                | Request::ExplainValues { .. }
                | Request::Leave { .. }
                | Request::Switch { .. }
                | Request::Quit { .. } => Ok(Done::default()),
                Request::Unlock { context } => {
                    let said = self.guard.unlock(context).await?;
                    self.copies.look().await;
                    Ok(Done::said(said))
                }
                Request::Freeze { object } => Ok(Done::said(self.copies.freeze(object).await?)),
                Request::Unfreeze { object } => Ok(Done::said(self.copies.unfreeze(object).await?)),
            }
        }
        .boxed()
    }

    /// Carries out a bundle, some at once; one that fails does not stop the others.
    async fn each(&self, id: RequestId, requests: &[Request]) -> Result<Done> {
        let runs: Vec<BoxFuture<'_, _>> = requests.iter().map(|request| self.run(id, request)).collect();
        let results: Vec<Result<Done>> = futures::stream::iter(runs).buffered(AT_ONCE).collect().await;
        let mut done = Done::default();
        let mut well = 0;
        for (request, result) in requests.iter().zip(results) {
            match result {
                Ok(one) => {
                    well += usize::from(one.failed.is_empty());
                    done.warnings.extend(one.warnings);
                    done.failed.extend(one.failed);
                    done.undo.extend(one.undo);
                }
                Err(error) => done.failed.push(format!("{}: {}", words::of(request), words::told(&error))),
            }
        }
        done.summary = format!("{} of {} ({})", well, requests.len(), words::each(requests));
        Ok(done)
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
