//! The cost of lists of a big cluster: the real program, from its start to the first rows and to the last,
//! and its memory then. `cargo bench --bench lists [NAME…]`; the API server runs in this process and takes
//! its share of the cores.
#![allow(clippy::unwrap_used, clippy::print_stdout, dead_code, missing_docs)]

#[path = "../tests/it/pty.rs"]
mod pty;

use kube::Client;
use opdev_controlplane::{Config, ControlPlane, Controllers, Listen};
use portable_pty::CommandBuilder;
use serde_json::{Value, json};
use std::time::{Duration, Instant};

/// Objects, each with the path of its collection.
type Objects = Vec<(&'static str, Value)>;

fn main() {
    let wanted: Vec<String> = std::env::args().skip(1).filter(|arg| !arg.starts_with('-')).collect();
    let all = [("pods", pods as fn() -> Objects), ("objects", objects)];
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    for (name, make) in all {
        if wanted.is_empty() || wanted.iter().any(|wanted| wanted == name) {
            runtime.block_on(run(name, make()));
        }
    }
}

/// Fields as a server keeps them for each manager: half of an object is this.
fn managed(fields: usize) -> Value {
    let owned: serde_json::Map<String, Value> =
        (0..fields).map(|i| (format!("f:some-field-of-the-object-{i:02}"), json!({"f:inner": {}}))).collect();
    json!([{"manager": "kube-controller-manager", "operation": "Update", "apiVersion": "v1",
        "time": "2026-03-01T17:00:00Z", "fieldsType": "FieldsV1", "fieldsV1": {"f:spec": owned}}])
}

fn owned(kind: &str, api: &str, name: &str) -> Value {
    json!({"apiVersion": api, "kind": kind, "metadata": {"name": name, "namespace": "default",
        "labels": {"app": "memcached", "pod-template-hash": "6fd7c98d8"}, "managedFields": managed(24),
        "ownerReferences": [{"apiVersion": "cache.my.domain/v1alpha1", "kind": "Memcached", "name": "big",
            "uid": "", "controller": true}]}})
}

/// 13,000 pods of one custom resource, 4 KB each.
fn pods() -> Objects {
    let pod = |i: usize| {
        let mut pod = owned("Pod", "v1", &format!("big-6fd7c98d8-{i:05}"));
        let variables: Vec<Value> = (0..12)
            .map(|i| json!({"name": format!("VARIABLE_{i}"), "value": "something of some length"}))
            .collect();
        pod["spec"] = json!({"nodeName": "node-1", "containers": [{"name": "memcached", "image": "memcached:1.6",
            "env": variables, "resources": {"limits": {"cpu": "1", "memory": "1Gi"}}}]});
        pod["status"] = json!({"phase": "Running", "podIP": "10.0.0.1", "conditions": [
            {"type": "Ready", "status": "True", "lastTransitionTime": "2026-03-01T17:00:00Z"}],
            "containerStatuses": [{"name": "memcached", "ready": true, "restartCount": 0, "image": "memcached:1.6",
            "imageID": "", "state": {"running": {"startedAt": "2026-03-01T17:00:00Z"}}}]});
        ("/api/v1/namespaces/default/pods", pod)
    };
    (0..13_000).map(pod).collect()
}

/// 10,000 objects of which rows show little: release records of 20 KB, settings of 4 KB, accounts and roles.
fn objects() -> Objects {
    let one = |i: usize| match i % 4 {
        0 => {
            let mut secret = owned("Secret", "v1", &format!("sh.helm.release.v1.big.v{i}"));
            secret["type"] = "helm.sh/release.v1".into();
            secret["data"] = json!({"release": "H4sI".repeat(5_000)});
            ("/api/v1/namespaces/default/secrets", secret)
        }
        1 => {
            let mut settings = owned("ConfigMap", "v1", &format!("settings-{i}"));
            settings["data"] = json!({"settings.yaml": "key: value\n".repeat(360)});
            ("/api/v1/namespaces/default/configmaps", settings)
        }
        2 => (
            "/api/v1/namespaces/default/serviceaccounts",
            owned("ServiceAccount", "v1", &format!("account-{i}")),
        ),
        _ => {
            let mut role = owned("Role", "rbac.authorization.k8s.io/v1", &format!("role-{i}"));
            role["rules"] =
                json!([{"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list", "watch"]}]);
            ("/apis/rbac.authorization.k8s.io/v1/namespaces/default/roles", role)
        }
    };
    (0..10_000).map(one).collect()
}

async fn send(client: &Client, method: &str, path: &str, kind: &str, body: &Value) -> Value {
    let request = http::Request::builder().method(method).uri(path).header("content-type", kind);
    let request = request.body(serde_json::to_vec(body).unwrap()).unwrap();
    client.request(request).await.unwrap_or_else(|error| panic!("{method} {path}: {error}"))
}

