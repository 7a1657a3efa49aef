//! The reconciles of one object by one controller: paths that are written again and again, requests to run
//! again that lead to nothing, children that are looked after. Counts begin anew with each event from
//! outside.

use super::failures::Failures;
use super::names::is_never;
use super::templates::ReadConfigs;
use super::wakes::Wakes;
use jiff::Timestamp;
use opdev_event::CauseKind;
use opdev_event::evidence::{Evidence, FieldFact, ReadFact, WriteFact, WriteVerb};
use opdev_object::meta::{ObjectKey, ObjectRef};
use std::collections::{HashMap, HashSet, VecDeque};
use std::time::Duration;

/// Writes of one path whose times are kept.
pub const KEPT: usize = 12;
/// The version of an object that is not there.
pub const ABSENT: &str = "-";
/// Fields of objects that a reconcile has written.
type WrittenFields = HashSet<(ObjectKey, String)>;

/// Facts about the reconciles of one object by one controller.
#[derive(Clone, Debug, Default)]
pub struct Track {
    pub object: ObjectRef,
    /// Reconciles so far.
    pub count: u64,
    pub began: Timestamp,
    pub ended: Timestamp,
    pub requeue: Option<Duration>,
    /// The period that its good reconciles ask for.
    pub period: Option<Duration>,
    /// The error or the panic that its newest reconcile ended with; empty where it ended well.
    pub error: String,
    pub errors: u32,
    /// True if a simulated pod may be why the newest reconcile failed.
    pub by_pods: bool,
    pub errors_since: Timestamp,
    /// Failures in a row, whatever their errors.
    pub failures: Failures,
    /// When something from outside led to a reconcile last.
    pub(crate) outside_at: Timestamp,
    /// When it has written the status of its object last.
    pub status_at: Option<Timestamp>,
    /// When the reconcile before the newest one ended.
    pub ended_before: Timestamp,
    /// A change from outside of an object that it has read.
    pub unheard: Option<Unheard>,
    /// Paths that were written since the last event from outside.
    pub fields: HashMap<(ObjectKey, String), Field>,
    /// Status writes in a row that changed nothing but times.
    pub times_only: u32,
    /// Writes in a row that changed nothing, by object.
    pub unchanged: HashMap<ObjectKey, u32>,
    /// Reconciles in a row that asked to run again and did nothing.
    pub idle: u32,
    pub idle_since: Timestamp,
    idle_calls: u64,
    /// Children that were read or written, with the number of the reconcile that did so last.
    pub touched: HashMap<ObjectKey, u64>,
    /// The object that the newest reconcile touched last, and the one before the newest generation.
    last_touched: (Option<ObjectKey>, Option<ObjectKey>),
    generation: i64,
    /// The reconcile that saw this generation first.
    pub renewed: u64,
    /// True if it has written the status of its object.
    pub writes_status: bool,
    /// Versions of other objects that it has read by name, in the last reconcile and in the one before.
    pub versions: (HashMap<ObjectKey, String>, HashMap<ObjectKey, String>),
    /// Fields that it has written, in the last reconcile and in the one before; a create is `+`, a deletion
    /// `-`.
    pub written: (WrittenFields, WrittenFields),
    /// Kinds of which it has deleted objects, with the number of the reconcile that did so first.
    deleted: HashMap<String, u64>,
    /// When children were made since the last event from outside, by kind.
    pub made: HashMap<String, VecDeque<Timestamp>>,
    /// True if a timer of at least a second led to its last reconcile.
    pub by_timer: bool,
    /// The changes that led to its newest reconciles.
    pub wakes: Wakes,
    /// Configuration that its newest reconcile has read by name.
    pub configs: ReadConfigs,
}

/// A change that nobody has answered.
#[derive(Clone, Debug)]
pub struct Unheard {
    pub at: Timestamp,
    pub object: ObjectKey,
    /// `changed`, `made` or `deleted`.
    pub how: &'static str,
    /// True if opdev has asked for a reconcile because of it.
    pub asked: bool,
}

