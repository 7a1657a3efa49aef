//! Keys and the commands and views that must come of them; and that no sequence of keys breaks anything.

use super::acting::{commands, requests};
use super::fixture::{
    at, busy, events, finished, held_type, now, object, of, reconcile, reference, released, seen, sources,
    started, trust_asked,
};
use super::frames::{screen, text};
use super::held::shadow_run;
use crate::dialog::{Delete, Help};
use crate::view::ViewState;
use crate::{Command, Input, update};
use opdev_event::{
    Asker, Event, ObjectGone, ObjectTask, OperatorTask, Outcome, ProjectTask, Propagation, Request,
    RequestOutcome, SessionRequest, SourcesTask, Started, Task, TrustAnswer, TrustAnswered,
};
use opdev_panes::keys::chord::Key;
use opdev_panes::pane::{Pane, Tab};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use serde_json::json;
use std::sync::Arc;

const SIZE: (u16, u16) = (120, 36);

#[test]
fn apply_takes_the_chosen_sample_or_a_typed_path() {
    let state = of(vec![started(), sources(1, &[])]);
    let first = Request::from(ObjectTask::Apply { path: "samples/cache_v1alpha1_memcached.yaml".to_owned() });
    let second =
        Request::from(ObjectTask::Apply { path: "samples/cache_v1alpha1_memcachedbackup.yaml".to_owned() });
    assert_eq!(requests(&state, "a enter"), std::slice::from_ref(&first));
    assert_eq!(requests(&state, "enter enter"), [first]);
    assert_eq!(requests(&state, "a down enter"), std::slice::from_ref(&second));
    assert_eq!(requests(&state, "a n i g h t enter"), [second]);
    let typed = Request::from(ObjectTask::Apply { path: "x.yaml".to_owned() });
    assert_eq!(requests(&state, "a x . y a m l enter").last(), Some(&typed));
    assert_eq!(requests(&state, "a n o p e enter esc"), []);
    // A whole name comes before names that hold it.
    let Event::SourcesChanged(changed) = sources(2, &[]) else { panic!("no sources") };
    let mut changed = changed.as_ref().clone();
    let mut sample = changed.samples[1].clone();
    (sample.path, sample.object.name) = ("samples/z.yaml".to_owned(), "cached".to_owned());
    changed.samples.push(sample);
    let state = of(vec![started(), Event::SourcesChanged(changed.into())]);
    let named = Request::from(ObjectTask::Apply { path: "samples/z.yaml".to_owned() });
    assert_eq!(requests(&state, "a c a c h e d enter"), [named]);
}

#[test]
fn scale_starts_from_what_is_and_goes_to_the_selected_object() {
    let state = busy();
    let cr =
        Request::from(ObjectTask::Scale { object: reference("Memcached", "memcached-sample"), replicas: 5 });
    assert_eq!(requests(&state, "j s 5 enter"), [cr]);
    let up =
        Request::from(ObjectTask::Scale { object: reference("Memcached", "memcached-sample"), replicas: 4 });
    assert_eq!(requests(&state, "j s up enter"), [up]);
    let child = Request::from(ObjectTask::Scale {
        object: reference("Deployment", "memcached-sample"),
        replicas: 35,
    });
    assert_eq!(requests(&state, "j 2 s right left 5 enter"), [child]);
    assert_eq!(requests(&state, "j s backspace enter esc"), []);
    let mut view = ViewState::default();
    assert_eq!(commands(&mut view, &state, "j 2 j j s"), []);
    assert_eq!(view.told.message.as_deref(), Some("scale: a Pod has no replicas"));
}

