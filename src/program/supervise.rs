//! The problem: builds take seconds, and saves, crashes, keys and the end of opdev come in the middle of
//! them. Two programs must never write at once, and a broken build must not cost the one that works.
//!
//! The life of the operator's program: built at the start and after each save that matters, swapped once a
//! build has succeeded, started again after a crash, stopped with opdev. One at a time: the old one has ended
//! before the new one starts. While a build is broken, the last working program goes on.

mod breakpoints;
mod debugged;
mod going_back;
mod limits;
mod start;
mod tell;

use super::build::{Builder, Built, Outcome};
use super::crash::{self, Crashes};
use super::lines::Tail;
use super::vet::Vet;
use super::{debugger, gobuild};
use anyhow::{Context as _, Result};
use breakpoints::{BreakpointAt, Breakpoints};
use futures::future::BoxFuture;
use going_back::Before;
use jiff::Timestamp;
pub use limits::Limits;
use opdev_event::sink::EventSink;
use opdev_event::{BuildState, Event, Level, Notice, Place, ProcessExit, ProcessState, words};
use opdev_facts::missing_kinds::MissingKind;
use opdev_facts::observed::Seen;
use opdev_os::child::{Child, status_words};
use opdev_os::small_file::small_text;
use opdev_project::program::files;
use opdev_project::program::files::Tree;
use opdev_project::program::settings::{Build, Plan};
use opdev_trace::instrument::Rung;
use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::process::ExitStatus;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::{Duration, Instant};
use tokio::sync::{mpsc, watch};
use tokio::task::{JoinError, JoinHandle};
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

/// Requests to the supervisor.
#[derive(Debug)]
pub enum Ask {
    /// Files were saved.
    Saved {
        /// The files, absolute.
        files: Vec<PathBuf>,
        /// When the last of them was closed or renamed.
        at: Instant,
    },
    /// Build and start anew, whatever has changed.
    Restart,
    /// Stop until a start is asked for, or a file is saved.
    Stop,
    /// Start what was built last, if nothing runs.
    Start,
}

/// The environment variables of the program beside those of the project.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Environment {
    /// The environment of a program as it is.
    pub plain: BTreeMap<String, String>,
    /// The environment of a program to whose build files were added.
    pub traced: BTreeMap<String, String>,
}

/// One start of the program, told before it happens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Start {
    /// Counted from 1.
    pub number: u64,
    /// When.
    pub at: Timestamp,
    /// The saved files that led to it, relative to the project's root; empty for the first one and after a
    /// crash.
    pub files: Vec<String>,
    /// The trace files that were added to the build.
    pub rung: Option<Rung>,
}

/// Runs before each start, such as to free the lease of the program before.
pub type BeforeStart = Arc<dyn Fn(Arc<Start>) -> BoxFuture<'static, ()> + Send + Sync>;

/// The condition that a program waits for before it may start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Awaited {
    /// The API server is to serve its kinds.
    Definitions,
    /// The user is to allow writes to the cluster.
    Writes,
}

impl fmt::Display for Awaited {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Awaited::Definitions => "its custom resource definitions",
            Awaited::Writes => {
                "this cluster to be unlocked (key U): it is read-only, and a program would write to it"
            }
        })
    }
}

impl std::error::Error for Awaited {}

/// The files that were made ready for a build.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Prepared {
    /// Files of the project that were written, absolute; they lead to no further build.
    pub written: Vec<PathBuf>,
    /// Files of the project in whose place others take part in the build.
    pub replace: BTreeMap<PathBuf, PathBuf>,
}

/// Runs before each build, such as to bring generated files up to date.
pub type BeforeBuild = Arc<dyn Fn() -> BoxFuture<'static, Prepared> + Send + Sync>;

