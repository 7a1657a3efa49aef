//! Golden frames of what there is to see of one object and of one reconcile, at all sizes.

use super::fixture::{at, busy, events, object, of, reconcile, reference, seen, seen_at, sources, started};
use super::frames::{check, screen, text};
use super::history::past;
use crate::act::change_view;
use crate::view::ViewState;
use opdev_event::{
    Body, EffectiveValue, Event, ObjectSeen, Outcome, PodLine, PodLog, Started, ValueFrom, ValuesExplained,
    ViewRequest,
};
use opdev_panes::detail::{TABS, pods};
use opdev_panes::pane::{Pane, Tab};
use opdev_state::State;
use serde_json::json;
use std::sync::Arc;

const SIZES: [(u16, u16); 4] = [(80, 24), (120, 36), (200, 60), (40, 10)];

fn at_all_sizes(name: &str, keys: &str) {
    let state = past();
    for (width, height) in SIZES {
        check(&format!("{name}-{width}x{height}"), &state, keys, (width, height));
    }
}

/// A view with another tab open.
fn on_tab(tab: Tab) -> ViewState {
    let mut view = ViewState::default();
    view.detail.open(tab);
    view
}

#[test]
fn a_reconcile_opens_in_place() {
    at_all_sizes("waterfall", "j 3 enter");
    at_all_sizes("waterfall-zoomed", "j 3 enter z j j j");
    at_all_sizes("objects-created", "j 3 j j j ] 4 z");
    check("waterfall-failed-80x24", &past(), "3 enter", (80, 24));
}

#[test]
fn tabs_of_an_object() {
    at_all_sizes("describe", "j d");
    at_all_sizes("describe-leaving", "j j d");
    at_all_sizes("conditions", "j C");
    at_all_sizes("history", "j V");
    at_all_sizes("history-older", "j V < < z");
    at_all_sizes("owners", "j b");
    check("managed-fields-120x36", &past(), "j y B", (120, 36));
}

#[test]
fn the_log_by_reconcile() {
    at_all_sizes("log-grouped", "j L");
    at_all_sizes("log-folded", "j L F 3 j j");
}

/// The past on a cluster that runs its pods, two of them with something to say.
fn with_logs() -> State {
    let mut state = past();
    if let Some(started) = state.started.clone() {
        let mut elsewhere = Started::clone(&started);
        (elsewhere.cluster.embedded, elsewhere.cluster.name) = (false, "kind-dev".to_owned());
        state.started = Some(Arc::new(elsewhere));
    }
    let mut view = on_tab(Tab::PODS);
    screen(&state, &mut view, "j", (120, 36));
    let sources = pods::sources(&view.page(&state, 0));
    let line = |time: &str, text: &str| PodLine { at: at(time), text: text.to_owned() };
    for (source, lines, ended) in [
        (&sources[0], vec![line("17:02:01", "listening on 11211"), line("17:02:10", "42 connections")], None),
        (&sources[1], vec![line("17:02:05", "odd\u{1b}[31m")], Some("the container has ended".to_owned())),
    ] {
        let (at, source) = (at("17:02:12"), source.clone());
        state.reduce(Event::PodLog(PodLog { at, source, fresh: true, lines, ended }));
    }
    state
}

#[test]
fn logs_of_pods() {
    for (width, height) in SIZES {
        check(&format!("pods-{width}x{height}"), &with_logs(), "j O", (width, height));
    }
    check("pods-one-80x24", &with_logs(), "j O x", (80, 24));
    check("pods-simulated-80x24", &past(), "j O", (80, 24));
}

