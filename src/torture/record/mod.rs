//! Looks over the operator's shoulder in a run: notes its writes as points, counts what comes and goes, and
//! disturbs it where the plan says so. One for a run; each start of the operator has `eyes` of its own.

mod eyes;

use crate::judge::Counts;
use crate::plan::{Disturbance, Possible, Write};
use crate::point::{Call, Counter, Point, signature};
use crate::query::{is_leader, place, plural};
use crate::restless::{Called, Restless};
use crate::ruled::Ruled;
use eyes::Eyes;
use opdev_controlplane::registry::Registry;
use opdev_controlplane::storage::{Change, ChangeKind, Stored, Watch};
use opdev_controlplane::{Exchange, Leaving, Observer, Passage, Refusal};
use opdev_normal::Orphans;
use opdev_object::api_path::ApiPath;
use opdev_object::meta;
use opdev_program::heard::under_way::{Lately, UnderWay};
use serde_json::Value;
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::watch;

/// Letters of a reason of the API server that are told.
pub(super) const LONGEST_REASON: usize = 300;

/// What one run is made of, as it goes on.
pub(super) struct Record {
    registry: Arc<Registry>,
    inner: Mutex<Inner>,
    /// Counts everything that happens.
    news: watch::Sender<u64>,
    /// How often the operator was to be killed.
    killed: watch::Sender<u32>,
    /// The rules of findings.
    pub(super) ruled: Ruled,
}

struct Inner {
    changes: Watch,
    /// The revision of the last change that is none of leader election.
    moved: u64,
    /// True if more happened between two looks than the store remembers.
    lost: bool,
    /// The step that is done; nothing before the first one.
    step: Option<usize>,
    /// What is done to the operator.
    armed: Option<Disturbance>,
    met: bool,
    /// The place in the code of the call at which the disturbance took place.
    met_at: Option<String>,
    /// The start of the operator that may still ask for something.
    start: u32,
    points: Counter,
    calls: Counter,
    /// By the number of the request: a call that is not answered yet.
    called: HashMap<u64, OpenCall>,
    /// By the number of the request: when its answer leaves.
    leaving: HashMap<u64, Leaving>,
    /// Lets an answer go that is held.
    held: Option<watch::Sender<bool>>,
    /// True if the custom resource is to be deleted while the answer is held.
    deletes: bool,
    /// By namespace: the last reason for which a write was refused.
    refused: BTreeMap<String, String>,
    writes: Vec<Write>,
    history: BTreeMap<String, Counts>,
    orphans: Orphans,
    possible: Possible,
    gates: BTreeMap<String, watch::Sender<Passage>>,
    open_watches: BTreeMap<String, u32>,
    /// What lists from a cache are shown: the resource and the revision.
    past: Option<(String, u64)>,
    /// The last thing that happened, the longest silence since the last change, and the longest one within a
    /// step that ended with a change. What fails and is tried again without changing anything is nothing to
    /// wait for.
    last: Instant,
    silence: Duration,
    /// By the number of the step: the longest such silence.
    gaps: Vec<Duration>,
    /// True while the program is known to be at work, so that a silence says nothing.
    at_work: bool,
    /// Changes and calls of late.
    changed: Lately<Arc<Change>>,
    asked: Lately<Called>,
    /// The namespace that nobody touches.
    bystander: Option<String>,
}

/// A writing call of the operator on its way.
struct OpenCall {
    point: Point,
    /// The store's revision when it arrived.
    revision: u64,
}

/// What is noted in a run.
pub(super) struct Noted {
    pub(super) writes: Vec<Write>,
    pub(super) history: BTreeMap<String, Counts>,
    pub(super) possible: Possible,
    pub(super) met: bool,
    /// The place in the operator's code of the call at which the disturbance took place.
    pub(super) met_at: Option<String>,
    /// By the number of the step: the longest time in which nothing happened, before something did.
    pub(super) gaps: Vec<Duration>,
    /// By namespace: the last reason for which a write was refused.
    pub(super) refused: BTreeMap<String, String>,
    /// True if the store forgot changes before they were seen.
    pub(super) lost: bool,
}

