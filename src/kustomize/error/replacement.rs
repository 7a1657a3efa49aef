//! Errors of replacements.

use super::{Limit, SelectorError};
use serde_json::Value;
use std::fmt;

/// Why an entry of `replacements` cannot be built.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ReplacementError {
    /// The entry has a path and more.
    PathAndMore,
    /// The entry has no source.
    NoSource,
    /// The entry has both `source` and `sourceValue`.
    BothSources,
    /// The entry has no targets.
    NoTargets,
    /// A target has no `select`.
    NoSelect,
    /// The source selects no object.
    NothingSelected {
        /// The kind; empty where the source gives none.
        kind: String,
        /// Kind, namespace and name, as far as the source gives them.
        selector: String,
    },
    /// The source selects several objects.
    SeveralSelected {
        /// Kind, namespace and name, as far as the source gives them.
        selector: String,
    },
    /// The object of the source does not have the field.
    NoSourceField {
        /// Kind, namespace and name of the object.
        object: String,
        /// The path of the field, with dots.
        path: String,
    },
    /// A delimiter for a list or a map.
    Delimiter,
    /// The source does not have so many parts.
    NoPart {
        /// The index of the part.
        index: i64,
        /// The whole value.
        value: String,
    },
    /// A part of a path in brackets that is not `[field=value]`.
    Condition {
        /// The part.
        part: String,
    },
    /// `*` in the path of a source.
    Star,
    /// There is no map that could have a field.
    NoMap {
        /// The field.
        field: String,
    },
    /// There is no list.
    NoList,
    /// A list does not have so many items.
    NoItem {
        /// The index.
        index: usize,
        /// The number of them.
        count: usize,
    },
    /// The value of `[field=value]` is not a pattern.
    Pattern {
        /// The pattern.
        pattern: String,
        /// The error.
        message: String,
    },
    /// The target does not have the field.
    NoTargetField,
    /// The path leads into YAML that a string holds.
    YamlInText,
    /// A value of another type stands in the field.
    Type {
        /// The new value.
        new: String,
        /// The value that is there.
        there: Value,
    },
    /// A selector of labels or annotations cannot be read.
    Selector(SelectorError),
    /// The replacement needs more than opdev lets it.
    Limit(Limit),
    /// The value cannot be copied into a field.
    InTarget {
        /// Kind, namespace and name of the object.
        object: String,
        /// The path of the field, with dots.
        path: String,
        /// The error.
        source: Box<ReplacementError>,
    },
}

impl From<SelectorError> for ReplacementError {
    fn from(error: SelectorError) -> ReplacementError {
        ReplacementError::Selector(error)
    }
}

impl From<Limit> for ReplacementError {
    fn from(limit: Limit) -> ReplacementError {
        ReplacementError::Limit(limit)
    }
}

impl fmt::Display for ReplacementError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ReplacementError::PathAndMore => f.write_str("it has a path and more"),
            ReplacementError::NoSource => f.write_str("it has no source"),
            ReplacementError::BothSources => f.write_str("it has both source and sourceValue"),
            ReplacementError::NoTargets => f.write_str("it has no targets"),
            ReplacementError::NoSelect => f.write_str("a target has no select"),
            ReplacementError::NothingSelected { selector, .. } => {
                write!(f, "the source selects nothing ({selector})")
            }
            ReplacementError::SeveralSelected { selector } => {
                write!(f, "the source selects more than one object ({selector})")
            }
            ReplacementError::NoSourceField { object, path } => write!(f, "{object} has no field {path}"),
            ReplacementError::Delimiter => f.write_str("a delimiter is for plain values"),
            ReplacementError::NoPart { index, value } => write!(f, "there is no part {index} in {value:?}"),
            ReplacementError::Condition { part } => {
                write!(f, "{part} is not of the form [field=value]")
            }
            ReplacementError::Star => f.write_str("* has no place in the path of a source"),
            ReplacementError::NoMap { field } => {
                write!(f, "there is no map that could have a field {field}")
            }
            ReplacementError::NoList => f.write_str("there is no list"),
            ReplacementError::NoItem { index, count } => {
                write!(f, "there is no item {index}, only {count}")
            }
            ReplacementError::Pattern { pattern, message } => {
                write!(f, "{pattern:?} is no pattern: {message}")
            }
            ReplacementError::NoTargetField => f.write_str("there is no such field"),
            ReplacementError::YamlInText => f.write_str(
                "it leads into YAML inside of a string, which opdev does not write anew; let `kubectl kustomize` build it",
            ),
            ReplacementError::Type { new, there } => write!(f, "{new} cannot take the place of {there}"),
            ReplacementError::Selector(error) => error.fmt(f),
            ReplacementError::Limit(limit) => limit.fmt(f),
            ReplacementError::InTarget { object, path, source } => write!(f, "{object}: {path}: {source}"),
        }
    }
}
