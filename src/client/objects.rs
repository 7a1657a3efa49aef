//! The API server as the reconcilers use it: objects are JSON values, resources come from discovery, writes
//! are remembered as our own. Never retries and never decides. Read `discovery` for where resources come
//! from.

use super::call::{APPLY, ApiClient, JSON, JSON_PATCH, MERGE, OWN_MANAGER, escape};
use super::discovery::{Discovery, Resource};
use super::error::ApiError;
use super::own_writes::Echo;
use super::read_only::ReadOnly;
use http::Method;
use opdev_object::meta::{self, Gvk};
use serde_json::{Value, json};
use std::sync::Arc;

/// The field manager of charts' objects, as Helm 4 names it.
pub const HELM_MANAGER: &str = "helm";

/// The API server.
#[derive(Clone)]
pub struct Api {
    pub client: ApiClient,
    pub discovery: Arc<Discovery>,
    pub echo: Arc<Echo>,
    pub read_only: ReadOnly,
}

/// In whose name a write is made.
#[derive(Clone, Copy, Debug)]
pub struct AsManager<'a> {
    pub manager: &'a str,
    /// Nothing is written.
    pub dry_run: bool,
}

impl AsManager<'_> {
    fn query(self) -> String {
        let dry_run = if self.dry_run { "&dryRun=All" } else { "" };
        format!("fieldManager={}{dry_run}", escape(self.manager))
    }
}

/// The outcome of a deletion.
#[derive(Debug, PartialEq, Eq)]
pub enum Deletion {
    /// It is gone, or was gone already.
    Gone,
    /// It waits for finalizers or its grace period.
    Pending,
}

/// Where an object lives.
#[derive(Clone, Debug)]
pub struct At<'a> {
    pub resource: &'a Resource,
    pub namespace: Option<&'a str>,
    pub name: &'a str,
}

impl Api {
    /// Calls as ourselves.
    pub fn new(client: &kube::Client, read_only: ReadOnly) -> Api {
        let client = ApiClient::of(client);
        let discovery = Arc::new(Discovery::new(client.clone()));
        Api { client, discovery, echo: Arc::default(), read_only }
    }

    /// Calls as a user.
    pub fn acting_as(&self, user: Option<Arc<str>>) -> Api {
        Api { client: self.client.acting_as(user), ..self.clone() }
    }

    /// Calls as ourselves, whomever others are made as.
    pub fn as_operator(&self) -> Api {
        self.acting_as(None)
    }

    /// The resource of a kind.
    pub async fn resource(&self, gvk: &Gvk) -> Result<Arc<Resource>, ApiError> {
        self.discovery.resolve(gvk).await?.ok_or_else(|| ApiError::NoMatch(gvk.clone()))
    }

