//! What the server itself sets on an object before it is written: which part of it the request may change, the
//! status it starts with, its generation. Read `validate` for what is refused.

use super::defaults;
use crate::identity::User;
use crate::resource::{Resource, metadata};
use jiff::Timestamp;
use serde_json::{Value, json};

const SIGNING_REQUESTS: &str = "certificates.k8s.io/certificatesigningrequests";

/// Which part of an object a request writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// The object; its status stays where that is a subresource.
    Main,
    /// Only the status.
    Status,
    /// The number of replicas, through the scale subresource.
    Scale,
    /// A pod's node, through the binding subresource.
    Binding,
    /// Only `spec.finalizers` of a namespace.
    Finalize,
    /// Only `spec.ephemeralContainers` of a pod.
    EphemeralContainers,
    /// Only the resources of a pod's containers.
    Resize,
    /// Only the conditions of a signing request.
    Approval,
}

impl Part {
    /// The part a subresource path writes; `None` where the subresource is no part of the object.
    pub fn of_subresource(name: &str) -> Option<Part> {
        Some(match name {
            "status" => Part::Status,
            "finalize" => Part::Finalize,
            "ephemeralcontainers" => Part::EphemeralContainers,
            "resize" => Part::Resize,
            "approval" => Part::Approval,
            _ => return None,
        })
    }

    /// The name of the subresource.
    pub fn subresource(self) -> Option<&'static str> {
        match self {
            Part::Main => None,
            Part::Status => Some("status"),
            Part::Scale => Some("scale"),
            Part::Binding => Some("binding"),
            Part::Finalize => Some("finalize"),
            Part::EphemeralContainers => Some("ephemeralcontainers"),
            Part::Resize => Some("resize"),
            Part::Approval => Some("approval"),
        }
    }
}

/// Before a create, with metadata stamped.
pub(crate) fn prepare_create(resource: &Resource, object: &mut Value) {
    reset_status(resource, object);
    if resource.habits.generation || resource.custom.is_some() {
        metadata::of(object).insert("generation".to_owned(), Value::from(1));
    }
    match resource.id() {
        "pods" => defaults::pod_created(object),
        "batch/jobs" => {
            defaults::job_selector(object);
        }
        "persistentvolumeclaims" => protect(object, "kubernetes.io/pvc-protection"),
        "persistentvolumes" => protect(object, "kubernetes.io/pv-protection"),
        "namespaces" => defaults::sub(object, "spec")["finalizers"] = json!(["kubernetes"]),
        _ => {}
    }
}

/// Storage that is in use stays: whoever releases it takes the finalizer off.
fn protect(object: &mut Value, finalizer: &str) {
    let meta = metadata::of(object);
    let list = meta.entry("finalizers").or_insert_with(|| json!([]));
    if let Some(list) = list.as_array_mut().filter(|list| !list.iter().any(|name| name == finalizer)) {
        list.push(Value::from(finalizer));
    }
}

/// What an object gets when it is read from the store, after everything was checked: a job without labels has those of
/// its pods.
pub(crate) fn complete(resource: &Resource, object: &mut Value) {
    if resource.id() != "batch/jobs" {
        return;
    }
    let labels = object["spec"]["template"]["metadata"]["labels"].clone();
    let own = object["metadata"]["labels"].as_object().is_some_and(|own| !own.is_empty());
    if !own && labels.is_object() {
        metadata::of(object).insert("labels".to_owned(), labels);
    }
}

