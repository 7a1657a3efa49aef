//! Configuration that has changed, with the workloads whose pods have taken the one of before.

use super::templates::{Takes, is_data};
use super::{Pending, Table, Track, Wait};
use jiff::SignedDuration;
use opdev_event::evidence::{Evidence, WriteVerb};
use opdev_event::{CauseKind, WatchEvent};
use opdev_object::meta::{ObjectKey, ObjectRef};

/// A workload that was made or changed so shortly before may have been changed because of it.
const BEFORE: SignedDuration = SignedDuration::from_secs(10);
/// Changes of one reconcile that are judged.
const MOST: usize = 8;

/// A change that a reconcile has made, or has heard of.
struct Change {
    object: ObjectRef,
    paths: Vec<String>,
    own: bool,
}

impl Table {
    /// Notes which workloads have to be rolled because of what a reconcile has changed.
    pub(super) fn take_configs(&mut self, evidence: &Evidence, track: &Track) {
        let primary = evidence.object.key();
        for change in changes(evidence) {
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
                let what = Wait::Rolled { workload, generation, takes, own: change.own, since: track.count };
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
    let is_config = |object: &ObjectRef| {
        object.gvk.group.is_empty() && matches!(object.gvk.kind.as_str(), "ConfigMap" | "Secret")
    };
    let written = evidence.writes.iter().filter(|write| is_config(&write.object) && !write.created);
    let written = written.filter(|write| !write.unchanged && write.verb != WriteVerb::Delete).map(|write| {
        let fields = write.fields.iter().filter(|field| field.old != field.new && !field.time);
        let paths = fields.map(|field| field.path.clone()).filter(|path| is_data(path)).collect();
        Change { object: write.object.clone(), paths, own: true }
    });
    let heard = evidence.causes.iter().filter_map(|cause| match &cause.kind {
        CauseKind::Watch { object, event: WatchEvent::Modified, fields, own_write: false, .. }
            if is_config(object) =>
        {
            let paths = fields.iter().map(|field| field.path.clone()).filter(|path| is_data(path)).collect();
            Some(Change { object: object.clone(), paths, own: false })
        }
        _ => None,
    });
    written.chain(heard).filter(|change| !change.paths.is_empty()).take(MOST).collect()
}
