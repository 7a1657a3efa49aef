//! Events in, state out: levels and edges, bounds, trees and rows.
#![allow(clippy::needless_pass_by_value)] // objects are written where they are used

use super::budget::History;
use super::health::{self, Level};
use super::{Limits, State, tree};
use jiff::Timestamp;
use opdev_event::{
    Body, Diagnostic, Event, Failure, KindHealth, KindStatus, LogLine, Notice, ObjectGone, ObjectSeen,
    Outcome, QueueChanged, Reconcile, ReloadFailed, ReloadSettled, RequestFinished, RequestOutcome,
    RequestStarted, Severity, SourcesChanged,
};
use opdev_object::meta::{Gvk, ObjectRef};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;

pub(super) fn cr(name: &str) -> Value {
    json!({"apiVersion": "cache.my.domain/v1alpha1", "kind": "Memcached",
        "metadata": {"name": name, "namespace": "default", "uid": format!("cr-{name}")}})
}

pub(super) fn owned(api_version: &str, kind: &str, name: &str, owner: &Value, rest: Value) -> Value {
    let mut object = json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": name, "namespace": "default",
        "uid": format!("{kind}-{name}"), "ownerReferences": [{"apiVersion": owner["apiVersion"], "kind": owner["kind"],
        "name": owner["metadata"]["name"], "uid": owner["metadata"]["uid"], "controller": true}]}});
    if let Value::Object(rest) = rest {
        for (key, value) in rest {
            match (object.get_mut(&key), value) {
                (Some(Value::Object(known)), Value::Object(more)) => known.extend(more),
                (_, value) => object[key] = value,
            }
        }
    }
    object
}

pub(super) fn see(state: &mut State, object: &Value) {
    let object_ref = ObjectRef::of(object).unwrap();
    state.reduce(Event::ObjectSeen(ObjectSeen {
        at: Timestamp::UNIX_EPOCH,
        object_ref,
        metadata_only: false,
        object: Body::new(object),
    }));
}

pub(super) fn lose(state: &mut State, object: &Value) {
    state.reduce(Event::ObjectGone(ObjectGone {
        at: Timestamp::UNIX_EPOCH,
        object_ref: ObjectRef::of(object).unwrap(),
    }));
}

pub(super) fn sources(number: u64, kinds: &[(&str, KindHealth)]) -> Event {
    let kinds = kinds.iter().map(|(kind, health)| KindStatus {
        gvk: Gvk::new("cache.my.domain", "v1alpha1", *kind),
        plural: String::new(),
        source: String::new(),
        scale: String::new(),
        columns: Vec::new(),
        health: health.clone(),
    });
    Event::SourcesChanged(Arc::new(SourcesChanged {
        at: Timestamp::UNIX_EPOCH,
        sources: number,
        files: vec!["a.yaml".to_owned()],
        removed: false,
        kinds: kinds.collect(),
        diagnostics: vec![],
        samples: vec![],
        affected: vec![],
    }))
}

pub(super) fn memcached() -> State {
    let mut state = State::default();
    state.reduce(sources(1, &[("Memcached", KindHealth::Serving)]));
    state
}

fn names(state: &State, root: &Value) -> Vec<String> {
    let key = ObjectRef::of(root).unwrap().key();
    let line = |node: &tree::Node| {
        let older = if node.older > 0 { format!(" +{}", node.older) } else { String::new() };
        format!("{}{} {}{older}", " ".repeat(node.more.len()), node.seen.key.kind, node.seen.key.name)
    };
    tree::owned(state, &key).iter().map(line).collect()
}

