//! `Status` errors with the reasons, codes, details and texts of a real API server. Clients branch on
//! `reason` and `code`, people read `message`: all three are exact. Never builds a response.

use opdev_cel::ExpressionError;
use serde_json::{Map, Value, json};
use std::fmt;
use std::sync::Arc;

/// One entry of `details.causes`.
#[derive(Clone, Debug, PartialEq)]
pub struct Cause {
    /// Machine-readable reason, such as `FieldValueInvalid`.
    pub reason: String,
    /// The error text, without the field's name.
    pub message: String,
    /// Field path; empty where the cause has none.
    pub field: String,
}

impl Cause {
    fn new(reason: &str, field: impl Into<String>, message: String) -> Self {
        Cause { reason: reason.to_owned(), message, field: field.into() }
    }

    /// `Required value`.
    pub fn required(field: impl Into<String>, detail: &str) -> Self {
        Cause::new("FieldValueRequired", field, with_detail("Required value", detail))
    }

    /// `Invalid value: <value>`.
    pub fn invalid(field: impl Into<String>, value: &Value, detail: &str) -> Self {
        Cause::new(
            "FieldValueInvalid",
            field,
            with_detail(&format!("Invalid value: {}", printed(value)), detail),
        )
    }

    /// The error of an expression; an internal error where it is right and makes no program all the same.
    pub fn expression(field: impl Into<String>, text: &str, why: &ExpressionError) -> Self {
        if matches!(why, ExpressionError::Program { .. }) {
            return Cause::text("InternalError", field, format!("Internal error: {why}"));
        }
        Cause::invalid(field, &Value::from(text), &why.to_string())
    }

    /// `Unsupported value: <value>: supported values: "a", "b"`.
    pub fn not_supported(field: impl Into<String>, value: &Value, supported: &[&str]) -> Self {
        let list: Vec<String> = supported.iter().map(|s| format!("{s:?}")).collect();
        let text = format!("Unsupported value: {}: supported values: {}", printed(value), list.join(", "));
        Cause::new("FieldValueNotSupported", field, text)
    }

    /// `Forbidden: <detail>`.
    pub fn forbidden(field: impl Into<String>, detail: &str) -> Self {
        Cause::new("FieldValueForbidden", field, with_detail("Forbidden", detail))
    }

    /// `Duplicate value: <value>`.
    pub fn duplicate(field: impl Into<String>, value: &Value) -> Self {
        Cause::new("FieldValueDuplicate", field, format!("Duplicate value: {}", printed(value)))
    }

    /// `Too long: may not be more than N bytes`.
    pub fn too_long(field: impl Into<String>, limit: usize) -> Self {
        Cause::new("FieldValueTooLong", field, format!("Too long: may not be more than {limit} bytes"))
    }

    /// A cause whose text somebody else wrote.
    pub fn text(reason: &str, field: impl Into<String>, message: impl Into<String>) -> Self {
        Cause::new(reason, field, message.into())
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.field.is_empty() {
            f.write_str(&self.message)
        } else {
            write!(f, "{}: {}", self.field, self.message)
        }
    }
}

fn with_detail(text: &str, detail: &str) -> String {
    if detail.is_empty() { text.to_owned() } else { format!("{text}: {detail}") }
}

/// A bad value as field errors print it: strings quoted, the rest as JSON.
fn printed(value: &Value) -> String {
    match value {
        Value::String(text) => format!("{text:?}"),
        other => other.to_string(),
    }
}

/// The name of a resource within its group, as errors print it: `deployments.apps`, `pods`.
pub fn qualified(group: &str, name: &str) -> String {
    if group.is_empty() { name.to_owned() } else { format!("{name}.{group}") }
}

/// A failure as the API answers it.
#[derive(Clone, Debug, PartialEq)]
pub struct Status {
    /// HTTP status code.
    pub code: u16,
    /// Machine-readable reason, such as `NotFound`.
    pub reason: &'static str,
    /// The error text for people.
    pub message: String,
    /// `details`, without causes; empty where there are none.
    pub details: Map<String, Value>,
    /// `details.causes`.
    pub causes: Vec<Cause>,
    /// `Warning` headers to send with it.
    pub warnings: Box<[String]>,
    /// The whole `Status`, where somebody else has made it.
    pub told: Option<Arc<Value>>,
}

