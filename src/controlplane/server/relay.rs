//! A socket on loopback for one observed client, whose requests somebody else answers: the API server of
//! another cluster. Its only secret is a token of its own; nobody without it gets any further than 401.
//!
//! A relay has a thread and a runtime of its own: a call is handed from the client's connection to that of
//! the API server and back, and on one thread that wakes nobody.

use super::certificates::{Authority, Failure};
use super::client_certificates::CertificateUser;
use super::kubeconfig::kubeconfig_of_token;
use super::listener::{Listen, SocketService, Tls, accept, bearer, random_token, same};
use super::observed::{self, Answered, Disconnected, Tee, widened};
use super::observer::{Client, Observer};
use super::unauthenticated::UnauthenticatedConnection;
use super::websocket::{self, Switch};
use bytes::Bytes;
use futures::future::BoxFuture;
use http::header::{ACCEPT_ENCODING, AUTHORIZATION, UPGRADE};
use http::{HeaderValue, Request, StatusCode};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Limited};
use hyper::body::Incoming;
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;
use jiff::Timestamp;
use opdev_apimachinery::error::Status;
use opdev_apimachinery::identity::User;
use opdev_handlers::answer::unauthorized;
use std::fmt;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use tokio::net::TcpListener;
use tokio::runtime;
use tokio::sync::oneshot;
use tokio_util::sync::{CancellationToken, DropGuard};
use tokio_util::task::TaskTracker;

/// The largest body of a request, in bytes. API servers take 3 MiB.
const LARGEST: usize = 16 * 1024 * 1024;

/// An answer that is relayed; its body breaks off where the API server's does.
pub type RelayedAnswer = http::Response<UnsyncBoxBody<Bytes, std::io::Error>>;

/// Answers requests in the place of the plane. Their bodies are objects, and come as a whole.
pub type Upstream = Arc<dyn Fn(Request<Bytes>) -> BoxFuture<'static, RelayedAnswer> + Send + Sync>;

/// A socket that relays; it is closed when this is dropped.
pub struct Relay {
    address: SocketAddr,
    authority: String,
    token: String,
    _stop: DropGuard,
}

impl fmt::Debug for Relay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Relay").field("address", &self.address).finish_non_exhaustive()
    }
}

impl Relay {
    /// Listens on a free port of loopback. Calls go to `upstream` without the token; `user` is the name that
    /// they are told under.
    ///
    /// # Errors
    /// Where no port is free, or the system has no randomness for keys.
    pub async fn listen(
        upstream: Upstream,
        user: User,
        observer: Arc<dyn Observer>,
    ) -> std::io::Result<Relay> {
        Self::open(upstream, user, observer).await.map_err(std::io::Error::other)
    }

    async fn open(upstream: Upstream, user: User, observer: Arc<dyn Observer>) -> Result<Relay, Failure> {
        let year = Timestamp::now().to_zoned(jiff::tz::TimeZone::UTC).year();
        let authority = Authority::new(year)?;
        let listener = std::net::TcpListener::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)))?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let tls = Tls::new(authority.server_config(address.ip(), &Listen::default())?);
        let token = random_token()?;
        let stop = CancellationToken::new();
        let client = Client { user, observer };
        let service = Arc::new(RelayService { upstream, token: token.clone(), client, stop: stop.clone() });
        let stopping = stop.clone();
        on_own_thread(listener, async move |listener| {
            let tasks = TaskTracker::new();
            accept(&listener, &tls, &service, &stopping, &tasks).await;
            tasks.close();
            tasks.wait().await;
        })
        .await?;
        Ok(Relay { address, authority: authority.certificate(), token, _stop: stop.drop_guard() })
    }

    /// A kubeconfig for the client: a credential. `auth_provider` names one that the client knows how to
    /// make; any other client refuses the whole file.
    pub fn kubeconfig(&self, namespace: &str, auth_provider: Option<&str>) -> String {
        kubeconfig_of_token("opdev", self.address, &self.authority, &self.token, namespace, auth_provider)
    }
}

