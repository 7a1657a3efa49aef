//! The front door: every request, from a socket or from this process, comes through `Front::answer`. Does
//! what all of them need (impersonation, authorization, size and time limits, audit id, a panic becomes a
//! 500, streams end when the plane stops) and hands the rest to discovery, OpenAPI or the verbs.

use super::metrics::{Answered, Metrics};
use super::observer::Clients;
use super::{attributes, health, impersonation};
use bytes::Bytes;
use futures::{FutureExt, StreamExt};
use http::header::{CACHE_CONTROL, CONTENT_LENGTH, CONTENT_TYPE, HOST};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Response, StatusCode};
use http_body::Body as _;
use http_body_util::{BodyExt, BodyStream, Full, LengthLimitError, Limited, StreamBody};
use opdev_apimachinery::body::{Body, empty, full};
use opdev_apimachinery::error::Status;
use opdev_apimachinery::identity::User;
use opdev_apimachinery::random;
use opdev_apimachinery::watchdog::watched;
use opdev_handlers::Api;
use opdev_handlers::answer::{negotiated, plain, status};
use opdev_handlers::discovery::Discovery;
use opdev_handlers::openapi::OpenApi;
use opdev_handlers::path::Query;
use opdev_handlers::tokens::{self, KnownTokens};
use opdev_storage::Store;
use std::borrow::Cow;
use std::fmt;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio_util::sync::CancellationToken;
use tracing::Instrument as _;

/// The largest body of a request, as upstream.
const BODY_LIMIT: usize = 3 * 1024 * 1024;
/// How long an answer may take to begin, as upstream. A watch answers at once, so this never ends one.
const TIME_LIMIT: Duration = Duration::from_secs(60);
/// The paths that no authorizer is asked about, as upstream.
const ALWAYS_ALLOWED: [&str; 3] = ["/healthz", "/livez", "/readyz"];
const AUDIT_ID: HeaderName = HeaderName::from_static("audit-id");

/// Everything a request can be answered with.
pub(crate) struct Front {
    api: Arc<Api>,
    discovery: Discovery,
    openapi: OpenApi,
    clients: Arc<Clients>,
    metrics: Metrics,
    stop: CancellationToken,
}

impl Front {
    /// Serves this API until `stop`.
    pub(crate) fn new(api: Arc<Api>, stop: CancellationToken) -> Self {
        Front {
            api,
            discovery: Discovery::default(),
            openapi: OpenApi::default(),
            clients: Arc::default(),
            metrics: Metrics::default(),
            stop,
        }
    }

    /// The clients that are observed.
    pub(crate) fn clients(&self) -> &Arc<Clients> {
        &self.clients
    }

    /// The ServiceAccount that a bearer token of this plane is for.
    pub(crate) fn user_of_token(&self, token: &str) -> Option<User> {
        let registry = self.api.registry();
        self.api.tokens().user(&**registry, registry.now(), token, &[]).ok().map(|(user, _)| user)
    }

    /// Tells reviews of tokens whose the others are that are taken.
    pub(super) fn also_known(&self, known: KnownTokens) {
        self.api.tokens().also_known(known);
    }

    /// The store behind it all.
    pub(crate) fn store(&self) -> &Arc<Store> {
        &self.api.registry().store
    }

