//! Requests of acting keys: a state, keys, the requests that come of them; and the frames of their dialogs.

use super::fixture::{busy, events, finished, now, of, reference};
use super::frames::{check, screen, text};
use crate::command::{Command, Input};
use crate::update::update;
use crate::view::ViewState;
use expect_test::expect;
use opdev_event::{
    Action, Asker, Draft, DraftStage, DraftTask, Event, FaultRule, Leaving, NewFrom, ObjectChange,
    ObjectTask, OnExit, OperatorTask, Paths, PauseScope, Paused, PodFailure, Propagation, Request,
    RequestOutcome, RequestStarted, Review, SessionRequest, Started, Task, Undoable, ViewRequest,
};
use opdev_panes::keys::chord::Key;
use opdev_state::State;
use serde_json::json;
use std::sync::Arc;

const SIZE: (u16, u16) = (120, 36);
const SMALL: (u16, u16) = (40, 10);

/// The commands of some keys, after a first frame.
pub(crate) fn commands(view: &mut ViewState, state: &State, keys: &str) -> Vec<Command> {
    screen(state, view, "", SIZE);
    keys.split_whitespace()
        .flat_map(|name| update(view, Input::Key(Key::parse(name).unwrap()), state))
        .collect()
}

/// The requests of some keys on a fresh view.
pub(crate) fn requests(state: &State, keys: &str) -> Vec<Request> {
    let all = commands(&mut ViewState::default(), state, keys).into_iter();
    all.map(|command| match command {
        Command::Request(_, request) => request,
        other => panic!("{other:?}"),
    })
    .collect()
}

#[test]
fn an_object_in_a_loop_says_so_in_its_row() {
    use opdev_event::{LoopFound, LoopKind};
    let found = |paused| LoopFound {
        at: now(),
        object: reference("Memcached", "memcached-sample"),
        kind: LoopKind::Fight,
        blame: None,
        reconciles: 8,
        within: std::time::Duration::from_secs(2),
        fields: Vec::new(),
        paused,
    };
    let hold = |all: Vec<Paused>| Event::PausesChanged { paused: all };
    let held = || vec![Paused { what: sample(), since: now(), why: None, waiting: 0, causes: 0 }];
    let shown = |more: Vec<Event>| {
        let state = of(events().into_iter().chain(more).collect());
        let text = text(&screen(&state, &mut ViewState::default(), "", (200, 60)));
        let row = text.lines().find(|line| line.contains("memcached-sample")).unwrap_or_default().to_owned();
        (row.contains("loops"), row.contains("paused"), row.contains('⚠'))
    };
    assert_eq!(shown(vec![Event::LoopFound(found(false).into())]), (true, false, true));
    assert_eq!(shown(vec![hold(held()), Event::LoopFound(found(true).into())]), (true, true, true));
    // Once it goes on, it is as any other.
    let resumed = vec![hold(held()), Event::LoopFound(found(true).into()), hold(Vec::new())];
    assert_eq!(shown(resumed), (false, false, false));
}

/// The busy state and something paused.
fn paused(what: PauseScope) -> State {
    let paused = vec![Paused { what, since: now(), why: None, waiting: 1, causes: 2 }];
    of(events().into_iter().chain([Event::PausesChanged { paused }]).collect())
}

fn sample() -> PauseScope {
    PauseScope::Object { object: reference("Memcached", "memcached-sample") }
}

fn kind() -> PauseScope {
    PauseScope::Kind { gvk: reference("Memcached", "x").gvk }
}

#[test]
fn p_pauses_and_resumes_an_object_or_its_kind_and_a_dot_steps() {
    let object = || reference("Memcached", "memcached-sample");
    let state = busy();
    assert_eq!(requests(&state, "j p"), [Request::from(OperatorTask::Pause { scope: sample() })]);
    assert_eq!(
        requests(&state, "j 2 j p"),
        [Request::from(OperatorTask::Pause { scope: sample() })],
        "a child means its owner"
    );
    assert_eq!(requests(&state, "j P"), [Request::from(OperatorTask::Pause { scope: kind() })]);
    assert_eq!(requests(&state, "j ."), [Request::from(OperatorTask::Step { object: object() })]);
    assert_eq!(requests(&state, "j ="), [Request::from(OperatorTask::Check { object: object() })]);
    let state = paused(sample());
    assert_eq!(requests(&state, "j p"), [Request::from(OperatorTask::Resume { scope: sample() })]);
    assert_eq!(
        requests(&state, "p"),
        [Request::from(OperatorTask::Pause {
            scope: PauseScope::Object { object: reference("Memcached", "big") }
        })]
    );
    let state = paused(kind());
    assert_eq!(requests(&state, "j P"), [Request::from(OperatorTask::Resume { scope: kind() })]);
    let mut view = ViewState::default();
    assert_eq!(commands(&mut view, &state, "j r"), []);
    assert_eq!(
        view.told.message.as_deref(),
        Some("reconcile: memcached-sample is paused; resume it, or step once")
    );
    check("paused-120x36", &paused(sample()), "j", SIZE);
    check("paused-40x10", &paused(sample()), "j", SMALL);
}

