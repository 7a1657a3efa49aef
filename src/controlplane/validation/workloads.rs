//! Refusals of deployments, replica sets, stateful sets and daemon sets.

use super::checks::{
    absent, at_least_zero, at_most_all, immutable, items, named, one_of, selector, selects_all, share,
    share_value, wrong_struct,
};
use super::{pod, storage};
use opdev_apimachinery::error::Cause;
use opdev_apimachinery::resource::names;
use opdev_apimachinery::version::since;
use opdev_object::selector::LabelSelector;
use serde_json::{Map, Value};

/// A deployment's spec.
pub fn deployment(spec: &Value, causes: &mut Vec<Cause>) {
    at_least_zero("spec.replicas", &spec["replicas"], causes);
    selecting(spec, "deployment", causes);
    if labels_match(spec, causes) {
        pod::template(&spec["template"], "spec.template", causes);
        always(spec, "ReplicaSet", causes);
    }
    strategy(&spec["strategy"], causes);
    at_least_zero("spec.minReadySeconds", &spec["minReadySeconds"], causes);
    at_least_zero("spec.revisionHistoryLimit", &spec["revisionHistoryLimit"], causes);
    let deadline = &spec["progressDeadlineSeconds"];
    at_least_zero("spec.progressDeadlineSeconds", deadline, causes);
    let ready = spec["minReadySeconds"].as_i64().unwrap_or(0);
    if deadline.as_i64().is_some_and(|seconds| seconds <= ready) {
        let detail = "must be greater than minReadySeconds";
        causes.push(Cause::invalid("spec.progressDeadlineSeconds", deadline, detail));
    }
}

/// A replica set's spec.
pub fn replica_set(spec: &Value, causes: &mut Vec<Cause>) {
    at_least_zero("spec.replicas", &spec["replicas"], causes);
    at_least_zero("spec.minReadySeconds", &spec["minReadySeconds"], causes);
    selecting(spec, "replicaset", causes);
    if labels_match(spec, causes) {
        pod::template(&spec["template"], "spec.template", causes);
        always(spec, "ReplicaSet", causes);
    }
}

/// A replication controller's spec, whose selector is a map of labels.
pub fn replication_controller(spec: &Value, causes: &mut Vec<Cause>) {
    at_least_zero("spec.minReadySeconds", &spec["minReadySeconds"], causes);
    let (none, labels) = (Map::new(), &spec["template"]["metadata"]["labels"]);
    let selector = spec["selector"].as_object().unwrap_or(&none);
    if selector.is_empty() {
        causes.push(Cause::required("spec.selector", ""));
    }
    at_least_zero("spec.replicas", &spec["replicas"], causes);
    if spec["template"].is_null() {
        return causes.push(Cause::required("spec.template", ""));
    }
    if selector.iter().any(|(key, value)| labels[key] != *value) {
        causes.push(mismatch(labels));
    }
    pod::template(&spec["template"], "spec.template", causes);
    always(spec, "ReplicationController", causes);
}

/// A daemon set's spec.
pub fn daemon_set(spec: &Value, causes: &mut Vec<Cause>) {
    selecting(spec, "daemonset", causes);
    labels_match(spec, causes);
    pod::template(&spec["template"], "spec.template", causes);
    always(spec, "DaemonSet", causes);
    at_least_zero("spec.minReadySeconds", &spec["minReadySeconds"], causes);
    daemon_update_strategy(&spec["updateStrategy"], causes);
    at_least_zero("spec.revisionHistoryLimit", &spec["revisionHistoryLimit"], causes);
}

fn daemon_update_strategy(strategy: &Value, causes: &mut Vec<Cause>) {
    let (place, rolling) = ("spec.updateStrategy.rollingUpdate", &strategy["rollingUpdate"]);
    match strategy["type"].as_str().unwrap_or_default() {
        "OnDelete" => {}
        "RollingUpdate" if rolling.is_null() => causes.push(Cause::required(place, "")),
        "RollingUpdate" => {
            let parts =
                ["maxUnavailable", "maxSurge"].map(|name| (format!("{place}.{name}"), &rolling[name]));
            for (field, value) in &parts {
                share(field, value, causes);
            }
            for (field, value) in &parts {
                at_most_all(field, value, causes);
            }
            let [(gone_field, gone), (more_field, more)] = &parts;
            match (share_value(gone) != 0, share_value(more) != 0) {
                (true, true) => {
                    let detail = "may not be set when maxUnavailable is non-zero";
                    causes.push(Cause::invalid(more_field.as_str(), more, detail));
                }
                (false, false) => {
                    causes.push(Cause::required(gone_field.as_str(), "cannot be 0 when maxSurge is 0"));
                }
                (true, false) | (false, true) => {}
            }
        }
        _ => {
            let known = ["OnDelete", "RollingUpdate"];
            causes.push(Cause::not_supported("spec.updateStrategy", strategy, &known));
        }
    }
}

