//! The watched kinds: those of the sources, the kinds of their releases' objects, the children and the reads
//! of programs, and the CRDs. One stream for each thing to follow, whoever asks for it, ended when nobody
//! does any more. Never queues by itself; `wakes` says which objects an event wakes.

use super::changed_while_running::{During, Unread};
use super::wakes::{self, Readers, Wake};
use crate::queue::Kind;
use jiff::Timestamp;
use opdev_cache::caches::{Hub, Shared};
use opdev_cache::change::Happened;
use opdev_cache::interest::Interest;
use opdev_cache::mapping::{Primary, primaries_of};
use opdev_cache::stream::{Follow, Said, Streams, Wanted};
use opdev_cache::stream_cache::Raw;
use opdev_client::forbidden::FORBIDDEN_HINT;
use opdev_event::WatchEvent;
use opdev_object::meta::{self, Gvk, ObjectKey, ObjectRef};
use opdev_release::objects::inject::CHART_LABEL;
use opdev_script::contract::Read;
use opdev_sources::{Reconciler, Sources, TypeReconciler, Watch};
use serde_json::Value;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;
use tokio::sync::{mpsc, watch};
use tokio::task::AbortHandle;

/// A message of a stream, and the stream.
#[derive(Debug)]
pub(super) struct Message {
    stream: u64,
    said: Said,
}

/// The consequences of a message.
#[derive(Debug, Default)]
pub(super) struct Heard {
    pub(super) wakes: Vec<Wake>,
    /// Questions to scripts beside charts.
    pub(super) maps: Vec<ToMap>,
    /// The problem that keeps a kind from being watched, and its fix.
    pub(super) problem: Option<(String, Option<String>)>,
}

/// A change of an object, and the script to ask.
#[derive(Debug)]
pub(super) struct ToMap {
    pub(super) script: Arc<TypeReconciler>,
    /// The place of the entry in its `watches`.
    pub(super) at: usize,
    /// The kind that the script stands for.
    pub(super) primary: Gvk,
    pub(super) object: Arc<Value>,
    pub(super) event: WatchEvent,
}

/// Objects that a reconcile wants to be followed, and those it has seen.
#[derive(Debug, Default)]
pub(super) struct Seen {
    /// Kinds of a release's objects.
    pub(super) dependents: Vec<Gvk>,
    /// Kinds of children.
    pub(super) children: Vec<Gvk>,
    /// The reads, where the reconcile is a program's.
    pub(super) reads: Option<Vec<Read>>,
    /// States of objects, and whether the reconcile wrote them.
    pub(super) known: Vec<(Arc<Value>, bool)>,
    /// Objects that the reconcile deleted.
    pub(super) buried: Vec<Arc<Value>>,
}

/// Everything that is watched.
pub(super) struct Kinds {
    streams: Streams,
    types: watch::Sender<u64>,
    inbox: mpsc::Sender<Message>,
    /// The namespaces that are watched, and whose custom resources are reconciled; none means all.
    namespaces: Vec<String>,
    hub: Arc<Hub>,
    primaries: HashMap<Kind, Served>,
    /// Kinds of charts' objects, by the charts' label.
    dependents: HashSet<Gvk>,
    readers: Readers,
    unread: Unread,
    open: HashMap<Follow, Stream>,
    ids: HashMap<u64, Follow>,
    next: u64,
    crds: Option<(u64, AbortHandle)>,
    /// When opdev began to watch: what was created before was already there.
    began: Timestamp,
}

pub(super) struct Served {
    pub(super) watch: Arc<Watch>,
    pub(super) follow: Follow,
    pub(super) namespaced: bool,
    /// Kinds of children, of a program only: those it names and those it was seen to write.
    pub(super) children: BTreeSet<Gvk>,
}

impl Served {
    /// Returns true if a program reconciles it.
    pub(super) fn is_typed(&self) -> bool {
        matches!(self.watch.reconciler, Reconciler::Type(_))
    }
}

struct Stream {
    id: u64,
    cache: Shared,
    task: AbortHandle,
    problem: Option<String>,
}

