//! Runs the controllers on a registry: its changes in, their writes out, a clock for the timers, a graceful
//! stop. Never decides anything; `engine` does the work and the controllers do the thinking. While there are
//! webhooks a job may have to wait for one: then jobs run on threads that may block, several of each
//! controller at once, so that a webhook that does not answer delays only those that have to ask it.

use opdev_apimachinery::blocking;
use opdev_apimachinery::error::Status;
use opdev_apimachinery::identity::User;
use opdev_apimachinery::lanes::Job;
use opdev_apimachinery::watchdog;
use opdev_controllers::SignToken;
use opdev_controllers::contract::{Actor, Change, Controller, Observed, Refusal, View, Write};
use opdev_controllers::engine::{Engine, Plane};
use opdev_handlers::tokens::Tokens;
use opdev_registry::Registry;
use opdev_storage::{self as storage, ChangeKind, Stored};
use serde_json::Value;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

/// After this many jobs in a row other tasks get a turn: passes of the operator, mostly, for which somebody
/// waits.
const TURN: u32 = 4;
/// Jobs of one controller that may wait for webhooks at once, as upstream's controllers have workers.
const AT_ONCE: usize = 5;

/// A registry as the engine sees it.
struct RegistryPlane<'a>(&'a Registry);

impl Plane for RegistryPlane<'_> {
    fn view(&self) -> &dyn View {
        self.0
    }

    fn write(&self, actor: Actor, write: &Write) -> Result<Arc<Value>, Refusal> {
        let groups: &[&str] = match actor.user {
            user if user.starts_with("system:node:") => &["system:nodes"],
            user if user.starts_with("system:serviceaccount:") => {
                &["system:serviceaccounts", "system:serviceaccounts:kube-system"]
            }
            _ => &[],
        };
        let user = User::authenticated(actor.user, groups.iter().copied());
        self.0.write(&user, actor.field_manager, write).map_err(|status| refusal(&status))
    }
}

fn refusal(status: &Status) -> Refusal {
    Refusal {
        code: status.code,
        reason: status.reason.to_owned(),
        message: status.message.clone(),
        namespace_terminating: status.causes.iter().any(|cause| cause.reason == "NamespaceTerminating"),
    }
}

fn change(change: &storage::Change) -> Change {
    let gone = change.kind == ChangeKind::Deleted;
    let seen = |object: &Arc<Stored>| Observed::new(object.clone());
    let before = change.previous.as_ref().map(seen);
    Change {
        resource: change.table.to_string(),
        before: if gone { before.or_else(|| Some(seen(&change.object))) } else { before },
        after: (!gone).then(|| seen(&change.object)),
    }
}

/// Signs the tokens of Secrets with the key of the plane.
pub(crate) fn signing(tokens: &Arc<Tokens>) -> SignToken {
    let tokens = tokens.clone();
    Box::new(move |account, secret| tokens.issue_legacy(account, secret))
}

/// Everything there is, as if it had just come.
fn observe_all(engine: &Engine, registry: &Registry) {
    for info in registry.resources() {
        // The objects are read one at a time: their trees together take many times the size of the store.
        for object in registry.stored(&info.resource, None) {
            let after = Some(Observed::new(object));
            let change = Change { resource: info.resource.clone(), before: None, after };
            engine.observe(&RegistryPlane(registry), &change);
        }
    }
}

/// A timer that fires later than this keeps nobody waiting for the controllers.
const SOON: Duration = Duration::from_secs(2);

/// The progress of the controllers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Rest {
    /// True if there has been nothing left to do at least once.
    pub reached: bool,
    /// The revision that all of them have seen with nothing left to do now or soon.
    pub revision: Option<u64>,
}

/// Runs until stopped. Each job is short; between a few of them other tasks get a turn. `at_rest` says once
/// there has been nothing left to do, and whether that is so now.
pub(crate) async fn run(
    registry: Arc<Registry>,
    controllers: Vec<Box<dyn Controller>>,
    at_rest: watch::Sender<Rest>,
    stop: CancellationToken,
) {
    let engine = Arc::new(Engine::new(controllers));
    let runner = Runner { engine, registry, at_rest, started: Instant::now(), stop };
    let mut waiting = JoinSet::new();
    while !runner.stop.is_cancelled() {
        let store = &runner.registry.store;
        let Ok(mut watch) = store.watch_all(store.revision()) else { continue };
        runner.engine.forget();
        observe_all(&runner.engine, &runner.registry);
        runner.work(&mut watch, &mut waiting).await;
    }
    // Syncs that have begun are finished, as long as there is time for it.
    while waiting.join_next().await.is_some() {}
}

/// The engine with what it works on.
struct Runner {
    engine: Arc<Engine>,
    registry: Arc<Registry>,
    at_rest: watch::Sender<Rest>,
    started: Instant,
    stop: CancellationToken,
}

impl Runner {
    fn observe(&self, changes: &[Arc<storage::Change>]) {
        changes.iter().for_each(|found| self.engine.observe(&RegistryPlane(&self.registry), &change(found)));
    }

    /// Does a job: here, or on a thread that may block where its writes may have to wait for webhooks.
    fn perform(&self, job: Job, waiting: &mut JoinSet<()>) {
        let (engine, registry, started) = (self.engine.clone(), self.registry.clone(), self.started);
        let what: Arc<str> = engine.named(&job).into();
        let work = move || {
            let _busy = watchdog::busy(&what);
            engine.perform(&RegistryPlane(&registry), &job, &|| (registry.now(), started.elapsed()));
        };
        if self.registry.waits_for_webhooks() {
            waiting.spawn_blocking(blocking::waiter(work));
        } else {
            work();
        }
    }

    /// Works until stopped, or until the history has moved past this reader.
    async fn work(&self, watch: &mut storage::Watch, waiting: &mut JoinSet<()>) {
        let mut jobs = 0u32;
        loop {
            let Ok(changes) = watch.ready() else { return };
            self.observe(&changes);
            if self.stop.is_cancelled() {
                return;
            }
            while waiting.try_join_next().is_some() {}
            if let Some(job) = self.engine.take(self.started.elapsed(), AT_ONCE) {
                self.at_rest.send_if_modified(|rest| rest.revision.take().is_some());
                self.perform(job, waiting);
                jobs = jobs.wrapping_add(1);
                if jobs.is_multiple_of(TURN) {
                    tokio::task::yield_now().await;
                }
                continue;
            }
            let deadline = self.engine.next_deadline().map(|after| self.started + after);
            if waiting.is_empty() {
                let soon = deadline.is_some_and(|at| at < Instant::now() + SOON);
                let now = Rest { reached: true, revision: (!soon).then(|| watch.position()) };
                self.at_rest.send_if_modified(|rest| std::mem::replace(rest, now) != now);
            }
            let timer = async {
                match deadline {
                    Some(at) => sleep_until(at).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                () = self.stop.cancelled() => return,
                () = timer => {}
                // A job that is over may have left something to do, and makes room for another.
                Some(_) = waiting.join_next() => {}
                found = watch.next() => {
                    let Ok(changes) = found else { return };
                    self.observe(&changes);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests;
