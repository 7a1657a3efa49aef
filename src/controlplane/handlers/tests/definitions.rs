//! Definitions and the custom resources they serve.

use super::*;
use expect_test::expect;

const CRDS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const WIDGETS: &str = "/apis/ex.io/v1/namespaces/default/widgets";
const MERGE: &str = "application/merge-patch+json";

fn definition() -> Value {
    json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.ex.io"},
        "spec": {"group": "ex.io", "scope": "Namespaced",
            "names": {"plural": "widgets", "kind": "Widget", "shortNames": ["wd"]},
            "versions": [
                {"name": "v1", "served": true, "storage": true,
                 "subresources": {"status": {}, "scale": {"specReplicasPath": ".spec.replicas",
                    "statusReplicasPath": ".status.replicas", "labelSelectorPath": ".status.selector"}},
                 "selectableFields": [{"jsonPath": ".spec.color"}],
                 "schema": {"openAPIV3Schema": {"type": "object", "properties": {
                    "spec": {"type": "object", "required": ["color"], "properties": {
                        "color": {"type": "string", "enum": ["red", "blue"]},
                        "replicas": {"type": "integer", "default": 1, "minimum": 0}}},
                    "status": {"type": "object", "properties": {
                        "replicas": {"type": "integer"}, "selector": {"type": "string"}}}}}}},
                {"name": "v1beta1", "served": true, "storage": false, "deprecated": true,
                 "schema": {"openAPIV3Schema": {"type": "object",
                    "x-kubernetes-preserve-unknown-fields": true}}}]}})
}

fn widget(name: &str) -> Value {
    json!({"apiVersion": "ex.io/v1", "kind": "Widget", "metadata": {"name": name}, "spec": {"color": "red"}})
}

pub(super) async fn with_widgets() -> Api {
    let api = api();
    post(&api, CRDS, definition()).await.expect(StatusCode::CREATED);
    api
}

#[tokio::test]
async fn a_definition_serves_at_once() {
    let api = api();
    get(&api, WIDGETS).await.expect(StatusCode::NOT_FOUND);
    let made = post(&api, CRDS, definition()).await.expect(StatusCode::CREATED);
    let conditions = made["status"]["conditions"].as_array().unwrap();
    let pairs: Vec<_> =
        conditions.iter().map(|c| (c["type"].as_str().unwrap(), c["status"].as_str().unwrap())).collect();
    assert_eq!(pairs, [("NamesAccepted", "True"), ("Established", "True")]);
    assert_eq!(made["status"]["storedVersions"], json!(["v1"]));
    assert_eq!(made["status"]["acceptedNames"]["listKind"], "WidgetList");
    assert_eq!(get(&api, WIDGETS).await.expect(StatusCode::OK)["kind"], "WidgetList");
}

#[tokio::test]
async fn resources_are_pruned_defaulted_and_validated() {
    let api = with_widgets().await;
    let mut object = widget("a");
    object["spec"]["foo"] = json!(1);
    object["status"] = json!({"replicas": 5});
    let made = post(&api, WIDGETS, object.clone()).await;
    assert_eq!(made.warnings, ["299 - \"unknown field \\\"spec.foo\\\"\""]);
    let made = made.expect(StatusCode::CREATED);
    assert_eq!(made["spec"], json!({"color": "red", "replicas": 1}));
    assert_eq!(made["metadata"]["generation"], 1);
    assert!(made.get("status").is_none(), "status is dropped on create");
    let strict = post(&api, &format!("{WIDGETS}?fieldValidation=Strict"), object).await;
    assert_eq!(
        strict.message(),
        "Widget in version \"v1\" cannot be handled as a Widget: strict decoding error: unknown field \"spec.foo\""
    );
    let mut wrong = widget("b");
    wrong["spec"] = json!({"color": "green", "replicas": -1});
    let wrong = post(&api, WIDGETS, wrong).await.expect(StatusCode::UNPROCESSABLE_ENTITY);
    assert_eq!(
        wrong["message"],
        "Widget.ex.io \"b\" is invalid: [spec.color: Unsupported value: \"green\": supported values: \"red\", \"blue\", \
         spec.replicas: Invalid value: -1: spec.replicas in body should be greater than or equal to 0, \
         .spec.replicas: Invalid value: -1: should be a non-negative integer]"
    );
    let mut none = widget("c");
    none["spec"] = json!({});
    let none = post(&api, WIDGETS, none).await;
    assert_eq!(none.message(), "Widget.ex.io \"c\" is invalid: spec.color: Required value");
}

