//! The problem: an object may change while it is being reconciled, while it waits for a retry, or while its
//! kind is paused. No cause may be lost, no object may run twice at once, and no failing object may starve
//! the others.
//!
//! The work queue: each object at most once, at most one worker per object, a limit per kind, back-off per
//! object. It carries sets of causes, not just keys: a cause that comes while a reconcile waits or runs is
//! kept for the next one. Pure: the time is handed in, nothing is spawned. `manager` drives it; `gate` stops
//! objects that are paused or wait for a decision; `timers` says when an object is ready again by itself.

mod gate;
mod timers;

use gate::Gate;
use opdev_client::forbidden::FORBIDDEN_PAUSE;
use opdev_event::{Cause, CauseKind, FieldChange, QueueChanged, WatchEvent};
use opdev_object::meta::ObjectKey;
use std::collections::{HashMap, VecDeque};
use std::time::Duration;
use timers::{Timer, Timers};
use tokio::time::Instant;

/// The back-off after the first failure; each further one doubles it.
const FIRST_BACKOFF: Duration = Duration::from_millis(5);
/// The longest back-off.
const LONGEST_BACKOFF: Duration = Duration::from_secs(1000);
/// How many causes an object keeps; a busy object does not need more to explain a reconcile.
const CAUSE_LIMIT: usize = 64;

/// Group and kind: what limits and removals go by.
pub(crate) type Kind = (String, String);

/// The kind an object belongs to.
pub(crate) fn kind_of(key: &ObjectKey) -> Kind {
    (key.group.clone(), key.kind.clone())
}

/// The urgency of a cause.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Urgency {
    /// Kept for the next reconcile, whatever leads to it: the echo of an own write.
    Record,
    /// Asks for a reconcile, but waits while the object backs off: an event of a dependent.
    Wait,
    /// Asks for a reconcile now, back-off or not: a change by others, a saved file, a key.
    Now,
}

/// Where a cause came from: enough to tell later whether an own write was behind it.
pub(crate) type Mark = (String, String);

/// A cause that may turn out to be the echo of an own write.
#[derive(Clone, Debug)]
pub(crate) struct Trace {
    pub(crate) mark: Mark,
    /// As an echo it asks for nothing.
    pub(crate) quiet: bool,
    /// It comes from the first list of a kind: nothing has happened if the reconcile has read the object,
    /// too.
    pub(crate) listed: bool,
}

/// The origin of an object's state, as far as the reconcile knows that has just ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    /// It wrote it.
    Own,
    /// It has read it.
    Read,
    /// It does not know it.
    Other,
}

/// An object for a worker.
#[derive(Debug)]
pub(crate) struct Taken {
    pub(crate) key: ObjectKey,
    pub(crate) causes: Vec<Cause>,
    /// The time it had been ready.
    pub(crate) queued: Duration,
    /// How many reconciles in a row have failed before this one.
    pub(crate) failures: u32,
}

/// The end of a reconcile.
#[derive(Debug)]
pub(crate) enum Ended {
    /// Well; runs again after a while, where it says so.
    Done(Option<(Duration, CauseKind)>),
    /// With an error; runs again after a pause, unless a retry cannot help.
    Failed { error: String, retry: Option<Retry> },
}

/// The pause before a failed reconcile is tried again. Each further failure doubles it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Retry {
    /// As controller-runtime does.
    Soon,
    /// Rarely: an administrator has to do something first.
    Rarely,
}

impl Retry {
    /// The pause after so many failures in a row.
    pub(crate) fn pause(self, failures: u32) -> Duration {
        let (first, longest) = match self {
            Retry::Soon => (FIRST_BACKOFF, LONGEST_BACKOFF),
            Retry::Rarely => FORBIDDEN_PAUSE,
        };
        let doublings = failures.saturating_sub(1).min(18);
        (first * 2_u32.pow(doublings)).min(longest)
    }
}

