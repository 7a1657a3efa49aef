//! Warnings of volumes, claims to them, and their classes.

use super::told::{Warnings, annotations, fraction, old_label, old_labels};
use crate::items;
use serde_json::Value;

const CLASS: (&str, &str) = (
    "volume.beta.kubernetes.io/storage-class",
    "deprecated since v1.8; use \"storageClassName\" attribute instead",
);

/// Kinds of volumes that kubelets do not mount any more, or not for long: the field, its name in warnings,
/// the advice.
pub(super) const OLD_VOLUMES: [(&str, &str, &str); 9] = [
    ("photonPersistentDisk", "photonPersistentDisk", "deprecated in v1.11, non-functional in v1.16+"),
    ("gitRepo", "gitRepo", "deprecated in v1.11, and disabled by default in v1.33+"),
    ("scaleIO", "scaleIO", "deprecated in v1.16, non-functional in v1.22+"),
    ("flocker", "flocker", "deprecated in v1.22, non-functional in v1.25+"),
    ("storageos", "storageOS", "deprecated in v1.22, non-functional in v1.25+"),
    ("quobyte", "quobyte", "deprecated in v1.22, non-functional in v1.25+"),
    ("glusterfs", "glusterfs", "deprecated in v1.25, non-functional in v1.26+"),
    ("cephfs", "cephfs", "deprecated in v1.28, non-functional in v1.31+"),
    ("rbd", "rbd", "deprecated in v1.28, non-functional in v1.31+"),
];

/// Warns of a claim.
pub fn claim(told: &mut Warnings, object: &Value, _current: Option<&Value>) {
    annotations(told, "metadata.annotations", &object["metadata"], &[CLASS]);
    claim_spec(told, &object["spec"], "spec");
}

/// Warns of a claim's spec.
pub(super) fn claim_spec(told: &mut Warnings, spec: &Value, path: &str) {
    for part in ["requests", "limits"] {
        fraction(told, &format!("{path}.resources.{part}"), &spec["resources"][part], "storage");
    }
}

/// Warns of a volume.
pub fn volume(told: &mut Warnings, object: &Value, _current: Option<&Value>) {
    const OPTIONS: (&str, &str) = (
        "volume.beta.kubernetes.io/mount-options",
        "deprecated since v1.31; use \"mountOptions\" attribute instead",
    );
    annotations(told, "metadata.annotations", &object["metadata"], &[CLASS, OPTIONS]);
    let spec = &object["spec"];
    if spec["persistentVolumeReclaimPolicy"] == "Recycle" {
        told.warn(
            "spec.persistentVolumeReclaimPolicy: The Recycle reclaim policy is deprecated. Instead, the \
             recommended approach is to use dynamic provisioning.",
        );
    }
    let terms = &spec["nodeAffinity"]["required"]["nodeSelectorTerms"];
    for (i, term) in items(terms).iter().enumerate() {
        old_expressions(told, term, &format!("spec.nodeAffinity.required.nodeSelectorTerms[{i}]"));
    }
    // In this order a real server looks at them.
    for name in ["cephfs", "photonPersistentDisk", "scaleIO", "storageos", "glusterfs", "rbd"] {
        let old = OLD_VOLUMES.iter().find(|(field, ..)| *field == name && !spec[name].is_null());
        if let Some((_, shown, advice)) = old {
            told.warn(format!("spec.{shown}: {advice}"));
        }
    }
}

/// Warns of the old labels in the expressions of a selector.
pub(super) fn old_expressions(told: &mut Warnings, term: &Value, place: &str) {
    for (i, expression) in items(&term["matchExpressions"]).iter().enumerate() {
        old_expression(told, expression, &format!("{place}.matchExpressions[{i}]"));
    }
}

/// Warns of an expression about an old label of nodes.
pub(super) fn old_expression(told: &mut Warnings, expression: &Value, place: &str) {
    let key = expression["key"].as_str().unwrap_or_default();
    if let Some(advice) = old_label(key) {
        told.warn(format!("{place}.key: {key} is {advice}"));
    }
}

/// Warns of a StorageClass.
pub fn storage_class(told: &mut Warnings, object: &Value, _current: Option<&Value>) {
    for (i, topology) in items(&object["allowedTopologies"]).iter().enumerate() {
        for (j, expression) in items(&topology["matchLabelExpressions"]).iter().enumerate() {
            if let Some(advice) = expression["key"].as_str().and_then(old_label) {
                told.warn(format!("allowedTopologies[{i}].matchLabelExpressions[{j}].key: {advice}"));
            }
        }
    }
}

/// Warns of a CSIStorageCapacity.
pub fn capacity(told: &mut Warnings, object: &Value, _current: Option<&Value>) {
    let topology = &object["nodeTopology"];
    old_expressions(told, topology, "nodeTopology");
    for (name, advice) in old_labels(&topology["matchLabels"]) {
        told.warn(format!("nodeTopology.matchLabels.{name}: {advice}"));
    }
}

/// Warns of a CSIDriver that gets tokens in a place where they may be logged.
pub fn driver(told: &mut Warnings, object: &Value, current: Option<&Value>) {
    let (spec, tokens) = (&object["spec"], &object["spec"]["tokenRequests"]);
    let changed = current.is_none_or(|current| current["spec"]["tokenRequests"] != *tokens);
    if changed && !items(tokens).is_empty() && spec["serviceAccountTokenInSecrets"].is_null() {
        told.warn(
            "spec.serviceAccountTokenInSecrets is unset; if supported by this CSI driver, set to true to \
             prevent possible logging of tokens in volume attributes",
        );
    }
}
