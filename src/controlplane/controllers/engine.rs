//! The work of all controllers: changes become keys, keys become syncs, syncs become writes. `lanes` has
//! their queues. Deterministic: time is handed in, nothing sleeps. Any number of threads may work at once; no
//! lock is held while something is written. `runner` gives it a clock and a store.

use super::recorder::Recorder;
use crate::contract::{Actor, Change, Controller, Key, Note, Refusal, ResourceInfo, Sync, View, Write};
use jiff::Timestamp;
use opdev_apimachinery::attributes::{Attributes, Lookup};
use opdev_apimachinery::lanes::{Job, Lanes};
use opdev_object::meta;
use serde_json::Value;
use std::collections::{BTreeSet, HashMap, HashSet, VecDeque};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard};
use std::time::Duration;

/// The API server as the engine sees it: reads, and writes on somebody's behalf.
pub trait Plane {
    /// The objects that can be read.
    fn view(&self) -> &dyn View;

    /// Carries out a write; gives the object afterwards, of a delete its last state.
    fn write(&self, actor: Actor, write: &Write) -> Result<Arc<Value>, Refusal>;
}

/// See the module.
pub struct Engine {
    controllers: Vec<Box<dyn Controller>>,
    state: Mutex<State>,
    memory: RwLock<Memory>,
    recorder: Mutex<Recorder>,
}

/// Work to do, and work that has failed.
struct State {
    lanes: Lanes,
    holds: HashMap<Job, (String, Duration)>,
    failures: HashMap<Job, u32>,
}

impl State {
    /// Looks at a job again later, each time later than the last.
    fn back_off(&mut self, job: &Job, elapsed: Duration) {
        let failures = self.failures.entry(job.clone()).or_insert(0);
        *failures = failures.saturating_add(1);
        let delay = Duration::from_millis(5).saturating_mul(1 << (*failures).min(14));
        self.lanes.remind(job, elapsed + delay.min(Duration::from_secs(60)));
    }

    /// Returns true if the writes of this sync still have to wait.
    fn held(&mut self, job: &Job, sync: &Sync, elapsed: Duration) -> bool {
        let Some(hold) = &sync.hold else {
            self.holds.remove(job);
            return false;
        };
        let since = match self.holds.get(job) {
            Some((what, since)) if *what == hold.what => *since,
            _ => {
                self.holds.insert(job.clone(), (hold.what.clone(), elapsed));
                elapsed
            }
        };
        if since + hold.delay <= elapsed {
            self.holds.remove(job);
            return false;
        }
        self.lanes.remind(job, since + hold.delay);
        true
    }
}

/// The time: of the world, and since the start. Asked again where waiting may have taken long.
pub type Time<'a> = &'a dyn Fn() -> (Timestamp, Duration);

/// An index of the objects that the engine has seen.
#[derive(Default)]
struct Memory {
    /// Keys of the objects that refer to an owner, by its uid.
    dependents: HashMap<String, BTreeSet<Key>>,
    /// Uids of the latest objects that went, oldest first.
    gone: VecDeque<String>,
    gone_set: HashSet<String>,
}

/// More than this many gone objects and the oldest are forgotten.
const REMEMBERED: usize = 8192;

/// A plane with the engine's index of dependents.
struct Indexed<'a> {
    view: &'a dyn View,
    memory: &'a RwLock<Memory>,
}

impl Indexed<'_> {
    /// Held for one question only: the thread that observes changes waits for it.
    fn memory(&self) -> RwLockReadGuard<'_, Memory> {
        self.memory.read().unwrap_or_else(PoisonError::into_inner)
    }
}

