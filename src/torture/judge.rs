//! Differences of a disturbed run: its end, its history, what it waits for in vain, what it did to others.
//! Pure.

use super::plan::Class;
use super::restless::RESTLESS;
use super::ruled::{Opened, is_told};
use opdev_normal::{Fields, SECRET, Snapshot};
use opdev_steps::scenario::DELETE_CHILD;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// Words of every trouble that is an error of reconciles.
pub(super) const FAIL: &str = "fail again and again";

/// The field of owners.
pub(super) const OWNERS: &str = ".metadata.ownerReferences";

/// The part of a trouble before words that may differ from run to run.
fn about(trouble: &str) -> &str {
    let of = [FAIL, RESTLESS].into_iter().find_map(|words| trouble.split_once(words));
    of.map_or(trouble, |(about, _)| about)
}

/// The rest of a run once it is over.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Outcome {
    /// The objects at the end of each step, without those of the bystander.
    pub(super) ends: Vec<Snapshot>,
    /// How often each object was made, and how often it went.
    pub(super) history: BTreeMap<String, Counts>,
    /// How often the operator itself deleted each object.
    pub(super) deleted: BTreeMap<String, u32>,
    /// Steps that did not come to their end.
    pub(super) stuck: Vec<String>,
    /// Errors that reconciles ended with at the end, by object, and ends of the program that nobody asked
    /// for.
    pub(super) troubles: BTreeSet<String>,
    /// The untouched instance before the first step, and at the end.
    pub(super) bystander: (Snapshot, Snapshot),
    /// Findings of the rules.
    pub(super) opened: Opened,
    /// By namespace: why the API server took an object of the operator or of a workload not.
    pub(super) refused: BTreeMap<String, String>,
}

/// How often an object was made and went.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Counts {
    pub(super) made: u32,
    pub(super) gone: u32,
}

/// The rule that a run breaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Rule {
    /// The end is another one.
    End,
    /// Objects were made or deleted another number of times.
    History,
    /// A step does not come to its end.
    Stuck,
    /// An object of the untouched instance changed.
    Bystander,
    /// The program ended, or reconciles fail for ever.
    Trouble,
    /// A rule of findings is broken that no undisturbed run breaks.
    Finding,
    /// One field was changed and changed back: something stays.
    BackAgain,
    /// A new object with the change differs from an object that was changed.
    Fresh,
    /// An object of somebody else was taken.
    Stranger,
    /// With another name of the custom resource there is less than with a plain one.
    Name,
    /// A new object with the change is not as without it, once the change is taken back.
    Healed,
    /// Undisturbed, nobody makes a child again that somebody has deleted.
    Unwatched,
}

/// One difference.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Difference {
    /// The rule that it breaks.
    pub rule: Rule,
    /// The object, in words.
    pub object: String,
    /// The field; empty for the object as a whole.
    #[serde(default)]
    pub path: String,
    /// Undisturbed; empty where there is nothing.
    #[serde(default)]
    pub undisturbed: String,
    /// Disturbed; empty where there is nothing.
    #[serde(default)]
    pub disturbed: String,
    /// The step at whose end it is like that; empty at the end of the last one.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub after: String,
}

impl Difference {
    /// The difference in words.
    pub fn words(&self) -> String {
        if self.after.is_empty() {
            self.what()
        } else {
            format!("{}, once {} is over", self.what(), self.after)
        }
    }

    /// A difference that is no more than words.
    pub(super) fn plain(rule: Rule, object: &str) -> Difference {
        Difference {
            rule,
            object: object.to_owned(),
            path: String::new(),
            undisturbed: String::new(),
            disturbed: String::new(),
            after: String::new(),
        }
    }

