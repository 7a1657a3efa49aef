//! A whole opdev in this process: the demo project copied to a scratch folder, the embedded control plane,
//! the operator, the file watcher. Tests wait on events, never on time.

use opdev_cluster::Choice;
use opdev_cluster::owner::Owner;
use opdev_event::sink::EventSink;
use opdev_event::{Event, Reconcile, ReloadFailed, Request, RequestId, RequestOutcome, TrustAnswer};

use opdev_inner_loop::Input;
use opdev_inner_loop::bus;
use opdev_project::Project;
use opdev_project::journal::Journal;
use opdev_project::trust;
use opdev_project::trust::{Store, Trust};
use opdev_release::settings::Settings;
use opdev_state::State;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tokio::sync::{Notify, mpsc};
use tokio_util::sync::CancellationToken;

/// How long anything may take before a test gives up.
const PATIENCE: Duration = Duration::from_secs(30);

/// A running opdev.
pub(crate) struct Opdev {
    pub(crate) root: PathBuf,
    _folder: tempfile::TempDir,
    seen: Arc<Seen>,
    ask: mpsc::Sender<(RequestId, Request)>,
    next_id: RequestId,
    shutdown: CancellationToken,
    task: tokio::task::JoinHandle<anyhow::Result<()>>,
    bus: tokio::task::JoinHandle<()>,
}

#[derive(Default)]
struct Seen {
    events: Mutex<Vec<Event>>,
    more: Notify,
}

/// A scratch copy of the demo project.
pub(crate) fn demo_project() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().canonicalize().unwrap().join("demo");
    for part in ["charts", "config", "samples"] {
        copy(&Path::new(env!("CARGO_MANIFEST_DIR")).join(part), &root.join(part));
    }
    (folder, root)
}

pub(crate) fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), target).unwrap();
        }
    }
}

impl Opdev {
    /// Starts on a copy of the demo project.
    pub(crate) async fn start() -> Opdev {
        Self::start_after(|_| {}).await
    }

    /// Starts with polling instead of the kernel's word.
    pub(crate) async fn start_polling() -> Opdev {
        Self::start_with(|_| {}, true).await
    }

    /// Starts on a copy of the demo project that `prepare` has changed.
    pub(crate) async fn start_after(prepare: impl FnOnce(&Path)) -> Opdev {
        Self::start_with(prepare, false).await
    }

    /// Starts on a copy of the demo project against a cluster of the test's own.
    pub(crate) async fn start_against(cluster: Choice, prepare: impl FnOnce(&Path)) -> Opdev {
        Self::start_on(cluster, prepare, false).await
    }

    async fn start_with(prepare: impl FnOnce(&Path), poll: bool) -> Opdev {
        Self::start_on(Choice { embedded: true, ..Choice::default() }, prepare, poll).await
    }

    async fn start_on(cluster: Choice, prepare: impl FnOnce(&Path), poll: bool) -> Opdev {
        let opdev = Self::launch(cluster, prepare, poll);
        opdev
            .wait("the first sources", 0, |event| matches!(event, Event::SourcesChanged(_)).then_some(()))
            .await;
        opdev
    }

    /// Starts on a copy of the demo project; nothing is ready yet.
    pub(crate) fn launched() -> Opdev {
        Self::launch(Choice { embedded: true, ..Choice::default() }, |_| {}, false)
    }

    fn launch(cluster: Choice, prepare: impl FnOnce(&Path), poll: bool) -> Opdev {
        // A test that is not about trust allows what its project wants.
        let allowed = |project: &Project| {
            let trust = Trust::of(&project.root, Store::none());
            trust.decide(TrustAnswer::Once, &trust::wanted(project));
            trust
        };
        Self::launch_trusting(cluster, prepare, poll, allowed)
    }

    /// Starts with what the user has trusted the project with.
    pub(crate) fn launch_trusting(
        cluster: Choice,
        prepare: impl FnOnce(&Path),
        poll: bool,
        trust: impl FnOnce(&Project) -> Trust,
    ) -> Opdev {
        let (folder, root) = demo_project();
        let cluster = Choice { owner: Owner::at(&folder.path().join("user-state")), ..cluster };
        prepare(&root);
        let project = Project::discover(Some(&root), &root).unwrap();
        let state_folder = project.state_folder().unwrap();
        let seen = Arc::new(Seen::default());
        let (events, incoming) = EventSink::channel(bus::CAPACITY);
        let listener = {
            let seen = Arc::clone(&seen);
            Box::new(move |event: &Event| {
                seen.events.lock().unwrap().push(event.clone());
                seen.more.notify_waiters();
            })
        };
        let shutdown = CancellationToken::new();
        let journal = Journal::start(&state_folder).unwrap();
        let bus = bus::start(
            State::default(),
            incoming,
            (Some(journal), Some(listener)),
            (opdev_findings::Findings::default(), None),
            shutdown.clone(),
        );
        let (ask, requests) = mpsc::channel(16);
        let trust = trust(&project);
        let input = Input {
            project,
            trust,
            cluster,
            operator: Settings::default(),
            all_namespaces: None,
            only: Vec::new(),
            poll,
            disturb: Vec::new(),
            disturb_seed: 1,
            debug: None,
            hold: false,
            state_folder,
            log_file: None,
            on_exit: None,
            began: Instant::now(),
            events,
            requests,
            shutdown: shutdown.clone(),
        };
        let task = tokio::spawn(opdev_inner_loop::run(input));
        Opdev { root, _folder: folder, seen, ask, next_id: 0, shutdown, task, bus: bus.task }
    }

