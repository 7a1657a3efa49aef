//! The screen in a real terminal: frames, keys, signals, and the terminal given back whatever happens.
//! The first tests run the terminal alone, over a state made of events, in this very test binary; the last ones run
//! `opdev run` on a copy of the demo project.

use crate::gadget::{RECONCILER, TYPES, gadgets};
use crate::inner_loop::demo_project;
use crate::pty::Pty;
use opdev::event::{
    Cluster, Event, KindHealth, KindStatus, ObjectSeen, Request, RequestFinished, RequestOutcome, Sample,
    SourcesChanged, Started,
};
use opdev::state::State;
use opdev::tui::{TuiInput, run};
use opdev_object::meta::{Gvk, ObjectRef};
use portable_pty::CommandBuilder;
use rustix::process::Signal;
use serde_json::json;
use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{mpsc, watch};
use tokio_util::sync::CancellationToken;

const SIZE: (u16, u16) = (120, 36);
const MODE: &str = "OPDEV_TEST_TERMINAL";

/// This test binary, running `program` in a terminal.
fn start(mode: &str) -> Pty {
    let mut command = CommandBuilder::new(std::env::current_exe().unwrap());
    command.args(["--exact", "terminal::program", "--nocapture", "--test-threads=1"]);
    command.env(MODE, mode);
    Pty::start(command, SIZE)
}

fn reference() -> ObjectRef {
    ObjectRef {
        gvk: Gvk::new("cache.my.domain", "v1alpha1", "Memcached"),
        namespace: Some("default".to_owned()),
        name: "sample".to_owned(),
        uid: None,
    }
}

fn first_state() -> State {
    let at = jiff::Timestamp::now();
    let mut state = State::default();
    let cluster = Cluster {
        name: "embedded".to_owned(),
        embedded: true,
        version: "v1.36.0".to_owned(),
        ..Cluster::default()
    };
    let project = "memcached-operator".to_owned();
    state.reduce(Event::Started(Arc::new(Started { at, project, cluster, ..Started::default() })));
    state.reduce(Event::SourcesChanged(Arc::new(SourcesChanged {
        at,
        sources: 1,
        files: vec![],
        kinds: vec![KindStatus {
            gvk: reference().gvk,
            plural: "memcacheds".to_owned(),
            source: "charts/memcached".to_owned(),
            scale: String::new(),
            health: KindHealth::Serving,
        }],
        diagnostics: vec![],
        samples: vec![Sample { path: "samples/memcached.yaml".to_owned(), object: reference() }],
        affected: vec![],
    })));
    state
}

/// Answers requests: an apply makes an object, quit stops.
async fn answer(
    snapshots: watch::Sender<Arc<State>>,
    mut requests: mpsc::Receiver<(u64, Request)>,
    shutdown: CancellationToken,
) {
    let mut state = first_state();
    while let Some((id, request)) = requests.recv().await {
        match request {
            Request::Quit => return shutdown.cancel(),
            Request::Apply { path } => {
                let object = json!({"apiVersion": "cache.my.domain/v1alpha1", "kind": "Memcached",
                    "metadata": {"name": "sample", "namespace": "default"}});
                let seen = ObjectSeen { object_ref: reference(), object: Arc::new(object) };
                state.reduce(Event::ObjectSeen(seen));
                let outcome = RequestOutcome::Done { summary: format!("applied {path}"), warnings: vec![] };
                let what = "apply".to_owned();
                let (at, took) = (jiff::Timestamp::now(), Duration::from_millis(3));
                state.reduce(Event::RequestFinished(RequestFinished { id, at, what, outcome, took }));
                snapshots.send_replace(Arc::new(state.clone()));
            }
            other => panic!("{other:?}"),
        }
    }
}

/// Not a test of its own: what the tests below run in a terminal. Does nothing without their say.
#[test]
fn program() {
    let Ok(mode) = std::env::var(MODE) else { return };
    let (snapshots, watched) = watch::channel(Arc::new(first_state()));
    let (sender, requests) = mpsc::channel(8);
    let shutdown = CancellationToken::new();
    // As opdev's own hook does: nothing is printed but for the threads that the process ends with.
    let usual = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        if std::thread::current().name() != Some("worker") {
            usual(info);
        }
    }));
    let first_frame: Box<dyn FnOnce(std::time::Instant) + Send> = match mode.as_str() {
        "panic" => Box::new(|_| panic!("forced in the terminal's thread")),
        "panic elsewhere" => Box::new(|_| {
            std::thread::Builder::new()
                .name("worker".to_owned())
                .spawn(|| panic!("forced elsewhere"))
                .unwrap();
        }),
        _ => Box::new(|_| {}),
    };
    let token = shutdown.clone();
    let answers = std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(answer(snapshots, requests, token));
    });
    let shown =
        run(TuiInput { snapshots: watched, requests: sender, shutdown, first_frame: Some(first_frame) });
    answers.join().unwrap();
    println!("the terminal is back");
    shown.unwrap();
}

