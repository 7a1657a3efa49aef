//! What is watched: the kinds of the sources, the kinds of their releases' objects, and the CRDs. Turns what the
//! streams say into objects to wake, with causes. Never queues by itself.

use crate::event::{CauseKind, Relation, WatchEvent};
use crate::operator::echo::mark;
use crate::operator::queue::{Kind, Mark};
use crate::operator::reconcile::{CHART_LABEL, selector};
use crate::operator::watch::cache::{Cache, Happened, Raw};
use crate::operator::watch::change::{changed_fields, dependent_update_counts, last_writer};
use crate::operator::watch::mapping::{Primary, primaries_of};
use crate::operator::watch::stream::{Follow, Said, Streams};
use crate::sources::{Sources, Watch};
use opdev_object::meta::{Gvk, ObjectKey, ObjectRef};
use serde_json::Value;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use tokio::sync::{mpsc, watch};
use tokio::task::AbortHandle;

/// What a stream says, and which one.
#[derive(Debug)]
pub(super) struct Message {
    stream: u64,
    said: Said,
}

/// An object to wake.
#[derive(Debug)]
pub(super) struct Wake {
    pub(super) key: ObjectKey,
    pub(super) kind: CauseKind,
    pub(super) mark: Option<Mark>,
    /// The object itself is gone.
    pub(super) gone: bool,
    /// The object itself is to go.
    pub(super) leaving: bool,
}

/// What follows from a message.
#[derive(Debug, Default)]
pub(super) struct Heard {
    pub(super) wakes: Vec<Wake>,
    pub(super) problem: Option<String>,
}

/// Everything that is watched.
pub(super) struct Kinds {
    streams: Streams,
    types: watch::Sender<u64>,
    inbox: mpsc::Sender<Message>,
    namespace: Option<String>,
    primaries: HashMap<Kind, Served>,
    dependents: HashMap<Gvk, Stream>,
    roles: HashMap<u64, Role>,
    next: u64,
    crds: Option<AbortHandle>,
}

struct Served {
    watch: Arc<Watch>,
    stream: Stream,
    namespaced: bool,
}

struct Stream {
    id: u64,
    follow: Follow,
    cache: Cache,
    task: AbortHandle,
    problem: Option<String>,
}

impl Drop for Stream {
    fn drop(&mut self) {
        self.task.abort();
    }
}

#[derive(Clone)]
enum Role {
    Primary(Kind),
    Dependent(Gvk),
    Types,
}

impl Kinds {
    pub(super) fn new(
        streams: Streams,
        types: watch::Sender<u64>,
        inbox: mpsc::Sender<Message>,
        namespace: Option<String>,
    ) -> Kinds {
        let mut kinds = Kinds {
            streams,
            types,
            inbox,
            namespace,
            primaries: HashMap::new(),
            dependents: HashMap::new(),
            roles: HashMap::new(),
            next: 0,
            crds: None,
        };
        let gvk = Gvk::new("apiextensions.k8s.io", "v1", "CustomResourceDefinition");
        let follow = Follow { gvk, namespace: None, selector: String::new() };
        kinds.crds = Some(kinds.start(Role::Types, &follow).1);
        kinds
    }

    /// Follows the kinds of the sources; returns those that left.
    pub(super) fn serve(&mut self, sources: &Sources) -> Vec<Kind> {
        let wanted: HashSet<Kind> =
            sources.watches.iter().map(|w| (w.gvk.group.clone(), w.gvk.kind.clone())).collect();
        let left: Vec<Kind> = self.primaries.keys().filter(|kind| !wanted.contains(*kind)).cloned().collect();
        for kind in &left {
            self.primaries.remove(kind);
        }
        for watch in &sources.watches {
            let kind = (watch.gvk.group.clone(), watch.gvk.kind.clone());
            let follow = Follow {
                gvk: watch.gvk.clone(),
                namespace: self.namespace.clone(),
                selector: selector::text(&watch.selector),
            };
            match self.primaries.get_mut(&kind) {
                Some(served) if served.stream.follow == follow => served.watch = Arc::clone(watch),
                _ => {
                    let (id, task) = self.start(Role::Primary(kind.clone()), &follow);
                    let stream = Stream { id, follow, cache: Cache::default(), task, problem: None };
                    let served = Served { watch: Arc::clone(watch), stream, namespaced: true };
                    self.primaries.insert(kind, served);
                }
            }
        }
        left
    }

