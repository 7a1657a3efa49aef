//! Objects that an event wakes, each with its cause: the object itself, the owner of a child, the custom
//! resource of a release's object, and whoever has read the object. Pure.

use super::kinds::Served;
use crate::queue::{Kind, Mark, kind_of};
use jiff::Timestamp;
use opdev_cache::change::Happened;
use opdev_cache::mapping::{Primary, primaries_of};
use opdev_cache::stream::Follow;
use opdev_client::{OWN_MANAGER, mark};
use opdev_event::reconcile::object_change::{
    changed_fields, child_update_counts, dependent_update_counts, is_own_part, last_writer, managers_of,
};
use opdev_event::{CauseKind, Relation, WatchEvent};
use opdev_object::meta::{self, Gvk, ObjectKey, ObjectRef};
use opdev_object::path::Path;
use opdev_object::selector::LabelSelector;
use opdev_reconcile::FINALIZER;
use opdev_release::objects::inject::CHART_LABEL;
use opdev_script::contract::Read;
use serde_json::Value;
use std::collections::HashMap;

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
    /// Nothing but what a reconcile writes to its own object has changed.
    pub(super) echo: bool,
    /// A child that was there when its kind was first listed: a reconcile that begins later sees it.
    pub(super) listed: bool,
}

impl Wake {
    /// A reconcile more, for a change that is not known any more.
    pub(super) fn again(key: ObjectKey) -> Wake {
        let kind = CauseKind::Period;
        Wake { key, kind, mark: None, gone: false, leaving: false, echo: true, listed: false }
    }
}

/// Readers of objects, by what they have read.
#[derive(Debug, Default)]
pub(super) struct Readers {
    by_object: HashMap<ObjectKey, Vec<(Read, Option<LabelSelector>)>>,
}

impl Readers {
    /// Notes the objects that a reconcile has read; they take the place of those it had read before.
    pub(super) fn set(&mut self, key: &ObjectKey, reads: Vec<Read>) {
        if reads.is_empty() {
            self.by_object.remove(key);
            return;
        }
        // A selector that cannot be read picks nothing; the read itself has failed.
        let parsed = reads.into_iter().map(|read| {
            let selector = LabelSelector::parse(&read.selector).ok();
            (read, selector)
        });
        self.by_object.insert(key.clone(), parsed.collect());
    }

    /// The reads of an object.
    pub(super) fn reads_of(&self, key: &ObjectKey) -> Reads {
        Reads(self.by_object.get(key).cloned().unwrap_or_default())
    }

    /// Forgets an object; whether it had read anything.
    pub(super) fn forget(&mut self, key: &ObjectKey) -> bool {
        self.by_object.remove(key).is_some()
    }

    /// Forgets all objects of a kind.
    pub(super) fn forget_kind(&mut self, kind: &Kind) {
        self.by_object.retain(|key, _| kind_of(key) != *kind);
    }

    /// Everything that is read by somebody.
    pub(super) fn all(&self) -> impl Iterator<Item = &Read> {
        self.by_object.values().flatten().map(|(read, _)| read)
    }

    /// Objects whose reconcile has read an object of a kind.
    fn of<'a>(&'a self, gvk: &'a Gvk, object: &'a Value) -> impl Iterator<Item = &'a ObjectKey> {
        let reads = move |read: &(Read, Option<LabelSelector>)| is_read(read, gvk, object);
        self.by_object.iter().filter(move |(_, all)| all.iter().any(reads)).map(|(key, _)| key)
    }
}

/// Objects that one object's reconcile has read.
#[derive(Debug, Default)]
pub(super) struct Reads(Vec<(Read, Option<LabelSelector>)>);

impl Reads {
    /// Returns true if what happened to an object concerns a read.
    fn concern(&self, gvk: &Gvk, happened: &Happened) -> bool {
        let is_read = |state: &Value| self.0.iter().any(|read| is_read(read, gvk, state));
        is_read(happened.object.identity()) || happened.moved_from().is_some_and(is_read)
    }

