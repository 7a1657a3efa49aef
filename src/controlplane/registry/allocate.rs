//! Cluster IPs and node ports of services. What is taken is read off the stored services, under one lock.

use super::defaults::{each, put};
use crate::error::Cause;
use serde_json::{Value, json};
use std::collections::HashSet;
use std::net::Ipv4Addr;
use std::sync::Arc;

const NETWORK: Ipv4Addr = Ipv4Addr::new(10, 96, 0, 0);
const ADDRESSES: u32 = 1 << 16;
const PORTS: std::ops::RangeInclusive<i64> = 30_000..=32_767;

/// What the stored services hold.
#[derive(Debug, Default)]
pub(crate) struct Taken {
    addresses: HashSet<String>,
    ports: HashSet<i64>,
}

impl Taken {
    /// Reads them off all services but one (the one that is being written).
    pub(crate) fn of(services: &[Arc<Value>], except_uid: &str) -> Self {
        let mut taken = Taken::default();
        for service in services.iter().filter(|s| s["metadata"]["uid"] != except_uid) {
            let spec = &service["spec"];
            taken.addresses.extend(spec["clusterIP"].as_str().map(str::to_owned));
            taken.ports.extend(spec["healthCheckNodePort"].as_i64());
            for port in spec["ports"].as_array().into_iter().flatten() {
                taken.ports.extend(port["nodePort"].as_i64());
            }
        }
        taken
    }

    fn address(&mut self) -> Option<String> {
        let start = pick(ADDRESSES - 2);
        (0..ADDRESSES - 2)
            .map(|i| 1 + (start + i) % (ADDRESSES - 2))
            .map(|offset| Ipv4Addr::from(u32::from(NETWORK) + offset).to_string())
            .find(|address| self.addresses.insert(address.clone()))
    }

    fn port(&mut self) -> Option<i64> {
        let count = PORTS.end() - PORTS.start() + 1;
        let start = i64::from(pick(u32::try_from(count).unwrap_or(1)));
        (0..count).map(|i| PORTS.start() + (start + i) % count).find(|port| self.ports.insert(*port))
    }
}

fn pick(below: u32) -> u32 {
    let mut bytes = [0; 4];
    // Without a random source the search starts at the beginning, which is just as correct.
    let _ = getrandom::fill(&mut bytes);
    u32::from_le_bytes(bytes) % below.max(1)
}

/// Gives a service what it lacks; says what it asks for that it cannot have.
pub(crate) fn service(service: &mut Value, mut taken: Taken) -> Vec<Cause> {
    let mut causes = Vec::new();
    let kind = service["spec"]["type"].as_str().unwrap_or("ClusterIP").to_owned();
    let spec = &mut service["spec"];
    if kind == "ExternalName" {
        // Validation says that there may be none.
        if let Some(address) = spec["clusterIP"].as_str().filter(|text| !text.is_empty()).map(str::to_owned) {
            spec["clusterIPs"] = json!([address]);
        }
        return causes;
    }
    if spec["clusterIP"] == "None" && spec["selector"].as_object().is_none_or(serde_json::Map::is_empty) {
        // Without a selector nobody knows which families the addresses will be of.
        put(spec, "ipFamilies", json!(["IPv4", "IPv6"]));
        put(spec, "ipFamilyPolicy", "RequireDualStack");
    }
    address(spec, &mut taken, &mut causes);
    let wants_ports =
        kind == "NodePort" || (kind == "LoadBalancer" && spec["allocateLoadBalancerNodePorts"] != false);
    // Ports with the same number get the same port of the node, whatever their protocols.
    let mut shared: Vec<(Value, i64)> = Vec::new();
    for (i, port) in each(spec, "ports").enumerate() {
        let number = port["port"].clone();
        let asked = port["nodePort"].as_i64().filter(|port| *port != 0);
        match asked {
            // Validation says that there may be none.
            Some(_) if kind == "ClusterIP" => {}
            Some(number) if !PORTS.contains(&number) => {
                let detail =
                    "provided port is not in the valid range. The range of valid ports is 30000-32767";
                causes.push(Cause::invalid(format!("spec.ports[{i}].nodePort"), &json!(number), detail));
            }
            Some(number) if !taken.ports.insert(number) => {
                let detail = "provided port is already allocated";
                causes.push(Cause::invalid(format!("spec.ports[{i}].nodePort"), &json!(number), detail));
            }
            Some(_) => {}
            None if wants_ports => {
                let known = shared.iter().find(|(port, _)| *port == number).map(|(_, node)| *node);
                if let Some(node) = known.or_else(|| taken.port()) {
                    port["nodePort"] = Value::from(node);
                    shared.push((number, node));
                }
            }
            None => {}
        }
    }
    let checked = kind == "LoadBalancer" && spec["externalTrafficPolicy"] == "Local";
    if checked && spec["healthCheckNodePort"].as_i64().unwrap_or(0) == 0 {
        spec["healthCheckNodePort"] = taken.port().into();
    }
    causes
}

