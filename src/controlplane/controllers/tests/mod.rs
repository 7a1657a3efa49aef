//! Whole lives of workloads on the simulated cluster: rollouts, deletions, failures, and rest afterwards.

#![allow(clippy::needless_pass_by_value, reason = "json! at the call reads better without borrows")]

mod init;
mod policies;
mod schedules;
mod sets;
pub(crate) mod simulation;
mod stages;

use super::fields::{count, deleting, int, list, name, put, text};
use super::{all, conditions, pods};
use crate::contract::{Propagation, Refusal, View, Write};
use opdev_object::meta;
use serde_json::{Value, json};
use simulation::{Simulation, settings, workload};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

fn at_rest(simulation: &mut Simulation) {
    simulation.assert_at_rest(all(&settings()));
}

fn deployment(replicas: i64, strategy: Value) -> Value {
    let strategy = json!({"type": "RollingUpdate", "rollingUpdate": strategy});
    workload("apps/v1", "Deployment", "web", json!({"replicas": replicas, "strategy": strategy}))
}

fn names(objects: &[Arc<Value>]) -> Vec<&str> {
    objects.iter().map(|object| name(object)).collect()
}

#[test]
fn a_deployment_becomes_ready_pods() {
    let mut cluster = Simulation::new();
    cluster.create("apps/deployments", deployment(3, json!({})));
    cluster.settle();
    let sets = cluster.list("apps/replicasets");
    assert_eq!(sets.len(), 1);
    let hash = meta::label(&sets[0], "pod-template-hash").unwrap();
    assert_eq!(name(&sets[0]), format!("web-{hash}"));
    assert_eq!(meta::annotation(&sets[0], "deployment.kubernetes.io/revision"), Some("1"));
    assert_eq!(meta::annotation(&sets[0], "deployment.kubernetes.io/desired-replicas"), Some("3"));
    assert_eq!(meta::annotation(&sets[0], "deployment.kubernetes.io/max-replicas"), Some("4"));
    let pods = cluster.list("pods");
    assert_eq!(pods.len(), 3);
    for pod in &pods {
        assert_eq!(text(pod, "/status/phase"), "Running");
        assert!(super::pods::ready(pod));
        assert_eq!(text(pod, "/spec/nodeName"), "opdev");
        let owner = meta::controller(pod).unwrap();
        assert_eq!((owner.kind.as_str(), owner.block_owner_deletion), ("ReplicaSet", true));
        assert!(name(pod).starts_with(&format!("web-{hash}-")));
    }
    let addresses: std::collections::BTreeSet<_> =
        pods.iter().map(|pod| text(pod, "/status/podIP")).collect();
    assert_eq!(addresses.len(), 3);
    let web = cluster.get("apps/deployments", "web").unwrap();
    assert_eq!(meta::annotation(&web, "deployment.kubernetes.io/revision"), Some("1"));
    let status = super::fields::status(&web);
    for field in ["replicas", "updatedReplicas", "readyReplicas", "availableReplicas"] {
        assert_eq!(status.get(field), Some(&json!(3)), "{field}");
    }
    assert_eq!(status.get("unavailableReplicas"), None);
    assert_eq!(status.get("observedGeneration"), Some(&json!(1)));
    let progressing = conditions::find(&status, "Progressing").unwrap();
    assert_eq!(text(progressing, "/reason"), "NewReplicaSetAvailable");
    let message = format!("ReplicaSet \"web-{hash}\" has successfully progressed.");
    assert_eq!(text(progressing, "/message"), message);
    let available = conditions::find(&status, "Available").unwrap();
    assert_eq!(text(available, "/message"), "Deployment has minimum availability.");
    let told = cluster.told("web");
    assert_eq!(told, [format!("ScalingReplicaSet Scaled up replica set web-{hash} from 0 to 3")]);
    let pod = name(&pods[0]).to_owned();
    assert_eq!(
        cluster.told(&pod),
        [
            format!("Scheduled Successfully assigned default/{pod} to opdev"),
            "Pulled Container image \"nginx:1\" already present on machine and can be accessed by the pod"
                .into(),
            "Created Container created".into(),
            "Started Container started".into(),
        ]
    );
    at_rest(&mut cluster);
}