#[test]
fn the_tree_follows_owners_and_annotations() {
    let mut state = memcached();
    let root = cr("a");
    let deployment = owned("apps/v1", "Deployment", "web", &root, json!({}));
    let set = owned("apps/v1", "ReplicaSet", "web-1", &deployment, json!({"spec": {"replicas": 1}}));
    let pod = owned("v1", "Pod", "web-1-x", &set, json!({}));
    let role = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": "r", "uid": "r",
        "annotations": {"operator-sdk/primary-resource": "default/a", "operator-sdk/primary-resource-type": "Memcached.cache.my.domain"}}});
    // Children may come before their owners.
    for object in [&pod, &set, &role, &deployment, &root] {
        see(&mut state, object);
    }
    let all = [" Deployment web", "  ReplicaSet web-1", "   Pod web-1-x", " ClusterRole r"];
    assert_eq!(names(&state, &root), all);
    lose(&mut state, &set);
    assert_eq!(names(&state, &root), [" Deployment web", " ClusterRole r"]);
    // Losing the owner reference takes it out of the tree, and it stays an object.
    let mut free = deployment.clone();
    free["metadata"].as_object_mut().unwrap().remove("ownerReferences");
    see(&mut state, &free);
    assert_eq!(names(&state, &root), [" ClusterRole r"]);
    assert_eq!(state.objects.len(), 4);
}

#[test]
fn a_circle_of_owners_ends() {
    let mut state = memcached();
    let root = cr("a");
    let mut looped = root.clone();
    let child = owned("apps/v1", "Deployment", "web", &root, json!({}));
    looped["metadata"]["ownerReferences"] =
        json!([{"apiVersion": "apps/v1", "kind": "Deployment", "name": "web", "uid": "Deployment-web"}]);
    see(&mut state, &looped);
    see(&mut state, &child);
    assert_eq!(names(&state, &root), [" Deployment web"]);
    let seen = Arc::clone(state.objects.get(&ObjectRef::of(&root).unwrap().key()).unwrap());
    tree::row(&state, &seen);
}

#[test]
fn old_generations_stand_behind_the_newest() {
    let mut state = memcached();
    let root = cr("a");
    see(&mut state, &root);
    for revision in [1, 2, 10] {
        see(
            &mut state,
            &owned("v1", "Secret", &format!("sh.helm.release.v1.a.v{revision}"), &root, json!({})),
        );
    }
    let deployment = owned("apps/v1", "Deployment", "web", &root, json!({}));
    see(&mut state, &deployment);
    for (name, revision, replicas) in [("web-a", "1", 0), ("web-b", "2", 0), ("web-c", "3", 2)] {
        let rest = json!({"spec": {"replicas": replicas},
            "metadata": {"annotations": {"deployment.kubernetes.io/revision": revision}}});
        see(&mut state, &owned("apps/v1", "ReplicaSet", name, &deployment, rest));
    }
    let all = [" Deployment web", "  ReplicaSet web-c +2", " Secret sh.helm.release.v1.a.v10 +2"];
    assert_eq!(names(&state, &root), all);
}

#[test]
fn rows_sum_the_topmost_workloads_and_name_the_fault() {
    let mut state = memcached();
    let root = cr("a");
    see(&mut state, &root);
    let deployment = owned(
        "apps/v1",
        "Deployment",
        "web",
        &root,
        json!({"spec": {"replicas": 3},
        "status": {"replicas": 3, "updatedReplicas": 3, "readyReplicas": 2}}),
    );
    see(&mut state, &deployment);
    let set = owned(
        "apps/v1",
        "ReplicaSet",
        "web-1",
        &deployment,
        json!({"spec": {"replicas": 3},
        "status": {"readyReplicas": 2}}),
    );
    see(&mut state, &set);
    let key = ObjectRef::of(&root).unwrap().key();
    let row = |state: &State| tree::row(state, &Arc::clone(state.objects.get(&key).unwrap()));
    assert_eq!((row(&state).ready, row(&state).level), (Some((2, 3)), Level::Busy));
    let pod = owned(
        "v1",
        "Pod",
        "web-1-x",
        &set,
        json!({"spec": {"containers": [{}]}, "status": {"phase": "Running",
        "containerStatuses": [{"name": "c", "ready": false, "state": {"waiting": {"reason": "CrashLoopBackOff",
        "message": "back-off 10s"}}}]}}),
    );
    see(&mut state, &pod);
    let fault = row(&state);
    assert_eq!((fault.ready, fault.level), (Some((2, 3)), Level::Bad));
    assert_eq!(fault.fault.as_deref(), Some("Pod web-1-x: back-off 10s"));
    state.reduce(Event::Reconciled(Arc::new(reconcile(1, "a", Outcome::Failed))));
    assert_eq!(row(&state).fault.as_deref(), Some("no value"));
    state.reduce(Event::Reconciled(Arc::new(reconcile(2, "a", Outcome::Upgraded))));
    assert_eq!(row(&state).fault.as_deref(), Some("Pod web-1-x: back-off 10s"));
}

