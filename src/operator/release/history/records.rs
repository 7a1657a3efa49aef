//! The storage of the records of a release: Secrets as Helm writes them, ConfigMaps, several Secrets for
//! each, or this process. Decides nothing about revisions; read `history/mod.rs`.

use anyhow::{Context, anyhow};
use opdev_client::{Api, At, Resource};
use opdev_helm::release::chunked::{self, Chunking};
use opdev_helm::release::{self, Release};
use opdev_object::meta::{self, Gvk};
use opdev_sources::chart_options::Storage;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

/// Records that this process holds, by namespace and name.
pub type Kept = Arc<Mutex<BTreeMap<(String, String), Value>>>;

/// The records in one namespace.
#[derive(Clone)]
pub struct Records {
    namespace: String,
    holder: Holder,
}

#[derive(Clone)]
enum Holder {
    Secrets(Arc<Resource>),
    ConfigMaps(Arc<Resource>),
    Chunked(Chunks),
    Memory(Kept),
}

impl Records {
    /// Where records of a kind of storage are.
    pub async fn of(
        api: &Api,
        namespace: &str,
        (storage, how): (Storage, &Chunking),
        kept: &Kept,
    ) -> anyhow::Result<Records> {
        let resource = async |kind: &str| api.resource(&Gvk::new("", "v1", kind)).await;
        let holder = match storage {
            Storage::Secret => Holder::Secrets(resource("Secret").await?),
            Storage::ConfigMap => Holder::ConfigMaps(resource("ConfigMap").await?),
            Storage::Chunked => {
                let resource = resource("Secret").await?;
                Holder::Chunked(Chunks { resource, namespace: namespace.to_owned(), how: how.clone() })
            }
            Storage::Memory => Holder::Memory(Arc::clone(kept)),
        };
        Ok(Records { namespace: namespace.to_owned(), holder })
    }

    /// Records of this kind of storage in another namespace.
    pub(crate) fn elsewhere(&self, namespace: &str) -> Records {
        let holder = match self.holder.clone() {
            Holder::Chunked(chunks) => Holder::Chunked(Chunks { namespace: namespace.to_owned(), ..chunks }),
            other => other,
        };
        Records { namespace: namespace.to_owned(), holder }
    }

    /// The namespace of the records.
    pub(crate) fn namespace(&self) -> &str {
        &self.namespace
    }

    /// The record of a revision, not yet stored.
    pub(crate) fn record(&self, release: &Release, stamp: &str) -> Value {
        let stamp = (stamp, jiff::Timestamp::now());
        let mut record = match &self.holder {
            Holder::Secrets(_) | Holder::Memory(_) => release::secret(release, stamp),
            Holder::ConfigMaps(_) => release::config_map(release, stamp),
            Holder::Chunked(chunks) => chunked::record(release, stamp, &chunks.how.owner),
        };
        meta::put(&mut record, &["metadata", "namespace"], self.namespace.as_str());
        record
    }

    /// The records of a release.
    pub(crate) async fn list(&self, api: &Api, name: &str) -> anyhow::Result<Vec<Value>> {
        let api = api.as_operator();
        match &self.holder {
            Holder::Secrets(resource) | Holder::ConfigMaps(resource) => {
                let selector = format!("name={name},owner=helm");
                let mut found = api.list(resource, Some(&self.namespace), &selector).await?;
                found.retain(|record| !chunked::is_index(record));
                Ok(found)
            }
            Holder::Chunked(chunks) => chunks.list(&api, name).await,
            Holder::Memory(kept) => {
                let kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
                let of = |record: &&Value| {
                    meta::namespace(record) == Some(self.namespace.as_str())
                        && meta::label(record, "name") == Some(name)
                };
                Ok(kept.values().filter(of).cloned().collect())
            }
        }
    }

