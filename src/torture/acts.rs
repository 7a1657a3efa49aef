//! The steps of a scenario, as they are done on a plane.

use super::operator::objects;
use super::run::Stage;
use anyhow::{Context as _, Result};
use http::Method;
use opdev_controlplane::registry::Registry;
use opdev_object::meta::{self, ObjectRef};
use opdev_steps::scenario::{Step, reference};
use serde_json::{Value, json};
use std::sync::Arc;

impl Stage<'_> {
    /// Does a step.
    pub(super) async fn act(&self, step: &Step) -> Result<()> {
        match step {
            Step::Apply(objects) => self.apply(objects).await,
            Step::Patch { object, patch } => {
                let path = self.path(object)?;
                self.send(Method::PATCH, &path, "application/merge-patch+json", Some(patch)).await.map(drop)
            }
            Step::Delete(objects) => {
                for object in objects.iter().rev() {
                    self.delete(&self.path(object)?).await?;
                }
                Ok(())
            }
            Step::DeleteChild(parent) => match self.child(parent)? {
                Some(child) => self.delete(&self.path(&child)?).await,
                None => Ok(()),
            },
            Step::DeleteNamespace(namespace) => self.delete(&format!("/api/v1/namespaces/{namespace}")).await,
            Step::Stranger(objects) => self.strangers(objects).await,
            Step::Named { others, objects, .. } => {
                self.apply(others).await?;
                for object in objects {
                    match self.apply(std::slice::from_ref(object)).await {
                        Err(error) if is_refused(&error) => return Ok(()),
                        other => other?,
                    }
                }
                Ok(())
            }
        }
    }

    /// Deletes what the scenario deletes later.
    pub(super) async fn delete_early(&self, steps: &[Step]) -> Result<()> {
        match steps.iter().find(|step| matches!(step, Step::Delete(_))) {
            Some(step) => self.act(step).await,
            None => Ok(()),
        }
    }

    /// Makes objects as somebody else would.
    async fn strangers(&self, objects: &[Value]) -> Result<()> {
        for object in objects {
            self.namespace(meta::namespace(object).unwrap_or("default")).await?;
            let path = self.path(object)?;
            let folder = path.rsplit_once('/').map_or(path.as_str(), |(folder, _)| folder);
            let path = format!("{folder}?fieldManager=somebody");
            self.send(Method::POST, &path, "application/json", Some(object)).await?;
        }
        Ok(())
    }

    pub(super) async fn delete(&self, path: &str) -> Result<()> {
        let options = json!({"propagationPolicy": "Background"});
        match self.send(Method::DELETE, path, "application/json", Some(&options)).await {
            Err(error) if is_not_found(&error) => Ok(()),
            other => other.map(drop),
        }
    }

    /// The first object that belongs to another one.
    fn child(&self, parent: &Value) -> Result<Option<Value>> {
        let wanted = reference(parent).context("an object has apiVersion, kind and a name")?;
        let all = objects(&self.plane);
        let is_parent =
            |object: &&Arc<Value>| ObjectRef::of(object).is_some_and(|found| found.key() == wanted.key());
        let Some(uid) = all.iter().find(is_parent).and_then(|object| meta::uid(object)) else {
            return Ok(None);
        };
        let owned = all.iter().filter(|object| {
            opdev_normal::counts(object)
                && meta::owner_references(object).iter().any(|owner| owner.uid == uid)
        });
        let first = owned.min_by_key(|object| opdev_normal::id(object));
        Ok(first.map(|object| (**object).clone()))
    }

    /// The object that a step deletes and that is still there.
    pub(super) fn left(&self, step: &Step) -> Option<String> {
        let registry = self.plane.api().registry();
        let there = |object: &Value| {
            let wanted = reference(object)?;
            let table = table(registry, &wanted)?;
            let key = opdev_controlplane::storage::Key::new(
                wanted.namespace.as_deref().unwrap_or_default(),
                &wanted.name,
            );
            registry.store.get(&table, &key)?;
            Some(opdev_normal::id(object))
        };
        match step {
            Step::Delete(objects) => objects.iter().find_map(there),
            Step::DeleteNamespace(name) => {
                there(&json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}))
            }
            Step::Apply(_)
            | Step::Patch { .. }
            | Step::DeleteChild(_)
            | Step::Stranger(_)
            | Step::Named { .. } => None,
        }
    }

    /// The path of an object.
    pub(super) fn path(&self, object: &Value) -> Result<String> {
        let wanted = reference(object).context("an object has apiVersion, kind and a name")?;
        let served = self.plane.api().registry().catalog.served();
        let gvk = &wanted.gvk;
        let resource = served
            .by_kind(&gvk.group, Some(&gvk.version), &gvk.kind)
            .with_context(|| format!("{} {} is not served", gvk.api_version(), gvk.kind))?;
        let root = if gvk.group.is_empty() { "/api".to_owned() } else { format!("/apis/{}", gvk.group) };
        let place = match (&wanted.namespace, resource.namespaced) {
            (Some(namespace), true) => format!("namespaces/{namespace}/"),
            (None, true) => "namespaces/default/".to_owned(),
            (_, false) => String::new(),
        };
        Ok(format!("{root}/{}/{place}{}/{}", gvk.version, resource.plural, wanted.name))
    }
}

fn table(registry: &Registry, wanted: &ObjectRef) -> Option<String> {
    let served = registry.catalog.served();
    let gvk = &wanted.gvk;
    served.by_kind(&gvk.group, Some(&gvk.version), &gvk.kind).map(|resource| resource.table.to_string())
}

/// Returns true if the API server does not take an object.
pub(super) fn is_refused(error: &anyhow::Error) -> bool {
    let code = match error.downcast_ref::<kube::Error>() {
        Some(kube::Error::Api(status)) => status.code,
        _ => 0,
    };
    matches!(code, 400 | 403 | 422)
}

pub(super) fn is_not_found(error: &anyhow::Error) -> bool {
    matches!(error.downcast_ref::<kube::Error>(), Some(kube::Error::Api(status)) if status.code == 404)
}
