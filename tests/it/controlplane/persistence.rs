//! Survival: a stop and a start on the same folder, a process that is killed at any moment, a damaged store.

use super::serve::{ends, serve};
use futures::{StreamExt as _, TryStreamExt as _};
use k8s_openapi::api::core::v1::{ConfigMap, Node};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{Api, DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams, WatchParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::core::{ApiResource, GroupVersionKind};
use kube::{Client, Config};
use opdev_controlplane::{ControlPlane, Controllers, Listen};
use serde_json::json;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, BufReader};

async fn start(folder: &Path) -> ControlPlane {
    let mut config = opdev_controlplane::Config::default();
    config.data_dir = Some(folder.to_owned());
    config.controllers = Controllers::None;
    ControlPlane::start_with(config).await.unwrap()
}

async fn client(kubeconfig: &str) -> Client {
    let kubeconfig = Kubeconfig::from_yaml(kubeconfig).unwrap();
    let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await.unwrap();
    Client::try_from(config).unwrap()
}

fn config_map(name: &str, n: u64) -> ConfigMap {
    serde_json::from_value(json!({"metadata": {"name": name}, "data": {"n": n.to_string()}})).unwrap()
}

fn widgets(client: Client) -> Api<DynamicObject> {
    let kind = ApiResource::from_gvk(&GroupVersionKind::gvk("example.com", "v1", "Widget"));
    Api::default_namespaced_with(client, &kind)
}

