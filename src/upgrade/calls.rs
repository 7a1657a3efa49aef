//! The writes of one client of a control plane, each with what was sent and what was answered. Reads and
//! watches go through as they are.

use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::{Method, Request, Response};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Full};
use kube::Client;
use kube::client::Body;
use opdev_client::{MERGE, STRATEGIC};
use opdev_facts::observed::ObservedCall;
use opdev_generate::rbac::observed::Rights;
use opdev_object::api_path::ApiPath;
use opdev_object::yaml;
use serde_json::Value;
use std::collections::HashMap;
use std::future::Future;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use tower::Service;

/// A write.
#[derive(Clone, Debug, Default)]
pub(super) struct Write {
    /// `PUT`, `PATCH`, `POST` or `DELETE`.
    pub(super) method: Method,
    /// The path, without its query.
    pub(super) path: String,
    pub(super) query: String,
    /// The content type of what was sent.
    pub(super) content: String,
    /// What was sent.
    pub(super) body: Value,
    /// The HTTP status.
    pub(super) status: u16,
    /// What was answered.
    pub(super) answer: Value,
    /// The object as it was stored, where the write was refused.
    pub(super) stored: Option<Value>,
}

impl Write {
    /// Returns true if nothing would have been stored.
    pub(super) fn is_dry_run(&self) -> bool {
        self.query.contains("dryRun=All")
    }

    /// Returns true if the API server said no for good: not that the object is gone, is there already or has
    /// changed meanwhile.
    pub(super) fn is_refused(&self) -> bool {
        self.status >= 400 && !matches!(self.status, 404 | 409 | 410 | 429)
    }

    /// The message of a refusal.
    pub(super) fn message(&self) -> &str {
        self.answer.get("message").and_then(Value::as_str).unwrap_or_default()
    }
}

/// The writes so far. Clones share them.
#[derive(Clone, Debug, Default)]
pub(super) struct Writes(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    writes: Mutex<Vec<Write>>,
    activity: Mutex<Activity>,
    rights: Mutex<Rights>,
}

/// What programs have asked so far.
#[derive(Debug, Default)]
struct Activity {
    /// How often each question was asked, and each write was refused.
    known: HashMap<String, u32>,
    /// All that is news: writes, and the rest once.
    news: u64,
    /// All calls.
    calls: u64,
}

/// A write that was refused so often is refused for good.
const REFUSED: u32 = 3;
/// Questions that are known at most.
const KNOWN: usize = 100_000;

impl Activity {
    fn note(&mut self, call: &ObservedCall) {
        self.calls += 1;
        let refused = call.writes() && call.status >= 400;
        let most = if refused { REFUSED } else { 1 };
        // A status whose times alone are new is none.
        let content = call.answered.as_ref().filter(|_| call.writes()).map(without_times);
        let content = content.unwrap_or_default();
        if self.known.len() > KNOWN {
            self.known.clear();
        }
        let asked = format!("{} {} {} {content}", call.method, call.path, call.status);
        tracing::trace!("asked: {asked}");
        let times = self.known.entry(asked).or_default();
        *times = times.saturating_add(1);
        // A program that asks the same again and again waits for something.
        if *times <= most {
            self.news += 1;
        }
    }
}

impl Writes {
    pub(super) fn add(&self, write: Write) {
        self.0.writes.lock().unwrap_or_else(PoisonError::into_inner).push(write);
    }

