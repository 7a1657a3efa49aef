//! Every event in both forms, and every field of theirs in `docs/events.md`.

use super::{json, plain};
use jiff::Timestamp;
use opdev_event::{
    Action, Body, BuildChanged, BuildState, Call, Cause, CauseKind, Cluster, ConnectionChanged,
    CopiesChanged, DeployedCopy, Diagnostic, Draft, DraftStage, EffectiveValue, Event, Failure, FieldChange,
    Finding, Held, HeldChange, Hurt, KindHealth, KindStatus, Leaving, Level, LogLine, LogSource, Notice,
    ObjectChange, ObjectGone, ObjectSeen, OnExit, Outcome, Paths, PauseScope, Paused, Permission, Place,
    PodLine, PodLog, PrinterColumn, ProcessChanged, ProcessExit, ProcessState, Protection, ProtectionChanged,
    QueueChanged, Reconcile, ReconcileStarted, Relation, Released, ReloadFailed, ReloadSettled,
    RequestFinished, RequestOutcome, RequestStarted, Requeue, RequeueReason, Review, Sample, Severity,
    ShadowDecision, ShadowRun, SourcesChanged, Started, Step, TraceLevel, Trouble, TroubleKind, TrustAnswer,
    TrustAnswered, TrustAsked, TypeChanged, Undoable, UnrelatedSeen, ValueFrom, ValuesExplained, Verdict,
    WatchEvent, Weight,
};
use opdev_event::{FindingEnd, FindingSeverity, LoopField, LoopFound, LoopKind, MissingRule, RuleFinding};
use opdev_object::diff::diff;
use opdev_object::meta::{Gvk, ObjectRef};
use serde_json::{Value, json as value};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

mod background;
mod found;
mod summary;
mod tables;
mod terminal;

use tables::of_tables;
use terminal::of_the_terminal;

fn at() -> Timestamp {
    "2026-03-01T17:02:11.5Z".parse().unwrap()
}

fn object(kind: &str) -> ObjectRef {
    ObjectRef {
        gvk: Gvk::new("cache.my.domain", "v1alpha1", kind),
        namespace: Some("default".to_owned()),
        name: "web".to_owned(),
        uid: Some("u1".to_owned()),
    }
}

fn problem() -> Diagnostic {
    Diagnostic {
        severity: Severity::Error,
        message: "unclosed action".to_owned(),
        place: Some(Place { file: "charts/m/templates/d.yaml".to_owned(), line: 14, column: 9 }),
        excerpt: Some("14 | {{ x".to_owned()),
        hint: Some("close it".to_owned()),
        kind: Some(Gvk::new("g", "v1", "K")),
    }
}

fn causes() -> Vec<Cause> {
    let watch = CauseKind::Watch {
        object: object("Deployment"),
        event: WatchEvent::Modified,
        fields: vec![FieldChange {
            path: ".spec.replicas".to_owned(),
            old: Some("5".to_owned()),
            new: Some("3".to_owned()),
        }],
        by: Some("kubectl".to_owned()),
        own_write: false,
        relation: Relation::Owner,
    };
    let all = vec![
        CauseKind::Start,
        watch,
        CauseKind::Reload { sources: 2, files: vec!["charts/m/values.yaml".to_owned()] },
        CauseKind::Period,
        CauseKind::Retry { attempt: 1, error: "boom".to_owned() },
        CauseKind::Wait { why: "finalizers of others".to_owned() },
        CauseKind::User,
    ];
    all.into_iter().map(|kind| Cause { at: at(), kind }).collect()
}

fn reconcile() -> Reconcile {
    let ms = Duration::from_millis;
    Reconcile {
        id: 3,
        object: object("Memcached"),
        causes: causes(),
        sources: 2,
        at: at(),
        queued: Duration::from_micros(1500),
        took: ms(12),
        steps: vec![Step { name: "render".to_owned(), start: ms(0), took: ms(3) }],
        calls: vec![Call {
            verb: "patch".to_owned(),
            path: "/apis/apps/v1/namespaces/default/deployments/web".to_owned(),
            target: "deployments/web".to_owned(),
            start: ms(4),
            took: ms(2),
            status: 409,
            reason: Some("Conflict".to_owned()),
            place: None,
        }],
        outcome: Outcome::Failed,
        status: diff(&value!({"status": {"n": 1}}), &value!({"status": {"n": 2}})),
        objects: vec![ObjectChange {
            object: object("Deployment"),
            action: Action::Updated,
            changes: diff(&value!({"spec": {"replicas": 5}}), &value!({"spec": {"replicas": 3}})),
            taken_from: vec!["kubectl".to_owned()],
        }],
        requeue: Some(Requeue { after: ms(4000), reason: RequeueReason::Retry }),
        waiting: None,
        releases: Vec::new(),
        failure: Some(Failure {
            chain: vec!["cannot apply".to_owned(), "conflict\nwith b".to_owned()],
            diagnostic: Some(problem()),
            attempt: 2,
        }),
        process: None,
    }
}

