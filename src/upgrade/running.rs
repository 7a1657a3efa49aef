//! An operator on a control plane, and when it is settled. Charts and scripts: nothing waits for a reconcile, and what failed
//! has failed in one way three times. Programs: they run, and ask for nothing any more. Of both: all objects are ready, and
//! nothing is written.

use super::calls::Writes;
use super::end::End;
use super::plane::{LOOK, Plane};
use super::snapshot::Snapshot;
use anyhow::Result;
use opdev_event::sink::EventSink;
use opdev_event::sink::ReconcileNumbers;
use opdev_event::{BuildState, Event, LoopFound, ProcessState, QueueChanged, Reconcile, words};
use opdev_object::meta::{self, ObjectKey, ObjectRef};
use opdev_operator::manager;
use opdev_operator::manager::{KindState, ManagerInput, ManagerRequest};
use opdev_program::audit::webhooks_of;
use opdev_program::rehearsal::{Cast, Started};
use opdev_project::trust::Trust;
use opdev_release::settings::Settings;
use opdev_script::readiness;
use opdev_sources::Sources;
use opdev_sources::on_save::OnSave;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::{mpsc, oneshot, watch};
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

/// Events that wait before the operator does.
const EVENTS: usize = 4_096;
/// How often a reconcile fails in one way before nobody tries it again.
const TRIES: u32 = 3;
/// After so long without a write nothing is expected any more, though some object is not ready.
const QUIET: Duration = Duration::from_millis(1500);
/// The quiet time of programs: what waits for a workload is asked for later.
const QUIET_OF_PROGRAMS: Duration = Duration::from_secs(3);
/// The quiet time where an object is being deleted: somebody still has to take its finalizer off.
const QUIET_DELETION: Duration = Duration::from_secs(8);
/// Without a write for so long, where all objects are ready.
const CALM: Duration = Duration::from_millis(60);
/// The quiet time where programs run, whose queues nobody sees.
const CALM_OF_PROGRAMS: Duration = Duration::from_millis(1200);
/// How often programs are asked for the reconciles that they want later.
const ROUNDS: u32 = 4;
/// Later than this, and nothing of the upgrade waits for it.
const LATER: Duration = Duration::from_secs(120);
/// How long the streams of the operator may take to show what there is.
const CATCH_UP: Duration = Duration::from_secs(2);
/// How long nothing may be news before webhooks are given up that nobody deploys, or that this version has
/// not served before.
const SERVE_QUIET: Duration = Duration::from_secs(4);
/// How long a program may take until it is built and runs.
const BUILD: Duration = Duration::from_secs(900);

/// The known facts about an operator from its events.
#[derive(Clone, Debug, Default)]
struct Heard {
    queue: QueueChanged,
    /// The last reconcile of each object.
    last: BTreeMap<ObjectKey, Arc<Reconcile>>,
    loops: Vec<Arc<LoopFound>>,
    programs: BTreeMap<String, ProcessState>,
    /// Why a program cannot be built.
    broken: Option<String>,
    /// How long builds have taken.
    building: Duration,
    /// The state of its webhooks: they are reached, or the reason why not.
    webhooks: Option<Result<(), String>>,
}

impl Heard {
    /// Returns true if a program cannot be built, or does not run any more.
    fn has_ended(&self) -> bool {
        let is_over = |state: &ProcessState| {
            !matches!(state, ProcessState::Waiting { .. } | ProcessState::Running { .. })
        };
        self.broken.is_some() || self.programs.values().any(is_over)
    }
}

/// How an operator runs.
#[derive(Clone, Copy)]
pub(super) struct How<'a> {
    pub(super) settings: &'a Settings,
    pub(super) trust: &'a Trust,
    /// The folder for what is built.
    pub(super) folder: &'a Path,
    /// How long it may take to settle, and to serve its webhooks.
    pub(super) limit: Duration,
    /// The versions that were found not to serve their webhooks.
    pub(super) mute: &'a Mute,
}

/// Versions, each by its folder, that deploy webhooks and did not serve them within the limit. Nobody waits
/// so long a second time. Clones share them.
#[derive(Clone, Debug, Default)]
pub(super) struct Mute(Arc<Mutex<BTreeSet<PathBuf>>>);

