//! Warnings of a real server about objects that it accepts: double names in a pod, fields that have no
//! effect, deprecated ones, addresses in odd forms. Never refuses anything.

mod network;
mod paths;
mod pods;
mod storage;

use super::context::Context;
use super::strategy::strategy_of;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use opdev_apimachinery::resource::{Resource, names, quantity};
use opdev_apimachinery::version::since;
use opdev_apis::validate::certificates::unusable_pair;
use serde_json::Value;

pub(super) use network::{
    balanced, endpoint_slice, endpoints, ingress, network_policy, node, pod_status, service,
};
pub(super) use pods::{cron_job, job, pod, pod_template, stateful_set, template, workload};
pub(super) use storage::{capacity, claim, driver, storage_class, volume};

/// Labels of nodes that have newer names.
const OLD_LABELS: [(&str, &str); 8] = [
    ("app.kubernetes.io/created-by", "deprecated since v1.9"),
    ("beta.kubernetes.io/arch", "deprecated since v1.14; use \"kubernetes.io/arch\" instead"),
    (
        "beta.kubernetes.io/instance-type",
        "deprecated since v1.17; use \"node.kubernetes.io/instance-type\" instead",
    ),
    ("beta.kubernetes.io/os", "deprecated since v1.14; use \"kubernetes.io/os\" instead"),
    (
        "failure-domain.beta.kubernetes.io/region",
        "deprecated since v1.17; use \"topology.kubernetes.io/region\" instead",
    ),
    (
        "failure-domain.beta.kubernetes.io/zone",
        "deprecated since v1.17; use \"topology.kubernetes.io/zone\" instead",
    ),
    ("node-role.kubernetes.io/master", "use \"node-role.kubernetes.io/control-plane\" instead"),
    (
        "scheduler.alpha.kubernetes.io/preferAvoidPods",
        "deprecated since v1.22; use Taints and Tolerations instead",
    ),
];

/// The advice of a server about an old label of nodes.
fn old_label(label: &str) -> Option<&'static str> {
    OLD_LABELS.iter().find(|(old, _)| *old == label).map(|(_, advice)| *advice)
}

/// The labels of a selector with what a server says of them.
fn old_labels(labels: &Value) -> impl Iterator<Item = (&String, &'static str)> {
    let names = labels.as_object().into_iter().flat_map(|map| map.keys());
    names.filter_map(|name| Some((name, old_label(name)?)))
}

/// Warns of a new object, or of one that may replace another.
pub(crate) fn warn(ctx: &mut Context, resource: &Resource, object: &Value, current: Option<&Value>) {
    if resource.custom.is_some() {
        finalizers(ctx, object, current);
        return;
    }
    if !resource.rules.any_finalizer {
        finalizers(ctx, object, current);
    }
    (strategy_of(resource).warn)(ctx, object, current);
}

/// Finalizers without a domain.
fn finalizers(ctx: &mut Context, object: &Value, current: Option<&Value>) {
    let known = current.map(opdev_object::meta::finalizers).unwrap_or_default();
    let standard = ["orphan", "foregroundDeletion", "kubernetes"];
    for name in opdev_object::meta::finalizers(object) {
        if !name.contains('/') && !standard.contains(&name) && !known.contains(&name) {
            ctx.warn(format!(
                "metadata.finalizers: {name:?}: prefer a domain-qualified finalizer name to avoid accidental conflicts with other finalizer writers"
            ));
        }
    }
}

/// Annotations that mean nothing any more, or that have a field instead.
fn annotations(ctx: &mut Context, place: &str, object: &Value, deprecated: &[(&str, &str)]) {
    for (name, advice) in deprecated {
        if !object["annotations"][*name].is_null() {
            ctx.warn(format!("{place}[{name}]: {advice}"));
        }
    }
}

/// The name of something that makes pods becomes part of host names.
fn named_as_host(ctx: &mut Context, object: &Value, of: &str) {
    let wrong = names::label(opdev_object::meta::name(object).unwrap_or_default());
    if !wrong.is_empty() {
        ctx.warn(format!(
            "metadata.name: this is used in {of}, which can result in surprising behavior; a DNS label is \
             recommended: [{}]",
            wrong.join(" ")
        ));
    }
}

/// An amount of bytes that is no whole number.
fn fraction(ctx: &mut Context, place: &str, part: &Value, name: &str) {
    let Some(text) = part[name].as_str() else { return };
    if quantity::nano(text).is_some_and(|amount| amount % 1_000_000_000 != 0) {
        ctx.warn(format!("{place}[{name}]: fractional byte value {text:?} is invalid, must be an integer"));
    }
}

/// A RuntimeClass that chooses nodes by old labels.
pub(super) fn runtime_class(ctx: &mut Context, object: &Value, _current: Option<&Value>) {
    for (_, advice) in old_labels(&object["scheduling"]["nodeSelector"]) {
        ctx.warn(format!("scheduling.nodeSelector: {advice}"));
    }
}

/// A ServiceAccount that limits its secrets, newly.
pub(super) fn service_account(ctx: &mut Context, object: &Value, current: Option<&Value>) {
    const LIMITED: &str = "kubernetes.io/enforce-mountable-secrets";
    let limited = |account: &Value| !account["metadata"]["annotations"][LIMITED].is_null();
    if !current.is_some_and(limited) {
        let advice = "deprecated in v1.32+; prefer separate namespaces to isolate access to mounted secrets";
        annotations(ctx, "metadata.annotations", &object["metadata"], &[(LIMITED, advice)]);
    }
}

/// A Secret for TLS whose texts are not in PEM.
pub(super) fn secret(ctx: &mut Context, object: &Value, _current: Option<&Value>) {
    let text = |key: &str| {
        let bytes = STANDARD.decode(object["data"][key].as_str().unwrap_or_default()).unwrap_or_default();
        String::from_utf8_lossy(&bytes).into_owned()
    };
    if object["type"] == "kubernetes.io/tls"
        && let Some(why) = unusable_pair(&text("tls.crt"), &text("tls.key"))
    {
        ctx.warn(why);
    }
}

/// A configuration of admission whose name is kept for files beside the server. From 1.37 on it is refused.
pub(super) fn kept_name(ctx: &mut Context, object: &Value, _current: Option<&Value>) {
    if !since(37)
        && let Some(why) = names::kept_for_files(opdev_object::meta::name(object).unwrap_or_default())
    {
        ctx.warn(format!("metadata.name: {why}"));
    }
}

/// A new ResourceQuota that allows larger requests than limits.
pub(super) fn resource_quota(ctx: &mut Context, object: &Value, current: Option<&Value>) {
    let hard = &object["spec"]["hard"];
    for name in ["cpu", "memory", "storage", "ephemeral-storage"] {
        let (request, limit) = (format!("requests.{name}"), format!("limits.{name}"));
        let bare = hard[&request].is_null() && matches!(name, "cpu" | "memory");
        let request = if bare { name } else { &request };
        let (Some(most), Some(asked)) = (hard[&limit].as_str(), hard[request].as_str()) else { continue };
        if current.is_none() && quantity::nano(asked) > quantity::nano(most) {
            ctx.warn(format!("ResourceQuota {request} ({asked}) should be less than {limit} ({most})"));
        }
    }
}

/// A ResourceSlice whose driver has capital letters in its name.
pub(super) fn resource_slice(ctx: &mut Context, object: &Value, _current: Option<&Value>) {
    let driver = object["spec"]["driver"].as_str().unwrap_or_default();
    if driver != driver.to_lowercase() {
        ctx.warn(format!(
            "spec.driver: driver names should be lowercase; {driver:?} contains uppercase characters"
        ));
    }
}
