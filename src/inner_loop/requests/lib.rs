//! Carries out the tasks that the user asks for. Each is announced and answered by an event, and dropped
//! where it is cancelled. Never reconciles; what it writes, it writes as field manager `opdev`. One file per
//! group of tasks: `apply`, `scale`, `delete`, `pause`, `edit` and `new` over `drafts`, `undo`. `background`
//! runs commands of opdev itself beside the screen. `send` is the way to the API server.

mod background;
pub mod chart_dependencies;
pub mod deployed_copies;
mod drafts;
mod effective_values;
mod error_hints;
pub mod guard;
mod leave;
mod missing_rules;
pub(crate) mod objects;
mod outcome;
mod output_lines;
mod path_completion;
mod pause;
pub mod reload_request;
mod tasks;
mod user_command;

pub use background::opdev::Opdev;

use crate::deployed_copies::Copies;
use crate::guard::Guard;
use crate::reload_request::Ask;
use anyhow::{Context as _, Result, anyhow};
use drafts::draft::Drafts;
use futures::future::BoxFuture;
use futures::{FutureExt as _, StreamExt as _};
use jiff::Timestamp;
use kube::Client;
use objects::undo_list::UndoList;
use opdev_event::sink::EventSink;
use opdev_event::{
    ClusterTask, DraftTask, Event, ObjectTask, ProjectTask, RequestFinished, RequestId, RequestOutcome,
    RequestStarted, SourcesTask, Task,
};
use opdev_generate::rbac::addition::Rules;
use opdev_operator::manager::ManagerRequest;
use opdev_project::Project;
use opdev_project::trust::Trust;
use opdev_sources::Sources;
use outcome::Done;
use std::sync::Arc;
use std::time::Instant;
use tasks::Tasks;
use tokio::sync::{mpsc, oneshot, watch};

/// The means to carry out requests.
#[derive(Clone)]
pub struct Requests {
    cluster: Cluster,
    operator: Operator,
    project: Project,
    /// The permissions that the user gives the project.
    trust: Trust,
    events: EventSink,
    under_way: UnderWay,
    /// opdev itself, for what it runs beside the screen.
    opdev: Opdev,
    /// True if nobody waits for the answer: what fails for a moment is tried again.
    at_start: bool,
}

/// The cluster that requests read and write.
#[derive(Clone)]
pub struct Cluster {
    pub client: Client,
    /// Where an object goes that names no namespace.
    pub namespace: String,
    /// True if it is the embedded control plane.
    pub embedded: bool,
    /// The switch that says whether anything may be written.
    pub guard: Guard,
    /// Copies of the operator on the cluster.
    pub copies: Copies,
}

/// The operator that runs.
#[derive(Clone)]
pub struct Operator {
    /// The manager, which reconciles.
    pub manager: mpsc::Sender<ManagerRequest>,
    /// Where files are loaded.
    pub reloader: mpsc::Sender<Ask>,
    /// The sources that are reconciled.
    pub sources: watch::Receiver<Arc<Sources>>,
    /// Rules that the operator's role lacks, where it runs as its ServiceAccount.
    pub rules: Option<Rules>,
}

/// The user's work that outlives one request.
#[derive(Clone, Default)]
struct UnderWay {
    /// Tasks under way, to be cancelled.
    tasks: Tasks,
    /// Drafts that are written or looked at.
    drafts: Drafts,
    /// Actions that can be undone.
    undo: UndoList,
}

/// How many requests of a bundle run at once.
const AT_ONCE: usize = 8;

impl Requests {
    /// The means for a project and its cluster. Nothing is under way yet.
    pub fn new(
        cluster: Cluster,
        operator: Operator,
        (project, trust): (Project, Trust),
        events: EventSink,
        opdev: Opdev,
    ) -> Requests {
        Requests {
            cluster,
            operator,
            project,
            trust,
            events,
            under_way: UnderWay::default(),
            opdev,
            at_start: false,
        }
    }

    /// A copy for requests whose answers nobody waits for.
    pub fn at_start(&self) -> Requests {
        Requests { at_start: true, ..self.clone() }
    }