    /// Returns true if something was read that was not read before.
    pub(super) fn are_more_than(&self, before: &Reads) -> bool {
        self.0.iter().any(|(read, _)| !before.0.iter().any(|(known, _)| known == read))
    }

    /// The wake for a change that came while the reconcile ran which says only now that it has read such an
    /// object; `before` is what the reconciles before had read: that has woken already.
    pub(super) fn wake(
        &self,
        before: &Reads,
        key: &ObjectKey,
        gvk: &Gvk,
        happened: &Happened,
    ) -> Option<Wake> {
        let news = self.concern(gvk, happened) && !before.concern(gvk, happened) && counts(happened).1;
        let mut object = ObjectRef::of(happened.object.identity()).filter(|_| news)?;
        object.gvk = gvk.clone();
        Some(other_wake(happened, object, key.clone(), Relation::Related))
    }
}

fn is_read((read, selector): &(Read, Option<LabelSelector>), gvk: &Gvk, object: &Value) -> bool {
    let inside = read.namespace.is_none() || read.namespace.as_deref() == meta::namespace(object);
    let labels = || object.pointer("/metadata/labels").and_then(Value::as_object).cloned();
    read.gvk == *gvk
        && inside
        && match &read.name {
            Some(name) => meta::name(object) == Some(name),
            None => selector.as_ref().is_some_and(|s| s.matches(&labels().unwrap_or_default())),
        }
}

/// The manager's view of who is who.
pub(super) struct View<'a> {
    pub(super) primaries: &'a HashMap<Kind, Served>,
    pub(super) mapping: &'a [Primary],
    pub(super) readers: &'a Readers,
    /// When opdev began to watch.
    pub(super) began: Timestamp,
}

impl View<'_> {
    /// The objects to wake for what happened in a stream.
    pub(super) fn wakes(&self, happened: &Happened, follow: &Follow) -> Vec<Wake> {
        let mut wakes: Vec<Wake> = Vec::new();
        for served in self.primaries.values().filter(|served| served.follow == *follow) {
            wakes.extend(primary_wake(happened, served));
        }
        let Some(mut object) = ObjectRef::of(happened.object.identity()) else { return wakes };
        object.gvk = follow.gvk.clone();
        let owners = self.owners(happened, follow);
        let readers = self.readers(happened, follow);
        if owners.is_empty() && readers.is_empty() {
            return wakes;
        }
        let (chart, typed) = counts(happened);
        for (key, relation) in owners {
            let is_typed = self.primaries.get(&kind_of(&key)).is_some_and(Served::is_typed);
            let asks = if is_typed { typed } else { chart };
            if asks && !wakes.iter().any(|wake| wake.key == key) {
                let wake = self.started_by(happened, other_wake(happened, object.clone(), key, relation));
                wakes.push(Wake { listed: happened.initial, ..wake });
            }
        }
        for key in readers.into_iter().filter(|_| typed) {
            if !wakes.iter().any(|wake| wake.key == *key) {
                let wake = other_wake(happened, object.clone(), key.clone(), Relation::Related);
                wakes.push(self.started_by(happened, wake));
            }
        }
        wakes
    }

    /// The first list of a kind also brings objects that were there before opdev began: nobody has created
    /// these now. To the second, as Kubernetes writes it.
    fn started_by(&self, happened: &Happened, wake: Wake) -> Wake {
        if !happened.initial {
            return wake;
        }
        let created = happened.object.identity()["metadata"]["creationTimestamp"].as_str();
        let created: Option<Timestamp> = created.and_then(|text| text.parse().ok());
        let is_older = created.is_some_and(|created| created.as_second() < self.began.as_second());
        if is_older { Wake { kind: CauseKind::Start, ..wake } } else { wake }
    }

    /// Objects whose reconcile has read this one, as it was or as it is.
    fn readers<'a>(&'a self, happened: &'a Happened, follow: &'a Follow) -> Vec<&'a ObjectKey> {
        if !follow.selector.is_empty() || self.readers.by_object.is_empty() {
            return Vec::new();
        }
        let before = happened.moved_from().into_iter().flat_map(|old| self.readers.of(&follow.gvk, old));
        before.chain(self.readers.of(&follow.gvk, happened.object.identity())).collect()
    }

    /// The custom resources that the object belongs to, now or before.
    fn owners(&self, happened: &Happened, follow: &Follow) -> Vec<(ObjectKey, Relation)> {
        let by_chart = follow.selector == CHART_LABEL;
        let before = happened.moved_from().into_iter().flat_map(|old| primaries_of(old, self.mapping));
        let mut found: Vec<(ObjectKey, Relation)> = Vec::new();
        let now = primaries_of(happened.object.identity(), self.mapping);
        for (key, relation) in now.into_iter().chain(before) {
            let watched = by_chart
                || self.primaries.get(&kind_of(&key)).is_some_and(|served| {
                    follow.selector.is_empty() && served.children.contains(&follow.gvk)
                });
            if watched && !found.iter().any(|(known, _)| *known == key) {
                found.push((key, relation));
            }
        }
        found
    }
}

