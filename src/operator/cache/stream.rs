//! Follows the objects of one kind with kube's watcher and hands raw events on. A kind that is not served yet
//! is waited for, a kind whose CRD is created again is followed again, both without noise.

use super::interest::Interest;
use super::merged::Merged;
use super::stream_cache::Raw;
use super::watched_object::Sent;
use futures::stream::select_all;
use futures::{FutureExt as _, Stream, StreamExt};
use kube::api::Api;
use kube::runtime::watcher::{self, Config, watcher};
use opdev_client::forbidden::FORBIDDEN_PAUSE;
use opdev_client::watch::backoff::Pauses;
use opdev_client::watch::busy::Busy;
use opdev_client::{ApiError, Discovery, Resource};
use opdev_object::meta::{self, Gvk, ObjectRef};
use serde_json::Value;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::{mpsc, watch};

/// The subject of a stream.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Follow {
    pub gvk: Gvk,
    /// The only namespaces; none means all.
    pub namespaces: Vec<String>,
    /// Label selector, empty for all.
    pub selector: String,
}

/// The subject of a stream, and the objects in which somebody is interested.
#[derive(Clone, Debug)]
pub struct Wanted {
    pub follow: Follow,
    pub interest: Interest,
}

/// A message of a stream.
#[derive(Debug)]
pub enum Said {
    /// An event of the API server.
    Event(Raw),
    /// It cannot follow and tries again.
    Broken(String),
    /// The API server does not serve the kind: it is waited for.
    NotServed,
    /// The user may not watch it: it is tried again now and then, or when somebody asks for it.
    Forbidden(String),
    /// The connection broke, or no answer came: it tries again, and whoever has the connection says so.
    Lost,
}

/// Everything that a stream needs.
#[derive(Clone)]
pub struct Streams {
    pub client: kube::Client,
    pub discovery: Arc<Discovery>,
    /// Changes whenever a CRD does.
    pub types: watch::Receiver<u64>,
    /// Changes when the API server answers again.
    pub awake: watch::Receiver<u64>,
}

const FIRST_PAUSE: Duration = Duration::from_millis(50);
/// The first and the longest pause after a failure.
const BROKEN_PAUSE: (Duration, Duration) = (FIRST_PAUSE, Duration::from_secs(10));
/// How often a kind that is not served is looked for although no CRD has changed.
const LOOK_AGAIN: Duration = Duration::from_secs(5);

impl Streams {
    /// Follows until the receiver is gone.
    pub async fn follow<T, F>(self, wanted: Wanted, sender: mpsc::Sender<T>, wrap: F)
    where
        T: Send + 'static,
        F: Fn(Said) -> T + Send + 'static,
    {
        let mut types = self.types.clone();
        let mut awake = self.awake.clone();
        let (mut broken, mut refused) = (Pauses::new(BROKEN_PAUSE), Pauses::new(FORBIDDEN_PAUSE));
        loop {
            types.borrow_and_update();
            awake.borrow_and_update();
            let mut listed = None;
            let told = match self.discovery.resolve(&wanted.follow.gvk).await {
                Ok(Some(resource)) => {
                    let ended = self.watch(&wanted, &resource, &sender, &wrap, &mut listed).await;
                    match ended {
                        Ended::NotServed => {
                            self.discovery.invalidate().await;
                            self.resolve_or_wait(&wanted.follow.gvk, &mut types).await;
                            continue;
                        }
                        Ended::Nobody => return,
                        // A saved type: the server sets the kind's storage up anew and says so for about a
                        // second.
                        Ended::Busy => {
                            tokio::time::sleep(FIRST_PAUSE).await;
                            continue;
                        }
                        Ended::Broken(why) => Said::Broken(why),
                        Ended::Forbidden(why) => Said::Forbidden(why),
                        Ended::Lost => Said::Lost,
                    }
                }
                Ok(None) => {
                    if sender.send(wrap(Said::NotServed)).await.is_err() {
                        return;
                    }
                    self.resolve_or_wait(&wanted.follow.gvk, &mut types).await;
                    continue;
                }
                Err(ApiError::Unreachable(_)) => Said::Lost,
                Err(error) => Said::Broken(error.to_string()),
            };
            let (failed, other) = match told {
                Said::Forbidden(_) => (&mut refused, &mut broken),
                Said::Event(_) | Said::Broken(_) | Said::NotServed | Said::Lost => {
                    (&mut broken, &mut refused)
                }
            };
            let pause = failed.after(listed.map_or(Duration::ZERO, |at: Instant| at.elapsed()));
            other.reset();
            if sender.send(wrap(told)).await.is_err() {
                return;
            }
            tokio::select! {
                () = tokio::time::sleep(pause) => {}
                Ok(()) = awake.changed() => {
                    broken.reset();
                    refused.reset();
                }
            }
        }
    }

