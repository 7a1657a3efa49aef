//! Refusals of NetworkPolicies.

use super::addresses::{Range, cidr};
use super::checks::{items, optional, port, port_number, selector};
use opdev_apimachinery::error::Cause;
use serde_json::Value;

/// The rules of a policy: each list of peers with the name of the list.
const DIRECTIONS: [(&str, &str); 2] = [("ingress", "from"), ("egress", "to")];

/// A network policy, which may replace another. An update may keep ranges of addresses as they were.
pub fn policy(object: &Value, current: Option<&Value>, causes: &mut Vec<Cause>) {
    let spec = &object["spec"];
    let kept = current.map(|current| ranges(&current["spec"])).unwrap_or_default();
    selector("spec.podSelector", &spec["podSelector"], causes);
    for (direction, peers) in DIRECTIONS {
        for (i, rule) in items(&spec[direction]).iter().enumerate() {
            let place = format!("spec.{direction}[{i}]");
            for (j, port) in items(&rule["ports"]).iter().enumerate() {
                policy_port(port, &format!("{place}.ports[{j}]"), causes);
            }
            for (j, other) in items(&rule[peers]).iter().enumerate() {
                peer(other, &format!("{place}.{peers}[{j}]"), &kept, causes);
            }
        }
    }
    let types = items(&spec["policyTypes"]);
    if types.len() > 2 {
        let detail = "may not specify more than two policyTypes";
        causes.push(Cause::invalid("spec.policyTypes", &spec["policyTypes"], detail));
        return;
    }
    for (i, kind) in types.iter().enumerate() {
        optional(&format!("spec.policyTypes[{i}]"), kind, &["Ingress", "Egress"], causes);
    }
}

/// All ranges in the blocks of a policy.
fn ranges(spec: &Value) -> Vec<&str> {
    let peers = DIRECTIONS.iter().flat_map(|(direction, peers)| {
        items(&spec[*direction]).iter().flat_map(move |rule| items(&rule[*peers]))
    });
    peers
        .flat_map(|peer| {
            let block = &peer["ipBlock"];
            std::iter::once(&block["cidr"]).chain(items(&block["except"]))
        })
        .filter_map(Value::as_str)
        .collect()
}

fn policy_port(found: &Value, place: &str, causes: &mut Vec<Cause>) {
    optional(&format!("{place}.protocol"), &found["protocol"], &["TCP", "UDP", "SCTP"], causes);
    let (field, end) = (format!("{place}.endPort"), &found["endPort"]);
    let (first, last) = (found["port"].as_i64(), end.as_i64());
    if last.is_some() && first.is_none() {
        let port = if found["port"].is_null() { "not specified" } else { "non-numeric" };
        let detail = format!("may not be specified when `port` is {port}");
        causes.push(Cause::invalid(field.as_str(), end, &detail));
    }
    if !found["port"].is_null() {
        port(&format!("{place}.port"), &found["port"], causes);
    }
    if let (Some(first), Some(last)) = (first, last) {
        if last < first {
            causes.push(Cause::invalid(field.as_str(), end, "must be greater than or equal to `port`"));
        }
        port_number(&field, end, causes);
    }
}

fn peer(peer: &Value, place: &str, kept: &[&str], causes: &mut Vec<Cause>) {
    let mut peers = 0;
    for field in ["podSelector", "namespaceSelector"] {
        if !peer[field].is_null() {
            peers += 1;
            selector(&format!("{place}.{field}"), &peer[field], causes);
        }
    }
    let blocked = !peer["ipBlock"].is_null();
    if blocked {
        block(&peer["ipBlock"], &format!("{place}.ipBlock"), kept, causes);
    }
    if peers == 0 && !blocked {
        causes.push(Cause::required(place, "must specify a peer"));
    } else if peers > 0 && blocked {
        causes.push(Cause::forbidden(place, "may not specify both ipBlock and another peer"));
    }
}

fn block(block: &Value, place: &str, kept: &[&str], causes: &mut Vec<Cause>) {
    let whole = block["cidr"].as_str().unwrap_or_default();
    let field = format!("{place}.cidr");
    if whole.is_empty() {
        causes.push(Cause::required(field, ""));
        return;
    }
    cidr(&field, whole, kept, causes);
    let Some(range) = Range::parse(whole) else { return };
    for (i, except) in items(&block["except"]).iter().enumerate() {
        let field = format!("{place}.except[{i}]");
        let text = except.as_str().unwrap_or_default();
        cidr(&field, text, kept, causes);
        if Range::parse(text).is_some_and(|inner| !range.is_larger_than(inner)) {
            causes.push(Cause::invalid(field, except, "must be a strict subset of `cidr`"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn an_update_keeps_what_an_older_server_took() {
        use crate::{endpoints, networking};
        let mut causes = Vec::new();
        let service = json!({"metadata": {"name": "s", "annotations": {}}, "spec": {"type": "LoadBalancer",
            "ports": [{"port": 80, "protocol": "TCP", "targetPort": 80}], "sessionAffinity": "None",
            "externalTrafficPolicy": "Cluster", "internalTrafficPolicy": "Cluster", "externalIPs": ["1.2.3.04"],
            "loadBalancerSourceRanges": [" 1.2.3.4/8"]}});
        networking::service(&service, Some(&service), &mut causes);
        let found =
            json!({"spec": {"ingress": [{"from": [{"ipBlock": {"cidr": "1.2.3.4/8"}}]}], "podSelector": {}}});
        policy(&found, Some(&found), &mut causes);
        let kept = json!({"addressType": "IPv4", "endpoints": [{"addresses": ["127.0.0.1"]}], "ports": []});
        endpoints::slice(&kept, Some(&kept), &mut causes);
        assert_eq!(causes, []);
        networking::service(&service, None, &mut causes);
        policy(&found, None, &mut causes);
        endpoints::slice(&kept, None, &mut causes);
        assert_eq!(causes.len(), 4, "{causes:?}");
    }
}
