//! Objects that every namespace has: the `default` ServiceAccount and the ConfigMap `kube-root-ca.crt`. Never
//! touches a namespace that is going away.

use super::fields::{deleting, map, put, text};
use crate::contract::{Actor, Change, Controller, Key, Sync, View, Write};
use jiff::Timestamp;
use serde_json::{Value, json};

/// Makes the `default` ServiceAccount.
pub(crate) struct DefaultServiceAccount;

/// Publishes the CA of the API server.
pub(crate) struct RootCa {
    pub certificate: String,
}

/// The namespace of a changed object of that name, or the changed namespace itself.
fn namespace_key(change: &Change, resource: &str, wanted: &str) -> Vec<Key> {
    let Some(object) = change.object() else { return Vec::new() };
    match change.resource.as_str() {
        "namespaces" => change.key().into_iter().collect(),
        other if other == resource && object.name() == wanted => {
            object.namespace().map(|namespace| Key::new("namespaces", None, namespace)).into_iter().collect()
        }
        _ => Vec::new(),
    }
}

fn active(view: &dyn View, key: &Key) -> bool {
    key.read(view)
        .is_some_and(|namespace| !deleting(&namespace) && text(&namespace, "/status/phase") != "Terminating")
}

impl Controller for DefaultServiceAccount {
    fn name(&self) -> &'static str {
        "service-account-controller"
    }

    fn actor(&self) -> Actor {
        Actor::kube_controller_manager("system:serviceaccount:kube-system:service-account-controller")
    }

    fn keys(&self, _view: &dyn View, change: &Change) -> Vec<Key> {
        namespace_key(change, "serviceaccounts", "default")
    }

    fn sync(&self, view: &dyn View, key: &Key, _now: Timestamp) -> Sync {
        if !active(view, key) || view.get("serviceaccounts", Some(&key.name), "default").is_some() {
            return Sync::done();
        }
        let object = json!({
            "apiVersion": "v1", "kind": "ServiceAccount",
            "metadata": {"name": "default", "namespace": key.name},
        });
        Sync { writes: vec![Write::Create { resource: "serviceaccounts".into(), object }], ..Sync::default() }
    }
}

const ROOT_CA: &str = "kube-root-ca.crt";
const DESCRIPTION: &str = "Contains a CA bundle that can be used to verify the kube-apiserver when using internal endpoints such as the internal service IP or kubernetes.default.svc. No other usage is guaranteed across distributions of Kubernetes clusters.";

impl Controller for RootCa {
    fn name(&self) -> &'static str {
        "root-ca-certificate-publisher"
    }

    fn actor(&self) -> Actor {
        Actor::kube_controller_manager("system:serviceaccount:kube-system:root-ca-cert-publisher")
    }

    fn keys(&self, _view: &dyn View, change: &Change) -> Vec<Key> {
        namespace_key(change, "configmaps", ROOT_CA)
    }

    fn sync(&self, view: &dyn View, key: &Key, _now: Timestamp) -> Sync {
        if !active(view, key) {
            return Sync::done();
        }
        let data = json!({"ca.crt": self.certificate});
        let write = match view.get("configmaps", Some(&key.name), ROOT_CA) {
            None => Write::Create {
                resource: "configmaps".into(),
                object: json!({
                    "apiVersion": "v1", "kind": "ConfigMap",
                    "metadata": {"name": ROOT_CA, "namespace": key.name,
                        "annotations": {"kubernetes.io/description": DESCRIPTION}},
                    "data": data,
                }),
            },
            Some(existing) if map(&existing, "/data") != data.as_object() => {
                let mut object = Value::clone(&existing);
                put(&mut object, "/data", data);
                Write::Update { resource: "configmaps".into(), object }
            }
            Some(_) => return Sync::done(),
        };
        Sync { writes: vec![write], ..Sync::default() }
    }
}
