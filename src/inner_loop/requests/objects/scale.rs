//! Sets how many replicas an object asks for: where opdev.yaml says, through the scale subresource, else in
//! the field that the object or its kind's schema has for it.

use super::undo_list::Undo;
use crate::Requests;
use crate::outcome::Done;
use anyhow::{Result, bail};
use http::Method;
use opdev_client::{OWN_MANAGER, is_not_found};
use opdev_object::facts::replicas::USUAL;
use opdev_object::meta::{self, ObjectRef};
use serde_json::{Value, json};

impl Requests {
    pub(crate) async fn scale(&self, object: &ObjectRef, replicas: i32) -> Result<Done> {
        if replicas < 0 {
            bail!("{replicas} replicas are not possible");
        }
        let (path, before) = self.live(object).await?;
        let (field, warnings) = self.set_replicas(object, &path, &before, replicas).await?;
        let (after, _) = self.send(Method::GET, &path, "application/json", None).await?;
        let field = field.map_or_else(String::new, |field| format!(" ({field})"));
        let mut summary = format!("{object} scaled to {replicas}{field}");
        if let Some(owner) = self.reconciled_owner(&after) {
            summary.push_str(&format!("; {owner} owns it, and its reconciler puts the number back"));
        }
        let undo = vec![Undo::Restore { object: object.clone(), before, after }];
        Ok(Done { summary, warnings, undo, ..Done::default() })
    }

    /// Writes the number; tells the field where it is no scale subresource that took it.
    async fn set_replicas(
        &self,
        object: &ObjectRef,
        path: &str,
        live: &Value,
        replicas: i32,
    ) -> Result<(Option<String>, Vec<String>)> {
        let of_kind = |(kind, _): &(&String, &String)| kind.eq_ignore_ascii_case(&object.gvk.kind);
        if let Some((_, field)) = self.project.settings.scale.iter().find(of_kind) {
            let warnings = self.scale_field(path, field, replicas).await?;
            return Ok((Some(field.clone()), warnings));
        }
        let body = json!({"spec": {"replicas": replicas}});
        let uri = format!("{path}/scale?fieldManager={OWN_MANAGER}");
        match self.send(Method::PATCH, &uri, "application/merge-patch+json", Some(&body)).await {
            Ok((_, warnings)) => return Ok((None, warnings)),
            Err(error) if is_not_found(&error) => {}
            Err(error) => return Err(error),
        }
        let spec = live.get("spec").and_then(Value::as_object);
        let here = USUAL.into_iter().find(|field| spec.is_some_and(|spec| spec.contains_key(*field)));
        let field = match here {
            Some(field) => field,
            None => self.field_of_schema(object).await?,
        };
        let field = format!(".spec.{field}");
        let warnings = self.scale_field(path, &field, replicas).await?;
        Ok((Some(field), warnings))
    }

    /// The field for the number as the kind's schema has it.
    async fn field_of_schema(&self, object: &ObjectRef) -> Result<&'static str> {
        let schema = self.schema(&object.gvk).await?;
        let spec = schema.pointer("/properties/spec").cloned().unwrap_or_default();
        let named = USUAL.into_iter().find(|field| spec["properties"].get(*field).is_some());
        // Where anything may stand in the spec, a chart reads it: Helm's own name for the number.
        let open = spec["x-kubernetes-preserve-unknown-fields"] == true;
        match named.or(open.then_some("replicaCount")) {
            Some(field) => Ok(field),
            None => bail!(
                "{} has no scale subresource and no field .spec.replicas, .spec.replicaCount or .spec.size; name its \
                 field under `scale` in opdev.yaml, such as `scale: {{{}: .spec.count}}`",
                object.gvk.kind,
                object.gvk.kind
            ),
        }
    }

    /// Sets the field that holds the number, such as `.spec.size`; returns the API server's warnings.
    async fn scale_field(&self, path: &str, field: &str, replicas: i32) -> Result<Vec<String>> {
        let names: Vec<&str> = field.split('.').filter(|name| !name.is_empty()).collect();
        if names.is_empty() || field.contains(['[', ']']) {
            bail!("{field:?} is not the path of a field; scale in opdev.yaml takes paths such as .spec.size");
        }
        let body = names.iter().rev().fold(json!(replicas), |value, name| json!({*name: value}));
        let uri = format!("{path}?fieldManager={OWN_MANAGER}&fieldValidation=Strict");
        let (_, warnings) =
            self.send(Method::PATCH, &uri, "application/merge-patch+json", Some(&body)).await?;
        Ok(warnings)
    }

    /// The owner that a reconciler of this project looks after, if it has one.
    fn reconciled_owner(&self, object: &Value) -> Option<String> {
        let kinds = self.operator.sources.borrow();
        let owner = meta::controller(object)?;
        let group = owner.api_version.split_once('/').map_or("", |(group, _)| group);
        kinds.watch(group, &owner.kind).map(|_| format!("{} {}", owner.kind, owner.name))
    }
}
