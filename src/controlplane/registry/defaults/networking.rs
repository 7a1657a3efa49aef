//! Defaults of services, endpoints and network policies.

use super::{each, put, sub};
use serde_json::{Value, json};

pub(super) fn service(object: &mut Value) {
    let spec = sub(object, "spec");
    put(spec, "sessionAffinity", "None");
    put(spec, "type", "ClusterIP");
    if spec["sessionAffinity"] == "ClientIP" {
        put(sub(sub(spec, "sessionAffinityConfig"), "clientIP"), "timeoutSeconds", 10800);
    } else if spec["sessionAffinity"] == "None"
        && let Some(map) = spec.as_object_mut()
    {
        map.remove("sessionAffinityConfig");
    }
    let kind = spec["type"].as_str().unwrap_or_default().to_owned();
    for port in each(spec, "ports") {
        put(port, "protocol", "TCP");
        let number = port["port"].clone();
        let unset =
            matches!(&port["targetPort"], Value::Null) || port["targetPort"] == 0 || port["targetPort"] == "";
        if unset {
            port["targetPort"] = number;
        }
    }
    let external = spec.get("externalIPs").and_then(Value::as_array).is_some_and(|ips| !ips.is_empty());
    if kind == "NodePort" || kind == "LoadBalancer" || (kind == "ClusterIP" && external) {
        put(spec, "externalTrafficPolicy", "Cluster");
    }
    if kind == "LoadBalancer" {
        put(spec, "allocateLoadBalancerNodePorts", true);
    }
    if kind != "ExternalName" {
        put(spec, "internalTrafficPolicy", "Cluster");
    }
    if let Some(status) = object.get_mut("status") {
        put(status, "loadBalancer", serde_json::Map::new());
    } else {
        object["status"] = json!({"loadBalancer": {}});
    }
}

pub(super) fn endpoints(object: &mut Value) {
    for subset in each(object, "subsets") {
        for port in each(subset, "ports") {
            put(port, "protocol", "TCP");
        }
    }
}

pub(super) fn slice(object: &mut Value) {
    for port in each(object, "ports") {
        put(port, "name", "");
        put(port, "protocol", "TCP");
    }
}

pub(super) fn policy(object: &mut Value) {
    let spec = sub(object, "spec");
    if spec["policyTypes"].as_array().is_none_or(Vec::is_empty) {
        let egress = spec["egress"].as_array().is_some_and(|list| !list.is_empty());
        spec["policyTypes"] = if egress { json!(["Ingress", "Egress"]) } else { json!(["Ingress"]) };
    }
    for direction in ["ingress", "egress"] {
        for rule in each(spec, direction) {
            for port in each(rule, "ports") {
                put(port, "protocol", "TCP");
            }
        }
    }
}