    /// The usual fix, where it does not depend on the operator.
    pub fn fix(&self) -> Option<&'static str> {
        match self.rule {
            Rule::Stranger => Some(
                "look before you write: leave an object alone that metav1.IsControlledBy does not call yours, and \
                 return an error",
            ),
            Rule::Name => Some(
                "cut names of children, and end them with a hash of the whole name; or let the CRD refuse the name \
                 (x-kubernetes-validations on self.metadata.name)",
            ),
            Rule::Unwatched => Some(
                "watch the kind of its children (Owns of controller-runtime): then a child that somebody deletes is \
                 made again at once",
            ),
            _ => None,
        }
    }

    fn what(&self) -> String {
        let Difference { object, path, .. } = self;
        let (before, after) = (seen(&self.undisturbed), seen(&self.disturbed));
        match self.rule {
            Rule::End if path.is_empty() && self.disturbed.is_empty() => format!("{object} is missing"),
            Rule::End if path.is_empty() => format!("{object} is left over"),
            Rule::End if self.disturbed.is_empty() => {
                format!("{object} has no {path}, undisturbed it is {before}")
            }
            Rule::End if self.undisturbed.is_empty() => {
                format!("{object} has {path} {after}, undisturbed there is none")
            }
            Rule::End => format!("{object} stays at {path} {after}, undisturbed it is {before}"),
            Rule::History => format!("{object} is {after}, undisturbed {before}"),
            Rule::Stuck => format!("{object} does not come to its end"),
            Rule::Bystander if path.is_empty() => format!("{object} of the untouched instance: {after}"),
            Rule::Bystander => format!("{object} of the untouched instance: {path} {before} → {after}"),
            Rule::Trouble => object.clone(),
            Rule::Finding => {
                let place = Some(&self.disturbed).filter(|place| !place.is_empty());
                let place = place.map(|place| format!(", at {place}")).unwrap_or_default();
                format!("{}{place}: undisturbed nobody finds that", format!("{object} {path}").trim_end())
            }
            Rule::BackAgain if path.is_empty() && self.disturbed.is_empty() => {
                format!("{object} does not come back once the change is taken back")
            }
            Rule::BackAgain if path.is_empty() => format!("{object} stays once the change is taken back"),
            Rule::BackAgain => format!("{object} keeps {path} {after}, before the change it was {before}"),
            Rule::Healed if path.is_empty() && self.disturbed.is_empty() => format!(
                "{object} does not come for an object that began with the change, once that is taken back"
            ),
            Rule::Healed if path.is_empty() => {
                format!("{object} stays for an object that began with the change, once that is taken back")
            }
            Rule::Healed => format!(
                "{object} has {path} {after} for an object that began with the change, once that is taken back; \
                 without the change it is {before}"
            ),
            Rule::Fresh if path.is_empty() && self.disturbed.is_empty() => {
                format!("{object} is there only for a new object")
            }
            Rule::Fresh if path.is_empty() => format!("{object} is there only for a changed object"),
            Rule::Fresh => {
                format!("{object} has {path} {after} for a changed object, and {before} for a new one")
            }
            Rule::Unwatched => format!("{object} is made again, undisturbed it stays deleted"),
            Rule::Stranger if path.is_empty() => format!("{object} of somebody else was deleted"),
            Rule::Stranger if path == OWNERS => {
                format!("{object} of somebody else got {after} as its owner, and goes with it")
            }
            Rule::Stranger => format!("{object} of somebody else: {path} {before} → {after}"),
            Rule::Name if path.is_empty() => format!("{object}: {after}"),
            Rule::Name => format!("{object} has {after} {path}, with a plain name it has {before}"),
        }
    }
}

fn seen(value: &str) -> &str {
    if value.starts_with(SECRET) {
        "another secret value"
    } else if value.is_empty() {
        "none"
    } else {
        value
    }
}

