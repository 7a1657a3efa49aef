//! Deletes objects, and lets those go that hang on finalizers.

use super::undo_list::Undo;
use crate::Requests;
use crate::outcome::Done;
use anyhow::{Result, bail};
use http::Method;
use opdev_client::object_path;
use opdev_event::Propagation;
use opdev_object::meta::{self, ObjectRef};
use serde_json::{Value, json};

impl Requests {
    /// Deletes an object. `grace` are the seconds its containers get; `None` leaves them to the object.
    pub(crate) async fn delete(
        &self,
        object: &ObjectRef,
        propagation: Propagation,
        grace: Option<u32>,
    ) -> Result<Done> {
        let (path, before) = self.live(object).await?;
        let policy = match propagation {
            Propagation::Background => "Background",
            Propagation::Foreground => "Foreground",
            Propagation::Orphan => "Orphan",
        };
        let mut body = json!({"apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": policy});
        if let Some(seconds) = grace {
            opdev_object::meta::put(&mut body, &["gracePeriodSeconds"], seconds);
        }
        if let Some(uid) = &object.uid {
            // Only the object that was on the screen, not a successor of the same name.
            opdev_object::meta::put(&mut body, &["preconditions"], json!({"uid": uid}));
        }
        let (left, warnings) = self.send(Method::DELETE, &path, "application/json", Some(&body)).await?;
        let waits = match meta::finalizers(&left).as_slice() {
            [] => String::new(),
            [one] => format!("; it goes once its finalizer {one} is removed"),
            all => format!("; it goes once its finalizers {} are removed", all.join(", ")),
        };
        let undo = vec![Undo::Recreate { object: object.clone(), before }];
        Ok(Done { summary: format!("{object} deleted{waits}"), warnings, undo, ..Done::default() })
    }

    /// Removes finalizers of an object that is to go, whatever they wait for.
    pub(crate) async fn drop_finalizers(&self, object: &ObjectRef, finalizers: &[String]) -> Result<Done> {
        let (path, live) = self.live(object).await?;
        if object.uid.is_some() && meta::uid(&live) != object.uid.as_deref() {
            bail!("{object} is gone; another object has its name now, and keeps its finalizers");
        }
        let known = meta::finalizers(&live);
        let kept: Vec<&str> =
            known.iter().filter(|name| !finalizers.iter().any(|f| f == *name)).copied().collect();
        if kept.len() == known.len() {
            bail!("{object} does not have these finalizers any more");
        }
        let dropped: Vec<&str> = known.iter().filter(|name| !kept.contains(name)).copied().collect();
        // Nobody else may have added or removed one meanwhile.
        let patch = json!([
            {"op": "test", "path": "/metadata/uid", "value": meta::uid(&live)},
            {"op": "test", "path": "/metadata/finalizers", "value": known},
            {"op": "replace", "path": "/metadata/finalizers", "value": kept},
        ]);
        let uri = format!("{path}?fieldManager={}", opdev_client::OWN_MANAGER);
        let (_, warnings) =
            self.send(Method::PATCH, &uri, "application/json-patch+json", Some(&patch)).await?;
        let why = "the object goes without them, and what they were to clean up stays".to_owned();
        let undo = vec![Undo::Never { why }];
        let summary = format!("{object} does not wait for {} any more", dropped.join(", "));
        Ok(Done { summary, warnings, undo, ..Done::default() })
    }

    /// The path of an object as the API server knows it.
    pub(crate) async fn path(&self, object: &ObjectRef) -> Result<String> {
        let (resource, namespaced) = self.resource(&object.gvk).await?;
        let namespace = if namespaced { object.namespace.as_deref() } else { None };
        Ok(object_path(&resource, namespace, &object.name))
    }

    /// An object as it is now, with its path.
    pub(crate) async fn live(&self, object: &ObjectRef) -> Result<(String, Value)> {
        let path = self.path(object).await?;
        let (live, _) = self.send(Method::GET, &path, "application/json", None).await?;
        Ok((path, live))
    }
}