/// Everything that is needed to run a program.
pub struct Supervisor {
    /// The program that is built and started.
    pub plan: Plan,
    /// The project's root.
    pub root: PathBuf,
    /// The project's `.opdev`.
    pub folder: PathBuf,
    /// Where files that are added to builds are kept.
    pub cache: PathBuf,
    /// Where facts go.
    pub events: EventSink,
    /// Where printed lines go that the trace tells, too, or that name an object; `None` where the program is
    /// not traced.
    pub traced: Option<mpsc::Sender<Seen>>,
    /// True if the program tells of its reconciles itself; `None` where nobody listens.
    pub tells: Option<watch::Receiver<bool>>,
    /// Where kinds go that the program misses.
    pub missing: mpsc::Sender<MissingKind>,
    /// Requests.
    pub asked: mpsc::Receiver<Ask>,
    /// The environment, once the program may start; else what it waits for.
    pub ready: watch::Receiver<Result<Arc<Environment>, Awaited>>,
    /// Runs before each build; `None` where nothing is to be made ready.
    pub before_build: Option<BeforeBuild>,
    /// Runs before each start.
    pub before_start: BeforeStart,
    /// Each start.
    pub starts: watch::Sender<Option<Arc<Start>>>,
    /// Counts the program's calls to the API server; `None` where nobody sees them.
    pub calls: Option<Arc<AtomicU64>>,
    /// The times after which the user is told that something takes long.
    pub limits: Limits,
}

/// A program that runs.
struct Running {
    child: Child,
    since: Instant,
    tail: Tail,
    readers: Vec<JoinHandle<()>>,
    /// Why a debugger says that it stands still.
    stops: mpsc::Receiver<String>,
    /// Says that a line of it has named an object.
    names: mpsc::Receiver<()>,
    /// How it has ended under a debugger that goes on.
    exited: Option<ExitStatus>,
    /// When it should have called the API server, and how many calls there were before; `None` where that was
    /// told.
    silent: Option<(Instant, u64)>,
    breakpoints: Breakpoints,
    /// Where it stands in a debugger.
    breakpoint: Option<Place>,
}

/// A build that runs, and when it began.
struct Building {
    /// Dropping it ends the build.
    work: AbortOnDropHandle<(Option<Rung>, Outcome)>,
    began: Instant,
    /// When the user is told that it still runs; never where that has been said.
    told_at: Option<Instant>,
}

/// The state that changes while a program is looked after.
struct Life {
    input: Supervisor,
    builder: Builder,
    tree: Tree,
    module: String,
    running: Option<Running>,
    building: Option<Building>,
    vet: Vet,
    /// The newest good build, until it is started, and after that for a start after a crash.
    built: Option<Built>,
    /// True if `built` waits to be started.
    fresh: bool,
    retry: Option<Instant>,
    crashes: Crashes,
    starts: u64,
    /// Saved since the program that runs was built.
    files: Vec<String>,
    saved_at: Option<Instant>,
    /// The trace files that were added to the program that was started last.
    rung: Option<Rung>,
    /// True if it tells of its reconciles itself.
    tells: bool,
    /// True if its lines name the objects that they are about.
    names_objects: bool,
    /// True if the program makes clients before what was added to it is ready for its kubeconfig.
    plain_clients: bool,
    /// How many calls there had been when the user was told of silence; a program that never calls is told of
    /// once.
    silent_at: Option<u64>,
    state: ProcessState,
    /// The program to go back to where a new one ends at once.
    before: Before,
    /// The build of the program that runs, while a newer one waits to be started.
    started: Option<Built>,
}

/// How long the rest of the output is waited for after the end.
const LAST_WORDS: Duration = Duration::from_secs(1);
/// The words of client-go where a client is made before the added files are ready.
const NO_PROVIDER: &str = "no Auth Provider found for name";
/// Variables of opdev's own environment that would lead a program to another cluster.
const OTHER_CLUSTERS: [&str; 2] = ["KUBERNETES_SERVICE_HOST", "KUBERNETES_SERVICE_PORT"];

