//! The problem: somebody else changes a field of a child, and nothing says if the operator means it to stay.
//! The change, its event, the reconcile that answers and the next state of the child come in any order. The
//! same field may be changed back by hand. A change is kept until the child has another value there.

use super::compare::{FEW, is_paused};
use super::drift::{
    Drift, DriftField, Drifted, FIELDS, hash, is_blank, is_content, is_judged, short, steady,
};
use super::{Table, Values};
use crate::{ASKED_WITHIN, Wait, is_plane};
use jiff::{SignedDuration, Timestamp};
use opdev_event::evidence::{Evidence, WriteVerb};
use opdev_event::reconcile::object_change::{last_writer, managers_of};
use opdev_event::{Body, CauseKind, TraceLevel};
use opdev_object::diff::{Change, diff};
use opdev_object::meta::{ObjectKey, ObjectRef};
use opdev_object::path::Segment;

/// An operator that has not heard of a change by then is asked.
const UNHEARD: SignedDuration = SignedDuration::from_secs(10);

impl Values {
    /// Notes which fields of its children a reconcile has changed.
    fn take_updated(&mut self, evidence: &Evidence) {
        let primary = evidence.object.key();
        for write in &evidence.writes {
            let child = !write.created && !write.unchanged && write.object.key() != primary;
            if !child
                || write.verb == WriteVerb::Delete
                || !matches!(write.subresource.as_str(), "" | "scale")
            {
                continue;
            }
            let changed = write.fields.iter().filter(|field| field.sent && field.old != field.new);
            for field in changed.filter(|field| is_content(&field.path)) {
                let known = &mut self.updated.entry(write.object.key()).or_default().0;
                let hash = hash(&field.path);
                if known.len() < FIELDS && !known.contains(&hash) {
                    known.push(hash);
                }
            }
        }
    }
}

impl Table {
    /// A child is shown: notes what somebody else has changed in it, and forgets what has another value now.
    pub(crate) fn drift_seen(&mut self, child: &ObjectKey, body: &Body, at: Timestamp) {
        let Some(old) = self.values.bodies.get(child).filter(|_| self.makers.contains_key(child)) else {
            return;
        };
        let (old, new) = (old.read(), body.read());
        let mut known = self.values.drifts.remove(child);
        let before = known.as_ref().map(|known| known.changes.clone()).unwrap_or_default();
        if let Some(known) = &mut known {
            known.changes.retain(|one| one.change.path.get(&new) == one.change.new.as_ref());
        }
        let back = |change: &Change| {
            let same = |one: &&DriftField| one.change.path == change.path;
            before.iter().find(same).is_some_and(|one| one.change.old == change.new)
        };
        let strange = |change: &Change| {
            let managers = match change.new {
                Some(_) => managers_of(&new, &change.path, ""),
                None => last_writer(None, &new, false).into_iter().collect(),
            };
            !managers.is_empty() && managers.iter().all(|manager| self.is_somebody(manager))
        };
        let open = !self.disturbed && self.started.is_some();
        let news = diff(&old, &new).into_iter().filter(|change| is_judged(change) && !back(change));
        let news: Vec<DriftField> =
            news.filter(strange).take(FEW + 1).map(|change| DriftField { change, open }).collect();
        // More fields at once are another version of the child.
        let many = news.len() > FEW;
        if let Some(first) = news.first().filter(|_| !many) {
            let by = managers_of(&new, &first.change.path, "").into_iter().next();
            let by = by.or_else(|| last_writer(None, &new, false)).unwrap_or_default();
            let mut changes = known.map(|known| known.changes).unwrap_or_default();
            changes.extend(news);
            changes.truncate(2 * FEW);
            known = Some(Drift { at, by, changes, heard: false, asked: false, waits: false });
        }
        if let Some(known) = known.filter(|known| !known.changes.is_empty()) {
            self.values.drifts.insert(child.clone(), known);
        }
    }

    /// True for a writer that is no controller of the plane, no autoscaler and not the program itself.
    fn is_somebody(&self, manager: &str) -> bool {
        let name = manager.to_ascii_lowercase();
        !name.is_empty()
            && !self.own.contains(manager)
            && !is_plane(manager)
            && !name.starts_with("kube-")
            && !["autoscal", "vpa", "keda"].iter().any(|word| name.contains(word))
    }

