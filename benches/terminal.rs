//! The numbers of the terminal: from a key and from a watch event to the frame, big lists, floods of log
//! lines, what it costs to do nothing. `cargo bench --bench terminal [NAME…]`; absolute times, so compare
//! only runs of one machine.
#![allow(clippy::unwrap_used, clippy::print_stdout, dead_code, missing_docs)]

#[path = "../tests/it/pty.rs"]
mod pty;

use jiff::Timestamp;
use opdev_event::sink::EventSink;
use opdev_event::{
    Body, Call, Cause, CauseKind, Event, KindHealth, KindStatus, Level, LogLine, ObjectSeen, Outcome,
    Reconcile, SourcesChanged, Started,
};
use opdev_findings::Findings;
use opdev_inner_loop::bus;
use opdev_object::meta::{Gvk, ObjectRef};
use opdev_panes::keys::chord::Key;
use opdev_state::State;
use opdev_tui::{Input, ViewState, draw, update};
use portable_pty::CommandBuilder;
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio_util::sync::CancellationToken;

const GROUP: &str = "cache.my.domain";

fn main() {
    let wanted: Vec<String> = std::env::args().skip(1).filter(|arg| !arg.starts_with('-')).collect();
    let all: [(&str, fn()); 5] =
        [("rows", rows), ("pods", pods), ("log", log), ("memory", memory), ("idle", idle)];
    for (name, bench) in all {
        if wanted.is_empty() || wanted.iter().any(|wanted| wanted == name) {
            bench();
        }
    }
}

fn print(what: &str, times: &mut [Duration]) {
    times.sort();
    let ms = |share: f64| times[((times.len() - 1) as f64 * share) as usize].as_secs_f64() * 1e3;
    println!("{what:<52} p50 {:7.2} ms   p99 {:7.2}   max {:7.2}", ms(0.5), ms(0.99), ms(1.0));
}

fn reference(object: &Value) -> ObjectRef {
    ObjectRef::of(object).unwrap()
}

#[allow(clippy::needless_pass_by_value)] // objects are written where they are used
fn seen(object: Value) -> Event {
    Event::ObjectSeen(ObjectSeen {
        at: Timestamp::now(),
        object_ref: reference(&object),
        metadata_only: false,
        object: Body::new(&object),
    })
}

fn custom(i: usize, size: usize) -> Value {
    let ready = if i.is_multiple_of(97) { "False" } else { "True" };
    json!({"apiVersion": format!("{GROUP}/v1alpha1"), "kind": "Memcached",
        "metadata": {"name": format!("cache-{i:06}"), "namespace": format!("team-{:02}", i % 20),
            "uid": format!("cr-{i}"), "resourceVersion": size.to_string(), "generation": 1,
            "creationTimestamp": "2026-03-01T17:00:00Z", "labels": {"app": "memcached", "shard": (i % 7).to_string()}},
        "spec": {"replicaCount": size, "image": {"repository": "memcached", "tag": "1.6"}},
        "status": {"conditions": [{"type": "Ready", "status": ready, "reason": "AsWanted", "message": "all is well"}]}})
}

fn child(kind: &str, api: &str, name: &str, owner: (&str, &str, &str), rest: &Value) -> Value {
    let (owner_api, owner_kind, owner_name) = owner;
    let mut object = json!({"apiVersion": api, "kind": kind, "metadata": {"name": name, "namespace": "team-00",
        "uid": format!("{kind}-{name}"), "creationTimestamp": "2026-03-01T17:00:00Z",
        "labels": {"app": "memcached", "pod-template-hash": "6fd7c98d8"},
        "ownerReferences": [{"apiVersion": owner_api, "kind": owner_kind, "name": owner_name,
            "uid": if owner_kind == "Memcached" { "cr-0".to_owned() } else { format!("{owner_kind}-{owner_name}") },
            "controller": true}]}});
    for (key, value) in rest.as_object().unwrap() {
        object[key] = value.clone();
    }
    object
}

fn start() -> Vec<Event> {
    let at = Timestamp::now();
    let started = Started { at, project: "bench".to_owned(), all_namespaces: true, ..Started::default() };
    let kinds = vec![KindStatus {
        gvk: Gvk::new(GROUP, "v1alpha1", "Memcached"),
        plural: "memcacheds".to_owned(),
        source: "charts/memcached".to_owned(),
        scale: String::new(),
        columns: Vec::new(),
        health: KindHealth::Serving,
    }];
    let sources = SourcesChanged {
        at,
        sources: 1,
        files: vec![],
        removed: false,
        kinds,
        diagnostics: vec![],
        samples: vec![],
        affected: vec![],
    };
    vec![Event::Started(Arc::new(started)), Event::SourcesChanged(Arc::new(sources))]
}

