//! Finding keys: palette, jump, filters, order, namespaces, search; and that rows that follow the state one
//! by one are those that would be made anew.

use super::acting::commands;
use super::fixture::{busy, events, logged, now, object, of, reference, seen, sources, started};
use super::frames::{check, screen, text};
use crate::dialog::Samples;
use crate::find::choice::Picker;
use crate::keys::registry::ACTIONS;
use crate::view::ViewState;
use crate::{Command, Input, update};
use expect_test::expect;
use opdev_event::{
    Asker, Destination, Event, KindHealth, Level, ObjectGone, ObjectTask, OnExit, PrinterColumn, Request,
    SessionRequest, SourcesChanged, SourcesTask,
};
use opdev_panes::keys::chord::Key;
use opdev_panes::lists::candidates::What;
use opdev_panes::lists::table::Table;
use opdev_panes::pane::Pane;
use opdev_state::State;
use serde_json::json;
use std::sync::Arc;

const SIZE: (u16, u16) = (120, 36);

/// Types a text after some keys.
fn type_in(view: &mut ViewState, state: &State, keys: &str, typed: &str) -> Vec<Command> {
    commands(view, state, keys);
    typed.chars().flat_map(|c| update(view, Input::Key(Key::char(c)), state)).collect()
}

fn names(view: &ViewState) -> Vec<&str> {
    view.resources.rows.iter().map(|seen| seen.key.name.as_str()).collect()
}

#[test]
fn every_action_but_the_palette_itself_is_in_the_palette() {
    let state = busy();
    let picker = Picker::open(What::Palette, &mut ViewState::default(), &state);
    for action in ACTIONS.iter().filter(|action| action.id != "palette") {
        for name in action.aliases.iter().chain([&action.id]) {
            let mut view = ViewState::default();
            type_in(&mut view, &state, ":", name);
            let Some(open) = view.top::<Picker>() else { panic!("no palette") };
            let shown = open.of.shown(open.best[0]);
            assert!(shown.starts_with(action.title), ":{name} finds {shown} before {}", action.title);
            assert!(picker.of.count() > ACTIONS.len());
        }
    }
}

#[test]
fn the_palette_does_what_keys_do_and_says_why_not() {
    let state = busy();
    let mut view = ViewState::default();
    type_in(&mut view, &state, ":", "reload");
    assert_eq!(
        commands(&mut view, &state, "enter"),
        [Command::Request(1, Request::from(SourcesTask::Reload))]
    );
    type_in(&mut view, &state, ":", "q");
    assert_eq!(
        commands(&mut view, &state, "enter"),
        [Command::Request(2, Request::from(SessionRequest::Quit { by: Asker::User }))]
    );
    let mut view = ViewState::default();
    type_in(&mut view, &state, ":", "held");
    assert!(text(&screen(&state, &mut view, "", SIZE)).contains("not now: no change needs your answer"));
    assert_eq!(commands(&mut view, &state, "enter"), []);
    assert_eq!(view.told.message.as_deref(), Some("held: no change needs your answer"));
    type_in(&mut view, &state, ":", "theme light");
    commands(&mut view, &state, "enter");
    assert_eq!(Some(view.look.theme), opdev_panes::theme::Theme::named("light"));
    // A theme shows while it is selected, and goes with esc.
    type_in(&mut view, &state, ":", "theme dark");
    assert_eq!(Some(view.look.theme), opdev_panes::theme::Theme::named("dark"));
    commands(&mut view, &state, "esc");
    assert_eq!(Some(view.look.theme), opdev_panes::theme::Theme::named("light"));
    type_in(&mut view, &state, ":", "ctx prod");
    let to = Destination::Context { name: "production".to_owned() };
    let switch = Request::from(SessionRequest::Switch { to, how: OnExit::Leave });
    assert_eq!(commands(&mut view, &state, "enter"), [Command::Request(1, switch)]);
    view.layers.clear();
    type_in(&mut view, &state, ":", "ctx embedded");
    assert_eq!(commands(&mut view, &state, "enter"), []);
    let message = view.told.message.as_deref();
    assert_eq!(message, Some("opdev runs on the embedded control plane already"));
    type_in(&mut view, &state, ":", "zzzz");
    assert!(text(&screen(&state, &mut view, "", SIZE)).contains("Nothing matches."));
    commands(&mut view, &state, "enter esc");
    assert!(view.layers.is_empty());
}