#[test]
fn borders_are_moved_by_keys_remembered_and_put_back() {
    let state = busy();
    for (keys, wide) in [("alt-right", 3), ("2 alt-left alt-left", -6), ("3 alt-right", 3)] {
        let mut view = ViewState::default();
        screen(&state, &mut view, "", SIZE);
        let before = i32::from(view.screen.places[0].width);
        let asked = commands(&mut view, &state, keys);
        screen(&state, &mut view, "", SIZE);
        assert_eq!(i32::from(view.screen.places[0].width) - before, wide, "{keys}");
        let Some(Command::Request(_, Request::View(ViewRequest::Remember { borders }))) = asked.last() else {
            panic!("{asked:?}")
        };
        assert_eq!(*borders, view.screen.borders);
        // The next start takes them up again.
        let kept =
            opdev_event::Preferences { borders: Some(*borders), ..opdev_event::Preferences::default() };
        let again = of(events().into_iter().chain([Event::PreferencesChanged(kept.into())]).collect());
        let mut fresh = ViewState::default();
        screen(&again, &mut fresh, "", SIZE);
        assert_eq!(fresh.screen.places, view.screen.places);
        commands(&mut view, &state, "alt-0");
        screen(&state, &mut view, "", SIZE);
        assert_eq!(i32::from(view.screen.places[0].width), before);
    }
    let mut view = ViewState::default();
    let heights = |view: &ViewState| (view.screen.places[0].height, view.screen.places[2].height);
    screen(&state, &mut view, "", SIZE);
    let before = heights(&view);
    commands(&mut view, &state, "alt-down 3 alt-up");
    screen(&state, &mut view, "", SIZE);
    assert_eq!(heights(&view), (before.0 + 1, before.1 - 1));
    let mut view = ViewState::default();
    screen(&state, &mut view, "alt-right", SMALL);
    assert!(view.told.message.as_deref().is_some_and(|why| why.contains("one pane has the whole screen")));
}

#[test]
fn an_exclamation_mark_makes_a_pod_fail() {
    let state = busy();
    let mut view = ViewState::default();
    assert_eq!(commands(&mut view, &state, "j !"), []);
    assert_eq!(view.told.message.as_deref(), Some("fail: no pod is selected"));
    let asked = |keys: &str| match requests(&state, keys).pop() {
        Some(Request::Task(Task::Object(ObjectTask::FailPod { pod, how }))) => {
            (pod.gvk.kind, how.map(PodFailure::word))
        }
        other => panic!("{other:?}"),
    };
    assert_eq!(asked("j 2 j j ! enter"), ("Pod".to_owned(), Some("crash")));
    assert_eq!(asked("j 2 j j ! e v enter"), ("Pod".to_owned(), Some("evict")));
    assert_eq!(asked("j 2 j j ! r e c enter"), ("Pod".to_owned(), None));
    check("fail-120x36", &state, "j 2 j j !", SIZE);
}

