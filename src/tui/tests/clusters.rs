//! The screen's words about the cluster behind opdev: how far it is protected, whether it answers, who else
//! works on it; and what the keys about it ask for.

use super::acting::{commands, requests};
use super::fixture::{events, now, object, of, reference, seen, sources, started};
use super::frames::{check, screen, text};
use crate::view::ViewState;
use opdev_event::{
    ClusterTask, ConnectionChanged, CopiesChanged, DeployedCopy, Destination, Event, Leaving, Level, Notice,
    OnExit, Protection, ProtectionChanged, Request, RequestFinished, RequestOutcome, SessionRequest, Started,
    Task, Trouble, TroubleKind,
};
use opdev_object::meta::{Gvk, ObjectRef};
use opdev_state::State;
use std::sync::Arc;
use std::time::Duration;

const SIZE: (u16, u16) = (120, 36);
const SMALL: (u16, u16) = (40, 10);

/// The busy state on a context that nobody has confirmed.
fn guarded(more: Vec<Event>) -> State {
    let mut all = events();
    if let Some(Event::Started(started)) = all.first_mut() {
        let mut other = Started::clone(started);
        other.cluster.name = "production".to_owned();
        other.cluster.embedded = false;
        other.cluster.read_only = true;
        other.cluster.protection = Protection::ReadOnly;
        other.cluster.marks =
            "neither its context nor its cluster entry is named as a tool for local clusters does".to_owned();
        *started = Arc::new(other);
    }
    all.extend(more);
    of(all)
}

fn copy(frozen: Option<i64>) -> Event {
    let object = ObjectRef {
        gvk: Gvk::new("apps", "v1", "Deployment"),
        namespace: Some("memcached-operator-system".to_owned()),
        name: "memcached-operator-controller-manager".to_owned(),
        uid: None,
    };
    let replicas = if frozen.is_some() { 0 } else { 1 };
    let why = vec!["the image memcached-operator:v1".to_owned()];
    let copies = vec![DeployedCopy { object, replicas, frozen, why }];
    Event::CopiesChanged(Arc::new(CopiesChanged { at: now(), copies }))
}

#[test]
fn the_frame_shows_how_far_a_cluster_is_protected() {
    check("read-only-120x36", &guarded(Vec::new()), "", SIZE);
    check("read-only-40x10", &guarded(Vec::new()), "", SMALL);
    let confirmed = ProtectionChanged { at: now(), protection: Protection::Confirmed };
    let state = guarded(vec![Event::ProtectionChanged(confirmed)]);
    check("confirmed-120x36", &state, "", SIZE);
    assert_eq!(requests(&state, "U"), [], "it is unlocked");
}

#[test]
fn a_name_unlocks_once_it_is_typed_whole() {
    let state = guarded(Vec::new());
    check("unlock-120x36", &state, "U p r o", SIZE);
    check("unlock-40x10", &state, "U", SMALL);
    assert_eq!(requests(&state, "U p r o d enter"), []);
    assert_eq!(requests(&state, "U p r o d u c t i o n esc"), []);
    let unlock = Request::from(ClusterTask::Unlock { context: "production".to_owned() });
    assert_eq!(requests(&state, "U p r o d u c t i o n enter"), [unlock]);
}

#[test]
fn the_header_says_what_opdev_waits_for() {
    for (kind, said) in [
        (TroubleKind::Unreachable, "✗ cluster lost since 17:02:14, again in 8 s"),
        (TroubleKind::Unauthorized, "credentials refused since 17:02:14"),
        (TroubleKind::Untrusted, "API server not trusted since 17:02:14"),
        (TroubleKind::Slow, "waiting for the API server since 17:02:14"),
        (TroubleKind::Busy, "the API server is busy since 17:02:14"),
    ] {
        let trouble = Trouble {
            kind,
            since: "2026-03-01T17:02:14Z".parse().unwrap(),
            why: "nothing listens there".to_owned(),
            hint: None,
            retry: Some(Duration::from_secs(8)),
        };
        let mut all = events();
        let message = trouble.why.clone();
        let notice = Notice { at: now(), level: Level::Error, message, hint: None, object: None };
        all.push(Event::Noticed(notice));
        all.push(Event::ConnectionChanged(ConnectionChanged { at: now(), trouble: Some(trouble) }));
        let mut view = ViewState::default();
        let shown = text(&screen(&of(all.clone()), &mut view, "", SIZE));
        let first = shown.lines().next().unwrap();
        assert!(first.contains(said), "{first}");
        assert!(shown.contains("nothing listens there"), "{shown}");
        assert!(view.screen.wake.is_some(), "the countdown is drawn anew");
        all.push(Event::ConnectionChanged(ConnectionChanged { at: now(), trouble: None }));
        let shown = text(&screen(&of(all), &mut ViewState::default(), "", SIZE));
        assert!(!shown.contains(said) && !shown.contains("nothing listens there"), "{shown}");
    }
}

