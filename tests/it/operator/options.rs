//! More options of charts, each by its name: two kinds that differ in the one option.

use super::hybrid::{CONFIG, hybrid};
use super::world::{World, chart, fed_by, watch_of};
use kube::api::DeleteParams;
use opdev::event::Outcome;
use opdev::sources::Watch;
use opdev::sources::chart_options::{ActionOptions, ChartOptions};
use serde_json::json;
use std::time::Duration;

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
    // What is deleted later is there again first.
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
    let pass = world.outcome("b", Outcome::Failed).await;
    let chain = pass.failure.as_ref().unwrap().chain.join(": ");
    assert!(chain.contains("is not ready: timed out"), "{chain}");
    world.stop().await;
}
