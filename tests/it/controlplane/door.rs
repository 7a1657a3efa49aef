//! Raw requests through the in-process service: what every answer has, health, discovery, OpenAPI.

use expect_test::expect;
use http::{Request, Response};
use http_body_util::{BodyExt, Full};
use opdev_controlplane::{Body, ControlPlane, User};
use serde_json::Value;
use tower::ServiceExt;

struct Answer {
    code: u16,
    headers: http::HeaderMap,
    text: String,
}

impl Answer {
    fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_else(|error| panic!("{error}: {}", self.text))
    }

    fn header(&self, name: &str) -> &str {
        self.headers.get(name).map(|value| value.to_str().unwrap()).unwrap_or_default()
    }
}

async fn read(response: Response<Body>) -> Answer {
    let (parts, body) = response.into_parts();
    let bytes = body.collect().await.unwrap().to_bytes();
    Answer {
        code: parts.status.as_u16(),
        headers: parts.headers,
        // Names are still readable in protobuf.
        text: String::from_utf8_lossy(&bytes).into_owned(),
    }
}

async fn ask(plane: &ControlPlane, request: Request<String>) -> Answer {
    let request = request.map(Full::<bytes::Bytes>::from);
    read(plane.service().oneshot(request).await.unwrap()).await
}

async fn define_widgets(plane: &ControlPlane) {
    let request = Request::post("/apis/apiextensions.k8s.io/v1/customresourcedefinitions")
        .header("content-type", "application/json")
        .body(super::client::widgets().to_string())
        .unwrap();
    assert_eq!(ask(plane, request).await.code, 201);
}

async fn get(plane: &ControlPlane, path: &str, headers: &[(&str, &str)]) -> Answer {
    let mut request = Request::get(path);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    ask(plane, request.body(String::new()).unwrap()).await
}

#[tokio::test]
async fn every_answer_carries_an_audit_id() {
    let plane = ControlPlane::start().await.unwrap();
    let one = get(&plane, "/version", &[]).await;
    let two = get(&plane, "/nowhere", &[]).await;
    assert_eq!((one.code, two.code), (200, 404));
    assert_eq!(one.header("audit-id").len(), 36);
    assert_ne!(one.header("audit-id"), two.header("audit-id"));
    let own = get(&plane, "/version", &[("audit-id", "mine")]).await;
    assert_eq!(own.header("audit-id"), "mine");
    assert!(own.json()["gitVersion"].as_str().unwrap().starts_with("v1.37."));
    plane.stop().await;
}

#[tokio::test]
async fn nobody_known_reads_health_and_version_only() {
    let plane = ControlPlane::start().await.unwrap();
    let nobody = plane.service().as_user(User::anonymous());
    for (path, code) in
        [("/healthz", 200), ("/readyz", 200), ("/version", 200), ("/api", 403), ("/api/v1/pods", 403)]
    {
        let request = Request::get(path).body(Full::<bytes::Bytes>::default()).unwrap();
        let answer = read(nobody.clone().oneshot(request).await.unwrap()).await;
        assert_eq!(answer.code, code, "{path}");
        if code == 403 {
            assert_eq!(answer.json()["reason"], "Forbidden");
            assert!(answer.text.contains("system:anonymous"));
        }
    }
    plane.stop().await;
}

#[tokio::test]
async fn a_refusal_reads_as_the_real_servers_does() {
    let plane = ControlPlane::start().await.unwrap();
    let nobody = plane.service().as_user(User::anonymous());
    let refused = async |agent: &str| {
        let request = Request::get("/api/v1/pods").header("user-agent", agent);
        let request = request.body(Full::<bytes::Bytes>::default()).unwrap();
        read(nobody.clone().oneshot(request).await.unwrap()).await.text
    };
    let message = r#"pods is forbidden: User \"system:anonymous\" cannot list resource \"pods\" in API group \"\" at the cluster scope"#;
    let line = format!(
        r#"{{"kind":"Status","apiVersion":"v1","metadata":{{}},"status":"Failure","message":"{message}","reason":"Forbidden","details":{{"kind":"pods"}},"code":403}}"#
    );
    assert_eq!(refused("client-go").await, line);
    // People read the other form, with the same fields in the same order.
    let for_people = refused("curl/8").await;
    assert_eq!(for_people.lines().map(str::trim).collect::<String>().replace("\": ", "\":"), line);
    assert!(for_people.lines().count() > 5, "{for_people}");
    plane.stop().await;
}

