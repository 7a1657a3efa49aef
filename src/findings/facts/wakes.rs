//! The changes that led to reconciles which wrote nothing.

use super::names::is_never;
use jiff::{SignedDuration, Timestamp};
use opdev_event::evidence::Evidence;
use opdev_event::{Cause, CauseKind, FieldChange, WatchEvent};
use std::collections::{BTreeSet, VecDeque};

/// So many reconciles are looked at together.
pub const MANY_WAKES: usize = 30;
/// They have come within this time.
pub const WITHIN: SignedDuration = SignedDuration::from_secs(60);
/// Changes that have led to a write, at most.
const USEFUL: usize = 64;

/// The change of a field of a kind.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Wake {
    pub kind: String,
    pub path: String,
}

/// The newest reconciles of one object, each with the change that alone led to it for nothing.
#[derive(Clone, Debug, Default)]
pub struct Wakes {
    newest: VecDeque<(Timestamp, Option<Wake>)>,
    useful: BTreeSet<Wake>,
}

impl Wakes {
    pub(crate) fn take(&mut self, evidence: &Evidence) {
        let wrote = evidence.writes.iter().any(|write| !is_never(&write.object) && !write.unchanged);
        let quiet = evidence.error.is_empty()
            && evidence.panic.is_empty()
            && evidence.refusals.is_empty()
            && evidence.requeue.is_none();
        let wakes: Option<BTreeSet<Wake>> = evidence.causes.iter().map(wake).collect();
        // A change that came together with a write may have led to it.
        if (wrote || !quiet) && self.useful.len() < USEFUL {
            self.useful.extend(evidence.causes.iter().filter_map(wake));
        }
        let alone = wakes.filter(|wakes| wakes.len() == 1 && !wrote && quiet && !evidence.more_causes);
        self.newest.push_back((evidence.ended, alone.and_then(|wakes| wakes.into_iter().next())));
        while self.newest.len() > MANY_WAKES {
            self.newest.pop_front();
        }
    }

    /// The change that led to most of the newest reconciles, and to how many.
    pub fn noisy(&self, now: Timestamp) -> Option<(&Wake, usize)> {
        let first = self.newest.front().filter(|_| self.newest.len() == MANY_WAKES)?;
        let wake = self.newest.back()?.1.as_ref()?;
        let count = self.newest.iter().filter(|(_, one)| one.as_ref() == Some(wake)).count();
        let noisy = now.duration_since(first.0) <= WITHIN && count * 5 >= MANY_WAKES * 4;
        (noisy && !self.useful.contains(wake)).then_some((wake, count))
    }
}

/// The one field that a change by others is about; `None` for all other causes.
fn wake(cause: &Cause) -> Option<Wake> {
    let CauseKind::Watch { object, event: WatchEvent::Modified, fields, own_write: false, .. } = &cause.kind
    else {
        return None;
    };
    let path = common(fields)?;
    Some(Wake { kind: object.gvk.kind.clone(), path })
}

/// The path that all changed fields have in common, at least one step.
fn common(fields: &[FieldChange]) -> Option<String> {
    let (first, rest) = fields.split_first()?;
    let mut path = first.path.as_str();
    for field in rest {
        while !(field.path == path || field.path.strip_prefix(path).is_some_and(is_step)) {
            path = &path[..path.rfind(['.', '['])?];
        }
    }
    (!path.is_empty()).then(|| path.to_owned())
}

/// True if a path goes on with another step here.
fn is_step(rest: &str) -> bool {
    rest.starts_with(['.', '['])
}
