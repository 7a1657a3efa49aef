//! Paths into an object, printed the way Kubernetes prints field paths. Read `diff` next.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::fmt;

/// One step of a path.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Segment {
    /// A field of an object.
    Field(String),
    /// An element of a list, by position.
    Index(usize),
    /// An element of an associative list, by its keys.
    Key(Vec<(String, Value)>),
}

/// A path from an object's root; the empty path is the root itself.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Path(pub Vec<Segment>);

impl Path {
    /// The root.
    pub fn root() -> Self {
        Path::default()
    }

    /// This path and one more field.
    #[must_use]
    pub fn field(&self, name: &str) -> Self {
        self.with(Segment::Field(name.to_owned()))
    }

    /// This path and one more list position.
    #[must_use]
    pub fn index(&self, index: usize) -> Self {
        self.with(Segment::Index(index))
    }

    /// This path and one more segment.
    #[must_use]
    pub fn with(&self, segment: Segment) -> Self {
        let mut segments = Vec::with_capacity(self.0.len() + 1);
        segments.extend_from_slice(&self.0);
        segments.push(segment);
        Path(segments)
    }

    /// The value at this path, if there is one.
    pub fn get<'a>(&self, root: &'a Value) -> Option<&'a Value> {
        self.0.iter().try_fold(root, |at, segment| match segment {
            Segment::Field(name) => at.get(name),
            Segment::Index(index) => at.get(index),
            Segment::Key(keys) => {
                at.as_array()?.iter().find(|item| keys.iter().all(|(k, v)| item.get(k) == Some(v)))
            }
        })
    }

    /// Returns true if `prefix` is this path or leads to it.
    pub fn starts_with(&self, prefix: &Path) -> bool {
        self.0.starts_with(&prefix.0)
    }
}

impl fmt::Display for Path {
    /// `.spec.containers[name=web].ports[0]`; field names with dots or slashes are quoted in brackets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for segment in &self.0 {
            match segment {
                Segment::Field(name) if name.contains(['.', '/', '[', ' ']) => write!(f, "[{name}]")?,
                Segment::Field(name) => write!(f, ".{name}")?,
                Segment::Index(index) => write!(f, "[{index}]")?,
                Segment::Key(keys) => {
                    f.write_str("[")?;
                    for (i, (key, value)) in keys.iter().enumerate() {
                        let comma = if i == 0 { "" } else { "," };
                        match value {
                            Value::String(text) => write!(f, "{comma}{key}={text}")?,
                            other => write!(f, "{comma}{key}={other}")?,
                        }
                    }
                    f.write_str("]")?;
                }
            }
        }
        Ok(())
    }
}
