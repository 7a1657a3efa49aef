//! Why a selector cannot be read, in the words of apimachinery.

use crate::schema::FieldError;
use std::fmt;

/// Why a selector cannot be read; `Display` is what the server answers.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SelectorError {
    /// Something else stands in the text of a label selector than may stand there.
    Unexpected {
        /// The word or sign that stands there; empty at the end of the text.
        found: String,
        /// The words or signs that may stand there.
        expected: &'static str,
    },
    /// The values after `in` or `notin` do not begin with a parenthesis.
    NoParenthesis {
        /// The word or sign that stands there.
        found: String,
    },
    /// A requirement of a label selector cannot be read.
    Requirement(Box<SelectorError>),
    /// The key or the values of a requirement are wrong.
    Fields(Vec<FieldError>),
    /// The operator of `matchExpressions` does not exist.
    Operator {
        /// The operator.
        operator: String,
    },
    /// A part of a field selector is not a comparison.
    NotAComparison {
        /// The whole selector.
        selector: String,
        /// The part.
        part: String,
    },
    /// A backslash of a field selector stands before a character that takes none, or at the end.
    Escape {
        /// The character after the backslash.
        character: Option<char>,
    },
    /// A character of a field selector needs a backslash.
    Unescaped {
        /// The character.
        character: char,
    },
}

impl fmt::Display for SelectorError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SelectorError::Unexpected { found, expected } => {
                write!(f, "found '{found}', expected: {expected}")
            }
            SelectorError::NoParenthesis { found } => write!(f, "found '{found}' expected: '('"),
            SelectorError::Requirement(error) => write!(f, "unable to parse requirement: {error}"),
            SelectorError::Fields(errors) => match errors.as_slice() {
                [one] => one.fmt(f),
                many => {
                    let all: Vec<String> = many.iter().map(ToString::to_string).collect();
                    write!(f, "[{}]", all.join(", "))
                }
            },
            SelectorError::Operator { operator } => {
                write!(f, "\"{operator}\" is not a valid label selector operator")
            }
            SelectorError::NotAComparison { selector, part } => {
                write!(f, "invalid selector: '{selector}'; can't understand '{part}'")
            }
            SelectorError::Escape { character } => {
                f.write_str("invalid field selector: invalid escape sequence: \\")?;
                character.map_or(Ok(()), |character| write!(f, "{character}"))
            }
            SelectorError::Unescaped { character } => {
                write!(f, "invalid field selector: unescaped character in value: {character}")
            }
        }
    }
}

impl std::error::Error for SelectorError {}