#[test]
fn a_resource_without_a_word_of_its_own_is_as_good_as_its_pods() {
    let mut state = memcached();
    let mut root = cr("a");
    root["status"] = json!({});
    see(&mut state, &root);
    let key = ObjectRef::of(&root).unwrap().key();
    let level = |state: &State| tree::row(state, &Arc::clone(state.objects.get(&key).unwrap())).level;
    assert_eq!(level(&state), Level::Plain);
    let pod = |ready: bool| {
        let status = json!({"phase": "Running", "containerStatuses": [{"name": "c", "ready": ready}]});
        owned("v1", "Pod", "a-1", &root, json!({"spec": {"containers": [{"name": "c"}]}, "status": status}))
    };
    see(&mut state, &pod(false));
    assert_ne!(level(&state), Level::Good);
    see(&mut state, &pod(true));
    assert_eq!(level(&state), Level::Good);
}

pub(super) fn reconcile(id: u64, name: &str, outcome: Outcome) -> Reconcile {
    let failure =
        Failure { chain: vec!["render".to_owned(), "no value".to_owned()], diagnostic: None, attempt: 1 };
    Reconcile {
        id,
        object: ObjectRef::of(&cr(name)).unwrap(),
        causes: vec![],
        sources: 1,
        at: Timestamp::UNIX_EPOCH,
        queued: Duration::ZERO,
        took: Duration::ZERO,
        steps: vec![],
        calls: vec![],
        outcome,
        status: vec![],
        objects: vec![],
        requeue: None,
        waiting: None,
        releases: Vec::new(),
        failure: (outcome == Outcome::Failed).then_some(failure),
        process: None,
    }
}

#[test]
fn a_reconcile_that_is_told_again_takes_its_own_place() {
    let mut state = State::with_limits(Limits { reconciles: 3, ..Limits::default() });
    let told = |state: &mut State, id: u64, late: u32| {
        let mut reconcile = reconcile(id, "a", Outcome::Unchanged);
        reconcile.process = Some(Box::new(opdev_event::ProgramTrace {
            controller: "a".to_owned(),
            reconcile_id: id.to_string(),
            traced: opdev_event::TraceLevel::Full,
            reads: Vec::new(),
            own_writes: Vec::new(),
            guessed_calls: Vec::new(),
            disturbed_calls: Vec::new(),
            late_calls: late,
            told_again: late > 0,
            findings: Vec::new(),
            evidence: opdev_event::evidence::Handover::default(),
        }));
        state.reduce(Event::Reconciled(Arc::new(reconcile)));
    };
    for id in 0..3 {
        told(&mut state, id, 0);
    }
    let bytes = state.history.bytes();
    told(&mut state, 1, 1);
    told(&mut state, 1, 2);
    let key = ObjectRef::of(&cr("a")).unwrap().key();
    let late = |reconcile: &Arc<Reconcile>| (reconcile.id, reconcile.process.as_ref().unwrap().late_calls);
    let shown: Vec<_> = state.history.of(&key).unwrap().iter().map(late).collect();
    assert_eq!(shown, [(0, 0), (1, 2), (2, 0)]);
    assert_eq!(state.history.all().iter().map(late).collect::<Vec<_>>(), shown);
    assert_eq!(state.history.total, 3);
    assert!(state.history.bytes() > bytes, "what it grew by is counted");
    // One that is forgotten does not come back as the newest.
    told(&mut state, 3, 0);
    told(&mut state, 0, 1);
    assert_eq!(state.history.all().iter().map(|reconcile| reconcile.id).collect::<Vec<_>>(), [1, 2, 3]);
}