impl Mute {
    fn known(&self, root: &Path) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).contains(root)
    }

    fn note(&self, root: &Path) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(root.to_owned());
    }
}

/// An operator that runs.
pub(super) struct Running {
    /// Reconciles by charts and scripts.
    reconcilers: Reconcilers,
    programs: Option<Started>,
    heard: watch::Receiver<Heard>,
    sources: watch::Sender<Arc<Sources>>,
    _listening: AbortOnDropHandle<()>,
}

struct Reconcilers {
    asks: mpsc::Sender<ManagerRequest>,
    stop: CancellationToken,
    task: AbortOnDropHandle<Result<()>>,
}

/// The last look at all objects. To list them takes longer than all else that is asked while an operator
/// settles.
#[derive(Debug, Default)]
struct LastLook {
    /// The revision of the newest write before it.
    revision: Option<String>,
    /// An object that is not ready, in words, and how long it is waited for.
    unready: Option<(String, Duration)>,
}

/// How an operator settled.
#[derive(Clone, Debug, Default)]
pub(super) struct Rest {
    /// The objects whose reconcile fails, each with the last one.
    pub(super) failing: BTreeMap<ObjectKey, Arc<Reconcile>>,
    pub(super) loops: Vec<Arc<LoopFound>>,
    /// Kinds that are not served, with the reason.
    pub(super) unserved: Vec<KindState>,
    /// Why it never settled.
    pub(super) restless: Option<String>,
    /// Programs that do not run, each with its last words.
    pub(super) ended: Vec<(String, String)>,
    /// Why webhooks that the project's files have are not reached.
    pub(super) unserved_webhooks: Option<String>,
}

impl Running {
    /// Starts an operator; its writes are recorded.
    ///
    /// # Errors
    /// Where nothing can be built.
    pub(super) async fn start(plane: &Plane, end: &End, how: How<'_>, writes: &Writes) -> Result<Running> {
        let (events, facts) = EventSink::channel(EVENTS);
        let (asks, requests) = mpsc::channel(64);
        let (publish, sources) = watch::channel(Arc::clone(&end.sources));
        let stop = CancellationToken::new();
        let (tell, heard) = watch::channel(Heard::default());
        let listening = AbortOnDropHandle::new(tokio::spawn(listen(facts, tell)));
        let programs = match plane.stage().filter(|_| end.has_program()) {
            Some((stage, _)) => {
                let cast = Cast {
                    project: &end.project,
                    folder: how.folder,
                    trust: how.trust,
                    sources: &sources,
                    events: &events,
                };
                Some(stage.start(&cast).await?)
            }
            None => None,
        };
        let manager = manager::run(ManagerInput {
            client: plane.operators(writes),
            sources,
            events,
            numbers: ReconcileNumbers::default(),
            requests,
            // A new version of a chart is a new revision, as in production.
            settings: Settings { on_save: OnSave::Upgrade, ..how.settings.clone() },
            shutdown: stop.clone(),
        });
        let task = AbortOnDropHandle::new(tokio::spawn(manager));
        let running = Running {
            reconcilers: Reconcilers { asks, stop, task },
            programs,
            heard,
            sources: publish,
            _listening: listening,
        };
        running.programs_run(plane, end, how).await;
        Ok(running)
    }

    /// Waits until all programs have asked for something, or will never do.
    async fn programs_run(&self, plane: &Plane, end: &End, how: How<'_>) {
        let Some((_, writes)) = plane.stage().filter(|_| self.programs.is_some()) else { return };
        let deadline = Instant::now() + BUILD;
        let before = writes.calls();
        while Instant::now() < deadline {
            let heard = self.heard.borrow().clone();
            let runs = |state: &ProcessState| matches!(state, ProcessState::Running { .. });
            let called = writes.calls() > before;
            if heard.has_ended() {
                return;
            }
            if called && !heard.programs.is_empty() && heard.programs.values().all(runs) {
                return self.webhooks_served(writes, end, how).await;
            }
            tokio::time::sleep(LOOK).await;
        }
    }

