//! Why a version or a constraint cannot be read, in Masterminds' words.

use std::fmt;

/// Why a text is not a version.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum VersionError {
    /// The text does not have the form of a version.
    Form,
    /// A number does not fit into 64 bits.
    NumberOutOfRange {
        /// The digits as they are written.
        digits: String,
    },
    /// A number of the pre-release begins with 0.
    LeadingZero {
        /// The identifier of the pre-release.
        identifier: String,
    },
}

impl fmt::Display for VersionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            VersionError::Form => f.write_str("invalid semantic version"),
            VersionError::NumberOutOfRange { digits } => write!(
                f,
                "error parsing version segment: strconv.ParseUint: parsing \"{digits}\": value out of range"
            ),
            VersionError::LeadingZero { .. } => f.write_str("version segment starts with 0"),
        }
    }
}

impl std::error::Error for VersionError {}

/// Why a text is not a constraint.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ConstraintError {
    /// A part does not have the form of a constraint.
    Form {
        /// The part: an alternative between `||`, or one comparison of it.
        part: String,
    },
    /// The version of a comparison cannot be read.
    Version {
        /// The version as it is written.
        version: String,
        /// Why it cannot be read. Masterminds does not print it.
        source: VersionError,
    },
}

impl fmt::Display for ConstraintError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ConstraintError::Form { part } => write!(f, "improper constraint: {part}"),
            ConstraintError::Version { .. } => f.write_str("constraint parser error"),
        }
    }
}

impl std::error::Error for ConstraintError {}
