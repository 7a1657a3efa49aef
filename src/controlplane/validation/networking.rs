//! Refusals of services and ingresses.

use super::addresses;
use super::checks::{absent, entries, items, labels, named, one_of, optional, port, port_number};
use opdev_apimachinery::error::Cause;
use opdev_apimachinery::resource::names;
use serde_json::{Value, json};

const EXPOSED: [&str; 2] = ["NodePort", "LoadBalancer"];
const ONLY_BALANCER: &str = "may only be used when `type` is 'LoadBalancer'";
/// The annotation that was there before the field `loadBalancerSourceRanges`.
const SOURCE_RANGES: &str = "service.beta.kubernetes.io/load-balancer-source-ranges";

/// A service, which may replace another. An update may keep addresses as they were.
pub fn service(object: &Value, current: Option<&Value>, causes: &mut Vec<Cause>) {
    let spec = &object["spec"];
    let kind = spec["type"].as_str().unwrap_or_default();
    let ports = items(&spec["ports"]);
    let headless = spec["clusterIP"] == "None";
    if ports.is_empty() && !headless && kind != "ExternalName" {
        causes.push(Cause::required("spec.ports", ""));
    }
    if headless && EXPOSED.contains(&kind) {
        let detail = format!("may not be set to 'None' for {kind} services");
        causes.push(Cause::invalid("spec.clusterIPs[0]", &json!("None"), &detail));
    }
    if kind == "ExternalName" {
        external_name(spec, causes);
    }
    service_ports(ports, causes);
    labels("spec.selector", &spec["selector"], causes);
    one_of("spec.sessionAffinity", &spec["sessionAffinity"], &["ClientIP", "None"], causes);
    session(spec, causes);
    external_addresses(spec, current, causes);
    one_of("spec.type", &spec["type"], &["ClusterIP", "ExternalName", "LoadBalancer", "NodePort"], causes);
    duplicates(kind, ports, causes);
    source_ranges(object, current, causes);
    balancer(spec, kind, causes);
    traffic(spec, kind, causes);
}

fn external_name(spec: &Value, causes: &mut Vec<Cause>) {
    let detail = "may not be set for ExternalName services";
    for field in ["clusterIPs", "ipFamilies"] {
        if !items(&spec[field]).is_empty() {
            causes.push(Cause::forbidden(format!("spec.{field}"), detail));
        }
    }
    if !spec["ipFamilyPolicy"].is_null() {
        causes.push(Cause::forbidden("spec.ipFamilyPolicy", detail));
    }
    let name = spec["externalName"].as_str().unwrap_or_default().trim_end_matches('.');
    if name.is_empty() {
        causes.push(Cause::required("spec.externalName", ""));
    } else {
        named("spec.externalName", &json!(name), names::subdomain, causes);
    }
}

fn service_ports(ports: &[Value], causes: &mut Vec<Cause>) {
    let mut seen: Vec<&str> = Vec::new();
    for (i, found) in ports.iter().enumerate() {
        let place = format!("spec.ports[{i}]");
        let name = found["name"].as_str().unwrap_or_default();
        if name.is_empty() {
            if ports.len() > 1 {
                causes.push(Cause::required(format!("{place}.name"), ""));
            }
        } else {
            named(&format!("{place}.name"), &found["name"], names::label, causes);
            if seen.contains(&name) {
                causes.push(Cause::duplicate(format!("{place}.name"), &found["name"]));
            }
            seen.push(name);
        }
        port_number(&format!("{place}.port"), &found["port"], causes);
        one_of(&format!("{place}.protocol"), &found["protocol"], &["SCTP", "TCP", "UDP"], causes);
        port(&format!("{place}.targetPort"), &found["targetPort"], causes);
        if !found["appProtocol"].is_null() {
            named(&format!("{place}.appProtocol"), &found["appProtocol"], names::qualified_name, causes);
        }
    }
}

