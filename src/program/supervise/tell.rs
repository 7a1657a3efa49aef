//! Events of the supervisor about a program and its builds.

use super::{Life, Running};
use jiff::Timestamp;
use opdev_event::{
    BuildChanged, BuildState, Diagnostic, Event, Level, Notice, ProcessChanged, ReloadFailed, TraceLevel,
    words,
};
use opdev_os::small_file::small_text;
use opdev_os::sockets;
use opdev_sources::merge_conflict;
use opdev_trace::instrument::Rung;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

/// The hint about a program that does not call.
const TAKES_NO_NOTICE: &str = "KUBECONFIG leads the program to the cluster, and it seems to take no notice: let it load that \
    file (ctrl.GetConfig, clientcmd's default rules), without a path in its code, a --kubeconfig of its own or the \
    configuration of a pod. If it calls later on purpose, all is well";

impl Life {
    /// Until when a program that starts now should have called, and how many calls there are before. One that
    /// is under a debugger may stand still.
    pub(super) fn first_call_by(&self, is_debugged: bool) -> Option<(Instant, u64)> {
        let calls = self.input.calls.as_ref().filter(|_| !is_debugged)?;
        Some((Instant::now() + self.input.limits.first_call, calls.load(Ordering::Relaxed)))
    }

    /// A program that never calls has another kubeconfig than the one it was given: nothing it does would be
    /// seen.
    pub(super) async fn tell_silent(&mut self) {
        let Some(Running { silent, child, .. }) = &mut self.running else { return };
        let (Some((_, before)), Some(calls)) = (silent.take(), &self.input.calls) else { return };
        if calls.load(Ordering::Relaxed) > before || self.silent_at.replace(before) == Some(before) {
            return;
        }
        let pid = child.pid;
        let elsewhere =
            tokio::task::spawn_blocking(move || sockets::peers_of_group(pid)).await.unwrap_or_default();
        let (words, limit) = (&self.input.plan.words, words::took(self.input.limits.first_call));
        let mut message =
            format!("{words} has run for {limit} without a call to the API server that opdev gives it");
        if !elsewhere.is_empty() {
            message.push_str(&format!("; it is connected to {}", elsewhere.join(", ")));
        }
        let hint = Some(TAKES_NO_NOTICE.to_owned());
        let notice = Notice { at: Timestamp::now(), level: Level::Warn, message, hint, object: None };
        self.input.events.emit(Event::Noticed(notice)).await;
    }

    /// A build that does not end is told once: nothing else would be seen of it.
    pub(super) async fn tell_long_build(&mut self) {
        let Some(building) = &mut self.building else { return };
        building.told_at = None;
        let (words, limit) = (&self.input.plan.words, words::took(self.input.limits.long_build));
        let message = format!("the build of {words} has been running for {limit}");
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
            traced: self.level(),
            breakpoint: self.running.as_ref().and_then(|running| running.breakpoint.clone()),
        };
        self.input.events.emit(Event::ProcessChanged(Arc::new(changed))).await;
    }

    /// The level of the trace. A program without reports of its own is seen by its calls, and by its lines
    /// where they name objects.
    fn level(&self) -> Option<TraceLevel> {
        if self.rung.is_none() && self.tells {
            return Some(TraceLevel::Full);
        }
        let told = self.rung.map(Rung::level).or(self.input.traced.as_ref().map(|_| TraceLevel::Wire))?;
        Some(if self.names_objects { told.min(TraceLevel::Log) } else { told })
    }

    /// A program to whose build nothing was added tells of its reconciles itself.
    pub(super) async fn tells_itself(&mut self) {
        self.tells = true;
        if self.rung.is_none() && self.running.is_some() {
            self.tell().await;
        }
    }

    /// The first of its lines that names an object has come.
    pub(super) async fn names_objects(&mut self) {
        let before = self.level();
        self.names_objects = true;
        if self.level() != before {
            self.tell().await;
        }
    }

    pub(super) async fn tell_build(&self, state: BuildState) {
        let Some(build) = self.builder.plan.build_words() else { return };
        let (program, files) = (self.builder.plan.words.clone(), self.files.clone());
        let changed = BuildChanged { at: Timestamp::now(), program, build, files, state };
        self.input.events.emit(Event::BuildChanged(Arc::new(changed))).await;
    }

    pub(super) async fn tell_broken(&self, mut diagnostics: Vec<Diagnostic>) {
        merge_conflict::explain(&mut diagnostics, |file| small_text(&self.builder.root.join(file)));
        let (program, files) = (self.builder.plan.words.clone(), self.files.clone());
        let failed = ReloadFailed { at: Timestamp::now(), files, diagnostics, build: true, program };
        self.input.events.emit(Event::ReloadFailed(failed)).await;
    }

    pub(super) async fn notice(&self, level: Level, message: String) {
        let notice = Notice { at: Timestamp::now(), level, message, hint: None, object: None };
        self.input.events.emit(Event::Noticed(notice)).await;
    }
}
