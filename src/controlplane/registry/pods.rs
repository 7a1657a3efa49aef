//! Binding a pod to a node: a subresource that is no part of the object.

use super::Registry;
use super::context::Context;
use super::update::{Change, UpdateMethod};
use opdev_apimachinery::error::{Cause, Status};
use opdev_apimachinery::part::Part;
use opdev_apimachinery::resource::{Resource, metadata};
use opdev_apis::defaults;
use opdev_storage::{Key, Stored};
use serde_json::{Value, json};
use std::sync::Arc;

impl Registry {
    /// Puts a pod on a node.
    pub fn bind(
        &self,
        ctx: &mut Context,
        resource: &Resource,
        key: &Key,
        binding: &Value,
    ) -> Result<Arc<Stored>, Status> {
        let node = binding["target"]["name"].as_str().unwrap_or_default().to_owned();
        let kind = &binding["target"]["kind"];
        let mut causes = Vec::new();
        if !kind.is_null() && kind != "" && kind != "Node" {
            causes.push(Cause::not_supported("target.kind", kind, &["Node", "<empty>"]));
        }
        if node.is_empty() {
            causes.push(Cause::required("target.name", ""));
        }
        if !causes.is_empty() {
            return Err(Status::invalid("", "Binding", &key.name, causes));
        }
        let now = metadata::seconds(self.now());
        let change = Change { resource, key, part: Part::Binding, way: UpdateMethod::Replace };
        self.update(ctx, change, &mut |_, current| {
            let refuse = |why: String| Err(Status::conflict("", "pods/binding", &key.name, &why));
            if current["metadata"].get("deletionTimestamp").is_some() {
                return refuse(format!("pod {} is being deleted, cannot be assigned to a host", key.name));
            }
            let wanted = metadata::text(binding, "uid");
            if !wanted.is_empty() && wanted != metadata::text(current, "uid") {
                return refuse(format!(
                    "Precondition failed: UID in precondition: {wanted}, UID in object meta: {}",
                    metadata::text(current, "uid")
                ));
            }
            if let Some(on) = current["spec"]["nodeName"].as_str().filter(|on| !on.is_empty()) {
                return refuse(format!("pod {} is already assigned to node {on:?}", key.name));
            }
            let mut object = current.clone();
            object["spec"]["nodeName"] = Value::from(node.as_str());
            let status = defaults::sub(&mut object, "status");
            defaults::put(status, "conditions", json!([]));
            if let Some(list) = status["conditions"].as_array_mut() {
                list.retain(|c| c["type"] != "PodScheduled");
                list.push(json!({"type": "PodScheduled", "status": "True", "lastProbeTime": null,
                    "lastTransitionTime": now}));
            }
            Ok(object)
        })
    }
}
