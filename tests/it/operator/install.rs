//! Install, upgrade, rewrite, repair, uninstall.

use super::world::{World, causes, chart, condition, fed_by, settings, sources, watch_of, web};
use expect_test::expect;
use opdev_client::read_only::ReadOnly;
use opdev_event::{Action, CauseKind, Outcome};
use serde_json::json;
use std::sync::Arc;

const CONFIG: &str = "apiVersion: v1
kind: ConfigMap
metadata:
  name: {{ .Release.Name }}-config
data:
  greeting: {{ .Values.greeting | printf `%q` }}
";

const EXTRA: &str = "{{ if .Values.extra }}
apiVersion: v1
kind: ConfigMap
metadata:
  name: {{ .Release.Name }}-extra
data:
  refuse: {{ .Values.refuse | printf `%q` }}
{{ end }}";

fn web_chart() -> Arc<opdev_helm::chart::Chart> {
    chart(
        "web",
        &[
            ("values.yaml", "greeting: hello\nextra: false\nrefuse: 'false'\n"),
            ("templates/all.yaml", CONFIG),
            ("templates/extra.yaml", EXTRA),
            ("templates/NOTES.txt", "revision {{ .Release.Revision }} of {{ .Release.Name }}"),
        ],
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn a_custom_resource_becomes_a_release() {
    let mut world = World::start(vec![web(web_chart())]).await;
    let created = world.create_web("site", json!({"greeting": "hi"})).await;
    let reconcile = world.reconcile("site").await;
    assert_eq!(reconcile.outcome, Outcome::Installed, "{:?}", reconcile.failure);
    assert_eq!(world.revisions("site").await, ["1 deployed"]);

    let object = world.get(&world.webs(), "site").await.unwrap();
    assert_eq!(object["metadata"]["finalizers"], json!(["helm.sdk.operatorframework.io/uninstall-release"]));
    let deployed = condition(&object, "Deployed").unwrap();
    assert_eq!(deployed, ("True".into(), "InstallSuccessful".into(), "revision 1 of site".into()));
    assert_eq!(condition(&object, "Initialized").unwrap().0, "True");
    assert_eq!(object["status"]["deployedRelease"]["name"], "site");
    let manifest = object["status"]["deployedRelease"]["manifest"].as_str().unwrap();
    expect![[r#"
        ---
        # Source: web/templates/all.yaml
        apiVersion: v1
        kind: ConfigMap
        metadata:
          name: site-config
        data:
          greeting: "hi"
    "#]]
    .assert_eq(manifest);

    let child = world.get(&world.api("", "ConfigMap"), "site-config").await.unwrap();
    assert_eq!(child["data"]["greeting"], "hi");
    let metadata = &child["metadata"];
    assert_eq!(metadata["ownerReferences"][0]["uid"], created["metadata"]["uid"]);
    assert_eq!(metadata["ownerReferences"][0]["blockOwnerDeletion"], true);
    assert_eq!(metadata["labels"]["helm.sdk.operatorframework.io/chart"], "web");
    assert_eq!(metadata["labels"]["app.kubernetes.io/managed-by"], "Helm");
    assert_eq!(metadata["annotations"]["meta.helm.sh/release-name"], "site");
    let secret = world.get(&world.api("", "Secret"), "sh.helm.release.v1.site.v1").await.unwrap();
    assert_eq!(secret["metadata"]["ownerReferences"][0]["kind"], "Web");
    assert_eq!(secret["type"], "helm.sh/release.v1");

    let verbs: Vec<String> =
        reconcile.calls.iter().map(|call| format!("{} {}", call.verb, call.target)).collect();
    let at = |call: &str| {
        verbs.iter().position(|seen| seen == call).unwrap_or_else(|| panic!("{call}: {verbs:#?}"))
    };
    assert!(at("patch webs/site") < at("create secrets"), "the finalizer comes before anything is installed");
    assert!(at("create secrets") < at("patch configmaps/site-config"));
    assert!(at("update secrets/sh.helm.release.v1.site.v1") < at("update webs/site/status"));
    assert!(reconcile.status.iter().any(|change| change.path.to_string() == ".status"));
    assert_eq!(reconcile.objects[0].action, Action::Created);
    let steps: Vec<&str> = reconcile.steps.iter().map(|step| step.name.as_str()).collect();
    assert_eq!(steps, ["read", "render", "plan", "release", "apply", "release", "status"]);
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn own_writes_lead_to_no_reconcile_but_show_on_the_next_one() {
    let mut world = World::start(vec![web(web_chart())]).await;
    world.create_web("site", json!({})).await;
    world.outcome("site", Outcome::Installed).await;
    let reconciles = world.reconciles_until_quiet("site", "-config").await;
    assert!(
        reconciles.is_empty(),
        "{:?}",
        reconciles.iter().map(|reconcile| causes(reconcile)).collect::<Vec<_>>()
    );
    world.reconcile_now("site").await;
    let reconcile = world.reconcile("site").await;
    assert_eq!(reconcile.outcome, Outcome::Unchanged);
    let all = causes(&reconcile);
    assert!(reconcile.causes.iter().any(|cause| cause.kind == CauseKind::User));
    assert!(all.iter().any(|cause| cause.starts_with("own Modified Web .metadata.finalizers")), "{all:?}");
    assert!(
        reconcile.calls.iter().all(|call| ["get", "list"].contains(&call.verb.as_str())),
        "{:?}",
        reconcile.calls
    );
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn drift_is_put_back_and_named() {
    let mut world = World::start(vec![web(web_chart())]).await;
    world.create_web("site", json!({})).await;
    world.outcome("site", Outcome::Installed).await;
    let children = world.api("", "ConfigMap");
    world.patch(&children, "site-config", json!({"data": {"greeting": "drift", "more": "kept"}})).await;
    let reconcile = world.outcome("site", Outcome::Repaired).await;
    let all = causes(&reconcile);
    assert!(
        all.iter().any(|cause| cause == "Modified ConfigMap .data.greeting .data.more by somebody"),
        "{all:?}"
    );
    let change = &reconcile.objects[0];
    assert_eq!((change.object.name.as_str(), change.action), ("site-config", Action::Updated));
    assert_eq!(change.changes.len(), 1);
    assert_eq!(change.changes[0].path.to_string(), ".data.greeting");
    assert_eq!(change.taken_from, ["somebody"]);
    let child = world.get(&children, "site-config").await.unwrap();
    assert_eq!(child["data"], json!({"greeting": "hello", "more": "kept"}));

    world.delete(&children, "site-config").await;
    let reconcile = world.outcome("site", Outcome::Repaired).await;
    assert!(
        causes(&reconcile).iter().any(|cause| cause.starts_with("Deleted ConfigMap")),
        "{:?}",
        causes(&reconcile)
    );
    assert!(world.get(&children, "site-config").await.is_some());
    assert_eq!(world.revisions("site").await, ["1 deployed"]);
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_changed_spec_is_a_new_revision() {
    let mut world = World::start(vec![web(web_chart())]).await;
    world.create_web("site", json!({"extra": true})).await;
    world.outcome("site", Outcome::Installed).await;
    let children = world.api("", "ConfigMap");
    assert!(world.get(&children, "site-extra").await.is_some());
    world.patch(&world.webs(), "site", json!({"spec": {"extra": false, "greeting": "two"}})).await;
    let reconcile = world.outcome("site", Outcome::Upgraded).await;
    let all = causes(&reconcile);
    assert!(
        all.iter().any(|cause| cause == "Modified Web .spec.extra .spec.greeting by somebody"),
        "{all:?}"
    );
    assert_eq!(world.revisions("site").await, ["1 superseded", "2 deployed"]);
    assert!(world.get(&children, "site-extra").await.is_none(), "what left the chart leaves the cluster");
    assert_eq!(world.get(&children, "site-config").await.unwrap()["data"]["greeting"], "two");
    let object = world.get(&world.webs(), "site").await.unwrap();
    let deployed = condition(&object, "Deployed").unwrap();
    assert_eq!((deployed.1.as_str(), deployed.2.as_str()), ("UpgradeSuccessful", "revision 2 of site"));
    for greeting in 3..15 {
        world.patch(&world.webs(), "site", json!({"spec": {"greeting": greeting.to_string()}})).await;
        world.outcome("site", Outcome::Upgraded).await;
    }
    let kept = world.revisions("site").await;
    assert_eq!((kept.len(), kept.last().unwrap().as_str()), (10, "14 deployed"));
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_saved_file_rewrites_the_revision_and_settles() {
    let shop = chart("shop", &[("templates/all.yaml", CONFIG), ("values.yaml", "greeting: shop\n")]);
    let mut world = World::start(vec![web(web_chart()), watch_of("Shop", Arc::clone(&shop))]).await;
    world.create_web("site", json!({})).await;
    world.outcome("site", Outcome::Installed).await;
    let object = json!({"apiVersion": "test.my.domain/v1", "kind": "Shop", "metadata": {"name": "corner"}, "spec": {}});
    world.create(&world.api("test.my.domain", "Shop"), object).await;
    world.outcome("corner", Outcome::Installed).await;

    let edited = chart(
        "web",
        &[
            ("values.yaml", "greeting: edited\n"),
            ("templates/all.yaml", CONFIG),
            ("templates/NOTES.txt", "new notes"),
        ],
    );
    let mut watch = web(edited);
    watch.changed_in = 2;
    world.sources.send(sources(2, vec![watch, watch_of("Shop", shop)])).unwrap();
    let reconcile = world.reconcile("site").await;
    assert_eq!(reconcile.outcome, Outcome::Upgraded);
    assert!(matches!(&reconcile.causes.last().unwrap().kind, CauseKind::Reload { sources: 2, files }
        if files == &["charts/web/templates/all.yaml"]));
    assert_eq!(reconcile.sources, 2);
    let settled = world.settled().await;
    assert_eq!((settled.sources, settled.objects, settled.failed), (2, 1, 0));
    assert_eq!(world.revisions("site").await, ["1 deployed"], "an edit does not bury the history");
    let children = world.api("", "ConfigMap");
    assert_eq!(world.get(&children, "site-config").await.unwrap()["data"]["greeting"], "edited");
    assert_eq!(world.get(&children, "corner-config").await.unwrap()["data"]["greeting"], "shop");
    let object = world.get(&world.webs(), "site").await.unwrap();
    assert_eq!(condition(&object, "Deployed").unwrap().2, "new notes");

    let notes = chart(
        "web",
        &[
            ("values.yaml", "greeting: edited\n"),
            ("templates/all.yaml", CONFIG),
            ("templates/NOTES.txt", "other notes"),
        ],
    );
    let mut watch = web(notes);
    watch.changed_in = 3;
    world.sources.send(sources(3, vec![watch])).unwrap();
    let reconcile = world.reconcile("site").await;
    assert!(reconcile.objects.is_empty(), "only the notes changed: {:?}", reconcile.objects);
    let object = world.get(&world.webs(), "site").await.unwrap();
    assert_eq!(condition(&object, "Deployed").unwrap().2, "other notes");
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deleted_custom_resource_leaves_nothing() {
    let mut world = World::start(vec![web(web_chart())]).await;
    world.create_web("site", json!({"extra": true})).await;
    world.outcome("site", Outcome::Installed).await;
    // The chart does not load any more: the stored release is enough to uninstall.
    let mut broken = web(web_chart());
    fed_by(&mut broken).chart = None;
    broken.changed_in = 2;
    world.sources.send(sources(2, vec![broken])).unwrap();
    let reconcile = world.reconcile("site").await;
    assert_eq!(reconcile.outcome, Outcome::Failed);
    assert!(reconcile.requeue.is_none(), "trying again cannot help");
    world.delete(&world.webs(), "site").await;
    let reconcile = world.outcome("site", Outcome::Uninstalled).await;
    assert_eq!(reconcile.objects.iter().filter(|change| change.action == Action::Deleted).count(), 2);
    assert!(world.get(&world.webs(), "site").await.is_none());
    assert!(world.get(&world.api("", "ConfigMap"), "site-config").await.is_none());
    assert!(world.get(&world.api("", "ConfigMap"), "site-extra").await.is_none());
    assert!(world.revisions("site").await.is_empty());
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_written_when_read_only() {
    let mut settings = settings();
    settings.read_only = ReadOnly::new(true);
    let mut world = World::start_with(vec![web(web_chart())], settings).await;
    world.create_web("site", json!({})).await;
    let reconcile = world.reconcile("site").await;
    assert_eq!(reconcile.outcome, Outcome::Waiting);
    assert!(
        reconcile.calls.iter().all(|call| call.verb == "get" || call.verb == "list"),
        "{:?}",
        reconcile.calls
    );
    let words = reconcile.waiting.as_deref().unwrap();
    expect!["read-only: it would create ConfigMap default/site-config"].assert_eq(words);
    assert!(world.revisions("site").await.is_empty());
    world.stop().await;
}
