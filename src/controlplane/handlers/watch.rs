//! Watches: the state at the start where it is wanted, then every change that concerns the selection,
//! bookmarks, an end after the timeout. One chunk per batch of changes, sent as soon as it is there.

use super::path::Query;
use super::read::{check_watch_options, revision, selected, too_old};
use super::respond::{PART, Shape};
use super::select::Selection;
use crate::negotiation::{Encoding, Form};
use bytes::Bytes;
use futures::stream;
use http::Response;
use http::header::{CONTENT_TYPE, HeaderValue};
use opdev_apimachinery::blocking;
use opdev_apimachinery::body::{self, Body};
use opdev_apimachinery::error::Status;
use opdev_apimachinery::protobuf;
use opdev_apimachinery::resource::Resource;
use opdev_apimachinery::watchdog::watched;
use opdev_apis::table::answer::metadata_only;
use opdev_registry::{Registry, versions};
use opdev_storage::{Change, ChangeKind, Stored, Watch};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, sleep_until};

const BOOKMARK_PERIOD: Duration = Duration::from_secs(60);
/// Upstream ends a watch after 30 to 60 minutes where the client does not say when.
const SHORTEST: u64 = 1800;

/// The query of a watch.
struct Wanted {
    revision: Option<u64>,
    initial: Option<bool>,
    bookmarks: bool,
    timeout: Duration,
}

impl Wanted {
    fn parse(query: &Query) -> Result<Self, Status> {
        let seconds = query.number("timeoutSeconds").and_then(|n| u64::try_from(n).ok()).filter(|n| *n > 0);
        let mut spread = [0; 2];
        // Without a random source all watches end after half an hour.
        let _ = getrandom::fill(&mut spread);
        let own = SHORTEST + u64::from(u16::from_le_bytes(spread)) % SHORTEST;
        Ok(Wanted {
            revision: revision(query)?,
            initial: query.flag("sendInitialEvents"),
            bookmarks: query.flag("allowWatchBookmarks") == Some(true),
            timeout: Duration::from_secs(seconds.unwrap_or(own)),
        })
    }

    /// Returns true if the state at the start is sent as ADDED events.
    fn wants_state(&self) -> bool {
        match self.initial {
            Some(initial) => initial,
            None => self.revision.is_none_or(|revision| revision == 0),
        }
    }
}

struct Running {
    shape: Shape,
    selection: Selection,
    namespace: Option<String>,
    watch: Watch,
    /// Objects of the state at the start that are still to be sent.
    state: std::vec::IntoIter<Arc<Stored>>,
    /// The bookmark that marks the end of that state.
    marks: Option<(u64, Value)>,
    /// Columns are only defined in the first Table.
    columns: bool,
    bookmarks: bool,
    bookmark_at: Instant,
    ends_at: Instant,
    over: bool,
    /// It ends with an error.
    failed: bool,
}

/// Answers a watch.
pub(crate) fn watch(
    shape: Shape,
    namespace: Option<&str>,
    query: &Query,
    selection: Selection,
) -> Result<Response<Body>, Status> {
    check_watch_options(query)?;
    let wanted = Wanted::parse(query)?;
    let encoding = shape.agreed.encoding;
    let store = &shape.registry.store;
    let table = shape.resource.table.clone();
    let current = store.revision();
    let (from, initial) = if wanted.wants_state() {
        let least = wanted.revision.unwrap_or(0);
        if least > current {
            let status = Status::too_large_resource_version(least, current);
            return Ok(response(stream::iter([error(&status, encoding)]), encoding));
        }
        selected(&shape, namespace, &selection)?
    } else {
        (wanted.revision.filter(|revision| *revision > 0).unwrap_or(current), Vec::new())
    };
    let watch = match store.watch(&table, from) {
        Ok(watch) => watch,
        Err(expired) => return Ok(response(stream::iter([error(&too_old(expired), encoding)]), encoding)),
    };
    let now = Instant::now();
    let mut running = Running {
        namespace: namespace.map(str::to_owned),
        shape,
        selection,
        watch,
        state: initial.into_iter(),
        marks: None,
        columns: true,
        bookmarks: wanted.bookmarks,
        bookmark_at: now + BOOKMARK_PERIOD,
        ends_at: now + wanted.timeout,
        over: false,
        failed: false,
    };
    if wanted.initial == Some(true) && wanted.bookmarks {
        running.marks = Some((from, json!({"k8s.io/initial-events-end": "true"})));
    }
    let what: Arc<str> = format!("watch of {}", running.shape.resource.id()).into();
    let chunks = stream::unfold(running, move |mut running| {
        let what = what.clone();
        async move {
            let chunk = watched(what, running.next()).await?;
            Some((chunk, running))
        }
    });
    Ok(response(chunks, encoding))
}