impl Drop for Stream {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Kinds {
    pub(super) fn new(
        streams: Streams,
        types: watch::Sender<u64>,
        inbox: mpsc::Sender<Message>,
        namespaces: Vec<String>,
    ) -> Kinds {
        let mut kinds = Kinds {
            streams,
            types,
            inbox,
            hub: Arc::new(Hub::new(namespaces.clone())),
            namespaces,
            primaries: HashMap::new(),
            dependents: HashSet::new(),
            readers: Readers::default(),
            unread: Unread::default(),
            open: HashMap::new(),
            ids: HashMap::new(),
            next: 0,
            crds: None,
            began: Timestamp::now(),
        };
        let gvk = Gvk::new("apiextensions.k8s.io", "v1", "CustomResourceDefinition");
        let follow = Follow { gvk, namespaces: Vec::new(), selector: String::new() };
        kinds.crds = Some(kinds.spawn(Wanted { follow, interest: Interest::All }));
        kinds
    }

    /// The caches, for reconciles to read from.
    pub(super) fn hub(&self) -> Arc<Hub> {
        Arc::clone(&self.hub)
    }

    /// Follows the kinds of the sources; returns those that left.
    pub(super) fn serve(&mut self, sources: &Sources) -> Vec<Kind> {
        let wanted: HashSet<Kind> =
            sources.watches.iter().map(|w| (w.gvk.group.clone(), w.gvk.kind.clone())).collect();
        let left: Vec<Kind> = self.primaries.keys().filter(|kind| !wanted.contains(*kind)).cloned().collect();
        for kind in &left {
            self.primaries.remove(kind);
            self.readers.forget_kind(kind);
        }
        for watch in &sources.watches {
            let kind = (watch.gvk.group.clone(), watch.gvk.kind.clone());
            // Not by the selector: what it does not pick any more has still to be cleaned up.
            let follow = self.hub.follow_children(&watch.gvk);
            let before = self.primaries.remove(&kind);
            let (namespaced, mut children) =
                before.map_or((true, BTreeSet::new()), |before| (before.namespaced, before.children));
            match &watch.reconciler {
                Reconciler::Chart(chart) => {
                    children.clear();
                    if chart.script.is_none() {
                        self.readers.forget_kind(&kind);
                    }
                }
                Reconciler::Type(typed) => {
                    let owns = typed.program.as_ref().map(|program| program.facts().owns.clone());
                    children.extend(owns.into_iter().flatten());
                }
            }
            self.primaries.insert(kind, Served { watch: Arc::clone(watch), follow, namespaced, children });
        }
        self.sweep();
        left
    }

    /// Why the objects of a kind are not known; `None` where all of them are.
    pub(super) fn problem(&self, gvk: &Gvk) -> Option<String> {
        let served = self.primaries.get(&(gvk.group.clone(), gvk.kind.clone()))?;
        let stream = self.open.get(&served.follow)?;
        match &stream.problem {
            Some(problem) => Some(problem.clone()),
            None if stream.cache.read().is_fresh() => None,
            None => Some(format!("{} ({}) is not listed yet", gvk.kind, gvk.api_version())),
        }
    }

    /// Returns true if the streams have shown these objects as they are here, or newer, and all that
    /// reconciles have written. Streams of kinds that are not served or may not be watched show nothing, and
    /// are left out.
    pub(super) fn have_shown(&self, objects: &[Arc<Value>]) -> bool {
        self.open.iter().filter(|(_, stream)| stream.problem.is_none()).all(|(follow, stream)| {
            let cache = stream.cache.read();
            let mut held = objects.iter().filter(|object| holds(follow, object));
            cache.has_shown_all_told() && held.all(|object| cache.has_reached(object))
        })
    }

    /// A reconcile begins; what is returned is for `follow`, at its end.
    pub(super) fn reconcile_begins(&mut self) -> u64 {
        self.unread.begin()
    }

    /// Follows what a reconcile needs and takes in what it has seen. Returns what has changed since it read
    /// it.
    pub(super) fn follow(&mut self, key: &ObjectKey, seen: Seen, began: u64) -> Vec<Wake> {
        let before = self.readers.reads_of(key);
        self.dependents.extend(seen.dependents);
        if let Some(served) = self.primaries.get_mut(&(key.group.clone(), key.kind.clone())) {
            served.children.extend(seen.children);
            if let Some(reads) = seen.reads {
                self.readers.set(key, reads);
            }
        }
        // Known objects are told before a new stream lists, so that its list is compared with them.
        let wanted = self.wanted();
        let opened =
            wanted.iter().map(|(follow, interest)| (follow.clone(), self.hub.open(follow, interest)));
        let known = self.open.iter().map(|(follow, stream)| (follow.clone(), stream.cache.clone()));
        let caches: HashMap<Follow, Shared> = known.chain(opened).collect();
        for (object, wrote) in &seen.known {
            for (_, cache) in caches.iter().filter(|(follow, _)| holds(follow, object)) {
                cache.write().know(object, *wrote);
            }
        }
        for object in &seen.buried {
            for (_, cache) in caches.iter().filter(|(follow, _)| holds(follow, object)) {
                cache.write().bury(object);
            }
        }
        self.open(wanted);
        let reads = self.readers.reads_of(key);
        let missed = match self.unread.during(began) {
            During::All(changes) => {
                changes.iter().filter_map(|(gvk, happened)| reads.wake(&before, key, gvk, happened)).collect()
            }
            // Rather one reconcile too many than one that never comes.
            During::Much => {
                reads.are_more_than(&before).then(|| Wake::again(key.clone())).into_iter().collect()
            }
        };
        self.unread.end(began);
        missed
    }