    /// Judgements for later, after a reconcile that has heard of such a change and has not written the child.
    pub(crate) fn drift_heard(&mut self, evidence: &Evidence) -> Vec<(Wait, ObjectRef)> {
        self.values.take_updated(evidence);
        let primary = evidence.object.key();
        let good = evidence.error.is_empty()
            && evidence.panic.is_empty()
            && !evidence.deleting
            && evidence.level == Some(TraceLevel::Full);
        let check = evidence.causes.iter().any(|cause| matches!(cause.kind, CauseKind::Check));
        let mut waits = Vec::new();
        for (key, drift) in &mut self.values.drifts {
            if evidence.writes.iter().any(|write| write.object.key() == *key) {
                drift.close();
            }
            let maker = self
                .makers
                .get(key)
                .filter(|maker| maker.primary.key() == primary && maker.controller == evidence.controller);
            let (Some(maker), true) = (maker, drift.is_open()) else { continue };
            let of_it = |kind: &CauseKind| match kind {
                CauseKind::Watch { object, own_write: false, .. } => object.key() == *key,
                _ => false,
            };
            let caused = evidence.causes.iter().any(|cause| of_it(&cause.kind));
            let later = evidence.at.duration_since(drift.at) > SignedDuration::from_secs(-1);
            drift.heard |= later && (caused || check && drift.asked);
            if drift.heard && good && !drift.waits {
                drift.waits = true;
                waits.push((Wait::PutBack, maker.object.clone()));
            }
        }
        waits
    }

    /// The controller and the custom resource to ask, where no reconcile has heard of a change of a child.
    fn asks_about(&self, child: &ObjectKey, drift: &Drift) -> Option<(String, ObjectRef)> {
        let waited = self.now.duration_since(drift.at);
        let maker = self.makers.get(child).filter(|maker| !maker.gone && maker.deleted.is_none())?;
        let clear = self.controllers.get(&maker.controller).is_some_and(|one| !one.unclear);
        let live = self.live.get(&maker.primary.key());
        let lives =
            live.is_some_and(|live| live.gone.is_none() && live.deleting.is_none() && live.changed.is_none());
        let open = drift.is_open() && !drift.heard && waited <= ASKED_WITHIN;
        (open && clear && lives).then(|| (maker.controller.clone(), maker.primary.clone()))
    }

    /// Changes of children of which no reconcile has heard, with the controller to ask.
    pub(crate) fn drift_asks(&mut self, asks: &mut Vec<(String, ObjectRef)>) {
        let due = |drift: &Drift| !drift.asked && self.now.duration_since(drift.at) >= UNHEARD;
        let found: Vec<_> = self.values.drifts.iter().filter(|(_, drift)| due(drift)).collect();
        let found: Vec<(ObjectKey, (String, ObjectRef))> = found
            .into_iter()
            .filter_map(|(key, drift)| Some((key.clone(), self.asks_about(key, drift)?)))
            .collect();
        for (key, ask) in found {
            if let Some(drift) = self.values.drifts.get_mut(&key) {
                drift.asked = true;
            }
            if !asks.contains(&ask) {
                asks.push(ask);
            }
        }
    }

    /// True if a change of a child still waits for its question, or its answer.
    pub(crate) fn has_drift(&self) -> bool {
        let waited = |drift: &Drift| self.now.duration_since(drift.at);
        self.values
            .drifts
            .iter()
            .any(|(key, drift)| waited(drift) < UNHEARD + UNHEARD && self.asks_about(key, drift).is_some())
    }

    /// Fields of a child that somebody else has changed and that the program has left so.
    pub fn left_so(&self, primary: &ObjectKey, child: &ObjectKey) -> Vec<Drifted> {
        let Some(drift) = self.values.drifts.get(child) else { return Vec::new() };
        let paused = self.values.bodies.get(primary).is_none_or(|body| is_paused(&body.read()));
        let live = self.live.get(primary);
        let lives =
            live.is_some_and(|live| live.gone.is_none() && live.deleting.is_none() && live.changed.is_none());
        let unready = self.workloads.get(child).is_some_and(|pods| pods.ready < pods.wanted);
        if paused || !lives || unready {
            return Vec::new();
        }
        let scaled = self.is_scaled();
        let sized = self.shown.keys().any(|key| key.kind == "VerticalPodAutoscaler");
        let updated = self.values.updated.get(child);
        let open = drift.changes.iter().filter(|one| one.open).map(|one| &one.change);
        open.filter(|change| {
            let has = |name: &str| {
                change.path.0.iter().any(|step| matches!(step, Segment::Field(field) if field == name))
            };
            !(scaled && has("replicas") || sized && has("resources"))
        })
        .map(|change| {
            let path = steady(&change.path);
            let wrote_field = updated.is_some_and(|known| known.0.contains(&hash(&path)));
            Drifted {
                old: short(&path, change.old.as_ref()),
                new: short(&path, change.new.as_ref()),
                by: drift.by.clone(),
                blank: is_blank(change),
                wrote_field,
                wrote_child: updated.is_some(),
                asked: drift.asked,
                path,
            }
        })
        .collect()
    }
}
