//! The state of everything, reduced from events: plain data, no clock, no IO. A clone is cheap: every part is
//! shared until it changes, and what changes is copied in pieces. `reduce` takes the events in; `tree` and
//! `health` answer the questions of the panes. One task owns the `State` and hands out `Arc` snapshots.

pub mod budget;
mod census;
mod changes;
pub mod columns;
pub mod conditions;
pub mod deletion;
mod drafts;
pub mod findings;
pub mod health;
mod history;
mod impact;
mod log;
pub mod managers;
mod objects;
mod pod_logs;
mod programs;
mod reduce;
mod requests;
mod shards;
pub mod tree;
pub mod versions;
pub mod waiting;

#[cfg(test)]
mod tests;

pub use census::Census;
pub use changes::Changes;
pub use drafts::Drafts;
pub use findings::Findings;
pub use history::History;
pub use impact::Impact;
pub use log::Log;
pub use objects::{Objects, Recorded, Seen};
pub use opdev_event::Body;
pub use pod_logs::{ContainerLog, PodLogs};
pub use programs::{Program, Programs};
pub use requests::Requests;

use conditions::Conditions;
use versions::{Archive, VersionLimits, Versions};

use jiff::Timestamp;
use opdev_event::LoopFound;
use opdev_event::{
    ConnectionChanged, DeployedCopy, Diagnostic, FaultRule, KindHealth, KindStatus, KindTable, Leaving,
    MissingRule, Notice, Outcome, Paths, Paused, Preferences, QueueChanged, ReconcileStarted, ReloadFailed,
    ReloadSettled, Sample, ServedKind, SourcesChanged, Started, TrustAsked, Undoable, ValuesExplained,
};
use opdev_object::meta::ObjectKey;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

/// How much is kept of what only grows.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Reconciles of one object.
    pub reconciles_per_object: usize,
    /// Reconciles of all objects together.
    pub reconciles: usize,
    /// Log lines.
    pub log_lines: usize,
    /// Kubernetes Events.
    pub recorded: usize,
    /// Notices.
    pub notices: usize,
    /// Finished requests.
    pub requests: usize,
    /// Versions of objects, and objects that are gone.
    pub versions: VersionLimits,
    /// Bytes of all of it together.
    pub bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            reconciles_per_object: 100,
            reconciles: 4_000,
            log_lines: 5_000,
            recorded: 500,
            notices: 100,
            requests: 50,
            versions: VersionLimits::default(),
            bytes: 64 << 20,
        }
    }
}