#[test]
fn keys_become_requests_and_requests_show() {
    let mut pty = start("show");
    pty.wait_for("Press a to apply a sample");
    pty.keys("a");
    pty.wait_for("type to narrow");
    pty.keys("\r");
    pty.wait_for("✓ applied samples/memcached.yaml");
    pty.wait_without("Press a to apply a sample");
    pty.resize((80, 24));
    pty.wait_for("[1 Custom resources]");
    pty.resize((20, 5));
    pty.wait_for("opdev needs");
    pty.resize(SIZE);
    pty.wait_for("Owned");
    pty.keys("q");
    assert!(pty.wait_exit().success(), "{}", pty.screen());
    pty.assert_restored();
    assert!(pty.raw().contains("\u{1b}[?2026h"), "frames are synchronized");
}

#[test]
fn the_terminal_is_given_back_after_signals() {
    for signal in [Signal::TERM, Signal::INT, Signal::HUP] {
        let mut pty = start("show");
        pty.wait_for("Custom resources");
        pty.signal(signal);
        assert!(pty.wait_exit().success(), "{signal:?}: {}", pty.screen());
        pty.assert_restored();
    }
}

#[test]
fn ctrl_c_leaves_even_with_a_dialog_open() {
    let mut pty = start("show");
    pty.wait_for("Custom resources");
    pty.keys("?");
    pty.wait_for("esc closes");
    pty.keys("\u{3}");
    assert!(pty.wait_exit().success());
    pty.assert_restored();
}

#[test]
fn the_terminal_is_given_back_after_a_panic() {
    let mut pty = start("panic");
    assert!(!pty.wait_exit().success());
    pty.assert_restored();
    let told = pty.raw();
    assert!(told.contains("forced in the terminal's thread"), "{told}");
    assert!(told.contains("the terminal is back"), "the panic came back as an error:\n{told}");
}

#[test]
fn a_panic_elsewhere_is_told_on_the_screen_and_after_it() {
    let mut pty = start("panic elsewhere");
    pty.wait_for("a part of opdev panicked: forced elsewhere");
    pty.keys("\u{1b}");
    pty.wait_without("a part of opdev panicked");
    pty.keys("q");
    assert!(pty.wait_exit().success());
    pty.assert_restored();
    let screen = pty.screen();
    assert!(screen.contains("forced elsewhere"), "{screen}");
    assert!(screen.contains("(thread worker)"), "{screen}");
}

#[cfg(target_os = "linux")]
#[test]
fn a_stopped_job_leaves_the_terminal_to_the_shell_and_takes_it_back() {
    let stopped = |pid: i32| {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        stat.rsplit(") ").next().is_some_and(|rest| rest.starts_with('T'))
    };
    for by_key in [false, true] {
        let mut pty = start("show");
        pty.wait_for("Custom resources");
        if by_key {
            pty.keys("\u{1a}");
        } else {
            pty.signal(Signal::TSTP);
        }
        pty.wait_until("a screen given back", |screen| !screen.alternate_screen() && !screen.hide_cursor());
        let start = std::time::Instant::now();
        while !stopped(pty.pid()) {
            assert!(start.elapsed() < Duration::from_secs(30), "does not stop");
            std::thread::yield_now();
        }
        pty.signal(Signal::CONT);
        pty.wait_until("a screen taken back", |screen| {
            screen.alternate_screen() && screen.contents().contains("Custom resources")
        });
        pty.keys("q");
        assert!(pty.wait_exit().success());
        pty.assert_restored();
    }
}

fn opdev(project: &Path) -> Pty {
    let mut command = CommandBuilder::new(env!("CARGO_BIN_EXE_opdev"));
    command.args(["run", "--embedded"]);
    command.cwd(project);
    Pty::start(command, SIZE)
}

fn edit(path: &Path, change: impl Fn(&str) -> String) {
    let text = fs::read_to_string(path).unwrap();
    let changed = change(&text);
    assert_ne!(text, changed, "the edit of {} changes nothing", path.display());
    fs::write(path, changed).unwrap();
}

