//! Every object seen, by key, with the links from owners to owned and the Kubernetes Events beside.
//! Objects are levels: only the newest version is kept. `tree` walks the links.

use super::census::Census;
use super::changes::Changes;
use super::health::{self, Health};
use super::shards::Shards;
use jiff::Timestamp;
use opdev_event::{Body, KindStatus, ObjectSeen, Parsed, TableRow};
use opdev_object::meta::{self, ObjectKey, ObjectRef, OwnerReference};
use serde_json::{Value, json};
use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

/// An object as last seen.
#[derive(Debug)]
pub struct Seen {
    /// Its key.
    pub key: Arc<ObjectKey>,
    /// Its reference.
    pub object_ref: ObjectRef,
    /// The object, masked; of one whose metadata alone was read, that and nothing else.
    pub object: Body,
    /// True if only its metadata was read.
    pub metadata_only: bool,
    /// `metadata.creationTimestamp`.
    pub created: Option<Timestamp>,
    /// `metadata.labels`; null where there are none.
    pub labels: Value,
    /// How it is; told of without looking into it again.
    pub health: Health,
    /// Its owners.
    owners: Box<[ObjectKey]>,
    links: Box<[Owner]>,
    /// The generation of a ReplicaSet.
    pub(super) generation: Generation,
}

/// The generation of a ReplicaSet; found once, because its tree would have to stay for as long as this is
/// asked.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Generation {
    /// Its revision, where it has one.
    pub(super) revision: Option<i64>,
    /// True if it has no pods and wants none.
    pub(super) is_scaled_down: bool,
}

impl Generation {
    fn of(kind: &str, object: &Value) -> Self {
        if kind != "ReplicaSet" {
            return Generation::default();
        }
        let count = |path| object.pointer(path).and_then(Value::as_i64);
        let revision = meta::annotation(object, "deployment.kubernetes.io/revision");
        Generation {
            revision: revision.and_then(|text| text.parse().ok()),
            is_scaled_down: count("/spec/replicas") == Some(0) && count("/status/replicas").unwrap_or(0) == 0,
        }
    }
}

impl Seen {
    /// An object as it is seen now.
    pub(super) fn new(
        key: Arc<ObjectKey>,
        object_ref: ObjectRef,
        parsed: Parsed<'_>,
        metadata_only: bool,
    ) -> Self {
        let Parsed { body, value: object } = parsed;
        let created = object.pointer("/metadata/creationTimestamp").and_then(Value::as_str);
        let owners = meta::owner_references(object);
        Seen {
            owners: owner_keys(object, &owners, &key).into(),
            key,
            object: if metadata_only { without_managers(object) } else { body.clone() },
            metadata_only,
            created: created.and_then(|text| text.parse().ok()),
            labels: object.pointer("/metadata/labels").cloned().unwrap_or_default(),
            health: if metadata_only { health::of_metadata(object) } else { health::of(object) },
            generation: Generation::of(&object_ref.gvk.kind, object),
            links: links(object, owners).into(),
            object_ref,
        }
    }

    /// An object that is shown and belongs to no list of the state.
    pub(super) fn read(seen: ObjectSeen) -> Self {
        let ObjectSeen { object_ref, metadata_only, object, .. } = seen;
        let value = object.read();
        Seen::new(
            Arc::new(object_ref.key()),
            object_ref,
            Parsed { body: &object, value: &value },
            metadata_only,
        )
    }

    /// An object as a row of a table tells it, before the object is read.
    pub fn of_row(row: &TableRow) -> Self {
        let object_ref = row.object_ref.clone();
        let mut object = json!({"apiVersion": object_ref.gvk.api_version(), "kind": object_ref.gvk.kind,
            "metadata": {"name": object_ref.name}});
        let metadata = [
            ("labels", Some(row.labels.clone()).filter(Value::is_object)),
            ("namespace", object_ref.namespace.clone().map(Value::from)),
            ("uid", object_ref.uid.clone().map(Value::from)),
            ("creationTimestamp", row.created.map(|at| at.to_string().into())),
            ("deletionTimestamp", row.deleting.clone().map(Value::from)),
            ("finalizers", (!row.finalizers.is_empty()).then(|| row.finalizers.clone().into())),
        ];
        for (field, value) in metadata {
            if let Some(value) = value {
                opdev_object::meta::put(&mut object, &["metadata", field], value);
            }
        }
        Seen::new(
            Arc::new(object_ref.key()),
            object_ref,
            Parsed { body: &Body::new(&object), value: &object },
            true,
        )
    }