fn sources() -> SourcesChanged {
    let kind = |kind: &str, health| KindStatus {
        gvk: Gvk::new("g", "v1", kind),
        plural: "ks".to_owned(),
        source: "charts/m".to_owned(),
        scale: ".spec.size".to_owned(),
        columns: vec![PrinterColumn { name: "Size".to_owned(), path: ".spec.size".to_owned(), date: true }],
        health,
    };
    SourcesChanged {
        at: at(),
        sources: 2,
        files: vec!["charts/m/values.yaml".to_owned()],
        removed: false,
        kinds: vec![
            kind("A", KindHealth::Serving),
            kind("B", KindHealth::Stale { problem: problem() }),
            kind("C", KindHealth::Disabled { problem: problem() }),
            kind("D", KindHealth::Shown { why: "it has no reconciler".to_owned() }),
        ],
        diagnostics: vec![problem()],
        samples: vec![Sample { path: "samples/a.yaml".to_owned(), object: object("A") }],
        affected: vec![Gvk::new("g", "v1", "A")],
    }
}

fn started() -> Started {
    Started {
        at: at(),
        project: "memcached-operator".to_owned(),
        root: "/p".to_owned(),
        cluster: Cluster {
            name: "embedded".to_owned(),
            embedded: true,
            version: "v1.36.0".to_owned(),
            ..Cluster::default()
        },
        namespace: "default".to_owned(),
        all_namespaces: false,
        identity: None,
        contexts: vec!["dev".to_owned()],
        kubeconfig: Some(".opdev/kubeconfig".to_owned()),
        environment: vec![("KUBECONFIG".to_owned(), "/p/.opdev/kubeconfig".to_owned())],
        log_file: Some("log".to_owned()),
        on_exit: Some(OnExit::Release),
        api_ready: Duration::from_millis(31),
    }
}

fn findings() -> Vec<Finding> {
    let one = |weight, message: &str| Finding {
        weight,
        field: ".spec.size".to_owned(),
        message: message.to_owned(),
        place: Some(Place { file: "config/types/v1/set_types.go".to_owned(), line: 12, column: 2 }),
    };
    vec![one(Weight::Loss, "removed"), one(Weight::Info, "description changed")]
}

fn hurt() -> Hurt {
    Hurt { object: object("A"), field: ".spec.size".to_owned(), message: "3 is lost".to_owned() }
}

fn impact() -> Vec<Event> {
    let kind = || Gvk::new("g", "v1", "A");
    let files = || vec!["config/types/v1/set_types.go".to_owned()];
    let changed = TypeChanged {
        at: at(),
        sources: 2,
        name: "as.g".to_owned(),
        kind: kind(),
        created: false,
        files: files(),
        findings: findings(),
        objects: vec![hurt()],
        took: Duration::from_millis(41),
    };
    let held = |change| {
        Event::Held(Arc::new(Held {
            at: at(),
            id: "as.g@2".to_owned(),
            change,
            kind: kind(),
            files: files(),
            why: "an object carries data that would be lost".to_owned(),
            findings: findings(),
            objects: vec![hurt()],
            more: 2,
        }))
    };
    let shadow = |decision| {
        Event::ShadowRun(Arc::new(ShadowRun {
            at: at(),
            kind: kind(),
            files: vec!["config/reconcilers/a.ts".to_owned()],
            objects: vec![super::plan::tests::shadow_object()],
            ran: 3,
            decision,
            took: Duration::from_millis(4),
        }))
    };
    let released = |verdict| Event::Released(Released { at: at(), id: "as.g@2".to_owned(), verdict });
    let answered =
        |answer, permissions| Event::TrustAnswered(Arc::new(TrustAnswered { at: at(), answer, permissions }));
    vec![
        Event::TypeChanged(Arc::new(TypeChanged { created: true, files: vec![], ..changed.clone() })),
        Event::TypeChanged(Arc::new(changed)),
        held(HeldChange::Type),
        held(HeldChange::Reconciler),
        held(HeldChange::Chart),
        Event::HoldChanged { on: true },
        Event::HoldChanged { on: false },
        Event::Disturbed { rules: vec!["503 write every=3".parse().unwrap(), "hold".parse().unwrap()] },
        Event::Disturbed { rules: Vec::new() },
        shadow(ShadowDecision::Switched),
        shadow(ShadowDecision::Held),
        shadow(ShadowDecision::Refused),
        Event::TrustAsked(Arc::new(TrustAsked {
            at: at(),
            root: "/home/me/a".to_owned(),
            wanted: permissions(),
            unanswered: permissions(),
        })),
        answered(TrustAnswer::Once, permissions()),
        answered(TrustAnswer::Trust, permissions()),
        answered(TrustAnswer::Refuse, permissions()),
        answered(TrustAnswer::Trust, Vec::new()),
        released(Verdict::Applied),
        released(Verdict::Discarded),
        released(Verdict::Undone),
    ]
}

