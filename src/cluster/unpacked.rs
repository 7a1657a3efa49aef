//! Unpacks an answer that comes compressed, frame by frame. The relay asks for plain answers, but a server,
//! or something in front of it, may compress them anyway, and a call is explained by the text of its answer.

use bytes::Bytes;
use flate2::write::MultiGzDecoder;
use futures::StreamExt as _;
use http::header::{CONTENT_ENCODING, CONTENT_LENGTH, HeaderMap};
use http_body::Frame;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, BodyStream, StreamBody};
use std::collections::VecDeque;
use std::io::{self, Write as _};
use tower::BoxError;

/// How much of a frame is unpacked at once, in bytes: what comes of it is at most about a thousand times as
/// long.
const PIECE: usize = 1024;

type Packed = UnsyncBoxBody<Bytes, BoxError>;
type Plain = UnsyncBoxBody<Bytes, io::Error>;

/// The body as plain text, with headers that say so. An encoding other than gzip stays as it is.
pub(super) fn unpacked(headers: &mut HeaderMap, body: Packed) -> Plain {
    let encoding = headers.get(CONTENT_ENCODING).and_then(|value| value.to_str().ok());
    if !encoding.is_some_and(|name| matches!(name.trim(), "gzip" | "x-gzip")) {
        return body.map_err(io::Error::other).boxed_unsync();
    }
    headers.remove(CONTENT_ENCODING);
    headers.remove(CONTENT_LENGTH);
    let unpacking = Unpacking {
        body: BodyStream::new(body),
        decoder: Some(MultiGzDecoder::new(Vec::new())),
        packed: VecDeque::new(),
        begun: false,
    };
    let frames = futures::stream::unfold(unpacking, |mut unpacking| async move {
        let frame = unpacking.next().await?;
        Some((frame, unpacking))
    });
    StreamBody::new(frames).boxed_unsync()
}

struct Unpacking {
    body: BodyStream<Packed>,
    /// None once the end was reached, or the text cannot be read any further.
    decoder: Option<MultiGzDecoder<Vec<u8>>>,
    /// Frames that came and were not unpacked yet.
    packed: VecDeque<Bytes>,
    /// Something came: the answer to HEAD has no body, and that is no broken one.
    begun: bool,
}

impl Unpacking {
    /// The frame that a client reads next; `None` at the end.
    async fn next(&mut self) -> Option<io::Result<Frame<Bytes>>> {
        loop {
            let decoder = self.decoder.as_mut()?;
            if let Some(piece) = self.packed.pop_front() {
                match text_of(decoder, &piece) {
                    Ok(text) if text.is_empty() => continue,
                    Ok(text) => return Some(Ok(Frame::data(text))),
                    Err(error) => {
                        self.decoder = None;
                        return Some(Err(broken(&error)));
                    }
                }
            }
            match self.body.next().await {
                Some(Ok(frame)) => match frame.into_data() {
                    Ok(data) => {
                        self.begun |= !data.is_empty();
                        let starts = (0..data.len()).step_by(PIECE);
                        self.packed.extend(starts.map(|at| data.slice(at..data.len().min(at + PIECE))));
                    }
                    Err(trailers) => return Some(Ok(trailers)),
                },
                Some(Err(error)) => return Some(Err(io::Error::other(error))),
                None => {
                    let mut decoder = self.decoder.take()?;
                    if !self.begun {
                        return None;
                    }
                    return match decoder.try_finish() {
                        Ok(()) => {
                            let text = std::mem::take(decoder.get_mut());
                            (!text.is_empty()).then(|| Ok(Frame::data(text.into())))
                        }
                        Err(error) => Some(Err(broken(&error))),
                    };
                }
            }
        }
    }
}

/// All that can be read with this piece: a server ends each event with a flush.
fn text_of(decoder: &mut MultiGzDecoder<Vec<u8>>, piece: &[u8]) -> io::Result<Bytes> {
    decoder.write_all(piece)?;
    decoder.flush()?;
    Ok(std::mem::take(decoder.get_mut()).into())
}

fn broken(error: &io::Error) -> io::Error {
    io::Error::new(
        error.kind(),
        format!("the answer of the cluster says that it is gzip and cannot be unpacked: {error}"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;
    use flate2::Compression;
    use flate2::write::GzEncoder;
    use http::HeaderValue;

    fn headers(encoding: &'static str) -> HeaderMap {
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_ENCODING, HeaderValue::from_static(encoding));
        headers.insert(CONTENT_LENGTH, HeaderValue::from_static("7"));
        headers
    }

    fn body(frames: Vec<Vec<u8>>) -> Packed {
        let frames = frames.into_iter().map(|frame| Ok::<_, BoxError>(Frame::data(Bytes::from(frame))));
        StreamBody::new(futures::stream::iter(frames)).boxed_unsync()
    }

    fn packed(text: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(text).unwrap();
        encoder.finish().unwrap()
    }

    #[tokio::test]
    async fn each_event_comes_with_its_flush_however_its_frames_are_cut() {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        let mut flushed = |event: &str| {
            encoder.write_all(event.as_bytes()).unwrap();
            encoder.flush().unwrap();
            std::mem::take(encoder.get_mut())
        };
        let (first, second) = (flushed("{\"type\":\"ADDED\"}\n"), flushed("{\"type\":\"DELETED\"}\n"));
        let (head, tail) = second.split_at(second.len() / 2);
        // Nothing follows: the events are there before the answer ends.
        let frames = vec![first, head.to_vec(), tail.to_vec()];
        let open = body(frames).into_data_stream().chain(futures::stream::pending());
        let open = StreamBody::new(open.map(|data| data.map(Frame::data))).boxed_unsync();
        let mut headers = headers("gzip");
        let mut plain = unpacked(&mut headers, open);
        assert!(headers.is_empty(), "{headers:?}");
        let mut text = Vec::new();
        while !text.ends_with(b"DELETED\"}\n") {
            text.extend_from_slice(&plain.frame().await.unwrap().unwrap().into_data().unwrap());
        }
        assert_eq!(text, b"{\"type\":\"ADDED\"}\n{\"type\":\"DELETED\"}\n");
    }

    #[tokio::test]
    async fn a_long_answer_is_unpacked_in_bounded_pieces_and_wholly() {
        let text = vec![b'x'; 8 * 1024 * 1024];
        let mut plain = unpacked(&mut headers("x-gzip"), body(vec![packed(&text)]));
        let (mut read, mut longest) = (0, 0);
        while let Some(frame) = plain.frame().await {
            let data = frame.unwrap().into_data().unwrap();
            longest = longest.max(data.len());
            read += data.len();
        }
        assert_eq!(read, text.len());
        assert!(longest < 2 * 1024 * 1024, "{longest}");
    }

    #[tokio::test]
    async fn an_answer_without_a_body_is_empty_and_one_that_is_cut_is_told() {
        let empty = unpacked(&mut headers("gzip"), body(Vec::new())).collect().await.unwrap();
        assert!(empty.to_bytes().is_empty());
        let whole = packed(b"{\"kind\":\"ConfigMapList\"}");
        let cut = whole[..whole.len() - 9].to_vec();
        let error = unpacked(&mut headers("gzip"), body(vec![cut])).collect().await.unwrap_err();
        expect!["the answer of the cluster says that it is gzip and cannot be unpacked: corrupt gzip stream does not have a matching checksum"]
        .assert_eq(&error.to_string());
        let other = unpacked(&mut headers("br"), body(vec![b"?".to_vec()])).collect().await.unwrap();
        assert_eq!(other.to_bytes(), "?");
    }
}
