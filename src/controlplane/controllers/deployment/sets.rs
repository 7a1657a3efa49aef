//! The ReplicaSets of a Deployment during one sync: which is new, how each is going to be scaled and
//! annotated. Never decides how far to scale; `rolling` does.

use super::REVISION;
use crate::contract::{NoteKind, View, Write};
use crate::fields::{
    self, controller_reference, count, int, map, map_copy, name, put, same, scaled, step, text, uid,
};
use crate::pods;
use crate::replicaset::{RESOURCE, age_order};
use crate::revision;
use opdev_object::meta;
use serde_json::{Value, json};
use std::sync::Arc;

const DESIRED: &str = "deployment.kubernetes.io/desired-replicas";
const MAXIMUM: &str = "deployment.kubernetes.io/max-replicas";
const HISTORY: &str = "deployment.kubernetes.io/revision-history";
const HASH: &str = "pod-template-hash";

/// One ReplicaSet, with what this sync makes of it.
pub(super) struct Set {
    /// As it was read, or as it will be created.
    pub object: Value,
    /// Replicas as they will be.
    pub(super) replicas: i64,
    was: i64,
    created: bool,
    original: Value,
    deleted: bool,
}

impl Set {
    fn new(object: Value, created: bool) -> Self {
        let replicas = int(&object, "/spec/replicas").unwrap_or(1);
        let original = object.clone();
        Set { replicas, was: if created { 0 } else { replicas }, created, object, original, deleted: false }
    }

    /// `deployment.kubernetes.io/revision` as a number.
    pub(super) fn revision(&self) -> i64 {
        meta::annotation(&self.object, REVISION).and_then(|text| text.parse().ok()).unwrap_or(0)
    }

    /// Available pods, as its own status says.
    pub(super) fn available(&self) -> i64 {
        count(&self.object, "/status/availableReplicas")
    }

    /// Removes it at the end of the sync.
    pub(super) fn delete(&mut self) {
        self.deleted = true;
    }

    /// The number `max-replicas` was set to when it was scaled last.
    pub(super) fn maximum(&self) -> Option<i64> {
        meta::annotation(&self.object, MAXIMUM).and_then(|text| text.parse().ok())
    }

    fn desired(&self) -> Option<i64> {
        meta::annotation(&self.object, DESIRED).and_then(|text| text.parse().ok())
    }

    fn annotate(&mut self, key: &str, value: &str) {
        if meta::annotation(&self.object, key) != Some(value) {
            put(&mut self.object, &format!("/metadata/annotations/{}", step(key)), value.into());
        }
    }

    fn annotate_size(&mut self, deployment: &Value) {
        let wanted = int(deployment, "/spec/replicas").unwrap_or(1);
        self.annotate(DESIRED, &wanted.to_string());
        self.annotate(MAXIMUM, &(wanted + max_surge(deployment)).to_string());
    }

    /// Returns true if it holds the template of the Deployment.
    fn holds(&self, deployment: &Value) -> bool {
        let mut template = self.object.pointer("/spec/template").cloned().unwrap_or_default();
        if let Some(Value::Object(labels)) = template.pointer_mut("/metadata/labels") {
            labels.remove(HASH);
        }
        let wanted = deployment.pointer("/spec/template").cloned().unwrap_or_default();
        same(&without_empty_labels(template), &without_empty_labels(wanted))
    }
}

fn without_empty_labels(mut template: Value) -> Value {
    if let Some(Value::Object(metadata)) = template.pointer_mut("/metadata") {
        metadata.retain(|_, value| !value.is_null() && value.as_object().is_none_or(|map| !map.is_empty()));
        if metadata.is_empty()
            && let Value::Object(fields) = &mut template
        {
            fields.remove("metadata");
        }
    }
    template
}

/// The surge and unavailability of a rolling update as numbers; never both zero.
pub(super) fn fenceposts(deployment: &Value) -> (i64, i64) {
    if text(deployment, "/spec/strategy/type") == "Recreate" {
        return (0, 0);
    }
    let wanted = int(deployment, "/spec/replicas").unwrap_or(1);
    let bound = |field: &str, up| {
        let value = deployment.pointer(&format!("/spec/strategy/rollingUpdate/{field}"));
        scaled(value.or(Some(&json!("25%"))), wanted, up).unwrap_or(0)
    };
    let (surge, unavailable) = (bound("maxSurge", true), bound("maxUnavailable", false));
    if surge == 0 && unavailable == 0 { (0, 1) } else { (surge, unavailable) }
}

/// Pods above the wanted number that a rolling update may have.
pub(super) fn max_surge(deployment: &Value) -> i64 {
    fenceposts(deployment).0
}

