//! How everything is wired: files → sources → operator → API server, and the user's requests beside them.
//! Knows every room below it and no terminal. Read this file first, then `reload`, then
//! `operator/manager.rs`. `opening` is the way to a cluster, `switch` from one to another, `leaving` the way
//! out.

mod announce;
pub mod bus;
pub(crate) mod dry_run;
mod following;
mod leaving;
mod opening;
mod operator;
pub(crate) mod reload;
mod save;
pub(crate) mod server_restarted;
pub(crate) mod service_account;
mod survive;
mod switch;

use crate::reload::Reloader;
use crate::server_restarted::Returned;
use crate::service_account::RoleSync;
use announce::announce;
use anyhow::{Context as _, Result, bail};
use following::follow_files;
use jiff::Timestamp;
use leaving::Why;
use opdev_cluster::Choice;
use opdev_cluster::contexts;
use opdev_cluster::identity::Identity;
use opdev_event::sink::EventSink;
use opdev_event::sink::ReconcileNumbers;
use opdev_event::{
    Asker, Event, FaultRule, ObjectTask, OnExit, Permission, Protection, Request, RequestId, RequestOutcome,
    SessionRequest, SourcesTask, Started, Task, ViewRequest, words,
};
use opdev_observe::Observer;
use opdev_observe::kind_table::KindTables;
use opdev_observe::pod_logs::PodLogs;
use opdev_operator::manager::{ManagerInput, ManagerRequest};
use opdev_os::private_folder::PrivateFolder;
use opdev_program::start;
use opdev_project::Project;
use opdev_project::files;
use opdev_project::load;
use opdev_project::preferences;
use opdev_project::preferences::Files;
use opdev_project::program::Programs;
use opdev_project::trust;
use opdev_project::trust::Trust;
use opdev_release::settings::Settings;
use opdev_requests::deployed_copies::{Copies, Marks};
use opdev_requests::guard::Guard;
use opdev_requests::{Cluster, Opdev, Operator, Requests};
use opdev_sources::Sources;
use opdev_sources::load::{Loaded, Options};
use opening::{Opened, Opener, Opening};
use operator::{settings_here, start_operator};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// The command to run.
pub struct Input {
    /// The project.
    pub project: Project,
    /// The permissions that the user gives the project.
    pub trust: Trust,
    /// The cluster.
    pub cluster: Choice,
    /// How the operator runs; namespace and read-only are filled in here.
    pub operator: Settings,
    /// True if objects of all namespaces are reconciled; `None` leaves it to the cluster's kind.
    pub all_namespaces: Option<bool>,
    /// The only kinds to reconcile; empty means all.
    pub only: Vec<String>,
    /// True to poll files rather than to listen to the kernel.
    pub poll: bool,
    /// True if saved charts wait for the user's word.
    pub hold: bool,
    /// The faults that the calls of the operator's own program get from the start.
    pub disturb: Vec<FaultRule>,
    /// The calls that are hit by chance.
    pub disturb_seed: u64,
    /// Where a debugger of the operator's own Go program waits for an editor.
    pub debug: Option<String>,
    /// The folder for the kubeconfig.
    pub state_folder: PrivateFolder,
    /// The log file, to be named on screen.
    pub log_file: Option<PathBuf>,
    /// When the process began.
    pub began: Instant,
    /// Where facts go.
    pub events: EventSink,
    /// The user's request.
    pub requests: mpsc::Receiver<(RequestId, Request)>,
    /// The outcome for custom resources at the end, where the user has said so.
    pub on_exit: Option<OnExit>,
    /// Fires when opdev is to stop.
    pub shutdown: CancellationToken,
}

