//! The operator in a run: opdev's own reconcilers in this process, or a program of the project. Started,
//! killed, and known to be settled.

use super::judge::FAIL;
use super::record::Record;
use anyhow::{Context as _, Result};
use kube::Client;
use opdev_cluster::Certificates;
use opdev_controlplane::{ControlPlane, Listening, ObservedToken, User};
use opdev_event::sink::EventSink;
use opdev_event::sink::ReconcileNumbers;
use opdev_event::{Event, QueueChanged, mask};
use opdev_object::meta::{ObjectKey, ObjectRef};
use opdev_operator::manager;
use opdev_operator::manager::{ManagerInput, ManagerRequest};
use opdev_os::child::{GroupEnd, Launch, Printed, printed_and_heard};
use opdev_os::private_folder::{PrivateFolder, STATE};
use opdev_os::sockets::fixed_ports;
use opdev_program::heard::complaints::Complaints;
use opdev_program::heard::under_way::UnderWay;
use opdev_project::program::settings::KUBECONFIG;
use opdev_release::settings::Settings;
use opdev_sources::Sources;
use opdev_trace::instrument::AUTH_PROVIDER;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::{mpsc, oneshot, watch};
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

/// Room for events that nobody has looked at yet.
const EVENTS: usize = 4096;
/// An object whose reconciles fail so often in a row is not waited for any more.
const ATTEMPTS: u32 = 5;
/// The longest time that a program may take to make its first call.
const FIRST_CALL: Duration = Duration::from_secs(60);
/// The longest time for which a program is taken to be at work though nothing changes.
const LONGEST_WINDOW: Duration = Duration::from_secs(5);
/// A reconcile that is under way, but changes nothing for so long, is not waited for.
const LONGEST_RECONCILE: Duration = Duration::from_secs(30);
/// Where an answer is held and nothing has changed for so long, nothing will.
const UNCHANGED: Duration = Duration::from_millis(500);
/// Characters of what a program printed that are told.
const PRINTED: usize = 400;

/// Starts of the operator.
#[derive(Clone)]
pub(super) enum Subject {
    /// Charts and scripts, in this process.
    Own {
        /// What reconciles.
        sources: Arc<Sources>,
        /// How.
        settings: Box<Settings>,
    },
    /// A program.
    Program(Arc<ProgramStart>),
}

/// How a program is started.
#[derive(Clone, Debug)]
pub(super) struct ProgramStart {
    /// Its command; `$(KUBECONFIG)` stands for the path of the kubeconfig.
    pub(super) command: Vec<String>,
    pub(super) dir: PathBuf,
    pub(super) env: BTreeMap<String, String>,
    /// True if it was built with the trace, so that its calls say where they are made.
    pub(super) traced: bool,
    /// True if the trace tells of its reconciles, too.
    pub(super) tells: bool,
    /// The fixed ports on which it listened at the end of its first run; `None` inside where the system does
    /// not say.
    pub(super) ports: OnceLock<Option<BTreeSet<u16>>>,
}

/// A running operator.
pub(super) enum Operator {
    /// Charts and scripts.
    Own(Own),
    /// A program.
    Program(Running),
}

/// The reconcilers of this process.
pub(super) struct Own {
    task: AbortOnDropHandle<anyhow::Result<()>>,
    ask: mpsc::Sender<ManagerRequest>,
    seen: Arc<Mutex<Seen>>,
    news: watch::Receiver<u64>,
    _sources: watch::Sender<Arc<Sources>>,
    _listening: AbortOnDropHandle<()>,
}

/// What the reconcilers have told.
#[derive(Default)]
struct Seen {
    queue: QueueChanged,
    /// Reconciles that failed last: how often in a row, and why.
    failing: BTreeMap<ObjectKey, (u32, String)>,
}

/// A program that runs.
pub(super) struct Running {
    task: AbortOnDropHandle<Result<Printed>>,
    /// How it ended, once it has and somebody has asked: a task says that once.
    ended: Option<String>,
    /// The reconciles that it tells of, where it was built for that.
    told: Option<UnderWay>,
    complaints: Arc<Complaints>,
    start: Arc<ProgramStart>,
    /// The path of its own kubeconfig.
    kubeconfig: String,
    _token: ObservedToken,
    _folder: tempfile::TempDir,
}

