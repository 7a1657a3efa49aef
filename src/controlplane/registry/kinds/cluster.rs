//! Namespaces, nodes, and what is set for a namespace or for the whole cluster.

use crate::api_services;
use crate::strategy::{Post, Selectable, Strategy};
use opdev_apimachinery::error::Status;
use opdev_apimachinery::part::Part;
use opdev_apimachinery::quota::Evaluator;
use opdev_apimachinery::resource::{MetadataChecks, MetadataOrder, Resource, ResourceRules, names};
use opdev_apis::defaults::{put, put_over_zero, sub};
use opdev_apis::limits;
use opdev_apis::table::{Printer, cluster};
use opdev_storage::Key;
use opdev_validation::warnings;
use opdev_validation::{networking, unchanging};
use serde_json::{Value, json};

pub(super) static ALL: &[Strategy] = &[
    Strategy {
        id: "namespaces",
        rules: ResourceRules {
            is_namespace: true,
            validate_name: names::label,
            metadata_checks: MetadataChecks::TWICE,
            ..ResourceRules::COMMON
        },
        printer: Some(Printer::new(cluster::NAMESPACE, cluster::namespace)),
        selectable: Selectable::fields(&["status.phase"]),
        set_defaults: |_, object| namespace(object),
        prepare_create: |object| sub(object, "spec")["finalizers"] = json!(["kubernetes"]),
        initial_status: |_| Some(json!({"phase": "Active"})),
        prepare_update: keep_namespace_finalizers,
        admit: |registry, ctx, (resource, part), object, old| match part {
            Part::Main => registry.check_security_labels(ctx, resource, object, old),
            _ => Ok(()),
        },
        admit_delete: Some(admit_namespace_delete),
        // It goes only where it is still the same.
        delete_names_uid: true,
        set_deleted_status: |object| object["status"]["phase"] = Value::from("Terminating"),
        is_kept: |object| object["spec"]["finalizers"].as_array().is_some_and(|list| !list.is_empty()),
        ..Strategy::COMMON
    },
    Strategy {
        id: "nodes",
        printer: Some(Printer::new(cluster::NODE, cluster::node)),
        selectable: Selectable::fields(&["spec.unschedulable"]),
        set_defaults: |_, object| node(object),
        validate: |_, object, _, causes| networking::node(object, causes),
        warn: warnings::node,
        validate_change: unchanging::node,
        // A node registers itself with its status.
        initial_status: |_| None,
        ..Strategy::COMMON
    },
    Strategy {
        id: "limitranges",
        rules: ResourceRules {
            create_on_update: true,
            metadata_checks: MetadataChecks { changes: 1, wholes: 2, order: MetadataOrder::ChangesFirst },
            ..ResourceRules::COMMON
        },
        set_defaults: |_, object| limits::complete(object),
        ..Strategy::COMMON
    },
    Strategy {
        id: "resourcequotas",
        rules: ResourceRules { returns_deleted: true, ..ResourceRules::COMMON },
        printer: Some(Printer::new(cluster::RESOURCE_QUOTA, cluster::resource_quota)),
        validate_change: unchanging::resource_quota,
        warn: warnings::resource_quota,
        quota: Evaluator::COUNTED,
        ..Strategy::COMMON
    },
    Strategy {
        id: "componentstatuses",
        rules: ResourceRules {
            deprecation_warning: Some("v1 ComponentStatus is deprecated in v1.19+"),
            unstored: true,
            ..ResourceRules::COMMON
        },
        ..Strategy::COMMON
    },
    Strategy { id: "bindings", post: Post::Binding, ..Strategy::COMMON },
    Strategy {
        id: "apiregistration.k8s.io/apiservices",
        rules: ResourceRules {
            unconditional_update: false,
            any_finalizer: true,
            validate_name: names::path_segment,
            ..ResourceRules::COMMON
        },
        validate: |_, object, _, causes| api_services::validate(object, causes),
        printer: Some(Printer::new(cluster::API_SERVICE, cluster::api_service)),
        set_transition_time: |object, current, now| {
            if current.is_none() {
                api_services::say_available(object, now);
            }
        },
        ..Strategy::COMMON
    },
    Strategy {
        id: "flowcontrol.apiserver.k8s.io/flowschemas",
        rules: ResourceRules { generation: true, ..ResourceRules::COMMON },
        set_defaults: |_, object| put_over_zero(sub(object, "spec"), "matchingPrecedence", 1000),
        ..Strategy::COMMON
    },
    Strategy {
        id: "flowcontrol.apiserver.k8s.io/prioritylevelconfigurations",
        rules: ResourceRules { generation: true, ..ResourceRules::COMMON },
        set_defaults: |_, object| priority_level(object),
        ..Strategy::COMMON
    },
];

