//! Pods and templates of pods.

use crate::attributes::{Attributes, PodField};
use crate::limits;
use crate::registry::DeleteOptions;
use crate::registry::defaults::{self, pod, put, sub};
use crate::registry::part::Part;
use crate::registry::strategy::{LimitRange, Pods, Selectable, Strategy};
use crate::registry::validate;
use crate::registry::warnings;
use crate::resource::{MetadataChecks, Resource, ResourceRules};
use crate::table::{Printer, cluster, pods};
use serde_json::Value;

pub(super) static ALL: &[Strategy] = &[
    Strategy {
        id: "pods",
        rules: ResourceRules {
            generation: true,
            returns_deleted: true,
            metadata_checks: MetadataChecks::TWICE,
            ..ResourceRules::COMMON
        },
        printer: Some(Printer { conditions: pods::conditions, ..Printer::new(pods::COLUMNS, pods::cells) }),
        selectable: Selectable { known: known_field, ..Selectable::fields(&FIELDS) },
        set_defaults: |_, object| pod::pod(object),
        limit_range: Some(LimitRange { fill: limits::fill, violations: limits::pod_violations }),
        admit_create: |registry, resource, object| registry.admit_new_pod(resource, object),
        prepare_create: pod::created,
        // Old kubelets lost the owners of pods.
        status_metadata: &["labels"],
        status_reset_fields: &[
            &["metadata", "deletionTimestamp"],
            &["metadata", "ownerReferences"],
            &["spec"],
        ],
        prepare_update,
        validate: |_, object, _, causes| validate::pod::spec(&object["spec"], "spec", true, causes),
        validate_change: validate::pod::update,
        warn: warnings::pod,
        pods: Pods::Itself,
        grace_period,
        marked_before_removal: true,
        ..Strategy::COMMON
    },
    Strategy {
        id: "podtemplates",
        rules: ResourceRules { generation: true, returns_deleted: true, ..ResourceRules::COMMON },
        printer: Some(Printer::new(cluster::POD_TEMPLATE, cluster::pod_template)),
        set_defaults: |_, object| pod::template(&mut object["template"]),
        pods: Pods::Template("/template"),
        ..Strategy::COMMON
    },
];

/// What field selectors may name.
const FIELDS: [&str; 9] = [
    "spec.nodeName",
    "spec.restartPolicy",
    "spec.schedulerName",
    "spec.serviceAccountName",
    "spec.hostNetwork",
    "status.phase",
    "status.podIP",
    "status.podIPs",
    "status.nominatedNodeName",
];

fn known_field<'a>(attributes: &'a Attributes, field: &str) -> Option<&'a str> {
    let field = match field {
        "spec.nodeName" => PodField::Node,
        "status.phase" => PodField::Phase,
        "status.podIP" | "status.podIPs" => PodField::Address,
        _ => return None,
    };
    Some(attributes.pod(field))
}

fn prepare_update(_: &Resource, part: Part, object: &mut Value, current: &Value) {
    match part {
        Part::Main => defaults::tolerations(sub(object, "spec")),
        Part::Status => {
            // How well a pod is served follows from its spec; nobody takes it away.
            let class = current["status"]["qosClass"].clone();
            put(sub(object, "status"), "qosClass", class);
        }
        Part::Scale
        | Part::Binding
        | Part::Finalize
        | Part::EphemeralContainers
        | Part::Resize
        | Part::Approval => {}
    }
}

/// Seconds until the object is gone: only pods that run somewhere have any.
fn grace_period(options: &DeleteOptions, object: &Value) -> i64 {
    let own = object["spec"]["terminationGracePeriodSeconds"].as_i64().unwrap_or(30);
    let seconds = options.grace.unwrap_or(own);
    let seconds = if seconds < 0 { 1 } else { seconds };
    let unscheduled = object["spec"]["nodeName"].as_str().unwrap_or_default().is_empty();
    let over = matches!(object["status"]["phase"].as_str(), Some("Succeeded" | "Failed"));
    if unscheduled || over { 0 } else { seconds }
}