#[test]
fn marks_are_one_by_one_a_range_the_others_or_none() {
    let state = busy();
    let mut view = ViewState::default();
    let marked = |view: &ViewState| {
        let all = view.targets(&state);
        all.iter().map(|seen| seen.key.name.clone()).collect::<Vec<_>>()
    };
    commands(&mut view, &state, "space");
    assert_eq!(marked(&view), ["big"]);
    commands(&mut view, &state, "j M");
    assert_eq!(marked(&view), ["big", "memcached-sample", "nightly"]);
    commands(&mut view, &state, "home m *");
    assert_eq!(marked(&view), ["big"]);
    commands(&mut view, &state, "esc");
    assert_eq!((view.marks.count(), marked(&view)), (0, vec!["memcached-sample".to_owned()]));
    // Elsewhere the space bar pages, and marks nothing.
    commands(&mut view, &state, "4 L space");
    assert_eq!(view.marks.count(), 0);
    // An object that is gone is not marked any more.
    commands(&mut view, &state, "1 home space");
    let mut state = state.clone();
    let object_ref = reference("Memcached", "big");
    state.reduce(Event::ObjectGone(opdev_event::ObjectGone { at: now(), object_ref }));
    screen(&state, &mut view, "", SIZE);
    assert_eq!(view.marks.count(), 0);
}

#[test]
fn what_is_marked_is_asked_for_in_one_dialog() {
    let state = busy();
    let both = || [reference("Memcached", "big"), reference("Memcached", "memcached-sample")];
    let each = |one: fn(opdev_object::meta::ObjectRef) -> Task| {
        vec![Request::from(Task::Each { tasks: both().into_iter().map(one).collect() })]
    };
    let delete =
        |object| Task::from(ObjectTask::Delete { object, propagation: Propagation::Background, grace: None });
    assert_eq!(requests(&state, "space space D y"), each(delete));
    assert_eq!(requests(&state, "space space D enter tab enter"), [], "enter alone deletes nothing");
    assert_eq!(
        requests(&state, "space space s 0 enter"),
        each(|object| Task::from(ObjectTask::Scale { object, replicas: 0 }))
    );
    assert_eq!(
        requests(&state, "space space r enter"),
        each(|object| Task::from(OperatorTask::Reconcile { object }))
    );
    assert_eq!(requests(&state, "space space r n"), []);
    let pause = |object| Task::from(OperatorTask::Pause { scope: PauseScope::Object { object } });
    assert_eq!(requests(&state, "space space p enter"), each(pause));
    let mut view = ViewState::default();
    let got = commands(&mut view, &state, "space space r enter");
    assert_eq!((got.len(), view.marks.count()), (1, 0), "what was asked for is not marked any more");
    for size in [SIZE, SMALL] {
        let name = |what: &str| format!("{what}-{}x{}", size.0, size.1);
        check(&name("marked-delete"), &state, "space space space D", size);
        check(&name("marked-reconcile"), &state, "space space r", size);
        check(&name("marked-scale"), &state, "space space s", size);
    }
}

#[test]
fn deleting_takes_a_grace_period_and_says_what_a_hanging_object_waits_for() {
    let object = || reference("Memcached", "memcached-sample");
    let state = busy();
    let delete = |grace| {
        Request::from(ObjectTask::Delete { object: object(), propagation: Propagation::Background, grace })
    };
    assert_eq!(requests(&state, "j D 0 y"), [delete(Some(0))]);
    assert_eq!(requests(&state, "j D 3 0 5 backspace y"), [delete(Some(30))]);
    check("delete-grace-120x36", &state, "j D 3 0", SIZE);
    check("delete-grace-40x10", &state, "j D 0", SMALL);

    let leaving = super::fixture::object(
        "Memcached",
        "memcached-sample",
        None,
        "17:00:02",
        &json!({"metadata": {"deletionTimestamp": "2026-03-01T17:02:00Z",
            "finalizers": ["helm.sdk.operatorframework.io/uninstall-release", "example.com/backup"]}}),
    );
    let hanging = of(events().into_iter().chain([super::fixture::seen(leaving)]).collect());
    let finalizers =
        ["helm.sdk.operatorframework.io/uninstall-release", "example.com/backup"].map(str::to_owned).to_vec();
    assert_eq!(requests(&hanging, "j D enter n"), []);
    let drop = Request::from(ObjectTask::DropFinalizers { object: object(), finalizers });
    assert_eq!(requests(&hanging, "j D y"), [drop]);
    check("hanging-120x36", &hanging, "j D", SIZE);
    check("hanging-40x10", &hanging, "j D tab", SMALL);
}

#[test]
fn scaling_a_child_says_who_puts_it_back() {
    let state = busy();
    let mut view = ViewState::default();
    let shown = text(&screen(&state, &mut view, "j 2 s", SIZE));
    assert!(shown.contains("owns it: its reconciler"), "{shown}");
    let mut view = ViewState::default();
    let shown = text(&screen(&paused(sample()), &mut view, "j 2 s", SIZE));
    assert!(!shown.contains("owns it: its reconciler"), "{shown}");
    check("scale-child-120x36", &state, "j 2 s", SIZE);
}

