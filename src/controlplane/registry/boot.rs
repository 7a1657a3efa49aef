//! The objects a cluster has before anybody asks: its namespaces, the `kubernetes` Service, how its parts are and,
//! where they are enforced, the roles and bindings of a new cluster; and what is served because of what was stored
//! before.
//! What controllers make (service accounts, the root CA) is theirs.

use super::accept::accept;
use super::context::Context;
use super::{Catalog, Clock, Registry, builtin, definitions, metadata, policy};
use crate::error::Status;
use crate::identity::User;
use crate::storage::{Key, Store};
use serde_json::{Value, json};

const NAMESPACES: [&str; 4] = ["default", "kube-system", "kube-public", "kube-node-lease"];

impl Registry {
    /// A registry of all built-in resources, in memory, with the system's own objects in it.
    pub fn boot(clock: Clock) -> Result<Self, Status> {
        Registry::boot_on(Store::default(), clock, false)
    }

    /// The same on a store that may hold objects already, whose custom resources are served again; with `rbac` roles
    /// decide who may do what, and those of a new cluster are there.
    pub fn boot_on(store: Store, clock: Clock, rbac: bool) -> Result<Self, Status> {
        let mut registry = Registry::new(store, Catalog::new(builtin::resources()), clock);
        registry.serve_stored();
        for name in NAMESPACES {
            registry.make("namespaces", "", json!({"metadata": {"name": name}}))?;
        }
        let service = json!({
            "metadata": {"name": "kubernetes", "labels": {"component": "apiserver", "provider": "kubernetes"}},
            "spec": {"type": "ClusterIP", "clusterIP": "10.96.0.1",
                "ports": [{"name": "https", "port": 443, "protocol": "TCP", "targetPort": 6443}]},
        });
        registry.make("services", "default", service)?;
        for name in ["controller-manager", "etcd-0", "scheduler"] {
            let healthy = json!([{"type": "Healthy", "status": "True", "message": "ok"}]);
            registry.make(
                "componentstatuses",
                "",
                json!({"metadata": {"name": name}, "conditions": healthy}),
            )?;
        }
        if rbac {
            for object in policy::bootstrap() {
                let kind = object["kind"].as_str().unwrap_or_default().to_lowercase();
                let namespace = object["metadata"]["namespace"].as_str().unwrap_or_default().to_owned();
                registry.make(&format!("{}/{kind}s", crate::authorization::GROUP), &namespace, object)?;
            }
        }
        registry.rbac = rbac;
        Ok(registry)
    }

    /// Serves what stored definitions define, in the order in which they came.
    fn serve_stored(&self) {
        let mut stored = self.store.list(definitions::ID, None).items;
        stored.sort_by_key(|found| metadata::text(&found.value, "creationTimestamp").to_owned());
        for found in stored {
            self.definition_written(&found.value);
        }
    }

    /// Makes an object that is not there yet.
    fn make(&self, resource: &str, namespace: &str, object: Value) -> Result<(), Status> {
        let resource = self.resource(resource)?;
        let key = Key::new(namespace, metadata::text(&object, "name"));
        if self.store.get(&resource.table, &key).is_some() {
            return Ok(());
        }
        let mut ctx = Context::new(&User::controller("kube-apiserver"), "kube-apiserver");
        let object = accept(&mut ctx, &resource, object).map_err(|e| e.bad_request(&resource))?;
        self.create(&mut ctx, &resource, namespace, object).map(|_| ())
    }
}
