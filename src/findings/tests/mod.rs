//! Rules over facts: each bug in its dress, and beside it what looks like it and is none.

#![allow(clippy::needless_pass_by_value)]

mod answers;
mod asked;
mod guessed;
mod owners;
mod process;
mod wakes;

use super::Findings;
use jiff::Timestamp;
use opdev_event::evidence::{
    Evidence, FieldFact, Handover, OwnerFact, ReadFact, RefusalFact, StaleFact, WarningFact, WriteFact,
    WriteVerb,
};
use opdev_event::{
    Body, Cause, CauseKind, Event, FindingSeverity, ObjectGone, ObjectSeen, Outcome, ProcessChanged,
    ProcessState, ProgramTrace, Reconcile, Relation, RuleFinding, TraceLevel, UnrelatedObject, UnrelatedSeen,
    WatchEvent,
};
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
            breakpoint: None,
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
            reads: vec![ReadFact { objects: vec![cr("a").key()], missing: false, ..ReadFact::default() }],
            ..Evidence::default()
        };
        change(&mut evidence);
        if evidence.causes.is_empty() {
            evidence.causes = timer();
        }
        self.now += 10;
        let ended = reconcile(evidence);
        self.event(&Event::Reconciled(Arc::new(ended.clone())));
        // Told again, with a late call: it counts once.
        self.event(&Event::Reconciled(Arc::new(ended)));
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
        process: Some(Box::new(ProgramTrace {
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
    vec![Cause {
        at: at(0),
        kind: CauseKind::Wait { why: "the reconcile before asked to run again".to_owned() },
    }]
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
    world.wait(30);
    assert!(world.closed().is_empty(), "the same order twice is chance");
    world.restart(&["controller.go"]);
    world.reconcile(|one| one.causes = own());
    world.wait(12);
    let closed = world.closed();
    assert_eq!(closed.len(), 1);
    assert!(closed[0].1.starts_with("fixed by your save of controller.go at "), "{}", closed[0].1);
}

#[test]
fn a_counter_in_the_status_is_a_loop_and_a_few_steps_are_none() {
    let run = |rounds: u64, causes: fn() -> Vec<Cause>, is_timer: bool| {
        let mut world = World::new();
        for round in 0..rounds {
            world.reconcile(|one| {
                one.causes = causes();
                let count = field(".status.count", round + 1, round + 2);
                one.writes = vec![WriteFact { at: one.at, ..update(&cr("a"), "status", vec![count]) }];
                one.requeue = Some(Duration::from_secs(1)).filter(|_| is_timer);
            });
        }
        world.loud()
    };
    assert_eq!(run(60, own, false), ["hot-loop"]);
    assert!(run(20, own, false).is_empty(), "phases");
    assert!(run(60, by_user, false).is_empty(), "a person who writes often");
    assert!(run(60, timer, true).is_empty(), "its own timer of a second");
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
    assert_eq!(run(Duration::ZERO, 7, 1600, false), ["requeue-storm"]);
    assert!(run(Duration::ZERO, 10, 300, false).is_empty(), "a wait of 3 s");
    assert!(run(Duration::ZERO, 30, 1600, true).is_empty(), "a wait with events");
    assert_eq!(run(Duration::from_millis(200), 160, 200, false), ["requeue-storm"]);
    assert!(run(Duration::from_millis(200), 30, 200, false).is_empty(), "a poll of 6 s");
    assert!(run(Duration::from_secs(5), 60, 5000, false).is_empty(), "a period");
    assert!(run(Duration::from_millis(200), 160, 200, true).is_empty(), "events");
}

#[test]
fn a_child_without_an_owner_is_told_at_creation_or_when_it_stays() {
    let service = child("Service", "a-web");
    let mut world = World::new();
    world.reconcile(|one| one.writes = vec![create(&child("Service", "a-web"), 1)]);
    assert_eq!(world.rules(), [("missing-owner".to_owned(), FindingSeverity::Warning)]);
    // Nothing here is a fault.
    for look_alike in 0..5 {
        let mut world = World::new();
        world.reconcile(|one| {
            let mut write = create(&child("Service", "a-web"), 1);
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
    // A child of a custom resource with a finalizer is judged once that is gone; only a restart proves the
    // fault.
    let finalizers = json!({"finalizers": ["lib.example.com/cleanup"]});
    let mut world = World::new();
    world.seen(&cr("a"), shelf(1, finalizers.clone()));
    world.reconcile(|one| {
        one.finalizers = vec!["lib.example.com/cleanup".to_owned()];
        one.writes = vec![create(&child("Service", "a-web"), 1)];
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
fn the_end_of_opdev_ends_no_finding() {
    let mut world = World::new();
    world.reconcile(|one| one.writes = vec![create(&child("Service", "a-web"), 1)]);
    assert_eq!(world.rules(), [("missing-owner".to_owned(), FindingSeverity::Warning)]);
    world.event(&Event::Stopping { reason: "asked to stop".to_owned() });
    world.gone(&child("Service", "a-web"));
    world.gone(&cr("a"));
    assert!(world.closed().is_empty());
}

#[test]
fn a_child_whose_events_never_come_back_is_told() {
    let service = child("Service", "web");
    let run = |again: bool, echo: bool, period: Option<Duration>, controller: bool| {
        let mut world = World::new();
        world.reconcile(|one| {
            one.writes = vec![WriteFact { owners: owned(controller), ..create(&child("Service", "web"), 1) }];
        });
        world.reconcile(|one| {
            one.causes = own();
            if echo {
                one.causes.push(woken(child("Service", "web"), WatchEvent::Added, None, true));
            }
            if again {
                one.reads.push(ReadFact {
                    objects: vec![child("Service", "web").key()],
                    missing: false,
                    ..ReadFact::default()
                });
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
            one.writes = vec![WriteFact { tied: true, ..create(&child("ConfigMap", "data"), 1) }];
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
