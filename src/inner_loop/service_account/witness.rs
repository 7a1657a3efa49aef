//! A client in front of another: asks in somebody's name where it is told to, and tells of every call that
//! was refused for want of a rule. Never changes an answer.

use futures::FutureExt as _;
use futures::future::BoxFuture;
use http::{HeaderValue, Method, Request, Response, StatusCode};
use http_body_util::BodyExt as _;
use kube::Client;
use kube::client::Body;
use opdev_client::forbidden::MissingRight;
use serde_json::Value;
use std::task::{Context, Poll};
use tokio::sync::mpsc;
use tower::{BoxError, Service};

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/";

/// The way of the operator's calls.
#[derive(Clone)]
pub(super) struct Witness {
    pub(super) client: Client,
    /// For what opdev asks for itself.
    pub(super) own: Client,
    /// Whom to impersonate.
    pub(super) impersonate: Option<HeaderValue>,
    pub(super) refused: mpsc::Sender<MissingRight>,
}

impl Service<Request<Body>> for Witness {
    type Response = Response<Body>;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<Response<Body>, BoxError>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, mut request: Request<Body>) -> Self::Future {
        // Definitions are watched for opdev's sake; an operator on a cluster does not ask for them.
        if request.method() == Method::GET && request.uri().path().starts_with(DEFINITIONS) {
            let own = self.own.clone();
            return async move { Ok(own.send(request).await?) }.boxed();
        }
        if let Some(name) = &self.impersonate {
            request.headers_mut().insert("impersonate-user", name.clone());
        }
        let (client, refused) = (self.client.clone(), self.refused.clone());
        async move {
            let response = client.send(request).await?;
            if response.status() != StatusCode::FORBIDDEN {
                return Ok(response);
            }
            let (parts, body) = response.into_parts();
            let body = body.collect().await?.to_bytes();
            let status: Value = serde_json::from_slice(&body).unwrap_or_default();
            if let Some(refusal) = status["message"].as_str().and_then(MissingRight::parse) {
                // Somebody who does not keep up has been told of as many already.
                let _ = refused.try_send(refusal);
            }
            Ok(Response::from_parts(parts, Body::from(body.to_vec())))
        }
        .boxed()
    }
}
