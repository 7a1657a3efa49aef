//! The objects that the caches of a process hold, by kind, as far as its watches have delivered them.

use opdev_event::evidence::CachedFact;
use opdev_facts::observed::ObservedEvent;
use opdev_object::meta::ObjectKey;
use std::collections::{BTreeMap, HashSet};

/// Fewer objects of a kind are never too many.
const FEW: usize = 50;
/// Objects of a kind that are told apart.
const MOST: usize = 5_000;

/// Group and kind.
type Kind = (String, String);
/// Namespace and name.
type Name = (Option<String>, String);

/// The caches of one process. Watches of one namespace, and those of metadata, are left out.
#[derive(Debug, Default)]
pub(crate) struct Cached(BTreeMap<Kind, HashSet<Name>>);

impl Cached {
    /// Takes in an event of a watch.
    pub(crate) fn take(&mut self, event: &ObservedEvent, key: &ObjectKey) {
        // The path of a core kind is /api/v1/pods, that of another one /apis/apps/v1/deployments.
        let parts = event.path.split('/').filter(|part| !part.is_empty()).count();
        let wide = match event.path.starts_with("/api/") {
            true => parts == 3,
            false => parts == 4,
        };
        if !wide {
            return;
        }
        let objects = self.0.entry((key.group.clone(), key.kind.clone())).or_default();
        let object = (key.namespace.clone(), key.name.clone());
        if event.kind == "DELETED" {
            objects.remove(&object);
        } else if objects.len() < MOST {
            objects.insert(object);
        }
    }

    /// Kinds of which there are many.
    pub(crate) fn many(&self) -> Vec<CachedFact> {
        let many = self.0.iter().filter(|(_, objects)| objects.len() >= FEW);
        let fact = |((group, kind), objects): (&Kind, &HashSet<Name>)| CachedFact {
            group: group.clone(),
            kind: kind.clone(),
            objects: objects.len(),
        };
        many.map(fact).collect()
    }
}