#[tokio::test]
async fn a_body_over_three_mebibytes_is_refused() {
    let plane = ControlPlane::start().await.unwrap();
    let path = "/api/v1/namespaces/default/configmaps";
    let request = Request::post(path).header("content-type", "application/json");
    let answer = ask(&plane, request.body("x".repeat(3 * 1024 * 1024 + 1)).unwrap()).await;
    assert_eq!((answer.code, answer.json()["reason"].as_str()), (413, Some("RequestEntityTooLarge")));
    plane.stop().await;
}

#[tokio::test]
async fn the_core_group_says_the_address_that_a_client_has_reached() {
    let plane = ControlPlane::start().await.unwrap();
    let of_header = get(&plane, "/api", &[("host", "127.0.0.1:6443")]).await;
    let of_uri = get(&plane, "https://localhost:1234/api", &[]).await;
    for (answer, address) in [(of_header, "127.0.0.1:6443"), (of_uri, "localhost:1234")] {
        assert_eq!(
            answer.json()["serverAddressByClientCIDRs"],
            serde_json::json!([{"clientCIDR": "0.0.0.0/0", "serverAddress": address}])
        );
    }
    plane.stop().await;
}

#[tokio::test]
async fn discovery_has_etags_and_both_forms() {
    let plane = ControlPlane::start().await.unwrap();
    let accept = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json";
    let first = get(&plane, "/apis", &[("accept", accept)]).await;
    assert_eq!(
        first.header("content-type"),
        "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
    );
    assert_eq!(first.header("vary"), "Accept");
    let apps =
        first.json()["items"].as_array().unwrap().iter().find(|i| i["metadata"]["name"] == "apps").cloned();
    let resources = apps.unwrap()["versions"][0]["resources"].clone();
    let deployments =
        resources.as_array().unwrap().iter().find(|r| r["resource"] == "deployments").unwrap().clone();
    assert_eq!(deployments["shortNames"][0], "deploy");
    assert_eq!(deployments["subresources"][0]["responseKind"]["kind"], "Scale");

    let again = get(&plane, "/apis", &[("accept", accept), ("if-none-match", first.header("etag"))]).await;
    assert_eq!((again.code, again.text.as_str()), (304, ""));
    let plain = get(&plane, "/apis/apps/v1", &[]).await;
    assert_eq!(plain.json()["kind"], "APIResourceList");
    assert!(plain.text.contains(r#""name":"deployments/scale""#));
    assert_eq!(get(&plane, "/apis/none", &[]).await.code, 404);
    plane.stop().await;
}

#[tokio::test]
async fn openapi_has_a_document_per_group_version() {
    let plane = ControlPlane::start().await.unwrap();
    let index = get(&plane, "/openapi/v3", &[]).await.json();
    let url = index["paths"]["apis/apps/v1"]["serverRelativeURL"].as_str().unwrap().to_owned();
    let document = get(&plane, &url, &[]).await;
    expect!["public, immutable, max-age=31536000"].assert_eq(document.header("cache-control"));
    let etag = document.header("etag").to_owned();
    let known = get(&plane, &url, &[("if-none-match", &etag)]).await;
    assert_eq!(known.code, 304);
    let document = document.json();
    let patch = &document["paths"]["/apis/apps/v1/namespaces/{namespace}/deployments/{name}"]["patch"];
    assert_eq!(patch["x-kubernetes-group-version-kind"]["kind"], "Deployment");
    assert!(patch["requestBody"]["content"]["application/strategic-merge-patch+json"].is_object());
    assert!(patch["parameters"].as_array().unwrap().iter().any(|p| p["name"] == "fieldValidation"));
    // Every reference leads somewhere.
    let text = document.to_string();
    for name in text.split("#/components/schemas/").skip(1).map(|rest| rest.split('"').next().unwrap()) {
        assert!(document["components"]["schemas"][name].is_object(), "{name}");
    }
    let moved = get(&plane, "/openapi/v3/apis/apps/v1?hash=OLD", &[]).await;
    assert_eq!((moved.code, moved.header("location")), (301, url.as_str()));
    plane.stop().await;
}

#[tokio::test]
async fn openapi_v2_has_every_definition_in_one_document() {
    let plane = ControlPlane::start().await.unwrap();
    let before = get(&plane, "/openapi/v2", &[]).await.json();
    assert_eq!(before["swagger"], "2.0");
    let text = before.to_string();
    for name in text.split("#/definitions/").skip(1).map(|rest| rest.split('"').next().unwrap()) {
        assert!(before["definitions"][name].is_object(), "{name}");
    }
    assert!(!text.contains("#/components/"));
    let deployment = &before["definitions"]["io.k8s.api.apps.v1.Deployment"];
    let mark = serde_json::json!([{"group": "apps", "version": "v1", "kind": "Deployment"}]);
    assert_eq!(deployment["x-kubernetes-group-version-kind"], mark);
    let patch = &before["paths"]["/apis/apps/v1/namespaces/{namespace}/deployments/{name}"]["patch"];
    assert_eq!(
        (&patch["parameters"][0]["in"], patch["consumes"].as_array().unwrap().len()),
        (&"body".into(), 4)
    );

    define_widgets(&plane).await;
    let after = get(&plane, "/openapi/v2", &[]).await.json();
    let of =
        |document: &Value| document["definitions"].as_object().unwrap().keys().cloned().collect::<Vec<_>>();
    let new: Vec<String> = of(&after).into_iter().filter(|name| !of(&before).contains(name)).collect();
    assert_eq!(new.len(), 2, "the kind and its list: {new:?}");

    let asked = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf";
    let answer = get(&plane, "/openapi/v2", &[("accept", asked)]).await;
    assert_eq!(answer.header("content-type"), "application/com.github.proto-openapi.spec.v2.v1.0+protobuf");
    assert!(answer.text.starts_with("\u{a}\u{3}2.0"));
    assert!(answer.text.contains("io.k8s.api.apps.v1.DeploymentSpec"));
    assert_eq!(get(&plane, "/openapi/v2", &[("accept", "text/html")]).await.code, 406);
    plane.stop().await;
}

#[tokio::test]
async fn openapi_follows_a_definition_and_keeps_other_hashes() {
    let plane = ControlPlane::start().await.unwrap();
    let before = get(&plane, "/openapi/v3", &[]).await.json();
    define_widgets(&plane).await;
    let after = get(&plane, "/openapi/v3", &[]).await.json();
    assert_eq!(before["paths"]["api/v1"], after["paths"]["api/v1"]);
    let url = after["paths"]["apis/example.com/v1"]["serverRelativeURL"].as_str().unwrap();
    let document = get(&plane, url, &[]).await.json();
    let schema = &document["components"]["schemas"]["com.example.v1.Widget"];
    assert_eq!(schema["properties"]["spec"]["properties"]["color"]["enum"][0], "red");
    assert_eq!(schema["x-kubernetes-group-version-kind"][0]["kind"], "Widget");
    let patch = &document["paths"]["/apis/example.com/v1/namespaces/{namespace}/widgets/{name}"]["patch"];
    let types = patch["requestBody"]["content"].as_object().unwrap();
    assert_eq!(types.len(), 3, "no strategic merge for custom resources: {types:?}");
    plane.stop().await;
}

#[tokio::test]
async fn it_says_what_it_does_not_do() {
    let plane = ControlPlane::start().await.unwrap();
    let document = get(&plane, "/opdev/fidelity", &[]).await.json();
    assert!(document["gaps"].as_array().unwrap().iter().any(|gap| gap["about"] == "CEL"));
    plane.stop().await;
}
