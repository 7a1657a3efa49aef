//! The schema of a custom resource with its rules in CEL, or what a server says is wrong with it.

use crate::Rules;
use opdev_object::schema::{FieldError, SchemaRef, ValueRules};
use opdev_object::structural::schema_of;
use serde_json::Value;
use std::sync::Arc;

/// The schema of a custom resource from its `openAPIV3Schema`, or what is wrong with it.
pub fn structural(schema: &Value) -> Result<SchemaRef, Vec<FieldError>> {
    structural_at("", schema)
}

/// Like [`structural`], for a schema that stands at `path`, such as
/// `spec.versions[0].schema.openAPIV3Schema`.
pub fn structural_at(path: &str, schema: &Value) -> Result<SchemaRef, Vec<FieldError>> {
    schema_of(path, schema, compiled)
}

/// The rules of a schema and of all that it holds; none where it has none.
fn compiled(path: &str, schema: &Value) -> Result<Option<Arc<dyn ValueRules>>, Vec<FieldError>> {
    match Rules::compile(path, schema) {
        Ok(rules) => Ok(rules.map(|rules| Arc::new(rules) as Arc<dyn ValueRules>)),
        Err(faults) => Err(faults.into_iter().map(|fault| fault.error).collect()),
    }
}