fn response(
    chunks: impl futures::Stream<Item = Bytes> + Send + 'static,
    encoding: Encoding,
) -> Response<Body> {
    let kind = match encoding {
        Encoding::Protobuf => "application/vnd.kubernetes.protobuf;stream=watch",
        Encoding::Json | Encoding::PrettyJson | Encoding::Yaml => "application/json",
    };
    let mut response = Response::new(body::stream(chunks));
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    response
}

fn line(out: &mut Vec<u8>, kind: &str, object: &[u8]) {
    out.extend_from_slice(b"{\"type\":\"");
    out.extend_from_slice(kind.as_bytes());
    out.extend_from_slice(b"\",\"object\":");
    out.extend_from_slice(object);
    out.extend_from_slice(b"}\n");
}

fn error(status: &Status, encoding: Encoding) -> Bytes {
    let mut out = Vec::new();
    document(&mut out, "ERROR", &status.to_value(), encoding);
    out.into()
}

/// An event about something that is not stored.
fn document(out: &mut Vec<u8>, kind: &str, object: &Value, encoding: Encoding) {
    if encoding == Encoding::Protobuf {
        frame(out, protobuf::frame(kind, object));
    } else {
        line(out, kind, object.to_string().as_bytes());
    }
}

/// A frame, or an error in its place where the object does not go into the messages of its kind.
fn frame(out: &mut Vec<u8>, frame: Result<Vec<u8>, protobuf::Error>) {
    let frame = frame.or_else(|why| {
        tracing::error!(%why, "an event cannot be written in protobuf");
        let status = Status::internal(&format!("unable to encode watch object: {why}"));
        protobuf::frame("ERROR", &status.to_value())
    });
    out.extend(frame.unwrap_or_default());
}

/// Changes with the objects as the resource serves them.
fn at_version(
    registry: &Registry,
    resource: &Resource,
    changes: Vec<Arc<Change>>,
) -> Result<Vec<Arc<Change>>, Status> {
    if resource.custom.is_none() {
        return Ok(changes);
    }
    let there = |change: &Arc<Change>| {
        versions::shows(resource, &change.object)
            && change.previous.as_ref().is_none_or(|previous| versions::shows(resource, previous))
    };
    let turned = changes.into_iter().map(|change| {
        if there(&change) {
            return Ok(change);
        }
        let object = registry.one_at(resource, &change.object)?;
        let previous =
            change.previous.as_ref().map(|object| registry.one_at(resource, object)).transpose()?;
        Ok(Arc::new(Change { object, previous, ..(*change).clone() }))
    });
    turned.collect()
}

impl Running {
    /// The next chunk; `None` when the watch is over.
    async fn next(&mut self) -> Option<Bytes> {
        if let Some(part) = self.start() {
            return Some(part);
        }
        if self.over {
            return None;
        }
        loop {
            let mut out = Vec::new();
            tokio::select! {
                biased;
                changes = self.watch.next() => {
                    // A reader that was too slow has to start again.
                    let Ok(changes) = changes else { return None };
                    self.changes(&mut out, changes).await;
                }
                () = sleep_until(self.ends_at) => {
                    self.over = true;
                    if !self.bookmarks {
                        return None;
                    }
                    self.catch_up(&mut out).await;
                }
                () = sleep_until(self.bookmark_at), if self.bookmarks => {
                    self.bookmark_at = Instant::now() + BOOKMARK_PERIOD;
                    self.catch_up(&mut out).await;
                }
            }
            if !out.is_empty() {
                return Some(out.into());
            }
        }
    }

