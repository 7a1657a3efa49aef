//! The problem: sources, objects, CRDs and the user's requests change at any moment, also in the middle of a
//! reconcile. A reconcile must work on one set of sources, and a worker that hangs or panics must not take
//! the others with it.
//!
//! Runs the reconcilers: follows the sources, starts and stops kinds, hands objects to workers, reports
//! reconciles. Never reconciles itself and never stops because a reconcile failed or panicked. `kinds` holds
//! what is watched, `reload` knows when a saved file has reached the cluster, `start` begins reconciles on
//! `workers`, `worker_end` turns the end of a worker into an event.

mod caught_up;
mod changed_while_running;
mod check;
mod kinds;
mod loop_found;
mod mapped_objects;
mod pause;
mod refusal;
mod reload;
mod start;
mod wakes;
mod worker_end;
mod workers;

use super::queue::{Kind, Queue, Trace, Urgency, kind_of};
use caught_up::CatchUps;
pub use check::verdict;
use jiff::Timestamp;
use kinds::{Kinds, Message};
use mapped_objects::Mapping;
use opdev_cache::stream::Streams;
use opdev_client::Api;
use opdev_event::sink::{EventSink, ReconcileNumbers, ReconcileSink};
use opdev_event::{Cause, CauseKind, Event, Level, Notice, PauseScope, Paused, QueueChanged, Relation, mask};
use opdev_findings::hot_loop::Loops;
use opdev_object::meta::{Gvk, ObjectKey, ObjectRef};
pub use opdev_reconcile::dry_run_report::Shadowed;
pub use opdev_release::settings::{HelmCompat, Settings};
pub use opdev_release::unfit::UnfitWrite;
use opdev_sources::{Sources, Watch};
pub use refusal::{Answer, Refusal};
use reload::Reload;
use serde_json::Value;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use wakes::Wake;
use workers::Workers;

/// The input of the manager.
pub struct ManagerInput {
    /// The API server to reconcile against.
    pub client: kube::Client,
    /// The newest sources.
    pub sources: watch::Receiver<Arc<Sources>>,
    /// Where facts go.
    pub events: EventSink,
    /// The numbers of reconciles.
    pub numbers: ReconcileNumbers,
    /// The user's request.
    pub requests: mpsc::Receiver<ManagerRequest>,
    /// The settings.
    pub settings: Settings,
    /// Fires when opdev stops.
    pub shutdown: CancellationToken,
}

/// Requests to a running manager.
#[derive(Debug)]
pub enum ManagerRequest {
    /// Reconcile an object now, whatever its back-off; a dependent stands for the object it belongs to.
    ReconcileNow {
        /// The object.
        object: ObjectRef,
    },
    /// Pause an object or a kind: causes collect, no reconcile begins.
    Pause {
        /// The part to pause.
        scope: PauseScope,
        /// Why, where nobody asked for it.
        why: Option<String>,
        /// Where the answer goes: what was done, or why nothing was.
        reply: oneshot::Sender<Answer>,
    },
    /// Let an object or a kind go on.
    Resume {
        /// The part to resume.
        scope: PauseScope,
        /// Where the answer goes.
        reply: oneshot::Sender<Answer>,
    },
    /// Run exactly one reconcile for an object, paused or not.
    Step {
        /// The object.
        object: ObjectRef,
        /// Where the answer goes.
        reply: oneshot::Sender<Answer>,
    },
    /// Reconcile an object twice: is it at rest after the first reconcile?
    Check {
        /// The object.
        object: ObjectRef,
        /// Where the answer goes: that the second reconcile wrote nothing, or what it wrote.
        reply: oneshot::Sender<Answer>,
    },
    /// Tell once the streams have shown these objects as they are here, or newer, and all that reconciles
    /// have written.
    CatchUp {
        /// Each with its metadata.
        objects: Vec<Arc<Value>>,
        /// Where the answer goes.
        reply: oneshot::Sender<()>,
    },
    /// Reconcile every object: something that kept all of them from being reconciled is gone.
    ReconcileAll {
        /// The reason for which they waited.
        why: String,
    },
    /// The connection to the API server is lost, or there again. Without it no reconcile begins.
    Connection {
        /// True if it is lost.
        lost: bool,
    },
    /// The version that an [`UnfitWrite`] was about goes on serving its kind: nothing came before it, or
    /// something newer is on its way.
    Stays {
        /// The kind.
        gvk: Gvk,
        /// The set of sources that the report was about.
        sources: u64,
    },
    /// Tell how each kind is served. Whoever waits for the answer knows that the manager is not stuck.
    Look {
        /// Where the answer goes.
        reply: oneshot::Sender<Vec<KindState>>,
    },
    /// Try a chart or a program that does not serve yet on every known object of its kind. Nothing is
    /// written.
    Shadow {
        /// The kind with its new chart or program.
        watch: Arc<Watch>,
        /// Where the answer goes; nobody need wait for it.
        reply: oneshot::Sender<Shadowed>,
    },
}

