//! `/openapi/v2`, without any paths or definitions. kubectl asks for it only when v3 does not know a kind; an
//! answer that does not know it either lets kubectl go on and say what is wrong: no matches for that kind.

use crate::body::Body;
use crate::discovery::Document;
use crate::negotiation;
use crate::server::{self, front};
use bytes::Bytes;
use http::{HeaderMap, Response};
use serde_json::{Value, json};

const JSON: &str = "application/json";
/// How a client asks for protobuf, without `application/`.
const PROTOBUF_ASKED: [&str; 2] =
    ["com.github.proto-openapi.spec.v2@v1.0+protobuf", "com.github.proto-openapi.spec.v2.v1.0+protobuf"];
/// What it is called in the answer; upstream gave up the `@` here, which no media type may have.
const PROTOBUF: &str = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf";

const TITLE: &str = "Kubernetes";

/// The document, in the first form that the client takes.
pub(super) fn answer(headers: &HeaderMap) -> Response<Body> {
    for clause in negotiation::clauses(headers) {
        if clause.takes("json") {
            return Document::of(&as_json()).answer(headers, JSON);
        }
        if PROTOBUF_ASKED.iter().any(|name| clause.takes(name)) {
            return Document::of_bytes(Bytes::from(as_protobuf())).answer(headers, PROTOBUF);
        }
    }
    front::not_acceptable(&[JSON, PROTOBUF])
}

fn as_json() -> Value {
    json!({"swagger": "2.0", "info": {"title": TITLE, "version": server::git_version()}, "paths": {}})
}

/// Message `openapi.v2.Document`: `swagger` is field 1, `info` 2 (its `title` 1, `version` 2), `paths` 8.
fn as_protobuf() -> Vec<u8> {
    let info = [field(1, TITLE.as_bytes()), field(2, server::git_version().as_bytes())].concat();
    [field(1, b"2.0"), field(2, &info), field(8, &[])].concat()
}

/// A length-delimited field.
fn field(number: u8, content: &[u8]) -> Vec<u8> {
    let mut bytes = vec![number << 3 | 2];
    let mut length = content.len();
    while length >= 0x80 {
        bytes.push((length & 0x7f) as u8 | 0x80);
        length >>= 7;
    }
    bytes.push(length as u8);
    bytes.extend_from_slice(content);
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::StatusCode;
    use http::header::{ACCEPT, CONTENT_TYPE};
    use http_body_util::BodyExt;

    async fn ask(accept: &str) -> (StatusCode, String, Bytes) {
        let mut headers = HeaderMap::new();
        headers.insert(ACCEPT, accept.parse().unwrap());
        let response = answer(&headers);
        let kind = response.headers()[CONTENT_TYPE].to_str().unwrap().to_owned();
        (response.status(), kind, response.into_body().collect().await.unwrap().to_bytes())
    }

    #[tokio::test]
    async fn kubectl_reads_a_message_without_definitions() {
        let (status, kind, bytes) = ask("application/com.github.proto-openapi.spec.v2@v1.0+protobuf").await;
        assert_eq!((status, kind.as_str()), (StatusCode::OK, PROTOBUF));
        let version = server::git_version();
        let version = version.as_str();
        let length = |text: &str| u8::try_from(text.len()).unwrap();
        let mut expected = vec![0x0a, 3];
        expected.extend(b"2.0");
        expected.extend([0x12, 2 + 10 + 2 + length(version), 0x0a, 10]);
        expected.extend(b"Kubernetes");
        expected.extend([0x12, length(version)]);
        expected.extend(version.as_bytes());
        expected.extend([0x42, 0]);
        assert_eq!(bytes, expected);
    }

    #[tokio::test]
    async fn others_read_json_or_are_told() {
        for accept in ["application/json", "*/*", "text/html, application/json;q=0.1"] {
            let (status, kind, bytes) = ask(accept).await;
            assert_eq!((status, kind.as_str()), (StatusCode::OK, JSON), "{accept}");
            let document: Value = serde_json::from_slice(&bytes).unwrap();
            assert_eq!((&document["swagger"], &document["paths"]), (&json!("2.0"), &json!({})));
        }
        assert_eq!(ask("text/html").await.0, StatusCode::NOT_ACCEPTABLE);
    }

    #[test]
    fn long_fields_have_long_lengths() {
        assert_eq!(field(1, &[7; 300])[..3], [0x0a, 0xac, 0x02]);
    }
}