/// One of each; one carries what somebody put into a setting to change the terminal.
fn permissions() -> Vec<Permission> {
    let text = str::to_owned;
    vec![
        Permission::RunProgram { program: text("bash\u{1b}[2J\nall is well") },
        Permission::ReachHost { host: text("api.\u{202e}example.com") },
        Permission::ReadVariable { variable: text("TOKEN"), kind: text("A.g"), key: text("token") },
        Permission::ApplyOnStart { file: text("samples/a.yaml") },
    ]
}

fn request_started() -> RequestStarted {
    RequestStarted { id: 1, at: at(), what: "apply a.yaml".to_owned(), lasting: true }
}

/// One event or more of each kind, all fields filled; `variants` breaks the build when one is missing here.
#[allow(clippy::too_many_lines)]
pub(super) fn all() -> Vec<Event> {
    let finished = |outcome| {
        Event::RequestFinished(RequestFinished {
            id: 1,
            at: at(),
            what: "apply a.yaml".to_owned(),
            outcome,
            took: Duration::from_millis(9),
        })
    };
    let log = LogLine {
        at: at(),
        level: Level::Warn,
        target: "opdev".to_owned(),
        message: "a\nb".to_owned(),
        reconcile: Some(3),
    };
    let notice = Notice {
        at: at(),
        level: Level::Warn,
        message: "watch broke".to_owned(),
        hint: Some("it is opened again".to_owned()),
        object: Some(object("Memcached")),
    };
    let files = || vec!["charts/m/values.yaml".to_owned()];
    let mut all = vec![
        Event::Started(Arc::new(started())),
        Event::SourcesChanged(Arc::new(sources())),
        reload_failed(files(), ""),
        Event::ReloadSettled(ReloadSettled {
            at: at(),
            sources: 2,
            files: files(),
            objects: 1,
            failed: 0,
            took: Duration::from_millis(38),
        }),
        Event::ObjectSeen(ObjectSeen {
            at: Timestamp::UNIX_EPOCH,
            object_ref: object("A"),
            metadata_only: false,
            object: Body::new(&value!({})),
        }),
        Event::ObjectGone(ObjectGone { at: Timestamp::UNIX_EPOCH, object_ref: object("A") }),
        Event::ReconcileStarted(ReconcileStarted { id: 3, at: at(), object: object("A"), causes: causes() }),
        Event::Reconciled(Arc::new(reconcile())),
        Event::QueueChanged(QueueChanged { waiting: 1, running: 2, backing_off: 3 }),
        Event::PausesChanged { paused: vec![paused()] },
        background::ended(),
        Event::LoopFound(Arc::new(loop_found())),
        Event::FindingOpened(Arc::new(found::finding(None))),
        Event::FindingCounted(Arc::new(found::finding(None))),
        Event::FindingClosed(Arc::new(found::finding(Some(FindingEnd {
            at: at(),
            how: "fixed by your save of web.go at 14:02".to_owned(),
        })))),
        Event::Log(log),
        Event::LogDropped { lines: 7 },
        Event::PodLog(pod_log()),
        Event::RequestStarted(request_started()),
        finished(RequestOutcome::Done {
            summary: "applied A web".to_owned(),
            warnings: vec!["unknown field \"x\"".to_owned()],
        }),
        finished(RequestOutcome::Failed {
            message: "no such file".to_owned(),
            hint: Some("check the path".to_owned()),
        }),
        finished(RequestOutcome::Cancelled { message: "it may go on".to_owned() }),
        draft(DraftStage::Editing { path: "/tmp/a.yaml".to_owned(), round: 1 }),
        draft(DraftStage::Review(review())),
        draft(DraftStage::Closed),
        Event::UndoChanged { entries: vec![undoable()] },
        Event::Leaving(Leaving {
            how: OnExit::Uninstall,
            total: 3,
            left: vec![object("A")],
            spared: vec![object("B")],
        }),
        Event::ValuesExplained(Arc::new(values_explained())),
        Event::PathsListed(Paths { typed: "sam".to_owned(), found: vec!["samples/".to_owned()] }),
        Event::Noticed(notice),
        Event::RulesMissing { missing: vec![missing_rule()] },
        Event::Stopping { reason: "SIGTERM".to_owned() },
        Event::CopiesChanged(Arc::new(CopiesChanged {
            at: at(),
            copies: vec![DeployedCopy {
                object: object("Deployment"),
                replicas: 0,
                frozen: Some(1),
                why: vec!["the image web-operator:v1".to_owned()],
            }],
        })),
        Event::ProtectionChanged(ProtectionChanged { at: at(), protection: Protection::Confirmed }),
        Event::ConnectionChanged(ConnectionChanged {
            at: at(),
            trouble: Some(Trouble {
                kind: TroubleKind::Unreachable,
                since: at(),
                why: "nothing listens there".to_owned(),
                hint: Some("start it".to_owned()),
                retry: Some(Duration::from_millis(500)),
            }),
        }),
    ];
    let more = [impact(), own_program(), of_tables(), of_the_terminal(), vec![unrelated()]];
    all.extend(more.into_iter().flatten());
    all
}

