//! Answers a request of an observed client: copies bodies as they pass, carries out what the observer asks
//! for, and lets events of a watch through one by one where its gate is closed. Never changes what is asked
//! or answered otherwise.

use super::observer::{
    Asked, COPIED, Client, Copied, Delivery, Exchange, Leaving, Observation, Observer, Passage, Reset,
    Treatment,
};
use bytes::{Bytes, BytesMut};
use futures::StreamExt;
use http::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, RETRY_AFTER, USER_AGENT, WARNING};
use http::{Request, Response, StatusCode, Uri};
use http_body::{Body as _, Frame, SizeHint};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, BodyStream, Full, StreamBody};
use jiff::Timestamp;
use opdev_apimachinery::body::{Body, InParts};
use opdev_apimachinery::error::Status;
use opdev_apimachinery::protobuf;
use opdev_handlers::path::Query;
use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Instant;
use tokio::sync::watch;

/// So many warnings of an answer are told.
const WARNINGS: usize = 16;
const MARK: HeaderName = HeaderName::from_static("x-opdev-reconcile");

/// The connection is to end without an answer, because the observer wants it so.
#[derive(Debug)]
pub struct Disconnected;

impl std::fmt::Display for Disconnected {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("the connection was ended on request")
    }
}

impl std::error::Error for Disconnected {}

static NUMBER: AtomicU64 = AtomicU64::new(1);

/// The answer to a request, whose body may break off with `E`.
pub(super) type Answered<E> = Response<UnsyncBoxBody<Bytes, E>>;

/// Answers one request of an observed client, as `upstream` answers it.
pub(super) async fn answer<B, E, F>(
    upstream: impl FnOnce(Request<Tee<B>>) -> F,
    client: &Client,
    mut request: Request<B>,
) -> Result<Answered<E>, Disconnected>
where
    B: http_body::Body<Data = Bytes> + Unpin + Send,
    E: Send + 'static,
    F: Future<Output = Answered<E>>,
{
    let began = Instant::now();
    let mark = request.headers_mut().remove(MARK);
    let asked = Arc::new(Asked {
        number: NUMBER.fetch_add(1, Ordering::Relaxed),
        at: Timestamp::now(),
        method: request.method().clone(),
        path: request.uri().path().to_owned(),
        query: request.uri().query().unwrap_or_default().to_owned(),
        mark: mark.as_ref().and_then(|mark| mark.to_str().ok()).map(str::to_owned),
        user_agent: text(request.headers(), &USER_AGENT),
        user: client.user.name.clone(),
    });
    let treatment = client.observer.treatment(&asked);
    if let Some(uri) = treatment.query.as_deref().and_then(|query| with_query(request.uri(), query)) {
        *request.uri_mut() = uri;
    }
    if !treatment.delay.is_zero() {
        tokio::time::sleep(treatment.delay).await;
    }
    let sent = Arc::new(Mutex::new(Copy::default()));
    let content_type = plain_type(request.headers());
    let request = request.map(|body| Tee { body, copy: Arc::clone(&sent) });
    let answered = |status: u16, answer: Copied, warnings: Vec<String>, disturbed: bool| {
        let request = sent.lock().unwrap_or_else(PoisonError::into_inner).taken(content_type.clone());
        client.observer.seen(Observation::Answered(Exchange {
            asked: Arc::clone(&asked),
            request,
            status,
            answer,
            took: began.elapsed(),
            disturbed,
            warnings,
        }));
    };
    if treatment.reset == Some(Reset::Before) {
        answered(0, Copied::default(), Vec::new(), true);
        return Err(Disconnected);
    }
    if let Some(refusal) = &treatment.refusal {
        // The body of a disturbed request is read too; `Tee` keeps the part of it that is kept.
        let mut body = request.into_body();
        while let Some(Ok(_)) = body.frame().await {}
        let mut response = opdev_handlers::answer::status(&refusal.status());
        if let Some(seconds) = refusal.retry_after {
            response.headers_mut().insert(RETRY_AFTER, HeaderValue::from(seconds));
        }
        let (response, copied) = passed(widened(response), false).await;
        answered(response.status().as_u16(), copied, Vec::new(), true);
        return Ok(response);
    }
    let response = upstream(request).await;
    let disturbed = !treatment.delay.is_zero();
    let warnings = warnings(response.headers());
    if treatment.reset == Some(Reset::After) {
        answered(0, Copied::default(), Vec::new(), true);
        return Err(Disconnected);
    }
    if is_watch(&asked, &response) {
        answered(response.status().as_u16(), Copied::default(), warnings, disturbed);
        return Ok(watched(response, &asked, client, treatment));
    }
    // Nothing is copied of a list in parts, which is long, nor of what goes on: a log, and a connection of
    // its own.
    let goes_on = asked.path.ends_with("/log")
        || asked.path.split('/').any(|part| part == "proxy")
        || response.status() == StatusCode::SWITCHING_PROTOCOLS
        || response.extensions().get::<InParts>().is_some();
    let (response, copied) = passed(response, goes_on).await;
    answered(response.status().as_u16(), copied, warnings, disturbed);
    match client.observer.leaving(&asked) {
        Leaving::Now => Ok(response),
        Leaving::Never => Err(Disconnected),
        Leaving::Once(mut leaves) => {
            let _ = leaves.wait_for(|leaves| *leaves).await;
            Ok(response)
        }
    }
}

