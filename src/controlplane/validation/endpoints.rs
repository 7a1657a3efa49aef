//! Refusals of Endpoints and EndpointSlices. The old field `deprecatedTopology` is not looked at.

use super::addresses;
use super::checks::{absent, items, named, one_of, port_number};
use opdev_apimachinery::error::Cause;
use opdev_apimachinery::resource::names;
use opdev_apimachinery::version::since;
use serde_json::{Value, json};
use std::collections::HashSet;

const PROTOCOLS: [&str; 3] = ["SCTP", "TCP", "UDP"];

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// Checks a list, unless an update leaves it as it was.
fn unless_kept(
    list: &str,
    (object, current): (&Value, Option<&Value>),
    causes: &mut Vec<Cause>,
    check: impl FnOnce(&Value, &mut Vec<Cause>),
) {
    if current.is_none_or(|current| current[list] != object[list]) {
        check(&object[list], causes);
    }
}

/// Endpoints.
pub fn endpoints(object: &Value, current: Option<&Value>, causes: &mut Vec<Cause>) {
    unless_kept("subsets", (object, current), causes, |subsets, causes| {
        for (i, subset) in items(subsets).iter().enumerate() {
            self::subset(subset, &format!("subsets[{i}]"), causes);
        }
    });
}

fn subset(subset: &Value, place: &str, causes: &mut Vec<Cause>) {
    let lists = ["addresses", "notReadyAddresses"];
    if lists.iter().all(|list| items(&subset[*list]).is_empty()) {
        causes.push(Cause::required(place, "must specify `addresses` or `notReadyAddresses`"));
    }
    for list in lists {
        for (i, address) in items(&subset[list]).iter().enumerate() {
            let place = format!("{place}.{list}[{i}]");
            let (field, ip) = (format!("{place}.ip"), text(&address["ip"]));
            addresses::ip(&field, ip, &[], causes);
            if !absent(&address["hostname"]) {
                named(&format!("{place}.hostname"), &address["hostname"], names::label, causes);
            }
            node_name(&format!("{place}.nodeName"), &address["nodeName"], causes);
            addresses::endpoint(&field, ip, causes);
        }
    }
    let ports = items(&subset["ports"]);
    for (i, port) in ports.iter().enumerate() {
        let place = format!("{place}.ports[{i}]");
        if !absent(&port["name"]) {
            named(&format!("{place}.name"), &port["name"], names::label, causes);
        } else if ports.len() > 1 {
            causes.push(Cause::required(format!("{place}.name"), ""));
        }
        port_number(&format!("{place}.port"), &port["port"], causes);
        one_of(&format!("{place}.protocol"), &port["protocol"], &PROTOCOLS, causes);
        application(port, &place, causes);
    }
}

fn application(port: &Value, place: &str, causes: &mut Vec<Cause>) {
    if !port["appProtocol"].is_null() {
        named(&format!("{place}.appProtocol"), &port["appProtocol"], names::qualified_name, causes);
    }
}

fn node_name(field: &str, name: &Value, causes: &mut Vec<Cause>) {
    if !name.is_null() {
        named(field, name, names::subdomain, causes);
    }
}

fn too_many(field: &str, list: &[Value], most: usize, causes: &mut Vec<Cause>) -> bool {
    let over = list.len() > most;
    if over {
        let message = format!("Too many: {}: must have at most {most} items", list.len());
        causes.push(Cause::text("FieldValueTooMany", field, message));
    }
    over
}

/// An EndpointSlice.
pub fn slice(object: &Value, current: Option<&Value>, causes: &mut Vec<Cause>) {
    one_of("addressType", &object["addressType"], &["FQDN", "IPv4", "IPv6"], causes);
    slice_ports(items(&object["ports"]), causes);
    unless_kept("endpoints", (object, current), causes, |list, causes| {
        let list = items(list);
        if too_many("endpoints", list, 1000, causes) {
            return;
        }
        for (i, endpoint) in list.iter().enumerate() {
            slice_endpoint(endpoint, text(&object["addressType"]), &format!("endpoints[{i}]"), causes);
        }
    });
}

