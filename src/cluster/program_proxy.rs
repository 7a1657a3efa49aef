//! Calls of the operator's own program on their way to a cluster: with the credentials of the kubeconfig,
//! which the program never sees. Answers go through frame by frame, streams and upgrades as they are, and
//! never compressed: a trace is made of what they say. Never disturbs a call.

use super::link::{Answer, Link, Relayed};
use super::unpacked::unpacked;
use bytes::Bytes;
use futures::FutureExt as _;
use futures::future::BoxFuture;
use http::header::{
    ACCEPT_ENCODING, CONNECTION, CONTENT_LENGTH, CONTENT_TYPE, HOST, HeaderMap, HeaderName, TE,
    TRANSFER_ENCODING, UPGRADE,
};
use http::{HeaderValue, Request, Response, StatusCode, Uri, Version};
use http_body_util::{BodyExt as _, Full};
use kube::Client;
use kube::client::Body;
use opdev_controlplane::{RelayedAnswer, Upstream};
use serde_json::json;
use std::sync::Arc;
use tower::{BoxError, Service as _};

/// Headers that concern one connection and no more.
const OF_A_CONNECTION: [HeaderName; 5] = [
    CONNECTION,
    TE,
    TRANSFER_ENCODING,
    HeaderName::from_static("keep-alive"),
    HeaderName::from_static("proxy-connection"),
];

/// The future that sends a request on.
type Sending = BoxFuture<'static, Result<Answer, BoxError>>;

/// The API server that a client talks to.
pub fn upstream(client: Client) -> Upstream {
    through(move |request| {
        let client = client.clone();
        async move {
            let answer = client.send(request).await?;
            Ok(answer.map(|body| body.map_err(BoxError::from).boxed_unsync()))
        }
        .boxed()
    })
}

/// An upstream without the queue that a client has before its calls.
pub(super) fn straight(link: Link) -> Upstream {
    through(move |request| link.clone().call(request))
}

fn through(send: impl Fn(Request<Body>) -> Sending + Send + Sync + 'static) -> Upstream {
    let send = Arc::new(send);
    Arc::new(move |request| {
        let send = Arc::clone(&send);
        async move { forward(&*send, request).await }.boxed()
    })
}

async fn forward(
    send: &(impl Fn(Request<Body>) -> Sending + Sync),
    request: Request<Bytes>,
) -> RelayedAnswer {
    let (mut parts, body) = request.into_parts();
    let upgrades = parts.headers.contains_key(UPGRADE);
    plain(&mut parts.headers, upgrades);
    parts.headers.remove(HOST);
    parts.extensions.clear();
    parts.extensions.insert(Relayed);
    parts.version = Version::HTTP_11;
    if let Some(path) = parts.uri.path_and_query().cloned() {
        parts.uri = Uri::from(path);
    }
    // An application behind the API server answers as it likes: nothing is read of that.
    let is_the_servers = !parts.uri.path().split('/').any(|part| part == "proxy");
    if is_the_servers {
        parts.headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
    }
    let what = format!("{} {}", parts.method, parts.uri.path());
    match send(Request::from_parts(parts, Body::from(body))).await {
        Ok(response) => {
            let (mut parts, body) = response.into_parts();
            let switches = parts.status == StatusCode::SWITCHING_PROTOCOLS;
            plain(&mut parts.headers, switches);
            let body = if is_the_servers && !switches {
                unpacked(&mut parts.headers, body)
            } else {
                body.map_err(std::io::Error::other).boxed_unsync()
            };
            Response::from_parts(parts, body)
        }
        Err(error) => unanswered(&what, &error),
    }
}

fn plain(headers: &mut HeaderMap, upgrades: bool) {
    for name in OF_A_CONNECTION {
        if !(upgrades && name == CONNECTION) {
            headers.remove(name);
        }
    }
    if !upgrades {
        headers.remove(UPGRADE);
    }
}

