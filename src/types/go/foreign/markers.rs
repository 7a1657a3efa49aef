//! Facts that markers of built-in Go types state and OpenAPI does not show, or shows where no marker says it.
//! Tested against the source of every type that the facts know.

use super::super::schema::Schema;
use serde_json::Value;
use std::sync::Arc;

/// Fields that have a default in OpenAPI alone: of a value that is never missing, or of a constant that
/// controller-gen does not look up.
const WITHOUT_DEFAULT: [(&str, &str); 17] = [
    ("AzureDiskVolumeSource", "cachingMode"),
    ("AzureDiskVolumeSource", "kind"),
    ("FlowSchemaSpec", "matchingPrecedence"),
    ("NodeRuntimeHandler", "name"),
    ("PodDisruptionBudgetStatus", "currentHealthy"),
    ("PodDisruptionBudgetStatus", "desiredHealthy"),
    ("PodDisruptionBudgetStatus", "disruptionsAllowed"),
    ("PodDisruptionBudgetStatus", "expectedPods"),
    ("PodFailurePolicyOnPodConditionsPattern", "status"),
    ("QueuingConfiguration", "handSize"),
    ("QueuingConfiguration", "queueLengthLimit"),
    ("QueuingConfiguration", "queues"),
    ("RoleRef", "apiGroup"),
    ("StatefulSetOrdinals", "start"),
    ("StatefulSetSpec", "serviceName"),
    ("StatefulSetStatus", "availableReplicas"),
    ("TokenRequestStatus", "token"),
];

/// Types that embed `LocalObjectReference`, and are atomic as it is.
const ATOMIC: [&str; 5] = [
    "ConfigMapEnvSource",
    "ConfigMapProjection",
    "ConfigMapVolumeSource",
    "SecretEnvSource",
    "SecretProjection",
];

/// A name with a domain before it or not, as conditions and errors of ports have it.
pub(super) const QUALIFIED_NAME: &str = r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$";

/// Makes the schema of a built-in type, as OpenAPI has it, the one that its markers ask for.
pub(super) fn amend(name: &str, schema: &mut Schema) {
    if ATOMIC.contains(&name) {
        schema.map_type = Some("atomic".into());
    }
    for (_, field) in WITHOUT_DEFAULT.iter().filter(|(of, _)| *of == name) {
        change(schema, field, |field| field.default = None);
    }
    match name {
        "PersistentVolumeSpec" => {
            change(schema, "claimRef", |claim| claim.map_type = Some("granular".into()));
        }
        "ImageVolumeStatus" => change(schema, "imageRef", |image| image.max_length = Some(Value::from(256))),
        "PortStatus" | "IngressPortStatus" => {
            change(schema, "error", |error| {
                error.max_length = Some(Value::from(316));
                error.pattern = Some(QUALIFIED_NAME.into());
            });
            if !schema.required.iter().any(|field| **field == *"error") {
                schema.required.push("error".into());
                schema.required.sort();
            }
        }
        _ => {}
    }
}

fn change(schema: &mut Schema, field: &str, change: impl FnOnce(&mut Schema)) {
    if let Some(field) = schema.properties.get_mut(field) {
        change(Arc::make_mut(field));
    }
}
