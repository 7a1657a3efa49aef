//! A client of an API server for a process that may write only at times, and that counts its calls.

use super::link::{Link, refusal};
use futures::FutureExt as _;
use futures::future::BoxFuture;
use http::{Method, Request, Response, StatusCode};
use kube::client::Body;
use std::sync::Arc;
use std::task::{Context, Poll};
use tower::{BoxError, Service};

/// What is asked before a write, and told after each call.
pub trait CallRules: Send + Sync {
    /// Why no write may be sent now; `None` where it may.
    fn forbids_writes(&self) -> Option<&'static str>;

    /// A call has ended; without a status where there was no answer.
    fn called(&self, method: &Method, status: Option<StatusCode>);
}

/// A service for `kube::Client`.
#[derive(Clone)]
pub(super) struct Supervised {
    pub(super) link: Link,
    pub(super) rules: Arc<dyn CallRules>,
}

impl Service<Request<Body>> for Supervised {
    type Response = Response<Body>;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<Response<Body>, BoxError>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.link.poll_ready(context)
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let method = request.method().clone();
        let reads = [Method::GET, Method::HEAD, Method::OPTIONS].contains(&method);
        if let Some(why) = (!reads).then(|| self.rules.forbids_writes()).flatten() {
            return std::future::ready(refusal(why)).boxed();
        }
        let (sent, rules) = (self.link.call(request), Arc::clone(&self.rules));
        async move {
            let answer = sent.await;
            rules.called(&method, answer.as_ref().ok().map(Response::status));
            answer
        }
        .boxed()
    }
}
