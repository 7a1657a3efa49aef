//! The weight of a large cluster: pods and ConfigMaps of 8 KB each in a server of its own process; its
//! memory, the processor time it used, and how long each step took. `cargo bench -p opdev-controlplane
//! --bench weight
//! -- 1000 10000 30000` (numbers of pods; a third as many ConfigMaps come with them). `OPDEV_WEIGHT_SERVERS`
//! names other programs to measure beside this one, as in `before=/path/to/opdev,now=/path/to/opdev`: each is
//! started as `PROGRAM serve`; the real API server with etcd is `real=tests/reference/kubernetes/serve.py`.
//! `OPDEV_WEIGHT_DEPLOYMENTS=SECONDS` measures instead a plane with ten Deployments that are scaled twice a
//! second.
//!
//! Absolute numbers: compare only what one run prints. Linux only: memory and processor time are read from
//! `/proc`.
#![allow(clippy::unwrap_used, clippy::print_stdout, clippy::disallowed_methods, missing_docs)]

mod plane;
mod used;

use futures::{AsyncBufReadExt as _, TryStreamExt as _};
use http::Request;
use kube::Client;
use opdev_controlplane::Config;
use plane::{client, get, many, runtime, send, serve};
use serde_json::{Value, json};
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use used::{Use, used_by_tree};

const STATUS_UPDATES: usize = 3_100;
const READS: usize = 2_000;
const NAMESPACES: usize = 10;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if arguments.first().is_some_and(|word| word == "serve") {
        return runtime().block_on(serve(Config::default()));
    }
    let sizes: Vec<usize> = arguments.iter().filter_map(|word| word.parse().ok()).collect();
    let sizes = if sizes.is_empty() { vec![1_000] } else { sizes };
    let named = std::env::var("OPDEV_WEIGHT_SERVERS").unwrap_or_default();
    let mut programs: Vec<(String, Option<PathBuf>)> = named
        .split(',')
        .filter_map(|pair| pair.split_once('='))
        .map(|(name, path)| (name.to_owned(), Some(PathBuf::from(path))))
        .collect();
    if programs.is_empty() {
        programs.push(("this program".to_owned(), None));
    }
    let seconds = std::env::var("OPDEV_WEIGHT_DEPLOYMENTS").ok().and_then(|text| text.parse().ok());
    runtime().block_on(async {
        for (name, program) in &programs {
            match seconds {
                Some(seconds) => {
                    let server = Server::start(name, program.as_deref()).await;
                    server.deployments(Duration::from_secs(seconds)).await;
                }
                None => {
                    for size in &sizes {
                        Server::start(name, program.as_deref()).await.cluster(*size).await;
                    }
                }
            }
        }
    });
}

/// A server in a process of its own, which ends with it.
struct Server {
    name: String,
    client: Client,
    child: Child,
    _folder: tempfile::TempDir,
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

impl Server {
    async fn start(name: &str, program: Option<&Path>) -> Server {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("kubeconfig");
        let own = std::env::current_exe().unwrap();
        let mut command = Command::new(program.unwrap_or(&own));
        command.arg("serve").stdin(Stdio::piped()).stdout(Stdio::piped());
        if program.is_some() {
            command.arg("--kubeconfig").arg(&path);
        }
        let mut child = command.spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        lines.read_line(&mut line).unwrap();
        // Whatever else it prints must not fill the pipe.
        std::thread::spawn(move || lines.lines().count());
        let kubeconfig = if program.is_some() {
            std::fs::read_to_string(&path).unwrap()
        } else {
            serde_json::from_str(&line).unwrap()
        };
        let client = client(&kubeconfig).await;
        client.request_text(get("/readyz")).await.unwrap();
        Server { name: name.to_owned(), client, child, _folder: folder }
    }

    fn used(&self) -> Use {
        used_by_tree(self.child.id())
    }

    /// Does one step and prints what it took.
    async fn step(&self, what: &str, work: impl Future<Output = ()>) {
        let (before, begun) = (self.used(), Instant::now());
        work.await;
        self.told(what, before, begun);
    }

    fn told(&self, what: &str, before: Use, begun: Instant) {
        let (name, now, took) = (&self.name, self.used(), begun.elapsed().as_secs_f64());
        println!(
            "{name}: {what:<38} {:7.1} MB (peak {:7.1}) {:7.2} s of processor {took:7.2} s",
            now.resident,
            now.peak,
            now.processor - before.processor
        );
    }

    /// Waits until the server has used no processor time for a second.
    async fn settle(&self) {
        let mut before = self.used().processor;
        let mut quiet = 0;
        while quiet < 4 {
            tokio::time::sleep(Duration::from_millis(250)).await;
            let now = self.used().processor;
            quiet = if now - before < 0.011 { quiet + 1 } else { 0 };
            before = now;
        }
    }

