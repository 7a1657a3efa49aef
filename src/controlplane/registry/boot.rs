//! The objects a cluster has before anybody asks: its namespaces, the `kubernetes` Service, how its parts
//! are, the roles and bindings of a new cluster, enforced or not; and what is served because of what was
//! stored before. What controllers make (service accounts, the root CA) is theirs.

use super::accept::accept;
use super::context::Context;
use super::{Catalog, Clock, Registry, api_services, builtin, definitions, indexing, policy};
use opdev_apimachinery::error::Status;
use opdev_apimachinery::identity::User;
use opdev_apimachinery::resource::metadata;
use opdev_storage::{Expected, Key, Store, Stored};
use serde_json::{Value, json};
use std::sync::{Arc, OnceLock};

const NAMESPACES: [&str; 4] = ["default", "kube-system", "kube-public", "kube-node-lease"];

impl Registry {
    /// A registry of all built-in resources, in memory, with the system's own objects in it.
    pub fn boot(clock: Clock) -> Result<Self, Status> {
        Registry::boot_on(Store::new(indexing), clock, false)
    }

    /// A registry on a store that may hold objects already, whose custom resources are served again; with
    /// `rbac` roles decide who may do what.
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
        registry.make_priorities()?;
        registry.make_fixed()?;
        registry.rbac = rbac;
        Ok(registry)
    }

    /// Serves what stored definitions define, in the order in which they came.
    fn serve_stored(&self) {
        let mut stored = self.store.list(definitions::ID, None).items;
        stored.sort_by_key(|found| metadata::text(&found.value(), "creationTimestamp").to_owned());
        for found in stored {
            self.definition_written(&found.value());
        }
    }

    /// Makes the two priorities of what the cluster itself consists of.
    fn make_priorities(&self) -> Result<(), Status> {
        for (name, value, what) in [
            ("system-node-critical", 2_000_001_000, "must not be moved from their current node."),
            (
                "system-cluster-critical",
                2_000_000_000,
                "must run in the cluster, but can be moved to another node if necessary.",
            ),
        ] {
            let description = format!("Used for system critical pods that {what}");
            let object = json!({"metadata": {"name": name}, "value": value, "description": description});
            self.make("scheduling.k8s.io/priorityclasses", "", object)?;
        }
        Ok(())
    }

    /// Makes the roles, bindings and APIServices of a new cluster. They are worked out once for all planes of
    /// a process: they differ in nothing but ids and times.
    fn make_fixed(&self) -> Result<(), Status> {
        static MADE: OnceLock<Vec<(Arc<str>, Value)>> = OnceLock::new();
        if let Some(known) = MADE.get() {
            for (table, object) in known {
                let key = Key::new(metadata::text(object, "namespace"), metadata::text(object, "name"));
                if self.store.get(table, &key).is_none() {
                    // Nobody else writes while a registry is made.
                    let _ = self.store.put(table, &key, Expected::Absent, self.made_now(object));
                }
            }
            return Ok(());
        }
        let roles = policy::bootstrap().into_iter().map(|object| {
            let kind = object["kind"].as_str().unwrap_or_default().to_lowercase();
            (format!("{}/{kind}s", opdev_admission::authorization::GROUP), object)
        });
        let services = api_services::built_in().map(|(id, object)| (id.to_owned(), object));
        let wanted: Vec<(String, Value)> = roles.chain(services).collect();
        let (mut made, count) = (Vec::new(), wanted.len());
        for (id, object) in wanted {
            let namespace = metadata::text(&object, "namespace").to_owned();
            if let Some(new) = self.make(&id, &namespace, object)? {
                made.push((self.resource(&id)?.table.clone(), Value::clone(&new.value())));
            }
        }
        // A store that had some of them already says nothing of how new ones look.
        if made.len() == count {
            let _ = MADE.set(made);
        }
        Ok(())
    }

    /// A copy of an object of another plane, as if it had been made here and now.
    fn made_now(&self, object: &Value) -> Value {
        let (mut object, now) = (object.clone(), metadata::seconds(self.now()));
        metadata::stamp(&mut object, self.now());
        let mut list = |pointer: &str, field: &str| {
            let entries = object.pointer_mut(pointer).and_then(Value::as_array_mut);
            for entry in entries.into_iter().flatten() {
                entry[field] = Value::from(now.as_str());
            }
        };
        list("/metadata/managedFields", "time");
        // Roles have no status, and get none.
        list("/status/conditions", "lastTransitionTime");
        object
    }

    /// Makes an object that is not there yet.
    pub fn make(
        &self,
        resource: &str,
        namespace: &str,
        object: Value,
    ) -> Result<Option<Arc<Stored>>, Status> {
        let resource = self.resource(resource)?;
        let key = Key::new(namespace, metadata::text(&object, "name"));
        if self.store.get(&resource.table, &key).is_some() {
            return Ok(None);
        }
        let mut ctx = Context::new(&User::controller("kube-apiserver"), "kube-apiserver");
        // Nobody has asked for it.
        ctx.skip_admission = true;
        let object = accept(&mut ctx, &resource, object).map_err(|e| e.bad_request(&resource))?;
        self.create(&mut ctx, &resource, namespace, object).map(Some)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use opdev_apimachinery::contract::View;

    fn clock(second: i64) -> Clock {
        Arc::new(move || jiff::Timestamp::from_second(second).unwrap())
    }

    /// All roles and bindings, without what differs from plane to plane; and their uids.
    fn roles(registry: &Registry) -> (Vec<Value>, Vec<String>) {
        let kinds = ["clusterroles", "clusterrolebindings", "roles", "rolebindings"];
        let all =
            kinds.iter().flat_map(|kind| registry.list(&format!("rbac.authorization.k8s.io/{kind}"), None));
        let mut uids = Vec::new();
        let bare = all.map(|object| {
            let mut object = Value::clone(&object);
            uids.push(metadata::text(&object, "uid").to_owned());
            let meta = metadata::map_mut(&mut object);
            for field in ["uid", "resourceVersion", "creationTimestamp"] {
                assert!(meta.remove(field).is_some(), "{field}");
            }
            assert!(meta["managedFields"][0].as_object_mut().unwrap().remove("time").is_some());
            object
        });
        (bare.collect(), uids)
    }

    #[test]
    fn every_plane_has_the_roles_of_a_new_cluster_and_each_has_its_own() {
        let first = Registry::boot(clock(1_000_000_000)).unwrap();
        let second = Registry::boot(clock(2_000_000_000)).unwrap();
        let ((objects, uids), (others, other_uids)) = (roles(&first), roles(&second));
        assert_eq!(objects.len(), 141);
        assert_eq!(objects, others);
        assert!(uids.iter().all(|uid| !uid.is_empty() && !other_uids.contains(uid)));
        let admin = second.get("rbac.authorization.k8s.io/clusterroles", None, "cluster-admin").unwrap();
        assert_eq!(metadata::text(&admin, "creationTimestamp"), "2033-05-18T03:33:20Z");
        assert_eq!(admin["metadata"]["managedFields"][0]["time"], "2033-05-18T03:33:20Z");
        assert_eq!(admin["rules"][0]["verbs"], json!(["*"]));
    }
}
