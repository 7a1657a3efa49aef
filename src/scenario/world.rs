//! One control plane with the operator of the project, in a folder of its own, for one scenario; or a
//! namespace of its own on a cluster, with the operator. Waits on what happens, never on time.

use super::found::Gate;
use super::shared_cluster::Shared;
use opdev_client::read_only::ReadOnly;
use opdev_client::{Api, resource_of};
use opdev_cluster::Choice;
use opdev_event::sink::EventSink;
use opdev_event::{
    Event, KindHealth, LoopFound, ObjectTask, ProcessState, Reconcile, Request, RequestId, RequestOutcome,
    RuleFinding, Task, words,
};
use opdev_findings::Findings;

use anyhow::{Context as _, Result, anyhow, bail};
use kube::Client;
use kube::config::{KubeConfigOptions, Kubeconfig};
use opdev_inner_loop::Input;
use opdev_inner_loop::bus;
use opdev_object::meta::{Gvk, ObjectKey};
use opdev_os::private_folder::{PrivateFolder, STATE};
use opdev_project::Project;
use opdev_project::journal::Journal;
use opdev_project::trust::Trust;
use opdev_release::settings::Settings;
use opdev_state::{State, waiting};
use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

/// The inputs of a world.
#[derive(Clone)]
pub struct Setup {
    /// The scenario.
    pub scenario: String,
    /// The cluster to have a namespace on; nothing where the world is a control plane of its own.
    pub shared: Option<Arc<Shared>>,
    /// The folder for what is recorded.
    pub record: Option<PathBuf>,
    pub project: Project,
    pub trust: Trust,
    pub cluster: Choice,
    pub operator: Settings,
    /// The findings that fail a scenario.
    pub findings: Gate,
    /// True if samples are disturbed once they have settled.
    pub disturbs: bool,
    /// True if a world in which something failed is left as it is.
    pub keep: bool,
    /// Fires when all is to end.
    pub shutdown: CancellationToken,
}

impl Setup {
    /// Comes once all is to end and what is left of the steps is not to be done. A control plane of its own
    /// ends with opdev, and each step hears of that; on a cluster the operator goes on until all is removed.
    pub(crate) async fn broken_off(&self) {
        match self.shared {
            Some(_) => self.shutdown.cancelled().await,
            None => std::future::pending().await,
        }
    }
}

/// How long the operator may take until it serves; a program has to be built first.
const START: Duration = Duration::from_secs(300);
/// How long it may take to stop.
const STOP: Duration = Duration::from_secs(10);
/// How many reconciles are told of a failure.
const PASSES: usize = 3;

/// A control plane with the operator.
pub struct World {
    running: Running,
    /// The variable `KUBECONFIG` of programs.
    pub kubeconfig: String,
    /// Its own namespace on a cluster.
    own: Option<OwnNamespace>,
    /// The administrator's, or the user's on a cluster.
    pub(crate) client: Client,
    /// The API server that `client` asks, for lists.
    api: Api,
    /// For objects without one.
    pub(crate) namespace: String,
    ask: mpsc::Sender<(RequestId, Request)>,
    next: AtomicU64,
    kept: Arc<Mutex<KeptEvents>>,
    news: watch::Receiver<u64>,
    _folder: tempfile::TempDir,
}

/// The running parts, from the moment of the start.
struct Running {
    snapshots: watch::Receiver<Arc<State>>,
    /// True while findings wait for what has to come.
    undecided: watch::Receiver<bool>,
    shutdown: CancellationToken,
    task: JoinHandle<Result<()>>,
    bus: JoinHandle<()>,
}

/// The namespace of a scenario on a cluster.
struct OwnNamespace {
    name: String,
    shared: Arc<Shared>,
}

/// The events that are kept.
#[derive(Default)]
struct KeptEvents {
    answers: HashMap<RequestId, RequestOutcome>,
    reconciles: Vec<Arc<Reconcile>>,
    loops: Vec<Arc<LoopFound>>,
    findings: BTreeMap<u64, Arc<RuleFinding>>,
}