#[test]
fn delete_needs_a_second_deliberate_key() {
    let state = busy();
    let object = reference("Memcached", "memcached-sample");
    assert_eq!(requests(&state, "j D enter tab enter n"), []);
    assert_eq!(requests(&state, "j D esc enter"), []);
    let delete =
        |propagation| Request::from(ObjectTask::Delete { object: object.clone(), propagation, grace: None });
    assert_eq!(requests(&state, "j D y"), [delete(Propagation::Background)]);
    assert_eq!(requests(&state, "j D down down y"), [delete(Propagation::Orphan)]);
    for risky in ["k", "ctrl-k", "ctrl-d", "d", "x", "delete", "backspace"] {
        assert_eq!(requests(&state, &format!("j {risky} y tab enter enter esc")), [], "{risky}");
    }
    // Pasted text never acts.
    let mut view = ViewState::default();
    screen(&state, &mut view, "", SIZE);
    assert_eq!(update(&mut view, Input::Paste("D\t\r\n".to_owned()), &state), []);
    assert!(view.layers.is_empty());
}

#[test]
fn the_delete_dialog_keeps_its_object_whatever_happens_below() {
    let mut state = busy();
    let mut view = ViewState::default();
    commands(&mut view, &state, "j D");
    state.reduce(Event::ObjectGone(ObjectGone {
        at: now(),
        object_ref: reference("Memcached", "memcached-sample"),
    }));
    let got = commands(&mut view, &state, "y");
    let object = reference("Memcached", "memcached-sample");
    let wanted =
        Request::from(ObjectTask::Delete { object, propagation: Propagation::Background, grace: None });
    assert_eq!(got, [Command::Request(1, wanted)]);
}

#[test]
fn a_held_change_asks_and_letters_answer() {
    let held = || {
        let mut state = busy();
        state.reduce(held_type());
        state
    };
    let id = "memcacheds.cache.my.domain@8".to_owned();
    let (apply, discard) = (
        Request::from(SourcesTask::ApplyHeld { id: id.clone() }),
        Request::from(SourcesTask::DiscardHeld { id }),
    );
    for keys in ["H esc", "H j esc", "H q", "H enter", "H tab tab enter"] {
        assert_eq!(requests(&held(), keys), [], "{keys}: esc is later, and enter alone answers nothing");
    }
    assert_eq!(requests(&held(), "H k"), [discard]);
    assert_eq!(requests(&held(), "H a"), std::slice::from_ref(&apply));
    assert_eq!(requests(&held(), "esc H a"), [apply], "later, and then asked for by key");
    // Keys typed for something else while it came up are no answer, and are not lost.
    assert_eq!(requests(&held(), "tab enter"), []);
    assert!(matches!(
        requests(&held(), "D y").as_slice(),
        [Request::Task(Task::Object(ObjectTask::Delete { .. }))]
    ));
    assert_eq!(requests(&busy(), "H"), [], "nothing is held");

    // It opens by itself once, over no other dialog, and goes when the edit is undone.
    let mut view = ViewState::default();
    let mut state = busy();
    commands(&mut view, &state, "?");
    state.reduce(held_type());
    screen(&state, &mut view, "", SIZE);
    assert!(view.layers.len() == 1 && view.top::<Help>().is_some());
    assert!(text(&screen(&state, &mut view, "esc", SIZE)).contains("Your answer is needed"));
    state.reduce(released());
    let shown = text(&screen(&state, &mut view, "", SIZE));
    assert!(view.layers.is_empty() && !shown.contains("answer"), "{shown}");
}

