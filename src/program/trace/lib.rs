//! The problem: three streams tell of one reconcile (calls over HTTP, events of watches, records over a
//! socket), each with its own delay, and the end of a reconcile may arrive before its last call. Everything
//! must be told once, in its reconcile, whatever the order.
//!
//! Makes reconciles of what was seen of a process: which call and which read belongs to which reconcile, what
//! led to it, what it changed. Pure: what was seen goes in, events come out. A call must go in before the end
//! of its reconcile does; that it may go in before the beginning does no harm.

mod cached;
mod causes;
mod event_call;
mod evidence;
pub mod instrument;
mod late;
pub(crate) mod listener;
mod printed;
pub(crate) mod reads;
pub(crate) mod reconcile;
mod recorded;
mod signs;
mod spelling;
pub(crate) mod surplus_left;
mod waiting;
mod wire;
mod workloads;

#[cfg(test)]
mod tests;

use crate::reads::{Known, Memory};
use cached::Cached;
use event_call::{event_is_about, namespace_of};
use evidence::Beside;
use jiff::{SignedDuration, Timestamp};
use opdev_event::evidence::{Handover, WriteFact};
use opdev_event::sink::ReconcileNumbers;
use opdev_event::{Event, Level, LogLine, Reconcile, mask};
use opdev_facts::observed::{ObservedCall, ObservedEvent, Seen};
use opdev_facts::record::fields::time;
use opdev_facts::record::{Begin, ControllerAdded, End, LineName, LogRecord, Record, Traced};
use opdev_facts::versions::Versions;
use opdev_object::meta::{Gvk, ObjectKey, ObjectRef, resource_version};
use printed::Printed;

use reconcile::{Open, Write};
use recorded::Recorders;
use serde_json::Value;
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::Arc;
use waiting::notice;
use wire::Wire;

/// Reconciles that have ended and may still get a late call.
const ENDED: usize = 512;
/// Calls that wait for the beginning of their reconcile.
const EARLY: usize = 1024;
/// Writes whose reconcile is remembered.
const WRITES: usize = 20_000;
/// Writes that belong to no reconcile and wait for the next one.
const BESIDE: usize = 256;
/// Secrets that are looked for in texts.
const SECRETS: usize = 2_000;

/// The facts about a process, and the events that they become.
#[derive(Debug)]
pub struct Attribution {
    numbers: ReconcileNumbers,
    controllers: BTreeMap<String, ControllerAdded>,
    open: HashMap<String, Open>,
    ended: VecDeque<(String, Arc<Reconcile>)>,
    versions: Versions,
    cached: Cached,
    /// The reconcile that wrote each version.
    written: HashMap<(ObjectKey, String), u64>,
    written_order: VecDeque<(ObjectKey, String)>,
    /// Kinds by group and plural, learned from what was read and written.
    kinds: HashMap<(String, String), Gvk>,
    /// The files whose edit led to the process that runs.
    files: Vec<String>,
    sources: u64,
    secrets: Vec<String>,
    memory: Memory,
    printed: Printed,
    /// Events that reconciles recorded and whose call is still to come.
    recorders: Recorders,
    /// Calls of reconciles that have not begun yet: a call may be seen before the process has said so.
    early: VecDeque<(String, ObservedCall, Option<Write>)>,
    /// Calls of reconciles that never began.
    unknown: u64,
    /// Guesses about a program that tells nothing.
    wire: Wire,
    /// Events since the reconcile before that belong to none.
    beside: Vec<WriteFact>,
}

impl Attribution {
    /// Knows nothing yet.
    pub fn new(numbers: ReconcileNumbers) -> Self {
        Attribution {
            numbers,
            controllers: BTreeMap::new(),
            open: HashMap::new(),
            ended: VecDeque::new(),
            versions: Versions::default(),
            cached: Cached::default(),
            written: HashMap::new(),
            written_order: VecDeque::new(),
            kinds: HashMap::new(),
            files: Vec::new(),
            sources: 0,
            secrets: Vec::new(),
            memory: Memory::default(),
            printed: Printed::default(),
            recorders: Recorders::default(),
            early: VecDeque::new(),
            unknown: 0,
            wire: Wire::default(),
            beside: Vec::new(),
        }
    }

    /// A process is about to start, because these files were saved; `sources` is the number of what is served
    /// then. Reconciles of the one before that never ended are forgotten. Until the program tells of its
    /// controllers, its reconciles are guessed.
    pub fn starting(&mut self, files: Vec<String>, sources: u64, at: Timestamp) {
        self.wire.starting(at);
        self.files = files;
        self.sources = sources;
        self.controllers.clear();
        self.open.clear();
        self.unknown += self.early.len() as u64;
        self.early.clear();
        self.memory.restarted();
        self.cached = Cached::default();
        self.recorders.starting();
    }

