//! The problem: two processes must never both believe that they lead, although their clocks differ, a network
//! may stop, and a process may be frozen and go on. So leading is a pure state machine: it is told what a
//! Lease says and when, and says what to write. A candidate judges by its own clock since when a Lease has
//! not changed, never by the times in it, so that clocks may differ. Knows no API server.

use std::time::Duration;

/// The times of an election, as in controller-runtime.
#[derive(Clone, Copy, Debug)]
pub(super) struct Timing {
    /// For how long others leave a Lease alone that does not change.
    pub(super) duration: Duration,
    /// For how long a leader leads without renewing it.
    pub(super) renew: Duration,
    /// The time between renewals or tries.
    pub(super) retry: Duration,
}

impl Default for Timing {
    fn default() -> Self {
        Timing {
            duration: Duration::from_secs(15),
            renew: Duration::from_secs(10),
            retry: Duration::from_secs(2),
        }
    }
}

/// The content of a Lease.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Seen {
    /// All that candidates write into it: it changes with each renewal, and not with labels or annotations.
    pub(super) record: String,
    /// The holder; empty where it was released.
    pub(super) holder: String,
    /// For how long its holder wants to be left alone; zero where it does not say.
    pub(super) duration: Duration,
    /// How often it went to another holder.
    pub(super) transitions: i32,
}

/// The next step of a candidate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// Make oneself the holder.
    Take {
        /// The new number of transitions.
        transitions: i32,
    },
    /// Say again that one holds it.
    Renew {
        /// The number of transitions, as it is.
        transitions: i32,
    },
    /// Somebody else holds it.
    Wait,
}

/// One candidate. Times are those of its own monotonic clock.
#[derive(Clone, Debug)]
pub(super) struct Elector {
    me: String,
    timing: Timing,
    last: Option<Last>,
    /// When it was asked last what to do.
    looked: Duration,
    /// When the newest write that succeeded was begun.
    renewed: Option<Duration>,
    /// Somebody else has been seen to hold the Lease of this leader.
    ousted: bool,
}

/// The Lease that was seen last.
#[derive(Clone, Debug)]
struct Last {
    /// `None` where the Lease was gone.
    record: Option<String>,
    /// Until when its holder may lead, if it does not change again.
    until: Duration,
}

impl Elector {
    pub(super) fn new(me: String, timing: Timing) -> Elector {
        Elector { me, timing, last: None, looked: Duration::ZERO, renewed: None, ousted: false }
    }

    /// The next step with a Lease; `None` where there is no Lease.
    pub(super) fn look(&mut self, seen: Option<&Seen>, now: Duration) -> Step {
        let before = std::mem::replace(&mut self.looked, now);
        if self.has_lost(now) {
            return Step::Wait;
        }
        let Some(seen) = seen else { return self.look_at_none(before, now) };
        if self.last.as_ref().is_none_or(|last| last.record.as_deref() != Some(seen.record.as_str())) {
            let alone = if seen.duration.is_zero() { self.timing.duration } else { seen.duration };
            let until = now + alone.max(self.timing.retry);
            self.last = Some(Last { record: Some(seen.record.clone()), until });
        }
        let expired = self.last.as_ref().is_some_and(|last| last.until <= now);
        if seen.holder == self.me {
            // A write whose answer was lost may have come late, after another one had begun to lead.
            let knows = self.renewed.is_some() || expired;
            return if knows { Step::Renew { transitions: seen.transitions } } else { Step::Wait };
        }
        // Its time runs from a write of this leader's on, and another one has written since.
        self.ousted = self.renewed.is_some() && !seen.holder.is_empty();
        if !self.ousted && (seen.holder.is_empty() || expired) {
            return Step::Take { transitions: seen.transitions.saturating_add(1) };
        }
        Step::Wait
    }

    /// Where it was there before, somebody has deleted it. Whoever held it does not know that yet, and may
    /// lead for as long as if it had just been renewed.
    fn look_at_none(&mut self, before: Duration, now: Duration) -> Step {
        let leads = self.leads(now);
        let Some(last) = self.last.as_mut().filter(|_| !leads) else {
            return Step::Take { transitions: 0 };
        };
        // Between two looks that lie apart it may have been made and deleted again.
        let apart = now.saturating_sub(before) > self.timing.duration - self.timing.renew;
        if last.record.take().is_some() || apart {
            last.until = now + self.timing.duration;
        }
        if now < last.until { Step::Wait } else { Step::Take { transitions: 0 } }
    }

    /// A write succeeded that was begun then: the others count from a later moment, whenever the answer came.
    pub(super) fn wrote(&mut self, begun: Duration, now: Duration) {
        // A candidate that has lost does not come back: its work has stopped. And a write that another look
        // has overtaken was decided by facts that are no longer true.
        if !self.has_lost(now) && self.looked <= begun {
            self.renewed = Some(begun);
        }
    }

    /// Until when it leads without another write; in the past where it does not lead.
    pub(super) fn until(&self) -> Option<Duration> {
        self.renewed.filter(|_| !self.ousted).map(|renewed| renewed + self.timing.renew)
    }

