//! Readiness of an object, per kind, as `kubectl rollout status` and `helm --wait` mean it. Pure: it looks at
//! one object and nothing else. Kinds that it does not know are ready by their conditions, or once they
//! exist.

use opdev_object::meta::{self, Gvk};
use serde_json::Value;

/// Returns true if the object does what it is there for. An object that is being deleted is not ready, and
/// neither is one whose status speaks of an older generation.
pub fn ready(object: &Value) -> bool {
    let Some(gvk) = Gvk::of(object) else { return false };
    if meta::deletion_timestamp(object).is_some() || is_behind(object) {
        return false;
    }
    match (gvk.group.as_str(), gvk.kind.as_str()) {
        ("", "Pod") => pod(object),
        ("apps", "Deployment") => deployment(object),
        ("apps", "StatefulSet") => stateful_set(object),
        ("apps", "DaemonSet") => daemon_set(object),
        ("apps", "ReplicaSet") | ("", "ReplicationController") => {
            count(object, "/status/readyReplicas") >= wanted(object)
        }
        ("batch", "Job") => job(object),
        ("", "PersistentVolumeClaim") => text(object, "/status/phase") == "Bound",
        ("", "PersistentVolume") => matches!(text(object, "/status/phase"), "Bound" | "Available"),
        ("", "Namespace") => text(object, "/status/phase") == "Active",
        ("", "Service") => service(object),
        ("apiextensions.k8s.io", "CustomResourceDefinition") => is_true(object, "Established"),
        _ => by_conditions(object),
    }
}

/// Returns true if the status was made for an older generation of the object.
fn is_behind(object: &Value) -> bool {
    let observed = object.pointer("/status/observedGeneration").and_then(Value::as_i64);
    observed.is_some_and(|observed| observed < meta::generation(object))
}

fn text<'a>(object: &'a Value, pointer: &str) -> &'a str {
    object.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

fn count(object: &Value, pointer: &str) -> i64 {
    object.pointer(pointer).and_then(Value::as_i64).unwrap_or(0)
}

/// `spec.replicas`, which is 1 where it is absent.
fn wanted(object: &Value) -> i64 {
    object.pointer("/spec/replicas").and_then(Value::as_i64).unwrap_or(1)
}

fn condition<'a>(object: &'a Value, kind: &str) -> Option<&'a Value> {
    let list = object.pointer("/status/conditions")?.as_array()?;
    list.iter().find(|condition| text(condition, "/type") == kind)
}

fn is_true(object: &Value, kind: &str) -> bool {
    condition(object, kind).is_some_and(|condition| text(condition, "/status") == "True")
}

/// A status of a controller that has never looked at the object says nothing.
fn is_observed(object: &Value) -> bool {
    object.pointer("/status/observedGeneration").is_some() || meta::generation(object) == 0
}

fn pod(object: &Value) -> bool {
    text(object, "/status/phase") == "Succeeded" || is_true(object, "Ready")
}

fn deployment(object: &Value) -> bool {
    let wanted = wanted(object);
    let stuck = condition(object, "Progressing")
        .is_some_and(|condition| text(condition, "/reason") == "ProgressDeadlineExceeded");
    let updated = count(object, "/status/updatedReplicas");
    is_observed(object)
        && !stuck
        && updated >= wanted
        && count(object, "/status/replicas") <= updated
        && count(object, "/status/availableReplicas") >= updated
}

fn stateful_set(object: &Value) -> bool {
    let wanted = wanted(object);
    if !is_observed(object) || count(object, "/status/readyReplicas") < wanted {
        return false;
    }
    if text(object, "/spec/updateStrategy/type") == "OnDelete" {
        return true;
    }
    let partition = count(object, "/spec/updateStrategy/rollingUpdate/partition");
    if partition > 0 {
        return count(object, "/status/updatedReplicas") >= wanted - partition;
    }
    text(object, "/status/updateRevision") == text(object, "/status/currentRevision")
}

fn daemon_set(object: &Value) -> bool {
    let wanted = count(object, "/status/desiredNumberScheduled");
    let updated = text(object, "/spec/updateStrategy/type") == "OnDelete"
        || count(object, "/status/updatedNumberScheduled") >= wanted;
    is_observed(object)
        && object.pointer("/status/desiredNumberScheduled").is_some()
        && updated
        && count(object, "/status/numberAvailable") >= wanted
}

fn job(object: &Value) -> bool {
    if is_true(object, "Failed") {
        return false;
    }
    let completions = object.pointer("/spec/completions").and_then(Value::as_i64).unwrap_or(1);
    is_true(object, "Complete") || count(object, "/status/succeeded") >= completions
}

fn service(object: &Value) -> bool {
    let kind = text(object, "/spec/type");
    if kind == "ExternalName" {
        return true;
    }
    if text(object, "/spec/clusterIP").is_empty() {
        return false;
    }
    let some = |pointer: &str| {
        object.pointer(pointer).and_then(Value::as_array).is_some_and(|list| !list.is_empty())
    };
    kind != "LoadBalancer" || some("/spec/externalIPs") || some("/status/loadBalancer/ingress")
}

