//! How everything is wired: files → sources → operator → API server, and the user's requests beside them.
//! Knows every room below it and no terminal. Read this file first, then `reload`, then `operator/manager.rs`.

use super::cluster::{Choice, Connection};
use super::observe::Observer;
use super::project::Project;
use super::reload::{self, Reloader};
use super::requests::Requests;
use crate::event::{Event, Level, Notice, Request, RequestId, Started};
use crate::operator::manager::{self, ManagerInput, ManagerRequest, Settings};
use crate::sources::Sources;
use crate::sources::load::Loader;
use crate::tap::EventSink;
use anyhow::{Context as _, Result};
use jiff::Timestamp;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;
use tokio::sync::{mpsc, watch};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// What to run.
pub struct Input {
    /// The project.
    pub project: Project,
    /// Which cluster.
    pub cluster: Choice,
    /// How the operator runs; namespace and read-only are filled in here.
    pub operator: Settings,
    /// Whether objects of all namespaces are reconciled; `None` leaves it to the cluster's kind.
    pub all_namespaces: Option<bool>,
    /// Whether to poll files rather than to listen to the kernel.
    pub poll: bool,
    /// The folder for the kubeconfig.
    pub state_folder: PathBuf,
    /// The log file, to be named on screen.
    pub log_file: Option<PathBuf>,
    /// When the process began.
    pub began: Instant,
    /// Where facts go.
    pub events: EventSink,
    /// What the user asks for.
    pub requests: mpsc::Receiver<(RequestId, Request)>,
    /// Fires when opdev is to stop.
    pub shutdown: CancellationToken,
}

/// Runs until the shutdown token fires or the user quits.
///
/// # Errors
/// Where no API server can be reached. Everything later is an event, not an error.
pub async fn run(input: Input) -> Result<()> {
    let project = input.project.clone();
    // Files are read while the API server starts.
    let reading =
        tokio::task::spawn_blocking(move || reload::load(&project, Loader::default(), &[], None, false));
    let connection = Connection::open(&input.cluster, &input.state_folder).await?;
    let api_ready = input.began.elapsed();
    let first = reading.await.context("reading the project failed; this is a bug in opdev")?;
    let running = Running::start(input, &connection, api_ready, first).await;
    running.until_stopped().await;
    connection.close().await;
    Ok(())
}

/// Everything that runs, and the ways to talk to it.
struct Running {
    requests: mpsc::Receiver<(RequestId, Request)>,
    carrier: Requests,
    to_manager: mpsc::Sender<ManagerRequest>,
    force_reload: mpsc::Sender<()>,
    sources: watch::Receiver<Arc<Sources>>,
    observer: Observer,
    events: EventSink,
    tasks: TaskTracker,
    shutdown: CancellationToken,
    apply_on_start: Vec<String>,
}

impl Running {
    async fn start(
        input: Input,
        connection: &Connection,
        api_ready: std::time::Duration,
        first: (Loader, Option<crate::sources::load::Loaded>),
    ) -> Running {
        let Input { project, events, shutdown, .. } = &input;
        let all = input.all_namespaces.unwrap_or(connection.cluster.embedded);
        let namespace = (!all).then(|| connection.namespace.clone());
        let read_only = connection.cluster.read_only;
        announce(&input, connection, all, api_ready).await;
        let (publish, sources) = watch::channel(Arc::new(Sources::default()));
        let (force_reload, force) = mpsc::channel(1);
        let (to_manager, from_user) = mpsc::channel(64);
        let tasks = TaskTracker::new();
        let reloader = Reloader {
            project: project.clone(),
            client: connection.client.clone(),
            events: events.clone(),
            read_only,
            publish,
            force,
            poll: input.poll || project.settings.reload.poll,
        };
        tasks.spawn(report(events.clone(), "file watching", reloader.run(first, shutdown.clone())));
        let manager = ManagerInput {
            client: connection.client.clone(),
            sources: sources.clone(),
            events: events.clone(),
            requests: from_user,
            settings: Settings { namespace: namespace.clone(), read_only, ..input.operator.clone() },
            shutdown: shutdown.clone(),
        };
        tasks.spawn(report(events.clone(), "the operator", manager::run(manager)));
        let observer = Observer::new(connection.client.clone(), namespace, events.clone(), shutdown.clone());
        let carrier = Requests {
            client: connection.client.clone(),
            project: project.clone(),
            namespace: connection.namespace.clone(),
            events: events.clone(),
            read_only: read_only.then(|| {
                let name = &connection.cluster.name;
                format!("the context {name} is not clearly local, so nothing is written; start opdev with --allow-context {name} to allow it")
            }),
        };
        let apply_on_start = project.settings.apply_on_start.clone();
        Running {
            requests: input.requests,
            carrier,
            to_manager,
            force_reload,
            sources,
            observer,
            events: input.events,
            tasks,
            shutdown: input.shutdown,
            apply_on_start,
        }
    }