/// Pods below the wanted number that a rolling update may have.
pub(super) fn max_unavailable(deployment: &Value) -> i64 {
    let wanted = int(deployment, "/spec/replicas").unwrap_or(1);
    if wanted == 0 { 0 } else { fenceposts(deployment).1.min(wanted) }
}

/// All ReplicaSets of the Deployment, oldest first.
pub(super) struct Sets {
    pub all: Vec<Set>,
    /// Index of the one that holds the template as it is now.
    pub(super) new: Option<usize>,
}

impl Sets {
    pub(super) fn new(deployment: &Value, owned: Vec<Arc<Value>>) -> Self {
        let mut all: Vec<_> = owned.into_iter().map(|set| Set::new(Value::clone(&set), false)).collect();
        all.sort_by_key(|set| age_order(&set.object));
        let new = all.iter().position(|set| set.holds(deployment));
        Sets { all, new }
    }

    pub(super) fn new_set(&self) -> Option<&Set> {
        self.new.and_then(|at| self.all.get(at))
    }

    /// Indices of all but the new one.
    pub(super) fn old(&self) -> Vec<usize> {
        (0..self.all.len()).filter(|at| Some(*at) != self.new).collect()
    }

    /// Sum of the replicas that all will be scaled to.
    pub(super) fn total(&self) -> i64 {
        self.all.iter().map(|set| set.replicas).sum()
    }

    /// Sum of available pods.
    pub(super) fn available(&self) -> i64 {
        self.all.iter().map(Set::available).sum()
    }

    /// Sum of the pods that are available and will stay: a set's status may lag behind its own scaling down.
    pub(super) fn lasting(&self) -> i64 {
        self.all.iter().map(|set| set.available().min(set.replicas)).sum()
    }

    /// Sum of a count in the status of all.
    pub(super) fn sum(&self, pointer: &str) -> i64 {
        self.all.iter().map(|set| count(&set.object, pointer)).sum()
    }

    /// Returns true if the Deployment was scaled since its sets were.
    pub(super) fn scaling(&self, wanted: i64) -> bool {
        self.all
            .iter()
            .filter(|set| set.replicas > 0)
            .any(|set| set.desired().is_some_and(|desired| desired != wanted))
    }

    /// Returns true if the new set is fully there, at the size the Deployment has now.
    pub(super) fn saturated(&self, wanted: i64) -> bool {
        self.new_set().is_some_and(|set| {
            set.replicas == wanted && set.desired() == Some(wanted) && set.available() == wanted
        })
    }

    /// Plans to scale one; true when that changes it.
    pub(super) fn scale(&mut self, at: usize, replicas: i64, deployment: &Value) -> bool {
        let Some(set) = self.all.get_mut(at) else { return false };
        set.annotate_size(deployment);
        let changes = set.replicas != replicas;
        set.replicas = replicas;
        changes
    }

    /// Brings revision, annotations and minReadySeconds of the new set up to date, and gives its revision.
    pub(super) fn adopt_new(&mut self, deployment: &Value) -> Option<String> {
        let at = self.new?;
        let highest_old = self.old().into_iter().map(|old| self.all[old].revision()).max().unwrap_or(0);
        let set = self.all.get_mut(at)?;
        let next = highest_old + 1;
        copy_annotations(deployment, set);
        let current = set.revision();
        if current < next {
            if current > 0 {
                let history = meta::annotation(&set.object, HISTORY).filter(|text| !text.is_empty());
                let history = history.map_or_else(|| current.to_string(), |old| format!("{old},{current}"));
                set.annotate(HISTORY, &history);
            }
            set.annotate(REVISION, &next.to_string());
        }
        let min_ready = count(deployment, "/spec/minReadySeconds");
        if count(&set.object, "/spec/minReadySeconds") != min_ready {
            put(&mut set.object, "/spec/minReadySeconds", min_ready.into());
        }
        Some(set.revision().to_string())
    }

