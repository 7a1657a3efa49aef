//! Finds loops in what reconciles tell: fights with somebody else over a field, and reconciles that ask for
//! themselves and write each time. Pure: it sees finished reconciles and decides nothing. What programs do to
//! their own children is stopped earlier, by the guard of `reconcile/program`.

use jiff::Timestamp;
use opdev_event::{
    Action, CauseKind, LoopField, LoopFound, LoopKind, ObjectChange, Outcome, Reconcile, WatchEvent,
};
use opdev_object::diff::Change;
use opdev_object::meta::{ObjectKey, ObjectRef};
use serde_json::Value;
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::time::Duration;

/// So many rounds over one field in this time are a fight that is paused; nobody does that by hand.
const FAST: (usize, Duration) = (8, Duration::from_secs(20));
/// So many in this time are named.
const SLOW: (usize, Duration) = (6, Duration::from_secs(120));
/// Before it has gone on for so long, a fight may yet turn out to be a quick one.
const WAIT: Duration = Duration::from_secs(10);
/// So many writing reconciles in a row that only the reconciles before asked for, in this time.
const HOT: (usize, Duration) = (20, Duration::from_secs(15));
/// So many upgrades in a row that nobody asked for, or repairs of one field that nobody else was seen to
/// write.
const REPEATED: u32 = 3;
/// How many fields are named, and how many rounds remembered.
const NAMED: usize = 5;
const KEPT: usize = 400;
/// The longest value that is shown.
const SHORT: usize = 60;

/// A field of an object.
type FieldKey = (ObjectKey, String);

/// One round: somebody wrote a field, and a reconcile wrote it back.
#[derive(Debug)]
struct Round {
    at: Timestamp,
    field: FieldKey,
    shown: LoopField,
}

/// The rounds over one field.
struct Count<'r> {
    all: usize,
    quick: usize,
    first: Timestamp,
    last: &'r Round,
}

/// The known facts about one custom resource.
#[derive(Debug, Default)]
struct LoopTrack {
    rounds: VecDeque<Round>,
    /// When the reconciles ended that only reconciles asked for, and that wrote.
    own: VecDeque<Timestamp>,
    /// Fields that were told already, and whether their object was to be paused.
    told: BTreeMap<FieldKey, bool>,
    told_hot: bool,
    /// Reconciles in a row that upgraded without a reason.
    upgrades: Run,
    /// Reconciles in a row that put the same field back, by the field.
    repairs: BTreeMap<FieldKey, Run>,
    told_repair: bool,
}

#[derive(Debug, Default)]
struct Run {
    reconciles: u32,
    first: Option<Timestamp>,
}

impl Run {
    fn count(&mut self, at: Timestamp) {
        self.reconciles += 1;
        self.first.get_or_insert(at);
    }
}

/// The detector.
#[derive(Debug, Default)]
pub struct Loops(HashMap<ObjectKey, LoopTrack>);

/// A loop, and whether it is quick enough to be stopped.
#[derive(Debug, PartialEq)]
pub struct Found {
    pub found: LoopFound,
    pub stop: bool,
}

impl Loops {
    /// Takes in a reconcile that has ended.
    pub fn see(&mut self, reconcile: &Reconcile) -> Option<Found> {
        let written = written(reconcile);
        let own_only = own_only(reconcile);
        let surplus = reconcile.releases.iter().any(|release| release.surplus);
        if written.is_empty() && !surplus && !self.0.contains_key(&reconcile.object.key()) {
            return None;
        }
        let track = self.0.entry(reconcile.object.key()).or_default();
        let others = others(reconcile);
        for (field, ours, taken_from) in &written {
            let by = others.get(field);
            if by.is_none() && taken_from.is_empty() {
                continue;
            }
            let mut writers: Vec<String> = taken_from.clone();
            writers.extend(by.and_then(|(writer, _)| writer.clone()));
            writers.sort();
            writers.dedup();
            let theirs = by.and_then(|(_, value)| value.clone()).or_else(|| ours.before.clone());
            let shown = LoopField {
                object: ours.object.clone(),
                path: field.1.clone(),
                ours: ours.after.clone(),
                theirs,
                writers,
            };
            track.rounds.push_back(Round { at: reconcile.at, field: field.clone(), shown });
        }
        track.forget_old(reconcile.at);
        if let Some(found) = track.fight(reconcile) {
            return Some(found);
        }
        track
            .hot(reconcile, own_only, &written)
            .or_else(|| track.upgrades(reconcile, &written))
            // A reconcile that asks for itself is judged above, by how often it does.
            .or_else(|| if own_only { None } else { track.repairs(reconcile, &written, &others) })
    }

