//! Pods that are made anew because the template that they are made from differs. The template tells it, never
//! the pods: a rollout may wait for an application that does not run here.

use super::observed::Observed;
use super::words::{self, named};
use crate::finding::{Class, Finding, Level};
use opdev_object::diff::{Change, diff};
use opdev_object::meta::{self, ObjectKey};
use opdev_object::path::{Path, Segment};
use serde_json::Value;
use std::collections::BTreeSet;

pub(super) fn findings(observed: &Observed) -> Vec<Finding> {
    let mut found = Vec::new();
    for (key, before) in &observed.before.0 {
        let is_workload =
            key.group == "apps" && matches!(key.kind.as_str(), "Deployment" | "StatefulSet" | "DaemonSet");
        let Some(after) = observed.after.get(key).filter(|_| is_workload) else { continue };
        if meta::uid(before) != meta::uid(after) {
            continue;
        }
        let changes = template_changes(before, after);
        let pods = pods(key, after);
        if !changes.is_empty() && pods > 0 {
            found.push(finding(key, after, changes, pods));
        }
    }
    found
}

/// What differs between the templates of two versions of a workload.
fn template_changes(before: &Value, after: &Value) -> Vec<Change> {
    let template = |object: &Value| object.pointer("/spec/template").cloned().unwrap_or(Value::Null);
    let (old, new) = (template(before), template(after));
    by_word(&old, &new, diff(&old, &new))
}

/// Lists of words, such as arguments: one that is new in the middle is one change, not one for each that
/// comes after it.
fn by_word(old: &Value, new: &Value, changes: Vec<Change>) -> Vec<Change> {
    let mut done: BTreeSet<String> = BTreeSet::new();
    let mut out = Vec::new();
    for change in changes {
        let list = match change.path.0.split_last() {
            Some((Segment::Index(_), parent)) => Some(Path(parent.to_vec())),
            _ => None,
        };
        let Some((path, a, b)) = list.and_then(|path| {
            let (a, b) = (path.get(old)?.as_array()?, path.get(new)?.as_array()?);
            let words = a.iter().chain(b).all(|value| !value.is_object() && !value.is_array());
            words.then(|| (path.clone(), a.clone(), b.clone()))
        }) else {
            out.push(change);
            continue;
        };
        if done.insert(path.to_string()) {
            let (gone, come) = words_that_differ(&a, &b);
            let list = |values: Vec<Value>| (!values.is_empty()).then_some(Value::Array(values));
            out.push(Change { path, old: list(gone), new: list(come) });
        }
    }
    out
}

/// The values that are not in the longest list that both have in this order.
fn words_that_differ(a: &[Value], b: &[Value]) -> (Vec<Value>, Vec<Value>) {
    let mut longest = vec![vec![0usize; b.len() + 1]; a.len() + 1];
    for i in (0..a.len()).rev() {
        for j in (0..b.len()).rev() {
            longest[i][j] = match a[i] == b[j] {
                true => longest[i + 1][j + 1] + 1,
                false => longest[i + 1][j].max(longest[i][j + 1]),
            };
        }
    }
    let (mut gone, mut come, mut i, mut j) = (Vec::new(), Vec::new(), 0, 0);
    while i < a.len() || j < b.len() {
        if i < a.len() && j < b.len() && a[i] == b[j] {
            (i, j) = (i + 1, j + 1);
        } else if j == b.len() || i < a.len() && longest[i + 1][j] >= longest[i][j + 1] {
            gone.push(a[i].clone());
            i += 1;
        } else {
            come.push(b[j].clone());
            j += 1;
        }
    }
    (gone, come)
}

/// How many pods it has. A DaemonSet that fits no node here has at least one elsewhere.
fn pods(key: &ObjectKey, object: &Value) -> u64 {
    let count = |pointer: &str| object.pointer(pointer).and_then(Value::as_u64);
    match key.kind.as_str() {
        "DaemonSet" => count("/status/desiredNumberScheduled").unwrap_or_default().max(1),
        _ => count("/spec/replicas").unwrap_or(1),
    }
}

fn finding(key: &ObjectKey, after: &Value, changes: Vec<Change>, pods: u64) -> Finding {
    let fields = words::fields(".spec.template", &changes);
    let object = named(key);
    let count = if pods == 1 { "its pod is".to_owned() } else { format!("its {pods} pods are") };
    let only_labels = fields.iter().all(|field| words::is_version_label(field));
    let on_delete = after.pointer("/spec/updateStrategy/type").and_then(Value::as_str) == Some("OnDelete");
    let title = match only_labels {
        true => format!("{object}: {count} made anew for the label of the version alone"),
        false => format!("{object}: {count} made anew, for {} differs", words::some_of(&fields, 2)),
    };
    let fix = match only_labels {
        true => "leave labels that tell of the version out of the pods' template",
        false => "say so in the release notes, or keep the template as it is for objects that exist",
    };
    let lines = words::changes(&key.kind, ".spec.template", changes);
    let finding = Finding::new(Level::Warning, Class::PodsRoll, object, title).fields(fields);
    let finding = finding.lines(lines.into_iter().take(8)).fix(fix);
    match on_delete {
        true => finding.line("its update strategy is OnDelete: pods change once somebody deletes them"),
        false => finding,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_new_argument_is_one_change() {
        let object = |args: &[&str]| json!({ "spec": { "template": { "spec": { "containers": [{ "name": "a", "args": args, "image": "x" }] } } } });
        let changes = template_changes(&object(&["-a", "-b", "-c"]), &object(&["-a", "-n", "-b", "-c"]));
        assert_eq!(changes.len(), 1, "{changes:?}");
        assert_eq!((changes[0].old.clone(), changes[0].new.clone()), (None, Some(json!(["-n"]))));
        assert_eq!(
            words::fields(".spec.template", &changes),
            [".spec.template.spec.containers[name=a].args"]
        );
    }

    #[test]
    fn a_label_of_the_version_is_told_as_such() {
        let object = |chart: &str| {
            json!({ "apiVersion": "apps/v1", "kind": "Deployment", "spec": { "replicas": 2, "template": {
                "metadata": { "labels": { "helm.sh/chart": chart } } } } })
        };
        let changes = template_changes(&object("a-1"), &object("a-2"));
        let key = ObjectKey { kind: "Deployment".to_owned(), name: "a".to_owned(), ..ObjectKey::default() };
        let told = finding(&key, &object("a-2"), changes, 2);
        assert_eq!(told.title, "Deployment a: its 2 pods are made anew for the label of the version alone");
        assert_eq!(
            told.lines,
            [
                "- .spec.template.metadata.labels[helm.sh/chart]: a-1",
                "+ .spec.template.metadata.labels[helm.sh/chart]: a-2"
            ]
        );
    }
}