    /// How many calls carried the id of a reconcile that nothing else is known of.
    pub fn unknown_calls(&self) -> u64 {
        self.unknown + self.early.len() as u64
    }

    /// The controllers that were added, by name.
    pub fn controllers(&self) -> &BTreeMap<String, ControllerAdded> {
        &self.controllers
    }

    /// Takes in what was seen, and says what has happened.
    pub fn see(&mut self, seen: Seen) -> Vec<Event> {
        match seen {
            Seen::Traced(traced) => self.hear(traced),
            Seen::Printed(printed) => {
                let line = self.printed.printed(printed);
                line.map(|line| self.masked(line)).into_iter().collect()
            }
            Seen::Line(about) => {
                let reconcile = self.take_line(&about);
                vec![self.masked(LogLine { reconcile, ..about.line })]
            }
            Seen::Call(call) => self.call(call),
            Seen::Event(event) => {
                self.event(&event);
                Vec::new()
            }
        }
    }

    fn hear(&mut self, traced: Traced) -> Vec<Event> {
        match traced.record {
            Record::Begin(begin) => self.begin(&begin).into_iter().collect(),
            Record::End(end) => self.end(&end).into_iter().collect(),
            Record::Read(read) => {
                self.learn_kind_of_cache(&read.object);
                if let Some(open) = self.open.get_mut(&read.id) {
                    open.reads.push(read);
                }
                Vec::new()
            }
            Record::Waiting(read) => {
                let of = self.open.get(&read.id).map(|open| &open.object);
                vec![waiting::told(traced.at, of, &read)]
            }
            Record::Recorded(event) => match self.recorders.told(event) {
                Some(known) => self.settle(&known),
                None => Vec::new(),
            },
            Record::Log(record) => {
                let mut line = self.log(&record);
                if let Some(open) = self.open.get_mut(&record.id) {
                    open.logged(&record);
                }
                if let Some(name) = LineName::read(&record.printed) {
                    self.printed.told(name, &mut line);
                }
                vec![self.masked(line)]
            }
            Record::Controller(added) => {
                self.wire.told();
                self.controllers.insert(added.name.clone(), added);
                Vec::new()
            }
            Record::Dropped { records } => vec![notice(
                traced.at,
                &format!(
                    "the trace of the operator came faster than opdev reads it: {records} of its records are lost"
                ),
                "reconciles of this moment may lack causes, reads or their end",
            )],
            Record::Unreadable { line, why } => vec![notice(
                traced.at,
                &format!("the trace socket got a line that is no record ({why}): {line}"),
                "only the operator that opdev starts should write to this socket",
            )],
            Record::Hello(hello) => {
                self.memory.reads_can_wait(&hello);
                self.printed.connected(traced.process, hello.pid);
                Vec::new()
            }
            Record::Closed => {
                let left = self.printed.closed(traced.process);
                left.into_iter().map(|line| self.masked(line)).collect()
            }
            Record::Manager(_) => Vec::new(),
        }
    }

    fn begin(&mut self, begin: &Begin) -> Option<Event> {
        let number = self.numbers.next();
        let known = self.controllers.get(&begin.controller);
        let (group, kind) = known.map(|c| (c.group.as_str(), c.kind.as_str())).unwrap_or_default();
        let mut object = ObjectRef {
            gvk: Gvk::new(group, "", kind),
            namespace: Some(begin.namespace.clone()).filter(|namespace| !namespace.is_empty()),
            name: begin.name.clone(),
            uid: None,
        };
        self.complete(&mut object, begin);
        let (causes, own_writes) = self.causes_of(begin, &object);
        let open = Open::new(number, begin, object, causes, own_writes);
        let started = open.started();
        self.open.insert(begin.id.clone(), open);
        self.take_early(&begin.id);
        Some(Event::ReconcileStarted(started))
    }

    /// Calls that were seen before their reconcile was known.
    fn take_early(&mut self, id: &str) {
        let all = std::mem::take(&mut self.early);
        for (of, call, write) in all {
            let Some(open) = self.open.get_mut(id).filter(|_| of == id) else {
                self.early.push_back((of, call, write));
                continue;
            };
            let number = open.number;
            open.call(&call, write.clone(), &self.versions, false);
            self.remember(write.as_ref(), number);
        }
    }

