//! Changes that no reconcile has answered: opdev asks for one reconcile, which shows whether the program
//! missed them.

use super::track::written;
use super::{ASKED_WITHIN, Live, MISSED, Table, is_never, is_plane};
use jiff::{SignedDuration, Timestamp};
use opdev_event::CauseKind;
use opdev_event::evidence::{Evidence, WriteFact};
use opdev_object::meta::{ObjectKey, ObjectRef};

impl Table {
    /// A reconcile has been judged: what had changed before it has its answer.
    pub fn answered(&mut self, evidence: &Evidence) {
        self.answered_unheard(evidence);
        let Some(live) = self.live.get_mut(&evidence.object.key()) else { return };
        if live.changed.is_none_or(|(at, _)| evidence.at < at) {
            return;
        }
        // Each controller that was asked has to answer.
        let asked = evidence.causes.iter().any(|cause| matches!(cause.kind, CauseKind::Check));
        live.awaited = if asked { live.awaited.saturating_sub(1) } else { live.awaited };
        if live.awaited == 0 {
            live.changed = None;
        }
    }

    /// True if a write does what the reconcile before had not done, and is no repair of what somebody has
    /// changed or deleted: then something that was read has led to it. An operator that writes in each
    /// reconcile proves nothing by it.
    pub fn is_news(&self, evidence: &Evidence, write: &WriteFact) -> bool {
        let track = self.tracks.get(&(evidence.controller.clone(), evidence.object.key()));
        let before = |field: &str| track.is_some_and(|track| track.has_written(write, field));
        let again =
            write.created && self.makers.get(&write.object.key()).is_some_and(|maker| maker.times > 1);
        let repairs = |path: &str| {
            let field = write.fields.iter().find(|field| field.path == path);
            field.is_some_and(|field| {
                !field.other.is_empty() && !self.own.contains(&field.other) && !is_plane(&field.other)
            })
        };
        !write.unchanged
            && !is_never(&write.object)
            && !again
            && written(write).into_iter().any(|field| !before(field) && !repairs(field))
    }

    /// The user begins to disturb the program, or ends it: what changed meanwhile proves nothing.
    pub fn disturbed(&mut self, is_disturbed: bool) {
        self.disturbed = is_disturbed;
        self.taken.clear();
        self.live.values_mut().for_each(|live| live.changed = None);
        self.tracks.values_mut().for_each(|track| track.unheard = None);
    }

    /// True if a change is still asked about.
    pub fn is_recent(&self, at: Timestamp) -> bool {
        self.now.duration_since(at) <= ASKED_WITHIN
    }

    /// Custom resources whose change no reconcile has answered, each once: one reconcile would show whether
    /// it was missed. With the controllers that have reconciled them.
    pub fn unanswered(&mut self) -> Vec<(String, ObjectRef)> {
        let (now, started) = (self.now, self.started);
        // A worker that is busy may still come to it.
        let is_busy = |since: &Timestamp| now.duration_since(*since) > SignedDuration::from_secs(2);
        if started.is_none() || self.running.values().any(|(_, since)| is_busy(since)) {
            return Vec::new();
        }
        let mut asks = Vec::new();
        for (key, live) in &mut self.live {
            let Some((at, _)) = live.changed.filter(|_| live.gone.is_none()) else { continue };
            let waited = now.duration_since(at);
            if live.asked == Some(at) || waited < MISSED || waited > ASKED_WITHIN {
                continue;
            }
            live.asked = Some(at);
            let known = self.tracks.keys().filter(|(_, object)| object == key);
            let clear = known.filter(|(name, _)| self.controllers.get(name).is_some_and(|one| !one.unclear));
            let before = asks.len();
            asks.extend(clear.map(|(name, _)| (name.clone(), live.object.clone())));
            live.awaited = asks.len() - before;
        }
        let waited = |at: Timestamp| now.duration_since(at) >= MISSED;
        let due: Vec<ObjectKey> =
            self.taken.extract_if(.., |(at, _)| waited(*at)).map(|(_, key)| key).collect();
        for maker in due.iter().filter_map(|key| self.makers.get(key)).filter(|maker| maker.gone) {
            let lives = |live: &Live| live.gone.is_none() && live.deleting.is_none();
            if self.live.get(&maker.primary.key()).is_some_and(lives) {
                asks.push((maker.controller.clone(), maker.primary.clone()));
            }
        }
        self.unheard(&mut asks);
        self.drift_asks(&mut asks);
        asks
    }
}
