//! Defaults of the built-in kinds: upstream has them as code, here they are short tables in code.
//! Only fills what is missing; allocation (IPs, ports, uids) happens elsewhere.

mod networking;
mod pod;
mod workloads;

pub(crate) use pod::{created as pod_created, tolerations};
pub(crate) use workloads::job_selector;

use crate::resource::Resource;
use base64::Engine;
use serde_json::{Map, Value, json};

/// Sets a field where it is missing or null.
pub(crate) fn put(object: &mut Value, field: &str, value: impl Into<Value>) {
    if let Some(map) = object.as_object_mut() {
        let slot = map.entry(field.to_owned()).or_insert(Value::Null);
        if slot.is_null() {
            *slot = value.into();
        }
    }
}

/// An object field for changing, made where it is missing.
pub(crate) fn sub<'a>(object: &'a mut Value, field: &str) -> &'a mut Value {
    put(object, field, Map::new());
    &mut object[field]
}

/// The items of a list for changing; none where there is no list.
pub(crate) fn each<'a>(object: &'a mut Value, field: &str) -> impl Iterator<Item = &'a mut Value> {
    object.get_mut(field).and_then(Value::as_array_mut).into_iter().flatten()
}

/// Fills in the defaults of a built-in object.
pub(crate) fn apply(resource: &Resource, object: &mut Value) {
    match (resource.group.as_str(), resource.plural.as_str()) {
        ("", "pods") => pod::pod(object),
        ("", "podtemplates") => pod::template(&mut object["template"]),
        ("", "replicationcontrollers") => workloads::replication_controller(object),
        ("", "services") => networking::service(object),
        ("", "endpoints") => networking::endpoints(object),
        ("", "secrets") => secret(object),
        ("", "namespaces") => namespace(object),
        ("", "persistentvolumeclaims") => claim(object),
        ("", "persistentvolumes") => volume(object),
        ("", "limitranges") => crate::limits::complete(object),
        ("", "resourcequotas" | "configmaps" | "serviceaccounts") => {}
        ("", "nodes") => node(object),
        ("apps", "deployments") => workloads::deployment(object),
        ("apps", "replicasets") => workloads::replica_set(object),
        ("apps", "statefulsets") => workloads::stateful_set(object),
        ("apps", "daemonsets") => workloads::daemon_set(object),
        ("batch", "jobs") => workloads::job(object),
        ("batch", "cronjobs") => workloads::cron_job(object),
        ("autoscaling", "horizontalpodautoscalers") => autoscaler(&resource.version, object),
        ("networking.k8s.io", "networkpolicies") => networking::policy(object),
        ("discovery.k8s.io", "endpointslices") => networking::slice(object),
        ("rbac.authorization.k8s.io", "rolebindings" | "clusterrolebindings") => binding(object),
        // It is written even where there are none.
        ("rbac.authorization.k8s.io", "roles" | "clusterroles") => put(object, "rules", Value::Null),
        ("storage.k8s.io", "storageclasses") => {
            put(object, "reclaimPolicy", "Delete");
            put(object, "volumeBindingMode", "Immediate");
        }
        ("storage.k8s.io", "csidrivers") => csi_driver(sub(object, "spec")),
        ("flowcontrol.apiserver.k8s.io", "prioritylevelconfigurations") => priority_level(object),
        ("scheduling.k8s.io", "priorityclasses") => put(object, "preemptionPolicy", "PreemptLowerPriority"),
        (
            "admissionregistration.k8s.io",
            "validatingwebhookconfigurations" | "mutatingwebhookconfigurations",
        ) => {
            webhooks(object, resource.plural.starts_with("mutating"));
        }
        ("admissionregistration.k8s.io", plural) => policies(plural, object),
        ("apiextensions.k8s.io", "customresourcedefinitions") => opdev_object::definition::complete(object),
        _ => {}
    }
}

fn secret(object: &mut Value) {
    if let Some(Value::Object(texts)) = object.as_object_mut().and_then(|map| map.remove("stringData")) {
        let data = sub(object, "data");
        for (key, text) in texts {
            let text = text.as_str().unwrap_or_default();
            data[&key] = Value::from(base64::engine::general_purpose::STANDARD.encode(text));
        }
    }
    if object["type"].as_str().unwrap_or_default().is_empty() {
        object["type"] = Value::from("Opaque");
    }
}

fn namespace(object: &mut Value) {
    let name = object["metadata"]["name"].clone();
    if name.as_str().is_some_and(|name| !name.is_empty()) {
        sub(sub(object, "metadata"), "labels")["kubernetes.io/metadata.name"] = name;
    }
    put(sub(object, "status"), "phase", "Active");
}