    /// Fills in version, uid, and where the controller did not say so the kind.
    fn complete(&self, object: &mut ObjectRef, begin: &Begin) {
        let same = |told: &&opdev_facts::record::TraceObject| {
            told.name == object.name
                && object.namespace.as_deref().unwrap_or_default() == told.namespace
                && (object.gvk.kind.is_empty()
                    || object.gvk.kind == told.kind && object.gvk.group == told.group)
        };
        let told = begin.causes.iter().filter_map(|cause| cause.object.as_ref()).find(same);
        if let Some(told) = told {
            object.gvk = Gvk::new(&told.group, &told.version, &told.kind);
            object.uid = Some(told.uid.clone());
        } else if let Some(known) = self.versions.newest(&object.key())
            && let Some(known) = ObjectRef::of(&known)
        {
            *object = known;
        } else if let Some(gvk) =
            self.kinds.values().find(|gvk| gvk.kind == object.gvk.kind && gvk.group == object.gvk.group)
        {
            object.gvk = gvk.clone();
        }
    }

    fn end(&mut self, end: &End) -> Option<Event> {
        let open = self.open.remove(&end.id)?;
        let attempt = self.memory.attempt(&open.controller, &open.object.key(), end);
        let mut reconcile = open.ended(end, attempt, &self.kinds);
        self.learn_kind_of_controller(&open.controller, &reconcile.object.gvk);
        let known = Known { versions: &self.versions, written: &self.written };
        let (findings, stale) = crate::reads::findings(&open, &reconcile, &known, &mut self.memory);
        let primary = self.versions.newest(&open.object.key());
        let mut evidence =
            evidence::evidence(&open, (open.more_causes, end), stale, primary.as_deref(), &self.secrets);
        evidence.object.clone_from(&reconcile.object);
        evidence.cached = self.cached.many();
        evidence.workloads = workloads::workloads(&open, &self.versions);
        evidence.configs = workloads::configs(&open, &self.versions);
        evidence.beside = evidence::masked(std::mem::take(&mut self.beside), &self.secrets);
        if let Some(process) = &mut reconcile.process {
            process.findings = findings;
            process.evidence = Handover::new(evidence);
        }
        self.mask(&mut reconcile);
        let reconcile = Arc::new(reconcile);
        self.ended.push_back((end.id.clone(), Arc::clone(&reconcile)));
        if self.ended.len() > ENDED {
            self.ended.pop_front();
        }
        Some(Event::Reconciled(reconcile))
    }

    /// A controller whose logger is made by the program itself does not say which kind it is for.
    fn learn_kind_of_controller(&mut self, controller: &str, gvk: &Gvk) {
        if let Some(known) = self.controllers.get_mut(controller).filter(|known| known.kind.is_empty()) {
            (known.group, known.kind) = (gvk.group.clone(), gvk.kind.clone());
        }
    }

    fn mask(&self, reconcile: &mut Reconcile) {
        let text = |text: &mut String| *text = mask::text(text, &self.secrets);
        mask::values_of(&mut reconcile.status, &self.secrets);
        for object in &mut reconcile.objects {
            mask::values_of(&mut object.changes, &self.secrets);
        }
        if let Some(failure) = &mut reconcile.failure {
            failure.chain.iter_mut().for_each(text);
            failure.diagnostic.iter_mut().for_each(|found| text(&mut found.message));
        }
        for call in &mut reconcile.calls {
            call.reason.iter_mut().for_each(text);
        }
        if let Some(process) = &mut reconcile.process {
            process.findings.iter_mut().for_each(|finding| text(&mut finding.message));
        }
    }

    fn call(&mut self, call: ObservedCall) -> Vec<Event> {
        self.learn(call.sent.as_ref());
        self.learn(call.answered.as_ref());
        self.learn_kind_of_call(&call);
        let write = self.write_of(&call);
        let marked = call.reconcile().map(str::to_owned);
        let mut out = Vec::new();
        let (id, guessed) = match marked {
            _ if self.wire.is_on() => match self.guess_reconcile(&call, write.as_ref(), &mut out) {
                Some((id, guessed)) => (Some(id), guessed),
                None => {
                    self.keep_beside(&call, write.as_ref());
                    return out;
                }
            },
            marked if recorded::is_of_event(&call) => match self.recorders.reconcile_of(&call) {
                Some(id) => (Some(id), false),
                None if call.is_marked_by_context() => (marked, false),
                None => {
                    let id = self.guess(&call, None).or_else(|| self.just_ended(&call));
                    if let Some(id) = &id {
                        self.recorders.guessed(&call, id);
                    }
                    (id, true)
                }
            },
            Some(id) => (Some(id), false),
            None => (self.guess(&call, write.as_ref()), true),
        };
        let number = id.as_deref().and_then(|id| self.number_of(id));
        if let Some(number) = number {
            self.remember(write.as_ref(), number);
        }
        let Some(id) = id else {
            self.keep_beside(&call, write.as_ref());
            return out;
        };
        if let Some(open) = self.open.get_mut(&id) {
            open.call(&call, write, &self.versions, guessed);
            return out;
        }
        if number.is_some() {
            // Its evidence has been handed over already.
            self.keep_beside(&call, write.as_ref());
            return self.late(&id, &call, guessed);
        }
        self.early.push_back((id, call, write));
        if self.early.len() > EARLY {
            self.early.pop_front();
            self.unknown += 1;
        }
        Vec::new()
    }