#[tokio::test]
async fn status_scale_and_generation() {
    let api = with_widgets().await;
    let uri = format!("{WIDGETS}/a");
    let made = post(&api, WIDGETS, widget("a")).await.expect(StatusCode::CREATED);
    let mut bare = made.clone();
    bare["metadata"].as_object_mut().unwrap().remove("resourceVersion");
    let bare = ask(&api, "PUT", &uri, bare).await;
    assert_eq!(
        bare.message(),
        "widgets.ex.io \"a\" is invalid: metadata.resourceVersion: Invalid value: 0: must be specified for an update"
    );
    let status = json!({"spec": {"color": "blue"}, "status": {"replicas": 2, "selector": "a=b"},
        "metadata": {"labels": {"x": "y"}}});
    let status = ask_as(&api, "PATCH", &format!("{uri}/status"), MERGE, status).await.expect(StatusCode::OK);
    assert_eq!((&status["spec"]["color"], &status["status"]["replicas"]), (&json!("red"), &json!(2)));
    assert_eq!(status["metadata"]["generation"], 1);
    assert!(status["metadata"].get("labels").is_none());
    let scale = ask_as(&api, "PATCH", &format!("{uri}/scale"), MERGE, json!({"spec": {"replicas": 4}})).await;
    let scale = scale.expect(StatusCode::OK);
    assert_eq!(
        (&scale["spec"]["replicas"], &scale["status"]),
        (&json!(4), &json!({"replicas": 2, "selector": "a=b"}))
    );
    let read = get(&api, &uri).await.expect(StatusCode::OK);
    assert_eq!((&read["metadata"]["generation"], &read["status"]["replicas"]), (&json!(2), &json!(2)));
}

#[tokio::test]
async fn versions_share_objects() {
    let api = with_widgets().await;
    post(&api, WIDGETS, widget("a")).await.expect(StatusCode::CREATED);
    let old = get(&api, "/apis/ex.io/v1beta1/namespaces/default/widgets/a").await;
    assert_eq!(old.warnings, ["299 - \"ex.io/v1beta1 Widget is deprecated\""]);
    assert_eq!(old.expect(StatusCode::OK)["apiVersion"], "ex.io/v1beta1");
    let mut object = widget("b");
    object["apiVersion"] = json!("ex.io/v1beta1");
    post(&api, "/apis/ex.io/v1beta1/namespaces/default/widgets", object).await.expect(StatusCode::CREATED);
    assert_eq!(get(&api, &format!("{WIDGETS}/b")).await.expect(StatusCode::OK)["apiVersion"], "ex.io/v1");
    let selected =
        get(&api, &format!("{WIDGETS}?fieldSelector=spec.color%3Dred")).await.expect(StatusCode::OK);
    assert_eq!(selected["items"].as_array().unwrap().len(), 2);
    let other = get(&api, &format!("{WIDGETS}?fieldSelector=spec.replicas%3D1")).await;
    assert_eq!(other.message(), "field label not supported: spec.replicas");
}

