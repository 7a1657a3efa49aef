//! One moment at five sizes: a Go operator whose newest save made a hot loop, a Service without an owner, and
//! a chart that is fine. Then what a keyboard shows of its findings, and of a reconcile that panicked.

use super::fixture::{
    self, at, call, cause, object, of, pod, reconcile, reference, seen, settled, sources, started, watch,
    workload,
};
use super::frames::{check, screen};
use crate::command::Command;
use crate::view::ViewState;
use crate::{Input, Mouse, update};
use opdev_event::evidence::Handover;
use opdev_event::{
    Action, CachedRead, CauseKind, Event, Failure, ObjectChange, Outcome, OwnWrite, Place, ProcessChanged,
    ProcessState, ProgramTrace, QueueChanged, Reconcile, RuleFinding, TraceLevel, WatchEvent,
};
use opdev_object::diff::diff;
use opdev_panes::keys::chord::Key;
use opdev_state::State;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;

const CODE: &str = "internal/controller/memcached_controller.go";
const NEWEST: u64 = 430;

fn env(order: [usize; 3]) -> Value {
    let all = [("CACHE_SIZE", "64"), ("LISTEN_PORT", "11211"), ("MAX_CONN", "1024")];
    let list: Vec<Value> = order.map(|at| json!({"name": all[at].0, "value": all[at].1})).into();
    json!({"spec": {"template": {"spec": {"containers": [{"name": "memcached", "env": list}]}}}})
}

fn trace(own: Option<u64>, name: &str) -> Option<Box<ProgramTrace>> {
    let read = |kind: &str, start: u64| CachedRead {
        verb: "get".to_owned(),
        object: reference(kind, name),
        resource_version: "204".to_owned(),
        count: None,
        selector: String::new(),
        start: Duration::from_micros(start),
        took: Duration::from_micros(20),
        waited: Duration::ZERO,
        problem: String::new(),
    };
    Some(Box::new(ProgramTrace {
        controller: "memcached".to_owned(),
        reconcile_id: "5d1f".to_owned(),
        traced: TraceLevel::Full,
        reads: vec![read("Memcached", 40), read("Deployment", 90)],
        own_writes: own.map(|reconcile| OwnWrite { cause: 0, reconcile }).into_iter().collect(),
        guessed_calls: Vec::new(),
        disturbed_calls: Vec::new(),
        late_calls: 0,
        told_again: false,
        findings: Vec::new(),
        evidence: Handover::default(),
    }))
}

/// A reconcile of the storm: its own write started it, and it writes the list in another order.
fn of_the_storm(id: u64, time: &str) -> Reconcile {
    let orders = [[0, 1, 2], [2, 0, 1], [1, 2, 0], [1, 0, 2]];
    let order = |id: u64| orders[usize::try_from(id % 4).unwrap()];
    let echo = watch(reference("Deployment", "memcached-sample"), WatchEvent::Modified, &[], "manager");
    let mut storm = reconcile(id, "memcached-sample", time, vec![cause(time, echo)], Outcome::Applied, 2);
    storm.requeue = None;
    storm.objects.push(ObjectChange {
        object: reference("Deployment", "memcached-sample"),
        action: Action::Updated,
        changes: diff(&env(order(id - 1)), &env(order(id))),
        taken_from: Vec::new(),
    });
    storm.calls = vec![
        call("update", "deployments/memcached-sample", 200, 700, 200, None),
        call("update", "memcacheds/memcached-sample/status", 1_000, 800, 200, None),
    ];
    storm.process = trace(Some(id - 1), "memcached-sample");
    storm
}

fn quiet(id: u64, time: &str, kind: CauseKind, outcome: Outcome, took: u64) -> Reconcile {
    let mut quiet = reconcile(id, "memcached-sample", time, vec![cause(time, kind)], outcome, took);
    quiet.process = trace(None, "memcached-sample");
    if matches!(outcome, Outcome::Applied | Outcome::Repaired) {
        quiet.objects.push(ObjectChange {
            object: reference("Deployment", "memcached-sample"),
            action: Action::Updated,
            changes: diff(&json!({"spec": {"replicas": 2}}), &json!({"spec": {"replicas": 3}})),
            taken_from: Vec::new(),
        });
    }
    quiet
}

