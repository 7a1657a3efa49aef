//! Changes in JSON: the path as the text one reads, `.spec.template.spec.containers[name=web].image`.

use opdev_object::diff::Change;
use opdev_object::path::{Path, Segment};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;

#[derive(Serialize, Deserialize)]
struct Line {
    path: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    old: Option<Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    new: Option<Value>,
}

/// Writes a list of changes.
pub(crate) fn serialize<S: Serializer>(changes: &[Change], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(changes.iter().map(|change| Line {
        path: change.path.to_string(),
        old: change.old.clone(),
        new: change.new.clone(),
    }))
}

/// Reads a list of changes.
pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Change>, D::Error> {
    let lines = Vec::<Line>::deserialize(deserializer)?;
    Ok(lines
        .into_iter()
        .map(|line| Change { path: parse(&line.path), old: line.old, new: line.new })
        .collect())
}

/// A path from its text; what it is printed as is the same text again.
fn parse(text: &str) -> Path {
    let mut segments = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        if let Some(inside) = rest.strip_prefix('[') {
            let end = inside.find(']').unwrap_or(inside.len());
            segments.push(bracket(&inside[..end]));
            rest = inside.get(end + 1..).unwrap_or("");
        } else {
            let name = rest.strip_prefix('.').unwrap_or(rest);
            let end = name.find(['.', '[']).unwrap_or(name.len());
            segments.push(Segment::Field(name[..end].to_owned()));
            rest = &name[end..];
        }
    }
    Path(segments)
}

/// `[3]`, `[name=web]`, or a field whose name needs brackets.
fn bracket(text: &str) -> Segment {
    if let Ok(index) = text.parse() {
        return Segment::Index(index);
    }
    let pairs: Option<Vec<(&str, &str)>> = text.split(',').map(|pair| pair.split_once('=')).collect();
    match pairs {
        Some(pairs) => {
            Segment::Key(pairs.into_iter().map(|(key, value)| (key.to_owned(), scalar(value))).collect())
        }
        None => Segment::Field(text.to_owned()),
    }
}

fn scalar(text: &str) -> Value {
    match serde_json::from_str::<Value>(text) {
        Ok(value @ (Value::Number(_) | Value::Bool(_))) if format!("{value}") == text => value,
        _ => Value::from(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_come_back_as_they_were_printed() {
        for text in [
            ".spec.replicas",
            ".spec.containers[name=web].ports[containerPort=80].name",
            ".metadata.annotations[app.kubernetes.io/name]",
            ".spec.ports[port=53,protocol=UDP]",
            ".spec.args[2]",
            "",
        ] {
            assert_eq!(parse(text).to_string(), text);
        }
        let item = serde_json::json!({"ports": [{"containerPort": 80, "name": "web"}]});
        assert_eq!(parse(".ports[containerPort=80].name").get(&item), Some(&Value::from("web")));
    }
}