impl Record {
    /// A record of everything that happens on a plane from now on.
    pub(super) fn new(registry: Arc<Registry>, armed: Option<Disturbance>) -> anyhow::Result<Arc<Record>> {
        let changes = registry.store.watch_all(registry.store.revision());
        let changes = changes.map_err(|_| anyhow::anyhow!("the store forgot what it has just done"))?;
        let inner = Inner {
            changes,
            moved: registry.store.revision(),
            lost: false,
            step: None,
            armed,
            met: false,
            met_at: None,
            start: 0,
            points: Counter::default(),
            calls: Counter::default(),
            called: HashMap::new(),
            leaving: HashMap::new(),
            held: None,
            deletes: false,
            refused: BTreeMap::new(),
            writes: Vec::new(),
            history: BTreeMap::new(),
            orphans: Orphans::default(),
            possible: Possible::default(),
            gates: BTreeMap::new(),
            open_watches: BTreeMap::new(),
            past: None,
            last: Instant::now(),
            silence: Duration::ZERO,
            at_work: false,
            gaps: Vec::new(),
            changed: Lately::default(),
            asked: Lately::default(),
            bystander: None,
        };
        Ok(Arc::new(Record {
            registry,
            inner: Mutex::new(inner),
            news: watch::Sender::new(0),
            killed: watch::Sender::new(0),
            ruled: Ruled::default(),
        }))
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Eyes for the next start of the operator. Those before see nothing any more: their calls end
    /// unanswered.
    pub(super) fn next_start(self: &Arc<Self>) -> Arc<dyn Observer> {
        let mut inner = self.lock();
        inner.start += 1;
        Arc::new(Eyes { record: Arc::clone(self), start: inner.start })
    }

    /// The operator that runs is gone.
    pub(super) fn ended(&self) {
        self.ruled.ends();
        self.lock().start += 1;
    }

    /// What happens belongs to this step from now on.
    pub(super) fn begin(&self, step: usize) {
        let mut inner = self.lock();
        self.drain(&mut inner);
        if inner.step.is_none() {
            inner.history.clear();
        }
        inner.step = Some(step);
        (inner.last, inner.silence) = (Instant::now(), Duration::ZERO);
    }

    /// The step is over.
    pub(super) fn at_rest(&self) {
        let mut inner = self.lock();
        self.drain(&mut inner);
        (inner.last, inner.silence) = (Instant::now(), Duration::ZERO);
    }

    /// The namespace whose objects nobody touches, and the resource of the sample.
    pub(super) fn concerns(&self, bystander: Option<&str>, own: &str) {
        let mut inner = self.lock();
        inner.bystander = bystander.map(str::to_owned);
        own.clone_into(&mut inner.possible.own);
    }

    /// Counts everything that happens.
    pub(super) fn news(&self) -> watch::Receiver<u64> {
        self.news.subscribe()
    }

    /// Counts how often the operator was to be killed.
    pub(super) fn killed(&self) -> watch::Receiver<u32> {
        self.killed.subscribe()
    }

    /// Notes that the disturbance has taken place.
    pub(super) fn meet(&self) {
        self.lock().met = true;
    }

    /// Returns true if the disturbance has taken place.
    pub(super) fn has_met(&self) -> bool {
        self.lock().met
    }

    /// Returns true if an answer is held.
    pub(super) fn holds(&self) -> bool {
        self.lock().held.is_some()
    }

    /// Lets the answer go that is held; whether there was one.
    pub(super) fn let_go(&self) -> bool {
        self.lock().held.take().is_some_and(|held| held.send(true).is_ok())
    }

    /// Returns true if the custom resource is to be deleted before the answer goes that is held; once.
    pub(super) fn takes_delete(&self) -> bool {
        std::mem::take(&mut self.lock().deletes)
    }

    /// Returns true if events of a resource are held.
    pub(super) fn is_blind(&self) -> bool {
        self.lock().gates.values().any(|gate| *gate.borrow() != Passage::Open)
    }

    /// Holds the events of a resource, or lets them through.
    pub(super) fn gate(&self, resource: &str, passage: Passage) {
        self.lock().gate(resource).send_replace(passage);
    }

    /// The revision of the last change. Whoever renews a lease every two seconds changes nothing.
    pub(super) fn moved(&self) -> u64 {
        let mut inner = self.lock();
        self.drain(&mut inner);
        inner.moved
    }

    /// Number of watches of a resource that are open.
    pub(super) fn watches(&self, resource: &str) -> u32 {
        self.lock().open_watches.get(resource).copied().unwrap_or_default()
    }

    /// Shows a resource as it was at a revision to whoever lists it from a cache, and nothing that came
    /// later.
    pub(super) fn show_past(&self, resource: &str, revision: u64) {
        let mut inner = self.lock();
        inner.past = Some((resource.to_owned(), revision));
        inner.gate(resource).send_replace(Passage::Held(0));
    }

    /// Returns true if a resource is shown as it was.
    pub(super) fn shows_past(&self) -> bool {
        self.lock().past.is_some()
    }

    /// Shows everything as it is.
    pub(super) fn show_now(&self) {
        self.lock().past = None;
    }

    /// All that was noted.
    pub(super) fn noted(&self) -> Noted {
        let mut inner = self.lock();
        self.drain(&mut inner);
        Noted {
            writes: std::mem::take(&mut inner.writes),
            history: std::mem::take(&mut inner.history),
            possible: std::mem::take(&mut inner.possible),
            met: inner.met,
            met_at: inner.met_at.take(),
            gaps: std::mem::take(&mut inner.gaps),
            refused: std::mem::take(&mut inner.refused),
            lost: inner.lost,
        }
    }

    /// The program is known to be at work, or not.
    pub(super) fn at_work(&self, at_work: bool) {
        self.lock().at_work = at_work;
    }

    /// Why the operator does not come to rest, in words.
    pub(super) fn restless(&self, told: Option<&UnderWay>) -> String {
        let mut inner = self.lock();
        self.drain(&mut inner);
        let placed = inner.writes.iter().filter(|write| write.changes);
        let places = placed.filter_map(|write| Some((write.object.clone(), write.place.clone()?))).collect();
        let (now, changes, called) = (Instant::now(), &inner.changed, &inner.asked);
        match told {
            Some(told) => told.lately(|begun, open| {
                Restless { now, changes, called, places, begun: Some(begun), open }.words()
            }),
            None => Restless { now, changes, called, places, begun: None, open: Vec::new() }.words(),
        }
    }

    /// Counts what came and went since the last look, and gives it back.
    fn drain(&self, inner: &mut Inner) -> Vec<Arc<Change>> {
        let changes = match inner.changes.ready() {
            Ok(changes) => changes,
            Err(_) => {
                inner.lost = true;
                let store = &self.registry.store;
                if let Ok(newest) = store.watch_all(store.revision()) {
                    inner.changes = newest;
                }
                Vec::new()
            }
        };
        for change in &changes {
            let beside = matches!(plural(&change.table), "leases" | "events");
            if !beside && !is_leader(&change.object.glance()) {
                inner.moved = change.revision;
                inner.changed.note(Instant::now(), Arc::clone(change));
                inner.went_on();
            }
            let made = change.previous.is_none() && change.kind != ChangeKind::Deleted;
            let gone = change.kind == ChangeKind::Deleted;
            self.note_going(inner, change, gone);
            if !made && !gone {
                continue;
            }
            let object = change.object.glance();
            if inner.orphans.see(&object, made)
                || !opdev_normal::counts(&object)
                || opdev_normal::is_hook(&object)
                || is_of(&object, inner.bystander.as_deref())
            {
                continue;
            }
            let counts = inner.history.entry(opdev_normal::id(&object)).or_default();
            counts.made += u32::from(made);
            counts.gone += u32::from(gone);
        }
        changes
    }

    /// Notes when an object is on its way out.
    fn note_going(&self, inner: &mut Inner, change: &Change, gone: bool) {
        let Some(step) = inner.step.filter(|_| !gone) else { return };
        if meta::deletion_timestamp(&change.object.glance()).is_some() {
            let of_kind = inner.possible.going.entry(plural(&change.table).to_owned()).or_default();
            of_kind.insert(step, change.revision);
        }
    }

    /// The newest revision of a step at which an object of a resource was on its way out.
    pub(super) fn going(&self, resource: &str, step: usize) -> Option<u64> {
        self.lock().possible.going.get(resource)?.get(&step).copied()
    }

    fn write(&self, exchange: &Exchange) {
        let asked = &exchange.asked;
        let target = ApiPath::of(&asked.path);
        let verb = target.verb(asked.method.as_str(), Some(asked.query.as_str()));
        let mut inner = self.lock();
        let changes = self.drain(&mut inner);
        let called = inner.called.remove(&asked.number);
        let (Some(step), Some(OpenCall { point: call, revision: arrived })) = (inner.step, called) else {
            return;
        };
        let answer = exchange.answer.value();
        let name = match target.name {
            "" => answer.as_ref().and_then(meta::name).unwrap_or_default().to_owned(),
            name => name.to_owned(),
        };
        let table = self.table(&asked.path, target.resource);
        let revision =
            answer.as_ref().and_then(meta::resource_version).and_then(|text| text.parse::<u64>().ok());
        let of_object = |change: &&Arc<Change>| {
            Some(&*change.table) == table.as_deref()
                && *change.key.name == *name
                && *change.key.namespace == *target.namespace
        };
        // Others may have looked since it was done.
        let lately = inner.changed.newest(Instant::now());
        // A write without a change is answered with the object of an earlier change, by anybody.
        // The change that takes the last finalizer off is the deletion, at a later revision.
        let lets_go = answer.as_ref().is_some_and(meta::is_let_go);
        let own = |change: &&Arc<Change>| {
            let is_its = Some(change.revision) == revision || lets_go && change.kind == ChangeKind::Deleted;
            is_its && change.revision > arrived
        };
        let exactly = lately.filter(of_object).find(own).cloned();
        let change =
            exactly.or_else(|| changes.iter().rfind(of_object).filter(|_| verb == "delete").cloned());
        let change = change.as_ref();
        let before = change.and_then(|change| change.previous.as_ref()).map(|stored| stored.glance());
        let after = change.map(|change| change.object.glance());
        let named = Call {
            verb,
            resource: target.resource,
            subresource: target.subresource,
            namespace: target.namespace,
            name: &name,
        };
        if after.as_deref().or(before.as_deref()).is_some_and(is_leader) {
            return;
        }
        let signed = signature(&named, before.as_deref(), after.as_deref());
        let point = inner.points.next(signed);
        let continues = change.is_some_and(|change| continues(change, verb, target.resource));
        let resource = match target.subresource {
            "" => target.resource.to_owned(),
            subresource => format!("{}/{subresource}", target.resource),
        };
        let changed = change.is_some();
        let place = place(asked);
        inner.disturb((asked.number, place.as_deref()), &point, changed, &self.killed);
        let object = after.as_deref().or(before.as_deref()).map(opdev_normal::id).unwrap_or_default();
        inner.writes.push(Write {
            point,
            call,
            verb: verb.to_owned(),
            resource,
            changes: changed,
            continues,
            step,
            object,
            place,
        });
    }

    /// A call was not done: notes why, where the object itself was not taken.
    fn not_done(&self, exchange: &Exchange, target: &ApiPath<'_>) {
        let mut inner = self.lock();
        inner.called.remove(&exchange.asked.number);
        if !matches!(exchange.status, 400 | 403 | 422) {
            return;
        }
        let answer = exchange.answer.value();
        let why = answer.as_ref().and_then(|status| status["message"].as_str());
        if let Some(why) = why.filter(|_| !target.namespace.is_empty()) {
            let why = why.chars().take(LONGEST_REASON).collect();
            inner.refused.insert(target.namespace.to_owned(), why);
        }
    }

    /// The table of the store that a path leads to.
    fn table(&self, path: &str, plural: &str) -> Option<String> {
        let parts: Vec<&str> = path.trim_matches('/').split('/').collect();
        let (group, version) = match parts.as_slice() {
            ["api", version, ..] => ("", *version),
            ["apis", group, version, ..] => (*group, *version),
            _ => return None,
        };
        let served = self.registry.catalog.served();
        served.find(group, version, plural).map(|resource| resource.table.to_string())
    }
}

/// Returns true if an object belongs to the untouched instance.
pub(super) fn is_of(object: &Value, bystander: Option<&str>) -> bool {
    bystander.is_some() && meta::namespace(object) == bystander
}

/// Returns true if the API server itself goes on after a write: an object goes, or a workload comes or
/// changes its size.
fn continues(change: &Change, verb: &str, resource: &str) -> bool {
    let workload = matches!(
        resource,
        "deployments" | "statefulsets" | "daemonsets" | "jobs" | "cronjobs" | "replicasets"
    );
    let removed = change.kind == ChangeKind::Deleted;
    let replicas = |stored: &Stored| stored.glance()["spec"]["replicas"].clone();
    let is_resized =
        || change.previous.as_ref().is_some_and(|before| replicas(before) != replicas(&change.object));
    removed || verb == "delete" || (workload && (verb == "create" || is_resized()))
}

impl Inner {
    /// Something happens.
    fn hear(&mut self) {
        if self.step.is_some() && !self.at_work {
            self.silence = self.silence.max(self.last.elapsed());
        }
        self.last = Instant::now();
    }

