//! Errors of patches.

use opdev_object::patch;
use serde_json::Value;
use std::fmt;

/// Why a patch cannot be applied.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PatchError {
    /// The entry has neither `patch` nor `path`.
    Neither,
    /// The entry has both `patch` and `path`.
    Both,
    /// The patch is empty.
    Empty,
    /// A JSON patch without a target.
    NoTarget,
    /// An entry of `patchesJson6902` without the name of a target.
    NoTargetName,
    /// A patch with a target that has several parts.
    SeveralParts,
    /// Not a list of JSON patch operations.
    NotOperations,
    /// A patch without a kind, which is not a JSON patch either.
    NoKind,
    /// A patch without `metadata.name`.
    NoName {
        /// The kind that it patches.
        kind: String,
    },
    /// There is no object that it could patch.
    NoObject {
        /// Kind, namespace and name.
        object: String,
    },
    /// Several objects have, or had, the name that it patches.
    SeveralObjects {
        /// The number of them.
        count: usize,
        /// Kind, namespace and name.
        object: String,
    },
    /// An operation of a JSON patch fails.
    Json {
        /// Kind, namespace and name of the object.
        object: String,
        /// The error.
        source: patch::PatchError,
    },
    /// A strategic merge fails.
    Merge {
        /// Kind, namespace and name of the object.
        object: String,
        /// The error, with its place.
        source: MergeError,
    },
}

impl fmt::Display for PatchError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PatchError::Neither => f.write_str("it has neither patch nor path"),
            PatchError::Both => f.write_str("it has both patch and path"),
            PatchError::Empty => f.write_str("the patch is empty"),
            PatchError::NoTarget => f.write_str("a JSON patch needs a target"),
            PatchError::NoTargetName => f.write_str("it needs a target with a name"),
            PatchError::SeveralParts => {
                f.write_str("a patch with a target is one part of an object, not several")
            }
            PatchError::NotOperations => f.write_str("it is no list of JSON patch operations"),
            PatchError::NoKind => {
                f.write_str("it is neither a JSON patch nor a part of an object: it has no kind")
            }
            PatchError::NoName { kind } => write!(f, "the patch of a {kind} has no metadata.name"),
            PatchError::NoObject { object } => write!(f, "there is no {object} that it could patch"),
            PatchError::SeveralObjects { count, object } => {
                write!(f, "{count} objects are, or were, {object}")
            }
            PatchError::Json { object, source } => write!(f, "{object}: {source}"),
            PatchError::Merge { object, source } => write!(f, "{object}{source}"),
        }
    }
}

/// Why a strategic merge fails, and in which field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MergeError {
    /// The names of the fields that lead to the place, the innermost first; lists are not named.
    path: Vec<String>,
    /// The error.
    pub kind: MergeErrorKind,
}

/// Why a strategic merge fails.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum MergeErrorKind {
    /// Patch and object have values of different forms: a list, a map or a plain value.
    Form,
    /// The directive `$patch` does not exist.
    Directive(Value),
}

impl MergeError {
    pub(crate) fn new(kind: MergeErrorKind) -> MergeError {
        MergeError { path: Vec::new(), kind }
    }

    /// This error for the map that has the field.
    pub(crate) fn below(mut self, field: &str) -> MergeError {
        self.path.push(field.to_owned());
        self
    }

    /// The names of the fields that lead to the place, from the object on; lists are not named.
    pub fn path(&self) -> impl Iterator<Item = &str> {
        self.path.iter().rev().map(String::as_str)
    }
}

impl fmt::Display for MergeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.path().try_for_each(|field| write!(f, ".{field}"))?;
        if !self.path.is_empty() {
            f.write_str(": ")?;
        }
        match &self.kind {
            MergeErrorKind::Form => f.write_str(
                "the patch has a list, a map or a plain value where the object has another of them",
            ),
            MergeErrorKind::Directive(directive) => {
                write!(f, "$patch: {directive} is neither delete, replace nor merge")
            }
        }
    }
}
