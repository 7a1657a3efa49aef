//! Addresses and families that a service asks for, compared with each other and with the cluster, which has
//! IPv4 only. In the real server's order: contradictions first, then families that the cluster lacks.
//! Allocates nothing.

use opdev_apimachinery::error::{Cause, Status};
use opdev_apis::defaults::put;
use serde_json::{Value, json};
use std::net::IpAddr;

const ADDRESSES: &str = "spec.clusterIPs";
const POLICY: &str = "spec.ipFamilyPolicy";
const FAMILIES: &str = "spec.ipFamilies";

/// Checks a new service, or a changed one beside what it was. One that no longer wants two families lets the
/// second go.
///
/// # Errors
/// It asks for things that contradict each other, or that the cluster does not have.
pub(crate) fn check(service: &mut Value, current: Option<&Value>) -> Result<(), Status> {
    if service["spec"]["type"] == "ExternalName" {
        return Ok(());
    }
    let spec = &mut service["spec"];
    if current.is_none() && items(&spec["clusterIPs"]).is_empty() && !text(&spec["clusterIP"]).is_empty() {
        spec["clusterIPs"] = json!([spec["clusterIP"]]);
    }
    let headless = text(&spec["clusterIP"]) == "None";
    let open = headless && spec["selector"].as_object().is_none_or(serde_json::Map::is_empty);
    put(spec, "ipFamilyPolicy", if open { "RequireDualStack" } else { "SingleStack" });
    let mut causes = related(spec);
    refuse(service, &mut causes)?;
    let spec = &mut service["spec"];
    if let Some(current) = current {
        released(spec, &current["spec"], &mut causes);
    }
    let single = spec["ipFamilyPolicy"] == "SingleStack";
    for (what, several) in [("clusterIPs", "cluster IPs"), ("ipFamilies", "IP families")] {
        if single && items(&spec[what]).len() == 2 {
            let detail = format!(
                "must be 'RequireDualStack' or 'PreferDualStack' when multiple {several} are specified"
            );
            causes.push(Cause::invalid(POLICY, &spec["ipFamilyPolicy"], &detail));
        }
    }
    let (addresses, families) = (items(&spec["clusterIPs"]), items(&spec["ipFamilies"]));
    for (i, _) in addresses.iter().enumerate().skip(families.len()).filter(|(_, address)| is_v6(address)) {
        let place = format!("{ADDRESSES}[{i}]");
        causes.push(Cause::invalid(place, &spec["clusterIPs"], "IPv6 is not configured on this cluster"));
    }
    refuse(service, &mut causes)?;
    if open {
        return Ok(());
    }
    let spec = &service["spec"];
    if spec["ipFamilyPolicy"] == "RequireDualStack" {
        let detail = "this cluster is not configured for dual-stack services";
        causes.push(Cause::invalid(POLICY, &spec["ipFamilyPolicy"], detail));
    }
    for (i, family) in items(&spec["ipFamilies"]).iter().enumerate().filter(|(_, family)| **family == "IPv6")
    {
        causes.push(Cause::invalid(format!("{FAMILIES}[{i}]"), family, "not configured on this cluster"));
    }
    refuse(service, &mut causes)
}

fn refuse(service: &Value, causes: &mut Vec<Cause>) -> Result<(), Status> {
    if causes.is_empty() {
        return Ok(());
    }
    let name = service["metadata"]["name"].as_str().unwrap_or_default();
    Err(Status::invalid("", "Service", name, std::mem::take(causes)))
}

fn items(list: &Value) -> &[Value] {
    list.as_array().map_or(&[], Vec::as_slice)
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn is_v6(address: &Value) -> bool {
    text(address).parse::<IpAddr>().is_ok_and(|address| address.is_ipv6())
}

/// Errors of the fields beside each other.
fn related(spec: &Value) -> Vec<Cause> {
    let mut causes = Vec::new();
    let (first, addresses) = (text(&spec["clusterIP"]), items(&spec["clusterIPs"]));
    let wrong = |detail: &str| Cause::invalid(ADDRESSES, &spec["clusterIPs"], detail);
    if first.is_empty() && !addresses.is_empty() {
        causes.push(wrong("must be empty when `clusterIP` is not specified"));
    } else if !first.is_empty() && addresses.is_empty() {
        causes.push(Cause::required(ADDRESSES, ""));
    } else if addresses.first().is_some_and(|address| text(address) != first) {
        causes.push(wrong("first value must match `clusterIP`"));
    }
    let families = items(&spec["ipFamilies"]);
    for (i, family) in families.iter().enumerate() {
        let place = format!("{FAMILIES}[{i}]");
        if !["IPv4", "IPv6"].contains(&text(family)) {
            causes.push(Cause::not_supported(place.clone(), family, &["IPv4", "IPv6"]));
        }
        if families.iter().take(i).any(|before| before == family) {
            causes.push(Cause::duplicate(place, family));
        }
    }
    let policies = ["PreferDualStack", "RequireDualStack", "SingleStack"];
    if !policies.contains(&text(&spec["ipFamilyPolicy"])) {
        causes.push(Cause::not_supported(POLICY, &spec["ipFamilyPolicy"], &policies));
    }
    let mut readable = true;
    for (i, address) in addresses.iter().enumerate() {
        if i == 0 && text(address) == "None" {
            if addresses.len() > 1 {
                readable = false;
                causes.push(wrong("'None' must be the first and only value"));
            }
        } else if text(address).parse::<IpAddr>().is_err() {
            readable = false;
            let detail = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)";
            causes.push(Cause::invalid(format!("{ADDRESSES}[{i}]"), address, detail));
        }
    }
    if addresses.len() > 2 {
        causes.push(wrong("may only hold up to 2 values"));
    }
    if !readable {
        return causes;
    }
    let of_six = addresses.iter().filter(|address| is_v6(address)).count();
    if addresses.len() > 1 && (of_six == 0 || of_six == addresses.len()) {
        causes.push(wrong("may specify no more than one IP for each IP family"));
    }
    for (i, (address, family)) in addresses.iter().zip(families).enumerate().filter(|_| first != "None") {
        let (asked, six) = (text(family), is_v6(address));
        if (asked == "IPv4" && six) || (asked == "IPv6" && !six) {
            let detail = format!("expected an {asked} value as indicated by `ipFamilies[{i}]`");
            causes.push(Cause::invalid(format!("{ADDRESSES}[{i}]"), address, &detail));
        }
    }
    causes
}

