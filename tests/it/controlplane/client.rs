//! `ControlPlane::client()`: kube in process, typed and dynamic.

use expect_test::expect;
use futures::{StreamExt, TryStreamExt};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{
    Api, ApiResource, DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams, WatchEvent,
    WatchParams,
};
use kube::core::GroupVersionKind;
use kube::{Client, ResourceExt, discovery};
use opdev_controlplane::ControlPlane;
use serde_json::{Value, json};
use std::time::Duration;

fn config_map(name: &str, text: &str) -> ConfigMap {
    serde_json::from_value(
        json!({"metadata": {"name": name, "labels": {"app": name}}, "data": {"text": text}}),
    )
    .unwrap()
}

#[tokio::test]
async fn once_its_controllers_are_at_rest_a_new_plane_has_what_a_cluster_has() {
    let plane = ControlPlane::start().await.unwrap();
    plane.controllers_at_rest().await;
    let revision = async || {
        let asked = http::Request::get("/api/v1/namespaces").body(vec![]).unwrap();
        let list: Value = serde_json::from_str(&plane.client().request_text(asked).await.unwrap()).unwrap();
        list["metadata"]["resourceVersion"].clone()
    };
    let before = revision().await;
    for path in [
        "/api/v1/nodes/opdev",
        "/apis/storage.k8s.io/v1/storageclasses/standard",
        "/api/v1/namespaces/default/serviceaccounts/default",
        "/api/v1/namespaces/default/configmaps/kube-root-ca.crt",
    ] {
        let asked = http::Request::get(path).body(vec![]).unwrap();
        plane.client().request_text(asked).await.unwrap();
    }
    assert_eq!(revision().await, before, "nothing more is written");
    plane.stop().await;
}

#[tokio::test]
async fn a_config_map_lives_a_whole_life() {
    let plane = ControlPlane::start().await.unwrap();
    let api: Api<ConfigMap> = Api::default_namespaced(plane.client());

    let made = api.create(&PostParams::default(), &config_map("a", "one")).await.unwrap();
    assert!(made.metadata.uid.is_some() && made.metadata.creation_timestamp.is_some());
    let twice = api.create(&PostParams::default(), &config_map("a", "one")).await.unwrap_err();
    let kube::Error::Api(status) = twice else { panic!("{twice}") };
    assert_eq!((status.code, status.reason.as_str()), (409, "AlreadyExists"));

    let mut changed = made.clone();
    changed.data = Some([("text".to_owned(), "two".to_owned())].into());
    let replaced = api.replace("a", &PostParams::default(), &changed).await.unwrap();
    assert_ne!(replaced.resource_version(), made.resource_version());
    let stale = api.replace("a", &PostParams::default(), &changed).await.unwrap_err();
    let kube::Error::Api(status) = stale else { panic!("{stale}") };
    assert_eq!((status.code, status.reason.as_str()), (409, "Conflict"));

    let merge = Patch::Merge(json!({"data": {"more": "three"}}));
    let patched = api.patch("a", &PatchParams::default(), &merge).await.unwrap();
    assert_eq!(patched.data.unwrap().len(), 2);
    let ops = json!([{"op": "remove", "path": "/data/more"}]).to_string();
    let request = http::Request::patch("/api/v1/namespaces/default/configmaps/a")
        .header("content-type", "application/json-patch+json")
        .body(ops.into_bytes())
        .unwrap();
    let patched: ConfigMap = plane.client().request(request).await.unwrap();
    assert_eq!(patched.data.unwrap().len(), 1);

    let listed = api.list(&ListParams::default().labels("app=a")).await.unwrap();
    assert_eq!(listed.items.len(), 1);
    assert!(api.list(&ListParams::default().labels("app=b")).await.unwrap().items.is_empty());

    api.delete("a", &DeleteParams::default()).await.unwrap();
    assert!(api.get_opt("a").await.unwrap().is_none());
    plane.stop().await;
}

