//! The problem: one save is many events. Editors rename, truncate and write in pieces, git replaces a hundred
//! files under a lock, and a kernel may drop events. A load that comes too early reads half a file; one that
//! waits too long is felt by the user.
//!
//! Listens to the file system and says when it has come to rest. Reads no file and judges no change:
//! `reload` compares contents. Survives how editors save: rename-save, chunked writes, delete and recreate.

mod quiet;

use anyhow::Result;
use notify::event::{AccessKind, AccessMode, EventKind, MetadataKind, ModifyKind};
use notify::{Config, PollWatcher, RecommendedWatcher, RecursiveMode, Watcher as _};
use opdev_object::names::is_editors;
use quiet::Quiet;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::Notify;

/// Folders and files to listen to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WatchSet {
    /// Folders with everything below them.
    pub deep: BTreeSet<PathBuf>,
    /// Folders without what is below them.
    pub flat: BTreeSet<PathBuf>,
}

/// Changes between two moments of rest.
#[derive(Clone, Debug)]
pub struct Batch {
    /// When the writer closed or renamed the last file.
    pub saved_at: Instant,
    /// The paths that were named.
    pub paths: BTreeSet<PathBuf>,
}

/// The oldest write that a poll may have come upon: it looks twice a second.
const POLLED: Duration = Duration::from_secs(2);

impl Batch {
    /// Whoever polls sees a save late: the files tell when they were written. A time that is no time of a
    /// save, such as that of a copy that keeps its date, is not believed.
    fn dated_by_its_files(self) -> Batch {
        let written = |path: &PathBuf| path.metadata().ok()?.modified().ok()?.elapsed().ok();
        let age = self.paths.iter().filter_map(written).min().filter(|age| *age <= POLLED);
        let saved_at = age.and_then(|age| Instant::now().checked_sub(age)).unwrap_or(self.saved_at);
        Batch { saved_at: saved_at.min(self.saved_at), ..self }
    }
}

/// How often a folder that is gone is looked for.
const LOOK: Duration = Duration::from_millis(500);

/// A running watcher.
pub struct Watcher {
    inner: Box<dyn notify::Watcher + Send>,
    watched: WatchSet,
    pending: Arc<Pending>,
    quiet: Duration,
    /// Folders of the set that are not there, and whose appearance nobody tells.
    absent: BTreeSet<PathBuf>,
    /// True if it polls rather than listens.
    pub polls: bool,
}

#[derive(Default)]
struct Pending {
    state: Mutex<Quiet>,
    woken: Notify,
}

impl Watcher {
    /// Starts one that listens to the kernel, or with `poll` looks at the files itself.
    ///
    /// # Errors
    /// Where the kernel refuses; see `limit_hint` for the usual reason.
    pub fn start(quiet: Duration, poll: bool) -> Result<Watcher> {
        let pending = Arc::new(Pending::default());
        let sink = Arc::clone(&pending);
        let on_event = move |event: notify::Result<notify::Event>| sink.take(event);
        // A link may lead anywhere, also to all there is. Whoever makes a set says which links it follows.
        let config = Config::default().with_follow_symlinks(false);
        let inner: Box<dyn notify::Watcher + Send> = if poll {
            let config = config.with_poll_interval(Duration::from_millis(500)).with_compare_contents(true);
            Box::new(PollWatcher::new(on_event, config)?)
        } else {
            Box::new(RecommendedWatcher::new(on_event, config)?)
        };
        Ok(Watcher {
            inner,
            watched: WatchSet::default(),
            pending,
            quiet,
            absent: BTreeSet::new(),
            polls: poll,
        })
    }

