//! Plans: one disturbance at one point of a scenario, as few of them as will do, the most promising ones
//! first. Pure.

use super::point::Point;
use opdev_steps::scenario::Step;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::str::FromStr;

/// Early deletions of a scenario that are tried at most, unless all are.
const MOST_EARLY: usize = 8;

/// What is done to the operator in a run. Each is something that a real cluster does.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum Disturbance {
    /// It is stopped and started between two steps, with nothing under way; this is the number of the step
    /// before.
    Restart(usize),
    /// It does not run while a step is done.
    Down(usize),
    /// It is killed once a write is done, before the answer comes.
    Crash(Point),
    /// It starts anew on an earlier view of one resource.
    Past(Past),
    /// It sees nothing of one resource while two steps are done, and then only how things are.
    Blind {
        /// The resource.
        resource: String,
        /// The first one of the steps.
        first: usize,
    },
    /// A write is done, and its answer comes when all else is settled.
    Slow(Point),
    /// A write is done, and the connection breaks before the answer comes.
    Lost(Point),
    /// A write is refused, as if somebody else had written before.
    Conflict(Point),
    /// The custom resource is deleted once a write is done, before its answer comes.
    Deleted(Point),
    /// Pods of a new revision do not start.
    BadPods(BadPods),
}

/// Pods that do not start.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct BadPods {
    /// The field of a pod by which they are known, such as `.spec.containers[].image`.
    pub(super) field: String,
    /// Its values.
    pub(super) values: Vec<String>,
}

/// A view of the past.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Past {
    /// What is seen as it was.
    pub(super) resource: String,
    /// The number of the step at whose end it was like that.
    pub(super) seen: usize,
    /// The number of the step after which the program starts anew.
    pub(super) after: usize,
    /// True if it is seen as it was while that step went on: an object had a deletionTimestamp and was still
    /// there.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) going: bool,
}

/// Kinds of disturbances, as one chooses them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Class {
    /// Stopped and started between two steps.
    Restart,
    /// Not there while something is changed.
    Down,
    /// Killed after a write.
    Crash,
    /// Started on a view of the past.
    Past,
    /// Late to see a change.
    Blind,
    /// A write is answered late.
    Slow,
    /// The answer to a write is lost.
    Lost,
    /// A write is refused as a conflict.
    Conflict,
    /// The custom resource is deleted in the middle of a reconcile.
    Deleted,
    /// Pods of a new revision do not start.
    BadPods,
    /// A scenario that is judged by itself: no disturbance at all.
    Check,
    /// One field is changed, and changed back: no disturbance at all.
    Field,
}

impl Class {
    /// All of them, in the order in which they are tried.
    pub const ALL: [Class; 10] = [
        Class::Restart,
        Class::Down,
        Class::Crash,
        Class::Past,
        Class::Blind,
        Class::Slow,
        Class::Lost,
        Class::Conflict,
        Class::Deleted,
        Class::BadPods,
    ];

    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Class::Restart => "restart",
            Class::Down => "down",
            Class::Crash => "crash",
            Class::Past => "past",
            Class::Blind => "blind",
            Class::Slow => "slow",
            Class::Lost => "lost",
            Class::Conflict => "conflict",
            Class::Deleted => "deleted-early",
            Class::BadPods => "bad-pods",
            Class::Check => "check",
            Class::Field => "field",
        }
    }
}

/// A text that names no kind of disturbance.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClassError(String);

impl fmt::Display for ClassError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = Class::ALL.into_iter().map(Class::name).collect();
        write!(f, "{} is no disturbance; they are {}", self.0, names.join(", "))
    }
}

impl std::error::Error for ClassError {}

impl FromStr for Class {
    type Err = ClassError;

    fn from_str(text: &str) -> Result<Self, ClassError> {
        let found = Class::ALL.into_iter().find(|class| class.name() == text);
        found.ok_or_else(|| ClassError(text.to_owned()))
    }
}

/// How much is tried.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Level {
    /// The first plan of each kind of disturbance for each resource.
    Quick,
    /// Every point up to the third of its kind.
    #[default]
    Normal,
    /// Every point.
    Deep,
}

/// A write of the operator in a learned run.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Write {
    pub(super) point: Point,
    /// Only the call counts here, not what it changed: of a write that is not done nothing is changed.
    pub(super) call: Point,
    pub(super) verb: String,
    /// With its subresource, such as `podsets/status`.
    pub(super) resource: String,
    /// True if the object is another one afterwards.
    pub(super) changes: bool,
    /// True if the API server itself goes on from here: an object goes, or a workload comes.
    pub(super) continues: bool,
    /// During which step.
    pub(super) step: usize,
    /// The object, as differences name it.
    pub(super) object: String,
    /// The place in the operator's code, such as `controllers/web.go:42`, where the program tells it.
    pub(super) place: Option<String>,
}

