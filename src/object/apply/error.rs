//! Why an apply is refused, with the texts of the server.

use crate::fieldset::{Element, FieldPath, FieldsV1Error, ItemError};
use std::fmt;

/// One field that another manager owns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conflict {
    /// The other manager's name.
    pub manager: String,
    /// The other manager as the server prints it: `"kubectl-edit" using apps/v1`.
    pub shown: String,
    /// The field.
    pub path: FieldPath,
}

impl Conflict {
    /// The text of the cause in a `Status`.
    pub fn message(&self) -> String {
        format!("conflict with {}", self.shown)
    }
}

/// Why an apply is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ApplyError {
    /// Other managers own fields with other values (409).
    Conflicts(Vec<Conflict>),
    /// The request cannot be meant (400).
    BadRequest(RequestError),
    /// The configuration, or the live object, does not fit the schema (500 on the real server).
    Typed(TypedError),
}

/// Why a request to apply cannot be meant.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RequestError {
    /// The configuration has `metadata.managedFields`.
    ManagedFields,
    /// The configuration has another version than the request.
    Version {
        /// The version of the configuration.
        found: String,
        /// The version of the request.
        expected: String,
    },
}

/// Why objects cannot be merged by their schema. An `object` is what the server calls it: namespace, name,
/// kind.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TypedError {
    /// The managed fields of the live object cannot be read.
    ManagedFields(ManagedFieldsError),
    /// A live object without managers does not fit the schema.
    New {
        /// The object.
        object: String,
        /// The mismatches.
        source: Mismatches,
    },
    /// The live object does not fit the schema.
    Live {
        /// The object.
        object: String,
        /// The mismatches.
        source: Mismatches,
    },
    /// The configuration does not fit the schema.
    Applied {
        /// The object.
        object: String,
        /// The mismatches.
        source: Mismatches,
    },
    /// The configuration cannot be merged into the live object.
    Merge(MergeError),
    /// An object cannot be had at a version at which a manager wrote.
    Version {
        /// The object, as the server says it; empty where it does not.
        what: String,
        /// Why not.
        source: VersionError,
    },
}

/// Why an object cannot be had at another version of its kind.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum VersionError {
    /// The kind does not have that version.
    Unknown {
        /// The version.
        api_version: String,
    },
    /// The conversion fails.
    Conversion {
        /// The server's error.
        message: String,
    },
    /// The converted object does not fit the schema of the version.
    Mismatch(Mismatches),
}

/// Why `metadata.managedFields` cannot be read. An `entry` is its place in the list, from 0.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ManagedFieldsError {
    /// The operation of an entry is neither `Apply` nor `Update`.
    Operation,
    /// An entry has no version.
    NoApiVersion,
    /// An entry does not say the type of its fields.
    NoFieldsType {
        /// The entry.
        entry: usize,
    },
    /// An entry has fields of an unknown type.
    FieldsType {
        /// The entry.
        entry: usize,
        /// The type.
        found: String,
    },
    /// The fields of an entry cannot be read.
    Fields(FieldsV1Error),
}

/// The places of an object that do not fit its schema; never empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mismatches(pub Vec<Mismatch>);

/// One place of an object that does not fit its schema.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mismatch {
    /// The place: `.spec.ports[0]`; empty for the object itself.
    pub path: String,
    /// The mismatch there.
    pub kind: MismatchKind,
}

/// The kind of a mismatch between an object and its schema.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum MismatchKind {
    /// The schema does not have the field.
    NotDeclared,
    /// Another type is expected.
    Type {
        /// The expected type, such as `map`.
        expected: &'static str,
        /// The value that is there, as Go prints it.
        found: String,
    },
    /// An item of a list cannot be told apart.
    Item {
        /// The place in the list.
        index: usize,
        /// Why not.
        source: ItemError,
    },
    /// Two items of a list are the same.
    Duplicate(Element),
}

/// Why two objects cannot be merged, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MergeError {
    /// The path to the place, the innermost element first.
    path: Vec<Element>,
    /// The error there.
    kind: MergeErrorKind,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum MergeErrorKind {
    Item { index: usize, source: ItemError },
    Duplicate(Element),
}

/// Why a patch cannot be laid over an object.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum OverlayError {
    /// The patch does not fit the schema.
    Patch(Mismatches),
    /// The patch replaces lists or maps that the schema says are one value.
    Atomic {
        /// Their places.
        paths: Vec<String>,
    },
    /// The patch cannot be merged.
    Merge(MergeError),
}

impl MergeError {
    pub(super) fn item(index: usize, source: ItemError) -> MergeError {
        MergeError { path: Vec::new(), kind: MergeErrorKind::Item { index, source } }
    }

    pub(super) fn duplicate(element: Element) -> MergeError {
        MergeError { path: Vec::new(), kind: MergeErrorKind::Duplicate(element) }
    }

    /// This error for the map or list that has the field or item.
    pub(super) fn below(mut self, element: Element) -> MergeError {
        self.path.push(element);
        self
    }

    /// The path to the place that is wrong, from the object on.
    pub fn path(&self) -> impl Iterator<Item = &Element> {
        self.path.iter().rev()
    }
}

