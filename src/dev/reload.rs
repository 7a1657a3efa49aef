//! From a burst of file events to a new set of sources: read once, load, bring CRDs to the API server, publish.
//! One load at a time, the newest files win, and a broken edit never takes away what serves.

use super::crds::Crds;
use super::files;
use super::project::Project;
use super::requests::Ask;
use super::watcher::{self, Batch, Watcher};
use crate::event::{Event, KindStatus, Level, Notice, ReloadFailed, SourcesChanged};
use crate::sources::Sources;
use crate::sources::load::{Loaded, Loader, Options};
use crate::tap::EventSink;
use anyhow::{Context as _, Result};
use jiff::Timestamp;
use kube::Client;
use opdev_object::meta::Gvk;
use std::collections::BTreeSet;
use std::panic::AssertUnwindSafe;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;
use tokio::sync::{mpsc, watch};
use tokio_util::sync::CancellationToken;

/// Everything a reload needs.
pub(super) struct Reloader {
    pub(super) project: Project,
    /// What the settings say about kinds.
    pub(super) options: Arc<Options>,
    pub(super) client: Client,
    pub(super) events: EventSink,
    /// Whether CRDs may be written.
    pub(super) read_only: bool,
    /// Where the newest set goes.
    pub(super) publish: watch::Sender<Arc<Sources>>,
    /// What the user asks for.
    pub(super) asked: mpsc::Receiver<Ask>,
    /// Whether to poll rather than listen.
    pub(super) poll: bool,
}

/// What changes from load to load.
struct Memory {
    loader: Loader,
    crds: Crds,
    plurals: Vec<(Gvk, String)>,
}

