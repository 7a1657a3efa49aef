//! Warnings of a real server about objects that it accepts: double names in a pod, fields that have no
//! effect. Never refuses anything.

use super::context::Context;
use super::strategy::strategy_of;
use opdev_apimachinery::resource::{Resource, quantity};
use opdev_apis::validate::{absent, items};
use serde_json::Value;

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

/// Warns of a pod. Its spec hardly changes: its warnings come once.
pub(super) fn pod(ctx: &mut Context, object: &Value, current: Option<&Value>) {
    if current.is_none() {
        pod_spec(ctx, &object["spec"], "spec");
    }
}

/// Warns of the template of pods at `spec.template`.
pub(super) fn template(ctx: &mut Context, object: &Value, current: Option<&Value>) {
    template_at(ctx, object, current, &["spec", "template", "spec"]);
}

/// Warns of the template of a CronJob's pods.
pub(super) fn job_template(ctx: &mut Context, object: &Value, current: Option<&Value>) {
    template_at(ctx, object, current, &["spec", "jobTemplate", "spec", "template", "spec"]);
}

/// The warnings of a template come with every generation.
fn template_at(ctx: &mut Context, object: &Value, current: Option<&Value>, path: &[&str]) {
    let generation = opdev_object::meta::generation;
    if current.is_none_or(|old| generation(old) != generation(object)) {
        let spec = path.iter().fold(object, |at, name| &at[*name]);
        pod_spec(ctx, spec, &path.join("."));
    }
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

/// Warns of a Service.
pub(super) fn service(ctx: &mut Context, object: &Value, _current: Option<&Value>) {
    let spec = &object["spec"];
    let kind = spec["type"].as_str().unwrap_or_default();
    let external = !items(&spec["externalIPs"]).is_empty();
    let headless = kind == "ClusterIP" && spec["clusterIP"] == "None";
    if headless {
        if !absent(&spec["loadBalancerIP"]) {
            ctx.warn("spec.loadBalancerIP is ignored for headless services");
        }
        if external {
            ctx.warn("spec.externalIPs is ignored for headless services");
        }
        if spec["sessionAffinity"] != "None" {
            ctx.warn("spec.SessionAffinity is ignored for headless services");
        }
    }
    if external && !headless && kind != "ExternalName" {
        ctx.warn("spec.externalIPs is deprecated and may no longer be implemented in some clusters");
    }
    if kind == "ExternalName" && external {
        ctx.warn("spec.externalIPs is ignored when spec.type is \"ExternalName\"");
    }
    if kind != "ExternalName" && !absent(&spec["externalName"]) {
        ctx.warn("spec.externalName is ignored when spec.type is not \"ExternalName\"");
    }
    if spec["trafficDistribution"] == "PreferClose" {
        ctx.warn("spec.trafficDistribution: \"PreferClose\" is deprecated; use \"PreferSameZone\"");
    }
}

/// Each container with its path, in the order in which a real server looks at them.
fn containers<'a>(spec: &'a Value, path: &str) -> Vec<(String, &'a Value)> {
    let lists = ["initContainers", "containers", "ephemeralContainers"];
    let of = |list: &'static str| {
        items(&spec[list]).iter().enumerate().map(move |(i, item)| (format!("{list}[{i}]"), item))
    };
    lists.into_iter().flat_map(of).map(|(place, item)| (format!("{path}.{place}"), item)).collect()
}

fn pod_spec(ctx: &mut Context, spec: &Value, path: &str) {
    for (list, field, what) in [("hostAliases", "ip", "ip"), ("imagePullSecrets", "name", "name")] {
        let all = items(&spec[list]);
        for (i, item) in all.iter().enumerate() {
            if all[..i].iter().any(|other| other[field] == item[field]) {
                let value = item[field].as_str().unwrap_or_default();
                ctx.warn(format!("{path}.{list}[{i}].{field}: duplicate {what} {value:?}"));
            }
        }
    }
    let all = containers(spec, path);
    for (place, container) in &all {
        fractions(ctx, container, place);
        variables(ctx, container, place);
    }
    ports(ctx, &all);
    if spec["terminationGracePeriodSeconds"].as_i64().is_some_and(|seconds| seconds < 0) {
        ctx.warn(format!(
            "{path}.terminationGracePeriodSeconds: must be >= 0; negative values are invalid and will be treated as 1"
        ));
    }
}

fn fractions(ctx: &mut Context, container: &Value, place: &str) {
    for name in ["memory", "ephemeral-storage"] {
        for part in ["limits", "requests"] {
            let Some(text) = container["resources"][part][name].as_str() else { continue };
            if quantity::nano(text).is_some_and(|amount| amount % 1_000_000_000 != 0) {
                ctx.warn(format!(
                    "{place}.resources.{part}[{name}]: fractional byte value {text:?} is invalid, must be an integer"
                ));
            }
        }
    }
}

fn variables(ctx: &mut Context, container: &Value, place: &str) {
    let all = items(&container["env"]);
    for (i, variable) in all.iter().enumerate() {
        let name = variable["name"].as_str().unwrap_or_default();
        let again = all[..i].iter().any(|other| other["name"] == variable["name"]);
        let reference = format!("$({name})");
        let value = variable["value"].as_str().unwrap_or_default();
        let extends = variable["valueFrom"].is_null() && value != reference && value.contains(&reference);
        if again && !extends {
            ctx.warn(format!(
                "{place}.env[{i}]: hides previous definition of {name:?}, which may be dropped when using apply"
            ));
        }
    }
}

fn ports(ctx: &mut Context, containers: &[(String, &Value)]) {
    let all: Vec<(String, &Value)> = containers
        .iter()
        .flat_map(|(place, container)| {
            let own = items(&container["ports"]).iter().enumerate();
            own.map(move |(i, port)| (format!("{place}.ports[{i}]"), port))
        })
        .collect();
    let host = |port: &Value| port["hostPort"].as_i64().unwrap_or(0);
    for (i, (place, port)) in all.iter().enumerate() {
        for (other_place, other) in &all[..i] {
            let same = |field: &str| port[field] == other[field];
            if !same("containerPort") || !same("protocol") {
                continue;
            }
            if same("hostIP") && host(port) == host(other) {
                ctx.warn(format!("{place}: duplicate port definition with {other_place}"));
            } else if host(port) == 0 || host(other) == 0 {
                ctx.warn(format!("{place}: overlapping port definition with {other_place}"));
            } else if host(port) == host(other) && (absent(&port["hostIP"]) != absent(&other["hostIP"])) {
                ctx.warn(format!("{place}: dangerously ambiguous port definition with {other_place}"));
            }
        }
    }
    for (i, (place, port)) in all.iter().enumerate() {
        let Some(name) = port["name"].as_str().filter(|name| !name.is_empty()) else { continue };
        if let Some((first, _)) = all[..i].iter().find(|(_, other)| other["name"] == name) {
            ctx.warn(format!(
                "{place}: duplicate port name {name:?} with {first}, services and probes that select ports by name will use {first}"
            ));
        }
    }
}
