//! The table of a kind: opened by the palette, shown at every size, filtered, sorted, paged, acted in, left.

use super::acting::commands;
use super::fixture::{at, busy, object, reference, seen};
use super::frames::{check_view, screen, text};
use crate::view::ViewState;
use crate::{Command, Input, Mouse, kind_table, update};
use expect_test::expect;
use opdev_event::{
    Body, DraftTask, Event, KindHealth, KindTable, ObjectSeen, ObjectTask, Request, Sample, ServedKind,
    TableColumn, TableQuery, TableRow, Task, ViewRequest,
};
use opdev_object::meta::{Gvk, ObjectRef};
use opdev_panes::keys::chord::Key;
use opdev_panes::pane::{Pane, Tab};
use opdev_state::State;
use serde_json::{Value, json};
use std::sync::Arc;

fn served(group: &str, kind: &str, plural: &str, short: &str, namespaced: bool) -> ServedKind {
    ServedKind {
        gvk: Gvk::new(group, "v1", kind),
        plural: plural.to_owned(),
        singular: kind.to_lowercase(),
        short_names: vec![short.to_owned()],
        namespaced,
        watched: true,
    }
}

fn kinds() -> Vec<ServedKind> {
    vec![
        served("", "Event", "events", "ev", true),
        served("", "Node", "nodes", "no", false),
        served("", "Pod", "pods", "po", true),
        served("apps", "Deployment", "deployments", "deploy", true),
        served("cache.my.domain", "Memcached", "memcacheds", "mc", true),
    ]
}

fn row(namespace: &str, name: &str, status: &str, restarts: u32, created: &str) -> Arc<TableRow> {
    let object_ref = ObjectRef {
        gvk: Gvk::new("", "v1", "Pod"),
        namespace: Some(namespace.to_owned()),
        name: name.to_owned(),
        uid: Some(format!("pod-{name}")),
    };
    let cells = ["1/1", status, &restarts.to_string(), "1s", "10.0.0.7"];
    Arc::new(TableRow {
        object_ref,
        created: Some(at(created)),
        deleting: None,
        labels: json!({"app": name.split('-').next()}),
        finalizers: Vec::new(),
        cells: [name].into_iter().chain(cells).map(str::to_owned).collect(),
    })
}

fn column(name: &str, wide: bool) -> TableColumn {
    TableColumn { name: name.to_owned(), wide, number: false }
}

fn pods(word: &str, rows: Vec<Arc<TableRow>>) -> KindTable {
    KindTable {
        query: TableQuery { kind: word.to_owned(), namespace: None },
        at: at("17:02:12"),
        kind: Some(kinds().swap_remove(2)),
        namespace: None,
        columns: vec![
            column("Name", false),
            column("Ready", false),
            column("Status", false),
            column("Restarts", false),
            column("Age", false),
            column("IP", true),
        ],
        rows,
        missing: 0,
        complete: true,
        problem: None,
        note: None,
    }
}

fn some() -> Vec<Arc<TableRow>> {
    vec![
        row("default", "memcached-sample-7d5c9-x2x4z", "Running", 0, "17:00:00"),
        row(
            "kube-system",
            "coredns-76f75df574-8xvhk-with-a-name-that-is-longer-than-most",
            "Running",
            12,
            "12:00:00",
        ),
        row("kube-system", "etcd-0", "CrashLoopBackOff", 3, "13:00:00"),
        row("web", "shop-1", "Pending", 0, "17:02:10"),
    ]
}

fn with(table: KindTable) -> State {
    let mut state = busy();
    state.reduce(Event::KindsServed { kinds: kinds() });
    state.reduce(Event::TableChanged { table: Some(Arc::new(table)) });
    state
}

/// Types into the palette, and chooses.
fn choose(view: &mut ViewState, state: &State, typed: &str) {
    commands(view, state, ":");
    typed.chars().for_each(|c| drop(update(view, Input::Key(Key::char(c)), state)));
    commands(view, state, "enter");
}

fn names(view: &ViewState, state: &State) -> Vec<String> {
    let table = state.table.as_ref().unwrap();
    let open = view.browse.as_ref().unwrap();
    (0..open.shown.len()).map(|at| open.row_at(table, at).unwrap().object_ref.name.clone()).collect()
}

#[test]
fn a_table_at_every_size() {
    let mut state = with(pods("pods", some()));
    let whole = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "memcached-sample-7d5c9-x2x4z",
        "namespace": "default"}, "spec": {"nodeName": "opdev"}, "status": {"phase": "Running"}});
    let object_ref = ObjectRef::of(&whole).unwrap();
    state.reduce(Event::RowRead(ObjectSeen {
        at: at("17:02:12"),
        object_ref,
        metadata_only: false,
        object: Body::new(&whole),
    }));
    for (width, height) in [(80, 24), (120, 36), (160, 45)] {
        let mut view = ViewState::default();
        choose(&mut view, &state, "pods");
        check_view(&format!("table-{width}x{height}"), &state, &mut view, "", (width, height));
    }
    let mut view = ViewState::default();
    choose(&mut view, &state, "pods");
    check_view("table-row-80x24", &state, &mut view, "enter", (80, 24));
}