/// Another query for the same path.
fn with_query(uri: &Uri, query: &str) -> Option<Uri> {
    let mut parts = uri.clone().into_parts();
    parts.path_and_query = Some(format!("{}?{query}", uri.path()).parse().ok()?);
    Uri::from_parts(parts).ok()
}

/// Returns true if events follow: then the answer has no known end.
fn is_watch<E>(asked: &Asked, response: &Answered<E>) -> bool {
    let asked_for = Query::parse(&asked.query).flag("watch") == Some(true) || asked.path.contains("/watch/");
    asked_for && response.status() == StatusCode::OK && response.body().size_hint().exact().is_none()
}

/// An answer of the plane's own, which never breaks off.
pub(super) fn widened<E: 'static>(response: Response<Body>) -> Answered<E> {
    response.map(|body| body.map_err(|never| match never {}).boxed_unsync())
}

fn text(headers: &HeaderMap, name: &HeaderName) -> String {
    headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default().to_owned()
}

/// The texts of `Warning` headers, which stand in quotes: `299 - "v1 Endpoints is deprecated"`.
fn warnings(headers: &HeaderMap) -> Vec<String> {
    let texts =
        headers.get_all(WARNING).iter().filter_map(|value| std::str::from_utf8(value.as_bytes()).ok());
    let quoted = texts.filter_map(|text| text.split_once('"')?.1.rsplit_once('"'));
    quoted.map(|(text, _)| text.replace("\\\"", "\"").replace("\\\\", "\\")).take(WARNINGS).collect()
}

fn plain_type(headers: &HeaderMap) -> String {
    text(headers, &CONTENT_TYPE).split(';').next().unwrap_or_default().trim().to_owned()
}

