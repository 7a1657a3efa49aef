//! A real Go operator with what opdev adds to its build, on the embedded control plane: every write belongs
//! to the reconcile that made it, and every reconcile says why it ran. Needs Go; without it the test says so
//! and is skipped, but not where CI=true.

use futures::StreamExt as _;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::Client;
use kube::api::{Api, ApiResource, DynamicObject, ListParams, Patch, PatchParams, PostParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::core::GroupVersionKind;
use opdev_cluster::upstream;
use opdev_controlplane::{ControlPlane, Listen, User};
use opdev_event::sink::EventSink;
use opdev_event::sink::{ReconcileNumbers, ReconcileSink};
use opdev_event::{Action, CauseKind, Event, FindingKind, Level, LogLine, Outcome, Reconcile};
use opdev_facts::observed::Seen;
use opdev_facts::record::{LineName, PrintedLine, ReconcileNow};
use opdev_program::tracing::Tracing;
use opdev_trace::instrument::{ManagerOptions, Rung, environment, overlay, socket_path};
use serde_json::json;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::io::AsyncWriteExt as _;
use tokio::net::UnixStream;

/// As long as a slow machine may take for anything.
const LONG: Duration = Duration::from_secs(120);

/// The operator, or the same with another version of controller-runtime: see
/// `tests/reference/controller-runtime`.
fn reference() -> PathBuf {
    match std::env::var_os("OPDEV_FLEET") {
        Some(folder) => PathBuf::from(folder),
        None => Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/reference/controller-runtime/fleet"),
    }
}

/// The version of controller-runtime that its go.mod requires.
fn controller_runtime() -> String {
    let go_mod = std::fs::read_to_string(reference().join("go.mod")).unwrap();
    let line = go_mod.lines().find(|line| line.contains("sigs.k8s.io/controller-runtime ")).unwrap();
    line.split_whitespace().find(|word| word.starts_with('v')).unwrap().to_owned()
}

/// The files that opdev adds to the build of the operator, in an overlay, with these beside them.
fn overlay_of(folder: &Path, beside: &[(&str, &str)]) -> PathBuf {
    let added =
        overlay(&reference(), &controller_runtime(), Rung::Full, &folder.join("inject")).unwrap().unwrap();
    let mut replace = added.replace;
    let repository = Path::new(env!("CARGO_MANIFEST_DIR"));
    replace.extend(beside.iter().map(|(name, path)| (reference().join(name), repository.join(path))));
    let file = folder.join("overlay.json");
    std::fs::write(&file, json!({ "Replace": replace }).to_string()).unwrap();
    file
}

/// Builds the operator as `opdev run` does, and checks that nothing is left in its folder.
fn build(folder: &Path) -> PathBuf {
    let before = std::fs::read_dir(reference()).unwrap().count();
    let binary = folder.join("fleet");
    let out = Command::new("go")
        .args(["build", "-overlay"])
        .arg(overlay_of(folder, &[]))
        .arg("-o")
        .arg(&binary)
        .arg(".")
        .current_dir(reference())
        .output()
        .unwrap();
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    assert_eq!(std::fs::read_dir(reference()).unwrap().count(), before, "the project stays as it is");
    binary
}

/// The order of two goroutines, which only a busy machine shows, is judged in Go, step by step.
#[test]
#[cfg_attr(not(go), ignore = "needs Go")]
fn the_added_files_know_the_cause_of_a_request_that_is_added_while_it_is_taken() {
    let folder = tempfile::tempdir().unwrap();
    let test = ("causes_test.go", "tests/reference/controller-runtime/causes_test.go");
    let out = Command::new("go")
        .args(["test", "-count=1", "-vet=off", "-v", "-overlay"])
        .arg(overlay_of(folder.path(), &[test]))
        .arg(".")
        .current_dir(reference())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&out.stdout);
    assert!(
        out.status.success() && said.contains("--- PASS: Test"),
        "{said}{}",
        String::from_utf8_lossy(&out.stderr)
    );
}

pub(crate) struct World {
    plane: ControlPlane,
    tracing: Tracing,
    child: Child,
    events: Arc<Mutex<Vec<Event>>>,
    folder: tempfile::TempDir,
}

impl Drop for World {
    fn drop(&mut self) {
        _ = self.child.kill();
        _ = self.child.wait();
    }
}

impl World {
    async fn start() -> World {
        World::through(None).await
    }

