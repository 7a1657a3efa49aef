//! Faults of the operator: facts by object, path and controller, and rules over them. Pure: events go in, the
//! beginnings, counts and ends of findings come out. No IO, no clock: whoever asks says what time it is.
//!
//! Read `facts` for what is known, a file of `rules` for a rule, `life` for what becomes of what they tell.

pub mod hot_loop;
mod life;
pub mod rule;
mod rules;

#[cfg(test)]
mod tests;

pub use life::Ignored;
pub use rule::Rule;
pub use rules::{RULES, page, rule};

use jiff::{SignedDuration, Timestamp};
use life::Life;
use opdev_event::{Event, LoopFound, LoopKind, ProcessChanged, Reconcile};
use opdev_facts::Table;
use opdev_object::meta::{ObjectKey, ObjectRef};
use rule::Told;
use rules::cache::cache_mutated;

/// The time between two looks of rules of absence while they wait.
const TICK: SignedDuration = SignedDuration::from_secs(1);

/// All that is known, and all that is told.
#[derive(Debug, Default)]
pub struct Findings {
    table: Table,
    life: Life,
    /// True if the user wants no experiment at all.
    quiet: bool,
    /// opdev ends: watches end then and tell their objects as gone, which says nothing of the operator.
    stopping: bool,
    /// client-go looks for objects of the cache that the program changes.
    detects: bool,
    /// When the program that runs was started; none where no save led to that.
    saved: Option<Timestamp>,
    /// The end of the newest reconcile that was traced.
    newest: Option<Timestamp>,
}

impl Findings {
    /// Nothing is known yet, and some of it will not be told.
    pub fn ignoring(ignored: Vec<Ignored>) -> Findings {
        Findings { life: Life::ignoring(ignored), ..Findings::default() }
    }

    /// Without `experiments` no reconcile is asked for to find out whether a change was missed.
    pub fn asking(self, experiments: bool) -> Findings {
        Findings { quiet: !experiments, ..self }
    }

    /// With client-go's detector in the program: it needs its time before all is told.
    pub fn detecting(self) -> Findings {
        Findings { detects: true, ..self }
    }

    /// Takes in an event, and says what follows.
    pub fn see(&mut self, event: &Event) -> Vec<Event> {
        if self.stopping {
            return Vec::new();
        }
        match event {
            Event::Stopping { .. } => self.stopping = true,
            Event::Started(started) => {
                let (life, quiet, detects) = (self.life.anew(), self.quiet, self.detects);
                *self = Findings { life, quiet, detects, ..Findings::default() };
                self.table.embedded = started.cluster.embedded;
            }
            Event::Reconciled(reconcile) => return self.reconciled(reconcile),
            Event::LoopFound(found) => return self.loop_found(found),
            Event::Disturbed { rules } => self.table.disturbed(!rules.is_empty()),
            Event::ReconcileStarted(started) => {
                self.table.running.insert(started.object.key(), (started.id, started.at));
            }
            Event::ObjectSeen(seen) => self.table.object_seen(seen),
            Event::UnrelatedSeen(seen) => {
                for object in &seen.objects {
                    let key = ObjectKey {
                        group: seen.gvk.group.clone(),
                        kind: seen.gvk.kind.clone(),
                        namespace: object.namespace.clone(),
                        name: object.name.clone(),
                    };
                    self.table.child_seen(&key, object.uid.as_deref(), seen.at);
                    let by = object.changed_by.as_deref();
                    self.table.outside(&key, by, if by.is_some() { "changed" } else { "made" }, seen.at);
                }
            }
            Event::ObjectGone(gone) => {
                let key = gone.object_ref.key();
                self.table.object_gone(&key, gone.at);
                return self.life.object_gone(&key, gone.at);
            }
            Event::SourcesChanged(changed) => {
                self.table.sources_changed(changed);
                if !changed.files.is_empty() {
                    return self.life.saved(&changed.files, changed.at, true);
                }
            }
            Event::ProcessChanged(run) => {
                if let opdev_event::ProcessState::Running { files, .. } = &run.state {
                    self.table.restarted(run.at, !files.is_empty());
                    self.saved = Some(run.at).filter(|_| !files.is_empty());
                    return self.life.saved(files, run.at, false);
                }
                self.table.stopped();
                return self.program_ended(run);
            }
            Event::Log(line) => {
                let missing = self.table.missing_kinds.hear(line);
                let told = missing.map(|kind| rules::answers::kind_missing::told(&kind, None, line.at));
                return told.map(|told| self.life.told(vec![told], line.at)).unwrap_or_default();
            }
            _ => {}
        }
        Vec::new()
    }

