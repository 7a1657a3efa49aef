//! StatefulSets, DaemonSets, Jobs, Services and claims on the simulated cluster.

use super::simulation::{Simulation, workload};
use super::{at_rest, names};
use crate::contract::{Actor, Key, Propagation, View, Write};
use crate::engine::Plane;
use crate::fields::{self, count, int, list, name, put, text};
use crate::{conditions, pods};
use opdev_object::meta;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;

const USER: Actor = Actor { user: "me", field_manager: "me" };

fn sorted(mut pods: Vec<Arc<Value>>) -> Vec<Arc<Value>> {
    pods.sort_by_key(|pod| name(pod).to_owned());
    pods
}

fn stateful(replicas: i64) -> Value {
    workload(
        "apps/v1",
        "StatefulSet",
        "db",
        json!({"replicas": replicas, "serviceName": "db", "volumeClaimTemplates": [
            {"metadata": {"name": "data"}, "spec": {"accessModes": ["ReadWriteOnce"],
                "resources": {"requests": {"storage": "1Gi"}}}}]}),
    )
}

fn set_image(cluster: &mut Simulation, resource: &str, set: &str, image: &str) {
    let containers = json!([{"name": "main", "image": image}]);
    cluster.edit(resource, set, |set| put(set, "/spec/template/spec/containers", containers));
}

#[test]
fn a_stateful_set_comes_in_order_with_claims() {
    let mut cluster = Simulation::new();
    cluster.create("apps/statefulsets", stateful(3));
    cluster.settle_checking(|memory| {
        let pods = sorted(memory.list("pods", Some("default")));
        for pair in pods.windows(2) {
            assert!(pods::ready(&pair[0]), "{} came before {} was ready", name(&pair[1]), name(&pair[0]));
        }
    });
    let pods = sorted(cluster.list("pods"));
    assert_eq!(names(&pods), ["db-0", "db-1", "db-2"]);
    let set = cluster.get("apps/statefulsets", "db").unwrap();
    let revision = text(&set, "/status/updateRevision");
    assert!(revision.starts_with("db-"));
    assert_eq!(text(&set, "/status/currentRevision"), revision);
    for field in ["replicas", "readyReplicas", "availableReplicas", "currentReplicas", "updatedReplicas"] {
        assert_eq!(int(&set, &format!("/status/{field}")), Some(3), "{field}");
    }
    let first = &pods[0];
    assert_eq!(meta::label(first, "controller-revision-hash"), Some(revision));
    assert_eq!(meta::label(first, "statefulset.kubernetes.io/pod-name"), Some("db-0"));
    assert_eq!(meta::label(first, "apps.kubernetes.io/pod-index"), Some("0"));
    assert_eq!((text(first, "/spec/hostname"), text(first, "/spec/subdomain")), ("db-0", "db"));
    assert_eq!(text(first, "/spec/volumes/0/persistentVolumeClaim/claimName"), "data-db-0");
    let claim = cluster.get("persistentvolumeclaims", "data-db-2").unwrap();
    assert_eq!(text(&claim, "/status/phase"), "Bound");
    assert_eq!(text(&claim, "/spec/storageClassName"), "standard");
    assert_eq!(text(&claim, "/status/capacity/storage"), "1Gi");
    let volume = cluster.memory.get("persistentvolumes", None, text(&claim, "/spec/volumeName")).unwrap();
    assert_eq!(text(&volume, "/status/phase"), "Bound");
    let told = cluster.told("db");
    assert_eq!(told[0], "SuccessfulCreate create Claim data-db-0 Pod db-0 in StatefulSet db success");
    assert_eq!(told[1], "SuccessfulCreate create Pod db-0 in StatefulSet db successful");
    at_rest(&mut cluster);
}

#[test]
fn a_stateful_set_shrinks_from_the_end_and_keeps_its_claims() {
    let mut cluster = Simulation::new();
    cluster.create("apps/statefulsets", stateful(3));
    cluster.settle();
    cluster.edit("apps/statefulsets", "db", |set| put(set, "/spec/replicas", 1.into()));
    cluster.settle_checking(|memory| {
        let pods = memory.list("pods", Some("default"));
        let has = |wanted: &str| pods.iter().any(|pod| name(pod) == wanted && !fields::deleting(pod));
        assert!(has("db-1") || !has("db-2"), "db-1 went before db-2");
    });
    assert_eq!(names(&cluster.list("pods")), ["db-0"]);
    assert_eq!(cluster.list("persistentvolumeclaims").len(), 3);
    at_rest(&mut cluster);
}