fn namespace(object: &mut Value) {
    let name = object["metadata"]["name"].clone();
    if name.as_str().is_some_and(|name| !name.is_empty()) {
        sub(sub(object, "metadata"), "labels")["kubernetes.io/metadata.name"] = name;
    }
    put(sub(object, "status"), "phase", "Active");
}

fn keep_namespace_finalizers(_: &Resource, part: Part, object: &mut Value, current: &Value) {
    if !matches!(part, Part::Main | Part::Scale) {
        return;
    }
    let finalizers = current["spec"]["finalizers"].clone();
    let spec = sub(object, "spec");
    if finalizers.is_null() {
        spec.as_object_mut().into_iter().for_each(|map| {
            map.remove("finalizers");
        });
    } else {
        spec["finalizers"] = finalizers;
    }
}

fn admit_namespace_delete(key: &Key, current: &Value) -> Result<(), Status> {
    if ["default", "kube-system", "kube-public"].contains(&&*key.name) {
        return Err(Status::forbidden("", "namespaces", &key.name, "this namespace may not be deleted"));
    }
    let waits = current["spec"]["finalizers"].as_array().is_some_and(|list| !list.is_empty());
    if current["metadata"].get("deletionTimestamp").is_some() && waits {
        let why = "The system is ensuring all content is removed from this namespace.  Upon completion, this \
                   namespace will automatically be purged by the system.";
        return Err(Status::conflict("", "namespaces", &key.name, why));
    }
    Ok(())
}

/// The first of a node's ranges is also its only one, and what it has is free to be used.
fn node(object: &mut Value) {
    let spec = sub(object, "spec");
    // The feature is gone: servers drop it.
    if let Some(spec) = spec.as_object_mut() {
        spec.remove("configSource");
    }
    let (range, ranges) = (spec["podCIDR"].clone(), spec["podCIDRs"].clone());
    if range.is_string() && ranges.is_null() {
        spec["podCIDRs"] = json!([range]);
    } else if range.is_null() && ranges[0].is_string() {
        spec["podCIDR"] = ranges[0].clone();
    }
    let capacity = object["status"]["capacity"].clone();
    if capacity.is_object() {
        put(sub(object, "status"), "allocatable", capacity);
    }
}

fn priority_level(object: &mut Value) {
    if let Some(exempt) = object["spec"].get_mut("exempt").filter(|exempt| exempt.is_object()) {
        put(exempt, "nominalConcurrencyShares", 0);
        put(exempt, "lendablePercent", 0);
    }
    let Some(limited) = object["spec"].get_mut("limited").filter(|limited| limited.is_object()) else {
        return;
    };
    put(limited, "nominalConcurrencyShares", 30);
    put(limited, "lendablePercent", 0);
    let response = sub(limited, "limitResponse");
    if let Some(queuing) = response.get_mut("queuing").filter(|queuing| queuing.is_object()) {
        put_over_zero(queuing, "queues", 64);
        put_over_zero(queuing, "handSize", 8);
        put_over_zero(queuing, "queueLengthLimit", 50);
    }
}
