//! What objects use of the resources that quotas limit: which objects a quota looks at, and how much each takes.
//! Pure; `controllers::quota` writes what is used, `registry` refuses what would be too much. The rules are those of
//! upstream's evaluators (`pkg/quota/v1`).

use crate::resource::quantity::{canonical, nano};
use opdev_object::meta;
use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet};

/// Billionths in one.
const ONE: i128 = 1_000_000_000;

/// Resources whose objects are counted by their bare name.
const COUNTED: [&str; 7] = [
    "pods",
    "services",
    "configmaps",
    "secrets",
    "persistentvolumeclaims",
    "replicationcontrollers",
    "resourcequotas",
];

/// The resource, such as `apps/deployments`, whose objects use `name` of a quota.
pub(crate) fn consumer(name: &str) -> Option<String> {
    if let Some(counted) = name.strip_prefix("count/") {
        return Some(match counted.split_once('.') {
            Some((plural, group)) => format!("{group}/{plural}"),
            None => counted.to_owned(),
        });
    }
    if COUNTED.contains(&name) {
        return Some(name.to_owned());
    }
    if name.starts_with("services.") {
        return Some("services".to_owned());
    }
    if name == "requests.storage" || name.contains(".storageclass.storage.k8s.io/") {
        return Some("persistentvolumeclaims".to_owned());
    }
    let computed = ["cpu", "memory", "ephemeral-storage"].contains(&name)
        || ["requests.", "limits.", "hugepages-"].iter().any(|start| name.starts_with(start));
    computed.then(|| "pods".to_owned())
}

fn items<'a>(object: &'a Value, pointer: &str) -> &'a [Value] {
    object.pointer(pointer).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

fn text<'a>(object: &'a Value, pointer: &str) -> &'a str {
    object.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

fn over(pod: &Value) -> bool {
    matches!(text(pod, "/status/phase"), "Succeeded" | "Failed")
}

/// The amounts of a list such as `requests`, of one name.
fn amount(container: &Value, list: &str, name: &str) -> i128 {
    let found = container.pointer(&format!("/resources/{list}")).and_then(|list| list.get(name));
    found.and_then(Value::as_str).and_then(nano).unwrap_or(0)
}

/// What a pod asks for: all containers together, or the largest of those that run before them.
pub(crate) fn pod_amount(pod: &Value, list: &str, name: &str) -> i128 {
    let of = |container: &Value| amount(container, list, name);
    let sidecar = |container: &&Value| text(container, "/restartPolicy") == "Always";
    let init = items(pod, "/spec/initContainers");
    let beside: i128 = init.iter().filter(sidecar).map(of).sum();
    let together: i128 = items(pod, "/spec/containers").iter().map(of).sum::<i128>() + beside;
    let before = init.iter().filter(|container| !sidecar(container)).map(of).max().unwrap_or(0) + beside;
    let overhead = pod.pointer("/spec/overhead").and_then(|list| list.get(name)).and_then(Value::as_str);
    together.max(before) + overhead.and_then(nano).unwrap_or(0)
}

/// A resource's own name behind the quota's, and in which list of a container it stands.
fn of_containers(name: &str) -> (&'static str, &str) {
    match name.split_once('.') {
        Some(("requests", rest)) => ("requests", rest),
        Some(("limits", rest)) => ("limits", rest),
        _ => ("requests", name),
    }
}

/// What one object of the consuming resource uses of `name`, in billionths.
pub(crate) fn used(name: &str, object: &Value) -> i128 {
    let resource = consumer(name).unwrap_or_default();
    if resource == "pods" && over(object) && name != "count/pods" {
        return 0;
    }
    if name.starts_with("count/") || COUNTED.contains(&name) {
        return ONE;
    }
    match resource.as_str() {
        "services" => {
            let kind = text(object, "/spec/type");
            let ports = items(object, "/spec/ports");
            let nodes =
                ports.iter().filter(|port| port["nodePort"].as_i64().unwrap_or(0) != 0).count() as i128;
            match (name, kind) {
                ("services.loadbalancers", "LoadBalancer") => ONE,
                ("services.nodeports", "NodePort") => ports.len() as i128 * ONE,
                ("services.nodeports", "LoadBalancer") => nodes * ONE,
                _ => 0,
            }
        }
        "persistentvolumeclaims" => {
            let asked = nano(text(object, "/spec/resources/requests/storage")).unwrap_or(0);
            let class = text(object, "/spec/storageClassName");
            match name.split_once(".storageclass.storage.k8s.io/") {
                None => asked,
                Some((wanted, _)) if wanted != class => 0,
                Some((_, "requests.storage")) => asked,
                Some(_) => ONE,
            }
        }
        "pods" => {
            let (list, own) = of_containers(name);
            pod_amount(object, list, own)
        }
        _ => 0,
    }
}

