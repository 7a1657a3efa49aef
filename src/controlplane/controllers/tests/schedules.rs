//! CronJobs over hours of simulated time; quotas and autoscalers that follow what is there.

use super::super::fields::{list, name, put, text};
use super::simulation::Simulation;
use super::{at_rest, names};
use opdev_object::meta;
use serde_json::{Value, json};
use std::time::Duration;

const CRON: &str = "batch/cronjobs";
const JOBS: &str = "batch/jobs";

fn cron(spec: Value) -> Value {
    let mut object = json!({
        "apiVersion": "batch/v1", "kind": "CronJob",
        "metadata": {"name": "tick", "namespace": "default"},
        "spec": {
            "schedule": "*/10 * * * *", "concurrencyPolicy": "Allow",
            "successfulJobsHistoryLimit": 3, "failedJobsHistoryLimit": 1,
            "jobTemplate": {
                "metadata": {"labels": {"from": "tick"}},
                "spec": {
                    "completions": 1, "parallelism": 1, "backoffLimit": 0,
                    "selector": {"matchLabels": {"app": "tick"}},
                    "template": {
                        "metadata": {"labels": {"app": "tick"}},
                        "spec": {"restartPolicy": "Never", "containers": [{"name": "main", "image": "busybox"}]},
                    },
                },
            },
        },
    });
    for (field, value) in spec.as_object().unwrap() {
        put(&mut object, &format!("/spec/{field}"), value.clone());
    }
    object
}

fn minutes(count: u64) -> Duration {
    Duration::from_secs(60 * count)
}

#[test]
fn a_cron_job_runs_at_each_time_and_keeps_the_latest() {
    let mut cluster = Simulation::new();
    cluster.create(CRON, cron(json!({})));
    cluster.settle();
    assert_eq!(cluster.list(JOBS).len(), 0, "nothing is due yet");
    cluster.elapse(minutes(11));
    let jobs = cluster.list(JOBS);
    // Minutes since 1970, as upstream names them.
    assert_eq!(names(&jobs), ["tick-29453770"]);
    let job = &jobs[0];
    let scheduled = meta::annotation(job, "batch.kubernetes.io/cronjob-scheduled-timestamp");
    assert_eq!(scheduled, Some("2026-01-01T00:10:00Z"));
    assert_eq!(
        (meta::label(job, "from"), meta::controller(job).unwrap().kind),
        (Some("tick"), "CronJob".into())
    );
    let tick = cluster.get(CRON, "tick").unwrap();
    assert_eq!(text(&tick, "/status/lastScheduleTime"), "2026-01-01T00:10:00Z");
    assert_eq!(text(&tick, "/status/lastSuccessfulTime")[..16].to_owned(), "2026-01-01T00:10");
    assert!(list(&tick, "/status/active").is_empty());

    cluster.elapse(minutes(60));
    assert_eq!(cluster.list(JOBS).len(), 3, "three that succeeded are kept");
    at_rest(&mut cluster);

    cluster.edit(CRON, "tick", |tick| put(tick, "/spec/suspend", true.into()));
    cluster.elapse(minutes(60));
    let last = cluster.get(CRON, "tick").unwrap();
    assert_eq!(
        text(&last, "/status/lastScheduleTime"),
        "2026-01-01T01:10:00Z",
        "nothing starts while suspended"
    );
    // Runs that were missed meanwhile are made up for once.
    cluster.edit(CRON, "tick", |tick| put(tick, "/spec/suspend", false.into()));
    cluster.settle();
    let last = cluster.get(CRON, "tick").unwrap();
    assert_eq!(text(&last, "/status/lastScheduleTime"), "2026-01-01T02:10:00Z");
}

