//! An operator in Python, written with kopf: it is told nothing of opdev, and tells its reconciles all the
//! same.

use crate::inner_loop::Opdev;
use crate::oracle::oracle;
use expect_test::expect;
use kube::api::{Api, DynamicObject, Patch, PatchParams, PostParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::core::{ApiResource, GroupVersionKind};
use kube::{Client, Config};
use opdev_cluster::Choice;
use opdev_event::{
    Cause, CauseKind, Event, OperatorTask, ProcessState, Reconcile, Relation, RequestOutcome, TraceLevel,
    WatchEvent,
};
use serde_json::{Value, json};
use std::sync::Arc;

const CRD: &str = "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\n\
    metadata: {name: notes.demo.dev}\nspec:\n  group: demo.dev\n  scope: Namespaced\n\
    \x20 names: {kind: Note, plural: notes, singular: note, listKind: NoteList}\n  versions:\n  - name: v1\n    served: true\n    storage: true\n\
    \x20   schema:\n      openAPIV3Schema:\n        type: object\n        properties:\n\
    \x20         spec: {type: object, x-kubernetes-preserve-unknown-fields: true}\n          status: {type: object, x-kubernetes-preserve-unknown-fields: true}\n";

const OPERATOR: &str = r#"
import kopf
import kubernetes

KIND = ("demo.dev", "v1", "notes")


@kopf.on.startup()
def begin(**_):
    kubernetes.config.load_kube_config()


@kopf.on.create(*KIND)
@kopf.on.update(*KIND)
def write(spec, name, namespace, body, retry, patch, logger, **_):
    if retry < spec.get("fails", 0):
        raise kopf.TemporaryError("no luck yet", delay=0.1)
    api = kubernetes.client.CoreV1Api()
    have = {one.metadata.name for one in api.list_namespaced_config_map(namespace).items}
    for copy in range(spec["copies"]):
        part = {"metadata": {"name": f"{name}-{copy}"}}
        kopf.adopt(part, owner=body)
        if part["metadata"]["name"] not in have:
            api.create_namespaced_config_map(namespace, part)
    patch.status["copies"] = spec["copies"]
    logger.info("all copies are there")


@kopf.timer(*KIND, interval=0.2, when=lambda spec, **_: spec.get("ticks", False))
def tick(namespace, **_):
    kubernetes.client.CoreV1Api().list_namespaced_config_map(namespace)
"#;

async fn start() -> Opdev {
    let kopf = oracle("kopf/bin/kopf");
    let embedded = Choice { embedded: true, ..Choice::default() };
    Opdev::start_against(embedded, |root| {
        let command = json!([kopf, "run", "--all-namespaces", "--standalone", "operator.py"]);
        let settings = format!("operator:\n  command: {command}\n  stopAfter: 2s\n");
        std::fs::write(root.join("opdev.yaml"), settings).unwrap();
        std::fs::write(root.join("operator.py"), OPERATOR).unwrap();
        std::fs::create_dir_all(root.join("config/crd/bases")).unwrap();
        std::fs::write(root.join("config/crd/bases/notes.yaml"), CRD).unwrap();
    })
    .await
}

async fn notes(opdev: &Opdev) -> Api<DynamicObject> {
    let kubeconfig = Kubeconfig::read_from(opdev.root.join(".opdev/kubeconfig")).unwrap();
    let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await.unwrap();
    let kind = ApiResource::from_gvk(&GroupVersionKind::gvk("demo.dev", "v1", "Note"));
    Api::default_namespaced_with(Client::try_from(config).unwrap(), &kind)
}

/// The next reconcile of which this is true.
async fn reconcile(
    opdev: &Opdev,
    what: &str,
    mark: usize,
    pick: impl Fn(&Reconcile) -> bool,
) -> Arc<Reconcile> {
    opdev
        .wait(what, mark, |event| match event {
            Event::Reconciled(reconcile) if reconcile.object.gvk.kind == "Note" && pick(reconcile) => {
                Some(Arc::clone(reconcile))
            }
            _ => None,
        })
        .await
}

fn calls(reconcile: &Reconcile) -> Vec<String> {
    reconcile.calls.iter().map(|call| format!("{} {}", call.verb, call.target)).collect()
}

fn fields_of(cause: &Cause) -> Vec<String> {
    match &cause.kind {
        CauseKind::Watch { fields, relation: Relation::Primary, .. } => {
            fields.iter().map(|change| change.path.clone()).collect()
        }
        _ => Vec::new(),
    }
}

#[cfg_attr(not(oracles), ignore = "needs OPDEV_ORACLES")]
#[tokio::test(flavor = "multi_thread")]
async fn an_operator_of_kopf_tells_why_it_ran_and_what_it_called() {
    let mut opdev = start().await;
    let notes = notes(&opdev).await;
    let create = async |name: &str, spec: Value| {
        let note =
            json!({"apiVersion": "demo.dev/v1", "kind": "Note", "metadata": {"name": name}, "spec": spec});
        notes.create(&PostParams::default(), &serde_json::from_value(note).unwrap()).await.unwrap();
    };
    // An object that is there already when its watch begins has the start as its cause.
    create("early", json!({"copies": 0})).await;
    // A note that another run of the program has handled: this one lists it and leaves it alone.
    let handled = json!({"apiVersion": "demo.dev/v1", "kind": "Note", "spec": {"copies": 0}, "metadata": {"name": "handled",
        "annotations": {"kopf.zalando.org/last-handled-configuration": "{\"spec\":{\"copies\":0}}\n"}}});
    notes.create(&PostParams::default(), &serde_json::from_value(handled).unwrap()).await.unwrap();
    // The program tells of itself with its first reconcile.
    opdev
        .wait("the level", 0, |event| match event {
            Event::ProcessChanged(run) if matches!(run.state, ProcessState::Running { .. }) => {
                run.traced.filter(|level| *level == TraceLevel::Full)
            }
            _ => None,
        })
        .await;
    reconcile(&opdev, "the first pass", 0, |reconcile| reconcile.object.name == "early").await;
    let mark = opdev.mark();
    create("hello", json!({"copies": 2})).await;
    let first = reconcile(&opdev, "the pass of a new object", mark, |reconcile| {
        calls(reconcile).contains(&"create configmaps".to_owned())
    })
    .await;
    assert_eq!(
        calls(&first),
        ["list configmaps", "create configmaps", "create configmaps", "patch notes/hello"],
        "{first:?}"
    );
    let told = first.process.as_ref().unwrap();
    assert_eq!((told.traced, told.controller.as_str()), (TraceLevel::Full, "notes.demo.dev"));
    assert!(told.guessed_calls.is_empty(), "{told:?}");
    assert!(
        matches!(&first.causes[0].kind, CauseKind::Watch { object, event: WatchEvent::Added, .. } if object.name == "hello"),
        "{:?}",
        first.causes
    );
    opdev
        .wait("its line", mark, |event| match event {
            Event::Log(line) if line.message.contains("all copies are there") => line.reconcile,
            _ => None,
        })
        .await;

    // A change is told with its fields.
    let mark = opdev.mark();
    let wider = Patch::Merge(json!({"spec": {"copies": 3}}));
    notes.patch("hello", &PatchParams::default(), &wider).await.unwrap();
    let second = reconcile(&opdev, "the pass of a change", mark, |reconcile| {
        calls(reconcile).contains(&"create configmaps".to_owned())
    })
    .await;
    assert_eq!(fields_of(&second.causes[0]), [".spec.copies"], "{:?}", second.causes);
    let mark = opdev.mark();
    let wider = Patch::Merge(json!({"spec": {"copies": 1}}));
    notes.patch("handled", &PatchParams::default(), &wider).await.unwrap();
    let first = reconcile(&opdev, "the first pass of an older object", mark, |reconcile| {
        reconcile.object.name == "handled"
    })
    .await;
    assert_eq!(fields_of(&first.causes[0]), [".spec.copies"], "{:?}", first.causes);

    // A failed reconcile has its error, and the next try is numbered.
    let mark = opdev.mark();
    create("unlucky", json!({"copies": 1, "fails": 1})).await;
    let failed = reconcile(&opdev, "a failure", mark, |reconcile| reconcile.failure.is_some()).await;
    expect!["TemporaryError: no luck yet"].assert_eq(&failed.failure.as_ref().unwrap().chain[0]);
    let again = reconcile(&opdev, "another try", mark, |reconcile| {
        reconcile.causes.iter().any(|cause| matches!(&cause.kind, CauseKind::Retry { attempt: 1, .. }))
    })
    .await;
    assert_eq!(again.object.name, "unlucky");

    // A timer has reconciles of its own.
    let mark = opdev.mark();
    create("ticking", json!({"copies": 0, "ticks": true})).await;
    reconcile(&opdev, "a tick", mark, |reconcile| {
        reconcile.object.name == "ticking"
            && calls(reconcile) == ["list configmaps"]
            && reconcile.causes.iter().any(|cause| matches!(&cause.kind, CauseKind::Wait { .. }))
    })
    .await;

    // kopf has no queue into which an object could be put.
    let asked = opdev.ask(OperatorTask::Reconcile { object: first.object.clone() }).await;
    assert!(
        matches!(&asked, RequestOutcome::Failed { message, .. } if message.contains("cannot be asked for one reconcile")),
        "{asked:?}"
    );
    opdev.stop().await;
}
