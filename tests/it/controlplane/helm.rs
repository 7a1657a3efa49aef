//! Real Helm 3 and 4 against a listening plane.

use super::tools::Cluster;
use expect_test::expect;
use serde_json::Value;

fn chart(cluster: &Cluster) -> String {
    cluster.file(
        "web/Chart.yaml",
        "apiVersion: v2\nname: web\nversion: 0.1.0\nappVersion: \"1\"\nkubeVersion: \">=1.30.0-0\"\n",
    );
    cluster.file("web/values.yaml", "replicas: 2\nimage: nginx\nconfig: {greeting: hello}\n");
    cluster.file(
        "web/templates/all.yaml",
        "apiVersion: v1
kind: ConfigMap
metadata: {name: {{ .Release.Name }}}
data: {{- toYaml .Values.config | nindent 2 }}
---
apiVersion: v1
kind: Service
metadata: {name: {{ .Release.Name }}}
spec:
  selector: {app: {{ .Release.Name }}}
  ports: [{port: 80, targetPort: http}]
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: {{ .Release.Name }}}
spec:
  replicas: {{ .Values.replicas }}
  selector: {matchLabels: {app: {{ .Release.Name }}}}
  template:
    metadata: {labels: {app: {{ .Release.Name }}}}
    spec:
      containers:
      - name: web
        image: {{ .Values.image }}
        ports: [{name: http, containerPort: 80}]
",
    );
    cluster.file(
        "web/templates/hook.yaml",
        "apiVersion: batch/v1
kind: Job
metadata:
  name: {{ .Release.Name }}-migrate
  annotations:
    helm.sh/hook: pre-upgrade
    helm.sh/hook-delete-policy: before-hook-creation,hook-succeeded
spec:
  template:
    spec:
      restartPolicy: Never
      containers: [{name: migrate, image: busybox}]
",
    );
    cluster.path("web").display().to_string()
}

async fn helm(cluster: &Cluster, tool: &str, arguments: &str) -> String {
    cluster.ok(tool, &arguments.split_whitespace().collect::<Vec<_>>()).await
}

async fn a_release_lives(tool: &str) {
    let cluster = Cluster::start().await;
    let chart = chart(&cluster);
    let out = helm(&cluster, tool, &format!("install site {chart} --wait --timeout 40s")).await;
    assert!(out.contains("STATUS: deployed"), "{out}");
    let ready = "get deployment site -o jsonpath={.status.readyReplicas}";
    assert_eq!(cluster.kubectl(ready).await, "2");

    helm(
        &cluster,
        tool,
        &format!("upgrade site {chart} --set replicas=3 --set config.more=yes --wait --timeout 40s"),
    )
    .await;
    assert_eq!(cluster.kubectl(ready).await, "3");
    let more = "get configmap site -o jsonpath={.data.more}";
    assert_eq!(cluster.kubectl(more).await, "yes");
    assert_eq!(cluster.kubectl("get jobs -o name").await, "", "the hook was deleted when it had succeeded");

    helm(&cluster, tool, "rollback site 1 --wait --timeout 40s").await;
    let replicas = "get deployment site -o jsonpath={.spec.replicas}";
    assert_eq!(cluster.kubectl(replicas).await, "2");
    assert_eq!(cluster.kubectl(more).await, "", "what revision 1 did not have is gone");

    let history: Value = serde_json::from_str(&helm(&cluster, tool, "history site -o json").await).unwrap();
    let statuses: Vec<&str> =
        history.as_array().unwrap().iter().map(|at| at["status"].as_str().unwrap()).collect();
    assert_eq!(statuses, ["superseded", "superseded", "deployed"]);
    let list: Value = serde_json::from_str(&helm(&cluster, tool, "list -o json").await).unwrap();
    assert_eq!(list[0]["name"], "site");
    assert_eq!(list[0]["chart"], "web-0.1.0");
    let values = helm(&cluster, tool, "get values site --revision 2").await;
    expect![[r#"
        USER-SUPPLIED VALUES:
        config:
          more: "yes"
        replicas: 3
    "#]]
    .assert_eq(&values);
    assert!(helm(&cluster, tool, "get manifest site").await.contains("kind: Deployment"));

    helm(&cluster, tool, "uninstall site --wait --timeout 40s").await;
    for kind in ["deployment", "service", "configmap", "secret"] {
        let left = cluster.kubectl(&format!("get {kind} -o name")).await;
        assert!(!left.contains("site"), "{left}");
    }
    cluster.plane.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[cfg_attr(not(oracles), ignore = "needs OPDEV_ORACLES")]
async fn a_release_of_helm_3_lives() {
    a_release_lives("helm3").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[cfg_attr(not(oracles), ignore = "needs OPDEV_ORACLES")]
async fn a_release_of_helm_4_lives() {
    a_release_lives("helm4").await;
}

/// The chart that `helm create` scaffolds, with everything in it switched on, and its test hook.
async fn a_scaffolded_chart_installs(tool: &str) {
    let cluster = Cluster::start().await;
    let chart = cluster.path("std").display().to_string();
    helm(&cluster, tool, &format!("create {chart}")).await;
    let everything = "--set autoscaling.enabled=true --set ingress.enabled=true --wait --timeout 40s";
    let out = helm(&cluster, tool, &format!("install std {chart} {everything}")).await;
    assert!(out.contains("STATUS: deployed"), "{out}");
    let out = helm(&cluster, tool, "test std --timeout 40s").await;
    assert!(out.contains("Phase:          Succeeded"), "{out}");
    assert!(cluster.kubectl("get hpa,ingress -o name").await.lines().count() == 2);
    helm(&cluster, tool, "uninstall std --wait --timeout 40s").await;
    cluster.plane.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[cfg_attr(not(oracles), ignore = "needs OPDEV_ORACLES")]
async fn a_chart_scaffolded_by_helm_3_installs() {
    a_scaffolded_chart_installs("helm3").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[cfg_attr(not(oracles), ignore = "needs OPDEV_ORACLES")]
async fn a_chart_scaffolded_by_helm_4_installs() {
    a_scaffolded_chart_installs("helm4").await;
}
