//! RBAC: the rules of `+kubebuilder:rbac` markers, merged into the Roles and ClusterRoles that controller-gen
//! writes to `role.yaml`. Never asks which permissions an operator needs; it only puts together what the
//! markers say.

pub mod charts;
mod merge;

use crate::emit::{Artifact, artifact};
use anyhow::Result;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

pub use merge::Merging;

/// The rule of one marker.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rule {
    /// API groups; `core` and the empty text are the core group.
    pub groups: Vec<String>,
    /// Resources, with subresources as `pods/log`.
    pub resources: Vec<String>,
    /// Names of objects; empty for all.
    pub resource_names: Vec<String>,
    /// Verbs.
    pub verbs: Vec<String>,
    /// Paths that are no resources.
    pub urls: Vec<String>,
    /// The namespace of the Role; empty for the ClusterRole.
    pub namespace: String,
    /// The name of the role; empty for the generator's.
    pub role_name: String,
}

impl Rule {
    /// The rule of a marker's arguments.
    pub fn of_marker(args: &Map<String, Value>) -> Rule {
        let text = |name: &str| args.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
        let list = |name: &str| -> Vec<String> {
            let items = args.get(name).and_then(Value::as_array);
            items.into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
        };
        Rule {
            groups: list("groups"),
            resources: list("resources"),
            resource_names: list("resourceNames"),
            verbs: list("verbs"),
            urls: list("urls"),
            namespace: text("namespace"),
            role_name: text("roleName"),
        }
    }
}

/// The roles of a project, ordered by namespace and name.
pub fn roles(rules: &[Rule], role_name: &str, merging: Merging) -> Vec<Value> {
    let mut by_role: BTreeMap<(&str, &str), Vec<Rule>> = BTreeMap::new();
    for rule in rules {
        let name = if rule.role_name.is_empty() { role_name } else { &rule.role_name };
        let role = by_role.entry((&rule.namespace, name)).or_default();
        if rule.resources.is_empty() {
            role.push(rule.clone());
        }
        for resource in &rule.resources {
            role.push(Rule { resources: vec![resource.clone()], ..rule.clone() });
        }
    }
    by_role
        .into_iter()
        .map(|((namespace, name), rules)| {
            let rules: Vec<Value> = merge::merged(rules, merging).iter().map(policy_rule).collect();
            let (kind, metadata) = if namespace.is_empty() {
                ("ClusterRole", json!({"name": name}))
            } else {
                ("Role", json!({"name": name, "namespace": namespace}))
            };
            json!({
                "apiVersion": "rbac.authorization.k8s.io/v1",
                "kind": kind,
                "metadata": metadata,
                "rules": rules,
            })
        })
        .collect()
}

/// The file with the roles; `None` where no marker asks for anything.
///
/// # Errors
/// Where a name holds characters that YAML cannot hold.
pub fn file(name: &str, roles: &[Value], header: &str) -> Result<Option<Artifact>> {
    if roles.is_empty() {
        return Ok(None);
    }
    artifact(name.to_owned(), roles, header).map(Some)
}

fn policy_rule(rule: &Rule) -> Value {
    let mut found = json!({"verbs": rule.verbs});
    for (field, values) in [
        ("apiGroups", &rule.groups),
        ("nonResourceURLs", &rule.urls),
        ("resourceNames", &rule.resource_names),
        ("resources", &rule.resources),
    ] {
        if !values.is_empty() {
            found[field] = json!(values);
        }
    }
    found
}

#[cfg(test)]
mod tests;
