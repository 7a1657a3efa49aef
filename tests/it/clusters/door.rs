//! An API server on a port of this machine, plain HTTP, over an embedded control plane in this process. It
//! notes every request, can be killed and started again on its port with its data, and answers as its faults
//! say.

use super::kubelet::Kubelet;
use bytes::Bytes;
use http::{Method, Request, Response, StatusCode};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto::Builder;
use opdev_cluster::Choice;
use opdev_controlplane::{ControlPlane, InProcess};
use serde_json::{Value, json};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tower::Service as _;

/// The effect of a fault on one request.
#[derive(Clone)]
pub(crate) enum Answer {
    /// This status code and reason, with a `Retry-After` in seconds.
    Refuse(u16, &'static str, Option<u32>),
    /// Nothing until the watch says true; then as usual.
    Hold(watch::Receiver<bool>),
    /// The connection is closed without a word.
    Drop,
}

/// Decides about a request; `None` lets it through.
type Fault = Box<dyn FnMut(&Method, &str) -> Option<Answer> + Send>;

#[derive(Default)]
struct Shared {
    log: Mutex<Vec<(Method, String)>>,
    fault: Mutex<Option<Fault>>,
    /// The only bearer token that is let in; without one everybody is.
    token: Mutex<Option<String>>,
    seen_headers: Mutex<Vec<http::HeaderMap>>,
    /// The paths of all requests, each with the form that was asked for.
    accepted: watch::Sender<Vec<(String, String)>>,
    kubelet: Mutex<Option<Kubelet>>,
}

/// The door. The plane behind it lives as long.
pub(crate) struct Door {
    pub(crate) plane: ControlPlane,
    address: SocketAddr,
    shared: Arc<Shared>,
    open: Mutex<CancellationToken>,
}

impl Door {
    pub(crate) async fn open() -> Door {
        let plane = ControlPlane::start().await.unwrap();
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let address = listener.local_addr().unwrap();
        let door = Door { plane, address, shared: Arc::default(), open: Mutex::default() };
        door.serve(listener);
        door
    }

    fn serve(&self, listener: TcpListener) {
        let token = CancellationToken::new();
        *self.open.lock().unwrap() = token.clone();
        let (service, shared) = (self.plane.service(), Arc::clone(&self.shared));
        tokio::spawn(async move {
            loop {
                let stream = tokio::select! {
                    () = token.cancelled() => return,
                    accepted = listener.accept() => accepted.unwrap().0,
                };
                let (service, shared) = (service.clone(), Arc::clone(&shared));
                let answer = service_fn(move |request| answer(service.clone(), Arc::clone(&shared), request));
                let connection = async move {
                    let _ = Builder::new(TokioExecutor::new())
                        .serve_connection(TokioIo::new(stream), answer)
                        .await;
                };
                tokio::spawn(token.clone().run_until_cancelled_owned(connection));
            }
        });
    }

    /// Closes the port and every connection, as a killed server does.
    pub(crate) fn kill(&self) {
        self.open.lock().unwrap().cancel();
    }

    /// Opens the same port again, with the same data.
    pub(crate) async fn restart(&self) {
        self.kill();
        let bind = async {
            loop {
                match TcpListener::bind(self.address).await {
                    Ok(listener) => return listener,
                    Err(_) => tokio::task::yield_now().await,
                }
            }
        };
        let listener = tokio::time::timeout(std::time::Duration::from_secs(30), bind).await.unwrap();
        self.serve(listener);
    }

    /// Another server takes the port, without any data, as one that keeps them in memory does when it is
    /// restarted.
    pub(crate) async fn restart_empty(&mut self) {
        self.kill();
        self.plane = ControlPlane::start().await.unwrap();
        self.restart().await;
    }

    /// Breaks requests from now on.
    pub(crate) fn fault(&self, fault: impl FnMut(&Method, &str) -> Option<Answer> + Send + 'static) {
        *self.shared.fault.lock().unwrap() = Some(Box::new(fault));
    }

    /// Breaks nothing any more.
    pub(crate) fn mend(&self) {
        *self.shared.fault.lock().unwrap() = None;
    }

    /// Pods have logs from now on.
    pub(crate) fn kubelet(&self) -> Kubelet {
        self.shared.kubelet.lock().unwrap().get_or_insert_default().clone()
    }

    /// Lets only this bearer token in.
    pub(crate) fn require(&self, token: &str) {
        *self.shared.token.lock().unwrap() = Some(token.to_owned());
    }

    /// Forgets the requests so far.
    pub(crate) fn forget(&self) {
        self.shared.log.lock().unwrap().clear();
    }

