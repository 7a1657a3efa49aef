//! The problem: a watch breaks, and what happened meanwhile comes as one list: objects that are new, changed
//! or gone look alike there. Own writes come back as events, and must not lead to a reconcile again.
//!
//! The last known state of the objects of one stream, as texts: few of many objects are asked for at any
//! moment. Of objects that nobody is interested in, only the metadata is kept. Turns raw watch events, lists
//! after a break included, into what happened: added, modified with both states, deleted. Pure.

use super::change::{Before, Happened, State};
use super::interest::Interest;
use super::watched_object::WatchedObject;
use opdev_event::WatchEvent;
use opdev_object::meta::{self, ObjectKey, ObjectRef};
use opdev_object::pack::Dictionaries;
use serde_json::Value;
use std::cmp::Ordering;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// A raw event of a stream.
#[derive(Clone, Debug)]
pub enum Raw {
    /// A list begins.
    Init,
    /// An object of that list.
    Listed(WatchedObject),
    /// The list is complete.
    Listing,
    /// An object was added or changed.
    Applied(WatchedObject),
    /// An object is gone.
    Deleted(WatchedObject),
    /// An object that a list did not show is gone indeed: somebody has asked for it.
    Missing(WatchedObject),
}

/// The objects of one stream.
#[derive(Debug, Default)]
pub struct Cache {
    interest: Interest,
    objects: HashMap<ObjectKey, Known>,
    dictionaries: Dictionaries,
    listed: Option<HashSet<ObjectKey>>,
    /// True if a list has been complete.
    complete: bool,
    /// True if the stream has lost its connection since.
    broken: bool,
    /// Objects that a reconcile told and a list did not show: made after the list was taken, or gone before.
    doubtful: Vec<Arc<Value>>,
    /// Uids of objects that we deleted, until the stream has shown that they are gone.
    dead: HashSet<String>,
    /// The newest resource version that the stream has shown; what is older and not known here is gone. Where
    /// each namespace has a watch of its own, that of each of them.
    positions: HashMap<Option<Box<str>>, u64>,
    /// True if each namespace has a watch of its own, which may be behind those of others.
    by_namespace: bool,
}

#[derive(Debug)]
struct Known {
    state: State,
    /// Where a reconcile told this state: the state before, until the stream has shown it, too.
    told: Option<Option<State>>,
}

impl Cache {
    /// The cache of a stream; with `by_namespace` it is made of one for each of several namespaces.
    pub(crate) fn new(by_namespace: bool, interest: Interest) -> Cache {
        Cache { by_namespace, interest, ..Cache::default() }
    }

    /// For a stream that is made of one for each of several namespaces.
    #[cfg(test)]
    pub(crate) fn by_namespace() -> Cache {
        Cache::new(true, Interest::All)
    }

    /// Takes one raw event in and says what it means.
    pub fn take(&mut self, raw: Raw) -> Vec<Happened> {
        if !matches!(raw, Raw::Init | Raw::Listed(_)) {
            self.broken = false;
        }
        if let Raw::Listed(object) | Raw::Applied(object) | Raw::Deleted(object) = &raw {
            self.reached(object.identity());
        }
        match raw {
            Raw::Init => {
                self.listed = Some(HashSet::new());
                Vec::new()
            }
            Raw::Listed(object) => {
                if let (Some(listed), Some(key)) = (&mut self.listed, key(object.identity())) {
                    listed.insert(key);
                }
                self.put(&object, !self.complete).into_iter().collect()
            }
            Raw::Listing => {
                self.complete = true;
                self.dead.clear();
                let Some(listed) = self.listed.take() else { return Vec::new() };
                let unseen = self.objects.iter().filter(|(key, _)| !listed.contains(*key));
                let (told, gone): (Vec<_>, Vec<_>) = unseen.partition(|(_, known)| known.told.is_some());
                self.doubtful = told.into_iter().map(|(_, known)| known.state.object()).collect();
                let gone: Vec<ObjectKey> = gone.into_iter().map(|(key, _)| key.clone()).collect();
                gone.into_iter()
                    .filter_map(|key| self.objects.remove(&key))
                    .map(|known| Happened::deleted(known.state.object().into()))
                    .collect()
            }
            Raw::Applied(object) => self.put(&object, false).into_iter().collect(),
            Raw::Deleted(object) => {
                let identity = object.identity();
                if let Some(uid) = meta::uid(identity) {
                    self.dead.remove(uid);
                }
                let known = key(identity).and_then(|key| self.objects.remove(&key));
                let old = known.map(|known| Before::new(known.state, identity));
                vec![Happened { old, ..Happened::deleted(object) }]
            }
            Raw::Missing(object) => {
                let Some(key) = key(object.identity()) else { return Vec::new() };
                // Made again meanwhile, or shown by the stream: that is newer than the answer.
                let same = |known: &Known| known.state.is_of(object.identity()) && known.told.is_some();
                if !self.objects.get(&key).is_some_and(same) {
                    return Vec::new();
                }
                self.objects.remove(&key);
                vec![Happened::deleted(object)]
            }
        }
    }