    /// Answers one request of one user. Never fails: what goes wrong is in the answer.
    pub(crate) async fn answer<B>(&self, user: &User, request: Request<B>) -> Response<Body>
    where
        B: http_body::Body<Data = Bytes> + Send,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        let audit_id = audit_id(request.headers());
        let (method, uri) = (request.method().clone(), request.uri().clone());
        let path = uri.path();
        let kind = request.headers().get(CONTENT_TYPE);
        let applies = kind.is_some_and(|kind| kind.as_bytes().starts_with(b"application/apply-patch"));
        let began = Instant::now();
        let what = format!("{method} {path} of {}, audit id {audit_id}", user.name).into();
        let span = tracing::debug_span!("request", audit_id);
        let work = watched(what, self.dispatch(user, request)).instrument(span);
        let work = AssertUnwindSafe(work).catch_unwind();
        let mut response = match tokio::time::timeout(TIME_LIMIT, work).await {
            Ok(Ok(response)) => response,
            Ok(Err(_)) => {
                tracing::error!(%method, path, audit_id, "a request made the API server panic");
                let why = format!(
                    "this request made the API server panic; its log names the place, audit id {audit_id}"
                );
                status(&Status::internal(&why))
            }
            Err(_) => status(&Status::new(
                504,
                "Timeout",
                "Timeout: request did not complete within the allotted timeout",
            )),
        };
        tracing::debug!(%method, path, user = user.name, status = response.status().as_u16(), "answered");
        let (query, code) = (uri.query().unwrap_or_default(), response.status().as_u16());
        let answered = Answered { method: &method, path, query, applies, code, took: began.elapsed() };
        self.metrics.count(&answered, &self.api.registry().catalog);
        if method == Method::HEAD {
            // Over HTTP/2 nobody else takes the body away.
            let length = response.body().size_hint().exact();
            if let Some(length) = length {
                response.headers_mut().entry(CONTENT_LENGTH).or_insert(HeaderValue::from(length));
            }
            *response.body_mut() = empty();
        }
        let mut response = response.map(|body| until(body, &self.stop));
        if let Ok(value) = HeaderValue::from_str(&audit_id) {
            response.headers_mut().insert(AUDIT_ID, value);
        }
        response.headers_mut().entry(CACHE_CONTROL).or_insert(HeaderValue::from_static("no-cache, private"));
        response
    }

    /// The user that the request counts for, if the client may make it.
    fn admitted<'a>(
        &self,
        user: &'a User,
        method: &Method,
        headers: &HeaderMap,
        path: &str,
        query: &str,
    ) -> Result<Cow<'a, User>, Status> {
        let registry = self.api.registry();
        // Read only where somebody decides by it.
        let wanted = || attributes::of_request(method.as_str(), path, query);
        let user = impersonation::impersonated(registry, user, headers, &wanted)?;
        if !ALWAYS_ALLOWED.contains(&path) && !registry.allows_all(&user) {
            registry.authorize(&user, &wanted())?;
        }
        Ok(user)
    }

    async fn dispatch<B>(&self, user: &User, request: Request<B>) -> Response<Body>
    where
        B: http_body::Body<Data = Bytes> + Send,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        let path = request.uri().path().to_owned();
        let query = request.uri().query().unwrap_or_default().to_owned();
        // A resource counts only where the request ends soon, which its handler knows best.
        if !Api::serves(&path)
            && let Some(why) = Query::parse(&query).wrong_timeout()
        {
            return status(&Status::bad_request(why));
        }
        let registry = self.api.registry();
        let user = match self.admitted(user, request.method(), request.headers(), &path, &query) {
            Ok(user) => user,
            Err(refused) => return negotiated(request.headers(), &query, &refused),
        };
        let state =
            health::State { stopping: self.stop.is_cancelled(), broken: registry.store.failure().is_some() };
        if let Some(response) = health::health(&path, &query, state) {
            return response;
        }
        let of_api = ["/api", "/apis", "/version"]
            .iter()
            .any(|root| path.strip_prefix(root).is_some_and(|rest| rest.is_empty() || rest.starts_with('/')));
        if request.method() == Method::HEAD && of_api {
            let why = "the server does not allow this method on the requested resource";
            return status(&Status::new(405, "MethodNotAllowed", why));
        }
        if path.trim_end_matches('/') == "/version" {
            return plain(request.headers(), &query, &health::version());
        }
        if self.stop.is_cancelled() {
            // Clients in this process outlive the plane: they get an error instead of answers of a stopped
            // plane.
            return status(&Status::new(503, "ServiceUnavailable", "the control plane has stopped"));
        }
        if Api::serves(&path) {
            return match whole(request).await {
                Ok(request) => self.api.call(&user, request).await,
                Err(error) => status(&error),
            };
        }
        if !matches!(*request.method(), Method::GET | Method::HEAD) {
            return not_found();
        }
        let served = registry.catalog.served();
        if path.starts_with("/openapi/") {
            return self.openapi.answer(&served, &path, &query, request.headers()).unwrap_or_else(not_found);
        }
        if path.trim_end_matches('/') == "/api" || path.starts_with("/api/") || path.starts_with("/apis") {
            let answer = self.discovery.answer(&served, (&path, &query), request.headers(), host(&request));
            return answer.unwrap_or_else(not_found);
        }
        match path.as_str() {
            "/" => plain(request.headers(), &query, &self.discovery.roots(&served)),
            "/.well-known/openid-configuration" => plain(request.headers(), &query, &tokens::issuer()),
            "/openid/v1/jwks" => plain(request.headers(), &query, &self.api.tokens().keys()),
            "/metrics" => self.metrics.answer(registry),
            "/opdev/fidelity" => {
                plain(request.headers(), &query, &crate::fidelity::document(registry.enforces_roles()))
            }
            _ => not_found(),
        }
    }
}

impl fmt::Debug for Front {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Front").finish_non_exhaustive()
    }
}

/// The address that a client has reached: HTTP/2 has it in the URI, HTTP/1.1 in a header.
fn host<B>(request: &Request<B>) -> &str {
    let authority = request.uri().authority().map(http::uri::Authority::as_str);
    let header = || request.headers().get(HOST).and_then(|value| value.to_str().ok());
    authority.or_else(header).unwrap_or_default()
}

fn not_found() -> Response<Body> {
    let mut response = Response::new(full("404 page not found\n"));
    *response.status_mut() = StatusCode::NOT_FOUND;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    response
}

/// Reads the body, up to the limit.
async fn whole<B>(request: Request<B>) -> Result<Request<Full<Bytes>>, Status>
where
    B: http_body::Body<Data = Bytes> + Send,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    let (parts, body) = request.into_parts();
    match Limited::new(body, BODY_LIMIT).collect().await {
        Ok(read) => Ok(Request::from_parts(parts, Full::new(read.to_bytes()))),
        Err(error) if error.is::<LengthLimitError>() => Err(Status::too_large(BODY_LIMIT)),
        Err(error) => Err(Status::bad_request(format!("the request's body could not be read: {error}"))),
    }
}

/// Ends a stream when the plane stops; a whole body stays as it is.
fn until(body: Body, stop: &CancellationToken) -> Body {
    if body.size_hint().exact().is_some() {
        return body;
    }
    let frames = BodyStream::new(body).take_until(stop.clone().cancelled_owned());
    BodyExt::boxed_unsync(StreamBody::new(frames))
}

/// The client's own audit id, or a fresh one.
fn audit_id(headers: &HeaderMap) -> String {
    match headers.get(&AUDIT_ID).and_then(|id| id.to_str().ok()).filter(|id| !id.is_empty() && id.len() <= 64)
    {
        Some(id) => id.to_owned(),
        None => random::uuid(),
    }
}
