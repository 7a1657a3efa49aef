//! Cluster IPs and node ports of services. What is taken is read off the stored services, under one lock.

use super::Registry;
use super::kinds;
use opdev_apimachinery::attributes::{Attributes, ServiceField};
use opdev_apimachinery::error::{Cause, Status};
use opdev_apis::defaults::{each, put};
use serde_json::{Value, json};
use std::collections::HashSet;
use std::net::Ipv4Addr;

const NETWORK: Ipv4Addr = Ipv4Addr::new(10, 96, 0, 0);
const ADDRESSES: u32 = 1 << 16;
const PORTS: std::ops::RangeInclusive<i64> = 30_000..=32_767;

/// The addresses and ports of the stored services.
#[derive(Debug, Default)]
struct Allocated {
    addresses: HashSet<String>,
    ports: HashSet<i64>,
}

impl Allocated {
    /// The addresses and ports of all services but one (the one that is being written).
    fn by_services<'a>(services: impl Iterator<Item = &'a Attributes>, except_uid: &str) -> Self {
        let mut taken = Allocated::default();
        for service in services.filter(|service| service.uid() != except_uid) {
            let address = service.service(ServiceField::Address);
            taken.addresses.extend((!address.is_empty()).then(|| address.to_owned()));
            let ports = service.service(ServiceField::NodePorts).split_terminator(',');
            taken.ports.extend(ports.filter_map(|port| port.parse::<i64>().ok()));
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

    /// Takes a port that somebody asks for, or says why it cannot be had.
    fn take(&mut self, port: i64) -> Result<(), &'static str> {
        if !PORTS.contains(&port) {
            return Err("provided port is not in the valid range. The range of valid ports is 30000-32767");
        }
        if self.ports.insert(port) { Ok(()) } else { Err("provided port is already allocated") }
    }
}

fn pick(below: u32) -> u32 {
    let mut bytes = [0; 4];
    // Without a random source the search starts at the beginning, which is just as correct.
    let _ = getrandom::fill(&mut bytes);
    u32::from_le_bytes(bytes) % below.max(1)
}

fn invalid(service: &Value, causes: Vec<Cause>) -> Status {
    Status::invalid("", "Service", service["metadata"]["name"].as_str().unwrap_or_default(), causes)
}

/// Gives a service what it lacks; the error says what it asks for that it cannot have. `current` is what it
/// was.
fn service(service: &mut Value, current: Option<&Value>, mut taken: Allocated) -> Result<(), Status> {
    let kind = service["spec"]["type"].as_str().unwrap_or("ClusterIP").to_owned();
    let spec = &mut service["spec"];
    if kind == "ExternalName" {
        // Validation says that there may be none.
        if let Some(address) = spec["clusterIP"].as_str().filter(|text| !text.is_empty()).map(str::to_owned) {
            spec["clusterIPs"] = json!([address]);
        }
        return Ok(());
    }
    if spec["clusterIP"] == "None" && spec["selector"].as_object().is_none_or(serde_json::Map::is_empty) {
        // Without a selector nobody knows which families the addresses will be of.
        put(spec, "ipFamilyPolicy", "RequireDualStack");
        put(spec, "ipFamilies", json!(["IPv4"]));
        let (both, first) = (spec["ipFamilyPolicy"] != "SingleStack", spec["ipFamilies"][0].clone());
        if let Some(families) = spec["ipFamilies"].as_array_mut().filter(|list| both && list.len() == 1) {
            families.push(Value::from(if first == "IPv4" { "IPv6" } else { "IPv4" }));
        }
    }
    if let Err(cause) = address(spec, &mut taken) {
        return Err(invalid(service, vec![cause]));
    }
    if matches!(kind.as_str(), "NodePort" | "LoadBalancer") {
        match current {
            None => new_ports(service, &mut taken)?,
            Some(current) => changed_ports(service, current, &mut taken)?,
        }
    }
    let checked = |spec: &Value| spec["type"] == "LoadBalancer" && spec["externalTrafficPolicy"] == "Local";
    let spec = &mut service["spec"];
    if checked(spec) && !current.is_some_and(|current| checked(&current["spec"])) {
        let asked = spec["healthCheckNodePort"].as_i64().unwrap_or(0);
        if asked == 0 {
            spec["healthCheckNodePort"] = taken.port().into();
        } else if let Err(why) = taken.take(asked) {
            let text = format!("failed to allocate requested HealthCheck NodePort {asked}: {why}");
            return Err(Status::internal(&text));
        }
    }
    Ok(())
}

