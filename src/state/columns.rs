//! Texts of the printer columns of CRDs, by the JSON paths of the definition.

use jiff::Timestamp;
use opdev_object::jsonpath::JsonPath;
use serde_json::Value;

/// Everything that a path such as `.status.conditions[?(@.type=="Ready")].status` leads to, side by side.
/// Empty where the path leads nowhere, or is malformed.
pub fn text(object: &Value, path: &str, now: Timestamp, date: bool) -> String {
    let found = find(object, path);
    let one = |value: &&Value| match value {
        Value::String(text) if date => age(text, now).unwrap_or_else(|| text.clone()),
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        other => other.to_string(),
    };
    found.iter().map(one).collect::<Vec<_>>().join(",")
}

/// The first thing a path finds.
pub fn first<'a>(object: &'a Value, path: &str) -> Option<&'a Value> {
    find(object, path).first().copied()
}

fn age(text: &str, now: Timestamp) -> Option<String> {
    let at: Timestamp = text.parse().ok()?;
    let age = std::time::Duration::try_from(now.duration_since(at)).unwrap_or_default();
    Some(opdev_event::words::age(age))
}

fn find<'a>(object: &'a Value, path: &str) -> Vec<&'a Value> {
    JsonPath::parse(path).map(|path| path.find(object)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_paths_that_crds_use() {
        let object = json!({"metadata": {"labels": {"app.io/name": "x"}, "creationTimestamp": "2026-03-01T17:00:00Z"},
            "spec": {"size": 3, "hosts": ["a", "b"], "paused": false},
            "status": {"conditions": [{"type": "Ready", "status": "True"}, {"type": "Stale", "status": "False"}]}});
        let now: Timestamp = "2026-03-01T17:02:00Z".parse().unwrap();
        for (path, wanted) in [
            (".spec.size", "3"),
            ("{.spec.paused}", "false"),
            (".spec.hosts[1]", "b"),
            (".spec.hosts[*]", "a,b"),
            (".status.conditions[?(@.type==\"Stale\")].status", "False"),
            (".status.conditions[?(@.type=='Ready')].status", "True"),
            (".metadata.labels['app.io/name']", "x"),
            (".metadata.labels.app\\.io/name", "x"),
            (".spec.nothing.here", ""),
            (".spec[?(@.a>1)]", ""),
            (".spec.hosts[-1:]", "b"),
            ("..size", "3"),
            ("..spec[", ""),
        ] {
            assert_eq!(text(&object, path, now, false), wanted, "{path}");
        }
        assert_eq!(text(&object, ".metadata.creationTimestamp", now, true), "2m");
        assert_eq!(first(&object, ".spec.hosts[*]"), Some(&json!("a")));
    }
}