/// A stateful set's spec, which may replace another.
pub fn stateful_set(spec: &Value, current: Option<&Value>, causes: &mut Vec<Cause>) {
    match spec["podManagementPolicy"].as_str().unwrap_or_default() {
        "OrderedReady" | "Parallel" => {}
        "" => causes.push(Cause::required("spec.podManagementPolicy", "")),
        _ => {
            let detail = "must be 'OrderedReady' or 'Parallel'";
            causes.push(Cause::invalid("spec.podManagementPolicy", &spec["podManagementPolicy"], detail));
        }
    }
    update_strategy(&spec["updateStrategy"], causes);
    for field in ["whenDeleted", "whenScaled"] {
        let policy = &spec["persistentVolumeClaimRetentionPolicy"][field];
        let place = format!("spec.persistentVolumeClaimRetentionPolicy.{field}");
        if !absent(policy) {
            one_of(&place, policy, &["Retain", "Delete"], causes);
        }
    }
    if current.is_none() {
        for (i, claim) in items(&spec["volumeClaimTemplates"]).iter().enumerate() {
            storage::claim(&claim["spec"], &format!("spec.volumeClaimTemplates[{i}].spec"), causes);
        }
    }
    at_least_zero("spec.replicas", &spec["replicas"], causes);
    at_least_zero("spec.minReadySeconds", &spec["minReadySeconds"], causes);
    at_least_zero("spec.ordinals.start", &spec["ordinals"]["start"], causes);
    if current.is_none() && !absent(&spec["serviceName"]) {
        named("spec.serviceName", &spec["serviceName"], names::label, causes);
    }
    selecting(spec, "statefulset", causes);
    labels_match(spec, causes);
    pod::template(&with_claims(spec), "spec.template", causes);
    always(spec, "StatefulSet", causes);
}

/// The template of a stateful set as its pods will have it: claims are volumes, names are given later.
fn with_claims(spec: &Value) -> Value {
    let mut template = spec["template"].clone();
    if let Some(pod) = template["spec"].as_object_mut() {
        pod.remove("subdomain");
        pod.remove("hostname");
        let claims: Vec<Value> = items(&spec["volumeClaimTemplates"])
            .iter()
            .map(|claim| {
                let name = &claim["metadata"]["name"];
                serde_json::json!({"name": name, "persistentVolumeClaim": {"claimName": name}})
            })
            .collect();
        if !claims.is_empty() {
            let own = pod.remove("volumes").unwrap_or_default();
            let known = |volume: &&Value| !claims.iter().any(|claim| claim["name"] == volume["name"]);
            let rest: Vec<Value> = items(&own).iter().filter(known).cloned().collect();
            pod.insert("volumes".to_owned(), Value::Array([claims, rest].concat()));
        }
    }
    template
}

/// The selector itself.
fn selecting(spec: &Value, kind: &str, causes: &mut Vec<Cause>) {
    let found = &spec["selector"];
    if found.is_null() {
        causes.push(Cause::required("spec.selector", ""));
        return;
    }
    selector("spec.selector", found, causes);
    if selects_all(found) {
        let detail = format!("empty selector is invalid for {kind}");
        causes.push(Cause::invalid("spec.selector", found, &detail));
    }
}

/// Labels of a template that its selector does not select.
pub fn mismatch(labels: &Value) -> Cause {
    Cause::invalid("spec.template.metadata.labels", labels, "`selector` does not match template `labels`")
}

/// Prints labels that were sent as `{}` as such: what is validated has none.
pub fn print_emptied_labels(causes: &mut [Cause]) {
    let none = mismatch(&Value::Null);
    for cause in causes.iter_mut().filter(|cause| **cause == none) {
        *cause = mismatch(&Value::Object(Map::new()));
    }
}

/// Checks that the selector selects the template. Says whether the selector could be read at all.
fn labels_match(spec: &Value, causes: &mut Vec<Cause>) -> bool {
    let found = &spec["selector"];
    let labels = &spec["template"]["metadata"]["labels"];
    let mismatch = || mismatch(labels);
    if found.is_null() {
        causes.push(mismatch());
        return true;
    }
    if selects_all(found) {
        return true;
    }
    let none = Map::new();
    match LabelSelector::from_json(found) {
        Ok(parsed) => {
            if !parsed.matches(labels.as_object().unwrap_or(&none)) {
                causes.push(mismatch());
            }
            true
        }
        Err(_) => {
            causes.push(Cause::invalid("spec.selector", found, "invalid label selector"));
            false
        }
    }
}

/// Fields of a template that only a pod that always runs may have.
fn always(spec: &Value, kind: &str, causes: &mut Vec<Cause>) {
    let template = &spec["template"]["spec"];
    if template["restartPolicy"] != "Always" {
        let value = Value::from(template["restartPolicy"].as_str().unwrap_or_default());
        causes.push(Cause::not_supported("spec.template.spec.restartPolicy", &value, &["Always"]));
    }
    if !template["activeDeadlineSeconds"].is_null() {
        let detail = format!("activeDeadlineSeconds in {kind} is not Supported");
        causes.push(Cause::forbidden("spec.template.spec.activeDeadlineSeconds", &detail));
    }
}

