//! StatefulSets: pods with ordinals and claims of their own, made, updated and removed in order.
//! Never skips a pod that is not ready unless the policy is Parallel.

use super::fields::{
    self, controller_reference, count, deleting, int, list, map_copy, name, put, put_count, scaled, text, uid,
};
use super::owners::{Claim, patch_references};
use super::pods;
use super::retention::{Retention, goes_with_an_earlier_pod};
use super::revision::{self, Revisions};
use super::workload::{Workload, WorkloadKind};
use crate::contract::{NoteKind, Refusal, Sync, View, Write};
use jiff::Timestamp;
use opdev_object::meta;
use serde_json::{Map, Value, json};
use std::sync::Arc;
use std::time::Duration;

/// See the module.
pub(crate) struct StatefulSets;

const KIND: WorkloadKind = WorkloadKind {
    resource: "apps/statefulsets",
    kind: "StatefulSet",
    controller: "statefulset-controller",
    user: "system:serviceaccount:kube-system:statefulset-controller",
    dependents: "pods",
};
const CLAIMS: &str = "persistentvolumeclaims";
const HASH: &str = "controller.kubernetes.io/hash";
const REVISION: &str = "controller-revision-hash";

/// One sync of one StatefulSet.
struct StatefulSetSync<'a> {
    view: &'a dyn View,
    set: &'a Value,
    now: Timestamp,
    revisions: Revisions,
    /// Revision that pods below the partition keep.
    current: String,
    /// Pods by ordinal within the wanted range; `None` where one is missing.
    replicas: Vec<(i64, Option<Arc<Value>>)>,
    /// Pods beyond the wanted range, highest ordinal first.
    condemned: Vec<Arc<Value>>,
    sync: Sync,
}

impl Workload for StatefulSets {
    fn kind(&self) -> &WorkloadKind {
        &KIND
    }

    fn sync_claimed(&self, view: &dyn View, set: &Value, claim: Claim, now: Timestamp) -> Sync {
        let mut revisions = revision::revisions(view, set, HASH);
        let current = match text(set, "/status/currentRevision") {
            "" => revisions.update.clone(),
            current => current.to_owned(),
        };
        let mut writes = claim.writes;
        writes.append(&mut revisions.writes);
        let (replicas, condemned, owned) = sort(set, claim.owned);
        let sync = Sync { writes, ..Sync::default() };
        let mut work = StatefulSetSync { view, set, now, revisions, current, replicas, condemned, sync };
        let status = work.status();
        if !deleting(set) {
            work.step();
        }
        work.sync.writes.extend(self.status_write(set, status));
        let mut live = revision::revisions_in_use(&owned, REVISION);
        live.push(&work.current);
        work.sync.writes.extend(revision::truncate(set, &work.revisions, &live));
        work.sync
    }

    fn write_refused(
        &self,
        _: &dyn View,
        set: &Value,
        write: &Write,
        refusal: &Refusal,
        _: Timestamp,
    ) -> Vec<Write> {
        let Write::Create { resource, object } = write else { return Vec::new() };
        let message = format!(
            "create {} {} in StatefulSet {} failed error: {}",
            if resource == KIND.dependents { "Pod" } else { "Claim" },
            name(object),
            name(set),
            refusal.message
        );
        vec![pods::note(set, NoteKind::Warning, "FailedCreate", &message)]
    }
}

fn ordinal(set: &Value, pod: &Value) -> Option<i64> {
    name(pod).strip_prefix(name(set))?.strip_prefix('-')?.parse().ok()
}

type Sorted = (Vec<(i64, Option<Arc<Value>>)>, Vec<Arc<Value>>, Vec<Arc<Value>>);

fn sort(set: &Value, owned: Vec<Arc<Value>>) -> Sorted {
    let start = count(set, "/spec/ordinals/start");
    let wanted = int(set, "/spec/replicas").unwrap_or(1).max(0);
    let mut replicas: Vec<_> = (start..start + wanted).map(|ordinal| (ordinal, None)).collect();
    let mut condemned = Vec::new();
    for pod in &owned {
        let Some(at) = ordinal(set, pod) else { continue };
        match replicas.iter_mut().find(|(ordinal, _)| *ordinal == at) {
            Some(slot) => slot.1 = Some(pod.clone()),
            None => condemned.push((at, pod.clone())),
        }
    }
    condemned.sort_by_key(|(at, _)| -at);
    (replicas, condemned.into_iter().map(|(_, pod)| pod).collect(), owned)
}

