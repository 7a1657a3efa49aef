//! Objects that Helm 3 or the Operator SDK's operator made, and objects that only they can make: what their
//! writes would leave or remove, opdev's do, too.

use super::world::{World, chart, fed_by, settings, web};
use expect_test::expect;
use kube::api::{Api, DynamicObject};
use opdev_event::Outcome;
use opdev_release::settings::{HelmCompat, Settings};
use opdev_sources::Watch;
use serde_json::{Value, json};

const MORE: &str = "apiVersion: v1
kind: ConfigMap
metadata:
  name: site-map
  {{- if .Values.more }}
  labels: {old: label}
  {{- end }}
data:
  a: b
  {{- if .Values.more }}
  old: secret
  {{- end }}
---
apiVersion: apps/v1
kind: Deployment
metadata:
  name: site-app
spec:
  {{- if .Values.more }}
  replicas: 2
  {{- end }}
  selector: {matchLabels: {app: site}}
  template:
    metadata: {labels: {app: site}}
    spec:
      containers:
      - name: c
        image: nginx:1
        {{- if .Values.more }}
        args: [\"-v\"]
        {{- end }}
        ports:
        - containerPort: 80
        {{- if .Values.more }}
        - containerPort: 81
        {{- end }}
        env:
        - {name: B, value: \"2\"}
        {{- if .Values.more }}
        - {name: A, value: \"1\"}
        {{- end }}
";

/// Makes the owner of all fields that opdev has applied one that updates, as after an install by another
/// program.
async fn made_by(client: &kube::Client, api: &Api<DynamicObject>, name: &str, manager: &str) {
    let mut object = api.get(name).await.unwrap();
    let mut entries = serde_json::to_value(object.metadata.managed_fields.take()).unwrap();
    for entry in entries.as_array_mut().unwrap() {
        if entry["manager"] == "helm" {
            entry["manager"] = json!(manager);
            entry["operation"] = json!("Update");
        }
    }
    let patch = json!([{"op": "replace", "path": "/metadata/managedFields", "value": entries}]);
    let request = http::Request::patch(format!("{}/{name}", api.resource_url()))
        .header("content-type", "application/json-patch+json")
        .body(serde_json::to_vec(&patch).unwrap());
    client.request::<Value>(request.unwrap()).await.unwrap();
}

/// A deployed release whose objects another program has made.
async fn taken_over(settings: Settings, manager: &str) -> World {
    let mut world =
        World::start_with(vec![web(chart("web", &[("templates/all.yaml", MORE)]))], settings).await;
    world.create_web("site", json!({"more": true})).await;
    world.outcome("site", Outcome::Installed).await;
    made_by(&world.client, &world.api("", "ConfigMap"), "site-map", manager).await;
    made_by(&world.client, &world.api("apps", "Deployment"), "site-app", manager).await;
    world
}

async fn app_and_map(world: &World) -> (Value, Value) {
    let app = world.get(&world.api("apps", "Deployment"), "site-app").await.unwrap();
    (app, world.get(&world.api("", "ConfigMap"), "site-map").await.unwrap())
}

#[tokio::test(flavor = "multi_thread")]
async fn fields_that_a_chart_drops_leave_objects_that_other_programs_made() {
    for (manager, compat) in [
        ("helm-operator", HelmCompat::V3),
        ("somebody", HelmCompat::V3),
        ("helm", HelmCompat::V4),
        ("a-program-with-another-name", HelmCompat::V4),
    ] {
        let mut world = taken_over(Settings { helm_compat: compat, ..settings() }, manager).await;
        world.patch(&world.webs(), "site", json!({"spec": {"more": false}})).await;
        let reconcile = world.outcome("site", Outcome::Upgraded).await;
        let (app, map) = app_and_map(&world).await;
        assert_eq!(map["data"], json!({"a": "b"}), "{manager}");
        assert_eq!(map["metadata"]["labels"]["old"], Value::Null, "{manager}");
        assert_eq!(app["spec"]["replicas"], 1, "{manager}: the default comes back");
        let container = &app["spec"]["template"]["spec"]["containers"][0];
        assert_eq!(container["args"], Value::Null, "{manager}");
        assert_eq!(container["env"], json!([{"name": "B", "value": "2"}]), "{manager}");
        assert_eq!(container["ports"], json!([{"containerPort": 80, "protocol": "TCP"}]), "{manager}");
        // The reconcile tells what went.
        let told: Vec<String> = reconcile
            .objects
            .iter()
            .flat_map(|change| &change.changes)
            .map(|change| change.path.to_string())
            .collect();
        assert!(told.iter().any(|path| path == ".data.old"), "{told:?}");
        assert!(told.iter().any(|path| path == ".spec.replicas"), "{told:?}");
        world.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_helm_4_does_not_own_stays_with_its_owner() {
    let mut world = taken_over(Settings { helm_compat: HelmCompat::V4, ..settings() }, "helm").await;
    // A person sets a label that the chart has, and becomes its owner.
    let labels = json!({"metadata": {"labels": {"old": "hand"}}});
    world.patch(&world.api("", "ConfigMap"), "site-map", labels).await;
    world.outcome("site", Outcome::Repaired).await;
    world.patch(&world.webs(), "site", json!({"spec": {"more": false}})).await;
    world.outcome("site", Outcome::Upgraded).await;
    let (_, map) = app_and_map(&world).await;
    assert_eq!(map["data"], json!({"a": "b"}));
    world.stop().await;
}

const UNTIDY: &str = "apiVersion: apps/v1
kind: Deployment
metadata: {name: site-app}
spec:
  selector: {matchLabels: {app: site}}
  template:
    metadata: {labels: {app: site}}
    spec:
      containers:
      - name: c
        image: nginx:1
        imagePulPolicy: Never
        env:
        - {name: A, value: \"1\"}
        - {name: A, value: \"2\"}
        ports:
        - {name: web, containerPort: 80}
        - {name: metrics, containerPort: 80}
        {{- if .Values.more }}
        - {name: more, containerPort: 80}
        {{- end }}
---
apiVersion: test.my.domain/v1
kind: Shop
metadata: {name: site-shop}
undeclared: {a: 1}
spec: {a: 1}
";

fn untidy() -> Watch {
    web(chart("web", &[("templates/all.yaml", UNTIDY)]))
}

#[tokio::test(flavor = "multi_thread")]
async fn what_helm_3_installs_although_apply_refuses_it_is_installed_and_told_with_its_place() {
    let mut world = World::start(vec![untidy()]).await;
    world.create_web("site", json!({"more": true})).await;
    world.outcome("site", Outcome::Installed).await;
    let apps = world.api("apps", "Deployment");
    let ports = |app: &Value| {
        let ports = app["spec"]["template"]["spec"]["containers"][0]["ports"].as_array().unwrap();
        ports.iter().map(|port| port["name"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(ports(&world.get(&apps, "site-app").await.unwrap()), ["web", "metrics", "more"]);
    let shop = world.get(&world.api("test.my.domain", "Shop"), "site-shop").await.unwrap();
    assert_eq!((&shop["spec"]["a"], &shop["undeclared"]), (&json!(1), &Value::Null));
    // The next reconcile writes nothing, and an upgrade is a patch of three states.
    let reconcile = world.reconcile_by_key("site").await;
    assert!(reconcile.objects.is_empty(), "{:?}", reconcile.objects);
    world.patch(&world.webs(), "site", json!({"spec": {"more": false}})).await;
    world.outcome("site", Outcome::Upgraded).await;
    // A strategic patch takes a key that is there twice for one item, as everywhere; the next reconcile puts
    // back what it took.
    world.outcome("site", Outcome::Repaired).await;
    assert_eq!(ports(&world.get(&apps, "site-app").await.unwrap()), ["web", "metrics"]);
    let told = world.notices.iter().find(|notice| notice.contains("Deployment")).cloned().unwrap();
    for part in ["as Helm 3 writes it", "charts/web/templates/all.yaml:", "duplicate entries"] {
        assert!(told.contains(part), "{part}: {told}");
    }
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn helm_4_refuses_what_apply_refuses() {
    let compat = Settings { helm_compat: HelmCompat::V4, ..settings() };
    let mut world = World::start_with(vec![untidy()], compat).await;
    world.create_web("site", json!({})).await;
    let failure = world.outcome("site", Outcome::Failed).await.failure.clone().unwrap();
    expect![[r#"
        failed to create typed patch object (default/site-app; apps/v1, Kind=Deployment): errors:
          .spec.template.spec.containers[name="c"].env: duplicate entries for key [name="A"]
          .spec.template.spec.containers[name="c"].imagePulPolicy: field not declared in schema"#]]
    .assert_eq(failure.chain.last().unwrap());
    world.stop().await;
}

/// Values choose another member of a union, whose old member has defaults that nobody owns.
const UNIONS: &str = "apiVersion: apps/v1
kind: Deployment
metadata: {name: site-app}
spec:
  {{- if not .Values.more }}
  strategy: {type: Recreate}
  {{- end }}
  selector: {matchLabels: {app: site}}
  template:
    metadata: {labels: {app: site}}
    spec:
      containers:
      - name: c
        image: nginx:1
        livenessProbe:
          {{- if .Values.more }}
          httpGet: {port: 80}
          {{- else }}
          tcpSocket: {port: 80}
          {{- end }}
      volumes:
      - name: work
        {{- if .Values.more }}
        configMap: {name: work}
        {{- else }}
        emptyDir: {}
        {{- end }}
";

#[tokio::test(flavor = "multi_thread")]
async fn defaults_that_do_not_go_with_new_values_go_as_with_helm_3() {
    let watch = || web(chart("web", &[("templates/all.yaml", UNIONS)]));
    let mut world = World::start(vec![watch()]).await;
    world.create_web("site", json!({"more": true})).await;
    world.outcome("site", Outcome::Installed).await;
    world.patch(&world.webs(), "site", json!({"spec": {"more": false}})).await;
    world.outcome("site", Outcome::Upgraded).await;
    let app = world.get(&world.api("apps", "Deployment"), "site-app").await.unwrap();
    assert_eq!(app["spec"]["strategy"], json!({"type": "Recreate"}));
    let pod = &app["spec"]["template"]["spec"];
    assert_eq!(pod["volumes"], json!([{"name": "work", "emptyDir": {}}]));
    assert_eq!(pod["containers"][0]["livenessProbe"]["httpGet"], Value::Null);
    let told = world.notices.iter().find(|notice| notice.contains("as Helm 3 writes it")).cloned().unwrap();
    assert!(told.contains("charts/web/templates/all.yaml"), "{told}");
    let reconcile = world.reconcile_by_key("site").await;
    assert!(reconcile.objects.is_empty(), "{:?}", reconcile.objects);
    world.stop().await;

    let compat = Settings { helm_compat: HelmCompat::V4, ..settings() };
    let mut world = World::start_with(vec![watch()], compat).await;
    world.create_web("site", json!({"more": true})).await;
    world.outcome("site", Outcome::Installed).await;
    world.patch(&world.webs(), "site", json!({"spec": {"more": false}})).await;
    let failure = world.outcome("site", Outcome::Failed).await.failure.clone().unwrap();
    expect![[r#"Deployment.apps "site-app" is invalid: spec.strategy.rollingUpdate: Forbidden: may not be specified when strategy `type` is 'Recreate'"#]]
    .assert_eq(failure.chain.last().unwrap());
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_definition_that_moves_into_the_templates_is_taken() {
    let ant = "apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: ants.sub.my.domain}
spec:
  group: sub.my.domain
  names: {kind: Ant, listKind: AntList, plural: ants, singular: ant}
  scope: Namespaced
  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}]
";
    let map = format!(
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: site-map}}\n---\n{{{{ if .Values.more }}}}\n{ant}{{{{ end }}}}\n"
    );
    let files = [("crds/ant.yaml", ant), ("templates/all.yaml", map.as_str())];
    let mut world = World::start(vec![web(chart("web", &files))]).await;
    world.create_web("site", json!({})).await;
    world.outcome("site", Outcome::Installed).await;
    let crds = world.cluster_api("apiextensions.k8s.io", "CustomResourceDefinition");
    let metadata = world.get(&crds, "ants.sub.my.domain").await.unwrap()["metadata"].clone();
    assert_eq!(metadata["labels"], json!({"helm.sdk.operatorframework.io/chart": "web"}));
    assert_eq!(metadata["annotations"]["meta.helm.sh/release-name"], Value::Null);
    world.patch(&world.webs(), "site", json!({"spec": {"more": true}})).await;
    let failure = world.outcome("site", Outcome::Failed).await.failure.clone().unwrap();
    let why = failure.chain.join(": ");
    assert!(why.contains("Unable to continue with update") && why.contains("ants.sub.my.domain"), "{why}");
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_secret_that_the_api_server_refuses_is_refused_and_never_made_without_a_part() {
    for data in [
        "stringData: {a: x, port: 5432}",
        "stringData: text",
        "stringData: [a]",
        "stringData: {a: x}\ndata: oops",
        "stringData: {a: x}\ndata: []",
        "stringData: {a: x}\ndata: 3",
    ] {
        let secret = format!("apiVersion: v1\nkind: Secret\nmetadata: {{name: site-secret}}\n{data}\n");
        let mut world =
            World::start(vec![web(chart("web", &[("templates/all.yaml", secret.as_str())]))]).await;
        world.create_web("site", json!({})).await;
        let failure = world.outcome("site", Outcome::Failed).await.failure.clone().unwrap();
        assert!(!format!("{failure:?}").contains("panicked"), "{data}: {failure:?}");
        assert_eq!(world.get(&world.api("", "Secret"), "site-secret").await, None, "{data}");
        world.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn text_of_a_secret_is_sent_as_text_and_is_no_drift() {
    let secret = "apiVersion: v1\nkind: Secret\nmetadata: {name: site-secret}\nstringData: {a: hello}\n---\n\
                  apiVersion: v1\nkind: ConfigMap\nmetadata: {name: site-map, annotations: null}\ndata: {a: b}\n";
    let mut world = World::start(vec![web(chart("web", &[("templates/all.yaml", secret)]))]).await;
    world.create_web("site", json!({})).await;
    world.outcome("site", Outcome::Installed).await;
    let stored = world.get(&world.api("", "Secret"), "site-secret").await.unwrap();
    assert_eq!(stored["data"], json!({"a": "aGVsbG8="}));
    let reconcile = world.reconcile_by_key("site").await;
    assert_eq!((reconcile.outcome, reconcile.objects.len()), (Outcome::Unchanged, 0));
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_crds_of_a_subchart_that_is_off_are_not_installed() {
    let crd = |kind: &str| {
        let lower = kind.to_lowercase();
        format!(
            "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {{name: {lower}s.sub.my.domain}}\n\
             spec: {{group: sub.my.domain, scope: Namespaced, names: {{kind: {kind}, plural: {lower}s}}, versions: [{{name: v1, \
             served: true, storage: true, schema: {{openAPIV3Schema: {{type: object}}}}}}]}}\n"
        )
    };
    let (ant, bee) = (crd("Ant"), crd("Bee"));
    let about = "apiVersion: v2\nname: web\nversion: 0.1.0\ndependencies:\n- {name: ant, version: 0.1.0, repository: '', condition: ant.enabled}\n\
                 - {name: bee, version: 0.1.0, repository: '', condition: bee.enabled}\n";
    let chart = chart(
        "web",
        &[
            ("Chart.yaml", about),
            ("values.yaml", "ant: {enabled: true}\nbee: {enabled: false}\n"),
            ("templates/all.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: site-map}\n"),
            ("charts/ant/Chart.yaml", "apiVersion: v2\nname: ant\nversion: 0.1.0\n"),
            ("charts/ant/crds/ant.yaml", &ant),
            ("charts/bee/Chart.yaml", "apiVersion: v2\nname: bee\nversion: 0.1.0\n"),
            ("charts/bee/crds/bee.yaml", &bee),
        ],
    );
    let mut world = World::start(vec![web(chart)]).await;
    world.create_web("site", json!({})).await;
    world.outcome("site", Outcome::Installed).await;
    let crds = world.cluster_api("apiextensions.k8s.io", "CustomResourceDefinition");
    assert!(world.get(&crds, "ants.sub.my.domain").await.is_some());
    assert_eq!(world.get(&crds, "bees.sub.my.domain").await, None);
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn notes_that_fail_in_an_upgrade_fail_at_once() {
    let notes = "{{ if .Release.IsUpgrade }}{{ fail \"PASSWORDS ERROR\" }}{{ end }}hello\n";
    let map = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: site-map}\n";
    let files = [("templates/NOTES.txt", notes), ("templates/all.yaml", map)];
    let mut world = World::start(vec![web(chart("web", &files))]).await;
    world.create_web("site", json!({})).await;
    world.outcome("site", Outcome::Installed).await;
    // Nothing but the install leads to it.
    let failure = world.outcome("site", Outcome::Failed).await.failure.clone().unwrap();
    expect!["execution error at (web/templates/NOTES.txt:1:30): PASSWORDS ERROR"]
        .assert_eq(failure.chain.last().unwrap());
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_password_that_is_looked_up_is_not_accused_of_changing() {
    let secret = "{{ $old := lookup \"v1\" \"Secret\" .Release.Namespace \"site-secret\" }}\napiVersion: v1\nkind: Secret\n\
                  metadata: {name: site-secret}\ndata:\n  password: {{ if $old }}{{ $old.data.password }}{{ else }}{{ randAlphaNum \
                  10 | b64enc }}{{ end }}\n";
    let mut watch = web(chart("web", &[("templates/all.yaml", secret)]));
    fed_by(&mut watch).dry_run_option = "server".to_owned();
    let mut world = World::start(vec![watch]).await;
    world.create_web("site", json!({})).await;
    world.outcome("site", Outcome::Installed).await;
    world.reconcile_by_key("site").await;
    assert!(!world.notices.iter().any(|notice| notice.contains("never done")), "{:?}", world.notices);
    assert_eq!(world.revisions("site").await, ["1 deployed"]);
    world.stop().await;
}