    /// Events are mostly sent by a goroutine that knows no reconcile.
    fn keep_beside(&mut self, call: &ObservedCall, write: Option<&Write>) {
        let Some(write) = write.filter(|write| write.object.gvk.is_event()) else { return };
        if self.beside.len() < BESIDE {
            self.beside.push(evidence::write_fact(call, write, &Beside { primary: None, read: None }));
        }
    }

    fn number_of(&self, id: &str) -> Option<u64> {
        let open = self.open.get(id).map(|open| open.number);
        open.or_else(|| {
            self.ended.iter().rev().find(|(known, _)| known == id).map(|(_, reconcile)| reconcile.id)
        })
    }

    /// The change that a call has made, and the object before.
    fn write_of(&mut self, call: &ObservedCall) -> Option<Write> {
        if !call.stores() || !(200..300).contains(&call.status) {
            return None;
        }
        let answer = call.answered.as_ref()?;
        if call.verb() == "delete" {
            return self.delete_of(call, answer);
        }
        let object = ObjectRef::of(answer)?;
        let rv = resource_version(answer)?.to_owned();
        let key = object.key();
        let sent = call.sent.as_ref().and_then(resource_version).and_then(|rv| self.versions.at(&key, rv));
        let old =
            if call.verb() == "create" { None } else { sent.or_else(|| self.versions.before(&key, &rv)) };
        // The resourceVersion is one that was there before the call: nothing was stored. The event of a real
        // write may have been seen already, but not before the call came.
        let was_there = call.verb() != "create"
            && (call.sent.as_ref().and_then(resource_version) == Some(&rv)
                || self.versions.seen_before(&key, &rv, call.at)
                || reconcile::applied_before(call, answer));
        let old = if was_there { self.versions.at(&key, &rv) } else { old };
        let unchanged = was_there && !old.as_ref().is_some_and(|old| reconcile::is_let_go(old, answer));
        let new = Arc::new(answer.clone());
        if call.verb() == "create" {
            self.versions.reborn(&key);
        }
        self.versions.keep(&key, &new, call.at);
        let created = call.verb() == "create" || call.status == 201;
        Some(Write { object, rv, old, new: Some(new), created, unchanged, at: call.done(), guessed: false })
    }

    fn delete_of(&mut self, call: &ObservedCall, answer: &Value) -> Option<Write> {
        let named = answer["kind"] == "Status";
        let object = if named {
            let details = &answer["details"];
            let text = |field: &str| details[field].as_str().unwrap_or_default();
            let (group, plural) = (text("group"), text("kind"));
            let gvk = self.kinds.get(&(group.to_owned(), plural.to_owned())).cloned()?;
            let namespace = namespace_of(&call.path);
            ObjectRef { gvk, namespace, name: text("name").to_owned(), uid: Some(text("uid").to_owned()) }
        } else {
            ObjectRef::of(answer)?
        };
        let key = object.key();
        let old = self.versions.newest(&key);
        self.versions.gone(&key);
        let rv = resource_version(answer).unwrap_or_default().to_owned();
        Some(Write {
            object,
            rv,
            old,
            new: None,
            created: false,
            unchanged: false,
            at: call.done(),
            guessed: false,
        })
    }

