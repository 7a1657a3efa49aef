//! Observations of the PodSet operator, in short, and the reconciles that become of them.

mod behind;
mod printed;

use super::*;
use opdev_event::words;
use opdev_event::{CauseKind, FindingKind};
use opdev_facts::record::{CacheRead, Hello, PrintedLine, TraceCause, TraceItem, TraceObject, Why};
use serde_json::json;

/// A process with one controller, and a clock that goes on by a millisecond with everything that is seen.
struct World {
    attribution: Attribution,
    clock: i64,
    events: Vec<Event>,
}

impl World {
    fn new() -> World {
        let attribution = Attribution::new(ReconcileNumbers::default());
        let mut world = World { attribution, clock: 0, events: Vec::new() };
        for name in ["podset", "other"] {
            world.tell(Record::Controller(ControllerAdded {
                name: name.to_owned(),
                group: "app.example.com".to_owned(),
                kind: "PodSet".to_owned(),
                workers: 1,
                hooks: vec!["reconciler".to_owned(), "queue".to_owned()],
            }));
        }
        world
    }

    fn now(&mut self) -> i64 {
        self.clock += 1_000_000;
        self.clock
    }

    fn see(&mut self, seen: Seen) {
        self.events.extend(self.attribution.see(seen));
    }

    fn tell(&mut self, record: Record) {
        let at = time(self.now());
        self.see(Seen::Traced(Traced { process: 1, at, record }));
    }

    fn begin(&mut self, controller: &str, id: &str, causes: Vec<TraceCause>) {
        let (t, id, controller) = (self.now(), id.to_owned(), controller.to_owned());
        let (namespace, name) = ("default".to_owned(), "demo".to_owned());
        self.tell(Record::Begin(Begin {
            t,
            id,
            controller,
            namespace,
            name,
            queued: t - 500_000,
            causes,
            more: 0,
        }));
    }

    fn end(&mut self, id: &str, error: &str) -> Arc<Reconcile> {
        let t = self.now();
        self.tell(Record::End(End { t, id: id.to_owned(), error: error.to_owned(), ..End::default() }));
        self.last()
    }

    fn last(&self) -> Arc<Reconcile> {
        let reconciles = self.events.iter().rev().find_map(|event| match event {
            Event::Reconciled(reconcile) => Some(Arc::clone(reconcile)),
            _ => None,
        });
        reconciles.unwrap()
    }

    fn call(&mut self, mark: &str, method: &str, path: &str, sent: Value, status: u16, answered: Value) {
        let at = time(self.now());
        self.see(Seen::Call(ObservedCall {
            at,
            took_micros: 400,
            method: method.to_owned(),
            path: path.to_owned(),
            query: String::new(),
            mark: (!mark.is_empty()).then(|| format!("{mark} ctx")),
            status,
            sent: Some(sent),
            answered: Some(answered),
            disturbed: false,
            warnings: Vec::new(),
        }));
    }

    fn event(&mut self, kind: &str, object: Value) {
        let at = time(self.now());
        self.see(Seen::Event(ObservedEvent { at, kind: kind.to_owned(), path: String::new(), object }));
    }

    fn list(&mut self, id: &str, labels: &str, items: &[(&str, &str)]) {
        let t = self.now();
        let item = |(name, rv): &(&str, &str)| TraceItem {
            namespace: "default".to_owned(),
            name: (*name).to_owned(),
            rv: (*rv).to_owned(),
        };
        self.tell(Record::Read(CacheRead {
            t,
            id: id.to_owned(),
            verb: "list".to_owned(),
            object: TraceObject {
                version: "v1".into(),
                kind: "Pod".into(),
                namespace: "default".into(),
                ..Default::default()
            },
            labels: labels.to_owned(),
            items: items.iter().map(item).collect(),
            count: u32::try_from(items.len()).unwrap(),
            ..CacheRead::default()
        }));
    }

    fn get(&mut self, id: &str, rv: &str) {
        let t = self.now();
        self.tell(Record::Read(CacheRead {
            t,
            id: id.to_owned(),
            verb: "get".into(),
            object: told("PodSet", "demo", rv),
            ..CacheRead::default()
        }));
    }
}