/// Runs until the shutdown token fires or the user quits.
///
/// # Errors
/// Where no API server can be reached. Everything later is an event, not an error.
pub async fn run(mut input: Input) -> Result<()> {
    let programs = Programs::of(&input.project).debugged(input.debug.clone());
    anyhow::ensure!(
        input.debug.is_none() || !programs.plans().is_empty() || programs.problem().is_some(),
        "--debug starts the operator's own Go program under the debugger Delve, and this project has no program; \
         start opdev without it"
    );
    let options = files::options(&input.project, &input.only, programs.reconcile());
    // Requests of the user reach the inner loop that works right now.
    let mut requests = std::mem::replace(&mut input.requests, mpsc::channel(1).1);
    // Files are read while the API server starts.
    let mut reading = read(&input, &options, &programs);
    let opening = Opener::of(&input).open(input.cluster.clone(), input.began);
    let mut opened = tokio::select! {
        () = input.shutdown.cancelled() => return Ok(()),
        opened = opening => opened?,
    };
    let mut asked = None;
    loop {
        let first = tokio::select! {
            // A chart that takes long to load must not hold up who wants to stop.
            () = input.shutdown.cancelled() => {
                opened.connection.close().await;
                return Ok(());
            }
            first = reading => first.context("reading the project failed; this is a bug in opdev")?,
        };
        if let (Some(loaded), None) = (&first.1, &asked) {
            only_known(&input.only, loaded)?;
        }
        let running = Running::start(&input, (Arc::clone(&options), &programs), &mut opened, first).await;
        if let Some(opening) = asked.take() {
            let said = format!("on {} now", opened.connection.cluster.name);
            running.answer(opening, RequestOutcome::Done { summary: said, warnings: Vec::new() }).await;
        }
        let next = running.until_stopped(&mut requests).await;
        // Whatever still runs there is told to nobody any more.
        opened.events.close();
        opened.connection.close().await;
        let Some((opening, next)) = next? else { return Ok(()) };
        (opened, asked) = (next, Some(opening));
        reading = read(&input, &options, &programs);
        // Requests were about the cluster that was left, but for the wish to stop.
        while let Ok((_, request)) = requests.try_recv() {
            match request {
                Request::Session(SessionRequest::Quit { .. } | SessionRequest::Leave { .. }) => {
                    input.shutdown.cancel();
                }
                Request::Session(SessionRequest::Switch { .. })
                | Request::Task(_)
                | Request::View(_)
                | Request::LookAgain { .. } => {}
            }
        }
    }
}

/// Reads every file of the project for the first time.
fn read(
    input: &Input,
    options: &Arc<Options>,
    programs: &Programs,
) -> JoinHandle<(files::Memory, Option<Loaded>)> {
    let (project, options, trust) = (input.project.clone(), Arc::clone(options), input.trust.clone());
    let programs = programs.permissions();
    tokio::task::spawn_blocking(move || {
        let mut memory = files::Memory::default();
        let read = load::read_with_wanted(&project, &mut memory, &options, programs, &[]);
        let Some((read, wanted)) = read else { return (memory, None) };
        // The reloader asks, and loads once that is answered.
        if trust.unanswered(&wanted).map_or(true, |open| !open.is_empty()) {
            return (memory, None);
        }
        let loaded = load::load(&project, &trust, &mut memory, read, &[], None, false);
        (memory, loaded)
    })
}

/// Every kind of `--only` must be one of the project's.
fn only_known(only: &[String], loaded: &Loaded) -> Result<()> {
    let kinds: Vec<&str> = loaded.kinds.iter().map(|kind| kind.gvk.kind.as_str()).collect();
    for wanted in only {
        if kinds.iter().any(|kind| kind.eq_ignore_ascii_case(wanted)) {
            continue;
        }
        bail!("--only {wanted}: {}", words::no_such_kind(wanted, &kinds));
    }
    Ok(())
}

/// Everything that runs, and the ways to talk to it.
struct Running {
    handler: Requests,
    sources: watch::Receiver<Arc<Sources>>,
    /// Keeps the sources alive where file watching has died: what serves goes on serving.
    _publish: watch::Sender<Arc<Sources>>,
    /// Why nothing can go on.
    fatal: mpsc::Receiver<anyhow::Error>,
    observer: Observer,
    pod_logs: PodLogs,
    kind_tables: KindTables,
    events: EventSink,
    tasks: TaskTracker,
    shutdown: CancellationToken,
    operator: JoinHandle<()>,
    operator_stop: CancellationToken,
    /// The operator's own programs.
    programs: start::Handles,
    /// The only namespace that is reconciled.
    scope: Option<String>,
    /// The outcome for custom resources; nothing where the cluster goes with opdev.
    on_exit: Option<OnExit>,
    apply_on_start: Vec<(RequestId, (String, Option<Permission>))>,
    /// True if CRDs are tried again that failed for a moment.
    crds_awaited: watch::Receiver<bool>,
    /// The cluster that is worked on, as it was chosen, and the way to another one.
    here: Choice,
    embedded: bool,
    server: String,
    opener: Opener,
    /// Ends pauses of watches.
    awake: watch::Sender<u64>,
}

