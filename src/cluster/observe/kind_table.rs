//! The table of a kind that the user looks at: read in pages as the API server prints it (`as=Table`), then
//! watched, and told as a whole after each change. One table at a time, and one row of it whose object is
//! read whole. Cells are the server's own text; only ages that count from an object's creation are left to
//! the screen.

mod answer;
#[cfg(test)]
mod tests;

use super::served_kinds;
use answer::{Answer, Line};
use anyhow::{Context as _, Result};
use futures::{AsyncBufReadExt as _, pin_mut};
use http::Request;
use http::header::{ACCEPT, ACCEPT_ENCODING};
use jiff::Timestamp;
use kube::Client;
use kube::core::ApiResource;
use opdev_client::error_words::told;
use opdev_client::{ApiError, escape, is_forbidden, is_not_found, object_path, plural_path};
use opdev_event::sink::EventSink;
use opdev_event::{Body, Event, KindTable, ObjectSeen, ServedKind, TableQuery, TableRow, mask};
use opdev_object::meta::ObjectRef;
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// Objects in one page of a list.
const PAGE: usize = 500;
/// Changes that come at once are told together, and no more often than this.
const TELLING: Duration = Duration::from_millis(150);
/// A large one when the watch ends, as the server would end it.
const WATCH_SECONDS: u32 = 290;

/// When a table is read again.
#[derive(Clone, Copy)]
struct Pace {
    /// The first pause after a failure.
    first: Duration,
    /// The longest.
    longest: Duration,
    /// A kind that is not served is looked for again after this: its CRD is often applied a moment later.
    missing: Duration,
    /// A small table is read anew after this many seconds, for cells that count time grow old without a
    /// change.
    small_seconds: u32,
}

const PACE: Pace = Pace {
    first: Duration::from_secs(1),
    longest: Duration::from_secs(30),
    missing: Duration::from_secs(2),
    small_seconds: 30,
};

/// Kinds that were listed so long ago are listed again where somebody wants to choose one.
const KINDS_OLD: Duration = Duration::from_secs(10);
/// `includeObject=Metadata` is what servers do unasked.
const FORM: &str = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json";

/// The table that is looked at.
pub struct KindTables {
    client: Client,
    /// The only namespace that opdev works in, where it is not all of them.
    scope: Option<String>,
    /// The namespace that objects without one go to.
    home: String,
    events: EventSink,
    pace: Pace,
    running: Option<CancellationToken>,
    /// When the kinds were asked for last.
    listed: Option<Instant>,
    row: watch::Sender<Option<ObjectRef>>,
    tasks: TaskTracker,
    shutdown: CancellationToken,
}

impl KindTables {
    pub fn new(
        client: Client,
        (scope, home): (Option<String>, String),
        events: EventSink,
        tasks: TaskTracker,
        shutdown: CancellationToken,
    ) -> Self {
        KindTables {
            client,
            scope,
            home,
            events,
            pace: PACE,
            running: None,
            listed: None,
            row: watch::Sender::default(),
            tasks,
            shutdown,
        }
    }

    /// Tells which kinds are served. A server that does not say is asked again by whoever needs to know.
    pub fn list_kinds(&mut self) {
        if self.listed.is_some_and(|at| at.elapsed() < KINDS_OLD) {
            return;
        }
        self.listed = Some(Instant::now());
        let (client, events) = (self.client.clone(), self.events.clone());
        self.tasks.spawn(self.shutdown.clone().run_until_cancelled_owned(async move {
            match served_kinds::list(&client).await {
                Ok(kinds) => events.emit(Event::KindsServed { kinds }).await,
                Err(error) => tracing::debug!("the kinds of the API server are not known: {error}"),
            }
        }));
    }

    /// Shows this table and no other.
    pub fn show(&mut self, query: Option<TableQuery>) {
        if let Some(before) = self.running.take() {
            before.cancel();
        }
        self.row.send_replace(None);
        let events = self.events.clone();
        let token = self.shutdown.child_token();
        let Some(query) = query else {
            let gone = async move { events.emit(Event::TableChanged { table: None }).await };
            self.tasks.spawn(self.shutdown.clone().run_until_cancelled_owned(gone));
            return;
        };
        let following = Following {
            client: self.client.clone(),
            pace: self.pace,
            scope: self.scope.clone(),
            home: self.home.clone(),
            events,
            row: self.row.subscribe(),
            token: token.clone(),
            table: KindTable {
                at: Timestamp::now(),
                kind: None,
                namespace: None,
                columns: Vec::new(),
                rows: Vec::new(),
                missing: 0,
                complete: false,
                problem: None,
                note: None,
                query,
            },
            rows: BTreeMap::new(),
            plain: false,
            unwatched: false,
        };
        self.tasks.spawn(token.clone().run_until_cancelled_owned(following.run()));
        self.running = Some(token);
    }

