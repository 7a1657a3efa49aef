//! Refusals of roles and their bindings.

use super::checks::{absent, items, named, wrong_struct};
use opdev_apimachinery::error::Cause;
use opdev_apimachinery::resource::names;
use opdev_apimachinery::version::since;
use serde_json::{Value, json};

const GROUP: &str = "rbac.authorization.k8s.io";

/// A role; one of a namespace has no rules about paths.
pub fn role(object: &Value, namespaced: bool, causes: &mut Vec<Cause>) {
    for (i, rule) in items(&object["rules"]).iter().enumerate() {
        let place = format!("rules[{i}]");
        let has = |field: &str| !items(&rule[field]).is_empty();
        if !has("verbs") {
            let detail = if since(37) { "" } else { "verbs must contain at least one value" };
            causes.push(Cause::required(format!("{place}.verbs"), detail));
        }
        if has("nonResourceURLs") {
            let (field, urls) = (format!("{place}.nonResourceURLs"), &rule["nonResourceURLs"]);
            if namespaced {
                let detail = "namespaced rules cannot apply to non-resource URLs";
                causes.push(Cause::invalid(field.as_str(), urls, detail));
            }
            if has("apiGroups") || has("resources") || has("resourceNames") {
                let detail = "rules cannot apply to both regular resources and non-resource URLs";
                causes.push(Cause::invalid(field, urls, detail));
            }
            continue;
        }
        for (field, detail) in [
            ("apiGroups", "resource rules must supply at least one api group"),
            ("resources", "resource rules must supply at least one resource"),
        ] {
            if !has(field) {
                causes.push(Cause::required(format!("{place}.{field}"), detail));
            }
        }
    }
    let aggregation = &object["aggregationRule"];
    if !aggregation.is_null() && items(&aggregation["clusterRoleSelectors"]).is_empty() {
        let detail = "at least one clusterRoleSelector required if aggregationRule is non-nil";
        causes.push(Cause::required("aggregationRule.clusterRoleSelectors", detail));
    }
}

/// A binding; one of a namespace may bind roles of the namespace and of the cluster.
pub fn binding(object: &Value, namespaced: bool, causes: &mut Vec<Cause>) {
    let role = &object["roleRef"];
    let text = |field: &str| role[field].as_str().unwrap_or_default();
    if text("apiGroup") != GROUP {
        causes.push(Cause::not_supported("roleRef.apiGroup", &json!(text("apiGroup")), &[GROUP]));
    }
    let kinds: &[&str] = if namespaced { &["Role", "ClusterRole"] } else { &["ClusterRole"] };
    if !kinds.contains(&text("kind")) {
        causes.push(Cause::not_supported("roleRef.kind", &json!(text("kind")), kinds));
    }
    if absent(&role["name"]) {
        causes.push(Cause::required("roleRef.name", ""));
    } else {
        named("roleRef.name", &role["name"], names::path_segment, causes);
    }
    for (i, found) in items(&object["subjects"]).iter().enumerate() {
        subject(found, &format!("subjects[{i}]"), namespaced, causes);
    }
}

fn subject(subject: &Value, place: &str, namespaced: bool, causes: &mut Vec<Cause>) {
    let group = json!(subject["apiGroup"].as_str().unwrap_or_default());
    let field = format!("{place}.apiGroup");
    if absent(&subject["name"]) {
        causes.push(Cause::required(format!("{place}.name"), ""));
    }
    match subject["kind"].as_str().unwrap_or_default() {
        "ServiceAccount" => {
            if !absent(&subject["name"]) {
                named(&format!("{place}.name"), &subject["name"], names::subdomain, causes);
            }
            if group != "" {
                causes.push(Cause::not_supported(field, &group, &[""]));
            }
            if !namespaced && absent(&subject["namespace"]) {
                causes.push(Cause::required(format!("{place}.namespace"), ""));
            }
        }
        "User" | "Group" if group == GROUP => {}
        "User" | "Group" => causes.push(Cause::not_supported(field, &group, &[GROUP])),
        other => {
            let known = ["ServiceAccount", "User", "Group"];
            causes.push(Cause::not_supported(format!("{place}.kind"), &json!(other), &known));
        }
    }
}

/// A binding keeps its role.
pub fn binding_update(object: &Value, current: &Value, causes: &mut Vec<Cause>) {
    let role = &object["roleRef"];
    if *role != current["roleRef"] {
        let fields = [("APIGroup", &role["apiGroup"]), ("Kind", &role["kind"]), ("Name", &role["name"])];
        let detail = if since(37) { "field is immutable" } else { "cannot change roleRef" };
        causes.push(wrong_struct("roleRef", &fields, detail));
    }
}