#[test]
fn everything_that_grows_is_bounded() {
    let limits = Limits {
        reconciles_per_object: 3,
        reconciles: 5,
        log_lines: 4,
        recorded: 2,
        notices: 2,
        requests: 2,
        ..Limits::default()
    };
    let mut state = State::with_limits(limits);
    for id in 0..20 {
        let name = if id % 4 == 0 { "a" } else { "b" };
        state.reduce(Event::Reconciled(Arc::new(reconcile(id, name, Outcome::Unchanged))));
        let at = Timestamp::UNIX_EPOCH;
        let line = LogLine {
            at,
            level: opdev_event::Level::Info,
            target: String::new(),
            message: id.to_string(),
            reconcile: None,
        };
        state.reduce(Event::Log(line));
        let notice = Notice {
            at,
            level: opdev_event::Level::Warn,
            message: (id / 2).to_string(),
            hint: None,
            object: None,
        };
        state.reduce(Event::Noticed(notice));
        state.reduce(Event::RequestStarted(RequestStarted { id, at, what: String::new(), lasting: false }));
        let outcome = RequestOutcome::Done { summary: String::new(), warnings: vec![] };
        state.reduce(Event::RequestFinished(RequestFinished {
            id,
            at,
            what: String::new(),
            outcome,
            took: Duration::ZERO,
        }));
        let event = json!({"apiVersion": "v1", "kind": "Event", "metadata": {"name": format!("e{}", id / 2), "namespace": "default"},
            "involvedObject": {"kind": "Memcached", "name": "a", "namespace": "default"}, "count": id});
        see(&mut state, &event);
    }
    let ids = |reconciles: &std::collections::VecDeque<Arc<Reconcile>>| {
        reconciles.iter().map(|p| p.id).collect::<Vec<_>>()
    };
    let of =
        |name: &str| state.history.of(&ObjectRef::of(&cr(name)).unwrap().key()).map(ids).unwrap_or_default();
    assert_eq!(of("b"), [17, 18, 19]);
    assert_eq!(state.history.all().len(), of("a").len() + of("b").len(), "both rings hold the same passes");
    assert!(state.history.all().len() <= 5);
    assert_eq!(state.history.total, 20);
    let lines: Vec<_> = state.log.lines().iter().map(|line| line.message.clone()).collect();
    assert_eq!((lines, state.log.total), (vec!["16".into(), "17".into(), "18".into(), "19".into()], 20));
    let notices: Vec<_> = state.notices.iter().map(|notice| notice.message.clone()).collect();
    assert_eq!(notices, ["8", "9"], "a repeated notice takes the place of the one before");
    assert_eq!((state.requests.finished.len(), state.requests.in_flight.len()), (2, 0));
    let recorded: Vec<_> =
        state.objects.recorded().map(|event| (event.key.name.clone(), event.count)).collect();
    assert_eq!(recorded, [("e8".to_owned(), 17), ("e9".to_owned(), 19)]);
    assert!(state.objects.is_empty(), "Kubernetes Events are no objects of the tree");
}

#[test]
fn a_snapshot_does_not_change_and_shares_what_has_not() {
    let mut state = memcached();
    see(&mut state, &cr("a"));
    let before = state.clone();
    state.reduce(Event::QueueChanged(QueueChanged { waiting: 2, running: 0, backing_off: 0 }));
    assert!(state.objects.same(&before.objects) && state.history.same(&before.history));
    see(&mut state, &cr("b"));
    assert_eq!((before.objects.custom_len(), state.objects.custom_len()), (1, 2));
    assert!(!state.objects.same(&before.objects));
    assert!(before.version < state.version);
}

#[test]
fn kinds_come_and_go_while_objects_stay() {
    let mut state = State::default();
    see(&mut state, &cr("a"));
    assert_eq!(state.objects.custom_len(), 0);
    state.reduce(sources(1, &[("Memcached", KindHealth::Serving)]));
    assert_eq!(state.objects.custom_len(), 1);
    state.reduce(sources(2, &[("Hello", KindHealth::Serving)]));
    assert_eq!((state.objects.custom_len(), state.objects.len()), (0, 1));
}

