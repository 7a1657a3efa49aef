//! `opdev operate` as a Deployment runs it: a ServiceAccount's token and its roles, probes, metrics, leader
//! election.

mod token;

use crate::inner_loop::demo_project;
use crate::masked::masked;
use expect_test::expect;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::coordination::v1::Lease;
use kube::Client;
use kube::api::{Api, DynamicObject, Patch, PatchParams};
use kube::core::GroupVersionKind;
use opdev_controlplane::{Config, ControlPlane, Listen, Listening};
use serde_json::{Value, json};
use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

/// How long anything may take before a test gives up.
const PATIENCE: Duration = Duration::from_secs(60);

/// A cluster with roles, and a project whose operator has a ServiceAccount there.
struct Cluster {
    plane: ControlPlane,
    _listening: Listening,
    client: Client,
    _folder: tempfile::TempDir,
    root: PathBuf,
    kubeconfig: PathBuf,
}

fn opdev(root: &Path, args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_opdev"));
    command
        .args(args)
        .current_dir(root)
        .env("HOME", root)
        // The tests may run in a pod themselves.
        .env_remove("KUBERNETES_SERVICE_HOST")
        .env_remove("KUBERNETES_SERVICE_PORT")
        .env_remove("KUBECONFIG")
        .env_remove("OPERATOR_NAME")
        .env_remove("OPDEV_LOG")
        .env_remove("WATCH_NAMESPACE");
    command
}

async fn apply(client: &Client, object: &Value) {
    let gvk = opdev_object::meta::Gvk::of(object).unwrap();
    let gvk = GroupVersionKind::gvk(&gvk.group, &gvk.version, &gvk.kind);
    let (resource, capabilities) = kube::discovery::pinned_kind(client, &gvk).await.unwrap();
    let namespaced = capabilities.scope == kube::discovery::Scope::Namespaced;
    let namespace = object.pointer("/metadata/namespace").and_then(Value::as_str).unwrap_or("default");
    let api: Api<DynamicObject> = match namespaced {
        true => Api::namespaced_with(client.clone(), namespace, &resource),
        false => Api::all_with(client.clone(), &resource),
    };
    let name = object["metadata"]["name"].as_str().unwrap();
    let params = PatchParams::apply("test").force();
    api.patch(name, &params, &Patch::Apply(object)).await.unwrap();
}

impl Cluster {
    async fn start() -> Cluster {
        Self::start_after(|_| ()).await
    }

    /// The project is changed first.
    async fn start_after(change: impl FnOnce(&Path)) -> Cluster {
        let mut config = Config::default();
        config.rbac = true;
        let plane = ControlPlane::start_with(config).await.unwrap();
        let listening = plane.listen(Listen::default()).await.unwrap();
        let client = plane.client();
        let (folder, root) = demo_project();
        // Two charts and one script; the other scripts' definitions nobody has installed.
        for other in ["types/armada", "types/cache", "reconcilers/armada"] {
            fs::remove_dir_all(root.join("config").join(other)).unwrap();
        }
        for script in fs::read_dir(root.join("config/reconcilers")).unwrap() {
            let path = script.unwrap().path();
            if path.extension().is_some_and(|ending| ending == "ts") && !path.ends_with("podset.ts") {
                fs::remove_file(path).unwrap();
            }
        }
        change(&root);
        for document in definitions() {
            apply(&client, &document).await;
        }
        let role = opdev(&root, &["rbac", "--from-charts", "--output", "-"]).output().unwrap();
        let text = String::from_utf8(role.stdout).unwrap();
        assert!(text.contains("manager-role"), "{text}{}", String::from_utf8_lossy(&role.stderr));
        for node in opdev_object::yaml::documents(&text).unwrap() {
            let object = opdev_object::yaml::to_json(&node).unwrap();
            if !object.is_null() {
                apply(&client, &object).await;
            }
        }
        for object in account() {
            apply(&client, &object).await;
        }
        let cluster = Cluster {
            plane,
            _listening: listening,
            client,
            _folder: folder,
            kubeconfig: root.join("sa"),
            root,
        };
        cluster.write_kubeconfig().await;
        cluster
    }

