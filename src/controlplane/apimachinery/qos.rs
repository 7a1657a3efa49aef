//! The quality of service class of a pod, which follows from the requests and limits of its containers.

use serde_json::Value;

fn containers<'a>(pod: &'a Value, kind: &str) -> &'a [Value] {
    pod.pointer(kind).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// Returns true if a pod asks for nothing and is limited in nothing.
pub fn best_effort(pod: &Value) -> bool {
    class(pod) == "BestEffort"
}

/// Guaranteed, Burstable or BestEffort by what the containers request and limit.
pub fn class(pod: &Value) -> &'static str {
    let mut any = false;
    let mut guaranteed = true;
    for kind in ["/spec/initContainers", "/spec/containers"] {
        for container in containers(pod, kind) {
            for resource in ["cpu", "memory"] {
                let limit = container.pointer(&format!("/resources/limits/{resource}"));
                let request = container.pointer(&format!("/resources/requests/{resource}"));
                any |= limit.is_some() || request.is_some();
                guaranteed &= limit.is_some() && (request.is_none() || request == limit);
            }
        }
    }
    match (any, guaranteed) {
        (false, _) => "BestEffort",
        (true, true) => "Guaranteed",
        (true, false) => "Burstable",
    }
}
