//! The control plane beside the real one: ready time, memory, requests per second, how late a watch is.
//! `cargo bench -p opdev-controlplane --bench controlplane`. `OPDEV_REFERENCE` names the program of
//! `tests/reference/kubernetes`; without it only ours is measured. `OPDEV_BENCH_OBJECTS` lists the numbers of
//! objects at which memory is read (10000,100000), `OPDEV_BENCH_ONLY` a part of the name of the servers to
//! measure, `OPDEV_BENCH_PARTS` the requests to time, separated by commas (creates first: the others need its
//! objects).
//!
//! Both servers run as processes of their own (ours is this program again), both are asked by the same client
//! over TLS. Absolute numbers: compare only what one run prints.
#![allow(clippy::unwrap_used, clippy::print_stdout, clippy::disallowed_methods, missing_docs)]

mod plane;

use futures::{AsyncBufReadExt as _, TryStreamExt as _};
use http::Request;
use kube::Client;
use opdev_controlplane::{Config, ControlPlane, Controllers};
use plane::{client, get, many, runtime, send, serve};
use serde_json::{Value, json};
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

const REQUESTS: usize = 4_000;
const WATCHERS: usize = 100;
const WATCHED_WRITES: usize = 200;

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    if arguments.get(1).is_some_and(|word| word == "serve") {
        return runtime().block_on(serve(config(arguments.get(2).map(PathBuf::from))));
    }
    let only = std::env::var("OPDEV_BENCH_ONLY").unwrap_or_default();
    let reference = std::env::var_os("OPDEV_REFERENCE").map(PathBuf::from);
    runtime().block_on(async {
        for (name, disk) in [("in process, in memory", false), ("in process, on disk", true)] {
            if name.contains(&only) {
                in_process(name, disk).await;
            }
        }
        for (name, disk) in [("ours, in memory", false), ("ours, on disk", true)] {
            if name.contains(&only) {
                Server::ours(disk).await.measure(name).await;
            }
        }
        for (name, fsync) in [("reference, fsync", true), ("reference, no fsync", false)] {
            if let Some(program) = reference.as_deref().filter(|_| name.contains(&only)) {
                Server::reference(program, fsync).await.measure(name).await;
            }
        }
    });
}

/// Without the controllers of workloads; in a folder or in memory.
fn config(data_dir: Option<PathBuf>) -> Config {
    let mut config = Config::default();
    config.controllers = Controllers::ClusterOnly;
    config.data_dir = data_dir;
    config
}

struct Server {
    client: Client,
    child: Child,
    ready: Duration,
    folder: tempfile::TempDir,
    reference: bool,
}

/// Where there is a disk behind it: `/tmp` may be memory.
fn folder() -> tempfile::TempDir {
    let target = std::env::current_exe().unwrap();
    tempfile::tempdir_in(target.parent().unwrap()).unwrap()
}

impl Server {
    async fn ours(disk: bool) -> Server {
        let folder = folder();
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.arg("serve").stdin(Stdio::piped()).stdout(Stdio::piped());
        if disk {
            command.arg(folder.path().join("data"));
        }
        let began = Instant::now();
        let mut child = command.spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        let kubeconfig: String = serde_json::from_str(&line).unwrap();
        let client = client(&kubeconfig).await;
        client.request_text(get("/readyz")).await.unwrap();
        Server { client, child, ready: began.elapsed(), folder, reference: false }
    }

    async fn reference(program: &Path, fsync: bool) -> Server {
        let folder = folder();
        let dir = folder.path().join("reference");
        let began = Instant::now();
        let mut child = Command::new(program)
            .args(["up", "--controllers=false", "--pods=false", "--dir"])
            .arg(&dir)
            .arg(format!("--fsync={fsync}"))
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        let mut lines = BufReader::new(child.stdout.as_mut().unwrap());
        while !line.starts_with("ready after") {
            line.clear();
            assert!(lines.read_line(&mut line).unwrap() > 0, "the reference did not start");
        }
        let ready = began.elapsed();
        let client = client(&std::fs::read_to_string(dir.join("kubeconfig")).unwrap()).await;
        Server { client, child, ready, folder, reference: true }
    }

