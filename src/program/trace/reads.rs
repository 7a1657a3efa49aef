//! Checks that only one can make who sees both what a process's cache answered and what it wrote. Pure: a
//! reconcile that has ended and what is known of earlier ones go in, findings come out.

use super::surplus_left;
use super::surplus_left::surplus;
use crate::reconcile::{Open, Write};
use jiff::{SignedDuration, Timestamp};
use opdev_event::evidence::StaleFact;
use opdev_event::reconcile::object_change::last_writer;
use opdev_event::{FindingKind, ReadFinding, Reconcile};
use opdev_facts::observed::ObservedCall;
use opdev_facts::record::fields::{reference, time};
use opdev_facts::record::{CacheRead, End, Hello};
use opdev_facts::versions::{Versions, older};
use opdev_object::meta::{self, Gvk, ObjectKey, ObjectRef, controller, label, resource_version};
use serde_json::Value;
use std::collections::{BTreeMap, HashMap, VecDeque};

/// Reconciles in a row that are caused by nothing but own writes until that is called a loop.
const LOOP: u32 = 5;
/// A loop is hot where so many reconciles take less.
const HOT: SignedDuration = SignedDuration::from_secs(10);
/// Objects whose last write is remembered.
const WRITES: usize = 20_000;
/// Fields whose writers are remembered.
const FIELDS: usize = 5_000;
/// Names that a message lists.
const NAMES: usize = 3;

/// The memory of earlier reconciles.
#[derive(Debug, Default)]
pub(crate) struct Memory {
    failed: HashMap<(String, ObjectKey), u32>,
    wrote: HashMap<ObjectKey, LastWrite>,
    streaks: HashMap<(String, ObjectKey), Streak>,
    fields: HashMap<(ObjectKey, String), VecDeque<FieldWrite>>,
    surplus: surplus_left::Told,
    /// The version of controller-runtime, where its reads can wait for the own writes.
    can_wait: Option<String>,
}

impl Memory {
    /// A process says which controller-runtime it has.
    pub(crate) fn reads_can_wait(&mut self, hello: &Hello) {
        self.can_wait = hello.reads_can_wait().then(|| hello.controller_runtime.clone());
    }
}

/// The last thing that the process wrote to an object.
#[derive(Clone, Debug)]
struct LastWrite {
    reconcile: u64,
    rv: String,
    at: Timestamp,
    created: bool,
    deleted: bool,
}

/// Reconciles in a row that nothing but own writes led to.
#[derive(Clone, Copy, Debug)]
struct Streak {
    reconciles: u32,
    since: Timestamp,
    told: bool,
}

/// One write of a field: by whom, and which value.
#[derive(Debug)]
struct FieldWrite {
    controller: String,
    reconcile: u64,
    value: String,
}

impl Memory {
    /// Another process runs: its cache is fresh, and nobody has failed yet.
    pub(crate) fn restarted(&mut self) {
        *self = Memory::default();
    }

    /// How many reconciles of an object have failed in a row, this one included; 0 where it has not failed.
    pub(crate) fn attempt(&mut self, controller: &str, object: &ObjectKey, end: &End) -> u32 {
        let place = (controller.to_owned(), object.clone());
        if end.error.is_empty() && end.panic.is_empty() {
            self.failed.remove(&place);
            return 0;
        }
        let failed = self.failed.entry(place).or_default();
        *failed += 1;
        *failed
    }

    fn remember(&mut self, open: &Open) {
        if self.wrote.len() > WRITES {
            self.wrote.clear();
        }
        for write in open.writes.iter().filter(|write| !write.unchanged) {
            let last = LastWrite {
                reconcile: open.number,
                rv: write.rv.clone(),
                at: write.at,
                created: write.created,
                deleted: write.new.is_none(),
            };
            self.wrote.insert(write.object.key(), last);
        }
    }
}

/// Facts beside the reconcile.
pub(crate) struct Known<'a> {
    pub(crate) versions: &'a Versions,
    /// The reconcile that wrote each version.
    pub(crate) written: &'a HashMap<(ObjectKey, String), u64>,
}

