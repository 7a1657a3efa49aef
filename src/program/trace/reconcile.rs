//! One reconcile while it is under way, and what becomes of it when it ends.

use super::evidence::{self, Beside};
use jiff::{SignedDuration, Timestamp};
use opdev_event::evidence::{Handover, WriteFact};
use opdev_event::{
    Action, CachedRead, Call, Cause, Diagnostic, Failure, ObjectChange, Outcome, OwnWrite, Place,
    ProgramTrace, Reconcile, ReconcileStarted, Requeue, RequeueReason, Severity, Step, TraceLevel, mask,
};
use opdev_facts::observed::{ObservedCall, place_in_project};
use opdev_facts::record::fields::{reference, time};
use opdev_facts::record::{Begin, CacheRead, End, LogRecord};
use opdev_facts::versions::Versions;
use opdev_object::diff::{Change, diff, reorderings};
use opdev_object::meta::{self, Gvk, ObjectRef, resource_version};
use opdev_object::path::Segment;
use serde_json::Value;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

/// A reconcile that has begun.
#[derive(Debug)]
pub(crate) struct Open {
    pub(crate) number: u64,
    pub(super) id: String,
    pub(crate) controller: String,
    pub(crate) object: ObjectRef,
    pub(crate) at: Timestamp,
    pub(crate) causes: Vec<Cause>,
    pub(crate) own_writes: Vec<OwnWrite>,
    pub(crate) reads: Vec<CacheRead>,
    pub(crate) writes: Vec<Write>,
    pub(crate) calls: Vec<ObservedCall>,
    /// The evidence of its writes.
    pub(super) facts: Vec<WriteFact>,
    /// True if more led to it than it tells.
    pub(super) more_causes: bool,
    /// The words of its panic, as its log has them.
    pub(super) panic: Option<String>,
    pub(super) queued: Duration,
    guessed: Vec<u32>,
    pub(super) level: TraceLevel,
}

/// The object that a call has stored.
#[derive(Clone, Debug)]
pub(crate) struct Write {
    pub(crate) object: ObjectRef,
    /// The resourceVersion that it led to.
    pub(crate) rv: String,
    /// The object before, where it is known.
    pub(crate) old: Option<Arc<Value>>,
    /// The object after; none where it was deleted.
    pub(crate) new: Option<Arc<Value>>,
    pub(crate) created: bool,
    /// Nothing was stored, for nothing differed.
    pub(crate) unchanged: bool,
    /// When it was answered.
    pub(crate) at: Timestamp,
    /// That it belongs to its reconcile is a guess.
    pub(super) guessed: bool,
}

impl Write {
    /// Returns true if its resourceVersion came with it. One that changed nothing is answered with what was
    /// there, whoever wrote that.
    pub(super) fn has_made_a_version(&self) -> bool {
        let before = self.old.as_deref().and_then(resource_version);
        self.new.is_none() || !self.unchanged && before != Some(&self.rv)
    }

    /// Events tell what was done, and change nothing.
    fn is_event(&self) -> bool {
        self.object.gvk.is_event()
    }
}

/// Returns true if a write took off the last finalizer of an object that is being deleted: it goes, and the
/// answer still has its last version.
pub(super) fn is_let_go(old: &Value, answer: &Value) -> bool {
    meta::is_let_go(answer) && !meta::finalizers(old).is_empty()
}

/// Returns true if an apply changed nothing: one that does renews the time of its manager's entry. What the
/// answer has is somebody else's, who may have written it while the call was on its way.
pub(super) fn applied_before(call: &ObservedCall, answer: &Value) -> bool {
    /// Entries have whole seconds.
    const SECONDS: SignedDuration = SignedDuration::from_secs(2);
    let manager = call.query.split('&').find_map(|part| part.strip_prefix("fieldManager="));
    let entries = answer["metadata"]["managedFields"].as_array();
    let own = entries.into_iter().flatten().filter(|entry| entry["manager"].as_str() == manager);
    let is_old = |entry: &Value| {
        let time = entry["time"].as_str().and_then(|time| time.parse::<Timestamp>().ok());
        entry["operation"] == "Apply" && time.is_some_and(|time| call.at.duration_since(time) > SECONDS)
    };
    let mut own = own.peekable();
    call.method == "PATCH" && manager.is_some() && own.peek().is_some() && own.all(is_old)
}

impl Open {
    pub(super) fn new(
        number: u64,
        begin: &Begin,
        object: ObjectRef,
        causes: Vec<Cause>,
        own_writes: Vec<OwnWrite>,
    ) -> Self {
        let waited = if begin.queued == 0 { 0 } else { begin.t - begin.queued };
        Open {
            number,
            id: begin.id.clone(),
            controller: begin.controller.clone(),
            object,
            at: time(begin.t),
            causes,
            own_writes,
            reads: Vec::new(),
            writes: Vec::new(),
            calls: Vec::new(),
            facts: Vec::new(),
            more_causes: evidence::has_more(begin),
            panic: None,
            queued: Duration::from_nanos(u64::try_from(waited).unwrap_or_default()),
            guessed: Vec::new(),
            level: TraceLevel::Full,
        }
    }