#[test]
fn tasks_show_what_is_under_way_and_cancel_it() {
    let mut all = events();
    let refused = RequestOutcome::Failed { message: "no such file".to_owned(), hint: None };
    let good = RequestOutcome::Done { summary: "Memcached big applied".to_owned(), warnings: vec![] };
    all.push(finished(1, "apply samples/big.yaml", good));
    all.push(finished(2, "apply nope.yaml", refused));
    all.push(finished(
        3,
        "delete Memcached default/x",
        RequestOutcome::Cancelled { message: "it may be gone".to_owned() },
    ));
    let at = super::fixture::at("17:02:11");
    let what = "delete Memcached default/big".to_owned();
    all.push(Event::RequestStarted(RequestStarted { id: 4, at, what, lasting: false }));
    let state = of(all);
    assert_eq!(
        requests(&state, "T x x"),
        [Request::from(Task::Cancel { id: 4 }), Request::from(Task::Cancel { id: 4 })]
    );
    assert_eq!(requests(&state, "T j x esc"), [], "what has ended cannot be cancelled");
    let mut view = ViewState::default();
    let shown = text(&screen(&state, &mut view, "", SIZE));
    assert!(shown.contains("· 1 asked"), "{shown}");
    check("tasks-120x36", &state, "T j j", SIZE);
    check("tasks-40x10", &state, "T", SMALL);
    check("tasks-none-120x36", &busy(), "T", SIZE);
}

#[test]
fn memory_shows_who_holds_how_much_and_what_was_forgotten() {
    let mut all = events();
    let unrelated = opdev_event::UnrelatedObject {
        namespace: None,
        name: "other".to_owned(),
        uid: None,
        changed_by: None,
    };
    all.push(Event::UnrelatedSeen(opdev_event::UnrelatedSeen {
        at: now(),
        gvk: reference("Pod", "x").gvk,
        objects: vec![unrelated],
    }));
    let limits = opdev_state::Limits { bytes: 6_000, ..opdev_state::Limits::default() };
    let mut state = State::with_limits(limits);
    all.into_iter().for_each(|event| state.reduce(event));
    let mut view = ViewState::default();
    commands(&mut view, &state, ": m e m o r y enter");
    let shown = text(&screen(&state, &mut view, "", SIZE));
    let line = |word: &str| shown.lines().find(|line| line.contains(word)).unwrap_or_default().to_owned();
    assert!(line("are in use").contains("of 5.9 KiB"), "{shown}");
    assert!(line("others, by their names").contains(" 1 "), "{shown}");
    let forgotten = state.history.forgotten();
    assert!(
        forgotten > 0 && line("reconciles and their calls").contains(&format!(" {forgotten} ")),
        "{shown}"
    );
}

fn draft(stage: DraftStage) -> Event {
    let about = "edit Memcached default/memcached-sample".to_owned();
    Event::DraftChanged(Arc::new(Draft { id: 9, at: now(), about, stage }))
}

fn review(action: Action) -> Review {
    let (old, new) = (json!({"spec": {"size": 3, "note": "a"}}), json!({"spec": {"size": 5}}));
    let changes = match action {
        Action::Deleted => Vec::new(),
        Action::Created | Action::Updated => opdev_object::diff::diff(&old, &new),
    };
    let object = reference("Memcached", "memcached-sample");
    Review {
        changes: vec![ObjectChange { object, action, changes, taken_from: Vec::new() }],
        warnings: vec!["spec.size: more than three are slow".to_owned()],
        notes: vec!["It was changed by somebody else while the editor was open: .spec.tier.".to_owned()],
        problem: None,
        editable: action == Action::Updated,
    }
}

fn with_draft(stage: DraftStage) -> State {
    of(events().into_iter().chain([draft(stage)]).collect())
}

