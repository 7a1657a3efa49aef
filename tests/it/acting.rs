//! The user's requests against the embedded control plane: texts from the editor, dry runs, conflicts, undo.
//! The editor is the test itself: it finds the draft's file in an event, and says when it is done.

use crate::inner_loop::Opdev;
use expect_test::expect;
use kube::api::{Api, ApiResource, DynamicObject, Patch, PatchParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::core::GroupVersionKind;
use opdev_event::{
    Action, DraftId, DraftStage, DraftTask, Event, NewFrom, ObjectTask, Outcome, Propagation, RequestOutcome,
    Review, Undoable,
};
use opdev_object::meta::{Gvk, ObjectRef};
use serde_json::{Value, json};
use std::fs;
use std::path::PathBuf;

fn config_map(name: &str) -> ObjectRef {
    reference("", "v1", "ConfigMap", name)
}

fn reference(group: &str, version: &str, kind: &str, name: &str) -> ObjectRef {
    ObjectRef {
        gvk: Gvk::new(group, version, kind),
        namespace: Some("default".to_owned()),
        name: name.to_owned(),
        uid: None,
    }
}

fn memcached(name: &str) -> ObjectRef {
    reference("cache.my.domain", "v1alpha1", "Memcached", name)
}

/// The draft that is open, and how far it is, once `is` says so.
async fn stage<T>(
    opdev: &Opdev,
    mark: usize,
    what: &str,
    is: impl Fn(&DraftStage) -> Option<T>,
) -> (DraftId, T) {
    opdev
        .wait(what, mark, |event| match event {
            Event::DraftChanged(draft) => is(&draft.stage).map(|found| (draft.id, found)),
            _ => None,
        })
        .await
}

async fn editing(opdev: &Opdev, mark: usize) -> (DraftId, PathBuf) {
    stage(opdev, mark, "an editor", |stage| match stage {
        DraftStage::Editing { path, .. } => Some(PathBuf::from(path)),
        DraftStage::Review(_) | DraftStage::Closed => None,
    })
    .await
}

async fn review(opdev: &Opdev, mark: usize) -> (DraftId, Review) {
    stage(opdev, mark, "a review", |stage| match stage {
        DraftStage::Review(review) => Some(review.clone()),
        DraftStage::Editing { .. } | DraftStage::Closed => None,
    })
    .await
}

fn done(outcome: &RequestOutcome) -> String {
    match outcome {
        RequestOutcome::Done { summary, .. } => summary.clone(),
        other => panic!("{other:?}"),
    }
}

fn failed(outcome: &RequestOutcome) -> String {
    match outcome {
        RequestOutcome::Failed { message, .. } => message.clone(),
        other => panic!("{other:?}"),
    }
}

/// An object as the API server has it.
async fn api(opdev: &Opdev, object: &ObjectRef) -> Api<DynamicObject> {
    let kubeconfig = Kubeconfig::read_from(opdev.kubeconfig()).unwrap();
    let config =
        kube::Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await.unwrap();
    let client = kube::Client::try_from(config).unwrap();
    let gvk = &object.gvk;
    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(&gvk.group, &gvk.version, &gvk.kind));
    Api::namespaced_with(client, "default", &resource)
}

async fn get(opdev: &Opdev, object: &ObjectRef) -> Option<Value> {
    let found = api(opdev, object).await.get_opt(&object.name).await.unwrap();
    found.map(|object| serde_json::to_value(object).unwrap())
}

fn change(path: &PathBuf, from: &str, to: &str) {
    let text = fs::read_to_string(path).unwrap();
    assert!(text.contains(from), "{from:?} is not in:\n{text}");
    fs::write(path, text.replace(from, to)).unwrap();
}

async fn apply_text(opdev: &mut Opdev, name: &str, text: &str) -> RequestOutcome {
    fs::write(opdev.root.join(name), text).unwrap();
    opdev.ask(ObjectTask::Apply { path: name.to_owned() }).await
}

const MAP: &str = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: plain\ndata:\n  a: one\n  b: two\n";

fn undo_list(opdev: &Opdev) -> Vec<Undoable> {
    let last = opdev.since(0).into_iter().rev().find_map(|event| match event {
        Event::UndoChanged { entries } => Some(entries),
        _ => None,
    });
    last.unwrap_or_default()
}

