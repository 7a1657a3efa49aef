//! Jobs and CronJobs.

use crate::strategy::{Pods, Selectable, Strategy};
use opdev_apimachinery::attributes::Indexing;
use opdev_apimachinery::resource::{MetadataChecks, MetadataOrder, ResourceRules, metadata};
use opdev_apis::defaults::{each, pod, put, put_over_zero, sub};
use opdev_apis::table::{Printer, workloads};
use opdev_validation::warnings;
use opdev_validation::{batch, job_status};
use serde_json::Value;

pub(super) static ALL: &[Strategy] = &[
    Strategy {
        id: "batch/jobs",
        indexing: Indexing::OWNERS_AND_LABELS,
        rules: ResourceRules {
            generation: true,
            orphans_by_default: true,
            silent_delete_warning: Some(
                "child pods are preserved by default when jobs are deleted; set propagationPolicy=Background to \
                 remove them or set propagationPolicy=Orphan to suppress this warning",
            ),
            metadata_checks: MetadataChecks { order: MetadataOrder::WholeFirst, ..MetadataChecks::TWICE },
            ..ResourceRules::COMMON
        },
        printer: Some(Printer::new(workloads::JOB, workloads::job)),
        selectable: Selectable {
            refusal: |field| format!("field label {field:?} not supported for Job"),
            ..Selectable::fields(&["status.successful"])
        },
        set_defaults: |_, object| job(object),
        takes_template_labels: true,
        prepare_create: set_selector,
        validate_generated: batch::generated,
        validate: |_, object, current, causes| {
            batch::alone(&object["spec"], causes);
            if current.is_none() {
                batch::pod_names(object, causes);
            }
        },
        validates_updates_twice: true,
        validate_change: batch::update,
        validate_status: job_status::update,
        warn: warnings::job,
        pods: Pods::Template("/spec/template"),
        complete: take_template_labels,
        ..Strategy::COMMON
    },
    Strategy {
        id: "batch/cronjobs",
        rules: ResourceRules { generation: true, ..ResourceRules::COMMON },
        printer: Some(Printer::new(workloads::CRON_JOB, workloads::cron_job)),
        set_defaults: |_, object| cron_job(object),
        validate: |_, object, current, causes| batch::cron(object, current, causes),
        warn: warnings::cron_job,
        pods: Pods::Template("/spec/jobTemplate/spec/template"),
        ..Strategy::COMMON
    },
];

fn job(object: &mut Value) {
    let labels = object["spec"]["template"]["metadata"]["labels"].clone();
    if labels.as_object().is_some_and(|map| !map.is_empty()) {
        put(sub(object, "metadata"), "labels", labels);
    }
    let spec = sub(object, "spec");
    pod::template_of(spec);
    if spec.get("completions").is_none() && spec.get("parallelism").is_none() {
        put(spec, "completions", 1);
    }
    put(spec, "parallelism", 1);
    put(spec, "completionMode", "NonIndexed");
    put(spec, "suspend", false);
    let backoff = if spec["backoffLimitPerIndex"].is_null() { 6 } else { i64::from(i32::MAX) };
    put(spec, "backoffLimit", backoff);
    put(spec, "manualSelector", false);
    failure_policy(spec);
    let replacement = if spec["podFailurePolicy"].is_null() { "TerminatingOrFailed" } else { "Failed" };
    put(spec, "podReplacementPolicy", replacement);
}

fn failure_policy(spec: &mut Value) {
    if let Some(policy) = spec.get_mut("podFailurePolicy").filter(|policy| policy.is_object()) {
        for pattern in each(policy, "rules").flat_map(|rule| each(rule, "onPodConditions")) {
            put_over_zero(pattern, "status", "True");
        }
    }
}

fn cron_job(object: &mut Value) {
    let spec = sub(object, "spec");
    put(spec, "concurrencyPolicy", "Allow");
    put(spec, "suspend", false);
    put(spec, "successfulJobsHistoryLimit", 3);
    put(spec, "failedJobsHistoryLimit", 1);
    let job = sub(sub(spec, "jobTemplate"), "spec");
    pod::template_of(job);
    failure_policy(job);
}

/// The labels and selector that tie a job to its pods, unless the user manages them.
fn set_selector(object: &mut Value) {
    if object["spec"]["manualSelector"] == true {
        return;
    }
    let (uid, name) = (object["metadata"]["uid"].clone(), object["metadata"]["name"].clone());
    let spec = sub(object, "spec");
    // Values of the user stay, for validation to refuse.
    let labels = sub(sub(sub(spec, "template"), "metadata"), "labels");
    put(labels, "job-name", name.clone());
    put(labels, "batch.kubernetes.io/job-name", name);
    put(labels, "controller-uid", uid.clone());
    put(labels, "batch.kubernetes.io/controller-uid", uid.clone());
    put(sub(sub(spec, "selector"), "matchLabels"), "batch.kubernetes.io/controller-uid", uid);
}

/// A job without labels has those of its pods.
fn take_template_labels(object: &mut Value) {
    let labels = object["spec"]["template"]["metadata"]["labels"].clone();
    let own = object["metadata"]["labels"].as_object().is_some_and(|own| !own.is_empty());
    if !own && labels.is_object() {
        metadata::map_mut(object).insert("labels".to_owned(), labels);
    }
}
