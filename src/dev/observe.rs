//! Watches what the panes show: the custom resources and the kinds their objects are made of.
//! Only looks; reconciles have watches of their own in `operator`.
//! Lists come whole, in pages of 500, and each object is told as it comes, so that the first rows do not wait for the last
//! page: 0.5 to 0.9 s from the start of the process with 13,000 pods (63 MB of JSON) as with 10,000 other objects (82 MB),
//! two busy cores, `benches/lists.rs`. Lists of metadata would be a second way for few: all rows but those of accounts,
//! roles and policies read status, type or data, and versions are kept of whole objects.

use crate::event::{Event, ObjectGone, ObjectSeen, mask};
use crate::tap::EventSink;
use futures::{StreamExt as _, pin_mut};
use jiff::Timestamp;
use kube::api::DynamicObject;
use kube::runtime::{WatchStreamExt as _, watcher};
use kube::{Api, Client};
use opdev_object::meta::{Gvk, ObjectRef};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// Kinds that charts and controllers make objects of.
const OWNED: [(&str, &str, &str); 19] = [
    ("apps", "v1", "Deployment"),
    ("apps", "v1", "ReplicaSet"),
    ("", "v1", "Pod"),
    ("apps", "v1", "StatefulSet"),
    ("apps", "v1", "DaemonSet"),
    ("batch", "v1", "Job"),
    ("batch", "v1", "CronJob"),
    ("", "v1", "Service"),
    ("", "v1", "ConfigMap"),
    ("", "v1", "Secret"),
    ("", "v1", "ServiceAccount"),
    ("", "v1", "PersistentVolumeClaim"),
    ("networking.k8s.io", "v1", "Ingress"),
    ("networking.k8s.io", "v1", "NetworkPolicy"),
    ("autoscaling", "v2", "HorizontalPodAutoscaler"),
    ("policy", "v1", "PodDisruptionBudget"),
    ("rbac.authorization.k8s.io", "v1", "Role"),
    ("rbac.authorization.k8s.io", "v1", "RoleBinding"),
    ("", "v1", "Event"),
];

/// The running watches.
pub(super) struct Observer {
    client: Client,
    /// `None` watches all namespaces.
    namespace: Option<String>,
    events: EventSink,
    /// Changes when the API server answers again.
    awake: watch::Receiver<u64>,
    running: BTreeMap<Gvk, CancellationToken>,
    tasks: TaskTracker,
    shutdown: CancellationToken,
}

impl Observer {
    pub(super) fn new(
        client: Client,
        namespace: Option<String>,
        events: EventSink,
        awake: watch::Receiver<u64>,
        shutdown: CancellationToken,
    ) -> Self {
        let tasks = TaskTracker::new();
        Observer { client, namespace, events, awake, running: BTreeMap::new(), tasks, shutdown }
    }

    /// Watches these custom resources and everything they are commonly made of; ends the watches of others.
    pub(super) fn watch(&mut self, kinds: &[Gvk]) {
        let owned = OWNED.iter().map(|(group, version, kind)| Gvk::new(*group, *version, *kind));
        let wanted: BTreeSet<Gvk> = kinds.iter().cloned().chain(owned).collect();
        self.running.retain(|gvk, token| {
            let keep = wanted.contains(gvk);
            if !keep {
                token.cancel();
            }
            keep
        });
        for gvk in wanted {
            if !self.running.contains_key(&gvk) {
                let token = self.shutdown.child_token();
                self.tasks.spawn(observe(
                    self.client.clone(),
                    gvk.clone(),
                    self.namespace.clone(),
                    self.events.clone(),
                    self.awake.clone(),
                    token.clone(),
                ));
                self.running.insert(gvk, token);
            }
        }
    }
}