/// The state of a kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KindState {
    /// The kind.
    pub gvk: Gvk,
    /// How many of its objects wait for a worker.
    pub waiting: usize,
    /// Why its objects are not known; `None` where all of them are.
    pub problem: Option<String>,
}

/// How long a trial of all objects may take.
const TRIAL: Duration = Duration::from_secs(10);

/// Runs until the shutdown token fires, then lets running reconciles end.
pub async fn run(input: ManagerInput) -> anyhow::Result<()> {
    let ManagerInput { client, mut sources, events, numbers, mut requests, settings, shutdown } = input;
    let (inbox, mut messages) = mpsc::channel(1024);
    let mut manager = Manager::new(client, ReconcileSink { events, numbers }, settings, inbox);
    let first = sources.borrow_and_update().clone();
    manager.serve(first).await;
    loop {
        manager.start_workers().await;
        manager.tell_counts().await;
        manager.tell_pauses().await;
        // Reconciles that are under way because of what the streams have shown are told by now.
        manager.catching_up.answer(&manager.kinds);
        let deadline = manager.queue.next_deadline();
        tokio::select! {
            () = shutdown.cancelled() => break,
            changed = sources.changed() => match changed {
                Ok(()) => {
                    let newest = sources.borrow_and_update().clone();
                    manager.serve(newest).await;
                }
                Err(_) => shutdown.cancelled().await,
            },
            Some(message) = messages.recv() => manager.hear(message).await,
            Some(said) = manager.mapping.said.recv() => manager.take_mapped(said).await,
            Some(request) = requests.recv() => manager.carry_out(request).await,
            Some(ended) = manager.workers.tasks.join_next_with_id(), if !manager.workers.tasks.is_empty() => {
                manager.worker_ended(ended).await;
            }
            () = until(deadline) => manager.queue.advance(Instant::now(), Timestamp::now()),
        }
    }
    manager.leave().await;
    Ok(())
}

async fn until(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => tokio::time::sleep_until(deadline).await,
        None => std::future::pending().await,
    }
}

struct Manager {
    server: Server,
    events: EventSink,
    settings: Arc<Settings>,
    sources: Arc<Sources>,
    queue: Queue,
    kinds: Kinds,
    workers: Workers,
    memories: HashMap<ObjectKey, opdev_release::memory::Memory>,
    saved: Saved,
    told: Told,
    loops: Loops,
    /// Rights that were told to be missing, each with the object that it was missing for.
    missing_rights: HashMap<String, ObjectKey>,
    checks: HashMap<ObjectKey, check::Check>,
    catching_up: CatchUps,
    /// Outputs that renders leave for the next ones.
    renders: Arc<opdev_release::render::cache::Renders>,
    mapping: Mapping,
}

/// The way to the API server.
struct Server {
    api: Api,
    /// True if it does not answer.
    lost: bool,
    /// Wakes streams that wait before they try again.
    awake: watch::Sender<u64>,
}