    /// The uids of its owners.
    pub(super) fn owner_uids(&self) -> impl Iterator<Item = &String> {
        self.links.iter().filter_map(|link| match link {
            Owner::Uid(uid) => Some(uid),
            Owner::Primary(..) => None,
        })
    }

    /// The keys of what it belongs to, by owner references and by annotations.
    pub(super) fn owners(&self) -> &[ObjectKey] {
        &self.owners
    }
}

/// Metadata as it is kept: who manages which field is shown of whole objects only, and is most of it.
fn without_managers(object: &Value) -> Body {
    let mut object = object.clone();
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.remove("managedFields");
    }
    Body::new(&object)
}

/// A Kubernetes Event.
#[derive(Clone, Debug, PartialEq)]
pub struct Recorded {
    /// The Event's own key.
    pub key: ObjectKey,
    /// When it happened last.
    pub at: Option<Timestamp>,
    /// True if it is a warning.
    pub warning: bool,
    /// In CamelCase.
    pub reason: String,
    /// In words.
    pub message: String,
    /// How often.
    pub count: u64,
    /// Kind of the object it is about.
    pub kind: String,
    /// Namespace of that object.
    pub namespace: Option<String>,
    /// Name of that object.
    pub name: String,
    /// The component that reported it.
    pub from: String,
}

/// How an owned object names its owner.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum Owner {
    /// By uid.
    Uid(String),
    /// By `operator-sdk/primary-resource-type` and `operator-sdk/primary-resource`.
    Primary(String, String),
}

/// Every object seen.
#[derive(Clone, Debug, Default)]
pub struct Objects {
    by_key: Shards<Arc<ObjectKey>, Arc<Seen>>,
    owned: Shards<Owner, Arc<BTreeSet<Arc<ObjectKey>>>>,
    /// In pieces, too: there may be very many, and a new one is in no state before.
    custom: Shards<Arc<ObjectKey>, ()>,
    recorded: Arc<VecDeque<Arc<Recorded>>>,
    changes: Changes,
    census: Census,
    /// Uids of objects that belong to no custom resource of the project; `None` where it is not known.
    unrelated: Shards<Arc<ObjectKey>, Option<Arc<str>>>,
    /// Unrelated ones that are shown all the same.
    shown: Arc<BTreeSet<ObjectKey>>,
}

impl Objects {
    /// One object.
    pub fn get(&self, key: &ObjectKey) -> Option<&Arc<Seen>> {
        self.by_key.get(key)
    }

    /// The keys of all objects, in no particular order; unrelated ones, of which `get` finds nothing, come
    /// last.
    pub fn keys(&self) -> impl Iterator<Item = &Arc<ObjectKey>> {
        self.by_key.iter().map(|(key, _)| key).chain(self.unrelated.iter().map(|(key, _)| key))
    }

    /// How many objects, unrelated ones included.
    pub fn len(&self) -> usize {
        self.by_key.len() + self.unrelated.len()
    }

    /// How many objects are known by what they say, and how many by their names alone; each with an estimate
    /// of their bytes.
    pub fn weight(&self) -> ((usize, usize), (usize, usize)) {
        // Bytes of a key, a row and their places in maps.
        const ROW: usize = 1_200;
        const KEY: usize = 300;
        let texts: usize = self.by_key.iter().map(|(_, seen)| seen.object.held() + ROW).sum();
        ((self.by_key.len(), texts), (self.unrelated.len(), self.unrelated.len() * KEY))
    }

    /// Returns true if it is there and belongs to no custom resource of the project: nothing but its key is
    /// known.
    pub fn is_unrelated(&self, key: &ObjectKey) -> bool {
        self.unrelated.get(key).is_some()
    }

    /// Returns true if there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Custom resources of the project, in no particular order.
    pub fn custom(&self) -> impl Iterator<Item = &Arc<Seen>> {
        self.custom.iter().filter_map(|(key, ())| self.by_key.get(key.as_ref()))
    }

    /// How many custom resources.
    pub fn custom_len(&self) -> usize {
        self.custom.len()
    }

