//! What holds the records of a release: Secrets as Helm writes them, ConfigMaps, or this process. Decides nothing about
//! revisions; read `release`.

use crate::operator::api::{Api, At};
use crate::operator::discovery::Resource;
use crate::sources::chart_options::Storage;
use anyhow::Context;
use opdev_helm::release::{self, Release};
use opdev_object::meta::{self, Gvk};
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

/// Records that this process holds, by namespace and name.
pub(super) type Kept = Arc<Mutex<BTreeMap<(String, String), Value>>>;

/// The records in one namespace.
#[derive(Clone)]
pub(super) struct Records {
    namespace: String,
    holder: Holder,
}

#[derive(Clone)]
enum Holder {
    Secrets(Arc<Resource>),
    ConfigMaps(Arc<Resource>),
    Memory(Kept),
}

impl Records {
    /// Where records of a kind of storage are.
    pub(super) async fn of(
        api: &Api,
        namespace: &str,
        storage: Storage,
        kept: &Kept,
    ) -> anyhow::Result<Records> {
        let resource = async |kind: &str| api.resource(&Gvk::new("", "v1", kind)).await;
        let holder = match storage {
            Storage::Secret => Holder::Secrets(resource("Secret").await?),
            Storage::ConfigMap => Holder::ConfigMaps(resource("ConfigMap").await?),
            Storage::Memory => Holder::Memory(Arc::clone(kept)),
        };
        Ok(Records { namespace: namespace.to_owned(), holder })
    }

    /// The same kind of storage in another namespace.
    pub(super) fn elsewhere(&self, namespace: &str) -> Records {
        Records { namespace: namespace.to_owned(), holder: self.holder.clone() }
    }

    /// The namespace of the records.
    pub(super) fn namespace(&self) -> &str {
        &self.namespace
    }

    /// The record of a revision, not yet stored.
    pub(super) fn record(&self, release: &Release, stamp: &str) -> Value {
        let stamp = (stamp, jiff::Timestamp::now());
        let mut record = match &self.holder {
            Holder::Secrets(_) | Holder::Memory(_) => release::secret(release, stamp),
            Holder::ConfigMaps(_) => release::config_map(release, stamp),
        };
        record["metadata"]["namespace"] = Value::from(self.namespace.as_str());
        record
    }

    /// The records of a release.
    pub(super) async fn list(&self, api: &Api, name: &str) -> anyhow::Result<Vec<Value>> {
        let api = api.as_operator();
        match &self.holder {
            Holder::Secrets(resource) | Holder::ConfigMaps(resource) => {
                Ok(api.list(resource, Some(&self.namespace), &format!("name={name},owner=helm")).await?)
            }
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
    pub(super) async fn create(&self, api: &Api, record: Value) -> anyhow::Result<Value> {
        let api = api.as_operator();
        match &self.holder {
            Holder::Secrets(resource) | Holder::ConfigMaps(resource) => {
                let created = api.create(resource, Some(&self.namespace), &record).await;
                created.context("create: failed to create")
            }
            Holder::Memory(kept) => {
                put(kept, &record);
                Ok(record)
            }
        }
    }

    /// Writes a record anew.
    pub(super) async fn update(&self, api: &Api, record: Value) -> anyhow::Result<()> {
        let api = api.as_operator();
        match &self.holder {
            Holder::Secrets(resource) | Holder::ConfigMaps(resource) => {
                let name = meta::name(&record).unwrap_or_default().to_owned();
                let at = At { resource, namespace: Some(&self.namespace), name: &name };
                api.update(&at, "", &record).await.context("update: failed to update")?;
            }
            Holder::Memory(kept) => put(kept, &record),
        }
        Ok(())
    }

    /// Deletes a record.
    pub(super) async fn delete(&self, api: &Api, record: &Value) -> anyhow::Result<()> {
        let api = api.as_operator();
        let name = meta::name(record).unwrap_or_default();
        match &self.holder {
            Holder::Secrets(resource) | Holder::ConfigMaps(resource) => {
                let at = At { resource, namespace: Some(&self.namespace), name };
                let deleted = api.delete(&at, meta::uid(record)).await;
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

fn put(kept: &Kept, record: &Value) {
    let text = |text: Option<&str>| text.unwrap_or_default().to_owned();
    let key = (text(meta::namespace(record)), text(meta::name(record)));
    kept.lock().unwrap_or_else(PoisonError::into_inner).insert(key, record.clone());
}

/// Whether an object is the record of a release.
pub(super) fn is_record(object: &Value) -> bool {
    let secret =
        object.get("type").and_then(Value::as_str).is_some_and(|kind| kind.starts_with("helm.sh/release"));
    let named = || meta::name(object).is_some_and(|name| name.starts_with("sh.helm.release."));
    secret || (meta::label(object, "owner") == Some("helm") && named())
}
