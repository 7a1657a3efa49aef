//! Reasons for which an object waits, in words: its kind, its reconciles, its conditions, what it owns. Pure
//! reading of the state; empty means that nothing holds it up.

use super::health::Level;
use super::{Seen, State, tree};
use jiff::Timestamp;
use opdev_event::{Action, KindHealth, ObjectChange, Outcome, Reconcile, words};
use opdev_object::meta::{self, ObjectKey, ObjectRef};
use serde_json::Value;
use std::collections::HashSet;
use std::sync::Arc;

/// Owned objects that are named one by one.
const MOST: usize = 12;

/// One thing that holds an object up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wait {
    /// The level: it needs a look, or only time.
    pub level: Level,
    /// The thing that is waited for.
    pub what: String,
    /// Why, where that is known.
    pub why: String,
    /// When it is tried again, where that is known.
    pub until: Option<Timestamp>,
}

impl Wait {
    fn new(level: Level, what: impl Into<String>, why: impl Into<String>) -> Self {
        Wait { level, what: what.into(), why: why.into(), until: None }
    }
}

/// Everything that an object is waiting for, the cause before the effect.
pub fn of(state: &State, seen: &Seen) -> Vec<Wait> {
    let mut waits = Vec::new();
    if state.is_custom(&seen.key.group, &seen.key.kind) {
        kind(state, seen, &mut waits);
        reconciles(state, seen, &mut waits);
    }
    children(state, seen, &mut waits);
    let health = seen.health.clone();
    conditions(&seen.object, health.level, &mut waits);
    if waits.is_empty() && matches!(health.level, Level::Busy | Level::Bad) {
        let counts = health.counts();
        let what = if counts.is_empty() { health.word } else { format!("{counts} ready {}", health.word) };
        waits.push(Wait::new(health.level, what.trim_end(), health.detail.unwrap_or_default()));
    }
    waits
}

/// Custom resources that reconciles have created and no watch has shown yet, each with the reconcile. Until a
/// watch shows them nobody reconciles them, and nothing else says that something is to come. Reconciles of
/// what has gone are left out: what they created goes, too.
pub fn unseen(state: &State) -> Vec<(ObjectKey, u64)> {
    let mut found = Vec::new();
    let is_there = |reconcile: &&Arc<Reconcile>| state.objects.get(&reconcile.object.key()).is_some();
    for reconcile in state.history.all().iter().filter(is_there) {
        // Another namespace may be one that nobody watches.
        let near = |change: &&ObjectChange| {
            change.object.namespace.is_none() || change.object.namespace == reconcile.object.namespace
        };
        let created = reconcile.objects.iter().filter(|change| change.action == Action::Created).filter(near);
        let objects = created.map(|change| &change.object);
        for object in objects.filter(|object| state.is_custom(&object.gvk.group, &object.gvk.kind)) {
            let key = object.key();
            if state.objects.get(&key).is_none() && state.archive.gone_of(&key).is_none() {
                found.push((key, reconcile.id));
            }
        }
    }
    found
}

/// An object that the state shows older than it is here, or not at all although it belongs to one that the
/// state shows. `None` once watches have shown all of them.
pub fn behind(state: &State, there: &[Arc<Value>]) -> Option<ObjectKey> {
    let version = |object: &Value| meta::resource_version(object)?.parse::<u64>().ok();
    let shown: HashSet<&str> =
        state.objects.keys().filter_map(|key| state.objects.get(key)?.object_ref.uid.as_deref()).collect();
    there.iter().find_map(|object| {
        let object_ref = ObjectRef::of(object)?;
        let key = object_ref.key();
        let is_behind = match state.objects.get(&key) {
            Some(seen) => version(&seen.object.read()) < version(object),
            None => {
                let owners = meta::owner_references(object);
                let ours = state.is_custom(&key.group, &key.kind)
                    || owners.iter().any(|owner| shown.contains(owner.uid.as_str()));
                let gone = state.archive.gone_of(&key);
                ours && gone.is_none_or(|gone| gone.seen.object_ref.uid != object_ref.uid)
            }
        };
        is_behind.then_some(key)
    })
}

/// Its kind: served, reconciled, held.
fn kind(state: &State, seen: &Seen, waits: &mut Vec<Wait>) {
    let is = |group: &str, kind: &str| group == seen.key.group && kind == seen.key.kind;
    let name = &seen.key.kind;
    for kind in state.kinds().iter().filter(|kind| is(&kind.gvk.group, &kind.gvk.kind)) {
        if kind.plural.is_empty() {
            let what = format!("the CustomResourceDefinition of {name}");
            waits.push(Wait::new(Level::Bad, what, "the API server does not serve the kind yet"));
        }
        match &kind.health {
            KindHealth::Serving => {}
            KindHealth::Process { program } => {
                let run = state.programs.run_of(program);
                let idle = run.and_then(|run| words::not_running(&run.state));
                if let Some(why) = idle {
                    waits.push(Wait::new(Level::Bad, format!("{program} to run"), why));
                }
            }
            KindHealth::Stale { problem } => {
                let why = format!("{}; the last working one runs", words::diagnostic(problem));
                waits.push(Wait::new(Level::Busy, format!("{} is broken", kind.source), why));
            }
            KindHealth::Disabled { problem } => {
                let why = words::diagnostic(problem);
                waits.push(Wait::new(Level::Bad, format!("{} is broken", kind.source), why));
            }
            KindHealth::Shown { why } => {
                waits.push(Wait::new(Level::Busy, "nothing reconciles this kind", why.as_str()));
            }
        }
    }
    for held in state.impact.held.iter().filter(|held| is(&held.kind.group, &held.kind.kind)) {
        let what = format!("your answer about {}", words::files(&held.files));
        waits.push(Wait::new(Level::Busy, what, held.why.as_str()));
    }
}

