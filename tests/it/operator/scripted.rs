//! Programs in TypeScript under the operator: what their authors write, from the file to the cluster.

use super::world::{World, causes, chart, sources, typed};
use expect_test::expect;
use kube::api::{DynamicObject, ListParams};
use opdev_event::{Event, Outcome};
use opdev_sources::{Reconciler, Watch};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// The watch of `Web`, or another kind, with a script.
fn script(kind: &str, text: &str) -> Watch {
    let mut watch = typed(kind, &[], |_, _| unreachable!());
    let Reconciler::Type(typed) = &mut watch.reconciler else { panic!() };
    let typed = Arc::get_mut(typed).unwrap();
    let files = BTreeMap::from([(typed.path.clone(), Arc::<str>::from(text))]);
    typed.program = Some(opdev_script::program::load(&typed.path, &files).unwrap());
    typed.files = files;
    watch
}

const PODS: &str = r#"import { owned, replicas, event } from "opdev";
export const owns = ["v1/Pod"];
interface Web { metadata: { name: string }; spec: { replicas: number } }
export function reconcile(self: Web) {
  const app = self.metadata.name;
  const pods = owned("v1/Pod").filter((p) => !p.metadata.deletionTimestamp);
  if (self.spec.replicas > 9) event("Warning", "Many", "that is a lot");
  return {
    children: replicas(pods, self.spec.replicas, {
      metadata: { generateName: `${app}-pod`, labels: { app, version: "v0.1" } },
      spec: { containers: [{ name: "busybox", image: "busybox", command: ["sleep", "3600"] }] },
    }),
    status: { podNames: pods.map((p) => p.metadata.name).sort() },
  };
}
"#;

