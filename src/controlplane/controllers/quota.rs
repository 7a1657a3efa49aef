//! ResourceQuotas: what is used of what they limit. Never refuses anything; the registry does.

use super::fields::{self, deleting, with_status};
use crate::contract::{Actor, Change, Controller, Key, Sync, View, Write};
use jiff::Timestamp;
use opdev_apimachinery::quota::{self, Consumer, Evaluator};
use serde_json::Value;

/// See the module.
pub(crate) struct ResourceQuotas {
    /// The kinds with what their objects use of quotas.
    pub(crate) consumers: Vec<Consumer<'static>>,
}

/// The resource of quotas.
pub(crate) const RESOURCE: &str = "resourcequotas";

impl Controller for ResourceQuotas {
    fn name(&self) -> &'static str {
        "resourcequota-controller"
    }

    fn actor(&self) -> Actor {
        Actor::kube_controller_manager("system:serviceaccount:kube-system:resourcequota-controller")
    }

    fn keys(&self, view: &dyn View, change: &Change) -> Vec<Key> {
        let Some(namespace) = change.object().and_then(|object| object.namespace()) else {
            return Vec::new();
        };
        let quotas = view.list(RESOURCE, Some(namespace));
        let changed = change.key().filter(|_| change.resource == RESOURCE);
        let of = |found: &std::sync::Arc<Value>| Key::of_object(RESOURCE, found);
        let mut keys = Vec::new();
        if !quotas.is_empty() {
            let found = self.consumers.iter().copied().find(|kind| kind.resource == change.resource);
            let other = Consumer { resource: &change.resource, evaluator: &Evaluator::COMMON };
            let consumer = found.unwrap_or(other);
            let counts = |found: &Value| quota::hard(found).any(|(name, _)| consumer.uses(name));
            keys.extend(quotas.iter().filter(|found| counts(found)).map(of));
        }
        keys.extend(changed);
        keys
    }

    fn sync(&self, view: &dyn View, key: &Key, _: Timestamp) -> Sync {
        let Some(found) = key.read(view).filter(|found| !deleting(found)) else { return Sync::done() };
        let namespace = key.namespace.as_deref();
        let mut status = fields::status(&found);
        status.insert("hard".into(), found.pointer("/spec/hard").cloned().unwrap_or_default());
        status.insert(
            "used".into(),
            quota::usage(&found, &self.consumers.iter().copied(), |resource| view.list(resource, namespace))
                .into(),
        );
        if status == fields::status(&found) {
            return Sync::done();
        }
        let object = with_status(&found, status);
        Sync { writes: vec![Write::UpdateStatus { resource: RESOURCE.into(), object }], ..Sync::default() }
    }
}