/// The findings of a reconcile that has ended, and the objects of which its cache was behind.
pub(crate) fn findings(
    open: &Open,
    reconcile: &Reconcile,
    known: &Known<'_>,
    memory: &mut Memory,
) -> (Vec<ReadFinding>, Vec<StaleFact>) {
    memory.remember(open);
    let (mut findings, mut behind) = (Vec::new(), Vec::new());
    for read in &open.reads {
        let found = match read.verb.as_str() {
            "get" => stale_get(read, known, memory),
            _ => stale_list(read, known, memory),
        };
        if let Some((finding, missing)) = found {
            let (object, message) = (finding.object.key(), finding.message.clone());
            behind.push(StaleFact { object, missing, message });
            findings.push(finding);
        }
        findings.extend(unrelated(open, read, known));
    }
    for write in &open.writes {
        findings.extend(unordered(open, write));
        findings.extend(without_change(write));
    }
    findings.extend(open.calls.iter().filter_map(|call| conflict(call, known)));
    findings.extend(surplus(open, reconcile, known.versions, &mut memory.surplus));
    findings.extend(hot_loop(open, reconcile, memory));
    findings.extend(fights(open, reconcile, memory));
    (findings, behind)
}

/// A read that was behind; true if the cache did not have the object at all.
fn stale_get(read: &CacheRead, known: &Known<'_>, memory: &Memory) -> Option<(ReadFinding, bool)> {
    let object = reference(&read.object);
    let last = memory.wrote.get(&object.key())?;
    if last.at >= time(read.t) {
        return None;
    }
    // Garbage collection or somebody else may have deleted it since, or have made it again.
    let gone = known.versions.is_gone(&object.key());
    let missing = last.created && read.error == "NotFound" && !gone;
    let what = if last.deleted && read.error.is_empty() && gone {
        format!("the cache still had {object}, which reconcile #{} had deleted", last.reconcile)
    } else if missing {
        format!("the cache did not have {object} yet, which reconcile #{} had created", last.reconcile)
    } else if read.error.is_empty() && !last.deleted && older(&read.object.rv, &last.rv) {
        let (had, wrote) = (&read.object.rv, &last.rv);
        format!(
            "the cache had {object} at resourceVersion {had}, older than {wrote}, which reconcile #{} had written",
            last.reconcile
        )
    } else {
        return None;
    };
    Some((stale(what, object, last.reconcile, memory), missing))
}

fn stale(message: String, object: ObjectRef, reconcile: u64, memory: &Memory) -> ReadFinding {
    let mut hint =
        "a cache is behind for a moment: do not count on it right after a write; use fixed names for \
                    children, or wait for the event of the own write"
            .to_owned();
    if let Some(version) = &memory.can_wait {
        hint.push_str(&format!(
            "; reads of controller-runtime {version} do that where the manager's options set \
             Client.Cache.EnableReadYourWritesConsistency"
        ));
    }
    ReadFinding { kind: FindingKind::StaleRead, message, hint, object, reconcile: Some(reconcile) }
}

/// Objects that the process has made or changed, and that a list lacks or has in an older version.
fn stale_list(read: &CacheRead, known: &Known<'_>, memory: &Memory) -> Option<(ReadFinding, bool)> {
    if !read.error.is_empty() || !read.fields.is_empty() || read.count as usize > read.items.len() {
        return None;
    }
    let items: HashMap<(&str, &str), &str> = read
        .items
        .iter()
        .map(|item| ((item.namespace.as_str(), item.name.as_str()), item.rv.as_str()))
        .collect();
    let of = &read.object;
    let mut behind: Vec<(&ObjectKey, &LastWrite)> = memory
        .wrote
        .iter()
        .filter(|(key, last)| {
            let namespace = key.namespace.as_deref().unwrap_or_default();
            let concerns = key.kind == of.kind
                && key.group == of.group
                && (of.namespace.is_empty() || of.namespace == namespace)
                && last.at < time(read.t);
            if !concerns {
                return false;
            }
            let item = items.get(&(namespace, key.name.as_str()));
            match item {
                Some(_) if last.deleted => known.versions.is_gone(key),
                Some(rv) => older(rv, &last.rv),
                None if last.deleted || known.versions.is_gone(key) => false,
                None => known.versions.newest(key).is_some_and(|object| selected(&object, &read.labels)),
            }
        })
        .collect();
    behind.sort_by(|a, b| a.0.name.cmp(&b.0.name));
    let (first, last) = *behind.first()?;
    let names = names(behind.iter().map(|(key, _)| key.name.as_str()));
    let reconciles: Vec<u64> = behind.iter().map(|(_, last)| last.reconcile).collect();
    let newest = reconciles.iter().max().copied().unwrap_or(last.reconcile);
    let message = format!(
        "the cache listed {} {}; it was behind what reconcile #{newest} had written: {names}",
        read.count,
        if read.count == 1 { of.kind.clone() } else { format!("{}s", of.kind) },
    );
    let object = ObjectRef {
        gvk: Gvk::new(&of.group, &of.version, &of.kind),
        namespace: first.namespace.clone(),
        name: first.name.clone(),
        uid: None,
    };
    let had = items.contains_key(&(first.namespace.as_deref().unwrap_or_default(), first.name.as_str()));
    Some((stale(message, object, newest, memory), !had))
}

