//! A state with a past for tests: an object written by three managers, one that does not go, one that has
//! gone.

use super::fixture::{at, events, gone, logged, object, of, reference, seen_at};
use opdev_event::{Event, Level};
use opdev_state::State;
use serde_json::{Value, json};

fn memcached(replicas: u64, ready: Option<(&str, &str, &str)>, managers: &Value) -> Value {
    let mut conditions =
        vec![json!({"type": "Initialized", "status": "True", "lastTransitionTime": "2026-03-01T17:00:02Z"})];
    conditions.extend(ready.map(|(status, reason, message)| {
        json!({"type": "Deployed", "status": status, "reason": reason, "message": message})
    }));
    object(
        "Memcached",
        "memcached-sample",
        None,
        "17:00:02",
        &json!({"metadata": {"finalizers": ["helm.sdk.operatorframework.io/uninstall-release"],
                "labels": {"app": "cache"}, "managedFields": managers, "resourceVersion": replicas.to_string()},
            "spec": {"replicaCount": replicas, "image": {"tag": "1.6.22"}}, "status": {"conditions": conditions}}),
    )
}

fn manager(name: &str, operation: &str, subresource: &str, time: &str, fields: &Value) -> Value {
    let mut entry = json!({"manager": name, "operation": operation, "fieldsType": "FieldsV1",
        "time": format!("2026-03-01T{time}Z"), "fieldsV1": fields});
    if !subresource.is_empty() {
        entry["subresource"] = json!(subresource);
    }
    entry
}

/// The versions of the custom resource: created, scaled by kubectl, deployed, scaled again.
fn versions() -> Vec<Event> {
    let created = manager(
        "opdev",
        "Apply",
        "",
        "17:00:02",
        &json!({
        "f:metadata": {"f:labels": {"f:app": {}}}, "f:spec": {"f:image": {"f:tag": {}}, "f:replicaCount": {}}}),
    );
    let scaled =
        |time: &str| manager("kubectl-edit", "Update", "", time, &json!({"f:spec": {"f:replicaCount": {}}}));
    let status = |time: &str| {
        manager(
            "opdev",
            "Update",
            "status",
            time,
            &json!({"f:status": {"f:conditions": {".": {},
            "k:{\"type\":\"Deployed\"}": {".": {}, "f:type": {}, "f:status": {}, "f:reason": {}, "f:message": {}}}}}),
        )
    };
    let no = Some(("False", "Installing", "waits for 1 of 3 pods"));
    let yes = Some(("True", "UpgradeSuccessful", ""));
    [
        ("17:00:02", memcached(1, None, &json!([created]))),
        ("17:00:03", memcached(1, no, &json!([created, status("17:00:03")]))),
        ("17:00:40", memcached(1, Some(("Unknown", "Timeout", "")), &json!([created, status("17:00:40")]))),
        ("17:01:40", memcached(3, yes, &json!([created, scaled("17:01:40"), status("17:00:40")]))),
        ("17:02:11", memcached(3, no, &json!([created, scaled("17:01:40"), status("17:02:11")]))),
        ("17:02:12", memcached(3, yes, &json!([created, scaled("17:01:40"), status("17:02:12")]))),
    ]
    .into_iter()
    .map(|(time, object)| seen_at(time, object))
    .collect()
}

/// All of it on top of the busy state.
pub(crate) fn past() -> State {
    // The versions of the custom resource stand where its only one stood, so that time goes on.
    let is_sample = |event: &Event| matches!(event, Event::ObjectSeen(seen) if seen.object_ref == reference("Memcached", "memcached-sample"));
    let mut all = events();
    let place = all.iter().position(is_sample).unwrap();
    all.splice(place..=place, versions());
    all.push(gone("17:02:05", "Pod", "memcached-sample-6fd7c98d8-m7vn7"));
    let leaving = object(
        "MemcachedBackup",
        "nightly",
        None,
        "17:00:08",
        &json!({"metadata": {
        "deletionTimestamp": "2026-03-01T17:01:00Z", "finalizers":
            ["helm.sdk.operatorframework.io/uninstall-release", "foregroundDeletion", "example.com/lock"],
        "managedFields": [manager("locksmith", "Update", "", "17:00:30",
            &json!({"f:metadata": {"f:finalizers": {"v:\"example.com/lock\"": {}}}}))]}}),
    );
    all.push(seen_at("17:02:12", leaving));
    for (id, text) in [
        (3, "drift of Deployment memcached-sample put back"),
        (4, "waits for the rollout"),
        (4, "rolled out"),
    ] {
        all.push(logged(Level::Info, text, Some(id)));
    }
    let mut state = of(all);
    state.latest = Some(at("17:02:13"));
    state
}
