//! DaemonSets: one pod on each node that fits, replaced a few at a time when the template changes.
//! Never binds pods; it pins them by node affinity and the scheduler does.

use super::fields::{self, count, deleting, list, name, put, put_count, scaled, stamp, text, time};
use super::owners::Claim;
use super::pods;
use super::revision;
use super::scheduler;
use super::workload::{Workload, WorkloadKind};
use crate::contract::{Change, Key, NoteKind, Refusal, Sync, View, Write};
use jiff::Timestamp;
use opdev_object::meta;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;

/// See the module.
pub(crate) struct DaemonSets;

const KIND: WorkloadKind = WorkloadKind {
    resource: "apps/daemonsets",
    kind: "DaemonSet",
    controller: "daemonset-controller",
    user: "system:serviceaccount:kube-system:daemon-set-controller",
    dependents: "pods",
};
const HASH: &str = "controller-revision-hash";

impl Workload for DaemonSets {
    fn kind(&self) -> &WorkloadKind {
        &KIND
    }

    fn other_keys(&self, view: &dyn View, change: &Change) -> Vec<Key> {
        match change.resource.as_str() {
            "nodes" => {
                view.list(KIND.resource, None).iter().map(|set| Key::of_object(KIND.resource, set)).collect()
            }
            _ => Vec::new(),
        }
    }

    fn sync_claimed(&self, view: &dyn View, set: &Value, claim: Claim, now: Timestamp) -> Sync {
        let mut revisions = revision::revisions(view, set, HASH);
        let mut sync = Sync { writes: claim.writes, ..Sync::default() };
        sync.writes.append(&mut revisions.writes);
        let nodes = view.list("nodes", None);
        let by_node = by_node(&claim.owned);
        if !deleting(set) {
            let moved = manage(set, &nodes, &by_node, &revisions.update_hash, &mut sync.writes);
            if !moved && text(set, "/spec/updateStrategy/type") != "OnDelete" {
                roll(set, &nodes, &by_node, &revisions.update_hash, now, &mut sync.writes);
            }
        }
        let status = status(set, &nodes, &by_node, &revisions.update_hash, now);
        sync.writes.extend(self.status_write(set, status));
        let in_use: Vec<_> = revision::revisions_in_use(&claim.owned, HASH);
        let in_use: Vec<_> = in_use.iter().map(|hash| format!("{}-{hash}", name(set))).collect();
        let in_use: Vec<_> = in_use.iter().map(String::as_str).collect();
        sync.writes.extend(revision::truncate(set, &revisions, &in_use));
        sync
    }

    fn write_refused(
        &self,
        _: &dyn View,
        set: &Value,
        write: &Write,
        refusal: &Refusal,
        _: Timestamp,
    ) -> Vec<Write> {
        match write {
            Write::Create { resource, .. } if resource == KIND.dependents => {
                let message = format!("Error creating: {}", refusal.message);
                vec![pods::note(set, NoteKind::Warning, "FailedCreate", &message)]
            }
            _ => Vec::new(),
        }
    }
}

/// Where a pod is or wants to be.
fn node_of(pod: &Value) -> &str {
    match text(pod, "/spec/nodeName") {
        "" => {
            let terms = "/spec/affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution/nodeSelectorTerms";
            list(pod, terms)
                .iter()
                .flat_map(|term| list(term, "/matchFields"))
                .find(|field| text(field, "/key") == "metadata.name")
                .and_then(|field| list(field, "/values").first()?.as_str())
                .unwrap_or_default()
        }
        node => node,
    }
}

type ByNode = BTreeMap<String, Vec<Arc<Value>>>;

fn by_node(owned: &[Arc<Value>]) -> ByNode {
    let mut found = ByNode::new();
    for pod in owned {
        found.entry(node_of(pod).to_owned()).or_default().push(pod.clone());
    }
    for pods in found.values_mut() {
        pods.sort_by_key(|pod| (time(pod, "/metadata/creationTimestamp").map(stamp), name(pod).to_owned()));
    }
    found
}

fn new_pod(set: &Value, node: &str, hash: &str) -> Value {
    let template = set.pointer("/spec/template").cloned().unwrap_or_else(|| json!({}));
    let mut pod = pods::from_template(set, &template);
    put(&mut pod, &format!("/metadata/labels/{HASH}"), hash.into());
    if let Some(generation) = meta::annotation(set, "deprecated.daemonset.template.generation") {
        put(&mut pod, "/metadata/labels/pod-template-generation", generation.into());
    }
    let pin = json!({"key": "metadata.name", "operator": "In", "values": [node]});
    let required =
        "/spec/affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution/nodeSelectorTerms";
    let mut terms = list(&pod, required).to_vec();
    if terms.is_empty() {
        terms.push(json!({}));
    }
    for term in &mut terms {
        put(term, "/matchFields", json!([pin]));
    }
    put(&mut pod, required, terms.into());
    let tolerations = tolerations(&pod);
    put(&mut pod, "/spec/tolerations", tolerations.into());
    pod
}

