//! Parts that the benches of the control plane share: a server in this process until its standard input ends,
//! its client, and many requests at once.

use http::Request;
use kube::Client;
use kube::config::{KubeConfigOptions, Kubeconfig};
use opdev_controlplane::{Config, ControlPlane, Listen};
use serde_json::Value;
use std::io::Write as _;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The program's own.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Requests that are under way at once.
const WRITERS: usize = 16;

pub(crate) fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap()
}

/// Our server as a process: until its standard input ends. Its first line is the kubeconfig, as JSON.
pub(crate) async fn serve(config: Config) {
    let plane = ControlPlane::start_with(config).await.unwrap();
    let listening = plane.listen(Listen::default()).await.unwrap();
    let mut out = std::io::stdout();
    writeln!(out, "{}", Value::from(listening.kubeconfig)).unwrap();
    out.flush().unwrap();
    tokio::task::spawn_blocking(|| std::io::stdin().lines().count()).await.unwrap();
    plane.stop().await;
}

pub(crate) async fn client(kubeconfig: &str) -> Client {
    let kubeconfig = Kubeconfig::from_yaml(kubeconfig).unwrap();
    let config =
        kube::Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await.unwrap();
    Client::try_from(config).unwrap()
}

pub(crate) fn get(path: &str) -> Request<Vec<u8>> {
    Request::get(path).body(Vec::new()).unwrap()
}

pub(crate) fn send(method: &str, path: &str, media_type: &str, body: &Value) -> Request<Vec<u8>> {
    let request = Request::builder().method(method).uri(path).header("content-type", media_type);
    request.body(body.to_string().into_bytes()).unwrap()
}

/// Sends one request for each number, from as many tasks as may be under way at once.
pub(crate) async fn many(
    client: &Client,
    numbers: Range<usize>,
    request: impl Fn(usize) -> Request<Vec<u8>> + Copy + Send + 'static,
) {
    let (next, end) = (Arc::new(AtomicUsize::new(numbers.start)), numbers.end);
    let mut writers = tokio::task::JoinSet::new();
    for _ in 0..WRITERS {
        let (client, next) = (client.clone(), next.clone());
        writers.spawn(async move {
            loop {
                let n = next.fetch_add(1, Ordering::Relaxed);
                if n >= end {
                    return;
                }
                client.request_text(request(n)).await.unwrap();
            }
        });
    }
    while let Some(done) = writers.join_next().await {
        done.unwrap();
    }
}
