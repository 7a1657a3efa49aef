//! The order of groups and versions: kubectl resolves a short name to the first that has it, so order is
//! behaviour. Built-in groups stand as an API server lists them, custom ones behind, by name.

use crate::resource::Resource;
use std::cmp::{Ordering, Reverse};
use std::sync::Arc;

/// One group with its versions, preferred first.
pub(crate) struct Group {
    pub(crate) name: String,
    pub(crate) versions: Vec<(String, Vec<Arc<Resource>>)>,
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

/// Kubernetes' priority of versions: `v10` over `v2` over `v11beta2` over `v3alpha1` over anything else.
pub(crate) fn compare_versions(a: &str, b: &str) -> Ordering {
    match (parts(a), parts(b)) {
        (Some(a), Some(b)) => a.cmp(&b),
        (Some(_), None) => Ordering::Greater,
        (None, Some(_)) => Ordering::Less,
        (None, None) => Reverse(a).cmp(&Reverse(b)),
    }
}

/// Stability, major, minor of `v<major>[alpha|beta<minor>]`.
fn parts(version: &str) -> Option<(u8, u32, u32)> {
    let rest = version.strip_prefix('v')?;
    let digits = rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let major = rest[..digits].parse().ok()?;
    let rest = &rest[digits..];
    if rest.is_empty() {
        return Some((2, major, 0));
    }
    let (stability, minor) = match rest.strip_prefix("beta") {
        Some(minor) => (1, minor),
        None => (0, rest.strip_prefix("alpha")?),
    };
    Some((stability, major, minor.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_sort_as_the_documentation_lists_them() {
        let expected =
            ["v10", "v2", "v1", "v11beta2", "v10beta3", "v3beta1", "v12alpha1", "v11alpha2", "foo1", "foo10"];
        let mut versions = expected;
        versions.reverse();
        versions.sort_by(|a, b| compare_versions(b, a));
        assert_eq!(versions, expected);
    }
}