/// Objects that are read only while somebody looks at them.
fn looked_at(
    opened: &Opened,
    scope: &Option<String>,
    tasks: &TaskTracker,
    shutdown: &CancellationToken,
) -> (PodLogs, KindTables) {
    let Opened { connection, events, .. } = opened;
    let client = || connection.client.clone();
    let place = (scope.clone(), connection.namespace.clone());
    (
        PodLogs::new(client(), events.clone(), tasks.clone(), shutdown.clone()),
        KindTables::new(client(), place, events.clone(), tasks.clone(), shutdown.clone()),
    )
}

/// Copies of the operator are looked for where there may be any.
fn look_for_copies(handler: &Requests, tasks: &TaskTracker, shutdown: &CancellationToken) {
    let cluster = handler.cluster();
    if !cluster.embedded {
        let copies = cluster.copies.clone();
        tasks.spawn(shutdown.clone().run_until_cancelled_owned(async move { copies.look().await }));
    }
}

impl Running {
    async fn start(
        input: &Input,
        (options, programs): (Arc<Options>, &Programs),
        opened: &mut Opened,
        first: (files::Memory, Option<Loaded>),
    ) -> Running {
        let project = &input.project;
        let (acting, monitor) = (opened.acting.take(), opened.connection.monitor());
        let Opened { connection, events, .. } = &*opened;
        // Leaving this cluster does not stop opdev.
        let shutdown = &input.shutdown.child_token();
        let all = input.all_namespaces.unwrap_or(connection.cluster.embedded);
        let namespace = (!all).then(|| connection.namespace.clone());
        let read_only = connection.read_only.clone();
        events.open(Event::Started(Arc::new(started(input, opened, all)))).await;
        announce(project, connection, events).await;
        let (publish, sources) = watch::channel(Arc::new(Sources::default()));
        let (awaited, crds_awaited) = watch::channel(false);
        let (to_reloader, asked) = mpsc::channel(16);
        let (to_manager, from_user) = mpsc::channel(64);
        let ((die, fatal), (to_go_back, unfit)) = (mpsc::channel(1), mpsc::channel(16));
        let (tasks, numbers) = (TaskTracker::new(), ReconcileNumbers::default());
        let reloader = Reloader {
            project: project.clone(),
            options,
            trust: input.trust.clone(),
            programs: programs.permissions(),
            client: connection.client.clone(),
            events: events.clone(),
            read_only: read_only.clone(),
            cautious: connection.cluster.protection != Protection::Local,
            operator: to_manager.clone(),
            publish: publish.clone(),
            awaited,
            asked,
            unfit,
            poll: input.poll || project.settings.reload.poll,
            hold: input.hold,
        };
        tasks.spawn(follow_files(reloader, first, shutdown.clone()));
        // The operator has a token of its own: leaving may need it to answer finalizers.
        let operator_stop = CancellationToken::new();
        let (identity, roles) = acting.unzip();
        let rules = roles.as_ref().map(RoleSync::rules);
        let settings = settings_here(input, &namespace, read_only, to_go_back);
        let watched = settings.watched();
        let manager = ManagerInput {
            client: connection.client_of(identity.as_ref()),
            sources: sources.clone(),
            events: events.clone(),
            numbers: numbers.clone(),
            requests: from_user,
            settings,
            shutdown: operator_stop.clone(),
        };
        let operator = start_operator(manager, die, &tasks);
        if let Some(roles) = roles {
            tasks.spawn(shutdown.clone().run_until_cancelled_owned(sync_roles(
                roles,
                input,
                to_manager.clone(),
            )));
        }
        let (awake, woken) = watch::channel(0);
        operator::monitor_connection(monitor, events, (&to_manager, &awake), (&tasks, shutdown));
        let returned = Returned::of(connection, events, &to_reloader, &woken);
        tasks.spawn(shutdown.clone().run_until_cancelled_owned(returned.run()));
        let observer = Observer::new(
            connection.client.clone(),
            watched,
            events.clone(),
            (woken, connection.cluster.embedded),
            shutdown.clone(),
        );
        let (pod_logs, kind_tables) = looked_at(opened, &namespace, &tasks, shutdown);
        let asked = Operator { manager: to_manager, reloader: to_reloader, sources: sources.clone(), rules };
        let handler = handler(input, opened, asked);
        look_for_copies(&handler, &tasks, shutdown);
        tasks.spawn(shutdown.clone().run_until_cancelled_owned(follow_preferences(input, events)));
        let place = place(input, opened, (&sources, &numbers), identity.as_ref());
        let programs = opdev_program::start::start(programs, place).await;
        Running {
            handler,
            sources,
            _publish: publish,
            fatal,
            observer,
            pod_logs,
            kind_tables,
            events: events.clone(),
            tasks,
            shutdown: shutdown.clone(),
            operator,
            operator_stop,
            programs,
            scope: namespace,
            on_exit: input.on_exit.filter(|_| !connection.cluster.embedded),
            apply_on_start: (0..=u64::MAX).rev().zip(trust::applied_on_start(project)).collect(),
            crds_awaited,
            here: opened.choice.clone(),
            embedded: connection.cluster.embedded,
            server: connection.cluster.server.clone(),
            opener: Opener::of(input),
            awake,
        }
    }

