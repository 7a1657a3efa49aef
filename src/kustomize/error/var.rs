//! Errors of `vars`.

use std::fmt;

/// An error of a var.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum VarError {
    /// Two kustomizations of one build name it.
    Twice {
        /// Its name.
        name: String,
    },
    /// Its `objref` means several objects.
    Several {
        /// Its name.
        name: String,
    },
    /// Its `objref` means none of the objects.
    NoObject {
        /// Its name.
        name: String,
    },
    /// The object has nothing at its `fieldref`.
    NoField {
        /// Its name.
        name: String,
        /// The path.
        path: String,
        /// The object.
        object: String,
    },
    /// A text would grow beyond all need.
    TooLong,
}

impl fmt::Display for VarError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            VarError::Twice { name } => write!(f, "the var {name} is there twice"),
            VarError::Several { name } => write!(f, "objref of the var {name} means several objects"),
            VarError::NoObject { name } => write!(f, "objref of the var {name} means no object"),
            VarError::NoField { name, path, object } => {
                write!(f, "{object} has no field {path}, which the var {name} stands for")
            }
            VarError::TooLong => f.write_str("a text with vars gets too long"),
        }
    }
}

impl std::error::Error for VarError {}
