//! Connections for streams that may be silent for as long as they like: watches without events, logs that are
//! followed, `exec` and port-forwards. Whether the other side is still there the kernel finds out, with
//! probes that no stream sees.

use super::link::Answer;
use super::pinned;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::header::UPGRADE;
use http::{HeaderValue, Request, Response, Uri};
use http_body_util::BodyExt;
use hyper_rustls::{FixedServerNameResolver, HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client as Pool;
use hyper_util::client::legacy::connect::proxy::{SocksV5, Tunnel};
use hyper_util::client::legacy::connect::{Connect, HttpConnector};
use hyper_util::rt::TokioExecutor;
use kube::client::{Body, ConfigExt as _};
use percent_encoding::percent_decode_str;
use std::time::Duration;
use tower::util::BoxCloneSyncService;
use tower::{BoxError, Layer as _, ServiceExt as _};

/// A connection on which nothing came for so long is asked whether it still lives.
const IDLE: Duration = Duration::from_secs(30);
/// How long until it is asked again.
const AGAIN: Duration = Duration::from_secs(10);
/// How often it is asked before it is given up.
const TIMES: u32 = 3;
/// How long what was sent may go unconfirmed.
#[cfg(target_os = "linux")]
const UNCONFIRMED: Duration = Duration::from_secs(60);

/// Returns true if a request asks for a stream that may be silent.
pub(super) fn asks_for<B>(request: &Request<B>) -> bool {
    let query = request.uri().query().unwrap_or_default();
    let follows = query.split('&').any(|pair| matches!(pair, "follow=true" | "follow=1"));
    request.headers().contains_key(UPGRADE) || follows
}

/// Sends a request over a connection of its pool. It has no queue and no task of its own, as a client of kube
/// has: a call that is relayed waits for nobody else.
pub(super) type Transport = BoxCloneSyncService<Request<Body>, Answer, BoxError>;

/// A transport whose connections end with the other side, not with its silence. Proxies are used as kube's
/// own clients do.
///
/// # Errors
/// Where the certificates cannot be used, or the proxy speaks what nobody here does.
pub(super) fn transport(config: &kube::Config) -> kube::Result<Transport> {
    let plain = connector(config);
    let Some(proxy) = config.proxy_url.clone() else {
        return over(secured(config, plain)?, config);
    };
    match proxy.scheme_str() {
        Some("socks5") => over(secured(config, SocksV5::new(proxy, plain))?, config),
        Some("https") => {
            let to_proxy = config.rustls_https_connector_with_connector(plain)?;
            over(secured(config, tunnel(proxy, to_proxy))?, config)
        }
        _ => over(secured(config, tunnel(proxy, plain))?, config),
    }
}

/// TLS as kube's own clients speak it, also with a server that is its own authority.
fn secured<C>(config: &kube::Config, connector: C) -> kube::Result<HttpsConnector<C>> {
    let (Some(tls), Some(name)) = (pinned::tls(config)?, pinned::server_name(config)) else {
        return config.rustls_https_connector_with_connector(connector);
    };
    let builder = HttpsConnectorBuilder::new().with_tls_config(tls).https_or_http();
    let builder = builder.with_server_name_resolver(FixedServerNameResolver::new(name));
    Ok(builder.enable_http1().wrap_connector(connector))
}

fn connector(config: &kube::Config) -> HttpConnector {
    let mut connector = HttpConnector::new();
    connector.enforce_http(false);
    connector.set_connect_timeout(config.connect_timeout);
    // A request goes out as head and body, and the second of them would wait for the first.
    connector.set_nodelay(true);
    connector.set_keepalive(Some(IDLE));
    connector.set_keepalive_interval(Some(AGAIN));
    connector.set_keepalive_retries(Some(TIMES));
    #[cfg(target_os = "linux")]
    connector.set_tcp_user_timeout(Some(UNCONFIRMED));
    connector
}

/// Through a proxy, with the name and the password of its address.
fn tunnel<C>(proxy: Uri, connector: C) -> Tunnel<C> {
    let user = proxy.authority().and_then(|authority| Some(authority.as_str().rsplit_once('@')?.0));
    let pair = user.map(|user| STANDARD.encode(percent_decode_str(user).collect::<Vec<u8>>()));
    let header = pair.and_then(|pair| HeaderValue::from_str(&format!("Basic {pair}")).ok());
    let tunnel = Tunnel::new(proxy, connector);
    match header {
        Some(header) => tunnel.with_auth(header),
        None => tunnel,
    }
}

fn over<C>(connector: C, config: &kube::Config) -> kube::Result<Transport>
where
    C: Connect + Clone + Send + Sync + 'static,
{
    let pool: Pool<C, Body> = Pool::builder(TokioExecutor::new()).build(connector);
    let service = config.extra_headers_layer()?.layer(pool);
    let service = config.base_uri_layer().layer(service);
    Ok(BoxCloneSyncService::new(service.map_response(boxed).map_err(BoxError::from)))
}

fn boxed<B>(answer: Response<B>) -> Answer
where
    B: BodyExt<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    answer.map(|body| body.map_err(Into::into).boxed_unsync())
}

