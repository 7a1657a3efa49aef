//! Filling in what is missing: the words for it, and the defaults of pods, which many kinds have. The
//! defaults of each kind stand in `kinds`.

pub(super) mod pod;

pub(crate) use pod::tolerations;

use serde_json::{Map, Value};

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
