//! Events as lines, and plans as text, for a terminal that is none, for scripts and for
//! `.opdev/events.jsonl`. Writes nothing itself. `docs/events.md` names every event and field.

mod lines;
mod plain;
mod plan;
pub mod summary;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod tests_of_variants;

pub use lines::Lines;
pub use plain::plain;
pub use plan::plan;

use opdev_event::{Body, Event, ObjectSeen};
use serde_json::Value;

/// One event as one JSON object, without a line break.
pub fn json(event: &Event) -> String {
    event.line().unwrap_or_else(|error| {
        serde_json::json!({"event": "log", "level": "ERROR", "message": error.to_string()}).to_string()
    })
}

/// One event as `json`, without the whole objects in it: the reference says which one it is.
pub fn compact(event: &Event) -> String {
    let nothing = |seen: &ObjectSeen| ObjectSeen { object: Body::new(&Value::Null), ..seen.clone() };
    let small = match event {
        Event::ObjectSeen(seen) => Event::ObjectSeen(nothing(seen)),
        Event::RowRead(seen) => Event::RowRead(nothing(seen)),
        _ => return json(event),
    };
    let mut line: Value = serde_json::from_str(&json(&small)).unwrap_or_default();
    if let Some(fields) = line.as_object_mut() {
        fields.remove("object");
    }
    line.to_string()
}
