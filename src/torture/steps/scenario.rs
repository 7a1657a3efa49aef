//! The actions on a sample in a run: the scenarios that follow from its fields. Pure.

use crate::parts::{counts, storage, toggles};
use opdev_object::meta::{self, ObjectRef};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

/// The namespace of the scenario that deletes it.
pub const OWN: &str = "torture";

/// The objects of a file of samples, with their namespaces.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Sample {
    /// Path relative to the project's root.
    pub path: String,
    /// Objects that are to be there before, and are never changed.
    #[serde(default)]
    pub others: Vec<Value>,
    /// Objects that the operator reconciles.
    pub objects: Vec<Value>,
}

/// Steps, from a plane with nothing but the bystander on it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Scenario {
    /// Its name, such as `up-down`.
    pub name: String,
    /// The sample it is about.
    pub sample: Sample,
    /// The steps.
    pub steps: Vec<Step>,
}

/// One step. The next one begins once all is settled.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Step {
    /// Objects are applied.
    Apply(Vec<Value>),
    /// A merge patch.
    Patch {
        /// The object that is meant, as a manifest without a spec.
        object: Value,
        /// The patch.
        patch: Value,
    },
    /// Objects are deleted, the last one first; they are to be gone at the end of the step.
    Delete(Vec<Value>),
    /// One object that belongs to the first one of the sample is deleted.
    DeleteChild(Value),
    /// A namespace is deleted; it is to be gone at the end of the step.
    DeleteNamespace(String),
    /// Somebody else makes objects.
    Stranger(Vec<Value>),
    /// The sample under another name. The API server may refuse it: then nothing is done.
    Named {
        /// The kind of name.
        naming: Naming,
        /// Objects that are to be there before.
        others: Vec<Value>,
        /// Objects that the operator reconciles.
        objects: Vec<Value>,
    },
}

/// A kind of name that the API server takes for a custom resource, and perhaps not for its children.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Naming {
    /// 52 letters: the longest one of a CronJob or of a StatefulSet whose pods can be made.
    Long,
    /// It begins with a digit: no Service may have it.
    Digit,
    /// 63 letters: the longest one of a label.
    Longest,
    /// With a dot, as only some kinds may have it.
    Dot,
}

impl Naming {
    /// The kind of name in words.
    pub fn words(self) -> &'static str {
        match self {
            Naming::Long => "a name of 52 letters",
            Naming::Digit => "a name that begins with a digit",
            Naming::Longest => "a name of 63 letters",
            Naming::Dot => "a name with a dot",
        }
    }

    /// The namespace of objects with such a name.
    pub fn namespace(self) -> &'static str {
        match self {
            Naming::Long => "name-of-52-letters",
            Naming::Digit => "name-begins-with-a-digit",
            Naming::Longest => "name-of-63-letters",
            Naming::Dot => "name-with-a-dot",
        }
    }

    /// Returns true if hardly any operator works with such names.
    pub fn is_hint(self) -> bool {
        matches!(self, Naming::Longest | Naming::Dot | Naming::Digit)
    }
}

impl Scenario {
    /// Its name and its sample in words.
    pub fn title(&self) -> String {
        format!("{} of {}", self.name, self.sample.path)
    }

    /// Returns true if it is judged by itself, and not by undisturbed runs.
    pub fn is_check(&self) -> bool {
        self.steps.iter().any(|step| matches!(step, Step::Stranger(_) | Step::Named { .. }))
    }
}

/// The words of a step that deletes a child, before the name of its parent.
pub const DELETE_CHILD: &str = "delete a child of";

impl Step {
    /// The step in words.
    pub fn words(&self) -> String {
        match self {
            Step::Apply(objects) => format!("apply {}", names(objects)),
            Step::Patch { object, patch } => format!("{}: {}", name(object), patched(patch)),
            Step::Delete(objects) => format!("delete {}", names(objects)),
            Step::DeleteChild(object) => format!("{DELETE_CHILD} {}", name(object)),
            Step::DeleteNamespace(namespace) => format!("delete namespace {namespace}"),
            Step::Stranger(objects) => format!("somebody else makes {}", names(objects)),
            Step::Named { naming, objects, .. } => {
                let kind = objects.first().map(|first| &first["kind"]).and_then(Value::as_str);
                format!("apply {} with {}", kind.unwrap_or_default(), naming.words())
            }
        }
    }
}

