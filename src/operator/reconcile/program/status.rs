//! The status that a program wants: compared with what is there by meaning, conditions merged by type,
//! written only where it differs, by one server-side apply. `merged` is pure.

use super::state::ScriptReconcile;
use crate::custom_resource::CONFLICT_TRIES;
use anyhow::{Context, anyhow};
use opdev_object::meta;
use opdev_script::contract::Desired;
use serde_json::{Map, Value, json};

impl ScriptReconcile {
    /// Writes the status if it differs.
    pub(super) async fn put_status(&mut self, desired: &Desired) -> anyhow::Result<()> {
        let before = self.parent.object.get("status").cloned().unwrap_or(Value::Null);
        let now = jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
        let generation = meta::generation(&self.parent.object);
        let Some(wanted) = merged(&before, desired, generation, &now) else { return Ok(()) };
        if same(&wanted, &before) {
            return Ok(());
        }
        // Fields of others stay where they are: once written, what they left there is no difference.
        if self.own.status.as_ref().is_some_and(|(w, after)| same(w, &wanted) && same(after, &before)) {
            return Ok(());
        }
        let (object, subresource) = self.status_write(&wanted);
        for _ in 0..CONFLICT_TRIES {
            let answer = self.api.apply(&self.parent.at(), subresource, &object, None, &self.manager).await;
            match answer {
                Ok(after) => {
                    let left = after.get("status").cloned().unwrap_or(Value::Null);
                    self.own.status = Some((wanted, left));
                    self.parent.object = after;
                    self.done.status = true;
                    self.clock.note("status");
                    return Ok(());
                }
                // Gone, or made anew, meanwhile: the uid does not fit.
                Err(error) if error.is_not_found() => return Ok(()),
                Err(error) if error.is_conflict() => {
                    let found = self.api.get(&self.parent.at()).await?;
                    match found {
                        Some(found) if meta::uid(&found) == Some(self.owner.uid.as_str()) => {
                            self.parent.object = found;
                        }
                        _ => return Ok(()),
                    }
                }
                Err(error) => return Err(anyhow::Error::new(error).context("could not write the status")),
            }
        }
        Err(anyhow!("the object keeps changing")).context("could not write the status")
    }

    /// The object that is applied to write a status, and the subresource that takes it.
    pub(super) fn status_write(&self, wanted: &Value) -> (Value, &'static str) {
        let mut object = json!({
            "apiVersion": self.parent.reference.gvk.api_version(), "kind": self.parent.reference.gvk.kind,
            "metadata": {"name": self.parent.reference.name, "uid": self.owner.uid}, "status": wanted});
        if let Some(namespace) = &self.parent.reference.namespace {
            meta::put(&mut object, &["metadata", "namespace"], namespace.as_str());
        }
        (object, if self.parent.resource.has_status { "status" } else { "" })
    }
}

/// The whole status there should be; `None` leaves it as it is.
pub(super) fn merged(before: &Value, desired: &Desired, generation: i64, now: &str) -> Option<Value> {
    if desired.status.is_none() && desired.conditions.is_empty() {
        return None;
    }
    let mut status = match &desired.status {
        Some(status) => status.clone(),
        None => before.clone(),
    };
    if !status.is_object() {
        status = Value::Object(Map::new());
    }
    drop_nulls(&mut status);
    let listed = status.get("conditions").and_then(Value::as_array).cloned();
    let all_wanted = if desired.status.is_some() { listed.unwrap_or_default() } else { Vec::new() };
    let mut conditions: Vec<Value> =
        before.get("conditions").and_then(Value::as_array).cloned().unwrap_or_default();
    for condition_wanted in all_wanted.iter().chain(&desired.conditions) {
        merge_condition(&mut conditions, condition_wanted, generation, now);
    }
    if let Some(fields) = status.as_object_mut() {
        fields.remove("conditions");
        if !conditions.is_empty() {
            fields.insert("conditions".to_owned(), Value::Array(conditions));
        }
    }
    Some(status)
}