    /// Nobody reads for an object any more.
    pub(super) fn forget(&mut self, key: &ObjectKey) {
        if self.readers.forget(key) {
            self.sweep();
        }
    }

    /// Everything that somebody wants to be followed, and which of its objects are kept whole.
    fn wanted(&self) -> HashMap<Follow, Interest> {
        let primaries = self.primaries.values().map(|served| served.follow.clone());
        let charts = self.dependents.iter().map(|gvk| Follow {
            gvk: gvk.clone(),
            namespaces: self.namespaces.clone(),
            selector: CHART_LABEL.to_owned(),
        });
        let children =
            self.primaries.values().flat_map(|s| &s.children).map(|gvk| self.hub.follow_children(gvk));
        let leading = Interest::Leading(self.leading());
        let mut wanted: HashMap<Follow, Interest> =
            children.map(|follow| (follow, leading.clone())).collect();
        let reads = self.readers.all().map(|read| self.hub.follow_of(&read.gvk, read.namespace.as_deref()));
        let scripts = self.primaries.values().filter_map(|served| served.watch.chart());
        let mapped = scripts.flat_map(|chart| chart.watched_kinds()).map(|gvk| self.hub.follow_children(gvk));
        let whole = primaries.chain(charts).chain(reads).chain(mapped);
        wanted.extend(whole.map(|follow| (follow, Interest::All)));
        wanted
    }

    /// The kinds that an object has to lead to for a reconcile to ask for it.
    fn leading(&self) -> Vec<Primary> {
        // The scope of a kind says which of its objects is meant, not whether there is one.
        let primary =
            |(group, kind): &Kind| Primary { group: group.clone(), kind: kind.clone(), namespaced: true };
        self.primaries.keys().map(primary).collect()
    }

    /// Works out what is wanted, and follows that and nothing else.
    fn sweep(&mut self) {
        self.open(self.wanted());
    }

    /// Starts the streams that are wanted and ends the others.
    fn open(&mut self, wanted: HashMap<Follow, Interest>) {
        let old: Vec<Follow> =
            self.open.keys().filter(|follow| !wanted.contains_key(*follow)).cloned().collect();
        for follow in old {
            if let Some(stream) = self.open.remove(&follow) {
                self.ids.remove(&stream.id);
            }
            self.hub.close(&follow);
        }
        for (follow, interest) in wanted {
            let cache = self.hub.open(&follow, &interest);
            let again = cache.write().set_interest(&interest);
            if !again && self.open.contains_key(&follow) {
                continue;
            }
            let (id, task) = self.spawn(Wanted { follow: follow.clone(), interest });
            self.ids.insert(id, follow.clone());
            if let Some(before) = self.open.insert(follow, Stream { id, cache, task, problem: None }) {
                self.ids.remove(&before.id);
            }
        }
    }

    fn spawn(&mut self, wanted: Wanted) -> (u64, AbortHandle) {
        self.next += 1;
        let stream = self.next;
        let wrap = move |said| Message { stream, said };
        let work = self.streams.clone().follow(wanted, self.inbox.clone(), wrap);
        (stream, tokio::spawn(work).abort_handle())
    }

    /// Stops following.
    pub(super) fn stop(&mut self) {
        self.primaries.clear();
        self.dependents.clear();
        self.readers = Readers::default();
        self.sweep();
        if let Some((_, task)) = self.crds.take() {
            task.abort();
        }
    }

    fn primary(&self, group: &str, kind: &str) -> Option<(&Served, Shared)> {
        let served = self.primaries.get(&(group.to_owned(), kind.to_owned()))?;
        Some((served, self.open.get(&served.follow)?.cache.clone()))
    }