/// Returns true if a scenario is one that the user names: `toggle` stands for all of that kind.
pub fn is_named(scenario: &str, name: &str) -> bool {
    scenario.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with(' '))
}

/// Kind and name of an object.
pub fn name(object: &Value) -> String {
    format!("{} {}", object["kind"].as_str().unwrap_or_default(), meta::name(object).unwrap_or_default())
}

fn names(objects: &[Value]) -> String {
    objects.iter().map(name).collect::<Vec<_>>().join(", ")
}

/// A patch of one field in words.
fn patched(patch: &Value) -> String {
    let (mut path, mut at) = (String::new(), patch);
    while let Some((key, next)) =
        at.as_object().filter(|map| map.len() == 1).and_then(|map| map.iter().next())
    {
        path.push('.');
        path.push_str(key);
        at = next;
    }
    if at.is_object() || at.is_array() { format!("{path} changed") } else { format!("{path} → {at}") }
}

impl Sample {
    /// A copy in another namespace; what belongs to no namespace gets another name where `rename` gives one.
    pub fn moved(&self, namespace: &str, rename: Option<&str>) -> Sample {
        let moved = |objects: &[Value]| {
            let moved = objects.iter().map(|object| {
                let mut object = object.clone();
                match (meta::namespace(&object).is_some(), rename) {
                    (true, _) => set(&mut object, "namespace", namespace),
                    (false, Some(suffix)) => {
                        let name = format!("{}{suffix}", meta::name(&object).unwrap_or_default());
                        set(&mut object, "name", &name);
                    }
                    (false, None) => {}
                }
                object
            });
            moved.collect()
        };
        Sample { path: self.path.clone(), others: moved(&self.others), objects: moved(&self.objects) }
    }

    /// Returns true if all that is reconciled lives in namespaces.
    pub fn is_namespaced(&self) -> bool {
        self.objects.iter().all(|object| meta::namespace(object).is_some())
    }

    /// All of its objects.
    pub fn all(&self) -> Vec<Value> {
        self.others.iter().chain(&self.objects).cloned().collect()
    }
}

/// Sets a field of an object's metadata.
pub fn set(object: &mut Value, field: &str, value: &str) {
    meta::put(object, &["metadata", field], value);
}

/// A copy of the reconciled objects with other names.
fn twins(objects: &[Value]) -> Vec<Value> {
    let twin = |object: &Value| {
        let mut object = object.clone();
        let name = format!("{}-twin", meta::name(&object).unwrap_or_default());
        set(&mut object, "name", &name);
        object
    };
    objects.iter().map(twin).collect()
}

/// The head of an object: what it takes to find it.
pub fn head(object: &Value) -> Value {
    let mut metadata = Map::new();
    for field in ["name", "namespace"] {
        if let Some(value) = object["metadata"].get(field) {
            metadata.insert(field.to_owned(), value.clone());
        }
    }
    json!({"apiVersion": object["apiVersion"], "kind": object["kind"], "metadata": metadata})
}

/// The reference of a manifest.
pub fn reference(object: &Value) -> Option<ObjectRef> {
    ObjectRef::of(object)
}

/// The names of the scenarios that a sample can have. Beside them each toggled field has one, `toggle FIELD`,
/// and each number of pods that belongs to a part, such as `up-down server.replicas`.
pub const SCENARIOS: [&str; 10] =
    ["recreate", "up-down", "down-up", "grow", "child", "namespace", "twin", STRANGER, NAMES, BAD_ROLLOUT];

/// Objects of somebody else have the names of the operator's.
pub const STRANGER: &str = "stranger";
/// The sample under other names.
pub const NAMES: &str = "names";
/// Pods of a new revision do not start.
pub const BAD_ROLLOUT: &str = "bad-rollout";

