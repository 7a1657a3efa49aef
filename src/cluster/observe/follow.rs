//! Follows the objects of one kind: a list in pages, then a watch from where it stood, and after a break
//! again from where that stood. Of unrelated objects (`project_objects`) the keys are told, of the others the
//! object. It comes whole, or as its metadata; then one object after the other is read whole: the one that
//! somebody looks at, again with each change, and those that come up below a custom resource of the project,
//! for what a reconcile has created is shown with it. Release records are not: all in them is masked. All of
//! a kind is told by one task, so that an object read whole never comes before an older state of it.

use super::kinds::Reads;
use super::partial_object::{self, Line, Page, PartialObject};
use super::project_objects::ProjectObjects;
use super::{Attention, Watched};
use futures::{AsyncBufReadExt as _, FutureExt as _, pin_mut};
use http::Request;
use http::header::{ACCEPT, ACCEPT_ENCODING};
use jiff::Timestamp;
use kube::Client;
use kube::api::ApiResource;
use opdev_client::watch::busy::Busy;
use opdev_client::{escape, object_path, plural_path};
use opdev_event::sink::EventSink;
use opdev_event::{Body, Event, Level, Notice, ObjectGone, ObjectSeen, UnrelatedObject, UnrelatedSeen, mask};
use opdev_object::meta::{self, Gvk, ObjectRef};
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Objects in one page of a list.
const PAGE: usize = 500;
/// After so many seconds a server ends a watch; it is resumed.
const WATCH_SECONDS: u32 = 290;
/// The first and the longest pause after a failure.
const PAUSE: (Duration, Duration) = (Duration::from_millis(800), Duration::from_secs(30));
/// After so many failures in a row the kind is looked up again.
const FAILURES: u32 = 3;
/// The part of the buffer for lines that stays once a long one is read.
const BUFFER: usize = 64 << 10;

/// The known facts about a kind; it outlives each watch, so that what went while nobody watched is told, too.
#[derive(Default)]
pub(super) struct Known {
    objects: BTreeMap<Watched, Mark>,
    /// Objects that were told before the list that is under way, and have not come up in it.
    unlisted: BTreeMap<Watched, Mark>,
    /// The resource version up to which all is told, once a list was complete.
    position: Option<String>,
    /// The project_objects's epoch of that list.
    epoch: u64,
    /// The object that was looked at last.
    looked: Option<Watched>,
    /// Since when all is listed and what happens is followed, in this try.
    followed: Option<Instant>,
}

impl Known {
    /// All is listed again: nobody knows whether it is the same server.
    pub(super) fn distrust(&mut self) {
        self.position = None;
    }

    /// Everything that was told.
    pub(super) fn objects(&self) -> impl Iterator<Item = &Watched> {
        self.objects.keys().chain(self.unlisted.keys())
    }

    fn take(&mut self, watched: &Watched) -> Option<Mark> {
        self.unlisted.remove(watched).or_else(|| self.objects.remove(watched))
    }
}

/// How an object was told.
#[derive(Clone)]
struct Mark {
    ours: bool,
    /// By whom an unrelated object may turn out to be ours.
    owners: Box<[Box<str>]>,
}

/// Why a list or a watch ended.
enum Failure {
    /// The user may not.
    Forbidden(String),
    /// The server does not know the resource version any more.
    Expired,
    /// No answer came, or it broke off.
    Lost(String),
    /// The server refused.
    Refused(String),
}

impl Failure {
    fn of(error: &kube::Error) -> Failure {
        match error {
            kube::Error::Api(status) if status.code == 403 => Failure::Forbidden(status.message.clone()),
            kube::Error::Api(status) if status.code == 410 => Failure::Expired,
            kube::Error::Api(status) => Failure::Refused(status.message.clone()),
            other => Failure::Lost(other.to_string()),
        }
    }
}

impl From<serde_json::Error> for Failure {
    fn from(error: serde_json::Error) -> Failure {
        Failure::Refused(error.to_string())
    }
}

/// The user may not watch a kind.
pub(super) struct Refused {
    /// The API server's words.
    pub(super) why: String,
    /// For how long it could be watched before.
    pub(super) stood: Duration,
}

/// The news about one object.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Telling {
    /// Nothing: an unrelated object whose key is known.
    Nothing,
    /// Its key.
    Key,
    /// Nothing but that an unrelated object was changed, and by whom.
    Changed,
    /// An object came.
    Object,
    /// All of it, which has to be asked for; what came, where it cannot be read.
    Whole,
}

