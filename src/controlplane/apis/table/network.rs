//! Rows of what leads to pods: services, endpoints, ingresses, network policies.

use super::row::{Row, first, labels, selector};
use serde_json::Value;

pub const SERVICE: &[&str] = &["Name", "Type", "Cluster-IP", "External-IP", "Port(s)", "Age", "*Selector"];

pub fn service(row: Row<'_>) -> Vec<Value> {
    let internal = match row.list("/spec/clusterIPs").first().and_then(Value::as_str) {
        Some(first) => first,
        None => row.text("/spec/clusterIP"),
    };
    let ports: Vec<String> = row
        .list("/spec/ports")
        .iter()
        .map(|port| {
            let protocol = port["protocol"].as_str().unwrap_or("TCP");
            match port["nodePort"].as_i64().filter(|port| *port > 0) {
                Some(node) => format!("{}:{node}/{protocol}", port["port"]),
                None => format!("{}/{protocol}", port["port"]),
            }
        })
        .collect();
    vec![
        row.name(),
        row.text("/spec/type").into(),
        if internal.is_empty() { "<none>" } else { internal }.into(),
        external(row).into(),
        if ports.is_empty() { "<none>".to_owned() } else { ports.join(",") }.into(),
        row.age(),
        labels(row.fields("/spec/selector")).into(),
    ]
}

fn external(row: Row<'_>) -> String {
    let named = |list: &[Value]| -> Vec<String> {
        list.iter().filter_map(Value::as_str).map(str::to_owned).collect()
    };
    let mut addresses = Vec::new();
    match row.text("/spec/type") {
        "ExternalName" => return row.text("/spec/externalName").to_owned(),
        "LoadBalancer" => {
            addresses = ingress_addresses(row);
            addresses.extend(named(row.list("/spec/externalIPs")));
            if addresses.is_empty() {
                return "<pending>".to_owned();
            }
        }
        _ => addresses.extend(named(row.list("/spec/externalIPs"))),
    }
    if addresses.is_empty() { "<none>".to_owned() } else { addresses.join(",") }
}

fn ingress_addresses(row: Row<'_>) -> Vec<String> {
    row.list("/status/loadBalancer/ingress")
        .iter()
        .filter_map(|at| at["ip"].as_str().or(at["hostname"].as_str()))
        .map(str::to_owned)
        .collect()
}

pub const ENDPOINTS: &[&str] = &["Name", "Endpoints", "Age"];

pub fn endpoints(row: Row<'_>) -> Vec<Value> {
    let mut all = Vec::new();
    for subset in row.list("/subsets") {
        let addresses: Vec<&str> =
            subset["addresses"].as_array().into_iter().flatten().filter_map(|at| at["ip"].as_str()).collect();
        match subset["ports"].as_array().filter(|ports| !ports.is_empty()) {
            Some(ports) => {
                for port in ports {
                    all.extend(addresses.iter().map(|address| match address.contains(':') {
                        true => format!("[{address}]:{}", port["port"]),
                        false => format!("{address}:{}", port["port"]),
                    }));
                }
            }
            None => all.extend(addresses.iter().map(ToString::to_string)),
        }
    }
    vec![row.name(), first(&all, 3, "<none>").into(), row.age()]
}

pub const ENDPOINT_SLICE: &[&str] = &["Name", "AddressType", "Ports", "Endpoints", "Age"];

pub fn endpoint_slice(row: Row<'_>) -> Vec<Value> {
    let ports: Vec<String> = row
        .list("/ports")
        .iter()
        .map(|port| match port["port"].as_i64() {
            Some(number) => number.to_string(),
            None => "*".to_owned(),
        })
        .collect();
    let addresses: Vec<String> = row
        .list("/endpoints")
        .iter()
        .flat_map(|endpoint| endpoint["addresses"].as_array().into_iter().flatten())
        .filter_map(Value::as_str)
        .map(str::to_owned)
        .collect();
    vec![
        row.name(),
        row.text("/addressType").into(),
        first(&ports, 3, "<unset>").into(),
        first(&addresses, 3, "<unset>").into(),
        row.age(),
    ]
}

pub const INGRESS: &[&str] = &["Name", "Class", "Hosts", "Address", "Ports", "Age"];

pub fn ingress(row: Row<'_>) -> Vec<Value> {
    let hosts: Vec<&str> = row
        .list("/spec/rules")
        .iter()
        .filter_map(|rule| rule["host"].as_str())
        .filter(|host| !host.is_empty())
        .collect();
    let secure = !row.list("/spec/tls").is_empty();
    let class = row.text_or("/metadata/annotations/kubernetes.io~1ingress.class", "<none>");
    vec![
        row.name(),
        row.text_or("/spec/ingressClassName", class).into(),
        first(&hosts, 3, "*").into(),
        ingress_addresses(row).join(",").into(),
        if secure { "80, 443" } else { "80" }.into(),
        row.age(),
    ]
}

pub const INGRESS_CLASS: &[&str] = &["Name", "Controller", "Parameters", "Age"];

pub fn ingress_class(row: Row<'_>) -> Vec<Value> {
    let parameters = match row.fields("/spec/parameters") {
        Some(_) => {
            let kind = row.text("/spec/parameters/kind");
            let kind = match row.text("/spec/parameters/apiGroup") {
                "" => kind.to_owned(),
                group => format!("{kind}.{group}"),
            };
            format!("{kind}/{}", row.text("/spec/parameters/name"))
        }
        None => "<none>".to_owned(),
    };
    vec![row.name(), row.text("/spec/controller").into(), parameters.into(), row.age()]
}

pub const NETWORK_POLICY: &[&str] = &["Name", "Pod-Selector", "Age"];

pub fn network_policy(row: Row<'_>) -> Vec<Value> {
    vec![row.name(), selector(row.at("/spec/podSelector")).into(), row.age()]
}
