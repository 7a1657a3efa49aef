//! A cluster that is not clearly local sees no write until its name was typed.

use super::door::Door;
use crate::inner_loop::Opdev;
use opdev_event::{
    ClusterTask, Event, ObjectTask, OperatorTask, Outcome, Propagation, Protection, RequestOutcome,
};
use opdev_object::meta::{Gvk, ObjectRef};
use serde_json::json;

fn memcached() -> ObjectRef {
    ObjectRef {
        gvk: Gvk::new("cache.my.domain", "v1alpha1", "Memcached"),
        namespace: Some("default".to_owned()),
        name: "memcached-sample".to_owned(),
        uid: None,
    }
}

fn refused(outcome: &RequestOutcome) -> bool {
    matches!(outcome, RequestOutcome::Failed { message, .. } if message.contains("not clearly local"))
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_written_until_the_name_is_typed() {
    let door = Door::open().await;
    let folder = tempfile::tempdir().unwrap();
    let mut choice = door.choice(folder.path(), "prod", &json!({}));
    choice.allow_contexts = vec!["prod".to_owned()];
    let mut before = Opdev::start_against(choice.clone(), |_| {}).await;
    let mark = before.mark();
    before.ask(ObjectTask::Apply { path: "samples/memcached.yaml".to_owned() }).await;
    before.reconcile("an install", mark, |reconcile| reconcile.outcome == Outcome::Installed).await;
    before.stop().await;

    choice.allow_contexts.clear();
    door.forget();
    let mut opdev = Opdev::start_against(choice, |_| {}).await;
    let started = opdev
        .wait("the start", 0, |event| match event {
            Event::Started(started) => Some(started.cluster.clone()),
            _ => None,
        })
        .await;
    assert!(started.read_only && started.protection == Protection::ReadOnly, "{started:?}");
    opdev.reconcile("a pass that only looks", 0, |reconcile| reconcile.outcome == Outcome::Waiting).await;
    opdev
        .wait("the objects of the panes", 0, |event| match event {
            Event::ObjectSeen(seen) if seen.object_ref.gvk.kind == "Deployment" => Some(()),
            _ => None,
        })
        .await;
    let object = memcached();
    for request in [
        ObjectTask::Apply { path: "samples/hello.yaml".to_owned() },
        ObjectTask::Scale { object: object.clone(), replicas: 5 },
        ObjectTask::Delete { object: object.clone(), propagation: Propagation::Background, grace: None },
    ] {
        assert!(refused(&opdev.ask(request).await));
    }
    let mark = opdev.mark();
    opdev.ask(OperatorTask::Reconcile { object }).await;
    opdev.reconcile("another look", mark, |reconcile| reconcile.outcome == Outcome::Waiting).await;
    let mark = opdev.mark();
    opdev.edit("charts/memcached/templates/deployment.yaml", |text| {
        text.replacen("spec:", "spec:\n  minReadySeconds: 1", 1)
    });
    let foreseen =
        |words: &str| words.contains("it would change Deployment") && words.contains("minReadySeconds");
    opdev
        .reconcile("what the edit would change", mark, |reconcile| {
            reconcile.waiting.as_deref().is_some_and(foreseen)
        })
        .await;
    let outcome = opdev.ask(ClusterTask::Unlock { context: "prd".to_owned() }).await;
    assert!(matches!(outcome, RequestOutcome::Failed { .. }), "{outcome:?}");
    assert_eq!(door.writes(), [], "a guarded cluster was written to");
    assert!(door.asked() > 10, "nothing was read either");

    let mark = opdev.mark();
    let outcome = opdev.ask(ClusterTask::Unlock { context: "prod".to_owned() }).await;
    assert!(matches!(outcome, RequestOutcome::Done { .. }), "{outcome:?}");
    opdev.reconcile("the edit goes live", mark, |reconcile| reconcile.outcome == Outcome::Upgraded).await;
    opdev
        .wait("its level", mark, |event| match event {
            Event::ProtectionChanged(changed) => Some(changed.protection),
            _ => None,
        })
        .await;
    assert!(!door.writes().is_empty());
    opdev.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_loopback_address_and_a_known_name_are_not_enough() {
    let door = Door::open().await;
    let folder = tempfile::tempdir().unwrap();
    // The server is the embedded plane, so it bears out `opdev`, but neither kind nor k3d.
    for (context, protection) in [
        ("opdev", Protection::Local),
        ("kind-dev", Protection::ReadOnly),
        ("k3d-dev", Protection::ReadOnly),
        ("minikube", Protection::ReadOnly),
        ("localhost", Protection::ReadOnly),
    ] {
        let choice = door.choice(folder.path(), context, &json!({}));
        let state = opdev_os::private_folder::PrivateFolder::make(folder.path()).unwrap();
        let connection = opdev_cluster::Connection::open(&choice, &state).await.unwrap();
        assert_eq!(connection.cluster.protection, protection, "{context}: {}", connection.cluster.marks);
        assert_eq!(connection.read_only.holds(), protection == Protection::ReadOnly, "{context}");
        connection.close().await;
    }
    assert_eq!(door.writes(), []);
}