fn node_port(port: &Value) -> Option<i64> {
    port["nodePort"].as_i64().filter(|number| *number != 0)
}

/// Returns true if ports that ask for none get a port of the node.
fn gives_ports(spec: &Value) -> bool {
    spec["type"] == "NodePort" || spec["allocateLoadBalancerNodePorts"] != false
}

fn refused(service: &Value, i: usize, number: i64, why: &str) -> Status {
    invalid(service, vec![Cause::invalid(format!("spec.ports[{i}].nodePort"), &json!(number), why)])
}

/// The node ports of a new service: ports with the same number share one, whatever their protocols.
fn new_ports(service: &mut Value, taken: &mut Allocated) -> Result<(), Status> {
    let gives = gives_ports(&service["spec"]);
    let mut ports = service["spec"]["ports"].as_array().cloned().unwrap_or_default();
    let asked: Vec<_> = ports.iter().map(|port| (port["port"].clone(), node_port(port))).collect();
    let mut shared: Vec<(Value, i64)> = Vec::new();
    for (i, port) in ports.iter_mut().enumerate() {
        let (number, own) = (port["port"].clone(), node_port(port));
        if own.is_none() && !gives {
            continue;
        }
        let known = shared.iter().find(|(port, _)| *port == number).map(|(_, node)| *node);
        if let Some(node) = known {
            match own {
                Some(own) if own != node => {
                    taken.take(own).map_err(|why| refused(service, i, own, why))?;
                }
                Some(_) => {}
                None => port["nodePort"] = Value::from(node),
            }
            continue;
        }
        // A port with this number may ask for it, and need not be the first.
        let wanted = asked.iter().find_map(|(port, node)| node.filter(|_| *port == number));
        let node = match wanted {
            Some(node) => taken.take(node).map(|()| node).map_err(|why| refused(service, i, node, why))?,
            None => taken.port().ok_or_else(full)?,
        };
        port["nodePort"] = Value::from(node);
        shared.push((number, node));
    }
    service["spec"]["ports"] = Value::Array(ports);
    Ok(())
}

/// The node ports of a service that is changed: it keeps what it had, and whatever is new gets one of its
/// own.
fn changed_ports(service: &mut Value, current: &Value, taken: &mut Allocated) -> Result<(), Status> {
    let gives = gives_ports(&service["spec"]);
    let own: Vec<i64> =
        current["spec"]["ports"].as_array().into_iter().flatten().filter_map(node_port).collect();
    taken.ports.extend(&own);
    let mut ports = service["spec"]["ports"].as_array().cloned().unwrap_or_default();
    let (mut got, mut seen) = (HashSet::new(), HashSet::new());
    for (i, port) in ports.iter_mut().enumerate() {
        let number = match node_port(port) {
            Some(number) => {
                if !own.contains(&number) && !got.contains(&number) {
                    taken.take(number).map_err(|why| refused(service, i, number, why))?;
                    got.insert(number);
                }
                number
            }
            None if gives => {
                let number = taken.port().ok_or_else(full)?;
                port["nodePort"] = Value::from(number);
                number
            }
            None => continue,
        };
        let protocol = port["protocol"].as_str().unwrap_or_default().to_owned();
        let text = format!("duplicate nodePort: {{{protocol} {number}}}");
        if !seen.insert((protocol, number)) {
            return Err(Status::new(500, "", text));
        }
    }
    service["spec"]["ports"] = Value::Array(ports);
    Ok(())
}

fn full() -> Status {
    Status::internal("failed to allocate a nodePort: range is full")
}

