//! A traced process from its socket and its calls to events: the token for the embedded control plane, the
//! copies of its calls, and the task that makes reconciles of them. Never decides what belongs to what:
//! `program/trace` does.

use anyhow::{Context as _, Result};
use jiff::Timestamp;
use opdev_client::forbidden::MissingRight;
use opdev_controlplane::{
    Asked, ControlPlane, Delivery, Exchange, Listening, Observation, ObservedToken, Observer, Relay,
    Treatment, Upstream, User,
};
use opdev_event::sink::EventSink;
use opdev_event::sink::ReconcileSink;
use opdev_event::{Diagnostic, Event, FaultRule, Level, Notice, Reconcile};
use opdev_facts::observed::{ObservedCall, ObservedEvent, Seen};
use opdev_facts::record::{ReconcileNow, Traced};
use opdev_object::meta;
use opdev_os::small_file::small_text;
use opdev_sources::chart_problems;
use opdev_trace::Attribution;
use opdev_trace::instrument::{AUTH_PROVIDER, Listener};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tokio::sync::mpsc::{self, Receiver, Sender};
use tokio::sync::{broadcast, watch};
use tokio::task::JoinHandle;
use tokio::time::Instant;

use super::audit::Audit;
use super::faults::Faults;
use super::observation_queue::ObservationQueue;
use opdev_cluster::Connection;
use opdev_cluster::identity::Identity;

/// HTTP status of a refusal.
const FORBIDDEN: u16 = 403;

/// Printed lines that wait for the task.
const ROOM: usize = 4096;

/// Reconciles that wait for whoever follows them.
const PASSES: usize = 256;

/// A process that is traced; its reconciles become events until this is dropped.
#[derive(Debug)]
pub struct Tracing {
    listener: Listener,
    /// The program's access, for as long as this lives.
    way: Way,
    starts: Sender<SavedStart>,
    printed: Sender<Seen>,
    faults: Arc<Faults>,
    calls: Arc<AtomicU64>,
    reconciles: broadcast::Sender<Arc<Reconcile>>,
    root: Arc<OnceLock<PathBuf>>,
    task: JoinHandle<()>,
}

/// The way the calls of a program come by.
#[derive(Debug)]
enum Way {
    /// Into the embedded control plane, with this token.
    Plane(ObservedToken),
    /// To a cluster, through this socket.
    Relay(Relay),
}

/// The files whose edit leads to a start, and the number of the sources that serve then.
type SavedStart = (Vec<String>, u64);

/// Traces a program of this machine; with it the kubeconfigs of a program without and with added files. The
/// embedded control plane takes the program for its admin, or for the ServiceAccount that it acts as. To a
/// cluster its calls go with the credentials of the kubeconfig, which impersonate that account, through a
/// socket on loopback with a token of its own. `None` where the control plane does not listen.
///
/// # Errors
/// Where a socket cannot be made.
pub(crate) async fn start(
    (connection, audit): (&Connection, Option<&Audit>),
    socket: &Path,
    acting: Option<&Identity>,
    sink: ReconcileSink,
) -> Result<Option<(Tracing, [String; 2])>> {
    let (tracing, listening) = match connection.plane() {
        Some((_, None)) => return Ok(None),
        Some((plane, Some(listening))) => {
            let tracing = match acting {
                Some(identity) => Tracing::start_as(socket, plane, identity, sink),
                None => Tracing::audited(socket, plane, audit.cloned(), sink),
            };
            (tracing?, Some(listening))
        }
        None => (Tracing::relayed(socket, connection.way_of(acting), sink).await?, None),
    };
    let kubeconfig = |added| tracing.kubeconfig(listening, &connection.namespace, added);
    let (Some(plain), Some(added)) = (kubeconfig(false), kubeconfig(true)) else { return Ok(None) };
    Ok(Some((tracing, [plain, added])))
}

impl Tracing {
    /// Listens on `socket` and lets whoever has the token of this into the embedded control plane as `user`.
    ///
    /// # Errors
    /// Where the socket cannot be made, or the system has no randomness for a token.
    pub fn start(socket: &Path, plane: &ControlPlane, user: User, sink: ReconcileSink) -> Result<Tracing> {
        let (heard, copies) = TraceInput::listen(socket, true)?;
        Self::admitted(heard, copies, plane, user, sink)
    }

    /// Listens for the admin; `audit` sees the calls, too.
    fn audited(
        socket: &Path,
        plane: &ControlPlane,
        audit: Option<Audit>,
        sink: ReconcileSink,
    ) -> Result<Tracing> {
        let (heard, copies) = TraceInput::listen(socket, true)?;
        Self::admitted(heard, CallCopies { audit, ..copies }, plane, User::admin(), sink)
    }

