//! Observations of an operator written with kopf, in short, and the reconciles that they are taken for.

use super::*;
use opdev_event::sink::ReconcileNumbers;
use opdev_event::{Level, LogLine, Outcome, Reconcile, Relation, WatchEvent};
use opdev_facts::observed::Seen;
use opdev_facts::record::{ControllerAdded, Record, Traced};
use serde_json::json;

/// A program that was started at second 100, and a clock in milliseconds after that.
struct World {
    attribution: Attribution,
    events: Vec<Event>,
    rv: u32,
}

const START: i64 = 100_000;

fn at(ms: i64) -> Timestamp {
    Timestamp::from_millisecond(START + ms).unwrap()
}

fn greeting(name: &str, rv: u32) -> Value {
    json!({"apiVersion": "demo.dev/v1", "kind": "Greeting", "metadata": {"name": name, "namespace": "default",
        "uid": format!("uid-{name}"), "resourceVersion": rv.to_string(), "creationTimestamp": "1970-01-01T00:02:00Z"}})
}

/// A ConfigMap of a greeting.
fn child(name: &str, owner: &str, rv: u32) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "default",
        "resourceVersion": rv.to_string(), "ownerReferences": [{"apiVersion": "demo.dev/v1", "kind": "Greeting",
        "name": owner, "uid": format!("uid-{owner}"), "controller": true}]}})
}

const MAPS: &str = "/api/v1/namespaces/default/configmaps";
const GREETINGS: &str = "/apis/demo.dev/v1/namespaces/default/greetings";

impl World {
    fn new() -> World {
        let mut attribution = Attribution::new(ReconcileNumbers::default());
        attribution.starting(vec!["operator.py".to_owned()], 3, at(0));
        World { attribution, events: Vec::new(), rv: 10 }
    }

    fn rv(&mut self) -> u32 {
        self.rv += 1;
        self.rv
    }

    fn event(&mut self, ms: i64, kind: &str, object: Value) {
        let event = ObservedEvent { at: at(ms), kind: kind.to_owned(), path: MAPS.to_owned(), object };
        self.events.extend(self.attribution.see(Seen::Event(event)));
    }

    fn call(&mut self, ms: i64, method: &str, path: &str, status: u16, answered: Value) {
        let call = self.observed(ms, method, path, status, answered);
        self.see(ms, call);
    }

    fn observed(&self, ms: i64, method: &str, path: &str, status: u16, answered: Value) -> ObservedCall {
        ObservedCall {
            at: at(ms),
            took_micros: 2_000,
            method: method.to_owned(),
            path: path.to_owned(),
            query: String::new(),
            mark: None,
            status,
            sent: None,
            answered: Some(answered),
            disturbed: false,
            warnings: Vec::new(),
        }
    }

    fn see(&mut self, ms: i64, call: ObservedCall) {
        self.events.extend(self.attribution.elapsed(at(ms)));
        self.events.extend(self.attribution.see(Seen::Call(call)));
    }

    fn reconciles(&mut self) -> Vec<Arc<Reconcile>> {
        self.events.extend(self.attribution.elapsed(at(1_000_000)));
        assert_eq!(self.attribution.due(), None);
        let reconciles = self.events.iter().filter_map(|event| match event {
            Event::Reconciled(reconcile) => Some(Arc::clone(reconcile)),
            _ => None,
        });
        reconciles.collect()
    }
}

fn calls(reconcile: &Reconcile) -> Vec<String> {
    reconcile.calls.iter().map(|call| format!("{} {}", call.verb, call.target)).collect()
}

