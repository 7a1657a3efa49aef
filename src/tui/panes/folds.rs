//! How things are looked at: which reconciles are open, how the log is grouped, what the YAML shows, which
//! version.

use super::waterfall::{self, Line};
use opdev_event::{Cause, CauseKind, Outcome, Reconcile};
use opdev_object::meta::ObjectKey;
use opdev_state::Findings;
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

/// How the log is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Grouping {
    /// By reconcile, all lines.
    Open,
    /// By reconcile, lines of the selected one only.
    Folded,
    /// As the lines came.
    Flat,
}

/// Input of the lines of the detail pane beside what is selected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct How {
    /// The grouping of the log, for one object and for all.
    pub grouping: [Grouping; 2],
    /// True if `managedFields` and other bookkeeping are shown.
    pub managed: bool,
    /// True if each line of YAML says who owns it.
    pub owners: bool,
    /// The version looked at; the newest where it is none, or that of another object.
    pub version: Option<(ObjectKey, u64)>,
    /// True if logs of pods are those of the runs before the last restarts.
    pub previous: bool,
}

impl Default for How {
    fn default() -> Self {
        How {
            grouping: [Grouping::Open, Grouping::Flat],
            managed: false,
            owners: false,
            version: None,
            previous: false,
        }
    }
}

impl How {
    /// The grouping of the log in this scope.
    pub(crate) fn grouping(&self, all: bool) -> Grouping {
        self.grouping[usize::from(all)]
    }

    /// The number of the version of an object that is looked at.
    pub fn version_of(&self, key: &ObjectKey) -> Option<u64> {
        self.version.as_ref().filter(|(known, _)| known == key).map(|(_, number)| *number)
    }
}

/// A row of the reconciles: a reconcile by its place in the list, or a line below it.
#[derive(Clone, Copy, Debug)]
pub struct ReconcileRow {
    pub reconcile: usize,
    pub line: Option<Line>,
    /// Counts the lines below the reconcile; the reconcile itself is 0.
    pub(crate) number: usize,
    /// How many reconciles it stands for: retries of one failure are one row, and so are resyncs that did
    /// nothing.
    pub times: usize,
    /// The oldest of them: what a selection holds on to while newer retries come.
    pub oldest: u64,
}

/// The rows of the reconciles.
pub fn reconcile_rows(
    reconciles: &[Arc<Reconcile>],
    open: &BTreeSet<u64>,
    findings: &Findings,
) -> Vec<ReconcileRow> {
    let mut rows = Vec::with_capacity(reconciles.len());
    let shown = fold(reconciles, open, findings).into_iter().enumerate();
    for (reconcile, (times, oldest)) in shown.filter(|(_, (times, _))| *times > 0) {
        let of = &reconciles[reconcile];
        rows.push(ReconcileRow { reconcile, line: None, number: 0, times, oldest });
        if times > 1 && findings.storm_of(of).is_some() {
            rows.push(ReconcileRow { reconcile, line: Some(Line::Storm), number: 1, times, oldest });
        }
        if open.contains(&of.id) {
            let lines = waterfall::lines(of, waterfall::FEW).into_iter().enumerate();
            rows.extend(lines.map(|(i, line)| ReconcileRow {
                reconcile,
                line: Some(line),
                number: i + 1,
                times,
                oldest,
            }));
        }
    }
    rows
}

/// For each reconcile, newest first: how many reconciles its row stands for, and the oldest of them. 0 where
/// it stands behind a newer one that only retried it and failed alike, that ran by the clock again and had
/// nothing to do either, or that is a part of one storm with it.
fn fold(reconciles: &[Arc<Reconcile>], open: &BTreeSet<u64>, findings: &Findings) -> Vec<(usize, u64)> {
    let storm = |reconcile: &Reconcile| findings.storm_of(reconcile).map(|finding| finding.id);
    let mut rows: Vec<(usize, u64)> = reconciles.iter().map(|reconcile| (1, reconcile.id)).collect();
    let mut front: Vec<usize> = (0..reconciles.len()).collect();
    let mut last: HashMap<(&str, &str, Option<&str>), usize> = HashMap::new();
    for (at, reconcile) in reconciles.iter().enumerate() {
        let object = &reconcile.object;
        let key = (object.gvk.kind.as_str(), object.name.as_str(), object.namespace.as_deref());
        if let Some(newer) = last.insert(key, at)
            && (only_retries(&reconciles[newer]) && failed_alike(&reconciles[newer], reconcile)
                || quiet_alike(&reconciles[newer], reconcile)
                || storm(reconcile).is_some() && storm(reconcile) == storm(&reconciles[newer]))
        {
            front[at] = front[newer];
            rows[front[at]].0 += 1;
            rows[front[at]].1 = reconcile.id;
            rows[at].0 = 0;
        }
    }
    // An opened fold shows each reconcile.
    let unfolded: BTreeSet<usize> =
        (0..reconciles.len()).filter(|at| open.contains(&reconciles[*at].id)).map(|at| front[at]).collect();
    for at in (0..reconciles.len()).filter(|at| unfolded.contains(&front[*at])) {
        rows[at] = (1, reconciles[at].id);
    }
    rows
}

/// Returns true if a reconcile ran for no other reason than that the one before failed.
pub fn only_retries(reconcile: &Reconcile) -> bool {
    !reconcile.causes.is_empty()
        && reconcile.causes.iter().all(|cause| matches!(cause.kind, CauseKind::Retry { .. }))
}

/// Returns true if two reconciles ran by the clock for one reason, and wrote nothing.
fn quiet_alike(a: &Reconcile, b: &Reconcile) -> bool {
    let quiet = |reconcile: &Reconcile| {
        matches!(reconcile.outcome, Outcome::Unchanged | Outcome::Waiting)
            && reconcile.objects.is_empty()
            && reconcile.status.is_empty()
            && !reconcile.causes.is_empty()
    };
    let by_clock = |cause: &Cause| matches!(cause.kind, CauseKind::Period | CauseKind::Wait { .. });
    let same = |(a, b): (&Cause, &Cause)| by_clock(a) && a.kind == b.kind;
    quiet(a)
        && quiet(b)
        && (a.outcome, a.causes.len(), &a.waiting) == (b.outcome, b.causes.len(), &b.waiting)
        && a.causes.iter().zip(&b.causes).all(same)
}

fn failed_alike(a: &Reconcile, b: &Reconcile) -> bool {
    match (&a.failure, &b.failure) {
        (Some(a), Some(b)) => a.chain == b.chain && a.diagnostic == b.diagnostic,
        _ => false,
    }
}
