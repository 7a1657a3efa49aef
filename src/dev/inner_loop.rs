//! How everything is wired: files → sources → operator → API server, and the user's requests beside them.
//! Knows every room below it and no terminal. Read this file first, then `reload`, then `operator/manager.rs`.

use super::cluster::{Choice, Connection};
use super::contexts;
use super::copies::{Copies, Marks};
use super::files;
use super::guard::Guard;
use super::observe::Observer;
use super::pod_logs::PodLogs;
use super::preferences::Files;
use super::project::Project;
use super::reload::{self, Reloader};
use super::requests::{Ask, Drafts, Requests, Tasks, UndoList};
use super::service_account::Keeper;
use crate::event::{Cluster, Event, Level, Notice, OnExit, Protection, Request, RequestId, Started};
use crate::operator::manager::{self, ManagerInput, ManagerRequest, Settings};
use crate::operator::read_only::ReadOnly;
use crate::sources::Sources;
use crate::sources::load::{Loaded, Options};
use crate::tap::EventSink;
use anyhow::{Context as _, Result, bail};
use futures::FutureExt as _;
use jiff::Timestamp;
use kube::Client;
use std::panic::AssertUnwindSafe;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;
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
    /// The only kinds to reconcile; empty means all.
    pub only: Vec<String>,
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
    /// What becomes of custom resources at the end, where the user has said so.
    pub on_exit: Option<OnExit>,
    /// Fires when opdev is to stop.
    pub shutdown: CancellationToken,
}

/// Runs until the shutdown token fires or the user quits.
///
/// # Errors
/// Where no API server can be reached. Everything later is an event, not an error.
pub async fn run(input: Input) -> Result<()> {
    let project = input.project.clone();
    let options = files::options(&project, &input.only);
    let first_options = Arc::clone(&options);
    // Files are read while the API server starts.
    let reading = tokio::task::spawn_blocking(move || {
        reload::load(&project, &first_options, files::Memory::default(), &[], None, false)
    });
    let mut connection = tokio::select! {
        () = input.shutdown.cancelled() => return Ok(()),
        connection = Connection::open(&input.cluster, &input.state_folder) => connection?,
    };
    let api_ready = input.began.elapsed();
    let acting = match &input.cluster.service_account {
        Some(named) => {
            let events = input.events.clone();
            match Keeper::open(&connection, &input.project.root, named, events).await {
                Ok(acting) => Some(acting),
                Err(error) => {
                    connection.close().await;
                    return Err(error);
                }
            }
        }
        None => None,
    };
    let first = reading.await.context("reading the project failed; this is a bug in opdev")?;
    if let Some(loaded) = &first.1 {
        only_known(&input.only, loaded)?;
    }
    let running = Running::start(input, options, &mut connection, acting, api_ready, first).await;
    let result = running.until_stopped().await;
    connection.close().await;
    result
}

/// Every kind of `--only` must be one of the project's.
fn only_known(only: &[String], loaded: &Loaded) -> Result<()> {
    let kinds: Vec<&str> = loaded.kinds.iter().map(|kind| kind.gvk.kind.as_str()).collect();
    for wanted in only {
        if kinds.iter().any(|kind| kind.eq_ignore_ascii_case(wanted)) {
            continue;
        }
        match crate::sources::nearest(wanted, &kinds) {
            Some(near) => bail!("--only {wanted}: the project has no such kind; did you mean {near}?"),
            None if kinds.is_empty() => bail!("--only {wanted}: the project has no kinds"),
            None => bail!("--only {wanted}: the project has no such kind; it has {}", kinds.join(", ")),
        }
    }
    Ok(())
}

/// Everything that runs, and the ways to talk to it.
struct Running {
    requests: mpsc::Receiver<(RequestId, Request)>,
    carrier: Requests,
    sources: watch::Receiver<Arc<Sources>>,
    /// Keeps the sources alive where file watching has died: what serves goes on serving.
    _publish: watch::Sender<Arc<Sources>>,
    /// Why nothing can go on.
    fatal: mpsc::Receiver<anyhow::Error>,
    observer: Observer,
    pod_logs: PodLogs,
    events: EventSink,
    tasks: TaskTracker,
    shutdown: CancellationToken,
    operator: JoinHandle<()>,
    operator_stop: CancellationToken,
    /// The only namespace that is reconciled.
    scope: Option<String>,
    /// What becomes of custom resources; nothing where the cluster goes with opdev.
    on_exit: Option<OnExit>,
    apply_on_start: Vec<String>,
}