    /// An object, or `None` where there is none.
    pub async fn get(&self, at: &At<'_>) -> Result<Option<Value>, ApiError> {
        match self.call(Method::GET, at.path(""), None, "").await {
            Ok(object) => Ok(Some(at.resource.complete(object))),
            Err(error) if error.is_not_found() => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// The objects that a label selector picks.
    pub async fn list(
        &self,
        resource: &Resource,
        namespace: Option<&str>,
        selector: &str,
    ) -> Result<Vec<Value>, ApiError> {
        let mut path = resource.collection(namespace);
        if !selector.is_empty() {
            path.push_str("?labelSelector=");
            path.push_str(&escape(selector));
        }
        let mut list = self.call(Method::GET, path, None, "").await?;
        let items = match list.get_mut("items").map(Value::take) {
            Some(Value::Array(items)) => items,
            _ => Vec::new(),
        };
        Ok(items.into_iter().map(|item| resource.complete(item)).collect())
    }

    /// The objects that a label selector picks in these namespaces, each asked for by itself, so that no
    /// right to all of them is needed; without any, and where the kind lives in none, all there are.
    pub async fn list_in(
        &self,
        resource: &Resource,
        namespaces: &[String],
        selector: &str,
    ) -> Result<Vec<Value>, ApiError> {
        if namespaces.is_empty() || !resource.namespaced {
            return self.list(resource, None, selector).await;
        }
        let mut found = Vec::new();
        for namespace in namespaces {
            found.extend(self.list(resource, Some(namespace), selector).await?);
        }
        Ok(found)
    }

    /// Creates an object.
    pub async fn create(
        &self,
        resource: &Resource,
        namespace: Option<&str>,
        object: &Value,
    ) -> Result<Value, ApiError> {
        let path = format!("{}?fieldManager={OWN_MANAGER}", resource.collection(namespace));
        let created = self.call(Method::POST, path, Some(object), JSON).await?;
        Ok(self.wrote(resource, None, created))
    }

    /// Replaces an object, or one of its subresources.
    pub async fn update(&self, at: &At<'_>, subresource: &str, object: &Value) -> Result<Value, ApiError> {
        let path = format!("{}?fieldManager={OWN_MANAGER}", at.path(subresource));
        let updated = self.call(Method::PUT, path, Some(object), JSON).await?;
        Ok(self.wrote(at.resource, meta::resource_version(object), updated))
    }

    /// Applies an object, or one of its subresources, server-side and forced. `live` is its state before,
    /// where that is known.
    pub async fn apply(
        &self,
        at: &At<'_>,
        subresource: &str,
        object: &Value,
        live: Option<&Value>,
        manager: &str,
    ) -> Result<Value, ApiError> {
        let path = format!("{}?fieldManager={}&force=true", at.path(subresource), escape(manager));
        let applied = self.call(Method::PATCH, path, Some(object), APPLY).await?;
        Ok(self.wrote(at.resource, live.and_then(meta::resource_version), applied))
    }

    /// Creates an object as another manager, or asks in a dry run what that would give.
    pub async fn create_as(
        &self,
        resource: &Resource,
        namespace: Option<&str>,
        object: &Value,
        as_manager: AsManager<'_>,
    ) -> Result<Value, ApiError> {
        let path = format!("{}?{}", resource.collection(namespace), as_manager.query());
        if as_manager.dry_run {
            return Ok(resource.complete(self.send(Method::POST, path, Some(object), JSON).await?));
        }
        let created = self.call(Method::POST, path, Some(object), JSON).await?;
        Ok(self.wrote(resource, None, created))
    }

    /// Patches an object as another manager, or asks in a dry run what that would give.
    pub async fn patch_as(
        &self,
        at: &At<'_>,
        content: &str,
        patch: &Value,
        as_manager: AsManager<'_>,
    ) -> Result<Value, ApiError> {
        let path = format!("{}?{}", at.path(""), as_manager.query());
        if as_manager.dry_run {
            return Ok(at.resource.complete(self.send(Method::PATCH, path, Some(patch), content).await?));
        }
        let patched = self.call(Method::PATCH, path, Some(patch), content).await?;
        Ok(self.wrote(at.resource, None, patched))
    }

    /// The result of applying an object, or of one of its subresources, in a dry run: nothing is written.
    pub async fn try_apply(
        &self,
        at: &At<'_>,
        subresource: &str,
        object: &Value,
        manager: &str,
    ) -> Result<Value, ApiError> {
        let path = format!("{}?fieldManager={}&force=true&dryRun=All", at.path(subresource), escape(manager));
        let applied = self.send(Method::PATCH, path, Some(object), APPLY).await?;
        Ok(at.resource.complete(applied))
    }

    /// The result of replacing an object, in a dry run: nothing is written.
    pub async fn try_update(&self, at: &At<'_>, object: &Value) -> Result<Value, ApiError> {
        let path = format!("{}?fieldManager={OWN_MANAGER}&dryRun=All", at.path(""));
        let updated = self.send(Method::PUT, path, Some(object), JSON).await?;
        Ok(at.resource.complete(updated))
    }

    /// Merges a patch into an object.
    pub async fn merge(&self, at: &At<'_>, patch: &Value) -> Result<Value, ApiError> {
        let path = format!("{}?fieldManager={OWN_MANAGER}", at.path(""));
        let patched = self.call(Method::PATCH, path, Some(patch), MERGE).await?;
        Ok(self.wrote(at.resource, None, patched))
    }

    /// Patches an object, step by step.
    pub async fn json_patch(&self, at: &At<'_>, patch: &Value) -> Result<Value, ApiError> {
        let path = format!("{}?fieldManager={OWN_MANAGER}", at.path(""));
        let patched = self.call(Method::PATCH, path, Some(patch), JSON_PATCH).await?;
        Ok(self.wrote(at.resource, None, patched))
    }

    /// Deletes exactly the object with this uid, its dependents in the background.
    pub async fn delete(&self, at: &At<'_>, uid: Option<&str>) -> Result<Deletion, ApiError> {
        Ok(self.delete_object(at, uid).await?.0)
    }

    /// Deletes as `delete` does, and gives the object as it is left while it waits for its end.
    pub async fn delete_object(
        &self,
        at: &At<'_>,
        uid: Option<&str>,
    ) -> Result<(Deletion, Option<Value>), ApiError> {
        let mut options =
            json!({"kind": "DeleteOptions", "apiVersion": "v1", "propagationPolicy": "Background"});
        if let Some(uid) = uid {
            meta::put(&mut options, &["preconditions"], json!({"uid": uid}));
        }
        // Only a deletion that is done is ours: one that waits for finalizers is ended by somebody else.
        let gone = || {
            uid.into_iter().for_each(|uid| self.echo.deleted(uid));
            Ok((Deletion::Gone, None))
        };
        match self.call(Method::DELETE, at.path(""), Some(&options), JSON).await {
            Ok(answer) if answer.get("kind").and_then(Value::as_str) == Some("Status") => gone(),
            Ok(object) => {
                let pending = meta::deletion_timestamp(&object).is_some()
                    && !meta::finalizers(&object).is_empty()
                    || object.pointer("/metadata/deletionGracePeriodSeconds").and_then(Value::as_i64)
                        > Some(0);
                self.echo.wrote(&object);
                if pending { Ok((Deletion::Pending, Some(at.resource.complete(object)))) } else { gone() }
            }
            Err(error) if error.is_not_found() => gone(),
            Err(error) => Err(error),
        }
    }

    fn wrote(&self, resource: &Resource, before: Option<&str>, object: Value) -> Value {
        let object = resource.complete(object);
        if before.is_none() || before != meta::resource_version(&object) {
            self.echo.wrote(&object);
        }
        object
    }

    /// One call; a refusal becomes an error.
    pub(crate) async fn call(
        &self,
        method: Method,
        path: String,
        body: Option<&Value>,
        content: &str,
    ) -> Result<Value, ApiError> {
        if self.read_only.holds() && method != Method::GET {
            return Err(ApiError::ReadOnly);
        }
        self.send(method, path, body, content).await
    }

    /// Makes a call that writes nothing: a read or a dry run, which also works where opdev is read-only.
    async fn send(
        &self,
        method: Method,
        path: String,
        body: Option<&Value>,
        content: &str,
    ) -> Result<Value, ApiError> {
        Ok(self.client.send(method, &path, content, body).await?.0)
    }
}

impl At<'_> {
    fn path(&self, subresource: &str) -> String {
        let mut path = format!("{}/{}", self.resource.collection(self.namespace), escape(self.name));
        if !subresource.is_empty() {
            path.push('/');
            path.push_str(subresource);
        }
        path
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_and_selectors_are_escaped() {
        let resource = Resource {
            gvk: Gvk::new("rbac.authorization.k8s.io", "v1", "Role"),
            plural: "roles".into(),
            namespaced: true,
            verbs: Vec::new(),
            has_status: false,
        };
        let at = At { resource: &resource, namespace: Some("default"), name: "system:x" };
        assert_eq!(
            at.path("status"),
            "/apis/rbac.authorization.k8s.io/v1/namespaces/default/roles/system%3Ax/status"
        );
        assert_eq!(escape("owner=helm,name=a"), "owner%3Dhelm%2Cname%3Da");
    }
}