#[test]
fn what_the_project_wants_is_asked_and_letters_answer() {
    let asked = || {
        let mut state = busy();
        state.reduce(trust_asked());
        state
    };
    let Event::TrustAsked(question) = trust_asked() else { unreachable!() };
    let answer =
        |answer| [Request::from(ProjectTask::Trust { answer, permissions: question.unanswered.clone() })];
    assert_eq!(requests(&asked(), "H n"), answer(TrustAnswer::Refuse));
    assert_eq!(requests(&asked(), "H o"), answer(TrustAnswer::Once));
    assert_eq!(requests(&asked(), "H t"), answer(TrustAnswer::Trust));
    assert_eq!(requests(&asked(), "esc H o"), answer(TrustAnswer::Once), "later, and then asked for by key");
    // Keys that were meant for something else answer nothing, nor does leaving the dialog.
    assert_eq!(requests(&asked(), "enter tab enter"), []);
    for keys in ["H tab esc", "H enter", "H tab enter esc"] {
        assert_eq!(requests(&asked(), keys), [], "{keys}: enter alone answers nothing");
    }

    // It comes up by itself once, goes with the answer, and comes again with another question.
    let mut view = ViewState::default();
    let mut state = asked();
    assert!(text(&screen(&state, &mut view, "", SIZE)).contains("May opdev run this project?"));
    let shown = text(&screen(&state, &mut view, "esc", SIZE));
    assert!(!shown.contains("May opdev run this project?") && shown.contains("not trusted yet"), "{shown}");
    let unread = of(vec![started(), trust_asked()]);
    let shown = text(&screen(&unread, &mut ViewState::default(), "esc", SIZE));
    assert!(shown.contains("The project needs your answer: H shows"), "{shown}");
    let shown = text(&screen(&unread, &mut ViewState::default(), "esc a", SIZE));
    assert!(shown.contains("The project is not read yet"), "{shown}");
    state.reduce(Event::TrustAnswered(Arc::new(TrustAnswered {
        at: now(),
        answer: TrustAnswer::Once,
        permissions: question.unanswered.clone(),
    })));
    assert!(!text(&screen(&state, &mut view, "", SIZE)).contains("trust"));
    state.reduce(trust_asked());
    assert!(text(&screen(&state, &mut view, "", SIZE)).contains("May opdev run this project?"));
}

#[test]
fn reconcile_reload_and_quit() {
    let state = busy();
    let object = reference("Memcached", "memcached-sample");
    assert_eq!(
        requests(&state, "j 2 j r R"),
        [Request::from(OperatorTask::Reconcile { object }), Request::from(SourcesTask::Reload)]
    );
    let mut view = ViewState::default();
    let got = commands(&mut view, &state, "? ctrl-c q");
    assert_eq!(
        got,
        [Command::Request(1, Request::from(SessionRequest::Quit { by: Asker::User })), Command::Leave]
    );
    assert!(text(&screen(&state, &mut view, "", SIZE)).contains("stopping"));
    assert_eq!(
        requests(&state, "? q q"),
        [Request::from(SessionRequest::Quit { by: Asker::User })],
        "the first q closes the help"
    );
}

#[test]
fn what_is_not_possible_says_why() {
    let mut events = events();
    if let Some(Event::Started(started)) = events.first_mut() {
        let mut other = Started::clone(started);
        other.cluster.read_only = true;
        other.cluster.name = "production".to_owned();
        *started = Arc::new(other);
    }
    let state = of(events);
    let mut view = ViewState::default();
    for (keys, why) in [("D", "delete"), ("a", "apply"), ("s", "scale"), ("r", "reconcile")] {
        assert_eq!(commands(&mut view, &state, keys), []);
        assert!(view.layers.is_empty(), "{keys}");
        assert_eq!(
            view.told.message,
            Some(format!("{why}: writes are held back on context production; U unlocks it"))
        );
    }
    assert!(text(&screen(&state, &mut view, "? ?", SIZE)).contains("not now: writes are held back"));
    let mut view = ViewState::default();
    assert_eq!(commands(&mut view, &of(vec![started(), sources(1, &[])]), "r"), []);
    assert_eq!(view.told.message.as_deref(), Some("reconcile: no custom resource is selected"));
}

#[test]
fn the_selection_follows_its_object() {
    let mut state = busy();
    let mut view = ViewState::default();
    commands(&mut view, &state, "j");
    state.reduce(seen(object("Memcached", "aaa", None, "17:02:12", &json!({}))));
    screen(&state, &mut view, "", SIZE);
    assert_eq!(view.root(&state).unwrap().key.name, "memcached-sample");
    // Where it goes, its place stays selected.
    state.reduce(Event::ObjectGone(ObjectGone {
        at: now(),
        object_ref: reference("Memcached", "memcached-sample"),
    }));
    screen(&state, &mut view, "", SIZE);
    assert_eq!(view.root(&state).unwrap().key.name, "nightly");
}

