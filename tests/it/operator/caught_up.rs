//! Whoever asks the manager whether it has caught up hears of it once its watches have shown what he names,
//! and not before.

use super::world::{World, chart, web};
use opdev_event::Outcome;
use opdev_operator::manager::ManagerRequest;
use serde_json::{Value, json};
use std::sync::Arc;
use tokio::sync::oneshot;

const CONFIG: &str = "apiVersion: v1
kind: ConfigMap
metadata:
  name: {{ .Release.Name }}-config
data:
  greeting: {{ .Values.greeting | default `hello` }}
";

async fn ask(world: &World, objects: &[Value]) -> oneshot::Receiver<()> {
    let (reply, answer) = oneshot::channel();
    let objects = objects.iter().cloned().map(Arc::new).collect();
    world.requests.send(ManagerRequest::CatchUp { objects, reply }).await.unwrap();
    answer
}

/// Comes once the manager has carried out all that it was asked before.
async fn carried_out(world: &World) {
    let (reply, answer) = oneshot::channel();
    world.requests.send(ManagerRequest::Look { reply }).await.unwrap();
    answer.await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn the_manager_has_caught_up_once_its_watches_have_shown_what_is_there() {
    let mut world = World::start(vec![web(chart("web", &[("templates/all.yaml", CONFIG)]))]).await;
    world.create_web("site", json!({})).await;
    world.outcome("site", Outcome::Installed).await;
    let there = world.get(&world.webs(), "site").await.unwrap();
    ask(&world, std::slice::from_ref(&there)).await.await.unwrap();

    // As it will be after one more write.
    let mut ahead = there;
    let version: u64 = ahead["metadata"]["resourceVersion"].as_str().unwrap().parse().unwrap();
    ahead["metadata"]["resourceVersion"] = json!((version + 1).to_string());
    let mut answer = ask(&world, &[ahead]).await;
    carried_out(&world).await;
    carried_out(&world).await;
    assert!(answer.try_recv().is_err(), "no watch has shown that");
    world.patch(&world.webs(), "site", json!({"metadata": {"labels": {"new": "yes"}}})).await;
    answer.await.unwrap();
}