fn session(spec: &Value, causes: &mut Vec<Cause>) {
    let config = &spec["sessionAffinityConfig"];
    if spec["sessionAffinity"] == "None" && !config.is_null() {
        let detail = "must not be set when session affinity is None";
        causes.push(Cause::forbidden("spec.sessionAffinityConfig", detail));
    } else if spec["sessionAffinity"] == "ClientIP" {
        let seconds = &config["clientIP"]["timeoutSeconds"];
        let field = "spec.sessionAffinityConfig.clientIP.timeoutSeconds";
        if seconds.is_null() {
            causes.push(Cause::required(field, ""));
        } else if !seconds.as_i64().is_some_and(|n| (1..=86400).contains(&n)) {
            let detail = "must be greater than 0 and less than 86400";
            causes.push(Cause::invalid(field, seconds, detail));
        }
    }
}

fn duplicates(kind: &str, ports: &[Value], causes: &mut Vec<Cause>) {
    let node_port = |port: &Value| port["nodePort"].as_i64().filter(|number| *number != 0);
    if kind == "ClusterIP" {
        for (i, _) in ports.iter().enumerate().filter(|(_, port)| node_port(port).is_some()) {
            let detail = "may not be used when `type` is 'ClusterIP'";
            causes.push(Cause::forbidden(format!("spec.ports[{i}].nodePort"), detail));
        }
    }
    for (i, port) in ports.iter().enumerate() {
        let Some(number) = node_port(port) else { continue };
        let same = |other: &Value| node_port(other) == Some(number) && other["protocol"] == port["protocol"];
        if ports[..i].iter().any(same) {
            causes.push(Cause::duplicate(format!("spec.ports[{i}].nodePort"), &json!(number)));
        }
    }
    for (i, port) in ports.iter().enumerate() {
        let same = |other: &Value| other["port"] == port["port"] && other["protocol"] == port["protocol"];
        if ports[..i].iter().any(same) {
            let shown = format!(
                "{{\"Name\":\"\",\"Protocol\":{},\"AppProtocol\":null,\"Port\":{},\"TargetPort\":0,\"NodePort\":0}}",
                port["protocol"],
                port["port"].as_i64().unwrap_or(0)
            );
            let text = format!("Duplicate value: {shown}");
            causes.push(Cause::text("FieldValueDuplicate", format!("spec.ports[{i}]"), text));
        }
    }
}

fn texts(list: &Value) -> Vec<&str> {
    items(list).iter().filter_map(Value::as_str).collect()
}

fn external_addresses(spec: &Value, current: Option<&Value>, causes: &mut Vec<Cause>) {
    let kept = current.map(|current| texts(&current["spec"]["externalIPs"])).unwrap_or_default();
    for (i, address) in texts(&spec["externalIPs"]).into_iter().enumerate() {
        let field = format!("spec.externalIPs[{i}]");
        if addresses::ip(&field, address, &kept, causes) {
            addresses::endpoint(&field, address, causes);
        }
    }
}

/// The ranges that reach a load balancer, in the field or in the annotation. They may have blanks around.
fn source_ranges(object: &Value, current: Option<&Value>, causes: &mut Vec<Cause>) {
    let balanced = object["spec"]["type"] == "LoadBalancer";
    let of = |service: &Value| -> Vec<String> {
        let texts = texts(&service["spec"]["loadBalancerSourceRanges"]);
        texts.into_iter().map(|text| text.trim().to_owned()).collect()
    };
    let ranges = of(object);
    if !ranges.is_empty() {
        let field = "spec.LoadBalancerSourceRanges";
        if !balanced {
            causes.push(Cause::forbidden(field, ONLY_BALANCER));
        }
        let kept = current.map(of).unwrap_or_default();
        let kept: Vec<&str> = kept.iter().map(String::as_str).collect();
        for (i, range) in ranges.iter().enumerate() {
            addresses::cidr(&format!("{field}[{i}]"), range, &kept, causes);
        }
        return;
    }
    let annotation = |service: &Value| service["metadata"]["annotations"][SOURCE_RANGES].clone();
    let found = annotation(object);
    let Some(text) = found.as_str() else { return };
    let field = format!("metadata.annotations[{SOURCE_RANGES}]");
    if !balanced {
        causes.push(Cause::forbidden(field.as_str(), ONLY_BALANCER));
    }
    if text.trim().is_empty() || current.is_some_and(|current| annotation(current) == found) {
        return;
    }
    for range in text.split(',') {
        addresses::cidr(&field, range.trim(), &[], causes);
    }
}

