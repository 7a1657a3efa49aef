//! The addresses of simulated pods. Several pods may start at once, so what was given to a pod counts before
//! it is written.

use crate::contract::View;
use opdev_apimachinery::attributes::{Lookup, PodField};
use std::collections::{BTreeSet, HashMap, HashSet};
use std::net::Ipv4Addr;
use std::sync::{Mutex, PoisonError};

/// The addresses that were given and are not written yet, by the uid of the pod.
#[derive(Debug, Default)]
pub(crate) struct Addresses(Mutex<HashMap<String, u32>>);

impl Addresses {
    /// The lowest address of 10.244.0.0/16 that no living pod has or was given. A pod that asks again gets
    /// the same one.
    pub(super) fn give(&self, view: &dyn View, uid: &str) -> String {
        let mut given = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut taken: BTreeSet<u32> = BTreeSet::new();
        // The pods to which an address was given and which have none yet. The others are gone, or have it.
        let mut waiting: HashSet<String> = HashSet::new();
        view.each(
            "pods",
            None,
            &Lookup::All,
            &mut |pod| match pod.pod(PodField::Address).parse::<Ipv4Addr>() {
                Ok(address) if !pod.pod_finished() => _ = taken.insert(address.into()),
                Err(_) if given.contains_key(pod.uid()) => _ = waiting.insert(pod.uid().to_owned()),
                _ => {}
            },
        );
        given.retain(|uid, _| waiting.contains(uid));
        taken.extend(given.iter().filter(|(other, _)| *other != uid).map(|(_, address)| *address));
        let first = u32::from(Ipv4Addr::new(10, 244, 0, 2));
        let last = u32::from(Ipv4Addr::new(10, 244, 255, 254));
        let own = given.get(uid).copied().filter(|own| !taken.contains(own));
        let free = || (first..=last).find(|address| !taken.contains(address)).unwrap_or(last);
        let address = own.unwrap_or_else(free);
        given.insert(uid.to_owned(), address);
        Ipv4Addr::from(address).to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contract::{Actor, Write};
    use crate::engine::Plane as _;
    use crate::tests::simulation::Simulation;
    use serde_json::json;

    #[test]
    fn an_address_is_given_once_and_comes_back_with_its_pod() {
        let cluster = Simulation::new();
        let actor = Actor { user: "test", field_manager: "test" };
        let make = |name: &str| {
            let object = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": "default"}});
            let made =
                cluster.memory.write(actor, &Write::Create { resource: "pods".into(), object }).unwrap();
            made["metadata"]["uid"].as_str().unwrap().to_owned()
        };
        let (a, b, c) = (make("a"), make("b"), make("c"));
        let addresses = Addresses::default();
        let give = |uid: &str| addresses.give(&cluster.memory, uid);
        assert_eq!(
            (give(&a), give(&b), give(&a)),
            ("10.244.0.2".into(), "10.244.0.3".into(), "10.244.0.2".into())
        );
        // An address that is written counts, whoever wrote it.
        let patch = json!({"status": {"podIP": "10.244.0.3"}});
        let write = |name: &str| Write::Patch {
            resource: "pods".into(),
            namespace: Some("default".into()),
            name: name.into(),
            patch: patch.clone(),
        };
        cluster.memory.write(actor, &write("c")).unwrap();
        assert_eq!(give(&b), "10.244.0.4");
        // A pod that went before it had its address leaves it.
        let (resource, namespace, name) = ("pods".into(), Some("default".into()), "a".into());
        let delete =
            Write::Delete { resource, namespace, name, uid: None, propagation: None, grace: Some(0) };
        cluster.memory.write(actor, &delete).unwrap();
        assert_eq!(give(&make("d")), "10.244.0.2");
        assert_eq!(addresses.0.lock().unwrap().len(), 2, "b and d: {c} has one");
    }
}
