//! Programs beyond their own children: releases that they ask for, objects that they read, and trial runs of
//! programs that do not serve yet.

use super::typed::{config, field, maps, own_name, status, writes};
use super::world::{World, causes, chart, sources, typed};
use expect_test::expect;
use kube::api::{Api, DynamicObject};
use opdev_event::{Event, Outcome};
use opdev_object::meta::{self, Gvk};
use opdev_operator::manager::ManagerRequest;
use opdev_reconcile::dry_run_report::Shadowed;
use opdev_script::contract::{Desired, Read, Release};
use opdev_types::diagnostic::Diagnostic;
use serde_json::json;
use std::sync::Arc;
use std::time::Duration;

const CHART: &str = "apiVersion: v1
kind: ConfigMap
metadata:
  name: {{ .Release.Name }}-config
data:
  greeting: {{ .Values.greeting | default `hello` | quote }}
---
apiVersion: v1
kind: Service
metadata:
  name: {{ .Release.Name }}
spec:
  clusterIP: None
  selector: {app: x}
  ports: [{port: 80}]
";

/// A release for each entry of `spec.releases` (name → greeting), one after the other; the status tells what
/// is seen.
fn releasing(text: &str) -> opdev_sources::Watch {
    let mut watch = typed("Web", &["v1/ConfigMap"], |observed, _| {
        let mut desired = Desired::default();
        let wanted = field(observed, "releases").as_object().cloned().unwrap_or_default();
        for (name, greeting) in wanted {
            desired.releases.push(Release {
                name: name.clone(),
                namespace: None,
                chart: "./charts/web".to_owned(),
                values: json!({"greeting": greeting}),
                options: serde_json::Value::Null,
            });
            if !observed.releases.iter().any(|state| state.name == name && state.ready) {
                desired.waiting = Some(format!("release {name} is not ready"));
                break;
            }
        }
        let seen = observed.releases.iter().map(|state| {
            format!(
                "{} {} {} {} {}",
                state.name,
                state.chart,
                state.status,
                state.revision,
                state.objects.len()
            )
        });
        desired.status = Some(json!({"releases": seen.collect::<Vec<_>>()}));
        Ok(desired)
    });
    let opdev_sources::Reconciler::Type(typed) = &mut watch.reconciler else { panic!() };
    let typed = Arc::get_mut(typed).unwrap();
    typed.charts.insert("charts/web".to_owned(), chart("web", &[("templates/all.yaml", text)]));
    watch
}