/// Decides whether an event of an object asks for a reconcile of the chart, or of the program, that it
/// belongs to.
fn counts(happened: &Happened) -> (bool, bool) {
    match (&happened.event, happened.before()) {
        (WatchEvent::Added, _) => (false, true),
        (WatchEvent::Modified, None) => (false, true),
        (WatchEvent::Deleted, _) => (true, true),
        (WatchEvent::Modified, Some(old)) => {
            (dependent_update_counts(old, &happened.object), child_update_counts(old, &happened.object))
        }
    }
}

fn primary_wake(happened: &Happened, served: &Served) -> Option<Wake> {
    let mut object = ObjectRef::of(happened.object.identity())?;
    object.gvk = served.follow.gvk.clone();
    let key = object.key();
    let gone = happened.event == WatchEvent::Deleted;
    // An object that the selector does not pick is somebody else's, unless opdev has installed it and it is
    // to go.
    if !gone && !served.watch.picks(&happened.object) && !is_ours_and_leaves(&happened.object) {
        return None;
    }
    // A program is asked again when what it is asked for has changed, not when its answer was written.
    if served.is_typed()
        && happened.event == WatchEvent::Modified
        && happened.before().is_some_and(|old| !dependent_update_counts(old, &happened.object))
    {
        return None;
    }
    let kind =
        if happened.initial { CauseKind::Start } else { watch_cause(happened, object, Relation::Primary) };
    let leaving = meta::deletion_timestamp(&happened.object).is_some();
    let echo = match (happened.event, happened.before()) {
        (WatchEvent::Modified, Some(old)) => is_own_part(old, &happened.object),
        (WatchEvent::Modified, None) | (WatchEvent::Deleted, _) => true,
        (WatchEvent::Added, _) => false,
    };
    Some(Wake { key, kind, mark: mark(&happened.object, gone), gone, leaving, echo, listed: false })
}

/// Returns true if an object is being deleted and waits for a finalizer that opdev has put there. Another
/// operator's, which looks after the rest of a kind, has the same name.
fn is_ours_and_leaves(object: &Value) -> bool {
    let at = meta::finalizers(object).iter().position(|finalizer| *finalizer == FINALIZER);
    let path = at.map(|at| Path::root().field("metadata").field("finalizers").index(at));
    meta::deletion_timestamp(object).is_some()
        && path.is_some_and(|path| managers_of(object, &path, "").iter().any(|name| name == OWN_MANAGER))
}

