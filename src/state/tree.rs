//! The tree of owned objects, and its summary in the row of a custom resource.

use super::health::Level;
use super::{Seen, State};
use jiff::Timestamp;
use opdev_event::{Outcome, words};
use opdev_object::meta::ObjectKey;
use std::cmp::Reverse;
use std::collections::{BTreeSet, HashSet, VecDeque};
use std::sync::Arc;

/// How many objects are looked for below one object; who has met as many says so.
pub const MOST: usize = 5_000;

/// One line of the tree.
#[derive(Clone, Debug)]
pub struct Node {
    /// The object.
    pub seen: Arc<Seen>,
    /// For every level above, whether more siblings follow there; the last one is for this node itself.
    pub more: Vec<bool>,
    /// Older siblings of the same line that are not shown: revisions, scaled-down ReplicaSets.
    pub older: usize,
    /// When it was found to be gone; `None` while it is there.
    pub gone: Option<Timestamp>,
}

/// Objects that were met on a walk, told apart by where their keys are: a state has each key once.
type Met = HashSet<*const ObjectKey>;

/// The tree below an object, depth first; the object itself is left out.
pub fn owned(state: &State, root: &ObjectKey) -> Vec<Node> {
    let mut nodes = Vec::new();
    if let Some(seen) = state.objects.get(root) {
        let mut met = Met::from([Arc::as_ptr(&seen.key)]);
        below(state, seen, &mut Vec::new(), &mut met, &mut nodes);
    }
    nodes
}

fn below(state: &State, owner: &Arc<Seen>, more: &mut Vec<bool>, met: &mut Met, out: &mut Vec<Node>) {
    let children = children(state, owner);
    let count = children.len();
    for (i, (seen, older)) in children.into_iter().enumerate() {
        if out.len() >= MOST || !met.insert(Arc::as_ptr(&seen.key)) {
            continue;
        }
        more.push(i + 1 < count);
        out.push(Node { seen: Arc::clone(&seen), more: more.clone(), older, gone: None });
        below(state, &seen, more, met, out);
        more.pop();
    }
}

/// Objects that belonged to this one, directly or through others, and are gone; the one that went last comes
/// first.
pub fn gone_below(state: &State, root: &ObjectKey) -> Vec<Node> {
    let Some(root) = state.present_or_gone(root) else { return Vec::new() };
    let gone: Vec<_> =
        state.archive.gone().iter().filter(|gone| state.gone_at(&gone.seen.key).is_some()).collect();
    if gone.is_empty() {
        return Vec::new();
    }
    let present = owned(state, &root.key).into_iter().map(|node| node.seen);
    let mut owners: BTreeSet<String> =
        present.chain([Arc::clone(root)]).filter_map(|seen| seen.object_ref.uid.clone()).collect();
    // Owners may have gone before or after what they owned: as often as it takes.
    let mut below: BTreeSet<usize> = BTreeSet::new();
    loop {
        let before = below.len();
        for (i, gone) in gone.iter().enumerate() {
            if gone.seen.owner_uids().any(|owner| owners.contains(owner)) && below.insert(i) {
                owners.extend(gone.seen.object_ref.uid.clone());
            }
        }
        if below.len() == before {
            break;
        }
    }
    let newest_first = below.into_iter().rev().filter(|i| {
        // The newest of several objects with one name stands for all.
        !gone[i + 1..].iter().any(|later| later.seen.key == gone[*i].seen.key)
    });
    newest_first
        .map(|i| Node {
            seen: Arc::clone(&gone[i].seen),
            more: vec![false],
            older: 0,
            gone: Some(gone[i].at),
        })
        .collect()
}

/// Custom resources that are gone, the one that went last first.
pub fn gone_customs(state: &State) -> Vec<Arc<Seen>> {
    let mut met = BTreeSet::new();
    let gone = state.archive.gone().iter().rev().map(|gone| &gone.seen);
    let customs = gone.filter(|seen| state.is_custom(&seen.key.group, &seen.key.kind));
    let customs = customs.filter(|seen| state.objects.get(&seen.key).is_none());
    customs.filter(|seen| met.insert(Arc::clone(&seen.key))).cloned().collect()
}

/// Owned objects in the order of the tree, each with the number of older ones it stands for.
fn children(state: &State, owner: &Seen) -> Vec<(Arc<Seen>, usize)> {
    // The order of each is computed once: for thousands, comparisons would cost a frame.
    let order = |seen: &Seen| (rank(&seen.key), Reverse(revision(seen)));
    let mut all: Vec<_> = state.objects.owned_by(owner).into_iter().map(|seen| (order(seen), seen)).collect();
    all.sort_by(|((a_rank, a_revision), a), ((b_rank, b_revision), b)| {
        let by_kind = a_rank.cmp(b_rank).then_with(|| a.key.kind.cmp(&b.key.kind));
        by_kind.then_with(|| a_revision.cmp(b_revision)).then_with(|| a.key.name.cmp(&b.key.name))
    });
    let mut out: Vec<(Arc<Seen>, usize)> = Vec::with_capacity(all.len());
    for (_, seen) in all {
        match out.last_mut() {
            Some((newer, older)) if is_older(newer, seen) => *older += 1,
            _ => out.push((Arc::clone(seen), 0)),
        }
    }
    out
}