    /// Returns true if an object is not there any more; not, where nobody says so.
    pub async fn is_gone(&self, object: &Value) -> bool {
        let Some(at) = ObjectRef::of(object) else { return false };
        let Ok(Some(resource)) = self.discovery.resolve(&at.gvk).await else { return false };
        let found = api(&self.client, &resource, at.namespace.as_deref()).get_metadata_opt(&at.name).await;
        found.is_ok_and(|found| found.is_none_or(|found| found.metadata.uid.as_deref() != meta::uid(object)))
    }

    /// Returns as soon as the kind may be served: at once if it is, else after the next change of a CRD, or a
    /// while.
    async fn resolve_or_wait(&self, gvk: &Gvk, types: &mut watch::Receiver<u64>) {
        if matches!(self.discovery.resolve(gvk).await, Ok(Some(_))) {
            // Served again, or the list was refused for a moment only.
            tokio::time::sleep(FIRST_PAUSE).await;
            return;
        }
        let changed = async {
            if types.changed().await.is_err() {
                std::future::pending::<()>().await;
            }
        };
        // A server may tell of a CRD a moment before it serves its kind, and of nothing after that.
        let _ = tokio::time::timeout(LOOK_AGAIN, changed).await;
    }

    /// Watches until that fails. `listed` becomes when all was listed for the first time.
    async fn watch<T, F: Fn(Said) -> T>(
        &self,
        Wanted { follow, interest }: &Wanted,
        resource: &Resource,
        sender: &mpsc::Sender<T>,
        wrap: &F,
        listed: &mut Option<Instant>,
    ) -> Ended {
        let mut config = Config::default();
        if !follow.selector.is_empty() {
            config = config.labels(&follow.selector);
        }
        let everywhere = || vec![None];
        let places: Vec<Option<&str>> = match follow.namespaces.as_slice() {
            [] => everywhere(),
            _ if !resource.namespaced => everywhere(),
            some => some.iter().map(|namespace| Some(namespace.as_str())).collect(),
        };
        let mut merged = (places.len() > 1).then(|| Merged::of(places.len()));
        let watchers = places.into_iter().enumerate().map(|(place, namespace)| {
            let events = watcher(api(&self.client, resource, namespace), config.clone());
            events.map(move |event| (place, event)).boxed()
        });
        let mut events = select_all(watchers);
        let mut busy = Busy::default();
        while let Some((place, event)) = next(&mut events, &busy).await {
            let unrelated =
                matches!(&event, Ok(watcher::Event::Apply(sent)) if !interest.is_in(sent.identity()));
            busy.came(unrelated, Instant::now());
            let raw = match event {
                Ok(event) => raw(event, resource),
                Err(error) if is_not_served(&error) => return Ended::NotServed,
                // The server closed a stream that had become too old: the watcher lists again by itself.
                Err(watcher::Error::WatchError(status)) if status.code == 410 => continue,
                Err(error) if is_busy(&error) => return Ended::Busy,
                Err(error) if is_lost(&error) => return Ended::Lost,
                Err(error) if is_forbidden(&error) => return Ended::Forbidden(describe(&error)),
                Err(error) => return Ended::Broken(describe(&error)),
            };
            let told = match &mut merged {
                Some(merged) => merged.take(place, raw),
                None => vec![raw],
            };
            for raw in told {
                if matches!(raw, Raw::Listing) {
                    listed.get_or_insert_with(Instant::now);
                }
                if sender.send(wrap(Said::Event(raw))).await.is_err() {
                    return Ended::Nobody;
                }
            }
        }
        Ended::Lost
    }
}