    /// Listens for this ServiceAccount. Rights that it lacks are told to the part that keeps its roles.
    ///
    /// # Errors
    /// As of `start`.
    pub(crate) fn start_as(
        socket: &Path,
        plane: &ControlPlane,
        identity: &Identity,
        sink: ReconcileSink,
    ) -> Result<Tracing> {
        let (heard, copies) = TraceInput::listen(socket, true)?;
        let copies = CallCopies { refused: Some(identity.refused.clone()), ..copies };
        Self::admitted(heard, copies, plane, identity.user.clone(), sink)
    }

    fn admitted(
        heard: TraceInput,
        copies: CallCopies,
        plane: &ControlPlane,
        user: User,
        sink: ReconcileSink,
    ) -> Result<Tracing> {
        let token = plane.observed_token(user, Arc::new(copies)).context("no token for the operator")?;
        Ok(Self::begin(heard, Way::Plane(token), sink))
    }

    /// Listens on `socket` and relays the calls of whoever has the token of this to `upstream`.
    ///
    /// # Errors
    /// Where a socket cannot be made, or the system has no randomness for a token.
    pub async fn relayed(socket: &Path, upstream: Upstream, sink: ReconcileSink) -> Result<Tracing> {
        let (heard, copies) = TraceInput::listen(socket, false)?;
        let relay = Relay::listen(upstream, User::anonymous(), Arc::new(copies));
        let relay = relay.await.context("no socket for the operator")?;
        Ok(Self::begin(heard, Way::Relay(relay), sink))
    }

    fn begin(heard: TraceInput, way: Way, sink: ReconcileSink) -> Tracing {
        let TraceInput { listener, records, seen, dropped, faults, calls } = heard;
        let (starts, starting) = mpsc::channel(16);
        let (printed, lines) = mpsc::channel(ROOM);
        let reconciles = broadcast::channel(PASSES).0;
        let (told, disturbed) = (reconciles.clone(), faults.active());
        let root = Arc::new(OnceLock::new());
        let shown = Arc::clone(&root);
        let from = Sources { records, seen, starting, lines, dropped, told, disturbed, root: shown };
        let task = tokio::spawn(from.run(Attribution::new(sink.numbers), sink.events));
        Tracing { listener, way, starts, printed, faults, calls, reconciles, root, task }
    }

    /// From now on a panic has the lines of the file below `root` that it was raised in.
    pub(crate) fn show_code_below(&self, root: &Path) {
        // Whoever has said it before has said the same.
        let _ = self.root.set(root.to_owned());
    }

    /// A kubeconfig for the process: a credential. `injected` says whether files were added to its build. On
    /// the embedded control plane it leads to where that listens, and there is none where it does not.
    pub fn kubeconfig(
        &self,
        listening: Option<&Listening>,
        namespace: &str,
        injected: bool,
    ) -> Option<String> {
        let provider = injected.then_some(AUTH_PROVIDER);
        match &self.way {
            Way::Plane(token) => Some(listening?.kubeconfig_of(token, namespace, provider)),
            Way::Relay(relay) => Some(relay.kubeconfig(namespace, provider)),
        }
    }

    /// Where the process has to tell.
    pub fn socket(&self) -> &Path {
        self.listener.path()
    }

    /// Says that a process is about to start because these files were saved. Wait for it before the start.
    pub async fn starting(&self, files: Vec<String>, sources: u64) {
        _ = self.starts.send((files, sources)).await;
    }

    /// Where printed lines go that the process tells, too, so that each is shown once, and those that name an
    /// object.
    pub fn printed(&self) -> Sender<Seen> {
        self.printed.clone()
    }

    /// Asks the process to reconcile an object now. Says whether there is one that can be asked.
    pub fn reconcile(&self, wish: &ReconcileNow) -> bool {
        self.listener.reconcile(wish)
    }

    /// Tells whether a process has said that it tells of its reconciles.
    pub fn tells(&self) -> watch::Receiver<bool> {
        self.listener.tells()
    }

    /// How many calls have come from it, counted on.
    pub fn calls(&self) -> Arc<AtomicU64> {
        Arc::clone(&self.calls)
    }

    /// Its reconciles from now on.
    pub fn reconciles(&self) -> broadcast::Receiver<Arc<Reconcile>> {
        self.reconciles.subscribe()
    }

