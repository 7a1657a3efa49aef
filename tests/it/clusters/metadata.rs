//! Lists of metadata: what is big and says little is read whole only while somebody looks at it, and
//! everything that needs the whole of an object still gets it.

use super::door::Door;
use crate::inner_loop::Opdev;
use opdev_event::{
    Body, DraftStage, DraftTask, Event, ObjectSeen, ObjectTask, Outcome, Propagation, RequestOutcome, Task,
    ViewRequest,
};
use opdev_object::meta::{Gvk, ObjectRef};
use opdev_state::State;
use serde_json::{Value, json};

const MAPS: &str = "/api/v1/namespaces/default/configmaps";

async fn send(door: &Door, method: &str, path: &str, body: &Value) {
    let kind = if method == "PATCH" { "application/merge-patch+json" } else { "application/json" };
    let request = http::Request::builder().method(method).uri(path).header("content-type", kind);
    let request = request.body(serde_json::to_vec(body).unwrap()).unwrap();
    door.plane.client().request::<Value>(request).await.unwrap();
}

fn settings() -> ObjectRef {
    let (namespace, name) = (Some("default".to_owned()), "settings".to_owned());
    ObjectRef { gvk: Gvk::new("", "v1", "ConfigMap"), namespace, name, uid: None }
}

/// The newest of this object that was seen since a mark, once `is` says so.
async fn seen(opdev: &Opdev, mark: usize, what: &str, kind: &str, is: impl Fn(&ObjectSeen) -> bool) -> Body {
    opdev
        .wait(what, mark, |event| match event {
            Event::ObjectSeen(seen) if seen.object_ref.gvk.kind == kind && is(seen) => {
                Some(seen.object.clone())
            }
            _ => None,
        })
        .await
}

/// Waits for the key of an object that belongs to no custom resource.
async fn unrelated(opdev: &Opdev, mark: usize, kind: &str, name: &str) {
    opdev
        .wait(&format!("the key of {kind} {name}"), mark, |event| match event {
            Event::UnrelatedSeen(seen) if seen.gvk.kind == kind => {
                seen.objects.iter().any(|object| object.name == name).then_some(())
            }
            _ => None,
        })
        .await;
}

/// A cluster with a big ConfigMap and a Secret, and an opdev that may write to it.
async fn world() -> (Door, Opdev, tempfile::TempDir) {
    let door = Door::open().await;
    let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "settings", "labels": {"app": "a"},
        "annotations": {"operator-sdk/primary-resource-type": "Memcached.cache.my.domain",
            "operator-sdk/primary-resource": "default/later"}},
        "data": {"big": "deep-below ".repeat(10_000), "small": "1"}});
    send(&door, "POST", MAPS, &map).await;
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "login"},
        "data": {"user": "amFuZQ==", "password": "aHVudGVyMg=="}});
    send(&door, "POST", "/api/v1/namespaces/default/secrets", &secret).await;
    let folder = tempfile::tempdir().unwrap();
    let opdev = Opdev::start_against(door.choice(folder.path(), "opdev", &json!({})), |_| {}).await;
    seen(&opdev, 0, "the ConfigMap", "ConfigMap", |seen| seen.object_ref.name == "settings").await;
    unrelated(&opdev, 0, "Secret", "login").await;
    (door, opdev, folder)
}

fn is_settings(seen: &ObjectSeen) -> bool {
    seen.object_ref.name == "settings"
}

