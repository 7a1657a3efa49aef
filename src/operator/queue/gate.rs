//! The gate between queue and reconcilers. A paused object stays queued and its causes keep collecting, until
//! it is resumed or let through once. So does a kind of which it is not decided if its newest version goes on
//! serving. Pure: nothing waits here, the queue only skips the objects that the gate stops.

use super::{Kind, Queue, State, kind_of};
use jiff::Timestamp;
use opdev_event::{PauseScope, Paused};
use opdev_object::meta::{Gvk, ObjectKey, ObjectRef};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// The reason of a pause, and its time.
#[derive(Clone, Debug)]
struct Hold {
    gvk: Gvk,
    since: Timestamp,
    why: Option<String>,
}

/// The paused objects and kinds.
#[derive(Debug, Default)]
pub(crate) struct Gate {
    objects: BTreeMap<ObjectKey, Hold>,
    kinds: BTreeMap<Kind, Hold>,
    /// Objects that may pass once although they are paused.
    steps: BTreeSet<ObjectKey>,
    /// Kinds whose reconciler or chart may have to give way to the one before it, each with the set of
    /// sources that it came with. None of their objects passes until that is decided.
    undecided: BTreeMap<Kind, u64>,
}

impl Gate {
    /// Pauses an object or a kind. `why` is for a pause by opdev itself; the user knows their own reasons.
    /// Returns false where it was paused already.
    pub(crate) fn pause(&mut self, scope: &PauseScope, why: Option<String>, at: Timestamp) -> bool {
        match scope {
            PauseScope::Object { object } => {
                let hold = Hold { gvk: object.gvk.clone(), since: at, why };
                let new = !self.objects.contains_key(&object.key());
                self.objects.entry(object.key()).or_insert(hold);
                new
            }
            PauseScope::Kind { gvk } => {
                let hold = Hold { gvk: gvk.clone(), since: at, why };
                let kind = (gvk.group.clone(), gvk.kind.clone());
                let new = !self.kinds.contains_key(&kind);
                self.kinds.entry(kind).or_insert(hold);
                new
            }
        }
    }

    /// Resumes an object, or a kind with all its objects. Returns false where nothing was paused.
    pub(crate) fn resume(&mut self, scope: &PauseScope) -> bool {
        match scope {
            PauseScope::Object { object } => {
                self.steps.remove(&object.key());
                self.objects.remove(&object.key()).is_some()
            }
            PauseScope::Kind { gvk } => {
                let kind = (gvk.group.clone(), gvk.kind.clone());
                let before = self.objects.len();
                self.objects.retain(|key, _| kind_of(key) != kind);
                self.steps.retain(|key| kind_of(key) != kind);
                self.kinds.remove(&kind).is_some() || self.objects.len() < before
            }
        }
    }

    /// Resumes an object that opdev paused by itself.
    pub(crate) fn let_go(&mut self, key: &ObjectKey) {
        if self.objects.get(key).is_some_and(|hold| hold.why.is_some()) {
            self.objects.remove(key);
            self.steps.remove(key);
        }
    }

    /// Lets a paused object pass once.
    pub(crate) fn step(&mut self, key: &ObjectKey) {
        if self.holds(key) {
            self.steps.insert(key.clone());
        }
    }

    /// Returns true if nothing is paused.
    pub(super) fn is_open(&self) -> bool {
        self.objects.is_empty() && self.kinds.is_empty()
    }

    /// Returns true if an object may not pass now.
    pub(crate) fn holds(&self, key: &ObjectKey) -> bool {
        !self.steps.contains(key) && self.is_paused(key)
    }

    /// Returns true if an object, or its kind, is paused; it may still be let through once.
    pub(crate) fn is_paused(&self, key: &ObjectKey) -> bool {
        self.objects.contains_key(key) || self.holds_kind(key)
    }

    /// Returns true if the kind of an object is paused as a whole.
    pub(crate) fn holds_kind(&self, key: &ObjectKey) -> bool {
        !self.kinds.is_empty() && self.kinds.contains_key(&kind_of(key))
    }