/// Everything the panes show.
#[derive(Clone, Debug, Default)]
pub struct State {
    /// Counts the events taken in; equal numbers are equal states.
    pub version: u64,
    /// Counts the clusters that were left for another one; what they told went with them.
    pub left: u64,
    /// The project, its cluster and its version; `None` until opdev is connected.
    pub started: Option<Arc<Started>>,
    /// The sources that serve, and how the last reload went.
    pub reload: Reload,
    /// Every object seen.
    pub objects: Objects,
    /// Earlier versions of objects, and what is left of those that are gone.
    pub archive: Archive,
    /// Conditions over time.
    pub conditions: Conditions,
    /// The newest time an object or a reconcile told.
    pub latest: Option<Timestamp>,
    /// Reconciles that have ended.
    pub history: History,
    /// Passes under way, by object.
    pub running: Arc<BTreeMap<ObjectKey, Arc<ReconcileStarted>>>,
    /// The work queue.
    pub queue: QueueChanged,
    /// Loops that custom resources are in, the newest of each.
    pub loops: Arc<BTreeMap<ObjectKey, Arc<LoopFound>>>,
    /// The error of the operator.
    pub findings: Findings,
    /// Paused kinds and objects, kinds first.
    pub paused: Arc<[Paused]>,
    /// Permissions that the project wants and the user has not answered.
    pub trust: Option<Arc<TrustAsked>>,
    /// True if saved charts wait for the user's word.
    pub hold: bool,
    /// The faults that the calls of the operator's own program get on request.
    pub disturbed: Vec<FaultRule>,
    /// Effects of saved types and reconcilers on the cluster, and changes that wait for the user's word.
    pub impact: Impact,
    /// Log lines.
    pub log: Log,
    /// Logs of pods that were looked at.
    pub pod_logs: PodLogs,
    /// The user's request.
    pub requests: Requests,
    /// Texts in the editor, and changes that wait for the user's word.
    pub drafts: Drafts,
    /// How far leaving the cluster is.
    pub leaving: Option<Arc<Leaving>>,
    /// Completions of the path typed last.
    pub paths: Arc<Paths>,
    /// The files of the project; `None` until somebody has asked.
    pub files: Option<Arc<[String]>>,
    /// The effective values that were looked at last.
    pub values: Option<Arc<ValuesExplained>>,
    /// The kinds that the API server serves and whose objects can be listed; `None` until somebody has asked.
    pub served: Option<Arc<[ServedKind]>>,
    /// The table of a kind that is looked at.
    pub table: Option<Arc<KindTable>>,
    /// The object of that table's selected row, whole.
    pub row: Option<Arc<Seen>>,
    /// Changes that can be undone, newest first.
    pub undo: Arc<[Undoable]>,
    /// Rules that the roles of the operator's ServiceAccount lack.
    pub missing_rules: Arc<[MissingRule]>,
    /// Notices for the user, oldest first.
    pub notices: Arc<VecDeque<Arc<Notice>>>,
    /// Preferences of the terminal; `None` where the settings have none.
    pub preferences: Option<Arc<Preferences>>,
    /// The reason why the API server does not answer, since when, and when it was told.
    pub connection: Option<Arc<ConnectionChanged>>,
    /// The programs of the operator's own, each with its newest build.
    pub programs: Programs,
    /// Copies of the operator on the cluster, running or frozen.
    pub copies: Arc<[DeployedCopy]>,
    /// Why opdev is on its way out.
    pub stopping: Option<Arc<str>>,
    limits: Limits,
}

/// The sources that serve, and how the last reload went.
#[derive(Clone, Debug, Default)]
pub struct Reload {
    /// The set that serves.
    pub live: Option<Arc<SourcesChanged>>,
    /// Kinds that something of the set before reconciled, and nothing of this one does.
    pub unserved: Arc<[String]>,
    /// That set has reached the cluster.
    pub settled: Option<Arc<ReloadSettled>>,
    /// Files changed since and could not be used.
    pub failed: Option<Arc<ReloadFailed>>,
}

impl State {
    /// An empty state with other bounds than the usual ones.
    pub fn with_limits(limits: Limits) -> Self {
        State { limits, ..State::default() }
    }

    /// An object that is there, or the newest of its key that is gone.
    pub fn present_or_gone(&self, key: &ObjectKey) -> Option<&Arc<Seen>> {
        self.objects.get(key).or_else(|| self.archive.gone_of(key).map(|gone| &gone.seen))
    }

    /// The versions of an object that is there or gone.
    pub fn versions(&self, key: &ObjectKey) -> Option<&Arc<Versions>> {
        self.archive.of(key).or_else(|| self.archive.gone_of(key).map(|gone| &gone.versions))
    }

    /// The conditions over time of an object that is there or gone.
    pub fn conditions_of(&self, key: &ObjectKey) -> &[conditions::Line] {
        match self.objects.get(key) {
            Some(_) => self.conditions.of(key),
            None => self.archive.gone_of(key).map_or(&[], |gone| gone.conditions.as_slice()),
        }
    }

    /// When an object was found to be gone; `None` while it is there.
    pub fn gone_at(&self, key: &ObjectKey) -> Option<Timestamp> {
        self.archive.gone_of(key).filter(|_| self.objects.get(key).is_none()).map(|gone| gone.at)
    }

    /// The kinds that are served, or should be.
    pub fn kinds(&self) -> &[KindStatus] {
        self.reload.live.as_ref().map_or(&[], |live| &live.kinds)
    }