#[test]
fn a_kind_has_many_names_and_what_has_none_is_asked_for() {
    let state = with(pods("pods", some()));
    let opened = |typed: &str| {
        let mut view = ViewState::default();
        choose(&mut view, &state, typed);
        let filter = view.filter(Pane::Resources).to_owned();
        (view.browse.map(|open| open.word), filter)
    };
    let table = |word: &str, filter: &str| (Some(word.to_owned()), filter.to_owned());
    for typed in ["pods", "po", "pod", "Pod"] {
        assert_eq!(opened(typed), table("pods", ""), "{typed}");
    }
    assert_eq!(opened("deploy"), table("deployments.apps", ""));
    assert_eq!(opened("deployment.apps"), table("deployment.apps", ""));
    assert_eq!(opened("po -l app=shop"), table("po", "-l app=shop"));
    assert_eq!(opened("pods default"), table("pods", "n:default"));
    assert_eq!(opened("zebrafishes"), table("zebrafishes", ""), "the API server may know it");
    assert_eq!(opened("memcacheds"), (None, "k:Memcached".to_owned()), "the lists show these");
    assert_eq!(opened("memcacheds.cache.my.domain"), table("memcacheds.cache.my.domain", ""));
    assert_eq!(opened("events"), (None, String::new()), "an action keeps its name");
}

#[test]
fn what_is_needed_is_asked_for_once() {
    let state = with(pods("pods", some()));
    let mut view = ViewState::default();
    screen(&state, &mut view, ":", (120, 36));
    assert_eq!(kind_table::follow(&mut view, &state), [ViewRequest::ListKinds]);
    assert_eq!(kind_table::follow(&mut view, &state), []);
    screen(&state, &mut view, "esc ctrl-p", (120, 36));
    assert_eq!(kind_table::follow(&mut view, &state), [ViewRequest::ListFiles]);
    screen(&state, &mut view, "esc", (120, 36));
    assert_eq!(kind_table::follow(&mut view, &state), []);
    choose(&mut view, &state, "pods");
    screen(&state, &mut view, "", (120, 36));
    let query = TableQuery { kind: "pods".to_owned(), namespace: None };
    let first = some()[0].object_ref.clone();
    assert_eq!(
        kind_table::follow(&mut view, &state),
        [ViewRequest::ShowTable { table: Some(query) }, ViewRequest::ReadRow { object: Some(first) }]
    );
    assert_eq!(kind_table::follow(&mut view, &state), []);
    screen(&state, &mut view, "j", (120, 36));
    let second = some()[1].object_ref.clone();
    assert_eq!(kind_table::follow(&mut view, &state), [ViewRequest::ReadRow { object: Some(second) }]);
    // Another namespace is another table.
    view.namespace = Some("web".to_owned());
    screen(&state, &mut view, "", (120, 36));
    let query = TableQuery { kind: "pods".to_owned(), namespace: Some("web".to_owned()) };
    assert_eq!(kind_table::follow(&mut view, &state), [ViewRequest::ShowTable { table: Some(query) }]);
    assert!(text(&screen(&state, &mut view, "", (120, 36))).contains("Asking the API server for pods."));
    screen(&state, &mut view, "esc", (120, 36));
    assert_eq!(kind_table::follow(&mut view, &state), [ViewRequest::ShowTable { table: None }]);
}

#[test]
fn rows_are_filtered_and_sorted() {
    let state = with(pods("pods", some()));
    let mut view = ViewState::default();
    let filtered = |view: &mut ViewState, filter: &str| {
        filter.clone_into(view.part_mut(Pane::Resources).filter_mut());
        view.refresh(&state);
        names(view, &state).len()
    };
    choose(&mut view, &state, "pods");
    for (filter, rows) in [
        ("", 4),
        ("running", 2),
        ("!running", 2),
        ("n:kube-system", 2),
        ("ns:web", 1),
        ("-l app=shop", 1),
        ("l:app=etcd", 1),
        ("k:pod", 4),
        ("k:node", 0),
        ("/^pod kube.*backoff/", 1),
    ] {
        assert_eq!(filtered(&mut view, filter), rows, "{filter}");
    }
    filtered(&mut view, "");
    // By the fourth column, as a number; then the largest first.
    commands(&mut view, &state, "S S S S");
    assert_eq!(names(&view, &state).last().unwrap().split('-').next(), Some("coredns"));
    commands(&mut view, &state, "I");
    assert!(names(&view, &state)[0].starts_with("coredns"));
    // The youngest first.
    commands(&mut view, &state, "S");
    assert_eq!(names(&view, &state)[0], "shop-1");
    // A click on a heading sorts, too.
    let shown = text(&screen(&state, &mut view, "", (120, 36)));
    let line = shown.lines().position(|line| line.contains("NAMESPACE")).unwrap();
    let x = shown.lines().nth(line).unwrap().find("NAME  ").unwrap_or(17) as u16;
    update(&mut view, Input::Mouse(Mouse::Click(x, line as u16)), &state);
    assert_eq!(view.browse.as_ref().unwrap().sort.as_ref().unwrap().column, "Name");
    assert!(names(&view, &state)[0].starts_with("coredns"));
}