#[tokio::test]
async fn a_watch_tells_what_happens_and_ends_with_the_plane() {
    let plane = ControlPlane::start().await.unwrap();
    let api: Api<ConfigMap> = Api::default_namespaced(plane.client());
    let version = api.list(&ListParams::default()).await.unwrap().metadata.resource_version.unwrap();
    let mut events = api.watch(&WatchParams::default(), &version).await.unwrap().boxed();

    api.create(&PostParams::default(), &config_map("a", "one")).await.unwrap();
    let merge = Patch::Merge(json!({"data": {"text": "two"}}));
    api.patch("a", &PatchParams::default(), &merge).await.unwrap();
    api.delete("a", &DeleteParams::default()).await.unwrap();

    let mut told = Vec::new();
    while told.len() < 3 {
        match events.try_next().await.unwrap().unwrap() {
            WatchEvent::Added(object) if object.name_any() == "a" => told.push("added"),
            WatchEvent::Modified(object) if object.name_any() == "a" => {
                assert_eq!(object.data.unwrap()["text"], "two");
                told.push("modified");
            }
            WatchEvent::Deleted(object) if object.name_any() == "a" => told.push("deleted"),
            _ => {}
        }
    }
    assert_eq!(told, ["added", "modified", "deleted"]);

    let rest = tokio::spawn(async move { events.count().await });
    plane.stop().await;
    tokio::time::timeout(Duration::from_secs(5), rest).await.expect("the watch ends").unwrap();
}

#[tokio::test]
async fn server_side_apply_keeps_what_others_own() {
    let plane = ControlPlane::start().await.unwrap();
    let api: Api<ConfigMap> = Api::default_namespaced(plane.client());
    let apply = |text: Value| {
        Patch::Apply(
            json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": text}),
        )
    };
    api.patch("a", &PatchParams::apply("one"), &apply(json!({"x": "1"}))).await.unwrap();
    let both = api.patch("a", &PatchParams::apply("two"), &apply(json!({"y": "2"}))).await.unwrap();
    assert_eq!(both.data.unwrap().len(), 2);
    let conflict = api.patch("a", &PatchParams::apply("two"), &apply(json!({"x": "3"}))).await.unwrap_err();
    let kube::Error::Api(status) = conflict else { panic!("{conflict}") };
    assert_eq!(status.code, 409);
    expect![[r#"Apply failed with 1 conflict: conflict with "one": .data.x"#]].assert_eq(&status.message);
    let forced = PatchParams::apply("two").force();
    let data = api.patch("a", &forced, &apply(json!({"x": "3"}))).await.unwrap().data.unwrap();
    assert_eq!((data.len(), data["x"].as_str()), (1, "3"), "what two no longer applies is gone");
    plane.stop().await;
}

pub(crate) fn widgets() -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.example.com"},
        "spec": {
            "group": "example.com", "scope": "Namespaced",
            "names": {"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList",
                      "shortNames": ["wd"], "categories": ["all"]},
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "subresources": {"status": {}, "scale": {
                    "specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"}},
                "additionalPrinterColumns": [
                    {"name": "Replicas", "type": "integer", "jsonPath": ".spec.replicas"},
                    {"name": "Color", "type": "string", "jsonPath": ".spec.color", "priority": 1},
                ],
                "schema": {"openAPIV3Schema": {
                    "type": "object", "description": "Widget is a thing to turn.",
                    "properties": {
                        "spec": {"type": "object", "required": ["color"], "properties": {
                            "replicas": {"type": "integer", "minimum": 0, "default": 1,
                                         "description": "How many to turn at once."},
                            "color": {"type": "string", "enum": ["red", "blue"]},
                        }},
                        "status": {"type": "object", "properties": {"replicas": {"type": "integer"}}},
                    },
                }},
            }],
        },
    })
}

async fn with_widgets(client: &Client) -> Api<DynamicObject> {
    let crds: Api<CustomResourceDefinition> = Api::all(client.clone());
    let crd = serde_json::from_value(widgets()).unwrap();
    crds.create(&PostParams::default(), &crd).await.unwrap();
    let gvk = GroupVersionKind::gvk("example.com", "v1", "Widget");
    Api::default_namespaced_with(client.clone(), &ApiResource::from_gvk(&gvk))
}

fn widget(name: &str, spec: &Value) -> DynamicObject {
    let object =
        json!({"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": name}, "spec": spec});
    serde_json::from_value(object).unwrap()
}

