//! Rules over facts: each bug in its dress, and beside it what looks like it and is none.

use super::Findings;
use crate::event::evidence::{
    Evidence, FieldFact, Handover, OwnerFact, ReadFact, RefusalFact, StaleFact, WriteFact, WriteVerb,
};
use crate::event::{
    Body, Cause, CauseKind, Event, FindingSeverity, ObjectGone, ObjectSeen, Outcome, ProcessChanged,
    ProcessPass, ProcessState, Reconcile, Relation, RuleFinding, TraceLevel, UnrelatedObject, UnrelatedSeen,
    WatchEvent,
};
use jiff::Timestamp;
use opdev_object::meta::{Gvk, ObjectRef};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;

fn at(millis: i64) -> Timestamp {
    Timestamp::from_millisecond(1_700_000_000_000 + millis).unwrap()
}

fn cr(name: &str) -> ObjectRef {
    let gvk = Gvk::new("lib.example.com", "v1", "Shelf");
    ObjectRef {
        gvk,
        namespace: Some("default".to_owned()),
        name: name.to_owned(),
        uid: Some(format!("uid-{name}")),
    }
}

fn child(kind: &str, name: &str) -> ObjectRef {
    let group = if matches!(kind, "Deployment" | "StatefulSet") { "apps" } else { "" };
    let gvk = Gvk::new(group, "v1", kind);
    ObjectRef {
        gvk,
        namespace: Some("default".to_owned()),
        name: name.to_owned(),
        uid: Some(format!("uid-{name}")),
    }
}

/// A program under test, and what was told of it.
struct World {
    findings: Findings,
    now: i64,
    next: u64,
    told: Vec<Event>,
}

impl World {
    fn new() -> World {
        let mut world = World { findings: Findings::default(), now: 0, next: 0, told: Vec::new() };
        world.restart(&[]);
        world
    }

    fn event(&mut self, event: &Event) {
        let told = self.findings.see(event);
        self.told.extend(told);
    }

    fn restart(&mut self, files: &[&str]) {
        let files = files.iter().map(|file| (*file).to_owned()).collect();
        let state = ProcessState::Running { pid: 1, files, since_save: Duration::ZERO };
        let run = ProcessChanged {
            at: at(self.now),
            program: "go ./cmd".to_owned(),
            state,
            starts: 1,
            traced: None,
        };
        self.event(&Event::ProcessChanged(Arc::new(run)));
    }

    /// A reconcile that begins now and takes a moment.
    fn reconcile(&mut self, change: impl FnOnce(&mut Evidence)) {
        self.next += 1;
        let mut evidence = Evidence {
            reconcile: self.next,
            controller: "shelf".to_owned(),
            object: cr("a"),
            level: Some(TraceLevel::Full),
            at: at(self.now),
            ended: at(self.now + 5),
            reads: vec![ReadFact { objects: vec![cr("a").key()], missing: false }],
            ..Evidence::default()
        };
        change(&mut evidence);
        self.now += 10;
        let pass = reconcile(evidence);
        self.event(&Event::Reconciled(Arc::new(pass.clone())));
        // Told again, with a late call: it counts once.
        self.event(&Event::Reconciled(Arc::new(pass)));
    }

    fn wait(&mut self, seconds: i64) {
        for _ in 0..seconds {
            self.now += 1000;
            let told = self.findings.elapsed(at(self.now));
            self.told.extend(told);
        }
    }

    fn seen(&mut self, object: &ObjectRef, value: Value) {
        let seen = ObjectSeen {
            at: at(self.now),
            object_ref: object.clone(),
            metadata_only: false,
            object: Body::new(&value),
        };
        self.event(&Event::ObjectSeen(seen));
    }

    fn unrelated(&mut self, object: &ObjectRef) {
        let (namespace, name, uid) = (object.namespace.clone(), object.name.clone(), object.uid.clone());
        let objects = vec![UnrelatedObject { namespace, name, uid }];
        self.event(&Event::UnrelatedSeen(UnrelatedSeen {
            at: at(self.now),
            gvk: object.gvk.clone(),
            objects,
        }));
    }

    fn gone(&mut self, object: &ObjectRef) {
        self.event(&Event::ObjectGone(ObjectGone { at: at(self.now), object_ref: object.clone() }));
    }

    fn opened(&self) -> Vec<Arc<RuleFinding>> {
        let opened = |event: &Event| match event {
            Event::FindingOpened(finding) => Some(Arc::clone(finding)),
            _ => None,
        };
        self.told.iter().filter_map(opened).collect()
    }

