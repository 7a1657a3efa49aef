//! Programs: what the operator makes of their answers. The programs are written in Rust here; what the
//! engines do with scripts and templates is tested where they are.

use super::world::{World, causes, condition, sources, typed};
use kube::api::{Api, DynamicObject, ListParams};
use opdev_client::read_only::ReadOnly;
use opdev_event::{Action, Event, Outcome, Reconcile};
use opdev_object::meta::{self, Gvk};
use opdev_script::contract::{Desired, Observed, Patch, Read, RequestedEvent};
use opdev_types::diagnostic::{Diagnostic, Place};
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

pub(super) fn field<'a>(observed: &'a Observed, name: &str) -> &'a Value {
    &observed.parent["spec"][name]
}

pub(super) fn own_name(observed: &Observed) -> String {
    meta::name(&observed.parent).unwrap().to_owned()
}

pub(super) fn config(name: &str, value: &Value) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"greeting": value}})
}

pub(super) fn names(observed: &Observed) -> Vec<&str> {
    observed.children.iter().filter_map(|child| meta::name(child)).collect()
}

/// One ConfigMap for each entry of `spec.names`, the greeting from `spec.greeting`; status counts them.
pub(super) fn maps() -> opdev_sources::Watch {
    typed("Web", &["v1/ConfigMap"], |observed, _| {
        let wanted = field(observed, "names").as_array().cloned().unwrap_or_default();
        let greeting = field(observed, "greeting").as_str().unwrap_or("hello").to_owned();
        let children = wanted.iter().map(|name| config(name.as_str().unwrap(), &json!(greeting))).collect();
        Ok(Desired { children, status: Some(json!({"maps": names(observed)})), ..Desired::default() })
    })
}

/// `spec.replicas` pods without names of their own.
fn pods() -> opdev_sources::Watch {
    typed("Web", &["v1/Pod"], |observed, _| {
        let alive: Vec<&Arc<Value>> =
            observed.children.iter().filter(|pod| meta::deletion_timestamp(pod).is_none()).collect();
        let wanted = usize::try_from(field(observed, "replicas").as_u64().unwrap_or(0)).unwrap();
        let app = own_name(observed);
        let spec = json!({"containers": [{"name": "c", "image": "busybox", "command": ["sleep", "3600"]}]});
        let children = (0..wanted).map(|i| {
            let mut metadata = json!({"labels": {"app": app, "version": "v0.1"}});
            match alive.get(i) {
                Some(pod) => metadata["name"] = pod["metadata"]["name"].clone(),
                None => metadata["generateName"] = json!(format!("{app}-pod")),
            }
            json!({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec})
        });
        let mut names: Vec<&str> = alive.iter().filter_map(|pod| meta::name(pod)).collect();
        names.sort_unstable();
        let status = json!({"podNames": names});
        Ok(Desired { children: children.collect(), status: Some(status), ..Desired::default() })
    })
}

async fn alive(pods: &Api<DynamicObject>) -> Vec<String> {
    let list = pods.list(&ListParams::default()).await.unwrap().items;
    let mut names: Vec<String> = list
        .into_iter()
        .filter(|pod| pod.metadata.deletion_timestamp.is_none())
        .filter_map(|pod| pod.metadata.name)
        .collect();
    names.sort();
    names
}

/// Waits until the status of `name` says what `done` asks for.
pub(super) async fn status(world: &World, name: &str, done: impl Fn(&Value) -> bool) -> Value {
    let seen = |object: Option<&DynamicObject>| object.is_some_and(|object| done(&object.data["status"]));
    let waiting = kube::runtime::wait::await_condition(world.webs(), name, seen);
    let found = tokio::time::timeout(Duration::from_secs(30), waiting).await;
    match found {
        Ok(found) => found.unwrap().unwrap().data["status"].clone(),
        Err(_) => panic!("the status never came: {:?}", world.get(&world.webs(), name).await),
    }
}