    /// On the embedded control plane, or on a cluster that the program reaches through a relay; the way to
    /// the cluster is made of a client of it.
    pub(crate) async fn through(cluster: Option<&(dyn Fn(Client) -> Client + Sync)>) -> World {
        let folder = tempfile::tempdir().unwrap();
        let binary = {
            let folder = folder.path().to_owned();
            tokio::task::spawn_blocking(move || build(&folder)).await.unwrap()
        };
        let plane = ControlPlane::start().await.unwrap();
        let listening = plane.listen(Listen::default()).await.unwrap();
        define(&plane).await;
        let (sink, mut receiver) = EventSink::channel(1024);
        let events = Arc::new(Mutex::new(Vec::new()));
        let kept = Arc::clone(&events);
        tokio::spawn(async move {
            while let Some(event) = receiver.recv().await {
                kept.lock().unwrap().push(event);
            }
        });
        let numbers = ReconcileNumbers::default();
        let socket = socket_path(folder.path());
        let tracing = if let Some(way) = cluster {
            let upstream = upstream(way(client_of(&listening.kubeconfig).await));
            Tracing::relayed(&socket, upstream, ReconcileSink { events: sink, numbers }).await.unwrap()
        } else {
            Tracing::start(&socket, &plane, User::admin(), ReconcileSink { events: sink, numbers }).unwrap()
        };
        let kubeconfig = tracing.kubeconfig(Some(&listening), "default", true).unwrap();
        let child = spawn(&binary, &tracing, &kubeconfig, folder.path());
        World { plane, tracing, child, events, folder }
    }

    fn fleets(&self) -> Api<DynamicObject> {
        let kind = GroupVersionKind::gvk("test.opdev.dev", "v1", "Fleet");
        Api::default_namespaced_with(self.plane.client(), &ApiResource::from_gvk(&kind))
    }

    async fn sail(&self, name: &str, replicas: u32, fails: u32) {
        let fleet = json!({"apiVersion": "test.opdev.dev/v1", "kind": "Fleet", "metadata": {"name": name},
            "spec": {"replicas": replicas, "fails": fails}});
        let fleet = serde_json::from_value(fleet).unwrap();
        self.fleets().create(&PostParams::default(), &fleet).await.unwrap();
    }

    /// Every reconcile that has ended; one that was told again counts once.
    fn reconciles(&self) -> Vec<Arc<Reconcile>> {
        let mut reconciles = BTreeMap::new();
        for event in self.events.lock().unwrap().iter() {
            if let Event::Reconciled(reconcile) = event {
                reconciles.insert(reconcile.id, Arc::clone(reconcile));
            }
        }
        reconciles.into_values().collect()
    }

