//! `managedFields` as clients see and write them, whatever form trees keep them in.

use super::*;
use expect_test::expect;

async fn read_as(api: &Api, uri: &str, accept: &str) -> String {
    let request = Request::builder().uri(uri).header("accept", accept).body(Full::new(Bytes::new())).unwrap();
    let body = api.call(&User::admin(), request).await.into_body();
    String::from_utf8(body.collect().await.unwrap().to_bytes().into()).unwrap()
}

fn managed(object: &Value) -> &Value {
    &object["metadata"]["managedFields"]
}

#[tokio::test]
async fn managed_fields_look_alike_in_every_form_of_an_answer() {
    let api = api();
    let made = post(&api, MAPS, config_map("a")).await.expect(StatusCode::CREATED);
    assert_eq!(managed(&made)[0]["fieldsV1"], json!({"f:data": {".": {}, "f:a": {}}}));
    let one = format!("{MAPS}/a");
    assert_eq!(managed(&get(&api, &one).await.json), managed(&made));
    assert_eq!(managed(&get(&api, MAPS).await.json["items"][0]), managed(&made));
    let form = |name: &str| format!("application/json;as={name};v=v1;g=meta.k8s.io");
    for (uri, accept, place) in [
        (one.clone(), form("Table"), "/rows/0/object"),
        (format!("{one}?includeObject=Object"), form("Table"), "/rows/0/object"),
        (MAPS.to_owned(), form("Table"), "/rows/0/object"),
        (format!("{MAPS}?includeObject=Object"), form("Table"), "/rows/0/object"),
        (one.clone(), form("PartialObjectMetadata"), ""),
        (MAPS.to_owned(), form("PartialObjectMetadataList"), "/items/0"),
    ] {
        let read: Value = serde_json::from_str(&read_as(&api, &uri, &accept).await).unwrap();
        assert_eq!(managed(read.pointer(place).unwrap()), managed(&made), "{uri} {accept}");
    }
    assert!(read_as(&api, &one, "application/yaml").await.contains("    fieldsV1:\n      f:data:\n"));
}

#[tokio::test]
async fn trees_that_are_kept_have_managed_fields_as_text() {
    let api = api();
    let uri = format!("{MAPS}/a");
    let kept = |name: &str| {
        let key = opdev_storage::Key::new("default", name);
        let stored = api.registry().store.get("configmaps", &key).unwrap();
        let fields = managed(&stored.value())[0]["fieldsV1"].clone();
        (stored.key().namespace.clone(), fields)
    };
    let made = post(&api, MAPS, config_map("a")).await.expect(StatusCode::CREATED);
    assert!(kept("a").1.is_string());
    for body in [json!({"data": {"b": "1"}}), json!({"metadata": {"labels": {"b": "1"}}})] {
        ask_as(&api, "PATCH", &uri, "application/merge-patch+json", body).await.expect(StatusCode::OK);
        assert!(kept("a").1.is_string());
    }
    ask_as(&api, "PUT", &uri, "application/json", config_map("a")).await.expect(StatusCode::OK);
    assert!(kept("a").1.is_string());
    let mut other = config_map("b");
    other["metadata"]["managedFields"] = managed(&made).clone();
    post(&api, MAPS, other).await.expect(StatusCode::CREATED);
    assert!(kept("b").1.is_string());
    // And both have one text for their namespace.
    assert!(Arc::ptr_eq(&kept("a").0, &kept("b").0));
}

#[tokio::test]
async fn patches_reach_into_managed_fields() {
    let api = api();
    let uri = format!("{MAPS}/a");
    post(&api, MAPS, config_map("a")).await.expect(StatusCode::CREATED);
    let patch = async |kind: &str, body: Value| {
        let patched = ask_as(&api, "PATCH", &uri, &format!("application/{kind}"), body).await;
        managed(&patched.expect(StatusCode::OK)).clone()
    };
    let own = "/metadata/managedFields/0/fieldsV1/f:data/f:a";
    let steps = json!([{"op": "test", "path": own, "value": {}}, {"op": "remove", "path": own}]);
    assert_eq!(patch("json-patch+json", steps).await[0]["fieldsV1"], json!({"f:data": {}}));
    let copied = json!([{"op": "copy", "from": "/metadata", "path": "/metadata"}]);
    assert_eq!(patch("json-patch+json", copied).await[0]["fieldsV1"], json!({"f:data": {}}));
    let entry = json!({"manager": "m", "operation": "Apply", "apiVersion": "v1", "fieldsType": "FieldsV1",
        "fieldsV1": {"f:data": {"f:a": {}}}});
    for kind in ["merge-patch+json", "strategic-merge-patch+json"] {
        let change = json!({"metadata": {"managedFields": [entry]}});
        assert_eq!(patch(kind, change).await, json!([entry]), "{kind}");
        assert_eq!(patch(kind, json!({"metadata": {"managedFields": [{}]}})).await, Value::Null, "{kind}");
    }
}

#[tokio::test]
async fn nobody_writes_text_into_an_answer_by_a_string_that_looks_compact() {
    let api = api();
    for fields in ["\0", "\0{", "\0{}, \"kind\": \"Secret\"", "\0{\n}", "{}"] {
        let mut map = config_map("a");
        map["metadata"]["managedFields"] = json!([{"manager": "m", "operation": "Update", "apiVersion": "v1",
            "fieldsType": "FieldsV1", "fieldsV1": fields}]);
        let refused = post(&api, MAPS, map).await;
        assert_eq!(refused.code, 400, "{fields:?}");
        expect![[r#"ConfigMap in version "v1" cannot be handled as a ConfigMap: json: cannot unmarshal string into Go struct field ManagedFieldsEntry.metadata.managedFields.fieldsV1 of type object"#]]
        .assert_eq(refused.message());
    }
}

#[tokio::test]
async fn a_refusal_that_shows_the_object_shows_its_managed_fields_as_clients_know_them() {
    let api = super::definitions::with_widgets().await;
    let uri = "/apis/ex.io/v1/namespaces/default/widgets";
    let widget = json!({"apiVersion": "ex.io/v1", "kind": "Widget", "metadata": {"name": "a"}, "spec": {"color": "red"}});
    post(&api, uri, widget).await.expect(StatusCode::CREATED);
    post(&api, MAPS, config_map("a")).await.expect(StatusCode::CREATED);
    for (uri, steps, owned) in [
        (uri, json!([{"op": "remove", "path": "/kind"}]), "f:spec"),
        (MAPS, json!([{"op": "add", "path": "/data", "value": 1}]), "f:data"),
    ] {
        let refused = ask_as(&api, "PATCH", &format!("{uri}/a"), "application/json-patch+json", steps).await;
        assert_eq!(refused.code, 422);
        let (message, fields) = (refused.message(), format!("\\\":{{\\\"{owned}\\\":{{"));
        let plain = message.replace("\\\\", "\\");
        assert!(plain.contains(&format!("fieldsV1{fields}")), "{message}");
    }
}