#[test]
fn the_tree_starts_at_its_first_line_until_one_moves() {
    let cr = object("Memcached", "a", None, "17:00:00", &json!({}));
    let child = |kind: &str| seen(object(kind, "a", Some(("Memcached", "a")), "17:00:00", &json!({})));
    let mut state = of(vec![started(), sources(1, &[]), seen(cr), child("ConfigMap")]);
    let mut view = ViewState::default();
    let selected = |view: &ViewState| view.owned.selection.key.as_ref().unwrap().kind.clone();
    commands(&mut view, &state, "2");
    assert_eq!(selected(&view), "ConfigMap");
    state.reduce(child("Deployment"));
    commands(&mut view, &state, "tab");
    assert_eq!(selected(&view), "Deployment");
    commands(&mut view, &state, "2 j");
    state.reduce(child("Service"));
    screen(&state, &mut view, "", SIZE);
    assert_eq!((selected(&view), view.owned.selection.index), ("ConfigMap".to_owned(), 2));
}

#[test]
fn the_newest_reconcile_stays_selected_until_one_moves() {
    let mut state = busy();
    let mut view = ViewState::default();
    commands(&mut view, &state, "j");
    let newest = |id| {
        Event::Reconciled(Arc::new(reconcile(
            id,
            "memcached-sample",
            "17:02:12",
            vec![],
            Outcome::Unchanged,
            1,
        )))
    };
    state.reduce(newest(10));
    screen(&state, &mut view, "", SIZE);
    assert_eq!(view.reconcile().unwrap().id, 10);
    commands(&mut view, &state, "3 j");
    assert_eq!(view.reconcile().unwrap().id, 4);
    state.reduce(newest(11));
    screen(&state, &mut view, "", SIZE);
    assert_eq!(view.reconcile().unwrap().id, 4);
    commands(&mut view, &state, "g g");
    state.reduce(newest(12));
    screen(&state, &mut view, "", SIZE);
    assert_eq!(view.reconcile().unwrap().id, 12);
}

#[test]
fn filters_narrow_and_esc_undoes() {
    let state = busy();
    let mut view = ViewState::default();
    commands(&mut view, &state, "/ m e m c a c h e d space ! b i g enter");
    let names: Vec<_> = view.resources.rows.iter().map(|seen| seen.key.name.as_str()).collect();
    assert_eq!(names, ["memcached-sample", "nightly"]);
    commands(&mut view, &state, "/ z z z esc");
    assert_eq!(view.filter(Pane::Resources), "memcached !big");
    commands(&mut view, &state, "esc");
    assert_eq!((view.filter(Pane::Resources), view.resources.rows.len()), ("", 3));
    // In the tree the way to a match stays.
    commands(&mut view, &state, "home j 2 / 7 d q d r enter");
    let kinds: Vec<_> = view.owned.nodes.iter().map(|node| node.seen.key.kind.as_str()).collect();
    assert_eq!(kinds, ["Deployment", "ReplicaSet", "Pod"]);
}

#[test]
fn focus_moves_by_tab_arrows_letters_and_numbers() {
    let state = busy();
    let mut view = ViewState::default();
    for (keys, focus, tab) in [
        ("tab", Pane::Owned, Tab::STATUS),
        ("tab tab", Pane::Detail, Tab::STATUS),
        ("tab", Pane::Resources, Tab::STATUS),
        ("shift-tab", Pane::Detail, Tab::STATUS),
        ("right right", Pane::Detail, Tab::CALLS),
        ("left left", Pane::Detail, Tab::STATUS),
        ("left", Pane::Owned, Tab::STATUS),
        ("1 right", Pane::Reconciles, Tab::STATUS),
        ("y", Pane::Detail, Tab::YAML),
        ("3", Pane::Reconciles, Tab::YAML),
        ("enter", Pane::Reconciles, Tab::YAML),
        ("j j j j j enter", Pane::Detail, Tab::CALLS),
        ("3 left", Pane::Reconciles, Tab::CALLS),
        ("left", Pane::Resources, Tab::CALLS),
        ("v", Pane::Detail, Tab::STATUS),
        ("esc esc", Pane::Resources, Tab::STATUS),
    ] {
        commands(&mut view, &state, keys);
        assert_eq!((view.focus, view.detail.tab), (focus, tab), "after {keys}");
    }
    commands(&mut view, &state, "z");
    assert!(view.zoom);
    commands(&mut view, &state, "esc");
    assert!(!view.zoom);
}

