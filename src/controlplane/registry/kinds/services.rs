//! Services and how their pods are found: Endpoints and EndpointSlices.

use super::families;
use crate::allocate;
use crate::strategy::{Allocation, Selectable, Strategy};
use opdev_apimachinery::attributes::{END, Indexed, Indexing, Unread, partial};
use opdev_apimachinery::part::Part;
use opdev_apimachinery::quota::{Evaluator, ONE, items, text};
use opdev_apimachinery::resource::{MetadataChecks, ResourceRules, names};
use opdev_apis::defaults::{each, put, sub};
use opdev_apis::table::{Printer, network};
use opdev_validation::warnings;
use opdev_validation::{endpoints as lists, networking};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

pub(super) static ALL: &[Strategy] = &[
    Strategy {
        id: "services",
        indexing: Indexing {
            by: Indexed::Selectors,
            fields: Some(fields),
            partial: partial::<PartialSpec, Unread>,
            ..Indexing::COMMON
        },
        rules: ResourceRules {
            create_on_update: true,
            create_on_status_update: true,
            returns_deleted: true,
            validate_name: names::label,
            ..ResourceRules::COMMON
        },
        printer: Some(Printer::new(network::SERVICE, network::service)),
        selectable: Selectable::fields(&["spec.clusterIP", "spec.type"]),
        set_defaults: |_, object| service(object),
        initial_status: |_| Some(json!({"loadBalancer": {}})),
        allocation: Some(Allocation {
            check_new: allocate::check_new,
            keep: |service, current| {
                allocate::keep(service, current);
                families::check(service, Some(current))
            },
            allocate: allocate::from_registry,
        }),
        validate_change_first: networking::service_update,
        validate: |_, object, current, causes| networking::service(object, current, causes),
        prepare_update: |_, part, object, _| {
            // A load balancer that goes takes its addresses with it.
            if matches!(part, Part::Main) && object["spec"]["type"] != "LoadBalancer" {
                sub(object, "status")["loadBalancer"] = json!({});
            }
        },
        validate_status: networking::service_status,
        warn: warnings::service,
        warn_of_status: warnings::balanced,
        quota: Evaluator {
            counted: true,
            uses: |name| name.starts_with("services."),
            used,
            ..Evaluator::COMMON
        },
        update_uses_quota: true,
        etcd_prefix: Some("services/specs"),
        ..Strategy::COMMON
    },
    Strategy {
        id: "endpoints",
        rules: ResourceRules {
            create_on_update: true,
            deprecation_warning: Some(
                "v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice",
            ),
            metadata_checks: MetadataChecks::TWICE,
            ..ResourceRules::COMMON
        },
        printer: Some(Printer::new(network::ENDPOINTS, network::endpoints)),
        set_defaults: |_, object| endpoints(object),
        validate: |_, object, current, causes| lists::endpoints(object, current, causes),
        warn: warnings::endpoints,
        ..Strategy::COMMON
    },
    Strategy {
        id: "discovery.k8s.io/endpointslices",
        indexing: Indexing::OWNERS_AND_LABELS,
        rules: ResourceRules { generation: true, ..ResourceRules::COMMON },
        printer: Some(Printer::new(network::ENDPOINT_SLICE, network::endpoint_slice)),
        set_defaults: |_, object| endpoint_slice(object),
        validate: |_, object, current, causes| lists::slice(object, current, causes),
        warn: warnings::endpoint_slice,
        unchanging: &["addressType"],
        ..Strategy::COMMON
    },
];

fn service(object: &mut Value) {
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
        let balancer = object.get_mut("status").and_then(|status| status.get_mut("loadBalancer"));
        for ingress in balancer.into_iter().flat_map(|balancer| each(balancer, "ingress")) {
            if ingress["ip"].as_str().is_some_and(|ip| !ip.is_empty()) {
                put(ingress, "ipMode", "VIP");
            }
        }
    }
    let spec = sub(object, "spec");
    if kind != "ExternalName" {
        put(spec, "internalTrafficPolicy", "Cluster");
    }
    if let Some(status) = object.get_mut("status") {
        put(status, "loadBalancer", serde_json::Map::new());
    } else {
        object["status"] = json!({"loadBalancer": {}});
    }
}

fn endpoints(object: &mut Value) {
    for subset in each(object, "subsets") {
        for port in each(subset, "ports") {
            put(port, "protocol", "TCP");
        }
    }
}

fn endpoint_slice(object: &mut Value) {
    for port in each(object, "ports") {
        put(port, "name", "");
        put(port, "protocol", "TCP");
    }
}

/// The fields of a service that are kept as attributes, in the order of `ServiceField`.
fn fields(service: &Value) -> String {
    let spec = &service["spec"];
    let mut fields = String::from(spec["clusterIP"].as_str().unwrap_or_default());
    fields.push(END);
    let of_ports = spec["ports"].as_array().into_iter().flatten().map(|port| &port["nodePort"]);
    for port in of_ports.chain([&spec["healthCheckNodePort"]]).filter_map(Value::as_i64) {
        fields.push_str(&port.to_string());
        fields.push(',');
    }
    fields.push(END);
    for (label, value) in spec["selector"].as_object().into_iter().flatten() {
        if spec["type"] == "ExternalName" {
            break;
        }
        // Validation lets neither the separators nor anything but text into labels.
        for part in [label, "=", value.as_str().unwrap_or_default(), ","] {
            fields.push_str(part);
        }
    }
    fields.push(END);
    fields
}

/// The fields of a spec that `fields` reads.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct PartialSpec {
    #[serde(rename = "clusterIP")]
    cluster_ip: Option<Value>,
    ports: Option<Value>,
    health_check_node_port: Option<Value>,
    selector: Option<Value>,
    r#type: Option<Value>,
}

/// The amounts that a service uses of the quota names that begin with `services.`.
fn used(name: &str, service: &Value) -> i128 {
    let kind = text(service, "/spec/type");
    let ports = items(service, "/spec/ports");
    let nodes = ports.iter().filter(|port| port["nodePort"].as_i64().unwrap_or(0) != 0).count() as i128;
    match (name, kind) {
        ("services.loadbalancers", "LoadBalancer") => ONE,
        ("services.nodeports", "NodePort") => ports.len() as i128 * ONE,
        ("services.nodeports", "LoadBalancer") => nodes * ONE,
        _ => 0,
    }
}
