//! From one cluster to another while opdev runs.

use super::door::{Answer, Door, write_kubeconfig};
use crate::inner_loop::Opdev;
use expect_test::expect;
use opdev_cluster::Choice;
use opdev_event::{
    Asker, ClusterTask, Destination, Event, ObjectTask, OnExit, Outcome, Protection, RequestOutcome,
    SessionRequest, Started, Task,
};
use serde_json::{Value, json};
use std::path::Path;
use tokio::sync::watch;

/// A kubeconfig with a context for each door.
fn kubeconfig(folder: &Path, contexts: &[(&str, &str)]) -> std::path::PathBuf {
    let path = write_kubeconfig(folder, contexts[0].0, &json!({"server": contexts[0].1}), &json!({}));
    let mut config: Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
    for (name, server) in &contexts[1..] {
        let cluster = json!({"name": name, "cluster": {"server": server}});
        config["clusters"].as_array_mut().unwrap().push(cluster);
        let context = json!({"name": name, "context": {"cluster": name, "user": "jane"}});
        config["contexts"].as_array_mut().unwrap().push(context);
    }
    std::fs::write(&path, config.to_string()).unwrap();
    path
}

fn to(name: &str) -> Destination {
    Destination::Context { name: name.to_owned() }
}

/// The start after a mark, once its sources serve.
async fn started(opdev: &Opdev, mark: usize) -> (usize, Started) {
    let begun = |events: &[Event]| {
        let at = events[mark..].iter().rposition(|event| matches!(event, Event::Started(_)))? + mark;
        let serves = events[at..].iter().any(|event| matches!(event, Event::SourcesChanged(_)));
        match &events[at] {
            Event::Started(started) if serves => Some((at, Started::clone(started))),
            _ => None,
        }
    };
    opdev.wait_for_state("a start", begun).await
}

async fn object(door: &Door, path: &str) -> Option<Value> {
    let request = http::Request::get(path).body(Vec::new()).unwrap();
    door.plane.client().request(request).await.ok()
}

const SAMPLE: &str = "/apis/cache.my.domain/v1alpha1/namespaces/default/memcacheds/memcached-sample";

