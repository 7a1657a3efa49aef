//! The objects of a cache, and those that reconciles use.

use super::Table;
use jiff::{SignedDuration, Timestamp};
use opdev_event::CauseKind;
use opdev_event::evidence::Evidence;
use opdev_object::meta::{ObjectKey, ObjectRef};
use std::collections::HashSet;

/// Objects of a kind that are told apart.
const MOST: usize = 5_000;
/// The program has done what there was to do.
const AT_REST: SignedDuration = SignedDuration::from_secs(10);
/// A process that has just started may not have used anything yet.
const WARM: SignedDuration = SignedDuration::from_secs(30);
/// One that is never at rest has used by now what it uses.
const LONG: SignedDuration = SignedDuration::from_secs(90);

/// A kind in a cache.
#[derive(Clone, Debug, Default)]
pub(crate) struct Cache {
    /// Objects that the cache holds, where these are many.
    pub(crate) objects: usize,
    /// Objects that reconciles have read or that led to one.
    pub(crate) used: HashSet<ObjectKey>,
    /// The first reconcile that read one: controller, object and number.
    pub(crate) reader: Option<(String, ObjectRef, u64)>,
    /// True if a reconcile has read one since it was told.
    pub(crate) news: bool,
}

impl Table {
    /// Takes in what the cache of each kind holds, and which of it is used.
    pub(super) fn take_cached(&mut self, evidence: &Evidence) {
        let kind = |key: &ObjectKey| (key.group.clone(), key.kind.clone());
        for cache in self.caches.values_mut() {
            cache.objects = 0;
        }
        for fact in &evidence.cached {
            self.caches.entry((fact.group.clone(), fact.kind.clone())).or_default().objects = fact.objects;
        }
        let read = evidence.reads.iter().filter(|read| !read.missing).flat_map(|read| &read.objects);
        for key in read.filter(|key| key.kind != evidence.object.gvk.kind) {
            let Some(cache) = self.caches.get_mut(&kind(key)).filter(|cache| cache.objects > 0) else {
                continue;
            };
            let reader = || (evidence.controller.clone(), evidence.object.clone(), evidence.reconcile);
            cache.reader.get_or_insert_with(reader);
            cache.news = true;
            if cache.used.len() < MOST {
                cache.used.insert(key.clone());
            }
        }
        for cause in &evidence.causes {
            if let CauseKind::Watch { object, .. } = &cause.kind
                && let Some(cache) = self.caches.get_mut(&kind(&object.key()))
                && cache.used.len() < MOST
            {
                cache.used.insert(object.key());
            }
        }
    }

    /// True if the program has run for a while and has nothing to do, or never rests.
    pub(crate) fn rests(&self) -> bool {
        let since = |at: Timestamp| self.now.duration_since(at);
        let Some(ran) = self.started.map(since) else { return false };
        let idle = self.running.is_empty() && self.tracks.values().all(|track| since(track.ended) >= AT_REST);
        ran >= WARM && (idle || ran >= LONG)
    }
}
