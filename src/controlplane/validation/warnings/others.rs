//! Warnings of kinds that have one or two each.

use super::told::{Warnings, annotations, old_labels};
use crate::certificates::unusable_pair;
use crate::items;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use opdev_apimachinery::resource::{names, quantity};
use opdev_apimachinery::version::since;
use serde_json::Value;

/// Finalizers without a domain.
pub fn finalizers(told: &mut Warnings, object: &Value, current: Option<&Value>) {
    let known = current.map(opdev_object::meta::finalizers).unwrap_or_default();
    let standard = ["orphan", "foregroundDeletion", "kubernetes"];
    for name in opdev_object::meta::finalizers(object) {
        if !name.contains('/') && !standard.contains(&name) && !known.contains(&name) {
            told.warn(format!(
                "metadata.finalizers: {name:?}: prefer a domain-qualified finalizer name to avoid accidental conflicts with other finalizer writers"
            ));
        }
    }
}

/// Warns of a RuntimeClass that chooses nodes by old labels.
pub fn runtime_class(told: &mut Warnings, object: &Value, _current: Option<&Value>) {
    for (_, advice) in old_labels(&object["scheduling"]["nodeSelector"]) {
        told.warn(format!("scheduling.nodeSelector: {advice}"));
    }
}

/// Warns of a ServiceAccount that begins to limit its secrets.
pub fn service_account(told: &mut Warnings, object: &Value, current: Option<&Value>) {
    const LIMITED: &str = "kubernetes.io/enforce-mountable-secrets";
    let limited = |account: &Value| !account["metadata"]["annotations"][LIMITED].is_null();
    if !current.is_some_and(limited) {
        let advice = "deprecated in v1.32+; prefer separate namespaces to isolate access to mounted secrets";
        annotations(told, "metadata.annotations", &object["metadata"], &[(LIMITED, advice)]);
    }
}

/// Warns of a Secret for TLS whose texts are not in PEM.
pub fn secret(told: &mut Warnings, object: &Value, _current: Option<&Value>) {
    let text = |key: &str| {
        let bytes = STANDARD.decode(object["data"][key].as_str().unwrap_or_default()).unwrap_or_default();
        String::from_utf8_lossy(&bytes).into_owned()
    };
    if object["type"] == "kubernetes.io/tls"
        && let Some(why) = unusable_pair(&text("tls.crt"), &text("tls.key"))
    {
        told.warn(why);
    }
}

/// Warns of a configuration of admission whose name is kept for files beside the server. From 1.37 on such a
/// name is refused.
pub fn kept_name(told: &mut Warnings, object: &Value, _current: Option<&Value>) {
    if since(36)
        && !since(37)
        && let Some(why) = names::kept_for_files(opdev_object::meta::name(object).unwrap_or_default())
    {
        told.warn(format!("metadata.name: {why}"));
    }
}

/// Warns of a new ResourceQuota that allows larger requests than limits.
pub fn resource_quota(told: &mut Warnings, object: &Value, current: Option<&Value>) {
    let hard = &object["spec"]["hard"];
    for name in ["cpu", "memory", "storage", "ephemeral-storage"] {
        let (request, limit) = (format!("requests.{name}"), format!("limits.{name}"));
        let bare = hard[&request].is_null() && matches!(name, "cpu" | "memory");
        let request = if bare { name } else { &request };
        let (Some(most), Some(asked)) = (hard[&limit].as_str(), hard[request].as_str()) else { continue };
        if current.is_none() && quantity::nano(asked) > quantity::nano(most) {
            told.warn(format!("ResourceQuota {request} ({asked}) should be less than {limit} ({most})"));
        }
    }
}

/// Warns of a ResourceSlice whose driver has capital letters in its name.
pub fn resource_slice(told: &mut Warnings, object: &Value, _current: Option<&Value>) {
    let driver = object["spec"]["driver"].as_str().unwrap_or_default();
    if driver != driver.to_lowercase() {
        told.warn(format!(
            "spec.driver: driver names should be lowercase; {driver:?} contains uppercase characters"
        ));
    }
}

/// Resources whose requests are answered at once, without calling a webhook.
const UNCALLED: [(&str, &str); 6] = [
    ("authentication.k8s.io", "selfsubjectreviews"),
    ("authentication.k8s.io", "tokenreviews"),
    ("authorization.k8s.io", "localsubjectaccessreviews"),
    ("authorization.k8s.io", "selfsubjectaccessreviews"),
    ("authorization.k8s.io", "selfsubjectrulesreviews"),
    ("authorization.k8s.io", "subjectaccessreviews"),
];

/// Warns of webhooks with rules for resources that call none, and of their name.
pub fn webhooks(told: &mut Warnings, object: &Value, current: Option<&Value>) {
    kept_name(told, object, current);
    if !since(37) {
        return;
    }
    for (i, webhook) in items(&object["webhooks"]).iter().enumerate() {
        for (j, rule) in items(&webhook["rules"]).iter().enumerate() {
            let (groups, resources) = (items(&rule["apiGroups"]), items(&rule["resources"]));
            if groups.iter().chain(resources).any(|name| name == "*") {
                continue;
            }
            for group in groups {
                for resource in resources {
                    if UNCALLED.iter().any(|(of, name)| group == of && resource == name) {
                        let (group, resource) =
                            (group.as_str().unwrap_or_default(), resource.as_str().unwrap_or_default());
                        told.warn(format!(
                            "webhooks[{i}].rules[{j}]: {resource}.{group} is excluded from admission webhooks; this \
                             rule will have no effect"
                        ));
                    }
                }
            }
        }
    }
}