    /// Waits until the webhooks of its programs are reached, or a program has ended. A program may take as
    /// long for it as for anything else; where they are part of no deployment, nobody waits for one that asks
    /// for nothing any more.
    async fn webhooks_served(&self, writes: &Writes, end: &End, how: How<'_>) {
        let Some(programs) = self.programs.as_ref().filter(|programs| programs.serve_webhooks()) else {
            return;
        };
        let root = &end.project.root;
        let patient = programs.deploys_webhooks() && !how.mute.known(root);
        let deadline = Instant::now() + how.limit;
        let (mut news, mut since) = (writes.news(), Instant::now());
        while self.heard.borrow().webhooks.is_none() && !self.heard.borrow().has_ended() {
            if Instant::now() >= deadline {
                // It is told by `unserved_webhooks`.
                return how.mute.note(root);
            }
            match writes.news() {
                now if now != news => (news, since) = (now, Instant::now()),
                _ if !patient && since.elapsed() > SERVE_QUIET => return,
                _ => {}
            }
            tokio::time::sleep(LOOK).await;
        }
    }

    /// Why webhooks that the project's files have are not reached.
    fn unserved_webhooks(&self) -> Option<String> {
        let programs = self.programs.as_ref()?;
        match &self.heard.borrow().webhooks {
            Some(Ok(())) => None,
            Some(Err(why)) => Some(why.clone()),
            None => {
                programs.deploys_webhooks().then(|| "the program does not listen at their port".to_owned())
            }
        }
    }

    /// Stops it in good order. The answer is how long its builds took.
    pub(super) async fn stop(self) -> Duration {
        let building = self.heard.borrow().building;
        if let Some(programs) = self.programs {
            programs.end().await;
        }
        self.reconcilers.stop.cancel();
        // One that tripped over a bug has told so in the log.
        let _ = self.reconcilers.task.await;
        building
    }

    /// Waits until it is settled, or until `limit` is over.
    pub(super) async fn rest(&self, plane: &Plane, limit: Duration) -> Rest {
        let begun = Instant::now();
        let deadline = begun + limit;
        let calm = if self.programs.is_some() { CALM_OF_PROGRAMS } else { CALM };
        let mut nudged: BTreeMap<ObjectKey, u32> = BTreeMap::new();
        let (mut activity, mut rounds, mut asked) = (None, 0, false);
        let (mut quiet, mut looked) = (Duration::ZERO, Instant::now());
        let mut waits = "objects are not ready".to_owned();
        let mut seen = LastLook::default();
        while Instant::now() < deadline && self.ended().is_empty() {
            let now = self.activity(plane).await;
            let idle = self.idle(&mut nudged).await;
            // A machine that is late for this is late for the operator, too.
            quiet += looked.elapsed().min(LOOK * 4);
            looked = Instant::now();
            if activity.as_ref() != Some(&now) || !idle {
                (activity, quiet, asked) = (Some(now), Duration::ZERO, false);
                if !idle {
                    "reconciles go on".clone_into(&mut waits);
                }
            } else if quiet >= calm && !asked && rounds < ROUNDS && self.asks_for_later() {
                (quiet, asked, rounds) = (Duration::ZERO, true, rounds + 1);
            } else if quiet >= calm && self.look(plane, &mut seen).await {
                let Some((why, patience)) = seen.unready.clone() else {
                    return self.at_rest(None, begun).await;
                };
                if quiet >= patience && waits == why {
                    return self.at_rest(None, begun).await;
                }
                if waits != why {
                    (quiet, waits) = (Duration::ZERO, why);
                }
            }
            tokio::time::sleep(LOOK).await;
        }
        let restless = self.ended().is_empty().then_some(waits);
        self.at_rest(restless, begun).await
    }

    /// Asks programs for the reconciles that they want later, so that nobody waits for those. Returns true if
    /// there are any.
    fn asks_for_later(&self) -> bool {
        let Some(programs) = &self.programs else { return false };
        let heard = self.heard.borrow().clone();
        let sources = Arc::clone(&self.sources.borrow());
        let mut any = false;
        for reconcile in heard.last.values() {
            let wants = reconcile.requeue.as_ref().is_some_and(|requeue| requeue.after <= LATER);
            if let Some(trace) = reconcile.process.as_ref().filter(|_| wants) {
                programs.ask(&trace.controller, &reconcile.object, &sources);
                any = true;
            }
        }
        any
    }

