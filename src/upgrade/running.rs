//! An operator of charts and scripts on a control plane, and when it is at rest: nothing waits for a reconcile, what failed
//! has failed in one way three times, all objects are ready, and nothing is written any more.

use super::calls::Writes;
use super::plane::{LOOK, Plane};
use crate::event::{Event, LoopFound, QueueChanged, Reconcile};
use crate::operator::manager::{self, KindState, ManagerInput, ManagerRequest, OnSave, Settings};
use crate::sources::Sources;
use crate::tap::{EventSink, PassNumbers};
use opdev_object::meta::{ObjectKey, ObjectRef};
use opdev_types::readiness;
use std::collections::BTreeMap;
use std::sync::Arc;
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
/// Without a write for so long, where all objects are ready.
const CALM: Duration = Duration::from_millis(60);
/// How long the streams of the operator may take to show what there is.
const CATCH_UP: Duration = Duration::from_secs(2);

/// What is known of an operator from its events.
#[derive(Clone, Debug, Default)]
struct Heard {
    queue: QueueChanged,
    /// The last reconcile of each object.
    last: BTreeMap<ObjectKey, Arc<Reconcile>>,
    loops: Vec<Arc<LoopFound>>,
}

/// An operator that runs.
pub(super) struct Running {
    asks: mpsc::Sender<ManagerRequest>,
    heard: watch::Receiver<Heard>,
    stop: CancellationToken,
    task: AbortOnDropHandle<anyhow::Result<()>>,
    _publish: watch::Sender<Arc<Sources>>,
    _listening: AbortOnDropHandle<()>,
}

/// How an operator came to rest.
#[derive(Clone, Debug, Default)]
pub(super) struct Rest {
    /// The objects whose reconcile fails, each with the last one.
    pub(super) failing: BTreeMap<ObjectKey, Arc<Reconcile>>,
    pub(super) loops: Vec<Arc<LoopFound>>,
    /// Kinds that are not served, with the reason.
    pub(super) unserved: Vec<KindState>,
    /// Why it never came to rest.
    pub(super) restless: Option<String>,
}

impl Running {
    /// Starts an operator; its writes are recorded.
    pub(super) fn start(
        plane: &Plane,
        sources: &Arc<Sources>,
        settings: &Settings,
        writes: &Writes,
    ) -> Running {
        let (events, facts) = EventSink::channel(EVENTS);
        let (asks, requests) = mpsc::channel(64);
        let (publish, sources) = watch::channel(Arc::clone(sources));
        let stop = CancellationToken::new();
        let (tell, heard) = watch::channel(Heard::default());
        let manager = manager::run(ManagerInput {
            client: plane.operators(writes),
            sources,
            events,
            numbers: PassNumbers::default(),
            requests,
            // A new version of a chart is a new revision, as in production.
            settings: Settings { on_save: OnSave::Upgrade, ..settings.clone() },
            shutdown: stop.clone(),
        });
        Running {
            asks,
            heard,
            stop,
            task: AbortOnDropHandle::new(tokio::spawn(manager)),
            _publish: publish,
            _listening: AbortOnDropHandle::new(tokio::spawn(listen(facts, tell))),
        }
    }

    /// Stops it in good order.
    pub(super) async fn stop(self) {
        self.stop.cancel();
        // One that tripped over a bug has told so in the log.
        let _ = self.task.await;
    }

    /// Waits until it is at rest, or until `limit` is over.
    pub(super) async fn rest(&self, plane: &Plane, limit: Duration) -> Rest {
        let deadline = Instant::now() + limit;
        let mut nudged: BTreeMap<ObjectKey, u32> = BTreeMap::new();
        let mut revision = None;
        let mut since = Instant::now();
        let mut waits = "objects are not ready".to_owned();
        while Instant::now() < deadline {
            let now = plane.revision().await;
            let idle = self.idle(&mut nudged).await;
            if now != revision || !idle {
                (revision, since) = (now, Instant::now());
                if !idle {
                    "reconciles go on".clone_into(&mut waits);
                }
            } else if since.elapsed() >= CALM && self.caught_up(plane).await {
                let unready = unready(plane).await;
                if unready.is_none() || since.elapsed() >= QUIET {
                    return self.at_rest(None).await;
                }
                waits = unready.unwrap_or_default();
            }
            tokio::time::sleep(LOOK).await;
        }
        self.at_rest(Some(waits)).await
    }

    async fn at_rest(&self, restless: Option<String>) -> Rest {
        let (reply, answer) = oneshot::channel();
        let kinds = match self.asks.send(ManagerRequest::Look { reply }).await {
            Ok(()) => answer.await.unwrap_or_default(),
            Err(_) => Vec::new(),
        };
        let heard = self.heard.borrow().clone();
        let fails = |(key, pass): (ObjectKey, Arc<Reconcile>)| pass.failure.is_some().then_some((key, pass));
        Rest {
            failing: heard.last.into_iter().filter_map(fails).collect(),
            loops: heard.loops,
            unserved: kinds.into_iter().filter(|kind| kind.problem.is_some()).collect(),
            restless,
        }
    }

    /// Whether nothing is left to reconcile. What has failed is tried again at once, so that nobody waits for its pause.
    async fn idle(&self, nudged: &mut BTreeMap<ObjectKey, u32>) -> bool {
        let heard = self.heard.borrow().clone();
        if heard.queue.waiting + heard.queue.running > 0 {
            return false;
        }
        let mut idle = true;
        for (key, pass) in &heard.last {
            let Some(attempt) = pass.failure.as_ref().map(|failure| failure.attempt) else { continue };
            if attempt >= TRIES {
                continue;
            }
            idle = false;
            if nudged.insert(key.clone(), attempt) != Some(attempt) {
                let object: ObjectRef = pass.object.clone();
                // An operator that has ended reconciles nothing more.
                let _ = self.asks.send(ManagerRequest::ReconcileNow { object }).await;
            }
        }
        idle
    }

    /// Whether its streams have shown all that there is, and it has nothing to do because of it.
    async fn caught_up(&self, plane: &Plane) -> bool {
        let Ok(snapshot) = plane.snapshot().await else { return false };
        let (reply, answer) = oneshot::channel();
        let asked = self.asks.send(ManagerRequest::CatchUp { objects: snapshot.all(), reply }).await;
        if asked.is_err() || tokio::time::timeout(CATCH_UP, answer).await.is_err() {
            return asked.is_err();
        }
        let heard = self.heard.borrow();
        heard.queue.waiting + heard.queue.running == 0
    }
}

/// An object that is not ready, in words.
async fn unready(plane: &Plane) -> Option<String> {
    let snapshot = plane.snapshot().await.ok()?;
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
    let mut waiting = snapshot.0.iter().filter(|(key, object)| {
        let going = opdev_object::meta::deletion_timestamp(object).is_some();
        going || waits(key) && !readiness::ready(object)
    });
    waiting.next().map(|(key, _)| format!("{key} is not ready"))
}

async fn listen(mut facts: mpsc::Receiver<Event>, tell: watch::Sender<Heard>) {
    while let Some(event) = facts.recv().await {
        tell.send_if_modified(|heard| match event {
            Event::QueueChanged(counts) => {
                heard.queue = counts;
                true
            }
            Event::Reconciled(pass) => {
                heard.last.insert(pass.object.key(), pass);
                true
            }
            Event::LoopFound(found) => {
                heard.loops.push(found);
                true
            }
            _ => false,
        });
    }
}