    /// Begins anew with an object.
    pub fn forget(&mut self, key: &ObjectKey) {
        self.0.remove(key);
    }

    /// Begins anew with some objects.
    pub fn forget_all(&mut self, which: impl Fn(&ObjectKey) -> bool) {
        self.0.retain(|key, _| !which(key));
    }
}

impl LoopTrack {
    fn forget_old(&mut self, now: Timestamp) {
        while self.rounds.len() > KEPT || self.rounds.front().is_some_and(|round| age(now, round.at) > SLOW.1)
        {
            self.rounds.pop_front();
        }
        while self.own.len() > KEPT || self.own.front().is_some_and(|at| age(now, *at) > HOT.1) {
            self.own.pop_front();
        }
    }

    fn fight(&mut self, reconcile: &Reconcile) -> Option<Found> {
        let now = reconcile.at;
        let mut counts: BTreeMap<&FieldKey, Count<'_>> = BTreeMap::new();
        for round in &self.rounds {
            let count = counts.entry(&round.field).or_insert(Count {
                all: 0,
                quick: 0,
                first: round.at,
                last: round,
            });
            count.all += 1;
            count.quick += usize::from(age(now, round.at) <= FAST.1);
            count.last = round;
        }
        let fast = counts.values().any(|count| count.quick >= FAST.0);
        let news = |(field, count): (&&FieldKey, &Count<'_>)| {
            let known = self.told.get(*field);
            let slow = count.all >= SLOW.0 && age(now, count.first) >= WAIT;
            (slow && known.is_none()) || (count.quick >= FAST.0 && known != Some(&true))
        };
        if !counts.iter().any(news) {
            return None;
        }
        let mut worst: Vec<(&FieldKey, Count<'_>)> =
            counts.into_iter().filter(|(_, count)| count.all >= SLOW.0).collect();
        worst.sort_by_key(|(_, count)| std::cmp::Reverse(count.all));
        let fields = worst.iter().take(NAMED).map(|(_, count)| count.last.shown.clone()).collect();
        let reconciles = worst.first().map_or(0, |(_, count)| count.all);
        let first = worst.iter().map(|(_, count)| count.first).min().unwrap_or(now);
        let named: Vec<FieldKey> = worst.into_iter().map(|(field, _)| field.clone()).collect();
        self.told.extend(named.into_iter().map(|field| (field, fast)));
        Some(Found {
            found: loop_of(reconcile, LoopKind::Fight, reconciles, age(now, first), fields),
            stop: fast,
        })
    }

    fn hot(&mut self, reconcile: &Reconcile, own_only: bool, written: &[Written]) -> Option<Found> {
        if !own_only || written.is_empty() {
            self.own.clear();
            self.told_hot &= own_only;
            return None;
        }
        self.own.push_back(reconcile.at);
        if self.own.len() < HOT.0 || self.told_hot {
            return None;
        }
        self.told_hot = true;
        let fields = written.iter().take(NAMED).map(named);
        let within = self.own.front().map_or(Duration::ZERO, |first| age(reconcile.at, *first));
        let found = loop_of(reconcile, LoopKind::Hot, self.own.len(), within, fields.collect());
        Some(Found { found, stop: true })
    }
}

impl LoopTrack {
    /// Upgrades that nobody asked for. The engine stops them by itself.
    fn upgrades(&mut self, reconcile: &Reconcile, written: &[Written]) -> Option<Found> {
        let Some(release) = reconcile.releases.iter().find(|release| release.surplus) else {
            self.upgrades = Run::default();
            return None;
        };
        self.upgrades.count(reconcile.at);
        if self.upgrades.reconciles != REPEATED {
            return None;
        }
        let within = age(reconcile.at, self.upgrades.first.unwrap_or(reconcile.at));
        let fields = written.iter().filter(|(_, ours, _)| ours.object != reconcile.object);
        let fields = fields.take(NAMED).map(named).collect();
        let reconciles = usize::try_from(REPEATED).unwrap_or_default();
        let mut found = loop_of(reconcile, LoopKind::Upgrade, reconciles, within, fields);
        found.blame = Some(release.why.clone());
        Some(Found { found, stop: false })
    }