async fn status(world: &World, name: &str, done: impl Fn(&Value) -> bool) -> Value {
    let seen = |object: Option<&DynamicObject>| object.is_some_and(|object| done(&object.data["status"]));
    let waiting = kube::runtime::wait::await_condition(world.webs(), name, seen);
    match tokio::time::timeout(Duration::from_secs(30), waiting).await {
        Ok(found) => found.unwrap().unwrap().data["status"].clone(),
        Err(_) => panic!("the status never came: {:?}", world.get(&world.webs(), name).await),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_set_of_pods_scales_and_replaces() {
    let mut world = World::start(vec![script("Web", PODS)]).await;
    let count = |status: &Value, n: usize| status["podNames"].as_array().is_some_and(|all| all.len() == n);
    world.create_web("set", json!({"replicas": 3})).await;
    let three = status(&world, "set", |status| count(status, 3)).await;
    world.patch(&world.webs(), "set", json!({"spec": {"replicas": 5}})).await;
    let five = status(&world, "set", |status| count(status, 5)).await;
    let kept = three["podNames"].as_array().unwrap();
    assert!(kept.iter().all(|name| five["podNames"].as_array().unwrap().contains(name)));
    world.patch(&world.webs(), "set", json!({"spec": {"replicas": 1}})).await;
    let one = status(&world, "set", |status| count(status, 1)).await;
    world.delete(&world.api("", "Pod"), one["podNames"][0].as_str().unwrap()).await;
    status(&world, "set", |status| count(status, 1) && *status != one).await;
    let pods = world.api("", "Pod").list(&ListParams::default()).await.unwrap().items;
    assert_eq!(pods.iter().filter(|pod| pod.metadata.deletion_timestamp.is_none()).count(), 1);

    // A saved file that throws is told with its line; the object backs off.
    let mut broken = script("Web", &PODS.replace("owned(\"v1/Pod\").filter", "owned(\"v1/Secret\").filter"));
    broken.changed_in = 2;
    world.sources.send(sources(2, vec![broken])).unwrap();
    let reconcile = world.outcome("set", Outcome::Failed).await;
    let failure = reconcile.failure.as_ref().unwrap();
    let diagnostic = failure.diagnostic.as_ref().unwrap();
    assert_eq!(diagnostic.place.as_ref().unwrap().line, 6, "{diagnostic:?}");
    expect![[r#"
        5 |   const app = self.metadata.name;
        6 |   const pods = owned("v1/Secret").filter((p) => !p.metadata.deletionTimestamp);
          |                ^
        7 |   if (self.spec.replicas > 9) event("Warning", "Many", "that is a lot");"#]]
    .assert_eq(diagnostic.excerpt.as_ref().unwrap());
    world.stop().await;
}

const GROUP: &str = r#"import { get, patch, wait } from "opdev";
export function reconcile(self: any) {
  const patches: unknown[] = [];
  for (const name of self.spec.charts) {
    const one = get("test.my.domain/v1/Web", name);
    if (!one) return wait(`Web ${name} is missing`, { patches });
    patches.push(patch(one, { spec: { target: "deployed" } }, { own: true }));
    if (one.status?.actual !== "deployed") return wait(`waiting for ${name}`, { patches });
  }
  return { patches, status: { satisfied: true } };
}
"#;

const ONE: &str = r#"import { release } from "opdev";
export function reconcile(self: any, context: any) {
  if (self.spec.target !== "deployed") return { status: { actual: "uninstalled" } };
  const name = self.metadata.name;
  const installed = context.releases[name];
  return {
    releases: [release({ name, chart: "charts/web", values: { greeting: self.spec.greeting } })],
    status: { actual: installed?.ready ? "deployed" : "installing" },
  };
}
"#;

const CHART: &str = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {{ .Release.Name }}-config\ndata:\n  \
                     greeting: {{ .Values.greeting | quote }}\n";

#[tokio::test(flavor = "multi_thread")]
async fn a_group_enables_charts_in_sequence_and_owns_them() {
    let mut one = script("Web", ONE);
    let Reconciler::Type(typed) = &mut one.reconciler else { panic!() };
    let typed = Arc::get_mut(typed).unwrap();
    typed.charts.insert("charts/web".to_owned(), chart("web", &[("templates/all.yaml", CHART)]));
    let mut world = World::start(vec![one, script("Shop", GROUP)]).await;
    let shops = world.api("test.my.domain", "Shop");
    let group = json!({"apiVersion": "test.my.domain/v1", "kind": "Shop", "metadata": {"name": "group"},
        "spec": {"charts": ["a", "b"]}});
    world.create(&shops, group).await;
    let reconcile = world.outcome("group", Outcome::Waiting).await;
    assert_eq!(reconcile.waiting.as_deref(), Some("Web a is missing"));
    world.create_web("b", json!({"greeting": "two"})).await;
    world.create_web("a", json!({"greeting": "one"})).await;
    let order = world
        .until("both installed", {
            let mut order = Vec::new();
            move |event| {
                let Event::Reconciled(reconcile) = event else { return None };
                let made = reconcile.objects.iter().filter(|change| change.object.gvk.kind == "ConfigMap");
                order.extend(made.map(|change| change.object.name.clone()));
                (order.len() == 2).then(|| order.clone())
            }
        })
        .await;
    assert_eq!(order, ["a-config", "b-config"], "b comes only once a is deployed");
    let satisfied =
        |object: Option<&DynamicObject>| object.is_some_and(|o| o.data["status"]["satisfied"] == true);
    let waiting = kube::runtime::wait::await_condition(shops.clone(), "group", satisfied);
    tokio::time::timeout(Duration::from_secs(30), waiting).await.unwrap().unwrap();
    let a = world.get(&world.webs(), "a").await.unwrap();
    assert_eq!(a["metadata"]["ownerReferences"][0]["name"], "group");
    // A value that somebody else sets is put back by the group, which reads it.
    world.patch(&world.webs(), "b", json!({"spec": {"target": "uninstalled"}})).await;
    let theirs = |cause: &String| cause.starts_with("Modified Web .spec.target by somebody");
    world
        .until("the group's repair", |event| match event {
            Event::Reconciled(reconcile) => {
                (reconcile.object.name == "group" && causes(reconcile).iter().any(theirs)).then_some(())
            }
            _ => None,
        })
        .await;
    // By this reconcile, or by one that was running when it happened.
    assert_eq!(world.get(&world.webs(), "b").await.unwrap()["spec"]["target"], "deployed");
    status(&world, "b", |status| status["actual"] == "deployed").await;
    world.delete(&shops, "group").await;
    let configs = world.api("", "ConfigMap");
    for name in ["a-config", "b-config"] {
        let none = |object: Option<&DynamicObject>| object.is_none();
        let waiting = kube::runtime::wait::await_condition(configs.clone(), name, none);
        tokio::time::timeout(Duration::from_secs(30), waiting).await.unwrap().unwrap();
    }
    world.stop().await;
}
