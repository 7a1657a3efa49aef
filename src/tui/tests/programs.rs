//! Programs that keys start: what is put into their words, when they ask, when they do not start; what is
//! saved and copied.

use super::acting::commands;
use super::fixture::{busy, events, of};
use super::frames::{screen, text};
use crate::view::ViewState;
use crate::{Command, Input, update};
use expect_test::expect;
use opdev_event::{
    Body, Cluster, Event, ObjectSeen, Place, Preferences, ProgramRun, ProjectTask, Protection,
    ProtectionChanged, Request, Started, Task, UserCommand,
};
use opdev_object::meta::{ObjectKey, ObjectRef};
use opdev_panes::keys::chord::Key;
use opdev_panes::pane::{Pane, Tab};
use opdev_state::{State, tree};
use std::sync::Arc;

const SIZE: (u16, u16) = (120, 36);

fn command(name: &str, key: Option<&str>, run: &[&str]) -> UserCommand {
    UserCommand {
        name: name.to_owned(),
        key: key.map(str::to_owned),
        run: run.iter().map(|word| (*word).to_owned()).collect(),
        shell: run.len() == 1,
        kinds: Vec::new(),
        confirm: false,
        background: false,
        writes: true,
        place: Place { file: "config.yaml".to_owned(), line: 2, column: 3 },
    }
}

fn with(commands: Vec<UserCommand>) -> State {
    let mut state = busy();
    state.reduce(Event::PreferencesChanged(Arc::new(Preferences { commands, ..Preferences::default() })));
    state
}

/// On a cluster of one's own that runs containers.
fn real(mut all: Vec<Event>) -> State {
    for event in &mut all {
        if let Event::Started(started) = event {
            let cluster = Cluster { name: "kind-dev".to_owned(), ..Cluster::default() };
            *started = Arc::new(Started { cluster, kubeconfig: None, ..Started::clone(started) });
        }
    }
    of(all)
}

fn run(commands: &[Command]) -> &ProgramRun {
    match commands {
        [Command::Run(program)] => program,
        other => panic!("{other:?}"),
    }
}

#[test]
fn what_is_selected_is_put_into_the_words() {
    let mut top =
        command("top", Some("g e"), &["kubectl top {kind}/{name} -n {ns} -o jsonpath={.spec} {a b}"]);
    top.writes = false;
    let list = command("list", Some("ctrl-t"), &["echo", "{name} {kind}.{group}/{version}", "{context}"]);
    let state = with(vec![top, list]);
    let mut view = ViewState::default();
    screen(&state, &mut view, "j", SIZE);
    let name = view.subject(&state).unwrap().key.name.clone();
    let asked = commands(&mut view, &state, "g e");
    let line = r#"kubectl top "${OPDEV_KIND}"/"${OPDEV_NAME}" -n "${OPDEV_NS}" -o jsonpath={.spec} {a b}"#;
    assert_eq!(run(&asked).command, ["/bin/sh", "-c", line]);
    assert!(run(&asked).in_front && run(&asked).pause);
    let set = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    assert_eq!(
        run(&asked).env,
        [
            set("KUBECONFIG", "/p/.opdev/kubeconfig"),
            set("OPDEV_KIND", "Memcached"),
            set("OPDEV_NAME", &name),
            set("OPDEV_NS", "default")
        ]
    );
    assert!(text(&screen(&state, &mut view, "g", SIZE)).contains("? help"));
    commands(&mut view, &state, "esc");
    let asked = commands(&mut view, &state, "ctrl-t");
    let of = format!("{name} Memcached.cache.my.domain/v1alpha1");
    assert_eq!(run(&asked).command, ["echo", of.as_str(), "opdev"]);
    // A chord that begins with the same key still works.
    screen(&state, &mut view, "g g", SIZE);
    assert_eq!(view.resources.selection.index, 0);
    // By name, too.
    commands(&mut view, &state, ":");
    "list".chars().for_each(|c| drop(update(&mut view, Input::Key(Key::char(c)), &state)));
    assert_eq!(run(&commands(&mut view, &state, "enter")).title, "list");
}

