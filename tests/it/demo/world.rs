//! A running opdev and a client beside it, as kubectl would be. Waits on what the cluster shows.

use super::outside::{Outside, gvk, reference};
use crate::inner_loop::Opdev;
use opdev_event::{Event, ObjectTask, Outcome, PodFailure, Reconcile, RequestOutcome};
use opdev_object::meta::{self, ObjectRef};
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;

/// opdev and somebody else's client.
pub(super) struct World {
    pub(super) opdev: Opdev,
    outside: Outside,
}

/// The world can do everything that a client beside opdev can do.
impl std::ops::Deref for World {
    type Target = Outside;

    fn deref(&self) -> &Outside {
        &self.outside
    }
}

impl World {
    pub(super) async fn start() -> World {
        let opdev = Opdev::start().await;
        let outside = Outside::new(&opdev.kubeconfig()).await;
        World { opdev, outside }
    }

    /// Applies a sample, as the `a` key does.
    pub(super) async fn apply(&mut self, path: &str) {
        let outcome = self.opdev.ask(ObjectTask::Apply { path: path.to_owned() }).await;
        assert!(matches!(outcome, RequestOutcome::Done { .. }), "{path}: {outcome:?}");
    }

    /// Sets replicas, as the `s` key does.
    pub(super) async fn scale(&mut self, kind: &str, name: &str, replicas: i32) {
        let outcome = self.opdev.ask(ObjectTask::Scale { object: reference(kind, name), replicas }).await;
        assert!(matches!(outcome, RequestOutcome::Done { .. }), "{name}: {outcome:?}");
    }

    /// Makes a pod fail or lets it recover, as the `!` key does.
    pub(super) async fn fail(&mut self, name: &str, how: Option<PodFailure>) {
        let outcome = self.opdev.ask(ObjectTask::FailPod { pod: reference("v1/Pod", name), how }).await;
        assert!(matches!(outcome, RequestOutcome::Done { .. }), "{name}: {outcome:?}");
    }

    /// Deletes, as the `D` key does.
    pub(super) async fn delete(&mut self, kind: &str, name: &str) {
        let object = reference(kind, name);
        let propagation = opdev_event::Propagation::Background;
        let outcome = self.opdev.ask(ObjectTask::Delete { object, propagation, grace: None }).await;
        assert!(matches!(outcome, RequestOutcome::Done { .. }), "{name}: {outcome:?}");
    }

    /// Waits until what opdev has seen of an object is as `pick` wants it; the object then.
    pub(super) async fn until(
        &self,
        kind: &str,
        name: &str,
        what: &str,
        pick: impl Fn(&Value) -> bool,
    ) -> Value {
        self.opdev
            .wait_for_state(&format!("{kind} {name}: {what}"), |events| {
                newest(events, kind, name).filter(|object| pick(object)).cloned()
            })
            .await
    }

    /// Waits until an object is gone.
    pub(super) async fn until_gone(&self, kind: &str, name: &str) {
        let gvk = gvk(kind);
        let ours = |of: &ObjectRef| of.gvk.group == gvk.group && of.gvk.kind == gvk.kind && of.name == name;
        self.opdev
            .wait_for_state(&format!("{kind} {name} to go"), |events| {
                events.iter().rev().find_map(|event| match event {
                    Event::ObjectSeen(seen) if ours(&seen.object_ref) => Some(None),
                    Event::ObjectGone(gone) if ours(&gone.object_ref) => Some(Some(())),
                    _ => None,
                })?
            })
            .await;
    }

    /// Waits until so many pods with this label live and run; their names.
    pub(super) async fn until_pods(&self, label: (&str, &str), count: usize) -> Vec<String> {
        let what = format!("{count} running pods with {}={}", label.0, label.1);
        self.opdev.wait_for_state(&what, |events| running(events, label, count)).await
    }

    /// The reconciles of an object since a mark.
    pub(super) fn passes(&self, mark: usize, name: &str) -> Vec<Arc<Reconcile>> {
        self.opdev
            .since(mark)
            .into_iter()
            .filter_map(|event| match event {
                Event::Reconciled(reconcile) if reconcile.object.name == name => Some(reconcile),
                _ => None,
            })
            .collect()
    }

    /// No reconcile of the object has failed.
    pub(super) fn none_failed(&self, name: &str) {
        for reconcile in self.passes(0, name) {
            assert!(reconcile.outcome != Outcome::Failed, "{name}: {:?}", reconcile.failure);
        }
    }
}

/// The names of the pods with a label, where there are so many and all of them live and run.
pub(super) fn running(events: &[Event], label: (&str, &str), count: usize) -> Option<Vec<String>> {
    let mut pods: BTreeMap<String, bool> = BTreeMap::new();
    for event in events {
        match event {
            Event::ObjectSeen(seen)
                if seen.object_ref.gvk.kind == "Pod"
                    && seen.object["metadata"]["labels"][label.0] == label.1 =>
            {
                let leaving = meta::deletion_timestamp(&seen.object).is_some();
                let runs = seen.object["status"]["phase"] == "Running";
                pods.insert(seen.object_ref.name.clone(), runs && !leaving);
            }
            Event::ObjectGone(gone) if gone.object_ref.gvk.kind == "Pod" => {
                pods.remove(&gone.object_ref.name);
            }
            _ => {}
        }
    }
    let all = pods.len() == count && pods.values().all(|runs| *runs);
    all.then(|| pods.into_keys().collect())
}

/// The last state of an object that was seen, unless it has gone.
pub(super) fn newest<'a>(events: &'a [Event], kind: &str, name: &str) -> Option<&'a Value> {
    let gvk = gvk(kind);
    let ours = |of: &ObjectRef| of.gvk.group == gvk.group && of.gvk.kind == gvk.kind && of.name == name;
    events
        .iter()
        .rev()
        .find_map(|event| match event {
            Event::ObjectSeen(seen) if ours(&seen.object_ref) => Some(Some(&*seen.object)),
            Event::ObjectGone(gone) if ours(&gone.object_ref) => Some(None),
            _ => None,
        })
        .flatten()
}