    /// Fields that a reconcile puts back again and again, though nobody was seen to write them.
    fn repairs(
        &mut self,
        reconcile: &Reconcile,
        written: &[Written],
        others: &BTreeMap<FieldKey, (Option<String>, Option<String>)>,
    ) -> Option<Found> {
        let unasked = |(field, ours, taken_from): &&Written| {
            ours.object != reconcile.object && taken_from.is_empty() && !others.contains_key(field)
        };
        let repaired: Vec<&Written> = match reconcile.outcome {
            Outcome::Repaired => written.iter().filter(unasked).collect(),
            _ => Vec::new(),
        };
        self.repairs.retain(|field, _| repaired.iter().any(|(written, ..)| written == field));
        self.told_repair &= !self.repairs.is_empty();
        for (field, ..) in &repaired {
            self.repairs.entry(field.clone()).or_default().count(reconcile.at);
        }
        let often = |field: &FieldKey| self.repairs.get(field).filter(|run| run.reconciles >= REPEATED);
        let first = repaired.iter().filter_map(|(field, ..)| often(field)?.first).min()?;
        if self.told_repair {
            return None;
        }
        let fields = repaired.iter().filter(|(field, ..)| often(field).is_some());
        let fields: Vec<LoopField> = fields.take(NAMED).map(|written| named(written)).collect();
        self.told_repair = true;
        let reconciles = usize::try_from(REPEATED).unwrap_or_default();
        let found = loop_of(reconcile, LoopKind::Repair, reconciles, age(reconcile.at, first), fields);
        Some(Found { found, stop: false })
    }
}

/// A field that a reconcile wrote, of which no other writer is known.
fn named((field, ours, _): &Written) -> LoopField {
    LoopField {
        object: ours.object.clone(),
        path: field.1.clone(),
        ours: ours.after.clone(),
        theirs: None,
        writers: Vec::new(),
    }
}

fn loop_of(
    reconcile: &Reconcile,
    kind: LoopKind,
    reconciles: usize,
    within: Duration,
    fields: Vec<LoopField>,
) -> LoopFound {
    let reconciles = u32::try_from(reconciles).unwrap_or(u32::MAX);
    LoopFound {
        at: reconcile.at,
        object: reconcile.object.clone(),
        kind,
        reconciles,
        within,
        fields,
        blame: None,
        paused: false,
    }
}

fn age(now: Timestamp, at: Timestamp) -> Duration {
    Duration::try_from(now.duration_since(at)).unwrap_or_default()
}

/// The value that a reconcile made of a field.
#[derive(Clone, Debug)]
struct Ours {
    object: ObjectRef,
    before: Option<String>,
    after: Option<String>,
}

/// A field, what was written, and from whom it was taken.
type Written = (FieldKey, Ours, Vec<String>);

/// All fields that a reconcile wrote; of objects that came or went, the whole.
fn written(reconcile: &Reconcile) -> Vec<Written> {
    let mut out = Vec::new();
    for ObjectChange { object, action, changes, taken_from } in &reconcile.objects {
        let whole =
            |after: &str| Ours { object: object.clone(), before: None, after: Some(after.to_owned()) };
        match action {
            Action::Created => {
                out.push(((object.key(), String::new()), whole("created"), taken_from.clone()));
            }
            Action::Deleted => {
                out.push(((object.key(), String::new()), whole("deleted"), taken_from.clone()));
            }
            Action::Updated => out.extend(changes.iter().map(|change| one(object, change, taken_from))),
        }
    }
    out.extend(reconcile.status.iter().map(|change| one(&reconcile.object, change, &[])));
    out
}

fn one(object: &ObjectRef, change: &Change, taken_from: &[String]) -> Written {
    let ours = Ours {
        object: object.clone(),
        before: change.old.as_ref().map(short),
        after: change.new.as_ref().map(short),
    };
    ((object.key(), change.path.to_string()), ours, taken_from.to_vec())
}

fn short(value: &Value) -> String {
    let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let line: String = text.lines().next().unwrap_or_default().chars().take(SHORT).collect();
    if line.len() < text.len() { format!("{line}…") } else { line }
}

/// Writes of others before the reconcile: the last writer and the last value of each field.
fn others(reconcile: &Reconcile) -> BTreeMap<FieldKey, (Option<String>, Option<String>)> {
    let mut out = BTreeMap::new();
    for cause in &reconcile.causes {
        let CauseKind::Watch { object, event, fields, by, own_write: false, .. } = &cause.kind else {
            continue;
        };
        match event {
            WatchEvent::Added => {
                out.insert((object.key(), String::new()), (by.clone(), Some("created".to_owned())));
            }
            WatchEvent::Deleted => {
                out.insert((object.key(), String::new()), (None, Some("deleted".to_owned())));
            }
            WatchEvent::Modified => out.extend(
                fields
                    .iter()
                    .map(|field| ((object.key(), field.path.clone()), (by.clone(), field.new.clone()))),
            ),
        }
    }
    out
}

/// Returns true if nobody but the reconciles before asked for it.
fn own_only(reconcile: &Reconcile) -> bool {
    !reconcile.causes.is_empty()
        && reconcile.causes.iter().all(|cause| match &cause.kind {
            CauseKind::Wait { .. } => true,
            CauseKind::Watch { own_write, .. } => *own_write,
            CauseKind::Start
            | CauseKind::Reload { .. }
            | CauseKind::Period
            | CauseKind::Retry { .. }
            | CauseKind::User
            | CauseKind::Check => false,
        })
}

#[cfg(test)]
mod tests {
    use super::*;
    use opdev_event::{Cause, FieldChange, Relation};
    use opdev_object::diff::diff;
    use opdev_object::meta::Gvk;
    use serde_json::json;

