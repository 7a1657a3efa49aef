//! The body of an answer that has an end. A body that drips, or never stops, delays its reader and may fill
//! the memory.

use super::link::Answer;
use bytes::Bytes;
use futures::stream;
use http_body_util::{BodyExt as _, StreamBody};
use std::time::{Duration, Instant};
use tower::BoxError;

/// Bytes that an answer may have. A list comes in pages, and an object has at most some megabytes.
const LARGEST: u64 = 512 << 20;
/// How long nothing of a body may come.
const SILENT: Duration = Duration::from_secs(15);
/// Bytes that have to come in each second, on the whole.
const SLOWEST: u64 = 256;

/// Limits of a body.
#[derive(Clone, Copy)]
pub(super) struct Bounds {
    largest: u64,
    silent: Duration,
}

impl Default for Bounds {
    fn default() -> Bounds {
        Bounds { largest: LARGEST, silent: SILENT }
    }
}

/// An answer whose body ends with an error where it is too large or too slow.
pub(super) fn bounded(answer: Answer, bounds: Bounds) -> Answer {
    answer.map(|body| {
        let began = Instant::now();
        let frames = stream::try_unfold((body, 0_u64), move |(mut body, before)| async move {
            let took = || began.elapsed().as_secs();
            let Ok(frame) = tokio::time::timeout(bounds.silent, body.frame()).await else {
                return Err(BoxError::from(format!(
                    "the API server has sent nothing more of its answer for {} s",
                    bounds.silent.as_secs()
                )));
            };
            let Some(frame) = frame.transpose()? else { return Ok(None) };
            let bytes = before + frame.data_ref().map_or(0, |data: &Bytes| data.len() as u64);
            if bytes > bounds.largest {
                return Err(
                    format!("the answer of the API server is larger than {} bytes", bounds.largest).into()
                );
            }
            if began.elapsed() > bounds.silent && bytes < took() * SLOWEST {
                return Err(
                    format!("the API server has sent {bytes} bytes of its answer in {} s", took()).into()
                );
            }
            Ok(Some((frame, (body, bytes))))
        });
        StreamBody::new(frames).boxed_unsync()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;
    use http::Response;
    use hyper::body::Frame;

    fn answer(frames: impl futures::Stream<Item = Bytes> + Send + 'static) -> Answer {
        use futures::StreamExt as _;
        Response::new(StreamBody::new(frames.map(|data| Ok(Frame::data(data)))).boxed_unsync())
    }

    async fn end(answer: Answer) -> Result<usize, String> {
        let whole = answer.into_body().collect().await;
        whole.map(|whole| whole.to_bytes().len()).map_err(|error| error.to_string())
    }

    #[tokio::test]
    async fn a_body_has_an_end() {
        let part = || Bytes::from_static(b"12345678");
        let bounds = Bounds { largest: 20, ..Bounds::default() };
        assert_eq!(end(bounded(answer(stream::iter([part(), part()])), bounds)).await, Ok(16));
        let large = end(bounded(answer(stream::repeat(part())), bounds)).await.unwrap_err();
        expect!["the answer of the API server is larger than 20 bytes"].assert_eq(&large);
        let bounds = Bounds { silent: Duration::from_millis(20), ..Bounds::default() };
        let silent = end(bounded(answer(stream::pending()), bounds)).await.unwrap_err();
        assert!(silent.contains("nothing more of its answer"), "{silent}");
    }

    #[tokio::test]
    async fn a_body_that_drips_is_given_up() {
        let drops = stream::unfold((), |()| async {
            tokio::time::sleep(Duration::from_millis(10)).await;
            Some((Bytes::from_static(b"1"), ()))
        });
        let bounds = Bounds { silent: Duration::from_millis(990), ..Bounds::default() };
        let dripped = end(bounded(answer(drops), bounds)).await.unwrap_err();
        assert!(dripped.contains("bytes of its answer in 1 s"), "{dripped}");
    }
}
