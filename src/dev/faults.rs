//! Faults on request in what a process asks of the embedded control plane: delays, refusals, lost answers, watches that
//! are held, cut or expired. Only there: a cluster that others use is never disturbed. The same seed disturbs the same
//! calls in the same order.

use opdev_controlplane::{Asked, Passage, Refusal, Reset, Treatment};
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::watch;

/// Which calls a rule concerns; an empty text means all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Matching {
    /// Method in capitals.
    pub method: String,
    /// What the path holds, such as `/pods`.
    pub path: String,
    /// What it ends with, such as `/status`.
    pub ends: String,
}

/// What is done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The call waits.
    Delay(Duration),
    /// 409, as if somebody had written in between.
    Conflict,
    /// 429 with so many seconds in `Retry-After`.
    TooManyRequests(u32),
    /// A 5xx.
    ServerError(u16),
    /// The connection ends before anything is done.
    ResetBefore,
    /// The connection ends after it is done.
    ResetAfter,
}

/// A rule: of the calls that match, one in `every` gets the fault, at most `times`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    /// Which calls.
    pub matching: Matching,
    /// What happens to them.
    pub fault: Fault,
    /// One in so many, by chance; 1 is each.
    pub every: u32,
    /// How often at most; `None` without end.
    pub times: Option<u32>,
}

/// The rules of one process, and the gates of its watches.
#[derive(Debug, Default)]
pub struct Faults(Mutex<Inner>);

#[derive(Debug, Default)]
struct Inner {
    rules: Vec<Rule>,
    /// The state of the generator; the seed at first.
    random: u64,
    /// By plural resource, such as `pods`; the empty one is for all others.
    gates: BTreeMap<String, watch::Sender<Passage>>,
}

impl Faults {
    /// Replaces all rules; the seed decides which calls are hit.
    pub fn set(&self, rules: Vec<Rule>, seed: u64) {
        let mut inner = self.lock();
        inner.rules = rules;
        inner.random = seed;
    }

    /// Whether calls are disturbed.
    pub fn any(&self) -> bool {
        let inner = self.lock();
        !inner.rules.is_empty() || inner.gates.values().any(|gate| *gate.borrow() != Passage::Open)
    }

    /// Whether events of a resource (its plural) pass: what was held comes through once it is open again.
    pub fn watches(&self, resource: &str, passage: Passage) {
        self.lock().gate(resource).send_replace(passage);
    }

    /// Lets one more event of each watch of a resource through while they are held.
    pub fn step(&self, resource: &str) {
        self.lock().gate(resource).send_modify(|passage| {
            if let Passage::Held(passed) = passage {
                *passed += 1;
            }
        });
    }