impl Supervisor {
    /// The folders in which files of the program may be saved.
    pub fn folders(plan: &Plan) -> Vec<PathBuf> {
        files::folders(&plan.dir)
    }

    /// Builds, starts and looks after the program until `stop` fires; then the program has ended, too.
    ///
    /// # Errors
    /// Where the globs of the settings cannot be read. All else is told by events.
    pub async fn run(self, stop: CancellationToken) -> Result<()> {
        let (dir, globs) = (self.plan.dir.clone(), self.plan.watch.clone());
        let tree = tokio::task::spawn_blocking(move || Tree::read(&dir, &globs))
            .await
            .context("reading the program's files failed")??;
        let go_mod = small_text(&self.plan.dir.join("go.mod")).unwrap_or_default();
        let builder = Builder {
            plan: self.plan.clone(),
            root: self.root.clone(),
            folder: self.folder.clone(),
            cache: self.cache.clone(),
            rung: self.plan.trace.injects().then_some(Rung::Full),
            replace: BTreeMap::new(),
        };
        let first_step = match self.plan.build {
            Build::None => "its start",
            Build::Go { .. } | Build::Command(_) => "its first build",
        };
        let life = Life {
            builder,
            tree,
            module: gobuild::module_path(&go_mod),
            running: None,
            building: None,
            vet: Vet::default(),
            built: None,
            fresh: false,
            retry: None,
            crashes: Crashes::default(),
            starts: 0,
            files: Vec::new(),
            saved_at: None,
            rung: None,
            tells: false,
            names_objects: false,
            plain_clients: false,
            silent_at: None,
            before: Before::default(),
            started: None,
            state: ProcessState::Waiting { why: first_step.to_owned() },
            input: self,
        };
        life.run(stop).await;
        Ok(())
    }
}

/// The next event.
enum Next {
    Stop,
    Asked(Option<Ask>),
    Built(Result<(Option<Rung>, Outcome), JoinError>),
    LongBuild,
    Ended(Option<ExitStatus>),
    Silent,
    NamesObjects,
    Tells,
    Stands(String),
    Breakpoint(Option<BreakpointAt>),
    Vetted(Vec<Notice>),
    Ready(bool),
    Retry,
}

/// Ends at that time, never without one.
async fn wait_until(at: Option<Instant>) {
    match at {
        Some(at) => tokio::time::sleep_until(at.into()).await,
        None => std::future::pending().await,
    }
}

/// Ends once the program tells of its reconciles itself; never where nobody listens, nor a second time.
async fn begins_to_tell(tells: &mut Option<watch::Receiver<bool>>) {
    let told = match tells {
        Some(tells) => tells.wait_for(|tells| *tells).await.is_ok(),
        None => false,
    };
    *tells = None;
    if !told {
        std::future::pending::<()>().await;
    }
}

