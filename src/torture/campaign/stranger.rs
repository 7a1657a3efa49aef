//! Objects of somebody else that have the names of the operator's. Whoever finds one has to leave it alone.
//! An error is the right answer. Pure.

use super::checks::Faults;
use crate::judge::{Difference, FAIL, OWNERS, Outcome, Rule, snapshots};
use crate::plan::Level;
use crate::restless::RESTLESS;
use opdev_normal::{Snapshot, id};
use opdev_object::meta::{self, Gvk};
use opdev_steps::scenario::{STRANGER, Sample, Scenario, Step};
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;
use std::sync::Arc;

/// The field manager, the image and all other names in such an object.
const SOMEBODY: &str = "somebody";

/// Scenarios with an object of somebody else for each one that the operator makes; at the deepest level also
/// with one at a time, since the first one may hide the others.
pub(super) fn scenarios(sample: &Sample, made: &[Arc<Value>], level: Level) -> Vec<Scenario> {
    let objects = strangers(sample, made);
    if objects.is_empty() {
        return Vec::new();
    }
    let scenario = |name: String, objects: Vec<Value>| {
        let steps =
            vec![Step::Stranger(objects), Step::Apply(sample.all()), Step::Delete(sample.objects.clone())];
        Scenario { name, sample: sample.clone(), steps }
    };
    let mut found = vec![scenario(STRANGER.to_owned(), objects.clone())];
    if level == Level::Deep && objects.len() > 1 {
        found.extend(objects.into_iter().map(|one| scenario(format!("{STRANGER} {}", id(&one)), vec![one])));
    }
    found
}

/// An object of somebody else for each one that the operator makes, but for those that the sample names.
/// These are meant to be shared.
fn strangers(sample: &Sample, made: &[Arc<Value>]) -> Vec<Value> {
    let mut named = BTreeSet::new();
    for object in &sample.objects {
        for (_, part) in object.as_object().into_iter().flatten().filter(|(key, _)| *key != "metadata") {
            texts(part, &mut named);
        }
    }
    let own = |object: &Value| {
        let name = meta::name(object).unwrap_or_default();
        // A random name is drawn anew by the next run.
        !named.contains(name) && !id(object).ends_with('*') && object["metadata"]["generateName"].is_null()
    };
    made.iter().filter(|object| own(object)).filter_map(|object| minimal(object)).collect()
}

/// All texts of a value.
fn texts<'a>(value: &'a Value, found: &mut BTreeSet<&'a str>) {
    match value {
        Value::String(text) => drop(found.insert(text)),
        Value::Array(items) => items.iter().for_each(|item| texts(item, found)),
        Value::Object(fields) => fields.values().for_each(|field| texts(field, found)),
        _ => {}
    }
}