fn lock(seen: &Mutex<Seen>) -> MutexGuard<'_, Seen> {
    seen.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Subject {
    /// Starts the operator on a plane.
    ///
    /// # Errors
    /// Where a program cannot be started.
    pub(super) fn start(
        &self,
        plane: &ControlPlane,
        listening: Option<&Listening>,
        record: &Arc<Record>,
    ) -> Result<Operator> {
        match self {
            Subject::Own { sources, settings } => {
                Ok(Operator::Own(Own::start(plane, record, Arc::clone(sources), settings)))
            }
            Subject::Program(start) => {
                let listening = listening.context("the control plane does not listen")?;
                Running::start(start, plane, listening, record).map(Operator::Program)
            }
        }
    }

    /// Returns true if it tells of its reconciles.
    pub(super) fn tells(&self) -> bool {
        matches!(self, Subject::Program(start) if start.tells)
    }

    /// The fixed ports on which a program listens, once that is known.
    pub(super) fn fixed_ports(&self) -> Option<&BTreeSet<u16>> {
        let Subject::Program(start) = self else { return None };
        start.ports.get()?.as_ref()
    }

    /// Returns true if it is a process of its own.
    pub(super) fn is_program(&self) -> bool {
        matches!(self, Subject::Program(_))
    }
}

impl Own {
    fn start(plane: &ControlPlane, record: &Arc<Record>, sources: Arc<Sources>, settings: &Settings) -> Own {
        let service = plane.service().ahead_of_disk().observed(record.next_start());
        let (events, mut incoming) = EventSink::channel(EVENTS);
        let (ask, requests) = mpsc::channel(64);
        let (publish, sources) = watch::channel(sources);
        let seen = Arc::new(Mutex::new(Seen::default()));
        let (tell, news) = watch::channel(0);
        let (listened, judged) = (Arc::clone(&seen), Arc::clone(record));
        record.ruled.starts();
        let listening = tokio::spawn(async move {
            while let Some(event) = incoming.recv().await {
                judged.ruled.event(&event);
                match event {
                    Event::QueueChanged(queue) => lock(&listened).queue = queue,
                    Event::Reconciled(reconcile) => {
                        let key = reconcile.object.key();
                        let mut seen = lock(&listened);
                        match &reconcile.failure {
                            Some(failure) => {
                                let why = failure.chain.join(": ");
                                seen.failing.insert(key, (failure.attempt, why));
                            }
                            None => {
                                seen.failing.remove(&key);
                            }
                        }
                    }
                    _ => continue,
                }
                tell.send_modify(|count| *count += 1);
            }
        });
        let manager = manager::run(ManagerInput {
            client: Client::new(service, "default"),
            sources,
            events,
            numbers: ReconcileNumbers::default(),
            requests,
            settings: settings.clone(),
            shutdown: CancellationToken::new(),
        });
        Own {
            task: AbortOnDropHandle::new(tokio::spawn(manager)),
            ask,
            seen,
            news,
            _sources: publish,
            _listening: AbortOnDropHandle::new(listening),
        }
    }

    /// Waits until the reconcilers have seen these objects and have nothing to do, but for what fails again
    /// and again.
    async fn at_rest(&mut self, objects: Vec<Arc<Value>>) {
        let (reply, answered) = oneshot::channel();
        if self.ask.send(ManagerRequest::CatchUp { objects, reply }).await.is_err() || answered.await.is_err()
        {
            return;
        }
        loop {
            self.news.borrow_and_update();
            {
                let seen = lock(&self.seen);
                let busy = seen.queue.waiting + seen.queue.running > 0;
                let tries = seen.queue.backing_off > 0
                    && !seen.failing.values().any(|(attempt, _)| *attempt >= ATTEMPTS);
                if !busy && !tries {
                    return;
                }
            }
            if self.news.changed().await.is_err() {
                return;
            }
        }
    }