impl Life {
    async fn run(mut self, stop: CancellationToken) {
        self.build().await;
        let mut ready_lives = true;
        loop {
            let next = {
                let Life { input, running, building, vet, retry, .. } = &mut self;
                let ended = async {
                    match running {
                        Some(Running { child, stops, names, silent, breakpoints, .. }) => tokio::select! {
                            status = child.wait() => Next::Ended(status.ok()),
                            () = wait_until(silent.map(|(at, _)| at)) => Next::Silent,
                            Some(reason) = stops.recv() => Next::Stands(reason),
                            Some(place) = breakpoints.place.recv() => Next::Breakpoint(place),
                            Some(()) = names.recv() => Next::NamesObjects,
                        },
                        None => std::future::pending().await,
                    }
                };
                let built = async {
                    match building {
                        Some(Building { work, told_at, .. }) => tokio::select! {
                            done = work => Next::Built(done),
                            () = wait_until(*told_at) => Next::LongBuild,
                        },
                        None => std::future::pending().await,
                    }
                };
                let again = wait_until(*retry);
                tokio::select! {
                    biased;
                    () = stop.cancelled() => Next::Stop,
                    asked = input.asked.recv() => Next::Asked(asked),
                    next = built => next,
                    next = ended => next,
                    found = vet.found() => Next::Vetted(found),
                    changed = input.ready.changed(), if ready_lives => Next::Ready(changed.is_ok()),
                    () = begins_to_tell(&mut input.tells) => Next::Tells,
                    () = again => Next::Retry,
                }
            };
            match next {
                Next::Stop | Next::Asked(None) => break,
                Next::Asked(Some(ask)) => self.asked(ask).await,
                Next::Built(Ok((rung, outcome))) => self.built(rung, outcome).await,
                Next::Built(Err(error)) => {
                    let rung = self.builder.rung;
                    self.built(rung, Outcome::failed(format!("the build has stopped: {error}"))).await;
                }
                Next::LongBuild => self.tell_long_build().await,
                Next::Ended(status) => self.ended(status).await,
                Next::Silent => self.tell_silent().await,
                Next::NamesObjects => self.names_objects().await,
                Next::Tells => self.tells_itself().await,
                Next::Stands(reason) => self.stands(&reason).await,
                Next::Breakpoint(place) => self.at_breakpoint(place).await,
                Next::Vetted(found) => {
                    for notice in found {
                        self.input.events.emit(Event::Noticed(notice)).await;
                    }
                }
                Next::Ready(lives) => {
                    ready_lives = lives;
                    self.start_fresh().await;
                }
                Next::Retry => {
                    self.retry = None;
                    self.start(Vec::new()).await;
                }
            }
        }
        self.building = None;
        self.vet.end();
        self.stop().await;
    }

    async fn asked(&mut self, ask: Ask) {
        match ask {
            Ask::Saved { files, at } => {
                let changed = self.tree.changed(&files);
                if changed.is_empty() {
                    return;
                }
                for path in changed {
                    let name = path.strip_prefix(&self.input.root).unwrap_or(&path).display().to_string();
                    if !self.files.contains(&name) {
                        self.files.push(name);
                    }
                }
                self.saved_at = Some(at);
            }
            Ask::Restart => {}
            Ask::Stop => return self.stand_still().await,
            Ask::Start => return self.go_on().await,
        }
        self.crashes = Crashes::default();
        self.build().await;
    }

    /// Begins a build; one that runs is killed.
    async fn build(&mut self) {
        if !self.debugger_can_start().await {
            return;
        }
        // A build that is outdated must not see half of what is written now.
        self.building = None;
        self.vet.end();
        if let Some(before_build) = &self.input.before_build {
            let prepared = before_build().await;
            self.tree.changed(&prepared.written);
            self.builder.replace = prepared.replace;
        }
        let mut builder = self.builder.clone();
        let work = async move {
            let outcome = builder.build().await;
            (builder.rung, outcome)
        };
        self.building = Some(Building {
            work: AbortOnDropHandle::new(tokio::spawn(work)),
            began: Instant::now(),
            told_at: Some(Instant::now() + self.input.limits.long_build),
        });
        self.tell_build(BuildState::Building).await;
        self.tell().await;
    }

    async fn built(&mut self, rung: Option<Rung>, outcome: Outcome) {
        let took = self.building.take().map_or(Duration::ZERO, |building| building.began.elapsed());
        self.builder.rung = rung;
        match outcome {
            Outcome::Broken(diagnostics) => {
                self.tell_build(BuildState::Broken { took }).await;
                self.tell_broken(diagnostics).await;
                if self.running.is_none() && self.retry.is_none() && self.built.is_none() {
                    self.state = ProcessState::Waiting { why: "a build that succeeds".to_owned() };
                    self.tell().await;
                }
            }
            Outcome::Built(built) => {
                self.tell_build(BuildState::Built { took }).await;
                if let Some(warning) = &built.warning {
                    self.notice(Level::Warn, warning.clone()).await;
                }
                let last = self.built.replace(built);
                // A program that was never started is not a version to go back to.
                if !self.fresh {
                    self.started = last;
                }
                self.fresh = true;
                self.start_fresh().await;
            }
        }
    }

