//! Events that lead to a reconcile and events that do not: dependents, CRDs that come and go, selectors,
//! hooks, the real Helm.

use super::world::{World, causes, chart, condition, serve_kind, settings, sources, watch_of, web};
use expect_test::expect;
use kube::api::{Api, DynamicObject, ListParams, Patch, PatchParams};
use opdev_controlplane::ControlPlane;
use opdev_event::{Action, CauseKind, Event, Outcome};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;

const CONFIG: &str = "apiVersion: v1
kind: ConfigMap
metadata:
  name: {{ .Release.Name }}-config
data:
  greeting: {{ .Values.greeting | default `hello` }}
";

fn simple() -> Arc<opdev_helm::chart::Chart> {
    chart("web", &[("templates/all.yaml", CONFIG)])
}

async fn patch_status(api: &Api<DynamicObject>, name: &str, status: Value) {
    let params = PatchParams { field_manager: Some("kubelet".to_owned()), ..PatchParams::default() };
    api.patch_status(name, &params, &Patch::Merge(json!({"status": status}))).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn the_status_of_a_dependent_and_its_creation_lead_nowhere() {
    let text = "apiVersion: policy/v1\nkind: PodDisruptionBudget\nmetadata:\n  name: {{ .Release.Name }}\nspec:\n  \
                minAvailable: 1\n  selector:\n    matchLabels: {app: x}\n---\n";
    let files = [("templates/all.yaml", CONFIG), ("templates/budget.yaml", text)];
    let mut world = World::start(vec![web(chart("web", &files))]).await;
    world.create_web("site", json!({})).await;
    world.outcome("site", Outcome::Installed).await;
    let budgets = world.api("policy", "PodDisruptionBudget");
    patch_status(
        &budgets,
        "site",
        json!({"currentHealthy": 1, "desiredHealthy": 1, "disruptionsAllowed": 0, "expectedPods": 1}),
    )
    .await;
    world.patch(&budgets, "site", json!({"spec": {"minAvailable": 2}})).await;
    let reconcile = world.reconcile("site").await;
    assert_eq!(reconcile.outcome, Outcome::Repaired);
    let dependents: Vec<String> =
        causes(&reconcile).into_iter().filter(|cause| !cause.starts_with("own")).collect();
    assert_eq!(dependents, ["Modified PodDisruptionBudget .spec.minAvailable by somebody"]);
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_kind_waits_for_its_crd_and_survives_its_deletion() {
    let plane = ControlPlane::start().await.unwrap();
    let client = plane.client();
    let mut world = World::over(client.clone(), plane, vec![web(simple())], settings());
    serve_kind(&client, "Web").await;
    world.create_web("site", json!({})).await;
    world.outcome("site", Outcome::Installed).await;

    let crds = world.cluster_api("apiextensions.k8s.io", "CustomResourceDefinition");
    world.delete(&crds, "webs.test.my.domain").await;
    world.outcome("site", Outcome::Uninstalled).await;
    let gone =
        kube::runtime::wait::await_condition(crds, "webs.test.my.domain", |crd: Option<&DynamicObject>| {
            crd.is_none()
        });
    tokio::time::timeout(Duration::from_secs(30), gone).await.unwrap().unwrap();
    serve_kind(&client, "Web").await;
    world.create_web("again", json!({})).await;
    world.outcome("again", Outcome::Installed).await;
    assert!(world.notices.is_empty(), "without noise: {:?}", world.notices);
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_selector_picks_objects() {
    let mut watch = web(simple());
    watch.selector = json!({"matchLabels": {"tier": "front"}});
    let mut world = World::start(vec![watch]).await;
    world.create_web("other", json!({})).await;
    let object = json!({"apiVersion": "test.my.domain/v1", "kind": "Web", "spec": {},
        "metadata": {"name": "site", "labels": {"tier": "front"}}});
    world.create(&world.webs(), object).await;
    let first = world.until("a pass", |event| match event {
        Event::Reconciled(reconcile) => Some(Arc::clone(reconcile)),
        _ => None,
    });
    assert_eq!(first.await.object.name, "site");
    assert!(world.revisions("other").await.is_empty());
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_there_at_the_start_is_reconciled_without_a_write() {
    let plane = ControlPlane::start().await.unwrap();
    let client = plane.client();
    serve_kind(&client, "Web").await;
    let mut world = World::over(client, plane, vec![web(simple())], settings());
    world.create_web("site", json!({})).await;
    world.outcome("site", Outcome::Installed).await;
    let mut world = world.restart(vec![web(simple())]).await;
    let reconcile = world.reconcile("site").await;
    assert_eq!((reconcile.outcome, &reconcile.causes[0].kind), (Outcome::Unchanged, &CauseKind::Start));
    assert!(
        reconcile.calls.iter().all(|call| ["get", "list"].contains(&call.verb.as_str())),
        "{:?}",
        reconcile.calls
    );
    // Nothing was written, so nothing is known of the child but what the reconcile has read: a change is
    // still seen.
    world.patch(&world.api("", "ConfigMap"), "site-config", json!({"data": {"greeting": "drift"}})).await;
    world.outcome("site", Outcome::Repaired).await;
    world.stop().await;
}

const HOOKS: &str = "apiVersion: batch/v1
kind: Job
metadata:
  name: {{ .Release.Name }}-migrate
  annotations:
    helm.sh/hook: pre-upgrade
    helm.sh/hook-delete-policy: before-hook-creation,hook-succeeded
spec:
  # Suspended, so that the test and not the Job controller ends it.
  suspend: true
  backoffLimit: 0
  template:
    spec:
      restartPolicy: Never
      containers: [{name: x, image: x}]
---
apiVersion: v1
kind: ConfigMap
metadata:
  name: {{ .Release.Name }}-bye
  annotations:
    helm.sh/hook: post-delete
";

fn hooked() -> Arc<opdev_helm::chart::Chart> {
    chart("web", &[("templates/all.yaml", CONFIG), ("templates/hooks.yaml", HOOKS)])
}

/// Waits for a Job and ends it as the Job controller would.
async fn end_job(jobs: &Api<DynamicObject>, name: &str, before: Option<&str>, condition: &str) -> String {
    let fresh = |job: Option<&DynamicObject>| {
        job.is_some_and(|job| {
            job.metadata.uid.as_deref() != before && job.metadata.deletion_timestamp.is_none()
        })
    };
    let job = kube::runtime::wait::await_condition(jobs.clone(), name, fresh);
    let job = tokio::time::timeout(Duration::from_secs(30), job).await.unwrap().unwrap().unwrap();
    let before_end = if condition == "Complete" { "SuccessCriteriaMet" } else { "FailureTarget" };
    let now = "2026-01-01T00:00:00Z";
    let mut status = json!({"startTime": now, "conditions": [
        {"type": before_end, "status": "True", "lastProbeTime": now, "lastTransitionTime": now},
        {"type": condition, "status": "True", "reason": "BackoffLimitExceeded", "lastProbeTime": now,
         "lastTransitionTime": now, "message": "Job has reached the specified backoff limit"}]});
    if condition == "Complete" {
        status["completionTime"] = json!(now);
        status["succeeded"] = json!(1);
    }
    patch_status(jobs, name, status).await;
    job.metadata.uid.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn hooks_are_waited_for_and_their_failure_is_told() {
    let mut world = World::start(vec![web(hooked())]).await;
    world.create_web("site", json!({})).await;
    world.outcome("site", Outcome::Installed).await;
    let jobs = world.api("batch", "Job");
    world.patch(&world.webs(), "site", json!({"spec": {"greeting": "two"}})).await;
    let first = end_job(&jobs, "site-migrate", None, "Complete").await;
    let reconcile = world.outcome("site", Outcome::Upgraded).await;
    let actions: Vec<(Action, &str)> =
        reconcile.objects.iter().map(|change| (change.action, change.object.gvk.kind.as_str())).collect();
    assert_eq!(
        actions,
        [(Action::Created, "Job"), (Action::Deleted, "Job"), (Action::Updated, "ConfigMap")],
        "created, waited for, deleted once it has succeeded"
    );
    world.patch(&world.webs(), "site", json!({"spec": {"greeting": "three"}})).await;
    end_job(&jobs, "site-migrate", Some(&first), "Failed").await;
    let reconcile = world.outcome("site", Outcome::Failed).await;
    let text = reconcile.failure.as_ref().unwrap().chain.join(": ");
    assert!(text.contains("pre-upgrade hooks failed"), "{text}");
    assert!(
        text.contains(
            "pre-upgrade hook Job default/site-migrate failed: BackoffLimitExceeded: Job has reached"
        ),
        "{text}"
    );
    let object = world.get(&world.webs(), "site").await.unwrap();
    assert!(condition(&object, "ReleaseFailed").unwrap().2.contains("BackoffLimitExceeded"));
    let child = world.get(&world.api("", "ConfigMap"), "site-config").await.unwrap();
    assert_eq!(child["data"]["greeting"], "two");
    world.delete(&world.webs(), "site").await;
    let reconcile = world.outcome("site", Outcome::Uninstalled).await;
    let created: Vec<&str> = reconcile
        .objects
        .iter()
        .filter(|change| change.action == Action::Created)
        .map(|change| change.object.name.as_str())
        .collect();
    assert_eq!(created, ["site-bye"], "the post-delete hook");
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hook_that_never_ends_is_given_up() {
    let mut settings = settings();
    settings.hook_timeout = Duration::from_millis(200);
    let mut world = World::start_with(vec![web(hooked())], settings).await;
    world.create_web("site", json!({})).await;
    world.outcome("site", Outcome::Installed).await;
    world.patch(&world.webs(), "site", json!({"spec": {"greeting": "two"}})).await;
    let reconcile = world.outcome("site", Outcome::Failed).await;
    let text = reconcile.failure.as_ref().unwrap().chain.join(": ");
    assert!(text.contains("pre-upgrade hook Job default/site-migrate: timed out"), "{text}");
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deletion_does_not_wait_for_a_hook() {
    let mut world = World::start(vec![web(hooked())]).await;
    world.create_web("site", json!({})).await;
    world.outcome("site", Outcome::Installed).await;
    world.patch(&world.webs(), "site", json!({"spec": {"greeting": "two"}})).await;
    let there = |job: Option<&DynamicObject>| job.is_some();
    let job = kube::runtime::wait::await_condition(world.api("batch", "Job"), "site-migrate", there);
    tokio::time::timeout(Duration::from_secs(30), job).await.unwrap().unwrap();
    world.delete(&world.webs(), "site").await;
    let reconcile = world.outcome("site", Outcome::Failed).await;
    expect!["failed to upgrade release: upgrade failed; rolled back to the last good manifest: pre-upgrade hooks failed: pre-upgrade hook Job default/site-migrate: stopped, something newer came"]
    .assert_eq(&reconcile.failure.as_ref().unwrap().chain.join(": "));
    world.outcome("site", Outcome::Uninstalled).await;
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_saved_file_runs_no_hooks() {
    let mut world = World::start(vec![web(hooked())]).await;
    world.create_web("site", json!({})).await;
    world.outcome("site", Outcome::Installed).await;
    let edited = CONFIG.replace("hello", "edited");
    let mut watch = web(chart("web", &[("templates/all.yaml", &edited), ("templates/hooks.yaml", HOOKS)]));
    watch.changed_in = 2;
    world.sources.send(sources(2, vec![watch])).unwrap();
    let reconcile = world.reconcile("site").await;
    assert_eq!(reconcile.outcome, Outcome::Upgraded);
    assert!(!reconcile.calls.iter().any(|call| call.target.starts_with("jobs")), "{:?}", reconcile.calls);
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn many_objects_run_at_once_up_to_the_limit() {
    let mut watch = watch_of("Web", simple());
    watch.max_concurrent = Some(2);
    let mut world = World::start(vec![watch]).await;
    for name in ["a", "b", "c", "d", "e", "f"] {
        world.create_web(name, json!({})).await;
    }
    let (mut running, mut most, mut done) = (0_i32, 0, 0);
    world
        .until("six installs", |event| {
            match event {
                Event::ReconcileStarted(_) => running += 1,
                Event::Reconciled(reconcile) => {
                    running -= 1;
                    done += i32::from(reconcile.outcome == Outcome::Installed);
                }
                _ => {}
            }
            most = most.max(running);
            (done == 6).then_some(())
        })
        .await;
    assert!(most <= 2, "{most} at once");
    world.stop().await;
}

/// The real Helm reads the release.
#[tokio::test(flavor = "multi_thread")]
#[cfg_attr(not(oracles), ignore = "needs OPDEV_ORACLES")]
async fn the_real_helm_reads_the_release() {
    // A hook that no upgrade waits for.
    let (_, bye) = HOOKS.split_once("---\n").unwrap();
    let files = [("templates/all.yaml", CONFIG), ("templates/hooks.yaml", bye)];
    let mut world = World::start(vec![web(chart("web", &files))]).await;
    world.create_web("site", json!({"greeting": "one"})).await;
    world.outcome("site", Outcome::Installed).await;
    let edited = CONFIG.replace("name: {{", "labels: {edited: yes}\n  name: {{").replace("yes", "'yes'");
    let mut watch = web(chart("web", &[("templates/all.yaml", &edited), ("templates/hooks.yaml", bye)]));
    watch.changed_in = 2;
    world.sources.send(sources(2, vec![watch])).unwrap();
    world.outcome("site", Outcome::Upgraded).await;
    world.patch(&world.webs(), "site", json!({"spec": {"greeting": "two"}})).await;
    world.outcome("site", Outcome::Upgraded).await;
    let listening = world.plane.listen(opdev_controlplane::Listen::default()).await.unwrap();
    let folder = tempfile::tempdir().unwrap();
    let kubeconfig = folder.path().join("kubeconfig");
    std::fs::write(&kubeconfig, &listening.kubeconfig).unwrap();
    for helm in ["helm3", "helm4"] {
        let run = |args: &[&str]| {
            let mut command = std::process::Command::new(crate::oracle::oracle(helm));
            command.args(args).env("KUBECONFIG", &kubeconfig).env("HOME", folder.path());
            let output = command.output().unwrap();
            assert!(output.status.success(), "{helm} {args:?}: {}", String::from_utf8_lossy(&output.stderr));
            String::from_utf8(output.stdout).unwrap()
        };
        let list: Value = serde_json::from_str(&run(&["list", "-o", "json"])).unwrap();
        assert_eq!(
            (&list[0]["name"], &list[0]["status"], &list[0]["revision"]),
            (&json!("site"), &json!("deployed"), &json!("2"))
        );
        let history: Value = serde_json::from_str(&run(&["history", "site", "-o", "json"])).unwrap();
        let lines: Vec<String> = history
            .as_array()
            .unwrap()
            .iter()
            .map(|line| {
                format!(
                    "{} {} {}",
                    line["revision"],
                    line["status"].as_str().unwrap(),
                    line["description"].as_str().unwrap()
                )
            })
            .collect();
        assert_eq!(lines, ["1 superseded Rewritten from changed files", "2 deployed Upgrade complete"]);
        assert_eq!(run(&["get", "values", "site", "-o", "json"]).trim(), r#"{"greeting":"two"}"#);
        let all = run(&["get", "all", "site"]);
        assert!(all.contains("# Source: web/templates/all.yaml") && all.contains("greeting: two"), "{all}");
        assert!(run(&["get", "manifest", "site", "--revision", "1"]).contains("greeting: one"));
    }
    let secrets = world.api("", "Secret").list(&ListParams::default().labels("owner=helm")).await.unwrap();
    assert_eq!(secrets.items.len(), 2);
    world.stop().await;
}
