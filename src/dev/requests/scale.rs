//! Sets how many replicas an object asks for.

use super::send::{is_not_found, object_path};
use super::{Done, MANAGER, Requests};
use anyhow::{Result, bail};
use opdev_object::meta::ObjectRef;
use serde_json::{Value, json};

impl Requests {
    pub(super) async fn scale(&self, object: &ObjectRef, replicas: i32) -> Result<Done> {
        if replicas < 0 {
            bail!("{replicas} replicas are not possible");
        }
        let (resource, namespaced) = self.resource(&object.gvk).await?;
        let namespace = if namespaced { object.namespace.as_deref() } else { None };
        let path = object_path(&resource, namespace, &object.name);
        let summary = format!("{object} scaled to {replicas}");
        let of_kind = |(kind, _): &(&String, &String)| kind.eq_ignore_ascii_case(&object.gvk.kind);
        if let Some((_, field)) = self.project.settings.scale.iter().find(of_kind) {
            let warnings = self.scale_field(&path, field, replicas).await?;
            return Ok(Done { summary: format!("{summary} ({field})"), warnings });
        }
        let body = json!({"spec": {"replicas": replicas}});
        let uri = format!("{path}/scale?fieldManager={MANAGER}");
        match self.send("PATCH", &uri, "application/merge-patch+json", Some(&body)).await {
            Ok((_, warnings)) => return Ok(Done { summary, warnings }),
            Err(error) if is_not_found(&error) => {}
            Err(error) => return Err(error),
        }
        // No scale subresource: the field that holds the number.
        let (live, _) = self.send("GET", &path, "application/json", None).await?;
        let spec = live.get("spec").and_then(Value::as_object);
        let field = ["replicas", "replicaCount", "size"]
            .into_iter()
            .find(|field| spec.is_some_and(|spec| spec.contains_key(*field)))
            .unwrap_or(if resource.group.is_empty() || resource.group == "apps" {
                "replicas"
            } else {
                "replicaCount"
            });
        let warnings = self.scale_field(&path, &format!(".spec.{field}"), replicas).await?;
        Ok(Done { summary: format!("{summary} (.spec.{field})"), warnings })
    }

    /// Sets the field that holds the number, such as `.spec.size`; returns the API server's warnings.
    async fn scale_field(&self, path: &str, field: &str, replicas: i32) -> Result<Vec<String>> {
        let names: Vec<&str> = field.split('.').filter(|name| !name.is_empty()).collect();
        if names.is_empty() || field.contains(['[', ']']) {
            bail!("{field:?} is not the path of a field; scale in opdev.yaml takes paths such as .spec.size");
        }
        let body = names.iter().rev().fold(json!(replicas), |value, name| json!({*name: value}));
        let uri = format!("{path}?fieldManager={MANAGER}&fieldValidation=Strict");
        let (_, warnings) = self.send("PATCH", &uri, "application/merge-patch+json", Some(&body)).await?;
        Ok(warnings)
    }
}