impl Running {
    async fn start(
        input: Input,
        options: Arc<Options>,
        connection: &mut Connection,
        acting: Option<(Client, Keeper)>,
        api_ready: Duration,
        first: (files::Memory, Option<Loaded>),
    ) -> Running {
        let Input { project, events, shutdown, .. } = &input;
        let all = input.all_namespaces.unwrap_or(connection.cluster.embedded);
        let namespace = (!all).then(|| connection.namespace.clone());
        let read_only = connection.read_only.clone();
        announce(&input, connection, all, api_ready).await;
        let (publish, sources) = watch::channel(Arc::new(Sources::default()));
        let (to_reloader, asked) = mpsc::channel(16);
        let (to_manager, from_user) = mpsc::channel(64);
        let (die, fatal) = mpsc::channel(1);
        let tasks = TaskTracker::new();
        let reloader = Reloader {
            project: project.clone(),
            options,
            client: connection.client.clone(),
            events: events.clone(),
            read_only: read_only.clone(),
            cautious: connection.cluster.protection != Protection::Local,
            operator: to_manager.clone(),
            publish: publish.clone(),
            asked,
            poll: input.poll || project.settings.reload.poll,
        };
        let watching = shutdown.clone().run_until_cancelled_owned(reloader.run(first, shutdown.clone()));
        let watching = async { watching.await.unwrap_or(Ok(())) };
        let events_of_reload = events.clone();
        tasks.spawn(async move {
            if let Err(error) = survive("file watching", watching).await {
                let hint = "what serves goes on serving, but saves are not seen; restart opdev".to_owned();
                notice(&events_of_reload, Level::Error, format!("{error:#}"), Some(hint)).await;
            }
        });
        // Of its own: who leaves may need it to answer finalizers.
        let operator_stop = CancellationToken::new();
        let (client, keeper) = acting.unzip();
        let rules = keeper.as_ref().map(Keeper::rules);
        let manager = ManagerInput {
            client: client.unwrap_or_else(|| connection.client.clone()),
            sources: sources.clone(),
            events: events.clone(),
            requests: from_user,
            settings: Settings {
                namespace: namespace.clone(),
                read_only: read_only.clone(),
                ..input.operator.clone()
            },
            shutdown: operator_stop.clone(),
        };
        let operator = tasks.spawn(async move {
            if let Err(error) = survive("the operator", manager::run(manager)).await {
                let _ = die.send(error).await;
            }
        });
        if let Some(keeper) = keeper {
            tasks.spawn(keep(keeper, &input, to_manager.clone()));
        }
        let (awake, woken) = watch::channel(0);
        if let Some(tender) = connection.tender() {
            let tending = tender.run(events.clone(), to_manager.clone(), awake);
            tasks.spawn(shutdown.clone().run_until_cancelled_owned(tending));
        }
        let observer = Observer::new(
            connection.client.clone(),
            namespace.clone(),
            events.clone(),
            woken,
            shutdown.clone(),
        );
        let pod_logs =
            PodLogs::new(connection.client.clone(), events.clone(), tasks.clone(), shutdown.clone());
        let carrier = carrier(&input, connection, read_only, to_manager, to_reloader, sources.clone());
        let carrier = Requests { rules, ..carrier };
        if !connection.cluster.embedded {
            let copies = carrier.copies.clone();
            let looking = async move { copies.look().await };
            tasks.spawn(shutdown.clone().run_until_cancelled_owned(looking));
        }
        let preferences = Files::of(&project.root);
        let (quiet, poll) = (project.settings.reload.quiet(), input.poll || project.settings.reload.poll);
        let following = preferences.follow(events.clone(), quiet, poll);
        tasks.spawn(shutdown.clone().run_until_cancelled_owned(following));
        let apply_on_start = project.settings.apply_on_start.clone();
        Running {
            requests: input.requests,
            carrier,
            sources,
            _publish: publish,
            fatal,
            observer,
            pod_logs,
            events: input.events,
            tasks,
            shutdown: input.shutdown,
            operator,
            operator_stop,
            scope: namespace,
            on_exit: input.on_exit.filter(|_| !connection.cluster.embedded),
            apply_on_start,
        }
    }

