//! One control plane with the operator of the project, in a folder of its own, for one scenario. Waits on what happens,
//! never on time.

use crate::dev::api::resource_of;
use crate::dev::bus;
use crate::dev::cluster::Choice;
use crate::dev::inner_loop::{self, Input};
use crate::dev::private_folder::{PrivateFolder, STATE};
use crate::dev::project::Project;
use crate::dev::trust::Trust;
use crate::event::{
    Event, KindHealth, LoopFound, ProcessState, Reconcile, Request, RequestId, RequestOutcome, words,
};
use crate::operator::manager::Settings;
use crate::state::{State, waiting};
use crate::tap::EventSink;
use anyhow::{Context as _, Result, anyhow, bail};
use kube::Client;
use kube::config::{KubeConfigOptions, Kubeconfig};
use opdev_object::meta::{Gvk, ObjectKey};
use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

/// What every world of one run has.
#[derive(Clone)]
pub(super) struct Setup {
    pub(super) project: Project,
    pub(super) trust: Trust,
    pub(super) cluster: Choice,
    pub(super) operator: Settings,
    /// Whether a world in which something failed is left as it is.
    pub(super) keep: bool,
    /// Fires when all is to end.
    pub(super) shutdown: CancellationToken,
}

/// How long the operator may take until it serves; a program has to be built first.
const START: Duration = Duration::from_secs(300);
/// How long it may take to stop.
const STOP: Duration = Duration::from_secs(10);
/// How many passes are told of a failure.
const PASSES: usize = 3;

/// A control plane with the operator.
pub(super) struct World {
    running: Running,
    pub(super) kubeconfig: PathBuf,
    /// The administrator's, as `kubeconfig` has it.
    pub(super) client: Client,
    /// For objects without one.
    pub(super) namespace: String,
    ask: mpsc::Sender<(RequestId, Request)>,
    next: RequestId,
    kept: Arc<Mutex<KeptEvents>>,
    news: watch::Receiver<u64>,
    _folder: tempfile::TempDir,
}

/// What runs, from the moment it was started.
struct Running {
    snapshots: watch::Receiver<Arc<State>>,
    shutdown: CancellationToken,
    task: JoinHandle<Result<()>>,
    bus: JoinHandle<()>,
}

/// What is kept of the events.
#[derive(Default)]
struct KeptEvents {
    answers: HashMap<RequestId, RequestOutcome>,
    passes: Vec<Arc<Reconcile>>,
    loops: Vec<Arc<LoopFound>>,
}

fn lock(kept: &Mutex<KeptEvents>) -> MutexGuard<'_, KeptEvents> {
    kept.lock().unwrap_or_else(PoisonError::into_inner)
}