    /// Returns true if two stores hold the very same objects, without looking inside.
    pub fn same(&self, other: &Objects) -> bool {
        self.by_key.same(&other.by_key)
            && self.unrelated.same(&other.unrelated)
            && self.custom.same(&other.custom)
    }

    /// Objects that name this one as their owner, or as their primary resource.
    pub fn owned_by(&self, owner: &Seen) -> Vec<&Arc<Seen>> {
        let by_uid = owner.object_ref.uid.clone().map(Owner::Uid);
        let name = match &owner.key.namespace {
            Some(namespace) => format!("{namespace}/{}", owner.key.name),
            None => owner.key.name.clone(),
        };
        let by_name = Owner::Primary(owner.object_ref.gvk.kind_group(), name);
        let named = by_uid.iter().chain([&by_name]).filter_map(|link| self.owned.get(link));
        let mut sets: Vec<&BTreeSet<Arc<ObjectKey>>> = named.map(Arc::as_ref).collect();
        sets.sort_by_key(|set| std::cmp::Reverse(set.len()));
        // Nearly always there is one of them, and it is in order.
        let mut keys: Vec<&Arc<ObjectKey>> = sets.first().into_iter().flat_map(|set| set.iter()).collect();
        if let Some(others) = sets.get(1) {
            keys.extend(others.iter());
            keys.sort_unstable();
            keys.dedup();
        }
        keys.into_iter().filter_map(|key| self.by_key.get(key.as_ref())).collect()
    }

    /// Objects that have changed lately. An object whose child has gone, or that has been reconciled, has
    /// changed.
    pub fn changes(&self) -> &Changes {
        &self.changes
    }

    /// How many there are of each kind and in each namespace.
    pub fn census(&self) -> &Census {
        &self.census
    }

    /// Returns true if an object is a custom resource of the project.
    pub fn is_custom(&self, key: &ObjectKey) -> bool {
        self.custom.get(key).is_some()
    }

    /// Kubernetes Events, oldest first.
    pub fn recorded(&self) -> impl DoubleEndedIterator<Item = &Arc<Recorded>> {
        self.recorded.iter()
    }

    /// Takes in the newest version of an object, and gives it back; Kubernetes Events are no objects here.
    pub(super) fn insert(
        &mut self,
        object_ref: ObjectRef,
        parsed: Parsed<'_>,
        metadata_only: bool,
        custom: bool,
        recorded: usize,
    ) -> Option<Arc<Seen>> {
        if object_ref.gvk.is_event() {
            self.record(&object_ref, parsed.value, recorded);
            return None;
        }
        let key = object_ref.key();
        self.forget_unrelated(&key);
        let known = self.by_key.get(&key);
        let key = known.map_or_else(|| Arc::new(key), |seen| Arc::clone(&seen.key));
        let known = known.map(Arc::clone);
        let seen = Arc::new(Seen::new(Arc::clone(&key), object_ref, parsed, metadata_only));
        if known.is_none() {
            self.census.came(&key);
        }
        let old_links = known.as_ref().map_or(&[][..], |seen| &seen.links);
        if *seen.links != *old_links {
            // The owner before looks different from now on.
            let before = known.as_ref().map_or(&[][..], |seen| &seen.owners);
            before.iter().for_each(|owner| self.changes.push(Arc::new(owner.clone())));
            self.unlink(&key, old_links);
            for link in &seen.links {
                let set = self.owned.piece_mut(link).entry(link.clone()).or_default();
                Arc::make_mut(set).insert(Arc::clone(&key));
            }
        }
        if custom && !self.is_custom(&key) {
            self.custom.piece_mut(key.as_ref()).insert(Arc::clone(&key), ());
        }
        self.changes.push(Arc::clone(&key));
        self.by_key.piece_mut(key.as_ref()).insert(key, Arc::clone(&seen));
        Some(seen)
    }