    async fn cluster(self, pods: usize) {
        let client = &self.client;
        let maps = pods / 3;
        println!("{}: {pods} pods, {maps} ConfigMaps", self.name);
        self.step("empty", self.settle()).await;
        for n in 0..NAMESPACES {
            let namespace = json!({"metadata": {"name": format!("team-{n}")}});
            client.request_text(send("POST", "/api/v1/namespaces", JSON, &namespace)).await.unwrap();
            // Where no controller runs, nobody else makes it; pods want it.
            let account = json!({"metadata": {"name": "default"}});
            let path = format!("/api/v1/namespaces/team-{n}/serviceaccounts");
            drop(client.request_text(send("POST", &path, JSON, &account)).await);
        }
        self.step("pods and ConfigMaps created", async {
            many(client, 0..pods, |n| send("POST", &pods_of(n), JSON, &pod(n))).await;
            many(client, 0..maps, |n| send("POST", &maps_of(n), JSON, &config_map(n))).await;
        })
        .await;
        let one = client.request_text(get(&format!("{}/{}", pods_of(1), pod_name(1)))).await.unwrap();
        println!("{}: a stored pod has {} bytes of JSON", self.name, one.len());
        self.step("  settled", self.settle()).await;
        let updates = STATUS_UPDATES.min(pods);
        self.step("status updates", many(client, 0..updates, status_update)).await;
        self.step("  settled", self.settle()).await;
        self.step(
            "gets",
            many(client, 0..READS, move |n| get(&format!("{}/{}", pods_of(n % pods), pod_name(n % pods)))),
        )
        .await;
        self.step("pages of 500", many(client, 0..20, |_| get("/api/v1/pods?limit=500"))).await;
        self.step("lists of one namespace", many(client, 0..20, |n| get(&pods_of(n)))).await;
        self.step(
            "lists with a selector",
            many(client, 0..20, |_| get("/api/v1/pods?labelSelector=app%3Dapp-7")),
        )
        .await;
        self.step("Tables of 500", many(client, 0..10, table)).await;
        self.step("a list of all pods", async {
            drop(client.request_text(get("/api/v1/pods")).await.unwrap());
        })
        .await;
        self.step("a watch with all pods", watch_all(client, pods)).await;
        self.step("patches of pods", many(client, 0..READS.min(pods), patch)).await;
        self.step("applies of ConfigMaps", many(client, 0..READS.min(maps), apply)).await;
        self.step("  settled", self.settle()).await;
    }

    /// Ten Deployments, each of them scaled up and down in turn.
    async fn deployments(self, duration: Duration) {
        const PATH: &str = "/apis/apps/v1/namespaces/default/deployments";
        let client = &self.client;
        self.step("empty", self.settle()).await;
        many(client, 0..10, |n| send("POST", PATH, JSON, &deployment(n))).await;
        let begun = Instant::now();
        let (mut pace, mut minute) = (tokio::time::interval(Duration::from_millis(50)), 0);
        let mut before = self.used();
        let mut count = 0;
        while begun.elapsed() < duration {
            pace.tick().await;
            let body = json!({"spec": {"replicas": if count / 10 % 2 == 0 { 5 } else { 2 }}});
            let path = format!("{PATH}/web-{}", count % 10);
            client.request_text(send("PATCH", &path, MERGE, &body)).await.unwrap();
            count += 1;
            if begun.elapsed().as_secs() / 30 > minute {
                minute = begun.elapsed().as_secs() / 30;
                self.told(&format!("scaled for {} s", minute * 30), before, begun);
                before = self.used();
            }
        }
    }
}

const JSON: &str = "application/json";
const MERGE: &str = "application/merge-patch+json";

fn table(_: usize) -> Request<Vec<u8>> {
    let accept = "application/json;as=Table;v=v1;g=meta.k8s.io";
    Request::get("/api/v1/pods?limit=500").header("accept", accept).body(Vec::new()).unwrap()
}

fn pods_of(n: usize) -> String {
    format!("/api/v1/namespaces/team-{}/pods", n % NAMESPACES)
}

fn maps_of(n: usize) -> String {
    format!("/api/v1/namespaces/team-{}/configmaps", n % NAMESPACES)
}

/// Letters and digits that no two objects share.
fn noise(seed: usize, length: usize) -> String {
    let mut state = (seed as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        char::from(b"0123456789abcdefghijklmnopqrstuvwxyz"[(state % 36) as usize])
    };
    (0..length).map(|_| next()).collect()
}

fn pod_name(n: usize) -> String {
    format!("app-{}-{}-{}", n / 10 % 200, noise(n / 10 % 200, 9), noise(n, 5))
}

/// A pod of a stranger on somebody else's node: two containers, thirty environment variables, probes,
/// volumes.
fn pod(n: usize) -> Value {
    let app = format!("app-{}", n / 10 % 200);
    let environment: Vec<Value> = (0..30)
        .map(|at| match at % 5 {
            0 => json!({"name": format!("SERVICE_{at}_ENDPOINT"), "value": format!("http://{app}-backend-{at}.team.svc.cluster.local:8080/api/v{at}")}),
            1 => json!({"name": format!("CREDENTIAL_{at}"), "valueFrom": {"secretKeyRef": {"name": format!("{app}-secrets"), "key": format!("credential-{at}")}}}),
            _ => json!({"name": format!("FEATURE_{at}_SETTING"), "value": format!("{app}-{at}-{}", noise(n * 31 + at, 8))}),
        })
        .collect();
    let container = |name: &str, env: &[Value]| {
        json!({"name": name, "image": format!("registry.example.com/team/{app}/{name}:1.{}.0", n / 10 % 7), "env": env,
            "ports": [{"name": "http", "containerPort": 8080}, {"name": "metrics", "containerPort": 9090}],
            "resources": {"requests": {"cpu": "10m", "memory": "64Mi"}, "limits": {"cpu": "1", "memory": "256Mi"}},
            "livenessProbe": {"httpGet": {"path": "/healthz", "port": "http"}, "initialDelaySeconds": 10},
            "readinessProbe": {"httpGet": {"path": "/readyz", "port": "http"}, "periodSeconds": 5},
            "volumeMounts": [{"name": "config", "mountPath": "/etc/app"}, {"name": "data", "mountPath": "/var/lib/app"}]})
    };
    json!({"apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": pod_name(n),
            "labels": {"app": app, "app.kubernetes.io/name": app, "app.kubernetes.io/part-of": "shop",
                "pod-template-hash": noise(n / 10 % 200, 9)},
            "annotations": {"prometheus.io/scrape": "true", "prometheus.io/port": "9090",
                "checksum/config": noise(n / 10 % 200 + 7, 64)}},
        "spec": {"nodeName": format!("node-{}", n % 100), "serviceAccountName": "default",
            "containers": [container("server", &environment), container("sidecar", &environment[..2])],
            "volumes": [{"name": "config", "configMap": {"name": format!("{app}-config")}}, {"name": "data", "emptyDir": {}}]}})
}

