//! The objects that a process has seen or written, with some of their older versions. Bounded; the objects
//! that were not touched for the longest time make way.

use jiff::Timestamp;
use opdev_object::meta::{ObjectKey, resource_version};
use serde_json::Value;
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

/// Versions of one object.
const VERSIONS: usize = 6;
/// Objects that are known at once.
const OBJECTS: usize = 20_000;

/// The known facts about one object, oldest first.
#[derive(Debug, Default)]
struct Known {
    versions: VecDeque<Version>,
    gone: bool,
}

#[derive(Debug)]
struct Version {
    /// Its resourceVersion.
    rv: String,
    /// When it was seen first.
    at: Timestamp,
    object: Arc<Value>,
}

/// Objects by their key.
#[derive(Debug, Default)]
pub struct Versions {
    objects: HashMap<ObjectKey, Known>,
    /// In the order in which they were seen first.
    order: VecDeque<ObjectKey>,
}

impl Versions {
    /// Keeps a version that was seen at a time.
    pub fn keep(&mut self, key: &ObjectKey, object: &Arc<Value>, at: Timestamp) {
        let Some(rv) = resource_version(object) else { return };
        let known = self.touch(key);
        if known.versions.iter().any(|version| version.rv == rv) {
            return;
        }
        let place = known.versions.iter().rposition(|version| older(&version.rv, rv)).map_or(0, |at| at + 1);
        known.versions.insert(place, Version { rv: rv.to_owned(), at, object: Arc::clone(object) });
        if known.versions.len() > VERSIONS {
            known.versions.pop_front();
        }
    }

    /// Notes that an object is gone.
    pub fn gone(&mut self, key: &ObjectKey) {
        self.touch(key).gone = true;
    }

    /// Notes that an object of this name is there again.
    pub fn reborn(&mut self, key: &ObjectKey) {
        self.touch(key).gone = false;
    }

    fn touch(&mut self, key: &ObjectKey) -> &mut Known {
        if !self.objects.contains_key(key) {
            self.order.push_back(key.clone());
            if self.order.len() > OBJECTS
                && let Some(oldest) = self.order.pop_front()
            {
                self.objects.remove(&oldest);
            }
        }
        self.objects.entry(key.clone()).or_default()
    }

    /// The version with this resourceVersion.
    pub fn at(&self, key: &ObjectKey, rv: &str) -> Option<Arc<Value>> {
        let known = self.objects.get(key)?;
        known.versions.iter().find(|version| version.rv == rv).map(|version| Arc::clone(&version.object))
    }

    /// Returns true if this version was seen before a time.
    pub fn seen_before(&self, key: &ObjectKey, rv: &str, at: Timestamp) -> bool {
        let known = self.objects.get(key);
        known.is_some_and(|known| known.versions.iter().any(|version| version.rv == rv && version.at < at))
    }

    /// The newest version before this resourceVersion.
    pub fn before(&self, key: &ObjectKey, rv: &str) -> Option<Arc<Value>> {
        let known = self.objects.get(key)?;
        let found = known.versions.iter().rev().find(|version| older(&version.rv, rv));
        found.map(|version| Arc::clone(&version.object))
    }

    /// The oldest version after this resourceVersion.
    pub fn after(&self, key: &ObjectKey, rv: &str) -> Option<Arc<Value>> {
        let known = self.objects.get(key)?;
        let found = known.versions.iter().find(|version| older(rv, &version.rv));
        found.map(|version| Arc::clone(&version.object))
    }

    /// The newest version, of an object that is gone its last.
    pub fn newest(&self, key: &ObjectKey) -> Option<Arc<Value>> {
        self.objects.get(key)?.versions.back().map(|version| Arc::clone(&version.object))
    }

    /// Returns true if it is known to be gone.
    pub fn is_gone(&self, key: &ObjectKey) -> bool {
        self.objects.get(key).is_some_and(|known| known.gone)
    }
}

/// Returns true if one resourceVersion is older than another, as far as both are numbers, which every API
/// server makes them.
pub fn older(a: &str, b: &str) -> bool {
    match (a.parse::<u128>(), b.parse::<u128>()) {
        (Ok(a), Ok(b)) => a < b,
        _ => false,
    }
}