    /// When something may follow though nothing happens.
    pub fn due(&self) -> Option<Timestamp> {
        let waits = !self.stopping && (self.table.waits() || self.life.waits() || self.is_undecided());
        waits.then(|| self.table.now.checked_add(TICK).unwrap_or(self.table.now))
    }

    /// True while a rule may still tell something of what has happened, though nothing else happens.
    pub fn is_undecided(&self) -> bool {
        let looks = |newest| self.table.now.duration_since(newest) < cache_mutated::LOOKED_AT;
        let detecting = self.detects && self.newest.is_some_and(looks);
        !self.stopping && (detecting || self.table.is_undecided(self.asks_at_all()))
    }

    /// Judges by the time alone.
    pub fn elapsed(&mut self, now: Timestamp) -> Vec<Event> {
        self.table.now = self.table.now.max(now);
        let mut told = Vec::new();
        for rule in RULES {
            if let Some(absent) = rule.absent {
                absent(&self.table, &mut told);
            }
        }
        for told in told.iter_mut().filter(|told| told.place.is_none()) {
            let child = told.about.as_ref().and_then(|about| self.table.makers.get(&about.key()));
            told.place = child.and_then(|maker| maker.place.clone());
        }
        self.table.settle();
        let mut events = self.life.told(told, self.table.now);
        events.extend(self.life.elapsed(self.table.now));
        let there = |started| self.table.missing_kinds.are_there(started, self.table.now);
        if self.table.started.is_some_and(there) {
            events.extend(self.life.over(rules::answers::kind_missing::RULE.id, self.table.now));
        }
        let is_fixed = |saved| self.table.now.duration_since(saved) >= cache_mutated::FIXED;
        if self.saved.is_some_and(is_fixed) {
            self.saved = None;
            events.extend(self.life.over(cache_mutated::RULE.id, self.table.now));
        }
        events
    }

    /// The program has ended by itself, or was ended.
    fn program_ended(&mut self, run: &ProcessChanged) -> Vec<Event> {
        let at = run.at;
        self.saved = None;
        let missed = self.table.missing_kinds.ended(at);
        let missed =
            missed.iter().map(|(kind, seconds)| rules::answers::kind_missing::told(kind, Some(*seconds), at));
        let told = missed.chain(cache_mutated::told(run)).collect();
        self.life.told(told, at)
    }

    /// Custom resources that opdev should reconcile once to find out whether the operator missed a change,
    /// with the controller to ask. Only on the embedded control plane: on a cluster nothing is tried.
    pub fn asks(&mut self) -> Vec<(String, ObjectRef)> {
        if self.asks_at_all() { self.table.unanswered() } else { Vec::new() }
    }

    fn asks_at_all(&self) -> bool {
        self.table.embedded && !self.quiet && !self.stopping
    }

    fn reconciled(&mut self, reconcile: &Reconcile) -> Vec<Event> {
        self.table.running.remove(&reconcile.object.key());
        let Some(evidence) = reconcile.process.as_ref().and_then(|process| process.evidence.take()) else {
            return Vec::new();
        };
        self.table.take(&evidence);
        let mut told = Vec::new();
        for rule in RULES {
            if let Some(judge) = rule.judge {
                judge(&self.table, &evidence, &mut told);
            }
        }
        if evidence.is_guessed() {
            rules::doubt(&mut told);
        } else {
            self.newest = Some(evidence.ended);
        }
        told.iter_mut().for_each(|told| told.place_in(&evidence));
        self.table.answered(&evidence);
        let mut events = self.life.told(told, self.table.now);
        events.extend(self.life.reconciled(&evidence));
        events
    }

    /// Loops of opdev's own reconcilers.
    fn loop_found(&mut self, found: &LoopFound) -> Vec<Event> {
        let rule = match found.kind {
            LoopKind::Fight => &rules::loops::fight::RULE,
            LoopKind::Hot => &rules::loops::hot_loop::RULE,
            LoopKind::Repair | LoopKind::Upgrade => &rules::loops::unstable_output::RULE,
        };
        let first = found.fields.first();
        let what = first.map(|field| format!("{} {}", field.object.gvk.kind, rule::last(&field.path)));
        let told = Told {
            about: first.map(|field| field.object.clone()),
            field: first.map(|field| field.path.clone()).unwrap_or_default(),
            chart: true,
            ..Told::new(rule, &found.object, found.at, 0).say(what.unwrap_or_default(), found.to_string())
        };
        self.life.told(vec![told], found.at)
    }
}
