//! Objects of a watched kind that belong to nobody here: the operator keeps their metadata, until a program
//! reads them.

use super::typed::{field, status, writes};
use super::world::{World, causes, typed};
use opdev_event::{Event, Reconcile};
use opdev_object::meta::Gvk;
use opdev_script::contract::{Desired, Read};
use opdev_sources::Watch;
use serde_json::{Value, json};

/// A program with a ConfigMap of its own, which adds up the numbers of all others once it is told to.
fn adds_up() -> Watch {
    typed("Web", &["v1/ConfigMap"], |observed, host| {
        let own = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "own"}, "data": {"own": "1"}});
        let read = Read {
            gvk: Gvk::new("", "v1", "ConfigMap"),
            namespace: Some("default".to_owned()),
            name: None,
            selector: "role=number".to_owned(),
        };
        let sum = field(observed, "adds").as_bool().unwrap_or_default().then(|| {
            let found = host.list(&read).unwrap();
            let number = |map: &Value| map["data"]["n"].as_str().unwrap().parse::<u64>().unwrap();
            found.iter().map(|map| number(map)).sum::<u64>()
        });
        let status = json!({"sum": sum, "children": observed.children.len()});
        Ok(Desired { children: vec![own], status: Some(status), ..Desired::default() })
    })
}

fn number(name: &str, n: u64) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "labels": {"role": "number"}},
        "data": {"n": n.to_string()}})
}

#[tokio::test(flavor = "multi_thread")]
async fn a_program_that_begins_to_read_what_belongs_to_nobody_sees_all_of_it_and_hears_of_changes() {
    let mut world = World::start(vec![adds_up()]).await;
    let maps = world.api("", "ConfigMap");
    for (name, n) in [("one", 1), ("two", 2), ("four", 4)] {
        world.create(&maps, number(name, n)).await;
    }
    world.create_web("site", json!({"adds": false})).await;
    status(&world, "site", |status| status["children"] == 1).await;
    let webs = world.webs();
    world.patch(&webs, "site", json!({"spec": {"adds": true}})).await;
    status(&world, "site", |status| status["sum"] == 7).await;
    world.patch(&maps, "two", json!({"data": {"n": "20"}})).await;
    status(&world, "site", |status| status["sum"] == 25).await;
    // An object that is taken out of the selection was in it before, and only its metadata may be known.
    world.patch(&maps, "four", json!({"metadata": {"labels": {"role": "other"}}})).await;
    status(&world, "site", |status| status["sum"] == 21).await;
    world.create(&maps, number("eight", 8)).await;
    status(&world, "site", |status| status["sum"] == 29).await;
    world.delete(&maps, "one").await;
    status(&world, "site", |status| status["sum"] == 28).await;
    // A stranger's object becomes a child, and the cause says so.
    let owner = world.get(&webs, "site").await.unwrap();
    let reference = json!([{"apiVersion": owner["apiVersion"], "kind": "Web", "name": "site",
        "uid": owner["metadata"]["uid"], "controller": true}]);
    world.patch(&maps, "four", json!({"metadata": {"ownerReferences": reference}})).await;
    let put_away = |reconcile: &Reconcile| writes(reconcile).iter().any(|write| write.contains("four"));
    let reconcile = world
        .until("a pass for the adopted child", |event| match event {
            Event::Reconciled(reconcile) if put_away(reconcile) => Some(reconcile.clone()),
            _ => None,
        })
        .await;
    assert!(
        causes(&reconcile).iter().any(|cause| cause.starts_with("Modified ConfigMap")),
        "{:?}",
        causes(&reconcile)
    );
    world.stop().await;
}