#[tokio::test(flavor = "multi_thread")]
async fn an_object_is_read_whole_while_it_is_looked_at() {
    let (door, mut opdev, _folder) = world().await;
    // ConfigMaps are watched whole, too, by a reconciler of the demo that owns some; nobody but the panes
    // wants these.
    let asked = door.until_accepted("/networkpolicies?").await;
    let of = |what: &str| -> Vec<_> { asked.iter().filter(|(path, _)| path.contains(what)).collect() };
    let policies = of("/networkpolicies?");
    assert!(policies.iter().all(|(_, form)| form.contains("as=PartialObjectMetadata")), "{policies:?}");
    assert!(of("/configmaps?").iter().any(|(_, form)| form.contains("as=PartialObjectMetadataList")));
    // The panes', for a reconciler of the demo owns some, too.
    let pods: Vec<_> = of("/pods?").into_iter().filter(|(path, _)| !path.contains("?&")).collect();
    assert!(
        pods.iter().all(|(_, form)| form.contains("PartialObjectMetadata")),
        "without a custom resource nobody looks at pods: {pods:?}"
    );
    let mut state = State::default();
    for event in opdev.since(0) {
        let line = event.line().unwrap();
        assert!(!line.contains("deep-below") && !line.contains("aHVudGVyMg"), "{line}");
        state.reduce(event);
    }
    let row =
        |state: &State, object: &ObjectRef| state.objects.get(&object.key()).unwrap().health.word.clone();
    assert_eq!(row(&state, &settings()), "2 keys", "told by who manages them");
    assert!(state.versions(&settings().key()).is_none(), "of metadata no versions are kept");

    let whole = |seen: &ObjectSeen| is_settings(seen) && !seen.metadata_only;
    let mark = opdev.mark();
    opdev.begin(ViewRequest::Look { object: Some(settings()) }).await;
    let object = seen(&opdev, mark, "all of it", "ConfigMap", whole).await;
    assert!(object["data"]["big"].as_str().unwrap().starts_with("deep-below"));
    assert_eq!((&object["kind"], &object["apiVersion"]), (&json!("ConfigMap"), &json!("v1")));

    let mark = opdev.mark();
    send(&door, "PATCH", &format!("{MAPS}/settings"), &json!({"data": {"small": "2"}})).await;
    let object = seen(&opdev, mark, "the change of it", "ConfigMap", is_settings).await;
    assert_eq!(object["data"]["small"], "2", "kept current");
    opdev.since(0).into_iter().for_each(|event| state.reduce(event));
    assert_eq!(state.versions(&settings().key()).unwrap().count(), 2, "versions of what was read whole");

    opdev.begin(ViewRequest::Look { object: None }).await;
    // A request that is answered came after it.
    opdev.ask(Task::Cancel { id: u64::MAX }).await;
    let mark = opdev.mark();
    send(&door, "PATCH", &format!("{MAPS}/settings"), &json!({"data": {"small": "3"}})).await;
    let object = seen(&opdev, mark, "a change nobody looks at", "ConfigMap", is_settings).await;
    assert!(object.get("data").is_none(), "{object:?}");
    opdev.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_deleted_while_its_metadata_alone_was_known_comes_back_whole() {
    let (door, mut opdev, _folder) = world().await;
    let mark = opdev.mark();
    let outcome = opdev
        .ask(ObjectTask::Delete { object: settings(), propagation: Propagation::Background, grace: None })
        .await;
    assert!(matches!(outcome, RequestOutcome::Done { .. }), "{outcome:?}");
    let gone = |event: &Event| matches!(event, Event::ObjectGone(gone) if gone.object_ref.name == "settings");
    opdev.wait("its end", mark, |event| gone(event).then_some(())).await;
    let entry = opdev
        .wait("something to undo", mark, |event| match event {
            Event::UndoChanged { entries } => entries.first().map(|entry| entry.id),
            _ => None,
        })
        .await;
    let mark = opdev.mark();
    opdev.begin(DraftTask::Undo { entry }).await;
    let draft = opdev
        .wait("what undoing would write", mark, |event| match event {
            Event::DraftChanged(draft) if matches!(draft.stage, DraftStage::Review(_)) => Some(draft.id),
            _ => None,
        })
        .await;
    let outcome = opdev.ask(DraftTask::Write { draft }).await;
    assert!(matches!(outcome, RequestOutcome::Done { .. }), "{outcome:?}");
    let request = http::Request::get(format!("{MAPS}/settings")).body(Vec::new()).unwrap();
    let live: Value = door.plane.client().request(request).await.unwrap();
    assert!(live["data"]["big"].as_str().unwrap().starts_with("deep-below"), "{live}");
    opdev.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_reconcile_creates_is_shown_whole_and_its_record_is_not_read() {
    let (_door, mut opdev, _folder) = world().await;
    // An object that is there when its kind is listed first was not made by a reconcile.
    unrelated(&opdev, 0, "ServiceAccount", "default").await;
    let mark = opdev.mark();
    opdev.ask(ObjectTask::Apply { path: "samples/memcached.yaml".to_owned() }).await;
    opdev.reconcile("an install", mark, |reconcile| reconcile.outcome == Outcome::Installed).await;
    let account = seen(&opdev, mark, "the account", "ServiceAccount", |seen| {
        seen.object_ref.name == "memcached-sample" && !seen.metadata_only
    });
    assert!(account.await.get("automountServiceAccountToken").is_some());
    let record = |seen: &ObjectSeen| seen.object_ref.name.starts_with("sh.helm.release.v1.memcached-sample");
    seen(&opdev, mark, "the record", "Secret", record).await;
    let mut state = State::default();
    for event in opdev.since(0) {
        if let Event::ObjectSeen(seen) = &event
            && record(seen)
        {
            assert!(seen.metadata_only && seen.object.get("data").is_none(), "{:?}", seen.object);
        }
        state.reduce(event);
    }
    let root = state.objects.custom().find(|seen| seen.key.name == "memcached-sample").unwrap();
    let tree = opdev_state::tree::owned(&state, &root.key);
    let record = tree.iter().find(|node| node.seen.key.kind == "Secret").unwrap();
    assert!(
        ["deployed", "pending-install"].contains(&record.seen.health.word.as_str()),
        "{:?}",
        record.seen.health
    );
    opdev.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn of_unrelated_objects_the_keys_are_told_until_they_belong_to_the_project() {
    const PODS: &str = "/api/v1/namespaces/default/pods";
    let (door, mut opdev, _folder) = world().await;
    let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "lonely"}, "spec": {"containers": [
        {"name": "a", "image": "deep-below", "env": [{"name": "A", "value": "b"}]}]}});
    send(&door, "POST", PODS, &pod).await;
    unrelated(&opdev, 0, "Pod", "lonely").await;
    let mark = opdev.mark();
    opdev.ask(ObjectTask::Apply { path: "samples/memcached.yaml".to_owned() }).await;
    opdev.reconcile("an install", mark, |reconcile| reconcile.outcome == Outcome::Installed).await;
    // A pod of the project, through a Deployment and a ReplicaSet, that is ready.
    seen(&opdev, mark, "a pod of the project", "Pod", |seen| {
        !seen.metadata_only && seen.object["status"]["phase"] == "Running"
    })
    .await;
    let asked = door.until_accepted("/pods?").await;
    let whole = |(path, form): &(String, String)| path.contains("/pods?watch") && !form.contains("as=");
    assert!(asked.iter().any(whole), "{asked:?}");

    // The outcome for the unrelated object is not told; what happens to one that is looked at is.
    let mark = opdev.mark();
    let lonely = ObjectRef {
        gvk: Gvk::new("", "v1", "Pod"),
        namespace: Some("default".to_owned()),
        name: "lonely".to_owned(),
        uid: None,
    };
    let is_lonely = |seen: &ObjectSeen| seen.object_ref.name == "lonely";
    opdev.begin(ViewRequest::Look { object: Some(lonely.clone()) }).await;
    let object = seen(&opdev, mark, "all of it", "Pod", is_lonely).await;
    assert_eq!(object["spec"]["containers"][0]["image"], "deep-below");
    let mark = opdev.mark();
    send(&door, "PATCH", &format!("{PODS}/lonely"), &json!({"metadata": {"labels": {"a": "1"}}})).await;
    let labelled = |seen: &ObjectSeen| is_lonely(seen) && seen.object["metadata"]["labels"]["a"] == "1";
    seen(&opdev, mark, "its change", "Pod", labelled).await;
    let mark = opdev.mark();
    opdev.begin(ViewRequest::Look { object: None }).await;
    unrelated(&opdev, mark, "Pod", "lonely").await;
    let mark = opdev.mark();
    send(&door, "PATCH", &format!("{PODS}/lonely"), &json!({"metadata": {"labels": {"a": "2"}}})).await;
    // Changes of one kind are told in order.
    let account = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "last"},
        "spec": {"containers": [{"name": "a", "image": "b"}]}});
    send(&door, "POST", PODS, &account).await;
    unrelated(&opdev, mark, "Pod", "last").await;
    let told = |event: &Event| matches!(event, Event::ObjectSeen(seen) if is_lonely(seen));
    assert!(!opdev.since(mark).iter().any(told), "nothing but its key is told");

    // It comes to belong to the project, and is told; deleted, it is gone.
    let memcached = "/apis/cache.my.domain/v1alpha1/namespaces/default/memcacheds/memcached-sample";
    let request = http::Request::get(memcached).body(Vec::new()).unwrap();
    let owner: Value = door.plane.client().request(request).await.unwrap();
    let reference = json!([{"apiVersion": owner["apiVersion"], "kind": owner["kind"],
        "name": owner["metadata"]["name"], "uid": owner["metadata"]["uid"]}]);
    send(&door, "PATCH", &format!("{PODS}/lonely"), &json!({"metadata": {"ownerReferences": reference}}))
        .await;
    seen(&opdev, mark, "that it belongs to the project", "Pod", is_lonely).await;
    let mut state = State::default();
    opdev.since(0).into_iter().for_each(|event| state.reduce(event));
    assert!(state.objects.is_unrelated(&ObjectRef { name: "last".to_owned(), ..lonely.clone() }.key()));
    assert!(state.objects.get(&lonely.key()).is_some_and(|seen| !seen.metadata_only));
    opdev.stop().await;
}