/// Lets go what a changed service no longer wants; only `SingleStack` may say so.
fn released(spec: &mut Value, old: &Value, causes: &mut Vec<Cause>) {
    let single = spec["ipFamilyPolicy"] == "SingleStack";
    for (what, second) in [("clusterIPs", "cluster IP"), ("ipFamilies", "IP family")] {
        let (now, before) = (items(&spec[what]).len(), items(&old[what]).len());
        if single && now > 1 && spec[what] == old[what] {
            spec[what] = json!([spec[what][0]]);
        } else if !single && now == 1 && before == 2 && spec[what][0] == old[what][0] {
            let detail = format!("must be 'SingleStack' to release the secondary {second}");
            causes.push(Cause::invalid(POLICY, &spec["ipFamilyPolicy"], &detail));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(spec: &Value) -> String {
        let mut service = json!({"metadata": {"name": "a"}, "spec": spec});
        check(&mut service, None).err().map(|status| status.message).unwrap_or_default()
    }

    #[test]
    fn a_service_asks_for_what_the_cluster_has() {
        let said = |detail: &str| format!("Service \"a\" is invalid: {detail}");
        let cases = [
            (json!({}), String::new()),
            (json!({"clusterIP": "10.96.0.9"}), String::new()),
            (json!({"ipFamilyPolicy": "PreferDualStack", "ipFamilies": ["IPv4"]}), String::new()),
            (json!({"clusterIP": "None", "ipFamilies": ["IPv6", "IPv4"]}), String::new()),
            (json!({"ipFamilies": ["IPv4", "IPv4"]}), said("spec.ipFamilies[1]: Duplicate value: \"IPv4\"")),
            (
                json!({"clusterIPs": ["10.96.0.9"]}),
                said(
                    "spec.clusterIPs: Invalid value: [\"10.96.0.9\"]: must be empty when `clusterIP` is not \
                     specified",
                ),
            ),
            (
                json!({"clusterIP": "10.96.0.9", "clusterIPs": ["10.96.0.8"]}),
                said("spec.clusterIPs: Invalid value: [\"10.96.0.8\"]: first value must match `clusterIP`"),
            ),
            (
                json!({"clusterIP": "fd00::1"}),
                said(
                    "spec.clusterIPs[0]: Invalid value: [\"fd00::1\"]: IPv6 is not configured on this cluster",
                ),
            ),
            (
                json!({"clusterIP": "10.96.0.9", "ipFamilies": ["IPv6"]}),
                said(
                    "spec.clusterIPs[0]: Invalid value: \"10.96.0.9\": expected an IPv6 value as indicated by \
                     `ipFamilies[0]`",
                ),
            ),
            (
                json!({"ipFamilies": ["IPv6"]}),
                said("spec.ipFamilies[0]: Invalid value: \"IPv6\": not configured on this cluster"),
            ),
            (
                json!({"clusterIP": "None", "selector": {"a": "b"}, "ipFamilyPolicy": "RequireDualStack"}),
                said(
                    "spec.ipFamilyPolicy: Invalid value: \"RequireDualStack\": this cluster is not configured \
                     for dual-stack services",
                ),
            ),
        ];
        for (spec, expected) in cases {
            assert_eq!(refused(&spec), expected, "{spec}");
        }
    }

    #[test]
    fn a_service_lets_its_second_family_go_where_it_says_so() {
        let two = json!({"metadata": {"name": "a"}, "spec": {"clusterIP": "None", "clusterIPs": ["None"],
            "ipFamilies": ["IPv4", "IPv6"], "ipFamilyPolicy": "RequireDualStack"}});
        let mut one = two.clone();
        one["spec"]["ipFamilyPolicy"] = json!("SingleStack");
        check(&mut one, Some(&two)).unwrap();
        assert_eq!(one["spec"]["ipFamilies"], json!(["IPv4"]));
        let mut less = two.clone();
        less["spec"]["ipFamilies"] = json!(["IPv4"]);
        let refused = check(&mut less, Some(&two)).unwrap_err();
        assert!(refused.message.ends_with("must be 'SingleStack' to release the secondary IP family"));
    }
}