/// Gives a service its addresses and ports, beside those of all others. The caller holds the lock of
/// allocations.
pub(super) fn from_registry(
    registry: &Registry,
    object: &mut Value,
    current: Option<&Value>,
) -> Result<(), Status> {
    let services = registry.store.list("services", None).items;
    let known = services.iter().map(|service| service.attributes());
    let uid = object["metadata"]["uid"].as_str().unwrap_or_default();
    let taken = Allocated::by_services(known, uid);
    service(object, current, taken)
}

/// Refuses families that the cluster lacks, and a new service without a name to note its address under.
pub(super) fn check_new(service: &Value, dry_run: bool) -> Result<(), Status> {
    kinds::families::check(&mut service.clone(), None)?;
    let named = !service["metadata"]["name"].as_str().unwrap_or_default().is_empty();
    if dry_run || named || !needs_address(service) {
        return Ok(());
    }
    Err(nameless())
}

/// Returns true if a service is given an address of the cluster.
fn needs_address(service: &Value) -> bool {
    let spec = &service["spec"];
    spec["type"] != "ExternalName" && spec["clusterIP"] != "None"
}

/// The real server's error for a service without a name: it cannot note whose address it is.
fn nameless() -> Status {
    let why = "failed to allocate IP: IPAddress.networking.k8s.io \"10.96.0.1\" is invalid: spec.parentRef.name: \
               Required value";
    invalid(&Value::Null, vec![Cause::invalid("spec.clusterIPs", &json!([""]), why)])
}

fn parsed(address: &str) -> Result<Ipv4Addr, Cause> {
    address.parse().map_err(|_| {
        let detail = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)";
        Cause::invalid("spec.clusterIPs[0]", &json!(address), detail)
    })
}

fn address(spec: &mut Value, taken: &mut Allocated) -> Result<(), Cause> {
    let first = spec["clusterIPs"][0].as_str().map(str::to_owned);
    let asked = spec["clusterIP"].as_str().map(str::to_owned).or(first).filter(|text| !text.is_empty());
    let address = match asked {
        Some(text) if text == "None" => text,
        Some(text) => {
            let refused = |why: &str| {
                let detail = format!("failed to allocate IP {text}: {why}");
                Cause::invalid("spec.clusterIPs", &json!([text]), &detail)
            };
            let ip = parsed(&text)?;
            if u32::from(ip) & !(ADDRESSES - 1) != u32::from(NETWORK) {
                return Err(refused(&format!(
                    "the provided IP ({text}) is not in the valid range. The range of valid IPs is 10.96.0.0/16"
                )));
            }
            if !taken.addresses.insert(text.clone()) {
                return Err(refused("provided IP is already allocated"));
            }
            text
        }
        None => match taken.address() {
            Some(address) => address,
            None => return Ok(()),
        },
    };
    spec["clusterIP"] = Value::from(address.as_str());
    spec["clusterIPs"] = json!([address]);
    put(spec, "ipFamilies", json!(["IPv4"]));
    put(spec, "ipFamilyPolicy", "SingleStack");
    Ok(())
}

