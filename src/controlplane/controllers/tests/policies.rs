//! Jobs with policies, DaemonSets that surge, pods that are kept apart.

use super::super::fields::{self, uid};
use super::*;

fn job(spec: Value, fail: Option<&str>) -> Value {
    let mut job = workload("batch/v1", "Job", "work", spec);
    put(&mut job, "/spec/template/spec/restartPolicy", "Never".into());
    if let Some(fail) = fail {
        put(&mut job, "/spec/template/metadata/annotations", json!({"opdev.dev/fail": fail}));
    }
    if let Some(Value::Object(spec)) = job.get_mut("spec") {
        spec.remove("selector");
    }
    job
}

/// Runs the Job to rest; gives its status, and the reason and message of its end.
fn run(spec: Value, fail: Option<&str>) -> (serde_json::Map<String, Value>, String) {
    let mut cluster = Simulation::new();
    cluster.create("batch/jobs", job(spec, fail));
    cluster.elapse(Duration::from_secs(30));
    let status = fields::status(&cluster.get("batch/jobs", "work").unwrap());
    let ends = ["Failed", "Complete"].iter().filter_map(|kind| {
        let end = conditions::find(&status, kind)?;
        Some(format!("{kind} {}: {}", text(end, "/reason"), text(end, "/message")))
    });
    let end = ends.collect::<Vec<_>>().join("; ");
    (status, end)
}

#[test]
fn indexes_fail_for_themselves() {
    let indexed = |most: Value| {
        json!({"completions": 2, "parallelism": 2, "completionMode": "Indexed", "backoffLimit": i32::MAX,
            "backoffLimitPerIndex": 0, "maxFailedIndexes": most})
    };
    let (status, end) = run(indexed(Value::Null), Some("crash"));
    assert_eq!((status.get("failedIndexes"), status.get("failed")), (Some(&json!("0,1")), Some(&json!(2))));
    assert_eq!(end, "Failed FailedIndexes: Job has failed indexes");
    let (_, end) = run(indexed(json!(0)), Some("crash"));
    assert_eq!(
        end,
        "Failed MaxFailedIndexesExceeded: Job has exceeded the specified maximal number of failed indexes"
    );
    let mut again = indexed(Value::Null);
    again["backoffLimitPerIndex"] = json!(1);
    let (status, end) = run(again, Some("crash"));
    assert_eq!(
        (status.get("failed"), end.as_str()),
        (Some(&json!(4)), "Failed FailedIndexes: Job has failed indexes")
    );
    let (status, end) = run(indexed(Value::Null), None);
    assert_eq!(
        (status.get("failedIndexes"), status.get("completedIndexes")),
        (Some(&json!("")), Some(&json!("0,1")))
    );
    assert!(end.starts_with("Complete"), "{end}");
}

#[test]
fn a_policy_says_which_failures_count() {
    let rule = |action: &str, values: Value| {
        json!({"completions": 1, "backoffLimit": 0, "podFailurePolicy": {"rules": [
            {"action": action, "onExitCodes": {"operator": "In", "values": values}}]}})
    };
    let (_, end) = run(rule("FailJob", json!([1])), Some("crash"));
    assert!(end.starts_with("Failed PodFailurePolicy: Container main for pod default/work-"), "{end}");
    assert!(end.ends_with(" failed with exit code 1 matching FailJob rule at index 0"), "{end}");
    let (_, end) = run(rule("FailJob", json!([2])), Some("crash"));
    assert!(end.starts_with("Failed BackoffLimitExceeded"), "{end}");
    let ignore = json!({"completions": 1, "backoffLimit": 0, "podFailurePolicy": {"rules": [
        {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]}]}});
    let (status, end) = run(ignore, Some("evict"));
    assert_eq!((status.get("failed"), end.as_str()), (None, ""));
}

#[test]
fn a_job_may_succeed_early_and_may_belong_to_others() {
    let early = json!({"completions": 4, "parallelism": 1, "completionMode": "Indexed",
        "successPolicy": {"rules": [{"succeededIndexes": "0"}]}});
    let (status, end) = run(early, None);
    assert_eq!(end, "Complete SuccessPolicy: Matched rules at index 0");
    assert_eq!(status.get("completedIndexes"), Some(&json!("0")));
    let (status, _) = run(json!({"completions": 1, "managedBy": "kueue.x-k8s.io/multikueue"}), None);
    assert!(status.is_empty(), "{status:?}");
}

