//! Real kubectl against a listening plane.

use super::tools::Cluster;
use expect_test::expect;
use serde_json::Value;
use std::time::Duration;
use tokio::io::{AsyncBufReadExt as _, BufReader};

fn deployment(replicas: u32, image: &str) -> String {
    format!(
        "apiVersion: apps/v1
kind: Deployment
metadata: {{name: web, labels: {{app: web}}}}
spec:
  replicas: {replicas}
  selector: {{matchLabels: {{app: web}}}}
  template:
    metadata: {{labels: {{app: web}}}}
    spec:
      containers:
      - name: web
        image: {image}
        ports: [{{containerPort: 80}}]
"
    )
}

const WIDGET: &str = "apiVersion: example.com/v1
kind: Widget
metadata: {name: turner}
spec: {color: red, replicas: 2}
";

fn widgets() -> String {
    super::client::widgets().to_string()
}

/// The columns of a table, header first, without what depends on the time.
fn table(text: &str) -> Vec<Vec<&str>> {
    text.lines()
        .map(|line| line.split("  ").map(str::trim).filter(|cell| !cell.is_empty()).collect())
        .collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[cfg_attr(not(oracles), ignore = "needs OPDEV_ORACLES")]
async fn version_resources_and_explain() {
    let cluster = Cluster::start().await;
    let version = cluster.kubectl("version -o json").await;
    let version: Value = serde_json::from_str(&version).unwrap();
    assert!(version["serverVersion"]["gitVersion"].as_str().unwrap().starts_with("v1.37.0+opdev"));

    assert_eq!(cluster.kubectl("auth can-i delete nodes").await, "yes\n");
    assert!(cluster.kubectl("auth whoami").await.contains("kubernetes-admin"));

    cluster.apply(&widgets()).await;
    let resources = cluster.kubectl("api-resources -o wide").await;
    let line = |name: &str| {
        let lines = resources.lines();
        lines.map(|line| line.split_whitespace().collect::<Vec<_>>()).find(|line| line[0] == name).unwrap()
    };
    assert_eq!(line("deployments")[..5], ["deployments", "deploy", "apps/v1", "true", "Deployment"]);
    assert_eq!(line("widgets")[..5], ["widgets", "wd", "example.com/v1", "true", "Widget"]);
    let versions = cluster.kubectl("api-versions").await;
    assert!(versions.lines().any(|line| line == "apps/v1") && versions.lines().any(|line| line == "v1"));

    let explained = cluster.kubectl("explain widgets.spec.replicas").await;
    assert!(explained.contains("FIELD: replicas <integer>"), "{explained}");
    assert!(explained.contains("How many to turn at once."), "{explained}");
    let explained = cluster.kubectl("explain widgets.kind").await;
    assert!(explained.contains("Kind is a string value representing the REST resource"), "{explained}");
    let explained = cluster.kubectl("explain pod.spec.activeDeadlineSeconds").await;
    assert!(explained.contains("FIELD: activeDeadlineSeconds <integer>"), "{explained}");
    assert!(
        explained.contains("Optional duration in seconds the pod may be active on the node"),
        "{explained}"
    );
    let explained = cluster.kubectl("explain deployment.spec.template").await;
    assert!(explained.contains("Template describes the pods that will be created"), "{explained}");
    let explained = cluster.kubectl("explain deployment.spec.strategy --recursive").await;
    assert!(explained.contains("maxSurge\t<IntOrString>"), "{explained}");
    cluster.plane.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[cfg_attr(not(oracles), ignore = "needs OPDEV_ORACLES")]
async fn get_in_every_form() {
    let cluster = Cluster::start().await;
    cluster.apply(&deployment(2, "nginx:1")).await;
    // On a busy machine it looks before the pods run, and tells of those first.
    let out = cluster.kubectl("rollout status deployment/web --timeout=30s").await;
    assert_eq!(out.lines().last(), Some("deployment \"web\" successfully rolled out"));

    let text = cluster.kubectl("get deployments").await;
    assert_eq!(table(&text)[0], ["NAME", "READY", "UP-TO-DATE", "AVAILABLE", "AGE"]);
    assert_eq!(table(&text)[1][..4], ["web", "2/2", "2", "2"]);
    let text = cluster.kubectl("get deploy web -o wide").await;
    assert_eq!(table(&text)[0][5..], ["CONTAINERS", "IMAGES", "SELECTOR"]);
    assert_eq!(table(&text)[1][5..], ["web", "nginx:1", "app=web"]);
    let text = cluster.kubectl("get pods -l app=web --no-headers").await;
    assert_eq!(text.lines().count(), 2);
    assert!(text.lines().all(|line| line.contains("1/1") && line.contains("Running")), "{text}");
    let text = cluster.kubectl("get pods -A -o wide --show-labels").await;
    assert!(text.starts_with("NAMESPACE"), "{text}");

    let path = "get deployment web -o jsonpath={.spec.template.spec.containers[0].image}";
    assert_eq!(cluster.kubectl(path).await, "nginx:1");
    let text = cluster.kubectl("get deployment web -o yaml").await;
    assert!(text.contains("\n  replicas: 2\n") && text.contains("kind: Deployment"), "{text}");
    let text = cluster.kubectl("get all").await;
    for kind in ["pod/web-", "deployment.apps/web", "replicaset.apps/web-", "service/kubernetes"] {
        assert!(text.contains(kind), "{kind}\n{text}");
    }
    let text = cluster.kubectl("get namespaces -o name").await;
    assert_eq!(text.lines().next(), Some("namespace/default"));
    let text = cluster.kubectl("get nodes").await;
    assert_eq!(table(&text)[1][1], "Ready", "{text}");
    let missing = cluster.run("kubectl", &["get", "pod", "none"]).await;
    assert_eq!(missing.err, "Error from server (NotFound): pods \"none\" not found\n");
    let sorted =
        cluster.kubectl("get pods --sort-by=.metadata.name -o custom-columns=N:.metadata.name").await;
    assert_eq!(sorted.lines().count(), 3);
    cluster.plane.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[cfg_attr(not(oracles), ignore = "needs OPDEV_ORACLES")]
async fn get_watch_prints_a_table_that_grows() {
    let cluster = Cluster::start().await;
    cluster.kubectl("create configmap one --from-literal=a=1").await;
    let mut child = cluster.command("kubectl", &["get", "configmaps", "-w"]).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut next_with = async |wanted: &str| loop {
        let line = lines.next_line().await.unwrap().expect("the watch goes on");
        if line.starts_with(wanted) {
            return line;
        }
    };
    let told = async {
        assert_eq!(table(&next_with("NAME").await)[0], ["NAME", "DATA", "AGE"]);
        assert_eq!(table(&next_with("one").await)[0][..2], ["one", "1"]);
        cluster.kubectl("create configmap two --from-literal=a=1 --from-literal=b=2").await;
        assert_eq!(table(&next_with("two").await)[0][..2], ["two", "2"]);
        cluster.kubectl("delete configmap two").await;
        next_with("two").await;
    };
    tokio::time::timeout(Duration::from_secs(30), told).await.expect("the watch tells");
    child.kill().await.unwrap();
    cluster.plane.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[cfg_attr(not(oracles), ignore = "needs OPDEV_ORACLES")]
async fn create_apply_and_every_patch() {
    let cluster = Cluster::start().await;
    let said = cluster.kubectl_with("create -f -", &deployment(1, "nginx:1")).await;
    assert_eq!(said.out, "deployment.apps/web created\n", "{}", said.err);
    let said = cluster.kubectl_with("create -f -", &deployment(1, "nginx:1")).await;
    expect![[r#"
        Error from server (AlreadyExists): error when creating "STDIN": deployments.apps "web" already exists
    "#]]
    .assert_eq(&said.err);

    let said = cluster.kubectl_with("apply -f -", &deployment(1, "nginx:2")).await;
    assert!(said.out == "deployment.apps/web configured\n", "{said:?}");
    assert_eq!(cluster.apply(&deployment(1, "nginx:2")).await, "deployment.apps/web unchanged\n");
    let diff = cluster.kubectl_with("apply --dry-run=server -f -", &deployment(1, "nginx:3")).await;
    assert_eq!(diff.out, "deployment.apps/web configured (server dry run)\n");
    let image = "get deployment web -o jsonpath={.spec.template.spec.containers[*].image}";
    assert_eq!(cluster.kubectl(image).await, "nginx:2");

    let said = cluster.kubectl_with("apply --server-side -f -", &deployment(1, "nginx:3")).await;
    assert_eq!(said.out, "deployment.apps/web serverside-applied\n", "{}", said.err);
    let said = cluster
        .kubectl_with("apply --server-side --field-manager=other -f -", &deployment(1, "nginx:4"))
        .await;
    assert!(said.err.contains("conflict with \"kubectl\": .spec.template.spec.containers"), "{}", said.err);

    let patch = async |kind: &str, body: &str| {
        cluster.ok("kubectl", &["patch", "deployment", "web", "--type", kind, "-p", body]).await
    };
    patch(
        "strategic",
        r#"{"spec":{"template":{"spec":{"containers":[{"name":"side","image":"busybox"}]}}}}"#,
    )
    .await;
    assert_eq!(cluster.kubectl(image).await, "busybox nginx:3");
    patch("json", r#"[{"op":"remove","path":"/spec/template/spec/containers/0"}]"#).await;
    assert_eq!(cluster.kubectl(image).await, "nginx:3");
    patch("merge", r#"{"spec":{"template":{"spec":{"containers":[{"name":"only","image":"x"}]}}}}"#).await;
    assert_eq!(cluster.kubectl(image).await, "x");
    let unchanged = patch("merge", r#"{"metadata":{"labels":{"app":"web"}}}"#).await;
    assert_eq!(unchanged, "deployment.apps/web patched (no change)\n");

    cluster.kubectl("label deployment web tier=front").await;
    cluster.kubectl("annotate deployment web note=hi").await;
    cluster.kubectl("set image deployment/web only=y").await;
    assert_eq!(cluster.kubectl(image).await, "y");
    let said = cluster.kubectl_with("replace -f -", &deployment(2, "nginx:5")).await;
    assert_eq!(said.out, "deployment.apps/web replaced\n", "{}", said.err);
    assert_eq!(cluster.kubectl(image).await, "nginx:5");
    let strict = deployment(1, "nginx:5").replace("replicas:", "replicaz:");
    let said = cluster.kubectl_with("apply -f -", &strict).await;
    assert!(said.err.contains("unknown field \"spec.replicaz\""), "{}", said.err);
    cluster.plane.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[cfg_attr(not(oracles), ignore = "needs OPDEV_ORACLES")]
async fn scale_rollout_and_wait() {
    let cluster = Cluster::start().await;
    cluster.apply(&deployment(1, "nginx:1")).await;
    cluster.kubectl("wait deployment/web --for=condition=Available --timeout=30s").await;
    cluster.kubectl("scale deployment web --replicas=3").await;
    cluster.kubectl("wait deployment/web --for=jsonpath={.status.availableReplicas}=3 --timeout=30s").await;
    cluster.kubectl("wait pods -l app=web --for=condition=Ready --timeout=30s").await;

    cluster.kubectl("set image deployment/web web=nginx:2").await;
    cluster.kubectl("rollout status deployment/web --timeout=30s").await;
    let history = cluster.kubectl("rollout history deployment/web").await;
    assert!(history.lines().any(|line| line.starts_with('2')), "{history}");
    cluster.kubectl("rollout undo deployment/web").await;
    cluster.kubectl("rollout status deployment/web --timeout=30s").await;
    let image = "get deployment web -o jsonpath={.spec.template.spec.containers[*].image}";
    assert_eq!(cluster.kubectl(image).await, "nginx:1");
    cluster.kubectl("rollout restart deployment/web").await;
    cluster.kubectl("rollout status deployment/web --timeout=30s").await;

    cluster.apply(&widgets()).await;
    cluster.kubectl("wait crd/widgets.example.com --for=condition=Established --timeout=10s").await;
    cluster.apply(WIDGET).await;
    cluster.kubectl("scale widget turner --replicas=5").await;
    let text = cluster.kubectl("get widgets").await;
    assert_eq!(table(&text), [vec!["NAME", "REPLICAS"], vec!["turner", "5"]]);
    let text = cluster.kubectl("get wd -o wide").await;
    assert_eq!(table(&text)[1], ["turner", "5", "red"]);
    cluster.plane.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[cfg_attr(not(oracles), ignore = "needs OPDEV_ORACLES")]
async fn delete_with_each_cascade() {
    let cluster = Cluster::start().await;
    let sets = "get replicasets -l app=web -o name";
    for cascade in ["background", "foreground"] {
        cluster.apply(&deployment(2, "nginx:1")).await;
        cluster.kubectl("rollout status deployment/web --timeout=30s").await;
        let out = cluster.kubectl(&format!("delete deployment web --cascade={cascade} --timeout=30s")).await;
        assert!(out.starts_with("deployment.apps \"web\" deleted"), "{out}");
        cluster.kubectl("wait pods -l app=web --for=delete --timeout=30s").await;
        if cascade == "foreground" {
            assert_eq!(cluster.kubectl(sets).await, "", "gone before the deployment");
        }
    }
    cluster.apply(&deployment(2, "nginx:1")).await;
    cluster.kubectl("rollout status deployment/web --timeout=30s").await;
    cluster.kubectl("delete deployment web --cascade=orphan --timeout=30s").await;
    assert_eq!(cluster.kubectl(sets).await.lines().count(), 1, "the replica set stays");
    let owners = "get replicasets -l app=web -o jsonpath={.items[*].metadata.ownerReferences}";
    assert_eq!(cluster.kubectl(owners).await, "");

    cluster.kubectl("create namespace gone").await;
    cluster.kubectl("create configmap one -n gone").await;
    cluster.kubectl("delete namespace gone --timeout=30s").await;
    let said = cluster.run("kubectl", &["get", "configmap", "one", "-n", "gone"]).await;
    expect![[r#"
        Error from server (NotFound): namespaces "gone" not found
    "#]]
    .assert_eq(&said.err);
    let said = cluster.run("kubectl", &["create", "configmap", "two", "-n", "none"]).await;
    expect![[r#"
        error: failed to create configmap: namespaces "none" not found
    "#]]
    .assert_eq(&said.err);
    cluster.plane.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[cfg_attr(not(oracles), ignore = "needs OPDEV_ORACLES")]
async fn describe_shows_events() {
    let cluster = Cluster::start().await;
    cluster.apply(&deployment(1, "nginx:1")).await;
    cluster.kubectl("rollout status deployment/web --timeout=30s").await;
    let text = cluster.kubectl("describe deployment web").await;
    assert!(text.contains("1 desired | 1 updated | 1 total | 1 available"), "{text}");
    assert!(text.contains("ScalingReplicaSet"), "{text}");
    let text = cluster.kubectl("describe pods -l app=web").await;
    assert!(text.contains("Controlled By:  ReplicaSet/web-"), "{text}");
    let text = cluster.kubectl("describe node").await;
    assert!(text.contains("Allocated resources"), "{text}");
    cluster.apply(&widgets()).await;
    cluster.apply(WIDGET).await;
    let text = cluster.kubectl("describe widget turner").await;
    assert!(text.contains("Color:") && text.contains("Events:"), "{text}");
    let text = cluster.kubectl("get events").await;
    assert_eq!(table(&text)[0], ["LAST SEEN", "TYPE", "REASON", "OBJECT", "MESSAGE"]);
    cluster.plane.stop().await;
}

/// `kubectl create` and its like send protobuf; `apply` and `create -f` send JSON.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[cfg_attr(not(oracles), ignore = "needs OPDEV_ORACLES")]
async fn commands_that_write_typed_objects() {
    let cluster = Cluster::start().await;
    for command in [
        "run box --image=busybox --port=80 --env=A=b --labels=app=box",
        "expose pod box --port=80 --target-port=http",
        "create deployment none --image=nginx --replicas=0",
        "create deployment two --image=nginx --replicas=2 --port=80",
        "autoscale deployment two --min=1 --max=3 --cpu=80%",
        "create job once --image=busybox",
        "create cronjob often --image=busybox --schedule=@hourly",
        "create job now --from=cronjob/often",
        "create ingress door --rule=example.com/path*=box:80,tls=cert --class=nginx",
        "create secret generic words --from-literal=a=b",
        "create configmap texts --from-literal=a=b",
        "create serviceaccount bot",
        "create role reader --verb=get --resource=pods",
        "create clusterrole reader --verb=get --resource=nodes",
        "create rolebinding reader --role=reader --serviceaccount=default:bot",
        "create clusterrolebinding reader --clusterrole=reader --user=jane",
        "create poddisruptionbudget keep --selector=app=two --min-available=50%",
        "create quota few --hard=pods=10,requests.cpu=2",
        "create priorityclass high --value=1000",
        "create service loadbalancer front --tcp=80:8080",
        "create service externalname away --external-name=example.com",
        "taint nodes opdev a=b:NoSchedule",
        "taint nodes opdev a-",
        "cordon opdev",
        "uncordon opdev",
        "set env deployment/two A=b",
        "set resources deployment two --limits=cpu=200m,memory=512Mi",
        "set serviceaccount deployment two bot",
    ] {
        cluster.kubectl(command).await;
    }
    let get = async |path: &str| cluster.kubectl(&format!("get {path}")).await;
    assert_eq!(get("deployment none -o jsonpath={.spec.replicas}").await, "0", "an explicit zero stays");
    assert_eq!(get("secret words -o jsonpath={.data.a}").await, "Yg==");
    assert_eq!(get("svc box -o jsonpath={.spec.ports[0].targetPort}").await, "http");
    assert_eq!(get("pod box -o jsonpath={.spec.restartPolicy}").await, "Always", "the default");
    assert_eq!(get("cronjob often -o jsonpath={.spec.suspend}").await, "false");
    let limits = "deployment two -o jsonpath={.spec.template.spec.containers[0].resources.limits}";
    assert_eq!(get(limits).await, r#"{"cpu":"200m","memory":"512Mi"}"#);
    let text = get("hpa").await;
    assert_eq!(table(&text)[1][..5], ["two", "Deployment/two", "cpu: <unknown>/80%", "1", "3"]);
    let text = get("ingress").await;
    assert_eq!(table(&text)[1][..4], ["door", "nginx", "example.com", "80, 443"]);
    let text = get("svc front").await;
    assert!(text.contains("LoadBalancer") && text.contains("<pending>"), "{text}");
    let token = cluster.kubectl("create token bot").await;
    assert_eq!(token.split('.').count(), 3, "a JWT by its shape");
    let said = cluster.run("kubectl", &["logs", "box"]).await;
    expect![[r#"
        Error from server (NotImplemented): pods/log of "box" is not there: the embedded control plane simulates pods and runs no containers
    "#]]
    .assert_eq(&said.err);
    cluster.kubectl("delete pod box --now --timeout=30s").await;
    cluster.plane.stop().await;
}

/// Nothing runs in a simulated pod: `kubectl debug` says so instead of waiting for its container.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[cfg_attr(not(oracles), ignore = "needs OPDEV_ORACLES")]
async fn debug_explains_itself() {
    let cluster = Cluster::start().await;
    cluster.kubectl("run web --image=nginx").await;
    cluster.kubectl("wait --for=condition=Ready pod/web --timeout=60s").await;
    let said = cluster.run("kubectl", &["debug", "web", "--image=busybox", "--attach", "--quiet"]).await;
    assert!(said.code != 0, "{} {} {}", said.code, said.out, said.err);
    expect![[r#"
        warning: couldn't attach to pod/web, falling back to streaming logs: unable to upgrade connection: pods/attach of "web" is not there: the embedded control plane simulates pods and runs no containers
        Error from server (NotImplemented): pods/log of "web" is not there: the embedded control plane simulates pods and runs no containers
    "#]]
    .assert_eq(&said.err);
    let states = "get pod web -o jsonpath={.status.ephemeralContainerStatuses[*].state.running.startedAt}";
    assert!(!cluster.kubectl(states).await.is_empty());
}

const JOBS: &str = "apiVersion: batch/v1
kind: Job
metadata: {name: late}
spec:
  activeDeadlineSeconds: 1
  ttlSecondsAfterFinished: 0
  template:
    spec:
      restartPolicy: Never
      containers: [{name: a, image: a, resources: {limits: {nvidia.com/gpu: 1}}}]
---
apiVersion: batch/v1
kind: Job
metadata: {name: none}
spec:
  completions: 0
  suspend: true
  template: {spec: {restartPolicy: Never, containers: [{name: a, image: a}]}}
---
apiVersion: batch/v1
kind: Job
metadata: {name: done}
spec: {template: {spec: {restartPolicy: Never, containers: [{name: a, image: a}]}}}
";

/// The job controller keeps the rules that the API server has for the status of a job.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[cfg_attr(not(oracles), ignore = "needs OPDEV_ORACLES")]
async fn jobs_end_whatever_their_pods_do() {
    let cluster = Cluster::start().await;
    cluster.apply(JOBS).await;
    // No node has a GPU. The pod goes with the job, which goes by itself.
    cluster.kubectl("wait --for=delete job/late --timeout=60s").await;
    cluster.kubectl("wait --for=delete pod -l job-name=late --timeout=60s").await;
    cluster.kubectl("wait --for=condition=Complete job/none job/done --timeout=60s").await;
    let patch =
        ["patch", "job", "done", "--subresource=status", "-p", r#"{"status":{"completionTime":null}}"#];
    let said = cluster.run("kubectl", &patch).await;
    expect![[r#"
        The Job "done" is invalid: status.completionTime: Required value: completionTime is required for Complete jobs
    "#]]
    .assert_eq(&said.err);
}