/// Whether a service is given an address of the cluster.
pub(crate) fn needs_address(service: &Value) -> bool {
    let spec = &service["spec"];
    spec["type"] != "ExternalName" && spec["clusterIP"] != "None"
}

/// What is wrong with the families of a service that is changed. Only one without a selector may ask for two.
pub(crate) fn families(service: &Value) -> Vec<Cause> {
    let spec = &service["spec"];
    let open =
        spec["clusterIP"] == "None" && spec["selector"].as_object().is_none_or(serde_json::Map::is_empty);
    if open || spec["type"] == "ExternalName" {
        return Vec::new();
    }
    let mut causes = Vec::new();
    if spec["ipFamilyPolicy"] == "RequireDualStack" {
        let detail = "this cluster is not configured for dual-stack services";
        causes.push(Cause::invalid("spec.ipFamilyPolicy", &spec["ipFamilyPolicy"], detail));
    }
    for (i, family) in spec["ipFamilies"].as_array().into_iter().flatten().enumerate() {
        if family == "IPv6" {
            let detail = "not configured on this cluster";
            causes.push(Cause::invalid(format!("spec.ipFamilies[{i}]"), family, detail));
        }
    }
    causes
}

/// What the real server says of a service that has no name: it cannot note whose address it is.
pub(crate) fn nameless() -> Cause {
    let why = "failed to allocate IP: IPAddress.networking.k8s.io \"10.96.0.1\" is invalid: spec.parentRef.name: \
               Required value";
    Cause::invalid("spec.clusterIPs", &json!([""]), why)
}

fn address(spec: &mut Value, taken: &mut Taken, causes: &mut Vec<Cause>) {
    let first = spec["clusterIPs"][0].as_str().map(str::to_owned);
    let asked = spec["clusterIP"].as_str().map(str::to_owned).or(first).filter(|text| !text.is_empty());
    let address = match asked {
        Some(text) if text == "None" => text,
        Some(text) => {
            let place = || "spec.clusterIPs".to_owned();
            match text.parse::<Ipv4Addr>() {
                Err(_) => causes.push(Cause::invalid(
                    "spec.clusterIPs[0]",
                    &json!(text),
                    "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)",
                )),
                Ok(ip) if u32::from(ip) & !(ADDRESSES - 1) != u32::from(NETWORK) => causes.push(Cause::invalid(
                    place(),
                    &json!([text]),
                    &format!(
                        "failed to allocate IP {text}: the provided IP ({text}) is not in the valid range. \
                         The range of valid IPs is 10.96.0.0/16"
                    ),
                )),
                Ok(_) if !taken.addresses.insert(text.clone()) => causes.push(Cause::invalid(
                    place(),
                    &json!([text]),
                    &format!("failed to allocate IP {text}: provided IP is already allocated"),
                )),
                Ok(_) => {}
            }
            text
        }
        None => match taken.address() {
            Some(address) => address,
            None => return,
        },
    };
    spec["clusterIP"] = Value::from(address.as_str());
    spec["clusterIPs"] = json!([address]);
    put(spec, "ipFamilies", json!(["IPv4"]));
    put(spec, "ipFamilyPolicy", "SingleStack");
}

