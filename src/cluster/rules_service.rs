//! A client of an API server for a process that may write only at times, and that counts its calls.

use super::call_rules::{CallRules, Guard};
use super::link::{Answer, Link, refusal};
use futures::FutureExt as _;
use futures::future::BoxFuture;
use http::{Method, Request, Response};
use kube::client::Body;
use std::sync::Arc;
use std::task::{Context, Poll};
use tower::{BoxError, Service};

/// A service for `kube::Client`.
#[derive(Clone)]
pub(super) struct Supervised {
    pub(super) link: Link,
    pub(super) rules: Arc<dyn CallRules>,
}

impl Service<Request<Body>> for Supervised {
    type Response = Answer;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<Answer, BoxError>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.link.poll_ready(context)
    }

    fn call(&mut self, mut request: Request<Body>) -> Self::Future {
        let method = request.method().clone();
        let reads = [Method::GET, Method::HEAD, Method::OPTIONS].contains(&method);
        if let Some(why) = (!reads).then(|| self.rules.forbids_writes()).flatten() {
            return std::future::ready(refusal(why)).boxed();
        }
        if !reads {
            // A call may be sent more than once, after a pause; each time it has to be allowed.
            request.extensions_mut().insert(Guard(Arc::clone(&self.rules)));
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
