//! LimitRanges: the resources that containers get which name none, and what is too little or too much. Pure;
//! the registry asks when a pod or a claim is created. The rules and words are those of upstream's
//! LimitRanger.

use opdev_apimachinery::resource::quantity::nano;
use serde_json::{Map, Value, json};

/// Tells what was filled in.
const ANNOTATION: &str = "kubernetes.io/limit-ranger";

fn items<'a>(object: &'a Value, pointer: &str) -> &'a [Value] {
    object.pointer(pointer).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

fn of_type<'a>(range: &'a Value, kind: &'a str) -> impl Iterator<Item = &'a Value> {
    items(range, "/spec/limits").iter().filter(move |limit| limit["type"] == kind)
}

fn entries<'a>(limit: &'a Value, field: &str) -> impl Iterator<Item = (&'a String, &'a str)> {
    let map = limit.get(field).and_then(Value::as_object);
    map.into_iter().flatten().filter_map(|(name, value)| Some((name, value.as_str()?)))
}

/// Fills in what a LimitRange itself leaves out: the most is the default, the default is what is asked for.
pub fn complete(range: &mut Value) {
    let limits = range.pointer_mut("/spec/limits").and_then(Value::as_array_mut);
    for limit in limits.into_iter().flatten().filter(|limit| limit["type"] == "Container") {
        for (from, to) in [("max", "default"), ("default", "defaultRequest"), ("min", "defaultRequest")] {
            let Some(found) = limit.get(from).and_then(Value::as_object).cloned() else { continue };
            let Some(limit) = limit.as_object_mut() else { continue };
            let target = limit.entry(to).or_insert_with(|| json!({}));
            if let Some(target) = target.as_object_mut() {
                for (name, value) in found {
                    target.entry(name).or_insert(value);
                }
            }
        }
    }
}

/// Gives the containers of a new pod what they do not name.
pub fn fill(pod: &mut Value, range: &Value) {
    let mut told = Vec::new();
    for (list, word) in [("/spec/containers", "container"), ("/spec/initContainers", "init container")] {
        let containers = pod.pointer_mut(list).and_then(Value::as_array_mut);
        for container in containers.into_iter().flatten() {
            let name = container["name"].as_str().unwrap_or_default().to_owned();
            for (field, default, what) in
                [("requests", "defaultRequest", "request"), ("limits", "default", "limit")]
            {
                let set = fill_list(container, field, range, default);
                if !set.is_empty() {
                    told.push(format!("{} {what} for {word} {name}", set.join(", ")));
                }
            }
        }
    }
    if !told.is_empty() {
        let text = format!("LimitRanger plugin set: {}", told.join("; "));
        let meta = opdev_apimachinery::resource::metadata::map_mut(pod);
        let annotations = meta.entry("annotations").or_insert_with(|| json!({}));
        if let Some(annotations) = annotations.as_object_mut() {
            annotations.insert(ANNOTATION.to_owned(), text.into());
        }
    }
}

/// The names of what was set, sorted.
fn fill_list(container: &mut Value, field: &str, range: &Value, default: &str) -> Vec<String> {
    let mut set = Vec::new();
    for limit in of_type(range, "Container") {
        for (name, value) in entries(limit, default) {
            if container.pointer(&format!("/resources/{field}")).is_some_and(|list| list.get(name).is_some())
            {
                continue;
            }
            if !container["resources"].is_object() {
                container["resources"] = Value::Object(Map::new());
            }
            container["resources"][field][name.as_str()] = value.into();
            set.push(name.clone());
        }
    }
    set.sort();
    set
}

/// A value that a limit is compared with.
struct Requested<'a> {
    kind: &'a str,
    request: Option<String>,
    limit: Option<String>,
}

fn owned(value: Option<&Value>) -> Option<String> {
    value.and_then(Value::as_str).map(str::to_owned)
}

/// Everything that is too little or too much in a claim.
pub fn claim_violations(claim: &Value, range: &Value) -> Vec<String> {
    let mut wrong = Vec::new();
    for limit in of_type(range, "PersistentVolumeClaim") {
        check(limit, &mut wrong, |name| Requested {
            kind: "PersistentVolumeClaim",
            request: owned(claim.pointer("/spec/resources/requests").and_then(|list| list.get(name))),
            limit: None,
        });
    }
    wrong
}

/// Everything that is too little or too much in a pod.
pub fn pod_violations(object: &Value, range: &Value) -> Vec<String> {
    let mut wrong = Vec::new();
    let containers = items(object, "/spec/containers").iter().chain(items(object, "/spec/initContainers"));
    for container in containers {
        for limit in of_type(range, "Container") {
            let of = |list: &str, name: &str| {
                owned(container.pointer(&format!("/resources/{list}")).and_then(|found| found.get(name)))
            };
            check(limit, &mut wrong, |name| Requested {
                kind: "Container",
                request: of("requests", name),
                limit: of("limits", name),
            });
        }
    }
    for limit in of_type(range, "Pod") {
        let sum = |list: &'static str, name: &str| {
            let total = opdev_apimachinery::quota::pod_amount(object, list, name);
            (total > 0)
                .then(|| opdev_apimachinery::quota::printed(total, if name == "memory" { "Ki" } else { "" }))
        };
        check(limit, &mut wrong, |name| Requested {
            kind: "Pod",
            request: sum("requests", name),
            limit: sum("limits", name),
        });
    }
    wrong
}