    /// Returns true if all that it waits for is an answer.
    fn is_idle_but_for_one(&self) -> bool {
        let seen = lock(&self.seen);
        seen.queue.waiting == 0 && seen.queue.running <= 1
    }
}

impl Running {
    fn start(
        start: &Arc<ProgramStart>,
        plane: &ControlPlane,
        listening: &Listening,
        record: &Arc<Record>,
    ) -> Result<Running> {
        let token =
            plane.observed_token(User::admin(), record.next_start()).context("no token for the program")?;
        let folder = tempfile::tempdir().context("no folder for a kubeconfig can be made")?;
        let private = PrivateFolder::make(&folder.path().join(STATE))?;
        let provider = start.traced.then_some(AUTH_PROVIDER);
        private.write("kubeconfig", listening.kubeconfig_of(&token, "default", provider).as_bytes())?;
        let judged = Arc::clone(record);
        let judge = move |traced| judged.ruled.traced(traced);
        let told = start.traced.then(|| UnderWay::listen(private.path(), judge)).transpose()?;
        let path = private.path().join("kubeconfig").display().to_string();
        if start.tells {
            record.ruled.starts();
        }
        let command: Vec<String> = start.command.iter().map(|word| word.replace(KUBECONFIG, &path)).collect();
        let named = start.env.iter().map(|(name, value)| (name.clone(), value.replace(KUBECONFIG, &path)));
        let mut env: BTreeMap<String, String> = named.collect();
        env.insert("KUBECONFIG".to_owned(), path.clone());
        // controller-runtime looks for it below the folder for temporary files.
        let temporary = private.folder("tmp")?;
        let certificates = temporary.folder("k8s-webhook-server")?.folder("serving-certs")?;
        Certificates::write(plane, &certificates)?;
        env.entry("TMPDIR".to_owned()).or_insert_with(|| temporary.path().display().to_string());
        let traced = told.iter().flat_map(|told| told.environment(certificates.path()));
        env.extend(traced.map(|(name, value)| (name.to_owned(), value)));
        let dir = start.dir.clone();
        let complaints = Arc::<Complaints>::default();
        let heard = Arc::clone(&complaints);
        let task = tokio::spawn(async move {
            let launch = Launch {
                command: &command,
                dir: Path::new(&dir),
                env: &env,
                without: &["KUBERNETES_SERVICE_HOST", "KUBERNETES_SERVICE_PORT"],
                ends: GroupEnd::AtOnce,
            };
            printed_and_heard(&launch, Duration::from_secs(24 * 60 * 60), &|line| heard.hear(line)).await
        });
        let task = AbortOnDropHandle::new(task);
        Ok(Running {
            task,
            ended: None,
            told,
            complaints,
            start: Arc::clone(start),
            kubeconfig: path,
            _token: token,
            _folder: folder,
        })
    }

    /// Looks on which ports it listens, unless that is known.
    fn note_ports(&self) {
        self.start.ports.get_or_init(|| fixed_ports("KUBECONFIG", &self.kubeconfig));
    }

    /// How it ended, which it has.
    async fn how_it_ended(&mut self) -> Option<String> {
        if self.ended.is_none() {
            let task = &mut self.task;
            self.ended = Some(match task.await {
                Ok(Ok(printed)) => {
                    let how =
                        printed.status.map_or_else(|| "a signal".to_owned(), |status| status.to_string());
                    let text = String::from_utf8_lossy(&printed.text).into_owned();
                    format!("the program has ended by itself: {how}\n{}", tail(&text))
                }
                Ok(Err(error)) => format!("the program cannot be started: {error:#}"),
                Err(_) => "the program has ended".to_owned(),
            });
        }
        self.ended.clone()
    }
}

impl Operator {
    /// Ends it at once, in the middle of whatever it does.
    pub(super) async fn kill(self) {
        match self {
            Operator::Own(own) => {
                own.task.abort();
                let _ = own.task.await;
            }
            Operator::Program(program) if program.ended.is_some() => {}
            Operator::Program(program) => {
                program.note_ports();
                program.task.abort();
                let _ = program.task.await;
            }
        }
    }