    /// The faults that its calls get; `None` where they go to a cluster, which is never disturbed.
    pub fn faults(&self) -> Option<&Arc<Faults>> {
        matches!(self.way, Way::Plane(_)).then_some(&self.faults)
    }
}

impl Drop for Tracing {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// The inputs of the task at its start.
struct TraceInput {
    listener: Listener,
    records: Receiver<Traced>,
    seen: Arc<ObservationQueue>,
    dropped: Arc<AtomicU64>,
    faults: Arc<Faults>,
    calls: Arc<AtomicU64>,
}

impl TraceInput {
    /// Listens on the socket of the process. The copies are for whoever sees its calls, which may be
    /// disturbed or not.
    fn listen(socket: &Path, disturbs: bool) -> Result<(TraceInput, CallCopies)> {
        let (listener, records) = Listener::start(socket)?;
        let seen = Arc::new(ObservationQueue::default());
        let (dropped, faults) = (Arc::new(AtomicU64::new(0)), Arc::new(Faults::default()));
        let disturbing = disturbs.then(|| Arc::clone(&faults));
        let calls = Arc::new(AtomicU64::new(0));
        let copies = CallCopies {
            observations: Arc::clone(&seen),
            faults: disturbing,
            dropped: Arc::clone(&dropped),
            calls: Arc::clone(&calls),
            refused: None,
            audit: None,
        };
        Ok((TraceInput { listener, records, seen, dropped, faults, calls }, copies))
    }
}

/// Copies what the process asks and is answered, for the task.
struct CallCopies {
    observations: Arc<ObservationQueue>,
    /// None where nothing is ever disturbed.
    faults: Option<Arc<Faults>>,
    dropped: Arc<AtomicU64>,
    /// How many calls have come.
    calls: Arc<AtomicU64>,
    /// Where rights go that it lacks, where somebody keeps its roles.
    refused: Option<Sender<MissingRight>>,
    /// The audience of each call.
    audit: Option<Audit>,
}

impl CallCopies {
    fn note_refusal(&self, exchange: &Exchange) {
        let Some(refused) = self.refused.as_ref().filter(|_| exchange.status == FORBIDDEN) else { return };
        if let Some(missing) = missing_right(&exchange.answer.bytes) {
            // Somebody who does not keep up has been told of as many already.
            let _ = refused.try_send(missing);
        }
    }
}

/// The right that a refusal names, in JSON or in protobuf, whose texts stand between the bytes of their
/// lengths.
fn missing_right(body: &[u8]) -> Option<MissingRight> {
    if let Ok(status) = serde_json::from_slice::<Value>(body) {
        return MissingRight::parse(status["message"].as_str()?);
    }
    let text = String::from_utf8_lossy(body);
    let texts = text.split(|c: char| c.is_control() || c == char::REPLACEMENT_CHARACTER);
    // The tag of the next field is a quotation mark.
    texts.filter_map(|text| MissingRight::parse(text.strip_suffix('"').unwrap_or(text))).next()
}

impl Observer for CallCopies {
    fn treatment(&self, asked: &Asked) -> Treatment {
        self.calls.fetch_add(1, Ordering::Relaxed);
        self.faults.as_ref().map_or_else(Treatment::default, |faults| faults.treatment(asked))
    }