/// One kind on its way to the state.
pub(super) struct Kind {
    pub(super) client: Client,
    pub(super) resource: ApiResource,
    pub(super) namespaced: bool,
    /// The only namespace, where it is not all of them.
    pub(super) namespace: Option<String>,
    pub(super) gvk: Arc<Gvk>,
    pub(super) reads: Reads,
    pub(super) events: EventSink,
    pub(super) attention: Attention,
    pub(super) project_objects: ProjectObjects,
}

impl Kind {
    /// Follows the kind until the API server refuses it.
    ///
    /// # Errors
    /// Where the user may not watch the kind.
    pub(super) async fn follow(&mut self, known: &mut Known) -> Result<(), Refused> {
        known.followed = None;
        let mut failures = 0;
        let mut pause = PAUSE.0;
        loop {
            let ended = self.list_and_watch(known, &mut failures).await;
            if failures == 0 {
                pause = PAUSE.0;
            }
            let why = match ended {
                Ok(()) => continue,
                // Asking again at once would be refused again.
                Err(Failure::Forbidden(why)) => {
                    let stood = known.followed.map_or(Duration::ZERO, |since| since.elapsed());
                    return Err(Refused { why, stood });
                }
                Err(Failure::Expired) => {
                    known.position = None;
                    "the resource version is too old".to_owned()
                }
                Err(Failure::Refused(why)) => {
                    known.position = None;
                    why
                }
                Err(Failure::Lost(why)) => why,
            };
            failures += 1;
            tracing::debug!(kind = %self.gvk.kind, "watch: {why}");
            if failures > FAILURES {
                return Ok(());
            }
            if failures > 1 || known.position.is_some() {
                tokio::time::sleep(pause).await;
                pause = (pause * 2).min(PAUSE.1);
            }
        }
    }

    async fn list_and_watch(&mut self, known: &mut Known, failures: &mut u32) -> Result<(), Failure> {
        if known.position.is_none() || known.epoch != self.project_objects.epoch() {
            self.project_objects.owners_listed(&self.gvk).await;
            known.epoch = self.project_objects.epoch();
            // Until the list is complete there is no place to go on from.
            known.position = None;
            let position = self.list(known).await?;
            known.position = Some(position);
            self.project_objects.listed(&self.gvk, self.namespace.as_deref());
            *failures = 0;
        }
        let (begun, before) = (Instant::now(), known.position.clone());
        known.followed.get_or_insert(begun);
        self.watch(known, failures).await?;
        // A server that ends each watch at once is not asked again at once.
        if begun.elapsed() < PAUSE.0
            && before == known.position
            && known.epoch == self.project_objects.epoch()
        {
            tokio::time::sleep(PAUSE.0).await;
        }
        Ok(())
    }

    /// Returns true if nothing but metadata is asked for.
    fn asks_for_metadata(&self) -> bool {
        match self.reads {
            Reads::Whole => false,
            Reads::WholeOnceUsed => !self.project_objects.has_custom_resources(),
            Reads::Metadata => true,
        }
    }

    /// Kubernetes Events are told as they come, and none of them is missed.
    fn is_event(&self) -> bool {
        self.gvk.is_event()
    }

    fn request(&self, query: &str, metadata: Option<&str>) -> Result<Request<Vec<u8>>, Failure> {
        let path = plural_path(&self.resource, self.namespace.as_deref().filter(|_| self.namespaced));
        let form = metadata.map_or_else(
            || "application/json".to_owned(),
            |kind| format!("application/json;as={kind};g=meta.k8s.io;v=v1"),
        );
        let request = Request::get(format!("{path}?{query}")).header(ACCEPT, form);
        // Each event of a compressed watch would be a file of its own.
        let request = request.header(ACCEPT_ENCODING, "identity").body(Vec::new());
        request.map_err(|error| Failure::Refused(error.to_string()))
    }

