//! Hello: two deployments from one chart; a scaled child is put back, deleted children come back.

use super::world::World;
use serde_json::json;

const HELLO: &str = "charts.my.domain/v1alpha1/Hello";
const DEPLOYMENT: &str = "apps/v1/Deployment";

#[tokio::test(flavor = "multi_thread")]
async fn drift_is_put_back_and_children_come_back() {
    let mut world = World::start().await;
    world.apply("samples/hello.yaml").await;
    let ready = |replicas: i64| {
        move |it: &serde_json::Value| {
            it["status"]["readyReplicas"] == replicas && it["spec"]["replicas"] == replicas
        }
    };
    for child in ["example-hello", "example-greeter"] {
        world.until(DEPLOYMENT, child, "it is ready", ready(1)).await;
    }
    world.patch(DEPLOYMENT, "example-greeter", &json!({"spec": {"replicas": 5}})).await;
    world.until(DEPLOYMENT, "example-greeter", "the drift is put back", ready(1)).await;

    let mut old = Vec::new();
    for child in ["example-hello", "example-greeter"] {
        let uid = world.get(DEPLOYMENT, child).await.unwrap()["metadata"]["uid"].clone();
        world.kill(DEPLOYMENT, child).await;
        old.push((child, uid));
    }
    for (child, uid) in old {
        world
            .until(DEPLOYMENT, child, "it is back", |it| {
                it["metadata"]["uid"] != uid && it["status"]["readyReplicas"] == 1
            })
            .await;
    }
    world.delete(HELLO, "example").await;
    for child in ["example-hello", "example-greeter"] {
        world.until_gone(DEPLOYMENT, child).await;
    }
    world.opdev.stop().await;
}