/// What a quota allows, by name.
pub(crate) fn hard(quota: &Value) -> impl Iterator<Item = (&str, &str)> {
    let hard = quota.pointer("/spec/hard").and_then(Value::as_object);
    hard.into_iter().flatten().filter_map(|(name, value)| Some((name.as_str(), value.as_str()?)))
}

/// Whether a quota looks at an object at all: its scopes. They are about pods and claims only.
pub(crate) fn covers(quota: &Value, resource: &str, object: &Value) -> bool {
    let scopes = items(quota, "/spec/scopes").iter().filter_map(Value::as_str);
    let plain = scopes.map(|scope| (scope, "Exists", &[][..]));
    let selected = items(quota, "/spec/scopeSelector/matchExpressions").iter().map(|expression| {
        (text(expression, "/scopeName"), text(expression, "/operator"), items(expression, "/values"))
    });
    plain.chain(selected).all(|(scope, operator, values)| match resource {
        "pods" => in_scope(scope, operator, values, object),
        "persistentvolumeclaims" => {
            scope == "VolumeAttributesClass" && named(&attribute_classes(object), operator, values)
        }
        _ => false,
    })
}

/// Whether one of the names is as a selector of a scope wants it; none at all are as one that is absent.
fn named(names: &BTreeSet<&str>, operator: &str, values: &[Value]) -> bool {
    let listed = |name: &&str| values.iter().any(|value| value == *name);
    match operator {
        "In" => names.iter().any(listed),
        "NotIn" => names.is_empty() || !names.iter().all(listed),
        "DoesNotExist" => names.is_empty(),
        _ => !names.is_empty(),
    }
}

/// The classes that a claim has, is to have and is on its way to.
fn attribute_classes(claim: &Value) -> BTreeSet<&str> {
    let places = [
        "/spec/volumeAttributesClassName",
        "/status/currentVolumeAttributesClassName",
        "/status/modifyVolumeStatus/targetVolumeAttributesClassName",
    ];
    places.iter().map(|place| text(claim, place)).filter(|name| !name.is_empty()).collect()
}

/// Whether a pod wants to be near to, or far from, pods of namespaces that it names.
fn looks_across(pod: &Value) -> bool {
    ["podAffinity", "podAntiAffinity"].iter().any(|kind| {
        let at = |list: &str| items(pod, &format!("/spec/affinity/{kind}/{list}"));
        let preferred = at("preferredDuringSchedulingIgnoredDuringExecution");
        let mut terms = at("requiredDuringSchedulingIgnoredDuringExecution")
            .iter()
            .chain(preferred.iter().filter_map(|weighted| weighted.get("podAffinityTerm")));
        terms.any(|term| !items(term, "/namespaces").is_empty() || term["namespaceSelector"].is_object())
    })
}

fn in_scope(scope: &str, operator: &str, values: &[Value], pod: &Value) -> bool {
    let ends = pod.pointer("/spec/activeDeadlineSeconds").and_then(Value::as_i64).is_some_and(|n| n >= 0);
    let best_effort = crate::qos::best_effort(pod);
    match scope {
        "Terminating" => ends,
        "NotTerminating" => !ends,
        "BestEffort" => best_effort,
        "NotBestEffort" => !best_effort,
        "CrossNamespacePodAffinity" => looks_across(pod),
        "PriorityClass" => {
            let class = text(pod, "/spec/priorityClassName");
            named(&Some(class).filter(|class| !class.is_empty()).into_iter().collect(), operator, values)
        }
        _ => false,
    }
}

/// An amount as quotas print it: bytes by powers of two where the limit has them, too.
pub(crate) fn printed(billionths: i128, like: &str) -> String {
    let whole = billionths / ONE;
    let plain = || canonical(&format!("{billionths}n")).unwrap_or_else(|| "0".to_owned());
    if like.ends_with('i') && billionths % ONE == 0 && whole % 1024 == 0 {
        return canonical(&format!("{}Ki", whole / 1024)).unwrap_or_else(plain);
    }
    plain()
}