    /// The objects of a kind that are known now and that its selector picks.
    pub(super) fn objects(&self, gvk: &Gvk) -> Vec<ObjectKey> {
        let Some((served, cache)) = self.primary(&gvk.group, &gvk.kind) else { return Vec::new() };
        if served.watch.has_selector() {
            let keys = self.states(gvk).into_iter().filter_map(|object| ObjectRef::of(&object));
            return keys.map(|object| object.key()).collect();
        }
        let cache = cache.read();
        cache.keys().filter(|key| self.is_inside(key.namespace.as_deref())).cloned().collect()
    }

    /// Returns true if an object is among those of its kind.
    pub(super) fn knows(&self, key: &ObjectKey) -> bool {
        let Some((served, cache)) = self.primary(&key.group, &key.kind) else { return false };
        let cache = cache.read();
        let is_picked = match served.watch.has_selector() {
            true => cache.get(key).flatten().is_some_and(|object| served.watch.picks(&object)),
            false => cache.uid(key).is_some(),
        };
        is_picked && self.is_inside(key.namespace.as_deref())
    }

    /// The objects of a kind as they are known now, as far as its selector picks them.
    pub(super) fn states(&self, gvk: &Gvk) -> Vec<Arc<Value>> {
        let found = self.primary(&gvk.group, &gvk.kind);
        let picked = found.map(|(served, cache)| {
            let cache = cache.read();
            let picked = cache.objects().filter(|object| served.watch.picks(object));
            picked.filter(|object| self.is_inside(meta::namespace(object))).collect()
        });
        picked.unwrap_or_default()
    }

    /// Returns true if custom resources of a namespace are reconciled.
    fn is_inside(&self, namespace: Option<&str>) -> bool {
        self.namespaces.is_empty()
            || namespace.is_none_or(|own| self.namespaces.iter().any(|name| name == own))
    }

    /// The last known state of a custom resource.
    pub(super) fn object(&self, key: &ObjectKey) -> Option<Arc<Value>> {
        let (_, cache) = self.primary(&key.group, &key.kind)?;
        cache.read().get(key).flatten()
    }

    /// Returns true if a program reconciles an object.
    pub(super) fn is_typed(&self, key: &ObjectKey) -> bool {
        self.primaries.get(&(key.group.clone(), key.kind.clone())).is_some_and(Served::is_typed)
    }

    /// The kinds of children that a program has been seen to write, its own words included.
    pub(super) fn children_of(&self, key: &ObjectKey) -> Vec<Gvk> {
        let served = self.primaries.get(&(key.group.clone(), key.kind.clone()));
        served.into_iter().flat_map(|served| served.children.iter().cloned()).collect()
    }

    /// A reference with version and uid, as far as they are known.
    pub(super) fn reference(&self, key: &ObjectKey, gvk: &Gvk) -> ObjectRef {
        let cache = self.primary(&key.group, &key.kind).map(|(_, cache)| cache);
        let uid = cache.and_then(|cache| cache.read().uid(key).flatten().map(str::to_owned));
        ObjectRef { gvk: gvk.clone(), namespace: key.namespace.clone(), name: key.name.clone(), uid }
    }

    /// The objects to reconcile for one the user points at.
    pub(super) fn primaries(&self, object: &ObjectRef) -> Vec<ObjectKey> {
        let key = object.key();
        if self.primaries.contains_key(&(key.group.clone(), key.kind.clone())) {
            return vec![key];
        }
        let streams = self.open.iter().filter(|(follow, _)| follow.gvk == object.gvk);
        let found = streams.filter_map(|(_, stream)| stream.cache.read().get(&key).flatten()).next();
        found.map_or_else(Vec::new, |object| {
            primaries_of(&object, &self.mapping()).into_iter().map(|(key, _)| key).collect()
        })
    }

    fn mapping(&self) -> Vec<Primary> {
        let watched = self
            .primaries
            .iter()
            .filter(|(_, served)| served.watch.chart().is_none_or(|chart| chart.watch_dependents));
        watched
            .map(|((group, kind), served)| Primary {
                group: group.clone(),
                kind: kind.clone(),
                namespaced: served.namespaced,
            })
            .collect()
    }

