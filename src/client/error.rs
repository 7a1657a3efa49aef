//! Why a call failed: one error for every caller. Errors of kube's own client become it, too.

use crate::error_words::without_long_values;
use http::StatusCode;
use kube::core::response::StatusDetails;
use opdev_event::{mask, words};
use opdev_object::meta::Gvk;
use serde_json::Value;
use std::fmt;

/// Why a call failed.
#[derive(Debug)]
pub enum ApiError {
    /// The API server refused: the HTTP status, and what its `Status` says.
    Refused { code: u16, reason: String, message: String, details: Option<Box<StatusDetails>> },
    /// No answer came.
    Unreachable(String),
    /// The API server answers, and does not serve the kind.
    NotServed(Gvk),
    /// A chart names a kind that is not served: in Helm's words, which the status of a custom resource
    /// repeats.
    NoMatch(Gvk),
    /// Nothing may be written.
    ReadOnly,
}

impl ApiError {
    /// The refusal that an answer is.
    pub(crate) fn refusal(status: StatusCode, body: &Value) -> ApiError {
        let text = |field: &str| body.get(field).and_then(Value::as_str).unwrap_or_default().to_owned();
        let details = body.get("details").and_then(|details| serde_json::from_value(details.clone()).ok());
        let details = details.map(|mut details: StatusDetails| {
            for cause in &mut details.causes {
                cause.message = without_long_values(&cause.message);
            }
            Box::new(details)
        });
        let message = body.as_str().map_or_else(|| text("message"), |body| body.trim().to_owned());
        ApiError::Refused {
            code: status.as_u16(),
            reason: text("reason"),
            message: without_long_values(&message),
            details,
        }
    }

    /// The error of a call, below whatever was said about it.
    pub fn of(error: &anyhow::Error) -> Option<&ApiError> {
        error.downcast_ref()
    }

    /// The HTTP status of a refusal.
    pub fn code(&self) -> Option<u16> {
        match self {
            ApiError::Refused { code, .. } => Some(*code),
            ApiError::Unreachable(_) | ApiError::NotServed(_) | ApiError::NoMatch(_) | ApiError::ReadOnly => {
                None
            }
        }
    }

    /// Returns true if an object has changed since the revision that a write was made for.
    pub fn is_conflict(&self) -> bool {
        matches!(self, ApiError::Refused { reason, .. } if reason == "Conflict")
    }

    pub fn is_not_found(&self) -> bool {
        self.code() == Some(404)
    }

    pub fn is_forbidden(&self) -> bool {
        self.code() == Some(403)
    }

    pub fn already_exists(&self) -> bool {
        matches!(self, ApiError::Refused { reason, .. } if reason == "AlreadyExists")
    }
}

impl From<kube::Error> for ApiError {
    fn from(error: kube::Error) -> Self {
        match error {
            kube::Error::Api(status) => ApiError::Refused {
                code: status.code,
                reason: status.reason,
                message: status.message,
                details: status.details.map(Box::new),
            },
            other => ApiError::Unreachable(words::error(&other)),
        }
    }
}

impl fmt::Display for ApiError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ApiError::Refused { message, reason, code, .. } if message.is_empty() => {
                write!(f, "the API server answered {code} {reason}")
            }
            ApiError::Refused { message, .. } => f.write_str(message),
            ApiError::Unreachable(why) => write!(f, "no answer from the API server: {why}"),
            ApiError::NotServed(gvk) => {
                write!(f, "the API server does not serve {gvk}: its CustomResourceDefinition is missing")
            }
            ApiError::NoMatch(gvk) => {
                let (kind, version) = (&gvk.kind, gvk.api_version());
                write!(
                    f,
                    "no matches for kind \"{kind}\" in version \"{version}\"\nensure CRDs are installed first"
                )
            }
            ApiError::ReadOnly => f.write_str("nothing is written: opdev is read-only on this cluster"),
        }
    }
}

impl std::error::Error for ApiError {}

pub fn is_not_found(error: &anyhow::Error) -> bool {
    ApiError::of(error).is_some_and(ApiError::is_not_found)
}

pub fn is_forbidden(error: &anyhow::Error) -> bool {
    ApiError::of(error).is_some_and(ApiError::is_forbidden)
}

/// Returns true if an object has changed since the revision that a write was made for.
pub fn is_conflict(error: &anyhow::Error) -> bool {
    ApiError::of(error).is_some_and(ApiError::is_conflict)
}

/// A refusal repeats values of the object, in its message and in that of each cause. Those under secret
/// names, and all of a Secret's, are masked.
pub fn without_secrets(error: anyhow::Error, object: &Value) -> anyhow::Error {
    let mut secrets = mask::secrets(object);
    if object["kind"] == "Secret" {
        let values = ["data", "stringData"].into_iter().filter_map(|field| object.get(field)?.as_object());
        secrets.extend(values.flat_map(serde_json::Map::values).filter_map(Value::as_str).map(str::to_owned));
    }
    match error.downcast::<ApiError>() {
        Ok(ApiError::Refused { code, reason, message, mut details }) => {
            let message = mask::text(&message, &secrets);
            for cause in details.iter_mut().flat_map(|details| &mut details.causes) {
                cause.message = mask::text(&cause.message, &secrets);
            }
            ApiError::Refused { code, reason, message, details }.into()
        }
        Ok(other) => other.into(),
        Err(other) => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_part_of_a_refusal_shows_a_secret() {
        let object = serde_json::json!({"kind": "Web", "spec": {"password": "hunter2-canary"}});
        let why = "Invalid value: \"hunter2-canary\": should be at least 20 chars long";
        let body = serde_json::json!({"reason": "Invalid", "message": format!("Web \"a\" is invalid: spec.password: {why}"),
            "details": {"causes": [{"field": "spec.password", "message": why, "reason": "FieldValueInvalid"}]}});
        let refused = ApiError::refusal(StatusCode::UNPROCESSABLE_ENTITY, &body);
        let told = format!("{:?}", without_secrets(refused.into(), &object).downcast::<ApiError>().unwrap());
        assert!(!told.contains("canary"), "{told}");
        assert!(
            told.contains("should be at least 20 chars long") && told.contains("spec.password"),
            "{told}"
        );
    }

    #[test]
    fn errors_say_what_the_server_said() {
        let body = serde_json::json!({"reason": "Conflict", "message": "try again"});
        let refused = ApiError::refusal(StatusCode::CONFLICT, &body);
        assert!(refused.is_conflict());
        assert_eq!(refused.to_string(), "try again");
        let missing = ApiError::NoMatch(Gvk::new("g", "v1", "Thing"));
        assert_eq!(
            missing.to_string(),
            "no matches for kind \"Thing\" in version \"g/v1\"\nensure CRDs are installed first"
        );
    }
}
