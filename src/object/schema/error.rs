//! Errors about one field, with the texts and reasons of apimachinery's field errors.

use crate::go::number::float as go_float;
use crate::go::quote::quote;
use serde_json::Value;
use std::fmt;

/// Why a field is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// It is missing.
    Required,
    /// Its value is not allowed.
    Invalid,
    /// Its value is not one of a list.
    NotSupported,
    /// Its value has the wrong type.
    TypeInvalid,
    /// It is too long.
    TooLong,
    /// It has too many items.
    TooMany,
    /// It repeats another one.
    Duplicate,
    /// It must not be there.
    Forbidden,
    /// A reference to something that does not exist.
    NotFound,
    /// It could not be checked.
    Internal,
}

impl Reason {
    /// The machine-readable cause in a `Status`, such as `FieldValueInvalid`.
    pub fn cause(self) -> &'static str {
        match self {
            Reason::Required => "FieldValueRequired",
            Reason::Invalid => "FieldValueInvalid",
            Reason::NotSupported => "FieldValueNotSupported",
            Reason::TypeInvalid => "FieldValueTypeInvalid",
            Reason::TooLong => "FieldValueTooLong",
            Reason::TooMany => "FieldValueTooMany",
            Reason::Duplicate => "FieldValueDuplicate",
            Reason::Forbidden => "FieldValueForbidden",
            Reason::NotFound => "FieldValueNotFound",
            Reason::Internal => "InternalError",
        }
    }

    fn title(self) -> &'static str {
        match self {
            Reason::Required => "Required value",
            Reason::Invalid | Reason::TypeInvalid => "Invalid value",
            Reason::NotSupported => "Unsupported value",
            Reason::TooLong => "Too long",
            Reason::TooMany => "Too many",
            Reason::Duplicate => "Duplicate value",
            Reason::Forbidden => "Forbidden",
            Reason::NotFound => "Not found",
            Reason::Internal => "Internal error",
        }
    }
}

/// One refused field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldError {
    /// Where, as Kubernetes prints it: `spec.replicas`; `<nil>` where a rule spans several fields.
    pub path: String,
    /// Why.
    pub reason: Reason,
    /// The text after the path, as a `Status` cause carries it.
    pub message: String,
}

impl fmt::Display for FieldError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.path, self.message)
    }
}

impl std::error::Error for FieldError {}

impl FieldError {
    fn build(path: impl Into<String>, reason: Reason, value: Option<&Value>, detail: &str) -> Self {
        let mut message = reason.title().to_owned();
        if let Some(value) = value {
            message.push_str(": ");
            message.push_str(&shown(value));
        }
        if !detail.is_empty() {
            message.push_str(": ");
            message.push_str(detail);
        }
        FieldError { path: path.into(), reason, message }
    }

    /// A missing field.
    pub fn required(path: impl Into<String>, detail: &str) -> Self {
        Self::build(path, Reason::Required, None, detail)
    }

    /// A wrong value.
    pub fn invalid(path: impl Into<String>, value: &Value, detail: &str) -> Self {
        Self::build(path, Reason::Invalid, Some(value), detail)
    }

    /// A wrong value whose text somebody else wrote.
    pub fn invalid_shown(path: impl Into<String>, shown: &str, detail: &str) -> Self {
        let message = format!("{}: {shown}: {detail}", Reason::Invalid.title());
        FieldError { path: path.into(), reason: Reason::Invalid, message }
    }

    /// A wrong object or list, which is not shown.
    pub fn invalid_whole(path: impl Into<String>, detail: &str) -> Self {
        Self::build(path, Reason::Invalid, None, detail)
    }

    /// A repeated object or list, which is not shown.
    pub fn duplicate_of_whole(path: impl Into<String>) -> Self {
        Self::build(path, Reason::Duplicate, None, "")
    }

    /// Something that went wrong here.
    pub fn internal(path: impl Into<String>, detail: &str) -> Self {
        Self::build(path, Reason::Internal, None, detail)
    }

    /// A value of a wrong type.
    pub fn type_invalid(path: impl Into<String>, value: &Value, detail: &str) -> Self {
        Self::build(path, Reason::TypeInvalid, Some(value), detail)
    }

    /// A field that must not be there.
    pub fn forbidden(path: impl Into<String>, detail: &str) -> Self {
        Self::build(path, Reason::Forbidden, None, detail)
    }

    /// A repeated value.
    pub fn duplicate(path: impl Into<String>, value: &Value) -> Self {
        Self::build(path, Reason::Duplicate, Some(value), "")
    }

    /// A reference to something that does not exist.
    pub fn not_found(path: impl Into<String>, value: &Value) -> Self {
        Self::build(path, Reason::NotFound, Some(value), "")
    }

    /// A value that is not in the list of supported ones.
    pub fn not_supported<S: AsRef<str>>(path: impl Into<String>, value: &Value, supported: &[S]) -> Self {
        let quoted: Vec<String> = supported.iter().map(|s| quote(s.as_ref())).collect();
        let detail = if quoted.is_empty() {
            String::new()
        } else {
            format!("supported values: {}", quoted.join(", "))
        };
        Self::build(path, Reason::NotSupported, Some(value), &detail)
    }

    /// A text that is too long.
    pub fn too_long(path: impl Into<String>, most: i64) -> Self {
        let unit = if most == 1 { "byte" } else { "bytes" };
        Self::build(path, Reason::TooLong, None, &format!("may not be more than {most} {unit}"))
    }

    /// A list or object with too many entries.
    pub fn too_many(path: impl Into<String>, actual: usize, most: i64) -> Self {
        let unit = if most == 1 { "item" } else { "items" };
        let actual = Value::from(actual);
        Self::build(path, Reason::TooMany, Some(&actual), &format!("must have at most {most} {unit}"))
    }
}

/// A value as an error shows it.
fn shown(value: &Value) -> String {
    match value {
        Value::String(text) => quote(text),
        Value::Number(number) if number.is_f64() => go_float(number.as_f64().unwrap_or_default()),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn texts() {
        let cases = [
            (FieldError::required("spec.a", ""), "spec.a: Required value"),
            (FieldError::required("spec.a", "must be set"), "spec.a: Required value: must be set"),
            (FieldError::invalid("a", &json!("x\n"), "no"), "a: Invalid value: \"x\\n\": no"),
            (FieldError::invalid("a", &json!(1.5), "no"), "a: Invalid value: 1.5: no"),
            (FieldError::invalid("a", &json!(null), "no"), "a: Invalid value: null: no"),
            (FieldError::duplicate("a[1]", &json!({"k": 1})), "a[1]: Duplicate value: {\"k\":1}"),
            (FieldError::too_long("a", 1), "a: Too long: may not be more than 1 byte"),
            (FieldError::too_many("a", 3, 2), "a: Too many: 3: must have at most 2 items"),
            (
                FieldError::not_supported("a", &json!("x"), &["A", "B"]),
                "a: Unsupported value: \"x\": supported values: \"A\", \"B\"",
            ),
        ];
        for (error, text) in cases {
            assert_eq!(error.to_string(), text);
        }
    }
}