/// The smallest object of a kind with the name of another one. Nothing for kinds that are shared on purpose,
/// and for those of which no object is known to be valid.
fn minimal(object: &Value) -> Option<Value> {
    let gvk = Gvk::of(object)?;
    let labels = json!({ "app": SOMEBODY });
    let selector = json!({ "matchLabels": labels });
    let template = |restart: &str| {
        json!({"metadata": {"labels": labels}, "spec": {"restartPolicy": restart,
            "containers": [{"name": SOMEBODY, "image": format!("{SOMEBODY}:1")}]}})
    };
    let workload = || json!({"replicas": 0, "selector": selector, "template": template("Always")});
    let (field, content) = match (gvk.group.as_str(), gvk.kind.as_str()) {
        ("", "ConfigMap") => ("data", json!({ "made-by": SOMEBODY })),
        ("", "Secret") => ("stringData", json!({ "made-by": SOMEBODY })),
        ("", "Service") => {
            let mut spec =
                json!({"selector": labels, "ports": [{"name": SOMEBODY, "port": 9, "protocol": "TCP"}]});
            // No update changes that, so the API server would answer instead of the operator.
            if object["spec"]["clusterIP"] == "None" {
                meta::put(&mut spec, &["clusterIP"], "None");
            }
            ("spec", spec)
        }
        ("apps", "Deployment") => ("spec", workload()),
        ("apps", "StatefulSet") => {
            let spec = json!({"replicas": 0, "serviceName": SOMEBODY, "selector": selector,
                "template": template("Always")});
            ("spec", spec)
        }
        ("apps", "DaemonSet") => {
            let mut template = template("Always");
            meta::put(&mut template, &["spec", "nodeSelector"], labels.clone());
            ("spec", json!({"selector": selector, "template": template}))
        }
        ("batch", "Job") => ("spec", json!({"suspend": true, "template": template("Never")})),
        ("batch", "CronJob") => {
            let job = json!({"spec": {"template": template("Never")}});
            ("spec", json!({"suspend": true, "schedule": "0 0 1 1 *", "jobTemplate": job}))
        }
        ("networking.k8s.io", "Ingress") => {
            let service = json!({"name": SOMEBODY, "port": {"number": 9}});
            ("spec", json!({"defaultBackend": {"service": service}}))
        }
        ("networking.k8s.io", "NetworkPolicy") => ("spec", json!({ "podSelector": selector })),
        ("policy", "PodDisruptionBudget") => ("spec", json!({"minAvailable": 1, "selector": selector})),
        ("autoscaling", "HorizontalPodAutoscaler") => {
            let target = json!({"apiVersion": "apps/v1", "kind": "Deployment", "name": SOMEBODY});
            ("spec", json!({"scaleTargetRef": target, "minReplicas": 1, "maxReplicas": 3}))
        }
        _ => return None,
    };
    let mut metadata = Map::new();
    metadata.insert("name".to_owned(), meta::name(object)?.into());
    metadata.insert("namespace".to_owned(), meta::namespace(object)?.into());
    Some(
        json!({"apiVersion": object["apiVersion"], "kind": object["kind"], "metadata": metadata, field: content}),
    )
}

/// The objects of somebody else that the operator took, and a program that ended over it.
pub(super) fn faults(steps: &[Step], outcome: &Outcome) -> Faults {
    let ids: BTreeSet<String> = steps
        .iter()
        .flat_map(|step| match step {
            Step::Stranger(objects) => objects.as_slice(),
            _ => &[],
        })
        .map(id)
        .collect();
    let Some((before, after)) = outcome.ends.split_first() else { return Faults::default() };
    let mut found: Vec<Difference> = Vec::new();
    for end in after {
        for one in taken(&ids, before, end) {
            let known = |other: &Difference| other.object == one.object;
            // An object with an owner goes with it, and content that was changed once may be changed again.
            if !found.iter().any(known) {
                found.push(one);
            }
        }
    }
    // An error of a reconcile is the right answer.
    let ends = outcome.troubles.iter().filter(|one| !one.contains(FAIL) && !one.contains(RESTLESS));
    found.extend(ends.map(|trouble| Difference::plain(Rule::Trouble, trouble)));
    Faults { found, ..Faults::default() }
}

/// The first difference of each object that was changed, deleted or given an owner. Whoever adds a label or
/// a field of its own takes nothing.
fn taken(ids: &BTreeSet<String>, before: &Snapshot, after: &Snapshot) -> Vec<Difference> {
    let of = |all: &Snapshot| -> Snapshot {
        all.iter()
            .filter(|(id, _)| ids.contains(*id))
            .map(|(id, fields)| (id.clone(), fields.clone()))
            .collect()
    };
    let all = snapshots(&of(before), &of(after), Rule::Stranger);
    let owned = |one: &Difference| one.path.starts_with(OWNERS);
    let mut found: Vec<Difference> = Vec::new();
    for one in all.iter().filter(|one| owned(one) && !owner_of(&all, one).is_empty()) {
        if !found.iter().any(|known| known.object == one.object) {
            found.push(Difference {
                path: OWNERS.to_owned(),
                disturbed: owner_of(&all, one),
                undisturbed: String::new(),
                ..one.clone()
            });
        }
    }
    for mut one in all {
        let beside = one.path.starts_with(".metadata") || one.path.starts_with(".status");
        let added = !one.path.is_empty() && one.undisturbed.is_empty();
        if beside || added || found.iter().any(|known| known.object == one.object) {
            continue;
        }
        if one.path.is_empty() {
            one.undisturbed.clear();
        }
        found.push(one);
    }
    found
}