    /// Rules that were told, each with its worst severity.
    fn rules(&self) -> Vec<(String, FindingSeverity)> {
        let mut rules: Vec<(String, FindingSeverity)> = Vec::new();
        for event in &self.told {
            let (Event::FindingOpened(finding) | Event::FindingCounted(finding)) = event else { continue };
            match rules.iter_mut().find(|(rule, _)| *rule == finding.rule) {
                Some(known) => known.1 = known.1.min(finding.severity),
                None => rules.push((finding.rule.clone(), finding.severity)),
            }
        }
        rules
    }

    fn loud(&self) -> Vec<String> {
        let rules = self.rules().into_iter();
        rules.filter(|(_, severity)| *severity != FindingSeverity::Hint).map(|(rule, _)| rule).collect()
    }

    fn closed(&self) -> Vec<(String, String)> {
        let closed = |event: &Event| match event {
            Event::FindingClosed(finding) => Some((finding.rule.clone(), finding.ended.clone()?.how)),
            _ => None,
        };
        self.told.iter().filter_map(closed).collect()
    }
}

fn reconcile(evidence: Evidence) -> Reconcile {
    Reconcile {
        id: evidence.reconcile,
        object: evidence.object.clone(),
        causes: evidence.causes.clone(),
        sources: 0,
        at: evidence.at,
        queued: Duration::ZERO,
        took: Duration::ZERO,
        steps: Vec::new(),
        calls: Vec::new(),
        outcome: Outcome::Applied,
        status: Vec::new(),
        objects: Vec::new(),
        requeue: None,
        waiting: None,
        releases: Vec::new(),
        failure: None,
        process: Some(Box::new(ProcessPass {
            controller: evidence.controller.clone(),
            reconcile_id: evidence.reconcile.to_string(),
            traced: TraceLevel::Full,
            reads: Vec::new(),
            own_writes: Vec::new(),
            guessed_calls: Vec::new(),
            disturbed_calls: Vec::new(),
            late_calls: 0,
            findings: Vec::new(),
            evidence: Handover::new(evidence),
        })),
    }
}

fn woken(object: ObjectRef, event: WatchEvent, by: Option<&str>, own: bool) -> Cause {
    let kind = CauseKind::Watch {
        object,
        event,
        fields: Vec::new(),
        by: by.map(str::to_owned),
        own_write: own,
        relation: Relation::Owner,
    };
    Cause { at: at(0), kind }
}

fn own() -> Vec<Cause> {
    vec![woken(cr("a"), WatchEvent::Modified, Some("manager"), true)]
}

fn by_user() -> Vec<Cause> {
    vec![woken(cr("a"), WatchEvent::Modified, Some("kubectl-edit"), false)]
}

fn timer() -> Vec<Cause> {
    vec![Cause { at: at(0), kind: CauseKind::Wait { why: "the pass before asked to run again".to_owned() } }]
}

fn update(object: &ObjectRef, subresource: &str, fields: Vec<FieldFact>) -> WriteFact {
    WriteFact {
        object: object.clone(),
        subresource: subresource.to_owned(),
        verb: WriteVerb::Update,
        manager: "manager".to_owned(),
        before: vec!["manager".to_owned()],
        held: true,
        fields,
        ..WriteFact::default()
    }
}

fn field(path: &str, old: u64, new: u64) -> FieldFact {
    FieldFact { path: path.to_owned(), old, new, sent: true, scalar: true, ..FieldFact::default() }
}

fn create(object: &ObjectRef, now: i64) -> WriteFact {
    WriteFact {
        at: at(now),
        object: object.clone(),
        verb: WriteVerb::Create,
        created: true,
        manager: "manager".to_owned(),
        ..WriteFact::default()
    }
}

fn owned(controller: bool) -> Vec<OwnerFact> {
    vec![OwnerFact { kind: "Shelf".to_owned(), name: "a".to_owned(), uid: "uid-a".to_owned(), controller }]
}

fn shelf(generation: i64, more: Value) -> Value {
    let mut object = json!({"apiVersion": "lib.example.com/v1", "kind": "Shelf", "metadata": {"name": "a",
        "namespace": "default", "uid": "uid-a", "generation": generation,
        "managedFields": [{"manager": "kubectl-edit", "time": "2026-01-01T00:00:00Z"}]}, "spec": {}});
    if let (Some(to), Some(from)) = (object.as_object_mut(), more.as_object()) {
        for (key, value) in from {
            match key.as_str() {
                "deletionTimestamp" | "finalizers" | "annotations" => to["metadata"][key] = value.clone(),
                _ => _ = to.insert(key.clone(), value.clone()),
            }
        }
    }
    object
}