#[test]
fn calls_about_one_custom_resource_that_follow_each_other_are_a_reconcile() {
    let mut world = World::new();
    let rv = world.rv();
    world.event(50_000, "ADDED", greeting("a", rv));
    let (one, two, three) = (world.rv(), world.rv(), world.rv());
    // The watch may tell of a write before its answer is seen.
    world.event(50_101, "ADDED", child("a-0", "a", one));
    world.call(50_100, "POST", MAPS, 201, child("a-0", "a", one));
    world.call(50_110, "POST", MAPS, 201, child("a-1", "a", two));
    world.call(50_120, "GET", MAPS, 200, json!({"kind": "ConfigMapList", "items": []}));
    let mut done = greeting("a", three);
    done["status"] = json!({"ready": 2});
    world.call(50_130, "PATCH", &format!("{GREETINGS}/a/status"), 200, done);
    // An object without an owner belongs to no reconcile.
    world.call(50_135, "PUT", "/apis/coordination.k8s.io/v1/namespaces/default/leases/x", 200, json!({}));
    let reconciles = world.reconciles();
    let [reconcile] = reconciles.as_slice() else { panic!("{reconciles:?}") };
    assert_eq!(
        calls(reconcile),
        ["create configmaps", "create configmaps", "list configmaps", "patch greetings/a/status"]
    );
    assert_eq!((reconcile.object.name.as_str(), reconcile.object.gvk.kind.as_str()), ("a", "Greeting"));
    assert_eq!((reconcile.outcome, reconcile.took.as_millis()), (Outcome::Applied, 32));
    let process = reconcile.process.as_ref().unwrap();
    assert_eq!((process.traced, process.guessed_calls.as_slice()), (TraceLevel::Wire, [2_u32].as_slice()));
    let [cause] = reconcile.causes.as_slice() else { panic!("{:?}", reconcile.causes) };
    assert!(
        matches!(&cause.kind, CauseKind::Watch { object, event: WatchEvent::Added, relation: Relation::Primary, .. }
            if object.name == "a"),
        "{cause:?}"
    );
    assert_eq!(reconcile.status.len(), 1);
}

/// An apply that changes nothing is answered with the newest version, whoever wrote it: no write of the
/// operator. Somebody else may have written it while the call was on its way.
#[test]
fn a_version_of_somebody_else_is_no_own_write() {
    for known in [true, false] {
        let mut world = World::new();
        let (first, one, two) = (world.rv(), world.rv(), world.rv());
        world.event(50_000, "ADDED", greeting("a", first));
        let mut made = child("a-0", "a", one);
        made["metadata"]["managedFields"] =
            json!([{"manager": "greeter", "operation": "Apply", "time": "1970-01-01T00:02:30Z"}]);
        world.call(50_100, "POST", MAPS, 201, made.clone());
        world.event(50_101, "ADDED", made.clone());
        let mut theirs = made.clone();
        theirs["metadata"]["resourceVersion"] = two.to_string().into();
        theirs["data"] = json!({"by": "somebody"});
        if known {
            world.event(59_000, "MODIFIED", theirs.clone());
        }
        let call = world.observed(60_000, "PATCH", &format!("{MAPS}/a-0"), 200, theirs.clone());
        world.see(60_000, ObservedCall { query: "fieldManager=greeter&force=true".to_owned(), ..call });
        world.event(60_010, "MODIFIED", theirs);
        let three = world.rv();
        world.call(61_000, "PATCH", &format!("{GREETINGS}/a/status"), 200, greeting("a", three));
        let reconciles = world.reconciles();
        let own = reconciles.iter().flat_map(|reconcile| &reconcile.causes).filter(|cause| {
            matches!(&cause.kind, CauseKind::Watch { event: WatchEvent::Modified, own_write: true, .. })
        });
        assert_eq!(own.count(), 0, "{reconciles:#?}");
    }
}

/// The write that lets an object go has the version that was there.
#[test]
fn to_take_off_the_last_finalizer_is_a_change() {
    let mut world = World::new();
    let going = |finalizers: Value| {
        let mut going = greeting("a", 20);
        going["metadata"]["deletionTimestamp"] = json!("1970-01-01T00:02:30Z");
        going["metadata"]["finalizers"] = finalizers;
        going
    };
    world.event(50_000, "MODIFIED", going(json!(["demo.dev/cleanup"])));
    world.call(50_100, "PATCH", &format!("{GREETINGS}/a"), 200, going(json!([])));
    let reconciles = world.reconciles();
    assert_eq!(reconciles[0].outcome, Outcome::Applied, "{:#?}", reconciles[0]);
}

