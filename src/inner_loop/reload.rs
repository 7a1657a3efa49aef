//! The problem: files change while they are read, CRDs are applied, a question is open, or a reconcile runs;
//! an editor may save five files for one change, and half of them may be broken. The objects must never see a
//! mixture of two saves, and never lose the version that works.
//!
//! From a burst of file events to a new set of sources: read once, load, bring CRDs to the API server,
//! publish. One load at a time, the newest files win, and a broken edit never takes away what serves.

use super::dry_run;
use super::save::Save;
use anyhow::{Context as _, Result};
use jiff::Timestamp;
use kube::Client;
use opdev_client::backoff::Backoff;
use opdev_client::read_only::ReadOnly;
use opdev_crds::{Crds, Origin, Outcome};
use opdev_event::sink::EventSink;
use opdev_event::{
    Diagnostic, Event, KindHealth, KindStatus, Level, Notice, Permission, Place, Released, ReloadFailed,
    Severity, ShadowDecision, SourcesChanged, Verdict,
};
use opdev_object::meta::Gvk;
use opdev_operator::manager::ManagerRequest;
use opdev_os::small_file::small_text;
use opdev_os::watcher;
use opdev_os::watcher::{Batch, Watcher};
use opdev_project::Project;
use opdev_project::files;
use opdev_project::load::{load, read_with_wanted};
use opdev_project::trust::Trust;
use opdev_release::unfit::UnfitWrite;
use opdev_requests::reload_request::{Ask, HeldError};
use opdev_sources::Sources;
use opdev_sources::load::{Loaded, Options, Trial};
use opdev_sources::merge_conflict;
use serde_json::Value;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::{mpsc, watch};
use tokio_util::sync::CancellationToken;

/// How long an API server may judge by the older type of a kind once the newer one is established.
const TYPE_TAKES_HOLD: Duration = Duration::from_secs(1);

/// Everything a reload needs.
pub(crate) struct Reloader {
    pub(crate) project: Project,
    /// The settings of kinds.
    pub(crate) options: Arc<Options>,
    /// The permissions that the user gives the project.
    pub(crate) trust: Trust,
    /// Permissions that the operator's own programs need from the user.
    pub(crate) programs: Vec<Permission>,
    pub(crate) client: Client,
    pub(crate) events: EventSink,
    /// CRDs are written unless it holds.
    pub(crate) read_only: ReadOnly,
    /// True if nothing that anybody could notice goes to the cluster without the user's word.
    pub(crate) cautious: bool,
    /// Where the newest set goes.
    pub(crate) publish: watch::Sender<Arc<Sources>>,
    /// True if CRDs are tried again that failed for a moment.
    pub(crate) awaited: watch::Sender<bool>,
    /// The manager, which tries new programs.
    pub(crate) operator: mpsc::Sender<ManagerRequest>,
    /// The user's request.
    pub(crate) asked: mpsc::Receiver<Ask>,
    /// Programs that have just taken over and whose writes the API server refuses.
    pub(crate) unfit: mpsc::Receiver<UnfitWrite>,
    /// True to poll rather than listen.
    pub(crate) poll: bool,
    /// True if saved charts wait for the user's word from the start.
    pub(crate) hold: bool,
}

/// The parts of a reload that change from load to load.
struct Memory {
    files: files::Memory,
    crds: Crds,
    /// When CRDs that failed for a moment are tried again.
    retry: Backoff,
    /// True if saved charts wait for the user's word.
    hold: bool,
    /// Reconcilers and charts that wait for the user's word, by the names of the questions.
    held: Vec<(String, Gvk)>,
    plurals: Vec<(Gvk, String)>,
    /// The files are broken as they are.
    failed: bool,
    /// The CRDs whose declarations are written.
    declared: Option<Vec<Arc<Value>>>,
}

