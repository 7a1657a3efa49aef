//! The operator's own programs beside the inner loop: what they are, when each may start, which environment
//! it gets, which saved files concern it. `supervise` builds and runs them.

use super::audit::Audit;
use super::tracing::Tracing;
use crate::notices::tell;
use crate::webhooks::{Serving, certified, free_lease, host_name, make_namespace, watched};
use crate::{Ask, Awaited, BeforeStart, Environment, Limits, Start, Supervisor};
use anyhow::{Context as _, Result};
use futures::future::join_all;
use jiff::Timestamp;
use opdev_cluster::identity::Identity;
use opdev_cluster::{Choice, Connection};
use opdev_event::sink::EventSink;
use opdev_event::sink::{ReconcileNumbers, ReconcileSink};
use opdev_event::{Event, FaultRule, Level, Permission, ProcessChanged, ProcessState, mask};
use opdev_os::private_folder::PrivateFolder;
use opdev_os::read;
use opdev_os::watcher::{WatchSet, Watcher};
use opdev_project::Project;
use opdev_project::program::Programs;
use opdev_project::program::kustomization::Kustomized;
use opdev_project::program::manager_manifest;
use opdev_project::program::manager_manifest::{Deployed, Pod};
use opdev_project::program::permission;
use opdev_project::program::settings::{Build, Plan};
use opdev_project::program::webhooks;
use opdev_project::trust::Trust;
use opdev_sources::Sources;
use opdev_trace::instrument::{self, ManagerOptions, python};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

/// Builds and starts them once the user has said that they may run, and looks after them.
pub async fn start(programs: &Programs, place: Place<'_>) -> Handles {
    if let Some(problem) = programs.problem() {
        let hint = Some("correct opdev.yaml and start opdev again".to_owned());
        tell(place.events, Level::Error, problem.to_owned(), hint).await;
    }
    if programs.plans().is_empty() && !place.disturb.0.is_empty() {
        let message = "no fault is injected: the project has no program of its own".to_owned();
        tell(place.events, Level::Warn, message, None).await;
    }
    let mut handles = Handles::default();
    for (at, plan) in programs.plans().iter().enumerate() {
        if plan.debug.is_some() && plan.main_package().is_none() {
            let message = format!(
                "--debug is for Go programs that opdev builds; {} runs without a debugger",
                plan.words
            );
            let hint = Some("put its own debugger into operator.command of opdev.yaml".to_owned());
            tell(place.events, Level::Warn, message, hint).await;
        }
        let begun = match own_folder(&place, at) {
            // Notices about the manager's Deployment, and about webhooks, are about the first one.
            Ok(folder) => begin(plan.clone(), &place, (&folder, at == 0)).await,
            Err(error) => Err(error),
        };
        match begun {
            Ok(handle) => handles.0.push(handle),
            Err(error) => {
                let message = format!("{} is not started: {error:#}", plan.words);
                tell(place.events, Level::Error, message, None).await;
            }
        }
    }
    handles
}

/// Where the binary, the kubeconfigs and the socket of one of several programs lie: `.opdev` for the first
/// one, a folder in it for each other one.
fn own_folder(place: &Place<'_>, at: usize) -> Result<PrivateFolder> {
    match at {
        0 => Ok(place.state_folder.clone()),
        _ => Ok(place.state_folder.folder(&format!("program-{}", at + 1))?),
    }
}

/// Where a program is to run.
pub struct Place<'a> {
    pub project: &'a Project,
    pub state_folder: &'a PrivateFolder,
    pub connection: &'a Connection,
    pub choice: &'a Choice,
    pub events: &'a EventSink,
    /// The numbers of reconciles.
    pub numbers: &'a ReconcileNumbers,
    /// The sources that serve; the program waits for the first set, with which its kinds are there.
    pub sources: &'a watch::Receiver<Arc<Sources>>,
    /// The permissions that the user gives the project.
    pub trust: &'a Trust,
    /// True to poll files rather than to listen to the kernel.
    pub poll: bool,
    /// The faults that its calls get from the start, and the number that decides which calls are hit by
    /// chance.
    pub disturb: (&'a [FaultRule], u64),
    /// The identity of its calls, where it is not the user's.
    pub acting: Option<&'a Identity>,
    /// The audience of each of its calls, besides the trace.
    pub audit: Option<&'a Audit>,
}