/// Runs `work` on a thread with a runtime of its own, until it is over.
///
/// # Errors
/// Where the system gives no thread, or the runtime cannot have the listener.
async fn on_own_thread(
    listener: std::net::TcpListener,
    work: impl AsyncFnOnce(TcpListener) + Send + 'static,
) -> Result<(), Failure> {
    let (say_began, began) = oneshot::channel();
    let run = move || {
        let runtime = match runtime::Builder::new_current_thread().enable_all().build() {
            Ok(runtime) => runtime,
            Err(error) => return drop(say_began.send(Err(error))),
        };
        #[expect(
            clippy::disallowed_methods,
            reason = "the thread is the runtime's own, no worker of another one"
        )]
        runtime.block_on(async {
            match TcpListener::from_std(listener) {
                Ok(listener) => {
                    drop(say_began.send(Ok(())));
                    work(listener).await;
                }
                Err(error) => drop(say_began.send(Err(error))),
            }
        });
    };
    std::thread::Builder::new().name("relay".to_owned()).spawn(run)?;
    Ok(began.await??)
}

struct RelayService {
    upstream: Upstream,
    token: String,
    client: Client,
    /// Ends what goes on beside requests, once the relay is closed.
    stop: CancellationToken,
}

impl SocketService for RelayService {
    type Body = UnsyncBoxBody<Bytes, std::io::Error>;

    async fn answer(
        &self,
        _certified: &CertificateUser,
        connection: &UnauthenticatedConnection,
        mut request: Request<Incoming>,
    ) -> Result<Answered<std::io::Error>, Disconnected> {
        let _under_way = connection.request_started();
        if !bearer(request.headers()).is_some_and(|token| same(token, &self.token)) {
            let query = request.uri().query().unwrap_or_default();
            return Ok(widened(unauthorized(request.headers(), query)));
        }
        request.headers_mut().remove(AUTHORIZATION);
        connection.mark_authenticated();
        // Nobody can look at compressed answers. Servers compress long lists, and newer ones also watches.
        request.headers_mut().insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
        // A watch over WebSocket is asked for over HTTP, so that its events can be looked at.
        let switch = Switch::wanted(&mut request);
        let switched = request.headers().contains_key(UPGRADE).then(|| hyper::upgrade::on(&mut request));
        let relay = async |request| websocket::checked(switch.as_ref(), self.relay(request).await);
        let answer = observed::answer(relay, &self.client, request).await?;
        let mut answer = websocket::made(switch, answer, &self.stop);
        if let (StatusCode::SWITCHING_PROTOCOLS, Some(ours)) = (answer.status(), switched) {
            let theirs = hyper::upgrade::on(&mut answer);
            tokio::spawn(self.stop.clone().run_until_cancelled_owned(join(ours, theirs)));
        }
        Ok(answer)
    }
}

impl RelayService {
    async fn relay(&self, request: Request<Tee<Incoming>>) -> RelayedAnswer {
        let (parts, body) = request.into_parts();
        match Limited::new(body, LARGEST).collect().await {
            Ok(body) => (self.upstream)(Request::from_parts(parts, body.to_bytes())).await,
            Err(error) => {
                let message = format!("the request body could not be read: {error}");
                widened(opdev_handlers::answer::status(&Status::new(413, "RequestEntityTooLarge", message)))
            }
        }
    }
}

/// Copies both ways what an `exec`, an `attach` or a port-forward says, until both sides have ended.
async fn join(ours: OnUpgrade, theirs: OnUpgrade) {
    let joined = async {
        let (ours, theirs) = (ours.await?, theirs.await?);
        let (mut ours, mut theirs) = (TokioIo::new(ours), TokioIo::new(theirs));
        tokio::io::copy_bidirectional(&mut ours, &mut theirs).await?;
        Ok::<(), Failure>(())
    };
    if let Err(error) = joined.await {
        tracing::debug!(error, "a relayed connection ended");
    }
}
