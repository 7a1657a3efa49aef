//! A busy state for tests, made of events only: three custom resources, their trees, reconciles of every
//! kind.

use jiff::Timestamp;
use opdev_event::{
    Action, Body, Call, Cause, CauseKind, Cluster, Diagnostic, Event, Failure, FieldChange, Finding, Held,
    HeldChange, Hurt, KindHealth, KindStatus, Level, LogLine, ObjectChange, ObjectGone, ObjectSeen, Outcome,
    Permission, Place, QueueChanged, Reconcile, ReconcileStarted, Relation, Released, ReloadFailed,
    ReloadSettled, RequestFinished, RequestOutcome, Requeue, RequeueReason, Sample, Severity, SourcesChanged,
    Started, Step, TrustAsked, TypeChanged, Verdict, WatchEvent, Weight,
};
use opdev_object::diff::diff;
use opdev_object::meta::{Gvk, ObjectRef};
use opdev_state::State;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;

/// The time at which tests look.
pub(crate) fn now() -> Timestamp {
    at("17:02:13")
}

/// A time of the day of the tests.
pub(crate) fn at(time: &str) -> Timestamp {
    format!("2026-03-01T{time}Z").parse().unwrap()
}

pub(crate) fn gvk(kind: &str) -> Gvk {
    match kind {
        "Deployment" | "ReplicaSet" | "StatefulSet" => Gvk::new("apps", "v1", kind),
        "Pod" | "Service" | "Secret" | "ConfigMap" => Gvk::new("", "v1", kind),
        kind => Gvk::new("cache.my.domain", "v1alpha1", kind),
    }
}

/// A reference, the uid made of kind and name.
pub(crate) fn reference(kind: &str, name: &str) -> ObjectRef {
    ObjectRef {
        gvk: gvk(kind),
        namespace: Some("default".to_owned()),
        name: name.to_owned(),
        uid: Some(format!("{kind}-{name}").to_lowercase()),
    }
}

/// An object with owner and rest.
pub(crate) fn object(
    kind: &str,
    name: &str,
    owner: Option<(&str, &str)>,
    created: &str,
    rest: &Value,
) -> Value {
    let this = reference(kind, name);
    let mut object = json!({"apiVersion": this.gvk.api_version(), "kind": kind, "metadata": {
        "name": name, "namespace": "default", "uid": this.uid, "generation": 1,
        "creationTimestamp": format!("2026-03-01T{created}Z")}});
    if let Some((kind, name)) = owner {
        let owner = reference(kind, name);
        object["metadata"]["ownerReferences"] = json!([{"apiVersion": owner.gvk.api_version(), "kind": kind,
            "name": name, "uid": owner.uid, "controller": true, "blockOwnerDeletion": true}]);
    }
    for (key, value) in rest.as_object().into_iter().flatten() {
        match (object.get_mut(key), value) {
            (Some(Value::Object(known)), Value::Object(more)) => known.extend(more.clone()),
            _ => object[key] = value.clone(),
        }
    }
    object
}

/// An object event.
pub(crate) fn seen(object: Value) -> Event {
    seen_at("17:02:11", object)
}

/// An object event at a time.
#[allow(clippy::needless_pass_by_value)] // objects are written where they are used
pub(crate) fn seen_at(time: &str, object: Value) -> Event {
    let at = at(time);
    Event::ObjectSeen(ObjectSeen {
        at,
        object_ref: ObjectRef::of(&object).unwrap(),
        metadata_only: false,
        object: Body::new(&object),
    })
}

/// An object is gone.
pub(crate) fn gone(time: &str, kind: &str, name: &str) -> Event {
    Event::ObjectGone(ObjectGone { at: at(time), object_ref: reference(kind, name) })
}

/// opdev on the embedded control plane.
pub(crate) fn started() -> Event {
    Event::Started(Arc::new(Started {
        at: at("17:00:00"),
        project: "memcached-operator".to_owned(),
        root: "/home/ada/memcached-operator".to_owned(),
        cluster: Cluster {
            name: "embedded".to_owned(),
            embedded: true,
            version: "v1.36.0".to_owned(),
            server: "https://127.0.0.1:40123".to_owned(),
            ..Cluster::default()
        },
        namespace: "default".to_owned(),
        all_namespaces: false,
        identity: None,
        contexts: vec!["kind-dev".to_owned(), "production".to_owned()],
        kubeconfig: Some(".opdev/kubeconfig".to_owned()),
        environment: vec![("KUBECONFIG".to_owned(), "/p/.opdev/kubeconfig".to_owned())],
        log_file: Some(".opdev/log/opdev.log".to_owned()),
        on_exit: None,
        api_ready: Duration::from_millis(31),
    }))
}