fn state_of(rows: usize) -> State {
    let mut state = State::default();
    start().into_iter().for_each(|event| state.reduce(event));
    (0..rows).for_each(|i| state.reduce(seen(custom(i, 3))));
    state
}

struct Screen {
    terminal: Terminal<TestBackend>,
    view: ViewState,
}

impl Screen {
    fn new() -> Screen {
        Screen { terminal: Terminal::new(TestBackend::new(200, 60)).unwrap(), view: ViewState::default() }
    }

    fn draw(&mut self, state: &State) {
        let view = &mut self.view;
        self.terminal.draw(|frame| draw(state, view, frame, Timestamp::now())).unwrap();
    }

    fn key(&mut self, state: &State, key: &str) -> Duration {
        let key = Key::parse(key).unwrap();
        let begun = Instant::now();
        update(&mut self.view, Input::Key(key), state);
        self.draw(state);
        begun.elapsed()
    }

    fn text(&self) -> String {
        self.terminal.backend().buffer().content().iter().map(ratatui::buffer::Cell::symbol).collect()
    }
}

/// The keys of everyday work: moving, paging, panes, a filter, a jump.
const KEYS: &str = "j j j k pgdn pgdn pgup G home j tab tab tab tab 3 4 1 y 1 / c a c h e - 0 0 1 enter j j esc \
                    ctrl-p c a c h e space 0 0 0 4 2 enter 1 j down down up ? esc : r e l o a d esc z z";
/// Keys that look at every row: another order, only faults.
const WHOLE: &str = "S I S S S S f f S I f";

fn rows() {
    for count in [1_000, 10_000, 100_000] {
        let mut state = state_of(count);
        let mut screen = Screen::new();
        screen.draw(&state);
        let mut times = Vec::new();
        let mut by_key: BTreeMap<&str, Duration> = BTreeMap::new();
        for _ in 0..12 {
            for key in KEYS.split_whitespace() {
                let took = screen.key(&state, key);
                let slowest = by_key.entry(key).or_default();
                *slowest = took.max(*slowest);
                times.push(took);
            }
        }
        print(&format!("key to frame, {count} rows"), &mut times);
        let mut slowest: Vec<(Duration, &str)> = by_key.into_iter().map(|(key, took)| (took, key)).collect();
        slowest.sort_unstable_by(|a, b| b.cmp(a));
        let slowest =
            slowest.iter().take(5).map(|(took, key)| format!("{key} {:.1}", took.as_secs_f64() * 1e3));
        println!("{:<52} the slowest keys: {}", "", slowest.collect::<Vec<_>>().join(", "));
        let mut whole = Vec::new();
        for key in WHOLE.split_whitespace() {
            whole.push(screen.key(&state, key));
        }
        print(&format!("another order or only faults, {count} rows"), &mut whole);
        for key in ["f", "f"] {
            screen.key(&state, key);
        }
        let mut screen = Screen::new();
        screen.draw(&state);
        let mut times = Vec::new();
        for i in 0..600 {
            // The bus hands out a snapshot for each batch, and the screen holds the one before.
            let snapshot = Arc::new(state.clone());
            let event = match i % 3 {
                0 => custom(i * 37 % count, i),
                1 => custom(count + i, i),
                _ => child(
                    "Pod",
                    "v1",
                    &format!("pod-{}", i % 30),
                    (&format!("{GROUP}/v1alpha1"), "Memcached", "cache-000000"),
                    &json!({"spec": {"containers": [{"name": "c"}]}, "status": {"phase": "Running"}}),
                ),
            };
            let begun = Instant::now();
            state.reduce(seen(event));
            let next = Arc::new(state.clone());
            screen.draw(&next);
            times.push(begun.elapsed());
            drop(snapshot);
        }
        print(&format!("watch event to frame, {count} rows"), &mut times);
    }
}

