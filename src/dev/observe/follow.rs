//! Follows the objects of one kind, whole or by their metadata. Where it is the metadata, one object after the other is
//! read whole: the one that somebody looks at, again with each change, and those that come up below a custom resource
//! of the project, for what a reconcile has created is shown with it. Release records are not: all in them is masked.
//! All of a kind is told by one task, so that an object read whole never comes before an older state of it.

use super::{Attention, Watched};
use crate::event::{Body, Event, Level, Notice, ObjectGone, ObjectSeen, mask};
use crate::operator::watching::{describe, is_forbidden};
use crate::tap::EventSink;
use futures::{StreamExt as _, pin_mut};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::api::ApiResource;
use kube::core::DynamicResourceScope;
use kube::runtime::{WatchStreamExt as _, watcher};
use kube::{Api, Client, Resource};
use opdev_object::meta::{self, Gvk, ObjectRef, OwnerReference};
use serde::{Deserialize, Deserializer};
use serde_json::Value;
use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fmt::Debug;
use std::marker::PhantomData;

/// What objects are asked for as.
pub(super) trait Form: Clone + Debug + Send + Sync + 'static {
    /// Whether nothing but metadata is asked for.
    const METADATA: bool = false;
    /// The kind that masking has to know of; items of lists do not say it themselves.
    const KIND: Option<&'static str> = None;
}

/// Whole objects.
#[derive(Clone, Debug)]
pub(super) struct Objects;
/// Whole Secrets.
#[derive(Clone, Debug)]
pub(super) struct Secrets;
/// Whole ConfigMaps.
#[derive(Clone, Debug)]
pub(super) struct ConfigMaps;
/// `PartialObjectMetadata`.
#[derive(Clone, Debug)]
pub(super) struct Metadata;

impl Form for Objects {}

impl Form for Secrets {
    const KIND: Option<&'static str> = Some("Secret");
}

impl Form for ConfigMaps {
    const KIND: Option<&'static str> = Some("ConfigMap");
}

impl Form for Metadata {
    const METADATA: bool = true;
}

/// An object as it came, masked, as text: a page of values would take ten times the room. What is needed of it before it
/// is told stands beside; reading all of its metadata into a type, and back, costs more than the object itself.
#[derive(Clone, Debug)]
pub(super) struct Came<F> {
    metadata: ObjectMeta,
    /// Without its kind.
    body: Body,
    /// Of metadata: what it belongs to.
    owners: Vec<OwnerReference>,
    /// Whether it is Helm's record of a release.
    record: bool,
    form: PhantomData<F>,
}

impl<'de, F: Form> Deserialize<'de> for Came<F> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut value = Value::deserialize(deserializer)?;
        let text = |field: fn(&Value) -> Option<&str>| field(&value).map(str::to_owned);
        let metadata = ObjectMeta {
            name: text(meta::name),
            namespace: text(meta::namespace),
            uid: text(meta::uid),
            resource_version: text(meta::resource_version),
            ..ObjectMeta::default()
        };
        let owners = if F::METADATA { meta::owner_references(&value) } else { Vec::new() };
        let record = meta::label(&value, "owner") == Some("helm");
        if let Some(kind) = F::KIND {
            value["kind"] = kind.into();
        }
        mask::in_place(&mut value);
        if let Some(fields) = value.as_object_mut() {
            // What calls itself PartialObjectMetadata is none to whoever sees it.
            fields.retain(|name, _| name != "apiVersion" && name != "kind");
        }
        Ok(Came { metadata, body: Body::new(&value), owners, record, form: PhantomData })
    }
}

impl<F: Form> Resource for Came<F> {
    type DynamicType = ApiResource;
    type Scope = DynamicResourceScope;

