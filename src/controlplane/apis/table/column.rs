//! One column of a Table.

use serde_json::{Value, json};
use std::borrow::Cow;

/// An entry of `columnDefinitions`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Column {
    pub name: Cow<'static, str>,
    pub kind: Cow<'static, str>,
    pub format: Cow<'static, str>,
    pub(crate) description: Cow<'static, str>,
    /// 0 is always shown, 1 only in wide output.
    pub(crate) priority: i64,
}

impl Column {
    /// The first column of every table.
    pub(super) fn name() -> Self {
        Column { format: "name".into(), description: NAME.into(), ..Column::new("Name", "string") }
    }

    /// The age.
    pub(crate) fn age() -> Self {
        Column { description: "How long ago the object was created.".into(), ..Column::new("Age", "string") }
    }

    /// A column that is always shown.
    pub(super) fn new(name: &'static str, kind: &'static str) -> Self {
        Column {
            name: name.into(),
            kind: kind.into(),
            format: "".into(),
            description: name.into(),
            priority: 0,
        }
    }

    /// The entry.
    pub(super) fn to_value(&self) -> Value {
        json!({
            "name": self.name,
            "type": self.kind,
            "format": self.format,
            "description": self.description,
            "priority": self.priority,
        })
    }
}

const NAME: &str = "Unique within a namespace, chosen at creation; it cannot be changed.";