fn definition() -> CustomResourceDefinition {
    let schema = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    serde_json::from_value(json!({
        "metadata": {"name": "widgets.example.com"},
        "spec": {"group": "example.com", "scope": "Namespaced",
            "names": {"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema}}]},
    }))
    .unwrap()
}

fn code(error: &kube::Error) -> u16 {
    match error {
        kube::Error::Api(status) => status.code,
        other => panic!("{other}"),
    }
}

#[tokio::test]
async fn objects_definitions_revisions_and_kubeconfigs_survive_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let plane = start(&data).await;
    let first = plane.listen(Listen::default()).await.unwrap();
    let before = client(&first.kubeconfig).await;
    let maps: Api<ConfigMap> = Api::default_namespaced(before.clone());
    let post = PostParams::default();
    let kept = maps.create(&post, &config_map("kept", 1)).await.unwrap();
    maps.create(&post, &config_map("gone", 1)).await.unwrap();
    Api::<CustomResourceDefinition>::all(before.clone()).create(&post, &definition()).await.unwrap();
    let widget: DynamicObject = serde_json::from_value(
        json!({"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "w"}, "spec": {"a": [1]}}),
    )
    .unwrap();
    let widget = widgets(before.clone()).create(&post, &widget).await.unwrap();
    maps.delete("gone", &DeleteParams::default()).await.unwrap();
    let list = maps.list(&ListParams::default()).await.unwrap();
    plane.stop().await;

    let plane = start(&data).await;
    let second = plane.listen(Listen::default()).await.unwrap();
    assert_eq!((plane.moved_aside(), second.address), (None, first.address));
    // The kubeconfig of before: the same address, authority and token.
    let maps: Api<ConfigMap> = Api::default_namespaced(client(&first.kubeconfig).await);
    assert_eq!(maps.get("kept").await.unwrap(), kept);
    let again = maps.list(&ListParams::default()).await.unwrap();
    assert_eq!((again.items, again.metadata), (list.items.clone(), list.metadata.clone()));
    assert_eq!(widgets(plane.client()).get("w").await.unwrap(), widget);
    // Earlier changes are not known any more, as after a compaction; from now on nothing is missed.
    let old = kept.metadata.resource_version.clone().unwrap();
    let mut events = maps.watch(&WatchParams::default(), &old).await.unwrap().boxed();
    match events.try_next().await.unwrap().unwrap() {
        kube::api::WatchEvent::Error(status) => assert_eq!(status.code, 410),
        other => panic!("{other:?}"),
    }
    let newest = list.metadata.resource_version.clone().unwrap();
    let mut events = maps.watch(&WatchParams::default(), &newest).await.unwrap().boxed();
    let made = maps.create(&post, &config_map("new", 1)).await.unwrap();
    match events.try_next().await.unwrap().unwrap() {
        kube::api::WatchEvent::Added(seen) => assert_eq!(seen, made),
        other => panic!("{other:?}"),
    }
    let number = |version: Option<String>| version.unwrap().parse::<u64>().unwrap();
    assert!(number(made.metadata.resource_version) > number(Some(newest)));
    // The system's own objects are not made a second time, and what was deleted stays deleted.
    assert_eq!(code(&maps.get("gone").await.unwrap_err()), 404);
    assert_eq!(Api::<Node>::all(plane.client()).list(&ListParams::default()).await.unwrap().items.len(), 0);
    plane.stop().await;
}

#[tokio::test]
async fn a_damaged_store_gives_back_what_verifies_and_says_what_is_lost() {
    type Damage = fn(&mut Vec<u8>);
    let break_needle: Damage = |bytes| {
        let places: Vec<usize> =
            (0..bytes.len() - 6).filter(|at| &bytes[*at..*at + 6] == b"needle").collect();
        assert!(!places.is_empty(), "the object is in it");
        places.iter().for_each(|at| bytes[*at] = b'N');
    };
    // The damage to the file, a flag if everything comes back, and the loss that is reported.
    let cases: [(&str, Damage, bool, &str); 4] = [
        ("rubbish", |bytes| bytes.fill(b'x'), false, "started empty"),
        ("empty", Vec::clear, false, "started empty"),
        ("header", |bytes| bytes[..64].fill(0xff), true, "the plane's own keys"),
        ("an object", break_needle, false, "configmaps default/Needle"),
    ];
    for (what, damage, back, said) in cases {
        let folder = tempfile::tempdir().unwrap();
        let plane = start(folder.path()).await;
        let maps: Api<ConfigMap> = Api::default_namespaced(plane.client());
        maps.create(&PostParams::default(), &config_map("needle", 1)).await.unwrap();
        maps.create(&PostParams::default(), &config_map("other", 1)).await.unwrap();
        plane.stop().await;
        let path = folder.path().join("store.redb");
        let mut bytes = std::fs::read(&path).unwrap();
        damage(&mut bytes);
        std::fs::write(&path, &bytes).unwrap();

        let plane = start(folder.path()).await;
        let moved = plane.moved_aside().unwrap_or_else(|| panic!("{what}: it was taken")).clone();
        // Looking at it may have marked its header or given free pages back; what is in it is as it was.
        let there = std::fs::read(&moved.to).unwrap();
        let has = |bytes: &[u8]| bytes.windows(5).any(|part| part == b"eedle");
        assert_eq!(has(&there), has(&bytes), "{what}: {moved}");
        assert!(
            moved.to_string().contains("nothing was deleted") && moved.to_string().contains(said),
            "{moved}"
        );
        let maps: Api<ConfigMap> = Api::default_namespaced(plane.client());
        assert_eq!(maps.get_opt("needle").await.unwrap().is_some(), back, "{what}: {moved}");
        assert_eq!(maps.get_opt("other").await.unwrap().is_some(), moved.back > 0, "{what}: {moved}");
        plane.stop().await;
        assert_eq!(start(folder.path()).await.moved_aside(), None, "{what}: the new one opens");
    }
}

#[tokio::test]
async fn a_second_process_is_refused_with_the_first_ones_name() {
    let folder = tempfile::tempdir().unwrap();
    let mut first = Served::start(folder.path()).await;
    let mut second = serve(folder.path(), &["--data-dir", "data", "--kubeconfig", "other"]);
    assert_eq!(ends(&mut second).await, 1);
    let mut text = String::new();
    second.stderr.take().unwrap().read_to_string(&mut text).await.unwrap();
    let id = first.child.id().unwrap();
    assert!(text.contains(&format!("opdev serve (process {id}")), "{text}");
    first.child.kill().await.unwrap();
    // A process that was killed holds nothing, and its kubeconfig still leads in.
    let mut again = Served::start(folder.path()).await;
    let maps: Api<ConfigMap> = Api::default_namespaced(client(&first.kubeconfig).await);
    maps.create(&PostParams::default(), &config_map("in", 1)).await.unwrap();
    again.child.kill().await.unwrap();
}

/// `opdev serve --data-dir` as a process.
struct Served {
    child: tokio::process::Child,
    kubeconfig: String,
}

impl Served {
    async fn start(folder: &Path) -> Served {
        let mut child =
            serve(folder, &["--data-dir", "data", "--kubeconfig", "kubeconfig", "--controllers", "none"]);
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        loop {
            match lines.next_line().await.unwrap() {
                Some(line) if line.starts_with("control plane ready") => break,
                Some(_) => {}
                None => {
                    let mut text = String::new();
                    child.stderr.take().unwrap().read_to_string(&mut text).await.unwrap();
                    panic!("it did not start: {text}");
                }
            }
        }
        let mut served = Served { child, kubeconfig: String::new() };
        // The file is there before the words are.
        served.kubeconfig = std::fs::read_to_string(folder.join("kubeconfig")).unwrap();
        served
    }
}

/// The known facts about one object by whoever writes it.
#[derive(Clone, Debug, Default)]
struct Known {
    /// Its number as acknowledged, with the revision; `None` where it is not there.
    acknowledged: Option<(u64, String)>,
    /// The number that was asked for last, `None` to delete it, where there was no answer.
    asked: Option<Option<u64>>,
}

type Book = Arc<Mutex<BTreeMap<String, Known>>>;

const WRITERS: usize = 8;
const OBJECTS: u64 = 5;

/// Creates, changes and deletes its own objects until the server is gone.
async fn write(client: Client, book: Book, writer: usize, mut n: u64) {
    let maps: Api<ConfigMap> = Api::default_namespaced(client);
    loop {
        n += 1;
        let name = format!("w{writer}-{}", n % OBJECTS);
        let known = book.lock().unwrap().get(&name).cloned().unwrap_or_default();
        let next = (!n.is_multiple_of(7) || known.acknowledged.is_none()).then_some(n);
        book.lock().unwrap().entry(name.clone()).or_default().asked = Some(next);
        let answer = match (&known.acknowledged, next) {
            (None, Some(n)) => maps.create(&PostParams::default(), &config_map(&name, n)).await.map(Some),
            (Some(_), Some(n)) => {
                let patch = Patch::Merge(json!({"data": {"n": n.to_string()}}));
                maps.patch(&name, &PatchParams::default(), &patch).await.map(Some)
            }
            (_, None) => maps.delete(&name, &DeleteParams::default()).await.map(|_| None),
        };
        match answer {
            Ok(object) => {
                let acknowledged = object.map(|object| (n, object.metadata.resource_version.unwrap()));
                book.lock().unwrap().insert(name, Known { acknowledged, asked: None });
            }
            Err(kube::Error::Api(status)) => panic!("{name}: {}", status.message),
            // The server is gone.
            Err(_) => return,
        }
    }
}

/// Follows what happens and notes the newest revision that it was told.
async fn follow(client: Client, newest: Arc<Mutex<u64>>) {
    let maps: Api<ConfigMap> = Api::default_namespaced(client);
    let Ok(list) = maps.list(&ListParams::default()).await else { return };
    let from = list.metadata.resource_version.unwrap();
    let Ok(events) = maps.watch(&WatchParams::default(), &from).await else { return };
    let mut events = events.boxed();
    while let Ok(Some(event)) = events.try_next().await {
        let (kube::api::WatchEvent::Added(object)
        | kube::api::WatchEvent::Modified(object)
        | kube::api::WatchEvent::Deleted(object)) = event
        else {
            return;
        };
        let revision: u64 = object.metadata.resource_version.unwrap().parse().unwrap();
        let mut newest = newest.lock().unwrap();
        *newest = revision.max(*newest);
    }
}

/// Compares what the server has with what it has acknowledged. What was asked without an answer may have
/// happened.
async fn check(client: &Client, book: &Book, round: usize) -> u64 {
    let maps: Api<ConfigMap> = Api::default_namespaced(client.clone());
    let list = maps.list(&ListParams::default()).await.unwrap();
    let mut found: BTreeMap<String, (u64, String)> = BTreeMap::new();
    for object in list.items {
        let Some(n) = object.data.as_ref().and_then(|data| data.get("n")) else { continue };
        let revision = object.metadata.resource_version.clone().unwrap();
        found.insert(object.metadata.name.unwrap(), (n.parse().unwrap(), revision));
    }
    let mut book = book.lock().unwrap();
    for (name, known) in book.iter_mut() {
        let now = found.remove(name);
        if now != known.acknowledged {
            let number = now.as_ref().map(|(n, _)| *n);
            assert_eq!(known.asked, Some(number), "round {round}: {name} is {now:?}, was {known:?}");
        }
        *known = Known { acknowledged: now, asked: None };
    }
    assert!(found.is_empty(), "round {round}: nobody has asked for {found:?}");
    list.metadata.resource_version.unwrap().parse().unwrap()
}

/// `OPDEV_KILLS` sets the number of rounds.
#[tokio::test(flavor = "multi_thread")]
async fn nothing_acknowledged_is_lost_when_the_process_is_killed() {
    let rounds = std::env::var("OPDEV_KILLS").ok().map_or(5, |text| text.parse::<usize>().unwrap());
    let folder = tempfile::tempdir().unwrap();
    let (book, newest) = (Book::default(), Arc::new(Mutex::new(0u64)));
    let mut acknowledged = 0;
    for round in 0..=rounds {
        let mut served = Served::start(folder.path()).await;
        let client = client(&served.kubeconfig).await;
        let revision = check(&client, &book, round).await;
        let told = *newest.lock().unwrap();
        assert!(revision >= told, "round {round}: at {revision}, and a watch was told of {told}");
        assert!(revision >= acknowledged, "round {round}: the revision went back");
        acknowledged = revision;
        let damaged = std::fs::read_dir(folder.path().join("data")).unwrap();
        let damaged: Vec<_> = damaged.map(|entry| entry.unwrap().file_name()).collect();
        assert!(!damaged.iter().any(|name| name.to_string_lossy().contains("damaged")), "{damaged:?}");
        let mut tasks = tokio::task::JoinSet::new();
        tasks.spawn(follow(client.clone(), newest.clone()));
        for writer in 0..WRITERS {
            tasks.spawn(write(client.clone(), book.clone(), writer, round as u64 * 1_000_000));
        }
        // Killed after so many writes, a different number each time, wherever they are then.
        let maps: Api<ConfigMap> = Api::default_namespaced(client);
        let until = revision + (round as u64 * 37) % 211;
        while maps
            .list(&ListParams::default().limit(1))
            .await
            .is_ok_and(|list| list.metadata.resource_version.unwrap().parse::<u64>().unwrap() < until)
        {
        }
        served.child.kill().await.unwrap();
        while let Some(ended) = tasks.join_next().await {
            ended.unwrap();
        }
    }
    eprintln!("{rounds} kills, {acknowledged} revisions, nothing lost");
}