/// The newest save and what it has brought.
#[derive(Default)]
struct Saved {
    /// The objects that it still has to reach.
    reload: Option<Reload>,
    /// Kinds that came with a save, and the cause that this is.
    kinds: HashMap<Kind, CauseKind>,
}

/// The counts and pauses as they were told last.
#[derive(Default)]
struct Told {
    counts: QueueChanged,
    pauses: Vec<Paused>,
}

impl Manager {
    fn new(
        client: kube::Client,
        ReconcileSink { events, numbers }: ReconcileSink,
        settings: Settings,
        inbox: mpsc::Sender<Message>,
    ) -> Manager {
        let api = Api::new(&client, settings.read_only.clone());
        let discovery = Arc::clone(&api.discovery);
        let (types, changed) = watch::channel(0);
        let (awake, woken) = watch::channel(0);
        let streams = Streams { client, discovery, types: changed, awake: woken };
        let kinds = Kinds::new(streams, types, inbox, settings.watched());
        let mapping = Mapping::start(api.clone(), kinds.hub());
        Manager {
            server: Server { api, lost: false, awake },
            events,
            settings: Arc::new(settings),
            sources: Arc::new(Sources::default()),
            queue: Queue::default(),
            kinds,
            workers: Workers::new(numbers),
            memories: HashMap::new(),
            saved: Saved::default(),
            told: Told::default(),
            loops: Loops::default(),
            missing_rights: HashMap::new(),
            checks: HashMap::new(),
            catching_up: CatchUps::default(),
            renders: Arc::default(),
            mapping,
        }
    }

    async fn notice(&self, level: Level, message: String, hint: Option<String>, object: Option<ObjectRef>) {
        self.events.emit(Event::Noticed(Notice { at: Timestamp::now(), level, message, hint, object })).await;
    }

    /// Takes a new set of sources: kinds come and go, objects of changed kinds are queued.
    async fn serve(&mut self, sources: Arc<Sources>) {
        let before = std::mem::replace(&mut self.sources, Arc::clone(&sources));
        for kind in self.kinds.serve(&sources) {
            self.queue.forget_kind(&kind);
            self.memories.retain(|key, _| kind_of(key) != kind);
        }
        for watch in &sources.watches {
            let limit = watch.max_concurrent.unwrap_or(self.settings.max_concurrent);
            let kind = (watch.gvk.group.clone(), watch.gvk.kind.clone());
            self.queue.limit(kind.clone(), limit);
            self.queue.gate.serves(&kind, watch.changed_in);
        }
        if before.number == 0 || sources.number <= before.number {
            return;
        }
        let kind = CauseKind::Reload { sources: sources.number, files: sources.files.clone() };
        for watch in &sources.watches {
            let is_it = |old: &Arc<Watch>| old.gvk.group_kind() == watch.gvk.group_kind();
            if !before.watches.iter().any(is_it) {
                self.saved.kinds.insert((watch.gvk.group.clone(), watch.gvk.kind.clone()), kind.clone());
            }
        }
        // Nothing that reconciles has changed, or the newest files are broken: there is nothing to wait for.
        if self.saved.reload.is_none()
            && !sources.watches.iter().any(|watch| watch.changed_in > before.number)
        {
            return;
        }
        let mut reload = Reload::begin(&sources, self.saved.reload.take());
        for watch in sources.watches.iter().filter(|watch| watch.changed_in > before.number) {
            for key in self.kinds.objects(&watch.gvk) {
                // A new reconciler may have no part in the old one's loop.
                self.queue.gate.let_go(&key);
                self.loops.forget(&key);
                let cause = Cause { at: Timestamp::now(), kind: kind.clone() };
                self.queue.add(&key, cause, Urgency::Now, None, Instant::now());
                self.stop_waiting(&key);
                // A paused object runs when the user says so, not when a file is saved.
                if !self.queue.gate.holds(&key) {
                    reload.wait_for(key);
                }
            }
        }
        self.saved.reload = Some(reload);
        self.settle().await;
    }

