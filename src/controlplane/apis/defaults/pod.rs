//! Defaults of pods and pod templates.

use super::{each, put, sub};
use serde_json::{Map, Value, json};

/// A pod itself: its spec, and what templates do not get.
pub fn pod(object: &mut Value) {
    let spec = sub(object, "spec");
    pod_spec(spec);
    put(spec, "enableServiceLinks", true);
    addresses(object);
    let spec = sub(object, "spec");
    let on_host = spec["hostNetwork"] == true;
    for list in ["containers", "initContainers"] {
        for port in each(spec, list).flat_map(|item| each(item, "ports")).filter(|_| on_host) {
            let number = port["containerPort"].clone();
            put(port, "hostPort", number);
        }
    }
    for list in ["containers", "initContainers"] {
        for container in each(spec, list) {
            let limits = container["resources"]["limits"].as_object().cloned().unwrap_or_default();
            if !limits.is_empty() {
                let requests = sub(&mut container["resources"], "requests");
                for (name, limit) in limits {
                    put(requests, &name, limit);
                }
            }
        }
    }
}

/// The first of a pod's addresses is the one of old clients, which counts where they differ.
fn addresses(pod: &mut Value) {
    let Some(status) = pod.get_mut("status").filter(|status| status.is_object()) else { return };
    let (own, first) = (status["podIP"].clone(), status["podIPs"][0]["ip"].clone());
    let set = |ip: &Value| ip.as_str().is_some_and(|text| !text.is_empty());
    if set(&own) && own != first {
        status["podIPs"] = json!([{"ip": own}]);
    } else if set(&first) {
        status["podIP"] = first;
    }
}

/// A pod template.
pub fn template(object: &mut Value) {
    if object.is_object() {
        pod_spec(sub(object, "spec"));
    }
}

/// The pod template below a spec that has one.
pub fn template_of(spec: &mut Value) {
    if let Some(found) = spec.get_mut("template") {
        template(found);
    }
}

/// Sets the fields of a pod that admission and its strategy set on creation: service account, priority,
/// tolerations, phase and quality of service.
pub fn created(object: &mut Value) {
    let class = quality(&object["spec"]);
    let spec = sub(object, "spec");
    put(spec, "serviceAccountName", "default");
    let account = spec["serviceAccountName"].clone();
    put(spec, "serviceAccount", account);
    if spec["priorityClassName"].as_str().unwrap_or_default().is_empty() {
        put(spec, "priority", 0);
        put(spec, "preemptionPolicy", "PreemptLowerPriority");
    }
    // A grace of less than nothing is as little as there is.
    if spec["terminationGracePeriodSeconds"].as_i64().is_some_and(|seconds| seconds < 0) {
        spec["terminationGracePeriodSeconds"] = Value::from(1);
    }
    tolerations(spec);
    let gated = spec["schedulingGates"].as_array().is_some_and(|gates| !gates.is_empty());
    object["status"] = json!({"phase": "Pending", "qosClass": class});
    if gated {
        object["status"]["conditions"] = json!([{"type": "PodScheduled", "status": "False", "lastProbeTime": null,
            "lastTransitionTime": null, "reason": "SchedulingGated",
            "message": "Scheduling is blocked due to non-empty scheduling gates"}]);
    }
}