#[derive(Debug, Default)]
struct Entry {
    pending: Vec<Pending>,
    state: State,
    timer: Option<Timer>,
    failures: u32,
}

#[derive(Debug)]
struct Pending {
    cause: Cause,
    urgency: Urgency,
    trace: Option<Trace>,
}

#[derive(Debug, Default)]
enum State {
    #[default]
    Idle,
    Ready {
        since: Instant,
    },
    Running,
}

/// The queue.
#[derive(Debug, Default)]
pub(crate) struct Queue {
    /// Paused objects and kinds.
    pub(crate) gate: Gate,
    entries: HashMap<ObjectKey, Entry>,
    ready: HashMap<Kind, VecDeque<ObjectKey>>,
    running: HashMap<Kind, usize>,
    limits: HashMap<Kind, usize>,
    timers: Timers,
}

impl Queue {
    /// Sets how many objects of a kind may run at once.
    pub(crate) fn limit(&mut self, kind: Kind, limit: usize) {
        self.limits.insert(kind, limit.max(1));
    }

    /// Adds a cause. `trace` names the write it may be the echo of, for `end` to judge.
    pub(crate) fn add(
        &mut self,
        key: &ObjectKey,
        cause: Cause,
        urgency: Urgency,
        trace: Option<Trace>,
        now: Instant,
    ) {
        let entry = self.entries.entry(key.clone()).or_default();
        if entry.pending.len() < CAUSE_LIMIT || urgency == Urgency::Now {
            entry.pending.push(Pending { cause, urgency, trace });
        }
        let backing_off = entry.timer.as_ref().is_some_and(|timer| timer.backoff);
        if urgency == Urgency::Now || (urgency == Urgency::Wait && !backing_off) {
            self.make_ready(key, now);
        }
    }

    fn make_ready(&mut self, key: &ObjectKey, now: Instant) {
        let Some(entry) = self.entries.get_mut(key) else { return };
        if matches!(entry.state, State::Idle) {
            entry.state = State::Ready { since: now };
            if let Some(timer) = entry.timer.take() {
                self.timers.stop(&timer);
            }
            self.ready.entry(kind_of(key)).or_default().push_back(key.clone());
        }
    }

    /// Moves the objects whose time has come to the ready ones.
    pub(crate) fn advance(&mut self, now: Instant, wall: jiff::Timestamp) {
        while let Some(key) = self.timers.take(now) {
            let Some(entry) = self.entries.get_mut(&key) else { continue };
            if let Some(timer) = entry.timer.take() {
                let cause = Cause { at: wall, kind: timer.why };
                entry.pending.push(Pending { cause, urgency: Urgency::Now, trace: None });
                self.make_ready(&key, now);
            }
        }
    }

    /// Ends every back-off: what made the reconciles fail is gone.
    pub(crate) fn hurry(&mut self, now: Instant) {
        for timer in self.entries.values_mut().filter_map(|entry| entry.timer.as_mut()) {
            if timer.backoff {
                self.timers.hurry(timer, now);
            }
        }
    }

    /// When `advance` has something to do next.
    pub(crate) fn next_deadline(&self) -> Option<Instant> {
        self.timers.next()
    }

    /// The next object for a worker, if a kind has both one that is ready and a free worker.
    pub(crate) fn take(&mut self, now: Instant) -> Option<Taken> {
        let (kind, at) = self
            .ready
            .iter()
            .filter(|(kind, _)| {
                let running = self.running.get(*kind).copied().unwrap_or(0);
                running < self.limits.get(*kind).copied().unwrap_or(1)
            })
            .filter_map(|(kind, keys)| Some((kind, keys, self.gate.first(kind, keys)?)))
            .min_by_key(|(_, keys, at)| match self.entries.get(&keys[*at]).map(|entry| &entry.state) {
                Some(State::Ready { since }) => *since,
                _ => now,
            })
            .map(|(kind, _, at)| (kind.clone(), at))?;
        let key = self.ready.get_mut(&kind)?.remove(at)?;
        self.gate.passed(&key);
        let entry = self.entries.get_mut(&key)?;
        let queued = match std::mem::replace(&mut entry.state, State::Running) {
            State::Ready { since } => now.saturating_duration_since(since),
            State::Idle | State::Running => Duration::ZERO,
        };
        *self.running.entry(kind).or_default() += 1;
        let causes = merge(entry.pending.drain(..).map(|pending| pending.cause));
        Some(Taken { key, causes, queued, failures: entry.failures })
    }