/// What one may do to the operator.
#[derive(Clone, Debug, Default)]
pub(super) struct Possible {
    /// Resources that it lists from the cache of an API server, which may be behind.
    pub(super) from_cache: BTreeSet<String>,
    /// Resources that it watches.
    pub(super) watched: BTreeSet<String>,
    /// The resource of the sample's first object.
    pub(super) own: String,
    /// By resource and step: the newest revision at which an object of it had a deletionTimestamp and was
    /// still there.
    pub(super) going: BTreeMap<String, BTreeMap<usize, u64>>,
}

impl Disturbance {
    /// The kind of disturbance.
    pub(super) fn class(&self) -> Class {
        match self {
            Disturbance::Restart(_) => Class::Restart,
            Disturbance::Down(_) => Class::Down,
            Disturbance::Crash(_) => Class::Crash,
            Disturbance::Past(_) => Class::Past,
            Disturbance::Blind { .. } => Class::Blind,
            Disturbance::Slow(_) => Class::Slow,
            Disturbance::Lost(_) => Class::Lost,
            Disturbance::Conflict(_) => Class::Conflict,
            Disturbance::Deleted(_) => Class::Deleted,
            Disturbance::BadPods(_) => Class::BadPods,
        }
    }

    /// The disturbance in words.
    pub(super) fn words(&self, steps: &[Step]) -> String {
        let step = |at: &usize| steps.get(*at).map_or_else(|| format!("step {}", at + 1), Step::words);
        match self {
            Disturbance::Restart(at) => format!("stopped and started once this was over: {}", step(at)),
            Disturbance::Down(at) => format!("not running during: {}", step(at)),
            Disturbance::Crash(point) => format!("killed after {point}"),
            Disturbance::Past(Past { resource, seen, after, going }) => format!(
                "started anew after: {}, with {resource} as they were {}: {}",
                step(after),
                if *going { "in the middle of" } else { "after" },
                step(seen)
            ),
            Disturbance::Blind { resource, first } => {
                format!("saw no event of {resource} during: {}, and: {}", step(first), step(&(first + 1)))
            }
            Disturbance::Slow(point) => format!("answered late: {point}"),
            Disturbance::Lost(point) => format!("answer lost: {point}"),
            Disturbance::Conflict(point) => format!("conflict at {point}"),
            Disturbance::Deleted(point) => format!("the custom resource was deleted right after {point}"),
            Disturbance::BadPods(BadPods { field, values }) => {
                format!("no pod started whose {field} is {}", values.join(" or "))
            }
        }
    }

    /// The first step at whose end all has to be as undisturbed: who sees nothing can do nothing.
    pub(super) fn effective_from(&self) -> usize {
        match self {
            Disturbance::Blind { first, .. } => first + 1,
            Disturbance::Deleted(_) => 1,
            // Only the end counts, once the change is taken back.
            Disturbance::BadPods(_) => usize::MAX,
            _ => 0,
        }
    }

    /// What it is about: with its class it says which plans are alike.
    fn subject(&self, writes: &[Write]) -> String {
        let of = |point: &Point| {
            let write = writes.iter().find(|write| write.point == *point || write.call == *point);
            write.map(|write| format!("{} {}", write.verb, write.resource)).unwrap_or_default()
        };
        match self {
            Disturbance::Restart(_) | Disturbance::Down(_) | Disturbance::BadPods(_) => String::new(),
            Disturbance::Past(Past { resource, .. }) | Disturbance::Blind { resource, .. } => {
                resource.clone()
            }
            Disturbance::Crash(point)
            | Disturbance::Slow(point)
            | Disturbance::Lost(point)
            | Disturbance::Deleted(point)
            | Disturbance::Conflict(point) => of(point),
        }
    }
}

