//! The facts: one table by object, path and controller. Counts begin anew with each event from outside.
//! Bounded.

pub mod cached;
mod configs;
mod failures;
mod growth;
mod live;
pub mod missing_kinds;
mod names;
pub mod observed;
pub mod record;

mod restarts;
mod said;
pub mod selectors;
pub mod shared;
pub mod simulated;
pub mod templates;
mod track;
mod unanswered;
mod unheard;
mod values;
pub mod versions;
mod waits;
pub mod wakes;
mod writes;

pub use names::{NAME, call_of, failed_by, is_never, is_plane, is_programs};
pub use track::{ABSENT, KEPT, Track};
pub use waits::{Pending, Wait};

use jiff::{SignedDuration, Timestamp};
use opdev_event::evidence::{Evidence, WriteFact};
use opdev_event::{Cause, CauseKind, Place, SourcesChanged, WatchEvent};
use opdev_object::meta::{ObjectKey, ObjectRef};
use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::time::Duration;

/// Times of Events about one object that are kept: a rule cannot ask for more.
pub const EVENTS_KEPT: usize = 10;
/// A reconcile that comes later than this after a change was not led to by it.
pub const MISSED: SignedDuration = SignedDuration::from_secs(5);
/// A change that is older than this is not asked about any more.
pub const ASKED_WITHIN: SignedDuration = SignedDuration::from_secs(60);
/// Objects, paths and children that are known at once.
const MANY: usize = 20_000;
/// All of it.
#[derive(Debug, Default)]
pub struct Table {
    /// The newest time that was told.
    pub now: Timestamp,
    /// True on the embedded control plane, where pods are simulated.
    pub embedded: bool,
    /// When the program was started last; none while it does not run.
    pub started: Option<Timestamp>,
    /// Kinds that the project is for.
    custom: BTreeSet<(String, String)>,
    /// Kinds of which the CRD prints a part of the status.
    pub with_status: BTreeSet<(String, String)>,
    /// Custom resources and children, as the API server has them.
    pub live: HashMap<ObjectKey, Live>,
    /// The makers of children.
    pub makers: HashMap<ObjectKey, Maker>,
    /// Facts about an object's reconciles, by controller.
    pub tracks: HashMap<(String, ObjectKey), Track>,
    pub controllers: BTreeMap<String, Controller>,
    /// Reconciles under way.
    pub running: HashMap<ObjectKey, (u64, Timestamp)>,
    /// Field managers of the program.
    pub own: BTreeSet<String>,
    /// The writers of a path, in turn.
    pub turns: HashMap<(ObjectKey, String), VecDeque<Turn>>,
    /// Conflicts in a row by object.
    pub conflicts: HashMap<ObjectKey, Conflicts>,
    /// Refusals by object of the reconcile, call and field.
    pub refused: HashMap<(ObjectKey, String), u32>,
    /// New Events by whom they are about, reason and message.
    pub events: HashMap<(ObjectKey, String, u64), VecDeque<Timestamp>>,
    /// New Events by whom they are about, where the program told them beside its reconciles' own work.
    pub events_about: HashMap<ObjectKey, VecDeque<Timestamp>>,
    /// Objects of other kinds that were shown lately: a child is shown before the reconcile that made it has
    /// ended.
    shown: HashMap<ObjectKey, Timestamp>,
    /// Workloads as the API server has them.
    pub workloads: HashMap<ObjectKey, Workload>,
    /// Selectors of workloads as the API server has them.
    pub selectors: HashMap<ObjectKey, selectors::Selects>,
    /// Configuration that the pods of workloads take.
    pub templates: HashMap<ObjectKey, templates::Template>,
    /// When a pod of a namespace went last.
    pub pods_gone: HashMap<String, Timestamp>,
    /// Reconciles before the last restart whose object has not been reconciled since.
    before: HashMap<(String, ObjectKey), restarts::Before>,
    /// When objects were written last.
    written_at: HashMap<ObjectKey, Timestamp>,
    /// Fields that the first reconcile after a restart has changed.
    pub rewritten: HashMap<(ObjectKey, String), restarts::Rewritten>,
    /// True if the user disturbs the program: an event that he holds back is none that it misses.
    pub disturbed: bool,
    /// Children that somebody else has deleted, of kinds whose events never came to their controller.
    pub taken: Vec<(Timestamp, ObjectKey)>,
    /// The caches of the program, by kind.
    pub caches: cached::Caches,
    /// Kinds that the program asks for and the cluster does not have.
    pub missing_kinds: missing_kinds::MissingKinds,
    /// Values of specs and children.
    values: values::Values,
    /// Judgements that wait for their time.
    pub pending: Vec<Pending>,
}

