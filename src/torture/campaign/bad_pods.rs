//! Pods of a new revision that never start: a stage of the simulated pods that holds them. Pure.

use crate::plan::BadPods;
use opdev_controlplane::controllers::stage;
use opdev_object::yaml;
use serde_json::{Value, json};

/// The reason for which a container waits.
const REASON: &str = "CreateContainerError";
/// The field of the image: a pod whose image is not there waits for another reason.
const IMAGE: (&str, &str) = (".spec.containers[].image", "ImagePullBackOff");

/// All stages of a pod, with one that holds those pods before they run.
pub(crate) fn stages(bad: &BadPods) -> String {
    let reason = if bad.field == IMAGE.0 { IMAGE.1 } else { REASON };
    let held = json!({
        "apiVersion": "opdev.dev/v1alpha1",
        "kind": "Stage",
        "metadata": {"name": "pod-of-the-bad-rollout"},
        "spec": {
            "resourceRef": {"apiGroup": "v1", "kind": "Pod"},
            "weight": 20,
            "selector": {"matchExpressions": [
                {"key": ".metadata.deletionTimestamp", "operator": "DoesNotExist"},
                {"key": ".status.phase", "operator": "In", "values": ["Pending"]},
                {"key": ".status.startTime", "operator": "Exists"},
                {"key": bad.field, "operator": "In", "values": bad.values},
            ]},
            "next": {"status": {"containers": {
                "waiting": {"reason": reason, "message": "opdev torture keeps this pod from starting"},
            }}},
        },
    });
    format!("{}\n---\n{}", stage::built_in_text(), yaml::to_string(&held))
}

/// Returns true if an object is a pod that is held.
pub(crate) fn is_bad(object: &Value) -> bool {
    let containers = object["status"]["containerStatuses"].as_array();
    let is_held = |container: &Value| {
        let reason = container["state"]["waiting"]["reason"].as_str().unwrap_or_default();
        [REASON, IMAGE.1].contains(&reason)
    };
    object["kind"] == "Pod" && containers.into_iter().flatten().any(is_held)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_stages_are_valid_and_one_more_than_those_of_every_plane() {
        let bad = BadPods { field: IMAGE.0.to_owned(), values: vec!["db:2".to_owned()] };
        let parsed = stage::parse(&stages(&bad)).unwrap();
        assert_eq!(parsed.len(), stage::built_in().len() + 1);
    }

    #[test]
    fn a_pod_that_is_held_is_known_by_the_reason_for_which_it_waits() {
        let pod = |reason: &str| json!({"kind": "Pod", "status": {"containerStatuses": [{"state": {"waiting": {"reason": reason}}}]}});
        assert!(is_bad(&pod("ImagePullBackOff")) && !is_bad(&pod("ContainerCreating")));
    }
}