pub(super) fn writes(reconcile: &Reconcile) -> Vec<String> {
    let reading = ["get", "list"];
    reconcile
        .calls
        .iter()
        .filter(|call| !reading.contains(&call.verb.as_str()))
        .map(|call| format!("{} {}", call.verb, call.target))
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn children_come_are_kept_and_go_with_the_answer() {
    let mut world = World::start(vec![maps()]).await;
    world.create_web("site", json!({"names": ["a", "b"]})).await;
    let reconcile = world.outcome("site", Outcome::Applied).await;
    let steps: Vec<&str> = reconcile.steps.iter().map(|step| step.name.as_str()).collect();
    assert_eq!(steps, ["read", "observe", "reconcile", "plan", "apply", "status"]);
    status(&world, "site", |status| status["maps"] == json!(["a", "b"])).await;
    let maps = world.api("", "ConfigMap");
    let child = world.get(&maps, "a").await.unwrap();
    let owner = meta::controller(&child).unwrap();
    assert!(owner.block_owner_deletion && owner.name == "site");
    assert_eq!(child["metadata"]["managedFields"][0]["manager"], "opdev/web");

    // Somebody changes a child, another one is deleted: both are put back.
    world.patch(&maps, "a", json!({"data": {"greeting": "drift", "extra": "kept"}})).await;
    let reconcile = world.outcome("site", Outcome::Repaired).await;
    // Its cause is the change, or the echo of the first reconcile where that one found the change by itself.
    assert_eq!(reconcile.objects[0].taken_from, ["somebody"]);
    let child = world.get(&maps, "a").await.unwrap();
    assert_eq!((&child["data"]["greeting"], &child["data"]["extra"]), (&json!("hello"), &json!("kept")));
    world.delete(&maps, "b").await;
    let reconcile = world.outcome("site", Outcome::Repaired).await;
    assert_eq!(reconcile.objects[0].action, Action::Created);

    world.patch(&world.webs(), "site", json!({"spec": {"names": ["b"]}})).await;
    let reconcile = world
        .until("the prune", |event| match event {
            Event::Reconciled(reconcile) if reconcile.steps.iter().any(|step| step.name == "prune") => {
                Some(Arc::clone(reconcile))
            }
            _ => None,
        })
        .await;
    let gone: Vec<&str> = reconcile
        .objects
        .iter()
        .filter(|change| change.action == Action::Deleted)
        .map(|change| change.object.name.as_str())
        .collect();
    assert_eq!(gone, ["a"]);
    status(&world, "site", |status| status["maps"] == json!(["b"])).await;
    assert!(world.get(&maps, "a").await.is_none());
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_as_wanted_is_not_written_and_its_echo_ends() {
    let mut world = World::start(vec![maps()]).await;
    world.create_web("site", json!({"names": ["a"]})).await;
    status(&world, "site", |status| status["maps"] == json!(["a"])).await;
    for round in 0.. {
        let reconcile = world.reconcile_by_key("site").await;
        assert_eq!(reconcile.outcome, Outcome::Unchanged);
        assert_eq!(writes(&reconcile), Vec::<String>::new());
        // Kinds and children come from a cache, once they are listed: what is asked for is the object itself.
        let asked = reconcile.calls.iter().filter(|call| !call.path.starts_with("cache:"));
        let asked: Vec<&str> = asked.map(|call| call.target.as_str()).collect();
        if asked == ["webs/site"] {
            break;
        }
        assert!(round < 100, "{asked:?}");
    }
    // An update that changes nothing, and a status that somebody else writes, lead to no reconcile.
    world.patch(&world.webs(), "site", json!({"spec": {"names": ["a"]}})).await;
    world.patch(&world.api("", "ConfigMap"), "a", json!({"data": {"greeting": "hello"}})).await;
    world.create_web("mark", json!({"names": []})).await;
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
async fn pods_without_names_are_as_many_as_wanted() {
    let mut world = World::start(vec![pods()]).await;
    let api = world.api("", "Pod");
    world.create_web("set", json!({"replicas": 3})).await;
    let count = |status: &Value, n: usize| status["podNames"].as_array().is_some_and(|all| all.len() == n);
    status(&world, "set", |status| count(status, 3)).await;
    let first = alive(&api).await;
    assert_eq!(first.len(), 3, "{first:?}");
    assert!(first.iter().all(|name| name.starts_with("set-pod")));
    world.patch(&world.webs(), "set", json!({"spec": {"replicas": 5}})).await;
    status(&world, "set", |status| count(status, 5)).await;
    let five = alive(&api).await;
    assert!(five.len() == 5 && first.iter().all(|name| five.contains(name)), "{five:?}");
    world.patch(&world.webs(), "set", json!({"spec": {"replicas": 1}})).await;
    let one = status(&world, "set", |status| count(status, 1)).await;
    assert_eq!(json!(alive(&api).await), one["podNames"]);
    world.delete(&api, one["podNames"][0].as_str().unwrap()).await;
    status(&world, "set", |status| count(status, 1) && status["podNames"] != one["podNames"]).await;
    assert_eq!(alive(&api).await.len(), 1);
    world.delete(&world.webs(), "set").await;
    world.outcome("set", Outcome::Gone).await;
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn rapid_edits_never_make_too_many_pods() {
    let mut world = World::start(vec![pods()]).await;
    let api = world.api("", "Pod");
    world.create_web("set", json!({"replicas": 3})).await;
    // Every state of the pods is seen by a watch of its own: at no time are there more than three.
    let (stop, mut stopped) = tokio::sync::oneshot::channel::<()>();
    let watched = api.clone();
    let watching = tokio::spawn(async move {
        use futures::StreamExt;
        let mut there = std::collections::HashMap::new();
        let mut most = 0;
        let stream = kube::runtime::watcher(watched, kube::runtime::watcher::Config::default());
        let mut stream = std::pin::pin!(stream);
        loop {
            tokio::select! {
                _ = &mut stopped => return most,
                event = stream.next() => match event {
                    Some(Ok(kube::runtime::watcher::Event::Apply(pod) | kube::runtime::watcher::Event::InitApply(pod))) => {
                        there.insert(pod.metadata.name.clone(), pod.metadata.deletion_timestamp.is_none());
                    }
                    Some(Ok(kube::runtime::watcher::Event::Delete(pod))) => {
                        there.remove(&pod.metadata.name);
                    }
                    _ => {}
                },
            }
            most = most.max(there.values().filter(|alive| **alive).count());
        }
    });
    for round in 0..40_u64 {
        let replicas = [3, 1, 2, 3, 3][usize::try_from(round % 5).unwrap()];
        let patch = json!({"spec": {"replicas": replicas}, "metadata": {"annotations": {"round": round.to_string()}}});
        world.patch(&world.webs(), "set", patch).await;
        if round % 4 == 3 {
            for name in alive(&api).await.into_iter().take(2) {
                let _ = api.delete(&name, &kube::api::DeleteParams::default()).await;
            }
        }
    }
    world.patch(&world.webs(), "set", json!({"spec": {"replicas": 3}})).await;
    // Reconciles by key until one finds nothing to do: it settles, and soon.
    let mut last = None;
    for tries in 0.. {
        assert!(tries < 500, "never settles: {last:#?}");
        let reconcile = world.reconcile_by_key("set").await;
        assert!(reconcile.failure.is_none(), "{:?}", reconcile.failure);
        let object = world.get(&world.webs(), "set").await.unwrap();
        let there = alive(&api).await;
        if reconcile.outcome == Outcome::Unchanged
            && there.len() == 3
            && object["status"]["podNames"] == json!(there)
        {
            break;
        }
        last = Some((reconcile, object, there));
    }
    stop.send(()).unwrap();
    let most = watching.await.unwrap();
    assert!(most <= 3, "{most} pods at once");
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wait_keeps_what_is_there_and_tells_its_words() {
    let watch = typed("Web", &["v1/ConfigMap"], |observed, host| {
        let wanted = Read {
            gvk: Gvk::new("", "v1", "Secret"),
            namespace: None,
            name: Some("key".to_owned()),
            selector: String::new(),
        };
        let children = vec![config("first", &json!("x"))];
        match host.get(&wanted).unwrap() {
            None => Ok(Desired {
                children,
                waiting: Some("Secret key is missing".to_owned()),
                ..Desired::default()
            }),
            Some(_) => {
                let conditions =
                    vec![json!({"type": "Ready", "status": "True", "reason": "Done", "message": ""})];
                Ok(Desired {
                    children: vec![config("second", field(observed, "greeting"))],
                    conditions,
                    ..Desired::default()
                })
            }
        }
    });
    let mut world = World::start(vec![watch]).await;
    world.create_web("site", json!({"greeting": "g"})).await;
    let reconcile = world.outcome("site", Outcome::Waiting).await;
    assert_eq!(reconcile.waiting.as_deref(), Some("Secret key is missing"));
    assert_eq!(reconcile.objects[0].action, Action::Created);
    // The child that it made leads to another reconcile, which still waits.
    let reconcile = world.outcome("site", Outcome::Waiting).await;
    assert!(reconcile.objects.is_empty());
    // The content that was read is watched: its creation leads back here.
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "key"}, "stringData": {"a": "hunter2"}});
    world.create(&world.api("", "Secret"), secret).await;
    let reconcile = world.outcome("site", Outcome::Applied).await;
    assert!(
        causes(&reconcile).iter().any(|cause| cause.starts_with("Added Secret")),
        "{:?}",
        causes(&reconcile)
    );
    let done: Vec<(Action, &str)> =
        reconcile.objects.iter().map(|change| (change.action, change.object.name.as_str())).collect();
    assert_eq!(done, [(Action::Created, "second"), (Action::Deleted, "first")]);
    let object = world.get(&world.webs(), "site").await.unwrap();
    assert_eq!(condition(&object, "Ready").unwrap().0, "True");
    assert_eq!(object["status"]["conditions"][0]["observedGeneration"], 1);
    // A change of it, too, and its values never show.
    world.patch(&world.api("", "Secret"), "key", json!({"stringData": {"a": "swordfish"}})).await;
    let reconcile = world
        .until("a pass for the Secret", |event| match event {
            Event::Reconciled(reconcile)
                if causes(reconcile).iter().any(|cause| cause.starts_with("Modified Secret")) =>
            {
                Some(Arc::clone(reconcile))
            }
            _ => None,
        })
        .await;
    let told = serde_json::to_string(&*reconcile).unwrap();
    assert!(!told.contains("c3dvcmRmaXNo") && !told.contains("swordfish"), "{told}");
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_finalizer_is_there_first_and_teardown_goes_in_order() {
    let watch = typed("Web", &["v1/ConfigMap", "!"], |observed, _| {
        let all = ["one", "two"];
        if observed.finalizing {
            let left = names(observed);
            // The last one first, one at a time.
            let keep = left.len().saturating_sub(1);
            let children = all.iter().take(keep).map(|name| config(name, &json!("x"))).collect();
            return Ok(Desired { children, finalized: left.is_empty(), ..Desired::default() });
        }
        Ok(Desired {
            children: all.iter().map(|name| config(name, &json!("x"))).collect(),
            ..Desired::default()
        })
    });
    let mut world = World::start(vec![watch]).await;
    world.create_web("site", json!({})).await;
    let reconcile = world.outcome("site", Outcome::Applied).await;
    assert_eq!(
        writes(&reconcile)[0],
        "patch webs/site",
        "the finalizer comes before the children: {:?}",
        writes(&reconcile)
    );
    let object = world.get(&world.webs(), "site").await.unwrap();
    assert_eq!(meta::finalizers(&object), ["opdev.dev/finalize"]);
    world.delete(&world.webs(), "site").await;
    let mut gone = Vec::new();
    loop {
        let reconcile = world.reconcile("site").await;
        gone.extend(reconcile.objects.iter().map(|change| (change.action, change.object.name.clone())));
        if reconcile.outcome == Outcome::Uninstalled {
            break;
        }
    }
    let deleted: Vec<&str> =
        gone.iter().filter(|(action, _)| *action == Action::Deleted).map(|(_, name)| name.as_str()).collect();
    assert_eq!(deleted, ["two", "one"]);
    assert!(world.get(&world.webs(), "site").await.is_none());
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_finalizer_that_nobody_needs_any_more_goes() {
    let finalizing = typed("Web", &["!"], |_, _| Ok(Desired::default()));
    let mut world = World::start(vec![finalizing]).await;
    world.create_web("site", json!({})).await;
    world.reconcile("site").await;
    let mut plain = typed("Web", &[], |_, _| Ok(Desired::default()));
    plain.changed_in = 2;
    world.sources.send(sources(2, vec![plain])).unwrap();
    world.settled().await;
    let object = world.get(&world.webs(), "site").await.unwrap();
    assert!(meta::finalizers(&object).is_empty());
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_patch_owns_puts_back_and_gives_back() {
    let watch = typed("Web", &[], |observed, _| {
        let mut desired = Desired::default();
        if let Some(value) = field(observed, "value").as_str() {
            let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "theirs"}, "data": {"ours": value}});
            desired.patches.push(Patch { object, own: true, create: false });
        }
        Ok(desired)
    });
    let mut world = World::start(vec![watch]).await;
    let maps = world.api("", "ConfigMap");
    let theirs =
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "theirs"}, "data": {"a": "1"}});
    world.create(&maps, theirs).await;
    world.create_web("site", json!({"value": "x"})).await;
    world.outcome("site", Outcome::Applied).await;
    let object = world.get(&maps, "theirs").await.unwrap();
    assert_eq!(object["data"], json!({"a": "1", "ours": "x"}));
    assert_eq!(meta::controller(&object).unwrap().name, "site");
    world.patch(&maps, "theirs", json!({"data": {"ours": "drift", "a": "2"}})).await;
    let patched = |value: &'static str| {
        move |object: Option<&DynamicObject>| {
            object.is_some_and(|object| object.data["data"]["ours"] == value)
        }
    };
    let back = kube::runtime::wait::await_condition(maps.clone(), "theirs", patched("x"));
    tokio::time::timeout(Duration::from_secs(30), back).await.unwrap().unwrap();
    assert_eq!(world.get(&maps, "theirs").await.unwrap()["data"]["a"], "2", "not ours");
    // A merge patch with null takes the field out of the spec: the patch is not asked for any more.
    world.patch(&world.webs(), "site", json!({"spec": {"value": null}})).await;
    let free = |object: Option<&DynamicObject>| {
        object.is_some_and(|object| object.data["data"].get("ours").is_none())
    };
    let back = kube::runtime::wait::await_condition(maps.clone(), "theirs", free);
    tokio::time::timeout(Duration::from_secs(30), back).await.unwrap().unwrap();
    let object = world.get(&maps, "theirs").await.unwrap();
    assert!(meta::owner_references(&object).is_empty(), "never pruned, only given back");
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn events_are_counted_not_repeated() {
    let watch = typed("Web", &[], |_, _| {
        let wish =
            RequestedEvent { kind: "Normal".into(), reason: "Synced".into(), message: "all is well".into() };
        Ok(Desired { events: vec![wish], ..Desired::default() })
    });
    let mut world = World::start(vec![watch]).await;
    world.create_web("site", json!({})).await;
    for _ in 0..3 {
        world.reconcile("site").await;
        world.reconcile_now("site").await;
    }
    world.reconcile("site").await;
    let events = world.api("", "Event").list(&ListParams::default()).await.unwrap().items;
    let found: Vec<_> = events.iter().filter(|event| event.data["reason"] == "Synced").collect();
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].data["count"], 4);
    assert_eq!(found[0].data["type"], "Normal");
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_program_that_throws_or_panics_backs_off_while_others_run() {
    let runs = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&runs);
    let watch = typed("Web", &[], move |observed, _| match own_name(observed).as_str() {
        "throws" => {
            counted.fetch_add(1, Ordering::SeqCst);
            let place = Place { file: "config/reconcilers/web.ts".to_owned(), line: 4, column: 2 };
            let mut thrown = Diagnostic::error("TypeError: x is undefined", Some(place));
            thrown.stack = vec!["reconcile (config/reconcilers/web.ts:4:2)".to_owned()];
            Err(Box::new(thrown))
        }
        "panics" => panic!("no luck"),
        _ => Ok(Desired { status: Some(json!({"fine": true})), ..Desired::default() }),
    });
    let mut world = World::start(vec![watch]).await;
    world.create_web("throws", json!({})).await;
    let reconcile = world.outcome("throws", Outcome::Failed).await;
    let failure = reconcile.failure.as_ref().unwrap();
    assert_eq!(failure.chain, ["TypeError: x is undefined", "at reconcile (config/reconcilers/web.ts:4:2)"]);
    assert_eq!(failure.diagnostic.as_ref().unwrap().place.as_ref().unwrap().line, 4);
    world.create_web("panics", json!({})).await;
    let reconcile = world.outcome("panics", Outcome::Failed).await;
    assert_eq!(reconcile.failure.as_ref().unwrap().chain.last().unwrap(), "no luck");
    world.create_web("fine", json!({})).await;
    status(&world, "fine", |status| status["fine"] == true).await;
    let reconcile = world
        .until("the third attempt", |event| match event {
            Event::Reconciled(reconcile)
                if reconcile.failure.as_ref().is_some_and(|failure| failure.attempt == 3) =>
            {
                Some(Arc::clone(reconcile))
            }
            _ => None,
        })
        .await;
    assert_eq!(reconcile.requeue.as_ref().unwrap().after, Duration::from_millis(20));
    assert!(runs.load(Ordering::SeqCst) >= 2);
    let events = world.api("", "Event").list(&ListParams::default()).await.unwrap().items;
    let told = events.iter().find(|event| event.data["involvedObject"]["name"] == "throws").unwrap();
    assert_eq!((&told.data["type"], &told.data["reason"]), (&json!("Warning"), &json!("ReconcileError")));
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_circle_of_own_writes_is_paused_until_the_user_asks() {
    let turn = Arc::new(AtomicUsize::new(0));
    let watch = typed("Web", &["v1/ConfigMap"], move |_, _| {
        let value = if turn.fetch_add(1, Ordering::SeqCst).is_multiple_of(2) { "one" } else { "two" };
        Ok(Desired { children: vec![config("flips", &json!(value))], ..Desired::default() })
    });
    let mut world = World::start(vec![watch]).await;
    world.create_web("site", json!({})).await;
    let reconcile = world.outcome("site", Outcome::Failed).await;
    let text = &reconcile.failure.as_ref().unwrap().chain[0];
    assert!(text.contains("goes round in a circle"), "{text}");
    assert!(
        text.contains("flips… .data.greeting is") || text.contains("default/flips .data.greeting is"),
        "{text}"
    );
    assert!(reconcile.requeue.is_none());
    world.reconcile_now("site").await;
    let reconcile = world.reconcile("site").await;
    assert_ne!(reconcile.outcome, Outcome::Failed, "{:?}", reconcile.failure);
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_saved_program_runs_at_once_and_nothing_is_written_when_read_only() {
    let mut world = World::start(vec![maps()]).await;
    world.create_web("site", json!({"names": ["a"]})).await;
    world.outcome("site", Outcome::Applied).await;
    let mut other = typed("Web", &["v1/ConfigMap"], |_, _| {
        Ok(Desired { children: vec![config("a", &json!("edited"))], ..Desired::default() })
    });
    other.changed_in = 2;
    world.sources.send(sources(2, vec![other])).unwrap();
    assert_eq!(world.settled().await.objects, 1);
    assert_eq!(world.get(&world.api("", "ConfigMap"), "a").await.unwrap()["data"]["greeting"], "edited");
    world.stop().await;

    let mut settings = super::world::settings();
    settings.read_only = ReadOnly::new(true);
    let mut world = World::start_with(vec![maps()], settings).await;
    world.create_web("site", json!({"names": ["a"]})).await;
    let reconcile = world.reconcile("site").await;
    assert_eq!((reconcile.outcome, writes(&reconcile)), (Outcome::Waiting, Vec::new()));
    assert!(world.get(&world.api("", "ConfigMap"), "a").await.is_none());
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_child_without_a_namespace_is_led_back_by_label_and_deleted_in_the_end() {
    let watch = typed("Web", &["rbac.authorization.k8s.io/v1/ClusterRole"], |observed, _| {
        let name = format!("{}-role", own_name(observed));
        let role = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
            "metadata": {"name": name}, "rules": []});
        Ok(Desired { children: vec![role], ..Desired::default() })
    });
    let mut world = World::start(vec![watch]).await;
    world.create_web("site", json!({})).await;
    world.outcome("site", Outcome::Applied).await;
    let roles = world.cluster_api("rbac.authorization.k8s.io", "ClusterRole");
    assert!(world.get(&roles, "site-role").await.is_some());
    assert!(world.notices.iter().any(|notice| notice.contains("cannot be owned")), "{:?}", world.notices);
    // The reconcile after the first one applies once more: it would put back what it has not seen.
    world.outcome("site", Outcome::Unchanged).await;
    world
        .patch(
            &roles,
            "site-role",
            json!({"rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}]}),
        )
        .await;
    world.outcome("site", Outcome::Repaired).await;
    world.delete(&world.webs(), "site").await;
    world.outcome("site", Outcome::Uninstalled).await;
    assert!(world.get(&roles, "site-role").await.is_none());
    world.stop().await;
}