    /// Reads this object of the table whole, and no other.
    pub fn read_row(&self, object: Option<ObjectRef>) {
        self.row.send_replace(object);
    }
}

/// The key that tells one row from the others, and orders them as an API server does.
type Key = (Option<String>, String);

/// The table on its way to the state.
struct Following {
    client: Client,
    pace: Pace,
    scope: Option<String>,
    home: String,
    events: EventSink,
    row: watch::Receiver<Option<ObjectRef>>,
    token: CancellationToken,
    table: KindTable,
    rows: BTreeMap<Key, Arc<TableRow>>,
    /// True if the server knows no Tables, not in a watch either.
    plain: bool,
    /// True if it may be listed, but not watched.
    unwatched: bool,
}

/// Why a table is not followed any more.
enum Ended {
    /// Read it again now.
    Again,
    /// The server has refused it, or does not answer.
    Failed(anyhow::Error),
}

impl From<anyhow::Error> for Ended {
    fn from(error: anyhow::Error) -> Self {
        Ended::Failed(error)
    }
}

impl From<kube::Error> for Ended {
    fn from(error: kube::Error) -> Self {
        Ended::Failed(ApiError::from(error).into())
    }
}

impl Following {
    /// Follows it until the user looks at it no more. What a word means is asked again: a kind may come, or
    /// change its version.
    async fn run(mut self) {
        let mut pause = self.pace.first;
        loop {
            let begun = Instant::now();
            let ended = match self.table.kind.clone() {
                None => match self.find().await {
                    Ok(true) => continue,
                    Ok(false) => {
                        tokio::time::sleep(self.pace.missing).await;
                        continue;
                    }
                    Err(error) => Ended::Failed(error),
                },
                Some(kind) => match self.read_and_watch(&kind).await {
                    Ok(()) => Ended::Again,
                    Err(ended) => ended,
                },
            };
            match ended {
                Ended::Again if begun.elapsed() >= self.pace.first => pause = self.pace.first,
                // A server that ends each watch at once is not asked again at once.
                Ended::Again => {
                    tokio::time::sleep(pause).await;
                    pause = (pause * 2).min(self.pace.longest);
                }
                Ended::Failed(error) => {
                    if self.falls_back(&error) {
                        continue;
                    }
                    self.table.problem = Some(self.problem(&error));
                    if is_not_found(&error) {
                        self.table.kind = None;
                    }
                    self.tell().await;
                    tokio::time::sleep(pause).await;
                    pause = (pause * 2).min(self.pace.longest);
                }
            }
        }
    }

    /// Finds out which kind the word means; false where it means none.
    async fn find(&mut self) -> Result<bool> {
        let kinds = served_kinds::list(&self.client).await?;
        let found = served_kinds::find(&self.table.query.kind, &kinds);
        self.events.emit(Event::KindsServed { kinds }).await;
        match found {
            Ok(kind) => {
                let asked = self.table.query.namespace.clone().or_else(|| self.scope.clone());
                self.table.namespace = asked.filter(|_| kind.namespaced);
                self.table.kind = Some(kind);
                self.table.problem = None;
                Ok(true)
            }
            Err(why) => {
                self.table.problem = Some(why.to_string());
                self.tell().await;
                Ok(false)
            }
        }
    }

    /// A user who may not list all namespaces may be allowed to list the own one.
    fn falls_back(&mut self, error: &anyhow::Error) -> bool {
        let namespaced = self.table.kind.as_ref().is_some_and(|kind| kind.namespaced);
        let all = self.table.namespace.is_none() && namespaced && !self.home.is_empty();
        let falls_back = all && is_forbidden(error);
        if falls_back {
            self.table.note = Some(format!("only {}: other namespaces may not be listed", self.home));
            self.table.namespace = Some(self.home.clone());
        }
        falls_back
    }

    fn problem(&self, error: &anyhow::Error) -> String {
        let what =
            self.table.kind.as_ref().map_or_else(|| self.table.query.kind.clone(), ServedKind::full_name);
        if is_forbidden(error) {
            let place = self.table.namespace.as_ref().map_or_else(String::new, |name| format!(" in {name}"));
            return format!("the kubeconfig's user may not list {what}{place}: {}", told(error));
        }
        format!("{what} cannot be listed: {}", told(error))
    }

