//! Answers a request of an observed client: copies bodies as they pass, carries out what the observer asks for, and
//! lets events of a watch through one by one where they are held. Never changes what is asked or answered otherwise.

use super::front::Front;
use super::observer::{
    Asked, COPIED, Client, Copied, Delivery, Exchange, Observation, Observer, Passage, Reset, Treatment,
};
use crate::body::{Body, InParts, full, stream};
use crate::error::Status;
use crate::protobuf;
use bytes::Bytes;
use futures::StreamExt;
use http::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, RETRY_AFTER, USER_AGENT};
use http::{Request, Response};
use http_body::{Body as _, Frame, SizeHint};
use http_body_util::{BodyExt, BodyStream, Collected};
use jiff::Timestamp;
use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Instant;
use tokio::sync::watch;

const MARK: HeaderName = HeaderName::from_static("x-opdev-reconcile");

/// The connection is to end without an answer, because the observer wants it so.
#[derive(Debug)]
pub(super) struct Disconnected;

impl std::fmt::Display for Disconnected {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("the connection was ended on request")
    }
}

impl std::error::Error for Disconnected {}

static NUMBER: AtomicU64 = AtomicU64::new(1);

/// Answers one request of an observed client.
pub(super) async fn answer<B>(
    front: &Front,
    client: &Client,
    mut request: Request<B>,
) -> Result<Response<Body>, Disconnected>
where
    B: http_body::Body<Data = Bytes> + Unpin + Send,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
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
    if !treatment.delay.is_zero() {
        tokio::time::sleep(treatment.delay).await;
    }
    let sent = Arc::new(Mutex::new(Copy::default()));
    let content_type = plain_type(request.headers());
    let request = request.map(|body| Tee { body, copy: Arc::clone(&sent) });
    let answered = |status: u16, answer: Copied, disturbed: bool| {
        let request = sent.lock().unwrap_or_else(PoisonError::into_inner).taken(content_type.clone());
        client.observer.seen(Observation::Answered(Exchange {
            asked: Arc::clone(&asked),
            request,
            status,
            answer,
            took: began.elapsed(),
            disturbed,
        }));
    };
    if treatment.reset == Some(Reset::Before) {
        answered(0, Copied::default(), true);
        return Err(Disconnected);
    }
    if let Some(refusal) = &treatment.refusal {
        // What was to be written is part of what was disturbed; `Tee` keeps what is kept of it.
        let mut body = request.into_body();
        while let Some(Ok(_)) = body.frame().await {}
        let mut response = crate::answer::status(&refusal.status());
        if let Some(seconds) = refusal.retry_after {
            response.headers_mut().insert(RETRY_AFTER, HeaderValue::from(seconds));
        }
        let (response, copied) = whole(response).await;
        answered(response.status().as_u16(), copied, true);
        return Ok(response);
    }
    let response = front.answer(&client.user, request).await;
    let disturbed = !treatment.delay.is_zero();
    if treatment.reset == Some(Reset::After) {
        answered(0, Copied::default(), true);
        return Err(Disconnected);
    }
    if response.body().size_hint().exact().is_some() {
        let (response, copied) = whole(response).await;
        answered(response.status().as_u16(), copied, disturbed);
        return Ok(response);
    }
    answered(response.status().as_u16(), Copied::default(), disturbed);
    // Nothing is copied of a list in parts, which is long, and it has no events.
    if response.extensions().get::<InParts>().is_some() {
        return Ok(response);
    }
    // Beside it only a watch has an answer without a known end, in whatever words it was asked for.
    Ok(watched(response, &asked, client, treatment))
}

fn text(headers: &HeaderMap, name: &HeaderName) -> String {
    headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default().to_owned()
}

fn plain_type(headers: &HeaderMap) -> String {
    text(headers, &CONTENT_TYPE).split(';').next().unwrap_or_default().trim().to_owned()
}

/// A body that is there as a whole, and its copy.
async fn whole(response: Response<Body>) -> (Response<Body>, Copied) {
    let (parts, body) = response.into_parts();
    let bytes = body.collect().await.map(Collected::to_bytes).unwrap_or_default();
    let copied = copied(&bytes, plain_type(&parts.headers));
    (Response::from_parts(parts, full(bytes)), copied)
}

fn copied(bytes: &Bytes, content_type: String) -> Copied {
    let kept = if bytes.len() <= COPIED { bytes.clone() } else { Bytes::new() };
    Copied { bytes: kept, size: bytes.len() as u64, content_type }
}

/// What has passed of a request's body.
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
struct Tee<B> {
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
struct Watched {
    body: BodyStream<Body>,
    asked: Arc<Asked>,
    observer: Arc<dyn Observer>,
    content_type: String,
    gate: Option<watch::Receiver<Passage>>,
    /// Events that came and were not let through yet.
    waiting: VecDeque<Bytes>,
    /// How many were let through since the gate was shut.
    passed: u64,
    over: bool,
}

fn watched(
    response: Response<Body>,
    asked: &Arc<Asked>,
    client: &Client,
    treatment: Treatment,
) -> Response<Body> {
    let (parts, body) = response.into_parts();
    let content_type = text(&parts.headers, &CONTENT_TYPE);
    let events = Watched {
        body: BodyStream::new(body),
        asked: Arc::clone(asked),
        observer: Arc::clone(&client.observer),
        content_type,
        gate: treatment.gate,
        waiting: VecDeque::new(),
        passed: 0,
        over: false,
    };
    let chunks = futures::stream::unfold(events, |mut events| async move {
        let chunk = events.next().await?;
        Some((chunk, events))
    });
    Response::from_parts(parts, stream(chunks))
}

impl Drop for Watched {
    fn drop(&mut self) {
        self.observer.seen(Observation::WatchEnded(Arc::clone(&self.asked)));
    }
}

impl Watched {
    /// The next chunk for the client; `None` when the watch is over.
    async fn next(&mut self) -> Option<Bytes> {
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
                        return Some(self.out(held.concat().into()));
                    }
                }
                Passage::Held(most) => {
                    if self.passed < most
                        && let Some(event) = self.waiting.pop_front()
                    {
                        self.passed += 1;
                        return Some(self.out(event));
                    }
                }
                Passage::Cut => return None,
                Passage::Expired => {
                    self.over = true;
                    return self.expired();
                }
            }
            let Some(gate) = &mut self.gate else {
                let chunk = self.body.next().await?;
                if let Some(data) = data(chunk) {
                    return Some(self.out(data));
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
                        Some(chunk) => {
                            let pieces = data(chunk).map(|data| Copied::pieces(&data, &self.content_type));
                            self.waiting.extend(pieces.unwrap_or_default());
                        }
                        None => return None,
                    }
                }
            }
        }
    }

    fn out(&self, chunk: Bytes) -> Bytes {
        let content_type = self.content_type.clone();
        self.observer.seen(Observation::Delivered(Delivery {
            asked: Arc::clone(&self.asked),
            at: Timestamp::now(),
            chunk: copied(&chunk, content_type),
        }));
        chunk
    }

    fn expired(&self) -> Option<Bytes> {
        let status = Status::expired("too old resource version: ended on request").to_value();
        if self.content_type.starts_with("application/vnd.kubernetes.protobuf") {
            return protobuf::frame("ERROR", &status).ok().map(Bytes::from);
        }
        Some(format!("{{\"type\":\"ERROR\",\"object\":{status}}}\n").into())
    }
}

fn data(frame: Result<Frame<Bytes>, std::convert::Infallible>) -> Option<Bytes> {
    frame.ok().and_then(|frame| frame.into_data().ok())
}
