//! Services and how their pods are found: Endpoints and EndpointSlices.

use crate::registry::allocate;
use crate::registry::defaults::{each, put, sub};
use crate::registry::strategy::{Allocation, Selectable, Strategy};
use crate::registry::validate::networking;
use crate::registry::warnings;
use crate::resource::{MetadataChecks, ResourceRules, names};
use crate::table::{Printer, network};
use serde_json::{Value, json};

pub(super) static ALL: &[Strategy] = &[
    Strategy {
        id: "services",
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
                allocate::families(service)
            },
            allocate: allocate::from_registry,
        }),
        validate_change_first: networking::service_update,
        validate: |_, object, _, causes| networking::service(&object["spec"], causes),
        warn: warnings::service,
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
        ..Strategy::COMMON
    },
    Strategy {
        id: "discovery.k8s.io/endpointslices",
        rules: ResourceRules { generation: true, ..ResourceRules::COMMON },
        printer: Some(Printer::new(network::ENDPOINT_SLICE, network::endpoint_slice)),
        set_defaults: |_, object| endpoint_slice(object),
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