    async fn read_and_watch(&mut self, kind: &ServedKind) -> Result<(), Ended> {
        let position = self.read(kind).await?;
        let small = self.rows.len() <= PAGE;
        if !kind.watched || self.plain || self.unwatched {
            let row = self.row.clone();
            self.keep_row(kind, row, Duration::from_secs(self.pace.small_seconds.into())).await;
            return Ok(());
        }
        let seconds = if small { self.pace.small_seconds } else { WATCH_SECONDS };
        match self.watch(kind, &position, seconds).await {
            Err(Ended::Failed(error)) if is_forbidden(&error) => {
                self.unwatched = true;
                let what = kind.full_name();
                self.table.note = Some(format!(
                    "the kubeconfig's user may not watch {what}: the table is read every {} s",
                    self.pace.small_seconds
                ));
                self.tell().await;
                Ok(())
            }
            ended => ended,
        }
    }

    fn request(&self, kind: &ServedKind, query: &str) -> Result<Request<Vec<u8>>> {
        let path = plural_path(&resource(kind), self.table.namespace.as_deref());
        let request = Request::get(format!("{path}?{query}")).header(ACCEPT, FORM);
        Ok(request.header(ACCEPT_ENCODING, "identity").body(Vec::new())?)
    }

    /// Reads all pages. The first is told at once, later ones now and then; what was there before stays until
    /// all is read.
    async fn read(&mut self, kind: &ServedKind) -> Result<String, Ended> {
        let first_time = self.table.columns.is_empty();
        let mut fresh: BTreeMap<Key, Arc<TableRow>> = BTreeMap::new();
        let (mut next, mut told) = (String::new(), Instant::now());
        loop {
            let request = self.request(kind, &format!("limit={PAGE}{next}"))?;
            let text = self.client.request_text(request).await?;
            let answer: Answer = serde_json::from_str(&text).context("the list cannot be read")?;
            self.plain = answer.is_plain();
            let (columns, rows) = answer.table(kind);
            if let Some(columns) = columns {
                self.table.columns = columns;
            }
            self.put(rows, &mut fresh);
            let missing = answer.metadata.remaining_item_count.unwrap_or(0);
            match answer.metadata.next.filter(|token| !token.is_empty()) {
                Some(token) => {
                    next = format!("&continue={}", escape(&token));
                    if first_time && (self.rows.is_empty() || told.elapsed() >= TELLING * 4) {
                        self.rows.clone_from(&fresh);
                        (self.table.missing, self.table.complete) = (missing, false);
                        self.table.problem = None;
                        self.tell().await;
                        told = Instant::now();
                    }
                }
                None => {
                    self.rows = fresh;
                    (self.table.missing, self.table.complete) = (0, true);
                    self.table.problem = None;
                    self.tell().await;
                    return Ok(answer.metadata.resource_version.unwrap_or_default());
                }
            }
        }
    }

    /// Takes rows in. A cell under a secret name is masked.
    fn put(&self, rows: Vec<TableRow>, into: &mut BTreeMap<Key, Arc<TableRow>>) {
        let group = self.table.kind.as_ref().map_or("", |kind| kind.gvk.group.as_str());
        // Kubernetes' own columns have no secrets; `SECRETS` of a ServiceAccount is a number.
        let own = !group.contains('.') || group.ends_with(".k8s.io");
        let is_secret = |at: &usize| !own && mask::is_secret_name(&self.table.columns[*at].name);
        let secret: Vec<usize> = (0..self.table.columns.len()).filter(is_secret).collect();
        for mut row in rows {
            for at in &secret {
                if let Some(cell) = row.cells.get_mut(*at) {
                    mask::MASK.clone_into(cell);
                }
            }
            let key = (row.object_ref.namespace.clone(), row.object_ref.name.clone());
            into.insert(key, Arc::new(row));
        }
    }

