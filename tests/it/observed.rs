//! Clients of the embedded control plane that are observed: everything they do is seen, nothing of it is
//! changed but on request, and their token is good for as long as somebody holds it.

use futures::{AsyncBufReadExt, StreamExt, TryStreamExt};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, DeleteParams, ListParams, PostParams, WatchParams};
use kube::core::WatchEvent;
use opdev_controlplane::{
    Asked, ControlPlane, Listen, Observation, ObservedToken, Observer, Passage, Refusal, Reset, Treatment,
    User,
};
use std::sync::{Arc, Mutex};
use tokio::sync::watch;

/// Keeps what it sees, and treats writes as it is told.
struct Kept {
    seen: Mutex<Vec<Observation>>,
    writes: Mutex<Treatment>,
    gate: watch::Sender<Passage>,
}

impl Observer for Kept {
    fn treatment(&self, asked: &Asked) -> Treatment {
        if asked.query.contains("watch=") {
            return Treatment { gate: Some(self.gate.subscribe()), ..Treatment::default() };
        }
        if asked.method == "GET" { Treatment::default() } else { self.writes.lock().unwrap().clone() }
    }

    fn seen(&self, observation: Observation) {
        self.seen.lock().unwrap().push(observation);
    }
}

impl Kept {
    /// Method, path, status, and the names in both bodies.
    fn lines(&self) -> Vec<String> {
        let seen = self.seen.lock().unwrap();
        let lines = seen.iter().filter_map(|observation| match observation {
            Observation::Answered(exchange) => {
                let name = |value: Option<serde_json::Value>| {
                    value.and_then(|value| value["metadata"]["name"].as_str().map(str::to_owned))
                };
                let bodies = [name(exchange.request.value()), name(exchange.answer.value())];
                let bodies = bodies.map(|name| name.unwrap_or("-".to_owned())).join(" ");
                Some(format!(
                    "{} {} {} {bodies}",
                    exchange.asked.method, exchange.asked.path, exchange.status
                ))
            }
            Observation::Delivered(_) | Observation::WatchEnded(_) => None,
        });
        lines.collect()
    }
}

async fn start() -> (ControlPlane, Arc<Kept>, ObservedToken, Api<ConfigMap>) {
    let plane = ControlPlane::start().await.unwrap();
    let listening = plane.listen(Listen::default()).await.unwrap();
    let kept = Arc::new(Kept {
        seen: Mutex::default(),
        writes: Mutex::default(),
        gate: watch::Sender::new(Passage::Open),
    });
    let observer: Arc<dyn Observer> = kept.clone();
    let token = plane.observed_token(User::admin(), observer).unwrap();
    let text = listening.kubeconfig_of(&token, "default", None);
    let kubeconfig = kube::config::Kubeconfig::from_yaml(&text).unwrap();
    let config = kube::Config::from_custom_kubeconfig(kubeconfig, &Default::default()).await.unwrap();
    let maps = Api::default_namespaced(kube::Client::try_from(config).unwrap());
    (plane, kept, token, maps)
}

fn map(name: &str) -> ConfigMap {
    let mut map = ConfigMap::default();
    map.metadata.name = Some(name.to_owned());
    map.metadata.labels = Some([("of".to_owned(), "test".to_owned())].into());
    map
}

fn code(result: Result<ConfigMap, kube::Error>) -> u16 {
    match result {
        Err(kube::Error::Api(status)) => status.code,
        other => panic!("{other:?}"),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn calls_are_seen_refused_cut_off_and_forbidden_without_a_token() {
    let (plane, kept, token, maps) = start().await;
    maps.create(&PostParams::default(), &map("a")).await.unwrap();
    assert_eq!(kept.lines(), ["POST /api/v1/namespaces/default/configmaps 201 a a"]);

    let refusal = Refusal { code: 409, reason: "Conflict", message: "on request".into(), retry_after: None };
    *kept.writes.lock().unwrap() = Treatment { refusal: Some(refusal), ..Treatment::default() };
    assert_eq!(code(maps.create(&PostParams::default(), &map("b")).await), 409);
    let after = Treatment { reset: Some(Reset::After), ..Treatment::default() };
    *kept.writes.lock().unwrap() = after;
    let lost = maps.create(&PostParams::default(), &map("c")).await;
    assert!(!matches!(lost, Ok(_) | Err(kube::Error::Api(_))), "{lost:?}");
    let there: Vec<_> = maps.list(&ListParams::default()).await.unwrap().into_iter().collect();
    let names: Vec<_> = there.iter().filter_map(|map| map.metadata.name.as_deref()).collect();
    assert!(names.contains(&"c") && !names.contains(&"b"), "{names:?}");
    *kept.writes.lock().unwrap() = Treatment::default();
    maps.delete("a", &DeleteParams::default()).await.unwrap();

    drop(token);
    assert_eq!(code(maps.get("c").await), 401);
    plane.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn watch_events_are_held_stepped_through_and_expired() {
    let (plane, kept, _token, maps) = start().await;
    let mut events = maps.watch(&WatchParams::default().labels("of=test"), "0").await.unwrap().boxed();
    kept.gate.send_replace(Passage::Held(0));
    for name in ["x", "y"] {
        maps.create(&PostParams::default(), &map(name)).await.unwrap();
    }
    let mut next = async || match events.try_next().await.unwrap() {
        Some(WatchEvent::Added(map)) => map.metadata.name.unwrap(),
        Some(WatchEvent::Error(status)) => status.code.to_string(),
        other => panic!("{other:?}"),
    };
    kept.gate.send_replace(Passage::Held(1));
    assert_eq!(next().await, "x");
    kept.gate.send_replace(Passage::Open);
    assert_eq!(next().await, "y");
    kept.gate.send_replace(Passage::Expired);
    assert_eq!(next().await, "410");
    plane.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_watch_is_seen_however_it_is_asked_for() {
    let (plane, kept, _token, maps) = start().await;
    maps.create(&PostParams::default(), &map("a")).await.unwrap();
    let path = "/api/v1/namespaces/default/configmaps";
    // The first is how clients in Python write it.
    for path in [format!("{path}?watch=True"), format!("{path}?watch"), path.replace("/v1/", "/v1/watch/")] {
        kept.seen.lock().unwrap().clear();
        let request = http::Request::get(&path).body(Vec::new()).unwrap();
        let mut lines = maps.clone().into_client().request_stream(request).await.unwrap().lines();
        lines.try_next().await.unwrap().unwrap();
        let seen = kept.seen.lock().unwrap();
        assert!(seen.iter().any(|one| matches!(one, Observation::Delivered(_))), "{path}: {seen:?}");
    }
    plane.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_long_list_is_no_watch() {
    let (plane, kept, _token, maps) = start().await;
    // Together more than is answered in one piece.
    for n in 0..4 {
        let mut large = map(&format!("large-{n}"));
        large.data = Some([("text".to_owned(), "x".repeat(100_000))].into());
        maps.create(&PostParams::default(), &large).await.unwrap();
    }
    kept.seen.lock().unwrap().clear();
    assert_eq!(maps.list(&ListParams::default().labels("of=test")).await.unwrap().items.len(), 4);
    assert_eq!(kept.lines(), ["GET /api/v1/namespaces/default/configmaps 200 - -"]);
    let events =
        kept.seen.lock().unwrap().iter().filter(|one| !matches!(one, Observation::Answered(_))).count();
    assert_eq!(events, 0, "a list has none");
    plane.stop().await;
}
