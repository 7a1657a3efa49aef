//! What the supervisor tells of a program and of its builds.

use super::{LONG_BUILD, Life};
use crate::event::{
    BuildChanged, BuildState, Diagnostic, Event, Level, Notice, ProcessChanged, ReloadFailed, TraceLevel,
};
use crate::process::trace::Rung;
use jiff::Timestamp;
use std::sync::Arc;

impl Life {
    /// A build that does not end is told once: nothing else would be seen of it.
    pub(super) async fn tell_long_build(&mut self) {
        let Some(building) = &mut self.building else { return };
        building.told_at = None;
        let (words, minutes) = (&self.input.plan.words, LONG_BUILD.as_secs() / 60);
        let message = format!("the build of {words} has been running for {minutes} minutes");
        let hint =
            "the first build of a large Go project takes minutes; a save ends this one and begins the next";
        let hint = Some(hint.to_owned());
        let notice = Notice { at: Timestamp::now(), level: Level::Warn, message, hint, object: None };
        self.input.events.emit(Event::Noticed(notice)).await;
    }

    pub(super) async fn tell(&self) {
        let changed = ProcessChanged {
            at: Timestamp::now(),
            program: self.builder.plan.words.clone(),
            starts: self.starts,
            state: self.state.clone(),
            // Of a program that tells nothing, its calls do.
            traced: self.rung.map(Rung::level).or(self.input.traced.as_ref().map(|_| TraceLevel::Wire)),
        };
        self.input.events.emit(Event::ProcessChanged(Arc::new(changed))).await;
    }

    pub(super) async fn tell_build(&self, state: BuildState) {
        let Some(build) = self.builder.plan.build_words() else { return };
        let changed = BuildChanged { at: Timestamp::now(), build, files: self.files.clone(), state };
        self.input.events.emit(Event::BuildChanged(Arc::new(changed))).await;
    }

    pub(super) async fn tell_broken(&self, diagnostics: Vec<Diagnostic>) {
        let failed =
            ReloadFailed { at: Timestamp::now(), files: self.files.clone(), diagnostics, build: true };
        self.input.events.emit(Event::ReloadFailed(failed)).await;
    }

    pub(super) async fn notice(&self, level: Level, message: String) {
        let notice = Notice { at: Timestamp::now(), level, message, hint: None, object: None };
        self.input.events.emit(Event::Noticed(notice)).await;
    }
}