#[test]
fn a_command_says_why_it_does_not_start_and_asks_where_it_is_to() {
    let mut pods = command("logs", Some("ctrl-t"), &["stern {name}"]);
    pods.kinds = vec!["pod".to_owned()];
    let mut asks = command("restart", Some("ctrl-y"), &["kubectl", "rollout", "restart", "{kind}/{name}"]);
    (asks.confirm, asks.background) = (true, true);
    let mut state = with(vec![pods, asks]);
    let mut view = ViewState::default();
    screen(&state, &mut view, "", SIZE);
    assert_eq!(commands(&mut view, &state, "ctrl-t"), []);
    assert_eq!(view.told.message.as_deref(), Some("logs: it is for pod, and none is selected"));
    assert_eq!(commands(&mut view, &state, "ctrl-y"), []);
    assert!(text(&screen(&state, &mut view, "", SIZE)).contains("Run kubectl rollout restart Memcached/"));
    assert_eq!(commands(&mut view, &state, "enter n"), [], "enter alone runs nothing");
    commands(&mut view, &state, "ctrl-y");
    let asked = commands(&mut view, &state, "y");
    assert!(
        matches!(asked.as_slice(), [Command::Request(_, Request::Task(Task::Project(ProjectTask::Run { program })))] if !program.in_front),
        "{asked:?}"
    );
    // Where writes are held back it does not start.
    let at = jiff::Timestamp::UNIX_EPOCH;
    state.reduce(Event::ProtectionChanged(ProtectionChanged { at, protection: Protection::ReadOnly }));
    assert_eq!(commands(&mut view, &state, "ctrl-y"), []);
    assert!(
        view.told.message.as_deref().unwrap().starts_with("restart: writes are held back"),
        "{:?}",
        view.told.message
    );
    // The help names it, and two keys of which one begins the other are told.
    commands(&mut view, &state, "? / r e s t a r t");
    let shown = text(&screen(&state, &mut view, "", SIZE));
    assert!(shown.contains("Your own") && shown.contains("restart: kubectl rollout"), "{shown}");
    let clash = [command("one", Some("g e"), &["a"]), command("two", Some("g"), &["b"])];
    let mut view = ViewState::default();
    view.refresh(&with(clash.to_vec()));
    expect!["✗ config.yaml:2:3: the keys of the commands one and two cannot both be typed"]
        .assert_eq(&view.look.following.told().unwrap()[0]);
    let mut view = ViewState::default();
    view.refresh(&with(vec![command("out", Some("ctrl-c"), &["a"])]));
    expect!["✗ config.yaml:2:3: ctrl-c of the command out works whatever is open, and stays"]
        .assert_eq(&view.look.following.told().unwrap()[0]);
    // A key that is none is told with its place.
    let state = with(vec![command("odd", Some("hyper-x"), &["a"])]);
    let mut view = ViewState::default();
    view.refresh(&state);
    let told = view.look.following.told().unwrap();
    expect!["✗ config.yaml:2:3: `hyper-x` of the command odd is no key"].assert_eq(&told[0]);
    assert!(view.keys.own.is_empty());
    commands(&mut view, &state, "g x");
    expect!["own commands: your config.yaml has no commands; docs/keys.md shows how to write one"]
        .assert_eq(view.told.message.as_deref().unwrap());
}

/// The name that a line for `sh` gives, whatever the user's quotes and the name are.
#[test]
fn no_name_becomes_a_part_of_the_line() {
    let name = "a'; echo b \"$(echo c)\" \\";
    for (line, wanted) in [
        ("printf %s {name}", name.to_owned()),
        ("printf %s \"x {name}\"", format!("x {name}")),
        ("printf %s 'x {name}'y", format!("x {name}y")),
        ("printf %s \\'{name}", format!("'{name}")),
        // A shell begins new quotes inside: the name falls apart there, and is still not run.
        ("printf %s \"$(printf %s \"{name}\")\"", name.replace(' ', "")),
    ] {
        let mut state = with(vec![command("own", Some("ctrl-t"), &[line])]);
        let mut view = ViewState::default();
        screen(&state, &mut view, "", SIZE);
        let seen = view.subject(&state).unwrap().clone();
        let mut object = serde_json::Value::clone(&seen.object);
        object["metadata"]["name"] = name.into();
        object["metadata"]["uid"] = "another".into();
        let object_ref =
            ObjectRef { name: name.to_owned(), uid: Some("another".to_owned()), ..seen.object_ref.clone() };
        let seen = ObjectSeen {
            at: jiff::Timestamp::UNIX_EPOCH,
            object_ref: object_ref.clone(),
            metadata_only: false,
            object: Body::new(&object),
        };
        state.reduce(Event::ObjectSeen(seen));
        view.refresh(&state);
        view.go_to(&object_ref.key(), &state);
        assert_eq!(view.subject(&state).unwrap().key.name, name);
        let asked = commands(&mut view, &state, "ctrl-t");
        let program = run(&asked);
        let mut shell = std::process::Command::new(&program.command[0]);
        shell.args(&program.command[1..]).envs(program.env.iter().cloned());
        let printed = String::from_utf8(shell.output().unwrap().stdout).unwrap();
        assert_eq!(printed, wanted, "{line} as {:?}", program.command);
    }
}

