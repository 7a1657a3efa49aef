//! Deleting the custom resources of a definition that is going. The real server reads all of them at the
//! storage version first, and where one cannot be converted, none is deleted: a definition whose conversion
//! webhook is gone stays.

use super::{ID, holds_resources, set_condition};
use crate::context::Context;
use crate::{DeleteOptions, Registry};
use opdev_apimachinery::error::Status;
use opdev_storage::{Expected, Key};
use serde_json::Value;

impl Registry {
    /// Deletes the custom resources of a definition that is going.
    ///
    /// # Errors
    /// The failure of a conversion: then nothing is deleted, and the definition says so.
    pub(crate) fn clear_definition(&self, name: &str) -> Result<(), Status> {
        let served = self.catalog.served();
        let mut own = served
            .resources()
            .iter()
            .filter(|resource| resource.custom.as_ref().is_some_and(|custom| custom.definition == name));
        let resource = own.clone().find(|resource| resource.is_stored_version()).or_else(|| own.next());
        if let Some(resource) = resource {
            let items = self.store.list(&resource.table, None).items;
            if let Err(status) = self.convertible(resource, &items) {
                let text = format!("could not list instances: {}", status.message);
                self.say_terminating(name, "InstanceDeletionFailed", &text);
                return Err(status);
            }
            let text = "CustomResource deletion is in progress";
            self.say_terminating(name, "InstanceDeletionInProgress", text);
            let mut ctx = Context::new(
                &opdev_apimachinery::identity::User::controller("crd-finalizer"),
                "kube-apiserver",
            );
            // Nobody has asked for each of them.
            ctx.skip_admission = true;
            for object in items {
                let options = DeleteOptions {
                    propagation: Some(opdev_apimachinery::contract::Propagation::Background),
                    as_kept: true,
                    ..Default::default()
                };
                // Somebody else may have been faster. The removal of the last object finishes the definition.
                let _ = self.delete(&mut ctx, resource, object.key(), &options);
            }
        }
        self.finish_definition(name);
        Ok(())
    }

    /// Sets the condition `Terminating` of a definition that is going.
    fn say_terminating(&self, name: &str, reason: &str, text: &str) {
        let key = Key::new("", name);
        while let Some(current) = self.store.get(ID, &key) {
            if !holds_resources(&current.value()) {
                return;
            }
            let mut object = Value::clone(&current.value());
            set_condition(&mut object, "Terminating", "True", reason, text, self.now());
            if object == *current.value()
                || self.store.put(ID, &key, Expected::Revision(current.revision), object).is_ok()
            {
                return;
            }
        }
    }
}
