//! The scheduler: puts each pending pod on a ready node that fits, or says why none does.
//! Never preempts and knows no scores but the number of pods.

use super::apart::{Apart, Neighbours};
use super::conditions::{self, NewCondition};
use super::fields::{self, flag, list, map, name, text, uid, with_status};
use super::pods;
use super::quantity;
use super::selector::{Selector, requirement_holds};
use crate::contract::{Actor, Change, Controller, Key, Note, NoteKind, Observed, Sync, View, Write};
use jiff::Timestamp;
use opdev_apimachinery::attributes::{Attributes, Lookup, PodField};
use opdev_object::meta;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

/// See the module.
pub(crate) struct Scheduler;

const NAME: &str = "default-scheduler";
const DEVICE_CLAIMS: &str = "resource.k8s.io/resourceclaims";
const CLAIM_TEMPLATES: &str = "resource.k8s.io/resourceclaimtemplates";
/// After this a pod that waits for others is looked at again.
const LOOK_AGAIN: Duration = Duration::from_secs(5);

impl Controller for Scheduler {
    fn name(&self) -> &'static str {
        NAME
    }

    fn actor(&self) -> Actor {
        Actor { user: "system:kube-scheduler", field_manager: "kube-scheduler" }
    }

    fn keys(&self, view: &dyn View, change: &Change) -> Vec<Key> {
        let unplaced = |known: &Attributes| {
            known.pod(PodField::Node).is_empty() && !known.pod_finished() && !known.deleting()
        };
        let all_waiting = || view.select_keys("pods", None, &Lookup::All, &unplaced);
        match change.resource.as_str() {
            "pods" => match change.after.as_ref().map(Observed::attributes) {
                Some(pod) if unplaced(pod) => change.key().into_iter().collect(),
                Some(pod) if !pod.pod_finished() => Vec::new(),
                _ => all_waiting(),
            },
            "nodes" | "persistentvolumeclaims" | DEVICE_CLAIMS | CLAIM_TEMPLATES => all_waiting(),
            _ => Vec::new(),
        }
    }

    fn sync(&self, view: &dyn View, key: &Key, now: Timestamp) -> Sync {
        let Some(pod) = key.read(view) else { return Sync::done() };
        let named = text(&pod, "/spec/schedulerName");
        if !pods::active(&pod)
            || !text(&pod, "/spec/nodeName").is_empty()
            || !(named.is_empty() || named == NAME)
            || !list(&pod, "/spec/schedulingGates").is_empty()
            || lacks_device_claim(view, &pod)
        {
            return Sync::done();
        }
        match place(view, &pod) {
            Ok(node) => {
                let namespace = meta::namespace(&pod).unwrap_or_default().to_owned();
                let message = format!("Successfully assigned {namespace}/{} to {node}", name(&pod));
                let bind =
                    Write::Bind { namespace, name: name(&pod).to_owned(), uid: uid(&pod).to_owned(), node };
                let note = note(&pod, NoteKind::Normal, "Scheduled", message);
                Sync { writes: vec![bind, note], ..Sync::default() }
            }
            Err(why) => {
                let mut sync = unschedulable(&pod, &why.to_string(), now);
                if why.may_end_by_others() {
                    sync.again(LOOK_AGAIN);
                }
                sync
            }
        }
    }
}

fn note(pod: &Value, kind: NoteKind, reason: &str, message: String) -> Write {
    Write::Record(Note {
        regarding: fields::reference(pod),
        kind,
        reason: reason.to_owned(),
        message,
        component: Some(NAME),
        host: None,
    })
}

fn unschedulable(pod: &Value, why: &str, now: Timestamp) -> Sync {
    let mut status = fields::status(pod);
    let says = NewCondition { kind: "PodScheduled", status: "False", reason: "Unschedulable", message: why };
    conditions::set(&mut status, says, now);
    if status == fields::status(pod) {
        return Sync::done();
    }
    let object = with_status(pod, status);
    let writes = vec![
        Write::UpdateStatus { resource: "pods".into(), object },
        note(pod, NoteKind::Warning, "FailedScheduling", why.to_owned()),
    ];
    Sync { writes, ..Sync::default() }
}

