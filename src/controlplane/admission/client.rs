//! The HTTP client for webhooks: one POST over HTTP/1.1 and TLS. Idle connections are kept for the next call.
//! Errors have the texts of the real server. Never reads what it sends.

use super::closed_stream::ClosedStream;
use super::resolver::{CallFailure, Endpoint, Resolved};
use super::tls::{self, TlsError};
use bytes::Bytes;
use http::header::{ACCEPT, CONTENT_TYPE, HOST, USER_AGENT};
use http::{Request, StatusCode};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper_util::rt::TokioIo;
use opdev_apimachinery::blocking::MayWait;
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use std::collections::HashMap;
use std::fmt;
use std::sync::mpsc::{self, Receiver};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::runtime::Handle;
use tokio_rustls::TlsConnector;

/// Idle connections that are kept for one place.
const KEPT: usize = 8;
/// Places of which anything is kept.
const PLACES: usize = 64;
/// The largest answer that is read.
const LARGEST: usize = 16 * 1024 * 1024;

/// A review to send, and its address.
#[derive(Clone, Debug)]
pub(super) struct WebhookCall {
    pub place: Resolved,
    pub(super) authorities: Option<Arc<[u8]>>,
    pub body: Bytes,
    pub timeout: Duration,
}

/// The key of a connection in the pool: address, name and trusted authorities.
#[derive(Clone, PartialEq, Eq, Hash)]
struct ConnectionKey {
    dial: String,
    server_name: String,
    authorities: Option<Arc<[u8]>>,
    local: bool,
}

/// The trusted authorities of a connection: the configured ones, and true if the plane's own counts.
type TlsKey = (Option<Arc<[u8]>>, bool);

type Sender = SendRequest<Full<Bytes>>;

/// The client, with its connections.
#[derive(Clone, Default)]
pub(super) struct WebhookClient(Arc<Inner>);

#[derive(Default)]
struct Inner {
    /// PEM of the plane's own authority.
    own: Arc<str>,
    idle: Mutex<HashMap<ConnectionKey, Vec<Sender>>>,
    configs: Mutex<HashMap<TlsKey, Arc<ClientConfig>>>,
}

impl fmt::Debug for WebhookClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WebhookClient").finish_non_exhaustive()
    }
}

/// Why nobody was asked on a thread that may not wait.
pub(super) const MUST_WAIT: &str = "a webhook has to be asked first; try again";

/// The answer's text, or why there is none.
pub(super) type Answered = Result<Bytes, CallFailure>;

/// An answer on its way.
pub(super) struct PendingAnswer(Receiver<Answered>);

impl PendingAnswer {
    /// Waits for the answer.
    #[expect(clippy::disallowed_methods, reason = "the thread may wait, as `MayWait` proves")]
    pub(crate) fn wait(self, _: &MayWait) -> Answered {
        // The sender only goes without a word when the runtime ends.
        self.0.recv().unwrap_or_else(|_| Err(CallFailure::Failed("the control plane is stopping".to_owned())))
    }
}

