//! Refusals of built-in kinds: by the rules of their strategy, enumerations and required fields of all others
//! by their schema. Never changes an object.

use super::strategy::strategy_of;
use opdev_apimachinery::error::Cause;
use opdev_apimachinery::resource::{MetadataOrder, Resource};
pub(crate) use opdev_validation::{blocks, by_schema, print_emptied_labels, settle};
use opdev_validation::{cause, unchanging};
use serde_json::Value;

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
