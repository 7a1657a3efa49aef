//! Eviction: deletes a pod unless a disruption budget forbids it, and takes what it may from the budget.
//! Never waits for the controller that counts pods: what a budget allows is what its status says.

use super::Registry;
use super::context::Context;
use super::update::{Change, UpdateMethod};
use crate::options::DeleteOptions;
use opdev_apimachinery::attributes::PodField;
use opdev_apimachinery::error::{Cause, Status};
use opdev_apimachinery::identity::User;
use opdev_apimachinery::part::Part;
use opdev_apimachinery::resource::{Resource, metadata};
use opdev_apis::defaults;
use opdev_object::selector::LabelSelector;
use opdev_storage::{Key, Stored};
use serde_json::{Map, Value, json};
use std::sync::Arc;

const BUDGETS: &str = "policy/poddisruptionbudgets";
const VIOLATED: &str = "Cannot evict pod as it would violate the pod's disruption budget.";
/// So many evictions may wait for the controller to notice them.
const MOST_UNNOTICED: usize = 2000;

impl Registry {
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
        let known = pod.attributes();
        // Such a pod disrupts nobody any more, or not yet.
        let free = known.pod_finished() || known.pod(PodField::Phase) == "Pending" || known.deleting();
        let budget = if free { None } else { self.budget_of(&pod.value())? };
        let unhealthy = budget.as_ref().filter(|budget| may_go_unhealthy(&budget.value(), &pod.value()));
        if let (Some(budget), None) = (&budget, unhealthy) {
            self.take_disruption(ctx, budget, &key.name)?;
        }
        let marked = if ctx.dry_run { pod.clone() } else { self.mark_evicted(ctx, resource, key)? };
        let mut options = options.clone();
        let pinned = unhealthy.filter(|_| options.resource_version.is_none());
        if pinned.is_some() {
            // A pod that has become ready meanwhile counts.
            options.resource_version = Some(marked.revision.to_string());
        } else if options.resource_version.as_deref() == Some(&pod.revision.to_string()) {
            options.resource_version = Some(marked.revision.to_string());
        }
        match (self.delete(ctx, resource, key, &options), pinned) {
            (Err(status), Some(budget)) if status.code == 409 => Err(in_progress(&budget.value())),
            (done, _) => done.map(|_| ()),
        }
    }

    /// The budget that covers a pod.
    fn budget_of(&self, pod: &Value) -> Result<Option<Arc<Stored>>, Status> {
        let none = Map::new();
        let labels = pod["metadata"]["labels"].as_object().unwrap_or(&none);
        let mut budgets = self.store.list(BUDGETS, Some(metadata::text(pod, "namespace"))).items;
        budgets.retain(|budget| {
            let selector = LabelSelector::from_json(&budget.value()["spec"]["selector"]);
            selector.is_ok_and(|selector| selector.matches(labels))
        });
        if budgets.len() > 1 {
            let why = "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.";
            return Err(Status::new(500, "", why));
        }
        Ok(budgets.pop())
    }

    /// Takes one disruption from a budget, or says why there is none to take.
    fn take_disruption(&self, ctx: &Context, budget: &Arc<Stored>, pod: &str) -> Result<(), Status> {
        let resource = self.resource(BUDGETS)?;
        let mut own =
            Context::new(&User::authenticated("system:apiserver", ["system:masters"]), "kube-apiserver");
        own.dry_run = ctx.dry_run;
        let now = metadata::seconds(self.now());
        let key = budget.key().clone();
        let change =
            Change { resource: &resource, key: &key, part: Part::Status, way: UpdateMethod::Replace };
        self.update(&mut own, change, &mut |_, current| {
            check(current)?;
            let mut object = current.clone();
            let status = defaults::sub(&mut object, "status");
            let left = status["disruptionsAllowed"].as_i64().unwrap_or(0) - 1;
            status["disruptionsAllowed"] = Value::from(left);
            defaults::sub(status, "disruptedPods")[pod] = Value::from(now.as_str());
            // A budget of which no controller has said anything has no conditions.
            for condition in defaults::each(status, "conditions")
                .filter(|c| left == 0 && c["type"] == "DisruptionAllowed" && c["status"] != "False")
            {
                condition["status"] = Value::from("False");
                condition["reason"] = Value::from("InsufficientPods");
                condition["lastTransitionTime"] = Value::from(now.as_str());
            }
            Ok(object)
        })?;
        Ok(())
    }

    /// Writes into the status of a pod why it goes.
    fn mark_evicted(&self, ctx: &Context, resource: &Resource, key: &Key) -> Result<Arc<Stored>, Status> {
        let mut own = ctx.clone();
        // The Eviction was admitted already.
        own.skip_admission = true;
        let now = metadata::seconds(self.now());
        // Nobody becomes the owner of this: the server writes it itself.
        let change = Change { resource, key, part: Part::Status, way: UpdateMethod::Apply };
        self.update(&mut own, change, &mut |_, current| {
            let mut object = current.clone();
            let status = defaults::sub(&mut object, "status");
            defaults::put(status, "conditions", json!([]));
            if let Some(list) = status["conditions"].as_array_mut()
                && !list.iter().any(|c| c["type"] == "DisruptionTarget" && c["status"] == "True")
            {
                list.retain(|condition| condition["type"] != "DisruptionTarget");
                list.push(json!({"type": "DisruptionTarget", "status": "True", "lastProbeTime": null,
                    "lastTransitionTime": now, "reason": "EvictionByEvictionAPI",
                    "message": "Eviction API: evicting"}));
            }
            Ok(object)
        })
    }
}