    /// Resident memory of the process and its children.
    fn memory(&self) -> u64 {
        let id = self.child.id();
        let mut processes = vec![id];
        for entry in std::fs::read_dir("/proc").unwrap().flatten() {
            let Ok(other) = entry.file_name().to_string_lossy().parse::<u32>() else { continue };
            let stat = std::fs::read_to_string(format!("/proc/{other}/stat")).unwrap_or_default();
            let parent =
                stat.rsplit(')').next().and_then(|rest| rest.split_whitespace().nth(1)?.parse().ok());
            if parent == Some(id) {
                processes.push(other);
            }
        }
        let resident = |id: &u32| {
            let status = std::fs::read_to_string(format!("/proc/{id}/status")).unwrap_or_default();
            let line = status.lines().find(|line| line.starts_with("VmRSS:"))?;
            line.split_whitespace().nth(1)?.parse::<u64>().ok()
        };
        processes.iter().filter_map(resident).sum::<u64>() / 1024
    }

    async fn measure(mut self, name: &str) {
        println!("{name}: ready {:.1} ms, empty {} MB", self.ready.as_secs_f64() * 1e3, self.memory());
        requests(name, &self.client).await;
        definition(name, &self.client).await;
        fan_out(name, &self.client).await;
        let numbers = std::env::var("OPDEV_BENCH_OBJECTS").unwrap_or_else(|_| "10000,100000".to_owned());
        let mut there = 0;
        for wanted in numbers.split(',').filter_map(|number| number.parse::<usize>().ok()) {
            let begun = Instant::now();
            many(&self.client, there..wanted, create).await;
            let rate = (wanted - there) as f64 / begun.elapsed().as_secs_f64();
            there = wanted;
            println!("{name}: {wanted} objects {} MB (made at {rate:.0} a second)", self.memory());
        }
        drop(self.child.stdin.take());
        if self.reference {
            let id = self.child.id().to_string();
            assert!(Command::new("kill").arg(id).status().unwrap().success());
        }
        self.child.wait().unwrap();
        drop(self.folder);
    }
}

async fn in_process(name: &str, disk: bool) {
    let folder = folder();
    let config = config(disk.then(|| folder.path().to_owned()));
    let begun = Instant::now();
    let plane = ControlPlane::start_with(config).await.unwrap();
    println!("{name}: ready {:.1} ms", begun.elapsed().as_secs_f64() * 1e3);
    requests(name, &plane.client()).await;
    definition(name, &plane.client()).await;
    fan_out(name, &plane.client()).await;
    plane.stop().await;
}

const MAPS: &str = "/api/v1/namespaces/default/configmaps";

fn config_map(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": name, "labels": {"app": "bench", "tier": "data"}},
        "data": {"settings": "x".repeat(512), "n": "0"}})
}

fn create(n: usize) -> Request<Vec<u8>> {
    send("POST", MAPS, "application/json", &config_map(&format!("object-{n}")))
}

/// Returns true if this part is to be timed.
fn wanted(part: &str) -> bool {
    let parts = std::env::var("OPDEV_BENCH_PARTS").unwrap_or_default();
    parts.is_empty() || parts.split(',').any(|named| part.contains(named))
}