#[test]
fn an_older_object_of_the_same_name_takes_nothing_away() {
    let mut state = memcached();
    let (old, mut new) = (cr("a"), cr("a"));
    new["metadata"]["uid"] = json!("other");
    see(&mut state, &old);
    see(&mut state, &new);
    lose(&mut state, &old);
    assert_eq!(state.objects.custom_len(), 1);
    lose(&mut state, &new);
    assert_eq!(state.objects.custom_len(), 0);
}

#[test]
fn problems_stand_until_they_are_mended() {
    let problem = |message: &str| Diagnostic {
        severity: Severity::Error,
        message: message.to_owned(),
        place: None,
        excerpt: None,
        hint: None,
        kind: None,
    };
    let mut state = memcached();
    let settled = |sources| {
        let took = Duration::from_millis(38);
        Event::ReloadSettled(ReloadSettled {
            at: Timestamp::UNIX_EPOCH,
            sources,
            files: vec![],
            objects: 1,
            failed: 0,
            took,
        })
    };
    state.reduce(settled(1));
    assert!(state.reload.settled.is_some());
    let failed = ReloadFailed {
        at: Timestamp::UNIX_EPOCH,
        files: vec![],
        diagnostics: vec![problem("x")],
        build: false,
        program: String::new(),
    };
    state.reduce(Event::ReloadFailed(failed));
    assert_eq!(state.problems().len(), 1);
    // Another kind went live, the broken one is stale: the problem is told once.
    state.reduce(sources(
        2,
        &[("Memcached", KindHealth::Stale { problem: problem("x") }), ("Hello", KindHealth::Serving)],
    ));
    assert_eq!(state.problems().len(), 1);
    assert!(state.reload.settled.is_none(), "a new set has not settled yet");
    state.reduce(settled(1));
    assert!(state.reload.settled.is_none(), "nor by the word of the set before");
    state.reduce(sources(3, &[("Memcached", KindHealth::Serving)]));
    assert!(state.problems().is_empty());
}

fn health_of(object: Value) -> (Level, String, String) {
    let health = health::of(&object);
    (health.level, health.word.clone(), health.counts())
}

fn pod(status: Value) -> (Level, String, String) {
    health_of(json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"},
        "spec": {"containers": [{"name": "a"}, {"name": "b"}], "initContainers": [{"name": "i"}]}, "status": status}))
}

#[test]
fn pods_have_the_words_of_kubectl() {
    let word = |status: Value| pod(status).1;
    let init = json!([{"name": "i", "state": {"terminated": {"exitCode": 0}}}]);
    let running = |state: Value, ready: bool| json!({"name": "a", "ready": ready, "state": state});
    let both = |a: Value, b: Value| json!({"phase": "Running", "initContainerStatuses": init, "containerStatuses": [a, b]});
    let up = running(json!({"running": {}}), true);
    assert_eq!(pod(both(up.clone(), up.clone())), (Level::Good, "Running".into(), "2/2".into()));
    assert_eq!(word(json!({"phase": "Pending"})), "Pending");
    let waits = |reason: &str| running(json!({"waiting": {"reason": reason}}), false);
    assert_eq!(
        pod(both(up.clone(), waits("CrashLoopBackOff"))),
        (Level::Bad, "CrashLoopBackOff".into(), "1/2".into())
    );
    assert_eq!(pod(both(waits("ContainerCreating"), waits("ContainerCreating"))).0, Level::Busy);
    let dead = |exit: Value| running(json!({"terminated": exit}), false);
    assert_eq!(word(both(dead(json!({"reason": "OOMKilled", "exitCode": 137})), up.clone())), "OOMKilled");
    assert_eq!(word(both(dead(json!({"exitCode": 2})), up.clone())), "ExitCode:2");
    assert_eq!(word(both(dead(json!({"signal": 9, "exitCode": 137})), up.clone())), "Signal:9");
    let done = dead(json!({"reason": "Completed", "exitCode": 0}));
    assert_eq!(word(both(done.clone(), up.clone())), "NotReady");
    let mut ready = both(done, up);
    ready["conditions"] = json!([{"type": "Ready", "status": "True"}]);
    assert_eq!(word(ready), "Running");
    assert_eq!(
        word(json!({"phase": "Pending", "initContainerStatuses": [{"name": "i", "state": {"running": {}}}]})),
        "Init:0/1"
    );
    let crash = json!({"phase": "Pending", "initContainerStatuses": [{"name": "i", "state": {"waiting": {"reason": "CrashLoopBackOff"}}}]});
    assert_eq!(pod(crash), (Level::Bad, "Init:CrashLoopBackOff".into(), "0/2".into()));
    assert_eq!(word(json!({"phase": "Failed", "reason": "Evicted"})), "Evicted");
    let leaving = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "deletionTimestamp": "2026-03-01T17:02:05Z"},
        "spec": {"containers": [{}]}, "status": {"phase": "Running"}});
    assert_eq!(health_of(leaving), (Level::Busy, "Terminating".into(), "0/1".into()));
}