/// The owner that an object got, as kind and name.
fn owner_of(all: &[Difference], one: &Difference) -> String {
    let part = |name: &str| {
        let is = |other: &&Difference| {
            other.object == one.object && other.path.starts_with(OWNERS) && other.path.ends_with(name)
        };
        all.iter().find(is).map(|other| other.disturbed.clone()).unwrap_or_default()
    };
    format!("{} {}", part(".kind"), part(".name")).trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use opdev_normal::snapshot;

    fn sample(spec: &Value) -> Sample {
        let object = json!({"apiVersion": "g/v1", "kind": "Db", "metadata": {"name": "db", "namespace": "x"}, "spec": spec});
        Sample { path: "db.yaml".to_owned(), others: Vec::new(), objects: vec![object] }
    }

    fn made(api: &str, kind: &str, name: &str) -> Arc<Value> {
        Arc::new(json!({"apiVersion": api, "kind": kind, "metadata": {"name": name, "namespace": "x"}}))
    }

    #[test]
    fn strangers_have_the_names_of_the_operators_objects_but_for_those_that_are_shared() {
        let all = [
            made("v1", "ConfigMap", "db-data"),
            made("v1", "Secret", "given"),
            made("v1", "ServiceAccount", "db"),
            made("apps/v1", "Deployment", "db"),
            made("v1", "ConfigMap", "db-x7k2z"),
            made("example.com/v1", "Queue", "db"),
        ];
        let found = strangers(&sample(&json!({"auth": {"secret": "given"}})), &all);
        let ids: Vec<String> = found.iter().map(id).collect();
        assert_eq!(ids, ["ConfigMap x/db-data", "Deployment x/db"]);
        let at = |level| scenarios(&sample(&json!({})), &all[..4], level).len();
        assert_eq!([at(Level::Quick), at(Level::Normal), at(Level::Deep)], [1, 1, 4]);
        assert!(scenarios(&sample(&json!({})), &[], Level::Deep).is_empty());
    }

    fn with(change: impl Fn(&mut Value)) -> Vec<String> {
        let made = minimal(&made("v1", "ConfigMap", "db-data")).unwrap();
        let mut changed = made.clone();
        change(&mut changed);
        let ends = vec![snapshot([&made].into_iter()), snapshot([&changed].into_iter())];
        let outcome = Outcome { ends, ..Outcome::default() };
        faults(&[Step::Stranger(vec![made])], &outcome).found.iter().map(Difference::words).collect()
    }

    #[test]
    fn an_object_is_taken_by_its_content_or_by_an_owner() {
        assert!(with(|_| {}).is_empty());
        assert!(with(|map| map["metadata"]["labels"] = json!({"a": "b"})).is_empty(), "a label of its own");
        assert!(with(|map| map["data"]["more"] = "1".into()).is_empty(), "a field of its own");
        assert_eq!(
            with(|map| map["data"] = json!({"made-by": "me"})),
            ["ConfigMap x/db-data of somebody else: .data.made-by somebody → me"]
        );
        let owner =
            json!([{"apiVersion": "g/v1", "kind": "Db", "name": "db", "uid": "1", "controller": true}]);
        assert_eq!(
            with(|map| {
                map["metadata"]["ownerReferences"] = owner.clone();
                map["data"] = json!({});
            }),
            ["ConfigMap x/db-data of somebody else got Db db as its owner, and goes with it"]
        );
        assert_eq!(
            with(|map| map["metadata"]["name"] = "other".into()),
            ["ConfigMap x/db-data of somebody else was deleted"]
        );
    }

    #[test]
    fn an_error_is_the_right_answer_and_an_end_is_none() {
        let troubles = [format!("reconciles of db {FAIL}: it is there"), "the program has ended".to_owned()];
        let outcome =
            Outcome { ends: vec![Snapshot::new()], troubles: troubles.into(), ..Outcome::default() };
        let found = faults(&[], &outcome).found;
        assert_eq!(found.iter().map(Difference::words).collect::<Vec<_>>(), ["the program has ended"]);
    }
}
