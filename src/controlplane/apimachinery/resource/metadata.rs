//! `metadata` of every object: what the server stamps, what it keeps, what it refuses.
//! Never looks at spec or status.

use crate::error::{Cause, Status};
use crate::random;
use crate::resource::{MetadataChecks, MetadataOrder, Resource, names};
use jiff::Timestamp;
use serde_json::{Map, Value};

/// Characters of generated names: no vowels, no look-alikes.
const ALPHABET: &[u8; 27] = b"bcdfghjklmnpqrstvwxz2456789";
const GENERATED_LENGTH: usize = 5;
const LONGEST_GENERATED_BASE: usize = 63 - GENERATED_LENGTH;
const ANNOTATIONS_LIMIT: usize = 256 * 1024;

/// `metadata` for changing; made where it is missing or no object.
pub fn map_mut(object: &mut Value) -> &mut Map<String, Value> {
    if !object.is_object() {
        *object = Value::Object(Map::new());
    }
    let meta = &mut object["metadata"];
    if !meta.is_object() {
        *meta = Value::Object(Map::new());
    }
    meta.as_object_mut().expect("made an object above")
}

/// A text field of `metadata`, `""` where it is missing.
pub fn text<'a>(object: &'a Value, field: &str) -> &'a str {
    object["metadata"][field].as_str().unwrap_or_default()
}

