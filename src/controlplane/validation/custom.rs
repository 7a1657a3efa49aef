//! Rules of a custom resource beside its schema: the fields of its scale, and the words for a status,
//! which the real server looks at by itself.

use super::{go_type, go_value};
use opdev_apimachinery::error::Cause;
use opdev_apimachinery::part::Part;
use opdev_apimachinery::resource::ScalePaths;
use serde_json::{Value, json};

/// Errors of the fields of the scale. A write of the status does not look at those of the spec.
pub(super) fn scale(object: &Value, paths: &ScalePaths, part: Part, causes: &mut Vec<Cause>) {
    if part != Part::Status {
        causes.extend(replicas(object, &paths.spec_replicas));
    }
    causes.extend(replicas(object, &paths.status_replicas));
    if let Some(path) = &paths.label_selector {
        let found = value_at(object, path, "string", Value::is_string);
        causes.extend(found.err().map(|detail| Cause::invalid(path, &json!(""), &detail)));
    }
}

/// The error of a number of replicas.
fn replicas(object: &Value, path: &str) -> Option<Cause> {
    let number = match value_at(object, path, "int64", Value::is_i64) {
        Ok(found) => found?.as_i64()?,
        Err(detail) => return Some(Cause::invalid(path, &json!(0), &detail)),
    };
    let most = i64::from(i32::MAX);
    match number {
        ..0 => Some(Cause::invalid(path, &json!(number), "should be a non-negative integer")),
        _ if number > most => {
            Some(Cause::invalid(path, &json!(number), &format!("should be less than or equal to {most}")))
        }
        _ => None,
    }
}

/// The value at a path, or why there is none of this type, in the words of Go's accessors.
fn value_at<'a>(
    object: &'a Value,
    path: &str,
    wanted: &str,
    fits: impl Fn(&Value) -> bool,
) -> Result<Option<&'a Value>, String> {
    let mut at = object;
    let mut read = String::new();
    let unlike = |read: &str, value: &Value, wanted: &str| {
        format!(
            "{read} accessor error: {} is of the type {}, expected {wanted}",
            go_value(value),
            go_type(value)
        )
    };
    for name in path.split('.').filter(|name| !name.is_empty()) {
        read = format!("{read}.{name}");
        if at.is_null() {
            return Ok(None);
        }
        if !at.is_object() {
            return Err(unlike(&read, at, "map[string]interface{}"));
        }
        at = &at[name];
    }
    match at {
        Value::Null => Ok(None),
        found if fits(found) => Ok(Some(found)),
        other => Err(unlike(&read, other, wanted)),
    }
}

/// The words of an error in a status that is written by itself: there the status is the whole that is looked
/// at, and only the path before the text knows its name.
pub(super) fn within_status(cause: &mut Cause) {
    let field = cause.field.as_str();
    if let Some(inner) =
        field.strip_prefix("status").filter(|inner| inner.is_empty() || inner.starts_with('.'))
    {
        let inner = inner.strip_prefix('.').unwrap_or(inner);
        cause.message =
            cause.message.replacen(&format!(": {field} in body"), &format!(": {inner} in body"), 1);
    } else if field == "<nil>"
        && let Some((text, path)) = cause.message.rsplit_once(" in status.")
    {
        cause.message = format!("{text} in {path}");
        cause.field = "status".to_owned();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_is_looked_at_by_itself() {
        let said = |field: &str, message: &str| {
            let mut cause = Cause::text("FieldValueInvalid", field, message);
            within_status(&mut cause);
            cause.to_string()
        };
        let number = "Invalid value: 11: status.port in body should be less than or equal to 10";
        assert_eq!(
            said("status.port", number),
            "status.port: Invalid value: 11: port in body should be less than or equal to 10"
        );
        assert_eq!(
            said("status", "Invalid value: \"array\": status in body must be of type object: \"array\""),
            "status: Invalid value: \"array\":  in body must be of type object: \"array\""
        );
        let checked =
            "Invalid value: \"\": Checked value must be of type integer (default format) in status.n";
        assert_eq!(
            said("<nil>", checked),
            "status: Invalid value: \"\": Checked value must be of type integer (default format) in n"
        );
        let spec = "Invalid value: 11: spec.port in body should be less than or equal to 10";
        assert_eq!(said("spec.port", spec), format!("spec.port: {spec}"));
    }

    #[test]
    fn the_fields_of_a_scale_are_of_their_types() {
        let paths = ScalePaths {
            spec_replicas: ".spec.count".to_owned(),
            status_replicas: ".status.count".to_owned(),
            label_selector: Some(".status.selector".to_owned()),
        };
        let fields = |object: Value, part: Part| -> Vec<String> {
            let mut causes = Vec::new();
            scale(&object, &paths, part, &mut causes);
            causes.iter().map(ToString::to_string).collect()
        };
        let wrong = json!({"spec": {"count": 3_000_000_000_i64}, "status": {"count": -1, "selector": {}}});
        let status = [
            ".status.count: Invalid value: -1: should be a non-negative integer",
            ".status.selector: Invalid value: \"\": .status.selector accessor error: map[] is of the type \
             map[string]interface {}, expected string",
        ];
        assert_eq!(fields(wrong.clone(), Part::Status), status);
        let all = fields(wrong, Part::Main);
        assert_eq!(
            all[0],
            ".spec.count: Invalid value: 3000000000: should be less than or equal to 2147483647"
        );
        assert_eq!(all[1..], status);
        assert!(fields(json!({"spec": {"count": 1}}), Part::Main).is_empty());
    }
}
