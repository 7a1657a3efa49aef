//! Sockets: accepts TLS connections on a loopback address, finds out who is there, and serves HTTP/1.1 and
//! HTTP/2 until told to stop. Never listens on an address that another machine can reach.

use super::certificates::{Authority, Failure};
use super::client_certificates::{CertificateUser, ClientAuthorities};
use super::exec::{self, Streams};
use super::front::Front;
use super::kubeconfig::{context_name, kubeconfig, kubeconfig_of_token};
use super::observed::{self, Disconnected};
use super::observer::{Client, Clients, ObservedToken};
use super::unauthenticated::{UnauthenticatedConnection, UnauthenticatedConnections};
use super::websocket::{self, Switch};
use http::header::{AUTHORIZATION, HeaderMap};
use http::{Request, Response};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use opdev_apimachinery::body::Body;
use opdev_apimachinery::identity::User;
use opdev_handlers::answer::unauthorized;
use opdev_storage::Store;
use rustls::ServerConfig;
use std::future::Future;
use std::net::{Ipv4Addr, SocketAddr};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

const STREAMS: u32 = 1000;
const HANDSHAKE_LIMIT: Duration = Duration::from_secs(10);
const HEADER_LIMIT: Duration = Duration::from_secs(30);
/// After this time of silence an HTTP/2 client is asked whether it is still there, as upstream.
const PING_AFTER: Duration = Duration::from_secs(30);
/// How long its answer may take, as upstream.
const PING_LIMIT: Duration = Duration::from_secs(15);
/// How long open requests may take to finish once the plane stops.
const GRACE: Duration = Duration::from_secs(1);

/// Where to listen, and with whose certificates.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listen {
    /// A loopback address; port 0 takes a free one.
    pub address: SocketAddr,
    /// The certificate of the server; without one, a certificate of the plane's own authority is used.
    pub serving: Option<Serving>,
    /// Certificates of further authorities, PEM, whose client certificates are believed beside the plane's
    /// own: the common name is the user, the organizations are the groups.
    pub client_authorities: Option<String>,
    /// The project's name: with it the context of the kubeconfig is `opdev-NAME`, else `opdev`.
    pub project: Option<String>,
}

impl Default for Listen {
    fn default() -> Self {
        Listen {
            address: SocketAddr::from((Ipv4Addr::LOCALHOST, 0)),
            serving: None,
            client_authorities: None,
            project: None,
        }
    }
}

/// A serving certificate from outside, with its key.
#[derive(Clone, PartialEq, Eq)]
pub struct Serving {
    /// The certificate and what leads up to its authority, PEM.
    pub certificate: String,
    /// Its private key, PEM: PKCS #8, PKCS #1 or SEC1.
    pub key: String,
}

impl std::fmt::Debug for Serving {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Serving").field("certificate", &self.certificate).finish_non_exhaustive()
    }
}

/// A plane that listens.
#[derive(Clone)]
pub struct Listening {
    /// The address that was bound.
    pub address: SocketAddr,
    /// The admin's kubeconfig with certificates, key and token in it: a credential, so mind the file's mode.
    pub kubeconfig: String,
    /// The authority that clients have to trust, PEM.
    authority: String,
    /// The name of context and cluster in kubeconfigs.
    context: String,
}

impl Listening {
    /// A kubeconfig for whoever has this token: a credential, too. `auth_provider` names one that the client
    /// knows how to make; any other client refuses the whole file.
    pub fn kubeconfig_of(
        &self,
        token: &ObservedToken,
        namespace: &str,
        auth_provider: Option<&str>,
    ) -> String {
        kubeconfig_of_token(
            &self.context,
            self.address,
            &self.authority,
            token.token(),
            namespace,
            auth_provider,
        )
    }
}

impl std::fmt::Debug for Listening {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Listening").field("address", &self.address).finish_non_exhaustive()
    }
}

struct ApiService {
    front: Arc<Front>,
    token: String,
    observed: Arc<Clients>,
    /// Ends what goes on beside requests.
    stop: CancellationToken,
}

/// Binds, has the server's and the admin's certificates signed and starts accepting in the background.
pub(crate) async fn listen(
    listen: &Listen,
    authority: &Authority,
    front: Arc<Front>,
    stop: CancellationToken,
    tasks: &TaskTracker,
) -> Result<Listening, Failure> {
    if !listen.address.ip().is_loopback() {
        return Err(format!(
            "{} is not a loopback address; whoever reaches the control plane is its admin, so it listens on 127.0.0.1 or [::1] only",
            listen.address
        )
        .into());
    }
    let store = front.store().clone();
    let listener = bind(listen.address, &store).await?;
    let address = listener.local_addr()?;
    let tls = Tls::new(authority.server_config(address.ip(), listen)?);
    let client = authority.client("kubernetes-admin", "system:masters")?;
    let token = kept_token(&store)?;
    let own = authority.certificate();
    let trusted = listen.serving.as_ref().map_or(&own, |serving| &serving.certificate);
    let context = context_name(listen.project.as_deref());
    let kubeconfig = kubeconfig(&context, address, trusted, &client, &token);
    // A client that gets a kubeconfig may rely on it.
    store.settled().await.map_err(|why| why.to_string())?;
    let observed = Arc::clone(front.clients());
    let (own, others) = (token.clone(), observed.clone());
    front.also_known(Box::new(move |token| match same(token, &own) {
        true => Some(User::admin()),
        false => others.client_of_token(token).map(|client| client.user.clone()),
    }));
    let service = Arc::new(ApiService { front, token, observed, stop: stop.clone() });
    let tracker = tasks.clone();
    tasks.spawn(async move { accept(&listener, &tls, &service, &stop, &tracker).await });
    Ok(Listening { address, kubeconfig, authority: trusted.clone(), context })
}

