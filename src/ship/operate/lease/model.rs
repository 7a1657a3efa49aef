//! Leader election in a world of its own: candidates with clocks that run at their own speed, over a network
//! that delays and loses, which die, stop in good order and come back as others, and somebody who deletes the
//! Lease. No time passes.

use super::{Elector, Seen, Step, Timing};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::Duration;

/// Until then bad things happen, in milliseconds.
const WILD: u64 = 120_000;
/// When a schedule ends.
const END: u64 = 180_000;
/// For how long a candidate that never saw the Lease cannot know that there was one, and how far deletions
/// lie apart.
const UNAWARE: u64 = 40_000;

/// Pseudo-random numbers, the same for one seed.
struct Dice(u64);

impl Dice {
    fn below(&mut self, most: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % most
    }

    fn chance(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }

    fn one_of(&mut self, count: usize) -> usize {
        usize::try_from(self.below(count as u64)).unwrap()
    }
}

/// A candidate with a clock that runs at its own speed and began at its own time.
struct Replica {
    elector: Elector,
    offset: u64,
    /// Thousandths of the true speed.
    rate: u64,
    cut_off: bool,
    number: u64,
    /// When the newest question was asked that has been answered: no older answer is taken in.
    answered: u64,
}

impl Replica {
    fn new(dice: &mut Dice, number: u64) -> Replica {
        let elector = Elector::new(name(number), Timing::default());
        let (offset, rate) = (dice.below(1_000_000_000), 880 + dice.below(241));
        Replica { elector, offset, rate, cut_off: false, number, answered: 0 }
    }

    fn clock(&self, now: u64) -> Duration {
        Duration::from_millis(self.offset + now * self.rate / 1000)
    }

    fn leads(&self, now: u64) -> bool {
        self.elector.leads(self.clock(now))
    }
}

fn name(number: u64) -> String {
    format!("replica-{number}")
}

/// The Lease of the API server: its version, holder and transitions.
type Stored = Option<(u64, String, i32)>;

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum What {
    /// It is time to ask.
    Ask,
    /// The question comes to the API server.
    Read { asked: u64 },
    /// Its answer comes back.
    Answer { asked: u64, read: Stored },
    /// A write comes to the API server, for the version that was read.
    Write { begun: Duration, read: Option<u64>, transitions: i32 },
    /// It succeeded.
    Written { begun: Duration },
    /// Somebody who has stopped in good order releases the Lease.
    Release,
}

struct World {
    dice: Dice,
    all: Vec<Replica>,
    made: u64,
    lease: Stored,
    version: u64,
    deleted: Option<u64>,
    /// When what happens to the place of whom, and its number at the time.
    queue: BinaryHeap<Reverse<(u64, usize, u64, What)>>,
}

impl World {
    fn new(seed: u64) -> World {
        let dice = Dice(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1);
        let (all, queue) = (Vec::new(), BinaryHeap::new());
        let mut world = World { dice, all, made: 0, lease: None, version: 0, deleted: None, queue };
        for who in 0..2 + world.dice.one_of(3) {
            let one = world.replica();
            let first = world.dice.below(3_000);
            world.queue.push(Reverse((first, who, one.number, What::Ask)));
            world.all.push(one);
        }
        world
    }

    fn replica(&mut self) -> Replica {
        self.made += 1;
        Replica::new(&mut self.dice, self.made)
    }

    fn later(&mut self, now: u64, (who, number): (usize, u64), what: What) {
        let slow = now < WILD && self.dice.chance(5);
        let delay = 1 + self.dice.below(if slow { 20_000 } else { 200 });
        self.queue.push(Reverse((now + delay, who, number, what)));
    }

    /// Something bad happens now and then.
    fn disturb(&mut self, now: u64) {
        if now >= WILD {
            self.all.iter_mut().for_each(|one| one.cut_off = false);
            return;
        }
        if !self.dice.chance(2) {
            return;
        }
        let who = self.dice.one_of(self.all.len());
        let may_delete = self.deleted.is_none_or(|at| now > at + UNAWARE);
        match self.dice.below(9) {
            0..3 => self.all[who].cut_off = true,
            3..6 => self.all[who].cut_off = false,
            6 if may_delete && self.dice.chance(20) => (self.lease, self.deleted) = (None, Some(now)),
            // Killed, or told to stop; another one comes in its place, with another name.
            kind => {
                let number = self.all[who].number;
                if kind == 7 && self.all[who].leads(now) {
                    let at = now + self.dice.below(1_000);
                    self.queue.push(Reverse((at, who, number, What::Release)));
                }
                self.all[who] = self.replica();
                let next = (now + self.dice.below(5_000), who, self.all[who].number, What::Ask);
                self.queue.push(Reverse(next));
            }
        }
    }