/// The tolerations that a daemon pod has beside those of its template.
fn tolerations(pod: &Value) -> Vec<Value> {
    let mut all = list(pod, "/spec/tolerations").to_vec();
    let mut own = vec![
        ("not-ready", "NoExecute"),
        ("unreachable", "NoExecute"),
        ("disk-pressure", "NoSchedule"),
        ("memory-pressure", "NoSchedule"),
        ("pid-pressure", "NoSchedule"),
        ("unschedulable", "NoSchedule"),
    ];
    if fields::flag(pod, "/spec/hostNetwork") {
        own.push(("network-unavailable", "NoSchedule"));
    }
    for (key, effect) in own {
        let toleration =
            json!({"key": format!("node.kubernetes.io/{key}"), "operator": "Exists", "effect": effect});
        if !all.contains(&toleration) {
            all.push(toleration);
        }
    }
    all
}

/// Two answers: a pod of the set belongs on the node, and a pod that is there may stay.
fn wants(set: &Value, node: &Value) -> (bool, bool) {
    let pod = new_pod(set, name(node), "");
    let selected = scheduler::selects(&pod, node);
    let taints = list(node, "/spec/taints");
    let tolerated = |effects: &[&str]| {
        taints
            .iter()
            .filter(|taint| effects.contains(&text(taint, "/effect")))
            .all(|taint| scheduler::tolerates(&pod, taint))
    };
    (selected && tolerated(&["NoSchedule", "NoExecute"]), selected && tolerated(&["NoExecute"]))
}

/// A node may have a new and an old pod: a further one has to go, and an old one that does not work.
fn is_one_too_many(here: &[Arc<Value>], pod: &Arc<Value>, hash: &str) -> bool {
    let [new, old] = new_and_old(here, hash);
    let is = |of: Option<&Arc<Value>>| of.is_some_and(|of| Arc::ptr_eq(of, pod));
    !is(new) && (!is(old) || (new.is_some() && !pods::ready(pod)))
}

/// Makes missing pods and removes wrong ones; true when there was something to do.
fn manage(set: &Value, nodes: &[Arc<Value>], by_node: &ByNode, hash: &str, writes: &mut Vec<Write>) -> bool {
    let before = writes.len();
    let (none, surges) = (Vec::new(), surges(set));
    for node in nodes {
        let (run, stay) = wants(set, node);
        let here = by_node.get(name(node)).unwrap_or(&none);
        if !stay {
            let gone = here.iter().filter(|pod| !deleting(pod));
            writes.extend(gone.flat_map(|pod| pods::delete(set, pod)));
            continue;
        }
        let mut kept = 0;
        for pod in here {
            if deleting(pod) {
                kept += 1;
            } else if pods::phase(pod) == "Failed" {
                let message = format!(
                    "Found failed daemon pod {}/{} on node {}, will try to kill it",
                    meta::namespace(pod).unwrap_or_default(),
                    name(pod),
                    name(node)
                );
                writes.push(pods::note(set, NoteKind::Warning, "FailedDaemonPod", &message));
                writes.extend(pods::delete(set, pod));
                kept += 1;
            } else if if surges { is_one_too_many(here, pod, hash) } else { kept > 0 } {
                writes.extend(pods::delete(set, pod));
            } else {
                kept += 1;
            }
        }
        if run && kept == 0 {
            writes.extend(pods::create(set, new_pod(set, name(node), hash)));
        }
    }
    for (node, pods_there) in by_node {
        if !nodes.iter().any(|known| name(known) == node) {
            let gone = pods_there.iter().filter(|pod| !deleting(pod));
            writes.extend(gone.flat_map(|pod| pods::delete(set, pod)));
        }
    }
    writes.len() > before
}

/// The number of pods that may be there twice, and of those that may be unavailable.
fn limits(set: &Value, nodes: usize) -> (i64, i64) {
    let limit = |field: &str| {
        let value = set.pointer(&format!("/spec/updateStrategy/rollingUpdate/{field}"));
        scaled(value, nodes as i64, true)
    };
    let (surge, unavailable) = (limit("maxSurge").unwrap_or(0), limit("maxUnavailable").unwrap_or(1));
    (surge, if surge == 0 { unavailable.max(1) } else { unavailable })
}