/// An object as the API server has it.
#[derive(Clone, Debug, Default)]
pub struct Live {
    pub uid: String,
    pub generation: i64,
    pub observed: Option<i64>,
    pub has_status: bool,
    pub deleting: Option<Timestamp>,
    pub finalizers: Vec<String>,
    pub said: said::StatusWords,
    pub gone: Option<Timestamp>,
    pub object: ObjectRef,
    metadata: u64,
    /// A change from outside that no reconcile has answered yet: when, and of which part.
    pub changed: Option<(Timestamp, &'static str)>,
    /// The change because of which opdev has asked for a reconcile.
    pub asked: Option<Timestamp>,
    /// Controllers that were asked and have not answered yet.
    pub awaited: usize,
}

/// Pods of a workload.
#[derive(Clone, Copy, Debug, Default)]
pub struct Workload {
    pub wanted: i64,
    pub ready: i64,
}

/// The maker of a child.
#[derive(Clone, Debug)]
pub struct Maker {
    pub controller: String,
    pub primary: ObjectRef,
    pub object: ObjectRef,
    pub at: Timestamp,
    pub reconcile: u64,
    pub times: u32,
    /// Number of times that it was made again after the program itself had deleted it, since the last event
    /// from outside, and when it was made first since.
    pub again: (u32, Timestamp),
    pub owned: bool,
    pub tied: bool,
    pub keeps: bool,
    /// True if the deletion of its custom resource had been asked for before.
    pub late: bool,
    /// True if the API server has shown it.
    pub seen: bool,
    pub gone: bool,
    /// When it went while the program ran, without a word of the program.
    pub went: Option<Timestamp>,
    /// When the program deleted it.
    pub deleted: Option<Timestamp>,
    /// A hash of its content when it was made.
    pub content: u64,
    /// True if a list had lacked another one with its content, and its name was generated.
    pub double: bool,
    /// True if an event of it came to its controller.
    pub echoed: bool,
    /// The place in the operator's code that made it.
    pub place: Option<Place>,
    /// True if it was made again after somebody else had deleted it.
    pub remade: bool,
    /// True if the reconcile that made it is guessed: it may have been for another custom resource.
    pub guessed: bool,
    /// Other custom resources whose reconciles use it, too.
    pub sharers: BTreeSet<ObjectKey>,
}

impl Controller {
    /// True if its watches seem to drop creations on purpose: other events of children come to it.
    pub fn drops_creations(&self) -> bool {
        self.added == (false, true)
    }
}

/// Facts about a controller.
#[derive(Clone, Debug, Default)]
pub struct Controller {
    /// Kinds of which an event came to it.
    pub echoed: BTreeSet<(String, String)>,
    /// True if the creation of a child came to it, and if another event of one did.
    added: (bool, bool),
    /// True if causes are missing, or no cache was read: then nothing is told by absence.
    pub unclear: bool,
    /// True if it has written the status of an object.
    pub writes_status: bool,
    pub reads: u64,
    /// Reconciles that ended well.
    pub good: u64,
    /// Goroutines that its reconciles leave behind.
    pub growth: growth::Growth,
    /// The period that good reconciles ask for.
    pub period: Option<Duration>,
    /// The longest reconcile that ended lately, and when it began.
    pub busy: Option<(Timestamp, Timestamp)>,
    /// Names of children by kind, with `NAME` in the place of the name of the custom resource, and of whom.
    pub rests: HashMap<String, (String, BTreeSet<String>)>,
}

/// One write in turn.
#[derive(Clone, Debug)]
pub struct Turn {
    pub writer: String,
    pub primary: Option<ObjectKey>,
    pub value: u64,
    pub shown: String,
}

/// Conflicts in a row.
#[derive(Clone, Debug, Default)]
pub struct Conflicts {
    pub row: u32,
    pub sent: String,
    /// Number of times that this very version was sent.
    pub same: u32,
}

impl Table {
    /// Takes in what a reconcile proves.
    pub fn take(&mut self, evidence: &Evidence) {
        self.now = self.now.max(evidence.ended);
        self.custom.insert((evidence.object.gvk.group.clone(), evidence.object.gvk.kind.clone()));
        self.bound();
        self.own
            .extend(evidence.writes.iter().map(|write| write.manager.clone()).filter(|one| !one.is_empty()));
        self.take_controller(evidence);
        self.caches.take(evidence);
        self.take_track(evidence);
        self.take_makers(evidence);
        self.take_sharers(evidence);
        self.take_rewritten(evidence);
        self.take_written_at(evidence);
        self.take_turns(evidence);
        self.take_refusals(evidence);
        self.take_events(evidence);
    }

