//! Two operators on the same objects: a copy that runs on the cluster, and a second opdev in the same
//! project.

use super::door::Door;
use crate::inner_loop::Opdev;
use expect_test::expect;
use opdev_event::{ClusterTask, DeployedCopy, Event, RequestOutcome};
use serde_json::{Value, json};

const PATH: &str = "/apis/apps/v1/namespaces/demo-system/deployments/demo-controller-manager";
const FROZEN: &str = "opdev.dev/frozen";

async fn send(door: &Door, method: &str, path: &str, kind: &str, body: &Value) -> Value {
    let request = http::Request::builder()
        .method(method)
        .uri(path)
        .header("content-type", kind)
        .body(if body.is_null() { Vec::new() } else { body.to_string().into_bytes() })
        .unwrap();
    door.plane.client().request(request).await.unwrap()
}

/// A copy of the demo operator as its scaffold deploys it, with a leader.
async fn deployed(door: &Door) {
    let create =
        async |path: &str, object: Value| send(door, "POST", path, "application/json", &object).await;
    create("/api/v1/namespaces", json!({"metadata": {"name": "demo-system"}})).await;
    let labels = json!({"control-plane": "controller-manager"});
    let pod = json!({"metadata": {"labels": labels}, "spec": {"containers": [{"name": "manager", "image": "example.com/demo:v1"}]}});
    let object = json!({"metadata": {"name": "demo-controller-manager", "labels": labels},
        "spec": {"replicas": 2, "selector": {"matchLabels": labels}, "template": pod}});
    create("/apis/apps/v1/namespaces/demo-system/deployments", object).await;
    let now = jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%S.%6fZ").to_string();
    let lease = json!({"metadata": {"name": "demo"}, "spec": {"holderIdentity": "demo-controller-manager-abc_1",
        "leaseDurationSeconds": 3600, "renewTime": now}});
    create("/apis/coordination.k8s.io/v1/namespaces/demo-system/leases", lease).await;
}

async fn live(door: &Door) -> (Value, Value) {
    let live = send(door, "GET", PATH, "application/json", &Value::Null).await;
    (live["spec"]["replicas"].clone(), live["metadata"]["annotations"][FROZEN].clone())
}

async fn copies(opdev: &Opdev, mark: usize, pick: impl Fn(&[DeployedCopy]) -> bool) -> Vec<DeployedCopy> {
    opdev
        .wait("the copies", mark, |event| match event {
            Event::CopiesChanged(changed) if pick(&changed.copies) => Some(changed.copies.clone()),
            _ => None,
        })
        .await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_copy_on_the_cluster_is_named_frozen_and_given_back() {
    let door = Door::open().await;
    deployed(&door).await;
    let folder = tempfile::tempdir().unwrap();
    let choice = door.choice(folder.path(), "opdev", &json!({}));
    let mut opdev = Opdev::start_against(choice, |_| {}).await;
    let found = copies(&opdev, 0, |copies| !copies.is_empty()).await;
    assert_eq!((found.len(), found[0].replicas, found[0].frozen), (1, 2, None));
    let why = found[0].why.join("; ");
    expect!["the label control-plane=controller-manager and a name of the project demo; the image example.com/demo:v1; its lease demo, held by demo-controller-manager-abc_1"]
    .assert_eq(&why);
    let notice = |event: &Event| match event {
        Event::Noticed(notice) if notice.message.contains("a copy of this operator runs") => Some(()),
        _ => None,
    };
    opdev.wait("a notice", 0, notice).await;

    let mark = opdev.mark();
    let outcome = opdev.ask(ClusterTask::Freeze { object: found[0].object.clone() }).await;
    assert!(matches!(outcome, RequestOutcome::Done { .. }), "{outcome:?}");
    assert_eq!(copies(&opdev, mark, |_| true).await[0].frozen, Some(2));
    assert_eq!(live(&door).await.0, 0);
    let again = opdev.ask(ClusterTask::Freeze { object: found[0].object.clone() }).await;
    assert!(matches!(again, RequestOutcome::Failed { .. }), "{again:?}");
    opdev.stop().await;
    assert_eq!(live(&door).await, (json!(2), Value::Null), "it is given back on the way out");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_crash_has_left_frozen_is_given_back_at_the_next_start() {
    let door = Door::open().await;
    deployed(&door).await;
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap();
    let mut gone = std::process::Command::new("true").spawn().unwrap();
    let pid = gone.id();
    gone.wait().unwrap();
    let left = json!({"replicas": 2, "host": host.trim(), "pid": pid}).to_string();
    let patch = json!({"metadata": {"annotations": {FROZEN: left}}, "spec": {"replicas": 0}});
    send(&door, "PATCH", PATH, "application/merge-patch+json", &patch).await;
    let folder = tempfile::tempdir().unwrap();

    // Nothing is written to a cluster that is only read; its user is told what to do.
    let guarded = Opdev::start_against(door.choice(folder.path(), "prod", &json!({})), |_| {}).await;
    let left = |event: &Event| match event {
        Event::Noticed(notice) if notice.message.contains("left frozen") => Some(notice.clone()),
        _ => None,
    };
    let notice = guarded.wait("a notice", 0, left).await;
    expect!["unlock the context, or run `kubectl -n demo-system scale deployment demo-controller-manager --replicas=2`"]
    .assert_eq(&notice.hint.unwrap());
    guarded.stop().await;
    assert_eq!(live(&door).await.0, 0);

    let opdev = Opdev::start_against(door.choice(folder.path(), "opdev", &json!({})), |_| {}).await;
    opdev.wait("a notice", 0, left).await;
    assert_eq!(live(&door).await, (json!(2), Value::Null));
    opdev.stop().await;
}
