//! Changes of a field that reaches pods: pods of the new revision do not start, and then the change is taken
//! back. Pure.

use crate::plan::{BadPods, Disturbance};
use opdev_event::mask;
use opdev_steps::scenario::{BAD_ROLLOUT, Sample, Scenario, Step, head, nested};
use serde_json::Value;
use std::collections::BTreeSet;
use std::sync::Arc;

/// Changes of a sample that are tried at most.
const MOST: usize = 3;
/// The shortest text by which an argument or a variable is known to come from a field.
const SHORTEST: usize = 3;

/// A change of a field that reaches pods.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Rollout {
    /// The field of the sample's first object.
    path: Vec<String>,
    was: String,
    becomes: String,
    /// Pods with the change do not start.
    pub(super) bad: Disturbance,
}

/// Changes of the sample's first object that reach pods, images first. A field that reaches a StatefulSet
/// which updates its pods in order is left out: its controller waits for the bad pod until it is deleted.
pub(super) fn rollouts(sample: &Sample, made: &[Arc<Value>]) -> Vec<Rollout> {
    let mut texts = Vec::new();
    if let Some(spec) = sample.objects.first().and_then(|object| object.get("spec")) {
        leaves(spec, &mut vec!["spec".to_owned()], &mut texts);
    }
    let templates: Vec<(&Value, bool)> = made.iter().filter_map(|object| template(object)).collect();
    let mut found = Vec::new();
    for part in PARTS {
        for (path, text) in &texts {
            let is_known = found.iter().any(|known: &Rollout| known.path == *path);
            if let Some(new) = rollout(path, text, part, &templates).filter(|_| !is_known) {
                found.push(new);
            }
        }
    }
    found.truncate(MOST);
    found
}

/// The scenario of a change.
pub(super) fn scenario(sample: &Sample, rollout: &Rollout) -> Scenario {
    let object = sample.objects.first().map(head).unwrap_or_default();
    let to = |value: &str| Step::Patch { object: object.clone(), patch: nested(&rollout.path, value.into()) };
    let steps = vec![Step::Apply(sample.all()), to(&rollout.becomes), to(&rollout.was)];
    Scenario { name: BAD_ROLLOUT.to_owned(), sample: sample.clone(), steps }
}

/// The texts of a spec with their paths. Items of lists have none: a merge patch cannot change one of them.
fn leaves<'a>(value: &'a Value, path: &mut Vec<String>, found: &mut Vec<(Vec<String>, &'a str)>) {
    for (key, value) in value.as_object().into_iter().flatten() {
        path.push(key.clone());
        match value {
            // Values are told.
            Value::String(_) if mask::is_secret_path(&format!(".{}", path.join("."))) => {}
            Value::String(text) if !text.is_empty() => found.push((path.clone(), text)),
            Value::Object(_) => leaves(value, path, found),
            _ => {}
        }
        path.pop();
    }
}

/// The spec of the pods of an object. True where its own controller waits for a pod that never starts.
fn template(object: &Value) -> Option<(&Value, bool)> {
    let spec = &object["spec"];
    match object["kind"].as_str()? {
        "Pod" => Some((spec, false)),
        "Deployment" | "DaemonSet" | "ReplicaSet" => Some((&spec["template"]["spec"], false)),
        "StatefulSet" => {
            let stuck =
                spec["podManagementPolicy"] != "Parallel" && spec["updateStrategy"]["type"] != "OnDelete";
            Some((&spec["template"]["spec"], stuck))
        }
        _ => None,
    }
}

/// Parts of a container that come from a field: the path in a pod, and the keys from the container on.
const PARTS: [(&str, &[&str]); 8] = [
    (".spec.containers[].image", &["image"]),
    (".spec.containers[].env[].value", &["env", "[]", "value"]),
    (".spec.containers[].args[]", &["args", "[]"]),
    (".spec.containers[].command[]", &["command", "[]"]),
    (".spec.containers[].resources.limits.memory", &["resources", "limits", "memory"]),
    (".spec.containers[].resources.limits.cpu", &["resources", "limits", "cpu"]),
    (".spec.containers[].resources.requests.memory", &["resources", "requests", "memory"]),
    (".spec.containers[].resources.requests.cpu", &["resources", "requests", "cpu"]),
];

fn rollout(
    path: &[String],
    text: &str,
    (field, keys): (&str, &[&str]),
    templates: &[(&Value, bool)],
) -> Option<Rollout> {
    let becomes =
        if keys == ["image"] && text.contains([':', '/']) { bad_image(text)? } else { bumped(text) };
    let mut values = BTreeSet::new();
    for (spec, stuck) in templates {
        for container in spec["containers"].as_array().into_iter().flatten() {
            for value in below(container, keys) {
                let Some(bad) = replaced(value, text, &becomes, keys) else { continue };
                if *stuck {
                    return None;
                }
                values.insert(bad);
            }
        }
    }
    // A pod that has the value from the start would never begin.
    let there = |(spec, _): &(&Value, bool)| {
        let containers = spec["containers"].as_array().into_iter().flatten();
        containers.flat_map(|container| below(container, keys)).any(|value| values.contains(value))
    };
    if values.is_empty() || templates.iter().any(there) {
        return None;
    }
    let bad = BadPods { field: field.to_owned(), values: values.into_iter().collect() };
    let (path, was, bad) = (path.to_vec(), text.to_owned(), Disturbance::BadPods(bad));
    Some(Rollout { path, was, becomes, bad })
}