#[tokio::test]
async fn patches_of_custom_resources() {
    let api = with_widgets().await;
    let uri = format!("{WIDGETS}/a");
    post(&api, WIDGETS, widget("a")).await.expect(StatusCode::CREATED);
    let strategic = ask_as(&api, "PATCH", &uri, "application/strategic-merge-patch+json", json!({})).await;
    assert_eq!(
        strategic.message(),
        "the body of the request was in an unknown format - accepted media types include: \
         application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml"
    );
    strategic.expect(StatusCode::UNSUPPORTED_MEDIA_TYPE);
    let mut config = widget("a");
    config["spec"] = json!({"replicas": 3});
    let apply = format!("{uri}?fieldManager=ctl");
    let conflict = ask_as(&api, "PATCH", &apply, "application/apply-patch+yaml", config.clone()).await;
    assert_eq!(
        conflict.message(),
        "Apply failed with 1 conflict: conflict with \"tester\" using ex.io/v1: .spec.replicas"
    );
    let forced =
        ask_as(&api, "PATCH", &format!("{apply}&force=true"), "application/apply-patch+yaml", config).await;
    assert_eq!(forced.expect(StatusCode::OK)["spec"], json!({"color": "red", "replicas": 3}));
}

/// Status and reason of the condition that tells of a definition's end.
fn terminating(definition: &Value) -> (&str, &str) {
    let conditions = definition["status"]["conditions"].as_array().unwrap();
    let found = conditions.iter().find(|condition| condition["type"] == "Terminating").unwrap();
    (found["status"].as_str().unwrap(), found["reason"].as_str().unwrap())
}

