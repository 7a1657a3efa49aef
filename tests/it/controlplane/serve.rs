//! `opdev serve`, the process: what it writes, what it says, how it stops.

use super::webhook_server::{Webhook, given};
use crate::oracle::oracle;
use serde_json::{Value, json};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, BufReader};
use tokio::process::{Child, Command};

pub(super) fn serve(folder: &Path, arguments: &[&str]) -> Child {
    Command::new(env!("CARGO_BIN_EXE_opdev"))
        .arg("serve")
        .args(arguments)
        .current_dir(folder)
        .env("XDG_STATE_HOME", folder.join("user-state"))
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .unwrap()
}

pub(super) async fn ends(child: &mut Child) -> i32 {
    let status = tokio::time::timeout(Duration::from_secs(10), child.wait()).await.expect("it ends");
    status.unwrap().code().expect("it ends by itself")
}

#[tokio::test]
async fn it_serves_until_it_is_told_to_stop() {
    for signal in ["-TERM", "-INT"] {
        let folder = tempfile::tempdir().unwrap();
        let mut child = serve(folder.path(), &[]);
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut text = String::new();
        while !text.contains("Ctrl-C") {
            text.push_str(&lines.next_line().await.unwrap().expect("it goes on"));
            text.push('\n');
        }
        assert!(text.starts_with("control plane ready at https://127.0.0.1:"), "{text}");
        for gap in ["CEL", "RBAC", "webhooks", "persistence"] {
            assert!(text.contains(gap), "{text}");
        }
        let path = folder.path().join(".opdev/kubeconfig");
        let kubeconfig = std::fs::read_to_string(&path).unwrap();
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        let kubeconfig = kube::config::Kubeconfig::from_yaml(&kubeconfig).unwrap();
        let options = kube::config::KubeConfigOptions::default();
        let config = kube::Config::from_custom_kubeconfig(kubeconfig, &options).await.unwrap();
        let version = kube::Client::try_from(config).unwrap().apiserver_version().await.unwrap();
        assert!(version.git_version.contains("+opdev"));

        let id = child.id().unwrap().to_string();
        assert!(std::process::Command::new("kill").args([signal, &id]).status().unwrap().success());
        assert_eq!(ends(&mut child).await, 0);
        assert!(!path.exists(), "the kubeconfig goes with the plane it led to");
    }
}

#[tokio::test]
#[cfg_attr(not(oracles), ignore = "needs OPDEV_ORACLES")]
async fn kubectl_changes_the_kubeconfig_while_it_serves() {
    let folder = tempfile::tempdir().unwrap();
    let mut child = serve(folder.path(), &[]);
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    while !lines.next_line().await.unwrap().expect("it goes on").contains("export KUBECONFIG") {}
    let path = folder.path().join(".opdev/kubeconfig");
    let mut kubectl = Command::new(oracle("kubectl"));
    kubectl.args(["config", "set-context", "--current", "--namespace=kube-system"]).env("KUBECONFIG", &path);
    let said = kubectl.output().await.unwrap();
    assert!(said.status.success(), "{}", String::from_utf8_lossy(&said.stderr));
    assert!(std::fs::read_to_string(&path).unwrap().contains("namespace: kube-system"));
}

#[tokio::test]
async fn it_says_what_is_wrong() {
    let folder = tempfile::tempdir().unwrap();
    for (arguments, said) in [
        (["--listen", "0.0.0.0:0"], "is not a loopback address"),
        (["--kubeconfig", "nowhere/kubeconfig"], "nowhere/kubeconfig cannot be written"),
    ] {
        let mut child = serve(folder.path(), &arguments);
        assert_eq!(ends(&mut child).await, 1);
        let mut text = String::new();
        child.stderr.take().unwrap().read_to_string(&mut text).await.unwrap();
        assert!(text.starts_with("error: ") && text.contains(said), "{text}");
    }
}

#[tokio::test]
async fn webhook_servers_find_a_certificate_and_their_service_a_port() {
    let folder = tempfile::tempdir().unwrap();
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let mapping = format!("default/hooks={}", listener.local_addr().unwrap().port());
    let mut child = serve(folder.path(), &["--webhook-certs", "certs", "--webhook", &mapping]);
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut text = String::new();
    while !text.contains("Ctrl-C") {
        text.push_str(&lines.next_line().await.unwrap().expect("it goes on"));
        text.push('\n');
    }
    let certs = folder.path().join("certs");
    assert!(text.contains("webhook servers on this machine find tls.crt and tls.key in"), "{text}");
    let read = |name: &str| std::fs::read_to_string(certs.join(name)).unwrap();
    assert_eq!(std::fs::metadata(certs.join("tls.key")).unwrap().permissions().mode() & 0o777, 0o600);
    let server = Webhook::start_on(listener, given(&read("tls.crt"), &read("tls.key"), &read("ca.crt")));
    server.deny("/v", json!({"message": "no"}));

    let client = client_of(folder.path()).await;
    let create = async |path: &str, object: Value| {
        let request = http::Request::post(path).header("content-type", "application/json");
        client.request::<Value>(request.body(object.to_string().into_bytes()).unwrap()).await
    };
    let service = json!({"metadata": {"name": "hooks"}, "spec": {"ports": [{"port": 443}]}});
    create("/api/v1/namespaces/default/services", service).await.unwrap();
    // Nobody has filled in an authority, as where cert-manager would.
    let to = json!({"service": {"namespace": "default", "name": "hooks", "path": "/v"}});
    let rules = json!([{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"],
        "resources": ["configmaps"]}]);
    let hook = json!({"name": "v.example.com", "clientConfig": to, "sideEffects": "None", "rules": rules,
        "admissionReviewVersions": ["v1"]});
    let path = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations";
    create(path, json!({"metadata": {"name": "v"}, "webhooks": [hook]})).await.unwrap();
    let refused = create("/api/v1/namespaces/default/configmaps", json!({"metadata": {"name": "a"}})).await;
    let Err(kube::Error::Api(status)) = refused else { panic!("{refused:?}") };
    assert_eq!(status.message, "admission webhook \"v.example.com\" denied the request: no");
    let id = child.id().unwrap().to_string();
    assert!(std::process::Command::new("kill").args(["-TERM", &id]).status().unwrap().success());
    assert_eq!(ends(&mut child).await, 0);
    assert_eq!(std::fs::read_dir(&certs).unwrap().count(), 0);
}