#[test]
fn a_pause_another_object_and_the_same_write_again_begin_another_reconcile() {
    let mut world = World::new();
    for name in ["a", "b"] {
        let rv = world.rv();
        world.event(50_000, "ADDED", greeting(name, rv));
    }
    let mut write = |ms: i64, name: &str| {
        let rv = world.rv();
        world.call(ms, "PATCH", &format!("{GREETINGS}/{name}/status"), 200, greeting(name, rv));
        let rv = world.rv();
        world.call(ms + 3, "PATCH", &format!("{MAPS}/{name}-0"), 200, child(&format!("{name}-0"), name, rv));
    };
    write(51_000, "a");
    write(51_010, "b");
    // One write is made again, at once and after a while.
    write(51_020, "a");
    write(52_000, "a");
    let reconciles = world.reconciles();
    let names: Vec<&str> = reconciles.iter().map(|reconcile| reconcile.object.name.as_str()).collect();
    assert_eq!(names.len(), 4, "{names:?}");
    assert!(reconciles.iter().all(|reconcile| reconcile.calls.len() == 2), "{reconciles:?}");
    let last = reconciles.last().unwrap();
    assert!(
        matches!(&last.causes[0].kind, CauseKind::Wait { why } if why.contains("nothing was seen")),
        "{:?}",
        last.causes
    );
}

/// A JVM loads classes between two calls of its first reconciles.
#[test]
fn a_pause_after_a_child_is_of_the_reconcile_until_the_status_is_written() {
    for foreign in [false, true] {
        let mut world = World::new();
        let (first, made, other, status) = (world.rv(), world.rv(), world.rv(), world.rv());
        world.event(50_000, "ADDED", greeting("a", first));
        world.call(51_000, "PATCH", &format!("{MAPS}/a-0"), 201, child("a-0", "a", made));
        // The own write comes back by the watch.
        world.event(51_020, "ADDED", child("a-0", "a", made));
        if foreign {
            world.event(51_050, "MODIFIED", child("a-0", "a", other));
        }
        // The event of a write may be seen before its answer.
        world.event(51_251, "MODIFIED", greeting("a", status));
        world.call(51_250, "PATCH", &format!("{GREETINGS}/a/status"), 200, greeting("a", status));
        // The reconcile after it.
        world.call(51_330, "PATCH", &format!("{MAPS}/a-1"), 200, child("a-1", "a", other));
        let all = world.reconciles();
        let of: Vec<usize> = all.iter().map(|reconcile| reconcile.calls.len()).collect();
        assert_eq!(of, if foreign { vec![1, 1, 1] } else { vec![2, 1] }, "{all:?}");
    }
}

/// fabric8 and client-go repeat by themselves what is answered with 429 or 5xx, or not at all.
#[test]
fn a_call_that_the_client_repeats_is_one_reconcile_and_another_write_is_not() {
    let mut world = World::new();
    let (first, before, after) = (world.rv(), world.rv(), world.rv());
    world.event(50_000, "ADDED", greeting("a", first));
    let path = format!("{MAPS}/a-0");
    let busy = json!({"kind": "Status", "status": "Failure", "code": 503, "message": "busy"});
    let (sent, stored) = (child("a-0", "a", before), child("a-0", "a", after));
    for (ms, status) in [(51_000, 503), (51_100, 429), (51_300, 500), (51_700, 0), (53_000, 200)] {
        let answered = if status == 200 { stored.clone() } else { busy.clone() };
        let call =
            ObservedCall { sent: Some(sent.clone()), ..world.observed(ms, "PATCH", &path, status, answered) };
        world.see(ms, call);
    }
    let all = world.reconciles();
    let [reconcile] = all.as_slice() else { panic!("{all:?}") };
    assert_eq!((reconcile.calls.len(), reconcile.outcome), (5, Outcome::Applied));

    // A program that gives up fails, and begins anew with something else.
    for (ms, path, status) in [(60_000, &path, 503), (60_100, &format!("{MAPS}/a-1"), 503)] {
        let call = ObservedCall {
            sent: Some(sent.clone()),
            ..world.observed(ms, "PATCH", path, status, busy.clone())
        };
        world.see(ms, call);
    }
    let all = world.reconciles();
    let outcomes: Vec<Outcome> = all.iter().map(|reconcile| reconcile.outcome).collect();
    assert_eq!(outcomes, [Outcome::Applied, Outcome::Failed, Outcome::Failed]);
}

