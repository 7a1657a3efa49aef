//! A value of a spec that somebody has changed, and the children that still have the old one; and values of
//! children that somebody else has changed.

mod compare;
mod drift;
mod put_back;

pub(crate) use compare::ChangedValue;

use super::waits::Wait;
use super::{Table, is_never};
use compare::{FEW, changed, is_paused, says};
use jiff::{SignedDuration, Timestamp};
use opdev_event::Body;
use opdev_event::evidence::{Evidence, WriteFact};
use opdev_object::facts::replicas;
use opdev_object::meta::{self, ObjectKey, ObjectRef};
use std::collections::HashMap;

/// Children that an operator changes in place. Jobs and claims stay as they were made.
pub(super) const CHANGED_IN_PLACE: [&str; 9] = [
    "Deployment",
    "StatefulSet",
    "DaemonSet",
    "Service",
    "ConfigMap",
    "CronJob",
    "Ingress",
    "HorizontalPodAutoscaler",
    "PodDisruptionBudget",
];
/// The API server may have shown a change before opdev has told of it.
const LATE: SignedDuration = SignedDuration::from_secs(3);
/// Children that a change has reached, at most.
const REACHED: usize = 8;

/// The newest change of a spec by somebody else.
#[derive(Clone, Debug)]
struct SpecChange {
    at: Timestamp,
    generation: i64,
    fields: Vec<ChangedValue>,
    /// Fields that have reached a child: the place in `fields`, and the child with the path in it.
    reached: Vec<(usize, String)>,
    /// True if a reconcile has seen it and a judgement waits.
    waits: bool,
}

/// Objects as they are, and changes that have not reached the children yet.
#[derive(Clone, Debug, Default)]
pub(super) struct Values {
    bodies: HashMap<ObjectKey, Body>,
    changes: HashMap<ObjectKey, SpecChange>,
    /// Changes of children by somebody else that are still there.
    drifts: HashMap<ObjectKey, drift::Drift>,
    /// Children that the program has changed after it had made them.
    updated: HashMap<ObjectKey, drift::Updated>,
}

impl Values {
    /// Keeps an object; of a custom resource that somebody `else` has changed the fields that differ.
    pub(super) fn take(&mut self, key: &ObjectKey, body: &Body, is_else: bool, at: Timestamp) {
        let old = self.bodies.insert(key.clone(), body.clone());
        let Some(old) = old.filter(|_| is_else) else { return };
        let (old, new) = (old.read(), body.read());
        let mut fields = Vec::new();
        changed(&old["spec"], &new["spec"], ".spec", &mut fields);
        if fields.is_empty() || fields.len() > FEW || is_paused(&new) {
            self.changes.remove(key);
            return;
        }
        let generation = meta::generation(&new);
        self.changes
            .insert(key.clone(), SpecChange { at, generation, fields, reached: Vec::new(), waits: false });
    }

    /// Another process runs: what the one before had seen is judged by its own reconciles.
    pub(super) fn restarted(&mut self) {
        self.changes.values_mut().for_each(|change| change.waits = false);
        self.drifts.values_mut().for_each(drift::Drift::close);
    }

    pub(super) fn gone(&mut self, key: &ObjectKey) {
        self.bodies.remove(key);
        self.changes.remove(key);
        self.drifts.remove(key);
        self.updated.remove(key);
    }

    pub(super) fn bound(&mut self) {
        super::bounded(&mut self.bodies);
        super::bounded(&mut self.changes);
        super::bounded(&mut self.drifts);
        super::bounded(&mut self.updated);
    }

    /// The place in a child where the old value still stands. Where another child has the new one already,
    /// only what is beyond doubt counts.
    fn old_in(&self, child: &ObjectKey, field: &ChangedValue, there: Option<&str>) -> Option<String> {
        let body = self.bodies.get(child)?.read();
        match there {
            Some(there) => field.kept_in(&body, there),
            None => field.old_in(&body, &child.kind),
        }
    }

    /// Notes which fields of a changed spec the writes of a reconcile have brought to children.
    fn reach(&mut self, primary: &ObjectKey, evidence: &Evidence) {
        let Some(change) = self.changes.get_mut(primary) else { return };
        let news = |write: &&WriteFact| !write.unchanged && !write.created && write.object.key() != *primary;
        for write in evidence.writes.iter().filter(news) {
            for field in write.fields.iter().filter(|field| field.sent) {
                let shown = (field.shown.0.as_str(), field.shown.1.as_str());
                let Some(at) = change.fields.iter().position(|changed| changed.is_reached_by(shown)) else {
                    continue;
                };
                if change.reached.len() < REACHED {
                    change.reached.push((at, format!("{} {}", write.object, field.path)));
                }
            }
        }
    }
}