    /// True if a cause comes from outside: a person, another client, a file, a start. What the plane does in
    /// answer is not.
    fn is_outside(&self, cause: &Cause) -> bool {
        match &cause.kind {
            CauseKind::Start | CauseKind::Reload { .. } | CauseKind::User => true,
            CauseKind::Watch { own_write: true, .. } => false,
            CauseKind::Watch { event: WatchEvent::Deleted, object, .. } => {
                let deleted = self.makers.get(&object.key()).and_then(|maker| maker.deleted);
                deleted.is_none_or(|deleted| self.now.duration_since(deleted) > SignedDuration::from_secs(60))
            }
            CauseKind::Watch { by: Some(by), .. } => !is_plane(by) && !self.own.contains(by),
            CauseKind::Watch { .. }
            | CauseKind::Check
            | CauseKind::Period
            | CauseKind::Retry { .. }
            | CauseKind::Wait { .. } => false,
        }
    }

    fn take_controller(&mut self, evidence: &Evidence) {
        let controller = self.controllers.entry(evidence.controller.clone()).or_default();
        // A build without the hook of the queue tells no cause at all.
        controller.unclear |= evidence.more_causes
            || evidence.causes.is_empty()
            || evidence.level != Some(opdev_event::TraceLevel::Full);
        controller.reads += evidence.reads.len() as u64;
        for cause in &evidence.causes {
            if let CauseKind::Watch { object, event, .. } = &cause.kind {
                let added = *event == WatchEvent::Added;
                if object.gvk.kind != evidence.object.gvk.kind {
                    controller.added = (controller.added.0 || added, controller.added.1 || !added);
                }
                controller.echoed.insert((object.gvk.group.clone(), object.gvk.kind.clone()));
                if let Some(maker) = self.makers.get_mut(&object.key()) {
                    maker.echoed |= maker.controller == evidence.controller;
                }
            }
        }
        controller.growth.take(evidence, self.started);
        if evidence.error.is_empty() && evidence.panic.is_empty() {
            controller.good += 1;
            let period = evidence.requeue.filter(|after| *after >= Duration::from_secs(1));
            controller.period = period.or(controller.period);
        }
        if evidence.ended.duration_since(evidence.at) >= SignedDuration::from_secs(5) {
            controller.busy = Some((evidence.at, evidence.ended));
        }
        for write in evidence.writes.iter().filter(|write| write.created && !is_never(&write.object)) {
            if let Some(rest) = names::around(&write.object.name, &evidence.object.name) {
                let kind = write.object.gvk.kind.clone();
                let known = controller.rests.entry(kind).or_insert_with(|| (rest.clone(), BTreeSet::new()));
                if known.0 == rest && known.1.len() < 3 {
                    known.1.insert(evidence.object.name.clone());
                }
            }
        }
    }

