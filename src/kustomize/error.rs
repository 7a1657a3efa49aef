//! Why a kustomization cannot be built: what, where, and what to do.

use std::fmt;
use std::path::PathBuf;

/// Why a kustomization cannot be built.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    /// The file that is to blame.
    pub file: PathBuf,
    /// Its line, counted from 1; 0 where none can be named.
    pub line: u32,
    /// What is wrong.
    pub message: String,
    /// What the user can do.
    pub hint: Option<String>,
}

impl Error {
    pub(crate) fn new(file: impl Into<PathBuf>, line: u32, message: impl Into<String>) -> Error {
        Error { file: file.into(), line, message: message.into(), hint: None }
    }

    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Error {
        self.hint = Some(hint.into());
        self
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.file.display())?;
        if self.line > 0 {
            write!(f, ":{}", self.line)?;
        }
        write!(f, ": {}", self.message)?;
        match &self.hint {
            Some(hint) => write!(f, " ({hint})"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for Error {}
