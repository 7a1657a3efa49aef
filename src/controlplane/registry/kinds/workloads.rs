//! The kinds that keep pods running: Deployments, ReplicaSets, StatefulSets, DaemonSets,
//! ReplicationControllers.

use crate::strategy::{Pods, Selectable, Strategy};
use opdev_apimachinery::attributes::Indexing;
use opdev_apimachinery::error::Cause;
use opdev_apimachinery::quota::Evaluator;
use opdev_apimachinery::resource::{ResourceRules, names};
use opdev_apimachinery::version::since;
use opdev_apis::defaults::{each, pod, put, sub};
use opdev_apis::table::{self, Printer};
use opdev_validation::warnings;
use opdev_validation::{immutable, workload_status, workloads};
use serde_json::{Value, json};

/// The rules that all workloads share.
const WORKLOAD: Strategy = Strategy {
    rules: ResourceRules { generation: true, ..ResourceRules::COMMON },
    pods: Pods::Template("/spec/template"),
    ..Strategy::COMMON
};

pub(super) static ALL: &[Strategy] = &[
    Strategy {
        id: "apps/deployments",
        printer: Some(Printer::new(table::workloads::DEPLOYMENT, table::workloads::deployment)),
        set_defaults: |_, object| deployment(object),
        // Its revision is an annotation that travels with its status and is no change of what is desired.
        status_fields: &["/status", "/metadata/annotations"],
        status_metadata: &["ownerReferences"],
        status_reset_fields: &[&["metadata", "labels"], &["spec"]],
        annotations_are_desired: true,
        validate: |_, object, _, causes| workloads::deployment(&object["spec"], causes),
        validate_status: workload_status::deployment,
        validate_change: immutable_selector,
        warn: warnings::workload,
        ..WORKLOAD
    },
    Strategy {
        id: "apps/replicasets",
        indexing: Indexing::OWNERS_AND_LABELS,
        printer: Some(Printer::new(table::workloads::REPLICAS, table::workloads::replica_set)),
        set_defaults: |_, object| replica_set(object),
        // Counts are written even when they are zero.
        initial_status: |_| Some(json!({"replicas": 0})),
        validate: |_, object, _, causes| workloads::replica_set(&object["spec"], causes),
        validate_status: workload_status::replica_set,
        validate_change: immutable_selector,
        warn: warnings::workload,
        ..WORKLOAD
    },
    Strategy {
        id: "apps/statefulsets",
        rules: ResourceRules { validate_name: names::label, ..WORKLOAD.rules },
        printer: Some(Printer::new(table::workloads::STATEFUL_SET, table::workloads::stateful_set)),
        set_defaults: |_, object| stateful_set(object),
        initial_status: |_| Some(json!({"replicas": 0, "availableReplicas": 0})),
        validate: |_, object, current, causes| workloads::stateful_set(&object["spec"], current, causes),
        validate_status: workload_status::stateful_set,
        validated_once: Some("spec.volumeClaimTemplates"),
        validate_change: workloads::stateful_set_update,
        warn: warnings::stateful_set,
        ..WORKLOAD
    },
    Strategy {
        id: "apps/daemonsets",
        printer: Some(Printer::new(table::workloads::DAEMON_SET, table::workloads::daemon_set)),
        set_defaults: |_, object| daemon_set(object),
        initial_status: |_| {
            Some(json!({"currentNumberScheduled": 0, "desiredNumberScheduled": 0, "numberMisscheduled": 0,
                "numberReady": 0}))
        },
        validate: |_, object, _, causes| workloads::daemon_set(&object["spec"], causes),
        validate_status: workload_status::daemon_set,
        validate_change: immutable_selector,
        warn: warnings::daemon_set,
        ..WORKLOAD
    },
    Strategy {
        id: "replicationcontrollers",
        rules: ResourceRules { orphans_by_default: true, ..WORKLOAD.rules },
        printer: Some(Printer::new(table::workloads::REPLICAS, table::workloads::replication_controller)),
        selectable: Selectable::fields(&["status.replicas"]),
        set_defaults: |_, object| replication_controller(object),
        validate: |_, object, _, causes| workloads::replication_controller(&object["spec"], causes),
        validate_status: workload_status::replica_set,
        initial_status: |_| Some(json!({"replicas": 0})),
        warn: warnings::replication_controller,
        quota: Evaluator::COUNTED,
        ..WORKLOAD
    },
    Strategy {
        id: "apps/controllerrevisions",
        indexing: Indexing::OWNERS_AND_LABELS,
        printer: Some(Printer::new(
            table::workloads::CONTROLLER_REVISION,
            table::workloads::controller_revision,
        )),
        ..Strategy::COMMON
    },
];

fn immutable_selector(object: &Value, current: &Value, causes: &mut Vec<Cause>) {
    immutable("spec.selector", &object["spec"]["selector"], &current["spec"]["selector"], causes);
}

fn deployment(object: &mut Value) {
    let spec = sub(object, "spec");
    pod::template_of(spec);
    put(spec, "replicas", 1);
    put(spec, "revisionHistoryLimit", 10);
    put(spec, "progressDeadlineSeconds", 600);
    let strategy = sub(spec, "strategy");
    if strategy["type"].as_str().unwrap_or_default().is_empty() {
        strategy["type"] = Value::from("RollingUpdate");
    }
    if strategy["type"] == "RollingUpdate" {
        let rolling = sub(strategy, "rollingUpdate");
        put(rolling, "maxUnavailable", "25%");
        put(rolling, "maxSurge", "25%");
    }
}

fn replica_set(object: &mut Value) {
    let spec = sub(object, "spec");
    pod::template_of(spec);
    put(spec, "replicas", 1);
}

fn replication_controller(object: &mut Value) {
    let labels = object["spec"]["template"]["metadata"]["labels"].clone();
    if labels.as_object().is_some_and(|map| !map.is_empty()) {
        put(sub(object, "spec"), "selector", labels.clone());
        put(sub(object, "metadata"), "labels", labels);
    }
    replica_set(object);
}

fn stateful_set(object: &mut Value) {
    let spec = sub(object, "spec");
    pod::template_of(spec);
    put(spec, "replicas", 1);
    put(spec, "revisionHistoryLimit", 10);
    put(spec, "podManagementPolicy", "OrderedReady");
    let retention = sub(spec, "persistentVolumeClaimRetentionPolicy");
    put(retention, "whenDeleted", "Retain");
    put(retention, "whenScaled", "Retain");
    let strategy = sub(spec, "updateStrategy");
    put(strategy, "type", "RollingUpdate");
    if strategy["type"] == "RollingUpdate" {
        let rolling = sub(strategy, "rollingUpdate");
        put(rolling, "partition", 0);
        if since(37) {
            put(rolling, "maxUnavailable", 1);
        }
    }
    for claim in each(spec, "volumeClaimTemplates") {
        put(claim, "apiVersion", "v1");
        put(claim, "kind", "PersistentVolumeClaim");
        put(sub(claim, "spec"), "volumeMode", "Filesystem");
        put(sub(claim, "status"), "phase", "Pending");
    }
}

fn daemon_set(object: &mut Value) {
    let spec = sub(object, "spec");
    pod::template_of(spec);
    put(spec, "revisionHistoryLimit", 10);
    let strategy = sub(spec, "updateStrategy");
    put(strategy, "type", "RollingUpdate");
    if strategy["type"] == "RollingUpdate" {
        let rolling = sub(strategy, "rollingUpdate");
        put(rolling, "maxUnavailable", 1);
        put(rolling, "maxSurge", 0);
    }
}