    /// Tells all objects page by page, and those that are gone; says up to which resource version.
    async fn list(&mut self, known: &mut Known) -> Result<String, Failure> {
        let metadata = self.asks_for_metadata();
        let form = metadata.then_some("PartialObjectMetadataList");
        known.unlisted.append(&mut known.objects);
        let mut next = String::new();
        let version = loop {
            let request = self.request(&format!("limit={PAGE}{next}"), form)?;
            let text = self.client.request_text(request).await.map_err(|error| Failure::of(&error))?;
            let page: Page = serde_json::from_str(&text)?;
            self.page(&page, &text, metadata, known).await?;
            match page.metadata.next.filter(|token| !token.is_empty()) {
                Some(token) => next = format!("&continue={}", escape(&token)),
                None => break page.metadata.resource_version.unwrap_or_default(),
            }
        };
        while let Some((gone, mark)) = known.unlisted.first_key_value() {
            self.gone(gone, mark).await;
            known.unlisted.pop_first();
        }
        Ok(version)
    }

    async fn page(
        &mut self,
        page: &Page,
        text: &str,
        metadata: bool,
        known: &mut Known,
    ) -> Result<(), Failure> {
        let mut tellings = Vec::with_capacity(page.items.len());
        let mut unrelated = Vec::new();
        for partial_object in &page.items {
            let watched = Watched::of(partial_object);
            let before = known.take(&watched);
            // Listed objects were there before, and their metadata is enough.
            let telling = self.sort(&watched, partial_object, metadata, false, before, known);
            if let Telling::Key = telling {
                unrelated.push(watched.unrelated());
            }
            tellings.push((telling, watched));
        }
        self.unrelated(unrelated).await;
        let wanted: Vec<bool> =
            tellings.iter().map(|(telling, _)| matches!(telling, Telling::Object | Telling::Whole)).collect();
        if !wanted.contains(&true) {
            return Ok(());
        }
        let objects = partial_object::pick(text, "items", &wanted)?;
        for (object, (telling, watched)) in objects.into_iter().zip(tellings) {
            let Some(object) = object else { continue };
            self.tell(object, &watched, metadata, matches!(telling, Telling::Whole)).await;
        }
        Ok(())
    }

    /// Finds out what is to be told of an object, and remembers it. `fresh`: it was made while the kind was
    /// watched.
    fn sort(
        &self,
        watched: &Watched,
        partial_object: &PartialObject,
        metadata: bool,
        fresh: bool,
        before: Option<Mark>,
        known: &mut Known,
    ) -> Telling {
        if self.is_event() {
            return Telling::Object;
        }
        let ours = self.project_objects.is_ours(&self.gvk, watched, partial_object);
        let looked_at = self.is_looked_at(watched);
        if looked_at {
            known.looked = Some(watched.clone());
        }
        let owners = partial_object.owners().filter(|_| !ours).map(Box::from).collect();
        known.objects.insert(watched.clone(), Mark { ours, owners });
        if !ours && !looked_at {
            let is_known = before.is_some_and(|mark| !mark.ours) && known.looked.as_ref() != Some(watched);
            return match is_known {
                true if self.reads == Reads::Whole && !is_restless(&self.gvk.kind) => Telling::Changed,
                true => Telling::Nothing,
                false => Telling::Key,
            };
        }
        let whole = match self.reads {
            Reads::Whole => false,
            Reads::WholeOnceUsed => true,
            Reads::Metadata => looked_at || fresh && !partial_object.is_record(&self.gvk),
        };
        if metadata && whole { Telling::Whole } else { Telling::Object }
    }

    /// Tells what happens from the known position on, until the watch ends, or has to be another one.
    async fn watch(&mut self, known: &mut Known, failures: &mut u32) -> Result<(), Failure> {
        let metadata = self.asks_for_metadata();
        let position = escape(known.position.as_deref().unwrap_or_default());
        let query = format!(
            "watch=true&allowWatchBookmarks=true&timeoutSeconds={WATCH_SECONDS}&resourceVersion={position}"
        );
        let request = self.request(&query, metadata.then_some("PartialObjectMetadata"))?;
        let mut changes = self.project_objects.changes();
        // Changes while the list was read are looked at, too.
        changes.mark_changed();
        let lines = self.client.request_stream(request).await.map_err(|error| Failure::of(&error))?;
        pin_mut!(lines);
        self.adopt(known).await;
        let mut line = Vec::new();
        let (mut busy, mut rest) = (Busy::default(), None);
        loop {
            // The content that was read of a line stays in it while something else comes first.
            let read = async {
                if let Some(until) = rest {
                    tokio::time::sleep_until(until).await;
                }
                lines.read_until(b'\n', &mut line).await
            };
            tokio::select! {
                read = read => {
                    read.map_err(|error| Failure::Lost(error.to_string()))?;
                    if !line.ends_with(b"\n") {
                        return Ok(());
                    }
                    let telling = self.line(&line, metadata, known).await?;
                    *failures = 0;
                    line.clear();
                    line.shrink_to(BUFFER);
                    busy.came(matches!(telling, Telling::Nothing | Telling::Changed), Instant::now());
                    rest = match busy.pause(Instant::now()) {
                        Some(until) => match lines.fill_buf().now_or_never() {
                            Some(Ok(_)) => None,
                            Some(Err(error)) => return Err(Failure::Lost(error.to_string())),
                            None => Some(until.into()),
                        },
                        None => None,
                    };
                }
                Ok(()) = self.attention.looked_at.changed() => self.look(known).await,
                Ok(()) = changes.changed() => {
                    self.adopt(known).await;
                    if known.epoch != self.project_objects.epoch() || metadata != self.asks_for_metadata() {
                        return Ok(());
                    }
                }
            }
        }
    }

