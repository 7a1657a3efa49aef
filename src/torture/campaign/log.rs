//! The report and the alarms of a campaign. The scenarios of a program are tried at once, and all of them
//! write here. `Campaign` is all that each of them needs.

use super::alarm::{Alarm, Symptom, found};
use super::learn::Deadline;
use crate::input::TortureInput;
use crate::report::{Progress, Report};
use crate::subject::Prepared;
use anyhow::Result;
use std::cell::RefCell;
use std::sync::Arc;

/// Whoever is told of each step.
type Tell<'a> = &'a mut dyn FnMut(&Progress);

/// A campaign under way.
#[derive(Clone, Copy)]
pub(super) struct Campaign<'a, 'log> {
    pub(super) input: &'a TortureInput,
    pub(super) prepared: &'a Arc<Prepared>,
    pub(super) deadline: &'a Deadline,
    pub(super) log: &'a Log<'log>,
}

/// The report and the alarms, and whoever is told of each step.
pub(super) struct Log<'a>(RefCell<Told<'a>>);

struct Told<'a> {
    alarms: Vec<Alarm>,
    /// Alarms whose plan is being made smaller.
    begun: Vec<Symptom>,
    report: Report,
    tell: Tell<'a>,
}

impl<'a> Log<'a> {
    pub(super) fn new(report: Report, tell: Tell<'a>) -> Log<'a> {
        Log(RefCell::new(Told { alarms: Vec::new(), begun: Vec::new(), report, tell }))
    }

    /// Tells of a step.
    pub(super) fn tell(&self, progress: &Progress) {
        (self.0.borrow_mut().tell)(progress);
    }

    /// Writes into the report, or reads it.
    pub(super) fn report<T>(&self, with: impl FnOnce(&mut Report) -> T) -> T {
        with(&mut self.0.borrow_mut().report)
    }

    /// Makes a finding of an alarm, unless it is one that is known.
    ///
    /// # Errors
    /// Where its file cannot be written.
    pub(super) fn found(&self, input: &TortureInput, new: Alarm) -> Result<()> {
        let Told { alarms, report, tell, .. } = &mut *self.0.borrow_mut();
        found(input, new, alarms, report, tell)
    }

    /// Returns true if nobody makes the plan of this symptom smaller yet. Then the caller has to.
    pub(super) fn begins(&self, symptom: Symptom) -> bool {
        let told = &mut *self.0.borrow_mut();
        let is_known = told.alarms.iter().any(|known| Symptom::of(known).is_like(&symptom))
            || told.begun.iter().any(|known| known.is_like(&symptom));
        if !is_known {
            told.begun.push(symptom);
        }
        !is_known
    }

    /// All of it, for somebody who is alone with it.
    pub(super) fn parts(&mut self) -> (&mut Vec<Alarm>, &mut Report, &mut Tell<'a>) {
        let Told { alarms, report, tell, .. } = self.0.get_mut();
        (alarms, report, tell)
    }

    pub(super) fn into_report(self) -> Report {
        self.0.into_inner().report
    }
}