const PODS: &str = "/api/v1/namespaces/default/pods";
const STATUS: &str = "/apis/app.example.com/v1alpha1/namespaces/default/podsets/demo/status";

fn told(kind: &str, name: &str, rv: &str) -> TraceObject {
    let (group, version) = if kind == "Pod" { ("", "v1") } else { ("app.example.com", "v1alpha1") };
    TraceObject {
        group: group.into(),
        version: version.into(),
        kind: kind.into(),
        namespace: "default".into(),
        name: name.into(),
        uid: format!("uid-{name}"),
        rv: rv.into(),
    }
}

fn event(event: &str, object: TraceObject, old: &str) -> TraceCause {
    TraceCause {
        why: Why::Event,
        event: event.into(),
        object: Some(object),
        old: old.into(),
        ..TraceCause::default()
    }
}

fn pod(name: &str, rv: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"namespace": "default", "name": name, "uid": format!("uid-{name}"),
        "resourceVersion": rv, "labels": {"app": "demo"}, "ownerReferences": [{"apiVersion": "app.example.com/v1alpha1",
        "kind": "PodSet", "name": "demo", "uid": "uid-demo", "controller": true}]}})
}

fn set(rv: &str, replicas: u32, names: &[&str]) -> Value {
    json!({"apiVersion": "app.example.com/v1alpha1", "kind": "PodSet", "metadata": {"namespace": "default",
        "name": "demo", "uid": "uid-demo", "resourceVersion": rv, "managedFields": [{"manager": "kubectl", "operation":
        "Apply", "time": "2026-11-23T10:00:00Z", "fieldsType": "FieldsV1", "fieldsV1": {"f:spec": {"f:replicas": {}}}}]},
        "spec": {"replicas": replicas}, "status": {"podNames": names}})
}

fn findings(reconcile: &Reconcile) -> Vec<(FindingKind, &str, Option<u64>)> {
    let process = reconcile.process.as_ref().unwrap();
    process
        .findings
        .iter()
        .map(|finding| (finding.kind, finding.message.as_str(), finding.reconcile))
        .collect()
}

#[test]
fn causes_calls_reads_and_changes_come_together_in_their_reconcile() {
    let mut world = World::new();
    world.event("ADDED", set("10", 1, &[]));
    world.event("MODIFIED", set("11", 3, &[]));
    world.begin("podset", "a", vec![event("update", told("PodSet", "demo", "11"), "10")]);
    world.get("a", "11");
    world.list("a", "app=demo", &[]);
    world.call("a", "POST", PODS, json!({}), 201, pod("demo-x", "12"));
    world.call("a", "PUT", STATUS, set("11", 3, &[]), 200, set("13", 3, &["demo-x"]));
    let reconcile = world.end("a", "");
    assert_eq!((reconcile.id, reconcile.object.to_string().as_str()), (1, "PodSet default/demo"));
    assert_eq!(reconcile.object.gvk.version, "v1alpha1");
    assert_eq!(words::cause(&reconcile.causes[0]), ".spec.replicas 1→3 (kubectl)");
    let calls: Vec<String> =
        reconcile.calls.iter().map(|c| format!("{} {} {}", c.verb, c.target, c.status)).collect();
    assert_eq!(calls, ["create pods 201", "update podsets/demo/status 200"]);
    let process = reconcile.process.as_ref().unwrap();
    let reads: Vec<String> =
        process.reads.iter().map(|r| format!("{} {} {:?}", r.verb, r.object.gvk.kind, r.count)).collect();
    assert_eq!(reads, ["get PodSet None", "list Pod Some(0)"]);
    assert_eq!(reconcile.objects.len(), 1);
    assert_eq!(
        (reconcile.objects[0].action, reconcile.objects[0].object.name.as_str()),
        (opdev_event::Action::Created, "demo-x")
    );
    assert_eq!(reconcile.status.len(), 1, "{:?}", reconcile.status);
    assert!(findings(&reconcile).is_empty(), "{:?}", findings(&reconcile));

    // The echo of its own writes leads to the next one.
    world.begin(
        "podset",
        "b",
        vec![
            event("add", told("Pod", "demo-x", "12"), ""),
            event("update", told("PodSet", "demo", "13"), "11"),
        ],
    );
    let reconcile = world.end("b", "");
    let process = reconcile.process.as_ref().unwrap();
    assert_eq!(
        process.own_writes.iter().map(|own| (own.cause, own.reconcile)).collect::<Vec<_>>(),
        [(0, 1), (1, 1)]
    );
    assert!(matches!(
        &reconcile.causes[0].kind,
        CauseKind::Watch { relation: opdev_event::Relation::Owner, own_write: true, .. }
    ));
    assert_eq!(reconcile.outcome, opdev_event::Outcome::Unchanged);
}