    /// Adds a new set for the template as it is now, with no replicas yet. Gives its revision and the
    /// collision count where that had to move.
    pub(super) fn create_new(&mut self, view: &dyn View, deployment: &Value) -> (String, Option<i64>) {
        let template = deployment.pointer("/spec/template").cloned().unwrap_or_else(|| json!({}));
        let before = int(deployment, "/status/collisionCount");
        let mut collisions = before;
        let (set_name, hash) = loop {
            let hash = revision::hash(&template, collisions);
            let candidate = format!("{}-{hash}", name(deployment));
            if view.get(RESOURCE, meta::namespace(deployment), &candidate).is_none() {
                break (candidate, hash);
            }
            collisions = Some(collisions.unwrap_or(0) + 1);
        };
        let mut template = template;
        put(&mut template, &format!("/metadata/labels/{HASH}"), hash.clone().into());
        let mut selector = deployment.pointer("/spec/selector").cloned().unwrap_or_else(|| json!({}));
        put(&mut selector, &format!("/matchLabels/{HASH}"), hash.into());
        let mut object = json!({
            "apiVersion": "apps/v1", "kind": "ReplicaSet",
            "metadata": {
                "name": set_name, "namespace": meta::namespace(deployment),
                "labels": map_copy(&template, "/metadata/labels"),
                "ownerReferences": [controller_reference(deployment)],
            },
            "spec": {"replicas": 0, "selector": selector, "template": template},
        });
        if let Some(min_ready) = int(deployment, "/spec/minReadySeconds").filter(|seconds| *seconds > 0) {
            put(&mut object, "/spec/minReadySeconds", min_ready.into());
        }
        let next = self.all.iter().map(Set::revision).max().unwrap_or(0) + 1;
        let mut set = Set::new(object, true);
        copy_annotations(deployment, &mut set);
        set.annotate(REVISION, &next.to_string());
        set.annotate_size(deployment);
        self.all.push(set);
        self.new = Some(self.all.len() - 1);
        (next.to_string(), if collisions == before { None } else { collisions })
    }

    /// The writes for everything that was planned, with the events that tell of scaling.
    pub(super) fn writes(&self, deployment: &Value) -> Vec<Write> {
        let mut writes = Vec::new();
        for set in &self.all {
            let set_name = name(&set.object);
            let scaled = |way: &str, from: i64| {
                let message = format!("Scaled {way} replica set {set_name} from {from} to {}", set.replicas);
                pods::note(deployment, NoteKind::Normal, "ScalingReplicaSet", &message)
            };
            let mut object = set.object.clone();
            put(&mut object, "/spec/replicas", set.replicas.into());
            if set.created {
                writes.push(Write::Create { resource: RESOURCE.into(), object });
                writes.extend((set.replicas > 0).then(|| scaled("up", 0)));
            } else if set.deleted {
                writes.push(Write::Delete {
                    resource: RESOURCE.into(),
                    namespace: meta::namespace(&object).map(str::to_owned),
                    name: set_name.to_owned(),
                    uid: Some(uid(&object).to_owned()),
                    propagation: None,
                    grace: None,
                });
            } else if set.replicas != set.was || object != set.original {
                writes.push(Write::Update { resource: RESOURCE.into(), object });
                let way = if set.replicas > set.was { "up" } else { "down" };
                writes.extend((set.replicas != set.was).then(|| scaled(way, set.was)));
            }
        }
        writes
    }
}

fn copy_annotations(deployment: &Value, set: &mut Set) {
    let own = [
        "kubectl.kubernetes.io/last-applied-configuration",
        REVISION,
        HISTORY,
        DESIRED,
        MAXIMUM,
        "deprecated.deployment.rollback.to",
    ];
    for (key, value) in map(deployment, "/metadata/annotations").into_iter().flatten() {
        if let Some(value) = value.as_str()
            && !own.contains(&key.as_str())
        {
            set.annotate(key, value);
        }
    }
}

/// Returns true if a set has nothing left that would be lost with it.
pub(super) fn removable(set: &Set) -> bool {
    count(&set.object, "/status/replicas") == 0
        && set.replicas == 0
        && set.was == 0
        && meta::generation(&set.object) <= count(&set.object, "/status/observedGeneration")
        && !fields::deleting(&set.object)
}

#[cfg(test)]
mod tests {
    use super::{fenceposts, max_unavailable};
    use serde_json::json;

    #[test]
    fn surge_rounds_up_and_unavailability_down() {
        for (replicas, surge, unavailable, wanted) in [
            (10, json!("25%"), json!("25%"), (3, 2)),
            (3, json!("25%"), json!("25%"), (1, 0)),
            (1, json!(0), json!("25%"), (0, 1)),
            (0, json!("25%"), json!("25%"), (0, 1)),
            (4, json!(2), json!(5), (2, 5)),
        ] {
            let deployment = json!({"spec": {"replicas": replicas, "strategy": {"type": "RollingUpdate",
                "rollingUpdate": {"maxSurge": surge, "maxUnavailable": unavailable}}}});
            assert_eq!(fenceposts(&deployment), wanted, "{deployment}");
            assert!(max_unavailable(&deployment) <= replicas);
        }
    }
}
