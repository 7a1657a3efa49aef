//! One event after the other becomes the state. Total: every event has its arm, none is refused.

use super::{Requests, Seen, State};
use opdev_event::{
    ConnectionChanged, Event, KindHealth, KindStatus, LoopFound, Notice, ObjectGone, ObjectSeen, Parsed,
    Paused, Protection, Reconcile, SourcesChanged, Started, UnrelatedObject, UnrelatedSeen,
};
use opdev_object::meta::{self, ObjectKey, ObjectRef};
use serde_json::Value;
use std::collections::BTreeSet;
use std::sync::Arc;

impl State {
    /// Takes in one event.
    pub fn reduce(&mut self, event: Event) {
        self.version += 1;
        let failing = self.history.failing_now();
        match event {
            Event::Started(started) => self.started(started),
            Event::SourcesChanged(sources) => self.sources_changed(sources),
            Event::ReloadFailed(failed) if failed.build => self.programs.build_failed(Arc::new(failed)),
            Event::ReloadFailed(failed) => self.reload.failed = Some(Arc::new(failed)),
            Event::BuildChanged(build) => self.programs.build_changed(build),
            Event::ProcessChanged(run) => self.programs.run_changed(run),
            Event::ReloadSettled(settled) => {
                // A settlement of a set that has been replaced since would claim too much.
                if self.reload.live.as_ref().is_none_or(|live| live.sources == settled.sources) {
                    self.reload.settled = Some(Arc::new(settled));
                }
            }
            Event::TypeChanged(changed) => self.impact.type_changed(changed),
            Event::ShadowRun(run) => self.impact.shadow_run(run),
            Event::Held(held) => self.impact.hold(held),
            Event::Released(released) => self.impact.release(&released),
            Event::HoldChanged { on } => self.hold = on,
            Event::Disturbed { rules } => self.disturbed = rules,
            Event::TrustAsked(asked) => self.trust = Some(asked),
            Event::TrustAnswered(_) => self.trust = None,
            Event::ObjectSeen(seen) => self.object_seen(seen),
            Event::UnrelatedSeen(seen) => self.unrelated_seen(seen),
            Event::ObjectGone(gone) => self.object_gone(&gone),
            Event::ReconcileStarted(reconcile) => {
                Arc::make_mut(&mut self.running).insert(reconcile.object.key(), Arc::new(reconcile));
            }
            Event::Reconciled(reconcile) => self.reconciled(&reconcile),
            Event::QueueChanged(queue) => self.queue = queue,
            Event::LoopFound(found) => self.loop_found(found),
            Event::FindingOpened(finding)
            | Event::FindingCounted(finding)
            | Event::FindingClosed(finding) => {
                self.findings.take(&finding);
            }
            Event::PausesChanged { paused } => self.pauses_changed(paused),
            Event::Log(line) => self.log.push(line, self.limits.log_lines),
            Event::LogDropped { lines } => self.log.dropped += lines,
            Event::PodLog(log) => self.pod_logs.push(log),
            Event::RequestStarted(request) => self.requests.start(request),
            Event::RequestFinished(request) => self.requests.finish(request, self.limits.requests),
            Event::BackgroundChanged(run) => self.requests.background(&run),
            Event::DraftChanged(draft) => self.drafts.take(draft),
            Event::Leaving(leaving) => self.leaving = Some(Arc::new(leaving)),
            Event::PathsListed(paths) => self.paths = Arc::new(paths),
            Event::FilesListed { files } => {
                // A reader that has looked at this list need not look again.
                if self.files.as_deref() != Some(&*files) {
                    self.files = Some(files);
                }
            }
            Event::ValuesExplained(explained) => self.values = Some(explained),
            Event::KindsServed { kinds } => self.served = Some(kinds.into()),
            Event::TableChanged { table } => {
                if table.is_none() {
                    self.row = None;
                }
                self.table = table;
            }
            Event::RowRead(seen) => self.row = Some(Arc::new(Seen::read(seen))),
            Event::UndoChanged { entries } => self.undo = entries.into(),
            Event::Noticed(notice) => self.noticed(notice),
            Event::PreferencesChanged(preferences) => self.preferences = Some(preferences),
            Event::ProtectionChanged(changed) => {
                if let Some(started) = &mut self.started {
                    let cluster = &mut Arc::make_mut(started).cluster;
                    cluster.protection = changed.protection;
                    cluster.read_only = changed.protection == Protection::ReadOnly;
                }
            }
            Event::CopiesChanged(changed) => self.copies = changed.copies.clone().into(),
            Event::ConnectionChanged(changed) => {
                let why = |of: &ConnectionChanged| of.trouble.as_ref().map(|trouble| trouble.why.clone());
                let before = self.connection.as_deref().and_then(why);
                // A dialog that is over need not be dismissed.
                if let Some(over) = before.filter(|before| why(&changed).as_ref() != Some(before)) {
                    Arc::make_mut(&mut self.notices).retain(|notice| notice.message != over);
                }
                self.connection = changed.trouble.is_some().then(|| Arc::new(changed));
            }
            Event::RulesMissing { missing } => self.missing_rules = missing.into(),
            Event::Stopping { reason } => self.stopping = Some(reason.into()),
        }
        self.keep_to_budget();
        self.follow_failing(&failing);
    }