    /// The cluster that is read and written.
    pub fn cluster(&self) -> &Cluster {
        &self.cluster
    }

    /// The permissions that the user gives the project.
    pub fn trust(&self) -> &Trust {
        &self.trust
    }

    /// Tells the manager that the API server answers again.
    pub async fn tell_connected(&self) {
        // A manager that has ended needs to know nothing.
        let _ = self.operator.manager.send(ManagerRequest::Connection { lost: false }).await;
    }

    /// Carries one task out and answers it.
    pub async fn carry_out(&self, id: RequestId, task: Task) {
        let begun = Instant::now();
        let what = task.words();
        let started =
            RequestStarted { id, at: Timestamp::now(), what: what.clone(), lasting: task.is_lasting() };
        self.events.emit(Event::RequestStarted(started)).await;
        let outcome = match self.under_way.tasks.run(id, self.outcome(id, &task)).await {
            Some(outcome) => outcome,
            None => {
                if let Some(draft) = task.draft() {
                    self.draft_cancelled(draft).await;
                }
                self.background_cancelled(id).await;
                RequestOutcome::Cancelled { message: task.once_cancelled().to_owned() }
            }
        };
        let finished = RequestFinished { id, at: Timestamp::now(), what, outcome, took: begun.elapsed() };
        self.events.emit(Event::RequestFinished(finished)).await;
    }

    async fn outcome(&self, id: RequestId, task: &Task) -> RequestOutcome {
        let result = match self.cluster.guard.refusal().filter(|_| task.writes()) {
            Some(why) => Err(anyhow!("{why}")),
            None => self.run(id, task).await,
        };
        match result {
            Ok(done) => {
                let what = done.what.unwrap_or_else(|| task.words());
                self.remember(what, done.undo).await;
                if done.failed.is_empty() {
                    return RequestOutcome::Done { summary: done.summary, warnings: done.warnings };
                }
                let well =
                    if done.summary.is_empty() { String::new() } else { format!("\ndone: {}", done.summary) };
                let lacks = |why: &String| why.contains("Required value");
                let hint = match task {
                    Task::Object(ObjectTask::Apply { .. }) if done.failed.iter().any(lacks) => {
                        "write what is required into the file and apply it again; `n` begins an object with all that its \
                         schema asks for"
                    }
                    _ => "correct what is refused and try again",
                };
                let message = format!("{}{well}", done.failed.join("\n"));
                RequestOutcome::Failed { message, hint: Some(hint.to_owned()) }
            }
            Err(error) => RequestOutcome::Failed {
                message: opdev_client::error_words::told(&error),
                hint: error_hints::hint(task, &error),
            },
        }
    }

    /// Hands a task to the part that it belongs to. Boxed, because a bundle holds tasks.
    fn run<'a>(&'a self, id: RequestId, task: &'a Task) -> BoxFuture<'a, Result<Done>> {
        async move {
            match task {
                Task::Object(task) => self.change_objects(task).await,
                Task::Operator(task) => self.ask_operator(task).await,
                Task::Draft(task) => self.go_on_with(id, task).await,
                Task::Sources(task) => self.ask_reloader(task).await,
                Task::Cluster(task) => self.change_cluster(task).await,
                Task::Project(task) => self.change_project(id, task).await,
                Task::Each { tasks } => self.each(id, tasks).await,
                Task::Cancel { id } => {
                    let cancelled = self.under_way.tasks.cancel(*id);
                    cancelled.then(Done::default).context("it has ended already")
                }
            }
        }
        .boxed()
    }

    async fn change_objects(&self, task: &ObjectTask) -> Result<Done> {
        match task {
            ObjectTask::Apply { path } => self.apply(path).await,
            ObjectTask::Scale { object, replicas } => self.scale(object, *replicas).await,
            ObjectTask::Delete { object, propagation, grace } => {
                self.delete(object, *propagation, *grace).await
            }
            ObjectTask::DropFinalizers { object, finalizers } => {
                self.drop_finalizers(object, finalizers).await
            }
            ObjectTask::FailPod { pod, how } => self.fail_pod(pod, *how).await,
        }
    }