/// The status of a service: the addresses of its load balancer.
pub fn service_status(object: &Value, current: &Value, causes: &mut Vec<Cause>) {
    let field = "status.loadBalancer.ingress";
    let list = items(&object["status"]["loadBalancer"]["ingress"]);
    if object["spec"]["type"] != "LoadBalancer" && !list.is_empty() {
        let detail = "may only be used when `spec.type` is 'LoadBalancer'";
        causes.push(Cause::forbidden(field, detail));
        return;
    }
    let kept = balanced(current);
    for (i, entry) in list.iter().enumerate() {
        let place = format!("{field}[{i}]");
        balanced_address(entry, &place, &kept, causes);
        let (place, mode) = (format!("{place}.ipMode"), &entry["ipMode"]);
        match (absent(&entry["ip"]), mode.is_null()) {
            (false, true) => causes.push(Cause::required(place, "must be specified when `ip` is set")),
            (true, false) => {
                causes.push(Cause::forbidden(place, "may not be specified when `ip` is not set"));
            }
            _ => optional(&place, mode, &["Proxy", "VIP"], causes),
        }
        balanced_host(entry, &format!("{field}[{i}]"), causes);
    }
}

/// The status of an ingress: the addresses of its load balancer.
pub fn ingress_status(object: &Value, current: &Value, causes: &mut Vec<Cause>) {
    let kept = balanced(current);
    for (i, entry) in items(&object["status"]["loadBalancer"]["ingress"]).iter().enumerate() {
        let place = format!("status.loadBalancer.ingress[{i}]");
        balanced_address(entry, &place, &kept, causes);
        balanced_host(entry, &place, causes);
    }
}

/// The addresses of a load balancer that were there before.
fn balanced(current: &Value) -> Vec<&str> {
    let list = items(&current["status"]["loadBalancer"]["ingress"]);
    list.iter().filter_map(|entry| entry["ip"].as_str()).collect()
}

fn balanced_address(entry: &Value, place: &str, kept: &[&str], causes: &mut Vec<Cause>) {
    if let Some(ip) = entry["ip"].as_str().filter(|ip| !ip.is_empty()) {
        addresses::ip(&format!("{place}.ip"), ip, kept, causes);
    }
}

fn balanced_host(entry: &Value, place: &str, causes: &mut Vec<Cause>) {
    let Some(name) = entry["hostname"].as_str().filter(|name| !name.is_empty()) else { return };
    let field = format!("{place}.hostname");
    named(&field, &entry["hostname"], names::subdomain, causes);
    if addresses::parse(name).is_some() {
        causes.push(Cause::invalid(field, &entry["hostname"], "must be a DNS name, not an IP address"));
    }
}

/// A node: the ranges of its pods.
pub fn node(object: &Value, causes: &mut Vec<Cause>) {
    let (field, list) = ("spec.podCIDRs", &object["spec"]["podCIDRs"]);
    let texts = texts(list);
    for (i, range) in texts.iter().enumerate() {
        addresses::cidr(&format!("{field}[{i}]"), range, &[], causes);
    }
    let family = |text: &&str| addresses::Range::parse(text).map(addresses::Range::is_ipv6);
    let families: Vec<Option<bool>> = texts.iter().map(family).collect();
    if addresses::are_too_many(&families) {
        causes.push(Cause::invalid(field, list, "may specify no more than one CIDR for each IP family"));
    }
}

fn balancer(spec: &Value, kind: &str, causes: &mut Vec<Cause>) {
    if kind == "LoadBalancer" {
        let class = &spec["loadBalancerClass"];
        if !class.is_null() {
            named("spec.loadBalancerClass", class, names::qualified_name, causes);
        }
        return;
    }
    for field in ["allocateLoadBalancerNodePorts", "loadBalancerClass"] {
        if !spec[field].is_null() {
            causes.push(Cause::forbidden(format!("spec.{field}"), ONLY_BALANCER));
        }
    }
}

