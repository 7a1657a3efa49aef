//! Refusals of autoscalers, disruption budgets and leases.

use super::checks::{
    absent, amount, at_least_zero, at_most_all, items, named, one_of, optional, selector, share, wrong_struct,
};
use opdev_apimachinery::error::Cause;
use opdev_apimachinery::resource::names;
use opdev_apimachinery::version::since;
use serde_json::{Value, json};

/// Kind, name and version of what is scaled.
fn target(target: &Value, place: &str, allows_core: bool, causes: &mut Vec<Cause>) {
    for field in ["kind", "name"] {
        if absent(&target[field]) {
            causes.push(Cause::required(format!("{place}.{field}"), ""));
        } else {
            named(&format!("{place}.{field}"), &target[field], names::path_segment, causes);
        }
    }
    let version = target["apiVersion"].as_str().unwrap_or_default();
    let detail = match version.matches('/').count() {
        0 if allows_core => return,
        0 => "apiVersion must specify API group".to_owned(),
        1 => return,
        _ => format!("unexpected GroupVersion string: {version}"),
    };
    causes.push(Cause::invalid(format!("{place}.apiVersion"), &json!(version), &detail));
}

/// An autoscaler's spec.
pub fn autoscaler(spec: &Value, causes: &mut Vec<Cause>) {
    let (least, most) = (spec["minReplicas"].as_i64(), spec["maxReplicas"].as_i64().unwrap_or(0));
    // Down to none since 1.37.
    let fewest = i64::from(!since(37));
    if least.is_some_and(|least| least < fewest) {
        let detail = format!("must be greater than or equal to {fewest}");
        causes.push(Cause::invalid("spec.minReplicas", &spec["minReplicas"], &detail));
    }
    if most == 0 {
        let detail = if since(37) { "" } else { "must be set and greater than 0" };
        causes.push(Cause::required("spec.maxReplicas", detail));
    } else if most < 0 {
        causes.push(Cause::invalid("spec.maxReplicas", &json!(most), "must be greater than or equal to 1"));
    }
    if least.is_some_and(|least| most < least) {
        let detail = "must be greater than or equal to `minReplicas`";
        causes.push(Cause::invalid("spec.maxReplicas", &json!(most), detail));
    }
    // The only kind of the core group that has a scale.
    let allows_core = spec["scaleTargetRef"]["kind"] == "ReplicationController";
    target(&spec["scaleTargetRef"], "spec.scaleTargetRef", allows_core, causes);
    let mut outside = false;
    for (i, metric) in items(&spec["metrics"]).iter().enumerate() {
        outside |= matches!(metric["type"].as_str(), Some("Object" | "External"));
        self::metric(metric, &format!("spec.metrics[{i}]"), causes);
    }
    if least == Some(0) && !outside {
        let detail =
            "must specify at least one Object or External metric to support scaling to zero replicas";
        causes.push(Cause::forbidden("spec.metrics", detail));
    }
}

/// A rule that taints devices, which may replace another one.
pub fn taint_rule(spec: &Value, old: Option<&Value>, causes: &mut Vec<Cause>) {
    let taint = &spec["taint"];
    named("spec.taint.key", &json!(taint["key"].as_str().unwrap_or_default()), names::qualified_name, causes);
    if !absent(&taint["value"]) {
        named("spec.taint.value", &taint["value"], names::label_value, causes);
    }
    if old.is_none_or(|old| old["taint"]["effect"] != taint["effect"]) {
        one_of("spec.taint.effect", &taint["effect"], &["NoExecute", "NoSchedule", "None"], causes);
    }
}

