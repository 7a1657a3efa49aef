//! Watches, read as the lines they are.

use super::*;
use opdev_storage::Expected;

/// A running watch.
struct Lines {
    body: Body,
    rest: Vec<u8>,
}

impl Lines {
    async fn open(api: &Api, uri: &str) -> Lines {
        let request = Request::builder().uri(uri).body(Full::new(Bytes::new())).unwrap();
        let response = api.call(&User::admin(), request).await;
        assert_eq!(response.status(), StatusCode::OK);
        Lines { body: response.into_body(), rest: Vec::new() }
    }

    /// The next event; `None` when the stream has ended.
    async fn next(&mut self) -> Option<Value> {
        loop {
            if let Some(end) = self.rest.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.rest.drain(..=end).collect();
                return Some(serde_json::from_slice(&line).unwrap());
            }
            let frame = self.body.frame().await?.unwrap();
            self.rest.extend_from_slice(&frame.into_data().unwrap());
        }
    }

    async fn short(&mut self) -> (String, String) {
        let event = self.next().await.unwrap();
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        (text(&event["type"]), text(&event["object"]["metadata"]["name"]))
    }
}

fn pair(kind: &str, name: &str) -> (String, String) {
    (kind.to_owned(), name.to_owned())
}

#[tokio::test]
async fn without_a_revision_the_state_comes_first() {
    let api = api();
    post(&api, MAPS, config_map("a")).await.expect(StatusCode::CREATED);
    let mut lines = Lines::open(&api, &format!("{MAPS}?watch=true")).await;
    assert_eq!(lines.short().await, pair("ADDED", "a"));
    post(&api, MAPS, config_map("b")).await.expect(StatusCode::CREATED);
    ask(&api, "DELETE", &format!("{MAPS}/a"), Value::Null).await.expect(StatusCode::OK);
    assert_eq!(lines.short().await, pair("ADDED", "b"));
    assert_eq!(lines.short().await, pair("DELETED", "a"));
}

#[tokio::test]
async fn the_last_finalizer_goes_with_the_object_as_it_was() {
    let api = api();
    let mut held = config_map("a");
    held["metadata"]["finalizers"] = json!(["ex.io/hold"]);
    let made = post(&api, MAPS, held).await.expect(StatusCode::CREATED);
    ask(&api, "DELETE", &format!("{MAPS}/a"), Value::Null).await.expect(StatusCode::OK);
    let at = made["metadata"]["resourceVersion"].as_str().unwrap();
    let mut lines = Lines::open(&api, &format!("{MAPS}?watch=1&resourceVersion={at}")).await;
    let free = json!({"metadata": {"finalizers": null, "labels": {"new": "1"}}});
    let free = ask_as(&api, "PATCH", &format!("{MAPS}/a"), "application/merge-patch+json", free).await;
    let free = free.expect(StatusCode::OK);
    assert_eq!((free["metadata"].get("finalizers"), &free["metadata"]["labels"]["new"]), (None, &json!("1")));
    assert_eq!(lines.short().await, pair("MODIFIED", "a"));
    let gone = lines.next().await.unwrap();
    assert_eq!(gone["type"], "DELETED");
    assert_eq!(gone["object"]["metadata"]["finalizers"], json!(["ex.io/hold"]));
    assert!(gone["object"]["metadata"].get("labels").is_none());
}

#[tokio::test]
async fn from_a_revision_only_what_follows() {
    let api = api();
    let made = post(&api, MAPS, config_map("a")).await.expect(StatusCode::CREATED);
    let at = made["metadata"]["resourceVersion"].as_str().unwrap();
    let mut lines = Lines::open(&api, &format!("{MAPS}?watch=1&resourceVersion={at}")).await;
    let mut next = made.clone();
    next["data"]["a"] = json!("2");
    ask(&api, "PUT", &format!("{MAPS}/a"), next).await.expect(StatusCode::OK);
    let event = lines.next().await.unwrap();
    assert_eq!((&event["type"], &event["object"]["data"]["a"]), (&json!("MODIFIED"), &json!("2")));
}

