//! Goroutines that a controller's reconciles leave behind.

use super::{Table, is_never};
use jiff::{SignedDuration, Timestamp};
use opdev_event::evidence::Evidence;
use opdev_object::meta::ObjectRef;
use std::collections::VecDeque;

/// A process makes workers, watches and connections in its first minute.
const WARM: SignedDuration = SignedDuration::from_secs(60);
/// Each number is held against the one so many reconciles before: other goroutines of the process come and go.
const APART: usize = 5;

/// Reconciles of a controller in a row that changed nothing, with more goroutines after each than before.
#[derive(Clone, Debug, Default)]
pub(crate) struct Growth {
    pub(crate) row: u32,
    pub(crate) since: Timestamp,
    /// The number at the first end.
    pub(crate) first: u32,
    /// The object of the first one.
    pub(crate) object: ObjectRef,
    /// True if there were never more than after the newest one.
    pub(crate) rises: bool,
    recent: VecDeque<u32>,
}

impl Table {
    /// Takes in how many goroutines there are.
    pub(super) fn take_growth(&mut self, evidence: &Evidence) {
        let warm = self.started.is_some_and(|started| evidence.at.duration_since(started) >= WARM);
        let Some(controller) = self.controllers.get_mut(&evidence.controller) else { return };
        let growth = &mut controller.growth;
        let changed = evidence.writes.iter().any(|write| !write.unchanged && !is_never(&write.object));
        let failed = !evidence.error.is_empty() || !evidence.panic.is_empty();
        let held = growth.recent.iter().rev().nth(APART - 1).is_some_and(|old| evidence.goroutines <= *old);
        if !warm || changed || failed || held || evidence.goroutines == 0 || evidence.more_goroutines <= 0 {
            *growth = Growth::default();
            return;
        }
        if growth.row == 0 {
            growth.since = evidence.ended;
            growth.first = evidence.goroutines;
            growth.object = evidence.object.clone();
        }
        growth.row += 1;
        growth.rises = growth.recent.iter().all(|old| evidence.goroutines > *old);
        growth.recent.push_back(evidence.goroutines);
        while growth.recent.len() > APART {
            growth.recent.pop_front();
        }
    }
}