    /// A kubeconfig with the token of the operator's ServiceAccount in a file, as in a pod.
    async fn write_kubeconfig(&self) {
        fs::write(self.root.join("token"), self.token("manager").await).unwrap();
        let mut kubeconfig: Value = opdev_object::yaml::from_str(&self._listening.kubeconfig).unwrap();
        kubeconfig["users"][0]["user"] = json!({"tokenFile": self.root.join("token")});
        kubeconfig["contexts"][0]["context"]["namespace"] = json!("operators");
        fs::write(&self.kubeconfig, kubeconfig.to_string()).unwrap();
    }

    /// A token of a ServiceAccount.
    async fn token(&self, account: &str) -> String {
        let body = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}});
        let uri = format!("/api/v1/namespaces/operators/serviceaccounts/{account}/token");
        let request = http::Request::post(uri).header("content-type", "application/json");
        let request = request.body(serde_json::to_vec(&body).unwrap()).unwrap();
        let answer: Value = self.client.request(request).await.unwrap();
        answer["status"]["token"].as_str().unwrap().to_owned()
    }

    fn operate(&self, args: &[&str]) -> Operating {
        self.operate_in("", args)
    }

    /// With these namespaces in `WATCH_NAMESPACE`.
    fn operate_in(&self, namespaces: &str, args: &[&str]) -> Operating {
        let mut command = opdev(&self.root, &["operate", "--watches-file=config/watches.yaml"]);
        command.args(["--metrics-bind-address=127.0.0.1:0", "--health-probe-bind-address=127.0.0.1:0"]);
        command.args(args).env("KUBECONFIG", &self.kubeconfig).env("HOSTNAME", "pod");
        command.env("WATCH_NAMESPACE", namespaces);
        Operating::start(command)
    }

    async fn replicas(&self, name: &str, wanted: i32) {
        self.replicas_in("default", name, wanted).await;
    }

    async fn replicas_in(&self, namespace: &str, name: &str, wanted: i32) {
        let api: Api<Deployment> = Api::namespaced(self.client.clone(), namespace);
        let is = move |there: Option<&Deployment>| {
            there.and_then(|there| there.status.as_ref()?.ready_replicas) == Some(wanted)
        };
        let waiting = kube::runtime::wait::await_condition(api, name, is);
        tokio::time::timeout(PATIENCE, waiting).await.expect("the pods").unwrap();
    }

    async fn memcached(&self, replicas: i32) {
        self.memcached_in("default", replicas).await;
    }

    async fn memcached_in(&self, namespace: &str, replicas: i32) {
        let metadata = json!({"name": "a", "namespace": namespace});
        let object = json!({"apiVersion": "cache.my.domain/v1alpha1", "kind": "Memcached", "metadata": metadata,
            "spec": {"replicaCount": replicas}});
        apply(&self.client, &object).await;
    }
}

/// The definitions that an installation brings.
fn definitions() -> Vec<Value> {
    let one = |group: &str, kind: &str| {
        let singular = kind.to_lowercase();
        let open = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
        json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": format!("{singular}s.{group}")},
            "spec": {"group": group, "scope": "Namespaced",
                "names": {"kind": kind, "plural": format!("{singular}s"), "singular": singular, "listKind": format!("{kind}List")},
                "versions": [{"name": "v1alpha1", "served": true, "storage": true, "subresources": {"status": {}},
                    "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": open, "status": open}}}}]}})
    };
    vec![
        one("cache.my.domain", "Memcached"),
        one("charts.my.domain", "Hello"),
        one("app.example.com", "PodSet"),
    ]
}