/// A set of sources.
pub(crate) fn sources(number: u64, files: &[&str]) -> Event {
    let kind = |kind: &str, source: &str| KindStatus {
        gvk: gvk(kind),
        plural: format!("{}s", kind.to_lowercase()),
        source: source.to_owned(),
        scale: String::new(),
        columns: Vec::new(),
        health: KindHealth::Serving,
    };
    let sample =
        |path: &str, kind: &str, name: &str| Sample { path: path.to_owned(), object: reference(kind, name) };
    Event::SourcesChanged(Arc::new(SourcesChanged {
        at: at("17:02:11"),
        sources: number,
        files: files.iter().map(|file| (*file).to_owned()).collect(),
        removed: false,
        kinds: vec![kind("Memcached", "charts/memcached"), kind("MemcachedBackup", "charts/backup")],
        diagnostics: Vec::new(),
        samples: vec![
            sample("samples/cache_v1alpha1_memcached.yaml", "Memcached", "memcached-sample"),
            sample("samples/cache_v1alpha1_memcachedbackup.yaml", "MemcachedBackup", "nightly"),
        ],
        affected: vec![gvk("Memcached")],
    }))
}

pub(crate) fn workload(
    out: &mut Vec<Event>,
    kind: &str,
    name: &str,
    owner: (&str, &str),
    (ready, wanted): (i64, i64),
) {
    let status = json!({"observedGeneration": 1, "replicas": wanted, "updatedReplicas": wanted, "readyReplicas": ready});
    out.push(seen(object(
        kind,
        name,
        Some(owner),
        "17:01:55",
        &json!({"spec": {"replicas": wanted}, "status": status}),
    )));
}

pub(crate) fn pod(name: &str, owner: (&str, &str), waiting: Option<(&str, &str)>) -> Event {
    let state = match waiting {
        None => json!({"running": {}}),
        Some((reason, message)) => json!({"waiting": {"reason": reason, "message": message}}),
    };
    let phase = if waiting.is_none() { "Running" } else { "Pending" };
    seen(object(
        "Pod",
        name,
        Some(owner),
        "17:01:55",
        &json!({"spec": {"containers": [{"name": "memcached"}]}, "status": {"phase": phase,
            "containerStatuses": [{"name": "memcached", "ready": waiting.is_none(), "state": state}]}}),
    ))
}

pub(crate) fn cause(time: &str, kind: CauseKind) -> Cause {
    Cause { at: at(time), kind }
}

pub(crate) fn watch(
    object: ObjectRef,
    event: WatchEvent,
    fields: &[(&str, &str, &str)],
    by: &str,
) -> CauseKind {
    let relation = if object.gvk.kind.starts_with("Memcached") { Relation::Primary } else { Relation::Owner };
    let fields = fields.iter().map(|(path, old, new)| FieldChange {
        path: (*path).to_owned(),
        old: Some((*old).to_owned()),
        new: Some((*new).to_owned()),
    });
    let own_write = by == "helm" || by == "manager";
    CauseKind::Watch { object, event, fields: fields.collect(), by: Some(by.to_owned()), own_write, relation }
}

/// A reconcile that changed nothing, to fill in.
pub(crate) fn reconcile(
    id: u64,
    name: &str,
    time: &str,
    causes: Vec<Cause>,
    outcome: Outcome,
    took: u64,
) -> Reconcile {
    Reconcile {
        id,
        object: reference("Memcached", name),
        causes,
        sources: 7,
        at: at(time),
        queued: Duration::from_micros(300),
        took: Duration::from_millis(took),
        steps: Vec::new(),
        calls: Vec::new(),
        outcome,
        status: Vec::new(),
        objects: Vec::new(),
        requeue: Some(Requeue { after: Duration::from_secs(60), reason: RequeueReason::Period }),
        waiting: None,
        releases: Vec::new(),
        failure: None,
        process: None,
    }
}

pub(crate) fn call(
    verb: &str,
    target: &str,
    start: u64,
    took: u64,
    status: u16,
    reason: Option<&str>,
) -> Call {
    Call {
        verb: verb.to_owned(),
        path: format!("/api/{target}"),
        target: target.to_owned(),
        start: Duration::from_micros(start),
        took: Duration::from_micros(took),
        status,
        reason: reason.map(str::to_owned),
        place: None,
    }
}