fn traffic(spec: &Value, kind: &str, causes: &mut Vec<Cause>) {
    let policy = &spec["externalTrafficPolicy"];
    let policies = ["Cluster", "Local"];
    let exposed = EXPOSED.contains(&kind) || (kind == "ClusterIP" && !items(&spec["externalIPs"]).is_empty());
    if exposed {
        one_of("spec.externalTrafficPolicy", policy, &policies, causes);
    } else if !absent(policy) {
        let detail = "may only be set for externally-accessible services";
        causes.push(Cause::invalid("spec.externalTrafficPolicy", policy, detail));
    }
    let health = &spec["healthCheckNodePort"];
    if kind == "LoadBalancer" && *policy == "Local" {
        match health.as_i64().unwrap_or(0) {
            0 => causes.push(Cause::required("spec.healthCheckNodePort", "")),
            _ => port_number("spec.healthCheckNodePort", health, causes),
        }
    } else if health.as_i64().is_some_and(|port| port != 0) {
        let detail = "may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is 'Local'";
        causes.push(Cause::invalid("spec.healthCheckNodePort", health, detail));
    }
    let inner = &spec["internalTrafficPolicy"];
    if inner.is_null() {
        if kind == "ClusterIP" || EXPOSED.contains(&kind) {
            causes.push(Cause::required("spec.internalTrafficPolicy", ""));
        }
    } else {
        optional("spec.internalTrafficPolicy", inner, &policies, causes);
    }
    let ways = ["PreferClose", "PreferSameZone", "PreferSameNode"];
    optional("spec.trafficDistribution", &spec["trafficDistribution"], &ways, causes);
}

/// An allocated address stays.
pub fn service_update(object: &Value, current: &Value, causes: &mut Vec<Cause>) {
    let (new, old) = (&object["spec"], &current["spec"]);
    if new["type"] == "LoadBalancer"
        && old["type"] == "LoadBalancer"
        && new["loadBalancerClass"] != old["loadBalancerClass"]
    {
        let detail = "may not change once set";
        causes.push(Cause::invalid("spec.loadBalancerClass", &new["loadBalancerClass"], detail));
    }
    if new["type"] == "ExternalName" || old["type"] == "ExternalName" {
        return;
    }
    if new["clusterIP"] != old["clusterIP"] {
        let detail = "may not change once set";
        causes.push(Cause::invalid("spec.clusterIPs[0]", &new["clusterIPs"], detail));
    }
}

/// An ingress.
pub fn ingress(object: &Value, fresh: bool, causes: &mut Vec<Cause>) {
    let spec = &object["spec"];
    if items(&spec["rules"]).is_empty() && spec["defaultBackend"].is_null() {
        let detail = "either `defaultBackend` or `rules` must be specified";
        causes.push(Cause::invalid("spec", &Value::Null, detail));
    }
    if !spec["defaultBackend"].is_null() {
        backend(&spec["defaultBackend"], "spec.defaultBackend", causes);
    }
    for (i, rule) in items(&spec["rules"]).iter().enumerate() {
        let field = format!("spec.rules[{i}]");
        host(&rule["host"], &format!("{field}.host"), causes);
        if rule["http"].is_null() {
            continue;
        }
        let paths = items(&rule["http"]["paths"]);
        if paths.is_empty() {
            causes.push(Cause::required(format!("{field}.http.paths"), ""));
        }
        for (j, path) in paths.iter().enumerate() {
            ingress_path(path, &format!("{field}.http.paths[{j}]"), causes);
        }
    }
    for (i, tls) in items(&spec["tls"]).iter().enumerate() {
        for (j, name) in items(&tls["hosts"]).iter().enumerate() {
            dns_name(name, &format!("spec.tls[{i}].hosts[{j}]"), causes);
        }
        if !absent(&tls["secretName"]) {
            named(&format!("spec.tls[{i}].secretName"), &tls["secretName"], names::subdomain, causes);
        }
    }
    let class = &spec["ingressClassName"];
    if !class.is_null() {
        named("spec.ingressClassName", class, names::subdomain, causes);
    }
    let old_way =
        entries(&object["metadata"]["annotations"]).find(|(key, _)| *key == "kubernetes.io/ingress.class");
    if let Some((_, annotated)) = old_way.filter(|(_, value)| fresh && !class.is_null() && *value != class) {
        let detail = "must match `ingressClassName` when both are specified";
        causes.push(Cause::invalid("annotations.kubernetes.io/ingress.class", annotated, detail));
    }
}

