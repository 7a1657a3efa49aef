//! ReplicaSets and ReplicationControllers: as many pods as asked for, the right ones first to go, and a
//! truthful status. They differ in their names and in how they select. Never rolls anything out; `deployment`
//! does.

use super::conditions::{self, NewCondition};
use super::fields::{self, count, deleting, int, map, put_count, stamp, text, time, uid};
use super::owners::{Claim, claim};
use super::pods;
use super::selector::Selector;
use super::workload::{Workload, WorkloadKind};
use crate::contract::{NoteKind, Refusal, Sync, View, Write};
use jiff::Timestamp;
use opdev_apimachinery::attributes::{Lookup, PodField};
use opdev_object::meta;
use serde_json::{Value, json};
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// `group/plural` of ReplicaSets.
pub(crate) const RESOURCE: &str = "apps/replicasets";

/// Most pods made or removed in one sync.
const BURST: usize = 500;

/// A kind that keeps a number of pods.
pub(crate) struct ReplicaKind {
    workload: WorkloadKind,
    /// The selector is a plain map of labels.
    plain_selector: bool,
    /// The status counts pods that are being deleted.
    counts_terminating: bool,
}

pub(crate) const REPLICA_SETS: ReplicaKind = ReplicaKind {
    workload: WorkloadKind {
        resource: RESOURCE,
        kind: "ReplicaSet",
        controller: "replicaset-controller",
        user: "system:serviceaccount:kube-system:replicaset-controller",
        dependents: "pods",
    },
    plain_selector: false,
    counts_terminating: true,
};

pub(crate) const REPLICATION_CONTROLLERS: ReplicaKind = ReplicaKind {
    workload: WorkloadKind {
        resource: "replicationcontrollers",
        kind: "ReplicationController",
        controller: "replication-controller",
        user: "system:serviceaccount:kube-system:replication-controller",
        dependents: "pods",
    },
    plain_selector: true,
    counts_terminating: false,
};