fn unrelated() -> Event {
    Event::UnrelatedSeen(UnrelatedSeen { at: at(), gvk: object("A").gvk, objects: Vec::new() })
}

fn reload_failed(files: Vec<String>, program: &str) -> Event {
    let (build, program) = (!program.is_empty(), program.to_owned());
    Event::ReloadFailed(ReloadFailed { at: at(), files, diagnostics: vec![problem()], build, program })
}

/// A program of the operator's own: its builds and its states.
fn own_program() -> Vec<Event> {
    let took = Duration::from_millis(3_900);
    let built = |state| {
        let [program, build, file] = ["go ./cmd", "go build ./cmd", "cmd/main.go"].map(str::to_owned);
        Event::BuildChanged(Arc::new(BuildChanged { at: at(), program, build, files: vec![file], state }))
    };
    let exit = || ProcessExit {
        status: "exit code 2".to_owned(),
        ran: Duration::from_millis(1_500),
        message: Some("panic: no luck".to_owned()),
        place: Some(Place { file: "cmd/main.go".to_owned(), line: 7, column: 0 }),
        hint: Some("press R".to_owned()),
    };
    let run = |state| {
        let (program, traced) = ("go ./cmd".to_owned(), Some(TraceLevel::Full));
        Event::ProcessChanged(Arc::new(ProcessChanged {
            at: at(),
            program,
            starts: 2,
            state,
            traced,
            breakpoint: None,
        }))
    };
    let files = vec!["cmd/main.go".to_owned()];
    vec![
        built(BuildState::Building),
        built(BuildState::Built { took }),
        built(BuildState::Broken { took }),
        reload_failed(files.clone(), "go ./cmd"),
        run(ProcessState::Waiting { why: "its first build".to_owned() }),
        run(ProcessState::Running { pid: 17, files, since_save: took }),
        run(ProcessState::Restarting { exit: exit(), after: Duration::from_secs(1) }),
        run(ProcessState::Failed { exit: exit() }),
        run(ProcessState::Ended { exit: exit() }),
    ]
}

fn pod_log() -> PodLog {
    let source = LogSource {
        namespace: "default".to_owned(),
        pod: "web-1".to_owned(),
        uid: None,
        container: "web".to_owned(),
        restarts: 2,
        previous: false,
    };
    let lines = vec![PodLine { at: at(), text: "listening".to_owned() }];
    PodLog { at: at(), source, fresh: true, lines, ended: Some("the container has ended".to_owned()) }
}

fn paused() -> Paused {
    let gvk = object("A").gvk;
    let what = PauseScope::Kind { gvk };
    Paused { what, since: at(), why: Some("it loops".to_owned()), waiting: 1, causes: 4 }
}

fn draft(stage: DraftStage) -> Event {
    Event::DraftChanged(Arc::new(Draft { id: 4, at: at(), about: "edit A default/web".to_owned(), stage }))
}

fn review() -> Review {
    Review {
        changes: reconcile().objects,
        warnings: vec!["unknown field".to_owned()],
        notes: vec!["its status is lost".to_owned()],
        problem: Some("the API server does not answer".to_owned()),
        editable: true,
    }
}

fn undoable() -> Undoable {
    let why_not = Some("it is gone".to_owned());
    Undoable { id: 3, at: at(), what: "delete A default/web".to_owned(), why_not }
}