/// Keeps what was allocated before where the new service does not say anything else.
pub(super) fn keep(service: &mut Value, current: &Value) {
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
            // A request that changes only the first address means that it is the only one.
            spec["clusterIPs"] = json!([spec["clusterIP"].clone()]);
        }
        for field in ["ipFamilies", "ipFamilyPolicy"] {
            if let Some(value) = old.get(field) {
                put(spec, field, value.clone());
            }
        }
    }
    if spec["type"] == "ExternalName" && old["type"] != "ExternalName" {
        // Allocated values are dropped, unless the request asks for others.
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
        if gives_ports(spec) && gives_ports(old) {
            keep_ports(spec, old);
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

/// A port without a port of the node keeps that of the old one with its name, unless another one asks for it.
fn keep_ports(spec: &mut Value, old: &Value) {
    let numbers = |spec: &Value| -> HashSet<i64> {
        spec["ports"].as_array().into_iter().flatten().filter_map(node_port).collect()
    };
    let (asked, before) = (numbers(spec), numbers(old));
    let name = |port: &Value| port["name"].as_str().unwrap_or_default().to_owned();
    let old_ports = old["ports"].as_array().cloned().unwrap_or_default();
    for port in each(spec, "ports").filter(|port| node_port(port).is_none()) {
        let known = old_ports.iter().rev().find(|known| name(known) == name(port)).and_then(node_port);
        if let Some(number) = known.filter(|number| !(asked.contains(number) && before.contains(number))) {
            port["nodePort"] = Value::from(number);
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

    fn exposed(ports: &Value) -> Value {
        json!({"metadata": {"name": "s", "uid": "1"}, "spec": {"type": "NodePort", "ports": ports}})
    }

    fn numbers(service: &Value) -> Vec<i64> {
        service["spec"]["ports"].as_array().unwrap().iter().filter_map(node_port).collect()
    }

    #[test]
    fn services_get_addresses_and_ports_of_their_own() {
        let mut first = exposed(&json!([{"port": 80}]));
        service(&mut first, None, Allocated::default()).unwrap();
        let ip = first["spec"]["clusterIP"].as_str().unwrap().to_owned();
        assert!(ip.starts_with("10.96."));
        let node_port = numbers(&first)[0];
        assert!(PORTS.contains(&node_port));
        let stored = [Attributes::alone(crate::indexing("services"), &first)];
        let mut second = exposed(&json!([{"port": 80, "nodePort": node_port}]));
        let refused = service(&mut second, None, Allocated::by_services(stored.iter(), "2")).unwrap_err();
        assert_eq!(
            refused.message,
            format!(
                "Service \"s\" is invalid: spec.ports[0].nodePort: Invalid value: {node_port}: \
                 provided port is already allocated"
            )
        );
        second["spec"]["clusterIP"] = Value::from(ip);
        let refused = service(&mut second, None, Allocated::by_services(stored.iter(), "2")).unwrap_err();
        assert_eq!(refused.causes.len(), 1);
        assert!(refused.message.ends_with("provided IP is already allocated"));
    }

    #[test]
    fn ports_with_the_same_number_share_a_port_of_the_node_and_keep_it() {
        let mut dns = exposed(&json!([{"name": "dns", "port": 53, "protocol": "UDP"},
            {"name": "tcp", "port": 53, "protocol": "TCP", "nodePort": 30053}, {"name": "web", "port": 80}]));
        service(&mut dns, None, Allocated::default()).unwrap();
        assert_eq!(numbers(&dns)[..2], [30053, 30053]);
        let before = dns.clone();
        for port in each(&mut dns["spec"], "ports") {
            port.as_object_mut().unwrap().remove("nodePort");
        }
        keep(&mut dns, &before);
        service(&mut dns, Some(&before), Allocated::default()).unwrap();
        assert_eq!(numbers(&dns), numbers(&before));
        // A port of another name is another port, and gets its own.
        dns["spec"]["ports"][1] = json!({"name": "other", "port": 53, "protocol": "TCP"});
        keep(&mut dns, &before);
        service(&mut dns, Some(&before), Allocated::default()).unwrap();
        let now = numbers(&dns);
        assert!(now[0] == 30053 && now[1] != 30053 && now[2] == numbers(&before)[2]);
        dns["spec"]["ports"][1] = json!({"name": "other", "port": 5, "protocol": "UDP", "nodePort": 30053});
        let refused = service(&mut dns, Some(&before), Allocated::default()).unwrap_err();
        assert_eq!((refused.code, refused.message.as_str()), (500, "duplicate nodePort: {UDP 30053}"));
    }

    #[test]
    fn a_health_check_has_a_port_that_can_be_had() {
        let mut checked = json!({"spec": {"type": "LoadBalancer", "externalTrafficPolicy": "Local",
            "healthCheckNodePort": 5, "ports": []}});
        assert_eq!(
            service(&mut checked, None, Allocated::default()).unwrap_err().message,
            "Internal error occurred: failed to allocate requested HealthCheck NodePort 5: provided port is not in the \
             valid range. The range of valid ports is 30000-32767"
        );
    }

    #[test]
    fn headless_stays_headless() {
        let mut object = json!({"spec": {"type": "ClusterIP", "clusterIP": "None"}});
        service(&mut object, None, Allocated::default()).unwrap();
        assert_eq!(object["spec"]["clusterIPs"], json!(["None"]));
    }
}