/// A time as `metav1.Time` prints it: whole seconds.
pub fn seconds(now: Timestamp) -> String {
    now.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// A name from `generateName`.
pub fn generate_name(base: &str) -> String {
    let mut end = base.len().min(LONGEST_GENERATED_BASE);
    while !base.is_char_boundary(end) {
        end -= 1;
    }
    let mut name = base[..end].to_owned();
    let bytes: [u8; GENERATED_LENGTH] = random::bytes();
    name.extend(bytes.iter().map(|byte| char::from(ALPHABET[usize::from(*byte) % ALPHABET.len()])));
    name
}

/// Makes the object's namespace that of the request; refuses another one. The one rule for every verb.
pub fn set_namespace(resource: &Resource, object: &mut Value, namespace: &str) -> Result<(), Status> {
    check_namespace(resource, object, namespace)?;
    let meta = map_mut(object);
    if !resource.namespaced {
        meta.remove("namespace");
    } else if meta.get("namespace").and_then(Value::as_str).unwrap_or_default().is_empty() {
        meta.insert("namespace".to_owned(), Value::from(namespace));
    }
    Ok(())
}

/// Refuses an object of another namespace. A cluster-scoped object may name one: it is taken away.
pub fn check_namespace(resource: &Resource, object: &Value, namespace: &str) -> Result<(), Status> {
    let said = text(object, "namespace");
    if !resource.namespaced || said.is_empty() || said == namespace {
        return Ok(());
    }
    Err(Status::bad_request(
        "the namespace of the provided object does not match the namespace sent on the request",
    ))
}

/// Takes away what only the server says of an object that is to be created.
pub fn remove_server_fields(object: &mut Value) {
    let meta = map_mut(object);
    for field in ["uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "selfLink"] {
        meta.remove(field);
    }
}

/// Sets uid and creation time, as a create does, and removes the fields that a request must not set.
pub fn stamp(object: &mut Value, now: Timestamp) {
    let meta = map_mut(object);
    for field in
        ["deletionTimestamp", "deletionGracePeriodSeconds", "selfLink", "resourceVersion", "generation"]
    {
        meta.remove(field);
    }
    meta.insert("uid".to_owned(), Value::from(random::uuid()));
    meta.insert("creationTimestamp".to_owned(), Value::from(seconds(now)));
}

/// The creation time of what is answered and never kept.
pub fn stamp_time(object: &mut Value, now: Timestamp) {
    map_mut(object).insert("creationTimestamp".to_owned(), Value::from(seconds(now)));
}

/// Restores the metadata that an update cannot change from the current object.
pub fn keep(object: &mut Value, current: &Value) {
    let meta = map_mut(object);
    let old = &current["metadata"];
    for field in [
        "uid",
        "creationTimestamp",
        "deletionTimestamp",
        "deletionGracePeriodSeconds",
        "generation",
        "resourceVersion",
    ] {
        match (old.get(field), meta.get_mut(field)) {
            (Some(value), Some(kept)) if kept == value => {}
            (Some(value), Some(other)) => other.clone_from(value),
            (Some(value), None) => _ = meta.insert(field.to_owned(), value.clone()),
            (None, _) => _ = meta.remove(field),
        }
    }
    meta.remove("selfLink");
    for field in ["name", "namespace"] {
        let given = meta.get(field).and_then(Value::as_str).is_some_and(|text| !text.is_empty());
        if let Some(value) = old.get(field).filter(|_| !given) {
            meta.insert(field.to_owned(), value.clone());
        }
    }
}

/// Errors of the metadata of an object that is to be created.
pub fn validate(resource: &Resource, object: &Value) -> Vec<Cause> {
    let mut causes = Vec::new();
    let name = text(object, "name");
    let base = text(object, "generateName");
    if !base.is_empty() {
        // The base may end in what a whole name may not end in.
        let probe = format!("{}a", base.trim_end_matches(['-', '.']));
        for wrong in (resource.rules.validate_name)(&probe) {
            causes.push(Cause::invalid("metadata.generateName", &Value::from(base), &wrong));
        }
    }
    if name.is_empty() {
        causes.push(Cause::required("metadata.name", "name or generateName is required"));
    } else {
        for wrong in (resource.rules.validate_name)(name) {
            causes.push(Cause::invalid("metadata.name", &Value::from(name), &wrong));
        }
    }
    validate_fields(object, &mut causes);
    finalizer_names(object, &mut causes);
    own_finalizers(resource, object, &mut causes);
    causes
}

/// The error of the metadata of an object that replaces `current`: first the causes that are reported before
/// all others, then those that are reported between the others. `moved` is reported with each validation of
/// the change.
pub fn validate_update(
    resource: &Resource,
    object: &Value,
    current: &Value,
    moved: Option<&Cause>,
) -> (Vec<Cause>, Vec<Cause>) {
    let MetadataChecks { changes, wholes, order } = resource.rules.metadata_checks;
    let (mut fields, mut whole, mut own) = (Vec::new(), Vec::new(), Vec::new());
    validate_fields(object, &mut fields);
    whole.extend(fields.iter().cloned());
    finalizer_names(object, &mut whole);
    own_finalizers(resource, object, &mut own);
    let mut change: Vec<Cause> = late_finalizers(object, current).into_iter().chain(moved.cloned()).collect();
    change.extend(fields);
    // The checks that all kinds share.
    let mut before = whole.clone();
    before.extend(change.iter().cloned());
    if changes > 1 {
        change.extend(own.iter().cloned());
    } else {
        change.clear();
    }
    if wholes > 1 {
        whole.extend(own);
    } else {
        whole.clear();
    }
    match order {
        MetadataOrder::WholeFirst => {
            before.extend(whole);
            (before, change)
        }
        MetadataOrder::WholeLater => {
            before.extend(change);
            (before, whole)
        }
        MetadataOrder::ChangesFirst => {
            before.extend(change);
            before.extend(whole);
            (before, Vec::new())
        }
    }
}

/// Refuses a patch that makes another object of it. A whole object with another uid is refused before.
pub fn uid_change(object: &Value, current: &Value) -> Option<Cause> {
    let uid = text(object, "uid");
    let same = uid.is_empty() || uid == text(current, "uid");
    (!same).then(|| Cause::invalid("metadata.uid", &Value::from(uid), "field is immutable"))
}

/// Refuses finalizers that come when the object is going already.
fn late_finalizers(object: &Value, current: &Value) -> Option<Cause> {
    current["metadata"].get("deletionTimestamp")?;
    let known = finalizers(current);
    let added: Vec<String> = finalizers(object)
        .into_iter()
        .filter(|name| !known.contains(name))
        .map(|name| format!("{name:?}"))
        .collect();
    let detail = format!(
        "no new finalizers can be added if the object is being deleted, found new finalizers []string{{{}}}",
        added.join(", ")
    );
    (!added.is_empty()).then(|| Cause::forbidden("metadata.finalizers", &detail))
}

fn finalizers(object: &Value) -> Vec<&str> {
    opdev_object::meta::finalizers(object)
}

fn validate_fields(object: &Value, causes: &mut Vec<Cause>) {
    let meta = &object["metadata"];
    for (key, value) in meta["labels"].as_object().into_iter().flatten() {
        for wrong in names::qualified_name(key) {
            causes.push(Cause::invalid("metadata.labels", &Value::from(key.as_str()), &wrong));
        }
        for wrong in names::label_value(value.as_str().unwrap_or_default()) {
            causes.push(Cause::invalid("metadata.labels", value, &wrong));
        }
    }
    let mut size = 0;
    for (key, value) in meta["annotations"].as_object().into_iter().flatten() {
        size += key.len() + value.as_str().map_or(0, str::len);
        for wrong in names::qualified_name(&key.to_lowercase()) {
            causes.push(Cause::invalid("metadata.annotations", &Value::from(key.as_str()), &wrong));
        }
    }
    if size > ANNOTATIONS_LIMIT {
        causes.push(Cause::too_long("metadata.annotations", ANNOTATIONS_LIMIT));
    }
    validate_owners(meta, causes);
}

fn finalizer_names(object: &Value, causes: &mut Vec<Cause>) {
    let list = finalizers(object);
    for finalizer in &list {
        for wrong in names::qualified_name(finalizer) {
            causes.push(Cause::invalid("metadata.finalizers", &Value::from(*finalizer), &wrong));
        }
    }
    if list.contains(&"orphan") && list.contains(&"foregroundDeletion") {
        causes.push(Cause::invalid(
            "metadata.finalizers",
            &object["metadata"]["finalizers"],
            "finalizer orphan and foregroundDeletion cannot be both set",
        ));
    }
}

/// Refuses finalizers without a domain that are none of the server's own.
fn own_finalizers(resource: &Resource, object: &Value, causes: &mut Vec<Cause>) {
    if resource.custom.is_some() || resource.rules.any_finalizer {
        return;
    }
    for (i, finalizer) in finalizers(object).iter().enumerate() {
        if !finalizer.contains('/') && !["orphan", "foregroundDeletion", "kubernetes"].contains(finalizer) {
            let detail = "name is neither a standard finalizer name nor is it fully qualified";
            let field = format!("metadata.finalizers[{i}]");
            causes.push(Cause::invalid(field, &Value::from(*finalizer), detail));
        }
    }
}

fn validate_owners(meta: &Value, causes: &mut Vec<Cause>) {
    let mut controller: Option<&Value> = None;
    for owner in meta["ownerReferences"].as_array().into_iter().flatten() {
        for (field, detail) in [
            ("apiVersion", "version must not be empty"),
            ("kind", "must not be empty"),
            ("name", "must not be empty"),
            ("uid", "must not be empty"),
        ] {
            if owner[field].as_str().unwrap_or_default().is_empty() {
                let place = format!("metadata.ownerReferences.{field}");
                causes.push(Cause::invalid(place, &Value::from(""), detail));
            }
        }
        if owner["controller"] == true {
            if let Some(first) = controller {
                let detail = format!(
                    "Only one reference can have Controller set to true. Found \"true\" in references for {} and {}",
                    first["name"].as_str().unwrap_or_default(),
                    owner["name"].as_str().unwrap_or_default()
                );
                causes.push(Cause::invalid("metadata.ownerReferences", &meta["ownerReferences"], &detail));
            }
            controller = Some(owner);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn generated_names() {
        let name = generate_name(&"x".repeat(80));
        assert_eq!(name.len(), 63);
        assert_ne!(generate_name("a-"), generate_name("a-"));
    }
}
