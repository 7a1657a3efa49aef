//! Selectors of workloads, as the API server has them.

use opdev_object::meta::ObjectKey;
use serde_json::Value;
use std::collections::BTreeMap;

/// Kinds whose selector owns pods.
const WORKLOADS: [&str; 3] = ["Deployment", "StatefulSet", "DaemonSet"];

/// The labels that a workload selects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Selects(BTreeMap<String, String>);

impl Selects {
    /// Reads the selector of a workload. `None` for other kinds, and where it is more than a set of labels.
    pub(crate) fn of(key: &ObjectKey, object: &Value) -> Option<Selects> {
        if key.group != "apps" || !WORKLOADS.contains(&key.kind.as_str()) {
            return None;
        }
        let selector = &object["spec"]["selector"];
        let expressions = selector["matchExpressions"].as_array().is_some_and(|all| !all.is_empty());
        let labels =
            selector["matchLabels"].as_object().filter(|labels| !labels.is_empty() && !expressions)?;
        let label = |(name, value): (&String, &Value)| Some((name.clone(), value.as_str()?.to_owned()));
        Some(Selects(labels.iter().filter_map(label).collect()))
    }

    /// As `kubectl get --selector` takes it.
    pub fn text(&self) -> String {
        let labels: Vec<String> = self.0.iter().map(|(name, value)| format!("{name}={value}")).collect();
        labels.join(",")
    }
}