    /// A worker is done with an object. `judge` tells which marks were own writes after all.
    pub(crate) fn end(
        &mut self,
        key: &ObjectKey,
        ended: Ended,
        judge: impl Fn(&Mark) -> Origin,
        now: Instant,
    ) {
        if let Some(running) = self.running.get_mut(&kind_of(key)) {
            *running = running.saturating_sub(1);
        }
        let Some(entry) = self.entries.get_mut(key) else { return };
        entry.state = State::Idle;
        let is = |trace: &Trace, origin| judge(&trace.mark) == origin;
        entry.pending.retain(|pending| {
            !pending.trace.as_ref().is_some_and(|trace| trace.listed && is(trace, Origin::Read))
        });
        for pending in &mut entry.pending {
            let Some(trace) = pending.trace.as_ref().filter(|trace| is(trace, Origin::Own)) else { continue };
            if trace.quiet {
                pending.urgency = Urgency::Record;
            }
            if let CauseKind::Watch { own_write, .. } = &mut pending.cause.kind {
                *own_write = true;
            }
        }
        let again = match ended {
            Ended::Done(again) => {
                entry.failures = 0;
                again.map(|(after, why)| (after, why, false))
            }
            Ended::Failed { error, retry } => {
                entry.failures = entry.failures.saturating_add(1);
                let why = CauseKind::Retry { attempt: entry.failures, error };
                retry.map(|retry| (retry.pause(entry.failures), why, true))
            }
        };
        let failed = again.as_ref().is_some_and(|(.., backoff)| *backoff);
        let wanted = if failed { Urgency::Now } else { Urgency::Wait };
        if entry.pending.iter().any(|pending| pending.urgency >= wanted) {
            if let Some((_, why @ CauseKind::Retry { .. }, _)) = again {
                let at = entry.pending[0].cause.at;
                let cause = Cause { at, kind: why };
                entry.pending.insert(0, Pending { cause, urgency: Urgency::Now, trace: None });
            }
            self.make_ready(key, now);
        } else if let Some((after, why, backoff)) = again {
            entry.timer = Some(self.timers.set(key, now + after, why, backoff));
        } else if entry.pending.is_empty() && entry.failures == 0 {
            self.entries.remove(key);
        }
    }

    /// Forgets an object that does not exist any more; a running reconcile ends as usual.
    pub(crate) fn forget(&mut self, key: &ObjectKey) {
        self.gate.forget(key);
        let Some(entry) = self.entries.get_mut(key) else { return };
        if matches!(entry.state, State::Running) {
            return;
        }
        if let Some(timer) = entry.timer.take() {
            self.timers.stop(&timer);
        }
        self.entries.remove(key);
        if let Some(ready) = self.ready.get_mut(&kind_of(key)) {
            ready.retain(|waiting| waiting != key);
        }
    }

    /// Forgets all objects of a kind.
    pub(crate) fn forget_kind(&mut self, kind: &Kind) {
        let keys: Vec<ObjectKey> = self.entries.keys().filter(|key| kind_of(key) == *kind).cloned().collect();
        for key in keys {
            self.forget(&key);
        }
        self.limits.remove(kind);
        self.gate.forget_kind(kind);
    }

    /// Returns true if a worker has the object right now.
    pub(crate) fn is_running(&self, key: &ObjectKey) -> bool {
        self.entries.get(key).is_some_and(|entry| matches!(entry.state, State::Running))
    }