    /// Returns true if it leads.
    pub(super) fn leads(&self, now: Duration) -> bool {
        self.until().is_some_and(|until| now < until)
    }

    /// Returns true if it has led and does not any more.
    pub(super) fn has_lost(&self, now: Duration) -> bool {
        self.renewed.is_some() && !self.leads(now)
    }

    /// How long it leads without another write.
    pub(super) fn left(&self, now: Duration) -> Duration {
        self.until().unwrap_or_default().saturating_sub(now)
    }
}

#[cfg(test)]
mod model;
#[cfg(test)]
mod tests {
    use super::*;

    fn seconds(text: u64) -> Duration {
        Duration::from_secs(text)
    }

    fn seen(version: &str, holder: &str) -> Seen {
        Seen { record: version.into(), holder: holder.into(), duration: seconds(15), transitions: 3 }
    }

    #[test]
    fn a_lease_expires_by_the_clock_of_who_looks() {
        let mut elector = Elector::new("b".into(), Timing::default());
        assert_eq!(elector.look(None, seconds(0)), Step::Take { transitions: 0 });
        assert_eq!(elector.look(Some(&seen("1", "a")), seconds(100)), Step::Wait);
        assert_eq!(elector.look(Some(&seen("1", "a")), seconds(114)), Step::Wait);
        assert_eq!(elector.look(Some(&seen("2", "a")), seconds(114)), Step::Wait, "it was renewed");
        assert_eq!(elector.look(Some(&seen("2", "a")), seconds(129)), Step::Take { transitions: 4 });
        assert_eq!(
            elector.look(Some(&seen("3", "")), seconds(129)),
            Step::Take { transitions: 4 },
            "released"
        );
        assert_eq!(elector.look(Some(&seen("4", "b")), seconds(130)), Step::Wait, "no answer has told so");
        assert_eq!(elector.look(Some(&seen("4", "b")), seconds(145)), Step::Renew { transitions: 3 });
        let mut unsaid = Seen { duration: Duration::ZERO, ..seen("1", "a") };
        let mut elector = Elector::new("b".into(), Timing::default());
        assert_eq!(elector.look(Some(&unsaid), seconds(0)), Step::Wait);
        assert_eq!(elector.look(Some(&unsaid), seconds(14)), Step::Wait, "it does not say for how long");
        unsaid.transitions = i32::MAX;
        assert_eq!(elector.look(Some(&unsaid), seconds(15)), Step::Take { transitions: i32::MAX });
    }

    #[test]
    fn a_lease_that_was_deleted_protects_its_holder() {
        let mut elector = Elector::new("b".into(), Timing::default());
        assert_eq!(elector.look(Some(&seen("1", "a")), seconds(0)), Step::Wait);
        assert_eq!(elector.look(None, seconds(100)), Step::Wait, "it may have been renewed until just now");
        assert_eq!(elector.look(None, seconds(104)), Step::Wait);
        assert_eq!(elector.look(Some(&seen("2", "a")), seconds(114)), Step::Wait, "its holder made it again");
        for second in 115..130 {
            assert_eq!(elector.look(None, seconds(second)), Step::Wait);
        }
        assert_eq!(elector.look(None, seconds(130)), Step::Take { transitions: 0 });
        assert_eq!(elector.look(None, seconds(200)), Step::Wait, "it may have been there meanwhile");
        let mut leader = Elector::new("a".into(), Timing::default());
        leader.look(Some(&seen("1", "a")), seconds(0));
        leader.wrote(seconds(0), seconds(1));
        assert_eq!(leader.look(None, seconds(2)), Step::Take { transitions: 0 }, "its own is made again");
    }

    #[test]
    fn a_leader_that_sees_another_holder_stops_at_once() {
        let mut elector = Elector::new("a".into(), Timing::default());
        elector.wrote(seconds(1), seconds(1));
        assert_eq!(elector.look(Some(&seen("7", "b")), seconds(2)), Step::Wait);
        assert!(elector.has_lost(seconds(2)) && !elector.leads(seconds(2)));
        assert_eq!(elector.look(Some(&seen("8", "")), seconds(3)), Step::Wait, "it does not come back");
        assert_eq!(elector.look(None, seconds(99)), Step::Wait);
    }

    #[test]
    fn a_leader_counts_from_the_beginning_of_its_write_and_never_comes_back() {
        let mut elector = Elector::new("a".into(), Timing::default());
        elector.wrote(seconds(1), seconds(9));
        assert!(elector.leads(seconds(10)) && !elector.leads(seconds(11)) && elector.has_lost(seconds(11)));
        elector.wrote(seconds(11), seconds(12));
        assert!(!elector.leads(seconds(12)));
        let mut elector = Elector::new("a".into(), Timing::default());
        elector.look(None, seconds(1));
        elector.look(Some(&seen("1", "b")), seconds(3));
        elector.wrote(seconds(1), seconds(4));
        assert!(!elector.leads(seconds(4)), "what was decided before the newest look does not count");
    }
}