/// What undisturbed runs have in common.
#[derive(Clone, Debug, Default)]
pub(super) struct Learned {
    ends: Vec<Snapshot>,
    /// Paths that differ among them.
    masked: BTreeSet<(String, String)>,
    /// Objects that not all of them have.
    unsteady: BTreeSet<String>,
    /// Objects whose conditions are a history in one of them.
    histories: BTreeSet<String>,
    /// The smallest and the largest number of times.
    history: BTreeMap<String, (Counts, Counts)>,
    /// The largest number of times that the operator itself deleted each object.
    deleted: BTreeMap<String, u32>,
    stuck: BTreeSet<String>,
    troubles: BTreeSet<String>,
    bystander: BTreeSet<Difference>,
    /// Findings of the rules, by rule, object and field.
    opened: BTreeSet<(String, String)>,
}

impl Learned {
    /// From runs that nothing disturbed.
    pub(super) fn from(runs: &[Outcome]) -> Learned {
        let mut learned = Learned::default();
        let Some((first, others)) = runs.split_first() else { return learned };
        learned.ends.clone_from(&first.ends);
        for other in others {
            for difference in both(&first.ends, &other.ends) {
                if difference.path.is_empty() {
                    learned.unsteady.insert(difference.object);
                } else {
                    learned.masked.insert((difference.object, difference.path));
                }
            }
        }
        let all = runs.iter().flat_map(|run| &run.ends).flatten();
        learned.histories =
            all.filter(|(_, fields)| keep_history(fields)).map(|(id, _)| id.clone()).collect();
        let ids: BTreeSet<&String> = runs.iter().flat_map(|run| run.history.keys()).collect();
        for id in ids {
            let counts = runs.iter().map(|run| run.history.get(id).copied().unwrap_or_default());
            let range = counts.fold(None, |range: Option<(Counts, Counts)>, counts| {
                let (least, most) = range.unwrap_or((counts, counts));
                let least = Counts { made: least.made.min(counts.made), gone: least.gone.min(counts.gone) };
                let most = Counts { made: most.made.max(counts.made), gone: most.gone.max(counts.gone) };
                Some((least, most))
            });
            learned.history.extend(range.map(|range| (id.clone(), range)));
        }
        for (object, count) in runs.iter().flat_map(|run| &run.deleted) {
            let most = learned.deleted.entry(object.clone()).or_default();
            *most = (*most).max(*count);
        }
        learned.stuck = runs.iter().flat_map(|run| run.stuck.iter().cloned()).collect();
        learned.troubles = runs.iter().flat_map(|run| run.troubles.iter().cloned()).collect();
        learned.opened = runs.iter().flat_map(|run| run.opened.keys().cloned()).collect();
        learned.bystander = runs.iter().flat_map(bystander).collect();
        learned
    }

    /// How many fields vary, so that they are not compared.
    pub(super) fn masked(&self) -> usize {
        self.masked.len() + self.unsteady.len()
    }

    /// Returns true if so much varies that nothing can be compared.
    pub(super) fn is_unsteady(&self) -> bool {
        let objects: BTreeSet<&String> = self.ends.iter().flat_map(|end| end.keys()).collect();
        self.unsteady.len() * 5 > objects.len().max(1)
    }

    /// Objects that not all undisturbed runs have, for whoever is told that.
    pub(super) fn unsteady(&self) -> impl Iterator<Item = &String> {
        self.unsteady.iter()
    }

    /// Differences that no disturbance is needed for: all undisturbed runs have them.
    pub(super) fn own(&self) -> Vec<Difference> {
        let stuck = self.stuck.iter().map(|step| Difference::plain(Rule::Stuck, step));
        let mut told = BTreeSet::new();
        let troubles = self.troubles.iter().filter(|trouble| told.insert(about(trouble)));
        let troubles = troubles.map(|trouble| Difference::plain(Rule::Trouble, trouble));
        stuck.chain(troubles).chain(self.bystander.iter().cloned()).collect()
    }