/// A queue tries a reconcile again sooner than a client repeats a call, and a change by somebody else is a
/// cause.
#[test]
fn another_try_after_a_failure_is_another_reconcile() {
    let status = format!("{GREETINGS}/a/status");
    let map = format!("{MAPS}/a-0");
    for (path, ms, foreign) in [(&map, 51_010, false), (&status, 51_010, false), (&status, 51_500, true)] {
        let mut world = World::new();
        let (first, other) = (world.rv(), world.rv());
        world.event(50_000, "ADDED", greeting("a", first));
        let made = world.rv();
        world.call(51_000, "PATCH", &map, 200, child("a-0", "a", made));
        let busy = json!({"kind": "Status", "status": "Failure", "code": 500, "message": "busy"});
        let sent = Some(greeting("a", first));
        let call = ObservedCall { sent, ..world.observed(51_003, "PUT", &status, 500, busy) };
        world.see(51_003, call);
        if foreign {
            world.event(51_300, "MODIFIED", greeting("a", other));
        }
        let last = world.rv();
        let answered = if *path == map { child("a-0", "a", last) } else { greeting("a", last) };
        let method = if *path == map { "PATCH" } else { "PUT" };
        world.call(ms, method, path, 200, answered);
        let all = world.reconciles();
        let outcomes: Vec<Outcome> = all.iter().map(|reconcile| reconcile.outcome).collect();
        assert_eq!(outcomes[0], Outcome::Failed, "{path} {ms}: {all:?}");
        assert_eq!(outcomes.len(), 2, "{path} {ms}: {all:?}");
    }
}

#[test]
fn what_was_there_before_the_start_is_reconciled_for_the_start() {
    let mut world = World::new();
    let mut old = greeting("a", 5);
    old["metadata"]["creationTimestamp"] = "1970-01-01T00:00:10Z".into();
    world.event(10, "ADDED", old);
    // kopf lists instead: nothing was seen of this one.
    world.call(200, "PATCH", &format!("{GREETINGS}/b/status"), 200, greeting("b", 20));
    world.call(
        300,
        "PATCH",
        &format!("{GREETINGS}/a/status"),
        500,
        json!({"kind": "Status", "message": "no disk"}),
    );
    let reconciles = world.reconciles();
    for reconcile in &reconciles {
        assert!(
            matches!(&reconcile.causes[0].kind, CauseKind::Reload { sources: 3, .. }),
            "{:?}",
            reconcile.causes
        );
    }
    let failed = reconciles.iter().find(|reconcile| reconcile.object.name == "a").unwrap();
    assert_eq!(failed.outcome, Outcome::Failed);
    let failure = failed.failure.as_ref().unwrap();
    assert_eq!(failure.chain, ["PATCH greetings/a/status was answered with 500: no disk"]);
    assert_eq!(failed.requeue, None, "when it is tried again nobody knows");
}

#[test]
fn what_is_made_for_another_custom_resource_is_of_its_reconcile() {
    let mut world = World::new();
    let rv = world.rv();
    world.event(50_000, "ADDED", greeting("a", rv));
    let rv = world.rv();
    let mut inner = greeting("inner", rv);
    inner["metadata"]["ownerReferences"] = json!([{"apiVersion": "demo.dev/v1", "kind": "Greeting", "name": "a",
        "uid": "uid-a", "controller": true}]);
    world.call(50_100, "POST", MAPS, 201, child("a-0", "a", rv));
    world.call(50_110, "POST", GREETINGS, 201, inner.clone());
    // Later it has reconciles of its own.
    world.event(50_120, "ADDED", inner.clone());
    world.call(51_000, "PATCH", &format!("{GREETINGS}/inner/status"), 200, inner);
    let reconciles = world.reconciles();
    let names: Vec<(&str, usize)> =
        reconciles.iter().map(|reconcile| (reconcile.object.name.as_str(), reconcile.calls.len())).collect();
    assert_eq!(names, [("a", 2), ("inner", 1)]);
}

/// kube-rs watches what a controller owns by its metadata alone.
#[test]
fn an_event_with_metadata_alone_is_a_cause_and_no_version() {
    let mut world = World::new();
    world.event(50_000, "ADDED", greeting("a", 11));
    let mut map = child("a-0", "a", 12);
    map["data"] = json!({"text": "one"});
    world.call(50_100, "POST", MAPS, 201, map.clone());
    world.events.extend(world.attribution.elapsed(at(50_500)));
    let mut partial = child("a-0", "a", 13);
    (partial["apiVersion"], partial["kind"]) = ("meta.k8s.io/v1".into(), "PartialObjectMetadata".into());
    world.event(51_000, "MODIFIED", partial);
    map["metadata"]["resourceVersion"] = "14".into();
    map["data"] = json!({"text": "two"});
    world.call(51_100, "PATCH", &format!("{MAPS}/a-0"), 200, map);
    let reconciles = world.reconciles();
    let cause = &reconciles[1].causes[0].kind;
    assert!(
        matches!(cause, CauseKind::Watch { object, .. } if object.gvk.kind == "ConfigMap" && object.name == "a-0"),
        "{cause:?}"
    );
    let changes: Vec<String> =
        reconciles[1].objects[0].changes.iter().map(|change| change.path.to_string()).collect();
    assert_eq!(changes, [".data.text"]);
}

