//! What is refused of a CustomResourceDefinition, as causes of a `Status`. The rules are in `opdev_object::definition`.

use crate::error::Cause;
use opdev_object::definition;
use opdev_object::schema::FieldError;
use serde_json::Value;

/// What is wrong with a definition.
pub(crate) fn validate(object: &Value) -> Vec<Cause> {
    definition::validate(object).into_iter().map(cause).collect()
}

/// What is wrong with a definition that is to replace another.
pub(crate) fn validate_update(object: &Value, current: &Value) -> Vec<Cause> {
    definition::validate_update(object, current).into_iter().map(cause).collect()
}

fn cause(error: FieldError) -> Cause {
    Cause::text(error.reason.cause(), error.path, error.message)
}