    /// Stores a new record.
    pub(crate) async fn create(&self, api: &Api, record: Value) -> anyhow::Result<Value> {
        let api = api.as_operator();
        match &self.holder {
            Holder::Secrets(resource) | Holder::ConfigMaps(resource) => {
                let created = api.create(resource, Some(&self.namespace), &record).await;
                created.context("create: failed to create")
            }
            Holder::Chunked(chunks) => chunks.create(&api, record).await,
            Holder::Memory(kept) => {
                put(kept, &record);
                Ok(record)
            }
        }
    }

    /// Writes a record anew; `before` is what it was.
    pub(crate) async fn update(
        &self,
        api: &Api,
        record: Value,
        before: Option<&Value>,
    ) -> anyhow::Result<()> {
        let api = api.as_operator();
        match &self.holder {
            Holder::Secrets(resource) | Holder::ConfigMaps(resource) => {
                let name = meta::name(&record).unwrap_or_default().to_owned();
                let at = At { resource, namespace: Some(&self.namespace), name: &name };
                api.update(&at, "", &record).await.context("update: failed to update")?;
            }
            Holder::Chunked(chunks) => chunks.update(&api, record, before).await?,
            Holder::Memory(kept) => put(kept, &record),
        }
        Ok(())
    }

    /// Deletes a record.
    pub(crate) async fn delete(&self, api: &Api, record: &Value) -> anyhow::Result<()> {
        let api = api.as_operator();
        let name = meta::name(record).unwrap_or_default();
        match &self.holder {
            Holder::Secrets(resource) | Holder::ConfigMaps(resource) => {
                let at = At { resource, namespace: Some(&self.namespace), name };
                let deleted = api.delete(&at, meta::uid(record)).await;
                deleted.with_context(|| format!("failed to delete stale release version: {name}"))?;
            }
            Holder::Chunked(chunks) => {
                let deleted = chunks.delete(&api, record).await;
                deleted.with_context(|| format!("failed to delete stale release version: {name}"))?;
            }
            Holder::Memory(kept) => {
                let key = (self.namespace.clone(), name.to_owned());
                kept.lock().unwrap_or_else(PoisonError::into_inner).remove(&key);
            }
        }
        Ok(())
    }
}

/// Records of several Secrets each, in one namespace. The index is written first and goes first, for it owns
/// the others; when a record is written anew, its new parts are there before the index names them.
#[derive(Clone)]
struct Chunks {
    resource: Arc<Resource>,
    namespace: String,
    how: Chunking,
}

impl Chunks {
    fn at<'a>(&'a self, secret: &'a Value) -> At<'a> {
        let name = meta::name(secret).unwrap_or_default();
        At { resource: &self.resource, namespace: Some(&self.namespace), name }
    }

    async fn list(&self, api: &Api, name: &str) -> anyhow::Result<Vec<Value>> {
        let owner = &self.how.owner;
        let selector = format!("name={name},owner={owner},type=index");
        let mut found = api.list(&self.resource, Some(&self.namespace), &selector).await?;
        let has_more = |index: &Value| chunked::further_names(index).is_ok_and(|names| !names.is_empty());
        let keys: Vec<&str> = found.iter().filter(|index| has_more(index)).filter_map(meta::name).collect();
        let parts = if keys.is_empty() { Vec::new() } else { self.parts(api, &keys).await? };
        let parts = parts.iter().filter_map(|part| Some((meta::name(part)?, part))).collect();
        found.iter_mut().for_each(|index| chunked::join(index, &parts, &self.how));
        Ok(found)
    }

    /// The further parts of some records.
    async fn parts(&self, api: &Api, keys: &[&str]) -> anyhow::Result<Vec<Value>> {
        let selector = format!("owner={},type=chunk,key in ({})", self.how.owner, keys.join(","));
        Ok(api.list(&self.resource, Some(&self.namespace), &selector).await?)
    }

    fn split(&self, record: &Value) -> anyhow::Result<(Value, Vec<Value>)> {
        let name = meta::label(record, "name").unwrap_or_default();
        chunked::split(record, &self.how)
            .map_err(|why| anyhow!(why).context(format!("failed to encode release {name:?}")))
    }