#[test]
fn a_list_in_another_order_each_time_is_told_and_takes_the_loop_in() {
    let mut world = World::new();
    let deployment = child("Deployment", "web");
    world.reconcile(|one| one.causes = by_user());
    for round in 0..40 {
        world.reconcile(|one| {
            one.causes = own();
            let path = ".spec.template.spec.containers[name=c].env";
            let env = FieldFact { reordered: Some(3), scalar: false, ..field(path, round + 1, round + 2) };
            one.writes = vec![WriteFact { at: one.at, ..update(&deployment, "", vec![env]) }];
        });
    }
    assert_eq!(world.loud(), ["unstable-output"]);
    let opened = world.opened();
    assert_eq!(opened[0].title, "unstable output: Deployment env");
    assert!(opened[0].why.contains("the same 3 items in another order"), "{}", opened[0].why);
    let last = world.told.iter().rev().find_map(|event| match event {
        Event::FindingCounted(finding) => Some(Arc::clone(finding)),
        _ => None,
    });
    assert_eq!(last.unwrap().explains, ["hot-loop"]);
    world.restart(&["controller.go"]);
    world.wait(12);
    let closed = world.closed();
    assert_eq!(closed.len(), 1);
    assert!(closed[0].1.starts_with("fixed by your save of controller.go at "), "{}", closed[0].1);
}

#[test]
fn a_counter_in_the_status_is_a_loop_and_a_few_steps_are_none() {
    let run = |rounds: u64, causes: fn() -> Vec<Cause>| {
        let mut world = World::new();
        for round in 0..rounds {
            world.reconcile(|one| {
                one.causes = causes();
                let count = field(".status.count", round + 1, round + 2);
                one.writes = vec![WriteFact { at: one.at, ..update(&cr("a"), "status", vec![count]) }];
                one.requeue = Some(Duration::from_secs(1)).filter(|_| causes == timer as fn() -> Vec<Cause>);
            });
        }
        world.loud()
    };
    assert_eq!(run(60, own), ["hot-loop"]);
    assert!(run(20, own).is_empty(), "phases");
    assert!(run(60, by_user).is_empty(), "a person who writes often");
    assert!(run(60, timer).is_empty(), "its own timer of a second");
}

#[test]
fn a_switch_that_goes_to_and_fro_is_told_and_drift_that_is_put_back_is_not() {
    let mut world = World::new();
    for round in 0..20 {
        world.reconcile(|one| {
            one.causes = own();
            let (old, new) = if round % 2 == 0 { (1, 2) } else { (2, 1) };
            one.writes = vec![WriteFact {
                at: one.at,
                ..update(&cr("a"), "status", vec![field(".status.on", old, new)])
            }];
        });
    }
    assert_eq!(world.loud(), ["unstable-output"]);
    let mut drift = World::new();
    for _ in 0..20 {
        drift.reconcile(|one| {
            one.causes = by_user();
            let replicas = FieldFact { other: "kubectl-edit".to_owned(), ..field(".spec.replicas", 5, 3) };
            one.writes =
                vec![WriteFact { at: one.at, ..update(&child("Deployment", "web"), "", vec![replicas]) }];
        });
    }
    assert!(drift.loud().iter().all(|rule| rule == "fight"), "{:?}", drift.loud());
    let mut twice = World::new();
    for _ in 0..2 {
        twice.reconcile(|one| {
            one.causes = by_user();
            let replicas = FieldFact { other: "kubectl-edit".to_owned(), ..field(".spec.replicas", 5, 3) };
            one.writes =
                vec![WriteFact { at: one.at, ..update(&child("Deployment", "web"), "", vec![replicas]) }];
        });
    }
    assert!(twice.loud().is_empty(), "{:?}", twice.loud());
}

#[test]
fn a_time_in_the_status_is_told_and_a_heartbeat_is_not() {
    let run = |causes: fn() -> Vec<Cause>, requeue: Option<Duration>| {
        let mut world = World::new();
        for round in 0..8 {
            world.reconcile(|one| {
                one.causes = causes();
                one.requeue = requeue;
                let time = FieldFact { time: true, ..field(".status.lastSync", round + 1, round + 2) };
                one.writes = vec![WriteFact { at: one.at, ..update(&cr("a"), "status", vec![time]) }];
            });
        }
        world.loud()
    };
    assert_eq!(run(own, None), ["status-each-time"]);
    assert!(run(timer, Some(Duration::from_secs(3))).is_empty());
}