#[test]
fn the_palette_takes_arguments_and_brings_back_what_was_typed() {
    let state = busy();
    let mut view = ViewState::default();
    commands(&mut view, &state, "j");
    type_in(&mut view, &state, ":", "scale 5");
    let scale =
        Request::from(ObjectTask::Scale { object: reference("Memcached", "memcached-sample"), replicas: 5 });
    assert_eq!(commands(&mut view, &state, "enter"), [Command::Request(1, scale)]);
    type_in(&mut view, &state, ":", "scale many");
    assert_eq!(commands(&mut view, &state, "enter"), []);
    assert_eq!(view.told.message.as_deref(), Some("scale: many is no number of replicas"));
    type_in(&mut view, &state, ":", "ns elsewhere");
    commands(&mut view, &state, "enter");
    assert_eq!((view.namespace.as_deref(), view.layers.len()), (Some("elsewhere"), 0));
    type_in(&mut view, &state, ":", "events");
    commands(&mut view, &state, "enter");
    assert_eq!(view.detail.tab, opdev_panes::pane::Tab::EVENTS);
    let typed = |view: &ViewState| match view.top::<Picker>() {
        Some(picker) => picker.typed.clone(),
        _ => String::new(),
    };
    for (keys, shown) in
        [(": up", "events"), ("up", "ns elsewhere"), ("up up up", "scale 5"), ("down", "scale many")]
    {
        commands(&mut view, &state, keys);
        assert_eq!(typed(&view), shown, "{keys}");
    }
}

#[test]
fn a_broken_file_opens_at_its_line() {
    let mut state = busy();
    let mut view = ViewState::default();
    let place = |line, column| {
        let path = "/home/ada/memcached-operator/charts/memcached/templates/deployment.yaml".into();
        [Command::OpenFile { path, line, column }]
    };
    assert_eq!(commands(&mut view, &state, "3 ctrl-o"), place(14, 20), "of the selected failure");
    assert_eq!(commands(&mut view, &state, "1 j ctrl-o"), []);
    assert!(view.told.message.as_deref().is_some_and(|why| why.starts_with("open file: no file is broken")));
    state.reduce(super::fixture::broken());
    assert_eq!(commands(&mut view, &state, "ctrl-o"), place(14, 20));
}

#[test]
fn what_belongs_to_no_custom_resource_is_found_by_name() {
    let mut state = busy();
    let mut view = ViewState::default();
    // A list that was searched before is made anew.
    let found = |view: &ViewState| match view.top::<Picker>() {
        Some(p) => p.best.first().map(|at| p.of.shown(*at).to_owned()),
        _ => None,
    };
    type_in(&mut view, &state, "ctrl-p", "pod elsewhere/lonely-2");
    assert_eq!(found(&view), None);
    commands(&mut view, &state, "esc");
    let objects = ["lonely-1", "lonely-2"].map(|name| opdev_event::UnrelatedObject {
        namespace: Some("elsewhere".to_owned()),
        name: name.to_owned(),
        uid: None,
        changed_by: None,
    });
    state.reduce(Event::UnrelatedSeen(opdev_event::UnrelatedSeen {
        at: now(),
        gvk: reference("Pod", "x").gvk,
        objects: objects.to_vec(),
    }));
    type_in(&mut view, &state, "ctrl-p", "pod elsewhere/lonely-2");
    assert_eq!(found(&view).as_deref(), Some("Pod elsewhere/lonely-2"));
    commands(&mut view, &state, "enter");
    let message = view.told.message.as_deref().unwrap_or_default();
    assert_eq!(
        message,
        "Pod lonely-2 belongs to no custom resource of the project; this is the table of its kind"
    );
}