#[test]
fn logs_are_followed_while_they_are_in_sight() {
    let state = with_logs();
    let mut view = ViewState::default();
    let followed = |keys: &str, size: (u16, u16), view: &mut ViewState| {
        screen(&state, view, keys, size);
        change_view::follow(view, &state).map(|request| match request {
            ViewRequest::PodLogs { sources } => sources.len(),
            other => panic!("{other:?}"),
        })
    };
    assert_eq!(followed("j", (120, 36), &mut view), None);
    assert_eq!(followed("O", (120, 36), &mut view), Some(2));
    assert_eq!(followed("3 j", (120, 36), &mut view), None, "still in sight");
    assert_eq!(followed("x", (120, 36), &mut view), Some(1));
    assert_eq!(followed("x x", (120, 36), &mut view), Some(2), "the other one, and all of them");
    assert_eq!(followed("", (80, 24), &mut view), Some(0), "another pane has the screen");
    assert_eq!(followed("4", (80, 24), &mut view), Some(2));
    assert_eq!(followed("y", (80, 24), &mut view), Some(0), "the tab was left");
    // Pods that are only played have none.
    let played = past();
    let mut view = ViewState::default();
    screen(&played, &mut view, "j O", (120, 36));
    assert_eq!(change_view::follow(&mut view, &played), None);
}

/// A state in which only the metadata of the selected custom resource is known.
fn metadata_only() -> State {
    let mut state = past();
    let name = "memcached-sample";
    let known = state.objects.custom().find(|seen| seen.key.name == name).unwrap();
    let (object_ref, value) = (known.object_ref.clone(), known.object.value());
    let mut metadata = value["metadata"].clone();
    metadata["resourceVersion"] = "99999".into();
    let only = json!({"apiVersion": value["apiVersion"], "kind": value["kind"], "metadata": metadata});
    let (at, object) = (at("17:02:30"), Body::new(&only));
    state.reduce(Event::ObjectSeen(ObjectSeen { at, object_ref, metadata_only: true, object }));
    state
}

#[test]
fn whole_objects_are_asked_for_while_they_are_in_sight() {
    let mut state = metadata_only();
    let mut view = ViewState::default();
    let asked = |keys: &str, size: (u16, u16), state: &State, view: &mut ViewState| {
        screen(state, view, keys, size);
        change_view::look(view, state).map(|request| match request {
            ViewRequest::Look { object } => object.map(|object| object.name),
            other => panic!("{other:?}"),
        })
    };
    let wide = (120, 36);
    let name = Some(Some("memcached-sample".to_owned()));
    assert_eq!(asked("", wide, &state, &mut view), None, "the status diff needs nothing of it");
    while view.subject(&state).unwrap().key.name != "memcached-sample" {
        asked("j", wide, &state, &mut view);
    }
    assert_eq!(asked("y", wide, &state, &mut view), name);
    assert_eq!(asked("", wide, &state, &mut view), None, "asked for already");
    let past = past();
    let whole = past.objects.custom().find(|seen| seen.key.name == "memcached-sample").unwrap();
    state.reduce(seen(whole.object.value().clone()));
    assert_eq!(asked("", wide, &state, &mut view), None, "it is kept current while it is looked at");
    assert_eq!(asked("v", wide, &state, &mut view), Some(None), "the tab was left");
    assert_eq!(asked("y", wide, &state, &mut view), None, "all of it is known");
}

#[test]
fn metadata_says_that_it_is_no_more() {
    let state = metadata_only();
    let mut view = ViewState::default();
    screen(&state, &mut view, "", (120, 36));
    while view.subject(&state).unwrap().key.name != "memcached-sample" {
        screen(&state, &mut view, "j", (120, 36));
    }
    let text = text(&screen(&state, &mut view, "y", (120, 36)));
    assert!(text.contains("Only its metadata was read so far"), "{text}");
}

/// The effective values of an object of the past, one of each giver.
fn explained(name: &str) -> Event {
    let value = |path: &str, value: &str, from: ValueFrom, origin: &str| EffectiveValue {
        path: path.to_owned(),
        value: value.to_owned(),
        from,
        origin: origin.to_owned(),
    };
    let values = vec![
        value("auth.password", "\"••••••\"", ValueFrom::Default, "charts/memcached/values.yaml:9"),
        value("cache.size", "64", ValueFrom::Subchart, "charts/memcached/charts/cache/values.yaml:1"),
        value("cache.zone", "\"a\"", ValueFrom::Global, "charts/memcached/values.yaml:3 (global)"),
        value("image.tag", "\"1.6\"", ValueFrom::Override, "override in watches.yaml"),
        value("replicaCount", "3", ValueFrom::CustomResource, "custom resource"),
        value("odd", "[1,\"\\u001b\"]", ValueFrom::Unknown, "?"),
    ];
    let chart = "charts/memcached".to_owned();
    let object = reference("Memcached", name);
    Event::ValuesExplained(Arc::new(ValuesExplained {
        at: at("17:02:12"),
        object,
        chart,
        values,
        problem: None,
    }))
}

