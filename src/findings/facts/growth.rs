//! Goroutines that a controller's reconciles leave behind.

use super::names::is_never;
use jiff::{SignedDuration, Timestamp};
use opdev_event::evidence::Evidence;
use opdev_object::meta::ObjectRef;
use std::collections::VecDeque;

/// The first minute of a process: it makes workers, watches and connections.
const WARM: SignedDuration = SignedDuration::from_secs(60);
/// The distance of two numbers that are compared: other goroutines of the process come and go.
const APART: usize = 5;

/// Reconciles of a controller in a row that changed nothing, with more goroutines after each than before.
#[derive(Clone, Debug, Default)]
pub struct Growth {
    pub row: u32,
    pub since: Timestamp,
    /// The end of the newest one.
    pub last: Timestamp,
    /// The number at the first end.
    pub first: u32,
    /// The object of the first one.
    pub object: ObjectRef,
    /// True if there were never more than after the newest one.
    pub rises: bool,
    recent: VecDeque<u32>,
}

impl Growth {
    /// Takes in how many goroutines a process has after a reconcile, and when that process was started.
    pub(crate) fn take(&mut self, evidence: &Evidence, started: Option<Timestamp>) {
        let warm = started.is_some_and(|started| evidence.at.duration_since(started) >= WARM);
        let changed = evidence.writes.iter().any(|write| !write.unchanged && !is_never(&write.object));
        let failed = !evidence.error.is_empty() || !evidence.panic.is_empty();
        let held = self.recent.iter().rev().nth(APART - 1).is_some_and(|old| evidence.goroutines <= *old);
        if !warm || changed || failed || held || evidence.goroutines == 0 || evidence.more_goroutines <= 0 {
            *self = Growth::default();
            return;
        }
        if self.row == 0 {
            self.since = evidence.ended;
            self.first = evidence.goroutines;
            self.object = evidence.object.clone();
        }
        self.row += 1;
        self.last = evidence.ended;
        self.rises = self.recent.iter().all(|old| evidence.goroutines > *old);
        self.recent.push_back(evidence.goroutines);
        while self.recent.len() > APART {
            self.recent.pop_front();
        }
    }
}
