//! Pausing objects and kinds: causes collect, nothing is put right, until a step or the end of the pause.

use super::world::{World, causes, chart, sources, web};
use expect_test::expect;
use opdev_event::{Event, Outcome, PauseScope, Paused};
use opdev_object::meta::{Gvk, ObjectRef};
use opdev_operator::manager::{Answer, ManagerRequest};
use serde_json::json;
use std::sync::Arc;
use tokio::sync::oneshot;

const CONFIG: &str = "apiVersion: v1
kind: ConfigMap
metadata:
  name: {{ .Release.Name }}-config
data:
  greeting: {{ .Values.greeting | default `hello` }}
";

fn simple(text: &str) -> Arc<opdev_helm::chart::Chart> {
    chart("web", &[("templates/all.yaml", text)])
}

fn web_gvk() -> Gvk {
    Gvk::new("test.my.domain", "v1", "Web")
}

fn site() -> ObjectRef {
    ObjectRef { gvk: web_gvk(), namespace: Some("default".to_owned()), name: "site".to_owned(), uid: None }
}

/// Asks the manager for something and gives back its answer.
async fn ask(
    world: &World,
    request: impl FnOnce(oneshot::Sender<Answer>) -> ManagerRequest,
) -> Result<String, String> {
    let (reply, answer) = oneshot::channel();
    world.requests.send(request(reply)).await.unwrap();
    answer.await.unwrap().map_err(|why| why.to_string())
}

async fn pause(world: &World, scope: PauseScope) -> Result<String, String> {
    ask(world, |reply| ManagerRequest::Pause { scope, why: None, reply }).await
}

async fn resume(world: &World, scope: PauseScope) -> Result<String, String> {
    ask(world, |reply| ManagerRequest::Resume { scope, reply }).await
}

/// Waits until what is paused is as it should be.
async fn paused(world: &mut World, what: &str, is: impl Fn(&[Paused]) -> bool) {
    let told = |event: &Event| match event {
        Event::PausesChanged { paused } => is(paused).then_some(()),
        _ => None,
    };
    world.until(what, told).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_paused_object_collects_causes_and_a_step_is_one_reconcile() {
    let mut world = World::start(vec![web(simple(CONFIG))]).await;
    for name in ["site", "other"] {
        world.create_web(name, json!({})).await;
        world.outcome(name, Outcome::Installed).await;
    }
    let scope = PauseScope::Object { object: site() };
    pause(&world, scope.clone()).await.unwrap();
    expect!["Web default/site is paused already"].assert_eq(&pause(&world, scope.clone()).await.unwrap_err());

    // Drift stays, and is told; the other object is put right as ever.
    let configs = world.api("", "ConfigMap");
    for name in ["site-config", "other-config"] {
        world.patch(&configs, name, json!({"data": {"greeting": "drift"}})).await;
    }
    world.outcome("other", Outcome::Repaired).await;
    world.patch(&world.webs(), "site", json!({"spec": {"greeting": "hi"}})).await;
    paused(
        &mut world,
        "two causes behind the gate",
        |all| matches!(all, [one] if one.causes >= 2 && one.waiting == 1),
    )
    .await;
    let drifted = world.get(&configs, "site-config").await.unwrap();
    assert_eq!(drifted["data"]["greeting"], "drift");

    ask(&world, |reply| ManagerRequest::Step { object: site(), reply }).await.unwrap();
    let reconcile = world.reconcile("site").await;
    let all = causes(&reconcile);
    assert!(all.iter().any(|cause| cause == "User"), "{all:?}");
    assert!(all.iter().any(|cause| cause.contains("ConfigMap .data.greeting by somebody")), "{all:?}");
    assert_eq!(world.get(&configs, "site-config").await.unwrap()["data"]["greeting"], "hi");

    // Once: what happens now waits again.
    world.patch(&configs, "site-config", json!({"data": {"greeting": "drift"}})).await;
    paused(&mut world, "a cause behind the gate", |all| matches!(all, [one] if one.waiting == 1)).await;
    assert_eq!(world.get(&configs, "site-config").await.unwrap()["data"]["greeting"], "drift");
    resume(&world, scope.clone()).await.unwrap();
    world.outcome("site", Outcome::Repaired).await;
    expect!["Web default/site is not paused"].assert_eq(&resume(&world, scope).await.unwrap_err());
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_paused_kind_holds_new_objects_and_saved_files() {
    let mut world = World::start(vec![web(simple(CONFIG))]).await;
    world.create_web("site", json!({})).await;
    world.outcome("site", Outcome::Installed).await;
    let kind = PauseScope::Kind { gvk: web_gvk() };
    pause(&world, kind.clone()).await.unwrap();
    world.create_web("late", json!({})).await;
    paused(&mut world, "a new object behind the gate", |all| matches!(all, [one] if one.waiting == 1)).await;
    // A saved chart waits, too, and nothing waits for it.
    let mut changed = web(simple(&CONFIG.replace("hello", "good day")));
    changed.changed_in = 2;
    world.sources.send_replace(sources(2, vec![changed]));
    let settled = world.settled().await;
    assert_eq!((settled.sources, settled.objects), (2, 0));
    let single = PauseScope::Object { object: site() };
    let refused = resume(&world, single).await.unwrap_err();
    expect!["Web default/site stays paused: its kind Web is paused as a whole, resume the kind"]
        .assert_eq(&refused);
    resume(&world, kind).await.unwrap();
    let (mut site, mut late) = (false, false);
    world
        .until("both objects done", |event| {
            if let Event::Reconciled(reconcile) = event {
                site |= reconcile.object.name == "site" && reconcile.outcome == Outcome::Upgraded;
                late |= reconcile.object.name == "late" && reconcile.outcome == Outcome::Installed;
            }
            (site && late).then_some(())
        })
        .await;
    let greeting = world.get(&world.api("", "ConfigMap"), "site-config").await.unwrap();
    assert_eq!(greeting["data"]["greeting"], "good day");
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_paused_object_that_goes_takes_its_pause_along() {
    let mut world = World::start(vec![web(simple(CONFIG))]).await;
    world.create_web("site", json!({})).await;
    world.outcome("site", Outcome::Installed).await;
    pause(&world, PauseScope::Object { object: site() }).await.unwrap();
    world.delete(&world.webs(), "site").await;
    // It hangs on its finalizer for as long as nobody answers; whoever takes the finalizer off lets it go.
    paused(&mut world, "a deletion behind the gate", |all| matches!(all, [one] if one.waiting == 1)).await;
    world.patch(&world.webs(), "site", json!({"metadata": {"finalizers": null}})).await;
    paused(&mut world, "nothing paused", <[Paused]>::is_empty).await;
    world.create_web("site", json!({})).await;
    world.reconcile("site").await;
    let nobody = ObjectRef { name: "nobody".to_owned(), gvk: Gvk::new("", "v1", "Pod"), ..site() };
    let refused = pause(&world, PauseScope::Object { object: nobody }).await.unwrap_err();
    expect!["no custom resource that opdev reconciles is behind Pod default/nobody"].assert_eq(&refused);
    world.stop().await;
}
