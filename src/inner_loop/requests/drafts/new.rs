//! New objects: the text of a sample, or a skeleton of what a kind's schema says, for the editor.

use super::skeleton::{skeleton, with_values};
use crate::Requests;
use crate::outcome::Done;
use anyhow::{Context as _, Result, bail};
use http::Method;
use kube::core::{ApiResource, GroupVersionKind};
use opdev_client::{is_not_found, plural_path};
use opdev_event::{DraftId, NewFrom};
use opdev_object::meta::Gvk;
use opdev_os::read;
use serde_json::Value;

impl Requests {
    pub(crate) async fn new_from(&self, id: DraftId, from: &NewFrom) -> Result<Done> {
        match from {
            NewFrom::Sample { path } => {
                let file = self.project.root.join(path);
                let text = read::text(&file).with_context(|| format!("{path} cannot be read"))?;
                self.open_new(id, format!("new from {path}"), text).await
            }
            NewFrom::Kind { gvk } => {
                let (resource, namespaced) = self.resource_soon(gvk).await?;
                let schema = self.schema_of(gvk, &resource).await?;
                let namespace = namespaced.then_some(self.cluster.namespace.as_str());
                let mut text = skeleton(gvk, namespace, &schema.root, &schema.definitions);
                if let Some((chart, values)) = self.values_of(gvk) {
                    text = with_values(&text, &chart, &values);
                }
                self.open_new(id, format!("new {}", gvk.kind), text).await
            }
        }
    }

    /// The folder of the chart that feeds a kind, and its values as they are written.
    fn values_of(&self, gvk: &Gvk) -> Option<(String, String)> {
        let sources = self.operator.sources.borrow();
        let watch = sources.watches.iter().find(|watch| watch.gvk == *gvk)?;
        let reconciler = watch.chart()?;
        let values = reconciler.chart.as_ref()?.values_text.as_ref()?;
        Some((reconciler.path.clone(), String::from_utf8_lossy(values).into_owned()))
    }

    /// The schema of a kind at its root.
    pub(crate) async fn schema(&self, gvk: &Gvk) -> Result<Value> {
        let (resource, _) = self.resource(gvk).await?;
        Ok(self.schema_of(gvk, &resource).await?.root)
    }

    /// The API server's words about a kind: its CRD's schema, else its OpenAPI document.
    async fn schema_of(&self, gvk: &Gvk, resource: &ApiResource) -> Result<Schema> {
        let wanted = GroupVersionKind::gvk("apiextensions.k8s.io", "v1", "CustomResourceDefinition");
        let crds = plural_path(&ApiResource::from_gvk(&wanted), None);
        let name = format!("{}.{}", resource.plural, resource.group);
        match self.send(Method::GET, &format!("{crds}/{name}"), "application/json", None).await {
            Ok((crd, _)) => {
                let versions = crd.pointer("/spec/versions").and_then(Value::as_array);
                let version = versions
                    .into_iter()
                    .flatten()
                    .find(|version| version["name"] == gvk.version.as_str())
                    .with_context(|| format!("{name} has no version {}", gvk.version))?;
                let root = version.pointer("/schema/openAPIV3Schema").cloned().unwrap_or_default();
                Ok(Schema { root, definitions: Value::Null })
            }
            Err(error) if is_not_found(&error) => self.open_api(gvk).await,
            Err(error) => Err(error),
        }
    }

    async fn open_api(&self, gvk: &Gvk) -> Result<Schema> {
        let root = if gvk.group.is_empty() { "api" } else { "apis" };
        let uri = format!("/openapi/v3/{root}/{}", gvk.api_version());
        let (document, _) = self.send(Method::GET, &uri, "application/json", None).await?;
        let schemas = document.pointer("/components/schemas").and_then(Value::as_object);
        let is_it = |schema: &&Value| {
            let kinds = schema["x-kubernetes-group-version-kind"].as_array();
            kinds.into_iter().flatten().any(|known| {
                known["group"] == gvk.group.as_str()
                    && known["version"] == gvk.version.as_str()
                    && known["kind"] == gvk.kind.as_str()
            })
        };
        let Some(found) = schemas.into_iter().flat_map(serde_json::Map::values).find(is_it) else {
            bail!("the API server has no schema of {gvk}");
        };
        Ok(Schema { root: found.clone(), definitions: document["components"]["schemas"].clone() })
    }
}

/// A schema, with what its references name.
struct Schema {
    root: Value,
    definitions: Value,
}
