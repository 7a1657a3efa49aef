//! Why a marker cannot be applied, in the words of controller-gen.

use serde_json::Value;
use std::fmt;

/// Why a marker cannot be applied to a field, a type or a kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum MarkerError {
    /// It is for values of another type.
    Misplaced {
        /// The marker, such as `maxitem`.
        what: String,
        /// The type that it is for, such as `an array`.
        wanted: &'static str,
        /// The type that is there, where the message names it.
        found: Option<String>,
    },
    /// Its value is none of those that it can have.
    Choice { what: &'static str, choices: &'static str },
    /// A limit that is not whole, of an integer.
    NotIntegral { what: &'static str, value: Value },
    /// It wants a text.
    NotAText { found: &'static str },
    /// The reason of a rule is none.
    Reason { reason: String, known: [&'static str; 4] },
    /// An address cannot be read.
    Url { url: String, why: &'static str },
    /// The kind has no such version.
    NoVersion { what: &'static str, version: String },
    /// The only version of a kind cannot be left out.
    OnlyVersion,
    /// An annotation or a label is no pair of key and value.
    NotAPair { what: &'static str, text: String },
    /// It names fields of fields.
    NestedFields { marker: &'static str, fields: Vec<String> },
}

impl MarkerError {
    pub(crate) fn misplaced(what: impl Into<String>, wanted: &'static str) -> MarkerError {
        MarkerError::Misplaced { what: what.into(), wanted, found: None }
    }

    /// This error with the type that is there.
    pub(crate) fn misplaced_on(
        what: impl Into<String>,
        wanted: &'static str,
        found: impl Into<String>,
    ) -> MarkerError {
        MarkerError::Misplaced { what: what.into(), wanted, found: Some(found.into()) }
    }
}

impl fmt::Display for MarkerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            MarkerError::Misplaced { what, wanted, found: None } => {
                write!(f, "must apply {what} to {wanted}")
            }
            MarkerError::Misplaced { what, wanted, found: Some(found) } => {
                write!(f, "must apply {what} to {wanted}, found {found}")
            }
            MarkerError::Choice { what, choices } => write!(f, "{what} must be either {choices}"),
            MarkerError::NotIntegral { what, value } => {
                write!(f, "cannot apply non-integral {what} validation ({value}) to integer value")
            }
            MarkerError::NotAText { found } => write!(f, "expected string, got {found}"),
            MarkerError::Reason { reason, known: [a, b, c, d] } => {
                write!(f, "invalid reason {reason}, valid values are {a}, {b}, {c} and {d}")
            }
            MarkerError::Url { url, why } => {
                write!(f, "invalid url {url:?} in kubebuilder:externalDocs marker: parse {url:?}: {why}")
            }
            MarkerError::NoVersion { what, version } => {
                write!(f, "{what} applied to version {version:?} not in CRD")
            }
            MarkerError::OnlyVersion => {
                f.write_str("cannot skip a version if there is only a single version")
            }
            MarkerError::NotAPair { what, text } => write!(f, "{what} {text} is not in 'xxx=xxx' format"),
            MarkerError::NestedFields { marker, fields } => {
                write!(f, "{marker}: cannot reference nested fields: {}", fields.join(","))
            }
        }
    }
}

impl std::error::Error for MarkerError {}
