//! Changes to a rendered chart before it is a revision: the script's `render`, and, as with the
//! helm-operator-plugins library, the way back to the custom resource. Charts with neither keep their text as
//! it is.

use crate::engine::Engine;
use crate::objects;
use crate::objects::inject::lead_back;
use crate::verdict::{Blamed, Fault};
use opdev_client::ApiError;
use opdev_object::meta::{self, Gvk};
use opdev_object::yaml;
use opdev_script::contract::ChartFunction;
use serde_json::Value;

impl Engine {
    /// The manifest as it is stored.
    pub(crate) async fn post_render(&self, manifest: String) -> anyhow::Result<String> {
        let script = self.script.as_ref().filter(|script| script.has(ChartFunction::Render));
        if script.is_none() && !self.options.hybrid {
            return Ok(manifest);
        }
        let mut rendered: Vec<(String, Value)> = Vec::new();
        for (source, document) in objects::sources(&manifest) {
            let found = objects::parse(document)?;
            rendered.extend(found.into_iter().map(|object| (source.to_owned(), object)));
        }
        if let Some(script) = script {
            let objects: Vec<Value> = rendered.iter().map(|(_, object)| object.clone()).collect();
            let answer = script.ask(ChartFunction::Render, vec![Some(Value::Array(objects)), None]).await;
            let answer = answer.map_err(plain)?;
            let objects = answer.value.as_array().cloned().unwrap_or_default();
            let source = |object: &Value| {
                let same = |(_, other): &&(String, Value)| {
                    Gvk::of(other) == Gvk::of(object)
                        && meta::name(other) == meta::name(object)
                        && meta::namespace(other) == meta::namespace(object)
                };
                rendered
                    .iter()
                    .find(same)
                    .map_or_else(|| script.path().to_owned(), |(source, _)| source.clone())
            };
            rendered = objects.into_iter().map(|object| (source(&object), object)).collect();
        }
        let mut text = String::new();
        for (source, mut object) in rendered {
            if self.options.hybrid {
                self.lead(&mut object).await?;
            }
            text.push_str("---\n");
            if !source.is_empty() {
                text.push_str(&format!("# Source: {source}\n"));
            }
            text.push_str(&yaml::to_string(&object));
        }
        Ok(text)
    }

    async fn lead(&self, object: &mut Value) -> anyhow::Result<()> {
        let Some(gvk) = Gvk::of(object) else { return Ok(()) };
        let resource = match self.api.resource(&gvk).await {
            Ok(resource) => resource,
            // Its type may come with this release; building the objects says so where it does not.
            Err(ApiError::NoMatch(_)) => return Ok(()),
            Err(error) => return Err(error.into()),
        };
        let chart = self.chart_label();
        lead_back(object, &self.owner, self.names(&self.namespace, &chart), resource.namespaced);
        Ok(())
    }
}

/// The fault of a script as an error that keeps its place.
pub(crate) fn plain(fault: Fault) -> anyhow::Error {
    match fault.diagnostic {
        Some(diagnostic) => anyhow::Error::new(Blamed(*diagnostic)),
        None => fault.error,
    }
}