    fn seen(&self, observation: Observation) {
        if let Observation::Answered(exchange) = &observation {
            self.note_refusal(exchange);
            if let Some(Audit(see)) = &self.audit {
                see(call(exchange));
            }
        }
        // Requests that fill caches matter only by their objects and events, and discovery does not matter at
        // all.
        let dull = match &observation {
            Observation::Answered(exchange) => {
                fills_cache(&exchange.asked)
                    && (is_discovery(&exchange.asked.path) || exchange.answer.bytes.is_empty())
            }
            Observation::Delivered(_) => false,
            Observation::WatchEnded(_) => true,
        };
        if !dull && !self.observations.push(observation) {
            self.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// Where the task hears from.
struct Sources {
    records: Receiver<Traced>,
    seen: Arc<ObservationQueue>,
    starting: Receiver<SavedStart>,
    lines: Receiver<Seen>,
    dropped: Arc<AtomicU64>,
    /// Where reconciles go that somebody follows.
    told: broadcast::Sender<Arc<Reconcile>>,
    disturbed: watch::Receiver<Vec<FaultRule>>,
    /// The project's root, where panics show the lines of its files.
    root: Arc<OnceLock<PathBuf>>,
}

impl Sources {
    async fn run(mut self, mut attribution: Attribution, events: EventSink) {
        let mut looked = None;
        loop {
            let Some(heard) = self.next(attribution.due(), &mut looked).await else { return };
            let mut out = Vec::new();
            // A call that was answered before the process, or anybody, said this comes first.
            let before = if let Heard::Seen(seen) = &heard { seen } else { &self.seen.take() };
            for observation in before {
                take(&mut attribution, observation, &mut out);
            }
            match heard {
                Heard::Seen(_) => {}
                Heard::Starts(files, sources) => attribution.starting(files, sources, Timestamp::now()),
                Heard::Told(seen) => out.extend(attribution.see(*seen)),
                Heard::Disturbed(rules) => out.push(Event::Disturbed { rules }),
                Heard::Elapsed => out.extend(attribution.elapsed(Timestamp::now())),
            }
            let dropped = self.dropped.swap(0, Ordering::Relaxed);
            if dropped > 0 {
                out.push(lost(dropped));
            }
            for mut event in out {
                if let Event::Reconciled(reconcile) = &mut event {
                    if let Some(root) = self.root.get() {
                        show_code(reconcile, root);
                    }
                    // Nobody may follow.
                    let _ = self.told.send(Arc::clone(reconcile));
                }
                events.emit(event).await;
            }
        }
    }

    /// `None` once whoever began this is gone.
    async fn next(&mut self, due: Option<Timestamp>, looked: &mut Option<Instant>) -> Option<Heard> {
        tokio::select! {
            biased;
            start = self.starting.recv() => start.map(|(files, sources)| Heard::Starts(files, sources)),
            seen = self.seen.next(looked) => Some(Heard::Seen(seen)),
            record = self.records.recv() => record.map(|record| Heard::Told(Box::new(Seen::Traced(record)))),
            changed = self.disturbed.changed() => {
                changed.ok()?;
                Some(Heard::Disturbed(self.disturbed.borrow_and_update().clone()))
            }
            () = over(due) => Some(Heard::Elapsed),
            line = self.lines.recv() => line.map(|line| Heard::Told(Box::new(line))),
        }
    }
}

/// An input of the task.
enum Heard {
    Seen(Vec<Observation>),
    Starts(Vec<String>, u64),
    Told(Box<Seen>),
    Disturbed(Vec<FaultRule>),
    /// A time is over that the reconciles waited for.
    Elapsed,
}

/// Returns true if a read without the id of a reconcile is one of a watch, or of what the API server serves.
/// A list in pages, and one that may be old, fills a cache.
fn fills_cache(asked: &Asked) -> bool {
    let is_kept = ["watch=", "limit=", "resourceVersion="].iter().any(|part| asked.query.contains(part));
    asked.mark.is_none() && asked.method == "GET" && (is_kept || is_discovery(&asked.path))
}

/// Returns true if a path is about what the API server serves.
fn is_discovery(path: &str) -> bool {
    let parts = path.trim_matches('/').split('/').count();
    match path.split('/').nth(1) {
        Some("api") => parts <= 2,
        Some("apis") => parts <= 3,
        _ => true,
    }
}

/// Waits until a time; for ever where there is none.
async fn over(due: Option<Timestamp>) {
    match due {
        Some(due) => {
            let left = Duration::try_from(due.duration_since(Timestamp::now())).unwrap_or_default();
            tokio::time::sleep(left).await;
        }
        None => std::future::pending().await,
    }
}

fn lost(calls: u64) -> Event {
    Event::Noticed(Notice {
        at: Timestamp::now(),
        level: Level::Warn,
        message: format!("the operator calls faster than its calls can be shown: {calls} of them are not"),
        hint: Some("reconciles of this moment may lack calls".to_owned()),
        object: None,
    })
}

/// Adds the lines around the place of a panic.
fn show_code(reconcile: &mut Arc<Reconcile>, root: &Path) {
    let failure = reconcile.failure.as_ref();
    let found = failure.and_then(|failure| failure.diagnostic.as_ref());
    let Some(excerpt) = found.and_then(|found| code(found, root)) else { return };
    if let Some(found) = Arc::make_mut(reconcile).failure.as_mut().and_then(|one| one.diagnostic.as_mut()) {
        found.excerpt = Some(excerpt);
    }
}

/// The lines around a place below the root, as they are in the project now.
fn code(found: &Diagnostic, root: &Path) -> Option<String> {
    let place = found.place.as_ref().filter(|_| found.excerpt.is_none())?;
    chart_problems::excerpt(&small_text(&root.join(&place.file))?, place.line, place.column)
}

/// Gives a call or a delivered event to an attribution, and takes the events that follow.
pub fn take(attribution: &mut Attribution, observation: &Observation, out: &mut Vec<Event>) {
    match observation {
        Observation::Answered(exchange) => {
            let mut call = call(exchange);
            let fills_cache = fills_cache(&exchange.asked);
            // A program without caches, too, lists a kind before it watches it.
            let is_list = |answer: &&Value| answer["items"].is_array();
            let list = if fills_cache {
                call.answered.take()
            } else if exchange.asked.method == "GET" {
                call.answered.as_ref().filter(is_list).cloned()
            } else {
                None
            };
            for event in list.map(|list| listed(exchange, list)).unwrap_or_default() {
                out.extend(attribution.see(Seen::Event(event)));
            }
            if !fills_cache {
                out.extend(attribution.see(Seen::Call(call)));
            }
        }
        Observation::Delivered(delivery) => {
            for event in delivered(delivery) {
                out.extend(attribution.see(Seen::Event(event)));
            }
        }
        Observation::WatchEnded(_) => {}
    }
}

fn call(exchange: &Exchange) -> ObservedCall {
    let asked = &exchange.asked;
    ObservedCall {
        at: asked.at,
        took_micros: u64::try_from(exchange.took.as_micros()).unwrap_or(u64::MAX),
        method: asked.method.to_string(),
        path: asked.path.clone(),
        query: asked.query.clone(),
        mark: asked.mark.clone(),
        status: exchange.status,
        sent: exchange.request.value(),
        answered: exchange.answer.value(),
        disturbed: exchange.disturbed,
        warnings: exchange.warnings.clone(),
    }
}

/// The objects of a list, each with its kind, which a list in JSON says but once.
fn listed(exchange: &Exchange, mut list: Value) -> Vec<ObservedEvent> {
    let items = list.get_mut("items").and_then(Value::as_array_mut).map(std::mem::take).unwrap_or_default();
    let kind = list["kind"].as_str().and_then(|kind| kind.strip_suffix("List")).map(str::to_owned);
    let at = exchange.asked.at.checked_add(exchange.took).unwrap_or(exchange.asked.at);
    let event = |mut object: Value| {
        if let (Some(kind), false) = (&kind, object["kind"].is_string()) {
            meta::put(&mut object, &["apiVersion"], list["apiVersion"].clone());
            meta::put(&mut object, &["kind"], kind.as_str());
        }
        let (kind, path) = (ObservedEvent::LISTED.to_owned(), exchange.asked.path.clone());
        ObservedEvent { at, kind, path, object }
    };
    items.into_iter().map(event).collect()
}

fn delivered(delivery: &Delivery) -> Vec<ObservedEvent> {
    let events = delivery.chunk.events().into_iter();
    let path = &delivery.asked.path;
    events.map(|(kind, object)| ObservedEvent { at: delivery.at, kind, path: path.clone(), object }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use opdev_event::{Place, Severity};

    #[test]
    fn a_missing_right_is_read_off_json_and_protobuf() {
        let message =
            r#"pods is forbidden: User "u" cannot list resource "pods" in API group "" in the namespace "a""#;
        let json = serde_json::to_vec(&serde_json::json!({"kind": "Status", "message": message})).unwrap();
        let length = u8::try_from(message.len()).unwrap();
        let protobuf = [
            b"k8s\0\n\x06\x12\x07Failure\x1a",
            [length].as_slice(),
            message.as_bytes(),
            b"\"\x09Forbidden0\x93\x03",
        ]
        .concat();
        for body in [json, protobuf] {
            let missing = missing_right(&body).unwrap();
            assert_eq!(
                (missing.verb.as_str(), missing.resource.as_str(), missing.namespace.as_str()),
                ("list", "pods", "a")
            );
            assert!(missing.message.ends_with(message), "{}", missing.message);
        }
        assert_eq!(missing_right(b"{}"), None);
    }

    #[test]
    fn a_panic_shows_the_lines_of_its_place() {
        let root = tempfile::tempdir().unwrap();
        std::fs::write(root.path().join("c.go"), "package c\n\tvar m map[string]int\n\tm[\"a\"] = 1\n")
            .unwrap();
        let panicked = |file: &str| Diagnostic {
            severity: Severity::Error,
            message: "panic: assignment to entry in nil map".to_owned(),
            place: Some(Place { file: file.to_owned(), line: 3, column: 0 }),
            excerpt: None,
            hint: None,
            kind: None,
        };
        let shown = code(&panicked("c.go"), root.path()).unwrap();
        assert_eq!(shown, "2 | \tvar m map[string]int\n3 | \tm[\"a\"] = 1\n  | \t^");
        assert_eq!(code(&panicked("gone.go"), root.path()), None);
    }
}