impl View for Indexed<'_> {
    fn get(&self, resource: &str, namespace: Option<&str>, name: &str) -> Option<Arc<Value>> {
        self.view.get(resource, namespace, name)
    }

    fn list(&self, resource: &str, namespace: Option<&str>) -> Vec<Arc<Value>> {
        self.view.list(resource, namespace)
    }

    fn select(
        &self,
        resource: &str,
        namespace: Option<&str>,
        among: &Lookup<'_>,
        wanted: &dyn Fn(&Attributes) -> bool,
    ) -> Vec<Arc<Value>> {
        self.view.select(resource, namespace, among, wanted)
    }

    fn select_keys(
        &self,
        resource: &str,
        namespace: Option<&str>,
        among: &Lookup<'_>,
        wanted: &dyn Fn(&Attributes) -> bool,
    ) -> Vec<Key> {
        self.view.select_keys(resource, namespace, among, wanted)
    }

    fn each(
        &self,
        resource: &str,
        namespace: Option<&str>,
        among: &Lookup<'_>,
        look: &mut dyn FnMut(&Attributes),
    ) {
        self.view.each(resource, namespace, among, look);
    }

    fn attributes(&self, resource: &str, namespace: Option<&str>, name: &str) -> Option<Attributes> {
        self.view.attributes(resource, namespace, name)
    }

    fn resources(&self) -> Vec<ResourceInfo> {
        self.view.resources()
    }

    fn resource_of(&self, group: &str, kind: &str) -> Option<ResourceInfo> {
        self.view.resource_of(group, kind)
    }

    fn scale(&self, resource: &str, object: &Value) -> Option<Value> {
        self.view.scale(resource, object)
    }

    fn dependents(&self, uid: &str) -> Vec<(String, Arc<Value>)> {
        let keys = self.dependent_keys(uid);
        keys.into_iter().filter_map(|key| key.read(self.view).map(|object| (key.resource, object))).collect()
    }

    fn dependent_keys(&self, uid: &str) -> Vec<Key> {
        self.memory().dependents.get(uid).into_iter().flatten().cloned().collect()
    }

    fn has_gone(&self, uid: &str) -> bool {
        self.memory().gone_set.contains(uid)
    }
}

impl Memory {
    fn note(&mut self, change: &Change) {
        let Some(key) = change.key() else { return };
        for owner in change.before.iter().flat_map(|object| object.attributes().owners()) {
            if let Some(keys) = self.dependents.get_mut(&owner.uid) {
                keys.remove(&key);
                if keys.is_empty() {
                    self.dependents.remove(&owner.uid);
                }
            }
        }
        for owner in change.after.iter().flat_map(|object| object.attributes().owners()) {
            self.dependents.entry(owner.uid.clone()).or_default().insert(key.clone());
        }
        let uid = change.before.as_ref().filter(|_| change.gone()).map(|object| object.attributes().uid());
        if let Some(uid) = uid.filter(|uid| !uid.is_empty())
            && self.gone_set.insert(uid.to_owned())
        {
            self.gone.push_back(uid.to_owned());
            if self.gone.len() > REMEMBERED
                && let Some(oldest) = self.gone.pop_front()
            {
                self.gone_set.remove(&oldest);
            }
        }
    }
}