    /// How a disturbed run differs, without what is ignored. `steps` are the steps in words, `from` the first
    /// one at whose end it has to be as undisturbed: the end of all counts in any case.
    pub(super) fn judge(
        &self,
        run: &Outcome,
        class: Class,
        (steps, from): (&[String], usize),
        ignored: &[Ignored],
    ) -> Vec<Difference> {
        let last = self.ends.len().saturating_sub(1);
        let mut found: Vec<Difference> = Vec::new();
        // What is still like that at the end is told once.
        for at in (0..self.ends.len()).rev().filter(|at| *at == last || *at >= from) {
            let (Some(one), Some(other)) = (self.ends.get(at), run.ends.get(at)) else { continue };
            let new = snapshots(one, other, Rule::End).into_iter().filter(|one| {
                let is_history = one.path.starts_with(CONDITIONS) && self.histories.contains(&one.object);
                !is_history
                    && !self.unsteady.contains(&one.object)
                    && !self.masked.contains(&(one.object.clone(), one.path.clone()))
                    && !found.iter().any(|known| known.object == one.object && known.path == one.path)
            });
            let after = steps.get(at).filter(|_| at != last).cloned().unwrap_or_default();
            let new: Vec<Difference> = new.map(|one| Difference { after: after.clone(), ..one }).collect();
            // A status tells the way as well as the end; only the last one counts. One that looks at pods
            // from time to time may not have looked again.
            let counts = |one: &Difference| match at == last {
                true => class != Class::BadPods || !one.path.starts_with(".status"),
                // One that was deleted early never made objects that stay, such as claims.
                false if class == Class::Deleted => one.path.is_empty() && one.undisturbed.is_empty(),
                false => !one.path.starts_with(".status"),
            };
            let new = new.into_iter().filter(counts);
            let deletes_child = steps.get(at).is_some_and(|step| step.starts_with(DELETE_CHILD));
            found.extend(new.map(|one| if deletes_child { self.unwatched(one, at) } else { one }));
        }
        let unwatched: BTreeSet<String> =
            found.iter().filter(|one| one.rule == Rule::Unwatched).map(|one| one.object.clone()).collect();
        // It is made once more: that is the same.
        found.extend(self.histories(run, class).into_iter().filter(|one| !unwatched.contains(&one.object)));
        let new = |all: &BTreeSet<String>, one: &String| !all.contains(one);
        found.extend(
            run.stuck
                .iter()
                .filter(|step| new(&self.stuck, step))
                .map(|step| Difference::plain(Rule::Stuck, step)),
        );
        // Errors and loops without any disturbance may have other words each time.
        let known = |trouble: &str| self.troubles.iter().any(|one| about(one) == about(trouble));
        let troubles = run.troubles.iter().filter(|trouble| !known(trouble));
        found.extend(troubles.map(|trouble| Difference::plain(Rule::Trouble, trouble)));
        found.extend(bystander(run).into_iter().filter(|one| !self.bystander.contains(one)));
        let opened =
            run.opened.iter().filter(|(key, _)| is_told(&key.0, class) && !self.opened.contains(key));
        found.extend(opened.map(|((object, path), place)| Difference {
            path: path.clone(),
            disturbed: place.clone(),
            ..Difference::plain(Rule::Finding, object)
        }));
        found.retain(|one| !ignored.iter().any(|ignored| ignored.takes(one)));
        found.sort();
        found.dedup();
        found
    }

    /// A child that was there before the step which deletes one, and is there again: the disturbance has only
    /// shown that nobody makes it again otherwise.
    fn unwatched(&self, one: Difference, at: usize) -> Difference {
        let before = at.checked_sub(1).and_then(|before| self.ends.get(before));
        let is_back = one.path.is_empty() && !one.disturbed.is_empty();
        match is_back && before.is_some_and(|end| end.contains_key(&one.object)) {
            true => Difference { rule: Rule::Unwatched, ..one },
            false => one,
        }
    }

