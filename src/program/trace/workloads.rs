//! Workloads as a reconcile had them in hand, and what it read by name from the API server. Pure.

use super::reconcile::Open;
use jiff::Timestamp;
use opdev_event::evidence::{ConfigFact, ReadFact, WorkloadFact};
use opdev_facts::observed::ObservedCall;
use opdev_facts::record::fields::{reference, time};
use opdev_facts::versions::Versions;
use opdev_object::meta::{self, ObjectKey, ObjectRef, resource_version};
use opdev_object::path::Path;
use serde_json::Value;

/// Facts of one reconcile that are kept.
const MOST: usize = 64;
/// ConfigMaps and Secrets of one reconcile that are kept, and keys of each.
const CONFIGS: usize = 8;
const KEYS: usize = 32;

/// The workloads that a reconcile has read or written, in order.
pub(super) fn workloads(open: &Open, versions: &Versions) -> Vec<WorkloadFact> {
    let mut found: Vec<WorkloadFact> = Vec::new();
    for read in open.reads.iter().filter(|read| read.error.is_empty() && is_kind(&read.object.kind)) {
        let of = reference(&read.object).key();
        let single = (read.verb == "get").then(|| (of.clone(), read.object.rv.clone()));
        let items = read.items.iter().map(|item| {
            let namespace = Some(item.namespace.clone()).filter(|namespace| !namespace.is_empty());
            (ObjectKey { namespace, name: item.name.clone(), ..of.clone() }, item.rv.clone())
        });
        for (key, rv) in single.into_iter().chain(items).take(MOST) {
            let object = versions.at(&key, &rv);
            found.extend(object.and_then(|object| workload(&object, key, time(read.t))));
        }
    }
    let answered = |call: &ObservedCall| {
        let object = call.answered.as_ref().filter(|_| (200..300).contains(&call.status))?;
        workload(object, ObjectRef::of(object)?.key(), call.done())
    };
    found.extend(open.calls.iter().filter(|call| call.method != "DELETE").filter_map(answered));
    found.sort_by_key(|fact| fact.at);
    found.drain(..found.len().saturating_sub(MOST));
    found
}

fn is_kind(kind: &str) -> bool {
    matches!(kind, "Deployment" | "StatefulSet" | "DaemonSet")
}

fn workload(object: &Value, key: ObjectKey, at: Timestamp) -> Option<WorkloadFact> {
    if key.group != "apps" || !is_kind(&key.kind) {
        return None;
    }
    let (spec, status) = (&object["spec"], &object["status"]);
    let number = |name: &str| status[name].as_i64().unwrap_or_default();
    let (wanted, ready, updated) = match key.kind.as_str() {
        "DaemonSet" => {
            (number("desiredNumberScheduled"), number("numberReady"), number("updatedNumberScheduled"))
        }
        _ => (spec["replicas"].as_i64().unwrap_or(1), number("readyReplicas"), number("updatedReplicas")),
    };
    // Pods that are to keep their template are no rollout that is under way.
    let strategy = &spec["updateStrategy"];
    let kept = strategy["type"] == "OnDelete"
        || strategy["rollingUpdate"]["partition"].as_i64().is_some_and(|partition| partition > 0);
    let observed = number("observedGeneration") >= meta::generation(object);
    Some(WorkloadFact {
        at,
        object: key,
        wanted,
        ready,
        updated: if kept { wanted } else { updated },
        observed,
    })
}

/// Objects that a reconcile has read by name from the API server.
pub(super) fn live_reads(open: &Open) -> Vec<ReadFact> {
    let read = |call: &ObservedCall| {
        let object = call.answered.as_ref().filter(|_| call.status == 200 && call.verb() == "get")?;
        let version = resource_version(object)?.to_owned();
        Some(ReadFact { objects: vec![ObjectRef::of(object)?.key()], missing: false, version })
    };
    open.calls.iter().filter_map(read).take(MOST).collect()
}

/// ConfigMaps and Secrets that a reconcile has read by name, from its cache or from the API server.
pub(super) fn configs(open: &Open, versions: &Versions) -> Vec<ConfigFact> {
    let is_config = |of: &ObjectRef| of.gvk.is_config();
    let cached = open.reads.iter().filter(|read| read.verb == "get" && read.error.is_empty());
    let cached = cached.filter_map(|read| {
        let of = Some(reference(&read.object)).filter(is_config)?;
        let object = versions.at(&of.key(), &read.object.rv)?;
        Some(ConfigFact { values: values(&object), object: of })
    });
    let live = open.calls.iter().filter_map(|call| {
        let object = call.answered.as_ref().filter(|_| call.status == 200 && call.verb() == "get")?;
        let of = ObjectRef::of(object).filter(is_config)?;
        Some(ConfigFact { values: values(object), object: of })
    });
    cached.chain(live).take(CONFIGS).collect()
}