#[test]
fn a_stateful_set_updates_from_the_end_down_to_its_partition() {
    let mut cluster = Simulation::new();
    cluster.create("apps/statefulsets", stateful(3));
    cluster.settle();
    let partition = json!({"type": "RollingUpdate", "rollingUpdate": {"partition": 1}});
    cluster.edit("apps/statefulsets", "db", |set| put(set, "/spec/updateStrategy", partition));
    set_image(&mut cluster, "apps/statefulsets", "db", "nginx:2");
    cluster.settle_checking(|memory| {
        let ready = memory.list("pods", Some("default")).iter().filter(|pod| pods::ready(pod)).count();
        assert!(ready >= 2, "more than one pod down");
    });
    let images = |cluster: &Simulation| {
        let pods = sorted(cluster.list("pods"));
        pods.iter().map(|pod| text(pod, "/spec/containers/0/image").to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(images(&cluster), ["nginx:1", "nginx:2", "nginx:2"]);
    let set = cluster.get("apps/statefulsets", "db").unwrap();
    assert_ne!(text(&set, "/status/currentRevision"), text(&set, "/status/updateRevision"));
    assert_eq!((count(&set, "/status/currentReplicas"), count(&set, "/status/updatedReplicas")), (1, 2));
    cluster.delete("pods", "db-0", Propagation::Background);
    cluster.settle();
    assert_eq!(images(&cluster)[0], "nginx:1", "below the partition the old revision comes back");
    at_rest(&mut cluster);
    cluster.edit("apps/statefulsets", "db", |set| {
        put(set, "/spec/updateStrategy/rollingUpdate/partition", 0.into());
    });
    cluster.settle();
    assert_eq!(images(&cluster), ["nginx:2", "nginx:2", "nginx:2"]);
    let set = cluster.get("apps/statefulsets", "db").unwrap();
    assert_eq!(text(&set, "/status/currentRevision"), text(&set, "/status/updateRevision"));
    assert_eq!(cluster.list("apps/controllerrevisions").len(), 2);
    at_rest(&mut cluster);
}

#[test]
fn a_parallel_stateful_set_does_not_wait() {
    let mut cluster = Simulation::new();
    let mut set = stateful(3);
    put(&mut set, "/spec/podManagementPolicy", "Parallel".into());
    put(&mut set, "/spec/template/metadata/annotations", json!({"opdev.dev/fail": "unready"}));
    cluster.create("apps/statefulsets", set);
    cluster.settle();
    assert_eq!(cluster.list("pods").len(), 3);
    let set = cluster.get("apps/statefulsets", "db").unwrap();
    assert_eq!(int(&set, "/status/availableReplicas"), Some(0));
    at_rest(&mut cluster);
}

#[test]
fn a_daemon_set_has_one_pod_per_fitting_node() {
    let mut cluster = Simulation::new();
    cluster.create("apps/daemonsets", workload("apps/v1", "DaemonSet", "agent", json!({})));
    cluster.settle();
    let pods = cluster.list("pods");
    assert_eq!(pods.len(), 1);
    assert_eq!(text(&pods[0], "/spec/nodeName"), "opdev");
    let set = cluster.get("apps/daemonsets", "agent").unwrap();
    for field in [
        "desiredNumberScheduled",
        "currentNumberScheduled",
        "numberReady",
        "numberAvailable",
        "updatedNumberScheduled",
    ] {
        assert_eq!(int(&set, &format!("/status/{field}")), Some(1), "{field}");
    }
    at_rest(&mut cluster);
    set_image(&mut cluster, "apps/daemonsets", "agent", "nginx:2");
    cluster.settle();
    assert_eq!(text(&cluster.list("pods")[0], "/spec/containers/0/image"), "nginx:2");
    cluster.edit("apps/daemonsets", "agent", |set| {
        put(set, "/spec/template/spec/nodeSelector", json!({"disk": "ssd"}));
    });
    cluster.settle();
    assert!(cluster.list("pods").is_empty());
    let set = cluster.get("apps/daemonsets", "agent").unwrap();
    assert_eq!(int(&set, "/status/desiredNumberScheduled"), Some(0));
    at_rest(&mut cluster);
}

fn job(spec: Value) -> Value {
    let mut job = workload("batch/v1", "Job", "work", spec);
    put(&mut job, "/spec/template/spec/restartPolicy", "Never".into());
    if let Some(Value::Object(spec)) = job.get_mut("spec") {
        spec.remove("selector");
    }
    job
}

fn job_status(cluster: &Simulation) -> serde_json::Map<String, Value> {
    fields::status(&cluster.get("batch/jobs", "work").unwrap())
}

#[test]
fn a_job_completes_with_its_parallelism() {
    let mut cluster = Simulation::new();
    cluster.create("batch/jobs", job(json!({"completions": 5, "parallelism": 2})));
    cluster.settle_checking(|memory| {
        let active = memory.list("pods", Some("default")).iter().filter(|pod| pods::active(pod)).count();
        assert!(active <= 2, "{active} active pods");
    });
    let status = job_status(&cluster);
    assert_eq!(status.get("succeeded"), Some(&json!(5)));
    assert_eq!(status.get("active"), None);
    assert_eq!(status.get("ready"), Some(&json!(0)));
    assert!(conditions::is(&status, "Complete", "True"));
    assert!(conditions::is(&status, "SuccessCriteriaMet", "True"));
    assert_eq!(text(conditions::find(&status, "Complete").unwrap(), "/reason"), "CompletionsReached");
    assert!(status.contains_key("completionTime"));
    let pods = cluster.list("pods");
    assert_eq!(pods.len(), 5);
    for pod in &pods {
        assert!(meta::finalizers(pod).is_empty(), "a counted pod is let go");
        assert_eq!(meta::label(pod, "batch.kubernetes.io/job-name"), Some("work"));
    }
    assert!(cluster.told("work").contains(&"Completed Job completed".to_owned()));
    at_rest(&mut cluster);
}

#[test]
fn a_failing_job_backs_off_and_gives_up() {
    let mut cluster = Simulation::new();
    let mut failing = job(json!({"completions": 1, "parallelism": 1, "backoffLimit": 2}));
    put(&mut failing, "/spec/template/metadata/annotations", json!({"opdev.dev/fail": "crash"}));
    cluster.create("batch/jobs", failing);
    cluster.settle();
    assert_eq!(job_status(&cluster).get("failed"), Some(&json!(1)), "the next try waits");
    cluster.elapse(Duration::from_secs(15));
    assert_eq!(job_status(&cluster).get("failed"), Some(&json!(2)));
    cluster.elapse(Duration::from_secs(60));
    let status = job_status(&cluster);
    assert_eq!(status.get("failed"), Some(&json!(3)));
    let failed = conditions::find(&status, "Failed").unwrap();
    assert_eq!(text(failed, "/reason"), "BackoffLimitExceeded");
    assert_eq!(text(failed, "/message"), "Job has reached the specified backoff limit");
    at_rest(&mut cluster);
}

#[test]
fn a_job_has_deadline_suspension_and_time_to_live() {
    let mut cluster = Simulation::new();
    let mut slow = job(json!({"completions": 1, "activeDeadlineSeconds": 30, "ttlSecondsAfterFinished": 60}));
    put(&mut slow, "/spec/suspend", true.into());
    put(&mut slow, "/spec/template/metadata/annotations", json!({"opdev.dev/fail": "pending"}));
    cluster.create("batch/jobs", slow);
    cluster.settle();
    assert!(conditions::is(&job_status(&cluster), "Suspended", "True"));
    assert!(cluster.list("pods").is_empty());
    cluster.edit("batch/jobs", "work", |job| put(job, "/spec/suspend", false.into()));
    cluster.settle();
    assert_eq!(cluster.list("pods").len(), 1);
    cluster.edit("batch/jobs", "work", |job| put(job, "/spec/suspend", true.into()));
    cluster.settle();
    assert!(cluster.list("pods").is_empty());
    assert_eq!(job_status(&cluster).get("failed"), None, "a suspended pod has not failed");
    cluster.edit("batch/jobs", "work", |job| put(job, "/spec/suspend", false.into()));
    cluster.elapse(Duration::from_secs(40));
    let status = job_status(&cluster);
    assert_eq!(text(conditions::find(&status, "Failed").unwrap(), "/reason"), "DeadlineExceeded");
    cluster.elapse(Duration::from_secs(90));
    assert!(cluster.get("batch/jobs", "work").is_none());
    assert!(cluster.list("pods").is_empty());
}

#[test]
fn a_job_that_goes_at_once_is_seen_first() {
    let mut cluster = Simulation::new();
    cluster.create("batch/jobs", job(json!({"completions": 1, "ttlSecondsAfterFinished": 0})));
    cluster.settle();
    assert!(conditions::is(&job_status(&cluster), "Complete", "True"));
    cluster.elapse(Duration::from_secs(3));
    assert!(cluster.get("batch/jobs", "work").is_none());
}

#[test]
fn an_indexed_job_runs_each_index_once() {
    let mut cluster = Simulation::new();
    cluster
        .create("batch/jobs", job(json!({"completions": 3, "parallelism": 3, "completionMode": "Indexed"})));
    cluster.settle();
    assert_eq!(job_status(&cluster).get("completedIndexes"), Some(&json!("0-2")));
    let pods = cluster.list("pods");
    assert_eq!(pods.len(), 3);
    let hosts: std::collections::BTreeSet<_> = pods.iter().map(|pod| text(pod, "/spec/hostname")).collect();
    assert_eq!(hosts.into_iter().collect::<Vec<_>>(), ["work-0", "work-1", "work-2"]);
    assert_eq!(text(&pods[0], "/spec/containers/0/env/0/name"), "JOB_COMPLETION_INDEX");
    at_rest(&mut cluster);
}

#[test]
fn deleting_a_job_takes_its_counted_pods_along() {
    let mut cluster = Simulation::new();
    let mut running = job(json!({"completions": 1}));
    put(&mut running, "/spec/template/metadata/annotations", json!({"opdev.dev/fail": "unready"}));
    cluster.create("batch/jobs", running);
    cluster.settle();
    assert_eq!(cluster.list("pods").len(), 1);
    cluster.delete("batch/jobs", "work", Propagation::Background);
    cluster.settle();
    assert!(cluster.list("pods").is_empty());
    at_rest(&mut cluster);
}

fn service(spec: Value) -> Value {
    json!({"apiVersion": "v1", "kind": "Service",
        "metadata": {"name": "web", "namespace": "default", "labels": {"team": "a"}}, "spec": spec})
}

#[test]
fn endpoints_follow_ready_pods() {
    let mut cluster = Simulation::new();
    let mut web = workload("apps/v1", "Deployment", "web", json!({"replicas": 2}));
    put(&mut web, "/spec/template/spec/containers/0", Value::Null);
    let containers =
        json!([{"name": "main", "image": "x", "ports": [{"name": "http", "containerPort": 8080}]}]);
    put(&mut web, "/spec/template/spec/containers", containers);
    cluster.create("apps/deployments", web);
    cluster.create(
        "services",
        service(json!({"selector": {"app": "web"}, "clusterIP": "10.96.0.7",
            "ports": [{"name": "http", "port": 80, "targetPort": "http", "protocol": "TCP"}]})),
    );
    cluster.settle();
    let slices = cluster.list("discovery.k8s.io/endpointslices");
    assert_eq!(slices.len(), 1);
    let slice = &slices[0];
    assert!(name(slice).starts_with("web-"));
    assert_eq!(meta::label(slice, "kubernetes.io/service-name"), Some("web"));
    assert_eq!(
        meta::label(slice, "endpointslice.kubernetes.io/managed-by"),
        Some("endpointslice-controller.k8s.io")
    );
    assert_eq!(meta::label(slice, "team"), Some("a"));
    assert_eq!(meta::controller(slice).unwrap().kind, "Service");
    assert_eq!(count(slice, "/ports/0/port"), 8080);
    let ready = |slice: &Value| {
        let all = list(slice, "/endpoints");
        all.iter().filter(|e| fields::flag(e, "/conditions/ready")).count()
    };
    assert_eq!((list(slice, "/endpoints").len(), ready(slice)), (2, 2));
    let endpoints = cluster.get("endpoints", "web").unwrap();
    assert_eq!(list(&endpoints, "/subsets/0/addresses").len(), 2);
    at_rest(&mut cluster);
    let pod = name(&cluster.list("pods")[0]).to_owned();
    cluster.edit("pods", &pod, |pod| put(pod, "/metadata/annotations", json!({"opdev.dev/fail": "unready"})));
    cluster.settle();
    let slice = &cluster.list("discovery.k8s.io/endpointslices")[0];
    assert_eq!((list(slice, "/endpoints").len(), ready(slice)), (2, 1));
    let endpoints = cluster.get("endpoints", "web").unwrap();
    assert_eq!(list(&endpoints, "/subsets/0/addresses").len(), 1);
    assert_eq!(list(&endpoints, "/subsets/0/notReadyAddresses").len(), 1);
    at_rest(&mut cluster);
    cluster.delete("services", "web", Propagation::Background);
    cluster.settle();
    assert!(cluster.list("discovery.k8s.io/endpointslices").is_empty());
    assert!(cluster.list("endpoints").is_empty());
}

#[test]
fn services_without_selector_are_left_alone() {
    let mut cluster = Simulation::new();
    cluster.create("services", service(json!({"ports": [{"port": 80}]})));
    cluster.create("services", {
        let mut other = service(json!({"type": "ExternalName", "externalName": "a.b"}));
        put(&mut other, "/metadata/name", "elsewhere".into());
        other
    });
    cluster.settle();
    assert!(cluster.list("discovery.k8s.io/endpointslices").is_empty());
    at_rest(&mut cluster);
}

fn claim(class: Option<&str>) -> Value {
    let mut claim = json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim",
        "metadata": {"name": "c", "namespace": "default"},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "5Gi"}}}});
    if let Some(class) = class {
        put(&mut claim, "/spec/storageClassName", class.into());
    }
    claim
}

