//! Fields of children that somebody else has changed, and those that the program has.

use jiff::Timestamp;
use opdev_event::mask;
use opdev_object::diff::Change;
use opdev_object::path::{Path, Segment};
use serde_json::Value;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

/// Fields of a child that are remembered.
pub(super) const FIELDS: usize = 16;
/// Characters of a value that are shown.
const SHORT: usize = 40;
/// Switches that people set by hand, and numbers that the API server chooses.
const OF_OTHERS: [&str; 5] = ["suspend", "paused", "nodePort", "healthCheckNodePort", "clusterIP"];

/// Changes of a child by somebody else that are still there.
#[derive(Clone, Debug)]
pub(super) struct Drift {
    pub(super) at: Timestamp,
    pub(super) by: String,
    pub(super) changes: Vec<DriftField>,
    /// True if a reconcile has heard of it.
    pub(super) heard: bool,
    /// True if opdev has asked for a reconcile because of it.
    pub(super) asked: bool,
    /// True if a judgement waits.
    pub(super) waits: bool,
}

/// One field. It is kept once it is answered, so that the way back is no change.
#[derive(Clone, Debug)]
pub(super) struct DriftField {
    pub(super) change: Change,
    pub(super) open: bool,
}

/// Fields of a child that the program has changed after it had made it, as hashes.
#[derive(Clone, Debug, Default)]
pub(super) struct Updated(pub(super) Vec<u64>);

/// A field of a child that somebody else has changed and that the program has left so.
#[derive(Clone, Debug)]
pub struct Drifted {
    pub path: String,
    pub old: String,
    pub new: String,
    pub by: String,
    /// True if the program has written this very field after it had made the child.
    pub wrote_field: bool,
    /// True if nothing but blanks or a line end differs.
    pub blank: bool,
    /// True if the program has written any field of the child since.
    pub wrote_child: bool,
    /// True if opdev had to ask for the reconcile that left it.
    pub asked: bool,
}

impl Drift {
    pub(super) fn is_open(&self) -> bool {
        self.changes.iter().any(|one| one.open)
    }

    pub(super) fn close(&mut self) {
        self.changes.iter_mut().for_each(|one| one.open = false);
    }
}

/// True for a field of a spec or of data that had a value before. Labels and annotations may be anybody's.
pub(super) fn is_judged(change: &Change) -> bool {
    let fields: Vec<&str> = change
        .path
        .0
        .iter()
        .filter_map(|step| if let Segment::Field(name) = step { Some(name.as_str()) } else { None })
        .collect();
    let content = matches!(fields.first(), Some(&("spec" | "data")));
    let others = fields.iter().any(|name| *name == "metadata" || OF_OTHERS.contains(name));
    let one =
        |value: &Option<Value>| value.as_ref().is_some_and(|value| !value.is_object() && !value.is_array());
    let taken = change.new.is_none()
        && (matches!(change.path.0.last(), Some(Segment::Key(_))) || fields.first() == Some(&"data"));
    content && !others && (one(&change.old) && one(&change.new) || change.old.is_some() && taken)
}

/// True for a path in the content of a child, not its metadata or that of its pods.
pub(super) fn is_content(path: &str) -> bool {
    (path.starts_with(".spec") || path.starts_with(".data")) && !path.contains(".metadata.")
}

/// A path that is the same wherever an item stands in its list, as writes have it.
pub(super) fn steady(path: &Path) -> String {
    let step = |segment: &Segment| match segment {
        Segment::Index(_) => "[]".to_owned(),
        other => Path(vec![other.clone()]).to_string(),
    };
    path.0.iter().map(step).collect()
}

pub(super) fn hash(path: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    path.hash(&mut hasher);
    hasher.finish()
}

/// Returns true for texts that differ in nothing but blanks or a line end.
pub(super) fn is_blank(change: &Change) -> bool {
    let text =
        |value: &Option<Value>| value.as_ref().and_then(Value::as_str).map(|text| text.trim().to_owned());
    text(&change.old).is_some() && text(&change.old) == text(&change.new)
}

/// A value in a few characters; none of what may be a secret.
pub(super) fn short(path: &str, value: Option<&Value>) -> String {
    if value.is_some() && mask::is_secret_path(path) {
        return "***".to_owned();
    }
    let text = match value {
        None => return "nothing".to_owned(),
        Some(Value::String(text)) => text.clone(),
        Some(value) => value.to_string(),
    };
    let line: String = text.lines().next().unwrap_or_default().chars().take(SHORT).collect();
    if line.len() < text.len() { format!("{line}…") } else { line }
}
