//! Records what one reconcile does to the API server: every call with its verb, target, time and answer.
//! Never decides anything and never changes a request. `event/sink` is the way of all events to the bus.

use bytes::Bytes;
use http::{Request, StatusCode};
use http_body_util::BodyExt;
use opdev_event::Call;
use opdev_object::api_path::ApiPath;
use serde::Deserialize;
use std::future::Future;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

tokio::task_local! {
    static RECORDER: Arc<Recorder>;
}

/// Collects the calls of one reconcile.
#[derive(Debug)]
pub struct Recorder {
    start: Instant,
    seen: Mutex<RecordedCalls>,
}

#[derive(Debug, Default)]
struct RecordedCalls {
    calls: Vec<Call>,
    warnings: Vec<String>,
}

impl Default for Recorder {
    fn default() -> Self {
        Recorder { start: Instant::now(), seen: Mutex::default() }
    }
}

impl Recorder {
    /// Runs `work` so that every call made by this task goes to this recorder.
    pub async fn scope<F: Future>(self: Arc<Self>, work: F) -> F::Output {
        RECORDER.scope(self, work).await
    }

    /// The recorder of the current reconcile, to hand to another task or thread.
    pub fn current() -> Option<Arc<Recorder>> {
        RECORDER.try_with(Arc::clone).ok()
    }

    /// Since the reconcile began.
    pub fn elapsed(&self) -> Duration {
        self.start.elapsed()
    }

    /// The calls so far, in the order in which they were made.
    pub fn calls(&self) -> Vec<Call> {
        let mut calls = self.lock().calls.clone();
        calls.sort_by_key(|call| call.start);
        calls
    }

    /// Records a call that does not go through a tap: one that a cache answers, or one to somewhere else.
    pub fn note(&self, call: Call) {
        self.lock().calls.push(call);
    }

    /// The API server's warnings so far, each once.
    pub fn warnings(&self) -> Vec<String> {
        self.lock().warnings.clone()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, RecordedCalls> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn warn(&self, warnings: &[String]) {
        for text in warnings {
            let mut seen = self.lock();
            if !seen.warnings.contains(text) {
                seen.warnings.push(text.clone());
            }
        }
    }
}

/// The text of a `Warning: 299 - "text"` header.
fn warning_text(value: &http::HeaderValue) -> Option<String> {
    let value = value.to_str().ok()?;
    let quoted = value.split_once('"')?.1;
    Some(quoted.strip_suffix('"').unwrap_or(quoted).replace("\\\"", "\"").replace("\\\\", "\\"))
}

/// A client whose calls are recorded. A `kube::Client` runs its layers on a task of its own, where the
/// recorder of the calling task cannot be seen, so the recording sits in front of it.
#[derive(Clone)]
pub struct Tap {
    client: kube::Client,
}

/// A whole answer.
#[derive(Debug)]
pub struct Answer {
    /// HTTP status.
    pub status: StatusCode,
    /// The API server's warnings, in its order.
    pub warnings: Vec<String>,
    /// The body, read to its end.
    pub body: Bytes,
}

impl Tap {
    /// Records in front of `client`.
    pub fn new(client: kube::Client) -> Self {
        Tap { client }
    }

    /// The client itself, for streams, which belong to no reconcile.
    pub fn client(&self) -> &kube::Client {
        &self.client
    }

    /// Sends a request and reads the whole answer.
    pub async fn send(&self, request: Request<Vec<u8>>) -> Result<Answer, kube::Error> {
        let recorder = Recorder::current();
        let line = recorder.as_ref().map(|r| (request.method().clone(), request.uri().clone(), r.elapsed()));
        let began = Instant::now();
        let sent = self.client.send(request.map(kube::client::Body::from)).await;
        let took = began.elapsed();
        let answer = match sent {
            Ok(response) => {
                let warnings = response.headers().get_all(http::header::WARNING);
                let warnings: Vec<String> = warnings.iter().filter_map(warning_text).collect();
                if let Some(recorder) = &recorder {
                    recorder.warn(&warnings);
                }
                let status = response.status();
                let body = response.into_body().collect().await;
                body.map(|body| Answer { status, warnings, body: body.to_bytes() })
            }
            Err(error) => Err(error),
        };
        if let (Some(recorder), Some((method, uri, start))) = (recorder, line) {
            let target = ApiPath::of(uri.path());
            recorder.lock().calls.push(Call {
                verb: target.verb(method.as_str(), uri.query()).to_owned(),
                path: uri.path_and_query().map_or_else(String::new, ToString::to_string),
                target: target.text,
                start,
                took,
                status: answer.as_ref().map_or(0, |answer| answer.status.as_u16()),
                reason: reason(&answer),
                place: None,
            });
        }
        answer
    }
}

fn reason(answer: &Result<Answer, kube::Error>) -> Option<String> {
    #[derive(Deserialize)]
    struct Status {
        reason: Option<String>,
    }
    match answer {
        Ok(answer) if answer.status.is_client_error() || answer.status.is_server_error() => {
            let status = serde_json::from_slice::<Status>(&answer.body).ok();
            let named = status.and_then(|status| status.reason).filter(|reason| !reason.is_empty());
            named.or_else(|| answer.status.canonical_reason().map(str::to_owned))
        }
        Ok(_) => None,
        Err(error) => Some(error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::Response;
    use std::convert::Infallible;

    #[test]
    fn warnings_are_unquoted() {
        let warning = |text| warning_text(&http::HeaderValue::from_static(text));
        assert_eq!(warning(r#"299 - "unknown field \"spec.foo\"""#).unwrap(), "unknown field \"spec.foo\"");
        assert_eq!(warning("nonsense"), None);
    }

    fn refusing() -> kube::Client {
        let service = tower::service_fn(|_: Request<kube::client::Body>| async {
            let body = r#"{"kind":"Status","reason":"NotFound","code":404}"#;
            let mut response = Response::new(kube::client::Body::from(body.as_bytes().to_vec()));
            *response.status_mut() = StatusCode::NOT_FOUND;
            let warning = http::HeaderValue::from_static("299 - \"unknown field \\\"spec.foo\\\"\"");
            response.headers_mut().insert(http::header::WARNING, warning);
            Ok::<_, Infallible>(response)
        });
        kube::Client::new(service, "default")
    }

    #[tokio::test]
    async fn calls_go_to_the_recorder_of_their_own_reconcile() {
        let tap = Tap::new(refusing());
        let get = |path: &str| Request::get(path).body(Vec::new()).unwrap();
        let (one, two) = (Arc::new(Recorder::default()), Arc::new(Recorder::default()));
        let first = Arc::clone(&one).scope(tap.send(get("/api/v1/namespaces/default/secrets/a")));
        let second = Arc::clone(&two).scope(tap.send(get("/api/v1/namespaces/default/pods/b")));
        let (first, second) = tokio::join!(first, second);
        assert_eq!((first.unwrap().status, second.unwrap().status.as_u16()), (StatusCode::NOT_FOUND, 404));
        tap.send(get("/version")).await.unwrap();
        let targets = |r: &Recorder| r.calls().iter().map(|c| c.target.clone()).collect::<Vec<_>>();
        assert_eq!((targets(&one), targets(&two)), (vec!["secrets/a".to_owned()], vec!["pods/b".to_owned()]));
        let call = &one.calls()[0];
        assert_eq!((call.verb.as_str(), call.status, call.reason.as_deref()), ("get", 404, Some("NotFound")));
        assert_eq!(one.warnings(), ["unknown field \"spec.foo\""]);
    }
}