    /// Forgets an object. A uid that is not the one last seen is an older object of the same name: ignored.
    pub(super) fn remove(&mut self, object_ref: &ObjectRef) -> Option<Arc<Seen>> {
        let key = object_ref.key();
        let seen = self.by_key.get(&key).map(Arc::clone)?;
        if let (Some(gone), Some(known)) = (&object_ref.uid, &seen.object_ref.uid)
            && gone != known
        {
            return None;
        }
        // The owner can be told from the object alone, and only now.
        let owners = seen.owners.iter().cloned();
        for key in owners.map(Arc::new).chain([Arc::clone(&seen.key)]) {
            self.changes.push(key);
        }
        self.unlink(&seen.key, &seen.links);
        self.by_key.piece_mut(&key).remove(&key);
        self.census.went(&key);
        if self.is_custom(&key) {
            self.custom.piece_mut(&key).remove(&key);
        }
        Some(seen)
    }

    /// Takes in the key of an object that belongs to no custom resource of the project. One that did is given
    /// back.
    pub(super) fn insert_unrelated(&mut self, object_ref: ObjectRef) -> Option<Arc<Seen>> {
        let key = object_ref.key();
        let before = match self.by_key.get(&key).map(|seen| seen.object_ref.clone()) {
            Some(known) => self.remove(&known),
            None => None,
        };
        let uid: Option<Arc<str>> = object_ref.uid.map(Into::into);
        match self.unrelated.get(&key) {
            Some(known) if *known == uid => {}
            known => {
                if known.is_none() {
                    self.census.came(&key);
                }
                self.changes.unrelated();
                _ = self.unrelated.piece_mut(&key).insert(Arc::new(key), uid);
            }
        }
        before
    }

    /// Takes in what a reconcile says of an unrelated object, so that it can be shown.
    pub(super) fn show_unrelated(&mut self, key: &ObjectKey, object: &ObjectRef) {
        if !self.is_unrelated(key) {
            return;
        }
        let mut value = json!({"apiVersion": object.gvk.api_version(), "kind": object.gvk.kind,
            "metadata": {"name": object.name}});
        for (field, text) in [("namespace", &object.namespace), ("uid", &object.uid)] {
            if let Some(text) = text {
                meta::put(&mut value, &["metadata", field], text.as_str());
            }
        }
        self.insert(object.clone(), Parsed { body: &Body::new(&value), value: &value }, true, false, 0);
        Arc::make_mut(&mut self.shown).insert(key.clone());
    }

    /// Keeps no more than the key of an object that was shown although it is unrelated.
    pub(super) fn hide_unrelated(&mut self, key: &ObjectKey) {
        if !self.shown.contains(key) {
            return;
        }
        Arc::make_mut(&mut self.shown).remove(key);
        let shown = self.by_key.get(key).filter(|seen| seen.metadata_only && seen.owners.is_empty());
        let object = shown.filter(|_| !self.is_custom(key)).map(|seen| seen.object_ref.clone());
        if let Some(object) = object {
            self.insert_unrelated(object);
        }
    }

    /// Forgets an unrelated object, where it is one of this uid.
    pub(super) fn remove_unrelated(&mut self, object_ref: &ObjectRef) {
        let key = object_ref.key();
        let other = |uid: &Option<Arc<str>>| matches!((uid, &object_ref.uid), (Some(known), Some(gone)) if **known != **gone);
        if self.unrelated.get(&key).is_some_and(|uid| !other(uid)) {
            self.forget_unrelated(&key);
        }
    }

    fn forget_unrelated(&mut self, key: &ObjectKey) {
        if self.is_unrelated(key) {
            self.changes.unrelated();
            self.census.went(key);
            self.unrelated.piece_mut(key).remove(key);
        }
    }

    /// Finds out anew which objects are custom resources.
    pub(super) fn set_kinds(&mut self, kinds: &[KindStatus]) {
        let known: BTreeSet<(&str, &str)> =
            kinds.iter().map(|kind| (kind.gvk.group.as_str(), kind.gvk.kind.as_str())).collect();
        let keys = self.by_key.iter().map(|(key, _)| key);
        let is_known = |key: &ObjectKey| known.contains(&(key.group.as_str(), key.kind.as_str()));
        let custom: Vec<&Arc<ObjectKey>> = keys.filter(|key| is_known(key)).collect();
        if custom.len() != self.custom.len() || !custom.iter().all(|key| self.is_custom(key)) {
            let mut pieces = Shards::default();
            for key in custom {
                pieces.piece_mut(key.as_ref()).insert(Arc::clone(key), ());
            }
            self.custom = pieces;
            self.changes.all();
        }
    }