    /// Works here until opdev is to stop, or another cluster is open: the answer is that one.
    async fn until_stopped(
        mut self,
        requests: &mut mpsc::Receiver<(RequestId, Request)>,
    ) -> Result<Option<(Opening, Opened)>> {
        let how = self.on_exit.unwrap_or_default();
        let mut opening: Option<Opening> = None;
        let why = loop {
            tokio::select! {
                () = self.shutdown.cancelled() => break Why::Stop { by: Asker::Signal, how },
                Some(error) = self.fatal.recv() => break Why::Broken(error),
                changed = self.sources.changed() => match changed {
                    Ok(()) => self.follow_sources(),
                    Err(_) => break Why::Stop { by: Asker::Signal, how },
                },
                end = Opening::end(&mut opening) => {
                    if let Some(opening) = opening.take()
                        && let Some(there) = self.opened(opening, end).await
                    {
                        break Why::Switch(Box::new(there));
                    }
                }
                request = requests.recv() => match request {
                    None => break Why::Stop { by: Asker::Signal, how },
                    Some((_, Request::Session(SessionRequest::Quit { by }))) => break Why::Stop { by, how },
                    Some((_, Request::Session(SessionRequest::Leave { how }))) => {
                        break Why::Stop { by: Asker::User, how };
                    }
                    Some((id, Request::Session(SessionRequest::Switch { to, how }))) => {
                        let next = Opening::begin(id, (to, how), &self.here, self.opener.clone());
                        self.begin(&mut opening, next).await;
                    }
                    Some((_, Request::Task(Task::Cancel { id })))
                        if opening.as_ref().is_some_and(|one| one.id == id) =>
                    {
                        self.stay(&mut opening).await;
                    }
                    Some((id, Request::Task(task))) => self.dispatch(id, task).await,
                    Some((_, Request::View(request))) => self.show(request),
                    Some((_, Request::LookAgain { controller, object })) => {
                        self.programs.look_again(&controller, &object, &self.sources.borrow());
                    }
                },
            }
        };
        if let Some(abandoned) = opening.take() {
            abandoned.close().await;
        }
        self.end(why, requests).await
    }

    fn follow_sources(&mut self) {
        let (reconciled, shown): (Vec<_>, Vec<_>) = {
            let sources = self.sources.borrow_and_update();
            let shown = sources.shown.iter().map(|shown| shown.gvk.clone());
            (sources.watches.iter().map(|watch| watch.gvk.clone()).collect(), shown.collect())
        };
        self.observer.watch(reconciled, shown);
        let trust = self.handler.trust();
        let (now, refused): (Vec<_>, Vec<_>) = std::mem::take(&mut self.apply_on_start)
            .into_iter()
            .partition(|(_, (_, needs))| needs.as_ref().is_none_or(|permission| trust.grants(permission)));
        // Asked again, the user may allow it.
        self.apply_on_start = refused;
        for (id, (path, _)) in now {
            let handler = self.handler.at_start();
            let mut awaited = self.crds_awaited.clone();
            let applying = async move {
                // A listener that is gone keeps nobody waiting.
                let _ = awaited.wait_for(|waits| !waits).await;
                handler.carry_out(id, ObjectTask::Apply { path }.into()).await;
            };
            self.run_beside(applying);
        }
    }

    /// Tasks run beside each other; each is announced and answered by events.
    async fn dispatch(&self, id: RequestId, task: Task) {
        if let Task::Sources(SourcesTask::Reload) = task {
            // Watches that were refused for want of a right are tried again, too.
            self.awake.send_modify(|count| *count += 1);
            self.handler.tell_connected().await;
        }
        if self.programs.takes(id, &task, &self.sources.borrow(), &self.events) {
            return;
        }
        let handler = self.handler.clone();
        self.run_beside(async move { handler.carry_out(id, task).await });
    }

