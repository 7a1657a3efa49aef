//! The registry itself: the store, the catalog of what is served, the clock, and what has to follow a write.

use super::Catalog;
use super::scale::read;
use super::strategy::strategy_of;
use opdev_admission::Admission;
use opdev_apimachinery::attributes::{Attributes, Lookup};
use opdev_apimachinery::contract::exec::ExecAnswer;
use opdev_apimachinery::contract::{self, ResourceInfo, View};
use opdev_apimachinery::resource::Resource;
use opdev_storage::{Key, Store, Stored};
use serde_json::Value;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The clock, handed in.
pub type Clock = Arc<dyn Fn() -> jiff::Timestamp + Send + Sync>;

/// The store with the rules around it.
pub struct Registry {
    /// Objects.
    pub store: Arc<Store>,
    /// Served resources.
    pub catalog: Catalog,
    pub clock: Clock,
    pub(super) allocation: Mutex<()>,
    pub(super) quotas: Mutex<()>,
    pub rbac: bool,
    /// Pods are refused whose ServiceAccount is not there.
    pub strict_pods: bool,
    pub(super) exec_answers: Vec<ExecAnswer>,
    pub admission: Admission,
}

impl std::fmt::Debug for Registry {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Registry").field("revision", &self.store.revision()).finish_non_exhaustive()
    }
}

impl Registry {
    /// A store with these resources served.
    pub fn new(store: Store, catalog: Catalog, clock: Clock) -> Self {
        let (allocation, quotas, admission) = (Mutex::new(()), Mutex::new(()), Admission::default());
        Registry {
            store: Arc::new(store),
            catalog,
            clock,
            allocation,
            quotas,
            rbac: false,
            strict_pods: false,
            exec_answers: Vec::new(),
            admission,
        }
    }

    /// The time it is.
    pub fn now(&self) -> jiff::Timestamp {
        (self.clock)()
    }

    /// All objects of a resource, of one namespace or of all, as they are stored.
    pub fn stored(&self, resource: &str, namespace: Option<&str>) -> Vec<Arc<Stored>> {
        self.among(resource, namespace, &Lookup::All)
    }

    /// The objects of a resource among which those are that are looked for.
    fn among(&self, resource: &str, namespace: Option<&str>, wanted: &Lookup<'_>) -> Vec<Arc<Stored>> {
        let served = self.catalog.served();
        let Some(found) = served.by_id(resource) else { return Vec::new() };
        self.store.find(&found.table, namespace.filter(|_| found.namespaced), wanted)
    }

    /// Held while an object is written that gets addresses or ports, so that no two get the same one.
    pub(super) fn lock_allocation(&self, resource: &Resource) -> Option<MutexGuard<'_, ()>> {
        let allocates = strategy_of(resource).allocation.is_some();
        allocates.then(|| self.allocation.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Checks that an object can have what was allocated for it. The caller holds the lock.
    pub(super) fn still_allocatable(
        &self,
        resource: &Resource,
        object: &Value,
        current: Option<&Value>,
    ) -> bool {
        let allocation = &strategy_of(resource).allocation;
        allocation.as_ref().is_none_or(|found| (found.allocate)(self, &mut object.clone(), current).is_ok())
    }

    /// After an object is gone.
    pub(super) fn removed(&self, resource: &Resource, object: &Arc<Stored>) {
        match &resource.custom {
            Some(custom) => self.finish_definition(&custom.definition),
            None => (strategy_of(resource).after_removal)(self, object),
        }
    }
}

/// Lists of no more objects than this are likely to be asked for again.
const FEW: usize = 512;

impl View for Registry {
    fn get(&self, resource: &str, namespace: Option<&str>, name: &str) -> Option<Arc<Value>> {
        let served = self.catalog.served();
        let found = served.by_id(resource)?;
        let namespace = if found.namespaced { namespace.unwrap_or_default() } else { "" };
        Some(self.store.get(&found.table, &Key::new(namespace, name))?.value())
    }

    fn list(&self, resource: &str, namespace: Option<&str>) -> Vec<Arc<Value>> {
        let items = self.stored(resource, namespace);
        // Many at once would take the place of all that is asked for often.
        let tree = |object: &Arc<Stored>| if items.len() > FEW { object.glance() } else { object.value() };
        items.iter().map(tree).collect()
    }

    fn select(
        &self,
        resource: &str,
        namespace: Option<&str>,
        among: &Lookup<'_>,
        wanted: &dyn Fn(&Attributes) -> bool,
    ) -> Vec<Arc<Value>> {
        let mut found = self.among(resource, namespace, among);
        found.retain(|object| wanted(object.attributes()));
        found.iter().map(Stored::value).collect()
    }

    fn select_keys(
        &self,
        resource: &str,
        namespace: Option<&str>,
        among: &Lookup<'_>,
        wanted: &dyn Fn(&Attributes) -> bool,
    ) -> Vec<contract::Key> {
        let found = self.among(resource, namespace, among);
        let wanted = found.iter().filter(|object| wanted(object.attributes())).map(|object| object.key());
        let key = |key: &Key| {
            let namespace = Some(&*key.namespace).filter(|namespace| !namespace.is_empty());
            contract::Key::new(resource, namespace, &key.name)
        };
        wanted.map(key).collect()
    }

    fn each(
        &self,
        resource: &str,
        namespace: Option<&str>,
        among: &Lookup<'_>,
        look: &mut dyn FnMut(&Attributes),
    ) {
        self.among(resource, namespace, among).iter().for_each(|object| look(object.attributes()));
    }

    fn attributes(&self, resource: &str, namespace: Option<&str>, name: &str) -> Option<Attributes> {
        let served = self.catalog.served();
        let found = served.by_id(resource)?;
        let namespace = if found.namespaced { namespace.unwrap_or_default() } else { "" };
        Some(self.store.get(&found.table, &Key::new(namespace, name))?.attributes().clone())
    }

    fn resources(&self) -> Vec<ResourceInfo> {
        let served = self.catalog.served();
        served.resources().iter().filter(|r| r.is_stored_version()).map(|r| r.info()).collect()
    }

    fn resource_of(&self, group: &str, kind: &str) -> Option<ResourceInfo> {
        self.catalog.served().by_kind(group, None, kind).map(|r| r.info())
    }

    fn scale(&self, resource: &str, object: &Value) -> Option<Value> {
        let served = self.catalog.served();
        let found = served.by_id(resource)?;
        found.subresource("scale")?;
        read::read(found, object).ok()
    }
}