    /// It changes with all that happens. A program that keeps a Lease writes for ever.
    async fn activity(&self, plane: &Plane) -> (u64, Option<String>) {
        match plane.stage().filter(|_| self.programs.is_some()) {
            Some((_, writes)) => (writes.news(), None),
            None => (0, plane.revision().await),
        }
    }

    /// Programs that do not run, each with the reason.
    fn ended(&self) -> Vec<(String, String)> {
        let heard = self.heard.borrow();
        let mut found: Vec<(String, String)> = heard
            .broken
            .iter()
            .map(|why| ("the program".to_owned(), format!("cannot be built: {why}")))
            .collect();
        for (program, state) in &heard.programs {
            let exit = match state {
                ProcessState::Waiting { .. } | ProcessState::Running { .. } => continue,
                ProcessState::Restarting { exit, .. }
                | ProcessState::Failed { exit }
                | ProcessState::Ended { exit } => exit,
            };
            found.push((program.clone(), words::one_line(&words::exit(exit))));
        }
        found
    }

    async fn at_rest(&self, restless: Option<String>, begun: Instant) -> Rest {
        tracing::debug!(took = ?begun.elapsed(), restless, "the operator is left alone");
        let (reply, answer) = oneshot::channel();
        let kinds = match self.reconcilers.asks.send(ManagerRequest::Look { reply }).await {
            Ok(()) => answer.await.unwrap_or_default(),
            Err(_) => Vec::new(),
        };
        let heard = self.heard.borrow().clone();
        let fails = |(key, reconcile): (ObjectKey, Arc<Reconcile>)| {
            reconcile.failure.is_some().then_some((key, reconcile))
        };
        Rest {
            failing: heard.last.into_iter().filter_map(fails).collect(),
            loops: heard.loops,
            unserved: kinds.into_iter().filter(|kind| kind.problem.is_some()).collect(),
            restless,
            ended: self.ended(),
            unserved_webhooks: self.unserved_webhooks(),
        }
    }

    /// Returns true if nothing is left to reconcile. What has failed is tried again at once, so that nobody
    /// waits for its pause.
    async fn idle(&self, nudged: &mut BTreeMap<ObjectKey, u32>) -> bool {
        let heard = self.heard.borrow().clone();
        if heard.queue.waiting + heard.queue.running > 0 {
            return false;
        }
        let mut idle = true;
        // A program tries again by itself.
        for (key, reconcile) in heard.last.iter().filter(|(_, reconcile)| reconcile.process.is_none()) {
            let Some(attempt) = reconcile.failure.as_ref().map(|failure| failure.attempt) else { continue };
            if attempt >= TRIES {
                continue;
            }
            idle = false;
            if nudged.insert(key.clone(), attempt) != Some(attempt) {
                let object: ObjectRef = reconcile.object.clone();
                // An operator that has ended reconciles nothing more.
                let _ = self.reconcilers.asks.send(ManagerRequest::ReconcileNow { object }).await;
            }
        }
        idle
    }

    /// Looks at all objects, unless nothing was written since the last look. Returns true if the operator's
    /// streams have shown them, and it has nothing to do because of them.
    async fn look(&self, plane: &Plane, seen: &mut LastLook) -> bool {
        let revision = plane.revision().await;
        if revision.is_some() && seen.revision == revision {
            return true;
        }
        let Ok(snapshot) = plane.snapshot().await else { return false };
        let is_current = self.caught_up(&snapshot).await;
        if is_current {
            *seen = LastLook { revision, unready: self.unready(&snapshot) };
        }
        is_current
    }

    /// An object that is not ready, in words, and how long it is waited for.
    fn unready(&self, snapshot: &Snapshot) -> Option<(String, Duration)> {
        let waits = |key: &ObjectKey| {
            matches!(
                key.kind.as_str(),
                "Pod"
                    | "Deployment"
                    | "StatefulSet"
                    | "DaemonSet"
                    | "ReplicaSet"
                    | "Job"
                    | "PersistentVolumeClaim"
            )
        };
        let is_going = |object: &Value| meta::deletion_timestamp(object).is_some();
        if let Some((key, _)) = snapshot.0.iter().find(|(_, object)| is_going(object)) {
            return Some((format!("{key} is being deleted"), QUIET_DELETION));
        }
        let waiting: Vec<_> =
            snapshot.0.iter().filter(|(key, object)| waits(key) && !readiness::ready(object)).collect();
        let patience = if self.programs.is_some() { QUIET_OF_PROGRAMS } else { QUIET };
        let why = match waiting.as_slice() {
            [] => return None,
            [(key, _)] => format!("{key} is not ready"),
            [(key, _), others @ ..] => format!("{key} and {} more are not ready", others.len()),
        };
        Some((why, patience))
    }

