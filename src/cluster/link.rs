//! The way to the API server of a context: every call passes here. Refuses writes while the cluster is
//! read-only, asks with the newest credential, comes back when the server is busy, and notes when it does not
//! answer. `monitor` tells the user and brings the connection back.

use super::bounded::{Bounds, bounded};
use super::call_rules::Guard;
use super::credentials::{self, Line};
use super::kubeconfig::Target;
use super::streams;
use super::unreachable::{Fault, Problem};
use bytes::Bytes;
use futures::FutureExt as _;
use futures::future::BoxFuture;
use http::header::{AUTHORIZATION, RETRY_AFTER};
use http::{HeaderValue, Method, Request, Response, StatusCode};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Full};
use jiff::Timestamp;
use kube::client::Body;
use opdev_client::read_only::{REFUSAL, ReadOnly};
use opdev_event::{Trouble, TroubleKind, words};
use serde_json::json;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::sync::{Mutex, watch};
use tower::{BoxError, Service, ServiceExt as _};

/// How often a connection that closed without a word is tried again.
const TELLING: usize = 4;
/// How long an answer may take to begin; the API server itself gives up after as long.
const LONGEST: Duration = Duration::from_secs(60);
/// After this the user is told that a call waits.
const SLOW: Duration = Duration::from_secs(3);
/// How often a busy server is asked again.
const TRIES: u32 = 5;
/// The longest pause that a busy server may ask for within one call.
const LONGEST_PAUSE: Duration = Duration::from_secs(10);

/// The API server's answer.
pub(super) type Answer = Response<UnsyncBoxBody<Bytes, BoxError>>;

/// Marks a call that is handed on for a program of its own: its answer is the program's, also where the
/// server is busy.
#[derive(Clone, Copy, Debug)]
pub(super) struct Relayed;

/// A service for `kube::Client`. Clones share everything.
#[derive(Clone)]
pub(super) struct Link(Arc<Inner>);

struct Inner {
    read_only: ReadOnly,
    dial: Mutex<Dial>,
    trouble: watch::Sender<Option<Trouble>>,
    /// Calls that are slow, or that a busy server has sent away for a moment.
    waiting: AtomicUsize,
}

/// Returns true if the answer goes on as long as the server likes.
fn is_watch<B>(request: &Request<B>) -> bool {
    let query = request.uri().query().unwrap_or_default();
    query.split('&').any(|pair| matches!(pair, "watch=true" | "watch=1"))
        || request.uri().path().split('/').any(|part| part == "watch")
}

/// One call that waits. Trouble that is nothing but waiting ends with the last of them, also where it is
/// dropped.
struct Waits(Arc<Inner>);

impl Drop for Waits {
    fn drop(&mut self) {
        if self.0.waiting.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.0
                .trouble
                .send_if_modified(|known| known.take_if(|known| known.kind.still_answers()).is_some());
        }
    }
}

struct Dial {
    target: Target,
    line: Arc<Line>,
}

impl Link {
    /// Opens the way with a first credential.
    ///
    /// # Errors
    /// Where no credential is to be had.
    pub(super) async fn open(target: Target, read_only: ReadOnly) -> Result<Link, Problem> {
        let line = Arc::new(credentials::fresh(&target).await?);
        let dial = Mutex::new(Dial { target, line });
        Ok(Link(Arc::new(Inner {
            read_only,
            dial,
            trouble: watch::Sender::new(None),
            waiting: AtomicUsize::new(0),
        })))
    }

    /// The trouble that keeps the server from answering, as it changes.
    pub(super) fn trouble(&self) -> watch::Receiver<Option<Trouble>> {
        self.0.trouble.subscribe()
    }

    /// The target as it was read last.
    pub(super) async fn target(&self) -> Target {
        self.0.dial.lock().await.target.clone()
    }

    /// Goes on with what the kubeconfig says now; only ever to the same server.
    ///
    /// # Errors
    /// Where no credential is to be had.
    pub(super) async fn renew(&self, target: Target) -> Result<(), Problem> {
        let line = Arc::new(credentials::fresh(&target).await?);
        *self.0.dial.lock().await = Dial { target, line };
        Ok(())
    }

