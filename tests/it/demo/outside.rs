//! A client beside opdev, as kubectl would be: nothing here goes through opdev.

use kube::api::{Api, DeleteParams, DynamicObject, ListParams, Patch, PatchParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::core::{ApiResource, GroupVersionKind};
use opdev_object::meta::{Gvk, ObjectRef};
use serde_json::Value;
use std::path::Path;

/// Somebody else's client.
pub(super) struct Outside {
    client: kube::Client,
}

/// A kind by the short form of its version.
pub(super) fn gvk(text: &str) -> Gvk {
    let (api_version, kind) = text.rsplit_once('/').unwrap();
    Gvk::from_api_version(api_version, kind)
}

/// An object of the namespace `default`.
pub(super) fn reference(kind: &str, name: &str) -> ObjectRef {
    ObjectRef { gvk: gvk(kind), namespace: Some("default".to_owned()), name: name.to_owned(), uid: None }
}

impl Outside {
    /// Over the kubeconfig that opdev has written.
    pub(super) async fn new(kubeconfig: &Path) -> Outside {
        let kubeconfig = Kubeconfig::read_from(kubeconfig).unwrap();
        let options = KubeConfigOptions::default();
        let config = kube::Config::from_custom_kubeconfig(kubeconfig, &options).await.unwrap();
        Outside { client: kube::Client::try_from(config).unwrap() }
    }

    /// The objects of a kind in `default`.
    pub(super) fn api(&self, kind: &str) -> Api<DynamicObject> {
        let gvk = gvk(kind);
        let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(&gvk.group, &gvk.version, &gvk.kind));
        Api::namespaced_with(self.client.clone(), "default", &resource)
    }

    /// Merges a patch into an object from outside, as `kubectl patch --type=merge` does.
    pub(super) async fn patch(&self, kind: &str, name: &str, patch: &Value) {
        self.api(kind).patch(name, &PatchParams::default(), &Patch::Merge(patch)).await.unwrap();
    }

    /// Deletes an object from outside.
    pub(super) async fn kill(&self, kind: &str, name: &str) {
        self.api(kind).delete(name, &DeleteParams::default()).await.unwrap();
    }

    /// The object as the API server has it.
    pub(super) async fn get(&self, kind: &str, name: &str) -> Option<Value> {
        let found = self.api(kind).get_opt(name).await.unwrap();
        found.map(|object| serde_json::to_value(object).unwrap())
    }

    /// All objects of a kind with these labels.
    pub(super) async fn list(&self, kind: &str, labels: &str) -> Vec<Value> {
        let list = self.api(kind).list(&ListParams::default().labels(labels)).await.unwrap();
        list.items.into_iter().map(|object| serde_json::to_value(object).unwrap()).collect()
    }
}
