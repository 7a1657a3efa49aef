//! Answers in protobuf, as client-go's typed clients ask for them.

use super::*;
use opdev_apimachinery::protobuf;

const TYPED: &str = "application/vnd.kubernetes.protobuf";

async fn raw(api: &Api, method: &str, uri: &str, accept: &str) -> Response<Body> {
    let request = Request::builder().method(method).uri(uri).header("accept", accept);
    api.call(&User::admin(), request.body(Full::new(Bytes::new())).unwrap()).await
}

async fn read(response: Response<Body>) -> (u16, String, Bytes) {
    let kind = response.headers()["content-type"].to_str().unwrap().to_owned();
    let code = response.status().as_u16();
    (code, kind, response.into_body().collect().await.unwrap().to_bytes())
}

async fn message(api: &Api, method: &str, uri: &str, accept: &str) -> (u16, Value) {
    let (code, kind, bytes) = read(raw(api, method, uri, accept).await).await;
    assert_eq!(kind, TYPED);
    (code, protobuf::decode(&bytes).unwrap())
}

#[tokio::test]
async fn objects_and_lists_are_messages() {
    let api = api();
    let made = post(&api, DEPLOYMENTS, deployment("web")).await.expect(StatusCode::CREATED);
    let one = format!("{DEPLOYMENTS}/web");
    let (code, read_back) = message(&api, "GET", &one, "application/vnd.kubernetes.protobuf, */*").await;
    assert_eq!(code, 200);
    assert_eq!(read_back["spec"], made["spec"]);
    assert_eq!(read_back["metadata"], made["metadata"]);

    let (code, kind, bytes) = read(raw(&api, "GET", DEPLOYMENTS, TYPED).await).await;
    assert_eq!((code, kind.as_str()), (200, TYPED));
    let list = get(&api, DEPLOYMENTS).await.expect(StatusCode::OK);
    assert_eq!(list["kind"], "DeploymentList");
    assert_eq!(bytes, protobuf::encode(&list).unwrap());
    let (_, scale) = message(&api, "GET", &format!("{one}/scale"), TYPED).await;
    assert_eq!((&scale["kind"], &scale["spec"]["replicas"]), (&json!("Scale"), &made["spec"]["replicas"]));
}

#[tokio::test]
async fn failures_are_messages_too() {
    let api = api();
    let (code, _, bytes) = read(raw(&api, "GET", &format!("{MAPS}/none"), TYPED).await).await;
    let json = get(&api, &format!("{MAPS}/none")).await;
    assert_eq!((code, json.code), (404, 404));
    assert_eq!(bytes, protobuf::encode(&json.json).unwrap());
}

#[tokio::test]
async fn custom_resources_stay_json() {
    let api = super::definitions::with_widgets().await;
    let uri = "/apis/ex.io/v1/namespaces/default/widgets";
    let (code, kind, _) =
        read(raw(&api, "GET", uri, "application/vnd.kubernetes.protobuf,application/json").await).await;
    assert_eq!((code, kind.as_str()), (200, "application/json"));
    let (code, _, bytes) = read(raw(&api, "GET", uri, TYPED).await).await;
    let status: Value = serde_json::from_slice(&bytes).unwrap();
    assert_eq!(code, 406);
    assert_eq!(
        status["message"],
        "only the following media types are accepted: application/json, application/yaml"
    );
    let metadata = format!("{TYPED};as=PartialObjectMetadataList;g=meta.k8s.io;v=v1");
    let (code, kind, bytes) = read(raw(&api, "GET", uri, &metadata).await).await;
    assert_eq!((code, kind.as_str()), (200, TYPED));
    assert!(bytes.windows(25).any(|part| part == b"PartialObjectMetadataList"));
}

#[tokio::test]
async fn watches_are_frames() {
    let api = api();
    let made = post(&api, MAPS, config_map("a")).await.expect(StatusCode::CREATED);
    let response = raw(&api, "GET", &format!("{MAPS}?watch=1&timeoutSeconds=1"), TYPED).await;
    assert_eq!(response.headers()["content-type"], format!("{TYPED};stream=watch"));
    let mut body = response.into_body();
    let first = body.frame().await.unwrap().unwrap().into_data().unwrap();
    assert_eq!(first, protobuf::frame("ADDED", &made).unwrap());
    let future = "watch=1&resourceVersion=999999&sendInitialEvents=true&resourceVersionMatch=NotOlderThan";
    let response = raw(&api, "GET", &format!("{MAPS}?{future}"), TYPED).await;
    let bytes = response.into_body().collect().await.unwrap().to_bytes();
    assert_eq!(bytes[..4], u32::try_from(bytes.len() - 4).unwrap().to_be_bytes());
    assert!(bytes.windows(5).any(|part| part == b"ERROR") && bytes.windows(6).any(|part| part == b"Status"));
}

/// A message of a version that is not served is read, and is as little of use as the same in JSON.
#[tokio::test]
async fn versions_that_are_not_served_stay_so_in_every_encoding() {
    let api = api();
    let mut older = deployment("web");
    older["apiVersion"] = json!("apps/v1beta1");
    let send = async |uri: &str, kind: &str, body: Vec<u8>| {
        let request = Request::builder().method("POST").uri(uri).header("content-type", kind);
        let request = request.header("accept", "application/json").body(Full::new(Bytes::from(body)));
        let (code, _, bytes) = read(api.call(&User::admin(), request.unwrap()).await).await;
        (code, String::from_utf8_lossy(&bytes).into_owned())
    };
    let (json, message) = (older.to_string().into_bytes(), protobuf::encode(&older).unwrap());
    let told = send(DEPLOYMENTS, TYPED, message.clone()).await;
    assert_eq!(told, send(DEPLOYMENTS, "application/json", json.clone()).await);
    let why = "the API version in the data (apps/v1beta1) does not match the expected API version (apps/v1)";
    assert!(told.0 == 400 && told.1.contains(why), "{told:?}");
    let uri = DEPLOYMENTS.replace("/v1/", "/v1beta1/");
    let told = send(&uri, TYPED, message).await;
    assert_eq!(told, send(&uri, "application/json", json).await);
    assert_eq!(told.0, 404);
}
