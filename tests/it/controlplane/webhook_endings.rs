//! Webhook servers that end their answers with the connection, as HTTP/1.0 has it and Python's `http.server`
//! does, without the alert that ends TLS: read as Go reads them.

use super::webhook_server::identity;
use super::webhooks::{ask, bare_plane};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rustls::ServerConfig;
use serde_json::{Value, json};
use std::sync::Arc;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

const MAPS: &str = "/api/v1/namespaces/default/configmaps";
const HOOKS: &str = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations";

/// The path and the review of a request.
async fn request(stream: &mut TlsStream<TcpStream>) -> Option<(String, Value)> {
    let mut read = Vec::new();
    loop {
        let text = String::from_utf8_lossy(&read).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head.lines().find_map(|line| {
                let (name, value) = line.split_once(':')?;
                name.eq_ignore_ascii_case("content-length").then(|| value.trim().parse::<usize>().ok())?
            })?;
            if body.len() >= length {
                let path = head.split(' ').nth(1)?.split('?').next()?.to_owned();
                return Some((path, serde_json::from_str(body).ok()?));
            }
        }
        if stream.read_buf(&mut read).await.ok()? == 0 {
            return None;
        }
    }
}

/// Answers as the path says, and drops the connection: nothing ends TLS.
async fn answer(mut stream: TlsStream<TcpStream>) {
    let Some((path, review)) = request(&mut stream).await else { return };
    let agreed = json!({"apiVersion": review["apiVersion"], "kind": review["kind"],
        "response": {"uid": review["request"]["uid"], "allowed": true}});
    let text = match path.as_str() {
        "/agrees" => format!("HTTP/1.0 200 OK\r\nContent-Type: application/json\r\n\r\n{agreed}"),
        "/fails" => "HTTP/1.0 500 Oops\r\n\r\nboom".to_owned(),
        _ => format!("HTTP/1.0 200 OK\r\nContent-Length: 9999\r\n\r\n{agreed}"),
    };
    stream.write_all(text.as_bytes()).await.unwrap();
    stream.flush().await.unwrap();
}

/// A server of such answers: its port and its authority.
async fn server() -> (u16, String) {
    let identity = identity(&["127.0.0.1"]);
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
    let config = config.with_no_client_auth().with_single_cert(identity.chain, identity.key).unwrap();
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let acceptor = acceptor.clone();
            tokio::spawn(async move {
                if let Ok(stream) = acceptor.accept(stream).await {
                    answer(stream).await;
                }
            });
        }
    });
    (port, STANDARD.encode(identity.authority))
}

#[tokio::test]
async fn an_answer_may_end_with_the_connection() {
    let (plane, (port, bundle)) = (bare_plane().await, server().await);
    for path in ["agrees", "fails", "stops"] {
        let url = format!("https://127.0.0.1:{port}/{path}");
        let hook = json!({"name": format!("{path}.example.com"), "admissionReviewVersions": ["v1"],
            "sideEffects": "None", "clientConfig": {"url": url, "caBundle": bundle},
            "matchConditions": [{"name": "a", "expression": format!("object.metadata.name == '{path}'")}],
            "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["*"], "resources": ["configmaps"]}]});
        let object = json!({"metadata": {"name": path}, "webhooks": [hook]});
        let (code, _, body) = ask(&plane, "POST", HOOKS, object).await;
        assert_eq!(code, 201, "{body:#}");
    }
    let mut told = Vec::new();
    for name in ["agrees", "agrees", "fails", "stops"] {
        let (code, _, body) = ask(&plane, "POST", MAPS, json!({"metadata": {"name": name}})).await;
        told.push((code, body["message"].as_str().unwrap_or_default().to_owned()));
    }
    assert_eq!(told[0].0, 201, "{told:?}");
    assert_eq!(told[1].0, 409, "{told:?}");
    let boom = "an error on the server (\"boom\") has prevented the request from succeeding";
    assert!(told[2].1.ends_with(boom), "{told:?}");
    assert!(told[3].1.ends_with("unexpected error when reading response body: unexpected EOF"), "{told:?}");
    plane.stop().await;
}