/// The next event: at once where it is there, else after the pause of a busy watch.
async fn next<T>(events: &mut (impl Stream<Item = T> + Unpin), busy: &Busy) -> Option<T> {
    if let Some(there) = events.next().now_or_never() {
        return there;
    }
    if let Some(until) = busy.pause(Instant::now()) {
        tokio::time::sleep_until(until.into()).await;
    }
    events.next().await
}

fn api(client: &kube::Client, resource: &Resource, namespace: Option<&str>) -> Api<Sent> {
    let described = resource.api_resource();
    match namespace.filter(|_| resource.namespaced) {
        Some(namespace) => Api::namespaced_with(client.clone(), namespace, &described),
        None => Api::all_with(client.clone(), &described),
    }
}

enum Ended {
    NotServed,
    Busy,
    Nobody,
    Broken(String),
    Forbidden(String),
    Lost,
}

/// Returns true if the user has no right to it.
fn is_forbidden(error: &watcher::Error) -> bool {
    match error {
        watcher::Error::InitialListFailed(kube::Error::Api(status))
        | watcher::Error::WatchStartFailed(kube::Error::Api(status))
        | watcher::Error::WatchFailed(kube::Error::Api(status)) => status.code == 403,
        watcher::Error::WatchError(status) => status.code == 403,
        watcher::Error::InitialListFailed(_)
        | watcher::Error::WatchStartFailed(_)
        | watcher::Error::WatchFailed(_)
        | watcher::Error::NoResourceVersion => false,
    }
}

/// Returns true if no answer came, or it broke off.
fn is_lost(error: &watcher::Error) -> bool {
    match error {
        watcher::Error::InitialListFailed(error)
        | watcher::Error::WatchStartFailed(error)
        | watcher::Error::WatchFailed(error) => !matches!(error, kube::Error::Api(_)),
        watcher::Error::WatchError(_) | watcher::Error::NoResourceVersion => false,
    }
}

fn is_not_served(error: &watcher::Error) -> bool {
    match error {
        watcher::Error::InitialListFailed(kube::Error::Api(status))
        | watcher::Error::WatchStartFailed(kube::Error::Api(status))
        | watcher::Error::WatchFailed(kube::Error::Api(status)) => status.code == 404,
        watcher::Error::WatchError(status) => status.code == 404,
        watcher::Error::InitialListFailed(_)
        | watcher::Error::WatchStartFailed(_)
        | watcher::Error::WatchFailed(_)
        | watcher::Error::NoResourceVersion => false,
    }
}

/// Returns true if the server asks to come back in a moment.
fn is_busy(error: &watcher::Error) -> bool {
    match error {
        watcher::Error::InitialListFailed(kube::Error::Api(status))
        | watcher::Error::WatchStartFailed(kube::Error::Api(status))
        | watcher::Error::WatchFailed(kube::Error::Api(status)) => is_reinitializing(status),
        watcher::Error::WatchError(status) => is_reinitializing(status),
        watcher::Error::InitialListFailed(_)
        | watcher::Error::WatchStartFailed(_)
        | watcher::Error::WatchFailed(_)
        | watcher::Error::NoResourceVersion => false,
    }
}

/// The answer of apiextensions while a kind's storage is set up: 429, `storage is (re)initializing`.
fn is_reinitializing(status: &kube::core::Status) -> bool {
    status.code == 429 && status.message.contains("initializing")
}

