//! A control plane of its own, in memory, with an administrator who applies what a user would apply.

use super::calls::{Recorded, Writes};
use super::snapshot::Snapshot;
use anyhow::{Context as _, Result};
use futures::future::join_all;
use http::Method;
use kube::Client;
use kube::discovery::{Discovery, verbs};
use opdev_client::read_only::ReadOnly;
use opdev_client::{Api, ApiError, MERGE, all_kinds, object_path, resource_of, send};
use opdev_controlplane::{Config, ControlPlane};
use opdev_object::meta::{self, Gvk};
use opdev_program::audit::Audit;
use opdev_program::rehearsal::Stage;
use opdev_project::trust::Trust;
use opdev_script::readiness;
use serde_json::{Value, json};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// The manager that applies: the name that kubectl gives itself.
const MANAGER: &str = "kubectl";
/// The manager of types and webhooks: a host that they name is asked about, as it is not the user's own wish.
const OF_FILES: &str = "opdev";
const APPLY: &str = "application/apply-patch+yaml";
const JSON: &str = "application/json";
/// How long a definition may take until it is served.
const ESTABLISHED: Duration = Duration::from_secs(10);
/// How often is looked at what no event tells.
pub(super) const LOOK: Duration = Duration::from_millis(10);

/// How an object is applied.
#[derive(Clone, Copy, Default)]
pub(super) struct How {
    /// Nothing is stored.
    pub(super) dry_run: bool,
    /// Unknown fields are left out without a word, and not refused.
    pub(super) lenient: bool,
}

/// The plane.
pub(super) struct Plane {
    host: Host,
    /// The administrator's.
    pub(super) client: Client,
}

/// Where it is.
enum Host {
    /// In this process alone.
    Own(ControlPlane),
    /// Programs reach it, too, and their writes are recorded.
    Stage(Box<Stage>, Writes),
}

impl Plane {
    pub(super) async fn start(trust: &Trust) -> Result<Plane> {
        let mut config = Config::default();
        config.webhooks.reach = Some(trust.reach());
        let plane = ControlPlane::start_with(config).await;
        let plane = plane.context("the embedded control plane does not start")?;
        plane.controllers_at_rest().await;
        let client = plane.client();
        Ok(Plane { host: Host::Own(plane), client })
    }

    /// One that programs reach; what belongs to it lies in `folder`.
    pub(super) async fn for_programs(folder: &Path, trust: &Trust) -> Result<Plane> {
        let writes = Writes::default();
        let seen = writes.clone();
        let audit = Audit(Arc::new(move |call| seen.observe(call)));
        let stage = Stage::open(folder, trust, audit).await?;
        let client = stage.client();
        Ok(Plane { host: Host::Stage(Box::new(stage), writes), client })
    }

    pub(super) async fn stop(self) {
        match self.host {
            Host::Own(plane) => plane.stop().await,
            Host::Stage(stage, _) => stage.close().await,
        }
    }

    /// Where programs run, and what they have written since it was asked last.
    pub(super) fn stage(&self) -> Option<(&Stage, &Writes)> {
        match &self.host {
            Host::Own(_) => None,
            Host::Stage(stage, writes) => Some((stage, writes)),
        }
    }

    /// A client of an operator, whose writes are recorded.
    pub(super) fn operators(&self, writes: &Writes) -> Client {
        Client::new(Recorded { plane: self.client.clone(), writes: writes.clone() }, "default")
    }

    /// Where an object lies: its path, with this namespace where it names none.
    pub(super) async fn path(&self, object: &Value, namespace: &str) -> Result<String, ApiError> {
        let gvk = Gvk::of(object).unwrap_or_default();
        let (resource, namespaced) = resource_of(&self.client, &gvk).await?;
        let namespace = namespaced.then(|| meta::namespace(object).unwrap_or(namespace));
        Ok(object_path(&resource, namespace, meta::name(object).unwrap_or_default()))
    }