#[test]
fn the_event_of_a_write_may_be_seen_before_its_answer() {
    let mut world = World::new();
    world.event("ADDED", set("10", 1, &[]));
    world.begin("podset", "a", Vec::new());
    let asked = world.now();
    world.event("MODIFIED", set("11", 1, &["a"]));
    world.see(Seen::Call(ObservedCall {
        at: time(asked),
        took_micros: 5000,
        method: "PUT".to_owned(),
        path: STATUS.to_owned(),
        query: String::new(),
        mark: Some("a ctx".to_owned()),
        status: 200,
        sent: Some(set("10", 1, &["a"])),
        answered: Some(set("11", 1, &["a"])),
        disturbed: false,
        warnings: Vec::new(),
    }));
    let reconcile = world.end("a", "");
    assert!(findings(&reconcile).is_empty(), "{:?}", findings(&reconcile));
    assert_eq!(reconcile.status.len(), 1);
}

#[test]
fn a_failed_reconcile_counts_and_the_next_one_says_why_it_runs() {
    let mut world = World::new();
    for attempt in 1..=2 {
        world.begin("podset", "a", Vec::new());
        let reconcile = world.end("a", "no quota");
        assert_eq!(reconcile.failure.as_ref().unwrap().attempt, attempt);
    }
    let retry = TraceCause { why: Why::Retry, attempt: 2, error: "no quota".into(), ..TraceCause::default() };
    world.begin("podset", "b", vec![retry]);
    let reconcile = world.end("b", "");
    assert_eq!(reconcile.causes[0].kind, CauseKind::Retry { attempt: 2, error: "no quota".to_owned() });
    world.begin("podset", "c", Vec::new());
    assert_eq!(world.end("c", "again").failure.as_ref().unwrap().attempt, 1, "a success in between");
}

#[test]
fn the_first_reconciles_of_a_process_name_the_files_that_led_to_it() {
    let mut world = World::new();
    world.attribution.starting(vec!["controllers/podset_controller.go".to_owned()], 7, Timestamp::UNIX_EPOCH);
    let initial = |object| TraceCause { initial: true, ..event("add", object, "") };
    world.begin(
        "podset",
        "a",
        vec![initial(told("PodSet", "demo", "1")), initial(told("Pod", "demo-x", "2"))],
    );
    let reconcile = world.end("a", "");
    let files = vec!["controllers/podset_controller.go".to_owned()];
    let kinds: Vec<&CauseKind> = reconcile.causes.iter().map(|cause| &cause.kind).collect();
    assert_eq!(kinds, [&CauseKind::Reload { sources: 7, files }]);
}