#[test]
fn one_jumps_to_objects_kinds_files_and_reconciles() {
    let state = busy();
    let mut view = ViewState::default();
    type_in(&mut view, &state, "ctrl-p", "pod 7dqdr");
    commands(&mut view, &state, "enter");
    let pod = view.subject(&state).unwrap().key.clone();
    assert!(pod.kind == "Pod" && pod.name.ends_with("7dqdr"), "{pod}");
    assert_eq!((view.focus, view.root(&state).unwrap().key.name.as_str()), (Pane::Owned, "memcached-sample"));
    // It goes on where it was left, and typing starts anew.
    commands(&mut view, &state, "ctrl-p");
    assert!(view.top::<Picker>().is_some_and(|p| p.typed == "pod 7dqdr" && p.resumed));
    type_in(&mut view, &state, "", "nightly");
    assert!(view.top::<Picker>().is_some_and(|p| p.typed == "nightly"));
    commands(&mut view, &state, "enter");
    assert_eq!((view.focus, view.root(&state).unwrap().key.name.as_str()), (Pane::Resources, "nightly"));
    // The filter that hides the object is cleared.
    type_in(&mut view, &state, "1 /", "nightly");
    commands(&mut view, &state, "enter");
    type_in(&mut view, &state, "g j", "memcached big");
    commands(&mut view, &state, "enter");
    assert_eq!((view.filter(Pane::Resources), view.root(&state).unwrap().key.name.as_str()), ("", "big"));
    // A file is applied, a kind is filtered, a child kind is searched in.
    type_in(&mut view, &state, "ctrl-p", "file backup.yaml");
    commands(&mut view, &state, "enter");
    assert!(view.top::<Samples>().is_some_and(|samples| samples.typed.ends_with("backup.yaml")));
    // Any file of the project opens in the editor, also where it comes once the list is open.
    type_in(&mut view, &state, "esc ctrl-p", "templates deploy");
    let mut state = state;
    let files = ["charts/memcached/templates/deployment.yaml".to_owned(), "main.go".to_owned()];
    state.reduce(Event::FilesListed { files: files.into() });
    let shown = text(&screen(&state, &mut view, "", (120, 36)));
    assert!(shown.contains("file charts/memcached/templates/deployment.yaml"), "{shown}");
    let opened = commands(&mut view, &state, "enter");
    let path =
        std::path::PathBuf::from("/home/ada/memcached-operator/charts/memcached/templates/deployment.yaml");
    assert_eq!(opened, [Command::OpenFile { path, line: 0, column: 0 }]);
    type_in(&mut view, &state, "esc :", "memcachedbackups");
    commands(&mut view, &state, "enter");
    assert_eq!(names(&view), ["nightly"]);
    type_in(&mut view, &state, "esc :", "pods");
    commands(&mut view, &state, "enter");
    assert_eq!(view.browse.as_ref().unwrap().word, "pod");
    commands(&mut view, &state, "esc");
    type_in(&mut view, &state, "esc ctrl-p", "#4");
    commands(&mut view, &state, "enter");
    assert_eq!((view.focus, view.reconcile().unwrap().id), (Pane::Reconciles, 4));
}