/// A path that is written again and again.
#[derive(Clone, Debug, Default)]
pub struct Field {
    pub times: VecDeque<Timestamp>,
    pub count: u32,
    values: VecDeque<u64>,
    /// Number of times that a value came back.
    pub back: u32,
    /// Number of times that nothing but the order differed.
    pub order: u32,
    pub items: u32,
    pub only_times: bool,
    /// True if each value was new, and one string, number or switch.
    pub fresh: bool,
    pub shown: (String, String),
}

impl Track {
    pub(crate) fn take_writes(&mut self, evidence: &Evidence) {
        let mut only_times = None;
        for write in evidence.writes.iter().filter(|write| !is_never(&write.object)) {
            let key = write.object.key();
            if write.unchanged {
                *self.unchanged.entry(key).or_default() += 1;
                continue;
            }
            self.unchanged.remove(&key);
            if write.created {
                let made = self.made.entry(write.object.gvk.kind.clone()).or_default();
                made.push_back(write.at);
                while made.len() > 64 {
                    made.pop_front();
                }
            }
            if key == evidence.object.key() && write.subresource == "status" && !write.fields.is_empty() {
                let times = write.fields.iter().all(|field| field.time);
                only_times = Some(only_times.unwrap_or(true) && times);
            }
            for field in write.fields.iter().filter(|field| field.sent && field.old != field.new) {
                let moved = has_moved(write, field);
                let known = self.fields.entry((key.clone(), field.path.clone())).or_default();
                known.take(field, write.at, (self.by_timer, moved));
            }
        }
        self.times_only = match only_times {
            Some(true) if !self.by_timer => self.times_only + 1,
            Some(_) => 0,
            None => self.times_only,
        };
    }

    pub(crate) fn take_idle(&mut self, evidence: &Evidence) {
        let wrote = evidence.writes.iter().any(|write| !is_never(&write.object) && !write.unchanged);
        let woken = evidence.causes.iter().any(|cause| matches!(cause.kind, CauseKind::Watch { .. }));
        let soon = evidence.requeue.is_some_and(|after| after < Duration::from_secs(1));
        if wrote || woken || !soon || !evidence.error.is_empty() || !evidence.refusals.is_empty() {
            self.idle = 0;
        } else {
            if self.idle == 0 || self.idle_calls != evidence.calls {
                (self.idle, self.idle_since) = (0, evidence.at);
            }
            self.idle += 1;
        }
        self.idle_calls = evidence.calls;
    }

    /// Takes in what it wrote, by field.
    pub(crate) fn take_written(&mut self, evidence: &Evidence) {
        let writes = evidence.writes.iter().filter(|write| !write.unchanged && !is_never(&write.object));
        let fields = writes.flat_map(|write| {
            let key = write.object.key();
            written(write).into_iter().map(move |field| (key.clone(), field.to_owned()))
        });
        let fields = fields.take(256).collect();
        for write in evidence.writes.iter().filter(|write| write.verb == WriteVerb::Delete) {
            self.deleted.entry(write.object.gvk.kind.clone()).or_insert(self.count);
        }
        self.written.1 = std::mem::replace(&mut self.written.0, fields);
    }

    /// True if the reconcile before had written the same field, made the same object or deleted it, or if an
    /// earlier one had deleted any of its kind: pods that are made again have other names.
    pub(crate) fn has_written(&self, write: &WriteFact, field: &str) -> bool {
        let kind = self.deleted.get(&write.object.gvk.kind);
        self.written.1.contains(&(write.object.key(), field.to_owned()))
            || field == "-" && kind.is_some_and(|first| *first < self.count)
    }

