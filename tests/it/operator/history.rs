//! Traces of failures and of other people: rollbacks with their hooks and revisions, uninstalls of failed
//! installs, revisions that somebody else made, began or took away, objects of two templates, custom
//! resources that left the selector. Each as the Operator SDK's operator does it.

use super::world::{World, chart, condition, settings, sources, web};
use kube::api::{DynamicObject, PostParams};
use opdev_event::{Action, Event, Outcome, Reconcile, ReleaseStep};
use opdev_helm::chart::Chart;
use opdev_helm::release::{self, Release, Status};
use opdev_release::settings::Settings;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;

/// A ConfigMap, and a Service that the API server refuses while `bad` is true.
const RISKY: &str = "apiVersion: v1
kind: ConfigMap
metadata:
  name: {{ .Release.Name }}-config
data:
  greeting: {{ .Values.greeting | default `hello` | printf `%q` }}
---
apiVersion: v1
kind: Service
metadata:
  name: {{ .Release.Name }}
spec:
  type: {{ if .Values.bad }}Nonsense{{ else }}ClusterIP{{ end }}
  ports:
  - port: 80
";

fn hook(event: &str) -> String {
    format!(
        "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {{{{ .Release.Name }}}}-{event}\n  annotations:\n    \
         helm.sh/hook: {event}\n---\n"
    )
}

fn hooked() -> Arc<Chart> {
    let hooks: String =
        ["pre-rollback", "post-rollback", "pre-delete", "post-delete"].into_iter().map(hook).collect();
    chart("web", &[("templates/all.yaml", RISKY), ("templates/hooks.yaml", &hooks)])
}

/// The objects that a reconcile created, in order.
fn created(reconcile: &Reconcile) -> Vec<&str> {
    let made = reconcile.objects.iter().filter(|change| change.action == Action::Created);
    made.map(|change| change.object.name.as_str()).collect()
}

async fn record(world: &World, revision: i64) -> Release {
    let secret = world.get(&world.api("", "Secret"), &release::secret_name("site", revision)).await.unwrap();
    release::from_secret(&secret).unwrap()
}