    /// Follows the kinds of a release's objects and takes in what a pass has seen of them.
    pub(super) fn follow(&mut self, gvks: Vec<Gvk>, known: Vec<(Arc<Value>, bool)>) {
        let mut new: HashMap<Gvk, Cache> = gvks
            .into_iter()
            .filter(|gvk| !self.dependents.contains_key(gvk))
            .map(|gvk| (gvk, Cache::default()))
            .collect();
        for (object, wrote) in known {
            let Some(gvk) = Gvk::of(&object) else { continue };
            match (new.get_mut(&gvk), self.dependents.get_mut(&gvk)) {
                (Some(cache), _) => cache.know(object, wrote),
                (None, Some(stream)) => stream.cache.know(object, wrote),
                (None, None) => {}
            }
        }
        for (gvk, cache) in new {
            let follow = Follow {
                gvk: gvk.clone(),
                namespace: self.namespace.clone(),
                selector: CHART_LABEL.to_owned(),
            };
            let (id, task) = self.start(Role::Dependent(gvk.clone()), &follow);
            self.dependents.insert(gvk, Stream { id, follow, cache, task, problem: None });
        }
    }

    fn start(&mut self, role: Role, follow: &Follow) -> (u64, AbortHandle) {
        self.next += 1;
        let stream = self.next;
        self.roles.insert(stream, role);
        let wrap = move |said| Message { stream, said };
        let work = self.streams.clone().follow(follow.clone(), self.inbox.clone(), wrap);
        (stream, tokio::spawn(work).abort_handle())
    }

    /// Stops following.
    pub(super) fn stop(&mut self) {
        self.primaries.clear();
        self.dependents.clear();
        if let Some(task) = self.crds.take() {
            task.abort();
        }
    }

    /// The objects of a kind that are known now.
    pub(super) fn objects(&self, gvk: &Gvk) -> Vec<ObjectKey> {
        let served = self.primaries.get(&(gvk.group.clone(), gvk.kind.clone()));
        served
            .into_iter()
            .flat_map(|served| served.stream.cache.objects())
            .filter_map(|object| ObjectRef::of(object))
            .map(|object| object.key())
            .collect()
    }

    /// The last known state of a custom resource.
    pub(super) fn object(&self, key: &ObjectKey) -> Option<&Value> {
        let served = self.primaries.get(&(key.group.clone(), key.kind.clone()))?;
        served.stream.cache.get(key).map(|object| &**object)
    }

    /// A reference with version and uid, as far as they are known.
    pub(super) fn reference(&self, key: &ObjectKey, gvk: &Gvk) -> ObjectRef {
        let served = self.primaries.get(&(key.group.clone(), key.kind.clone()));
        let uid = served
            .and_then(|served| served.stream.cache.get(key))
            .and_then(|object| opdev_object::meta::uid(object).map(str::to_owned));
        ObjectRef { gvk: gvk.clone(), namespace: key.namespace.clone(), name: key.name.clone(), uid }
    }