#[test]
fn e_and_n_ask_for_the_editor_and_each_round_opens_it_once() {
    let state = busy();
    assert_eq!(
        requests(&state, "j e"),
        [Request::from(DraftTask::Edit { object: reference("Memcached", "memcached-sample") })]
    );
    assert_eq!(
        requests(&state, "j 2 e"),
        [Request::from(DraftTask::Edit { object: reference("Deployment", "memcached-sample") })]
    );
    let kind = NewFrom::Kind { gvk: reference("Memcached", "x").gvk };
    assert_eq!(requests(&state, "n enter"), [Request::from(DraftTask::New { from: kind })]);
    let sample = NewFrom::Sample { path: "samples/cache_v1alpha1_memcachedbackup.yaml".to_owned() };
    assert_eq!(requests(&state, "n n i g h t enter"), [Request::from(DraftTask::New { from: sample })]);
    assert_eq!(requests(&state, "n z z z enter esc"), []);
    check("new-120x36", &state, "n", SIZE);
    check("new-40x10", &state, "n down", SMALL);

    let mut view = ViewState::default();
    let open = |round| with_draft(DraftStage::Editing { path: "/tmp/a.yaml".to_owned(), round });
    let due = |view: &mut ViewState, state: &State| crate::drafts::editor_due(view, state).map(|(id, _)| id);
    assert_eq!((due(&mut view, &open(1)), due(&mut view, &open(1))), (Some(9), None));
    assert_eq!((due(&mut view, &open(2)), due(&mut view, &open(2))), (Some(9), None));
    view.leaving = true;
    assert_eq!(due(&mut view, &open(3)), None);
}

#[test]
fn a_review_is_written_reopened_or_dropped_and_enter_deletes_nothing() {
    let (write, reopen, discard) = (
        Request::from(DraftTask::Write { draft: 9 }),
        Request::from(DraftTask::Reopen { draft: 9 }),
        Request::from(DraftTask::Discard { draft: 9 }),
    );
    let state = with_draft(DraftStage::Review(review(Action::Updated)));
    for (keys, wanted) in
        [("enter", &write), ("w", &write), ("e", &reopen), ("n", &discard), ("esc", &discard)]
    {
        assert_eq!(requests(&state, keys), std::slice::from_ref(wanted), "{keys}");
    }
    check("review-120x36", &state, "", SIZE);
    check("review-40x10", &state, "j", SMALL);
    let deletes = with_draft(DraftStage::Review(review(Action::Deleted)));
    assert_eq!(requests(&deletes, "enter tab enter"), []);
    assert_eq!(requests(&deletes, "w"), [write]);
    check("review-delete-120x36", &deletes, "", SIZE);
    let mut broken = review(Action::Updated);
    broken.problem = Some("the API server does not answer".to_owned());
    let broken = with_draft(DraftStage::Review(broken));
    assert_eq!(requests(&broken, "enter"), [reopen], "nothing can be written, and nothing is lost");
    check("review-problem-40x10", &broken, "", SMALL);
    // Closed elsewhere: the dialog goes.
    let mut state = with_draft(DraftStage::Review(review(Action::Updated)));
    let mut view = ViewState::default();
    assert!(text(&screen(&state, &mut view, "", SIZE)).contains("edit Memcached"));
    state.reduce(draft(DraftStage::Closed));
    screen(&state, &mut view, "", SIZE);
    assert!(view.layers.is_empty());
}

#[test]
fn undo_lists_what_was_done_and_says_what_cannot_be_undone() {
    let deed = |id, what: &str, why_not: Option<&str>| Undoable {
        id,
        at: super::fixture::at("17:01:13"),
        what: what.to_owned(),
        why_not: why_not.map(str::to_owned),
    };
    let entries = vec![
        deed(2, "remove the finalizers of Memcached default/x", Some("the object is gone")),
        deed(1, "scale Memcached default/memcached-sample to 5", None),
    ];
    let state = of(events().into_iter().chain([Event::UndoChanged { entries }]).collect());
    assert_eq!(requests(&state, "u enter esc"), []);
    assert_eq!(requests(&state, "u j enter"), [Request::from(DraftTask::Undo { entry: 1 })]);
    check("undo-120x36", &state, "u", SIZE);
    check("undo-40x10", &state, "u j", SMALL);
    let mut view = ViewState::default();
    assert_eq!(commands(&mut view, &busy(), "u"), []);
    assert!(view.told.message.is_some_and(|message| message.contains("nothing was applied")));
}