fn lock(kept: &Mutex<KeptEvents>) -> MutexGuard<'_, KeptEvents> {
    kept.lock().unwrap_or_else(PoisonError::into_inner)
}

impl World {
    /// Starts and waits until the operator serves all of the project's kinds.
    ///
    /// # Errors
    /// Why it does not: the project does not load, or its program does not run.
    pub async fn start(setup: &Setup) -> Result<World> {
        let own = match &setup.shared {
            Some(shared) => {
                let name = shared.make_namespace(&setup.scenario).await?;
                Some(OwnNamespace { name, shared: Arc::clone(shared) })
            }
            None => None,
        };
        let alone = match &setup.shared {
            Some(shared) => Some(shared.start_alone().await),
            None => None,
        };
        let started = World::start_in(setup, own.as_ref()).await;
        drop(alone);
        match (started, own) {
            (Ok(world), own) => Ok(World { own, ..world }),
            (Err(error), Some(own)) => {
                let removed = own.shared.remove_namespace(&own.name).await;
                Err(removed.err().map_or_else(|| anyhow!("{error:#}"), |left| anyhow!("{error:#}; {left:#}")))
            }
            (Err(error), None) => Err(error),
        }
    }

    async fn start_in(setup: &Setup, own: Option<&OwnNamespace>) -> Result<World> {
        let folder = tempfile::tempdir().context("no folder for the control plane can be made")?;
        let state_folder = PrivateFolder::make(&folder.path().join(STATE))?;
        let journal = setup.record.as_deref().map(PrivateFolder::named).transpose()?;
        let journal = journal.as_ref().map(Journal::start).transpose()?;
        let (events, incoming) = EventSink::channel(bus::CAPACITY);
        // Whoever has a namespace to remove needs the operator for that.
        let shutdown = if own.is_some() { CancellationToken::new() } else { setup.shutdown.child_token() };
        let kept = Arc::new(Mutex::new(KeptEvents::default()));
        let (tell, news) = watch::channel(0);
        let listener = keeping(&kept, tell);
        let settings = &setup.project.settings;
        let findings = Findings::ignoring(settings.ignored())
            .asking(settings.findings.experiments != Some(false))
            .detecting();
        let (ask, requests) = mpsc::channel(16);
        let bus = bus::start(
            State::default(),
            incoming,
            (journal, Some(listener)),
            (findings, Some(ask.downgrade())),
            shutdown.clone(),
        );
        let mut cluster = setup.cluster.clone();
        if let Some(own) = own {
            cluster.namespace = Some(own.name.clone());
        }
        let input = Input {
            project: setup.project.clone(),
            trust: setup.trust.clone(),
            cluster,
            operator: setup.operator.clone(),
            all_namespaces: Some(own.is_none()),
            only: own.map(|own| own.shared.kinds()).unwrap_or_default(),
            poll: false,
            hold: false,
            disturb: Vec::new(),
            disturb_seed: 0,
            debug: None,
            state_folder,
            log_file: None,
            began: Instant::now(),
            events,
            requests,
            on_exit: None,
            shutdown: shutdown.clone(),
        };
        let task = tokio::spawn(opdev_inner_loop::run(input));
        let running =
            Running { snapshots: bus.snapshots, undecided: bus.undecided, shutdown, task, bus: bus.task };
        let shared = own.map(|own| own.shared.as_ref());
        let serving = tokio::select! {
            serving = running.serving(&setup.project, shared) => serving,
            () = setup.broken_off() => Err(anyhow!("broken off")),
        };
        let (kubeconfig, client, namespace) = match serving {
            Ok(reached) => reached,
            Err(error) => return Err(running.stop().await.err().unwrap_or(error)),
        };
        let _folder = folder;
        let api = Api::new(&client, ReadOnly::new(false));
        Ok(World {
            running,
            kubeconfig,
            own: None,
            client,
            api,
            namespace,
            ask,
            next: AtomicU64::new(1),
            kept,
            news,
            _folder,
        })
    }

    /// The namespace that is the scenario's own, on a cluster of others.
    pub fn own_namespace(&self) -> Option<&str> {
        self.own.as_ref().map(|own| own.name.as_str())
    }