    /// Asks for something that only a known user may read, however the calls of others go.
    ///
    /// # Errors
    /// An explanation of why there is no answer.
    pub(super) async fn probe(&self) -> Result<(), Problem> {
        let mut asked = self.probe_once().await;
        // A server refuses a client's certificate only after its own half of the handshake: now and then one
        // sees just the closed connection, and asking again tells why.
        for _ in 0..TELLING {
            match &asked {
                Err((_, Cause::Untold)) => asked = self.probe_once().await,
                Ok(()) | Err((_, Cause::Told)) => break,
            }
        }
        asked.map_err(|(problem, _)| problem)
    }

    async fn probe_once(&self) -> Result<(), (Problem, Cause)> {
        let request = Request::get("/api").body(Body::empty());
        let request = request.map_err(|error| (self.plain(&error.to_string()), Cause::Told))?;
        let names = self.target().await.names;
        match self.clone().answer(request, 1).await {
            Ok(response) if response.status() == StatusCode::UNAUTHORIZED => {
                let credential = self.0.dial.lock().await.line.credential.clone();
                Err((names.refused(&credential), Cause::Told))
            }
            Ok(_) => Ok(()),
            Err(Failed::Explained(problem)) => Err((problem, Cause::Told)),
            Err(Failed::Unanswered(why, cause)) => Err((names.unanswered(&why), cause)),
        }
    }

    fn plain(&self, what: &str) -> Problem {
        Problem {
            fault: Fault::Unreachable,
            what: what.to_owned(),
            place: String::new(),
            hint: String::new(),
        }
    }

    async fn line(&self, used: Option<&Arc<Line>>) -> Result<Arc<Line>, Problem> {
        let mut dial = self.0.dial.lock().await;
        let refused = used.is_some_and(|used| Arc::ptr_eq(used, &dial.line)) && dial.line.may_be_renewed();
        let line = credentials::renewed(&dial.target, &dial.line, refused).await?;
        dial.line = Arc::clone(&line);
        Ok(line)
    }

    /// One call with all that belongs to it; at most `tries` times where the server is busy.
    async fn answer(self, request: Request<Body>, tries: u32) -> Result<Answer, Failed> {
        let (parts, body) = request.into_parts();
        let mut body = Some(body);
        let anybody = parts.uri.path() == "/version" || parts.uri.path() == "/readyz";
        let mut line = self.line(None).await.map_err(|problem| self.report(problem))?;
        let (mut asked, mut renewed) = (0, false);
        let mut waits = None;
        loop {
            asked += 1;
            let kept = body.as_ref().and_then(Body::try_clone);
            let Some(now) = body.take() else {
                return Err(Failed::Unanswered("the request cannot be sent twice".to_owned(), Cause::Told));
            };
            let mut request = Request::from_parts(parts.clone(), now);
            if let Some(header) = &line.header {
                request.headers_mut().insert(AUTHORIZATION, header.clone());
            }
            let what = format!("{} {}", parts.method, parts.uri.path());
            if let Some(why) = parts.extensions.get::<Guard>().and_then(|guard| guard.0.forbids_writes()) {
                return refusal(why).map_err(|error| Failed::Unanswered(error.to_string(), Cause::Told));
            }
            let response = self.send(&line, request, &what).await?;
            body = kept;
            match response.status() {
                StatusCode::UNAUTHORIZED => {
                    let credential = line.credential.clone();
                    if !renewed && body.is_some() {
                        renewed = true;
                        let newer = self.line(Some(&line)).await.map_err(|problem| self.report(problem))?;
                        if !Arc::ptr_eq(&newer, &line) {
                            line = newer;
                            continue;
                        }
                    }
                    let problem = self.target().await.names.refused(&credential);
                    self.report(problem);
                    return Ok(response);
                }
                StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE
                    if asked < tries && body.is_some() =>
                {
                    let pause = pause(&response, asked);
                    waits.get_or_insert_with(|| self.waits());
                    self.note(
                        TroubleKind::Busy,
                        format!("the API server is busy ({}): {what} is tried again", response.status()),
                        None,
                        Some(pause),
                    );
                    tokio::time::sleep(pause).await;
                }
                _ => {
                    if !anybody {
                        self.well();
                    }
                    return Ok(response);
                }
            }
        }
    }