#[test]
fn each_kind_is_ready_in_its_own_way() {
    let of = |api: &str, kind: &str, spec: Value, status: Value| {
        health_of(
            json!({"apiVersion": api, "kind": kind, "metadata": {"name": "x", "generation": 1}, "spec": spec, "status": status}),
        )
    };
    let deployment = |status: Value| of("apps/v1", "Deployment", json!({"replicas": 2}), status);
    let full = json!({"observedGeneration": 1, "replicas": 2, "updatedReplicas": 2, "readyReplicas": 2});
    assert_eq!(deployment(full.clone()), (Level::Good, String::new(), "2/2".into()));
    let mut rolling = full.clone();
    rolling["replicas"] = json!(3);
    assert_eq!(deployment(rolling), (Level::Busy, "rolling out".into(), "2/2".into()));
    let mut unseen = full.clone();
    unseen["observedGeneration"] = json!(0);
    assert_eq!(deployment(unseen).0, Level::Busy);
    let mut stuck = full;
    stuck["conditions"] =
        json!([{"type": "Progressing", "status": "False", "reason": "ProgressDeadlineExceeded"}]);
    assert_eq!(deployment(stuck).1, "ProgressDeadlineExceeded");
    let set =
        json!({"observedGeneration": 1, "readyReplicas": 1, "currentRevision": "a", "updateRevision": "b"});
    assert_eq!(of("apps/v1", "StatefulSet", json!({}), set).1, "rolling out");
    let daemon = json!({"observedGeneration": 1, "desiredNumberScheduled": 3, "numberReady": 2, "updatedNumberScheduled": 3});
    assert_eq!(of("apps/v1", "DaemonSet", json!({}), daemon), (Level::Busy, String::new(), "2/3".into()));
    let complete = json!({"succeeded": 1, "conditions": [{"type": "Complete", "status": "True"}]});
    assert_eq!(of("batch/v1", "Job", json!({}), complete), (Level::Done, "Complete".into(), "1/1".into()));
    let failed =
        json!({"conditions": [{"type": "Failed", "status": "True", "reason": "BackoffLimitExceeded"}]});
    assert_eq!(of("batch/v1", "Job", json!({}), failed).0, Level::Bad);
    assert_eq!(of("v1", "PersistentVolumeClaim", json!({}), json!({"phase": "Bound"})).0, Level::Good);
    assert_eq!(of("v1", "Service", json!({"type": "LoadBalancer"}), json!({})).1, "LoadBalancer pending");
    let condition = |kind: &str, status: &str| json!({"conditions": [{"type": "Initialized", "status": "True"}, {"type": kind, "status": status, "reason": "R"}]});
    let custom = |status: Value| of("g/v1", "K", json!({}), status);
    assert_eq!(custom(condition("Deployed", "True")), (Level::Good, "Deployed".into(), String::new()));
    assert_eq!(custom(condition("Irreconcilable", "True")).0, Level::Bad);
    assert_eq!(custom(condition("ReleaseFailed", "True")).1, "ReleaseFailed");
    assert_eq!(custom(condition("Ready", "False")), (Level::Busy, "R".into(), String::new()));
    assert_eq!(custom(json!({})).0, Level::Plain);
}

