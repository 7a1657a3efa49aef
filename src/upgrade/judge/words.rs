//! Objects, fields and values in words.

use opdev_event::{mask, words};
use opdev_object::diff::Change;
use opdev_object::meta::ObjectKey;
use opdev_object::path::{Path, Segment};
use serde_json::Value;

/// More of a value is not shown.
const SHOWN: usize = 80;

/// `Deployment default/web`.
pub(crate) fn named(key: &ObjectKey) -> String {
    match &key.namespace {
        Some(namespace) => format!("{} {namespace}/{}", key.kind, key.name),
        None => format!("{} {}", key.kind, key.name),
    }
}

/// The fields that a refusal names, such as `.spec.selector`.
pub(super) fn causes(status: &Value) -> Vec<String> {
    let causes = status.pointer("/details/causes").and_then(Value::as_array);
    let fields = causes.into_iter().flatten().filter_map(|cause| cause["field"].as_str());
    let mut fields: Vec<String> =
        fields.filter(|field| !field.is_empty()).map(|field| format!(".{field}")).collect();
    // Unknown fields are told in the message alone.
    let message = status["message"].as_str().unwrap_or_default();
    let unknown = message.split("unknown field \"").skip(1).filter_map(|rest| rest.split('"').next());
    let undeclared = message.split(": field not declared in schema");
    let undeclared =
        undeclared.filter_map(|before| before.rsplit(' ').next()).filter(|word| word.starts_with('.'));
    fields.extend(undeclared.map(str::to_owned));
    fields.extend(unknown.map(|field| format!(".{}", field.trim_start_matches('.'))));
    fields.sort();
    fields.dedup();
    fields
}

/// The first ones, and how many more there are.
pub(super) fn some_of(fields: &[String], most: usize) -> String {
    let first: Vec<&str> = fields.iter().take(most).map(String::as_str).collect();
    match fields.len().saturating_sub(most) {
        0 => first.join(", "),
        more => format!("{} and {more} more", first.join(", ")),
    }
}

/// Changes as lines that begin with `-` and `+`. Secrets are masked.
pub(super) fn changes(kind: &str, below: &str, changes: Vec<Change>) -> Vec<String> {
    let mut lines = Vec::new();
    for change in mask::changes(kind, changes) {
        let path = format!("{below}{}", change.path);
        lines.extend(change.old.as_ref().map(|old| format!("- {path}: {}", value(old))));
        lines.extend(change.new.as_ref().map(|new| format!("+ {path}: {}", value(new))));
    }
    lines
}

/// A value in one short line.
fn value(value: &Value) -> String {
    let text = match value {
        Value::String(text) => words::one_line(text),
        other => other.to_string(),
    };
    if text.chars().count() <= SHOWN {
        return text;
    }
    let cut: String = text.chars().take(SHOWN - 1).collect();
    format!("{cut}…")
}

/// Returns true if a path is a label that tells of a version.
pub(super) fn is_version_label(path: &str) -> bool {
    const LABELS: [&str; 3] = ["helm.sh/chart", "app.kubernetes.io/version", "chart"];
    let of = |label: &str| {
        path.ends_with(&format!(".labels[{label}]")) || path.ends_with(&format!(".labels.{label}"))
    };
    LABELS.into_iter().any(of)
}

/// Annotations in which tools and controllers keep books.
pub(super) fn is_bookkeeping(annotation: &str) -> bool {
    annotation.ends_with("last-applied-configuration")
        || annotation.ends_with("/last-applied")
        || annotation == "deployment.kubernetes.io/revision"
}

/// The fields of changes as they are named: a list of words by itself, not by the places in it.
pub(super) fn fields(below: &str, changes: &[Change]) -> Vec<String> {
    let mut fields: Vec<String> =
        changes.iter().map(|change| format!("{below}{}", without_index(&change.path))).collect();
    fields.sort();
    fields.dedup();
    fields
}

fn without_index(path: &Path) -> Path {
    let mut path = path.clone();
    while matches!(path.0.last(), Some(Segment::Index(_))) {
        path.0.pop();
    }
    path
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_refusal_names_its_fields() {
        let status = json!({ "message": "strict decoding error: unknown field \"spec.size\", unknown field \"spec.tls\"" });
        assert_eq!(causes(&status), [".spec.size", ".spec.tls"]);
        let status =
            json!({ "message": "failed (/a; x/v1, Kind=Web): .spec.size: field not declared in schema" });
        assert_eq!(causes(&status), [".spec.size"]);
        let status = json!({ "details": { "causes": [{ "field": "spec.selector" }, { "field": "" }] } });
        assert_eq!(causes(&status), [".spec.selector"]);
    }

    #[test]
    fn labels_of_versions_are_told_from_others() {
        assert!(is_version_label(".metadata.labels[helm.sh/chart]"));
        assert!(!is_version_label(".spec.selector.matchLabels[helm.sh/chart]"));
        assert!(!is_version_label(".metadata.labels.app"));
    }
}