    /// How it ended, where it has ended by itself.
    pub(super) async fn ended(&mut self) -> Option<String> {
        match self {
            Operator::Own(own) if own.task.is_finished() => Some("the operator has stopped".to_owned()),
            Operator::Program(program) if program.task.is_finished() => program.how_it_ended().await,
            Operator::Own(_) | Operator::Program(_) => None,
        }
    }

    /// Errors that reconciles end with again and again.
    pub(super) fn failing(&self) -> BTreeSet<String> {
        let words = |of: &str, why: &str| format!("reconciles of {of} {FAIL}: {}", first_line(why));
        match self {
            Operator::Own(own) => {
                let seen = lock(&own.seen);
                let told = seen.failing.iter().filter(|(_, (attempt, _))| *attempt >= ATTEMPTS);
                told.map(|(object, (_, why))| words(&object.to_string(), why)).collect()
            }
            Operator::Program(program) => {
                let told = program.told.iter().flat_map(|told| told.failing(ATTEMPTS));
                told.map(|(of, why)| words(&of, &why)).collect()
            }
        }
    }

    /// Errors that a program has printed again and again since these were asked for last, where it tells of
    /// no reconciles.
    pub(super) fn complaints(&self, plane: &ControlPlane) -> BTreeSet<String> {
        match self {
            Operator::Program(Running { told: None, complaints, .. }) => {
                let secrets = secrets(plane);
                complaints.take(|text| mask::text(text, &secrets))
            }
            Operator::Own(_) | Operator::Program(_) => BTreeSet::new(),
        }
    }

    /// Why it does not come to rest, in words.
    pub(super) fn restless(&self, record: &Record) -> String {
        match self {
            Operator::Own(_) => record.restless(None),
            Operator::Program(program) => record.restless(program.told.as_ref()),
        }
    }

    /// Errors so far count no more: the operator saw what was no longer so, and tries again later.
    pub(super) fn forget_failures(&self) {
        if let Operator::Program(Running { told: Some(told), .. }) = self {
            told.forget_failures();
        }
    }

    /// Waits until the operator and the plane have nothing to do.
    pub(super) async fn at_rest(&mut self, plane: &ControlPlane, record: &Record, window: Duration) {
        match self {
            Operator::Own(own) => loop {
                plane.settled().await;
                let store = &plane.api().registry().store;
                let revision = store.revision();
                own.at_rest(objects(plane)).await;
                if plane.is_settled() && store.revision() == revision {
                    return;
                }
            },
            Operator::Program(program) => quiet(plane, record, window, program.told.as_ref()).await,
        }
    }

    /// Waits until nothing goes on any more but one call whose answer is held, or what cannot be seen.
    pub(super) async fn at_rest_but_for_one(&self, plane: &ControlPlane, record: &Record, window: Duration) {
        let window = match self {
            Operator::Own(_) => Duration::from_millis(30),
            Operator::Program(_) => window,
        };
        let (mut revision, mut unchanged) = (record.moved(), Instant::now());
        loop {
            quiet(plane, record, window, None).await;
            if record.moved() != revision {
                (revision, unchanged) = (record.moved(), Instant::now());
            }
            match self {
                // What others wait for may be this one answer, so that they go on trying.
                Operator::Own(_) if unchanged.elapsed() > UNCHANGED => return,
                Operator::Own(own) if !own.is_idle_but_for_one() => {
                    let mut news = own.news.clone();
                    if tokio::time::timeout(UNCHANGED, news.changed()).await.is_err() {
                        return;
                    }
                }
                Operator::Own(_) | Operator::Program(_) => return,
            }
        }
    }

    /// Lets reconcile all objects once more, as the next period would.
    pub(super) async fn reconcile_all(&self, objects: Vec<ObjectRef>) {
        let Operator::Own(own) = self else { return };
        for object in objects {
            if own.ask.send(ManagerRequest::ReconcileNow { object }).await.is_err() {
                return;
            }
        }
        // They are known to wait once this is answered.
        let (reply, answered) = oneshot::channel();
        if own.ask.send(ManagerRequest::Look { reply }).await.is_ok() {
            let _ = answered.await;
        }
    }
}