    async fn settle(&mut self) {
        if let Some(settled) = self.saved.reload.as_ref().and_then(Reload::settled) {
            self.saved.reload = None;
            self.events.emit(Event::ReloadSettled(settled)).await;
        }
    }

    /// Takes what a stream says.
    async fn hear(&mut self, message: Message) {
        let heard = self.kinds.hear(message).await;
        if let Some((problem, hint)) = heard.problem {
            self.notice(Level::Warn, problem, hint, None).await;
        }
        self.map(heard.maps).await;
        for Wake { key, kind, mark, gone, leaving, echo, listed } in heard.wakes {
            if listed && !self.has_begun(&key) {
                continue;
            }
            // Objects of a kind that came with a save are reconciled because of the save.
            let kind = match kind {
                CauseKind::Start => self.saved.kinds.get(&kind_of(&key)).cloned().unwrap_or(CauseKind::Start),
                kind => kind,
            };
            let own = mark.as_ref().is_some_and(|mark| self.server.api.echo.is_own(mark));
            if gone {
                self.queue.gate.forget(&key);
                self.loops.forget(&key);
            }
            if gone && own {
                self.forget(&key);
                continue;
            }
            if leaving {
                self.stop_waiting(&key);
            }
            let quiet = self.is_quiet(&key, &kind, echo);
            let kind = wakes::with_own_write(kind, own);
            let urgency = match &kind {
                _ if own && quiet => Urgency::Record,
                CauseKind::Watch { relation: Relation::Primary, .. }
                | CauseKind::Start
                | CauseKind::Reload { .. } => Urgency::Now,
                _ => Urgency::Wait,
            };
            // While a reconcile runs, the answer to its write may still be on its way: the mark is judged at
            // its end.
            let mark = mark.filter(|_| !own && self.queue.is_running(&key));
            let trace = mark.map(|mark| Trace { mark, quiet, listed });
            self.queue.add(&key, Cause { at: Timestamp::now(), kind }, urgency, trace, Instant::now());
        }
    }

    /// Returns true if a cause asks for nothing where it is an own write. A reconcile writes the status and
    /// the finalizers of its own object; a chart's writes of other objects are as it wants them, while a
    /// program is asked again once what it wanted is there, unless it goes round in a circle.
    fn is_quiet(&self, key: &ObjectKey, kind: &CauseKind, echo: bool) -> bool {
        let paused = || self.memories.get(key).is_some_and(opdev_release::memory::Memory::is_paused);
        match kind {
            CauseKind::Watch { relation: Relation::Primary, .. } => echo,
            // An object that a program, or the script beside a chart, has read may be one that another
            // reconcile has written.
            CauseKind::Watch { relation: Relation::Related, .. } => paused(),
            CauseKind::Watch { .. } => !self.kinds.is_typed(key) || paused(),
            CauseKind::Start
            | CauseKind::Reload { .. }
            | CauseKind::Period
            | CauseKind::Retry { .. }
            | CauseKind::Wait { .. }
            | CauseKind::User
            | CauseKind::Check => echo,
        }
    }

    /// Returns true if a reconcile of an object runs or has run.
    fn has_begun(&self, key: &ObjectKey) -> bool {
        self.queue.is_running(key) || self.memories.contains_key(key)
    }

    /// Ends a running reconcile's wait for a hook: what it waits for is not wanted any more.
    fn stop_waiting(&self, key: &ObjectKey) {
        self.workers.stop_waiting(key);
    }

    fn forget(&mut self, key: &ObjectKey) {
        self.queue.forget(key);
        if !self.queue.is_running(key) {
            self.kinds.forget(key);
            self.memories.remove(key);
        }
    }

