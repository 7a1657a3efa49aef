//! Subresources of pods that are no part of the object: binding to a node, and eviction.

use super::context::Context;
use super::part::Part;
use super::update::{Change, UpdateMethod};
use super::{Registry, defaults};
use crate::attributes::PodField;
use crate::error::{Cause, Status};
use crate::registry::options::DeleteOptions;
use crate::resource::{Resource, metadata};
use crate::storage::{Key, Stored};
use opdev_object::selector::LabelSelector;
use serde_json::{Map, Value, json};
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

    /// Deletes a pod unless a disruption budget forbids it.
    pub fn evict(
        &self,
        ctx: &mut Context,
        resource: &Resource,
        key: &Key,
        options: &DeleteOptions,
    ) -> Result<(), Status> {
        let Some(pod) = self.store.get(&resource.table, key) else {
            return Err(Status::not_found("", "pods", &key.name));
        };
        let over = pod.attributes().pod_finished() || pod.attributes().pod(PodField::Phase) == "Pending";
        let going = pod.attributes().deleting();
        if !over && !going {
            self.check_budgets(&pod.value())?;
        }
        self.delete(ctx, resource, key, options).map(|_| ())
    }

    fn check_budgets(&self, pod: &Value) -> Result<(), Status> {
        let none = Map::new();
        let labels = pod["metadata"]["labels"].as_object().unwrap_or(&none);
        let namespace = metadata::text(pod, "namespace");
        for budget in self.store.list("policy/poddisruptionbudgets", Some(namespace)).items {
            let budget = budget.value();
            let budget = &*budget;
            let selects =
                LabelSelector::from_json(&budget["spec"]["selector"]).is_ok_and(|s| s.matches(labels));
            if !selects || budget["status"]["disruptionsAllowed"].as_i64().is_none_or(|n| n > 0) {
                continue;
            }
            let message = "Cannot evict pod as it would violate the pod's disruption budget.";
            let mut status = Status::too_many_requests(message, 0);
            let text = format!(
                "The disruption budget {} needs {} healthy pods and has {} currently",
                metadata::text(budget, "name"),
                budget["status"]["desiredHealthy"].as_i64().unwrap_or(0),
                budget["status"]["currentHealthy"].as_i64().unwrap_or(0)
            );
            status.causes.push(Cause::text("DisruptionBudget", "", text));
            return Err(status);
        }
        Ok(())
    }
}