/// Custom resources and all other kinds: not while they say that they are reconciling or stalled; then the
/// first of the usual conditions that is there decides; without any they are ready once they exist.
fn by_conditions(object: &Value) -> bool {
    if is_true(object, "Reconciling") || is_true(object, "Stalled") {
        return false;
    }
    let known = ["Ready", "Available", "Deployed"].iter().find_map(|kind| condition(object, kind));
    known.is_none_or(|condition| {
        let observed = condition.get("observedGeneration").and_then(Value::as_i64);
        text(condition, "/status") == "True" && observed.is_none_or(|seen| seen >= meta::generation(object))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn object(api_version: &str, kind: &str, spec: &Value, status: &Value) -> Value {
        json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": "x", "generation": 2},
               "spec": spec, "status": status})
    }

    #[test]
    fn workloads_are_ready_when_their_rollout_is_over() {
        let deployment =
            |status: Value| ready(&object("apps/v1", "Deployment", &json!({"replicas": 2}), &status));
        let done =
            json!({"observedGeneration": 2, "replicas": 2, "updatedReplicas": 2, "availableReplicas": 2});
        assert!(deployment(done.clone()));
        for (key, value) in
            [("observedGeneration", 1), ("updatedReplicas", 1), ("availableReplicas", 1), ("replicas", 3)]
        {
            let mut status = done.clone();
            status[key] = value.into();
            assert!(!deployment(status), "{key} = {value}");
        }
        let mut stuck = done;
        stuck["conditions"] =
            json!([{"type": "Progressing", "status": "False", "reason": "ProgressDeadlineExceeded"}]);
        assert!(!deployment(stuck));
        assert!(!deployment(json!({})), "nobody looked at it yet");

        let set = |spec: Value, status: Value| ready(&object("apps/v1", "StatefulSet", &spec, &status));
        let status = json!({"observedGeneration": 2, "readyReplicas": 3, "updatedReplicas": 1,
                            "currentRevision": "a", "updateRevision": "b"});
        assert!(!set(json!({"replicas": 3}), status.clone()));
        assert!(set(json!({"replicas": 3, "updateStrategy": {"type": "OnDelete"}}), status.clone()));
        let partition =
            |n: i64| json!({"replicas": 3, "updateStrategy": {"rollingUpdate": {"partition": n}}});
        assert!(set(partition(2), status.clone()));
        assert!(!set(partition(1), status));

        let daemon = |status: Value| ready(&object("apps/v1", "DaemonSet", &json!({}), &status));
        assert!(daemon(json!({"observedGeneration": 2, "desiredNumberScheduled": 0})));
        assert!(!daemon(
            json!({"observedGeneration": 2, "desiredNumberScheduled": 2, "updatedNumberScheduled": 2,
                               "numberAvailable": 1})
        ));
    }

    #[test]
    fn jobs_pods_claims_and_services() {
        let job = |spec: Value, status: Value| ready(&object("batch/v1", "Job", &spec, &status));
        assert!(job(json!({}), json!({"succeeded": 1})));
        assert!(!job(json!({"completions": 2}), json!({"succeeded": 1})));
        assert!(!job(
            json!({}),
            json!({"succeeded": 1, "conditions": [{"type": "Failed", "status": "True"}]})
        ));
        let pod = |status: Value| ready(&object("v1", "Pod", &json!({}), &status));
        assert!(pod(json!({"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]})));
        assert!(!pod(json!({"phase": "Running"})));
        assert!(pod(json!({"phase": "Succeeded"})));
        assert!(ready(&object("v1", "PersistentVolumeClaim", &json!({}), &json!({"phase": "Bound"}))));
        let service = |spec: Value, status: Value| ready(&object("v1", "Service", &spec, &status));
        assert!(service(json!({"clusterIP": "None"}), json!({})));
        assert!(!service(json!({"clusterIP": "10.0.0.1", "type": "LoadBalancer"}), json!({})));
        let ingress = json!({"loadBalancer": {"ingress": [{"ip": "1.2.3.4"}]}});
        assert!(service(json!({"clusterIP": "10.0.0.1", "type": "LoadBalancer"}), ingress));
        assert!(!service(json!({}), json!({})));
    }

    #[test]
    fn custom_resources_are_ready_by_their_conditions() {
        let custom = |status: Value| ready(&object("x.io/v1", "Thing", &json!({}), &status));
        assert!(custom(json!({})));
        assert!(custom(json!({"conditions": [{"type": "Ready", "status": "True"}]})));
        assert!(!custom(json!({"conditions": [{"type": "Ready", "status": "Unknown"}]})));
        assert!(!custom(
            json!({"conditions": [{"type": "Ready", "status": "True", "observedGeneration": 1}]})
        ));
        assert!(!custom(json!({"conditions": [{"type": "Reconciling", "status": "True"}]})));
        assert!(!custom(json!({"observedGeneration": 1})));
        let mut leaving = object("x.io/v1", "Thing", &json!({}), &json!({}));
        leaving["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
        assert!(!ready(&leaving));
        assert!(!ready(&json!({"metadata": {}})), "not an object of any kind");
    }
}
