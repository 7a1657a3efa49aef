//! Faults on request in the calls of a process to the embedded control plane: delays, refusals, lost answers,
//! watches that deliver nothing, are cut or expire. Only there: a cluster that others use is never disturbed.
//! The same seed disturbs the same calls in the same order.

use opdev_controlplane::{Asked, Passage, Refusal, Reset, Treatment};
use opdev_event::{Fault, FaultRule};
use opdev_object::api_path::ApiPath;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::watch;

/// The rules of one process, and the gates of its watches.
#[derive(Debug)]
pub struct Faults {
    inner: Mutex<Inner>,
    /// The rules that still can hit something.
    active: watch::Sender<Vec<FaultRule>>,
}

#[derive(Debug, Default)]
struct Inner {
    rules: Vec<Live>,
    /// How often the rules were replaced: a time that is over concerns only the rules it was started for.
    generation: u64,
    /// The state of the generator; the seed at first.
    random: u64,
    /// By plural resource, such as `pods`.
    gates: BTreeMap<String, watch::Sender<Passage>>,
}

/// A rule and what it has met.
#[derive(Debug)]
struct Live {
    rule: FaultRule,
    /// The number of calls that matched.
    met: u32,
    /// The number of calls that it may still hit.
    left: Option<u32>,
    /// The time of a rule of watches that has met none yet.
    waits: Option<Duration>,
}

impl Live {
    fn new(rule: FaultRule) -> Live {
        Live { met: 0, left: rule.times, waits: lasts(rule.fault), rule }
    }

    /// Returns true if it concerns watches of a resource.
    fn stops(&self, resource: &str) -> bool {
        self.rule.fault.is_of_watches()
            && (matches!(self.rule.resource.as_str(), "" | "*") || self.rule.resource == resource)
    }

    /// Returns true if it can hit another call.
    fn is_over(&self) -> bool {
        self.left == Some(0) || self.rule.nth.is_some_and(|nth| self.met >= nth)
    }
}

impl Default for Faults {
    fn default() -> Self {
        Faults { inner: Mutex::default(), active: watch::Sender::new(Vec::new()) }
    }
}

impl Faults {
    /// Replaces all rules; the seed decides which calls are hit. Events that waited come through where no
    /// rule stops them any more. Rules of watches that last for a time end by themselves, which takes a
    /// runtime. Their time begins with the first watch that they concern: a program may be built first.
    pub fn set(self: &Arc<Self>, rules: Vec<FaultRule>, seed: u64) {
        let mut inner = self.lock();
        inner.rules = rules.into_iter().map(Live::new).collect();
        inner.random = seed;
        inner.generation += 1;
        inner.set_gates();
        self.tell(&inner);
        let watched = inner.gates.iter().filter(|(_, gate)| gate.receiver_count() > 0);
        let watched: Vec<String> = watched.map(|(resource, _)| resource.clone()).collect();
        for resource in watched {
            self.begin(&mut inner, &resource);
        }
    }

    /// A resource is watched: the time of rules that have waited for it begins.
    fn begin(self: &Arc<Self>, inner: &mut Inner, resource: &str) {
        let generation = inner.generation;
        for (at, live) in inner.rules.iter_mut().enumerate().filter(|(_, live)| live.stops(resource)) {
            let Some(long) = live.waits.take() else { continue };
            let faults = Arc::downgrade(self);
            tokio::spawn(async move {
                tokio::time::sleep(long).await;
                if let Some(faults) = faults.upgrade() {
                    faults.over(generation, at);
                }
            });
        }
    }

    /// The rules that still can hit something, followed.
    pub fn active(&self) -> watch::Receiver<Vec<FaultRule>> {
        self.active.subscribe()
    }

    /// Lets one more event of each stopped watch through. Returns true if any watch is stopped.
    pub fn step(&self) -> bool {
        let mut held = false;
        for gate in self.lock().gates.values() {
            gate.send_if_modified(|passage| match passage {
                Passage::Held(passed) => {
                    *passed += 1;
                    held = true;
                    true
                }
                Passage::Open | Passage::Cut | Passage::Expired => false,
            });
        }
        held
    }

