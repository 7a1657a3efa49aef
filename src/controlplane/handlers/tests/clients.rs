//! Requests of client libraries and of other projects' suites that were once answered in another way.

use super::*;

const CLASSES: &str = "/apis/scheduling.k8s.io/v1/priorityclasses";
const MERGE: &str = "application/merge-patch+json";
const APPLY: &str = "application/apply-patch+yaml";
const SERVICES: &str = "/api/v1/namespaces/default/services";

/// A cluster-scoped object has no namespace, whatever a client sends; a namespaced one has that of the path.
#[tokio::test]
async fn a_namespace_in_a_cluster_scoped_body_is_taken_away_by_every_verb() {
    let api = api();
    let class = |value: i64| {
        json!({"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "value": value,
            "metadata": {"name": "high", "namespace": "default"}})
    };
    let one = format!("{CLASSES}/high");
    let labelled = json!({"metadata": {"namespace": "default", "labels": {"a": "b"}}});
    let apply = format!("{one}?fieldManager=t");
    for (method, uri, kind, body) in [
        ("POST", CLASSES, "application/json", class(5)),
        ("PUT", &one, "application/json", class(5)),
        ("PATCH", &one, MERGE, labelled),
        ("PATCH", &apply, APPLY, class(5)),
    ] {
        let read = ask_as(&api, method, uri, kind, body).await;
        assert!([200, 201].contains(&read.code), "{method} {kind}: {}", read.json);
        assert_eq!(read.json["metadata"].get("namespace"), None, "{method} {kind}");
    }
    let mut node = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}});
    post(&api, "/api/v1/nodes", node.clone()).await.expect(StatusCode::CREATED);
    node["metadata"]["namespace"] = json!("default");
    ask(&api, "PUT", "/api/v1/nodes/n/status", node).await.expect(StatusCode::OK);
    let mut map = config_map("a");
    map["metadata"]["namespace"] = json!("kube-system");
    assert_eq!(post(&api, MAPS, map.clone()).await.code, 400);
    post(&api, MAPS, config_map("a")).await.expect(StatusCode::CREATED);
    let one = format!("{MAPS}/a");
    for (method, kind) in [("PUT", "application/json"), ("PATCH", MERGE)] {
        let refused = ask_as(&api, method, &one, kind, map.clone()).await;
        let said = "the namespace of the provided object does not match the namespace sent on the request";
        assert_eq!((refused.code, refused.message()), (400, said), "{method}");
    }
}

#[tokio::test]
async fn a_status_has_the_default_of_its_schema() {
    let api = api();
    let definition = json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "kits.ex.io"},
        "spec": {"group": "ex.io", "scope": "Namespaced", "names": {"plural": "kits", "kind": "Kit"},
            "versions": [{"name": "v1", "served": true, "storage": true, "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {
                    "spec": {"type": "object", "properties": {"size": {"type": "integer"}}},
                    "status": {"type": "object", "default": {"observedGeneration": -1}, "properties": {
                        "observedGeneration": {"type": "integer"}, "ready": {"type": "boolean"}}}}}}}]}});
    let definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    post(&api, definitions, definition).await.expect(StatusCode::CREATED);
    let kits = "/apis/ex.io/v1/namespaces/default/kits";
    let kit = json!({"apiVersion": "ex.io/v1", "kind": "Kit", "metadata": {"name": "a"}, "spec": {"size": 1},
        "status": {"ready": true}});
    let told = |read: Read| read.json["status"].clone();
    let wanted = json!({"observedGeneration": -1});
    assert_eq!(told(post(&api, kits, kit).await), wanted);
    let one = format!("{kits}/a");
    assert_eq!(told(get(&api, &one).await), wanted);
    assert_eq!(told(ask_as(&api, "PATCH", &one, MERGE, json!({"spec": {"size": 2}})).await), wanted);
    let status = format!("{one}/status");
    let cleared = ask_as(&api, "PATCH", &status, MERGE, json!({"status": null})).await;
    assert_eq!(told(cleared), wanted);
}

/// Only a number other than 0 says that an object is there already.
#[tokio::test]
async fn a_new_object_may_come_with_a_version_that_says_nothing() {
    let api = api();
    for (name, version, code) in [("a", "v1", 201), ("b", "0", 201), ("c", "7", 500)] {
        let mut map = config_map(name);
        map["metadata"]["resourceVersion"] = json!(version);
        assert_eq!(post(&api, MAPS, map).await.code, code, "{version}");
    }
}

