//! Requests straight into `Api::call`, without a socket.

use super::*;
use http::StatusCode;
use http_body_util::Full;
use jiff::Timestamp;
use serde_json::{Value, json};

/// The columns that upstream uses for kinds without columns of their own: name and creation time.
#[derive(Clone, Copy, Debug, Default)]
struct UpstreamDefault;

impl Tables for UpstreamDefault {
    fn columns(&self, _resource: &Resource) -> Vec<Value> {
        vec![
            json!({"name": "Name", "type": "string", "format": "name", "priority": 0,
                   "description": "Name must be unique within a namespace."}),
            json!({"name": "Created At", "type": "date", "format": "", "priority": 0,
                   "description": "When the object was created."}),
        ]
    }

    fn cells(&self, _resource: &Resource, object: &Value, _now: Timestamp) -> Vec<Value> {
        vec![object["metadata"]["name"].clone(), object["metadata"]["creationTimestamp"].clone()]
    }
}

mod addresses;
mod binary;
mod bodies;
mod changes;
mod clients;
mod defaults;
mod definitions;
#[path = "../apimachinery/protobuf/tests/difference.rs"]
mod difference;
mod disk;
mod evictions;
mod foreign;
mod jobs;
mod kinds;
mod lists;
mod managers;
mod patches;
mod quotas;
mod refusals;
mod rules;
mod watches;
mod writes;

/// An API at a fixed time, with the system's own objects in it.
pub(crate) fn api() -> Api {
    let clock = || "2026-01-02T03:04:05.678Z".parse().unwrap();
    Api::new(
        Arc::new(Registry::boot(Arc::new(clock)).unwrap()),
        Arc::new(UpstreamDefault),
        Arc::new(Tokens::new().unwrap()),
    )
}

/// An answer that was read whole.
pub(crate) struct Read {
    pub(crate) code: u16,
    pub(crate) warnings: Vec<String>,
    pub(crate) json: Value,
}

impl Read {
    #[track_caller]
    pub(crate) fn expect(self, code: StatusCode) -> Value {
        assert_eq!(self.code, code.as_u16(), "{:#}", self.json);
        self.json
    }

    pub(crate) fn message(&self) -> &str {
        self.json["message"].as_str().unwrap_or_default()
    }
}

/// One request with a JSON body (`null` for none).
pub(crate) async fn ask(api: &Api, method: &str, uri: &str, body: Value) -> Read {
    ask_as(api, method, uri, "application/json", body).await
}

pub(crate) async fn ask_as(api: &Api, method: &str, uri: &str, media_type: &str, body: Value) -> Read {
    let text = if body.is_null() { String::new() } else { body.to_string() };
    ask_text(api, method, uri, media_type, &text).await
}

pub(crate) async fn ask_text(api: &Api, method: &str, uri: &str, media_type: &str, text: &str) -> Read {
    let request = Request::builder()
        .method(method)
        .uri(uri)
        .header("content-type", media_type)
        .header("user-agent", "tester/1.0")
        .body(Full::new(Bytes::from(text.to_owned())))
        .unwrap();
    let response = api.call(&User::admin(), request).await;
    let code = response.status().as_u16();
    let warnings = response.headers().get_all("warning").iter();
    let warnings = warnings.map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned()).collect();
    let bytes = response.into_body().collect().await.unwrap().to_bytes();
    let json =
        serde_json::from_slice(&bytes).unwrap_or(Value::String(String::from_utf8_lossy(&bytes).into()));
    Read { code, warnings, json }
}

pub(crate) async fn get(api: &Api, uri: &str) -> Read {
    ask(api, "GET", uri, Value::Null).await
}

pub(crate) async fn post(api: &Api, uri: &str, body: Value) -> Read {
    ask(api, "POST", uri, body).await
}

pub(crate) fn config_map(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"a": "1"}})
}

pub(crate) fn deployment(name: &str) -> Value {
    json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name}, "spec": {
        "selector": {"matchLabels": {"app": name}},
        "template": {"metadata": {"labels": {"app": name}},
            "spec": {"containers": [{"name": "main", "image": "nginx:1.27"}]}}}})
}

pub(crate) fn pod(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "labels": {"app": name}},
        "spec": {"containers": [{"name": "main", "image": "nginx"}]}})
}

pub(crate) const MAPS: &str = "/api/v1/namespaces/default/configmaps";
pub(crate) const DEPLOYMENTS: &str = "/apis/apps/v1/namespaces/default/deployments";
pub(crate) const PODS: &str = "/api/v1/namespaces/default/pods";