impl Reloader {
    /// Loads and publishes the first set, then follows the files until `shutdown`.
    pub(crate) async fn run(
        &mut self,
        first: (files::Memory, Option<Loaded>),
        shutdown: &CancellationToken,
    ) -> Result<()> {
        let (files, loaded) = first;
        let crds = Crds::new(self.cautious);
        let hold = self.hold;
        let mut memory = Memory {
            files,
            crds,
            retry: Backoff::default(),
            hold,
            held: Vec::new(),
            plurals: Vec::new(),
            failed: false,
            declared: None,
        };
        if hold {
            self.events.emit(Event::HoldChanged { on: true }).await;
        }
        if let Some(loaded) = loaded {
            self.bring_live(&mut memory, loaded, Vec::new()).await;
        }
        let watcher = self.start_watcher().await?;
        let mut watcher = self.rewatch(watcher, false).await?;
        let mut answers = self.trust.answers();
        // Files that were saved between the first read and the first watch.
        self.reload(&mut memory, None, false).await;
        loop {
            let (batch, forced) = tokio::select! {
                () = shutdown.cancelled() => return Ok(()),
                batch = watcher.next(&self.project.root) => (Some(batch), false),
                () = memory.retry.due() => {
                    self.retry_crds(&mut memory).await;
                    continue;
                }
                Some(found) = self.unfit.recv() => {
                    self.go_back(&mut memory, &found).await;
                    continue;
                }
                // Files withheld until the answer are read now. The sender lives as long as `self`.
                Ok(()) = answers.changed() => (None, false),
                asked = self.asked.recv() => match asked {
                    Some(Ask::Reload) => (None, true),
                    Some(Ask::Hold { on }) => {
                        memory.hold = on;
                        self.events.emit(Event::HoldChanged { on }).await;
                        continue;
                    }
                    Some(Ask::Answer { id, apply, reply }) => {
                        let answer = self.answer_held(&mut memory, &id, apply).await;
                        // Whoever asked may be gone.
                        let _ = reply.send(answer);
                        continue;
                    }
                    None => return Ok(()),
                },
            };
            let save = match batch {
                Some(batch) => Some(self.look_at(batch).await?),
                None => None,
            };
            if save.as_ref().is_some_and(|save| save.moved) {
                watcher = self.rewatch(watcher, true).await?;
            }
            self.reload(&mut memory, save, forced).await;
            watcher.is_broken(memory.failed);
            watcher = self.rewatch(watcher, false).await?;
        }
    }

    async fn start_watcher(&self) -> Result<Watcher> {
        let quiet = self.project.settings.reload.quiet();
        match Watcher::start(quiet, self.poll) {
            Ok(watcher) => Ok(watcher),
            Err(error) => {
                let hint =
                    watcher::limit_hint(&error).unwrap_or_else(|| "start opdev with --poll".to_owned());
                self.notice(
                    Level::Warn,
                    format!("files are polled, for the kernel refuses to watch them: {error}"),
                    Some(hint),
                )
                .await;
                Watcher::start(quiet, true).context("files cannot be watched")
            }
        }
    }

    /// Watches what the newest sources are made of; `renew` also takes folders anew that were deleted and
    /// came back.
    async fn rewatch(&self, mut watcher: Watcher, renew: bool) -> Result<Watcher> {
        let (project, sources) = (self.project.clone(), self.publish.borrow().clone());
        // The kernel is asked about each folder, which may take long on a network's disk.
        let watched = tokio::task::spawn_blocking(move || {
            let set = files::watch_set(&project, &sources);
            let Err(error) = watcher.watch(&set, renew) else { return (watcher, None) };
            let hint = watcher::limit_hint(&error);
            let refused = format!("not every file can be watched: {error}");
            let polls = !watcher.polls
                && Watcher::start(project.settings.reload.quiet(), true).is_ok_and(|mut polling| {
                    let begun = polling.watch(&set, true).is_ok();
                    if begun {
                        watcher = polling;
                    }
                    begun
                });
            (watcher, Some((refused, hint, polls)))
        });
        let (watcher, refused) = watched.await.context("files cannot be watched")?;
        if let Some((refused, hint, polls)) = refused {
            self.notice(Level::Error, refused, hint).await;
            if polls {
                self.notice(Level::Warn, "files are polled twice a second from now on".to_owned(), None)
                    .await;
            }
        }
        Ok(watcher)
    }

    /// Looks at what was saved, on a thread of its own.
    async fn look_at(&self, batch: Batch) -> Result<Save> {
        let (project, sources) = (self.project.clone(), self.publish.borrow().clone());
        tokio::task::spawn_blocking(move || Save::of(&project, &sources, &batch))
            .await
            .context("saved files cannot be looked at")
    }

    async fn notice(&self, level: Level, message: String, hint: Option<String>) {
        let notice = Notice { at: Timestamp::now(), level, message, hint, object: None };
        self.events.emit(Event::Noticed(notice)).await;
    }

    /// Returns true if the user has answered all that the project wants; asks where not.
    async fn is_answered(&self, wanted: &[Permission]) -> bool {
        match self.trust.ask(wanted, &self.events).await {
            Ok(answered) => answered,
            Err(error) => {
                let message = format!("what you have trusted cannot be read: {error:#}");
                self.notice(Level::Error, message, None).await;
                false
            }
        }
    }

