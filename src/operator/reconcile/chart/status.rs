//! The steps that say in the custom resource's status what has become of its release.

use super::ChartReconcile;
use crate::custom_resource::CONFLICT_TRIES;
use anyhow::anyhow;
use opdev_client::At;
use opdev_object::meta;
use opdev_release::engine::Deployed;
use opdev_release::status::{DEPLOYED, IRRECONCILABLE, RELEASE_FAILED};
use opdev_release::verdict::Fault;
use std::sync::Arc;

impl ChartReconcile {
    /// Says in the status what has become of the release.
    pub(super) fn show_release(&mut self) {
        if self.engine.done.planned {
            self.status.clear(IRRECONCILABLE);
        }
        let Some(Deployed { revision, notes, manifest }) = self.engine.done.deployed.take() else { return };
        self.status.clear(RELEASE_FAILED);
        self.status.clear(IRRECONCILABLE);
        let reason = if revision == 1 { "InstallSuccessful" } else { "UpgradeSuccessful" };
        self.status.set(DEPLOYED, true, reason, &notes);
        self.status.release(Some((&self.engine.name, &manifest)));
    }

    /// Shows a failure in the object's status, as far as the engine has a condition for it.
    pub(super) async fn tell_fault(&mut self, mut fault: Fault) -> Fault {
        if self.engine.settings.read_only.holds() {
            return fault;
        }
        let hybrid = self.engine.options.hybrid;
        if hybrid {
            self.show_fault(&fault);
        } else if let Some((kind, reason)) = fault.condition {
            self.status.set(kind, true, reason, &format!("{:#}", fault.error));
        }
        self.engine.put_script_events().await;
        if (hybrid || fault.condition.is_some())
            && let Err(error) = self.put_status().await
        {
            fault.also = Some(error);
        }
        fault
    }

    /// Writes the status if it differs from the one before.
    pub(super) async fn put_status(&mut self) -> anyhow::Result<()> {
        let status = self.status.to_json();
        for _ in 0..CONFLICT_TRIES {
            if self.parent.object.get("status") == Some(&status) {
                return Ok(());
            }
            let mut object = self.parent.object.clone();
            meta::put(&mut object, &["status"], status.clone());
            let (resource, reference) = (Arc::clone(&self.parent.resource), self.parent.reference.clone());
            let at =
                At { resource: &resource, namespace: reference.namespace.as_deref(), name: &reference.name };
            match self.api.update(&at, "status", &object).await {
                Ok(object) => {
                    self.parent.object = object;
                    self.engine.note("status");
                    return Ok(());
                }
                Err(error) if error.is_conflict() => match self.api.get(&at).await? {
                    Some(object) => self.parent.object = object,
                    None => return Ok(()),
                },
                Err(error) if error.is_not_found() => {
                    return match self.api.get(&at).await? {
                        Some(_) => Err(anyhow!(
                            "could not write the status: the CRD of {} has no status subresource; add `subresources: \
                             {{status: {{}}}}` to its version {}",
                            self.parent.reference.gvk.kind,
                            self.parent.reference.gvk.version
                        )),
                        None => Ok(()),
                    };
                }
                Err(error) => return Err(anyhow::Error::new(error).context("could not write the status")),
            }
        }
        Err(anyhow!("could not write the status: the object keeps changing"))
    }
}