#[tokio::test]
async fn objects_come_and_go_with_the_selection() {
    let api = api();
    let uri = format!("{MAPS}?watch=true&labelSelector=in%3Dyes");
    let mut lines = Lines::open(&api, &uri).await;
    post(&api, MAPS, config_map("a")).await.expect(StatusCode::CREATED);
    for value in [json!("yes"), json!("no")] {
        let patch = json!({"metadata": {"labels": {"in": value}}});
        ask_as(&api, "PATCH", &format!("{MAPS}/a"), "application/merge-patch+json", patch)
            .await
            .expect(StatusCode::OK);
    }
    assert_eq!(lines.short().await, pair("ADDED", "a"));
    let gone = lines.next().await.unwrap();
    assert_eq!(
        (&gone["type"], &gone["object"]["metadata"]["labels"]["in"]),
        (&json!("DELETED"), &json!("yes"))
    );
    let now = get(&api, &format!("{MAPS}/a")).await.expect(StatusCode::OK);
    assert_eq!(gone["object"]["metadata"]["resourceVersion"], now["metadata"]["resourceVersion"]);
}

#[tokio::test]
async fn initial_events_end_with_a_bookmark() {
    let api = api();
    post(&api, MAPS, config_map("a")).await.expect(StatusCode::CREATED);
    let uri = format!(
        "{MAPS}?watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true"
    );
    let mut lines = Lines::open(&api, &uri).await;
    assert_eq!(lines.short().await, pair("ADDED", "a"));
    let mark = lines.next().await.unwrap();
    assert_eq!(mark["type"], "BOOKMARK");
    assert_eq!(mark["object"]["metadata"]["annotations"]["k8s.io/initial-events-end"], "true");
    assert_eq!(mark["object"]["kind"], "ConfigMap");
    let wrong = get(&api, &format!("{MAPS}?watch=true&sendInitialEvents=true")).await;
    wrong.expect(StatusCode::UNPROCESSABLE_ENTITY);
}

#[tokio::test]
async fn what_is_forgotten_is_an_error_event() {
    let api = api();
    let store = &api.registry().store;
    let key = Key::new("default", "a");
    let mut at = store.put("configmaps", &key, Expected::Absent, config_map("a")).unwrap().revision;
    for _ in 0..5000 {
        at = store.put("configmaps", &key, Expected::Revision(at), config_map("a")).unwrap().revision;
    }
    let mut lines = Lines::open(&api, &format!("{MAPS}?watch=true&resourceVersion=7")).await;
    let event = lines.next().await.unwrap();
    assert_eq!(event["type"], "ERROR");
    assert_eq!((&event["object"]["code"], &event["object"]["reason"]), (&json!(410), &json!("Expired")));
    assert!(event["object"]["message"].as_str().unwrap().starts_with("too old resource version: 7 ("));
    assert_eq!(lines.next().await, None);
}

#[tokio::test]
async fn the_end_comes_by_the_clock_behind_a_bookmark() {
    let api = api();
    let uri = format!("{MAPS}?watch=true&allowWatchBookmarks=true&timeoutSeconds=1");
    let mut lines = Lines::open(&api, &uri).await;
    post(&api, PODS, pod("p")).await.expect(StatusCode::CREATED);
    let newest = api.registry().store.revision().to_string();
    let mark = lines.next().await.unwrap();
    assert_eq!(mark["type"], "BOOKMARK");
    assert_eq!(mark["object"]["metadata"]["resourceVersion"], newest);
    assert_eq!(lines.next().await, None);
}

#[tokio::test]
async fn a_watch_of_tables_describes_its_columns_once() {
    let api = api();
    post(&api, MAPS, config_map("a")).await.expect(StatusCode::CREATED);
    post(&api, MAPS, config_map("b")).await.expect(StatusCode::CREATED);
    let request = Request::builder()
        .uri(format!("{MAPS}?watch=true"))
        .header("accept", "application/json;as=Table;v=v1;g=meta.k8s.io")
        .body(Full::new(Bytes::new()))
        .unwrap();
    let body = api.call(&User::admin(), request).await.into_body();
    let mut lines = Lines { body, rest: Vec::new() };
    let first = lines.next().await.unwrap();
    assert!(first["object"]["columnDefinitions"].is_array());
    let second = lines.next().await.unwrap();
    assert!(second["object"]["columnDefinitions"].is_null());
    assert_eq!(second["object"]["rows"][0]["cells"][0], "b");
}