    /// Objects that were made or went another number of times. Who was blind need not make what nobody wants
    /// in the end. Every operator that applies what it reads does so with what is no longer so; from a view
    /// of the past only what it deletes itself counts.
    fn histories(&self, run: &Outcome, class: Class) -> Vec<Difference> {
        // Pods that do not start are made and deleted as the controllers of the cluster want it.
        if class == Class::BadPods {
            return Vec::new();
        }
        let ids: BTreeSet<&String> = self.history.keys().chain(run.history.keys()).collect();
        let mut found = Vec::new();
        for id in ids.into_iter().filter(|id| !self.unsteady.contains(*id)) {
            let (least, most) = self.history.get(id).copied().unwrap_or_default();
            let counts = run.history.get(id).copied().unwrap_or_default();
            let more = counts.made > most.made || counts.gone > most.gone;
            // An object that undisturbed comes and goes more often than it has to may do so less often.
            let replaced =
                counts.made > 1 && least.made.checked_sub(counts.made) == least.gone.checked_sub(counts.gone);
            let fewer = (counts.made < least.made || counts.gone < least.gone) && !replaced;
            let may_be_fewer =
                matches!(class, Class::Blind | Class::Down | Class::Past | Class::Slow | Class::Deleted);
            let deletes = |all: &BTreeMap<String, u32>| all.get(id).copied().unwrap_or_default();
            if class == Class::Past && deletes(&run.deleted) <= deletes(&self.deleted) {
                continue;
            }
            if more || (fewer && !may_be_fewer) {
                found.push(Difference {
                    rule: Rule::History,
                    object: id.clone(),
                    path: String::new(),
                    undisturbed: times(most),
                    disturbed: times(counts),
                    after: String::new(),
                });
            }
        }
        found
    }
}

/// The differences of two runs at the end of each step.
fn both(one: &[Snapshot], other: &[Snapshot]) -> Vec<Difference> {
    one.iter().zip(other).flat_map(|(one, other)| snapshots(one, other, Rule::End)).collect()
}

fn times(counts: Counts) -> String {
    let times = |count: u32| match count {
        0 => "never".to_owned(),
        1 => "once".to_owned(),
        2 => "twice".to_owned(),
        more => format!("{more} times"),
    };
    format!("made {} and gone {}", times(counts.made), times(counts.gone))
}

fn bystander(run: &Outcome) -> Vec<Difference> {
    let (before, after) = &run.bystander;
    let mut found = snapshots(before, after, Rule::Bystander);
    // Its status follows what there is, and is nobody's wish.
    found.retain(|one| !one.path.starts_with(".status"));
    for one in &mut found {
        if one.path.is_empty() {
            one.disturbed = if one.disturbed.is_empty() { "it is gone" } else { "it is new" }.to_owned();
            one.undisturbed.clear();
        }
    }
    found
}

/// The differences of two snapshots. An object that only one has is one difference.
pub(super) fn snapshots(one: &Snapshot, other: &Snapshot, rule: Rule) -> Vec<Difference> {
    const THERE: &str = "there";
    let mut found = Vec::new();
    let ids: BTreeSet<&String> = one.keys().chain(other.keys()).collect();
    for id in ids {
        let new = |path: &str, undisturbed: &str, disturbed: &str| Difference {
            rule,
            object: id.clone(),
            path: path.to_owned(),
            undisturbed: undisturbed.to_owned(),
            disturbed: disturbed.to_owned(),
            after: String::new(),
        };
        match (one.get(id), other.get(id)) {
            (Some(one), Some(other)) => {
                let history = keep_history(one) || keep_history(other);
                let counts = |path: &str| !(history && path.starts_with(CONDITIONS));
                let changed = changed(one, other).into_iter().filter(|(path, ..)| counts(path));
                found.extend(changed.map(|(path, one, other)| new(path, one, other)));
            }
            (Some(_), None) => found.push(new("", THERE, "")),
            (None, Some(_)) => found.push(new("", "", THERE)),
            (None, None) => {}
        }
    }
    found
}

/// The conditions of a status.
const CONDITIONS: &str = ".status.conditions[";

/// Returns true if there are two conditions of one type: then they are not told apart by that. They say what
/// was so at some time, and not what is so in the end.
fn keep_history(fields: &Fields) -> bool {
    let first = format!("{CONDITIONS}0]");
    fields.range(first.clone()..).next().is_some_and(|(path, _)| path.starts_with(&first))
}

