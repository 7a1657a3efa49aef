//! The pairs of pods in the tests of KWOK's stages (0.8), as what is given and what comes of it, without
//! times and addresses: our stages lead there too. They go on as a kubelet does, in other steps, so that what
//! KWOK makes in one may take several. Where an end differs, it is the kubelet's that we have.

use super::super::addresses::Addresses;
use super::super::kubelet::Kubelet;
use super::simulation::Given;
use super::*;
use crate::contract::{Change, Controller};

/// Values that KWOK's stages set and a kubelet does not: stage, place, the kubelet's value as JSON.
const OTHERWISE: [(&str, &str, &str); 3] = [
    // A container that has ended is not ready; the other pair of KWOK's stages says so too.
    ("pod/general/pod-complete", "/containerStatuses/0/ready", "false"),
    // Containers keep the reason for which they waited first until they run.
    (
        "pod/general/pod-init-container-completed",
        "/containerStatuses/0/state/waiting/reason",
        "\"PodInitializing\"",
    ),
    // An init container is ready when it has ended well.
    ("pod/general/pod-init-container-running", "/initContainerStatuses/0/ready", "false"),
];

fn has(found: &Value, wanted: &Value) -> bool {
    match (found, wanted) {
        (Value::Object(found), Value::Object(wanted)) => {
            wanted.iter().all(|(key, inner)| found.get(key).is_some_and(|found| has(found, inner)))
        }
        // Conditions go by their types, containers by their names.
        (Value::Array(found), Value::Array(wanted)) => {
            wanted.iter().all(|inner| found.iter().any(|found| has(found, inner)))
        }
        _ => found == wanted,
    }
}

/// All that becomes of a pod: its statuses one after the other, whether it is deleted, and what is told of
/// it.
fn life(given: &Value) -> (Vec<Value>, bool, Vec<String>) {
    let kubelet =
        Kubelet { node: "node".into(), stages: None, strict: false, addresses: Addresses::default() };
    let mut cluster = Simulation::new();
    let (mut states, mut deleted, mut told) = (Vec::new(), false, Vec::new());
    let mut pod = cluster.raw("pods", given.clone());
    while states.len() < 10 && !deleted {
        let change = Change {
            resource: "pods".into(),
            before: None,
            after: Some(Given::observed("pods", pod.clone())),
        };
        let [key] = &kubelet.keys(&cluster.memory, &change)[..] else { panic!("{pod}") };
        let writes = kubelet.sync(&cluster.memory, key, cluster.memory.now()).writes;
        if writes.is_empty() {
            break;
        }
        for write in writes {
            match write {
                Write::UpdateStatus { object, .. } => pod = cluster.raw("pods", object),
                Write::Delete { .. } => deleted = true,
                Write::Record(note) => told.push(note.reason),
                other => panic!("{other:?}"),
            }
        }
        states.push(pod["status"].clone());
    }
    (states, deleted, told)
}

#[test]
fn pods_get_where_the_stages_of_kwok_lead() {
    let mut count = 0;
    for line in include_str!("../../../../tests/golden/stages/pods.jsonl").lines() {
        let case: Value = serde_json::from_str(line).unwrap();
        let pair = text(&case, "/pair");
        let (states, deleted, told) = life(&case["given"]);
        assert_eq!(deleted, case.get("deleted").is_some(), "{pair}");
        if let Some(reason) = case["told"].as_str() {
            assert!(told.iter().any(|said| said == reason), "{pair}: {told:?}");
        }
        let mut reached = case["reached"].clone();
        for (of, path, instead) in OTHERWISE.iter().filter(|(of, ..)| *of == pair) {
            let place = reached.pointer_mut(path).unwrap_or_else(|| panic!("{of} says nothing of {path}"));
            assert!(!states.iter().any(|state| has(state, &case["reached"])), "{of} is as in KWOK by now");
            *place = serde_json::from_str(instead).unwrap();
        }
        let there = reached.is_null() || states.iter().any(|state| has(state, &reached));
        assert!(there, "{pair}: {reached:#}\n{states:#?}");
        count += 1;
    }
    assert_eq!(count, 10);
}

const CLAIMS: &str = "persistentvolumeclaims";
const VOLUMES: &str = "persistentvolumes";

/// The claim and the volume of a pair of volumes; what is there of both before is what the pair takes for
/// granted.
fn volumes_of(case: &Value, all: &[Value]) -> Simulation {
    let mut cluster = Simulation::new();
    let given = |pair: &str| all.iter().find(|case| case["pair"] == pair).unwrap()["given"].clone();
    let (mut claim, mut volume) = (given("volume/fast/pvc-provision"), given("volume/fast/pv-bind"));
    put(&mut claim, "/spec/volumeName", volume["metadata"]["name"].clone());
    match text(case, "/pair") {
        "volume/fast/pvc-provision" => {
            let class = json!({"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass",
                "metadata": {"name": "kwok-volume"}, "provisioner": "kwok.x-k8s.io/volume"});
            cluster.create("storage.k8s.io/storageclasses", class);
            cluster.raw(CLAIMS, case["given"].clone());
        }
        "volume/fast/pv-bind" => {
            cluster.raw(VOLUMES, case["given"].clone());
            cluster.raw(CLAIMS, claim);
        }
        "volume/fast/pvc-delete" => {
            // KWOK only says that the volume is released; what is kept then shows it.
            put(&mut volume, "/spec/persistentVolumeReclaimPolicy", "Retain".into());
            cluster.raw(VOLUMES, volume);
            cluster.raw(CLAIMS, claim);
            cluster.settle();
            cluster.delete(CLAIMS, "my-pvc", Propagation::Background);
        }
        _ => drop(cluster.raw(VOLUMES, case["given"].clone())),
    }
    cluster.settle();
    cluster
}

#[test]
fn claims_and_volumes_get_there_too() {
    let lines = include_str!("../../../../tests/golden/stages/volumes.jsonl").lines();
    let all: Vec<Value> = lines.map(|line| serde_json::from_str(line).unwrap()).collect();
    for case in &all {
        let mut cluster = volumes_of(case, &all);
        let pair = text(case, "/pair");
        let claim = cluster.get(CLAIMS, "my-pvc").map(|claim| Value::clone(&claim));
        let volume = cluster.memory.list(VOLUMES, None).first().map(|volume| Value::clone(volume));
        let given = if text(&case["given"], "/kind") == "PersistentVolume" { &volume } else { &claim };
        if let Some(left) = case.get("left") {
            assert!(given.as_ref().is_some_and(|given| has(given, left)), "{pair}: {given:#?}");
        } else {
            assert_eq!(given, &None, "{pair}");
        }
        if let Some(wanted) = case.get("volume") {
            let volume = volume.unwrap();
            let mut wanted = wanted.clone();
            if let Some(of) = wanted.pointer_mut("/spec/claimRef/resourceVersion") {
                // The version at which the claim was seen; here they are counted otherwise.
                *of = volume["spec"]["claimRef"]["resourceVersion"].clone();
                assert!(of.is_string(), "{pair}: {volume:#}");
            }
            assert!(has(&volume, &wanted), "{pair}: {volume:#}");
        }
        at_rest(&mut cluster);
    }
    assert_eq!(all.len(), 4);
}
