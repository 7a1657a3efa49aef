//! All served resources: the built-in ones and those of custom resource definitions, as one immutable
//! snapshot that is replaced when a definition comes, changes or goes. Never touches objects.

use opdev_apimachinery::resource::{Resource, resource_id};
use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};
use tokio::sync::watch;

/// One state of the catalog.
#[derive(Debug, Default)]
pub struct Served {
    /// Grows with every change; what is derived from a snapshot may be cached under it.
    pub generation: u64,
    /// True if a webhook converts objects of any resource.
    pub(crate) converts: bool,
    resources: Vec<Arc<Resource>>,
    by_path: HashMap<String, Arc<Resource>>,
    by_id: HashMap<String, Arc<Resource>>,
}

fn path(group: &str, version: &str, plural: &str) -> String {
    format!("{group}/{version}/{plural}")
}

impl Served {
    fn new(generation: u64, resources: Vec<Arc<Resource>>) -> Self {
        let by_path = resources.iter().map(|r| (path(&r.group, &r.version, &r.plural), r.clone())).collect();
        let mut by_id: HashMap<String, Arc<Resource>> = HashMap::new();
        for resource in &resources {
            let stored = resource.api_version() == resource.storage_api_version;
            if stored || !by_id.contains_key(resource.id()) {
                by_id.insert(resource.id().to_owned(), resource.clone());
            }
        }
        let converts = resources.iter().any(|resource| resource.converts());
        Served { generation, converts, resources, by_path, by_id }
    }

    /// Every resource at every version: built-in ones by group, version and plural, then custom ones.
    pub fn resources(&self) -> &[Arc<Resource>] {
        &self.resources
    }

    /// The resource that is served at `/apis/<group>/<version>/<plural>`.
    pub fn find(&self, group: &str, version: &str, plural: &str) -> Option<&Arc<Resource>> {
        self.by_path.get(&path(group, version, plural))
    }

    /// A resource at its storage version by the name controllers use: `apps/deployments`, `pods`.
    pub fn by_id(&self, id: &str) -> Option<&Arc<Resource>> {
        self.by_id.get(id)
    }

    /// A resource at its storage version by group and plural.
    pub fn by_group(&self, group: &str, plural: &str) -> Option<&Arc<Resource>> {
        self.by_id.get(&resource_id(group, plural))
    }

    /// The resource that serves a kind; without a version at the storage version.
    pub fn by_kind(&self, group: &str, version: Option<&str>, kind: &str) -> Option<&Arc<Resource>> {
        let mut matching = self.resources.iter().filter(|r| r.group == group && r.kind == kind);
        match version {
            Some(version) => matching.find(|r| r.version == version),
            None => matching
                .clone()
                .find(|r| r.api_version() == r.storage_api_version)
                .or_else(|| matching.next()),
        }
    }
}

/// The catalog: built-in resources plus one list of resources per definition.
#[derive(Debug)]
pub struct Catalog {
    builtin: Vec<Arc<Resource>>,
    state: RwLock<State>,
    generation: watch::Sender<u64>,
}

#[derive(Debug)]
struct State {
    custom: Vec<(String, Vec<Arc<Resource>>)>,
    served: Arc<Served>,
}

impl Catalog {
    /// A catalog of these built-in resources.
    pub fn new(builtin: Vec<Resource>) -> Self {
        let builtin: Vec<Arc<Resource>> = builtin.into_iter().map(Arc::new).collect();
        let served = Arc::new(Served::new(1, builtin.clone()));
        Catalog {
            builtin,
            state: RwLock::new(State { custom: Vec::new(), served }),
            generation: watch::Sender::new(1),
        }
    }

    /// The current snapshot.
    pub fn served(&self) -> Arc<Served> {
        self.state.read().unwrap_or_else(PoisonError::into_inner).served.clone()
    }

    /// Tells when the snapshot was replaced; the value is its generation.
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.generation.subscribe()
    }

    /// Sets what one definition serves (nothing, to take it out).
    pub fn set_custom(&self, definition: &str, resources: Vec<Resource>) {
        let mut state = self.state.write().unwrap_or_else(PoisonError::into_inner);
        let resources: Vec<Arc<Resource>> = resources.into_iter().map(Arc::new).collect();
        let place = state.custom.iter().position(|(name, _)| name == definition);
        match (place, resources.is_empty()) {
            (Some(place), true) => {
                state.custom.remove(place);
            }
            (Some(place), false) => state.custom[place].1 = resources,
            (None, true) => return,
            (None, false) => state.custom.push((definition.to_owned(), resources)),
        }
        let mut all = self.builtin.clone();
        all.extend(state.custom.iter().flat_map(|(_, list)| list.iter().cloned()));
        let generation = state.served.generation + 1;
        state.served = Arc::new(Served::new(generation, all));
        drop(state);
        self.generation.send_replace(generation);
    }
}
