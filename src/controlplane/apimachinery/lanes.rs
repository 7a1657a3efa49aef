//! The work queues of the controllers. Each controller has its own, so that a busy or waiting controller
//! never delays another one. One worker at a time works on a key; changes that arrive meanwhile are handled
//! afterwards. Deterministic: the time is passed in. Never knows what a controller does with a key.

use crate::contract::Key;
use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

/// A controller, by its place in the engine's list, and what it has to look at.
pub type Job = (usize, Key);

/// One controller's queue.
#[derive(Debug, Default)]
struct Lane {
    queue: VecDeque<Key>,
    queued: HashSet<Key>,
    /// Keys that are being synced now.
    running: HashSet<Key>,
    /// Keys to sync again when their sync ends.
    again: HashSet<Key>,
}

/// All queues, and the timers that fill them.
#[derive(Debug)]
pub struct Lanes {
    lanes: Vec<Lane>,
    /// The lane that is next.
    turn: usize,
    /// By when they are due. Each Event has one for an hour: there are many of them.
    timers: BTreeMap<Duration, Vec<Arc<Job>>>,
    /// When the next timer of a job is due.
    alarms: HashMap<Arc<Job>, Duration>,
}

impl Lanes {
    /// Queues for so many controllers.
    pub fn new(controllers: usize) -> Self {
        let lanes = (0..controllers).map(|_| Lane::default()).collect();
        Lanes { lanes, turn: 0, timers: BTreeMap::new(), alarms: HashMap::new() }
    }

    /// Has a controller look at a key, soon.
    pub fn enqueue(&mut self, (controller, key): Job) {
        let lane = &mut self.lanes[controller];
        if lane.running.contains(&key) {
            lane.again.insert(key);
        } else if lane.queued.insert(key.clone()) {
            lane.queue.push_back(key);
        }
    }

    /// Looks at a job again at a time, unless an earlier look is planned.
    pub fn remind(&mut self, job: &Job, at: Duration) {
        if self.alarms.get(job).is_some_and(|planned| *planned <= at) {
            return;
        }
        let shared =
            self.alarms.get_key_value(job).map_or_else(|| Arc::new(job.clone()), |(job, _)| job.clone());
        self.alarms.insert(shared.clone(), at);
        self.timers.entry(at).or_default().push(shared);
    }

    /// When the next timer is due.
    pub fn next_deadline(&self) -> Option<Duration> {
        self.timers.keys().next().copied()
    }

    fn ring(&mut self, elapsed: Duration) {
        while let Some((at, jobs)) = self.timers.pop_first() {
            if at > elapsed {
                self.timers.insert(at, jobs);
                return;
            }
            for job in jobs {
                // A timer that was overtaken by an earlier one has no alarm of its own any more.
                if self.alarms.get(&job) == Some(&at) {
                    self.alarms.remove(&job);
                    self.enqueue(Arc::unwrap_or_clone(job));
                }
            }
        }
    }

    /// The next job of the controller whose turn it is, of those that have one and fewer than `at_once` under
    /// way. The worker has to call `done` afterwards.
    pub fn take(&mut self, elapsed: Duration, at_once: usize) -> Option<Job> {
        self.ring(elapsed);
        let count = self.lanes.len();
        for offset in 0..count {
            let controller = (self.turn + offset) % count;
            let lane = &mut self.lanes[controller];
            if lane.running.len() >= at_once {
                continue;
            }
            let Some(key) = lane.queue.pop_front() else { continue };
            lane.queued.remove(&key);
            lane.running.insert(key.clone());
            self.turn = (controller + 1) % count;
            return Some((controller, key));
        }
        None
    }

    /// A job that was taken is over.
    pub fn done(&mut self, job: &Job) {
        let lane = &mut self.lanes[job.0];
        lane.running.remove(&job.1);
        if lane.again.remove(&job.1) {
            self.enqueue(job.clone());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job(controller: usize, name: &str) -> Job {
        (controller, Key::new("things", None, name))
    }

    fn taken(lanes: &mut Lanes, at_once: usize) -> Option<(usize, String)> {
        lanes.take(Duration::ZERO, at_once).map(|(controller, key)| (controller, key.name))
    }

    fn named(controller: usize, name: &str) -> Option<(usize, String)> {
        Some((controller, name.to_owned()))
    }

    #[test]
    fn controllers_take_turns_and_a_full_one_is_passed_over() {
        let mut lanes = Lanes::new(2);
        for name in ["a", "b", "c"] {
            lanes.enqueue(job(0, name));
        }
        lanes.enqueue(job(1, "x"));
        assert_eq!(taken(&mut lanes, 2), named(0, "a"));
        assert_eq!(taken(&mut lanes, 2), named(1, "x"));
        assert_eq!(taken(&mut lanes, 2), named(0, "b"));
        assert_eq!(taken(&mut lanes, 2), None);
        lanes.enqueue(job(1, "y"));
        assert_eq!(taken(&mut lanes, 2), named(1, "y"));
        lanes.done(&job(0, "a"));
        assert_eq!(taken(&mut lanes, 2), named(0, "c"));
    }

    #[test]
    fn a_key_is_with_one_worker_and_what_came_meanwhile_is_not_lost() {
        let mut lanes = Lanes::new(1);
        lanes.enqueue(job(0, "a"));
        lanes.enqueue(job(0, "a"));
        assert_eq!(taken(&mut lanes, 5), named(0, "a"));
        lanes.enqueue(job(0, "a"));
        assert_eq!(taken(&mut lanes, 5), None);
        lanes.done(&job(0, "a"));
        assert_eq!(taken(&mut lanes, 5), named(0, "a"));
        lanes.done(&job(0, "a"));
        assert_eq!(taken(&mut lanes, 5), None);
    }

    #[test]
    fn only_the_earliest_of_a_jobs_timers_rings() {
        let mut lanes = Lanes::new(1);
        let (early, late) = (Duration::from_secs(1), Duration::from_secs(2));
        lanes.remind(&job(0, "a"), late);
        lanes.remind(&job(0, "a"), early);
        assert_eq!(lanes.next_deadline(), Some(early));
        let first = lanes.take(early, 1).unwrap();
        lanes.done(&first);
        assert_eq!(lanes.take(late, 1), None);
    }
}
