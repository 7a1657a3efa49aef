//! Bodies that cannot be read: they are refused in the words of a real server (1.37.2).

use super::*;

const MAPS: &str = "/api/v1/namespaces/default/configmaps";
const READ: &str = "couldn't get version/kind; json parse error:";

const SCALE: &str = "/apis/apps/v1/namespaces/default/deployments/absent/scale";

async fn said(api: &Api, method: &str, uri: &str, media_type: &str, body: &str) -> String {
    let read = ask_text(api, method, uri, media_type, body).await;
    let said = read.message().to_owned();
    read.expect(StatusCode::BAD_REQUEST);
    said
}

#[tokio::test]
async fn what_is_no_json_is_told_with_the_kind_that_belongs_there() {
    let api = api();
    for (uri, kind, body, why) in [
        (MAPS, "ConfigMap", "a: b", "invalid character 'a' looking for beginning of value (613a2062)"),
        (MAPS, "ConfigMap", "", "unexpected end of JSON input (<empty>)"),
        (
            "/api/v1/namespaces",
            "Namespace",
            "{\"a\":1,}",
            "invalid character '}' looking for beginning of object key string ({\"a\":1,})",
        ),
        (
            "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews",
            "SelfSubjectAccessReview",
            "{",
            "unexpected end of JSON input ({)",
        ),
        (
            "/api/v1/namespaces/default/pods/p/binding",
            "Binding",
            "x",
            "invalid character 'x' looking for beginning of value (78)",
        ),
    ] {
        let expected = format!("the object provided is unrecognized (must be of type {kind}): {READ} {why}");
        assert_eq!(said(&api, "POST", uri, "application/json", body).await, expected);
    }
    let told = said(&api, "POST", MAPS, "application/yaml", "a: [").await;
    let why = "yaml: line 1: did not find expected node content (613a205b)";
    assert_eq!(told, format!("the object provided is unrecognized (must be of type ConfigMap): {why}"));
    for (body, why) in [("", "empty data (<empty>)"), ("k8s\0", "empty body (6b387300)")] {
        let told = said(&api, "POST", MAPS, "application/vnd.kubernetes.protobuf", body).await;
        assert_eq!(told, format!("the object provided is unrecognized (must be of type ConfigMap): {why}"));
    }
    // The options of a delete are of one kind in every group, so nothing says which.
    let one = format!("{MAPS}/a");
    let told = said(&api, "DELETE", &one, "application/json", "{").await;
    assert_eq!(told, format!("{READ} unexpected end of JSON input"));
    let told = said(&api, "DELETE", &one, "application/json", "3").await;
    assert!(told.starts_with(&format!("{READ} json: cannot unmarshal number into Go value of type struct")));
    // To Go `null` is an object without fields.
    let nameless = ask_text(&api, "POST", MAPS, "application/json", "null").await;
    nameless.expect(StatusCode::UNPROCESSABLE_ENTITY);
}

#[tokio::test]
async fn a_patch_that_is_none_is_refused() {
    let api = api();
    post(&api, MAPS, config_map("a")).await.expect(StatusCode::CREATED);
    let one = format!("{MAPS}/a");
    for media_type in ["json-patch+json", "merge-patch+json", "strategic-merge-patch+json"] {
        let media_type = format!("application/{media_type}");
        for uri in [&one, &format!("{MAPS}/absent")] {
            assert_eq!(said(&api, "PATCH", uri, &media_type, "a: b").await, "invalid JSON patch");
        }
        ask_text(&api, "PATCH", &format!("{MAPS}/absent"), &media_type, "3")
            .await
            .expect(StatusCode::NOT_FOUND);
    }
    const LENIENT: &str = "?fieldValidation=Ignore";
    for (media_type, query, body, expected) in [
        (
            "json-patch+json",
            "",
            "3",
            "error decoding patch: json: cannot unmarshal number into Go value of type []handlers.jsonPatchOp",
        ),
        (
            "json-patch+json",
            LENIENT,
            "{}",
            "json: cannot unmarshal object into Go value of type jsonpatch.Patch",
        ),
        (
            "merge-patch+json",
            "",
            "[]",
            "error decoding patch: json: cannot unmarshal array into Go value of type map[string]interface {}",
        ),
        ("merge-patch+json", LENIENT, "\"x\"", "Invalid JSON Patch"),
        (
            "strategic-merge-patch+json",
            "",
            "true",
            "json: cannot unmarshal bool into Go value of type map[string]interface {}",
        ),
        (
            "apply-patch+yaml",
            "?fieldManager=m",
            "a: [",
            "error encoding patch: yaml: line 1: did not find expected node content",
        ),
        (
            "apply-patch+yaml",
            "?fieldManager=m",
            "{",
            "error decoding patch: error converting YAML to JSON: yaml: line 1: did not find expected node content",
        ),
        (
            "apply-patch+yaml",
            "?fieldManager=m",
            "- a",
            "error decoding patch: error unmarshaling JSON: while decoding JSON: json: cannot unmarshal array into Go value of type map[string]interface {}",
        ),
        ("apply-patch+yaml", "?fieldManager=m", "null", "invalid object type: /, Kind="),
    ] {
        let uri = format!("{one}{query}");
        assert_eq!(said(&api, "PATCH", &uri, &format!("application/{media_type}"), body).await, expected);
    }
    ask_text(&api, "PATCH", &one, "application/json-patch+json", "null").await.expect(StatusCode::OK);
}

#[tokio::test]
async fn the_body_of_a_subresource_names_its_object() {
    let api = api();
    post(&api, PODS, pod("p")).await.expect(StatusCode::CREATED);
    let one = format!("{PODS}/p");
    let named =
        |name: &str, namespace: &str| json!({"metadata": {"name": name, "namespace": namespace}}).to_string();
    const FOREIGN: &str =
        "the namespace of the provided object does not match the namespace sent on the request";
    const NAMELESS: &str =
        "the name of the object (absent based on URL) was undeterminable: name must be provided";
    for (method, uri, body, expected) in [
        (
            "POST",
            format!("{one}/eviction"),
            "{}".to_owned(),
            "name in URL does not match name in Eviction object",
        ),
        (
            "POST",
            format!("{one}/eviction"),
            named("q", ""),
            "name in URL does not match name in Eviction object",
        ),
        ("POST", format!("{one}/eviction"), named("p", "other"), FOREIGN),
        (
            "POST",
            format!("{one}/binding"),
            "null".to_owned(),
            "name in URL does not match name in Binding object",
        ),
        (
            "POST",
            "/api/v1/namespaces/default/bindings".to_owned(),
            "{}".to_owned(),
            "Name parameter required.",
        ),
        ("PUT", SCALE.to_owned(), "{}".to_owned(), NAMELESS),
        (
            "PUT",
            SCALE.to_owned(),
            named("x", ""),
            "the name of the object (x) does not match the name on the URL (absent)",
        ),
        ("PUT", SCALE.to_owned(), named("absent", "other"), FOREIGN),
    ] {
        assert_eq!(said(&api, method, &uri, "application/json", &body).await, expected, "{uri} {body}");
    }
    get(&api, &one).await.expect(StatusCode::OK);
}