impl std::error::Error for Status {}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

fn details(group: &str, kind: &str, name: &str) -> Map<String, Value> {
    let mut map = Map::new();
    for (key, value) in [("name", name), ("group", group), ("kind", kind)] {
        if !value.is_empty() {
            map.insert(key.to_owned(), Value::from(value));
        }
    }
    map
}

impl Status {
    /// A failure without details.
    pub fn new(code: u16, reason: &'static str, message: impl Into<String>) -> Self {
        Status {
            code,
            reason,
            message: message.into(),
            details: Map::new(),
            causes: Vec::new(),
            warnings: Box::default(),
            told: None,
        }
    }

    /// The failure with what was warned of before it.
    #[must_use]
    pub fn warned(mut self, warnings: &[String]) -> Self {
        self.warnings = warnings.into();
        self
    }

    fn about(
        code: u16,
        reason: &'static str,
        group: &str,
        resource: &str,
        name: &str,
        message: String,
    ) -> Self {
        Status { details: details(group, resource, name), ..Status::new(code, reason, message) }
    }

    /// 404: no such object.
    pub fn not_found(group: &str, resource: &str, name: &str) -> Self {
        let message = format!("{} {name:?} not found", qualified(group, resource));
        Status::about(404, "NotFound", group, resource, name, message)
    }

    /// 409: the name is taken.
    pub fn already_exists(group: &str, resource: &str, name: &str) -> Self {
        let message = format!("{} {name:?} already exists", qualified(group, resource));
        Status::about(409, "AlreadyExists", group, resource, name, message)
    }

    /// 409: every generated name was taken.
    pub fn generated_name_conflict(group: &str, resource: &str, name: &str) -> Self {
        let message = format!(
            "{} {name:?} already exists, the server was not able to generate a unique name for the object",
            qualified(group, resource)
        );
        let mut status = Status::about(409, "AlreadyExists", group, resource, name, message);
        status.details.insert("retryAfterSeconds".to_owned(), Value::from(1));
        status
    }

    /// 409: `why` is what follows `Operation cannot be fulfilled on … "name": `.
    pub fn conflict(group: &str, resource: &str, name: &str, why: &str) -> Self {
        let message =
            format!("Operation cannot be fulfilled on {} {name:?}: {why}", qualified(group, resource));
        Status::about(409, "Conflict", group, resource, name, message)
    }

    /// 409: somebody else wrote in between.
    pub fn modified(group: &str, resource: &str, name: &str) -> Self {
        Status::conflict(
            group,
            resource,
            name,
            "the object has been modified; please apply your changes to the latest version and try again",
        )
    }

    /// 403 about one object.
    pub fn forbidden(group: &str, resource: &str, name: &str, why: &str) -> Self {
        let resource_text = qualified(group, resource);
        let message = if name.is_empty() {
            format!("{resource_text} is forbidden: {why}")
        } else {
            format!("{resource_text} {name:?} is forbidden: {why}")
        };
        Status::about(403, "Forbidden", group, resource, name, message)
    }

    /// 422 with one cause per wrong field. `details.kind` is the kind, not the plural, as upstream has it.
    pub fn invalid(group: &str, kind: &str, name: &str, causes: Vec<Cause>) -> Self {
        let texts: Vec<String> = causes.iter().map(ToString::to_string).collect();
        let mut distinct: Vec<String> = Vec::with_capacity(texts.len());
        for text in texts {
            if !distinct.contains(&text) {
                distinct.push(text);
            }
        }
        let list = match distinct.as_slice() {
            [one] => one.clone(),
            many => format!("[{}]", many.join(", ")),
        };
        let message = format!("{} {name:?} is invalid: {list}", qualified(group, kind));
        Status { causes, ..Status::about(422, "Invalid", group, kind, name, message) }
    }

    /// 400.
    pub fn bad_request(message: impl Into<String>) -> Self {
        Status::new(400, "BadRequest", message)
    }

    /// 405: the resource has no such verb.
    pub fn method_not_supported(group: &str, resource: &str, verb: &str) -> Self {
        let message =
            format!("{verb} is not supported on resources of kind {:?}", qualified(group, resource));
        Status::about(405, "MethodNotAllowed", group, resource, "", message)
    }

