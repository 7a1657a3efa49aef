//! Loops are named and stopped: two writers of one field, a reconciler that keeps itself busy, a chart that
//! is never done; and the check that a reconcile has nothing left to do.

use super::world::{World, chart, typed, web};
use expect_test::expect;
use opdev_event::{Event, LoopFound, LoopKind, Outcome, PauseScope, Paused};
use opdev_object::meta::{Gvk, ObjectRef};
use opdev_operator::manager::{Answer, ManagerRequest};
use opdev_script::contract::{Desired, Patch, Read};
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

const CONFIG: &str = "apiVersion: v1
kind: ConfigMap
metadata:
  name: {{ .Release.Name }}-config
data:
  greeting: hello
  other: stays
";

fn site() -> ObjectRef {
    let gvk = Gvk::new("test.my.domain", "v1", "Web");
    ObjectRef { gvk, namespace: Some("default".to_owned()), name: "site".to_owned(), uid: None }
}

/// Somebody who writes `drift` into a ConfigMap whenever it says `hello`.
fn rival(world: &World, name: &'static str) -> JoinHandle<()> {
    use kube::api::{DynamicObject, Patch, PatchParams};
    let api = world.api("", "ConfigMap");
    tokio::spawn(async move {
        let params = PatchParams { field_manager: Some("rival".to_owned()), ..PatchParams::default() };
        let hello = |object: Option<&DynamicObject>| {
            object.is_some_and(|object| object.data.pointer("/data/greeting") == Some(&json!("hello")))
        };
        // A server that has stopped refuses at once, again and again: nobody could end this task any more.
        while kube::runtime::wait::await_condition(api.clone(), name, hello).await.is_ok() {
            // It may be gone by now.
            let _ = api.patch(name, &params, &Patch::Merge(json!({"data": {"greeting": "drift"}}))).await;
        }
    })
}

async fn found(world: &mut World) -> Arc<LoopFound> {
    world
        .until("a loop", |event| match event {
            Event::LoopFound(found) => Some(Arc::clone(found)),
            _ => None,
        })
        .await
}

async fn paused(world: &mut World, what: &str, is: impl Fn(&[Paused]) -> bool) {
    let told = |event: &Event| match event {
        Event::PausesChanged { paused } => is(paused).then_some(()),
        _ => None,
    };
    world.until(what, told).await;
}

async fn ask(
    world: &World,
    request: impl FnOnce(oneshot::Sender<Answer>) -> ManagerRequest,
) -> Result<String, String> {
    let (reply, answer) = oneshot::channel();
    world.requests.send(request(reply)).await.unwrap();
    answer.await.unwrap().map_err(|why| why.to_string())
}

async fn check(world: &World) -> Result<String, String> {
    ask(world, |reply| ManagerRequest::Check { object: site(), reply }).await
}