#[test]
fn a_rolling_update_stays_within_its_bounds_at_every_step() {
    for (surge, unavailable) in
        [(json!(1), json!(0)), (json!(0), json!(1)), (json!("25%"), json!("25%")), (json!(0), json!(0))]
    {
        let mut cluster = Simulation::new();
        let strategy = json!({"maxSurge": surge, "maxUnavailable": unavailable});
        cluster.create("apps/deployments", deployment(4, strategy.clone()));
        cluster.settle();
        cluster.edit("apps/deployments", "web", |web| {
            put(web, "/spec/template/spec/containers/0", Value::Null);
            put(web, "/spec/template/spec/containers", json!([{"name": "main", "image": "nginx:2"}]));
        });
        let (max_surge, max_unavailable) = match (surge.as_i64(), unavailable.as_i64()) {
            (Some(0), _) => (0, 1),
            (Some(surge), Some(unavailable)) => (surge, unavailable),
            _ => (1, 1),
        };
        cluster.settle_checking(|memory| {
            let pods = memory.list("pods", Some("default"));
            let alive = pods.iter().filter(|pod| pods::active(pod)).count() as i64;
            let ready = pods.iter().filter(|pod| pods::active(pod) && pods::ready(pod)).count() as i64;
            assert!(alive <= 4 + max_surge, "{alive} pods with {strategy}");
            assert!(ready >= 4 - max_unavailable, "{ready} ready pods with {strategy}");
        });
        let pods = cluster.list("pods");
        assert_eq!(pods.len(), 4);
        assert!(pods.iter().all(|pod| text(pod, "/spec/containers/0/image") == "nginx:2"));
        let web = cluster.get("apps/deployments", "web").unwrap();
        assert_eq!(meta::annotation(&web, "deployment.kubernetes.io/revision"), Some("2"));
        assert_eq!(count(&web, "/status/updatedReplicas"), 4);
        at_rest(&mut cluster);
    }
}

fn set_image(cluster: &mut Simulation, image: &str) {
    let containers = json!([{"name": "main", "image": image}]);
    cluster.edit("apps/deployments", "web", |web| put(web, "/spec/template/spec/containers", containers));
    cluster.settle();
}

#[test]
fn going_back_reuses_the_old_replica_set_and_history_is_cut() {
    let mut cluster = Simulation::new();
    let mut web = deployment(1, json!({}));
    put(&mut web, "/spec/revisionHistoryLimit", 2.into());
    cluster.create("apps/deployments", web);
    cluster.settle();
    let first = name(&cluster.list("apps/replicasets")[0]).to_owned();
    set_image(&mut cluster, "nginx:2");
    set_image(&mut cluster, "nginx:1");
    let set = cluster.get("apps/replicasets", &first).unwrap();
    assert_eq!(int(&set, "/spec/replicas"), Some(1));
    assert_eq!(meta::annotation(&set, "deployment.kubernetes.io/revision"), Some("3"));
    assert_eq!(meta::annotation(&set, "deployment.kubernetes.io/revision-history"), Some("1"));
    for image in ["nginx:3", "nginx:4", "nginx:5"] {
        set_image(&mut cluster, image);
    }
    assert_eq!(cluster.list("apps/replicasets").len(), 3);
    assert!(cluster.get("apps/replicasets", &first).is_none(), "the oldest two are gone");
    at_rest(&mut cluster);
}

#[test]
fn a_recreate_has_no_old_pod_beside_a_new_one() {
    let mut cluster = Simulation::new();
    let mut web = deployment(3, json!({}));
    put(&mut web, "/spec/strategy", json!({"type": "Recreate"}));
    cluster.create("apps/deployments", web);
    cluster.settle();
    let containers = json!([{"name": "main", "image": "nginx:2"}]);
    cluster.edit("apps/deployments", "web", |web| put(web, "/spec/template/spec/containers", containers));
    cluster.settle_checking(|memory| {
        let pods = memory.list("pods", Some("default"));
        let images: std::collections::BTreeSet<_> =
            pods.iter().map(|pod| text(pod, "/spec/containers/0/image")).collect();
        assert!(images.len() <= 1, "{images:?}");
    });
    assert_eq!(cluster.list("pods").len(), 3);
    at_rest(&mut cluster);
}

