//! The supervisor by itself, with limits of its own: what takes too long is told, and what a build lacks is
//! mended.

use crate::inner_loop::Opdev;
use expect_test::expect;
use opdev_cluster::Choice;
use opdev_event::sink::EventSink;
use opdev_event::{Event, Level, Notice, ProcessChanged, ProcessState, TraceLevel};
use opdev_program::{Ask, Awaited, Environment, Limits, Supervisor};
use opdev_project::program::detect::detect;
use opdev_project::program::settings::Settings;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

/// As long as anything may take before a test gives up; a build may have to compile all that it imports.
const PATIENCE: Duration = Duration::from_secs(900);
const NEVER: Duration = Duration::from_secs(86_400);

struct World {
    root: PathBuf,
    ask: mpsc::Sender<Ask>,
    calls: Arc<AtomicU64>,
    events: mpsc::Receiver<Event>,
    stop: CancellationToken,
    task: JoinHandle<anyhow::Result<()>>,
    _folder: tempfile::TempDir,
    _ready: watch::Sender<Result<Arc<Environment>, Awaited>>,
}

/// Supervises what these settings name in a folder that `prepare` fills.
fn start(settings: &Settings, limits: Limits, prepare: impl FnOnce(&Path)) -> World {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().canonicalize().unwrap();
    prepare(&root);
    let plan = detect(&root, Some(settings), false).unwrap().unwrap();
    let (events_in, events) = EventSink::channel(1024);
    let (ask, asked) = mpsc::channel(16);
    let (ready_in, ready) = watch::channel(Ok(Arc::default()));
    let calls = Arc::new(AtomicU64::new(0));
    let supervisor = Supervisor {
        plan,
        root: root.clone(),
        folder: root.join(".opdev"),
        cache: root.join(".opdev/inject"),
        events: events_in,
        traced: None,
        tells: None,
        missing: mpsc::channel(16).0,
        asked,
        ready,
        before_build: None,
        before_start: Arc::new(|_| Box::pin(async {})),
        starts: watch::channel(None).0,
        calls: Some(Arc::clone(&calls)),
        limits,
    };
    let stop = CancellationToken::new();
    let task = tokio::spawn(supervisor.run(stop.clone()));
    World { root, ask, calls, events, stop, task, _folder: folder, _ready: ready_in }
}

impl World {
    /// The next event that `pick` takes; those before it are gone.
    async fn next<T>(&mut self, what: &str, pick: impl Fn(&Event) -> Option<T>) -> T {
        let look = async {
            loop {
                let event = self.events.recv().await.expect("the supervisor has ended");
                if let Some(found) = pick(&event) {
                    return found;
                }
            }
        };
        tokio::time::timeout(PATIENCE, look).await.unwrap_or_else(|_| panic!("waited for {what} in vain"))
    }

    async fn notice(&mut self, text: &str) -> Notice {
        self.next(text, |event| match event {
            Event::Noticed(notice) if notice.message.contains(text) => Some(notice.clone()),
            _ => None,
        })
        .await
    }

    async fn running(&mut self) -> Arc<ProcessChanged> {
        self.next("a start", |event| match event {
            Event::ProcessChanged(run) if matches!(run.state, ProcessState::Running { .. }) => {
                Some(Arc::clone(run))
            }
            _ => None,
        })
        .await
    }

    async fn logged(&mut self, text: &str) {
        self.next(text, |event| match event {
            Event::Log(line) if line.message.contains(text) => Some(()),
            _ => None,
        })
        .await;
    }

    async fn saved(&self, file: &str) {
        let files = vec![self.root.join(file)];
        self.ask.send(Ask::Saved { files, at: Instant::now() }).await.unwrap();
    }

    async fn end(self) {
        self.stop.cancel();
        self.task.await.unwrap().unwrap();
    }
}

