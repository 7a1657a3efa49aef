//! Defaults of the kinds that make pods.

use super::{each, pod, put, sub};
use serde_json::Value;

fn template(spec: &mut Value) {
    if let Some(found) = spec.get_mut("template") {
        pod::template(found);
    }
}

pub(super) fn deployment(object: &mut Value) {
    let spec = sub(object, "spec");
    template(spec);
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

pub(super) fn replica_set(object: &mut Value) {
    let spec = sub(object, "spec");
    template(spec);
    put(spec, "replicas", 1);
}

pub(super) fn replication_controller(object: &mut Value) {
    let labels = object["spec"]["template"]["metadata"]["labels"].clone();
    if labels.as_object().is_some_and(|map| !map.is_empty()) {
        put(sub(object, "spec"), "selector", labels.clone());
        put(sub(object, "metadata"), "labels", labels);
    }
    replica_set(object);
}

pub(super) fn stateful_set(object: &mut Value) {
    let spec = sub(object, "spec");
    template(spec);
    put(spec, "replicas", 1);
    put(spec, "revisionHistoryLimit", 10);
    put(spec, "podManagementPolicy", "OrderedReady");
    let retention = sub(spec, "persistentVolumeClaimRetentionPolicy");
    put(retention, "whenDeleted", "Retain");
    put(retention, "whenScaled", "Retain");
    let strategy = sub(spec, "updateStrategy");
    put(strategy, "type", "RollingUpdate");
    if strategy["type"] == "RollingUpdate" {
        put(sub(strategy, "rollingUpdate"), "partition", 0);
    }
    for claim in each(spec, "volumeClaimTemplates") {
        put(claim, "apiVersion", "v1");
        put(claim, "kind", "PersistentVolumeClaim");
        put(sub(claim, "spec"), "volumeMode", "Filesystem");
        put(sub(claim, "status"), "phase", "Pending");
    }
}

pub(super) fn daemon_set(object: &mut Value) {
    let spec = sub(object, "spec");
    template(spec);
    put(spec, "revisionHistoryLimit", 10);
    let strategy = sub(spec, "updateStrategy");
    put(strategy, "type", "RollingUpdate");
    if strategy["type"] == "RollingUpdate" {
        let rolling = sub(strategy, "rollingUpdate");
        put(rolling, "maxUnavailable", 1);
        put(rolling, "maxSurge", 0);
    }
}

pub(super) fn job(object: &mut Value) {
    let labels = object["spec"]["template"]["metadata"]["labels"].clone();
    if labels.as_object().is_some_and(|map| !map.is_empty()) {
        put(sub(object, "metadata"), "labels", labels);
    }
    let spec = sub(object, "spec");
    template(spec);
    if spec.get("completions").is_none() && spec.get("parallelism").is_none() {
        put(spec, "completions", 1);
    }
    put(spec, "parallelism", 1);
    put(spec, "completionMode", "NonIndexed");
    put(spec, "suspend", false);
    let backoff = if spec["backoffLimitPerIndex"].is_null() { 6 } else { i64::from(i32::MAX) };
    put(spec, "backoffLimit", backoff);
    put(spec, "manualSelector", false);
    let replacement = if spec["podFailurePolicy"].is_null() { "TerminatingOrFailed" } else { "Failed" };
    put(spec, "podReplacementPolicy", replacement);
}

pub(super) fn cron_job(object: &mut Value) {
    let spec = sub(object, "spec");
    put(spec, "concurrencyPolicy", "Allow");
    put(spec, "suspend", false);
    put(spec, "successfulJobsHistoryLimit", 3);
    put(spec, "failedJobsHistoryLimit", 1);
    let job = sub(sub(spec, "jobTemplate"), "spec");
    template(job);
}

/// The labels and selector that tie a job to its pods, unless the user manages them.
pub(crate) fn job_selector(object: &mut Value) {
    if object["spec"]["manualSelector"] == true {
        return;
    }
    let (uid, name) = (object["metadata"]["uid"].clone(), object["metadata"]["name"].clone());
    let spec = sub(object, "spec");
    // What the user has set stays, for validation to refuse.
    let labels = sub(sub(sub(spec, "template"), "metadata"), "labels");
    put(labels, "job-name", name.clone());
    put(labels, "batch.kubernetes.io/job-name", name);
    put(labels, "controller-uid", uid.clone());
    put(labels, "batch.kubernetes.io/controller-uid", uid.clone());
    put(sub(sub(spec, "selector"), "matchLabels"), "batch.kubernetes.io/controller-uid", uid);
}
