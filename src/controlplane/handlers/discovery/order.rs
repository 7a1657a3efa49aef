//! The order of groups and versions: kubectl resolves a short name to the first that has it, so order is
//! behaviour. Built-in groups stand as an API server lists them, custom ones behind, by name.

use opdev_apimachinery::resource::{Resource, compare_versions};
use std::sync::Arc;

/// One group with its versions, preferred first.
pub(crate) struct Group {
    pub name: String,
    pub versions: Vec<(String, Vec<Arc<Resource>>)>,
}

const BUILT_IN: [&str; 22] = [
    "",
    "apiregistration.k8s.io",
    "apps",
    "events.k8s.io",
    "authentication.k8s.io",
    "authorization.k8s.io",
    "autoscaling",
    "batch",
    "certificates.k8s.io",
    "networking.k8s.io",
    "policy",
    "rbac.authorization.k8s.io",
    "storage.k8s.io",
    "admissionregistration.k8s.io",
    "apiextensions.k8s.io",
    "scheduling.k8s.io",
    "coordination.k8s.io",
    "node.k8s.io",
    "discovery.k8s.io",
    "resource.k8s.io",
    "flowcontrol.apiserver.k8s.io",
    "storagemigration.k8s.io",
];

/// Sorts served resources into groups and versions.
pub(crate) fn groups(resources: &[Arc<Resource>]) -> Vec<Group> {
    let mut groups: Vec<Group> = Vec::new();
    for resource in resources {
        let group = match groups.iter_mut().position(|group| group.name == resource.group) {
            Some(at) => &mut groups[at],
            None => {
                groups.push(Group { name: resource.group.clone(), versions: Vec::new() });
                let last = groups.len() - 1;
                &mut groups[last]
            }
        };
        match group.versions.iter_mut().find(|(version, _)| *version == resource.version) {
            Some((_, list)) => list.push(resource.clone()),
            None => group.versions.push((resource.version.clone(), vec![resource.clone()])),
        }
    }
    for group in &mut groups {
        group.versions.sort_by(|(a, _), (b, _)| compare_versions(b, a));
        for (_, list) in &mut group.versions {
            list.sort_by(|a, b| a.plural.cmp(&b.plural));
        }
    }
    let place =
        |group: &Group| BUILT_IN.iter().position(|name| *name == group.name).unwrap_or(BUILT_IN.len());
    groups.sort_by(|a, b| place(a).cmp(&place(b)).then_with(|| a.name.cmp(&b.name)));
    groups
}
