//! Checks that are left for an object that was read as its Go type: required fields and enumerations. Types
//! fit then, and formats, sizes and patterns are not part of a built-in kind's schema.

use super::error::FieldError;
use super::model::{Additional, SchemaRef};
use super::step::{Step, below};
use super::validate::check_enum;
use serde_json::Value;

/// The required fields that are missing, and the values that are not among the allowed ones.
pub fn missing(value: &Value, schema: &SchemaRef) -> Vec<FieldError> {
    let mut errors = Vec::new();
    walk(&mut String::new(), value, schema, &mut errors);
    errors
}

fn walk(path: &mut String, value: &Value, schema: &SchemaRef, errors: &mut Vec<FieldError>) {
    match value {
        Value::Object(map) => {
            for (key, value) in map {
                let step = match (schema.properties.get(key), &schema.additional) {
                    (Some(inner), _) => Some((Step::Child(key), inner)),
                    (None, Some(Additional::Schema(inner))) => Some((Step::Entry(key), inner)),
                    (None, Some(Additional::Any) | None) => None,
                };
                if let Some((step, inner)) = step {
                    below(path, step, |path| walk(path, value, inner, errors));
                }
            }
            let required = schema.checks.iter().flat_map(|checks| &checks.required);
            for key in required.filter(|key| !map.contains_key(*key)) {
                below(path, Step::Child(key), |path| tell(FieldError::required(path.as_str(), ""), errors));
            }
        }
        Value::Array(items) => {
            if let Some(inner) = &schema.items {
                for (index, item) in items.iter().enumerate() {
                    below(path, Step::Index(index), |path| walk(path, item, inner, errors));
                }
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
    if let Some(error) = check_enum(path, value, schema) {
        tell(error, errors);
    }
}

/// Each is told once.
fn tell(error: FieldError, errors: &mut Vec<FieldError>) {
    if !errors.contains(&error) {
        errors.push(error);
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Reason, validate};
    use super::*;
    use crate::facts::facts;
    use serde_json::json;

    /// The rest of a validation finds nothing more of that kind in a built-in object.
    #[test]
    fn alternatives_of_built_in_kinds_require_nothing() {
        for name in facts().raw_definitions().keys() {
            let mut open = vec![facts().definition(name).unwrap()];
            while let Some(schema) = open.pop() {
                let below = schema.properties.values().chain(&schema.items).cloned();
                open.extend(below.filter(|inner| !inner.is_built_in()));
                let Some(checks) = &schema.checks else { continue };
                for other in
                    checks.any_of.iter().chain(&checks.one_of).chain(&checks.all_of).chain(&checks.not)
                {
                    assert!(other.checks.is_none() && other.properties.is_empty(), "{name}");
                }
            }
        }
    }

    #[test]
    fn tells_what_a_whole_validation_tells() {
        let schema = facts().definition("io.k8s.api.apps.v1.Deployment").unwrap();
        let object = json!({"metadata": {"ownerReferences": [{"name": "a"}]}, "spec": {"strategy": {"type": "x"},
            "template": {"spec": {"restartPolicy": "no", "containers": [{"imagePullPolicy": "?", "ports": [{}],
                "env": [{"value": "a"}], "resources": {"limits": {"cpu": "1"}}}, {"name": "b"}]}}}});
        let counts = |error: &FieldError| matches!(error.reason, Reason::Required | Reason::NotSupported);
        let whole: Vec<FieldError> = validate(&object, &schema).into_iter().filter(counts).collect();
        assert_eq!(missing(&object, &schema), whole);
        assert!(whole.len() > 8, "{whole:?}");
    }
}
