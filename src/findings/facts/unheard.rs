//! Changes from outside of objects that a reconcile has read and no reconcile has answered yet. opdev asks for
//! one, which shows whether it would have been needed.

use super::track::Unheard;
use super::{ASKED_WITHIN, MISSED, Table, is_plane};
use jiff::{SignedDuration, Timestamp};
use opdev_event::CauseKind;
use opdev_event::evidence::{Evidence, WriteFact};
use opdev_object::meta::{ObjectKey, ObjectRef};
use std::time::Duration;

/// Kinds that the plane's controllers make and change in answer to others, and those that nobody judges.
const RESTLESS: [&str; 10] = [
    "Pod",
    "ReplicaSet",
    "Endpoints",
    "EndpointSlice",
    "Node",
    "Event",
    "Lease",
    "ControllerRevision",
    "Namespace",
    "CustomResourceDefinition",
];

impl Table {
    /// Somebody has changed, made or deleted an object: reconciles that have read it have to answer.
    pub fn outside(&mut self, object: &ObjectKey, by: Option<&str>, how: &'static str, at: Timestamp) {
        let strange = by.is_none_or(|by| !by.is_empty() && !self.own.contains(by) && !is_plane(by));
        let restless = RESTLESS.contains(&object.kind.as_str()) && object.kind != "Namespace";
        if !self.embedded || self.disturbed || !strange || restless || self.makers.contains_key(object) {
            return;
        }
        for ((_, primary), track) in &mut self.tracks {
            let read = track.touched.get(object) == Some(&track.count) && primary != object;
            // The first one is asked about; what comes meanwhile is answered with it.
            if read && track.unheard.is_none() {
                track.unheard = Some(Unheard { at, object: object.clone(), how, asked: false });
            }
        }
    }

    /// Custom resources whose reconciles have not answered such a change, with the controller to ask.
    pub(crate) fn unheard(&mut self, asks: &mut Vec<(String, ObjectRef)>) {
        let now = self.now;
        for ((name, primary), track) in &mut self.tracks {
            let Some(unheard) = &mut track.unheard else { continue };
            let waited = now.duration_since(unheard.at);
            // The program may have written it itself: its reconcile is told after the event.
            let own = self.makers.contains_key(&unheard.object)
                || self
                    .written_at
                    .get(&unheard.object)
                    .is_some_and(|at| unheard.at.duration_since(*at).abs() < SignedDuration::from_secs(5));
            let controller = self.controllers.get(name);
            let clear = controller.is_some_and(|one| !one.unclear) && track.period.is_none_or(is_long);
            let live = self.live.get(primary);
            let lives = live
                .is_some_and(|live| live.gone.is_none() && live.deleting.is_none() && live.changed.is_none());
            if own || !lives || !clear || !track.requeue.is_none_or(is_long) || waited > ASKED_WITHIN {
                track.unheard = None;
            } else if !unheard.asked && waited >= MISSED {
                unheard.asked = true;
                asks.push((name.clone(), track.object.clone()));
            }
        }
    }

    /// True if a change waits for its question.
    pub(crate) fn has_unheard(&self) -> bool {
        self.tracks
            .values()
            .any(|track| track.unheard.as_ref().is_some_and(|one| !one.asked && self.is_recent(one.at)))
    }

    /// A reconcile that begins soon after a change has heard of it, whatever woke it.
    pub(crate) fn heard(&mut self, evidence: &Evidence) {
        let place = (evidence.controller.clone(), evidence.object.key());
        let Some(track) = self.tracks.get_mut(&place) else { return };
        let soon = |one: &Unheard| {
            let after = evidence.at.duration_since(one.at);
            after > SignedDuration::from_secs(-1) && after < MISSED
        };
        let event = |one: &Unheard| {
            evidence.causes.iter().any(
                |cause| matches!(&cause.kind, CauseKind::Watch { object, .. } if object.key() == one.object),
            )
        };
        if track.unheard.as_ref().is_some_and(|one| soon(one) || event(one)) {
            track.unheard = None;
        }
    }

    /// A reconcile has been judged: it is the answer to what had changed before.
    pub(crate) fn answered_unheard(&mut self, evidence: &Evidence) {
        let place = (evidence.controller.clone(), evidence.object.key());
        let Some(track) = self.tracks.get_mut(&place) else { return };
        if track.unheard.as_ref().is_some_and(|one| evidence.at >= one.at) {
            track.unheard = None;
        }
    }

    /// The part of its own status that a reconcile has changed for the first time, as far as nothing but what it
    /// read can be the reason: no child of it was shown since the reconcile before.
    pub fn news_of_status(&self, evidence: &Evidence) -> Option<String> {
        let primary = evidence.object.key();
        let track = self.tracks.get(&(evidence.controller.clone(), primary.clone()))?;
        let since = track.ended_before;
        let moved = self.makers.iter().any(|(key, maker)| {
            maker.primary.key() == primary
                && (self.shown.get(key).is_some_and(|at| *at >= since) || maker.gone && maker.went.is_some())
        });
        let news = |write: &&WriteFact| {
            write.object.key() == primary && write.subresource == "status" && self.is_news(evidence, write)
        };
        let write = evidence.writes.iter().find(news).filter(|_| !moved)?;
        let field = write.fields.iter().find(|field| field.sent && !field.time && field.scalar)?;
        Some(field.path.clone())
    }
}

fn is_long(period: Duration) -> bool {
    period > Duration::from_secs(60)
}
