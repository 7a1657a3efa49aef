//! Reconciles that are told again: a call came after the end, or a guess about a call became certain.

use super::Attribution;
use super::reconcile::{self, Write};
use super::recorded::KnownCall;
use opdev_event::{Event, Reconcile};
use opdev_facts::observed::ObservedCall;
use std::sync::Arc;

impl Attribution {
    /// The program says of which reconcile an Event is whose call came before. A right guess becomes certain;
    /// after a wrong one the call changes over.
    pub(super) fn settle(&mut self, known: &KnownCall) -> Vec<Event> {
        let KnownCall { id, guessed, call } = known;
        if guessed.as_ref() == Some(id) {
            return self.confirm(id, call);
        }
        let (write, mut told) = match guessed {
            Some(wrong) => self.take_off(wrong, call),
            None => (None, Vec::new()),
        };
        match self.open.get_mut(id) {
            Some(open) => open.call(call, write, &self.versions, false),
            None => told.extend(self.late(id, call, false)),
        }
        told
    }

    /// Takes a call off a reconcile that it is not of. One that has ended is told again.
    fn take_off(&mut self, id: &str, call: &ObservedCall) -> (Option<Write>, Vec<Event>) {
        if let Some(open) = self.open.get_mut(id) {
            return (open.take_off(call), Vec::new());
        }
        let Some((_, ended)) = self.ended.iter_mut().rev().find(|(known, _)| known == id) else {
            return (None, Vec::new());
        };
        let Some(place) = reconcile::place_in(&ended.calls, ended.at, call) else {
            return (None, Vec::new());
        };
        let mut again = Reconcile::clone(ended);
        let index = usize::try_from(place).unwrap_or(usize::MAX);
        let late =
            again.process.as_ref().map_or(0, |process| usize::try_from(process.late_calls).unwrap_or(0));
        let was_late = index + late >= again.calls.len();
        again.calls.remove(index);
        if let Some(process) = &mut again.process {
            process.late_calls -= u32::from(was_late && process.late_calls > 0);
            reconcile::without(&mut process.guessed_calls, place);
            process.told_again = true;
        }
        *ended = Arc::new(again);
        (None, vec![Event::Reconciled(Arc::clone(ended))])
    }

    /// The guess about a call was right. A reconcile that has ended is told again.
    fn confirm(&mut self, id: &str, call: &ObservedCall) -> Vec<Event> {
        if let Some(open) = self.open.get_mut(id) {
            open.confirm(call);
            return Vec::new();
        }
        let Some((_, ended)) = self.ended.iter_mut().rev().find(|(known, _)| known == id) else {
            return Vec::new();
        };
        let place = reconcile::place_in(&ended.calls, ended.at, call);
        let mut again = Reconcile::clone(ended);
        let Some(process) = &mut again.process else { return Vec::new() };
        process.guessed_calls.retain(|guessed| Some(*guessed) != place);
        process.told_again = true;
        *ended = Arc::new(again);
        vec![Event::Reconciled(Arc::clone(ended))]
    }

    /// A goroutine of a reconcile went on after it: the reconcile is told again, with the call.
    pub(super) fn late(&mut self, id: &str, call: &ObservedCall, guessed: bool) -> Vec<Event> {
        let Some((_, ended)) = self.ended.iter_mut().rev().find(|(known, _)| known == id) else {
            return Vec::new();
        };
        let mut again = Reconcile::clone(ended);
        let place = u32::try_from(again.calls.len()).unwrap_or(u32::MAX);
        again.calls.push(reconcile::call_of(call, again.at));
        if let Some(process) = &mut again.process {
            process.late_calls += 1;
            process.told_again = true;
            process.guessed_calls.extend(guessed.then_some(place));
        }
        *ended = Arc::new(again);
        vec![Event::Reconciled(Arc::clone(ended))]
    }
}