#[test]
fn scaling_and_pausing() {
    let mut cluster = Simulation::new();
    cluster.create("apps/deployments", deployment(3, json!({})));
    cluster.settle();
    cluster.edit("apps/deployments", "web", |web| put(web, "/spec/replicas", 5.into()));
    cluster.settle();
    assert_eq!(cluster.list("pods").len(), 5);
    cluster.edit("apps/deployments", "web", |web| put(web, "/spec/paused", true.into()));
    cluster.settle();
    set_image(&mut cluster, "nginx:2");
    assert_eq!(cluster.list("apps/replicasets").len(), 1, "nothing is rolled out while paused");
    cluster.edit("apps/deployments", "web", |web| put(web, "/spec/replicas", 2.into()));
    cluster.settle();
    assert_eq!(cluster.list("pods").len(), 2, "scaling works while paused");
    let web = cluster.get("apps/deployments", "web").unwrap();
    let status = super::fields::status(&web);
    assert_eq!(text(conditions::find(&status, "Progressing").unwrap(), "/reason"), "DeploymentPaused");
    cluster.edit("apps/deployments", "web", |web| put(web, "/spec/paused", false.into()));
    cluster.settle();
    assert_eq!(cluster.list("apps/replicasets").len(), 2);
    at_rest(&mut cluster);
}

/// The numbers of the example in the Kubernetes documentation of proportional scaling.
#[test]
fn scaling_during_a_stuck_rollout_is_shared_by_size() {
    let mut cluster = Simulation::new();
    cluster.create("apps/deployments", deployment(10, json!({"maxSurge": 3, "maxUnavailable": 2})));
    cluster.settle();
    cluster.edit("apps/deployments", "web", |web| {
        put(web, "/spec/template/metadata/annotations", json!({"opdev.dev/fail": "image"}));
    });
    cluster.settle();
    let sizes = |cluster: &Simulation| {
        let mut sets = cluster.list("apps/replicasets");
        sets.sort_by_key(|set| meta::annotation(set, "deployment.kubernetes.io/revision").map(str::to_owned));
        sets.iter().map(|set| int(set, "/spec/replicas").unwrap()).collect::<Vec<_>>()
    };
    assert_eq!(sizes(&cluster), [8, 5]);
    cluster.edit("apps/deployments", "web", |web| put(web, "/spec/replicas", 15.into()));
    cluster.settle();
    assert_eq!(sizes(&cluster), [11, 7]);
    at_rest(&mut cluster);
}

#[test]
fn a_stuck_rollout_exceeds_its_deadline() {
    let mut cluster = Simulation::new();
    let mut web = deployment(2, json!({}));
    put(&mut web, "/spec/progressDeadlineSeconds", 30.into());
    put(&mut web, "/spec/template/metadata/annotations", json!({"opdev.dev/fail": "image"}));
    cluster.create("apps/deployments", web);
    cluster.settle();
    let pods = cluster.list("pods");
    let waiting = "/status/containerStatuses/0/state/waiting/reason";
    assert_eq!(text(&pods[0], waiting), "ImagePullBackOff");
    cluster.elapse(Duration::from_secs(40));
    let status = super::fields::status(&cluster.get("apps/deployments", "web").unwrap());
    let progressing = conditions::find(&status, "Progressing").unwrap();
    assert_eq!(text(progressing, "/reason"), "ProgressDeadlineExceeded");
    assert_eq!(text(progressing, "/status"), "False");
    assert_eq!(text(conditions::find(&status, "Available").unwrap(), "/status"), "False");
}

#[test]
fn a_deleted_or_lost_pod_is_replaced() {
    let mut cluster = Simulation::new();
    cluster.create("apps/deployments", deployment(2, json!({})));
    cluster.settle();
    let victim = name(&cluster.list("pods")[0]).to_owned();
    cluster.delete("pods", &victim, Propagation::Background);
    cluster.settle();
    let pods = cluster.list("pods");
    assert_eq!(pods.len(), 2);
    assert!(!names(&pods).contains(&victim.as_str()));
    assert!(pods.iter().all(|pod| pods::ready(pod)));
    assert!(cluster.told(&victim).contains(&"Killing Stopping container main".to_owned()));
    at_rest(&mut cluster);
}

