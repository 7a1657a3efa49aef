//! HorizontalPodAutoscalers on a cluster without metrics: the target is kept within its bounds, and the
//! conditions say what is missing, in upstream's words. Never computes a number from load: simulated pods
//! have none.

use super::conditions::{self, NewCondition};
use super::fields::{self, count, deleting, int, list, name, stamp, text, with_status};
use super::pods;
use crate::contract::{Actor, Change, Controller, Key, NoteKind, Sync, View, Write};
use jiff::Timestamp;
use opdev_object::meta::{self, Gvk};
use serde_json::{Map, Value};
use std::sync::Arc;

/// See the module.
pub(crate) struct Autoscalers;

const RESOURCE: &str = "autoscaling/horizontalpodautoscalers";

impl Controller for Autoscalers {
    fn name(&self) -> &'static str {
        "horizontal-pod-autoscaler"
    }

    fn actor(&self) -> Actor {
        Actor::kube_controller_manager("system:serviceaccount:kube-system:horizontal-pod-autoscaler")
    }

    fn keys(&self, view: &dyn View, change: &Change) -> Vec<Key> {
        let Some(object) = change.object() else { return Vec::new() };
        if change.resource == RESOURCE {
            return change.key().into_iter().collect();
        }
        let targets = |scaler: &Arc<Value>| {
            let target = "/spec/scaleTargetRef";
            text(scaler, &format!("{target}/name")) == object.name()
                && text(scaler, &format!("{target}/kind")) == text(object, "/kind")
        };
        let Some(namespace) = object.namespace() else { return Vec::new() };
        let scalers = view.list(RESOURCE, Some(namespace));
        scalers
            .iter()
            .filter(|scaler| targets(scaler))
            .map(|scaler| Key::of_object(RESOURCE, scaler))
            .collect()
    }

    fn sync(&self, view: &dyn View, key: &Key, now: Timestamp) -> Sync {
        let Some(scaler) = key.read(view).filter(|scaler| !deleting(scaler)) else { return Sync::done() };
        let status = fields::status(&scaler);
        AutoscalerSync { scaler: &scaler, now, status, writes: Vec::new() }.run(view)
    }
}

/// One sync of one autoscaler.
struct AutoscalerSync<'a> {
    scaler: &'a Value,
    now: Timestamp,
    status: Map<String, Value>,
    writes: Vec<Write>,
}

