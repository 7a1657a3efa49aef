//! Pods and templates of pods.

use super::storage::is_of_claims;
use crate::DeleteOptions;
use crate::strategy::{LimitRange, Pods, Selectable, Strategy};
use opdev_apimachinery::attributes::{Attributes, END, Indexed, Indexing, PodField, partial};
use opdev_apimachinery::part::Part;
use opdev_apimachinery::quota::{Evaluator, Scope, hard, items, pod_amount, text};
use opdev_apimachinery::resource::{MetadataChecks, Resource, ResourceRules};
use opdev_apis::defaults::{self, pod, put, sub};
use opdev_apis::limits;
use opdev_apis::table::{Printer, cluster, pods};
use opdev_validation::warnings;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

pub(super) static ALL: &[Strategy] = &[
    Strategy {
        id: "pods",
        indexing: Indexing {
            by: Indexed::OwnersAndLabels,
            fields: Some(fields),
            partial: partial::<PartialSpec, PartialStatus>,
            ..Indexing::COMMON
        },
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
        validate: |_, object, _, causes| opdev_validation::pod::pod(object, causes),
        validate_change: opdev_validation::pod::update,
        validate_status: opdev_validation::pod::status,
        warn: warnings::pod,
        warn_of_status: warnings::pod_status,
        pods: Pods::Itself,
        quota: Evaluator { counted: true, uses, used, is_over, in_scope, unsaid },
        update_uses_quota: true,
        grace_period,
        marked_before_removal: true,
        ..Strategy::COMMON
    },
    Strategy {
        id: "podtemplates",
        rules: ResourceRules { generation: true, returns_deleted: true, ..ResourceRules::COMMON },
        printer: Some(Printer::new(cluster::POD_TEMPLATE, cluster::pod_template)),
        set_defaults: |_, object| pod::template(&mut object["template"]),
        warn: warnings::pod_template,
        pods: Pods::Template("/template"),
        ..Strategy::COMMON
    },
];

/// The fields that field selectors may name.
const FIELDS: [&str; 10] = [
    // The name of old clients for the next one.
    "spec.host",
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
        "spec.nodeName" | "spec.host" => PodField::Node,
        "status.phase" => PodField::Phase,
        "status.podIP" => PodField::Address,
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

/// The fields of a pod that are kept as attributes, in the order of `PodField`.
fn fields(pod: &Value) -> String {
    let (spec, status) = (&pod["spec"], &pod["status"]);
    let mut fields = String::new();
    for value in [&spec["nodeName"], &status["phase"], &status["podIP"]] {
        fields.push_str(value.as_str().unwrap_or_default());
        fields.push(END);
    }
    for resource in ["cpu", "memory"] {
        for container in spec["containers"].as_array().into_iter().flatten() {
            match &container["resources"]["requests"][resource] {
                Value::Null => continue,
                Value::String(text) => fields.push_str(text),
                other => fields.push_str(&other.to_string()),
            }
            fields.push(',');
        }
        fields.push(END);
    }
    let anti = "/affinity/podAntiAffinity/requiredDuringSchedulingIgnoredDuringExecution";
    let apart = spec.pointer(anti).and_then(Value::as_array).is_some_and(|terms| !terms.is_empty());
    let containers = spec["containers"].as_array().into_iter().flatten();
    let mut ports = containers.flat_map(|container| items(container, "/ports"));
    if apart || ports.any(|port| port["hostPort"].as_i64().is_some_and(|port| port > 0)) {
        fields.push('y');
    }
    fields.push(END);
    fields
}

/// The fields of a spec that `fields` reads.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct PartialSpec {
    node_name: Option<Value>,
    affinity: Option<Value>,
    containers: Option<Vec<PartialContainer>>,
}

#[derive(Serialize, Deserialize)]
struct PartialContainer {
    resources: Option<Value>,
    ports: Option<Value>,
}

/// The fields of a status that `fields` reads.
#[derive(Serialize, Deserialize)]
struct PartialStatus {
    phase: Option<Value>,
    #[serde(rename = "podIP")]
    pod_ip: Option<Value>,
}

/// Returns true if a quota limits pods by this name.
fn uses(name: &str) -> bool {
    let computed = ["cpu", "memory", "ephemeral-storage"].contains(&name)
        || ["requests.", "limits.", "hugepages-"].iter().any(|start| name.starts_with(start));
    computed && !is_of_claims(name)
}

/// The amount of such a name that a pod uses.
fn used(name: &str, pod: &Value) -> i128 {
    let (list, own) = of_containers(name);
    pod_amount(pod, list, own)
}

/// A pod that has ended.
fn is_over(pod: &Value) -> bool {
    matches!(text(pod, "/status/phase"), "Succeeded" | "Failed")
}

/// A resource's own name behind the quota's, and in which list of a container it stands.
fn of_containers(name: &str) -> (&'static str, &str) {
    match name.split_once('.') {
        Some(("requests", rest)) => ("requests", rest),
        Some(("limits", rest)) => ("limits", rest),
        _ => ("requests", name),
    }
}

/// Returns true if a pod wants to be near to, or far from, pods of namespaces that it names.
fn looks_across(pod: &Value) -> bool {
    ["podAffinity", "podAntiAffinity"].iter().any(|kind| {
        let at = |list: &str| items(pod, &format!("/spec/affinity/{kind}/{list}"));
        let preferred = at("preferredDuringSchedulingIgnoredDuringExecution");
        let mut terms = at("requiredDuringSchedulingIgnoredDuringExecution")
            .iter()
            .chain(preferred.iter().filter_map(|weighted| weighted.get("podAffinityTerm")));
        terms.any(|term| !items(term, "/namespaces").is_empty() || term["namespaceSelector"].is_object())
    })
}

fn in_scope(scope: &Scope<'_>, pod: &Value) -> bool {
    let ends = pod.pointer("/spec/activeDeadlineSeconds").and_then(Value::as_i64).is_some_and(|n| n >= 0);
    let best_effort = opdev_apimachinery::qos::best_effort(pod);
    match scope.name {
        "Terminating" => ends,
        "NotTerminating" => !ends,
        "BestEffort" => best_effort,
        "NotBestEffort" => !best_effort,
        "CrossNamespacePodAffinity" => looks_across(pod),
        "PriorityClass" => {
            let class = text(pod, "/spec/priorityClassName");
            scope.selects(&Some(class).filter(|class| !class.is_empty()).into_iter().collect())
        }
        _ => false,
    }
}

/// The fields that a quota limits and a pod does not set: `must specify cpu for: main`.
fn unsaid(quota: &Value, pod: &Value) -> Option<String> {
    let mut missing: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    let containers = items(pod, "/spec/containers").iter().chain(items(pod, "/spec/initContainers"));
    for container in containers {
        for (name, _) in hard(quota) {
            if !compute(name) {
                continue;
            }
            let (list, own) = of_containers(name);
            let said = container.pointer(&format!("/resources/{list}")).and_then(|list| list.get(own));
            if said.is_none() {
                missing.entry(name).or_default().insert(text(container, "/name"));
            }
        }
    }
    let parts: Vec<String> = missing
        .iter()
        .map(|(name, containers)| {
            format!("{name} for: {}", containers.iter().copied().collect::<Vec<_>>().join(","))
        })
        .collect();
    (!parts.is_empty()).then(|| format!("must specify {}", parts.join("; ")))
}

/// Returns true if every container has to request this name once a quota limits it.
fn compute(name: &str) -> bool {
    matches!(name, "cpu" | "memory" | "requests.cpu" | "requests.memory" | "limits.cpu" | "limits.memory")
}