async fn store(world: &World, record: &Release) {
    let secret = release::secret(record, ("createdAt", jiff::Timestamp::UNIX_EPOCH));
    let secret: DynamicObject = serde_json::from_value(secret).unwrap();
    world.api("", "Secret").create(&PostParams::default(), &secret).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failed_upgrade_runs_rollback_hooks_and_stores_its_revision() {
    let mut world = World::start(vec![web(hooked())]).await;
    world.create_web("site", json!({})).await;
    world.outcome("site", Outcome::Installed).await;
    world.patch(&world.webs(), "site", json!({"spec": {"bad": true, "greeting": "two"}})).await;
    let reconcile = world.outcome("site", Outcome::Failed).await;
    let [change] = reconcile.releases.as_slice() else { panic!("{:?}", reconcile.releases) };
    assert_eq!((change.step, change.revision), (ReleaseStep::RolledBack, 3));
    assert_eq!(change.why, "the upgrade to revision 2 failed");
    assert_eq!(created(&reconcile), ["site-pre-rollback", "site-post-rollback"]);
    let chain = &reconcile.failure.as_ref().unwrap().chain;
    assert_eq!(chain[1], "upgrade failed; rolled back to the last good manifest");

    // Attempts replace each other: what was good before them stays in the history.
    world.outcome("site", Outcome::Failed).await;
    world.patch(&world.webs(), "site", json!({"spec": {"bad": null, "greeting": null}})).await;
    world
        .until("a good pass", |event| match event {
            Event::Reconciled(reconcile) if reconcile.failure.is_none() => Some(()),
            _ => None,
        })
        .await;
    world.greeting("site-config", "hello").await;
    let revisions = world.revisions("site").await;
    assert_eq!(revisions.len(), 3, "{revisions:?}");
    assert_eq!(revisions[0], "1 superseded");
    assert!(revisions[1].ends_with(" failed") && revisions[2].ends_with(" deployed"), "{revisions:?}");
    let number: i64 = revisions[2].split(' ').next().unwrap().parse().unwrap();
    let last = record(&world, number).await;
    assert!(last.info.description.starts_with("Rollback to "), "{}", last.info.description);
    assert_eq!(last.hooks.iter().filter(|hook| hook.last_run.phase == "Succeeded").count(), 2);
    let object = world.get(&world.webs(), "site").await.unwrap();
    assert_eq!(condition(&object, "ReleaseFailed"), None);
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_uninstall_of_a_failed_install_runs_its_delete_hooks() {
    let mut world = World::start(vec![web(hooked())]).await;
    world.create_web("site", json!({"bad": true})).await;
    let reconcile = world.outcome("site", Outcome::Failed).await;
    assert_eq!(created(&reconcile), ["site-config", "site-pre-delete", "site-post-delete"]);
    assert!(reconcile.releases.is_empty());
    world.patch(&world.webs(), "site", json!({"spec": {"bad": null}})).await;
    world.outcome("site", Outcome::Installed).await;
    assert_eq!(world.revisions("site").await, ["1 deployed"]);
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_revision_that_helm_rollback_made_is_upgraded_and_not_rewritten() {
    let mut world = World::start(vec![web(hooked())]).await;
    world.create_web("site", json!({})).await;
    world.outcome("site", Outcome::Installed).await;
    world.patch(&world.webs(), "site", json!({"spec": {"greeting": "two"}})).await;
    world.outcome("site", Outcome::Upgraded).await;
    // `helm rollback site 1`.
    let mut third = record(&world, 1).await;
    third.version = 3;
    third.info.status = Status::Deployed;
    third.info.description = "Rollback to 1".to_owned();
    store(&world, &third).await;
    world.reconcile_now("site").await;
    let reconcile = world.outcome("site", Outcome::Upgraded).await;
    let [change] = reconcile.releases.as_slice() else { panic!("{:?}", reconcile.releases) };
    assert_eq!((change.step, change.revision, change.surplus), (ReleaseStep::Upgraded, 4, false));
    assert_eq!(change.why, "revision 3 was made beside opdev (Rollback to 1)");
    assert_eq!(record(&world, 3).await.info.description, "Rollback to 1");
    assert_eq!(record(&world, 4).await.info.description, "Upgrade complete");
    world.reconcile_now("site").await;
    world.outcome("site", Outcome::Unchanged).await;
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_release_that_helm_uninstall_took_away_comes_back_and_what_is_left_is_kept() {
    let mut world = World::start(vec![web(hooked())]).await;
    world.create_web("site", json!({})).await;
    world.outcome("site", Outcome::Installed).await;
    let services = world.api("", "Service");
    let before = world.get(&services, "site").await.unwrap();
    // `helm uninstall site`, seen before it has come to the Service.
    world.delete(&world.api("", "Secret"), "sh.helm.release.v1.site.v1").await;
    world.delete(&world.api("", "ConfigMap"), "site-config").await;
    let reconcile = world.outcome("site", Outcome::Installed).await;
    assert_eq!(created(&reconcile), ["site-config"]);
    assert_eq!(world.revisions("site").await, ["1 deployed"]);
    let after = world.get(&services, "site").await.unwrap();
    assert_eq!(after["metadata"]["uid"], before["metadata"]["uid"], "it was taken over, not made anew");
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn two_templates_that_give_one_object_are_refused_with_both_files() {
    let twin = RISKY.split("---").next().unwrap().replace("hello", "twin");
    let files = [("templates/all.yaml", RISKY), ("templates/twin.yaml", twin.as_str())];
    let mut world = World::start(vec![web(chart("web", &files))]).await;
    world.create_web("site", json!({})).await;
    let reconcile = world.outcome("site", Outcome::Failed).await;
    let words = "ConfigMap \"site-config\" is in templates/all.yaml and in templates/twin.yaml";
    let chain = reconcile.failure.as_ref().unwrap().chain.join(": ");
    assert!(chain.contains(words), "{chain}");
    assert!(created(&reconcile).is_empty(), "nothing was begun");

    let serve = |world: &World, number: u64, files: &[(&str, &str)]| {
        let mut watch = web(chart("web", files));
        watch.changed_in = number;
        world.sources.send(sources(number, vec![watch])).unwrap();
    };
    serve(&world, 2, &files[..1]);
    world.outcome("site", Outcome::Installed).await;
    serve(&world, 3, &files);
    let reconcile = world.outcome("site", Outcome::Failed).await;
    let diagnostic = reconcile.failure.as_ref().unwrap().diagnostic.clone().unwrap();
    assert_eq!(diagnostic.place.unwrap().file, "charts/web/templates/twin.yaml");
    let child = world.get(&world.api("", "ConfigMap"), "site-config").await.unwrap();
    assert_eq!(child["data"]["greeting"], "hello");
    world.stop().await;
}

async fn label(world: &World, name: &str, value: Value) {
    world.patch(&world.webs(), name, json!({"metadata": {"labels": {"shard": value}}})).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_left_the_selector_is_cleaned_up_and_what_is_anothers_is_left_alone() {
    let mut watch = web(hooked());
    watch.selector = json!({"matchLabels": {"shard": "a"}});
    let mut world = World::start(vec![watch]).await;
    let web = |name: &str, shard: &str, finalizers: Value| {
        json!({"apiVersion": "test.my.domain/v1", "kind": "Web", "spec": {},
            "metadata": {"name": name, "labels": {"shard": shard}, "finalizers": finalizers}})
    };
    let finalizer = "helm.sdk.operatorframework.io/uninstall-release";
    // Another operator looks after shard b, with the same finalizer.
    world.create(&world.webs(), web("other", "b", json!([finalizer]))).await;
    world.delete(&world.webs(), "other").await;
    world.create(&world.webs(), web("site", "a", json!([]))).await;
    let reconcile = world.outcome("site", Outcome::Installed).await;
    assert_eq!(reconcile.object.name, "site");

    label(&world, "site", json!("b")).await;
    world.patch(&world.webs(), "site", json!({"spec": {"greeting": "nobody listens"}})).await;
    world.delete(&world.webs(), "site").await;
    let reconciles = std::cell::RefCell::new(Vec::new());
    world
        .until("the uninstall", |event| match event {
            Event::Reconciled(reconcile) => {
                reconciles.borrow_mut().push(format!("{} {:?}", reconcile.object.name, reconcile.outcome));
                (reconcile.outcome == Outcome::Uninstalled).then_some(())
            }
            _ => None,
        })
        .await;
    assert!(
        !reconciles
            .borrow()
            .iter()
            .any(|reconcile| reconcile.contains("Upgraded") || reconcile.contains("other")),
        "{reconciles:?}"
    );
    assert!(world.get(&world.webs(), "site").await.is_none());
    assert!(world.get(&world.api("", "Service"), "site").await.is_none());
    let other = world.get(&world.webs(), "other").await.unwrap();
    assert_eq!(other["metadata"]["finalizers"], json!([finalizer]));
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn annotations_of_the_hybrid_library_are_said_to_do_nothing() {
    let mut world = World::start_with(
        vec![web(hooked())],
        Settings { hook_timeout: Duration::from_secs(5), ..settings() },
    )
    .await;
    let object = json!({"apiVersion": "test.my.domain/v1", "kind": "Web", "spec": {}, "metadata": {"name": "site",
        "annotations": {"helm.sdk.operatorframework.io/uninstall-disable-hooks": "true"}}});
    world.create(&world.webs(), object).await;
    world.outcome("site", Outcome::Installed).await;
    let words = "the annotation helm.sdk.operatorframework.io/uninstall-disable-hooks has no effect";
    assert!(world.notices.iter().any(|text| text.contains(words)), "{:?}", world.notices);
    world.delete(&world.webs(), "site").await;
    let reconcile = world.outcome("site", Outcome::Uninstalled).await;
    assert_eq!(created(&reconcile), ["site-pre-delete", "site-post-delete"]);
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn of_all_namespaces_only_the_named_ones_are_reconciled() {
    let only = vec!["default".to_owned(), "second".to_owned()];
    let mut world = World::start_with(vec![web(hooked())], Settings { only, ..settings() }).await;
    let namespaces = world.cluster_api("", "Namespace");
    for name in ["second", "third"] {
        let object = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
        world.create(&namespaces, object).await;
    }
    let kind =
        kube::api::ApiResource::from_gvk(&kube::core::GroupVersionKind::gvk("test.my.domain", "v1", "Web"));
    for namespace in ["third", "second"] {
        let webs = kube::api::Api::<DynamicObject>::namespaced_with(world.client.clone(), namespace, &kind);
        let object = json!({"apiVersion": "test.my.domain/v1", "kind": "Web", "spec": {}, "metadata": {"name": namespace}});
        world.create(&webs, object).await;
    }
    // The one of the third namespace is older, so that its reconcile would come first.
    let reconcile = world
        .until("a pass", |event| match event {
            Event::Reconciled(reconcile) => Some(Arc::clone(reconcile)),
            _ => None,
        })
        .await;
    assert_eq!((reconcile.object.name.as_str(), reconcile.outcome), ("second", Outcome::Installed));
    world.create_web("site", json!({})).await;
    world.outcome("site", Outcome::Installed).await;
    world.stop().await;
}
