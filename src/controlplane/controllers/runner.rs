//! Runs the controllers on a registry: its changes in, their writes out, a clock for the timers, a graceful stop.
//! Never decides anything; `engine` does the work and the controllers do the thinking.

use super::engine::{Engine, Plane};
use super::view::{Change, View};
use super::write::{Refusal, Write};
use super::{Actor, Controller};
use crate::error::Status;
use crate::identity::User;
use crate::registry::Registry;
use crate::storage::{self, ChangeKind};
use serde_json::Value;
use std::sync::Arc;
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

/// After this many jobs in a row other tasks get a turn.
const TURN: u32 = 16;

impl Plane for Registry {
    fn write(&self, actor: Actor, write: &Write) -> Result<Arc<Value>, Refusal> {
        let groups: &[&str] = match actor.user {
            user if user.starts_with("system:node:") => &["system:nodes"],
            user if user.starts_with("system:serviceaccount:") => {
                &["system:serviceaccounts", "system:serviceaccounts:kube-system"]
            }
            _ => &[],
        };
        let user = User::authenticated(actor.user, groups.iter().copied());
        Registry::write(self, &user, actor.field_manager, write).map_err(|status| refusal(&status))
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
    let before = change.previous.as_ref().map(|stored| stored.value.clone());
    Change {
        resource: change.table.to_string(),
        before: if gone { before.or_else(|| Some(change.object.value.clone())) } else { before },
        after: (!gone).then(|| change.object.value.clone()),
    }
}

/// Everything there is, as if it had just come.
fn observe_all(engine: &mut Engine, registry: &Registry) {
    for info in registry.resources() {
        for object in registry.list(&info.resource, None) {
            let change = Change { resource: info.resource.clone(), before: None, after: Some(object) };
            engine.observe(registry, &change);
        }
    }
}

/// Runs until stopped. Each job is short; between a few of them other tasks get a turn.
pub async fn run(registry: Arc<Registry>, controllers: Vec<Box<dyn Controller>>, stop: CancellationToken) {
    let started = Instant::now();
    let mut engine = Engine::new(controllers);
    while !stop.is_cancelled() {
        let Ok(mut watch) = registry.store.watch_all(registry.store.revision()) else { continue };
        engine.forget();
        observe_all(&mut engine, &registry);
        work(&mut engine, &registry, &mut watch, started, &stop).await;
    }
}

/// One job; on a thread that may block where its writes may have to wait for webhooks.
async fn step(engine: &mut Engine, registry: &Arc<Registry>, started: Instant) -> bool {
    if !registry.waits_for_webhooks() {
        return engine.step(&**registry, registry.now(), started.elapsed());
    }
    let mut own = std::mem::replace(engine, Engine::new(Vec::new()));
    let registry = registry.clone();
    let job = tokio::task::spawn_blocking(move || {
        let worked = own.step(&*registry, registry.now(), started.elapsed());
        (own, worked)
    });
    match job.await {
        Ok((own, worked)) => {
            *engine = own;
            worked
        }
        Err(error) if error.is_panic() => std::panic::resume_unwind(error.into_panic()),
        // The runtime ends.
        Err(_) => false,
    }
}

/// Works until stopped, or until the history has moved past this reader.
async fn work(
    engine: &mut Engine,
    registry: &Arc<Registry>,
    watch: &mut storage::Watch,
    started: Instant,
    stop: &CancellationToken,
) {
    let mut jobs = 0u32;
    loop {
        let Ok(changes) = watch.ready() else { return };
        for found in changes {
            engine.observe(&**registry, &change(&found));
        }
        if stop.is_cancelled() {
            return;
        }
        if step(engine, registry, started).await {
            jobs = jobs.wrapping_add(1);
            if jobs.is_multiple_of(TURN) {
                tokio::task::yield_now().await;
            }
            continue;
        }
        let deadline = engine.next_deadline().map(|after| started + after);
        let timer = async {
            match deadline {
                Some(at) => sleep_until(at).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = stop.cancelled() => return,
            () = timer => {}
            found = watch.next() => {
                let Ok(changes) = found else { return };
                for found in changes {
                    engine.observe(&**registry, &change(&found));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests;