async fn gone(api: &Api<DynamicObject>, name: &str) {
    let none = |object: Option<&DynamicObject>| object.is_none();
    let waiting = kube::runtime::wait::await_condition(api.clone(), name, none);
    tokio::time::timeout(Duration::from_secs(30), waiting).await.unwrap().unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn releases_are_installed_in_turn_repaired_upgraded_and_uninstalled() {
    let mut world = World::start(vec![releasing(CHART)]).await;
    world.create_web("site", json!({"releases": {"one": "1", "two": "2"}})).await;
    let reconcile = world.outcome("site", Outcome::Waiting).await;
    assert_eq!(reconcile.waiting.as_deref(), Some("release one is not ready"));
    assert_eq!(
        writes(&reconcile)[0],
        "patch webs/site",
        "the finalizer comes first: {:?}",
        writes(&reconcile)
    );
    let both = json!(["one web-0.1.0 deployed 1 2", "two web-0.1.0 deployed 1 2"]);
    status(&world, "site", |status| status["releases"] == both).await;
    let maps = world.api("", "ConfigMap");
    let object = world.get(&maps, "two-config").await.unwrap();
    assert_eq!(
        (&object["data"]["greeting"], meta::controller(&object).unwrap().name),
        (&json!("2"), "site".to_owned())
    );
    assert_eq!(world.revisions("two").await, ["1 deployed"]);

    // Drift of a release's object is put back, and its release is not taken for a child of the program.
    world.patch(&maps, "two-config", json!({"data": {"greeting": "drift"}})).await;
    let theirs = |cause: &String| cause.contains("ConfigMap .data.greeting by somebody");
    world
        .until("the repair", |event| match event {
            Event::Reconciled(reconcile) => causes(reconcile).iter().any(theirs).then_some(()),
            _ => None,
        })
        .await;
    // By this reconcile, or by one that was running when it happened.
    assert_eq!(world.get(&maps, "two-config").await.unwrap()["data"]["greeting"], "2");

    world.patch(&world.webs(), "site", json!({"spec": {"releases": {"two": "3"}}})).await;
    let next = json!(["one web-0.1.0 deployed 1 2", "two web-0.1.0 deployed 2 2"]);
    status(&world, "site", |status| status["releases"] == next).await;
    assert_eq!(world.revisions("two").await, ["1 superseded", "2 deployed"]);

    // A saved chart is rewritten in place.
    let mut watch = releasing(&CHART.replace("default `hello`", "printf `%s!`"));
    watch.changed_in = 2;
    world.sources.send(sources(2, vec![watch])).unwrap();
    world.settled().await;
    assert_eq!(world.revisions("two").await, ["1 superseded", "2 deployed"]);
    assert_eq!(world.get(&maps, "two-config").await.unwrap()["data"]["greeting"], "3!");

    world.patch(&world.webs(), "site", json!({"spec": {"releases": {"two": null}}})).await;
    gone(&maps, "two-config").await;
    assert!(world.get(&maps, "one-config").await.is_some());
    world.delete(&world.webs(), "site").await;
    world.outcome("site", Outcome::Uninstalled).await;
    assert!(world.get(&maps, "one-config").await.is_none());
    assert!(world.revisions("one").await.is_empty() && world.revisions("two").await.is_empty());
    assert!(world.get(&world.webs(), "site").await.is_none());
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_release_of_somebody_else_is_not_touched_and_an_unknown_chart_is_named() {
    let mut world = World::start(vec![releasing(CHART)]).await;
    world.create_web("first", json!({"releases": {"one": "1"}})).await;
    status(&world, "first", |status| status["releases"] == json!(["one web-0.1.0 deployed 1 2"])).await;
    world.create_web("second", json!({"releases": {"one": "2"}})).await;
    let reconcile = world.outcome("second", Outcome::Failed).await;
    let text = &reconcile.failure.as_ref().unwrap().chain[0];
    expect![[
        r#"release "one" in namespace "default" was installed by Web first; give one of the two another name"#
    ]]
    .assert_eq(text);
    assert_eq!(world.get(&world.api("", "ConfigMap"), "one-config").await.unwrap()["data"]["greeting"], "1");

    let mut watch = releasing(CHART);
    watch.changed_in = 2;
    let opdev_sources::Reconciler::Type(typed) = &mut watch.reconciler else { panic!() };
    Arc::get_mut(typed).unwrap().charts.clear();
    world.sources.send(sources(2, vec![watch])).unwrap();
    let reconcile = world
        .until("the pass with the new sources", |event| match event {
            Event::Reconciled(reconcile) if reconcile.object.name == "first" && reconcile.sources == 2 => {
                Some(Arc::clone(reconcile))
            }
            _ => None,
        })
        .await;
    let text = &reconcile.failure.as_ref().unwrap().chain[0];
    expect![[
        r#"release "one" names the chart "./charts/web", which is not loaded; the project's charts are: none"#
    ]]
    .assert_eq(text);
    world.stop().await;
}

async fn shadow(world: &World, watch: opdev_sources::Watch) -> Shadowed {
    let (reply, answer) = tokio::sync::oneshot::channel();
    world.requests.send(ManagerRequest::Shadow { watch: Arc::new(watch), reply }).await.unwrap();
    tokio::time::timeout(Duration::from_secs(30), answer).await.unwrap().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_trial_run_shows_what_would_change_and_changes_nothing() {
    let mut world = World::start(vec![maps()]).await;
    world.create_web("one", json!({"names": ["a", "b"]})).await;
    world.create_web("two", json!({"names": ["c"]})).await;
    status(&world, "one", |status| status["maps"] == json!(["a", "b"])).await;
    status(&world, "two", |status| status["maps"] == json!(["c"])).await;
    let same = shadow(&world, maps()).await;
    assert_eq!((same.ran, same.objects.len(), same.unchanged.len()), (2, 0, 2), "the same program: {same:?}");

    let newer = typed("Web", &["v1/ConfigMap"], |observed, host| {
        if own_name(observed) == "two" {
            let command = opdev_script::contract::Exec { program: "true".to_owned(), ..Default::default() };
            host.exec(&command).map_err(|why| Box::new(Diagnostic::error(why.to_string(), None)))?;
        }
        let children = vec![config("a", &json!("edited")), config("new", &json!("x"))];
        Ok(Desired { children, status: Some(json!({"maps": 2})), ..Desired::default() })
    });
    let found = shadow(&world, newer).await;
    assert_eq!((found.ran, found.objects.len(), found.skipped.len()), (1, 1, 1));
    expect!["exec true is not done in a dry run"].assert_eq(&found.skipped[0].why);
    let one = &found.objects[0];
    let said: Vec<String> = one
        .children
        .iter()
        .map(|change| {
            let fields: Vec<String> = change.changes.iter().map(|change| change.path.to_string()).collect();
            format!("{:?} {} {}", change.action, change.object.name, fields.join(" "))
        })
        .collect();
    assert_eq!(said, ["Updated a .data.greeting", "Created new ", "Deleted b "]);
    assert_eq!(one.status[0].path.to_string(), ".status.maps");
    assert_eq!(found.deletions().map(|object| object.name.as_str()).collect::<Vec<_>>(), ["b"]);

    let throwing = typed("Web", &[], |_, _| Err(Box::new(Diagnostic::error("no", None))));
    let found = shadow(&world, throwing).await;
    assert_eq!((found.ran, found.problem().unwrap().message.as_str()), (2, "no"));
    let panicking = typed("Web", &[], |_, _| panic!("no luck"));
    assert!(shadow(&world, panicking).await.problem().is_some());

    // Nothing of that has reached the cluster, and the running program serves on.
    let maps = world.api("", "ConfigMap");
    assert_eq!(world.get(&maps, "a").await.unwrap()["data"]["greeting"], "hello");
    assert!(world.get(&maps, "b").await.is_some() && world.get(&maps, "new").await.is_none());
    let reconcile = world.reconcile_by_key("one").await;
    assert_eq!(reconcile.outcome, Outcome::Unchanged);
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_selector_reads_is_watched_until_nobody_reads_it() {
    let watch = typed("Web", &[], |observed, host| {
        let labels = field(observed, "labels").as_str().unwrap_or_default().to_owned();
        if labels.is_empty() {
            return Ok(Desired::default());
        }
        let read = Read {
            gvk: Gvk::new("", "v1", "ConfigMap"),
            namespace: Some("default".to_owned()),
            name: None,
            selector: labels,
        };
        let found = host.list(&read).unwrap();
        let names: Vec<&str> = found.iter().filter_map(|object| meta::name(object)).collect();
        Ok(Desired { status: Some(json!({"found": names})), ..Desired::default() })
    });
    let mut world = World::start(vec![watch]).await;
    let maps = world.api("", "ConfigMap");
    let map = |name: &str, app: &str| json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "labels": {"app": app}}});
    world.create(&maps, map("a", "x")).await;
    world.create_web("site", json!({"labels": "app=x"})).await;
    status(&world, "site", |status| status["found"] == json!(["a"])).await;
    world.create(&maps, map("other", "y")).await;
    world.create(&maps, map("b", "x")).await;
    status(&world, "site", |status| status["found"] == json!(["a", "b"])).await;
    // An object that leaves the selection counts as well as one that goes.
    world.patch(&maps, "a", json!({"metadata": {"labels": {"app": "z"}}})).await;
    status(&world, "site", |status| status["found"] == json!(["b"])).await;
    world.delete(&maps, "b").await;
    status(&world, "site", |status| status["found"] == json!([])).await;
    world.patch(&world.webs(), "site", json!({"spec": {"labels": ""}})).await;
    world
        .until("the pass that reads nothing", |event| match event {
            Event::Reconciled(reconcile)
                if causes(reconcile).iter().any(|cause| cause.contains(".spec.labels")) =>
            {
                Some(())
            }
            _ => None,
        })
        .await;
    world.create(&maps, map("c", "x")).await;
    world.create_web("mark", json!({})).await;
    let reconcile = world
        .until("the mark, and no other pass before", |event| match event {
            Event::Reconciled(reconcile) => Some(Arc::clone(reconcile)),
            _ => None,
        })
        .await;
    assert_eq!(reconcile.object.name, "mark", "{:?}", causes(&reconcile));
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_object_that_another_controller_has_is_not_taken() {
    let mut world = World::start(vec![maps()]).await;
    world.create_web("one", json!({"names": ["a"]})).await;
    status(&world, "one", |status| status["maps"] == json!(["a"])).await;
    world.create_web("two", json!({"names": ["a"]})).await;
    let reconcile = world.outcome("two", Outcome::Failed).await;
    let text = &reconcile.failure.as_ref().unwrap().chain[0];
    expect!["ConfigMap default/a is controlled by Web one: two controllers cannot share an object; give the child another name, or change the object with a patch"]
    .assert_eq(text);
    world.stop().await;
}