/// Returns true if an object has the labels of a selector that only asks for equal ones; others are not
/// judged.
fn selected(object: &Value, selector: &str) -> bool {
    selector.split(',').filter(|term| !term.is_empty()).all(|term| match term.split_once('=') {
        Some((key, value)) if !key.ends_with('!') => {
            label(object, key.trim()) == Some(value.trim_start_matches('=').trim())
        }
        _ => false,
    })
}

fn names<'a>(names: impl Iterator<Item = &'a str>) -> String {
    let all: Vec<&str> = names.collect();
    let shown = all.iter().take(NAMES).copied().collect::<Vec<_>>().join(", ");
    if all.len() > NAMES { format!("{shown} and {} more", all.len() - NAMES) } else { shown }
}

/// A list without a selector that found objects of others beside the object's own.
fn unrelated(open: &Open, read: &CacheRead, known: &Known<'_>) -> Option<ReadFinding> {
    let of = &read.object;
    if read.verb != "list"
        || !read.labels.is_empty()
        || !read.fields.is_empty()
        || of.kind == open.object.gvk.kind
    {
        return None;
    }
    let (mut own, mut others) = (0, Vec::new());
    for item in &read.items {
        let key = ObjectKey {
            group: of.group.clone(),
            kind: of.kind.clone(),
            namespace: Some(item.namespace.clone()).filter(|namespace| !namespace.is_empty()),
            name: item.name.clone(),
        };
        let object = known.versions.newest(&key)?;
        let owner = controller(&object);
        if owner.is_some_and(|owner| owner.kind == open.object.gvk.kind && owner.name == open.object.name) {
            own += 1;
        } else {
            others.push(item.name.as_str());
        }
    }
    let makes = open.writes.iter().any(|write| write.object.gvk.kind == of.kind);
    if others.is_empty() || own == 0 && !makes {
        return None;
    }
    Some(ReadFinding {
        kind: FindingKind::UnrelatedInList,
        message: format!(
            "a list of {} without a selector found {} that {} not {}'s: {}",
            of.kind,
            others.len(),
            if others.len() == 1 { "is" } else { "are" },
            open.object.name,
            names(others.into_iter()),
        ),
        hint: "list with a label that only the object's own children have, or by an index of their owner"
            .to_owned(),
        object: open.object.clone(),
        reconcile: None,
    })
}

/// Lists in the status that were written again in another order.
fn unordered(open: &Open, write: &Write) -> Option<ReadFinding> {
    if write.object.key() != open.object.key() {
        return None;
    }
    let (old, new) = (write.old.as_ref()?.get("status")?, write.new.as_ref()?.get("status")?);
    let path = reordered(old, new, String::from(".status"))?;
    Some(ReadFinding {
        kind: FindingKind::UnorderedStatus,
        message: format!("{path} was written with the same items in another order"),
        hint: "lists from a cache have no order: sort them before they go into the status".to_owned(),
        object: write.object.clone(),
        reconcile: None,
    })
}

fn reordered(old: &Value, new: &Value, path: String) -> Option<String> {
    match (old, new) {
        (Value::Object(old), Value::Object(new)) => {
            old.iter().find_map(|(key, value)| reordered(value, new.get(key)?, format!("{path}.{key}")))
        }
        (Value::Array(a), Value::Array(b)) if a != b && a.len() == b.len() => {
            let sorted = |list: &[Value]| {
                let mut texts: Vec<String> = list.iter().map(Value::to_string).collect();
                texts.sort();
                texts
            };
            (sorted(a) == sorted(b)).then_some(path)
        }
        _ => None,
    }
}

fn without_change(write: &Write) -> Option<ReadFinding> {
    // The object goes with its last finalizer, and what is answered is its last version.
    let last = write
        .new
        .as_ref()
        .is_some_and(|new| meta::deletion_timestamp(new).is_some() && meta::finalizers(new).is_empty());
    (write.unchanged && !last).then(|| ReadFinding {
        kind: FindingKind::WriteWithoutChange,
        message: format!("{} was written although nothing differed", write.object),
        hint: "compare before writing; every such call costs the API server as much as a real one".to_owned(),
        object: write.object.clone(),
        reconcile: None,
    })
}

