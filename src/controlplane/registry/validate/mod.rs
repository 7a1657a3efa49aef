//! Refusals of built-in kinds: by hand for the kinds that operators write, enumerations and required fields
//! of all others by their schema. Never changes an object. Custom resources are validated by their own
//! schema.

pub mod batch;
pub mod certificates;
pub mod checks;
mod container;
pub mod custom;
pub mod declared;
mod job_policies;
pub mod networking;
pub mod pod;
pub mod policies;
pub mod rbac;
pub mod scaling;
pub mod storage;
pub mod unchanging;
pub mod webhooks;
pub mod workloads;

pub(crate) use checks::{absent, immutable, items};
pub(super) use declared::settle;
pub(crate) use workloads::print_emptied_labels;

use super::part::Part;
use super::strategy::strategy_of;
use opdev_apimachinery::error::Cause;
use opdev_apimachinery::resource::{MetadataOrder, Resource, names};
use opdev_object::schema::FieldError;
use serde_json::Value;

/// Returns true if these leave too little of an object to evaluate rules on it.
pub(crate) fn blocks(causes: &[Cause]) -> bool {
    const BLOCKING: [&str; 4] =
        ["FieldValueRequired", "FieldValueNotSupported", "FieldValueTooLong", "FieldValueTooMany"];
    causes.iter().any(|cause| BLOCKING.contains(&cause.reason.as_str()))
}

/// The error of a custom resource against its schema and rules. It may replace `current`, which is looked at
/// as it would be read today; `blocked` is whether its metadata leave too little for rules.
pub(crate) fn by_schema(
    (resource, part): (&Resource, Part),
    object: &Value,
    current: Option<&Value>,
    blocked: bool,
) -> Vec<Cause> {
    let schema = resource.schema();
    let old = current.map(|current| {
        let mut old = current.clone();
        opdev_object::schema::prune(&mut old, schema);
        opdev_object::schema::default(&mut old, schema);
        old
    });
    let mut causes: Vec<Cause> = opdev_object::schema::admit_unless(object, old.as_ref(), schema, blocked)
        .into_iter()
        .map(cause)
        .collect();
    if part == Part::Status {
        causes.iter_mut().for_each(custom::within_status);
    }
    if let Some(paths) = resource.custom.as_ref().and_then(|custom| custom.scale.as_ref()) {
        custom::scale(object, paths, part, &mut causes);
    }
    causes
}

/// Go's name for the type of a decoded value.
fn go_type(value: &Value) -> &'static str {
    match value {
        Value::Null => "<nil>",
        Value::Bool(_) => "bool",
        Value::Number(number) if number.is_i64() => "int64",
        Value::Number(_) => "float64",
        Value::String(_) => "string",
        Value::Array(_) => "[]interface {}",
        Value::Object(_) => "map[string]interface {}",
    }
}

/// A decoded value as Go prints it.
fn go_value(value: &Value) -> String {
    match value {
        Value::Null => "<nil>".to_owned(),
        Value::String(text) => text.clone(),
        Value::Array(list) => format!("[{}]", list.iter().map(go_value).collect::<Vec<_>>().join(" ")),
        Value::Object(map) => {
            let fields: Vec<String> =
                map.iter().map(|(key, value)| format!("{key}:{}", go_value(value))).collect();
            format!("map[{}]", fields.join(" "))
        }
        other => other.to_string(),
    }
}

fn cause(error: FieldError) -> Cause {
    Cause::text(error.reason.cause(), error.path, error.message)
}

/// Errors of a new object of a built-in kind.
pub(crate) fn create(resource: &Resource, object: &Value) -> Vec<Cause> {
    validate_all(resource, object, None)
}

fn validate_all(resource: &Resource, object: &Value, current: Option<&Value>) -> Vec<Cause> {
    let mut causes = Vec::new();
    (strategy_of(resource).validate_generated)(object, current, &mut causes);
    causes.extend(validate_fields(resource, object, current));
    causes
}

fn validate_fields(resource: &Resource, object: &Value, current: Option<&Value>) -> Vec<Cause> {
    let mut causes = Vec::new();
    let strategy = strategy_of(resource);
    (strategy.validate)(resource, object, current, &mut causes);
    let once = strategy.validated_once.filter(|_| current.is_some());
    for error in opdev_object::schema::missing(object, resource.schema()) {
        if once.is_some_and(|once| error.path.starts_with(once)) {
            continue;
        }
        if !causes.iter().any(|known| covers(&known.field, &error.path)) {
            causes.push(cause(error));
        }
    }
    causes
}

/// Returns true if a cause of the field `known` covers `field`, too: it is the same field, or a part of it.
fn covers(known: &str, field: &str) -> bool {
    field.strip_prefix(known).is_some_and(|rest| rest.is_empty() || rest == ".type" || rest.starts_with('['))
}

/// The error of an object of a built-in kind that replaces `current`. `metadata_causes` are those causes of
/// its metadata that are reported between the other ones.
pub(crate) fn update(
    resource: &Resource,
    object: &Value,
    current: &Value,
    mut metadata_causes: Vec<Cause>,
) -> Vec<Cause> {
    let strategy = strategy_of(resource);
    let mut causes = Vec::new();
    // Some kinds report first what may not change, others first what is wrong.
    (strategy.validate_change_first)(object, current, &mut causes);
    if resource.rules.metadata_checks.order != MetadataOrder::WholeFirst {
        causes.append(&mut metadata_causes);
    }
    causes.extend(validate_all(resource, object, Some(current)));
    causes.append(&mut metadata_causes);
    if strategy.validates_updates_twice {
        causes.extend(validate_fields(resource, object, Some(current)));
    }
    unchanging::fields(strategy.unchanging, object, current, &mut causes);
    (strategy.validate_change)(object, current, &mut causes);
    causes
}
