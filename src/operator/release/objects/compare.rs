//! Checks whether a live object already says everything an object of the release wants, so that nothing need
//! be written. In doubt it says no: the write that follows then changes nothing on the server. Pure.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use opdev_client::OWN_MANAGER;
use opdev_event::reconcile::object_change::managers_of;
use opdev_object::diff::{Change, diff};
use opdev_object::path::{Path, Segment};
use serde_json::{Map, Value};

/// Returns true if every field of `wanted` has its value in `live`. Lists must have the same items in the
/// same order.
pub fn covers(live: &Value, wanted: &Value) -> bool {
    match (live, wanted) {
        (_, Value::Null) => live.is_null(),
        (Value::Object(live), Value::Object(wanted)) => wanted.iter().all(|(name, wanted)| {
            live.get(name).map_or_else(|| is_empty(wanted), |live| covers(live, wanted))
        }),
        (Value::Array(live), Value::Array(wanted)) => {
            live.len() == wanted.len() && live.iter().zip(wanted).all(|(live, wanted)| covers(live, wanted))
        }
        (Value::Number(live), Value::Number(wanted)) => live == wanted || live.as_f64() == wanted.as_f64(),
        (live, wanted) => live == wanted,
    }
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Object(fields) => fields.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}

/// Brings an object to the form in which the API server would store it: without nulls (which mean nothing
/// outside custom resources) and with the text of a Secret as data. Only for comparing with what is stored.
/// What the API server would refuse stays as it is, so that it is sent and refused.
pub fn normalize(object: &mut Value) {
    let group = object
        .get("apiVersion")
        .and_then(Value::as_str)
        .and_then(|v| v.split_once('/'))
        .map_or("", |(g, _)| g);
    if !group.contains('.') || group.ends_with(".k8s.io") {
        drop_nulls(object);
    }
    text_to_data(object);
}

/// Returns true if `normalize` would leave an object as it is.
pub(crate) fn is_normal(object: &Value) -> bool {
    fn has_null(value: &Value) -> bool {
        match value {
            Value::Null => true,
            Value::Object(fields) => fields.values().any(has_null),
            Value::Array(items) => items.iter().any(has_null),
            Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
        }
    }
    object.get("stringData").is_none() && !has_null(object)
}

/// Puts the text of a Secret into its data, as the API server does. A Secret that it would refuse stays as it
/// is.
fn text_to_data(object: &mut Value) {
    let Some(fields) = object.as_object_mut() else { return };
    let is_secret = fields.get("kind").and_then(Value::as_str) == Some("Secret")
        && fields.get("apiVersion").and_then(Value::as_str) == Some("v1");
    let fits = |field: &str| match fields.get(field) {
        None | Some(Value::Null) => true,
        Some(Value::Object(map)) => map.values().all(|value| value.is_string() || value.is_null()),
        Some(_) => false,
    };
    if !is_secret || !fits("stringData") || !fits("data") {
        return;
    }
    let Some(Value::Object(texts)) = fields.remove("stringData") else { return };
    let data = fields.entry("data").or_insert_with(|| Value::Object(Map::new()));
    if data.is_null() {
        *data = Value::Object(Map::new());
    }
    let Some(data) = data.as_object_mut() else { return };
    data.extend(texts.into_iter().map(|(key, text)| {
        let text = text.as_str().unwrap_or_default();
        (key, Value::from(STANDARD.encode(text)))
    }));
}

fn drop_nulls(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.retain(|_, value| !value.is_null());
            fields.values_mut().for_each(drop_nulls);
        }
        Value::Array(items) => items.iter_mut().for_each(drop_nulls),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// The changes of a write of `manager`: all differences but the API server's bookkeeping, the status, and the
/// writes of others since `before` was read.
pub(crate) fn changes(before: &Value, after: &Value, manager: &str) -> Vec<Change> {
    changes_to(before, after, manager, &Value::Null)
}

/// Changes of a write whose object is known. An apply of `stringData` owns the text, not the `data` that the
/// API server makes of it: there the value itself tells whose it is.
pub(crate) fn changes_to(before: &Value, after: &Value, manager: &str, wanted: &Value) -> Vec<Change> {
    let is_ours = |change: &Change| {
        if let [Segment::Field(data), Segment::Field(key)] = change.path.0.as_slice()
            && data == "data"
            && wanted["kind"] == "Secret"
            && change.new.is_some()
            && change.new.as_ref() == wanted["data"].get(key)
        {
            return true;
        }
        let owners = if change.new.is_some() { managers_of(after, &change.path, "") } else { Vec::new() };
        // A default of the API server has no owner; what is replaced as a whole is OWN_MANAGER's.
        owners.is_empty() || owners.iter().any(|owner| owner == manager || owner == OWN_MANAGER)
    };
    let all = diff(before, after).into_iter();
    all.filter(|change| !is_bookkeeping(&change.path) && is_ours(change)).collect()
}

