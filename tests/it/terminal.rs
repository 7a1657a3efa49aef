//! The screen in a real terminal: frames, keys, signals, and the terminal given back whatever happens.
//! The tests here run the terminal alone, over a state made of events, in this very test binary; those of the
//! modules below run `opdev run` on a copy of the demo project, one file for each kind of flow.

mod acting;
mod background;
mod editing;
mod finding;
mod leaving;
mod logs;
mod lost;
mod rights;
mod runs;
mod seeing;
mod sleeping;
mod switching;

use crate::pty::Pty;
use opdev_event::{
    Body, Cluster, Event, KindHealth, KindStatus, ObjectSeen, ObjectTask, Request, RequestFinished,
    RequestOutcome, Sample, SessionRequest, SourcesChanged, Started, Task,
};
use opdev_object::meta::{Gvk, ObjectRef};
use opdev_state::State;
use opdev_tui::{TuiInput, run};
use portable_pty::CommandBuilder;
use rustix::process::Signal;
use serde_json::json;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{mpsc, watch};
use tokio_util::sync::CancellationToken;

const SIZE: (u16, u16) = (120, 36);
const MODE: &str = "OPDEV_TEST_TERMINAL";

/// Applies a sample by its keys.
fn apply(pty: &mut Pty, sample: &str) {
    pty.keys("a");
    pty.wait_for("type to narrow");
    pty.keys(sample);
    pty.keys("\r");
}

/// Waits for the demo's first screen, and installs the Memcached of its samples.
fn with_sample(pty: &mut Pty) {
    pty.wait_for("to apply a sample");
    apply(pty, "memcached-sample");
    pty.wait_until("three running pods", |screen| {
        runs::lines(screen, " Running ") == 3 && runs::lines(screen, " 3/3") >= 2
    });
}

/// Quits by its key; the terminal is as it was.
fn quit(mut pty: Pty) {
    pty.keys("q");
    assert!(pty.wait_exit().success(), "{}", pty.screen());
    pty.assert_restored();
}

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
        removed: false,
        kinds: vec![KindStatus {
            gvk: reference().gvk,
            plural: "memcacheds".to_owned(),
            source: "charts/memcached".to_owned(),
            scale: String::new(),
            columns: Vec::new(),
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
            Request::Session(SessionRequest::Quit { .. }) => return shutdown.cancel(),
            Request::Task(Task::Object(ObjectTask::Apply { path })) => {
                let object = json!({"apiVersion": "cache.my.domain/v1alpha1", "kind": "Memcached",
                    "metadata": {"name": "sample", "namespace": "default"}});
                let at = jiff::Timestamp::now();
                let object = Body::new(&object);
                let seen = ObjectSeen { at, object_ref: reference(), metadata_only: false, object };
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
    pty.wait_for("[1 Custom resources");
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