#[test]
fn effective_values_say_who_gives_each() {
    let mut state = past();
    let mut view = ViewState::default();
    screen(&state, &mut view, "j E", (120, 36));
    let name = view.root(&state).unwrap().key.name.clone();
    check("values-asked-80x24", &state, "j E", (80, 24));
    state.reduce(explained(&name));
    for (width, height) in SIZES {
        check(&format!("values-{width}x{height}"), &state, "j E", (width, height));
    }
    check("values-filtered-120x36", &state, "j E 4 / c u s t o m enter", (120, 36));
    let Event::ValuesExplained(told) = explained(&name) else { panic!() };
    let problem = Some("Memcached is reconciled by config/reconcilers/memcached.ts".to_owned());
    let none = ValuesExplained { values: Vec::new(), problem, ..ValuesExplained::clone(&told) };
    state.reduce(Event::ValuesExplained(Arc::new(none)));
    check("values-none-80x24", &state, "j E", (80, 24));
}

#[test]
fn effective_values_are_asked_for_while_they_are_in_sight() {
    let mut state = past();
    let mut view = ViewState::default();
    let asked = |keys: &str, state: &State, view: &mut ViewState| {
        screen(state, view, keys, (120, 36));
        change_view::follow_values(view, state).map(|request| match request {
            ViewRequest::ExplainValues { object } => object.name,
            other => panic!("{other:?}"),
        })
    };
    assert_eq!(asked("j", &state, &mut view), None, "not in sight");
    let first = asked("E", &state, &mut view).unwrap();
    assert_eq!(asked("", &state, &mut view), None, "nothing has changed");
    let second = asked("1 j", &state, &mut view).unwrap();
    assert_ne!(first, second, "another object is selected");
    state.reduce(sources(9, &["charts/memcached/values.yaml"]));
    assert_eq!(asked("", &state, &mut view), Some(second.clone()), "a save may change any value");
    assert_eq!(asked("y", &state, &mut view), None, "the tab was left");
    assert_eq!(asked("E", &state, &mut view), Some(second), "and came back");
}

#[test]
fn deleted_objects_stay_for_a_while() {
    at_all_sizes("deleted", "j X 2 G d");
}

#[test]
fn empty_tabs_say_what_fills_them() {
    let state = of(vec![started(), sources(1, &[])]);
    let mut shown = String::new();
    for tab in TABS.iter().map(|part| part.tab()) {
        let mut view = ViewState { focus: Pane::Detail, zoom: true, ..on_tab(tab) };
        let screen = text(&screen(&state, &mut view, "", (60, 12)));
        let inside: Vec<&str> =
            screen.lines().skip(2).take(3).map(|line| line.trim_matches(['│', ' '])).collect();
        shown.push_str(&format!("{}: {}\n", tab.part().title(), inside.join(" ").trim()));
        assert!(inside.iter().any(|line| line.len() > 20), "{}:\n{screen}", tab.part().title());
    }
    let lines: std::collections::BTreeSet<&str> = shown.lines().collect();
    assert_eq!(lines.len(), TABS.len(), "{shown}");
}

#[test]
fn every_tab_fits_and_is_named_at_every_width() {
    let state = busy();
    for width in [30, 40, 60, 80, 99, 100, 120, 200] {
        for tab in TABS.iter().map(|part| part.tab()) {
            let mut view = ViewState { focus: Pane::Detail, zoom: true, ..on_tab(tab) };
            let screen = text(&screen(&state, &mut view, "j", (width, 20)));
            let named = format!("[{}]", tab.part().title());
            assert!(screen.contains(&named), "{named} at {width}:\n{screen}");
        }
    }
}

