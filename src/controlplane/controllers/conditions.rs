//! Conditions in the two forms of upstream: with `lastUpdateTime` (Deployments) and without (all others).
//! Never decides what is true; see the controllers.

use super::fields::{stamp, text};
use jiff::Timestamp;
use serde_json::{Map, Value, json};

/// The condition of a type in a status.
pub(crate) fn find<'a>(status: &'a Map<String, Value>, kind: &str) -> Option<&'a Value> {
    status.get("conditions")?.as_array()?.iter().find(|condition| text(condition, "/type") == kind)
}

/// Returns true if the condition of a type has this status.
pub(crate) fn is(status: &Map<String, Value>, kind: &str, value: &str) -> bool {
    find(status, kind).is_some_and(|condition| text(condition, "/status") == value)
}

/// Returns true if an object's condition is `True`.
pub(crate) fn is_true(object: &Value, kind: &str) -> bool {
    super::fields::list(object, "/status/conditions")
        .iter()
        .any(|condition| text(condition, "/type") == kind && text(condition, "/status") == "True")
}

/// Removes the condition of a type.
pub(crate) fn remove(status: &mut Map<String, Value>, kind: &str) {
    if let Some(Value::Array(conditions)) = status.get_mut("conditions") {
        conditions.retain(|condition| text(condition, "/type") != kind);
        if conditions.is_empty() {
            status.remove("conditions");
        }
    }
}

/// A condition to be set.
#[derive(Clone, Copy)]
pub(crate) struct NewCondition<'a> {
    pub kind: &'a str,
    pub status: &'a str,
    pub reason: &'a str,
    pub message: &'a str,
}

/// Sets a condition, at its place if there is one. The transition time moves only with the status.
/// Nothing changes when status, reason and message are as they were.
pub(crate) fn set(status: &mut Map<String, Value>, says: NewCondition<'_>, now: Timestamp) {
    let mut transition = stamp(now);
    if let Some(current) = find(status, says.kind) {
        let same_status = text(current, "/status") == says.status;
        if same_status {
            if text(current, "/reason") == says.reason && text(current, "/message") == says.message {
                return;
            }
            transition = text(current, "/lastTransitionTime").to_owned();
        }
    }
    let mut condition = json!({
        "type": says.kind, "status": says.status, "lastTransitionTime": transition,
    });
    if let Some(fields) = condition.as_object_mut() {
        if !says.reason.is_empty() {
            fields.insert("reason".into(), says.reason.into());
        }
        if !says.message.is_empty() {
            fields.insert("message".into(), says.message.into());
        }
    }
    place(status, says.kind, condition);
}

/// Sets a condition as Deployments do: nothing changes while status and reason stay the same, otherwise
/// `lastUpdateTime` is now and the condition moves to the end.
pub(crate) fn set_updated(status: &mut Map<String, Value>, says: NewCondition<'_>, now: Timestamp) {
    let mut transition = stamp(now);
    if let Some(current) = find(status, says.kind)
        && text(current, "/status") == says.status
    {
        if text(current, "/reason") == says.reason {
            return;
        }
        transition = text(current, "/lastTransitionTime").to_owned();
    }
    remove(status, says.kind);
    let condition = json!({
        "type": says.kind, "status": says.status, "reason": says.reason, "message": says.message,
        "lastUpdateTime": stamp(now), "lastTransitionTime": transition,
    });
    place(status, says.kind, condition);
}

fn place(status: &mut Map<String, Value>, kind: &str, condition: Value) {
    let conditions = status.entry("conditions").or_insert_with(|| Value::Array(Vec::new()));
    if !conditions.is_array() {
        *conditions = Value::Array(Vec::new());
    }
    let Value::Array(conditions) = conditions else { return };
    match conditions.iter_mut().find(|existing| text(existing, "/type") == kind) {
        Some(existing) => *existing = condition,
        None => conditions.push(condition),
    }
}

#[cfg(test)]
mod tests {
    use super::{NewCondition, find, set, set_updated};
    use serde_json::Map;

    const READY: NewCondition<'_> =
        NewCondition { kind: "Ready", status: "True", reason: "Up", message: "all is well" };

    #[test]
    fn the_transition_time_moves_with_the_status_only() {
        let mut status = Map::new();
        set(&mut status, READY, "2026-01-01T00:00:00Z".parse().unwrap());
        set(&mut status, NewCondition { reason: "Other", ..READY }, "2026-01-01T00:00:09Z".parse().unwrap());
        assert_eq!(find(&status, "Ready").unwrap()["lastTransitionTime"], "2026-01-01T00:00:00Z");
        set(&mut status, NewCondition { status: "False", ..READY }, "2026-01-01T00:00:10Z".parse().unwrap());
        assert_eq!(find(&status, "Ready").unwrap()["lastTransitionTime"], "2026-01-01T00:00:10Z");
    }

    #[test]
    fn an_equal_reason_keeps_a_deployments_condition() {
        let mut status = Map::new();
        set_updated(&mut status, READY, "2026-01-01T00:00:00Z".parse().unwrap());
        let before = status.clone();
        set_updated(
            &mut status,
            NewCondition { message: "new words", ..READY },
            "2026-01-01T00:00:09Z".parse().unwrap(),
        );
        assert_eq!(status, before);
    }
}