/// Its reconciles: under way, failed, waiting.
fn reconciles(state: &State, seen: &Seen, waits: &mut Vec<Wait>) {
    if let Some(running) = state.running.get(seen.key.as_ref()) {
        let why = words::causes_of(&running.object, &running.causes);
        waits.push(Wait::new(Level::Busy, format!("reconcile #{} is under way", running.id), why));
    }
    let Some(last) = state.history.last(&seen.key) else {
        let shown = state.only_shown(&seen.key.group, &seen.key.kind).is_some();
        if waits.is_empty() && !shown {
            waits.push(Wait::new(Level::Busy, "its first reconcile", ""));
        }
        return;
    };
    let until = again(last);
    if let Some(failure) = &last.failure {
        let place = failure.diagnostic.as_ref().map(words::diagnostic);
        let why = place.or_else(|| failure.chain.last().cloned()).unwrap_or_default();
        let what = match failure.attempt {
            0 | 1 => format!("reconcile #{} failed", last.id),
            n => format!("reconcile #{} failed, {n} times in a row", last.id),
        };
        waits.push(Wait { until, ..Wait::new(Level::Bad, what, words::one_line(&why)) });
    } else if let Some(why) = &last.waiting {
        let what = "its reconciler waits";
        waits.push(Wait { until, ..Wait::new(Level::Busy, what, words::one_line(why)) });
    } else if last.outcome == Outcome::Waiting {
        let why =
            last.requeue.as_ref().map(|requeue| words::one_line(requeue.reason.words())).unwrap_or_default();
        waits.push(Wait { until, ..Wait::new(Level::Busy, "its reconcile waits", why) });
    }
}

/// When a reconcile said it would run again.
pub fn again(reconcile: &Reconcile) -> Option<Timestamp> {
    let requeue = reconcile.requeue.as_ref()?;
    reconcile.at.checked_add(reconcile.took).and_then(|at| at.checked_add(requeue.after)).ok()
}

/// Owned objects that are not ready, the first ones in the order of the tree.
fn children(state: &State, seen: &Seen, waits: &mut Vec<Wait>) {
    let nodes = tree::owned(state, &seen.key);
    let bad: Vec<_> =
        nodes.iter().filter(|node| matches!(node.seen.health.level, Level::Busy | Level::Bad)).collect();
    for node in bad.iter().take(MOST) {
        let key = &node.seen.key;
        let counts = node.seen.health.counts();
        let word = words::one_line(&node.seen.health.word);
        let state = match (counts.as_str(), word.as_str()) {
            ("", "") => "not ready".to_owned(),
            ("", word) => word.to_owned(),
            (counts, "") => format!("{counts} ready"),
            (counts, word) => format!("{word}, {counts} ready"),
        };
        let why = words::one_line(node.seen.health.detail.as_deref().unwrap_or_default());
        waits.push(Wait::new(node.seen.health.level, format!("{} {}: {state}", key.kind, key.name), why));
    }
    if bad.len() > MOST {
        let what = format!("and {} more owned objects that are not ready", bad.len() - MOST);
        waits.push(Wait::new(Level::Busy, what, ""));
    }
}

/// Conditions that say bad news when they are true; all others do so when they are not.
pub fn is_bad_news(name: &str) -> bool {
    const ENDINGS: [&str; 9] = [
        "Failed",
        "Failure",
        "Irreconcilable",
        "Stalled",
        "Degraded",
        "Error",
        "Pressure",
        "Unavailable",
        "Reconciling",
    ];
    ENDINGS.iter().any(|ending| name.ends_with(ending))
}

/// Conditions that say neither.
fn is_neutral(name: &str) -> bool {
    matches!(name, "Suspended" | "Paused" | "DisruptionTarget" | "PodReadyToStartContainers" | "Upgradeable")
}

fn conditions(object: &Value, level: Level, waits: &mut Vec<Wait>) {
    let fine = matches!(level, Level::Good | Level::Done);
    let list = object.pointer("/status/conditions").and_then(Value::as_array);
    for condition in list.into_iter().flatten() {
        let text = |field: &str| condition.get(field).and_then(Value::as_str).unwrap_or("");
        let (name, status) = (text("type"), text("status"));
        let bad = is_bad_news(name);
        let holds_up = match status {
            "True" => bad,
            _ => !bad && !fine,
        };
        if !holds_up || is_neutral(name) {
            continue;
        }
        let reason = [text("reason"), text("message")];
        let reason: Vec<&str> = reason.into_iter().filter(|text| !text.is_empty()).collect();
        let level = if bad && name != "Reconciling" { Level::Bad } else { Level::Busy };
        waits.push(Wait::new(
            level,
            format!("condition {name} is {status}"),
            words::one_line(&reason.join(": ")),
        ));
    }
}