/// The programs that are looked after.
#[derive(Default)]
pub struct Handles(pub(crate) Vec<Handle>);

/// A program that is looked after.
pub(crate) struct Handle {
    /// The program in words.
    pub(crate) words: String,
    /// The way to ask for something.
    pub(crate) ask: mpsc::Sender<Ask>,
    /// Stops it.
    stop: CancellationToken,
    /// Ends once the program has ended.
    work: JoinHandle<()>,
    patience: Duration,
    /// Its webhooks, where it has any.
    pub(crate) serving: Option<Serving>,
    /// Hears what it does.
    pub(crate) tracing: Option<Arc<Tracing>>,
    /// The number that decides which of its calls are hit by chance.
    pub(crate) seed: u64,
}

impl Handles {
    /// Stops all programs and waits until they have ended.
    pub async fn end(self) {
        join_all(self.0.into_iter().map(Handle::end)).await;
    }
}

impl Handle {
    async fn end(self) {
        self.stop.cancel();
        // It is killed once its own time is over; that takes a moment, too.
        let patience = self.patience + Duration::from_secs(3);
        if tokio::time::timeout(patience, self.work).await.is_err() {
            tracing::warn!("the operator's program has not ended in time");
        }
        if let Some(serving) = self.serving {
            serving.remove().await;
        }
    }
}

/// Runs the program once the user has allowed it.
async fn run_once_allowed(
    supervisor: Supervisor,
    (trust, permission): (Trust, Permission),
    stopping: CancellationToken,
    events: EventSink,
) {
    if !trust.grants(&permission) {
        let asked = "your answer: the project wants opdev to build and start it";
        waits(&supervisor, asked).await;
        match stopping.run_until_cancelled(trust.decided(&permission)).await {
            None => return,
            Some(true) => {}
            Some(false) => {
                let refused =
                    "your answer: you have not allowed opdev to build and start it (key R asks again)";
                waits(&supervisor, refused).await;
                if stopping.run_until_cancelled(trust.granted(&permission)).await.is_none() {
                    return;
                }
            }
        }
    }
    if let Err(error) = supervisor.run(stopping).await {
        tell(&events, Level::Error, format!("the program is not started: {error:#}"), None).await;
    }
}

