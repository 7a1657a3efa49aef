//! Pods as their controllers see them: active, ready, available, and made from a template.
//! Never writes; the kubelet's part of a pod's life is in `kubelet`.

use super::conditions;
use super::fields::{
    controller_reference, count, deleting, list, map_copy, put, reference, seconds_between, text, time,
};
use crate::contract::{Note, NoteKind, Write};
use jiff::Timestamp;
use opdev_object::meta;
use serde_json::{Map, Value, json};

/// `status.phase`, `Pending` where it is missing.
pub(crate) fn phase(pod: &Value) -> &str {
    match text(pod, "/status/phase") {
        "" => "Pending",
        phase => phase,
    }
}

/// Returns true if it has ended, well or not.
pub(crate) fn finished(pod: &Value) -> bool {
    matches!(phase(pod), "Succeeded" | "Failed")
}

/// Neither ended nor being deleted.
pub(crate) fn active(pod: &Value) -> bool {
    !finished(pod) && !deleting(pod)
}

/// Returns true if the Ready condition is true.
pub fn ready(pod: &Value) -> bool {
    conditions::is_true(pod, "Ready")
}

/// Since when the Ready condition is true.
pub(crate) fn ready_since(pod: &Value) -> Option<Timestamp> {
    list(pod, "/status/conditions")
        .iter()
        .find(|c| text(c, "/type") == "Ready" && text(c, "/status") == "True")
        .and_then(|condition| time(condition, "/lastTransitionTime"))
}

/// Ready for at least this many seconds.
pub(crate) fn available(pod: &Value, min_ready_seconds: i64, now: Timestamp) -> bool {
    if !ready(pod) {
        return false;
    }
    min_ready_seconds == 0
        || ready_since(pod).is_some_and(|since| seconds_between(since, now) >= min_ready_seconds)
}

/// Restarts of all containers.
pub(crate) fn restarts(pod: &Value) -> i64 {
    list(pod, "/status/containerStatuses").iter().map(|status| count(status, "/restartCount")).sum()
}

/// A pod of an owner from its template; the caller sets `name` or leaves `generateName`.
pub(crate) fn from_template(owner: &Value, template: &Value) -> Value {
    let mut metadata = Map::new();
    metadata.insert("generateName".into(), format!("{}-", prefix(super::fields::name(owner))).into());
    if let Some(namespace) = meta::namespace(owner) {
        metadata.insert("namespace".into(), namespace.into());
    }
    for field in ["labels", "annotations"] {
        let copy = map_copy(template, &format!("/metadata/{field}"));
        if !copy.is_empty() {
            metadata.insert(field.into(), copy.into());
        }
    }
    if let Some(finalizers) = template.pointer("/metadata/finalizers") {
        metadata.insert("finalizers".into(), finalizers.clone());
    }
    metadata.insert("ownerReferences".into(), json!([controller_reference(owner)]));
    let spec = template.get("spec").cloned().unwrap_or_else(|| json!({}));
    json!({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec})
}

/// A name cut so that a generated suffix still fits.
fn prefix(name: &str) -> &str {
    let end = name.char_indices().map(|(at, c)| at + c.len_utf8()).take_while(|end| *end <= 57).last();
    name.get(..end.unwrap_or(0)).unwrap_or(name)
}

/// Creates a pod and says so in an Event of its owner.
pub(crate) fn create(owner: &Value, pod: Value) -> [Write; 2] {
    [
        Write::Create { resource: "pods".into(), object: pod },
        note(owner, NoteKind::Normal, "SuccessfulCreate", "Created pod: {name}"),
    ]
}

/// Deletes a pod and says so in an Event of its owner.
pub(crate) fn delete(owner: &Value, pod: &Value) -> [Write; 2] {
    let message = format!("Deleted pod: {}", super::fields::name(pod));
    [remove(pod, None), note(owner, NoteKind::Normal, "SuccessfulDelete", &message)]
}

/// Deletes a pod by uid.
pub(crate) fn remove(pod: &Value, grace: Option<i64>) -> Write {
    Write::Delete {
        resource: "pods".into(),
        namespace: meta::namespace(pod).map(str::to_owned),
        name: super::fields::name(pod).to_owned(),
        uid: meta::uid(pod).map(str::to_owned),
        propagation: None,
        grace,
    }
}

/// An Event about an object.
pub(crate) fn note(object: &Value, kind: NoteKind, reason: &str, message: &str) -> Write {
    Write::Record(Note {
        regarding: reference(object),
        kind,
        reason: reason.to_owned(),
        message: message.to_owned(),
        component: None,
        host: None,
    })
}

/// Sets an environment variable of every container unless it is there.
pub(crate) fn add_environment(pod: &mut Value, variable: &Value) {
    for kind in ["/spec/initContainers", "/spec/containers"] {
        let Some(Value::Array(containers)) = pod.pointer_mut(kind) else { continue };
        for container in containers {
            let mut environment = list(container, "/env").to_vec();
            if environment.iter().all(|entry| text(entry, "/name") != text(variable, "/name")) {
                environment.push(variable.clone());
                put(container, "/env", environment.into());
            }
        }
    }
}
