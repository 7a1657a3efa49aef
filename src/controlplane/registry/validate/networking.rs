//! What is refused of services and ingresses.

use super::{absent, items, names};
use crate::error::Cause;
use serde_json::Value;

/// A service's spec.
pub(super) fn service(spec: &Value, causes: &mut Vec<Cause>) {
    let kind = spec["type"].as_str().unwrap_or("ClusterIP");
    let ports = items(&spec["ports"]);
    if kind == "ExternalName" && absent(&spec["externalName"]) {
        causes.push(Cause::required("spec.externalName", ""));
    }
    if ports.is_empty() && kind != "ExternalName" && spec["clusterIP"] != "None" {
        causes.push(Cause::required("spec.ports", ""));
    }
    let mut seen: Vec<&str> = Vec::new();
    for (i, port) in ports.iter().enumerate() {
        let place = format!("spec.ports[{i}]");
        let name = port["name"].as_str().unwrap_or_default();
        if name.is_empty() {
            if ports.len() > 1 {
                causes.push(Cause::required(format!("{place}.name"), ""));
            }
        } else {
            for wrong in names::label(name) {
                causes.push(Cause::invalid(format!("{place}.name"), &port["name"], &wrong));
            }
            if seen.contains(&name) {
                causes.push(Cause::duplicate(format!("{place}.name"), &port["name"]));
            }
            seen.push(name);
        }
        if !port["port"].as_i64().is_some_and(|n| (1..=65535).contains(&n)) {
            let detail = "must be between 1 and 65535, inclusive";
            causes.push(Cause::invalid(format!("{place}.port"), &port["port"], detail));
        }
        if let Some(number) = port["targetPort"].as_i64()
            && !(1..=65535).contains(&number)
        {
            let detail = "must be between 1 and 65535, inclusive";
            causes.push(Cause::invalid(format!("{place}.targetPort"), &port["targetPort"], detail));
        }
    }
}

/// An allocated address stays.
pub(super) fn service_update(object: &Value, current: &Value, causes: &mut Vec<Cause>) {
    let (new, old) = (&object["spec"], &current["spec"]);
    if new["type"] == "ExternalName" || old["type"] == "ExternalName" {
        return;
    }
    if new["clusterIP"] != old["clusterIP"] {
        let detail = "may not change once set";
        causes.push(Cause::invalid("spec.clusterIPs[0]", &new["clusterIPs"], detail));
    }
}

/// An ingress's spec.
pub(super) fn ingress(spec: &Value, causes: &mut Vec<Cause>) {
    if items(&spec["rules"]).is_empty() && spec["defaultBackend"].is_null() {
        let detail = "either `defaultBackend` or `rules` must be specified";
        causes.push(Cause::invalid("spec", spec, detail));
    }
    for (i, rule) in items(&spec["rules"]).iter().enumerate() {
        for (j, path) in items(&rule["http"]["paths"]).iter().enumerate() {
            let place = format!("spec.rules[{i}].http.paths[{j}]");
            if absent(&path["pathType"]) {
                causes.push(Cause::required(format!("{place}.pathType"), "pathType must be specified"));
            } else if matches!(path["pathType"].as_str(), Some("Exact" | "Prefix"))
                && !path["path"].as_str().is_some_and(|path| path.starts_with('/'))
            {
                let detail = "must be an absolute path";
                causes.push(Cause::invalid(format!("{place}.path"), &path["path"], detail));
            }
            let backend = &path["backend"];
            if backend["service"].is_null() && backend["resource"].is_null() {
                let detail = "either `service` or `resource` backend must be specified";
                causes.push(Cause::required(format!("{place}.backend"), detail));
            } else if backend["service"].is_object() && absent(&backend["service"]["name"]) {
                causes.push(Cause::required(format!("{place}.backend.service.name"), ""));
            }
        }
    }
}
