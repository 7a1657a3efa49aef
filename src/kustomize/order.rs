//! The order in which objects are printed: namespaces and CRDs first, webhook configurations last, unless
//! `sortOptions` says otherwise.

use crate::error::KustomizationError;
use crate::kustomization::SortOptions;
use crate::resource::{Id, Resource};
use opdev_object::meta::Gvk;
use std::collections::BTreeMap;

const FIRST: [&str; 22] = [
    "Namespace",
    "ResourceQuota",
    "StorageClass",
    "CustomResourceDefinition",
    "ServiceAccount",
    "PodSecurityPolicy",
    "Role",
    "ClusterRole",
    "RoleBinding",
    "ClusterRoleBinding",
    "ConfigMap",
    "Secret",
    "Endpoints",
    "Service",
    "LimitRange",
    "PriorityClass",
    "PersistentVolume",
    "PersistentVolumeClaim",
    "Deployment",
    "StatefulSet",
    "CronJob",
    "PodDisruptionBudget",
];
const LAST: [&str; 2] = ["MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"];

/// Sorts the objects.
pub(crate) fn sort(
    resources: &mut [Resource],
    options: Option<&SortOptions>,
) -> Result<(), KustomizationError> {
    let (first, last): (Vec<&str>, Vec<&str>) = match options {
        None => (FIRST.to_vec(), LAST.to_vec()),
        Some(options) => match (options.order.as_str(), &options.legacy_sort_options) {
            ("fifo", None) => return Ok(()),
            ("fifo", Some(_)) => return Err(KustomizationError::LegacySortOptions),
            ("legacy", None) => (FIRST.to_vec(), LAST.to_vec()),
            ("legacy", Some(own)) => (
                own.order_first.iter().map(String::as_str).collect(),
                own.order_last.iter().map(String::as_str).collect(),
            ),
            (order, _) => return Err(KustomizationError::Order { order: order.to_owned() }),
        },
    };
    let mut ranks = BTreeMap::new();
    for (at, kind) in first.iter().rev().enumerate() {
        ranks.insert(*kind, -1 - i64::try_from(at).unwrap_or(i64::MAX - 1));
    }
    for (at, kind) in last.iter().enumerate() {
        ranks.insert(*kind, 1 + i64::try_from(at).unwrap_or(i64::MAX - 1));
    }
    resources.sort_by_cached_key(|resource| {
        let id = resource.id();
        (ranks.get(id.gvk.kind.as_str()).copied().unwrap_or(0), kind_key(&id.gvk), name_key(&id))
    });
    Ok(())
}

fn or<'a>(text: &'a str, none: &'a str) -> &'a str {
    if text.is_empty() { none } else { text }
}

/// `~` comes after letters.
fn kind_key(gvk: &Gvk) -> String {
    format!("{}_{}_{}", or(&gvk.group, "~G"), or(&gvk.version, "~V"), or(&gvk.kind, "~K"))
}

fn name_key(id: &Id) -> String {
    format!("{}|{}", or(&id.namespace, "~X"), or(&id.name, "~N"))
}