#[test]
fn filters_know_words_expressions_labels_kinds_and_namespaces() {
    let labelled = |name: &str, app: &str| {
        seen(object("Memcached", name, None, "17:00:00", &json!({"metadata": {"labels": {"app": app}}})))
    };
    let state = of(vec![
        started(),
        sources(1, &[]),
        labelled("one", "a"),
        labelled("two", "b"),
        labelled("three", "a"),
    ]);
    for (typed, shown) in [
        ("tw", "two"),
        ("/^memcached default.t/", "three two"),
        ("-l app=a", "one three"),
        ("l:app!=a", "two"),
        ("!two k:memcached n:default", "one three"),
        ("n:other", ""),
    ] {
        let mut view = ViewState::default();
        type_in(&mut view, &state, "/", typed);
        assert_eq!(names(&view).join(" "), shown, "{typed}");
    }
    let mut view = ViewState::default();
    type_in(&mut view, &state, "/", "/(/");
    assert!(text(&screen(&state, &mut view, "", SIZE)).contains("is no regular expression"));
    assert_eq!(names(&view).len(), 3);
}

#[test]
fn faults_namespaces_and_orders_narrow_and_turn_the_list() {
    let mut state = busy();
    let mut view = ViewState::default();
    commands(&mut view, &state, "g e");
    assert_eq!(names(&view), ["big", "nightly"]);
    commands(&mut view, &state, "g e S");
    assert_eq!(names(&view), ["big", "memcached-sample", "nightly"], "by name");
    commands(&mut view, &state, "I");
    assert_eq!(names(&view), ["nightly", "memcached-sample", "big"]);
    assert!(text(&screen(&state, &mut view, "", SIZE)).contains("NAME↓"));
    commands(&mut view, &state, "S S");
    assert_eq!(names(&view)[0], "big", "by readiness: what lacks most comes first");
    state.reduce(seen(object(
        "Memcached",
        "far",
        None,
        "17:00:00",
        &json!({"metadata": {"namespace": "other"}}),
    )));
    type_in(&mut view, &state, "g n", "other");
    commands(&mut view, &state, "enter");
    assert_eq!((names(&view), view.namespace.as_deref()), (vec!["far"], Some("other")));
    type_in(&mut view, &state, ":", "ns all");
    commands(&mut view, &state, "enter");
    assert_eq!(names(&view).len(), 4);
}

#[test]
fn wide_shows_what_the_crd_asks_for() {
    let mut events = events();
    let Event::SourcesChanged(changed) = &events[1] else { panic!("no sources") };
    let mut kinds = changed.kinds.clone();
    kinds[0].columns = vec![
        PrinterColumn { name: "Size".to_owned(), path: ".spec.replicaCount".to_owned(), date: false },
        PrinterColumn {
            name: "Phase".to_owned(),
            path: ".status.conditions[0].type".to_owned(),
            date: false,
        },
    ];
    kinds[0].health = KindHealth::Serving;
    let changed = SourcesChanged::clone(changed);
    events.push(Event::SourcesChanged(Arc::new(SourcesChanged { kinds, ..changed })));
    let state = of(events);
    check("wide-120x36", &state, "j W z", SIZE);
    check("wide-80x24", &state, "j W", (80, 24));
    let mut view = ViewState::default();
    assert_eq!(commands(&mut view, &busy(), "W"), []);
    expect!["wide: no CRD asks for columns (additionalPrinterColumns)"]
        .assert_eq(view.told.message.as_ref().unwrap());
}

#[test]
fn the_log_is_searched_held_and_thinned_out() {
    let line = |i: usize, level: Level| logged(level, &format!("line {i}"), None);
    let mut state = busy();
    for i in 0..100 {
        state.reduce(line(i, if i % 10 == 0 { Level::Error } else { Level::Info }));
    }
    let mut view = ViewState::default();
    commands(&mut view, &state, "o L");
    type_in(&mut view, &state, "\\", "/line .5 /");
    commands(&mut view, &state, "enter");
    let shown = text(&screen(&state, &mut view, "", SIZE));
    assert!(shown.contains("/line .5 /: 8 of 9"), "{shown}");
    assert!(text(&screen(&state, &mut view, "N", SIZE)).contains("7 of 9"));
    assert!(text(&screen(&state, &mut view, "n n n", SIZE)).contains("1 of 9"), "round and round");
    // It stands still, and counts what is new.
    state.reduce(line(100, Level::Info));
    state.reduce(line(101, Level::Info));
    let shown = text(&screen(&state, &mut view, "", SIZE));
    assert!(shown.contains("held, 2 new lines") && !shown.contains("line 101"), "{shown}");
    commands(&mut view, &state, "esc ctrl-s");
    assert!(text(&screen(&state, &mut view, "", SIZE)).contains("line 101"));
    for _ in 0..4 {
        commands(&mut view, &state, "-");
    }
    let shown = text(&screen(&state, &mut view, "", SIZE));
    assert!(
        shown.contains("line 90") && !shown.contains("line 91") && shown.contains("error and worse"),
        "{shown}"
    );
    commands(&mut view, &state, "-");
    assert_eq!(view.told.message.as_deref(), Some("less log: only errors are shown"));
}