/// Fills a cluster, and looks at it as one that is only read.
async fn run(name: &str, objects: Objects) {
    let folder = tempfile::tempdir().unwrap();
    let project = folder.path().join("project");
    std::fs::create_dir_all(project.join("config/crd/bases")).unwrap();
    std::fs::create_dir_all(project.join("chart")).unwrap();
    std::fs::write(project.join("chart/Chart.yaml"), "apiVersion: v2\nname: chart\nversion: 0.1.0\n")
        .unwrap();
    let watches = "- {group: cache.my.domain, version: v1alpha1, kind: Memcached, chart: chart}\n";
    std::fs::write(project.join("config/watches.yaml"), watches).unwrap();
    let mut config = Config::default();
    config.controllers = Controllers::None;
    let plane = ControlPlane::start_with(config).await.unwrap();
    let client = plane.client();
    let crd = json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "memcacheds.cache.my.domain"}, "spec": {"group": "cache.my.domain", "scope": "Namespaced",
        "names": {"kind": "Memcached", "plural": "memcacheds", "singular": "memcached", "listKind": "MemcachedList"},
        "versions": [{"name": "v1alpha1", "served": true, "storage": true, "subresources": {"status": {}},
            "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}}]}});
    let crds = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    send(&client, "POST", crds, "application/json", &crd).await;
    let custom =
        json!({"apiVersion": "cache.my.domain/v1alpha1", "kind": "Memcached", "metadata": {"name": "big"}});
    let path = "/apis/cache.my.domain/v1alpha1/namespaces/default/memcacheds";
    let custom = send(&client, "POST", path, "application/json", &custom).await;
    let (mut all, mut bytes) = (0, 0);
    for (path, mut object) in objects {
        object["metadata"]["ownerReferences"][0]["uid"] = custom["metadata"]["uid"].clone();
        let live = send(&client, "POST", path, "application/json", &object).await;
        if let Some(status) = object.get("status") {
            let path = format!("{path}/{}/status", object["metadata"]["name"].as_str().unwrap());
            let patch = json!({"status": status});
            send(&client, "PATCH", &path, "application/merge-patch+json", &patch).await;
        }
        (all, bytes) = (all + 1, bytes + live.to_string().len());
    }
    let listening = plane.listen(Listen::default()).await.unwrap();
    let kubeconfig = folder.path().join("kubeconfig");
    // Under a name that says nothing, nothing is written.
    std::fs::write(
        &kubeconfig,
        listening
            .kubeconfig
            .replace("name: opdev\n", "name: prod\n")
            .replace("current-context: opdev", "current-context: prod")
            .replace("cluster: opdev\n", "cluster: prod\n"),
    )
    .unwrap();
    println!("{name}: {all} objects, {:.0} MB as JSON", bytes as f64 / 1e6);
    for _ in 0..3 {
        tokio::task::block_in_place(|| look(&project, &kubeconfig));
    }
    plane.stop().await;
}

fn look(project: &std::path::Path, kubeconfig: &std::path::Path) {
    let mut command = CommandBuilder::new(env!("CARGO_BIN_EXE_opdev"));
    command.args(["run", "--kubeconfig"]);
    command.arg(kubeconfig);
    command.cwd(project);
    let begun = Instant::now();
    let mut pty = pty::Pty::start(command, (200, 60));
    pty.wait_until("owned objects", |screen| {
        screen
            .contents()
            .lines()
            .filter(|line| {
                line.contains("big-6fd7c98d8-")
                    || line.contains("settings-")
                    || line.contains("account-")
                    || line.contains("role-")
            })
            .count()
            > 10
    });
    let first = begun.elapsed();
    // The last one is in once it comes to rest.
    let (mut before, mut rest) = (used(pty.pid()), Instant::now());
    while rest.elapsed() < Duration::from_secs(1) {
        std::thread::sleep(Duration::from_millis(50));
        let now = used(pty.pid());
        if now > before + 0.02 {
            (before, rest) = (now, Instant::now());
        }
    }
    let all = begun.elapsed() - Duration::from_secs(1);
    println!(
        "{:<16} first rows {:5.2} s   all {:5.2} s   {:5.2} s of a core   {:5.0} MB resident, {:5.0} MB at most",
        "",
        first.as_secs_f64(),
        all.as_secs_f64(),
        used(pty.pid()),
        memory(pty.pid(), "VmRSS:"),
        memory(pty.pid(), "VmHWM:")
    );
    println!("{:<16} of which: {}", "", threads(pty.pid()));
    pty.keys("q");
    pty.wait_exit();
}

/// Processor time of a process by the names of its threads.
fn threads(pid: i32) -> String {
    let mut by_name: std::collections::BTreeMap<String, f64> = std::collections::BTreeMap::new();
    for task in std::fs::read_dir(format!("/proc/{pid}/task")).unwrap() {
        let path = task.unwrap().path();
        let Ok(stat) = std::fs::read_to_string(path.join("stat")) else { continue };
        let name = std::fs::read_to_string(path.join("comm")).unwrap_or_default().trim().to_owned();
        let fields: Vec<&str> = stat.rsplit(") ").next().unwrap().split_whitespace().collect();
        let time = fields[11].parse::<f64>().unwrap() + fields[12].parse::<f64>().unwrap();
        *by_name.entry(name).or_default() += time / 100.0;
    }
    let all = by_name.into_iter().filter(|(_, time)| *time >= 0.05);
    all.map(|(name, time)| format!("{name} {time:.2} s")).collect::<Vec<_>>().join(", ")
}

/// Processor time of a process so far, in seconds.
fn used(pid: i32) -> f64 {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let fields: Vec<&str> = stat.rsplit(") ").next().unwrap().split_whitespace().collect();
    // The kernel counts in hundredths of a second.
    (fields[11].parse::<f64>().unwrap() + fields[12].parse::<f64>().unwrap()) / 100.0
}

/// Memory of a process, in megabytes.
fn memory(pid: i32, which: &str) -> f64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find(|line| line.starts_with(which)).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<f64>().unwrap() / 1024.0
}