    /// Takes one message in. Messages of streams that were stopped meanwhile are dropped.
    pub(super) async fn hear(&mut self, message: Message) -> Heard {
        if self.crds.as_ref().is_some_and(|(id, _)| *id == message.stream) {
            return self.hear_types(message.said).await;
        }
        let Some(follow) = self.ids.get(&message.stream).cloned() else { return Heard::default() };
        let Some(stream) = self.open.get_mut(&follow) else { return Heard::default() };
        let forbidden = matches!(message.said, Said::Forbidden(_));
        let happened = match message.said {
            Said::Event(raw) => {
                if !matches!(raw, Raw::Init) {
                    stream.problem = None;
                }
                let mut cache = stream.cache.write();
                let happened = cache.take(raw);
                for object in cache.take_doubtful() {
                    tokio::spawn(look_again(
                        self.streams.clone(),
                        self.inbox.clone(),
                        message.stream,
                        object,
                    ));
                }
                happened
            }
            Said::Lost => {
                stream.cache.write().broke();
                return Heard::default();
            }
            // No news where opdev itself is about to install it.
            Said::NotServed => {
                let gvk = &follow.gvk;
                stream.problem = Some(format!(
                    "{} ({}) is not served: the cluster has no CustomResourceDefinition of it (`opdev install` applies it)",
                    gvk.kind,
                    gvk.api_version()
                ));
                return Heard::default();
            }
            Said::Broken(why) | Said::Forbidden(why) => {
                let gvk = &follow.gvk;
                let problem = format!("cannot watch {} ({}): {why}", gvk.kind, gvk.api_version());
                let hint = forbidden.then(|| FORBIDDEN_HINT.to_owned());
                let new = stream.problem.as_ref() != Some(&problem);
                stream.cache.write().broke();
                stream.problem = Some(problem.clone());
                return Heard { problem: new.then_some((problem, hint)), ..Heard::default() };
            }
        };
        if let Some(first) = happened.first() {
            let namespaced = meta::namespace(first.object.identity()).is_some();
            for served in self.primaries.values_mut().filter(|served| served.follow == follow) {
                served.namespaced = namespaced;
            }
        }
        if follow.selector.is_empty() {
            self.unread.hear(&follow.gvk, &happened);
        }
        let mapping = self.mapping();
        let view = wakes::View {
            primaries: &self.primaries,
            mapping: &mapping,
            readers: &self.readers,
            began: self.began,
        };
        let wakes = happened.iter().flat_map(|happened| view.wakes(happened, &follow));
        let wakes = wakes.filter(|wake| self.is_inside(wake.key.namespace.as_deref())).collect();
        Heard { wakes, maps: self.maps(&happened, &follow), problem: None }
    }

    /// Changes that scripts beside charts want to know of.
    fn maps(&self, happened: &[Happened], follow: &Follow) -> Vec<ToMap> {
        let mut maps = Vec::new();
        for served in self.primaries.values().filter(|_| follow.selector.is_empty()) {
            let Some(chart) = served.watch.chart() else { continue };
            let Some(script) = &chart.script else { continue };
            for (at, _) in chart.watched_kinds().iter().enumerate().filter(|(_, gvk)| **gvk == follow.gvk) {
                maps.extend(happened.iter().map(|happened| ToMap {
                    script: Arc::clone(script),
                    at,
                    primary: served.watch.gvk.clone(),
                    object: Arc::clone(happened.object.tree()),
                    event: happened.event,
                }));
            }
        }
        maps
    }

    /// A changed CRD makes discovery stale and lets waiting streams look again.
    async fn hear_types(&mut self, said: Said) -> Heard {
        match said {
            Said::Event(Raw::Listing | Raw::Applied(_) | Raw::Deleted(_)) => {
                self.streams.discovery.invalidate().await;
                self.types.send_modify(|changes| *changes += 1);
            }
            Said::Event(Raw::Init | Raw::Listed(_) | Raw::Missing(_))
            | Said::Broken(_)
            | Said::Forbidden(_)
            | Said::NotServed
            | Said::Lost => {}
        }
        Heard::default()
    }
}

/// Asks for an object that a reconcile has made and a list does not show: the list may have been taken
/// before.
async fn look_again(streams: Streams, inbox: mpsc::Sender<Message>, stream: u64, object: Arc<Value>) {
    if streams.is_gone(&object).await {
        let said = Said::Event(Raw::Missing(object.into()));
        // Nobody hears it any more where opdev leaves.
        let _ = inbox.send(Message { stream, said }).await;
    }
}

/// Returns true if an object would show in a stream.
fn holds(follow: &Follow, object: &Value) -> bool {
    let same_kind = Gvk::of(object).is_some_and(|gvk| gvk == follow.gvk);
    let namespace = meta::namespace(object);
    let inside = follow.namespaces.is_empty()
        || namespace.is_none_or(|own| follow.namespaces.iter().any(|name| name == own));
    let picked = match follow.selector.as_str() {
        "" => true,
        CHART_LABEL => meta::label(object, CHART_LABEL).is_some(),
        _ => false,
    };
    same_kind && inside && picked
}
