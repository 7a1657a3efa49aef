//! HorizontalPodAutoscalers, at both of their versions, and PodDisruptionBudgets.

use crate::strategy::{Conversion, Strategy};
use opdev_apimachinery::part::Part;
use opdev_apimachinery::resource::{MetadataChecks, MetadataOrder, ResourceRules, names};
use opdev_apis::defaults::{put, sub};
use opdev_apis::table::{self, Printer};
use opdev_validation::scaling;
use serde_json::{Map, Value, json};

const METRICS: &str = "autoscaling.alpha.kubernetes.io/metrics";

pub(super) static ALL: &[Strategy] = &[
    Strategy {
        id: "autoscaling/horizontalpodautoscalers",
        storage_api_version: Some("autoscaling/v2"),
        rules: ResourceRules { generation: true, ..ResourceRules::COMMON },
        printer: Some(Printer::new(table::scaling::AUTOSCALER, table::scaling::autoscaler)),
        conversion: Some(Conversion { to_served: autoscaler_to_v1, to_stored: autoscaler_to_v2 }),
        set_defaults: |resource, object| autoscaler(&resource.version, object),
        initial_status: |resource| {
            Some(match resource.version.as_str() {
                "v1" => json!({"currentReplicas": 0, "desiredReplicas": 0}),
                _ => json!({"currentMetrics": null, "desiredReplicas": 0}),
            })
        },
        prepare_update: |resource, part, object, _| {
            if part == Part::Status && resource.version == "v2" {
                put(sub(object, "status"), "currentMetrics", Value::Null);
            }
        },
        validate: |resource, object, _, causes| {
            if resource.version == "v2" {
                scaling::autoscaler(&object["spec"], causes);
            }
        },
        ..Strategy::COMMON
    },
    Strategy {
        id: "policy/poddisruptionbudgets",
        rules: ResourceRules {
            generation: true,
            unconditional_update: false,
            validate_name: names::path_segment,
            any_finalizer: true,
            metadata_checks: MetadataChecks { changes: 1, wholes: 1, order: MetadataOrder::ChangesFirst },
            ..ResourceRules::COMMON
        },
        printer: Some(Printer::new(table::scaling::BUDGET, table::scaling::budget)),
        initial_status: |_| {
            Some(
                json!({"currentHealthy": 0, "desiredHealthy": 0, "disruptionsAllowed": 0, "expectedPods": 0}),
            )
        },
        validate: |_, object, _, causes| scaling::budget(&object["spec"], causes),
        metadata_last: true,
        ..Strategy::COMMON
    },
];

fn autoscaler(version: &str, object: &mut Value) {
    let spec = sub(object, "spec");
    put(spec, "minReplicas", 1);
    let without = spec["metrics"].as_array().is_none_or(Vec::is_empty);
    if version == "v2" && without {
        spec["metrics"] = json!([{"type": "Resource", "resource": {"name": "cpu",
            "target": {"type": "Utilization", "averageUtilization": 80}}}]);
    }
    if version == "v2"
        && let Some(behavior) = spec.get_mut("behavior").filter(|behavior| behavior.is_object())
    {
        let policy = |kind: &str, value: i64| json!({"type": kind, "value": value, "periodSeconds": 15});
        let up = sub(behavior, "scaleUp");
        put(up, "stabilizationWindowSeconds", 0);
        put(up, "selectPolicy", "Max");
        put(up, "policies", json!([policy("Pods", 4), policy("Percent", 100)]));
        let down = sub(behavior, "scaleDown");
        put(down, "selectPolicy", "Max");
        put(down, "policies", json!([policy("Percent", 100)]));
    }
}

fn is_cpu_utilization(metric: &Value) -> bool {
    metric["type"] == "Resource"
        && metric["resource"]["name"] == "cpu"
        && metric["resource"]["target"]["averageUtilization"].is_i64()
}

fn autoscaler_to_v1(value: &mut Value) {
    // v1 writes it even when it is zero, v2 does not.
    if let Some(status) = value.get_mut("status").and_then(Value::as_object_mut) {
        status.entry("currentReplicas").or_insert(Value::from(0));
    }
    let Some(spec) = value.get_mut("spec").and_then(Value::as_object_mut) else { return };
    let metrics = match spec.remove("metrics") {
        Some(Value::Array(list)) => list,
        _ => Vec::new(),
    };
    let behavior = spec.remove("behavior");
    let (cpu, other): (Vec<Value>, Vec<Value>) = metrics.into_iter().partition(is_cpu_utilization);
    if let Some(metric) = cpu.first() {
        let target = metric["resource"]["target"]["averageUtilization"].clone();
        spec.insert("targetCPUUtilizationPercentage".to_owned(), target);
    }
    let mut notes = Map::new();
    if !other.is_empty() {
        notes.insert(METRICS.to_owned(), Value::from(Value::Array(other).to_string()));
    }
    if let Some(behavior) = behavior {
        let key = "autoscaling.alpha.kubernetes.io/behavior".to_owned();
        notes.insert(key, Value::from(behavior.to_string()));
    }
    if !notes.is_empty() {
        sub(sub(value, "metadata"), "annotations")
            .as_object_mut()
            .into_iter()
            .for_each(|map| map.extend(notes.clone()));
    }
}

fn autoscaler_to_v2(value: &mut Value) {
    if let Some(status) = value.get_mut("status").and_then(Value::as_object_mut)
        && status.get("currentReplicas").is_some_and(|replicas| *replicas == 0)
    {
        status.remove("currentReplicas");
    }
    let mut metrics = Vec::new();
    if let Some(notes) = value["metadata"].get_mut("annotations").and_then(Value::as_object_mut) {
        let kept = notes.remove(METRICS);
        if let Some(list) =
            kept.as_ref().and_then(Value::as_str).and_then(|text| serde_json::from_str(text).ok())
        {
            metrics = list;
        }
    }
    let Some(spec) = value.get_mut("spec").and_then(Value::as_object_mut) else { return };
    if let Some(target) = spec.remove("targetCPUUtilizationPercentage") {
        let metric = json!({"type": "Resource", "resource": {"name": "cpu",
            "target": {"type": "Utilization", "averageUtilization": target}}});
        metrics.insert(0, metric);
    }
    if !metrics.is_empty() {
        spec.insert("metrics".to_owned(), Value::Array(metrics));
    }
}
