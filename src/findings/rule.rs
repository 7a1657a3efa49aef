//! A rule, and what it tells. Read `rules` for the rules themselves, `life` for what becomes of what they
//! tell.

use jiff::Timestamp;
use opdev_event::evidence::{Evidence, WriteFact};
use opdev_event::{FindingSeverity, Place};
use opdev_facts::Table;
use opdev_object::meta::{ObjectKey, ObjectRef};

/// When a finding ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ends {
    /// Once reconciles after a save do not show it, or with one of its objects.
    Fixed,
    /// As `Fixed`, but its custom resource may go: it ends with the child.
    WithChild,
    /// By itself, once it is not seen any more: it goes on and on.
    Calm,
}

/// The findings of a reconcile whose beginning and end nothing but calls say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Guessed {
    /// All that is told of one that is traced.
    Told,
    /// A warning at most: the rule says for which object the reconcile was.
    Warning,
    /// Nothing: the rule counts within a reconcile, or judges what it did not do.
    Never,
}

/// Disturbances under which a rule still accuses the operator: they do not bring its fault about themselves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InTorture {
    /// All of them.
    Always,
    /// All but a view of the past, in which an owner may be gone already.
    NotInThePast,
    /// Those that leave the operator a full view: neither the past, nor late changes.
    InFullView,
    /// Those that stop the operator.
    AfterStop,
    /// None brings it about: whether it is seen in a run is a matter of chance.
    ByChance,
    /// None of them.
    Never,
}

/// A rule.
#[derive(Debug)]
pub struct Rule {
    /// Its stable id.
    pub id: &'static str,
    /// Its severity at worst; a finding by absence begins lower.
    pub severity: FindingSeverity,
    /// In a few words, as a title has it.
    pub name: &'static str,
    /// The fault, and why it matters.
    pub what: &'static str,
    /// When it is told.
    pub when: &'static str,
    /// Cases that it never accuses.
    pub never: &'static str,
    /// The cure.
    pub fix: &'static str,
    /// When a finding of it ends.
    pub ends: Ends,
    /// The rules whose findings about the same custom resource are effects of this one: it takes them in.
    pub explains: &'static [&'static str],
    /// The part that is told of a reconcile that is guessed from calls.
    pub guessed: Guessed,
    /// Under which disturbances of `opdev torture` it is told.
    pub torture: InTorture,
    /// Judges a reconcile.
    pub(super) judge: Option<fn(&Table, &Evidence, &mut Vec<Told>)>,
    /// Judges what has not come.
    pub(super) absent: Option<fn(&Table, &mut Vec<Told>)>,
}

/// One judgement of a rule.
#[derive(Clone, Debug)]
pub(super) struct Told {
    pub(super) rule: &'static Rule,
    pub(super) severity: FindingSeverity,
    pub(super) title: String,
    pub(super) why: String,
    pub(super) fix: String,
    pub(super) object: ObjectRef,
    pub(super) about: Option<ObjectRef>,
    pub(super) field: String,
    pub(super) controller: String,
    pub(super) at: Timestamp,
    pub(super) reconcile: u64,
    pub(super) per_second: Option<u32>,
    pub(super) place: Option<Place>,
    /// True if a storm that calms down is no sign that the fault is gone: chance may have ended it.
    pub(super) by_chance: bool,
    /// True if it is about one of opdev's own reconcilers.
    pub(super) chart: bool,
}

impl Told {
    pub(super) fn new(rule: &'static Rule, object: &ObjectRef, at: Timestamp, reconcile: u64) -> Told {
        Told {
            rule,
            severity: rule.severity,
            title: rule.name.to_owned(),
            why: String::new(),
            fix: rule.fix.to_owned(),
            object: object.clone(),
            about: None,
            field: String::new(),
            controller: String::new(),
            at,
            reconcile,
            per_second: None,
            place: None,
            by_chance: false,
            chart: false,
        }
    }

    /// A judgement about a reconcile.
    pub(super) fn of(rule: &'static Rule, evidence: &Evidence) -> Told {
        let told = Told::new(rule, &evidence.object, evidence.ended, evidence.reconcile);
        Told { controller: evidence.controller.clone(), ..told }
    }

    /// Adds its subject in a few words, and why it is wrong.
    pub(super) fn say(mut self, what: impl AsRef<str>, why: impl Into<String>) -> Told {
        if !what.as_ref().is_empty() {
            self.title = format!("{}: {}", self.rule.name, what.as_ref());
        }
        self.why = why.into().split_whitespace().collect::<Vec<_>>().join(" ");
        self
    }

    pub(super) fn about(mut self, about: &ObjectRef) -> Told {
        self.about = Some(about.clone()).filter(|about| about.key() != self.object.key());
        self
    }

    /// Finds the place in the code that shows it: of the refused call, or of the newest write of the field,
    /// or of its object.
    pub(super) fn place_in(&mut self, evidence: &Evidence) {
        if self.place.is_some() || self.reconcile != evidence.reconcile {
            return;
        }
        // An Event is sent by a goroutine of the recorder: what else the reconcile wrote says nothing of it.
        let is_event =
            |write: &&WriteFact| write.event.as_ref().is_some_and(|event| event.reason == self.field);
        if let Some(write) = evidence.writes.iter().chain(&evidence.beside).find(is_event) {
            self.place.clone_from(&write.place);
            return;
        }
        let object = self.about.as_ref().unwrap_or(&self.object).key();
        let of_field = |write: &&WriteFact| {
            (write.object.key() == object || self.about.is_none())
                && write.fields.iter().any(|field| !self.field.is_empty() && field.path == self.field)
        };
        let of_kind =
            |write: &&WriteFact| write.object.key() == object || write.object.gvk.kind == self.field;
        let newest = || evidence.writes.iter().rev().filter(|write| write.event.is_none());
        let refused = evidence.refusals.iter().rev().find(|refused| {
            !self.field.is_empty() && self.field == format!("{} {}", refused.verb, refused.target)
        });
        let write = newest().find(of_field).or_else(|| newest().find(of_kind));
        let place = refused.map(|refused| &refused.place).or_else(|| write.map(|write| &write.place));
        self.place = place.cloned().flatten();
    }

    pub(super) fn key(&self) -> Key {
        let about = self.about.as_ref().map(ObjectRef::key);
        (self.rule.id, self.object.key(), about, self.field.clone())
    }
}

/// Findings with one key are one.
pub(super) type Key = (&'static str, ObjectKey, Option<ObjectKey>, String);

/// The last field of a path, as a title has it.
pub(super) fn last(path: &str) -> &str {
    let path = path.trim_end_matches("[]");
    let end = path.rfind('[').filter(|_| path.ends_with(']')).unwrap_or(path.len());
    path[..end].rsplit('.').next().unwrap_or(path)
}

/// The short name of a field: its kind and its last part.
pub(super) fn place(object: &ObjectRef, path: &str) -> String {
    format!("{} {}", object.gvk.kind, last(path))
}
