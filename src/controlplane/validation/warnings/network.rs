//! Warnings of Services and what is around them: endpoints, ingresses, network policies, ranges of nodes.

use super::told::Warnings;
use crate::addresses::{cidr_warnings, ip_warning};
use crate::{absent, items};
use serde_json::Value;

fn warn_ip(told: &mut Warnings, field: &str, address: &Value) {
    if let Some(warning) = address.as_str().and_then(|text| ip_warning(field, text)) {
        told.warn(warning);
    }
}

fn warn_cidr(told: &mut Warnings, field: &str, range: &Value) {
    for warning in cidr_warnings(field, range.as_str().unwrap_or_default()) {
        told.warn(warning);
    }
}

/// Warns of a Service.
pub fn service(told: &mut Warnings, object: &Value, _current: Option<&Value>) {
    const HINTS: &str = "service.kubernetes.io/topology-aware-hints";
    if !object["metadata"]["annotations"][HINTS].is_null() {
        let now = "service.kubernetes.io/topology-mode";
        told.warn(format!("annotation {HINTS} is deprecated, please use {now} instead"));
    }
    let spec = &object["spec"];
    let kind = spec["type"].as_str().unwrap_or_default();
    let external = !items(&spec["externalIPs"]).is_empty();
    for (i, address) in items(&spec["clusterIPs"]).iter().enumerate().filter(|(_, text)| **text != "None") {
        warn_ip(told, &format!("spec.clusterIPs[{i}]"), address);
    }
    let headless = kind == "ClusterIP" && spec["clusterIP"] == "None";
    if headless {
        if !absent(&spec["loadBalancerIP"]) {
            told.warn("spec.loadBalancerIP is ignored for headless services");
        }
        if external {
            told.warn("spec.externalIPs is ignored for headless services");
        }
        if spec["sessionAffinity"] != "None" {
            told.warn("spec.SessionAffinity is ignored for headless services");
        }
    }
    for (i, address) in items(&spec["externalIPs"]).iter().enumerate() {
        warn_ip(told, &format!("spec.externalIPs[{i}]"), address);
    }
    if external && !headless && kind != "ExternalName" {
        told.warn("spec.externalIPs is deprecated and may no longer be implemented in some clusters");
    }
    warn_ip(told, "spec.loadBalancerIP", &spec["loadBalancerIP"]);
    for (i, range) in items(&spec["loadBalancerSourceRanges"]).iter().enumerate() {
        warn_cidr(told, &format!("spec.loadBalancerSourceRanges[{i}]"), range);
    }
    if kind == "ExternalName" && external {
        told.warn("spec.externalIPs is ignored when spec.type is \"ExternalName\"");
    }
    if kind != "ExternalName" && !absent(&spec["externalName"]) {
        told.warn("spec.externalName is ignored when spec.type is not \"ExternalName\"");
    }
    if spec["trafficDistribution"] == "PreferClose" {
        told.warn("spec.trafficDistribution: \"PreferClose\" is deprecated; use \"PreferSameZone\"");
    }
}

/// Warns of the addresses of a load balancer.
pub fn balanced(told: &mut Warnings, object: &Value) {
    for (i, entry) in items(&object["status"]["loadBalancer"]["ingress"]).iter().enumerate() {
        warn_ip(told, &format!("status.loadBalancer.ingress[{i}]"), &entry["ip"]);
    }
}

/// Warns of the addresses of a pod and of its node.
pub fn pod_status(told: &mut Warnings, object: &Value) {
    for list in ["podIPs", "hostIPs"] {
        for (i, entry) in items(&object["status"][list]).iter().enumerate() {
            warn_ip(told, &format!("status.{list}[{i}].ip"), &entry["ip"]);
        }
    }
}

/// Warns of Endpoints, unless their controller wrote them: it writes addresses as they should be.
pub fn endpoints(told: &mut Warnings, object: &Value, _current: Option<&Value>) {
    if managed_by(object, "endpoints.kubernetes.io/managed-by", &["endpoint-controller"]) {
        return;
    }
    for (i, subset) in items(&object["subsets"]).iter().enumerate() {
        for list in ["addresses", "notReadyAddresses"] {
            for (j, address) in items(&subset[list]).iter().enumerate() {
                warn_ip(told, &format!("subsets[{i}].{list}[{j}].ip"), &address["ip"]);
            }
        }
    }
}

/// Warns of an EndpointSlice, unless its controller wrote it: it writes addresses as they should be.
pub fn endpoint_slice(told: &mut Warnings, object: &Value, current: Option<&Value>) {
    if current.is_none() && object["addressType"] == "FQDN" {
        told.warn("spec.addressType: FQDN endpoints are deprecated");
    }
    let controllers = ["endpointslice-controller.k8s.io", "endpointslicemirroring-controller.k8s.io"];
    if managed_by(object, "endpointslice.kubernetes.io/managed-by", &controllers) {
        return;
    }
    for (i, endpoint) in items(&object["endpoints"]).iter().enumerate() {
        for (j, address) in items(&endpoint["addresses"]).iter().enumerate() {
            warn_ip(told, &format!("endpoints[{i}].addresses[{j}]"), address);
        }
    }
}

fn managed_by(object: &Value, label: &str, controllers: &[&str]) -> bool {
    object["metadata"]["labels"][label].as_str().is_some_and(|name| controllers.contains(&name))
}

/// Warns of a new Ingress that names its class as before 1.18.
pub fn ingress(told: &mut Warnings, object: &Value, current: Option<&Value>) {
    const CLASS: &str = "kubernetes.io/ingress.class";
    let annotated = !object["metadata"]["annotations"][CLASS].is_null();
    if current.is_none() && annotated && object["spec"]["ingressClassName"].is_null() {
        told.warn(format!("annotation {CLASS:?} is deprecated, please use 'spec.ingressClassName' instead"));
    }
}

/// Warns of a NetworkPolicy.
pub fn network_policy(told: &mut Warnings, object: &Value, _current: Option<&Value>) {
    for (direction, peers) in [("ingress", "from"), ("egress", "to")] {
        for (i, rule) in items(&object["spec"][direction]).iter().enumerate() {
            for (j, peer) in items(&rule[peers]).iter().enumerate() {
                let (block, place) =
                    (&peer["ipBlock"], format!("spec.{direction}[{i}].{peers}[{j}].ipBlock"));
                warn_cidr(told, &format!("{place}.cidr"), &block["cidr"]);
                for (k, except) in items(&block["except"]).iter().enumerate() {
                    warn_cidr(told, &format!("{place}.except[{k}]"), except);
                }
            }
        }
    }
}

/// Warns of a Node.
pub fn node(told: &mut Warnings, object: &Value, _current: Option<&Value>) {
    let spec = &object["spec"];
    if !absent(&spec["externalID"]) {
        told.warn("spec.externalID: this field is deprecated, and is unused by Kubernetes");
    }
    for (i, range) in items(&spec["podCIDRs"]).iter().enumerate() {
        warn_cidr(told, &format!("spec.podCIDRs[{i}]"), range);
    }
}

/// Warns of addresses that an object's template of pods names.
pub(super) fn addresses_of_pods(told: &mut Warnings, spec: &Value, path: &str) {
    for (i, server) in items(&spec["dnsConfig"]["nameservers"]).iter().enumerate() {
        warn_ip(told, &format!("{path}.dnsConfig.nameservers[{i}]"), server);
    }
    for (i, alias) in items(&spec["hostAliases"]).iter().enumerate() {
        warn_ip(told, &format!("{path}.hostAliases[{i}].ip"), &alias["ip"]);
    }
}