/// Keeps what was allocated before where the new service does not say anything else.
pub(crate) fn keep(service: &mut Value, current: &Value) {
    let (spec, old) = (&mut service["spec"], &current["spec"]);
    let needs_address = spec["type"] != "ExternalName" && old["type"] != "ExternalName";
    if needs_address {
        let none = |list: &Value| list.as_array().is_none_or(Vec::is_empty);
        if spec["clusterIP"].as_str().unwrap_or_default().is_empty()
            && let Some(address) = old.get("clusterIP")
        {
            spec["clusterIP"] = address.clone();
        }
        if spec["clusterIP"] == old["clusterIP"] {
            if none(&spec["clusterIPs"])
                && let Some(addresses) = old.get("clusterIPs")
            {
                spec["clusterIPs"] = addresses.clone();
            }
        } else if none(&spec["clusterIPs"]) || spec["clusterIPs"] == old["clusterIPs"] {
            // Whoever changes the first address alone means the only one.
            spec["clusterIPs"] = json!([spec["clusterIP"].clone()]);
        }
        for field in ["ipFamilies", "ipFamilyPolicy"] {
            if let Some(value) = old.get(field) {
                put(spec, field, value.clone());
            }
        }
    }
    if spec["type"] == "ExternalName" && old["type"] != "ExternalName" {
        // What was allocated goes, but not what the request asks for.
        for field in ["clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy"] {
            drop_same(spec, old, field);
        }
    }
    let checked = |spec: &Value| spec["type"] == "LoadBalancer" && spec["externalTrafficPolicy"] == "Local";
    if checked(spec) && checked(old) {
        put(spec, "healthCheckNodePort", old["healthCheckNodePort"].clone());
    } else if checked(old) {
        drop_same(spec, old, "healthCheckNodePort");
    }
    if old["type"] == "LoadBalancer" && spec["type"] != "LoadBalancer" {
        drop_same(spec, old, "allocateLoadBalancerNodePorts");
        drop_same(spec, old, "loadBalancerClass");
    }
    let exposed = |spec: &Value| {
        matches!(spec["type"].as_str(), Some("NodePort" | "LoadBalancer"))
            || spec["externalIPs"].as_array().is_some_and(|list| !list.is_empty())
    };
    if exposed(old) && !exposed(spec) {
        drop_same(spec, old, "externalTrafficPolicy");
    }
    let exposes = |spec: &Value| matches!(spec["type"].as_str(), Some("NodePort" | "LoadBalancer"));
    if exposes(spec) && exposes(old) {
        let old_ports = old["ports"].as_array().cloned().unwrap_or_default();
        for port in each(spec, "ports") {
            let same = |p: &&Value| p["port"] == port["port"] && p["protocol"] == port["protocol"];
            if port["nodePort"].as_i64().unwrap_or_default() == 0
                && let Some(number) = old_ports.iter().find(same).and_then(|p| p.get("nodePort"))
            {
                port["nodePort"] = number.clone();
            }
        }
    } else if !exposes(spec) && exposes(old) {
        // A port that was allocated for the old type goes with it.
        let old_ports = old["ports"].as_array().cloned().unwrap_or_default();
        for port in each(spec, "ports") {
            let number = port["nodePort"].clone();
            if old_ports.iter().any(|p| p["nodePort"] == number)
                && let Some(map) = port.as_object_mut()
            {
                map.remove("nodePort");
            }
        }
    }
}

/// Takes away a field that says what it said before.
fn drop_same(spec: &mut Value, old: &Value, field: &str) {
    let same = spec.get(field) == old.get(field);
    if let Some(map) = spec.as_object_mut().filter(|_| same) {
        map.remove(field);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn services_get_addresses_and_ports_of_their_own() {
        let mut first =
            json!({"metadata": {"uid": "1"}, "spec": {"type": "NodePort", "ports": [{"port": 80}]}});
        assert!(service(&mut first, Taken::default()).is_empty());
        let ip = first["spec"]["clusterIP"].as_str().unwrap().to_owned();
        assert!(ip.starts_with("10.96."));
        let node_port = first["spec"]["ports"][0]["nodePort"].as_i64().unwrap();
        assert!(PORTS.contains(&node_port));
        let stored = [Arc::new(first)];
        let mut second = json!({"spec": {"type": "NodePort", "clusterIP": ip,
            "ports": [{"port": 80, "nodePort": node_port}]}});
        let causes = service(&mut second, Taken::of(&stored, "2"));
        assert_eq!(causes.len(), 2);
        assert!(causes[0].message.ends_with("provided IP is already allocated"));
        assert!(causes[1].message.ends_with("provided port is already allocated"));
    }

    #[test]
    fn headless_stays_headless() {
        let mut object = json!({"spec": {"type": "ClusterIP", "clusterIP": "None"}});
        assert!(service(&mut object, Taken::default()).is_empty());
        assert_eq!(object["spec"]["clusterIPs"], json!(["None"]));
    }
}
