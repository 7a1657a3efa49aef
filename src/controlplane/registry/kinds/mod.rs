//! The strategies of all built-in kinds, a file for each group of them. A kind that is not here has the
//! common strategy.
//!
//! To add a kind: its row in one of these files (or in a new one, named in the two lists below), with what
//! differs from `Strategy::COMMON`; the functions of the row stand below it. What discovery and the schema
//! say comes from the facts.

mod admission;
mod autoscaling;
mod batch;
mod certificates;
mod cluster;
mod config;
mod definitions;
mod events;
pub(super) mod families;
mod networking;
mod pods;
mod rbac;
mod scheduling;
mod services;
mod storage;
mod workloads;

use super::strategy::{COMMON, Strategy};
use opdev_apimachinery::attributes::Indexing;
use opdev_apimachinery::quota::Consumer;

/// All files.
static FILES: [&[Strategy]; 15] = [
    admission::ALL,
    autoscaling::ALL,
    batch::ALL,
    certificates::ALL,
    cluster::ALL,
    config::ALL,
    definitions::ALL,
    events::ALL,
    networking::ALL,
    pods::ALL,
    rbac::ALL,
    scheduling::ALL,
    services::ALL,
    storage::ALL,
    workloads::ALL,
];

/// The strategy of a kind. Asked once for each resource, when the catalog is made.
pub(super) fn find(id: &str) -> Option<&'static Strategy> {
    FILES.iter().copied().flatten().find(|strategy| strategy.id == id)
}

/// How the objects of a table are found. Asked once for each table, when its first object is stored.
pub fn indexing(table: &str) -> &'static Indexing {
    let mut all = FILES.iter().copied().flatten();
    let found = all.find(|strategy| strategy.table.unwrap_or(strategy.id) == table);
    &found.unwrap_or(&COMMON).indexing
}

/// The kinds with what their objects use of quotas.
pub fn consumers() -> impl Iterator<Item = Consumer<'static>> + Clone {
    let all = FILES.iter().copied().flatten();
    all.map(|strategy| Consumer { resource: strategy.id, evaluator: &strategy.quota })
}

#[cfg(test)]
mod tests {
    use super::*;
    use opdev_object::facts::facts;
    use std::collections::BTreeSet;

    #[test]
    fn each_strategy_is_that_of_one_kind_which_the_facts_know() {
        let resources = facts().resources().iter();
        let known: BTreeSet<String> = resources
            .map(|fact| opdev_apimachinery::resource::resource_id(&fact.group, &fact.resource))
            .collect();
        let mut seen = BTreeSet::new();
        for strategy in FILES.iter().copied().flatten() {
            assert!(known.contains(strategy.id), "{} is not in the facts", strategy.id);
            assert!(seen.insert(strategy.id), "{} has two strategies", strategy.id);
        }
    }
    #[test]
    fn one_kind_uses_a_name_of_a_quota() {
        for (name, kind) in [
            ("pods", "pods"),
            ("secrets", "secrets"),
            ("cpu", "pods"),
            ("requests.memory", "pods"),
            ("hugepages-2Mi", "pods"),
            ("services.nodeports", "services"),
            ("requests.storage", "persistentvolumeclaims"),
            ("gold.storageclass.storage.k8s.io/requests.storage", "persistentvolumeclaims"),
            ("count/pods", "pods"),
            ("count/deployments.apps", "apps/deployments"),
        ] {
            let users: Vec<&str> =
                consumers().filter(|kind| kind.uses(name)).map(|kind| kind.resource).collect();
            assert_eq!(users, [kind], "{name}");
        }
    }
}
