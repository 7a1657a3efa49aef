//! Follows the objects of one kind, whole or by their metadata. Where it is the metadata, one object after the other is
//! read whole: the one that somebody looks at, again with each change, and those that come up below a custom resource
//! of the project, for what a reconcile has created is shown with it. Release records are not: all in them is masked.
//! All of a kind is told by one task, so that an object read whole never comes before an older state of it.

use super::{Attention, Watched};
use crate::event::{Body, Event, Level, Notice, ObjectGone, ObjectSeen, mask};
use crate::tap::EventSink;
use futures::{StreamExt as _, pin_mut};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::api::ApiResource;
use kube::core::DynamicResourceScope;
use kube::runtime::{WatchStreamExt as _, watcher};
use kube::{Api, Client, Resource};
use opdev_object::meta::{self, Gvk, ObjectRef};
use serde::{Deserialize, Deserializer};
use serde_json::Value;
use std::borrow::Cow;
use std::collections::BTreeSet;

/// An object as it came; with `METADATA` nothing but that is asked for. What kube needs of it stands beside: reading
/// all of its metadata into a type, and back, costs more than the object itself.
#[derive(Clone, Debug)]
pub(super) struct Came<const METADATA: bool> {
    metadata: ObjectMeta,
    value: Value,
}

impl<'de, const METADATA: bool> Deserialize<'de> for Came<METADATA> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = Value::deserialize(deserializer)?;
        let text = |field: fn(&Value) -> Option<&str>| field(&value).map(str::to_owned);
        let metadata = ObjectMeta {
            name: text(meta::name),
            namespace: text(meta::namespace),
            uid: text(meta::uid),
            resource_version: text(meta::resource_version),
            ..ObjectMeta::default()
        };
        Ok(Came { metadata, value })
    }
}

impl<const METADATA: bool> Resource for Came<METADATA> {
    type DynamicType = ApiResource;
    type Scope = DynamicResourceScope;

    fn metadata_api() -> bool {
        METADATA
    }

    fn kind(kind: &ApiResource) -> Cow<'_, str> {
        kind.kind.as_str().into()
    }

    fn group(kind: &ApiResource) -> Cow<'_, str> {
        kind.group.as_str().into()
    }

    fn version(kind: &ApiResource) -> Cow<'_, str> {
        kind.version.as_str().into()
    }

    fn api_version(kind: &ApiResource) -> Cow<'_, str> {
        kind.api_version.as_str().into()
    }

    fn plural(kind: &ApiResource) -> Cow<'_, str> {
        kind.plural.as_str().into()
    }

    fn meta(&self) -> &ObjectMeta {
        &self.metadata
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.metadata
    }
}

/// One kind on its way to the state.
pub(super) struct Kind {
    pub(super) client: Client,
    pub(super) resource: ApiResource,
    pub(super) namespaced: bool,
    /// The only namespace, where it is not all of them.
    pub(super) namespace: Option<String>,
    pub(super) gvk: Gvk,
    pub(super) events: EventSink,
    pub(super) attention: Attention,
}

impl Kind {
    /// Follows the kind until the API server refuses it. `known` outlives each watch, so that what went while nobody
    /// watched is told, too.
    pub(super) async fn follow<const METADATA: bool>(&mut self, known: &mut BTreeSet<Watched>) {
        let api: Api<Came<METADATA>> = self.api(self.namespace.as_deref());
        let stream = watcher(api, watcher::Config::default()).default_backoff();
        pin_mut!(stream);
        let mut fresh: BTreeSet<Watched> = BTreeSet::new();
        let mut refused = 0;
        loop {
            let event = tokio::select! {
                event = stream.next() => event,
                Ok(()) = self.attention.looked_at.changed(), if METADATA => {
                    self.look(known.union(&fresh)).await;
                    continue;
                }
            };
            match event {
                Some(Ok(event)) => {
                    refused = 0;
                    self.take(event, known, &mut fresh).await;
                }
                Some(Err(error)) => {
                    refused += 1;
                    tracing::debug!(kind = %self.gvk.kind, "watch: {error}");
                    if refused > 3 {
                        return;
                    }
                }
                None => return,
            }
        }
    }

    async fn take<const METADATA: bool>(
        &mut self,
        event: watcher::Event<Came<METADATA>>,
        known: &mut BTreeSet<Watched>,
        fresh: &mut BTreeSet<Watched>,
    ) {
        match event {
            watcher::Event::Init => fresh.clear(),
            watcher::Event::InitApply(object) => {
                let watched = Watched::of(&object.metadata);
                let wanted = METADATA && self.is_looked_at(&watched);
                fresh.insert(watched);
                self.seen(object, wanted).await;
            }
            watcher::Event::InitDone => {
                for gone in known.difference(fresh) {
                    self.gone(gone).await;
                }
                *known = std::mem::take(fresh);
            }
            watcher::Event::Apply(object) => {
                let watched = Watched::of(&object.metadata);
                let looked_at = METADATA && self.is_looked_at(&watched);
                let new = known.insert(watched);
                let wanted = looked_at || METADATA && new && self.is_made_for_us(&object.value);
                self.seen(object, wanted).await;
            }
            watcher::Event::Delete(object) => {
                let watched = Watched::of(&object.metadata);
                self.gone(&watched).await;
                known.remove(&watched);
            }
        }
    }