async fn begin(
    mut plan: Plan,
    place: &Place<'_>,
    (folder, is_first): (&PrivateFolder, bool),
) -> Result<Handle> {
    let (permission, words) = (permission(&plan), plan.words.clone());
    let stop = CancellationToken::new();
    let (ask, asked) = mpsc::channel(16);
    let (say_ready, ready) = watch::channel(Err(Awaited::Definitions));
    let mut environment = environment(place, folder)?;
    let (root, manifests) = (place.project.root.clone(), place.project.manifests.clone());
    let kustomized = move || Kustomized::of(&root, manifests.as_deref());
    let kustomized = tokio::task::spawn_blocking(kustomized).await.unwrap_or_default();
    let own_namespace = manager_manifest::namespace(&kustomized, plan.binary.as_deref());
    let own_namespace = own_namespace.filter(|_| place.connection.cluster.embedded);
    let deployed =
        if is_first { deployed(place, &kustomized, &plan, own_namespace.as_deref()) } else { None };
    if let Some(deployed) = &deployed {
        take_over(deployed, &mut plan, &mut environment);
        tell_deployed(deployed, &plan, place.events).await;
    }
    let port = deployed.and_then(|deployed| deployed.webhook_port).unwrap_or(webhooks::PORT);
    let kind = (plan.main_package().is_some(), port);
    let certified = if is_first {
        certified(place.project, place.state_folder, place.connection, place.events, kind, &mut environment)
            .await?
    } else {
        None
    };
    let (serving, certificates) = certified.unzip();
    if serving.is_some() {
        plan.watch.extend(watched(&place.project.root, &plan.dir));
    }
    let tracing = trace(place, folder, certificates.flatten(), &mut environment).await;
    if let Some(tracing) = tracing.as_ref().filter(|_| plan.trace.injects()) {
        add_to_python(&mut plan, tracing.socket(), place).await;
    }
    disturb(place, tracing.as_ref()).await;
    let starts = watch::Sender::new(None);
    if let Some(serving) = &serving {
        tokio::spawn(stop.clone().run_until_cancelled_owned(serving.clone().run()));
    }
    let (patience, quiet) = (plan.stop_after, place.project.settings.reload.quiet());
    let poll = place.poll || place.project.settings.reload.poll;
    let (events, root) = (place.events.clone(), place.project.root.clone());
    let following = follow(plan.clone(), (quiet, poll), root.clone(), ask.clone(), events.clone());
    tokio::spawn(stop.clone().run_until_cancelled_owned(following));
    // Builds write here by path: nothing that came with the project may lie in the way.
    let binaries = folder.folder("bin")?;
    for planted in crate::WRITTEN_BY_BUILDS {
        binaries.remove(planted)?;
    }
    if folder.path().starts_with(&root) {
        // The go command takes a binary for built by what it says of itself: one that came with the project
        // is not offered to it.
        binaries.remove(crate::BUILT)?;
    }
    let (missing, kinds) = mpsc::channel(16);
    let foreign_cluster = crate::foreign_kinds::Cluster {
        client: place.connection.client.clone(),
        events: place.events.clone(),
        embedded: place.connection.cluster.embedded,
    };
    let foreign = crate::foreign_kinds::install(kinds, foreign_cluster, root.clone());
    tokio::spawn(stop.clone().run_until_cancelled_owned(foreign));
    let supervisor = Supervisor {
        missing,
        before_build: crate::deepcopy::before_build(&plan, folder, place.events),
        before_start: before_start(&plan, place, own_namespace, (serving.clone(), tracing.clone())),
        plan,
        root,
        folder: folder.path().to_owned(),
        cache: cache_folder(place.state_folder.path()),
        events: place.events.clone(),
        traced: tracing.as_ref().map(|tracing| tracing.printed()),
        tells: tracing.as_ref().map(|tracing| tracing.tells()),
        asked,
        ready,
        starts,
        calls: tracing.as_ref().map(|tracing| tracing.calls()),
        limits: Limits::default(),
    };
    let (mut sources, read_only) = (place.sources.clone(), place.connection.read_only.clone());
    tokio::spawn(stop.clone().run_until_cancelled_owned(async move {
        if sources.wait_for(|sources| sources.number > 0).await.is_err() {
            return;
        }
        if read_only.holds() {
            let _ = say_ready.send_replace(Err(Awaited::Writes));
            read_only.lifted().await;
        }
        let _ = say_ready.send_replace(Ok(Arc::new(environment)));
        say_ready.closed().await;
    }));
    let allowed = (place.trust.clone(), permission);
    let work = tokio::spawn(run_once_allowed(supervisor, allowed, stop.clone(), events));
    Ok(Handle { words, ask, stop, work, patience, serving, tracing, seed: place.disturb.1 })
}