#[test]
fn a_cache_that_is_behind_the_own_writes_is_told() {
    let mut world = World::new();
    world.begin("podset", "a", Vec::new());
    world.call("a", "POST", PODS, json!({}), 201, pod("demo-x", "12"));
    world.call("a", "PUT", STATUS, set("11", 3, &[]), 200, set("13", 3, &["demo-x"]));
    world.end("a", "");
    world.begin("podset", "b", Vec::new());
    world.get("b", "11");
    world.list("b", "app=demo", &[]);
    world.list("b", "app=other", &[]);
    let reconcile = world.end("b", "");
    assert_eq!(
        findings(&reconcile),
        [
            (
                FindingKind::StaleRead,
                "the cache had PodSet default/demo at resourceVersion 11, older than 13, which reconcile #1 had written",
                Some(1)
            ),
            (
                FindingKind::StaleRead,
                "the cache listed 0 Pods; it was behind what reconcile #1 had written: demo-x",
                Some(1)
            ),
        ]
    );
    let evidence = reconcile.process.as_ref().and_then(|process| process.evidence.take()).unwrap();
    let missing: Vec<bool> = evidence.stale.iter().map(|stale| stale.missing).collect();
    assert_eq!(missing, [false, true], "an older version, and an object that the list lacks");
    // Once the cache has caught up, or the pod is gone, all is well.
    world.begin("podset", "c", Vec::new());
    world.get("c", "13");
    world.list("c", "app=demo", &[("demo-x", "14")]);
    assert!(findings(&world.end("c", "")).is_empty());
    world.event("DELETED", pod("demo-x", "20"));
    world.begin("podset", "d", Vec::new());
    world.list("d", "app=demo", &[]);
    assert!(findings(&world.end("d", "")).is_empty());
}

#[test]
fn order_idle_writes_conflicts_and_unrelated_objects_are_told() {
    let mut world = World::new();
    world.event("ADDED", set("10", 2, &["a", "b"]));
    world.event("ADDED", pod("demo-x", "11"));
    let mut unrelated = pod("web", "12");
    unrelated["metadata"]["ownerReferences"] = json!([]);
    world.event("ADDED", unrelated);
    world.begin("podset", "a", Vec::new());
    world.list("a", "", &[("demo-x", "11"), ("web", "12")]);
    world.call("a", "PUT", STATUS, set("10", 2, &["b", "a"]), 200, set("13", 2, &["b", "a"]));
    world.call("a", "PUT", STATUS, set("13", 2, &["b", "a"]), 200, set("13", 2, &["b", "a"]));
    let mut newer = set("14", 5, &["b", "a"]);
    newer["metadata"]["managedFields"][0]["time"] = json!("2026-11-23T11:00:00Z");
    world.event("MODIFIED", newer);
    let refused = json!({"kind": "Status", "reason": "Conflict", "code": 409});
    world.call("a", "PUT", STATUS, set("13", 2, &[]), 409, refused);
    let reconcile = world.end("a", "conflict");
    assert_eq!(
        findings(&reconcile),
        [
            (
                FindingKind::UnrelatedInList,
                "a list of Pod without a selector found 1 that is not demo's: web",
                None
            ),
            (
                FindingKind::UnorderedStatus,
                ".status.podNames was written with the same items in another order",
                None
            ),
            (
                FindingKind::WriteWithoutChange,
                "PodSet default/demo was written although nothing differed",
                None
            ),
            (
                FindingKind::Conflict,
                "the write of PodSet default/demo was based on resourceVersion 13, but kubectl had written in between",
                None
            ),
        ]
    );
}

#[test]
fn the_kind_of_a_controller_that_does_not_say_it_is_learned_from_what_it_reads() {
    let mut world = World::new();
    world.tell(Record::Controller(ControllerAdded { name: "silent".into(), ..ControllerAdded::default() }));
    world.event("ADDED", pod("a", "11"));
    for (id, reads) in [("a", true), ("b", false)] {
        world.begin("silent", id, vec![event("update", told("Pod", "a", "11"), "")]);
        world.list(id, "", &[("a", "11")]);
        if reads {
            world.get(id, "10");
        }
        let reconcile = world.end(id, "");
        let gvk = &reconcile.object.gvk;
        assert_eq!((gvk.group.as_str(), gvk.kind.as_str()), ("app.example.com", "PodSet"));
    }
}

#[test]
fn what_a_list_has_shown_is_known_before_the_first_write() {
    let mut world = World::new();
    world.event(ObservedEvent::LISTED, set("10", 2, &["a"]));
    world.begin("podset", "a", Vec::new());
    world.call("a", "PUT", STATUS, set("10", 2, &["a", "b"]), 200, set("11", 2, &["a", "b"]));
    let reconcile = world.end("a", "");
    assert_eq!(reconcile.status.len(), 1, "{:?}", reconcile.status);
    assert!(reconcile.causes.is_empty(), "what was there has led to nothing");
}