/// Texts below some keys of a container; `[]` stands for each item.
fn below<'a>(value: &'a Value, keys: &[&str]) -> Vec<&'a str> {
    match keys.split_first() {
        None => value.as_str().into_iter().collect(),
        Some((&"[]", rest)) => {
            value.as_array().into_iter().flatten().flat_map(|item| below(item, rest)).collect()
        }
        Some((key, rest)) => value.get(key).map(|value| below(value, rest)).unwrap_or_default(),
    }
}

/// The text of a container once the field has changed; nothing where it does not come from the field.
fn replaced(value: &str, text: &str, becomes: &str, keys: &[&str]) -> Option<String> {
    if value == text {
        return (keys[0] == "image" || keys[0] == "resources" || text.len() >= SHORTEST)
            .then(|| becomes.to_owned());
    }
    let before = value.strip_suffix(text)?;
    let is_part = match keys[0] {
        "image" => before.ends_with(':'),
        "args" | "command" => before.ends_with('=') && text.len() >= SHORTEST,
        _ => false,
    };
    is_part.then(|| format!("{before}{becomes}"))
}

/// An image with another tag; nothing where a digest says which one it is.
fn bad_image(image: &str) -> Option<String> {
    if image.contains('@') {
        return None;
    }
    let name = image.rfind('/').map_or(0, |at| at + 1);
    Some(match image[name..].rfind(':') {
        Some(at) => format!("{}:{}", &image[..name + at], bumped(&image[name + at + 1..])),
        None => format!("{image}:opdev"),
    })
}

/// A text like another one: the last number in it is one higher, or something stands behind it.
fn bumped(text: &str) -> String {
    let end = text.rfind(|letter: char| letter.is_ascii_digit()).map(|at| at + 1);
    let Some(end) = end else { return format!("{text}-opdev") };
    let start = text[..end].rfind(|letter: char| !letter.is_ascii_digit()).map_or(0, |at| at + 1);
    let start = (start..end).find(|at| text.is_char_boundary(*at)).unwrap_or(end);
    match text[start..end].parse::<u32>() {
        Ok(number) if number < u32::MAX => format!("{}{}{}", &text[..start], number + 1, &text[end..]),
        _ => format!("{text}-opdev"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn found(spec: &Value, made: Value) -> Vec<(String, String, Disturbance)> {
        let object = json!({"apiVersion": "g/v1", "kind": "Db", "metadata": {"name": "db"}, "spec": spec});
        let sample = Sample { path: String::new(), others: Vec::new(), objects: vec![object] };
        let all = rollouts(&sample, &[Arc::new(made)]);
        all.into_iter().map(|one| (one.path.join("."), one.becomes, one.bad)).collect()
    }

    fn workload(kind: &str, container: &Value) -> Value {
        json!({"kind": kind, "spec": {"template": {"spec": {"containers": [container]}}}})
    }

    #[test]
    fn a_field_that_reaches_an_image_becomes_another_one() {
        let of = |spec: Value| {
            found(
                &spec,
                workload(
                    "Deployment",
                    &json!({"image": "repo:5000/db:7.2", "env": [{"name": "A", "value": "7.2"}]}),
                ),
            )
        };
        let all = of(json!({"version": "7.2", "size": "10Gi"}));
        let bad = |values: &str| {
            Disturbance::BadPods(BadPods {
                field: ".spec.containers[].image".to_owned(),
                values: vec![values.to_owned()],
            })
        };
        assert_eq!(all, [("spec.version".to_owned(), "7.3".to_owned(), bad("repo:5000/db:7.3"))]);
        let all = of(json!({"image": "repo:5000/db:7.2"}));
        assert_eq!(all, [("spec.image".to_owned(), "repo:5000/db:7.3".to_owned(), bad("repo:5000/db:7.3"))]);
        assert!(of(json!({"other": "2"})).is_empty());
    }

    #[test]
    fn arguments_variables_and_resources_are_known_by_their_text() {
        let container =
            json!({"image": "db", "args": ["--level=debug"], "resources": {"limits": {"memory": "1Gi"}}});
        let all =
            found(&json!({"log": {"level": "debug"}, "memory": "1Gi"}), workload("DaemonSet", &container));
        let words: Vec<(String, String)> =
            all.into_iter().map(|(path, becomes, _)| (path, becomes)).collect();
        let pair = |path: &str, becomes: &str| (path.to_owned(), becomes.to_owned());
        assert_eq!(words, [pair("spec.log.level", "debug-opdev"), pair("spec.memory", "2Gi")]);
    }

    #[test]
    fn a_stateful_set_that_waits_for_its_pods_is_left_out() {
        let mut set = workload("StatefulSet", &json!({"image": "db:1"}));
        let spec = || json!({"image": "db:1"});
        assert!(found(&spec(), set.clone()).is_empty());
        set["spec"]["podManagementPolicy"] = "Parallel".into();
        assert_eq!(found(&spec(), set).len(), 1);
    }

    #[test]
    fn the_last_number_is_one_higher() {
        let all = [("7", "8"), ("v1.9-alpine", "v1.10-alpine"), ("latest", "latest-opdev"), ("ü9ü", "ü10ü")];
        for (text, other) in all {
            assert_eq!(bumped(text), other);
        }
        assert_eq!(bad_image("db").as_deref(), Some("db:opdev"));
        assert_eq!(bad_image("db@sha256:0"), None);
    }
}
