//! When custom resources were created, for `resource_created_at_seconds`: their metadata are read once for each object.

use super::metrics::Metrics;
use crate::event::{Outcome, Reconcile};
use kube::Client;
use kube::core::{ApiResource, DynamicObject, GroupVersionKind};
use opdev_object::meta::{Gvk, ObjectKey};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use tokio::sync::mpsc;

/// How many objects wait to be looked at; of more than that the next pass reminds.
const WAITING: usize = 1_024;

/// Objects that were seen, and the way to the task that looks at them.
pub(super) struct Creations {
    known: HashSet<ObjectKey>,
    look: mpsc::Sender<(Gvk, ObjectKey)>,
}

impl Creations {
    /// Starts the task. It ends with this.
    pub(super) fn follow(metrics: Arc<Metrics>, client: Client) -> Creations {
        let (look, objects) = mpsc::channel(WAITING);
        tokio::spawn(look_at(objects, metrics, client));
        Creations { known: HashSet::new(), look }
    }

    /// Takes a pass in.
    pub(super) fn hear(&mut self, pass: &Reconcile) {
        let key = pass.object.key();
        if matches!(pass.outcome, Outcome::Gone | Outcome::Uninstalled) {
            self.known.remove(&key);
        } else if !self.known.contains(&key)
            && self.look.try_send((pass.object.gvk.clone(), key.clone())).is_ok()
        {
            self.known.insert(key);
        }
    }
}

async fn look_at(mut objects: mpsc::Receiver<(Gvk, ObjectKey)>, metrics: Arc<Metrics>, client: Client) {
    let mut resources: HashMap<Gvk, ApiResource> = HashMap::new();
    while let Some((gvk, key)) = objects.recv().await {
        if !resources.contains_key(&gvk) {
            let wanted = GroupVersionKind::gvk(&gvk.group, &gvk.version, &gvk.kind);
            let Ok((resource, _)) = kube::discovery::pinned_kind(&client, &wanted).await else { continue };
            resources.insert(gvk.clone(), resource);
        }
        let Some(resource) = resources.get(&gvk) else { continue };
        let api: kube::Api<DynamicObject> = match &key.namespace {
            Some(namespace) => kube::Api::namespaced_with(client.clone(), namespace, resource),
            None => kube::Api::all_with(client.clone(), resource),
        };
        if let Ok(Some(there)) = api.get_metadata_opt(&key.name).await
            && let Some(at) = there.metadata.creation_timestamp
        {
            metrics.created(&gvk, key, at.0);
        }
    }
}