impl AutoscalerSync<'_> {
    fn run(mut self, view: &dyn View) -> Sync {
        let target = self.scaler.pointer("/spec/scaleTargetRef").cloned().unwrap_or_default();
        let gvk = Gvk::from_api_version(text(&target, "/apiVersion"), text(&target, "/kind"));
        let resource = view.resource_of(&gvk.group, &gvk.kind);
        let found = resource
            .as_ref()
            .and_then(|info| view.get(&info.resource, meta::namespace(self.scaler), text(&target, "/name")));
        match (&resource, &found) {
            (Some(info), Some(object)) => match view.scale(&info.resource, object) {
                Some(scale) => self.bound(&info.resource, object, &scale),
                None => self.without_scale("the server could not find the requested resource"),
            },
            (Some(info), None) => {
                let group = if gvk.group.is_empty() { String::new() } else { format!(".{}", gvk.group) };
                let plural = plural(&info.resource);
                self.without_scale(&format!("{plural}/scale{group} {:?} not found", text(&target, "/name")));
            }
            (None, _) => {
                self.without_scale(&format!("no matches for kind {:?} in group {:?}", gvk.kind, gvk.group));
            }
        }
        if let Some(generation) = int(self.scaler, "/metadata/generation") {
            self.status.insert("observedGeneration".into(), generation.into());
        }
        if self.status != fields::status(self.scaler) {
            let object = with_status(self.scaler, std::mem::take(&mut self.status));
            self.writes.push(Write::UpdateStatus { resource: RESOURCE.into(), object });
        }
        Sync { writes: self.writes, ..Sync::default() }
    }

    /// Sets a condition; returns whether it has changed.
    fn say(&mut self, kind: &str, status: &str, reason: &str, message: &str) -> bool {
        let before = conditions::find(&self.status, kind).cloned();
        conditions::set(&mut self.status, NewCondition { kind, status, reason, message }, self.now);
        conditions::find(&self.status, kind) != before.as_ref()
    }

    fn tell(&mut self, kind: NoteKind, reason: &str, message: &str) {
        self.writes.push(pods::note(self.scaler, kind, reason, message));
    }

    /// Says that the target's scale cannot be had.
    fn without_scale(&mut self, why: &str) {
        let told = format!("the HPA controller was unable to get the target's current scale: {why}");
        if self.say("AbleToScale", "False", "FailedGetScale", &told) {
            self.tell(NoteKind::Warning, "FailedGetScale", why);
        }
    }

    /// Keeps the number within its bounds.
    fn bound(&mut self, resource: &str, object: &Value, scale: &Value) {
        let wanted = int(scale, "/spec/replicas").unwrap_or(0);
        let (least, most) =
            (int(self.scaler, "/spec/minReplicas").unwrap_or(1), count(self.scaler, "/spec/maxReplicas"));
        self.status.insert("currentReplicas".into(), count(scale, "/status/replicas").into());
        self.say(
            "AbleToScale",
            "True",
            "SucceededGetScale",
            "the HPA controller was able to get the target's current scale",
        );
        let (number, why) = match wanted {
            0 => {
                let told = "scaling is disabled since the replica count of the target is zero";
                self.say("ScalingActive", "False", "ScalingDisabled", told);
                self.status.insert("desiredReplicas".into(), 0.into());
                return;
            }
            above if above > most => (most, "Current number of replicas above Spec.MaxReplicas"),
            below if below < least => (least, "Current number of replicas below Spec.MinReplicas"),
            _ => return self.measure(scale),
        };
        self.writes.push(Write::Scale {
            resource: resource.to_owned(),
            namespace: meta::namespace(object).map(str::to_owned),
            name: name(object).to_owned(),
            replicas: number,
        });
        self.tell(NoteKind::Normal, "SuccessfulRescale", &format!("New size: {number}; reason: {why}"));
        let told = format!("the HPA controller was able to update the target scale to {number}");
        self.say("AbleToScale", "True", "SucceededRescale", &told);
        self.status.insert("desiredReplicas".into(), number.into());
        self.status.insert("lastScaleTime".into(), stamp(self.now).into());
    }

    /// Nobody measures anything here.
    fn measure(&mut self, scale: &Value) {
        if text(scale, "/status/selector").is_empty() {
            let told = "the HPA target's scale is missing a selector";
            if self.say("ScalingActive", "False", "InvalidSelector", told) {
                self.tell(NoteKind::Warning, "SelectorRequired", "selector is required");
            }
            return;
        }
        let metrics = list(self.scaler, "/spec/metrics").to_vec();
        let Some(first) = metrics.first() else { return };
        let resource = text(first, "/resource/name");
        let (reason, failed, value) = match text(first, "/type") {
            "Resource" => {
                let what = match text(first, "/resource/target/type") {
                    "Utilization" => format!("{resource} utilization"),
                    _ => format!("{resource} usage"),
                };
                let failed = format!(
                    "failed to get {what}: unable to get metrics for resource {resource}: unable to fetch metrics from \
                     resource metrics API: the server could not find the requested resource (get pods.metrics.k8s.io)"
                );
                ("FailedGetResourceMetric", failed, format!("{resource} resource"))
            }
            kind => {
                let failed = "no custom metrics API is served".to_owned();
                self.say("ScalingActive", "False", &format!("FailedGet{kind}Metric"), &failed);
                return;
            }
        };
        let told = format!("the HPA was unable to compute the replica count: {failed}");
        if self.say("ScalingActive", "False", reason, &told) {
            self.tell(NoteKind::Warning, reason, &failed);
            let all = metrics.len();
            let computed = format!(
                "invalid metrics ({all} invalid out of {all}), first error is: failed to get {value} metric value: {failed}"
            );
            self.tell(NoteKind::Warning, "FailedComputeMetricsReplicas", &computed);
        }
    }
}

/// The last part of `apps/deployments`.
fn plural(resource: &str) -> String {
    resource.rsplit('/').next().unwrap_or(resource).to_owned()
}