    async fn reload(&self, memory: &mut Memory, save: Option<Save>, forced: bool) {
        let saved_at = save.as_ref().map(|save| save.at).or_else(|| forced.then(Instant::now));
        let changed = save.map(|save| save.files).unwrap_or_default();
        let names = changed.clone();
        let (project, programs) = (self.project.clone(), self.programs.clone());
        let options = Arc::clone(&self.options);
        let read =
            move |files: &mut files::Memory| read_with_wanted(&project, files, &options, programs, &names);
        let Some((read, wanted)) = self.beside(memory, read).await else { return };
        // What is loaded is what the user was asked about, whatever is saved in the meantime. Until the
        // answer, what serves goes on serving.
        if !self.is_answered(&wanted).await {
            return;
        }
        if forced {
            memory.crds.ask_again();
        }
        let names = changed.clone();
        let (project, trust) = (self.project.clone(), self.trust.clone());
        let load =
            move |files: &mut files::Memory| load(&project, &trust, files, read, &names, saved_at, forced);
        if let Some(loaded) = self.beside(memory, load).await {
            self.bring_live(memory, loaded, changed).await;
        }
    }

    /// Reads or loads files on a thread of its own.
    async fn beside<T: Send + 'static>(
        &self,
        memory: &mut Memory,
        work: impl FnOnce(&mut files::Memory) -> Option<T> + Send + 'static,
    ) -> Option<T> {
        let mut files = std::mem::take(&mut memory.files);
        let done = tokio::task::spawn_blocking(move || {
            let made = work(&mut files);
            (files, made)
        });
        match done.await {
            Ok((files, made)) => {
                memory.files = files;
                made
            }
            Err(error) => {
                memory.files = files::Memory::after(self.publish.borrow().clone());
                let message = format!("reading the project failed: {error}");
                let hint = "this is a bug in opdev; the log has the details";
                self.notice(Level::Error, message, Some(hint.to_owned())).await;
                None
            }
        }
    }

    /// The user's word about a held change: what was done, or why nothing was.
    async fn answer_held(&self, memory: &mut Memory, id: &str, apply: bool) -> Result<String, HeldError> {
        if let Some(at) = memory.held.iter().position(|(held, _)| held == id) {
            let (id, kind) = memory.held.remove(at);
            return self.answer_program(memory, id, kind, apply).await;
        }
        let sources = self.publish.borrow().number + 1;
        let (kind, outcome) = match memory.crds.answer(&self.client, id, apply, sources).await {
            Some(Ok(answered)) => answered,
            Some(Err(error)) => return Err(HeldError::Failed(error)),
            None => return Err(HeldError::Gone(id.to_owned())),
        };
        let affected = if apply { vec![kind.clone()] } else { Vec::new() };
        let files = outcome.files();
        let told = self.tell(outcome).await;
        if let Some(loaded) = memory.files.loader.renew(&affected) {
            self.publish_set(memory, loaded, files, told.stale).await;
        }
        if apply && memory.files.loader.try_refused_again(&kind) {
            self.reload(memory, None, false).await;
        }
        let what = if apply { "changed" } else { "stays as it was" };
        Ok(format!("the type of {} {what}", kind.kind))
    }

    /// A program that has just taken over writes what the API server refuses: the one before it serves again.
    async fn go_back(&self, memory: &mut Memory, found: &UnfitWrite) {
        let kind = &found.object.gvk;
        let Some(loaded) = memory.files.loader.go_back(kind, found.sources, &found.problem) else {
            let stays = ManagerRequest::Stays { gvk: kind.clone(), sources: found.sources };
            // The manager may have ended.
            let _ = self.operator.send(stays).await;
            return;
        };
        let files = self.publish.borrow().files.clone();
        let run = dry_run::refused_live(&found.object, &found.problem, &files);
        self.events.emit(Event::ShadowRun(Arc::new(run))).await;
        self.publish_set(memory, loaded, files, Vec::new()).await;
    }

    /// The user's word about a held reconciler or chart.
    async fn answer_program(
        &self,
        memory: &mut Memory,
        id: String,
        kind: Gvk,
        apply: bool,
    ) -> Result<String, HeldError> {
        let serving = self.publish.borrow().watch(&kind.group, &kind.kind).cloned();
        let chart = serving.as_ref().is_some_and(|watch| watch.chart().is_some());
        let named = if chart { "the saved chart" } else { "the new reconciler" };
        let loader = &mut memory.files.loader;
        let (loaded, verdict, what) = if apply {
            (loader.accept(&kind), Verdict::Applied, if chart { "serves" } else { "runs" })
        } else {
            let message = format!("{named} of {} was discarded; the older one goes on", kind.kind);
            let place = serving.map(|watch| Place { file: watch.path().to_owned(), line: 0, column: 0 });
            let problem = Diagnostic {
                severity: Severity::Error,
                message,
                place,
                excerpt: None,
                hint: Some("undo the edit, or press R to be asked again".to_owned()),
                kind: Some(kind.clone()),
            };
            (loader.discard(&kind, &problem), Verdict::Discarded, "is dropped")
        };
        self.events.emit(Event::Released(Released { at: Timestamp::now(), id: id.clone(), verdict })).await;
        let Some(loaded) = loaded else { return Err(HeldError::Gone(id)) };
        let files: Vec<String> = loaded.sources.files.clone();
        self.publish_set(memory, loaded, files, Vec::new()).await;
        Ok(format!("{named} of {} {what}", kind.kind))
    }

    /// New programs, and charts where saved ones are held, are tried on every object before they take over.
    /// The types of `retyped` changed just now.
    async fn try_out(&self, memory: &mut Memory, loaded: &mut Loaded, files: &[String], retyped: &[Gvk]) {
        // Whatever waited has been replaced, or undone, by this load.
        let still = |kind: &Gvk| memory.files.loader.waits(kind);
        let (waiting, answered): (Vec<_>, Vec<_>) =
            std::mem::take(&mut memory.held).into_iter().partition(|(_, kind)| still(kind));
        memory.held = waiting;
        for (id, _) in answered {
            let released = Released { at: Timestamp::now(), id, verdict: Verdict::Undone };
            self.events.emit(Event::Released(released)).await;
        }
        if self.read_only.holds() {
            return;
        }
        for trial in std::mem::take(&mut loaded.trials) {
            let number = loaded.sources.number;
            let verdict = match (trial.watch.chart().is_some(), memory.hold, trial.is_program()) {
                (true, false, false) => None,
                (true, true, _) => Some(dry_run::hold(&self.operator, &trial, files, number).await),
                (_, _, true) | (false, _, false) => {
                    let retyped = retyped.contains(&trial.watch.gvk);
                    self.shadow_run(&trial, files, number, retyped).await
                }
            };
            let Some(verdict) = verdict else { continue };
            let refused = verdict.run.decision == ShadowDecision::Refused;
            self.events.emit(Event::ShadowRun(Arc::new(verdict.run))).await;
            let Some(problem) = verdict.problem else { continue };
            memory.files.loader.hold_back(loaded, &trial, &problem, verdict.held.is_some());
            if refused {
                loaded.errors.push(problem);
            }
            if let Some(held) = verdict.held {
                memory.held.push((held.id.clone(), held.kind.clone()));
                self.events.emit(Event::Held(Arc::new(held))).await;
            }
        }
    }

    /// Tries a program. An API server may judge by the older type for a moment after that has changed.
    async fn shadow_run(
        &self,
        trial: &Trial,
        files: &[String],
        number: u64,
        retyped: bool,
    ) -> Option<dry_run::Verdict> {
        let verdict = dry_run::run(&self.operator, trial, files, number).await?;
        if !retyped || verdict.run.decision != ShadowDecision::Refused {
            return Some(verdict);
        }
        tokio::time::sleep(TYPE_TAKES_HOLD).await;
        dry_run::run(&self.operator, trial, files, number).await
    }

    /// CRDs first, so that the kinds exist when the operator begins to watch them, and new programs are tried
    /// with the types that they were written for; then the sources.
    async fn bring_live(&self, memory: &mut Memory, mut loaded: Loaded, files: Vec<String>) {
        self.write_declarations(memory, &loaded.sources).await;
        let (mut stale, mut retyped) = (Vec::new(), Vec::new());
        if !self.read_only.holds() {
            let since = loaded.sources.saved_at.unwrap_or_else(Instant::now);
            let origin = Origin { sources: loaded.sources.number, files: &files, since };
            let outcome = memory.crds.apply(&self.client, &loaded.sources.definitions, origin).await;
            retyped = outcome.changed_types();
            let told = self.tell(outcome).await;
            self.retry_after(memory, told.again);
            loaded.errors.extend(told.errors);
            stale = told.stale;
        }
        self.try_out(memory, &mut loaded, &files, &retyped).await;
        self.publish_set(memory, loaded, files, stale).await;
    }

    /// Plans the next try where CRDs failed for a moment.
    fn retry_after(&self, memory: &mut Memory, again: bool) {
        memory.retry.plan(again);
        self.awaited.send_replace(again);
    }

    /// CRDs that the server was too busy for are sent once more, without reading files anew.
    async fn retry_crds(&self, memory: &mut Memory) {
        if self.read_only.holds() {
            self.retry_after(memory, false);
            return;
        }
        let sources = Arc::clone(&self.publish.borrow());
        let origin = Origin { sources: sources.number, files: &sources.files, since: Instant::now() };
        let outcome = memory.crds.apply(&self.client, &sources.definitions, origin).await;
        let came = outcome.changed_types();
        let told = self.tell(outcome).await;
        self.retry_after(memory, told.again);
        if came.is_empty() && told.errors.is_empty() {
            return;
        }
        if let Some(mut loaded) = memory.files.loader.renew(&came) {
            loaded.errors.extend(told.errors);
            let files = sources.files.clone();
            self.publish_set(memory, loaded, files, told.stale).await;
        }
        let mut refused = false;
        for kind in &came {
            refused |= memory.files.loader.try_refused_again(kind);
        }
        if refused {
            self.reload(memory, None, false).await;
        }
    }

    /// Passes on what came of a set of CRDs; what is left are the diagnostics.
    async fn tell(&self, mut outcome: Outcome) -> Outcome {
        for event in std::mem::take(&mut outcome.events) {
            self.events.emit(event).await;
        }
        for warning in std::mem::take(&mut outcome.warnings) {
            self.notice(Level::Warn, warning, None).await;
        }
        outcome
    }

    /// Notes that the newest version of `stale` does not serve, whatever the files say.
    async fn publish_set(
        &self,
        memory: &mut Memory,
        mut loaded: Loaded,
        files: Vec<String>,
        stale: Vec<Diagnostic>,
    ) {
        for kind in &mut loaded.kinds {
            let about = |problem: &&Diagnostic| {
                problem.kind.as_ref().is_some_and(|gvk| gvk.group_kind() == kind.gvk.group_kind())
            };
            let healthy = matches!(
                kind.health,
                KindHealth::Serving | KindHealth::Process { .. } | KindHealth::Shown { .. }
            );
            if let Some(problem) = stale.iter().find(about).filter(|_| healthy) {
                kind.health = KindHealth::Stale { problem: problem.clone() };
            }
        }
        let kinds = self.with_plurals(memory, loaded.kinds).await;
        let paths: Vec<PathBuf> = files.iter().map(|file| self.project.root.join(file)).collect();
        let removed =
            tokio::task::spawn_blocking(move || !paths.is_empty() && !paths.iter().any(|path| path.exists()));
        let removed = removed.await.unwrap_or(false);
        let at = Timestamp::now();
        let sources = loaded.sources;
        let changed = SourcesChanged {
            at,
            sources: sources.number,
            files: files.clone(),
            removed,
            kinds,
            diagnostics: sources.diagnostics.clone(),
            samples: sources.samples.clone(),
            affected: loaded.affected,
        };
        self.events.emit(Event::SourcesChanged(Arc::new(changed))).await;
        memory.failed = !loaded.errors.is_empty();
        if !loaded.errors.is_empty() {
            merge_conflict::explain(&mut loaded.errors, |file| small_text(&self.project.root.join(file)));
            self.events
                .emit(Event::ReloadFailed(ReloadFailed {
                    at,
                    files,
                    diagnostics: loaded.errors,
                    build: false,
                    program: String::new(),
                }))
                .await;
        }
        self.publish.send_replace(sources);
    }

    /// The declarations of `opdev` and `opdev:types`, so that editors know the fields of the kinds at once.
    /// A save that changed no type leaves them as they are.
    async fn write_declarations(&self, memory: &mut Memory, sources: &Sources) {
        let crds: Vec<Arc<Value>> = sources.definitions.iter().map(|one| Arc::clone(&one.crd)).collect();
        if memory.declared.as_ref() == Some(&crds) {
            return;
        }
        let (project, declared) = (self.project.clone(), crds.clone());
        let written = tokio::task::spawn_blocking(move || files::write_declarations(&project, &crds)).await;
        match written {
            Ok(Ok(())) => memory.declared = Some(declared),
            Ok(Err(error)) => tracing::warn!("the declarations for editors are not written: {error:#}"),
            Err(_) => {}
        }
    }

    async fn with_plurals(&self, memory: &mut Memory, mut kinds: Vec<KindStatus>) -> Vec<KindStatus> {
        for kind in &mut kinds {
            if let Some((_, plural)) = memory.plurals.iter().find(|(gvk, _)| *gvk == kind.gvk) {
                kind.plural.clone_from(plural);
            } else if let Ok((resource, _)) = opdev_client::resource_of(&self.client, &kind.gvk).await {
                kind.plural.clone_from(&resource.plural);
                memory.plurals.push((kind.gvk.clone(), resource.plural));
            }
        }
        kinds
    }
}