    /// Takes in the versions of objects that were read by name.
    pub(crate) fn take_versions(&mut self, evidence: &Evidence) {
        let single = evidence.reads.iter().chain(&evidence.live_reads).filter(|read| read.objects.len() == 1);
        let others = single.filter(|read| {
            read.objects[0] != evidence.object.key() && (read.missing || !read.version.is_empty())
        });
        let version = |read: &ReadFact| if read.missing { ABSENT.to_owned() } else { read.version.clone() };
        let read = others.map(|read| (read.objects[0].clone(), version(read))).take(64).collect();
        self.versions.1 = std::mem::replace(&mut self.versions.0, read);
        let primary = evidence.object.key();
        let status = |write: &opdev_event::evidence::WriteFact| {
            write.object.key() == primary && write.subresource == "status"
        };
        if let Some(write) = evidence.writes.iter().rev().find(|write| status(write)) {
            (self.writes_status, self.status_at) = (true, Some(write.at));
        }
    }

    pub(crate) fn take_touched(&mut self, evidence: &Evidence, generation: Option<i64>) {
        let count = self.count;
        let read = evidence.reads.iter().chain(&evidence.live_reads);
        let read = read.flat_map(|read| read.objects.iter());
        for key in read.filter(|key| **key != evidence.object.key()) {
            self.touched.insert(key.clone(), count);
        }
        for write in evidence.writes.iter().filter(|write| !is_never(&write.object)) {
            if write.object.key() != evidence.object.key() {
                self.touched.insert(write.object.key(), count);
            }
        }
        if self.touched.len() > 1_000 {
            self.touched.retain(|_, last| *last + 3 > count);
        }
        let newest = evidence.generation.max(generation);
        if let Some(generation) = newest.filter(|generation| *generation > self.generation) {
            (self.generation, self.renewed) = (generation, count);
            self.last_touched.1 = self.last_touched.0.take();
        }
        let other = |key: &&ObjectKey| **key != evidence.object.key();
        let mut read = evidence.reads.iter().rev().flat_map(|read| read.objects.iter().rev());
        let read = read.find(other).cloned();
        let written = || evidence.writes.iter().rev().map(|write| write.object.key()).find(|key| other(&key));
        self.last_touched.0 = read.or_else(written);
    }

    /// True if the newest reconcile wrote nothing, and did not stop before it had seen all: one that asks to
    /// run again goes as far as the reconciles before the newest generation went.
    pub fn has_come_to_its_end(&self) -> bool {
        let as_far = self.last_touched.0 == self.last_touched.1;
        self.written.0.is_empty() && (self.requeue.is_none() || as_far)
    }
}

/// True for an item of a list without a key that is longer or shorter than before: each item may have the
/// value of another one then.
fn has_moved(write: &WriteFact, field: &FieldFact) -> bool {
    let at = |other: &&FieldFact| other.path == field.path;
    let items = write.fields.iter().filter(at);
    field.path.contains("[]") && items.into_iter().any(|item| item.old == 0 || item.new == 0)
}

/// Fields of a write; a create is `+`, a deletion `-`.
pub(crate) fn written(write: &WriteFact) -> Vec<&str> {
    match write.verb {
        _ if write.created => vec!["+"],
        WriteVerb::Delete => vec!["-"],
        _ => write.fields.iter().filter(|field| field.sent).map(|field| field.path.as_str()).collect(),
    }
}

impl Field {
    fn take(&mut self, field: &FieldFact, at: Timestamp, (by_timer, moved): (bool, bool)) {
        if self.count == 0 {
            (self.only_times, self.fresh) = (true, true);
            self.values.push_back(field.old);
        }
        self.count += 1;
        self.only_times &= field.time;
        // The value that it has just now is not one that comes back. Items of a list without a key have one
        // path: where one more comes first, each takes the value of another.
        let known = self.values.iter().rev().skip(1).any(|value| *value == field.new);
        self.back += u32::from(known && !moved && field.new != 0);
        self.fresh &= field.scalar && !known && !field.grew;
        if let Some(items) = field.reordered {
            (self.order, self.items) = (self.order + 1, items);
        }
        self.values.push_back(field.new);
        while self.values.len() > 5 {
            self.values.pop_front();
        }
        if !by_timer {
            self.times.push_back(at);
        }
        while self.times.len() > KEPT {
            self.times.pop_front();
        }
        self.shown.clone_from(&field.shown);
    }
}
