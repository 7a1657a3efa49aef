//! APIServices: one for each group and version that this server answers itself. Clients see by them what is
//! served, and may wait for the one of a new kind. Never forwards a request: those with a server of their own
//! are only kept.

use super::Registry;
use opdev_apimachinery::error::Cause;
use opdev_apimachinery::resource::metadata;
use opdev_object::facts::facts;
use opdev_storage::Key;
use serde_json::{Value, json};
use std::collections::BTreeSet;

const ID: &str = "apiregistration.k8s.io/apiservices";
/// Says that the server looks after it: from its start on, or for as long as there are definitions.
const MANAGED: &str = "kube-aggregator.kubernetes.io/automanaged";
/// The priorities of the groups of custom resources.
const OF_DEFINITIONS: (i64, i64) = (1000, 100);

/// Group, version, priority of the group, priority of the version. The group of APIServices itself has none.
const BUILT_IN: [(&str, &str, i64, i64); 22] = [
    ("", "v1", 18_000, 1),
    ("admissionregistration.k8s.io", "v1", 16_700, 15),
    ("apiextensions.k8s.io", "v1", 16_700, 15),
    ("apps", "v1", 17_800, 15),
    ("authentication.k8s.io", "v1", 17_700, 15),
    ("authorization.k8s.io", "v1", 17_600, 15),
    ("autoscaling", "v1", 17_500, 15),
    ("autoscaling", "v2", 17_500, 30),
    ("batch", "v1", 17_400, 15),
    ("certificates.k8s.io", "v1", 17_300, 15),
    ("coordination.k8s.io", "v1", 16_500, 15),
    ("discovery.k8s.io", "v1", 16_200, 15),
    ("events.k8s.io", "v1", 17_750, 15),
    ("flowcontrol.apiserver.k8s.io", "v1", 16_100, 21),
    ("networking.k8s.io", "v1", 17_200, 15),
    ("node.k8s.io", "v1", 16_300, 15),
    ("policy", "v1", 17_100, 15),
    ("rbac.authorization.k8s.io", "v1", 17_000, 15),
    ("resource.k8s.io", "v1", 16_200, 21),
    ("scheduling.k8s.io", "v1", 16_600, 15),
    ("storage.k8s.io", "v1", 16_800, 15),
    ("storagemigration.k8s.io", "v1", 15_800, 15),
];

/// One group and version, which this server answers.
fn local(group: &str, version: &str, (group_priority, version_priority): (i64, i64), managed: &str) -> Value {
    json!({
        "metadata": {"name": format!("{version}.{group}"), "labels": {MANAGED: managed}},
        "spec": {"group": group, "version": version, "groupPriorityMinimum": group_priority,
            "versionPriority": version_priority},
    })
}

/// The APIServices of the built-in groups, with their resource.
pub(super) fn built_in() -> impl Iterator<Item = (&'static str, Value)> {
    let served = |group: &str| facts().resources().iter().any(|one| one.group == group);
    BUILT_IN
        .iter()
        .filter(move |(group, ..)| served(group))
        .map(|(group, version, priority, own)| (ID, local(group, version, (*priority, *own), "onstart")))
}

impl Registry {
    /// Brings those of a group of custom resources up to date.
    pub(super) fn register_group(&self, group: &str) {
        let served = self.catalog.served();
        let custom =
            served.resources().iter().filter(|resource| resource.custom.is_some() && resource.group == group);
        let versions: BTreeSet<&str> = custom.map(|resource| resource.version.as_str()).collect();
        for version in &versions {
            // Somebody may have made it himself; it is his then.
            if let Err(why) = self.make(ID, "", local(group, version, OF_DEFINITIONS, "true")) {
                tracing::warn!(group, version, %why, "no APIService could be made");
            }
        }
        for found in self.store.list(ID, None).items {
            let name = &found.key().name;
            let of_group = name.split_once('.').filter(|(_, of)| *of == group);
            let over = of_group.is_some_and(|(version, _)| !versions.contains(version));
            if over && found.attributes().labels()[MANAGED] == "true" {
                // Whoever was faster leaves nothing to do.
                let _ = self.store.remove(ID, &Key::new("", name), found.revision, None);
            }
        }
    }
}

/// The name of an APIService says its version and group.
pub(crate) fn validate(object: &Value, causes: &mut Vec<Cause>) {
    let (spec, name) = (&object["spec"], metadata::text(object, "name"));
    let text = |field: &str| spec[field].as_str().unwrap_or_default();
    let required = format!("{}.{}", text("version"), text("group"));
    if name != required {
        let detail = format!("must be `spec.version+\".\"+spec.group`: {required:?}");
        causes.push(Cause::invalid("metadata.name", &Value::from(name), &detail));
    }
    for (field, most) in [("groupPriorityMinimum", 20_000), ("versionPriority", 1000)] {
        let number = spec[field].as_i64().unwrap_or(0);
        if !(1..=most).contains(&number) {
            let detail = format!("must be positive and less than {most}");
            causes.push(Cause::invalid(format!("spec.{field}"), &Value::from(number), &detail));
        }
    }
}

/// This server answers the requests for it, so it is available at once.
pub(crate) fn say_available(object: &mut Value, now: jiff::Timestamp) {
    if object["spec"]["service"].is_null() {
        object["status"] = json!({"conditions": [{"type": "Available", "status": "True",
            "lastTransitionTime": metadata::seconds(now), "reason": "Local",
            "message": "Local APIServices are always available"}]});
    }
}