fn reconciles() -> Vec<Reconcile> {
    let cr = || reference("Memcached", "memcached-sample");
    let deployment = || reference("Deployment", "memcached-sample");
    let ready = |name: &str| {
        watch(
            reference("Pod", name),
            WatchEvent::Modified,
            &[(".status.phase", "Pending", "Running")],
            "kubelet",
        )
    };
    let size = watch(cr(), WatchEvent::Modified, &[(".spec.size", "2", "3")], "opdev");
    let drift = watch(deployment(), WatchEvent::Modified, &[(".spec.replicas", "5", "2")], "kubectl");
    let mut all = vec![
        quiet(1, "16:50:02", watch(cr(), WatchEvent::Added, &[], "opdev"), Outcome::Applied, 24),
        quiet(2, "16:50:09", ready("memcached-sample-6fd7c98d8-g5k7v"), Outcome::Applied, 3),
    ];
    all.extend((3..10).map(|id| quiet(id, "16:57:02", CauseKind::Period, Outcome::Unchanged, 1)));
    all.push(quiet(10, "16:57:40", drift, Outcome::Repaired, 6));
    all.push(quiet(11, "16:58:12", size, Outcome::Applied, 11));
    all.push(quiet(12, "16:58:55", ready("memcached-sample-6fd7c98d8-7dqdr"), Outcome::Applied, 3));
    all.push(quiet(18, "17:01:49", CauseKind::Start, Outcome::Applied, 9));
    all.extend((19..=NEWEST).map(|id| of_the_storm(id, if id < 400 { "17:01:49" } else { "17:02:13" })));
    all
}

/// The findings of this moment.
fn findings() -> Vec<Event> {
    let told = |rest: Value| {
        let mut finding = json!({"first": at("17:01:49"), "last": at("17:02:13"), "times": 1,
            "object": reference("Memcached", "memcached-sample")});
        finding.as_object_mut().unwrap().extend(rest.as_object().unwrap().clone());
        serde_json::from_value::<RuleFinding>(finding).unwrap()
    };
    let place = |line: u32| json!({"file": CODE, "line": line, "column": 0});
    let storm: Vec<u64> = (NEWEST - 7..=NEWEST).rev().collect();
    vec![
        told(json!({"id": 1, "rule": "hot-loop", "severity": "error", "title": "hot loop: Deployment env",
            "why": "each reconcile writes .spec.template.spec.containers[0].env of the Deployment again, the same 3 \
                    items in another order, and the write starts the next one",
            "fix": "sort the items before you write: a Go map has no order", "times": 412, "perSecond": 17,
            "about": reference("Deployment", "memcached-sample"), "storm": true, "since": 19,
            "field": ".spec.template.spec.containers[0].env", "reconciles": storm,
            "explains": ["unstable-output"], "place": place(118)})),
        told(json!({"id": 2, "rule": "missing-owner", "severity": "warning", "title": "no owner: Service",
            "why": "Service default/session-cache has no owner reference, so that it stays when Memcached \
                    default/session-cache is deleted",
            "fix": "call controllerutil.SetControllerReference before you create it",
            "object": reference("Memcached", "session-cache"), "about": reference("Service", "session-cache"),
            "first": at("16:50:03"), "last": at("16:50:03"), "place": place(203)})),
        told(json!({"id": 3, "rule": "uncached-read", "severity": "hint", "title": "3 uncached reads each time",
            "why": "each reconcile asks the API server for 3 ConfigMaps", "fix": "let the cache watch them",
            "times": 430, "place": place(71)})),
        told(json!({"id": 4, "rule": "stale-read", "severity": "warning", "title": "stale read: ConfigMap",
            "why": "the cache had an older ConfigMap than the operator had written", "times": 3,
            "fix": "wait for the event of your own write", "first": at("16:57:40"), "last": at("16:58:12"),
            "place": place(96),
            "ended": {"at": at("16:58:40"), "how": "fixed by your save of memcached_controller.go at 16:58"}})),
    ]
    .into_iter()
    .map(|finding| match finding.is_open() {
        true => Event::FindingOpened(Arc::new(finding)),
        false => Event::FindingClosed(Arc::new(finding)),
    })
    .collect()
}