fn surges(set: &Value) -> bool {
    let value = set.pointer("/spec/updateStrategy/rollingUpdate/maxSurge");
    scaled(value, 100, true).is_some_and(|surge| surge > 0)
}

/// Brings pods of older templates up to date, as many at a time as the strategy allows.
fn roll(
    set: &Value,
    nodes: &[Arc<Value>],
    by_node: &ByNode,
    hash: &str,
    now: Timestamp,
    writes: &mut Vec<Write>,
) {
    let wanted: Vec<_> = nodes.iter().filter(|node| wants(set, node).0).collect();
    let (surge, most) = limits(set, wanted.len());
    if surge > 0 {
        return roll_by_surge(set, &wanted, by_node, (hash, surge), now, writes);
    }
    let min_ready = count(set, "/spec/minReadySeconds");
    let mut unavailable = 0;
    let (mut broken, mut working) = (Vec::new(), Vec::new());
    for node in wanted {
        let here = by_node.get(name(node)).and_then(|pods| pods.iter().find(|pod| !deleting(pod)));
        let Some(pod) = here else {
            unavailable += 1;
            continue;
        };
        let available = pods::available(pod, min_ready, now);
        unavailable += i64::from(!available);
        if meta::label(pod, HASH) != Some(hash) {
            if available { working.push(pod) } else { broken.push(pod) }
        }
    }
    let room = (most - unavailable).max(0) as usize;
    for pod in broken.into_iter().chain(working.into_iter().take(room)) {
        writes.extend(pods::delete(set, pod));
    }
}

/// The oldest pod of the template as it is, and the oldest of an older one, of those that stay on a node.
fn new_and_old<'a>(here: &'a [Arc<Value>], hash: &str) -> [Option<&'a Arc<Value>>; 2] {
    let staying = || here.iter().filter(|pod| !deleting(pod));
    let is_new = |pod: &&Arc<Value>| meta::label(pod, HASH) == Some(hash);
    [staying().find(is_new), staying().find(|pod| !is_new(pod))]
}

/// The new pod of a node comes first; the old one goes once that is available.
fn roll_by_surge(
    set: &Value,
    nodes: &[&Arc<Value>],
    by_node: &ByNode,
    (hash, most): (&str, i64),
    now: Timestamp,
    writes: &mut Vec<Write>,
) {
    let available = |pod: &Value| pods::available(pod, count(set, "/spec/minReadySeconds"), now);
    let mut surging = 0;
    let (mut broken, mut working) = (Vec::new(), Vec::new());
    for node in nodes {
        match by_node.get(name(node)).map(|here| new_and_old(here, hash)) {
            Some([None, Some(old)]) => {
                if available(old) {
                    working.push(node);
                } else {
                    broken.push(node);
                }
            }
            Some([Some(new), Some(old)]) if available(new) => writes.extend(pods::delete(set, old)),
            Some([Some(_), Some(_)]) => surging += 1,
            Some([_, None]) | None => {}
        }
    }
    let room = (most - surging).max(0) as usize;
    for node in broken.into_iter().chain(working.into_iter().take(room)) {
        writes.extend(pods::create(set, new_pod(set, name(node), hash)));
    }
}

fn status(
    set: &Value,
    nodes: &[Arc<Value>],
    by_node: &ByNode,
    hash: &str,
    now: Timestamp,
) -> Map<String, Value> {
    let (mut desired, mut current, mut misplaced, mut ready, mut available, mut updated) = (0, 0, 0, 0, 0, 0);
    let none = Vec::new();
    for node in nodes {
        let here = by_node.get(name(node)).unwrap_or(&none);
        if !wants(set, node).0 {
            misplaced += i64::from(!here.is_empty());
            continue;
        }
        desired += 1;
        if let Some(pod) = here.first() {
            current += 1;
            ready += i64::from(pods::ready(pod));
            available += i64::from(pods::available(pod, count(set, "/spec/minReadySeconds"), now));
            updated += i64::from(meta::label(pod, HASH) == Some(hash));
        }
    }
    let mut status = fields::status(set);
    for (field, number) in [
        ("currentNumberScheduled", current),
        ("numberMisscheduled", misplaced),
        ("desiredNumberScheduled", desired),
        ("numberReady", ready),
    ] {
        status.insert(field.into(), number.into());
    }
    put_count(&mut status, "observedGeneration", meta::generation(set));
    put_count(&mut status, "updatedNumberScheduled", updated);
    put_count(&mut status, "numberAvailable", available);
    put_count(&mut status, "numberUnavailable", desired - available);
    status
}