    /// This fact, known in another way than by what the process tells.
    pub(super) fn at_level(self, level: TraceLevel) -> Self {
        Open { level, ..self }
    }

    /// A line of the program's log belongs to it.
    pub(super) fn heard(&mut self) {
        self.level = self.level.min(TraceLevel::Log);
    }

    /// controller-runtime logs the value of a panic, and returns it as an error; a stack does not have it.
    pub(super) fn logged(&mut self, record: &LogRecord) {
        let value = record.values.iter().find(|(name, _)| name == "panic").map(|(_, value)| value.as_str());
        let returned = record.error.strip_prefix("panic: ").map(|text| text.trim_end_matches(" [recovered]"));
        if let Some(said) = value.or(returned) {
            self.panic = Some(said.trim_matches('"').to_owned());
        }
    }

    pub(super) fn started(&self) -> ReconcileStarted {
        ReconcileStarted {
            id: self.number,
            at: self.at,
            object: self.object.clone(),
            causes: self.causes.clone(),
        }
    }

    pub(super) fn call(
        &mut self,
        call: &ObservedCall,
        write: Option<Write>,
        versions: &Versions,
        guessed: bool,
    ) {
        if let Some(write) = &write {
            self.facts.push(self.fact(call, write, versions));
        }
        if guessed {
            self.guessed.push(u32::try_from(self.calls.len()).unwrap_or(u32::MAX));
        }
        self.calls.push(call.clone());
        self.writes.extend(write.map(|write| Write { guessed, ..write }));
    }

    /// A call that was given to this reconcile by a guess is of it.
    pub(super) fn confirm(&mut self, call: &ObservedCall) {
        let place = self.place_of(call).and_then(|place| u32::try_from(place).ok());
        self.guessed.retain(|guessed| Some(*guessed) != place);
    }

    fn place_of(&self, call: &ObservedCall) -> Option<usize> {
        self.calls.iter().position(|known| known.at == call.at && known.path == call.path)
    }

    /// Takes a call off that is of another reconcile; gives what it stored.
    pub(super) fn take_off(&mut self, call: &ObservedCall) -> Option<Write> {
        let place = self.place_of(call)?;
        self.calls.remove(place);
        without(&mut self.guessed, u32::try_from(place).unwrap_or(u32::MAX));
        let done = call.done();
        let place = self.writes.iter().position(|write| write.at == done && write.is_event())?;
        let write = self.writes.remove(place);
        self.facts.retain(|fact| fact.at != done || fact.event.is_none());
        Some(write)
    }

    fn fact(&self, call: &ObservedCall, write: &Write, versions: &Versions) -> WriteFact {
        let (key, primary) = (write.object.key(), versions.newest(&self.object.key()));
        let read =
            self.reads.iter().rev().find(|read| {
                read.verb == "get" && read.error.is_empty() && reference(&read.object).key() == key
            });
        let read = read.and_then(|read| versions.at(&key, &read.object.rv));
        let beside = Beside { primary: primary.as_deref(), read: read.as_deref() };
        evidence::write_fact(call, write, &beside)
    }

    /// The kind of the object where the controller does not say it: that of what the reconcile read under its
    /// name.
    fn kind_by_reads(&self, kinds: &HashMap<(String, String), Gvk>) -> Option<Gvk> {
        let namespace = self.object.namespace.as_deref().unwrap_or_default();
        let mut read = self.reads.iter().map(|read| &read.object);
        let read = read.find(|read| read.name == self.object.name && read.namespace == namespace)?;
        let known = kinds.values().find(|gvk| gvk.kind == read.kind && gvk.group == read.group).cloned();
        Some(known.unwrap_or_else(|| Gvk::new(&read.group, &read.version, &read.kind)))
    }