/// The moment, as events.
fn moment() -> Vec<Event> {
    let mut all = vec![started(), sources(7, &[CODE])];
    let condition =
        |kind: &str| json!({"status": {"conditions": [{"type": kind, "status": "True", "reason": kind}]}});
    all.push(seen(object("Memcached", "memcached-sample", None, "16:50:02", &condition("Available"))));
    all.push(seen(object("Memcached", "session-cache", None, "16:50:03", &condition("Available"))));
    all.push(seen(object("MemcachedBackup", "cache-board", None, "16:51:02", &condition("Deployed"))));
    let set = "memcached-sample-6fd7c98d8";
    workload(&mut all, "Deployment", "memcached-sample", ("Memcached", "memcached-sample"), (2, 3));
    workload(&mut all, "ReplicaSet", set, ("Deployment", "memcached-sample"), (2, 3));
    for (name, waiting) in [("7dqdr", None), ("g5k7v", None), ("m7vn7", Some(("ContainerCreating", "")))] {
        all.push(pod(&format!("{set}-{name}"), ("ReplicaSet", set), waiting));
    }
    workload(&mut all, "Deployment", "session-cache", ("Memcached", "session-cache"), (2, 2));
    workload(&mut all, "StatefulSet", "cache-board", ("MemcachedBackup", "cache-board"), (1, 1));
    let cr = Some(("Memcached", "memcached-sample"));
    let service = json!({"spec": {"type": "ClusterIP"}});
    all.push(seen(object("Service", "memcached-sample", cr, "16:50:02", &service)));
    all.push(seen(object(
        "ConfigMap",
        "memcached-sample-options",
        cr,
        "16:50:02",
        &json!({"data": {"a": "b"}}),
    )));
    all.push(Event::ProcessChanged(Arc::new(ProcessChanged {
        at: at("17:01:49"),
        program: "go ./cmd".to_owned(),
        starts: 2,
        state: ProcessState::Running {
            pid: 4711,
            files: vec![CODE.to_owned()],
            since_save: Duration::from_millis(1_900),
        },
        traced: Some(TraceLevel::Full),
        breakpoint: None,
    })));
    all.push(settled(7, 1_900));
    all.extend(reconciles().into_iter().map(|reconcile| Event::Reconciled(Arc::new(reconcile))));
    all.push(Event::QueueChanged(QueueChanged { waiting: 0, running: 0, backing_off: 0 }));
    all.extend(findings());
    all
}

fn storm() -> State {
    of(moment())
}

#[test]
fn a_storm_at_five_sizes() {
    for (width, height) in [(80, 24), (100, 30), (120, 36), (160, 45), (200, 50)] {
        check(&format!("storm-{width}x{height}"), &storm(), "", (width, height));
    }
}

#[test]
fn what_came_since_the_last_count_is_a_part_of_the_storm() {
    let rows = |last: &str| {
        let earlier = moment().into_iter().map(|event| match event {
            Event::FindingOpened(found) if found.storm => {
                Event::FindingOpened(Arc::new(RuleFinding { last: at(last), ..RuleFinding::clone(&found) }))
            }
            other => other,
        });
        let shown = screen(&of(earlier.collect()), &mut ViewState::default(), "", (120, 36));
        super::frames::text(&shown).lines().filter(|line| line.contains("17:02:13")).count()
    };
    assert_eq!(rows("17:02:12"), rows("17:02:13"), "findings are counted once a second");
    assert!(rows("17:01:50") > rows("17:02:13"), "what came long after it is none of it");
}

#[test]
fn its_findings_and_what_each_key_shows_of_them() {
    for (width, height) in [(80, 24), (120, 36)] {
        check(&format!("storm-findings-{width}x{height}"), &storm(), "f", (width, height));
        check(&format!("storm-finding-{width}x{height}"), &storm(), "f enter j", (width, height));
        check(&format!("storm-ignore-{width}x{height}"), &storm(), "f j x", (width, height));
        check(&format!("storm-unfolded-{width}x{height}"), &storm(), "3 enter", (width, height));
    }
}

#[test]
fn a_finding_leads_to_its_code_its_reconciles_and_the_lines_that_ignore_it() {
    let state = storm();
    let after = |keys: &str| {
        let mut view = ViewState::default();
        screen(&state, &mut view, keys, (80, 24));
        view
    };
    let press = |view: &mut ViewState, key: &str| update(view, Input::Key(Key::parse(key).unwrap()), &state);
    let opened = press(&mut after("f j"), "o");
    let [Command::OpenFile { path, line, .. }] = opened.as_slice() else { panic!("{opened:?}") };
    assert!(path.ends_with(CODE) && *line == 203, "{path:?}:{line}");
    // The key of the screen opens the place of the finding that is told.
    let opened = press(&mut after(""), "ctrl-o");
    assert!(matches!(opened.as_slice(), [Command::OpenFile { line: 118, .. }]), "{opened:?}");
    // Down, on the whole page, is the next older reconcile.
    let mut view = after("f enter j enter");
    assert!(view.layers.is_empty());
    assert_eq!(view.reconcile().map(|reconcile| reconcile.id), Some(NEWEST - 1));
    assert_eq!(press(&mut view, "f"), []);
    // A reason may hold what YAML gives a meaning.
    let mut view = after("f j x down");
    for key in ["i", "t", "s", ":", "#", "'"] {
        press(&mut view, key);
    }
    let copied = press(&mut view, "enter");
    let [Command::Copy(text)] = copied.as_slice() else { panic!("{copied:?}") };
    assert_eq!(
        text,
        "findings:\n  ignore:\n    - rule: missing-owner\n      kind: \"Memcached\"\n      because: \"its:#'\"\n"
    );
    // Back from the question is the list, at the finding that it was about.
    assert!(text_of(&state, "f j x esc").contains("2 of 4"));
}