#[tokio::test]
async fn a_custom_resource_is_served_at_once_and_checked() {
    let plane = ControlPlane::start().await.unwrap();
    let api = with_widgets(&plane.client()).await;

    let made = api.create(&PostParams::default(), &widget("a", &json!({"color": "red"}))).await.unwrap();
    assert_eq!(made.data["spec"]["replicas"], 1, "the default");
    assert_eq!(made.metadata.generation, Some(1));
    let wrong =
        api.create(&PostParams::default(), &widget("b", &json!({"color": "green"}))).await.unwrap_err();
    let kube::Error::Api(status) = wrong else { panic!("{wrong}") };
    assert_eq!(status.code, 422);
    expect![[r#"Widget.example.com "b" is invalid: spec.color: Unsupported value: "green": supported values: "red", "blue""#]]
    .assert_eq(&status.message);

    let status = Patch::Merge(json!({"status": {"replicas": 1}}));
    let patched = api.patch_status("a", &PatchParams::default(), &status).await.unwrap();
    assert_eq!((patched.metadata.generation, &patched.data["status"]["replicas"]), (Some(1), &json!(1)));
    let scale = Patch::Merge(json!({"spec": {"replicas": 4}}));
    api.patch_scale("a", &PatchParams::default(), &scale).await.unwrap();
    let scaled = api.get("a").await.unwrap();
    assert_eq!((scaled.metadata.generation, &scaled.data["spec"]["replicas"]), (Some(2), &json!(4)));
    plane.stop().await;
}

#[tokio::test]
async fn discovery_finds_built_in_and_custom_kinds_in_both_forms() {
    let plane = ControlPlane::start().await.unwrap();
    let client = plane.client();
    with_widgets(&client).await;
    let legacy = discovery::Discovery::new(client.clone()).run().await.unwrap();
    let aggregated = discovery::Discovery::new(client.clone()).run_aggregated().await.unwrap();
    for found in [legacy, aggregated] {
        for (group, version, kind, plural) in [
            ("", "v1", "Pod", "pods"),
            ("apps", "v1", "Deployment", "deployments"),
            ("example.com", "v1", "Widget", "widgets"),
        ] {
            let gvk = GroupVersionKind::gvk(group, version, kind);
            let (resource, capabilities) = found.resolve_gvk(&gvk).unwrap();
            assert_eq!(resource.plural, plural);
            assert!(capabilities.subresources.iter().any(|(sub, _)| sub.plural == "status"));
        }
    }
    plane.stop().await;
}

#[tokio::test]
async fn a_new_plane_has_the_systems_namespaces() {
    let plane = ControlPlane::start().await.unwrap();
    let api: Api<Namespace> = Api::all(plane.client());
    let names: Vec<String> =
        api.list(&ListParams::default()).await.unwrap().into_iter().map(|ns| ns.name_any()).collect();
    assert_eq!(names, ["default", "kube-node-lease", "kube-public", "kube-system"]);
    plane.stop().await;
}

#[tokio::test]
async fn two_planes_know_nothing_of_each_other() {
    let (one, two) = (ControlPlane::start().await.unwrap(), ControlPlane::start().await.unwrap());
    let first: Api<ConfigMap> = Api::default_namespaced(one.client());
    let second: Api<ConfigMap> = Api::default_namespaced(two.client());
    first.create(&PostParams::default(), &config_map("a", "one")).await.unwrap();
    assert!(second.get_opt("a").await.unwrap().is_none());
    one.stop().await;
    let kube::Error::Api(status) = first.get("a").await.unwrap_err() else { panic!("an answer") };
    assert_eq!((status.code, status.message.as_str()), (503, "the control plane has stopped"));
    second.create(&PostParams::default(), &config_map("a", "two")).await.unwrap();
    two.stop().await;
}
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_deployment_becomes_available() {
    let plane = ControlPlane::start().await.unwrap();
    let api: Api<Deployment> = Api::default_namespaced(plane.client());
    let web: Deployment = serde_json::from_value(json!({
        "metadata": {"name": "web"},
        "spec": {"replicas": 2, "selector": {"matchLabels": {"app": "web"}}, "template": {
            "metadata": {"labels": {"app": "web"}},
            "spec": {"containers": [{"name": "web", "image": "nginx"}]}}},
    }))
    .unwrap();
    let made = api.create(&PostParams::default(), &web).await.unwrap();
    let mut events =
        api.watch(&WatchParams::default(), &made.resource_version().unwrap()).await.unwrap().boxed();
    let available = async {
        loop {
            if let WatchEvent::Modified(object) = events.try_next().await.unwrap().unwrap()
                && object.status.and_then(|status| status.available_replicas) == Some(2)
            {
                return;
            }
        }
    };
    tokio::time::timeout(Duration::from_secs(20), available).await.expect("two available replicas");
    plane.stop().await;
}
