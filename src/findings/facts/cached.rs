//! The objects of a cache, and those that reconciles use.

use opdev_event::CauseKind;
use opdev_event::evidence::Evidence;
use opdev_object::meta::{ObjectKey, ObjectRef};
use std::collections::{HashMap, HashSet};

/// Objects of a kind that are told apart.
const MOST: usize = 5_000;

/// A kind in a cache.
#[derive(Clone, Debug, Default)]
pub struct Cache {
    /// Objects that the cache holds, where these are many.
    pub objects: usize,
    /// Objects that reconciles have read or that led to one.
    pub used: HashSet<ObjectKey>,
    /// The first reconcile that read one: controller, object and number.
    pub reader: Option<(String, ObjectRef, u64)>,
    /// True if a reconcile has read one since it was told.
    pub news: bool,
}

/// The caches of a process, by kind.
#[derive(Clone, Debug, Default)]
pub struct Caches(pub HashMap<(String, String), Cache>);

impl Caches {
    /// Takes in what the cache of each kind holds, and which of it is used.
    pub(crate) fn take(&mut self, evidence: &Evidence) {
        let kind = |key: &ObjectKey| (key.group.clone(), key.kind.clone());
        for cache in self.0.values_mut() {
            cache.objects = 0;
        }
        for fact in &evidence.cached {
            self.0.entry((fact.group.clone(), fact.kind.clone())).or_default().objects = fact.objects;
        }
        let read = evidence.reads.iter().filter(|read| !read.missing).flat_map(|read| &read.objects);
        for key in read.filter(|key| key.kind != evidence.object.gvk.kind) {
            // Reads while there were few count, too, once there are many.
            let cache = self.0.entry(kind(key)).or_default();
            if cache.objects > 0 {
                let reader = || (evidence.controller.clone(), evidence.object.clone(), evidence.reconcile);
                cache.reader.get_or_insert_with(reader);
                cache.news = true;
            }
            if cache.used.len() < MOST {
                cache.used.insert(key.clone());
            }
        }
        for cause in &evidence.causes {
            if let CauseKind::Watch { object, .. } = &cause.kind
                && object.gvk.kind != evidence.object.gvk.kind
            {
                let cache = self.0.entry(kind(&object.key())).or_default();
                if cache.used.len() < MOST {
                    cache.used.insert(object.key());
                }
            }
        }
    }
}