    /// Tells the state that a reconcile has read or written, so that a list or event that comes later is
    /// compared with it. What was written, or changed since the stream showed it, shows once more.
    pub fn know(&mut self, object: &Value, wrote: bool) {
        let Some(key) = key(object) else { return };
        let before = self.objects.remove(&key);
        let known = match before {
            Some(before) if before.state.order(object).is_gt() => before,
            // A reconcile may have read what the stream has shown, and nobody was interested in.
            Some(before) if before.state.order(object).is_eq() => match before.state.is_whole {
                true => before,
                false => Known { state: self.whole(object), told: before.told },
            },
            Some(before) => {
                // A change that a reconcile has only read is shown once more, too: the reconcile may have
                // decided before it read, and others that follow the object have not heard of it.
                let told = before.told.unwrap_or(Some(before.state));
                Known { told: Some(told), state: self.whole(object) }
            }
            // Made and gone again before its reconcile had ended: the stream is ahead of what the reconcile
            // tells.
            None if self.is_past(object) => return,
            None => Known { state: self.whole(object), told: wrote.then_some(None) },
        };
        self.objects.insert(key, known);
    }

    /// Returns true if the stream has shown all that happened up to this state.
    fn is_past(&self, object: &Value) -> bool {
        self.complete
            && self.listed.is_none()
            && number(object).is_some_and(|version| version <= self.position_of(object))
    }

    fn position_of(&self, object: &Value) -> u64 {
        self.positions.get(&self.watch_of(object)).copied().unwrap_or_default()
    }

    /// The namespace whose watch shows an object; `None` for the one watch of all.
    fn watch_of(&self, object: &Value) -> Option<Box<str>> {
        meta::namespace(object).filter(|_| self.by_namespace).map(Box::from)
    }

    fn reached(&mut self, object: &Value) {
        let version = number(object).unwrap_or_default();
        if version > self.position_of(object) {
            self.positions.insert(self.watch_of(object), version);
        }
    }

    /// Returns true if the stream has shown all that reconciles told.
    pub fn has_shown_all_told(&self) -> bool {
        self.objects.values().all(|known| known.told.is_none())
    }

    /// Returns true if the stream has come as far as this state of one of its objects.
    pub fn has_reached(&self, object: &Value) -> bool {
        number(object).is_none_or(|version| version <= self.position_of(object))
    }

    /// Tells that a reconcile has deleted an object, so that it is not seen any more; its end still shows as
    /// an event.
    pub fn bury(&mut self, object: &Value) {
        let Some(key) = key(object) else { return };
        let Some(uid) = meta::uid(object) else { return };
        if self.objects.get(&key).is_some_and(|known| known.state.is_of(object)) {
            self.objects.remove(&key);
            self.dead.insert(uid.to_owned());
        }
    }