    /// Stops a kind until it is decided if the version of a set of sources goes on serving it.
    pub(crate) fn await_decision(&mut self, kind: Kind, sources: u64) {
        self.undecided.insert(kind, sources);
    }

    /// Returns true if that is not decided yet.
    pub(crate) fn is_undecided(&self, kind: &Kind) -> bool {
        self.undecided.contains_key(kind)
    }

    /// The version that came with this set of sources goes on serving the kind.
    pub(crate) fn decided(&mut self, kind: &Kind, sources: u64) {
        if self.undecided.get(kind) == Some(&sources) {
            self.undecided.remove(kind);
        }
    }

    /// The version that serves the kind came with this set of sources.
    pub(crate) fn serves(&mut self, kind: &Kind, sources: u64) {
        if self.undecided.get(kind).is_some_and(|asked| *asked < sources) {
            self.undecided.remove(kind);
        }
    }

    /// The place of the first object that may pass, of one kind's ready ones.
    pub(super) fn first(&self, kind: &Kind, ready: &VecDeque<ObjectKey>) -> Option<usize> {
        if self.is_undecided(kind) {
            return None;
        }
        if self.steps.is_empty() && self.kinds.contains_key(kind) {
            return None;
        }
        ready.iter().position(|key| !self.holds(key))
    }

    /// An object has passed.
    pub(super) fn passed(&mut self, key: &ObjectKey) {
        self.steps.remove(key);
    }

    /// An object is gone: another one of its name is not meant.
    pub(crate) fn forget(&mut self, key: &ObjectKey) {
        self.objects.remove(key);
        self.steps.remove(key);
    }

    /// A kind has left.
    pub(super) fn forget_kind(&mut self, kind: &Kind) {
        self.kinds.remove(kind);
        self.undecided.remove(kind);
        self.objects.retain(|key, _| kind_of(key) != *kind);
        self.steps.retain(|key| kind_of(key) != *kind);
    }
}