fn config_map(n: usize) -> Value {
    let line = |at: usize| format!("setting.{at}.of.the.application = {}\n", noise(n * 131 + at, 24));
    let text: String = (0..128).map(line).collect();
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": format!("config-{n}"), "labels": {"app": format!("app-{}", n % 200)}},
        "data": {"application.properties": text, "level": "info"}})
}

fn status_update(n: usize) -> Request<Vec<u8>> {
    let condition =
        |kind: &str| json!({"type": kind, "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"});
    let container = |name: &str| {
        json!({"name": name, "ready": true, "started": true, "restartCount": n % 3, "image": format!("{name}:1"),
            "imageID": format!("example.com/{name}@sha256:{}", noise(n % 7, 64)), "containerID": format!("containerd://{}", noise(n, 64)),
            "state": {"running": {"startedAt": "2026-01-01T00:00:00Z"}}})
    };
    let status = json!({"phase": "Running", "podIP": format!("10.{}.{}.{}", n % 200, n / 250 % 250, n % 250),
        "startTime": "2026-01-01T00:00:00Z",
        "conditions": [condition("PodScheduled"), condition("Initialized"), condition("ContainersReady"), condition("Ready")],
        "containerStatuses": [container("server"), container("sidecar")]});
    send("PATCH", &format!("{}/{}/status", pods_of(n), pod_name(n)), MERGE, &json!({"status": status}))
}

fn patch(n: usize) -> Request<Vec<u8>> {
    let body = json!({"metadata": {"annotations": {"example.com/seen": noise(n, 12)}}});
    send("PATCH", &format!("{}/{}", pods_of(n), pod_name(n)), MERGE, &body)
}

fn apply(n: usize) -> Request<Vec<u8>> {
    let mut object = config_map(n);
    object["data"]["level"] = Value::from("debug");
    let path = format!("{}/config-{n}?fieldManager=weight&force=true", maps_of(n));
    send("PATCH", &path, "application/apply-patch+yaml", &object)
}

fn deployment(n: usize) -> Value {
    let labels = json!({"app": format!("web-{n}")});
    let spec = pod(n)["spec"].clone();
    let containers = spec["containers"].clone();
    json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": format!("web-{n}")},
        "spec": {"replicas": 2, "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {"containers": containers, "volumes": spec["volumes"]}}}})
}

/// A watch that begins with the state, until all of it is there.
async fn watch_all(client: &Client, count: usize) {
    let path = "/api/v1/pods?watch=true&sendInitialEvents=true&allowWatchBookmarks=true&resourceVersionMatch=NotOlderThan";
    let mut lines = client.request_stream(get(path)).await.unwrap().lines();
    let mut seen = 0;
    while lines.try_next().await.unwrap().is_some_and(|line| !line.starts_with("{\"type\":\"BOOKMARK")) {
        seen += 1;
    }
    assert!(seen >= count, "{seen} of {count}");
}
