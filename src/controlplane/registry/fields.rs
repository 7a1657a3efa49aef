//! `metadata.managedFields`: who owns which field after a write, and when two objects count as the same.
//! The algebra is `opdev_object::apply`; here is only when it is asked.

use super::Registry;
use super::context::Context;
use super::strategy::strategy_of;
use jiff::Timestamp;
use opdev_apimachinery::error::{Cause, Status};
use opdev_apimachinery::part::Part;
use opdev_apimachinery::resource::{Resource, metadata};
use opdev_object::apply::{ApplyError, FieldManager, Versions, compact};
use opdev_object::facts::facts;
use opdev_object::fieldset::FieldSet;
use opdev_object::meta::Gvk;
use serde_json::{Map, Value};

/// The fields that a write of this part never touches and so never owns.
fn reset(resource: &Resource, part: Part) -> Option<FieldSet> {
    if !resource.has_status() {
        return None;
    }
    match part {
        Part::Main => Some(FieldSet::of_fields(&[&["status"]])),
        Part::Status if resource.custom.is_some() => Some(FieldSet::of_fields(&[&["metadata"], &["spec"]])),
        Part::Status => Some(FieldSet::of_fields(strategy_of(resource).status_reset_fields)),
        Part::Scale
        | Part::Binding
        | Part::Finalize
        | Part::EphemeralContainers
        | Part::Resize
        | Part::Approval => None,
    }
}

/// Records that `object` came out of an update of `current` (or was created).
pub(crate) fn updated(
    registry: &Registry,
    ctx: &Context,
    resource: &Resource,
    current: Option<&Value>,
    object: &mut Value,
    part: Part,
) {
    let (reset, now, siblings) = (reset(resource, part), registry.now(), registry.siblings(resource));
    let (api_version, schema, now) = (resource.api_version(), resource.schema(), metadata::seconds(now));
    let manager = FieldManager {
        manager: &ctx.manager,
        api_version,
        subresource: part.subresource(),
        schema,
        now: &now,
        reset: reset.as_ref(),
        versions: siblings.as_ref().map(|siblings| siblings as &dyn Versions),
    };
    manager.update(current, object);
}

/// Writes who owns what where the algebra has no part in it.
pub(crate) fn set_entries(object: &mut Value, entries: Vec<Value>) {
    let meta = metadata::map_mut(object);
    if entries.is_empty() {
        meta.remove("managedFields");
    } else {
        meta.insert("managedFields".to_owned(), Value::from(entries));
    }
}

/// Merges an applied configuration into the live object.
pub fn apply(
    registry: &Registry,
    ctx: &Context,
    resource: &Resource,
    live: Option<&Value>,
    applied: &Value,
    part: Part,
    force: bool,
) -> Result<Value, Status> {
    let (reset, now, siblings) = (reset(resource, part), registry.now(), registry.siblings(resource));
    let (api_version, schema, now) = (resource.api_version(), resource.schema(), metadata::seconds(now));
    let manager = FieldManager {
        manager: &ctx.manager,
        api_version,
        subresource: part.subresource(),
        schema,
        now: &now,
        reset: reset.as_ref(),
        versions: siblings.as_ref().map(|siblings| siblings as &dyn Versions),
    };
    manager.apply(live, applied, force).map_err(refused)
}

/// Merges an applied Scale into the Scale of an object, whose managed fields are those of the Scale.
pub(crate) fn apply_scale(
    ctx: &Context,
    live: &Value,
    applied: &Value,
    force: bool,
    now: Timestamp,
) -> Result<Value, Status> {
    let schema = facts().schema(&Gvk::new("autoscaling", "v1", "Scale"));
    let schema = schema.unwrap_or_else(opdev_object::structural::untyped_resource);
    let manager = FieldManager {
        manager: &ctx.manager,
        api_version: "autoscaling/v1",
        subresource: Part::Scale.subresource(),
        schema: &schema,
        now: &metadata::seconds(now),
        reset: None,
        versions: None,
    };
    manager.apply(Some(live), applied, force).map_err(refused)
}

fn refused(error: ApplyError) -> Status {
    let text = error.to_string();
    match error {
        ApplyError::Conflicts(conflicts) => {
            let cause = |c: &opdev_object::apply::Conflict| {
                Cause::text("FieldManagerConflict", c.path.to_string(), c.message())
            };
            let causes = conflicts.iter().map(cause).collect();
            Status { causes, ..Status::new(409, "Conflict", text) }
        }
        ApplyError::BadRequest(_) => Status::bad_request(text),
        ApplyError::Typed(_) => Status::new(500, "", text),
    }
}

/// Returns true if two objects are the same but for the times in their managed fields.
pub(crate) fn same(new: &Value, old: &Value) -> bool {
    let (Some(a), Some(b)) = (new.as_object(), old.as_object()) else { return new == old };
    a.len() == b.len()
        && a.iter().all(|(key, value)| match b.get(key) {
            Some(other) if key == "metadata" => same_metadata(value, other),
            Some(other) => value == other,
            None => false,
        })
}

fn same_metadata(new: &Value, old: &Value) -> bool {
    let (Some(a), Some(b)) = (new.as_object(), old.as_object()) else { return new == old };
    a.len() == b.len()
        && a.iter().all(|(key, value)| match b.get(key) {
            Some(other) if key == "managedFields" => same_managers(value, other),
            Some(other) => value == other,
            None => false,
        })
}

fn same_managers(new: &Value, old: &Value) -> bool {
    let (Some(a), Some(b)) = (new.as_array(), old.as_array()) else { return new == old };
    // Their order changes as their times are cut to seconds: that alone is no change.
    a.len() == b.len() && a.iter().all(|entry| b.iter().any(|known| same_but_for_time(entry, known)))
}

fn same_but_for_time(a: &Value, b: &Value) -> bool {
    let (Some(a), Some(b)) = (a.as_object(), b.as_object()) else { return a == b };
    let others = |map: &Map<String, Value>| map.len() - usize::from(map.contains_key("time"));
    others(a) == others(b)
        && a.iter().all(|(key, value)| match (key.as_str(), b.get(key)) {
            ("time", _) => true,
            ("fieldsV1", Some(other)) => compact::same_fields(value, other),
            (_, other) => other == Some(value),
        })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn times_of_managers_do_not_count() {
        let object = |time: &str, n: i64| json!({"metadata": {"name": "a", "managedFields": [{"manager": "m", "time": time}]}, "n": n});
        assert!(same(&object("1", 1), &object("2", 1)));
        let twice = |first: &str, second: &str| json!({"metadata": {"managedFields": [{"manager": first}, {"manager": second}]}});
        assert!(same(&twice("a", "b"), &twice("b", "a")) && !same(&twice("a", "b"), &twice("a", "c")));
        assert!(!same(&object("1", 1), &object("1", 2)));
        assert!(!same(&json!({"metadata": {"a": 1}}), &json!({"metadata": {"b": 1}})));
    }
}
