//! Between the version objects are kept at and the version they are asked for. Custom resources are the business of
//! `versions`; Events and autoscalers have two shapes.

use crate::protobuf;
use crate::resource::Resource;
use serde_json::{Map, Value, json};
use std::sync::Arc;

const METRICS: &str = "autoscaling.alpha.kubernetes.io/metrics";

/// The object as the resource serves it.
pub(crate) fn served(resource: &Resource, object: &Arc<Value>) -> Arc<Value> {
    if (resource.custom.is_some() && resource.is_at(object)) || resource.is_stored_version() {
        return object.clone();
    }
    let mut value = Value::clone(object);
    match resource.id() {
        "events.k8s.io/events" => rename(&mut value, &EVENT_FIELDS, false),
        "autoscaling/horizontalpodautoscalers" => autoscaler_to_v1(&mut value),
        _ => {}
    }
    value["apiVersion"] = Value::from(resource.api_version());
    Arc::new(value)
}

/// The object as it is kept.
pub(crate) fn stored(resource: &Resource, mut value: Value) -> Value {
    if resource.is_stored_version() {
        return value;
    }
    match resource.id() {
        "events.k8s.io/events" => rename(&mut value, &EVENT_FIELDS, true),
        "autoscaling/horizontalpodautoscalers" => autoscaler_to_v2(&mut value),
        _ => {}
    }
    value["apiVersion"] = Value::from(resource.storage_api_version.as_str());
    value
}

/// Numbers as Go writes them: `2.0` becomes `2`, which is what a client would read back as an integer.
pub(crate) fn whole_numbers(value: &mut Value) {
    match value {
        Value::Number(number) if number.is_f64() => {
            if let Some(whole) = number.as_f64().and_then(protobuf::whole) {
                *value = Value::from(whole);
            }
        }
        Value::Array(items) => items.iter_mut().for_each(whole_numbers),
        Value::Object(map) => map.values_mut().for_each(whole_numbers),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// Core name, events.k8s.io name.
const EVENT_FIELDS: [(&str, &str); 8] = [
    ("involvedObject", "regarding"),
    ("message", "note"),
    ("source", "deprecatedSource"),
    ("firstTimestamp", "deprecatedFirstTimestamp"),
    ("lastTimestamp", "deprecatedLastTimestamp"),
    ("count", "deprecatedCount"),
    ("reportingComponent", "reportingController"),
    ("reportingInstance", "reportingInstance"),
];

fn rename(value: &mut Value, fields: &[(&str, &str)], to_left: bool) {
    let Some(map) = value.as_object_mut() else { return };
    for (left, right) in fields {
        let (from, to) = if to_left { (right, left) } else { (left, right) };
        if let Some(found) = map.remove(*from) {
            map.insert((*to).to_owned(), found);
        }
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
        super::defaults::sub(super::defaults::sub(value, "metadata"), "annotations")
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

#[cfg(test)]
mod tests {
    use super::super::builtin;
    use super::*;

    fn find(group: &str, version: &str) -> Resource {
        builtin::resources()
            .into_iter()
            .find(|r| {
                r.group == group
                    && r.version == version
                    && ["events", "horizontalpodautoscalers"].contains(&r.plural.as_str())
            })
            .unwrap()
    }

    #[test]
    fn an_event_has_two_shapes() {
        let new = find("events.k8s.io", "v1");
        let object = json!({"apiVersion": "events.k8s.io/v1", "kind": "Event", "note": "hi",
            "regarding": {"kind": "Pod"}, "reportingController": "c"});
        let kept = stored(&new, object.clone());
        assert_eq!(kept["message"], "hi");
        assert_eq!((&kept["apiVersion"], &kept["reportingComponent"]), (&json!("v1"), &json!("c")));
        assert_eq!(*served(&new, &Arc::new(kept)), object);
    }

    #[test]
    fn an_autoscaler_has_two_shapes() {
        let v1 = find("autoscaling", "v1");
        let object = json!({"apiVersion": "autoscaling/v1", "kind": "HorizontalPodAutoscaler",
            "metadata": {"name": "a"}, "spec": {"maxReplicas": 3, "targetCPUUtilizationPercentage": 50},
            "status": {"currentReplicas": 0, "desiredReplicas": 0}});
        let kept = stored(&v1, object.clone());
        assert_eq!(kept["status"], json!({"desiredReplicas": 0}));
        assert_eq!(kept["spec"]["metrics"][0]["resource"]["target"]["averageUtilization"], 50);
        assert_eq!(*served(&v1, &Arc::new(kept)), object);
    }
}