#[test]
fn keys_act_on_the_row_and_esc_leaves() {
    let state = with(pods("pods", some()));
    let mut view = ViewState::default();
    view.resources.filter = "k:Memcached".to_owned();
    choose(&mut view, &state, "pods");
    commands(&mut view, &state, "j j");
    assert_eq!(view.subject(&state).unwrap().key.name, "etcd-0");
    let Some(Command::Request(_, Request::Task(Task::Draft(DraftTask::Edit { object })))) =
        commands(&mut view, &state, "e").pop()
    else {
        panic!("no edit")
    };
    assert_eq!(object.to_string(), "Pod kube-system/etcd-0");
    let asked = commands(&mut view, &state, "D y");
    assert!(
        matches!(asked.as_slice(), [Command::Request(_, Request::Task(Task::Object(ObjectTask::Delete { object, .. })))]
            if object.name == "etcd-0" && object.uid.as_deref() == Some("pod-etcd-0")),
        "{asked:?}"
    );
    // Marked rows, too.
    let asked = commands(&mut view, &state, "g g space space D y");
    assert!(
        matches!(asked.as_slice(), [Command::Request(_, Request::Task(Task::Each { tasks }))] if tasks.len() == 2)
    );
    commands(&mut view, &state, "L");
    assert_eq!((view.focus, view.detail.tab), (Pane::Detail, Tab::PODS));
    assert_eq!(commands(&mut view, &state, "esc r"), []);
    assert_eq!(view.told.message.as_deref(), Some("reconcile: no custom resource is selected"));
    commands(&mut view, &state, "g e");
    expect!["faults only: a table of the API server does not say what is a fault; / filters its rows"]
        .assert_eq(view.told.message.as_deref().unwrap());
    commands(&mut view, &state, "tab tab tab 3 shift-tab");
    assert_eq!(view.focus, Pane::Owned, "there are no reconciles beside a table");
    commands(&mut view, &state, "1 esc");
    assert!(view.browse.is_none());
    assert_eq!((view.filter(Pane::Resources), view.detail.tab), ("k:Memcached", Tab::STATUS));
}

#[test]
fn a_table_that_is_being_read_counts_and_one_that_cannot_be_read_says_why() {
    let many = (0..500).map(|i| row("web", &format!("shop-{i}"), "Running", 0, "17:00:00")).collect();
    let state = with(KindTable { missing: 29_500, complete: false, ..pods("pods", many) });
    let mut view = ViewState::default();
    choose(&mut view, &state, "pods");
    assert!(text(&screen(&state, &mut view, "", (120, 36))).contains("500 of 30000, being read"));
    let why = "the kubeconfig's user may not list pods: pods is forbidden";
    let state = with(KindTable { problem: Some(why.to_owned()), ..pods("pods", Vec::new()) });
    let shown = text(&screen(&state, &mut view, "", (120, 36)));
    assert!(shown.contains("⚠ the kubeconfig's user may not list pods"), "{shown}");
    assert!(shown.contains("esc goes back to the lists."));
    let note = "only default: other namespaces may not be listed".to_owned();
    let here = Some("default".to_owned());
    let state = with(KindTable { note: Some(note), namespace: here, ..pods("pods", some()) });
    let shown = text(&screen(&state, &mut view, "", (120, 36)));
    assert!(shown.contains("other namespaces may not be listed") && shown.contains("ns default"));
}

#[test]
fn an_object_of_no_custom_resource_is_gone_to_in_its_table() {
    let mut state = with(pods("node", Vec::new()));
    let lone = object("Pod", "lone", None, "17:00:00", &Value::Null);
    state.reduce(seen(lone));
    let mut view = ViewState::default();
    view.go_to(&reference("Pod", "lone").key(), &state);
    let open = view.browse.as_ref().unwrap();
    assert_eq!(open.word, "pod");
    assert_eq!(open.selection.key, Some((Some("default".to_owned()), "lone".to_owned())));
    let mut rows = some();
    rows.push(row("default", "lone", "Running", 0, "17:00:00"));
    state.reduce(Event::TableChanged { table: Some(Arc::new(pods("pod", rows))) });
    view.refresh(&state);
    assert_eq!(view.subject(&state).unwrap().key.name, "lone");
}

