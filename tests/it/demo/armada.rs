//! Armada: a disabled chart stays out, a group enables its charts in sequence and owns them, a manifest
//! enables its groups; drift, events, backup and restore, and everything goes with the manifest.

use super::world::World;
use opdev_event::Event;
use serde_json::{Value, json};

const CHART: &str = "armada.airshipit.org/v1alpha1/ArmadaChart";
const GROUP: &str = "armada.airshipit.org/v1alpha1/ArmadaChartGroup";
const MANIFEST: &str = "armada.airshipit.org/v1alpha1/ArmadaManifest";
const BACKUP: &str = "armada.airshipit.org/v1alpha1/ArmadaBackup";
const RESTORE: &str = "armada.airshipit.org/v1alpha1/ArmadaRestore";
const DEPLOYMENT: &str = "apps/v1/Deployment";

fn deployed(object: &Value) -> bool {
    object["status"]["actual_state"] == "deployed" && object["status"]["satisfied"] == true
}

async fn charts(world: &mut World) {
    for chart in ["blog-1", "blog-2"] {
        world.apply(&format!("samples/armada/{chart}.yaml")).await;
        world
            .until(CHART, chart, "it is out", |chart| {
                chart["status"]["actual_state"] == "uninitialized" && chart["status"]["satisfied"] == true
            })
            .await;
    }
}

