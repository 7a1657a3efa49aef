//! How things are looked at: which reconciles are open, how the log is grouped, what the YAML shows, which version.

use super::waterfall::{self, Line};
use crate::event::{LogSource, Reconcile};
use crate::state::Seen;
use opdev_object::meta::{ObjectKey, ObjectRef};
use std::collections::BTreeSet;
use std::sync::Arc;

/// How the log is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Grouping {
    /// By reconcile, all lines.
    Open,
    /// By reconcile, lines of the selected one only.
    Folded,
    /// As the lines came.
    Flat,
}

/// What goes into the lines of the detail pane beside what is selected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct How {
    /// The grouping of the log, for one object and for all.
    pub(super) grouping: [Grouping; 2],
    /// Whether `managedFields` and other bookkeeping are shown.
    pub(super) managed: bool,
    /// Whether each line of YAML says who owns it.
    pub(super) owners: bool,
    /// The version looked at; the newest where it is none, or that of another object.
    pub(super) version: Option<(ObjectKey, u64)>,
    /// Whether logs of pods are those of the runs before the last restarts.
    pub(super) previous: bool,
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

/// How things are looked at.
#[derive(Clone, Debug, Default)]
pub(super) struct Seeing {
    pub(super) how: How,
    /// Reconciles that are open.
    pub(super) open: BTreeSet<u64>,
    /// Whether deleted objects are in the lists.
    pub(super) gone: bool,
    /// The container whose log is shown alone: its pod's name and its own.
    pub(super) container: Option<(String, String)>,
    /// Containers whose logs were asked for.
    pub(super) following: Vec<LogSource>,
    /// The object that was asked for whole.
    pub(super) looked_at: Option<ObjectRef>,
    /// The object whose effective values were asked for.
    pub(super) values_asked: Option<Asked>,
}

impl Seeing {
    /// The grouping of the log in this scope.
    pub(super) fn grouping(&self, all: bool) -> Grouping {
        self.how.grouping[usize::from(all)]
    }

    /// The number of the version of an object that is looked at.
    pub(super) fn version(&self, key: &ObjectKey) -> Option<u64> {
        self.how.version.as_ref().filter(|(known, _)| known == key).map(|(_, number)| *number)
    }
}

/// What values were asked for: an object as it was seen, under a set of sources.
#[derive(Clone, Debug)]
pub(super) struct Asked {
    pub(super) seen: Arc<Seen>,
    pub(super) sources: u64,
}

impl PartialEq for Asked {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.seen, &other.seen) && self.sources == other.sources
    }
}

/// A row of the reconciles: a pass by its place in the list, or a line below it.
#[derive(Clone, Copy, Debug)]
pub(super) struct PassRow {
    pub(super) pass: usize,
    pub(super) line: Option<Line>,
    /// Counts the lines below the pass; the pass itself is 0.
    pub(super) number: usize,
}

/// The rows of the reconciles.
pub(super) fn pass_rows(passes: &[Arc<Reconcile>], open: &BTreeSet<u64>) -> Vec<PassRow> {
    let mut rows = Vec::with_capacity(passes.len());
    for (pass, of) in passes.iter().enumerate() {
        rows.push(PassRow { pass, line: None, number: 0 });
        if open.contains(&of.id) {
            let lines = waterfall::lines(of, waterfall::FEW).into_iter().enumerate();
            rows.extend(lines.map(|(i, line)| PassRow { pass, line: Some(line), number: i + 1 }));
        }
    }
    rows
}