    /// Notes that an object is shown in another way, though it has not changed.
    pub(super) fn touch(&mut self, key: ObjectKey) {
        self.changes.push(Arc::new(key));
    }

    fn unlink(&mut self, key: &Arc<ObjectKey>, links: &[Owner]) {
        for link in links {
            let piece = self.owned.piece_mut(link);
            if let Some(set) = piece.get_mut(link) {
                Arc::make_mut(set).remove(key);
                if set.is_empty() {
                    piece.remove(link);
                }
            }
        }
    }

    fn record(&mut self, object_ref: &ObjectRef, object: &Value, limit: usize) {
        let event = Arc::new(recorded(object_ref.key(), object));
        let all = Arc::make_mut(&mut self.recorded);
        // The names differ, as all that comes before them hardly does.
        let is_same = |known: &Arc<Recorded>| known.key.name == event.key.name && known.key == event.key;
        if let Some(at) = all.iter().rposition(is_same) {
            all.remove(at);
        }
        all.push_back(event);
        while all.len() > limit {
            all.pop_front();
        }
    }
}

fn links(object: &Value, owners: Vec<OwnerReference>) -> Vec<Owner> {
    let mut links: Vec<Owner> = owners.into_iter().map(|owner| Owner::Uid(owner.uid)).collect();
    let name = meta::annotation(object, "operator-sdk/primary-resource");
    let kind = meta::annotation(object, "operator-sdk/primary-resource-type");
    if let (Some(name), Some(kind)) = (name, kind) {
        links.push(Owner::Primary(kind.to_owned(), name.trim_start_matches('/').to_owned()));
    }
    links
}

/// The keys of what an object names as its owners.
fn owner_keys(object: &Value, owners: &[OwnerReference], key: &ObjectKey) -> Vec<ObjectKey> {
    let mut keys: Vec<ObjectKey> = owners
        .iter()
        .map(|owner| {
            let group = owner.api_version.rsplit_once('/').map_or("", |(group, _)| group).to_owned();
            let (kind, name) = (owner.kind.clone(), owner.name.clone());
            ObjectKey { group, kind, namespace: key.namespace.clone(), name }
        })
        .collect();
    let name = meta::annotation(object, "operator-sdk/primary-resource");
    let kind = meta::annotation(object, "operator-sdk/primary-resource-type");
    if let (Some(name), Some(kind)) = (name, kind) {
        let (kind, group) = kind.split_once('.').unwrap_or((kind, ""));
        let (namespace, name) = match name.trim_start_matches('/').split_once('/') {
            Some((namespace, name)) => (Some(namespace.to_owned()), name),
            None => (None, name.trim_start_matches('/')),
        };
        let (group, kind, name) = (group.to_owned(), kind.to_owned(), name.to_owned());
        keys.push(ObjectKey { group, kind, namespace, name });
    }
    keys
}

/// Reads a Kubernetes Event of either group.
fn recorded(key: ObjectKey, object: &Value) -> Recorded {
    let text = |path: &str| object.pointer(path).and_then(Value::as_str).filter(|text| !text.is_empty());
    let about = if object.get("regarding").is_some() { "/regarding" } else { "/involvedObject" };
    let of = |field: &str| text(&format!("{about}/{field}")).map(str::to_owned);
    let times = ["/series/lastObservedTime", "/lastTimestamp", "/deprecatedLastTimestamp", "/eventTime"];
    let at = times.iter().find_map(|path| text(path)).or_else(|| text("/metadata/creationTimestamp"));
    let counts = ["/series/count", "/count", "/deprecatedCount"];

    Recorded {
        key,
        at: at.and_then(|text| text.parse().ok()),
        warning: text("/type") == Some("Warning"),
        reason: text("/reason").unwrap_or_default().to_owned(),
        message: text("/message").or_else(|| text("/note")).unwrap_or_default().to_owned(),
        count: counts.iter().find_map(|path| object.pointer(path)?.as_u64()).unwrap_or(1).max(1),
        kind: of("kind").unwrap_or_default(),
        namespace: of("namespace"),
        name: of("name").unwrap_or_default(),
        from: ["/reportingComponent", "/reportingController", "/source/component"]
            .iter()
            .find_map(|path| text(path))
            .unwrap_or_default()
            .to_owned(),
    }
}