    async fn until_stopped(mut self) -> Result<()> {
        let mut result = Ok(());
        let mut how = self.on_exit.unwrap_or_default();
        loop {
            tokio::select! {
                () = self.shutdown.cancelled() => break,
                Some(error) = self.fatal.recv() => {
                    result = Err(error);
                    break;
                }
                changed = self.sources.changed() => {
                    if changed.is_err() {
                        break;
                    }
                    self.follow_sources();
                }
                request = self.requests.recv() => match request {
                    Some((_, Request::Quit)) | None => break,
                    Some((_, Request::Leave { how: chosen })) => {
                        how = chosen;
                        break;
                    }
                    Some((_, Request::ListPaths { typed })) => {
                        let carrier = self.carrier.clone();
                        let listing = async move { carrier.list_paths(typed).await };
                        self.tasks.spawn(self.shutdown.clone().run_until_cancelled_owned(listing));
                    }
                    Some((_, Request::PodLogs { sources })) => self.pod_logs.follow(&sources),
                    Some((id, request)) => self.dispatch(id, request),
                },
            }
        }
        if result.is_ok() {
            result = self.leave(how).await;
        }
        let reason =
            result.as_ref().err().map_or_else(|| "asked to stop".to_owned(), |error| format!("{error:#}"));
        let stopping = self.events.emit(Event::Stopping { reason });
        // Neither a full channel nor a call that hangs may hold the user's shell.
        let _ = tokio::time::timeout(PATIENCE, stopping).await;
        self.shutdown.cancel();
        self.operator_stop.cancel();
        self.tasks.close();
        if tokio::time::timeout(PATIENCE, self.tasks.wait()).await.is_err() {
            tracing::warn!("not every task has ended {} s after it was asked to", PATIENCE.as_secs());
        }
        let giving_back = self.carrier.copies.give_all_back();
        if tokio::time::timeout(PATIENCE, giving_back).await.is_err() {
            tracing::warn!("frozen copies were not given back in time; the next opdev does it");
        }
        result
    }

    /// Does what was chosen for the custom resources. Whoever asks to stop once more leaves the rest as it is; where
    /// a signal was the first to ask, it takes a minute at most.
    async fn leave(&mut self, how: OnExit) -> Result<()> {
        // What nothing may be written to is left as it is.
        let how = if self.carrier.guard.read_only.holds() { OnExit::Leave } else { how };
        if how == OnExit::Leave {
            return Ok(());
        }
        // A signal reaches the screen, which asks to quit, and the process, in any order: together they ask once.
        let asked = tokio::time::timeout(ONE_ASK, self.shutdown.cancelled()).await.is_ok();
        let (carrier, scope) = (self.carrier.clone(), self.scope.clone());
        let (operator, stop) = (&mut self.operator, self.operator_stop.clone());
        let work = async move {
            match how {
                OnExit::Leave => Ok(()),
                OnExit::Uninstall => carrier.uninstall(scope.as_deref()).await,
                OnExit::Release => {
                    // It would put the finalizers back.
                    stop.cancel();
                    let _ = operator.await;
                    carrier.release(scope.as_deref()).await
                }
            }
        };
        let enough = async {
            match asked {
                true => tokio::time::sleep(LEAVING).await,
                false => self.shutdown.cancelled().await,
            }
        };
        tokio::select! {
            result = work => result.context("leaving has stopped half-way, and the rest stays as it is"),
            () = enough => Ok(()),
        }
    }

    fn follow_sources(&mut self) {
        let kinds: Vec<_> = {
            let sources = self.sources.borrow_and_update();
            let shown = sources.shown.iter().map(|shown| shown.gvk.clone());
            sources.watches.iter().map(|watch| watch.gvk.clone()).chain(shown).collect()
        };
        self.observer.watch(&kinds);
        for (number, path) in std::mem::take(&mut self.apply_on_start).into_iter().enumerate() {
            self.dispatch(u64::MAX - number as u64, Request::Apply { path });
        }
    }

    /// Requests run beside each other; each is announced and answered by events.
    fn dispatch(&self, id: RequestId, request: Request) {
        let carrier = self.carrier.clone();
        let shutdown = self.shutdown.clone();
        self.tasks
            .spawn(shutdown.run_until_cancelled_owned(async move { carrier.carry_out(id, request).await }));
    }
}

/// Keeps the roles of the operator's ServiceAccount until opdev stops.
fn keep(
    keeper: Keeper,
    input: &Input,
    operator: mpsc::Sender<ManagerRequest>,
) -> impl Future<Output = Option<()>> + use<> {
    let reload = &input.project.settings.reload;
    let keeping = keeper.run(operator, reload.quiet(), input.poll || reload.poll);
    input.shutdown.clone().run_until_cancelled_owned(keeping)
}