    /// How many objects of a kind wait for a worker.
    pub(crate) fn waiting(&self, kind: &Kind) -> usize {
        self.ready.get(kind).map_or(0, |ready| ready.iter().filter(|key| !self.gate.holds(key)).count())
    }

    /// How full it is. Asked after each change of any object, so it looks at none where nothing is paused.
    pub(crate) fn counts(&self) -> QueueChanged {
        let ready = self.ready.values();
        let waiting = if self.gate.is_open() {
            ready.map(VecDeque::len).sum()
        } else {
            ready.flatten().filter(|key| !self.gate.holds(key)).count()
        };
        let count = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
        QueueChanged {
            waiting: count(waiting),
            running: count(self.running.values().sum()),
            backing_off: count(self.timers.backing_off()),
        }
    }
}

/// Joins updates of one object by one writer: the first old value and the last new one of each field.
fn merge(causes: impl Iterator<Item = Cause>) -> Vec<Cause> {
    let mut merged: Vec<Cause> = Vec::new();
    for cause in causes {
        match merged.iter_mut().find(|earlier| same_source(&earlier.kind, &cause.kind)) {
            Some(earlier) => {
                if let (CauseKind::Watch { fields, .. }, CauseKind::Watch { fields: newer, .. }) =
                    (&mut earlier.kind, cause.kind)
                {
                    merge_fields(fields, newer);
                }
            }
            None => merged.push(cause),
        }
    }
    merged
}

fn merge_fields(fields: &mut Vec<FieldChange>, newer: Vec<FieldChange>) {
    for change in newer {
        match fields.iter_mut().find(|field| field.path == change.path) {
            Some(field) => field.new = change.new,
            None => fields.push(change),
        }
    }
}