fn metric(metric: &Value, place: &str, causes: &mut Vec<Cause>) {
    const TYPES: [(&str, &str); 5] = [
        ("ContainerResource", "containerResource"),
        ("External", "external"),
        ("Object", "object"),
        ("Pods", "pods"),
        ("Resource", "resource"),
    ];
    let kind = metric["type"].as_str().unwrap_or_default();
    let field = format!("{place}.type");
    if kind.is_empty() {
        causes.push(Cause::required(field.as_str(), "must specify a metric source type"));
    }
    let known: Vec<&str> = TYPES.iter().map(|(name, _)| *name).collect();
    let unknown = || Cause::not_supported(field.as_str(), &json!(kind), &known);
    let expected = TYPES.iter().find(|(name, _)| *name == kind).map(|(_, field)| *field);
    if expected.is_none() {
        causes.push(unknown());
    }
    for (_, source) in TYPES.iter().filter(|(_, source)| !metric[*source].is_null()) {
        let inner = &metric[*source];
        let place = format!("{place}.{source}");
        if matches!(*source, "resource" | "containerResource") && absent(&inner["name"]) {
            causes.push(Cause::required(format!("{place}.name"), "must specify a resource name"));
        }
        metric_target(&inner["target"], &format!("{place}.target"), source, causes);
    }
    match expected {
        Some(source) if metric[source].is_null() => {
            let detail = "must populate information for the given metric source";
            causes.push(Cause::required(format!("{place}.{source}"), detail));
        }
        Some(_) => {}
        None => causes.push(unknown()),
    }
}

fn metric_target(target: &Value, place: &str, source: &str, causes: &mut Vec<Cause>) {
    if absent(&target["type"]) {
        causes.push(Cause::required(format!("{place}.type"), "must specify a metric target type"));
    }
    if !matches!(target["type"].as_str(), Some("Utilization" | "Value" | "AverageValue")) {
        let detail = "must be either Utilization, Value, or AverageValue";
        let value = json!(target["type"].as_str().unwrap_or_default());
        causes.push(Cause::invalid(format!("{place}.type"), &value, detail));
    }
    for field in ["value", "averageValue"] {
        if amount(&target[field]).is_some_and(|amount| amount <= 0) {
            causes.push(Cause::invalid(format!("{place}.{field}"), &target[field], "must be positive"));
        }
    }
    let utilization = &target["averageUtilization"];
    if utilization.as_i64().is_some_and(|percent| percent < 1) {
        let detail = "must be greater than 0";
        causes.push(Cause::invalid(format!("{place}.averageUtilization"), utilization, detail));
    }
    if !source.to_lowercase().ends_with("resource") {
        return;
    }
    match (utilization.is_null(), target["averageValue"].is_null()) {
        (true, true) => {
            let detail = "must set either a target raw value or a target utilization";
            causes.push(Cause::required(format!("{place}.averageUtilization"), detail));
        }
        (false, false) => {
            let detail = "may not set both a target raw value and a target utilization";
            causes.push(Cause::forbidden(format!("{place}.averageValue"), detail));
        }
        _ => {}
    }
}

/// A disruption budget's spec.
pub fn budget(spec: &Value, causes: &mut Vec<Cause>) {
    let (least, most) = (&spec["minAvailable"], &spec["maxUnavailable"]);
    if !least.is_null() && !most.is_null() {
        let fields = [
            ("MinAvailable", least),
            ("Selector", &spec["selector"]),
            ("MaxUnavailable", most),
            ("UnhealthyPodEvictionPolicy", &spec["unhealthyPodEvictionPolicy"]),
        ];
        causes.push(wrong_struct("spec", &fields, "minAvailable and maxUnavailable cannot be both set"));
    }
    for field in ["minAvailable", "maxUnavailable"] {
        let place = format!("spec.{field}");
        share(&place, &spec[field], causes);
        at_most_all(&place, &spec[field], causes);
    }
    selector("spec.selector", &spec["selector"], causes);
    let policies = ["AlwaysAllow", "IfHealthyBudget"];
    let policy = &spec["unhealthyPodEvictionPolicy"];
    optional("spec.unhealthyPodEvictionPolicy", policy, &policies, causes);
}

/// A lease's spec.
pub fn lease(spec: &Value, causes: &mut Vec<Cause>) {
    let seconds = &spec["leaseDurationSeconds"];
    if seconds.as_i64().is_some_and(|n| n <= 0) {
        causes.push(Cause::invalid("spec.leaseDurationSeconds", seconds, "must be greater than 0"));
    }
    at_least_zero("spec.leaseTransitions", &spec["leaseTransitions"], causes);
    if !absent(&spec["preferredHolder"]) && absent(&spec["strategy"]) {
        let detail = "may only be specified if `strategy` is defined";
        causes.push(Cause::forbidden("spec.preferredHolder", detail));
    }
}