#[test]
fn pods_are_adopted_by_label_and_released_without_it() {
    let mut cluster = Simulation::new();
    cluster.create(
        "pods",
        json!({"apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": "stray", "namespace": "default", "labels": {"app": "rs"}},
            "spec": {"containers": [{"name": "main", "image": "x"}]}}),
    );
    cluster.create("apps/replicasets", workload("apps/v1", "ReplicaSet", "rs", json!({"replicas": 2})));
    cluster.settle();
    assert_eq!(cluster.list("pods").len(), 2);
    let stray = cluster.get("pods", "stray").unwrap();
    assert_eq!(meta::controller(&stray).unwrap().name, "rs");
    cluster.edit("pods", "stray", |pod| put(pod, "/metadata/labels", json!({"app": "other"})));
    cluster.settle();
    assert_eq!(cluster.list("pods").len(), 3);
    assert!(meta::controller(&cluster.get("pods", "stray").unwrap()).is_none());
    at_rest(&mut cluster);
}

#[test]
fn a_refused_pod_shows_in_conditions_and_is_tried_again() {
    let mut cluster = Simulation::new();
    // Each refused pod has another name.
    let refused = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&refused);
    cluster.refuse(move |write| match write {
        Write::Create { resource, .. } if resource == "pods" => Some(Refusal {
            code: 403,
            reason: "Forbidden".into(),
            message: format!(
                "pods \"x{}\" is forbidden: exceeded quota",
                count.fetch_add(1, Ordering::Relaxed)
            ),
            namespace_terminating: false,
        }),
        _ => None,
    });
    cluster.create("apps/deployments", deployment(1, json!({})));
    cluster.settle();
    let set = &cluster.list("apps/replicasets")[0];
    let failure = "pods \"x0\" is forbidden: exceeded quota";
    let status = super::fields::status(set);
    let condition = conditions::find(&status, "ReplicaFailure").unwrap();
    assert_eq!((text(condition, "/reason"), text(condition, "/message")), ("FailedCreate", failure));
    assert!(cluster.told(name(set)).contains(&format!("FailedCreate Error creating: {failure}")));
    let status = super::fields::status(&cluster.get("apps/deployments", "web").unwrap());
    assert!(conditions::is(&status, "ReplicaFailure", "True"));
    let version = meta::resource_version(set).map(str::to_owned);
    cluster.elapse(Duration::from_secs(5));
    let tries = refused.load(Ordering::Relaxed);
    assert!((2..20).contains(&tries), "it is tried again after pauses: {tries} times");
    let set = &cluster.list("apps/replicasets")[0];
    assert_eq!(meta::resource_version(set), version.as_deref(), "a further refusal changes nothing");
    cluster.refuse(|_| None);
    cluster.elapse(Duration::from_secs(5));
    assert_eq!(cluster.list("pods").len(), 1);
    let status = super::fields::status(&cluster.list("apps/replicasets")[0]);
    assert!(conditions::find(&status, "ReplicaFailure").is_none());
    at_rest(&mut cluster);
}

#[test]
fn background_deletion_takes_dependents_along() {
    let mut cluster = Simulation::new();
    cluster.create("apps/deployments", deployment(3, json!({})));
    cluster.settle();
    cluster.delete("apps/deployments", "web", Propagation::Background);
    assert!(cluster.get("apps/deployments", "web").is_none(), "the owner goes at once");
    cluster.settle();
    assert!(cluster.list("apps/replicasets").is_empty());
    assert!(cluster.list("pods").is_empty());
    at_rest(&mut cluster);
}

#[test]
fn foreground_deletion_takes_dependents_first() {
    let mut cluster = Simulation::new();
    cluster.create("apps/deployments", deployment(3, json!({})));
    cluster.settle();
    cluster.delete("apps/deployments", "web", Propagation::Foreground);
    cluster.settle_checking(|memory| {
        let alive = |resource| !memory.list(resource, Some("default")).is_empty();
        assert!(alive("apps/deployments") || !alive("apps/replicasets"), "the owner went first");
        assert!(alive("apps/replicasets") || !alive("pods"), "the ReplicaSet went before its pods");
    });
    assert!(cluster.list("apps/deployments").is_empty());
    assert!(cluster.list("pods").is_empty());
}