/// The node for a pod.
fn place(view: &dyn View, pod: &Value) -> Result<String, Unschedulable> {
    let nodes = view.list("nodes", None);
    let all = nodes.len();
    claims_bound(view, pod).map_err(|claim| Unschedulable::Claim { nodes: all, claim })?;
    let mut taken: BTreeMap<&str, NodeUsage> =
        nodes.iter().map(|node| (name(node), NodeUsage::default())).collect();
    let mut wary = false;
    view.each("pods", None, &Lookup::All, &mut |other| {
        wary |= !other.pod(PodField::Wary).is_empty();
        if !other.pod_finished()
            && let Some(taken) = taken.get_mut(other.pod(PodField::Node))
        {
            taken.add(other);
        }
    });
    let devices = Devices::of(view, pod);
    let neighbours = Neighbours::new(view, pod, &nodes, wary);
    let mut reasons: BTreeMap<Unfit, usize> = BTreeMap::new();
    let mut best: Option<(i64, String)> = None;
    for node in &nodes {
        let taken = taken.get(name(node)).copied().unwrap_or_default();
        match fits(pod, node, taken)
            .and_then(|()| devices.fit(node))
            .and_then(|()| neighbours.refusal(node).map_or(Ok(()), |why| Err(why.into())))
        {
            Ok(()) => {
                if best.as_ref().is_none_or(|(pods, _)| taken.pods < *pods) {
                    best = Some((taken.pods, name(node).to_owned()));
                }
            }
            Err(reason) => {
                *reasons.entry(reason).or_insert(0) += 1;
            }
        }
    }
    if let Some((_, node)) = best {
        return Ok(node);
    }
    if all == 0 {
        return Err(Unschedulable::NoNodes);
    }
    Err(Unschedulable::NoneFits { nodes: all, reasons })
}

/// Why there is no node for a pod. Its text is the message of the pod's condition.
#[derive(Debug)]
enum Unschedulable {
    NoNodes,
    /// A claim of the pod is not ready for use.
    Claim {
        nodes: usize,
        claim: UnusableClaim,
    },
    /// No node fits: how many for which reason.
    NoneFits {
        nodes: usize,
        reasons: BTreeMap<Unfit, usize>,
    },
}

impl Unschedulable {
    /// True where it may wait for a pod that is still to come.
    fn may_end_by_others(&self) -> bool {
        matches!(self, Unschedulable::NoneFits { reasons, .. }
            if reasons.contains_key(&Unfit::Apart(Apart::Affinity)) || reasons.contains_key(&Unfit::Apart(Apart::Spread)))
    }
}

/// Why a node does not fit a pod.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Unfit {
    Unschedulable,
    Tainted,
    NotReady,
    Affinity,
    TooManyPods,
    Insufficient(String),
    Apart(Apart),
}

impl From<Apart> for Unfit {
    fn from(why: Apart) -> Self {
        Unfit::Apart(why)
    }
}

impl Unfit {
    /// Returns true if the node would fit if pods went away.
    fn is_full(&self) -> bool {
        match self {
            Unfit::TooManyPods | Unfit::Insufficient(_) => true,
            Unfit::Apart(why) => why.is_others_fault(),
            Unfit::Unschedulable | Unfit::Tainted | Unfit::NotReady | Unfit::Affinity => false,
        }
    }
}

/// Why a claim of a pod cannot be used, with its name where the message tells it.
#[derive(Debug)]
enum UnusableClaim {
    NotFound(String),
    Deleting(String),
    Unbound,
}

impl std::error::Error for Unschedulable {}

