//! Fields that an update may not change, of kinds that have no other rule for updates. Read off a
//! kube-apiserver 1.36 by changing one field after the other (`handlers/tests/changes.jsonl`); the places and
//! words are its own.

use super::checks::{immutable, items};
use opdev_apimachinery::error::Cause;
use opdev_apimachinery::version::since;
use serde_json::Value;
use std::collections::BTreeSet;

/// Refuses changes of fields, named by their dotted paths.
pub fn fields(paths: &[&str], object: &Value, current: &Value, causes: &mut Vec<Cause>) {
    for path in paths {
        let (new, old) = path.split('.').fold((object, current), |(new, old), name| (&new[name], &old[name]));
        unchanged(path, new, old, causes);
    }
}

/// Refuses a change. What is empty is as good as absent, as in Go.
fn unchanged(path: &str, new: &Value, old: &Value, causes: &mut Vec<Cause>) {
    if !same(new, old) {
        immutable(path, new, old, causes);
    }
}

fn same(new: &Value, old: &Value) -> bool {
    match (new, old) {
        (Value::Object(a), Value::Object(b)) => {
            a.keys().chain(b.keys()).all(|key| same(&new[key], &old[key]))
        }
        (Value::Array(a), Value::Array(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(new, old)| same(new, old))
        }
        _ => new == old || (is_empty(new) && is_empty(old)),
    }
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(list) => list.is_empty(),
        Value::Object(fields) => fields.values().all(is_empty),
        _ => false,
    }
}

/// The source of a volume and its mode do not change.
pub fn volume(object: &Value, current: &Value, causes: &mut Vec<Cause>) {
    // Everything else in the spec is the source.
    const OTHERS: [&str; 9] = [
        "capacity",
        "accessModes",
        "claimRef",
        "persistentVolumeReclaimPolicy",
        "storageClassName",
        "mountOptions",
        "volumeMode",
        "nodeAffinity",
        "volumeAttributesClassName",
    ];
    let source = |object: &Value| {
        let mut spec = object["spec"].clone();
        if let Some(fields) = spec.as_object_mut() {
            fields.retain(|name, _| !OTHERS.contains(&name.as_str()));
        }
        spec
    };
    if !same(&source(object), &source(current)) {
        let detail = "spec.persistentvolumesource is immutable after creation";
        causes.push(Cause::forbidden("spec.persistentvolumesource", detail));
    }
    unchanged("volumeMode", &object["spec"]["volumeMode"], &current["spec"]["volumeMode"], causes);
}

/// How a driver's volumes are attached and live.
pub fn csi_driver(object: &Value, current: &Value, causes: &mut Vec<Cause>) {
    let (new, old) = (&object["spec"], &current["spec"]);
    unchanged("spec.attachedRequired", &new["attachRequired"], &old["attachRequired"], causes);
    unchanged(
        "spec.volumeLifecycleModes",
        &new["volumeLifecycleModes"],
        &old["volumeLifecycleModes"],
        causes,
    );
}

/// A driver of a node is taken away and put there again, not changed; but for how much it has room for.
pub fn csi_node(object: &Value, current: &Value, causes: &mut Vec<Cause>) {
    let bare = |driver: &Value| {
        let mut driver = driver.clone();
        if let Some(fields) = driver.as_object_mut() {
            fields.remove("allocatable");
        }
        driver
    };
    for old in items(&current["spec"]["drivers"]) {
        let new = items(&object["spec"]["drivers"]).iter().find(|new| new["name"] == old["name"]);
        if let Some(new) = new {
            unchanged("spec.drivers", &bare(new), &bare(old), causes);
        }
    }
}

/// The driver and the parameters of a class of volume attributes do not change.
pub fn attributes_class(object: &Value, current: &Value, causes: &mut Vec<Cause>) {
    for field in ["driverName", "parameters"] {
        if !same(&object[field], &current[field]) {
            causes.push(Cause::forbidden(field, &format!("updates to {field} are forbidden.")));
        }
    }
}

/// Where a node is, once that is known.
pub fn node(object: &Value, current: &Value, causes: &mut Vec<Cause>) {
    let mut once = |field: &str, word: &str, place: &str| {
        let (new, old) = (&object["spec"][field], &current["spec"][field]);
        if !is_empty(old) && old != "" && !same(new, old) {
            let detail = match field {
                "providerID" if since(37) => "field cannot be modified once set".to_owned(),
                _ => format!("node updates may not change {word} except from \"\" to valid"),
            };
            causes.push(Cause::forbidden(place, &detail));
        }
    };
    once("podCIDRs", "podCIDR", "spec.podCIDRs");
    once("providerID", "providerID", "spec.providerID");
}

/// The scopes of a quota do not change.
pub fn resource_quota(object: &Value, current: &Value, causes: &mut Vec<Cause>) {
    let scopes = |object: &Value| -> BTreeSet<String> {
        items(&object["spec"]["scopes"]).iter().filter_map(Value::as_str).map(str::to_owned).collect()
    };
    if scopes(object) != scopes(current) {
        causes.push(Cause::invalid("spec.scopes", &object["spec"]["scopes"], "field is immutable"));
    }
}

/// Ranges that addresses of services come from: one may be added, none changes or goes.
pub fn service_cidr(object: &Value, current: &Value, causes: &mut Vec<Cause>) {
    let (new, old) = (items(&object["spec"]["cidrs"]), items(&current["spec"]["cidrs"]));
    if new.len() < old.len() {
        return causes.push(Cause::invalid("spec.cidrs", &object["spec"]["cidrs"], "field is immutable"));
    }
    for (at, (new, old)) in new.iter().zip(old).enumerate() {
        unchanged(&format!("spec.cidrs[{at}]"), new, old, causes);
    }
}