fn reset_status(resource: &Resource, object: &mut Value) {
    if !resource.has_status() {
        return;
    }
    if resource.custom.is_some() {
        if let Some(map) = object.as_object_mut() {
            map.remove("status");
        }
        return;
    }
    object["status"] = match resource.id() {
        // A node registers itself with its status.
        "nodes" => return,
        "namespaces" => json!({"phase": "Active"}),
        "persistentvolumes" | "persistentvolumeclaims" => json!({"phase": "Pending"}),
        "services" | "networking.k8s.io/ingresses" => json!({"loadBalancer": {}}),
        // Counts that are written even when they are zero.
        "apps/replicasets" | "replicationcontrollers" => json!({"replicas": 0}),
        "apps/statefulsets" => json!({"replicas": 0, "availableReplicas": 0}),
        "apps/daemonsets" => json!({"currentNumberScheduled": 0, "desiredNumberScheduled": 0,
            "numberMisscheduled": 0, "numberReady": 0}),
        "storage.k8s.io/volumeattachments" => json!({"attached": false}),
        "policy/poddisruptionbudgets" => json!({"currentHealthy": 0, "desiredHealthy": 0,
            "disruptionsAllowed": 0, "expectedPods": 0}),
        "autoscaling/horizontalpodautoscalers" if resource.version == "v1" => {
            json!({"currentReplicas": 0, "desiredReplicas": 0})
        }
        "autoscaling/horizontalpodautoscalers" => json!({"currentMetrics": null, "desiredReplicas": 0}),
        _ => json!({}),
    };
}

/// A signing request says who made it, whatever it says itself.
pub(crate) fn signed_by(resource: &Resource, object: &mut Value, user: &User) {
    if resource.id() != SIGNING_REQUESTS {
        return;
    }
    let spec = defaults::sub(object, "spec");
    let given = |there: bool, value: Value| if there { value } else { Value::Null };
    let fields = [
        ("username", given(!user.name.is_empty(), json!(user.name))),
        ("uid", given(!user.uid.is_empty(), json!(user.uid))),
        ("groups", given(!user.groups.is_empty(), json!(user.groups))),
        ("extra", given(!user.extra.is_empty(), json!(user.extra))),
    ];
    let Value::Object(spec) = spec else { return };
    for (name, value) in fields {
        spec.remove(name);
        if !value.is_null() {
            spec.insert(name.to_owned(), value);
        }
    }
}

/// A volume says since when it has its phase, unless the request does. The real server's storage sees to that, too.
pub(crate) fn phase_moved(resource: &Resource, object: &mut Value, current: Option<&Value>, now: Timestamp) {
    const SINCE: &str = "lastPhaseTransitionTime";
    if resource.id() != "persistentvolumes" {
        return;
    }
    let status = |of: &Value, field: &str| of["status"][field].clone();
    let moved = match current {
        None => true,
        Some(current) => {
            status(current, "phase") != status(object, "phase")
                && (status(object, SINCE).is_null() || status(object, SINCE) == status(current, SINCE))
        }
    };
    if moved {
        object["status"][SINCE] = Value::from(metadata::seconds(now));
    }
}