#[test]
fn who_asks_to_run_again_for_ever_is_told() {
    let run = |requeue: Duration, rounds: usize, pause: i64, wakes: bool| {
        let mut world = World::new();
        for round in 0..rounds {
            world.reconcile(|one| {
                one.requeue = Some(requeue);
                one.causes = if wakes && round % 5 == 0 { by_user() } else { timer() };
            });
            world.now += pause;
        }
        world.loud()
    };
    assert_eq!(run(Duration::ZERO, 13, 300, false), ["requeue-storm"]);
    assert_eq!(run(Duration::from_millis(200), 160, 200, false), ["requeue-storm"]);
    assert!(run(Duration::from_millis(200), 30, 200, false).is_empty(), "a poll of 6 s");
    assert!(run(Duration::from_secs(5), 60, 5000, false).is_empty(), "a period");
    assert!(run(Duration::from_millis(200), 160, 200, true).is_empty(), "events");
}

#[test]
fn a_child_without_an_owner_is_told_at_creation_or_when_it_stays() {
    let service = child("Service", "web");
    let mut world = World::new();
    world.reconcile(|one| one.writes = vec![create(&child("Service", "web"), 1)]);
    assert_eq!(world.rules(), [("missing-owner".to_owned(), FindingSeverity::Warning)]);
    // What is no fault.
    for look_alike in 0..5 {
        let mut world = World::new();
        world.reconcile(|one| {
            let mut write = create(&child("Service", "web"), 1);
            match look_alike {
                0 => write.owners = owned(true),
                1 => write.tied = true,
                2 => one.finalizers = vec!["lib.example.com/cleanup".to_owned()],
                3 => write.object.namespace = Some("other".to_owned()),
                _ => one.keeps = true,
            }
            one.writes = vec![write];
        });
        assert!(world.loud().is_empty(), "{look_alike}: {:?}", world.rules());
    }
    // With a finalizer it is judged when the custom resource is gone; only a restart proves it.
    let finalizers = json!({"finalizers": ["lib.example.com/cleanup"]});
    let mut world = World::new();
    world.seen(&cr("a"), shelf(1, finalizers.clone()));
    world.reconcile(|one| {
        one.finalizers = vec!["lib.example.com/cleanup".to_owned()];
        one.writes = vec![create(&child("Service", "web"), 1)];
    });
    world.unrelated(&service);
    world.seen(&cr("a"), shelf(1, finalizers));
    world.gone(&cr("a"));
    world.wait(5);
    assert!(world.loud().is_empty());
    world.wait(7);
    assert_eq!(world.rules(), [("missing-owner".to_owned(), FindingSeverity::Warning)]);
    world.restart(&[]);
    world.wait(12);
    assert_eq!(world.rules(), [("missing-owner".to_owned(), FindingSeverity::Error)]);
    world.gone(&service);
    assert_eq!(world.closed(), [("missing-owner".to_owned(), "the object is gone".to_owned())]);
}

#[test]
fn a_child_whose_events_never_come_back_is_told() {
    let service = child("Service", "web");
    let run = |again: bool, echo: bool, period: Option<Duration>, controller: bool| {
        let mut world = World::new();
        world.reconcile(|one| {
            one.writes = vec![WriteFact { owners: owned(controller), ..create(&child("Service", "web"), 1) }]
        });
        world.reconcile(|one| {
            one.causes = own();
            if echo {
                one.causes.push(woken(child("Service", "web"), WatchEvent::Added, None, true));
            }
            if again {
                one.reads.push(ReadFact { objects: vec![child("Service", "web").key()], missing: false });
            }
            one.requeue = period;
        });
        world.unrelated(&service);
        world.wait(14);
        world.opened()
    };
    let told = run(true, false, None, true);
    assert_eq!(
        (told.len(), told[0].rule.as_str(), told[0].severity),
        (1, "missing-watch", FindingSeverity::Warning)
    );
    assert!(told[0].fix.contains("Owns(&Service{})"), "{}", told[0].fix);
    let told = run(true, false, None, false);
    assert!(told[0].fix.contains("controller reference"), "never: add Owns: {}", told[0].fix);
    assert!(run(true, true, None, true).is_empty(), "the echo came");
    assert!(run(false, false, None, true).is_empty(), "made once and left alone");
    let told = run(true, false, Some(Duration::from_secs(60)), true);
    assert_eq!(told[0].severity, FindingSeverity::Hint, "an agreed period");
}