#[test]
fn a_cron_job_waits_for_or_replaces_what_still_runs() {
    let running = |policy: &str| {
        let mut cluster = Simulation::new();
        let mut object = cron(json!({"concurrencyPolicy": policy}));
        // Its pods never get ready, so its Jobs never end.
        let pod = "/spec/jobTemplate/spec/template/metadata/annotations";
        put(&mut object, pod, json!({"opdev.dev/fail": "pending"}));
        cluster.create(CRON, object);
        cluster.settle();
        cluster.elapse(minutes(31));
        cluster
    };
    let active = |cluster: &Simulation| list(&cluster.get(CRON, "tick").unwrap(), "/status/active").len();
    let cluster = running("Allow");
    assert_eq!((cluster.list(JOBS).len(), active(&cluster)), (3, 3));
    let cluster = running("Forbid");
    assert_eq!((names(&cluster.list(JOBS)), active(&cluster)), (vec!["tick-29453770"], 1));
    let told = "JobAlreadyActive Not starting job because prior execution is running and concurrency policy is Forbid";
    assert!(cluster.told("tick").contains(&told.to_owned()), "{:?}", cluster.told("tick"));
    let cluster = running("Replace");
    assert_eq!((names(&cluster.list(JOBS)), active(&cluster)), (vec!["tick-29453790"], 1));
    assert!(cluster.told("tick").contains(&"SuccessfulDelete Deleted job tick-29453780".to_owned()));
}

#[test]
fn a_quota_follows_what_is_used() {
    let mut cluster = Simulation::new();
    cluster.create(
        "resourcequotas",
        json!({"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "few", "namespace": "default"},
            "spec": {"hard": {"pods": "10", "count/deployments.apps": "2"}}}),
    );
    cluster.create("apps/deployments", super::deployment(3, json!({})));
    cluster.settle();
    let status = |cluster: &Simulation| cluster.get("resourcequotas", "few").unwrap()["status"].clone();
    assert_eq!(
        status(&cluster),
        json!({"hard": {"pods": "10", "count/deployments.apps": "2"}, "used": {"pods": "3", "count/deployments.apps": "1"}})
    );
    cluster.edit("apps/deployments", "web", |web| put(web, "/spec/replicas", 1.into()));
    cluster.elapse(minutes(1));
    assert_eq!(status(&cluster)["used"]["pods"], "1");
    let left = cluster.list("pods");
    assert!(left.iter().all(|pod| name(pod).starts_with("web-")), "{left:?}");
    at_rest(&mut cluster);
}

#[test]
fn an_autoscaler_keeps_its_bounds_and_says_that_nothing_is_measured() {
    let mut cluster = Simulation::new();
    cluster.create("apps/deployments", super::deployment(1, json!({})));
    let scaler = json!({
        "apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": "web", "namespace": "default"},
        "spec": {"minReplicas": 3, "maxReplicas": 5,
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
            "metrics": [{"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization"}}}]},
    });
    cluster.create("autoscaling/horizontalpodautoscalers", scaler);
    cluster.settle();
    let replicas =
        |cluster: &Simulation| cluster.get("apps/deployments", "web").unwrap()["spec"]["replicas"].clone();
    assert_eq!(replicas(&cluster), 3);
    let status = cluster.get("autoscaling/horizontalpodautoscalers", "web").unwrap()["status"].clone();
    assert_eq!((&status["currentReplicas"], &status["desiredReplicas"]), (&json!(3), &json!(3)));
    // As the real one (1.36) without a metrics server.
    assert_eq!(
        status["conditions"][1]["message"],
        "the HPA was unable to compute the replica count: failed to get cpu utilization: unable to get metrics for \
         resource cpu: unable to fetch metrics from resource metrics API: the server could not find the requested \
         resource (get pods.metrics.k8s.io)"
    );
    let told = cluster.told("web");
    let size = "SuccessfulRescale New size: 3; reason: Current number of replicas below Spec.MinReplicas";
    assert!(told.contains(&size.to_owned()), "{told:?}");
    cluster.edit("apps/deployments", "web", |web| put(web, "/spec/replicas", 9.into()));
    cluster.settle();
    assert_eq!(replicas(&cluster), 5);
    at_rest(&mut cluster);
}