impl fmt::Display for Unschedulable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Unschedulable::NoNodes => f.write_str("no nodes available to schedule pods"),
            Unschedulable::Claim { nodes, claim } => {
                write!(f, "0/{nodes} nodes are available: {claim}. {}", not_helpful(*nodes))
            }
            Unschedulable::NoneFits { nodes, reasons } => {
                let mut texts: Vec<_> =
                    reasons.iter().map(|(reason, number)| format!("{number} {reason}")).collect();
                texts.sort();
                write!(f, "0/{nodes} nodes are available: {}. ", texts.join(", "))?;
                match reasons.iter().filter(|(reason, _)| reason.is_full()).map(|(_, number)| number).sum() {
                    0usize => f.write_str(&not_helpful(*nodes)),
                    full => write!(
                        f,
                        "no new claims to deallocate, preemption: 0/{nodes} nodes are available: {full} No preemption victims found for incoming pod."
                    ),
                }
            }
        }
    }
}

impl fmt::Display for Unfit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Unfit::Unschedulable => f.write_str("node(s) were unschedulable"),
            Unfit::Tainted => f.write_str("node(s) had untolerated taint(s)"),
            Unfit::NotReady => f.write_str("node(s) were not ready"),
            Unfit::Affinity => f.write_str("node(s) didn't match Pod's node affinity/selector"),
            Unfit::TooManyPods => f.write_str("Too many pods"),
            Unfit::Insufficient(resource) => write!(f, "Insufficient {resource}"),
            Unfit::Apart(why) => why.fmt(f),
        }
    }
}

impl fmt::Display for UnusableClaim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            UnusableClaim::NotFound(name) => write!(f, "persistentvolumeclaim \"{name}\" not found"),
            UnusableClaim::Deleting(name) => write!(f, "persistentvolumeclaim \"{name}\" is being deleted"),
            UnusableClaim::Unbound => f.write_str("pod has unbound immediate PersistentVolumeClaims"),
        }
    }
}

fn not_helpful(all: usize) -> String {
    format!(
        "no new claims to deallocate, preemption: 0/{all} nodes are available: {all} Preemption is not helpful for scheduling."
    )
}

/// Returns true if a pod names a claim of devices, or a template of one, that is not there. Like the real
/// one, the scheduler does not look at such a pod, and says nothing.
fn lacks_device_claim(view: &dyn View, pod: &Value) -> bool {
    list(pod, "/spec/resourceClaims").iter().any(|claim| {
        let named = [("/resourceClaimName", DEVICE_CLAIMS), ("/resourceClaimTemplateName", CLAIM_TEMPLATES)];
        named.iter().any(|(field, resource)| {
            let name = text(claim, field);
            !name.is_empty() && view.get(resource, meta::namespace(pod), name).is_none()
        })
    })
}

fn claims_bound(view: &dyn View, pod: &Value) -> Result<(), UnusableClaim> {
    for volume in list(pod, "/spec/volumes") {
        let claim = match volume.get("ephemeral") {
            Some(_) => format!("{}-{}", name(pod), text(volume, "/name")),
            None => text(volume, "/persistentVolumeClaim/claimName").to_owned(),
        };
        if claim.is_empty() {
            continue;
        }
        match view.get("persistentvolumeclaims", meta::namespace(pod), &claim) {
            None => return Err(UnusableClaim::NotFound(claim)),
            Some(found) if fields::deleting(&found) => return Err(UnusableClaim::Deleting(claim)),
            Some(found) if text(&found, "/spec/volumeName").is_empty() => {
                return Err(UnusableClaim::Unbound);
            }
            Some(_) => {}
        }
    }
    Ok(())
}

/// Resources besides cpu and memory that a pod asks for, such as `nvidia.com/gpu`, and how much of them the
/// pods of each node have. Pods are read only where there are any.
#[derive(Default)]
struct Devices {
    asked: BTreeMap<String, i64>,
    /// By node and resource.
    taken: BTreeMap<(String, String), i64>,
}

impl Devices {
    fn of(view: &dyn View, pod: &Value) -> Devices {
        let mut found = Devices { asked: others(pod), ..Devices::default() };
        if found.asked.is_empty() {
            return found;
        }
        for other in view.list("pods", None).iter().filter(|other| !pods::finished(other)) {
            for (resource, number) in others(other) {
                let place = (text(other, "/spec/nodeName").to_owned(), resource);
                *found.taken.entry(place).or_default() += number;
            }
        }
        found
    }

