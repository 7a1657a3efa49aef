//! Versions that Kubernetes has taken away, and whose objects look like those of the version that stayed:
//! programs of that time still ask for them. They are served where the user wants that.

use super::ResourceFact;
use crate::meta::Gvk;
use std::sync::atomic::{AtomicBool, Ordering};

/// A version that is gone.
#[derive(Debug)]
pub struct RemovedVersion {
    /// API group.
    pub group: &'static str,
    /// The version that is gone.
    pub version: &'static str,
    /// The version that stayed, at which objects are kept.
    pub stayed: &'static str,
    /// The resources that both have, as plurals.
    pub resources: &'static [&'static str],
}

/// All of them. Kinds that look different in the older version are left out: Ingress, EndpointSlice and
/// CustomResourceDefinition.
pub static REMOVED: [RemovedVersion; 6] = [
    of("policy", &["poddisruptionbudgets"]),
    of("batch", &["cronjobs"]),
    of("coordination.k8s.io", &["leases"]),
    of("rbac.authorization.k8s.io", &["roles", "rolebindings", "clusterroles", "clusterrolebindings"]),
    of("scheduling.k8s.io", &["priorityclasses"]),
    of("storage.k8s.io", &["storageclasses"]),
];

const fn of(group: &'static str, resources: &'static [&'static str]) -> RemovedVersion {
    RemovedVersion { group, version: "v1beta1", stayed: "v1", resources }
}

/// True if this process serves them.
static SERVED: AtomicBool = AtomicBool::new(false);

/// Makes this process serve them. It counts for the whole process, so it is said once, before a control plane
/// starts.
pub fn serve() {
    SERVED.store(true, Ordering::Relaxed);
}

/// The removed version of a group, where this is its name.
pub fn removed(group: &str, version: &str) -> Option<&'static RemovedVersion> {
    REMOVED.iter().find(|one| one.group == group && one.version == version)
}

/// The version that objects of a resource are kept at, where this one is gone.
pub fn stayed(group: &str, version: &str, resource: &str) -> Option<&'static str> {
    removed(group, version).filter(|one| one.resources.contains(&resource)).map(|one| one.stayed)
}

/// The resources with those of removed versions, where these are served.
pub(super) fn with_removed(mut resources: Vec<ResourceFact>) -> Vec<ResourceFact> {
    if SERVED.load(Ordering::Relaxed) {
        resources.extend(old(&resources));
    }
    resources
}

fn old(resources: &[ResourceFact]) -> Vec<ResourceFact> {
    let of = |fact: &ResourceFact| {
        let is_its = |one: &&RemovedVersion| {
            one.group == fact.group && one.stayed == fact.version && one.resources.contains(&&*fact.resource)
        };
        let version = REMOVED.iter().find(is_its)?.version;
        Some(ResourceFact { version: version.to_owned(), ..fact.clone() })
    };
    resources.iter().filter_map(of).collect()
}

/// The kind whose definition one of a removed version shares.
pub(super) fn now(gvk: &Gvk) -> Option<Gvk> {
    // Every custom resource comes here: nothing is made for it.
    if !SERVED.load(Ordering::Relaxed) {
        return None;
    }
    let stayed = stayed(&gvk.group, &gvk.version, &crate::api_path::plural(&gvk.kind))?;
    Some(Gvk::new(&*gvk.group, stayed, &*gvk.kind))
}

#[cfg(test)]
mod tests {
    use super::super::facts;
    use super::*;

    #[test]
    fn each_resource_of_a_removed_version_is_one_of_the_version_that_stayed() {
        let resources = facts().resources();
        let old = old(resources);
        assert_eq!(old.len(), REMOVED.iter().map(|one| one.resources.len()).sum::<usize>());
        for fact in &old {
            let there = |one: &ResourceFact| one.group == fact.group && one.version == fact.version;
            assert!(
                !resources.iter().any(|one| there(one) && one.resource == fact.resource),
                "{} is served anyway",
                fact.gvk()
            );
        }
        let budgets = stayed("policy", "v1beta1", "poddisruptionbudgets");
        assert_eq!((budgets, now(&Gvk::new("policy", "v1beta1", "PodDisruptionBudget"))), (Some("v1"), None));
        assert_eq!(stayed("storage.k8s.io", "v1beta1", "volumeattributesclasses"), None);
    }
}