fn status(deployed: bool, image: &str) -> Value {
    let manifest = format!("---\nkind: Deployment\nspec:\n  image: {image}\n  replicas: 3\n");
    let mut condition = json!({"type": "Deployed", "status": if deployed { "True" } else { "False" }});
    if deployed {
        condition["reason"] = json!("UpgradeSuccessful");
    }
    json!({"status": {"conditions": [{"type": "Initialized", "status": "True"}, condition],
        "deployedRelease": {"name": "memcached-sample", "manifest": manifest}}})
}

fn reconciles() -> Vec<Reconcile> {
    let cr = || reference("Memcached", "memcached-sample");
    let created = cause("17:00:02", watch(cr(), WatchEvent::Added, &[], "opdev"));
    let mut installed = reconcile(1, "memcached-sample", "17:00:02", vec![created], Outcome::Installed, 21);
    for (kind, name) in [("Deployment", "memcached-sample"), ("Service", "memcached-sample")] {
        let object = reference(kind, name);
        installed.objects.push(ObjectChange {
            object,
            action: Action::Created,
            changes: vec![],
            taken_from: vec![],
        });
    }
    let scaled = watch(cr(), WatchEvent::Modified, &[(".spec.replicaCount", "1", "3")], "kubectl");
    let echo = watch(
        reference("Deployment", "memcached-sample"),
        WatchEvent::Modified,
        &[(".status.replicas", "1", "3")],
        "helm",
    );
    let upgraded = reconcile(
        2,
        "memcached-sample",
        "17:01:40",
        vec![cause("17:01:40", scaled), cause("17:01:40", echo)],
        Outcome::Upgraded,
        14,
    );
    let drift = watch(
        reference("Deployment", "memcached-sample"),
        WatchEvent::Modified,
        &[(".spec.replicas", "5", "3")],
        "kubectl",
    );
    let mut repaired =
        reconcile(3, "memcached-sample", "17:01:58", vec![cause("17:01:58", drift)], Outcome::Repaired, 6);
    repaired.objects.push(ObjectChange {
        object: reference("Deployment", "memcached-sample"),
        action: Action::Updated,
        changes: diff(&json!({"spec": {"replicas": 5}}), &json!({"spec": {"replicas": 3}})),
        taken_from: vec!["kubectl".to_owned()],
    });
    let files = vec!["charts/memcached/templates/deployment.yaml".to_owned()];
    let edit = cause("17:02:11", CauseKind::Reload { sources: 7, files });
    let mut edited = reconcile(4, "memcached-sample", "17:02:11", vec![edit], Outcome::Upgraded, 12);
    edited.status = diff(&status(false, "memcached:1.6.21"), &status(true, "memcached:1.6.22"));
    edited.objects.clone_from(&repaired.objects);
    edited.steps = ["render", "plan", "apply", "status"]
        .iter()
        .enumerate()
        .map(|(i, name)| Step {
            name: (*name).to_owned(),
            start: Duration::from_millis(i as u64 * 3),
            took: Duration::from_millis(3),
        })
        .collect();
    edited.calls = vec![
        call("get", "secrets/sh.helm.release.v1.memcached-sample.v3", 120, 900, 200, None),
        call("patch", "deployments/memcached-sample", 3_400, 2_100, 200, None),
        call("get", "ingresses/memcached-sample", 6_000, 400, 404, Some("NotFound")),
        call("update", "memcacheds/memcached-sample/status", 9_000, 1_900, 409, Some("Conflict")),
    ];
    vec![installed, upgraded, repaired, edited, failed()]
}

fn failed() -> Reconcile {
    let retry = CauseKind::Retry { attempt: 2, error: "render chart: nil pointer".to_owned() };
    let mut failed = reconcile(5, "big", "17:02:12", vec![cause("17:02:12", retry)], Outcome::Failed, 2);
    failed.failure = Some(Failure {
        chain: vec![
            "cannot install release big".to_owned(),
            "template: memcached/templates/deployment.yaml:14:20: executing \"memcached/templates/deployment.yaml\" at <.Values.image.tag>: nil pointer evaluating interface {}.tag".to_owned(),
        ],
        diagnostic: Some(problem()),
        attempt: 3,
    });
    failed.requeue = Some(Requeue { after: Duration::from_secs(4), reason: RequeueReason::Retry });
    failed
}

fn problem() -> Diagnostic {
    Diagnostic {
        severity: Severity::Error,
        message: "nil pointer evaluating interface {}.tag".to_owned(),
        place: Some(Place { file: "charts/memcached/templates/deployment.yaml".to_owned(), line: 14, column: 20 }),
        excerpt: Some("13 |       - name: memcached\n14 |         image: {{ .Values.image.tag }}\n   |                    ^".to_owned()),
        hint: Some("give image a tag in values.yaml".to_owned()),
        kind: Some(gvk("Memcached")),
    }
}

