//! A webhook server for tests: HTTPS on loopback with an authority of its own, answers as told, and remembers
//! what it was asked.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto::Builder;
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use serde_json::{Value, json};
use std::collections::HashMap;
use std::convert::Infallible;
use std::sync::{Arc, Mutex};
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tokio_rustls::TlsAcceptor;

/// The answer to a review.
pub(crate) type Answer = Arc<dyn Fn(&Value) -> (u16, Value) + Send + Sync>;

/// A running server; ends with the runtime of its test.
#[derive(Clone)]
pub(crate) struct Webhook {
    pub(crate) port: u16,
    /// Base64 of the authority's PEM.
    pub(crate) bundle: String,
    state: Arc<State>,
}

struct State {
    answers: Mutex<HashMap<String, Answer>>,
    asked: Mutex<Vec<(String, Value)>>,
    /// Requests to `/held` wait for a permit.
    gate: Semaphore,
    /// One permit for each request that waits there.
    waiting: Semaphore,
}

/// A leaf for these names, and the authority that signed it.
pub(crate) struct Identity {
    pub(crate) chain: Vec<CertificateDer<'static>>,
    pub(crate) key: PrivateKeyDer<'static>,
    pub(crate) authority: String,
    /// The leaf, PEM.
    pub(crate) certificate: String,
}

pub(crate) fn identity(names: &[&str]) -> Identity {
    let (root_key, key) = (KeyPair::generate().unwrap(), KeyPair::generate().unwrap());
    let mut root = CertificateParams::default();
    root.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let authority = root.self_signed(&root_key).unwrap().pem();
    let names: Vec<String> = names.iter().map(ToString::to_string).collect();
    let leaf = CertificateParams::new(names).unwrap().signed_by(&key, &Issuer::new(root, root_key)).unwrap();
    let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
    Identity { chain: vec![leaf.der().clone()], key, authority, certificate: leaf.pem() }
}

/// A leaf and its key, PEM, as a plane hands them out.
pub(crate) fn given(certificate: &str, key: &str, authority: &str) -> Identity {
    let chain = CertificateDer::pem_slice_iter(certificate.as_bytes()).map(Result::unwrap).collect();
    let key = PrivateKeyDer::from_pem_slice(key.as_bytes()).unwrap();
    Identity { chain, key, authority: authority.to_owned(), certificate: certificate.to_owned() }
}

impl Webhook {
    /// A server for these names.
    pub(crate) async fn start_for(names: &[&str]) -> Webhook {
        Webhook::start_as(identity(names)).await
    }

    /// A server with this certificate.
    pub(crate) async fn start_as(identity: Identity) -> Webhook {
        Webhook::start_on(TcpListener::bind("127.0.0.1:0").await.unwrap(), identity)
    }

    /// A server with this certificate, where somebody knows it will be.
    pub(crate) fn start_on(listener: TcpListener, identity: Identity) -> Webhook {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(identity.chain, identity.key)
            .unwrap();
        let acceptor = TlsAcceptor::from(Arc::new(config));
        let port = listener.local_addr().unwrap().port();
        let state = Arc::new(State {
            answers: Mutex::default(),
            asked: Mutex::default(),
            gate: Semaphore::new(0),
            waiting: Semaphore::new(0),
        });
        let shared = state.clone();
        tokio::spawn(async move {
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                let (acceptor, state) = (acceptor.clone(), shared.clone());
                tokio::spawn(async move {
                    let Ok(stream) = acceptor.accept(stream).await else { return };
                    let answer = service_fn(move |request| answer(state.clone(), request));
                    let server = Builder::new(TokioExecutor::new());
                    let _ = server.serve_connection(TokioIo::new(stream), answer).await;
                });
            }
        });
        Webhook { port, bundle: STANDARD.encode(identity.authority), state }
    }

    pub(crate) async fn start() -> Webhook {
        Webhook::start_for(&["127.0.0.1", "localhost"]).await
    }

    pub(crate) fn url(&self, path: &str) -> Value {
        json!({"url": format!("https://127.0.0.1:{}{path}", self.port), "caBundle": self.bundle})
    }

    /// Sets what a path answers.
    pub(crate) fn on(&self, path: &str, answer: impl Fn(&Value) -> (u16, Value) + Send + Sync + 'static) {
        self.state.answers.lock().unwrap().insert(path.to_owned(), Arc::new(answer));
    }

    /// A path that agrees.
    pub(crate) fn allow(&self, path: &str) {
        self.on(path, |review| (200, response(review, json!({"allowed": true}))));
    }

    /// A path that agrees and changes.
    pub(crate) fn patch(&self, path: &str, operations: Value) {
        self.on(path, move |review| {
            let patch = STANDARD.encode(operations.to_string());
            (200, response(review, json!({"allowed": true, "patchType": "JSONPatch", "patch": patch})))
        });
    }

    /// A path that refuses.
    pub(crate) fn deny(&self, path: &str, status: Value) {
        self.on(path, move |review| (200, response(review, json!({"allowed": false, "status": status}))));
    }

    /// The requests since the last call, with their paths.
    pub(crate) fn asked(&self) -> Vec<(String, Value)> {
        std::mem::take(&mut *self.state.asked.lock().unwrap())
    }

    /// The paths that were asked since the last time.
    pub(crate) fn paths(&self) -> Vec<String> {
        self.asked().into_iter().map(|(path, _)| path).collect()
    }

    /// Waits until one more request is held.
    pub(crate) async fn is_held(&self) {
        self.state.waiting.acquire().await.unwrap().forget();
    }

    /// Lets one held request go.
    pub(crate) fn release(&self) {
        self.state.gate.add_permits(1);
    }
}

/// A review's answer.
pub(crate) fn response(review: &Value, mut response: Value) -> Value {
    response["uid"] = review["request"]["uid"].clone();
    json!({"apiVersion": review["apiVersion"], "kind": review["kind"], "response": response})
}

async fn answer(state: Arc<State>, request: Request<Incoming>) -> Result<Response<Full<Bytes>>, Infallible> {
    let path = request.uri().path().to_owned();
    let body = request.into_body().collect().await.unwrap().to_bytes();
    let review: Value = serde_json::from_slice(&body).unwrap();
    state.asked.lock().unwrap().push((path.clone(), review["request"].clone()));
    if path == "/held" {
        state.waiting.add_permits(1);
        state.gate.acquire().await.unwrap().forget();
    }
    let found = state.answers.lock().unwrap().get(&path).cloned();
    let (code, body) = match found {
        Some(answer) => answer(&review),
        None => (404, json!("404 page not found")),
    };
    let text = if let Value::String(text) = &body { text.clone() } else { body.to_string() };
    let response = Response::builder().status(code).header("content-type", "application/json");
    Ok(response.body(Full::from(text)).unwrap())
}
