//! Volumes, claims to them, and their classes and drivers.

use crate::strategy::{LimitRange, Strategy};
use jiff::Timestamp;
use opdev_apimachinery::part::Part;
use opdev_apimachinery::quota::{Evaluator, ONE, text};
use opdev_apimachinery::resource::quantity::nano;
use opdev_apimachinery::resource::{MetadataChecks, ResourceRules, metadata};
use opdev_apimachinery::version::since;
use opdev_apis::defaults::{put, sub};
use opdev_apis::limits;
use opdev_apis::table::{Printer, cluster};
use opdev_validation::warnings;
use opdev_validation::{storage, unchanging};
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// Kinds whose PUT needs a resourceVersion.
const CONDITIONAL: ResourceRules = ResourceRules { unconditional_update: false, ..ResourceRules::COMMON };

pub(super) static ALL: &[Strategy] = &[
    Strategy {
        id: "persistentvolumeclaims",
        rules: ResourceRules {
            returns_deleted: true,
            metadata_checks: MetadataChecks::TWICE,
            ..ResourceRules::COMMON
        },
        printer: Some(Printer::new(cluster::CLAIM, cluster::claim)),
        set_defaults: |_, object| claim(object),
        limit_range: Some(LimitRange { fill: |_, _| {}, violations: limits::claim_violations }),
        admit_create: |registry, _, claim| {
            registry.set_default_storage_class(claim);
            Ok(())
        },
        prepare_create: |object| protect(object, "kubernetes.io/pvc-protection"),
        initial_status: |_| Some(json!({"phase": "Pending"})),
        validate: |_, object, _, causes| storage::claim(&object["spec"], "spec", causes),
        validate_change: storage::claim_update,
        warn: warnings::claim,
        admit: |registry, _, (resource, part), object, old| match (part, old) {
            (Part::Main, Some(old)) => registry.check_resize(resource, object, old),
            _ => Ok(()),
        },
        quota: Evaluator {
            counted: true,
            uses: is_of_claims,
            used,
            in_scope: |scope, claim| {
                scope.name == "VolumeAttributesClass" && scope.selects(&attribute_classes(claim))
            },
            ..Evaluator::COMMON
        },
        update_uses_quota: true,
        ..Strategy::COMMON
    },
    Strategy {
        id: "persistentvolumes",
        rules: ResourceRules { returns_deleted: true, ..ResourceRules::COMMON },
        printer: Some(Printer::new(cluster::VOLUME, cluster::volume)),
        set_defaults: |_, object| volume(object),
        prepare_create: |object| protect(object, "kubernetes.io/pv-protection"),
        initial_status: |_| Some(json!({"phase": "Pending"})),
        set_transition_time: set_phase_time,
        validate_change: unchanging::volume,
        warn: warnings::volume,
        ..Strategy::COMMON
    },
    Strategy {
        id: "storage.k8s.io/storageclasses",
        rules: ResourceRules { returns_deleted: true, ..ResourceRules::COMMON },
        printer: Some(Printer::new(cluster::STORAGE_CLASS, cluster::storage_class)),
        set_defaults: |_, object| {
            put(object, "reclaimPolicy", "Delete");
            put(object, "volumeBindingMode", "Immediate");
        },
        unchanging: &["parameters", "provisioner", "reclaimPolicy", "volumeBindingMode"],
        warn: warnings::storage_class,
        ..Strategy::COMMON
    },
    Strategy {
        id: "storage.k8s.io/csidrivers",
        rules: ResourceRules { returns_deleted: true, ..CONDITIONAL },
        set_defaults: |_, object| csi_driver(sub(object, "spec")),
        validate_change: unchanging::csi_driver,
        warn: warnings::driver,
        ..Strategy::COMMON
    },
    Strategy {
        id: "storagemigration.k8s.io/storageversionmigrations",
        rules: CONDITIONAL,
        printer: Some(Printer::new(cluster::MIGRATION, cluster::migration)),
        initial_status: |_| Some(json!({})),
        validate: |_, object, _, causes| storage::migration(&object["spec"]["resource"], causes),
        unchanging: &["spec"],
        validate_change: storage::migration_update,
        ..Strategy::COMMON
    },
    Strategy {
        id: "storage.k8s.io/csinodes",
        rules: CONDITIONAL,
        initial_status: |_| since(37).then(|| json!({})),
        validate_change: unchanging::csi_node,
        ..Strategy::COMMON
    },
    Strategy {
        id: "storage.k8s.io/volumeattributesclasses",
        validate_change: unchanging::attributes_class,
        ..Strategy::COMMON
    },
    Strategy {
        id: "storage.k8s.io/csistoragecapacities",
        unchanging: &["nodeTopology", "storageClassName"],
        warn: warnings::capacity,
        ..Strategy::COMMON
    },
    Strategy {
        id: "storage.k8s.io/volumeattachments",
        rules: CONDITIONAL,
        initial_status: |_| Some(json!({"attached": false})),
        unchanging: &["spec"],
        ..Strategy::COMMON
    },
];