impl World {
    /// Starts and waits until the operator serves all of the project's kinds.
    ///
    /// # Errors
    /// Why it does not: the project does not load, or its program does not run.
    pub(super) async fn start(setup: &Setup) -> Result<World> {
        let folder = tempfile::tempdir().context("no folder for the control plane can be made")?;
        let state_folder = PrivateFolder::make(&folder.path().join(STATE))?;
        let (events, incoming) = EventSink::channel(bus::CAPACITY);
        let shutdown = setup.shutdown.child_token();
        let kept = Arc::new(Mutex::new(KeptEvents::default()));
        let (tell, news) = watch::channel(0);
        let listener = {
            let kept = Arc::clone(&kept);
            Box::new(move |event: &Event| {
                let mut kept = lock(&kept);
                match event {
                    Event::RequestFinished(done) => {
                        kept.answers.insert(done.id, done.outcome.clone());
                    }
                    Event::Reconciled(pass) => kept.passes.push(Arc::clone(pass)),
                    Event::LoopFound(found) => kept.loops.push(Arc::clone(found)),
                    _ => return,
                }
                tell.send_modify(|count| *count += 1);
            })
        };
        let bus = bus::start(State::default(), incoming, None, Some(listener), shutdown.clone());
        let (ask, requests) = mpsc::channel(16);
        let input = Input {
            project: setup.project.clone(),
            trust: setup.trust.clone(),
            cluster: setup.cluster.clone(),
            operator: setup.operator.clone(),
            all_namespaces: Some(true),
            only: Vec::new(),
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
        let task = tokio::spawn(inner_loop::run(input));
        let running = Running { snapshots: bus.snapshots, shutdown, task, bus: bus.task };
        let (kubeconfig, client, namespace) = match running.serving(&setup.project).await {
            Ok(reached) => reached,
            Err(error) => return Err(running.stop().await.err().unwrap_or(error)),
        };
        let _folder = folder;
        Ok(World { running, kubeconfig, client, namespace, ask, next: 0, kept, news, _folder })
    }

    /// The newest state.
    pub(super) fn state(&self) -> Arc<State> {
        self.running.snapshots.borrow().clone()
    }

    /// Where an object of a kind goes that names no namespace.
    ///
    /// # Errors
    /// Where the kind is not served.
    pub(super) async fn namespace_of(&self, gvk: &Gvk) -> Result<Option<String>> {
        let (_, namespaced) = resource_of(&self.client, gvk).await?;
        Ok(namespaced.then(|| self.namespace.clone()))
    }

    /// Waits until the state says what `pick` looks for; the state as it is where that takes too long.
    pub(super) async fn until<T>(
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
    pub(super) async fn ask(&mut self, request: Request, within: Duration) -> Result<String> {
        self.next += 1;
        let id = self.next;
        let applies = matches!(request, Request::Apply { .. });
        self.ask.send((id, request)).await.map_err(|_| anyhow!("the operator has stopped"))?;
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
                // kubectl refuses what the API server only warns about: a field that is not there does nothing.
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

    /// The passes of an object so far.
    pub(super) fn passes(&self) -> Vec<Arc<Reconcile>> {
        lock(&self.kept).passes.clone()
    }

    /// Loops that were found.
    pub(super) fn loops(&self) -> Vec<Arc<LoopFound>> {
        lock(&self.kept).loops.clone()
    }

    /// The last passes in words, for whoever looks for the reason of a failure.
    pub(super) fn last_passes(&self) -> String {
        let passes = self.passes();
        let last = passes.iter().rev().take(PASSES).rev();
        last.map(|pass| {
            let mut line = format!(
                "reconcile #{} of {}: {} ({})",
                pass.id,
                pass.object,
                words::outcome(pass.outcome),
                words::causes(&pass.causes)
            );
            if let Some(failure) = &pass.failure {
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
    pub(super) async fn stop_unless_kept(self, setup: &Setup, failed: bool) -> Result<Option<World>> {
        // Once all is to end nobody looks at it any more.
        if failed && setup.keep && !setup.shutdown.is_cancelled() {
            return Ok(Some(self));
        }
        self.stop().await.map(|()| None)
    }

    /// Stops the operator and the control plane.
    ///
    /// # Errors
    /// Why the operator could not run.
    pub(super) async fn stop(self) -> Result<()> {
        drop(self.ask);
        self.running.stop().await
    }
}

impl Running {
    /// Waits until all kinds are served: the kubeconfig, the client and the namespace to reach them with.
    async fn serving(&self, project: &Project) -> Result<(PathBuf, Client, String)> {
        let told = self.until(START, |state| serving(state).transpose()).await;
        told.unwrap_or_else(|_| bail!("the operator does not serve after {} s", START.as_secs()))?;
        let started = self.snapshots.borrow().started.clone().context("the operator has not started")?;
        let path = started.kubeconfig.clone();
        let path =
            path.context("the control plane does not listen, so that no other program can reach it")?;
        let path = project.root.join(path);
        let kubeconfig =
            Kubeconfig::read_from(&path).context("the control plane's kubeconfig cannot be read")?;
        let config = kube::Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await?;
        Ok((path, Client::try_from(config)?, started.namespace.clone()))
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

/// Whether every kind is served; the error says why one never will be.
fn serving(state: &State) -> Result<Option<()>> {
    if let Some(why) = &state.stopping {
        bail!("opdev stops: {why}");
    }
    let Some(live) = &state.reload.live else { return Ok(None) };
    if let Some(failed) = &state.reload.failed {
        bail!("{}", failed.diagnostics.iter().map(words::diagnostic).collect::<Vec<_>>().join("; "));
    }
    for kind in &live.kinds {
        match &kind.health {
            KindHealth::Serving | KindHealth::Shown { .. } => {}
            KindHealth::Disabled { problem } | KindHealth::Stale { problem } => {
                bail!("{} is not served: {}", kind.gvk.kind, words::diagnostic(problem));
            }
            KindHealth::Process { program } => match state.process.run.as_ref().map(|run| &run.state) {
                Some(ProcessState::Running { .. }) => {}
                Some(ProcessState::Failed { exit }) => {
                    bail!("{program} does not run: {}", words::exit(exit));
                }
                Some(_) | None => {
                    if let Some(failed) = &state.reload.build_failed {
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

/// What the custom resources wait for, these ones among them; nothing once all is settled.
pub(super) fn waits(state: &State, objects: &[ObjectKey]) -> Vec<String> {
    let unseen: Vec<String> = objects
        .iter()
        .filter(|object| state.objects.get(object).is_none())
        .map(|object| format!("{object} has not been seen yet"))
        .collect();
    if unseen.is_empty() { all_waits(state) } else { unseen }
}

/// What any custom resource waits for.
pub(super) fn all_waits(state: &State) -> Vec<String> {
    let mut found = Vec::new();
    let queue = &state.queue;
    if queue.waiting + queue.running > 0 || !state.running.is_empty() {
        found.push("reconciles are under way".to_owned());
    }
    if queue.backing_off > 0 {
        found.push("a reconcile that failed waits for its next try".to_owned());
    }
    for seen in state.objects.custom() {
        for wait in waiting::of(state, seen) {
            let why = if wait.why.is_empty() { String::new() } else { format!(": {}", wait.why) };
            found.push(format!("{} waits for {}{why}", seen.key, wait.what));
        }
    }
    found
}