fn check<'a>(limit: &'a Value, wrong: &mut Vec<String>, said: impl Fn(&str) -> Requested<'a>) {
    let amount = |text: &str| nano(text).unwrap_or(0);
    for (name, least) in entries(limit, "min") {
        let Requested { kind, request, limit } = said(name);
        let rule = format!("minimum {name} usage per {kind} is {least}");
        match (&request, &limit) {
            (None, _) => wrong.push(format!("{rule}.  No request is specified")),
            (Some(asked), _) if amount(asked) < amount(least) => {
                wrong.push(format!("{rule}, but request is {asked}"));
            }
            (_, Some(most)) if amount(most) < amount(least) => {
                wrong.push(format!("{rule}, but limit is {most}"));
            }
            _ => {}
        }
    }
    for (name, most) in entries(limit, "max") {
        let Requested { kind, request, limit } = said(name);
        let rule = format!("maximum {name} usage per {kind} is {most}");
        let over = |text: &Option<String>| text.as_deref().is_some_and(|text| amount(text) > amount(most));
        match (&request, &limit) {
            (None, _) if kind == "PersistentVolumeClaim" => {
                wrong.push(format!("{rule}.  No request is specified"));
            }
            (_, None) if kind != "PersistentVolumeClaim" => {
                wrong.push(format!("{rule}.  No limit is specified"));
            }
            (_, Some(found)) if over(&limit) => wrong.push(format!("{rule}, but limit is {found}")),
            (Some(asked), _) if over(&request) => wrong.push(format!("{rule}, but request is {asked}")),
            _ => {}
        }
    }
    for (name, ratio) in entries(limit, "maxLimitRequestRatio") {
        let Requested { kind, request, limit } = said(name);
        let rule = format!("{name} max limit to request ratio per {kind} is {ratio}");
        let (asked, most) = (request.as_deref().map_or(0, amount), limit.as_deref().map_or(0, amount));
        if asked == 0 {
            wrong.push(format!("{rule}, but no request is specified or request is 0"));
        } else if most == 0 {
            wrong.push(format!("{rule}, but no limit is specified or limit is 0"));
        } else {
            let found = most as f64 / asked as f64;
            if found > amount(ratio) as f64 / 1e9 {
                wrong.push(format!("{rule}, but provided ratio is {found:.6}"));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range(limit: &Value) -> Value {
        let mut range = json!({"spec": {"limits": [limit]}});
        complete(&mut range);
        range
    }

    #[test]
    fn containers_get_what_they_do_not_name() {
        let range =
            range(&json!({"type": "Container", "max": {"cpu": "1"}, "defaultRequest": {"memory": "64Mi"}}));
        assert_eq!(range["spec"]["limits"][0]["defaultRequest"], json!({"cpu": "1", "memory": "64Mi"}));
        let mut pod = json!({"spec": {"containers": [
            {"name": "a"}, {"name": "b", "resources": {"limits": {"cpu": "2"}, "requests": {"cpu": "1", "memory": "1Gi"}}}]}});
        fill(&mut pod, &range);
        let filled = json!({"requests": {"cpu": "1", "memory": "64Mi"}, "limits": {"cpu": "1"}});
        assert_eq!(pod["spec"]["containers"][0]["resources"], filled);
        assert_eq!(
            pod["metadata"]["annotations"][ANNOTATION],
            "LimitRanger plugin set: cpu, memory request for container a; cpu limit for container a"
        );
        assert_eq!(pod_violations(&pod, &range), ["maximum cpu usage per Container is 1, but limit is 2"]);
    }

    #[test]
    fn pods_and_claims_have_bounds() {
        let pod = json!({"spec": {"containers": [
            {"name": "a", "resources": {"requests": {"memory": "64Mi"}, "limits": {"memory": "256Mi"}}},
            {"name": "b", "resources": {"requests": {"memory": "64Mi"}}}]}});
        let bounds = range(&json!({"type": "Pod", "min": {"memory": "1Gi"}, "max": {"cpu": "1"}}));
        assert_eq!(
            pod_violations(&pod, &bounds),
            [
                "minimum memory usage per Pod is 1Gi, but request is 128Mi",
                "maximum cpu usage per Pod is 1.  No limit is specified"
            ]
        );
        let ratio = range(&json!({"type": "Container", "maxLimitRequestRatio": {"memory": "2"}}));
        assert_eq!(
            pod_violations(&pod, &ratio),
            [
                "memory max limit to request ratio per Container is 2, but provided ratio is 4.000000",
                "memory max limit to request ratio per Container is 2, but no limit is specified or limit is 0"
            ]
        );
        let claim = json!({"spec": {"resources": {"requests": {"storage": "3Gi"}}}});
        let storage = range(&json!({"type": "PersistentVolumeClaim", "max": {"storage": "2Gi"}}));
        assert_eq!(
            claim_violations(&claim, &storage),
            ["maximum storage usage per PersistentVolumeClaim is 2Gi, but request is 3Gi"]
        );
    }
}
