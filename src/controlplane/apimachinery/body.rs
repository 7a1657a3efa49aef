//! The one response body: whole bytes for most answers, a stream of chunks for a watch and for a long list.
//! Requests are read whole before they reach the verbs; the limit on their size is the server's.

use bytes::Bytes;
use futures::{Stream, StreamExt};
use http_body::Frame;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full, StreamBody};
use opdev_object::apply::compact;
use std::convert::Infallible;

/// The body of every answer, over a socket and in process.
pub type Body = UnsyncBoxBody<Bytes, Infallible>;

/// Marks the answer of a list that is sent in parts: like that of a watch its length is not known, but it has
/// no events.
#[derive(Clone, Copy, Debug)]
pub struct InParts;

/// A body that is there as a whole.
pub fn full(bytes: impl Into<Bytes>) -> Body {
    Full::new(checked(bytes.into())).boxed_unsync()
}

/// A body without bytes.
pub fn empty() -> Body {
    full(Bytes::new())
}

/// A body that grows: each item goes out as one chunk as soon as it is there.
pub fn stream(chunks: impl Stream<Item = Bytes> + Send + 'static) -> Body {
    BodyExt::boxed_unsync(StreamBody::new(chunks.map(|chunk| Ok(Frame::data(checked(chunk))))))
}

/// Checks bytes that leave the API server, in any format. Every test passes here.
pub fn checked(bytes: Bytes) -> Bytes {
    debug_assert!(!compact::is_in_text(&bytes), "managed fields were not expanded");
    bytes
}