#[test]
fn an_open_reconcile_is_walked_line_by_line_and_closed_again() {
    let mut state = past();
    let mut view = ViewState::default();
    let keys = |keys: &str, view: &mut ViewState, state: &State| {
        screen(state, view, keys, (120, 36));
        let (reconcile, line) = view.reconciles.selected_line().unwrap();
        (reconcile.id, line.is_some(), view.reconciles.open.len())
    };
    assert_eq!(keys("j 3", &mut view, &state), (4, false, 0));
    assert_eq!(keys("right", &mut view, &state), (4, false, 1));
    assert_eq!(keys("j j j", &mut view, &state), (4, true, 1));
    // A newer reconcile moves nothing from under the eyes.
    let newer = reconcile(10, "memcached-sample", "17:02:12", vec![], Outcome::Unchanged, 1);
    state.reduce(Event::Reconciled(Arc::new(newer)));
    let before = view.reconciles.selected_line().map(|(_, line)| line);
    assert_eq!(keys("", &mut view, &state), (4, true, 1));
    assert_eq!(view.reconciles.selected_line().map(|(_, line)| line), before);
    assert_eq!(keys("left", &mut view, &state), (4, false, 0), "back at its heading");
    assert_eq!(keys("enter enter", &mut view, &state), (4, false, 0));
    assert_eq!(keys("enter j esc", &mut view, &state), (4, false, 0));
    assert_eq!((view.focus, keys("g g", &mut view, &state).0), (Pane::Reconciles, 10));
}

#[test]
fn versions_are_stepped_through_and_the_newest_is_followed() {
    let mut state = past();
    let mut view = ViewState::default();
    let version = |keys: &str, view: &mut ViewState, state: &State| {
        let shown = text(&screen(state, view, keys, (120, 36)));
        let at = shown.find("version ").map(|at| shown[at..].chars().take(14).collect::<String>());
        at.unwrap_or_default().trim_end_matches(['│', ' ', '─']).to_owned()
    };
    assert_eq!(version("j V", &mut view, &state), "version 6 of 6");
    assert_eq!(version("<", &mut view, &state), "version 5 of 6");
    assert_eq!(version("< < < < <", &mut view, &state), "version 1 of 6");
    assert_eq!(view.told.message.as_deref(), Some("older: no older version is kept"));
    assert_eq!(version("> > > > >", &mut view, &state), "version 6 of 6");
    let mut next =
        state.objects.get(&reference("Memcached", "memcached-sample").key()).unwrap().object.as_ref().clone();
    next["spec"]["replicaCount"] = serde_json::json!(4);
    state.reduce(seen_at("17:02:13", next.clone()));
    assert_eq!(version("", &mut view, &state), "version 7 of 7");
    // A view of an older version keeps it.
    version("<", &mut view, &state);
    next["spec"]["replicaCount"] = serde_json::json!(5);
    state.reduce(seen_at("17:02:13", next));
    assert_eq!(version("", &mut view, &state), "version 6 of 8");
}

#[test]
fn what_is_deleted_cannot_be_acted_on() {
    let state = past();
    let mut view = ViewState::default();
    screen(&state, &mut view, "j X 2 G", (120, 36));
    for (key, what) in [("D", "delete"), ("s", "scale"), ("r", "reconcile")] {
        screen(&state, &mut view, key, (120, 36));
        assert!(view.layers.is_empty());
        let message = view.told.message.clone().unwrap_or_default();
        assert!(message.starts_with(what) && message.contains("is deleted"), "{message}");
    }
}

/// More than a screen can use is not looked for; that it is cut is said where the objects stand, and where
/// they would go.
#[test]
fn a_tree_without_end_says_where_it_stops() {
    let mut state = of(events());
    let names = (0..5_010).map(|i| format!("job-{i}"));
    let owner = Some(("Memcached", "memcached-sample"));
    let objects = names.map(|name| object("ConfigMap", &name, owner, "17:00:00", &json!({})));
    objects.for_each(|object| state.reduce(seen(object)));
    let shown = text(&screen(&state, &mut ViewState::default(), "j", (120, 36)));
    assert!(shown.contains("the first 5000"), "{shown}");
    let asked = text(&screen(&state, &mut ViewState::default(), "j D", (120, 36)));
    assert!(asked.contains("and more that were not counted"), "{asked}");
}