    /// The client that lists objects.
    pub(crate) fn api(&self) -> &Api {
        &self.api
    }

    /// The newest state.
    pub fn state(&self) -> Arc<State> {
        self.running.snapshots.borrow().clone()
    }

    /// Where an object of a kind goes that names no namespace.
    ///
    /// # Errors
    /// Where the kind is not served.
    pub(crate) async fn namespace_of(&self, gvk: &Gvk) -> Result<Option<String>> {
        let (_, namespaced) = resource_of(&self.client, gvk).await?;
        Ok(namespaced.then(|| self.namespace.clone()))
    }

    /// Waits until the state says what `pick` looks for; the state as it is where that takes too long.
    pub(crate) async fn until<T>(
        &self,
        within: Duration,
        pick: impl Fn(&State) -> Option<T>,
    ) -> Result<T, Arc<State>> {
        self.running.until(within, pick).await
    }

    /// Asks as a key does, and waits for the answer.
    ///
    /// # Errors
    /// What was refused, or that no answer came in time.
    pub(crate) async fn ask(&self, task: impl Into<Task>, within: Duration) -> Result<String> {
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        self.ask_as(id, task.into(), within).await
    }

    /// Asks, and waits until the state has the answer, so that all is in it that was told before.
    ///
    /// # Errors
    /// As [`World::ask`].
    pub(crate) async fn ask_and_see(&self, task: impl Into<Task>, within: Duration) -> Result<()> {
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        self.ask_as(id, task.into(), within).await?;
        let answered = |state: &State| state.requests.finished.iter().any(|done| done.id == id).then_some(());
        self.until(within, answered).await.map_err(|_| anyhow!("no answer after {} s", within.as_secs()))
    }

    async fn ask_as(&self, id: RequestId, task: Task, within: Duration) -> Result<String> {
        let applies = matches!(task, Task::Object(ObjectTask::Apply { .. }));
        self.ask.send((id, Request::Task(task))).await.map_err(|_| anyhow!("the operator has stopped"))?;
        let mut news = self.news.clone();
        let answer = async {
            loop {
                news.borrow_and_update();
                if let Some(outcome) = lock(&self.kept).answers.remove(&id) {
                    return Some(outcome);
                }
                if news.changed().await.is_err() {
                    return None;
                }
            }
        };
        match tokio::time::timeout(within, answer).await {
            Ok(Some(RequestOutcome::Done { summary, warnings })) => {
                // kubectl refuses what the API server only warns about: a field that is not there does
                // nothing.
                let wrong = warnings
                    .iter()
                    .find(|one| one.contains("unknown field") || one.contains("duplicate field"));
                match wrong.filter(|_| applies) {
                    Some(warning) => bail!("{warning}"),
                    None => Ok(summary),
                }
            }
            Ok(Some(RequestOutcome::Failed { message, .. } | RequestOutcome::Cancelled { message })) => {
                bail!("{message}")
            }
            Ok(None) => bail!("the operator has stopped"),
            Err(_) => bail!("no answer after {} s", within.as_secs()),
        }
    }

    /// The reconciles of an object so far.
    pub(crate) fn reconciles(&self) -> Vec<Arc<Reconcile>> {
        lock(&self.kept).reconciles.clone()
    }

    /// Loops that were found.
    pub(crate) fn loops(&self) -> Vec<Arc<LoopFound>> {
        lock(&self.kept).loops.clone()
    }

    /// The findings about the operator, open or not.
    pub(crate) fn findings(&self) -> Vec<Arc<RuleFinding>> {
        lock(&self.kept).findings.values().cloned().collect()
    }

    /// Waits while a rule of absence may still tell something, but never for long.
    pub(crate) async fn decided(&self, within: Duration) {
        let mut undecided = self.running.undecided.clone();
        let _ = tokio::time::timeout(within, undecided.wait_for(|undecided| !undecided)).await;
    }