    /// 410: the revision asked for is no longer known.
    pub fn expired(message: impl Into<String>) -> Self {
        Status::new(410, "Expired", message)
    }

    /// 504: the revision asked for is not known yet.
    pub fn too_large_resource_version(wanted: u64, current: u64) -> Self {
        let message = format!("Timeout: Too large resource version: {wanted}, current: {current}");
        let mut status = Status::new(504, "Timeout", message);
        status.details.insert("retryAfterSeconds".to_owned(), Value::from(1));
        status.causes.push(Cause::text("ResourceVersionTooLarge", "", "Too large resource version"));
        status
    }

    /// 415 listing what would be accepted.
    pub fn unsupported_media_type(accepted: &[&str]) -> Self {
        Status::new(
            415,
            "UnsupportedMediaType",
            format!(
                "the body of the request was in an unknown format - accepted media types include: {}",
                accepted.join(", ")
            ),
        )
    }

    /// 406 listing what could be answered.
    pub fn not_acceptable(offered: &[&str]) -> Self {
        Status::new(
            406,
            "NotAcceptable",
            format!("only the following media types are accepted: {}", offered.join(", ")),
        )
    }

    /// 413.
    pub fn too_large(limit: usize) -> Self {
        Status::new(413, "RequestEntityTooLarge", format!("Request entity too large: limit is {limit}"))
    }

    /// 429 with the second after which to retry.
    pub fn too_many_requests(message: impl Into<String>, retry_after: u32) -> Self {
        let mut status = Status::new(429, "TooManyRequests", message);
        if retry_after > 0 {
            status.details.insert("retryAfterSeconds".to_owned(), Value::from(retry_after));
        }
        status
    }

    /// 500.
    pub fn internal(why: &str) -> Self {
        let mut status = Status::new(500, "InternalError", format!("Internal error occurred: {why}"));
        status.causes.push(Cause::text("", "", why));
        status
    }

    /// Returns true if this is a 404.
    pub fn is_not_found(&self) -> bool {
        self.reason == "NotFound"
    }

    /// Returns true if this is a write conflict.
    pub fn is_conflict(&self) -> bool {
        self.reason == "Conflict"
    }

    /// Returns true if the name was taken.
    pub fn is_already_exists(&self) -> bool {
        self.reason == "AlreadyExists"
    }

    /// The `Status` object that goes over the wire.
    pub fn to_value(&self) -> Value {
        if let Some(told) = &self.told {
            return Value::clone(told);
        }
        let mut details = self.details.clone();
        if !self.causes.is_empty() {
            details.insert("causes".to_owned(), self.causes.iter().map(cause_value).collect());
        }
        let mut status = json!({
            "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
            "message": self.message,
        });
        if !self.reason.is_empty() {
            status["reason"] = Value::from(self.reason);
        }
        // Answers about paths and verbs have details with nothing in them, where others have none.
        let general = matches!(self.code, 403 | 404 | 405 | 422);
        if !details.is_empty() || general {
            status["details"] = Value::Object(details);
        }
        status["code"] = Value::from(self.code);
        status
    }
}

fn cause_value(cause: &Cause) -> Value {
    let mut map = Map::new();
    for (key, value) in [("reason", &cause.reason), ("message", &cause.message), ("field", &cause.field)] {
        if !value.is_empty() {
            map.insert(key.to_owned(), Value::from(value.as_str()));
        }
    }
    Value::Object(map)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn not_found_reads_like_upstream() {
        let status = Status::not_found("apps", "deployments", "web").to_value();
        assert_eq!(status["message"], "deployments.apps \"web\" not found");
        assert_eq!(status["details"], json!({"name": "web", "group": "apps", "kind": "deployments"}));
        assert_eq!(status["code"], 404);
    }

    #[test]
    fn several_causes_stand_in_brackets() {
        let causes = vec![
            Cause::required("spec.selector", ""),
            Cause::invalid("spec.replicas", &json!(-1), "must be greater than or equal to 0"),
        ];
        let status = Status::invalid("apps", "Deployment", "web", causes);
        assert_eq!(
            status.message,
            "Deployment.apps \"web\" is invalid: [spec.selector: Required value, \
             spec.replicas: Invalid value: -1: must be greater than or equal to 0]"
        );
        assert_eq!(status.to_value()["details"]["causes"][1]["field"], "spec.replicas");
    }
}