    /// Waits until the reconciles are as wanted.
    async fn until(&self, what: &str, done: impl Fn(&[Arc<Reconcile>]) -> bool) -> Vec<Arc<Reconcile>> {
        let waiting = async {
            loop {
                let reconciles = self.reconciles();
                if done(&reconciles) {
                    return reconciles;
                }
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        let Ok(reconciles) = tokio::time::timeout(LONG, waiting).await else {
            let log = std::fs::read_to_string(self.folder.path().join("log")).unwrap_or_default();
            let tail: Vec<&str> = log.lines().rev().take(20).collect();
            panic!(
                "{what} never came; {} passes; its log ends, newest first, with\n{}",
                self.reconciles().len(),
                tail.join("\n")
            );
        };
        reconciles
    }

    fn settled(&self, name: &str) -> impl Fn(&[Arc<Reconcile>]) -> bool {
        let name = name.to_owned();
        move |reconciles| {
            let last = reconciles.iter().rfind(|reconcile| reconcile.object.name == name);
            last.is_some_and(|reconcile| {
                reconcile.outcome == Outcome::Unchanged && reconcile.requeue.is_none()
            })
        }
    }
}

async fn define(plane: &ControlPlane) {
    let definition = json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "fleets.test.opdev.dev"},
        "spec": {"group": "test.opdev.dev", "scope": "Namespaced",
            "names": {"plural": "fleets", "singular": "fleet", "kind": "Fleet", "listKind": "FleetList"},
            "versions": [{"name": "v1", "served": true, "storage": true, "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}}]}});
    let kind = GroupVersionKind::gvk("apiextensions.k8s.io", "v1", "CustomResourceDefinition");
    let definitions: Api<DynamicObject> = Api::all_with(plane.client(), &ApiResource::from_gvk(&kind));
    let apply = PatchParams::apply("test").force();
    definitions.patch("fleets.test.opdev.dev", &apply, &Patch::Apply(definition)).await.unwrap();
}

/// A client of a kubeconfig.
async fn client_of(kubeconfig: &str) -> Client {
    let kubeconfig = Kubeconfig::from_yaml(kubeconfig).unwrap();
    let config = kube::Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await;
    Client::try_from(config.unwrap()).unwrap()
}

fn spawn(binary: &Path, tracing: &Tracing, text: &str, folder: &Path) -> Child {
    let kubeconfig = folder.join("kubeconfig");
    std::fs::write(&kubeconfig, text).unwrap();
    let log = std::fs::File::create(folder.join("log")).unwrap();
    Command::new(binary)
        .env("KUBECONFIG", kubeconfig)
        .envs(environment(tracing.socket(), &ManagerOptions::default()))
        .stdout(log.try_clone().unwrap())
        .stderr(log)
        .stdin(Stdio::null())
        .spawn()
        .unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
#[cfg_attr(not(go), ignore = "needs Go")]
async fn every_write_belongs_to_its_reconcile_and_every_reconcile_has_a_cause() {
    every_write_belongs_to_its_reconcile(World::start().await).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
#[cfg_attr(not(go), ignore = "needs Go")]
async fn on_a_cluster_every_write_belongs_to_its_reconcile_too() {
    let world = World::through(Some(&|client| client)).await;
    assert!(world.tracing.faults().is_none(), "a cluster is never disturbed");
    every_write_belongs_to_its_reconcile(world).await;
}

/// One goroutine sends the Events of all reconciles; the message of each says which pass it is of.
async fn events_belong_to_their_reconciles(world: &World) {
    let kind = GroupVersionKind::gvk("", "v1", "Event");
    let events: Api<DynamicObject> =
        Api::default_namespaced_with(world.plane.client(), &ApiResource::from_gvk(&kind));
    let posts = |reconcile: &Reconcile| {
        reconcile.calls.iter().filter(|call| call.verb == "create" && call.path.ends_with("/events")).count()
    };
    let wrong = Mutex::new(Vec::new());
    let all_there = async {
        loop {
            // The program may still send some: both sides are asked anew each time.
            let sent = events.list(&ListParams::default()).await.unwrap().items;
            let mut of_reconcile: BTreeMap<String, usize> = BTreeMap::new();
            for event in sent.iter().filter(|event| event.data["reason"] == "Sailing") {
                let message = event.data["message"].as_str().unwrap();
                *of_reconcile.entry(message.strip_prefix("in pass ").unwrap().to_owned()).or_default() += 1;
            }
            let differ = |reconcile: &Arc<Reconcile>| {
                let id = reconcile.process.as_ref().unwrap().reconcile_id.clone();
                let (has, sent) = (posts(reconcile), of_reconcile.get(&id).copied().unwrap_or_default());
                (has != sent).then(|| format!("{id} of {}: {has} calls, {sent} Events", reconcile.object))
            };
            let found: Vec<String> = world.reconciles().iter().filter_map(differ).collect();
            if of_reconcile.len() >= 30 && found.is_empty() {
                return;
            }
            *wrong.lock().unwrap() = found;
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    let all_came = tokio::time::timeout(LONG, all_there).await.is_ok();
    assert!(all_came, "not each Event is in its pass: {:#?}", wrong.lock().unwrap());
}

pub(crate) async fn every_write_belongs_to_its_reconcile(world: World) {
    let names: Vec<String> = (0..30).map(|at| format!("fleet-{at}")).collect();
    for (at, name) in names.iter().enumerate() {
        world.sail(name, 3, u32::from(at % 10 == 0) * 2).await;
    }
    let reconciles =
        world.until("rest", |reconciles| names.iter().all(|name| world.settled(name)(reconciles))).await;

    let by_id = |id: &str| {
        let reconcile =
            reconciles.iter().find(|reconcile| reconcile.process.as_ref().unwrap().reconcile_id == id);
        reconcile.unwrap_or_else(|| panic!("nobody knows of pass {id}"))
    };
    // The truth is in what was written.
    let ships: Api<ConfigMap> = Api::default_namespaced(world.plane.client());
    let mut made = 0;
    for ship in ships.list(&ListParams::default().labels("fleet")).await.unwrap() {
        let (name, truth) = (ship.metadata.name.unwrap(), &ship.metadata.annotations.unwrap()["pass"]);
        let reconcile = by_id(truth);
        let of = |reconcile: &Reconcile| {
            reconcile.objects.iter().filter(|o| o.action == Action::Created && o.object.name == name).count()
        };
        assert_eq!(of(reconcile), 1, "{name} belongs to #{}", reconcile.id);
        assert_eq!(
            reconciles.iter().map(|reconcile| of(reconcile)).sum::<usize>(),
            1,
            "{name} belongs to one pass only"
        );
        let create = reconcile.calls.iter().find(|call| call.verb == "create" && call.status == 201).unwrap();
        let place = create.place.as_ref().expect("the place in the code");
        assert!(place.file.ends_with(".go") && !place.file.starts_with('/') && place.line > 0, "{place}");
        made += 1;
    }
    assert_eq!(made, 90);
    for fleet in world.fleets().list(&ListParams::default()).await.unwrap() {
        let reconcile = by_id(fleet.data["status"]["pass"].as_str().unwrap());
        assert!(
            reconcile
                .status
                .iter()
                .any(|change| change.path.to_string() == ".status.pass"
                    || change.path.to_string() == ".status"),
            "{:?}",
            reconcile.status
        );
        assert_eq!(reconcile.object.name, fleet.metadata.name.unwrap());
    }
    events_belong_to_their_reconciles(&world).await;
    for reconcile in &reconciles {
        assert!(!reconcile.causes.is_empty(), "#{} of {} has no cause", reconcile.id, reconcile.object);
        let process = reconcile.process.as_ref().unwrap();
        assert!(process.guessed_calls.is_empty(), "#{}: {:?}", reconcile.id, reconcile.calls);
        assert_eq!((process.controller.as_str(), reconcile.object.gvk.kind.as_str()), ("fleet", "Fleet"));
        assert!(
            process.reads.iter().any(|read| read.verb == "get" && read.object.name == reconcile.object.name)
        );
        // The client beside the manager carries the id, too.
        let beside =
            reconcile.calls.iter().any(|call| call.verb == "get" && call.target.starts_with("configmaps/"));
        assert!(beside || reconcile.outcome == Outcome::Failed, "#{}: {:?}", reconcile.id, reconcile.calls);
    }
    // Failures are the causes of what follows them.
    let failed: Vec<_> =
        reconciles.iter().filter(|reconcile| reconcile.object.name == "fleet-10").take(3).collect();
    for (at, reconcile) in failed.iter().enumerate().take(2) {
        let failure = reconcile.failure.as_ref().unwrap();
        assert_eq!(failure.attempt as usize, at + 1);
        assert!(failure.chain[0].contains("fleet-10 is not ready to sail"), "{failure:?}");
        let next = &failed[at + 1].causes;
        assert!(
            next.iter().any(|cause| matches!(&cause.kind, CauseKind::Retry { attempt, error }
                if *attempt as usize == at + 1 && error.contains("not ready"))),
            "{next:?}"
        );
    }
    // A line of the log belongs to its reconcile.
    let events = world.events.lock().unwrap().clone();
    let lines = events.iter().filter(|event| {
        matches!(event, Event::Log(line) if line.message.starts_with("sailing ships=") && line.reconcile.is_some())
    });
    assert!(lines.count() >= 30);
    each_line_is_shown_once(&world).await;
}

/// The program's output is put beside its records, as `opdev run` does.
async fn each_line_is_shown_once(world: &World) {
    let shown = |text: &str| {
        let events = world.events.lock().unwrap();
        let is = |event: &&Event| matches!(event, Event::Log(line) if line.message.starts_with(text));
        events.iter().filter(is).count()
    };
    let printed = || -> Vec<LineName> {
        let log = std::fs::read_to_string(world.folder.path().join("log")).unwrap();
        let lines = log.lines().filter(|line| line.contains("\tsailing\t"));
        let fields = lines.filter_map(|line| serde_json::from_str(line.rsplit('\t').next()?).ok());
        fields
            .map(|fields: serde_json::Value| {
                LineName::read(fields[LineName::FIELD].as_str().unwrap()).unwrap()
            })
            .collect()
    };
    // A requeue may still be on its way, so both may grow.
    world
        .until("each line that is told to be printed with its name", |_| printed().len() == shown("sailing"))
        .await;
    let printed = printed();
    let print = |name: LineName, message: &str| {
        let line = LogLine {
            at: jiff::Timestamp::now(),
            level: Level::Info,
            target: String::new(),
            message: message.to_owned(),
            reconcile: None,
        };
        world
            .tracing
            .printed()
            .try_send(Seen::Printed(PrintedLine { name, line, stack: String::new() }))
            .unwrap();
    };
    for name in &printed {
        print(*name, "as it was printed");
    }
    // Whatever nobody tells is shown, and shows that all before it was looked at.
    print(LineName { pid: 0, number: 1 }, "of nobody");
    world.until("the last line", |_| shown("of nobody") == 1).await;
    assert_eq!(shown("as it was printed"), 0, "a line is shown twice");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
#[cfg_attr(not(go), ignore = "needs Go")]
async fn a_reconcile_is_asked_for_by_hand_and_held_events_make_a_stale_read() {
    let world = World::start().await;
    world.sail("one", 2, 0).await;
    world.until("rest", world.settled("one")).await;
    let wish = ReconcileNow {
        why: None,
        controller: "fleet".into(),
        namespace: "default".into(),
        name: "one".into(),
    };
    assert!(world.tracing.reconcile(&wish));
    let asked =
        |reconcile: &Arc<Reconcile>| reconcile.causes.iter().any(|cause| cause.kind == CauseKind::User);
    let reconciles = world.until("the pass by hand", |reconciles| reconciles.iter().any(asked)).await;
    let by_hand: Vec<_> = reconciles.iter().filter(|reconcile| asked(reconcile)).collect();
    assert_eq!(by_hand.len(), 1, "one wish, one pass");
    assert!(by_hand[0].objects.is_empty(), "it has nothing to do");

    // Events of config maps are held: the next reconciles do not see what the first one made.
    let disturb = |rule: &str| world.tracing.faults().unwrap().set(vec![rule.parse().unwrap()], 1);
    disturb("hold configmaps");
    world.sail("two", 2, 0).await;
    let stale = |reconciles: &[Arc<Reconcile>]| {
        reconciles.iter().any(|reconcile| {
            reconcile.object.name == "two"
                && reconcile
                    .process
                    .as_ref()
                    .unwrap()
                    .findings
                    .iter()
                    .any(|f| f.kind == FindingKind::StaleRead)
        })
    };
    world.until("a stale read", stale).await;
    world.tracing.faults().unwrap().set(Vec::new(), 1);
    world.until("rest", world.settled("two")).await;

    // A refusal on request is marked in the reconcile, and the operator goes on after it.
    disturb("conflict update fleets/status times=1");
    world.sail("three", 1, 0).await;
    let reconciles = world.until("rest", world.settled("three")).await;
    let disturbed: Vec<_> = reconciles
        .iter()
        .filter(|reconcile| !reconcile.process.as_ref().unwrap().disturbed_calls.is_empty())
        .collect();
    assert_eq!(disturbed.len(), 1);
    assert_eq!((disturbed[0].object.name.as_str(), disturbed[0].outcome), ("three", Outcome::Failed));
    assert!(
        disturbed[0]
            .calls
            .iter()
            .any(|call| call.status == 409 && call.reason.as_deref() == Some("Conflict"))
    );
}

/// A call to a cluster goes there as it is, and only for those who have the token of the relay.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_relay_changes_nothing_and_lets_nobody_else_in() {
    let plane = ControlPlane::start().await.unwrap();
    let listening = plane.listen(Listen::default()).await.unwrap();
    let direct = client_of(&listening.kubeconfig).await;
    let folder = tempfile::tempdir().unwrap();
    let (sink, _events) = EventSink::channel(1024);
    let upstream = upstream(direct.clone());
    let socket = socket_path(folder.path());
    let sink = ReconcileSink { events: sink, numbers: ReconcileNumbers::default() };
    let tracing = Tracing::relayed(&socket, upstream, sink).await.unwrap();
    let text = tracing.kubeconfig(None, "default", false).unwrap();
    let relayed = client_of(&text).await;

    // Its own token, and none of the cluster's, is in the file; without it there is no way in.
    let token = text.lines().find_map(|line| line.trim().strip_prefix("token: ")).unwrap();
    assert!(!listening.kubeconfig.contains(token.trim_matches('"')));
    let stranger = client_of(&text.replace(token, "\"wrong\"")).await;
    let refused = stranger.apiserver_version().await.unwrap_err();
    assert!(matches!(&refused, kube::Error::Api(status) if status.code == 401), "{refused:?}");

    // Writes, refusals with their own words, and long lists.
    let maps: Api<ConfigMap> = Api::default_namespaced(relayed.clone());
    let large = "x".repeat(200_000);
    for at in 0..10 {
        let map = json!({"metadata": {"name": format!("map-{at}")}, "data": {"large": large}});
        maps.create(&PostParams::default(), &serde_json::from_value(map).unwrap()).await.unwrap();
    }
    let again = json!({"metadata": {"name": "map-1"}});
    let conflict =
        maps.create(&PostParams::default(), &serde_json::from_value(again).unwrap()).await.unwrap_err();
    assert!(
        matches!(&conflict, kube::Error::Api(status) if status.reason == "AlreadyExists" && status.code == 409),
        "{conflict:?}"
    );
    let same = |client: &Client| Api::<ConfigMap>::default_namespaced(client.clone());
    let (near, far) =
        (same(&relayed).list(&ListParams::default()).await, same(&direct).list(&ListParams::default()).await);
    let data = |list: kube::core::ObjectList<ConfigMap>| {
        list.items.into_iter().map(|map| map.data).collect::<Vec<_>>()
    };
    assert_eq!(data(near.unwrap()), data(far.unwrap()));

    // A watch delivers what happens, as it happens.
    let mut watch = maps.watch(&kube::api::WatchParams::default(), "0").await.unwrap().boxed();
    let mut seen = 0;
    while let Ok(Some(Ok(event))) = tokio::time::timeout(LONG, watch.next()).await {
        if let kube::core::WatchEvent::Added(map) = event {
            seen += usize::from(map.metadata.name.is_some_and(|name| name.starts_with("map-")));
        }
        if seen == 10 {
            break;
        }
    }
    maps.delete("map-3", &kube::api::DeleteParams::default()).await.unwrap();
    let next = tokio::time::timeout(LONG, watch.next()).await.unwrap().unwrap().unwrap();
    assert!(
        matches!(&next, kube::core::WatchEvent::Deleted(map) if map.metadata.name.as_deref() == Some("map-3")),
        "{next:?}"
    );

    plane.stop().await;
}

/// Whoever writes nonsense to the socket is told of, and the program is heard all the same.
#[tokio::test(flavor = "multi_thread")]
async fn nonsense_on_the_socket_is_told_and_harms_no_trace() {
    let plane = ControlPlane::start().await.unwrap();
    let folder = tempfile::tempdir().unwrap();
    let (sink, mut events) = EventSink::channel(1024);
    let socket = socket_path(folder.path());
    let sink = ReconcileSink { events: sink, numbers: ReconcileNumbers::default() };
    let tracing = Tracing::start(&socket, &plane, User::admin(), sink).unwrap();
    let mut next = async |what: &str, pick: fn(&Event) -> bool| {
        let look = async { while !pick(&events.recv().await.unwrap()) {} };
        tokio::time::timeout(LONG, look).await.unwrap_or_else(|_| panic!("waited for {what} in vain"));
    };
    let connect = async || UnixStream::connect(tracing.socket()).await.unwrap();
    let told = |event: &Event| matches!(event, Event::Noticed(notice) if notice.message.starts_with("the trace socket got a line that is no record"));
    let mut stranger = connect().await;
    stranger.write_all(b"GET / HTTP/1.1\r\n").await.unwrap();
    next("a word about nonsense", told).await;
    // A line without an end is cut; whoever sends it finds the socket closed.
    let endless = vec![b'x'; 1 << 16];
    while stranger.write_all(&endless).await.is_ok() {}
    next("a word about a line without an end", told).await;

    let mut program = connect().await;
    let records = [
        json!({"record": "hello", "pid": 1, "rung": "full"}),
        json!({"record": "controller", "name": "fleet", "group": "test.opdev.dev", "kind": "Fleet"}),
        json!({"record": "begin", "t": 1, "id": "a", "controller": "fleet", "namespace": "default", "name": "one"}),
        json!({"record": "end", "t": 2, "id": "a"}),
    ];
    let lines: String = records.iter().map(|record| format!("{record}\n")).collect();
    program.write_all(lines.as_bytes()).await.unwrap();
    // A program that closes the socket goes on unheard.
    drop(program);
    next("the pass", |event| matches!(event, Event::Reconciled(reconcile) if reconcile.object.name == "one"))
        .await;
    plane.stop().await;
}