    /// How many events there were so far; a mark to wait from.
    pub(crate) fn mark(&self) -> usize {
        self.seen.events.lock().unwrap().len()
    }

    /// Events since a mark.
    pub(crate) fn since(&self, mark: usize) -> Vec<Event> {
        self.seen.events.lock().unwrap()[mark..].to_vec()
    }

    /// The first event since `mark` that `pick` takes.
    pub(crate) async fn wait<T>(&self, what: &str, mark: usize, pick: impl Fn(&Event) -> Option<T>) -> T {
        self.wait_within(PATIENCE, what, mark, pick).await
    }

    /// As `wait`, for what takes long, such as a build of Go.
    pub(crate) async fn wait_within<T>(
        &self,
        patience: Duration,
        what: &str,
        mark: usize,
        pick: impl Fn(&Event) -> Option<T>,
    ) -> T {
        let look = async {
            loop {
                let more = self.seen.more.notified();
                if let Some(found) = self.seen.events.lock().unwrap()[mark..].iter().find_map(&pick) {
                    return found;
                }
                more.await;
            }
        };
        match tokio::time::timeout(patience, look).await {
            Ok(found) => found,
            Err(_) => {
                let events = self.since(mark);
                let lines: Vec<_> = events.iter().filter_map(opdev::print::plain).collect();
                panic!("waited for {what} in vain; since then:\n{}", lines.join("\n"));
            }
        }
    }

    /// Waits until all events so far say what `pick` looks for.
    pub(crate) async fn wait_for_state<T>(&self, what: &str, pick: impl Fn(&[Event]) -> Option<T>) -> T {
        let look = async {
            loop {
                let more = self.seen.more.notified();
                if let Some(found) = pick(&self.seen.events.lock().unwrap()) {
                    return found;
                }
                more.await;
            }
        };
        match tokio::time::timeout(PATIENCE, look).await {
            Ok(found) => found,
            Err(_) => {
                let lines: Vec<_> = self.since(0).iter().filter_map(opdev::print::plain).collect();
                panic!("waited for {what} in vain; so far:\n{}", lines.join("\n"));
            }
        }
    }

    /// The first reconcile since `mark` for an object of this name that `pick` takes.
    pub(crate) async fn reconcile(
        &self,
        what: &str,
        mark: usize,
        pick: impl Fn(&Reconcile) -> bool,
    ) -> Arc<Reconcile> {
        self.wait(what, mark, |event| match event {
            Event::Reconciled(reconcile) if pick(reconcile) => Some(Arc::clone(reconcile)),
            _ => None,
        })
        .await
    }

    /// The first save since `mark` that was broken or refused.
    pub(crate) async fn reload_failure(&self, what: &str, mark: usize) -> ReloadFailed {
        self.wait(what, mark, |event| match event {
            Event::ReloadFailed(failed) => Some(failed.clone()),
            _ => None,
        })
        .await
    }

    /// Asks and waits for the answer.
    pub(crate) async fn ask(&mut self, request: impl Into<Request>) -> RequestOutcome {
        let mark = self.mark();
        let id = self.begin(request).await;
        self.outcome(id, mark).await
    }

    /// Asks; the answer is the number of the request.
    pub(crate) async fn begin(&mut self, request: impl Into<Request>) -> RequestId {
        self.next_id += 1;
        self.ask.send((self.next_id, request.into())).await.unwrap();
        self.next_id
    }

    /// Waits for the answer to a request.
    pub(crate) async fn outcome(&self, id: RequestId, mark: usize) -> RequestOutcome {
        self.wait("an answer", mark, |event| match event {
            Event::RequestFinished(finished) if finished.id == id => Some(finished.outcome.clone()),
            _ => None,
        })
        .await
    }

    /// Changes a file as editors do: a new file beside it, then a rename.
    pub(crate) fn edit(&self, path: &str, change: impl FnOnce(String) -> String) {
        let path = self.root.join(path);
        let text = change(fs::read_to_string(&path).unwrap());
        let beside = path.with_extension("new");
        fs::write(&beside, text).unwrap();
        fs::rename(beside, path).unwrap();
    }

    /// A kubeconfig for real clients.
    pub(crate) fn kubeconfig(&self) -> PathBuf {
        self.root.join(".opdev/kubeconfig")
    }

    /// Waits until it has ended by itself.
    pub(crate) async fn ended(self) {
        tokio::time::timeout(PATIENCE, self.task).await.expect("opdev does not end").unwrap().unwrap();
    }

    /// Stops in good order and moves the project, with all that opdev keeps in it, to another folder.
    pub(crate) async fn stop_keeping(self, to: &Path) {
        let root = self.root.clone();
        self.shutdown.cancel();
        tokio::time::timeout(PATIENCE, self.task).await.expect("opdev does not stop").unwrap().unwrap();
        drop(self.ask);
        tokio::time::timeout(PATIENCE, self.bus).await.expect("the bus does not end").unwrap();
        copy(&root, to);
    }

    /// Stops in good order.
    pub(crate) async fn stop(self) {
        self.shutdown.cancel();
        tokio::time::timeout(PATIENCE, self.task).await.expect("opdev does not stop").unwrap().unwrap();
        drop(self.ask);
        tokio::time::timeout(PATIENCE, self.bus).await.expect("the bus does not end").unwrap();
    }
}