/// The answer, and a copy of its body where that is short. Of a longer one only as much is read ahead as a
/// copy would hold; of one that goes on, nothing.
async fn passed<E: Send + 'static>(response: Answered<E>, goes_on: bool) -> (Answered<E>, Copied) {
    let content_type = plain_type(response.headers());
    let size = response.body().size_hint().exact();
    if goes_on || size.is_some_and(|size| size > COPIED as u64) {
        let size = size.unwrap_or_default();
        return (response, Copied { bytes: Bytes::new(), size, content_type });
    }
    let (parts, mut body) = response.into_parts();
    let mut read = BytesMut::new();
    let rest = loop {
        match body.frame().await {
            None => break None,
            Some(Ok(frame)) => match frame.into_data() {
                Ok(data) => {
                    read.extend_from_slice(&data);
                    if read.len() > COPIED {
                        break Some(None);
                    }
                }
                // Trailers: whatever is read goes first.
                Err(trailers) => break Some(Some(Ok(trailers))),
            },
            Some(Err(error)) => break Some(Some(Err(error))),
        }
    };
    let read = read.freeze();
    let copied = copied(&read, content_type);
    let body = match rest {
        None => Full::new(read).map_err(|never| match never {}).boxed_unsync(),
        Some(next) => {
            let first = futures::stream::iter([Some(Ok(Frame::data(read))), next].into_iter().flatten());
            BodyExt::boxed_unsync(StreamBody::new(first.chain(BodyStream::new(body))))
        }
    };
    (Response::from_parts(parts, body), copied)
}

fn copied(bytes: &Bytes, content_type: String) -> Copied {
    let kept = if bytes.len() <= COPIED { bytes.clone() } else { Bytes::new() };
    Copied { bytes: kept, size: bytes.len() as u64, content_type }
}

/// The part of a request's body that has passed.
#[derive(Default)]
struct Copy {
    frames: Vec<Bytes>,
    size: usize,
}

impl Copy {
    fn taken(&mut self, content_type: String) -> Copied {
        let frames = std::mem::take(&mut self.frames);
        Copied { bytes: frames.concat().into(), size: self.size as u64, content_type }
    }
}

/// A body whose frames are noted as they pass.
pub(super) struct Tee<B> {
    body: B,
    copy: Arc<Mutex<Copy>>,
}

impl<B: http_body::Body<Data = Bytes> + Unpin> http_body::Body for Tee<B> {
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        let frame = Pin::new(&mut self.body).poll_frame(context);
        if let Poll::Ready(Some(Ok(frame))) = &frame
            && let Some(data) = frame.data_ref()
        {
            let mut copy = self.copy.lock().unwrap_or_else(PoisonError::into_inner);
            copy.size += data.len();
            if copy.size <= COPIED {
                copy.frames.push(data.clone());
            } else {
                copy.frames.clear();
            }
        }
        frame
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// The events of a watch on their way to the client.
struct Watched<E> {
    body: BodyStream<UnsyncBoxBody<Bytes, E>>,
    asked: Arc<Asked>,
    observer: Arc<dyn Observer>,
    content_type: String,
    gate: Option<watch::Receiver<Passage>>,
    /// Events that came and were not let through yet.
    waiting: VecDeque<Bytes>,
    /// The number of events that were let through since the gate was shut.
    passed: u64,
    over: bool,
    /// The beginning of an event that is not complete yet; `None` once one was too long to be copied.
    begun: Option<BytesMut>,
}

/// The longest event that is put together for a copy, in bytes.
const LONGEST_EVENT: usize = 4 * 1024 * 1024;

fn watched<E: Send + 'static>(
    response: Answered<E>,
    asked: &Arc<Asked>,
    client: &Client,
    treatment: Treatment,
) -> Answered<E> {
    let (parts, body) = response.into_parts();
    let content_type = text(&parts.headers, &CONTENT_TYPE);
    let passed = match treatment.gate.as_ref().map(|gate| *gate.borrow()) {
        Some(Passage::Held(most)) => most,
        Some(Passage::Open | Passage::Cut | Passage::Expired) | None => 0,
    };
    let events = Watched {
        body: BodyStream::new(body),
        asked: Arc::clone(asked),
        observer: Arc::clone(&client.observer),
        content_type,
        gate: treatment.gate,
        waiting: VecDeque::new(),
        // An event that the gate let through for another watch is not let through for this one.
        passed,
        over: false,
        begun: Some(BytesMut::new()),
    };
    let chunks = futures::stream::unfold(events, |mut events| async move {
        let chunk = events.next().await?;
        Some((chunk.map(Frame::data), events))
    });
    Response::from_parts(parts, BodyExt::boxed_unsync(StreamBody::new(chunks)))
}