    /// The reconcile that a call without an id most likely belongs to: the only one that is under way for its
    /// object.
    fn guess(&self, call: &ObservedCall, write: Option<&Write>) -> Option<String> {
        if !call.writes() || self.open.is_empty() {
            return None;
        }
        let sent = call.sent.as_ref().or(call.answered.as_ref())?;
        let about = match event_is_about(call) {
            Some(about) => about,
            None => {
                let object = write.map(|write| write.object.clone()).or_else(|| ObjectRef::of(sent))?;
                let owner = opdev_object::meta::controller(sent);
                let namespace = object.namespace.clone().unwrap_or_default();
                match owner {
                    Some(owner) => (owner.kind, namespace, owner.name),
                    None => (object.gvk.kind, namespace, object.name),
                }
            }
        };
        let mut candidates = self.open.iter().filter(|(_, open)| {
            let object = &open.object;
            (object.gvk.kind.as_str(), object.namespace.as_deref().unwrap_or_default(), object.name.as_str())
                == (about.0.as_str(), about.1.as_str(), about.2.as_str())
        });
        let first = candidates.next()?;
        candidates.next().is_none().then(|| first.0.clone())
    }

    /// The last reconcile of the object that an Event is about, as long as that is not long ago.
    fn just_ended(&self, call: &ObservedCall) -> Option<String> {
        let (kind, namespace, name) = event_is_about(call)?;
        let (id, last) = self.ended.iter().rev().find(|(_, reconcile)| {
            let object = &reconcile.object;
            object.gvk.kind == kind
                && object.namespace.as_deref().unwrap_or_default() == namespace
                && object.name == name
        })?;
        let over = SignedDuration::try_from(last.took).unwrap_or_default();
        (call.at.duration_since(last.at) - over <= recorded::AFTER).then(|| id.clone())
    }

    fn event(&mut self, event: &ObservedEvent) {
        let is_listed = event.kind == ObservedEvent::LISTED;
        if event.object["kind"] == "PartialObjectMetadata" {
            // The rest of it would be missing from every comparison.
            if !is_listed {
                self.guess_cause_of_metadata(event);
            }
            return;
        }
        let Some(object) = ObjectRef::of(&event.object) else { return };
        let key = object.key();
        self.cached.take(event, &key);
        self.learn(Some(&event.object));
        let known = Arc::new(event.object.clone());
        match event.kind.as_str() {
            "DELETED" => {
                self.versions.keep(&key, &known, event.at);
                self.versions.gone(&key);
            }
            "ADDED" | ObservedEvent::LISTED => {
                self.versions.reborn(&key);
                self.versions.keep(&key, &known, event.at);
            }
            "MODIFIED" => self.versions.keep(&key, &known, event.at),
            _ => return,
        }
        // An object that was there already has led to nothing.
        if !is_listed {
            self.guess_cause(event);
        }
    }

    /// Secrets that may be quoted somewhere later.
    fn learn(&mut self, object: Option<&Value>) {
        let Some(object) = object else { return };
        if self.secrets.len() < SECRETS && object["kind"] == "Secret" {
            let found = mask::secrets_of_object(object);
            // Most events show a Secret that is known.
            if found.iter().any(|secret| !self.secrets.contains(secret)) {
                self.secrets.extend(found);
                self.secrets = mask::known(std::mem::take(&mut self.secrets));
            }
        }
    }

    fn learn_kind_of_cache(&mut self, object: &opdev_facts::record::TraceObject) {
        let plural = opdev_object::api_path::plural(&object.kind);
        let gvk = Gvk::new(&object.group, &object.version, &object.kind);
        self.kinds.entry((object.group.clone(), plural)).or_insert(gvk);
    }

    /// The version that a write has made is the reconcile's own.
    fn remember(&mut self, write: Option<&Write>, reconcile: u64) {
        let Some(write) = write.filter(|write| write.has_made_a_version()) else { return };
        let place = (write.object.key(), write.rv.clone());
        if self.written.insert(place.clone(), reconcile).is_none() {
            self.written_order.push_back(place);
        }
        if self.written_order.len() > WRITES
            && let Some(oldest) = self.written_order.pop_front()
        {
            self.written.remove(&oldest);
        }
    }

    fn log(&self, line: &LogRecord) -> LogLine {
        let mut message = line.message.clone();
        for (key, value) in &line.values {
            let secret = mask::is_secret_name(key);
            let value = if secret { mask::MASK } else { value.as_str() };
            message.push_str(&format!(" {key}={value}"));
        }
        if !line.error.is_empty() {
            message.push_str(&format!(" error={}", line.error));
        }
        let level = match line.level {
            ..=-1 => Level::Error,
            0 => Level::Info,
            1 => Level::Debug,
            2.. => Level::Trace,
        };
        LogLine {
            at: time(line.t),
            level,
            target: if line.logger.is_empty() { "operator".to_owned() } else { line.logger.clone() },
            message,
            reconcile: self.number_of(&line.id),
        }
    }

    fn masked(&self, mut line: LogLine) -> Event {
        line.message = mask::text(&line.message, &self.secrets);
        Event::Log(line)
    }
}
