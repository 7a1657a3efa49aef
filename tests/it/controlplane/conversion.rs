//! Custom resources whose versions a webhook converts: stored at one, read, written, listed and watched at
//! another, and the words of the real server where the webhook does not do its part.

use super::webhook_server::Webhook;
use super::webhooks::{ask, ask_as, bare_plane};
use futures::{StreamExt, TryStreamExt};
use kube::api::{Api, ApiResource, DynamicObject, GroupVersionKind, WatchEvent, WatchParams};
use opdev_controlplane::ControlPlane;
use serde_json::{Value, json};

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const V1: &str = "/apis/wh.io/v1/namespaces/default/widgets";
const V2: &str = "/apis/wh.io/v2/namespaces/default/widgets";

/// Widgets: `v1` has a host and a port, `v2` both in one text.
pub(super) fn converting_definition(client: &Value, storage: &str) -> Value {
    let version = |name: &str, fields: &[&str]| {
        let fields: serde_json::Map<String, Value> =
            fields.iter().map(|field| ((*field).to_owned(), json!({"type": "string"}))).collect();
        json!({"name": name, "served": true, "storage": name == storage, "subresources": {"status": {}},
            "schema": {"openAPIV3Schema": {"type": "object", "properties": {
                "spec": {"type": "object", "properties": fields},
                "status": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}}}})
    };
    json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.wh.io"},
        "spec": {"group": "wh.io", "scope": "Namespaced",
            "names": {"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"},
            "versions": [version("v1", &["host", "port"]), version("v2", &["hostPort"])],
            "conversion": {"strategy": "Webhook",
                "webhook": {"conversionReviewVersions": ["v1"], "clientConfig": client}}}})
}

/// A widget at the other version.
fn turned(object: &Value, wanted: &str) -> Value {
    let (mut object, spec) = (object.clone(), object["spec"].clone());
    object["apiVersion"] = json!(wanted);
    let text = |field: &str| spec[field].as_str().unwrap_or_default();
    object["spec"] = if wanted == "wh.io/v2" {
        json!({"hostPort": format!("{}:{}", text("host"), text("port"))})
    } else {
        let (host, port) = text("hostPort").split_once(':').unwrap_or_default();
        json!({"host": host, "port": port})
    };
    object
}

/// Has the server convert, and changes its answers.
pub(super) fn converts(server: &Webhook, change: impl Fn(&mut Value) + Send + Sync + 'static) {
    server.on("/convert", move |review| {
        let request = &review["request"];
        let wanted = request["desiredAPIVersion"].as_str().unwrap();
        let objects = request["objects"].as_array().unwrap();
        let converted: Vec<Value> = objects.iter().map(|object| turned(object, wanted)).collect();
        let mut response =
            json!({"uid": request["uid"], "result": {"status": "Success"}, "convertedObjects": converted});
        change(&mut response);
        (200, json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "ConversionReview", "response": response}))
    });
}

async fn widgets() -> (ControlPlane, Webhook) {
    let (plane, server) = (bare_plane().await, Webhook::start().await);
    converts(&server, |_| {});
    let (code, warnings, body) =
        ask(&plane, "POST", DEFINITIONS, converting_definition(&server.url("/convert"), "v1")).await;
    assert_eq!((code, warnings.len()), (201, 0), "{body:#}");
    (plane, server)
}

fn widget(name: &str, host_port: &str) -> Value {
    json!({"apiVersion": "wh.io/v2", "kind": "Widget", "metadata": {"name": name}, "spec": {"hostPort": host_port}})
}