    fn metadata_api() -> bool {
        F::METADATA
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
    ///
    /// # Errors
    /// The API server's words where the user may not watch the kind.
    pub(super) async fn follow<F: Form>(&mut self, known: &mut BTreeSet<Watched>) -> Result<(), String> {
        let api: Api<Came<F>> = self.api(self.namespace.as_deref());
        let stream = watcher(api, watcher::Config::default()).default_backoff();
        pin_mut!(stream);
        let mut fresh: BTreeSet<Watched> = BTreeSet::new();
        let mut refused = 0;
        loop {
            let event = tokio::select! {
                event = stream.next() => event,
                Ok(()) = self.attention.looked_at.changed(), if F::METADATA => {
                    self.look(known.union(&fresh)).await;
                    continue;
                }
            };
            match event {
                Some(Ok(event)) => {
                    refused = 0;
                    self.take(event, known, &mut fresh).await;
                }
                // Asking again at once would be refused again.
                Some(Err(error)) if is_forbidden(&error) => return Err(describe(&error)),
                Some(Err(error)) => {
                    refused += 1;
                    tracing::debug!(kind = %self.gvk.kind, "watch: {error}");
                    if refused > 3 {
                        return Ok(());
                    }
                }
                None => return Ok(()),
            }
        }
    }

    async fn take<F: Form>(
        &mut self,
        event: watcher::Event<Came<F>>,
        known: &mut BTreeSet<Watched>,
        fresh: &mut BTreeSet<Watched>,
    ) {
        match event {
            watcher::Event::Init => fresh.clear(),
            watcher::Event::InitApply(object) => {
                let watched = Watched::of(&object.metadata);
                let wanted = F::METADATA && self.is_looked_at(&watched);
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
                let looked_at = F::METADATA && self.is_looked_at(&watched);
                let new = known.insert(watched);
                let wanted = looked_at || F::METADATA && new && self.is_made_for_us(&object);
                self.seen(object, wanted).await;
            }
            watcher::Event::Delete(object) => {
                let watched = Watched::of(&object.metadata);
                self.gone(&watched).await;
                known.remove(&watched);
            }
        }
    }

    fn api<F: Form>(&self, namespace: Option<&str>) -> Api<Came<F>> {
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
    fn is_made_for_us<F: Form>(&self, object: &Came<F>) -> bool {
        let kinds = self.attention.kinds.borrow();
        let ours = |owner: &OwnerReference| {
            let owner = Gvk::from_api_version(&owner.api_version, &owner.kind);
            kinds.iter().any(|gvk| gvk.kind == owner.kind && gvk.group == owner.group)
        };
        let record = object.record && self.gvk.kind == "Secret";
        !record && object.owners.iter().any(ours)
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
    async fn seen<F: Form>(&mut self, object: Came<F>, wanted: bool) {
        let metadata = &object.metadata;
        if wanted
            && let Some(name) = &metadata.name
            && let Some(whole) = self.whole(metadata.namespace.as_deref(), name).await
        {
            return self.tell(whole, false).await;
        }
        self.tell((object.metadata, object.body), F::METADATA).await;
    }

    /// The whole of one object; nothing where it is gone, or may not be read, which is told.
    async fn whole(&mut self, namespace: Option<&str>, name: &str) -> Option<(ObjectMeta, Body)> {
        let found = match self.gvk.kind.as_str() {
            "Secret" => self.get::<Secrets>(namespace, name).await,
            "ConfigMap" => self.get::<ConfigMaps>(namespace, name).await,
            _ => self.get::<Objects>(namespace, name).await,
        };
        let error = match found {
            Ok(found) => return found,
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

    async fn get<F: Form>(
        &self,
        namespace: Option<&str>,
        name: &str,
    ) -> kube::Result<Option<(ObjectMeta, Body)>> {
        let found = self.api::<F>(namespace).get_opt(name).await?;
        Ok(found.map(|object| (object.metadata, object.body)))
    }

    async fn tell(&self, (metadata, body): (ObjectMeta, Body), metadata_only: bool) {
        let object_ref = Watched::of(&metadata).reference(&self.gvk);
        let object = body.with_kind(&self.gvk);
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