/// The plans of a scenario, from the writes of its undisturbed runs.
pub(super) fn plans(
    runs: &[Vec<Write>],
    steps: &[Step],
    possible: &Possible,
    level: Level,
    only: &[Class],
) -> Vec<Disturbance> {
    let Some(first) = runs.first() else { return Vec::new() };
    let most = if level == Level::Deep { u32::MAX } else { 3 };
    // What one of the runs did not do is a matter of chance.
    let steady: Vec<&Write> = first
        .iter()
        .filter(|write| {
            write.changes
                && write.point.nth <= most
                && runs[1..].iter().all(|run| run.iter().any(|other| other.point == write.point))
        })
        .collect();
    let mut found: Vec<Disturbance> = (0..steps.len()).map(Disturbance::Restart).collect();
    found.extend((1..steps.len()).map(Disturbance::Down));
    let (deletes, others): (Vec<&&Write>, Vec<&&Write>) =
        steady.iter().partition(|write| write.verb == "delete");
    let crash = |write: &&&Write| Disturbance::Crash(write.point.clone());
    found.extend(deletes.iter().map(crash));
    found.extend(by_halves(others.len()).into_iter().map(|at| crash(&others[at])));
    found.extend(pasts(steps, possible));
    found.extend(blinds(steps, possible));
    found.extend(
        steady.iter().filter(|write| write.continues).map(|write| Disturbance::Slow(write.point.clone())),
    );
    let once = |write: &&&Write| write.call.nth == 1;
    let lost = steady.iter().filter(|write| matches!(write.verb.as_str(), "create" | "delete")).filter(once);
    found.extend(lost.map(|write| Disturbance::Lost(write.point.clone())));
    // Only an update says which version it is about.
    let updates = steady.iter().filter(|write| write.verb == "update").filter(once);
    found.extend(updates.map(|write| Disturbance::Conflict(write.call.clone())));
    found.extend(early(&steady, steps, level));
    found.retain(|one| only.is_empty() || only.contains(&one.class()));
    if level == Level::Quick {
        let mut seen = BTreeSet::new();
        found.retain(|one| seen.insert((one.class(), one.subject(first))));
    }
    found
}

/// Deletions of what was just applied, where the next step deletes it anyway: then the end is the same.
fn early(steady: &[&Write], steps: &[Step], level: Level) -> Vec<Disturbance> {
    if !matches!(steps, [Step::Apply(_), Step::Delete(_), ..]) {
        return Vec::new();
    }
    let first: Vec<&&Write> = steady.iter().filter(|write| write.step == 0).collect();
    let order = match level {
        Level::Normal => by_halves(first.len()).into_iter().take(MOST_EARLY).collect(),
        Level::Quick | Level::Deep => (0..first.len()).collect::<Vec<usize>>(),
    };
    order.into_iter().map(|at| Disturbance::Deleted(first[at].point.clone())).collect()
}

/// Each resource that the program lists from a cache, as it was before a step that took something away or
/// changed it.
fn pasts(steps: &[Step], possible: &Possible) -> Vec<Disturbance> {
    let pairs = || (1..steps.len()).flat_map(|after| (0..after).map(move |seen| (seen, after)));
    let of = |resource: &String, (seen, after), going| {
        Disturbance::Past(Past { resource: resource.clone(), seen, after, going })
    };
    let going = |resource: &String| {
        let steps = possible.going.get(resource);
        pairs().filter(move |(seen, _)| steps.is_some_and(|steps| steps.contains_key(seen)))
    };
    let (own, others): (Vec<&String>, Vec<&String>) =
        possible.from_cache.iter().partition(|resource| **resource == possible.own);
    // These come first. An operator that sees an object go, which was made again since, may delete what
    // belongs to the new one.
    let in_the_middle = |all: Vec<&String>| -> Vec<Disturbance> {
        let of_one = |one: &String| going(one).map(|pair| of(one, pair, true)).collect::<Vec<_>>();
        all.into_iter().flat_map(of_one).collect()
    };
    let mut found = in_the_middle(own);
    found.extend(pairs().flat_map(|pair| possible.from_cache.iter().map(move |one| of(one, pair, false))));
    found.extend(in_the_middle(others));
    found
}

/// Two changes in a row of the object that is reconciled.
fn blinds(steps: &[Step], possible: &Possible) -> Vec<Disturbance> {
    let watched = possible.watched.contains(&possible.own);
    let is_change = |step: &Step| matches!(step, Step::Patch { .. });
    let ends = |step: &Step| matches!(step, Step::Patch { .. } | Step::Delete(_));
    let pairs =
        (0..steps.len().saturating_sub(1)).filter(|at| is_change(&steps[*at]) && ends(&steps[*at + 1]));
    pairs
        .filter(|_| watched)
        .map(|first| Disturbance::Blind { resource: possible.own.clone(), first })
        .collect()
}