    /// What happens to a call.
    pub fn treatment(&self, asked: &Asked) -> Treatment {
        let mut inner = self.lock();
        if asked.query.contains("watch=") {
            let gate = inner.gate(resource(&asked.path)).subscribe();
            return Treatment { gate: Some(gate), ..Treatment::default() };
        }
        let Some(fault) = inner.fault(asked) else { return Treatment::default() };
        treated(&fault, asked)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    fn gate(&mut self, resource: &str) -> &watch::Sender<Passage> {
        self.gates.entry(resource.to_owned()).or_insert_with(|| watch::Sender::new(Passage::Open))
    }

    fn fault(&mut self, asked: &Asked) -> Option<Fault> {
        let Inner { rules, random, .. } = self;
        let rule = rules.iter_mut().find(|rule| {
            let Matching { method, path, ends } = &rule.matching;
            (method.is_empty() || asked.method == method.as_str())
                && asked.path.contains(path.as_str())
                && asked.path.ends_with(ends.as_str())
                && rule.times != Some(0)
        })?;
        if rule.every > 1 && !next(random).is_multiple_of(u64::from(rule.every)) {
            return None;
        }
        rule.times = rule.times.map(|times| times - 1);
        Some(rule.fault.clone())
    }
}

/// The next number of a small generator (SplitMix64), which any seed will do for.
fn next(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// The plural resource in a path.
fn resource(path: &str) -> &str {
    let mut parts = path.split('/').filter(|part| !part.is_empty());
    let head = if path.starts_with("/apis/") { 3 } else { 2 };
    let rest: Vec<&str> = parts.by_ref().skip(head).collect();
    match rest.as_slice() {
        ["namespaces", _, resource, ..] | [resource, ..] => resource,
        [] => "",
    }
}

fn treated(fault: &Fault, asked: &Asked) -> Treatment {
    let refusal = |code, reason, message: &str, retry_after| {
        let message = message.to_owned();
        Treatment { refusal: Some(Refusal { code, reason, message, retry_after }), ..Treatment::default() }
    };
    match fault {
        Fault::Delay(delay) => Treatment { delay: *delay, ..Treatment::default() },
        Fault::Conflict => {
            let name = asked.path.trim_end_matches("/status").rsplit('/').next().unwrap_or_default();
            let message = format!(
                "Operation cannot be fulfilled on {} \"{name}\": the object has been modified; please apply your \
                 changes to the latest version and try again",
                resource(&asked.path)
            );
            refusal(409, "Conflict", &message, None)
        }
        Fault::TooManyRequests(seconds) => {
            refusal(429, "TooManyRequests", "too many requests, please try again later", Some(*seconds))
        }
        Fault::ServerError(code) => {
            let reason = match code {
                503 => "ServiceUnavailable",
                504 => "Timeout",
                _ => "InternalError",
            };
            refusal(*code, reason, "the API server failed on request", None)
        }
        Fault::ResetBefore => Treatment { reset: Some(Reset::Before), ..Treatment::default() },
        Fault::ResetAfter => Treatment { reset: Some(Reset::After), ..Treatment::default() },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use jiff::Timestamp;

    fn asked(method: &str, path: &str, query: &str) -> Asked {
        Asked {
            number: 1,
            at: Timestamp::UNIX_EPOCH,
            method: method.parse().unwrap(),
            path: path.to_owned(),
            query: query.to_owned(),
            mark: None,
            user_agent: String::new(),
            user: "kubernetes-admin".to_owned(),
        }
    }

    fn status(faults: &Faults, method: &str, path: &str) -> Option<u16> {
        faults.treatment(&asked(method, path, "")).refusal.map(|refusal| refusal.code)
    }

    #[test]
    fn a_rule_hits_what_it_names_as_often_as_it_says() {
        let faults = Faults::default();
        let matching =
            Matching { method: "PUT".to_owned(), path: "/podsets/".to_owned(), ends: "/status".to_owned() };
        faults.set(vec![Rule { matching, fault: Fault::Conflict, every: 1, times: Some(1) }], 7);
        let path = "/apis/app.example.com/v1/namespaces/default/podsets/demo/status";
        assert_eq!(status(&faults, "GET", path), None);
        assert_eq!(status(&faults, "PUT", "/api/v1/namespaces/default/pods/demo/status"), None);
        let refusal = faults.treatment(&asked("PUT", path, "")).refusal.unwrap();
        assert_eq!((refusal.code, refusal.reason), (409, "Conflict"));
        assert!(
            refusal.message.starts_with("Operation cannot be fulfilled on podsets \"demo\""),
            "{refusal:?}"
        );
        assert_eq!(status(&faults, "PUT", path), None, "once is once");
    }

    #[test]
    fn the_same_seed_disturbs_the_same_calls() {
        let hits = |seed| {
            let faults = Faults::default();
            let all =
                Rule { matching: Matching::default(), fault: Fault::ServerError(503), every: 3, times: None };
            faults.set(vec![all], seed);
            (0..60).map(|_| status(&faults, "GET", "/api/v1/pods").is_some()).collect::<Vec<_>>()
        };
        assert_eq!(hits(1), hits(1));
        assert_ne!(hits(1), hits(2));
        let count = hits(1).into_iter().filter(|hit| *hit).count();
        assert!((8..=32).contains(&count), "about one in three: {count}");
    }

    #[test]
    fn watches_are_held_by_their_resource() {
        let faults = Faults::default();
        let gate = |path: &str| faults.treatment(&asked("GET", path, "watch=true")).gate.unwrap();
        let (pods, sets) = (gate("/api/v1/namespaces/a/pods"), gate("/apis/app.example.com/v1/podsets"));
        faults.watches("pods", Passage::Held(0));
        faults.step("pods");
        faults.step("podsets");
        assert_eq!((*pods.borrow(), *sets.borrow()), (Passage::Held(1), Passage::Open));
        assert!(faults.any());
        faults.watches("pods", Passage::Open);
        assert!(!faults.any());
    }
}
