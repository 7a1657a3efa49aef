//! Deployments: rollouts over ReplicaSets, revisions, and the conditions that `kubectl rollout status` reads.
//! Never touches pods. Read `sets` (what a rollout moves), then `rolling` (how), then `progress` (what it
//! says).

mod progress;
mod rolling;
mod sets;

use super::conditions::{self, NewCondition};
use super::fields::{self, deleting, flag, int, text, with_status};
use super::owners::Claim;
use super::pods;
use super::replicaset;
use super::selector::Selector;
use super::workload::{Workload, WorkloadKind};
use crate::contract::{Change, Key, NoteKind, Sync, View, Write};
use jiff::Timestamp;
use opdev_object::meta;
use serde_json::{Map, Value};
use sets::Sets;

const RESOURCE: &str = "apps/deployments";
const KIND: WorkloadKind = WorkloadKind {
    resource: RESOURCE,
    kind: "Deployment",
    controller: "deployment-controller",
    user: "system:serviceaccount:kube-system:deployment-controller",
    dependents: replicaset::RESOURCE,
};
const REVISION: &str = "deployment.kubernetes.io/revision";

/// See the module.
pub(crate) struct Deployments;

/// One sync of one Deployment: its ReplicaSets as they will be, its status as it will be.
struct Rollout<'a> {
    view: &'a dyn View,
    object: &'a Value,
    now: Timestamp,
    sets: Sets,
    status: Map<String, Value>,
    revision: Option<String>,
    sync: Sync,
}

impl Workload for Deployments {
    fn kind(&self) -> &WorkloadKind {
        &KIND
    }

    fn other_keys(&self, view: &dyn View, change: &Change) -> Vec<Key> {
        match change.resource.as_str() {
            "pods" if change.object().is_some_and(|pod| change.gone() || pod.attributes().pod_finished()) => {
                deployment_of_pod(view, change).into_iter().collect()
            }
            _ => Vec::new(),
        }
    }

    fn sync_claimed(&self, view: &dyn View, object: &Value, claim: Claim, now: Timestamp) -> Sync {
        let rollout = Rollout {
            view,
            object,
            now,
            sets: Sets::new(object, claim.owned),
            status: fields::status(object),
            revision: None,
            sync: Sync { writes: claim.writes, ..Sync::default() },
        };
        rollout.run()
    }

    fn sync_without_selector(&self, object: &Value) -> Sync {
        match Selector::parse(object.pointer("/spec/selector")) {
            Some(_) => selects_all(object),
            None => Sync::done(),
        }
    }
}

fn deployment_of_pod(view: &dyn View, change: &Change) -> Option<Key> {
    let pod = change.object()?;
    let owner = pod.attributes().controller().filter(|owner| owner.kind == "ReplicaSet")?;
    let set = view.attributes(replicaset::RESOURCE, pod.namespace(), &owner.name)?;
    let owner = set.controller().filter(|owner| owner.kind == "Deployment")?;
    Some(Key::new(RESOURCE, pod.namespace(), &owner.name))
}

fn selects_all(object: &Value) -> Sync {
    let mut sync = Sync::done();
    if int(object, "/status/observedGeneration").unwrap_or(0) < meta::generation(object) {
        let message = "This deployment is selecting all pods. A non-empty selector is required.";
        sync.writes.push(pods::note(object, NoteKind::Warning, "SelectingAll", message));
        let mut status = fields::status(object);
        status.insert("observedGeneration".into(), meta::generation(object).into());
        let object = with_status(object, status);
        sync.writes.push(Write::UpdateStatus { resource: RESOURCE.into(), object });
    }
    sync
}

impl Rollout<'_> {
    fn run(mut self) -> Sync {
        if deleting(self.object) {
            self.adopt_revision();
            self.settle_status(false);
            return self.finish();
        }
        self.note_pause();
        if flag(self.object, "/spec/paused") {
            self.adopt_revision();
            self.scale_proportionally();
            self.clean_up();
            self.settle_status(false);
        } else if self.sets.scaling(self.wanted()) {
            self.adopt_revision();
            self.scale_proportionally();
            self.settle_status(false);
        } else if text(self.object, "/spec/strategy/type") == "Recreate" {
            self.recreate();
        } else {
            self.roll();
        }
        self.finish()
    }

    /// Replicas asked for.
    fn wanted(&self) -> i64 {
        int(self.object, "/spec/replicas").unwrap_or(1).max(0)
    }

    /// `progressDeadlineSeconds`, unless it is "never".
    fn deadline(&self) -> Option<i64> {
        let deadline = int(self.object, "/spec/progressDeadlineSeconds").unwrap_or(600);
        (deadline != i64::from(i32::MAX)).then_some(deadline)
    }

    fn say(&mut self, kind: &str, status: &str, reason: &str, message: &str) {
        conditions::set_updated(&mut self.status, NewCondition { kind, status, reason, message }, self.now);
    }

    fn note_pause(&mut self) {
        let current = conditions::find(&self.status, "Progressing").map(|c| text(c, "/reason").to_owned());
        if self.deadline().is_none() || current.as_deref() == Some("ProgressDeadlineExceeded") {
            return;
        }
        let pausing = flag(self.object, "/spec/paused");
        let paused = current.as_deref() == Some("DeploymentPaused");
        if pausing && !paused {
            self.say("Progressing", "Unknown", "DeploymentPaused", "Deployment is paused");
        } else if !pausing && paused {
            self.say("Progressing", "Unknown", "DeploymentResumed", "Deployment is resumed");
        }
    }

    /// ReplicaSets first, then the status, which carries the revision annotation along as upstream's does.
    fn finish(mut self) -> Sync {
        let changed = self.sets.writes(self.object);
        self.sync.writes.extend(changed);
        let mut object = with_status(self.object, std::mem::take(&mut self.status));
        if let Some(revision) = self.revision.take() {
            fields::put(
                &mut object,
                &format!("/metadata/annotations/{}", fields::step(REVISION)),
                revision.into(),
            );
        }
        if object != *self.object {
            self.sync.writes.push(Write::UpdateStatus { resource: RESOURCE.into(), object });
        }
        self.sync
    }
}
