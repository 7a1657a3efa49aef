//! The rules of `config/rbac/role.yaml` for one kind, as text with a heading, in the manner of the Operator
//! SDK.

use opdev_object::meta::Gvk;
use opdev_sources::created::CreatedKinds;
use opdev_types::rbac::charts::built_in_resource;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

const VERBS: [&str; 7] = ["create", "delete", "get", "list", "patch", "update", "watch"];
const RBAC: &str = "rbac.authorization.k8s.io";

/// The rules for a chart's kind: its own resource, and what the chart may create. The second value has the
/// kinds that are not built into Kubernetes; a comment stands in place of their rules.
pub(super) fn of_chart(gvk: &Gvk, plural: &str, created: &CreatedKinds) -> (String, Vec<String>) {
    let mut by_group: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    let mut unknown = Vec::new();
    for created in &created.kinds {
        match built_in_resource(created) {
            Some(resource) => {
                by_group.entry(&created.group).or_default().insert(resource);
            }
            None => unknown.push(created.to_string()),
        }
    }
    let mut out = own(gvk, plural);
    for (group, resources) in &by_group {
        rule(&mut out, group, resources, &VERBS);
    }
    // Whoever creates a role needs its rules, or these verbs.
    let roles = by_group.get(RBAC).into_iter().flatten().copied().filter(|one| one.ends_with("roles"));
    let roles: BTreeSet<&str> = roles.collect();
    if !roles.is_empty() {
        rule(&mut out, RBAC, &roles, &["bind", "escalate"]);
    }
    for kind in &unknown {
        let _ =
            writeln!(out, "# {kind} is not built into Kubernetes; add a rule with the resource of its CRD.");
    }
    (out, unknown)
}

/// The rules for a kind of Go types: what the markers of the scaffolded type ask for.
pub(super) fn of_type(gvk: &Gvk, plural: &str) -> String {
    let mut out = own(gvk, plural);
    rule(&mut out, "", &BTreeSet::from(["configmaps"]), &VERBS);
    out
}

/// The heading, and the rule for the kind itself.
fn own(gvk: &Gvk, plural: &str) -> String {
    let mut out = format!("##\n## Rules for {}/{}, Kind: {}\n##\n", gvk.group, gvk.version, gvk.kind);
    let (status, finalizers) = (format!("{plural}/status"), format!("{plural}/finalizers"));
    rule(&mut out, &gvk.group, &BTreeSet::from([plural, &status, &finalizers]), &VERBS);
    out
}

fn rule(out: &mut String, group: &str, resources: &BTreeSet<&str>, verbs: &[&str]) {
    let group = if group.is_empty() { "\"\"" } else { group };
    let _ = writeln!(out, "- apiGroups:\n  - {group}\n  resources:");
    for resource in resources {
        let _ = writeln!(out, "  - {resource}");
    }
    out.push_str("  verbs:\n");
    for verb in verbs {
        let _ = writeln!(out, "  - {verb}");
    }
}
