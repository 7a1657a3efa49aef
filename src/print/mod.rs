//! Events as lines, and plans as text, for a terminal that is none, for scripts and for `.opdev/events.jsonl`. Writes nothing itself.
//! `docs/events.md` names every event and field.

mod plain;
mod plan;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod tests_of_variants;

pub use plain::plain;
pub use plan::plan;

use crate::event::Event;

/// One event as one JSON object, without a line break.
pub fn json(event: &Event) -> String {
    event.line().unwrap_or_else(|error| {
        serde_json::json!({"event": "log", "level": "ERROR", "message": error.to_string()}).to_string()
    })
}