    /// An object of another kind comes into the list when it fails, and leaves it afterwards.
    fn follow_failing(&mut self, before: &Arc<BTreeSet<ObjectKey>>) {
        let now = self.history.failing_now();
        if Arc::ptr_eq(before, &now) {
            return;
        }
        for key in before.difference(&now) {
            self.objects.hide_unrelated(key);
            self.objects.touch(key.clone());
        }
        now.difference(before).for_each(|key| self.show_failing(key));
    }

    fn show_failing(&mut self, key: &ObjectKey) {
        let Some(object) = self.history.last(key).map(|last| last.object.clone()) else { return };
        self.objects.show_unrelated(key, &object);
        self.objects.touch(key.clone());
    }

    /// On another cluster nothing that is known holds; only the terminal's settings, and what is asked about
    /// the project, are the same.
    fn started(&mut self, started: Arc<Started>) {
        if self.started.is_some() {
            let mut requests = Requests::default();
            requests.keep_runs(&self.requests, started.at);
            *self = State {
                requests,
                version: self.version,
                left: self.left + 1,
                preferences: self.preferences.take(),
                trust: self.trust.take(),
                limits: self.limits,
                ..State::default()
            };
        }
        self.started = Some(started);
    }

    fn loop_found(&mut self, found: Arc<LoopFound>) {
        Arc::make_mut(&mut self.loops).insert(found.object.key(), found);
    }

    /// An object that was paused for a loop and goes on has a new beginning.
    fn pauses_changed(&mut self, paused: Vec<Paused>) {
        self.paused = paused.into();
        if self.loops.values().any(|found| found.paused) {
            let paused = Arc::clone(&self.paused);
            let held = |key: &ObjectKey| paused.iter().any(|paused| paused.what.covers(key));
            Arc::make_mut(&mut self.loops).retain(|key, found| !found.paused || held(key));
        }
    }

    fn object_seen(&mut self, event: ObjectSeen) {
        let ObjectSeen { at, object_ref, metadata_only, object } = event;
        self.latest = self.latest.max(Some(at));
        let value = object.first();
        if metadata_only && self.is_known_whole(&object_ref, &value) {
            return;
        }
        let custom = self.is_custom(&object_ref.gvk.group, &object_ref.gvk.kind);
        let seen = self.objects.insert(
            object_ref,
            Parsed { body: &object, value: &value },
            metadata_only,
            custom,
            self.limits.recorded,
        );
        // Metadata has no versions here: its difference from a whole object would be all the rest.
        if let Some(seen) = seen.filter(|_| !metadata_only) {
            let parsed = Parsed { body: &seen.object, value: &value };
            self.archive.seen(&seen.key, parsed, at, &self.limits.versions);
            self.conditions.seen(&seen.key, &value, at);
        }
    }