/// Where an earlier plane on the same store has listened, as the kubeconfigs of then say; elsewhere where
/// that is taken. An address with a port is taken at its word.
async fn bind(address: SocketAddr, store: &Store) -> Result<TcpListener, Failure> {
    const KEPT: &str = "address";
    let kept =
        store.kept(KEPT).and_then(|bytes| std::str::from_utf8(&bytes).ok()?.parse::<SocketAddr>().ok());
    let before = match kept.filter(|kept| address.port() == 0 && kept.ip() == address.ip()) {
        Some(kept) => TcpListener::bind(kept).await.ok(),
        None => None,
    };
    let listener = match before {
        Some(listener) => listener,
        None => TcpListener::bind(address)
            .await
            .map_err(|error| format!("cannot listen on {address}: {error}"))?,
    };
    let bound = listener.local_addr()?;
    if kept != Some(bound) {
        store.keep(KEPT, bound.to_string().into_bytes());
    }
    Ok(listener)
}

/// The admin's token, the same for as long as the store lives.
fn kept_token(store: &Store) -> Result<String, Failure> {
    const KEPT: &str = "admin-token";
    if let Some(token) = store.kept(KEPT).and_then(|bytes| String::from_utf8(bytes).ok()) {
        return Ok(token);
    }
    let token = random_token()?;
    store.keep(KEPT, token.clone().into_bytes());
    Ok(token)
}

pub(crate) fn random_token() -> Result<String, Failure> {
    let mut bytes = [0u8; 32];
    getrandom::fill(&mut bytes).map_err(|error| format!("no randomness for a token: {error}"))?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// The TLS settings of a socket, with the authority of its clients' certificates.
#[derive(Clone)]
pub(super) struct Tls {
    acceptor: TlsAcceptor,
    clients: ClientAuthorities,
}

impl Tls {
    pub(super) fn new((config, clients): (ServerConfig, ClientAuthorities)) -> Self {
        Tls { acceptor: TlsAcceptor::from(Arc::new(config)), clients }
    }
}

/// The service that answers the requests of a socket.
pub(super) trait SocketService: Send + Sync + 'static {
    /// The body of an answer.
    type Body: http_body::Body<Data = bytes::Bytes, Error: std::error::Error + Send + Sync> + Send + 'static;

    /// Answers a request. `certified` is what the client certificate says of who asks.
    fn answer(
        &self,
        certified: &CertificateUser,
        connection: &UnauthenticatedConnection,
        request: Request<Incoming>,
    ) -> impl Future<Output = Result<Response<Self::Body>, Disconnected>> + Send;
}