/// The busy state on a cluster that lives on.
fn on_a_cluster(on_exit: Option<OnExit>) -> State {
    let mut all = events();
    if let Some(Event::Started(started)) = all.first_mut() {
        let mut other = Started::clone(started);
        (other.cluster.embedded, other.kubeconfig, other.on_exit) = (false, None, on_exit);
        other.cluster.name = "kind-dev".to_owned();
        *started = Arc::new(other);
    }
    of(all)
}

#[test]
fn leaving_a_cluster_that_lives_on_asks_once() {
    let leave = |how| Request::from(SessionRequest::Leave { how });
    let state = on_a_cluster(None);
    assert_eq!(requests(&state, "q esc"), []);
    assert_eq!(requests(&state, "q enter"), [leave(OnExit::Leave)]);
    assert_eq!(requests(&state, "q q"), [leave(OnExit::Leave)]);
    assert_eq!(requests(&state, "q j enter"), [leave(OnExit::Uninstall)]);
    assert_eq!(requests(&state, "q j j enter"), [leave(OnExit::Release)]);
    assert_eq!(
        requests(&state, "ctrl-c"),
        [Request::from(SessionRequest::Quit { by: Asker::User })],
        "in a hurry"
    );
    for state in [on_a_cluster(Some(OnExit::Uninstall)), busy()] {
        assert_eq!(requests(&state, "q"), [Request::from(SessionRequest::Quit { by: Asker::User })]);
    }
    check("leave-120x36", &state, "q j", SIZE);
    check("leave-40x10", &state, "q j", SMALL);
    let mut state = state;
    let left = vec![reference("Memcached", "memcached-sample")];
    state.reduce(Event::Leaving(Leaving { how: OnExit::Uninstall, total: 3, left, spared: Vec::new() }));
    check("leaving-120x36", &state, "q j enter", SIZE);
    check("leaving-40x10", &state, "q j enter", SMALL);
    let mut view = ViewState::default();
    let got = commands(&mut view, &state, "q j enter q");
    assert_eq!(got.last(), Some(&Command::Leave), "the rest stays as it is");
}

#[test]
fn copying_gives_names_yaml_and_commands() {
    let state = busy();
    let copied = |keys: &str| {
        let mut view = ViewState::default();
        let copy = commands(&mut view, &state, keys).into_iter().find_map(|command| match command {
            Command::Copy(text) => Some(text),
            _ => None,
        });
        copy.unwrap_or_default()
    };
    assert_eq!(copied("j c n"), "memcached-sample");
    assert_eq!(copied("j c f"), "default/memcached-sample");
    assert_eq!(copied("j c j enter"), "default/memcached-sample");
    assert!(copied("j c y").starts_with("apiVersion: cache.my.domain/v1alpha1\nkind: Memcached\n"));
    let command = "KUBECONFIG=.opdev/kubeconfig kubectl get memcached.v1alpha1.cache.my.domain/memcached-sample -n default -o yaml";
    assert_eq!(copied("j c k"), command);
    let scale = "KUBECONFIG=.opdev/kubeconfig kubectl scale --replicas=5 deployment.v1.apps/memcached-sample -n default";
    assert_eq!(copied("j 2 s 5 enter c l"), scale);
    assert!(copied("j D 9 y c l").ends_with("-n default --cascade=background --grace-period=9"));
    let apply = "kubectl apply --server-side --field-manager=opdev --force-conflicts -f samples/cache_v1alpha1_memcached.yaml";
    assert!(copied("a enter c l").ends_with(apply));
    assert_eq!(copied("j c l"), "", "nothing was asked for yet");
    check("copy-120x36", &state, "j c", SIZE);
    check("copy-40x10", &state, "j c", SMALL);
}

