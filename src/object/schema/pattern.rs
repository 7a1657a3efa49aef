//! `pattern` of a schema, in Go's regular expression syntax.

use crate::go::pattern;
use regex::Regex;
use std::fmt;

/// A pattern and its compiled form, or what is wrong with it.
#[derive(Clone, Debug)]
pub struct Pattern {
    /// The expression as it is written.
    pub text: String,
    compiled: Result<Regex, PatternError>,
}

impl Pattern {
    /// Compiles an expression; what is wrong with it is told when it is used.
    pub fn new(text: &str) -> Self {
        let compiled = pattern::compile_text(text).map_err(PatternError);
        Pattern { text: text.to_owned(), compiled }
    }

    /// The expression; the error says why it cannot be compiled.
    pub fn regex(&self) -> Result<&Regex, &PatternError> {
        self.compiled.as_ref()
    }

    /// Says whether it matches somewhere in `value`; the error says why it cannot be compiled.
    pub fn is_match(&self, value: &str) -> Result<bool, &PatternError> {
        self.regex().map(|regex| regex.is_match(value))
    }
}

/// Why a pattern cannot be compiled, in Go's words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PatternError(pattern::PatternError);

impl fmt::Display for PatternError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: `{}`", self.0.code, self.0.expression)
    }
}

impl std::error::Error for PatternError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn go_syntax_means_what_it_means_in_go() {
        let cases = [
            (r"^\d+$", "12", true),
            (r"^\d+$", "١٢", false),
            (r"^[a-z]([-a-z0-9]*[a-z0-9])?$", "web-0", true),
            (r"^[a-z]([-a-z0-9]*[a-z0-9])?$", "Web", false),
            (r"^[[a]$", "[", true),
            (r"^[]a]+$", "]a", true),
            (r"^[a&&b]+$", "&", true),
            (r"^[\w.]+$", "a_.9", true),
            (r"^[^\d]$", "5", false),
            (r"^[[:alpha:]]+$", "abc", true),
            (r"^\S+\s\S+$", "a b", true),
            ("b", "abc", true),
            (r"^(\d+)(\.\d+)?(Ki|Mi|Gi)?$", "64Mi", true),
        ];
        for (pattern, value, expected) in cases {
            assert_eq!(Pattern::new(pattern).is_match(value), Ok(expected), "{pattern} on {value}");
        }
        assert!(Pattern::new("a(").is_match("a").is_err());
    }
}