    /// Takes changes in, until the watch ends.
    async fn watch(&mut self, kind: &ServedKind, position: &str, seconds: u32) -> Result<(), Ended> {
        let query = format!(
            "watch=true&allowWatchBookmarks=true&timeoutSeconds={seconds}&resourceVersion={}",
            escape(position)
        );
        let lines = self.client.request_stream(self.request(kind, &query)?).await?;
        pin_mut!(lines);
        let mut row = self.row.clone();
        row.mark_changed();
        let mut line = Vec::new();
        // Told once a moment has passed without being told.
        let mut due: Option<Instant> = None;
        loop {
            let wait = due.unwrap_or_else(|| Instant::now() + self.pace.longest);
            tokio::select! {
                read = lines.read_until(b'\n', &mut line) => {
                    read.map_err(|error| Ended::Failed(error.into()))?;
                    if !line.ends_with(b"\n") {
                        break;
                    }
                    let touched = self.line(kind, &line)?;
                    line.clear();
                    if touched.is_empty() {
                        continue;
                    }
                    due.get_or_insert_with(|| Instant::now() + TELLING);
                    if is_of(row.borrow().as_ref(), &touched) {
                        row.mark_changed();
                    }
                }
                () = tokio::time::sleep_until(wait), if due.is_some() => {
                    due = None;
                    self.tell().await;
                }
                Ok(()) = row.changed() => {
                    let object = row.borrow_and_update().clone();
                    self.read_row(kind, object).await;
                }
            }
        }
        if due.is_some() {
            self.tell().await;
        }
        Ok(())
    }

    /// Takes one event of the watch in; the answer is whose rows have changed.
    fn line(&mut self, kind: &ServedKind, line: &[u8]) -> Result<Vec<Key>, Ended> {
        let line: Line = serde_json::from_slice(line).context("an event of the watch cannot be read")?;
        match line.event.as_str() {
            "BOOKMARK" => return Ok(Vec::new()),
            // The error nearly always says that the position is too old: all is read anew.
            "ERROR" => return Err(Ended::Again),
            _ => {}
        }
        let (_, rows) = line.object.table(kind);
        let key = |row: &TableRow| (row.object_ref.namespace.clone(), row.object_ref.name.clone());
        let touched: Vec<Key> = rows.iter().map(key).collect();
        if line.event == "DELETED" {
            for key in &touched {
                self.rows.remove(key);
            }
        } else {
            let mut all = std::mem::take(&mut self.rows);
            self.put(rows, &mut all);
            self.rows = all;
        }
        Ok(touched)
    }

    /// Where a kind cannot be watched: the selected row is read as it is selected, for this long.
    async fn keep_row(&self, kind: &ServedKind, mut row: watch::Receiver<Option<ObjectRef>>, time: Duration) {
        row.mark_changed();
        let reading = async {
            while row.changed().await.is_ok() {
                let object = row.borrow_and_update().clone();
                self.read_row(kind, object).await;
            }
        };
        // That it ends is what is waited for.
        let _ = tokio::time::timeout(time, reading).await;
    }

    /// Reads the object of the selected row and tells it; nothing where it is gone, or may not be read.
    async fn read_row(&self, kind: &ServedKind, object: Option<ObjectRef>) {
        let Some(object_ref) = object else { return };
        if object_ref.gvk != kind.gvk {
            return;
        }
        let path = object_path(&resource(kind), object_ref.namespace.as_deref(), &object_ref.name);
        let Ok(request) = Request::get(path).body(Vec::new()) else { return };
        match self.client.request::<Value>(request).await {
            Ok(mut object) => {
                mask::in_place(&mut object);
                let seen = ObjectSeen {
                    at: Timestamp::now(),
                    object_ref,
                    metadata_only: false,
                    object: Body::new(&object),
                };
                self.emit(Event::RowRead(seen)).await;
            }
            Err(error) => {
                tracing::debug!("the object of the selected row is not read: {}", told(&error.into()));
            }
        }
    }

    async fn tell(&mut self) {
        self.table.at = Timestamp::now();
        self.table.rows = self.rows.values().cloned().collect();
        self.emit(Event::TableChanged { table: Some(Arc::new(self.table.clone())) }).await;
    }

    /// A table that was left must not come back.
    async fn emit(&self, event: Event) {
        if !self.token.is_cancelled() {
            self.events.emit(event).await;
        }
    }
}

fn is_of(object: Option<&ObjectRef>, touched: &[Key]) -> bool {
    object.is_some_and(|object| {
        touched.iter().any(|(namespace, name)| *namespace == object.namespace && *name == object.name)
    })
}

fn resource(kind: &ServedKind) -> ApiResource {
    ApiResource {
        group: kind.gvk.group.clone(),
        version: kind.gvk.version.clone(),
        api_version: kind.gvk.api_version(),
        kind: kind.gvk.kind.clone(),
        plural: kind.plural.clone(),
    }
}
