//! Rules about the process as a whole: what it leaves behind, what it asks for, and what its pods cannot
//! answer.

use super::*;
use opdev_event::evidence::CachedFact;
use opdev_event::{Level, LogLine, ProcessExit};

/// Reconciles each so many seconds, with the number of goroutines after each and how many are new.
fn goroutines(every: i64, count: i64, numbers: impl Fn(i64) -> (u32, i32), wrote: bool) -> Vec<String> {
    let mut world = World::new();
    world.now = 61_000;
    for turn in 0..count {
        world.reconcile(|one| {
            (one.goroutines, one.more_goroutines) = numbers(turn);
            if wrote {
                let status = update(&cr("a"), "status", vec![field(".status.n", 1, turn.unsigned_abs() + 2)]);
                one.writes = vec![WriteFact { at: one.at, ..status }];
            }
        });
        world.now += every * 1000;
    }
    world.loud().into_iter().filter(|rule| rule == "process-growth").collect()
}

#[test]
fn goroutines_that_each_reconcile_leaves_behind_are_told() {
    let count = |turn: i64| 80 + u32::try_from(turn).unwrap();
    assert_eq!(goroutines(6, 30, |turn| (count(turn), 1), false), ["process-growth"]);
    let noisy = |turn: i64| (count(2 * turn) + u32::from(turn % 3 == 0) * 3, 2);
    assert_eq!(goroutines(6, 30, noisy, false), ["process-growth"], "others come and go");
}

#[test]
fn two_controllers_whose_goroutines_grow_are_one_finding() {
    let mut world = World::new();
    world.now = 61_000;
    for turn in 0..40 {
        world.reconcile(|one| {
            one.controller = ["pool", "shelf"][usize::from(turn % 2 == 1)].to_owned();
            (one.goroutines, one.more_goroutines) = (80 + turn, 1);
        });
        world.now += 3000;
    }
    world.wait(3);
    let opened = world.opened();
    let titles: Vec<&str> = opened.iter().map(|finding| finding.title.as_str()).collect();
    assert_eq!(titles, ["process grows: pool or shelf"]);
}

#[test]
fn goroutines_that_end_are_not_told() {
    let count = |turn: i64| 80 + u32::try_from(turn).unwrap();
    assert!(goroutines(6, 60, |_| (80, 0), false).is_empty());
    assert!(goroutines(6, 60, |turn| (count(turn.min(15)), 1), false).is_empty(), "each lives for 90 s");
    assert!(goroutines(6, 60, |turn| (count(turn), 0), false).is_empty(), "something else makes them");
    assert!(goroutines(6, 60, |turn| (count(turn), 1), true).is_empty(), "it did something");
    assert!(goroutines(1, 60, |turn| (count(turn), 1), false).is_empty(), "within a minute they may end");
    assert!(goroutines(6, 60, |_| (0, 0), false).is_empty(), "nobody counts them");
    let pool = |turn: i64| (80 + u32::try_from(turn % 8).unwrap(), 1);
    assert!(goroutines(6, 60, pool, false).is_empty(), "a pool that fills and empties");
}

impl World {
    fn says(&mut self, message: &str) {
        let (target, message) = ("controller-runtime".to_owned(), message.to_owned());
        let line = LogLine { at: at(self.now), level: Level::Error, target, message, reconcile: None };
        self.event(&Event::Log(line));
    }

    fn ends(&mut self) {
        let exit = ProcessExit {
            status: "exit code 1".to_owned(),
            ran: Duration::ZERO,
            message: None,
            place: None,
            hint: None,
        };
        let run = ProcessChanged {
            at: at(self.now),
            program: "go ./cmd".to_owned(),
            state: ProcessState::Restarting { exit, after: Duration::ZERO },
            starts: 1,
            traced: None,
            breakpoint: None,
        };
        self.event(&Event::ProcessChanged(Arc::new(run)));
    }

    fn misses(&mut self, times: i64) {
        for _ in 0..times {
            self.says(
                "if kind is a CRD, it should be installed before calling Start: no matches for kind \"Certificate\" \
                 in version \"cert-manager.io/v1\" kind=Certificate.cert-manager.io",
            );
            self.wait(10);
        }
    }
}

const TIMED_OUT: &str = "Could not wait for Cache to sync: failed to wait for web caches to sync: timed out waiting for \
                         cache to be synced for Kind *v1.Certificate";