#[test]
fn a_claim_of_an_unknown_class_says_why_it_waits() {
    let mut cluster = Simulation::new();
    cluster.create("persistentvolumeclaims", claim(Some("fast")));
    cluster.settle();
    let waiting = cluster.get("persistentvolumeclaims", "c").unwrap();
    assert_eq!(text(&waiting, "/status/phase"), "Pending");
    let told = "ProvisioningFailed storageclass.storage.k8s.io \"fast\" not found";
    assert_eq!(cluster.told("c"), [told]);
    at_rest(&mut cluster);
    cluster.create(
        "storage.k8s.io/storageclasses",
        json!({"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": "fast"},
            "provisioner": "x"}),
    );
    cluster.settle();
    assert_eq!(text(&cluster.get("persistentvolumeclaims", "c").unwrap(), "/status/phase"), "Bound");
    at_rest(&mut cluster);
}

#[test]
fn a_used_claim_waits_for_its_pod_and_frees_its_volume() {
    let mut cluster = Simulation::new();
    cluster.create("persistentvolumeclaims", claim(None));
    cluster.create(
        "pods",
        json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "namespace": "default"},
            "spec": {"containers": [{"name": "main", "image": "x"}],
                "volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "c"}}]}}),
    );
    cluster.settle();
    assert!(pods::ready(&cluster.get("pods", "p").unwrap()));
    let bound = cluster.get("persistentvolumeclaims", "c").unwrap();
    let volume = Key::new("persistentvolumes", None, text(&bound, "/spec/volumeName"));
    cluster.delete("persistentvolumeclaims", "c", Propagation::Background);
    cluster.settle();
    assert!(cluster.get("persistentvolumeclaims", "c").is_some(), "the pod still uses it");
    cluster.delete("pods", "p", Propagation::Background);
    cluster.settle();
    assert!(cluster.get("persistentvolumeclaims", "c").is_none());
    assert!(volume.read(&cluster.memory).is_none(), "a provisioned volume goes with its claim");
    at_rest(&mut cluster);
}