/// When an object was first like this, as a resource version: of two kinds, events come in any order.
fn first(world: &World, kind: &str, name: &str, pick: impl Fn(&Value) -> bool) -> u64 {
    let found = world.opdev.since(0).into_iter().find_map(|event| match event {
        Event::ObjectSeen(seen)
            if seen.object_ref.gvk == super::outside::gvk(kind)
                && seen.object_ref.name == name
                && pick(&seen.object) =>
        {
            opdev_object::meta::resource_version(&seen.object)?.parse().ok()
        }
        _ => None,
    });
    found.unwrap_or_else(|| panic!("{kind} {name} was never like that"))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_disabled_chart_stays_out_until_its_target_state_is_patched() {
    let mut world = World::start().await;
    charts(&mut world).await;
    assert!(world.get(DEPLOYMENT, "blog-1-testchart").await.is_none());
    world.patch(CHART, "blog-1", &json!({"spec": {"target_state": "deployed"}})).await;
    world.until(CHART, "blog-1", "it is deployed", deployed).await;
    let child = world.get(DEPLOYMENT, "blog-1-testchart").await.unwrap();
    assert_eq!(child["spec"]["template"]["spec"]["containers"][0]["env"][0]["value"], "blog 1");
    assert!(world.get(DEPLOYMENT, "blog-2-testchart").await.is_none(), "nobody asked for blog-2");

    // Drift: what somebody changed is put back, what somebody deleted is made again.
    world.patch(DEPLOYMENT, "blog-1-testchart", &json!({"spec": {"replicas": 3}})).await;
    world
        .until(DEPLOYMENT, "blog-1-testchart", "the drift is put back", |it| it["spec"]["replicas"] == 1)
        .await;
    world.kill(DEPLOYMENT, "blog-1-testchart").await;
    world
        .until(DEPLOYMENT, "blog-1-testchart", "it is made again", |it| {
            it["metadata"]["uid"] != child["metadata"]["uid"] && it["status"]["readyReplicas"] == 1
        })
        .await;
    let said = world.list("v1/Event", "").await;
    assert!(
        said.iter().any(|it| it["involvedObject"]["name"] == "blog-1" && it["reason"] == "Deployed"),
        "no event says that blog-1 is deployed: {said:?}"
    );

    // New values are a new revision.
    world.patch(CHART, "blog-1", &json!({"spec": {"values": {"message": "changed"}}})).await;
    world
        .until(CHART, "blog-1", "revision 2 is deployed", |it| deployed(it) && it["status"]["revision"] == 2)
        .await;

    world.patch(CHART, "blog-1", &json!({"spec": {"target_state": "uninstalled"}})).await;
    world.until_gone(DEPLOYMENT, "blog-1-testchart").await;
    world.until(CHART, "blog-1", "it is out again", |it| it["status"]["actual_state"] == "uninstalled").await;
    world.none_failed("blog-1");
    world.opdev.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_manifest_enables_its_group_in_sequence_and_takes_everything_with_it() {
    let mut world = World::start().await;
    charts(&mut world).await;
    world.apply("samples/armada/blog-group.yaml").await;
    world.until(GROUP, "blog-group", "it is out", |it| it["status"]["actual_state"] == "uninitialized").await;
    world.apply("samples/armada/simple-armada.yaml").await;
    world.until(MANIFEST, "simple-armada", "it is deployed", deployed).await;
    world.until(GROUP, "blog-group", "it is deployed", deployed).await;

    let enabled = |it: &Value| it["spec"]["target_state"] == "deployed";
    let one = first(&world, CHART, "blog-1", deployed);
    let two = first(&world, CHART, "blog-2", enabled);
    assert!(one < two, "blog-2 was enabled before blog-1 was satisfied");
    assert!(first(&world, CHART, "blog-2", deployed) < first(&world, GROUP, "blog-group", deployed));
    for (kind, name, owner) in [
        (CHART, "blog-1", "blog-group"),
        (CHART, "blog-2", "blog-group"),
        (GROUP, "blog-group", "simple-armada"),
    ] {
        let object = world.get(kind, name).await.unwrap();
        assert_eq!(object["metadata"]["ownerReferences"][0]["name"], owner, "{object:#}");
    }

    world.delete(MANIFEST, "simple-armada").await;
    for (kind, name) in
        [(MANIFEST, "simple-armada"), (GROUP, "blog-group"), (CHART, "blog-1"), (CHART, "blog-2")]
    {
        world.until_gone(kind, name).await;
    }
    for chart in ["blog-1", "blog-2"] {
        world.until_gone(DEPLOYMENT, &format!("{chart}-testchart")).await;
        world.until_gone("v1/Service", &format!("{chart}-testchart")).await;
    }
    world.until_pods(("app.kubernetes.io/name", "testchart"), 0).await;
    for name in ["simple-armada", "blog-group", "blog-1", "blog-2"] {
        world.none_failed(name);
    }
    world.opdev.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_backup_brings_everything_back() {
    let mut world = World::start().await;
    charts(&mut world).await;
    world.apply("samples/armada/blog-group.yaml").await;
    world.apply("samples/armada/simple-armada.yaml").await;
    world.until(MANIFEST, "simple-armada", "it is deployed", deployed).await;
    world.apply("samples/armada/backup.yaml").await;
    let completed = |it: &Value| it["status"]["phase"] == "Completed";
    let backup = world.until(BACKUP, "simple-armada-backup", "it is taken", completed).await;
    assert_eq!(backup["status"]["charts"], 2);
    let kept = world.get("v1/ConfigMap", "simple-armada-backup").await.unwrap();
    assert!(kept["data"]["charts.json"].as_str().unwrap().contains("\"deployed\""));
    assert!(kept["data"]["charts.json"].as_str().unwrap().contains("\"blog 1\""));

    // A backup does not follow what it backs up.
    world.patch(CHART, "blog-1", &json!({"spec": {"values": {"message": "later"}}})).await;
    world
        .until(CHART, "blog-1", "the change is out", |it| deployed(it) && it["status"]["revision"] == 2)
        .await;
    world.delete(MANIFEST, "simple-armada").await;
    for chart in ["blog-1", "blog-2"] {
        world.until_gone(CHART, chart).await;
        world.until_gone(DEPLOYMENT, &format!("{chart}-testchart")).await;
    }

    world.apply("samples/armada/restore.yaml").await;
    world.until(RESTORE, "simple-armada-restore", "it is restored", completed).await;
    world.until(MANIFEST, "simple-armada", "it is deployed", deployed).await;
    let child = world.get(DEPLOYMENT, "blog-1-testchart").await.unwrap();
    assert_eq!(child["spec"]["template"]["spec"]["containers"][0]["env"][0]["value"], "blog 1");
    // Objects that were restored stay when the restore goes.
    world.delete(RESTORE, "simple-armada-restore").await;
    world.until_gone(RESTORE, "simple-armada-restore").await;
    assert!(deployed(&world.get(MANIFEST, "simple-armada").await.unwrap()));
    world.opdev.stop().await;
}

/// As `kubectl apply -f samples/armada` does.
#[tokio::test(flavor = "multi_thread")]
async fn all_samples_at_once_come_to_rest() {
    let mut world = World::start().await;
    for file in ["backup", "blog-1", "blog-2", "blog-group", "restore", "simple-armada"] {
        world.apply(&format!("samples/armada/{file}.yaml")).await;
    }
    let completed = |it: &Value| it["status"]["phase"] == "Completed";
    world.until(BACKUP, "simple-armada-backup", "it is taken", completed).await;
    let kept = world.get("v1/ConfigMap", "simple-armada-backup").await.unwrap();
    assert!(
        kept["data"]["charts.json"].as_str().unwrap().contains("\"target_state\":\"deployed\""),
        "{kept:#}"
    );
    world.until(RESTORE, "simple-armada-restore", "it is restored", completed).await;
    for (kind, name) in
        [(MANIFEST, "simple-armada"), (GROUP, "blog-group"), (CHART, "blog-1"), (CHART, "blog-2")]
    {
        world.until(kind, name, "it is deployed", deployed).await;
    }
    world.opdev.stop().await;
}