    fn take_track(&mut self, evidence: &Evidence) {
        let outside = evidence.causes.iter().any(|cause| self.is_outside(cause));
        let place = (evidence.controller.clone(), evidence.object.key());
        let mut track = self.tracks.remove(&place).unwrap_or_default();
        track.object = evidence.object.clone();
        track.count += 1;
        track.by_timer = evidence.causes.iter().any(|cause| matches!(cause.kind, CauseKind::Wait { .. }))
            && track.requeue.is_some_and(|after| after >= Duration::from_secs(1));
        if outside {
            track.outside_at = evidence.at;
            track.fields.clear();
            track.made.clear();
            track.unchanged.clear();
            track.times_only = 0;
            track.idle = 0;
        }
        // A reconcile that puts back a child may say so in the status for a moment.
        let put_back = |write: &WriteFact| {
            write.created && self.makers.get(&write.object.key()).is_some_and(|maker| maker.deleted.is_none())
        };
        if evidence.writes.iter().any(put_back) {
            track.fields.retain(|(object, path), _| *object != place.1 || !path.starts_with(".status"));
        }
        track.take_writes(evidence);
        track.take_idle(evidence);
        track.wakes.take(evidence);
        let generation = self.live.get(&evidence.object.key()).map(|live| live.generation);
        track.take_touched(evidence, generation);
        track.take_versions(evidence);
        track.take_written(evidence);
        let failure = if evidence.error.is_empty() { &evidence.panic } else { &evidence.error };
        if failure.is_empty() {
            track.errors = 0;
            track.period = evidence.requeue.filter(|after| *after >= Duration::from_secs(1));
        } else {
            if track.errors == 0 || track.error != *failure {
                (track.errors, track.errors_since) = (0, evidence.at);
            }
            track.errors += 1;
        }
        track.failures.take(evidence, track.ended);
        track.by_pods = self.fails_by_pods(evidence);
        (track.error, track.requeue) = (failure.clone(), evidence.requeue);
        track.ended_before = track.ended;
        (track.began, track.ended) = (evidence.at, evidence.ended);
        self.wait_for(evidence, &track);
        self.take_configs(evidence, &mut track);
        if let Some(controller) = self.controllers.get_mut(&place.0) {
            controller.writes_status |= track.writes_status;
        }
        self.tracks.insert(place, track);
        self.heard(evidence);
        if let Some(live) = self.live.get_mut(&evidence.object.key())
            && let Some((at, _)) = live.changed
            // The program may hear of it a moment before opdev does.
            && evidence.at.duration_since(at) > SignedDuration::from_secs(-1)
            && evidence.at.duration_since(at) < MISSED
        {
            live.changed = None;
        }
    }

    fn take_makers(&mut self, evidence: &Evidence) {
        let deleting = evidence.deleting;
        for write in evidence.writes.iter().filter(|write| !write.unchanged && !is_never(&write.object)) {
            let key = write.object.key();
            if key == evidence.object.key() {
                continue;
            }
            if write.verb == opdev_event::evidence::WriteVerb::Delete {
                if let Some(maker) = self.makers.get_mut(&key) {
                    maker.deleted = Some(write.at);
                }
                continue;
            }
            if let Some(maker) = self.makers.get_mut(&key).filter(|_| !write.created) {
                maker.owned = !write.owners.is_empty();
                maker.tied |= write.tied;
                continue;
            }
            if !write.created {
                continue;
            }
            let before = self.makers.get(&key);
            let maker = Maker {
                controller: evidence.controller.clone(),
                primary: evidence.object.clone(),
                object: write.object.clone(),
                at: before.map_or(write.at, |before| before.at),
                reconcile: evidence.reconcile,
                times: before.map_or(0, |before| before.times) + 1,
                again: self.again(before, write.at, evidence),
                owned: !write.owners.is_empty(),
                tied: write.tied,
                keeps: evidence.keeps,
                late: deleting && before.is_none(),
                seen: self.shown.get(&key).is_some_and(|at| *at >= evidence.at),
                gone: false,
                went: None,
                content: write.content,
                double: self.is_double(write, evidence),
                echoed: false,
                place: write.place.clone(),
                deleted: None,
                remade: before.is_some_and(|before| self.is_missed(before, evidence)),
                guessed: evidence.is_guessed(),
                sharers: before.map(|before| before.sharers.clone()).unwrap_or_default(),
            };
            self.makers.insert(key, maker);
        }
    }

    /// True if the program had the time to hear of a deletion by somebody else, and has not. What goes with
    /// its custom resource, or a moment ago, or while no program ran proves nothing.
    fn is_missed(&self, child: &Maker, evidence: &Evidence) -> bool {
        let primary = self.live.get(&child.primary.key());
        let lives = primary.is_none_or(|live| live.gone.is_none() && live.deleting.is_none());
        let starts = evidence.causes.iter().any(|cause| matches!(cause.kind, CauseKind::Start));
        let waited = child.went.is_some_and(|went| evidence.at.duration_since(went) >= MISSED);
        lives && waited && !starts && !evidence.deleting && child.deleted.is_none()
    }

    pub fn sources_changed(&mut self, changed: &SourcesChanged) {
        let prints = |kind: &&opdev_event::KindStatus| {
            kind.columns.iter().any(|column| column.path.starts_with(".status"))
        };
        let with_status = changed.kinds.iter().filter(prints);
        self.with_status = with_status.map(|kind| (kind.gvk.group.clone(), kind.gvk.kind.clone())).collect();
        self.custom.extend(changed.kinds.iter().map(|kind| (kind.gvk.group.clone(), kind.gvk.kind.clone())));
    }