/// The order of kinds: what runs first, what it is reached by, what it is made of, records last.
fn rank(key: &ObjectKey) -> u8 {
    match (key.group.as_str(), key.kind.as_str()) {
        ("apps", "Deployment") => 0,
        ("apps", "StatefulSet") => 1,
        ("apps", "DaemonSet") => 2,
        ("batch", "Job") => 4,
        ("batch", _) => 3,
        ("apps", "ReplicaSet") => 5,
        ("", "Pod") => 6,
        ("", "Service") => 8,
        ("networking.k8s.io" | "gateway.networking.k8s.io" | "discovery.k8s.io", _) => 9,
        ("", "PersistentVolumeClaim") => 10,
        ("autoscaling" | "policy", _) => 11,
        ("", "ConfigMap") => 12,
        ("", "Secret") if key.name.starts_with("sh.helm.release.") => 30,
        ("", "Secret") => 13,
        ("", "ServiceAccount") => 14,
        ("rbac.authorization.k8s.io", _) => 15,
        ("apps", "ControllerRevision") => 29,
        _ => 7,
    }
}

/// The generation of an object that has several: releases and ReplicaSets count theirs.
fn revision(seen: &Seen) -> Option<i64> {
    match seen.key.kind.as_str() {
        "Secret" => release(&seen.key.name).map(|(_, revision)| revision),
        "ReplicaSet" => seen.generation.revision,
        _ => None,
    }
}

/// The release and the revision that the name of a release record tells.
fn release(name: &str) -> Option<(&str, i64)> {
    let (release, revision) = name.strip_prefix("sh.helm.release.v1.")?.rsplit_once(".v")?;
    Some((release, revision.parse().ok()?))
}

/// Returns true if an object is but an older generation of the one before it in the list.
fn is_older(newer: &Seen, seen: &Seen) -> bool {
    if newer.key.kind != seen.key.kind || newer.key.group != seen.key.group {
        return false;
    }
    match seen.key.kind.as_str() {
        "Secret" => match (release(&newer.key.name), release(&seen.key.name)) {
            (Some((a, _)), Some((b, _))) => a == b,
            _ => false,
        },
        "ReplicaSet" => seen.generation.is_scaled_down,
        _ => false,
    }
}

/// A custom resource in one row.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Row {
    /// Good or bad, the worst of all that belongs to it.
    pub level: Level,
    /// Its own word, such as `Deployed`.
    pub word: String,
    /// Ready and wanted, summed over its workloads.
    pub ready: Option<(i64, i64)>,
    /// The error, with its place.
    pub fault: Option<String>,
    /// True if a reconcile for it is under way.
    pub running: bool,
}

/// A custom resource in one row.
pub fn row(state: &State, seen: &Arc<Seen>) -> Row {
    let own = seen.health.clone();
    let mut row = Row {
        level: own.level,
        word: own.word,
        ready: None,
        fault: (own.level == Level::Bad).then(|| own.detail.unwrap_or_default()),
        running: state.running.contains_key(&seen.key),
    };
    let last = state.history.last(&seen.key);
    if let Some(failure) = last.filter(|p| p.outcome == Outcome::Failed).and_then(|p| p.failure.as_ref()) {
        row.level = Level::Bad;
        let place = failure.diagnostic.as_ref().map(words::diagnostic);
        row.fault = place.or_else(|| failure.chain.last().cloned()).or(row.fault);
    }
    let mut met = Met::from([Arc::as_ptr(&seen.key)]);
    sum(state, seen, true, &mut row, &mut met);
    // One that says nothing of itself is as good as what it runs.
    if row.level == Level::Plain && row.ready.is_some_and(|(ready, wanted)| ready == wanted && wanted > 0) {
        row.level = Level::Good;
    }
    row
}

/// Adds up what the workloads below say. Counts come from the topmost ones, faults from anywhere.
fn sum(state: &State, owner: &Seen, counting: bool, row: &mut Row, met: &mut Met) {
    for seen in state.objects.owned_by(owner) {
        if met.len() > MOST || !met.insert(Arc::as_ptr(&seen.key)) {
            continue;
        }
        let health = &seen.health;
        let mut below = counting;
        if counting
            && counts(&seen.key)
            && let Some((ready, wanted)) = health.ready
        {
            let (all_ready, all_wanted) = row.ready.unwrap_or_default();
            row.ready = Some((all_ready + ready, all_wanted + wanted));
            below = false;
        }
        if health.level == Level::Bad && row.fault.is_none() {
            let what = health.detail.as_ref().unwrap_or(&health.word);
            row.fault = Some(format!("{} {}: {what}", seen.key.kind, seen.key.name));
        }
        if matches!(health.level, Level::Busy | Level::Bad) {
            row.level = row.level.max(health.level);
        }
        sum(state, seen, below, row, met);
    }
}

fn counts(key: &ObjectKey) -> bool {
    matches!(
        (key.group.as_str(), key.kind.as_str()),
        ("apps", "Deployment" | "StatefulSet" | "DaemonSet" | "ReplicaSet") | ("batch", "Job") | ("", "Pod")
    )
}

/// The custom resource that an object belongs to, itself if it is one; of several the nearest.
pub fn root_of(state: &State, key: &ObjectKey) -> Option<Arc<ObjectKey>> {
    roots_of(state, key).into_iter().next()
}

/// More owners than this are not followed.
const MOST_OWNERS: usize = 64;

/// Every object of the list that an object belongs to, itself included, the nearest first.
pub fn roots_of(state: &State, key: &ObjectKey) -> Vec<Arc<ObjectKey>> {
    let mut roots = Vec::new();
    let mut met = BTreeSet::new();
    let mut open = VecDeque::from([key.clone()]);
    while let Some(at) = open.pop_front() {
        if met.len() > MOST_OWNERS || !met.insert(at.clone()) {
            continue;
        }
        match state.objects.get(&at) {
            Some(seen) => {
                if state.is_listed(&seen.key) {
                    roots.push(Arc::clone(&seen.key));
                }
                open.extend(seen.owners().iter().cloned());
            }
            // An owner without a namespace may have objects with one.
            None if at.namespace.is_some() => open.push_back(ObjectKey { namespace: None, ..at }),
            None => {}
        }
    }
    roots
}
