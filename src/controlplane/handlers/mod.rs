//! Verbs over HTTP: a request for a resource path in, a response out. Never opens a socket and never answers
//! discovery, OpenAPI or health paths. Read `path` and `respond` first, then one verb.

mod tables;

pub use tables::{Tables, UpstreamDefault};

use crate::body::{Body, full};
use crate::identity::User;
use crate::registry::Registry;
use bytes::Bytes;
use http::{Request, Response};
use std::sync::Arc;

/// The resource paths of the API.
pub struct Api {
    registry: Arc<Registry>,
    tables: Arc<dyn Tables>,
}

impl std::fmt::Debug for Api {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Api").field("registry", &self.registry).finish_non_exhaustive()
    }
}

impl Api {
    /// Serves this registry; `tables` makes the rows of Table answers.
    pub fn new(registry: Arc<Registry>, tables: Arc<dyn Tables>) -> Self {
        Api { registry, tables }
    }

    /// The registry behind it.
    pub fn registry(&self) -> &Arc<Registry> {
        &self.registry
    }

    /// Whether a path names a resource: `/api/<version>/…` or `/apis/<group>/<version>/…` and something behind.
    pub fn serves(path: &str) -> bool {
        let mut parts = path.trim_matches('/').split('/');
        let fixed = match parts.next() {
            Some("api") => 1,
            Some("apis") => 2,
            _ => return false,
        };
        parts.filter(|part| !part.is_empty()).count() > fixed
    }

    /// Answers one request. Never fails: what goes wrong is a `Status` in the answer.
    pub async fn call<B>(&self, _user: &User, request: Request<B>) -> Response<Body>
    where
        B: http_body::Body<Data = Bytes> + Send,
        B::Error: std::fmt::Display,
    {
        let _ = (&self.tables, request);
        let mut response = Response::new(full("404 page not found\n"));
        *response.status_mut() = http::StatusCode::NOT_FOUND;
        response
    }
}