/// See the module.
pub(crate) struct ReplicaSets(pub(crate) &'static ReplicaKind);

impl Workload for ReplicaSets {
    fn kind(&self) -> &WorkloadKind {
        &self.0.workload
    }

    fn selector(&self, set: &Value) -> Option<Selector> {
        if self.0.plain_selector {
            let labels = map(set, "/spec/selector").filter(|labels| !labels.is_empty())?;
            return Some(Selector::of_map(labels));
        }
        Selector::parse(set.pointer("/spec/selector"))
    }

    fn sync_claimed(&self, view: &dyn View, set: &Value, claim: Claim, now: Timestamp) -> Sync {
        let mut sync = Sync { writes: claim.writes, requeue_after: None, hold: None };
        let owned = claim.owned;
        let active: Vec<_> = owned.iter().filter(|pod| pods::active(pod)).cloned().collect();
        let wanted = int(set, "/spec/replicas").unwrap_or(1).max(0) as usize;
        if !deleting(set) {
            manage((view, self.kind().resource), set, &active, wanted, now, &mut sync.writes);
        }
        let min_ready = count(set, "/spec/minReadySeconds");
        let status = self.status(set, &owned, &active, now);
        let (ready, available) = (count_in(&status, "readyReplicas"), count_in(&status, "availableReplicas"));
        sync.writes.extend(self.status_write(set, status));
        if min_ready > 0 && ready != available {
            let next = active
                .iter()
                .filter_map(|pod| pods::ready_since(pod))
                .map(|since| (min_ready - fields::seconds_between(since, now)).max(1) as u64);
            sync.again(Duration::from_secs(next.min().unwrap_or(1)));
        }
        sync
    }

    fn write_refused(
        &self,
        view: &dyn View,
        set: &Value,
        write: &Write,
        refusal: &Refusal,
        now: Timestamp,
    ) -> Vec<Write> {
        let (reason, verb) = match write {
            Write::Create { .. } => ("FailedCreate", "creating"),
            Write::Delete { .. } => ("FailedDelete", "deleting"),
            _ => return Vec::new(),
        };
        if refusal.namespace_terminating {
            return Vec::new();
        }
        let message = &refusal.message;
        let mut writes =
            vec![pods::note(set, NoteKind::Warning, reason, &format!("Error {verb}: {message}"))];
        let Some(selector) = self.selector(set) else { return writes };
        let owned = claim(view, set, self.kind().dependents, &selector).owned;
        let active: Vec<_> = owned.iter().filter(|pod| pods::active(pod)).cloned().collect();
        let mut status = self.status(set, &owned, &active, now);
        // The first refusal stays, as in Kubernetes: each one names another pod, and to report it would wake
        // this controller.
        if conditions::find(&status, "ReplicaFailure").is_none() {
            conditions::set(
                &mut status,
                NewCondition { kind: "ReplicaFailure", status: "True", reason, message },
                now,
            );
        }
        writes.extend(self.status_write(set, status));
        writes
    }
}

fn count_in(status: &serde_json::Map<String, Value>, field: &str) -> i64 {
    status.get(field).and_then(Value::as_i64).unwrap_or(0)
}

fn manage(
    (view, resource): (&dyn View, &str),
    set: &Value,
    active: &[Arc<Value>],
    wanted: usize,
    now: Timestamp,
    writes: &mut Vec<Write>,
) {
    if active.len() < wanted {
        let template = set.pointer("/spec/template").cloned().unwrap_or_else(|| json!({}));
        for _ in 0..(wanted - active.len()).min(BURST) {
            writes.extend(pods::create(set, pods::from_template(set, &template)));
        }
    } else if active.len() > wanted {
        let surplus = (active.len() - wanted).min(BURST);
        let related = related_per_node(view, resource, set);
        for pod in first_to_go(active, &related, now).into_iter().take(surplus) {
            writes.extend(pods::delete(set, &pod));
        }
    }
}

/// Active pods per node of all sets with the same controller.
fn related_per_node(view: &dyn View, resource: &str, set: &Value) -> BTreeMap<String, usize> {
    let controller = meta::controller(set).map(|controller| controller.uid);
    let namespace = meta::namespace(set);
    let mut siblings: Vec<String> = Vec::new();
    let related = controller.as_deref().map_or(Lookup::All, Lookup::ControlledBy);
    view.each(resource, namespace, &related, &mut |other| {
        if other.uid() == uid(set)
            || (controller.is_some() && other.controller().map(|owner| &owner.uid) == controller.as_ref())
        {
            siblings.push(other.uid().to_owned());
        }
    });
    let mut per_node = BTreeMap::new();
    for sibling in &siblings {
        view.each("pods", namespace, &Lookup::ControlledBy(sibling), &mut |pod| {
            if !pod.pod_finished()
                && !pod.deleting()
                && pod.controller().is_some_and(|controller| controller.uid == *sibling)
            {
                *per_node.entry(pod.pod(PodField::Node).to_owned()).or_insert(0) += 1;
            }
        });
    }
    per_node
}

/// Pods in upstream's order of removal: unassigned, then pending, then not ready, then cheap by annotation,
/// then on crowded nodes, then ready for a shorter time, then often restarted, then young.
pub(crate) fn first_to_go(
    active: &[Arc<Value>],
    related: &BTreeMap<String, usize>,
    now: Timestamp,
) -> Vec<Arc<Value>> {
    let mut ranked: Vec<_> = active
        .iter()
        .map(|pod| {
            let node = text(pod, "/spec/nodeName");
            let phase = match pods::phase(pod) {
                "Pending" => 0,
                "Unknown" => 1,
                _ => 2,
            };
            let cost = meta::annotation(pod, "controller.kubernetes.io/pod-deletion-cost");
            let cost: i64 = cost.and_then(|cost| cost.parse().ok()).unwrap_or(0);
            let age = |since: Option<Timestamp>| since.map_or(0, |since| log_age(since, now));
            let rank = (
                !node.is_empty(),
                phase,
                pods::ready(pod),
                cost,
                Reverse(related.get(node).copied().unwrap_or(0)),
                age(pods::ready_since(pod)),
                Reverse(pods::restarts(pod)),
                age(time(pod, "/metadata/creationTimestamp")),
                uid(pod).to_owned(),
            );
            (rank, pod.clone())
        })
        .collect();
    ranked.sort_by(|(a, _), (b, _)| a.cmp(b));
    ranked.into_iter().map(|(_, pod)| pod).collect()
}

/// Age in powers of two of seconds, so that nearly equal ages count as equal.
fn log_age(since: Timestamp, now: Timestamp) -> u32 {
    let seconds = fields::seconds_between(since, now).max(0);
    i64::BITS - seconds.leading_zeros()
}

impl ReplicaSets {
    fn status(
        &self,
        set: &Value,
        owned: &[Arc<Value>],
        active: &[Arc<Value>],
        now: Timestamp,
    ) -> serde_json::Map<String, Value> {
        let template_labels = map(set, "/spec/template/metadata/labels").cloned().unwrap_or_default();
        let template = Selector::of_map(&template_labels);
        let min_ready = count(set, "/spec/minReadySeconds");
        let number = |keep: &dyn Fn(&Value) -> bool| active.iter().filter(|pod| keep(pod)).count() as i64;
        let mut status = fields::status(set);
        status.insert("replicas".into(), (active.len() as i64).into());
        put_count(&mut status, "fullyLabeledReplicas", number(&|pod| template.matches(pod)));
        put_count(&mut status, "readyReplicas", number(&pods::ready));
        put_count(&mut status, "availableReplicas", number(&|pod| pods::available(pod, min_ready, now)));
        let terminating = owned.iter().filter(|pod| deleting(pod) && !pods::finished(pod)).count();
        if self.0.counts_terminating {
            status.insert("terminatingReplicas".into(), terminating.into());
        }
        put_count(&mut status, "observedGeneration", meta::generation(set));
        if active.len() as i64 == int(set, "/spec/replicas").unwrap_or(1) {
            conditions::remove(&mut status, "ReplicaFailure");
        }
        status
    }
}

/// When a ReplicaSet was made, for sorting.
pub(crate) fn age_order(set: &Value) -> (String, String) {
    let created = time(set, "/metadata/creationTimestamp").map(stamp).unwrap_or_default();
    (created, fields::name(set).to_owned())
}

#[cfg(test)]
mod tests {
    use super::first_to_go;
    use serde_json::{Value, json};
    use std::collections::BTreeMap;
    use std::sync::Arc;

    fn pod(name: &str, node: &str, phase: &str, ready: &str, since: &str, cost: &str) -> Arc<Value> {
        Arc::new(json!({
            "metadata": {"name": name, "uid": name, "creationTimestamp": "2026-01-01T00:00:00Z",
                "annotations": {"controller.kubernetes.io/pod-deletion-cost": cost}},
            "spec": {"nodeName": node},
            "status": {"phase": phase, "conditions": [
                {"type": "Ready", "status": ready, "lastTransitionTime": since}]},
        }))
    }

    #[test]
    fn pods_go_in_upstreams_order() {
        let old = "2026-01-01T00:00:00Z";
        let young = "2026-01-01T00:59:00Z";
        let pods = [
            pod("old-ready", "n", "Running", "True", old, "0"),
            pod("young-ready", "n", "Running", "True", young, "0"),
            pod("cheap", "n", "Running", "True", old, "-5"),
            pod("not-ready", "n", "Running", "False", old, "9"),
            pod("pending", "n", "Pending", "False", old, "9"),
            pod("crowded", "m", "Running", "True", old, "0"),
            pod("unassigned", "", "Pending", "False", old, "9"),
        ];
        let related = BTreeMap::from([("n".to_owned(), 1), ("m".to_owned(), 3)]);
        let order: Vec<_> = first_to_go(&pods, &related, "2026-01-01T01:00:00Z".parse().unwrap())
            .iter()
            .map(|pod| pod["metadata"]["name"].as_str().unwrap().to_owned())
            .collect();
        let wanted = ["unassigned", "pending", "not-ready", "cheap", "crowded", "young-ready", "old-ready"];
        assert_eq!(order, wanted);
    }
}