/// Who carries out what the user asks for.
fn carrier(
    input: &Input,
    connection: &Connection,
    read_only: ReadOnly,
    operator: mpsc::Sender<ManagerRequest>,
    reloader: mpsc::Sender<Ask>,
    sources: watch::Receiver<Arc<Sources>>,
) -> Requests {
    let (project, events) = (&input.project, &input.events);
    let guard = Guard {
        context: connection.cluster.name.clone(),
        read_only,
        events: events.clone(),
        operator: operator.clone(),
        reloader: reloader.clone(),
    };
    let copies = Copies {
        client: connection.client.clone(),
        guard: guard.clone(),
        events: events.clone(),
        marks: Arc::new(Marks::of(&project.root, &project.name, &connection.namespace)),
        known: Arc::default(),
    };
    Requests {
        reloader,
        operator,
        client: connection.client.clone(),
        project: project.clone(),
        namespace: connection.namespace.clone(),
        events: events.clone(),
        guard,
        copies,
        tasks: Tasks::default(),
        sources,
        drafts: Drafts::default(),
        undo: UndoList::default(),
        rules: None,
    }
}

/// How long uninstalling may take once a signal has asked opdev to stop.
const LEAVING: Duration = Duration::from_secs(60);
/// How far apart the two ways of one signal may be.
const ONE_ASK: Duration = Duration::from_millis(300);
/// How long parts of opdev may take to stop.
const PATIENCE: Duration = Duration::from_secs(3);

async fn announce(input: &Input, connection: &Connection, all_namespaces: bool, api_ready: Duration) {
    let project = &input.project;
    let started = Started {
        at: Timestamp::now(),
        project: project.name.clone(),
        root: project.root.display().to_string(),
        cluster: connection.cluster.clone(),
        namespace: connection.namespace.clone(),
        all_namespaces,
        contexts: contexts::names(&input.cluster),
        kubeconfig: connection.kubeconfig.as_ref().map(|path| project.relative(path)),
        log_file: input.log_file.as_ref().map(|path| project.relative(path)),
        on_exit: input.on_exit,
        api_ready,
    };
    input.events.emit(Event::Started(Arc::new(started))).await;
    for diagnostic in &project.diagnostics {
        let place = diagnostic.place.as_ref().map(ToString::to_string).unwrap_or_default();
        let message = format!("{place}: {}", diagnostic.message);
        notice(&input.events, Level::Warn, message, diagnostic.hint.clone()).await;
    }
    if let Some(warning) = &connection.warning {
        notice(&input.events, Level::Warn, warning.clone(), None).await;
    }
    let Cluster { name, marks, server, protection, .. } = &connection.cluster;
    match protection {
        Protection::Local => {}
        Protection::ReadOnly => {
            let message = format!(
                "read-only: the context {name} is not clearly local ({marks}), so opdev neither applies CRDs nor reconciles"
            );
            let hint = format!(
                "if this cluster is yours to change, unlock it with its name (key U), start opdev with --allow-context \
                 {name}, or add it to allowContexts in opdev.yaml"
            );
            notice(&input.events, Level::Warn, message, Some(hint)).await;
        }
        Protection::Confirmed => {
            let message = format!(
                "the context {name} is not clearly local ({marks}); --allow-context or opdev.yaml allows writes to it"
            );
            notice(&input.events, Level::Warn, message, None).await;
        }
    }
    if connection.cluster.insecure {
        let message = format!(
            "the certificate of {server} goes unchecked: anybody in between can read and change what is sent"
        );
        let hint = format!("remove insecure-skip-tls-verify from the cluster of context {name}");
        notice(&input.events, Level::Warn, message, Some(hint)).await;
    }
}

async fn notice(events: &EventSink, level: Level, message: String, hint: Option<String>) {
    let notice = Notice { at: Timestamp::now(), level, message, hint, object: None };
    events.emit(Event::Noticed(notice)).await;
}

/// Turns the panic of a part that should run to the end into an error that names it.
async fn survive(what: &'static str, work: impl Future<Output = Result<()>>) -> Result<()> {
    match AssertUnwindSafe(work).catch_unwind().await {
        Ok(result) => result.with_context(|| format!("{what} has stopped")),
        Err(_) => bail!("{what} has stopped: it tripped over a bug in opdev, and the log has the details"),
    }
}
