//! Values of printer columns of a CRD: the JSON paths that are in use there, and no others.

use jiff::Timestamp;
use serde_json::Value;

/// What a path such as `.status.conditions[?(@.type=="Ready")].status` finds; several things stand side by
/// side. Nothing where the path leads nowhere, or is one that is not understood.
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
    let mut at = vec![object];
    let mut rest = path.trim().trim_start_matches('{').trim_end_matches('}').trim_start_matches('$');
    while !rest.is_empty() && !at.is_empty() {
        let Some((step, after)) = step(rest) else { return Vec::new() };
        at = at.into_iter().flat_map(|value| step.of(value)).collect();
        rest = after;
    }
    at
}

/// One step of a path.
enum PathStep<'p> {
    Field(String),
    Index(usize),
    All,
    Where(&'p str, &'p str),
}

/// The first step of a path, and what follows it.
fn step(path: &str) -> Option<(PathStep<'_>, &str)> {
    if let Some(rest) = path.strip_prefix('.') {
        // A dot in a name is escaped: `.metadata.labels.app\.kubernetes\.io/name`.
        let mut name = String::new();
        let mut letters = rest.char_indices();
        while let Some((at, c)) = letters.next() {
            match c {
                '\\' => name.extend(letters.next().map(|(_, c)| c)),
                '.' | '[' => return Some((PathStep::Field(name), &rest[at..])),
                c => name.push(c),
            }
        }
        return Some((PathStep::Field(name), ""));
    }
    let inside = path.strip_prefix('[')?;
    if let Some(quoted) = inside.strip_prefix(['\'', '"']) {
        let end = quoted.find(['\'', '"'])?;
        return Some((PathStep::Field(quoted[..end].to_owned()), quoted[end + 1..].strip_prefix(']')?));
    }
    let end = inside.find(']')?;
    let (what, rest) = (&inside[..end], &inside[end + 1..]);
    if what == "*" {
        return Some((PathStep::All, rest));
    }
    if let Some(condition) = what.strip_prefix("?(@.").and_then(|text| text.strip_suffix(')')) {
        let (field, value) = condition.split_once("==")?;
        return Some((PathStep::Where(field.trim(), value.trim().trim_matches(['\'', '"'])), rest));
    }
    Some((PathStep::Index(what.parse().ok()?), rest))
}

impl PathStep<'_> {
    fn of<'a>(&self, value: &'a Value) -> Vec<&'a Value> {
        match self {
            PathStep::Field(name) if name.is_empty() => vec![value],
            PathStep::Field(name) => value.get(name).into_iter().collect(),
            PathStep::Index(at) => value.get(*at).into_iter().collect(),
            PathStep::All => value.as_array().into_iter().flatten().collect(),
            PathStep::Where(field, wanted) => value
                .as_array()
                .into_iter()
                .flatten()
                .filter(|item| item.get(*field).and_then(Value::as_str) == Some(*wanted))
                .collect(),
        }
    }
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
            ("..spec[", ""),
        ] {
            assert_eq!(text(&object, path, now, false), wanted, "{path}");
        }
        assert_eq!(text(&object, ".metadata.creationTimestamp", now, true), "2m");
        assert_eq!(first(&object, ".spec.hosts[*]"), Some(&json!("a")));
    }
}
