//! What the screen says about the cluster behind opdev: how far it is protected, whether it answers, who else works
//! on it; and what the keys about it ask for.

use super::acting::requests;
use super::fixture::{events, now, of};
use super::frames::{check, screen, text};
use crate::event::{
    ConnectionChanged, CopiesChanged, DeployedCopy, Event, Level, Notice, Protection, ProtectionChanged,
    Request, Started, Trouble, TroubleKind,
};
use crate::state::State;
use crate::tui::view::ViewState;
use opdev_object::meta::{Gvk, ObjectRef};
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
    let unlock = Request::Unlock { context: "production".to_owned() };
    assert_eq!(requests(&state, "U p r o d u c t i o n enter"), [unlock]);
}

#[test]
fn the_header_says_what_opdev_waits_for() {
    for (kind, said) in [
        (TroubleKind::Unreachable, "API server unreachable since 17:02:14, retrying in 8 s"),
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
        assert!(view.wake.is_some(), "the countdown is drawn anew");
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
    assert_eq!(requests(&running, "Z right enter"), [Request::Freeze { object: object.clone() }]);
    assert_eq!(requests(&frozen, "Z right enter"), [Request::Unfreeze { object }]);
    assert_eq!(requests(&of(events()), "Z right enter"), [], "there is no copy");
}