    /// Reads what the screen asks for.
    fn show(&mut self, request: ViewRequest) {
        let handler = self.handler.clone();
        match request {
            ViewRequest::PodLogs { sources } => self.pod_logs.follow(&sources),
            ViewRequest::Look { object } => self.observer.look_at(object),
            ViewRequest::ShowTable { table } => self.kind_tables.show(table),
            ViewRequest::ReadRow { object } => self.kind_tables.read_row(object),
            ViewRequest::ListKinds => self.kind_tables.list_kinds(),
            ViewRequest::ListPaths { typed } => {
                self.run_beside(async move { handler.list_paths(typed).await });
            }
            ViewRequest::ListFiles => self.run_beside(async move { handler.list_files().await }),
            ViewRequest::ExplainValues { object } => {
                self.run_beside(async move { handler.explain_values(object).await });
            }
            ViewRequest::Remember { borders } => {
                self.tasks.spawn_blocking(move || preferences::remember(borders));
            }
        }
    }

    /// Runs until it is done, or until this cluster is left.
    fn run_beside(&self, work: impl Future<Output = ()> + Send + 'static) {
        self.tasks.spawn(self.shutdown.clone().run_until_cancelled_owned(work));
    }
}

/// Where the operator's own programs are to run.
fn place<'a>(
    input: &'a Input,
    opened: &'a Opened,
    (sources, numbers): (&'a watch::Receiver<Arc<Sources>>, &'a ReconcileNumbers),
    acting: Option<&'a Identity>,
) -> start::Place<'a> {
    start::Place {
        project: &input.project,
        state_folder: &input.state_folder,
        connection: &opened.connection,
        choice: &opened.choice,
        events: &opened.events,
        numbers,
        sources,
        trust: &input.trust,
        poll: input.poll,
        disturb: (&input.disturb, input.disturb_seed),
        acting,
        audit: None,
    }
}

/// Follows the settings of the terminal.
fn follow_preferences(input: &Input, events: &EventSink) -> impl Future<Output = ()> + use<> {
    let reload = &input.project.settings.reload;
    Files::of(&input.project.root).follow(events.clone(), reload.quiet(), input.poll || reload.poll)
}

/// Keeps the roles of the operator's ServiceAccount until opdev stops.
fn sync_roles(
    roles: RoleSync,
    input: &Input,
    operator: mpsc::Sender<ManagerRequest>,
) -> impl Future<Output = ()> + use<> {
    let reload = &input.project.settings.reload;
    roles.run(operator, reload.quiet(), input.poll || reload.poll)
}

/// The handler that carries out the user's requests.
fn handler(input: &Input, Opened { connection, events, .. }: &Opened, operator: Operator) -> Requests {
    let project = &input.project;
    let guard = Guard {
        context: connection.cluster.name.clone(),
        read_only: connection.read_only.clone(),
        events: events.clone(),
        operator: operator.manager.clone(),
        reloader: operator.reloader.clone(),
    };
    let copies = Copies {
        client: connection.client.clone(),
        guard: guard.clone(),
        events: events.clone(),
        marks: Arc::new(Marks::of(&project.root, &project.name, &connection.namespace)),
        known: Arc::default(),
    };
    let cluster = Cluster {
        client: connection.client.clone(),
        namespace: connection.namespace.clone(),
        embedded: connection.cluster.embedded,
        guard,
        copies,
    };
    let opdev = Opdev::itself(input.operator.helm_compat);
    Requests::new(cluster, operator, (project.clone(), input.trust.clone()), events.clone(), opdev)
}

/// How long parts of opdev may take to stop.
const PATIENCE: Duration = Duration::from_secs(3);

/// The project that runs, and where.
fn started(input: &Input, Opened { connection, choice, took, .. }: &Opened, all_namespaces: bool) -> Started {
    let project = &input.project;
    let own = connection.kubeconfig.as_deref();
    let environment = contexts::environment(choice, &connection.cluster, own, &input.state_folder);
    let environment = environment.unwrap_or_else(|error| {
        tracing::warn!("programs that are started from the screen use the current context: {error:#}");
        Vec::new()
    });
    Started {
        at: Timestamp::now(),
        project: project.name.clone(),
        root: project.root.display().to_string(),
        cluster: connection.cluster.clone(),
        namespace: connection.namespace.clone(),
        all_namespaces,
        identity: choice.service_account.as_ref().map(|name| match name.as_str() {
            "" => "its ServiceAccount".to_owned(),
            name => name.to_owned(),
        }),
        contexts: contexts::names(choice),
        kubeconfig: connection.kubeconfig.as_ref().map(|path| project.relative(path)),
        environment,
        log_file: input.log_file.as_ref().map(|path| project.relative(path)),
        on_exit: input.on_exit,
        api_ready: *took,
    }
}