fn is_bookkeeping(path: &Path) -> bool {
    let field = |at: usize| match path.0.get(at) {
        Some(Segment::Field(name)) => name.as_str(),
        _ => "",
    };
    match field(0) {
        "status" => true,
        "metadata" => matches!(
            field(1),
            "resourceVersion" | "generation" | "managedFields" | "uid" | "creationTimestamp"
        ),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn defaults_of_the_server_do_not_matter_but_wanted_fields_do() {
        let wanted =
            json!({"spec": {"replicas": 3, "args": ["a"], "emptyMap": {}, "containers": [{"name": "x"}]}});
        let live = json!({"spec": {"replicas": 3.0, "args": ["a"], "extra": 1, "containers": [
            {"name": "x", "imagePullPolicy": "Always"}]}, "status": {}});
        assert!(covers(&live, &wanted));
        for (pointer, value) in [
            ("/spec/replicas", json!(5)),
            ("/spec/args", json!(["a", "b"])),
            ("/spec/containers/0/name", json!("y")),
            ("/spec/containers", json!([])),
        ] {
            let mut other = live.clone();
            *other.pointer_mut(pointer).unwrap() = value;
            assert!(!covers(&other, &wanted), "{pointer}");
        }
    }

    #[test]
    fn secrets_compare_as_data_and_nulls_vanish_from_built_in_kinds() {
        let mut secret =
            json!({"apiVersion": "v1", "kind": "Secret", "stringData": {"a": "hello"}, "x": {"y": null}});
        normalize(&mut secret);
        assert_eq!(secret, json!({"apiVersion": "v1", "kind": "Secret", "data": {"a": "aGVsbG8="}, "x": {}}));
        for refused in [
            json!({"stringData": {"a": "x", "port": 5432}}),
            json!({"stringData": "text"}),
            json!({"stringData": ["a"], "data": {"a": "aGVsbG8="}}),
            json!({"stringData": {"a": "x"}, "data": "oops"}),
            json!({"stringData": {"a": "x"}, "data": []}),
            json!({"stringData": {"a": "x"}, "data": 3}),
            json!({"stringData": {"a": "x"}, "data": {"b": 3}}),
        ] {
            let mut object = json!({"apiVersion": "v1", "kind": "Secret"});
            object.as_object_mut().unwrap().extend(refused.as_object().unwrap().clone());
            let before = object.clone();
            normalize(&mut object);
            assert_eq!(object, before, "what the API server refuses is sent as it is");
        }
        let mut custom = json!({"apiVersion": "my.domain/v1", "spec": {"y": null}});
        let before = custom.clone();
        normalize(&mut custom);
        assert_eq!(custom, before);
    }

    #[test]
    fn bookkeeping_is_no_change() {
        let before = json!({"metadata": {"resourceVersion": "1", "generation": 1}, "spec": {"replicas": 5}, "status": {"a": 1}});
        let after = json!({"metadata": {"resourceVersion": "2", "generation": 2}, "spec": {"replicas": 3}, "status": {"a": 2}});
        let paths: Vec<String> =
            changes(&before, &after, "helm").iter().map(|c| c.path.to_string()).collect();
        assert_eq!(paths, [".spec.replicas"]);
    }

    /// The deployment controller writes its annotation between a reconcile's read and its write.
    #[test]
    fn what_others_wrote_meanwhile_is_not_told_as_ours() {
        let owned = |manager: &str, fields: Value| json!({"manager": manager, "fieldsV1": fields});
        let mut before = json!({"metadata": {}, "spec": {"replicas": 5, "paused": true}});
        let mut after = json!({
            "metadata": {"annotations": {"deployment.kubernetes.io/revision": "1"}},
            "spec": {"replicas": 3, "strategy": "default"},
        });
        let helm = owned("helm", json!({"f:spec": {"f:replicas": {}}}));
        before["metadata"]["managedFields"] = json!([helm]);
        let controller = owned(
            "kube-controller-manager",
            json!({"f:metadata": {"f:annotations": {".": {}, "f:deployment.kubernetes.io/revision": {}}}}),
        );
        after["metadata"]["managedFields"] = json!([helm, controller]);
        let paths = |manager: &str| -> Vec<String> {
            changes(&before, &after, manager).iter().map(|change| change.path.to_string()).collect()
        };
        assert_eq!(paths("helm"), [".spec.paused", ".spec.replicas", ".spec.strategy"]);
        assert_eq!(paths("opdev/web"), [".spec.paused", ".spec.strategy"]);
    }
}