/// The ServiceAccount with the roles of the scaffold.
fn account() -> Vec<Value> {
    let rbac = "rbac.authorization.k8s.io";
    let subject = json!([{"kind": "ServiceAccount", "name": "manager", "namespace": "operators"}]);
    let all = json!(["get", "list", "watch", "create", "update", "patch", "delete"]);
    let metadata = |name: &str| json!({"name": name, "namespace": "operators"});
    vec![
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "operators"}}),
        json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata("manager")}),
        json!({"apiVersion": format!("{rbac}/v1"), "kind": "ClusterRoleBinding", "metadata": {"name": "manager"},
            "roleRef": {"apiGroup": rbac, "kind": "ClusterRole", "name": "manager-role"}, "subjects": subject}),
        json!({"apiVersion": format!("{rbac}/v1"), "kind": "Role", "metadata": metadata("leader-election"), "rules": [
            {"apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "verbs": all},
            {"apiGroups": [""], "resources": ["events"], "verbs": ["create", "patch"]}]}),
        json!({"apiVersion": format!("{rbac}/v1"), "kind": "RoleBinding", "metadata": metadata("leader-election"),
            "roleRef": {"apiGroup": rbac, "kind": "Role", "name": "leader-election"}, "subjects": subject}),
        json!({"apiVersion": format!("{rbac}/v1"), "kind": "ClusterRole", "metadata": {"name": "metrics-auth"}, "rules": [
            {"apiGroups": ["authentication.k8s.io"], "resources": ["tokenreviews"], "verbs": ["create"]},
            {"apiGroups": ["authorization.k8s.io"], "resources": ["subjectaccessreviews"], "verbs": ["create"]}]}),
        json!({"apiVersion": format!("{rbac}/v1"), "kind": "ClusterRoleBinding", "metadata": {"name": "metrics-auth"},
            "roleRef": {"apiGroup": rbac, "kind": "ClusterRole", "name": "metrics-auth"}, "subjects": subject}),
    ]
}

/// A running `opdev operate` and its log.
struct Operating {
    child: Child,
    lines: mpsc::Receiver<String>,
    seen: Vec<String>,
}