    /// The reconcile as it is shown.
    pub(super) fn ended(&self, end: &End, attempt: u32, kinds: &HashMap<(String, String), Gvk>) -> Reconcile {
        let took = between(self.at, time(end.t));
        let (status, objects) = self.changes(true);
        let (own_status, own_objects) = self.changes(false);
        let changed = !own_status.is_empty() || !own_objects.is_empty();
        let mut object = self.object.clone();
        if object.gvk.kind.is_empty()
            && let Some(gvk) = self.kind_by_reads(kinds)
        {
            object.gvk = gvk;
        }
        let reads: Vec<CachedRead> = self.reads.iter().map(|read| self.read(read)).collect();
        let disturbed = self.calls.iter().enumerate().filter(|(_, call)| call.disturbed);
        let disturbed_calls = disturbed.map(|(at, _)| u32::try_from(at).unwrap_or(u32::MAX)).collect();
        Reconcile {
            id: self.number,
            outcome: self.outcome(end, changed),
            causes: self.causes.clone(),
            sources: 0,
            at: self.at,
            queued: self.queued,
            took,
            steps: vec![Step { name: "reconcile".to_owned(), start: Duration::ZERO, took }],
            calls: self.calls.iter().map(|call| call_of(call, self.at)).collect(),
            status,
            objects,
            // When a program tries again that tells nothing is not known.
            requeue: requeue(end, attempt).filter(|_| self.level == TraceLevel::Full),
            waiting: None,
            failure: failure(end, attempt, self.panic.as_deref()),
            releases: Vec::new(),
            process: Some(Box::new(ProgramTrace {
                controller: self.controller.clone(),
                reconcile_id: self.id.clone(),
                traced: self.level,
                reads,
                own_writes: self.own_writes.clone(),
                guessed_calls: self.guessed.clone(),
                disturbed_calls,
                late_calls: 0,
                told_again: false,
                findings: Vec::new(),
                evidence: Handover::default(),
            })),
            object,
        }
    }

    fn outcome(&self, end: &End, changed: bool) -> Outcome {
        let own_read = self.reads.iter().find(|read| {
            read.verb == "get"
                && read.object.kind == self.object.gvk.kind
                && read.object.name == self.object.name
        });
        if !end.error.is_empty() || !end.panic.is_empty() {
            Outcome::Failed
        } else if changed {
            Outcome::Applied
        } else if own_read.is_some_and(|read| read.error == "NotFound") {
            Outcome::Gone
        } else {
            Outcome::Unchanged
        }
    }

    /// The changes in the object's own status, and everything else that was written; masked. Whether a
    /// reconcile has changed something is decided without what is only guessed to be its own.
    fn changes(&self, with_guessed: bool) -> (Vec<Change>, Vec<ObjectChange>) {
        let (mut status, mut objects) = (Vec::new(), Vec::new());
        let writes = self.writes.iter().filter(|write| with_guessed || !write.guessed);
        for write in writes.filter(|write| !write.unchanged && !write.is_event()) {
            let own = write.object.key() == self.object.key();
            let kind = write.object.gvk.kind.as_str();
            let (Some(new), false) = (&write.new, write.created) else {
                let action = if write.created { Action::Created } else { Action::Deleted };
                objects.push(change(&write.object, action, Vec::new()));
                continue;
            };
            let changes = write.old.as_ref().map(|old| diff_with_order(old, new)).unwrap_or_default();
            let changes =
                mask::changes(kind, changes.into_iter().filter(|change| !bookkeeping(change)).collect());
            let (of_status, rest): (Vec<Change>, Vec<Change>) =
                changes.into_iter().partition(|change| own && top(change) == "status");
            status.extend(of_status);
            if !rest.is_empty() || !own {
                objects.push(change(&write.object, Action::Updated, rest));
            }
        }
        (status, objects)
    }

    fn read(&self, read: &CacheRead) -> CachedRead {
        let selectors = [read.labels.as_str(), read.fields.as_str()];
        let selectors: Vec<&str> = selectors.into_iter().filter(|selector| !selector.is_empty()).collect();
        CachedRead {
            verb: read.verb.clone(),
            object: reference(&read.object),
            resource_version: read.object.rv.clone(),
            count: (read.verb == "list" && read.error.is_empty()).then_some(read.count),
            selector: selectors.join(" "),
            start: between(self.at, time(read.t)),
            took: Duration::from_nanos(u64::try_from(read.took).unwrap_or_default()),
            waited: Duration::from_nanos(u64::try_from(read.waited).unwrap_or_default()),
            problem: read.error.clone(),
        }
    }
}

fn change(object: &ObjectRef, action: Action, changes: Vec<Change>) -> ObjectChange {
    ObjectChange { object: object.clone(), action, changes, taken_from: Vec::new() }
}

/// The differences; a list whose items changed places is one change.
fn diff_with_order(old: &Value, new: &Value) -> Vec<Change> {
    let orders = reorderings(old, new);
    let within = |change: &Change| orders.iter().any(|order| change.path.starts_with(&order.path));
    let mut changes: Vec<Change> = diff(old, new).into_iter().filter(|change| !within(change)).collect();
    changes.extend(orders);
    changes
}

fn top(change: &Change) -> &str {
    match change.path.0.first() {
        Some(Segment::Field(name)) => name,
        _ => "",
    }
}