fn slice_ports(ports: &[Value], causes: &mut Vec<Cause>) {
    if too_many("ports", ports, 20_000, causes) {
        return;
    }
    let mut seen = HashSet::new();
    for (i, port) in ports.iter().enumerate() {
        let place = format!("ports[{i}]");
        let (field, name) = (format!("{place}.name"), text(&port["name"]));
        if !name.is_empty() {
            named(&field, &port["name"], names::label, causes);
        }
        if !seen.insert(name) {
            causes.push(Cause::duplicate(field, &json!(name)));
        }
        one_of(&format!("{place}.protocol"), &port["protocol"], &PROTOCOLS, causes);
        application(port, &place, causes);
    }
}

fn slice_endpoint(endpoint: &Value, kind: &str, place: &str, causes: &mut Vec<Cause>) {
    let field = format!("{place}.addresses");
    let list = items(&endpoint["addresses"]);
    if list.is_empty() {
        let detail = if since(37) { "" } else { "must contain at least 1 address" };
        causes.push(Cause::required(field.as_str(), detail));
    }
    too_many(&field, list, 100, causes);
    for (i, address) in list.iter().enumerate() {
        slice_address(text(address), kind, (&field, &format!("{field}[{i}]")), causes);
    }
    node_name(&format!("{place}.nodeName"), &endpoint["nodeName"], causes);
    if !endpoint["hostname"].is_null() {
        named(&format!("{place}.hostname"), &endpoint["hostname"], names::label, causes);
    }
    for (list, rule) in
        [("forZones", names::label_value as fn(&str) -> Vec<String>), ("forNodes", names::subdomain)]
    {
        let hints = items(&endpoint["hints"][list]);
        let field = format!("{place}.hints.{list}");
        if too_many(&field, hints, 8, causes) {
            return;
        }
        for (i, hint) in hints.iter().enumerate() {
            let field = format!("{field}[{i}].name");
            if hints[..i].iter().any(|before| before["name"] == hint["name"]) {
                causes.push(Cause::duplicate(field.as_str(), &hint["name"]));
            }
            named(&field, &hint["name"], rule, causes);
        }
    }
}

/// An address of an endpoint. What is of another family is told of the whole list.
fn slice_address(address: &str, kind: &str, (list, field): (&str, &str), causes: &mut Vec<Cause>) {
    let (right, six) = match kind {
        "IPv4" => (addresses::ip(field, address, &[], causes), false),
        "IPv6" => (addresses::canonical_ip(field, address, causes), true),
        "FQDN" => return domain(address, field, causes),
        _ => return,
    };
    if !right {
        return;
    }
    if addresses::parse(address).is_some_and(|parsed| parsed.is_ipv6() != six) {
        let family = if six { "IPv6" } else { "IPv4" };
        causes.push(Cause::invalid(list, &json!(address), &format!("must be an {family} address")));
    }
    addresses::endpoint(field, address, causes);
}

fn domain(name: &str, field: &str, causes: &mut Vec<Cause>) {
    if name.is_empty() {
        causes.push(Cause::required(field, ""));
        return;
    }
    let name = name.strip_suffix('.').unwrap_or(name);
    let mut wrong = names::subdomain(name);
    if wrong.is_empty() && !name.contains('.') {
        wrong.push("should be a domain with at least two segments separated by dots".to_owned());
    }
    if !wrong.is_empty() {
        causes.push(Cause::invalid(field, &json!(name), &wrong.join(",")));
    }
    for part in name.split('.').filter(|_| wrong.is_empty()) {
        let wrong = names::label(part);
        if !wrong.is_empty() {
            causes.push(Cause::invalid(field, &json!(part), &wrong.join(",")));
            return;
        }
    }
}
