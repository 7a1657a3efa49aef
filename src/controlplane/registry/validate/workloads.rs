//! What is refused of the kinds that make pods.

use super::{absent, at_least_zero, immutable, pod};
use crate::error::Cause;
use crate::registry::Resource;
use opdev_object::selector::LabelSelector;
use serde_json::{Map, Value};

/// Deployments, replica sets, stateful sets, daemon sets: a selector that matches the template.
pub(super) fn selecting(resource: &Resource, spec: &Value, causes: &mut Vec<Cause>) {
    at_least_zero("spec.replicas", &spec["replicas"], causes);
    at_least_zero("spec.minReadySeconds", &spec["minReadySeconds"], causes);
    at_least_zero("spec.revisionHistoryLimit", &spec["revisionHistoryLimit"], causes);
    let selector = &spec["selector"];
    let is_empty = |field: &str| match &selector[field] {
        Value::Array(list) => list.is_empty(),
        Value::Object(map) => map.is_empty(),
        _ => true,
    };
    let labels = &spec["template"]["metadata"]["labels"];
    if selector.is_null() {
        causes.push(Cause::required("spec.selector", ""));
    } else if is_empty("matchLabels") && is_empty("matchExpressions") {
        let detail = format!("empty selector is invalid for {}", resource.singular);
        causes.push(Cause::invalid("spec.selector", selector, &detail));
    } else {
        let none = Map::new();
        let own = labels.as_object().unwrap_or(&none);
        match LabelSelector::from_json(selector) {
            Ok(parsed) if parsed.matches(own) => {}
            Ok(_) => {
                let shown = if labels.is_null() { Value::Object(Map::new()) } else { labels.clone() };
                let detail = "`selector` does not match template `labels`";
                causes.push(Cause::invalid("spec.template.metadata.labels", &shown, detail));
            }
            Err(error) => causes.push(Cause::invalid("spec.selector", selector, &error.to_string())),
        }
    }
    let template = &spec["template"]["spec"];
    if resource.plural == "statefulsets" {
        // Upstream looks no further into the template of a stateful set: its volumes also come from claims.
        pod::restart_policy(template, "spec.template.spec", &["Always"], causes);
    } else {
        pod::spec(template, "spec.template.spec", Some(&["Always"]), causes);
    }
}

/// A job's spec at `path`.
pub(super) fn job(spec: &Value, path: &str, causes: &mut Vec<Cause>) {
    for field in
        ["parallelism", "completions", "backoffLimit", "activeDeadlineSeconds", "ttlSecondsAfterFinished"]
    {
        at_least_zero(&format!("{path}.{field}"), &spec[field], causes);
    }
    let template = &spec["template"]["spec"];
    let place = format!("{path}.template.spec");
    if template["restartPolicy"] == "Always" || absent(&template["restartPolicy"]) {
        let detail = "valid values: \"OnFailure\", \"Never\"";
        causes.push(Cause::required(format!("{place}.restartPolicy"), detail));
    }
    if spec["completionMode"] == "Indexed" && spec["completions"].is_null() {
        let detail = "when completion mode is Indexed";
        causes.push(Cause::required(format!("{path}.completions"), detail));
    }
    pod::spec(template, &place, None, causes);
}

/// Most of a job never changes.
pub(super) fn job_update(object: &Value, current: &Value, causes: &mut Vec<Cause>) {
    let (new, old) = (&object["spec"], &current["spec"]);
    if new["completionMode"] != "Indexed" {
        immutable("spec.completions", &new["completions"], &old["completions"], causes);
    }
    immutable("spec.selector", &new["selector"], &old["selector"], causes);
    let suspended = old["suspend"] == true && current["status"]["startTime"].is_null();
    if !suspended {
        immutable("spec.template", &new["template"], &old["template"], causes);
    }
    immutable("spec.completionMode", &new["completionMode"], &old["completionMode"], causes);
}

/// Only a few fields of a stateful set change.
pub(super) fn stateful_set_update(object: &Value, current: &Value, causes: &mut Vec<Cause>) {
    const FREE: [&str; 7] = [
        "replicas",
        "ordinals",
        "template",
        "updateStrategy",
        "revisionHistoryLimit",
        "persistentVolumeClaimRetentionPolicy",
        "minReadySeconds",
    ];
    let frozen = |object: &Value| {
        let mut spec = object["spec"].as_object().cloned().unwrap_or_default();
        spec.retain(|key, _| !FREE.contains(&key.as_str()));
        for claim in spec.get_mut("volumeClaimTemplates").and_then(Value::as_array_mut).into_iter().flatten()
        {
            // A template's status is nobody's wish.
            if let Some(map) = claim.as_object_mut() {
                map.remove("status");
            }
        }
        spec
    };
    if frozen(object) != frozen(current) {
        let detail = "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', \
                      'updateStrategy', 'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and \
                      'minReadySeconds' are forbidden";
        causes.push(Cause::forbidden("spec", detail));
    }
}