    /// Listens to `set` from now on; the answer is whether that is another one than before. Folders that do
    /// not exist are left out; their parents tell when they appear.
    ///
    /// # Errors
    /// The first folder the kernel refuses.
    pub fn watch(&mut self, set: &WatchSet, renew: bool) -> Result<bool> {
        if *set == self.watched && !renew {
            return Ok(false);
        }
        for path in self.watched.deep.union(&self.watched.flat) {
            // A folder that was deleted has lost its watch already.
            let _ = self.inner.unwatch(path);
        }
        self.watched = set.clone();
        for path in set.deep.iter().filter(|path| path.is_dir()) {
            self.inner.watch(path, RecursiveMode::Recursive)?;
        }
        for path in set.flat.iter().filter(|path| path.is_dir() && !covered(path, &set.deep)) {
            self.inner.watch(path, RecursiveMode::NonRecursive)?;
        }
        self.absent = untold(set);
        Ok(true)
    }

    /// The content that was read last is broken, or it is not. A text that is being typed is saved again
    /// soon: the saves that follow within a moment wait for a pause.
    pub fn is_broken(&self, broken: bool) {
        self.pending.lock().is_broken(broken);
    }

    /// The next batch, once nothing has happened for the quiet time and no `git` command holds its lock.
    pub fn next(&self, root: &Path) -> impl Future<Output = Batch> + Send + 'static {
        let (pending, quiet, root) = (Arc::clone(&self.pending), self.quiet, root.to_owned());
        let (polls, absent) = (self.polls, self.absent.clone());
        async move {
            loop {
                let due = pending.lock().due(quiet);
                match due {
                    Some(at) if at <= Instant::now() => {
                        if git_is_busy(&root).await {
                            tokio::time::sleep(quiet).await;
                            continue;
                        }
                        if let Some(batch) = pending.lock().take() {
                            return if polls { batch.dated_by_its_files() } else { batch };
                        }
                    }
                    // Another event may bring the deadline forward: a close ends the wait for an open file.
                    Some(at) => tokio::select! {
                        () = tokio::time::sleep_until(at.into()) => {}
                        () = pending.woken.notified() => {}
                    },
                    None if absent.is_empty() => pending.woken.notified().await,
                    // The whole project was moved away, for example: nobody tells when it is back.
                    None => tokio::select! {
                        () = pending.woken.notified() => {}
                        () = tokio::time::sleep(LOOK) => {
                            let back = there(&absent).await;
                            pending.lock().saw(back.into_iter(), true, Instant::now());
                        }
                    },
                }
            }
        }
    }
}

impl Pending {
    fn lock(&self) -> std::sync::MutexGuard<'_, Quiet> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn take(&self, event: notify::Result<notify::Event>) {
        let now = Instant::now();
        match event {
            Ok(event) => {
                let Some(done) = writer_is_done(&event.kind) else { return };
                let paths = event.paths.into_iter().filter(|path| !is_noise(path));
                if !self.lock().saw(paths, done, now) {
                    return;
                }
            }
            // The queue overflowed or a watch broke: look at everything again.
            Err(_) => {
                self.lock().saw_all(now);
            }
        }
        self.woken.notify_one();
    }
}

/// `None` for events that change nothing; else whether the writer is done with the file.
fn writer_is_done(kind: &EventKind) -> Option<bool> {
    match kind {
        EventKind::Access(AccessKind::Close(AccessMode::Write)) => Some(true),
        EventKind::Access(_) => None,
        EventKind::Modify(ModifyKind::Data(_)) | EventKind::Create(_) => Some(false),
        // How polling tells that a file was written.
        EventKind::Modify(ModifyKind::Metadata(MetadataKind::WriteTime)) => Some(true),
        EventKind::Modify(ModifyKind::Metadata(_)) => None,
        EventKind::Modify(_) | EventKind::Remove(_) | EventKind::Any | EventKind::Other => Some(true),
    }
}

/// Version control, our own folder, and what editors leave beside a file.
fn is_noise(path: &Path) -> bool {
    let hidden = path.components().any(|part| part.as_os_str() == ".git" || part.as_os_str() == ".opdev");
    hidden || path.file_name().is_some_and(|name| is_editors(&name.to_string_lossy()))
}