    /// Objects to ask for, because the list that was taken in last does not say if they are there.
    pub fn take_doubtful(&mut self) -> Vec<Arc<Value>> {
        std::mem::take(&mut self.doubtful)
    }

    /// The stream cannot follow for now.
    pub fn broke(&mut self) {
        self.broken = true;
    }

    /// Returns true if it can be read instead of the API server.
    pub fn is_fresh(&self) -> bool {
        self.complete && !self.broken
    }

    /// The keys of all objects.
    pub fn keys(&self) -> impl Iterator<Item = &ObjectKey> {
        self.objects.keys()
    }

    /// The objects that are known whole: all in which somebody is interested.
    pub fn objects(&self) -> impl Iterator<Item = Arc<Value>> {
        self.objects.values().filter(|known| known.state.is_whole).map(|known| known.state.object())
    }

    /// Returns true if the metadata is all that is known of some object.
    pub(crate) fn is_partial(&self) -> bool {
        self.objects.values().any(|known| !known.state.is_whole)
    }

    /// One object; the outer `None` where only its metadata is known.
    pub fn get(&self, key: &ObjectKey) -> Option<Option<Arc<Value>>> {
        match self.objects.get(key) {
            None => Some(None),
            Some(known) => known.state.is_whole.then(|| Some(known.state.object())),
        }
    }

    /// Sets whose objects are kept whole from now on. True where all objects have to be listed again, for
    /// somebody is interested in those of which only the metadata was kept; until then the cache is not read.
    pub fn set_interest(&mut self, interest: &Interest) -> bool {
        let more = self.interest.widen(interest);
        // A list that is under way has kept less than is wanted now.
        let again = more && (self.is_partial() || self.listed.is_some());
        self.broken |= again;
        again
    }

    /// The uid of one object; the outer `None` where it is not known.
    pub fn uid(&self, key: &ObjectKey) -> Option<Option<&str>> {
        self.objects.get(key).map(|known| known.state.uid.as_deref())
    }

    /// The kept part of an object that the stream shows.
    fn state(&self, object: &WatchedObject) -> State {
        match self.interest.is_in(object.identity()) {
            true => self.whole(object),
            false => State::of(object.identity(), false, &self.dictionaries),
        }
    }

    fn whole(&self, object: &Value) -> State {
        State::of(object, true, &self.dictionaries)
    }

    fn put(&mut self, object: &WatchedObject, initial: bool) -> Option<Happened> {
        let identity = object.identity();
        let key = key(identity)?;
        if meta::uid(identity).is_some_and(|uid| self.dead.contains(uid)) {
            return None;
        }
        let known = self.objects.remove(&key);
        // An object that a reconcile has made was not there at the start.
        let initial = initial && known.is_none();
        let happened = |event, old: Option<State>| {
            let initial = initial && event == WatchEvent::Added;
            let old = old.map(|old| Before::new(old, identity));
            Some(Happened { event, old, object: object.clone(), initial })
        };
        let (state, told, happened) = match known.filter(|known| known.state.is_of(identity)) {
            None => (self.state(object), None, happened(WatchEvent::Added, None)),
            Some(Known { state, told }) => match (state.order(identity), told) {
                (Ordering::Less, _) => {
                    (self.state(object), None, happened(WatchEvent::Modified, Some(state)))
                }
                (Ordering::Equal, Some(Some(before))) => {
                    (state, None, happened(WatchEvent::Modified, Some(before)))
                }
                (Ordering::Equal, Some(None)) => (state, None, happened(WatchEvent::Added, None)),
                // Listed again because somebody is interested in it now.
                (Ordering::Equal, None) if !state.is_whole => (self.state(object), None, None),
                (Ordering::Equal, None) => (state, None, None),
                (Ordering::Greater, told) => (state, told, None),
            },
        };
        self.objects.insert(key, Known { state, told });
        happened
    }
}

fn key(object: &Value) -> Option<ObjectKey> {
    ObjectRef::of(object).map(|object| object.key())
}