    /// An object that no longer belongs to the project is forgotten, but for its key.
    fn unrelated_seen(&mut self, event: UnrelatedSeen) {
        let UnrelatedSeen { gvk, objects, .. } = event;
        for UnrelatedObject { namespace, name, uid, .. } in objects {
            let object = ObjectRef { gvk: gvk.clone(), namespace, name, uid };
            // A failing object has a row.
            let key = object.key();
            let fails = self.history.failing().contains(&key);
            if fails && self.objects.get(&key).is_some() {
                continue;
            }
            if let Some(seen) = self.objects.insert_unrelated(object) {
                self.conditions.forget(&seen.key);
                self.archive.forget(&seen.key);
            }
            if fails {
                self.show_failing(&key);
            }
        }
    }

    /// Returns true if this very version of an object was read whole before.
    fn is_known_whole(&self, object_ref: &ObjectRef, metadata: &Value) -> bool {
        self.objects.get(&object_ref.key()).is_some_and(|known| {
            !known.metadata_only
                && known.object_ref.uid == object_ref.uid
                && meta::resource_version(&known.object.read()) == meta::resource_version(metadata)
        })
    }

    fn object_gone(&mut self, event: &ObjectGone) {
        if self.loops.contains_key(&event.object_ref.key()) {
            Arc::make_mut(&mut self.loops).remove(&event.object_ref.key());
        }
        self.latest = self.latest.max(Some(event.at));
        self.history.object_gone(&event.object_ref.key());
        self.objects.remove_unrelated(&event.object_ref);
        if let Some(seen) = self.objects.remove(&event.object_ref) {
            let conditions = self.conditions.forget(&seen.key).unwrap_or_default();
            self.archive.gone_now(seen, conditions, event.at, &self.limits.versions);
        }
    }

    fn sources_changed(&mut self, sources: Arc<SourcesChanged>) {
        self.objects.set_kinds(&sources.kinds);
        self.reload.failed = None;
        self.reload.settled = None;
        self.reload.unserved =
            self.reload.live.as_deref().map_or_else(Arc::default, |before| unserved(before, &sources));
        self.impact.sources_changed(&sources);
        self.reload.live = Some(sources);
    }

    fn reconciled(&mut self, reconcile: &Arc<Reconcile>) {
        let key = reconcile.object.key();
        self.latest = self.latest.max(reconcile.at.checked_add(reconcile.took).ok());
        if self.running.get(&key).is_some_and(|running| running.id <= reconcile.id) {
            Arc::make_mut(&mut self.running).remove(&key);
        }
        self.objects.touch(key);
        self.history.push(reconcile, self.limits.reconciles_per_object, self.limits.reconciles);
    }

    /// A notice that repeats the last one takes its place.
    fn noticed(&mut self, notice: Notice) {
        let notices = Arc::make_mut(&mut self.notices);
        if notices.back().is_some_and(|last| last.message == notice.message && last.object == notice.object) {
            notices.pop_back();
        }
        notices.push_back(Arc::new(notice));
        while notices.len() > self.limits.notices {
            notices.pop_front();
        }
    }
}

/// Kinds that something of the set before reconciled, and nothing of this one does.
fn unserved(before: &SourcesChanged, now: &SourcesChanged) -> Arc<[String]> {
    let serves = |kind: &KindStatus| matches!(kind.health, KindHealth::Serving | KindHealth::Stale { .. });
    let stays = |kind: &KindStatus| {
        let same = |other: &&KindStatus| other.gvk.group_kind() == kind.gvk.group_kind();
        now.kinds.iter().find(same).is_some_and(|other| !matches!(other.health, KindHealth::Shown { .. }))
    };
    let lost = before.kinds.iter().filter(|kind| serves(kind) && !stays(kind));
    lost.map(|kind| kind.gvk.kind.clone()).collect()
}