fn other_wake(happened: &Happened, object: ObjectRef, key: ObjectKey, relation: Relation) -> Wake {
    let gone = happened.event == WatchEvent::Deleted;
    Wake {
        key,
        kind: watch_cause(happened, object, relation),
        mark: mark(&happened.object, gone),
        gone: false,
        leaving: false,
        echo: true,
        listed: false,
    }
}

fn watch_cause(happened: &Happened, object: ObjectRef, relation: Relation) -> CauseKind {
    let old = happened.before().filter(|_| happened.event == WatchEvent::Modified);
    // The status of an object is shown where it can be the cause.
    let without_status = match (relation, old) {
        (Relation::Primary, _) => false,
        (_, Some(old)) => dependent_update_counts(old, &happened.object),
        (_, None) => true,
    };
    CauseKind::Watch {
        object,
        event: happened.event,
        fields: old.map(|old| changed_fields(old, &happened.object, without_status)).unwrap_or_default(),
        by: match happened.event {
            WatchEvent::Deleted => None,
            WatchEvent::Added | WatchEvent::Modified => last_writer(old, &happened.object, without_status),
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

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use std::sync::Arc;

    fn readers(name: Option<&str>, selector: &str) -> Reads {
        let mut readers = Readers::default();
        let read = Read {
            gvk: Gvk::new("", "v1", "ConfigMap"),
            namespace: Some("a".to_owned()),
            name: name.map(str::to_owned),
            selector: selector.to_owned(),
        };
        readers.set(&ObjectKey::default(), vec![read]);
        readers.reads_of(&ObjectKey::default())
    }

    #[test]
    fn a_change_that_came_after_a_first_read_wakes_whoever_has_read() {
        let object = json!({"apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"namespace": "a", "name": "size", "uid": "1", "resourceVersion": "7", "labels": {"x": "y"}}});
        let happened =
            Happened { event: WatchEvent::Added, old: None, object: Arc::new(object).into(), initial: false };
        let (gvk, key, none) = (Gvk::new("", "v1", "ConfigMap"), ObjectKey::default(), Reads::default());
        let wake = |reads: &Reads, before: &Reads| reads.wake(before, &key, &gvk, &happened);
        let (named, picked) = (readers(Some("size"), ""), readers(None, "x=y"));
        for reads in [&named, &picked] {
            let woken = wake(reads, &none).expect("nobody was known to read it");
            assert!(matches!(woken.kind, CauseKind::Watch { relation: Relation::Related, .. }));
            assert_eq!(woken.mark, Some(("1".to_owned(), "7".to_owned())));
            assert!(wake(reads, reads).is_none(), "that has woken when it came");
        }
        assert!(wake(&readers(Some("other"), ""), &none).is_none());
        assert!(wake(&readers(None, "x=z"), &none).is_none());
        assert!(named.are_more_than(&none) && !named.are_more_than(&named));
    }

    #[test]
    fn a_child_that_was_there_before_the_start_was_not_created_now() {
        let (primaries, readers) = (HashMap::new(), Readers::default());
        let began: Timestamp = "2026-01-01T00:01:00Z".parse().unwrap();
        let view = View { primaries: &primaries, mapping: &[], readers: &readers, began };
        let cause = |created: &str, initial: bool| {
            let object = json!({"apiVersion": "v1", "kind": "ConfigMap",
                "metadata": {"namespace": "a", "name": "size", "creationTimestamp": created}});
            let of = ObjectRef::of(&object).unwrap();
            let object = Arc::new(object).into();
            let happened = Happened { event: WatchEvent::Added, old: None, object, initial };
            let wake = other_wake(&happened, of, ObjectKey::default(), Relation::Owner);
            view.started_by(&happened, wake).kind
        };
        assert_eq!(cause("2026-01-01T00:00:59Z", true), CauseKind::Start);
        for (created, initial) in [("2026-01-01T00:01:00Z", true), ("2026-01-01T00:00:59Z", false)] {
            assert!(matches!(cause(created, initial), CauseKind::Watch { .. }), "{created}");
        }
    }
}