    fn fit(&self, node: &Value) -> Result<(), Unfit> {
        for (resource, asked) in &self.asked {
            let room = quantity::milli(node["status"]["allocatable"].get(resource)).unwrap_or(0);
            let place = (name(node).to_owned(), resource.clone());
            if asked + self.taken.get(&place).copied().unwrap_or(0) > room {
                return Err(Unfit::Insufficient(resource.clone()));
            }
        }
        Ok(())
    }
}

/// Requests of a pod's containers for anything but cpu and memory, in thousandths.
fn others(pod: &Value) -> BTreeMap<String, i64> {
    let mut found = BTreeMap::new();
    for container in list(pod, "/spec/containers") {
        for (resource, amount) in map(container, "/resources/requests").into_iter().flatten() {
            if !matches!(resource.as_str(), "cpu" | "memory") {
                *found.entry(resource.clone()).or_insert(0) += quantity::milli(Some(amount)).unwrap_or(0);
            }
        }
    }
    found.retain(|_, amount| *amount > 0);
    found
}

/// The share of a node that its pods take, cpu and memory in thousandths.
#[derive(Clone, Copy, Debug, Default)]
struct NodeUsage {
    pods: i64,
    cpu: i64,
    memory: i64,
}

impl NodeUsage {
    fn add(&mut self, pod: &Attributes) {
        let sum = |field| -> i64 {
            let texts = pod.pod(field).split(',').filter(|text| !text.is_empty());
            texts.filter_map(|text| quantity::milli(Some(&Value::from(text)))).sum()
        };
        self.pods += 1;
        self.cpu += sum(PodField::Cpu);
        self.memory += sum(PodField::Memory);
    }
}

fn fits(pod: &Value, node: &Value, taken: NodeUsage) -> Result<(), Unfit> {
    if flag(node, "/spec/unschedulable") && !tolerates(pod, &unschedulable_taint()) {
        return Err(Unfit::Unschedulable);
    }
    let untolerated = list(node, "/spec/taints")
        .iter()
        .any(|taint| text(taint, "/effect") != "PreferNoSchedule" && !tolerates(pod, taint));
    if untolerated {
        return Err(Unfit::Tainted);
    }
    if !conditions::is_true(node, "Ready") {
        return Err(Unfit::NotReady);
    }
    if !selects(pod, node) {
        return Err(Unfit::Affinity);
    }
    if taken.pods >= quantity::value(node.pointer("/status/allocatable/pods")).unwrap_or(110) {
        return Err(Unfit::TooManyPods);
    }
    for (resource, used) in [("cpu", taken.cpu), ("memory", taken.memory)] {
        let asked = requested(pod, resource);
        let room = quantity::milli(node.pointer(&format!("/status/allocatable/{resource}"))).unwrap_or(0);
        if asked > 0 && asked + used > room {
            return Err(Unfit::Insufficient(resource.to_owned()));
        }
    }
    Ok(())
}

fn requested(pod: &Value, resource: &str) -> i64 {
    list(pod, "/spec/containers")
        .iter()
        .filter_map(|container| {
            quantity::milli(container.pointer(&format!("/resources/requests/{resource}")))
        })
        .sum()
}

pub(crate) fn unschedulable_taint() -> Value {
    json!({"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"})
}

/// Returns true if a pod tolerates a taint.
pub(crate) fn tolerates(pod: &Value, taint: &Value) -> bool {
    list(pod, "/spec/tolerations").iter().any(|toleration| {
        let effect = text(toleration, "/effect");
        let key = text(toleration, "/key");
        (effect.is_empty() || effect == text(taint, "/effect"))
            && (key.is_empty() || key == text(taint, "/key"))
            && match text(toleration, "/operator") {
                "Exists" => true,
                _ => !key.is_empty() && text(toleration, "/value") == text(taint, "/value"),
            }
    })
}

/// Node selector and required node affinity.
pub(crate) fn selects(pod: &Value, node: &Value) -> bool {
    let simple = map(pod, "/spec/nodeSelector").is_none_or(|labels| Selector::of_map(labels).matches(node));
    let terms =
        "/spec/affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution/nodeSelectorTerms";
    let terms = list(pod, terms);
    simple && (terms.is_empty() || terms.iter().any(|term| term_selects(term, node)))
}