    /// The next part of the state at the start, made when the client takes it.
    fn start(&mut self) -> Option<Bytes> {
        let mut out = Vec::new();
        while out.len() < PART
            && let Some(object) = self.state.next()
        {
            self.event(&mut out, "ADDED", &object);
        }
        if self.state.len() == 0
            && let Some((revision, marks)) = self.marks.take()
        {
            self.bookmark(&mut out, revision, Some(marks));
        }
        (!out.is_empty()).then(|| out.into())
    }

    /// Sends the changes up to now, and a bookmark behind them.
    async fn catch_up(&mut self, out: &mut Vec<u8>) {
        let Ok(changes) = self.watch.ready() else {
            self.over = true;
            return;
        };
        self.changes(out, changes).await;
        if self.failed {
            return;
        }
        let position = self.watch.position();
        self.bookmark(out, position, None);
    }

    /// Changes as events; where they cannot be shown at the version asked for, an error, and the end.
    async fn changes(&mut self, out: &mut Vec<u8>, changes: Vec<Arc<Change>>) {
        let (registry, resource) = (self.shape.registry.clone(), self.shape.resource.clone());
        let turned = if resource.converts() {
            let work = move || at_version(&registry, &resource, changes);
            blocking::run(work).await.unwrap_or_else(|_| Ok(Vec::new()))
        } else {
            at_version(&registry, &resource, changes)
        };
        match turned {
            Ok(changes) => changes.iter().for_each(|change| self.change(out, change)),
            Err(status) => {
                (self.over, self.failed) = (true, true);
                out.extend_from_slice(&error(&status, self.shape.agreed.encoding));
            }
        }
    }

    fn selects(&self, object: &Stored) -> bool {
        self.selection.is_everything() || self.selection.selects(&self.shape, object)
    }

    /// One change as the event it is for this selection, if it is one.
    fn change(&mut self, out: &mut Vec<u8>, change: &Arc<Change>) {
        if self.namespace.as_deref().is_some_and(|namespace| *namespace != *change.key.namespace) {
            return;
        }
        let before = change.previous.as_deref().is_some_and(|object| self.selects(object));
        let after = change.kind != ChangeKind::Deleted && self.selects(&change.object);
        match (before, after) {
            (false, false) => {}
            (false, true) => self.event(out, "ADDED", &change.object),
            (true, true) => self.event(out, "MODIFIED", &change.object),
            (true, false) if change.kind == ChangeKind::Deleted => self.event(out, "DELETED", &change.object),
            (true, false) => {
                // It left the selection: its old state, at the revision at which it left.
                if let Some(previous) = &change.previous {
                    let mut object = Value::clone(&previous.glance());
                    object["metadata"]["resourceVersion"] = Value::from(change.revision.to_string());
                    self.event(out, "DELETED", &Stored::unsaved(object));
                }
            }
        }
    }

    fn event(&mut self, out: &mut Vec<u8>, kind: &str, object: &Stored) {
        if self.shape.agreed.encoding == Encoding::Protobuf {
            return frame(out, self.shape.frame(kind, object));
        }
        let text = match self.shape.agreed.form {
            Form::Table(version) => {
                let served = self.shape.registry.served(&self.shape.resource, object);
                let columns = std::mem::take(&mut self.columns);
                let objects = std::iter::once(&*served);
                self.shape.table(version, &served["metadata"], objects, columns).to_string().into()
            }
            Form::Object | Form::Metadata(_) | Form::MetadataList(_) => self.shape.object_text(object),
        };
        line(out, kind, &text);
    }

    fn bookmark(&mut self, out: &mut Vec<u8>, revision: u64, annotations: Option<Value>) {
        let resource = &self.shape.resource;
        let mut meta = json!({"resourceVersion": revision.to_string(), "creationTimestamp": null});
        if let Some(annotations) = annotations {
            meta["annotations"] = annotations;
        }
        let object = json!({"kind": resource.kind, "apiVersion": resource.api_version(), "metadata": meta});
        let object = match self.shape.agreed.form {
            Form::Object | Form::MetadataList(_) => object,
            Form::Metadata(version) => metadata_only(&object, version),
            Form::Table(version) => {
                let meta = json!({"resourceVersion": revision.to_string()});
                self.shape.table(version, &meta, std::iter::once(&object), false)
            }
        };
        document(out, "BOOKMARK", &object, self.shape.agreed.encoding);
    }
}