async fn requests(name: &str, client: &Client) {
    let rate = async |what: &str, count: usize, request: fn(usize) -> Request<Vec<u8>>| {
        if !wanted(what) {
            return;
        }
        let begun = Instant::now();
        many(client, 0..count, request).await;
        println!("{name}: {what:<28} {:8.0} a second", count as f64 / begun.elapsed().as_secs_f64());
    };
    rate("creates", REQUESTS, |n| send("POST", MAPS, "application/json", &config_map(&format!("timed-{n}"))))
        .await;
    rate("gets", REQUESTS, |n| get(&format!("{MAPS}/timed-{n}"))).await;
    rate("lists of 500", 50, |_| get(&format!("{MAPS}?limit=500"))).await;
    rate("patches", REQUESTS, |n| {
        let path = format!("{MAPS}/timed-{n}");
        send("PATCH", &path, "application/merge-patch+json", &json!({"data": {"n": "1"}}))
    })
    .await;
    rate("applies", REQUESTS, |n| {
        let path = format!("{MAPS}/timed-{n}?fieldManager=bench&force=true");
        let mut object = config_map(&format!("timed-{n}"));
        object["data"]["n"] = Value::from("2");
        send("PATCH", &path, "application/apply-patch+yaml", &object)
    })
    .await;
    rate("deletes", REQUESTS, |n| {
        send("DELETE", &format!("{MAPS}/timed-{n}"), "application/json", &json!({}))
    })
    .await;
}

/// From the request that creates a definition to the first list of its objects.
async fn definition(name: &str, client: &Client) {
    if !wanted("definition") {
        return;
    }
    let mut times = Vec::new();
    for n in 0..10 {
        let schema = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
        let (plural, kind) = (format!("things{n}"), format!("Thing{n}"));
        let object = json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": format!("{plural}.bench.example.com")},
            "spec": {"group": "bench.example.com", "scope": "Namespaced",
                "names": {"plural": plural, "kind": kind},
                "versions": [{"name": "v1", "served": true, "storage": true,
                    "schema": {"openAPIV3Schema": schema}}]}});
        let begun = Instant::now();
        let path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
        client.request_text(send("POST", path, "application/json", &object)).await.unwrap();
        let path = format!("/apis/bench.example.com/v1/namespaces/default/{plural}");
        while client.request_text(get(&path)).await.is_err() {}
        times.push(begun.elapsed());
    }
    told(name, "definition to served", times);
}

/// From the start of a write to the moment each of the watchers has its event.
async fn fan_out(name: &str, client: &Client) {
    if !wanted("watchers") {
        return;
    }
    let begun = Instant::now();
    let list: Value =
        serde_json::from_str(&client.request_text(get(&format!("{MAPS}?limit=1"))).await.unwrap()).unwrap();
    let from = list["metadata"]["resourceVersion"].as_str().unwrap().to_owned();
    let mut watchers = tokio::task::JoinSet::new();
    let ready = Arc::new(tokio::sync::Barrier::new(WATCHERS + 1));
    for _ in 0..WATCHERS {
        let (client, ready) = (client.clone(), ready.clone());
        let path = format!("{MAPS}?watch=true&resourceVersion={from}");
        watchers.spawn(async move {
            let mut lines = client.request_stream(get(&path)).await.unwrap().lines();
            ready.wait().await;
            let mut seen = Vec::new();
            while seen.len() < WATCHED_WRITES {
                let line = lines.try_next().await.unwrap().unwrap();
                let at = begun.elapsed();
                let event: Value = serde_json::from_str(&line).unwrap();
                let sent: u64 = event["object"]["data"]["sent"].as_str().unwrap().parse().unwrap();
                seen.push(at.saturating_sub(Duration::from_nanos(sent)));
            }
            seen
        });
    }
    ready.wait().await;
    let mut pace = tokio::time::interval(Duration::from_millis(20));
    for n in 0..WATCHED_WRITES {
        pace.tick().await;
        let mut object = config_map(&format!("watched-{n}"));
        object["data"] = json!({"sent": begun.elapsed().as_nanos().to_string()});
        client.request_text(send("POST", MAPS, "application/json", &object)).await.unwrap();
    }
    let mut times = Vec::new();
    while let Some(seen) = watchers.join_next().await {
        times.extend(seen.unwrap());
    }
    told(name, &format!("write to {WATCHERS} watchers"), times);
}

fn told(name: &str, what: &str, mut times: Vec<Duration>) {
    times.sort();
    let at = |percent: usize| times[(times.len() - 1) * percent / 100].as_secs_f64() * 1e3;
    println!("{name}: {what:<28} p50 {:.2} ms, p99 {:.2} ms", at(50), at(99));
}