#[test]
fn a_shell_and_ports_need_containers() {
    let state = busy();
    let mut view = ViewState::default();
    screen(&state, &mut view, "j 2", SIZE);
    assert_eq!(commands(&mut view, &state, "g s"), []);
    expect!["shell: the embedded control plane plays the life of pods and runs no containers; there is no shell in one"]
    .assert_eq(view.told.message.as_deref().unwrap());
    assert_eq!(commands(&mut view, &state, "g f"), []);
    expect!["forward: the embedded control plane runs no containers; nothing listens on its pods"]
        .assert_eq(view.told.message.as_deref().unwrap());

    let state = real(events());
    let mut view = ViewState::default();
    screen(&state, &mut view, "", SIZE);
    let of_project = |key: &&Arc<ObjectKey>| key.kind == "Pod" && tree::root_of(&state, key).is_some();
    let pod = state.objects.keys().find(of_project).unwrap().clone();
    view.go_to(&pod, &state);
    assert_eq!(view.subject(&state).map(|seen| seen.key.as_ref()), Some(pod.as_ref()));
    let name = view.subject(&state).unwrap().key.name.clone();
    let asked = commands(&mut view, &state, "g s");
    let words = run(&asked).command.join(" ");
    assert!(
        words.starts_with(&format!("kubectl --context kind-dev exec -it -n default {name} -- sh -c ")),
        "{words}"
    );
    commands(&mut view, &state, "g f");
    "9090:80".chars().for_each(|c| drop(update(&mut view, Input::Key(Key::char(c)), &state)));
    let asked = commands(&mut view, &state, "enter");
    let [Command::Request(_, Request::Task(Task::Project(ProjectTask::Run { program })))] = asked.as_slice()
    else {
        panic!("{asked:?}")
    };
    assert_eq!(
        program.command.join(" "),
        format!("kubectl --context kind-dev port-forward -n default pod/{name} 9090:80")
    );
    assert_eq!(program.title, format!("forward 127.0.0.1:9090 to Pod {name}:80"));
    commands(&mut view, &state, ":");
    "forward 80:x".chars().for_each(|c| drop(update(&mut view, Input::Key(Key::char(c)), &state)));
    assert_eq!(commands(&mut view, &state, "enter"), []);
    assert_eq!(view.told.message.as_deref(), Some("forward: 80:x is no port such as 8080 or 8080:80"));
}

#[test]
fn the_lines_of_the_detail_pane_are_saved_and_copied() {
    let state = busy();
    let mut view = ViewState::default();
    screen(&state, &mut view, "j y", SIZE);
    assert_eq!((view.focus, view.detail.tab), (Pane::Detail, Tab::YAML));
    let asked = commands(&mut view, &state, "g w");
    let [
        Command::Request(
            _,
            Request::Task(Task::Project(ProjectTask::SaveText { path: None, name, text: saved })),
        ),
    ] = asked.as_slice()
    else {
        panic!("{asked:?}")
    };
    assert!(name.starts_with("yaml-") && name.ends_with(".yaml"), "{name}");
    assert!(saved.contains("kind: Memcached") && saved.ends_with('\n'), "{saved}");
    commands(&mut view, &state, ":");
    "save out/a.yaml".chars().for_each(|c| drop(update(&mut view, Input::Key(Key::char(c)), &state)));
    let asked = commands(&mut view, &state, "enter");
    assert!(
        matches!(asked.as_slice(), [Command::Request(_, Request::Task(Task::Project(ProjectTask::SaveText { path: Some(path), .. })))]
            if path == "out/a.yaml"),
        "{asked:?}"
    );
    let asked = commands(&mut view, &state, "c o");
    assert!(
        matches!(asked.as_slice(), [Command::Copy(text)] if text.contains("kind: Memcached")),
        "{asked:?}"
    );
}
