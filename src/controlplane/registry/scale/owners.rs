//! Owners of the number of replicas, seen from the object and from its Scale: `metadata.managedFields` of the
//! one as those of the other. The rules are those of Kubernetes' scale handler (apimachinery's
//! `managedfields`), compared by requests.

use opdev_object::apply::compact;
use serde_json::{Map, Value, json};

/// Names from the top of an object down to its replicas.
type Path<'a> = [&'a str];

fn step<'a>(fields: &'a Value, name: &str) -> Option<&'a Value> {
    fields.get(format!("f:{name}"))
}

fn owns(entry: &Value, path: &Path<'_>) -> bool {
    path.iter().try_fold(&entry["fieldsV1"], |fields, name| step(fields, name)).is_some()
}

fn only(path: &Path<'_>) -> Value {
    path.iter().rev().fold(json!({}), |inner, name| {
        let mut map = Map::new();
        map.insert(format!("f:{name}"), inner);
        Value::Object(map)
    })
}

/// Takes the path away, with what it leaves empty.
fn disown(fields: &mut Value, path: &Path<'_>) {
    let (Some((first, rest)), Some(map)) = (path.split_first(), fields.as_object_mut()) else { return };
    let key = format!("f:{first}");
    if let Some(inner) = map.get_mut(&key) {
        disown(inner, rest);
        if rest.is_empty() || inner.as_object().is_some_and(Map::is_empty) {
            map.remove(&key);
        }
    }
}

/// Returns true if two entries are of the same manager: whoever applies is the same in every version.
fn same_manager(a: &Value, b: &Value) -> bool {
    let equal = |field: &str| a[field] == b[field];
    let applies = a["operation"] == "Apply";
    ["manager", "operation", "subresource"].into_iter().all(equal) && (applies || equal("apiVersion"))
}

/// The entries of an object: of two of the same manager the later one counts.
fn entries(object: &Value) -> Vec<Value> {
    let all = object["metadata"]["managedFields"].as_array().map_or(&[][..], Vec::as_slice);
    let last = |i: usize, entry: &Value| !all[i + 1..].iter().any(|later| same_manager(later, entry));
    all.iter().enumerate().filter(|(i, entry)| last(*i, entry)).map(|(_, entry)| expanded(entry)).collect()
}

fn expanded(entry: &Value) -> Value {
    let mut entry = entry.clone();
    compact::expand_entry(&mut entry);
    entry
}

/// The entries of a Scale: whoever owns the replicas of the object.
pub(super) fn of_scale(object: &Value, path: &Path<'_>) -> Vec<Value> {
    let owners = entries(object).into_iter().filter(|entry| owns(entry, path));
    let scaled = |mut entry: Value| {
        entry["apiVersion"] = Value::from("autoscaling/v1");
        entry["fieldsV1"] = only(&["spec", "replicas"]);
        entry
    };
    owners.map(scaled).collect()
}

/// The entries of the object once its Scale was written by an update or a patch: whoever changes the number
/// owns it alone, and nobody owns none. Where nobody owned it, nobody will.
pub(super) fn of_written(
    object: &Value,
    (before, after): (i64, i64),
    manager: &str,
    path: &Path<'_>,
    api_version: &str,
) -> Vec<Value> {
    let mut owners = of_scale(object, path);
    if before != after && !owners.is_empty() {
        owners.clear();
        if after != 0 {
            owners.push(json!({"manager": manager, "operation": "Update", "apiVersion": "autoscaling/v1",
                "fieldsType": "FieldsV1", "fieldsV1": only(&["spec", "replicas"]), "subresource": "scale"}));
        }
    }
    of_object(object, &json!({"metadata": {"managedFields": owners}}), path, api_version)
}

/// The entries of the object, once its Scale has those of `scale`.
pub(super) fn of_object(object: &Value, scale: &Value, path: &Path<'_>, api_version: &str) -> Vec<Value> {
    let scaled = entries(scale);
    let mut kept: Vec<Value> = Vec::new();
    for mut entry in entries(object) {
        if owns(&entry, path) && !scaled.iter().any(|other| same_manager(other, &entry)) {
            disown(&mut entry["fieldsV1"], path);
            if entry["fieldsV1"].as_object().is_none_or(Map::is_empty) {
                continue;
            }
        }
        kept.push(entry);
    }
    // They come first, for they have no time: of two entries that end as the same manager's, the next write
    // keeps the second.
    let fresh = scaled
        .into_iter()
        .filter(|entry| {
            owns(entry, &["spec", "replicas"]) && !kept.iter().any(|own| same_manager(own, entry))
        })
        .map(|mut entry| {
            entry.as_object_mut().into_iter().for_each(|map| _ = map.remove("time"));
            entry["apiVersion"] = Value::from(api_version);
            entry["fieldsV1"] = only(path);
            entry
        });
    let mut all: Vec<Value> = fresh.chain(kept.iter().cloned()).collect();
    // Those of applies stand before the others.
    all.sort_by_key(|entry| entry["operation"] != "Apply");
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(manager: &str, operation: &str, subresource: Option<&str>, fields: &Value) -> Value {
        let mut entry = json!({"manager": manager, "operation": operation, "apiVersion": "apps/v1",
            "fieldsType": "FieldsV1", "fieldsV1": fields});
        if let Some(subresource) = subresource {
            entry["subresource"] = Value::from(subresource);
        }
        entry
    }

    fn object(entries: &[Value]) -> Value {
        json!({"metadata": {"managedFields": entries}})
    }

    /// As the real server (1.36) has it after `apply` of a Scale to a Deployment that somebody else made.
    #[test]
    fn replicas_change_hands_between_an_object_and_its_scale() {
        let path = ["spec", "replicas"];
        let all = json!({"f:spec": {"f:paused": {}, "f:replicas": {}}});
        let parent = object(&[entry("six", "Apply", None, &all)]);
        let mut scale = of_scale(&parent, &path);
        assert_eq!(scale[0]["apiVersion"], "autoscaling/v1");

        // Another one says the same: both own it.
        let seven = entry("seven", "Apply", Some("scale"), &only(&path));
        scale.push(seven.clone());
        let both = of_object(&parent, &object(&scale), &path, "apps/v1");
        assert_eq!(both, [seven.clone(), entry("six", "Apply", None, &all)]);

        // Whoever changes the number with an update is another one than whoever has the rest, even by the
        // same name.
        let own = object(&[entry("six", "Update", None, &all)]);
        let rest = entry("six", "Update", None, &json!({"f:spec": {"f:paused": {}}}));
        let same = of_written(&own, (2, 2), "eight", &path, "apps/v1");
        assert_eq!(same, [entry("six", "Update", None, &only(&path)), rest.clone()]);
        // One manager may have two entries: the later one counts from then on.
        assert_eq!(of_scale(&object(&same), &path), Vec::<Value>::new());
        let eight = entry("eight", "Update", Some("scale"), &only(&path));
        assert_eq!(of_written(&own, (2, 3), "eight", &path, "apps/v1"), [eight, rest.clone()]);
        assert_eq!(of_written(&own, (2, 0), "eight", &path, "apps/v1"), [rest]);

        // By force it is that one's alone.
        let taken = of_object(&parent, &object(std::slice::from_ref(&seven)), &path, "apps/v1");
        assert_eq!(taken, [seven, entry("six", "Apply", None, &json!({"f:spec": {"f:paused": {}}}))]);
    }
}
