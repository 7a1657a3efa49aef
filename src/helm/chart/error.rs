//! Why a chart does not load, and where in it.

use std::fmt;

/// A place in a chart's file; lines and columns count from 1.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// The path relative to the root chart's folder.
    pub file: String,
    /// The line; 0 where it is not known.
    pub line: u32,
    /// The column; 0 where it is not known.
    pub column: u32,
}

/// Why a chart does not load.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ChartError {
    /// Helm's own text.
    pub message: String,
    /// The file and place to look at.
    pub place: Option<Place>,
    /// The likely reason and what helps, beside Helm's text.
    pub hint: Option<String>,
}

impl ChartError {
    pub(crate) fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), ..Self::default() }
    }

    pub(crate) fn at(message: impl Into<String>, place: Option<Place>) -> Self {
        Self { message: message.into(), place, hint: None }
    }
}

impl fmt::Display for ChartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for ChartError {}