    async fn carry_out(&mut self, request: ManagerRequest) {
        match request {
            ManagerRequest::ReconcileNow { object } => {
                for key in self.kinds.primaries(&object) {
                    let cause = Cause { at: Timestamp::now(), kind: CauseKind::User };
                    self.queue.add(&key, cause, Urgency::Now, None, Instant::now());
                }
            }
            // Whoever asked may have gone away meanwhile.
            ManagerRequest::Pause { scope, why, reply } => {
                let _ = reply.send(self.pause(scope, why).await);
            }
            ManagerRequest::Resume { scope, reply } => {
                let _ = reply.send(self.resume(scope));
            }
            ManagerRequest::Step { object, reply } => {
                let _ = reply.send(self.step(&object));
            }
            ManagerRequest::Check { object, reply } => self.check(&object, reply),
            ManagerRequest::CatchUp { objects, reply } => self.catching_up.add(objects, reply),
            ManagerRequest::ReconcileAll { why } => {
                let kinds: Vec<Gvk> = self.sources.watches.iter().map(|watch| watch.gvk.clone()).collect();
                for key in kinds.iter().flat_map(|gvk| self.kinds.objects(gvk)) {
                    let kind = CauseKind::Wait { why: why.clone() };
                    let cause = Cause { at: Timestamp::now(), kind };
                    self.queue.add(&key, cause, Urgency::Now, None, Instant::now());
                }
            }
            ManagerRequest::Connection { lost } => {
                self.server.lost = lost;
                if !lost {
                    self.server.awake.send_modify(|times| *times += 1);
                    self.queue.hurry(Instant::now());
                }
            }
            ManagerRequest::Stays { gvk, sources } => {
                self.queue.gate.decided(&(gvk.group, gvk.kind), sources);
            }
            ManagerRequest::Look { reply } => {
                let state = |watch: &Arc<Watch>| KindState {
                    gvk: watch.gvk.clone(),
                    waiting: self.queue.waiting(&(watch.gvk.group.clone(), watch.gvk.kind.clone())),
                    problem: self.kinds.problem(&watch.gvk),
                };
                let _ = reply.send(self.sources.watches.iter().map(state).collect());
            }
            ManagerRequest::Shadow { watch, reply } => {
                let objects = self.kinds.states(&watch.gvk);
                let key = ObjectKey {
                    group: watch.gvk.group.clone(),
                    kind: watch.gvk.kind.clone(),
                    ..ObjectKey::default()
                };
                let known = self.memories.iter().filter(|(of, _)| kind_of(of) == kind_of(&key));
                let trial = opdev_reconcile::dry_run::Trial {
                    kinds: self.kinds.children_of(&key),
                    watch,
                    objects,
                    api: self.server.api.clone(),
                    hub: self.kinds.hub(),
                    settings: Arc::clone(&self.settings),
                    memories: known.map(|(key, memory)| (key.clone(), memory.for_trial())).collect(),
                    ask: opdev_release::objects::dry_run::Ask::Server,
                    longest: TRIAL,
                };
                tokio::spawn(async move {
                    // Whoever asked may have saved again meanwhile.
                    let _ = reply.send(opdev_reconcile::dry_run::run(trial).await);
                });
            }
        }
    }

    /// Secrets that must not show in the facts of a reconcile that is about to begin.
    fn secrets_of(&self, key: &ObjectKey, watch: &Watch) -> Vec<String> {
        let object = self.kinds.object(key);
        let spec =
            object.as_deref().and_then(|object| object.get("spec")).map(mask::secrets).unwrap_or_default();
        let overrides =
            watch.chart().map(|chart| opdev_reconcile::override_secrets(chart)).unwrap_or_default();
        let before = self.memories.get(key).map(|memory| memory.secrets().to_vec()).unwrap_or_default();
        mask::known(spec.into_iter().chain(before).chain(overrides))
    }

    async fn tell_counts(&mut self) {
        let counts = self.queue.counts();
        if counts != self.told.counts {
            self.told.counts = counts.clone();
            self.events.emit(Event::QueueChanged(counts)).await;
        }
    }
}