    /// Takes in one event; what of it was told.
    async fn line(&mut self, line: &[u8], metadata: bool, known: &mut Known) -> Result<Telling, Failure> {
        let text = std::str::from_utf8(line).map_err(|error| Failure::Refused(error.to_string()))?;
        let Line { event, object: partial_object } = serde_json::from_str(text)?;
        if event == "ERROR" {
            let status = partial_object::object_of(text)?;
            return Err(match status.get("code").and_then(Value::as_u64) {
                Some(410) => Failure::Expired,
                Some(403) => Failure::Forbidden(status["message"].as_str().unwrap_or_default().to_owned()),
                _ => Failure::Refused(status.to_string()),
            });
        }
        if let Some(version) = &partial_object.metadata.resource_version {
            known.position = Some(version.clone());
        }
        if event == "BOOKMARK" {
            return Ok(Telling::Nothing);
        }
        let watched = Watched::of(&partial_object);
        if event == "DELETED" {
            if let Some(mark) = known.take(&watched) {
                self.gone(&watched, &mark).await;
            }
            return Ok(Telling::Key);
        }
        let before = known.take(&watched);
        let fresh = before.is_none();
        let telling = self.sort(&watched, &partial_object, metadata, fresh, before, known);
        match telling {
            Telling::Nothing => {}
            Telling::Key => self.unrelated(vec![watched.unrelated()]).await,
            Telling::Changed => {
                let by = newest_manager(&partial_object::object_of(text)?);
                let changed_by = Some(by.unwrap_or_default());
                self.unrelated(vec![UnrelatedObject { changed_by, ..watched.unrelated() }]).await;
            }
            Telling::Object => self.tell(partial_object::object_of(text)?, &watched, metadata, false).await,
            Telling::Whole => self.tell(partial_object::object_of(text)?, &watched, metadata, true).await,
        }
        Ok(telling)
    }

    fn is_looked_at(&self, watched: &Watched) -> bool {
        let looked_at = self.attention.looked_at.borrow();
        looked_at.as_ref().is_some_and(|object| {
            object.gvk.kind == self.gvk.kind
                && object.gvk.group == self.gvk.group
                && object.namespace == watched.namespace
                && object.name == watched.name
        })
    }

    /// Reads the object that somebody looks at now, where it is one of these. Of an unrelated object that
    /// nobody looks at any more nothing is kept again but its key.
    async fn look(&mut self, known: &mut Known) {
        self.attention.looked_at.borrow_and_update();
        if let Some(before) = known.looked.take()
            && known.objects.get(&before).is_some_and(|mark| !mark.ours)
        {
            self.unrelated(vec![before.unrelated()]).await;
        }
        let Some((watched, mark)) = known.objects.iter().find(|(watched, _)| self.is_looked_at(watched))
        else {
            return;
        };
        let watched = watched.clone();
        if !mark.ours || self.asks_for_metadata() {
            self.read(&watched).await;
        }
        known.looked = Some(watched);
    }