fn shell(script: &str) -> Settings {
    let command = ["bash", script].map(str::to_owned).to_vec();
    Settings { command: Some(command), watch: Some(vec!["*.sh".to_owned()]), ..Settings::default() }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_long_build_is_told_once_and_goes_on() {
    let build = Some(["bash", "build.sh"].map(str::to_owned).to_vec());
    let limits = Limits { long_build: Duration::from_millis(50), first_call: NEVER };
    let mut world = start(&Settings { build, ..shell("op.sh") }, limits, |root| {
        std::fs::write(root.join("op.sh"), "echo up; exec sleep 1000\n").unwrap();
        // It ends once the test has opened the other end.
        std::fs::write(root.join("build.sh"), "mkfifo gate; read -r _ < gate\n").unwrap();
    });
    let notice = world.notice("the build of").await;
    assert_eq!(notice.message, "the build of bash op.sh has been running for 50 ms");
    expect!["the first build of a large Go project takes minutes; a save ends this one and begins the next"]
        .assert_eq(&notice.hint.unwrap());
    let gate = world.root.join("gate");
    tokio::task::spawn_blocking(move || std::fs::write(gate, "open\n")).await.unwrap().unwrap();
    let next = world.next("the start", |event| match event {
        Event::Noticed(notice) => Some(Some(notice.message.clone())),
        Event::ProcessChanged(run) if matches!(run.state, ProcessState::Running { .. }) => Some(None),
        _ => None,
    });
    assert_eq!(next.await, None, "it was told twice");
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_program_that_calls_somebody_else_is_told_and_one_that_calls_is_not() {
    let other = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let (address, port) = (other.local_addr().unwrap().to_string(), other.local_addr().unwrap().port());
    let limits = Limits { long_build: NEVER, first_call: Duration::from_millis(300) };
    let script = |word: &str| format!("exec 3<>/dev/tcp/127.0.0.1/{port}\necho {word}\nread -r _ <&3\n");
    let mut world =
        start(&shell("op.sh"), limits, |root| std::fs::write(root.join("op.sh"), script("first")).unwrap());
    world.logged("first").await;
    let notice = world.notice("without a call").await;
    assert!(
        notice.message.starts_with("bash op.sh has run for 300 ms without a call to the API server"),
        "{}",
        notice.message
    );
    // Where the system shows it.
    if Path::new("/proc/self/fd").exists() {
        assert!(notice.message.ends_with(&format!("it is connected to {address}")), "{}", notice.message);
    }
    let hint = notice.hint.unwrap();
    assert!(hint.contains("KUBECONFIG") && hint.contains("--kubeconfig"), "{hint}");

    // The next one calls, and is not told although it has grown old.
    let calls = Arc::clone(&world.calls);
    let calling = tokio::spawn(async move {
        let mut often = tokio::time::interval(Duration::from_millis(5));
        loop {
            often.tick().await;
            calls.fetch_add(1, Ordering::Relaxed);
        }
    });
    std::fs::write(world.root.join("op.sh"), "sleep 1\necho old\nexec sleep 1000\n").unwrap();
    world.saved("op.sh").await;
    world.running().await;
    let next = world.next("its age", |event| match event {
        Event::Noticed(notice) => Some(Some(notice.message.clone())),
        Event::Log(line) if line.message.contains("old") => Some(None),
        _ => None,
    });
    assert_eq!(next.await, None);
    calling.abort();
    // The one after that does not call again.
    std::fs::write(world.root.join("op.sh"), script("third")).unwrap();
    world.saved("op.sh").await;
    world.logged("third").await;
    world.notice("without a call").await;
    world.end().await;
}

/// A sum that go.sum lacks is reported, and once it is there the program is traced as much as any other.
#[tokio::test(flavor = "multi_thread")]
#[cfg_attr(not(go), ignore = "needs Go")]
async fn a_sum_that_go_sum_lacks_costs_no_trace() {
    let from = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/reference/controller-runtime/fleet");
    let sums = std::fs::read_to_string(from.join("go.sum")).unwrap();
    let lacking: String = sums
        .lines()
        .filter(|line| !line.starts_with("sigs.k8s.io/controller-runtime v0.24.1 h1:"))
        .map(|line| format!("{line}\n"))
        .collect();
    assert_ne!(lacking, sums);
    let limits = Limits { long_build: NEVER, first_call: NEVER };
    let settings = Settings { go: Some(".".to_owned()), ..Settings::default() };
    let mut world = start(&settings, limits, |root| {
        for name in ["go.mod", "main.go"] {
            std::fs::copy(from.join(name), root.join(name)).unwrap();
        }
        std::fs::write(root.join("go.sum"), &lacking).unwrap();
    });
    let found = world
        .next("a broken build", |event| match event {
            Event::ReloadFailed(failed) if failed.build => Some(failed.diagnostics.clone()),
            _ => None,
        })
        .await;
    assert!(found[0].message.contains("missing go.sum entry"), "{found:?}");
    assert!(found[0].hint.is_some(), "{found:?}");
    std::fs::write(world.root.join("go.sum"), &sums).unwrap();
    world.saved("go.sum").await;
    let run = world.running().await;
    assert_eq!(run.traced, Some(TraceLevel::Full));
    world.end().await;
}

/// A save that compiles and ends at once leaves the operator without a program; the last one that has run
/// goes on instead.
#[tokio::test(flavor = "multi_thread")]
#[cfg_attr(not(go), ignore = "needs Go")]
async fn a_program_that_ends_at_once_gives_way_to_the_last_one_that_ran() {
    let main = |body: &str| {
        format!(
            "package main\n\nimport (\n\t\"fmt\"\n\t\"time\"\n)\n\nfunc main() {{\n\t{body}\n\ttime.Sleep(time.Hour)\n}}\n"
        )
    };
    let limits = Limits { long_build: NEVER, first_call: NEVER };
    let settings = Settings { go: Some(".".to_owned()), ..Settings::default() };
    let mut world = start(&settings, limits, |root| {
        std::fs::write(root.join("go.mod"), "module example.com/x\n\ngo 1.21\n").unwrap();
        std::fs::write(root.join("main.go"), main("fmt.Println(\"the first one\")")).unwrap();
        std::fs::create_dir_all(root.join(".opdev/bin")).unwrap();
    });
    world.logged("the first one").await;
    std::fs::write(world.root.join("main.go"), main("panic(fmt.Sprint(\"no such index\"))")).unwrap();
    world.saved("main.go").await;
    let found = world
        .next("a word about the program that ends", |event| match event {
            Event::ReloadFailed(failed) if failed.build => Some(failed.clone()),
            _ => None,
        })
        .await;
    let what = &found.diagnostics[0];
    expect!["it is built and ends at once (exit code 2): panic: no such index"].assert_eq(&what.message);
    assert_eq!(found.files, ["main.go"]);
    world.logged("the first one").await;
    std::fs::write(world.root.join("main.go"), main("fmt.Println(\"the third one\")")).unwrap();
    world.saved("main.go").await;
    world.logged("the third one").await;
    world.end().await;
}

/// Through the whole of `opdev run`, with its own limit.
#[tokio::test(flavor = "multi_thread")]
async fn a_program_with_a_kubeconfig_of_its_own_is_told_what_to_do() {
    let embedded = Choice { embedded: true, ..Choice::default() };
    let opdev = Opdev::start_against(embedded, |root| {
        std::fs::write(root.join("opdev.yaml"), "operator: { command: [sh, op.sh], stopAfter: 1s }\n").unwrap();
        let script = "export KUBECONFIG=/elsewhere/config\nwhile :; do echo \"reconciles with $KUBECONFIG\"; sleep 0.2; done\n";
        std::fs::write(root.join("op.sh"), script).unwrap();
    })
    .await;
    let notice = opdev
        .wait_within(Duration::from_secs(60), "a word about it", 0, |event| match event {
            Event::Noticed(notice) if notice.message.contains("without a call") => Some(notice.clone()),
            _ => None,
        })
        .await;
    assert_eq!(
        notice.message,
        "sh op.sh has run for 15 s without a call to the API server that opdev gives it"
    );
    assert_eq!(notice.level, Level::Warn);
    opdev.stop().await;
}

const GO_MAIN: &str = "package main\n\nimport _ \"example.com/nowhere\"\n\nfunc main() {}\n";

/// Why a Go program cannot be built here, and what to do, in the first diagnostic of the first build.
async fn no_build(go_mod: &str, env: &[(&str, &str)]) -> (String, String) {
    let env = env.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    let settings = Settings { go: Some(".".to_owned()), env, ..Settings::default() };
    let limits = Limits { long_build: NEVER, first_call: NEVER };
    let mut world = start(&settings, limits, |root| {
        std::fs::write(root.join("go.mod"), go_mod).unwrap();
        std::fs::write(root.join("go.sum"), "example.com/nowhere v1.0.0 h1:x\n").unwrap();
        std::fs::write(root.join("main.go"), GO_MAIN).unwrap();
    });
    let found = world
        .next("a broken build", |event| match event {
            Event::ReloadFailed(failed) if failed.build => Some(failed.diagnostics[0].clone()),
            _ => None,
        })
        .await;
    world.end().await;
    (found.message, found.hint.unwrap_or_default())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_machine_without_go_is_told_what_to_do() {
    let (message, hint) = no_build("module example.com/demo\n\ngo 1.21\n", &[("PATH", "/nowhere")]).await;
    assert!(message.starts_with("the go command does not run: go cannot be started"), "{message}");
    expect!["install Go from https://go.dev/dl, and start opdev where `go` is in PATH"].assert_eq(&hint);
}

#[tokio::test(flavor = "multi_thread")]
#[cfg_attr(not(go), ignore = "needs Go")]
async fn a_machine_with_another_go_or_without_a_network_is_told_what_to_do() {
    let (message, hint) = no_build("module example.com/demo\n\ngo 1.999\n", &[]).await;
    assert!(message.contains("requires go >= 1.999"), "{message}");
    assert!(hint.starts_with("install this version of Go"), "{hint}");
    let cache = tempfile::tempdir().unwrap();
    let path = cache.path().display().to_string();
    let requires = "module example.com/demo\n\ngo 1.21\n\nrequire example.com/nowhere v1.0.0\n";
    let offline = [("GOPROXY", "off"), ("GOMODCACHE", path.as_str()), ("GOFLAGS", "-mod=mod")];
    let (message, hint) = no_build(requires, &offline).await;
    expect!["module lookup disabled by GOPROXY=off"].assert_eq(&message);
    expect!["the module is not in the module cache and cannot be fetched: go online once and run `go mod download`"]
    .assert_eq(&hint);
}
