//! The problem: a fault shows in hundreds of reconciles, disappears for a minute and comes back, and one
//! fault causes others. The list must stay short and still, and say *fixed* only when it is true.
//!
//! The life of a finding: it is opened, counted and closed. A finding that explains another one takes it in.

use super::rule::{Ends, Key, Rule, Told};
use jiff::{SignedDuration, Timestamp};
use opdev_event::evidence::Evidence;
use opdev_event::{Event, FindingEnd, RuleFinding};
use opdev_object::meta::{ObjectKey, ObjectRef};
use std::collections::BTreeMap;
use std::sync::Arc;

/// A storm is over so long after it was seen last.
const OVER: SignedDuration = SignedDuration::from_secs(10);
/// A finding is told again at most so often.
const APART: SignedDuration = SignedDuration::from_secs(1);
/// Reconciles after a save that do not show it end a finding.
const QUIET: u32 = 3;
/// Reconciles that are named.
const NAMED: usize = 8;
/// Rules whose findings end once a program has run for a while without them.
const ENDS_BY_TIME: [&str; 2] = ["kind-missing", "cache-mutated"];
/// Findings that are kept.
const KEPT: usize = 500;

/// Findings that the user has chosen to ignore.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ignored {
    /// The rule.
    pub rule: String,
    /// The kind; empty for all.
    pub kind: String,
    /// The object's name; empty for all.
    pub name: String,
    /// The field; empty for all.
    pub field: String,
}

impl Ignored {
    fn covers(&self, told: &Told) -> bool {
        let about = told.about.as_ref().unwrap_or(&told.object);
        let is = |wanted: &str, found: [&str; 2]| wanted.is_empty() || found.contains(&wanted);
        self.rule == told.rule.id
            && is(&self.kind, [&told.object.gvk.kind, &about.gvk.kind])
            && is(&self.name, [&told.object.name, &about.name])
            && is(&self.field, [&told.field, &told.field])
    }
}

/// A finding with what only its life needs.
#[derive(Clone, Debug)]
struct One {
    rule: &'static Rule,
    finding: RuleFinding,
    storm: bool,
    /// True if a storm that calms down says nothing: it is open until a save.
    by_chance: bool,
    chart: bool,
    /// When it was told last to those who listen.
    told: Timestamp,
    news: bool,
    /// Reconciles of its object since a save that did not show it.
    quiet: Option<u32>,
    by: Option<ObjectKey>,
}

/// All findings.
#[derive(Debug, Default)]
pub(super) struct Life {
    pub(super) ignored: Vec<Ignored>,
    open: BTreeMap<Key, One>,
    next: u64,
    /// The newest save: files, and when.
    saved: Option<(String, Timestamp)>,
}

impl Life {
    pub(super) fn ignoring(ignored: Vec<Ignored>) -> Life {
        Life { ignored, ..Life::default() }
    }

    /// On another cluster nothing holds but what is ignored.
    pub(super) fn anew(&self) -> Life {
        Life { ignored: self.ignored.clone(), next: self.next, ..Life::default() }
    }

    pub(super) fn waits(&self) -> bool {
        let goes_on = |one: &One| one.storm && (!one.by_chance || one.quiet.is_some());
        self.open.iter().any(|(key, one)| one.news || goes_on(one) || ENDS_BY_TIME.contains(&key.0))
    }

    /// All findings of a rule end.
    pub(super) fn over(&mut self, rule: &str, now: Timestamp) -> Vec<Event> {
        let over = self.open.keys().filter(|key| key.0 == rule).cloned().collect();
        self.close(over, now)
    }

    /// Takes in what rules have told.
    pub(super) fn told(&mut self, all: Vec<Told>, now: Timestamp) -> Vec<Event> {
        let mut events = Vec::new();
        for told in all {
            if self.ignored.iter().any(|ignored| ignored.covers(&told)) || self.takes_in(&told, &mut events) {
                continue;
            }
            self.count(told, now, &mut events);
        }
        events
    }

    /// True if an open finding explains this one.
    fn takes_in(&mut self, told: &Told, events: &mut Vec<Event>) -> bool {
        let object = told.object.key();
        let explains =
            |(key, one): &(&Key, &mut One)| key.1 == object && one.rule.explains.contains(&told.rule.id);
        let Some((_, cause)) = self.open.iter_mut().find(explains) else { return false };
        let finding = &mut cause.finding;
        finding.per_second = told.per_second.or(finding.per_second);
        if !finding.explains.iter().any(|known| known == told.rule.id) {
            finding.explains.push(told.rule.id.to_owned());
            events.push(Event::FindingCounted(Arc::new(finding.clone())));
        }
        true
    }