#[test]
fn help_is_searched() {
    let mut view = ViewState::default();
    type_in(&mut view, &busy(), "? /", "replicas");
    let shown = text(&screen(&busy(), &mut view, "", SIZE));
    assert!(shown.contains("Set the replicas") && !shown.contains("Apply a sample"), "{shown}");
    commands(&mut view, &busy(), "esc");
    assert!(text(&screen(&busy(), &mut view, "", SIZE)).contains("Apply a sample"));
    commands(&mut view, &busy(), "esc");
    assert!(view.layers.is_empty());
}

#[test]
fn what_may_follow_a_key_is_shown() {
    let (state, mut view) = (busy(), ViewState::default());
    commands(&mut view, &state, "g");
    assert!(view.screen.wake.is_none_or(|wake| wake.as_millis() > 0));
    let area = ratatui::layout::Rect::new(0, 0, SIZE.0, SIZE.1);
    let paint = |view: &mut ViewState, at| {
        let mut buffer = ratatui::buffer::Buffer::empty(area);
        crate::draw::paint(&state, view, &mut buffer, area, at);
        text(&buffer)
    };
    assert!(!paint(&mut view, now()).contains("esc leaves"), "not at once");
    let later = now() + std::time::Duration::from_millis(250);
    let shown = paint(&mut view, later);
    assert!(shown.contains("g … · esc leaves") && shown.contains("n namespace"), "{shown}");
    commands(&mut view, &busy(), "y");
    assert_eq!(view.told.message.as_deref(), Some("g y does nothing; ? shows all keys"));
    // A slow terminal sends escape and the next key together, as it sends alt and that key.
    commands(&mut view, &busy(), "/ x alt-2");
    assert_eq!((view.focus, view.layers.len()), (Pane::Owned, 0), "{:?}", view.told.message);
    commands(&mut view, &busy(), "alt-m");
    assert_eq!(view.layers.len(), 0, "alt-m has a meaning of its own");
    commands(&mut view, &busy(), "g esc");
    assert_eq!((view.told.message.as_deref(), view.keys.typed.len()), (None, 0));
}

#[test]
fn the_frames_of_finding() {
    let state = busy();
    for (name, keys) in
        [("palette", ": s c"), ("jump", "ctrl-p m e m"), ("sorted", "S I"), ("help-search", "? / l o g")]
    {
        for (width, height) in [(120, 36), (80, 24), (40, 10)] {
            check(&format!("{name}-{width}x{height}"), &state, keys, (width, height));
        }
    }
}

