//! An operator in any language, which tells nothing of its reconciles: its calls and watches alone make
//! passes. The test itself is the program, with the kubeconfig that opdev gives it.

use crate::inner_loop::Opdev;
use futures::StreamExt as _;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, DynamicObject, Patch, PatchParams, PostParams, WatchEvent, WatchParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::core::{ApiResource, GroupVersionKind};
use kube::{Client, Config};
use opdev_cluster::Choice;
use opdev_event::{CauseKind, Event, Outcome, ProcessState, Reconcile, TraceLevel};
use serde_json::json;
use std::path::Path;
use std::sync::Arc;

const CRD: &str = "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\n\
    metadata: {name: notes.demo.dev}\nspec:\n  group: demo.dev\n  scope: Namespaced\n\
    \x20 names: {kind: Note, plural: notes, singular: note, listKind: NoteList}\n  versions:\n  - name: v1\n    served: true\n    storage: true\n\
    \x20   subresources: {status: {}}\n    schema:\n      openAPIV3Schema:\n        type: object\n        properties:\n\
    \x20         spec: {type: object, x-kubernetes-preserve-unknown-fields: true}\n          status: {type: object, x-kubernetes-preserve-unknown-fields: true}\n";

/// A client as the program has it.
async fn client(kubeconfig: &Path) -> Client {
    let kubeconfig = Kubeconfig::read_from(kubeconfig).unwrap();
    let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await.unwrap();
    Client::try_from(config).unwrap()
}

async fn reconcile(opdev: &Opdev, what: &str, mark: usize) -> Arc<Reconcile> {
    opdev
        .wait(what, mark, |event| match event {
            Event::Reconciled(reconcile) if reconcile.object.gvk.kind == "Note" => {
                Some(Arc::clone(reconcile))
            }
            _ => None,
        })
        .await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_program_that_tells_nothing_has_reconciles_all_the_same() {
    let embedded = Choice { embedded: true, ..Choice::default() };
    let opdev = Opdev::start_against(embedded, |root| {
        let settings = "operator:\n  command: [sh, op.sh]\n  stopAfter: 1s\n";
        std::fs::write(root.join("opdev.yaml"), settings).unwrap();
        std::fs::write(root.join("op.sh"), "exec sleep 1000\n").unwrap();
        std::fs::create_dir_all(root.join("config/crd/bases")).unwrap();
        std::fs::write(root.join("config/crd/bases/notes.yaml"), CRD).unwrap();
    })
    .await;
    let traced = opdev
        .wait("the program", 0, |event| match event {
            Event::ProcessChanged(run) if matches!(run.state, ProcessState::Running { .. }) => {
                Some(run.traced)
            }
            _ => None,
        })
        .await;
    assert_eq!(traced, Some(TraceLevel::Wire));
    let own = client(&opdev.root.join(".opdev/process.kubeconfig")).await;
    let users = client(&opdev.root.join(".opdev/kubeconfig")).await;
    let kind = ApiResource::from_gvk(&GroupVersionKind::gvk("demo.dev", "v1", "Note"));
    let notes: Api<DynamicObject> = Api::default_namespaced_with(own.clone(), &kind);
    let maps: Api<ConfigMap> = Api::default_namespaced(own);
    let mut seen = notes.watch(&WatchParams::default(), "0").await.unwrap().boxed();
    let mark = opdev.mark();
    let note = json!({"apiVersion": "demo.dev/v1", "kind": "Note", "metadata": {"name": "hello"}, "spec": {"copies": 2}});
    let users: Api<DynamicObject> = Api::default_namespaced_with(users, &kind);
    users.create(&PostParams::default(), &serde_json::from_value(note).unwrap()).await.unwrap();
    let note = loop {
        if let WatchEvent::Added(note) = seen.next().await.unwrap().unwrap() {
            break note;
        }
    };
    for copy in 0..2 {
        let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": format!("hello-{copy}"),
            "ownerReferences": [{"apiVersion": "demo.dev/v1", "kind": "Note", "name": "hello", "controller": true,
            "uid": note.metadata.uid}]}});
        maps.create(&PostParams::default(), &serde_json::from_value(map).unwrap()).await.unwrap();
    }
    maps.get("hello-0").await.unwrap();
    let status = json!({"status": {"ready": 2}});
    notes.patch_status("hello", &PatchParams::default(), &Patch::Merge(&status)).await.unwrap();

    // On a busy machine a reconcile may fall into parts, which are passes of their own.
    let first = reconcile(&opdev, "a pass", mark).await;
    let process = first.process.as_ref().unwrap();
    assert_eq!((process.traced, first.outcome), (TraceLevel::Wire, Outcome::Applied));
    assert!(
        matches!(&first.causes[0].kind, CauseKind::Watch { object, .. } if object.name == "hello"),
        "{:?}",
        first.causes
    );
    let told = opdev
        .wait("all calls", mark, |event| match event {
            Event::Reconciled(reconcile) => {
                reconcile.calls.iter().find(|call| call.target == "notes/hello/status").cloned()
            }
            _ => None,
        })
        .await;
    assert_eq!((told.verb.as_str(), told.status), ("patch", 200));
    let all: Vec<String> = opdev
        .since(mark)
        .iter()
        .filter_map(|event| match event {
            Event::Reconciled(reconcile) if reconcile.object.gvk.kind == "Note" => {
                Some(Arc::clone(reconcile))
            }
            _ => None,
        })
        .flat_map(|reconcile| {
            reconcile.calls.iter().map(|call| format!("{} {}", call.verb, call.target)).collect::<Vec<_>>()
        })
        .collect();
    assert_eq!(
        all,
        ["create configmaps", "create configmaps", "get configmaps/hello-0", "patch notes/hello/status"]
    );
    opdev.stop().await;
}

