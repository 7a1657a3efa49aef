//! The cost of showing: the recording of an API call, and the memory of ten thousand objects with their
//! history. `cargo bench --bench seeing`; compare only runs of one machine. Memory is read from /proc, so on
//! Linux only.
#![allow(clippy::unwrap_used, clippy::print_stdout, missing_docs)]

use http::{Request, Response};
use jiff::Timestamp;
use kube::client::Body;
use opdev_client::recorder::{Recorder, Tap};
use opdev_event::{Event, KindHealth, KindStatus, ObjectSeen, SourcesChanged};
use opdev_object::meta::{Gvk, ObjectRef};
use opdev_state::State;
use serde_json::{Value, json};
use std::convert::Infallible;
use std::sync::Arc;
use std::time::{Duration, Instant};

const CALLS: u32 = 1_000;
const ROUNDS: usize = 40;
const OBJECTS: usize = 10_000;
const VERSIONS: usize = 10;

fn main() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(calls());
    memory();
}

/// A service in this process that answers at once.
fn client() -> kube::Client {
    let body = serde_json::to_vec(&deployment(1, 1)).unwrap();
    let service = tower::service_fn(move |_: Request<Body>| {
        let body = body.clone();
        async { Ok::<_, Infallible>(Response::new(Body::from(body))) }
    });
    kube::Client::new(service, "default")
}

async fn call(tap: &Tap) {
    let path = "/apis/apps/v1/namespaces/default/deployments/web?fieldManager=helm&force=true";
    let answer = tap.send(Request::get(path).body(Vec::new()).unwrap()).await.unwrap();
    assert!(answer.status.is_success());
}

/// Rounds with and without the recorder take turns, so that whatever else the machine does meets both.
async fn calls() {
    let tap = Tap::new(client());
    let (mut with, mut without) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        without.push(round(&tap).await);
        with.push(Arc::new(Recorder::default()).scope(round(&tap)).await);
    }
    let (with, without) = (median(with), median(without));
    println!("an API call in this process, not recorded   median {without:8.2?}");
    println!("an API call in this process, recorded       median {with:8.2?}");
    println!(
        "recording one call                                 {:8.2?}   goal: under 50 µs",
        with.saturating_sub(without)
    );
}

async fn round(tap: &Tap) -> Duration {
    let begun = Instant::now();
    for _ in 0..CALLS {
        call(tap).await;
    }
    begun.elapsed() / CALLS
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times[times.len() / 2]
}