/// Another minor has its version, its groups and its answers.
#[tokio::test]
async fn an_older_minor_is_served_as_it_was() {
    for (minor, has_bundles, fewest) in [("1.37", true, 0), ("1.36", false, 1)] {
        let folder = tempfile::tempdir().unwrap();
        let mut child = serve(folder.path(), &["--kubernetes", minor, "--controllers", "none"]);
        let _lines = ready(&mut child).await;
        let client = client_of(folder.path()).await;
        let version = client.apiserver_version().await.unwrap();
        assert!(version.git_version.starts_with(&format!("v{minor}.0+opdev")), "{}", version.git_version);
        let kinds = client.list_api_group_resources("certificates.k8s.io/v1").await.unwrap().resources;
        assert_eq!(kinds.iter().any(|kind| kind.name == "clustertrustbundles"), has_bundles, "{minor}");
        let scaler = serde_json::json!({"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler",
            "metadata": {"name": "a"}, "spec": {"minReplicas": -1, "maxReplicas": 3,
                "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "d"}}});
        let request = http::Request::post("/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers");
        let request = request.header("content-type", "application/json");
        let request = request.body(scaler.to_string().into_bytes()).unwrap();
        let refused = client.request::<serde_json::Value>(request).await.unwrap_err().to_string();
        assert!(refused.contains(&format!("must be greater than or equal to {fewest}")), "{refused}");
    }
}

/// A client of the server that has written its kubeconfig in the folder.
async fn client_of(folder: &std::path::Path) -> kube::Client {
    let text = std::fs::read_to_string(folder.join(".opdev/kubeconfig")).unwrap();
    let kubeconfig = kube::config::Kubeconfig::from_yaml(&text).unwrap();
    let config = kube::Config::from_custom_kubeconfig(kubeconfig, &Default::default()).await.unwrap();
    kube::Client::try_from(config).unwrap()
}

/// Operators of that time ask for `policy/v1beta1`, which Kubernetes took away in 1.25.
#[tokio::test]
async fn versions_that_are_gone_are_served_where_the_user_wants_them() {
    for legacy in [false, true] {
        let folder = tempfile::tempdir().unwrap();
        let mut args = vec!["--controllers", "none"];
        args.extend(legacy.then_some("--legacy"));
        let mut child = serve(folder.path(), &args);
        let _lines = ready(&mut child).await;
        let client = client_of(folder.path()).await;
        let groups = client.list_api_groups().await.unwrap().groups;
        let policy = groups.iter().find(|group| group.name == "policy").unwrap();
        let versions: Vec<&str> = policy.versions.iter().map(|one| one.version.as_str()).collect();
        let preferred = policy.preferred_version.as_ref().map(|one| one.version.as_str());
        let wanted = if legacy { vec!["v1", "v1beta1"] } else { vec!["v1"] };
        assert_eq!((versions, preferred), (wanted, Some("v1")));

        let budget = json!({"apiVersion": "policy/v1beta1", "kind": "PodDisruptionBudget", "metadata": {"name": "a"},
            "spec": {"maxUnavailable": 1, "selector": {"matchLabels": {"app": "a"}}}});
        let path = |version: &str| format!("/apis/policy/{version}/namespaces/default/poddisruptionbudgets");
        let request = http::Request::post(path("v1beta1")).header("content-type", "application/json");
        let request = request.body(budget.to_string().into_bytes()).unwrap();
        let made = client.request::<Value>(request).await;
        if !legacy {
            assert!(made.is_err(), "{made:?}");
            continue;
        }
        assert_eq!(made.unwrap()["apiVersion"], "policy/v1beta1");
        for version in ["v1", "v1beta1"] {
            let request = http::Request::get(format!("{}/a", path(version))).body(Vec::new()).unwrap();
            let read: Value = client.request(request).await.unwrap();
            assert_eq!(read["apiVersion"], format!("policy/{version}"));
            assert_eq!(read["spec"], budget["spec"]);
            // As a client of that time reads it.
            let request =
                http::Request::get(path(version)).header("accept", "application/vnd.kubernetes.protobuf");
            let listed = client.request_text(request.body(Vec::new()).unwrap()).await;
            // It is no text, so that this client gives up only then.
            assert!(!matches!(listed, Err(kube::Error::Api(_))), "{listed:?}");
        }
    }
}

/// Waits until a server is ready; its further lines.
async fn ready(child: &mut Child) -> tokio::io::Lines<BufReader<tokio::process::ChildStdout>> {
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    assert!(lines.next_line().await.unwrap().unwrap().contains("ready"));
    lines
}