#[cfg(test)]
mod tests {
    use super::super::kubeconfig::Merged;
    use super::super::link::{Link, Relayed};
    use super::*;
    use crate::unreachable::OR_EMBEDDED;
    use opdev_client::read_only::ReadOnly;
    use std::net::SocketAddr;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::{TcpListener, TcpStream};
    use tokio::sync::watch;
    use tower::Service as _;

    /// Begins an answer, and says nothing more until `go` is true.
    async fn answer(mut stream: TcpStream, mut go: watch::Receiver<bool>) {
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            head.push(stream.read_u8().await.unwrap());
        }
        stream.write_all(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n").await.unwrap();
        go.wait_for(|go| *go).await.unwrap();
        // Whoever has gone does not read it.
        _ = stream.write_all(b"5\r\nevent\r\n0\r\n\r\n").await;
    }

    async fn serve(go: watch::Receiver<bool>) -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(answer(stream, go.clone()));
            }
        });
        address
    }

    #[tokio::test]
    async fn a_silent_stream_of_the_program_goes_on_where_one_of_opdev_ends() {
        let (say_go, go) = watch::channel(false);
        let address = serve(go).await;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("config");
        let text = format!(
            "clusters: [{{name: c, cluster: {{server: 'http://{address}'}}}}]\n\
             contexts: [{{name: c, context: {{cluster: c, user: u}}}}]\nusers: [{{name: u, user: {{token: t}}}}]\n"
        );
        std::fs::write(&path, text).unwrap();
        let merged = Merged::read(Some(&path), OR_EMBEDDED, |_| None).unwrap().unwrap();
        let mut target = merged.target("c").await.unwrap();
        target.config.read_timeout = Some(Duration::from_millis(100));
        let link = Link::open(target, ReadOnly::new(false)).await.ok().unwrap();
        let ask = async |uri: &str, relayed: bool| {
            let mut request = Request::get(uri).body(Body::empty()).unwrap();
            if relayed {
                request.extensions_mut().insert(Relayed);
            }
            link.clone().call(request).await.unwrap().into_body()
        };
        let relayed = ask("/api/v1/pods?watch=1", true).await;
        let followed = ask("/api/v1/namespaces/a/pods/b/log?follow=true", false).await;
        // Once this one was cut, all of them were silent for longer than it may be.
        let own = ask("/api/v1/pods?watch=1", false).await;
        assert!(own.collect().await.is_err());
        say_go.send_replace(true);
        assert_eq!(relayed.collect().await.unwrap().to_bytes(), "event");
        assert_eq!(followed.collect().await.unwrap().to_bytes(), "event");
    }

    #[test]
    fn logs_that_are_followed_and_upgrades_may_be_silent() {
        let asks = |uri: &str| asks_for(&Request::get(uri).body(()).unwrap());
        assert!(asks("/api/v1/namespaces/a/pods/b/log?container=c&follow=true"));
        assert!(!asks("/api/v1/namespaces/a/pods/b/log?container=follow"));
        assert!(!asks("/api/v1/pods?watch=true"));
        let upgrade = Request::post("/api/v1/namespaces/a/pods/b/exec").header(UPGRADE, "SPDY/3.1");
        assert!(asks_for(&upgrade.body(()).unwrap()));
    }
}