#[test]
fn a_copy_is_frozen_after_a_question_and_given_back_after_another() {
    let with = |event: Event| of(events().into_iter().chain([event]).collect());
    let (running, frozen) = (with(copy(None)), with(copy(Some(1))));
    check("freeze-120x36", &running, "Z", SIZE);
    let object = running.copies[0].object.clone();
    assert_eq!(requests(&running, "Z enter"), [], "the focus begins on Cancel");
    assert_eq!(requests(&running, "Z y"), [Request::from(ClusterTask::Freeze { object: object.clone() })]);
    assert_eq!(requests(&frozen, "Z y"), [Request::from(ClusterTask::Unfreeze { object })]);
    assert_eq!(requests(&of(events()), "Z y"), [], "there is no copy");
}

fn production() -> Destination {
    Destination::Context { name: "production".to_owned() }
}

/// The state of another cluster, with one custom resource, after the busy one was left for it.
fn elsewhere() -> State {
    let mut state = of(events());
    let Event::Started(mut there) = started() else { panic!("it begins otherwise") };
    Arc::make_mut(&mut there).cluster.name = "production".to_owned();
    Arc::make_mut(&mut there).cluster.embedded = false;
    state.reduce(Event::Started(there));
    state.reduce(sources(1, &[]));
    state.reduce(seen(object("Memcached", "over-there", None, "17:00:00", &serde_json::json!({}))));
    state
}

#[test]
fn another_cluster_is_chosen_asked_about_and_waited_for() {
    let state = of(events());
    let switch = |how| Request::from(SessionRequest::Switch { to: production(), how });
    assert_eq!(requests(&state, "g c p r o d enter"), [switch(OnExit::Leave)]);
    assert_eq!(requests(&state, "g c e m b e d enter"), [], "opdev is there");
    check("contexts-120x36", &state, "g c", SIZE);
    let mut view = ViewState::default();
    let shown = text(&screen(&state, &mut view, "g c p r o d enter D", SIZE));
    assert!(shown.contains("Going to context production") && shown.contains("stays on embedded"), "{shown}");
    assert_eq!(view.layers.len(), 1, "no other key does anything meanwhile");
    let cancel = crate::Command::Request(2, Request::from(Task::Cancel { id: 1 }));
    assert_eq!(commands(&mut view, &state, "esc"), [cancel]);
    let mut state = state;
    let outcome = RequestOutcome::Failed { message: "nobody answers".to_owned(), hint: None };
    let what = "switch to context production".to_owned();
    let finished = RequestFinished { id: 1, at: now(), what, outcome, took: Duration::ZERO };
    state.reduce(Event::RequestFinished(finished));
    let shown = text(&screen(&state, &mut view, "", SIZE));
    assert!(!shown.contains("Going to") && shown.contains("nobody answers"), "{shown}");
}

#[test]
fn a_cluster_that_lives_on_is_asked_about_before_it_is_left_for_another_one() {
    let mut all = events();
    if let Some(Event::Started(started)) = all.first_mut() {
        let cluster = &mut Arc::make_mut(started).cluster;
        (cluster.name, cluster.embedded) = ("kind-dev".to_owned(), false);
    }
    let mut state = of(all);
    assert_eq!(requests(&state, "g c p r o d enter esc"), []);
    let keys = "g c p r o d enter j";
    check("switch-120x36", &state, keys, SIZE);
    let uninstall = Request::from(SessionRequest::Switch { to: production(), how: OnExit::Uninstall });
    assert_eq!(requests(&state, &format!("{keys} enter")), [uninstall]);
    let embedded = Request::from(SessionRequest::Switch { to: Destination::Embedded, how: OnExit::Leave });
    assert_eq!(requests(&state, "g c e m b e d enter q"), [embedded]);
    let left = vec![reference("Memcached", "memcached-sample")];
    state.reduce(Event::Leaving(Leaving { how: OnExit::Uninstall, total: 3, left, spared: Vec::new() }));
    let shown = text(&screen(&state, &mut ViewState::default(), &format!("{keys} enter"), SIZE));
    assert!(shown.contains("2 of 3 gone") && shown.contains("and goes on"), "{shown}");
}

#[test]
fn nothing_of_the_cluster_that_was_left_is_on_the_screen_of_the_next() {
    let mut view = ViewState::default();
    let before = of(events());
    // Something is selected, filtered, marked, typed and searched for.
    screen(&before, &mut view, "1 j space / s a m p l e enter 4 n n ctrl-p n i g h t l y esc g t", SIZE);
    let after = elsewhere();
    let shown = text(&screen(&after, &mut view, "esc", SIZE));
    assert!(shown.contains("production") && shown.contains("over-there"), "{shown}");
    for old in ["memcached-sample", "nightly", "big", "marked", "/sample"] {
        assert!(!shown.contains(old), "{old} in\n{shown}");
    }
    let found = text(&screen(&after, &mut view, "ctrl-p", SIZE));
    assert!(!found.contains("nightly") && !found.contains("memcached-sample"), "{found}");
    assert_eq!(
        after.history.all().len() + after.undo.len() + after.notices.len() + after.log.lines().len(),
        0
    );
    assert!(after.version > before.version && after.left == 1);
}