/// What a pod does not say although a quota limits it: `must specify cpu for: main`.
pub(crate) fn unsaid(quota: &Value, pod: &Value) -> Option<String> {
    let mut missing: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    let containers = items(pod, "/spec/containers").iter().chain(items(pod, "/spec/initContainers"));
    for container in containers {
        for (name, _) in hard(quota) {
            if !compute(name) {
                continue;
            }
            let (list, own) = of_containers(name);
            let said = container.pointer(&format!("/resources/{list}")).and_then(|list| list.get(own));
            if said.is_none() {
                missing.entry(name).or_default().insert(text(container, "/name"));
            }
        }
    }
    let parts: Vec<String> = missing
        .iter()
        .map(|(name, containers)| {
            format!("{name} for: {}", containers.iter().copied().collect::<Vec<_>>().join(","))
        })
        .collect();
    (!parts.is_empty()).then(|| format!("must specify {}", parts.join("; ")))
}

/// What every container has to ask for once a quota limits it.
fn compute(name: &str) -> bool {
    matches!(name, "cpu" | "memory" | "requests.cpu" | "requests.memory" | "limits.cpu" | "limits.memory")
}

/// Why a quota refuses `object`, which would replace `current`; `total` is what is used without it, by name.
pub(crate) fn refusal(
    quota: &Value,
    resource: &str,
    object: &Value,
    current: Option<&Value>,
    total: impl Fn(&str) -> i128,
) -> Option<String> {
    if !covers(quota, resource, object) {
        return None;
    }
    // What it did not look at before is new to it.
    let counted = current.filter(|current| covers(quota, resource, current));
    let name = meta::name(quota).unwrap_or_default();
    if resource == "pods"
        && current.is_none()
        && let Some(why) = unsaid(quota, object)
    {
        return Some(format!("failed quota: {name}: {why}"));
    }
    let (mut requested, mut used_now, mut limited) = (Vec::new(), Vec::new(), Vec::new());
    for (limit, allowed) in hard(quota).filter(|(limit, _)| consumer(limit).as_deref() == Some(resource)) {
        let before = counted.map_or(0, |counted| used(limit, counted));
        let more = used(limit, object) - before;
        let most = nano(allowed).unwrap_or(i128::MAX);
        let total = total(limit) + before;
        if more > 0 && total + more > most {
            requested.push(format!("{limit}={}", printed(more, allowed)));
            used_now.push(format!("{limit}={}", printed(total, allowed)));
            limited.push(format!("{limit}={allowed}"));
        }
    }
    (!requested.is_empty()).then(|| {
        format!(
            "exceeded quota: {name}, requested: {}, used: {}, limited: {}",
            requested.join(","),
            used_now.join(","),
            limited.join(",")
        )
    })
}

