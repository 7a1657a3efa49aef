//! `pattern` of a schema: Go's regular expression syntax translated to the `regex` crate's.
//! The two differ in classes: Go's are ASCII and do not nest.

use regex::Regex;
use std::fmt;

/// A pattern and its compiled form, or what is wrong with it.
#[derive(Clone, Debug)]
pub(crate) struct Pattern {
    pub(crate) text: String,
    compiled: Result<Regex, PatternError>,
}

impl Pattern {
    pub(crate) fn new(text: &str) -> Self {
        let compiled =
            Regex::new(&translate(text)).map_err(|error| PatternError::of(text, &error.to_string()));
        Pattern { text: text.to_owned(), compiled }
    }

    /// The expression; the error says why it cannot be compiled.
    pub(crate) fn regex(&self) -> Result<&Regex, &PatternError> {
        self.compiled.as_ref()
    }

    /// Whether it matches somewhere in `value`; the error says why it cannot be compiled.
    pub(crate) fn is_match(&self, value: &str) -> Result<bool, &PatternError> {
        self.regex().map(|regex| regex.is_match(value))
    }
}

/// Why a pattern cannot be compiled; the mistakes people make are told in Go's words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum PatternError {
    /// A group has no end.
    Group { pattern: String },
    /// A character class has no end; `class` is the rest of the pattern from its bracket on.
    Class { class: String },
    /// Something else, in the words of the `regex` crate.
    Syntax { why: String },
}

impl PatternError {
    /// From the text of the `regex` crate's error: its last line says what is wrong.
    fn of(pattern: &str, error: &str) -> PatternError {
        match error.lines().last().unwrap_or_default().trim_start_matches("error: ") {
            "unclosed group" => PatternError::Group { pattern: pattern.to_owned() },
            "unclosed character class" => {
                PatternError::Class { class: pattern[pattern.rfind('[').unwrap_or(0)..].to_owned() }
            }
            why => PatternError::Syntax { why: why.to_owned() },
        }
    }
}

impl fmt::Display for PatternError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PatternError::Group { pattern } => write!(f, "missing closing ): `{pattern}`"),
            PatternError::Class { class } => write!(f, "missing closing ]: `{class}`"),
            PatternError::Syntax { why } => f.write_str(why),
        }
    }
}

impl std::error::Error for PatternError {}

fn translate(go: &str) -> String {
    let mut out = String::with_capacity(go.len() + 16);
    let mut chars = go.chars().peekable();
    let mut class = Class::Outside;
    while let Some(c) = chars.next() {
        let at_start = class == Class::Start;
        if at_start {
            class = Class::Inside;
        }
        match c {
            '\\' => match chars.next() {
                Some('d') => out.push_str("[0-9]"),
                Some('D') => out.push_str("[^0-9]"),
                Some('w') => out.push_str("[0-9A-Za-z_]"),
                Some('W') => out.push_str("[^0-9A-Za-z_]"),
                Some('s') => out.push_str("[\\t\\n\\f\\r ]"),
                Some('S') => out.push_str("[^\\t\\n\\f\\r ]"),
                Some('b') if class == Class::Outside => out.push_str("(?-u:\\b)"),
                Some('B') if class == Class::Outside => out.push_str("(?-u:\\B)"),
                Some(other) => out.extend(['\\', other]),
                None => out.push('\\'),
            },
            '[' if class == Class::Outside => {
                out.push('[');
                class = Class::Start;
                if chars.next_if_eq(&'^').is_some() {
                    out.push('^');
                }
            }
            '[' if chars.peek() == Some(&':') => {
                // A named class such as [:alpha:] is the same in both.
                out.push('[');
                for inner in chars.by_ref() {
                    out.push(inner);
                    if inner == ']' {
                        break;
                    }
                }
            }
            ']' if class == Class::Inside && !at_start => {
                out.push(']');
                class = Class::Outside;
            }
            '[' | ']' | '&' | '~' if class == Class::Inside => out.extend(['\\', c]),
            other => out.push(other),
        }
    }
    out
}

#[derive(PartialEq)]
enum Class {
    Outside,
    Start,
    Inside,
}

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