async fn install(opdev: &mut Opdev) {
    let mark = opdev.mark();
    opdev.ask(ObjectTask::Apply { path: "samples/memcached.yaml".to_owned() }).await;
    opdev.reconcile("an install", mark, |reconcile| reconcile.outcome == Outcome::Installed).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn there_and_back_each_with_its_own_guard_and_objects() {
    let (one, two) = (Door::open().await, Door::open().await);
    let folder = tempfile::tempdir().unwrap();
    let path = kubeconfig(folder.path(), &[("opdev", &one.url()), ("prod", &two.url())]);
    let choice = Choice { kubeconfig: Some(path), ..Choice::default() };
    let mut opdev = Opdev::start_against(choice, |_| {}).await;
    install(&mut opdev).await;

    let mark = opdev.mark();
    let said = opdev.ask(SessionRequest::Switch { to: to("prod"), how: OnExit::Uninstall }).await;
    assert!(matches!(said, RequestOutcome::Done { .. }), "{said:?}");
    assert!(object(&one, SAMPLE).await.is_none(), "what was chosen for its custom resources is done");
    let (begun, there) = started(&opdev, mark).await;
    assert_eq!((there.cluster.name.as_str(), there.cluster.protection), ("prod", Protection::ReadOnly));
    assert_eq!(there.contexts, ["opdev", "prod"]);
    let seen = |event: &Event| matches!(event, Event::ObjectSeen(seen) if seen.object_ref.name == "memcached-sample");
    assert!(!opdev.since(begun).iter().any(seen), "the other cluster's object");
    let refused = opdev.ask(ObjectTask::Apply { path: "samples/memcached.yaml".to_owned() }).await;
    assert!(matches!(refused, RequestOutcome::Failed { .. }), "{refused:?}");
    assert_eq!(two.writes(), [], "the guard was not lifted with the first cluster's");

    // Unlocked, it is written to; and back there nothing of it is left.
    opdev.ask(ClusterTask::Unlock { context: "prod".to_owned() }).await;
    install(&mut opdev).await;
    let mark = opdev.mark();
    one.forget();
    opdev.ask(SessionRequest::Switch { to: to("opdev"), how: OnExit::Leave }).await;
    assert_eq!(started(&opdev, mark).await.1.cluster.protection, Protection::Local);
    assert!(object(&two, SAMPLE).await.is_some(), "it was left as it is");
    install(&mut opdev).await;
    assert!(one.asked() > 10, "the first one is worked on again");
    opdev.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn who_does_not_answer_is_explained_and_nothing_is_left_for_it() {
    let (one, two) = (Door::open().await, Door::open().await);
    let folder = tempfile::tempdir().unwrap();
    let path = kubeconfig(folder.path(), &[("opdev", &one.url()), ("gone", &two.url())]);
    let choice = Choice { kubeconfig: Some(path), ..Choice::default() };
    let mut opdev = Opdev::start_against(choice, |_| {}).await;
    install(&mut opdev).await;
    two.kill();
    let gone = SessionRequest::Switch { to: to("gone"), how: OnExit::Uninstall };
    let outcome = opdev.ask(gone.clone()).await;
    let RequestOutcome::Failed { message, hint } = outcome else { panic!("{outcome:?}") };
    assert!(message.contains(&two.url()), "{message}");
    expect!["opdev stays where it is (opdev)"].assert_eq(&hint.unwrap());
    let outcome = opdev.ask(SessionRequest::Switch { to: to("opdv"), how: OnExit::Leave }).await;
    assert!(
        matches!(&outcome, RequestOutcome::Failed { message, .. } if message.contains("did you mean opdev")),
        "{outcome:?}"
    );
    // A cluster that takes its time can be given up.
    two.restart().await;
    let (_go, held) = watch::channel(false);
    two.fault(move |_, _| Some(Answer::Hold(held.clone())));
    let mark = opdev.mark();
    let id = opdev.begin(gone).await;
    opdev
        .wait("the wish", mark, |event| {
            matches!(event, Event::RequestStarted(one) if one.id == id).then_some(())
        })
        .await;
    let again = opdev.ask(SessionRequest::Switch { to: to("opdev"), how: OnExit::Leave }).await;
    assert!(
        matches!(&again, RequestOutcome::Failed { message, .. } if message.contains("is about to switch"))
    );
    opdev.begin(Task::Cancel { id }).await;
    let outcome = opdev.outcome(id, mark).await;
    assert!(matches!(outcome, RequestOutcome::Cancelled { .. }), "{outcome:?}");
    // All the while the first one went on.
    let mark = opdev.mark();
    opdev.edit("charts/memcached/values.yaml", |text| format!("{text}\n# still here\n"));
    opdev.wait("a reload", mark, |event| matches!(event, Event::SourcesChanged(_)).then_some(())).await;
    assert!(object(&one, SAMPLE).await.is_some());
    let starts = opdev.since(0).iter().filter(|event| matches!(event, Event::Started(_))).count();
    assert_eq!(starts, 1);
    opdev.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_embedded_control_plane_is_left_and_keeps_its_objects() {
    let door = Door::open().await;
    let folder = tempfile::tempdir().unwrap();
    let path = kubeconfig(folder.path(), &[("opdev", &door.url())]);
    let choice = Choice { embedded: true, fresh: true, kubeconfig: Some(path), ..Choice::default() };
    let mut opdev = Opdev::start_against(choice, |_| {}).await;
    install(&mut opdev).await;
    let here = opdev.ask(SessionRequest::Switch { to: Destination::Embedded, how: OnExit::Leave }).await;
    assert!(matches!(here, RequestOutcome::Failed { .. }), "{here:?}");
    let own = opdev.kubeconfig();
    assert!(own.exists());
    let mark = opdev.mark();
    opdev.ask(SessionRequest::Switch { to: to("opdev"), how: OnExit::Leave }).await;
    assert!(!own.exists(), "it leads nowhere now");
    started(&opdev, mark).await;
    install(&mut opdev).await;
    let mark = opdev.mark();
    opdev.ask(SessionRequest::Switch { to: Destination::Embedded, how: OnExit::Leave }).await;
    assert!(started(&opdev, mark).await.1.cluster.embedded && own.exists());
    opdev
        .wait("the object of before", mark, |event| {
            matches!(event, Event::ObjectSeen(seen) if seen.object_ref.name == "memcached-sample")
                .then_some(())
        })
        .await;
    // A wish to stop is one, wherever it comes.
    opdev.begin(SessionRequest::Quit { by: Asker::User }).await;
    opdev.ended().await;
}