#[test]
fn orphans_stay_and_lose_their_owner() {
    let mut cluster = Simulation::new();
    cluster.create("apps/deployments", deployment(2, json!({})));
    cluster.settle();
    cluster.delete("apps/deployments", "web", Propagation::Orphan);
    cluster.settle();
    assert!(cluster.list("apps/deployments").is_empty());
    let sets = cluster.list("apps/replicasets");
    assert_eq!(sets.len(), 1);
    assert!(meta::owner_references(&sets[0]).is_empty());
    assert_eq!(cluster.list("pods").len(), 2);
    at_rest(&mut cluster);
}

fn owned(name: &str, owners: Value) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": "default", "ownerReferences": owners}})
}

#[test]
fn owners_are_told_apart_by_uid_namespace_and_kind() {
    let mut cluster = Simulation::new();
    let memcached = |namespace: &str| {
        json!({"apiVersion": "cache.my.domain/v1", "kind": "Memcached",
            "metadata": {"name": "m", "namespace": namespace}})
    };
    let here = cluster.create("cache.my.domain/memcacheds", memcached("default"));
    let there = cluster.create("cache.my.domain/memcacheds", memcached("kube-system"));
    let fleet = cluster.create(
        "cache.my.domain/fleets",
        json!({"apiVersion": "cache.my.domain/v1", "kind": "Fleet", "metadata": {"name": "f"}}),
    );
    let reference = |owner: &Value| {
        json!({"apiVersion": "cache.my.domain/v1", "kind": text(owner, "/kind"), "name": name(owner),
            "uid": text(owner, "/metadata/uid")})
    };
    let stale = json!({"apiVersion": "cache.my.domain/v1", "kind": "Memcached", "name": "m", "uid": "old"});
    let unknown = json!({"apiVersion": "nowhere/v1", "kind": "Thing", "name": "m", "uid": "u"});
    cluster.create("configmaps", owned("living", json!([reference(&here)])));
    cluster.create("configmaps", owned("by-cluster", json!([reference(&fleet)])));
    cluster.create("configmaps", owned("stale-uid", json!([stale.clone()])));
    cluster.create("configmaps", owned("other-namespace", json!([reference(&there)])));
    cluster.create("configmaps", owned("unknown-kind", json!([unknown])));
    cluster.create("configmaps", owned("half", json!([reference(&here), stale])));
    cluster.settle();
    let left: Vec<_> = cluster.list("configmaps");
    assert_eq!(names(&left), ["by-cluster", "half", "kube-root-ca.crt", "living", "unknown-kind"]);
    assert_eq!(meta::owner_references(&cluster.get("configmaps", "half").unwrap()).len(), 1);
    assert!(cluster.told("other-namespace")[0].starts_with("OwnerRefInvalidNamespace ownerRef ["));
    cluster.delete("cache.my.domain/memcacheds", "m", Propagation::Background);
    cluster.settle();
    assert_eq!(names(&cluster.list("configmaps")), ["by-cluster", "kube-root-ca.crt", "unknown-kind"]);
    at_rest(&mut cluster);
}

