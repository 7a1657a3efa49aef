//! A program on a cluster whose API server compresses each answer, long lists and watches too, as a proxy in
//! front of one may do unasked: its trace says as much.

use crate::traced::{World, every_write_belongs_to_its_reconcile};
use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use futures::StreamExt as _;
use http::header::{ACCEPT_ENCODING, CONTENT_ENCODING, CONTENT_LENGTH};
use http::{HeaderValue, Request, Response};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, BodyStream, StreamBody};
use hyper::body::Frame;
use kube::Client;
use kube::client::Body;
use std::io::Write as _;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

/// How often an answer was compressed, and how often a client had asked for that.
#[derive(Default)]
struct Packed {
    answers: AtomicUsize,
    asked_for: AtomicUsize,
}

/// A client of the same server whose answers all come as gzip, each frame with a flush, as of a streamed list
/// or a watch.
fn packing(client: Client) -> (Client, Arc<Packed>) {
    let packed = Arc::new(Packed::default());
    let count = Arc::clone(&packed);
    let service = tower::service_fn(move |request: Request<Body>| {
        let (client, count) = (client.clone(), Arc::clone(&count));
        async move {
            let wanted = request.headers().get(ACCEPT_ENCODING).and_then(|value| value.to_str().ok());
            if wanted.is_some_and(|wanted| wanted.contains("gzip")) {
                count.asked_for.fetch_add(1, Ordering::Relaxed);
            }
            count.answers.fetch_add(1, Ordering::Relaxed);
            client.send(request).await.map(gzipped)
        }
    });
    (Client::new(service, "default"), packed)
}

fn gzipped(answer: Response<Body>) -> Response<UnsyncBoxBody<Bytes, kube::Error>> {
    let (mut parts, body) = answer.into_parts();
    parts.headers.remove(CONTENT_LENGTH);
    parts.headers.insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    let encoder = GzEncoder::new(Vec::new(), Compression::fast());
    let frames =
        futures::stream::unfold((BodyStream::new(body), Some(encoder)), |(mut body, encoder)| async {
            let mut encoder = encoder?;
            let bytes = match body.next().await {
                Some(Ok(frame)) => {
                    encoder.write_all(frame.data_ref().map_or(&[][..], |data| data)).unwrap();
                    encoder.flush().unwrap();
                    std::mem::take(encoder.get_mut())
                }
                Some(Err(error)) => return Some((Err(error), (body, None))),
                None => return Some((Ok(frame(encoder.finish().unwrap())), (body, None))),
            };
            Some((Ok(frame(bytes)), (body, Some(encoder))))
        });
    Response::from_parts(parts, StreamBody::new(frames).boxed_unsync())
}

fn frame(bytes: Vec<u8>) -> Frame<Bytes> {
    Frame::data(bytes.into())
}

/// A server of 1.37 compresses watches for whoever asks, and each server long lists; what stands before one
/// may do it for all. A trace is as good then.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
#[cfg_attr(not(go), ignore = "needs Go")]
async fn on_a_cluster_that_compresses_its_answers_every_write_belongs_to_its_reconcile() {
    let packed = Mutex::default();
    let way = |client| {
        let (client, count) = packing(client);
        *packed.lock().unwrap() = Some(count);
        client
    };
    every_write_belongs_to_its_reconcile(World::through(Some(&way)).await).await;
    let packed = packed.lock().unwrap().take().unwrap();
    assert!(packed.answers.load(Ordering::Relaxed) > 30);
    assert_eq!(packed.asked_for.load(Ordering::Relaxed), 0, "the relay asks for plain answers");
}