    /// The files one can apply with a key.
    pub fn samples(&self) -> &[Sample] {
        self.reload.live.as_ref().map_or(&[], |live| &live.samples)
    }

    /// Returns true if objects of this group and kind are custom resources of the project.
    pub fn is_custom(&self, group: &str, kind: &str) -> bool {
        self.kinds().iter().any(|known| known.gvk.group == group && known.gvk.kind == kind)
    }

    /// Returns true if an object stands in the list: a custom resource of the project, or anything else whose
    /// newest reconcile has failed, such as a Pod of a second controller.
    pub fn is_listed(&self, key: &ObjectKey) -> bool {
        self.objects.is_custom(key) || self.history.failing().contains(key)
    }

    /// The objects that stand in the list, in no particular order.
    pub fn listed(&self) -> impl Iterator<Item = &Arc<Seen>> {
        let others = self.history.failing().iter().filter(|key| !self.objects.is_custom(key));
        self.objects.custom().chain(others.filter_map(|key| self.objects.get(key)))
    }

    /// How many of the custom resources that reconcile because of the newest sources have done so without a
    /// failure, and how many there are.
    pub fn live_objects(&self) -> (usize, usize) {
        let Some(live) = &self.reload.live else { return (0, 0) };
        let affected = |key: &ObjectKey| {
            live.affected.iter().any(|gvk| gvk.group_kind() == key.group_kind()) && self.paused(key).is_none()
        };
        let is_live = |key: &ObjectKey| {
            let last = self.history.last(key);
            last.is_some_and(|reconcile| {
                reconcile.sources >= live.sources && reconcile.outcome != Outcome::Failed
            })
        };
        let all = self.objects.custom().filter(|seen| affected(&seen.key));
        all.fold((0, 0), |(live, count), seen| (live + usize::from(is_live(&seen.key)), count + 1))
    }

    /// Why nothing reconciles objects of this group and kind, where that is so.
    pub fn only_shown(&self, group: &str, kind: &str) -> Option<&str> {
        let known = self.kinds().iter().find(|known| known.gvk.group == group && known.gvk.kind == kind)?;
        match &known.health {
            KindHealth::Shown { why } => Some(why),
            KindHealth::Process { .. }
            | KindHealth::Serving
            | KindHealth::Stale { .. }
            | KindHealth::Disabled { .. } => None,
        }
    }

    /// The operator's own program that reconciles objects of this group and kind, in words.
    pub fn program_of(&self, group: &str, kind: &str) -> Option<&str> {
        let known = self.kinds().iter().find(|known| known.gvk.group == group && known.gvk.kind == kind)?;
        match &known.health {
            KindHealth::Process { program } => Some(program),
            KindHealth::Shown { .. }
            | KindHealth::Serving
            | KindHealth::Stale { .. }
            | KindHealth::Disabled { .. } => None,
        }
    }

    /// The pause of an object: that of its kind, or its own.
    pub fn paused(&self, key: &ObjectKey) -> Option<&Paused> {
        self.paused.iter().find(|paused| paused.what.covers(key))
    }

    /// Errors in the files as they are, the newest failure first; empty once all is fixed.
    pub fn problems(&self) -> Vec<Diagnostic> {
        let builds = self.programs.iter().filter_map(|program| program.build_failed.as_ref());
        let failed = self.reload.failed.iter().chain(builds);
        let failed = failed.flat_map(|failed| &failed.diagnostics).cloned();
        let kinds = self.kinds().iter().filter_map(|kind| match &kind.health {
            KindHealth::Serving | KindHealth::Process { .. } | KindHealth::Shown { .. } => None,
            KindHealth::Stale { problem } | KindHealth::Disabled { problem } => Some(problem.clone()),
        });
        let mut problems: Vec<Diagnostic> = Vec::new();
        let ended = self.programs.iter().filter_map(Program::problem);
        for problem in failed.chain(ended).chain(kinds) {
            if !problems.iter().any(|known| known.message == problem.message && known.place == problem.place)
            {
                problems.push(problem);
            }
        }
        problems
    }
}
