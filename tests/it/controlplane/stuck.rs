//! A server that never stands still: whatever has to wait for a webhook waits on a thread of its own, a
//! worker that is stuck is told, and a signal ends the process also then.

use super::conversion::{converting_definition, converts};
use super::serve::ends;
use super::webhook_server::Webhook;
use super::webhooks::ask;
use http_body_util::BodyExt as _;
use kube::config::Kubeconfig;
use opdev_controlplane::{Config, ControlPlane, Controllers, Listen, Listening};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName};
use serde_json::{Value, json};
use std::cell::Cell;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

/// Longer than any of this takes, on the busiest machine; a server that stands still never answers.
const FOREVER: Duration = Duration::from_secs(60);

/// A TLS connection to a plane, as a client that speaks HTTP/1.1 makes it.
pub(super) async fn connect(plane: &ControlPlane, listening: &Listening) -> TlsStream<TcpStream> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut roots = rustls::RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(plane.authority().as_bytes()).unwrap()).unwrap();
    let config = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let stream = TcpStream::connect(listening.address).await.unwrap();
    let name = ServerName::try_from("localhost").unwrap();
    TlsConnector::from(Arc::new(config)).connect(name, stream).await.unwrap()
}

/// The admin's token.
pub(super) fn token(listening: &Listening) -> String {
    use secrecy::ExposeSecret as _;
    let kubeconfig = Kubeconfig::from_yaml(&listening.kubeconfig).unwrap();
    let token = kubeconfig.auth_infos[0].auth_info.as_ref().unwrap().token.clone();
    token.unwrap().expose_secret().to_owned()
}

/// Asks over a connection of its own: the status line's code and the body.
async fn get(plane: &ControlPlane, listening: &Listening, path: &str, headers: &str) -> (u16, String) {
    let mut stream = connect(plane, listening).await;
    let token = token(listening);
    let text =
        format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\n{headers}\r\n");
    stream.write_all(text.as_bytes()).await.unwrap();
    let mut said = Vec::new();
    // A connection that might have become a websocket ends without a farewell of TLS.
    if let Err(error) = stream.read_to_end(&mut said).await {
        assert_eq!(error.kind(), std::io::ErrorKind::UnexpectedEof);
    }
    let said = String::from_utf8(said).unwrap();
    let code = said.split(' ').nth(1).unwrap().parse().unwrap();
    (code, said.split_once("\r\n\r\n").unwrap().1.to_owned())
}

const EXEC: &str = "/api/v1/namespaces/default/pods/p/exec?command=ls&stdout=true&container=main";
/// As kubectl asks for a websocket. The answer ends the connection, so that it can be read to its end.
const UPGRADE: &str = "Connection: close, Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n\
    Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Protocol: v5.channel.k8s.io\r\n";

fn connecting(policy: &str) -> Value {
    json!({"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": "connecting"}, "webhooks": [{"name": "exec.example.com",
            "admissionReviewVersions": ["v1"], "sideEffects": "None", "failurePolicy": policy, "timeoutSeconds": 2,
            "clientConfig": {"url": "https://127.0.0.1:1/x"},
            "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CONNECT"],
                "resources": ["pods/exec", "pods/attach"]}]}]})
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_connection_to_a_pod_waits_for_its_webhook_on_no_worker() {
    let plane = ControlPlane::start().await.unwrap();
    let listening = plane.listen(Listen::default()).await.unwrap();
    let hooks = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations";
    let refused = "Internal error occurred: failed calling webhook \"exec.example.com\": failed to call webhook: Post \
                   \"https://127.0.0.1:1/x?timeout=2s\": dial tcp 127.0.0.1:1: connect: connection refused";
    for (policy, expected, said) in [("Ignore", 501, "runs no containers"), ("Fail", 500, refused)] {
        ask(&plane, "DELETE", &format!("{hooks}/connecting"), Value::Null).await;
        assert_eq!(ask(&plane, "POST", hooks, connecting(policy)).await.0, 201);
        // More of them than there are workers.
        let asked = futures::future::join_all((0..4).map(|_| get(&plane, &listening, EXEC, UPGRADE)));
        for (code, body) in tokio::time::timeout(FOREVER, asked).await.expect("it answers") {
            let status: Value = serde_json::from_str(&body).unwrap();
            assert_eq!(code, expected, "{status:#}");
            assert!(status["message"].as_str().unwrap().contains(said), "{status:#}");
        }
        let health = get(&plane, &listening, "/healthz", "Connection: close\r\n");
        let health = tokio::time::timeout(FOREVER, health).await.expect("it answers");
        assert_eq!(health, (200, "ok".to_owned()));
    }
    plane.stop().await;
}