#[tokio::test]
async fn objects_live_at_both_versions() {
    let (plane, server) = widgets().await;
    let (code, _, made) = ask(&plane, "POST", V2, widget("a", "x:1")).await;
    assert_eq!((code, &made["spec"]), (201, &json!({"hostPort": "x:1"})), "{made:#}");
    assert_eq!(made["apiVersion"], "wh.io/v2");
    let stored = ask(&plane, "GET", &format!("{V1}/a"), Value::Null).await.2;
    assert_eq!(
        (&stored["spec"], &stored["apiVersion"]),
        (&json!({"host": "x", "port": "1"}), &json!("wh.io/v1"))
    );
    assert_eq!(stored["metadata"]["uid"], made["metadata"]["uid"]);

    // An object that is stored at the version that is asked for needs no conversion.
    server.asked();
    let bare = json!({"apiVersion": "wh.io/v1", "kind": "Widget", "metadata": {"name": "b"}, "spec": {"host": "y", "port": "2"}});
    ask(&plane, "POST", V1, bare).await;
    ask(&plane, "GET", V1, Value::Null).await;
    assert_eq!(server.paths(), [""; 0]);
    // A list is converted at once, and only once for each revision of an object.
    for calls in [1, 0] {
        let list = ask(&plane, "GET", V2, Value::Null).await.2;
        let specs: Vec<&Value> =
            list["items"].as_array().unwrap().iter().map(|o| &o["spec"]["hostPort"]).collect();
        assert_eq!(specs, ["x:1", "y:2"]);
        assert_eq!(server.paths().len(), calls);
    }

    let merge = "application/merge-patch+json";
    let change = json!({"spec": {"hostPort": "z:9"}});
    let patched = ask_as(&plane, "PATCH", &format!("{V2}/b"), merge, change.clone()).await.2;
    assert_eq!(
        (&patched["spec"]["hostPort"], &patched["metadata"]["generation"]),
        (&json!("z:9"), &json!(2))
    );
    let again = ask_as(&plane, "PATCH", &format!("{V2}/b"), merge, change).await.2;
    assert_eq!(again["metadata"]["resourceVersion"], patched["metadata"]["resourceVersion"]);
    let status = json!({"status": {"ok": "yes"}});
    ask_as(&plane, "PATCH", &format!("{V2}/b/status"), merge, status.clone()).await;
    let applied = format!("{V2}/c?fieldManager=me");
    let (code, _, body) =
        ask_as(&plane, "PATCH", &applied, "application/apply-patch+yaml", widget("c", "q:7")).await;
    assert_eq!(code, 201, "{body:#}");
    let stored = ask(&plane, "GET", V1, Value::Null).await.2;
    let specs: Vec<&Value> = stored["items"].as_array().unwrap().iter().map(|o| &o["spec"]).collect();
    assert_eq!(
        specs,
        [
            &json!({"host": "x", "port": "1"}),
            &json!({"host": "z", "port": "9"}),
            &json!({"host": "q", "port": "7"})
        ]
    );
    assert_eq!(stored["items"][1]["status"], status["status"]);

    // Another version to store at: what is there stays, and is converted from what it is.
    let next = converting_definition(&server.url("/convert"), "v2");
    let change = json!({"spec": {"versions": next["spec"]["versions"]}});
    let changed = ask_as(&plane, "PATCH", &format!("{DEFINITIONS}/widgets.wh.io"), merge, change).await.2;
    assert_eq!(changed["status"]["storedVersions"], json!(["v1", "v2"]));
    for (path, spec) in [(V2, json!({"hostPort": "z:9"})), (V1, json!({"host": "z", "port": "9"}))] {
        assert_eq!(ask(&plane, "GET", &format!("{path}/b"), Value::Null).await.2["spec"], spec);
    }
    let touched = ask_as(&plane, "PATCH", &format!("{V1}/b"), merge, json!({"spec": {"port": "5"}})).await.2;
    assert_eq!(touched["spec"], json!({"host": "z", "port": "5"}));
    server.asked();
    assert_eq!(ask(&plane, "GET", &format!("{V2}/b"), Value::Null).await.2["spec"]["hostPort"], "z:5");
    assert_eq!(server.paths(), [""; 0]);
    assert_eq!(ask(&plane, "DELETE", V1, Value::Null).await.0, 200);
    plane.stop().await;
}

#[tokio::test]
async fn a_watch_shows_the_version_that_was_asked_for() {
    let (plane, _server) = widgets().await;
    ask(&plane, "POST", V2, widget("a", "x:1")).await;
    let kind = ApiResource::from_gvk(&GroupVersionKind::gvk("wh.io", "v2", "Widget"));
    let api: Api<DynamicObject> = Api::default_namespaced_with(plane.client(), &kind);
    let mut events = api.watch(&WatchParams::default(), "0").await.unwrap().boxed();
    let mut next = async || match events.try_next().await.unwrap().unwrap() {
        WatchEvent::Added(o) | WatchEvent::Modified(o) | WatchEvent::Deleted(o) => {
            (o.types.unwrap().api_version, o.data["spec"]["hostPort"].clone())
        }
        other => panic!("{other:?}"),
    };
    assert_eq!(next().await, ("wh.io/v2".to_owned(), json!("x:1")));
    let change = json!({"spec": {"port": "2"}});
    ask_as(&plane, "PATCH", &format!("{V1}/a"), "application/merge-patch+json", change).await;
    assert_eq!(next().await, ("wh.io/v2".to_owned(), json!("x:2")));
    ask(&plane, "DELETE", &format!("{V1}/a"), Value::Null).await;
    assert_eq!(next().await, ("wh.io/v2".to_owned(), json!("x:2")));
    plane.stop().await;
}

#[tokio::test]
async fn a_webhook_changes_labels_and_annotations_and_no_other_metadata() {
    let (plane, server) = widgets().await;
    converts(&server, |response| {
        for object in response["convertedObjects"].as_array_mut().unwrap() {
            object["metadata"]["labels"] = json!({"a": "b"});
            object["metadata"]["annotations"] = json!({"c": "d"});
            object["metadata"]["finalizers"] = json!(["x.io/y"]);
            object["spec"]["unknown"] = json!(1);
        }
    });
    let (_, _, made) = ask(&plane, "POST", V2, widget("a", "x:1")).await;
    let meta = &made["metadata"];
    assert_eq!((&meta["labels"], &meta["annotations"]), (&json!({"a": "b"}), &json!({"c": "d"})));
    assert_eq!((meta.get("finalizers"), made["spec"].get("unknown")), (None, None));
    plane.stop().await;
}

