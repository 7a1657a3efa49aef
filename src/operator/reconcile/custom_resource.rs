//! The custom resource of a reconcile as last read or written, and its finalizers. Never decides which it
//! needs.

use anyhow::{Context, anyhow};
use opdev_client::{Api, ApiError, At, Resource};
use opdev_object::meta::{self, ObjectRef};
use serde_json::{Value, json};
use std::sync::Arc;

/// How often a write is tried again after a conflict.
pub(super) const CONFLICT_TRIES: usize = 5;

/// The custom resource.
pub(crate) struct Parent {
    pub(crate) reference: ObjectRef,
    pub(super) resource: Arc<Resource>,
    /// As last read or written.
    pub(crate) object: Value,
}

impl Parent {
    /// Its place in the API.
    pub(super) fn at(&self) -> At<'_> {
        At {
            resource: &self.resource,
            namespace: self.reference.namespace.as_deref(),
            name: &self.reference.name,
        }
    }

    /// Returns true if it has one of these finalizers.
    pub(super) fn has_finalizer(&self, any: &[&str]) -> bool {
        meta::finalizers(&self.object).iter().any(|name| any.contains(name))
    }

    /// Adds a finalizer unless there is one that stands for it.
    pub(super) async fn add_finalizer(&mut self, api: &Api, add: &str, known: &[&str]) -> anyhow::Result<()> {
        for _ in 0..CONFLICT_TRIES {
            if self.has_finalizer(known) {
                return Ok(());
            }
            let mut finalizers: Vec<String> =
                meta::finalizers(&self.object).into_iter().map(str::to_owned).collect();
            finalizers.push(add.to_owned());
            if self.write_finalizers(api, &finalizers).await? {
                return Ok(());
            }
        }
        Err(anyhow!("could not add the finalizer: the object keeps changing"))
    }

    /// Removes finalizers, so that a custom resource that is being deleted may go.
    pub(super) async fn drop_finalizers(&mut self, api: &Api, drop: &[&str]) -> anyhow::Result<()> {
        for _ in 0..CONFLICT_TRIES {
            if !self.has_finalizer(drop) {
                return Ok(());
            }
            let left: Vec<String> = meta::finalizers(&self.object)
                .into_iter()
                .filter(|name| !drop.contains(name))
                .map(str::to_owned)
                .collect();
            if left.is_empty()
                && meta::deletion_timestamp(&self.object).is_some()
                && let Some(uid) = meta::uid(&self.object)
            {
                api.echo.deleted(uid);
            }
            match self.write_finalizers(api, &left).await {
                Ok(true) => return Ok(()),
                Ok(false) => {}
                Err(error) if is_gone(&error) => return Ok(()),
                Err(error) => return Err(error),
            }
        }
        Err(anyhow!("could not remove the finalizer: the object keeps changing"))
    }

    /// Writes the finalizers; `false` after a conflict, with the object read again.
    async fn write_finalizers(&mut self, api: &Api, finalizers: &[String]) -> anyhow::Result<bool> {
        let version = meta::resource_version(&self.object);
        let patch = json!({"metadata": {"finalizers": finalizers, "resourceVersion": version}});
        let written = api.merge(&self.at(), &patch).await;
        match written {
            Ok(object) => {
                self.object = object;
                Ok(true)
            }
            Err(error) if error.is_conflict() => {
                let found = api.get(&self.at()).await.context("could not get the custom resource")?;
                if let Some(object) = found {
                    self.object = object;
                }
                Ok(false)
            }
            Err(error) => Err(anyhow::Error::new(error).context("could not write the finalizers")),
        }
    }
}

fn is_gone(error: &anyhow::Error) -> bool {
    error.downcast_ref::<ApiError>().is_some_and(ApiError::is_not_found)
}