/// Numbers below `count`, so that the first ones are spread over all.
fn by_halves(count: usize) -> Vec<usize> {
    let bits = usize::BITS - count.leading_zeros();
    let mut order = Vec::with_capacity(count);
    for at in 0..(1usize << bits) {
        let reversed = if bits == 0 { 0 } else { at.reverse_bits() >> (usize::BITS - bits) };
        if reversed < count {
            order.push(reversed);
        }
    }
    order
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn write(text: &str, nth: u32, step: usize) -> Write {
        let (verb, resource) = text.split_once(' ').unwrap();
        let point = Point { write: text.to_owned(), nth };
        Write {
            call: point.clone(),
            point,
            verb: verb.to_owned(),
            resource: resource.to_owned(),
            changes: true,
            continues: verb == "delete",
            step,
            object: String::new(),
            place: None,
        }
    }

    fn steps() -> Vec<Step> {
        let patch = || Step::Patch { object: json!({"kind": "Db"}), patch: json!({"spec": {"size": 1}}) };
        vec![Step::Apply(Vec::new()), patch(), patch()]
    }

    fn possible() -> Possible {
        Possible { own: "dbs".to_owned(), watched: ["dbs".to_owned()].into(), ..Possible::default() }
    }

    #[test]
    fn plans_are_of_writes_that_every_run_made_and_that_changed_something() {
        let one =
            vec![write("create services", 1, 0), write("create pods", 1, 0), write("delete pods", 1, 1)];
        let mut other = one.clone();
        other.remove(1);
        let mut idle = one.clone();
        idle[0].changes = false;
        let crashes = |runs: &[Vec<Write>]| {
            let found = plans(runs, &steps(), &possible(), Level::Normal, &[Class::Crash]);
            found.iter().map(|one| one.words(&steps())).collect::<Vec<_>>()
        };
        let all = ["killed after delete pods", "killed after create services", "killed after create pods"];
        assert_eq!(crashes(std::slice::from_ref(&one)), all, "deletes come first");
        assert_eq!(crashes(&[one.clone(), other]), [all[0], all[1]]);
        assert_eq!(crashes(&[idle]), [all[0], all[2]]);
        assert_eq!(crashes(&[vec![write("create pods", 4, 0)]]), [""; 0], "the fourth one is deep");
    }

    #[test]
    fn every_step_is_done_without_the_operator_and_before_a_new_start() {
        let found = plans(&[Vec::new()], &steps(), &possible(), Level::Normal, &[]);
        let words: Vec<String> = found.iter().map(|one| one.words(&steps())).collect();
        assert_eq!(words.len(), 6, "{words:?}");
        assert!(matches!(found[5], Disturbance::Blind { first: 1, .. }));
        assert_eq!(plans(&[Vec::new()], &steps(), &possible(), Level::Normal, &[Class::Down]).len(), 2);
    }

    #[test]
    fn the_past_is_only_for_programs_that_list_from_a_cache() {
        let cached = Possible { from_cache: ["pods".to_owned()].into(), ..possible() };
        let pasts = |possible| plans(&[Vec::new()], &steps(), possible, Level::Normal, &[Class::Past]).len();
        assert_eq!([pasts(&possible()), pasts(&cached)], [0, 3]);
        let from_cache = ["dbs".to_owned(), "pods".to_owned()].into();
        let going = ["dbs", "jobs", "pods"].map(|one| (one.to_owned(), [(1, 7)].into())).into();
        let both = Possible { from_cache, going, ..possible() };
        let found = plans(&[Vec::new()], &steps(), &both, Level::Normal, &[Class::Past]);
        let in_the_middle = |one: &Disturbance| matches!(one, Disturbance::Past(past) if past.going);
        let at: Vec<usize> = (0..found.len()).filter(|at| in_the_middle(&found[*at])).collect();
        assert_eq!((found.len(), at), (8, vec![0, 7]), "seen in the second step; its own kind comes first");
    }

    #[test]
    fn quick_tries_one_plan_of_each_kind() {
        let run =
            vec![write("create pods", 1, 0), write("create pods", 2, 0), write("create services", 1, 0)];
        let found = plans(&[run], &steps(), &possible(), Level::Quick, &[Class::Crash]);
        assert_eq!(found.len(), 2);
    }

    #[test]
    fn what_was_applied_is_deleted_early_only_where_the_next_step_deletes_it() {
        let run: Vec<Write> = (0..20).map(|at| write(&format!("create pods{at}"), 1, at / 15)).collect();
        let recreate = [Step::Apply(Vec::new()), Step::Delete(Vec::new()), Step::Apply(Vec::new())];
        let count = |steps: &[Step], level| {
            plans(std::slice::from_ref(&run), steps, &possible(), level, &[Class::Deleted]).len()
        };
        assert_eq!(count(&recreate, Level::Deep), 15, "those of the first step");
        assert_eq!(count(&recreate, Level::Normal), MOST_EARLY);
        assert_eq!(count(&recreate, Level::Quick), 15, "each resource once");
        assert_eq!(count(&steps(), Level::Deep), 0);
        assert_eq!(Disturbance::Deleted(run[0].point.clone()).effective_from(), 1);
    }

    #[test]
    fn halves_reach_every_number_once() {
        for count in 0..20 {
            let mut order = by_halves(count);
            order.sort_unstable();
            assert_eq!(order, (0..count).collect::<Vec<_>>());
        }
        assert_eq!(by_halves(8)[..4], [0, 8 / 2, 2, 6].map(|at| at));
    }
}