fn revision_of(pod: &Value) -> &str {
    meta::label(pod, REVISION).unwrap_or_default()
}

/// Running, ready, not being deleted.
fn healthy(pod: &Value) -> bool {
    !deleting(pod) && pods::phase(pod) == "Running" && pods::ready(pod)
}

impl StatefulSetSync<'_> {
    fn monotonic(&self) -> bool {
        text(self.set, "/spec/podManagementPolicy") != "Parallel"
    }

    fn available(&self, pod: &Value) -> bool {
        pods::available(pod, count(self.set, "/spec/minReadySeconds"), self.now)
    }

    fn status(&mut self) -> Map<String, Value> {
        let existing: Vec<_> = self
            .replicas
            .iter()
            .filter_map(|(_, pod)| pod.clone())
            .chain(self.condemned.iter().cloned())
            .collect();
        let number = |keep: &dyn Fn(&Value) -> bool| existing.iter().filter(|pod| keep(pod)).count() as i64;
        let replicas = existing.len() as i64;
        let ready = number(&|pod| pods::phase(pod) == "Running" && pods::ready(pod));
        let available = number(&|pod| pods::phase(pod) == "Running" && self.available(pod));
        let of = |revision: &str| number(&|pod| !deleting(pod) && revision_of(pod) == revision);
        let updated = of(&self.revisions.update);
        let mut current_replicas = of(&self.current);
        let rolling = text(self.set, "/spec/updateStrategy/type") != "OnDelete";
        let whole = replicas == self.replicas.len() as i64;
        if rolling && whole && updated == replicas && ready == replicas {
            self.current.clone_from(&self.revisions.update);
            current_replicas = updated;
        }
        let mut status = fields::status(self.set);
        put_count(&mut status, "observedGeneration", meta::generation(self.set));
        status.insert("replicas".into(), replicas.into());
        put_count(&mut status, "readyReplicas", ready);
        put_count(&mut status, "currentReplicas", current_replicas);
        put_count(&mut status, "updatedReplicas", updated);
        status.insert("availableReplicas".into(), available.into());
        status.insert("currentRevision".into(), self.current.clone().into());
        status.insert("updateRevision".into(), self.revisions.update.clone().into());
        status.insert("collisionCount".into(), self.revisions.collisions.into());
        status
    }

    /// Makes what is missing, removes what is too much, replaces what is old; one pod at a time unless
    /// Parallel.
    fn step(&mut self) {
        if self.fill() && self.shrink() && text(self.set, "/spec/updateStrategy/type") != "OnDelete" {
            self.update();
        }
    }

    /// False when the sync has to end here.
    fn fill(&mut self) -> bool {
        let monotonic = self.monotonic();
        for (ordinal, pod) in self.replicas.clone() {
            let Some(pod) = pod else {
                let pod_name = format!("{}-{ordinal}", name(self.set));
                let stale = |claim: &Arc<Value>| goes_with_an_earlier_pod(self.set, &pod_name, claim);
                if self.claims_of(&pod_name).iter().any(stale) {
                    self.sync.again(Duration::from_secs(1));
                    return false;
                }
                self.create(ordinal);
                if monotonic {
                    return false;
                }
                continue;
            };
            if pods::finished(&pod) {
                self.recreate(&pod);
                return false;
            }
            if pods::phase(&pod) == "Pending" {
                self.create_claims(ordinal, name(&pod));
            }
            if monotonic && (deleting(&pod) || !healthy(&pod)) {
                return false;
            }
            if monotonic && !self.available(&pod) {
                self.wait_for(&pod);
                return false;
            }
            self.correct_owners(&pod, false);
        }
        true
    }

    fn recreate(&mut self, pod: &Value) {
        if deleting(pod) {
            return;
        }
        let (kind, reason, how) = match pods::phase(pod) {
            "Failed" => (NoteKind::Warning, "RecreatingFailedPod", "failed"),
            _ => (NoteKind::Normal, "RecreatingTerminatedPod", "terminated"),
        };
        let message = format!(
            "StatefulSet {}/{} is recreating {how} Pod {}",
            meta::namespace(self.set).unwrap_or_default(),
            name(self.set),
            name(pod)
        );
        self.sync.writes.push(pods::note(self.set, kind, reason, &message));
        self.delete(pod);
    }

    fn wait_for(&mut self, pod: &Value) {
        let passed = pods::ready_since(pod).map_or(0, |since| fields::seconds_between(since, self.now));
        let left = count(self.set, "/spec/minReadySeconds") - passed;
        self.sync.again(Duration::from_secs(left.max(1) as u64));
    }

    fn shrink(&mut self) -> bool {
        let monotonic = self.monotonic();
        let first_unhealthy = self
            .replicas
            .iter()
            .filter_map(|(_, pod)| pod.as_ref())
            .chain(self.condemned.iter().rev())
            .find(|pod| !healthy(pod))
            .map(|pod| uid(pod).to_owned());
        for pod in self.condemned.clone() {
            self.correct_owners(&pod, true);
        }
        for pod in self.condemned.clone() {
            if deleting(&pod) {
                if monotonic {
                    return false;
                }
                continue;
            }
            if monotonic && !healthy(&pod) && first_unhealthy.as_deref() != Some(uid(&pod)) {
                return false;
            }
            self.delete(&pod);
            if monotonic {
                return false;
            }
        }
        true
    }

    fn update(&mut self) {
        let partition = count(self.set, "/spec/updateStrategy/rollingUpdate/partition");
        let wanted = self.replicas.len() as i64;
        let most =
            scaled(self.set.pointer("/spec/updateStrategy/rollingUpdate/maxUnavailable"), wanted, true);
        let most = most.unwrap_or(1).max(1);
        let start = count(self.set, "/spec/ordinals/start");
        let mut unavailable = 0;
        for (ordinal, pod) in self.replicas.clone().into_iter().rev() {
            let Some(pod) = pod else { continue };
            if ordinal < start + partition {
                return;
            }
            if revision_of(&pod) != self.revisions.update && !deleting(&pod) {
                self.delete(&pod);
                unavailable += 1;
            } else if !healthy(&pod) {
                unavailable += 1;
            } else if !self.available(&pod) {
                self.wait_for(&pod);
                unavailable += 1;
            }
            if unavailable >= most {
                return;
            }
        }
    }

    fn delete(&mut self, pod: &Value) {
        let message = format!("delete Pod {} in StatefulSet {} successful", name(pod), name(self.set));
        self.sync.writes.push(pods::remove(pod, None));
        self.sync.writes.push(pods::note(self.set, NoteKind::Normal, "SuccessfulDelete", &message));
    }

    /// The revision that a new pod of that ordinal gets, with its template.
    fn template_for(&self, ordinal: i64) -> (String, Value) {
        let start = count(self.set, "/spec/ordinals/start");
        let strategy = self.set.pointer("/spec/updateStrategy").unwrap_or(&Value::Null);
        // How many pods are at the old revision says nothing where there is a partition, not even one of
        // zero: a pod that was deleted to be updated would come back as it was.
        let keeps = match strategy["rollingUpdate"].is_object() {
            true => ordinal < start + count(strategy, "/rollingUpdate/partition"),
            false => {
                strategy["type"] != "OnDelete" && ordinal < start + count(self.set, "/status/currentReplicas")
            }
        };
        if keeps && self.current != self.revisions.update {
            let found = self.revisions.all.iter().find(|revision| name(revision) == self.current);
            if let Some(template) = found.and_then(|revision| revision::template_of(revision)) {
                return (self.current.clone(), template);
            }
        }
        (self.revisions.update.clone(), self.set.pointer("/spec/template").cloned().unwrap_or_default())
    }

    fn create(&mut self, ordinal: i64) {
        let (revision, template) = self.template_for(ordinal);
        let pod_name = format!("{}-{ordinal}", name(self.set));
        self.create_claims(ordinal, &pod_name);
        let mut pod = pods::from_template(self.set, &template);
        if let Some(Value::Object(metadata)) = pod.get_mut("metadata") {
            metadata.remove("generateName");
        }
        put(&mut pod, "/metadata/name", pod_name.clone().into());
        for (label, value) in [
            ("statefulset.kubernetes.io~1pod-name", pod_name.clone()),
            ("apps.kubernetes.io~1pod-index", ordinal.to_string()),
            (REVISION, revision),
        ] {
            put(&mut pod, &format!("/metadata/labels/{label}"), value.into());
        }
        put(&mut pod, "/spec/hostname", pod_name.clone().into());
        if !text(self.set, "/spec/serviceName").is_empty() {
            put(&mut pod, "/spec/subdomain", text(self.set, "/spec/serviceName").into());
        }
        let mut volumes = list(&pod, "/spec/volumes").to_vec();
        for template in list(self.set, "/spec/volumeClaimTemplates") {
            volumes.retain(|volume| text(volume, "/name") != name(template));
            let claim = format!("{}-{pod_name}", name(template));
            volumes.push(json!({"name": name(template), "persistentVolumeClaim": {"claimName": claim}}));
        }
        if !volumes.is_empty() {
            put(&mut pod, "/spec/volumes", volumes.into());
        }
        self.sync.writes.push(Write::Create { resource: "pods".into(), object: pod });
        let message = format!("create Pod {pod_name} in StatefulSet {} successful", name(self.set));
        self.sync.writes.push(pods::note(self.set, NoteKind::Normal, "SuccessfulCreate", &message));
    }

    fn create_claims(&mut self, ordinal: i64, pod_name: &str) {
        let namespace = meta::namespace(self.set);
        for template in list(self.set, "/spec/volumeClaimTemplates") {
            let claim_name = format!("{}-{}-{ordinal}", name(template), name(self.set));
            if self.view.get(CLAIMS, namespace, &claim_name).is_some() {
                continue;
            }
            let mut claim = template.clone();
            let mut labels = map_copy(template, "/metadata/labels");
            labels.extend(map_copy(self.set, "/spec/selector/matchLabels"));
            put(&mut claim, "/apiVersion", "v1".into());
            put(&mut claim, "/kind", "PersistentVolumeClaim".into());
            put(&mut claim, "/metadata/name", claim_name.clone().into());
            put(&mut claim, "/metadata/namespace", namespace.into());
            put(&mut claim, "/metadata/labels", labels.into());
            if text(self.set, "/spec/persistentVolumeClaimRetentionPolicy/whenDeleted") == "Delete" {
                put(&mut claim, "/metadata/ownerReferences", json!([controller_reference(self.set)]));
            }
            if let Value::Object(fields) = &mut claim {
                fields.remove("status");
            }
            self.sync.writes.push(Write::Create { resource: CLAIMS.into(), object: claim });
            let message =
                format!("create Claim {claim_name} Pod {pod_name} in StatefulSet {} success", name(self.set));
            self.sync.writes.push(pods::note(self.set, NoteKind::Normal, "SuccessfulCreate", &message));
        }
    }

    /// The claims of a pod that are there.
    fn claims_of(&self, pod: &str) -> Vec<Arc<Value>> {
        let templates = list(self.set, "/spec/volumeClaimTemplates").iter();
        let claim = |template| format!("{}-{pod}", name(template));
        templates
            .filter_map(|template| self.view.get(CLAIMS, meta::namespace(self.set), &claim(template)))
            .collect()
    }

    /// Gives the claims of a pod the owners of the retention policy.
    fn correct_owners(&mut self, pod: &Value, scaled_away: bool) {
        let retention = Retention::of_pod(self.set, pod, scaled_away);
        for claim in self.claims_of(name(pod)) {
            if let Some(owners) = retention.correction(&claim) {
                self.sync.writes.push(patch_references(CLAIMS, &claim, owners));
            }
        }
    }
}