/// Lets the program into the embedded control plane with a token of its own, so that its calls are known, and
/// listens for what the files that are added to its build tell.
async fn trace(
    place: &Place<'_>,
    folder: &PrivateFolder,
    certificates: Option<PathBuf>,
    environment: &mut Environment,
) -> Option<Arc<Tracing>> {
    let socket = opdev_trace::instrument::socket_path(folder.path());
    let sink = ReconcileSink { events: place.events.clone(), numbers: place.numbers.clone() };
    let traced = super::tracing::start((place.connection, place.audit), &socket, place.acting, sink).await;
    let traced = traced.and_then(|traced| {
        let Some((tracing, [plain, added])) = traced else { return Ok(None) };
        let ways = [
            (&mut environment.plain, "process.kubeconfig", plain),
            (&mut environment.traced, "traced.kubeconfig", added),
        ];
        for (variables, name, text) in ways {
            let path = folder.path().join(name);
            folder.write(name, text.as_bytes())?;
            variables.insert("KUBECONFIG".to_owned(), path.display().to_string());
        }
        let webhook_cert_dir = certificates.map(|folder| folder.display().to_string());
        let options = ManagerOptions { webhook_cert_dir, ..ManagerOptions::default() };
        let more = opdev_trace::instrument::environment(tracing.socket(), &options);
        environment.traced.extend(more.into_iter().map(|(name, value)| (name.to_owned(), value)));
        // It ends a program that changes its cache: for opdev ci, not for a session or a rehearsal.
        if place.choice.in_memory && place.audit.is_none() {
            let detector = instrument::CACHE_MUTATION_DETECTOR;
            environment.traced.insert(detector.to_owned(), "true".to_owned());
        }
        tracing.show_code_below(&place.project.root);
        Ok(Some(Arc::new(tracing)))
    });
    match traced {
        Ok(tracing) => tracing,
        Err(error) => {
            let message = format!("the program's reconciles are not traced: {error:#}");
            tell(place.events, Level::Warn, message, None).await;
            None
        }
    }
}

/// Lets a program in Python tell of its reconciles: it finds a module of opdev's before its own.
async fn add_to_python(plan: &mut Plan, socket: &Path, place: &Place<'_>) {
    if plan.main_package().is_some() || !python::is_python(&plan.command) {
        return;
    }
    let already = plan.env.get(python::PATH).map(OsString::from).or_else(|| std::env::var_os(python::PATH));
    match python::search_path(&cache_folder(place.state_folder.path()), already.as_deref()) {
        Ok(path) => {
            plan.env.insert(python::PATH.to_owned(), path);
            plan.env.insert(opdev_trace::instrument::SOCKET.to_owned(), socket.display().to_string());
        }
        Err(error) => {
            let message = format!("{} is traced by its calls only: {error}", plan.words);
            tell(place.events, Level::Warn, message, None).await;
        }
    }
}

/// Disturbs its calls from the start, where that was asked for.
async fn disturb(place: &Place<'_>, tracing: Option<&Arc<Tracing>>) {
    let (rules, seed) = place.disturb;
    match tracing.and_then(|tracing| tracing.faults()) {
        _ if rules.is_empty() => {}
        Some(faults) => faults.set(rules.to_vec(), seed),
        None => {
            let message = "no fault is injected: that works only on the embedded control plane".to_owned();
            tell(place.events, Level::Warn, message, None).await;
        }
    }
}

/// The surroundings that the manager's Deployment gives to the program.
fn deployed(
    place: &Place<'_>,
    kustomized: &Kustomized,
    plan: &Plan,
    own_namespace: Option<&str>,
) -> Option<Deployed> {
    // On a cluster of others the namespace may not be there.
    let namespace = own_namespace.unwrap_or(&place.connection.namespace);
    let pod = Pod { namespace, project: &place.project.name, binary: plan.binary.as_deref() };
    manager_manifest::read(&place.project.root, kustomized, pod)
}