/// How many lines of the screen hold a text.
fn lines(screen: &vt100::Screen, text: &str) -> usize {
    screen.contents().lines().filter(|line| line.contains(text)).count()
}

#[test]
fn a_session_from_the_first_sample_to_quit() {
    let (_folder, project) = demo_project();
    let mut pty = opdev(&project);
    pty.wait_for("to apply a sample");
    pty.keys("a");
    pty.wait_for("type to narrow");
    pty.keys("memcached-sample\r");
    pty.wait_until("three running pods, installed", |screen| {
        lines(screen, " Running ") == 3 && lines(screen, "installed") >= 1 && lines(screen, "● 3/3") == 1
    });
    let template = project.join("charts/memcached/templates/deployment.yaml");
    let good = fs::read_to_string(&template).unwrap();
    edit(&template, |text| text.replace("--conn-limit=", "--max-conns="));
    pty.wait_for("deployment.yaml saved → live in");
    pty.wait_for("edit deployment.yaml");
    // Broken: the place is on the screen, and what served serves on. Mended: the message is gone.
    edit(&template, |text| text.replacen("{{", "{{ nope", 1));
    pty.wait_for("✗ charts/memcached/templates/deployment.yaml:");
    pty.wait_for("keep serving");
    fs::write(&template, good).unwrap();
    pty.wait_without("keep serving");
    pty.keys("s");
    pty.wait_for("replicas  3");
    pty.keys("5\r");
    pty.wait_until("five running pods", |screen| {
        lines(screen, " Running ") == 5 && lines(screen, "● 5/5") == 1
    });
    pty.wait_for(".spec.replicaCount 3→5 (opdev)");
    pty.keys("D");
    pty.wait_for("[ Cancel ]");
    pty.keys("\t");
    pty.wait_for("[ Delete ]");
    pty.keys("\r");
    pty.wait_for("to apply a sample");
    pty.keys("q");
    assert!(pty.wait_exit().success(), "{}", pty.screen());
    pty.assert_restored();
}

#[test]
fn types_and_reconcilers_are_saved_held_and_answered() {
    let (_folder, project) = demo_project();
    gadgets(&project);
    let mut pty = opdev(&project);
    pty.wait_for("to apply a sample");
    pty.keys("a");
    pty.wait_for("type to narrow");
    pty.keys("gadget\r");
    pty.wait_until("two children", |screen| lines(screen, "○ ConfigMap top-") == 2);
    let types = project.join(TYPES);
    let good = fs::read_to_string(&types).unwrap();

    // A value in use goes: the question names object and field, and undoing the edit clears it.
    edit(&types, |text| text.replace("gold;silver", "silver"));
    pty.wait_until("the question", |screen| {
        let text = screen.contents();
        ["Gadget held", "BREAK", "Gadget default/top .spec.tier", "[ Discard ]"]
            .iter()
            .all(|part| text.contains(part))
    });
    fs::write(&types, &good).unwrap();
    pty.wait_without("Gadget held");

    // Half-typed: placed, and what served serves on.
    edit(&types, |text| text.replace("Size int32 `json:\"size\"`", "Size int32 `json:"));
    pty.wait_for("✗ config/types/v1alpha1/gadget_types.go:");
    pty.wait_for("keep serving");
    fs::write(&types, &good).unwrap();
    pty.wait_without("keep serving");

    // A new field is live at once.
    edit(&types, |text| {
        text.replace(
            "}\n\n// GadgetStatus",
            "\n\tNote string `json:\"note,omitempty\"`\n}\n\n// GadgetStatus",
        )
    });
    pty.wait_for("gadget_types.go saved → CRD live in");

    // A reconciler that would delete waits for a second, deliberate key.
    edit(&project.join(RECONCILER), |text| text.replace(", map(\"two\", 2)]", "]"));
    pty.wait_for("Switch all the same");
    pty.keys("\t");
    pty.wait_for("[ Switch all the same ]");
    pty.keys("\r");
    pty.wait_until("one child", |screen| lines(screen, "○ ConfigMap top-") == 1);
    pty.keys("q");
    assert!(pty.wait_exit().success(), "{}", pty.screen());
    pty.assert_restored();
}

#[test]
fn sigterm_ends_a_session_in_good_order() {
    let (_folder, project) = demo_project();
    let mut pty = opdev(&project);
    pty.wait_for("to apply a sample");
    pty.signal(Signal::TERM);
    pty.wait_exit();
    pty.assert_restored();
}
