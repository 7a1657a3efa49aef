//! A table on an API server that refuses, forgets and hangs up.

use super::*;
use bytes::Bytes;
use expect_test::expect;
use http::Response;
use http_body_util::Full;
use kube::client::Body as RequestBody;
use serde_json::json;
use std::convert::Infallible;
use std::sync::Mutex;
use tokio::sync::mpsc;

/// The requests, as method-less paths with queries.
type Asked = Arc<Mutex<Vec<String>>>;

fn status(code: u16, reason: &str) -> (u16, String) {
    let body = json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code, "reason": reason,
        "message": reason});
    (code, body.to_string())
}

/// An API server that serves pods, and answers lists and watches as it is told.
fn server(
    answer: impl Fn(&str) -> (u16, String) + Clone + Send + Sync + 'static,
) -> (KindTables, mpsc::Receiver<Event>, Asked) {
    let asked = Asked::default();
    let seen = Arc::clone(&asked);
    let service = tower::service_fn(move |request: Request<RequestBody>| {
        let path = request.uri().path_and_query().map_or("", |path| path.as_str()).to_owned();
        let discovery = json!({"kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "items": [
            {"metadata": {"name": ""}, "versions": [{"version": "v1", "resources": [
                {"resource": "pods", "singularResource": "pod", "scope": "Namespaced", "verbs": ["list", "watch"],
                    "shortNames": ["po"], "responseKind": {"group": "", "version": "v1", "kind": "Pod"}}]}]}]});
        let (code, text) = if path.contains("/pods") { answer(&path) } else { (200, discovery.to_string()) };
        seen.lock().unwrap().push(path);
        let response = Response::builder().status(code).header("content-type", "application/json");
        let body = Full::new(Bytes::from(text));
        async move { Ok::<_, Infallible>(response.body(body).unwrap()) }
    });
    let (events, told) = EventSink::channel(1_024);
    let client = Client::new(service, "default");
    let place = (None, "home".to_owned());
    let tables = KindTables::new(client, place, events, TaskTracker::new(), CancellationToken::new());
    (tables, told, asked)
}

fn page() -> (u16, String) {
    let table = json!({"kind": "Table", "apiVersion": "meta.k8s.io/v1", "metadata": {"resourceVersion": "7"},
        "columnDefinitions": [{"name": "Name", "type": "string"}],
        "rows": [{"cells": ["a"], "object": {"metadata": {"name": "a", "namespace": "dev"}}}]});
    (200, table.to_string())
}

/// Waits for a table that is as wanted.
async fn wait_for(told: &mut mpsc::Receiver<Event>, wanted: impl Fn(&KindTable) -> bool) -> KindTable {
    loop {
        match told.recv().await {
            Some(Event::TableChanged { table: Some(table) }) if wanted(&table) => {
                return table.as_ref().clone();
            }
            Some(_) => {}
            None => panic!("the table ended"),
        }
    }
}

fn query(word: &str) -> Option<TableQuery> {
    Some(TableQuery { kind: word.to_owned(), namespace: None })
}

#[tokio::test]
async fn a_watch_that_ends_at_once_is_not_begun_again_at_once() {
    for ends in ["", "{\"type\":\"ERROR\",\"object\":{\"kind\":\"Status\",\"code\":410}}\n"] {
        let answer =
            move |path: &str| if path.contains("watch=true") { (200, ends.to_owned()) } else { page() };
        let (mut tables, mut told, asked) = server(answer);
        tables.pace.first = Duration::from_secs(3_600);
        tables.show(query("po"));
        wait_for(&mut told, |table| table.complete).await;
        // Nothing here waits for anything but its pauses.
        for _ in 0..1_000 {
            tokio::task::yield_now().await;
        }
        let asked = asked.lock().unwrap();
        let count = |text: &str| asked.iter().filter(|path| path.contains(text)).count();
        assert_eq!((count("limit="), count("watch=true")), (1, 1), "ended with {ends:?}: {asked:?}");
    }
}

#[tokio::test]
async fn a_refused_watch_is_no_refused_list() {
    let answer = |path: &str| if path.contains("watch=true") { status(403, "Forbidden") } else { page() };
    let (mut tables, mut told, asked) = server(answer);
    tables.pace.small_seconds = 0;
    tables.show(query("pods"));
    let table = wait_for(&mut told, |table| table.note.is_some()).await;
    assert_eq!(
        table.note.as_deref(),
        Some("the kubeconfig's user may not watch pods: the table is read every 0 s")
    );
    assert_eq!((table.rows.len(), table.problem), (1, None));
    wait_for(&mut told, |table| table.complete).await;
    wait_for(&mut told, |table| table.complete).await;
    let asked = asked.lock().unwrap().clone();
    assert!(!asked.iter().any(|path| path.contains("namespaces/home")), "it is not narrowed: {asked:?}");
    assert_eq!(asked.iter().filter(|path| path.contains("watch=true")).count(), 1, "{asked:?}");
    assert!(asked.iter().filter(|path| path.contains("limit=")).count() >= 2, "{asked:?}");
}

#[tokio::test]
async fn a_kind_that_is_gone_is_looked_for_again() {
    let gone = Arc::new(Mutex::new(true));
    let now = Arc::clone(&gone);
    let answer = move |path: &str| match (*now.lock().unwrap(), path.contains("watch=true")) {
        (true, _) => status(404, "NotFound"),
        (false, true) => (200, String::new()),
        (false, false) => page(),
    };
    let (mut tables, mut told, asked) = server(answer);
    tables.pace.first = Duration::from_millis(1);
    tables.show(query("pods"));
    wait_for(&mut told, |table| table.problem.is_some()).await;
    *gone.lock().unwrap() = false;
    let table = wait_for(&mut told, |table| table.complete).await;
    assert_eq!((table.problem, table.rows.len()), (None, 1));
    let asked = asked.lock().unwrap();
    assert!(asked.iter().filter(|path| path.starts_with("/apis")).count() >= 2, "{asked:?}");
}

#[tokio::test]
async fn a_word_that_means_no_kind_is_asked_again() {
    let (mut tables, mut told, asked) = server(|_| page());
    tables.pace.missing = Duration::from_millis(1);
    tables.show(query("gadgets"));
    let table = wait_for(&mut told, |table| table.problem.is_some()).await;
    expect!["the API server serves no kind gadgets: no name is near it"].assert_eq(&table.problem.unwrap());
    let before = asked.lock().unwrap().len();
    wait_for(&mut told, |table| table.problem.is_some()).await;
    assert!(asked.lock().unwrap().len() > before);
}
