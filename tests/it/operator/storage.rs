//! The options of where a release and its records are, each by its name.

use super::hybrid::{CONFIG, at, beside, hybrid, namespace, plain, revisions, web};
use super::world::{World, chart, fed_by, watch_of};
use expect_test::expect;
use kube::api::{DynamicObject, ListParams};
use opdev_event::{Event, Outcome};
use opdev_helm::release::chunked::{Chunking, INDEX_TYPE};
use opdev_sources::chart_options::{ChartOptions, Storage};
use serde_json::{Value, json};

#[tokio::test(flavor = "multi_thread")]
async fn release_namespace_storage_namespace_and_storage_owner_reference() {
    let options = ChartOptions {
        release_namespace: Some("apps".to_owned()),
        storage_namespace: Some("records".to_owned()),
        storage_owner: Some(false),
        ..hybrid()
    };
    let script =
        "export function namespaces(self) { return self.spec.own ? { release: self.spec.own } : null; }\n";
    let mut world = World::start(vec![beside(web(&plain(), options), script)]).await;
    for name in ["apps", "records", "special"] {
        namespace(&world, name).await;
    }
    world.create_web("a", json!({})).await;
    world.outcome("a", Outcome::Installed).await;
    let found = world.get(&at(&world, "apps", "ConfigMap"), "a-config").await.unwrap();
    assert_eq!(found["metadata"]["annotations"]["operator-sdk/primary-resource"], "default/a");
    let record = world.get(&at(&world, "records", "Secret"), "sh.helm.release.v1.a.v1").await.unwrap();
    assert!(record["metadata"]["ownerReferences"].is_null());
    // Elsewhere: a new revision, and nothing stays behind.
    world.patch(&world.webs(), "a", json!({"spec": {"own": "special"}})).await;
    world.outcome("a", Outcome::Upgraded).await;
    assert!(world.get(&at(&world, "special", "ConfigMap"), "a-config").await.is_some());
    assert!(world.get(&at(&world, "apps", "ConfigMap"), "a-config").await.is_none());
    world.delete(&world.webs(), "a").await;
    world.outcome("a", Outcome::Uninstalled).await;
    assert!(world.get(&at(&world, "special", "ConfigMap"), "a-config").await.is_none());
    assert!(world.get(&at(&world, "records", "Secret"), "sh.helm.release.v1.a.v2").await.is_none());
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn storage_is_a_config_map_or_this_process() {
    let mut shop = watch_of("Shop", chart("shop", &plain()));
    fed_by(&mut shop).options = ChartOptions { storage: Some(Storage::Memory), ..hybrid() };
    let options = ChartOptions { storage: Some(Storage::ConfigMap), ..hybrid() };
    let mut world = World::start(vec![web(&plain(), options), shop]).await;
    world.create_web("a", json!({})).await;
    world.outcome("a", Outcome::Installed).await;
    world.patch(&world.webs(), "a", json!({"spec": {"greeting": "two"}})).await;
    world.outcome("a", Outcome::Upgraded).await;
    assert_eq!(revisions(&world, "ConfigMap", "a").await, ["1 superseded", "2 deployed"]);
    assert!(revisions(&world, "Secret", "a").await.is_empty());
    let shops = world.api("test.my.domain", "Shop");
    world
        .create(
            &shops,
            json!({"apiVersion": "test.my.domain/v1", "kind": "Shop", "metadata": {"name": "b"}, "spec": {}}),
        )
        .await;
    world.outcome("b", Outcome::Installed).await;
    world.patch(&shops, "b", json!({"spec": {"greeting": "two"}})).await;
    let reconcile = world.outcome("b", Outcome::Upgraded).await;
    assert_eq!(reconcile.releases[0].revision, 2);
    assert!(
        revisions(&world, "Secret", "b").await.is_empty()
            && revisions(&world, "ConfigMap", "b").await.is_empty()
    );
    world.delete(&shops, "b").await;
    world.outcome("b", Outcome::Uninstalled).await;
    assert!(world.get(&world.api("", "ConfigMap"), "b-config").await.is_none());
    world.stop().await;
}

/// A chart whose record does not fit into one part of 1024 bytes: words that gzip cannot make much shorter.
fn large() -> ChartOptions {
    let chunked = Chunking { owner: "mine".to_owned(), size: 1024, ..Chunking::default() };
    ChartOptions { storage: Some(Storage::Chunked), chunked: Some(chunked), ..hybrid() }
}

fn noise() -> String {
    let digits = |at: u32| format!("{:x}", at.wrapping_mul(2_654_435_761).rotate_left(at % 31));
    (1..600).map(digits).collect()
}

async fn secrets(world: &World, selector: &str) -> Vec<Value> {
    let all = world.api("", "Secret").list(&ListParams::default().labels(selector)).await.unwrap();
    all.items.into_iter().map(|found: DynamicObject| serde_json::to_value(found).unwrap()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn storage_chunked_splits_a_record_and_takes_all_of_it_away() {
    let noise = noise();
    let files = [("templates/config.yaml", CONFIG), ("files/noise.txt", noise.as_str())];
    let mut world = World::start(vec![web(&files, large())]).await;
    world.create_web("a", json!({})).await;
    world.outcome("a", Outcome::Installed).await;
    world.patch(&world.webs(), "a", json!({"spec": {"greeting": "two"}})).await;
    world.outcome("a", Outcome::Upgraded).await;
    let indexes = secrets(&world, "owner=mine,name=a,type=index").await;
    let words = |index: &Value| {
        let labels = &index["metadata"]["labels"];
        (labels["version"].clone(), labels["status"].clone(), index["type"].clone())
    };
    let found: Vec<_> = indexes.iter().map(words).collect();
    let word = |version: &str, status: &str| (json!(version), json!(status), json!(INDEX_TYPE));
    assert_eq!(found, [word("1", "superseded"), word("2", "deployed")]);
    assert_eq!(indexes[0]["metadata"]["ownerReferences"][0]["kind"], "Web");
    for index in &indexes {
        let key = index["metadata"]["name"].as_str().unwrap();
        let parts = secrets(&world, &format!("owner=mine,type=chunk,key={key}")).await;
        let names = opdev_helm::release::chunked::further_names(index).unwrap();
        let mut there: Vec<&str> =
            parts.iter().filter_map(|part| part["metadata"]["name"].as_str()).collect();
        let mut named: Vec<&str> = names.iter().map(String::as_str).collect();
        there.sort_unstable();
        named.sort_unstable();
        assert!(named.len() > 1, "{named:?}");
        assert_eq!(there, named, "nothing of the record before it was written anew is left");
        let owned = |part: &Value| part["metadata"]["ownerReferences"][0]["uid"] == index["metadata"]["uid"];
        assert!(parts.iter().all(owned));
    }
    // A restart reads what is there: nothing is done again.
    let mut world = world.restart(vec![web(&files, large())]).await;
    world.reconcile_now("a").await;
    world.outcome("a", Outcome::Unchanged).await;
    world.delete(&world.webs(), "a").await;
    world.outcome("a", Outcome::Uninstalled).await;
    assert!(secrets(&world, "owner=mine").await.is_empty());
    world.stop().await;
}

/// Whoever stored a revision was killed before the last of its Secrets was there.
#[tokio::test(flavor = "multi_thread")]
async fn a_record_whose_chunks_are_not_all_there_is_dropped() {
    let mut world = World::start(vec![web(&plain(), large())]).await;
    world.create_web("a", json!({})).await;
    world.outcome("a", Outcome::Installed).await;
    let mut torn = secrets(&world, "owner=mine,name=a").await.remove(0);
    let name = "sh.helm.release.v1.a.v2";
    torn["metadata"] = json!({"name": name, "namespace": "default", "labels": {"owner": "mine", "name": "a", "type": "index",
        "version": "2", "status": "pending-upgrade", "key": name}});
    torn["data"]["extraChunks"] = json!("WyJub25lIl0=");
    world.create(&world.api("", "Secret"), torn.clone()).await;
    world.patch(&world.webs(), "a", json!({"spec": {"greeting": "two"}})).await;
    let mut said = String::new();
    let seen = |event: &Event| match event {
        Event::Noticed(notice) => {
            said.push_str(&notice.message);
            None
        }
        Event::Reconciled(reconcile) if reconcile.outcome == Outcome::Upgraded => {
            Some(reconcile.releases[0].revision)
        }
        _ => None,
    };
    assert_eq!(world.until("the upgrade", seen).await, 2);
    expect!["Secret sh.helm.release.v1.a.v2: chunk 2 of 2, Secret none, is missing. The revision was broken off while it was stored, and is dropped"]
    .assert_eq(&said);
    // Nor does it hold an uninstall up.
    torn["metadata"]["name"] = json!("sh.helm.release.v1.a.v3");
    torn["metadata"]["labels"]["version"] = json!("3");
    world.create(&world.api("", "Secret"), torn).await;
    world.delete(&world.webs(), "a").await;
    world.outcome("a", Outcome::Uninstalled).await;
    assert!(secrets(&world, "owner=mine").await.is_empty());
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_record_of_too_many_chunks_is_refused_before_anything_is_written() {
    let noise = noise();
    let files = [("templates/config.yaml", CONFIG), ("files/noise.txt", noise.as_str())];
    let mut options = large();
    options.chunked.as_mut().unwrap().most_written = 1;
    let mut world = World::start(vec![web(&files, options)]).await;
    world.create_web("a", json!({})).await;
    let reconcile = world.outcome("a", Outcome::Failed).await;
    let chain = reconcile.failure.as_ref().unwrap().chain.join(": ");
    expect![[r#"failed to install release: create: failed to encode release "a": release too large: "a" requires 5 chunks, which exceeds the maximum of 1"#]]
    .assert_eq(&chain);
    assert!(secrets(&world, "owner=mine").await.is_empty());
    assert!(world.get(&world.api("", "ConfigMap"), "a-config").await.is_none());
    world.stop().await;
}
