//! The streams of one kind in several namespaces as one. Each is listed and watched by itself, so that no
//! right to list all namespaces is needed; whoever listens hears one list of all of them, and then what
//! changes. Pure.

use super::stream_cache::Raw;
use super::watched_object::WatchedObject;
use opdev_object::meta::{ObjectKey, ObjectRef};
use serde_json::Value;
use std::collections::HashMap;

/// The objects that the streams have shown, by the place of their namespace.
pub(super) struct Merged(Vec<Part>);

#[derive(Default)]
struct Part {
    /// The objects of the list that is under way.
    listing: Option<HashMap<ObjectKey, WatchedObject>>,
    /// The objects as they were shown last; `None` until the first list is complete.
    objects: Option<HashMap<ObjectKey, WatchedObject>>,
}

impl Merged {
    /// A merge of so many namespaces.
    pub(super) fn of(namespaces: usize) -> Merged {
        Merged((0..namespaces).map(|_| Part::default()).collect())
    }

    /// Takes an event of one namespace's stream; says what that means for all of them together. Nothing is
    /// said until each has listed its objects.
    pub(super) fn take(&mut self, place: usize, raw: Raw) -> Vec<Raw> {
        let Some(part) = self.0.get_mut(place) else { return Vec::new() };
        match &raw {
            Raw::Init => part.listing = Some(HashMap::new()),
            Raw::Listed(object) => {
                if let (Some(listing), Some(key)) = (&mut part.listing, key(object.identity())) {
                    listing.insert(key, object.clone());
                }
            }
            Raw::Listing => {
                part.objects = Some(part.listing.take().unwrap_or_default());
                return self.list();
            }
            Raw::Applied(object) => {
                if let (Some(objects), Some(key)) = (&mut part.objects, key(object.identity())) {
                    objects.insert(key, object.clone());
                }
                return self.once_listed(raw);
            }
            Raw::Deleted(object) => {
                if let (Some(objects), Some(key)) = (&mut part.objects, key(object.identity())) {
                    objects.remove(&key);
                }
                return self.once_listed(raw);
            }
            Raw::Missing(_) => return vec![raw],
        }
        Vec::new()
    }

    fn is_listed(&self) -> bool {
        self.0.iter().all(|part| part.objects.is_some())
    }

    fn once_listed(&self, raw: Raw) -> Vec<Raw> {
        if self.is_listed() { vec![raw] } else { Vec::new() }
    }

    /// All objects as one list: also where one namespace only was listed anew, so that what went meanwhile is
    /// found.
    fn list(&self) -> Vec<Raw> {
        if !self.is_listed() {
            return Vec::new();
        }
        let objects = self.0.iter().filter_map(|part| part.objects.as_ref()).flat_map(HashMap::values);
        let listed = objects.map(|object| Raw::Listed(object.clone()));
        std::iter::once(Raw::Init).chain(listed).chain([Raw::Listing]).collect()
    }
}

fn key(object: &Value) -> Option<ObjectKey> {
    ObjectRef::of(object).map(|object| object.key())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stream_cache::Cache;
    use opdev_object::meta;
    use serde_json::json;
    use std::sync::Arc;

    fn object(namespace: &str, name: &str, version: u32) -> WatchedObject {
        let object = json!({"apiVersion": "v1", "kind": "Service", "metadata": {"namespace": namespace, "name": name,
            "uid": format!("{namespace}-{name}"), "resourceVersion": version.to_string()}});
        Arc::new(object).into()
    }

    /// The changes that a cache tells of these events.
    fn run(cache: &mut Cache, merged: &mut Merged, place: usize, raw: Vec<Raw>) -> Vec<String> {
        let raw = raw.into_iter().flat_map(|raw| merged.take(place, raw));
        let happened = raw.flat_map(|raw| cache.take(raw));
        let mut told: Vec<String> = happened
            .map(|happened| {
                format!(
                    "{:?} {}{}",
                    happened.event,
                    meta::name(&happened.object).unwrap_or_default(),
                    if happened.initial { " initial" } else { "" }
                )
            })
            .collect();
        told.sort();
        told
    }

    #[test]
    fn nothing_is_known_until_every_namespace_is_listed() {
        let (mut cache, mut merged) = (Cache::by_namespace(), Merged::of(2));
        let first = vec![Raw::Init, Raw::Listed(object("a", "one", 1)), Raw::Listing];
        assert!(run(&mut cache, &mut merged, 0, first).is_empty());
        assert!(run(&mut cache, &mut merged, 0, vec![Raw::Applied(object("a", "two", 4))]).is_empty());
        assert!(!cache.is_fresh());
        let second = vec![Raw::Init, Raw::Listed(object("b", "three", 2)), Raw::Listing];
        let told = run(&mut cache, &mut merged, 1, second);
        assert_eq!(told, ["Added one initial", "Added three initial", "Added two initial"]);
        assert!(cache.is_fresh());
        assert_eq!(
            run(&mut cache, &mut merged, 1, vec![Raw::Deleted(object("b", "three", 5))]),
            ["Deleted three"]
        );
    }

    #[test]
    fn a_second_list_of_one_namespace_leaves_the_others_alone() {
        let (mut cache, mut merged) = (Cache::by_namespace(), Merged::of(2));
        for (place, namespace) in ["a", "b"].into_iter().enumerate() {
            let name = format!("in-{namespace}");
            let list = vec![Raw::Init, Raw::Listed(object(namespace, &name, 1)), Raw::Listing];
            run(&mut cache, &mut merged, place, list);
        }
        // The watch of one broke; its object went meanwhile, and so did one that a reconcile had made.
        cache.know(&object("a", "made", 2), true);
        let again = vec![Raw::Init, Raw::Listed(object("a", "new", 3)), Raw::Listing];
        assert_eq!(run(&mut cache, &mut merged, 0, again), ["Added new", "Deleted in-a"]);
        assert_eq!(cache.take_doubtful().len(), 1, "what a reconcile made and no list shows is asked for");
        assert!(cache.objects().any(|object| meta::name(&object) == Some("in-b")));
    }

    #[test]
    fn what_one_namespace_shows_says_nothing_about_another() {
        let (mut cache, mut merged) = (Cache::by_namespace(), Merged::of(2));
        for place in 0..2 {
            run(&mut cache, &mut merged, place, vec![Raw::Init, Raw::Listing]);
        }
        run(&mut cache, &mut merged, 0, vec![Raw::Applied(object("a", "late", 90))]);
        // The stream of `b` is behind that of `a`: it has yet to show what a reconcile has made there.
        cache.know(&object("b", "made", 50), true);
        assert_eq!(cache.objects().count(), 2);
        assert_eq!(
            run(&mut cache, &mut merged, 1, vec![Raw::Applied(object("b", "made", 50))]),
            ["Added made"]
        );
    }
}