/// Missing folders whose parent nobody listens to.
fn untold(set: &WatchSet) -> BTreeSet<PathBuf> {
    let told = |parent: &Path| parent.is_dir() && (set.flat.contains(parent) || covered(parent, &set.deep));
    let missing = set.deep.union(&set.flat).filter(|path| !path.is_dir());
    missing.filter(|path| !path.parent().is_some_and(told)).cloned().collect()
}

fn covered(path: &Path, deep: &BTreeSet<PathBuf>) -> bool {
    deep.iter().any(|folder| path.starts_with(folder))
}

async fn git_is_busy(root: &Path) -> bool {
    let lock = tokio::fs::metadata(root.join(".git/index.lock")).await;
    // A lock that a crashed git left behind must not stop reloading for good.
    lock.and_then(|data| data.modified())
        .ok()
        .and_then(|at| at.elapsed().ok())
        .is_some_and(|age| age < Duration::from_secs(10))
}

/// Those of some folders that are there.
async fn there(folders: &BTreeSet<PathBuf>) -> Vec<PathBuf> {
    let mut there = Vec::new();
    for path in folders {
        if tokio::fs::metadata(path).await.is_ok_and(|data| data.is_dir()) {
            there.push(path.clone());
        }
    }
    there
}

/// The hint for a user whose kernel refuses to watch more files.
pub fn limit_hint(error: &anyhow::Error) -> Option<String> {
    let notify = error.downcast_ref::<notify::Error>()?;
    let full = match &notify.kind {
        notify::ErrorKind::MaxFilesWatch => true,
        notify::ErrorKind::Io(error) => matches!(error.raw_os_error(), Some(24 | 28)),
        _ => false,
    };
    full.then(|| {
        "the kernel's limit of watched files is reached: raise fs.inotify.max_user_watches and \
         fs.inotify.max_user_instances (sysctl), or start opdev with --poll"
            .to_owned()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::SystemTime;

    #[tokio::test]
    async fn a_folder_that_was_moved_away_is_watched_again_once_it_is_back() {
        let around = tempfile::tempdir().unwrap();
        let around = around.path().canonicalize().unwrap();
        let (root, away) = (around.join("project"), around.join("elsewhere"));
        std::fs::create_dir_all(root.join("charts")).unwrap();
        let set =
            WatchSet { deep: BTreeSet::from([root.join("charts")]), flat: BTreeSet::from([root.clone()]) };
        for poll in [false, true] {
            let mut watcher = Watcher::start(Duration::from_millis(20), poll).unwrap();
            watcher.watch(&set, false).unwrap();
            let within = |next| tokio::time::timeout(Duration::from_secs(60), next);
            std::fs::rename(&root, &away).unwrap();
            if !poll {
                within(watcher.next(&root)).await.expect("the move is seen");
            }
            watcher.watch(&set, true).unwrap();
            std::fs::rename(&away, &root).unwrap();
            while !within(watcher.next(&root)).await.expect("it is back").paths.contains(&root) {}
            watcher.watch(&set, true).unwrap();
            std::fs::write(root.join("charts/values.yaml"), format!("polls: {poll}\n")).unwrap();
            let file = root.join("charts/values.yaml");
            while !within(watcher.next(&root)).await.expect("the save is seen").paths.contains(&file) {}
        }
    }

    #[test]
    fn a_polled_save_is_dated_by_its_files_and_an_old_date_is_not_believed() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let dated = |age: Duration| {
            file.as_file().set_modified(SystemTime::now().checked_sub(age).unwrap()).unwrap();
            let saved_at = Instant::now();
            let paths = BTreeSet::from([file.path().to_owned(), PathBuf::from("/nowhere/at/all")]);
            saved_at - Batch { saved_at, paths }.dated_by_its_files().saved_at
        };
        let age = dated(Duration::from_millis(700));
        assert!(age >= Duration::from_millis(650) && age <= POLLED, "{age:?}");
        assert_eq!(dated(Duration::from_secs(3600)), Duration::ZERO);
    }
}
