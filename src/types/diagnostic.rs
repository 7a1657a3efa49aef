//! Errors of a type file or a reconciler, with their places. Plain data; `sources` turns it into the screen's
//! words.

/// The severity.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// It can be used, but something in it has no effect or a surprising one.
    Warning,
    /// It cannot be used.
    Error,
}

/// A place in a file, lines and columns counted from 1 (columns in characters); 0 where unknown.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// The path as it was handed in.
    pub file: String,
    /// Line.
    pub line: u32,
    /// Column.
    pub column: u32,
}

/// An error or warning with its place, its reason and a remedy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// The severity.
    pub severity: Severity,
    /// The error and its reason.
    pub message: String,
    /// Where.
    pub place: Option<Place>,
    /// The fix.
    pub hint: Option<String>,
    /// For a script that threw: its frames in the user's files, innermost first, as `function
    /// (file:line:column)`.
    pub stack: Vec<String>,
}

impl Diagnostic {
    /// An error.
    pub fn error(message: impl Into<String>, place: Option<Place>) -> Diagnostic {
        Diagnostic {
            severity: Severity::Error,
            message: message.into(),
            place,
            hint: None,
            stack: Vec::new(),
        }
    }

    /// A warning.
    pub fn warning(message: impl Into<String>, place: Option<Place>) -> Diagnostic {
        Diagnostic { severity: Severity::Warning, ..Diagnostic::error(message, place) }
    }

    /// This diagnostic, with a hint on what to do.
    #[must_use]
    pub fn with_hint(mut self, hint: impl Into<String>) -> Diagnostic {
        self.hint = Some(hint.into());
        self
    }
}
