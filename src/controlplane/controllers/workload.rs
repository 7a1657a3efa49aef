//! The skeleton of the controllers of workloads: which changes concern an object, what it owns by its
//! selector, and that it is read before it is synced. What differs between workloads is in their `Workload`.
//! To add a workload, implement it.

use super::fields::{self, with_status};
use super::owners::{Claim, claim, owner_keys_by};
use super::selector::Selector;
use crate::contract::{Actor, Change, Controller, Key, Refusal, Sync, View, Write};
use jiff::Timestamp;
use serde_json::{Map, Value};

/// The names of a kind of workload.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WorkloadKind {
    /// `group/plural`.
    pub resource: &'static str,
    /// As owner references name it.
    pub kind: &'static str,
    /// Name of the controller.
    pub controller: &'static str,
    /// The ServiceAccount that the controller writes as.
    pub(crate) user: &'static str,
    /// `group/plural` of the objects that its selector claims.
    pub(crate) dependents: &'static str,
}

/// The differences between the controllers of workloads.
pub(crate) trait Workload: Send + std::marker::Sync {
    /// The names of the kind.
    fn kind(&self) -> &WorkloadKind;

    /// The selector of an object. An object without a selector is not synced.
    fn selector(&self, object: &Value) -> Option<Selector> {
        Selector::parse(object.pointer("/spec/selector")).filter(|selector| !selector.is_empty())
    }

    /// Keys that concern a change of neither the kind itself nor its dependents.
    fn other_keys(&self, view: &dyn View, change: &Change) -> Vec<Key> {
        let _ = (view, change);
        Vec::new()
    }

    /// The writes for an object and its pods or sets. The claim's own writes come first.
    fn sync_claimed(&self, view: &dyn View, object: &Value, claim: Claim, now: Timestamp) -> Sync;

    /// The writes for an object without a selector.
    fn sync_without_selector(&self, object: &Value) -> Sync {
        let _ = object;
        Sync::done()
    }

    /// The writes for an object after one of its writes was refused.
    fn write_refused(
        &self,
        view: &dyn View,
        object: &Value,
        write: &Write,
        refusal: &Refusal,
        now: Timestamp,
    ) -> Vec<Write> {
        let _ = (view, object, write, refusal, now);
        Vec::new()
    }

    /// The write of a status, where it differs from that of the object.
    fn status_write(&self, object: &Value, status: Map<String, Value>) -> Option<Write> {
        let resource = self.kind().resource.into();
        (status != fields::status(object))
            .then(|| Write::UpdateStatus { resource, object: with_status(object, status) })
    }
}

impl<W: Workload> Controller for W {
    fn name(&self) -> &'static str {
        self.kind().controller
    }

    fn actor(&self) -> Actor {
        Actor::kube_controller_manager(self.kind().user)
    }

    fn keys(&self, view: &dyn View, change: &Change) -> Vec<Key> {
        let WorkloadKind { resource, kind, dependents, .. } = *self.kind();
        match change.resource.as_str() {
            changed if changed == resource => change.key().into_iter().collect(),
            changed if changed == dependents => {
                owner_keys_by(view, change, kind, resource, &|object| self.selector(object))
            }
            _ => self.other_keys(view, change),
        }
    }

    fn sync(&self, view: &dyn View, key: &Key, now: Timestamp) -> Sync {
        let Some(object) = key.read(view) else { return Sync::done() };
        match self.selector(&object) {
            Some(selector) => {
                let claim = claim(view, &object, self.kind().dependents, &selector);
                self.sync_claimed(view, &object, claim, now)
            }
            None => self.sync_without_selector(&object),
        }
    }

    fn refused(
        &self,
        view: &dyn View,
        key: &Key,
        write: &Write,
        refusal: &Refusal,
        now: Timestamp,
    ) -> Vec<Write> {
        match key.read(view) {
            Some(object) => self.write_refused(view, &object, write, refusal, now),
            None => Vec::new(),
        }
    }
}