    async fn create(&self, api: &Api, record: Value) -> anyhow::Result<Value> {
        let (index, parts) = self.split(&record).context("create")?;
        let created = api.create(&self.resource, Some(&self.namespace), &index).await;
        let mut created = created.context("create: failed to create")?;
        for part in parts {
            if let Err(error) = self.put(api, part, &created).await {
                // Half a record is worse than none; what went wrong first is what counts.
                let _ = api.delete(&self.at(&created), meta::uid(&created)).await;
                return Err(error.context("create: failed to create"));
            }
        }
        meta::put(&mut created, &["data"], record["data"].clone());
        Ok(created)
    }

    /// Writes a part, which its index owns. One of the same name is what an index left behind that is gone.
    async fn put(&self, api: &Api, mut part: Value, index: &Value) -> anyhow::Result<()> {
        let owner = json!([{
            "apiVersion": "v1", "kind": "Secret", "name": meta::name(index), "uid": meta::uid(index),
            "controller": true, "blockOwnerDeletion": false,
        }]);
        meta::put(&mut part, &["metadata", "ownerReferences"], owner);
        let namespace = Some(self.namespace.as_str());
        match api.create(&self.resource, namespace, &part).await {
            Err(error) if error.already_exists() => {
                let there = api.get(&self.at(&part)).await?;
                let owner = there.as_ref().and_then(meta::controller).map(|controller| controller.uid);
                if owner.is_some() && owner.as_deref() == meta::uid(index) {
                    return Ok(());
                }
                if let Some(there) = &there {
                    api.delete(&self.at(&part), meta::uid(there)).await?;
                }
                api.create(&self.resource, namespace, &part).await?;
            }
            created => drop(created?),
        }
        Ok(())
    }

    async fn update(&self, api: &Api, mut record: Value, before: Option<&Value>) -> anyhow::Result<()> {
        let created = before.and_then(|before| before.pointer("/metadata/labels/createdAt"));
        let (mut index, parts) = self.split(&record).context("update")?;
        if let Some(created) = created {
            meta::put(&mut index, &["metadata", "labels", "createdAt"], created.clone());
        }
        meta::put(&mut record, &["metadata", "uid"], before.and_then(meta::uid));
        let names: Vec<String> = parts.iter().filter_map(meta::name).map(str::to_owned).collect();
        for part in parts {
            self.put(api, part, &record).await.context("update: failed to update")?;
        }
        api.update(&self.at(&index), "", &index).await.context("update: failed to update")?;
        let key = meta::name(&index).unwrap_or_default();
        for old in self.parts(api, &[key]).await? {
            if !names.iter().any(|name| Some(name.as_str()) == meta::name(&old)) {
                api.delete(&self.at(&old), meta::uid(&old)).await.context("update: failed to update")?;
            }
        }
        Ok(())
    }

    async fn delete(&self, api: &Api, index: &Value) -> anyhow::Result<()> {
        api.delete(&self.at(index), meta::uid(index)).await?;
        for part in self.parts(api, &[meta::name(index).unwrap_or_default()]).await? {
            api.delete(&self.at(&part), meta::uid(&part)).await?;
        }
        Ok(())
    }
}

fn put(kept: &Kept, record: &Value) {
    let text = |text: Option<&str>| text.unwrap_or_default().to_owned();
    let key = (text(meta::namespace(record)), text(meta::name(record)));
    kept.lock().unwrap_or_else(PoisonError::into_inner).insert(key, record.clone());
}

/// Returns true if an object is the record of a release.
pub fn is_record(object: &Value) -> bool {
    let secret = object.get("type").and_then(Value::as_str).is_some_and(|kind| {
        kind.starts_with("helm.sh/release") || kind == chunked::INDEX_TYPE || kind == chunked::CHUNK_TYPE
    });
    let named = || meta::name(object).is_some_and(|name| name.starts_with("sh.helm.release."));
    secret || (meta::label(object, "owner") == Some("helm") && named())
}