    /// Starts what was built last, if it waits for that and may start.
    async fn start_fresh(&mut self) {
        if !self.fresh {
            return;
        }
        let why = self.input.ready.borrow().as_ref().err().copied();
        if let Some(why) = why {
            self.state = ProcessState::Waiting { why: why.to_string() };
            return self.tell().await;
        }
        self.fresh = false;
        self.retry = None;
        let running = self.started.take().filter(|_| self.running.is_some());
        let files = std::mem::take(&mut self.files);
        self.stop().await;
        self.keep_last(running, &files);
        if let Some(next) = self.built.as_ref().and_then(|built| built.next.clone())
            && let Err(error) = std::fs::rename(&next, self.builder.binary("operator"))
        {
            return self
                .refused(format!("{} cannot take the place of the binary: {error}", next.display()))
                .await;
        }
        self.vet.begin(&self.builder, &files);
        self.start(files).await;
    }

    async fn stop(&mut self) {
        let Some(Running { child, readers, .. }) = self.running.take() else { return };
        let patience = self.builder.plan.stop_after;
        let (_, killed) = child.stop(patience).await;
        finish(readers).await;
        if killed {
            let words = &self.builder.plan.words;
            let message = format!("{words} did not stop within {} and was killed", words::took(patience));
            self.notice(Level::Warn, message).await;
        }
    }

    /// The program has ended without being asked.
    async fn ended(&mut self, status: Option<ExitStatus>) {
        let Some(Running { child, since, tail, readers, exited, .. }) = self.running.take() else { return };
        let (ran, status) = (since.elapsed(), exited.or(status));
        child.end().await;
        finish(readers).await;
        let clean = status.is_some_and(|status| status.success());
        let refused = |line: &String| line.contains(NO_PROVIDER);
        if self.rung.is_some() && !self.plain_clients && tail.lines().iter().any(refused) {
            // It is started again at once: the user has made no mistake.
            self.plain_clients = true;
            return self.start(Vec::new()).await;
        }
        let mut lines = tail.lines();
        // The debugger's words about the end are not the reason for it.
        lines.retain(|line| exited.is_none() || debugger::stop_reason(line).is_none());
        let reason = if clean {
            crash::Reason::default()
        } else {
            crash::reason(&lines, &self.input.root, &self.module)
        };
        let exit = ProcessExit {
            status: status_words(status),
            ran,
            message: reason.message,
            place: reason.place,
            hint: reason.hint,
        };
        if !clean && self.goes_back(&exit).await {
            return;
        }
        self.state = match clean {
            true => ProcessState::Ended { exit },
            false => match self.crashes.next(ran) {
                Some(after) => {
                    self.retry = Some(Instant::now() + after);
                    ProcessState::Restarting { exit, after }
                }
                None => ProcessState::Failed { exit },
            },
        };
        self.tell().await;
    }

    /// The program could not be started at all.
    async fn refused(&mut self, message: String) {
        let hint = "correct `operator` in opdev.yaml and start opdev again, or press R to try again";
        self.refused_for(message, hint).await;
    }

    async fn refused_for(&mut self, message: String, hint: &str) {
        let exit = ProcessExit {
            status: "no start".to_owned(),
            ran: Duration::ZERO,
            message: Some(message),
            place: None,
            hint: Some(hint.to_owned()),
        };
        self.state = ProcessState::Failed { exit };
        self.tell().await;
    }
}

/// Waits for what the pipes still hold.
async fn finish(readers: Vec<JoinHandle<()>>) {
    for mut reader in readers {
        if tokio::time::timeout(LAST_WORDS, &mut reader).await.is_err() {
            reader.abort();
        }
    }
}