    fn count(&mut self, told: Told, now: Timestamp, events: &mut Vec<Event>) {
        let key = told.key();
        if let Some(one) = self.open.get_mut(&key) {
            let finding = &mut one.finding;
            finding.last = told.at;
            // What has not come is looked for each second, and told once.
            let again = told.reconcile > 0 && finding.reconciles.last() == Some(&told.reconcile);
            finding.times += u64::from(!again);
            finding.per_second = told.per_second;
            let worse = told.severity < finding.severity;
            // What is less certain does not take the place of the proof.
            if told.severity <= finding.severity {
                (finding.why, finding.fix) = (told.why, told.fix);
                finding.severity = told.severity;
            }
            if told.reconcile > 0 && finding.reconciles.last() != Some(&told.reconcile) {
                finding.reconciles.push(told.reconcile);
                if finding.reconciles.len() > NAMED {
                    finding.reconciles.remove(0);
                }
            }
            one.quiet = one.quiet.map(|_| 0);
            one.news = true;
            if worse || now.duration_since(one.told) >= APART {
                (one.told, one.news) = (now, false);
                events.push(Event::FindingCounted(Arc::new(one.finding.clone())));
            }
            return;
        }
        if self.open.len() >= KEPT {
            return;
        }
        // Findings that the new one explains are its own part from now on.
        let effects = told.rule.explains;
        let object = told.object.key();
        let within: Vec<Key> =
            self.open.keys().filter(|key| key.1 == object && effects.contains(&key.0)).cloned().collect();
        let mut explains = Vec::new();
        for key in within {
            if let Some(mut one) = self.open.remove(&key) {
                explains.push(key.0.to_owned());
                let how = format!("explained by {}", told.rule.id);
                one.finding.ended = Some(FindingEnd { at: now, how });
                events.push(Event::FindingClosed(Arc::new(one.finding)));
            }
        }
        self.next += 1;
        let storm = told.rule.ends == Ends::Calm && !told.chart;
        let finding = RuleFinding {
            id: self.next,
            rule: told.rule.id.to_owned(),
            severity: told.severity,
            title: told.title,
            why: told.why,
            fix: told.fix,
            object: told.object,
            about: told.about,
            field: told.field,
            controller: told.controller,
            first: told.at,
            last: told.at,
            times: 1,
            per_second: told.per_second,
            reconciles: Some(told.reconcile).filter(|id| *id > 0).into_iter().collect(),
            since: told.reconcile,
            explains,
            storm,
            place: told.place,
            ended: None,
        };
        events.push(Event::FindingOpened(Arc::new(finding.clone())));
        let by = finding.about.as_ref().map(ObjectRef::key);
        let one = One {
            rule: told.rule,
            finding,
            storm,
            by_chance: told.by_chance,
            chart: told.chart,
            told: now,
            news: false,
            quiet: None,
            by,
        };
        self.open.insert(key, one);
    }

    /// Files were saved: charts serve at once, a program has started.
    pub(super) fn saved(&mut self, files: &[String], at: Timestamp, charts: bool) -> Vec<Event> {
        if files.is_empty() {
            return Vec::new();
        }
        let name = opdev_event::words::files(files);
        self.saved = Some((name, at));
        let mut over = Vec::new();
        for (key, one) in &mut self.open {
            if one.chart == charts {
                one.quiet = Some(0);
            }
            if one.chart && charts {
                over.push(key.clone());
            }
        }
        self.close(over, at)
    }

    /// A reconcile has ended: what it does not show may be fixed.
    pub(super) fn reconciled(&mut self, evidence: &Evidence) -> Vec<Event> {
        let object = evidence.object.key();
        let mut over = Vec::new();
        for (key, one) in
            self.open.iter_mut().filter(|(key, one)| key.1 == object && (!one.storm || one.by_chance))
        {
            if one.finding.reconciles.last() == Some(&evidence.reconcile) {
                continue;
            }
            if let Some(quiet) = &mut one.quiet {
                *quiet += 1;
                if *quiet >= QUIET {
                    over.push(key.clone());
                }
            }
        }
        self.close(over, evidence.ended)
    }

    /// A finding about an object ends with it; one about a child that stays ends with the child.
    pub(super) fn object_gone(&mut self, gone: &ObjectKey, at: Timestamp) -> Vec<Event> {
        let over = |(key, one): (&Key, &One)| {
            let ends = if one.rule.ends == Ends::WithChild {
                one.by.as_ref() == Some(gone)
            } else {
                key.1 == *gone || one.by.as_ref() == Some(gone)
            };
            ends.then(|| key.clone())
        };
        let over: Vec<Key> = self.open.iter().filter_map(over).collect();
        let mut events = Vec::new();
        for key in over {
            if let Some(mut one) = self.open.remove(&key) {
                one.finding.ended = Some(FindingEnd { at, how: "the object is gone".to_owned() });
                events.push(Event::FindingClosed(Arc::new(one.finding)));
            }
        }
        events
    }

    /// Storms that are over, and counts that were held back.
    pub(super) fn elapsed(&mut self, now: Timestamp) -> Vec<Event> {
        let saved = self.saved.as_ref().map(|(_, at)| *at);
        let is_over = |one: &One| {
            let since =
                if one.by_chance { saved.filter(|_| one.quiet >= Some(1)) } else { Some(one.finding.last) };
            one.storm && since.is_some_and(|since| now.duration_since(since.max(one.finding.last)) >= OVER)
        };
        let over: Vec<Key> =
            self.open.iter().filter(|(_, one)| is_over(one)).map(|(key, _)| key.clone()).collect();
        let mut events = self.close(over, now);
        for one in self.open.values_mut().filter(|one| one.news && now.duration_since(one.told) >= APART) {
            (one.told, one.news) = (now, false);
            events.push(Event::FindingCounted(Arc::new(one.finding.clone())));
        }
        events
    }

    fn close(&mut self, over: Vec<Key>, at: Timestamp) -> Vec<Event> {
        let mut events = Vec::new();
        for key in over {
            let Some(mut one) = self.open.remove(&key) else { continue };
            let fixed =
                self.saved.as_ref().filter(|(_, saved)| *saved >= one.finding.last || one.quiet.is_some());
            let how = match fixed {
                Some((files, saved)) => {
                    let time = saved.to_zoned(jiff::tz::TimeZone::system()).strftime("%H:%M").to_string();
                    format!("fixed by your save of {files} at {time}")
                }
                None => "it was not seen any more".to_owned(),
            };
            one.finding.per_second = None;
            one.finding.ended = Some(FindingEnd { at, how });
            events.push(Event::FindingClosed(Arc::new(one.finding)));
        }
        events
    }
}