/// A 409, with who wrote in between.
fn conflict(call: &ObservedCall, known: &Known<'_>) -> Option<ReadFinding> {
    let answer = call.answered.as_ref()?;
    if call.status != 409 || answer["reason"] != "Conflict" || call.disturbed {
        return None;
    }
    let sent = call.sent.as_ref()?;
    let object = ObjectRef::of(sent)?;
    let key = object.key();
    let rv = resource_version(sent)?;
    let (old, new) = (known.versions.at(&key, rv), known.versions.after(&key, rv));
    let newer = new.as_ref().and_then(|new| resource_version(new)).unwrap_or_default().to_owned();
    let reconcile = known.written.get(&(key, newer)).copied();
    let by = new.as_ref().and_then(|new| last_writer(old.as_deref(), new, false));
    let who = match (reconcile, by) {
        (Some(reconcile), _) => format!("the operator itself, in reconcile #{reconcile}"),
        (None, Some(by)) => by,
        (None, None) => "somebody".to_owned(),
    };
    Some(ReadFinding {
        kind: FindingKind::Conflict,
        message: format!(
            "the write of {object} was based on resourceVersion {rv}, but {who} had written in between"
        ),
        hint: "patch only the own fields, or read again and retry on a conflict".to_owned(),
        object,
        reconcile,
    })
}

/// Reconciles that nothing but own writes led to, and that write again.
fn hot_loop(open: &Open, reconcile: &Reconcile, memory: &mut Memory) -> Option<ReadFinding> {
    let place = (open.controller.clone(), open.object.key());
    let writes = open.writes.iter().any(|write| !write.unchanged);
    let own = !open.causes.is_empty() && open.own_writes.len() == open.causes.len();
    if !writes || !own {
        memory.streaks.remove(&place);
        return None;
    }
    let streak = memory.streaks.entry(place).or_insert(Streak { reconciles: 0, since: open.at, told: false });
    streak.reconciles += 1;
    let took = reconcile.at.duration_since(streak.since);
    if streak.reconciles < LOOP || streak.told || took > HOT {
        return None;
    }
    streak.told = true;
    let cause = open.own_writes.last()?.reconcile;
    Some(ReadFinding {
        kind: FindingKind::HotLoop,
        message: format!(
            "{} reconciles in {:.1} s were caused by nothing but the operator's own writes, this one by reconcile #{cause}, and \
             each wrote again",
            streak.reconciles,
            took.as_secs_f64(),
        ),
        hint: "write only what differs; of the object itself watch spec, annotations and labels: predicate.Or of \
               GenerationChangedPredicate, AnnotationChangedPredicate and LabelChangedPredicate"
            .to_owned(),
        object: open.object.clone(),
        reconcile: Some(cause),
    })
}

/// Fields that two controllers write in turn, each time to another value.
fn fights(open: &Open, reconcile: &Reconcile, memory: &mut Memory) -> Vec<ReadFinding> {
    if memory.fields.len() > FIELDS {
        memory.fields.clear();
    }
    let status = reconcile.status.iter().map(|change| (&reconcile.object, change));
    let others =
        reconcile.objects.iter().flat_map(|object| object.changes.iter().map(|c| (&object.object, c)));
    let mut found: BTreeMap<String, ReadFinding> = BTreeMap::new();
    for (object, change) in status.chain(others) {
        let path = change.path.to_string();
        let value = change.new.as_ref().map(Value::to_string).unwrap_or_default();
        let writes = memory.fields.entry((object.key(), path.clone())).or_default();
        writes.push_back(FieldWrite { controller: open.controller.clone(), reconcile: open.number, value });
        if writes.len() > 4 {
            writes.pop_front();
        }
        let [a, b, c, d] = [0, 1, 2, 3].map(|at| writes.get(at));
        let (Some(a), Some(b), Some(c), Some(d)) = (a, b, c, d) else { continue };
        let alternate =
            a.controller == c.controller && b.controller == d.controller && a.controller != b.controller;
        if alternate && a.value == c.value && b.value == d.value && a.value != b.value {
            let message = format!(
                "{object} {path} is written in turn: {} by {}, {} by {}",
                a.value, a.controller, b.value, b.controller
            );
            found.entry(path).or_insert(ReadFinding {
                kind: FindingKind::Fight,
                message,
                hint: "let one controller own the field".to_owned(),
                object: object.clone(),
                reconcile: Some(c.reconcile),
            });
            writes.clear();
        }
    }
    found.into_values().collect()
}