#[test]
fn how_many_objects_run_on_the_newest_sources_is_counted() {
    let mut state = State::default();
    let Event::SourcesChanged(saved) = sources(2, &[("Memcached", KindHealth::Serving)]) else { return };
    let affected = saved.kinds.iter().map(|kind| kind.gvk.clone()).collect();
    state.reduce(Event::SourcesChanged(Arc::new(SourcesChanged { affected, ..saved.as_ref().clone() })));
    for name in ["a", "b", "c"] {
        see(&mut state, &cr(name));
    }
    assert_eq!(state.live_objects(), (0, 3));
    let on = |sources, name: &str, outcome| {
        Event::Reconciled(Arc::new(Reconcile { sources, ..reconcile(sources, name, outcome) }))
    };
    state.reduce(on(1, "a", Outcome::Upgraded));
    assert_eq!(state.live_objects(), (0, 3), "a reconcile on the sources before");
    state.reduce(on(2, "a", Outcome::Upgraded));
    state.reduce(on(2, "b", Outcome::Failed));
    assert_eq!(state.live_objects(), (1, 3));
}

#[test]
fn all_history_together_stays_within_its_budget_and_is_shared_fairly() {
    let budget = 400_000;
    let mut state = State::with_limits(Limits { bytes: budget, ..Limits::default() });
    state.reduce(sources(1, &[("Memcached", KindHealth::Serving)]));
    let held = |state: &State| state.holdings().iter().map(|holding| holding.bytes).sum::<usize>();
    let line = |i: usize| {
        Event::Log(LogLine {
            at: Timestamp::UNIX_EPOCH,
            level: opdev_event::Level::Info,
            target: "a".to_owned(),
            message: format!("{i} {}", "x".repeat(90)),
            reconcile: None,
        })
    };
    // A few log lines are not crowded out by those that hold more.
    (0..100).for_each(|i| state.reduce(line(i)));
    for i in 0..400 {
        let mut object = cr(if i % 2 == 0 { "a" } else { "b" });
        object["spec"] = json!({"size": i, "text": i.to_string().repeat(300)});
        see(&mut state, &object);
        if i % 3 == 0 {
            let gone = cr(&format!("gone-{i}"));
            see(&mut state, &gone);
            lose(&mut state, &gone);
        }
        let mut reconcile = reconcile(i, if i == 0 { "quiet" } else { "a" }, Outcome::Unchanged);
        reconcile.waiting = Some("y".repeat(700));
        state.reduce(Event::Reconciled(Arc::new(reconcile)));
        assert!(held(&state) <= budget, "{:?}", state.holdings());
    }
    let holdings = state.holdings();
    let of = |what: History| *holdings.iter().find(|holding| holding.what == what).unwrap();
    assert!(held(&state) > budget / 2, "{holdings:?}");
    let log = of(History::Log);
    assert_eq!((log.kept, log.forgotten), (100, 0), "it holds less than its part");
    let reconciles = of(History::Reconciles);
    assert_eq!(reconciles.kept as u64 + reconciles.forgotten, 400);
    assert!(reconciles.forgotten > 0 && of(History::Versions).forgotten > 0, "{holdings:?}");
    let quiet = ObjectRef::of(&cr("quiet")).unwrap().key();
    assert!(state.history.last(&quiet).is_some(), "the newest of each object goes last");
    let ring = state.history.of(&ObjectRef::of(&cr("a")).unwrap().key()).unwrap();
    assert_eq!(ring.len() + 1, state.history.all().len());
    // One that grows alone may have what the others leave, and forgets its own.
    (0..5_000).for_each(|i| state.reduce(line(i)));
    assert!(held(&state) <= budget);
    assert!(state.holdings()[3].forgotten > 0);
}

#[cfg(test)]
mod background;
mod metadata;

#[cfg(test)]
mod waiting;