fn pods() {
    const PODS: usize = 13_000;
    let api = format!("{GROUP}/v1alpha1");
    let mut events = start();
    events.push(seen(custom(0, 3)));
    for d in 0..13 {
        let (deployment, set) = (format!("web-{d}"), format!("web-{d}-6fd7c98d8"));
        let replicas = json!({"spec": {"replicas": 1000}, "status": {"replicas": 1000, "updatedReplicas": 1000, "readyReplicas": 1000}});
        events.push(seen(child(
            "Deployment",
            "apps/v1",
            &deployment,
            (&api, "Memcached", "cache-000000"),
            &replicas,
        )));
        events.push(seen(child(
            "ReplicaSet",
            "apps/v1",
            &set,
            ("apps/v1", "Deployment", &deployment),
            &replicas,
        )));
        for p in 0..PODS / 13 {
            let pod = json!({"spec": {"containers": [{"name": "memcached", "image": "memcached:1.6"}], "nodeName": "node-1"},
                "status": {"phase": "Running", "podIP": "10.0.0.1", "containerStatuses": [{"name": "memcached", "ready": true,
                    "restartCount": 0, "state": {"running": {"startedAt": "2026-03-01T17:00:00Z"}}}]}});
            events.push(seen(child(
                "Pod",
                "v1",
                &format!("{set}-{p:04}"),
                ("apps/v1", "ReplicaSet", &set),
                &pod,
            )));
        }
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let mut screen = Screen::new();
    let all = events.len() - 2;
    let begun = Instant::now();
    let (first, full, frames) = runtime.block_on(async {
        let (sink, incoming) = EventSink::channel(bus::CAPACITY);
        let mut bus = bus::start(
            State::default(),
            incoming,
            (None, None),
            (Findings::default(), None),
            CancellationToken::new(),
        );
        tokio::spawn(async move {
            for event in events {
                sink.emit(event).await;
            }
            std::future::pending::<()>().await;
        });
        let (mut first, mut frames) = (None, 0);
        loop {
            bus.snapshots.changed().await.unwrap();
            let state = Arc::clone(&bus.snapshots.borrow_and_update());
            screen.draw(&state);
            frames += 1;
            if first.is_none() && state.objects.len() > 100 {
                first = Some(begun.elapsed());
            }
            if state.objects.len() >= all {
                break (first.unwrap(), begun.elapsed(), frames);
            }
        }
    });
    println!("{:<52} {:7.2} ms", "13,000 pods: first rows on the screen", first.as_secs_f64() * 1e3);
    println!("{:<52} {:7.2} ms, {frames} frames", "13,000 pods: all of them", full.as_secs_f64() * 1e3);
    let mut state = State::default();
    start().into_iter().for_each(|event| state.reduce(event));
}

fn line(i: usize) -> LogLine {
    LogLine {
        at: Timestamp::now(),
        level: if i.is_multiple_of(50) { Level::Warn } else { Level::Info },
        target: "opdev::operator".to_owned(),
        message: format!("reconciled Memcached default/cache-{i} in 12 ms, 10 calls"),
        reconcile: None,
    }
}

fn log() {
    const A_SECOND: usize = 100_000;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let mut screen = Screen::new();
    let (mut times, state) = runtime.block_on(async {
        let (sink, incoming) = EventSink::channel(bus::CAPACITY);
        let mut bus = bus::start(
            State::default(),
            incoming,
            (None, None),
            (Findings::default(), None),
            CancellationToken::new(),
        );
        for event in start() {
            sink.emit(event).await;
        }
        let writer = std::thread::spawn(move || {
            let begun = Instant::now();
            for i in 0..A_SECOND * 10 {
                // A thousand lines at a time, ten milliseconds apart.
                if i % 1_000 == 0 {
                    let due = begun + Duration::from_millis(10) * u32::try_from(i / 1_000).unwrap();
                    std::thread::sleep(due.saturating_duration_since(Instant::now()));
                }
                sink.log(line(i));
            }
            begun.elapsed()
        });
        bus.snapshots.changed().await.unwrap();
        let first = Arc::clone(&bus.snapshots.borrow_and_update());
        screen.draw(&first);
        screen.key(&first, "L");
        let (mut times, mut state) = (Vec::new(), first);
        while bus.snapshots.changed().await.is_ok() {
            state = Arc::clone(&bus.snapshots.borrow_and_update());
            let begun = Instant::now();
            screen.draw(&state);
            times.push(begun.elapsed());
            tokio::time::sleep(Duration::from_millis(16)).await;
        }
        let took = writer.join().unwrap();
        println!(
            "{:<52} {:7.2} s, {} frames",
            "a million log lines, written in",
            took.as_secs_f64(),
            times.len()
        );
        (times, state)
    });
    print("frame of the log under the flood", &mut times);
    println!(
        "{:<52} {} seen, {} kept, {} dropped and counted",
        "",
        state.log.total,
        state.log.lines().len(),
        state.log.dropped
    );
}

/// Resident memory of a process, in megabytes.
fn resident(pid: &str) -> f64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<f64>().unwrap() / 1024.0
}