/// Gives the Deployment's environment and arguments to the program. What opdev's own environment, the
/// Makefile or `opdev.yaml` say counts more.
fn take_over(deployed: &Deployed, plan: &mut Plan, environment: &mut Environment) {
    for (name, value) in &deployed.env {
        if std::env::var_os(name).is_none() {
            for variables in [&mut environment.plain, &mut environment.traced] {
                variables.entry(name.clone()).or_insert_with(|| value.clone());
            }
        }
    }
    let files = deployed.mounted.iter().filter_map(|file| {
        let dir = plan.dir.canonicalize().ok()?;
        Some(file.strip_prefix(dir).ok()?.display().to_string())
    });
    plan.watch.extend(files);
    match &plan.build {
        // Flags that come twice count as the last one says.
        Build::Go { .. } => {
            plan.command = deployed.args.iter().cloned().chain(plan.command.drain(..)).collect();
        }
        Build::Command(_) | Build::None => {}
    }
}

async fn tell_deployed(deployed: &Deployed, plan: &Plan, events: &EventSink) {
    let overridden = |name: &str| std::env::var_os(name).is_some() || plan.env.contains_key(name);
    let env = deployed.env.iter().filter(|(name, _)| !overridden(name)).map(|(name, value)| {
        if mask::is_secret_name(name) { format!("{name}=***") } else { format!("{name}={value}") }
    });
    let taken: Vec<String> = match &plan.build {
        Build::Go { .. } => env.chain(deployed.args.iter().cloned()).collect(),
        Build::Command(_) | Build::None => env.collect(),
    };
    if !taken.is_empty() {
        let message = format!("{} gives the program: {}", deployed.file, taken.join(" "));
        tell(
            events,
            Level::Info,
            message,
            Some("operator.env and operator.args in opdev.yaml override it".to_owned()),
        )
        .await;
    }
    let left_out =
        deployed.left_out.iter().filter(|one| !overridden(one.split(' ').next().unwrap_or_default()));
    let left_out: Vec<&str> = left_out.map(String::as_str).collect();
    if !left_out.is_empty() {
        let message =
            format!("{} also has what only a cluster knows: {}", deployed.file, left_out.join(", "));
        tell(
            events,
            Level::Warn,
            message,
            Some("set what the program needs under operator.env in opdev.yaml".to_owned()),
        )
        .await;
    }
}

/// Before each start: frees the lease of the program before, on the embedded control plane, makes its
/// namespace and what its webhooks need, and says which save led to the start.
fn before_start(
    plan: &Plan,
    place: &Place<'_>,
    namespace: Option<String>,
    (serving, tracing): (Option<Serving>, Option<Arc<Tracing>>),
) -> BeforeStart {
    let lease = plan.lease.clone().filter(|_| place.connection.cluster.embedded);
    let (client, host) = (place.connection.client.clone(), host_name());
    Arc::new(move |start: Arc<Start>| {
        let (lease, client, host) = (lease.clone(), client.clone(), host.clone());
        let (tracing, serving, namespace) = (tracing.clone(), serving.clone(), namespace.clone());
        Box::pin(async move {
            if let Some(namespace) = namespace {
                make_namespace(&client, &namespace).await;
            }
            if let Some(serving) = serving {
                serving.prepare().await;
            }
            if let Some(tracing) = tracing {
                tracing.starting(start.files.clone(), start.number).await;
            }
            if let Some(lease) = lease.filter(|_| !host.is_empty()) {
                free_lease(&client, &lease, &host).await;
            }
        })
    })
}

/// Says what a program waits for before anything of it has begun.
async fn waits(supervisor: &Supervisor, why: &str) {
    let changed = ProcessChanged {
        at: Timestamp::now(),
        program: supervisor.plan.words.clone(),
        starts: 0,
        state: ProcessState::Waiting { why: why.to_owned() },
        traced: None,
        breakpoint: None,
    };
    supervisor.events.emit(Event::ProcessChanged(Arc::new(changed))).await;
}

/// The environment that leads the program to the cluster.
fn environment(place: &Place<'_>, folder: &PrivateFolder) -> Result<Environment> {
    let kubeconfig = if place.connection.cluster.embedded {
        let path = place.connection.kubeconfig.as_ref();
        let path = path.context("the embedded control plane does not listen, for no port is free")?;
        path.display().to_string()
    } else {
        of_context(place, folder)?
    };
    let plain = BTreeMap::from([("KUBECONFIG".to_owned(), kubeconfig)]);
    Ok(Environment { traced: plain.clone(), plain })
}