#[tokio::test]
async fn only_the_definition_that_is_meant_is_deleted() {
    let api = with_widgets().await;
    let uri = format!("{CRDS}/widgets.ex.io");
    let uid = get(&api, &uri).await.expect(StatusCode::OK)["metadata"]["uid"].clone();
    let other = ask(&api, "DELETE", &uri, json!({"preconditions": {"uid": "other"}})).await;
    assert_eq!(
        other.message(),
        format!(
            "Operation cannot be fulfilled on customresourcedefinitions.apiextensions.k8s.io \"widgets.ex.io\": \
             Precondition failed: UID in precondition: other, UID in object meta: {}",
            uid.as_str().unwrap()
        )
    );
    ask(&api, "DELETE", &uri, json!({"preconditions": {"uid": uid}})).await.expect(StatusCode::OK);
    get(&api, &uri).await.expect(StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn an_object_that_fits_its_schema_no_more_keeps_its_owners() {
    let api = with_widgets().await;
    let made = post(&api, WIDGETS, widget("a")).await.expect(StatusCode::CREATED);
    let mut other = get(&api, &format!("{CRDS}/widgets.ex.io")).await.expect(StatusCode::OK);
    let schema = &mut other["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"];
    schema["properties"]["color"] = json!({"type": "integer"});
    schema["properties"]["items"] = json!({"type": "array", "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["name"], "items": {"type": "object", "required": ["name"],
            "properties": {"name": {"type": "string"}}}});
    ask(&api, "PUT", &format!("{CRDS}/widgets.ex.io"), other).await.expect(StatusCode::OK);
    let uri = format!("{WIDGETS}/a");
    let scaled = json!({"spec": {"replicas": 2}});
    let scaled = ask_as(&api, "PATCH", &uri, MERGE, scaled).await.expect(StatusCode::OK);
    assert_eq!(scaled["spec"], json!({"color": "red", "replicas": 2}));
    assert!(made["metadata"]["managedFields"].is_array());
    assert_eq!(scaled["metadata"]["managedFields"], made["metadata"]["managedFields"]);
    let config = json!({"apiVersion": "ex.io/v1", "kind": "Widget", "metadata": {"name": "a"}, "spec": {"replicas": 3}});
    let applied =
        ask_as(&api, "PATCH", &format!("{uri}?fieldManager=m"), "application/apply-patch+yaml", config).await;
    assert_eq!(
        applied.message(),
        "failed to create typed live object (default/a; ex.io/v1, Kind=Widget): .spec.color: expected numeric (int or \
         float), got string"
    );
    applied.expect(StatusCode::INTERNAL_SERVER_ERROR);
}

#[tokio::test]
async fn an_apply_keeps_null_and_a_body_loses_it() {
    let api = with_widgets().await;
    let mut object = widget("a");
    object["status"] = json!({"selector": null});
    object["spec"]["replicas"] = Value::Null;
    let made = post(&api, WIDGETS, object.clone()).await.expect(StatusCode::CREATED);
    assert_eq!(made["spec"], json!({"color": "red", "replicas": 1}));
    let uri = |part: &str| format!("{WIDGETS}/b{part}?fieldManager=m");
    const APPLY: &str = "application/apply-patch+yaml";
    object["metadata"]["name"] = json!("b");
    let applied = ask_as(&api, "PATCH", &uri(""), APPLY, object.clone()).await.expect(StatusCode::CREATED);
    assert_eq!(applied["spec"], json!({"color": "red", "replicas": 1}), "a default takes the place of null");
    let refused = ask_as(&api, "PATCH", &uri("/status"), APPLY, object.clone()).await;
    expect![[r#"Widget.ex.io "b" is invalid: status.selector: Invalid value: "null": selector in body must be of type string: "null""#]].assert_eq(refused.message());
    object["spec"]["color"] = Value::Null;
    let refused = ask_as(&api, "PATCH", &uri(""), APPLY, object).await;
    expect![[r#"Widget.ex.io "b" is invalid: [spec.color: Invalid value: "null": spec.color in body must be of type string: "null", spec.color: Unsupported value: null: supported values: "red", "blue"]"#]].assert_eq(refused.message());
}

#[tokio::test]
async fn an_item_without_its_key_is_no_item_that_was_there_before() {
    let api = api();
    let item =
        json!({"type": "object", "properties": {"name": {"type": "string"}, "v": {"type": "integer"}}});
    let mut plain = definition();
    let list = json!({"type": "array", "items": item});
    let at = "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties";
    *plain.pointer_mut(at).unwrap() = json!({"color": {"type": "string"}, "items": list});
    post(&api, CRDS, plain).await.expect(StatusCode::CREATED);
    let mut object = widget("a");
    object["spec"]["items"] = json!([{"v": 1}]);
    post(&api, WIDGETS, object).await.expect(StatusCode::CREATED);
    let mut keyed = get(&api, &format!("{CRDS}/widgets.ex.io")).await.expect(StatusCode::OK);
    let list = &mut keyed.pointer_mut(at).unwrap()["items"];
    list["x-kubernetes-list-type"] = json!("map");
    list["x-kubernetes-list-map-keys"] = json!(["name"]);
    list["items"]["required"] = json!(["name"]);
    ask(&api, "PUT", &format!("{CRDS}/widgets.ex.io"), keyed).await.expect(StatusCode::OK);
    let changed =
        ask_as(&api, "PATCH", &format!("{WIDGETS}/a"), MERGE, json!({"spec": {"color": "blue"}})).await;
    assert_eq!(changed.message(), "Widget.ex.io \"a\" is invalid: spec.items[0].name: Required value");
}

#[tokio::test]
async fn a_definition_takes_its_resources_along() {
    let api = with_widgets().await;
    let mut held = widget("held");
    held["metadata"]["finalizers"] = json!(["ex.io/hold"]);
    post(&api, WIDGETS, held).await.expect(StatusCode::CREATED);
    post(&api, WIDGETS, widget("free")).await.expect(StatusCode::CREATED);
    let uri = format!("{CRDS}/widgets.ex.io");
    let orphan = json!({"propagationPolicy": "Orphan"});
    let going = ask(&api, "DELETE", &uri, orphan.clone()).await.expect(StatusCode::OK);
    let cleanup = "customresourcecleanup.apiextensions.k8s.io";
    assert_eq!(going["metadata"]["finalizers"], json!([cleanup]));
    assert_eq!(going["metadata"]["generation"], 1);
    assert!(going["metadata"].get("deletionGracePeriodSeconds").is_none());
    assert_eq!(terminating(&going), ("True", "InstanceDeletionPending"));
    assert_eq!(
        terminating(&get(&api, &uri).await.expect(StatusCode::OK)),
        ("True", "InstanceDeletionInProgress")
    );
    // Only the second time is it as with other objects.
    let again = ask(&api, "DELETE", &uri, orphan).await.expect(StatusCode::OK);
    assert_eq!(again["metadata"]["finalizers"], json!([cleanup, "orphan"]));
    assert_eq!(again["metadata"]["deletionGracePeriodSeconds"], 0);
    let labels = json!({"metadata": {"labels": {"a": "b"}}});
    ask_as(&api, "PATCH", &uri, MERGE, labels).await.expect(StatusCode::OK);
    get(&api, &format!("{WIDGETS}/free")).await.expect(StatusCode::NOT_FOUND);
    get(&api, &uri).await.expect(StatusCode::OK);
    let late = post(&api, WIDGETS, widget("late")).await;
    assert_eq!(late.message(), "create not allowed while custom resource definition is terminating");
    late.expect(StatusCode::METHOD_NOT_ALLOWED);
    let free = json!({"metadata": {"finalizers": null}});
    ask_as(&api, "PATCH", &format!("{WIDGETS}/held"), MERGE, free.clone()).await.expect(StatusCode::OK);
    let empty = get(&api, &uri).await.expect(StatusCode::OK);
    assert_eq!(empty["metadata"]["finalizers"], json!(["orphan"]));
    assert_eq!(terminating(&empty), ("False", "InstanceDeletionCompleted"));
    let gone = ask_as(&api, "PATCH", &uri, MERGE, free).await.expect(StatusCode::OK);
    assert_eq!((&gone["metadata"]["generation"], terminating(&gone)), (&json!(1), terminating(&empty)));
    get(&api, &uri).await.expect(StatusCode::NOT_FOUND);
    assert_eq!(get(&api, WIDGETS).await.json.as_str(), Some("404 page not found\n"));
}

#[tokio::test]
async fn wrong_definitions_are_refused() {
    let api = api();
    let mut wrong = definition();
    wrong["metadata"]["name"] = json!("other.ex.io");
    let wrong = post(&api, CRDS, wrong).await;
    assert_eq!(
        wrong.message(),
        "CustomResourceDefinition.apiextensions.k8s.io \"other.ex.io\" is invalid: metadata.name: Invalid value: \
         \"other.ex.io\": must be spec.names.plural+\".\"+spec.group"
    );
    let mut two = definition();
    two["spec"]["versions"][1]["storage"] = json!(true);
    let two = post(&api, CRDS, two).await;
    assert!(
        two.message().ends_with("must have exactly one version marked as storage version"),
        "{}",
        two.message()
    );
    let mut none = definition();
    none["spec"]["versions"][0].as_object_mut().unwrap().remove("schema");
    let none = post(&api, CRDS, none).await;
    assert!(
        none.message()
            .contains("spec.versions[0].schema.openAPIV3Schema: Required value: schemas are required")
    );
    let mut rules = definition();
    rules["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["x-kubernetes-validations"] =
        json!([{"rule": "self.replicas > 0"}]);
    post(&api, CRDS, rules).await.expect(StatusCode::CREATED);
    let mut taken = definition();
    taken["metadata"]["name"] = json!("gadgets.ex.io");
    taken["spec"]["names"] = json!({"plural": "gadgets", "kind": "Widget"});
    let taken = post(&api, CRDS, taken).await.expect(StatusCode::CREATED);
    let condition = &taken["status"]["conditions"][0];
    assert_eq!((&condition["status"], &condition["reason"]), (&json!("False"), &json!("ListKindConflict")));
    assert_eq!(condition["message"], "\"WidgetList\" is already in use");
    ask(&api, "DELETE", &format!("{CRDS}/widgets.ex.io"), Value::Null).await.expect(StatusCode::OK);
    let gadgets = get(&api, "/apis/ex.io/v1/namespaces/default/gadgets").await;
    gadgets.expect(StatusCode::OK);
}