/// A broken edit.
pub(crate) fn broken() -> Event {
    Event::ReloadFailed(ReloadFailed {
        at: at("17:02:12"),
        files: vec!["charts/memcached/templates/deployment.yaml".to_owned()],
        diagnostics: vec![problem()],
        build: false,
        program: String::new(),
    })
}

const TYPES: &str = "config/types/v1alpha1/memcached_types.go";

fn finding(weight: Weight, field: &str, message: &str, line: u32) -> Finding {
    let place = Some(Place { file: TYPES.to_owned(), line, column: 2 });
    Finding { weight, field: field.to_owned(), message: message.to_owned(), place }
}

/// An enum value was removed that an object uses, and a field was renamed.
pub(crate) fn held_type() -> Event {
    let hurt = |field: &str, message: &str| Hurt {
        object: reference("Memcached", "memcached-sample"),
        field: field.to_owned(),
        message: message.to_owned(),
    };
    Event::Held(Arc::new(Held {
        at: at("17:02:12"),
        id: "memcacheds.cache.my.domain@8".to_owned(),
        change: HeldChange::Type,
        kind: gvk("Memcached"),
        files: vec![TYPES.to_owned()],
        why: "stored data would be lost, and 1 object would not be valid any more".to_owned(),
        findings: vec![
            finding(Weight::Loss, ".spec.size", "renamed to .spec.count: stored values are lost", 31),
            finding(Weight::Break, ".spec.tier", "the value \"gold\" is not allowed any more", 34),
        ],
        objects: vec![
            hurt(".spec.size", "3 is lost"),
            hurt(".spec.tier", "Unsupported value: \"gold\": supported values: \"bronze\", \"silver\""),
        ],
        more: 2,
    }))
}

/// The project wants to run a program and to read a variable; one host was allowed before. A name tries to
/// look harmless.
pub(crate) fn trust_asked() -> Event {
    let run = Permission::RunProgram { program: "./scripts/\u{202e}hs.tset".to_owned() };
    let read = Permission::ReadVariable {
        variable: "REGISTRY_TOKEN".to_owned(),
        kind: "Memcached.cache.my.domain".to_owned(),
        key: "image.token".to_owned(),
    };
    let reach = Permission::ReachHost { host: "api.example.com".to_owned() };
    Event::TrustAsked(Arc::new(TrustAsked {
        at: at("17:02:12"),
        root: "/home/me/memcached-operator".to_owned(),
        wanted: vec![run.clone(), reach, read.clone()],
        unanswered: vec![run, read],
    }))
}

/// A held change waits no longer.
pub(crate) fn released() -> Event {
    let id = "memcacheds.cache.my.domain@8".to_owned();
    Event::Released(Released { at: at("17:02:13"), id, verdict: Verdict::Undone })
}

/// A type was saved and is live.
pub(crate) fn type_changed() -> Vec<Event> {
    let changed = TypeChanged {
        at: at("17:02:12"),
        sources: 8,
        name: "memcacheds.cache.my.domain".to_owned(),
        kind: gvk("Memcached"),
        created: false,
        files: vec![TYPES.to_owned()],
        findings: vec![
            finding(Weight::Warn, ".spec.tier", "the default changes from \"silver\" to \"bronze\"", 34),
            finding(Weight::Info, ".spec.note", "a new optional field", 36),
        ],
        objects: vec![],
        took: Duration::from_millis(41),
    };
    vec![Event::TypeChanged(Arc::new(changed)), sources(8, &[TYPES])]
}

/// How a request ended.
pub(crate) fn finished(id: u64, what: &str, outcome: RequestOutcome) -> Event {
    Event::RequestFinished(RequestFinished {
        id,
        at: at("17:02:12"),
        what: what.to_owned(),
        outcome,
        took: Duration::from_millis(9),
    })
}

/// A log line.
pub(crate) fn logged(level: Level, message: &str, reconcile: Option<u64>) -> Event {
    Event::Log(LogLine {
        at: at("17:02:11"),
        level,
        target: "opdev::operator".to_owned(),
        message: message.to_owned(),
        reconcile,
    })
}