fn number(object: &Value) -> Option<u64> {
    meta::resource_version(object)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mapping::{PRIMARY_RESOURCE, Primary};
    use serde_json::json;

    fn object(name: &str, uid: &str, version: u32) -> WatchedObject {
        Arc::new(json!({"apiVersion": "v1", "kind": "Service", "metadata": {
            "namespace": "default", "name": name, "uid": uid, "resourceVersion": version.to_string()}}))
        .into()
    }

    fn run(cache: &mut Cache, raw: Vec<Raw>) -> Vec<String> {
        raw.into_iter()
            .flat_map(|raw| cache.take(raw))
            .map(|happened| {
                format!(
                    "{:?} {}{}",
                    happened.event,
                    meta::name(&happened.object).unwrap(),
                    if happened.initial { " initial" } else { "" }
                )
            })
            .collect()
    }

    #[test]
    fn a_second_list_tells_what_was_missed() {
        let mut cache = Cache::default();
        let first = vec![
            Raw::Init,
            Raw::Listed(object("a", "1", 1)),
            Raw::Listed(object("b", "2", 2)),
            Raw::Listed(object("c", "3", 3)),
            Raw::Listing,
        ];
        assert_eq!(run(&mut cache, first), ["Added a initial", "Added b initial", "Added c initial"]);
        let second = vec![
            Raw::Init,
            Raw::Listed(object("a", "1", 1)),
            Raw::Listed(object("b", "2", 9)),
            Raw::Listed(object("d", "4", 8)),
            Raw::Listing,
        ];
        assert_eq!(run(&mut cache, second), ["Modified b", "Added d", "Deleted c"]);
    }

    #[test]
    fn a_change_says_whether_its_object_led_elsewhere_before() {
        let mut cache = Cache::default();
        run(&mut cache, vec![Raw::Init, Raw::Listed(object("a", "1", 1)), Raw::Listing]);
        let mut version = 1;
        let mut moved = |field: &str, value: Value| {
            version += 1;
            let mut new = Value::clone(&object("a", "1", version));
            new.pointer_mut("/metadata").unwrap()[field] = value;
            let happened = cache.take(Raw::Applied(Arc::new(new).into()));
            let old = happened[0].old.clone().unwrap();
            assert_eq!(
                old["metadata"]["resourceVersion"],
                (version - 1).to_string(),
                "it is there when asked for"
            );
            happened[0].moved_from().is_some()
        };
        assert!(!moved("generation", json!(2)));
        assert!(moved("labels", json!({"app": "a"})));
        assert!(!moved("labels", json!({"app": "a"})));
        assert!(moved(
            "ownerReferences",
            json!([{"kind": "A", "name": "a", "uid": "1", "controller": true}])
        ));
        assert!(moved("annotations", json!({PRIMARY_RESOURCE: "default/a"})));
        assert!(moved("annotations", json!({"other": "default/a"})));
        assert!(!moved("annotations", json!({"other": "b"})));
    }

    #[test]
    fn what_we_deleted_does_not_come_back_with_a_late_event() {
        let mut cache = Cache::default();
        run(&mut cache, vec![Raw::Init, Raw::Listed(object("a", "1", 1)), Raw::Listing]);
        assert!(cache.is_fresh());
        cache.bury(&object("a", "1", 1));
        assert!(run(&mut cache, vec![Raw::Applied(object("a", "1", 2))]).is_empty());
        assert_eq!(cache.objects().count(), 0);
        assert_eq!(run(&mut cache, vec![Raw::Deleted(object("a", "1", 3))]), ["Deleted a"]);
        assert_eq!(run(&mut cache, vec![Raw::Applied(object("a", "2", 4))]), ["Added a"]);
        cache.broke();
        assert!(!cache.is_fresh());
    }

    #[test]
    fn what_was_made_and_deleted_before_its_reconcile_had_ended_stays_gone() {
        let mut cache = Cache::default();
        run(&mut cache, vec![Raw::Init, Raw::Listing]);
        let made = object("a", "1", 5);
        let events = vec![Raw::Applied(made.clone()), Raw::Deleted(object("a", "1", 6))];
        assert_eq!(run(&mut cache, events), ["Added a", "Deleted a"]);
        cache.know(&made, true);
        assert_eq!(cache.objects().count(), 0);
        cache.know(&object("b", "2", 7), true);
        assert_eq!(cache.objects().count(), 1, "what the stream has not shown yet is known");
    }

    #[test]
    fn one_watch_of_all_namespaces_has_shown_what_is_older_in_any_of_them() {
        let mut elsewhere = Value::clone(&object("b", "2", 90));
        elsewhere["metadata"]["namespace"] = json!("other");
        let (mut one, mut several) = (Cache::default(), Cache::by_namespace());
        for cache in [&mut one, &mut several] {
            let shown = vec![Raw::Init, Raw::Listed(Arc::new(elsewhere.clone()).into()), Raw::Listing];
            run(cache, shown);
            // Made and gone before the list, as its reconcile tells late.
            cache.know(&object("a", "1", 5), true);
        }
        assert_eq!(one.objects().count(), 1, "it is gone");
        assert_eq!(several.objects().count(), 2, "its namespace's watch may be behind");
    }

    #[test]
    fn what_was_made_while_a_list_was_taken_is_not_gone() {
        let mut cache = Cache::default();
        let made = object("a", "1", 5);
        run(&mut cache, vec![Raw::Init]);
        cache.know(&made, true);
        assert!(run(&mut cache, vec![Raw::Listing]).is_empty());
        assert_eq!(cache.take_doubtful(), [made.tree().clone()]);
        assert!(cache.take_doubtful().is_empty(), "asked once");
        assert_eq!(run(&mut cache, vec![Raw::Applied(made.clone())]), ["Added a"]);
        assert!(run(&mut cache, vec![Raw::Missing(made)]).is_empty(), "the stream has shown it");

        let other = object("b", "2", 6);
        run(&mut cache, vec![Raw::Init, Raw::Listed(object("a", "1", 5))]);
        cache.know(&other, true);
        assert!(run(&mut cache, vec![Raw::Listing]).is_empty());
        assert!(run(&mut cache, vec![Raw::Missing(object("b", "other", 6))]).is_empty(), "another one");
        assert_eq!(run(&mut cache, vec![Raw::Missing(other)]), ["Deleted b"]);
        assert_eq!(cache.objects().count(), 1);
    }

    #[test]
    fn a_change_that_a_reconcile_has_read_first_is_not_lost_to_others() {
        let mut cache = Cache::default();
        run(&mut cache, vec![Raw::Init, Raw::Listed(object("a", "1", 1)), Raw::Listing]);
        cache.know(&object("a", "1", 5), false);
        assert_eq!(run(&mut cache, vec![Raw::Applied(object("a", "1", 5))]), ["Modified a"]);
        cache.know(&object("a", "1", 5), false);
        assert!(run(&mut cache, vec![Raw::Applied(object("a", "1", 5))]).is_empty(), "told once");
    }

    #[test]
    fn a_stream_has_caught_up_once_it_has_shown_what_is_there_and_what_reconciles_told() {
        let mut cache = Cache::default();
        let (a, b) = (object("a", "1", 5), object("b", "2", 6));
        assert!(!cache.has_reached(&a), "nothing has been listed");
        run(&mut cache, vec![Raw::Init, Raw::Listed(a.clone()), Raw::Listing]);
        assert!(cache.has_reached(&a) && !cache.has_reached(&b));
        cache.know(&b, true);
        assert!(
            !cache.has_shown_all_told() && !cache.has_reached(&b),
            "a reconcile has told it, not the stream"
        );
        run(&mut cache, vec![Raw::Applied(b.clone())]);
        assert!(cache.has_shown_all_told() && cache.has_reached(&b));
    }

    #[test]
    fn what_we_wrote_is_the_state_to_compare_with() {
        let mut cache = Cache::default();
        cache.know(&object("a", "1", 5), true);
        let events = vec![Raw::Init, Raw::Listed(object("a", "1", 7)), Raw::Listing];
        assert_eq!(run(&mut cache, events), ["Modified a"]);
        cache.know(&object("a", "1", 6), true);
        assert!(run(&mut cache, vec![Raw::Applied(object("a", "1", 6))]).is_empty(), "older than known");
        assert!(run(&mut cache, vec![Raw::Applied(object("a", "1", 7))]).is_empty(), "nothing new");
        assert_eq!(run(&mut cache, vec![Raw::Applied(object("a", "other", 8))]), ["Added a"]);
        cache.know(&object("a", "other", 9), true);
        assert_eq!(run(&mut cache, vec![Raw::Applied(object("a", "other", 9))]), ["Modified a"], "our echo");
        assert_eq!(run(&mut cache, vec![Raw::Deleted(object("a", "other", 10))]), ["Deleted a"]);
    }

    fn leading_to_fleets() -> Cache {
        let fleet = Primary { group: "g".to_owned(), kind: "Fleet".to_owned(), namespaced: true };
        Cache::new(false, Interest::Leading(vec![fleet]))
    }

    fn owned(version: u32) -> WatchedObject {
        let mut object = Value::clone(&object("a", "1", version));
        object["metadata"]["ownerReferences"] =
            json!([{"apiVersion": "g/v1", "kind": "Fleet", "name": "f", "uid": "f", "controller": true}]);
        Arc::new(object).into()
    }

    #[test]
    fn of_an_object_that_leads_to_nobody_only_the_metadata_is_kept() {
        let mut cache = leading_to_fleets();
        let mut stranger = Value::clone(&object("a", "1", 1));
        stranger["metadata"]["labels"] = json!({"app": "a"});
        let listed = Arc::new(stranger).into();
        run(&mut cache, vec![Raw::Init, Raw::Listed(listed), Raw::Listing]);
        let key = cache.keys().next().cloned().unwrap();
        assert!(cache.is_partial() && cache.objects().count() == 0);
        assert_eq!(cache.get(&key), None, "the API server has to be asked");
        let happened = cache.take(Raw::Applied(owned(2)));
        assert!(happened[0].before().is_none(), "what it was before is not known");
        assert_eq!(happened[0].moved_from().unwrap()["metadata"]["labels"]["app"], "a");
        assert!(!cache.is_partial());
        assert_eq!(cache.get(&key).flatten().unwrap(), *owned(2).tree());
        // It is let go, and what was known of it is there once more.
        let happened = cache.take(Raw::Applied(object("a", "1", 3)));
        assert!(happened[0].before().is_some() && happened[0].moved_from().is_some());
        assert!(cache.is_partial());
    }

    #[test]
    fn who_becomes_interested_in_all_objects_has_them_after_the_next_list() {
        let mut cache = leading_to_fleets();
        let list = || vec![Raw::Init, Raw::Listed(object("b", "2", 1)), Raw::Listing];
        run(&mut cache, list());
        assert!(cache.is_fresh() && cache.is_partial());
        assert!(cache.set_interest(&Interest::All), "it has to be listed again");
        assert!(!cache.is_fresh());
        assert!(run(&mut cache, list()).is_empty(), "nothing has happened");
        assert!(cache.is_fresh() && !cache.is_partial());
        assert!(!cache.set_interest(&leading_to_fleets().interest), "it does not go back");
        assert!(!cache.is_partial());
    }

    #[test]
    fn what_a_reconcile_has_read_is_known_whole() {
        let mut cache = leading_to_fleets();
        run(&mut cache, vec![Raw::Init, Raw::Listed(object("b", "2", 1)), Raw::Listing]);
        cache.know(&object("b", "2", 1), false);
        assert!(!cache.is_partial());
    }
}
