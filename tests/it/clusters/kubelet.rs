//! A kubelet's logs on the door of a cluster: lines with the times at which they were written, answered as
//! `…/pods/NAME/log` does, with `follow`, `previous`, `tailLines`, `sinceTime` and `timestamps`.

use bytes::Bytes;
use futures::StreamExt as _;
use http::Response;
use http_body_util::{BodyExt as _, StreamBody};
use hyper::body::Frame;
use jiff::Timestamp;
use std::collections::HashMap;
use std::convert::Infallible;
use std::sync::{Arc, Mutex};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

/// The container of a log: pod, name, and true if it is that of the run before.
type Whose = (String, String, bool);

/// One log file.
struct File {
    lines: watch::Sender<Vec<(Timestamp, String)>>,
    /// Ends those that follow it.
    rotated: CancellationToken,
}

impl Default for File {
    fn default() -> Self {
        File { lines: watch::Sender::new(Vec::new()), rotated: CancellationToken::new() }
    }
}

/// The logs of all containers.
#[derive(Clone, Default)]
pub(crate) struct Kubelet {
    files: Arc<Mutex<HashMap<Whose, File>>>,
    /// The requests, each query as it came.
    asked: Arc<watch::Sender<Vec<String>>>,
}

impl Kubelet {
    fn with<T>(&self, whose: Whose, work: impl FnOnce(&mut File) -> T) -> T {
        work(self.files.lock().unwrap().entry(whose).or_default())
    }

    /// A container writes a line.
    pub(crate) fn write(&self, pod: &str, container: &str, text: &str) {
        let line = (Timestamp::now(), text.to_owned());
        self.with((pod.to_owned(), container.to_owned(), false), |file| {
            file.lines.send_modify(|all| all.push(line));
        });
    }

    /// A container is restarted: what it wrote is the log of the run before.
    pub(crate) fn restart(&self, pod: &str, container: &str) {
        let whose = (pod.to_owned(), container.to_owned(), false);
        let mut files = self.files.lock().unwrap();
        if let Some(file) = files.remove(&whose) {
            file.rotated.cancel();
            files.insert((whose.0, whose.1, true), file);
        }
    }

    /// The log is rotated: who follows it is sent away.
    pub(crate) fn rotate(&self, pod: &str, container: &str) {
        self.with((pod.to_owned(), container.to_owned(), false), |file| {
            std::mem::take(&mut file.rotated).cancel();
        });
    }

    /// The queries so far for one pod.
    pub(crate) fn asked(&self, pod: &str) -> Vec<String> {
        self.asked.borrow().iter().filter(|query| query.contains(pod)).cloned().collect()
    }

    /// Waits until one pod's log was asked for so many times.
    pub(crate) async fn until_asked(&self, pod: &str, times: usize) {
        let often = |all: &Vec<String>| all.iter().filter(|query| query.contains(pod)).count() >= times;
        self.asked.subscribe().wait_for(often).await.unwrap();
    }

    /// Answers where a log is asked for.
    pub(crate) fn answer(&self, uri: &http::Uri) -> Option<Response<opdev_controlplane::Body>> {
        let pod = uri.path().strip_suffix("/log")?.rsplit('/').next()?.to_owned();
        self.asked.send_modify(|all| all.push(uri.to_string()));
        let query: HashMap<&str, String> = uri
            .query()
            .unwrap_or_default()
            .split('&')
            .filter_map(|pair| pair.split_once('='))
            .map(|(name, value)| (name, value.replace("%3A", ":")))
            .collect();
        let is = |name: &str| query.get(name).is_some_and(|value| value == "true");
        let whose = (pod, query.get("container").cloned().unwrap_or_default(), is("previous"));
        let (lines, rotated) = self.with(whose, |file| (file.lines.subscribe(), file.rotated.clone()));
        let since: Option<Timestamp> = query.get("sinceTime").map(|time| time.parse().unwrap());
        let all = lines.borrow().clone();
        let tail: usize = query.get("tailLines").map_or(usize::MAX, |count| count.parse().unwrap());
        let first = since.map_or(0, |since| all.partition_point(|(at, _)| *at < since));
        let first = first.max(all.len().saturating_sub(tail));
        let (follow, times) = (is("follow"), is("timestamps"));
        let text = move |lines: &[(Timestamp, String)]| {
            let of = |(at, text): &(Timestamp, String)| {
                if times { format!("{at} {text}\n") } else { format!("{text}\n") }
            };
            Bytes::from(lines.iter().map(of).collect::<String>())
        };
        let next = move |(mut lines, told, rotated): (watch::Receiver<Vec<_>>, usize, CancellationToken)| async move {
            loop {
                let now = lines.borrow_and_update().clone();
                if now.len() > told {
                    let frame = Ok::<_, Infallible>(Frame::data(text(&now[told..])));
                    return Some((frame, (lines, now.len(), rotated)));
                }
                if !follow {
                    return None;
                }
                tokio::select! {
                    () = rotated.cancelled() => return None,
                    changed = lines.changed() => changed.ok()?,
                }
            }
        };
        let stream = futures::stream::unfold((lines, first, rotated), next).boxed();
        let mut response = Response::new(StreamBody::new(stream).boxed_unsync());
        response.headers_mut().insert("content-type", "text/plain".parse().unwrap());
        Some(response)
    }
}
