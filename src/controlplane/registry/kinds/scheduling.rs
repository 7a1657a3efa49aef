//! The places of pods: priorities, runtimes, devices; and Leases, by which parts of a cluster elect a leader.

use crate::strategy::{Selectable, Strategy};
use jiff::Timestamp;
use opdev_apimachinery::error::Cause;
use opdev_apimachinery::part::Part;
use opdev_apimachinery::resource::{ResourceRules, metadata};
use opdev_apis::defaults::{each, put, put_over_zero, sub};
use opdev_apis::table::{Printer, cluster};
use opdev_validation::scaling;
use opdev_validation::warnings;
use serde_json::{Value, json};

/// The classes that the cluster itself has, with their values.
const SYSTEM_CLASSES: [(&str, i64); 2] =
    [("system-node-critical", 2_000_001_000), ("system-cluster-critical", 2_000_000_000)];
/// The highest value of anybody else's class.
const HIGHEST: i64 = 1_000_000_000;

/// One device for each request that does not say how many.
fn device_requests(spec: &mut Value) {
    let Some(devices) = spec.get_mut("devices").filter(|devices| devices.is_object()) else { return };
    let one = |request: &mut Value| {
        put(request, "allocationMode", "ExactCount");
        if request["allocationMode"] == "ExactCount" {
            put_over_zero(request, "count", 1);
        }
    };
    for request in each(devices, "requests") {
        if let Some(exact) = request.get_mut("exactly").filter(|exact| exact.is_object()) {
            one(exact);
        }
        each(request, "firstAvailable").for_each(one);
    }
}

/// A taint says since when it has its effect, unless the request does.
fn set_taint_time(object: &mut Value, current: Option<&Value>, now: Timestamp) {
    let (since, effect) = ("/spec/taint/timeAdded", "/spec/taint/effect");
    let moved = current.is_some_and(|current| {
        current.pointer(effect) != object.pointer(effect) && current.pointer(since) == object.pointer(since)
    });
    if moved || object.pointer(since).is_none_or(Value::is_null) {
        object["spec"]["taint"]["timeAdded"] = Value::from(metadata::seconds(now));
    }
}

/// A user's class has a highest value, and the names of the cluster's own are taken.
fn priority_class(object: &Value, causes: &mut Vec<Cause>) {
    let (name, value) = (metadata::text(object, "name"), object["value"].as_i64().unwrap_or(0));
    if name.starts_with("system-") {
        let why = match SYSTEM_CLASSES.iter().find(|(known, _)| *known == name) {
            None => format!("{name} is not a known system priority class"),
            Some((_, own)) if *own != value => format!("value of {name} PriorityClass must be {own}"),
            Some(_) if object["globalDefault"] == true => {
                format!("globalDefault of {name} PriorityClass must be false")
            }
            Some(_) => return,
        };
        let reserved = "priority class names with 'system-' prefix are reserved for system use only.";
        causes.push(Cause::forbidden("metadata.name", &format!("{reserved} error: {why}")));
    } else if value > HIGHEST {
        let detail = format!("maximum allowed value of a user defined priority is {HIGHEST}");
        causes.push(Cause::forbidden("value", &detail));
    }
}

pub(super) static ALL: &[Strategy] = &[
    Strategy {
        id: "scheduling.k8s.io/priorityclasses",
        rules: ResourceRules { generation: true, ..ResourceRules::COMMON },
        printer: Some(Printer::new(cluster::PRIORITY_CLASS, cluster::priority_class)),
        set_defaults: |_, object| put(object, "preemptionPolicy", "PreemptLowerPriority"),
        validate: |_, object, _, causes| priority_class(object, causes),
        unchanging: &["preemptionPolicy"],
        validate_change: |object, current, causes| {
            if object["value"] != current["value"] {
                causes.push(Cause::forbidden("value", "may not be changed in an update."));
            }
        },
        admit: |registry, _, (resource, part), object, old| match part {
            Part::Main => registry.check_default_priority(resource, object, old.is_some()),
            _ => Ok(()),
        },
        ..Strategy::COMMON
    },
    Strategy {
        id: "node.k8s.io/runtimeclasses",
        rules: ResourceRules { unconditional_update: false, any_finalizer: true, ..ResourceRules::COMMON },
        printer: Some(Printer::new(cluster::RUNTIME_CLASS, cluster::runtime_class)),
        unchanging: &["handler"],
        warn: warnings::runtime_class,
        ..Strategy::COMMON
    },
    Strategy {
        id: "coordination.k8s.io/leases",
        rules: ResourceRules {
            unconditional_update: false,
            create_on_update: true,
            any_finalizer: true,
            ..ResourceRules::COMMON
        },
        printer: Some(Printer::new(cluster::LEASE, cluster::lease)),
        validate: |_, object, _, causes| scaling::lease(&object["spec"], causes),
        ..Strategy::COMMON
    },
    Strategy {
        id: "resource.k8s.io/resourceslices",
        rules: ResourceRules { generation: true, ..ResourceRules::COMMON },
        // Kubelets and drivers watch those of their node and name.
        selectable: Selectable {
            refusal: |field| {
                format!("field label not supported for resource.k8s.io/v1, Kind=ResourceSlice: {field}")
            },
            ..Selectable::fields(&["spec.nodeName", "spec.driver", "spec.pool.name"])
        },
        unchanging: &["spec.driver", "spec.nodeName", "spec.pool.name"],
        warn: warnings::resource_slice,
        ..Strategy::COMMON
    },
    Strategy {
        id: "resource.k8s.io/devicetaintrules",
        rules: ResourceRules { generation: true, unconditional_update: false, ..ResourceRules::COMMON },
        printer: Some(Printer::new(cluster::TAINT_RULE, cluster::taint_rule)),
        initial_status: |_| Some(json!({})),
        set_transition_time: set_taint_time,
        validate: |_, object, old, causes| {
            scaling::taint_rule(&object["spec"], old.map(|old| &old["spec"]), causes);
        },
        ..Strategy::COMMON
    },
    Strategy {
        id: "resource.k8s.io/resourceclaims",
        unchanging: &["spec"],
        set_defaults: |_, object| device_requests(sub(object, "spec")),
        ..Strategy::COMMON
    },
    Strategy {
        id: "resource.k8s.io/resourceclaimtemplates",
        unchanging: &["spec"],
        set_defaults: |_, object| device_requests(sub(sub(object, "spec"), "spec")),
        ..Strategy::COMMON
    },
    Strategy {
        id: "resource.k8s.io/deviceclasses",
        rules: ResourceRules { generation: true, ..ResourceRules::COMMON },
        ..Strategy::COMMON
    },
];
