//! Ingresses, their classes, and network policies.

use crate::strategy::Strategy;
use opdev_apimachinery::resource::{MetadataChecks, ResourceRules};
use opdev_apis::defaults::{each, put, sub};
use opdev_apis::table::{Printer, network};
use opdev_validation::warnings;
use opdev_validation::{network_policies, networking, unchanging};
use serde_json::{Value, json};

pub(super) static ALL: &[Strategy] = &[
    Strategy {
        id: "networking.k8s.io/ingresses",
        rules: ResourceRules {
            generation: true,
            metadata_checks: MetadataChecks::TWICE,
            ..ResourceRules::COMMON
        },
        printer: Some(Printer::new(network::INGRESS, network::ingress)),
        admit_create: |registry, _, ingress| {
            registry.set_default_ingress_class(ingress);
            Ok(())
        },
        initial_status: |_| Some(json!({"loadBalancer": {}})),
        validate: |_, object, current, causes| networking::ingress(object, current.is_none(), causes),
        validate_status: networking::ingress_status,
        warn: warnings::ingress,
        warn_of_status: warnings::balanced,
        etcd_prefix: Some("ingress"),
        ..Strategy::COMMON
    },
    Strategy {
        id: "networking.k8s.io/ingressclasses",
        rules: ResourceRules { generation: true, ..ResourceRules::COMMON },
        printer: Some(Printer::new(network::INGRESS_CLASS, network::ingress_class)),
        set_defaults: |_, object| {
            if let Some(parameters) = object["spec"].get_mut("parameters").filter(|found| found.is_object()) {
                put(parameters, "scope", "Cluster");
            }
        },
        unchanging: &["spec.controller"],
        ..Strategy::COMMON
    },
    Strategy {
        id: "networking.k8s.io/servicecidrs",
        validate_change: unchanging::service_cidr,
        ..Strategy::COMMON
    },
    Strategy {
        id: "networking.k8s.io/networkpolicies",
        rules: ResourceRules { generation: true, ..ResourceRules::COMMON },
        printer: Some(Printer::new(network::NETWORK_POLICY, network::network_policy)),
        set_defaults: |_, object| network_policy(object),
        validate: |_, object, current, causes| network_policies::policy(object, current, causes),
        warn: warnings::network_policy,
        ..Strategy::COMMON
    },
];

fn network_policy(object: &mut Value) {
    let spec = sub(object, "spec");
    if spec["policyTypes"].as_array().is_none_or(Vec::is_empty) {
        let egress = spec["egress"].as_array().is_some_and(|list| !list.is_empty());
        spec["policyTypes"] = if egress { json!(["Ingress", "Egress"]) } else { json!(["Ingress"]) };
    }
    for direction in ["ingress", "egress"] {
        for rule in each(spec, direction) {
            for port in each(rule, "ports") {
                put(port, "protocol", "TCP");
            }
        }
    }
}