    /// Something was changed after a silence.
    fn went_on(&mut self) {
        let silence = std::mem::take(&mut self.silence);
        let Some(step) = self.step else { return };
        if self.gaps.len() <= step {
            self.gaps.resize(step + 1, Duration::ZERO);
        }
        self.gaps[step] = self.gaps[step].max(silence);
    }

    /// A call was answered.
    fn ask(&mut self, verb: &str, target: &ApiPath<'_>, status: u16) {
        let parts = [target.resource, target.namespace, target.name, target.subresource];
        let parts: Vec<&str> = parts.into_iter().filter(|part| !part.is_empty()).collect();
        self.asked.note(Instant::now(), (format!("{verb} {}", parts.join("/")), status));
    }

    fn gate(&mut self, resource: &str) -> &watch::Sender<Passage> {
        self.gates.entry(resource.to_owned()).or_insert_with(|| watch::Sender::new(Passage::Open))
    }

    /// Does to the operator what is to be done at this point.
    fn disturb(
        &mut self,
        (request, place): (u64, Option<&str>),
        point: &Point,
        changed: bool,
        killed: &watch::Sender<u32>,
    ) {
        if !changed || self.met {
            return;
        }
        let leaving = match &self.armed {
            Some(Disturbance::Crash(wanted)) if wanted == point => {
                // Whatever it asks for from now on comes too late.
                self.start += 1;
                killed.send_modify(|count| *count += 1);
                Leaving::Never
            }
            Some(Disturbance::Lost(wanted)) if wanted == point => Leaving::Never,
            Some(Disturbance::Slow(wanted) | Disturbance::Deleted(wanted)) if wanted == point => {
                self.deletes = matches!(self.armed, Some(Disturbance::Deleted(_)));
                let (held, leaves) = watch::channel(false);
                self.held = Some(held);
                Leaving::Once(leaves)
            }
            _ => return,
        };
        self.met = true;
        self.met_at = place.map(str::to_owned);
        self.leaving.insert(request, leaving);
    }

    /// Refuses a call, where that is the plan.
    fn refusal(&mut self, call: &Point, target: &ApiPath<'_>) -> Option<Refusal> {
        let Some(Disturbance::Conflict(wanted)) = &self.armed else { return None };
        if self.met || wanted != call {
            return None;
        }
        self.met = true;
        Some(Refusal {
            code: 409,
            reason: "Conflict",
            message: format!(
                "Operation cannot be fulfilled on {} \"{}\": the object has been modified; please apply your changes to the \
                 latest version and try again",
                target.resource, target.name
            ),
            retry_after: None,
        })
    }
}