fn changed<'a>(one: &'a Fields, other: &'a Fields) -> Vec<(&'a str, &'a str, &'a str)> {
    let paths: BTreeSet<&String> = one.keys().chain(other.keys()).collect();
    let value = |fields: &'a Fields, path: &str| fields.get(path).map_or("", String::as_str);
    let all = paths.into_iter().map(|path| (path.as_str(), value(one, path), value(other, path)));
    all.filter(|(_, one, other)| one != other).collect()
}

/// What is not compared, as `KIND/NAME PATH`; `*` stands for any name or for any path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ignored {
    kind: String,
    name: String,
    path: String,
}

/// A text that does not say what to ignore.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IgnoredError(String);

impl std::fmt::Display for IgnoredError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: expected KIND/NAME PATH, such as 'ConfigMap/web .data.seen' or 'Pod/* *'", self.0)
    }
}

impl std::error::Error for IgnoredError {}

impl std::str::FromStr for Ignored {
    type Err = IgnoredError;

    fn from_str(text: &str) -> Result<Self, IgnoredError> {
        let wrong = || IgnoredError(text.to_owned());
        let (object, path) = text.split_once(' ').unwrap_or((text, "*"));
        let (kind, name) = object.split_once('/').ok_or_else(wrong)?;
        if kind.is_empty() || name.is_empty() || path.trim().is_empty() {
            return Err(wrong());
        }
        Ok(Ignored { kind: kind.to_owned(), name: name.to_owned(), path: path.trim().to_owned() })
    }
}