#[test]
fn a_namespace_goes_with_all_it_holds() {
    let mut cluster = Simulation::new();
    let key = |resource: &str, name: &str| crate::contract::Key::new(resource, None, name);
    cluster
        .create("namespaces", json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "gone"}}));
    let mut web = deployment(2, json!({}));
    put(&mut web, "/metadata/namespace", "gone".into());
    cluster.create("apps/deployments", web);
    cluster.create(
        "cache.my.domain/memcacheds",
        json!({"apiVersion": "cache.my.domain/v1", "kind": "Memcached",
            "metadata": {"name": "m", "namespace": "gone", "finalizers": ["my.domain/wait"]}}),
    );
    cluster.settle();
    assert!(cluster.memory.get("serviceaccounts", Some("gone"), "default").is_some());
    let root_ca = cluster.memory.get("configmaps", Some("gone"), "kube-root-ca.crt").unwrap();
    assert_eq!(text(&root_ca, "/data/ca.crt"), "PEM");
    let delete = Write::Delete {
        resource: "namespaces".into(),
        namespace: None,
        name: "gone".into(),
        uid: None,
        propagation: None,
        grace: None,
    };
    use super::engine::Plane;
    cluster.memory.write(crate::contract::Actor { user: "me", field_manager: "me" }, &delete).unwrap();
    cluster.settle();
    let namespace = key("namespaces", "gone").read(&cluster.memory).unwrap();
    let status = super::fields::status(&namespace);
    let says = conditions::find(&status, "NamespaceFinalizersRemaining").unwrap();
    let message =
        "Some content in the namespace has finalizers remaining: my.domain/wait in 1 resource instances";
    assert_eq!(text(says, "/message"), message);
    let says = conditions::find(&status, "NamespaceContentRemaining").unwrap();
    let message = "Some resources are remaining: memcacheds.cache.my.domain has 1 resource instances";
    assert_eq!(text(says, "/message"), message);
    let patch = Write::Patch {
        resource: "cache.my.domain/memcacheds".into(),
        namespace: Some("gone".into()),
        name: "m".into(),
        patch: json!({"metadata": {"finalizers": null}}),
    };
    cluster.memory.write(crate::contract::Actor { user: "me", field_manager: "me" }, &patch).unwrap();
    cluster.settle();
    assert!(key("namespaces", "gone").read(&cluster.memory).is_none());
    for info in cluster.memory.resources().iter().filter(|info| info.namespaced) {
        assert!(cluster.memory.list(&info.resource, Some("gone")).is_empty(), "{}", info.resource);
    }
    at_rest(&mut cluster);
}

#[test]
fn one_object_that_cannot_go_keeps_no_other() {
    let mut cluster = Simulation::new();
    cluster.refuse(|write| match write {
        Write::Delete { resource, name, .. } if resource == "configmaps" && name == "a" => Some(Refusal {
            code: 403,
            reason: "Forbidden".into(),
            message: "not this one".into(),
            namespace_terminating: false,
        }),
        _ => None,
    });
    cluster.create("namespaces", json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "n"}}));
    for name in ["a", "b"] {
        let map =
            json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "n"}});
        cluster.create("configmaps", map);
    }
    cluster.settle();
    cluster.delete_in(None, "namespaces", "n");
    cluster.settle();
    let left = cluster.memory.list("configmaps", Some("n"));
    assert_eq!(names(&left), ["a"]);
    cluster.refuse(|_| None);
    cluster.elapse(Duration::from_secs(120));
    assert!(crate::contract::Key::new("namespaces", None, "n").read(&cluster.memory).is_none());
    at_rest(&mut cluster);
}

#[test]
fn the_default_service_account_comes_back() {
    let mut cluster = Simulation::new();
    cluster.delete("serviceaccounts", "default", Propagation::Background);
    cluster.settle();
    assert!(cluster.get("serviceaccounts", "default").is_some());
    cluster.edit("configmaps", "kube-root-ca.crt", |map| put(map, "/data", json!({"ca.crt": "wrong"})));
    cluster.settle();
    assert_eq!(text(&cluster.get("configmaps", "kube-root-ca.crt").unwrap(), "/data/ca.crt"), "PEM");
}

