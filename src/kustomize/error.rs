//! Why a kustomization cannot be built: what, where, and what to do.

mod input;
mod object;
mod patch;
mod replacement;
mod var;

pub use input::{FileError, GeneratorError, KustomizationError, Limit};
pub use object::{FieldError, ObjectError, SelectorError};
pub use patch::{MergeError, MergeErrorKind, PatchError};
pub use replacement::ReplacementError;
pub use var::VarError;

use opdev_object::yaml;
use std::fmt;
use std::path::PathBuf;

/// Why a kustomization cannot be built, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    /// The file that is to blame.
    pub file: PathBuf,
    /// Its line, counted from 1; 0 where none can be named.
    pub line: u32,
    /// The error.
    pub kind: Box<ErrorKind>,
    /// The user's remedy.
    pub hint: Option<String>,
}

/// An error of a kustomization or of a file that it names.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// An entry of the kustomization cannot be built.
    InKey {
        /// The key, such as `resources`.
        key: String,
        /// The place in the list of the key, from 0.
        entry: Option<usize>,
        /// The error.
        source: Box<ErrorKind>,
    },
    /// A field of an object cannot be changed.
    InField {
        /// The path of the field, its parts joined by `/`.
        path: String,
        /// The error.
        source: Box<ErrorKind>,
    },
    /// An object cannot be changed.
    InObject {
        /// Kind, namespace and name of the object.
        object: String,
        /// The error.
        source: Box<ErrorKind>,
    },
    /// A file is not YAML, or holds YAML that an object cannot.
    Yaml {
        /// The error.
        message: String,
    },
    /// A file is YAML of another form than is expected.
    Form {
        /// The error.
        message: String,
    },
    /// A build needs more than opdev lets it.
    Limit(Limit),
    /// The file of a kustomization is missing or wrong.
    Kustomization(KustomizationError),
    /// A file or folder that the kustomization names cannot be read.
    File(FileError),
    /// An entry of `configMapGenerator` or `secretGenerator` is wrong.
    Generator(GeneratorError),
    /// An object is wrong.
    Object(ObjectError),
    /// A field of an object is not what is expected there, or the place of a field is wrong.
    Field(FieldError),
    /// A selector of objects cannot be read.
    Selector(SelectorError),
    /// A patch is wrong, or changes nothing.
    Patch(PatchError),
    /// An entry of `replacements` is wrong, or changes nothing.
    Replacement(ReplacementError),
    /// An entry of `vars` is wrong.
    Var(VarError),
}

impl Error {
    pub(crate) fn new(file: impl Into<PathBuf>, line: u32, kind: impl Into<ErrorKind>) -> Error {
        Error { file: file.into(), line, kind: Box::new(kind.into()), hint: None }
    }

    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Error {
        self.hint = Some(hint.into());
        self
    }

    /// The error of a file that is not YAML.
    pub(crate) fn yaml(file: impl Into<PathBuf>, error: yaml::Error) -> Error {
        Error::new(file, error.line, ErrorKind::Yaml { message: error.message })
    }

    /// The error of a file whose YAML has another form than is expected.
    pub(crate) fn form(file: impl Into<PathBuf>, error: &serde_json::Error) -> Error {
        Error::new(file, 0, ErrorKind::Form { message: error.to_string() })
    }
}

impl ErrorKind {
    /// The kind of the object that a patch or a replacement does not find.
    pub(crate) fn missing_kind(&self) -> Option<&str> {
        match self {
            ErrorKind::InKey { source, .. } => source.missing_kind(),
            ErrorKind::Patch(PatchError::NoObject { object }) => object.split(['.', ' ']).next(),
            ErrorKind::Replacement(ReplacementError::NothingSelected { kind, .. }) => {
                Some(kind.as_str()).filter(|kind| !kind.is_empty())
            }
            _ => None,
        }
    }

    /// This error, said of an object.
    pub(crate) fn in_object(self, object: String) -> ErrorKind {
        ErrorKind::InObject { object, source: Box::new(self) }
    }

    /// This error, said of a field.
    pub(crate) fn in_field(self, path: &str) -> ErrorKind {
        ErrorKind::InField { path: path.to_owned(), source: Box::new(self) }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.file.display())?;
        if self.line > 0 {
            write!(f, ":{}", self.line)?;
        }
        write!(f, ": {}", self.kind)?;
        match &self.hint {
            Some(hint) => write!(f, " ({hint})"),
            None => Ok(()),
        }
    }
}

impl fmt::Display for ErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ErrorKind::InKey { key, entry: Some(at), source } => write!(f, "{key}[{at}]: {source}"),
            ErrorKind::InKey { key, entry: None, source } => write!(f, "{key}: {source}"),
            ErrorKind::InField { path, source } => write!(f, "field {path}: {source}"),
            ErrorKind::InObject { object, source } => write!(f, "{object}: {source}"),
            ErrorKind::Yaml { message } | ErrorKind::Form { message } => f.write_str(message),
            ErrorKind::Limit(error) => error.fmt(f),
            ErrorKind::Kustomization(error) => error.fmt(f),
            ErrorKind::File(error) => error.fmt(f),
            ErrorKind::Generator(error) => error.fmt(f),
            ErrorKind::Object(error) => error.fmt(f),
            ErrorKind::Field(error) => error.fmt(f),
            ErrorKind::Selector(error) => error.fmt(f),
            ErrorKind::Patch(error) => error.fmt(f),
            ErrorKind::Replacement(error) => error.fmt(f),
            ErrorKind::Var(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for Error {}

impl std::error::Error for ErrorKind {}

macro_rules! kinds {
    ($($kind:ident($error:ty)),* $(,)?) => {
        $(impl From<$error> for ErrorKind {
            fn from(error: $error) -> ErrorKind {
                ErrorKind::$kind(error)
            }
        })*
    };
}

kinds! {
    Limit(Limit),
    Kustomization(KustomizationError),
    File(FileError),
    Generator(GeneratorError),
    Object(ObjectError),
    Field(FieldError),
    Selector(SelectorError),
    Patch(PatchError),
    Replacement(ReplacementError),
    Var(VarError),
}