#[test]
fn the_finalizer_goes_last() {
    let deleting = |one: &mut Evidence| {
        one.deleting = true;
        let released = vec!["lib.example.com/cleanup".to_owned()];
        WriteFact { at: at(100), deleting: true, held: false, released, ..update(&cr("a"), "", Vec::new()) }
    };
    let role = child("ConfigMap", "a-data");
    let deleted = |millis| WriteFact {
        at: at(millis),
        verb: WriteVerb::Delete,
        created: false,
        ..create(&child("ConfigMap", "a-data"), 1)
    };
    let mut world = World::new();
    world.reconcile(|one| one.writes = vec![WriteFact { tied: true, ..create(&role, 1) }]);
    world.reconcile(|one| one.writes = vec![deleting(one), deleted(120)]);
    assert_eq!(world.rules(), [("finalizer-order".to_owned(), FindingSeverity::Warning)]);
    let mut fails = World::new();
    fails.reconcile(|one| {
        one.writes = vec![deleting(one)];
        one.error = "configmaps \"a\" not found".to_owned();
        let refusal = RefusalFact {
            at: at(120),
            verb: "delete".to_owned(),
            target: "configmaps/a".to_owned(),
            status: 404,
            ..RefusalFact::default()
        };
        one.refusals = vec![refusal];
    });
    assert_eq!(fails.rules(), [("finalizer-order".to_owned(), FindingSeverity::Error)]);
    let mut good = World::new();
    good.reconcile(|one| one.writes = vec![WriteFact { tied: true, ..create(&role, 1) }]);
    good.reconcile(|one| one.writes = vec![deleted(50), deleting(one)]);
    assert!(good.loud().is_empty(), "{:?}", good.rules());
}

#[test]
fn a_deletion_that_does_not_end_is_told_and_one_that_waits_is_not() {
    let deleted =
        json!({"finalizers": ["lib.example.com/cleanup"], "deletionTimestamp": "2026-01-01T00:00:00Z"});
    let run = |seen: bool, requeue: Option<Duration>, error: &str| {
        let mut world = World::new();
        world.reconcile(|_| {});
        world.seen(&cr("a"), shelf(2, deleted.clone()));
        world.now += 50;
        for _ in 0..if error.is_empty() { usize::from(seen) } else { 4 } {
            world.reconcile(|one| {
                (one.deleting, one.requeue, one.error) = (true, requeue, error.to_owned());
            });
        }
        world.wait(36);
        world.loud()
    };
    assert_eq!(run(false, None, ""), ["stuck-deletion"]);
    assert_eq!(run(true, None, ""), ["stuck-deletion"]);
    assert_eq!(run(true, None, "the parent is not there"), ["stuck-deletion"]);
    assert!(run(true, Some(Duration::from_secs(10)), "").is_empty());
}

#[test]
fn a_child_is_not_made_again_while_its_owner_goes() {
    let deleted =
        json!({"finalizers": ["lib.example.com/cleanup"], "deletionTimestamp": "2026-01-01T00:00:00Z"});
    let run = |name: &str| {
        let mut world = World::new();
        world.reconcile(|one| {
            one.writes = vec![WriteFact { tied: true, ..create(&child("ConfigMap", "data"), 1) }]
        });
        world.now = 1000;
        world.seen(&cr("a"), shelf(2, deleted.clone()));
        world.reconcile(|one| {
            one.deleting = true;
            one.writes = vec![WriteFact { tied: true, ..create(&child("ConfigMap", name), 1500) }];
        });
        world.loud()
    };
    assert_eq!(run("data"), ["created-while-deleting"]);
    assert!(run("cleanup").is_empty());
}