#[tokio::test]
async fn what_a_webhook_does_wrong_is_told_in_the_words_of_the_real_server() {
    let (plane, server) = widgets().await;
    let about = "conversion webhook for wh.io/v2, Kind=Widget";
    let each = |change: fn(&mut Value)| {
        move |response: &mut Value| {
            response["convertedObjects"].as_array_mut().unwrap().iter_mut().for_each(change);
        }
    };
    type Change = Box<dyn Fn(&mut Value) + Send + Sync>;
    let cases: Vec<(Change, &str)> = vec![
        (Box::new(|r| r["result"] = json!({"status": "Failure", "message": "cannot"})), "failed: cannot"),
        (
            Box::new(|r| r["result"] = json!({"status": "Failure"})),
            "failed: response.result.status was 'Failure', not 'Success'",
        ),
        (Box::new(|r| r["result"] = json!({})), "failed: response.result.status was '', not 'Success'"),
        (Box::new(|r| r["convertedObjects"] = json!([])), "returned 0 objects, expected 1"),
        (
            Box::new(each(|o| o["apiVersion"] = json!("wh.io/v9"))),
            "returned invalid object at index 0: invalid groupVersion (expected wh.io/v1, received wh.io/v9)",
        ),
        (
            Box::new(each(|o| o["kind"] = json!("Gadget"))),
            "returned invalid object at index 0: invalid kind (expected Widget, received Gadget)",
        ),
        (
            Box::new(each(|o| o["metadata"]["name"] = json!("other"))),
            "returned invalid object: must have the same name: a != other",
        ),
        (
            Box::new(each(|o| o["metadata"]["namespace"] = json!("other"))),
            "returned invalid object: must have the same namespace: default != other",
        ),
    ];
    for (change, message) in cases {
        converts(&server, change);
        let (code, _, body) = ask(&plane, "POST", V2, widget("a", "x:1")).await;
        assert_eq!((code, &body["message"]), (500, &json!(format!("{about} {message}"))));
    }
    server.on("/convert", |_| (500, json!("boom")));
    let (_, _, body) = ask(&plane, "POST", V2, widget("a", "x:1")).await;
    let message = "failed: an error on the server (\"boom\") has prevented the request from succeeding";
    assert_eq!(body["message"], format!("{about} {message}"));
    // Reading fails too, but only at the other version.
    let bare = json!({"apiVersion": "wh.io/v1", "kind": "Widget", "metadata": {"name": "b"}});
    assert_eq!(ask(&plane, "POST", V1, bare).await.0, 201);
    assert_eq!(ask(&plane, "GET", V1, Value::Null).await.0, 200);
    assert_eq!(ask(&plane, "GET", V2, Value::Null).await.0, 500);
    assert_eq!(ask(&plane, "GET", &format!("{V2}/b"), Value::Null).await.0, 500);
    plane.stop().await;
}

#[tokio::test]
async fn admission_webhooks_see_the_version_that_they_know() {
    let (plane, server) = widgets().await;
    server.patch("/m", json!([{"op": "replace", "path": "/spec/port", "value": "7"}]));
    server.allow("/exact");
    let rules = json!([{"apiGroups": ["wh.io"], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["widgets"]}]);
    for (sort, path, policy) in [("Mutating", "/m", "Equivalent"), ("Validating", "/exact", "Exact")] {
        let hook = json!({"name": "w.example.com", "clientConfig": server.url(path), "rules": rules,
            "sideEffects": "None", "admissionReviewVersions": ["v1"], "matchPolicy": policy});
        let list =
            format!("/apis/admissionregistration.k8s.io/v1/{}webhookconfigurations", sort.to_lowercase());
        let object = json!({"metadata": {"name": "w"}, "webhooks": [hook]});
        assert_eq!(ask(&plane, "POST", &list, object).await.0, 201);
    }
    let (_, _, made) = ask(&plane, "POST", V2, widget("a", "x:1")).await;
    assert_eq!(made["spec"]["hostPort"], "x:7");
    let asked: Vec<(String, Value)> =
        server.asked().into_iter().filter(|(path, _)| path != "/convert").collect();
    let [(path, request)] = asked.as_slice() else { panic!("{asked:#?}") };
    assert_eq!(path, "/m");
    assert_eq!(request["object"]["spec"], json!({"host": "x", "port": "1"}));
    assert_eq!(
        (&request["kind"]["version"], &request["requestKind"]["version"]),
        (&json!("v1"), &json!("v2"))
    );
    plane.stop().await;
}