impl Drop for Operating {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Operating {
    fn start(mut command: Command) -> Operating {
        let mut child = command.stdin(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        let (tell, lines) = mpsc::channel();
        let stderr = BufReader::new(child.stderr.take().unwrap());
        std::thread::spawn(move || stderr.lines().map_while(Result::ok).all(|line| tell.send(line).is_ok()));
        Operating { child, lines, seen: Vec::new() }
    }

    /// The first line that holds this text.
    fn line(&mut self, text: &str) -> String {
        if let Some(line) = self.seen.iter().find(|line| line.contains(text)) {
            return line.clone();
        }
        let end = Instant::now() + PATIENCE;
        while let Ok(line) = self.lines.recv_timeout(end.saturating_duration_since(Instant::now())) {
            self.seen.push(line.clone());
            if line.contains(text) {
                return line;
            }
        }
        panic!("no line with {text:?}:\n{}", self.seen.join("\n"));
    }

    fn address(&mut self, text: &str) -> String {
        let line = self.line(text);
        let (_, rest) = line.split_once(" at ").unwrap();
        rest.split(['"', ' ']).next().unwrap().to_owned()
    }

    fn stop(self) -> (Option<i32>, String) {
        self.terminate();
        self.ended()
    }

    fn terminate(&self) {
        let pid = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
    }

    fn ended(mut self) -> (Option<i32>, String) {
        let status = self.child.wait().unwrap();
        self.seen.extend(self.lines.iter());
        (status.code(), self.seen.join("\n"))
    }
}

fn get(address: &str, path: &str) -> (u16, String) {
    let mut stream = TcpStream::connect(address).unwrap();
    write!(stream, "GET {path} HTTP/1.1\r\nHost: here\r\nConnection: close\r\n\r\n").unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    let status = text.split(' ').nth(1).unwrap().parse().unwrap();
    (status, text.split_once("\r\n\r\n").unwrap().1.to_owned())
}

/// Waits until a request is answered so.
fn until_answered(address: &str, path: &str, is: impl Fn(&(u16, String)) -> bool) -> (u16, String) {
    let end = Instant::now() + PATIENCE;
    loop {
        let answer = get(address, path);
        if is(&answer) {
            return answer;
        }
        assert!(Instant::now() < end, "{path}: {answer:?}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Prometheus' own judgement of metrics, where `promtool` is installed.
fn promtool(metrics: &str) {
    let started = Command::new("promtool")
        .args(["check", "metrics"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    let mut child = match started {
        Ok(child) => child,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound && !cfg!(oracles) => return,
        Err(error) => panic!("promtool is missing; the package prometheus has it: {error}"),
    };
    std::io::Write::write_all(&mut child.stdin.take().unwrap(), metrics.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&[output.stdout.as_slice(), &output.stderr].concat()).into_owned();
    // The names are those of controller-runtime and helm-operator.
    assert!(output.status.success() && said.trim().is_empty(), "{:?}: {said}\n{metrics}", output.status);
}

#[tokio::test(flavor = "multi_thread")]
async fn charts_and_scripts_work_with_the_roles_that_opdev_writes() {
    let cluster = Cluster::start().await;
    let mut operating = cluster.operate(&[]);
    let (probes, metrics) =
        (operating.address("serving health probes"), operating.address("serving metrics"));
    operating.line("Starting workers");
    assert_eq!(get(&probes, "/healthz"), (200, "ok".to_owned()));
    until_answered(&probes, "/readyz", |(status, _)| *status == 200);
    cluster.memcached(2).await;
    cluster.replicas("a-memcached", 2).await;
    let line: Value = serde_json::from_str(&operating.line("Installed release")).unwrap();
    let field = |name: &str| line[name].as_str().unwrap_or_default().to_owned();
    assert_eq!(
        [field("logger"), field("name"), field("kind")],
        ["helm.controller", "a", "Memcached"],
        "{line}"
    );
    assert!(
        ["ts", "reconcileID", "causes", "controller"].iter().all(|name| !field(name).is_empty()),
        "{line}"
    );
    let object = json!({"apiVersion": "app.example.com/v1alpha1", "kind": "PodSet", "metadata": {"name": "p"},
        "spec": {"replicas": 3}});
    apply(&cluster.client, &object).await;
    let resource = kube::core::ApiResource {
        group: "app.example.com".into(),
        version: "v1alpha1".into(),
        api_version: "app.example.com/v1alpha1".into(),
        kind: "PodSet".into(),
        plural: "podsets".into(),
    };
    let pod_sets: Api<DynamicObject> = Api::namespaced_with(cluster.client.clone(), "default", &resource);
    let settled = |there: Option<&DynamicObject>| {
        there.is_some_and(|there| there.data.pointer("/status/availableReplicas") == Some(&json!(3)))
    };
    let waiting = kube::runtime::wait::await_condition(pod_sets, "p", settled);
    tokio::time::timeout(PATIENCE, waiting).await.expect("the script").unwrap();
    let installed =
        "opdev_release_total{controller=\"memcached-controller\",action=\"install\",outcome=\"succeeded\"} 1";
    until_answered(&metrics, "/metrics", |(_, text)| text.contains(installed));
    let of_script = "controller_runtime_max_concurrent_reconciles{controller=\"podset-controller\"}";
    let scraped = get(&metrics, "/metrics").1;
    assert!(scraped.contains(of_script));
    promtool(&scraped);
    let (code, log) = operating.stop();
    assert_eq!(code, Some(0), "{log}");
    assert!(!log.contains("forbidden") && !log.contains("\"level\":\"error\""), "{log}");
    assert!(
        log.lines().all(|line| serde_json::from_str::<Value>(line).is_ok_and(|line| line["msg"].is_string())),
        "{log}"
    );
    cluster.plane.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn readiness_waits_for_every_kind_and_names_the_broken_one() {
    let cluster = Cluster::start().await;
    fs::write(cluster.root.join("charts/hello/Chart.yaml"), "name: [").unwrap();
    let mut operating = cluster.operate(&[]);
    let probes = operating.address("serving health probes");
    operating.line("Starting workers");
    let (status, text) =
        until_answered(&probes, "/readyz", |(_, text)| !text.contains("the operator starts"));
    assert!(
        status == 500 && text.contains("[-]kinds failed: ") && text.contains("charts/hello/Chart.yaml"),
        "{text}"
    );
    // The other kinds are served.
    cluster.memcached(1).await;
    cluster.replicas("a-memcached", 1).await;
    cluster.plane.stop().await;
}

/// The roles of the operator, in some namespaces only.
async fn bind_in(client: &Client, namespaces: &[&str]) {
    for namespace in namespaces {
        apply(client, &json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}))
            .await;
        let rbac = "rbac.authorization.k8s.io";
        apply(
            client,
            &json!({"apiVersion": format!("{rbac}/v1"), "kind": "RoleBinding",
                "metadata": {"name": "manager", "namespace": namespace},
                "roleRef": {"apiGroup": rbac, "kind": "ClusterRole", "name": "manager-role"},
                "subjects": [{"kind": "ServiceAccount", "name": "manager", "namespace": "operators"}]}),
        )
        .await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn several_namespaces_need_no_right_to_all_of_them() {
    let cluster = Cluster::start().await;
    let bindings: Api<k8s_openapi::api::rbac::v1::ClusterRoleBinding> = Api::all(cluster.client.clone());
    bindings.delete("manager", &kube::api::DeleteParams::default()).await.unwrap();
    bind_in(&cluster.client, &["left"]).await;
    for namespace in ["right", "other"] {
        let object = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}});
        apply(&cluster.client, &object).await;
    }
    let mut operating = cluster.operate_in("left,right", &[]);
    let probes = operating.address("serving health probes");
    // A namespace that is not granted yet is named, and asked for again without a restart.
    let line = operating.line("cannot watch Memcached");
    assert!(line.contains("forbidden") && line.contains("right") && !line.contains("key R"), "{line}");
    assert_eq!(get(&probes, "/readyz").0, 500);
    bind_in(&cluster.client, &["right"]).await;
    until_answered(&probes, "/readyz", |(status, _)| *status == 200);
    for (namespace, replicas) in [("other", 1), ("left", 1), ("right", 2)] {
        cluster.memcached_in(namespace, replicas).await;
    }
    cluster.replicas_in("left", "a-memcached", 1).await;
    cluster.replicas_in("right", "a-memcached", 2).await;
    // Both are watched: a child that somebody changes is put back.
    let deployments: Api<Deployment> = Api::namespaced(cluster.client.clone(), "left");
    let scaled = json!({"spec": {"replicas": 4}});
    deployments.patch("a-memcached", &PatchParams::default(), &Patch::Merge(&scaled)).await.unwrap();
    operating.line("Repaired release");
    cluster.replicas_in("left", "a-memcached", 1).await;
    let (code, log) = operating.stop();
    assert_eq!(code, Some(0), "{log}");
    assert!(!log.contains("\"namespace\":\"other\""), "{log}");
    cluster.plane.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_kind_without_a_definition_is_named_and_served_once_there_is_one() {
    let cluster = Cluster::start().await;
    let definitions: Api<DynamicObject> = Api::all_with(
        cluster.client.clone(),
        &kube::core::ApiResource {
            group: "apiextensions.k8s.io".into(),
            version: "v1".into(),
            api_version: "apiextensions.k8s.io/v1".into(),
            kind: "CustomResourceDefinition".into(),
            plural: "customresourcedefinitions".into(),
        },
    );
    definitions.delete("hellos.charts.my.domain", &kube::api::DeleteParams::default()).await.unwrap();
    let mut operating = cluster.operate(&[]);
    let probes = operating.address("serving health probes");
    let line = operating.line("is not served");
    assert!(line.contains("Hello (charts.my.domain/v1alpha1)") && line.contains("opdev install"), "{line}");
    let (status, text) = get(&probes, "/readyz");
    assert_eq!(status, 500, "{text}");
    expect![[r#"
        [+]readyz ok
        [-]kinds failed: Hello (charts.my.domain/v1alpha1) is not served: the cluster has no CustomResourceDefinition of it (`opdev install` applies it)
        [+]leader-election ok
        [+]api-server ok
        readyz check failed
    "#]]
    .assert_eq(&text);
    for document in self::definitions() {
        apply(&cluster.client, &document).await;
    }
    until_answered(&probes, "/readyz", |(status, _)| *status == 200);
    cluster.plane.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn metrics_with_authorization_are_for_those_that_may_get_them() {
    let cluster = Cluster::start().await;
    let mut operating = cluster.operate(&["--metrics-secure", "--metrics-require-rbac=true"]);
    let address = operating.address("serving metrics");
    let rbac = "rbac.authorization.k8s.io";
    for object in [
        json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "prometheus", "namespace": "operators"}}),
        json!({"apiVersion": format!("{rbac}/v1"), "kind": "ClusterRole", "metadata": {"name": "metrics-reader"},
            "rules": [{"nonResourceURLs": ["/metrics"], "verbs": ["get"]}]}),
        json!({"apiVersion": format!("{rbac}/v1"), "kind": "ClusterRoleBinding", "metadata": {"name": "metrics-reader"},
            "roleRef": {"apiGroup": rbac, "kind": "ClusterRole", "name": "metrics-reader"},
            "subjects": [{"kind": "ServiceAccount", "name": "prometheus", "namespace": "operators"}]}),
    ] {
        apply(&cluster.client, &object).await;
    }
    let status = async |token: Option<String>| {
        let mut config = kube::Config::new(format!("https://{address}").parse().unwrap());
        config.accept_invalid_certs = true;
        config.auth_info.token = token.map(Into::into);
        let client = Client::try_from(config).unwrap();
        let request = http::Request::get("/metrics").body(Vec::new()).unwrap();
        match client.request_text(request).await {
            Ok(text) => {
                assert!(text.contains("helm_operator_build_info"), "{text}");
                200
            }
            Err(kube::Error::Api(status)) => status.code,
            Err(other) => panic!("{other}"),
        }
    };
    assert_eq!(status(None).await, 401);
    assert_eq!(status(Some("nonsense".to_owned())).await, 401);
    assert_eq!(status(Some(cluster.token("manager").await)).await, 403);
    assert_eq!(status(Some(cluster.token("prometheus").await)).await, 200);
    let (code, log) = operating.stop();
    assert_eq!(code, Some(0), "{log}");
    cluster.plane.stop().await;
}

/// The names of the real helm-operator's metrics, with their labels: written by
/// `tests/reference/operate/beside.py`.
const NAMES: &str = include_str!("../golden/operate/metrics.txt");

fn names_of_the_real_one(text: &str) {
    let shape = |line: &str| {
        let series = line.rsplit_once(' ')?.0;
        let Some((name, labels)) = series.split_once('{') else { return Some(series.to_owned()) };
        let mut labels: Vec<&str> = labels
            .trim_end_matches('}')
            .split("\",")
            .filter_map(|one| Some(one.split_once('=')?.0))
            .collect();
        labels.sort_unstable();
        Some(format!("{name}{{{}}}", labels.join(",")))
    };
    let there: std::collections::BTreeSet<String> =
        text.lines().filter(|line| !line.starts_with('#')).filter_map(shape).collect();
    let missing: Vec<&str> = NAMES.lines().filter(|name| !there.contains(*name)).collect();
    assert!(missing.is_empty(), "{missing:?} are missing in\n{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn another_replica_leads_once_the_leader_is_killed() {
    let cluster = Cluster::start().await;
    let elect = ["--leader-elect", "--leader-election-id=demo", "--leader-election-namespace=operators"];
    let mut first = cluster.operate(&elect);
    first.line("successfully acquired lease operators/demo");
    let metrics = first.address("serving metrics");
    let leads = |value: u8| format!("leader_election_master_status{{name=\"demo\"}} {value}\n");
    assert!(get(&metrics, "/metrics").1.contains(&leads(1)));
    let mut second = cluster.operate(&elect);
    second.line("attempting to acquire leader lease operators/demo");
    let probes = second.address("serving health probes");
    let of_second = second.address("serving metrics");
    assert!(get(&of_second, "/metrics").1.contains(&leads(0)));
    cluster.memcached(1).await;
    cluster.replicas("a-memcached", 1).await;
    let created = |(_, text): &(u16, String)| text.contains("resource_created_at_seconds{");
    names_of_the_real_one(&until_answered(&metrics, "/metrics", created).1);
    assert_eq!(get(&probes, "/readyz").0, 200, "standing by is ready");
    assert!(!second.seen.iter().any(|line| line.contains("acquired")), "{:?}", second.seen);
    let leases: Api<Lease> = Api::namespaced(cluster.client.clone(), "operators");
    let holder = |lease: &Lease| lease.spec.as_ref().unwrap().holder_identity.clone().unwrap();
    let before = holder(&leases.get("demo").await.unwrap());
    first.child.kill().unwrap();
    second.line("successfully acquired lease operators/demo");
    let lease = leases.get("demo").await.unwrap();
    assert_ne!(holder(&lease), before);
    assert_eq!(lease.spec.as_ref().unwrap().lease_transitions, Some(1));
    cluster.memcached(2).await;
    cluster.replicas("a-memcached", 2).await;
    let (code, log) = second.stop();
    assert_eq!(code, Some(0), "{log}");
    assert_eq!(holder(&leases.get("demo").await.unwrap()), "", "who stops in good order lets go");
    cluster.plane.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_work_is_said_at_once() {
    let (_folder, root) = demo_project();
    let ended = |args: &[&str]| {
        let output =
            opdev(&root, &["operate", "--watches-file=config/watches.yaml"]).args(args).output().unwrap();
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let (code, text) = ended(&[]);
    assert!(code == Some(1) && text.contains("there is no cluster"), "{text}");
    // The remedy is one that this command has.
    let kubeconfig = "clusters: [{name: c, cluster: {server: 'https://127.0.0.1:1'}}]\ncontexts: [{name: c, context: {cluster: c}}]\n";
    fs::write(root.join("config.unreachable"), kubeconfig).unwrap();
    for wrong in [
        ["--kubeconfig=gone", "--context=c"],
        ["--kubeconfig=config.unreachable", "--context=d"],
        ["--kubeconfig=config.unreachable", "--context=c"],
    ] {
        let (code, text) = ended(&wrong);
        assert!(code == Some(1) && text.contains("to do:") && !text.contains("--embedded"), "{text}");
    }
    let (code, text) = ended(&["--metrics-require-rbac"]);
    assert_eq!(code, Some(2), "{text}");
    expect![[r#"
        error: --metrics-secure flag is required when --metrics-require-rbac is present
    "#]]
    .assert_eq(&text);
    let (code, text) = ended(&["--leader-elect"]);
    assert_eq!(code, Some(2), "{text}");
    expect![[r#"
        error: --leader-elect needs --leader-election-id: the name of the Lease that replicas share
    "#]]
    .assert_eq(&text);
    let (code, text) = ended(&["--leader-elect", "--leader-election-id=x"]);
    assert_eq!(code, Some(2), "{text}");
    expect![[r#"
        error: --leader-elect needs --leader-election-namespace outside of a cluster
    "#]]
    .assert_eq(&text);
    assert_eq!(ended(&["--zap-log-level=loud"]).0, Some(2));
    let (code, text) = ended(&["--no-such-flag"]);
    assert_eq!(code, Some(2), "{text}");
    expect![[r#"
        error: unexpected argument '--no-such-flag' found

        Usage: opdev operate --watches-file <FILE>

        For more information, try '--help'.
    "#]]
    .assert_eq(&text);
    let (code, text) = ended(&["--webhook-cert-path=/certs"]);
    assert_eq!(code, Some(2), "{text}");
    expect![[r#"
        error: --webhook-cert-path: opdev operate serves no webhooks, for charts, scripts and templates have none
          to do: remove the flag; an operator with webhooks runs as its own program
    "#]]
    .assert_eq(&text);
    // The flags of helm-operator are accepted.
    let all = [
        "--enable-http2",
        "--leader-elect=false",
        "--max-concurrent-reconciles=2",
        "--reconcile-period=30s",
        "--metrics-bind-address=0",
        "--metrics-secure=T",
        "--metrics-require-rbac",
        "--suppress-override-values",
        "--health-probe-bind-address=:0",
        "--leader-election-id=x",
        "--leader-election-namespace=y",
        "--zap-devel",
        "--zap-encoder=console",
        "--zap-log-level=3",
        "--zap-stacktrace-level=panic",
        "--zap-time-encoding=epoch",
    ];
    let (code, text) = ended(&all);
    assert!(code == Some(1) && text.contains("there is no cluster"), "{text}");
    // A flag without effect says so, and only where it is given.
    for (flag, why) in [("--enable-http2", "HTTP/1.1"), ("--zap-stacktrace-level", "no stack traces")] {
        let line = text.lines().find(|line| line.contains(&format!("{flag} has no effect")));
        assert!(line.is_some_and(|line| line.contains(why)), "{text}");
    }
    let (_, text) = ended(&["--enable-http2=false"]);
    assert!(!text.contains("has no effect"), "{text}");
    // A pod that lacks its token is told so.
    let mut command = opdev(&root, &["operate", "--watches-file=config/watches.yaml"]);
    let output = command.env("KUBERNETES_SERVICE_HOST", "10.0.0.1").output().unwrap();
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(text.contains("this is a pod without the token of a ServiceAccount"), "{text}");
    let mut command = opdev(&root, &["run", "--plain"]);
    let output = command.env("KUBERNETES_SERVICE_HOST", "10.0.0.1").output().unwrap();
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1), "{text}");
    expect![[r#"
        error: this is a pod without the token of a ServiceAccount
          where: KUBERNETES_SERVICE_HOST is set, /var/run/secrets/kubernetes.io/serviceaccount/token does not exist
          to do: let the pod mount it (automountServiceAccountToken), name a kubeconfig, or start with --embedded to work without a cluster
    "#]]
    .assert_eq(&text);
    // A project that was not trusted gets nothing of what it wants.
    fs::write(root.join("opdev.yaml"), "allow:\n  programs: [date]\n").unwrap();
    let (code, text) = ended(&[]);
    assert_eq!(code, Some(1), "{text}");
    expect![[r#"
        error: the project TMP/demo wants more than to render and to apply, and is not trusted to
          - run the program date, called by reconcilers (allow.programs in opdev.yaml)
          to do: read these settings; where you trust the project, run `opdev trust --project TMP/demo` and start opdev again
    "#]]
    .assert_eq(&masked(&text));
}

const HOOK: &str = r#"apiVersion: batch/v1
kind: Job
metadata:
  name: {{ .Release.Name }}-hook
  annotations: {"helm.sh/hook": pre-install}
spec:
  template:
    metadata: {annotations: {opdev.dev/fail: pending}}
    spec: {restartPolicy: Never, containers: [{name: hook, image: busybox}]}
"#;

#[tokio::test(flavor = "multi_thread")]
async fn a_hook_that_runs_may_finish_before_the_end_and_no_longer() {
    let cluster =
        Cluster::start_after(|root| fs::write(root.join("charts/hello/templates/hook.yaml"), HOOK).unwrap())
            .await;
    let hello = json!({"apiVersion": "charts.my.domain/v1alpha1", "kind": "Hello", "metadata": {"name": "h"}, "spec": {}});
    apply(&cluster.client, &hello).await;
    let pods: Api<k8s_openapi::api::core::v1::Pod> = Api::namespaced(cluster.client.clone(), "default");
    let only = kube::api::ListParams::default();
    let one_pod = async || {
        let end = Instant::now() + PATIENCE;
        loop {
            if let Some(pod) = pods.list(&only).await.unwrap().items.pop() {
                return pod.metadata.name.unwrap();
            }
            assert!(Instant::now() < end, "no pod of the hook");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    // It is told to stop while the hook runs, and the hook goes on well.
    let mut operating = cluster.operate(&["--graceful-shutdown-timeout=50s"]);
    operating.line("Starting workers");
    let pod = one_pod().await;
    operating.terminate();
    operating.line("Stopping and waiting for reconciles that run");
    let recovers = json!({"metadata": {"annotations": {"opdev.dev/fail": null}}});
    pods.patch(&pod, &PatchParams::default(), &Patch::Merge(&recovers)).await.unwrap();
    let (code, log) = operating.ended();
    assert!(code == Some(0) && log.contains("Installed release"), "{log}");
    // It is told to stop, and the hook never ends.
    let again = json!({"apiVersion": "charts.my.domain/v1alpha1", "kind": "Hello", "metadata": {"name": "i"}, "spec": {}});
    apply(&cluster.client, &again).await;
    let mut operating = cluster.operate(&["--graceful-shutdown-timeout=1s"]);
    let jobs: Api<k8s_openapi::api::batch::v1::Job> = Api::namespaced(cluster.client.clone(), "default");
    let there = kube::runtime::wait::await_condition(jobs, "i-hook", |job: Option<&_>| job.is_some());
    tokio::time::timeout(PATIENCE, there).await.expect("the second hook").unwrap();
    operating.terminate();
    operating.line("Stopping and waiting for reconciles that run");
    let (code, log) = operating.ended();
    assert!(code == Some(1) && log.contains("reconciles did not end within 1 s"), "{log}");
    cluster.plane.stop().await;
}