#[test]
fn lines_that_name_an_object_are_of_its_reconcile() {
    let mut world = World::new();
    world.event(50_000, "ADDED", greeting("a", 11));
    let line = |world: &mut World, ms: i64, object: &str| {
        let line = LogLine {
            at: at(ms),
            level: Level::Info,
            target: "kopf".to_owned(),
            message: "done".to_owned(),
            reconcile: None,
        };
        let about = ObjectLine { object: object.to_owned(), reason: None, line };
        match world.attribution.see(Seen::Line(about)).as_slice() {
            [Event::Log(line)] => line.reconcile,
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(line(&mut world, 50_090, "default/a"), None);
    world.call(50_100, "PATCH", &format!("{GREETINGS}/a/status"), 200, greeting("a", 12));
    for object in ["default/a", "Greeting.v1.demo.dev/a.default"] {
        assert_eq!(line(&mut world, 50_110, object), Some(1), "{object}");
    }
    for object in ["default/b", "other/a", "Set.v1.demo.dev/a.default", "a"] {
        assert_eq!(line(&mut world, 50_110, object), None, "{object}");
    }
    let reconciles = world.reconciles();
    let [reconcile] = reconciles.as_slice() else { panic!("{reconciles:?}") };
    assert_eq!(reconcile.process.as_ref().unwrap().traced, TraceLevel::Log);
    assert!(reconcile.is_guessed());
    assert_eq!(
        (line(&mut world, 50_150, "default/a"), line(&mut world, 51_000, "default/a")),
        (Some(1), None)
    );
}

/// kube-rs says why it reconciles an object before it calls anything.
#[test]
fn a_line_says_why_a_reconcile_began_where_nothing_else_does() {
    let mut world = World::new();
    world.event(50_000, "ADDED", greeting("a", 11));
    world.call(50_100, "PATCH", &format!("{GREETINGS}/a/status"), 200, greeting("a", 12));
    let say = |world: &mut World, ms: i64, reason: &str| {
        let line = LogLine {
            at: at(ms),
            level: Level::Info,
            target: "operator".to_owned(),
            message: "reconciling object".to_owned(),
            reconcile: None,
        };
        let reason = Some(reason.to_owned());
        world.events.extend(world.attribution.elapsed(at(ms)));
        let about = ObjectLine { object: "Greeting.v1.demo.dev/a.default".to_owned(), reason, line };
        world.events.extend(world.attribution.see(Seen::Line(about)));
    };
    say(&mut world, 51_000, "reconciler requested retry");
    world.call(51_010, "PATCH", &format!("{GREETINGS}/a/status"), 200, greeting("a", 13));
    // A line that is too old is about another reconcile.
    say(&mut world, 52_000, "error policy requested retry");
    world.call(58_000, "PATCH", &format!("{GREETINGS}/a/status"), 200, greeting("a", 14));
    let reconciles = world.reconciles();
    let why = |reconcile: &Reconcile| match &reconcile.causes[0].kind {
        CauseKind::Wait { why } => why.clone(),
        other => panic!("{other:?}"),
    };
    let level = |reconcile: &Reconcile| reconcile.process.as_ref().unwrap().traced;
    assert_eq!(
        (why(&reconciles[1]).as_str(), level(&reconciles[1])),
        ("its log says: reconciler requested retry", TraceLevel::Log)
    );
    assert_eq!((why(&reconciles[2]).as_str(), level(&reconciles[2])), (UNSEEN, TraceLevel::Wire));
}

#[test]
fn a_program_that_tells_is_not_guessed_at() {
    let mut world = World::new();
    let record = Record::Controller(ControllerAdded { name: "x".to_owned(), ..ControllerAdded::default() });
    world.events.extend(world.attribution.see(Seen::Traced(Traced { process: 1, at: at(1), record })));
    world.event(50_000, "ADDED", greeting("a", 11));
    world.call(50_100, "PATCH", &format!("{GREETINGS}/a/status"), 200, greeting("a", 12));
    assert!(world.reconciles().is_empty());
}