    fn api<const METADATA: bool>(&self, namespace: Option<&str>) -> Api<Came<METADATA>> {
        match namespace.filter(|_| self.namespaced) {
            Some(namespace) => Api::namespaced_with(self.client.clone(), namespace, &self.resource),
            None => Api::all_with(self.client.clone(), &self.resource),
        }
    }

    fn is_looked_at(&self, watched: &Watched) -> bool {
        let looked_at = self.attention.looked_at.borrow();
        looked_at.as_ref().is_some_and(|object| {
            object.gvk.kind == self.gvk.kind
                && object.gvk.group == self.gvk.group
                && object.namespace == watched.namespace
                && object.name == watched.name
        })
    }

    /// Whether an object belongs to a custom resource of the project, and says more than its metadata does.
    fn is_made_for_us(&self, object: &Value) -> bool {
        let kinds = self.attention.kinds.borrow();
        let ours = |owner: &meta::OwnerReference| {
            let owner = Gvk::from_api_version(&owner.api_version, &owner.kind);
            kinds.iter().any(|gvk| gvk.kind == owner.kind && gvk.group == owner.group)
        };
        let record = self.gvk.kind == "Secret" && meta::label(object, "owner") == Some("helm");
        !record && meta::owner_references(object).iter().any(ours)
    }

    /// Reads the object that somebody looks at now, where it is one of these.
    async fn look(&mut self, known: impl Iterator<Item = &Watched>) {
        self.attention.looked_at.borrow_and_update();
        let mut known = known;
        let Some(watched) = known.find(|watched| self.is_looked_at(watched)) else { return };
        if let Some(whole) = self.whole(watched.namespace.as_deref(), &watched.name).await {
            self.tell(whole, false).await;
        }
    }

    /// Tells of an object; whole where that is wanted and it can be read.
    async fn seen<const METADATA: bool>(&mut self, object: Came<METADATA>, wanted: bool) {
        let Came { metadata, value } = object;
        if wanted
            && let Some(name) = &metadata.name
            && let Some(whole) = self.whole(metadata.namespace.as_deref(), name).await
        {
            return self.tell(whole, false).await;
        }
        self.tell(value, METADATA).await;
    }

    /// The whole of one object; nothing where it is gone, or may not be read, which is told.
    async fn whole(&mut self, namespace: Option<&str>, name: &str) -> Option<Value> {
        let api: Api<Came<false>> = self.api(namespace);
        let error = match api.get_opt(name).await {
            Ok(found) => return found.map(|object| object.value),
            Err(error) => error,
        };
        let kind = &self.gvk.kind;
        let why = match &error {
            kube::Error::Api(status) => status.message.clone(),
            other => other.to_string(),
        };
        let message = format!("only the metadata of {kind} {name} is known: {why}");
        let hint =
            Some(format!("showing the whole of it needs the right to get a {kind}, not only to list them"));
        let notice = Notice { at: Timestamp::now(), level: Level::Warn, message, hint, object: None };
        self.events.emit(Event::Noticed(notice)).await;
        None
    }

    async fn tell(&self, mut object: Value, metadata_only: bool) {
        // Items of a list carry neither, and metadata calls itself PartialObjectMetadata.
        object["apiVersion"] = self.gvk.api_version().into();
        object["kind"] = self.gvk.kind.as_str().into();
        let object_ref = ObjectRef {
            gvk: self.gvk.clone(),
            namespace: meta::namespace(&object).map(str::to_owned),
            name: meta::name(&object).unwrap_or_default().to_owned(),
            uid: meta::uid(&object).map(str::to_owned),
        };
        mask::in_place(&mut object);
        // The text waits for the state, not the value, which takes ten times the room.
        let object = Body::new(&object);
        let seen = ObjectSeen { at: Timestamp::now(), object_ref, metadata_only, object };
        self.events.emit(Event::ObjectSeen(seen)).await;
    }

    async fn gone(&self, gone: &Watched) {
        self::gone(&self.events, gone.reference(&self.gvk)).await;
    }
}

/// Tells that an object is gone.
pub(super) async fn gone(events: &EventSink, object_ref: ObjectRef) {
    events.emit(Event::ObjectGone(ObjectGone { at: Timestamp::now(), object_ref })).await;
}
