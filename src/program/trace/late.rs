//! Reconciles that are told again: a call came after the end, or a guess about a call became certain.

use super::Attribution;
use super::event_call::EventCall;
use super::reconcile;
use opdev_event::{Event, Reconcile};
use opdev_findings::facts::observed::ObservedCall;
use std::sync::Arc;

impl Attribution {
    /// The program says of which reconcile an Event is whose call was given to that reconcile by a guess. One
    /// that has ended is told again.
    pub(super) fn confirm(&mut self, id: &str, call: &EventCall) -> Vec<Event> {
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
            process.guessed_calls.extend(guessed.then_some(place));
        }
        *ended = Arc::new(again);
        vec![Event::Reconciled(Arc::clone(ended))]
    }
}