fn strategy(strategy: &Value, causes: &mut Vec<Cause>) {
    let rolling = &strategy["rollingUpdate"];
    match strategy["type"].as_str().unwrap_or_default() {
        "Recreate" if rolling.is_null() => {}
        "Recreate" => {
            let detail = "may not be specified when strategy `type` is 'Recreate'";
            causes.push(Cause::forbidden("spec.strategy.rollingUpdate", detail));
        }
        "RollingUpdate" => {
            let (gone, more) = (&rolling["maxUnavailable"], &rolling["maxSurge"]);
            share("spec.strategy.rollingUpdate.maxUnavailable", gone, causes);
            share("spec.strategy.rollingUpdate.maxSurge", more, causes);
            if share_value(gone) == 0 && share_value(more) == 0 {
                let detail = "may not be 0 when `maxSurge` is 0";
                causes.push(Cause::invalid("spec.strategy.rollingUpdate.maxUnavailable", gone, detail));
            }
            at_most_all("spec.strategy.rollingUpdate.maxUnavailable", gone, causes);
        }
        _ => {
            let parts = match rolling {
                Value::Null => "null".to_owned(),
                _ => format!(
                    "{{\"MaxUnavailable\":{},\"MaxSurge\":{}}}",
                    rolling["maxUnavailable"], rolling["maxSurge"]
                ),
            };
            let shown = format!("{{\"Type\":{},\"RollingUpdate\":{parts}}}", strategy["type"]);
            let text =
                format!("Unsupported value: {shown}: supported values: \"Recreate\", \"RollingUpdate\"");
            causes.push(Cause::text("FieldValueNotSupported", "spec.strategy", text));
        }
    }
}

fn update_strategy(strategy: &Value, causes: &mut Vec<Cause>) {
    let rolling = &strategy["rollingUpdate"];
    match strategy["type"].as_str().unwrap_or_default() {
        "" => causes.push(Cause::required("spec.updateStrategy", "")),
        "OnDelete" if rolling.is_null() => {}
        "OnDelete" => {
            let fields =
                [("Partition", &rolling["partition"]), ("MaxUnavailable", &rolling["maxUnavailable"])];
            let detail = "only allowed for updateStrategy 'RollingUpdate'";
            causes.push(wrong_struct("spec.updateStrategy.rollingUpdate", &fields, detail));
        }
        "RollingUpdate" => {
            at_least_zero("spec.updateStrategy.rollingUpdate.partition", &rolling["partition"], causes);
            let (field, most) =
                ("spec.updateStrategy.rollingUpdate.maxUnavailable", &rolling["maxUnavailable"]);
            if !most.is_null() {
                share(field, most, causes);
                if share_value(most) == 0 {
                    causes.push(Cause::invalid(field, most, "cannot be 0"));
                }
                at_most_all(field, most, causes);
            }
        }
        _ => {
            let fields = [("Type", &strategy["type"]), ("RollingUpdate", rolling)];
            let detail = "must be 'RollingUpdate' or 'OnDelete'";
            causes.push(wrong_struct("spec.updateStrategy", &fields, detail));
        }
    }
}

/// Only a few fields of a stateful set change.
pub fn stateful_set_update(object: &Value, current: &Value, causes: &mut Vec<Cause>) {
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
    let (new, old) = (frozen(object), frozen(current));
    if since(37) {
        for field in ["selector", "volumeClaimTemplates", "serviceName", "podManagementPolicy"] {
            let of = |spec: &Map<String, Value>| spec.get(field).cloned().unwrap_or_default();
            immutable(&format!("spec.{field}"), &of(&new), &of(&old), causes);
        }
    } else if new != old {
        let detail = "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', \
                      'updateStrategy', 'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and \
                      'minReadySeconds' are forbidden";
        causes.push(Cause::forbidden("spec", detail));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;
    use serde_json::json;

    #[test]
    fn a_daemon_set_replaces_some_pods_in_one_way_only() {
        let refused = |gone: Value, more: Value| {
            let mut causes = Vec::new();
            let rolling = json!({"maxUnavailable": gone, "maxSurge": more});
            daemon_update_strategy(&json!({"type": "RollingUpdate", "rollingUpdate": rolling}), &mut causes);
            causes.iter().map(|one| format!("{}: {}\n", one.field, one.message)).collect::<String>()
        };
        assert_eq!(refused(json!(1), json!(0)) + &refused(json!(0), json!("10%")), "");
        expect![[r#"
            spec.updateStrategy.rollingUpdate.maxUnavailable: Required value: cannot be 0 when maxSurge is 0
            spec.updateStrategy.rollingUpdate.maxSurge: Invalid value: 1: may not be set when maxUnavailable is non-zero
            spec.updateStrategy.rollingUpdate.maxUnavailable: Invalid value: "200%": must not be greater than 100%
        "#]]
        .assert_eq(&[refused(json!(0), json!(0)), refused(json!(1), json!(1)), refused(json!("200%"), json!(0))].concat());
    }
}
