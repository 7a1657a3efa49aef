//! The rules of findings within a run: what a disturbance brings about may be no other end, but a loop, a
//! conflict or something left behind.

use super::plan::Class;
use jiff::Timestamp;
use opdev_controlplane::Observation;
use opdev_event::sink::ReconcileNumbers;
use opdev_event::{Event, FindingSeverity, ProcessChanged, ProcessExit, ProcessState, RuleFinding};
use opdev_facts::observed::Seen;
use opdev_facts::record::Traced;
use opdev_findings::Findings;
use opdev_findings::rule::InTorture;
use opdev_program::tracing::take;
use opdev_trace::Attribution;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Findings that opened in a run: by rule, object and field the place in the code, if it is known.
pub(super) type Opened = BTreeMap<(String, String), String>;

/// Judges the reconciles of one run.
#[derive(Default)]
pub(super) struct Ruled {
    /// Nothing until an operator starts that tells of its reconciles: guesses accuse nobody.
    inner: Mutex<Option<Rules>>,
}

struct Rules {
    attribution: Attribution,
    findings: Findings,
    opened: Opened,
    starts: u64,
}

impl Ruled {
    fn lock(&self) -> MutexGuard<'_, Option<Rules>> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// An operator starts that tells of its reconciles.
    pub(super) fn starts(&self) {
        let mut inner = self.lock();
        let inner = inner.get_or_insert_with(|| Rules {
            attribution: Attribution::new(ReconcileNumbers::default()),
            findings: Findings::default().asking(false),
            opened: Opened::new(),
            starts: 0,
        });
        inner.starts += 1;
        inner.attribution.starting(Vec::new(), 1, Timestamp::now());
        inner.changed(ProcessState::Running { pid: 0, files: Vec::new(), since_save: Duration::ZERO });
    }

    /// It is gone.
    pub(super) fn ends(&self) {
        if let Some(inner) = &mut *self.lock() {
            let exit = ProcessExit {
                status: "signal 9".to_owned(),
                ran: Duration::ZERO,
                message: None,
                place: None,
                hint: None,
            };
            inner.changed(ProcessState::Ended { exit });
        }
    }

    /// A call or an event of it.
    pub(super) fn observed(&self, observation: &Observation) {
        if let Some(inner) = &mut *self.lock() {
            let mut events = Vec::new();
            take(&mut inner.attribution, observation, &mut events);
            events.iter().for_each(|event| inner.see(event));
        }
    }

    /// A record of its trace.
    pub(super) fn traced(&self, traced: Traced) {
        if let Some(inner) = &mut *self.lock() {
            let events = inner.attribution.see(Seen::Traced(traced));
            events.iter().for_each(|event| inner.see(event));
        }
    }

    /// An event of reconcilers in this process.
    pub(super) fn event(&self, event: &Event) {
        if let Some(inner) = &mut *self.lock() {
            inner.see(event);
        }
    }

    /// Everything that opened up to now.
    pub(super) fn opened(&self) -> Opened {
        let mut inner = self.lock();
        let Some(inner) = &mut *inner else { return Opened::new() };
        let events = inner.findings.elapsed(Timestamp::now());
        inner.note(&events);
        inner.opened.clone()
    }
}

impl Rules {
    fn changed(&mut self, state: ProcessState) {
        let (at, starts) = (Timestamp::now(), self.starts);
        let program = "the operator".to_owned();
        let run = ProcessChanged { at, program, starts, state, traced: None, breakpoint: None };
        self.see(&Event::ProcessChanged(Arc::new(run)));
    }

    fn see(&mut self, event: &Event) {
        let events = self.findings.see(event);
        self.note(&events);
    }

    fn note(&mut self, events: &[Event]) {
        for event in events {
            let Event::FindingOpened(found) = event else { continue };
            if found.severity != FindingSeverity::Hint {
                let place = found.place.as_ref().map(|place| format!("{}:{}", place.file, place.line));
                self.opened.insert(key(found), place.unwrap_or_default());
            }
        }
    }
}

/// A finding in any run: its rule with the object, and the field.
fn key(found: &RuleFinding) -> (String, String) {
    let about = found.about.as_ref().unwrap_or(&found.object);
    let name = opdev_normal::steady_name(None, &about.name);
    let name = match &about.namespace {
        Some(namespace) => format!("{namespace}/{name}"),
        None => name,
    };
    (format!("{} of {} {name}", found.rule, about.gvk.kind), found.field.clone())
}

/// Returns true if a rule may be broken because of the operator only, and not because of the disturbance
/// itself: who sees the past or sees nothing looks as if it had missed events and read what is stale.
pub(super) fn is_told(of: &str, class: Class) -> bool {
    match in_torture(of) {
        InTorture::Always => true,
        InTorture::NotInThePast => class != Class::Past,
        InTorture::InFullView => !matches!(class, Class::Past | Class::Blind),
        InTorture::AfterStop => matches!(class, Class::Restart | Class::Down | Class::Crash),
        InTorture::ByChance | InTorture::Never => false,
    }
}

/// Findings that no disturbance brings about, in words. Chance alone decides which run has them.
pub(super) fn by_chance(opened: &Opened) -> impl Iterator<Item = String> {
    let all = opened.iter().filter(|((of, _), _)| in_torture(of) == InTorture::ByChance);
    all.map(|((of, path), place)| {
        let place = if place.is_empty() { String::new() } else { format!(", at {place}") };
        format!(
            "{}{place}: by chance, in runs with and without a disturbance",
            format!("{of} {path}").trim_end()
        )
    })
}

/// The disturbances that may bring about a finding, by its rule with the object.
fn in_torture(of: &str) -> InTorture {
    let rule = opdev_findings::rule(of.split(' ').next().unwrap_or_default());
    rule.map_or(InTorture::Never, |rule| rule.torture)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_disturbance_itself_brings_about_is_not_told() {
        assert!(is_told("hot-loop of ConfigMap default/a", Class::Blind));
        assert!(!is_told("object-growth of Web default/a", Class::Past));
        assert!(is_told("left-behind of ConfigMap default/a", Class::Crash));
        assert!(!is_told("left-behind of ConfigMap default/a", Class::Past), "its owner is no longer there");
        assert!(!is_told("conflict of Web default/a", Class::Conflict), "opdev made it");
        assert!(!is_told("stale-read of Web default/a", Class::Crash));
    }

    #[test]
    fn a_disturbance_is_not_blamed_for_what_chance_brings_about() {
        let of = |rule: &str| (format!("{rule} of ConfigMap x/a"), ".data.n".to_owned());
        let opened: Opened =
            [(of("unstable-output"), "a.go:4".to_owned()), (of("hot-loop"), String::new())].into();
        assert!(opened.keys().all(|(of, _)| is_told(of, Class::Crash) == of.starts_with("hot-loop")));
        expect_test::expect![[r#"
            [
                "unstable-output of ConfigMap x/a .data.n, at a.go:4: by chance, in runs with and without a disturbance",
            ]
        "#]]
        .assert_debug_eq(&by_chance(&opened).collect::<Vec<_>>());
    }
}