#[test]
fn an_open_list_holds_on_to_its_finding() {
    let state = storm();
    let mut view = ViewState::default();
    screen(&state, &mut view, "f", (80, 24));
    let newer = json!({"id": 9, "rule": "panic", "severity": "error", "title": "panic", "why": "it panics",
        "fix": "look at the place", "first": at("17:02:14"), "last": at("17:02:14"), "times": 1,
        "object": reference("Memcached", "session-cache"), "place": {"file": CODE, "line": 87, "column": 0}});
    let newer = Event::FindingOpened(Arc::new(serde_json::from_value(newer).unwrap()));
    let state = of(moment().into_iter().chain([newer]).collect());
    let shown = super::frames::text(&screen(&state, &mut view, "", (80, 24)));
    assert!(shown.contains("2 of 5 · hot loop"), "{shown}");
    let opened = update(&mut view, Input::Key(Key::parse("o").unwrap()), &state);
    assert!(matches!(opened.as_slice(), [Command::OpenFile { line: 118, .. }]), "{opened:?}");
}

#[test]
fn a_finding_is_no_reason_to_ignore_it() {
    let mut view = ViewState::default();
    let state = storm();
    screen(&state, &mut view, "f x", (80, 24));
    assert_eq!(update(&mut view, Input::Key(Key::parse("enter").unwrap()), &state), []);
    assert_eq!(view.layers.len(), 1, "it asks for a reason");
}

#[test]
fn the_count_of_hidden_tabs_is_a_button() {
    let (state, mut view) = (storm(), ViewState::default());
    let shown = super::frames::text(&screen(&state, &mut view, "4", (80, 24)));
    let (y, line) = shown.lines().enumerate().find(|(_, line)| line.contains(" +")).expect("a count");
    let x = line[..line.find(" +").unwrap()].chars().count() + 1;
    assert!(!line.contains("Conditions"), "{line}");
    let click = Mouse::Click(u16::try_from(x).unwrap(), u16::try_from(y).unwrap());
    for _ in 0..3 {
        update(&mut view, Input::Mouse(click), &state);
        screen(&state, &mut view, "", (80, 24));
    }
    assert_ne!(view.detail.tab, ViewState::default().detail.tab);
    let before = view.detail.tab;
    assert!(opdev_panes::detail::TABS.iter().position(|tab| tab.tab() == before) > Some(4), "{before:?}");
}

fn text_of(state: &State, keys: &str) -> String {
    super::frames::text(&screen(state, &mut ViewState::default(), keys, (80, 24)))
}

/// The moment with a reconcile that panicked.
pub(super) fn panicked() -> State {
    let mut all = moment();
    let retry = CauseKind::Retry { attempt: 4, error: "panic: assignment to entry in nil map".to_owned() };
    let mut failed = fixture::reconcile(
        431,
        "session-cache",
        "17:02:13",
        vec![cause("17:02:13", retry)],
        Outcome::Failed,
        3,
    );
    failed.failure = Some(Failure {
        chain: vec!["panic: assignment to entry in nil map [recovered]".to_owned()],
        diagnostic: Some(opdev_event::Diagnostic {
            severity: opdev_event::Severity::Error,
            message: "panic: assignment to entry in nil map".to_owned(),
            place: Some(Place { file: CODE.to_owned(), line: 87, column: 0 }),
            excerpt: Some(
                "86 | labels := found.Spec.Template.Labels\n87 | labels[\"app.kubernetes.io/managed-by\"] = \
                 \"memcached-operator\""
                    .to_owned(),
            ),
            hint: Some("make the map first when it is nil: labels = map[string]string{}".to_owned()),
            kind: None,
        }),
        attempt: 4,
    });
    failed.process = trace(None, "session-cache");
    all.push(Event::Reconciled(Arc::new(failed)));
    of(all)
}

#[test]
fn a_reconcile_that_panicked() {
    for (width, height) in [(80, 24), (120, 36)] {
        check(&format!("panic-{width}x{height}"), &panicked(), "1 j 4", (width, height));
    }
}