#[test]
fn children_that_are_too_many_and_are_left_are_told_once() {
    let mut world = World::new();
    let set = |rv: &str, replicas: u32, there: u32| {
        let mut set = set(rv, replicas, &[]);
        set["status"] = json!({"availableReplicas": there});
        set
    };
    for (name, rv) in [("a", "11"), ("b", "12"), ("c", "13")] {
        world.event("ADDED", pod(name, rv));
    }
    let mut reconcile = |object: Value, id: &str, listed: &[(&str, &str)], deletes: bool| {
        world.event("MODIFIED", object);
        world.begin("podset", id, Vec::new());
        world.list(id, "", listed);
        if deletes {
            world.call(id, "DELETE", &format!("{PODS}/c"), Value::Null, 200, pod("c", "30"));
        }
        let reconcile = world.end(id, "");
        findings(&reconcile)
            .iter()
            .map(|(kind, message, _)| (*kind, (*message).to_owned()))
            .collect::<Vec<_>>()
    };
    let all = [("a", "11"), ("b", "12"), ("c", "13")];
    assert_eq!(reconcile(set("20", 3, 3), "fits", &all, false), []);
    let told = "3 Pods of its own are there (.status.availableReplicas) where .spec.replicas asks for 1; the reconcile removed none \
                and asks for no other reconcile";
    assert_eq!(
        reconcile(set("21", 1, 3), "left", &all, false),
        [(FindingKind::SurplusLeft, told.to_owned())]
    );
    assert_eq!(reconcile(set("22", 1, 3), "again", &all, false), []);
    // Two pods for each replica are no surplus, and whoever removes one is at work.
    assert_eq!(reconcile(set("23", 1, 2), "pairs", &all, false), []);
    assert_eq!(reconcile(set("24", 1, 3), "acts", &all, true), []);
}

#[test]
fn a_loop_of_own_writes_is_told_once_with_its_proof() {
    let mut world = World::new();
    world.event("ADDED", set("10", 1, &[]));
    let mut told_of = Vec::new();
    for turn in 0..8 {
        let (before, after) = ((10 + turn).to_string(), (11 + turn).to_string());
        let earlier = (9 + turn).to_string();
        let id = format!("p{turn}");
        world.begin("podset", &id, vec![event("update", told("PodSet", "demo", &before), &earlier)]);
        let names = if turn % 2 == 0 { ["a"] } else { ["b"] };
        world.call(&id, "PUT", STATUS, set(&before, 1, &[]), 200, set(&after, 1, &names));
        let reconcile = world.end(&id, "");
        told_of.extend(
            findings(&reconcile).iter().filter(|f| f.0 == FindingKind::HotLoop).map(|f| (reconcile.id, f.2)),
        );
    }
    assert_eq!(told_of, [(6, Some(5))], "the first reconcile is not of its own making");
}

#[test]
fn two_controllers_that_write_one_field_in_turn_are_told() {
    let mut world = World::new();
    world.event("ADDED", set("10", 1, &[]));
    let mut found = Vec::new();
    for turn in 0..4 {
        let (before, after) = ((10 + turn).to_string(), (11 + turn).to_string());
        let (controller, names) = if turn % 2 == 0 { ("podset", ["a"]) } else { ("other", ["b"]) };
        let id = format!("p{turn}");
        world.begin(controller, &id, Vec::new());
        world.call(&id, "PUT", STATUS, set(&before, 1, &[]), 200, set(&after, 1, &names));
        found.extend(findings(&world.end(&id, "")).iter().map(|f| (f.0, f.2)));
    }
    assert_eq!(found, [(FindingKind::Fight, Some(3))]);
}