#[tokio::test(flavor = "multi_thread")]
async fn two_writers_of_one_field_are_named_and_parted_until_the_user_says_so() {
    let mut world = World::start(vec![web(chart("web", &[("templates/all.yaml", CONFIG)]))]).await;
    world.create_web("site", json!({})).await;
    world.outcome("site", Outcome::Installed).await;
    let rival = rival(&world, "site-config");
    let fight = found(&mut world).await;
    assert_eq!((fight.kind, fight.paused), (LoopKind::Fight, true), "{fight}");
    let [field] = fight.fields.as_slice() else { panic!("{fight}") };
    assert_eq!((field.object.name.as_str(), field.path.as_str()), ("site-config", ".data.greeting"));
    assert_eq!((field.ours.as_deref(), field.theirs.as_deref()), (Some("hello"), Some("drift")));
    assert!(field.writers.contains(&"rival".to_owned()), "{fight}");
    paused(
        &mut world,
        "the pause and its reason",
        |all| matches!(all, [one] if one.why.as_ref().is_some_and(|why| why.contains(".data.greeting"))),
    )
    .await;
    assert!(world.notices.iter().any(|text| text.contains("drift by rival")), "{:?}", world.notices);

    // The other side has its way until it stops, and the user lets opdev go on.
    world.greeting("site-config", "drift").await;
    rival.abort();
    let scope = PauseScope::Object { object: site() };
    ask(&world, |reply| ManagerRequest::Resume { scope, reply }).await.unwrap();
    world.greeting("site-config", "hello").await;
    check(&world).await.unwrap();
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_patch_that_somebody_undoes_is_a_fight_too() {
    let watch = typed("Web", &[], |_, host| {
        let at = |name: &str| json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}});
        let read = Read {
            gvk: Gvk::new("", "v1", "ConfigMap"),
            namespace: Some("default".to_owned()),
            name: Some("shared".to_owned()),
            selector: String::new(),
        };
        host.get(&read).unwrap();
        let mut object = at("shared");
        object["data"] = json!({"greeting": "hello"});
        let reads = vec![read];
        Ok(Desired {
            reads,
            patches: vec![Patch { object, own: false, create: false }],
            ..Desired::default()
        })
    });
    let mut world = World::start(vec![watch]).await;
    let shared = json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "shared"}, "data": {"greeting": "drift"},
    });
    world.create(&world.api("", "ConfigMap"), shared).await;
    let rival = rival(&world, "shared");
    world.create_web("site", json!({})).await;
    let fight = found(&mut world).await;
    assert_eq!((fight.kind, fight.paused), (LoopKind::Fight, true), "{fight}");
    assert_eq!(fight.fields[0].path, ".data.greeting", "{fight}");
    rival.abort();
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reconciler_that_keeps_itself_busy_is_paused_and_a_saved_one_goes_on() {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let busy = typed("Web", &[], |_, _| {
        let status = json!({"count": COUNT.fetch_add(1, Ordering::Relaxed)});
        Ok(Desired {
            status: Some(status),
            requeue_after: Some(Duration::from_millis(1)),
            ..Desired::default()
        })
    });
    let mut world = World::start(vec![busy]).await;
    world.create_web("site", json!({})).await;
    let hot = found(&mut world).await;
    assert_eq!((hot.kind, hot.paused), (LoopKind::Hot, true), "{hot}");
    assert_eq!(hot.fields[0].path, ".status.count", "{hot}");
    paused(&mut world, "the pause", |all| all.len() == 1).await;
    // The author mends it and saves.
    let calm = opdev_sources::Watch {
        changed_in: 2,
        ..typed("Web", &[], |_, _| Ok(Desired { status: Some(json!({"count": 7})), ..Desired::default() }))
    };
    world.sources.send(super::world::sources(2, vec![calm])).unwrap();
    paused(&mut world, "the end of the pause", <[Paused]>::is_empty).await;
    let calmed = |object: Option<&kube::api::DynamicObject>| {
        object.is_some_and(|object| object.data.pointer("/status/count") == Some(&json!(7)))
    };
    let waiting = kube::runtime::wait::await_condition(world.webs(), "site", calmed);
    tokio::time::timeout(Duration::from_secs(30), waiting).await.unwrap().unwrap();
    let said = check(&world).await.unwrap();
    expect!["Web default/site: no further writes; reconciled again, 1 API call"].assert_eq(&said);
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_check_names_what_a_second_reconcile_writes() {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let restless = typed("Web", &["v1/ConfigMap"], |_, _| {
        let n = COUNT.fetch_add(1, Ordering::Relaxed);
        let child: Value = json!({
            "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "count"}, "data": {"n": n.to_string()},
        });
        Ok(Desired { children: vec![child], ..Desired::default() })
    });
    let mut world = World::start(vec![restless]).await;
    world.create_web("site", json!({})).await;
    world.reconcile("site").await;
    let why = check(&world).await.unwrap_err();
    // Its own circle may be stopped before the check ends.
    assert!(why.contains("ConfigMap count .data.n") || why.contains("round in a circle"), "{why}");
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_chart_with_random_values_is_told_before_it_loops_elsewhere() {
    let secret = "apiVersion: v1\nkind: Secret\nmetadata:\n  name: {{ .Release.Name }}-secret\nstringData:\n  \
                  password: {{ randAlphaNum 20 | quote }}\n  user: admin\n";
    let mut world = World::start(vec![web(chart("web", &[("templates/secret.yaml", secret)]))]).await;
    world.create_web("site", json!({})).await;
    let install = world.outcome("site", Outcome::Installed).await;
    let words = "templates/secret.yaml:6: `password: …` became `password: …` (randAlphaNum)";
    assert!(world.notices.iter().any(|text| text.contains(words)), "{:?}", world.notices);
    let told = format!("{install:?} {:?}", world.notices);
    let secrets = world.api("", "Secret");
    let live = world.get(&secrets, "site-secret").await.unwrap();
    let password = live["data"]["password"].as_str().unwrap();
    assert!(!told.contains(password));
    // Here it is at rest: the same object gets the same values.
    check(&world).await.unwrap();
    assert_eq!(world.get(&secrets, "site-secret").await.unwrap()["data"]["password"], password);
    world.stop().await;
}