#[test]
fn a_claim_says_whether_a_pod_uses_it() {
    let mut cluster = Simulation::new();
    cluster.create("persistentvolumeclaims", claim(None));
    let says = |cluster: &mut Simulation| {
        cluster.settle();
        let claim = cluster.get("persistentvolumeclaims", "c").unwrap();
        let unused = conditions::find(&fields::status(&claim), "Unused").unwrap().clone();
        format!("{} {}", text(&unused, "/status"), text(&unused, "/reason"))
    };
    assert_eq!(says(&mut cluster), "True NoPodsUsingPVC");
    cluster.create(
        "pods",
        json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "namespace": "default"},
            "spec": {"containers": [{"name": "main", "image": "x"}], "nodeSelector": {"no": "where"},
                "volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "c"}}]}}),
    );
    assert_eq!(says(&mut cluster), "False PodUsingPVC", "a pod that waits counts, too");
    cluster.delete("pods", "p", Propagation::Background);
    assert_eq!(says(&mut cluster), "True NoPodsUsingPVC");
    at_rest(&mut cluster);
}

#[test]
fn a_claim_takes_a_volume_that_is_there() {
    let mut cluster = Simulation::new();
    let volume = json!({"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": "mine"},
        "spec": {"capacity": {"storage": "10Gi"}, "accessModes": ["ReadWriteOnce"], "storageClassName": "",
            "persistentVolumeReclaimPolicy": "Retain", "hostPath": {"path": "/x"}}});
    cluster.create("persistentvolumes", volume);
    cluster.settle();
    let key = Key::new("persistentvolumes", None, "mine");
    assert_eq!(text(&key.read(&cluster.memory).unwrap(), "/status/phase"), "Available");
    cluster.create("persistentvolumeclaims", claim(Some("")));
    cluster.settle();
    assert_eq!(text(&cluster.get("persistentvolumeclaims", "c").unwrap(), "/spec/volumeName"), "mine");
    assert_eq!(text(&key.read(&cluster.memory).unwrap(), "/status/phase"), "Bound");
    cluster.delete("persistentvolumeclaims", "c", Propagation::Background);
    cluster.settle();
    assert_eq!(text(&key.read(&cluster.memory).unwrap(), "/status/phase"), "Released");
    at_rest(&mut cluster);
}