impl Ignored {
    pub(super) fn takes(&self, one: &Difference) -> bool {
        let (kind, rest) = one.object.split_once(' ').unwrap_or((&one.object, ""));
        let name = rest.rsplit_once('/').map_or(rest, |(_, name)| name);
        let name = name.split('#').next().unwrap_or(name);
        self.kind.eq_ignore_ascii_case(kind)
            && (self.name == "*" || self.name == name)
            && (self.path == "*" || (!one.path.is_empty() && one.path.starts_with(&self.path)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn object(id: &str, fields: &[(&str, &str)]) -> (String, Fields) {
        (
            id.to_owned(),
            fields.iter().map(|(path, value)| ((*path).to_owned(), (*value).to_owned())).collect(),
        )
    }

    fn run(end: Vec<(String, Fields)>) -> Outcome {
        Outcome { ends: vec![end.into_iter().collect()], ..Outcome::default() }
    }

    fn told(learned: &Learned, run: &Outcome, class: Class) -> Vec<String> {
        learned.judge(run, class, (&[], 0), &[]).iter().map(Difference::words).collect()
    }

    #[test]
    fn a_child_that_only_a_new_start_makes_again_is_one_that_nobody_watches() {
        let (parent, child) = (object("Db x/a", &[]), object("ConfigMap x/a", &[]));
        let counts = |made, gone| BTreeMap::from([("ConfigMap x/a".to_owned(), Counts { made, gone })]);
        let run = |last: Vec<(String, Fields)>, made| Outcome {
            ends: vec![[parent.clone(), child.clone()].into(), last.into_iter().collect()],
            history: counts(made, 1),
            ..Outcome::default()
        };
        let learned = Learned::from(&[run(vec![parent.clone()], 1)]);
        let again = run(vec![parent.clone(), child.clone()], 2);
        let told = |step: &str| {
            let steps = ["apply Db a".to_owned(), step.to_owned()];
            let found = learned.judge(&again, Class::Restart, (&steps, 1), &[]);
            found.iter().map(Difference::words).collect::<Vec<_>>()
        };
        let back = "ConfigMap x/a is made again, undisturbed it stays deleted";
        assert_eq!(told("delete a child of Db a"), [back]);
        assert_eq!(told("delete ConfigMap a")[0], "ConfigMap x/a is left over");
    }

    #[test]
    fn conditions_that_are_a_history_are_not_compared() {
        let db = |fields: &[(&str, &str)]| run(vec![object("Db x/a", fields)]);
        let ready = (".status.conditions[type=Ready].status", "True");
        let learned = Learned::from(&[db(&[ready, (".status.state", "ready")])]);
        let twice = [(".status.conditions[0].type", "Ready"), (".status.conditions[1].type", "Ready")];
        let state = |state| (".status.state", state);
        let told = |end: &[(&str, &str)]| told(&learned, &db(end), Class::Crash);
        assert!(told(&[&twice[..], &[state("ready")]].concat()).is_empty());
        assert_eq!(told(&[&twice[..], &[state("error")]].concat()).len(), 1);
        assert_eq!(told(&[state("ready")]).len(), 1, "a condition that is missing");
        let learned =
            Learned::from(&[db(&[ready, state("ready")]), db(&[&twice[..], &[state("ready")]].concat())]);
        let told = |end: &[(&str, &str)]| self::told(&learned, &db(end), Class::Crash);
        assert!(told(&[state("ready")]).is_empty(), "one of the undisturbed runs had a history");
    }

    #[test]
    fn the_end_is_compared_but_for_what_varies_by_itself() {
        let end = |size: &str, seed: &str| {
            run(vec![object("Claim x/data", &[(".spec.size", size), (".data.seed", seed)])])
        };
        let learned = Learned::from(&[end("15Gi", "a"), end("15Gi", "b"), end("15Gi", "c")]);
        assert_eq!(learned.masked(), 1);
        assert!(told(&learned, &end("15Gi", "z"), Class::Crash).is_empty());
        assert_eq!(
            told(&learned, &end("10Gi", "z"), Class::Crash),
            ["Claim x/data stays at .spec.size 10Gi, undisturbed it is 15Gi"]
        );
        assert_eq!(told(&learned, &run(Vec::new()), Class::Crash), ["Claim x/data is missing"]);
    }

    #[test]
    fn a_wrong_state_between_two_steps_counts_unless_it_is_still_like_that_at_the_end() {
        let run = |sizes: [&str; 2]| {
            let end = |size| [object("Claim x/data", &[(".spec.size", size)])].into();
            Outcome { ends: sizes.into_iter().map(end).collect(), ..Outcome::default() }
        };
        let steps = ["apply".to_owned(), "grow".to_owned()];
        let learned = Learned::from(&[run(["1", "2"])]);
        let told = |disturbed, from| {
            let found = learned.judge(&run(disturbed), Class::Crash, (&steps, from), &[]);
            found.iter().map(Difference::words).collect::<Vec<_>>()
        };
        assert_eq!(
            told(["0", "2"], 0),
            ["Claim x/data stays at .spec.size 0, undisturbed it is 1, once apply is over"]
        );
        assert_eq!(told(["0", "1"], 0), ["Claim x/data stays at .spec.size 1, undisturbed it is 2"]);
        assert!(told(["0", "2"], 1).is_empty(), "it saw nothing until then");
    }

    #[test]
    fn objects_that_come_and_go_by_themselves_make_a_run_unsteady() {
        let one = run(vec![object("A x/a", &[]), object("B x/b", &[])]);
        let other = run(vec![object("A x/a", &[])]);
        assert!(Learned::from(&[one.clone(), other]).is_unsteady());
        assert!(!Learned::from(&[one.clone(), one]).is_unsteady());
    }

    #[test]
    fn who_was_blind_need_not_make_what_nobody_wants_in_the_end() {
        let with = |made, gone| {
            let history = [("Pod x/a".to_owned(), Counts { made, gone })].into();
            Outcome { history, ..Outcome::default() }
        };
        let learned = Learned::from(&[with(2, 1), with(2, 1)]);
        assert_eq!(
            told(&learned, &with(3, 2), Class::Blind),
            ["Pod x/a is made 3 times and gone twice, undisturbed made twice and gone once"]
        );
        assert!(told(&learned, &with(1, 0), Class::Blind).is_empty());
        assert_eq!(told(&learned, &with(1, 0), Class::Crash).len(), 1);
        assert!(told(&Learned::from(&[with(2, 1), with(3, 2)]), &with(3, 2), Class::Crash).is_empty());
    }

    #[test]
    fn a_changed_bystander_is_a_finding_unless_it_changes_anyway() {
        let with = |label: &str| {
            let of = |label: &str| {
                [object("Pod other/a", &[(".metadata.labels.x", label), (".status.n", label)])].into()
            };
            Outcome { bystander: (of("1"), of(label)), ..Outcome::default() }
        };
        let learned = Learned::from(&[with("1")]);
        assert!(learned.own().is_empty());
        assert_eq!(
            told(&learned, &with("2"), Class::Crash),
            ["Pod other/a of the untouched instance: .metadata.labels.x 1 → 2"]
        );
        assert_eq!(Learned::from(&[with("2")]).own().len(), 1, "no disturbance is needed");
    }

    #[test]
    fn what_is_ignored_is_named_by_kind_name_and_path() {
        let one = Difference {
            rule: Rule::End,
            object: "ConfigMap x/web-*#2".to_owned(),
            path: ".data.seen".to_owned(),
            undisturbed: String::new(),
            disturbed: "1".to_owned(),
            after: String::new(),
        };
        let takes = |text: &str| text.parse::<Ignored>().unwrap().takes(&one);
        assert!(takes("ConfigMap/web-* .data") && takes("configmap/*") && takes("ConfigMap/* *"));
        assert!(!takes("Secret/*") && !takes("ConfigMap/web .data") && !takes("ConfigMap/* .spec"));
        assert!("ConfigMap".parse::<Ignored>().is_err());
    }

    #[test]
    fn a_finding_of_the_rules_that_no_undisturbed_run_has_is_told() {
        let with = |rule: &str| {
            let key = (format!("{rule} of ConfigMap x/a"), ".data.n".to_owned());
            Outcome { opened: [(key, "a.go:4".to_owned())].into(), ..Outcome::default() }
        };
        let learned = Learned::from(&[Outcome::default(), with("fight")]);
        let told = |run: Outcome| learned.judge(&run, Class::Crash, (&[], 0), &[]);
        assert_eq!(told(with("fight")), []);
        let words: Vec<String> = told(with("hot-loop")).iter().map(Difference::words).collect();
        assert_eq!(words, ["hot-loop of ConfigMap x/a .data.n, at a.go:4: undisturbed nobody finds that"]);
    }

    #[test]
    fn an_operator_that_goes_on_for_ever_anyway_is_told_once_with_any_words() {
        let with = |why: &str| Outcome {
            troubles: [format!("the operator {RESTLESS} within 30 s: {why}")].into(),
            ..Outcome::default()
        };
        let learned = Learned::from(&[with("a changes"), with("b changes")]);
        assert_eq!(learned.own().len(), 1);
        assert_eq!(learned.judge(&with("c changes"), Class::Crash, (&[], 0), &[]), []);
    }

    #[test]
    fn what_comes_and_goes_less_often_and_is_still_made_anew_is_no_difference() {
        let with = |made, gone| Outcome {
            history: [("Service x/a".to_owned(), Counts { made, gone })].into(),
            ..Outcome::default()
        };
        let told = |of: (u32, u32), run: (u32, u32)| {
            let learned = Learned::from(&[with(of.0, of.1)]);
            learned.judge(&with(run.0, run.1), Class::Crash, (&[], 0), &[]).len()
        };
        assert_eq!(told((3, 2), (2, 1)), 0);
        assert_eq!(told((2, 1), (1, 0)), 1, "it was never made anew");
        assert_eq!(told((3, 2), (2, 2)), 1, "it is missing in the end");
        assert_eq!(told((2, 1), (3, 2)), 1);
    }
}
