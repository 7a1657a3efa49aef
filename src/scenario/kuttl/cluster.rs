//! Requests of a test to the API server: create or patch, delete, look, and hear of changes.

use super::expressions::Expressions;
use super::files::{Deletion, Manifest};
use super::subset::differences;
use crate::shared_cluster::inside;
use anyhow::{Context as _, Result};
use futures::stream::{self, BoxStream, StreamExt as _};
use kube::Client;
use kube::api::{Api, DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams, WatchParams};
use kube::core::ApiResource;
use opdev_client::{ApiError, resource_of, without_secrets};
use opdev_object::meta::{self, Gvk, ObjectRef};
use serde_json::{Value, json};

/// The control plane of one test, and the namespace for objects that name none.
pub(super) struct Cluster {
    pub(super) client: Client,
    pub(super) namespace: String,
    /// True if nothing is written outside of that namespace.
    pub(super) only_inside: bool,
}

/// The API of one kind, and whether its objects have namespaces.
struct Kind {
    resource: ApiResource,
    namespaced: bool,
}

impl Cluster {
    async fn kind(&self, gvk: &Gvk) -> Result<Kind> {
        let (resource, namespaced) = resource_of(&self.client, gvk).await?;
        Ok(Kind { resource, namespaced })
    }

    fn api(&self, kind: &Kind, namespace: Option<&str>) -> Api<DynamicObject> {
        match kind.namespaced {
            true => Api::namespaced_with(
                self.client.clone(),
                namespace.filter(|one| !one.is_empty()).unwrap_or(&self.namespace),
                &kind.resource,
            ),
            false => Api::all_with(self.client.clone(), &kind.resource),
        }
    }

    /// The namespace of the test.
    ///
    /// # Errors
    /// Where it cannot be made.
    pub(super) async fn make_namespace(&self) -> Result<()> {
        let object = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": self.namespace}});
        self.apply(&Manifest { place: "its namespace".to_owned(), object }).await
    }

    /// Creates an object, or patches the one that is there. A definition is established before this returns.
    ///
    /// # Errors
    /// The refusal, with the place of the object.
    pub(super) async fn apply(&self, manifest: &Manifest) -> Result<()> {
        let object = &manifest.object;
        let place = || manifest.place.clone();
        let gvk = Gvk::of(object).with_context(place)?;
        let kind = self.kind(&gvk).await.with_context(place)?;
        if self.only_inside {
            if self.serves(object).await {
                return Ok(());
            }
            let text = |found: Option<&str>| found.map(str::to_owned);
            let named = ObjectRef {
                gvk: gvk.clone(),
                namespace: text(meta::namespace(object)),
                name: text(meta::name(object)).unwrap_or_default(),
                uid: None,
            };
            inside(&self.namespace, &named, kind.namespaced).with_context(place)?;
        }
        let api = self.api(&kind, object.pointer("/metadata/namespace").and_then(Value::as_str));
        let data: DynamicObject = serde_json::from_value(object.clone()).with_context(place)?;
        let name = data.metadata.name.clone().unwrap_or_default();
        // A refusal repeats values of the object.
        let hidden = |error: kube::Error| without_secrets(ApiError::from(error).into(), object);
        let patch = async || api.patch(&name, &PatchParams::default(), &Patch::Merge(object)).await;
        // A step that changes an object has only what it changes: to create that would be refused, and for
        // another reason.
        let is_there = !name.is_empty()
            && api.get_metadata_opt(&name).await.map_err(hidden).with_context(place)?.is_some();
        let applied = match is_there {
            true => patch().await,
            false => match api.create(&PostParams::default(), &data).await {
                Err(kube::Error::Api(status)) if status.code == 409 => patch().await,
                created => created,
            },
        };
        applied.map_err(hidden).with_context(place)?;
        if gvk.group == "apiextensions.k8s.io" {
            let ready = kube::runtime::wait::await_condition(api, &name, is_established);
            ready.await.with_context(place)?;
        }
        Ok(())
    }

    /// Returns true if an object is the definition of a kind that is served already, such as one that the
    /// operator has brought along.
    async fn serves(&self, object: &Value) -> bool {
        let text = |at: &str| object.pointer(at).and_then(Value::as_str).unwrap_or_default();
        if text("/kind") != "CustomResourceDefinition" {
            return false;
        }
        let gvk = Gvk::new(text("/spec/group"), text("/spec/versions/0/name"), text("/spec/names/kind"));
        self.kind(&gvk).await.is_ok()
    }

    /// Deletes what a step names, and waits until it has gone.
    ///
    /// # Errors
    /// Where the kind is not served, or the API server refuses.
    pub(super) async fn delete(&self, wanted: &Deletion) -> Result<()> {
        let gvk = Gvk::from_api_version(&wanted.api_version, &wanted.kind);
        let kind = self.kind(&gvk).await?;
        if self.only_inside {
            let namespace = Some(wanted.namespace.clone()).filter(|named| !named.is_empty());
            let named = ObjectRef { gvk, namespace, name: wanted.name.clone(), uid: None };
            inside(&self.namespace, &named, kind.namespaced)?;
        }
        let api = self.api(&kind, Some(&wanted.namespace));
        let names: Vec<String> = match wanted.name.as_str() {
            "" => {
                let pairs: Vec<String> =
                    wanted.labels.iter().map(|(key, value)| format!("{key}={value}")).collect();
                let list = api.list_metadata(&ListParams::default().labels(&pairs.join(","))).await?;
                list.items.into_iter().filter_map(|object| object.metadata.name).collect()
            }
            name => vec![name.to_owned()],
        };
        for name in names {
            let Some(there) = api.get_opt(&name).await? else { continue };
            let uid = there.metadata.uid.unwrap_or_default();
            match api.delete(&name, &DeleteParams::background()).await {
                Err(kube::Error::Api(status)) if status.code == 404 => continue,
                deleted => drop(deleted?),
            }
            let gone = kube::runtime::conditions::is_deleted(&uid);
            kube::runtime::wait::await_condition(api.clone(), &name, gone).await?;
        }
        Ok(())
    }

