//! Fields that the first reconcile after a restart of the same program writes anew.

use super::{Table, is_never};
use jiff::{SignedDuration, Timestamp};
use opdev_event::evidence::{Evidence, FieldFact, WriteFact};
use opdev_event::{Cause, CauseKind};
use opdev_object::meta::ObjectKey;
use std::collections::HashMap;

/// A write so shortly before a restart may have been one of several.
const AT_REST: SignedDuration = SignedDuration::from_secs(10);
/// Kinds that hold what belongs to the process: certificates are made anew with it.
const OF_THE_PROCESS: [&str; 5] = [
    "Secret",
    "CustomResourceDefinition",
    "APIService",
    "MutatingWebhookConfiguration",
    "ValidatingWebhookConfiguration",
];

/// The reconciles of an object by one controller before a restart.
#[derive(Clone, Debug)]
pub(crate) struct Before {
    ended: Timestamp,
    state: Option<(i64, u64)>,
    /// Versions of other objects that it had read by name.
    versions: HashMap<ObjectKey, String>,
}

/// A field that restarts have changed.
#[derive(Clone, Debug, Default)]
pub struct Rewritten {
    /// Number of restarts.
    pub times: u32,
    /// The newest reconcile that did so.
    pub reconcile: u64,
    pub shown: (String, String),
}

impl Table {
    /// A program is started: once more the one of before, or, where files were saved, another one.
    pub(crate) fn take_restart(&mut self, same: bool, at: Timestamp) {
        if !same {
            self.rewritten.clear();
            self.before.clear();
            return;
        }
        let at_rest = |ended: &Timestamp| at.duration_since(*ended) >= AT_REST;
        let before: HashMap<_, _> = self
            .tracks
            .iter()
            .filter(|(_, track)| at_rest(&track.ended) && track.error.is_empty())
            .map(|(key, track)| {
                let versions = track.versions.0.clone();
                (key.clone(), Before { ended: track.ended, state: self.state(&key.1), versions })
            })
            .collect();
        self.before = before;
    }

    /// Generation and metadata of a custom resource.
    fn state(&self, key: &ObjectKey) -> Option<(i64, u64)> {
        self.live.get(key).filter(|live| live.deleting.is_none()).map(|live| (live.generation, live.metadata))
    }

    /// Takes in the first reconcile of an object after a restart.
    pub(crate) fn take_rewritten(&mut self, evidence: &Evidence) {
        let place = (evidence.controller.clone(), evidence.object.key());
        let Some(before) = self.before.remove(&place) else { return };
        let start = |cause: &Cause| matches!(cause.kind, CauseKind::Start);
        let same = before.state.is_some() && before.state == self.state(&place.1);
        let mut read = evidence.reads.iter().filter(|read| !read.version.is_empty());
        let changed = read.any(|read| {
            let key = read.objects.first().filter(|key| **key != place.1 && !self.makers.contains_key(*key));
            key.is_some_and(|key| before.versions.get(key) != Some(&read.version))
        });
        if !same
            || changed
            || !evidence.error.is_empty()
            || evidence.deleting
            || !evidence.causes.iter().all(start)
        {
            return;
        }
        for write in evidence.writes.iter().filter(|write| is_judged(write, evidence)) {
            let key = write.object.key();
            let fresh = self.written_at.get(&key).is_some_and(|at| *at > before.ended);
            let strange = self.makers.get(&key).is_none_or(|maker| maker.controller != evidence.controller);
            if fresh || strange {
                continue;
            }
            for field in write.fields.iter().filter(|field| is_rewritten(field)) {
                let known = self.rewritten.entry((key.clone(), field.path.clone())).or_default();
                known.times += 1;
                (known.reconcile, known.shown) = (evidence.reconcile, field.shown.clone());
            }
        }
    }

    /// Notes when objects were written last.
    pub(crate) fn take_written_at(&mut self, evidence: &Evidence) {
        for write in evidence.writes.iter().filter(|write| !write.unchanged && !is_never(&write.object)) {
            self.written_at.insert(write.object.key(), write.at);
        }
    }
}

fn is_judged(write: &WriteFact, evidence: &Evidence) -> bool {
    !write.created
        && !write.unchanged
        && !write.deleting
        && write.subresource.is_empty()
        && write.object.key() != evidence.object.key()
        && !is_never(&write.object)
        && !OF_THE_PROCESS.contains(&write.object.gvk.kind.as_str())
}

/// True if the program had written the value, and has another one now.
fn is_rewritten(field: &FieldFact) -> bool {
    field.sent
        && !field.time
        && field.old != 0
        && field.new != 0
        && field.other.is_empty()
        && !field.path.starts_with(".metadata.ownerReferences")
}