fn memory() {
    let before = resident("self");
    let mut state = State::default();
    start().into_iter().for_each(|event| state.reduce(event));
    let api = format!("{GROUP}/v1alpha1");
    for i in 0..2_500 {
        state.reduce(seen(custom(i, 3)));
        for p in 0..3 {
            let pod = json!({"spec": {"containers": [{"name": "c"}]}, "status": {"phase": "Running"}});
            let owner = format!("cache-{i:06}");
            state.reduce(seen(child(
                "Pod",
                "v1",
                &format!("pod-{i}-{p}"),
                (&api, "Memcached", &owner),
                &pod,
            )));
        }
    }
    // Twenty changes of each custom resource, each with a reconcile of ten calls.
    for round in 0..20_u64 {
        for i in 0..2_500_usize {
            state.reduce(seen(custom(i, usize::try_from(round).unwrap() + 4)));
            state.reduce(Event::Reconciled(Arc::new(reconcile(round * 2_500 + i as u64, i))));
        }
    }
    let mut screen = Screen::new();
    screen.draw(&state);
    let grown = resident("self") - before;
    println!(
        "{:<52} {grown:7.1} MB for {} objects, {} reconciles kept of {}",
        "memory with history",
        state.objects.len(),
        state.history.all().len(),
        state.history.total
    );
}

fn reconcile(id: u64, i: usize) -> Reconcile {
    let call = |n: u64| Call {
        verb: "patch".to_owned(),
        path: format!("/apis/apps/v1/namespaces/team-00/deployments/cache-{i:06}"),
        target: format!("Deployment cache-{i:06}"),
        start: Duration::from_millis(n),
        took: Duration::from_millis(1),
        status: 200,
        reason: None,
        place: None,
    };
    Reconcile {
        id,
        object: reference(&custom(i, 3)),
        causes: vec![Cause { at: Timestamp::now(), kind: CauseKind::Period }],
        sources: 1,
        at: Timestamp::now(),
        queued: Duration::ZERO,
        took: Duration::from_millis(12),
        steps: vec![],
        calls: (0..10).map(call).collect(),
        outcome: Outcome::Upgraded,
        status: vec![],
        objects: vec![],
        requeue: None,
        waiting: None,
        releases: vec![],
        failure: None,
        process: None,
    }
}

/// Processor time of a process so far, in seconds.
fn used(pid: i32) -> f64 {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let fields: Vec<&str> = stat.rsplit(") ").next().unwrap().split_whitespace().collect();
    // The kernel counts in hundredths of a second.
    (fields[11].parse::<f64>().unwrap() + fields[12].parse::<f64>().unwrap()) / 100.0
}

/// The real program in a terminal, left alone for a minute.
fn idle() {
    let folder = tempfile::tempdir().unwrap();
    let project = folder.path().join("project");
    std::fs::create_dir_all(project.join("config")).unwrap();
    std::fs::write(project.join("config/watches.yaml"), "[]\n").unwrap();
    let mut command = CommandBuilder::new(env!("CARGO_BIN_EXE_opdev"));
    command.args(["run", "--embedded"]);
    command.cwd(&project);
    let mut pty = pty::Pty::start(command, (120, 36));
    pty.wait_for("No kinds yet");
    // Until it has come to rest.
    let mut before = pty.raw().len();
    loop {
        std::thread::sleep(Duration::from_secs(3));
        if pty.raw().len() == before {
            break;
        }
        before = pty.raw().len();
    }
    let (cpu, bytes) = (used(pty.pid()), pty.raw().len());
    std::thread::sleep(Duration::from_secs(60));
    let cpu = used(pty.pid()) - cpu;
    println!(
        "{:<52} {:.2} % of a core, {} bytes written, {:.0} MB resident",
        "left alone for 60 s",
        cpu / 60.0 * 100.0,
        pty.raw().len() - bytes,
        resident(&pty.pid().to_string())
    );
    pty.keys("q");
    pty.wait_exit();
}