    /// The last reconciles in words, for whoever looks for the reason of a failure.
    pub(crate) fn last_reconciles(&self) -> String {
        let reconciles = self.reconciles();
        let last = reconciles.iter().rev().take(PASSES).rev();
        last.map(|reconcile| {
            let mut line = format!(
                "reconcile #{} of {}: {} ({})",
                reconcile.id,
                reconcile.object,
                words::outcome(reconcile.outcome),
                words::causes(&reconcile.causes)
            );
            if let Some(failure) = &reconcile.failure {
                line.push_str(&format!(": {}", words::one_line(&failure.chain.join(": "))));
            }
            line.push('\n');
            line
        })
        .collect()
    }

    /// Stops the operator and the control plane, unless something `failed` in it and such worlds are kept.
    ///
    /// # Errors
    /// Why the operator could not run.
    pub(crate) async fn stop_unless_kept(self, setup: &Setup, failed: bool) -> Result<Option<World>> {
        // Once all is to end nobody looks at it any more.
        if failed && setup.keep && !setup.shutdown.is_cancelled() {
            return Ok(Some(self));
        }
        self.stop().await.map(|()| None)
    }

    /// Stops the operator and the control plane. On a cluster the scenario's namespace is removed before.
    ///
    /// # Errors
    /// Why the operator could not run, or what is left on the cluster.
    pub async fn stop(self) -> Result<()> {
        let removed = match &self.own {
            Some(own) => own.shared.remove_namespace(&own.name).await,
            None => Ok(()),
        };
        drop(self.ask);
        self.running.stop().await.and(removed)
    }
}

/// Keeps what is asked for later, and tells of each.
fn keeping(kept: &Arc<Mutex<KeptEvents>>, tell: watch::Sender<u64>) -> bus::Listener {
    let kept = Arc::clone(kept);
    Box::new(move |event: &Event| {
        let mut kept = lock(&kept);
        match event {
            Event::RequestFinished(done) => {
                kept.answers.insert(done.id, done.outcome.clone());
            }
            Event::Reconciled(reconcile) => {
                match kept.reconciles.iter_mut().rfind(|known| known.id == reconcile.id) {
                    // It is told again, because more is known of it.
                    Some(known) => *known = Arc::clone(reconcile),
                    None => kept.reconciles.push(Arc::clone(reconcile)),
                }
            }
            Event::LoopFound(found) => kept.loops.push(Arc::clone(found)),
            Event::FindingOpened(found) | Event::FindingCounted(found) | Event::FindingClosed(found) => {
                kept.findings.insert(found.id, Arc::clone(found));
            }
            _ => return,
        }
        tell.send_modify(|count| *count += 1);
    })
}

impl Running {
    /// Waits until all kinds are served: `KUBECONFIG`, the client and the namespace to reach them with.
    async fn serving(&self, project: &Project, shared: Option<&Shared>) -> Result<(String, Client, String)> {
        let told = self.until(START, |state| serving(state).transpose()).await;
        told.unwrap_or_else(|_| bail!("the operator does not serve after {} s", START.as_secs()))?;
        let started = self.snapshots.borrow().started.clone().context("the operator has not started")?;
        if let Some(shared) = shared {
            let listed = started.environment.iter().find(|(name, _)| name == "KUBECONFIG");
            let (_, listed) = listed.context("no kubeconfig leads other programs to the cluster")?;
            return Ok((listed.clone(), shared.client(), started.namespace.clone()));
        }
        let path = started.kubeconfig.clone();
        let path =
            path.context("the control plane does not listen, so that no other program can reach it")?;
        let path = project.root.join(path);
        let kubeconfig =
            Kubeconfig::read_from(&path).context("the control plane's kubeconfig cannot be read")?;
        let config = kube::Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await?;
        Ok((path.display().to_string(), Client::try_from(config)?, started.namespace.clone()))
    }

    async fn until<T>(&self, within: Duration, pick: impl Fn(&State) -> Option<T>) -> Result<T, Arc<State>> {
        let mut snapshots = self.snapshots.clone();
        let look = async {
            loop {
                let state = snapshots.borrow_and_update().clone();
                if let Some(found) = pick(&state) {
                    return Some(found);
                }
                if snapshots.changed().await.is_err() {
                    return None;
                }
            }
        };
        match tokio::time::timeout(within, look).await {
            Ok(Some(found)) => Ok(found),
            Ok(None) | Err(_) => Err(self.snapshots.borrow().clone()),
        }
    }