    /// The objects that an assert may be about.
    async fn candidates(&self, object: &Value) -> Result<Vec<Value>> {
        let gvk = Gvk::of(object).context("apiVersion or kind is missing")?;
        let kind = self.kind(&gvk).await?;
        let api = self.api(&kind, object.pointer("/metadata/namespace").and_then(Value::as_str));
        let found = match object.pointer("/metadata/name").and_then(Value::as_str) {
            Some(name) => api.get_opt(name).await?.into_iter().collect(),
            None => {
                let labels = object.pointer("/metadata/labels").and_then(Value::as_object);
                let pairs: Vec<String> = labels
                    .into_iter()
                    .flatten()
                    .map(|(key, value)| format!("{key}={}", value.as_str().unwrap_or_default()))
                    .collect();
                api.list(&ListParams::default().labels(&pairs.join(","))).await?.items
            }
        };
        found
            .into_iter()
            .map(|mut one| {
                // Items of a list do not say what they are.
                one.types =
                    Some(kube::core::TypeMeta { api_version: gvk.api_version(), kind: gvk.kind.clone() });
                Ok(serde_json::to_value(one)?)
            })
            .collect()
    }

    /// The differences to an assert; empty where it is met.
    pub(super) async fn lacks(&self, manifest: &Manifest) -> Vec<String> {
        let there = match self.candidates(&manifest.object).await {
            Ok(there) => there,
            Err(error) => return vec![format!("{}: {error:#}", manifest.place)],
        };
        let secret = is_secret(&manifest.object);
        let differing = there.iter().map(|actual| (actual, differences(&manifest.object, actual, secret)));
        let mut nearest: Option<(&Value, Vec<String>)> = None;
        for (actual, differing) in differing {
            if differing.is_empty() {
                return Vec::new();
            }
            if nearest.as_ref().is_none_or(|(_, least)| differing.len() < least.len()) {
                nearest = Some((actual, differing));
            }
        }
        match nearest {
            None => vec![format!("{}: {} is not there", manifest.place, told(&manifest.object))],
            Some((actual, differing)) => {
                let about = told(actual);
                differing.iter().map(|line| format!("{}: {about} {line}", manifest.place)).collect()
            }
        }
    }

    /// The expressions of a `TestAssert` that are not met; empty where all are.
    pub(super) async fn expressed(&self, expressions: &Expressions) -> Vec<String> {
        let (mut found, mut wrong) = (Vec::new(), Vec::new());
        for named in &expressions.objects {
            let Manifest { place, object } = &named.wanted;
            match self.candidates(object).await.map(|mut there| there.pop()) {
                Ok(Some(there)) => found.push(there),
                Ok(None) => wrong.push(format!("{place}: {} is not there", told(object))),
                Err(error) => wrong.push(format!("{place}: {error:#}")),
            }
        }
        if wrong.is_empty() { expressions.wrong(&found) } else { wrong }
    }

    /// The object that matches what must not be there.
    pub(super) async fn matches(&self, manifest: &Manifest) -> Option<String> {
        // A kind that is not served has no objects.
        let there = match self.candidates(&manifest.object).await {
            Ok(there) => there,
            Err(error) if matches!(ApiError::of(&error), Some(ApiError::NotServed(_))) => return None,
            Err(error) => return Some(format!("{}: {error:#}", manifest.place)),
        };
        let found = there.iter().find(|actual| differences(&manifest.object, actual, false).is_empty())?;
        Some(format!("{}: {} is there, and must not be", manifest.place, told(found)))
    }

    /// Changes of objects of the kinds of these manifests; never ends. Kinds that are not served yet are left
    /// out, and the answer says whether there are any.
    pub(super) async fn changes(&self, manifests: &[&Manifest]) -> (BoxStream<'static, ()>, bool) {
        let mut streams: Vec<BoxStream<'static, ()>> = vec![stream::pending().boxed()];
        let mut missing = false;
        let mut known: Vec<Gvk> = Vec::new();
        for gvk in manifests.iter().filter_map(|manifest| Gvk::of(&manifest.object)) {
            if known.contains(&gvk) {
                continue;
            }
            known.push(gvk.clone());
            let Ok(kind) = self.kind(&gvk).await else {
                missing = true;
                continue;
            };
            let api: Api<DynamicObject> = Api::all_with(self.client.clone(), &kind.resource);
            match api.watch_metadata(&WatchParams::default(), "0").await {
                Ok(events) => streams.push(events.map(drop).boxed()),
                Err(_) => missing = true,
            }
        }
        (stream::select_all(streams).boxed(), missing)
    }
}

fn is_secret(object: &Value) -> bool {
    Gvk::of(object).is_some_and(|gvk| gvk.group.is_empty() && gvk.kind == "Secret")
}

fn told(object: &Value) -> String {
    let text = |at: &str| object.pointer(at).and_then(Value::as_str).unwrap_or_default();
    format!("{} {}", text("/kind"), text("/metadata/name")).trim_end().to_owned()
}

fn is_established(object: Option<&DynamicObject>) -> bool {
    let conditions = object.and_then(|object| object.data.pointer("/status/conditions")?.as_array());
    conditions
        .is_some_and(|all| all.iter().any(|one| one["type"] == "Established" && one["status"] == "True"))
}