/// Sends in the background.
pub(super) fn start(caller: WebhookClient, call: WebhookCall, limit: Duration) -> PendingAnswer {
    let (sender, receiver) = mpsc::channel();
    let Ok(runtime) = Handle::try_current() else {
        let _ =
            sender.send(Err(CallFailure::Failed("webhooks are only called from a tokio runtime".to_owned())));
        return PendingAnswer(receiver);
    };
    runtime.spawn(async move {
        let _ = sender.send(caller.post(call, limit).await);
    });
    PendingAnswer(receiver)
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The error on the way.
enum ExchangeError {
    /// Nothing listens there.
    Refused(String),
    /// Anything else before there was an answer.
    Way(String),
    /// The answer is a failure.
    Answer(String),
}

impl WebhookClient {
    /// A client that believes this authority (PEM) where nothing else is configured.
    pub(super) fn trusting(own: Arc<str>) -> Self {
        WebhookClient(Arc::new(Inner { own, ..Inner::default() }))
    }

    async fn post(self, call: WebhookCall, limit: Duration) -> Answered {
        let query = format!("?timeout={}s", limit.as_secs());
        let failed = |url: &str, why: &str| {
            Err(CallFailure::Failed(format!("failed to call webhook: Post \"{url}{query}\": {why}")))
        };
        let place = match &call.place {
            Ok(place) => place,
            Err((url, CallFailure::Failed(why))) => return failed(url, why),
            Err((_, simulated @ CallFailure::Simulated(_))) => return Err(simulated.clone()),
        };
        match tokio::time::timeout(call.timeout, self.exchange(place, &call, &query)).await {
            Ok(Ok(text)) => Ok(text),
            Ok(Err(ExchangeError::Refused(why))) => match &place.otherwise {
                None => failed(&place.url, &why),
                Some(CallFailure::Failed(why)) => failed(&place.url, why),
                Some(simulated @ CallFailure::Simulated(_)) => Err(simulated.clone()),
            },
            Ok(Err(ExchangeError::Way(why))) => failed(&place.url, &why),
            Ok(Err(ExchangeError::Answer(why))) => {
                Err(CallFailure::Failed(format!("failed to call webhook: {why}")))
            }
            Err(_) => failed(&place.url, "context deadline exceeded"),
        }
    }

    async fn exchange(
        &self,
        place: &Endpoint,
        call: &WebhookCall,
        query: &str,
    ) -> Result<Bytes, ExchangeError> {
        let door = ConnectionKey {
            dial: place.dial.clone(),
            server_name: place.server_name.clone(),
            authorities: call.authorities.clone(),
            local: place.local,
        };
        let request = || {
            Request::post(format!("{}{query}", place.path))
                .header(HOST, &place.host)
                .header(ACCEPT, "application/json, */*")
                .header(CONTENT_TYPE, "application/json")
                .header(USER_AGENT, "kube-apiserver-admission")
                .body(Full::new(call.body.clone()))
                .map_err(|error| ExchangeError::Way(error.to_string()))
        };
        // A kept connection may have ended meanwhile: then a new one is made.
        while let Some(mut sender) = self.kept(&door) {
            if sender.ready().await.is_ok()
                && let Ok(response) = sender.send_request(request()?).await
            {
                return self.read(door, sender, response).await;
            }
        }
        let mut sender = self.connect(place, &door).await?;
        let response = sender.send_request(request()?).await.map_err(|error| {
            let closed = error.is_incomplete_message() || error.is_closed();
            ExchangeError::Way(if closed { "EOF".to_owned() } else { error.to_string() })
        })?;
        self.read(door, sender, response).await
    }

    fn kept(&self, door: &ConnectionKey) -> Option<Sender> {
        locked(&self.0.idle).get_mut(door)?.pop()
    }

    async fn connect(&self, place: &Endpoint, door: &ConnectionKey) -> Result<Sender, ExchangeError> {
        let stream =
            TcpStream::connect(&place.dial).await.map_err(|error| dial_words(&place.dial, &error))?;
        let _ = stream.set_nodelay(true);
        let config = self.config(door).map_err(|error| ExchangeError::Way(error.to_string()))?;
        let name = ServerName::try_from(place.server_name.clone());
        let name =
            name.map_err(|_| ExchangeError::Way(format!("invalid server name {:?}", place.server_name)))?;
        let stream = TlsConnector::from(config).connect(name, stream).await;
        let stream = stream.map_err(|error| ExchangeError::Way(tls::words(&error, &place.server_name)))?;
        let (sender, connection) = handshake(TokioIo::new(ClosedStream(stream)))
            .await
            .map_err(|error| ExchangeError::Way(error.to_string()))?;
        tokio::spawn(async move {
            if let Err(error) = connection.await {
                tracing::debug!(%error, "a connection to a webhook ended");
            }
        });
        Ok(sender)
    }

    fn config(&self, door: &ConnectionKey) -> Result<Arc<ClientConfig>, TlsError> {
        let key = (door.authorities.clone(), door.local);
        if let Some(config) = locked(&self.0.configs).get(&key) {
            return Ok(config.clone());
        }
        let own = (door.local || door.authorities.is_none()).then_some(&*self.0.own);
        let config = Arc::new(tls::config(door.authorities.as_deref(), own)?);
        let mut configs = locked(&self.0.configs);
        if configs.len() >= PLACES {
            configs.clear();
        }
        configs.insert(key, config.clone());
        Ok(config)
    }

    async fn read(
        &self,
        door: ConnectionKey,
        sender: Sender,
        response: http::Response<hyper::body::Incoming>,
    ) -> Result<Bytes, ExchangeError> {
        let code = response.status();
        let kind = response.headers().get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
        let kind = kind.unwrap_or_default().to_owned();
        let body = Limited::new(response.into_body(), LARGEST).collect().await;
        let text = body.map_err(|error| {
            // An announced length that is not reached has Go's words for it.
            let cut = is_cut_off(&*error);
            let why = if cut { "unexpected EOF".to_owned() } else { error.to_string() };
            ExchangeError::Way(format!("unexpected error when reading response body: {why}"))
        })?;
        self.keep(door, sender);
        let text = text.to_bytes();
        if !code.is_success() {
            return Err(ExchangeError::Answer(code_words(code, &text)));
        }
        if text.is_empty() {
            let code = code.as_u16();
            let why = format!("0-length response with status code: {code} and content type: {kind}");
            return Err(ExchangeError::Answer(why));
        }
        Ok(text)
    }

    fn keep(&self, door: ConnectionKey, sender: Sender) {
        let mut idle = locked(&self.0.idle);
        if idle.len() >= PLACES && !idle.contains_key(&door) {
            idle.clear();
        }
        let kept = idle.entry(door).or_default();
        if kept.len() < KEPT && !sender.is_closed() {
            kept.push(sender);
        }
    }
}

/// Returns true if a body ended before its announced length.
fn is_cut_off(error: &(dyn std::error::Error + 'static)) -> bool {
    let found = error.downcast_ref::<hyper::Error>();
    found.is_some_and(hyper::Error::is_incomplete_message)
        || error
            .downcast_ref::<std::io::Error>()
            .is_some_and(|found| found.kind() == std::io::ErrorKind::UnexpectedEof)
        || error.source().is_some_and(is_cut_off)
}

/// A failed connection in the words of the real server.
fn dial_words(dial: &str, error: &std::io::Error) -> ExchangeError {
    match error.kind() {
        std::io::ErrorKind::ConnectionRefused => {
            let dial =
                dial.strip_prefix("localhost:").map_or(dial.to_owned(), |port| format!("127.0.0.1:{port}"));
            ExchangeError::Refused(format!("dial tcp {dial}: connect: connection refused"))
        }
        std::io::ErrorKind::ConnectionReset => ExchangeError::Way("EOF".to_owned()),
        _ if error.raw_os_error().is_none() => {
            let host = dial.rsplit_once(':').map_or(dial, |(host, _)| host);
            ExchangeError::Way(format!("dial tcp: lookup {host}: no such host"))
        }
        _ => ExchangeError::Way(format!("dial tcp {dial}: connect: {error}")),
    }
}

/// The error of a failed HTTP call: the message of its `Status`, or words for its code.
fn code_words(code: StatusCode, body: &[u8]) -> String {
    let status: Option<serde_json::Value> = serde_json::from_slice(body).ok();
    let message = status.filter(|status| status["kind"] == "Status" && status["status"] == "Failure");
    if let Some(message) = message.as_ref().and_then(|status| status["message"].as_str()) {
        return message.to_owned();
    }
    let body = String::from_utf8_lossy(body);
    let body = body.trim();
    match code.as_u16() {
        400 => "the server rejected our request for an unknown reason".to_owned(),
        401 => "the server has asked for the client to provide credentials".to_owned(),
        403 if !body.is_empty() => body.to_owned(),
        403 => "the server has rejected our request".to_owned(),
        404 => "the server could not find the requested resource".to_owned(),
        405 => "the server does not allow this method on the requested resource".to_owned(),
        406 => "the server was unable to respond with a content type that the client supports".to_owned(),
        409 => "the server reported a conflict".to_owned(),
        415 => "the body of the request was in an unknown format".to_owned(),
        422 => "the server rejected our request due to an error in our request".to_owned(),
        429 => "the server has received too many requests and has asked us to try again later".to_owned(),
        503 => "the server is currently unable to handle the request".to_owned(),
        504 => "the server was unable to return a response in the time allotted, but may still be processing the \
                request"
            .to_owned(),
        500.. => format!("an error on the server ({body:?}) has prevented the request from succeeding"),
        other => format!("the server responded with the status code {other} but did not return more information"),
    }
}
