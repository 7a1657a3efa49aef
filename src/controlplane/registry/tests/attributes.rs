//! Facts about an object that are known without its tree, by the indexing of its kind.

use crate::indexing;
use opdev_apimachinery::attributes::{Attributes, PodField, ServiceField, Shared};
use serde_json::{Value, json};

fn of(resource: &str, object: &Value) -> Attributes {
    Attributes::alone(indexing(resource), object)
}

fn pod(node: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": "a", "uid": "1", "labels": {"app": "x"}, "deletionTimestamp": "2026-01-01T00:00:00Z",
            "ownerReferences": [{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "r", "uid": "2", "controller": true}]},
        "spec": {"nodeName": node, "containers": [{"resources": {"requests": {"cpu": "10m"}}},
            {"name": "none"}, {"resources": {"requests": {"cpu": 2, "memory": "1Gi"}}}]},
        "status": {"phase": "Failed", "podIP": "10.0.0.1"}})
}

#[test]
fn what_is_looked_for_is_known_without_the_object() {
    let known = of("pods", &pod("n"));
    assert_eq!((known.uid(), known.api_version(), known.deleting()), ("1", "v1", true));
    assert_eq!(known.labels(), &json!({"app": "x"}));
    assert_eq!(known.controller().map(|owner| owner.uid.as_str()), Some("2"));
    let fields = [PodField::Node, PodField::Phase, PodField::Address, PodField::Cpu, PodField::Memory];
    assert_eq!(fields.map(|field| known.pod(field)), ["n", "Failed", "10.0.0.1", "10m,2,", "1Gi,"]);
    assert!(known.pod_finished());
    assert_eq!(of("configmaps", &pod("n")).pod(PodField::Node), "");
    assert_eq!(of("pods", &json!({})).labels(), &Value::Null);
}

#[test]
fn the_text_of_an_object_says_what_its_tree_says() {
    let service = json!({"apiVersion": "v1", "spec": {"clusterIP": "10.96.0.7", "healthCheckNodePort": 30003,
        "type": "NodePort", "ports": [{"nodePort": 30001}], "selector": {"app": "x"}}});
    let others = [
        json!({"spec": "text", "metadata": {"uid": "3"}}),
        json!({"spec": {"containers": 1}}),
        json!({"metadata": {"creationTimestamp": "2026-01-01T00:00:00Z", "managedFields": [
            {"manager": "m", "time": "2026-01-01T01:00:00Z", "fieldsV1": {"f:a": {}}}, {"manager": "n"}]}}),
        json!({"metadata": {"creationTimestamp": "then", "managedFields": [1]}}),
        json!(null),
    ];
    for object in [pod("n"), service].into_iter().chain(others) {
        for table in ["pods", "services", "events", "configmaps"] {
            let text = object.to_string();
            let read = Attributes::of_text(indexing(table), text.as_bytes(), &Shared::default()).unwrap();
            assert_eq!(format!("{read:?}"), format!("{:?}", of(table, &object)), "{table} {text}");
        }
    }
    assert!(Attributes::of_text(indexing("pods"), b"{", &Shared::default()).is_none());
}

#[test]
fn what_a_service_holds_and_selects_is_known_without_it() {
    let service = json!({"spec": {"clusterIP": "10.96.0.7", "healthCheckNodePort": 30003,
        "ports": [{"nodePort": 30001}, {"port": 1}, {"nodePort": 30002}], "selector": {"app": "x", "tier": ""}}});
    let known = of("services", &service);
    let fields = [ServiceField::Address, ServiceField::NodePorts, ServiceField::Selector];
    let expected = ["10.96.0.7", "30001,30002,30003,", "app=x,tier=,"];
    assert_eq!(fields.map(|field| known.service(field)), expected);
    let selects = |known: &Attributes, labels: &Value| known.service_selects(labels.as_object());
    assert!(selects(&known, &json!({"app": "x", "tier": "", "more": "1"})));
    assert!(!selects(&known, &json!({"app": "x"})));
    assert!(!selects(&known, &json!({"app": "y", "tier": ""})));
    assert!(!selects(&known, &Value::Null));
    for selects_nothing in
        [json!({"selector": {}}), json!({"type": "ExternalName", "selector": {"app": "x"}})]
    {
        let known = of("services", &json!({"spec": selects_nothing}));
        assert!(!selects(&known, &json!({"app": "x"})));
    }
}