#[test]
fn an_object_on_a_later_page_is_selected_once_its_page_is_there() {
    let mut state = busy();
    let lone = object("Pod", "lone", None, "17:00:00", &Value::Null);
    state.reduce(seen(lone));
    let key = reference("Pod", "lone").key();
    let name = |number: usize| format!("a-{number:03}");
    let page = |count: usize| -> Vec<Arc<TableRow>> {
        (0..count).map(|number| row("default", &name(number), "Running", 0, "17:00:00")).collect()
    };
    let show = |state: &mut State, view: &mut ViewState, rows: Vec<Arc<TableRow>>, complete: bool| {
        let table = KindTable { complete, ..pods("pod", rows) };
        state.reduce(Event::TableChanged { table: Some(Arc::new(table)) });
        view.refresh(state);
    };
    let selected = |view: &ViewState, state: &State| view.subject(state).map(|seen| seen.key.name.clone());
    let mut view = ViewState::default();
    view.go_to(&key, &state);
    for count in [100, 200] {
        show(&mut state, &mut view, page(count), false);
        assert_eq!(selected(&view, &state), None, "nothing else is looked at meanwhile");
    }
    let mut rows = page(300);
    rows.push(row("default", "lone", "Running", 0, "17:00:00"));
    show(&mut state, &mut view, rows.clone(), false);
    assert_eq!(selected(&view, &state).as_deref(), Some("lone"));
    show(&mut state, &mut view, rows, true);
    assert_eq!(selected(&view, &state).as_deref(), Some("lone"));
    // A user who moves does not wait for it any more.
    view.go_to(&key, &state);
    show(&mut state, &mut view, page(100), false);
    commands(&mut view, &state, "j");
    assert_eq!(selected(&view, &state), Some(name(1)));
    show(&mut state, &mut view, page(200), false);
    assert_eq!(selected(&view, &state), Some(name(1)));
    // And one that is not in the table gives way to the first row.
    view.go_to(&key, &state);
    show(&mut state, &mut view, page(100), true);
    assert_eq!(selected(&view, &state), Some(name(0)));
}

#[test]
fn another_operator_is_named_where_the_project_reconciles_nothing() {
    let mut state = busy();
    let mut live = opdev_event::SourcesChanged::clone(state.reload.live.as_ref().unwrap());
    for kind in &mut live.kinds {
        kind.health = KindHealth::Shown { why: "it has no chart".to_owned() };
    }
    state.reduce(Event::SourcesChanged(Arc::new(live)));
    let fields = |name: &str, subresource: &str| {
        json!({"manager": name, "operation": "Update", "subresource": subresource,
            "time": "2026-03-01T17:00:00Z", "fieldsType": "FieldsV1", "fieldsV1": {}})
    };
    let says = |state: &State| {
        let mut view = ViewState::default();
        view.resources.selection.key = Some(reference("Memcached", "fresh").key());
        text(&screen(state, &mut view, "", (200, 50))).split_whitespace().collect::<Vec<_>>().join(" ")
    };
    let with = |managed: Value| {
        object("Memcached", "fresh", None, "17:00:00", &json!({"metadata": {"managedFields": managed}}))
    };
    state.reduce(seen(with(json!([fields("kubectl-edit", ""), fields("kubectl-edit", "status")]))));
    assert!(says(&state).contains("Nothing reconciles this kind: it has no chart."), "{}", says(&state));
    state.reduce(seen(with(json!([fields("kubectl-edit", ""), fields("memcached-manager", "status")]))));
    assert!(says(&state).contains("memcached-manager"), "{}", says(&state));
}

#[test]
fn samples_of_one_kind_show_their_versions() {
    let sample = |group: &str, version: &str, kind: &str| Sample {
        path: format!("samples/{version}.yaml"),
        object: ObjectRef {
            gvk: Gvk::new(group, version, kind),
            namespace: None,
            name: "a".to_owned(),
            uid: None,
        },
    };
    let all = [
        sample("a.b", "v1", "Web"),
        sample("a.b", "v2", "Web"),
        sample("a.b", "v1", "Db"),
        sample("c.d", "v1", "Web"),
    ];
    let shown: Vec<String> = all.iter().map(|sample| sample.kind_among(&all)).collect();
    assert_eq!(shown, ["Web v1", "Web v2", "Db", "Web v1"]);
    assert_eq!(all[0].kind_among(&all[..1]), "Web");
    assert_eq!(all[3].kind_among(&[all[0].clone(), all[3].clone()]), "Web c.d/v1");
}