    /// The outcome for a call.
    pub fn treatment(self: &Arc<Self>, asked: &Asked) -> Treatment {
        let called = ApiPath::of(&asked.path);
        let verb = called.verb(asked.method.as_str(), Some(asked.query.as_str()));
        let mut inner = self.lock();
        if verb == "watch" {
            let gate = inner.gate(called.resource).subscribe();
            self.begin(&mut inner, called.resource);
            return Treatment { gate: Some(gate), ..Treatment::default() };
        }
        let (fault, over) = inner.fault(&called, verb);
        if over {
            self.tell(&inner);
        }
        fault.map_or_else(Treatment::default, |fault| treated(fault, &called))
    }

    /// The time of a rule is over.
    fn over(&self, generation: u64, at: usize) {
        let mut inner = self.lock();
        if inner.generation == generation {
            if let Some(live) = inner.rules.get_mut(at) {
                live.left = Some(0);
            }
            inner.set_gates();
            self.tell(&inner);
        }
    }

    fn tell(&self, inner: &Inner) {
        let active = inner.rules.iter().filter(|live| !live.is_over()).map(|live| live.rule.clone());
        self.active.send_replace(active.collect());
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// How long a rule of watches lasts; a rule of calls has no time.
fn lasts(fault: Fault) -> Option<Duration> {
    match fault {
        Fault::Hold(time) => time,
        Fault::Cut(time) | Fault::Expire(time) => Some(time),
        Fault::Delay(_)
        | Fault::Conflict
        | Fault::TooManyRequests(_)
        | Fault::ServerError(_)
        | Fault::ResetBefore
        | Fault::ResetAfter => None,
    }
}

impl Inner {
    fn gate(&mut self, resource: &str) -> &watch::Sender<Passage> {
        let passage = self.passage(resource);
        self.gates.entry(resource.to_owned()).or_insert_with(|| watch::Sender::new(passage))
    }

    /// The effect of the rules on the watches of a resource.
    fn passage(&self, resource: &str) -> Passage {
        let of = self.rules.iter().filter(|live| !live.is_over()).find_map(|live| match live.rule.fault {
            Fault::Hold(_) if live.stops(resource) => Some(Passage::Held(0)),
            Fault::Cut(_) if live.stops(resource) => Some(Passage::Cut),
            Fault::Expire(_) if live.stops(resource) => Some(Passage::Expired),
            _ => None,
        });
        of.unwrap_or_default()
    }

    fn set_gates(&mut self) {
        let wanted: Vec<Passage> = self.gates.keys().map(|resource| self.passage(resource)).collect();
        for (gate, wanted) in self.gates.values().zip(wanted) {
            gate.send_if_modified(|passage| {
                // Requests that came through step by step stay through.
                let other = !matches!((&*passage, wanted), (Passage::Held(_), Passage::Held(_)));
                let changed = other && *passage != wanted;
                if changed {
                    *passage = wanted;
                }
                changed
            });
        }
    }

    /// The fault of the first rule that hits, and whether a rule is over with it.
    fn fault(&mut self, called: &ApiPath<'_>, verb: &str) -> (Option<Fault>, bool) {
        let Inner { rules, random, .. } = self;
        let mut over = false;
        for live in rules.iter_mut().filter(|live| !live.is_over() && matches(&live.rule, called, verb)) {
            live.met += 1;
            let hits = match live.rule.nth {
                Some(nth) => live.met == nth,
                None => live.rule.every <= 1 || next(random).is_multiple_of(u64::from(live.rule.every)),
            };
            if hits {
                live.left = live.left.map(|left| left - 1);
            }
            over |= live.is_over();
            if hits {
                return (Some(live.rule.fault), over);
            }
        }
        (None, over)
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

/// Returns true if a rule concerns a call. What asks which kinds there are concerns no resource.
fn matches(rule: &FaultRule, called: &ApiPath<'_>, verb: &str) -> bool {
    let is_verb = match rule.verb.as_str() {
        "" => true,
        "write" => !matches!(verb, "get" | "list" | "other"),
        wanted => wanted == verb,
    };
    !rule.fault.is_of_watches()
        && is_verb
        && !called.resource.is_empty()
        && (rule.resource.is_empty() || rule.resource == "*" || rule.resource == called.resource)
        && rule.subresource.as_ref().is_none_or(|wanted| wanted == called.subresource)
        && (rule.namespace.is_empty() || rule.namespace == called.namespace)
        && (rule.name.is_empty() || rule.name == called.name)
}

fn treated(fault: Fault, called: &ApiPath<'_>) -> Treatment {
    let refusal = |code, reason, message: &str, retry_after| {
        let message = message.to_owned();
        Treatment { refusal: Some(Refusal { code, reason, message, retry_after }), ..Treatment::default() }
    };
    match fault {
        Fault::Delay(delay) => Treatment { delay, ..Treatment::default() },
        Fault::Conflict => {
            let message = format!(
                "Operation cannot be fulfilled on {} \"{}\": the object has been modified; please apply your \
                 changes to the latest version and try again",
                called.resource, called.name
            );
            refusal(409, "Conflict", &message, None)
        }
        Fault::TooManyRequests(seconds) => {
            refusal(429, "TooManyRequests", "too many requests, please try again later", Some(seconds))
        }
        Fault::ServerError(code) => {
            let reason = match code {
                503 => "ServiceUnavailable",
                504 => "Timeout",
                _ => "InternalError",
            };
            refusal(code, reason, "the API server failed on request", None)
        }
        Fault::ResetBefore => Treatment { reset: Some(Reset::Before), ..Treatment::default() },
        Fault::ResetAfter => Treatment { reset: Some(Reset::After), ..Treatment::default() },
        // The gates do these.
        Fault::Hold(_) | Fault::Cut(_) | Fault::Expire(_) => Treatment::default(),
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

    fn with(rules: &[&str], seed: u64) -> Arc<Faults> {
        let faults = Arc::new(Faults::default());
        faults.set(rules.iter().map(|rule| rule.parse().unwrap()).collect(), seed);
        faults
    }

    fn status(faults: &Arc<Faults>, method: &str, path: &str) -> Option<u16> {
        faults.treatment(&asked(method, path, "")).refusal.map(|refusal| refusal.code)
    }

    const DEMO: &str = "/apis/app.example.com/v1/namespaces/default/podsets/demo/status";

    #[tokio::test]
    async fn a_rule_hits_what_it_names_as_often_as_it_says() {
        let faults = with(&["conflict update podsets/status times=1"], 7);
        let active = faults.active();
        assert_eq!(status(&faults, "GET", DEMO), None);
        assert_eq!(status(&faults, "PUT", "/api/v1/namespaces/default/pods/demo/status"), None);
        assert_eq!(active.borrow().len(), 1);
        let refusal = faults.treatment(&asked("PUT", DEMO, "")).refusal.unwrap();
        assert_eq!((refusal.code, refusal.reason), (409, "Conflict"));
        assert!(
            refusal.message.starts_with("Operation cannot be fulfilled on podsets \"demo\""),
            "{refusal:?}"
        );
        assert_eq!(status(&faults, "PUT", DEMO), None, "once is once");
        assert!(active.borrow().is_empty(), "it is over");
    }

    #[tokio::test]
    async fn verbs_objects_and_numbers_narrow_a_rule() {
        let pod = "/api/v1/namespaces/a/pods/web";
        let faults = with(&["503 write pods namespace=a name=web"], 1);
        assert_eq!([status(&faults, "GET", pod), status(&faults, "DELETE", pod)], [None, Some(503)]);
        assert_eq!(status(&faults, "DELETE", "/api/v1/namespaces/b/pods/web"), None);
        assert_eq!(
            status(&faults, "POST", "/api/v1/namespaces/a/pods"),
            None,
            "a name that is not there yet"
        );
        let faults = with(&["500 list nth=2"], 1);
        let list = || status(&faults, "GET", "/api/v1/namespaces/a/pods");
        assert_eq!([list(), list(), list()], [None, Some(500), None]);
        let faults = with(&["503"], 1);
        for path in ["/apis/apps/v1", "/openapi/v3/apis/apps/v1", "/version"] {
            assert_eq!(status(&faults, "GET", path), None, "discovery is left alone");
        }
        assert_eq!(status(&faults, "GET", "/api/v1/namespaces/a"), Some(503));
    }

    #[tokio::test]
    async fn the_same_seed_disturbs_the_same_calls() {
        let hits = |seed| {
            let faults = with(&["503 every=3"], seed);
            (0..60).map(|_| status(&faults, "GET", "/api/v1/pods").is_some()).collect::<Vec<_>>()
        };
        assert_eq!(hits(1), hits(1));
        assert_ne!(hits(1), hits(2));
        let count = hits(1).into_iter().filter(|hit| *hit).count();
        assert!((8..=32).contains(&count), "about one in three: {count}");
    }

    #[tokio::test]
    async fn watches_are_held_by_their_resource_and_for_their_time() {
        let faults = with(&["hold pods"], 1);
        let gate = |path: &str| faults.treatment(&asked("GET", path, "watch=true")).gate.unwrap();
        let (pods, sets) = (gate("/api/v1/namespaces/a/pods"), gate("/apis/app.example.com/v1/podsets"));
        assert!(faults.step());
        assert_eq!((*pods.borrow(), *sets.borrow()), (Passage::Held(1), Passage::Open));
        faults.set(vec!["hold".parse().unwrap()], 1);
        assert_eq!((*pods.borrow(), *sets.borrow()), (Passage::Held(1), Passage::Held(0)));
        assert_eq!(*gate("/api/v1/nodes").borrow(), Passage::Held(0), "watches that come later, too");
        faults.set(vec!["expire=50ms podsets".parse().unwrap()], 1);
        assert_eq!((*pods.borrow(), *sets.borrow()), (Passage::Open, Passage::Expired));
        assert!(!faults.step(), "nothing is held");
        let mut active = faults.active();
        active.wait_for(Vec::is_empty).await.unwrap();
        assert_eq!(*sets.borrow(), Passage::Open, "its time is over");
        faults.set(Vec::new(), 1);
        assert_eq!(*pods.borrow(), Passage::Open);
    }

    /// A program that is built first watches long after opdev has begun.
    #[tokio::test]
    async fn the_time_of_a_rule_begins_with_the_first_watch_that_it_concerns() {
        let faults = with(&["cut=1ms podsets", "expire=1ms pods"], 1);
        let gate = |path: &str| faults.treatment(&asked("GET", path, "watch=true")).gate.unwrap();
        let mut active = faults.active();
        let pods = gate("/api/v1/namespaces/a/pods");
        active.wait_for(|rules| rules.len() == 1).await.unwrap();
        assert_eq!(*pods.borrow(), Passage::Open, "its time is over");
        assert_eq!(active.borrow()[0].to_string(), "cut=1ms podsets", "nobody watches these yet");
        let sets = gate("/apis/app.example.com/v1/podsets");
        assert_eq!(*sets.borrow(), Passage::Cut);
        active.wait_for(Vec::is_empty).await.unwrap();
        // A gate that nobody waits at any more is no watch.
        drop((pods, sets));
        faults.set(vec!["hold=1ms pods".parse().unwrap(), "cut=2ms sets".parse().unwrap()], 1);
        // The time of another rule passes, and this one still waits.
        let _sets = gate("/apis/app.example.com/v1/sets");
        active.wait_for(|rules| rules.len() == 1).await.unwrap();
        assert_eq!(active.borrow()[0].to_string(), "hold=1ms pods");
        assert_eq!(*gate("/api/v1/pods").borrow(), Passage::Held(0));
        active.wait_for(Vec::is_empty).await.unwrap();
    }
}