/// All scenarios that follow from a sample alone. `scale` is where its kind says how many replicas it wants,
/// such as `.spec.replicas`; `schema` is the one of its custom resource, where there is one.
pub fn scenarios(sample: &Sample, (scale, schema): (Option<&str>, Option<&Value>)) -> Vec<Scenario> {
    let Some(first) = sample.objects.first() else { return Vec::new() };
    let all = || Step::Apply(sample.all());
    let mut found = Vec::new();
    let mut add = |name: &str, steps: Vec<Step>| {
        found.push(Scenario { name: name.to_owned(), sample: sample.clone(), steps });
    };
    add("recreate", vec![all(), Step::Delete(sample.objects.clone()), Step::Apply(sample.objects.clone())]);
    let change =
        |path: &[String], value: Value| Step::Patch { object: head(first), patch: nested(path, value) };
    for (part, path, count) in counts(first, scale) {
        let ups = vec![all(), change(&path, (count + 2).into()), change(&path, (count + 1).into())];
        add(&format!("up-down{part}"), ups);
        let many = count.max(2);
        let mut steps = vec![all()];
        steps.extend((many != count).then(|| change(&path, many.into())));
        steps.extend([change(&path, (many - 1).into()), change(&path, many.into())]);
        add(&format!("down-up{part}"), steps);
    }
    if let Some((path, larger)) = storage(first) {
        add("grow", vec![all(), change(&path, larger.into())]);
    }
    for (path, was, other) in toggles(first, schema) {
        let name = format!("toggle {}", path[1..].join("."));
        add(&name, vec![all(), change(&path, other.clone()), change(&path, was), change(&path, other)]);
    }
    add("child", vec![all(), Step::DeleteChild(head(first))]);
    if sample.is_namespaced() {
        let own = sample.moved(OWN, None);
        let steps = vec![Step::Apply(own.all()), Step::DeleteNamespace(OWN.to_owned())];
        found.push(Scenario { name: "namespace".to_owned(), sample: own, steps });
    }
    let twin = twins(&sample.objects);
    let steps = vec![all(), Step::Apply(twin), Step::Delete(sample.objects.clone())];
    found.push(Scenario { name: "twin".to_owned(), sample: sample.clone(), steps });
    found
}

/// A merge patch that sets one field.
pub fn nested(path: &[String], value: Value) -> Value {
    path.iter().rev().fold(value, |inner, key| json!({ key: inner }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Sample {
        let object = json!({"apiVersion": "g/v1", "kind": "Db", "metadata": {"name": "db", "namespace": "default"},
            "spec": {"replicas": 1, "tls": {"enabled": false}, "persistence": {"storage": "5Gi"}}});
        Sample { path: "samples/db.yaml".to_owned(), others: Vec::new(), objects: vec![object] }
    }

    #[test]
    fn scenarios_follow_from_the_fields_of_the_sample() {
        let found = scenarios(&sample(), (None, None));
        let names: Vec<&str> = found.iter().map(|one| one.name.as_str()).collect();
        assert_eq!(
            names,
            ["recreate", "up-down", "down-up", "grow", "toggle tls.enabled", "child", "namespace", "twin"]
        );
        let named: Vec<&str> = names.into_iter().filter(|name| !name.starts_with("toggle ")).collect();
        assert_eq!(named, SCENARIOS[..named.len()], "what the shell completes");
        assert_eq!(SCENARIOS[named.len()..], [STRANGER, NAMES, BAD_ROLLOUT]);
        let words = |at: usize| found[at].steps.iter().map(Step::words).collect::<Vec<_>>();
        assert_eq!(words(1), ["apply Db db", "Db db: .spec.replicas → 3", "Db db: .spec.replicas → 2"]);
        assert_eq!(
            words(2)[1..],
            ["Db db: .spec.replicas → 2", "Db db: .spec.replicas → 1", "Db db: .spec.replicas → 2"]
        );
        assert_eq!(words(3)[1], "Db db: .spec.persistence.storage → \"7680Mi\"");
        assert_eq!(meta::namespace(&found[6].sample.objects[0]), Some(OWN));
    }

    #[test]
    fn a_sample_without_such_fields_has_the_scenarios_of_all() {
        let mut plain = sample();
        plain.objects[0]["spec"] = json!({});
        plain.objects[0]["metadata"] = json!({"name": "db"});
        let names: Vec<String> = scenarios(&plain, (None, None)).into_iter().map(|one| one.name).collect();
        assert_eq!(names, ["recreate", "child", "twin"], "it belongs to no namespace");
        plain.objects[0]["spec"] = json!({"workers": {"number": 3}});
        assert_eq!(scenarios(&plain, (Some(".spec.workers.number"), None))[1].name, "up-down");
    }

    #[test]
    fn a_moved_sample_keeps_all_but_its_place() {
        let moved = sample().moved("other", None);
        assert_eq!(meta::namespace(&moved.objects[0]), Some("other"));
        assert_eq!(moved.objects[0]["spec"], sample().objects[0]["spec"]);
    }
}
