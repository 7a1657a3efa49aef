//! When custom resources were created, for `resource_created_at_seconds`: the metadata of a kind are listed
//! once, those of an object that came later are read once.

use super::metrics::Metrics;
use jiff::Timestamp;
use kube::Client;
use kube::api::{Api, ListParams};
use kube::core::{ApiResource, DynamicObject, GroupVersionKind};
use kube::discovery::Scope;
use opdev_event::{Outcome, Reconcile};
use opdev_object::meta::{Gvk, ObjectKey};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use tokio::sync::mpsc;

/// How many objects wait to be looked at; of more than that the next reconcile reminds.
const WAITING: usize = 1_024;

/// Objects that were seen, and the way to the task that looks at them.
pub(super) struct Creations {
    known: HashSet<ObjectKey>,
    look: mpsc::Sender<(Gvk, ObjectKey)>,
}

impl Creations {
    /// Starts the task, for objects in these namespaces; none means all. It ends with this.
    pub(super) fn follow(metrics: Arc<Metrics>, client: Client, namespaces: Vec<String>) -> Creations {
        let (look, objects) = mpsc::channel(WAITING);
        let looks = Looks { client, namespaces, kinds: HashMap::new() };
        tokio::spawn(look_at(objects, metrics, looks));
        Creations { known: HashSet::new(), look }
    }

    /// Takes a reconcile in.
    pub(super) fn hear(&mut self, reconcile: &Reconcile) {
        let key = reconcile.object.key();
        if matches!(reconcile.outcome, Outcome::Gone | Outcome::Uninstalled) {
            self.known.remove(&key);
        } else if !self.known.contains(&key)
            && self.look.try_send((reconcile.object.gvk.clone(), key.clone())).is_ok()
        {
            self.known.insert(key);
        }
    }
}

/// Objects in one page of a list.
const PAGE: u32 = 500;

/// One kind, with the objects that were listed.
struct Listed {
    resource: ApiResource,
    /// When objects were created that were there at the first look, until somebody asks.
    times: HashMap<ObjectKey, Timestamp>,
}

struct Looks {
    client: Client,
    /// The only namespaces that are watched; none means all.
    namespaces: Vec<String>,
    kinds: HashMap<Gvk, Listed>,
}

async fn look_at(mut objects: mpsc::Receiver<(Gvk, ObjectKey)>, metrics: Arc<Metrics>, mut looks: Looks) {
    while let Some((gvk, key)) = objects.recv().await {
        if let Some(at) = looks.created(&gvk, &key).await {
            metrics.created(&gvk, key, at);
        }
    }
}

impl Looks {
    async fn created(&mut self, gvk: &Gvk, key: &ObjectKey) -> Option<Timestamp> {
        if !self.kinds.contains_key(gvk) {
            let wanted = GroupVersionKind::gvk(&gvk.group, &gvk.version, &gvk.kind);
            let (resource, capabilities) = kube::discovery::pinned_kind(&self.client, &wanted).await.ok()?;
            let namespaced = capabilities.scope == Scope::Namespaced;
            let times = self.list(gvk, &resource, namespaced).await;
            self.kinds.insert(gvk.clone(), Listed { resource, times });
        }
        let kind = self.kinds.get_mut(gvk)?;
        if let Some(at) = kind.times.remove(key) {
            return Some(at);
        }
        let api = api(&self.client, &kind.resource, key.namespace.as_deref());
        let there = api.get_metadata_opt(&key.name).await.ok()??;
        Some(there.metadata.creation_timestamp?.0)
    }

    /// All objects of a kind; what may not be listed is read one by one.
    async fn list(
        &self,
        gvk: &Gvk,
        resource: &ApiResource,
        namespaced: bool,
    ) -> HashMap<ObjectKey, Timestamp> {
        let mut times = HashMap::new();
        let places: Vec<Option<&str>> = match self.namespaces.as_slice() {
            some if namespaced && !some.is_empty() => some.iter().map(|name| Some(name.as_str())).collect(),
            _ => vec![None],
        };
        for place in places {
            let api = api(&self.client, resource, place);
            let mut params = ListParams::default().limit(PAGE);
            while let Ok(page) = api.list_metadata(&params).await {
                for metadata in page.items.into_iter().map(|object| object.metadata) {
                    let (Some(name), Some(at)) = (metadata.name, metadata.creation_timestamp) else {
                        continue;
                    };
                    let (group, kind) = (gvk.group.clone(), gvk.kind.clone());
                    times.insert(ObjectKey { group, kind, namespace: metadata.namespace, name }, at.0);
                }
                match page.metadata.continue_.filter(|token| !token.is_empty()) {
                    Some(token) => params = params.continue_token(&token),
                    None => break,
                }
            }
        }
        times
    }
}

fn api(client: &Client, resource: &ApiResource, namespace: Option<&str>) -> Api<DynamicObject> {
    match namespace {
        Some(namespace) => Api::namespaced_with(client.clone(), namespace, resource),
        None => Api::all_with(client.clone(), resource),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::{Request, Response};
    use kube::client::Body;
    use serde_json::{Value, json};
    use std::convert::Infallible;
    use std::sync::Mutex;

    /// An API server with sites in one namespace, one of them made after the others; what it was asked.
    fn server() -> (Client, Arc<Mutex<Vec<String>>>) {
        let asked: Arc<Mutex<Vec<String>>> = Arc::default();
        let told = Arc::clone(&asked);
        let service = tower::service_fn(move |request: Request<Body>| {
            let path = request.uri().path().to_owned();
            let named = |name: &str| {
                json!({"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata":
                    {"name": name, "namespace": "shop", "creationTimestamp": "2026-01-02T03:04:05Z"}})
            };
            let sites = "/apis/my.domain/v1/namespaces/shop/sites";
            let body: Value = match path.strip_prefix(sites) {
                Some("") => {
                    json!({"kind": "PartialObjectMetadataList", "apiVersion": "meta.k8s.io/v1", "metadata": {},
                        "items": [named("a"), named("b"), named("c")]})
                }
                Some(name) => named(name.trim_start_matches('/')),
                None => json!({"kind": "APIResourceList", "groupVersion": "my.domain/v1", "resources": [
                    {"name": "sites", "singularName": "site", "namespaced": true, "kind": "Site", "verbs": ["get", "list"]}]}),
            };
            told.lock().unwrap().push(path);
            async move { Ok::<_, Infallible>(Response::new(Body::from(body.to_string().into_bytes()))) }
        });
        (Client::new(service, "default"), asked)
    }

    #[tokio::test]
    async fn a_kind_is_listed_once_and_only_what_came_later_is_asked_for() {
        let (client, asked) = server();
        let mut looks = Looks { client, namespaces: vec!["shop".to_owned()], kinds: HashMap::new() };
        let gvk = Gvk::new("my.domain", "v1", "Site");
        for name in ["a", "b", "c", "later"] {
            let (group, kind, namespace) = (gvk.group.clone(), gvk.kind.clone(), Some("shop".to_owned()));
            let key = ObjectKey { group, kind, namespace, name: name.to_owned() };
            let at = looks.created(&gvk, &key).await.unwrap();
            assert_eq!(at.to_string(), "2026-01-02T03:04:05Z", "{name}");
        }
        let asked = asked.lock().unwrap();
        let of_objects: Vec<&String> = asked.iter().filter(|path| path.contains("/sites")).collect();
        let all = "/apis/my.domain/v1/namespaces/shop/sites";
        assert_eq!(of_objects, [all, &format!("{all}/later")]);
    }
}