    /// Reads unrelated objects that have turned out to belong to the project.
    async fn adopt(&mut self, known: &mut Known) {
        for watched in self.project_objects.take_adopted(&self.gvk, self.namespace.as_deref()) {
            if !known.objects.contains_key(&watched) {
                continue;
            }
            let Some(object) = self.get(&watched).await else { continue };
            let partial_object: PartialObject = serde_json::from_value(object.clone()).unwrap_or_default();
            // Another one of this name is told by the watch.
            if partial_object.metadata.uid != watched.uid {
                continue;
            }
            let ours = self.project_objects.is_ours(&self.gvk, &watched, &partial_object);
            let owners = partial_object.owners().filter(|_| !ours).map(Box::from).collect();
            known.objects.insert(watched.clone(), Mark { ours, owners });
            if ours {
                self.tell(object, &watched, false, false).await;
            }
        }
    }

    /// Reads one object and tells it.
    async fn read(&self, watched: &Watched) {
        if let Some(object) = self.get(watched).await {
            self.tell(object, watched, false, false).await;
        }
    }

    /// The whole of one object; nothing where it is gone, or may not be read, which is told.
    async fn get(&self, watched: &Watched) -> Option<Value> {
        let namespace = watched.namespace.as_deref().filter(|_| self.namespaced);
        let request =
            Request::get(object_path(&self.resource, namespace, &watched.name)).body(Vec::new()).ok()?;
        let why = match self.client.request::<Value>(request).await {
            Ok(object) => return Some(object),
            Err(kube::Error::Api(status)) if status.code == 404 => return None,
            Err(kube::Error::Api(status)) => status.message.clone(),
            Err(other) => other.to_string(),
        };
        let (kind, name) = (&self.gvk.kind, &watched.name);
        let message = format!("only the metadata of {kind} {name} is known: {why}");
        let hint =
            Some(format!("showing the whole of it needs the right to get a {kind}, not only to list them"));
        let notice = Notice { at: Timestamp::now(), level: Level::Warn, message, hint, object: None };
        self.events.emit(Event::Noticed(notice)).await;
        None
    }

    /// Tells of an object; all of it where that is wanted and it can be read.
    async fn tell(&self, object: Value, watched: &Watched, metadata_only: bool, whole: bool) {
        let (mut object, metadata_only) = match whole {
            true => self.get(watched).await.map_or((object, metadata_only), |whole| (whole, false)),
            false => (object, metadata_only),
        };
        // Items of lists do not say what they are, and what calls itself PartialObjectMetadata is none to
        // whoever sees it.
        if let Some(fields) = object.as_object_mut() {
            fields.insert("apiVersion".to_owned(), self.gvk.api_version().into());
            fields.insert("kind".to_owned(), self.gvk.kind.as_str().into());
        }
        mask::in_place(&mut object);
        let mut object_ref = watched.reference(&self.gvk);
        object_ref.uid = meta::uid(&object).map(str::to_owned);
        // Where many events wait, what they would be made of takes too much room.
        let object = match self.events.is_behind() {
            true => Body::new(&object),
            false => Body::with_first(object),
        };
        let seen = ObjectSeen { at: Timestamp::now(), object_ref, metadata_only, object };
        self.events.emit(Event::ObjectSeen(seen)).await;
    }

    /// Tells the keys of unrelated objects.
    async fn unrelated(&self, objects: Vec<UnrelatedObject>) {
        if !objects.is_empty() {
            let gvk = self.gvk.as_ref().clone();
            let seen = UnrelatedSeen { at: Timestamp::now(), gvk, objects };
            self.events.emit(Event::UnrelatedSeen(seen)).await;
        }
    }

    async fn gone(&self, gone: &Watched, mark: &Mark) {
        self.project_objects.gone(&self.gvk, gone, &mark.owners);
        self::gone(&self.events, gone.reference(&self.gvk)).await;
    }
}

/// True for kinds that the plane's own controllers write all the time, and of which nobody asks who did.
fn is_restless(kind: &str) -> bool {
    ["Lease", "Node", "Pod", "ReplicaSet", "Endpoints", "EndpointSlice"].contains(&kind)
}

/// The manager of the newest entry in `managedFields`.
fn newest_manager(object: &Value) -> Option<String> {
    let entries = object.pointer("/metadata/managedFields")?.as_array()?;
    let newest = entries.iter().max_by_key(|entry| entry["time"].as_str().unwrap_or_default())?;
    newest["manager"].as_str().map(str::to_owned)
}

/// Tells that an object is gone.
pub(super) async fn gone(events: &EventSink, object_ref: ObjectRef) {
    events.emit(Event::ObjectGone(ObjectGone { at: Timestamp::now(), object_ref })).await;
}