fn loop_found() -> LoopFound {
    let field = LoopField {
        object: object("Deployment"),
        path: ".spec.replicas".to_owned(),
        ours: Some("3".to_owned()),
        theirs: Some("5".to_owned()),
        writers: vec!["hpa".to_owned()],
    };
    LoopFound {
        at: at(),
        object: object("Memcached"),
        kind: LoopKind::Fight,
        blame: None,
        reconciles: 8,
        within: Duration::from_millis(1500),
        fields: vec![field],
        paused: true,
    }
}

fn missing_rule() -> MissingRule {
    MissingRule {
        at: at(),
        verbs: vec!["list".to_owned()],
        group: "networking.k8s.io".to_owned(),
        resource: "ingresses".to_owned(),
        namespaces: vec!["default".to_owned()],
        message: "ingresses.networking.k8s.io is forbidden".to_owned(),
        allow: vec!["get".to_owned(), "list".to_owned(), "watch".to_owned()],
        role: "ClusterRole manager-role".to_owned(),
        file: "config/rbac/role.yaml".to_owned(),
    }
}

fn values_explained() -> ValuesExplained {
    let value = EffectiveValue {
        path: "image.tag".to_owned(),
        value: "\"1\"".to_owned(),
        from: ValueFrom::Default,
        origin: "charts/web/values.yaml:3".to_owned(),
    };
    let (chart, values) = ("charts/web".to_owned(), vec![value]);
    ValuesExplained { at: at(), object: object("A"), chart, values, problem: None }
}

#[test]
fn json_lines_are_one_line_and_come_back_the_same() {
    for event in all() {
        let line = json(&event);
        assert!(!line.contains('\n'), "{line}");
        let back: Event = serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line}"));
        assert_eq!(json(&back), line);
    }
    let line: Value = serde_json::from_str(&json(&Event::Reconciled(Arc::new(reconcile())))).unwrap();
    assert_eq!((&line["tookMs"], &line["queuedMs"]), (&value!(12), &value!(1.5)));
    assert_eq!(line["objects"][0]["changes"], value!([{"path": ".spec.replicas", "old": 5, "new": 3}]));
    assert!(serde_json::from_value::<Requeue>(value!({"afterMs": -1, "why": "retry"})).is_err());
}

#[test]
fn compact_lines_leave_whole_objects_out() {
    for event in all() {
        let (whole, small) = (json(&event), super::compact(&event));
        let mut whole: Value = serde_json::from_str(&whole).unwrap();
        let small: Value = serde_json::from_str(&small).unwrap();
        if let Event::ObjectSeen(_) | Event::RowRead(_) = event {
            assert!(whole.as_object_mut().unwrap().remove("object").is_some());
        }
        assert_eq!(small, whole);
    }
}

fn keys(value: &Value, out: &mut BTreeSet<String>) {
    match value {
        Value::Object(fields) => {
            for (key, value) in fields {
                out.insert(key.clone());
                // Values of changes have their own shape.
                if !matches!(key.as_str(), "old" | "new") {
                    keys(value, out);
                }
            }
        }
        Value::Array(items) => items.iter().for_each(|item| keys(item, out)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

#[test]
fn the_page_names_every_event_and_field() {
    let page = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/events.md")).unwrap();
    let mut missing = BTreeSet::new();
    for event in all() {
        let line: Value = serde_json::from_str(&json(&event)).unwrap();
        let mut words = BTreeSet::from([line["event"].as_str().unwrap().to_owned()]);
        keys(&line, &mut words);
        missing.extend(words.into_iter().filter(|word| !page.contains(&format!("`{word}`"))));
    }
    assert!(missing.is_empty(), "docs/events.md does not name {missing:?}");
    // And no event that is none.
    let known: BTreeSet<String> = all()
        .iter()
        .map(|event| {
            serde_json::from_str::<Value>(&json(event)).unwrap()["event"].as_str().unwrap().to_owned()
        })
        .collect();
    let lines = page.split("## Lines").nth(1).unwrap().split("## ").next().unwrap();
    let named = lines.lines().filter_map(|line| line.strip_prefix("| `")?.split('`').next());
    for name in named.filter(|name| *name != "event") {
        assert!(known.contains(name), "docs/events.md names {name}, which is no event");
    }
}

#[test]
fn plain_lines() {
    let lines: Vec<String> = all().iter().filter_map(plain).collect();
    let text = lines.join("\n") + "\n";
    assert!(lines.iter().all(|line| !line.contains('\n') && !line.contains('\u{1b}')));
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden/print/plain.txt");
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::create_dir_all(std::path::Path::new(path).parent().unwrap()).unwrap();
        std::fs::write(path, &text).unwrap();
    }
    assert_eq!(text, std::fs::read_to_string(path).unwrap_or_default());
}