    /// Applies an object as `kubectl apply --server-side --force-conflicts` does.
    pub(super) async fn apply(&self, object: &Value, namespace: &str, how: How) -> Result<Value, ApiError> {
        let path = self.path(object, namespace).await?;
        let mut object = object.clone();
        // Nobody applies what the API server has written.
        if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
            metadata.remove("managedFields");
            metadata.remove("resourceVersion");
            metadata.remove("uid");
        }
        let dry_run = if how.dry_run { "&dryRun=All" } else { "" };
        let validation = if how.lenient { "Ignore" } else { "Strict" };
        let group = Gvk::of(&object).map(|gvk| gvk.group).unwrap_or_default();
        let manager = if group.ends_with("registration.k8s.io") || group == "apiextensions.k8s.io" {
            OF_FILES
        } else {
            MANAGER
        };
        let uri = format!("{path}?fieldManager={manager}&force=true&fieldValidation={validation}{dry_run}");
        self.send(Method::PATCH, &uri, APPLY, Some(&object)).await
    }

    /// Applies a definition and waits until it is served; the answer is the definition that was there.
    pub(super) async fn define(&self, crd: &Value) -> Result<Option<Value>, ApiError> {
        let path = self.path(crd, "").await?;
        let before = self.get(&path).await?;
        let by_url = |crd: &Value| crd.pointer("/spec/conversion/webhook/clientConfig/url").is_some();
        if before.as_ref().is_some_and(by_url) {
            // The way to the program that ran, which nobody takes away with it. The next one is led to again.
            let none = json!({ "spec": { "conversion": { "strategy": "None", "webhook": null } } });
            self.send(Method::PATCH, &path, MERGE, Some(&none)).await?;
        }
        self.apply(crd, "", How { lenient: true, ..How::default() }).await?;
        let established = async {
            while !self.get(&path).await.is_ok_and(|crd| crd.as_ref().is_some_and(readiness::ready)) {
                tokio::time::sleep(LOOK).await;
            }
        };
        // One that is never served shows when its objects are asked for.
        let _ = tokio::time::timeout(ESTABLISHED, established).await;
        Ok(before)
    }

    async fn send(
        &self,
        method: Method,
        path: &str,
        content: &str,
        body: Option<&Value>,
    ) -> Result<Value, ApiError> {
        let sent = send(&self.client, method, path, content, body).await;
        sent.map(|(answer, _)| answer).map_err(|error| {
            error.downcast().unwrap_or_else(|other| ApiError::Unreachable(format!("{other:#}")))
        })
    }

    pub(super) async fn get(&self, path: &str) -> Result<Option<Value>, ApiError> {
        match self.send(Method::GET, path, JSON, None).await {
            Ok(found) => Ok(Some(found)),
            Err(error) if error.is_not_found() => Ok(None),
            Err(error) => Err(error),
        }
    }

    pub(super) async fn delete(&self, path: &str) -> Result<(), ApiError> {
        match self.send(Method::DELETE, path, JSON, None).await {
            Err(error) if !error.is_not_found() => Err(error),
            Ok(_) | Err(_) => Ok(()),
        }
    }

    /// Makes a namespace, where it is not there.
    pub(super) async fn namespace(&self, name: &str) -> Result<(), ApiError> {
        let namespace = json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": name } });
        self.apply(&namespace, "", How::default()).await.map(drop)
    }

    /// The revision of the newest write.
    pub(super) async fn revision(&self) -> Option<String> {
        let list = self.get("/api/v1/namespaces?limit=1").await.ok()??;
        list.pointer("/metadata/resourceVersion")?.as_str().map(str::to_owned)
    }

    /// All objects that there are, each at the version that is preferred.
    ///
    /// # Errors
    /// Where the control plane does not answer.
    pub(super) async fn snapshot(&self) -> Result<Snapshot> {
        let discovery = Discovery::new(self.client.clone()).run_aggregated().await?;
        let kinds = discovery.groups().flat_map(all_kinds);
        let kinds = kinds.filter(|(_, capabilities)| capabilities.supports_operation(verbs::LIST));
        let api = Api::new(&self.client, ReadOnly::default());
        let list = |gvk: Gvk| {
            let api = &api;
            async move {
                let Ok(resource) = api.resource(&gvk).await else { return Vec::new() };
                api.list(&resource, None, "").await.unwrap_or_default()
            }
        };
        let lists = kinds.map(|(kind, _)| list(Gvk::new(&kind.group, &kind.version, &kind.kind)));
        let objects = join_all(lists).await.into_iter().flatten().collect();
        Ok(Snapshot::of(objects))
    }
}