fn describe(error: &watcher::Error) -> String {
    match error {
        watcher::Error::InitialListFailed(kube::Error::Api(status))
        | watcher::Error::WatchStartFailed(kube::Error::Api(status))
        | watcher::Error::WatchFailed(kube::Error::Api(status)) => status.message.clone(),
        watcher::Error::WatchError(status) => status.message.clone(),
        watcher::Error::InitialListFailed(_)
        | watcher::Error::WatchStartFailed(_)
        | watcher::Error::WatchFailed(_)
        | watcher::Error::NoResourceVersion => error.to_string(),
    }
}

fn raw(event: watcher::Event<Sent>, resource: &Resource) -> Raw {
    match event {
        watcher::Event::Init => Raw::Init,
        watcher::Event::InitApply(object) => Raw::Listed(object.of(resource)),
        watcher::Event::InitDone => Raw::Listing,
        watcher::Event::Apply(object) => Raw::Applied(object.of(resource)),
        watcher::Event::Delete(object) => Raw::Deleted(object.of(resource)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::{Request, Response};
    use kube::client::Body;
    use serde_json::json;
    use std::convert::Infallible;

    /// An API server with pods that may be listed and watched in one namespace, and fails for another.
    fn server() -> kube::Client {
        let service = tower::service_fn(|request: Request<Body>| {
            let uri = request.uri().clone();
            let (path, query) = (uri.path(), uri.query().unwrap_or_default());
            let resource = json!({"resource": "pods", "scope": "Namespaced", "verbs": ["list", "watch"],
                "responseKind": {"group": "", "version": "v1", "kind": "Pod"}});
            let group = json!({"versions": [{"version": "v1", "resources": [resource]}]});
            let body = match path {
                "/api" => json!({"kind": "APIGroupDiscoveryList", "items": [group]}),
                "/apis" => json!({"kind": "APIGroupDiscoveryList", "items": []}),
                "/version" => json!({"gitVersion": "v1.36.0"}),
                "/api/v1/namespaces/works/pods" => {
                    json!({"kind": "PodList", "apiVersion": "v1", "metadata": {"resourceVersion": "7"}, "items": []})
                }
                _ => {
                    json!({"kind": "Status", "status": "Failure", "code": 500, "message": "etcd has no leader"})
                }
            };
            let (code, waits) = (body["code"].as_u64(), query.contains("watch=true"));
            async move {
                if code.is_none() && waits {
                    std::future::pending::<()>().await;
                }
                let mut response = Response::new(Body::from(body.to_string().into_bytes()));
                *response.status_mut() = if code.is_some() { 500 } else { 200 }.try_into().unwrap();
                Ok::<_, Infallible>(response)
            }
        });
        kube::Client::new(service, "default")
    }

    #[tokio::test]
    async fn a_namespace_that_works_does_not_make_tries_of_another_one_hot() {
        let client = server();
        let discovery = Arc::new(Discovery::new(opdev_client::ApiClient::of(&client)));
        let ((_types, types), (_awake, awake)) = (watch::channel(0), watch::channel(0));
        let streams = Streams { client, discovery, types, awake };
        let namespaces = vec!["works".to_owned(), "fails".to_owned()];
        let follow = Follow { gvk: Gvk::new("", "v1", "Pod"), namespaces, selector: String::new() };
        let (sender, mut said) = mpsc::channel(8);
        let wanted = Wanted { follow, interest: Interest::All };
        let work = tokio::spawn(streams.follow(wanted, sender, |said| said));
        let began = Instant::now();
        for _ in 0..5 {
            let told = said.recv().await;
            assert!(matches!(&told, Some(Said::Broken(why)) if why.contains("no leader")), "{told:?}");
        }
        // A slow machine only waits longer.
        assert!(began.elapsed() >= FIRST_PAUSE * (1 + 2 + 4 + 8), "{:?}", began.elapsed());
        work.abort();
    }
}