    fn object(kind: &str, name: &str) -> ObjectRef {
        let gvk = Gvk::new("apps", "v1", kind);
        ObjectRef { gvk, namespace: Some("default".to_owned()), name: name.to_owned(), uid: None }
    }

    fn at(millis: i64) -> Timestamp {
        Timestamp::from_millisecond(1_000_000 + millis).unwrap()
    }

    fn reconcile(millis: i64, causes: Vec<CauseKind>, objects: Vec<ObjectChange>) -> Reconcile {
        Reconcile {
            id: 1,
            object: object("Web", "site"),
            causes: causes.into_iter().map(|kind| Cause { at: at(millis), kind }).collect(),
            sources: 1,
            at: at(millis),
            queued: Duration::ZERO,
            took: Duration::ZERO,
            steps: Vec::new(),
            calls: Vec::new(),
            outcome: Outcome::Repaired,
            status: Vec::new(),
            objects,
            requeue: None,
            waiting: None,
            releases: Vec::new(),
            failure: None,
            process: None,
        }
    }

    fn wrote(n: i64) -> ObjectChange {
        let changes = diff(&json!({"spec": {"replicas": 5}}), &json!({"spec": {"replicas": n}}));
        ObjectChange {
            object: object("Deployment", "web"),
            action: Action::Updated,
            changes,
            taken_from: vec!["hpa".to_owned()],
        }
    }

    fn by(manager: &str, own_write: bool) -> CauseKind {
        CauseKind::Watch {
            object: object("Deployment", "web"),
            event: WatchEvent::Modified,
            fields: vec![FieldChange {
                path: ".spec.replicas".to_owned(),
                old: Some("3".to_owned()),
                new: Some("5".to_owned()),
            }],
            by: Some(manager.to_owned()),
            own_write,
            relation: Relation::Owner,
        }
    }

    #[test]
    fn a_quick_fight_is_named_with_its_field_and_stopped() {
        let mut loops = Loops::default();
        let mut found = Vec::new();
        for round in 0..20 {
            let reconcile = reconcile(round * 50, vec![by("hpa", false)], vec![wrote(3)]);
            found.extend(loops.see(&reconcile));
        }
        let [stopped] = found.as_slice() else { panic!("{found:#?}") };
        assert!(stopped.stop);
        assert_eq!(stopped.found.kind, LoopKind::Fight);
        assert_eq!((stopped.found.reconciles, stopped.found.within), (8, Duration::from_millis(350)));
        assert_eq!(
            stopped.found.to_string(),
            "a fight over fields, 8 reconciles in 0.3 s; Deployment web .spec.replicas is 5 by hpa, then 3 by the reconciler"
        );
    }