    /// The requests that were no reads.
    pub(crate) fn writes(&self) -> Vec<(Method, String)> {
        let reads = [Method::GET, Method::HEAD, Method::OPTIONS];
        self.shared
            .log
            .lock()
            .unwrap()
            .iter()
            .filter(|(method, _)| !reads.contains(method))
            .cloned()
            .collect()
    }

    /// How many requests there were.
    pub(crate) fn asked(&self) -> usize {
        self.shared.log.lock().unwrap().len()
    }

    /// A value that some request carried under this header.
    pub(crate) fn header(&self, name: &str) -> Vec<String> {
        let seen = self.shared.seen_headers.lock().unwrap();
        let found = seen.iter().flat_map(|headers| headers.get_all(name).iter());
        found.map(|value| value.to_str().unwrap().to_owned()).collect()
    }

    /// The paths of all requests so far, each with the form that was asked for, once one of them has this in
    /// its path.
    pub(crate) async fn until_accepted(&self, part: &str) -> Vec<(String, String)> {
        let mut accepted = self.shared.accepted.subscribe();
        let any = |all: &Vec<(String, String)>| all.iter().any(|(path, _)| path.contains(part));
        accepted.wait_for(any).await.unwrap().clone()
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// A kubeconfig with one context of this name, its cluster, and a user with these fields.
    pub(crate) fn kubeconfig(&self, folder: &Path, context: &str, user: &Value) -> PathBuf {
        write_kubeconfig(folder, context, &json!({"server": self.url()}), user)
    }

    /// The choice of that context.
    pub(crate) fn choice(&self, folder: &Path, context: &str, user: &Value) -> Choice {
        Choice { kubeconfig: Some(self.kubeconfig(folder, context, user)), ..Choice::default() }
    }
}

pub(crate) fn write_kubeconfig(folder: &Path, context: &str, cluster: &Value, user: &Value) -> PathBuf {
    let config = json!({
        "apiVersion": "v1", "kind": "Config", "current-context": context,
        "clusters": [{"name": context, "cluster": cluster}],
        "contexts": [{"name": context, "context": {"cluster": context, "user": "jane"}}],
        "users": [{"name": "jane", "user": user}],
    });
    let path = folder.join(format!("{context}.kubeconfig"));
    std::fs::write(&path, serde_json::to_vec(&config).unwrap()).unwrap();
    path
}

fn status(code: u16, reason: &str, after: Option<u32>) -> Response<opdev_controlplane::Body> {
    let body = json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code, "reason": reason,
        "message": format!("injected: {reason}")});
    let body = Full::new(Bytes::from(body.to_string()));
    let mut response = Response::new(body.boxed_unsync());
    *response.status_mut() = StatusCode::from_u16(code).unwrap();
    response.headers_mut().insert("content-type", "application/json".parse().unwrap());
    if let Some(after) = after {
        response.headers_mut().insert("retry-after", after.to_string().parse().unwrap());
    }
    response
}

async fn answer(
    mut service: InProcess,
    shared: Arc<Shared>,
    request: Request<Incoming>,
) -> std::io::Result<Response<opdev_controlplane::Body>> {
    let path = request.uri().path_and_query().unwrap().as_str().to_owned();
    let method = request.method().clone();
    shared.log.lock().unwrap().push((method.clone(), path.clone()));
    let accept = request.headers().get("accept").and_then(|value| value.to_str().ok()).unwrap_or_default();
    shared.accepted.send_modify(|all| all.push((path.clone(), accept.to_owned())));
    shared.seen_headers.lock().unwrap().push(request.headers().clone());
    let token = shared.token.lock().unwrap().clone();
    if let Some(token) = token {
        let given = request.headers().get("authorization").and_then(|value| value.to_str().ok());
        if given != Some(&format!("Bearer {token}")) && path != "/version" {
            return Ok(status(401, "Unauthorized", None));
        }
    }
    let fault = shared.fault.lock().unwrap().as_mut().and_then(|fault| fault(&method, &path));
    match fault {
        Some(Answer::Refuse(code, reason, after)) => return Ok(status(code, reason, after)),
        Some(Answer::Drop) => return Err(std::io::ErrorKind::ConnectionReset.into()),
        Some(Answer::Hold(mut until)) => {
            let _ = until.wait_for(|go| *go).await;
        }
        None => {}
    }
    let kubelet = shared.kubelet.lock().unwrap().clone();
    if let Some(log) = kubelet.and_then(|kubelet| kubelet.answer(request.uri())) {
        return Ok(log);
    }
    service.call(request).await.map_err(std::io::Error::other)
}
