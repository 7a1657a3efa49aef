//! One event after the other becomes the state. Total: every event has its arm, none is refused.

use super::State;
use crate::event::{Event, Notice, Reconcile, SourcesChanged};
use std::sync::Arc;

impl State {
    /// Takes in one event.
    pub fn reduce(&mut self, event: Event) {
        self.version += 1;
        match event {
            Event::Started(started) => self.started = Some(started),
            Event::SourcesChanged(sources) => self.sources_changed(sources),
            Event::ReloadFailed(failed) => self.reload.failed = Some(Arc::new(failed)),
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
            Event::ObjectSeen(seen) => {
                let custom = self.is_custom(&seen.object_ref.gvk.group, &seen.object_ref.gvk.kind);
                self.objects.insert(seen.object_ref, seen.object, custom, self.limits.recorded);
            }
            Event::ObjectGone(gone) => self.objects.remove(&gone.object_ref),
            Event::ReconcileStarted(pass) => {
                Arc::make_mut(&mut self.running).insert(pass.object.key(), Arc::new(pass));
            }
            Event::Reconciled(pass) => self.reconciled(&pass),
            Event::QueueChanged(queue) => self.queue = queue,
            Event::Log(line) => self.log.push(line, self.limits.log_lines),
            Event::LogDropped { lines } => self.log.dropped += lines,
            Event::RequestStarted(request) => self.requests.start(request),
            Event::RequestFinished(request) => self.requests.finish(request, self.limits.requests),
            Event::Noticed(notice) => self.noticed(notice),
            Event::PreferencesChanged(preferences) => self.preferences = Some(preferences),
            Event::Stopping { reason } => self.stopping = Some(reason.into()),
        }
    }

    fn sources_changed(&mut self, sources: Arc<SourcesChanged>) {
        self.objects.set_kinds(&sources.kinds);
        self.reload.failed = None;
        self.reload.settled = None;
        self.impact.sources_changed(&sources);
        self.reload.live = Some(sources);
    }

    fn reconciled(&mut self, pass: &Arc<Reconcile>) {
        let key = pass.object.key();
        if self.running.get(&key).is_some_and(|running| running.id <= pass.id) {
            Arc::make_mut(&mut self.running).remove(&key);
        }
        self.history.push(pass, self.limits.reconciles_per_object, self.limits.reconciles);
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
