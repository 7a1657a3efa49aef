//! Init containers: one after the other, sidecars, failures on demand. Ephemeral containers: added to a pod
//! that runs.

use super::super::fields::flag;
use super::*;
use crate::contract::Key;

#[test]
fn init_containers_run_first_and_sidecars_stay() {
    let mut cluster = Simulation::new();
    let mut with_init = pod("p", None, "Always");
    let init =
        json!([{"name": "once", "image": "i"}, {"name": "side", "image": "s", "restartPolicy": "Always"}]);
    put(&mut with_init, "/spec/initContainers", init);
    cluster.create("pods", with_init);
    let mut seen = Vec::new();
    cluster.settle_checking(|memory| {
        let now = init_states(&Key::new("pods", Some("default"), "p").read(memory).unwrap());
        if seen.last() != Some(&now) {
            seen.push(now);
        }
    });
    let states = ["", "waiting waiting", "running waiting", "terminated waiting", "terminated running"];
    assert_eq!(seen, states);
    let found = cluster.get("pods", "p").unwrap();
    assert!(pods::ready(&found));
    let states = list(&found, "/status/initContainerStatuses");
    assert_eq!(text(&states[0], "/state/terminated/reason"), "Completed");
    assert!(flag(&states[0], "/ready") && flag(&states[1], "/ready") && flag(&states[1], "/started"));
    let told = cluster.told("p");
    assert_eq!(told.iter().filter(|told| told.starts_with("Started")).count(), 3, "{told:#?}");
    at_rest(&mut cluster);
}

fn init_states(pod: &Value) -> String {
    let state = |status: &Value| status["state"].as_object().and_then(|state| state.keys().next().cloned());
    let all: Vec<_> = list(pod, "/status/initContainerStatuses").iter().filter_map(state).collect();
    all.join(" ")
}

#[test]
fn an_init_container_fails_on_demand_and_recovers() {
    let mut cluster = Simulation::new();
    for (name, policy) in [("again", "Always"), ("once", "Never")] {
        let mut failing = pod(name, None, policy);
        put(&mut failing, "/metadata/annotations", json!({"opdev.dev/fail": "init"}));
        let side = json!({"name": "side", "image": "s", "restartPolicy": "Always"});
        let init = json!([side, {"name": "a", "image": "i"}, {"name": "b", "image": "i"}]);
        put(&mut failing, "/spec/initContainers", init);
        cluster.create("pods", failing);
    }
    cluster.elapse(Duration::from_secs(60));
    let again = cluster.get("pods", "again").unwrap();
    assert_eq!(text(&again, "/status/phase"), "Pending");
    assert_eq!(init_states(&again), "running waiting waiting");
    let failed = &list(&again, "/status/initContainerStatuses")[1];
    assert_eq!(text(failed, "/state/waiting/reason"), "CrashLoopBackOff");
    assert_eq!(text(failed, "/lastState/terminated/reason"), "Error");
    assert_eq!(count(failed, "/restartCount"), 1);
    let initialized =
        list(&again, "/status/conditions").iter().find(|at| at["type"] == "Initialized").unwrap();
    assert_eq!(text(initialized, "/message"), "containers with incomplete status: [a b]");
    let once = cluster.get("pods", "once").unwrap();
    assert_eq!(text(&once, "/status/phase"), "Failed");
    assert_eq!(list(&once, "/status/initContainerStatuses")[1]["state"]["terminated"]["exitCode"], 1);
    cluster.edit("pods", "again", |pod| put(pod, "/metadata/annotations", json!({})));
    cluster.settle();
    let again = cluster.get("pods", "again").unwrap();
    assert!(pods::ready(&again), "{again:#}");
    assert_eq!(init_states(&again), "running terminated terminated");
    assert_eq!(count(&list(&again, "/status/initContainerStatuses")[1], "/restartCount"), 1);
    at_rest(&mut cluster);
}

/// `kubectl debug` waits until its container runs, and attaches to it then.
#[test]
fn an_ephemeral_container_begins_in_a_pod_that_runs() {
    let mut cluster = Simulation::new();
    cluster.create("pods", pod("p", None, "Always"));
    cluster.settle();
    let added = json!([{"name": "debugger-x", "image": "busybox", "targetContainerName": "main"}]);
    cluster.edit("pods", "p", |pod| put(pod, "/spec/ephemeralContainers", added.clone()));
    cluster.settle();
    let found = cluster.get("pods", "p").unwrap();
    let status = &list(&found, "/status/ephemeralContainerStatuses")[0];
    assert_eq!((text(status, "/name"), text(status, "/image")), ("debugger-x", "busybox"));
    assert!(status.pointer("/state/running/startedAt").is_some(), "{status:#}");
    assert!(!flag(status, "/ready") && pods::ready(&found), "it says nothing of the pod's readiness");
    assert_eq!(count(&found, "/status/containerStatuses/0/restartCount"), 0, "the others go on");
    let told = cluster.told("p");
    assert_eq!(told.iter().filter(|told| told.starts_with("Started")).count(), 2, "{told:#?}");
    at_rest(&mut cluster);
}