    /// The objects to reconcile for one the user points at.
    pub(super) fn primaries(&self, object: &ObjectRef) -> Vec<ObjectKey> {
        let key = object.key();
        if self.primaries.contains_key(&(key.group.clone(), key.kind.clone())) {
            return vec![key];
        }
        let stream = self.dependents.get(&object.gvk);
        let found = stream.and_then(|stream| stream.cache.get(&key));
        found.map_or_else(Vec::new, |object| {
            primaries_of(object, &self.mapping()).into_iter().map(|(key, _)| key).collect()
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
        let Some(role) = self.roles.get(&message.stream).cloned() else { return Heard::default() };
        if matches!(role, Role::Types) {
            return self.hear_types(message.said).await;
        }
        let mapping = self.mapping();
        let stream = match &role {
            Role::Primary(kind) => self.primaries.get_mut(kind).map(|served| &mut served.stream),
            Role::Dependent(gvk) => self.dependents.get_mut(gvk),
            Role::Types => None,
        };
        let Some(stream) = stream.filter(|stream| stream.id == message.stream) else {
            self.roles.remove(&message.stream);
            return Heard::default();
        };
        let gvk = stream.follow.gvk.clone();
        let happened = match message.said {
            Said::Event(raw) => {
                stream.problem = None;
                stream.cache.take(raw)
            }
            Said::Broken(problem) => {
                let problem = format!("cannot watch {} ({}): {problem}", gvk.kind, gvk.api_version());
                let new = stream.problem.as_ref() != Some(&problem);
                stream.problem = Some(problem.clone());
                return Heard { wakes: Vec::new(), problem: new.then_some(problem) };
            }
        };
        let wakes = match &role {
            Role::Primary(kind) => {
                if let (Some(first), Some(served)) = (happened.first(), self.primaries.get_mut(kind)) {
                    served.namespaced = opdev_object::meta::namespace(&first.object).is_some();
                }
                happened.into_iter().filter_map(|happened| primary_wake(&happened, &gvk)).collect()
            }
            Role::Dependent(_) => {
                happened.iter().flat_map(|happened| dependent_wakes(happened, &gvk, &mapping)).collect()
            }
            Role::Types => Vec::new(),
        };
        Heard { wakes, problem: None }
    }

    /// A changed CRD makes discovery stale and lets waiting streams look again.
    async fn hear_types(&mut self, said: Said) -> Heard {
        match said {
            Said::Event(Raw::Listing | Raw::Applied(_) | Raw::Deleted(_)) => {
                self.streams.discovery.invalidate().await;
                self.types.send_modify(|changes| *changes += 1);
            }
            Said::Event(Raw::Init | Raw::Listed(_)) | Said::Broken(_) => {}
        }
        Heard::default()
    }
}

fn primary_wake(happened: &Happened, gvk: &Gvk) -> Option<Wake> {
    let mut object = ObjectRef::of(&happened.object)?;
    object.gvk = gvk.clone();
    let key = object.key();
    let gone = happened.event == WatchEvent::Deleted;
    let kind =
        if happened.initial { CauseKind::Start } else { watch_cause(happened, object, Relation::Primary) };
    let leaving = opdev_object::meta::deletion_timestamp(&happened.object).is_some();
    Some(Wake { key, kind, mark: mark(&happened.object, gone), gone, leaving })
}

fn dependent_wakes(happened: &Happened, gvk: &Gvk, mapping: &[Primary]) -> Vec<Wake> {
    let counts = match (&happened.event, &happened.old) {
        (WatchEvent::Added, _) | (WatchEvent::Modified, None) => false,
        (WatchEvent::Deleted, _) => true,
        (WatchEvent::Modified, Some(old)) => dependent_update_counts(old, &happened.object),
    };
    let Some(mut object) = ObjectRef::of(&happened.object).filter(|_| counts) else { return Vec::new() };
    object.gvk = gvk.clone();
    let gone = happened.event == WatchEvent::Deleted;
    let before = happened.old.as_deref().into_iter().flat_map(|old| primaries_of(old, mapping));
    let mut found: Vec<(ObjectKey, Relation)> = primaries_of(&happened.object, mapping);
    for (key, relation) in before {
        if !found.iter().any(|(known, _)| *known == key) {
            found.push((key, relation));
        }
    }
    found.dedup_by(|a, b| a.0 == b.0);
    found
        .into_iter()
        .map(|(key, relation)| Wake {
            key,
            kind: watch_cause(happened, object.clone(), relation),
            mark: mark(&happened.object, gone),
            gone: false,
            leaving: false,
        })
        .collect()
}

fn watch_cause(happened: &Happened, object: ObjectRef, relation: Relation) -> CauseKind {
    let old = happened.old.as_deref().filter(|_| happened.event == WatchEvent::Modified);
    let dependent = relation != Relation::Primary;
    CauseKind::Watch {
        object,
        event: happened.event,
        fields: old.map(|old| changed_fields(old, &happened.object, dependent)).unwrap_or_default(),
        by: match happened.event {
            WatchEvent::Deleted => None,
            WatchEvent::Added | WatchEvent::Modified => last_writer(old, &happened.object, dependent),
        },
        own_write: false,
        relation,
    }
}

/// Marks a cause as the echo of an own write.
pub(super) fn with_own_write(mut kind: CauseKind, own: bool) -> CauseKind {
    if let CauseKind::Watch { own_write, .. } = &mut kind {
        *own_write = own;
    }
    kind
}
