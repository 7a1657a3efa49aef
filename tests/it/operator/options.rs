//! More options of charts, each by its name: two kinds that differ in the one option.

use super::hybrid::{CONFIG, hybrid};
use super::world::{World, chart, fed_by, serve_kind, settings, watch_of};
use kube::api::{Api, ApiResource, DeleteParams, DynamicObject, Patch, PatchParams};
use kube::core::GroupVersionKind;
use opdev_controlplane::ControlPlane;
use opdev_event::{ObjectChange, Outcome, Reconcile};
use opdev_sources::Watch;
use opdev_sources::chart_options::{ActionOptions, ChartOptions};
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;
use tower::ServiceExt as _;

fn of(kind: &str, files: &[(&str, &str)], options: ChartOptions) -> Watch {
    let mut watch = watch_of(kind, chart(&kind.to_lowercase(), files));
    fed_by(&mut watch).options = options;
    watch
}

async fn create_shop(world: &World) {
    let shop =
        json!({"apiVersion": "test.my.domain/v1", "kind": "Shop", "metadata": {"name": "b"}, "spec": {}});
    world.create(&world.api("test.my.domain", "Shop"), shop).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn watch_dependent_resources_off_leaves_what_is_deleted_to_the_next_reconcile() {
    let files = [("templates/config.yaml", CONFIG)];
    let mut quiet = of("Web", &files, hybrid());
    fed_by(&mut quiet).watch_dependents = false;
    let mut world = World::start(vec![quiet, of("Shop", &files, hybrid())]).await;
    world.create_web("a", json!({})).await;
    world.outcome("a", Outcome::Installed).await;
    create_shop(&world).await;
    world.outcome("b", Outcome::Installed).await;
    let maps = world.api("", "ConfigMap");
    // An object that is deleted later is there again first.
    for name in ["a-config", "b-config"] {
        maps.delete(name, &DeleteParams::default()).await.unwrap();
    }
    world.outcome("b", Outcome::Repaired).await;
    assert!(world.get(&maps, "a-config").await.is_none());
    world.reconcile_now("a").await;
    world.outcome("a", Outcome::Repaired).await;
    assert!(world.get(&maps, "a-config").await.is_some());
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn helm_rollback_disable_hooks_leaves_the_hooks_of_rollbacks_out() {
    let service = "apiVersion: v1\nkind: Service\nmetadata: {name: \"{{ .Release.Name }}\"}\nspec: {type: {{ if .Values.bad \
                   }}Nonsense{{ else }}ClusterIP{{ end }}, ports: [{port: 80}]}\n";
    let hook = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: \"{{ .Release.Name }}-back\", annotations: {helm.sh/hook: \
                pre-rollback}}\ndata: {}\n";
    let files = [
        ("templates/config.yaml", CONFIG),
        ("templates/service.yaml", service),
        ("templates/back.yaml", hook),
    ];
    let rollback = ActionOptions { disable_hooks: Some(true), ..ActionOptions::default() };
    let quiet = ChartOptions { rollback, ..hybrid() };
    let mut world = World::start(vec![of("Web", &files, hybrid()), of("Shop", &files, quiet)]).await;
    world.create_web("a", json!({})).await;
    world.outcome("a", Outcome::Installed).await;
    create_shop(&world).await;
    world.outcome("b", Outcome::Installed).await;
    let worse = json!({"spec": {"bad": true, "greeting": "two"}});
    for (api, name, hooks) in [(world.webs(), "a", true), (world.api("test.my.domain", "Shop"), "b", false)] {
        world.patch(&api, name, worse.clone()).await;
        world.outcome(name, Outcome::Failed).await;
        let maps = world.api("", "ConfigMap");
        assert_eq!(world.get(&maps, &format!("{name}-back")).await.is_some(), hooks, "{name}");
        let config = world.get(&maps, &format!("{name}-config")).await.unwrap();
        assert_eq!(config["data"]["greeting"], "hello");
    }
    world.stop().await;
}

/// A chart whose upgrade with `bad` fails after it has changed a StatefulSet, so that a patch cannot put it
/// back.
fn one_way() -> [(&'static str, &'static str); 2] {
    let set = "apiVersion: apps/v1\nkind: StatefulSet\nmetadata: {name: \"{{ .Release.Name }}\"}\nspec:\n  replicas: 0\n  \
               serviceName: a\n  selector: {matchLabels: {app: a}}\n  template:\n    metadata: {labels: {app: a}}\n    \
               spec: {containers: [{name: a, image: a}]}\n{{- if not .Values.bad }}\n  updateStrategy: {type: \
               OnDelete}\n{{- end }}\n";
    // Helm writes CronJobs after StatefulSets: the upgrade fails when the set has changed.
    let never = "{{- if .Values.bad }}\napiVersion: batch/v1\nkind: CronJob\nmetadata: {name: \"{{ .Release.Name }}\"}\nspec: \
                 {schedule: never, jobTemplate: {spec: {template: {spec: {restartPolicy: Never, containers: [{name: a, \
                 image: a}]}}}}}\n{{- end }}\n";
    [("templates/set.yaml", set), ("templates/never.yaml", never)]
}

/// A StatefulSet that had `OnDelete` and is `RollingUpdate` by default now has a `rollingUpdate` that no
/// manifest names: no patch takes it away, and with `OnDelete` the server refuses it. A replacement leaves it
/// out. `helm rollback` of Helm 3.19.0 and 4.1.4 fails at it with the same words, and goes well in Helm 3
/// with `--force`; Helm 4, which applies server-side, refuses to replace. Immutable fields are no case: a
/// replacement is an update, too, not a new object.
///
/// With force, Helm 3 (and so helm-operator-plugins) replaces every object at once; opdev patches first and
/// replaces only what is refused as invalid.
#[tokio::test(flavor = "multi_thread")]
async fn rollback_force_replaces_what_a_patch_cannot_put_back() {
    let files = one_way();
    let patched = ChartOptions { rollback_force: Some(false), ..hybrid() };
    let forced = of("Web", &files, hybrid());
    let mut world = World::start(vec![forced, of("Shop", &files, patched)]).await;
    world.create_web("a", json!({})).await;
    world.outcome("a", Outcome::Installed).await;
    create_shop(&world).await;
    world.outcome("b", Outcome::Installed).await;

    // The writes of the reconcile, read at once, for the next attempt comes soon.
    let wrote = |reconcile: &Reconcile| -> Vec<String> {
        let strategy = |change: &ObjectChange| {
            let kind =
                change.changes.iter().find(|field| field.path.to_string() == ".spec.updateStrategy.type");
            let new = kind.and_then(|field| field.new.as_ref()).and_then(Value::as_str);
            format!("{} {}", change.object.gvk.kind, new.unwrap_or_default())
        };
        reconcile.objects.iter().map(strategy).collect()
    };
    let shops = world.api("test.my.domain", "Shop");
    world.patch(&world.webs(), "a", json!({"spec": {"bad": true}})).await;
    let reconcile = world.outcome("a", Outcome::Failed).await;
    let chain = reconcile.failure.as_ref().unwrap().chain.join(": ");
    assert!(chain.contains("upgrade failed; rolled back to the last good manifest: "), "{chain}");
    assert_eq!(wrote(&reconcile), ["StatefulSet RollingUpdate", "StatefulSet OnDelete"]);
    world.patch(&shops, "b", json!({"spec": {"bad": true}})).await;
    let reconcile = world.outcome("b", Outcome::Failed).await;
    let chain = reconcile.failure.as_ref().unwrap().chain.join(": ");
    let why = "upgrade failed, and so did the rollback (cannot patch \"b\" with kind StatefulSet: ";
    assert!(chain.contains(why) && chain.contains("only allowed for updateStrategy"), "{chain}");
    assert_eq!(wrote(&reconcile), ["StatefulSet RollingUpdate"]);
    world.stop().await;
}

/// A controller writes between the look at an object and its replacement: Helm reads again and replaces what
/// is there then.
#[tokio::test(flavor = "multi_thread")]
async fn a_replacement_comes_after_what_was_written_meanwhile() {
    let plane = ControlPlane::start().await.unwrap();
    for kind in ["Web", "Shop"] {
        serve_kind(&plane.client(), kind).await;
    }
    let (service, other, left) = (plane.service(), plane.client(), Arc::new(AtomicU32::new(2)));
    let between = tower::service_fn(move |request: http::Request<kube::client::Body>| {
        let (service, other, left) = (service.clone(), other.clone(), Arc::clone(&left));
        async move {
            let replaces =
                request.method() == http::Method::PUT && request.uri().path().ends_with("/statefulsets/a");
            let one_less = |left: u32| left.checked_sub(1);
            if replaces && left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, one_less).is_ok() {
                let gvk = GroupVersionKind::gvk("apps", "v1", "StatefulSet");
                let sets: Api<DynamicObject> =
                    Api::namespaced_with(other, "default", &ApiResource::from_gvk(&gvk));
                let mark =
                    json!({"metadata": {"labels": {"written": left.load(Ordering::SeqCst).to_string()}}});
                sets.patch("a", &PatchParams::default(), &Patch::Merge(mark)).await.unwrap();
            }
            service.oneshot(request).await
        }
    });
    let client = kube::Client::new(between, "default");
    let mut world = World::over(client, plane, vec![of("Web", &one_way(), hybrid())], settings());
    world.create_web("a", json!({})).await;
    world.outcome("a", Outcome::Installed).await;
    world.patch(&world.webs(), "a", json!({"spec": {"bad": true}})).await;
    let reconcile = world.outcome("a", Outcome::Failed).await;
    let chain = reconcile.failure.as_ref().unwrap().chain.join(": ");
    assert!(chain.contains("upgrade failed; rolled back to the last good manifest: "), "{chain}");
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn helm_wait_for_jobs_waits_until_they_are_done() {
    // No node has such a label: the Job never ends.
    let job = "apiVersion: batch/v1\nkind: Job\nmetadata: {name: \"{{ .Release.Name }}\"}\nspec:\n  template:\n    spec: \
               {restartPolicy: Never, nodeSelector: {no: where}, containers: [{name: a, image: a}]}\n";
    let install = ActionOptions {
        wait: Some(true),
        timeout: Some(Duration::from_millis(300)),
        ..ActionOptions::default()
    };
    let plain = ChartOptions { install: install.clone(), ..hybrid() };
    let jobs = ActionOptions { wait_for_jobs: Some(true), ..install };
    let jobs = ChartOptions { install: jobs, ..hybrid() };
    let files = [("templates/job.yaml", job)];
    let mut world = World::start(vec![of("Web", &files, plain), of("Shop", &files, jobs)]).await;
    world.create_web("a", json!({})).await;
    world.outcome("a", Outcome::Installed).await;
    create_shop(&world).await;
    let reconcile = world.outcome("b", Outcome::Failed).await;
    let chain = reconcile.failure.as_ref().unwrap().chain.join(": ");
    assert!(chain.contains("is not ready: timed out"), "{chain}");
    world.stop().await;
}