fn merge_condition(conditions: &mut Vec<Value>, condition_wanted: &Value, generation: i64, now: &str) {
    let kind = condition_wanted.get("type").and_then(Value::as_str).unwrap_or_default();
    let known = conditions.iter().position(|condition| condition["type"] == kind);
    let mut condition = condition_wanted.clone();
    let Some(fields) = condition.as_object_mut() else { return };
    let before = known.map(|at| &conditions[at]);
    let same_status = before.is_some_and(|before| before.get("status") == fields.get("status"));
    let since = before
        .filter(|_| same_status)
        .and_then(|before| before.get("lastTransitionTime"))
        .cloned()
        .unwrap_or_else(|| Value::from(now));
    fields.insert("lastTransitionTime".to_owned(), since);
    if generation > 0 {
        fields.insert("observedGeneration".to_owned(), Value::from(generation));
    }
    match known {
        Some(at) => conditions[at] = condition,
        None => conditions.push(condition),
    }
}

/// A null says that there is no value; the API server would prune it.
fn drop_nulls(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.retain(|_, value| !value.is_null());
            fields.values_mut().for_each(drop_nulls);
        }
        Value::Array(items) => items.iter_mut().for_each(drop_nulls),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// Equal by meaning: an integer and a float of the same value, nothing and an empty map.
pub(super) fn same(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => a == b || a.as_f64() == b.as_f64(),
        (Value::Array(a), Value::Array(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b)),
        (Value::Object(a), Value::Object(b)) => {
            let covered = |a: &Map<String, Value>, b: &Map<String, Value>| {
                a.iter().all(|(key, value)| match b.get(key) {
                    Some(other) => same(value, other),
                    None => value.is_null(),
                })
            };
            covered(a, b) && covered(b, a)
        }
        (Value::Null, Value::Object(fields)) | (Value::Object(fields), Value::Null) => fields.is_empty(),
        (a, b) => a == b,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn desired(status: Option<Value>, conditions: Vec<Value>) -> Desired {
        Desired { status, conditions, ..Desired::default() }
    }

    #[test]
    fn times_of_conditions_move_only_with_their_status_and_others_stay() {
        let before = json!({"conditions": [
            {"type": "Other", "status": "True", "lastTransitionTime": "t0"},
            {"type": "Ready", "status": "False", "reason": "A", "lastTransitionTime": "t0"}]});
        let condition_wanted =
            |status: &str| json!({"type": "Ready", "status": status, "reason": "B", "message": ""});
        let wanted = merged(&before, &desired(None, vec![condition_wanted("False")]), 3, "t9").unwrap();
        assert_eq!(wanted["conditions"][0], before["conditions"][0]);
        assert_eq!(
            wanted["conditions"][1],
            json!({"type": "Ready", "status": "False", "reason": "B", "message": "",
                "lastTransitionTime": "t0", "observedGeneration": 3})
        );
        let wanted = merged(&before, &desired(None, vec![condition_wanted("True")]), 3, "t9").unwrap();
        assert_eq!(wanted["conditions"][1]["lastTransitionTime"], "t9");
    }

    #[test]
    fn the_rest_of_the_status_is_the_programs() {
        let before = json!({"old": 1, "conditions": [{"type": "A", "status": "True"}]});
        let wanted = merged(&before, &desired(Some(json!({"n": 2, "gone": null})), vec![]), 1, "t").unwrap();
        assert_eq!(wanted, json!({"n": 2, "conditions": [{"type": "A", "status": "True"}]}));
        assert!(merged(&before, &desired(None, vec![]), 1, "t").is_none());
        assert!(same(&json!({"a": 1, "b": []}), &json!({"b": [], "a": 1.0})));
        assert!(!same(&json!({"a": 1}), &json!({"a": 1, "b": 2})));
        assert!(same(&Value::Null, &json!({})));
    }
}
