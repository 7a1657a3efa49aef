//! Configuration that has changed, with the workloads whose pods have taken the one of before.

use super::templates::{ChangedBy, Takes, is_data};
use super::{Pending, Table, Track, Wait};
use jiff::SignedDuration;
use opdev_event::evidence::{Evidence, FieldFact, WriteVerb};
use opdev_event::{CauseKind, WatchEvent};
use opdev_object::meta::{ObjectKey, ObjectRef};

/// A workload that was made or changed so shortly before may have been changed because of it.
const BEFORE: SignedDuration = SignedDuration::from_secs(10);
/// The program's own write may have been read a moment later.
const LATELY: SignedDuration = SignedDuration::from_secs(60);
/// Changes of one reconcile that are judged.
const MOST: usize = 8;

/// A change that a reconcile has made, has heard of, or has found when it read the object again.
struct Change {
    object: ObjectRef,
    paths: Vec<String>,
    by: ChangedBy,
}

impl Table {
    /// Notes which workloads have to be rolled because of what a reconcile has changed.
    pub(crate) fn take_configs(&mut self, evidence: &Evidence, track: &mut Track) {
        let primary = evidence.object.key();
        let read = track.configs.take(&evidence.configs).into_iter();
        // The program's own write is told by the reconcile that made it.
        let lately = |object: &ObjectRef| {
            self.written_at.get(&object.key()).is_some_and(|at| evidence.at.duration_since(*at) < LATELY)
        };
        let read = read.filter(|(object, _)| !self.makers.contains_key(&object.key()) && !lately(object));
        let mut all = changes(evidence);
        for (object, paths) in read {
            if all.len() < MOST && !all.iter().any(|known| known.object.key() == object.key()) {
                all.push(Change { object, paths, by: ChangedBy::Found });
            }
        }
        for change in all {
            let config = change.object.key();
            let mut stale: Vec<(ObjectKey, i64, Takes)> = Vec::new();
            for (key, template) in &self.templates {
                let maker = self.makers.get(key).filter(|maker| !maker.gone && maker.deleted.is_none());
                let mine = maker.is_some_and(|maker| {
                    maker.primary.key() == primary && evidence.at.duration_since(maker.at) >= BEFORE
                });
                let settled = evidence.at.duration_since(template.changed) >= BEFORE;
                let rolled =
                    evidence.writes.iter().any(|write| write.object.key() == *key && !write.unchanged);
                if !mine || !settled || rolled || key.namespace != config.namespace {
                    continue;
                }
                let takes = change.paths.iter().filter_map(|path| template.takes(&config, path)).max();
                stale.extend(takes.map(|takes| (key.clone(), template.generation, takes)));
            }
            for (workload, generation, takes) in stale {
                let what = Wait::Rolled { workload, generation, takes, by: change.by, since: track.count };
                self.pending.push(Pending {
                    what,
                    at: evidence.ended,
                    controller: evidence.controller.clone(),
                    primary: evidence.object.clone(),
                    about: change.object.clone(),
                    reconcile: evidence.reconcile,
                });
            }
        }
    }
}

fn changes(evidence: &Evidence) -> Vec<Change> {
    let is_config = |object: &ObjectRef| object.gvk.is_config();
    let written = evidence.writes.iter().filter(|write| is_config(&write.object) && !write.created);
    let written = written.filter(|write| !write.unchanged && write.verb != WriteVerb::Delete).map(|write| {
        // A value of somebody else that is put back is the one that the pods have.
        let own = |field: &&FieldFact| field.old != field.new && !field.time && field.other.is_empty();
        let fields = write.fields.iter().filter(own);
        let paths = fields.map(|field| field.path.clone()).filter(|path| is_data(path)).collect();
        Change { object: write.object.clone(), paths, by: ChangedBy::Program }
    });
    let is_written = |object: &ObjectRef| {
        evidence.writes.iter().any(|write| !write.unchanged && write.object.key() == object.key())
    };
    let heard = evidence.causes.iter().filter_map(|cause| match &cause.kind {
        CauseKind::Watch { object, event: WatchEvent::Modified, fields, own_write: false, .. }
            if is_config(object) && !is_written(object) =>
        {
            let paths = fields.iter().map(|field| field.path.clone()).filter(|path| is_data(path)).collect();
            Some(Change { object: object.clone(), paths, by: ChangedBy::Heard })
        }
        _ => None,
    });
    written.chain(heard).filter(|change| !change.paths.is_empty()).take(MOST).collect()
}