/// The cure where two runs want one port.
const SAME_PORT: &str = "\nThis port is fixed: with `--parallel 1` runs come one after the other. Stop whoever else listens \
    there.";

/// Waits for the first call of a program that was started.
///
/// # Errors
/// Where none comes.
pub(super) async fn first_call(operator: &mut Operator, record: &Record) -> Result<()> {
    if matches!(operator, Operator::Own(_)) {
        return Ok(());
    }
    let mut news = record.news();
    news.borrow_and_update();
    let began = Instant::now();
    while began.elapsed() < FIRST_CALL {
        if let Some(why) = operator.ended().await {
            let port = if why.contains("address already in use") { SAME_PORT } else { "" };
            anyhow::bail!("{why}{port}");
        }
        if tokio::time::timeout(Duration::from_millis(100), news.changed()).await.is_ok() {
            return Ok(());
        }
    }
    anyhow::bail!(
        "the program has made no call for {} s: it seems to take no notice of KUBECONFIG",
        FIRST_CALL.as_secs()
    )
}

/// Waits until nothing has happened for a while. What goes on for ever without changing anything is left at
/// that.
async fn quiet(plane: &ControlPlane, record: &Record, window: Duration, told: Option<&UnderWay>) {
    let mut heard = told.map(UnderWay::news);
    let mut news = record.news();
    let (mut revision, mut unchanged) = (record.moved(), Instant::now());
    loop {
        plane.settled().await;
        news.borrow_and_update();
        if let Some(heard) = &mut heard {
            heard.borrow_and_update();
        }
        let busy = || told.is_some_and(UnderWay::is_busy);
        let was_busy = busy();
        record.at_work(was_busy);
        let something = async {
            match &mut heard {
                Some(heard) => tokio::select! {
                    _ = news.changed() => {}
                    _ = heard.changed() => {}
                },
                None => drop(news.changed().await),
            }
        };
        let still = tokio::time::timeout(window, something).await.is_err();
        if (was_busy || busy()) && unchanged.elapsed() < LONGEST_RECONCILE && record.moved() == revision {
            continue;
        }
        if record.moved() != revision {
            (revision, unchanged) = (record.moved(), Instant::now());
            told.inspect(|told| told.changed());
            continue;
        }
        if plane.is_settled() && (still || unchanged.elapsed() > LONGEST_WINDOW.max(window)) {
            return;
        }
    }
}

/// The words of an operator without the values of the Secrets that are there: programs print what they
/// please.
pub(super) fn without_secrets(plane: &ControlPlane, texts: BTreeSet<String>) -> BTreeSet<String> {
    if texts.is_empty() {
        return texts;
    }
    let secrets = secrets(plane);
    texts.iter().map(|text| mask::text(text, &secrets)).collect()
}

/// The values of all Secrets, the longest first: one may stand in another.
fn secrets(plane: &ControlPlane) -> Vec<String> {
    let stored = plane.api().registry().store.list("secrets", None).items;
    let mut secrets: Vec<String> =
        stored.iter().flat_map(|secret| mask::secrets_of_object(&secret.glance())).collect();
    secrets.sort_by_key(|secret| std::cmp::Reverse(secret.len()));
    secrets
}

/// All objects that an operator may have a part in.
pub(super) fn objects(plane: &ControlPlane) -> Vec<Arc<Value>> {
    let registry = plane.api().registry();
    let served = registry.catalog.served();
    let mut tables = BTreeSet::new();
    let mut found = Vec::new();
    for resource in served.resources() {
        let beside = matches!(&*resource.table, "events" | "leases" | "endpointslices")
            || matches!(
                resource.group.as_str(),
                "rbac.authorization.k8s.io" | "flowcontrol.apiserver.k8s.io"
            );
        if !beside && tables.insert(resource.table.clone()) {
            let items = registry.store.list(&resource.table, None).items;
            found.extend(items.iter().map(|stored| stored.glance()));
        }
    }
    found
}

fn tail(text: &str) -> String {
    let start = text.char_indices().rev().nth(PRINTED).map_or(0, |(at, _)| at);
    text[start..].trim().to_owned()
}

fn first_line(text: &str) -> &str {
    text.lines().next().unwrap_or_default()
}