    /// Another process runs: counts begin anew, makers stay.
    pub fn restarted(&mut self, at: Timestamp, saved: bool) {
        self.now = self.now.max(at);
        self.take_restart(!saved, at);
        self.started = Some(at);
        self.missing_kinds = missing_kinds::MissingKinds::default();
        self.caches = cached::Caches::default();
        self.running.clear();
        self.tracks.clear();
        self.controllers.clear();
        self.conflicts.clear();
        self.refused.clear();
        self.turns.clear();
        self.pending.clear();
        self.taken.clear();
        self.values.restarted();
        self.live.values_mut().for_each(|live| live.changed = None);
        self.makers.values_mut().for_each(|maker| maker.went = None);
    }

    pub fn stopped(&mut self) {
        self.started = None;
        self.running.clear();
    }

    /// True if the program has used what it uses: it has run for a while and does nothing, or for long.
    pub fn has_run(&self) -> bool {
        let since = |at: Timestamp| self.now.duration_since(at).as_secs();
        let idle = self.running.is_empty() && self.tracks.values().all(|track| since(track.ended) >= 10);
        self.started.map(since).is_some_and(|ran| ran >= 90 || ran >= 30 && idle)
    }

    /// True if something may follow though nothing happens.
    pub fn waits(&self) -> bool {
        !self.pending.is_empty()
            || !self.running.is_empty()
            || self.live.values().any(|live| live.gone.is_none() && live.deleting.is_some())
            || self
                .live
                .values()
                .any(|live| live.changed.is_some_and(|(at, _)| live.asked != Some(at) && self.is_recent(at)))
            || !self.taken.is_empty()
            || self.has_unheard()
            || self.has_drift()
            || self.caches.0.values().any(|cache| cache.news)
            || self.left().next().is_some()
    }

    /// Children that live on though what they were made for is gone.
    pub fn left(&self) -> impl Iterator<Item = (&Maker, Timestamp)> {
        self.makers
            .values()
            .filter(|maker| !maker.owned && !maker.tied && !maker.keeps && !maker.late)
            .filter_map(|maker| {
                let gone = self.live.get(&maker.primary.key())?.gone?;
                (maker.seen && !maker.gone && maker.deleted.is_none() && maker.at < gone)
                    .then_some((maker, gone))
            })
    }

    /// Forgets judgements that have waited long enough, and children that nobody asks for any more.
    pub fn settle(&mut self) {
        let now = self.now;
        self.taken.retain(|(at, _)| now.duration_since(*at) <= ASKED_WITHIN);
        self.pending.retain(|one| now.duration_since(one.at) < one.what.lasts());
        // After a minute it was told, or never will be.
        let old: Vec<ObjectKey> = self
            .left()
            .filter(|(_, gone)| {
                now.duration_since(*gone) > SignedDuration::from_secs(60)
                    && self.started.is_none_or(|started| {
                        started < *gone || now.duration_since(started) > SignedDuration::from_secs(60)
                    })
            })
            .map(|(maker, _)| maker.object.key())
            .collect();
        if self.started.is_none() {
            for key in old {
                self.makers.remove(&key);
            }
        }
        if self.has_run() {
            self.caches.0.values_mut().for_each(|cache| cache.news = false);
        }
        let lately = |times: &VecDeque<Timestamp>| {
            times.back().is_some_and(|last| now.duration_since(*last) < SignedDuration::from_secs(120))
        };
        self.events.retain(|_, times| lately(times));
        self.events_about.retain(|_, times| lately(times));
    }

    fn bound(&mut self) {
        if self.makers.len() > MANY {
            self.makers.retain(|_, maker| !maker.gone && maker.deleted.is_none());
        }
        bounded(&mut self.turns);
        bounded(&mut self.refused);
        bounded(&mut self.events);
        bounded(&mut self.events_about);
        bounded(&mut self.shown);
        self.values.bound();
        bounded(&mut self.workloads);
        bounded(&mut self.selectors);
        bounded(&mut self.templates);
        bounded(&mut self.pods_gone);
        bounded(&mut self.written_at);
        bounded(&mut self.rewritten);
        if self.live.len() > MANY {
            self.live.retain(|_, live| live.gone.is_none());
        }
    }
}

/// Forgets all where there is too much: what goes on comes again.
fn bounded<K, V>(map: &mut HashMap<K, V>) {
    if map.len() > MANY {
        map.clear();
    }
}
