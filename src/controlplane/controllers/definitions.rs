//! Tries again to delete the custom resources of a definition that is going, where a conversion failed. The
//! first attempt is the registry's own. Never deletes anything by itself.

use super::conditions;
use super::fields::{self, deleting};
use crate::contract::{Actor, Change, Controller, Key, Sync, View, Write};
use jiff::Timestamp;
use serde_json::Value;

/// See the module.
pub(crate) struct Definitions;

const RESOURCE: &str = "apiextensions.k8s.io/customresourcedefinitions";

impl Controller for Definitions {
    fn name(&self) -> &'static str {
        "crd-finalizer"
    }

    fn actor(&self) -> Actor {
        Actor { user: "system:apiserver", field_manager: "kube-apiserver" }
    }

    fn keys(&self, _view: &dyn View, change: &Change) -> Vec<Key> {
        if change.resource == RESOURCE { change.key().into_iter().collect() } else { Vec::new() }
    }

    fn sync(&self, view: &dyn View, key: &Key, _now: Timestamp) -> Sync {
        let Some(definition) = key.read(view).filter(|definition| stuck(definition)) else {
            return Sync::done();
        };
        let name = fields::name(&definition).to_owned();
        Sync { writes: vec![Write::ClearDefinition { name }], ..Sync::default() }
    }
}

/// Returns true if the deletion of a definition's custom resources has failed.
fn stuck(definition: &Value) -> bool {
    let status = fields::status(definition);
    let said = conditions::find(&status, "Terminating");
    deleting(definition) && said.is_some_and(|said| said["reason"] == "InstanceDeletionFailed")
}