fn claim(object: &mut Value) {
    put(sub(object, "spec"), "volumeMode", "Filesystem");
    put(sub(object, "status"), "phase", "Pending");
}

fn volume(object: &mut Value) {
    let spec = sub(object, "spec");
    put(spec, "persistentVolumeReclaimPolicy", "Retain");
    put(spec, "volumeMode", "Filesystem");
    put(sub(object, "status"), "phase", "Pending");
}

/// The first of a node's ranges is also its only one, and what it has is free to be used.
fn node(object: &mut Value) {
    let spec = sub(object, "spec");
    let (range, ranges) = (spec["podCIDR"].clone(), spec["podCIDRs"].clone());
    if range.is_string() && ranges.is_null() {
        spec["podCIDRs"] = json!([range]);
    } else if range.is_null() && ranges[0].is_string() {
        spec["podCIDR"] = ranges[0].clone();
    }
    let capacity = object["status"]["capacity"].clone();
    if capacity.is_object() {
        put(sub(object, "status"), "allocatable", capacity);
    }
}

fn csi_driver(spec: &mut Value) {
    put(spec, "attachRequired", true);
    put(spec, "fsGroupPolicy", "ReadWriteOnceWithFSType");
    put(spec, "volumeLifecycleModes", json!(["Persistent"]));
    for field in ["podInfoOnMount", "storageCapacity", "requiresRepublish", "seLinuxMount"] {
        put(spec, field, false);
    }
}

fn priority_level(object: &mut Value) {
    let Some(limited) = object["spec"].get_mut("limited").filter(|limited| limited.is_object()) else {
        return;
    };
    put(limited, "nominalConcurrencyShares", 30);
    put(limited, "lendablePercent", 0);
    let response = sub(limited, "limitResponse");
    if let Some(queuing) = response.get_mut("queuing").filter(|queuing| queuing.is_object()) {
        put(queuing, "queues", 64);
        put(queuing, "handSize", 8);
        put(queuing, "queueLengthLimit", 50);
    }
}

fn autoscaler(version: &str, object: &mut Value) {
    let spec = sub(object, "spec");
    put(spec, "minReplicas", 1);
    let without = spec["metrics"].as_array().is_none_or(Vec::is_empty);
    if version == "v2" && without {
        spec["metrics"] = json!([{"type": "Resource", "resource": {"name": "cpu",
            "target": {"type": "Utilization", "averageUtilization": 80}}}]);
    }
}

fn binding(object: &mut Value) {
    const GROUP: &str = "rbac.authorization.k8s.io";
    let role = sub(object, "roleRef");
    if role["apiGroup"].as_str().unwrap_or_default().is_empty() {
        role["apiGroup"] = Value::from(GROUP);
    }
    for subject in each(object, "subjects") {
        let named = !subject["apiGroup"].as_str().unwrap_or_default().is_empty();
        if !named && matches!(subject["kind"].as_str(), Some("User" | "Group")) {
            subject["apiGroup"] = Value::from(GROUP);
        }
    }
}

fn policies(plural: &str, object: &mut Value) {
    let spec = sub(object, "spec");
    let constraints = if plural.ends_with("policies") {
        put(spec, "failurePolicy", "Fail");
        "matchConstraints"
    } else {
        "matchResources"
    };
    let Some(constraints) = spec.get_mut(constraints).filter(|found| found.is_object()) else { return };
    put(constraints, "matchPolicy", "Equivalent");
    put(constraints, "namespaceSelector", Map::new());
    put(constraints, "objectSelector", Map::new());
    for field in ["resourceRules", "excludeResourceRules"] {
        for rule in each(constraints, field) {
            put(rule, "scope", "*");
        }
    }
}

fn webhooks(object: &mut Value, mutating: bool) {
    for hook in each(object, "webhooks") {
        put(hook, "failurePolicy", "Fail");
        put(hook, "matchPolicy", "Equivalent");
        put(hook, "namespaceSelector", Map::new());
        put(hook, "objectSelector", Map::new());
        put(hook, "timeoutSeconds", 10);
        if mutating {
            put(hook, "reinvocationPolicy", "Never");
        }
        if hook["clientConfig"]["service"].is_object() {
            put(&mut hook["clientConfig"]["service"], "port", 443);
        }
        for rule in each(hook, "rules") {
            put(rule, "scope", "*");
        }
    }
}
