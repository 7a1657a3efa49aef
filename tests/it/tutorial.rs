//! The PodSet operator of the Operator SDK's tutorial, its controller as the tutorial prints it: one question
//! is answered, and each reconcile says why it ran. The mistakes of the tutorial are named. Needs Go.

use crate::inner_loop::Opdev;
use k8s_openapi::api::core::v1::Pod;
use kube::api::{Api, ApiResource, DeleteParams, DynamicObject, ListParams, Patch, PatchParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::core::GroupVersionKind;
use kube::{Client, Config};
use opdev_cluster::Choice;
use opdev_event::{
    CauseKind, Event, FindingKind, ObjectTask, OperatorTask, Permission, ProcessState, ProjectTask,
    Reconcile, Relation, Request, RequestOutcome, TraceLevel, TrustAnswer, WatchEvent,
};
use opdev_object::meta::{Gvk, ObjectRef};
use opdev_project::trust::{Store, Trust};
use serde_json::json;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// As long as a build may take where all that it needs has to be compiled first.
const BUILD: Duration = Duration::from_secs(900);
const NAME: &str = "podset-sample";

/// The project in place of the demo.
fn project(root: &Path) {
    for part in ["charts", "config", "samples"] {
        std::fs::remove_dir_all(root.join(part)).unwrap();
    }
    let from = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/reference/podset");
    crate::inner_loop::copy(&from, root);
}

struct Tutorial {
    opdev: Opdev,
    pods: Api<Pod>,
    sets: Api<DynamicObject>,
}

impl Tutorial {
    /// Starts opdev, answers its one question and waits for the program.
    async fn start() -> Tutorial {
        let cluster = Choice { embedded: true, ..Choice::default() };
        let undecided = |project: &opdev_project::Project| Trust::of(&project.root, Store::none());
        let mut opdev = Opdev::launch_trusting(cluster, project, false, undecided);
        let asked = opdev
            .wait("the question", 0, |event| match event {
                Event::TrustAsked(asked) => Some(asked.unanswered.clone()),
                _ => None,
            })
            .await;
        assert!(matches!(&asked[..], [Permission::StartOperator { .. }]), "{asked:?}");
        opdev.ask(ProjectTask::Trust { answer: TrustAnswer::Once, permissions: asked }).await;
        let traced = opdev
            .wait_within(BUILD, "the program", 0, |event| match event {
                Event::ProcessChanged(run) if matches!(run.state, ProcessState::Running { .. }) => {
                    Some(run.traced)
                }
                _ => None,
            })
            .await;
        assert_eq!(traced, Some(TraceLevel::Full));
        // Its caches are full from here on.
        opdev
            .wait("its workers", 0, |event| match event {
                Event::Log(line) if line.message.starts_with("Starting workers") => Some(()),
                _ => None,
            })
            .await;
        let kubeconfig = Kubeconfig::read_from(opdev.kubeconfig()).unwrap();
        let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await;
        let client = Client::try_from(config.unwrap()).unwrap();
        let kind = ApiResource::from_gvk(&GroupVersionKind::gvk("app.example.com", "v1alpha1", "PodSet"));
        let sets = Api::default_namespaced_with(client.clone(), &kind);
        Tutorial { opdev, pods: Api::default_namespaced(client), sets }
    }

    async fn ask(&mut self, request: impl Into<Request>) {
        let outcome = self.opdev.ask(request).await;
        assert!(matches!(outcome, RequestOutcome::Done { .. }), "{outcome:?}");
    }

    async fn disturb(&mut self, rules: &[&str]) {
        let rules = rules.iter().map(|rule| rule.parse().unwrap()).collect();
        self.ask(OperatorTask::Disturb { rules }).await;
    }

    /// Asks for a reconcile, as `r` does, and waits for it.
    async fn reconcile(&mut self) -> Arc<Reconcile> {
        let mark = self.opdev.mark();
        let gvk = Gvk::new("app.example.com", "v1alpha1", "PodSet");
        let object =
            ObjectRef { gvk, namespace: Some("default".to_owned()), name: NAME.to_owned(), uid: None };
        self.ask(OperatorTask::Reconcile { object }).await;
        let asked = |pass: &Reconcile| pass.causes.iter().any(|cause| matches!(cause.kind, CauseKind::User));
        self.pass("the reconcile that was asked for", mark, asked).await
    }

    async fn pass(&self, what: &str, mark: usize, pick: impl Fn(&Reconcile) -> bool) -> Arc<Reconcile> {
        self.opdev.reconcile(what, mark, pick).await
    }

    /// The finding of a check about a reconcile since a mark.
    async fn found(&self, mark: usize, kind: FindingKind) -> String {
        self.opdev
            .wait(&format!("{kind:?}"), mark, |event| match event {
                Event::Reconciled(pass) => finding(pass, kind),
                _ => None,
            })
            .await
    }

    async fn scale(&self, replicas: u32) {
        let patch = Patch::Merge(json!({"spec": {"replicas": replicas}}));
        self.sets.patch(NAME, &PatchParams::default(), &patch).await.unwrap();
    }

    async fn names(&self) -> Vec<String> {
        let pods = self.pods.list(&ListParams::default()).await.unwrap();
        let live = pods.items.into_iter().filter(|pod| pod.metadata.deletion_timestamp.is_none());
        live.filter_map(|pod| pod.metadata.name).collect()
    }
}

fn finding(pass: &Reconcile, kind: FindingKind) -> Option<String> {
    let findings = &pass.process.as_ref()?.findings;
    Some(findings.iter().find(|finding| finding.kind == kind)?.message.clone())
}

/// Returns true if a change of the PodSet's `spec.replicas` is a cause.
fn is_scaled(pass: &Reconcile, to: u32) -> bool {
    pass.causes.iter().any(|cause| match &cause.kind {
        CauseKind::Watch { object, fields, relation: Relation::Primary, .. } => {
            object.name == NAME
                && fields.iter().any(|field| {
                    field.path == ".spec.replicas" && field.new.as_deref() == Some(&to.to_string())
                })
        }
        _ => false,
    })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
#[cfg_attr(not(go), ignore = "needs Go")]
async fn the_podset_tutorial_runs_as_it_is_printed_and_its_mistakes_are_named() {
    let mut tutorial = Tutorial::start().await;
    // A cache that is behind is a matter of moments; held events make them last.
    tutorial.disturb(&["hold pods"]).await;
    let mark = tutorial.opdev.mark();
    tutorial.ask(ObjectTask::Apply { path: "config/samples/app_v1alpha1_podset.yaml".to_owned() }).await;
    let first = tutorial.pass("the first reconcile", mark, |_| true).await;
    assert!(
        matches!(&first.causes[0].kind, CauseKind::Watch { object, event: WatchEvent::Added, relation: Relation::Primary, .. }
            if object.name == NAME),
        "{:?}",
        first.causes
    );
    let stale = tutorial.found(mark, FindingKind::StaleRead).await;
    assert!(stale.starts_with("the cache listed 0 Pods; it was behind what reconcile #"), "{stale}");
    while tutorial.names().await.len() < 4 {
        let pass = tutorial.reconcile().await;
        assert!(finding(&pass, FindingKind::StaleRead).is_some(), "{pass:?}");
    }
    // Four pods for three, or more of them while the cache catches up, and nothing takes them away.
    tutorial.disturb(&[]).await;
    let left = tutorial.found(mark, FindingKind::SurplusLeft).await;
    let count: u32 = left.split(' ').next().unwrap().parse().unwrap();
    assert!(count >= 4, "{left}");
    assert!(
        left.contains(
            "Pods of its own are there (.status.availableReplicas) where .spec.replicas asks for 3"
        ),
        "{left}"
    );

    let mark = tutorial.opdev.mark();
    tutorial.scale(5).await;
    tutorial.pass("the reconcile of the change", mark, |pass| is_scaled(pass, 5)).await;
    while tutorial.names().await.len() < 5 {
        tutorial.reconcile().await;
    }
    let made = |pass: &Reconcile| pass.objects.iter().any(|change| change.object.gvk.kind == "Pod");
    tutorial.pass("a pod", 0, made).await;
    let own = |pass: &Reconcile| {
        pass.causes.iter().any(|cause| {
            matches!(&cause.kind, CauseKind::Watch { object, relation: Relation::Owner, .. } if object.gvk.kind == "Pod")
        })
    };
    tutorial.pass("a reconcile because of a pod", 0, own).await;

    // Scaling down does nothing.
    let mark = tutorial.opdev.mark();
    tutorial.scale(1).await;
    tutorial.pass("the reconcile of the change", mark, |pass| is_scaled(pass, 1)).await;
    let left = tutorial.found(mark, FindingKind::SurplusLeft).await;
    assert!(left.contains("where .spec.replicas asks for 1; the reconcile removed none"), "{left}");
    let before = tutorial.names().await;
    assert!(before.len() >= 5, "{before:?}");

    // The cache lists in any order: sooner or later in another one than the status has.
    loop {
        let pass = tutorial.reconcile().await;
        if let Some(found) = finding(&pass, FindingKind::UnorderedStatus) {
            assert_eq!(found, ".status.podNames was written with the same items in another order");
            break;
        }
    }

    let mark = tutorial.opdev.mark();
    tutorial.pods.delete(&before[0], &DeleteParams::default()).await.unwrap();
    let gone = |pass: &Reconcile| {
        pass.causes.iter().any(|cause| {
            matches!(&cause.kind, CauseKind::Watch { object, event: WatchEvent::Deleted, .. } if object.name == before[0])
        })
    };
    tutorial.pass("the reconcile because a pod is gone", mark, gone).await;
    let all: Vec<Arc<Reconcile>> = tutorial
        .opdev
        .since(0)
        .into_iter()
        .filter_map(|event| match event {
            Event::Reconciled(pass) => Some(pass),
            _ => None,
        })
        .collect();
    assert!(all.iter().all(|pass| !pass.causes.is_empty()), "a pass without a cause");
    tutorial.opdev.stop().await;
}
