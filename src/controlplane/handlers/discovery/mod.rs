//! Discovery: which groups, versions and resources there are. Each document is built once per state of the
//! catalog and answered with an ETag. Never lists objects. `legacy` and `aggregated` make the two forms.

mod aggregated;
mod legacy;
mod order;

use crate::answer;
use crate::in_order;
use crate::negotiation::{self, Binary, Encoding, Forms, NotAcceptable};
use bytes::Bytes;
use http::header::{CONTENT_TYPE, ETAG, IF_NONE_MATCH, VARY};
use http::{HeaderMap, HeaderValue, Response, StatusCode};
use opdev_apimachinery::body::{Body, empty, full};
use opdev_registry::Served;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

pub(crate) use order::{Group, groups};

/// A rendered document and its hash.
#[derive(Clone, Debug)]
pub(crate) struct Document {
    pub bytes: Bytes,
    pub(crate) hash: String,
}

impl Document {
    pub(crate) fn new(value: &Value) -> Self {
        Self::of_bytes(Bytes::from(in_order::text(value, false).unwrap_or_else(|| value.to_string())))
    }

    pub(crate) fn of_bytes(bytes: Bytes) -> Self {
        let hash = Sha256::digest(&bytes).iter().map(|byte| format!("{byte:02X}")).collect();
        Document { bytes, hash }
    }

    /// 200 with the ETag, or 304 where the client has it already.
    pub(crate) fn answer(&self, headers: &HeaderMap, content_type: &'static str) -> Response<Body> {
        let etag = format!("\"{}\"", self.hash);
        let known = headers
            .get(IF_NONE_MATCH)
            .and_then(|value| value.to_str().ok())
            .is_some_and(|list| list.split(',').any(|tag| tag.trim().trim_start_matches("W/") == etag));
        let mut response = if known {
            let mut response = Response::new(empty());
            *response.status_mut() = StatusCode::NOT_MODIFIED;
            response
        } else {
            let mut response = Response::new(full(self.bytes.clone()));
            response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
            response
        };
        if let Ok(etag) = HeaderValue::from_str(&etag) {
            response.headers_mut().insert(ETAG, etag);
        }
        response.headers_mut().insert(VARY, HeaderValue::from_static("Accept"));
        response
    }
}

/// The discovery endpoints with their cache.
#[derive(Debug, Default)]
pub struct Discovery {
    cache: Mutex<Cache>,
}

#[derive(Debug, Default)]
struct Cache {
    generation: u64,
    documents: HashMap<String, Document>,
}

impl Discovery {
    /// Answers `/api`, `/apis` and what is below, down to a group's version; `host` is the address that the
    /// client has reached. `None`: no such group or version.
    pub fn answer(
        &self,
        served: &Served,
        (path, query): (&str, &str),
        headers: &HeaderMap,
        host: &str,
    ) -> Option<Response<Body>> {
        let path = path.trim_end_matches('/');
        if matches!(path, "/api" | "/apis")
            && let Some(version) = aggregated_version(headers)
        {
            let key = format!("{path} {version}");
            let document = self.document(served, &key, |groups| {
                Some(aggregated::document(groups, path == "/api", version))
            })?;
            return Some(document.answer(headers, aggregated::content_type(version)));
        }
        match negotiation::agree(headers, query, Forms::Plain, Binary::Never).map(|agreed| agreed.encoding) {
            Ok(Encoding::Json) => {
                let build = |groups: &[Group]| legacy::document(groups, path, host);
                // This one says the address, which any client may name in its own way.
                let document = match path {
                    "/api" => Document::new(&build(&groups(served.resources()))?),
                    _ => self.document(served, path, build)?,
                };
                Some(document.answer(headers, "application/json"))
            }
            Ok(Encoding::PrettyJson | Encoding::Yaml | Encoding::Protobuf) | Err(NotAcceptable) => {
                let document = legacy::document(&groups(served.resources()), path, host)?;
                Some(answer::plain(headers, query, &document))
            }
        }
    }

    /// The paths `/` lists.
    pub fn roots(&self, served: &Served) -> Value {
        let mut paths = vec!["/api".to_owned(), "/api/v1".to_owned(), "/apis".to_owned()];
        for group in groups(served.resources()).iter().filter(|group| !group.name.is_empty()) {
            paths.push(format!("/apis/{}", group.name));
            paths.extend(group.versions.iter().map(|(version, _)| format!("/apis/{}/{version}", group.name)));
        }
        let rest = [
            "/healthz",
            "/livez",
            "/metrics",
            "/openapi/v2",
            "/openapi/v3",
            "/opdev/fidelity",
            "/readyz",
            "/version",
        ];
        paths.extend(rest.iter().map(ToString::to_string));
        json!({ "paths": paths })
    }

    fn document(
        &self,
        served: &Served,
        key: &str,
        build: impl FnOnce(&[Group]) -> Option<Value>,
    ) -> Option<Document> {
        let mut cache = self.cache.lock().unwrap_or_else(PoisonError::into_inner);
        if cache.generation != served.generation {
            *cache = Cache { generation: served.generation, documents: HashMap::new() };
        }
        if let Some(document) = cache.documents.get(key) {
            return Some(document.clone());
        }
        let document = Document::new(&build(&groups(served.resources()))?);
        cache.documents.insert(key.to_owned(), document.clone());
        Some(document)
    }
}

/// The version of the aggregated form, where the client asks for it before it takes plain JSON.
fn aggregated_version(headers: &HeaderMap) -> Option<&'static str> {
    for clause in negotiation::clauses(headers) {
        if !clause.takes("json") {
            continue;
        }
        match (clause.parameter("g"), clause.parameter("as"), clause.parameter("v")) {
            ("apidiscovery.k8s.io", "APIGroupDiscoveryList", "v2") => return Some("v2"),
            ("apidiscovery.k8s.io", "APIGroupDiscoveryList", "v2beta1") => return Some("v2beta1"),
            ("", "", "") => return None,
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::header::ACCEPT;

    #[test]
    fn the_first_form_a_client_names_wins() {
        let mut headers = HeaderMap::new();
        assert_eq!(aggregated_version(&headers), None);
        headers.insert(
            ACCEPT,
            "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList,application/json"
                .parse()
                .unwrap(),
        );
        assert_eq!(aggregated_version(&headers), Some("v2"));
        headers.insert(ACCEPT, "application/json".parse().unwrap());
        assert_eq!(aggregated_version(&headers), None);
    }

    #[test]
    fn who_has_the_document_gets_304() {
        let document = Document::new(&json!({"a": 1}));
        let first = document.answer(&HeaderMap::new(), "application/json");
        assert_eq!(first.status(), 200);
        let mut headers = HeaderMap::new();
        headers.insert(IF_NONE_MATCH, first.headers()[ETAG].clone());
        assert_eq!(document.answer(&headers, "application/json").status(), 304);
        headers.insert(IF_NONE_MATCH, "\"other\"".parse().unwrap());
        assert_eq!(document.answer(&headers, "application/json").status(), 200);
    }
}
