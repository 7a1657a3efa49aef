//! Times and objects as records of a process have them.

use crate::record::TraceObject;
use jiff::Timestamp;
use opdev_object::meta::{Gvk, ObjectRef};

/// A time from nanoseconds since 1970.
pub fn time(nanoseconds: i64) -> Timestamp {
    Timestamp::from_nanosecond(i128::from(nanoseconds)).unwrap_or_default()
}

/// Nanoseconds since 1970 of a time.
pub fn nanoseconds(at: Timestamp) -> i64 {
    i64::try_from(at.as_nanosecond()).unwrap_or(i64::MAX)
}

/// A reference to what a record is about.
pub fn reference(object: &TraceObject) -> ObjectRef {
    let some = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
    ObjectRef {
        gvk: Gvk::new(&object.group, &object.version, &object.kind),
        namespace: some(&object.namespace),
        name: object.name.clone(),
        uid: some(&object.uid),
    }
}
