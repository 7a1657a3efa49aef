//! The cost of many custom resources and a long day for `opdev run --embedded`: a process of its own on a
//! copy of the demo's Memcached chart; its memory, the processor time it used, and how long each step took.
//!
//! `cargo bench --bench many -- saves 500`: so many Memcached are created, three saves of a template, a start
//! on that store. `cargo bench --bench many -- day 10 3600`: ten Memcached, a patch of `replicaCount` every
//! 500 ms, for so many seconds. `cargo bench --bench many -- idle 30 3600`: thirty Memcached, and nothing
//! happens. `OPDEV_MANY_PROGRAMS=before=/path/to/opdev,now=/path/to/opdev` measures several programs, one
//! after the other.
//!
//! Absolute numbers: compare only what one run prints. Linux only: memory and processor time are read from
//! `/proc`.
#![allow(clippy::unwrap_used, clippy::print_stdout, missing_docs)]

mod used;

use kube::Client;
use serde_json::{Value, json};
use std::collections::HashSet;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};
use used::{Use, used};

const MEMCACHED: &str = "/apis/cache.my.domain/v1alpha1/namespaces/default/memcacheds";
const SAVES: usize = 3;
/// How many requests are on their way at once.
const CLIENTS: usize = 16;

fn main() {
    let words: Vec<String> = std::env::args().skip(1).filter(|word| word != "--bench").collect();
    let number = |at: usize, otherwise: usize| {
        words.get(at).map_or(otherwise, |word| word.parse().expect("a number of objects, or of seconds"))
    };
    let seconds = Duration::from_secs(number(2, 60) as u64);
    let named = std::env::var("OPDEV_MANY_PROGRAMS")
        .unwrap_or_else(|_| format!("this program={}", env!("CARGO_BIN_EXE_opdev")));
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    for (name, program) in named.split(',').filter_map(|pair| pair.split_once('=')) {
        let project = Project::new(name, Path::new(program));
        runtime.block_on(async {
            match words.first().map_or("saves", String::as_str) {
                "saves" => project.saves(number(1, 100)).await,
                "day" => project.day(number(1, 10), seconds).await,
                "idle" => project.idle(number(1, 30), seconds).await,
                other => panic!("`{other}` is not one of saves, day, idle"),
            }
        });
    }
}

/// A folder with the Memcached chart, and the program that is measured on it.
struct Project<'a> {
    name: &'a str,
    program: &'a Path,
    folder: tempfile::TempDir,
}

impl<'a> Project<'a> {
    fn new(name: &'a str, program: &'a Path) -> Self {
        let folder = tempfile::tempdir().unwrap();
        copy(
            &Path::new(env!("CARGO_MANIFEST_DIR")).join("charts/memcached"),
            &folder.path().join("charts/memcached"),
        );
        let watches =
            "- group: cache.my.domain\n  version: v1alpha1\n  kind: Memcached\n  chart: charts/memcached\n";
        std::fs::write(folder.path().join("watches.yaml"), watches).unwrap();
        Project { name, program, folder }
    }

    /// The first screen of a large project, a save that concerns all of it, and the next morning.
    async fn saves(&self, count: usize) {
        println!("{}: {count} Memcached", self.name);
        let run = Run::start(self, true).await;
        run.told("empty, API ready", run.since(), run.begun);
        let (before, begun) = (run.used(), Instant::now());
        run.create(count).await;
        run.told("created", before, begun);
        run.all_ready(count).await;
        run.told("all pods ready, since the first create", before, begun);
        run.settle().await;
        run.told("  settled", before, begun);
        let template = self.folder.path().join("charts/memcached/templates/deployment.yaml");
        for save in 0..SAVES {
            let (before, begun) = (run.used(), Instant::now());
            let text = std::fs::read_to_string(&template).unwrap();
            let (old, new) =
                if save % 2 == 0 { ("conn-limit", "max-conns") } else { ("max-conns", "conn-limit") };
            assert!(text.contains(old));
            let beside = template.with_extension("yaml~");
            std::fs::write(&beside, text.replace(old, new)).unwrap();
            std::fs::rename(&beside, &template).unwrap();
            run.seen.wait(|seen| seen.reloads > save);
            run.told("save of a template, live for all", before, begun);
            run.all_ready(count).await;
            run.settle().await;
            run.told("  its pods ready, and settled", before, begun);
        }
        run.stop();
        let run = Run::start(self, false).await;
        let none = run.since();
        run.told("next start, API ready", none, run.begun);
        run.seen.wait(|seen| seen.reconciled.len() >= count);
        run.told("next start, all reconciled", none, run.begun);
        run.settle().await;
        run.told("  settled", none, run.begun);
        run.stop();
    }