/// Rows that follow the state are the rows of a table made anew, whatever happens in whatever order.
#[test]
fn rows_that_follow_are_rows_made_anew() {
    let cr = |n: u64| {
        let namespace = if n.is_multiple_of(3) { "other" } else { "default" };
        let status = json!({"conditions": [{"type": "Ready", "status": if n.is_multiple_of(2) { "True" } else { "False" },
            "reason": format!("R{}", n % 4)}]});
        object(
            "Memcached",
            &if n.is_multiple_of(3) { format!("o-{}", n % 40) } else { format!("cr-{}", n % 40) },
            None,
            &format!("17:{:02}:00", n % 60),
            &json!({"metadata": {"namespace": namespace}, "status": status}),
        )
    };
    let pod = |n: u64| {
        let waiting = if n.is_multiple_of(5) { "CrashLoopBackOff" } else { "ContainerCreating" };
        object(
            "Pod",
            &format!("pod-{}", n % 25),
            Some(("Memcached", &format!("cr-{}", n % 7))),
            "17:00:00",
            &json!({"spec": {"containers": [{"name": "c"}]}, "status": {"phase": "Pending", "containerStatuses":
                [{"name": "c", "ready": n.is_multiple_of(2), "state": {"waiting": {"reason": waiting, "message": "m"}}}]}}),
        )
    };
    for (setting, keys) in
        ["", "S", "S I", "S S", "S S S", "S S S S I", "g e", "g e S S", "I"].iter().enumerate()
    {
        let mut state = of(vec![started(), sources(1, &[])]);
        let mut view = ViewState::default();
        commands(&mut view, &state, keys);
        if setting % 2 == 1 {
            *view.part_mut(Pane::Resources).filter_mut() = "!cr-1 /cr-[0-9]/".to_owned();
        }
        let mut dice = setting as u64 + 7;
        for step in 0..300_u64 {
            dice = dice.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let roll = dice >> 40;
            match roll % 5 {
                0 | 1 => state.reduce(seen(cr(roll / 5))),
                2 => state.reduce(seen(pod(roll / 5))),
                3 => state.reduce(Event::ObjectGone(ObjectGone {
                    at: now(),
                    object_ref: reference("Pod", &format!("pod-{}", roll / 5 % 25)),
                })),
                _ => state.reduce(Event::ObjectGone(ObjectGone {
                    at: now(),
                    object_ref: reference("Memcached", &format!("cr-{}", roll / 5 % 40)),
                })),
            }
            if step % 3 == 0 {
                view.refresh(&state);
                let (mut anew, wanted) =
                    (Vec::new(), view.resources.wanted(view.namespace.as_ref(), view.gone));
                Table::default().refresh(&mut anew, &state, &wanted);
                let keys = |rows: &[Arc<opdev_state::Seen>]| {
                    rows.iter().map(|s| s.key.to_string()).collect::<Vec<_>>()
                };
                assert_eq!(keys(&view.resources.rows), keys(&anew), "after {step} steps with {wanted:?}");
            }
        }
    }
}

/// A cache that is a moment behind is ordinary: a fresh project is not told that something is wrong with it.
#[test]
fn what_is_noted_in_one_reconcile_is_no_warning() {
    use opdev_event::{FindingKind, Outcome, ProgramTrace, ReadFinding, TraceLevel};
    let mut noted =
        super::fixture::reconcile(1, "memcached-sample", "17:00:00", vec![], Outcome::Unchanged, 10);
    let note = ReadFinding {
        kind: FindingKind::StaleRead,
        message: "the cache was behind".to_owned(),
        hint: "wait for it".to_owned(),
        object: noted.object.clone(),
        reconcile: None,
    };
    noted.process = Some(Box::new(ProgramTrace {
        controller: "memcached".to_owned(),
        reconcile_id: "a".to_owned(),
        traced: TraceLevel::Full,
        reads: Vec::new(),
        own_writes: Vec::new(),
        guessed_calls: Vec::new(),
        disturbed_calls: Vec::new(),
        late_calls: 0,
        told_again: false,
        findings: vec![note],
        evidence: opdev_event::evidence::Handover::default(),
    }));
    let made = object("Memcached", "memcached-sample", None, "17:00:00", &json!({}));
    let state = of(vec![started(), sources(1, &[]), seen(made), Event::Reconciled(Arc::new(noted))]);
    let said = text(&screen(&state, &mut ViewState::default(), "", SIZE));
    assert!(said.contains("i the cache was behind") && !said.contains('⚠'), "{said}");
}
