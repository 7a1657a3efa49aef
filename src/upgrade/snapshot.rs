//! All objects of a control plane at one moment, by what they are called; and which of them nobody compares.
//! Pure.

use opdev_object::meta::{self, ObjectKey, ObjectRef};
use opdev_project::program::webhooks;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Objects by kind, namespace and name.
#[derive(Clone, Debug, Default)]
pub(super) struct Snapshot(pub(super) BTreeMap<ObjectKey, Arc<Value>>);

impl Snapshot {
    pub(super) fn of(objects: Vec<Value>) -> Snapshot {
        let keyed = |object: Value| Some((ObjectRef::of(&object)?.key(), Arc::new(object)));
        Snapshot(objects.into_iter().filter_map(keyed).collect())
    }

    pub(super) fn get(&self, key: &ObjectKey) -> Option<&Arc<Value>> {
        self.0.get(key)
    }

    pub(super) fn all(&self) -> Vec<Arc<Value>> {
        self.0.values().cloned().collect()
    }

    /// Returns true if an owner of the object is among them, so that it stays as long as that one.
    pub(super) fn has_owner_of(&self, object: &Value) -> bool {
        let owners = meta::owner_references(object);
        owners.iter().any(|owner| self.0.values().any(|other| meta::uid(other) == Some(owner.uid.as_str())))
    }

    /// Those that an operator has made or could have made: not what the control plane makes by itself, nor
    /// what follows from another object.
    pub(super) fn made(&self, of_new_plane: &BTreeSet<ObjectKey>) -> Snapshot {
        let of_interest =
            |(key, object): &(&ObjectKey, &Arc<Value>)| !of_new_plane.contains(*key) && !follows(key, object);
        let all = self.0.iter().filter(of_interest);
        Snapshot(all.map(|(key, object)| (key.clone(), Arc::clone(object))).collect())
    }
}

/// Objects that follow from others, or that say what has happened.
fn follows(key: &ObjectKey, object: &Value) -> bool {
    let kind = (key.group.as_str(), key.kind.as_str());
    let of_cluster = match kind.0 {
        "" => matches!(kind.1, "Event" | "Endpoints" | "Namespace" | "Node" | "PersistentVolume"),
        "events.k8s.io"
        | "discovery.k8s.io"
        | "coordination.k8s.io"
        | "metrics.k8s.io"
        | "apiregistration.k8s.io"
        | "apiextensions.k8s.io" => true,
        group => (group, kind.1) == ("apps", "ControllerRevision"),
    };
    let of_namespace = matches!(
        (key.kind.as_str(), key.name.as_str()),
        ("ConfigMap", "kube-root-ca.crt") | ("ServiceAccount", "default")
    );
    // Objects that opdev puts in the place of the project's webhooks come and go with the program.
    let of_opdev = meta::label(object, webhooks::LABEL).is_some();
    of_cluster || of_namespace || of_opdev || of_helm(object) || of_workload(object)
}

/// Helm's records of releases, and hooks, which Helm makes again by design.
fn of_helm(object: &Value) -> bool {
    let record = object.get("type").and_then(Value::as_str) == Some("helm.sh/release.v1");
    let token = object.get("type").and_then(Value::as_str) == Some("kubernetes.io/service-account-token");
    record || token || meta::annotation(object, "helm.sh/hook").is_some()
}

/// Made by a controller of the cluster for a workload.
fn of_workload(object: &Value) -> bool {
    let made_by = |kind: &str| {
        matches!(
            kind,
            "Deployment"
                | "ReplicaSet"
                | "StatefulSet"
                | "DaemonSet"
                | "Job"
                | "CronJob"
                | "ReplicationController"
        )
    };
    let controlled = meta::controller(object).is_some_and(|owner| made_by(&owner.kind));
    let kind = object.get("kind").and_then(Value::as_str).unwrap_or_default();
    controlled && matches!(kind, "Pod" | "ReplicaSet" | "Job")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_follows_from_a_workload_is_nobodys_finding() {
        let pod = |owner: &str| {
            json!({ "apiVersion": "v1", "kind": "Pod", "metadata": { "name": owner, "namespace": "a", "ownerReferences": [
                { "apiVersion": "v1", "kind": owner, "name": "x", "uid": "1", "controller": true }] } })
        };
        let secret = |name: &str, kind: &str| json!({ "apiVersion": "v1", "kind": "Secret", "metadata": { "name": name, "namespace": "a" }, "type": kind });
        let webhooks = json!({ "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration",
            "metadata": { "name": "w", "labels": { webhooks::LABEL: "shop" } } });
        let objects = vec![
            webhooks,
            pod("ReplicaSet"),
            pod("Memcached"),
            secret("a", "Opaque"),
            secret("b", "helm.sh/release.v1"),
        ];
        let made = Snapshot::of(objects).made(&BTreeSet::new());
        let names: Vec<&str> = made.0.keys().map(|key| key.name.as_str()).collect();
        assert_eq!(names, ["Memcached", "a"]);
    }
}
