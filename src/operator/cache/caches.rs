//! The caches of all streams by what they follow, shared with the reconciles that read from them.
//! Holds no stream and starts none: `manager` does. No lock is held while anything waits.

use super::interest::Interest;
use super::stream::Follow;
use super::stream_cache::Cache;
use opdev_object::meta::{Gvk, ObjectKey};
use serde_json::Value;
use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

/// One cache, written by the manager and read by reconciles.
#[derive(Clone, Debug, Default)]
pub struct Shared(Arc<RwLock<Cache>>);

impl Shared {
    fn of(follow: &Follow, interest: &Interest) -> Shared {
        let cache = Cache::new(follow.namespaces.len() > 1, interest.clone());
        Shared(Arc::new(RwLock::new(cache)))
    }

    /// To look.
    pub fn read(&self) -> RwLockReadGuard<'_, Cache> {
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// To change.
    pub fn write(&self) -> RwLockWriteGuard<'_, Cache> {
        self.0.write().unwrap_or_else(PoisonError::into_inner)
    }
}

/// All caches.
#[derive(Debug)]
pub struct Hub {
    namespaces: Vec<String>,
    caches: RwLock<HashMap<Follow, Shared>>,
}

impl Hub {
    /// `namespaces` are the only ones that are watched; none means all.
    pub fn new(namespaces: Vec<String>) -> Hub {
        Hub { namespaces, caches: RwLock::default() }
    }

    /// The streams that show the objects of a kind in a namespace.
    pub fn follow_of(&self, gvk: &Gvk, namespace: Option<&str>) -> Follow {
        let namespaces = match namespace {
            _ if self.namespaces.is_empty() => Vec::new(),
            Some(name) if self.namespaces.iter().any(|own| own == name) => self.namespaces.clone(),
            Some(other) => vec![other.to_owned()],
            None => Vec::new(),
        };
        Follow { gvk: gvk.clone(), namespaces, selector: String::new() }
    }

    /// The streams that show the children of a kind.
    pub fn follow_children(&self, gvk: &Gvk) -> Follow {
        Follow { gvk: gvk.clone(), namespaces: self.namespaces.clone(), selector: String::new() }
    }

    /// The cache of a stream, made with this interest where there is none.
    pub fn open(&self, follow: &Follow, interest: &Interest) -> Shared {
        let mut caches = self.caches.write().unwrap_or_else(PoisonError::into_inner);
        caches.entry(follow.clone()).or_insert_with(|| Shared::of(follow, interest)).clone()
    }

    /// Forgets the cache of a stream that has ended.
    pub fn close(&self, follow: &Follow) {
        self.caches.write().unwrap_or_else(PoisonError::into_inner).remove(follow);
    }

    fn fresh(&self, follow: &Follow) -> Option<Shared> {
        let caches = self.caches.read().unwrap_or_else(PoisonError::into_inner);
        caches.get(follow).filter(|cache| cache.read().is_fresh()).cloned()
    }

    /// An object as a stream last showed it; the outer `None` where no stream knows.
    pub fn get(&self, follow: &Follow, key: &ObjectKey) -> Option<Option<Arc<Value>>> {
        self.fresh(follow)?.read().get(key)
    }

    /// The objects of a stream; `None` where no stream knows all of them whole.
    pub fn list(&self, follow: &Follow) -> Option<Vec<Arc<Value>>> {
        let cache = self.fresh(follow)?;
        let cache = cache.read();
        (!cache.is_partial()).then(|| cache.objects().collect())
    }

    /// The objects of a stream that may lead to a custom resource; `None` where no stream knows. Others may
    /// be among them.
    pub fn list_leading(&self, follow: &Follow) -> Option<Vec<Arc<Value>>> {
        Some(self.fresh(follow)?.read().objects().collect())
    }
}