fn claim(object: &mut Value) {
    put(sub(object, "spec"), "volumeMode", "Filesystem");
    put(sub(object, "status"), "phase", "Pending");
}

fn volume(object: &mut Value) {
    let spec = sub(object, "spec");
    put(spec, "persistentVolumeReclaimPolicy", "Retain");
    put(spec, "volumeMode", "Filesystem");
    put(sub(object, "status"), "phase", "Pending");
}

fn csi_driver(spec: &mut Value) {
    put(spec, "attachRequired", true);
    put(spec, "fsGroupPolicy", "ReadWriteOnceWithFSType");
    put(spec, "volumeLifecycleModes", json!(["Persistent"]));
    for field in ["podInfoOnMount", "storageCapacity", "requiresRepublish", "seLinuxMount"] {
        put(spec, field, false);
    }
    if since(37) {
        put(spec, "preventPodSchedulingIfMissing", false);
    }
}

/// Protects storage that is in use: its controller removes the finalizer once nothing uses it any more.
fn protect(object: &mut Value, finalizer: &str) {
    let meta = metadata::map_mut(object);
    let list = meta.entry("finalizers").or_insert_with(|| json!([]));
    if let Some(list) = list.as_array_mut().filter(|list| !list.iter().any(|name| name == finalizer)) {
        list.push(Value::from(finalizer));
    }
}

/// A volume gets the time of its phase, unless the request has it, as the real server's storage does.
fn set_phase_time(object: &mut Value, current: Option<&Value>, now: Timestamp) {
    const SINCE: &str = "lastPhaseTransitionTime";
    let status = |of: &Value, field: &str| of["status"][field].clone();
    let moved = match current {
        None => true,
        Some(current) => {
            status(current, "phase") != status(object, "phase")
                && (status(object, SINCE).is_null() || status(object, SINCE) == status(current, SINCE))
        }
    };
    if moved {
        object["status"][SINCE] = Value::from(metadata::seconds(now));
    }
}

/// The text between the name of a class and the name that a quota limits.
const OF_CLASS: &str = ".storageclass.storage.k8s.io/";

/// Returns true if a quota limits claims by this name.
pub(super) fn is_of_claims(name: &str) -> bool {
    name == "requests.storage" || (name.contains(OF_CLASS) && !name.starts_with("services."))
}

/// The amount of such a name that a claim uses.
fn used(name: &str, claim: &Value) -> i128 {
    let asked = nano(text(claim, "/spec/resources/requests/storage")).unwrap_or(0);
    let class = text(claim, "/spec/storageClassName");
    match name.split_once(OF_CLASS) {
        None => asked,
        Some((wanted, _)) if wanted != class => 0,
        Some((_, "requests.storage")) => asked,
        Some(_) => ONE,
    }
}

/// The classes that a claim has, is to have and is on its way to.
fn attribute_classes(claim: &Value) -> BTreeSet<&str> {
    let places = [
        "/spec/volumeAttributesClassName",
        "/status/currentVolumeAttributesClassName",
        "/status/modifyVolumeStatus/targetVolumeAttributesClassName",
    ];
    places.iter().map(|place| text(claim, place)).filter(|name| !name.is_empty()).collect()
}
