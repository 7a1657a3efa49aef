//! The options of charts, each by its name: what an operator of the helm-operator-plugins library is given as
//! Go code, said in `opdev.yaml` or by a script beside the chart.

use super::world::{World, chart, fed_by, serve_kind, settings, sources, watch_of};
use expect_test::expect;
use kube::api::{Api, ApiResource, DynamicObject, ListParams};
use kube::core::GroupVersionKind;
use opdev_event::{Event, Outcome};
use opdev_sources::chart_options::{
    ActionOptions, Annotations, ChartEngine, ChartOptions, Choice, OnHookError,
};
use opdev_sources::{Reconciler, TypeReconciler, Watch};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

pub(super) const CONFIG: &str = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {{ .Release.Name }}-config\ndata:\n  greeting: \
                      {{ .Values.greeting | default \"hello\" | quote }}\n";

fn hook(event: &str) -> String {
    format!(
        "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {{{{ .Release.Name }}}}-{event}\n  annotations: {{helm.sh/hook: \
         {event}}}\ndata: {{}}\n"
    )
}

pub(super) fn hybrid() -> ChartOptions {
    ChartOptions { engine: Some(ChartEngine::Hybrid), ..ChartOptions::default() }
}

pub(super) fn web(files: &[(&str, &str)], options: ChartOptions) -> Watch {
    let mut watch = watch_of("Web", chart("web", files));
    fed_by(&mut watch).options = options;
    watch
}

/// The script beside the chart of a watch.
pub(super) fn beside(mut watch: Watch, text: &str) -> Watch {
    let path = format!("config/reconcilers/{}.ts", watch.gvk.kind.to_lowercase());
    let files = BTreeMap::from([(path.clone(), Arc::<str>::from(text))]);
    let program = opdev_script::program::load(&path, &files).unwrap();
    assert!(program.facts().is_chart_script());
    let script = TypeReconciler { path, program: Some(program), files, ..TypeReconciler::default() };
    fed_by(&mut watch).script = Some(Arc::new(script));
    watch
}

pub(super) fn plain() -> [(&'static str, &'static str); 1] {
    [("templates/config.yaml", CONFIG)]
}

fn conditions(object: &Value) -> BTreeMap<String, String> {
    let all = object["status"]["conditions"].as_array().cloned().unwrap_or_default();
    let text = |condition: &Value, key: &str| condition[key].as_str().unwrap_or_default().to_owned();
    all.iter()
        .map(|one| {
            (text(one, "type"), format!("{} {}", text(one, "status"), text(one, "reason")).trim().to_owned())
        })
        .collect()
}

async fn status(world: &World, name: &str, done: impl Fn(&Value) -> bool) -> Value {
    let seen = |object: Option<&DynamicObject>| object.is_some_and(|object| done(&object.data["status"]));
    let waiting = kube::runtime::wait::await_condition(world.webs(), name, seen);
    match tokio::time::timeout(Duration::from_secs(30), waiting).await {
        Ok(_) => world.get(&world.webs(), name).await.unwrap(),
        Err(_) => panic!("the status never came: {:?}", world.get(&world.webs(), name).await),
    }
}

/// The revisions of a release with their words, from Secrets or ConfigMaps.
pub(super) async fn revisions(world: &World, kind: &str, name: &str) -> Vec<String> {
    let selector = format!("owner=helm,name={name}");
    let found = world.api("", kind).list(&ListParams::default().labels(&selector)).await.unwrap();
    let word = |object: &DynamicObject| {
        let labels = object.metadata.labels.clone().unwrap_or_default();
        format!("{} {}", labels["version"], labels["status"])
    };
    let mut all: Vec<String> = found.items.iter().map(word).collect();
    all.sort();
    all
}

pub(super) fn at(world: &World, namespace: &str, kind: &str) -> Api<DynamicObject> {
    let gvk = GroupVersionKind::gvk("", "v1", kind);
    Api::namespaced_with(world.client.clone(), namespace, &ApiResource::from_gvk(&gvk))
}

pub(super) async fn namespace(world: &World, name: &str) {
    let all = world.cluster_api("", "Namespace");
    world.create(&all, json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn engine_hybrid_has_the_librarys_finalizer_conditions_and_values() {
    let files = [("templates/config.yaml", CONFIG), ("values.yaml", "greeting: hi\nother: 1\n")];
    let mut watch = web(&files, hybrid());
    fed_by(&mut watch).overrides = BTreeMap::from([("count".to_owned(), "3".to_owned())]);
    let mut world = World::start(vec![watch]).await;
    world.create_web("a", json!({"more": true})).await;
    world.outcome("a", Outcome::Installed).await;
    let object = world.get(&world.webs(), "a").await.unwrap();
    assert_eq!(object["metadata"]["finalizers"], json!(["uninstall-helm-release"]));
    let found: Vec<(String, String)> = conditions(&object).into_iter().collect();
    let wanted = [
        ("Deployed", "True InstallSuccessful"),
        ("Initialized", "True"),
        ("Irreconcilable", "False"),
        ("Paused", "False"),
        ("ReleaseFailed", "False"),
    ];
    assert!(found.iter().map(|(a, b)| (a.as_str(), b.as_str())).eq(wanted), "{found:?}");
    let listed = object["status"]["conditions"].as_array().unwrap();
    assert!(listed.iter().map(|one| one["type"].as_str().unwrap()).is_sorted());
    assert_eq!(listed[0]["message"], "release was successfully installed");
    let manifest = object["status"]["deployedRelease"]["manifest"].as_str().unwrap();
    assert!(manifest.contains("ownerReferences:") && manifest.contains("namespace: default"), "{manifest}");
    // The record has the coalesced values, overrides as `--set` reads them.
    let secret = world.get(&world.api("", "Secret"), "sh.helm.release.v1.a.v1").await.unwrap();
    let release = opdev_helm::release::from_secret(&secret).unwrap();
    assert_eq!(release.config, json!({"greeting": "hi", "other": 1, "more": true, "count": 3}));
    // `delete`: the finalizer goes with the release.
    world.delete(&world.webs(), "a").await;
    world.outcome("a", Outcome::Uninstalled).await;
    assert!(revisions(&world, "Secret", "a").await.is_empty());
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn failed_upgrades_stay_in_the_history_and_max_release_history_bounds_it() {
    let service = "apiVersion: v1\nkind: Service\nmetadata: {name: \"{{ .Release.Name }}\"}\nspec: {type: {{ if .Values.bad \
                   }}Nonsense{{ else }}ClusterIP{{ end }}, ports: [{port: 80}]}\n";
    let files = [("templates/config.yaml", CONFIG), ("templates/service.yaml", service)];
    let options = ChartOptions { max_history: Some(3), ..hybrid() };
    let mut world = World::start(vec![web(&files, options)]).await;
    world.create_web("a", json!({})).await;
    world.outcome("a", Outcome::Installed).await;
    world.patch(&world.webs(), "a", json!({"spec": {"bad": true}})).await;
    world.outcome("a", Outcome::Failed).await;
    let found = revisions(&world, "Secret", "a").await;
    assert_eq!(found, ["1 superseded", "2 failed", "3 deployed"]);
    let object = status(&world, "a", |status| {
        conditions(&json!({"status": status}))["ReleaseFailed"].starts_with("True")
    })
    .await;
    let found = conditions(&object);
    assert_eq!(
        (found["ReleaseFailed"].as_str(), found["Irreconcilable"].as_str()),
        ("True UpgradeError", "True ReconcileError")
    );
    // The next attempt makes room by the oldest revision.
    world.outcome("a", Outcome::Failed).await;
    assert_eq!(revisions(&world, "Secret", "a").await.len(), 3);
    world.patch(&world.webs(), "a", json!({"spec": {"bad": false, "greeting": "well"}})).await;
    world.outcome("a", Outcome::Upgraded).await;
    let found = revisions(&world, "Secret", "a").await;
    assert!(
        found.len() == 3 && found.iter().filter(|one| one.ends_with(" deployed")).count() == 1,
        "{found:?}"
    );
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn failure_rollbacks_off_leaves_what_failed_and_upgrades_it() {
    let service = "apiVersion: v1\nkind: Service\nmetadata: {name: \"{{ .Release.Name }}\"}\nspec: {type: {{ if .Values.bad \
                   }}Nonsense{{ else }}ClusterIP{{ end }}, ports: [{port: 80}]}\n";
    let files = [("templates/config.yaml", CONFIG), ("templates/service.yaml", service)];
    let options = ChartOptions { failure_rollbacks: Some(false), ..hybrid() };
    let mut world = World::start(vec![web(&files, options)]).await;
    world.create_web("a", json!({"bad": true})).await;
    world.outcome("a", Outcome::Failed).await;
    assert_eq!(revisions(&world, "Secret", "a").await[0], "1 failed");
    world.patch(&world.webs(), "a", json!({"spec": {"bad": false}})).await;
    let reconcile = world.outcome("a", Outcome::Upgraded).await;
    assert!(reconcile.releases[0].why.contains("failed"), "{:?}", reconcile.releases);
    let found = revisions(&world, "Secret", "a").await;
    assert!(found.last().unwrap().ends_with("deployed") && found.len() >= 2, "{found:?}");
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn annotations_disable_hooks_and_describe_and_may_have_names_of_their_own() {
    let (install, upgrade) = (hook("pre-install"), hook("pre-upgrade"));
    let files =
        [("templates/config.yaml", CONFIG), ("templates/i.yaml", &*install), ("templates/u.yaml", &*upgrade)];
    let own = Annotations {
        install: vec![(Choice::DisableHooks, "my.domain/quiet".to_owned())],
        upgrade: vec![(Choice::Description, "my.domain/why".to_owned())],
        uninstall: Vec::new(),
    };
    let mut shop = watch_of("Shop", chart("shop", &files));
    fed_by(&mut shop).options = ChartOptions { annotations: Some(own), ..hybrid() };
    let mut world = World::start(vec![web(&files, hybrid()), shop]).await;
    let prefix = "helm.sdk.operatorframework.io/";
    let object = |kind: &str, name: &str, annotations: Value| {
        json!({"apiVersion": "test.my.domain/v1", "kind": kind, "spec": {},
            "metadata": {"name": name, "annotations": annotations}})
    };
    let quiet = json!({format!("{prefix}install-disable-hooks"): "true", format!("{prefix}install-description"): "first"});
    world.create(&world.webs(), object("Web", "a", quiet)).await;
    world.outcome("a", Outcome::Installed).await;
    let shops = world.api("test.my.domain", "Shop");
    world
        .create(&shops, object("Shop", "b", json!({"my.domain/quiet": "1", "my.domain/why": "because"})))
        .await;
    world.outcome("b", Outcome::Installed).await;
    let configs = world.api("", "ConfigMap");
    assert!(
        world.get(&configs, "a-pre-install").await.is_none()
            && world.get(&configs, "b-pre-install").await.is_none()
    );
    let about = async |name: &str| {
        let secret = world.get(&world.api("", "Secret"), name).await.unwrap();
        opdev_helm::release::from_secret(&secret).unwrap().info.description
    };
    assert_eq!(about("sh.helm.release.v1.a.v1").await, "first");
    world.patch(&shops, "b", json!({"spec": {"greeting": "two"}})).await;
    world.outcome("b", Outcome::Upgraded).await;
    assert!(world.get(&configs, "b-pre-upgrade").await.is_some(), "upgrade-disable-hooks has no name here");
    let secret = world.get(&world.api("", "Secret"), "sh.helm.release.v1.b.v2").await.unwrap();
    assert_eq!(opdev_helm::release::from_secret(&secret).unwrap().info.description, "because");
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn pause_annotation_and_paused_leave_an_object_alone() {
    let options = ChartOptions { pause_annotation: Some("my.domain/pause".to_owned()), ..hybrid() };
    let script = "export function paused(self) { return self.spec.wait === true; }\n";
    let mut world = World::start(vec![beside(web(&plain(), options), script)]).await;
    world.create_web("a", json!({"wait": true})).await;
    let reconcile = world.outcome("a", Outcome::Waiting).await;
    assert_eq!(reconcile.waiting.as_deref(), Some("paused: config/reconcilers/web.ts says so"));
    let found = conditions(&world.get(&world.webs(), "a").await.unwrap());
    assert_eq!(found["Paused"], "True PauseReconcileAnnotationTrue");
    assert_eq!((found["Deployed"].as_str(), found["Initialized"].as_str()), ("Unknown", "Unknown"));
    assert!(revisions(&world, "Secret", "a").await.is_empty());
    world.patch(&world.webs(), "a", json!({"spec": {"wait": false}})).await;
    world.outcome("a", Outcome::Installed).await;
    world
        .patch(
            &world.webs(),
            "a",
            json!({"metadata": {"annotations": {"my.domain/pause": "true"}}, "spec": {"greeting": "x"}}),
        )
        .await;
    let reconcile = world.outcome("a", Outcome::Waiting).await;
    expect![[r#"paused: its annotation my.domain/pause is "true""#]]
        .assert_eq(reconcile.waiting.as_deref().unwrap());
    world.patch(&world.webs(), "a", json!({"metadata": {"annotations": {"my.domain/pause": "yes"}}})).await;
    world.outcome("a", Outcome::Upgraded).await;
    assert_eq!(conditions(&world.get(&world.webs(), "a").await.unwrap())["Paused"], "False");
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn values_follow_the_cluster_and_throwing_shows_in_the_conditions() {
    let script = r#"import { get } from "opdev";
export function values(self, { values, release }) {
  if (self.spec.size < 0) throw new Error("size must not be negative");
  const mood = get("v1/ConfigMap", "mood")?.data?.mood ?? "none";
  return { greeting: `${values.size ?? 0} ${mood} ${release === null ? "new" : "old"}` };
}
"#;
    let mut world = World::start(vec![beside(web(&plain(), hybrid()), script)]).await;
    world.create_web("a", json!({"size": 2})).await;
    world.greeting("a-config", "2 none new").await;
    let configs = world.api("", "ConfigMap");
    let mood = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "mood"}, "data": {"mood": "good"}});
    world.create(&configs, mood).await;
    world.greeting("a-config", "2 good old").await;
    world.patch(&world.webs(), "a", json!({"spec": {"size": -1}})).await;
    let reconcile = world.outcome("a", Outcome::Failed).await;
    let failure = reconcile.failure.as_ref().unwrap();
    expect!["size must not be negative"].assert_eq(&failure.chain[0]);
    let place = failure.diagnostic.as_ref().unwrap().place.as_ref().unwrap();
    assert_eq!((place.file.as_str(), place.line), ("config/reconcilers/web.ts", 3));
    let object = world.get(&world.webs(), "a").await.unwrap();
    let found = conditions(&object);
    assert_eq!(
        (found["Irreconcilable"].as_str(), found["ReleaseFailed"].as_str()),
        ("True ErrorGettingValues", "Unknown")
    );
    assert!(object["status"]["deployedRelease"].is_object(), "what is deployed stays told");
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn before_and_after_patch_record_and_hold_the_release_back() {
    let script = r#"import { get, patch, event, condition } from "opdev";
export function before(self, { values, release, action }) {
  if (get("v1/ConfigMap", "gate") === undefined) return { waiting: "waits for the gate", requeueAfter: 3600 };
  condition("Checked", true, "GateOpen");
  const note = { apiVersion: "v1", kind: "ConfigMap", metadata: { name: self.metadata.name + "-" + action } };
  return { patches: [patch(note, { data: { text: `${action} ${values.greeting}` } }, { create: true, own: true })] };
}
export function after(self, { release, action }) {
  event("Normal", "Done", `${action} to ${release.revision}`);
}
export function onEvent(event) {
  return event.reason === "Done" ? { ...event, message: event.message + "!" } : false;
}
"#;
    let mut watch = beside(web(&plain(), ChartOptions::default()), script);
    fed_by(&mut watch).overrides = BTreeMap::from([("x".to_owned(), "y".to_owned())]);
    let mut world = World::start(vec![watch]).await;
    world.create_web("a", json!({"greeting": "one"})).await;
    let reconcile = world.outcome("a", Outcome::Waiting).await;
    assert_eq!(reconcile.waiting.as_deref(), Some("waits for the gate"));
    assert_eq!(reconcile.requeue.as_ref().unwrap().after, Duration::from_secs(3600));
    assert!(revisions(&world, "Secret", "a").await.is_empty(), "nothing is installed meanwhile");
    let configs = world.api("", "ConfigMap");
    world
        .create(&configs, json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "gate"}}))
        .await;
    world.outcome("a", Outcome::Installed).await;
    let note = world.get(&configs, "a-install").await.unwrap();
    assert_eq!(note["data"]["text"], "install one");
    assert_eq!(note["metadata"]["ownerReferences"][0]["kind"], "Web");
    assert_eq!(conditions(&world.get(&world.webs(), "a").await.unwrap())["Checked"], "True GateOpen");
    let events = world.api("", "Event").list(&ListParams::default()).await.unwrap().items;
    let told: Vec<String> =
        events.iter().map(|one| one.data["message"].as_str().unwrap().to_owned()).collect();
    assert_eq!(told, ["install to 1!"], "onEvent rewords one and drops OverrideValuesInUse");
    world.patch(&world.webs(), "a", json!({"spec": {"greeting": "two"}})).await;
    world.outcome("a", Outcome::Upgraded).await;
    // A reconcile that follows at once writes a note of its own.
    assert_eq!(world.get(&configs, "a-upgrade").await.unwrap()["data"]["text"], "upgrade two");
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn on_hook_error_log_goes_on_and_fail_stops() {
    let script = "export function before() { throw new Error(\"no luck today\"); }\n";
    let mut shop = watch_of("Shop", chart("shop", &plain()));
    fed_by(&mut shop).options = ChartOptions { on_hook_error: Some(OnHookError::Fail), ..hybrid() };
    let mut world = World::start(vec![beside(web(&plain(), hybrid()), script), beside(shop, script)]).await;
    world.create_web("a", json!({})).await;
    world.outcome("a", Outcome::Installed).await;
    assert!(
        world
            .notices
            .iter()
            .any(|one| one.contains("before of config/reconcilers/web.ts failed: no luck today")),
        "{:?}",
        world.notices
    );
    let shops = world.api("test.my.domain", "Shop");
    world
        .create(
            &shops,
            json!({"apiVersion": "test.my.domain/v1", "kind": "Shop", "metadata": {"name": "b"}, "spec": {}}),
        )
        .await;
    let reconcile = world.outcome("b", Outcome::Failed).await;
    assert!(reconcile.failure.as_ref().unwrap().chain.iter().any(|one| one.contains("no luck today")));
    assert!(revisions(&world, "Secret", "b").await.is_empty());
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn render_changes_what_the_chart_made_before_it_is_stored() {
    let script = r#"export function render(objects, self) {
  const own = objects.map((one) => ({ ...one, data: { ...one.data, by: self.metadata.name } }));
  return [...own, { apiVersion: "v1", kind: "ConfigMap", metadata: { name: "extra" }, data: { greeting: "more" } }];
}
"#;
    let mut world = World::start(vec![beside(web(&plain(), ChartOptions::default()), script)]).await;
    world.create_web("a", json!({})).await;
    world.outcome("a", Outcome::Installed).await;
    let configs = world.api("", "ConfigMap");
    assert_eq!(
        world.get(&configs, "a-config").await.unwrap()["data"],
        json!({"greeting": "hello", "by": "a"})
    );
    let object = world.get(&world.webs(), "a").await.unwrap();
    assert!(object["status"]["deployedRelease"]["manifest"].as_str().unwrap().contains("by: a"));
    let reconcile = world.reconcile_by_key("a").await;
    assert_eq!(reconcile.outcome, Outcome::Unchanged, "the same input renders the same");
    world.delete(&world.webs(), "a").await;
    world.outcome("a", Outcome::Uninstalled).await;
    assert!(world.get(&configs, "extra").await.is_none());
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn watches_map_other_objects_to_custom_resources() {
    let script = r#"export const watches = [
  { kind: "v1/Secret", map: (secret) => secret.metadata.labels?.web ? [{ name: secret.metadata.labels.web }] : [] },
];
"#;
    let mut world = World::start(vec![beside(web(&plain(), ChartOptions::default()), script)]).await;
    world.create_web("a", json!({})).await;
    world.outcome("a", Outcome::Installed).await;
    let secret = |name: &str, web: &str| json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name, "labels": {"web": web}}});
    world.create(&world.api("", "Secret"), secret("other", "nobody")).await;
    world.create(&world.api("", "Secret"), secret("mine", "a")).await;
    let mine = world
        .until("a pass for the secret", |event| match event {
            Event::Reconciled(reconcile) => {
                super::world::causes(reconcile).into_iter().find(|cause| cause.starts_with("Added Secret"))
            }
            _ => None,
        })
        .await;
    expect!["Added Secret  by nobody"].assert_eq(&mine);
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn helm_wait_waits_for_the_objects_and_its_timeout_fails() {
    let deployment = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: \"{{ .Release.Name }}\"}\nspec:\n  replicas: 1\n  \
                      selector: {matchLabels: {a: b}}\n  template:\n    metadata: {labels: {a: b}}\n    spec: {nodeSelector: \
                      {nowhere: \"{{ .Values.nowhere }}\"}, containers: [{name: a, image: a}]}\n";
    let wait = ActionOptions {
        wait: Some(true),
        timeout: Some(Duration::from_millis(300)),
        ..ActionOptions::default()
    };
    let options = ChartOptions { install: wait.clone(), uninstall: wait, ..hybrid() };
    let mut world = World::start(vec![web(&[("templates/d.yaml", deployment)], options)]).await;
    // No node has such a label: the pod stays pending.
    world.create_web("a", json!({})).await;
    let reconcile = world.outcome("a", Outcome::Failed).await;
    let chain = reconcile.failure.as_ref().unwrap().chain.join(": ");
    assert!(chain.contains("is not ready: timed out"), "{chain}");
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn skip_crds_and_disable_hooks_leave_parts_of_the_chart_out() {
    let crd = "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: things.a.test}\nspec:\n  group: \
               a.test\n  scope: Namespaced\n  names: {kind: Thing, plural: things, singular: thing, listKind: ThingList}\n  \
               versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}]\n";
    let pre = hook("pre-install");
    let files = [("templates/config.yaml", CONFIG), ("templates/pre.yaml", &*pre), ("crds/thing.yaml", crd)];
    let install = ActionOptions {
        skip_crds: Some(true),
        disable_hooks: Some(true),
        description: Some("by hand".to_owned()),
        ..ActionOptions::default()
    };
    let mut world =
        World::start(vec![web(&files, ChartOptions { install, ..ChartOptions::default() })]).await;
    world.create_web("a", json!({})).await;
    world.outcome("a", Outcome::Installed).await;
    let crds = world.cluster_api("apiextensions.k8s.io", "CustomResourceDefinition");
    assert!(world.get(&crds, "things.a.test").await.is_none());
    assert!(world.get(&world.api("", "ConfigMap"), "a-pre-install").await.is_none());
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn wait_for_deletion_timeout_waits_for_other_finalizers() {
    let options = ChartOptions { wait_for_deletion: Some(Duration::from_millis(200)), ..hybrid() };
    let mut world = World::start(vec![web(&plain(), options)]).await;
    let object = json!({"apiVersion": "test.my.domain/v1", "kind": "Web", "spec": {},
        "metadata": {"name": "a", "finalizers": ["other.test/mine"]}});
    world.create(&world.webs(), object).await;
    world.outcome("a", Outcome::Installed).await;
    world.delete(&world.webs(), "a").await;
    let reconcile = world.outcome("a", Outcome::Failed).await;
    let chain = reconcile.failure.as_ref().unwrap().chain.join(": ");
    assert!(chain.contains("the custom resource is still there: timed out"), "{chain}");
    let object = world.get(&world.webs(), "a").await.unwrap();
    assert_eq!(object["metadata"]["finalizers"], json!(["other.test/mine"]));
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_saved_script_takes_over_and_is_a_cause() {
    let first = "export function values() { return { greeting: \"one\" }; }\n";
    let world = World::start_with(vec![beside(web(&plain(), hybrid()), first)], settings()).await;
    world.create_web("a", json!({})).await;
    world.greeting("a-config", "one").await;
    let mut second = beside(web(&plain(), hybrid()), &first.replace("one", "two"));
    second.changed_in = 2;
    world.sources.send(sources(2, vec![second])).unwrap();
    world.greeting("a-config", "two").await;
    world.stop().await;
}

/// The ordered install of the Armada tutorial: a chart waits until the one before it is deployed.
#[tokio::test(flavor = "multi_thread")]
async fn charts_are_installed_in_order() {
    let script = r#"import { get } from "opdev";
export function before(self, { action }) {
  const first = self.spec.after && get("test.my.domain/v1/Web", self.spec.after);
  const deployed = first?.status?.conditions?.some((one) => one.type === "Deployed" && one.status === "True");
  if (self.spec.after && !deployed) return { waiting: `waits for ${self.spec.after}` };
}
"#;
    let mut world = World::start(vec![beside(web(&plain(), ChartOptions::default()), script)]).await;
    world.create_web("blog-3", json!({"after": "blog-2"})).await;
    world.outcome("blog-3", Outcome::Waiting).await;
    world.create_web("blog-2", json!({"after": "blog-1"})).await;
    let reconcile = world.outcome("blog-2", Outcome::Waiting).await;
    assert_eq!(reconcile.waiting.as_deref(), Some("waits for blog-1"));
    world.create_web("blog-1", json!({})).await;
    let mut order = Vec::new();
    while order.len() < 3 {
        let name = world
            .until("an install", |event| match event {
                Event::Reconciled(reconcile) if reconcile.outcome == Outcome::Installed => {
                    Some(reconcile.object.name.clone())
                }
                _ => None,
            })
            .await;
        order.push(name);
    }
    assert_eq!(order, ["blog-1", "blog-2", "blog-3"]);
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn releases_of_programs_take_the_same_options() {
    let script = r#"import { release } from "opdev";
export function reconcile(self) {
  return { releases: [release({ name: "inner", chart: "charts/web", values: { greeting: self.spec.greeting },
    maxReleaseHistory: 1, storage: "configmap", status: true })] };
}
"#;
    let path = "config/reconcilers/web.ts".to_owned();
    let files = BTreeMap::from([(path.clone(), Arc::<str>::from(script))]);
    let program = opdev_script::program::load(&path, &files).unwrap();
    let typed = TypeReconciler {
        path,
        program: Some(program),
        files,
        charts: BTreeMap::from([("charts/web".to_owned(), chart("web", &plain()))]),
        ..TypeReconciler::default()
    };
    let watch =
        Watch { reconciler: Reconciler::Type(Arc::new(typed)), ..watch_of("Web", chart("web", &plain())) };
    let mut world = World::start(vec![watch]).await;
    world.create_web("a", json!({"greeting": "one"})).await;
    world.greeting("inner-config", "one").await;
    world.patch(&world.webs(), "a", json!({"spec": {"greeting": "two"}})).await;
    let object = status(&world, "a", |status| {
        let condition = conditions(&json!({"status": status}));
        condition.get("Deployed").is_some_and(|found| found == "True UpgradeSuccessful")
    })
    .await;
    assert_eq!(object["status"]["deployedRelease"]["name"], "inner");
    assert_eq!(revisions(&world, "ConfigMap", "inner").await, ["2 deployed"]);
    assert!(revisions(&world, "Secret", "inner").await.is_empty());
    world.delete(&world.webs(), "a").await;
    world.outcome("a", Outcome::Uninstalled).await;
    assert!(world.get(&world.api("", "ConfigMap"), "inner-config").await.is_none());
    assert!(revisions(&world, "ConfigMap", "inner").await.is_empty());
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn service_account_name_is_whom_objects_are_written_as() {
    let mut config = opdev_controlplane::Config::default();
    config.rbac = true;
    let plane = opdev_controlplane::ControlPlane::start_with(config).await.unwrap();
    let client = plane.client();
    serve_kind(&client, "Web").await;
    let options = ChartOptions { service_account: Some("nobody".to_owned()), ..hybrid() };
    let mut world = World::over(client, plane, vec![web(&plain(), options)], settings());
    world.create_web("a", json!({})).await;
    let reconcile = world.outcome("a", Outcome::Failed).await;
    let chain = reconcile.failure.as_ref().unwrap().chain.join(": ");
    assert!(
        chain.contains("system:serviceaccount:default:nobody") && chain.contains("configmaps"),
        "{chain}"
    );
    let group = "rbac.authorization.k8s.io";
    let rules = json!([{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["*"]}]);
    let role = json!({"apiVersion": format!("{group}/v1"), "kind": "ClusterRole", "metadata": {"name": "maps"}, "rules": rules});
    world.create(&world.cluster_api(group, "ClusterRole"), role).await;
    let binding = json!({"apiVersion": format!("{group}/v1"), "kind": "ClusterRoleBinding", "metadata": {"name": "maps"},
        "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": "maps"},
        "subjects": [{"kind": "ServiceAccount", "name": "nobody", "namespace": "default"}]});
    world.create(&world.cluster_api(group, "ClusterRoleBinding"), binding).await;
    world.reconcile_now("a").await;
    world.outcome("a", Outcome::Installed).await;
    // The records are the operator's own: the ServiceAccount may write no Secret.
    assert_eq!(revisions(&world, "Secret", "a").await, ["1 deployed"]);
    world.stop().await;
}