fn pod(name: &str, fail: Option<&str>, restart: &str) -> Value {
    let mut pod = json!({"apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"containers": [{"name": "main", "image": "nginx:1"}], "restartPolicy": restart}});
    if let Some(fail) = fail {
        put(&mut pod, "/metadata/annotations", json!({"opdev.dev/fail": fail}));
    }
    pod
}

#[test]
fn pods_fail_on_demand_and_recover() {
    let mut cluster = Simulation::new();
    cluster.create("pods", pod("p", Some("crash"), "Always"));
    cluster.settle();
    let found = cluster.get("pods", "p").unwrap();
    let main = "/status/containerStatuses/0";
    assert_eq!(text(&found, &format!("{main}/state/waiting/reason")), "CrashLoopBackOff");
    assert_eq!(count(&found, &format!("{main}/restartCount")), 1);
    assert_eq!(count(&found, &format!("{main}/lastState/terminated/exitCode")), 1);
    assert_eq!(text(&found, "/status/phase"), "Running");
    cluster.edit("pods", "p", |pod| put(pod, "/metadata/annotations", json!({})));
    cluster.settle();
    assert!(pods::ready(&cluster.get("pods", "p").unwrap()));
    cluster.edit("pods", "p", |pod| put(pod, "/metadata/annotations", json!({"opdev.dev/fail": "unready"})));
    cluster.settle();
    let found = cluster.get("pods", "p").unwrap();
    assert!(!pods::ready(&found));
    assert!(cluster.told("p").iter().any(|told| told.starts_with("Unhealthy Readiness probe failed")));
    cluster.edit("pods", "p", |pod| put(pod, "/metadata/annotations", json!({"opdev.dev/fail": "evict"})));
    cluster.settle();
    assert_eq!(text(&cluster.get("pods", "p").unwrap(), "/status/phase"), "Running", "the delay holds");
    cluster.elapse(Duration::from_secs(2));
    let found = cluster.get("pods", "p").unwrap();
    assert_eq!((text(&found, "/status/phase"), text(&found, "/status/reason")), ("Failed", "Evicted"));
    at_rest(&mut cluster);
}

#[test]
fn pods_that_are_meant_to_end_do() {
    let mut cluster = Simulation::new();
    cluster.create("pods", pod("good", None, "Never"));
    cluster.create("pods", pod("bad", Some("crash"), "Never"));
    cluster.create("pods", pod("waits", Some("pending"), "Always"));
    cluster.settle();
    let good = cluster.get("pods", "good").unwrap();
    assert_eq!(text(&good, "/status/phase"), "Running", "who waits for it to run sees it");
    cluster.elapse(Duration::from_secs(1));
    let phase = |name| text(&cluster.get("pods", name).unwrap(), "/status/phase").to_owned();
    assert_eq!(
        (phase("good"), phase("bad"), phase("waits")),
        ("Succeeded".into(), "Failed".into(), "Pending".into())
    );
    let good = cluster.get("pods", "good").unwrap();
    assert_eq!(text(&good, "/status/containerStatuses/0/state/terminated/reason"), "Completed");
    at_rest(&mut cluster);
}

#[test]
fn pods_nobody_can_take_say_why() {
    let mut cluster = Simulation::new();
    let mut picky = pod("picky", None, "Always");
    put(&mut picky, "/spec/nodeSelector", json!({"disk": "ssd"}));
    cluster.create("pods", picky);
    cluster.settle();
    let found = cluster.get("pods", "picky").unwrap();
    let says = list(&found, "/status/conditions")[0].clone();
    assert_eq!(text(&says, "/reason"), "Unschedulable");
    let message = "0/1 nodes are available: 1 node(s) didn't match Pod's node affinity/selector. no new claims to deallocate, preemption: 0/1 nodes are available: 1 Preemption is not helpful for scheduling.";
    assert_eq!(text(&says, "/message"), message);
    assert_eq!(cluster.told("picky"), [format!("FailedScheduling {message}")]);
    let node = crate::contract::Key::new("nodes", None, "opdev").read(&cluster.memory).unwrap();
    let mut labelled = Value::clone(&node);
    put(&mut labelled, "/metadata/labels/disk", "ssd".into());
    use super::engine::Plane;
    let update = Write::Update { resource: "nodes".into(), object: labelled };
    cluster.memory.write(crate::contract::Actor { user: "me", field_manager: "me" }, &update).unwrap();
    cluster.settle();
    assert!(pods::ready(&cluster.get("pods", "picky").unwrap()));
}

#[test]
fn the_node_is_ready_and_renews_its_lease() {
    let mut cluster = Simulation::new();
    let node = crate::contract::Key::new("nodes", None, "opdev").read(&cluster.memory).unwrap();
    assert!(conditions::is_true(&node, "Ready"));
    let lease = |cluster: &Simulation| {
        let lease =
            cluster.memory.get("coordination.k8s.io/leases", Some("kube-node-lease"), "opdev").unwrap();
        text(&lease, "/spec/renewTime").to_owned()
    };
    let first = lease(&cluster);
    cluster.clear_log();
    cluster.elapse(Duration::from_secs(60));
    assert!(lease(&cluster) > first);
    assert!(cluster.writes().len() <= 7, "only the lease is written: {:?}", cluster.writes());
    assert!(!deleting(&node));
}