    async fn send(&self, line: &Arc<Line>, request: Request<Body>, what: &str) -> Result<Answer, Failed> {
        // How long its streams are silent is the program's, too.
        let lasts = request.extensions().get::<Relayed>().is_some() || streams::asks_for(&request);
        let streams = lasts || is_watch(&request);
        let mut sending = if lasts {
            line.lasting.clone().oneshot(request).boxed()
        } else {
            let client = line.client.clone();
            async move {
                let answer = client.send(request).await.map_err(BoxError::from)?;
                Ok(answer.map(|body| body.map_err(BoxError::from).boxed_unsync()))
            }
            .boxed()
        };
        let sent = match tokio::time::timeout(SLOW, &mut sending).await {
            Ok(sent) => sent,
            Err(_) => {
                let why = format!("the API server has not answered {what} for {} s", SLOW.as_secs());
                let _waits = self.waits();
                self.note(TroubleKind::Slow, why, None, None);
                match tokio::time::timeout(LONGEST - SLOW, sending).await {
                    Ok(sent) => sent,
                    Err(_) => {
                        // The connection may be dead without a word: the next call takes a new one.
                        let mut dial = self.0.dial.lock().await;
                        if Arc::ptr_eq(&dial.line, line)
                            && let Ok(newer) = credentials::fresh(&dial.target).await
                        {
                            dial.line = Arc::new(newer);
                        }
                        drop(dial);
                        return Err(self
                            .unanswered(&format!("timed out after {} s", LONGEST.as_secs()), Cause::Told)
                            .await);
                    }
                }
            }
        };
        match sent {
            Ok(response) if streams => Ok(response),
            Ok(response) => Ok(bounded(response, Bounds::default())),
            Err(error) => Err(self.unanswered(&words::error(&*error), Cause::of(&*error)).await),
        }
    }

    async fn unanswered(&self, why: &str, cause: Cause) -> Failed {
        let problem = self.target().await.names.unanswered(why);
        self.report(problem);
        Failed::Unanswered(why.to_owned(), cause)
    }

    fn report(&self, problem: Problem) -> Failed {
        let kind = match problem.fault {
            Fault::Unreachable => TroubleKind::Unreachable,
            Fault::Untrusted => TroubleKind::Untrusted,
            Fault::Unauthorized | Fault::NoCredential => TroubleKind::Unauthorized,
        };
        self.note(kind, problem.what.clone(), Some(problem.hint.clone()), None);
        Failed::Explained(problem)
    }

    /// Trouble keeps its beginning while it stays of one kind.
    fn note(&self, kind: TroubleKind, why: String, hint: Option<String>, retry: Option<Duration>) {
        self.0.trouble.send_if_modified(|known| {
            if known.as_ref().is_some_and(|known| known.kind == kind) {
                return false;
            }
            // A call that waits says less than one that failed.
            if kind.still_answers() && known.as_ref().is_some_and(|known| !known.kind.still_answers()) {
                return false;
            }
            let since = known.as_ref().map_or_else(Timestamp::now, |known| known.since);
            *known = Some(Trouble { kind, since, why, hint, retry });
            true
        });
    }

    /// An answer came. Calls that wait go on waiting.
    fn well(&self) {
        self.0.trouble.send_if_modified(|known| known.take_if(|known| !known.kind.still_answers()).is_some());
    }

    fn waits(&self) -> Waits {
        self.0.waiting.fetch_add(1, Ordering::AcqRel);
        Waits(Arc::clone(&self.0))
    }
}

/// Why there is no answer.
enum Failed {
    Explained(Problem),
    Unanswered(String, Cause),
}

/// The cause of a connection that failed, if it said one.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Cause {
    Told,
    /// It was closed, and that is all.
    Untold,
}