    async fn until_stopped(mut self) {
        loop {
            tokio::select! {
                () = self.shutdown.cancelled() => break,
                changed = self.sources.changed() => {
                    if changed.is_err() {
                        break;
                    }
                    self.follow_sources();
                }
                request = self.requests.recv() => match request {
                    Some((_, Request::Quit)) | None => break,
                    Some((id, request)) => self.dispatch(id, request),
                },
            }
        }
        self.events.emit(Event::Stopping { reason: "asked to stop".to_owned() }).await;
        self.shutdown.cancel();
        self.tasks.close();
        self.tasks.wait().await;
    }

    fn follow_sources(&mut self) {
        let kinds: Vec<_> =
            self.sources.borrow_and_update().watches.iter().map(|watch| watch.gvk.clone()).collect();
        self.observer.watch(&kinds);
        for (number, path) in std::mem::take(&mut self.apply_on_start).into_iter().enumerate() {
            self.dispatch(u64::MAX - number as u64, Request::Apply { path });
        }
    }

    /// Requests run beside each other; each is announced and answered by events.
    fn dispatch(&self, id: RequestId, request: Request) {
        match &request {
            Request::Reconcile { object } => {
                let _ = self.to_manager.try_send(ManagerRequest::ReconcileNow { object: object.clone() });
            }
            Request::Reload => {
                let _ = self.force_reload.try_send(());
            }
            Request::Apply { .. } | Request::Scale { .. } | Request::Delete { .. } | Request::Quit => {}
        }
        let carrier = self.carrier.clone();
        self.tasks.spawn(async move { carrier.carry_out(id, request).await });
    }
}

async fn announce(
    input: &Input,
    connection: &Connection,
    all_namespaces: bool,
    api_ready: std::time::Duration,
) {
    let project = &input.project;
    let started = Started {
        at: Timestamp::now(),
        project: project.name.clone(),
        root: project.root.display().to_string(),
        cluster: connection.cluster.clone(),
        namespace: connection.namespace.clone(),
        all_namespaces,
        kubeconfig: connection.kubeconfig.as_ref().map(|path| project.relative(path)),
        log_file: input.log_file.as_ref().map(|path| project.relative(path)),
        api_ready,
    };
    input.events.emit(Event::Started(Arc::new(started))).await;
    for diagnostic in &project.diagnostics {
        let place = diagnostic.place.as_ref().map(ToString::to_string).unwrap_or_default();
        let message = format!("{place}: {}", diagnostic.message);
        let notice = Notice {
            at: Timestamp::now(),
            level: Level::Warn,
            message,
            hint: diagnostic.hint.clone(),
            object: None,
        };
        input.events.emit(Event::Noticed(notice)).await;
    }
    if connection.cluster.read_only {
        let name = &connection.cluster.name;
        let notice = Notice {
            at: Timestamp::now(),
            level: Level::Warn,
            message: format!(
                "read-only: the context {name} is not clearly local, so opdev neither applies CRDs nor reconciles"
            ),
            hint: Some(format!(
                "start opdev with --allow-context {name} if this cluster is yours to change, or with --embedded"
            )),
            object: None,
        };
        input.events.emit(Event::Noticed(notice)).await;
    }
}

/// Tells the user when a part that should run to the end has failed.
async fn report(events: EventSink, what: &'static str, work: impl Future<Output = Result<()>>) {
    if let Err(error) = work.await {
        let notice = Notice {
            at: Timestamp::now(),
            level: Level::Error,
            message: format!("{what} has stopped: {error:#}"),
            hint: Some("restart opdev; the log has the details".to_owned()),
            object: None,
        };
        events.emit(Event::Noticed(notice)).await;
    }
}
