//! ClusterRoles that are made of others: `aggregationRule` gathers the rules of whatever its selectors match.
//! Never touches a role without one.

use super::fields::{list, name, put};
use super::selector::Selector;
use crate::contract::{Actor, Change, Controller, Key, Sync, View, Write};
use jiff::Timestamp;
use serde_json::Value;
use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

/// See the module.
#[derive(Default)]
pub(crate) struct ClusterRoleAggregation {
    /// The names of the roles with an `aggregationRule`. To read all roles for each change of one takes too
    /// long: a start makes seventy roles.
    aggregated: Mutex<BTreeSet<String>>,
}

const RESOURCE: &str = "rbac.authorization.k8s.io/clusterroles";
const SELECTORS: &str = "/aggregationRule/clusterRoleSelectors";

impl Controller for ClusterRoleAggregation {
    fn name(&self) -> &'static str {
        "clusterrole-aggregation-controller"
    }

    fn actor(&self) -> Actor {
        Actor {
            user: "system:serviceaccount:kube-system:clusterrole-aggregation-controller",
            field_manager: "clusterrole-aggregation-controller",
        }
    }

    /// Any role may be part of any other: all that gather are looked at again.
    fn keys(&self, _view: &dyn View, change: &Change) -> Vec<Key> {
        let Some(role) = change.object().filter(|_| change.resource == RESOURCE) else { return Vec::new() };
        let mut aggregated = self.aggregated.lock().unwrap_or_else(PoisonError::into_inner);
        if change.after.is_some() && !list(role, SELECTORS).is_empty() {
            aggregated.insert(role.name().to_owned());
        } else {
            aggregated.remove(role.name());
        }
        aggregated.iter().map(|name| Key::new(RESOURCE, None, name)).collect()
    }

    fn sync(&self, view: &dyn View, key: &Key, _now: Timestamp) -> Sync {
        let Some(role) = key.read(view) else { return Sync::done() };
        let selectors: Vec<Selector> =
            list(&role, SELECTORS).iter().filter_map(|selector| Selector::parse(Some(selector))).collect();
        if selectors.is_empty() {
            return Sync::done();
        }
        let roles = view.list(RESOURCE, None);
        let mut rules: Vec<Value> = Vec::new();
        for selector in &selectors {
            for part in roles.iter().filter(|part| name(part) != name(&role) && selector.matches(part)) {
                for rule in list(part, "/rules") {
                    if !rules.contains(rule) {
                        rules.push(rule.clone());
                    }
                }
            }
        }
        if list(&role, "/rules") == rules {
            return Sync::done();
        }
        let mut object = Value::clone(&role);
        put(&mut object, "/rules", Value::Array(rules));
        Sync { writes: vec![Write::Update { resource: RESOURCE.into(), object }], ..Sync::default() }
    }
}