#[test]
fn a_budget_says_how_many_pods_may_go() {
    let mut cluster = Simulation::new();
    cluster.create("apps/deployments", workload("apps/v1", "Deployment", "web", json!({"replicas": 4})));
    let budget = |name: &str, field: &str, value: Value| {
        json!({"apiVersion": "policy/v1", "kind": "PodDisruptionBudget",
            "metadata": {"name": name, "namespace": "default"},
            "spec": {"selector": {"matchLabels": {"app": "web"}}, field: value}})
    };
    for (name, field, value) in [
        ("most", "maxUnavailable", json!(1)),
        ("half", "minAvailable", json!("50%")),
        ("all", "minAvailable", json!(4)),
    ] {
        cluster.create("policy/poddisruptionbudgets", budget(name, field, value));
    }
    cluster.settle();
    let allowed = |cluster: &Simulation, name: &str| {
        let budget = cluster.get("policy/poddisruptionbudgets", name).unwrap();
        assert_eq!(count(&budget, "/status/expectedPods"), 4, "{name}");
        count(&budget, "/status/disruptionsAllowed")
    };
    let numbers = |cluster: &Simulation| ["most", "half", "all"].map(|name| allowed(cluster, name));
    assert_eq!(numbers(&cluster), [1, 2, 0]);
    let pod = name(&cluster.list("pods")[0]).to_owned();
    cluster.edit("pods", &pod, |pod| put(pod, "/metadata/annotations", json!({"opdev.dev/fail": "unready"})));
    cluster.settle();
    assert_eq!(numbers(&cluster), [0, 1, 0]);
    at_rest(&mut cluster);
}

#[test]
fn events_live_for_an_hour() {
    let mut cluster = Simulation::new();
    cluster.create("apps/daemonsets", workload("apps/v1", "DaemonSet", "agent", json!({})));
    cluster.settle();
    assert!(!cluster.list("events").is_empty());
    cluster.elapse(Duration::from_secs(3700));
    assert!(cluster.list("events").is_empty());
}

#[test]
fn an_unschedulable_node_takes_daemons_only() {
    let mut cluster = Simulation::new();
    let cordon = Write::Patch {
        resource: "nodes".into(),
        namespace: None,
        name: "opdev".into(),
        patch: json!({"spec": {"unschedulable": true}}),
    };
    cluster.memory.write(USER, &cordon).unwrap();
    cluster.create("apps/daemonsets", workload("apps/v1", "DaemonSet", "agent", json!({})));
    cluster.create("apps/deployments", workload("apps/v1", "Deployment", "web", json!({"replicas": 1})));
    cluster.settle();
    let running: Vec<_> = cluster.list("pods").into_iter().filter(|pod| pods::ready(pod)).collect();
    assert_eq!(running.len(), 1);
    assert_eq!(meta::controller(&running[0]).unwrap().kind, "DaemonSet");
    at_rest(&mut cluster);
}