#[test]
fn a_path_is_completed_and_a_name_still_finds_its_sample() {
    let state = busy();
    let apply = |path: &str| Request::from(ObjectTask::Apply { path: path.to_owned() });
    let typed = |text: &str| text.chars().map(|c| c.to_string()).collect::<Vec<_>>().join(" ");
    // The end of a sample's path finds the sample.
    let keys = format!("a {} enter", typed("memcachedbackup.yaml"));
    assert_eq!(requests(&state, &keys).last(), Some(&apply("samples/cache_v1alpha1_memcachedbackup.yaml")));
    let asked = requests(&state, "a d e p l o y /");
    assert_eq!(asked, [Request::from(ViewRequest::ListPaths { typed: "deploy/".to_owned() })]);
    let found = ["deploy/a/", "deploy/all.yaml"].map(str::to_owned).to_vec();
    let listed = Event::PathsListed(Paths { typed: "deploy/".to_owned(), found });
    let state = of(events().into_iter().chain([listed]).collect());
    let all = requests(&state, "a d e p l o y / a l tab enter");
    assert_eq!(all.last(), Some(&apply("deploy/all.yaml")), "{all:?}");
    let all = requests(&state, "a d e p l o y / tab enter");
    assert!(
        all.contains(&Request::from(ViewRequest::ListPaths { typed: "deploy/a/".to_owned() })),
        "{all:?}"
    );
    check("apply-path-120x36", &state, "a d e p l o y /", SIZE);
    check("apply-path-40x10", &state, "a d e p l o y /", SMALL);
}

/// A program of its own reconciles Memcached.
fn of_a_program(more: Vec<Event>) -> State {
    use opdev_event::{KindHealth, ProcessChanged, ProcessState, TraceLevel};
    let program = "go ./cmd".to_owned();
    let Event::SourcesChanged(sources) = super::fixture::sources(8, &[]) else { unreachable!() };
    let mut sources = (*sources).clone();
    sources.kinds[0].health = KindHealth::Process { program: program.clone() };
    let state = ProcessState::Running { pid: 7, files: Vec::new(), since_save: std::time::Duration::ZERO };
    let run = ProcessChanged {
        at: now(),
        program,
        starts: 1,
        state,
        traced: Some(TraceLevel::Full),
        breakpoint: None,
    };
    let then = [Event::SourcesChanged(Arc::new(sources)), Event::ProcessChanged(Arc::new(run))];
    of(events().into_iter().chain(then).chain(more).collect())
}

#[test]
fn the_calls_of_a_program_are_disturbed_from_a_list_and_by_a_typed_rule() {
    let rules = |texts: &[&str]| texts.iter().map(|text| text.parse().unwrap()).collect::<Vec<FaultRule>>();
    let disturb = |texts: &[&str]| vec![Request::from(OperatorTask::Disturb { rules: rules(texts) })];
    let calm = of_a_program(Vec::new());
    assert_eq!(requests(&calm, "g d enter"), disturb(&["hold"]));
    let typed = |state: &State, text: &str| {
        let keys: Vec<String> =
            text.chars().map(|c| if c == ' ' { "space".to_owned() } else { c.to_string() }).collect();
        requests(state, &format!("g d {} enter", keys.join(" ")))
    };
    assert_eq!(typed(&calm, "503 list pods"), disturb(&["503 list pods"]));
    let mut view = ViewState::default();
    commands(&mut view, &calm, "g d x y z z y enter");
    assert!(
        view.told.message.as_deref().unwrap().starts_with("inject faults: there is no fault `xyzzy`"),
        "{:?}",
        view.told.message
    );

    // A rule that is chosen again is taken away; holding with p goes the same way.
    let held = of_a_program(vec![Event::Disturbed { rules: rules(&["hold", "503 every=3"]) }]);
    assert_eq!(requests(&held, "g d enter"), disturb(&["503 every=3"]));
    assert_eq!(typed(&held, "end"), disturb(&[]));
    assert_eq!(
        (requests(&calm, "j p"), requests(&held, "j p")),
        (disturb(&["hold"]), disturb(&["503 every=3"]))
    );
    let object = reference("Memcached", "memcached-sample");
    assert_eq!(requests(&held, "j ."), [Request::from(OperatorTask::Step { object: object.clone() })]);
    assert_eq!(requests(&held, "j ="), [Request::from(OperatorTask::Check { object })]);
    let mut view = ViewState::default();
    assert_eq!(commands(&mut view, &calm, "j ."), []);
    assert!(
        view.told.message.as_deref().unwrap().ends_with("p holds its watches"),
        "{:?}",
        view.told.message
    );
    let shown = text(&screen(&held, &mut ViewState::default(), "", (160, 45)));
    assert!(shown.contains("· paused +1"), "{shown}");

    // Without a program of its own there is nothing to disturb.
    let mut view = ViewState::default();
    assert_eq!(commands(&mut view, &busy(), "g d"), []);
    expect!["inject faults: the project has no program of its own that runs"]
        .assert_eq(view.told.message.as_deref().unwrap());
}