/// A Deployment as a cluster has it: three managers, conditions, a template.
fn deployment(number: usize, version: usize) -> Value {
    let name = format!("web-{number:05}");
    let spec_fields = json!({"f:replicas": {}, "f:selector": {}, "f:strategy": {"f:type": {}}, "f:template": {
        "f:metadata": {"f:labels": {"f:app": {}, "f:tier": {}}}, "f:spec": {"f:containers": {"k:{\"name\":\"web\"}": {
            ".": {}, "f:name": {}, "f:image": {}, "f:args": {}, "f:env": {"k:{\"name\":\"MODE\"}": {".": {}, "f:name": {}, "f:value": {}}},
            "f:ports": {"k:{\"containerPort\":8080,\"protocol\":\"TCP\"}": {".": {}, "f:containerPort": {}}},
            "f:resources": {"f:limits": {"f:cpu": {}, "f:memory": {}}, "f:requests": {"f:cpu": {}, "f:memory": {}}}}}}}});
    let status_fields = json!({"f:availableReplicas": {}, "f:conditions": {".": {},
        "k:{\"type\":\"Available\"}": {".": {}, "f:type": {}, "f:status": {}, "f:reason": {}, "f:message": {}},
        "k:{\"type\":\"Progressing\"}": {".": {}, "f:type": {}, "f:status": {}, "f:reason": {}, "f:message": {}}},
        "f:observedGeneration": {}, "f:readyReplicas": {}, "f:replicas": {}, "f:updatedReplicas": {}});
    let time = format!("2026-03-01T17:{:02}:00Z", version % 60);
    let condition = |kind: &str, status: &str, reason: &str| {
        json!({"type": kind, "status": status, "reason": reason, "lastTransitionTime": time, "lastUpdateTime": time,
            "message": format!("ReplicaSet \"{name}-7d9f8c\" is as it should be")})
    };
    let ready = if version.is_multiple_of(2) { "False" } else { "True" };
    json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {
            "name": name, "namespace": "default", "uid": format!("4f6c1c9e-0000-4000-8000-{number:012}"),
            "resourceVersion": (number * VERSIONS + version).to_string(), "generation": 1 + version / 2,
            "creationTimestamp": "2026-03-01T17:00:00Z",
            "labels": {"app": name, "tier": "backend", "app.kubernetes.io/managed-by": "Helm"},
            "annotations": {"deployment.kubernetes.io/revision": "1", "meta.helm.sh/release-name": name},
            "managedFields": [
                {"manager": "helm", "operation": "Apply", "apiVersion": "apps/v1", "time": "2026-03-01T17:00:00Z",
                    "fieldsType": "FieldsV1", "fieldsV1": {"f:metadata": {"f:labels": {"f:app": {}, "f:tier": {}}}, "f:spec": spec_fields}},
                {"manager": "kube-controller-manager", "operation": "Update", "subresource": "status", "apiVersion": "apps/v1",
                    "time": time, "fieldsType": "FieldsV1", "fieldsV1": {"f:status": status_fields}}]},
        "spec": {"replicas": 1 + version / 2, "selector": {"matchLabels": {"app": name}}, "strategy": {"type": "RollingUpdate"},
            "template": {"metadata": {"labels": {"app": name, "tier": "backend"}}, "spec": {"containers": [{
                "name": "web", "image": "registry.example.com/web:1.2.3", "args": ["--listen=:8080", "--verbose"],
                "env": [{"name": "MODE", "value": "production"}], "ports": [{"containerPort": 8080, "protocol": "TCP"}],
                "resources": {"limits": {"cpu": "500m", "memory": "256Mi"}, "requests": {"cpu": "100m", "memory": "128Mi"}}}]}}},
        "status": {"observedGeneration": 1 + version / 2, "replicas": 1, "readyReplicas": version % 2, "updatedReplicas": 1,
            "conditions": [condition("Available", ready, "MinimumReplicasAvailable"), condition("Progressing", "True", "NewReplicaSetAvailable")]}})
}

fn memory() {
    let Some(before) = resident() else { return println!("memory: /proc is not there") };
    let mut state = State::default();
    let kind = KindStatus {
        gvk: Gvk::new("apps", "v1", "Deployment"),
        plural: "deployments".to_owned(),
        source: String::new(),
        scale: String::new(),
        columns: vec![],
        health: KindHealth::Serving,
    };
    state.reduce(Event::SourcesChanged(Arc::new(SourcesChanged {
        at: Timestamp::UNIX_EPOCH,
        sources: 1,
        files: vec![],
        removed: false,
        kinds: vec![kind],
        diagnostics: vec![],
        samples: vec![],
        affected: vec![],
    })));
    let size = serde_json::to_string(&deployment(1, 1)).unwrap().len();
    for version in 1..=VERSIONS {
        let begun = Instant::now();
        for number in 0..OBJECTS {
            let object = deployment(number, version);
            let object_ref = ObjectRef::of(&object).unwrap();
            let at = Timestamp::from_second(i64::try_from(version).unwrap()).unwrap();
            let object = opdev_event::Body::new(&object);
            state.reduce(Event::ObjectSeen(ObjectSeen { at, object_ref, metadata_only: false, object }));
        }
        if matches!(version, 1 | VERSIONS) {
            println!(
                "{OBJECTS} objects of {size} bytes, {version:2} versions seen   {:6.1} MB, {:5.1} MB of them older versions, {:.1?} an event",
                (resident().unwrap_or(before) - before) as f64 / 1e6,
                state.archive.bytes() as f64 / 1e6,
                begun.elapsed() / u32::try_from(OBJECTS).unwrap(),
            );
        }
    }
}

/// Resident bytes of this process.
fn resident() -> Option<usize> {
    let pages = std::fs::read_to_string("/proc/self/statm").ok()?;
    Some(pages.split_whitespace().nth(1)?.parse::<usize>().ok()? * 4096)
}
