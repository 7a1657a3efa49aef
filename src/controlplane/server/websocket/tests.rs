//! Watches over WebSocket on a socket, as Java clients ask for them.

use super::*;
use crate::server::certificates::Authority;
use crate::server::front::Front;
use crate::server::listener::{Listen, listen};
use crate::server::{Observation, ObservedToken, Observer};
use http_body_util::Full;
use opdev_apimachinery::identity::User;
use opdev_handlers::Api;
use opdev_handlers::tokens::Tokens;
use opdev_registry::{Printers, Registry};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_util::task::TaskTracker;

struct Server {
    front: Arc<Front>,
    address: SocketAddr,
    authority: String,
    stop: CancellationToken,
}

impl Server {
    async fn start() -> Self {
        let registry = Arc::new(Registry::boot(Arc::new(jiff::Timestamp::now)).unwrap());
        let tokens = Arc::new(Tokens::kept_by(&registry.store).unwrap());
        let stop = CancellationToken::new();
        let front =
            Arc::new(Front::new(Arc::new(Api::new(registry, Arc::new(Printers), tokens)), stop.clone()));
        let authority = Authority::new(2026).unwrap();
        let tasks = TaskTracker::new();
        let listening =
            listen(&Listen::default(), &authority, front.clone(), stop.clone(), &tasks).await.unwrap();
        Server { front, address: listening.address, authority: authority.certificate(), stop }
    }

    fn client(&self, observer: Arc<dyn Observer>) -> ObservedToken {
        self.front.clients().admit("secret".to_owned(), User::admin(), observer)
    }

    async fn make(&self, name: &str) {
        let body = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}}).to_string();
        let request = Request::post("/api/v1/namespaces/default/configmaps")
            .header("content-type", "application/json")
            .body(Full::new(Bytes::from(body)))
            .unwrap();
        assert_eq!(self.front.answer(&User::admin(), request).await.status(), StatusCode::CREATED);
    }

    /// Sends a request for a WebSocket with further headers; gives the head of the answer and the connection.
    async fn ask(&self, path: &str, headers: &str) -> (String, TlsStream<TcpStream>) {
        let mut roots = rustls::RootCertStore::empty();
        roots.add(CertificateDer::from_pem_slice(self.authority.as_bytes()).unwrap()).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = rustls::ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth();
        let stream = TcpStream::connect(self.address).await.unwrap();
        let name = ServerName::from(self.address.ip());
        let mut stream = TlsConnector::from(Arc::new(config)).connect(name, stream).await.unwrap();
        let request = format!(
            "GET {path} HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer secret\r\nConnection: Upgrade\r\n\
             Upgrade: websocket\r\n{headers}\r\n",
            self.address
        );
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            head.push(stream.read_u8().await.unwrap());
        }
        (String::from_utf8(head).unwrap().to_lowercase(), stream)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

#[derive(Default)]
struct Seen(Mutex<Vec<String>>);

impl Observer for Seen {
    fn seen(&self, observation: Observation) {
        let told = match observation {
            Observation::Answered(exchange) => format!("{} {}", exchange.asked.method, exchange.status),
            Observation::Delivered(delivery) => {
                let events = delivery.chunk.events();
                let names: Vec<String> = events
                    .iter()
                    .map(|(kind, object)| {
                        format!("{kind} {}", object["metadata"]["name"].as_str().unwrap_or(""))
                    })
                    .collect();
                names.join(", ")
            }
            Observation::WatchEnded(_) => "ended".to_owned(),
        };
        self.0.lock().unwrap().push(told);
    }
}

const WATCH: &str = "/api/v1/namespaces/default/configmaps?watch=true&resourceVersion=0";
const KEY: &str = "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n";
const ORIGIN: &str = "Origin: https://127.0.0.1\r\n";

/// One frame: its code, and what is in it.
async fn frame(stream: &mut (impl AsyncRead + Unpin)) -> (u8, Vec<u8>) {
    let [first, second] = [stream.read_u8().await.unwrap(), stream.read_u8().await.unwrap()];
    assert_eq!((first & FIN, second & MASKED), (FIN, 0), "whole, and not masked");
    let length = match second {
        126 => u64::from(stream.read_u16().await.unwrap()),
        127 => stream.read_u64().await.unwrap(),
        short => u64::from(short),
    };
    let mut payload = vec![0; usize::try_from(length).unwrap()];
    stream.read_exact(&mut payload).await.unwrap();
    (first & 0x0f, payload)
}

/// A frame of a client.
fn masked(code: u8, payload: &[u8]) -> Vec<u8> {
    let mask = [1, 2, 3, 4];
    let mut frame = vec![FIN | code, MASKED | u8::try_from(payload.len()).unwrap()];
    frame.extend(mask);
    frame.extend(payload.iter().zip(mask.iter().cycle()).map(|(byte, mask)| byte ^ mask));
    frame
}