#[tokio::test]
async fn services_are_held_to_the_same_rules_when_they_come_and_when_they_change() {
    let api = api();
    let service = |name: &str, spec: Value| {
        let mut service =
            json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": name}, "spec": spec});
        service["spec"]["ports"] = json!([{"port": 80}]);
        service
    };
    let dual = "spec.ipFamilyPolicy: Invalid value: \"RequireDualStack\": this cluster is not configured for dual-stack \
                services";
    let six = "spec.ipFamilies[0]: Invalid value: \"IPv6\": not configured on this cluster";
    for (spec, said) in [
        (json!({"ipFamilyPolicy": "RequireDualStack"}), dual),
        (json!({"ipFamilies": ["IPv6"]}), six),
        (json!({"ipFamilies": ["IPv6", "IPv4"], "ipFamilyPolicy": "PreferDualStack"}), six),
        (
            json!({"type": "LoadBalancer", "loadBalancerClass": "a b"}),
            "spec.loadBalancerClass: Invalid value",
        ),
    ] {
        let refused = post(&api, SERVICES, service("a", spec)).await;
        assert!(refused.code == 422 && refused.message().contains(said), "{}", refused.message());
    }
    for (first, then, said) in [
        (json!(null), json!("a.b/c"), "Invalid value: \"a.b/c\": may not change once set"),
        (json!("a.b/c"), json!("a.b/d"), "Invalid value: \"a.b/d\": may not change once set"),
        (json!("a.b/c"), json!(null), "Invalid value: null: may not change once set"),
    ] {
        let balanced = service("lb", json!({"type": "LoadBalancer", "loadBalancerClass": first}));
        post(&api, SERVICES, balanced).await.expect(StatusCode::CREATED);
        let one = format!("{SERVICES}/lb");
        let patch = json!({"spec": {"loadBalancerClass": then}});
        let refused = ask_as(&api, "PATCH", &one, MERGE, patch).await;
        let said = format!("Service \"lb\" is invalid: spec.loadBalancerClass: {said}");
        assert_eq!((refused.code, refused.message()), (422, said.as_str()));
        let local = json!({"spec": {"type": "ClusterIP"}});
        ask_as(&api, "PATCH", &one, MERGE, local).await.expect(StatusCode::OK);
        ask(&api, "DELETE", &one, Value::Null).await.expect(StatusCode::OK);
    }
}

#[tokio::test]
async fn a_priority_of_a_user_has_a_limit() {
    let api = api();
    let class = |name: &str, value: i64| json!({"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": name}, "value": value});
    let refused = post(&api, CLASSES, class("top", 2_000_000_000)).await;
    let said = "PriorityClass.scheduling.k8s.io \"top\" is invalid: value: Forbidden: maximum allowed value of a user \
                defined priority is 1000000000";
    assert_eq!((refused.code, refused.message()), (422, said));
    assert_eq!(post(&api, CLASSES, class("system-mine", 1)).await.code, 422);
    assert_eq!(post(&api, CLASSES, class("top", 1_000_000_000)).await.code, 201);
}

/// Each group and version has its APIService, those of definitions for as long as these are there.
#[tokio::test]
async fn groups_have_api_services() {
    let api = api();
    let services = "/apis/apiregistration.k8s.io/v1/apiservices";
    for group in api.registry().catalog.served().resources() {
        if group.group == "apiregistration.k8s.io" {
            continue;
        }
        let one = format!("{services}/{}.{}", group.version, group.group);
        let found = get(&api, &one).await.expect(StatusCode::OK);
        let available = &found["status"]["conditions"][0];
        assert_eq!(
            (&available["type"], &available["status"]),
            (&json!("Available"), &json!("True")),
            "{one}"
        );
    }
    let definition = |plural: &str, versions: &[&str]| {
        let versions: Vec<Value> = versions
            .iter()
            .enumerate()
            .map(|(at, name)| {
                json!({"name": name, "served": true, "storage": at == 0,
                    "schema": {"openAPIV3Schema": {"type": "object"}}})
            })
            .collect();
        json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": format!("{plural}.ex.io")}, "spec": {"group": "ex.io", "scope": "Namespaced",
                "names": {"plural": plural, "kind": plural}, "versions": versions}})
    };
    let definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    post(&api, definitions, definition("as", &["v1"])).await.expect(StatusCode::CREATED);
    post(&api, definitions, definition("bs", &["v1", "v2"])).await.expect(StatusCode::CREATED);
    let there = async |version: &str| get(&api, &format!("{services}/{version}.ex.io")).await.code;
    assert_eq!((there("v1").await, there("v2").await), (200, 200));
    ask(&api, "DELETE", &format!("{definitions}/bs.ex.io"), Value::Null).await.expect(StatusCode::OK);
    assert_eq!((there("v1").await, there("v2").await), (200, 404));
    ask(&api, "DELETE", &format!("{definitions}/as.ex.io"), Value::Null).await.expect(StatusCode::OK);
    assert_eq!(there("v1").await, 404);
}
