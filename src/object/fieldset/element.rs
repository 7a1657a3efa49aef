//! One part of a field path: a field, the keys or the value of a list item, or a position.

use crate::go::number::float as go_float;
use crate::go::quote::quote;
use serde_json::Value;
use std::cmp::Ordering;
use std::fmt;

/// A JSON value with a total order, where `1` and `1.0` are the same.
#[derive(Clone, Debug)]
pub struct Atom(pub Value);

impl Atom {
    fn rank(&self) -> u8 {
        match &self.0 {
            Value::Number(_) => 0,
            Value::String(_) => 1,
            Value::Bool(_) => 2,
            Value::Array(_) => 3,
            Value::Object(_) => 4,
            Value::Null => 5,
        }
    }
}

impl Ord for Atom {
    fn cmp(&self, other: &Self) -> Ordering {
        match (&self.0, &other.0) {
            (Value::Number(a), Value::Number(b)) => match (a.as_i64(), b.as_i64()) {
                (Some(a), Some(b)) => a.cmp(&b),
                _ => a.as_f64().unwrap_or_default().total_cmp(&b.as_f64().unwrap_or_default()),
            },
            (Value::String(a), Value::String(b)) => a.cmp(b),
            (Value::Bool(a), Value::Bool(b)) => a.cmp(b),
            (a, b) if self.rank() == other.rank() => a.to_string().cmp(&b.to_string()),
            _ => self.rank().cmp(&other.rank()),
        }
    }
}

impl PartialOrd for Atom {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Atom {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Atom {}

impl fmt::Display for Atom {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Value::String(text) => f.write_str(&quote(text)),
            Value::Number(number) if number.is_f64() => {
                f.write_str(&go_float(number.as_f64().unwrap_or_default()))
            }
            other => write!(f, "{other}"),
        }
    }
}

/// One part of a path.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Element {
    /// A field (`f:`).
    Field(String),
    /// An item of an associative list by its keys (`k:`), sorted by name.
    Key(Vec<(String, Atom)>),
    /// An item of a set by its value (`v:`).
    Value(Atom),
    /// An item by its position (`i:`).
    Index(i64),
}

impl fmt::Display for Element {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Element::Field(name) => write!(f, ".{name}"),
            Element::Key(keys) => {
                let parts: Vec<String> = keys.iter().map(|(name, value)| format!("{name}={value}")).collect();
                write!(f, "[{}]", parts.join(","))
            }
            Element::Value(value) => write!(f, "[={value}]"),
            Element::Index(index) => write!(f, "[{index}]"),
        }
    }
}

/// A whole path, printed as the server prints it: `.spec.containers[name="web"].image`.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct FieldPath(pub Vec<Element>);

impl fmt::Display for FieldPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|element| write!(f, "{element}"))
    }
}