impl Table {
    /// A judgement for later, after a reconcile that saw a changed spec and wrote no child: the first child
    /// that still has an old value. Where the operator has brought the new one to another child, it has left
    /// this one out.
    pub(super) fn unapplied(&mut self, evidence: &Evidence) -> Option<(Wait, ObjectRef)> {
        let primary = evidence.object.key();
        let change = self.values.changes.get(&primary)?;
        let began_before = evidence.at.duration_since(change.at) < SignedDuration::from_secs(-1);
        let older = evidence.generation.is_some_and(|read| read < change.generation);
        if began_before || older || evidence.deleting {
            return None;
        }
        self.values.reach(&primary, evidence);
        if !evidence.error.is_empty() || !evidence.panic.is_empty() {
            return None;
        }
        let child_written =
            |write: &WriteFact| !write.unchanged && write.object.key() != primary && !is_never(&write.object);
        let writes = evidence.writes.iter().any(child_written);
        let change = self.values.changes.get(&primary)?;
        let since = change.at - LATE;
        if writes || self.is_written_since(&primary, since) {
            if change.reached.is_empty() {
                self.values.changes.remove(&primary);
                return None;
            }
            if writes {
                return None;
            }
        }
        let change = self.values.changes.get(&primary).filter(|change| !change.waits)?;
        let (field, child, place, reached) = self.left_out(change, &primary, evidence)?;
        let (changed_at, generation) = (change.at, change.generation);
        if let Some(change) = self.values.changes.get_mut(&primary) {
            change.waits = true;
        }
        Some((Wait::Applied { field: Box::new(field), place, changed_at, generation, reached }, child))
    }

    /// A changed field and a child that has the old value, with the child that has got the new one.
    fn left_out(
        &self,
        change: &SpecChange,
        primary: &ObjectKey,
        evidence: &Evidence,
    ) -> Option<(ChangedValue, ObjectRef, String, Option<String>)> {
        let scales = self.is_scaled();
        let untouched = |key: &ObjectKey| {
            change.reached.is_empty() || self.written_at.get(key).is_none_or(|at| *at <= change.at - LATE)
        };
        let own = |maker: &&super::Maker| {
            maker.primary.key() == *primary
                && maker.controller == evidence.controller
                && CHANGED_IN_PLACE.contains(&maker.object.gvk.kind.as_str())
                && maker.seen
                && !maker.gone
                && maker.deleted.is_none()
                && untouched(&maker.object.key())
        };
        let mut children: Vec<&ObjectRef> =
            self.makers.values().filter(own).map(|maker| &maker.object).collect();
        children.sort_by_key(|child| child.key());
        let spec = self.values.bodies.get(primary).map(|body| body.read()["spec"].clone());
        let fields = change.fields.iter().enumerate();
        fields.filter(|(_, field)| !(scales && replicas::is_name(&field.name))).find_map(|(at, field)| {
            let reached = change.reached.iter().find(|(one, _)| *one == at).map(|(_, place)| place.as_str());
            // Another field of the spec may mean the child.
            let meant_otherwise = spec.as_ref().is_some_and(|spec| says(spec, &field.old));
            if !change.reached.is_empty() && (reached.is_none() || meant_otherwise) {
                return None;
            }
            let old_in = |child: &&ObjectRef| {
                Some(((*child).clone(), self.values.old_in(&child.key(), field, reached)?))
            };
            let (child, place) = children.iter().find_map(old_in)?;
            Some((field.clone(), child, place, reached.map(str::to_owned)))
        })
    }

    /// True if something scales workloads: their numbers of replicas are its own.
    pub(super) fn is_scaled(&self) -> bool {
        let scales =
            |key: &ObjectKey| matches!(key.kind.as_str(), "HorizontalPodAutoscaler" | "ScaledObject");
        self.makers.keys().chain(self.shown.keys()).any(scales)
    }

    /// True if a child still has the old value of a field, and no child of its custom resource was written
    /// since that was changed; where the change has `reached` another child, if a reconcile after the last
    /// write has looked at this one and left it alone.
    pub fn is_unapplied(
        &self,
        (controller, primary): (&str, &ObjectKey),
        child: &ObjectKey,
        field: &ChangedValue,
        (changed_at, generation): (Timestamp, i64),
        reached: Option<&str>,
    ) -> bool {
        let same = self.live.get(primary).is_some_and(|live| {
            live.generation == generation && live.deleting.is_none() && live.gone.is_none()
        });
        let left_alone = match reached {
            None => !self.is_written_since(primary, changed_at - LATE),
            Some(_) => {
                // One that waits for the pods of another child goes on later.
                let waits = self.makers.iter().any(|(key, maker)| {
                    let pods = self.workloads.get(key).is_some_and(|pods| pods.ready < pods.wanted);
                    maker.primary.key() == *primary && !maker.gone && pods
                });
                let track = self.tracks.get(&(controller.to_owned(), primary.clone()));
                let looked = track.is_some_and(|track| track.touched.get(child) == Some(&track.count));
                looked
                    && !waits
                    && self.written_at.get(child).is_none_or(|at| *at <= changed_at - LATE)
                    && !self.is_written_since(primary, self.now - SignedDuration::from_secs(5))
            }
        };
        same && left_alone && self.values.old_in(child, field, reached).is_some()
    }

    /// True if a child of a custom resource was written since then, by whichever controller.
    fn is_written_since(&self, primary: &ObjectKey, since: Timestamp) -> bool {
        self.makers.iter().any(|(key, maker)| {
            maker.primary.key() == *primary && self.written_at.get(key).is_some_and(|at| *at > since)
        })
    }
}
