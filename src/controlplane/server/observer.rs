//! Observes one client: each of its requests with its answer, each event that a watch delivers, and faults on
//! request. A client is observed by the token that was made for it; for all others this costs nothing. Read
//! `observed` for how copies are made.

use bytes::Bytes;
use http::Method;
use jiff::Timestamp;
use opdev_apimachinery::error::Status;
use opdev_apimachinery::identity::User;
use opdev_apimachinery::protobuf;
use serde_json::Value;
use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;
use tokio::sync::watch;

/// Bytes of a body that are copied at most; of a larger one nothing is.
pub(super) const COPIED: usize = 256 * 1024;

/// Sees what one client does. Its methods are called on the way of a request, so they must not wait.
pub trait Observer: Send + Sync + 'static {
    /// The disturbance of a request, before it is handled.
    fn treatment(&self, _asked: &Asked) -> Treatment {
        Treatment::default()
    }

    /// Something has happened. The answer to a request is on its way only after this has returned, so
    /// whatever the client does next comes later.
    fn seen(&self, observation: Observation);

    /// When the answer to a request leaves, which the observer has just seen.
    fn leaving(&self, _asked: &Asked) -> Leaving {
        Leaving::Now
    }
}

/// When an answer leaves.
#[derive(Clone, Debug, Default)]
pub enum Leaving {
    /// At once.
    #[default]
    Now,
    /// Once this says so, or nobody holds the other end any more.
    Once(watch::Receiver<bool>),
    /// Never: the connection ends. What was asked for is done.
    Never,
}

/// A request, as far as its head goes.
#[derive(Clone, Debug)]
pub struct Asked {
    /// Counted from 1 over all observed requests of the plane.
    pub number: u64,
    /// When it came.
    pub at: Timestamp,
    /// The HTTP method.
    pub method: Method,
    /// The path.
    pub path: String,
    /// The rest of it, without the question mark.
    pub query: String,
    /// The client's `X-Opdev-Reconcile` header. Nobody behind the door sees that header.
    pub mark: Option<String>,
    /// The client's `User-Agent`.
    pub user_agent: String,
    /// The user that it counts for.
    pub user: String,
}

/// An intended disturbance of a request.
#[derive(Clone, Debug, Default)]
pub struct Treatment {
    /// The delay before it is handled.
    pub delay: Duration,
    /// The answer in place of the server's.
    pub refusal: Option<Refusal>,
    /// The connection ends without an answer.
    pub reset: Option<Reset>,
    /// The query in place of its own, such as one for a list of an earlier revision.
    pub query: Option<String>,
    /// The gate of a watch: it says whether events pass.
    pub gate: Option<watch::Receiver<Passage>>,
}

/// An answer in place of the real one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// HTTP status.
    pub code: u16,
    /// The reason that the `Status` gives, such as `Conflict`.
    pub reason: &'static str,
    /// The message in it.
    pub message: String,
    /// Seconds in `Retry-After`.
    pub retry_after: Option<u32>,
}

/// When a connection ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reset {
    /// Before the request is handled.
    Before,
    /// Once it is handled: what it asked for is done.
    After,
}

/// The passage of events of a watch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Passage {
    /// All of them.
    #[default]
    Open,
    /// Only so many of those that came since it was shut.
    Held(u64),
    /// The watch ends.
    Cut,
    /// The watch ends with 410, so that the client has to list again.
    Expired,
}

/// A request or a part of an answer that was seen.
#[derive(Clone, Debug)]
pub enum Observation {
    /// A request was answered; of a watch: it began.
    Answered(Exchange),
    /// A watch delivered events.
    Delivered(Delivery),
    /// A watch is over.
    WatchEnded(Arc<Asked>),
}

/// A request with its answer.
#[derive(Clone, Debug)]
pub struct Exchange {
    /// The request.
    pub asked: Arc<Asked>,
    /// Its body.
    pub request: Copied,
    /// HTTP status of the answer; 0 where there was none.
    pub status: u16,
    /// The body of the answer; none of a watch, nor of a list that is sent in parts.
    pub answer: Copied,
    /// From the request's head to the answer; of a watch and of a list in parts, to its head.
    pub took: Duration,
    /// True if a treatment made it what it is.
    pub disturbed: bool,
    /// The texts of its `Warning` headers.
    pub warnings: Vec<String>,
}

/// Events of a watch.
#[derive(Clone, Debug)]
pub struct Delivery {
    /// The request for the watch.
    pub asked: Arc<Asked>,
    /// When they were handed out.
    pub at: Timestamp,
    /// As they were sent.
    pub chunk: Copied,
}

/// The copy of a body.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Copied {
    /// Its bytes; empty where there were more than `COPIED`.
    pub bytes: Bytes,
    /// How many there were.
    pub size: u64,
    /// Their content type, without parameters.
    pub content_type: String,
}