    async fn stop(self) -> Result<()> {
        self.shutdown.cancel();
        let ended = tokio::time::timeout(STOP, self.task).await;
        let _ = tokio::time::timeout(STOP, self.bus).await;
        match ended {
            Ok(Ok(result)) => result,
            Ok(Err(_)) => bail!("the operator tripped over a bug in opdev"),
            Err(_) => bail!("the operator does not stop"),
        }
    }
}

/// Tells whether every kind is served; the error says why one never will be.
fn serving(state: &State) -> Result<Option<()>> {
    if let Some(why) = &state.stopping {
        bail!("opdev stops: {why}");
    }
    let Some(live) = &state.reload.live else { return Ok(None) };
    if let Some(why) = held(state) {
        bail!("{why}");
    }
    if let Some(failed) = &state.reload.failed {
        bail!("{}", failed.diagnostics.iter().map(words::diagnostic).collect::<Vec<_>>().join("; "));
    }
    for kind in &live.kinds {
        match &kind.health {
            KindHealth::Serving | KindHealth::Shown { .. } => {}
            KindHealth::Disabled { problem } | KindHealth::Stale { problem } => {
                bail!("{} is not served: {}", kind.gvk.kind, words::diagnostic(problem));
            }
            KindHealth::Process { program } => match state.programs.run_of(program).map(|run| &run.state) {
                Some(ProcessState::Running { .. }) => {}
                Some(ProcessState::Failed { exit }) => {
                    bail!("{program} does not run: {}", words::exit(exit));
                }
                Some(_) | None => {
                    let built = state.programs.get(program);
                    if let Some(failed) = built.and_then(|built| built.build_failed.as_ref()) {
                        let told: Vec<String> = failed.diagnostics.iter().map(words::diagnostic).collect();
                        bail!("{program} cannot be built: {}", told.join("; "));
                    }
                    return Ok(None);
                }
            },
        }
    }
    Ok(Some(()))
}

/// The change that needs the user's answer; nobody asks the user here.
pub(crate) fn held(state: &State) -> Option<String> {
    let held = state.impact.held.first()?;
    Some(format!(
        "a change of {} needs your answer: {}\n  to do: `opdev install` applies the CRDs of the project and says what they would \
         do to the objects that are there",
        held.kind.kind, held.why
    ))
}

/// The reasons why custom resources wait, these ones among them; empty once all is settled.
pub(crate) fn waits(state: &State, objects: &[ObjectKey]) -> Vec<String> {
    let unseen: Vec<String> = objects
        .iter()
        .filter(|object| state.objects.get(object).is_none())
        .map(|object| format!("{object} has not been seen yet"))
        .collect();
    if unseen.is_empty() { all_waits(state) } else { unseen }
}

/// The reasons why any custom resource waits.
pub(crate) fn all_waits(state: &State) -> Vec<String> {
    let mut found = Vec::new();
    let queue = &state.queue;
    if queue.waiting + queue.running > 0 || !state.running.is_empty() {
        found.push("reconciles are under way".to_owned());
    }
    if queue.backing_off > 0 {
        found.push("a reconcile that failed waits for its next try".to_owned());
    }
    for (object, reconcile) in waiting::unseen(state) {
        found.push(format!("{object}, which reconcile #{reconcile} has created, has not been seen yet"));
    }
    // Objects of the cluster are everybody's where the operator has a namespace of its own.
    let everywhere = state.started.as_ref().is_none_or(|started| started.all_namespaces);
    for seen in state.objects.custom().filter(|seen| everywhere || seen.key.namespace.is_some()) {
        for wait in waiting::of(state, seen) {
            let why = if wait.why.is_empty() { String::new() } else { format!(": {}", wait.why) };
            found.push(format!("{} waits for {}{why}", seen.key, wait.what));
        }
    }
    found
}