/// Every pod tolerates a node that is away, for five minutes unless it says otherwise.
pub fn tolerations(spec: &mut Value) {
    put(spec, "tolerations", Vec::<Value>::new());
    if let Some(list) = spec["tolerations"].as_array_mut() {
        for key in ["node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"] {
            let known = list.iter().any(|t| {
                (t["key"] == key
                    || (t["key"].as_str().unwrap_or_default().is_empty() && t["operator"] == "Exists"))
                    && matches!(t["effect"].as_str(), None | Some("" | "NoExecute"))
            });
            if !known {
                list.push(json!({"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}));
            }
        }
    }
}

fn quality(spec: &Value) -> &'static str {
    let mut any = false;
    let mut guaranteed = true;
    for list in ["containers", "initContainers"] {
        for container in spec[list].as_array().into_iter().flatten() {
            let resources = &container["resources"];
            for name in ["cpu", "memory"] {
                let (limit, request) = (&resources["limits"][name], &resources["requests"][name]);
                any |= !limit.is_null() || !request.is_null();
                guaranteed &= !limit.is_null() && (request.is_null() || request == limit);
            }
        }
    }
    match (any, guaranteed) {
        (false, _) => "BestEffort",
        (true, true) => "Guaranteed",
        (true, false) => "Burstable",
    }
}

fn pod_spec(spec: &mut Value) {
    put(spec, "dnsPolicy", "ClusterFirst");
    put(spec, "restartPolicy", "Always");
    put(spec, "terminationGracePeriodSeconds", 30);
    put(spec, "schedulerName", "default-scheduler");
    put(spec, "securityContext", Map::new());
    if let Some(account) = spec.get("serviceAccountName").cloned() {
        put(spec, "serviceAccount", account);
    } else if let Some(account) = spec.get("serviceAccount").cloned() {
        put(spec, "serviceAccountName", account);
    }
    for list in ["containers", "initContainers", "ephemeralContainers"] {
        each(spec, list).for_each(container);
    }
    for item in each(spec, "volumes") {
        volume(item);
    }
}

fn container(container: &mut Value) {
    let image = container["image"].as_str().unwrap_or_default();
    if !image.is_empty() || container.get("imagePullPolicy").is_some() {
        let policy = if pulls_always(image) { "Always" } else { "IfNotPresent" };
        put(container, "imagePullPolicy", policy);
    } else {
        put(container, "imagePullPolicy", "IfNotPresent");
    }
    put(container, "terminationMessagePath", "/dev/termination-log");
    put(container, "terminationMessagePolicy", "File");
    put(container, "resources", Map::new());
    for port in each(container, "ports") {
        put(port, "protocol", "TCP");
    }
    for name in ["livenessProbe", "readinessProbe", "startupProbe"] {
        if let Some(probe) = container.get_mut(name).filter(|probe| probe.is_object()) {
            for (field, value) in [
                ("timeoutSeconds", 1),
                ("periodSeconds", 10),
                ("successThreshold", 1),
                ("failureThreshold", 3),
            ] {
                put(probe, field, value);
                if probe[field] == 0 {
                    probe[field] = Value::from(value);
                }
            }
            action(probe);
        }
    }
    if let Some(lifecycle) = container.get_mut("lifecycle") {
        for name in ["postStart", "preStop"] {
            if let Some(hook) = lifecycle.get_mut(name) {
                action(hook);
            }
        }
    }
    for variable in each(container, "env") {
        if let Some(field) = variable.get_mut("valueFrom").and_then(|from| from.get_mut("fieldRef")) {
            put(field, "apiVersion", "v1");
        }
    }
}

fn action(action: &mut Value) {
    if let Some(http) = action.get_mut("httpGet").filter(|http| http.is_object()) {
        put(http, "path", "/");
        put(http, "scheme", "HTTP");
    }
    if let Some(grpc) = action.get_mut("grpc").filter(|grpc| grpc.is_object()) {
        put(grpc, "service", "");
    }
}

/// An image without a tag, or tagged `latest`, is pulled each time.
fn pulls_always(image: &str) -> bool {
    if image.contains('@') {
        return false;
    }
    let last = image.rsplit('/').next().unwrap_or(image);
    last.split_once(':').is_none_or(|(_, tag)| tag == "latest")
}

fn volume(volume: &mut Value) {
    if volume.as_object().is_some_and(|map| map.len() == 1 && map.contains_key("name")) {
        volume["emptyDir"] = json!({});
    }
    for source in ["secret", "configMap", "downwardAPI", "projected"] {
        if let Some(found) = volume.get_mut(source).filter(|found| found.is_object()) {
            put(found, "defaultMode", 420);
            downward(found);
            for part in each(found, "sources") {
                if let Some(token) = part.get_mut("serviceAccountToken").filter(|token| token.is_object()) {
                    put(token, "expirationSeconds", 3600);
                }
                if let Some(api) = part.get_mut("downwardAPI") {
                    downward(api);
                }
            }
        }
    }
    if let Some(image) = volume.get_mut("image").filter(|image| image.is_object()) {
        let always = pulls_always(image["reference"].as_str().unwrap_or_default());
        put(image, "pullPolicy", if always { "Always" } else { "IfNotPresent" });
    }
    if let Some(path) = volume.get_mut("hostPath").filter(|path| path.is_object()) {
        put(path, "type", "");
    }
    if let Some(claim) = volume.get_mut("ephemeral").and_then(|e| e.get_mut("volumeClaimTemplate")) {
        put(sub(claim, "spec"), "volumeMode", "Filesystem");
    }
}

fn downward(source: &mut Value) {
    for item in each(source, "items") {
        if let Some(field) = item.get_mut("fieldRef").filter(|field| field.is_object()) {
            put(field, "apiVersion", "v1");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pull_policy_follows_the_tag() {
        for (image, always) in [
            ("nginx", true),
            ("nginx:latest", true),
            ("nginx:1.27", false),
            ("reg:5000/a/b", true),
            ("reg:5000/a/b:1", false),
            ("a@sha256:00", false),
        ] {
            assert_eq!(pulls_always(image), always, "{image}");
        }
    }

    #[test]
    fn quality_of_service() {
        let spec = |resources: Value| json!({"containers": [{"resources": resources}]});
        assert_eq!(quality(&spec(json!({}))), "BestEffort");
        assert_eq!(quality(&spec(json!({"requests": {"cpu": "1"}}))), "Burstable");
        let same = json!({"cpu": "1", "memory": "1Gi"});
        assert_eq!(quality(&spec(json!({"limits": same, "requests": same}))), "Guaranteed");
    }
}
