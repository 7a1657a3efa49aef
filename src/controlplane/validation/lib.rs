//! Refusals and warnings: of built-in kinds by hand for those that operators write, of custom resources by
//! their own schema. Pure: never changes an object, never looks at another one, never knows who asks.

pub mod addresses;
pub mod batch;
pub mod certificates;
mod checks;
mod container;
mod custom;
mod declared;
pub mod endpoints;
mod job_policies;
pub mod job_status;
pub mod network_policies;
pub mod networking;
pub mod pod;
pub mod policies;
pub mod rbac;
pub mod scaling;
pub mod storage;
pub mod unchanging;
mod volumes;
pub mod warnings;
pub mod webhooks;
pub mod workload_status;
pub mod workloads;

pub use checks::{absent, immutable, items};
pub use declared::settle;
pub use workloads::print_emptied_labels;

use opdev_apimachinery::error::Cause;
use opdev_apimachinery::part::Part;
use opdev_apimachinery::resource::Resource;
use opdev_object::schema::FieldError;
use serde_json::Value;

/// Returns true if these leave too little of an object to evaluate rules on it.
pub fn blocks(causes: &[Cause]) -> bool {
    const BLOCKING: [&str; 4] =
        ["FieldValueRequired", "FieldValueNotSupported", "FieldValueTooLong", "FieldValueTooMany"];
    causes.iter().any(|cause| BLOCKING.contains(&cause.reason.as_str()))
}

/// The error of a custom resource against its schema and rules. It may replace `current`, which is looked at
/// as it would be read today; `blocked` is whether its metadata leave too little for rules.
pub fn by_schema(
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

/// The cause that an error of a schema is.
pub fn cause(error: FieldError) -> Cause {
    Cause::text(error.reason.cause(), error.path, error.message)
}
