//! Findings about the operator: the open ones, and those that were fixed since the start.

use opdev_event::{FindingSeverity, Reconcile, RuleFinding};
use opdev_object::meta::ObjectKey;
use std::sync::Arc;
use std::time::Duration;

/// Findings that have ended and are kept.
const ENDED: usize = 50;

/// An open storm is counted again within this time.
const COUNTED: Duration = Duration::from_secs(2);

/// Findings, worst first, those that have ended last.
#[derive(Clone, Debug, Default)]
pub struct Findings(Arc<Vec<Arc<RuleFinding>>>);

impl Findings {
    /// Takes in one as it is now.
    pub(super) fn take(&mut self, finding: &Arc<RuleFinding>) {
        let all = Arc::make_mut(&mut self.0);
        all.retain(|known| known.id != finding.id);
        all.push(Arc::clone(finding));
        all.sort_by(|a, b| {
            let newest = |one: &RuleFinding| std::cmp::Reverse(one.id);
            (a.rank(), newest(a)).cmp(&(b.rank(), newest(b)))
        });
        let ended = all.iter().filter(|one| !one.is_open()).count();
        all.truncate(all.len() - ended.saturating_sub(ENDED));
    }

    /// All of them.
    pub fn all(&self) -> &[Arc<RuleFinding>] {
        &self.0
    }

    /// Open findings, worst first.
    pub fn open(&self) -> impl Iterator<Item = &Arc<RuleFinding>> {
        self.0.iter().filter(|finding| finding.is_open())
    }

    /// Numbers of open errors and warnings.
    pub fn counts(&self) -> (usize, usize) {
        let of = |severity| self.open().filter(|finding| finding.severity == severity).count();
        (of(FindingSeverity::Error), of(FindingSeverity::Warning))
    }

    /// The worst open finding of an object that is no hint.
    pub fn of(&self, object: &ObjectKey) -> Option<&Arc<RuleFinding>> {
        self.open()
            .find(|finding| finding.severity != FindingSeverity::Hint && finding.object.key() == *object)
    }

    /// The worst finding that a reconcile shows; one that was fixed since does not count.
    pub fn shown_by(&self, reconcile: &Reconcile) -> Option<&Arc<RuleFinding>> {
        let shows = |finding: &&Arc<RuleFinding>| {
            finding.reconciles.contains(&reconcile.id) || finding.since == reconcile.id
        };
        self.storm_of(reconcile).or_else(|| self.open().find(shows))
    }

    /// The storm that a reconcile is a part of. An open one is counted once a second: a reconcile since then
    /// belongs to it, too.
    pub fn storm_of(&self, reconcile: &Reconcile) -> Option<&Arc<RuleFinding>> {
        let key = reconcile.object.key();
        self.0.iter().filter(|finding| finding.storm && finding.since > 0).find(|finding| {
            let slack = if finding.is_open() { COUNTED } else { Duration::ZERO };
            let until = finding.last.checked_add(slack).unwrap_or(finding.last);
            finding.since <= reconcile.id && reconcile.at <= until && finding.object.key() == key
        })
    }

    /// True if these are the same as others.
    pub fn same(&self, other: &Findings) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}