    /// Returns true if its streams have shown all that there is, and it has nothing to do because of it.
    async fn caught_up(&self, snapshot: &Snapshot) -> bool {
        let (reply, answer) = oneshot::channel();
        let asked =
            self.reconcilers.asks.send(ManagerRequest::CatchUp { objects: snapshot.all(), reply }).await;
        if asked.is_err() || tokio::time::timeout(CATCH_UP, answer).await.is_err() {
            return asked.is_err();
        }
        let heard = self.heard.borrow();
        heard.queue.waiting + heard.queue.running == 0
    }
}

async fn listen(mut facts: mpsc::Receiver<Event>, tell: watch::Sender<Heard>) {
    while let Some(event) = facts.recv().await {
        tell.send_if_modified(|heard| hear(heard, event));
    }
}

/// Returns true if the event says something.
fn hear(heard: &mut Heard, event: Event) -> bool {
    match event {
        Event::QueueChanged(counts) => heard.queue = counts,
        Event::Reconciled(reconcile) => {
            heard.last.insert(reconcile.object.key(), reconcile);
        }
        Event::LoopFound(found) => heard.loops.push(found),
        Event::Noticed(notice) => match webhooks_of(&notice) {
            None => return false,
            said => heard.webhooks = said,
        },
        Event::ProcessChanged(changed) => {
            heard.programs.insert(changed.program.clone(), changed.state.clone());
        }
        Event::ReloadFailed(failed) => {
            let told: Vec<String> = failed.diagnostics.iter().take(3).map(words::diagnostic).collect();
            heard.broken = Some(told.join("; "));
        }
        Event::BuildChanged(changed) => match changed.state {
            BuildState::Building => return false,
            BuildState::Built { took } => {
                heard.broken = None;
                heard.building += took;
            }
            BuildState::Broken { .. } => {
                let _ = heard.broken.get_or_insert_with(|| changed.build.clone());
            }
        },
        _ => return false,
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use opdev_project::trust::Store;
    use serde_json::json;

    #[tokio::test(flavor = "multi_thread")]
    async fn objects_are_listed_again_only_once_something_was_written() {
        let trust = Trust::of(Path::new("/"), Store::none());
        let plane = Plane::start(&trust).await.unwrap();
        let claim = json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "waits"},
            "spec": {"accessModes": ["ReadWriteOnce"], "storageClassName": "nobodys",
                "resources": {"requests": {"storage": "1Gi"}}}});
        plane.apply(&claim, "default", super::super::plane::How::default()).await.unwrap();
        let (asks, mut requests) = mpsc::channel(64);
        let manager = async move {
            let mut looks = 0;
            while let Some(request) = requests.recv().await {
                match request {
                    ManagerRequest::CatchUp { reply, .. } => {
                        looks += 1;
                        let _ = reply.send(());
                    }
                    ManagerRequest::Look { reply } => {
                        let _ = reply.send(Vec::new());
                    }
                    _ => {}
                }
            }
            assert!((1..20).contains(&looks), "{looks} looks at a plane where nothing happens");
            Ok(())
        };
        let (_tell, heard) = watch::channel(Heard::default());
        let running = Running {
            reconcilers: Reconcilers {
                asks,
                stop: CancellationToken::new(),
                task: AbortOnDropHandle::new(tokio::spawn(manager)),
            },
            programs: None,
            heard,
            sources: watch::Sender::new(Arc::default()),
            _listening: AbortOnDropHandle::new(tokio::spawn(async {})),
        };
        let rest = running.rest(&plane, Duration::from_secs(60)).await;
        assert!(rest.restless.is_none(), "{rest:?}");
        let Running { reconcilers: Reconcilers { asks, task, .. }, .. } = running;
        drop(asks);
        task.await.unwrap().unwrap();
        plane.stop().await;
    }
}