#[test]
fn calls_without_an_id_are_guessed_and_marked_and_late_ones_join_their_reconcile() {
    let mut world = World::new();
    world.begin("podset", "a", Vec::new());
    world.call("", "POST", PODS, pod("demo-x", ""), 201, pod("demo-x", "12"));
    world.call(
        "",
        "POST",
        PODS,
        json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web"}}),
        201,
        json!({}),
    );
    let reconcile = world.end("a", "");
    assert_eq!(reconcile.calls.len(), 1, "a pod of nobody is nobody's");
    assert_eq!(reconcile.process.as_ref().unwrap().guessed_calls, [0]);
    world.call("a", "POST", PODS, pod("demo-y", ""), 201, pod("demo-y", "13"));
    let again = world.last();
    assert_eq!((again.id, again.calls.len()), (reconcile.id, 2));
    world.call("b", "POST", PODS, pod("demo-z", ""), 201, pod("demo-z", "14"));
    assert_eq!(world.attribution.unknown_calls(), 1);
    // The process says only now that the reconcile has begun.
    world.begin("podset", "b", Vec::new());
    let reconcile = world.end("b", "");
    assert_eq!(
        (reconcile.calls.len(), reconcile.objects.len(), world.attribution.unknown_calls()),
        (1, 1, 0)
    );
}

#[test]
fn secrets_that_were_seen_are_masked_wherever_they_are_quoted() {
    let mut world = World::new();
    world.event("ADDED", json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s", "namespace": "default", "resourceVersion": "5"},
        "data": {"key": "aHVudGVyMi1odW50ZXIy"}}));
    world.begin("podset", "a", Vec::new());
    world.tell(Record::Log(LogRecord {
        id: "a".into(),
        message: "login with hunter2-hunter2".into(),
        values: vec![("password".into(), "swordfish".into()), ("user".into(), "jo".into())],
        ..LogRecord::default()
    }));
    let reconcile = world.end("a", "refused: hunter2-hunter2");
    assert!(!reconcile.failure.as_ref().unwrap().chain[0].contains("hunter2"), "{:?}", reconcile.failure);
    let line = world.events.iter().find_map(|event| match event {
        Event::Log(line) => Some(line),
        _ => None,
    });
    let line = line.unwrap();
    assert!(!line.message.contains("hunter2") && !line.message.contains("swordfish"), "{}", line.message);
    assert!(line.message.ends_with("user=jo") && line.reconcile == Some(reconcile.id), "{line:?}");
}

/// A program copies a secret into another object, then panics with it.
#[test]
fn secrets_are_masked_in_what_findings_and_panics_show() {
    let mut world = World::new();
    world.event("ADDED", json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s", "namespace": "default", "resourceVersion": "5"},
        "data": {"key": "aHVudGVyMi1odW50ZXIy"}}));
    world.event("ADDED", pod("demo-a", "6"));
    world.begin("podset", "a", Vec::new());
    let mut copied = pod("demo-a", "7");
    copied["metadata"]["annotations"] = json!({"login": "as hunter2-hunter2"});
    world.call("a", "PUT", &format!("{PODS}/demo-a"), copied.clone(), 200, copied);
    let panic = vec![("panic".to_owned(), "no login as hunter2-hunter2".to_owned())];
    world.tell(Record::Log(LogRecord { id: "a".into(), values: panic, ..LogRecord::default() }));
    let stack = "goroutine 7 [running]:\npanic({0x1c0, 0x2f0})\n\t/go/runtime/panic.go:860 +0x13a\n\
                 shop.(*Cart).Reconcile(0x1)\n\t/work/cart.go:87 +0x2a5\n";
    let t = world.now();
    world.tell(Record::End(End { t, id: "a".into(), panic: stack.to_owned(), ..End::default() }));
    let ended = world.last();
    let failure = format!("{:?}", ended.failure);
    assert!(failure.contains("no login as") && !failure.contains("hunter2"), "{failure}");
    let evidence = ended.process.as_ref().unwrap().evidence.take().unwrap();
    let shown = format!("{evidence:?}");
    assert!(shown.contains("login") && !shown.contains("hunter2"), "{shown}");
}

#[test]
fn nonsense_on_the_socket_is_a_notice() {
    let mut world = World::new();
    world.tell(Record::read(b"GET / HTTP/1.1\n"));
    assert!(
        matches!(&world.events[..], [Event::Noticed(notice)] if notice.message.contains("GET / HTTP/1.1"))
    );
}