/// Undoes the newest deed: what the dialog shows, and what is said in the end.
async fn undo(opdev: &mut Opdev) -> (Review, String) {
    let entry = undo_list(opdev)[0].id;
    undo_entry(opdev, entry).await
}

async fn undo_entry(opdev: &mut Opdev, entry: u64) -> (Review, String) {
    let mark = opdev.mark();
    done(&opdev.ask(DraftTask::Undo { entry }).await);
    let (draft, shown) = review(opdev, mark).await;
    let said = done(&opdev.ask(DraftTask::Write { draft }).await);
    (shown, said)
}

#[tokio::test(flavor = "multi_thread")]
async fn an_apply_before_the_first_sources_waits_for_its_kind() {
    let mut opdev = Opdev::launched();
    let said = opdev.ask(ObjectTask::Apply { path: "samples/memcached.yaml".to_owned() }).await;
    assert!(matches!(said, RequestOutcome::Done { .. }), "{said:?}");
    opdev.reconcile("an install", 0, |reconcile| reconcile.outcome == Outcome::Installed).await;
    opdev.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_edit_is_tried_shown_written_and_undone() {
    let mut opdev = Opdev::start().await;
    done(&apply_text(&mut opdev, "map.yaml", MAP).await);
    let mark = opdev.mark();
    done(&opdev.ask(DraftTask::Edit { object: config_map("plain") }).await);
    let (draft, file) = editing(&opdev, mark).await;
    let text = fs::read_to_string(&file).unwrap();
    assert!(
        text.contains("# opdev: edit ConfigMap default/plain") && !text.contains("managedFields"),
        "{text}"
    );

    // An error: the file opens again, with the line.
    change(&file, "a: one", "a: [one]");
    let mark = opdev.mark();
    let said = done(&opdev.ask(DraftTask::Edited { draft, problem: None }).await);
    expect!["1 error: the editor opens again"].assert_eq(&said);
    let (_, again) = editing(&opdev, mark).await;
    assert_eq!(again, file);
    let text = fs::read_to_string(&file).unwrap();
    expect![[r#"
        # opdev: NOT WRITTEN, because:
        #   patch: json: cannot unmarshal array into Go struct field ConfigMap.data of type string
        # Correct it and save; close it as it is, or empty it, and nothing is written.
        #---
        apiVersion: v1
        data:
          a: [one]
          b: two
        kind: ConfigMap
        metadata:
          name: plain
          namespace: default
    "#]]
    .assert_eq(&text);

    change(&file, "a: [one]", "a: three");
    let mark = opdev.mark();
    done(&opdev.ask(DraftTask::Edited { draft, problem: None }).await);
    let (_, shown) = review(&opdev, mark).await;
    assert_eq!(shown.changes.len(), 1);
    let paths: Vec<String> = shown.changes[0].changes.iter().map(|c| c.path.to_string()).collect();
    assert_eq!((shown.changes[0].action, paths), (Action::Updated, vec![".data.a".to_owned()]));
    assert_eq!(get(&opdev, &config_map("plain")).await.unwrap()["data"]["a"], "one", "it was a dry run");
    let said = done(&opdev.ask(DraftTask::Write { draft }).await);
    expect!["ConfigMap default/plain changed"].assert_eq(&said);
    assert_eq!(get(&opdev, &config_map("plain")).await.unwrap()["data"]["a"], "three");
    assert!(!file.exists(), "the file has gone with its draft");

    let (shown, _) = undo(&mut opdev).await;
    assert_eq!(shown.changes[0].changes[0].path.to_string(), ".data.a");
    assert_eq!(get(&opdev, &config_map("plain")).await.unwrap()["data"]["a"], "one");
    opdev.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_edit_goes_on_top_of_what_others_changed_meanwhile() {
    let mut opdev = Opdev::start().await;
    done(&apply_text(&mut opdev, "map.yaml", MAP).await);
    let mark = opdev.mark();
    done(&opdev.ask(DraftTask::Edit { object: config_map("plain") }).await);
    let (draft, file) = editing(&opdev, mark).await;
    change(&file, "a: one", "a: mine");
    done(&apply_text(&mut opdev, "map.yaml", &MAP.replace("two", "theirs")).await);
    let mark = opdev.mark();
    done(&opdev.ask(DraftTask::Edited { draft, problem: None }).await);
    let (_, shown) = review(&opdev, mark).await;
    assert!(shown.notes.iter().any(|note| note.contains(".data.b")), "{shown:?}");

    // Once more in the editor: both are in the text.
    let mark = opdev.mark();
    done(&opdev.ask(DraftTask::Reopen { draft }).await);
    let (_, file) = editing(&opdev, mark).await;
    let text = fs::read_to_string(&file).unwrap();
    expect![[r#"
        # opdev: edit ConfigMap default/plain
        # Save and close: you see what the API server makes of it before anything is written.
        # Close it unchanged, or empty it, and nothing happens.
        #---
        apiVersion: v1
        data:
          a: mine
          b: theirs
        kind: ConfigMap
        metadata:
          name: plain
          namespace: default
    "#]]
    .assert_eq(&text);
    let mark = opdev.mark();
    done(&opdev.ask(DraftTask::Edited { draft, problem: None }).await);
    review(&opdev, mark).await;

    // Somebody is faster than the last key: nothing is written, and the change is shown anew.
    done(&apply_text(&mut opdev, "map.yaml", &MAP.replace("two", "faster")).await);
    let mark = opdev.mark();
    let refused = failed(&opdev.ask(DraftTask::Write { draft }).await);
    expect!["somebody was faster: look at the change once more"].assert_eq(&refused);
    review(&opdev, mark).await;
    done(&opdev.ask(DraftTask::Write { draft }).await);
    let data = get(&opdev, &config_map("plain")).await.unwrap()["data"].clone();
    assert_eq!(data, json!({"a": "mine", "b": "faster"}));
    opdev.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_status_that_is_written_meanwhile_is_in_nobodys_way() {
    let mut opdev = Opdev::start().await;
    let mark = opdev.mark();
    done(&opdev.ask(ObjectTask::Apply { path: "samples/memcached.yaml".to_owned() }).await);
    let installed = |reconcile: &opdev_event::Reconcile| reconcile.outcome == Outcome::Installed;
    opdev.reconcile("an installed memcached", mark, installed).await;
    let object = memcached("memcached-sample");
    done(&opdev.ask(ObjectTask::Scale { object: object.clone(), replicas: 5 }).await);
    let mark = opdev.mark();
    let entry = undo_list(&opdev)[0].id;
    done(&opdev.ask(DraftTask::Undo { entry }).await);
    let (draft, _) = review(&opdev, mark).await;
    let version = |object: Value| object["metadata"]["resourceVersion"].clone();
    let before = version(get(&opdev, &object).await.unwrap());
    let status = Patch::Merge(json!({"status": {"note": "from a controller"}}));
    let objects = api(&opdev, &object).await;
    objects.patch_status("memcached-sample", &PatchParams::default(), &status).await.unwrap();
    assert_ne!(version(get(&opdev, &object).await.unwrap()), before);
    done(&opdev.ask(DraftTask::Write { draft }).await);
    assert_eq!(get(&opdev, &object).await.unwrap()["spec"]["replicaCount"], 3);
    opdev.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_written_of_a_text_that_is_unchanged_emptied_or_refused_by_its_editor() {
    let mut opdev = Opdev::start().await;
    done(&apply_text(&mut opdev, "map.yaml", MAP).await);
    for (what, empty, problem) in [
        ("nothing was changed", false, None),
        ("emptied", true, None),
        ("ended with", false, Some("the editor vi ended with exit status: 1".to_owned())),
    ] {
        let mark = opdev.mark();
        done(&opdev.ask(DraftTask::Edit { object: config_map("plain") }).await);
        let (draft, file) = editing(&opdev, mark).await;
        if empty {
            fs::write(&file, "# nothing\n\n").unwrap();
        }
        let outcome = opdev.ask(DraftTask::Edited { draft, problem }).await;
        let said = match &outcome {
            RequestOutcome::Done { summary, .. } => summary,
            RequestOutcome::Failed { message, .. } | RequestOutcome::Cancelled { message } => message,
        };
        assert!(said.contains(what), "{said}");
        // An editor that was back at once may show it in a window.
        assert_eq!(file.exists(), said.contains("code --wait"), "{said}");
    }
    // Errors that stay: the text is kept.
    let mark = opdev.mark();
    done(&opdev.ask(DraftTask::Edit { object: config_map("plain") }).await);
    let (draft, file) = editing(&opdev, mark).await;
    change(&file, "name: plain", "name: other");
    done(&opdev.ask(DraftTask::Edited { draft, problem: None }).await);
    let said = done(&opdev.ask(DraftTask::Edited { draft, problem: None }).await);
    let kept = said.rsplit_once("kept in ").unwrap_or_else(|| panic!("{said}")).1;
    expect![[r#"
        apiVersion: v1
        data:
          a: one
          b: two
        kind: ConfigMap
        metadata:
          name: other
          namespace: default
    "#]]
    .assert_eq(&fs::read_to_string(opdev.root.join(kept)).unwrap());
    opdev.stop().await;
}

const CANARY: &str = "canary-5f2d";

#[tokio::test(flavor = "multi_thread")]
async fn a_secrets_values_are_in_its_file_only() {
    let mut opdev = Opdev::start().await;
    let text =
        format!("apiVersion: v1\nkind: Secret\nmetadata:\n  name: hidden\nstringData:\n  token: {CANARY}\n");
    done(&apply_text(&mut opdev, "secret.yaml", &text).await);
    let object = reference("", "v1", "Secret", "hidden");
    let mark = opdev.mark();
    done(&opdev.ask(DraftTask::Edit { object: object.clone() }).await);
    let (draft, file) = editing(&opdev, mark).await;
    let text = fs::read_to_string(&file).unwrap();
    let encoded = "Y2FuYXJ5LTVmMmQ="; // the canary in base64
    assert!(text.contains(encoded), "{text}");
    // First a refusal, then a change, then an undo: nothing of it tells the value.
    change(&file, encoded, &format!("\"{CANARY}!\""));
    done(&opdev.ask(DraftTask::Edited { draft, problem: None }).await);
    change(&file, &format!("\"{CANARY}!\""), "Y2FuYXJ5LTVmMmR4");
    let mark = opdev.mark();
    done(&opdev.ask(DraftTask::Edited { draft, problem: None }).await);
    let (_, shown) = review(&opdev, mark).await;
    assert_eq!(shown.changes[0].changes[0].path.to_string(), ".data.token");
    done(&opdev.ask(DraftTask::Write { draft }).await);
    undo(&mut opdev).await;
    assert_eq!(get(&opdev, &object).await.unwrap()["data"]["token"], encoded);
    for event in opdev.since(0) {
        let line = opdev::print::json(&event);
        assert!(!line.contains(CANARY) && !line.contains("Y2FuYXJ5"), "{line}");
    }
    assert!(!file.exists() && !opdev.root.join(".opdev/drafts").exists());
    opdev.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_skeleton_and_a_sample_become_objects() {
    let mut opdev = Opdev::start().await;
    let gvk = Gvk::new("app.example.com", "v1alpha1", "PodSet");
    let kinds = opdev.since(0).into_iter().find_map(|event| match event {
        Event::SourcesChanged(sources) => Some(sources.kinds.clone()),
        _ => None,
    });
    let gvk = kinds.unwrap().into_iter().map(|kind| kind.gvk).find(|known| known.kind == gvk.kind).unwrap();
    let mark = opdev.mark();
    done(&opdev.ask(DraftTask::New { from: NewFrom::Kind { gvk: gvk.clone() } }).await);
    let (draft, file) = editing(&opdev, mark).await;
    let text = fs::read_to_string(&file).unwrap();
    expect![[r#"
        # opdev: new PodSet
        # Save and close: you see what the API server makes of it before anything is written.
        # Empty it, and nothing happens.
        #---
        apiVersion: app.example.com/v1alpha1
        kind: PodSet
        metadata:
          name: podset-sample
          namespace: default
        # PodSetSpec defines the desired state of PodSet.
        # object
        spec:
          # Replicas is the desired number of pods for the PodSet.
          # integer (int32), at least 1, at most 10, default 1
          # replicas: 1
    "#]]
    .assert_eq(&text);
    let mark = opdev.mark();
    done(&opdev.ask(DraftTask::Edited { draft, problem: None }).await);
    let (_, shown) = review(&opdev, mark).await;
    assert_eq!(shown.changes[0].action, Action::Created);
    done(&opdev.ask(DraftTask::Write { draft }).await);
    let made = reference(&gvk.group, &gvk.version, "PodSet", "podset-sample");
    assert!(get(&opdev, &made).await.is_some());
    // Once more: there is one already, and the text says so.
    let mark = opdev.mark();
    done(&opdev.ask(DraftTask::New { from: NewFrom::Kind { gvk } }).await);
    let (draft, file) = editing(&opdev, mark).await;
    done(&opdev.ask(DraftTask::Edited { draft, problem: None }).await);
    assert!(fs::read_to_string(&file).unwrap().contains("already exists"));
    done(&opdev.ask(DraftTask::Discard { draft }).await);
    // A creation is undone by deleting the object, and that is shown.
    let (shown, said) = undo(&mut opdev).await;
    assert_eq!(shown.changes[0].action, Action::Deleted);
    expect!["PodSet default/podset-sample deleted"].assert_eq(&said);

    let mark = opdev.mark();
    let from = NewFrom::Sample { path: "samples/memcached.yaml".to_owned() };
    done(&opdev.ask(DraftTask::New { from }).await);
    let (draft, file) = editing(&opdev, mark).await;
    change(&file, "name: memcached-sample", "name: mine");
    done(&opdev.ask(DraftTask::Edited { draft, problem: None }).await);
    done(&opdev.ask(DraftTask::Write { draft }).await);
    let installed = |reconcile: &opdev_event::Reconcile| {
        reconcile.object.name == "mine" && reconcile.outcome == Outcome::Installed
    };
    opdev.reconcile("an installed memcached", mark, installed).await;
    opdev.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_folder_is_applied_object_by_object_and_refusals_have_lines() {
    let mut opdev = Opdev::start().await;
    let folder = opdev.root.join("many");
    fs::create_dir(&folder).unwrap();
    fs::write(folder.join("a.yaml"), format!("{MAP}---\n{}", MAP.replace("plain", "second"))).unwrap();
    let wrong = "# a comment\napiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: third\ndata:\n  a: [1]\n";
    fs::write(folder.join("b.yaml"), wrong).unwrap();
    fs::write(folder.join("c.yaml"), "kind: [unclosed\n").unwrap();
    fs::write(folder.join("d.yaml"), MAP.replace("plain", "fourth")).unwrap();
    let message = failed(&opdev.ask(ObjectTask::Apply { path: "many".to_owned() }).await);
    expect![[r#"
        many/b.yaml:2: ConfigMap third: failed to create typed patch object (default/third; /v1, Kind=ConfigMap): .data.a: expected string, got &value.valueUnstructured{Value:[]interface {}{1}}
        many/c.yaml:2: error converting YAML to JSON: yaml: line 1: did not find expected ',' or ']'
        done: ConfigMap plain created, ConfigMap second created, ConfigMap fourth created"#]]
    .assert_eq(&message);
    for name in ["plain", "second", "fourth"] {
        assert!(get(&opdev, &config_map(name)).await.is_some(), "{name}");
    }
    assert_eq!(undo_list(&opdev).len(), 1, "one deed, one undo");
    fs::remove_file(folder.join("b.yaml")).unwrap();
    fs::remove_file(folder.join("c.yaml")).unwrap();
    fs::write(folder.join("d.yaml"), MAP.replace("plain", "fourth").replace("two", "2x")).unwrap();
    let said = done(&opdev.ask(ObjectTask::Apply { path: "many".to_owned() }).await);
    expect!["ConfigMap plain unchanged, ConfigMap second unchanged, ConfigMap fourth configured"]
        .assert_eq(&said);
    undo(&mut opdev).await;
    assert_eq!(get(&opdev, &config_map("fourth")).await.unwrap()["data"]["b"], "two");
    // The first deed is still there to be undone: all three go.
    let (shown, _) = undo_of(&mut opdev, "apply many").await;
    assert_eq!(shown.changes.iter().filter(|change| change.action == Action::Deleted).count(), 3);
    assert!(get(&opdev, &config_map("plain")).await.is_none());
    opdev.stop().await;
}

/// Undoes the oldest deed of these words.
async fn undo_of(opdev: &mut Opdev, what: &str) -> (Review, String) {
    let all = undo_list(opdev);
    let entry = all.iter().rev().find(|entry| entry.what == what).unwrap_or_else(|| panic!("{all:?}")).id;
    undo_entry(opdev, entry).await
}

#[tokio::test(flavor = "multi_thread")]
async fn scaling_and_deleting_are_undone_and_what_cannot_be_says_why() {
    let mut opdev = Opdev::start().await;
    let mark = opdev.mark();
    done(&opdev.ask(ObjectTask::Apply { path: "samples/memcached.yaml".to_owned() }).await);
    let of = |name: &'static str, outcome: Outcome| {
        move |reconcile: &opdev_event::Reconcile| {
            reconcile.object.name == name && reconcile.outcome == outcome
        }
    };
    opdev.reconcile("an installed memcached", mark, of("memcached-sample", Outcome::Installed)).await;
    let object = memcached("memcached-sample");
    let before = get(&opdev, &object).await.unwrap();
    let said = done(&opdev.ask(ObjectTask::Scale { object: object.clone(), replicas: 0 }).await);
    expect!["Memcached default/memcached-sample scaled to 0"].assert_eq(&said);
    let live = get(&opdev, &object).await.unwrap();
    assert_eq!(live["spec"]["replicaCount"], 0);
    undo(&mut opdev).await;
    assert_eq!(get(&opdev, &object).await.unwrap()["spec"], before["spec"]);

    // A child's number is put back, and that is said.
    let child = reference("apps", "v1", "Deployment", "memcached-sample");
    let said = done(&opdev.ask(ObjectTask::Scale { object: child, replicas: 7 }).await);
    expect!["Deployment default/memcached-sample scaled to 7; Memcached memcached-sample owns it, and its reconciler puts the number back"]
    .assert_eq(&said);
    // A kind without any number says what to do.
    done(&apply_text(&mut opdev, "map.yaml", MAP).await);
    let refused = failed(&opdev.ask(ObjectTask::Scale { object: config_map("plain"), replicas: 1 }).await);
    expect!["ConfigMap has no scale subresource and no field .spec.replicas, .spec.replicaCount or .spec.size; name its field under `scale` in opdev.yaml, such as `scale: {ConfigMap: .spec.count}`"]
    .assert_eq(&refused);

    let delete = |object| ObjectTask::Delete { object, propagation: Propagation::Background, grace: None };
    let mark = opdev.mark();
    done(&opdev.ask(delete(object.clone())).await);
    let gone = |event: &Event| match event {
        Event::ObjectGone(gone)
            if gone.object_ref.name == "memcached-sample" && gone.object_ref.gvk.kind == "Memcached" =>
        {
            Some(())
        }
        _ => None,
    };
    opdev.wait("the memcached gone", mark, gone).await;
    let mark = opdev.mark();
    let (shown, _) = undo(&mut opdev).await;
    assert_eq!(shown.changes[0].action, Action::Created);
    assert!(shown.notes.iter().any(|note| note.contains("uid")), "{shown:?}");
    opdev.reconcile("installed anew", mark, of("memcached-sample", Outcome::Installed)).await;

    // Finalizers that were removed do not come back.
    let stuck = MAP.replace("name: plain", "name: stuck\n  finalizers: [example.com/hold]");
    done(&apply_text(&mut opdev, "stuck.yaml", &stuck).await);
    let said = done(&opdev.ask(delete(config_map("stuck"))).await);
    expect!["ConfigMap default/stuck deleted; it goes once its finalizer example.com/hold is removed"]
        .assert_eq(&said);
    let object = config_map("stuck");
    let finalizers = vec!["example.com/hold".to_owned()];
    done(&opdev.ask(ObjectTask::DropFinalizers { object: object.clone(), finalizers }).await);
    assert!(get(&opdev, &object).await.is_none());
    let newest = undo_list(&opdev).remove(0);
    assert!(newest.why_not.as_deref().is_some_and(|why| why.contains("stays")), "{newest:?}");
    let refused = failed(&opdev.ask(DraftTask::Undo { entry: newest.id }).await);
    expect!["this cannot be undone: remove the finalizers of ConfigMap default/stuck; the object goes without them, and what they were to clean up stays"]
    .assert_eq(&refused);
    opdev.stop().await;
}
