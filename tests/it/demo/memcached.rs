//! The hybrid Memcached operator: a chart reconciles Memcached, a script MemcachedBackup, side by side.

use super::world::World;
use serde_json::json;

const MEMCACHED: &str = "cache.my.domain/v1alpha1/Memcached";
const BACKUP: &str = "cache.my.domain/v1/MemcachedBackup";

#[tokio::test(flavor = "multi_thread")]
async fn chart_and_script_side_by_side() {
    let mut world = World::start().await;
    world.apply("samples/memcached.yaml").await;
    world.apply("samples/memcachedbackup.yaml").await;
    world.until_pods(("app.kubernetes.io/instance", "memcached-sample"), 3).await;
    let two = world.until_pods(("memcached_cr", "memcachedbackup-sample"), 2).await;
    let named =
        |names: Vec<String>| move |backup: &serde_json::Value| backup["status"]["nodes"] == json!(names);
    world.until(BACKUP, "memcachedbackup-sample", "the status names its pods", named(two)).await;

    world.patch(BACKUP, "memcachedbackup-sample", &json!({"spec": {"size": 4}})).await;
    let four = world.until_pods(("memcached_cr", "memcachedbackup-sample"), 4).await;
    world.until(BACKUP, "memcachedbackup-sample", "the status names its pods", named(four)).await;
    world.patch(BACKUP, "memcachedbackup-sample", &json!({"spec": {"size": 0}})).await;
    world.until_pods(("memcached_cr", "memcachedbackup-sample"), 0).await;
    world.until(BACKUP, "memcachedbackup-sample", "the status names none", named(Vec::new())).await;
    let patch = kube::api::Patch::Merge(json!({"spec": {"size": -1}}));
    let refused = world.api(BACKUP).patch("memcachedbackup-sample", &Default::default(), &patch).await;
    let refused = refused.unwrap_err().to_string();
    assert!(refused.contains("spec.size") && refused.contains("greater than or equal to 0"), "{refused}");

    world.patch(BACKUP, "memcachedbackup-sample", &json!({"spec": {"size": 1}})).await;
    world.until_pods(("memcached_cr", "memcachedbackup-sample"), 1).await;
    world.patch("apps/v1/Deployment", "memcachedbackup-sample", &json!({"spec": {"replicas": 3}})).await;
    world
        .until("apps/v1/Deployment", "memcachedbackup-sample", "the drift is put back", |deployment| {
            deployment["spec"]["replicas"] == 1 && deployment["status"]["readyReplicas"] == 1
        })
        .await;

    world.delete(BACKUP, "memcachedbackup-sample").await;
    world.delete(MEMCACHED, "memcached-sample").await;
    world.until_gone("apps/v1/Deployment", "memcachedbackup-sample").await;
    world.until_gone("apps/v1/Deployment", "memcached-sample").await;
    world.until_pods(("memcached_cr", "memcachedbackup-sample"), 0).await;
    world.none_failed("memcachedbackup-sample");
    world.none_failed("memcached-sample");
    world.opdev.stop().await;
}