impl fmt::Display for ApplyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let conflicts = match self {
            ApplyError::BadRequest(error) => return error.fmt(f),
            ApplyError::Typed(error) => return error.fmt(f),
            ApplyError::Conflicts(conflicts) => conflicts,
        };
        if let [one] = conflicts.as_slice() {
            return write!(f, "Apply failed with 1 conflict: conflict with {}: {}", one.shown, one.path);
        }
        write!(f, "Apply failed with {} conflicts: ", conflicts.len())?;
        let mut last = None;
        for conflict in conflicts {
            if last != Some(&conflict.shown) {
                let line_break = if last.is_some() { "\n" } else { "" };
                write!(f, "{line_break}conflicts with {}:", conflict.shown)?;
                last = Some(&conflict.shown);
            }
            write!(f, "\n- {}", conflict.path)?;
        }
        Ok(())
    }
}

impl fmt::Display for RequestError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RequestError::ManagedFields => f.write_str("metadata.managedFields must be nil"),
            RequestError::Version { found, expected } => write!(
                f,
                "Incorrect version specified in apply patch. Specified patch version: {found}, expected: {expected}"
            ),
        }
    }
}

impl fmt::Display for TypedError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TypedError::ManagedFields(error) => write!(f, "failed to decode managed fields: {error}"),
            TypedError::New { object, source } => write!(
                f,
                "failed to create manager for existing fields: failed to convert new object ({object}) to smd typed: {source}"
            ),
            TypedError::Live { object, source } => {
                write!(f, "failed to create typed live object ({object}): {source}")
            }
            TypedError::Applied { object, source } => {
                write!(f, "failed to create typed patch object ({object}): {source}")
            }
            TypedError::Merge(error) => write!(f, "failed to merge config: {error}"),
            TypedError::Version { what, source } if what.is_empty() => source.fmt(f),
            TypedError::Version { what, source } => write!(f, "failed to convert {what}: {source}"),
        }
    }
}

impl fmt::Display for VersionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            VersionError::Unknown { api_version } => {
                write!(f, "request to convert CR to an invalid group/version: {api_version}")
            }
            VersionError::Conversion { message } => f.write_str(message),
            VersionError::Mismatch(error) => error.fmt(f),
        }
    }
}

impl fmt::Display for ManagedFieldsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ManagedFieldsError::Operation => f.write_str("operation must be `Apply` or `Update`"),
            ManagedFieldsError::NoApiVersion => f.write_str("apiVersion must not be empty"),
            ManagedFieldsError::NoFieldsType { entry } => {
                write!(f, "missing fieldsType in managed fields entry {entry}")
            }
            ManagedFieldsError::FieldsType { entry, found } => {
                write!(f, "invalid fieldsType \"{found}\" in managed fields entry {entry}")
            }
            ManagedFieldsError::Fields(error) => write!(f, "error decoding set: {error}"),
        }
    }
}

impl fmt::Display for Mismatches {
    /// Prints one mismatch as it is, several as a list.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.as_slice() {
            [one] => one.fmt(f),
            many => {
                f.write_str("errors:")?;
                many.iter().try_for_each(|one| write!(f, "\n  {one}"))
            }
        }
    }
}

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.path.is_empty() {
            write!(f, "{}: ", self.path)?;
        }
        match &self.kind {
            MismatchKind::NotDeclared => f.write_str("field not declared in schema"),
            MismatchKind::Type { expected, found } => write!(f, "expected {expected}, got {found}"),
            MismatchKind::Item { index, source } => write!(f, "element {index}: {source}"),
            MismatchKind::Duplicate(element) => write!(f, "duplicate entries for key {element}"),
        }
    }
}

impl fmt::Display for MergeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.path().try_for_each(|element| element.fmt(f))?;
        match &self.kind {
            MergeErrorKind::Item { index, source } => write!(f, ": element {index}: {source}"),
            MergeErrorKind::Duplicate(element) => write!(f, ": duplicate entries for key {element}"),
        }
    }
}

impl fmt::Display for OverlayError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            OverlayError::Patch(error) => {
                write!(f, "failed to convert patch object to typed object: {error}")
            }
            OverlayError::Atomic { paths } => write!(
                f,
                "invalid ApplyConfiguration: may not mutate atomic arrays, maps or structs: {}",
                paths.join(", ")
            ),
            OverlayError::Merge(error) => write!(f, "failed to merge patch: {error}"),
        }
    }
}

impl std::error::Error for ApplyError {}

impl std::error::Error for OverlayError {}

impl std::error::Error for VersionError {}

impl From<Mismatches> for VersionError {
    fn from(error: Mismatches) -> VersionError {
        VersionError::Mismatch(error)
    }
}

impl From<TypedError> for ApplyError {
    fn from(error: TypedError) -> ApplyError {
        ApplyError::Typed(error)
    }
}

impl TypedError {
    /// The error of an object at another version of which the server says nothing more.
    pub(super) fn version(source: VersionError) -> TypedError {
        TypedError::Version { what: String::new(), source }
    }
}