#[test]
fn conflicts_count_once_they_come_in_a_row() {
    let conflict = |sent: &str| RefusalFact {
        at: at(1),
        verb: "update".to_owned(),
        target: "shelves/a".to_owned(),
        object: Some(cr("a").key()),
        status: 409,
        reason: "Conflict".to_owned(),
        sent: sent.to_owned(),
        ..RefusalFact::default()
    };
    let run = |sent: [&str; 3], success: bool| {
        let mut world = World::new();
        for one_sent in sent {
            world.reconcile(|one| one.refusals = vec![conflict(one_sent)]);
            if success {
                world.reconcile(|one| {
                    one.writes = vec![update(&cr("a"), "status", vec![field(".status.x", 1, 2)])]
                });
            }
        }
        world.rules()
    };
    assert_eq!(run(["1", "2", "3"], false), [("conflict".to_owned(), FindingSeverity::Warning)]);
    assert_eq!(run(["1", "1", "1"], false), [("conflict".to_owned(), FindingSeverity::Error)]);
    assert!(run(["1", "2", "3"], true).is_empty());
    // A stale read is told where the reconcile failed by it.
    let stale = |error: &str| {
        let mut world = World::new();
        world.reconcile(|one| {
            one.stale = vec![StaleFact { object: cr("a").key(), message: "the cache was behind".to_owned() }];
            one.refusals = vec![conflict("1")];
            one.error = error.to_owned();
        });
        world.loud()
    };
    assert_eq!(stale("the object has been modified"), ["stale-read"]);
    assert!(stale("").is_empty(), "answered with a requeue");
}

#[test]
fn what_the_server_refuses_twice_is_told_but_not_what_ends_well() {
    let refusal = |status: u16, reason: &str, message: &str| RefusalFact {
        at: at(1),
        verb: "update".to_owned(),
        target: "services/web".to_owned(),
        status,
        reason: reason.to_owned(),
        field: "spec.clusterIP".to_owned(),
        message: message.to_owned(),
        ..RefusalFact::default()
    };
    let run = |one_refusal: RefusalFact, error: &str, times: usize| {
        let mut world = World::new();
        for _ in 0..times {
            world.reconcile(|one| {
                one.refusals = vec![one_refusal.clone()];
                one.error = error.to_owned();
            });
        }
        world.loud()
    };
    let invalid = refusal(422, "Invalid", "field is immutable");
    assert_eq!(run(invalid.clone(), "invalid", 2), ["refused-write"]);
    assert!(run(invalid.clone(), "invalid", 1).is_empty());
    assert!(run(invalid.clone(), "", 4).is_empty());
    assert!(run(RefusalFact { dry_run: true, ..invalid }, "invalid", 4).is_empty());
    let forbidden = "services \"web\" is forbidden: User \"system:serviceaccount:a:b\" cannot update resource \"services\" in API group \"\"";
    assert_eq!(run(refusal(403, "Forbidden", forbidden), "forbidden", 1), ["missing-right"]);
    let quota = "pods \"x\" is forbidden: exceeded quota";
    assert_eq!(run(refusal(403, "Forbidden", quota), "quota", 2), ["refused-write"]);
    let namespace = refusal(403, "NamespaceTerminating", "because it is being terminated");
    assert_eq!(run(namespace, "terminating", 3), ["namespace-terminating"]);
}

#[test]
fn a_panic_says_its_own_words() {
    let mut world = World::new();
    world.reconcile(|one| one.panic = "assignment to entry in nil map".to_owned());
    let opened = world.opened();
    assert_eq!(opened[0].rule, "panic");
    assert!(opened[0].why.ends_with("panics: assignment to entry in nil map"), "{}", opened[0].why);
    // Once it is saved and has gone well three times it is fixed.
    world.restart(&["controller.go"]);
    for _ in 0..3 {
        world.reconcile(|_| {});
    }
    assert!(world.closed()[0].1.starts_with("fixed by your save of controller.go"), "{:?}", world.closed());
}

#[test]
fn objects_and_events_without_end_are_told() {
    let grow = |wanted: u64| {
        let mut world = World::new();
        for round in 0..14 {
            world.reconcile(|one| {
                one.causes = own();
                one.wanted = wanted;
                let write = create(&child("ConfigMap", &format!("x-{round}")), round * 10);
                one.writes = vec![WriteFact { tied: true, ..write }];
            });
        }
        world.loud()
    };
    assert_eq!(grow(3), ["object-growth"]);
    assert!(grow(20).is_empty());
    let event = |message: fn(u64) -> u64| {
        let mut world = World::new();
        for round in 0..14_u64 {
            world.reconcile(|one| {
                let fact = crate::event::evidence::EventFact {
                    about: cr("a").key(),
                    reason: "Synced".to_owned(),
                    message: message(round),
                };
                let write = create(&child("Event", &format!("e-{round}")), 10);
                one.beside = vec![WriteFact { at: one.at, event: Some(fact), ..write }];
            });
        }
        world.loud()
    };
    assert_eq!(event(|_| 7), ["event-flood"]);
    assert!(event(|round| round).is_empty(), "each with another message");
}