/// Accepts connections until told to stop.
pub(super) async fn accept<D: SocketService>(
    listener: &TcpListener,
    tls: &Tls,
    service: &Arc<D>,
    stop: &CancellationToken,
    tasks: &TaskTracker,
) {
    let connections = Arc::new(UnauthenticatedConnections::default());
    loop {
        let accepted = tokio::select! {
            () = stop.cancelled() => return,
            accepted = listener.accept() => accepted,
        };
        match accepted {
            Ok((stream, _)) => {
                let client = connections.add();
                tasks.spawn(connection(stream, tls.clone(), service.clone(), stop.clone(), client));
            }
            Err(error) => {
                tracing::warn!(%error, "a connection could not be accepted");
                // Out of file descriptors, most likely: an unknown client gives its own back.
                connections.close_most_silent();
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        }
    }
}

async fn connection<D: SocketService>(
    stream: TcpStream,
    tls: Tls,
    service: Arc<D>,
    stop: CancellationToken,
    unauthenticated: UnauthenticatedConnection,
) {
    let unauthenticated = Arc::new(unauthenticated);
    let _ = stream.set_nodelay(true);
    let stream = tokio::select! {
        () = stop.cancelled() => return,
        () = unauthenticated.closed() => return,
        stream = tokio::time::timeout(HANDSHAKE_LIMIT, handshake(stream, &tls.acceptor)) => match stream {
            Ok(Ok(Some(stream))) => stream,
            Ok(Err(error)) => {
                tracing::debug!(%error, "TLS handshake failed");
                return;
            }
            Ok(Ok(None)) | Err(_) => return,
        },
    };
    let certified = tls.clients.user(stream.get_ref().1.peer_certificates().unwrap_or_default());
    if matches!(certified, CertificateUser::Known(_)) {
        unauthenticated.mark_authenticated();
    }
    let (certified, client) = (Arc::new(certified), unauthenticated.clone());
    let answer = service_fn(move |request: Request<Incoming>| {
        let (service, certified, client) = (service.clone(), certified.clone(), client.clone());
        async move { service.answer(&certified, &client, request).await }
    });
    let mut builder = Builder::new(TokioExecutor::new());
    builder.http1().timer(TokioTimer::new()).header_read_timeout(HEADER_LIMIT);
    builder
        .http2()
        .timer(TokioTimer::new())
        .max_concurrent_streams(STREAMS)
        .keep_alive_interval(PING_AFTER)
        .keep_alive_timeout(PING_LIMIT);
    let mut connection = pin!(builder.serve_connection_with_upgrades(TokioIo::new(stream), answer));
    let result = tokio::select! {
        result = connection.as_mut() => result,
        () = unauthenticated.closed() => {
            tracing::debug!("a connection was closed: its client has not authenticated");
            return;
        }
        () = stop.cancelled() => {
            connection.as_mut().graceful_shutdown();
            tokio::time::timeout(GRACE, connection).await.unwrap_or(Ok(()))
        }
    };
    if let Err(error) = result {
        tracing::debug!(error, "a connection ended");
    }
}

/// TLS. A client that speaks plain HTTP gets an answer in plain HTTP; then there is no stream to go on with.
async fn handshake(
    mut stream: TcpStream,
    acceptor: &TlsAcceptor,
) -> std::io::Result<Option<TlsStream<TcpStream>>> {
    let mut first = [0u8; 1];
    stream.peek(&mut first).await?;
    if first[0].is_ascii_uppercase() {
        let said = "HTTP/1.0 400 Bad Request\r\nContent-Type: text/plain\r\n\r\nClient sent an HTTP request to an HTTPS server.\n";
        stream.write_all(said.as_bytes()).await?;
        stream.shutdown().await?;
        // Reading what is still under way keeps the answer from being reset away.
        tokio::io::copy(&mut stream.take(64 * 1024), &mut tokio::io::sink()).await?;
        return Ok(None);
    }
    acceptor.accept(stream).await.map(Some)
}

/// A client of the server.
enum Visitor {
    User(User),
    /// Somebody whose calls are looked at.
    Observed(Arc<Client>),
}

impl SocketService for ApiService {
    type Body = Body;

    async fn answer(
        &self,
        certified: &CertificateUser,
        connection: &UnauthenticatedConnection,
        mut request: Request<Incoming>,
    ) -> Result<Response<Body>, Disconnected> {
        let _under_way = connection.request_started();
        let Some(visitor) = self.client(certified, request.headers()) else {
            return Ok(unauthorized(request.headers(), request.uri().query().unwrap_or_default()));
        };
        let switch = Switch::wanted(&mut request);
        let streams = Streams::wanted(&mut request);
        let response = match visitor {
            Visitor::User(user) => {
                if !user.is_anonymous() {
                    connection.mark_authenticated();
                }
                websocket::checked(switch.as_ref(), self.front.answer(&user, request).await)
            }
            Visitor::Observed(client) => {
                connection.mark_authenticated();
                let answer = async |request| {
                    websocket::checked(switch.as_ref(), self.front.answer(&client.user, request).await)
                };
                observed::answer(answer, &client, request).await?
            }
        };
        Ok(exec::made(streams, websocket::made(switch, response, &self.stop), &self.stop))
    }
}

impl ApiService {
    /// Certificate first, then token (the admin's, one of an observed client, or one of a ServiceAccount),
    /// then nobody.
    fn client(&self, certified: &CertificateUser, headers: &HeaderMap) -> Option<Visitor> {
        match (certified, bearer(headers)) {
            (CertificateUser::Known(user), _) => Some(Visitor::User(user.clone())),
            (_, Some(token)) if same(token, &self.token) => Some(Visitor::User(User::admin())),
            (_, Some(token)) => match self.observed.client_of_token(token) {
                Some(client) => Some(Visitor::Observed(client)),
                None => self.front.user_of_token(token).map(Visitor::User),
            },
            (CertificateUser::Refused, None) => None,
            (CertificateUser::Absent, None) => Some(Visitor::User(User::anonymous())),
        }
    }
}

pub(super) fn bearer(headers: &HeaderMap) -> Option<&str> {
    let (scheme, token) = headers.get(AUTHORIZATION)?.to_str().ok()?.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
}

/// Compares in the same time wherever the texts differ.
pub(super) fn same(a: &str, b: &str) -> bool {
    a.len() == b.len() && a.bytes().zip(b.bytes()).fold(0, |differs, (a, b)| differs | (a ^ b)) == 0
}
