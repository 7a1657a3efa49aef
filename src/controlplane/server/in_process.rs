//! The API as a tower service in this process: no socket, no TLS, the same front door.
//! This is what `kube::Client` is built on; the user is the one who made the service, not the one who makes
//! the request.

use super::front::Front;
use super::observed::{self, Disconnected};
use super::observer::{Client, Observer};
use bytes::Bytes;
use http::{Request, Response};
use http_body_util::BodyExt;
use opdev_apimachinery::body::Body;
use opdev_apimachinery::identity::User;
use opdev_handlers::AheadOfDisk;
use std::convert::Infallible;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

/// A tower service that answers as the API server does. Cheap to clone.
#[derive(Clone, Debug)]
pub struct InProcess {
    front: Arc<Front>,
    user: Arc<User>,
    ahead_of_disk: bool,
}

impl InProcess {
    pub(crate) fn new(front: Arc<Front>, user: User) -> Self {
        InProcess { front, user: Arc::new(user), ahead_of_disk: false }
    }

    /// This API, asked by another user.
    #[must_use]
    pub fn as_user(&self, user: User) -> Self {
        InProcess { user: Arc::new(user), ..self.clone() }
    }

    /// This API for a client that ends with the process: an answer does not wait until the disk has the
    /// write. A crash then takes the newest changes; the state that is left existed at some moment before,
    /// and nothing is missing in the middle.
    #[must_use]
    pub fn ahead_of_disk(&self) -> Self {
        InProcess { ahead_of_disk: true, ..self.clone() }
    }
}

/// The API in this process for a client that is observed, as one with a token of its own is.
#[derive(Clone)]
pub struct ObservedInProcess {
    service: InProcess,
    client: Arc<Client>,
}

impl InProcess {
    /// This API for a client that is observed.
    #[must_use]
    pub fn observed(&self, observer: Arc<dyn Observer>) -> ObservedInProcess {
        let client = Client { user: (*self.user).clone(), observer };
        ObservedInProcess { service: self.clone(), client: Arc::new(client) }
    }
}

impl fmt::Debug for ObservedInProcess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ObservedInProcess").finish_non_exhaustive()
    }
}

impl<B> tower_service::Service<Request<B>> for ObservedInProcess
where
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    type Response = Response<Body>;
    type Error = Disconnected;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Body>, Disconnected>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Disconnected>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let (service, client) = (self.service.clone(), self.client.clone());
        Box::pin(async move {
            let answer = async |mut request: Request<_>| {
                if service.ahead_of_disk {
                    request.extensions_mut().insert(AheadOfDisk);
                }
                service.front.answer(&service.user, request).await
            };
            observed::answer(answer, &client, request.map(BodyExt::boxed_unsync)).await
        })
    }
}

impl<B> tower_service::Service<Request<B>> for InProcess
where
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Body>, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, mut request: Request<B>) -> Self::Future {
        let service = self.clone();
        if service.ahead_of_disk {
            request.extensions_mut().insert(AheadOfDisk);
        }
        Box::pin(async move { Ok(service.front.answer(&service.user, request).await) })
    }
}