const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";

impl Copied {
    /// The object in it; `None` where it is no JSON, YAML or protobuf, or was too large.
    pub fn value(&self) -> Option<Value> {
        if self.bytes.is_empty() {
            None
        } else if self.bytes.starts_with(protobuf::MAGIC) {
            protobuf::decode(&self.bytes).ok()
        } else if self.content_type.ends_with("yaml") {
            opdev_object::yaml::from_str(std::str::from_utf8(&self.bytes).ok()?).ok()
        } else {
            serde_json::from_slice(&self.bytes).ok()
        }
    }

    /// The events of a watch in it, each with its type.
    pub fn events(&self) -> Vec<(String, Value)> {
        if self.content_type.starts_with(PROTOBUF) {
            return protobuf::events(&self.bytes).unwrap_or_default();
        }
        let events = self.bytes.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
        let read = events.filter_map(|line| {
            let mut event: Value = serde_json::from_slice(line).ok()?;
            let object = event.get_mut("object").map(Value::take)?;
            Some((event["type"].as_str()?.to_owned(), object))
        });
        read.collect()
    }

    /// Up to where the events of a watch are whole.
    pub(super) fn end_of_events(bytes: &[u8], content_type: &str) -> usize {
        if !content_type.starts_with(PROTOBUF) {
            return bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        }
        let mut end = 0;
        while let Some(head) = bytes[end..].first_chunk::<4>() {
            let next = end + 4 + u32::from_be_bytes(*head) as usize;
            if next > bytes.len() {
                break;
            }
            end = next;
        }
        end
    }

    /// The pieces of a chunk, one for each event of a watch.
    pub(super) fn pieces(chunk: &Bytes, content_type: &str) -> Vec<Bytes> {
        let mut pieces = Vec::new();
        let mut rest = chunk.clone();
        while !rest.is_empty() {
            let length = if content_type.starts_with(PROTOBUF) {
                let head = rest.first_chunk::<4>().map(|head| u32::from_be_bytes(*head) as usize + 4);
                head.unwrap_or(rest.len())
            } else {
                rest.iter().position(|byte| *byte == b'\n').map_or(rest.len(), |at| at + 1)
            };
            pieces.push(rest.split_to(length.min(rest.len())));
        }
        pieces
    }
}

impl Refusal {
    /// As the API server would put it.
    pub fn status(&self) -> Status {
        match self.retry_after {
            Some(seconds) if self.code == 429 => Status::too_many_requests(self.message.clone(), seconds),
            _ => Status::new(self.code, self.reason, self.message.clone()),
        }
    }
}

/// A client that is observed.
#[derive(Clone)]
pub(crate) struct Client {
    pub(super) user: User,
    pub(super) observer: Arc<dyn Observer>,
}

/// The tokens of observed clients.
#[derive(Default)]
pub(crate) struct Clients(RwLock<HashMap<String, Arc<Client>>>);

impl Clients {
    /// The client that has this token.
    pub(super) fn client_of_token(&self, token: &str) -> Option<Arc<Client>> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).get(token).cloned()
    }

    /// Takes a token for as long as what is given back lives.
    pub(crate) fn admit(
        self: &Arc<Self>,
        token: String,
        user: User,
        observer: Arc<dyn Observer>,
    ) -> ObservedToken {
        let client = Arc::new(Client { user, observer });
        self.0.write().unwrap_or_else(PoisonError::into_inner).insert(token.clone(), client);
        ObservedToken { token, clients: Arc::clone(self) }
    }
}

/// A bearer token for one client that is observed. It is good for as long as this value lives.
pub struct ObservedToken {
    token: String,
    clients: Arc<Clients>,
}

impl ObservedToken {
    /// The token: a credential.
    pub fn token(&self) -> &str {
        &self.token
    }
}

impl fmt::Debug for ObservedToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ObservedToken").finish_non_exhaustive()
    }
}

impl Drop for ObservedToken {
    fn drop(&mut self) {
        self.clients.0.write().unwrap_or_else(PoisonError::into_inner).remove(&self.token);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_whole_up_to_a_line_or_a_frame() {
        let end = |bytes: &[u8], content_type| Copied::end_of_events(bytes, content_type);
        assert_eq!(end(b"{\"a\":1}\n{\"b\"", "application/json"), 8);
        assert_eq!(end(b"{\"a\":1}", "application/json"), 0);
        let frames = [0, 0, 0, 2, 7, 7, 0, 0, 0, 3, 9];
        let protobuf = "application/vnd.kubernetes.protobuf;stream=watch";
        assert_eq!([6, 7, 11].map(|length| end(&frames[..length], protobuf)), [6, 6, 6]);
        assert_eq!(end(&frames[..5], protobuf), 0);
        assert_eq!(end(b"", protobuf), 0);
    }
}