    /// Returns true if a candidate has no way to know that there is a leader, for the Lease was deleted
    /// before it saw it.
    fn is_unaware(&self, who: usize, now: u64) -> bool {
        self.all[who].elector.last.is_none() && self.deleted.is_some_and(|at| now < at + UNAWARE)
    }

    fn happens(&mut self, now: u64, (who, number): (usize, u64), what: What) {
        let same = self.all[who].number == number;
        let lost = self.all[who].cut_off || (now < WILD && self.dice.chance(3));
        match what {
            What::Ask if same => {
                if self.all[who].elector.has_lost(self.all[who].clock(now)) {
                    // Its process ends; the next one has another name.
                    self.all[who] = self.replica();
                }
                let place = (who, self.all[who].number);
                let next = now + 1_600 + self.dice.below(800);
                self.queue.push(Reverse((next, who, place.1, What::Ask)));
                if !lost {
                    self.later(now, place, What::Read { asked: now });
                }
            }
            What::Read { asked } if !lost => {
                let read = self.lease.clone();
                self.later(now, (who, number), What::Answer { asked, read });
            }
            What::Answer { asked, read } if same && asked >= self.all[who].answered => {
                self.answer(now, (who, number), (asked, read), lost);
            }
            // A write arrives also when its sender has died meanwhile.
            What::Write { begun, read, transitions } => {
                let late = same && read.is_none() && self.is_unaware(who, now);
                if !late && self.lease.as_ref().map(|(version, ..)| *version) == read {
                    self.version += 1;
                    self.lease = Some((self.version, name(number), transitions));
                    if !lost {
                        self.later(now, (who, number), What::Written { begun });
                    }
                }
            }
            What::Written { begun } if same => {
                let clock = self.all[who].clock(now);
                self.all[who].elector.wrote(begun, clock);
            }
            What::Release => {
                if let Some((version, holder, _)) = &mut self.lease
                    && *holder == name(number)
                {
                    self.version += 1;
                    (*version, *holder) = (self.version, String::new());
                }
            }
            What::Ask | What::Read { .. } | What::Answer { .. } | What::Written { .. } => {}
        }
    }

    fn answer(&mut self, now: u64, place: (usize, u64), (asked, read): (u64, Stored), lost: bool) {
        let who = place.0;
        if read.is_none() && self.is_unaware(who, now) {
            return;
        }
        let one = &mut self.all[who];
        one.answered = asked;
        let begun = one.clock(now);
        let duration = Timing::default().duration;
        let version = read.as_ref().map(|(version, ..)| *version);
        let seen = read.map(|(version, holder, transitions)| Seen {
            record: version.to_string(),
            holder,
            duration,
            transitions,
        });
        match one.elector.look(seen.as_ref(), begun) {
            Step::Take { transitions } | Step::Renew { transitions } if !lost => {
                self.later(now, place, What::Write { begun, read: version, transitions });
            }
            Step::Take { .. } | Step::Renew { .. } | Step::Wait => {}
        }
    }
}

/// One schedule: whether somebody led at all, and how long until somebody led once all was well again, in
/// milliseconds.
fn schedule(seed: u64) -> (bool, u64) {
    let mut world = World::new(seed);
    let (mut led, mut settled) = (false, u64::MAX);
    while let Some(Reverse((now, who, number, what))) = world.queue.pop() {
        if now > END {
            break;
        }
        world.disturb(now);
        world.happens(now, (who, number), what);
        let leaders = world.all.iter().filter(|one| one.leads(now)).count();
        assert!(leaders <= 1, "seed {seed}: {leaders} leaders at {now} ms");
        led |= leaders > 0;
        if now >= WILD && leaders == 1 {
            settled = settled.min(now - WILD);
        }
    }
    (led, settled)
}

#[test]
fn there_are_never_two_leaders_in_10_000_schedules_with_skewed_clocks() {
    for seed in 1..=10_000 {
        let (led, settled) = schedule(seed);
        assert!(led, "seed {seed}: nobody has ever led");
        assert!(settled <= 50_000, "seed {seed}: nobody leads after {settled} ms of peace");
    }
}
