//! Failures, the words about each, and the way back.

use super::world::{World, causes, chart, condition, fed_by, settings, sources, watch_of, web};
use expect_test::expect;
use kube::api::{DynamicObject, PostParams};
use opdev_event::{Action, Outcome};
use opdev_helm::release;
use serde_json::json;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// One good object and one that the API server refuses while `bad` is true: a Service without ports.
const GOOD_AND_BAD: &str = "apiVersion: v1
kind: ConfigMap
metadata:
  name: {{ .Release.Name }}-config
data:
  greeting: {{ .Values.greeting | printf `%q` }}
{{- if .Values.second }}
---
apiVersion: v1
kind: ConfigMap
metadata:
  name: {{ .Release.Name }}-second
{{- end }}
---
apiVersion: v1
kind: Service
metadata:
  name: {{ .Release.Name }}
spec:
  {{- if .Values.bad }}
  ports: []
  type: Nonsense
  {{- else }}
  ports:
  - port: 80
  {{- end }}
";

fn risky() -> Arc<opdev_helm::chart::Chart> {
    chart(
        "web",
        &[
            ("values.yaml", "greeting: hello\nbad: false\nsecond: false\n"),
            ("templates/all.yaml", GOOD_AND_BAD),
        ],
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failed_install_is_taken_back_and_retried_until_it_is_mended() {
    let mut world = World::start(vec![web(risky())]).await;
    world.create_web("site", json!({"bad": true})).await;
    let reconcile = world.reconcile("site").await;
    assert_eq!(reconcile.outcome, Outcome::Failed);
    let failure = reconcile.failure.clone().unwrap();
    assert_eq!(failure.chain[0], "failed to install release");
    // The API server's own words.
    expect![[r#"Service "site" is invalid: [spec.ports: Required value, spec.type: Unsupported value: "Nonsense": supported values: "ClusterIP", "ExternalName", "LoadBalancer", "NodePort"]"#]]
    .assert_eq(failure.chain.last().unwrap());
    let place = failure.diagnostic.as_ref().and_then(|found| found.place.as_ref()).unwrap();
    assert_eq!(
        (place.file.as_str(), place.line),
        ("charts/web/templates/all.yaml", 22),
        "the line of the field in the Service's template"
    );
    assert_eq!(failure.attempt, 1);
    assert_eq!(reconcile.requeue.as_ref().unwrap().after, Duration::from_millis(5));
    let actions: Vec<Action> = reconcile.objects.iter().map(|change| change.action).collect();
    assert_eq!(actions, [Action::Created, Action::Deleted], "the good half is taken back");
    let object = world.get(&world.webs(), "site").await.unwrap();
    let (status, reason, message) = condition(&object, "ReleaseFailed").unwrap();
    assert_eq!((status.as_str(), reason.as_str()), ("True", "InstallError"));
    assert!(message.starts_with("failed to install release: ") && message.contains("Nonsense"), "{message}");

    let again = world.reconcile("site").await;
    assert_eq!(again.failure.as_ref().unwrap().attempt, 2);
    assert!(causes(&again).iter().any(|cause| cause.starts_with("Retry")), "{:?}", causes(&again));
    assert_eq!(again.requeue.as_ref().unwrap().after, Duration::from_millis(10));
    world.patch(&world.webs(), "site", json!({"spec": {"bad": false}})).await;
    world.outcome("site", Outcome::Installed).await;
    let object = world.get(&world.webs(), "site").await.unwrap();
    assert_eq!(condition(&object, "ReleaseFailed"), None);
    assert_eq!(world.revisions("site").await, ["1 deployed"]);
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_object_without_a_name_or_of_an_unknown_kind_leads_to_its_template() {
    let good = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: good}\n";
    for (bad, says) in [
        (
            "apiVersion: v1\nkind: Service\nmetadata: {name: {{ .Values.none }} }\n",
            "resource name may not be empty",
        ),
        ("apiVersion: a.b/v1\nkind: Nothing\nmetadata: {name: x}\n", "no matches for kind \"Nothing\""),
        ("metadata: {name: x}\n", "Object 'Kind' is missing"),
    ] {
        let chart = chart("web", &[("templates/a.yaml", good), ("templates/sub/bad.yaml", bad)]);
        let mut world = World::start(vec![web(chart)]).await;
        world.create_web("site", json!({})).await;
        let failure = world.outcome("site", Outcome::Failed).await.failure.clone().unwrap();
        let found = failure.diagnostic.unwrap_or_else(|| panic!("{says}: {:?}", failure.chain));
        assert_eq!(found.place.as_ref().unwrap().file, "charts/web/templates/sub/bad.yaml");
        assert!(found.message.contains(says), "{found:?}");
        assert!(failure.chain.contains(&found.message), "it is said once: {:?}", failure.chain);
        world.stop().await;
    }
}

/// The good revision, the newest one that failed, and the rollback from it.
fn is_rolled_back(revisions: &[String]) -> bool {
    let [first, failed, rollback] = revisions else { return false };
    first == "1 superseded" && failed.ends_with(" failed") && rollback.ends_with(" deployed")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failed_upgrade_rolls_back_and_heals_without_a_revision() {
    let mut world = World::start(vec![web(risky())]).await;
    world.create_web("site", json!({})).await;
    world.outcome("site", Outcome::Installed).await;
    let spec = json!({"spec": {"bad": true, "second": true, "greeting": "two"}});
    world.patch(&world.webs(), "site", spec).await;
    let reconcile = world.outcome("site", Outcome::Failed).await;
    let failure = reconcile.failure.clone().unwrap();
    assert_eq!(failure.chain[0], "failed to upgrade release");
    assert_eq!(failure.chain[1], "upgrade failed; rolled back to the last good manifest");
    expect![[r#"Service "site" is invalid: [spec.ports: Required value, spec.type: Unsupported value: "Nonsense": supported values: "ClusterIP", "ExternalName", "LoadBalancer", "NodePort"]"#]]
    .assert_eq(failure.chain.last().unwrap());
    let children = world.api("", "ConfigMap");
    // A retry may be half way through just now; the back-off soon leaves time to look between two of them.
    while world.get(&children, "site-second").await.is_some()
        || world.get(&children, "site-config").await.unwrap()["data"]["greeting"] != "hello"
        || !is_rolled_back(&world.revisions("site").await)
    {
        world.outcome("site", Outcome::Failed).await;
    }
    let object = world.get(&world.webs(), "site").await.unwrap();
    let failed = condition(&object, "ReleaseFailed").unwrap();
    assert_eq!((failed.0.as_str(), failed.1.as_str()), ("True", "UpgradeError"));
    assert!(failed.2.contains("Nonsense"));
    assert!(object["status"]["deployedRelease"]["manifest"].as_str().unwrap().contains("\"hello\""));

    let back = json!({"spec": {"bad": null, "second": null, "greeting": null}});
    world.patch(&world.webs(), "site", back).await;
    world
        .until("a good pass", |event| match event {
            opdev_event::Event::Reconciled(reconcile) if reconcile.failure.is_none() => Some(()),
            _ => None,
        })
        .await;
    let object = world.get(&world.webs(), "site").await.unwrap();
    assert_eq!(condition(&object, "ReleaseFailed"), None);
    let revisions = world.revisions("site").await;
    assert!(is_rolled_back(&revisions), "no new revision: {revisions:?}");
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_broken_edit_rolls_back_and_says_where() {
    let mut world = World::start(vec![web(risky())]).await;
    world.create_web("site", json!({})).await;
    world.outcome("site", Outcome::Installed).await;
    let serve = |world: &World, number: u64, template: &str| {
        let edited = chart("web", &[("values.yaml", "greeting: new\n"), ("templates/all.yaml", template)]);
        let mut watch = web(edited);
        watch.changed_in = number;
        world.sources.send(sources(number, vec![watch])).unwrap();
    };
    serve(&world, 2, "kind: ConfigMap\ndata:\n  a: {{ fail \"no way\" }}\n");
    let reconcile = world.outcome("site", Outcome::Failed).await;
    let diagnostic = reconcile.failure.as_ref().unwrap().diagnostic.clone().unwrap();
    expect!["execution error at (web/templates/all.yaml:3:8): no way"].assert_eq(&diagnostic.message);
    let place = diagnostic.place.unwrap();
    assert_eq!((place.file.as_str(), place.line), ("charts/web/templates/all.yaml", 3));
    expect![[r#"
        2 | data:
        3 |   a: {{ fail "no way" }}
          |         ^"#]]
    .assert_eq(&diagnostic.excerpt.unwrap());
    let settled = world.settled().await;
    assert_eq!((settled.objects, settled.failed), (1, 1));
    let object = world.get(&world.webs(), "site").await.unwrap();
    let (status, reason, message) = condition(&object, "Irreconcilable").unwrap();
    assert_eq!((status.as_str(), reason.as_str()), ("True", "ReconcileError"));
    assert!(message.starts_with("failed to get candidate release: "), "{message}");

    serve(&world, 3, &GOOD_AND_BAD.replace(".Values.bad", "true"));
    let reconcile = world
        .until("a refused write", |event| match event {
            opdev_event::Event::Reconciled(reconcile) if reconcile.sources == 3 => {
                Some(Arc::clone(reconcile))
            }
            _ => None,
        })
        .await;
    assert_eq!(
        reconcile.failure.as_ref().unwrap().chain[0],
        "upgrade failed; rolled back to the last good manifest"
    );
    // It is tried again and again, and rolled back each time.
    world.greeting("site-config", "hello").await;

    serve(&world, 4, GOOD_AND_BAD);
    world.outcome("site", Outcome::Upgraded).await;
    let object = world.get(&world.webs(), "site").await.unwrap();
    assert_eq!(condition(&object, "ReleaseFailed"), None);
    assert_eq!(condition(&object, "Irreconcilable"), None);
    assert_eq!(world.revisions("site").await, ["1 deployed"]);
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn objects_of_others_are_refused_in_helms_words() {
    let mut world = World::start(vec![web(risky())]).await;
    let children = world.api("", "ConfigMap");
    let foreign = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "site-config"}, "data": {"mine": "yes"}});
    world.create(&children, foreign).await;
    world.create_web("site", json!({})).await;
    let reconcile = world.outcome("site", Outcome::Failed).await;
    let text = reconcile.failure.as_ref().unwrap().chain.join(": ");
    assert!(
        text.starts_with(
            "failed to install release: Unable to continue with install: ConfigMap \"site-config\" in namespace \
             \"default\" exists and cannot be imported into the current release: invalid ownership metadata; label \
             validation error: missing key \"app.kubernetes.io/managed-by\": must be set to \"Helm\""
        ),
        "{text}"
    );
    let kept = world.get(&children, "site-config").await.unwrap();
    assert_eq!(kept["data"], json!({"mine": "yes"}));
    assert!(world.revisions("site").await.is_empty());
    world.delete(&children, "site-config").await;
    world.outcome("site", Outcome::Installed).await;
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn names_specs_and_periods_that_cannot_be_are_said_plainly() {
    let mut world = World::start(vec![web(risky())]).await;
    let long = "a".repeat(54);
    world.create_web(&long, json!({})).await;
    let reconcile = world.reconcile(&long).await;
    expect![[r#"release name "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa": the name of a custom resource names its Helm release, which may have 53 characters; this one has 54. Create it again with a shorter name"#]]
    .assert_eq(&reconcile.failure.as_ref().unwrap().chain[1]);
    assert!(reconcile.requeue.is_none(), "a name does not get shorter by waiting");

    let empty = json!({"apiVersion": "test.my.domain/v1", "kind": "Web", "metadata": {"name": "bare"}});
    world.create(&world.webs(), empty).await;
    let reconcile = world.reconcile("bare").await;
    assert!(reconcile.failure.as_ref().unwrap().chain[0].starts_with("failed to get spec: expected map"));
    assert!(reconcile.status.is_empty());

    let object = json!({"apiVersion": "test.my.domain/v1", "kind": "Web", "spec": {}, "metadata": {"name": "slow",
        "annotations": {"helm.sdk.operatorframework.io/reconcile-period": "soon"}}});
    world.create(&world.webs(), object).await;
    let reconcile = world.until("slow", |event| match event {
        opdev_event::Event::Reconciled(reconcile) if reconcile.object.name == "slow" => {
            Some(Arc::clone(reconcile))
        }
        _ => None,
    });
    let reconcile = reconcile.await;
    expect![[r#"annotation helm.sdk.operatorframework.io/reconcile-period: time: invalid duration "soon"; write it like 30s or 1h2m"#]]
    .assert_eq(&reconcile.failure.as_ref().unwrap().chain[0]);
    world
        .patch(
            &world.webs(),
            "slow",
            json!({"metadata": {"annotations": {
            "helm.sdk.operatorframework.io/reconcile-period": "20ms"}}}),
        )
        .await;
    world.outcome("slow", Outcome::Installed).await;
    // Echoes of the install may lead to reconciles before the period does.
    world
        .until("a pass for the period", |event| match event {
            opdev_event::Event::Reconciled(reconcile) => (reconcile.object.name == "slow"
                && reconcile.outcome == Outcome::Unchanged
                && causes(reconcile).iter().any(|cause| cause == "Period"))
            .then_some(()),
            _ => None,
        })
        .await;
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_release_of_another_chart_or_kind_is_not_touched() {
    let shop = chart("web", &[("templates/all.yaml", "")]);
    let mut world = World::start(vec![web(risky()), watch_of("Shop", shop)]).await;
    world.create_web("site", json!({})).await;
    world.outcome("site", Outcome::Installed).await;
    let other =
        json!({"apiVersion": "test.my.domain/v1", "kind": "Shop", "metadata": {"name": "site"}, "spec": {}});
    world.create(&world.api("test.my.domain", "Shop"), other).await;
    let reconcile = world.outcome("site", Outcome::Failed).await;
    let text = &reconcile.failure.as_ref().unwrap().chain[0];
    assert!(text.starts_with(
        "duplicate release name: found existing release with name \"site\" of a custom resource"
    ));

    let renamed = chart("renamed", &[("templates/all.yaml", GOOD_AND_BAD)]);
    let mut watch = web(renamed);
    watch.changed_in = 2;
    world.sources.send(sources(2, vec![watch])).unwrap();
    let reconcile = world
        .until("the renamed chart", |event| match event {
            opdev_event::Event::Reconciled(reconcile) if reconcile.sources == 2 => {
                Some(Arc::clone(reconcile))
            }
            _ => None,
        })
        .await;
    assert_eq!(
        reconcile.failure.as_ref().unwrap().chain[0],
        "duplicate release name: found existing release with name \"site\" for chart \"web\""
    );
    assert_eq!(world.revisions("site").await, ["1 deployed"]);
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn overrides_are_strings_and_said_in_an_event() {
    let text = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {{ .Release.Name }}-config\ndata:\n  \
                greeting: {{ printf `%T %v` .Values.image.tag .Values.image.tag | printf `%q` }}\n";
    let mut watch = web(chart("web", &[("templates/all.yaml", text)]));
    fed_by(&mut watch).overrides = BTreeMap::from([("image.tag".to_owned(), "3".to_owned())]);
    let mut world = World::start(vec![watch]).await;
    world.create_web("site", json!({"image": {"tag": 1, "name": "kept"}})).await;
    world.outcome("site", Outcome::Installed).await;
    let child = world.get(&world.api("", "ConfigMap"), "site-config").await.unwrap();
    assert_eq!(child["data"]["greeting"], "string 3");
    let events = world.api("", "Event").list(&kube::api::ListParams::default()).await.unwrap();
    let found = events.items.iter().find(|event| event.data["reason"] == "OverrideValuesInUse").unwrap();
    assert_eq!(
        found.data["message"],
        "Chart value \"image.tag\" overridden to \"3\" by operator's watches.yaml"
    );
    assert_eq!(found.data["involvedObject"]["kind"], "Web");
    assert_eq!(found.data["source"]["component"], "web-controller");
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn kept_objects_stay_and_cluster_scoped_ones_find_their_way_back() {
    let text = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {{ .Release.Name }}-kept\n  annotations:\n    \
                helm.sh/resource-policy: keep\n---\napiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\n\
                metadata:\n  name: {{ .Release.Name }}-role\nrules: []\n";
    let mut world = World::start(vec![web(chart("web", &[("templates/all.yaml", text)]))]).await;
    world.create_web("site", json!({})).await;
    world.outcome("site", Outcome::Installed).await;
    let kept = world.get(&world.api("", "ConfigMap"), "site-kept").await.unwrap();
    assert!(kept["metadata"]["ownerReferences"].is_null());
    let roles = world.cluster_api("rbac.authorization.k8s.io", "ClusterRole");
    let role = world.get(&roles, "site-role").await.unwrap();
    assert!(role["metadata"]["ownerReferences"].is_null());
    assert_eq!(role["metadata"]["annotations"]["operator-sdk/primary-resource"], "default/site");
    assert_eq!(role["metadata"]["annotations"]["operator-sdk/primary-resource-type"], "Web.test.my.domain");
    world.delete(&roles, "site-role").await;
    let reconcile = world.outcome("site", Outcome::Repaired).await;
    assert!(
        causes(&reconcile).iter().any(|cause| cause.starts_with("Deleted ClusterRole")),
        "{:?}",
        causes(&reconcile)
    );
    world.delete(&world.webs(), "site").await;
    world.outcome("site", Outcome::Uninstalled).await;
    assert!(world.get(&roles, "site-role").await.is_none());
    assert!(world.get(&world.api("", "ConfigMap"), "site-kept").await.is_some());
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn uninstall_waits_when_asked_to() {
    let mut world = World::start_with(
        vec![web(risky())],
        opdev_release::settings::Settings { reconcile_period: Duration::from_secs(3600), ..settings() },
    )
    .await;
    let object = json!({"apiVersion": "test.my.domain/v1", "kind": "Web", "spec": {}, "metadata": {"name": "site",
        "annotations": {"helm.sdk.operatorframework.io/uninstall-wait": "true"}}});
    world.create(&world.webs(), object).await;
    world.outcome("site", Outcome::Installed).await;
    let children = world.api("", "ConfigMap");
    world.patch(&children, "site-config", json!({"metadata": {"finalizers": ["test.my.domain/hold"]}})).await;
    world.delete(&world.webs(), "site").await;
    let reconcile = world.outcome("site", Outcome::Waiting).await;
    assert_eq!(
        reconcile.requeue.as_ref().unwrap().reason.words(),
        "Waiting until all resources are deleted."
    );
    let object = world.get(&world.webs(), "site").await.unwrap();
    assert_eq!(
        condition(&object, "Deployed").unwrap(),
        ("False".into(), "UninstallSuccessful".into(), "Waiting until all resources are deleted.".into())
    );
    world.patch(&children, "site-config", json!({"metadata": {"finalizers": null}})).await;
    world.outcome("site", Outcome::Uninstalled).await;
    assert!(world.get(&world.webs(), "site").await.is_none());
    world.create_web("site", json!({})).await;
    world.outcome("site", Outcome::Installed).await;
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_left_over_pending_revision_heals_whoever_began_it() {
    let mut world = World::start(vec![web(risky())]).await;
    world.create_web("site", json!({})).await;
    world.outcome("site", Outcome::Installed).await;
    let secrets = world.api("", "Secret");
    let first = secrets.get("sh.helm.release.v1.site.v1").await.unwrap();
    let mut record = release::from_secret(&serde_json::to_value(&first).unwrap()).unwrap();
    record.version = 2;
    record.info.status = release::Status::PendingUpgrade;
    let pending = release::secret(&record, ("createdAt", jiff::Timestamp::UNIX_EPOCH));
    let mut pending: DynamicObject = serde_json::from_value(pending).unwrap();
    let owners = first.metadata.owner_references;
    secrets.create(&PostParams::default(), &pending).await.unwrap();
    world.reconcile_now("site").await;
    assert_eq!(world.reconcile("site").await.outcome, Outcome::Unchanged);
    let words = "revision 2 of release site is pending-upgrade, and opdev did not begin it";
    assert!(world.notices.iter().any(|text| text.contains(words)), "{:?}", world.notices);
    assert_eq!(world.revisions("site").await, ["1 deployed", "2 failed"]);

    secrets.delete("sh.helm.release.v1.site.v2", &kube::api::DeleteParams::default()).await.unwrap();
    pending.metadata.owner_references = owners;
    secrets.create(&PostParams::default(), &pending).await.unwrap();
    world.reconcile_now("site").await;
    world
        .until("a healed pass", |event| match event {
            opdev_event::Event::Reconciled(reconcile) if reconcile.failure.is_none() => Some(()),
            _ => None,
        })
        .await;
    world.patch(&world.webs(), "site", json!({"spec": {"greeting": "two"}})).await;
    world.outcome("site", Outcome::Upgraded).await;
    let revisions = world.revisions("site").await;
    assert!(revisions.last().unwrap().ends_with("deployed"), "{revisions:?}");
    assert!(!revisions.iter().any(|revision| revision.contains("pending")), "{revisions:?}");
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_chart_that_never_renders_the_same_is_stopped_and_named() {
    let text = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {{ .Release.Name }}-config\ndata:\n  \
                at: {{ now.UnixNano | printf `%d` | printf `%q` }}\n";
    let mut world = World::start(vec![web(chart("web", &[("templates/all.yaml", text)]))]).await;
    world.create_web("site", json!({})).await;
    world.outcome("site", Outcome::Installed).await;
    world.reconcile_now("site").await;
    // The Operator SDK's operator is woken by its own status, so that one reconcile is enough for all that
    // follow.
    for _ in 0..3 {
        let reconcile = world.reconcile("site").await;
        assert_eq!((reconcile.outcome, reconcile.releases[0].surplus), (Outcome::Upgraded, true));
    }
    assert_eq!(world.reconcile("site").await.outcome, Outcome::Unchanged);
    assert!(
        world.notices.iter().any(|text| {
            text.contains("renders differently each time") && text.contains("templates/all.yaml:6: `at: ")
        }),
        "{:?}",
        world.notices
    );
    world.reconcile_now("site").await;
    assert_eq!(world.reconcile("site").await.outcome, Outcome::Unchanged);
    assert_eq!(
        world.revisions("site").await,
        ["1 superseded", "2 superseded", "3 superseded", "4 deployed"],
        "real upgrades, as in production, but not for ever"
    );
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_kind_leaves_with_its_line_in_watches() {
    let mut world = World::start(vec![web(risky())]).await;
    world.create_web("site", json!({})).await;
    world.outcome("site", Outcome::Installed).await;
    let shop = chart("shop", &[("templates/all.yaml", GOOD_AND_BAD), ("values.yaml", "greeting: shop\n")]);
    let mut watch = watch_of("Shop", shop);
    watch.changed_in = 2;
    world.sources.send(sources(2, vec![watch])).unwrap();
    let other = json!({"apiVersion": "test.my.domain/v1", "kind": "Shop", "metadata": {"name": "corner"}, "spec": {}});
    world.create(&world.api("test.my.domain", "Shop"), other).await;
    world.outcome("corner", Outcome::Installed).await;
    world.patch(&world.webs(), "site", json!({"spec": {"greeting": "nobody listens"}})).await;
    world.patch(&world.api("test.my.domain", "Shop"), "corner", json!({"spec": {"greeting": "x"}})).await;
    let reconcile = world.until("any pass", |event| match event {
        opdev_event::Event::Reconciled(reconcile) => Some(Arc::clone(reconcile)),
        _ => None,
    });
    assert_eq!(reconcile.await.object.name, "corner");
    let child = world.get(&world.api("", "ConfigMap"), "site-config").await.unwrap();
    assert_eq!(child["data"]["greeting"], "hello", "what it installed stays");
    world.stop().await;
}
