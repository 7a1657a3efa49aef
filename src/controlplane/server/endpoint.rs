//! A small web server for requests without a body, such as probes and scrapes: HTTP/1.1, with TLS where it is
//! asked for. Knows neither the control plane nor what is answered.

use super::certificates::{Authority, Failure, server_only};
use super::listener::Serving;
use futures::future::BoxFuture;
use http::header::{AUTHORIZATION, CONTENT_TYPE};
use http::{Method, Request, Response, StatusCode};
use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;

/// How many connections are open at once; more wait.
const CONNECTIONS: usize = 64;
/// After this a connection takes no further request; clients connect again.
const LIFE: Duration = Duration::from_secs(300);
/// How long a request that is under way may take then.
const LAST: Duration = Duration::from_secs(30);
/// How long a TLS handshake, and the head of a request, may take.
const HEAD: Duration = Duration::from_secs(10);

/// A request for an endpoint.
#[derive(Clone)]
pub struct EndpointRequest {
    /// The path, without the query.
    pub path: String,
    /// The query, empty where there is none.
    pub query: String,
    /// The bearer token.
    pub token: Option<String>,
}

/// The answer to it.
#[derive(Clone, Debug)]
pub struct EndpointResponse {
    /// The HTTP status.
    pub status: u16,
    /// `Content-Type`.
    pub content_type: &'static str,
    /// The body.
    pub text: String,
}

/// Answers requests.
pub type EndpointHandler = Arc<dyn Fn(EndpointRequest) -> BoxFuture<'static, EndpointResponse> + Send + Sync>;

/// A certificate for an endpoint of this process, signed by an authority that nobody knows; `year` is the
/// current one.
///
/// # Errors
/// Where the system gives no randomness.
pub fn self_signed(year: i16) -> Result<Serving, Failure> {
    Authority::new(year)?.webhook_server()
}

/// Answers on `listener` until `stop` fires. With a certificate it speaks TLS; a newer one serves the next
/// connection.
///
/// # Errors
/// Where the first certificate cannot be used.
pub async fn serve_endpoint(
    listener: TcpListener,
    mut certificate: Option<watch::Receiver<Serving>>,
    handler: EndpointHandler,
    stop: CancellationToken,
) -> Result<(), Failure> {
    let mut tls = certificate.as_mut().map(|newest| acceptor(&newest.borrow_and_update())).transpose()?;
    let room = Arc::new(Semaphore::new(CONNECTIONS));
    loop {
        let Ok(permit) = Arc::clone(&room).acquire_owned().await else { return Ok(()) };
        let stream = tokio::select! {
            () = stop.cancelled() => return Ok(()),
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => stream,
                Err(error) => {
                    tracing::warn!(%error, "a connection could not be accepted");
                    tokio::time::sleep(Duration::from_millis(50)).await;
                    continue;
                }
            },
        };
        if let Some(newest) = certificate.as_mut().filter(|newest| newest.has_changed().unwrap_or(false)) {
            match acceptor(&newest.borrow_and_update()) {
                Ok(newer) => tls = Some(newer),
                Err(error) => tracing::warn!("the older certificate goes on: {error}"),
            }
        }
        let (tls, handler) = (tls.clone(), Arc::clone(&handler));
        tokio::spawn(stop.clone().run_until_cancelled_owned(async move {
            connection(stream, tls, handler).await;
            drop(permit);
        }));
    }
}

fn acceptor(serving: &Serving) -> Result<TlsAcceptor, Failure> {
    Ok(TlsAcceptor::from(Arc::new(server_only(serving)?)))
}

/// Checks that a certificate goes with its key.
///
/// # Errors
/// Why it does not.
pub fn check_serving(serving: &Serving) -> Result<(), Failure> {
    server_only(serving).map(|_| ())
}

async fn connection(stream: TcpStream, tls: Option<TlsAcceptor>, handler: EndpointHandler) {
    let _ = stream.set_nodelay(true);
    match tls {
        None => talk(stream, handler).await,
        Some(acceptor) => match tokio::time::timeout(HEAD, acceptor.accept(stream)).await {
            Ok(Ok(stream)) => talk(stream, handler).await,
            Ok(Err(error)) => tracing::debug!(%error, "TLS handshake failed"),
            Err(_) => {}
        },
    }
}

async fn talk(stream: impl AsyncRead + AsyncWrite + Unpin, handler: EndpointHandler) {
    let service = service_fn(move |request: Request<Incoming>| {
        let handler = Arc::clone(&handler);
        async move { Ok::<_, Infallible>(answer(&request, &handler).await) }
    });
    let mut builder = http1::Builder::new();
    // A client that has its answer leaves: idle connections take the room of others.
    builder.timer(TokioTimer::new()).header_read_timeout(HEAD).keep_alive(false);
    let mut connection = std::pin::pin!(builder.serve_connection(TokioIo::new(stream), service));
    let ended = tokio::select! {
        ended = connection.as_mut() => ended,
        () = tokio::time::sleep(LIFE) => {
            connection.as_mut().graceful_shutdown();
            tokio::time::timeout(LAST, connection).await.unwrap_or(Ok(()))
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "a connection ended");
    }
}

async fn answer(request: &Request<Incoming>, handler: &EndpointHandler) -> Response<Full<Bytes>> {
    let answer = if [Method::GET, Method::HEAD].contains(request.method()) {
        let bearer = request.headers().get(AUTHORIZATION).and_then(|value| value.to_str().ok());
        let bearer = bearer.and_then(|value| value.strip_prefix("Bearer "));
        let asked = EndpointRequest {
            path: request.uri().path().to_owned(),
            query: request.uri().query().unwrap_or_default().to_owned(),
            token: bearer.map(|token| token.trim().to_owned()).filter(|token| !token.is_empty()),
        };
        handler(asked).await
    } else {
        EndpointResponse {
            status: StatusCode::METHOD_NOT_ALLOWED.as_u16(),
            content_type: "text/plain; charset=utf-8",
            text: "Method Not Allowed\n".to_owned(),
        }
    };
    let mut response = Response::new(Full::new(Bytes::from(answer.text)));
    *response.status_mut() = StatusCode::from_u16(answer.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    response.headers_mut().insert(CONTENT_TYPE, http::HeaderValue::from_static(answer.content_type));
    response
}