fn same_source(a: &CauseKind, b: &CauseKind) -> bool {
    match (a, b) {
        (
            CauseKind::Watch { object: a, event: WatchEvent::Modified, by: by_a, own_write: own_a, .. },
            CauseKind::Watch { object: b, event: WatchEvent::Modified, by: by_b, own_write: own_b, .. },
        ) => a == b && by_a == by_b && own_a == own_b,
        (CauseKind::Reload { .. }, CauseKind::Reload { .. }) => a == b,
        (CauseKind::Start, CauseKind::Start)
        | (CauseKind::Period, CauseKind::Period)
        | (CauseKind::User, CauseKind::User)
        | (CauseKind::Check, CauseKind::Check) => true,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use jiff::Timestamp;
    use opdev_event::Relation;
    use opdev_object::meta::{Gvk, ObjectRef};

    fn key(name: &str) -> ObjectKey {
        ObjectKey {
            group: "g".into(),
            kind: "K".into(),
            namespace: Some("default".into()),
            name: name.to_owned(),
        }
    }

    fn cause(kind: CauseKind) -> Cause {
        Cause { at: Timestamp::UNIX_EPOCH, kind }
    }

    fn modified(field: &str, old: &str, new: &str) -> Cause {
        cause(CauseKind::Watch {
            object: ObjectRef { gvk: Gvk::new("", "v1", "Service"), name: "s".into(), ..Default::default() },
            event: WatchEvent::Modified,
            fields: vec![FieldChange { path: field.into(), old: Some(old.into()), new: Some(new.into()) }],
            by: None,
            own_write: false,
            relation: Relation::Owner,
        })
    }

    struct World {
        queue: Queue,
        now: Instant,
    }

    impl World {
        fn new(limit: usize) -> World {
            let mut queue = Queue::default();
            queue.limit(("g".into(), "K".into()), limit);
            World { queue, now: Instant::now() }
        }

        fn add(&mut self, name: &str, kind: CauseKind, urgency: Urgency) {
            self.queue.add(&key(name), cause(kind), urgency, None, self.now);
        }

        fn take(&mut self) -> Option<String> {
            self.queue.take(self.now).map(|taken| taken.key.name)
        }

        fn end(&mut self, name: &str, ended: Ended) {
            self.queue.end(&key(name), ended, |_| Origin::Other, self.now);
        }

        fn reconcile_time(&mut self, by: Duration) {
            self.now += by;
            self.queue.advance(self.now, Timestamp::UNIX_EPOCH);
        }

        fn fail(&mut self, name: &str) {
            self.end(name, Ended::Failed { error: "no".into(), retry: Some(Retry::Soon) });
        }
    }

    #[test]
    fn an_object_waits_once_and_runs_once_with_all_its_causes() {
        let mut world = World::new(4);
        world.add("a", CauseKind::Start, Urgency::Now);
        world.add("a", CauseKind::User, Urgency::Now);
        let taken = world.queue.take(world.now).unwrap();
        assert_eq!(taken.causes.len(), 2);
        world.add("a", CauseKind::User, Urgency::Now);
        assert!(world.take().is_none(), "one worker per object");
        world.end("a", Ended::Done(None));
        assert_eq!(world.take().as_deref(), Some("a"), "what came while it ran leads to another reconcile");
        world.end("a", Ended::Done(None));
        assert!(world.take().is_none());
        assert!(world.queue.entries.is_empty(), "nothing is kept of an idle object");
    }

    #[test]
    fn a_kind_runs_no_more_than_its_limit_in_order_of_waiting() {
        let mut world = World::new(2);
        for name in ["a", "b", "c"] {
            world.add(name, CauseKind::Start, Urgency::Now);
        }
        assert_eq!((world.take().as_deref(), world.take().as_deref()), (Some("a"), Some("b")));
        assert!(world.take().is_none());
        assert_eq!(world.queue.counts(), QueueChanged { waiting: 1, running: 2, backing_off: 0 });
        world.end("b", Ended::Done(None));
        assert_eq!(world.take().as_deref(), Some("c"));
    }

    #[test]
    fn failures_back_off_doubling_and_success_forgets_them() {
        assert_eq!(Retry::Soon.pause(1), Duration::from_millis(5));
        assert_eq!(Retry::Soon.pause(3), Duration::from_millis(20));
        assert_eq!(Retry::Soon.pause(60), Duration::from_secs(1000));
        let mut world = World::new(1);
        world.add("a", CauseKind::Start, Urgency::Now);
        for attempt in 1..=3 {
            assert_eq!(world.take().as_deref(), Some("a"), "attempt {attempt}");
            world.fail("a");
            world.reconcile_time(Retry::Soon.pause(attempt).checked_sub(Duration::from_millis(1)).unwrap());
            assert!(world.take().is_none());
            assert_eq!(world.queue.counts().backing_off, 1);
            world.reconcile_time(Duration::from_millis(1));
        }
        let taken = world.queue.take(world.now).unwrap();
        assert_eq!(taken.failures, 3);
        assert_eq!(taken.causes[0].kind, CauseKind::Retry { attempt: 3, error: "no".into() });
        world.end("a", Ended::Done(None));
        world.add("a", CauseKind::Start, Urgency::Now);
        assert_eq!(world.queue.take(world.now).unwrap().failures, 0);
    }

    #[test]
    fn own_writes_and_dependents_do_not_bypass_the_backoff_but_others_do() {
        let mut world = World::new(1);
        world.add("a", CauseKind::Start, Urgency::Now);
        world.take();
        world.fail("a");
        world.add("a", CauseKind::Start, Urgency::Record);
        world.queue.add(&key("a"), modified(".spec.x", "1", "2"), Urgency::Wait, None, world.now);
        assert!(world.take().is_none());
        world.add("a", CauseKind::User, Urgency::Now);
        let taken = world.queue.take(world.now).unwrap();
        assert_eq!(taken.causes.len(), 3, "recorded causes ride along");
        world.end("a", Ended::Done(None));
        world.reconcile_time(Duration::from_secs(2000));
        assert!(world.take().is_none(), "the back-off's timer is gone");
    }

    #[test]
    fn a_write_that_turns_out_to_be_our_own_is_recorded_and_not_run() {
        let mut world = World::new(1);
        world.add("a", CauseKind::Start, Urgency::Now);
        world.take();
        let mark = ("uid".to_owned(), "7".to_owned());
        world.queue.add(
            &key("a"),
            modified(".spec.x", "1", "2"),
            Urgency::Wait,
            Some(Trace { mark: mark.clone(), quiet: true, listed: false }),
            world.now,
        );
        world.queue.end(&key("a"), Ended::Done(None), |m| own(*m == mark), world.now);
        assert!(world.take().is_none());
        world.add("a", CauseKind::User, Urgency::Now);
        let taken = world.queue.take(world.now).unwrap();
        assert!(matches!(taken.causes[0].kind, CauseKind::Watch { own_write: true, .. }));
    }

    fn own(is: bool) -> Origin {
        if is { Origin::Own } else { Origin::Other }
    }

    #[test]
    fn what_a_first_list_shows_while_a_reconcile_runs_asks_for_another_one_unless_it_was_read() {
        for (origin, again) in [(Origin::Read, false), (Origin::Own, true), (Origin::Other, true)] {
            let mut world = World::new(1);
            world.add("a", CauseKind::Start, Urgency::Now);
            world.take();
            let trace = Trace { mark: ("uid".to_owned(), "7".to_owned()), quiet: false, listed: true };
            let cause = modified(".spec.x", "1", "2");
            world.queue.add(&key("a"), cause, Urgency::Wait, Some(trace), world.now);
            world.queue.end(&key("a"), Ended::Done(None), |_| origin, world.now);
            assert_eq!(world.take().is_some(), again, "{origin:?}");
        }
    }

    #[test]
    fn the_period_runs_an_object_again_unless_something_else_did() {
        let mut world = World::new(1);
        let period = Duration::from_secs(60);
        world.add("a", CauseKind::Start, Urgency::Now);
        world.take();
        world.end("a", Ended::Done(Some((period, CauseKind::Period))));
        assert_eq!(world.queue.next_deadline(), Some(world.now + period));
        world.reconcile_time(Duration::from_secs(59));
        assert!(world.take().is_none());
        world.add("a", CauseKind::User, Urgency::Now);
        assert!(world.take().is_some());
        world.end("a", Ended::Done(Some((period, CauseKind::Period))));
        world.reconcile_time(Duration::from_secs(59));
        assert!(world.take().is_none(), "the period starts anew with each reconcile");
        world.reconcile_time(Duration::from_secs(1));
        assert_eq!(world.queue.take(world.now).unwrap().causes[0].kind, CauseKind::Period);
    }

    #[test]
    fn updates_of_one_object_are_joined() {
        let mut world = World::new(1);
        for (old, new) in [("3", "5"), ("5", "7")] {
            world.queue.add(&key("a"), modified(".spec.replicas", old, new), Urgency::Wait, None, world.now);
        }
        let taken = world.queue.take(world.now).unwrap();
        assert_eq!(taken.causes.len(), 1);
        let CauseKind::Watch { fields, .. } = &taken.causes[0].kind else { panic!() };
        assert_eq!((fields[0].old.as_deref(), fields[0].new.as_deref()), (Some("3"), Some("7")));
    }

    #[test]
    fn a_kind_that_left_leaves_nothing_behind() {
        let mut world = World::new(1);
        world.add("a", CauseKind::Start, Urgency::Now);
        world.add("b", CauseKind::Start, Urgency::Now);
        world.take();
        world.queue.forget_kind(&("g".into(), "K".into()));
        assert!(world.take().is_none());
        world.end("a", Ended::Failed { error: "gone".into(), retry: None });
        assert_eq!(world.queue.counts(), QueueChanged::default());
        assert_eq!(world.queue.next_deadline(), None);
    }
}
