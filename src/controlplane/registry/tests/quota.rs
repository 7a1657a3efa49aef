//! Quotas, counted by the evaluators of the kinds.

use super::super::consumers;
use opdev_apimachinery::quota::{self, Consumer, ONE};
use serde_json::{Map, Value, json};
use std::sync::Arc;

fn consumer(resource: &str) -> Consumer<'static> {
    consumers().find(|kind| kind.resource == resource).unwrap()
}

fn usage(quota: &Value, list: impl Fn(&str) -> Vec<Arc<Value>>) -> Map<String, Value> {
    quota::usage(quota, &consumers(), list)
}

fn covers(quota: &Value, resource: &str, object: &Value) -> bool {
    consumer(resource).covers(quota, object)
}

fn refusal(
    quota: &Value,
    resource: &str,
    object: &Value,
    current: Option<&Value>,
    total: impl Fn(&str) -> i128,
) -> Option<String> {
    consumer(resource).refusal(quota, object, current, total)
}

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
