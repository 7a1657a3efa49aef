//! What is refused of built-in kinds: enumerations and required fields by their schema, the rest by hand for the
//! kinds that operators write. Never changes an object. Custom resources are validated by their own schema.

mod networking;
mod pod;
mod workloads;

use super::{Resource, names};
use crate::error::Cause;
use opdev_object::schema::{FieldError, Reason};
use serde_json::Value;

/// Whether a field is missing, null, or an empty text.
pub(crate) fn absent(value: &Value) -> bool {
    value.is_null() || value.as_str().is_some_and(str::is_empty)
}

/// The items of a list; none where there is no list.
pub(crate) fn items(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

pub(crate) fn at_least_zero(field: &str, value: &Value, causes: &mut Vec<Cause>) {
    if value.as_i64().is_some_and(|n| n < 0) {
        causes.push(Cause::invalid(field, value, "must be greater than or equal to 0"));
    }
}

/// Refuses a changed field.
pub(crate) fn immutable(field: &str, new: &Value, old: &Value, causes: &mut Vec<Cause>) {
    if new != old {
        causes.push(Cause::invalid(field, new, "field is immutable"));
    }
}

/// What is wrong with a custom resource against its schema and rules. It may replace `current`, which is looked at as
/// it would be read today.
pub(crate) fn by_schema(resource: &Resource, object: &Value, current: Option<&Value>) -> Vec<Cause> {
    let schema = resource.schema();
    let old = current.map(|current| {
        let mut old = current.clone();
        opdev_object::schema::prune(&mut old, &schema);
        opdev_object::schema::default(&mut old, &schema);
        old
    });
    opdev_object::schema::admit(object, old.as_ref(), &schema).into_iter().map(cause).collect()
}

fn cause(error: FieldError) -> Cause {
    Cause::text(error.reason.cause(), error.path, error.message)
}

/// What is wrong with a new object of a built-in kind.
pub(crate) fn create(resource: &Resource, object: &Value) -> Vec<Cause> {
    let mut causes = Vec::new();
    kind(resource, object, &mut causes);
    for error in opdev_object::schema::validate(object, &resource.schema()) {
        // Types were checked when the object was read; formats and sizes are not part of a built-in's schema.
        let counts = matches!(error.reason, Reason::NotSupported | Reason::Required);
        if counts && !causes.iter().any(|known| known.field == error.path) {
            causes.push(cause(error));
        }
    }
    causes
}

/// What is wrong with an object of a built-in kind that is to replace another.
pub(crate) fn update(resource: &Resource, object: &Value, current: &Value) -> Vec<Cause> {
    let mut causes = create(resource, object);
    match resource.id().as_str() {
        "pods" => pod::update(object, current, &mut causes),
        "apps/deployments" | "apps/replicasets" | "apps/daemonsets" => {
            let (new, old) = (&object["spec"]["selector"], &current["spec"]["selector"]);
            immutable("spec.selector", new, old, &mut causes);
        }
        "apps/statefulsets" => workloads::stateful_set_update(object, current, &mut causes),
        "batch/jobs" => workloads::job_update(object, current, &mut causes),
        "services" => networking::service_update(object, current, &mut causes),
        "secrets" => {
            immutable("type", &object["type"], &current["type"], &mut causes);
            frozen(object, current, &mut causes);
        }
        "configmaps" => frozen(object, current, &mut causes),
        "persistentvolumeclaims" => claim_update(object, current, &mut causes),
        "rbac.authorization.k8s.io/rolebindings" | "rbac.authorization.k8s.io/clusterrolebindings"
            if object["roleRef"] != current["roleRef"] =>
        {
            causes.push(Cause::invalid("roleRef", &object["roleRef"], "cannot change roleRef"));
        }
        "storage.k8s.io/storageclasses" => {
            if object["parameters"] != current["parameters"] {
                causes.push(Cause::forbidden("parameters", "updates to parameters are forbidden."));
            }
            if object["provisioner"] != current["provisioner"] {
                causes.push(Cause::forbidden("provisioner", "updates to provisioner are forbidden."));
            }
        }
        "scheduling.k8s.io/priorityclasses" if object["value"] != current["value"] => {
            causes.push(Cause::forbidden("value", "may not be changed in an update."));
        }
        _ => {}
    }
    causes
}

fn kind(resource: &Resource, object: &Value, causes: &mut Vec<Cause>) {
    let spec = &object["spec"];
    match resource.id().as_str() {
        "pods" => pod::spec(spec, "spec", None, causes),
        "apps/deployments" | "apps/replicasets" | "apps/statefulsets" | "apps/daemonsets" => {
            workloads::selecting(resource, spec, causes);
        }
        "batch/jobs" => workloads::job(spec, "spec", causes),
        "batch/cronjobs" => {
            if absent(&spec["schedule"]) {
                causes.push(Cause::required("spec.schedule", ""));
            }
            workloads::job(&spec["jobTemplate"]["spec"], "spec.jobTemplate.spec", causes);
        }
        "services" => networking::service(spec, causes),
        "networking.k8s.io/ingresses" => networking::ingress(spec, causes),
        "configmaps" => {
            for field in ["data", "binaryData"] {
                keys(object, field, causes);
            }
        }
        "secrets" => keys(object, "data", causes),
        "autoscaling/horizontalpodautoscalers" => autoscaler(spec, causes),
        "rbac.authorization.k8s.io/roles" | "rbac.authorization.k8s.io/clusterroles" => rules(object, causes),
        "rbac.authorization.k8s.io/rolebindings" | "rbac.authorization.k8s.io/clusterrolebindings"
            if absent(&object["roleRef"]["name"]) =>
        {
            causes.push(Cause::required("roleRef.name", ""));
        }
        "coordination.k8s.io/leases" if spec["leaseDurationSeconds"].as_i64().is_some_and(|n| n <= 0) => {
            let (value, detail) = (&spec["leaseDurationSeconds"], "must be greater than 0");
            causes.push(Cause::invalid("spec.leaseDurationSeconds", value, detail));
        }
        "policy/poddisruptionbudgets"
            if !spec["minAvailable"].is_null() && !spec["maxUnavailable"].is_null() =>
        {
            let detail = "minAvailable and maxUnavailable cannot be both set";
            causes.push(Cause::invalid("spec", spec, detail));
        }
        "persistentvolumeclaims" => claim(spec, causes),
        "events" | "events.k8s.io/events" => event(object, causes),
        _ => {}
    }
}

fn keys(object: &Value, field: &str, causes: &mut Vec<Cause>) {
    for key in object[field].as_object().into_iter().flat_map(|map| map.keys()) {
        for wrong in names::config_key(key) {
            causes.push(Cause::invalid(format!("{field}[{key}]"), &Value::from(key.as_str()), &wrong));
        }
    }
}

fn frozen(object: &Value, current: &Value, causes: &mut Vec<Cause>) {
    if current["immutable"] != true {
        return;
    }
    if object["immutable"] != true {
        causes.push(Cause::forbidden("immutable", "field is immutable when `immutable` is set"));
    }
    for field in ["data", "binaryData"] {
        if object[field] != current[field] {
            causes.push(Cause::forbidden(field, "field is immutable when `immutable` is set"));
        }
    }
}

fn claim(spec: &Value, causes: &mut Vec<Cause>) {
    if items(&spec["accessModes"]).is_empty() {
        causes.push(Cause::required("spec.accessModes", "at least 1 access mode is required"));
    }
    if spec["resources"]["requests"]["storage"].is_null() {
        causes.push(Cause::required("spec.resources[storage]", ""));
    }
}

fn claim_update(object: &Value, current: &Value, causes: &mut Vec<Cause>) {
    let bare = |object: &Value| {
        let mut spec = object["spec"].clone();
        if let Some(map) = spec.as_object_mut() {
            map.remove("resources");
            map.remove("volumeAttributesClassName");
            // The volume controller fills the name in.
            if current["spec"]["volumeName"].is_null() {
                map.remove("volumeName");
            }
            // So may the default class, as long as none was chosen.
            if current["spec"]["storageClassName"].is_null() {
                map.remove("storageClassName");
            }
        }
        spec
    };
    if bare(object) != bare(current) {
        let detail = "spec is immutable after creation except resources.requests and \
                      volumeAttributesClassName for bound claims";
        causes.push(Cause::forbidden("spec", detail));
    }
}

fn autoscaler(spec: &Value, causes: &mut Vec<Cause>) {
    for field in ["kind", "name"] {
        if absent(&spec["scaleTargetRef"][field]) {
            causes.push(Cause::required(format!("spec.scaleTargetRef.{field}"), ""));
        }
    }
    let (least, most) =
        (spec["minReplicas"].as_i64().unwrap_or(1), spec["maxReplicas"].as_i64().unwrap_or(0));
    if least < 1 {
        let detail = "must be greater than or equal to 1";
        causes.push(Cause::invalid("spec.minReplicas", &spec["minReplicas"], detail));
    }
    if most < 1 {
        causes.push(Cause::invalid("spec.maxReplicas", &Value::from(most), "must be greater than 0"));
    } else if most < least {
        let detail = "must be greater than or equal to `minReplicas`";
        causes.push(Cause::invalid("spec.maxReplicas", &Value::from(most), detail));
    }
}

fn rules(object: &Value, causes: &mut Vec<Cause>) {
    for (i, rule) in items(&object["rules"]).iter().enumerate() {
        if items(&rule["verbs"]).is_empty() {
            let detail = "verbs must contain at least one value";
            causes.push(Cause::required(format!("rules[{i}].verbs"), detail));
        }
        if !items(&rule["nonResourceURLs"]).is_empty() {
            continue;
        }
        for (field, detail) in [
            ("apiGroups", "resource rules must supply at least one api group"),
            ("resources", "resource rules must supply at least one resource"),
        ] {
            if items(&rule[field]).is_empty() {
                causes.push(Cause::required(format!("rules[{i}].{field}"), detail));
            }
        }
    }
}

fn event(object: &Value, causes: &mut Vec<Cause>) {
    let (field, regarding) = match object.get("regarding") {
        Some(found) => ("regarding", found),
        None => ("involvedObject", &object["involvedObject"]),
    };
    let about = regarding["namespace"].as_str().unwrap_or_default();
    let own = object["metadata"]["namespace"].as_str().unwrap_or_default();
    if !about.is_empty() && about != own {
        let detail = "does not match event.namespace";
        causes.push(Cause::invalid(format!("{field}.namespace"), &Value::from(about), detail));
    } else if about.is_empty() && !["default", "kube-system", ""].contains(&own) {
        let detail = "does not match event.namespace";
        causes.push(Cause::invalid(format!("{field}.namespace"), &Value::from(""), detail));
    }
}
