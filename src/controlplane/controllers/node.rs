//! The simulated node: ready, roomy, with a lease that is renewed.
//! Never runs pods; `kubelet` does.

use super::conditions::{self, NewCondition};
use super::fields::{self, micro_stamp, name, put, stamp, text, uid, with_status};
use crate::contract::{Actor, Change, Controller, Key, Sync, View, Write};
use jiff::Timestamp;
use opdev_apimachinery::version::{architecture, git_version};
use serde_json::{Map, Value, json};

/// Address of the simulated node.
pub(crate) const NODE_ADDRESS: &str = "172.18.0.2";

/// The simulated node itself and its lease.
pub(crate) struct Node {
    pub(crate) node: String,
}

const RENEW_EVERY: i64 = 10;

impl Controller for Node {
    fn name(&self) -> &'static str {
        "kubelet"
    }

    fn actor(&self) -> Actor {
        Actor { user: "system:node:opdev", field_manager: "kubelet" }
    }

    fn seeds(&self) -> Vec<Key> {
        vec![Key::new("nodes", None, &self.node)]
    }

    fn keys(&self, _view: &dyn View, change: &Change) -> Vec<Key> {
        let ours = change.object().is_some_and(|object| match change.resource.as_str() {
            "nodes" => object.name() == self.node,
            "namespaces" => object.name() == "kube-node-lease",
            _ => false,
        });
        if ours { self.seeds() } else { Vec::new() }
    }

    fn sync(&self, view: &dyn View, key: &Key, now: Timestamp) -> Sync {
        let mut sync = Sync::done();
        sync.again(std::time::Duration::from_secs(RENEW_EVERY as u64));
        let Some(node) = key.read(view) else {
            sync.writes.push(Write::Create { resource: "nodes".into(), object: new_node(&self.node) });
            return sync;
        };
        let status = node_status(&node, &self.node, now);
        if status != fields::status(&node) {
            let object = with_status(&node, status);
            sync.writes.push(Write::UpdateStatus { resource: "nodes".into(), object });
        }
        if view.get("namespaces", None, "kube-node-lease").is_some() {
            sync.writes.extend(renew(view, &node, now));
        }
        sync
    }
}

fn renew(view: &dyn View, node: &Value, now: Timestamp) -> Option<Write> {
    const LEASES: &str = "coordination.k8s.io/leases";
    match view.get(LEASES, Some("kube-node-lease"), name(node)) {
        None => Some(Write::Create {
            resource: LEASES.into(),
            object: json!({
                "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
                "metadata": {"name": name(node), "namespace": "kube-node-lease", "ownerReferences": [
                    {"apiVersion": "v1", "kind": "Node", "name": name(node), "uid": uid(node)}]},
                "spec": {"holderIdentity": name(node), "leaseDurationSeconds": 40, "renewTime": micro_stamp(now)},
            }),
        }),
        Some(lease) => {
            let renewed = fields::time(&lease, "/spec/renewTime");
            if renewed.is_some_and(|at| fields::seconds_between(at, now) < RENEW_EVERY) {
                return None;
            }
            let mut lease = Value::clone(&lease);
            put(&mut lease, "/spec/renewTime", micro_stamp(now).into());
            Some(Write::Update { resource: LEASES.into(), object: lease })
        }
    }
}

fn new_node(node: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Node",
        "metadata": {
            "name": node,
            "labels": {
                "kubernetes.io/hostname": node, "kubernetes.io/os": "linux",
                "kubernetes.io/arch": architecture(), "beta.kubernetes.io/os": "linux",
                "beta.kubernetes.io/arch": architecture(), "node-role.kubernetes.io/control-plane": "",
            },
            "annotations": {"node.alpha.kubernetes.io/ttl": "0"},
        },
        "spec": {"podCIDR": "10.244.0.0/16", "podCIDRs": ["10.244.0.0/16"], "providerID": format!("opdev://{node}")},
    })
}

fn node_status(node: &Value, node_name: &str, now: Timestamp) -> Map<String, Value> {
    let mut status = fields::status(node);
    // There is one node. A rollout of a thousand custom resources has two pods of each for a while.
    let resources = json!({
        "cpu": "1k", "memory": "4Ti", "ephemeral-storage": "16Ti", "pods": "10k",
        "hugepages-1Gi": "0", "hugepages-2Mi": "0",
    });
    status.insert("capacity".into(), resources.clone());
    status.insert("allocatable".into(), resources);
    status.insert(
        "addresses".into(),
        json!([{"type": "InternalIP", "address": NODE_ADDRESS}, {"type": "Hostname", "address": node_name}]),
    );
    status.insert("daemonEndpoints".into(), json!({"kubeletEndpoint": {"Port": 10250}}));
    if text(node, "/status/nodeInfo/kubeletVersion").is_empty() {
        status.insert("nodeInfo".into(), node_info(uid(node)));
    }
    for (kind, value, reason, message) in [
        ("MemoryPressure", "False", "KubeletHasSufficientMemory", "kubelet has sufficient memory available"),
        ("DiskPressure", "False", "KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
        ("PIDPressure", "False", "KubeletHasSufficientPID", "kubelet has sufficient PID available"),
        ("Ready", "True", "KubeletReady", "kubelet is posting ready status"),
    ] {
        let says = NewCondition { kind, status: value, reason, message };
        let beats = conditions::find(&status, kind).map(|c| text(c, "/lastHeartbeatTime").to_owned());
        conditions::set(&mut status, says, now);
        let stale = beats
            .and_then(|at| at.parse::<Timestamp>().ok())
            .is_none_or(|at| fields::seconds_between(at, now) >= 300);
        if let Some(Value::Array(all)) = status.get_mut("conditions")
            && let Some(condition) = all.iter_mut().find(|c| text(c, "/type") == kind)
            && stale
        {
            put(condition, "/lastHeartbeatTime", stamp(now).into());
        }
    }
    status
}

fn node_info(id: &str) -> Value {
    json!({
        "architecture": architecture(), "operatingSystem": "linux", "kubeletVersion": git_version(),
        "kubeProxyVersion": "", "containerRuntimeVersion": "opdev://1", "osImage": "opdev (simulated)",
        "kernelVersion": "0.0.0", "machineID": id.replace('-', ""), "systemUUID": id, "bootID": id,
    })
}