/// On a runtime with one thread whoever waits there waits for ever.
#[tokio::test]
async fn parameters_of_a_policy_are_converted_on_no_worker() {
    let mut config = Config::default();
    config.controllers = Controllers::None;
    let plane = ControlPlane::start_with(config).await.unwrap();
    let server = Webhook::start().await;
    converts(&server, |_| {});
    let post = async |path: &str, body: Value| {
        let asked = ask(&plane, "POST", path, body);
        let (code, _, answer) = tokio::time::timeout(FOREVER, asked).await.expect("it answers");
        assert_eq!(code, 201, "{answer:#}");
    };
    let definition = converting_definition(&server.url("/convert"), "v1");
    post("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", definition).await;
    post(
        "/apis/wh.io/v1/namespaces/default/widgets",
        json!({"apiVersion": "wh.io/v1", "kind": "Widget", "metadata": {"name": "p"}, "spec": {"host": "x", "port": "1"}}),
    )
    .await;
    let policies = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies";
    post(
        policies,
        json!({"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": "p"}, "spec": {
            "paramKind": {"apiVersion": "wh.io/v2", "kind": "Widget"},
            "matchConstraints": {"resourceRules": [{"apiGroups": [""], "apiVersions": ["v1"],
                "operations": ["CREATE"], "resources": ["configmaps"]}]},
            "validations": [{"expression": "params.spec.hostPort == 'x:1'"}]}}),
    )
    .await;
    let bindings = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings";
    post(
        bindings,
        json!({"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": {"name": "p"}, "spec": {"policyName": "p", "validationActions": ["Deny"],
            "paramRef": {"name": "p", "namespace": "default", "parameterNotFoundAction": "Deny"}}}),
    )
    .await;
    server.asked();
    let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "m"}});
    post("/api/v1/namespaces/default/configmaps", map).await;
    assert_eq!(server.paths(), ["/convert"], "the parameter was converted");
}

#[tokio::test]
async fn the_garbage_collector_converts_on_no_worker() {
    let plane = ControlPlane::start().await.unwrap();
    let server = Webhook::start().await;
    converts(&server, |_| {});
    let definition = converting_definition(&server.url("/convert"), "v1");
    ask(&plane, "POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", definition).await;
    let widgets = "/apis/wh.io/v1/namespaces/default/widgets";
    let maps = "/api/v1/namespaces/default/configmaps";
    let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "owner"}});
    let (_, _, owner) = ask(&plane, "POST", maps, map).await;
    let refers =
        json!([{"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": owner["metadata"]["uid"]}]);
    let widget = json!({"apiVersion": "wh.io/v1", "kind": "Widget",
        "metadata": {"name": "w", "ownerReferences": refers}, "spec": {"host": "x", "port": "1"}});
    assert_eq!(ask(&plane, "POST", widgets, widget).await.0, 201);
    // From now on all is stored at the other version: what is written is converted.
    let path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/widgets.wh.io";
    let (_, _, mut stored) = ask(&plane, "GET", path, Value::Null).await;
    for version in stored["spec"]["versions"].as_array_mut().unwrap() {
        version["storage"] = json!(version["name"] == "v2");
    }
    assert_eq!(ask(&plane, "PUT", path, stored).await.0, 200);
    let orphan = json!({"kind": "DeleteOptions", "apiVersion": "v1", "propagationPolicy": "Orphan"});
    assert_eq!(ask(&plane, "DELETE", &format!("{maps}/owner"), orphan).await.0, 200);
    let freed = async {
        loop {
            let widget = ask(&plane, "GET", &format!("{widgets}/w"), Value::Null).await.2;
            if widget["metadata"].get("ownerReferences").is_none() {
                return widget;
            }
            tokio::task::yield_now().await;
        }
    };
    let widget = tokio::time::timeout(FOREVER, freed).await.expect("it is orphaned");
    assert_eq!(widget["spec"], json!({"host": "x", "port": "1"}));
    plane.stop().await;
}

