//! The objects a cluster has before anybody asks: its namespaces and the `kubernetes` Service.
//! What controllers make (service accounts, the root CA) is theirs.

use super::accept::accept;
use super::context::Context;
use super::{Catalog, Clock, Registry, builtin};
use crate::error::Status;
use crate::identity::User;
use serde_json::{Value, json};

const NAMESPACES: [&str; 4] = ["default", "kube-system", "kube-public", "kube-node-lease"];

impl Registry {
    /// A registry of all built-in resources with the system's own objects in it.
    pub fn boot(clock: Clock) -> Result<Self, Status> {
        let registry = Registry::new(Catalog::new(builtin::resources()), clock);
        for name in NAMESPACES {
            registry.make("namespaces", "", json!({"metadata": {"name": name}}))?;
        }
        let service = json!({
            "metadata": {"name": "kubernetes", "labels": {"component": "apiserver", "provider": "kubernetes"}},
            "spec": {"type": "ClusterIP", "clusterIP": "10.96.0.1",
                "ports": [{"name": "https", "port": 443, "protocol": "TCP", "targetPort": 6443}]},
        });
        registry.make("services", "default", service)?;
        Ok(registry)
    }

    fn make(&self, resource: &str, namespace: &str, object: Value) -> Result<(), Status> {
        let mut ctx = Context::new(&User::controller("kube-apiserver"), "kube-apiserver");
        let resource = self.resource(resource)?;
        let object = accept(&mut ctx, &resource, object).map_err(|e| e.bad_request(&resource))?;
        self.create(&mut ctx, &resource, namespace, object).map(|_| ())
    }
}