async fn observe(
    client: Client,
    gvk: Gvk,
    namespace: Option<String>,
    events: EventSink,
    mut awake: watch::Receiver<u64>,
    token: CancellationToken,
) {
    // Outlives each watch, so that what went while nobody watched is told, too.
    let mut known: BTreeSet<ObjectIdentity> = BTreeSet::new();
    let run = async {
        loop {
            awake.borrow_and_update();
            match super::requests::resource_of(&client, &gvk).await {
                Ok((resource, namespaced)) => {
                    let api: Api<DynamicObject> = match &namespace {
                        Some(namespace) if namespaced => {
                            Api::namespaced_with(client.clone(), namespace, &resource)
                        }
                        _ => Api::all_with(client.clone(), &resource),
                    };
                    tokio::select! {
                        () = follow(api, &gvk, &events, &mut known) => {}
                        // What waits out a long pause need not.
                        Ok(()) = awake.changed() => continue,
                    }
                }
                Err(error) => tracing::debug!(kind = %gvk.kind, "not watched: {error:#}"),
            }
            // The watch ended for good (forbidden, or the kind is not served): look again in a while.
            let pause = tokio::time::sleep(std::time::Duration::from_secs(5));
            tokio::select! {
                () = pause => {}
                Ok(()) = awake.changed() => {}
            }
        }
    };
    tokio::select! {
        () = token.cancelled() => {}
        () = run => {}
    }
    // The kind is shown no longer.
    for gone in &known {
        events
            .emit(Event::ObjectGone(ObjectGone { at: Timestamp::now(), object_ref: gone.reference(&gvk) }))
            .await;
    }
}

/// Follows one kind until the API server refuses it.
async fn follow(
    api: Api<DynamicObject>,
    gvk: &Gvk,
    events: &EventSink,
    known: &mut BTreeSet<ObjectIdentity>,
) {
    let stream = watcher(api, watcher::Config::default()).default_backoff();
    pin_mut!(stream);
    let mut fresh: BTreeSet<ObjectIdentity> = BTreeSet::new();
    let mut refused = 0;
    loop {
        match stream.next().await {
            Some(Ok(event)) => {
                refused = 0;
                match event {
                    watcher::Event::Init => fresh.clear(),
                    watcher::Event::InitApply(object) => {
                        fresh.insert(identity(&object));
                        seen(object, gvk, events).await;
                    }
                    watcher::Event::InitDone => {
                        for gone in known.difference(&fresh) {
                            events
                                .emit(Event::ObjectGone(ObjectGone {
                                    at: Timestamp::now(),
                                    object_ref: gone.reference(gvk),
                                }))
                                .await;
                        }
                        *known = std::mem::take(&mut fresh);
                    }
                    watcher::Event::Apply(object) => {
                        known.insert(identity(&object));
                        seen(object, gvk, events).await;
                    }
                    watcher::Event::Delete(object) => {
                        let identity = identity(&object);
                        events
                            .emit(Event::ObjectGone(ObjectGone {
                                at: Timestamp::now(),
                                object_ref: identity.reference(gvk),
                            }))
                            .await;
                        known.remove(&identity);
                    }
                }
            }
            Some(Err(error)) => {
                refused += 1;
                tracing::debug!(kind = %gvk.kind, "watch: {error}");
                if refused > 3 {
                    return;
                }
            }
            None => return,
        }
    }
}

#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
struct ObjectIdentity {
    namespace: Option<String>,
    name: String,
    uid: Option<String>,
}

impl ObjectIdentity {
    fn reference(&self, gvk: &Gvk) -> ObjectRef {
        ObjectRef {
            gvk: gvk.clone(),
            namespace: self.namespace.clone(),
            name: self.name.clone(),
            uid: self.uid.clone(),
        }
    }
}

fn identity(object: &DynamicObject) -> ObjectIdentity {
    ObjectIdentity {
        namespace: object.metadata.namespace.clone(),
        name: object.metadata.name.clone().unwrap_or_default(),
        uid: object.metadata.uid.clone(),
    }
}

async fn seen(object: DynamicObject, gvk: &Gvk, events: &EventSink) {
    let object_ref = identity(&object).reference(gvk);
    let Ok(mut value) = serde_json::to_value(&object) else { return };
    // Items of a list carry neither.
    value["apiVersion"] = gvk.api_version().into();
    value["kind"] = gvk.kind.as_str().into();
    let object = Arc::new(mask::object(&value));
    events.emit(Event::ObjectSeen(ObjectSeen { at: Timestamp::now(), object_ref, object })).await;
}
