//! The converter of a version, asked directly: generated objects to another version and back, in both
//! directions. Nothing is stored, so that no reconcile is disturbed, and all fields of a definition take two
//! calls.

use super::generate::{Generated, generated};
use opdev_event::words::one_line;
use opdev_program::rehearsal::Stage;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// What two versions of a definition lose to each other.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Lossy {
    /// Fields that are lost, each once.
    pub(super) fields: BTreeSet<String>,
    /// Why the converter gave no answer.
    pub(super) failed: Option<String>,
}

/// The way of an object: definition, the version that it begins and ends at, the one between, and whether
/// objects are stored at the first.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Way {
    pub(super) definition: String,
    pub(super) version: String,
    pub(super) between: String,
    pub(super) from_store: bool,
}

/// Tries all ways of a definition that a webhook converts.
pub(super) async fn lossy(stage: &Stage, crd: &Value) -> BTreeMap<Way, Lossy> {
    let mut found = BTreeMap::new();
    if crd.pointer("/spec/conversion/strategy").and_then(Value::as_str) != Some("Webhook") {
        return found;
    }
    let text = |pointer: &str| crd.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned();
    let versions = crd.pointer("/spec/versions").and_then(Value::as_array).cloned().unwrap_or_default();
    let Some(storage) = versions.iter().find(|version| version["storage"] == true) else { return found };
    let others = versions.iter().filter(|version| version["served"] == true && version["storage"] != true);
    for other in others {
        for (first, second, from_store) in [(storage, other, true), (other, storage, false)] {
            let name = |version: &Value| version["name"].as_str().unwrap_or_default().to_owned();
            let way = Way {
                definition: text("/metadata/name"),
                version: name(first),
                between: name(second),
                from_store,
            };
            let (group, kind, plural) =
                (text("/spec/group"), text("/spec/names/kind"), text("/spec/names/plural"));
            let resource = format!("{group}/{plural}");
            let at = |version: &str| format!("{group}/{version}");
            let made = generated(&first["schema"]["openAPIV3Schema"]);
            let objects = made
                .iter()
                .enumerate()
                .map(|(at_, one)| object(one, &at(&way.version), &kind, at_))
                .collect();
            let ended =
                there_and_back(stage, &resource, objects, (&at(&way.between), &at(&way.version))).await;
            let lossy = match ended {
                Ok(back) => Lossy { fields: lost(&made, &back), failed: None },
                Err(why) => Lossy { fields: BTreeSet::new(), failed: Some(one_line(&why)) },
            };
            found.insert(way, lossy);
        }
    }
    found
}

async fn there_and_back(
    stage: &Stage,
    resource: &str,
    objects: Vec<Value>,
    (there, back): (&str, &str),
) -> Result<Vec<Value>, String> {
    let turned = stage.convert(resource, objects, there).await?;
    stage.convert(resource, turned, back).await
}

fn object(made: &Generated, api_version: &str, kind: &str, number: usize) -> Value {
    let name = format!("generated-{number}");
    let metadata = json!({ "name": name, "namespace": "default", "uid": name });
    let mut object = json!({ "apiVersion": api_version, "kind": kind, "metadata": metadata });
    if let Some(fields) = object.as_object_mut() {
        fields.extend(made.content.clone());
    }
    object
}

/// Fields whose value did not come back. An empty one is none: Go's zero values come and go.
fn lost(made: &[Generated], back: &[Value]) -> BTreeSet<String> {
    let is_empty = |value: &Value| match value {
        Value::Null | Value::Bool(false) => true,
        Value::String(text) => text.is_empty(),
        Value::Array(list) => list.is_empty(),
        Value::Object(map) => map.is_empty(),
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::Bool(true) => false,
    };
    let pairs = made.iter().zip(back);
    let changed = pairs.filter(|(one, back)| {
        let sent = Value::Object(one.content.clone());
        let before = one.value(&sent).cloned().unwrap_or_default();
        let after = one.value(back).cloned().unwrap_or_default();
        before != after && !(is_empty(&before) && is_empty(&after))
    });
    changed.map(|(one, _)| format!(".{}", one.field())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_value_that_goes_is_no_loss() {
        let text = json!({ "type": "string" });
        let schema = json!({ "type": "object", "properties": { "spec": { "type": "object",
            "properties": { "a": text, "on": { "type": "boolean", "default": true } } } } });
        let made = generated(&schema);
        let back = |spec: Value| vec![json!({ "spec": spec }); made.len()];
        assert_eq!(
            lost(&made, &back(json!({ "a": "abc" }))),
            BTreeSet::new(),
            "false was sent, and nothing came back"
        );
        assert_eq!(
            lost(&made, &back(json!({ "on": true }))),
            [".spec.a".to_owned(), ".spec.on".to_owned()].into()
        );
    }
}