#[test]
fn a_daemon_that_surges_keeps_the_old_pod_until_the_new_one_works() {
    let mut cluster = Simulation::new();
    let strategy = json!({"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}});
    let set = workload("apps/v1", "DaemonSet", "agent", json!({"updateStrategy": strategy}));
    cluster.create("apps/daemonsets", set);
    cluster.settle();
    let first = cluster.list("pods");
    assert_eq!(first.len(), 1);
    cluster.edit("apps/daemonsets", "agent", |set| {
        put(set, "/spec/template/metadata/annotations", json!({"opdev.dev/fail": "crash"}));
    });
    cluster.settle();
    let pods = cluster.list("pods");
    assert_eq!(pods.len(), 2, "a new one beside the old one");
    assert!(pods.iter().any(|pod| uid(pod) == uid(&first[0]) && pods::ready(pod) && !deleting(pod)));
    cluster.edit("apps/daemonsets", "agent", |set| {
        put(set, "/spec/template/metadata/annotations", json!({"fixed": "yes"}));
    });
    cluster.settle();
    let pods = cluster.list("pods");
    assert_eq!((pods.len(), pods::ready(&pods[0])), (1, true));
    assert_ne!(uid(&pods[0]), uid(&first[0]));
}

#[test]
fn what_is_to_be_kept_apart_is() {
    let apart = json!({"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [
        {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"app": "web"}}}]}});
    let together = json!({"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [
        {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"app": "db"}}}]}});
    let spread = json!([{"maxSkew": 1, "topologyKey": "no/such", "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "web"}}}]);
    let port = json!([{"name": "main", "image": "x", "ports": [{"containerPort": 80, "hostPort": 80}]}]);
    for (field, value, running, why) in [
        ("/spec/template/spec/affinity", apart, 1, "node(s) didn't match pod anti-affinity rules"),
        ("/spec/template/spec/affinity", together, 0, "node(s) didn't match pod affinity rules"),
        (
            "/spec/template/spec/containers",
            port,
            1,
            "node(s) didn't have free ports for the requested pod ports",
        ),
        (
            "/spec/template/spec/topologySpreadConstraints",
            spread,
            0,
            "node(s) didn't match pod topology spread constraints (missing required label)",
        ),
    ] {
        let mut cluster = Simulation::new();
        let mut web = workload("apps/v1", "Deployment", "web", json!({"replicas": 2}));
        put(&mut web, field, value);
        cluster.create("apps/deployments", web);
        cluster.settle();
        let pods = cluster.list("pods");
        assert_eq!(pods.iter().filter(|pod| pods::ready(pod)).count(), running, "{why}");
        let waiting = pods.iter().find(|pod| !pods::ready(pod)).unwrap();
        let says = conditions::find(&fields::status(waiting), "PodScheduled").cloned().unwrap();
        assert!(text(&says, "/message").starts_with(&format!("0/1 nodes are available: 1 {why}.")), "{says}");
    }
}

#[test]
fn a_pod_that_is_deleted_is_not_ready_before_it_is_gone() {
    let mut cluster = Simulation::new();
    cluster.create("apps/daemonsets", workload("apps/v1", "DaemonSet", "agent", json!({})));
    cluster.settle();
    let pod = name(&cluster.list("pods")[0]).to_owned();
    cluster.delete("pods", &pod, Propagation::Background);
    let mut seen = Vec::new();
    cluster.settle_checking(|memory| {
        let pods = memory.list("pods", Some("default"));
        if let Some(found) = pods.iter().find(|found| name(found) == pod) {
            seen.push(pods::ready(found));
        }
    });
    assert_eq!(seen.last(), Some(&false), "{seen:?}");
    assert_eq!(cluster.told(&pod).iter().filter(|told| told.starts_with("Killing")).count(), 1);
}

#[test]
fn a_pod_may_have_a_deadline() {
    let mut cluster = Simulation::new();
    let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "namespace": "default"},
        "spec": {"activeDeadlineSeconds": 20, "containers": [{"name": "main", "image": "x"}]}});
    cluster.create("pods", pod);
    cluster.settle();
    assert!(pods::ready(&cluster.get("pods", "p").unwrap()));
    cluster.elapse(Duration::from_secs(30));
    let pod = cluster.get("pods", "p").unwrap();
    assert_eq!((pods::phase(&pod), text(&pod, "/status/reason")), ("Failed", "DeadlineExceeded"));
}

#[test]
fn an_autoscaler_needs_a_scale() {
    let mut cluster = Simulation::new();
    cluster.create("apps/deployments", workload("apps/v1", "Deployment", "web", json!({"replicas": 1})));
    let scaler = |kind: &str, name: &str| {
        json!({"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler",
            "metadata": {"name": format!("{kind}-{name}").to_lowercase(), "namespace": "default"},
            "spec": {"minReplicas": 3, "maxReplicas": 4,
                "scaleTargetRef": {"apiVersion": "apps/v1", "kind": kind, "name": name}}})
    };
    for (kind, name) in [("Deployment", "web"), ("Nothing", "web")] {
        cluster.create("autoscaling/horizontalpodautoscalers", scaler(kind, name));
    }
    cluster.settle();
    assert_eq!(count(&cluster.get("apps/deployments", "web").unwrap(), "/spec/replicas"), 3);
    let scaled = |write: &Write| matches!(write, Write::Scale { replicas: 3, .. });
    assert!(cluster.writes().iter().any(scaled), "through the subresource");
    let without = cluster.get("autoscaling/horizontalpodautoscalers", "nothing-web").unwrap();
    let says = conditions::find(&fields::status(&without), "AbleToScale").cloned().unwrap();
    assert_eq!(text(&says, "/reason"), "FailedGetScale");
    assert!(text(&says, "/message").ends_with("no matches for kind \"Nothing\" in group \"apps\""), "{says}");
}