    /// Steady work: one of them gets another number of replicas every half second.
    async fn day(&self, count: usize, long: Duration) {
        println!("{}: {count} Memcached, one of them changed every 500 ms", self.name);
        let run = Run::start(self, true).await;
        run.create(count).await;
        run.all_ready(count).await;
        run.settle().await;
        let begun = Instant::now();
        run.told("at rest", run.since(), begun);
        let mut pace = tokio::time::interval(Duration::from_millis(500));
        let (mut before, mut minutes) = (run.used(), 0);
        for change in 0.. {
            pace.tick().await;
            let body = json!({"spec": {"replicaCount": 1 + change / count % 3}});
            let path = format!("{MEMCACHED}/cache-{}", change % count);
            run.send("PATCH", &path, "application/merge-patch+json", &body).await;
            if begun.elapsed().as_secs() / 60 > minutes || begun.elapsed() >= long {
                minutes = begun.elapsed().as_secs() / 60;
                run.told(&format!("after {} s", begun.elapsed().as_secs()), before, begun);
                before = run.used();
            }
            if begun.elapsed() >= long {
                break;
            }
        }
        run.stop();
    }

    /// Nothing happens.
    async fn idle(&self, count: usize, long: Duration) {
        println!("{}: {count} Memcached at rest", self.name);
        let run = Run::start(self, true).await;
        run.create(count).await;
        run.all_ready(count).await;
        run.settle().await;
        let begun = Instant::now();
        let (mut before, first) = (run.used(), run.used());
        run.told("at rest", before, begun);
        while begun.elapsed() < long {
            tokio::time::sleep(Duration::from_secs(60).min(long - begun.elapsed())).await;
            run.told(&format!("after {} s", begun.elapsed().as_secs()), before, begun);
            before = run.used();
        }
        let share = 100.0 * (run.used().processor - first.processor) / begun.elapsed().as_secs_f64();
        println!("{}: {share:.3} % of a core", self.name);
        run.stop();
    }
}

/// One `opdev run` of the project.
struct Run<'a> {
    name: &'a str,
    child: Child,
    client: Client,
    seen: Arc<Seen>,
    begun: Instant,
}

impl Drop for Run<'_> {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

impl<'a> Run<'a> {
    async fn start(project: &'a Project<'_>, fresh: bool) -> Self {
        let root = project.folder.path();
        let begun = Instant::now();
        let mut command = Command::new(project.program);
        command.args(["run", "--embedded", "--json=compact", "--project"]).arg(root);
        if fresh {
            command.arg("--fresh");
        }
        // A message that an older build does not know must not end the measurement: its messages are seen.
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap();
        let seen = Arc::new(Seen::default());
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let reader = Arc::clone(&seen);
        std::thread::spawn(move || lines.map_while(Result::ok).for_each(|line| reader.note(&line)));
        seen.wait(|seen| seen.started);
        let kubeconfig = kube::config::Kubeconfig::read_from(root.join(".opdev/kubeconfig")).unwrap();
        let config = kube::Config::from_custom_kubeconfig(kubeconfig, &Default::default()).await.unwrap();
        let client = Client::try_from(config).unwrap();
        client.request_text(http::Request::get("/readyz").body(Vec::new()).unwrap()).await.unwrap();
        Run { name: project.name, child, client, seen, begun }
    }

