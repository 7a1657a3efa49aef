//! Filling in what is missing: the words for it, and the defaults of pods, which many kinds have. The
//! defaults of each kind stand in `kinds`.

pub mod pod;

pub use pod::tolerations;

use serde_json::{Map, Value};

/// Sets a field where it is missing or null.
pub fn put(object: &mut Value, field: &str, value: impl Into<Value>) {
    if let Some(map) = object.as_object_mut() {
        let slot = map.entry(field.to_owned()).or_insert(Value::Null);
        if slot.is_null() {
            *slot = value.into();
        }
    }
}

/// Sets a field that Go keeps as a plain value, where its zero value means that nobody has set it. A field
/// without `omitempty` is there with it before defaults come.
pub fn put_over_zero(object: &mut Value, field: &str, value: impl Into<Value>) {
    if let Some(slot) = object.get_mut(field).filter(|slot| **slot == "" || **slot == 0) {
        *slot = Value::Null;
    }
    put(object, field, value);
}

/// An object field for changing, made where it is missing.
pub fn sub<'a>(object: &'a mut Value, field: &str) -> &'a mut Value {
    put(object, field, Map::new());
    &mut object[field]
}

/// The items of a list for changing; none where there is no list.
pub fn each<'a>(object: &'a mut Value, field: &str) -> impl Iterator<Item = &'a mut Value> {
    object.get_mut(field).and_then(Value::as_array_mut).into_iter().flatten()
}