    /// The rights that were used since it was asked last.
    pub(super) fn take_rights(&self) -> Rights {
        std::mem::take(&mut *self.0.rights.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn used(&self, verb: &str, path: &str, status: u16) {
        let mut rights = self.0.rights.lock().unwrap_or_else(PoisonError::into_inner);
        rights.add_call(verb, path, status == 201);
    }

    /// All of them, and none are left.
    pub(super) fn take(&self) -> Vec<Write> {
        std::mem::take(&mut *self.0.writes.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// How many calls programs have made.
    pub(super) fn calls(&self) -> u64 {
        self.0.activity.lock().unwrap_or_else(PoisonError::into_inner).calls
    }

    /// It grows with all that programs do, not with what they ask again and again.
    pub(super) fn news(&self) -> u64 {
        self.0.activity.lock().unwrap_or_else(PoisonError::into_inner).news
    }

    /// Notes a call of a program. Elections and Kubernetes events say nothing of the objects.
    pub(super) fn observe(&self, call: ObservedCall) {
        if says_nothing(&call.path) {
            return;
        }
        self.0.activity.lock().unwrap_or_else(PoisonError::into_inner).note(&call);
        self.used(call.verb(), &call.path, call.status);
        if call.writes() && !call.path.contains("reviews") && !talks_to_pod(&call.path) {
            self.add(Write::observed(call));
        }
    }
}

/// The content of an object as a number: without its version, and without the digits of its status, which
/// are mostly times and ports.
fn without_times(object: &Value) -> u64 {
    let mut object = object.clone();
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        for field in ["resourceVersion", "managedFields", "generation"] {
            metadata.remove(field);
        }
    }
    if let Some(status) = object.get_mut("status") {
        let text = status.to_string();
        *status = Value::String(text.split(|letter: char| letter.is_ascii_digit()).collect());
    }
    let mut hasher = DefaultHasher::new();
    object.to_string().hash(&mut hasher);
    hasher.finish()
}

/// Returns true for elections and for Kubernetes events, of which each repetition is a write.
fn says_nothing(path: &str) -> bool {
    let groups: &[&str] = match ApiPath::of(path).resource {
        "events" => &["/api/v1/", "/apis/events.k8s.io/"],
        "leases" => &["/apis/coordination.k8s.io/"],
        _ => &[],
    };
    groups.iter().any(|group| path.starts_with(group))
}

/// Returns true for a call to what runs in a pod: it writes nothing, and pods are simulated here.
fn talks_to_pod(path: &str) -> bool {
    let mut parts = path.rsplit('/');
    let last = parts.next().unwrap_or_default();
    matches!(last, "exec" | "attach" | "portforward" | "proxy") && parts.nth(1) == Some("pods")
}

impl Write {
    fn observed(call: ObservedCall) -> Write {
        let body = call.sent.unwrap_or_default();
        let patches = |name: &str| body.to_string().contains(name);
        let content = match call.method.as_str() {
            "PATCH" if call.query.contains("force=") || body["apiVersion"].is_string() => APPLY,
            "PATCH" if body.is_array() => "application/json-patch+json",
            "PATCH" if patches("\"$patch\"") || patches("\"$setElementOrder") => STRATEGIC,
            "PATCH" => MERGE,
            _ => "application/json",
        };
        Write {
            method: call.method.parse().unwrap_or_default(),
            path: call.path,
            query: call.query,
            content: content.to_owned(),
            body,
            status: call.status,
            answer: call.answered.unwrap_or_default(),
            stored: None,
        }
    }
}

const APPLY: &str = "application/apply-patch+yaml";

/// A service for `kube::Client` whose writes are recorded.
#[derive(Clone)]
pub(super) struct Recorded {
    /// The API server, as the administrator asks it.
    pub(super) plane: Client,
    pub(super) writes: Writes,
}

type Answer = Response<UnsyncBoxBody<Bytes, tower::BoxError>>;

impl Service<Request<Body>> for Recorded {
    type Response = Answer;
    type Error = tower::BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<Answer, tower::BoxError>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), tower::BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let service = self.clone();
        Box::pin(async move { service.answer(request).await })
    }
}

impl Recorded {
    async fn answer(mut self, request: Request<Body>) -> Result<Answer, tower::BoxError> {
        let reads = [Method::GET, Method::HEAD, Method::OPTIONS].contains(request.method());
        if reads {
            let answer = self.plane.send(request).await?;
            return Ok(answer.map(|body| body.map_err(Into::into).boxed_unsync()));
        }
        let (head, body) = request.into_parts();
        let sent = body.collect().await?.to_bytes();
        let content = head.headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
        let content = content.unwrap_or_default().split(';').next().unwrap_or_default().to_owned();
        let mut write = Write {
            method: head.method.clone(),
            path: head.uri.path().to_owned(),
            query: head.uri.query().unwrap_or_default().to_owned(),
            content,
            body: parsed(&sent),
            ..Write::default()
        };
        let answer = self.plane.send(Request::from_parts(head, Body::from(sent.to_vec()))).await?;
        let (head, body) = answer.into_parts();
        let said = body.collect().await?.to_bytes();
        write.status = head.status.as_u16();
        write.answer = parsed(&said);
        if write.is_refused() && [Method::PUT, Method::PATCH].contains(&write.method) {
            write.stored = self.stored(&write.path).await;
        }
        // Reads are opdev's own way to run a chart, and none of the operator that users install.
        let verb = ApiPath::of(&write.path).verb(write.method.as_str(), None);
        self.writes.used(verb, &write.path, write.status);
        self.writes.add(write);
        Ok(Response::from_parts(head, Full::new(said).map_err(|never| match never {}).boxed_unsync()))
    }