/// Lines that name an object belong to its reconciles, unless the settings want nothing but calls looked at.
#[tokio::test(flavor = "multi_thread")]
async fn the_level_is_log_once_lines_name_objects() {
    let line =
        "[2026-11-23 08:00:00,000] kopf.objects         [INFO    ] [default/hello] Creation is processed";
    for (trace, expected) in
        [("auto", TraceLevel::Log), ("logs", TraceLevel::Log), ("wire", TraceLevel::Wire)]
    {
        let embedded = Choice { embedded: true, ..Choice::default() };
        let opdev = Opdev::start_against(embedded, |root| {
            let settings = format!("operator:\n  command: [sh, op.sh]\n  trace: {trace}\n  stopAfter: 1s\n");
            std::fs::write(root.join("opdev.yaml"), settings).unwrap();
            std::fs::write(root.join("op.sh"), format!("echo '{line}'\nexec sleep 1000\n")).unwrap();
        })
        .await;
        let level = opdev
            .wait("the level", 0, |event| match event {
                Event::ProcessChanged(run) if matches!(run.state, ProcessState::Running { .. }) => {
                    run.traced.filter(|level| *level == expected)
                }
                _ => None,
            })
            .await;
        assert_eq!(level, expected, "{trace}");
        opdev
            .wait("the line", 0, |event| match event {
                Event::Log(line) if line.message.contains("Creation is processed") => Some(()),
                _ => None,
            })
            .await;
        let levels = opdev.since(0).into_iter().filter_map(|event| match event {
            Event::ProcessChanged(run) => run.traced,
            _ => None,
        });
        assert!(trace != "wire" || levels.into_iter().all(|level| level == TraceLevel::Wire), "{trace}");
        opdev.stop().await;
    }
}

/// With `--as-serviceaccount` the program has the rights of that account and no more, and the rule that it
/// lacks is told.
#[tokio::test(flavor = "multi_thread")]
async fn a_program_runs_as_the_service_account_of_its_operator() {
    let choice = Choice { embedded: true, service_account: Some(String::new()), ..Choice::default() };
    let opdev = Opdev::start_against(choice, |root| {
        crate::service_account::scaffold(root);
        let settings = "operator:\n  command: [sh, op.sh]\n  stopAfter: 1s\n";
        std::fs::write(root.join("opdev.yaml"), settings).unwrap();
        std::fs::write(root.join("op.sh"), "exec sleep 1000\n").unwrap();
    })
    .await;
    opdev
        .wait("the program", 0, |event| match event {
            Event::ProcessChanged(run) if matches!(run.state, ProcessState::Running { .. }) => Some(()),
            _ => None,
        })
        .await;
    let own = client(&opdev.root.join(".opdev/process.kubeconfig")).await;
    let maps: Api<ConfigMap> = Api::default_namespaced(own.clone());
    maps.list(&Default::default()).await.unwrap();
    let mark = opdev.mark();
    let ingresses: Api<k8s_openapi::api::networking::v1::Ingress> = Api::default_namespaced(own);
    let refused = ingresses.list(&Default::default()).await.unwrap_err();
    assert!(refused.to_string().contains("system:serviceaccount:system:controller-manager"), "{refused}");
    let rule = opdev
        .wait("the missing rule", mark, |event| match event {
            Event::RulesMissing { missing } => {
                missing.iter().find(|rule| rule.resource == "ingresses").cloned()
            }
            _ => None,
        })
        .await;
    assert_eq!(
        (rule.verbs.as_slice(), rule.file.as_str()),
        (["list".to_owned()].as_slice(), "config/rbac/role.yaml")
    );
    opdev.stop().await;
}