impl Queue {
    /// Everything that is paused, with the number of objects and causes that wait.
    pub(crate) fn paused(&self) -> Vec<Paused> {
        let behind = |key: &ObjectKey| {
            let entry = self.entries.get(key)?;
            matches!(entry.state, State::Ready { .. }).then_some(entry.pending.len())
        };
        let count = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
        let mut all = Vec::with_capacity(self.gate.kinds.len() + self.gate.objects.len());
        for (kind, hold) in &self.gate.kinds {
            let ready = self.ready.get(kind).into_iter().flatten().filter_map(behind);
            let (waiting, causes) = ready.fold((0, 0), |(n, sum), causes| (n + 1, sum + causes));
            all.push(Paused {
                what: PauseScope::Kind { gvk: hold.gvk.clone() },
                since: hold.since,
                why: hold.why.clone(),
                waiting: count(waiting),
                causes: count(causes),
            });
        }
        for (key, hold) in &self.gate.objects {
            let object = ObjectRef {
                gvk: hold.gvk.clone(),
                namespace: key.namespace.clone(),
                name: key.name.clone(),
                uid: None,
            };
            let causes = behind(key);
            all.push(Paused {
                what: PauseScope::Object { object },
                since: hold.since,
                why: hold.why.clone(),
                waiting: u32::from(causes.is_some()),
                causes: count(causes.unwrap_or(0)),
            });
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Ended, Origin, Urgency};
    use super::*;
    use opdev_event::{Cause, CauseKind};
    use tokio::time::Instant;

    fn object(name: &str) -> ObjectRef {
        ObjectRef { gvk: Gvk::new("g", "v1", "K"), namespace: None, name: name.to_owned(), uid: None }
    }

    fn scope(name: &str) -> PauseScope {
        PauseScope::Object { object: object(name) }
    }

    fn kind() -> PauseScope {
        PauseScope::Kind { gvk: Gvk::new("g", "v1", "K") }
    }

    struct World(Queue, Instant);

    impl World {
        fn new() -> World {
            let mut queue = Queue::default();
            queue.limit(("g".to_owned(), "K".to_owned()), 8);
            World(queue, Instant::now())
        }

        fn add(&mut self, name: &str, kind: CauseKind) {
            let cause = Cause { at: Timestamp::UNIX_EPOCH, kind };
            self.0.add(&object(name).key(), cause, Urgency::Now, None, self.1);
        }

        fn take(&mut self) -> Option<(String, usize)> {
            self.0.take(self.1).map(|taken| (taken.key.name, taken.causes.len()))
        }

        fn end(&mut self, name: &str) {
            self.0.end(&object(name).key(), Ended::Done(None), |_| Origin::Other, self.1);
        }
    }

    #[test]
    fn what_is_paused_collects_causes_and_the_others_go_on() {
        let mut world = World::new();
        assert!(world.0.gate.pause(&scope("a"), None, Timestamp::UNIX_EPOCH));
        assert!(!world.0.gate.pause(&scope("a"), None, Timestamp::UNIX_EPOCH), "it is paused already");
        world.add("a", CauseKind::Start);
        world.add("a", CauseKind::User);
        world.add("b", CauseKind::Start);
        assert_eq!(world.take(), Some(("b".to_owned(), 1)));
        assert_eq!(world.take(), None);
        assert_eq!(world.0.counts().waiting, 0, "who is paused does not wait for a worker");
        let paused = world.0.paused();
        assert_eq!((paused[0].waiting, paused[0].causes), (1, 2));
        assert!(world.0.gate.resume(&scope("a")));
        assert_eq!(world.take(), Some(("a".to_owned(), 2)), "all causes go with the reconcile");
        assert!(world.0.paused().is_empty());
    }

    #[test]
    fn a_kind_waits_until_it_is_decided_what_serves_it() {
        let kind = ("g".to_owned(), "K".to_owned());
        let mut world = World::new();
        world.add("a", CauseKind::Start);
        world.0.gate.await_decision(kind.clone(), 7);
        world.0.gate.step(&object("a").key());
        world.0.gate.decided(&kind, 6);
        world.0.gate.serves(&kind, 7);
        assert!(world.take().is_none() && world.0.gate.is_undecided(&kind));
        world.0.gate.decided(&kind, 7);
        assert_eq!(world.take(), Some(("a".to_owned(), 1)));
        world.end("a");
        world.0.gate.await_decision(kind.clone(), 7);
        world.add("a", CauseKind::User);
        assert_eq!(world.take(), None);
        world.0.gate.serves(&kind, 8);
        assert_eq!(world.take(), Some(("a".to_owned(), 1)));
    }

    #[test]
    fn a_step_is_one_reconcile() {
        for held in [scope("a"), kind()] {
            let mut world = World::new();
            world.0.gate.pause(&held, None, Timestamp::UNIX_EPOCH);
            for name in ["a", "b"] {
                world.add(name, CauseKind::Start);
            }
            if held == scope("a") {
                assert_eq!(world.take(), Some(("b".to_owned(), 1)));
            }
            world.0.gate.step(&object("a").key());
            assert_eq!(world.take(), Some(("a".to_owned(), 1)));
            world.add("a", CauseKind::User);
            world.end("a");
            assert_eq!(world.take(), None, "what came during the step waits for the next one");
            assert!(world.0.gate.is_paused(&object("a").key()));
        }
    }

    #[test]
    fn resuming_a_kind_resumes_its_objects_and_what_is_gone_is_forgotten() {
        let mut world = World::new();
        for held in [scope("a"), kind()] {
            world.0.gate.pause(&held, Some("it loops".to_owned()), Timestamp::UNIX_EPOCH);
        }
        world.add("a", CauseKind::Start);
        assert!(world.0.gate.resume(&kind()));
        assert_eq!(world.take(), Some(("a".to_owned(), 1)));
        world.end("a");
        world.0.gate.pause(&scope("a"), None, Timestamp::UNIX_EPOCH);
        world.0.forget(&object("a").key());
        world.add("a", CauseKind::Start);
        assert!(world.take().is_some());
        world.0.gate.pause(&kind(), None, Timestamp::UNIX_EPOCH);
        world.0.forget_kind(&("g".to_owned(), "K".to_owned()));
        assert!(world.0.paused().is_empty());
    }
}
