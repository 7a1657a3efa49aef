//! The API server under requests that no client would send: in process, and through its socket. A panic, an
//! answer that is no `Status` where something is wrong, one that takes too long, or a server that is gone
//! afterwards is the finding; `soak` watches time and memory.

use bytes::Bytes;
use futures::StreamExt as _;
use http::{HeaderName, HeaderValue, Method, Request};
use http_body_util::{BodyStream, Full};
use opdev_controlplane::{ControlPlane, Listen};
use serde_json::Value;
use std::cell::RefCell;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName, pem::PemObject as _};
use tokio_rustls::rustls::{ClientConfig, RootCertStore, crypto};
use tower_service::Service as _;

/// After so many requests a new server starts, so that what has gathered in one does not slow the next ones.
const LIFE: u32 = 3_000;
/// How long a stream is read.
const STREAM: Duration = Duration::from_millis(5);
/// How long a socket is waited for.
const SOCKET: Duration = Duration::from_millis(300);

struct World {
    runtime: tokio::runtime::Runtime,
    plane: Option<(ControlPlane, std::net::SocketAddr, TlsConnector)>,
    asked: u32,
}

thread_local! {
    static WORLD: RefCell<Option<World>> = const { RefCell::new(None) };
}

/// Runs one request as text (see `generate::http`).
pub fn request(data: &[u8]) {
    WORLD.with_borrow_mut(|world| {
        let world = world.get_or_insert_with(|| World {
            runtime: tokio::runtime::Builder::new_multi_thread()
                .worker_threads(2)
                .enable_all()
                .build()
                .unwrap(),
            plane: None,
            asked: 0,
        });
        world.asked += 1;
        if world.asked % LIFE == 0
            && let Some((plane, ..)) = world.plane.take()
        {
            world.runtime.block_on(plane.stop());
        }
        let runtime = &world.runtime;
        let (plane, address, connector) = world.plane.get_or_insert_with(|| runtime.block_on(start()));
        runtime.block_on(async {
            match data.strip_prefix(b"RAW\n") {
                Some(bytes) => raw(*address, connector, bytes).await,
                None => ask(plane, data).await,
            }
        });
    });
}

async fn start() -> (ControlPlane, std::net::SocketAddr, TlsConnector) {
    let plane = ControlPlane::start().await.unwrap();
    let listening = plane.listen(Listen::default()).await.unwrap();
    let line = listening
        .kubeconfig
        .lines()
        .find_map(|line| line.trim().strip_prefix("certificate-authority-data: "));
    let authority = decoded(line.unwrap());
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(&authority).unwrap()).unwrap();
    let config = ClientConfig::builder_with_provider(Arc::new(crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    (plane, listening.address, TlsConnector::from(Arc::new(config)))
}

fn decoded(text: &str) -> Vec<u8> {
    use base64::Engine as _;
    base64::engine::general_purpose::STANDARD.decode(text).unwrap()
}

/// The text as a request; `None` where no client library could have made it.
fn parse(data: &[u8]) -> Option<Request<Full<Bytes>>> {
    let end = data.windows(2).position(|pair| pair == b"\n\n")?;
    let head = std::str::from_utf8(&data[..end]).ok()?;
    let mut lines = head.lines();
    let (method, uri) = lines.next()?.split_once(' ')?;
    let mut request = Request::builder().method(Method::from_bytes(method.as_bytes()).ok()?).uri(uri);
    for line in lines {
        let (name, value) = line.split_once(": ").unwrap_or((line.trim_end_matches(':'), ""));
        request =
            request.header(HeaderName::from_bytes(name.as_bytes()).ok()?, HeaderValue::from_str(value).ok()?);
    }
    request.body(Full::new(Bytes::copy_from_slice(&data[end + 2..]))).ok()
}

async fn ask(plane: &ControlPlane, data: &[u8]) {
    let Some(request) = parse(data) else { return };
    let (method, path) = (request.method().clone(), request.uri().path().to_owned());
    let mut service = plane.service();
    // On a worker's stack, as requests from a socket are.
    let Ok(response) = tokio::spawn(async move { service.call(request).await }).await.unwrap();
    let code = response.status().as_u16();
    let headers = response.headers().clone();
    let (mut bytes, mut whole) = (Vec::new(), true);
    let mut frames = BodyStream::new(response.into_body());
    loop {
        match tokio::time::timeout(STREAM, frames.next()).await {
            Ok(Some(Ok(frame))) => bytes.extend_from_slice(&frame.into_data().unwrap_or_default()),
            Ok(Some(Err(never))) => match never {},
            Ok(None) => break,
            Err(_) => {
                whole = false;
                break;
            }
        }
    }
    let text = String::from_utf8_lossy(&bytes);
    assert!(!text.contains("made the API server panic"), "{method} {path}: {text}");
    if code < 400 || !whole || method == Method::HEAD {
        return;
    }
    // Paths that are no resource's are answered in plain words, as upstream does.
    let plain = text == "404 page not found\n"
        || path.contains("healthz")
        || path.contains("readyz")
        || path.contains("livez");
    if plain {
        return;
    }
    let kind = headers.get("content-type").and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    if kind == "application/vnd.kubernetes.protobuf" {
        // A runtime.Unknown that says what it holds.
        let status = bytes.starts_with(b"k8s\0\n\x0c\n\x02v1\x12\x06Status");
        assert!(status, "{method} {path}: {code} {text}");
        return;
    }
    let answer: Value = match kind {
        "application/yaml" => opdev_object::yaml::from_str(&text).unwrap_or_default(),
        _ => serde_json::from_slice(&bytes).unwrap_or_default(),
    };
    assert_eq!(answer["kind"], "Status", "{method} {path}: {code} {text}");
    assert_eq!(answer["code"], code, "{method} {path}: {text}");
    assert!(answer["message"].as_str().is_some_and(|message| !message.is_empty()), "{method} {path}: {text}");
}

/// Throws bytes at the socket, with and without TLS, and looks whether the server is still there.
async fn raw(address: std::net::SocketAddr, connector: &TlsConnector, bytes: &[u8]) {
    let mut plain = TcpStream::connect(address).await.unwrap();
    let _ = plain.write_all(&bytes[..bytes.len().min(2_000)]).await;
    let stream = TcpStream::connect(address).await.unwrap();
    let mut stream = connector.connect(ServerName::try_from("localhost").unwrap(), stream).await.unwrap();
    let exchange = async {
        let _ = stream.write_all(bytes).await;
        let mut answer = vec![0; 64 * 1024];
        while stream.read(&mut answer).await.is_ok_and(|count| count > 0) {}
    };
    // The server waits in vain for the rest.
    let _ = tokio::time::timeout(SOCKET, exchange).await;
    drop((plain, stream));
    let stream = TcpStream::connect(address).await.unwrap();
    let mut stream = connector.connect(ServerName::try_from("localhost").unwrap(), stream).await.unwrap();
    stream.write_all(b"GET /healthz HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n").await.unwrap();
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer).await;
    let answer = String::from_utf8_lossy(&answer);
    assert!(answer.starts_with("HTTP/1.1 200 OK"), "{answer}");
}