/// The keys of the data of a ConfigMap or Secret, each with a hash of its value.
fn values(object: &Value) -> Vec<(String, u64)> {
    let of = |field: &'static str| {
        let data = object[field].as_object().into_iter().flatten();
        data.map(move |(key, value)| {
            (Path::root().field(field).field(key).to_string(), super::evidence::hash(Some(value)))
        })
    };
    of("data").chain(of("binaryData")).take(KEYS).collect()
}

/// True if a spec says with how little it is content, or that nothing is to be done.
pub(super) fn tolerates(spec: &Value) -> bool {
    match spec {
        Value::Array(items) => items.iter().any(tolerates),
        Value::Object(fields) => fields.iter().any(|(name, value)| {
            let name = name.to_lowercase();
            let says = name.starts_with("min") && !name.starts_with("minor")
                || ["maxunavailable", "quorum", "partition", "paused", "suspend"].contains(&name.as_str());
            says || tolerates(value)
        }),
        _ => false,
    }
}

/// The number of children that a spec may ask for: its largest number, or one for each value in it.
pub(super) fn wanted(spec: &Value) -> u64 {
    fn largest(value: &Value) -> u64 {
        match value {
            Value::Number(number) => number.as_u64().unwrap_or_default(),
            Value::Array(items) => items.iter().map(largest).max().unwrap_or_default(),
            Value::Object(fields) => fields.values().map(largest).max().unwrap_or_default(),
            _ => 0,
        }
    }
    fn items(value: &Value) -> u64 {
        match value {
            Value::Array(list) => list.len() as u64 + list.iter().map(items).sum::<u64>(),
            Value::Object(fields) => fields.values().map(items).sum(),
            _ => 0,
        }
    }
    largest(spec).max(items(spec))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_workload_says_how_many_of_its_pods_are_ready_and_new() {
        let of = |kind: &str, spec: Value, status: Value| {
            let object = json!({"apiVersion": "apps/v1", "kind": kind, "spec": spec, "status": status,
                "metadata": {"name": "web", "namespace": "default", "generation": 2}});
            let key = ObjectRef::of(&object).unwrap().key();
            workload(&object, key, Timestamp::UNIX_EPOCH)
                .map(|fact| (fact.wanted, fact.ready, fact.updated, fact.observed))
        };
        let status = || json!({"observedGeneration": 2, "readyReplicas": 1, "updatedReplicas": 1});
        assert_eq!(of("Deployment", json!({"replicas": 3}), status()), Some((3, 1, 1, true)));
        assert_eq!(of("Deployment", json!({}), json!({"observedGeneration": 1})), Some((1, 0, 0, false)));
        let kept = json!({"replicas": 3, "updateStrategy": {"type": "OnDelete"}});
        assert_eq!(of("StatefulSet", kept, status()), Some((3, 1, 3, true)));
        let nodes = json!({"observedGeneration": 2, "desiredNumberScheduled": 2, "numberReady": 2, "updatedNumberScheduled": 1});
        assert_eq!(of("DaemonSet", json!({}), nodes), Some((2, 2, 1, true)));
        assert_eq!(of("ReplicaSet", json!({}), json!({})), None);
    }

    #[test]
    fn a_spec_may_say_with_how_little_it_is_content() {
        for spec in [json!({"minReady": 1}), json!({"a": [{"maxUnavailable": 1}]}), json!({"paused": true})] {
            assert!(tolerates(&spec), "{spec}");
        }
        assert!(!tolerates(&json!({"replicas": 3, "image": "minio", "minorVersion": 3})));
    }

    #[test]
    fn a_spec_asks_for_as_many_as_a_number_or_the_items_of_its_lists() {
        assert_eq!(wanted(&json!({"replicas": 3, "image": "x"})), 3);
        assert_eq!(
            wanted(&json!({"replicas": 1, "users": [{"name": "a", "of": ["x", "y"]}, {"name": "b"}]})),
            4
        );
        assert_eq!(wanted(&json!({})), 0);
    }
}
