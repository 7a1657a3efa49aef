//! Objects whose metadata alone was read: rows as of whole ones, versions of whole ones only, nothing lost
//! that was known.

use super::{cr, memcached, owned, see};
use crate::State;
use crate::tree;
use jiff::Timestamp;
use opdev_event::{Body, Event, ObjectGone, ObjectSeen, UnrelatedObject, UnrelatedSeen};
use opdev_object::meta::{ObjectKey, ObjectRef};
use serde_json::{Value, json};

fn map(version: &str, small: &str) -> Value {
    let mut map =
        owned("v1", "ConfigMap", "settings", &cr("a"), json!({"data": {"big": "x", "small": small}}));
    map["metadata"]["resourceVersion"] = version.into();
    map["metadata"]["managedFields"] = json!([
        {"manager": "helm", "fieldsV1": {"f:data": {".": {}, "f:big": {}, "f:small": {}}}},
        {"manager": "kubectl", "fieldsV1": {"f:data": {"f:small": {}}, "f:binaryData": {"f:small": {}}}}]);
    map
}

/// The object that an API server sends where metadata is asked for; kind and version are put in by who
/// asks.
fn metadata(object: &Value) -> Event {
    let only =
        json!({"apiVersion": object["apiVersion"], "kind": object["kind"], "metadata": object["metadata"]});
    Event::ObjectSeen(ObjectSeen {
        at: Timestamp::UNIX_EPOCH,
        object_ref: ObjectRef::of(object).unwrap(),
        metadata_only: true,
        object: Body::new(&only),
    })
}

fn key() -> ObjectKey {
    ObjectRef::of(&map("1", "")).unwrap().key()
}

fn start() -> State {
    let mut state = memcached();
    see(&mut state, &cr("a"));
    state.reduce(metadata(&map("1", "1")));
    state
}

#[test]
fn metadata_makes_a_row_and_no_version() {
    let mut state = start();
    let seen = state.objects.get(&key()).unwrap();
    assert_eq!((seen.metadata_only, seen.health.word.as_str()), (true, "3 keys"));
    assert!(seen.object.pointer("/metadata/managedFields").is_none() && seen.object.get("data").is_none());
    assert!(state.versions(&key()).is_none());
    let root = ObjectRef::of(&cr("a")).unwrap().key();
    assert_eq!(tree::owned(&state, &root).len(), 1);
    let mut record = owned("v1", "Secret", "sh.helm.release.v1.a.v3", &cr("a"), json!({}));
    record["metadata"]["labels"] = json!({"owner": "helm", "status": "superseded"});
    state.reduce(metadata(&record));
    let record = state.objects.get(&ObjectRef::of(&record).unwrap().key()).unwrap();
    assert_eq!(record.health.word, "superseded");
}

#[test]
fn what_was_read_whole_stays_until_it_changes() {
    let mut state = start();
    see(&mut state, &map("1", "1"));
    let whole = |state: &State| state.objects.get(&key()).unwrap().object.get("data").is_some();
    assert!(whole(&state));
    state.reduce(metadata(&map("1", "1")));
    assert!(whole(&state), "a list after a break tells nothing new");
    state.reduce(metadata(&map("2", "2")));
    assert!(!whole(&state), "what was read is not what there is now");
    assert_eq!(state.versions(&key()).unwrap().count(), 1);
    see(&mut state, &map("3", "3"));
    let versions = state.versions(&key()).unwrap();
    let small: Vec<Value> =
        versions.backwards().map(|version| version.object["data"]["small"].clone()).collect();
    assert_eq!(small, ["3", "1"], "the versions that were read whole, and no others");
}

#[test]
fn metadata_does_not_take_conditions_away() {
    let mut state = start();
    let mut budget = owned("policy/v1", "PodDisruptionBudget", "b", &cr("a"), json!({}));
    budget["status"] = json!({"conditions": [{"type": "DisruptionAllowed", "status": "True"}]});
    see(&mut state, &budget);
    state.reduce(metadata(&budget));
    let lines = state.conditions_of(&ObjectRef::of(&budget).unwrap().key());
    assert_eq!((lines.len(), lines[0].spans.len()), (1, 1), "{lines:?}");
}

#[test]
fn what_is_gone_and_was_never_read_whole_is_told_of_by_its_metadata() {
    let mut state = start();
    state.reduce(Event::ObjectGone(ObjectGone {
        at: Timestamp::UNIX_EPOCH,
        object_ref: ObjectRef::of(&map("1", "1")).unwrap(),
    }));
    assert!(state.objects.get(&key()).is_none());
    let gone = state.archive.gone_of(&key()).unwrap();
    assert!(gone.seen.metadata_only);
    assert_eq!(gone.versions.count(), 1);
}

#[test]
fn an_unrelated_object_is_a_key_until_it_belongs_to_the_project() {
    let mut state = State::default();
    let (map, key) = (map("1", "1"), key());
    let reference = ObjectRef::of(&map).unwrap();
    let unrelated = |uid: Option<String>| {
        Event::UnrelatedSeen(UnrelatedSeen {
            at: Timestamp::UNIX_EPOCH,
            gvk: reference.gvk.clone(),
            objects: vec![UnrelatedObject {
                namespace: reference.namespace.clone(),
                name: reference.name.clone(),
                uid,
                changed_by: None,
            }],
        })
    };
    let before = state.objects.changes().clone();
    state.reduce(unrelated(reference.uid.clone()));
    assert!(state.objects.is_unrelated(&key) && state.objects.get(&key).is_none());
    assert_eq!(state.objects.keys().filter(|known| ***known == key).count(), 1, "it can be found by name");
    assert!(!state.objects.changes().same(&before), "lists of names are made anew");
    assert_eq!(state.objects.changes().since(&before).unwrap().count(), 0, "and no rows");
    let before = state.objects.changes().clone();
    state.reduce(unrelated(reference.uid.clone()));
    assert!(state.objects.changes().same(&before));

    see(&mut state, &map);
    assert!(!state.objects.is_unrelated(&key) && state.objects.get(&key).is_some());
    state.reduce(unrelated(reference.uid.clone()));
    assert!(state.objects.is_unrelated(&key) && state.versions(&key).is_none(), "nothing is kept of it");
    let gone = |uid: &str| {
        let object_ref = ObjectRef { uid: Some(uid.to_owned()), ..reference.clone() };
        Event::ObjectGone(ObjectGone { at: Timestamp::UNIX_EPOCH, object_ref })
    };
    state.reduce(gone("another"));
    assert!(state.objects.is_unrelated(&key), "an older one of this name");
    state.reduce(gone(reference.uid.as_deref().unwrap()));
    assert!(!state.objects.is_unrelated(&key) && state.archive.gone_of(&key).is_none());
}