impl Cause {
    /// Errors of the system and of TLS come as an error of input and output; where there is none of them, the
    /// transport has only seen a connection that was not there any more.
    fn of(error: &(dyn std::error::Error + 'static)) -> Cause {
        let mut next = Some(error);
        while let Some(error) = next {
            if error.is::<std::io::Error>() {
                return Cause::Told;
            }
            next = error.source();
        }
        Cause::Untold
    }
}

impl From<Failed> for BoxError {
    fn from(failed: Failed) -> BoxError {
        match failed {
            Failed::Explained(problem) => problem.what.into(),
            Failed::Unanswered(why, _) => why.into(),
        }
    }
}

fn pause(response: &Answer, asked: u32) -> Duration {
    let header =
        response.headers().get(RETRY_AFTER).and_then(|value| value.to_str().ok()?.trim().parse().ok());
    let pause = header.map_or_else(|| Duration::from_millis(100 << asked.min(6)), Duration::from_secs);
    pause.min(LONGEST_PAUSE)
}

impl Service<Request<Body>> for Link {
    type Response = Answer;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<Answer, BoxError>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let reads = [Method::GET, Method::HEAD, Method::OPTIONS].contains(request.method());
        if !reads && !is_dry_run(&request) && self.0.read_only.holds() {
            return std::future::ready(refusal(REFUSAL)).boxed();
        }
        let link = self.clone();
        // A program of its own decides itself whether it asks again.
        let tries = if request.extensions().get::<Relayed>().is_some() { 1 } else { TRIES };
        async move { link.answer(request, tries).await.map_err(BoxError::from) }.boxed()
    }
}

/// Returns true if a request changes nothing, for the API server is to try it only. Nothing but a server-side
/// apply counts: a server that knows no dry runs does not know that either.
fn is_dry_run(request: &Request<Body>) -> bool {
    let mut asked =
        request.uri().query().unwrap_or_default().split('&').filter_map(|pair| pair.split_once('='));
    let dry = asked.clone().filter(|(name, _)| *name == "dryRun").map(|(_, value)| value).collect::<Vec<_>>();
    let content = request.headers().get(http::header::CONTENT_TYPE);
    let applies = content.is_some_and(|kind| kind.as_bytes().starts_with(b"application/apply-patch+yaml"));
    request.method() == Method::PATCH
        && applies
        && dry == ["All"]
        && asked.any(|(name, _)| name == "fieldManager")
}

/// The answer to a write that is not sent.
pub(super) fn refusal(why: &str) -> Result<Answer, BoxError> {
    let status = json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "Forbidden", "code": 403,
        "message": why});
    let body = Full::new(serde_json::to_vec(&status)?.into());
    let mut response = Response::new(body.map_err(|never| match never {}).boxed_unsync());
    *response.status_mut() = StatusCode::FORBIDDEN;
    response.headers_mut().insert(http::header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    Ok(response)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_dry_run_of_an_apply_passes_for_a_read() {
        let is = |method: &str, uri: &str, content: &str| {
            let request = Request::builder().method(method).uri(uri);
            is_dry_run(&request.header("content-type", content).body(Body::empty()).unwrap())
        };
        let apply = "application/apply-patch+yaml";
        assert!(is("PATCH", "/api/v1/pods/a?fieldManager=helm&force=true&dryRun=All", apply));
        assert!(!is("PATCH", "/api/v1/pods/a?fieldManager=helm&force=true", apply));
        assert!(!is("PATCH", "/api/v1/pods/a?fieldManager=helm&dryRun=", apply));
        assert!(!is("PATCH", "/api/v1/pods/a?fieldManager=helm&dryRun=All&dryRun=None", apply));
        assert!(!is("PATCH", "/api/v1/pods/a?fieldManager=helm&dryRun=All", "application/merge-patch+json"));
        assert!(!is("PUT", "/api/v1/pods/a?fieldManager=helm&dryRun=All", "application/json"));
        assert!(!is("DELETE", "/api/v1/pods/a?fieldManager=helm&dryRun=All", apply));
    }
}