/// True where a pod that is not ready goes without counting.
fn may_go_unhealthy(budget: &Value, pod: &Value) -> bool {
    let conditions = pod["status"]["conditions"].as_array();
    let ready = conditions.into_iter().flatten().any(|c| c["type"] == "Ready" && c["status"] == "True");
    if ready {
        return false;
    }
    let status = |field: &str| budget["status"][field].as_i64().unwrap_or(0);
    budget["spec"]["unhealthyPodEvictionPolicy"] == "AlwaysAllow"
        || (status("desiredHealthy") > 0 && status("currentHealthy") >= status("desiredHealthy"))
}

/// Refuses where a budget allows no disruption now.
fn check(budget: &Value) -> Result<(), Status> {
    let status = |field: &str| budget["status"][field].as_i64().unwrap_or(0);
    let forbidden = |why: &str| {
        Err(Status::forbidden("policy", "poddisruptionbudget", metadata::text(budget, "name"), why))
    };
    if status("observedGeneration") < opdev_object::meta::generation(budget) {
        return Err(in_progress(budget));
    }
    if status("disruptionsAllowed") < 0 {
        return forbidden("pdb disruptions allowed is negative");
    }
    if budget["status"]["disruptedPods"].as_object().is_some_and(|pods| pods.len() > MOST_UNNOTICED) {
        return forbidden("DisruptedPods map too big - too many evictions not confirmed by PDB controller");
    }
    if status("disruptionsAllowed") > 0 {
        return Ok(());
    }
    let text = format!(
        "The disruption budget {} needs {} healthy pods and has {} currently",
        metadata::text(budget, "name"),
        status("desiredHealthy"),
        status("currentHealthy")
    );
    let mut refused = Status::too_many_requests(VIOLATED, 0);
    refused.causes.push(Cause::text("DisruptionBudget", "", text));
    Err(refused)
}

/// The 429 of a budget that is not up to date.
fn in_progress(budget: &Value) -> Status {
    let name = metadata::text(budget, "name");
    let mut refused = Status::too_many_requests(VIOLATED, 10);
    let text = format!("The disruption budget {name} is still being processed by the server.");
    refused.causes.push(Cause::text("DisruptionBudget", "", text));
    refused
}
