//! Answers that wait for the disk and answers that do not.

use super::*;
use futures::FutureExt as _;
use opdev_storage::{Batch, CommitError, Disk, Store};
use std::sync::mpsc;

/// A disk that writes a batch for each word it is given.
struct Gate(mpsc::Receiver<()>);

impl Disk for Gate {
    fn commit(&mut self, _: &Batch) -> Result<(), CommitError> {
        self.0.recv().map_err(|gone| CommitError { file: "gate".into(), cause: gone.into() })
    }
}

fn request(method: &str, uri: &str, body: &Value) -> Request<Full<Bytes>> {
    let text = if body.is_null() { String::new() } else { body.to_string() };
    let request = Request::builder().method(method).uri(uri).header("content-type", "application/json");
    request.body(Full::new(Bytes::from(text))).unwrap()
}

#[tokio::test]
async fn answers_wait_for_the_disk_unless_who_asks_ends_with_this_process() {
    let (disk, gate) = mpsc::channel();
    let store = Store::on_disk(Box::new(Gate(gate)), opdev_registry::indexing).unwrap();
    let clock = Arc::new(|| "2026-01-02T03:04:05.678Z".parse().unwrap());
    let registry = Arc::new(Registry::boot_on(store, clock, false).unwrap());
    let api = Api::new(registry, Arc::new(UpstreamDefault), Arc::new(Tokens::new().unwrap()));
    let admin = User::admin();
    let mut ahead = request("POST", MAPS, &config_map("ahead"));
    ahead.extensions_mut().insert(AheadOfDisk);
    assert_eq!(api.call(&admin, ahead).await.status(), StatusCode::CREATED);
    // A read of a write that the disk does not have yet waits for the disk, and so does a write after it.
    let mut read = Box::pin(api.call(&admin, request("GET", &format!("{MAPS}/ahead"), &Value::Null)));
    let mut written = Box::pin(api.call(&admin, request("POST", MAPS, &config_map("waiting"))));
    assert!((&mut read).now_or_never().is_none());
    assert!((&mut written).now_or_never().is_none());
    let words = std::iter::repeat_with(|| disk.send(())).take(16);
    assert!(words.into_iter().all(|sent| sent.is_ok()));
    assert_eq!((read.await.status(), written.await.status()), (StatusCode::OK, StatusCode::CREATED));
}