    #[test]
    fn what_a_person_does_now_and_then_is_no_fight() {
        let mut loops = Loops::default();
        for round in 0..50 {
            let reconcile = reconcile(round * 40_000, vec![by("kubectl-scale", false)], vec![wrote(3)]);
            assert_eq!(loops.see(&reconcile), None, "round {round}");
        }
        // Nor are other fields each time, or writes of others that nobody answers.
        for round in 0..50 {
            assert_eq!(loops.see(&reconcile(round, vec![by("hpa", false)], Vec::new())), None);
        }
    }

    #[test]
    fn a_slow_fight_is_named_once_and_goes_on() {
        let mut loops = Loops::default();
        let found: Vec<Found> = (0..30)
            .filter_map(|round| loops.see(&reconcile(round * 15_000, vec![by("hpa", false)], vec![wrote(3)])))
            .collect();
        assert_eq!(found.len(), 1, "{found:#?}");
        assert!(!found[0].stop);
    }

    #[test]
    fn a_repair_that_repeats_without_another_writer_is_named_once() {
        let unasked = |n: i64| {
            let mut one = wrote(n);
            one.taken_from.clear();
            one
        };
        let mut loops = Loops::default();
        let found: Vec<Found> = (0..9)
            .filter_map(|round| {
                loops.see(&reconcile(round * 60_000, vec![CauseKind::Period], vec![unasked(round % 2)]))
            })
            .collect();
        let [one] = found.as_slice() else { panic!("{found:#?}") };
        assert_eq!((one.found.kind, one.found.reconciles, one.stop), (LoopKind::Repair, 3, false));
        assert_eq!(one.found.fields[0].path, ".spec.replicas");
        // Somebody's writes in between, or a reconcile with nothing to do, begin anew.
        let mut loops = Loops::default();
        for round in 0..20 {
            let (causes, objects) = match round % 3 {
                0 => (vec![by("somebody", false)], vec![wrote(3)]),
                _ => (vec![CauseKind::Period], vec![unasked(3)]),
            };
            assert_eq!(loops.see(&reconcile(round * 60_000, causes, objects)), None, "round {round}");
        }
    }

    #[test]
    fn reconciles_that_ask_for_themselves_and_write_are_hot() {
        let again = || vec![CauseKind::Wait { why: "a moment".to_owned() }];
        let mut loops = Loops::default();
        let mut found = Vec::new();
        for round in 0..60 {
            let mut one = wrote(round);
            one.taken_from.clear();
            found.extend(loops.see(&reconcile(round * 10, again(), vec![one])));
        }
        assert_eq!(found.len(), 1, "{found:#?}");
        assert!(found[0].stop && found[0].found.kind == LoopKind::Hot && found[0].found.reconciles == 20);
        // One that rests in between, or that somebody asked for, is not.
        let mut loops = Loops::default();
        for round in 0..60 {
            let mut one = wrote(round);
            one.taken_from.clear();
            let objects = if round % 10 == 0 { Vec::new() } else { vec![one] };
            let causes = if round % 15 == 0 { vec![by("kubectl", false)] } else { again() };
            assert_eq!(loops.see(&reconcile(round * 10, causes, objects)), None);
        }
    }

    #[test]
    fn an_object_that_is_made_and_removed_by_turns_is_a_fight() {
        let mut loops = Loops::default();
        let gone = || {
            let CauseKind::Watch { object, .. } = by("x", false) else { unreachable!() };
            CauseKind::Watch {
                object,
                event: WatchEvent::Deleted,
                fields: Vec::new(),
                by: None,
                own_write: false,
                relation: Relation::Owner,
            }
        };
        let made = || ObjectChange {
            action: Action::Created,
            changes: Vec::new(),
            taken_from: Vec::new(),
            ..wrote(3)
        };
        let found: Vec<Found> = (0..10)
            .filter_map(|round| loops.see(&reconcile(round * 100, vec![gone()], vec![made()])))
            .collect();
        let words = found.last().unwrap().found.to_string();
        assert!(
            words.ends_with("Deployment web is deleted by somebody, then created by the reconciler"),
            "{words}"
        );
        loops.forget(&object("Web", "site").key());
        assert_eq!(loops.see(&reconcile(1_100, vec![gone()], vec![made()])), None);
    }
}