impl Engine {
    /// An engine for these controllers; their seeds are queued.
    pub fn new(controllers: Vec<Box<dyn Controller>>) -> Self {
        let mut lanes = Lanes::new(controllers.len());
        for (at, controller) in controllers.iter().enumerate() {
            controller.seeds().into_iter().for_each(|key| lanes.enqueue((at, key)));
        }
        let state = State { lanes, holds: HashMap::new(), failures: HashMap::new() };
        let (memory, recorder) = (RwLock::default(), Mutex::default());
        Engine { controllers, state: Mutex::new(state), memory, recorder }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes in one change of the store.
    pub fn observe(&self, plane: &dyn Plane, change: &Change) {
        self.memory.write().unwrap_or_else(PoisonError::into_inner).note(change);
        let view = Indexed { view: plane.view(), memory: &self.memory };
        let mut jobs = Vec::new();
        for (at, controller) in self.controllers.iter().enumerate() {
            let keys = catch_unwind(AssertUnwindSafe(|| controller.keys(&view, change)));
            let Ok(keys) = keys else {
                let key = change.key().map(|key| key.to_string());
                tracing::error!(controller = controller.name(), key, "a controller panicked over a change");
                continue;
            };
            jobs.extend(keys.into_iter().map(|key| (at, key)));
        }
        if jobs.is_empty() {
            return;
        }
        let mut state = self.state();
        jobs.into_iter().for_each(|job| state.lanes.enqueue(job));
    }

    /// Forgets which objects depend on which, before everything is observed anew.
    pub fn forget(&self) {
        self.memory.write().unwrap_or_else(PoisonError::into_inner).dependents.clear();
    }

    /// When the next timer is due.
    pub fn next_deadline(&self) -> Option<Duration> {
        self.state().lanes.next_deadline()
    }

    /// Something to do, for `perform`: of a controller that has fewer than `at_once` jobs under way. The
    /// controllers take turns.
    pub fn take(&self, elapsed: Duration, at_once: usize) -> Option<Job> {
        self.state().lanes.take(elapsed, at_once)
    }

    /// A job as a log tells it: its controller and the object.
    pub fn named(&self, job: &Job) -> String {
        format!("controller {}: {}", self.controllers[job.0].name(), job.1)
    }

    /// Does one job that was taken. One that panics is tried again later like one that fails, and keeps no
    /// other from its turn.
    pub fn perform(&self, plane: &dyn Plane, job: &Job, time: Time<'_>) {
        let attempt = catch_unwind(AssertUnwindSafe(|| self.attempt(plane, job, time)));
        let mut state = self.state();
        if attempt.is_err() {
            // The panic's own message may quote the object; the place is in the panic hook's output.
            tracing::error!(controller = self.controllers[job.0].name(), key = %job.1, "a controller panicked");
            state.back_off(job, time().1);
        }
        state.lanes.done(job);
    }

    fn attempt(&self, plane: &dyn Plane, job: &Job, time: Time<'_>) {
        let (now, elapsed) = time();
        let view = Indexed { view: plane.view(), memory: &self.memory };
        let sync = self.controllers[job.0].sync(&view, &job.1, now);
        {
            let mut state = self.state();
            if let Some(after) = sync.requeue_after {
                state.lanes.remind(job, elapsed + after);
            }
            if state.held(job, &sync, elapsed) {
                return;
            }
        }
        match self.carry_out(plane, job, &sync.writes, now) {
            Ok(()) => {
                self.state().failures.remove(job);
            }
            Err((at, refusal)) => self.failed(plane, job, &sync.writes[at], &refusal, time),
        }
    }

    fn carry_out(
        &self,
        plane: &dyn Plane,
        job: &Job,
        writes: &[Write],
        now: Timestamp,
    ) -> Result<(), (usize, Refusal)> {
        let actor = self.controllers[job.0].actor();
        let mut last: Option<Arc<Value>> = None;
        let mut skip_notes = false;
        let mut undeleted = None;
        for (at, write) in writes.iter().enumerate() {
            if let Write::Record(note) = write {
                if !skip_notes {
                    self.record(plane, job, note, last.as_deref(), now);
                }
                continue;
            }
            match plane.write(actor, write) {
                Ok(object) => {
                    last = Some(object);
                    skip_notes = false;
                }
                Err(refusal)
                    if refusal.code == 404 && matches!(write, Write::Delete { .. } | Write::Patch { .. }) =>
                {
                    skip_notes = true;
                }
                // One object that cannot be deleted keeps no other from going.
                Err(refusal) if refusal.code != 409 && matches!(write, Write::Delete { .. }) => {
                    skip_notes = true;
                    undeleted.get_or_insert((at, refusal));
                }
                Err(refusal) => return Err((at, refusal)),
            }
        }
        undeleted.map_or(Ok(()), Err)
    }

    fn record(&self, plane: &dyn Plane, job: &Job, note: &Note, last: Option<&Value>, now: Timestamp) {
        let controller = &self.controllers[job.0];
        let mut note = note.clone();
        if let Some(name) = last.and_then(meta::name) {
            note.message = note.message.replace("{name}", name);
        }
        let recorder = || self.recorder.lock().unwrap_or_else(PoisonError::into_inner);
        let write = recorder().record(plane.view(), &note, controller.name(), now);
        if let Err(refusal) = plane.write(controller.actor(), &write)
            && !refusal.namespace_terminating
        {
            let Refusal { code, reason, .. } = &refusal;
            tracing::debug!(controller = controller.name(), key = %job.1, code, reason, "event not recorded");
        }
    }

    fn failed(&self, plane: &dyn Plane, job: &Job, write: &Write, refusal: &Refusal, time: Time<'_>) {
        if refusal.namespace_terminating {
            return;
        }
        let name = self.controllers[job.0].name();
        // Never the message: it may quote what is in the object.
        let Refusal { code, reason, .. } = refusal;
        tracing::debug!(controller = name, key = %job.1, code, reason, "write refused");
        let conflict = refusal.code == 409;
        if !conflict {
            let now = time().0;
            let view = Indexed { view: plane.view(), memory: &self.memory };
            let writes = self.controllers[job.0].refused(&view, &job.1, write, refusal, now);
            if let Err((_, Refusal { code, reason, .. })) = self.carry_out(plane, job, &writes, now) {
                tracing::debug!(controller = name, key = %job.1, code, reason, "refused again");
            }
        }
        let mut state = self.state();
        if conflict && state.failures.get(job).is_none_or(|failures| *failures < 3) {
            *state.failures.entry(job.clone()).or_insert(0) += 1;
            state.lanes.enqueue(job.clone());
            return;
        }
        state.back_off(job, time().1);
    }
}
