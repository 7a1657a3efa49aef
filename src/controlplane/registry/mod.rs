//! Per-resource rules over the store: what a create, an update or a delete means for each kind.
//! Never sees a request; `handlers` does. Read `resource` and `catalog` first, then `write`.

mod catalog;
mod resource;

pub use catalog::{Catalog, Served};
pub use resource::{Custom, Resource, ScalePaths, Subresource, resource_id};

use crate::controllers::{ResourceInfo, View, Write};
use crate::error::Status;
use crate::identity::User;
use crate::storage::{Key, Store};
use serde_json::Value;
use std::sync::Arc;

/// The clock, handed in.
pub type Clock = Arc<dyn Fn() -> jiff::Timestamp + Send + Sync>;

/// The store with the rules around it.
pub struct Registry {
    /// Objects.
    pub store: Arc<Store>,
    /// Served resources.
    pub catalog: Catalog,
    clock: Clock,
}

impl std::fmt::Debug for Registry {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Registry").field("revision", &self.store.revision()).finish_non_exhaustive()
    }
}

impl Registry {
    /// An empty store with these resources served.
    pub fn new(catalog: Catalog, clock: Clock) -> Self {
        Registry { store: Arc::new(Store::default()), catalog, clock }
    }

    /// The time it is.
    pub fn now(&self) -> jiff::Timestamp {
        (self.clock)()
    }

    /// Carries out a controller's write; what is returned is the object afterwards (for a delete its last state).
    pub fn write(&self, _user: &User, _manager: &str, write: &Write) -> Result<Arc<Value>, Status> {
        Err(Status::internal(&format!("not written: {write:?}")))
    }
}

impl View for Registry {
    fn get(&self, resource: &str, namespace: Option<&str>, name: &str) -> Option<Arc<Value>> {
        let served = self.catalog.served();
        let found = served.by_id(resource)?;
        let namespace = if found.namespaced { namespace.unwrap_or_default() } else { "" };
        Some(self.store.get(&found.table, &Key::new(namespace, name))?.value.clone())
    }

    fn list(&self, resource: &str, namespace: Option<&str>) -> Vec<Arc<Value>> {
        let served = self.catalog.served();
        let Some(found) = served.by_id(resource) else { return Vec::new() };
        let namespace = if found.namespaced { namespace } else { None };
        self.store.list(&found.table, namespace).items.iter().map(|o| o.value.clone()).collect()
    }

    fn resources(&self) -> Vec<ResourceInfo> {
        let served = self.catalog.served();
        served.resources().iter().filter(|r| r.is_stored_version()).map(|r| r.info()).collect()
    }

    fn resource_of(&self, group: &str, kind: &str) -> Option<ResourceInfo> {
        self.catalog.served().by_kind(group, None, kind).map(|r| r.info())
    }
}