#[tokio::test]
async fn events_are_messages_and_are_seen_as_over_http() {
    let server = Server::start().await;
    let seen = Arc::new(Seen::default());
    let _token = server.client(seen.clone());
    server.make("a").await;
    let (head, mut stream) = server.ask(WATCH, &format!("{KEY}{ORIGIN}")).await;
    assert!(head.starts_with("http/1.1 101 switching protocols"), "{head}");
    // The example of the standard.
    assert!(head.contains("sec-websocket-accept: s3pplmbitxaq9kygzzhzrbk+xoo=\r\n"), "{head}");
    let event = async |stream: &mut TlsStream<TcpStream>| {
        let (code, payload) = frame(stream).await;
        let event: Value = serde_json::from_slice(&payload).unwrap();
        (code, event["type"].clone(), event["object"]["metadata"]["name"].clone())
    };
    assert_eq!(event(&mut stream).await, (TEXT, json!("ADDED"), json!("a")));
    server.make("b").await;
    assert_eq!(event(&mut stream).await, (TEXT, json!("ADDED"), json!("b")));
    stream.write_all(&masked(PING, b"here?")).await.unwrap();
    assert_eq!(frame(&mut stream).await, (PONG, b"here?".to_vec()));
    // Messages of a client do not matter in a watch.
    stream.write_all(&masked(TEXT, b"hello")).await.unwrap();
    stream.write_all(&masked(CLOSE, &NORMAL.to_be_bytes())).await.unwrap();
    assert_eq!(frame(&mut stream).await, (CLOSE, NORMAL.to_be_bytes().to_vec()));
    assert_eq!(stream.read(&mut [0]).await.unwrap(), 0, "the connection ends");
    let told = seen.0.lock().unwrap().clone();
    assert_eq!(told, ["GET 200", "ADDED a", "ADDED b", "ended"]);
}

#[tokio::test]
async fn a_watch_that_ends_closes_its_socket() {
    let server = Server::start().await;
    let _token = server.client(Arc::new(Seen::default()));
    let protocol = "Sec-WebSocket-Protocol: binary.k8s.io\r\n";
    let path = format!("{WATCH}&timeoutSeconds=1");
    let (head, mut stream) = server.ask(&path, &format!("{KEY}{ORIGIN}{protocol}")).await;
    assert!(head.contains("sec-websocket-protocol: binary.k8s.io\r\n"), "{head}");
    assert_eq!(frame(&mut stream).await, (CLOSE, NORMAL.to_be_bytes().to_vec()));
}

#[tokio::test]
async fn protobuf_goes_in_bytes_without_a_length_before_it() {
    let server = Server::start().await;
    let _token = server.client(Arc::new(Seen::default()));
    server.make("a").await;
    let accept = "Accept: application/vnd.kubernetes.protobuf;stream=watch\r\n";
    let (_, mut stream) = server.ask(WATCH, &format!("{KEY}{ORIGIN}{accept}")).await;
    let (code, payload) = frame(&mut stream).await;
    let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
    let events = opdev_apimachinery::protobuf::events(&[length.as_slice(), &payload].concat()).unwrap();
    assert_eq!((code, &events[0].1["metadata"]["name"]), (BINARY, &json!("a")));
}

#[tokio::test]
async fn who_is_not_served_is_told_as_by_a_real_server() {
    let server = Server::start().await;
    let _token = server.client(Arc::new(Seen::default()));
    let version = "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 8\r\n";
    let two = "Sec-WebSocket-Protocol: a, b\r\n";
    let cases = [
        (WATCH, KEY.to_owned(), "403"),
        (WATCH, format!("{KEY}Origin: null\r\n"), "403"),
        (WATCH, ORIGIN.to_owned(), "400"),
        (WATCH, format!("{version}{ORIGIN}"), "400"),
        (WATCH, format!("{KEY}{ORIGIN}{two}"), "400"),
        // Anything else than a watch is answered over HTTP.
        ("/api/v1/namespaces/default/configmaps", format!("{KEY}{ORIGIN}"), "200"),
        ("/api/v1/namespaces/default/nothing?watch=true", format!("{KEY}{ORIGIN}"), "404"),
        (
            "/api/v1/namespaces/default/configmaps?watch=true&labelSelector=a%21%21",
            format!("{KEY}{ORIGIN}"),
            "400",
        ),
    ];
    for (path, headers, code) in cases {
        let (head, _) = server.ask(path, &headers).await;
        assert!(head.starts_with(&format!("http/1.1 {code} ")), "{path} {headers}: {head}");
    }
}

#[tokio::test]
async fn an_event_that_comes_in_pieces_is_one_message() {
    let (client, server) = tokio::io::duplex(1024);
    let (sender, receiver) = mpsc::channel::<Result<http_body::Frame<Bytes>, io::Error>>(4);
    let events = http_body_util::StreamBody::new(futures::stream::unfold(receiver, async |mut receiver| {
        receiver.recv().await.map(|frame| (frame, receiver))
    }));
    let events = BodyExt::boxed_unsync(events);
    let talking = tokio::spawn(async move { talk(server, events, "application/json").await.is_ok() });
    for piece in ["{\"a\"", ":1}\n{\"b\":2}", "\n"] {
        sender.send(Ok(http_body::Frame::data(Bytes::from(piece)))).await.unwrap();
    }
    let (mut reader, mut writer) = tokio::io::split(client);
    assert_eq!(frame(&mut reader).await, (TEXT, b"{\"a\":1}\n".to_vec()));
    assert_eq!(frame(&mut reader).await, (TEXT, b"{\"b\":2}\n".to_vec()));
    // A client has to mask what it says.
    writer.write_all(&[FIN | TEXT, 1, b'x']).await.unwrap();
    assert_eq!(frame(&mut reader).await, (CLOSE, PROTOCOL_ERROR.to_be_bytes().to_vec()));
    assert!(talking.await.unwrap());
}
