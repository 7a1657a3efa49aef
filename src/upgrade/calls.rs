//! The writes of one client of a control plane, each with what was sent and what was answered. Reads and watches pass
//! as they are.

use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::{Method, Request, Response};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Full};
use kube::client::Body;
use opdev_controlplane::InProcess;
use opdev_object::yaml;
use serde_json::Value;
use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use tower::Service;

/// A write.
#[derive(Clone, Debug, Default)]
pub(super) struct Write {
    /// `PUT`, `PATCH`, `POST` or `DELETE`.
    pub(super) method: Method,
    /// The path, without its query.
    pub(super) path: String,
    pub(super) query: String,
    /// The content type of what was sent.
    pub(super) content: String,
    /// What was sent.
    pub(super) body: Value,
    /// The HTTP status.
    pub(super) status: u16,
    /// What was answered.
    pub(super) answer: Value,
    /// The object as it was stored, where the write was refused.
    pub(super) stored: Option<Value>,
}

impl Write {
    /// Whether nothing would have been stored.
    pub(super) fn is_dry_run(&self) -> bool {
        self.query.contains("dryRun=All")
    }

    /// Whether the API server said no for good: not that the object is gone, is there already or has changed meanwhile.
    pub(super) fn is_refused(&self) -> bool {
        self.status >= 400 && !matches!(self.status, 404 | 409 | 410 | 429)
    }

    /// The message of a refusal.
    pub(super) fn message(&self) -> &str {
        self.answer.get("message").and_then(Value::as_str).unwrap_or_default()
    }
}

/// The writes so far. Clones share them.
#[derive(Clone, Debug, Default)]
pub(super) struct Writes(Arc<Mutex<Vec<Write>>>);

impl Writes {
    pub(super) fn add(&self, write: Write) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(write);
    }

    /// All of them, and none are left.
    pub(super) fn take(&self) -> Vec<Write> {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// A service for `kube::Client` whose writes are recorded.
#[derive(Clone)]
pub(super) struct Recorded {
    pub(super) plane: InProcess,
    /// Reads what is stored.
    pub(super) admin: InProcess,
    pub(super) writes: Writes,
}

type Answer = Response<UnsyncBoxBody<Bytes, Infallible>>;

impl Service<Request<Body>> for Recorded {
    type Response = Answer;
    type Error = tower::BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<Answer, tower::BoxError>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), tower::BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let service = self.clone();
        Box::pin(async move { service.answer(request).await })
    }
}

impl Recorded {
    async fn answer(mut self, request: Request<Body>) -> Result<Answer, tower::BoxError> {
        let reads = [Method::GET, Method::HEAD, Method::OPTIONS].contains(request.method());
        if reads {
            let answer = self.plane.call(request).await?;
            return Ok(answer.map(|body| body.boxed_unsync()));
        }
        let (head, body) = request.into_parts();
        let sent = body.collect().await?.to_bytes();
        let content = head.headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
        let content = content.unwrap_or_default().split(';').next().unwrap_or_default().to_owned();
        let mut write = Write {
            method: head.method.clone(),
            path: head.uri.path().to_owned(),
            query: head.uri.query().unwrap_or_default().to_owned(),
            content,
            body: parsed(&sent),
            ..Write::default()
        };
        let answer = self.plane.call(Request::from_parts(head, Full::new(sent))).await?;
        let (head, body) = answer.into_parts();
        let said = body.collect().await?.to_bytes();
        write.status = head.status.as_u16();
        write.answer = parsed(&said);
        if write.is_refused() && [Method::PUT, Method::PATCH].contains(&write.method) {
            write.stored = self.stored(&write.path).await;
        }
        self.writes.add(write);
        Ok(Response::from_parts(head, Full::new(said).boxed_unsync()))
    }

    async fn stored(&mut self, path: &str) -> Option<Value> {
        let request = Request::get(path).body(Full::new(Bytes::new())).ok()?;
        let answer = self.admin.call(request).await.ok()?;
        let found = answer.status().is_success();
        let bytes = answer.into_body().collect().await.ok()?.to_bytes();
        found.then(|| parsed(&bytes))
    }
}

/// JSON, or the YAML that a server-side apply may be; null where it is neither.
fn parsed(bytes: &Bytes) -> Value {
    serde_json::from_slice(bytes).unwrap_or_else(|_| {
        let text = std::str::from_utf8(bytes).unwrap_or_default();
        yaml::from_str(text).unwrap_or(Value::Null)
    })
}