/// The events that make the busy state.
pub(crate) fn events() -> Vec<Event> {
    let mut all = vec![started(), sources(7, &["charts/memcached/templates/deployment.yaml"])];
    let deployed = json!({"spec": {"replicaCount": 3}, "status": {"conditions": [
        {"type": "Initialized", "status": "True"},
        {"type": "Deployed", "status": "True", "reason": "UpgradeSuccessful"}]},
        "metadata": {"finalizers": ["helm.sdk.operatorframework.io/uninstall-release"]}});
    let failing = json!({"spec": {"replicaCount": 3}, "status": {"conditions": [
        {"type": "ReleaseFailed", "status": "True", "reason": "InstallError", "message": "nil pointer"}]}});
    all.push(seen(object("Memcached", "memcached-sample", None, "17:00:02", &deployed)));
    all.push(seen(object("Memcached", "big", None, "17:02:09", &failing)));
    all.push(seen(object("MemcachedBackup", "nightly", None, "17:00:08", &deployed)));
    let cr = ("Memcached", "memcached-sample");
    workload(&mut all, "Deployment", "memcached-sample", cr, (3, 3));
    workload(
        &mut all,
        "ReplicaSet",
        "memcached-sample-6fd7c98d8",
        ("Deployment", "memcached-sample"),
        (3, 3),
    );
    for name in ["7dqdr", "g5k7v", "m7vn7"] {
        let name = format!("memcached-sample-6fd7c98d8-{name}");
        all.push(pod(&name, ("ReplicaSet", "memcached-sample-6fd7c98d8"), None));
    }
    all.push(seen(object(
        "Service",
        "memcached-sample",
        Some(cr),
        "17:00:02",
        &json!({"spec": {"type": "ClusterIP"}}),
    )));
    for revision in 1..=3 {
        let labels = json!({"version": revision.to_string(), "status": if revision == 3 { "deployed" } else { "superseded" }});
        let name = format!("sh.helm.release.v1.memcached-sample.v{revision}");
        let rest =
            json!({"type": "helm.sh/release.v1", "metadata": {"labels": labels}, "data": {"release": "x"}});
        all.push(seen(object("Secret", &name, Some(cr), "17:01:40", &rest)));
    }
    let nightly = ("MemcachedBackup", "nightly");
    workload(&mut all, "StatefulSet", "nightly", nightly, (1, 2));
    all.push(pod("nightly-0", ("StatefulSet", "nightly"), None));
    let why = ("ImagePullBackOff", "Back-off pulling image \"backup:nope\"");
    all.push(pod("nightly-1", ("StatefulSet", "nightly"), Some(why)));
    all.push(seen(object(
        "Event",
        "e1",
        None,
        "17:02:00",
        &json!({"apiVersion": "v1", "type": "Warning", "reason": "Failed",
        "message": "Failed to pull image", "count": 3, "lastTimestamp": "2026-03-01T17:02:05Z",
        "involvedObject": {"kind": "Memcached", "namespace": "default", "name": "big"}}),
    )));
    all.extend(reconciles().into_iter().map(|reconcile| Event::Reconciled(Arc::new(reconcile))));
    all.push(settled(7, 38));
    all.push(Event::ReconcileStarted(ReconcileStarted {
        id: 6,
        at: at("17:02:13"),
        object: reference("MemcachedBackup", "nightly"),
        causes: vec![cause("17:02:13", CauseKind::Period)],
    }));
    all.push(Event::QueueChanged(QueueChanged { waiting: 0, running: 1, backing_off: 1 }));
    all.push(logged(Level::Info, "release upgraded revision=3", Some(4)));
    all.push(logged(Level::Error, "reconcile failed\u{1b}[31m error=\"nil pointer\"", Some(5)));
    all.push(logged(Level::Warn, "the API server is slow", None));
    all
}

/// A reload that reached the cluster.
pub(crate) fn settled(sources: u64, ms: u64) -> Event {
    Event::ReloadSettled(ReloadSettled {
        at: at("17:02:11"),
        sources,
        files: vec!["charts/memcached/templates/deployment.yaml".to_owned()],
        objects: 1,
        failed: 0,
        took: Duration::from_millis(ms),
    })
}

/// The busy state.
pub(crate) fn busy() -> State {
    of(events())
}

/// The state after some events.
pub(crate) fn of(events: Vec<Event>) -> State {
    let mut state = State::default();
    for event in events {
        state.reduce(event);
    }
    state
}

/// A view with another theme than that of the terminal.
pub(crate) fn in_theme(theme: opdev_panes::theme::Theme) -> crate::ViewState {
    crate::ViewState {
        look: crate::settings::appearance::Look { theme, ..crate::settings::appearance::Look::default() },
        ..crate::ViewState::default()
    }
}
