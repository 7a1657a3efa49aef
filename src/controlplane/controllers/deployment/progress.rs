//! The status of a Deployment: counts, Available, Progressing, and when to look again for a stuck rollout.
//! Never scales anything.

use super::sets::max_unavailable;
use super::{Rollout, conditions};
use crate::conditions::NewCondition;
use crate::fields::{count, list, name, put_count, text, time};
use opdev_object::meta;
use serde_json::{Map, Value};
use std::time::Duration;

fn number(status: &Map<String, Value>, field: &str) -> i64 {
    status.get(field).and_then(Value::as_i64).unwrap_or(0)
}

impl Rollout<'_> {
    /// Returns true if a status says that the rollout is over.
    pub(super) fn complete(&self, status: &Map<String, Value>) -> bool {
        let wanted = self.wanted();
        number(status, "updatedReplicas") == wanted
            && number(status, "replicas") == wanted
            && number(status, "availableReplicas") == wanted
            && number(status, "observedGeneration") >= meta::generation(self.object)
    }

    /// Computes the status; `rolling` adds what is known about progress.
    pub(super) fn settle_status(&mut self, rolling: bool) {
        let before = self.status.clone();
        let (total, available) = (self.sets.total(), self.sets.available());
        let updated = self.sets.new_set().map_or(0, |set| count(&set.object, "/status/replicas"));
        let status = &mut self.status;
        put_count(status, "observedGeneration", meta::generation(self.object));
        put_count(status, "replicas", self.sets.sum("/status/replicas"));
        put_count(status, "updatedReplicas", updated);
        put_count(status, "readyReplicas", self.sets.sum("/status/readyReplicas"));
        put_count(status, "availableReplicas", available);
        put_count(status, "unavailableReplicas", (total - available).max(0));
        let terminating = self.sets.sum("/status/terminatingReplicas");
        status.insert("terminatingReplicas".into(), terminating.into());
        if available >= self.wanted() - max_unavailable(self.object) {
            let message = "Deployment has minimum availability.";
            self.say("Available", "True", "MinimumReplicasAvailable", message);
        } else {
            let message = "Deployment does not have minimum availability.";
            self.say("Available", "False", "MinimumReplicasUnavailable", message);
        }
        if rolling {
            self.settle_progress(&before);
            self.copy_failure();
            self.look_again();
        }
    }

    fn settle_progress(&mut self, before: &Map<String, Value>) {
        let Some(deadline) = self.deadline() else {
            conditions::remove(&mut self.status, "Progressing");
            return;
        };
        let current = conditions::find(&self.status, "Progressing").cloned();
        let reason = current.as_ref().map(|c| text(c, "/reason").to_owned()).unwrap_or_default();
        let settled = number(&self.status, "replicas") == number(&self.status, "updatedReplicas");
        if settled && reason == "NewReplicaSetAvailable" {
            return;
        }
        let subject = match self.sets.new_set() {
            Some(set) => format!("ReplicaSet \"{}\"", name(&set.object)),
            None => format!("Deployment \"{}\"", name(self.object)),
        };
        if self.complete(&self.status) {
            let message = format!("{subject} has successfully progressed.");
            self.say("Progressing", "True", "NewReplicaSetAvailable", &message);
        } else if self.progressing(before) {
            let message = format!("{subject} is progressing.");
            // Progress counts anew each time, so the update time has to move even when the reason stays.
            let transition = current.filter(|c| text(c, "/status") == "True");
            conditions::remove(&mut self.status, "Progressing");
            self.say("Progressing", "True", "ReplicaSetUpdated", &message);
            if let Some(transition) = transition {
                self.keep_transition(text(&transition, "/lastTransitionTime"));
            }
        } else if self.timed_out(deadline) {
            let message = format!("{subject} has timed out progressing.");
            self.say("Progressing", "False", "ProgressDeadlineExceeded", &message);
        }
    }

    fn keep_transition(&mut self, transition: &str) {
        let Some(Value::Array(conditions)) = self.status.get_mut("conditions") else { return };
        for condition in conditions.iter_mut().filter(|c| text(c, "/type") == "Progressing") {
            super::fields::put(condition, "/lastTransitionTime", transition.into());
        }
    }

    fn progressing(&self, before: &Map<String, Value>) -> bool {
        let old = |status| number(status, "replicas") - number(status, "updatedReplicas");
        let grew = |field| number(&self.status, field) > number(before, field);
        grew("updatedReplicas")
            || old(&self.status) < old(before)
            || grew("readyReplicas")
            || grew("availableReplicas")
    }

    fn timed_out(&self, deadline: i64) -> bool {
        let Some(condition) = conditions::find(&self.status, "Progressing") else { return false };
        match text(condition, "/reason") {
            "NewReplicaSetAvailable" => false,
            "ProgressDeadlineExceeded" => true,
            _ => time(condition, "/lastUpdateTime")
                .is_some_and(|since| super::fields::seconds_between(since, self.now) > deadline),
        }
    }

    /// A ReplicaSet that cannot make pods shows in the Deployment.
    fn copy_failure(&mut self) {
        let mut sets: Vec<_> = self.sets.new_set().into_iter().chain(&self.sets.all).collect();
        let failure = sets.drain(..).find_map(|set| {
            list(&set.object, "/status/conditions")
                .iter()
                .find(|c| text(c, "/type") == "ReplicaFailure" && text(c, "/status") == "True")
                .map(|c| (text(c, "/reason").to_owned(), text(c, "/message").to_owned()))
        });
        match failure {
            Some((reason, message)) => {
                let says = NewCondition {
                    kind: "ReplicaFailure",
                    status: "True",
                    reason: &reason,
                    message: &message,
                };
                conditions::set_updated(&mut self.status, says, self.now);
            }
            None => conditions::remove(&mut self.status, "ReplicaFailure"),
        }
    }

    fn look_again(&mut self) {
        let Some(deadline) = self.deadline() else { return };
        let Some(condition) = conditions::find(&self.status, "Progressing") else { return };
        if self.complete(&self.status) || text(condition, "/reason") == "ProgressDeadlineExceeded" {
            return;
        }
        if let Some(since) = time(condition, "/lastUpdateTime") {
            let left = deadline - super::fields::seconds_between(since, self.now);
            self.sync.again(Duration::from_secs((left.max(0) + 1) as u64));
        }
    }
}