    async fn send(&self, method: &str, path: &str, kind: &str, body: &Value) {
        let body = serde_json::to_vec(body).unwrap();
        let request =
            http::Request::builder().method(method).uri(path).header("content-type", kind).body(body);
        self.client.request_text(request.unwrap()).await.unwrap();
    }

    async fn create(&self, count: usize) {
        // The kind is served a moment after the start.
        while self.client.request_text(http::Request::get(MEMCACHED).body(Vec::new()).unwrap()).await.is_err()
        {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        let one = |first: usize| async move {
            for n in (first..count).step_by(CLIENTS) {
                let object = json!({"apiVersion": "cache.my.domain/v1alpha1", "kind": "Memcached",
                    "metadata": {"name": format!("cache-{n}")}, "spec": {"replicaCount": 1}});
                self.send("POST", MEMCACHED, "application/json", &object).await;
            }
        };
        futures::future::join_all((0..CLIENTS).map(one)).await;
    }

    /// Waits until each of them has a Deployment whose pods of the newest template are all available.
    async fn all_ready(&self, count: usize) {
        let list = || http::Request::get("/apis/apps/v1/namespaces/default/deployments").body(Vec::new());
        loop {
            let deployments: Value = self.client.request(list().unwrap()).await.unwrap();
            let is_ready = |deployment: &&Value| {
                let (wanted, status) = (&deployment["spec"]["replicas"], &deployment["status"]);
                status["observedGeneration"] == deployment["metadata"]["generation"]
                    && [&status["replicas"], &status["updatedReplicas"], &status["availableReplicas"]]
                        .iter()
                        .all(|has| *has == wanted)
            };
            let ready = deployments["items"].as_array().unwrap().iter().filter(is_ready).count();
            if ready >= count {
                return;
            }
            // A list is not free: it is asked for more rarely while there is much to wait for.
            tokio::time::sleep(Duration::from_millis(50 + (count - ready) as u64)).await;
        }
    }

    /// Waits until the program has used nearly no processor time for a second.
    async fn settle(&self) {
        let mut before = self.used().processor;
        let mut quiet = 0;
        while quiet < 4 {
            tokio::time::sleep(Duration::from_millis(250)).await;
            let now = self.used().processor;
            quiet = if now - before < 0.021 { quiet + 1 } else { 0 };
            before = now;
        }
    }

    /// The use of the program at its start.
    fn since(&self) -> Use {
        Use { processor: 0.0, ..self.used() }
    }

    fn used(&self) -> Use {
        used(self.child.id())
    }

    fn told(&self, what: &str, before: Use, begun: Instant) {
        let (name, now, took) = (self.name, self.used(), begun.elapsed().as_secs_f64());
        println!(
            "{name}: {what:<38} {:7.1} MB (peak {:7.1}) {:7.2} s of processor {took:7.2} s",
            now.resident,
            now.peak,
            now.processor - before.processor
        );
    }

    /// Ends it as a user does, so that its store is whole.
    fn stop(mut self) {
        drop(Command::new("kill").arg(self.child.id().to_string()).status());
        drop(self.child.wait());
    }
}

/// The events of the program.
#[derive(Default)]
struct Seen {
    events: Mutex<Events>,
    changed: Condvar,
}

#[derive(Default)]
struct Events {
    started: bool,
    reloads: usize,
    reconciled: HashSet<String>,
}

impl Seen {
    fn note(&self, line: &str) {
        let is = |event: &str| line.contains(&format!("\"event\":\"{event}\""));
        let mut events = self.events.lock().unwrap();
        if is("started") {
            events.started = true;
        } else if is("reloadSettled") {
            events.reloads += 1;
        } else if is("reconciled") {
            let line: Value = serde_json::from_str(line).unwrap();
            events.reconciled.extend(line["object"]["name"].as_str().map(str::to_owned));
        }
        self.changed.notify_all();
    }

    fn wait(&self, until: impl Fn(&Events) -> bool) {
        drop(self.changed.wait_while(self.events.lock().unwrap(), |events| !until(events)).unwrap());
    }
}

fn copy(from: &Path, to: &PathBuf) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let to = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &to);
        } else {
            std::fs::copy(entry.path(), &to).unwrap();
        }
    }
}