/// The kubeconfig files of the user, with the context that opdev works on before them: of several files, the
/// first one that names a current context counts. Credentials are not copied.
fn of_context(place: &Place<'_>, folder: &PrivateFolder) -> Result<String> {
    let named = place.choice.kubeconfig.clone();
    let listed = || std::env::var_os("KUBECONFIG").filter(|value| !value.is_empty());
    let home = || Some(PathBuf::from(std::env::var_os("HOME")?).join(".kube/config"));
    let files: Vec<PathBuf> = match (named, listed()) {
        (Some(path), _) => vec![std::path::absolute(path)?],
        (None, Some(list)) => std::env::split_paths(&list).collect(),
        (None, None) => home().into_iter().collect(),
    };
    let context = serde_json::to_string(&place.connection.cluster.name)?;
    let name = "process.kubeconfig";
    let path = folder.path().join(name);
    let text = format!("apiVersion: v1\nkind: Config\ncurrent-context: {context}\n");
    folder.write(name, text.as_bytes())?;
    let all = std::env::join_paths(std::iter::once(path).chain(files))?;
    Ok(all.to_string_lossy().into_owned())
}

/// Where files that are added to builds are kept: outside the project, for all projects.
pub(super) fn cache_folder(state_folder: &Path) -> PathBuf {
    let named = std::env::var_os("XDG_CACHE_HOME").filter(|value| !value.is_empty()).map(PathBuf::from);
    let home = || Some(PathBuf::from(std::env::var_os("HOME")?).join(".cache"));
    named
        .or_else(home)
        .map_or_else(|| state_folder.join("inject"), |cache| cache.join("opdev").join("inject"))
}

/// Follows the files of the program and tells the supervisor what was saved.
async fn follow(
    plan: Plan,
    (quiet, poll): (Duration, bool),
    root: PathBuf,
    ask: mpsc::Sender<Ask>,
    events: EventSink,
) {
    let mut watcher = match Watcher::start(quiet, poll).or_else(|_| Watcher::start(quiet, true)) {
        Ok(watcher) => watcher,
        Err(error) => {
            let message = format!("saves of the operator's program are not seen: {error:#}");
            return tell(&events, Level::Error, message, Some("press R after a save".to_owned())).await;
        }
    };
    loop {
        let folders = {
            let plan = plan.clone();
            tokio::task::spawn_blocking(move || Supervisor::folders(&plan)).await.unwrap_or_default()
        };
        let set = WatchSet { flat: folders.into_iter().collect(), ..WatchSet::default() };
        let renewed = match watcher.watch(&set, false) {
            Ok(renewed) => renewed,
            Err(error) => {
                let hint = opdev_os::watcher::limit_hint(&error);
                tell(
                    &events,
                    Level::Error,
                    format!("not every file of the program can be watched: {error}"),
                    hint,
                )
                .await;
                false
            }
        };
        if renewed {
            // Files may have been saved while nothing listened; the supervisor knows what is new.
            let files = files_of(set.flat.iter().cloned().collect()).await;
            if ask.send(Ask::Saved { files, at: Instant::now() }).await.is_err() {
                return;
            }
        }
        let batch = watcher.next(&root).await;
        let (folders, mut files): (Vec<_>, Vec<_>) = batch.paths.into_iter().partition(|path| path.is_dir());
        files.extend(files_of(folders).await);
        if ask.send(Ask::Saved { files, at: batch.saved_at }).await.is_err() {
            return;
        }
    }
}

/// The files right below some folders.
async fn files_of(folders: Vec<PathBuf>) -> Vec<PathBuf> {
    let list = move || folders.iter().flat_map(read::paths).filter(|path| path.is_file()).collect();
    tokio::task::spawn_blocking(list).await.unwrap_or_default()
}