impl Reloader {
    /// Loads and publishes the first set, then follows the files until `shutdown`.
    pub(super) async fn run(
        mut self,
        first: (Loader, Option<Loaded>),
        shutdown: CancellationToken,
    ) -> Result<()> {
        let (loader, loaded) = first;
        let mut memory = Memory { loader, crds: Crds::default(), plurals: Vec::new() };
        if let Some(loaded) = loaded {
            self.bring_live(&mut memory, loaded, Vec::new()).await;
        }
        let mut watcher = self.start_watcher().await?;
        self.rewatch(&mut watcher, false).await;
        // What was saved between the first read and the first watch.
        self.reload(&mut memory, None, false).await;
        loop {
            let (batch, forced) = tokio::select! {
                () = shutdown.cancelled() => return Ok(()),
                batch = watcher.next(&self.project.root) => (Some(batch), false),
                asked = self.asked.recv() => match asked {
                    Some(Ask::Reload) => (None, true),
                    Some(Ask::Answer { id, apply, reply }) => {
                        let answer = self.answer_held(&mut memory, &id, apply).await;
                        // Whoever asked may be gone.
                        let _ = reply.send(answer);
                        continue;
                    }
                    None => return Ok(()),
                },
            };
            let renew = batch.as_ref().is_some_and(|batch| self.moved(batch));
            if renew {
                self.rewatch(&mut watcher, true).await;
            }
            self.reload(&mut memory, batch, forced).await;
            self.rewatch(&mut watcher, false).await;
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

    /// Watches what the newest sources are made of; `renew` also takes folders anew that were deleted and came back.
    async fn rewatch(&self, watcher: &mut Watcher, renew: bool) {
        let set = files::watch_set(&self.project, &self.publish.borrow());
        let Err(error) = watcher.watch(&set, renew) else { return };
        let hint = watcher::limit_hint(&error);
        self.notice(Level::Error, format!("not every file can be watched: {error}"), hint).await;
        if !watcher.polls
            && let Ok(mut polling) = Watcher::start(self.project.settings.reload.quiet(), true)
            && polling.watch(&set, true).is_ok()
        {
            *watcher = polling;
            self.notice(Level::Warn, "files are polled twice a second from now on".to_owned(), None).await;
        }
    }

    async fn notice(&self, level: Level, message: String, hint: Option<String>) {
        let notice = Notice { at: Timestamp::now(), level, message, hint, object: None };
        self.events.emit(Event::Noticed(notice)).await;
    }

    /// Whether a watched folder itself was touched.
    fn moved(&self, batch: &Batch) -> bool {
        let set = files::watch_set(&self.project, &self.publish.borrow());
        let watched: BTreeSet<&PathBuf> = set.deep.iter().chain(&set.flat).collect();
        let links: Vec<PathBuf> =
            self.publish.borrow().watches.iter().map(|watch| self.project.root.join(watch.path())).collect();
        batch.paths.iter().any(|path| {
            watched.iter().any(|at| at.starts_with(path)) || links.contains(path) || path.is_dir()
        })
    }

    async fn reload(&self, memory: &mut Memory, batch: Option<Batch>, forced: bool) {
        let saved_at = batch.as_ref().map(|batch| batch.saved_at).or_else(|| forced.then(Instant::now));
        let changed = batch.map(|batch| self.names(&batch)).unwrap_or_default();
        let loader = std::mem::take(&mut memory.loader);
        let project = self.project.clone();
        let names = changed.clone();
        let options = Arc::clone(&self.options);
        let work =
            tokio::task::spawn_blocking(move || load(&project, &options, loader, &names, saved_at, forced));
        match work.await {
            Ok((loader, loaded)) => {
                memory.loader = loader;
                if let Some(loaded) = loaded {
                    self.bring_live(memory, loaded, changed).await;
                }
            }
            Err(error) => {
                let message = format!("reading the project failed: {error}");
                self.notice(
                    Level::Error,
                    message,
                    Some("this is a bug in opdev; the log has the details".to_owned()),
                )
                .await;
            }
        }
    }

    /// The user's word about a held change.
    async fn answer_held(&self, _memory: &mut Memory, id: &str, _apply: bool) -> Result<String, String> {
        std::future::ready(Err(format!("{id} is not held any more"))).await
    }

    /// CRDs first, then the sources, so that the kinds exist when the operator begins to watch them.
    async fn bring_live(&self, memory: &mut Memory, loaded: Loaded, files: Vec<String>) {
        if !self.read_only {
            let (applied, failed) = memory.crds.apply(&self.client, &loaded.sources.definitions).await;
            for crd in applied {
                tracing::info!("CustomResourceDefinition {} applied", crd.name);
                for warning in crd.warnings {
                    self.notice(
                        Level::Warn,
                        format!("CustomResourceDefinition {}: {warning}", crd.name),
                        None,
                    )
                    .await;
                }
            }
            for (name, error) in failed {
                let hint = Some(
                    "correct the CRD and save it; objects of this kind are not touched until then".to_owned(),
                );
                self.notice(Level::Error, format!("CustomResourceDefinition {name}: {error:#}"), hint).await;
            }
        }
        let kinds = self.with_plurals(memory, loaded.kinds).await;
        let at = Timestamp::now();
        let sources = loaded.sources;
        let changed = SourcesChanged {
            at,
            sources: sources.number,
            files: files.clone(),
            kinds,
            diagnostics: sources.diagnostics.clone(),
            samples: sources.samples.clone(),
            affected: loaded.affected,
        };
        self.events.emit(Event::SourcesChanged(Arc::new(changed))).await;
        if !loaded.errors.is_empty() {
            self.events
                .emit(Event::ReloadFailed(ReloadFailed { at, files, diagnostics: loaded.errors }))
                .await;
        }
        self.publish.send_replace(sources);
    }

    async fn with_plurals(&self, memory: &mut Memory, mut kinds: Vec<KindStatus>) -> Vec<KindStatus> {
        for kind in &mut kinds {
            if let Some((_, plural)) = memory.plurals.iter().find(|(gvk, _)| *gvk == kind.gvk) {
                kind.plural.clone_from(plural);
            } else if let Ok((resource, _)) = super::requests::resource_of(&self.client, &kind.gvk).await {
                kind.plural.clone_from(&resource.plural);
                memory.plurals.push((kind.gvk.clone(), resource.plural));
            }
        }
        kinds
    }

    /// The files of a batch as they stand in events; those of a linked chart under the link's name.
    fn names(&self, batch: &Batch) -> Vec<String> {
        let root = &self.project.root;
        let sources = self.publish.borrow();
        let links: Vec<(PathBuf, &str)> = sources
            .watches
            .iter()
            .filter_map(|watch| Some((root.join(watch.path()).canonicalize().ok()?, watch.path())))
            .collect();
        let name = |path: &PathBuf| {
            for (real, link) in &links {
                if let Ok(rest) = path.strip_prefix(real) {
                    return Path::new(link).join(rest).display().to_string();
                }
            }
            self.project.relative(path)
        };
        // Files that an editor wrote beside and renamed are gone; deleted ones are named where nothing else is.
        let (there, gone): (Vec<_>, Vec<_>) =
            batch.paths.iter().filter(|path| !path.is_dir()).partition(|path| path.exists());
        let files = if there.is_empty() { gone } else { there };
        files.into_iter().map(name).filter(|name| !name.is_empty()).collect()
    }
}

/// Reads every file of the project once and loads a set of sources from them.
pub(super) fn load(
    project: &Project,
    options: &Arc<Options>,
    mut loader: Loader,
    changed: &[String],
    saved_at: Option<Instant>,
    forced: bool,
) -> (Loader, Option<Loaded>) {
    // A bug in here must cost neither the last good charts nor the count of sources.
    let loading = || {
        let files = files::read(project, &loader, options);
        loader.load(&files, changed, saved_at, forced)
    };
    let loaded = std::panic::catch_unwind(AssertUnwindSafe(loading)).unwrap_or_default();
    (loader, loaded)
}
