//! What is refused of pods and pod templates.

use super::{absent, items, names};
use crate::error::Cause;
use serde_json::{Value, json};

/// Checks a pod spec at `path`. `restart` lists the restart policies that are allowed where not all are.
pub(super) fn spec(spec: &Value, path: &str, restart: Option<&[&str]>, causes: &mut Vec<Cause>) {
    if items(&spec["containers"]).is_empty() {
        causes.push(Cause::required(format!("{path}.containers"), ""));
    }
    let volumes: Vec<&str> = items(&spec["volumes"]).iter().filter_map(|v| v["name"].as_str()).collect();
    let mut seen: Vec<&str> = Vec::new();
    for (i, volume) in items(&spec["volumes"]).iter().enumerate() {
        let place = format!("{path}.volumes[{i}].name");
        name(&volume["name"], &place, causes);
        repeated(&volume["name"], &place, &mut seen, causes);
    }
    let mut seen: Vec<&str> = Vec::new();
    let claims = |volume: &str| volumes.contains(&volume);
    for list in ["initContainers", "containers"] {
        for (i, item) in items(&spec[list]).iter().enumerate() {
            let place = format!("{path}.{list}[{i}]");
            container(item, &place, &claims, causes);
            repeated(&item["name"], &format!("{place}.name"), &mut seen, causes);
        }
    }
    if let Some(allowed) = restart {
        restart_policy(spec, path, allowed, causes);
    }
    super::at_least_zero(
        &format!("{path}.terminationGracePeriodSeconds"),
        &spec["terminationGracePeriodSeconds"],
        causes,
    );
}

/// The restart policy is one of these.
pub(super) fn restart_policy(spec: &Value, path: &str, allowed: &[&str], causes: &mut Vec<Cause>) {
    let policy = &spec["restartPolicy"];
    if !policy.as_str().is_some_and(|policy| allowed.contains(&policy)) {
        causes.push(Cause::not_supported(format!("{path}.restartPolicy"), policy, allowed));
    }
}

fn name(value: &Value, place: &str, causes: &mut Vec<Cause>) {
    if absent(value) {
        causes.push(Cause::required(place, ""));
        return;
    }
    for wrong in names::label(value.as_str().unwrap_or_default()) {
        causes.push(Cause::invalid(place, value, &wrong));
    }
}

fn repeated<'a>(value: &'a Value, place: &str, seen: &mut Vec<&'a str>, causes: &mut Vec<Cause>) {
    let Some(text) = value.as_str().filter(|text| !text.is_empty()) else { return };
    if seen.contains(&text) {
        causes.push(Cause::duplicate(place, value));
    }
    seen.push(text);
}

fn container(container: &Value, place: &str, volume: &dyn Fn(&str) -> bool, causes: &mut Vec<Cause>) {
    name(&container["name"], &format!("{place}.name"), causes);
    if absent(&container["image"]) {
        causes.push(Cause::required(format!("{place}.image"), ""));
    } else if container["image"].as_str().is_some_and(|image| image.trim() != image) {
        let detail = "must not have leading or trailing whitespace";
        causes.push(Cause::invalid(format!("{place}.image"), &container["image"], detail));
    }
    for (i, port) in items(&container["ports"]).iter().enumerate() {
        let field = format!("{place}.ports[{i}].containerPort");
        match port["containerPort"].as_i64() {
            None | Some(0) => causes.push(Cause::required(field, "")),
            Some(1..=65535) => {}
            Some(_) => {
                let detail = "must be between 1 and 65535, inclusive";
                causes.push(Cause::invalid(field, &port["containerPort"], detail));
            }
        }
    }
    for (i, variable) in items(&container["env"]).iter().enumerate() {
        if absent(&variable["name"]) {
            causes.push(Cause::required(format!("{place}.env[{i}].name"), ""));
        }
        if !absent(&variable["value"]) && variable["valueFrom"].is_object() {
            let detail = "may not be specified when `value` is not empty";
            causes.push(Cause::invalid(format!("{place}.env[{i}].valueFrom"), &json!(""), detail));
        }
    }
    for (i, mount) in items(&container["volumeMounts"]).iter().enumerate() {
        let field = format!("{place}.volumeMounts[{i}]");
        match mount["name"].as_str().unwrap_or_default() {
            "" => causes.push(Cause::required(format!("{field}.name"), "")),
            known if volume(known) => {}
            unknown => {
                let text = format!("Not found: {unknown:?}");
                causes.push(Cause::text("FieldValueNotFound", format!("{field}.name"), text));
            }
        }
        if absent(&mount["mountPath"]) {
            causes.push(Cause::required(format!("{field}.mountPath"), ""));
        }
    }
}

/// A pod's spec is frozen but for a few fields.
pub(super) fn update(object: &Value, current: &Value, causes: &mut Vec<Cause>) {
    if frozen(object) != frozen(current) {
        let detail = "pod updates may not change fields other than `spec.containers[*].image`,\
                      `spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions \
                      to existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it \
                      was previously negative)";
        causes.push(Cause::forbidden("spec", detail));
    }
}

fn frozen(pod: &Value) -> Value {
    let mut spec = pod["spec"].clone();
    if let Some(map) = spec.as_object_mut() {
        // The node's name comes through the binding, which writes past this check.
        for field in ["activeDeadlineSeconds", "tolerations", "schedulingGates", "ephemeralContainers"] {
            map.remove(field);
        }
    }
    for list in ["containers", "initContainers"] {
        for container in spec[list].as_array_mut().into_iter().flatten() {
            if let Some(map) = container.as_object_mut() {
                map.remove("image");
            }
        }
        if spec[list].is_null()
            && let Some(map) = spec.as_object_mut()
        {
            map.remove(list);
        }
    }
    spec
}
