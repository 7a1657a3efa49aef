//! Between the version objects are kept at and the version they are asked for. Custom resources are the
//! business of `versions`; how a built-in kind is converted says its strategy.

use super::strategy::strategy_of;
use opdev_apimachinery::resource::Resource;
use serde_json::Value;
use std::sync::Arc;

/// The object as the resource serves it.
pub(crate) fn served(resource: &Resource, object: &Arc<Value>) -> Arc<Value> {
    if (resource.custom.is_some() && resource.is_at(object)) || resource.is_stored_version() {
        return object.clone();
    }
    let mut value = Value::clone(object);
    if let Some(conversion) = &strategy_of(resource).conversion {
        (conversion.to_served)(&mut value);
    }
    value["apiVersion"] = Value::from(resource.api_version());
    Arc::new(value)
}

/// The object as it is kept.
pub(crate) fn stored(resource: &Resource, mut value: Value) -> Value {
    if resource.is_stored_version() {
        return value;
    }
    if let Some(conversion) = &strategy_of(resource).conversion {
        (conversion.to_stored)(&mut value);
    }
    value["apiVersion"] = Value::from(resource.storage_api_version.as_str());
    value
}

#[cfg(test)]
mod tests {
    use super::super::builtin;
    use super::*;
    use serde_json::json;

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