fn term_selects(term: &Value, node: &Value) -> bool {
    if list(term, "/matchExpressions").is_empty() && list(term, "/matchFields").is_empty() {
        return false;
    }
    let labels = |requirement: &Value| {
        let label = meta::label(node, text(requirement, "/key"));
        requirement_holds(requirement, label)
    };
    let fields = |requirement: &Value| {
        let field = (text(requirement, "/key") == "metadata.name").then(|| name(node));
        requirement_holds(requirement, field)
    };
    list(term, "/matchExpressions").iter().all(labels) && list(term, "/matchFields").iter().all(fields)
}

#[cfg(test)]
mod tests {
    use super::{Attributes, Devices, NodeUsage, Unfit, fits, others, selects, tolerates};
    use serde_json::json;

    #[test]
    fn taints_need_tolerations() {
        let taint = json!({"key": "a", "value": "b", "effect": "NoSchedule"});
        let pod = |tolerations| json!({"spec": {"tolerations": tolerations}});
        assert!(!tolerates(&pod(json!([])), &taint));
        assert!(tolerates(&pod(json!([{"operator": "Exists"}])), &taint));
        assert!(tolerates(&pod(json!([{"key": "a", "value": "b"}])), &taint));
        assert!(!tolerates(&pod(json!([{"key": "a", "value": "c"}])), &taint));
    }

    #[test]
    fn a_node_has_the_devices_that_a_pod_asks_for() {
        let pod = json!({"spec": {"containers": [
            {"resources": {"requests": {"nvidia.com/gpu": "1", "cpu": "9k"}}},
            {"resources": {"requests": {"nvidia.com/gpu": 1, "ephemeral-storage": "0"}}}]}});
        let fit = |allocatable, taken: i64| {
            let node = json!({"metadata": {"name": "n"}, "status": {"allocatable": allocatable}});
            let place = ("n".to_owned(), "nvidia.com/gpu".to_owned());
            Devices { asked: others(&pod), taken: [(place, taken)].into() }.fit(&node)
        };
        let lacks = Err(Unfit::Insufficient("nvidia.com/gpu".to_owned()));
        assert_eq!(fit(json!({}), 0), lacks);
        assert_eq!(fit(json!({"nvidia.com/gpu": "2"}), 0), Ok(()));
        assert_eq!(fit(json!({"nvidia.com/gpu": "2"}), 1000), lacks, "another pod has one of them");
    }

    #[test]
    fn affinity_by_name_and_by_label() {
        let node = json!({"metadata": {"name": "n", "labels": {"disk": "ssd"}}});
        let affine = |term| {
            json!({"spec": {"affinity": {"nodeAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}}}})
        };
        let by_name = json!({"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n"]}]});
        assert!(selects(&affine(by_name), &node));
        let by_label = json!({"matchExpressions": [{"key": "disk", "operator": "In", "values": ["hdd"]}]});
        assert!(!selects(&affine(by_label), &node));
        assert!(!selects(&json!({"spec": {"nodeSelector": {"disk": "hdd"}}}), &node));
    }

    #[test]
    fn requests_have_to_fit() {
        let node = json!({"metadata": {"name": "n"}, "status": {
            "allocatable": {"cpu": "2", "memory": "1Gi", "pods": "10"},
            "conditions": [{"type": "Ready", "status": "True"}]}});
        let pod = |cpu| json!({"spec": {"containers": [{"resources": {"requests": {"cpu": cpu}}}]}});
        let mut taken = NodeUsage::default();
        assert_eq!(fits(&pod("2"), &node, taken), Ok(()));
        assert_eq!(fits(&pod("2100m"), &node, taken), Err(Unfit::Insufficient("cpu".to_owned())));
        taken.add(&Attributes::alone(opdev_registry::indexing("pods"), &pod("1500m")));
        assert_eq!(fits(&pod("500m"), &node, taken), Ok(()));
        assert_eq!(fits(&pod("501m"), &node, taken), Err(Unfit::Insufficient("cpu".to_owned())));
    }
}
