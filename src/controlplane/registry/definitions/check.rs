//! Causes of a `Status` for a CustomResourceDefinition. The rules are in `opdev_cel::definition`.

use opdev_apimachinery::error::Cause;
use opdev_cel::definition;
use opdev_object::schema::FieldError;
use serde_json::Value;

/// The errors of a definition, which may replace `current`.
pub(crate) fn validate(object: &Value, current: Option<&Value>) -> Vec<Cause> {
    let mut errors = definition::validate(object);
    // The cost of rules is reported only if nothing else is wrong, or only other rules are.
    let only_rules = errors.is_empty() || {
        let faults = definition::uncompiled(object);
        errors.iter().all(|error| faults.iter().any(|fault| fault.error == *error))
    };
    if only_rules {
        errors.extend(definition::expensive(object, current).into_iter().map(|fault| fault.error));
    }
    errors.into_iter().map(cause).collect()
}

/// Errors of a definition that is to replace another.
pub(crate) fn validate_update(object: &Value, current: &Value) -> Vec<Cause> {
    definition::validate_update(object, current).into_iter().map(cause).collect()
}

fn cause(error: FieldError) -> Cause {
    Cause::text(error.reason.cause(), error.path, error.message)
}