/// The answer that a client gets from an API server that cannot be reached for a while.
fn unanswered(what: &str, error: &BoxError) -> RelayedAnswer {
    let message = format!("opdev has no answer from the cluster to {what}: {error}");
    let status = json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
        "message": message, "reason": "ServiceUnavailable", "code": 503});
    let text = status.to_string();
    let length = text.len();
    let body = Full::new(text.into()).map_err(|never| match never {}).boxed_unsync();
    let mut response = Response::new(body);
    *response.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response.headers_mut().insert(CONTENT_LENGTH, length.into());
    response
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;
    use http::header::CONTENT_ENCODING;
    use std::sync::Mutex;

    /// A client whose API server is this function.
    fn client(
        answer: impl Fn(Request<Body>) -> Result<Response<Body>, std::io::Error> + Send + Sync + 'static,
    ) -> Client {
        let answer = Arc::new(answer);
        let service = tower::service_fn(move |request| {
            let answer = Arc::clone(&answer);
            async move { answer(request) }
        });
        Client::new(service, "default")
    }

    #[tokio::test]
    async fn headers_of_a_connection_stay_on_it_and_all_others_go_through() {
        let seen = Arc::new(Mutex::new(None));
        let kept = Arc::clone(&seen);
        let client = client(move |request| {
            *kept.lock().unwrap() = Some((request.uri().to_string(), request.headers().clone()));
            let answer =
                Response::builder().header(CONNECTION, "keep-alive").header("warning", "299 - \"w\"");
            Ok(answer.status(201).body(Body::from(b"made".to_vec())).unwrap())
        });
        let request = Request::post("https://127.0.0.1:1/api/v1/pods?dryRun=All")
            .header(HOST, "127.0.0.1:1")
            .header(TE, "trailers")
            .header("impersonate-user", "ada")
            .body(Bytes::from_static(b"{}"))
            .unwrap();
        let answer = upstream(client)(request).await;
        assert_eq!((answer.status().as_u16(), answer.headers().get(CONNECTION)), (201, None));
        assert_eq!(answer.headers()["warning"], "299 - \"w\"");
        assert_eq!(answer.into_body().collect().await.unwrap().to_bytes(), "made");
        let (uri, headers) = seen.lock().unwrap().take().unwrap();
        assert_eq!(uri, "/api/v1/pods?dryRun=All");
        assert_eq!(headers["impersonate-user"], "ada");
        assert!(headers.get(HOST).is_none() && headers.get(TE).is_none(), "{headers:?}");
    }

    /// A Go client asks for gzip by itself. An API server of 1.37 compresses even streamed lists then, and
    /// something in front of it may do so unasked.
    #[tokio::test]
    async fn an_answer_is_plain_whatever_encoding_the_client_asks_for_and_the_server_chooses() {
        let list = r#"{"kind":"ConfigMapList","items":[]}"#;
        for unasked in [false, true] {
            let client = client(move |request| {
                let asked = request.headers().get(ACCEPT_ENCODING).cloned();
                let asked = asked.is_some_and(|value| value.to_str().unwrap().contains("gzip"));
                if !asked && !unasked {
                    return Ok(Response::new(Body::from(list.as_bytes().to_vec())));
                }
                let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
                std::io::Write::write_all(&mut packed, list.as_bytes()).unwrap();
                let packed = packed.finish().unwrap();
                let answer = Response::builder().header(CONTENT_ENCODING, "gzip");
                Ok(answer.header(CONTENT_LENGTH, packed.len()).body(Body::from(packed)).unwrap())
            });
            let upstream = upstream(client);
            let ask = |path: &str| {
                upstream(Request::get(path).header(ACCEPT_ENCODING, "gzip").body(Bytes::new()).unwrap())
            };
            let answer = ask("/api/v1/configmaps?watch=true").await;
            assert_eq!(answer.headers().get(CONTENT_ENCODING), None, "unasked: {unasked}");
            assert_eq!(answer.into_body().collect().await.unwrap().to_bytes(), list, "unasked: {unasked}");
            // The answer of an application behind the server is its own.
            let answer = ask("/api/v1/namespaces/default/services/app/proxy/list").await;
            assert_eq!(answer.headers()[CONTENT_ENCODING], "gzip");
        }
    }

    #[tokio::test]
    async fn a_cluster_that_does_not_answer_is_unavailable_for_a_while() {
        let client = client(|_| Err(std::io::Error::other("connection refused")));
        let request = Request::get("/api/v1/pods").body(Bytes::new()).unwrap();
        let answer = upstream(client)(request).await;
        assert_eq!(answer.status(), StatusCode::SERVICE_UNAVAILABLE);
        let status: serde_json::Value =
            serde_json::from_slice(&answer.into_body().collect().await.unwrap().to_bytes()).unwrap();
        assert_eq!(status["reason"], "ServiceUnavailable");
        let message = status["message"].as_str().unwrap();
        expect!["opdev has no answer from the cluster to GET /api/v1/pods: ServiceError: connection refused"]
            .assert_eq(message);
    }
}
