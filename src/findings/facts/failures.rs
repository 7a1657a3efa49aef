//! Failures in a row, and what became of the wishes and the status of those reconciles.

use jiff::{SignedDuration, Timestamp};
use opdev_event::CauseKind;
use opdev_event::evidence::Evidence;
use std::time::Duration;

/// Failures of one object in a row.
#[derive(Clone, Debug, Default)]
pub struct Failures {
    /// Number of reconciles; conflicts are none.
    pub row: u32,
    /// When the first one began.
    pub since: Timestamp,
    /// Number of retries in a row that came sooner than the reconcile before had asked for beside its error.
    pub ignored: u32,
    /// How long after the reconcile before the newest one came, and what had been asked for.
    pub came: Option<(SignedDuration, Duration)>,
    wish: Option<Duration>,
}

impl Failures {
    /// Takes in whether a reconcile failed, with the end of the one before.
    pub(crate) fn take(&mut self, evidence: &Evidence, ended: Timestamp) {
        let failures = self;
        let conflict = |refused: &opdev_event::evidence::RefusalFact| {
            refused.status == 409 && refused.reason == "Conflict" && evidence.error.contains(&refused.message)
        };
        let disturbed = evidence.refusals.iter().any(|refused| refused.disturbed || conflict(refused));
        // A panic is told by its own rule, and no end of failures.
        if !evidence.panic.is_empty() {
            return;
        }
        if evidence.error.is_empty() || disturbed {
            *failures = Failures::default();
            return;
        }
        if failures.row == 0 {
            failures.since = evidence.at;
        }
        failures.row += 1;
        let retry = evidence.causes.iter().any(|cause| matches!(cause.kind, CauseKind::Retry { .. }));
        let after = evidence.at.duration_since(ended);
        let sooner = |wish: &Duration| SignedDuration::try_from(*wish).is_ok_and(|wish| after < wish);
        let ignored = failures.wish.filter(|wish| retry && sooner(wish));
        failures.ignored = if ignored.is_some() { failures.ignored + 1 } else { 0 };
        failures.came = ignored.map(|wish| (after, wish));
        failures.wish = evidence.ignored;
    }
}
