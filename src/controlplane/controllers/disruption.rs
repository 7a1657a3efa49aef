//! PodDisruptionBudgets: how many pods may be evicted now.
//! Never evicts; the eviction subresource reads what stands here.

use super::conditions::{self, NewCondition};
use super::fields::{self, deleting, int, put_count, scaled, with_status};
use super::pods;
use super::selector::Selector;
use crate::contract::{Actor, Change, Controller, Key, Sync, View, Write};
use jiff::Timestamp;
use opdev_apimachinery::attributes::Lookup;
use opdev_object::meta;
use serde_json::{Map, Value};
use std::sync::Arc;
use std::time::Duration;

/// See the module.
pub(crate) struct Disruptions;

const RESOURCE: &str = "policy/poddisruptionbudgets";

/// After this a pod whose eviction was allowed, and that is still there, counts again.
const EVICTION_LIMIT: Duration = Duration::from_secs(120);

/// Where the wanted number of replicas of a pod's controller stands.
const SCALES: [(&str, &str); 3] = [
    ("ReplicaSet", super::replicaset::RESOURCE),
    ("StatefulSet", "apps/statefulsets"),
    ("ReplicationController", "replicationcontrollers"),
];

impl Controller for Disruptions {
    fn name(&self) -> &'static str {
        "disruption-controller"
    }

    fn actor(&self) -> Actor {
        Actor::kube_controller_manager("system:serviceaccount:kube-system:disruption-controller")
    }

    fn keys(&self, view: &dyn View, change: &Change) -> Vec<Key> {
        let Some(object) = change.object() else { return Vec::new() };
        let namespace = object.namespace();
        if change.resource == RESOURCE {
            return change.key().into_iter().collect();
        }
        let scales = SCALES.iter().any(|(_, resource)| *resource == change.resource);
        let budgets = || view.list(RESOURCE, namespace).into_iter();
        let key = |budget: Arc<Value>| Key::of_object(RESOURCE, &budget);
        if scales {
            return budgets().map(key).collect();
        }
        if change.resource != "pods" {
            return Vec::new();
        }
        let covers = |budget: &Arc<Value>| {
            Selector::parse(budget.pointer("/spec/selector")).is_some_and(|selector| {
                let mut states = [&change.before, &change.after].into_iter().flatten();
                states.any(|pod| selector.selects(pod.attributes()))
            })
        };
        budgets().filter(covers).map(key).collect()
    }

    fn sync(&self, view: &dyn View, key: &Key, now: Timestamp) -> Sync {
        let Some(budget) = key.read(view).filter(|budget| !deleting(budget)) else { return Sync::done() };
        let selector = Selector::parse(budget.pointer("/spec/selector"));
        let labelled = selector.as_ref().map_or(Lookup::All, Selector::lookup);
        let covered = view.select("pods", key.namespace.as_deref(), &labelled, &|pod| {
            selector.as_ref().is_some_and(|selector| selector.selects(pod)) && !pod.pod_finished()
        });
        let evicted = evicted(&budget, &covered, now);
        let again = (!evicted.is_empty()).then_some(EVICTION_LIMIT);
        let status = status(view, &budget, &covered, evicted, now);
        if status == fields::status(&budget) {
            return Sync { requeue_after: again, ..Sync::default() };
        }
        let object = with_status(&budget, status);
        let write = Write::UpdateStatus { resource: RESOURCE.into(), object };
        Sync { writes: vec![write], requeue_after: again, ..Sync::default() }
    }
}

/// Pods there should be: the sum of what their controllers want, each counted once.
fn expected(view: &dyn View, covered: &[Arc<Value>]) -> i64 {
    let mut seen = std::collections::BTreeSet::new();
    let mut sum = 0;
    for pod in covered {
        let Some(owner) = meta::controller(pod) else { continue };
        let Some((_, resource)) = SCALES.iter().find(|(kind, _)| *kind == owner.kind) else { continue };
        if seen.insert(owner.uid)
            && let Some(found) = view.get(resource, meta::namespace(pod), &owner.name)
        {
            sum += int(&found, "/spec/replicas").unwrap_or(1);
        }
    }
    sum
}

/// The pods whose eviction was allowed and that are not going yet, with the time of it.
fn evicted(budget: &Value, covered: &[Arc<Value>], now: Timestamp) -> Map<String, Value> {
    let mut evicted = fields::map_copy(budget, "/status/disruptedPods");
    evicted.retain(|pod, at| {
        let there = covered.iter().any(|covered| fields::name(covered) == pod && !deleting(covered));
        let at = at.as_str().and_then(|at| at.parse::<Timestamp>().ok());
        there && at.is_some_and(|at| fields::seconds_between(at, now) < EVICTION_LIMIT.as_secs() as i64)
    });
    evicted
}

fn status(
    view: &dyn View,
    budget: &Value,
    covered: &[Arc<Value>],
    evicted: Map<String, Value>,
    now: Timestamp,
) -> Map<String, Value> {
    let pods_there = covered.len() as i64;
    let (expected, desired) =
        match (budget.pointer("/spec/maxUnavailable"), budget.pointer("/spec/minAvailable")) {
            (Some(most), _) if !most.is_null() => {
                let expected = expected(view, covered);
                (expected, (expected - scaled(Some(most), expected, true).unwrap_or(0)).max(0))
            }
            (_, Some(least)) if least.is_string() => {
                let expected = expected(view, covered);
                (expected, scaled(Some(least), expected, true).unwrap_or(0))
            }
            (_, least) => (pods_there, scaled(least, pods_there, true).unwrap_or(0)),
        };
    let stays = |pod: &&Arc<Value>| !deleting(pod) && !evicted.contains_key(fields::name(pod));
    let healthy = covered.iter().filter(stays).filter(|pod| pods::ready(pod)).count() as i64;
    let allowed = if expected <= 0 { 0 } else { (healthy - desired).max(0) };
    let mut status = fields::status(budget);
    for (field, number) in [
        ("currentHealthy", healthy),
        ("desiredHealthy", desired),
        ("disruptionsAllowed", allowed),
        ("expectedPods", expected),
    ] {
        status.insert(field.into(), number.into());
    }
    if evicted.is_empty() {
        status.remove("disruptedPods");
    } else {
        status.insert("disruptedPods".into(), evicted.into());
    }
    put_count(&mut status, "observedGeneration", meta::generation(budget));
    let (value, reason) =
        if allowed > 0 { ("True", "SufficientPods") } else { ("False", "InsufficientPods") };
    let generation = meta::generation(budget);
    conditions::set(
        &mut status,
        NewCondition { kind: "DisruptionAllowed", status: value, reason, message: "" },
        now,
    );
    if let Some(Value::Array(all)) = status.get_mut("conditions") {
        for condition in all {
            fields::put(condition, "/observedGeneration", generation.into());
            fields::put(condition, "/message", "".into());
        }
    }
    status
}