fn bookkeeping(change: &Change) -> bool {
    let second = match change.path.0.get(1) {
        Some(Segment::Field(name)) => name.as_str(),
        _ => "",
    };
    top(change) == "metadata" && matches!(second, "resourceVersion" | "generation" | "managedFields")
}

/// A call as every reconcile shows it.
pub(super) fn call_of(call: &ObservedCall, began: Timestamp) -> Call {
    let refused = call.answered.as_ref().filter(|_| call.status >= 400 || call.status == 0);
    let reason = refused.and_then(|status| status["reason"].as_str()).filter(|reason| !reason.is_empty());
    let path = match call.query.as_str() {
        "" => call.path.clone(),
        query => format!("{}?{query}", call.path),
    };
    Call {
        verb: call.verb().to_owned(),
        path,
        target: call.target(),
        start: between(began, call.at),
        took: Duration::from_micros(call.took_micros),
        status: call.status,
        reason: reason.map(str::to_owned),
        place: call.place(),
    }
}

/// Takes one out of the places of guessed calls; those behind it move up.
pub(super) fn without(guessed: &mut Vec<u32>, place: u32) {
    guessed.retain(|known| *known != place);
    guessed.iter_mut().filter(|known| **known > place).for_each(|known| *known -= 1);
}

/// Where a call stands among those of a reconcile that began at `began`.
pub(super) fn place_in(calls: &[Call], began: Timestamp, call: &ObservedCall) -> Option<u32> {
    let start = between(began, call.at);
    let is_it =
        |known: &Call| known.start == start && known.path.split('?').next() == Some(call.path.as_str());
    calls.iter().position(is_it).and_then(|place| u32::try_from(place).ok())
}

/// From one time to another; zero where that is not later.
fn between(from: Timestamp, to: Timestamp) -> Duration {
    Duration::try_from(to.duration_since(from)).unwrap_or_default()
}

fn requeue(end: &End, attempt: u32) -> Option<Requeue> {
    let failed = !end.error.is_empty() || !end.panic.is_empty();
    if failed && !end.terminal {
        // The queue's own limiter, unless the program has chosen another one.
        let after = Duration::from_millis(5).saturating_mul(1 << attempt.saturating_sub(1).min(17));
        return Some(Requeue { after: after.min(Duration::from_secs(1000)), reason: RequeueReason::Retry });
    }
    let reason = RequeueReason::Asked;
    if end.requeue_after > 0 {
        return Some(Requeue { after: Duration::from_nanos(end.requeue_after.unsigned_abs()), reason });
    }
    end.requeue.then(|| Requeue { after: Duration::from_millis(5), reason })
}

fn failure(end: &End, attempt: u32, words: Option<&str>) -> Option<Failure> {
    let mut diagnostic = None;
    let chain = if !end.panic.is_empty() {
        let words =
            words.map_or_else(|| "the reconciler panicked".to_owned(), |words| format!("panic: {words}"));
        let place = panic_place(end);
        diagnostic = place.as_ref().map(|(place, _)| Diagnostic {
            severity: Severity::Error,
            message: words.clone(),
            place: Some(place.clone()),
            excerpt: None,
            hint: None,
            kind: None,
        });
        let said = place.map_or_else(
            || end.panic.lines().next().unwrap_or_default().to_owned(),
            |(place, called)| format!("{place} in {called}"),
        );
        vec![words, said]
    } else if !end.error.is_empty() {
        vec![end.error.clone()]
    } else {
        return None;
    };
    Some(Failure { chain, diagnostic, attempt })
}

/// The first place below the call of `panic` in a goroutine's stack, and the function that it is in.
pub(super) fn panic_place(end: &End) -> Option<(Place, String)> {
    let (place, called) = place_of_stack(&end.panic)?;
    Some((place_in_project(&end.panic_place).unwrap_or(place), called))
}

fn place_of_stack(stack: &str) -> Option<(Place, String)> {
    let mut lines = stack.lines().skip_while(|line| !line.starts_with("panic(")).skip(2);
    let frames: Vec<(&str, &str)> =
        std::iter::from_fn(|| Some((lines.next()?.trim(), lines.next()?.trim()))).collect();
    let is_foreign = |place: &str| {
        place.contains("/src/runtime/") || place.contains("/pkg/mod/") || place.contains("/vendor/")
    };
    let own = frames.iter().find(|(_, place)| !is_foreign(place));
    let (called, place) = own.or_else(|| frames.first())?;
    let place = place.split(" +0x").next().unwrap_or_default();
    let (file, line) = place.rsplit_once(':')?;
    // Addresses follow the name.
    let called = called.rsplit_once('(').map_or(*called, |(name, _)| name);
    let called = called.rsplit('/').next().unwrap_or_default();
    Some((Place { file: file.to_owned(), line: line.parse().ok()?, column: 0 }, called.to_owned()))
}