/// Before an update: `object` becomes what the request may make of `current`.
pub(crate) fn prepare_update(resource: &Resource, part: Part, object: &mut Value, current: &Value) {
    match part {
        Part::Main | Part::Scale => {
            if resource.has_status() {
                take(object, current, "status");
            }
            // What is asked to be signed, and by whom, stays.
            if resource.id() == SIGNING_REQUESTS {
                take(object, current, "spec");
            }
            if resource.id() == "namespaces" {
                let finalizers = current["spec"]["finalizers"].clone();
                let spec = defaults::sub(object, "spec");
                if finalizers.is_null() {
                    spec.as_object_mut().into_iter().for_each(|map| {
                        map.remove("finalizers");
                    });
                } else {
                    spec["finalizers"] = finalizers;
                }
            }
        }
        Part::Binding => {}
        // A Deployment's revision is an annotation that travels with its status and is no change of what is wanted.
        Part::Status if resource.id() == "apps/deployments" => {
            only(object, current, resource, &["/status", "/metadata/annotations"]);
        }
        Part::Status => only(object, current, resource, &["/status"]),
        Part::Finalize => only(object, current, resource, &["/spec/finalizers"]),
        Part::EphemeralContainers => only(object, current, resource, &["/spec/ephemeralContainers"]),
        Part::Resize => only(object, current, resource, &["/spec/containers", "/spec/initContainers"]),
        Part::Approval => only(object, current, resource, &["/status/conditions"]),
    }
    match (resource.id(), part) {
        ("pods", Part::Main) => defaults::tolerations(defaults::sub(object, "spec")),
        ("pods", Part::Status) => {
            // How well a pod is served follows from its spec; nobody takes it away.
            let class = current["status"]["qosClass"].clone();
            defaults::put(defaults::sub(object, "status"), "qosClass", class);
        }
        ("autoscaling/horizontalpodautoscalers", Part::Status) if resource.version == "v2" => {
            defaults::put(defaults::sub(object, "status"), "currentMetrics", Value::Null);
        }
        _ => {}
    }
    let counts = (resource.habits.generation || resource.custom.is_some())
        && !matches!(part, Part::Status | Part::Binding | Part::Approval);
    if counts && wanted_differs(resource, object, current) {
        let next = opdev_object::meta::generation(current) + 1;
        metadata::of(object).insert("generation".to_owned(), Value::from(next));
    }
}

fn take(object: &mut Value, current: &Value, field: &str) {
    let Some(map) = object.as_object_mut() else { return };
    match current.get(field) {
        Some(value) => map.insert(field.to_owned(), value.clone()),
        None => map.remove(field),
    };
}

/// Everything but these fields is as it was. Metadata that people set stays writable for built-in kinds.
fn only(object: &mut Value, current: &Value, resource: &Resource, fields: &[&str]) {
    let wanted: Vec<Option<Value>> = fields.iter().map(|field| object.pointer(field).cloned()).collect();
    let new_meta = object["metadata"].clone();
    *object = current.clone();
    let meta = metadata::of(object);
    let mut kept = vec!["managedFields", "resourceVersion"];
    if resource.custom.is_none() {
        kept.extend(["annotations", "finalizers", "generateName"]);
        // Old kubelets lost the owners of pods.
        if resource.id() != "pods" {
            kept.push("ownerReferences");
        }
        if resource.id() != "apps/deployments" {
            kept.push("labels");
        }
    }
    for field in kept {
        match new_meta.get(field) {
            Some(value) => meta.insert(field.to_owned(), value.clone()),
            None => meta.remove(field),
        };
    }
    for (field, value) in fields.iter().zip(wanted) {
        set(object, field, value);
    }
}

fn set(object: &mut Value, pointer: &str, value: Option<Value>) {
    let mut names: Vec<&str> = pointer.trim_start_matches('/').split('/').collect();
    let Some(last) = names.pop() else { return };
    let parent = names.into_iter().fold(object, |at, name| defaults::sub(at, name));
    match (parent.as_object_mut(), value) {
        (Some(map), Some(value)) => {
            map.insert(last.to_owned(), value);
        }
        (Some(map), None) => {
            map.remove(last);
        }
        (None, _) => {}
    }
}

/// Whether anything but metadata (and a status with a path of its own) differs.
fn wanted_differs(resource: &Resource, object: &Value, current: &Value) -> bool {
    let (Some(new), Some(old)) = (object.as_object(), current.as_object()) else { return true };
    let ignored = |key: &str| {
        matches!(key, "metadata" | "apiVersion" | "kind") || (key == "status" && resource.has_status())
    };
    let one_way = |a: &serde_json::Map<String, Value>, b: &serde_json::Map<String, Value>| {
        a.iter().any(|(key, value)| !ignored(key) && b.get(key) != Some(value))
    };
    if one_way(new, old) || one_way(old, new) {
        return true;
    }
    // Upstream counts a Deployment's annotations among what is wanted.
    resource.id() == "apps/deployments"
        && object["metadata"]["annotations"] != current["metadata"]["annotations"]
}