thread_local! {
    /// True if the clock stands still for this thread.
    static STUCK: Cell<bool> = const { Cell::new(false) };
}

/// A server whose clock stops for two requests, and with it the workers that answer them. Started by the test
/// below.
#[test]
#[ignore = "a process of its own, for the test of stuck workers"]
fn a_process_whose_workers_get_stuck() {
    let lines = tracing_subscriber::fmt().with_ansi(false).with_writer(std::io::stderr).finish();
    tracing::subscriber::set_global_default(lines).unwrap();
    let mut config = Config::default();
    // Not for whatever else a worker does: that might take the worker that a request needs.
    config.clock = Some(Arc::new(|| {
        while STUCK.get() {
            std::thread::park();
        }
        jiff::Timestamp::now()
    }));
    config.controllers = Controllers::None;
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(async {
        let asked = opdev::signals::stop_signal().unwrap();
        let plane = ControlPlane::start_with(config).await.unwrap();
        plane.listen(Listen::default()).await.unwrap();
        // A request for each worker: the first holds its worker until the second has one, too.
        let both = Arc::new(std::sync::Barrier::new(2));
        for name in 0..2 {
            let (service, both) = (plane.service(), both.clone());
            let (begin, begun) = std::sync::mpsc::channel();
            tokio::spawn(async move {
                begin.send(()).unwrap();
                both.wait();
                let map =
                    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name.to_string()}});
                let request = http::Request::post("/api/v1/namespaces/default/configmaps")
                    .header("content-type", "application/json")
                    .body(http_body_util::Full::<bytes::Bytes>::from(map.to_string()))
                    .unwrap();
                STUCK.set(true);
                let response = tower::ServiceExt::oneshot(service, request).await.unwrap();
                response.into_body().collect().await.unwrap();
            });
            begun.recv().unwrap();
        }
        asked.await;
        plane.stop().await;
    });
}

#[tokio::test]
async fn stuck_workers_are_told_and_a_signal_ends_the_process() {
    let test = "controlplane::stuck::a_process_whose_workers_get_stuck";
    let mut child = tokio::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", test, "--ignored", "--nocapture"])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    let mut said = String::new();
    let told = async {
        while !said.contains("is stuck in: POST /api/v1/namespaces/default/configmaps of kubernetes-admin")
            || !said.contains("the API server answers nothing: all of its workers are stuck, in: POST")
        {
            let line = lines.next_line().await.unwrap();
            said.push_str(&line.unwrap_or_else(|| panic!("it ended: {said}")));
            said.push('\n');
        }
    };
    tokio::time::timeout(FOREVER, told).await.expect("the log tells it");
    let id = child.id().unwrap().to_string();
    assert!(std::process::Command::new("kill").args(["-TERM", &id]).status().unwrap().success());
    assert_eq!(ends(&mut child).await, 143);
    let mut last = String::new();
    while let Some(line) = lines.next_line().await.unwrap() {
        last = line;
    }
    assert_eq!(last, "opdev: SIGTERM: was asked to stop and could not in time; its log names what is stuck");
}