#[test]
fn owners_that_garbage_collection_does_not_accept_are_told() {
    let mut world = World::new();
    world.reconcile(|one| {
        let mut write = WriteFact { owners: owned(true), ..create(&child("Role", "web"), 1) };
        write.object.namespace = Some("other".to_owned());
        one.writes = vec![write];
    });
    assert_eq!(world.loud(), ["cross-namespace-owner"]);
    let mut world = World::new();
    world.seen(&cr("a"), shelf(1, json!({})));
    world.reconcile(|one| {
        let mut owners = owned(true);
        owners[0].uid = "never-was".to_owned();
        one.writes = vec![WriteFact { owners, ..create(&child("Role", "web"), 1) }];
    });
    world.unrelated(&child("Role", "web"));
    world.wait(7);
    assert_eq!(world.loud(), ["owner-gone"]);
}

#[test]
fn objects_of_others_are_left_alone() {
    let run = |change: fn(&mut WriteFact)| {
        let mut world = World::new();
        world.reconcile(|one| {
            let mut write = update(&child("ConfigMap", "theirs"), "", vec![field(".data.x", 1, 2)]);
            write.before = vec!["kubectl-create".to_owned()];
            change(&mut write);
            one.writes = vec![write];
        });
        world.loud()
    };
    assert_eq!(run(|_| {}), ["foreign-object"]);
    assert!(run(|write| write.tied = true).is_empty());
    assert!(run(|write| write.before = vec!["manager".to_owned()]).is_empty());
    assert!(run(|write| write.verb = WriteVerb::Apply).is_empty());
    assert!(run(|write| write.object.gvk.kind = "Namespace".to_owned()).is_empty());
}

#[test]
fn two_custom_resources_do_not_write_one_object() {
    let mut world = World::new();
    for round in 0..4 {
        world.reconcile(|one| {
            one.object = cr(if round % 2 == 0 { "a" } else { "b" });
            one.causes = own();
            let (old, new) = if round % 2 == 0 { (2, 1) } else { (1, 2) };
            let write = update(&child("ConfigMap", "shared"), "", vec![field(".data.x", old, new)]);
            one.writes = vec![WriteFact { tied: true, ..write }];
        });
    }
    assert_eq!(world.loud(), ["name-collision"]);
}

#[test]
fn what_is_sent_in_vain_is_told() {
    let run = |change: fn(&mut WriteFact), later: bool| {
        let mut world = World::new();
        world.reconcile(|one| {
            let mut write = update(&cr("a"), "", Vec::new());
            change(&mut write);
            one.writes = vec![write];
        });
        if later {
            world.reconcile(|one| {
                one.writes = vec![update(&cr("a"), "status", vec![field(".status.x", 1, 2)])]
            });
        }
        world.wait(7);
        world.loud()
    };
    assert_eq!(run(|write| write.pruned = ".spec.colour".to_owned(), false), ["pruned-field"]);
    assert_eq!(run(|write| write.lost = ".status.phase".to_owned(), false), ["lost-status"]);
    assert!(run(|write| write.lost = ".status.phase".to_owned(), true).is_empty());
    assert_eq!(run(|write| write.beside_status = ".metadata.finalizers".to_owned(), false), ["lost-status"]);
}

#[test]
fn a_status_that_is_behind_is_told_at_rest() {
    let run = |status: Value, requeue: Option<Duration>| {
        let mut world = World::new();
        world.seen(&cr("a"), shelf(3, json!({})));
        world.reconcile(|one| {
            one.requeue = requeue;
            one.writes = vec![update(&cr("a"), "status", vec![field(".status.x", 1, 2)])];
        });
        world.seen(&cr("a"), shelf(3, json!({"status": status})));
        world.wait(13);
        world.rules()
    };
    let told = |severity| vec![("no-observed-generation".to_owned(), severity)];
    assert_eq!(run(json!({"observedGeneration": 2}), None), told(FindingSeverity::Warning));
    assert_eq!(run(json!({"phase": "Ready"}), None), told(FindingSeverity::Hint));
    assert!(run(json!({"observedGeneration": 3}), None).is_empty());
    assert!(run(json!({"observedGeneration": 2}), Some(Duration::from_secs(5))).is_empty(), "it waits");
}