    async fn stored(&mut self, path: &str) -> Option<Value> {
        let request = Request::get(path).body(Body::empty()).ok()?;
        let answer = self.plane.send(request).await.ok()?;
        let found = answer.status().is_success();
        let bytes = answer.into_body().collect().await.ok()?.to_bytes();
        found.then(|| parsed(&bytes))
    }
}

/// JSON, or the YAML that a server-side apply may be; null where it is neither.
fn parsed(bytes: &Bytes) -> Value {
    serde_json::from_slice(bytes).unwrap_or_else(|_| {
        let text = std::str::from_utf8(bytes).unwrap_or_default();
        yaml::from_str(text).unwrap_or(Value::Null)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_with_another_time_is_the_same() {
        let at = |version: &str, time: &str, ready: bool| {
            serde_json::json!({"metadata": {"name": "a", "resourceVersion": version}, "status": {"conditions": [
                {"type": "Ready", "status": ready, "lastTransitionTime": time, "message": format!("port {version}")}]}})
        };
        let first = without_times(&at("1", "2026-11-28T10:00:00Z", false));
        assert_eq!(first, without_times(&at("29", "2026-11-28T10:00:10Z", false)));
        assert_ne!(first, without_times(&at("1", "2026-11-28T10:00:00Z", true)));
        let spec = |image: &str| serde_json::json!({"spec": {"image": image}});
        assert_ne!(without_times(&spec("web:1")), without_times(&spec("web:2")));
    }

    #[test]
    fn an_event_that_is_told_again_is_no_news() {
        let writes = Writes::default();
        let call = |method: &str, path: &str, count: u32| {
            writes.observe(ObservedCall {
                at: "2026-11-28T10:00:00Z".parse().unwrap(),
                took_micros: 1,
                method: method.to_owned(),
                path: path.to_owned(),
                query: String::new(),
                mark: None,
                status: 200,
                sent: None,
                answered: Some(serde_json::json!({"count": count})),
                disturbed: false,
                warnings: Vec::new(),
            });
            writes.news()
        };
        assert_eq!(call("POST", "/api/v1/namespaces/a/events", 1), 0);
        assert_eq!(call("PATCH", "/api/v1/namespaces/a/events/web.18eca9", 2), 0);
        assert_eq!(call("PUT", "/apis/coordination.k8s.io/v1/namespaces/a/leases/lock", 3), 0);
        assert_eq!(call("PATCH", "/apis/x.io/v1/namespaces/events/events/a", 4), 1, "somebody's own kind");
        assert_eq!(call("PATCH", "/api/v1/namespaces/events/pods/a", 5), 2);
    }

    #[test]
    fn a_command_in_a_simulated_pod_is_no_write() {
        assert!(talks_to_pod("/api/v1/namespaces/a/pods/redis-0/exec"));
        assert!(!talks_to_pod("/api/v1/namespaces/a/pods/exec"), "a pod may have any name");
        assert!(!talks_to_pod("/api/v1/namespaces/a/pods/redis-0/eviction"));
    }
}
