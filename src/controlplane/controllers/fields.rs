//! Reading and writing fields of untyped objects by JSON pointer, and times as Kubernetes writes them.
//! Never knows a kind.

use jiff::Timestamp;
use opdev_object::meta;
use serde_json::{Map, Value, json};

/// A string field, empty where it is missing.
pub fn text<'a>(object: &'a Value, pointer: &str) -> &'a str {
    object.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

/// An integer field.
pub(crate) fn int(object: &Value, pointer: &str) -> Option<i64> {
    object.pointer(pointer).and_then(|value| value.as_i64().or_else(|| value.as_f64().map(|f| f as i64)))
}

/// An integer field, 0 where it is missing.
pub fn count(object: &Value, pointer: &str) -> i64 {
    int(object, pointer).unwrap_or(0)
}

/// A boolean field, false where it is missing.
pub(crate) fn flag(object: &Value, pointer: &str) -> bool {
    object.pointer(pointer).and_then(Value::as_bool).unwrap_or(false)
}

/// A list field, empty where it is missing.
pub fn list<'a>(object: &'a Value, pointer: &str) -> &'a [Value] {
    object.pointer(pointer).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// A map field.
pub(crate) fn map<'a>(object: &'a Value, pointer: &str) -> Option<&'a Map<String, Value>> {
    object.pointer(pointer).and_then(Value::as_object)
}

/// A copy of a map field, empty where it is missing.
pub(crate) fn map_copy(object: &Value, pointer: &str) -> Map<String, Value> {
    map(object, pointer).cloned().unwrap_or_default()
}

/// Sets a field, making the maps on the way.
pub fn put(object: &mut Value, pointer: &str, value: Value) {
    let mut at = object;
    for step in pointer.trim_start_matches('/').split('/') {
        let step = step.replace("~1", "/").replace("~0", "~");
        if !at.is_object() {
            *at = Value::Object(Map::new());
        }
        let Value::Object(fields) = at else { return };
        at = fields.entry(step).or_insert(Value::Null);
    }
    *at = value;
}

/// Sets a count the way upstream's `omitempty` prints it: zero is left out.
pub(crate) fn put_count(status: &mut Map<String, Value>, field: &str, count: i64) {
    if count == 0 {
        status.remove(field);
    } else {
        status.insert(field.to_owned(), count.into());
    }
}

/// An annotation's key as a JSON pointer step.
pub(crate) fn step(key: &str) -> String {
    key.replace('~', "~0").replace('/', "~1")
}

/// A copy with another status, for `UpdateStatus`.
pub(crate) fn with_status(object: &Value, status: Map<String, Value>) -> Value {
    let mut copy = object.clone();
    put(&mut copy, "/status", Value::Object(status));
    copy
}

/// The status, empty where it is missing.
pub(crate) fn status(object: &Value) -> Map<String, Value> {
    map_copy(object, "/status")
}

/// A time with the precision of seconds, as `metav1.Time`.
pub(crate) fn stamp(now: Timestamp) -> String {
    now.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// A time with the precision of microseconds, as `metav1.MicroTime`.
pub(crate) fn micro_stamp(now: Timestamp) -> String {
    now.strftime("%Y-%m-%dT%H:%M:%S.%6fZ").to_string()
}

/// A time field.
pub(crate) fn time(object: &Value, pointer: &str) -> Option<Timestamp> {
    text(object, pointer).parse().ok()
}

/// Seconds from one time to another, negative when it lies before.
pub(crate) fn seconds_between(from: Timestamp, to: Timestamp) -> i64 {
    to.as_second() - from.as_second()
}

/// Returns true if the object is being deleted.
pub(crate) fn deleting(object: &Value) -> bool {
    meta::deletion_timestamp(object).is_some()
}

/// Name of an object, empty where it has none yet.
pub fn name(object: &Value) -> &str {
    meta::name(object).unwrap_or_default()
}

/// Uid of an object, empty where it has none yet.
pub(crate) fn uid(object: &Value) -> &str {
    meta::uid(object).unwrap_or_default()
}

/// `involvedObject` of an Event about this object.
pub(crate) fn reference(object: &Value) -> Value {
    let mut reference = json!({
        "apiVersion": text(object, "/apiVersion"),
        "kind": text(object, "/kind"),
        "name": name(object),
        "uid": uid(object),
    });
    if let Some(namespace) = meta::namespace(object) {
        put(&mut reference, "/namespace", namespace.into());
    }
    if let Some(version) = meta::resource_version(object) {
        put(&mut reference, "/resourceVersion", version.into());
    }
    reference
}

/// The owner reference of the managing controller.
pub(crate) fn controller_reference(owner: &Value) -> Value {
    json!({
        "apiVersion": text(owner, "/apiVersion"),
        "kind": text(owner, "/kind"),
        "name": name(owner),
        "uid": uid(owner),
        "controller": true,
        "blockOwnerDeletion": true,
    })
}

/// Returns true if two values are equal when nulls count as absent.
pub(crate) fn same(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Object(a), Value::Object(b)) => {
            a.iter().filter(|(_, v)| !v.is_null()).all(|(k, v)| b.get(k).is_some_and(|w| same(v, w)))
                && b.iter().filter(|(_, v)| !v.is_null()).all(|(k, _)| a.get(k).is_some_and(|v| !v.is_null()))
        }
        (Value::Array(a), Value::Array(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b)),
        _ => a == b,
    }
}

/// An absolute number or a percentage of `total`, rounded up or down.
pub(crate) fn scaled(value: Option<&Value>, total: i64, round_up: bool) -> Option<i64> {
    let value = value?;
    if let Some(number) = value.as_i64() {
        return Some(number);
    }
    let text = value.as_str()?;
    match text.strip_suffix('%') {
        Some(percent) => {
            let product = percent.trim().parse::<i64>().ok()? * total;
            Some(if round_up { (product + 99).div_euclid(100) } else { product.div_euclid(100) })
        }
        None => text.parse().ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::{put, same, scaled, stamp, text};
    use serde_json::json;

    #[test]
    fn percentages_round_as_asked() {
        assert_eq!(scaled(Some(&json!("25%")), 3, true), Some(1));
        assert_eq!(scaled(Some(&json!("25%")), 3, false), Some(0));
        assert_eq!(scaled(Some(&json!(2)), 3, false), Some(2));
        assert_eq!(scaled(None, 3, false), None);
    }

    #[test]
    fn put_makes_the_way() {
        let mut value = json!({});
        put(&mut value, "/metadata/annotations/a~1b", "c".into());
        assert_eq!(text(&value, "/metadata/annotations/a~1b"), "c");
    }

    #[test]
    fn nulls_count_as_absent() {
        assert!(same(&json!({"a": 1, "b": null}), &json!({"a": 1})));
        assert!(same(&json!({"a": 1}), &json!({"a": 1, "b": null})));
        assert!(!same(&json!({"a": 1}), &json!({"a": 1, "b": 2})));
    }

    #[test]
    fn times_have_seconds() {
        assert_eq!(stamp("2026-01-02T03:04:05.678Z".parse().unwrap()), "2026-01-02T03:04:05Z");
    }
}