#[test]
fn bad_news_stay_until_dismissed_and_good_news_go() {
    let failed = RequestOutcome::Failed { message: "no such file".to_owned(), hint: None };
    let mut all = events();
    all.push(finished(1, "apply x.yaml", failed));
    let state = of(all.clone());
    let mut view = ViewState::default();
    assert!(text(&screen(&state, &mut view, "j", SIZE)).contains("✗ apply x.yaml: no such file"));
    assert!(!text(&screen(&state, &mut view, "esc", SIZE)).contains("no such file"));
    all.push(finished(2, "apply x.yaml", RequestOutcome::Done { summary: String::new(), warnings: vec![] }));
    let state = of(all);
    let mut view = ViewState::default();
    let area = Rect::new(0, 0, SIZE.0, SIZE.1);
    for (time, there) in [(now(), true), (at("17:02:19"), false)] {
        let mut buffer = Buffer::empty(area);
        crate::draw::paint(&state, &mut view, &mut buffer, area, time);
        assert_eq!(text(&buffer).contains("✓ apply x.yaml in 9 ms"), there, "{time}");
    }
}

/// A small generator with a fixed start: the same keys on every run.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from((self.0 >> 33) % sides as u64).unwrap()
    }
}

#[test]
fn no_sequence_of_keys_and_events_breaks_anything() {
    let keys: Vec<Key> = crate::keys::registry::ACTIONS
        .iter()
        .filter(|action| action.id != "quit" && action.id != "stop")
        .flat_map(|action| action.keys.iter())
        .flat_map(|chord| chord.split(' '))
        .chain(["backspace", "delete", "5", "9", "x", "n", "!", "ctrl-u", "-", "+"])
        .map(|name| Key::parse(name).unwrap())
        .collect();
    let sizes = [(120, 36), (80, 24), (40, 10), (31, 8), (20, 5), (1, 1), (200, 60), (100, 30)];
    for seed in 0..40 {
        let mut dice = Dice(seed);
        let mut all = events();
        all.extend(shadow_run().into_iter().chain([held_type(), released()]));
        let mut state = busy();
        let mut view = ViewState::default();
        let mut size = SIZE;
        for _ in 0..250 {
            match dice.roll(12) {
                0 => size = sizes[dice.roll(sizes.len())],
                1 => state.reduce(all[dice.roll(all.len())].clone()),
                2 => {
                    let gone: Vec<_> = state.objects.custom().map(|seen| seen.object_ref.clone()).collect();
                    if !gone.is_empty() && dice.roll(4) == 0 {
                        let object_ref = gone[dice.roll(gone.len())].clone();
                        state.reduce(Event::ObjectGone(ObjectGone { at: now(), object_ref }));
                    }
                }
                3 => {
                    update(&mut view, Input::Paste("a\u{1b}日本".to_owned()), &state);
                }
                _ => {
                    let asked = view.top::<Delete>().is_some();
                    let commands = update(&mut view, Input::Key(keys[dice.roll(keys.len())]), &state);
                    let is_delete = |c: &Command| {
                        matches!(
                            c,
                            Command::Request(_, Request::Task(Task::Object(ObjectTask::Delete { .. })))
                        )
                    };
                    assert!(asked || !commands.iter().any(is_delete), "deleted without asking");
                    assert!(!commands.contains(&Command::Leave));
                }
            }
            let area = Rect::new(0, 0, size.0, size.1);
            let mut buffer = Buffer::empty(area);
            crate::draw::paint(&state, &mut view, &mut buffer, area, now());
            assert!(!text(&buffer).contains('\u{1b}'));
            if size.0 >= 30 && size.1 >= 8 {
                // A table that is open has rows of its own.
                let lists = view.browse.is_none();
                assert!(!lists || view.resources.rows.is_empty() == view.root(&state).is_none());
            }
        }
    }
}