#[test]
fn a_kind_that_the_cluster_does_not_have_is_told() {
    let mut world = World::new();
    world.misses(12);
    assert_eq!(world.rules(), [("kind-missing".to_owned(), FindingSeverity::Hint)]);
    let opened = world.opened();
    assert_eq!(opened[0].object.name, "Certificate.cert-manager.io");
    world.says(TIMED_OUT);
    world.ends();
    assert_eq!(world.rules(), [("kind-missing".to_owned(), FindingSeverity::Error)]);
    // It does not end while no program runs, nor while the next one says the same.
    world.wait(60);
    world.restart(&[]);
    world.misses(4);
    assert!(world.closed().is_empty(), "{:?}", world.closed());
    assert_eq!(world.opened().len(), 1);
    world.wait(20);
    assert_eq!(world.closed(), [("kind-missing".to_owned(), "it was not seen any more".to_owned())]);
}

#[test]
fn a_kind_that_comes_is_not_told() {
    let mut installed = World::new();
    installed.misses(1);
    installed.wait(60);
    assert!(installed.rules().is_empty(), "opdev has installed it");
    let mut other = World::new();
    other.misses(3);
    other.ends();
    assert_eq!(
        other.rules(),
        [("kind-missing".to_owned(), FindingSeverity::Hint)],
        "it ended by something else"
    );
    let mut asks = World::new();
    for _ in 0..3 {
        asks.says("no matches for kind \"Certificate\" in version \"cert-manager.io/v1\"");
        asks.wait(10);
    }
    assert!(asks.rules().is_empty(), "it only looks for it");
}

#[test]
fn an_application_that_does_not_answer_is_no_fault_where_pods_are_simulated() {
    let (talks, shards) =
        ("received unknown message type: 72", "dial tcp: lookup web.default.svc: no such host");
    let fails = |embedded: bool, pods: bool, error: &str, refused: &str| {
        let mut world = World::new();
        world.findings.table.embedded = embedded;
        let deleted =
            json!({"finalizers": ["lib.example.com/cleanup"], "deletionTimestamp": "2026-01-01T00:00:00Z"});
        world.reconcile(|_| {});
        world.seen(&cr("a"), shelf(2, deleted));
        for _ in 0..12 {
            world.reconcile(|one| {
                (one.pods, one.error, one.deleting) = (pods, error.to_owned(), true);
                if !refused.is_empty() {
                    let message = refused.to_owned();
                    let verb = "get".to_owned();
                    one.refusals = vec![RefusalFact { status: 500, verb, message, ..RefusalFact::default() }];
                }
            });
            world.now += 6_000;
        }
        world.wait(2);
        world.loud()
    };
    let both = ["same-error", "stuck-deletion"];
    assert_eq!(fails(false, true, talks, ""), both, "on a cluster pods are real");
    assert!(fails(true, true, talks, "").is_empty());
    assert!(fails(true, false, shards, "").is_empty());
    assert_eq!(fails(true, false, talks, ""), both, "it has nothing to do with pods");
    assert_eq!(fails(true, true, "no such thing", "no such thing"), both, "the API server's own word");
    assert_eq!(fails(true, true, "Secret \"a\" not found", ""), both, "the cache's own word");
}

/// Reconciles that make a child in a cache of so many objects, and read what else is named.
fn cache(objects: usize, read: &[ObjectRef], causes: Option<ObjectRef>) -> Vec<(String, FindingSeverity)> {
    let mut world = World::new();
    let role = child("ClusterRole", "a");
    world.reconcile(|one| one.writes = vec![create(&role, 1)]);
    world.now += 30_000;
    world.reconcile(|one| {
        let of = |object: &ObjectRef| ReadFact { objects: vec![object.key()], ..ReadFact::default() };
        one.reads = std::iter::once(&role).chain(read).map(of).collect();
        one.cached = vec![CachedFact { kind: "ClusterRole".to_owned(), objects, ..CachedFact::default() }];
        one.causes =
            causes.iter().map(|object| woken(object.clone(), WatchEvent::Modified, None, false)).collect();
    });
    world.wait(20);
    world.rules().into_iter().filter(|(rule, _)| rule == "cache-too-wide").collect()
}

#[test]
fn a_cache_that_holds_what_nobody_uses_is_a_hint() {
    let hint = [("cache-too-wide".to_owned(), FindingSeverity::Hint)];
    assert_eq!(cache(70, &[], None), hint);
    assert!(cache(9, &[], None).is_empty(), "few");
    let admin = child("ClusterRole", "admin");
    assert!(
        cache(70, std::slice::from_ref(&admin), None).is_empty(),
        "one that others made: a label does not fit"
    );
    assert!(cache(70, &[], Some(admin)).is_empty(), "others lead to reconciles");
}
