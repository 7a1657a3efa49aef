//! Errors of objects, of their fields, and of what selects them.

use std::fmt;
use std::path::PathBuf;

/// The error of an object.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ObjectError {
    /// A document is something else than a map.
    NotAMap,
    /// An object has no kind.
    NoKind,
    /// An object has no name.
    NoName {
        /// The kind of the object.
        kind: String,
    },
    /// An item of a list is `null`.
    NullItem {
        /// The kind of the object.
        kind: String,
        /// The name of the object.
        name: String,
        /// The path of the list, with dots.
        path: String,
    },
    /// The items of a list object are not a list.
    Items,
    /// There is another object of the same kind, namespace and name.
    Twice {
        /// Kind, namespace and name.
        object: String,
        /// The file of the other one, where it has one.
        file: Option<PathBuf>,
    },
    /// Two objects would have the same name in the new namespace.
    TwiceInNamespace {
        /// Kind, namespace and name.
        object: String,
    },
}

impl fmt::Display for ObjectError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ObjectError::NotAMap => f.write_str("a document is no object"),
            ObjectError::NoKind => f.write_str("an object has no kind"),
            ObjectError::NoName { kind } => write!(f, "a {kind} has no metadata.name"),
            ObjectError::NullItem { kind, name, path } => {
                write!(f, "{kind} {name}: an item of {path} is empty")
            }
            ObjectError::Items => f.write_str("the items of a list are no list"),
            ObjectError::Twice { object, file: None } => write!(f, "{object} is there twice"),
            ObjectError::Twice { object, file: Some(file) } => {
                write!(f, "{object} is there twice (in {})", file.display())
            }
            ObjectError::TwiceInNamespace { object } => write!(f, "two objects would be {object} then"),
        }
    }
}

/// Why a field cannot be changed.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FieldError {
    /// Two field specs name one field and do not agree about `create`.
    SpecTwice {
        /// The path of the field, its parts joined by `/`.
        path: String,
        /// The value of `create` in the later one.
        create: bool,
    },
    /// A part of a path is empty.
    EmptyPart,
    /// A plain value where a list or a map is expected.
    Plain,
    /// A list or a map where a plain value is expected.
    NotPlain,
    /// Something else than a map where labels or annotations belong.
    NoLabels,
    /// A list or a map where an image belongs.
    Image,
    /// A list where the name of an object belongs.
    NotAName,
    /// A map without the name of an object.
    NoName,
    /// A name that may mean each of several objects.
    Ambiguous {
        /// The name.
        name: String,
        /// Kind, namespace and name of each object.
        objects: Vec<String>,
    },
}

impl fmt::Display for FieldError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FieldError::SpecTwice { path, create } => {
                write!(f, "the field spec {path} is there twice, once with create: {create}")
            }
            FieldError::EmptyPart => f.write_str("a part of the path is empty"),
            FieldError::Plain => f.write_str("there is a plain value where a list or a map is expected"),
            FieldError::NotPlain => f.write_str("there is a list or a map where a plain value is expected"),
            FieldError::NoLabels => f.write_str("there is no map that takes labels or annotations"),
            FieldError::Image => f.write_str("an image is a text"),
            FieldError::NotAName => f.write_str("a name, or a map with a name, is expected"),
            FieldError::NoName => f.write_str("the map that should name an object has no field name"),
            FieldError::Ambiguous { name, objects } => {
                write!(f, "the name {name} may mean each of {}", objects.join(", "))
            }
        }
    }
}

/// Why what selects objects cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SelectorError {
    /// A pattern is not a regular expression.
    Pattern {
        /// The pattern.
        pattern: String,
        /// The error.
        message: String,
    },
    /// A selector of labels or annotations cannot be read.
    Labels(opdev_object::selector::SelectorError),
}

impl fmt::Display for SelectorError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SelectorError::Pattern { pattern, message } => {
                write!(f, "{pattern:?} is no regular expression: {message}")
            }
            SelectorError::Labels(error) => error.fmt(f),
        }
    }
}