    async fn go_on_with(&self, id: RequestId, task: &DraftTask) -> Result<Done> {
        match task {
            DraftTask::Edit { object } => self.edit(id, object).await,
            DraftTask::New { from } => self.new_from(id, from).await,
            DraftTask::AddRules => self.add_rules(id).await,
            DraftTask::Undo { entry } => self.undo(id, *entry).await,
            DraftTask::Edited { draft, problem } => self.edited(*draft, problem.as_deref()).await,
            DraftTask::Write { draft } => self.write_draft(*draft).await,
            DraftTask::Reopen { draft } => self.reopen(*draft).await,
            DraftTask::Discard { draft } => self.discard(*draft).await,
        }
    }

    async fn ask_reloader(&self, task: &SourcesTask) -> Result<Done> {
        match task {
            SourcesTask::Reload => {
                self.trust.ask_again();
                self.operator.reloader.send(Ask::Reload).await.ok().context(GONE)?;
                Ok(Done::default())
            }
            SourcesTask::ApplyHeld { id } => self.answer(id, true).await,
            SourcesTask::DiscardHeld { id } => self.answer(id, false).await,
            SourcesTask::HoldCharts { on } => {
                self.operator.reloader.send(Ask::Hold { on: *on }).await.ok().context(GONE)?;
                Ok(Done::default())
            }
        }
    }

    async fn change_cluster(&self, task: &ClusterTask) -> Result<Done> {
        let said = match task {
            ClusterTask::Unlock { context } => {
                let said = self.cluster.guard.unlock(context).await?;
                self.cluster.copies.look().await;
                said
            }
            ClusterTask::Freeze { object } => self.cluster.copies.freeze(object).await?,
            ClusterTask::Unfreeze { object } => self.cluster.copies.unfreeze(object).await?,
        };
        Ok(Done::said(said))
    }

    async fn change_project(&self, id: RequestId, task: &ProjectTask) -> Result<Done> {
        match task {
            ProjectTask::Run { program } => self.run_program(program).await,
            ProjectTask::Background { command } => self.run_background(id, command).await,
            ProjectTask::SaveText { path, name, text } => self.save_text(path.as_deref(), name, text).await,
            ProjectTask::FetchDependencies => self.fetch_dependencies().await,
            ProjectTask::Trust { answer, permissions } => {
                Ok(Done::said(self.trust.answer(*answer, permissions, &self.events).await?))
            }
        }
    }

    /// Carries out a bundle, some at once; one that fails does not stop the others.
    async fn each(&self, id: RequestId, tasks: &[Task]) -> Result<Done> {
        let runs: Vec<BoxFuture<'_, _>> = tasks.iter().map(|task| self.run(id, task)).collect();
        let results: Vec<Result<Done>> = futures::stream::iter(runs).buffered(AT_ONCE).collect().await;
        let mut done = Done::default();
        let mut well = 0;
        for (task, result) in tasks.iter().zip(results) {
            match result {
                Ok(one) => {
                    well += usize::from(one.failed.is_empty());
                    done.warnings.extend(one.warnings);
                    done.failed.extend(one.failed);
                    done.undo.extend(one.undo);
                }
                Err(error) => {
                    done.failed.push(format!(
                        "{}: {}",
                        task.words(),
                        opdev_client::error_words::told(&error)
                    ));
                }
            }
        }
        done.summary = format!("{} of {} ({})", well, tasks.len(), Task::words_of_each(tasks));
        Ok(done)
    }

    /// Passes the user's word about a held change on.
    async fn answer(&self, id: &str, apply: bool) -> Result<Done> {
        let (reply, answer) = oneshot::channel();
        self.operator
            .reloader
            .send(Ask::Answer { id: id.to_owned(), apply, reply })
            .await
            .ok()
            .context(GONE)?;
        let summary = answer.await.context(GONE)??;
        Ok(Done::said(summary))
    }
}

const GONE: &str = "file watching has stopped; restart opdev";