/// What is used of everything that a quota limits; `list` gives the objects of a resource in its namespace.
pub(crate) fn usage(quota: &Value, list: impl Fn(&str) -> Vec<std::sync::Arc<Value>>) -> Map<String, Value> {
    let mut known = BTreeMap::new();
    let mut usage = Map::new();
    for (name, allowed) in hard(quota) {
        let Some(resource) = consumer(name) else { continue };
        let objects = known.entry(resource.clone()).or_insert_with(|| list(&resource));
        let covered = objects.iter().filter(|object| covers(quota, &resource, object));
        let total: i128 = covered.map(|object| used(name, object)).sum();
        usage.insert(name.to_owned(), printed(total, allowed).into());
    }
    usage
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use std::sync::Arc;

    fn pod(cpu: &str, memory: &str) -> Value {
        json!({"metadata": {"name": "a"}, "spec": {"containers": [
            {"name": "main", "resources": {"requests": {"cpu": cpu, "memory": memory}}}]}})
    }

    #[test]
    fn pods_claims_and_services_use_what_they_ask_for() {
        let quota = json!({"metadata": {"name": "q"}, "spec": {"hard": {"pods": "3", "cpu": "1", "requests.memory": "1Gi",
            "count/deployments.apps": "1", "services.nodeports": "2", "requests.storage": "5Gi"}}});
        let list = |resource: &str| -> Vec<Arc<Value>> {
            match resource {
                "pods" => vec![Arc::new(pod("250m", "64Mi")), Arc::new(pod("500m", "64Mi"))],
                "services" => vec![Arc::new(json!({"spec": {"type": "NodePort", "ports": [{}, {}]}}))],
                "persistentvolumeclaims" => {
                    vec![Arc::new(json!({"spec": {"resources": {"requests": {"storage": "2Gi"}}}}))]
                }
                _ => Vec::new(),
            }
        };
        let used = json!({"pods": "2", "cpu": "750m", "requests.memory": "128Mi", "count/deployments.apps": "0",
            "services.nodeports": "2", "requests.storage": "2Gi"});
        assert_eq!(Value::Object(usage(&quota, list)), used);
    }

    /// In the words of the real server (1.36).
    #[test]
    fn what_would_be_too_much_is_refused() {
        let quota = |hard: &Value| json!({"metadata": {"name": "q"}, "spec": {"hard": hard}});
        let told = |quota: &Value, pod: &Value| {
            refusal(quota, "pods", pod, None, |name| match name {
                "pods" => 3 * ONE,
                _ => ONE / 2,
            })
        };
        assert_eq!(
            told(&quota(&json!({"pods": "3", "cpu": "600m"})), &pod("250m", "1Mi")).unwrap(),
            "exceeded quota: q, requested: cpu=250m,pods=1, used: cpu=500m,pods=3, limited: cpu=600m,pods=3"
        );
        assert_eq!(told(&quota(&json!({"pods": "4", "cpu": "1"})), &pod("250m", "1Mi")), None);
        let bare = json!({"spec": {"containers": [{"name": "a"}, {"name": "b"}]}});
        assert_eq!(
            told(&quota(&json!({"cpu": "1", "limits.memory": "1"})), &bare).unwrap(),
            "failed quota: q: must specify cpu for: a,b; limits.memory for: a,b"
        );
        let mut scoped = quota(&json!({"pods": "1"}));
        scoped["spec"]["scopes"] = json!(["BestEffort"]);
        assert_eq!(told(&scoped, &pod("250m", "1Mi")), None);
    }

    #[test]
    fn claims_count_for_the_classes_they_have_and_want() {
        let quota = |operator: &str, values: &Value| {
            json!({"metadata": {"name": "q"}, "spec": {"hard": {"persistentvolumeclaims": "1"}, "scopeSelector":
                {"matchExpressions": [{"scopeName": "VolumeAttributesClass", "operator": operator, "values": values}]}}})
        };
        let claims = "persistentvolumeclaims";
        let bare = json!({"spec": {}});
        let moving = json!({"spec": {"volumeAttributesClassName": "silver"},
            "status": {"currentVolumeAttributesClassName": "gold",
                "modifyVolumeStatus": {"targetVolumeAttributesClassName": "bronze"}}});
        let gold = json!(["gold"]);
        for (operator, values, covered) in [
            ("In", &gold, [false, true]),
            ("In", &json!(["silver"]), [false, true]),
            ("In", &json!(["bronze"]), [false, true]),
            ("In", &json!(["other"]), [false, false]),
            ("NotIn", &gold, [true, true]),
            ("Exists", &json!([]), [false, true]),
            ("DoesNotExist", &json!([]), [true, false]),
        ] {
            let quota = quota(operator, values);
            let found = [&bare, &moving].map(|claim| covers(&quota, claims, claim));
            assert_eq!(found, covered, "{operator} {values}");
        }
        assert!(!covers(&quota("In", &gold), "services", &moving));
        // A claim that comes into the scope is new there.
        let told = refusal(&quota("In", &gold), claims, &moving, Some(&bare), |_| ONE);
        assert!(told.is_some_and(|told| told.contains("requested: persistentvolumeclaims=1")));
        assert_eq!(refusal(&quota("In", &gold), claims, &moving, Some(&moving), |_| ONE), None);
    }

    #[test]
    fn pods_that_look_into_other_namespaces_have_a_scope() {
        let quota = json!({"spec": {"hard": {"pods": "1"}, "scopes": ["CrossNamespacePodAffinity"]}});
        let near = |term: Value| {
            json!({"spec": {"affinity": {"podAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": [term]}}}})
        };
        let far = json!({"spec": {"affinity": {"podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [
            {"weight": 1, "podAffinityTerm": {"topologyKey": "a", "namespaceSelector": {}}}]}}}});
        assert!(covers(&quota, "pods", &near(json!({"topologyKey": "a", "namespaces": ["b"]}))));
        assert!(covers(&quota, "pods", &far));
        assert!(!covers(&quota, "pods", &near(json!({"topologyKey": "a"}))));
        assert!(!covers(&quota, "pods", &json!({"spec": {}})));
    }
}