fn host(value: &Value, field: &str, causes: &mut Vec<Cause>) {
    if absent(value) {
        return;
    }
    if value.as_str().is_some_and(|host| addresses::parse(host).is_some()) {
        causes.push(Cause::invalid(field, value, "must be a DNS name, not an IP address"));
    }
    dns_name(value, field, causes);
}

fn dns_name(value: &Value, field: &str, causes: &mut Vec<Cause>) {
    let wild = value.as_str().is_some_and(|host| host.contains('*'));
    named(field, value, if wild { names::wildcard } else { names::subdomain }, causes);
}

fn ingress_path(path: &Value, place: &str, causes: &mut Vec<Cause>) {
    const INSIDE: [&str; 5] = ["//", "/./", "/../", "%2f", "%2F"];
    const TYPES: [&str; 3] = ["Exact", "ImplementationSpecific", "Prefix"];
    let (text, field) = (path["path"].as_str().unwrap_or_default(), format!("{place}.path"));
    let shown = json!(text);
    if path["pathType"].is_null() {
        causes.push(Cause::required(format!("{place}.pathType"), "pathType must be specified"));
        return;
    }
    match path["pathType"].as_str().unwrap_or_default() {
        kind @ ("Exact" | "Prefix" | "ImplementationSpecific") => {
            let free = kind == "ImplementationSpecific";
            if !(text.starts_with('/') || free && text.is_empty()) {
                causes.push(Cause::invalid(field.as_str(), &shown, "must be an absolute path"));
            }
            if !free {
                for part in INSIDE.into_iter().filter(|part| text.contains(part)) {
                    causes.push(Cause::invalid(
                        field.as_str(),
                        &shown,
                        &format!("must not contain '{part}'"),
                    ));
                }
                for end in ["/..", "/."].into_iter().filter(|end| text.ends_with(end)) {
                    causes.push(Cause::invalid(field.as_str(), &shown, &format!("cannot end with '{end}'")));
                }
            }
        }
        _ => causes.push(Cause::not_supported(format!("{place}.pathType"), &path["pathType"], &TYPES)),
    }
    backend(&path["backend"], &format!("{place}.backend"), causes);
}

fn backend(backend: &Value, place: &str, causes: &mut Vec<Cause>) {
    let (service, other) = (&backend["service"], &backend["resource"]);
    match (service.is_null(), other.is_null()) {
        (true, true) => {
            causes.push(Cause::invalid(place, &json!(""), "resource or service backend is required"));
        }
        (false, false) => {
            causes.push(Cause::invalid(place, &json!(""), "cannot set both resource and service backends"));
        }
        (true, false) => {
            for field in ["kind", "name"].into_iter().filter(|field| absent(&other[*field])) {
                causes.push(Cause::required(format!("{place}.resource.{field}"), ""));
            }
        }
        (false, true) => {
            let field = format!("{place}.service.name");
            if absent(&service["name"]) {
                causes.push(Cause::required(field, ""));
            } else {
                named(&field, &service["name"], names::label, causes);
            }
            let found = &service["port"];
            let number = found["number"].as_i64().unwrap_or(0);
            match (absent(&found["name"]), number) {
                (false, 0) => {
                    named(&format!("{place}.service.port.name"), &found["name"], names::port, causes);
                }
                (false, _) => {
                    let detail = "cannot set both port name & port number";
                    causes.push(Cause::invalid(place, &json!(""), detail));
                }
                (true, 0) => causes.push(Cause::required(place, "port name or number is required")),
                (true, _) => port_number(&format!("{place}.service.port.number"), &found["number"], causes),
            }
        }
    }
}