impl<E> Drop for Watched<E> {
    fn drop(&mut self) {
        self.observer.seen(Observation::WatchEnded(Arc::clone(&self.asked)));
    }
}

impl<E> Watched<E> {
    /// The next chunk for the client; `None` when the watch is over, an error where it breaks off.
    async fn next(&mut self) -> Option<Result<Bytes, E>> {
        if self.over {
            return None;
        }
        loop {
            let passage = self.gate.as_ref().map(|gate| *gate.borrow()).unwrap_or_default();
            match passage {
                Passage::Open => {
                    self.passed = 0;
                    if !self.waiting.is_empty() {
                        let held: Vec<Bytes> = self.waiting.drain(..).collect();
                        return Some(Ok(self.out(held.concat().into())));
                    }
                }
                Passage::Held(most) => {
                    if self.passed < most
                        && let Some(event) = self.waiting.pop_front()
                    {
                        self.passed += 1;
                        return Some(Ok(self.out(event)));
                    }
                }
                Passage::Cut => return None,
                Passage::Expired => {
                    self.over = true;
                    return self.expired().map(Ok);
                }
            }
            let Some(gate) = &mut self.gate else {
                match self.body.next().await? {
                    Ok(frame) => {
                        if let Ok(data) = frame.into_data() {
                            return Some(Ok(self.out(data)));
                        }
                    }
                    Err(error) => return Some(Err(error)),
                }
                continue;
            };
            tokio::select! {
                changed = gate.changed() => {
                    if changed.is_err() {
                        // Nobody holds the gate any more.
                        self.gate = None;
                    }
                }
                chunk = self.body.next() => {
                    match chunk {
                        Some(Ok(frame)) => {
                            let data = frame.into_data().ok();
                            let pieces = data.map(|data| Copied::pieces(&data, &self.content_type));
                            self.waiting.extend(pieces.unwrap_or_default());
                        }
                        Some(Err(error)) => return Some(Err(error)),
                        None => return None,
                    }
                }
            }
        }
    }

    fn out(&mut self, chunk: Bytes) -> Bytes {
        let events = self.whole(&chunk);
        if !events.is_empty() {
            self.observer.seen(Observation::Delivered(Delivery {
                asked: Arc::clone(&self.asked),
                at: Timestamp::now(),
                chunk: copied(&events, self.content_type.clone()),
            }));
        }
        chunk
    }

    /// The events that are whole with this chunk: what comes from another server is cut anywhere.
    fn whole(&mut self, chunk: &Bytes) -> Bytes {
        let content_type = &self.content_type;
        let Some(begun) = &mut self.begun else { return Bytes::new() };
        if begun.is_empty() && Copied::end_of_events(chunk, content_type) == chunk.len() {
            return chunk.clone();
        }
        begun.extend_from_slice(chunk);
        let events = begun.split_to(Copied::end_of_events(begun, content_type)).freeze();
        if begun.len() > LONGEST_EVENT {
            self.begun = None;
        }
        events
    }

    fn expired(&self) -> Option<Bytes> {
        let status = Status::expired("too old resource version: ended on request").to_value();
        if self.content_type.starts_with("application/vnd.kubernetes.protobuf") {
            return protobuf::frame("ERROR", &status).ok().map(Bytes::from);
        }
        Some(format!("{{\"type\":\"ERROR\",\"object\":{status}}}\n").into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn warnings_are_read_as_they_were_meant() {
        let mut headers = HeaderMap::new();
        for text in
            ["299 - \"v1 Endpoints is deprecated\"", "299 - \"unknown field \\\"spec.a\\\\b\\\"\"", "299 -"]
        {
            headers.append(WARNING, HeaderValue::from_static(text));
        }
        assert_eq!(warnings(&headers), ["v1 Endpoints is deprecated", "unknown field \"spec.a\\b\""]);
    }
}