#[test]
fn writes_that_change_nothing_are_a_hint() {
    let run = |change: fn(&mut WriteFact)| {
        let mut world = World::new();
        for _ in 0..6 {
            world.reconcile(|one| {
                let mut write =
                    WriteFact { unchanged: true, ..update(&child("ConfigMap", "a-data"), "", Vec::new()) };
                change(&mut write);
                one.writes = vec![write];
            });
        }
        world.rules()
    };
    assert_eq!(run(|_| {}), [("write-without-change".to_owned(), FindingSeverity::Hint)]);
    assert!(run(|write| write.verb = WriteVerb::Apply).is_empty());
    assert!(run(|write| (write.deleting, write.held) = (true, false)).is_empty(), "the last finalizer");
}

#[test]
fn a_change_that_no_reconcile_saw_is_told_once_one_writes_because_of_it() {
    let run = |waits: i64, writes: bool| {
        let mut world = World::new();
        world.reconcile(|_| {});
        world.seen(&cr("a"), shelf(1, json!({})));
        world.seen(&cr("a"), shelf(1, json!({"annotations": {"size": "3"}})));
        world.now += waits;
        world.reconcile(|one| {
            one.causes = vec![woken(
                child("Deployment", "web"),
                WatchEvent::Modified,
                Some("kube-controller-manager"),
                false,
            )];
            if writes {
                one.writes =
                    vec![update(&child("Deployment", "web"), "", vec![field(".spec.replicas", 1, 3)])];
            }
        });
        world.loud()
    };
    assert_eq!(run(8000, true), ["event-dropped"]);
    assert!(run(100, true).is_empty(), "it came at once");
    assert!(run(8000, false).is_empty(), "nothing came of it");
}

#[test]
fn a_value_of_another_client_is_not_put_back() {
    let run = |change: fn(&mut WriteFact)| {
        let mut world = World::new();
        world.reconcile(|one| {
            let carried = FieldFact {
                carried: true,
                other: "kubectl-scale".to_owned(),
                ..field(".spec.replicas", 5, 3)
            };
            let mut write = update(&child("Deployment", "theirs"), "", vec![carried]);
            write.verb = WriteVerb::Patch;
            write.tied = true;
            change(&mut write);
            one.writes = vec![write];
        });
        world.loud()
    };
    assert_eq!(run(|_| {}), ["lost-update"]);
    assert!(run(|write| write.verb = WriteVerb::Apply).is_empty());
    assert!(run(|write| write.fields[0].carried = false).is_empty(), "drift is put back");
    assert!(run(|write| write.fields[0].other = "manager".to_owned()).is_empty(), "its own earlier write");
}

#[test]
fn a_slow_reconcile_is_told_where_others_wait() {
    let run = |took: i64, queued: u64| {
        let mut world = World::new();
        world.reconcile(|one| {
            one.object = cr("slow");
            one.ended = at(took);
        });
        world.now = took + 1;
        world.reconcile(|one| one.queued = Duration::from_secs(queued));
        world.loud()
    };
    assert_eq!(run(12_000, 11), ["blocked-worker"]);
    assert!(run(12_000, 0).is_empty());
    assert_eq!(run(31_000, 0), ["blocked-worker"]);
}

#[test]
fn a_name_that_leaves_little_room_is_a_hint_once_two_show_it() {
    let mut world = World::new();
    for name in ["a", "b"] {
        world.reconcile(|one| {
            one.object = cr(name);
            let child = child("StatefulSet", &format!("{name}-application-controller"));
            one.writes = vec![WriteFact { tied: true, ..create(&child, 1) }];
        });
    }
    assert_eq!(world.rules(), [("name-budget".to_owned(), FindingSeverity::Hint)]);
    assert!(world.opened()[0].why.contains("more than 29 characters"), "{}", world.opened()[0].why);
}

#[test]
fn what_is_ignored_is_not_told() {
    let told = |name: &str| {
        let ignored =
            super::Ignored { rule: "panic".to_owned(), name: name.to_owned(), ..super::Ignored::default() };
        let mut world =
            World { findings: Findings::ignoring(vec![ignored]), now: 0, next: 0, told: Vec::new() };
        world.reconcile(|one| one.panic = "boom".to_owned());
        world.loud().len()
    };
    assert_eq!((told("a"), told(""), told("b")), (0, 0, 1));
}

#[test]
fn each_rule_has_words_of_its_own() {
    let mut ids: Vec<&str> = super::RULES.iter().map(|rule| rule.id).collect();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), super::RULES.len());
    for rule in super::RULES {
        assert!(rule.judge.is_some() || rule.absent.is_some(), "{}", rule.id);
        for text in [rule.what, rule.when, rule.never, rule.fix] {
            assert!(!text.is_empty() && text.ends_with('.'), "{}: {text}", rule.id);
        }
    }
}
